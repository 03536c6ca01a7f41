"""Many locks in one process: heartbeats spread, none in danger while one connection in ten hangs."""

import itertools
import subprocess
import time

from tests.faults import faults
from tests.faults.proxy import Proxy
from tests.system.harness import BUILD, FULL, wait_until
from tests.system.locking import Table

LOCKS, LEASE, PERIOD = (1000 if FULL else 100), 20, 5


def test_many_locks_while_one_connection_in_ten_hangs(s3once, dynamodb, table, tmp_path):
    Table(dynamodb, s3once, table, "java")
    with Proxy(dynamodb, "dynamodb") as proxy:
        fresh = itertools.count()  # heartbeats' connections: the first and every tenth hangs

        def hangs_now(record):
            return "ownerName" not in record.operation.sets and not record.reused and next(fresh) % 10 == 0

        hangs = proxy.add(faults.hang, "UpdateItem", times=None, where=hangs_now)
        environment = {**s3once.environment, "AWS_ENDPOINT_URL_DYNAMODB": proxy.endpoint}
        argv = [BUILD / "tests" / "system" / "lock_many", f"dynamodb:{table}", str(LOCKS), str(LEASE)]
        with open(tmp_path / "out", "w") as out:
            many = subprocess.Popen(argv, env=environment, stdout=out)
        try:
            wait_until(lambda: "acquired" in (tmp_path / "out").read_text(), 120, "all locks")
            time.sleep(PERIOD)  # each lock's first heartbeat comes earlier than a period, to spread them
            since = len(proxy.history)
            begun = time.monotonic()
            time.sleep(2 * PERIOD)
            seconds = time.monotonic() - begun
            beats = [record.begun for record in proxy.history[since:]]
            assert many.wait(60) == 0
        finally:
            many.kill()
        _, least, _, lost = (tmp_path / "out").read_text().split("\n")[1].split()
    assert hangs.fired
    assert lost == "0" and int(least) >= LEASE * 1000 // 2, (least, hangs.fired)
    assert LOCKS <= len(beats) <= LOCKS * (seconds / PERIOD + 1)
    each_second = [sum(begun + at <= beat < begun + at + 1 for beat in beats) for at in range(2 * PERIOD)]
    if FULL:  # a machine that stands still for a second has them all come in the next one
        assert LOCKS * 1.5 <= len(beats) <= LOCKS * seconds / PERIOD * 1.1 and max(each_second) <= 2 * LOCKS / PERIOD, each_second
    print(f"{LOCKS} locks: {len(beats)} heartbeats in {seconds:.1f} s, at most {max(each_second)} a second, never less than {least} ms of {LEASE} s left, {hangs.fired} connections hung")
