"""The claim of the next file travels with the done mark of the present one. Whatever happens to the request of both, and to the
client between that claim and the turn of its file, each file is sent once."""

from collections import Counter

import pytest

from tests.faults import faults, statements
from tests.faults.faults import named
from tests.faults.stage import Stage

FILES = [f"f{number}" for number in range(6)]
DONE, CLAIM = "UpdateItem:done", "PutItem:claim"
BATCH = "BatchExecuteStatement:marks"


@pytest.fixture(params=["dynamodb", "sqlite"])
def store(request):
    return request.param


@pytest.fixture
def stage(arenas, tmp_path, store):
    with Stage(tmp_path / "stage", arenas(), store=store) as stage:
        for name in FILES:
            stage.write(name, 10)
        yield stage
        stage.finish()


in_one_request = pytest.mark.parametrize("store", ["dynamodb"], indirect=True)


def has_both(record):
    return Counter(one.kind for one in record.statements) == {DONE: 1, CLAIM: 1}


def sent(stage):
    return Counter(record.operation.key for record in stage.s3.history if record.kind == "PutObject")


def states(stage):
    return {key: mark["state"] for key, mark in stage.marks().items()}


def assert_each_once(stage):
    assert sent(stage) == {stage.key(name): 1 for name in FILES}
    assert states(stage) == {stage.key(name): "done" for name in FILES}


def assert_killed(stage, rule):
    """One file is claimed, and nothing of it was sent; those before it are done."""
    run = stage.push(concurrency=1)
    assert run.code == -9 and rule.fired == 1, run
    *before, (claimed, state) = sorted(states(stage).items())
    assert state == "claimed" and before and {state for _, state in before} == {"done"}
    assert sent(stage) == {key: 1 for key, _ in before}, claimed


@in_one_request
def test_killed_when_both_are_written(stage):
    assert_killed(stage, stage.dynamodb.add(faults.kill_after, BATCH, where=has_both))
    run = stage.push(concurrency=1)
    assert run.code == 0, run
    assert_each_once(stage)


def test_killed_at_the_first_request_of_the_turn(stage):
    assert_killed(stage, stage.s3.add(faults.kill_before, "HeadObject", where=lambda record: record.operation.key == stage.key(FILES[1])))
    run = stage.push(concurrency=1)
    assert run.code == 0, run
    assert_each_once(stage)


def applied_alone(kind):
    """The statement of this kind is applied, the other one is not, and the reply is lost."""

    @named(f"{kind} alone")
    async def fault(x, rule):
        await statements.forward_some(x, lambda number, _: x.record.statements[number].kind == kind)
        x.reset()
        x.fire(rule)

    return fault


LOST = [
    faults.drop_reply,
    faults.drop_request,
    faults.cut_reply,
    faults.garble_reply,
    faults.hang_applied,
    faults.duplicate,
    faults.late_duplicate(0.2),
    applied_alone(DONE),
    applied_alone(CLAIM),
    statements.some_answered,
]


@in_one_request
@pytest.mark.parametrize("attempts", [1, 3], ids=["each alone", "both again"])
@pytest.mark.parametrize("fault", LOST, ids=lambda fault: getattr(fault, "name", None) or fault.__name__)
def test_the_reply_to_both_is_lost(stage, fault, attempts):
    """The request is sent again, and if it has no attempt left, each of the two writes alone."""
    rule = stage.dynamodb.add(fault, BATCH, where=has_both)
    run = stage.push("--json", concurrency=1, attempts=attempts)
    assert run.code == 0 and run.events[-1]["uploaded"] == len(FILES) and rule.fired == 1, run
    assert_each_once(stage)


@in_one_request
def test_every_reply_to_both_is_lost(stage):
    rule = stage.dynamodb.add(faults.drop_reply, BATCH, where=has_both, times=None)
    run = stage.push("--json", "--lease", "1m", "--give-up-after", "1m", concurrency=1)
    assert run.code == 0 and run.events[-1]["uploaded"] == len(FILES) and rule.fired > 1, run
    assert_each_once(stage)
