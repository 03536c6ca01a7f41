"""`forget` and `gc` beside running uploaders, while requests are lost, late, doubled, and processes die: no promise is broken."""

import asyncio
import random
from collections import Counter

from tests.faults import faults
from tests.faults.proxy import each
from tests.faults.scenarios import LARGE, kill
from tests.faults.stage import LEASE, Stage
from tests.system.harness import FULL, wait_until

TURNS = 30 if FULL else 1
FAULTS = [
    faults.drop_reply,
    faults.duplicate,
    faults.late_request(0.05),
    faults.late_duplicate(0.05),
    faults.late_duplicate(LEASE + 0.5),
    faults.kill_before,
    faults.kill_after,
]


async def copy_on_release(x, rule):
    """Answered as usual; a copy arrives when the test says so."""
    await x.body()
    reply = await x.forward()
    x.record.late = True
    x.proxy.later(copy_later(x, rule))
    x.fire(rule)
    await x.answer(reply)


async def copy_later(x, rule):
    while not rule.released.is_set():
        await asyncio.sleep(0.02)
    await x.forward()


CLEANED = {0, 1, 3, 5, -9}


def clean(stage, *words):
    """One forget or gc over all that the uploaders work on."""
    result = stage.program(*words, "--request-timeout", "1s", f"s3://{stage.arena.bucket}/{stage.prefix}")
    assert result.code in CLEANED and (result.code in (0, -9) or result.out + result.err), result
    return result


def one_turn(stage, uploaders, ends):
    clean(stage, "forget", "--yes")
    clean(stage, "gc", "--keep-uploads", "0", "--keep-marks", "1s")
    for at, one in enumerate(uploaders):
        if one.popen.poll() is not None:
            result = one.wait(1)
            stage.checker.check_exit_code(result)
            ends[result.code] += 1
            uploaders[at] = stage.start(concurrency=at + 1)


def effects(stage):
    records = stage.s3.history + each(stage.dynamodb.history)
    return Counter(record.kind for record in records if record.took_effect)


def test_beside_uploaders(arenas, tmp_path):
    with Stage(tmp_path / "stage", arenas(), behaves="aws") as stage:
        for n in range(8):
            stage.write(f"f{n:02}", 1000 + n)
        assert stage.push().code == 0
        stage.write("large", LARGE)
        kill(stage, stage.s3, faults.kill_after, "UploadPart", 2, concurrency=1)
        clean(stage, "gc", "--keep-uploads", "0")  # without faults: it surely aborts
        random.seed(11)
        for proxy in (stage.s3, stage.dynamodb):
            for fault in FAULTS:
                proxy.add(fault, times=None, probability=0.004 if "kill" in str(fault) else 0.02)
        uploaders, ends = [stage.start(concurrency=1), stage.start(concurrency=2)], Counter()
        for _ in range(TURNS):
            one_turn(stage, uploaders, ends)
        for proxy in (stage.s3, stage.dynamodb):
            proxy.clear()
        for one in uploaders:
            stage.checker.check_exit_code(one.wait(120))
        clean(stage, "forget", "--yes")
        stage.finish()
        done = effects(stage)
        assert done["PutItem:forget"] and done["AbortMultipartUpload"], done


def test_late_requests_do_not_bring_a_mark_back(arenas, tmp_path):
    """Late duplicates of a claim and of the done write that followed it, after the mark was forgotten and its object deleted:
    the mark would say that the object is there."""
    with Stage(tmp_path / "stage", arenas()) as stage:
        stage.write("b", 1000)  # by which the bucket is known again
        assert stage.push().code == 0
        stage.write("a", 1000)
        rules = [stage.dynamodb.add(copy_on_release, kind) for kind in ("PutItem:claim", "UpdateItem:done")]
        assert stage.push().code == 0
        stage.arena.s3.client.delete_object(Bucket=stage.arena.bucket, Key=stage.key("a"))
        assert stage.program("forget", f"s3://{stage.arena.bucket}/{stage.key('a')}").code == 0
        twice = [record for record in stage.dynamodb.history if record.late]
        for rule, record in zip(rules, twice, strict=True):
            rule.released.set()
            wait_until(lambda: len(record.applied) == 2, 30, "the copy")
            assert record.applied[1][1] == 400, record.applied
        assert stage.marks()[stage.key("a")]["state"] == "forgotten"
        stage.s3.history.clear()
        stage.finish()
