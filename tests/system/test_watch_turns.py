"""`s3once watch` while a pass takes long: what comes to rest meanwhile does not wait for its end."""

import asyncio
import contextlib
import os
import threading
import time
from collections import Counter

import pytest

from tests.system.harness import make_tree, wait_until
from tests.system.pushing import told
from tests.system.watching import Watched

BULK = 60
MIB = 1 << 20


def make_old(folder, tree):
    """Files that have rested for long."""
    make_tree(folder, tree)
    for name in tree:
        os.utime(folder / name, (1, 1))


@pytest.fixture
def watched(s3once, bucket, tmp_path):
    return Watched(s3once, bucket, tmp_path)


def slow_until(wire, key, seconds=0.3):
    """Uploads take long until this object is there, so that the bulk is not over before it unless it gives way."""
    there = False

    async def slow(x, rule):
        nonlocal there
        reply = await x.forward()
        x.fire(rule)
        there = there or (x.record.kind == "PutObject" and x.record.operation.key == key)
        if not there and x.record.kind in ("PutObject", "UploadPart"):
            await asyncio.sleep(seconds)
        await x.answer(reply)

    wire.add(slow, times=None)


def stored(wire, kind="PutObject"):
    return [each.operation.key for each in wire.history if each.kind == kind and each.took_effect]


def assert_in_between(wire, names, late):
    """Each once, and the late one before the last of the bulk."""
    order = stored(wire)
    assert Counter(order) == Counter(f"p/{name}" for name in [*names, late])
    assert order.index(f"p/{late}") < len(order) - 1, order


@pytest.mark.parametrize("late", ["z/late", "bulk/zz-late"])
@pytest.mark.parametrize("begins", ["whole", "some"])
def test_a_late_file_does_not_wait_for_a_bulk(watched, s3, s3_wire, bucket, begins, late):
    """The bulk is a full scan or a folder that was moved in; the file is in another folder or in the same one. Giving way is not reported as a failure."""
    watched.write("concurrency = 2", json="no")
    names = [f"bulk/{i:03}" for i in range(BULK)]
    make_old(watched.tree, {"z/first": 10})
    if begins == "some":
        watched.start()
        watched.manager.pass_with(files=1)
    slow_until(s3_wire, f"p/{late}")
    make_old(watched.folder, {name: 10 for name in names})
    (watched.folder / "bulk").rename(watched.tree / "bulk")
    if begins == "whole":
        watched.begin()
    wait_until(lambda: any("bulk" in key for key in stored(s3_wire)), 60, "the bulk")
    watched.rename_in(late, 10)
    figures = watched.manager.pass_with(files=BULK + 2)
    assert figures["failed"] == 0 and figures["full"] == 1, figures
    assert_in_between(s3_wire, ["z/first", *names], late)
    run = watched.stop()
    assert run.code == 0 and "turn" not in run.err and "error" not in run.err, run
    s3.assert_same(watched.tree, bucket, "p")


def test_a_job_does_not_wait_for_another_one(watched, s3once, s3, s3_wire, bucket):
    """Its first pass, too; and what was begun is not begun anew."""
    watched.write("concurrency = 2")
    names = [f"bulk/{i:03}" for i in range(BULK)]
    make_old(watched.tree, {name: 10 for name in names})
    other = watched.folder / "other-tree"
    make_old(other, {"late": 10})
    file = watched.folder / "other.conf"
    file.write_text(f"source = {other}\ntarget = s3://{bucket}/p\n")
    slow_until(s3_wire, "p/late")
    watched.begin(file)
    watched.manager.pass_with(files=BULK + 1, full=2, failed=0)
    assert_in_between(s3_wire, names, "late")
    assert watched.stop().code == 0


@contextlib.contextmanager
def written_to(path):
    """A log that a program opens, appends to and closes all the time. Yields the gaps between these times, in seconds."""
    gaps, over = [], threading.Event()

    def write():
        last = time.monotonic()
        while not over.wait(0.05):
            with open(path, "a") as file:
                file.write("line\n")
            now = time.monotonic()
            gaps.append(now - last)
            last = now

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield gaps
    finally:
        over.set()
        writer.join()


def test_a_log_that_never_rests_ends_no_pass(watched, s3, s3_wire, bucket):
    """There is nothing to upload of it, so a pass that takes long goes on; and it goes up when it rests."""
    watched.write("concurrency = 2", json="no", min_age="1500ms")
    names = [f"bulk/{i:03}" for i in range(2 * BULK)]
    make_old(watched.tree, {name: 10 for name in names})
    slow_until(s3_wire, "p/never", seconds=0.1)
    with written_to(watched.tree / "app.log") as gaps:
        watched.begin("-v")
        watched.manager.pass_with(files=2 * BULK, full=1)
        if max(gaps) < 1.4:  # else the host let it rest
            assert watched.said("have their turn") == 0
            assert "p/app.log" not in stored(s3_wire)
    watched.manager.pass_with(files=2 * BULK + 1)
    assert watched.stop().code == 0
    s3.assert_same(watched.tree, bucket, "p")


def test_parts_are_not_sent_again(watched, s3, s3_wire, bucket):
    """A large file goes on where it was, in the same upload."""
    watched.write("part-size = 5MiB", "concurrency = 1")
    make_old(watched.tree, {"large": 80 * MIB})
    slow_until(s3_wire, "p/late", seconds=1)
    watched.begin()
    wait_until(lambda: "p/large" in stored(s3_wire, "UploadPart"), 60, "a part")
    watched.rename_in("late", 10)
    watched.manager.pass_with(files=2, failed=0)
    parts = [each.operation.part for each in s3_wire.history if each.kind == "UploadPart" and each.took_effect]
    assert sorted(parts) == list(range(1, 17)), parts
    order = [each.kind for each in s3_wire.history if each.took_effect and (each.kind == "PutObject" or each.kind.endswith("Upload"))]
    assert order == ["CreateMultipartUpload", "PutObject", "CompleteMultipartUpload"], order
    s3.assert_same(watched.tree, bucket, "p")


def test_failed_file_is_reported_once(watched, s3once, s3, s3_wire, bucket):
    """The full scan has failed when it is over, and not each time that it gave way; -v says that it did."""
    watched.write("concurrency = 2", json="no", metrics=watched.folder / "watch.prom")
    names = [f"bulk/{i:03}" for i in range(BULK)]
    make_old(watched.tree, {name: 10 for name in names})
    bad = os.fsencode(watched.tree) + b"/bulk/000\xff"
    os.close(os.open(bad, os.O_CREAT | os.O_WRONLY))
    os.utime(bad, (1, 1))
    slow_until(s3_wire, "p/never")
    watched.begin("-v")
    wait_until(lambda: stored(s3_wire), 60, "the bulk")
    watched.rename_in("late", 10)
    wait_until(lambda: "p/late" in stored(s3_wire), 60, "the late file")
    prom = watched.folder / "watch.prom"
    wait_until(prom.exists, 60, "the metrics of its pass")
    # What is not all in S3 is no success, and what is not over is no failure.
    assert "s3once_last_success_timestamp_seconds{" not in prom.read_text() and 's3once_last_run_exit_status{' in prom.read_text()
    (job,) = told(s3once("fleet", "--json"), "job")
    assert not job["failed"] and not job["succeeded"] and job["fine"], job
    s3_wire.clear()
    figures = watched.manager.pass_with(failed=1)
    assert figures["full"] == 1 and figures["files"] == BULK + 1, figures
    (job,) = told(s3once("fleet", "--json"), "job")
    assert job["failed"] and job["exit"] == 1, job
    assert watched.said("the name is not UTF-8, so it cannot be a key") == 1
    assert watched.said("have their turn") >= 1
