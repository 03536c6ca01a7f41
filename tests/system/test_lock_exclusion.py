"""Mutual exclusion as an invariant: many processes, few keys, a wire that loses, delays and doubles, kills and stops.

Each process writes down from when to when it was surely the holder (lock_holder.c). Of one key these times never overlap,
and the tokens grow with them.
"""

import random
import signal
import subprocess
import time

import pytest

from tests.faults import faults
from tests.faults.proxy import Proxy
from tests.system.harness import BUILD, FULL
from tests.system.locking import Table

PROCESSES, TIMES, KEYS, SECONDS = (16, 200, 8, 600) if FULL else (8, 6, 2, 4)
PATIENCE = 1200 if FULL else 90


@pytest.fixture
def wire(dynamodb, s3once, table):
    Table(dynamodb, s3once, table, "java")
    with Proxy(dynamodb, "dynamodb", keep=False) as proxy:
        for fault in (faults.drop_reply, faults.drop_request, faults.duplicate, faults.late_duplicate(0.3), faults.delay_reply(0.5), faults.hang, faults.hang_applied):
            proxy.add(fault, probability=0.015, times=None)
        yield proxy
        proxy.clear()
        assert not proxy.failures


class Holder:
    """One process, started anew after each kill until it has held a lock often and long enough."""

    def __init__(self, wire, s3once, table, folder, seed):
        self.argv = [BUILD / "tests" / "system" / "lock_holder", f"dynamodb:{table}", str(KEYS)]
        self.environment = {**s3once.environment, "AWS_ENDPOINT_URL_DYNAMODB": wire.endpoint}
        self.history, self.seed = folder / f"history{seed}", seed
        self.history.touch()
        self.until = time.monotonic() + SECONDS
        self.stopped_until = None
        self.start()

    def done(self):
        return self.history.read_text().count(" 0\n")

    def start(self):
        left = [max(0, TIMES - self.done()), max(0, int(self.until - time.monotonic())), self.seed]
        with open(self.history, "a") as out, open(self.history.with_suffix(".err"), "a") as err:
            self.popen = subprocess.Popen([*self.argv, *map(str, left)], env=self.environment, stdout=out, stderr=err)
        self.seed += 1000

    def kill(self):
        self.popen.kill()
        self.popen.wait()
        self.start()

    def stop(self, seconds):
        self.popen.send_signal(signal.SIGSTOP)
        self.stopped_until = time.monotonic() + seconds

    def attend(self):
        """True while it runs."""
        if self.stopped_until and time.monotonic() >= self.stopped_until:
            self.popen.send_signal(signal.SIGCONT)
            self.stopped_until = None
        code = self.popen.poll()
        assert code in (None, 0), (code, self.history.with_suffix(".err").read_text())
        return code is None


def disturb(holders, chance):
    """A kill or a stop, some of them for longer than the lease, of somebody now and then."""
    holder = chance.choice(holders)
    if holder.stopped_until or holder.popen.poll() is not None:
        return
    if chance.random() < 0.4:
        holder.kill()
    else:
        holder.stop(chance.choice((0.2, 1, 4)))


def spans(holders):
    """key → [(from, until, token)] by the time each was first held."""
    found = {}
    for holder in holders:
        for line in holder.history.read_text().splitlines():
            key, *numbers = line.split(" ")
            token, begin, until = map(int, numbers)
            held = found.setdefault(key, {}).setdefault(token, [])
            held.append((holder, begin, until))
    result = {}
    for key, tokens in found.items():
        for token, lines in tokens.items():
            assert len({holder for holder, _, _ in lines}) == 1, (key, token)
            given_up = [begin for _, begin, until in lines if until == 0]
            held = [(begin, until) for _, begin, until in lines if until]
            if held:
                until = min([max(until for _, until in held), *given_up])
                result.setdefault(key, []).append((held[0][0], until, token))
    return {key: sorted(list_) for key, list_ in result.items()}


@pytest.mark.threaded
def test_never_two_at_once_tokens_grow_everybody_gets_in(s3once, dynamodb, wire, table, tmp_path):
    chance = random.Random(6)
    holders = [Holder(wire, s3once, table, tmp_path, seed) for seed in range(PROCESSES)]
    disturbed = 0
    try:
        deadline = time.monotonic() + PATIENCE
        next_time = time.monotonic() + 0.5
        while sum(holder.attend() for holder in holders):
            assert time.monotonic() < deadline, [holder.done() for holder in holders]
            if time.monotonic() >= next_time and disturbed < (SECONDS if FULL else 5):
                disturb(holders, chance)
                disturbed += 1
                next_time = time.monotonic() + 0.8
            time.sleep(0.02)
    finally:
        for holder in holders:
            holder.popen.kill()
            holder.popen.wait()
    total = 0
    for key, list_ in spans(holders).items():
        for (_, until, token), (begin, _, later) in zip(list_, list_[1:]):
            assert until <= begin, f"{key}: token {token} was held until {until}, {later} from {begin}"
            assert token < later, f"{key}: {later} came after {token}"
        total += len(list_)
    assert all(holder.done() >= TIMES for holder in holders) and total >= PROCESSES * TIMES
    assert sum(rule.fired for rule in wire.rules) > 5 and disturbed >= 5
    print(f"{total} acquisitions by {PROCESSES} processes, {sum(rule.fired for rule in wire.rules)} faults, {disturbed} kills and stops")
