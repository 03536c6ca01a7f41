"""`s3once status` and `s3once init` on both kinds of marks."""

import json
import os
import re
import signal
import sqlite3

import pytest

from tests.faults import faults
from tests.servers.uplink import Uplink
from tests.system.harness import MIB, fresh_name, make_tree, wait_until
from tests.system.pushing import counts
from tests.system.test_cli import assert_setup_error


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree", {"a.txt": b"a", "sub/b.txt": b"bb", "sub/c.txt": b"ccc"})


@pytest.fixture(params=["local", "dynamodb"])
def marks(request, s3once):
    """A program with marks of either kind, set up."""
    if request.param == "local":
        return "local"
    name = fresh_name("table")
    s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = request.getfixturevalue("dynamodb").endpoint
    s3once.environment["S3ONCE_MARKS"] = f"dynamodb:{name}"
    assert s3once("init").code == 0
    return f"dynamodb:{name}"


# --- status


def test_counts_below_a_prefix(s3once, s3, bucket, tree, marks):
    s3.client.put_object(Bucket=bucket, Key="p/a.txt", Body=b"somebody else's")
    assert s3once("push", tree, f"s3://{bucket}/p").code == 1
    host = s3.endpoint.removeprefix("http://")
    run = s3once("status", f"s3://{bucket}")
    assert run.code == 0 and run.err == ""
    assert f"s3://{bucket}/ at {host}: done 2 files (5 B), failed 1" in run.out
    assert "failed: p/a.txt\n" in run.out
    assert "done 2 files" in s3once("status", f"s3://{bucket}/p/sub").out
    assert "done 2 files" in s3once("status", f"s3://{bucket}/p/sub/").out
    assert "know of no file there\n" in s3once("status", f"s3://{bucket}/p/su").out
    assert "nor of the bucket" in s3once("status", f"s3://{bucket}-x").out


def test_how_far_a_running_job_is(s3once, s3, bucket, tmp_path, marks):
    """From another terminal, during its first run over a slow line."""
    large = 24 * MIB
    tree = make_tree(tmp_path / "tree", {"a.txt": b"a", "b.txt": b"bb", "large": large})
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/nginx.conf").write_text(f"source = {tree}\ntarget = s3://{bucket}/p\nlease = 2s\n")
    s3once.environment["S3ONCE_JOBS"] = str(tmp_path / "jobs")

    def running(*args):
        """The event of the job, once large bytes have moved and the time left is known."""
        run = s3once("status", "--json", *args)
        if run.code == 3:  # the run has not made its marks yet
            return None
        assert run.code == 0, run
        (job,) = [each for each in run.events if each["event"] == "job"] or [None]
        return job and job["session"] and job["session"]["bytes_done"] > 3 and job["session"]["seconds_left"] and job

    with Uplink(s3, 2 * MIB) as line:
        s3once.environment["AWS_ENDPOINT_URL_S3"] = line.endpoint
        uploading = s3once.start("run", "nginx")
        job = wait_until(lambda: running("--job", "nginx"), 60)
        far = job["session"]
        assert (job["state"], job["target"]) == ("running", f"s3://{bucket}/p"), job
        assert (far["files_done"], far["files_found"], far["found_all"]) == (2, 3, True), far
        assert far["bytes_found"] == large + 3 and 3 < far["bytes_done"] < large and far["files"] == 1, far
        assert 0 < far["bytes_per_second"] < 20 * MIB and 0 < far["seconds_left"] < 120 and far["silent_seconds"] < 60, far
        told = s3once("status", f"s3://{bucket}").out
        assert re.search(
            r"^running  \S+/nginx: running for \d+ s, 2 of 3 files, [\d.]+ MiB of 24\.0 MiB \(\d+%\), [\d.]+ [KM]iB/s, (?:[\d:]+|[\d.]+ s) left, "
            r"with 1 file under way at the last heartbeat \d+ s ago; no success yet$",
            told,
            re.M,
        ), told
        later = wait_until(lambda: (each := running(f"s3://{bucket}/p")) and each["session"]["bytes_done"] > far["bytes_done"] and each)
        assert later["session"]["files_found"] == 3
        line.bytes_per_second = 100 * MIB
        assert uploading.wait(60).code == 0
    assert s3once("status", "--json", f"s3://{bucket}").events[2]["session"] is None


@pytest.mark.smoke
def test_story_of_a_key(s3once, s3, bucket, tree, marks):
    s3.client.put_object(Bucket=bucket, Key="p/a.txt", Body=b"somebody else's")
    assert s3once("push", tree, f"s3://{bucket}/p").code == 1
    run = s3once("status", f"s3://{bucket}/p/sub/b.txt")
    assert run.code == 0
    for words in (
        "state     done since 20",
        "fence     session ",
        f":{tree}",
        "version   2 B (2 bytes), modified 20",
        "next run  the next run skips it",
    ):
        assert words in run.out, run
    assert re.search(r"by .* pid \d+.*, ended", run.out) or "by        " not in run.out
    run = s3once("status", f"s3://{bucket}/p/a.txt")
    assert "state     failed since 20" in run.out and "why       " in run.out and "retries it" in run.out


def test_key_without_a_mark(s3once, s3, bucket, tree, marks):
    """It is said, and not shown as an empty prefix; what is below a prefix has marks."""
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    run = s3once("status", f"s3://{bucket}/sub/none")
    assert run.code == 0 and f"s3://{bucket}/sub/none\n  state     no mark for this key" in run.out, run
    assert "next run  the next run uploads it if it finds a file for it" in run.out
    event = s3once("status", "--json", f"s3://{bucket}/sub/none").events[-2]
    assert (event["event"], event["key"], event["state"], event["since"]) == ("mark", "sub/none", "absent", None)
    for prefix in ("sub", "sub/", "none/", ""):
        assert "no mark" not in s3once("status", f"s3://{bucket}/{prefix}").out, prefix


@pytest.mark.parametrize("marks", ["dynamodb"], indirect=True)
def test_holder_that_is_silent_for_longer_than_its_lease(s3once, s3_wire, dynamodb, bucket, tree, marks):
    """As if another host had died: no process shows that, so its last heartbeat does, for status, verify and proven."""
    url = f"s3://{bucket}"
    assert s3once("push", "--exclude", "a.txt", tree, url).code == 0
    rule = s3_wire.add(faults.hold_request, "PutObject", key="a.txt")
    holder = s3once.start("push", tree, url)
    assert rule.reached.wait(60), holder.output()
    try:
        os.kill(holder.pid, signal.SIGSTOP)
        run = s3once("proven", tree / "a.txt", url)
        assert run.code == 1 and "an uploader has it under way" in run.out, run
        name = marks.partition(":")[2]
        for row in dynamodb.client.scan(TableName=name)["Items"]:
            if row["pk"]["S"].startswith("session#"):
                heard = {":expires": {"N": str(int(row["expires"]["N"]) - 3600)}}
                where = {"pk": row["pk"], "sk": row["sk"]}
                dynamodb.client.update_item(TableName=name, Key=where, UpdateExpression="SET expires = :expires", ExpressionAttributeValues=heard)
        run = s3once("proven", tree / "a.txt", url)
        assert run.code == 1 and "its uploader has ended, or sends no more heartbeats" in run.out, run
        run = s3once("verify", url)
        assert run.code == 1 and "! a.txt\n" in run.out and "sends no more heartbeats: the next push continues it" in run.err, run
        assert "silent for longer than its lease" in s3once("status", f"{url}/a.txt").out
        run = s3once("status", "-v", url)
        assert f"claimed: a.txt\n         from {os.uname().nodename}:{tree}\n" in run.out, run
        assert re.search(r"claimed: \d files? by .*, silent for longer than its lease, begun 20", run.out), run
        assert "claimed: a.txt" not in s3once("status", url).out
    finally:
        holder.kill()
        rule.released.set()


def test_holder_that_was_killed(s3once, s3_wire, bucket, tree, marks):
    """On its own host that is seen at once: the next run there takes the claims over."""
    rule = s3_wire.add(faults.hold_request, "PutObject", key="a.txt")
    holder = s3once.start("push", tree, f"s3://{bucket}")
    assert rule.reached.wait(60), holder.output()
    assert "still open" in s3once("status", f"s3://{bucket}/a.txt").out
    os.kill(holder.pid, signal.SIGKILL)
    holder.popen.wait()
    run = s3once("status", f"s3://{bucket}/a.txt")
    assert run.code == 0 and re.search(rf"by .* pid {holder.pid}.*, its process is gone, begun 20", run.out), run
    assert "so the next run on this host takes it over at once" in run.out
    run = s3once("status", f"s3://{bucket}")
    assert re.search(r"claimed: \d files? by .*, its process is gone, begun 20", run.out), run
    (session,) = (each for each in s3once("status", "--json", f"s3://{bucket}").events if each["event"] == "session")
    assert (session["open"], session["gone"]) == (True, True)
    rule.released.set()


@pytest.fixture
def unit_user(tmp_path):
    """A user like that of systemd's DynamicUser. Returns the path of the marks through its link, their folder, and a function that runs a program as that user."""
    if os.geteuid() != 0:
        pytest.skip("needs root, who looks, and to become another user")
    user, read = 61234, "+dac_read_search"
    folder = tmp_path / "private" / "s3once"
    folder.mkdir(parents=True)
    folder.chmod(0o700)
    folder.parent.chmod(0o700)
    os.chown(folder, user, user)
    (tmp_path / "s3once").symlink_to("private/s3once")
    become = ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups"]
    become += ["--inh-caps", read, "--ambient-caps", read, "--bounding-set", f"-all,{read}"]
    return f"sqlite:{tmp_path}/s3once/marks.db", folder, become


def test_root_reads_the_marks_of_another_user(s3once, s3, s3_wire, bucket, tree, unit_user):
    """It changes nothing, and the owner can use the file before, meanwhile and afterwards."""
    marks, folder, become = unit_user
    push, status = ("push", "--marks", marks, tree, f"s3://{bucket}"), ("status", "--marks", marks, f"s3://{bucket}")

    def looks(words):
        before = (folder / "marks.db").read_bytes()
        run = s3once(*status)
        assert run.code == 0 and words in run.out, run
        assert {(path.stat().st_uid, path.stat().st_mode & 0o777) for path in folder.iterdir()} == {(61234, 0o600)}
        assert (folder / "marks.db").read_bytes() == before

    assert s3once(*push, wrap=become).code == 0
    looks("done 3 files")
    assert s3once(*push, wrap=become).code == 0
    make_tree(tree, {"d.txt": b"dddd"})
    rule = s3_wire.add(faults.hold_request, "PutObject", key="d.txt")
    owner = s3once.start(*push, wrap=become)
    assert rule.reached.wait(60), owner.output()
    looks("done 3 files (6 B), claimed 1")
    rule.released.set()
    assert owner.wait().code == 0
    make_tree(tree, {"e.txt": b"eeeee"})
    rule = s3_wire.add(faults.hold_request, "PutObject", key="e.txt")
    owner = s3once.start(*push, wrap=become)
    assert rule.reached.wait(60), owner.output()
    os.kill(owner.pid, signal.SIGKILL)
    owner.popen.wait()
    rule.released.set()
    looks("its process is gone")
    assert s3once(*push, wrap=become).code == 0
    looks("done 5 files")
    assert_setup_error(s3once(*push), "belongs to another user")


def test_root_asks_the_marks_of_another_user(s3once, s3, bucket, tree, unit_user):
    """As in logrotate's preremove, or to see what a run or `forget` would do. The file is not changed."""
    marks, folder, become = unit_user
    options = ("--marks", marks)
    assert s3once("push", *options, tree, f"s3://{bucket}", wrap=become).code == 0
    make_tree(tree, {"d.txt": b"dddd"})
    before = (folder / "marks.db").read_bytes()
    run = s3once("proven", *options, "--source", tree, tree / "a.txt", f"s3://{bucket}")
    assert run.code == 0, run
    run = s3once("proven", *options, "--source", tree, tree / "d.txt", f"s3://{bucket}")
    assert run.code == 1, run
    run = s3once("push", "-n", "--json", *options, tree, f"s3://{bucket}")
    assert run.code == 0 and counts(run) == {"planned": 1, "skipped": 3}, run
    run = s3once("forget", "-n", *options, f"s3://{bucket}")
    assert run.code == 0 and "3 marks would be forgotten" in run.out + run.err, run
    assert (folder / "marks.db").read_bytes() == before
    assert {path.stat().st_uid for path in folder.iterdir()} == {61234}
    assert s3once("push", *options, tree, f"s3://{bucket}", wrap=become).code == 0


def test_root_reads_no_marks_whose_log_is_another_file(s3once, s3, bucket, tree, unit_user, tmp_path):
    """SQLite would give the file to the owner of the marks."""
    marks, folder, become = unit_user
    assert s3once("push", "--marks", marks, tree, f"s3://{bucket}", wrap=become).code == 0
    (tmp_path / "secret").touch()
    for name in "marks.db-wal", "marks.db-shm":
        os.link(tmp_path / "secret", folder / name)
        assert_setup_error(s3once("status", "--marks", marks), "is not a plain file of its owner")
        os.unlink(folder / name)
    assert (tmp_path / "secret").stat().st_uid == 0
    assert s3once("status", "--marks", marks).code == 0


def shards_of(marks):
    """By default: neighbours of an SQLite file are written together, those of a table are spread."""
    return 16 if marks.startswith("dynamodb:") else 1


def test_status_as_json(s3once, s3, bucket, tree, marks):
    s3.client.put_object(Bucket=bucket, Key="a.txt", Body=b"somebody else's")
    assert s3once("push", tree, f"s3://{bucket}").code == 1
    store, about, job, mark, status = s3once("status", "--json", f"s3://{bucket}").events
    assert (about["event"], about["bucket"], about["generation"]) == ("bucket", bucket, 0)
    assert (job["event"], job["exit"], [line.partition(": ")[0] for line in job["failures"]]) == ("job", 1, [f"{tree}/a.txt"])
    assert store["event"] == "store" and store["shards"] == shards_of(marks)
    assert re.fullmatch("[0-9a-f]{32}", store["table_id"])
    assert store["marks"] == (marks if marks != "local" else f"sqlite:{s3once.state}/s3once/marks.db")
    assert (mark["event"], mark["key"], mark["state"], mark["last_done"]) == ("mark", "a.txt", "failed", None)
    assert (status["done"], status["failed"], status["bytes"]) == (2, 1, 5)
    mark = s3once("status", "--json", f"s3://{bucket}/sub/c.txt").events[-1]
    assert mark["last_done"]["bytes"] == 3 and mark["last_done"]["mtime_ns"] == (tree / "sub/c.txt").stat().st_mtime_ns
    assert mark["outlook"].startswith("the next run skips it")


def test_without_a_bucket_the_store_is_described(s3once, s3, bucket, tree, marks):
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    run = s3once("status")
    assert run.code == 0
    assert re.search(rf"marks: (dynamodb:|sqlite:/).*, {shards_of(marks)} shards?, id [0-9a-f]{{32}}\n", run.out)
    assert "name a bucket" in run.out


def test_many_failures_are_no_wall_of_text(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "many", {f"f{i:02}": b"x" for i in range(15)})
    for i in range(15):
        s3.client.put_object(Bucket=bucket, Key=f"f{i:02}", Body=b"other")
    assert s3once("push", tree, f"s3://{bucket}").code == 1
    run = s3once("status", f"s3://{bucket}")
    assert run.out.count("failed: f") == 10 and "and 5 failed files more: -v lists them all" in run.out
    assert s3once("status", "-v", f"s3://{bucket}").out.count("failed: f") == 15


def test_prefixes_as_long_as_keys(s3once, s3, bucket, tmp_path):
    """The last key below them has little room, or none."""
    folder = "/".join(["x" * 250] * 4) + "/" + "y" * 18
    tree = make_tree(tmp_path / "tree", {f"{folder}/a": 1})
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    for length, done in ((1000, 0), (1004, 1), (1022, 1), (1023, 1)):
        run = s3once("status", f"s3://{bucket}/{folder}/"[: len(f"s3://{bucket}/") + length], "--json")
        assert run.code == 0 and run.events[-1]["done"] == done, (length, run)
    run = s3once("status", f"s3://{bucket}/" + "x" * 1024, "--json")
    assert run.code == 0 and run.events[-1]["done"] == 0, run


def test_status_never_asks_s3_and_needs_no_credentials_for_local_marks(s3once, s3_proxy, bucket, tree):
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    assert s3_proxy.requests()
    none = dict.fromkeys(["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
    assert "done 3 files" in s3once("status", f"s3://{bucket}", env=none).out
    assert s3_proxy.requests() == []


def test_status_makes_no_marks(s3once):
    run = s3once("status", "s3://bucket")
    assert_setup_error(run, "there are no marks at .*/marks.db yet")
    assert not [path for path in s3once.state.rglob("*") if path.is_file()]


def test_status_of_no_table(s3once, dynamodb, table):
    assert_setup_error(s3once("status", "s3://bucket"), table)


# --- init


@pytest.mark.parametrize("dynamodb", ["dynoxide", "dynalite"], indirect=True)
def test_init_makes_a_table_once(s3once, dynamodb, table):
    run = s3once("init")
    assert run.code == 0, run
    has_ttl = "time to live on 'expires'" in run.out
    assert run.out.startswith(f"table {table} was created and is ready: 16 shards")
    assert has_ttl or "this server does not support time to live" in run.err
    shape = dynamodb.client.describe_table(TableName=table)["Table"]
    assert shape["KeySchema"] == [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ]
    if has_ttl:
        ttl = dynamodb.client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
        assert (ttl["TimeToLiveStatus"], ttl["AttributeName"]) == ("ENABLED", "expires")
    settings = dynamodb.items(table)
    assert len(settings) == 1 and settings[0]["pk"] == "settings"
    again = s3once("init")
    assert again.code == 0 and again.out.startswith(f"table {table} is ready: 16 shards")
    assert dynamodb.items(table) == settings


def test_init_with_shards(s3once, dynamodb, table):
    assert "4 shards" in s3once("init", "--shards", "4").out
    assert "4 shards" in s3once("init").out
    run = s3once("init", "--shards", "8")
    assert_setup_error(run, f"{table} has 4 shards, which cannot be changed")


def test_several_inits_at_once_agree(s3once, dynamodb, table):
    runs = [running.wait() for running in [s3once.start("init") for _ in range(4)]]
    assert [run.code for run in runs] == [0] * 4, runs
    assert len(dynamodb.items(table)) == 1


def test_init_of_local_marks(s3once, tmp_path):
    run = s3once("init")
    path = s3once.state / "s3once" / "marks.db"
    assert (run.code, run.out) == (0, f"{path} is ready; marks of one host need no other setup\n")
    assert path.stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert s3once("init", "--marks", f"sqlite:{tmp_path}/m.db").code == 0
    assert json.loads(s3once("status", "--json", "--marks", f"sqlite:{tmp_path}/m.db").out)["shards"] == 1


@pytest.mark.parametrize("made", ["by a lock", "empty"])
def test_a_file_without_marks_needs_no_init(s3once, s3, bucket, tree, made):
    """Push sets it up, so nobody is sent to init; and a dry run does not."""
    marks = s3once.state / "s3once" / "marks.db"
    marks.parent.mkdir(parents=True)
    marks.parent.chmod(0o700)
    if made == "by a lock":
        assert s3once("lock", "run", "--locks", "local", "x", "--", "true").code == 0
    else:
        marks.touch(0o600)
    for command in (("status", f"s3://{bucket}"), ("verify", f"s3://{bucket}"), ("fleet",)):
        assert_setup_error(s3once(*command), "there are no marks at .*/marks.db yet: push makes them")
    run = s3once("push", "-n", "--json", tree, f"s3://{bucket}")
    assert run.code == 0 and counts(run) == {"planned": 3}, run
    assert_setup_error(s3once("status"), "there are no marks at")
    run = s3once("doctor", f"s3://{bucket}")
    assert run.code == 0 and "there are none in" in run.out and "push makes them" in run.out, run
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    assert "done 3 files" in s3once("status", f"s3://{bucket}").out
