"""`s3once lock`: what a shell sees of it, on both DynamoDB servers and in a file."""

import os
import re
import signal
import subprocess
import time

import pytest

from tests.faults import faults
from tests.faults.proxy import Proxy
from tests.system.harness import REPOSITORY, wait_until

COMMANDS = ["run", "acquire", "renew", "release", "status", "list", "break", "init"]


@pytest.fixture(params=["sqlite", "dynoxide", "dynalite"])
def place(request, s3once, tmp_path, table):
    """Locks are kept there; lock init was run."""
    if request.param == "sqlite":
        s3once.environment["S3ONCE_LOCKS"] = f"sqlite:{tmp_path}/locks.db"
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
    assert held.code == 4 and "held by anna" in held.err and not held.out
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


def test_break_only_the_holder_that_is_meant(s3once, place):
    handle = s3once("lock", "acquire", "--lease", "1m", "k").out.strip()
    (event,) = s3once("lock", "status", "--json", "k").events
    assert s3once("lock", "break", "--if-version", "another", "k").code == 4
    assert s3once("lock", "break", "k").code == 2
    assert s3once("lock", "break", "--if-version", event["version"], "k").code == 0
    assert s3once("lock", "renew", handle).code == 5
    assert s3once("lock", "acquire", "--lease", "1m", "--wait", "0", "k").code == 0


def test_short_commands_take_over_a_dead_lock(s3once, place):
    """Each only looks once; what they saw is kept between them."""
    assert s3once("lock", "acquire", "--lease", "2s", "k").code == 0
    begun = time.monotonic()
    wait_until(lambda: s3once("lock", "acquire", "--lease", "2s", "--wait", "0", "k").code == 0, 30, "the take-over")
    assert 1.9 < time.monotonic() - begun < 25


def test_run_passes_the_exit_code_on_and_tells_the_command(s3once, place):
    script = 'echo "$S3ONCE_LOCK_KEY $S3ONCE_LOCK_TOKEN"; test -p /proc/self/fd/$S3ONCE_LOCK_FD && exit 7'
    for token in (1, 2):
        run = s3once("lock", "run", "k", "--", "sh", "-c", script)
        assert (run.code, run.out) == (7, f"k {token}\n"), run
    assert s3once("lock", "run", "k", "--", "/no/such/program").code == 127
    assert s3once("lock", "run", "k", "--", "sh", "-c", "kill -9 $$").code == 128 + 9
    assert s3once("lock", "status", "k").code == 0


def test_usage(s3once, local):
    for argv in (["run", "k"], ["run"], ["acquire", "k"], ["status"], ["release"], ["renew", "x", "y"], ["no"], [],
                 ["run", "--lease", "10ms", "k", "--", "true"], ["status", "--dialect", "perl", "k"],
                 ["status", "--dialect", "go", "k"], ["release", "nonsense"], ["status", ""],
                 ["acquire", "--lease", "1m", "--release-by", "delete", "--tokens", "row", "k"]):
        run = s3once("lock", *argv)
        assert run.code == 2 and run.err, run
    assert s3once("lock", "status", "--locks", "dynamodb:nowhere", "k").code == 3


def test_one_command_at_a_time(s3once, place, tmp_path):
    """Eight at once: the journal never shows two inside."""
    script = f'echo begin >>{tmp_path}/j; sleep 0.05; echo end >>{tmp_path}/j'
    running = [s3once.start("lock", "run", "--lease", "10s", "k", "--", "sh", "-c", script) for _ in range(8)]
    assert [run.wait(120).code for run in running] == [0] * 8
    assert (tmp_path / "j").read_text().split() == ["begin", "end"] * 8


def start_holder(s3once, tmp_path, *options, script="sleep 60"):
    """A lock run whose command has begun: (Running, pid of the command)."""
    run = s3once.start("lock", "run", *options, "k", "--", "sh", "-c", f"echo $$ >{tmp_path}/pid; {script}")
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
    script = "trap 'echo got; exit 9' TERM; while :; do sleep 0.05; done"
    run, _ = start_holder(s3once, tmp_path, script=script)
    os.kill(run.pid, signal.SIGTERM)
    result = run.wait()
    assert (result.code, result.out) == (9, "got\n")
    assert s3once("lock", "status", "k").code == 0


def test_a_signal_ends_the_wait(s3once, local, tmp_path):
    holder, _ = start_holder(s3once, tmp_path)
    waiting = s3once.start("lock", "run", "k", "--", "true")
    time.sleep(0.3)
    os.kill(waiting.pid, signal.SIGINT)
    assert waiting.wait().code == 130
    os.kill(holder.pid, signal.SIGTERM)
    assert holder.wait().code == 128 + signal.SIGTERM


def test_kill_9_of_the_holder_ends_the_command(s3once, local, tmp_path):
    run, command = start_holder(s3once, tmp_path)
    os.kill(run.pid, signal.SIGKILL)
    wait_until(lambda: is_gone(command), 10, "the end of the command")
    run.popen.wait()


def test_the_command_has_a_group_of_its_own(s3once, local, tmp_path):
    run, command = start_holder(s3once, tmp_path)
    assert os.getpgid(command) == command != os.getpgid(run.pid)
    os.kill(run.pid, signal.SIGTERM)
    run.wait()


def test_loss_ends_the_command(s3once, place, tmp_path):
    """Broken by somebody: the pipe ends, SIGTERM, then SIGKILL of one that ignores it; exit 5."""
    script = f"trap 'echo term >>{tmp_path}/said' TERM; (trap '' TERM; cat <&$S3ONCE_LOCK_FD; echo eof >>{tmp_path}/said) & while :; do sleep 0.05; done"
    run, command = start_holder(s3once, tmp_path, "--lease", "2s", "--kill-after", "1s", script=script)
    (event,) = s3once("lock", "status", "--json", "k").events
    while s3once("lock", "break", "--if-version", event["version"], "k").code:
        (event,) = s3once("lock", "status", "--json", "k").events
    result = run.wait(30)
    assert result.code == 5 and "lost" in result.err, result
    assert is_gone(command)
    assert {"term", "eof"} <= set((tmp_path / "said").read_text().split())


def test_an_outage_longer_than_the_lease_ends_the_command(s3once, wire, tmp_path):
    run, command = start_holder(s3once, tmp_path, "--lease", "2s", "--json")
    wire.add(faults.refuse, times=None)
    result = run.wait(30)
    assert result.code == 5, result
    assert is_gone(command)
    kinds = [event["event"] for event in result.events]
    assert kinds[0] == "acquired" and kinds.count("suspect") == kinds.count("expired") == 1
    assert kinds.index("suspect") < kinds.index("expired") and kinds.count("outage") == 1


def test_an_outage_shorter_than_the_lease_is_survived(s3once, wire, tmp_path):
    run, _ = start_holder(s3once, tmp_path, "--lease", "4s", "--json", script="sleep 5")
    rule = wire.add(faults.refuse, times=None)
    wait_until(lambda: "suspect" in run.output()[0], 20, "suspicion")
    wire.clear()
    result = run.wait(30)
    assert result.code == 0 and rule.fired, result
    assert [event["event"] for event in result.events if event["event"] != "outage"] == ["acquired", "suspect", "recovered"]


def options_of(text):
    return set(re.findall(r"^ {2,6}(?:-\w, )?--([a-z0-9-]+)", text, re.M))


def test_help_and_man_name_the_same_options(s3once):
    page = (REPOSITORY / "docs" / "man" / "s3once-lock.1.scd").read_text()
    of_man = {name for line in page.splitlines() if line.startswith("*-") for name in re.findall(r"\*--([a-z0-9-]+)\*", line)}
    of_help = set()
    usage = s3once("lock", "--help").out
    for command in COMMANDS:
        names = options_of(s3once("lock", command, "--help").out)
        assert len(names) > 5 and re.search(rf"^  {command} ", usage, re.M) and f"*s3once lock {command}*" in page
        for name in names:
            assert "unknown option" not in s3once("lock", command, f"--{name}").err
        of_help |= names
    assert of_man == of_help


def test_the_tests_that_the_docs_name_exist():
    table = (REPOSITORY / "docs" / "locks.md").read_text().split("## What others do")[1].split("## What it costs")[0]
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


def test_every_public_function_is_in_the_man_page_or_said_to_be_in_the_header():
    page = (REPOSITORY / "docs" / "man" / "s3once_lock.3.scd").read_text()
    header = (REPOSITORY / "include" / "s3once" / "lock.h").read_text()
    functions = set(re.findall(r"^S3ONCE_PUBLIC[^;(]*?\b(s3once_\w+)\(", header, re.M))
    assert set(re.findall(r"\b(s3once_locks?_\w*[a-z])", page)) <= functions | set(re.findall(r"\b(s3once_locks?_\w+)", header))
    built = subprocess.run(["scdoc"], input=page.encode(), capture_output=True)
    assert built.returncode == 0, built.stderr
