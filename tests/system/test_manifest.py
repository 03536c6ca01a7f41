"""--manifest: what a run stores about the files that are in S3, read by boto3 and Python's json alone."""

import base64
import gzip
import hashlib
import json
import re
import signal
import subprocess

import pytest

from tests.faults import faults
from tests.system.harness import KIB, MIB, make_tree
from tests.system.pushing import marks_of, summary, told

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


@pytest.mark.smoke
@pytest.mark.parametrize("marks", ["sqlite", "dynamodb"], indirect=True)
def test_what_was_uploaded_and_what_was_there(s3once, s3, bucket, marks, tmp_path):
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
    s3_wire.add(faults.drop_reply, "PutObject", where=is_manifest)
    assert push(s3once, tree, bucket).code == 0
    assert len(keys(s3, bucket)) == 1


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
