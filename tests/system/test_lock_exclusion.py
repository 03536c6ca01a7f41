"""Mutual exclusion as an invariant: many processes, few keys, a wire that loses, delays and doubles, kills and stops.

Each process writes down from when to when it was surely the holder (lock_holder.c, lock_shell.py). Of one key these times
never overlap, and the tokens grow with them. A quarter of them knows only what it has seen itself; the others, half of them
commands that look once and end, share what they saw of the holders.
"""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.faults import faults
from tests.faults.preloads import preload_library, preloaded
from tests.faults.proxy import Proxy
from tests.system.harness import BUILD, FULL
from tests.system.locking import Probe, Table, locks_in_s3

PROCESSES, TIMES, KEYS, SECONDS = (16, 200, 8, 600) if FULL else (8, 6, 2, 6)
TIMES_IN_S3 = 200 if FULL else 20
PATIENCE = 1200 if FULL else 600
KINDS = ("alone", "sharing", "short", "shell")


@pytest.fixture(params=[pytest.param("dynamodb", marks=pytest.mark.threaded), "s3"])
def wire(request, s3once):
    """A proxy that loses, delays and doubles what goes to the place of the locks."""
    if request.param == "dynamodb":
        server, table = request.getfixturevalue("dynamodb"), request.getfixturevalue("table")
        s3once.environment |= {
            "AWS_ENDPOINT_URL_DYNAMODB": server.endpoint,
            "AWS_ACCESS_KEY_ID": server.access_key,
            "AWS_SECRET_ACCESS_KEY": server.secret_key,
        }
        Table(server, s3once, table, "java")
    else:
        server, bucket = request.getfixturevalue("s3"), request.getfixturevalue("bucket")
        s3once.environment |= locks_in_s3(server, bucket)
        assert s3once("lock", "init").code == 0
    with Proxy(server, request.param, keep=False) as proxy:
        for fault in (faults.drop_reply, faults.drop_request, faults.duplicate, faults.late_duplicate(0.3), faults.delay_reply(0.5), faults.hang, faults.hang_applied):
            proxy.add(fault, probability=0.015, times=None)
        s3once.environment[f"AWS_ENDPOINT_URL_{request.param.upper()}"] = proxy.endpoint
        proxy.times = TIMES if request.param == "dynamodb" else TIMES_IN_S3
        yield proxy
        proxy.clear()
        assert not proxy.failures


class Holder:
    """One process, started anew after each kill until it has held a lock often and long enough."""

    def __init__(self, environment, s3once, times, folder, seed):
        kind = KINDS[seed % len(KINDS)]
        self.times = times
        self.argv = [BUILD / "tests" / "system" / "lock_holder", kind, environment["S3ONCE_LOCKS"], str(KEYS)]
        if kind == "shell":
            self.argv = [sys.executable, Path(__file__).with_name("lock_shell.py"), s3once.binary(), str(KEYS)]
        self.environment = environment
        self.history, self.seed = folder / f"history{seed}", seed
        self.history.touch()
        self.until = time.monotonic() + SECONDS
        self.stopped_until = None
        self.start()

    def holds(self):
        """Whether it holds the lock, as far as it knows."""
        lines = self.history.read_text().splitlines()
        return lines and not lines[-1].endswith(" 0")

    def done(self):
        return self.history.read_text().count(" 0\n")

    def start(self):
        left = [max(0, self.times - self.done()), max(0, int(self.until - time.monotonic())), self.seed]
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
    """A kill or a stop, some of them for longer than the lease, of somebody, who often holds a lock: what was done, or None."""
    holding = [holder for holder in holders if holder.holds()]
    holder = chance.choice(holding if holding and chance.random() < 0.7 else holders)
    if holder.stopped_until or holder.popen.poll() is not None:
        return None
    if chance.random() < 0.4:
        holder.kill()
        return "kills"
    holder.stop(chance.choice((0.2, 1, 4)))
    return "stops"


def spans(holders):
    """key → [(from, until, token, when given up or None)] by the time each was first held."""
    found = {}
    for holder in holders:
        for line in holder.history.read_text().splitlines():
            key, *numbers = line.split(" ")
            token, begin, until = map(int, numbers)
            found.setdefault((key, token), []).append((holder, begin, until))
    result = {}
    for (key, token), lines in found.items():
        assert len({holder for holder, _, _ in lines}) == 1, (key, token)
        given_up = next((begin for _, begin, until in lines if until == 0), None)
        held = [(begin, until) for _, begin, until in lines if until]
        if held:
            until = max(until for _, until in held)
            if given_up:
                until = min(until, given_up)
            result.setdefault(key, []).append((held[0][0], until, token, given_up))
    return {key: sorted(list_) for key, list_ in result.items()}


def test_never_two_at_once_tokens_grow_everybody_gets_in(s3once, wire, tmp_path, record_property):
    chance = random.Random(6)
    # Between our reading of the clock and what others have kept lies a while.
    environment = s3once.environment | preloaded(s3once, preload_library(), S3ONCE_TEST_SLOW_OPEN="/locks/")
    holders = [Holder(environment, s3once, wire.times, tmp_path, seed) for seed in range(PROCESSES)]
    done = []
    try:
        deadline = time.monotonic() + PATIENCE
        next_time = time.monotonic() + 0.5
        while sum(holder.attend() for holder in holders):
            assert time.monotonic() < deadline, [holder.done() for holder in holders]
            if time.monotonic() >= next_time and len(done) < (SECONDS if FULL else 5):
                done.append(disturb(holders, chance))
                next_time = time.monotonic() + 0.8
            time.sleep(0.02)
    finally:
        for holder in holders:
            holder.popen.kill()
            holder.popen.wait()
    found, overlaps, shrunk, taken_over = spans(holders), [], [], 0
    for key, list_ in found.items():
        for (_, until, token, given_up), (begin, _, later, _) in zip(list_, list_[1:]):
            taken_over += not given_up or given_up > begin
            if until > begin:
                overlaps.append(f"{key}: token {token} was held until {until}, {later} from {begin}")
            if token >= later:
                shrunk.append(f"{key}: {later} came after {token}")
    total = sum(map(len, found.values()))
    faults_fired = sum(rule.fired for rule in wire.rules)
    figures = f"""{total} acquisitions by {PROCESSES} processes, {faults_fired} faults, {done.count("kills")} kills, {done.count("stops")} stops, \
{taken_over} take-overs, tokens up to {max(list_[-1][2] for list_ in found.values())}, {len(overlaps)} overlaps"""
    record_property("figures", figures)
    assert not overlaps and not shrunk, (figures, overlaps[:5], shrunk[:5])
    assert all(holder.done() >= wire.times for holder in holders) and total >= PROCESSES * wire.times
    assert faults_fired > 5 and len(done) >= 5


def test_late_replies_shorten_no_dlm_lease(s3once, dynamodb, table, tmp_path):
    """The time of the service comes with a reply, and is as old as the reply is late. The holder counts from its request."""
    locks, held = Table(dynamodb, s3once, table, "dlm"), []
    with Proxy(dynamodb, "dynamodb", keep=False) as wire:
        wire.add(faults.drop_request, times=None, where=lambda record: held)  # no heartbeat renews the lock
        wire.add(faults.delay_reply(2.5), times=None)
        s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = wire.endpoint
        with Probe(s3once, tmp_path, 12000, dialect=["dlm"]) as holder:
            assert holder.call("acquire 1 k 30000")[0] == 0
            held.append("k")
            begun = time.time()
            assert begun + holder.call("left 1 -")[0] / 1000 <= int(locks.row("k")["expires"]["N"])
            s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = dynamodb.endpoint
            with Probe(s3once, tmp_path, 12000, dialect=["dlm"]) as other:
                assert other.call("acquire 1 k 60000", 60)[0] == 0
                assert holder.call("left 1 -")[0] == 0
