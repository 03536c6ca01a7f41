"""A service goes away. If it stays away, the run says so and ends; if it comes back in time, no file fails."""

import pytest

from tests.faults import faults
from tests.faults.scenarios import LARGE
from tests.faults.stage import Stage


@pytest.fixture
def stage(arenas, tmp_path):
    with Stage(tmp_path / "stage", arenas()) as stage:
        yield stage
        stage.finish()


@pytest.mark.parametrize("how", [faults.answer(500, "InternalServerError"), faults.hang], ids=["errors", "silence"])
def test_store_that_never_comes_back(stage, how):
    for number in range(20):
        stage.write(f"f{number:02}", 10)
    stage.dynamodb.add(how, times=None, where=lambda record: record.number > 12)
    result = stage.push()
    assert result.code == 3 and "nothing has moved for" in result.err and "heartbeats fail: " in result.err, result


def test_store_that_answers_with_errors_from_some_time_on(stage):
    """Its lease is long, so that no heartbeat shows it before the files do."""
    for number in range(20):
        stage.write(f"f{number:02}", 10)
    stage.dynamodb.add(faults.answer(500, "InternalServerError"), times=None, where=lambda record: record.number > 12)
    result = stage.push("--lease", "1h", "--request-timeout", "60s", "--give-up-after", "3s", attempts=1)
    assert result.code == 3 and "nothing has moved for" in result.err, result
    stage.dynamodb.clear()


@pytest.mark.parametrize(("kind", "size"), [("PutObject", 10), ("CreateMultipartUpload", LARGE)])
def test_connections_are_reset_before_anything_was_stored(stage, kind, size):
    for number in range(3):
        stage.write(f"f{number}", size)
    refused = stage.s3.add(faults.refuse, kind, times=16)
    result = stage.push("--give-up-after", "5m", attempts=1)
    assert result.code == 0 and refused.fired == 16, result


def test_server_that_is_not_s3_is_not_waited_for(stage):
    stage.write("f", LARGE)
    garbled = stage.s3.add(faults.garble_reply, "CreateMultipartUpload", times=None)
    result = stage.push("--give-up-after", "5m")
    assert result.code == 1 and "is not what S3 answers: check the endpoint" in result.err, result
    assert "will be retried later" not in result.err and garbled.fired
