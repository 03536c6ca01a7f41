"""An uploader that is paused at its worst moment, taken over, and wakes up: it changes nothing and says that it was fenced."""

import pytest

from tests.faults import faults
from tests.faults.conftest import note_case
from tests.faults.scenarios import LARGE
from tests.faults.stage import Stage, cont
from tests.system.harness import MIB
from tests.system.pushing import counts, told

REPLACE = ["--if-changed", "replace"]
MOMENTS = {
    "inside PUT": ("s3", faults.stop_inside, "PutObject", 1, 4 * MIB),
    "PUT under way": ("s3", faults.stop_before, "PutObject", 1, 1000),
    "PUT applied": ("s3", faults.stop_after, "PutObject", 1, 1000),
    "before a part": ("s3", faults.stop_before, "UploadPart", 1, LARGE),
    "between parts": ("s3", faults.stop_after, "UploadPart", 2, LARGE),
    "inside a part": ("s3", faults.stop_inside, "UploadPart", 3, LARGE),
    "before Complete": ("s3", faults.stop_before, "CompleteMultipartUpload", 1, LARGE),
    "Complete applied": ("s3", faults.stop_after, "CompleteMultipartUpload", 1, LARGE),
    "before the upload id is recorded": ("dynamodb", faults.stop_before, "UpdateItem:upload", 1, LARGE),
    "before done": ("dynamodb", faults.stop_before, "UpdateItem:done", 1, 1000),
    "before done, large": ("dynamodb", faults.stop_before, "UpdateItem:done", 1, LARGE),
}
PLACES = {"rgw": {}, "aws-like": {"behaves": "aws"}, "no conditions": {"behaves": "ignores", "honours": False}}
# Without conditions a changed file is beyond any client: docs/guarantees.md
CASES = [
    pytest.param(place, moment, changes, id=f"{place}-{moment}{'-changed' if changes else ''}")
    for place in PLACES
    for moment in MOMENTS
    for changes in (False, True)
    if not (changes and place == "no conditions")
]


def fenced_off(stage, first, let_go):
    """The first run goes on once let_go() was called, after another took its files over: it ends so, and changes nothing."""
    before = stage.arena.s3.objects(stage.arena.bucket, stage.prefix), stage.marks()
    let_go()
    result = stage.ended(first)
    assert result.code == 5, result
    stage.settle()
    assert (stage.arena.s3.objects(stage.arena.bucket, stage.prefix), stage.marks()) == before
    return result


def paused(first, rule):
    """Returns a function that lets the run continue that this rule has stopped."""

    def let_go():
        cont(first)
        rule.released.set()

    return let_go


@pytest.mark.parametrize("place, moment, changes", CASES)
def test_zombie(place, moment, changes, arenas, tmp_path):
    service, fault, kind, nth, size = MOMENTS[moment]
    passed = False
    try:
        with Stage(tmp_path / "stage", arenas(), **PLACES[place]) as stage:
            stage.write("a", size)
            proxy = stage.s3 if service == "s3" else stage.dynamodb
            rule = proxy.add(fault, kind, nth=nth)
            first = stage.start(*REPLACE)
            assert rule.reached.wait(60), f"the fault did not fire: {first.result(None)!r}"
            if changes:
                stage.write("a", size + 1)
            assert stage.push(*REPLACE, timeout=60).code == 0
            fenced_off(stage, first, paused(first, rule))
            stage.finish(*REPLACE)
            passed = True
    finally:
        note_case(suite="zombies", server=place, scenario=moment, fault=fault.__name__, operation=kind, passed=passed)


# At these it surely holds claims, so that it has to be taken over.
BATCHES = {
    "claims applied": (faults.stop_after, "PutItem:claim"),
    "before done": (faults.stop_before, "UpdateItem:done"),
}
PATIENT = ["--json", "--request-timeout", "30s", "--give-up-after", "30s"]
MANY = [*PATIENT, "--concurrency", "12"]


@pytest.mark.parametrize("moment", BATCHES)
def test_zombie_with_a_batch(moment, arenas, tmp_path):
    """Paused while several marks are in one request: who goes on has each file in one count, and sends none twice."""
    fault, kind = BATCHES[moment]
    files = 60  # more than a block
    with Stage(tmp_path / "stage", arenas(), latency=0.02) as stage:
        for number in range(files):
            stage.write(f"{number:02}", 100 + number)

        def is_meant(record):
            return any(statement.kind == kind for statement in record.statements)

        rule = stage.dynamodb.add(fault, "BatchExecuteStatement:marks", where=is_meant)
        first = stage.start(*MANY)
        assert rule.reached.wait(60), f"the fault did not fire: {first.result(None)!r}"
        second = stage.push(*MANY, timeout=60)
        assert second.code == 0, second
        fenced = fenced_off(stage, first, paused(first, rule))
        assert sum(counts(second, "uploaded", "adopted", "skipped").values()) == files, second
        sent = [event["key"] for run in (fenced, second) for event in told(run, "uploaded")]
        assert len(sent) == len(set(sent)) and counts(second, "failed") == counts(fenced, "failed") == {}, (fenced, second)
        stage.finish()


def test_taken_over_between_parts_while_it_goes_on(arenas, tmp_path):
    """It is not paused, but its heartbeats do not get through, and one of its parts is late."""
    with Stage(tmp_path / "stage", arenas()) as stage:
        stage.write("a", LARGE)
        late = stage.s3.add(faults.hold_request, "UploadPart", nth=2)
        first = stage.start(*PATIENT, concurrency=1)
        assert late.reached.wait(60)
        stage.dynamodb.add(faults.refuse, "UpdateItem:heartbeat", times=None, pid=first.pid)
        second = stage.push(*PATIENT, timeout=60)
        assert second.code == 0 and counts(second) == {"uploaded": 1}, second

        def let_go():
            stage.dynamodb.clear()
            late.released.set()

        fenced = fenced_off(stage, first, let_go)
        assert counts(fenced) == {}, fenced
        stage.finish()
