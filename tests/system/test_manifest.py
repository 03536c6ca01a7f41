"""--manifest: what a run stores about the files that are in S3, read by boto3 and Python's json alone."""

import base64
import gzip
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
from urllib.parse import quote, unquote

import pytest

from tests.faults import faults
from tests.faults.replies import error_reply
from tests.system.harness import KIB, MIB, make_tree
from tests.system.pushing import marks_of, summary, told

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount")
NAME = re.compile(r"(.*)_s3once/runs/dt=(\d{4}-\d\d-\d\d)/host=([A-Za-z0-9._-]+)/(\d{8}T\d{6}Z-[0-9a-f]{32})\.jsonl\.gz")


def keys(s3, bucket):
    """Those of all manifests, in order."""
    return sorted(key for key in s3.objects(bucket) if NAME.fullmatch(key))


def read(s3, bucket, key):
    """object key → its line."""
    lines = [json.loads(line) for line in gzip.decompress(s3.get(bucket, key)).splitlines()]
    assert len({line["key"] for line in lines}) == len(lines)
    return {line["key"]: line for line in lines}


def push(s3once, tree, bucket, *options, **how):
    return s3once("push", tree, f"s3://{bucket}/p", "--manifest", "--json", *options, **how)


def versioned(s3, bucket):
    s3.client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})


@pytest.mark.real_s3
@pytest.mark.parametrize("marks", [pytest.param("sqlite", marks=pytest.mark.smoke), "dynamodb"], indirect=True)
def test_uploaded_and_existing_objects_are_told_apart(s3once, s3, bucket, marks, tmp_path):
    """Each line is what boto3 sees of the object, and says whether this run has sent it."""
    versioned(s3, bucket)
    tree = make_tree(tmp_path / "tree", {"a": b"one", "ü b/c%": b"", "large": 6 * MIB})
    (tree / "bad\udcff").mkdir()  # a folder alone is nothing
    run = push(s3once, tree, bucket, "--part-size", "5MiB")
    assert run.code == 0, run
    (key,) = keys(s3, bucket)
    prefix, day, _, name = NAME.fullmatch(key).groups()
    assert prefix == "p/" and day.replace("-", "") == name[:8]
    assert summary(run)["manifest"] == key and summary(run)["uploaded"] == 3
    (event,) = told(run, "manifest")
    assert event["key"] == key and event["bytes"] == s3.objects(bucket)[key].size and event["version_id"]
    head = s3.client.head_object(Bucket=bucket, Key=key)
    assert head["ContentType"] == "application/gzip" and "ContentEncoding" not in head
    first = read(s3, bucket, key)
    assert first.keys() == {"p/a", "p/ü b/c%", "p/large"}
    for key, line in first.items():
        path = tree / key.removeprefix("p/")
        head = s3.client.head_object(Bucket=bucket, Key=key)
        body = path.read_bytes()
        assert line["event"] == "uploaded" and line["bucket"] == bucket and line["path"] == str(path)
        assert line["version_id"] == head["VersionId"] and line["etag"] == head["ETag"].strip('"')
        assert line["size"] == line["file_size"] == len(body) and line["content_id"] is None
        assert line["mtime"].endswith(f".{path.stat().st_mtime_ns % 10**9:09d}Z")
        assert line["checksums"]["crc32c"] == marks_of(marks)[key]["sum"].removeprefix("crc32c:")
    assert first["p/a"]["checksums"]["md5"] == base64.b64encode(hashlib.md5(b"one").digest()).decode()
    (tree / "new").write_bytes(b"new")
    again = push(s3once, tree, bucket, "--part-size", "5MiB")
    assert again.code == 0, again
    second = read(s3, bucket, summary(again)["manifest"])
    assert {key: line["event"] for key, line in second.items()} == {"p/new": "uploaded"} | dict.fromkeys(first, "skipped")
    kept = ("key", "version_id", "size", "etag", "etag_is_md5", "content_id", "path", "file_size", "mtime")
    for key in first:
        assert [second[key][name] for name in kept] == [first[key][name] for name in kept]
        assert second[key]["checksums"].items() <= first[key]["checksums"].items() and second[key]["checksums"]["crc32c"]
    assert s3once("verify", f"s3://{bucket}").code == 0  # a manifest has no mark, and is no stranger


def test_objects_that_are_found_there(s3once, s3, bucket, tmp_path):
    """Without marks everything is looked at and adopted; a file with a new time is refreshed; compressed objects are themselves."""
    tree = make_tree(tmp_path / "tree", {"a": b"a" * 1000, "b": b"b" * 1000})
    assert push(s3once, tree / "a", bucket, "--compress", "gzip").code == 0
    lost = push(s3once, tree / "a", bucket, "--compress", "gzip", "--marks", f"sqlite:{tmp_path / 'new.db'}")
    (line,) = read(s3, bucket, summary(lost)["manifest"]).values()
    assert line["event"] == "adopted" and line["key"] == "p/a.gz" and line["file_size"] == 1000, line
    assert line["size"] == len(s3.get(bucket, "p/a.gz")) and line["etag"] == s3.objects(bucket)["p/a.gz"].etag
    assert push(s3once, tree / "b", bucket).code == 0
    (tree / "b").touch()
    run = push(s3once, tree / "b", bucket)
    (line,) = read(s3, bucket, summary(run)["manifest"]).values()
    assert line["event"] == "refreshed" and line["mtime"].endswith(f".{(tree / 'b').stat().st_mtime_ns % 10**9:09d}Z"), line


def test_runs_with_nothing_to_send(s3once, s3, bucket, tmp_path):
    """Each night has its manifest, also one without a file; a trial has none, and says so; people are told its name last."""
    tree = make_tree(tmp_path / "tree", {"a": b"one"})
    dry = push(s3once, tree, bucket, "-n")
    assert dry.code == 0 and summary(dry)["manifest"] is None
    assert f"would be written below s3://{bucket}/p/_s3once/runs/" in told(dry, "note")[0]["text"]
    assert not s3.objects(bucket)
    assert push(s3once, tree, bucket).code == 0
    run = s3once("push", tree, f"s3://{bucket}/p", "--manifest")
    assert run.code == 0 and run.out.splitlines()[-1] in [f"manifest: s3://{bucket}/{key}" for key in keys(s3, bucket)], run
    (tree / "a").unlink()
    empty = push(s3once, tree, bucket)
    assert empty.code == 0 and read(s3, bucket, summary(empty)["manifest"]) == {}
    assert len(keys(s3, bucket)) == 3


def test_a_manifest_that_cannot_be_stored(s3once, s3, s3_wire, bucket, tmp_path):
    """All files are in S3, and the run fails nevertheless; a lost reply is not such an error."""
    tree = make_tree(tmp_path / "tree", {"a": b"one"})
    is_manifest = lambda record: "_s3once/" in record.operation.key
    s3_wire.add(faults.answer(403, "AccessDenied"), "PutObject", where=is_manifest)
    run = push(s3once, tree, bucket)
    assert run.code == 1 and summary(run)["uploaded"] == 1 and summary(run)["manifest"] is None, run
    (event,) = told(run, "manifest_failed")
    assert "cannot be stored" in event["text"] and event["code"] == "AccessDenied" and "error: the manifest of the run" in run.err
    assert "the manifest of the run cannot be stored" in s3once("fleet").out
    s3_wire.add(faults.drop_reply, "PutObject", where=is_manifest)
    assert push(s3once, tree, bucket).code == 0
    assert len(keys(s3, bucket)) == 1


def test_a_run_that_a_limit_ends_stores_one(s3once, s3, bucket, s3_wire, tmp_path):
    """Also if its files took the grace, too."""
    tree = make_tree(tmp_path / "tree", {"a": 10, "b": 10})
    s3_wire.add(faults.hold_request, "PutObject", key="p/b", times=None)
    run = push(s3once, tree, bucket, "--concurrency", "1", "--grace", "0", "--max-duration", "10s")
    assert run.code == 6, run
    (key,) = keys(s3, bucket)
    assert summary(run)["manifest"] == key and read(s3, bucket, key).keys() == {"p/a"}
    s3_wire.clear()


def test_a_run_that_is_killed_or_stopped(s3once, s3, s3_wire, bucket, tmp_path):
    """It stores none; the next one's says what it found done."""
    tree = make_tree(tmp_path / "tree", {"a": b"one", "b": b"two"})
    s3_wire.add(faults.kill_before, "PutObject", where=lambda record: "_s3once/" in record.operation.key)
    uploader = s3once.start("push", tree, f"s3://{bucket}/p", "--manifest")
    assert uploader.popen.wait(60) == -signal.SIGKILL, uploader.output()
    held = s3_wire.add(faults.hold_request, "PutObject", key="p/c")
    (tree / "c").write_bytes(b"three")
    uploader = s3once.start("push", tree, f"s3://{bucket}/p", "--manifest", "--grace", "0s")
    assert held.reached.wait(60), uploader.output()
    uploader.popen.send_signal(signal.SIGTERM)
    assert uploader.wait().code == 143
    held.released.set()
    assert not keys(s3, bucket)
    run = push(s3once, tree, bucket)
    assert run.code == 0, run
    events = {key: line["event"] for key, line in read(s3, bucket, summary(run)["manifest"]).items()}
    assert events.pop("p/c") in ("uploaded", "adopted") and events == {"p/a": "skipped", "p/b": "skipped"}


def sums(s3once, bucket, program, *what):
    """The list that this program checks."""
    run = s3once("manifest", *what, "--format", program, f"s3://{bucket}/p")
    assert run.code == 0 and not run.err, run
    return run.out


@pytest.mark.real_s3
def test_lists_that_other_programs_check(s3once, s3, bucket, tmp_path):
    """sha256sum and md5sum beside the files, rclone on the bucket, and the list for S3 Batch Operations."""
    versioned(s3, bucket)
    names = ["a", "-", " ", "*x", "..a/b..", "ü b/c%", "new\nline", "cr\r\n", "back\\slash", "q\"',;&=+#?", "d/e"]
    tree = make_tree(tmp_path / "tree", {name: f"content of {name}".encode() for name in names})
    run = push(s3once, tree, bucket, "--checksum", "sha256")
    assert run.code == 0, run
    name = NAME.fullmatch(summary(run)["manifest"]).group(4)
    for program in ("sha256sum", "md5sum"):
        checked = subprocess.run([program, "-c", "--strict", "--quiet"], cwd=tree, input=sums(s3once, bucket, program, name), text=True, capture_output=True)
        assert checked.returncode == 0 and not checked.stderr, checked
    rows = [row.split(",") for row in sums(s3once, bucket, "s3-batch-versions", "--since", "2026-01-01").splitlines()]
    versions = {f"p/{name}": s3.client.head_object(Bucket=bucket, Key=f"p/{name}")["VersionId"] for name in names}
    assert {unquote(key): version for _, key, version in rows} == versions and {row[0] for row in rows} == {bucket}
    assert {key for _, key, _ in rows} == {quote(key, safe="/-_.~") for key in versions}, "also what unquote() takes as it is"
    assert {row.split(",")[1] for row in sums(s3once, bucket, "s3-batch", name).splitlines()} == {row[1] for row in rows}
    lines = s3once("manifest", summary(run)["manifest"], f"s3://{bucket}/p").out.splitlines()
    assert lines == gzip.decompress(s3.get(bucket, summary(run)["manifest"])).decode().splitlines()
    plain = make_tree(tmp_path / "plain", {"a": b"1", "b c/d": b"2"})
    run = s3once("push", plain, f"s3://{bucket}/r", "--manifest", "--checksum", "sha256", "--json")
    list_of_sums = tmp_path / "SUMS"
    list_of_sums.write_text(s3once("manifest", "--since", "2026-01-01", "--format", "sha256sum", f"s3://{bucket}/r").out)
    if shutil.which("rclone"):
        checked = subprocess.run(["rclone", "--config", "/dev/null", "check", "-C", "sha256", list_of_sums, plain], capture_output=True, text=True, timeout=60)
        assert checked.returncode == 0 and "2 matching files" in checked.stderr, checked
        keys = {"ACCESS_KEY_ID": s3.access_key, "SECRET_ACCESS_KEY": s3.secret_key, "ENDPOINT": s3.endpoint, "REGION": s3.region, "TYPE": "s3", "PROVIDER": "Ceph"}
        remote = {"PATH": os.environ["PATH"], **{f"RCLONE_CONFIG_REMOTE_{name}": value for name, value in keys.items()}}
        argv = ["rclone", "--config", "/dev/null", "check", "-C", "sha256", "--download", "--one-way", list_of_sums, f"remote:{bucket}/r"]
        for found, code in (("2 matching files", 0), ("1 differences found", 1)):
            checked = subprocess.run(argv, env=remote, capture_output=True, text=True, timeout=60)
            assert checked.returncode == code and found in checked.stderr, checked
            flip(s3, bucket, "r/a", 0)
    assert s3once("manifest", f"s3://{bucket}/r").out.splitlines() == [summary(run)["manifest"]]


def test_list_names_each_bad_input(s3once, s3, bucket, tmp_path):
    """Each bad input is a sentence: what is missing is left out with exit 1, what is damaged ends it, what is not there is said."""
    tree = make_tree(tmp_path / "tree", {"a": b"one", "b": b"two"})
    key = summary(push(s3once, tree, bucket))["manifest"]
    url = f"s3://{bucket}/p"
    run = s3once("manifest", key, "--format", "s3-batch-versions", url)
    assert run.code == 1 and not run.out and "its version is not known" in run.err and "1 more objects are left out" in run.err
    run = s3once("manifest", "--since", "9999-01-01", url)
    assert run.code == 0 and not run.out and f"no such manifest is below {url}" in run.err, run
    body = s3.get(bucket, key)
    for damaged, word in ((body[:-5], "its end is missing"), (body[:20] + b"\xff" + body[21:], "damaged"), (body + b"x", "other bytes follow"), (gzip.compress(b"[]\n"), "no JSON object"), (b"", "its end is missing")):
        s3.client.put_object(Bucket=bucket, Key=key, Body=damaged)
        for command in (["manifest", key], ["verify", "--manifest", key]):
            run = s3once(*command, url)
            assert run.code == 1 and word in run.err and key[:40] in run.err, run
    for argv in (["x", "y", url], ["--since", "yesterday", url], ["--since", "2026-02-30", url], ["--format", "md5sum", url], ["x", "--since", "2026-01-01", url]):
        assert s3once("manifest", *argv).code == 2
    for name in ("20260101T000000Z-0", "nothing", "p/_s3once/runs/dt=2026-01-01/host=h/20260101T000000Z-0.jsonl.gz"):
        for command in (["manifest", name], ["verify", "--manifest", name]):
            run = s3once(*command, url)
            assert run.code == 3 and ("there is no manifest of a run" in run.err or "there is no such object" in run.err), run


def test_lists_do_not_lead_out_of_their_folder(s3once, s3, bucket, tmp_path):
    """A key may be any name below a prefix, and sha256sum opens what it reads."""
    run = push(s3once, make_tree(tmp_path / "tree", {"a": b"one", "b": b"two", "c": b"three"}), bucket, "--checksum", "sha256")
    key = summary(run)["manifest"]
    lines = [json.loads(line) for line in gzip.decompress(s3.get(bucket, key)).splitlines()]
    lines.sort(key=lambda line: line["key"])
    lines[0]["key"], lines[1]["key"] = "p/d/../../x", "p//etc/passwd"
    s3.client.put_object(Bucket=bucket, Key=key, Body=gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    run = s3once("manifest", "--format", "sha256sum", key, f"s3://{bucket}/p")
    assert run.code == 1 and run.out.endswith("  c\n") and run.out.count("\n") == 1, run
    assert "its name in the list would be 'd/../../x', which is not a file below" in run.err and "1 more objects" in run.err


def test_a_damaged_manifest_among_others(s3once, s3, bucket, tmp_path):
    """It is named, and the others are printed."""
    tree = make_tree(tmp_path / "tree", {"a": b"one"})
    stored = []
    for name in "abc":
        (tree / name).write_bytes(name.encode())
        run = push(s3once, tree, bucket)
        stored.append((summary(run)["manifest"], name))
    stored.sort()
    first = stored[0][0]
    s3.client.put_object(Bucket=bucket, Key=first, Body=b"no gzip")
    run = s3once("manifest", "--since", "2026-01-01", "--uploaded", "--format", "s3-batch", f"s3://{bucket}/p")
    assert run.code == 1 and f"error: manifest: the manifest {first[:60]}" in run.err and len(run.err.splitlines()) == 1, run
    assert set(run.out.splitlines()) == {f"{bucket},p/{name}" for _, name in stored[1:]}, run


@pytest.mark.real_s3
def test_a_version_that_was_replaced(s3once, s3, bucket, tmp_path):
    """The version of the manifest is compared, whatever the current one is, and sentences say who says so."""
    versioned(s3, bucket)
    tree = make_tree(tmp_path / "tree", {"a": b"one", "b": b"two", "c": b"three"})
    key = summary(push(s3once, tree, bucket))["manifest"]
    version = s3.client.head_object(Bucket=bucket, Key="p/c")["VersionId"]
    s3.client.put_object(Bucket=bucket, Key="p/a", Body=b"later")
    s3.client.delete_object(Bucket=bucket, Key="p/b")
    s3.client.delete_object(Bucket=bucket, Key="p/c", VersionId=version)
    for by in ([], ["--download"]):
        run = s3once("verify", *by, "--manifest", key, f"s3://{bucket}/p")
        assert run.code == 1 and run.out == "- p/c\n", run
    lines = [json.loads(line) for line in gzip.decompress(s3.get(bucket, key)).splitlines()]
    lines = [{**line, "checksums": {"crc32c": "AAAAAA=="}} for line in lines if line["key"] == "p/a"]
    s3.client.put_object(Bucket=bucket, Key=key, Body=gzip.compress(json.dumps(lines[0]).encode() + b"\n"))
    run = s3once("verify", "--download", "--manifest", key, f"s3://{bucket}/p")
    assert run.code == 1 and "and the manifest AAAAAA==" in run.err and "mark" not in run.err, run


async def refuses_null(x, rule):
    """Like moto, which refuses this version although it returns it itself."""
    if "versionId=null" not in x.request.query:
        return await x.proxy.pass_on(x)
    x.fire(rule)
    await x.answer(error_reply("s3", 400, "InvalidArgument"))


def test_the_version_null(s3once, s3, s3_wire, bucket, tmp_path):
    """It is the object of a bucket without versions. A fake server that tells it and refuses to be asked for it."""
    tells = s3_wire.add(faults.tells("x-amz-version-id", "null"), "PutObject", times=None)
    tree = make_tree(tmp_path / "tree", {"a": b"one"})
    key = summary(push(s3once, tree, bucket))["manifest"]
    lines = [json.loads(line) for line in gzip.decompress(s3.get(bucket, key)).splitlines()]
    assert tells.fired and lines[0]["version_id"] == "null"
    s3_wire.clear()
    s3_wire.add(refuses_null, times=None)
    for by in ([], ["--download"]):
        assert s3once("verify", *by, "--manifest", key, f"s3://{bucket}/p").code == 0


@NEEDS_ROOT
def test_a_full_disk_under_the_lines(s3once, s3, bucket, tmp_path):
    """All files are in S3, it is no success, and the sentence says where room is needed. The next run's lists them all."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", disk], check=True)
    try:
        (disk / "filler").write_bytes(bytes(60 << 10))
        tree = make_tree(tmp_path / "tree", {f"{number:03}": str(number).encode() for number in range(300)})
        marks = ("--marks", f"sqlite:{tmp_path / 'marks.db'}")
        run = push(s3once, tree, bucket, *marks, env={"XDG_STATE_HOME": str(disk)})
        assert run.code == 1 and summary(run)["uploaded"] == 300 and summary(run)["manifest"] is None, run
        (event,) = told(run, "manifest_failed")
        assert f"its temporary file in {disk}/s3once cannot be written: No space left on device; make room" in event["text"], run
        assert not keys(s3, bucket)
        (disk / "filler").unlink()
        run = push(s3once, tree, bucket, *marks, env={"XDG_STATE_HOME": str(disk)})
        assert run.code == 0 and len(read(s3, bucket, summary(run)["manifest"])) == 300, run
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_killed_between_the_manifest_and_its_signature(s3once, s3, s3_wire, bucket, tmp_path, key_pair):
    """The manifest is not trusted without its signature, and the next run stores both of its own."""
    private, public = key_pair
    tree = make_tree(tmp_path / "tree", {"a": b"one"})
    s3_wire.add(faults.kill_before, "PutObject", where=lambda record: record.operation.key.endswith(".sig"))
    uploader = s3once.start("push", tree, f"s3://{bucket}/p", "--manifest", "--sign", private)
    assert uploader.popen.wait(60) == -signal.SIGKILL, uploader.output()
    (key,) = keys(s3, bucket)
    asked = ["--public-key", public, f"s3://{bucket}/p"]
    run = s3once("verify", "--manifest", key, *asked)
    assert run.code == 1 and run.out == "" and "cannot be trusted: it has no signature" in run.err, run
    run = push(s3once, tree, bucket, "--sign", private)
    assert run.code == 0 and summary(run)["manifest"] != key, run
    assert s3once("verify", "--manifest", summary(run)["manifest"], *asked).code == 0
    run = s3once("manifest", "--since", "2026-01-01", *asked)
    assert run.code == 1 and len(run.out.splitlines()) == 1 and "it has no signature" in run.err, run


@pytest.mark.real_s3
def test_lists_hold_nothing_of_others(s3once, s3, bucket, tmp_path):
    """A line that names another bucket, or a version that would be two fields, is left out: S3 Batch Operations acts on such lists."""
    versioned(s3, bucket)
    run = push(s3once, make_tree(tmp_path / "tree", {"a": b"one", "b": b"two", "c": b"three"}), bucket)
    key = summary(run)["manifest"]
    lines = [json.loads(line) for line in gzip.decompress(s3.get(bucket, key)).splitlines()]
    lines[0]["bucket"] = "another,\nbucket"
    lines[1]["version_id"] = "1,2"
    s3.client.put_object(Bucket=bucket, Key=key, Body=gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    run = s3once("manifest", "--format", "s3-batch-versions", key, f"s3://{bucket}/p")
    assert run.code == 1 and run.out == f"{bucket},{lines[2]['key']},{lines[2]['version_id']}\n", run
    assert "it is an object of bucket another" in run.err and "1 more objects are left out" in run.err


def test_a_run_by_its_url(s3once, s3, bucket, tmp_path):
    """In the notation of push. A URL of another bucket names no run of this one."""
    run = s3once("push", make_tree(tmp_path / "tree", {"a": b"one"}), f"s3://{bucket}/p", "--manifest")
    url = run.out.splitlines()[-1].removeprefix("manifest: ")
    assert s3once("verify", "--manifest", url, f"s3://{bucket}/p").code == 0
    assert s3once("manifest", url, f"s3://{bucket}/p").out.count("\n") == 1
    run = s3once("manifest", url.replace(bucket, "another"), f"s3://{bucket}/p")
    assert run.code == 3 and "in this bucket" in run.err, run


@pytest.mark.parametrize("kind", ["ListObjectsV2", "GetObject"])
def test_stopped_while_the_manifest_is_read(s3once, s3, s3_wire, bucket, tmp_path, kind):
    """A signal ends it at once, and nothing counts as compared."""
    key = summary(push(s3once, make_tree(tmp_path / "tree", {"a": b"one"}), bucket))["manifest"]
    held = s3_wire.add(faults.hold_request, kind)
    verify = s3once.start("verify", "--manifest", NAME.fullmatch(key).group(4), f"s3://{bucket}/p")
    assert held.reached.wait(60), verify.output()
    verify.popen.send_signal(signal.SIGTERM)
    run = verify.wait(30)
    held.released.set()
    assert run.code == 143 and "not everything was checked" in run.err and "error" not in run.err, run


@pytest.fixture
def key_pair(tmp_path):
    private, public = tmp_path / "private.pem", tmp_path / "public.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True)
    subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)
    return private, public


def flip(s3, bucket, key, at):
    body = bytearray(s3.get(bucket, key))
    body[at] ^= 1
    s3.client.put_object(Bucket=bucket, Key=key, Body=bytes(body))


@pytest.mark.smoke
def test_nothing_was_changed_since(s3once, s3, bucket, tmp_path, key_pair):
    """The signature is what openssl reads; a flipped bit in an object, in the manifest or in the signature is found, and another key, too."""
    private, public = key_pair
    tree = make_tree(tmp_path / "tree", {"a": b"one", "b": b"two" * 1000, "large": 6 * MIB})
    run = push(s3once, tree, bucket, "--sign", private, "--part-size", "5MiB")
    assert run.code == 0, run
    key = summary(run)["manifest"]
    name = NAME.fullmatch(key).group(4)
    signature = s3.get(bucket, f"{key}.sig")
    statement, last = signature[: signature.index(b"signature: ")], signature.splitlines()[-1].removeprefix(b"signature: ")
    assert statement.decode().splitlines()[2:] == [f"key: {key}", f"size: {len(s3.get(bucket, key))}", f"sha256: {hashlib.sha256(s3.get(bucket, key)).hexdigest()}"]
    (tmp_path / "statement").write_bytes(statement)
    (tmp_path / "signature").write_bytes(base64.b64decode(last))
    argv = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", public, "-rawin", "-in", tmp_path / "statement", "-sigfile", tmp_path / "signature"]
    assert subprocess.run(argv, capture_output=True).returncode == 0
    assert s3once("verify", f"s3://{bucket}").code == 0

    def verify(*options, code):
        ran = s3once("verify", "--manifest", name, "--public-key", public, f"s3://{bucket}/p", *options)
        assert ran.code == code, ran
        return ran

    run = verify(code=0)
    assert not run.out and "3 objects are as the manifest says, by checksum or etag" in run.err
    assert verify("--download", "--json", code=0).events[-1]["bytes_read"] == 6 * MIB + 3003
    assert s3once("manifest", name, "--public-key", public, f"s3://{bucket}/p").code == 0
    flip(s3, bucket, "p/a", 1)
    flip(s3, bucket, "p/large", 5 * MIB + 7)
    assert set(verify(code=1).out.splitlines()) == {"* p/a", "* p/large"}
    s3.client.delete_object(Bucket=bucket, Key="p/a")
    assert set(verify("--download", code=1).out.splitlines()) == {"- p/a", "* p/large"}
    flip(s3, bucket, f"{key}.sig", -3)
    assert "its signature is not by this key" in verify(code=1).err
    s3.client.put_object(Bucket=bucket, Key=f"{key}.sig", Body=signature)
    flip(s3, bucket, key, 40)
    assert "was changed" in verify(code=1).err
    s3.client.delete_object(Bucket=bucket, Key=f"{key}.sig")
    assert "it has no signature" in verify(code=1).err


def test_keys_that_cannot_sign(s3once, s3, bucket, tmp_path, key_pair):
    private, public = key_pair
    tree = make_tree(tmp_path / "tree", {"a": b"one"})
    rsa = tmp_path / "rsa.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "rsa", "-out", rsa], check=True, capture_output=True)
    for file in (public, rsa, tmp_path / "nothing"):
        run = push(s3once, tree, bucket, "--sign", file)
        assert run.code == 3 and str(file) in run.err, run
    assert push(s3once, tree, bucket, "--sign", rsa, "--dry-run").code == 3
    private.chmod(0o644)
    run = push(s3once, tree, bucket, "--sign", private)
    assert run.code == 3 and f"others may read or write the key file {private} (mode 644); run: chmod o-rwx {private}" in run.err, run
    private.chmod(0o640)
    assert push(s3once, tree, bucket, "--sign", private, "--dry-run").code == 0
    assert not s3.objects(bucket)
    assert s3once("push", tree, f"s3://{bucket}/q", "--sign", private).code == 0
    assert any(key.startswith("q/_s3once/runs/") and key.endswith(".sig") for key in s3.objects(bucket)), "it needs no --manifest"
    assert s3once("verify", "--public-key", public, f"s3://{bucket}").code == 2
    assert s3once("verify", "--manifest", "x", "--public-key", private, f"s3://{bucket}").code == 3
