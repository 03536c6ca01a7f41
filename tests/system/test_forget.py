"""`s3once forget`: which marks go, which stay, and what the next run does."""

import gzip
import signal
import sqlite3

import pytest

from tests.faults import faults
from tests.system.harness import MIB, make_tree
from tests.system.pushing import counts, marks_of, told

BOTH = pytest.mark.parametrize("marks", ["sqlite", "dynamodb"], indirect=True)
SQLITE = pytest.mark.parametrize("marks", ["sqlite"], indirect=True)
FILES = {"a.txt": b"a", "sub/b.txt": b"bb", "sub/c.txt": b"ccc", "subway.txt": b"dddd"}


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree", FILES)


def keys_of(marks):
    """Keys that have a mark which counts."""
    return {key for key, mark in marks_of(marks).items() if mark["state"] != "forgotten"}


def names(run, event):
    return sorted(each["key"] for each in told(run, event))


@BOTH
def test_one_key(s3once, s3, bucket, tree, marks):
    """It goes, the object stays, and the next run adopts the object without sending it."""
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    run = s3once("forget", f"s3://{bucket}/p/sub/b.txt")
    assert run.code == 0 and run.err == "", run
    assert run.out == f"forgotten: s3://{bucket}/p/sub/b.txt\nforgot 1 mark, kept 0\n"
    assert keys_of(marks) == {"p/a.txt", "p/sub/c.txt", "p/subway.txt"}
    assert "p/sub/b.txt" in s3.objects(bucket)
    status = s3once("status", f"s3://{bucket}/p")
    assert ": done 3 files (8 B)\n" in status.out, status
    run = s3once("push", "--json", tree, f"s3://{bucket}/p")
    assert run.code == 0 and counts(run) == {"adopted": 1, "skipped": 3}, run
    assert keys_of(marks) == {f"p/{name}" for name in FILES}
    assert "expires" not in marks_of(marks)["p/sub/b.txt"]


@SQLITE
def test_one_key_with_a_suffix(s3once, bucket, tree, marks):
    """The key of an object that was never there names no mark, although it begins with the key of one."""
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    for suffix in (".gz", ".zst"):
        run = s3once("forget", f"s3://{bucket}/a.txt{suffix}")
        assert run.code == 1 and "there is no mark of" in run.err, run
    assert keys_of(marks) == set(FILES)


@BOTH
def test_row_that_is_left(s3once, s3, bucket, tree, marks):
    """In DynamoDB it expires after a week and has nothing of the version; in SQLite there is none."""
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    assert s3once("forget", f"s3://{bucket}/a.txt").code == 0
    row = marks_of(marks).get("a.txt")
    if marks.kind == "sqlite":
        assert row is None
        return
    assert set(row) == {"pk", "sk", "state", "claim", "at", "expires"} and row["state"] == "forgotten"
    assert row["expires"] - row["at"] == 7 * 24 * 3600
    again = s3once("forget", f"s3://{bucket}/a.txt")
    assert again.code == 1 and "there is no mark of" in again.err, again


@BOTH
def test_prefix_is_shown_first(s3once, s3, bucket, tree, marks):
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    for options in ((), ("--dry-run",)):
        run = s3once("forget", *options, f"s3://{bucket}/p/sub")
        assert run.code == 0, run
        *lines, last = run.out.splitlines()
        assert sorted(lines) == [f"would be forgotten: s3://{bucket}/p/sub/{name}" for name in ("b.txt", "c.txt")]
        assert last.startswith("forgot 0 marks, kept 0; 2 marks would be forgotten"), run
    assert len(keys_of(marks)) == 4
    run = s3once("forget", "--json", "--yes", f"s3://{bucket}/p/sub")
    assert run.code == 0 and names(run, "forgotten") == ["p/sub/b.txt", "p/sub/c.txt"], run
    assert run.events[-1].items() >= {"event": "forget", "forgotten": 2, "kept": 0, "failed": 0, "forgettable": 0}.items()
    assert keys_of(marks) == {"p/a.txt", "p/subway.txt"}


@pytest.mark.real_s3
@BOTH
def test_missing(s3once, s3, bucket, tree, marks):
    """Only where the object is gone by now; a version that is hidden behind a delete marker is gone, too."""
    s3.client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    for name in ("a.txt", "sub/c.txt"):
        s3.client.delete_object(Bucket=bucket, Key=f"p/{name}")
    run = s3once("forget", "--missing", "--yes", "--json", f"s3://{bucket}/p")
    assert run.code == 0 and names(run, "forgotten") == ["p/a.txt", "p/sub/c.txt"] and not told(run, "kept"), run
    there = s3once("forget", "--missing", f"s3://{bucket}/p/sub/b.txt")
    assert there.code == 1 and "kept: " in there.out and "its object is there" in there.out, there
    run = s3once("push", "--json", tree, f"s3://{bucket}/p")
    assert run.code == 0 and counts(run) == {"uploaded": 2, "skipped": 2}, run
    s3.assert_same(tree, bucket, "p")
    again = s3once("forget", "--missing", "--yes", f"s3://{bucket}/p")
    assert again.code == 0 and again.out == "forgot 0 marks, kept 0\n", again


@SQLITE
def test_missing_of_what_was_compressed(s3once, s3, bucket, tree, marks):
    """The object is looked for under its own key, which has the suffix of the compression behind that of the mark."""
    assert s3once("push", "--compress", "gzip", tree, f"s3://{bucket}/p").code == 0
    s3.client.delete_object(Bucket=bucket, Key="p/a.txt.gz")
    run = s3once("forget", "--missing", "--yes", "--json", f"s3://{bucket}/p")
    assert run.code == 0 and names(run, "forgotten") == ["p/a.txt"] and not told(run, "kept"), run
    assert keys_of(marks) == {"p/sub/b.txt", "p/sub/c.txt", "p/subway.txt"}


@pytest.mark.parametrize("s3", ["swift"], indirect=True)
def test_missing_on_swift(s3once, s3, bucket, tree):
    """An existing object identifies the bucket. Without any, nothing is forgotten."""
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    s3.client.delete_object(Bucket=bucket, Key="a.txt")
    run = s3once("forget", "--missing", "--yes", "--json", f"s3://{bucket}")
    assert run.code == 0 and names(run, "forgotten") == ["a.txt"], run
    s3.empty(bucket)
    run = s3once("forget", "--missing", "--yes", f"s3://{bucket}")
    assert run.code == 3 and "is not the bucket that the marks are about" in run.err, run


@SQLITE
def test_missing_of_another_bucket(s3once, s3, bucket, tree, marks):
    """Made anew under the same name, it is not the bucket that the marks are about."""
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    s3.remove_bucket(bucket)
    s3.client.create_bucket(Bucket=bucket)
    run = s3once("forget", "--missing", "--yes", f"s3://{bucket}")
    assert run.code == 3 and "is not the bucket that the marks are about" in run.err, run
    assert len(keys_of(marks)) == 4


@SQLITE
def test_older_than(s3once, s3, bucket, tree, marks):
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    run = s3once("forget", "--older-than", "1d", "--yes", f"s3://{bucket}/p")
    assert run.code == 0 and run.out == "forgot 0 marks, kept 0\n", run
    key = s3once("forget", "--older-than", "1d", f"s3://{bucket}/p/a.txt")
    assert key.code == 1 and "it was changed since" in key.out, key
    age(marks, "p/sub/b.txt", 2 * 24 * 3600)
    run = s3once("forget", "--older-than", "1d", "--yes", "--json", f"s3://{bucket}/p")
    assert run.code == 0 and names(run, "forgotten") == ["p/sub/b.txt"], run


def age(marks, key, seconds):
    """Makes a mark look as if nobody had changed it for so long."""
    row = marks_of(marks)[key]
    marks.change(row, "at", int(row["at"]) - seconds)


@BOTH
def test_live_claim_stays(s3once, s3, bucket, tree, marks, s3_wire):
    """Neither by its key nor by a prefix, and the run goes on to its end."""
    rule = s3_wire.add(faults.hold_request, "PutObject")
    running = s3once.start("push", "--concurrency", "1", tree / "a.txt", f"s3://{bucket}/p")
    assert rule.reached.wait(60)
    for options, code in (((f"s3://{bucket}/p/a.txt",), 1), ((f"s3://{bucket}/p/",), 0), (("--yes", f"s3://{bucket}/p/"), 1)):
        run = s3once("forget", *options)
        assert run.code == code and "kept: " in run.out and "it is claimed" in run.out, run
    rule.released.set()
    assert running.wait().code == 0
    assert marks_of(marks)["p/a.txt"]["state"] == "done"


@SQLITE
def test_open_upload_stays(s3once, s3, bucket, tmp_path, marks, s3_wire):
    """A mark that names one is kept: nothing else does. That is no error of a choice by age."""
    tree = make_tree(tmp_path / "large", {"large": 12 * MIB})
    s3_wire.add(faults.answer(403, "AccessDenied"), "CompleteMultipartUpload", times=None)
    assert s3once("push", "--part-size", "5M", tree, f"s3://{bucket}").code == 1
    run = s3once("forget", f"s3://{bucket}/large")
    assert run.code == 1 and "it records an open multipart upload" in run.out, run
    age(marks, "large", 7200)
    run = s3once("forget", "--yes", "--older-than", "1h", f"s3://{bucket}/")
    assert run.code == 0 and "kept 1" in run.out, run
    assert marks_of(marks)["large"]["state"] == "failed" and len(s3.uploads(bucket)) == 1


@SQLITE
def test_rotated(s3once, s3, bucket, tmp_path, marks):
    """Its mark is found by the object's key, too, which has the suffix of the compression."""
    tree = make_tree(tmp_path / "logs", {"app.log.1": b"", "app.log": b"live"})
    (tree / "app.log.1").unlink()
    (tree / "app.log.1.gz").write_bytes(gzip.compress(b"yesterday", mtime=0))
    assert s3once("push", "--rotated", "--min-age", "0s", tree, f"s3://{bucket}").code == 0
    (object_key,) = s3.objects(bucket)
    (key,) = keys_of(marks)
    assert object_key == key + ".gz"
    run = s3once("forget", f"s3://{bucket}/{object_key}")
    assert run.code == 0 and run.out.startswith(f"forgotten: s3://{bucket}/{key}\n"), run
    (tree / "another.log.1").write_bytes(b"it stays, and shows the bucket")
    run = s3once("push", "--json", "--rotated", "--min-age", "0s", tree, f"s3://{bucket}")
    assert run.code == 0 and counts(run).get("adopted") == 1, run
    s3.client.delete_object(Bucket=bucket, Key=object_key)
    run = s3once("forget", "--missing", "--yes", f"s3://{bucket}/")
    assert run.code == 0 and "forgot 1 mark" in run.out, run


@SQLITE
def test_damaged_mark_stays(s3once, s3, bucket, tree, marks):
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    marks.change(marks_of(marks)["a.txt"], "state", "resting")
    run = s3once("forget", f"s3://{bucket}/a.txt")
    assert run.code == 1 and "it is damaged, or was written by a later version" in run.out, run


def test_bad_inputs(s3once, s3, bucket, tree):
    """Each is a sentence, and nothing is made."""
    for arguments, words in (
        ((), "something is missing: give s3://BUCKET[/KEY-OR-PREFIX]... | --job JOB"),
        (("photos",), "photos"),
        ((f"s3://{bucket}/a", "s3://other/b"), "is in another bucket than"),
        (("--yes", "--dry-run", f"s3://{bucket}"), "one says to do it"),
        (("--older-than", "soon", f"s3://{bucket}"), "soon"),
    ):
        run = s3once("forget", *arguments)
        assert run.code == 2 and words in run.err, run
    run = s3once("forget", f"s3://{bucket}/a")
    assert run.code == 3 and "there are no marks at" in run.err, run
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    run = s3once("forget", f"s3://{bucket}/q", f"s3://{bucket}/p/a.txt")
    assert run.code == 1 and f"there is no mark of s3://{bucket}/q, and none below it" in run.err, run
    assert "forgot 1 mark" in run.out, run


@SQLITE
def test_stopped(s3once, s3, bucket, tree, marks, s3_wire):
    """In the middle of a request: it ends at once and says how far it came; what was under way is no error."""
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    rule = s3_wire.add(faults.hold_request, "HeadObject", times=None)
    running = s3once.start("forget", "--missing", "--yes", "--json", f"s3://{bucket}/p")
    assert rule.reached.wait(60)
    running.popen.send_signal(signal.SIGTERM)
    run = running.wait()
    rule.released.set()
    assert run.code == 143 and "stopping" in run.err and "error" not in run.err, run
    assert [(event["event"], event["forgotten"], event["failed"]) for event in run.events] == [("forget", 0, 0)], run
    assert len(keys_of(marks)) == 4


@pytest.mark.parametrize("how", ["option", "variable"])
def test_missing_among_objects_with_a_customers_key(s3once, rgw, bucket, tree, tmp_path, how):
    """With the key (SSE-C), the bucket is recognised, and each object is asked for. Without it, nothing is forgotten."""
    (tmp_path / "key").write_bytes(bytes(range(32)))
    s3once.environment |= {"AWS_ENDPOINT_URL_S3": rgw.tls_endpoint, "AWS_CA_BUNDLE": str(rgw.ca)}
    key = ["--sse-c-key-file", tmp_path / "key"]
    assert s3once("push", tree, f"s3://{bucket}", *key).code == 0
    rgw.client.delete_object(Bucket=bucket, Key="a.txt")
    forget = ["forget", "--missing", "--yes", f"s3://{bucket}"]
    run = s3once(*forget)
    assert run.code == 3 and "keys that are given" in run.err, run
    if how == "variable":
        s3once.environment["S3ONCE_SSE_C_KEY_FILE"] = key.pop()
        key = []
    run = s3once(*forget, *key)
    assert run.code == 0 and run.err == "", run
    assert run.out == f"forgotten: s3://{bucket}/a.txt\nforgot 1 mark, kept 0\n"
