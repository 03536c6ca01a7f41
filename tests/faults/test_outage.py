"""The mark store goes away and stays away: a run that cannot go on says so and ends."""

import pytest

from tests.faults import faults
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
    assert result.code == 3 and "the lease expired" in result.err and "heartbeats fail: " in result.err, result
