"""Wall clocks that step, and hosts that sleep: ownership goes by elapsed time that counts both right."""

import struct
import time

import pytest

from tests.faults import faults
from tests.faults.preloads import faketime, preload_library, preloaded
from tests.faults.scenarios import LARGE
from tests.faults.stage import LEASE, Stage
from tests.system.harness import wait_until

HOUR = 3600


@pytest.fixture
def stage(arenas, tmp_path):
    with Stage(tmp_path / "stage", arenas()) as stage:
        yield stage


def ends_of(stage, session):
    """The times that somebody ended this session's row."""
    return [
        record.took_effect
        for record in stage.dynamodb.history
        if record.kind == "UpdateItem:end" and record.operation.session == session and record.took_effect
    ]


def session_of(stage, pid):
    records = [r for r in stage.dynamodb.history if r.kind == "PutItem:session" and r.pid == pid]
    assert len(records) == 1
    return records[0].operation.session


class Clock:
    """A wall clock of libfaketime's: step(seconds) moves it for all who use it."""

    def __init__(self, stage):
        self.file = stage.folder / "clock"
        self.step(0)
        self.environment = preloaded(
            stage.program, faketime(), FAKETIME_TIMESTAMP_FILE=self.file, FAKETIME_NO_CACHE=1, DONT_FAKE_MONOTONIC=1
        )

    def step(self, seconds):
        fresh = self.file.with_suffix(".new")
        fresh.write_text(f"{seconds:+}\n")
        fresh.rename(self.file)


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
@pytest.mark.parametrize("whose", ["holder", "observer"])
def test_a_step_of_the_wall_clock_changes_no_ownership(stage, seconds, whose):
    stage.write("large", LARGE)
    clock = Clock(stage)
    rule = stage.s3.add(faults.hold_request, "UploadPart", nth=2)
    patient = ["--request-timeout", "60s"]
    holder = stage.start(*patient, env=clock.environment if whose == "holder" else None)
    assert rule.reached.wait(60), holder.result(None)
    observer = stage.start(*patient, elsewhere=True, env=clock.environment if whose == "observer" else None)
    wait_until(lambda: any(r.kind == "GetItem:session" for r in stage.dynamodb.history), 60, "the observer's first look")
    clock.step(seconds)
    beats = sum(r.kind == "UpdateItem:heartbeat" for r in stage.dynamodb.history)
    deadline = time.monotonic() + 2 * LEASE
    wait_until(lambda: time.monotonic() > deadline, 60)
    assert sum(r.kind == "UpdateItem:heartbeat" and bool(r.took_effect) for r in stage.dynamodb.history) > beats
    session = session_of(stage, rule.records[0].pid)
    assert ends_of(stage, session) == [], "taken over from a living holder"
    rule.released.set()
    assert stage.ended(holder).code == 0
    assert stage.ended(observer).code == 0
    assert len(ends_of(stage, session)) == 1  # its own
    stage.finish()


@pytest.mark.parametrize("seconds", [HOUR, -HOUR, 30 * 24 * HOUR])
def test_a_clock_that_is_wrong_from_the_start(stage, seconds):
    stage.write("a", 1000)
    stage.write("large", LARGE)
    clock = Clock(stage)
    clock.step(seconds)
    stage.s3.check_signature = False
    result = stage.push(env=clock.environment)
    assert result.code == 0, result
    row = next(item for item in stage.arena.dynamodb.items(stage.arena.table) if item["pk"] == "session#" + session_of(stage, stage.s3.history[0].pid))
    week = 7 * 24 * HOUR
    assert abs(int(row["expires"]) - week - time.time()) < HOUR / 2, "expires by the wrong clock"
    stage.finish()


@pytest.mark.parametrize("asleep, sent", [(0, True), (60, False)])
def test_suspend_counts_toward_the_lease(stage, tmp_path, asleep, sent):
    """The clock that counts suspend leaps while no heartbeat gets through: nothing becomes visible until one does."""
    stage.write("large", LARGE)
    ahead = tmp_path / "ahead"
    ahead.write_bytes(struct.pack("q", 0))
    part = stage.s3.add(faults.hold_request, "UploadPart", nth=3)
    options = ["--request-timeout", "30s", "--lease", "20s"]
    library = preload_library()
    push = ["push", *options, "--part-size", "5MiB", "--concurrency", "2"]
    target = f"s3://{stage.arena.bucket}/{stage.prefix}"
    env = preloaded(stage.program, library, S3ONCE_TEST_BOOTTIME=ahead)
    running = stage.program.start(*push, stage.tree, target, env=env)
    assert part.reached.wait(60), running.result(None)
    silence = stage.dynamodb.add(faults.hang, "UpdateItem:heartbeat", times=None)
    wait_until(lambda: silence.fired, 60, "a heartbeat that hangs")
    ahead.write_bytes(struct.pack("q", asleep))
    part.released.set()

    def completes():
        return [r for r in stage.s3.history if r.kind == "CompleteMultipartUpload"]

    if sent:
        wait_until(completes, 60, "Complete")
    else:
        deadline = time.monotonic() + 3
        wait_until(lambda: time.monotonic() > deadline)
        assert not completes(), "sent after the lease had run out"
    stage.dynamodb.clear()
    result = stage.ended(running)
    assert result.code in ((0,) if sent else (0, 5)), result
    stage.finish()
