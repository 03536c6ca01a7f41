"""Many uploaders over the same files: nothing twice, nothing left out, few claims in vain. How fast they are is told.

Latency comes from the proxies, so that it and not this machine is what limits: DynamoDB 5 ms, S3 40 ms, two requests at once
for each uploader. How few claims are in vain is asserted by ./check --full, which runs this alone with 20,000 files. N
uploaders should be nearly N times as fast as one, but that depends on what else the machine does.
"""

import random
import signal
import time
from collections import Counter

import pytest

from tests.faults.conftest import note_figure
from tests.faults.proxy import Proxy, each
from tests.system.harness import FULL, Program, fresh_name, make_tree, wait_until
from tests.system.pushing import learn_conditions

FILES = 20000 if FULL else 1000
COUNTS = (1, 2, 4, 8) if FULL else (8,)
FAILED_CLAIMS = 0.05  # a file


@pytest.fixture
def world(rgw, dynoxide, tmp_path):
    """Proxies with latency and a tree."""
    with Proxy(rgw, "s3", latency=0.04) as s3, Proxy(dynoxide, "dynamodb", latency=0.005, check_signature=False) as dynamodb:
        bucket = fresh_name("bucket")
        rgw.client.create_bucket(Bucket=bucket)
        files = {f"{n % 97:02}/{n:05}.log": b"%d" % n * 20 for n in range(FILES)}
        yield s3, dynamodb, bucket, make_tree(tmp_path / "tree", files), rgw, dynoxide
        assert not s3.failures and not dynamodb.failures
        rgw.remove_bucket(bucket)


def begin(world, folder, uploaders):
    s3, dynamodb, bucket, tree, _, dynoxide = world
    table, prefix = fresh_name("table"), fresh_name("p")
    folder.mkdir()
    program = Program(folder, s3, dynamodb, table)
    learn_conditions(program, bucket)
    s3.history.clear()
    dynamodb.history.clear()
    options = ["--concurrency", "2", "--json", "--lease", "5s"]
    begun = time.monotonic()
    running = [program.start("push", *options, tree, f"s3://{bucket}/{prefix}") for _ in range(uploaders)]
    return program, running, prefix, table, begun


def check(world, prefix, table):
    """Every file is there, by exactly one PutObject, and marked."""
    s3, dynamodb, bucket, tree, rgw, dynoxide = world
    rgw.assert_same(tree, bucket, prefix)
    writes = Counter(record.operation.key for record in s3.history if record.kind == "PutObject" and record.took_effect)
    assert len(writes) == FILES
    states = Counter(mark["state"] for mark in dynoxide.marks(table).values())
    assert states == {"done": FILES}
    return Counter(writes.values())


def in_vain(dynamodb):
    return sum(record.kind in ("PutItem:claim", "UpdateItem:take") and not record.took_effect for record in each(dynamodb.history))


def test_speed_up(world, tmp_path):
    first = None
    for uploaders in COUNTS:
        program, running, prefix, table, begun = begin(world, tmp_path / f"{uploaders}", uploaders)
        results = [one.wait(1800) for one in running]
        seconds = time.monotonic() - begun
        first = first or seconds
        assert [result.code for result in results] == [0] * uploaders, results
        assert check(world, prefix, table) == {1: FILES}
        shares = [result.events[-1]["uploaded"] for result in results]
        assert sum(shares) == FILES
        claims = in_vain(world[1]) / FILES
        speed = f"{first / seconds:.1f} times as fast as {COUNTS[0]}"
        figure = f"{uploaders}: {seconds:.1f} s, {speed}, {claims:.4f} failed claims a file, the fewest files of one: {min(shares)}"
        note_figure(f"{FILES} files, uploaders {figure}")
        assert not FULL or (min(shares) > 0 and claims <= FAILED_CLAIMS), figure


def test_a_third_is_killed(world, tmp_path):
    program, running, prefix, table, _ = begin(world, tmp_path / "killed", 6)
    for one in random.Random(1).sample(running, 2):
        goal = len(world[0].history) + random.Random(one.pid).randrange(FILES // 10, FILES // 4)
        wait_until(lambda: len(world[0].history) >= goal, 600, "enough requests")
        one.kill(signal.SIGKILL)
    codes = sorted(one.wait(1800).code for one in running)
    assert codes == [-9, -9, 0, 0, 0, 0]
    times = check(world, prefix, table)
    again = FILES - times[1]
    assert set(times) == {1}, f"{again} files were written more than once"
