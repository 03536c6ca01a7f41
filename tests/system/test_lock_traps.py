"""The traps that known lock clients fall into, each where a row is acquired, renewed and released, through the wire proxy.

The program acquires by one UpdateItem that may create the row (others: PutItem), renews by UpdateItem and releases by
DeleteItem (or, by mark, UpdateItem): `PHASES` finds the request of each by what it writes.
"""

import os
import signal

import pytest

from tests.faults import faults
from tests.faults.proxy import Proxy
from tests.system.harness import wait_until
from tests.system.locking import Foreign, Table


@pytest.fixture
def locks(dynamodb, s3once, table):
    return Table(dynamodb, s3once, table, "java")


@pytest.fixture
def wire(dynamodb, s3once, locks):
    with Proxy(dynamodb, "dynamodb") as proxy:
        s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = proxy.endpoint
        yield proxy
        proxy.clear()
        assert not proxy.failures


PHASES = {
    "acquire": ("UpdateItem", lambda record: "ownerName" in record.operation.sets),
    "heartbeat": (
        "UpdateItem",
        lambda record: "recordVersionNumber" in record.operation.sets and "ownerName" not in record.operation.sets,
    ),
    "release": ("DeleteItem", lambda record: True),
}
EVERY_PHASE = pytest.mark.parametrize("phase", PHASES)


def add(wire, fault, phase, **how):
    kind, where = PHASES[phase]
    return wire.add(fault, kind, where=where, **how)


def run_through(s3once, *options, seconds="2.5"):
    """A run with a heartbeat or more (the lease is 4 s)."""
    return s3once("lock", "run", "--lease", "4s", "--wait", "0", "--json", *options, "k", "--", "sleep", seconds, timeout=60)


@EVERY_PHASE
@pytest.mark.parametrize("fault", [faults.drop_reply, faults.duplicate, faults.garble_reply, faults.hang_applied])
def test_trap_1_write_applied_reply_lost(s3once, wire, locks, phase, fault):
    """It is recognised as ours: no waiting for our own lease, no false loss, nothing left behind."""
    rule = add(wire, fault, phase)
    run = run_through(s3once)
    assert rule.fired == 1
    assert run.code == 0, run
    assert run.seconds < 12
    assert "lost" not in [event["event"] for event in run.events]
    assert locks.row("k") is None


@EVERY_PHASE
@pytest.mark.parametrize("code", ["ThrottlingException", "InternalServerError"])
def test_trap_2_an_error_is_never_taken_for_locked(s3once, wire, locks, phase, code):
    """Throttled once: done all the same. Throttled for good at the acquire: exit 3, and not 4."""
    rule = add(wire, faults.answer(400 if code[0] == "T" else 500, code), phase)
    run = run_through(s3once)
    assert rule.fired == 1 and run.code == 0, run
    if phase == "acquire":
        rule = add(wire, faults.answer(400, code), phase, times=None)
        run = run_through(s3once)
        assert rule.fired and run.code == 3 and code in run.err, run


@EVERY_PHASE
def test_trap_3_a_crash_frees_the_lock_for_the_next(s3once, wire, locks, phase):
    """kill -9 when the write was applied: the lock is only held until its lease is over, never for ever."""
    rule = add(wire, faults.kill_after, phase)
    run = s3once.start("lock", "run", "--lease", "4s", "k", "--", "sleep", "2.5")
    wait_until(lambda: rule.fired, 20, "the kill")
    run.popen.wait(20)
    wire.clear()
    again = s3once("lock", "acquire", "--lease", "4s", "--wait", "20s", "k")
    assert again.code == 0, again


def test_trap_4_waiting_sleeps_between_looks(s3once, wire, locks):
    """A few reads with random pauses, no writes, whatever the wall clock says."""
    holder = Foreign(locks, lease=60)
    assert holder.try_acquire("k")
    since = len(wire.history)
    run = s3once("lock", "acquire", "--lease", "4s", "--wait", "4s", "k")
    assert run.code == 4, run
    kinds = [kind for kind, _ in wire.kinds(since)]
    assert kinds[0] == "UpdateItem" and set(kinds[1:]) == {"GetItem"} and 3 <= len(kinds) <= 20


def test_trap_4_the_wall_clock_decides_nothing(s3once, locks):
    """No time is written that a clock could judge by."""
    held = s3once("lock", "acquire", "--lease", "20s", "--json", "k").events[0]
    assert set(locks.row("k")) == {"ownerName", "leaseDuration", "recordVersionNumber"}
    assert s3once("lock", "release", held["handle"]).code == 0


def test_trap_5_heartbeats_resume_after_suspicion(s3once, wire, locks):
    """Three hang; the next gets through; the lock was never lost, and is kept afterwards."""
    rule = add(wire, faults.hang, "heartbeat", times=3)
    run = run_through(s3once, seconds="8")
    assert rule.fired == 3 and run.code == 0, run
    events = [event["event"] for event in run.events]
    assert events.count("suspect") == events.count("recovered") <= 1 and "lost" not in events
    late = [record for record in wire.history if PHASES["heartbeat"][1](record) and not record.fault]
    assert len(late) >= 2


def test_trap_5_a_stale_handle_changes_nothing_of_a_newer_one(s3once, wire, locks):
    old = s3once("lock", "acquire", "--lease", "2s", "k").out.strip()
    new = s3once("lock", "acquire", "--lease", "30s", "--wait", "20s", "k").out.strip()
    before = locks.row("k")
    assert s3once("lock", "release", old).code == 5
    assert s3once("lock", "renew", old).code == 5
    assert locks.row("k") == before
    assert s3once("lock", "release", new).code == 0


@EVERY_PHASE
def test_trap_6_one_hung_call_delays_nothing_for_long(s3once, wire, locks, phase):
    """A request that is never answered is given up and sent again long before the lease is in danger."""
    rule = add(wire, faults.hang, phase)
    run = run_through(s3once)
    assert rule.fired == 1 and run.code == 0, run
    assert run.seconds < 15 and "lost" not in run.err


def test_trap_6_data_written_before_a_release_is_not_lost(s3once, wire, dynamodb, locks):
    """A released row is taken with the data it has at that very moment."""
    extra = ["--release-by", "mark"]
    assert s3once("lock", "run", *extra, "k", "--", "true").code == 0
    dynamodb.client.update_item(
        TableName=locks.name,
        Key=locks.key("k"),
        UpdateExpression="SET #d = :d",
        ExpressionAttributeNames={"#d": "data"},
        ExpressionAttributeValues={":d": {"B": b"left"}},
    )
    assert s3once("lock", "acquire", *extra, "--lease", "20s", "--wait", "0", "k").code == 0
    assert locks.row("k")["data"] == {"B": b"left"} and "isReleased" not in locks.row("k")


def test_trap_7_suspicion_is_told_even_if_the_lease_is_already_over(s3once, wire, locks):
    """Stopped for longer than a lease, while another takes it: suspect, expired and lost, each once, and exit 5."""
    run = s3once.start("lock", "run", "--lease", "2s", "--json", "k", "--", "sleep", "30")
    wait_until(lambda: "acquired" in run.output()[0], 20, "the lock")
    os.kill(run.pid, signal.SIGSTOP)
    other = s3once("lock", "acquire", "--lease", "20s", "--wait", "20s", "--owner", "other", "k")
    assert other.code == 0, other
    os.kill(run.pid, signal.SIGCONT)
    result = run.wait(30)
    assert result.code == 5, result
    events = [event["event"] for event in result.events]
    assert events.count("suspect") == 1 and events.count("expired") <= 1 and events.count("lost") <= 1
    assert events.index("suspect") < max(events.index(name) for name in ("expired", "lost") if name in events)
    assert locks.row("k")["ownerName"] == {"S": "other"}


def test_trap_8_a_foreign_lease_is_never_guessed(s3once, locks):
    """20s in a java table is 20 s; a bare number in a go table is held; "0" with isReleased is free."""
    row = {"ownerName": {"S": "x"}, "recordVersionNumber": {"S": "v"}, "leaseDuration": {"S": "1s"}}
    locks.put("k", row)
    taken = s3once("lock", "acquire", "--lease", "4s", "--wait", "20s", "k")
    assert taken.code == 0 and taken.seconds > 0.9
    locks.put("k", {**row, "leaseDuration": {"S": "1"}})
    assert s3once("lock", "acquire", "--dialect", "go", "--lease", "4s", "--wait", "2s", "k").code == 4
    locks.put("k", {**row, "leaseDuration": {"S": "0"}, "isReleased": {"S": "1"}})
    assert s3once("lock", "acquire", "--dialect", "go", "--lease", "4s", "--wait", "0", "k").code == 0


def test_trap_9_no_time_to_live_in_a_go_table(s3once, dynamodb, table):
    s3once.environment["S3ONCE_LOCKS"] = f"dynamodb:{table}"
    run = s3once("lock", "init", "--dialect", "go", "--ttl", "expires")
    assert run.code == 2 and "copies unknown attributes" in run.err, run


def test_trap_9_nothing_is_written_that_a_go_client_would_copy(s3once, dynamodb, table):
    go = Table(dynamodb, s3once, table, "go")
    handle = s3once("lock", "acquire", "--dialect", "go", "--lease", "20s", "k").out.strip()
    names = {"ownerName", "leaseDuration", "recordVersionNumber"}
    assert set(go.row("k")) == names
    s3once("lock", "renew", "--dialect", "go", handle)
    assert set(go.row("k")) == names
    s3once("lock", "release", "--dialect", "go", handle)
    assert set(go.row("k")) == names | {"isReleased"}
