"""If no one reads the output, files are still uploaded, no claim is held for long, and the run can be stopped."""

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.system.harness import make_tree, wait_until
from tests.system.locking import LOST
from tests.system.pushing import sessions_of


@pytest.fixture
def full_pipe():
    """The end to write to of a pipe that nobody reads and that takes not one byte more."""
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, 4096)
    try:
        while True:
            os.write(writes, b"x")
    except BlockingIOError:
        pass
    os.set_blocking(writes, True)
    yield writes
    os.close(writes)
    os.close(reads)


@pytest.fixture
def start(s3once):
    started = []

    def begin(*words, stdout, stderr, env=None):
        argv = [str(s3once.binary()), *map(str, words)]
        environment = {**s3once.environment, **(env or {})}
        started.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=environment))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.threaded
@pytest.mark.parametrize("both", [False, True], ids=["stdout", "stderr too"])
def test_all_files_go_up_and_a_stop_ends_it(s3once, s3, bucket, marks, start, full_pipe, tmp_path, both):
    tree = make_tree(tmp_path / "tree", {f"{n:02}": n for n in range(30)})
    errors = tmp_path / "errors"
    with open(errors, "wb") as file:
        run = start("push", tree, f"s3://{bucket}/p", "--json", "-v", stdout=full_pipe, stderr=full_pipe if both else file)
    wait_until(lambda: [row["state"] for row in sessions_of(marks)] == ["ended"], 60, "the end of the session")
    assert len(s3.objects(bucket)) == 30
    assert run.poll() is None  # it waits for its reader
    run.send_signal(signal.SIGTERM)
    assert run.wait(60) == 1
    assert both or "lines were lost" in errors.read_text()


def test_a_reader_that_comes_late_has_all(s3once, bucket, marks, start, tmp_path):
    tree = make_tree(tmp_path / "tree", {f"{n:02}": n for n in range(30)})
    reads, writes = os.pipe()
    fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, 4096)
    run = start("push", tree, f"s3://{bucket}/p", "--json", stdout=writes, stderr=subprocess.DEVNULL)
    os.close(writes)
    wait_until(lambda: [row["state"] for row in sessions_of(marks)] == ["ended"], 60, "the end of the session")
    with os.fdopen(reads) as file:
        lines = file.read().splitlines()
    assert sum('"event":"uploaded"' in line for line in lines) == 30 and '"event":"summary"' in lines[-1]
    assert run.wait(60) == 0


def calls_of(pid):
    """The system calls that the threads of the process are in, as /proc has them."""
    calls = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            calls.append((task / "syscall").read_text())
    return calls


def writes(pid):
    """Whether a thread of the process is in a write to standard output."""
    return any(call.startswith("1 0x1 ") for call in calls_of(pid))


def test_gc_ends_at_a_signal(s3once, bucket, marks, start, full_pipe, tmp_path):
    """It waits for its reader as long as it takes, but not against the user's will."""
    tree = make_tree(tmp_path / "tree", {"a": 1})
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    run = start("gc", f"s3://{bucket}", stdout=full_pipe, stderr=full_pipe)
    wait_until(lambda: writes(run.pid), 60, "its first line")
    run.send_signal(signal.SIGTERM)
    assert run.wait(30) != 0


@pytest.mark.parametrize("words", [[], ["--json"]], ids=["people", "json"])
def test_a_lost_lock_ends_its_command(s3once, start, full_pipe, tmp_path, words):
    """The command is ended before anybody has read that the lock is lost, and the exit code says so."""
    s3once.environment["S3ONCE_LOCKS"] = f"sqlite:{tmp_path}/locks.db"
    trap = f"exec 2>/dev/null; trap 'touch {tmp_path}/ended; exit' TERM"
    script = f"{trap}; touch {tmp_path}/begun; while :; do sleep 0.05; done"
    command = ["lock", "run", "--lease", "2s", *words, "k", "--", "sh", "-c", script]
    run = start(*command, stdout=full_pipe, stderr=full_pipe)
    wait_until((tmp_path / "begun").exists, 60, "the command")
    for file in tmp_path.glob("locks.db*"):
        file.rename(tmp_path / f"moved-{file.name}")
    wait_until((tmp_path / "ended").exists, 60, "the end of the command")
    assert run.wait(60) == LOST


def test_a_signal_ends_a_wait_for_a_lock_that_nobody_reads_of(s3once, start, full_pipe, tmp_path):
    s3once.environment["S3ONCE_LOCKS"] = f"sqlite:{tmp_path}/locks.db"
    assert s3once("lock", "acquire", "--lease", "1h", "k").code == 0
    run = start("lock", "run", "k", "--", "true", stdout=full_pipe, stderr=full_pipe)
    wait_until(lambda: any(call.startswith("1 0x2 ") for call in calls_of(run.pid)), 60, "its note of the holder")
    run.send_signal(signal.SIGTERM)
    assert run.wait(60) == 143


def is_pending(pid, number):
    """Whether a process has been sent a signal that it has not taken yet."""
    with open(f"/proc/{pid}/status") as file:
        masks = [int(line.split()[1], 16) for line in file if line.startswith(("SigPnd:", "ShdPnd:"))]
    return any(mask >> (number - 1) & 1 for mask in masks)


@pytest.mark.parametrize("signals, most", [(2, 60), (3, 8)])
def test_write_that_never_returns_is_ended(start, tmp_path, signals, most):
    """Marks in a file that another process holds a lease on: to open it blocks for 45 s."""
    tree = make_tree(tmp_path / "tree", {"a": 1})
    errors, marks = tmp_path / "errors", tmp_path / "marks.db"
    marks.touch(0o600)
    lease = os.open(marks, os.O_RDWR)
    # It says that somebody waits for the lease. A handler, since later children would inherit that a signal is ignored.
    signal.signal(signal.SIGIO, lambda *_: None)
    fcntl.fcntl(lease, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    with open(errors, "wb") as file:
        run = start("push", tree, "s3://bucket/p", "--marks", f"sqlite:{marks}", stdout=file, stderr=file)
    blocked = f"/proc/{run.pid}/syscall"
    wait_until(lambda: open(blocked).read().startswith("257 "), 60, "its opening of the marks")  # openat
    begun = time.monotonic()
    for n in range(signals):
        run.send_signal(signal.SIGTERM)
        wait_until(lambda: n or "stopping" in errors.read_text(), 60, "the word that it stops")
        wait_until(lambda: not is_pending(run.pid, signal.SIGTERM), 60, "its taking of the signal")  # two at once are one
    assert run.wait(60) == 143 and time.monotonic() - begun < most
    os.close(lease)


NAMED = {
    "config": {"AWS_CONFIG_FILE": "{fifo}"},
    "credentials": {"AWS_SHARED_CREDENTIALS_FILE": "{fifo}"},
    "token": {"AWS_ACCESS_KEY_ID": None, "AWS_WEB_IDENTITY_TOKEN_FILE": "{fifo}", "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/r"},
    "rules": ["--rules", "{fifo}"],
    "signing key": ["--manifest", "--sign", "{fifo}"],
    "customer key": ["--sse-c-key-file", "{fifo}"],
    "CA bundle": ["--ca-bundle", "{fifo}", "--endpoint-url", "https://127.0.0.1:{port}"],
}


@pytest.mark.parametrize("how", NAMED.values(), ids=NAMED.keys())
def test_a_file_that_is_none(s3once, tmp_path, how):
    """A FIFO that nobody writes to, where a file is wanted: it is named in a sentence, and not waited for."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    tree = make_tree(tmp_path / "tree", {"a": 1})
    with socket.create_server(("127.0.0.1", 0)) as listener:
        words = [word.format(fifo=fifo, port=listener.getsockname()[1]) for word in how] if isinstance(how, list) else []
        environment = {} if words else {name: value and value.format(fifo=fifo) for name, value in how.items()}
        run = s3once("push", tree, "s3://bucket/p", "--marks", f"sqlite:{tmp_path}/marks.db", *words, env=environment, timeout=30)
    says = "it must be a readable file" if "--ca-bundle" in words else "it is not a regular file"
    assert run.code in (2, 3) and str(fifo) in run.err and says in run.err, run


def test_observations_that_are_no_file(s3once, s3, bucket, tmp_path):
    """Observations of other sessions are kept in a file. Without it, a run only starts observing again."""
    (s3once.state / "s3once").mkdir()
    os.mkfifo(s3once.state / "s3once" / "sessions")
    tree = make_tree(tmp_path / "tree", {"a": 1})
    assert s3once("push", tree, f"s3://{bucket}", timeout=60).code == 0
    assert s3once("gc", f"s3://{bucket}", timeout=60).code == 0
