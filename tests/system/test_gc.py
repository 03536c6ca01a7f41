"""`s3once gc`: what ended runs have left behind goes; what may live, and what no mark names, stays."""

import os
import signal
import sqlite3

import pytest

from tests import packed_items
from tests.faults import faults
from tests.faults.http1 import Reply
from tests.faults.proxy import Proxy
from tests.system.harness import MIB, make_tree
from tests.system.pushing import counts, marks_of, told

BOTH = pytest.mark.parametrize("marks", ["sqlite", "dynamodb"], indirect=True)
SQLITE = pytest.mark.parametrize("marks", ["sqlite"], indirect=True)
DAY = 24 * 3600
PARTS = ("--part-size", "5M", "--concurrency", "1", "--lease", "2s")


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree", {"large": 11 * MIB})


@pytest.fixture
def killed(s3once, s3_wire, bucket, tree, marks):
    """Makes a run that is killed after the second part, or where the test says. Its mark names an open upload."""

    def run(*options, fault=faults.kill_after, kind="UploadPart", nth=2, **how):
        rule = s3_wire.add(fault, kind, nth=nth)
        result = s3once.start("push", *PARTS, *options, tree, f"s3://{bucket}", **how).wait()
        assert rule.fired == 1 and result.code in (1, -9), result
        s3_wire.clear()
        mark = marks_of(marks)["large"]
        assert mark["state"] == "claimed" and mark["upload"], mark
        return mark

    return run


def gc(s3once, bucket, *options):
    return s3once("gc", "--json", "--keep-uploads", "0", *options, f"s3://{bucket}")


def end(run):
    assert run.events[-1]["event"] == "gc", run
    return {name: number for name, number in run.events[-1].items() if number and name not in ("v", "event", "time") and "file" not in name}


@BOTH
def test_upload_of_a_killed_run(s3once, s3, bucket, tree, marks, killed):
    """Aborted and cleared; what no mark names stays; the next run sends the file as a whole."""
    foreign = s3.client.create_multipart_upload(Bucket=bucket, Key="large")["UploadId"]
    upload = killed()["upload"]
    kept = s3once("gc", f"s3://{bucket}")
    assert kept.code == 0 and kept.out == "aborted uploads: 0, forgot marks: 0, kept: 0, damaged: 0, errors: 0\n", kept
    shown = gc(s3once, bucket, "--dry-run")
    assert shown.code == 0 and end(shown) == {"abortable": 1}, shown
    assert len(s3.uploads(bucket)) == 2 and marks_of(marks)["large"]["state"] == "claimed"
    run = gc(s3once, bucket)
    assert run.code == 0 and end(run) == {"aborted": 1}, run
    (told_one,) = told(run, "aborted")
    assert (told_one["key"], told_one["state"], told_one["upload_id"]) == ("large", "claimed", upload)
    assert [one["UploadId"] for one in s3.client.list_multipart_uploads(Bucket=bucket)["Uploads"]] == [foreign]
    mark = marks_of(marks)["large"]
    assert mark["state"] == "failed" and "upload" not in mark and "part" not in mark, mark
    assert s3once("push", *PARTS, tree, f"s3://{bucket}").code == 0
    s3.assert_same(tree, bucket)


@SQLITE
def test_upload_of_a_failed_file(s3once, s3, bucket, tree, marks, s3_wire):
    """The mark still says why it failed."""
    s3_wire.add(faults.answer(403, "AccessDenied"), "CompleteMultipartUpload", times=None)
    assert s3once("push", *PARTS, tree, f"s3://{bucket}").code == 1
    s3_wire.clear()
    why = marks_of(marks)["large"]["error"]
    run = gc(s3once, bucket)
    assert run.code == 0 and end(run) == {"aborted": 1} and not s3.uploads(bucket), run
    assert marks_of(marks)["large"]["error"] == why


@SQLITE
def test_upload_that_is_gone_already(s3once, s3, bucket, tree, marks, killed):
    """Another client has aborted it. The mark is cleared only if this is the right bucket."""
    upload = killed()["upload"]
    s3.client.abort_multipart_upload(Bucket=bucket, Key="large", UploadId=upload)
    run = gc(s3once, bucket)
    assert run.code == 0 and end(run) == {"aborted": 1}, run
    assert "upload" not in marks_of(marks)["large"]


@SQLITE
def test_upload_that_a_bucket_of_the_same_name_does_not_have(s3once, s3, bucket, tree, tmp_path, marks, killed):
    """The upload is not known to be gone, and its mark stays, until the bucket of the marks is there again."""
    make_tree(tmp_path / "other", {"small": 10})
    assert s3once("push", tmp_path / "other", f"s3://{bucket}").code == 0  # by which the bucket is known
    upload = killed()["upload"]
    s3.client.abort_multipart_upload(Bucket=bucket, Key="large", UploadId=upload)
    s3.client.delete_object(Bucket=bucket, Key="small")
    run = gc(s3once, bucket)
    assert run.code != 0 and not told(run, "aborted") and marks_of(marks)["large"]["upload"] == upload, run


async def misses_a_part(x, rule):
    """A fake: an abort that is confirmed while a part is still under way, which S3 keeps."""
    await x.body()
    x.fire(rule)
    await x.answer(Reply(204))


@SQLITE
def test_part_that_was_under_way_needs_another_abort(s3once, s3, bucket, marks, killed, s3_wire):
    killed()
    rule = s3_wire.add(misses_a_part, "AbortMultipartUpload")
    run = gc(s3once, bucket)
    assert run.code == 0 and end(run) == {"aborted": 1} and rule.fired == 1 and not s3.uploads(bucket), run
    assert [record.kind for record in s3_wire.history].count("AbortMultipartUpload") == 2


@SQLITE
@pytest.mark.parametrize("s3", ["rgw", "swift"], indirect=True)
def test_upload_that_became_the_object(s3once, s3, bucket, tree, marks, killed):
    """Killed after it was completed, before that was marked: it is left to the next run, which adopts the object."""
    killed(kind="CompleteMultipartUpload", nth=1)
    run = gc(s3once, bucket)
    assert run.code == 0 and end(run) == {"kept": 1}, run
    assert "its upload may have become" in told(run, "kept")[0]["text"], run
    run = s3once("push", "--json", tree, f"s3://{bucket}")
    assert run.code == 0 and counts(run) == {"adopted": 1}, run
    s3.assert_same(tree, bucket)


@SQLITE
def test_compressed_upload_that_became_the_object(s3once, s3, bucket, tree, marks, killed):
    """Its object has another size than its file."""
    killed("--compress", "zstd", kind="CompleteMultipartUpload", nth=1)
    run = gc(s3once, bucket)
    assert run.code == 0 and end(run) == {"kept": 1} and told(run, "kept")[0]["object"] == "large.zst", run
    run = s3once("push", "--json", "--compress", "zstd", tree, f"s3://{bucket}")
    assert run.code == 0 and counts(run) == {"adopted": 1}, run


@SQLITE
def test_upload_that_was_to_replace_a_version_of_the_same_size(s3once, s3, bucket, tree, marks, killed):
    """The object there is the version before it, which the mark knows: the upload has not become it, and would lie there for ever."""
    before = (tree / "large").read_bytes()
    assert s3once("push", *PARTS, tree, f"s3://{bucket}").code == 0
    (tree / "large").write_bytes(bytes(reversed(before)))
    killed("--if-changed=replace")
    run = gc(s3once, bucket)
    assert run.code == 0 and end(run) == {"aborted": 1} and not s3.uploads(bucket), run
    assert s3.get(bucket, "large") == before
    assert s3once("push", *PARTS, "--if-changed=replace", tree, f"s3://{bucket}").code == 0
    s3.assert_same(tree, bucket)


def test_upload_that_was_to_replace_an_object_with_a_customers_key(s3once, rgw, bucket, tree, tmp_path):
    """S3 says only to those with the key (SSE-C) which version the object is."""
    key = tmp_path / "key"
    key.write_bytes(bytes(range(32)))
    push = ["push", *PARTS, tree, f"s3://{bucket}", "--sse-c-key-file", key]
    with Proxy(rgw, "s3", tmp_path / "proxy", tls=True) as proxy:
        s3once.environment |= {"AWS_ENDPOINT_URL_S3": proxy.endpoint, "AWS_CA_BUNDLE": str(proxy.ca)}
        assert s3once(*push).code == 0
        (tree / "large").write_bytes(bytes(11 * MIB))
        proxy.add(faults.kill_after, "UploadPart", nth=2)
        assert s3once.start(*push, "--if-changed=replace").wait().code in (1, -9)
        proxy.clear()
        assert rgw.uploads(bucket)
        run = gc(s3once, bucket, "--sse-c-key-file", key)
        assert run.code == 0 and end(run) == {"aborted": 1} and not rgw.uploads(bucket), run
        listings = [{name.lower() for name in each.headers} for each in proxy.history if each.kind == "ListParts"]
        assert listings and all("x-amz-server-side-encryption-customer-key" in each for each in listings)


@SQLITE
def test_upload_under_the_suffix_that_it_was_begun_with(s3once, s3, bucket, tree, marks, killed):
    """A run that compresses otherwise has claimed the file since, and has not come to abort it."""
    killed("--compress", "zstd")
    mark = killed("--compress", "gzip", fault=faults.kill_before, kind="AbortMultipartUpload", nth=1)
    assert (mark["claim_suffix"], mark["upload_suffix"]) == (".gz", ".zst"), mark
    run = gc(s3once, bucket)
    assert run.code == 0 and end(run) == {"aborted": 1} and not s3.uploads(bucket), run
    assert marks_of(marks)["large"]["claim_suffix"] == ".gz"  # the last claim was for that object


@pytest.mark.parametrize("marks", ["dynamodb"], indirect=True)
def test_silent_session_is_waited_for(s3once, s3, bucket, tree, marks, killed):
    """It belongs to another process namespace, so only its lease shows that it is over."""
    killed(elsewhere=True)
    run = gc(s3once, bucket)
    assert run.code == 0 and end(run) == {"aborted": 1} and not s3.uploads(bucket), run


@BOTH
def test_live_upload_stays(s3once, s3, bucket, tree, marks, s3_wire):
    """Its session renews its lease, so that it is left alone however old its mark is."""
    rule = s3_wire.add(faults.hold_request, "UploadPart", nth=2)
    running = s3once.start("push", *PARTS, tree, f"s3://{bucket}")
    assert rule.reached.wait(60)
    row = marks_of(marks)["large"]
    marks.change(row, "at", int(row["at"]) - 30 * DAY)
    run = gc(s3once, bucket, "--keep-marks", "1d")
    assert run.code == 0 and end(run) == {"kept": 1}, run
    assert told(run, "kept")[0]["text"] == "its uploader lives", run
    rule.released.set()
    assert running.wait().code == 0
    s3.assert_same(tree, bucket)


@SQLITE
def test_upload_that_gc_could_not_abort_keeps_its_age(s3once, s3, bucket, tree, marks, killed, s3_wire):
    """So that the same command does it the next time, and no other --keep-uploads is needed; also if it was killed."""
    row = killed()
    marks.change(row, "at", int(row["at"]) - 30 * DAY)
    s3_wire.add(faults.answer(403, "AccessDenied"), "AbortMultipartUpload")
    run = s3once("gc", "--json", f"s3://{bucket}")
    assert run.code == 1 and end(run) == {"failed": 1} and s3.uploads(bucket), run
    assert marks_of(marks)["large"]["at"] == int(row["at"]) - 30 * DAY
    s3_wire.add(faults.kill_before, "AbortMultipartUpload")
    assert s3once("gc", "--json", f"s3://{bucket}").code == -9
    run = s3once("gc", "--json", f"s3://{bucket}")
    assert run.code == 0 and end(run) == {"aborted": 1} and not s3.uploads(bucket), run


@SQLITE
@pytest.mark.parametrize("kind", ["HeadObject", "ListParts", "AbortMultipartUpload"])
def test_killed_itself(s3once, s3, bucket, tree, marks, killed, s3_wire, kind):
    """Before and after each of its requests: the next gc, or the next run, goes on."""
    killed()
    for fault in (faults.kill_before, faults.kill_after):
        rule = s3_wire.add(fault, kind)
        run = gc(s3once, bucket)
        s3_wire.clear()
        assert run.code == -9 and rule.fired == 1, run
        mark = marks_of(marks)["large"]
        assert mark["state"] == "claimed" and mark["upload"], mark
    run = gc(s3once, bucket)
    assert run.code == 0 and end(run) == {"aborted": 1} and not s3.uploads(bucket), run
    assert s3once("push", *PARTS, tree, f"s3://{bucket}").code == 0
    s3.assert_same(tree, bucket)


@SQLITE
def test_stopped(s3once, bucket, marks, killed, s3_wire):
    """It says how far it came, and that it was stopped."""
    killed()
    rule = s3_wire.add(faults.hold_request, "HeadObject")
    running = s3once.start("gc", "--keep-uploads", "0", f"s3://{bucket}")
    assert rule.reached.wait(60), running.output()
    running.popen.send_signal(signal.SIGTERM)
    run = running.wait()
    rule.released.set()
    assert run.code == 143 and run.out.startswith("aborted uploads: 0, "), run


@pytest.mark.parametrize("marks", ["dynamodb"], indirect=True)
def test_stopped_when_all_is_done(s3once, s3, bucket, marks, killed, dynamodb_wire):
    """A signal that comes while it ends its own session, after that of the killed run, has stopped nothing."""
    killed()
    rule = dynamodb_wire.add(faults.hold_request, "UpdateItem:end", nth=2)
    running = s3once.start("gc", "--keep-uploads", "0", f"s3://{bucket}")
    assert rule.reached.wait(60), running.output()
    running.popen.send_signal(signal.SIGTERM)
    rule.released.set()
    run = running.wait()
    assert run.code == 0 and "\naborted uploads: 1, " in run.out and not s3.uploads(bucket), run


def old_marks(marks, bucket, n):
    """Copies of the only mark, under many keys, and all of them last changed a month ago."""
    with packed_items.connect(marks.path) as database:
        ((pk, doc),) = database.execute("SELECT pk, doc FROM items WHERE pk LIKE ?", (f"%/{bucket}#0",)).fetchall()
        mark = packed_items.unpack(doc)
        mark["at"]["N"] = str(int(mark["at"]["N"]) - 30 * DAY)
        rows = [(pk, f"old/{number:06}", packed_items.pack(mark)) for number in range(n)]
        database.executemany("INSERT INTO items(pk, sk, doc) VALUES(?, ?, ?)", rows)
    database.close()  # which writes the log back


@SQLITE
def test_sqlite_file_shrinks(s3once, s3, bucket, tmp_path, marks):
    tree = make_tree(tmp_path / "small", {"new": b"new"})
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    old_marks(marks, bucket, 10000)
    before = os.path.getsize(marks.path)
    run = gc(s3once, bucket, "--keep-marks", "10d")
    assert run.code == 0 and end(run) == {"forgotten": 10000}, run
    assert marks_of(marks).keys() == {"new"}
    after = os.path.getsize(marks.path)
    assert after < 200_000 < 2_000_000 < before, (before, after)
    assert (run.events[-1]["file_bytes_before"], run.events[-1]["file_bytes"]) == (before, after), run


@SQLITE
def test_file_of_an_earlier_version_shrinks(s3once, s3, bucket, tmp_path, marks):
    """It was made without auto_vacuum: it is written anew once."""
    tree = make_tree(tmp_path / "small", {"new": b"new"})
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    with sqlite3.connect(marks.path, isolation_level=None) as database:
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("PRAGMA auto_vacuum = NONE")
        database.execute("VACUUM")
    old_marks(marks, bucket, 5000)
    before = os.path.getsize(marks.path)
    assert gc(s3once, bucket, "--keep-marks", "10d").code == 0
    assert os.path.getsize(marks.path) < 200_000 < 1_000_000 < before


@BOTH
def test_old_marks(s3once, s3, bucket, tmp_path, marks):
    """Done and failed ones that have not changed for long, and claims of sessions that are over; others stay."""
    names = ("done", "failed", "new", "claimed")
    tree = make_tree(tmp_path / "small", {name: name.encode() for name in names})
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    for name in names:
        row = marks_of(marks)[name]
        marks.change(row, "at", int(row["at"]) - 30 * DAY)
        if name in ("failed", "claimed"):
            marks.change(row, "state", name)
    marks.change(marks_of(marks)["new"], "at", int(marks_of(marks)["new"]["at"]) + 30 * DAY)
    run = gc(s3once, bucket, "--keep-marks", "10d")
    assert run.code == 0 and end(run) == {"forgotten": 3}, run
    left = {key: mark["state"] for key, mark in marks_of(marks).items()}
    if marks.kind == "sqlite":
        assert left == {"new": "done"}
    else:
        assert left == {"new": "done", "done": "forgotten", "failed": "forgotten", "claimed": "forgotten"}
        row = marks_of(marks)["done"]
        marks.change(row, "at", int(row["at"]) - 8 * DAY)
        assert end(gc(s3once, bucket)) == {}  # what the table's time to live would remove
        assert "done" not in marks_of(marks)
    run = s3once("push", "--json", tree, f"s3://{bucket}")
    assert run.code == 0 and counts(run) == {"adopted": 3, "skipped": 1}, run


@SQLITE
def test_damaged_marks_are_listed(s3once, s3, bucket, tmp_path, marks):
    tree = make_tree(tmp_path / "small", {"a": b"a", "b": b"b"})
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    marks.change(marks_of(marks)["a"], "state", "resting")
    run = s3once("gc", f"s3://{bucket}")
    assert run.code == 1 and run.out.startswith(f"damaged: s3://{bucket}/a\n"), run
    assert marks_of(marks)["a"]["state"] == "resting"


def test_bad_inputs(s3once, s3, bucket):
    for arguments, words in (
        ((), "something is missing: give s3://BUCKET[/PREFIX] | --job JOB"),
        ((f"s3://{bucket}", "s3://other"), "'s3://other' is too much: it takes s3://BUCKET[/PREFIX] | --job JOB"),
        (("photos",), "photos"),
        (("--keep-marks", "0", f"s3://{bucket}"), "keep-marks"),
        (("--keep-uploads", "long", f"s3://{bucket}"), "long"),
    ):
        run = s3once("gc", *arguments)
        assert run.code == 2 and words in run.err, run
    run = s3once("gc", f"s3://{bucket}")
    assert run.code == 3 and "there are no marks at" in run.err, run


@pytest.mark.parametrize("marks", ["sqlite"], indirect=True)
def test_a_bucket_or_prefix_of_which_the_marks_know_nothing(s3once, s3, bucket, marks, tmp_path):
    assert s3once("push", make_tree(tmp_path / "tree", {"a": 1}), f"s3://{bucket}/web1").code == 0
    for url in (f"s3://{bucket}-typo", f"s3://{bucket}/wbe1"):
        run = s3once("gc", url)
        assert run.code == 1 and f"know of nothing in {url}" in run.err, run
    assert s3once("gc", f"s3://{bucket}/web1").code == 0
