"""`s3once lock`: what a shell sees of it, on both DynamoDB servers, in a bucket and in a file."""

import ctypes
import os
import re
import shlex
import signal
import sqlite3
import struct
import subprocess
import time

import pytest

from tests.faults import faults
from tests.faults.preloads import preload_library, preloaded
from tests.faults.proxy import Proxy
from tests.system.harness import REPOSITORY, wait_until
from tests.system.locking import FAILED, HELD, LOST, Probe, assert_renewed_by_two_at_once, locks_in_s3
from tests.system.test_lock_terminal import blocks, state_of


@pytest.fixture(params=["sqlite", "dynoxide", "dynalite", "s3"])
def place(request, s3once, tmp_path, table):
    """Locks are kept there; lock init was run."""
    if request.param == "sqlite":
        s3once.environment["S3ONCE_LOCKS"] = f"sqlite:{tmp_path}/locks.db"
    elif request.param == "s3":
        s3once.environment |= locks_in_s3(request.getfixturevalue("s3"), request.getfixturevalue("bucket"))
    else:
        server = request.getfixturevalue(request.param)
        s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = server.endpoint
        s3once.environment["S3ONCE_LOCKS"] = f"dynamodb:{table}"
    assert s3once("lock", "init").code == 0
    return request.param


@pytest.fixture
def local(s3once, tmp_path):
    s3once.environment["S3ONCE_LOCKS"] = f"sqlite:{tmp_path}/locks.db"


@pytest.fixture
def wire(dynamodb, s3once, table):
    """The wire proxy before a table of locks."""
    with Proxy(dynamodb, "dynamodb") as proxy:
        s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = proxy.endpoint
        s3once.environment["S3ONCE_LOCKS"] = f"dynamodb:{table}"
        assert s3once("lock", "init").code == 0
        proxy.begin_run()
        yield proxy
        proxy.clear()
        assert not proxy.failures


def test_life_of_a_lock(s3once, place):
    assert s3once("lock", "status", "k").code == 0
    run = s3once("lock", "acquire", "--lease", "1m", "--owner", "anna", "k")
    assert run.code == 0, run
    handle = run.out.strip()
    assert re.fullmatch(r"[\w-]+", handle)
    held = s3once("lock", "acquire", "--lease", "1m", "--wait", "0", "k")
    assert held.code == 4 and "k: held by anna" in held.err and not held.out
    status = s3once("lock", "status", "--json", "k")
    assert status.code == 4
    (event,) = status.events
    assert event["held"] and event["owner"] == "anna" and event["lease_ms"] == 60000
    assert [e["key"] for e in s3once("lock", "list", "--json", "--prefix", "k").events] == ["k"]
    assert s3once("lock", "list", "--json", "--prefix", "kk").events == []
    renewed = s3once("lock", "renew", "--json", "--for", "90s", handle)
    assert renewed.code == 0 and renewed.events[0]["remaining_ms"] >= 90000
    assert s3once("lock", "release", handle).code == 0
    assert s3once("lock", "release", handle).code == 5
    assert s3once("lock", "renew", handle).code == 5
    assert s3once("lock", "status", "k").code == 0


@pytest.mark.smoke
@pytest.mark.threaded
def test_every_command_once(s3once, dynamodb, table):
    s3once.environment["S3ONCE_LOCKS"] = f"dynamodb:{table}"
    assert s3once("lock", "init").code == 0
    handle = s3once("lock", "acquire", "--lease", "5m", "k").out.strip()
    assert s3once("lock", "renew", handle).code == 0
    (event,) = s3once("lock", "status", "--json", "k").events
    assert s3once("lock", "acquire", "--lease", "5m", "--wait", "0", "k").code == 4
    assert s3once("lock", "release", handle).code == 0
    handle = s3once("lock", "acquire", "--lease", "5m", "--slots", "2", "k").out.strip()
    assert len(s3once("lock", "list", "--json").events) == 1
    assert s3once("lock", "break", "--if-version", event["version"], "k").code in (0, 4)
    assert s3once("lock", "release", handle).code == 0


def test_tokens_go_on_growing_when_slots_are_added(s3once, place):
    tokens = []
    for slots in ("1", "1", "2", "3", "1"):
        (event,) = s3once("lock", "acquire", "--lease", "1m", "--slots", slots, "--json", "k").events
        tokens.append(event["token"])
        assert s3once("lock", "release", event["handle"]).code == 0
    assert tokens == sorted(set(tokens)), tokens


def test_status_of_slots(s3once, local):
    """Held only if all are; without --slots it is slot 0 that is looked at."""
    assert s3once("lock", "init").code == 0  # makes the file
    seen = []
    for _ in range(3):
        run = s3once("lock", "status", "--slots", "2", "--json", "k")
        seen.append((run.code, [event["key"] for event in run.events], sum(event["held"] for event in run.events)))
        s3once("lock", "acquire", "--lease", "1m", "--slots", "2", "--wait", "0", "k")
    assert seen == [(0, ["k", "k#1"], 0), (0, ["k", "k#1"], 1), (4, ["k", "k#1"], 2)]
    (event,) = s3once("lock", "status", "--json", "k#1").events
    assert s3once("lock", "break", "--if-version", event["version"], "k#1").code == 0
    assert s3once("lock", "status", "--slots", "2", "k").code == 0


def test_renewed_by_two_at_once(s3once, wire):
    """Neither calls lost what is held."""
    handle = s3once("lock", "acquire", "--lease", "5m", "k").out.strip()
    assert_renewed_by_two_at_once(s3once, handle, wire, "UpdateItem")


def test_the_lease_counts_from_before_it_was_asked_for(s3once, wire, tmp_path):
    """Others count from when they see the row, which may be long before the reply is here."""
    late = wire.add(faults.delay_reply(1.5), times=None)
    with Probe(s3once, tmp_path, lease_ms=60000) as probe:
        assert probe.call("acquire 1 k 20000")[0] == 0
        assert late.fired
        assert 0 < probe.call("left 1 -")[0] <= 60000 - 1500
        wire.clear()
        assert probe.call("release 1 -")[0] == 0


def test_the_wait_bounds_an_outage(s3once, wire):
    """Not the lease, which may be long."""
    wire.add(faults.refuse, times=None)
    run = s3once("lock", "acquire", "--lease", "20m", "--wait", "0", "k", timeout=300)
    assert run.code == 3 and run.seconds < 300, run


@pytest.mark.parametrize("where", ["dynamodb:nowhere", "s3://nowhere/locks"])
@pytest.mark.parametrize("words", [["run"], ["acquire", "--lease", "9s"]], ids=["run", "acquire"])
def test_the_lease_bounds_an_outage_in_every_place(s3once, where, words):
    """An endless wait is for a holder, not for a server that cannot be reached. Before the end a line names the cause."""
    lease, command = (20, ["--", "true"]) if words == ["run"] else (9, [])
    nobody = dict.fromkeys(("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_DYNAMODB"), "http://127.0.0.1:1")
    run = s3once("lock", *words, "--locks", where, "k", *command, env=nobody, timeout=100)
    assert run.code == (FAILED if words == ["run"] else 3) and lease - 1 < run.seconds < lease + 20, run
    warning, error = run.err.splitlines()
    assert "warning: lock k: cannot connect to 127.0.0.1:1" in warning and f"; trying again for up to {lease} s" in warning, run
    assert "error: lock: after" in error and "cannot connect to 127.0.0.1:1" in error, run


def test_the_wait_bounds_how_often_a_request_is_tried(s3once, wire):
    """Not the number of attempts, which is for calls that have no such limit."""
    rule = wire.add(faults.answer(500, "InternalServerError"), "UpdateItem", times=4)
    run = s3once("lock", "acquire", "--lease", "1m", "--wait", "1m", "k", env={"AWS_MAX_ATTEMPTS": "2"})
    assert run.code == 0 and rule.fired == 4, run


def test_an_acquisition_that_is_stopped_leaves_no_lock(s3once, wire):
    """Its row was written and the reply has not come: nobody has to wait until the lease expires."""
    rule = wire.add(faults.hang_applied, "UpdateItem")
    acquiring = s3once.start("lock", "run", "--lease", "1h", "k", "--", "true")
    wait_until(lambda: rule.fired)
    acquiring.popen.send_signal(signal.SIGTERM)
    assert acquiring.wait(60).code == 143
    assert s3once("lock", "status", "k").code == 0


def test_a_setting_that_is_wrong(s3once, local):
    """3 and an event, as of all that is not in order; a place that is none is usage, for doctor too."""
    run = s3once("lock", "status", "--json", "--locks", "dynamodb:t", "k", env={"AWS_RETRY_MODE": "bogus"})
    assert run.code == 3 and [event["event"] for event in run.events] == ["failed"], run
    assert s3once("doctor", "--marks", "bogus").code == 2


def test_observations_that_cannot_be_kept(s3once, local):
    """Without a state folder, each short wait begins to observe the holder anew: it says so, and what notices a dead one."""
    assert s3once("lock", "acquire", "--lease", "1m", "k").code == 0
    run = s3once("lock", "acquire", "--lease", "1m", "--wait", "0", "k", env={"HOME": "/dev/null", "XDG_STATE_HOME": None})
    assert run.code == 4 and "only a wait of more than 60 s notices a dead holder" in run.err, run
    assert "notices a dead holder" not in s3once("lock", "acquire", "--lease", "1m", "--wait", "0", "k").err


def test_break_only_the_holder_that_is_meant(s3once, place):
    handle = s3once("lock", "acquire", "--lease", "1m", "k").out.strip()
    (event,) = s3once("lock", "status", "--json", "k").events
    assert s3once("lock", "break", "--if-version", "another", "k").code == 4
    assert s3once("lock", "break", "k").code == 2
    assert s3once("lock", "break", "--if-version", event["version"], "k").code == 0
    run = s3once("lock", "break", "--if-version", event["version"], "mistyped")
    assert run.code == 0 and "warning: lock break: mistyped: nobody holds it: nothing was broken" in run.err, run
    assert s3once("lock", "renew", handle).code == 5
    assert s3once("lock", "acquire", "--lease", "1m", "--wait", "0", "k").code == 0


def test_short_commands_take_over_a_dead_lock(s3once, place):
    """Each only looks once; what they saw is kept between them."""
    assert s3once("lock", "acquire", "--lease", "2s", "k").code == 0
    begun = time.monotonic()
    wait_until(lambda: s3once("lock", "acquire", "--lease", "2s", "--wait", "0", "k").code == 0, 30, "the take-over")
    assert 1.9 < time.monotonic() - begun < 25


def test_status_shows_a_dead_holder_once_it_is_known(s3once, local):
    """Another user, who has not seen the row before, cannot tell a dead holder from a living one."""
    assert s3once("lock", "acquire", "--lease", "2s", "--owner", "anna", "k").code == 0
    assert "not renewed" not in s3once("lock", "status", "k").out
    time.sleep(2.1)
    assert re.match(r"k: held by anna, lease 2s, not renewed for \d+s: the next one takes it over, ", s3once("lock", "status", "k").out)
    assert "not renewed" not in s3once("lock", "status", "k", env={"XDG_STATE_HOME": str(s3once.folder / "other")}).out
    assert s3once("lock", "acquire", "--lease", "2s", "--wait", "0", "k").code == 0


def test_run_passes_the_exit_code_on_and_tells_the_command(s3once, place):
    script = 'echo "$S3ONCE_LOCK_KEY $S3ONCE_LOCK_TOKEN"; test -p /proc/self/fd/$S3ONCE_LOCK_FD && exit 7'
    for token in (1, 2):
        run = s3once("lock", "run", "k", "--", "sh", "-c", script)
        assert (run.code, run.out) == (7, f"k {token}\n"), run
    assert s3once("lock", "run", "k", "--", "/no/such/program").code == 127
    assert s3once("lock", "run", "k", "--", "/etc/passwd").code == 126
    assert s3once("lock", "run", "k", "--", "sh", "-c", "exec 2>/dev/full; exec $s3once lock run other -- /no/such/program",
                  env={"s3once": str(s3once.binary())}).code == 127
    assert s3once("lock", "run", "k", "--", "sh", "-c", "kill -9 $$").code == 128 + 9
    assert s3once("lock", "status", "k").code == 0
    nested = ["lock", "run", "inner", "--", "sh", "-c", 'echo "$S3ONCE_LOCK_KEY" "$@"', "sh", "--", "A=b"]
    assert s3once("lock", "run", "outer", "--", s3once.binary(), *nested).out == "inner -- A=b\n"


@pytest.mark.parametrize("status", [*range(1, 7), LOST, HELD, FAILED])
def test_run_is_no_obstacle_to_an_exit_status(s3once, local, status):
    """Not to one that this program has in other commands, either."""
    assert s3once("lock", "run", "k", "--", "sh", "-c", f"exit {status}").code == status


def test_run_has_exit_statuses_of_its_own(s3once, local):
    """A script can tell a failure of the lock from one of its command, which is not started."""
    assert s3once("lock", "acquire", "--lease", "1m", "held").code == 0
    for code, words in ((HELD, ["--wait", "0", "held"]), (FAILED, ["--locks", "dynamodb:nowhere", "--profile", "nobody", "k"]), (FAILED, ["--no-such", "k"])):
        run = s3once("lock", "run", "--json", *words, "--", "echo", "started")
        assert run.code == code and "started" not in run.out, run
        assert [event["exit"] for event in run.events] == ([] if "--no-such" in words else [code]), run


def test_usage(s3once, local, tmp_path):
    assert s3once("lock", "init").code == 0  # a command about a lock that is there already makes no file
    for argv in (["run", "k"], ["run"], ["acquire", "k"], ["status"], ["release"], ["renew", "x", "y"], ["no"], [],
                 ["run", "--lease", "10ms", "k", "--", "true"], ["status", "--dialect", "perl", "k"],
                 ["status", "--dialect", "go", "k"], ["release", "nonsense"], ["status", ""],
                 ["acquire", "--lease", "1m", "--release-by", "delete", "--tokens", "row", "k"],
                 ["status", "--locks", "sqlite:", "k"], ["status", "--locks", "sqlite::memory:", "k"], ["init", "=x"]):
        run = s3once("lock", *argv)
        assert run.code == (FAILED if argv[:1] == ["run"] else 2) and run.err, run
    # Without its KEY, a command would run under a lock that has the command's name, and exclude nobody.
    for argv in (["--", "echo", "x"], ["--", "echo"], ["echo", "x"], ["k", "echo", "--", "x"], ["k", "--"], ["--", "k", "--"]):
        run = s3once("lock", "run", *argv)
        assert run.code == FAILED and "--" in run.err and not run.out, run
    run = s3once("lock", "init", "dynamodb:locks")
    assert run.code == 2 and "'dynamodb:locks' is not a tag (NAME=VALUE): name the table or the bucket by --locks" in run.err, run
    assert s3once("lock", "list").out == ""
    s3once("lock", "init", "--locks", f"sqlite:{tmp_path}/other.db", "tag")
    assert not (tmp_path / "other.db").exists()
    assert s3once("lock", "status", "--locks", "dynamodb:nowhere", "k", env={"AWS_MAX_ATTEMPTS": "1"}).code == 3
    run = s3once("lock", "status", "--locks", "dynamodb:nowhere", "--profile", "nobody", "k")
    assert run.code == 3 and "nobody" in run.err, run
    run = s3once("lock", "status", "k", env={"S3ONCE_LOCKS": ""})
    assert run.code == 0 and "locks are kept in a file of this user" in run.err, run


def test_one_command_at_a_time(s3once, place, tmp_path):
    """Eight at once: the journal never shows two inside."""
    script = f'echo begin >>{tmp_path}/j; sleep 0.05; echo end >>{tmp_path}/j'
    running = [s3once.start("lock", "run", "--lease", "10s", "k", "--", "sh", "-c", script) for _ in range(8)]
    assert [run.wait(120).code for run in running] == [0] * 8
    assert (tmp_path / "j").read_text().split() == ["begin", "end"] * 8


def start_holder(s3once, tmp_path, *options, script="sleep 60", trap="", env=None):
    """A lock run whose command has begun and has set its trap: (Running, pid of the command)."""
    line = f"{trap or ':'}; echo $$ >{tmp_path}/pid; {script}"
    run = s3once.start("lock", "run", *options, "k", "--", "sh", "-c", line, env=env)
    text = wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip(), 30, "the command")
    (tmp_path / "pid").unlink()
    return run, int(text)


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_signals_are_forwarded(s3once, local, tmp_path):
    trap, script = "trap 'echo got; exit 9' TERM", "while :; do sleep 0.05; done"
    run, _ = start_holder(s3once, tmp_path, script=script, trap=trap)
    os.kill(run.pid, signal.SIGTERM)
    result = run.wait()
    assert (result.code, result.out) == (9, "got\n")
    assert s3once("lock", "status", "k").code == 0


def test_a_stop_is_forwarded_and_the_lock_kept(s3once, local, tmp_path):
    """SIGTSTP stops the command and not the heartbeats; SIGCONT lets it go on."""
    run, command = start_holder(s3once, tmp_path, "--lease", "3s", script="sleep 600 & wait")
    os.kill(run.pid, signal.SIGTSTP)
    wait_until(lambda: state_of(command) == "T", 60, "the stop")
    assert s3once("lock", "acquire", "--lease", "2s", "--wait", "4s", "k").code == 4
    os.kill(run.pid, signal.SIGCONT)
    wait_until(lambda: state_of(command) != "T", 60, "the command to go on")
    os.kill(run.pid, signal.SIGTSTP)
    wait_until(lambda: state_of(command) == "T", 60, "the stop")
    os.kill(run.pid, signal.SIGTERM)  # one that is stopped ends all the same
    assert run.wait().code == 128 + signal.SIGTERM


def test_a_signal_ends_the_wait(s3once, local, tmp_path):
    holder, _ = start_holder(s3once, tmp_path)
    waiting = s3once.start("lock", "run", "k", "--", "true")
    wait_until(lambda: blocks(waiting.pid, signal.SIGINT), 30, "the wait to begin")
    os.kill(waiting.pid, signal.SIGINT)
    assert waiting.wait().code == 130
    os.kill(holder.pid, signal.SIGTERM)
    assert holder.wait().code == 128 + signal.SIGTERM


@pytest.mark.parametrize("words", [["run"], ["acquire", "--lease", "9s"]], ids=["run", "acquire"])
def test_a_wait_names_the_holder(s3once, local, tmp_path, words):
    holder, _ = start_holder(s3once, tmp_path, "--owner", "the backup")
    held = HELD if words == ["run"] else 4
    run = s3once("lock", *words, "--wait", "2s", "k", *(["--", "true"] if words == ["run"] else []))
    assert run.code == held and run.err.count("note: waiting for lock k: held by the backup") == 1, run
    run = s3once("lock", *words, "--wait", "0", "k", *(["--", "true"] if words == ["run"] else []))
    assert run.code == held and "waiting" not in run.err, run
    os.kill(holder.pid, signal.SIGTERM)
    assert holder.wait().code == 128 + signal.SIGTERM


def test_a_signal_that_is_ignored_stays_so(s3once, local, tmp_path):
    """nohup: neither the wait nor the command ends by SIGHUP."""
    holder, _ = start_holder(s3once, tmp_path)
    argv = [str(s3once.binary()), "lock", "run", "k", "--", "sh", "-c", "kill -HUP $$ $PPID; exit 7"]
    waiting = subprocess.Popen(
        argv, env=s3once.environment, stdin=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    )
    try:
        wait_until(lambda: blocks(waiting.pid, signal.SIGTERM), 60, "the wait to begin")
        os.kill(waiting.pid, signal.SIGHUP)
        os.kill(holder.pid, signal.SIGTERM)
        assert holder.wait().code == 128 + signal.SIGTERM
        assert waiting.wait(60) == 7
    finally:
        waiting.kill()
        waiting.wait()


def test_a_wait_can_be_stopped_and_goes_on(s3once, local, tmp_path):
    """Ctrl-Z while the lock is another's."""
    holder, _ = start_holder(s3once, tmp_path)
    waiting = s3once.start("lock", "run", "k", "--", "echo", "got it")
    wait_until(lambda: blocks(waiting.pid, signal.SIGTSTP), 60, "the wait to begin")
    os.kill(waiting.pid, signal.SIGTSTP)
    wait_until(lambda: state_of(waiting.pid) == "T", 60, "the stop")
    os.kill(holder.pid, signal.SIGTERM)
    assert holder.wait().code == 128 + signal.SIGTERM
    os.kill(waiting.pid, signal.SIGCONT)
    result = waiting.wait(60)
    assert (result.code, result.out) == (0, "got it\n")


def test_kill_9_of_the_holder_ends_the_command(s3once, local, tmp_path):
    run, command = start_holder(s3once, tmp_path)
    os.kill(run.pid, signal.SIGKILL)
    wait_until(lambda: is_gone(command), 60, "the end of the command")
    run.popen.wait()


def test_the_command_has_a_group_of_its_own(s3once, local, tmp_path):
    run, command = start_holder(s3once, tmp_path)
    assert os.getpgid(command) == command != os.getpgid(run.pid)
    os.kill(run.pid, signal.SIGTERM)
    run.wait()


def test_loss_ends_the_command(s3once, place, tmp_path):
    """Broken by somebody: the pipe ends, SIGTERM, then SIGKILL of one that ignores it."""
    child = f"trap '' TERM; touch {tmp_path}/ready; cat <&$S3ONCE_LOCK_FD; echo eof >>{tmp_path}/said"
    trap = f"trap 'echo term >>{tmp_path}/said' TERM; ({child}) & while [ ! -e {tmp_path}/ready ]; do sleep 0.05; done"
    script = "while :; do sleep 0.05; done"
    run, command = start_holder(s3once, tmp_path, "--lease", "2s", "--kill-after", "3s", script=script, trap=trap)
    break_it(s3once)
    result = run.wait(60)
    assert result.code == LOST and "lost" in result.err, result
    assert is_gone(command)
    assert {"term", "eof"} <= set((tmp_path / "said").read_text().split())


def test_a_command_that_succeeds_after_the_loss_has_no_success(s3once, local, tmp_path):
    script = "while :; do sleep 0.05; done"
    run, _ = start_holder(s3once, tmp_path, "--lease", "2s", script=script, trap="trap 'exit 0' TERM")
    break_it(s3once)
    result = run.wait(60)
    assert result.code == LOST and "lost" in result.err, result


def break_it(s3once, key="k"):
    """Takes the lock from its holder, whatever heartbeat comes between."""
    (event,) = s3once("lock", "status", "--json", key).events
    while s3once("lock", "break", "--if-version", event["version"], key).code:
        (event,) = s3once("lock", "status", "--json", key).events


@pytest.fixture(params=["init", "nobody"])
def reaper(request):
    """Reaps processes whose parent has ended, as the first process of a container often fails to do."""
    is_subreaper = 36  # PR_SET_CHILD_SUBREAPER: they come to this process instead, which does not wait for them either
    prctl = ctypes.CDLL(None).prctl
    prctl(is_subreaper, int(request.param == "nobody"), 0, 0, 0)
    yield
    prctl(is_subreaper, 0, 0, 0, 0)


def test_children_of_a_lost_command_may_end_by_themselves(s3once, local, tmp_path, reaper):
    """It gets SIGTERM as well, and all of --kill-after, although the command itself ends at once."""
    child = f"trap 'touch {tmp_path}/asked; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; touch {tmp_path}/done; exit' TERM; touch {tmp_path}/ready"
    script = f"({child}; while :; do sleep 0.02; done) & while [ ! -e {tmp_path}/ready ]; do sleep 0.02; done; exec sleep 60"
    run, command = start_holder(s3once, tmp_path, "--lease", "2s", "--kill-after", "600s", script=script)
    wait_until((tmp_path / "ready").exists, 60, "the command's child")
    break_it(s3once)
    wait_until(lambda: (tmp_path / "asked").exists() and is_gone(command), 60, "the end of the command")
    (tmp_path / "go").touch()
    assert run.wait(60).code == LOST
    assert (tmp_path / "done").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="a command that becomes another user needs root")
def test_a_command_that_cannot_be_ended_is_told(s3once, local, tmp_path):
    """It belongs to another user, as after sudo: the lock is lost, and the command continues."""
    without = ["setpriv", "--bounding-set=-kill", "--inh-caps=-kill"]
    other = ["setpriv", "--reuid=65534", "--clear-groups", "sh", "-c", "echo $$; exec sleep 60"]
    run = s3once.start("lock", "run", "--lease", "2s", "k", "--", *other, wrap=without)
    command = int(wait_until(lambda: run.output()[0].strip(), 60, "the command"))
    try:
        break_it(s3once)
        wait_until(lambda: "runs as another user" in run.output()[1], 60, "the sentence")
    finally:
        os.kill(command, signal.SIGKILL)
    result = run.wait(60)
    assert result.code == LOST and result.err.count("another user") == 1, result


def test_a_file_removed_under_way_ends_the_command(s3once, local, tmp_path):
    """Others lock another file from then on: lost, at a heartbeat, at the release, and for one that waits."""
    remove = f"rm {tmp_path}/locks.db*"
    run, command = start_holder(s3once, tmp_path, "--lease", "2s", script=f"{remove}; sleep 60")
    result = run.wait(60)
    assert result.code == LOST and "removed or replaced" in result.err, result
    assert is_gone(command)
    run = s3once("lock", "run", "k", "--", "sh", "-c", remove)
    assert run.code == LOST and "removed or replaced" in run.err, run
    holder, _ = start_holder(s3once, tmp_path)
    waiting = s3once.start("lock", "run", "k", "--", "true")
    wait_until(lambda: blocks(waiting.pid, signal.SIGTERM), 60, "the wait to begin")
    os.rename(tmp_path / "locks.db", tmp_path / "moved.db")
    os.kill(holder.pid, signal.SIGTERM)
    assert holder.wait().code == LOST
    assert waiting.wait(60).code in (0, FAILED)  # 0: it opened the new file


def test_an_outage_longer_than_the_lease_ends_the_command(s3once, wire, tmp_path):
    run, command = start_holder(s3once, tmp_path, "--lease", "2s", "--json")
    wire.add(faults.refuse, times=None)
    result = run.wait(60)
    assert result.code == LOST, result
    assert is_gone(command)
    kinds = [event["event"] for event in result.events]
    assert kinds[0] == "acquired" and kinds.count("suspect") == kinds.count("expired") == 1
    assert kinds.index("suspect") < kinds.index("expired") and kinds.count("outage") == 1


ENDS = {"well": "exit 0", "with a status": "exit 7", "by the signal": "trap - TERM; kill $$", "never": "while :; do sleep 0.05; done"}


@pytest.mark.parametrize("end", ENDS)
def test_an_outage_that_ends_while_the_command_is_ended(s3once, wire, tmp_path, end):
    """No other client had the lock, and it recovers. But it was not held for certain all the time, so it counts as lost, however the
    command ends; and a command that does not end is killed."""
    asked, go = tmp_path / "asked", tmp_path / "go"
    trap = f"trap 'cat <&$S3ONCE_LOCK_FD; touch {asked}; while [ ! -e {go} ]; do sleep 0.02; done; {ENDS[end]}' TERM"
    kill_after = "15s" if end == "never" else "600s"
    run, command = start_holder(
        s3once, tmp_path, "--lease", "2s", "--kill-after", kill_after, "--json", trap=trap, script="while :; do sleep 0.05; done"
    )
    wire.add(faults.refuse, times=None)
    wait_until(asked.exists, 60, "SIGTERM and the end of the descriptor")
    wire.clear()
    wait_until(lambda: "recovered" in run.output()[0], 60, "the next heartbeat")
    go.touch()
    result = run.wait(60)
    assert result.code == LOST, result
    assert is_gone(command)
    kinds = [event["event"] for event in result.events]
    assert "recovered" in kinds[kinds.index("expired") :] and "lost" not in kinds
    assert s3once("lock", "status", "k").code == 0, "released"


STOPPED = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
open("begun.new", "w").write(str(os.getpid()))
os.rename("begun.new", "begun")
while True:
    was_stopped = os.path.exists("stopped")
    if signal.SIGTERM in signal.sigpending():
        break
    if was_stopped:
        open("worked", "w").close()
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
"""


def test_a_stopped_command_does_not_go_on_without_the_lock(s3once, local, tmp_path):
    """SIGCONT to lock run comes when the lease has just run out, as after a suspend: the command wakes to its end."""
    clock = tmp_path / "clock"
    clock.write_bytes(struct.pack("q", 0))
    environment = preloaded(s3once, preload_library(), S3ONCE_TEST_BOOTTIME=clock)
    script = f"cd {tmp_path}; exec /usr/bin/python3 -c '{STOPPED}'"
    run = s3once.start("lock", "run", "--lease", "20s", "k", "--", "sh", "-c", script, env=environment)
    wait_until((tmp_path / "begun").exists, 60, "the command")
    command = int((tmp_path / "begun").read_text())
    os.kill(command, signal.SIGSTOP)
    wait_until(lambda: state_of(command) == "T", 60, "the stop")
    (tmp_path / "stopped").touch()
    clock.write_bytes(struct.pack("q", 3600))
    os.kill(run.pid, signal.SIGCONT)
    result = run.wait(60)
    assert result.code == LOST and not (tmp_path / "worked").exists(), result


def test_an_outage_shorter_than_the_lease_is_survived(s3once, wire, tmp_path):
    run, _ = start_holder(s3once, tmp_path, "--lease", "8s", "--json", script=f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done")
    rule = wire.add(faults.refuse, times=None)
    wait_until(lambda: "suspect" in run.output()[0], 30, "suspicion")
    wire.clear()
    wait_until(lambda: "recovered" in run.output()[0], 30, "the next heartbeat")
    (tmp_path / "go").touch()
    result = run.wait(60)
    assert result.code == 0 and rule.fired, result
    assert [event["event"] for event in result.events if event["event"] != "outage"] == ["acquired", "suspect", "recovered"]


def test_a_table_deleted_under_way_ends_the_command(s3once, dynamodb, wire, table, tmp_path):
    """The lock can be shown to nobody: ended when the lease is over, not before, and never exit 0."""
    run, command = start_holder(s3once, tmp_path, "--lease", "2s")
    dynamodb.client.delete_table(TableName=table)
    result = run.wait(60)
    assert result.code == LOST and "table does not exist" in result.err, result
    assert is_gone(command)
    assert s3once("lock", "status", "k").code == 3
    assert s3once("lock", "acquire", "--lease", "2s", "--wait", "1s", "k").code == 3


@pytest.mark.parametrize("taken", [False, True])
def test_a_suspended_holder_ends_its_command(s3once, local, tmp_path, taken):
    """CLOCK_BOOTTIME alone jumps, as after a suspend: the lease has run out, whether or not another has the lock by now."""
    clock = tmp_path / "clock"
    clock.write_bytes(struct.pack("q", 0))
    environment = preloaded(s3once, preload_library(), S3ONCE_TEST_BOOTTIME=clock)
    run = s3once.start("lock", "run", "--lease", "20s", "--json", "k", "--", "sleep", "60", env=environment)
    wait_until(lambda: "acquired" in run.output()[0], 60, "the lock")
    if taken:
        (event,) = s3once("lock", "status", "--json", "k").events
        assert s3once("lock", "break", "--if-version", event["version"], "k").code == 0
    clock.write_bytes(struct.pack("q", 3600))
    result = run.wait(60)
    assert result.code == LOST and result.seconds < 15, result
    kinds = [event["event"] for event in result.events]
    assert kinds.count("suspect") == 1 and kinds.count("lost") <= 1 and kinds.count("expired") <= 1
    assert "warning: lock run: k: " in result.err and "; the command is ended" in result.err, result
    assert ("lost" in kinds and taken) or "expired" in kinds


def test_descriptors_that_are_closed_stay_so(s3once, local):
    """Whichever of the three is closed, the command's descriptor of the lock is none of them."""
    command = shlex.join([str(s3once.binary()), "lock", "run", "k", "--", "sh", "-c", "test $S3ONCE_LOCK_FD -gt 2; exit $?"])
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        assert subprocess.run(["sh", "-c", f"{command} {closed}"], env=s3once.environment, timeout=60).returncode == 0


def test_a_handle_that_cannot_be_printed_is_no_lock(s3once, local):
    command = shlex.join([str(s3once.binary()), "lock", "acquire", "--lease", "1m", "k"])
    for more in ("", " --json"):
        done = subprocess.run(["sh", "-c", f"{command}{more} >/dev/full"], env=s3once.environment, capture_output=True, timeout=60)
        assert done.returncode == 3 and b"released again" in done.stderr
        assert s3once("lock", "status", "k").code == 0


def test_failed_output_is_reported(s3once, local):
    """Whatever value errno has when the program ends."""
    assert s3once("lock", "acquire", "--lease", "1m", "held").code == 0
    for words, code in (["run", "--json", "k", "--", "true"], FAILED), (["list", "--json"], 1), (["status", "k"], 1), (["status", "held"], 4):
        command = shlex.join([str(s3once.binary()), "lock", *words])
        done = subprocess.run(["sh", "-c", f"{command} >/dev/full"], env=s3once.environment, capture_output=True, timeout=60)
        assert done.returncode == code and b"cannot write to standard output" in done.stderr and b"ioctl" not in done.stderr


def test_the_command_is_as_it_would_be_without_the_lock(s3once, local):
    """Its limits, and the signals that it is killed by: pipes that end must end it."""
    command = shlex.join([str(s3once.binary()), "lock", "run", "k", "--"])
    look = "ulimit -n; ulimit -H -c; (ulimit -f 0; echo x >$HOME/f); echo full $?; (yes 2>&1; echo ended by $? >&2) | head -1"
    seen = []
    for lock in (command, ""):
        script = f"ulimit -S -n 200; exec {lock} sh -c {shlex.quote(look)}"
        done = subprocess.run(["sh", "-c", script], env=s3once.environment, capture_output=True, text=True, timeout=60)
        seen.append((done.returncode, done.stdout, done.stderr))
    assert seen[0] == seen[1] and "full 153" in seen[0][1] and "ended by 141" in seen[0][2], seen


def test_too_few_descriptors_are_told(s3once, local):
    command = shlex.join([str(s3once.binary()), "lock", "run", "k", "--", "true"])
    codes = []
    for n in range(5, 20, 2):
        done = subprocess.run(["sh", "-c", f"ulimit -n {n}; exec {command}"], env=s3once.environment, capture_output=True, timeout=60)
        assert done.returncode == 0 or (done.returncode == FAILED and done.stderr), (n, done)
        codes.append(done.returncode)
    assert codes[0] == FAILED and codes == sorted(codes, reverse=True)


def test_a_key_may_begin_with_a_dash(s3once, local):
    run = s3once("lock", "run", "--", "-k", "--", "sh", "-c", 'echo "$S3ONCE_LOCK_KEY"')
    assert (run.code, run.out) == (0, "-k\n")
    assert s3once("lock", "run", "--", "-k", "--").code == FAILED


def test_the_tests_that_the_docs_name_exist():
    table = (REPOSITORY / "docs" / "locks.md").read_text().split("## Comparison with other lock clients")[1].split("## What it costs")[0]
    rows = [row for row in table.split("\n") if row.startswith("| ") and "shown by" not in row]
    assert len(rows) == 19
    for row in rows:
        cell = row.split("|")[-2]
        named = re.findall(r"([\w/]+\.(?:py|c))((?:,? `test_\w+`)+)", cell)
        assert named, row
        for path, tests in named:
            text = (REPOSITORY / "tests" / path).read_text()
            for test in re.findall(r"test_\w+", tests):
                assert re.search(rf"\b{test}\(", text), (path, test)


def test_a_handle_without_a_row_names_the_lock_and_the_place(s3once, tmp_path):
    options = ["--locks", f"sqlite:{tmp_path}/locks.db"]
    handle = s3once("lock", "acquire", "--lease", "10m", *options, "nightly").out.strip()
    assert s3once("lock", "release", *options, handle).code == 0
    with sqlite3.connect(tmp_path / "locks.db") as database:
        database.execute("DELETE FROM items")
    run = s3once("lock", "release", *options, handle)
    assert run.code == 5 and f"the lock 'nightly' has no row in {tmp_path}/locks.db: it was released, or" in run.err, run
