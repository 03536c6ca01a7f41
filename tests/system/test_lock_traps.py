"""The traps that known lock clients fall into, each where a row is acquired, renewed and released, through the wire proxy.

The program acquires by one UpdateItem that may create the row (others: PutItem), renews by UpdateItem and releases by
DeleteItem (or, by mark, UpdateItem): `PHASES` finds the request of each by what it writes.
"""

import errno
import os
import re
import signal
import struct
import threading
import time

import pytest

from tests.faults import faults
from tests.faults.preloads import preload_library, preloaded
from tests.faults.proxy import Proxy
from tests.system.harness import wait_until
from tests.system.locking import FAILED, HELD, LOST, Foreign, Probe, Table


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


def run_through(s3once, *options, script="sleep 2.5", **how):
    """A run with a heartbeat or more (the lease is 4 s)."""
    command = ["sh", "-c", script]
    return s3once("lock", "run", "--lease", "4s", "--wait", "0", "--json", *options, "k", "--", *command, timeout=60, **how)


def begin_stuck(wire, probe, phase):
    """Two locks in one client: a is held, and each request of this phase for b hangs."""
    assert probe.call("acquire 0 a 0")[0] == 0
    if phase != "acquire":
        assert probe.call("acquire 1 b 0")[0] == 0
    rule = add(wire, faults.hang, phase, key="b", times=None)
    if phase != "heartbeat":
        probe.begin({"acquire": "acquire 1 b 0", "release": "release 1"}[phase])
    wait_until(lambda: rule.fired, 60, "the call that hangs")


@EVERY_PHASE
@pytest.mark.parametrize("fault", [faults.drop_reply, faults.duplicate, faults.garble_reply, faults.hang_applied])
def test_trap_1_write_applied_reply_lost(s3once, wire, locks, phase, fault):
    """It is recognised as ours: no waiting for our own lease, no false loss, nothing left behind."""
    rule = add(wire, fault, phase)
    run = run_through(s3once)
    assert rule.fired == 1
    assert run.code == 0, run
    assert run.seconds < 30
    assert "lost" not in [event["event"] for event in run.events]
    assert locks.row("k") is None


@pytest.mark.parametrize("fault", [faults.drop_reply, faults.duplicate, faults.garble_reply, faults.hang_applied])
def test_trap_1_release_by_mark_applied_reply_lost(s3once, wire, locks, fault):
    rule = wire.add(fault, "UpdateItem", where=lambda record: record.operation.sets.get("isReleased"))
    run = run_through(s3once, "--release-by", "mark", script="true")
    assert rule.fired == 1 and run.code == 0, run
    assert locks.row("k")["isReleased"] == {"S": "1"}
    assert run_through(s3once, "--release-by", "mark", script="true").code == 0


@pytest.mark.parametrize("loses", ["reset", "hang"])
@pytest.mark.parametrize("way", ["delete", "mark"])
def test_trap_1_release_applied_reply_lost_and_taken_by_another(s3once, wire, locks, way, loses):
    """We had let go: no loss, for `lock run` as for a handle. A row that was another's before we let go is one."""

    async def let_go(x, rule):
        await x.forward()
        locks.put("k", FOREIGN)
        x.fire(rule)
        if loses == "hang":
            await faults.wait_for_client(x, rule)
        x.reset()

    def given(record):
        return way == "delete" or record.operation.sets.get("isReleased")

    options = ["--release-by", way]
    kind = "DeleteItem" if way == "delete" else "UpdateItem"
    rule = wire.add(let_go, kind, where=given)
    run = run_through(s3once, *options, script="true")
    assert rule.fired == 1 and run.code == 0 and locks.row("k") == FOREIGN, run
    locks.delete("k")
    handle = s3once("lock", "acquire", *options, "--lease", "20s", "k").out.strip()
    rule = wire.add(let_go, kind, where=given)
    run = s3once("lock", "release", *options, handle)
    assert rule.fired == 1 and run.code == 0 and locks.row("k") == FOREIGN, run
    run = s3once("lock", "release", *options, handle)
    assert run.code == 5 and "held by x" in run.err, run


@EVERY_PHASE
@pytest.mark.parametrize("code", ["ThrottlingException", "InternalServerError"])
def test_trap_2_an_error_is_never_taken_for_locked(s3once, wire, locks, phase, code):
    """Throttled once: done all the same. Throttled for good at the acquire: failed, and not held."""
    rule = add(wire, faults.answer(400 if code[0] == "T" else 500, code), phase)
    # Nothing here is about a lease that ends, so that a busy machine may stand still for longer than 4 s.
    how = {} if phase == "heartbeat" else {"script": "true"}
    options = () if phase == "heartbeat" else ("--lease", "30s")
    run = run_through(s3once, *options, **how)
    assert rule.fired == 1 and run.code == 0, run
    if phase == "acquire":
        rule = add(wire, faults.answer(400, code), phase, times=None)
        run = run_through(s3once, *options, **how)
        assert rule.fired and run.code == FAILED and code in run.err, run


@EVERY_PHASE
def test_trap_3_a_crash_frees_the_lock_for_the_next(s3once, wire, locks, phase):
    """kill -9 when the write was applied: the lock is only held until its lease is over, never for ever."""
    rule = add(wire, faults.kill_after, phase)
    run = s3once.start("lock", "run", "--lease", "4s", "k", "--", "sleep", "2.5")
    wait_until(lambda: rule.fired, 60, "the kill")
    run.popen.wait(60)
    wire.clear()
    again = s3once("lock", "acquire", "--lease", "4s", "--wait", "20s", "k")
    assert again.code == 0, again


def test_trap_4_waiting_sleeps_between_looks(s3once, wire, locks):
    """A few reads with random pauses, no writes."""
    holder = Foreign(locks, lease=60)
    assert holder.try_acquire("k")
    since = len(wire.history)
    run = s3once("lock", "acquire", "--lease", "4s", "--wait", "4s", "k")
    assert run.code == 4, run
    kinds = [kind for kind, _ in wire.kinds(since)]
    assert kinds[:2] == ["DescribeTable", "UpdateItem"] and set(kinds[2:]) == {"GetItem"} and 4 <= len(kinds) <= 21


@EVERY_PHASE
def test_trap_4_what_is_throttled_is_sent_again_after_a_pause(s3once, wire, locks, phase):
    """More than a second of refusals are a few requests, not hundreds; then it goes on."""
    rule = add(wire, faults.answer(400, "ThrottlingException"), phase, times=None)
    threading.Thread(target=lambda: (wait_until(lambda: rule.fired >= 2, 60, "the fault"), time.sleep(1), wire.clear())).start()
    run = run_through(s3once)
    assert run.code == 0 and 2 <= rule.fired <= 20, (rule.fired, run)


@EVERY_PHASE
@pytest.mark.parametrize("hours", [1, -1])
def test_trap_4_a_step_of_the_wall_clock_decides_nothing(s3once, wire, locks, tmp_path, phase, hours):
    """The holder's clock steps while it acquires, renews or releases: nothing is lost, nothing taken early, no time is written."""
    clock = tmp_path / "clock"
    clock.write_bytes(struct.pack("q", 0))

    async def step(x, rule):
        clock.write_bytes(struct.pack("q", hours * 3600))
        x.fire(rule)
        await x.proxy.pass_on(x)

    rule = add(wire, step, phase)
    environment = preloaded(s3once, preload_library(), S3ONCE_TEST_REALTIME=clock)
    found, looked = [], tmp_path / "looked"

    def look():
        wait_until(lambda: locks.row("k"), 60, "the row")
        found.extend([set(locks.row("k")), s3once("lock", "acquire", "--lease", "4s", "--wait", "1s", "k", env=environment).code])
        wait_until(lambda: rule.fired or phase == "release", 60, "the step")
        looked.touch()

    thread = threading.Thread(target=look)
    thread.start()
    run = run_through(s3once, script=f"while [ ! -e {looked} ]; do sleep 0.1; done", env=environment)
    thread.join(60)
    assert rule.fired == 1 and run.code == 0, run
    slow = ("suspect", "recovered", "outage")  # as on a machine that stood still for a while
    assert [event["event"] for event in run.events if event["event"] not in slow] == ["acquired"]
    assert found == [{"ownerName", "leaseDuration", "recordVersionNumber"}, 4]


def test_trap_5_heartbeats_resume_after_suspicion(s3once, wire, locks):
    """Three hang; the next gets through; the lock was never lost, and is kept afterwards."""
    rule = add(wire, faults.hang, "heartbeat", times=3)
    run = run_through(s3once, script="sleep 8")
    assert rule.fired == 3 and run.code == 0, run
    events = [event["event"] for event in run.events]
    assert events.count("suspect") == events.count("recovered") <= 1 and "lost" not in events
    late = [record for record in wire.history if PHASES["heartbeat"][1](record) and not record.fault]
    assert len(late) >= 2


@pytest.mark.threaded
@EVERY_PHASE
def test_trap_5_danger_is_told_while_another_call_hangs(s3once, wire, locks, tmp_path, phase):
    """And heartbeats go on after it: a is suspect, then recovered, whatever becomes of b."""
    with Probe(s3once, tmp_path, 3000) as probe:
        begin_stuck(wire, probe, phase)
        refusing = add(wire, faults.refuse, "heartbeat", key="a", times=None)
        probe.await_event("suspect", "a")
        wire.rules = [rule for rule in wire.rules if rule is not refusing]
        probe.await_event("recovered", "a")
        assert probe.events("a") == ["suspect", "recovered"]
        wire.clear()


@EVERY_PHASE
def test_trap_5_the_commands_own_failure_is_not_swallowed(s3once, wire, locks, phase):
    rule = add(wire, faults.drop_reply, phase)
    run = run_through(s3once, script="sleep 1.5; exit 7")
    assert rule.fired == 1 and run.code == 7, run


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
    assert run.seconds < 30 and "lost" not in run.err


@EVERY_PHASE
def test_trap_6_one_hung_call_stalls_no_other_lock(s3once, wire, locks, tmp_path, phase):
    """The other lock is renewed as usual: always more than half of its lease is left."""
    with Probe(s3once, tmp_path, 6000) as probe:
        begin_stuck(wire, probe, phase)
        until = time.monotonic() + 5
        while time.monotonic() < until:
            assert probe.call("left 0")[0] > 3000
            time.sleep(0.1)
        assert not probe.events("a")
        wire.clear()


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
    """Stopped for longer than a lease, while another takes it: suspect, expired and lost, each once."""
    run = s3once.start("lock", "run", "--lease", "2s", "--json", "k", "--", "sleep", "30")
    wait_until(lambda: "acquired" in run.output()[0], 60, "the lock")
    os.kill(run.pid, signal.SIGSTOP)
    other = s3once("lock", "acquire", "--lease", "20s", "--wait", "20s", "--owner", "other", "k")
    assert other.code == 0, other
    os.kill(run.pid, signal.SIGCONT)
    result = run.wait(60)
    assert result.code == LOST, result
    events = [event["event"] for event in result.events]
    assert events.count("suspect") == 1 and events.count("expired") <= 1 and events.count("lost") <= 1
    assert events.index("suspect") < max(events.index(name) for name in ("expired", "lost") if name in events)
    assert locks.row("k")["ownerName"] == {"S": "other"}


def test_trap_7_a_row_that_is_gone_after_the_lease_was_lost(s3once, wire, locks, tmp_path):
    """Stopped for longer than a lease, while another takes the lock, releases it, and the command ends."""
    script = "touch begun; while [ ! -e go ]; do sleep 0.1; done; touch ended"
    run = s3once.start("lock", "run", "--lease", "2s", "k", "--", "/bin/sh", "-c", f"cd {tmp_path}; {script}")
    wait_until((tmp_path / "begun").exists, 60, "the command")
    os.kill(run.pid, signal.SIGSTOP)
    assert s3once("lock", "run", "--lease", "20s", "--wait", "20s", "k", "--", "true").code == 0
    assert locks.row("k") is None
    (tmp_path / "go").touch()
    wait_until((tmp_path / "ended").exists, 60, "the end of the command")
    os.kill(run.pid, signal.SIGCONT)
    result = run.wait(60)
    assert result.code == LOST, result


@pytest.mark.threaded
@EVERY_PHASE
def test_trap_7_closing_waits_for_nobody(s3once, wire, locks, tmp_path, phase):
    """While a call for b hangs: a is kept, then released; the close ends in time; a second one says the same."""
    with Probe(s3once, tmp_path, 6000) as probe:
        begin_stuck(wire, probe, phase)
        time.sleep(0.5)
        result, ms, _ = probe.call("close 0 2000")
        assert result == (-5 if phase == "release" else 0) and ms < 20000
        assert locks.row("a") is None and not probe.events("a")
        wire.clear()
        assert probe.call("close 0 2000")[0] == 0
        # libcurl sends a request again whose kept connection was reset, so that it may still be applied and undone.
        if phase == "acquire":
            assert probe.answer("acquire 1 b")[0] == -errno.ECANCELED
        assert locks.row("b") is None


def test_trap_7_losing_races_does_not_lengthen_the_wait(s3once, wire, locks):
    """The row changes all the time: the wait ends when it was to end."""
    holder, stop = Foreign(locks, lease=1), threading.Event()
    assert holder.try_acquire("k")

    def beat():
        while not stop.wait(0.02):
            holder.heartbeat("k")

    thread = threading.Thread(target=beat)
    thread.start()
    run = s3once("lock", "acquire", "--lease", "4s", "--wait", "1500ms", "k")
    stop.set()
    thread.join()
    assert run.code == 4 and 1.4 < run.seconds < 20, run


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


FOREIGN = {"ownerName": {"S": "x"}, "recordVersionNumber": {"S": "v"}, "leaseDuration": {"S": "1h30m"}, "more": {"S": "!"}}


@EVERY_PHASE
@pytest.mark.parametrize("lease", [{"S": "1h30m"}, {"N": "1"}, {"S": "what"}])
def test_trap_8_a_row_of_another_library_is_left_alone(s3once, wire, locks, phase, lease):
    """One that came instead of ours, readable or not: seen by the next request, said who it is, not changed."""
    row = {**FOREIGN, "leaseDuration": lease}

    async def replace(x, rule):
        locks.put("k", row)
        x.fire(rule)
        await x.proxy.pass_on(x)

    rule = add(wire, replace, phase)
    run = run_through(s3once)
    assert rule.fired == 1 and run.code == (HELD if phase == "acquire" else LOST), run
    assert re.search(r"\bx\b", run.err) and locks.row("k") == row


def test_trap_9_no_time_to_live_in_a_go_table(s3once, dynamodb, table):
    s3once.environment["S3ONCE_LOCKS"] = f"dynamodb:{table}"
    run = s3once("lock", "init", "--dialect", "go", "--ttl", "expires")
    assert run.code == 2 and "copies unknown attributes" in run.err, run


@EVERY_PHASE
def test_trap_9_nothing_is_written_that_a_go_client_would_copy(s3once, dynamodb, table, phase):
    go = Table(dynamodb, s3once, table, "go")
    names = {"ownerName", "leaseDuration", "recordVersionNumber"}
    handle = s3once("lock", "acquire", "--dialect", "go", "--lease", "20s", "k").out.strip()
    if phase == "heartbeat":
        assert s3once("lock", "renew", "--dialect", "go", handle).code == 0
    elif phase == "release":
        assert s3once("lock", "release", "--dialect", "go", handle).code == 0
        names.add("isReleased")
    assert set(go.row("k")) == names
