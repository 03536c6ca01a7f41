"""What the matrix and the other tests of this folder found, each as the least that shows it."""

import pytest

from tests.faults import faults
from tests.faults.scenarios import LARGE
from tests.faults.stage import Stage


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


def test_an_upload_that_vanishes_before_complete_is_begun_again(stage):
    """RGW answers Complete of an aborted upload with 500, for ever."""
    stage.write("large", LARGE)
    rule = stage.s3.add(faults.upload_gone, "CompleteMultipartUpload")
    assert stage.push("--retries", "2").code == 0
    assert rule.fired == 1


def test_a_silent_server_is_given_up_after_the_request_timeout(stage):
    """Once the body has gone out, the time that was allowed for the body is not waited for."""
    stage.write("file", 3 << 20)
    rule = stage.s3.add(faults.hang, "PutObject")
    assert stage.push("--request-timeout", "1s").code == 0
    first, second = [record for record in stage.s3.history if record.kind == "PutObject"]
    assert rule.fired == 1 and second.begun - first.begun < 25
