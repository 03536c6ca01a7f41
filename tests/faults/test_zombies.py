"""An uploader that is paused at its worst moment, taken over, and wakes up: it changes nothing and says that it was fenced."""

import pytest

from tests.faults import faults
from tests.faults.conftest import note_case
from tests.faults.scenarios import LARGE
from tests.faults.stage import Stage, cont
from tests.system.harness import MIB

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
            object_, marks = stage.arena.s3.objects(stage.arena.bucket, stage.prefix), stage.marks()
            cont(first)
            rule.released.set()
            result = stage.ended(first)
            assert result.code == 5, result
            stage.settle()
            assert stage.arena.s3.objects(stage.arena.bucket, stage.prefix) == object_
            assert stage.marks() == marks
            stage.finish(*REPLACE)
            passed = True
    finally:
        note_case(suite="zombies", server=place, scenario=moment, fault=fault.__name__, operation=kind, passed=passed)
