"""A failure of power takes what SQLite had not synced: marks of the last second (tests/faults/power.py)."""

import contextlib
import itertools
import os
import signal
import sqlite3
import subprocess

import pytest

from tests import packed_items
from tests.faults import faults
from tests.faults.checker import sqlite_marks
from tests.faults.power import PowerStage
from tests.faults.scenarios import LARGE
from tests.system.harness import wait_until
from tests.system.watching import Manager

FILES = 40


@contextlib.contextmanager
def reader_of(stage):
    """A process that keeps the marks open, so that no run is the last one to close them."""
    with contextlib.closing(sqlite3.connect(f"file:{stage.marks_file}?mode=ro", uri=True)) as reader:
        reader.execute("SELECT count(*) FROM items").fetchall()
        yield


@pytest.fixture
def stage(arenas, tmp_path):
    with PowerStage(tmp_path / "stage", arenas()) as stage:
        yield stage


@pytest.mark.parametrize("kill", [faults.kill_before, faults.kill_after])
def test_lost_marks_of_files(stage, kill):
    """Objects without a mark are found again. Files that have changed meanwhile replace them."""
    for n in range(FILES):
        stage.write(f"f{n}", 1000 + n)
    killed = stage.s3.add(kill, "PutObject", nth=FILES // 2)
    running = stage.start("--lease", "1m", concurrency=4)  # a heartbeat would sync them
    assert running.popen.wait(60) == -signal.SIGKILL and killed.fired == 1
    stage.settle()
    lost = stage.fail_power()
    sent = [record.begun for record in stage.s3.history if record.kind == "PutObject"]
    if sent[-1] < sent[0] + 1:  # else a sync came in between
        assert len(lost) > 4, "more than were under way"
    for n in range(0, FILES, 7):
        stage.write(f"f{n}", 2000 + n)
    stage.finish("--if-changed", "replace")


def test_a_change_that_the_failure_undid(arenas, tmp_path):
    """The file is again what it was before. The mark must not say so of the object, which was replaced."""
    with PowerStage(tmp_path / "stage", arenas(), behaves="aws") as stage:
        file = stage.write("f", 1000)
        body, times = file.read_bytes(), file.stat()
        assert stage.push().code == 0
        stage.write("f", 1000)
        killed = stage.s3.add(faults.kill_after, "PutObject")
        running = stage.start("--if-changed", "replace")
        assert running.popen.wait(60) == -signal.SIGKILL and killed.fired == 1
        stage.settle()
        stage.fail_power()
        file.write_bytes(body)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        stage.checker.note_version(stage.key("f"), body, times.st_mtime_ns)
        assert stage.push("--if-changed", "replace").code == 0


def test_a_compression_that_the_failure_undid(arenas, tmp_path):
    """A rotated log is not stored once more because it is no longer compressed."""
    with PowerStage(tmp_path / "stage", arenas(), behaves="aws") as stage:
        log = stage.tree / "app.log.1"
        log.write_bytes(b"a line\n" * 1000)
        subprocess.run(["gzip", log], check=True)
        killed = stage.s3.add(faults.kill_after, "PutObject")
        assert stage.start("--rotated").popen.wait(60) == -signal.SIGKILL and killed.fired == 1
        stage.settle()
        stage.fail_power()
        before = stage.arena.s3.objects(stage.arena.bucket, stage.prefix)
        subprocess.run(["gunzip", log], check=True)
        assert stage.start("--rotated").wait().code == 0
        assert stage.arena.s3.objects(stage.arena.bucket, stage.prefix) == before and len(before) == 1


def test_an_open_upload_is_not_lost(stage):
    """Its id was synced before its first part was sent, so that the next run goes on with it."""
    stage.write("large", LARGE)
    killed = stage.s3.add(faults.kill_after, "UploadPart")
    running = stage.start(concurrency=4)
    assert running.popen.wait(60) == -signal.SIGKILL and killed.fired == 1
    stage.settle()
    stage.fail_power()
    begun = [record for record in stage.s3.history if record.kind == "CreateMultipartUpload"]
    stage.finish()
    assert begun == [record for record in stage.s3.history if record.kind == "CreateMultipartUpload"]


def test_removed_file_has_a_mark(stage):
    """Before a file is removed, its mark is synced."""
    names = [f"f{n}" for n in range(12)]
    for name in names:
        stage.write(name, 1000)
    running = stage.start("--delete-after", concurrency=4, env={"S3ONCE_TEST_KILLED_AT": "20"})
    assert running.popen.wait(60) == -signal.SIGKILL
    stage.fail_power()
    removed = [name for name in names if not (stage.tree / name).exists()]
    marks = sqlite_marks(stage.marks_file)
    assert removed and all(marks[stage.key(name)]["state"] == "done" for name in removed)


def test_the_end_of_a_run_is_synced(stage):
    """Nothing is lost of a run that has said so, although it was not the last one to close the file."""
    stage.write("first", 1000)
    assert stage.push().code == 0
    for n in range(FILES):
        stage.write(f"f{n}", 1000)
    with reader_of(stage):
        result = stage.push(concurrency=4)
        assert result.code == 0 and stage.fail_power() == [], result
    stage.finish()


def test_a_service_under_load(stage):
    """Files come all the time, small ones and one in parts. When power is back, the service does what is left."""
    manager, job = Manager(stage.folder / "notify"), stage.folder / "job.conf"
    job.write_text(f"source = {stage.tree}\ntarget = s3://{stage.arena.bucket}/{stage.prefix}\nmin-age = 200ms\npart-size = 5MiB\ndrain = 1min\n")
    names = (f"f{n}" for n in itertools.count())

    def start():
        manager.forget()
        running = stage.program.start("watch", job, env=stage.environment(NOTIFY_SOCKET=manager.path))
        manager.next_line("READY=1")
        return running

    def sent(kind):
        return sum(record.kind == kind for record in stage.s3.history)

    def wait_under_load(condition):
        wait_until(lambda: stage.write(next(names), 1000) and condition(), 60)

    start()
    wait_under_load(lambda: sent("PutObject") > 5)
    stage.write("large", LARGE)
    wait_under_load(lambda: sent("UploadPart"))
    before = sent("PutObject")
    wait_under_load(lambda: sent("PutObject") > before + 5 and stage.has_not_synced())
    stage.kill_all()
    stage.settle()
    stage.fail_power()
    running = start()
    os.killpg(running.pid, signal.SIGTERM)
    result = running.wait()
    assert result.code == 0, result
    assert len(stage.arena.s3.objects(stage.arena.bucket, stage.prefix + "/")) == len(list(stage.tree.iterdir()))
    stage.finish()


@pytest.mark.parametrize("failure", ["at once", "after the next run"])
def test_each_sync_that_fails(arenas, tmp_path, failure):
    """The disk refuses one sync, whichever. The run does not say that all is well unless no mark can be lost, and the next run
    does not rely on what the kernel takes for written."""
    for n in itertools.count(1):
        with PowerStage(tmp_path / f"stage{n}", arenas()) as stage:
            stage.write("first", 1000)
            assert stage.push().code == 0
            for file in range(FILES):
                stage.write(f"f{file}", 1000 + file)
            with reader_of(stage):
                result = stage.push_over_failing_sync(n)
                if not result:
                    break
                if failure == "after the next run":
                    assert stage.push().code == 0
                lost = stage.fail_power()
            if result.code == 3:
                assert "marks.db: " in result.err and "check the disk" in result.err, result
            assert not lost or (result.code == 3 and failure == "at once"), (n, lost, result)
            stage.finish()
    assert n > 4


def test_a_mark_that_another_run_has_not_synced(stage):
    """Before a run removes a file, the mark that another run has just set is on the disk."""
    file, hung = stage.write("f", 1000), stage.folder / "hung"
    another = stage.write("another", 1000)
    waits = stage.s3.add(faults.hold_request, "PutObject", key=stage.key("f"))
    never_ends = stage.s3.add(faults.hold_request, "PutObject", key=stage.key(stage.write("last", 1000).name))
    patient = ["--lease", "1m", "--request-timeout", "1m"]  # a heartbeat would sync it
    first = stage.start(*patient, source=file, env={"S3ONCE_TEST_SYNC_HUNG": hung})
    assert waits.reached.wait(30)
    stage.start(*patient, "--delete-after")
    wait_until(lambda: not another.exists(), seconds=60)
    assert never_ends.reached.wait(30)
    hung.touch()
    waits.released.set()
    wait_until(lambda: not file.exists(), seconds=60)
    stage.fail_power()
    assert sqlite_marks(stage.marks_file)[stage.key("f")]["state"] == "done"
    assert first.popen.returncode == -signal.SIGKILL


def commits_of(log):
    """The write-ahead log up to each of its commits (https://www.sqlite.org/fileformat2.html#walformat)."""
    page_bytes = int.from_bytes(log[8:12], "big")
    for end in range(32 + 24 + page_bytes, len(log) + 1, 24 + page_bytes):
        frame = log[end - 24 - page_bytes :]
        if frame[8:16] == log[16:24] and int.from_bytes(frame[4:8], "big"):
            yield log[:end]


def witness_of(stage):
    """The key of the object by which the marks know the bucket, or None."""
    with contextlib.closing(packed_items.connect(stage.marks_file, only_read=True)) as marks:
        rows = marks.execute("SELECT doc FROM items WHERE pk LIKE 'bucket#%'").fetchall()
    return packed_items.unpack(rows[0][0]).get("last_key") if rows else None


def set_disk(stage, file, log):
    """Sets the content of the disk after the power cut."""
    stage.marks_file.write_bytes(file)
    stage.marks_file.with_name("marks.db-wal").write_bytes(log)
    stage.marks_file.with_name("marks.db-shm").unlink(missing_ok=True)


def test_power_fails_between_the_witness_and_the_first_mark(stage):
    """At whatever point the log ends, no mark says done without a witness; and with a witness alone, the next run does the rest."""
    for name in "abc":
        stage.write(name, 1000)
    killed = stage.s3.add(faults.kill_before, "PutObject", nth=3)
    assert stage.start("--lease", "1m", concurrency=1).popen.wait(60) == -signal.SIGKILL and killed.fired == 1
    stage.settle()
    file, log = stage.marks_file.read_bytes(), stage.marks_file.with_name("marks.db-wal").read_bytes()
    between = None
    for cut in commits_of(log):
        set_disk(stage, file, cut)
        done = [key for key, mark in sqlite_marks(stage.marks_file).items() if mark["state"] == "done"]
        witness = witness_of(stage)
        assert witness or not done, done
        if witness and not done:
            between = cut
    assert between and between != cut
    set_disk(stage, file, between)
    stage.finish()
