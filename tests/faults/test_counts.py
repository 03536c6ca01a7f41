"""The summary when answers are lost: what this run has sent counts as uploaded, however it learns that it arrived."""

import pytest

from tests.faults import faults
from tests.faults.scenarios import LARGE
from tests.faults.stage import Stage
from tests.system.pushing import counts, learn_conditions

PATIENT = ["--json", "--request-timeout", "30s", "--give-up-after", "30s", "--lease", "1h"]
APPLIED = faults.answer(500, "InternalServerError", applied=True)
FAILED = faults.answer(500, "InternalServerError")


@pytest.fixture
def stage(arenas, tmp_path):
    with Stage(tmp_path / "stage", arenas()) as stage:
        yield stage
        stage.finish()


# The first try of each of these fails as far as the run can see. It looks again after a second.
LOST = {
    "done": ("dynamodb", "UpdateItem:done", APPLIED),
    "done that did not arrive": ("dynamodb", "UpdateItem:done", FAILED),
    "claim": ("dynamodb", "PutItem:claim", APPLIED),
    "PUT": ("s3", "PutObject", APPLIED),
    "PUT that did not arrive": ("s3", "PutObject", FAILED),
    "Complete": ("s3", "CompleteMultipartUpload", APPLIED),
    "done, large": ("dynamodb", "UpdateItem:done", APPLIED),
}


@pytest.mark.parametrize("what", LOST)
def test_file_is_sent_once_after_a_lost_reply(stage, what):
    service, kind, fault = LOST[what]
    is_large = kind.startswith("Complete") or what.endswith("large")
    size = LARGE if is_large else 1000
    stage.write("a", size)
    rule = (stage.s3 if service == "s3" else stage.dynamodb).add(fault, kind)
    run = stage.push(*PATIENT, attempts=1)
    assert rule.fired == 1 and run.code == 0, run
    assert counts(run) == {"uploaded": 1} and run.events[-1]["bytes"] == size, run


def test_a_request_that_is_sent_again_is_refused_by_itself(stage):
    """The first one was applied, and its answer lost: If-None-Match refuses the second."""
    stage.write("a", 1000)
    learn_conditions(stage.program, stage.arena.bucket)
    for wire in (stage.s3, stage.dynamodb):
        wire.history.clear()
    rule = stage.s3.add(faults.answer(500, "InternalError", applied=True), "PutObject")
    run = stage.push(*PATIENT)
    assert rule.fired == 1 and run.code == 0 and counts(run) == {"uploaded": 1}, run
    assert [record.answered for record in stage.s3.history if record.kind == "PutObject"] == [500, 412]


def test_an_upload_of_another_run_is_finished_by_this_one(stage):
    """The object says who began its upload, but this run has made it visible."""
    stage.write("a", LARGE)
    killed = stage.s3.add(faults.kill_after, "UploadPart", nth=2)
    assert stage.push(*PATIENT, concurrency=1).code == -9 and killed.fired == 1
    rule = stage.s3.add(APPLIED, "CompleteMultipartUpload")
    run = stage.push(*PATIENT, attempts=1)
    assert rule.fired == 1 and run.code == 0 and counts(run) == {"uploaded": 1}, run


def test_objects_of_a_killed_run_are_not_sent_again(stage):
    """A run that takes a file over checks for its object first. If-None-Match would refuse the object, but only after its bytes were sent."""
    for name, size in (("small", 1000), ("large", LARGE)):
        stage.write(name, size)
        killed = stage.s3.add(faults.kill_after, "CompleteMultipartUpload" if size == LARGE else "PutObject")
        assert stage.push(*PATIENT, concurrency=1).code == -9 and killed.fired == 1
        before = len(stage.s3.history)
        run = stage.push(*PATIENT, concurrency=1)
        assert run.code == 0 and counts(run)["adopted"] == 1, run
        assert not [record for record in stage.s3.history[before:] if record.body_bytes], "only what S3 lacks is sent"


def test_object_of_another_uploader_is_adopted(stage):
    """Also if the answer to its done mark is lost."""
    body = stage.write("a", 1000).read_bytes()
    stage.arena.s3.client.put_object(Bucket=stage.arena.bucket, Key=stage.key("a"), Body=body)
    rule = stage.dynamodb.add(APPLIED, "UpdateItem:done")
    run = stage.push(*PATIENT, attempts=1)
    assert rule.fired == 1 and run.code == 0 and counts(run) == {"adopted": 1}, run


def test_reupload_sends_once(stage):
    """Nothing is sent again because the answer to the done mark is lost."""
    stage.write("a", 1000)
    assert stage.push(*PATIENT).code == 0
    before = len(stage.s3.history)
    rule = stage.dynamodb.add(APPLIED, "UpdateItem:done")
    run = stage.push(*PATIENT, "--reupload", attempts=1)
    assert rule.fired == 1 and run.code == 0, run
    assert sum(record.kind == "PutObject" for record in stage.s3.history[before:]) <= 1
