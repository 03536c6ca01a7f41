"""Mutual exclusion as an invariant: many processes, few keys, a wire that loses, delays and doubles, and kills."""

import os
import random
import signal
import threading
import time

import pytest

from tests.faults import faults
from tests.faults.proxy import Proxy
from tests.system.harness import FULL

PROCESSES, TIMES, KEYS = (16, 200, 8) if FULL else (8, 6, 2)
OVERLAP = 66


@pytest.fixture
def wire(dynamodb, s3once, table):
    with Proxy(dynamodb, "dynamodb", keep=False) as proxy:
        s3once.environment["S3ONCE_LOCKS"] = f"dynamodb:{table}"
        s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = proxy.endpoint
        assert s3once("lock", "init").code == 0
        for fault in (faults.drop_reply, faults.drop_request, faults.duplicate, faults.delay_reply(0.5), faults.hang_applied):
            proxy.add(fault, probability=0.02, times=None)
        yield proxy
        proxy.clear()
        assert not proxy.failures


def work(s3once, tmp_path, seed, failures):
    """Takes locks again and again; now and then the holder is killed. Inside, flock(1) tells an overlap."""
    chance = random.Random(seed)
    done = 0
    deadline = time.monotonic() + (1800 if FULL else 150)
    while done < TIMES:
        key = f"key{chance.randrange(KEYS)}"
        inside = f"echo $S3ONCE_LOCK_TOKEN >>{tmp_path}/{key}.history; sleep 0.03"
        command = ["flock", "-n", "-E", str(OVERLAP), f"{tmp_path}/{key}.flock", "sh", "-c", inside]
        run = s3once.start("lock", "run", "--lease", "3s", "--wait", "100s", key, "--", *command)
        if chance.random() < 0.1:
            time.sleep(chance.random() * 0.2)
            os.kill(run.pid, signal.SIGKILL)
            run.popen.wait()
            continue
        code = run.wait(120).code
        if code not in (0, 3, 5) or time.monotonic() > deadline:
            failures.append((key, code, run.output()))
            return
        done += code == 0


def test_never_two_at_once_tokens_grow_everybody_gets_in(s3once, wire, tmp_path):
    failures = []
    threads = [threading.Thread(target=work, args=(s3once, tmp_path, seed, failures)) for seed in range(PROCESSES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2400 if FULL else 200)
    assert not any(thread.is_alive() for thread in threads)
    assert not failures
    total = 0
    for path in tmp_path.glob("*.history"):
        tokens = [int(line) for line in path.read_text().split()]
        assert tokens == sorted(set(tokens)), path
        total += len(tokens)
    assert total >= PROCESSES * TIMES
    assert sum(rule.fired for rule in wire.rules) > 5
