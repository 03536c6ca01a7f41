"""A host whose power may fail: all its processes are killed, and SQLite's write-ahead log is what was synced last."""

import os
import select
import shutil

from tests.faults.checker import sqlite_marks
from tests.faults.clients import descendants
from tests.faults.preloads import preload_library, preloaded
from tests.faults.stage import Stage


class PowerStage(Stage):
    """Its marks are in SQLite. Each run keeps a copy of what it has synced (S3ONCE_TEST_SYNCED of preload.c)."""

    def __init__(self, folder, arena, **how):
        super().__init__(folder, arena, store="sqlite", **how)

    def __enter__(self):
        super().__enter__()
        self.synced = self.folder / "synced"
        self.synced.touch()
        self.library = preload_library()
        return self

    def environment(self, **variables):
        return preloaded(self.program, self.library, S3ONCE_TEST_SYNCED=self.synced, **variables)

    def start(self, *options, env=None, **how):
        return super().start(*options, env=self.environment(**(env or {})), **how)

    def has_not_synced(self):
        """Whether something would be lost just now."""
        return any(self.synced.with_name("synced.dirty").read_bytes())

    def fail_power(self):
        """Leaves what the disk surely has. Returns the keys of the marks that were lost."""
        self.kill_all()
        log = self.marks_file.with_name("marks.db-wal")
        if not log.exists():
            return []
        before = sqlite_marks(self.marks_file)
        for name, kept in (("marks.db", self.marks_file), ("marks.db-wal", self.synced)):
            shutil.copy(kept, self.folder / name)  # a new file, for who has the old one open
            (self.folder / name).rename(self.marks_file.with_name(name))
        self.marks_file.with_name("marks.db-shm").unlink()
        self.synced.with_name("synced.dirty").unlink()
        after = sqlite_marks(self.marks_file)
        return [key for key in before if before[key] != after.get(key)]

    def push_over_failing_sync(self, n):
        """A run whose Nth sync of the log fails. None: it has fewer."""
        result = self.ended(self.start(concurrency=4, env={"S3ONCE_TEST_SYNC_FAILS": n}))
        return result if self.synced.with_name("synced.failed").exists() else None

    def kill_all(self):
        """Those in a namespace of their own may end a moment after the process that was started."""
        alive = [running for running in self.program.running if running.popen.poll() is None]
        inner = [os.pidfd_open(pid) for running in alive for pid in descendants(running.pid)]
        self.program.kill_all()
        for process in inner:
            select.select([process], [], [])
            os.close(process)
