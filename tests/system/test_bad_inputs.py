"""Bad days that take a server or a host out of order: the exit code, and one sentence that names the thing and the remedy.

What no server and no host here does by itself is played: by the wire proxy (the answers of AWS are its own words), and by
tests/faults/preload.c (a file system that says it is NFS, a clock that is ahead).
"""

import itertools
import os
import re
import shutil
import socketserver
import sqlite3
import struct
import subprocess
import threading

import pytest

from tests import packed_items
from tests.faults import faults
from tests.faults.preloads import preload_library, preloaded
from tests.faults.proxy import Proxy
from tests.system.harness import RESOLVER_IS_LEFT, make_tree, wait_until
from tests.system.pushing import counts, told

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount")


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree", {"a.txt": b"a", "sub/b.txt": b"bb"})


def assert_ends_once(run, pattern, code=3):
    errors = [line for line in run.err.splitlines() if line.startswith("s3once: error: ")]
    assert run.code == code and len(errors) == 1 and re.search(pattern, errors[0]), run


def answers(status, code, region=None):
    """The proxy says this instead of the server."""

    async def fault(x, rule):
        await x.body()
        reply = faults.error_reply(x.proxy.service, status, code)
        if region:
            reply.headers["x-amz-bucket-region"] = region
        x.fire(rule)
        await x.answer(reply)

    return fault


# --- exit 3: what the services refuse

REFUSALS = {
    "expired token": (400, "ExpiredToken", r"the credentials have expired: renew them"),
    "hopeless clock": (403, "RequestTimeTooSkewed", r"the clocks of this host and of the server disagree: set them"),
    "access denied": (403, "AccessDenied", r"S3 says: "),
    "no bucket": (404, "NoSuchBucket", r"the bucket does not exist: create it"),
    "another region": (301, "PermanentRedirect", r"it belongs to another region or endpoint: check --region and --endpoint-url"),
}


@pytest.mark.parametrize("kind", ["PutObject", None], ids=["mid-run", "from the start"])
@pytest.mark.parametrize("case", REFUSALS)
def test_s3_refuses_everything(s3once, s3, s3_wire, bucket, tree, case, kind):
    status, code, sentence = REFUSALS[case]
    s3_wire.add(answers(status, code), kind, times=None)
    run = s3once("push", tree, f"s3://{bucket}")
    if code == "AccessDenied" and not kind:
        sentence = "access is denied: check the policy of these credentials"  # HEAD has no words
    if code == "NoSuchBucket" and kind:
        assert_ends_once(run, rf"S3 answers 404 for this key, although bucket {bucket} is there.*\(NoSuchBucket, ")
        return
    assert_ends_once(run, rf"bucket {bucket} at http://\S+: {sentence}.*\(({code}, )?request id proxy-{code}\)")
    assert not s3.objects(bucket)


def test_token_that_expires_where_only_heads_are_sent(s3once, s3, s3_wire, bucket, tree):
    """They carry no words: another request asks for them."""
    s3_wire.add(answers(400, "ExpiredToken"), "HeadObject", times=None)
    s3_wire.add(answers(400, "ExpiredToken"), "ListMultipartUploads", times=None)
    assert_ends_once(s3once("push", tree, f"s3://{bucket}"), f"bucket {bucket} at .*: the credentials have expired: renew them")


LOSSES = pytest.mark.parametrize("lose", [faults.cut_reply, faults.drop_reply, faults.truncate_reply])


def refuse_without_a_reason(wire, lose, status, code, asking="ListMultipartUploads"):
    """HEAD has no words, and the answer to the request that asks for them is lost each time."""
    lost = wire.add(lose, asking, times=None)
    wire.add(answers(status, code), times=None)
    return lost


@LOSSES
@pytest.mark.parametrize(
    "status, code, sentence",
    [
        (404, "NoSuchBucket", "the bucket .* does not exist at http"),
        (403, "AccessDenied", "all of the 2 files that were tried are refused, such as s3://.*: access is denied: check the policy"),
        (400, "ExpiredToken", "bucket .*: the credentials have expired: renew them"),
    ],
)
def test_reason_that_is_lost_on_its_way_to_push(s3once, s3, s3_wire, bucket, tree, lose, status, code, sentence):
    lost = refuse_without_a_reason(s3_wire, lose, status, code)
    assert_ends_once(s3once("push", tree, f"s3://{bucket}", env={"AWS_MAX_ATTEMPTS": "2"}), sentence)
    assert lost.fired >= 2 and not s3.objects(bucket)


@LOSSES
@pytest.mark.parametrize("status, code", [(404, "NoSuchBucket"), (403, "AccessDenied"), (400, "ExpiredToken")])
def test_reason_that_is_lost_on_its_way_to_verify(s3once, s3_wire, bucket, tree, lose, status, code):
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    lost = refuse_without_a_reason(s3_wire, lose, status, code, "GetObject")
    run = s3once("verify", "--give-up-after", "1s", f"s3://{bucket}", env={"AWS_MAX_ATTEMPTS": "2"})
    assert_ends_once(run, "the connection to .* was lost|HEAD .* and GET ")
    assert lost.fired >= 2 and not run.out


@LOSSES
@pytest.mark.parametrize("command", ["push", "verify"])
def test_reason_that_arrives_in_the_end(s3once, s3_wire, bucket, tree, lose, command):
    source = [tree] if command == "push" else []
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    (tree / "new").write_bytes(b"new")
    head, asking = ("HeadBucket", "ListMultipartUploads") if command == "push" else ("HeadObject", "GetObject")
    lost = s3_wire.add(lose, asking)
    for kind in (head, asking):
        s3_wire.add(answers(400, "ExpiredToken"), kind, times=None)
    run = s3once(command, *source, f"s3://{bucket}")
    assert_ends_once(run, "bucket .*: the credentials have expired: renew them .ExpiredToken, ")
    assert lost.fired == 1


def test_region_that_is_redirected_to_in_vain(s3once, s3, s3_wire, bucket, tree):
    s3_wire.add(answers(301, "PermanentRedirect", "eu-west-1"), times=None)
    run = s3once("push", tree, f"s3://{bucket}")
    assert_ends_once(run, f"bucket {bucket} at .*: it belongs to the region eu-west-1: give it with --region")


def test_table_that_goes_away_meanwhile(s3once, s3, dynamodb, bucket, table, tree):
    with Proxy(dynamodb, "dynamodb") as wire:
        s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = wire.endpoint
        assert s3once("init").code == 0
        wire.add(answers(400, "ResourceNotFoundException"), "UpdateItem", times=None)
        run = s3once("push", tree, f"s3://{bucket}")
        assert_ends_once(run, rf"table {table} at http://\S+: the table does not exist: make it with `s3once init`")
        wire.clear()
        wire.add(answers(400, "ExpiredTokenException"), times=None)
        run = s3once("push", tree, f"s3://{bucket}")
        assert_ends_once(run, rf"table {table} at http://\S+: the credentials have expired")


@pytest.mark.real_s3
def test_bucket_that_may_not_be_written(s3once, s3, bucket, tree):
    s3.client.put_bucket_policy(
        Bucket=bucket,
        Policy='{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Principal":"*","Action":"s3:PutObject",'
        f'"Resource":"arn:aws:s3:::{bucket}/*"}}]}}',
    )
    run = s3once("push", tree, f"s3://{bucket}")
    assert_ends_once(run, rf"bucket {bucket} at .*\(AccessDenied, request id ")
    assert s3.objects(bucket) == {}


def test_name_that_does_not_resolve_is_not_asked_for_ever(s3once, tree):
    run = s3once("push", "--endpoint-url", "http://no-such-host.invalid", tree, "s3://bucket", env=RESOLVER_IS_LEFT)
    assert_ends_once(run, "after 3 attempts: cannot resolve the name of no-such-host.invalid: check the endpoint")


def test_name_of_a_proxy_that_does_not_resolve(s3once, tree):
    """It is the proxy's name that is wrong, and not the endpoint's."""
    run = s3once("push", tree, "s3://bucket", env={**RESOLVER_IS_LEFT, "http_proxy": "http://no-such-proxy.invalid:3128"})
    assert_ends_once(run, "cannot resolve the name of the proxy to 127.0.0.1:9: check http_proxy, HTTPS_PROXY and ALL_PROXY")


class Oddity(socketserver.ThreadingTCPServer):
    """Answers everything with the same bytes."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, reply):
        self.reply = reply
        super().__init__(("127.0.0.1", 0), self.Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            while line := self.rfile.readline():
                if line == b"\r\n":
                    try:
                        self.wfile.write(self.server.reply)
                    except OSError:
                        return

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


@pytest.fixture
def oddity(request):
    made = []

    def make(reply):
        made.append(Oddity(reply))
        return made[0].endpoint

    yield make
    for server in made:
        server.shutdown()
        server.server_close()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"


def test_headers_without_end(s3once, oddity, tree):
    endpoint = oddity(OK + b"X-Long: " + b"x" * 300_000 + b"\r\n\r\n")
    run = s3once("push", "--give-up-after", "3s", "--endpoint-url", endpoint, tree, "s3://bucket", attempts=2)
    assert run.code in (1, 3) and "is too long, or there is no memory for it" in run.err and "check the endpoint" in run.err, run
    assert "out of memory" not in run.err


def test_server_that_says_ok_to_everything(s3once, oddity, tree):
    """No S3 answers a HEAD without an etag: that is no object of other content."""
    run = s3once("push", "--endpoint-url", oddity(OK + b"\r\n"), tree, "s3://bucket")
    assert run.code == 1 and run.err.count("the reply to HeadObject is not what S3 answers: check the endpoint") == 2, run
    assert "other content" not in run.err


@pytest.mark.parametrize("words, env", [
    (["--endpoint-url", "https://user:secret@host"], {}),
    ([], {"AWS_ENDPOINT_URL_S3": "https://user:secret@host/?token=secret"}),
    ([], {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://host/?token=secret"}),
    ([], {"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://user:secret@127.0.0.1:9/?token=secret", "AWS_EC2_METADATA_DISABLED": None}),
    (["--give-up-after", "1s"], {"AWS_MAX_ATTEMPTS": "1", "http_proxy": "ftp://user:secret@host", "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE"}),
], ids=["option", "variable", "container", "metadata", "proxy"])  # fmt: skip
def test_passwords_in_addresses_are_masked(s3once, tree, words, env):
    """Those of addresses that cannot be used, too."""
    run = s3once("push", "-v", *words, tree, "s3://bucket", env={"AWS_ACCESS_KEY_ID": None, **env})
    assert run.code == 3 and "***" in run.err and "secret" not in run.out + run.err, run


# --- exit 3: SQLite files


@pytest.fixture
def small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=700", "tmpfs", disk], check=True)
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


@NEEDS_ROOT
@pytest.mark.parametrize("room", [0, 20_480, 400_000], ids=["from the start", "no room for the index of the log", "in the middle"])
def test_marks_on_a_full_disk(s3once, s3, bucket, small_disk, tmp_path, room):
    tree = make_tree(tmp_path / "tree", dict.fromkeys([f"{i:03}" for i in range(200)], 1))
    filler = small_disk / "filler"
    filler.write_bytes(bytes(shutil.disk_usage(small_disk).free - room))
    command = ("push", "--marks", f"sqlite:{small_disk}/marks.db", tree, f"s3://{bucket}")
    run = s3once(*command)
    assert_ends_once(run, "/disk/marks.db: the file system is full: make room and run again")
    filler.unlink()
    assert s3once(*command).code == 0
    s3.assert_same(tree, bucket)


@pytest.mark.parametrize("place", ["a file", "a circle", "/proc"])
def test_home_where_nothing_can_be_made(s3once, tree, tmp_path, place):
    (tmp_path / "a file").touch()
    (tmp_path / "a circle").symlink_to("a circle")
    home = tmp_path / place  # an absolute one as it is
    run = s3once("push", tree, "s3://bucket", env={"HOME": str(home), "XDG_STATE_HOME": ""})
    sentence = "its folder cannot be made: .*; give a path in a folder that this user may write to, or correct HOME"
    if place == "a circle":
        assert_ends_once(run, f"cannot read {home}/.aws/config: .*; fix this, or use another file")
        run = s3once("push", tree, "s3://bucket", env={"XDG_STATE_HOME": str(home)})
        assert_ends_once(run, f"{home}/s3once/marks.db: {sentence}")
    else:
        assert_ends_once(run, f"{home}/.local/state/s3once/marks.db: {sentence}")


@pytest.mark.parametrize("name, kind", [("NFS", 0x6969), ("SMB", 0xFE534D42)])
def test_marks_on_a_network_file_system(s3once, s3, bucket, tree, name, kind):
    """A fake: none is to be had here."""
    env = preloaded(s3once, preload_library(), S3ONCE_TEST_FSTATFS=kind)
    run = s3once("push", tree, f"s3://{bucket}", env=env)
    assert_ends_once(run, r"marks.db: is on a network file system, .*: use a local folder, or dynamodb:TABLE")
    assert not s3.objects(bucket)


def test_marks_that_stay_locked(s3once, s3, bucket, tree, tmp_path):
    """For longer than it is patient: the clock is moved on, so that nobody waits."""
    marks, ahead = tmp_path / "marks.db", tmp_path / "ahead"
    command = ("push", "-v", "--marks", f"sqlite:{marks}", tree, f"s3://{bucket}")
    assert s3once(*command).code == 0
    (tree / "new").write_bytes(b"new")
    ahead.write_bytes(struct.pack("q", 0))
    with sqlite3.connect(marks, isolation_level=None) as theirs:
        theirs.execute("BEGIN EXCLUSIVE")
        running = s3once.start(*command, env=preloaded(s3once, preload_library(), S3ONCE_TEST_BOOTTIME=ahead))
        later = itertools.count(0, 3)

        def ended():
            with open(ahead, "r+b") as clock:
                clock.write(struct.pack("q", next(later)))
            return running.popen.poll() is not None

        wait_until(ended, 25, "the end")
        run = running.wait()
        theirs.execute("ROLLBACK")
    assert_ends_once(run, r"marks.db: another process kept it locked for 30 s: end that \(fuser shows it\) and run again")
    assert s3once(*command).code == 0


# --- exit 1: the others go on


def test_mark_that_is_not_understood(s3once, s3, bucket, tree):
    """No waiting helps, and what it says is not undone."""
    command = ("push", tree, f"s3://{bucket}")
    assert s3once(*command).code == 0
    marks = s3once.state / "s3once" / "marks.db"
    with packed_items.connect(marks) as theirs:
        theirs.execute("UPDATE items SET doc = packed(json_set(unpacked(doc), '$.state.S', 'archived')) WHERE sk = 'a.txt'")
    (tree / "sub" / "c.txt").write_bytes(b"c")
    run = s3once(*command, timeout=30)
    assert_ends_once(run, r"a\.txt: its mark is damaged, or was written by a later version", code=1)
    assert set(s3.objects(bucket)) == {"a.txt", "sub/b.txt", "sub/c.txt"}
    run = s3once("proven", "--source", tree, tree / "a.txt", f"s3://{bucket}")
    assert run.code == 3 and "a.txt: its mark is damaged, or was written by a later version" in run.out + run.err, run
    with packed_items.connect(marks) as theirs:
        assert "archived" in theirs.execute("SELECT unpacked(doc) FROM items WHERE sk = 'a.txt'").fetchone()[0]


def test_mark_whose_row_is_damaged(s3once, s3, bucket, tree):
    """A run names the row to be deleted; what only reads marks goes on with the others."""
    command = ("push", tree, f"s3://{bucket}")
    assert s3once(*command).code == 0
    with packed_items.connect(s3once.state / "s3once" / "marks.db") as theirs:
        theirs.execute("UPDATE items SET doc = substr(doc, 1, length(doc) - 1) WHERE sk = 'a.txt'")
    run = s3once(*command, timeout=30)
    assert_ends_once(run, r'item pk=".*" sk="a\.txt" is damaged: delete its row', code=3)
    run = s3once("verify", f"s3://{bucket}")
    assert run.code == 1 and "a.txt: its mark is damaged" in run.err and "1 object is as its mark says" in run.err, run
    run = s3once("status", f"s3://{bucket}")
    assert run.code == 0 and "done 1 file" in run.out, run
    with packed_items.connect(s3once.state / "s3once" / "marks.db") as theirs:
        theirs.execute("DELETE FROM items WHERE sk = 'a.txt'")
    assert s3once(*command).code == 0 and s3once("verify", f"s3://{bucket}").code == 0


def test_sources_that_may_not_be_read(s3once, s3, bucket, tree, tmp_path):
    file, folder = tmp_path / "file", tmp_path / "folder"
    make_tree(tmp_path, {"file": b"f", "folder/inside": b"i"})
    for path in (tmp_path, s3once.home, s3once.state, tree):
        path.chmod(0o755)
    file.chmod(0)
    folder.chmod(0)
    run = s3once("push", tree, file, folder, f"s3://{bucket}", unprivileged=True)
    folder.chmod(0o755)
    assert run.code == 1, run
    for path in (file, folder):
        assert re.search(rf"^s3once: error: {path}/?: .*Permission denied", run.err, re.M), run
    assert set(s3.objects(bucket)) == {"a.txt", "sub/b.txt"}


def test_links_that_lead_to_no_source(s3once, s3, bucket, tree, tmp_path):
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "nowhere").symlink_to("not-there")
    sources = {
        tmp_path / "circle": "is a symbolic link that forms a loop, or lies behind one; fix or exclude it",
        tmp_path / "circle" / "below": "is a symbolic link that forms a loop, or lies behind one; fix or exclude it",
        tmp_path / "nowhere": "is a symbolic link to a file that does not exist; fix or exclude it",
        tmp_path / "absent": "does not exist",
    }
    run = s3once("push", *sources, tree, f"s3://{bucket}")
    assert run.code == 1 and run.err.count("s3once: error: ") == len(sources), run
    for path, sentence in sources.items():
        assert f"s3once: error: {path}: {sentence}\n" in run.err, run
    assert set(s3.objects(bucket)) == {"a.txt", "sub/b.txt"}


async def tells_no_proof(x, rule):
    """Like an object that the bucket encrypts with KMS, on a server that echoes no checksum."""
    reply = await x.forward()
    reply.headers["etag"] = '"not-an-md5"'
    x.fire(rule)
    await x.answer(reply)


@pytest.mark.parametrize("kind", ["HeadBucket", "PutObject"])
def test_a_server_that_is_down_is_waited_for(s3once, s3, s3_wire, bucket, tree, kind):
    """For as long as for one that throttles, regardless of the number of attempts; and the reason is reported at once."""
    s3_wire.add(faults.outage(6), kind)
    run = s3once("push", tree, f"s3://{bucket}/p", attempts=3)
    assert run.code == 0 and run.seconds > 5, run
    assert "trying again for up to 300 s (--give-up-after)" in run.err and "S3 answers again" in run.err, run
    assert set(s3.objects(bucket)) == {"p/a.txt", "p/sub/b.txt"}


def test_a_server_that_stays_down(s3once, bucket, tree):
    nowhere = {"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9"}
    run = s3once("push", tree, f"s3://{bucket}/p", "--give-up-after", "3s", env=nowhere, attempts=1)
    assert run.code == 3 and 3 < run.seconds < 40, run


@pytest.mark.real_s3
def test_upload_that_cannot_be_proven(s3once, s3, s3_wire, bucket, tree):
    for kind in ("PutObject", "HeadObject"):
        s3_wire.add(tells_no_proof, kind, key="a.txt", times=None)
    run = s3once("push", tree, f"s3://{bucket}")
    assert_ends_once(run, f"{tree}/a.txt: uploaded, but it cannot be verified: the server returns neither a checksum nor an MD5", code=1)
    assert "1 of 2 files are verified to be in" in run.out


def test_changed_files_that_are_kept_are_named(s3once, s3, bucket, tree):
    command = ("push", "--if-changed=skip", tree, f"s3://{bucket}")
    assert s3once(*command).code == 0
    (tree / "a.txt").write_bytes(b"changed")
    run = s3once(*command)
    assert run.code == 0 and f"kept as it is in S3: {tree}/a.txt -> s3://{bucket}/a.txt: changed since it was uploaded; S3 keeps" in run.out, run
    lines = run.out.splitlines()
    assert f"1 of 2 files are verified to be in s3://{bucket}; 1 has changed since and stays as it was uploaded (--if-changed=skip)" in lines[-2], run
    assert "already done 1; changed and kept as they are in S3 1" in lines[-1], run
    assert "b.txt" not in run.out
    run = s3once(*command, "--json")
    assert [(event["path"], event["text"] != "") for event in told(run, "outdated")] == [(f"{tree}/a.txt", True)], run
    assert counts(run) == {"skipped": 1, "outdated": 1}


def test_files_that_hide_their_size(s3once, s3, bucket, tree):
    """They must not become empty objects."""
    run = s3once("push", tree, "/proc/cpuinfo", f"s3://{bucket}")
    assert_ends_once(run, "/proc/cpuinfo: has size 0 but is not empty", code=1)
    assert set(s3.objects(bucket)) == {"a.txt", "sub/b.txt"}


# --- exit 2: what no run can make sense of


@pytest.mark.parametrize(
    "argv, sentence",
    [
        (["{tree}", "{tree}"], "the SOURCEs {tree} and {tree} are the same: give it once"),
        (["{tree}", "{tree}/../tree/"], "the SOURCEs {tree} and {tree}/../tree/ are the same: give it once"),
        (["{tree}/a.txt", "{tree}", "{tree}/./a.txt"], "are the same: give it once"),
        (["--as", "key", "{tree}"], "--as names the key of one file, and the SOURCE is a directory"),
        (["--files-from", "-", "{tree}/a.txt"], "--files-from lists paths below a directory, and the SOURCE is a file"),
        (["--exclude", "[", "{tree}"], 'the pattern "[" is empty or has an unclosed ['),
        (["--marks", "sqlite::memory:", "{tree}"], "marks in memory are lost at once: name a file"),
    ],
)
def test_contradictions_that_only_the_sources_show(s3once, tree, argv, sentence):
    run = s3once("push", *(word.format(tree=tree) for word in argv), "s3://bucket")
    assert (run.code, run.out) == (2, ""), run
    assert run.err.startswith("s3once: error: push: ") and sentence.format(tree=tree) in run.err and run.err.count("\n") == 1, run
    assert not list(s3once.state.iterdir())


@pytest.mark.parametrize("options", [[], ["--bwlimit", "1M"]], ids=["", "bwlimit"])  # a limit is shared with other processes by a file
def test_dry_run_leaves_no_trace(s3once, s3, bucket, tree, options):
    run = s3once("push", "-n", *options, tree, f"s3://{bucket}")
    assert run.code == 0 and "would upload 2 files" in run.out, run
    assert not list(s3once.state.iterdir()) and not list(s3once.home.iterdir()) and not s3.objects(bucket)
