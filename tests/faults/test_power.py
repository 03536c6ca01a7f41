"""A failure of power takes what SQLite had not synced: marks of the last second. The process is killed, and its
write-ahead log is cut to what was synced last."""

import os
import shutil
import signal
import sqlite3
from contextlib import closing

import pytest

from tests.faults import faults
from tests.faults.checker import sqlite_marks
from tests.faults.preloads import build_preload, preloaded
from tests.faults.scenarios import LARGE
from tests.faults.stage import Stage

FILES = 40


class PowerStage(Stage):
    """Marks in SQLite, on a host whose power fails."""

    def __enter__(self):
        super().__enter__()
        self.synced = self.folder / "synced"
        self.library = build_preload(self.folder)
        return self

    def start_on_power(self, *options, **variables):
        env = preloaded(self.program, self.library, S3ONCE_TEST_SYNCED=self.synced, **variables)
        return self.start(*options, concurrency=4, env=env)

    def fail_power(self):
        """Leaves what the disk surely has. Returns the keys of the marks that were lost."""
        before = sqlite_marks(self.marks_file)
        folder, left = self.marks_file.parent, self.folder / "left"
        left.mkdir()
        for name in ("marks.db", "marks.db-wal"):
            shutil.copy(folder / name, left / name)
        os.truncate(left / "marks.db-wal", int(self.synced.read_text()))
        shutil.rmtree(folder)
        left.rename(folder)
        after = sqlite_marks(self.marks_file)
        return [key for key in before if before[key] != after.get(key)]


@pytest.fixture
def stage(arenas, tmp_path):
    with PowerStage(tmp_path / "stage", arenas(), store="sqlite") as stage:
        yield stage


@pytest.mark.parametrize("kill", [faults.kill_before, faults.kill_after])
def test_lost_marks_of_files(stage, kill):
    """What is in S3 without a mark is found again. Files that have changed meanwhile replace it."""
    for n in range(FILES):
        stage.write(f"f{n}", 1000 + n)
    killed = stage.s3.add(kill, "PutObject", nth=FILES - 5)
    running = stage.start_on_power()
    assert running.popen.wait(60) == -signal.SIGKILL and killed.fired == 1
    stage.settle()
    lost = stage.fail_power()
    assert len(lost) > 4  # more than were under way
    for n in range(0, FILES, 7):
        stage.write(f"f{n}", 2000 + n)
    stage.finish("--if-changed", "replace")


def test_an_open_upload_is_not_lost(stage):
    """Its id was synced before its first part was sent, so that the next run goes on with it."""
    stage.write("large", LARGE)
    killed = stage.s3.add(faults.kill_after, "UploadPart")
    running = stage.start_on_power()
    assert running.popen.wait(60) == -signal.SIGKILL and killed.fired == 1
    stage.settle()
    stage.fail_power()
    begun = [record for record in stage.s3.history if record.kind == "CreateMultipartUpload"]
    stage.finish()
    assert begun == [record for record in stage.s3.history if record.kind == "CreateMultipartUpload"]


def test_what_was_removed_has_a_mark(stage):
    """Before a file is removed, its mark is synced."""
    names = [f"f{n}" for n in range(12)]
    for name in names:
        stage.write(name, 1000)
    running = stage.start_on_power("--delete-after", S3ONCE_TEST_KILLED_AT=20)
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
    with closing(sqlite3.connect(stage.marks_file)) as reader:
        reader.execute("SELECT count(*) FROM items").fetchall()
        result = stage.ended(stage.start_on_power())
        assert result.code == 0 and stage.fail_power() == [], result
    stage.finish()
