"""Bugs found by the matrix and the other tests of this folder, each as its smallest case."""

import copy
import time

import pytest

from tests.faults import faults
from tests.faults.scenarios import LARGE
from tests.faults.stage import PART, Stage, cont
from tests.system.harness import wait_until

BROKEN = faults.answer(500, "InternalError")
SLOW = faults.delay_reply(2)


@pytest.fixture
def stage(arenas, tmp_path):
    with Stage(tmp_path / "stage", arenas()) as stage:
        yield stage
        stage.finish()


@pytest.mark.parametrize("kind", ["CreateMultipartUpload", "CompleteMultipartUpload"])
def test_an_answer_that_cannot_be_read_fails_no_file(stage, kind):
    stage.write("large", LARGE)
    rule = stage.s3.add(faults.garble_reply, kind)
    assert stage.push().code == 0
    assert rule.fired == 1


def test_a_record_of_an_upload_that_comes_while_the_mark_is_taken_over(stage):
    """The new owner takes what it names, and is not fenced by it."""
    stage.write("large", LARGE)
    late = stage.dynamodb.add(faults.hold_killed, "UpdateItem:upload")
    assert stage.push().code == -9
    rule = stage.dynamodb.add(faults.hold_request, "UpdateItem:take")
    run = stage.start()
    assert rule.reached.wait(60)
    late.released.set()
    wait_until(lambda: "upload" in stage.marks()[stage.key("large")], 30)
    rule.released.set()
    assert stage.ended(run).code == 0
    assert late.fired == rule.fired == 1


def test_an_upload_that_gets_on_is_not_given_up(stage):
    """One part fails, and another one much later, for longer than anything that does not get on is tried."""
    stage.write("large", 8 * PART)
    for part, fault in ((2, BROKEN), (4, SLOW), (5, SLOW), (6, SLOW), (7, BROKEN)):
        stage.s3.add(fault, "UploadPart", where=lambda record, part=part: record.operation.part == part)
    run = stage.push("--give-up-after", "4s", "--lease", "1h", "--request-timeout", "9s", concurrency=1, attempts=1)
    assert run.code == 0, run


def test_waiting_for_others_is_not_being_tried(stage):
    """A file that failed waits until the others are through: only then it is tried again, and may fail once more."""
    for name in "abcde":
        stage.write(name, 10)
    stage.s3.add(BROKEN, "PutObject", where=lambda record: record.operation.key == stage.key("a"), times=2)
    for name in "bcde":
        stage.s3.add(SLOW, "PutObject", where=lambda record, name=name: record.operation.key == stage.key(name))
    run = stage.push("--give-up-after", "5s", "--lease", "1h", "--request-timeout", "9s", concurrency=1, attempts=1)
    assert run.code == 0, run


def test_a_host_that_sleeps_for_longer_than_anything_is_waited_for(stage):
    """The marks answer when it wakes up: the lease is ours again."""
    for number in range(30):
        stage.write(f"f{number:02}", 10)
    rule = stage.s3.add(faults.stop_after, "PutObject", nth=5)
    run = stage.start()  # lease 2 s, given up after 2 s
    assert rule.reached.wait(60)
    begun = time.monotonic()
    wait_until(lambda: time.monotonic() - begun > 5, 30)
    cont(run)
    rule.released.set()
    assert stage.ended(run).code == 0


def test_an_upload_over_which_an_object_came_and_went(arenas, tmp_path):
    """AWS never completes it: 409 each time. Another upload is begun, and this one leaves no parts behind."""
    with Stage(tmp_path / "stage", arenas(), behaves="aws") as stage:
        stage.write("large", LARGE)
        rule = stage.s3.add(faults.hold_request, "CompleteMultipartUpload")
        run = stage.start(attempts=1)
        assert rule.reached.wait(60)
        other = copy.copy(stage.arena.s3)
        other.endpoint = stage.s3.endpoint
        path = f"/{stage.arena.bucket}/{stage.key('large')}"
        assert other.request("PUT", path, {}, b"of another program")[0] == 200
        assert other.request("DELETE", path)[0] == 204
        rule.released.set()
        assert stage.ended(run).code == 0
        answers = [record.answered for record in stage.s3.history if record.kind == "CompleteMultipartUpload"]
        assert answers == [409, 200]
        stage.arena.s3.assert_same(stage.tree, stage.arena.bucket, stage.prefix)
        assert not stage.arena.s3.uploads(stage.arena.bucket, stage.prefix)


def test_an_upload_that_vanishes_before_complete_is_begun_again(stage):
    """RGW answers Complete of an aborted upload with 500, for ever."""
    stage.write("large", LARGE)
    rule = stage.s3.add(faults.upload_gone, "CompleteMultipartUpload")
    assert stage.push(attempts=3).code == 0
    assert rule.fired == 1


@pytest.mark.parametrize("wire, kind", [("dynamodb", "GetItem:mark"), ("s3", "HeadBucket")])
def test_a_version_that_another_run_has_sent_is_not_sent_again(arenas, tmp_path, wire, kind):
    """A run has found a file and waits for an answer. Meanwhile the file changes, and another run sends what it is now."""
    with Stage(tmp_path / "stage", arenas(), behaves="aws") as stage:
        stage.write("a", 10)
        assert stage.push().code == 0
        stage.write("a", 20)
        rule = getattr(stage, wire).add(faults.hold_request, kind)
        run = stage.start("--if-changed=replace", "--request-timeout", "60s", "--give-up-after", "60s")
        assert rule.reached.wait(60)
        stage.write("a", 30)
        assert stage.push("--if-changed=replace").code == 0
        rule.released.set()
        assert stage.ended(run).code == 0
        writes = [record.kind for record in stage.s3.history + stage.dynamodb.history if record.answered == 200]
        assert writes.count("PutObject") == writes.count("UpdateItem:done") == 2, writes
        stage.finish()
