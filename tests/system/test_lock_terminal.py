"""`s3once lock run` and the terminal: Ctrl-C, Ctrl-Z, fg and the background, as an interactive shell sees them."""

import os
import pty
import re
import select
import shlex
import signal
import sys

import pytest

from tests.system.harness import wait_until

CTRL_C, CTRL_Z = b"\x03", b"\x1a"


def stat_of(pid):
    """Fields of /proc/PID/stat from the third on: state, parent, …"""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()


def state_of(pid):
    return stat_of(pid)[0]


class Terminal:
    """A program at the head of a session with a terminal of its own; ended with the block."""

    def __init__(self, s3once, folder, *argv):
        self.folder, self.text = folder, ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execve(argv[0], argv, {**s3once.environment, "s3once": str(s3once.binary()), "PS1": "$ "})

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        os.close(self.fd)  # a hang-up
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def type(self, text):
        os.write(self.fd, text if isinstance(text, bytes) else text.encode() + b"\n")

    def screen(self):
        while select.select([self.fd], [], [], 0)[0]:
            try:
                self.text += os.read(self.fd, 4096).decode(errors="replace")
            except OSError:  # nobody is left
                break
        return self.text

    def shows(self, pattern):
        return wait_until(lambda: re.search(pattern, self.screen()), 30, f"{pattern!r} on the screen")

    def command(self):
        """The process that wrote its number into the file `pid`."""
        path = self.folder / "pid"
        text = wait_until(lambda: path.exists() and path.read_text().strip(), 30, "the command")
        path.unlink()
        return int(text)

    def front(self):
        return os.tcgetpgrp(self.fd)

    def ended(self):
        _, status = wait_until(lambda: (found := os.waitpid(self.pid, os.WNOHANG))[0] and found, 30, "the end")
        self.pid = 0
        return os.waitstatus_to_exitcode(status)


@pytest.fixture
def local(s3once, tmp_path):
    s3once.environment["S3ONCE_LOCKS"] = f"sqlite:{tmp_path}/locks.db"


@pytest.fixture
def shell(s3once, local, tmp_path):
    with Terminal(s3once, tmp_path, "/bin/bash", "--norc", "--noprofile", "-i") as terminal:
        yield terminal


READ = "$s3once lock run k -- sh -c 'echo $$ >pid; read line {0}; exit 9' {1}"


def assert_fg_lets_it_end(shell, command):
    shell.type("fg")
    wait_until(lambda: shell.front() == command and state_of(command) != "T", 60, "both to go on")
    shell.type("")
    wait_until(lambda: shell.front() == shell.pid, 60, "the shell's prompt")
    shell.type("echo ended $?")
    shell.shows("ended 9")


@pytest.mark.parametrize("line", [
    READ.format("", ""),
    READ.format("</dev/tty", "</dev/null"),
    "true | " + READ.format("</dev/tty", ""),
    shlex.join(["bash", "-c", READ.format("", "") + "; exit $?"]),
], ids=["plain", "redirected", "pipeline", "script"])
def test_stopped_from_the_terminal_and_continued(s3once, shell, line):
    """Ctrl-Z stops the command, lock run and what is around it; after fg they go on, on the terminal, and end."""
    shell.type(line)
    command = shell.command()
    lock = int(stat_of(command)[1])
    wait_until(lambda: shell.front() == command, 60, "the terminal")
    shell.type(CTRL_Z)
    wait_until(lambda: state_of(lock) == "T" and state_of(command) == "T", 60, "both to stop")
    wait_until(lambda: shell.front() == shell.pid, 60, "the shell's prompt")
    assert_fg_lets_it_end(shell, command)
    assert s3once("lock", "status", "k").code == 0


def test_from_the_background_to_the_foreground(shell):
    """A background command that reads from the terminal stops, and lock run stops with it. After fg it gets its input."""
    shell.type(READ.format("</dev/tty", "") + " &")
    command = shell.command()
    lock = int(stat_of(command)[1])
    wait_until(lambda: state_of(lock) == "T" and state_of(command) == "T", 60, "both to stop")
    wait_until(lambda: shell.type("jobs") or "Stopped" in shell.screen(), 60, "the shell to notice")
    assert_fg_lets_it_end(shell, command)


def test_without_a_shell_ctrl_z_stops_nothing(s3once, local, tmp_path):
    """At the head of a session (ssh -t) nobody could continue it: the command goes on, and the terminal is its own."""
    # No process is started meanwhile: a shell whose child is stopped between vfork and exec does not stop itself.
    script = "trap 'echo went on >said' CONT; echo $$ >pid; while :; do read line; done"
    with Terminal(s3once, tmp_path, str(s3once.binary()), "lock", "run", "k", "--", "sh", "-c", script) as terminal:
        command = terminal.command()
        wait_until(lambda: terminal.front() == command, 60, "the terminal")
        terminal.type(CTRL_Z)
        wait_until((tmp_path / "said").exists, 60, "the command to go on")
        wait_until(lambda: terminal.front() == command, 60, "the terminal")
        terminal.type(CTRL_C)
        assert terminal.ended() == -signal.SIGINT
    assert s3once("lock", "status", "k").code == 0


@pytest.mark.parametrize("how", ["plain", "redirected", "waiting"])
def test_ctrl_c_ends_the_script_around_it(s3once, shell, how):
    """As around any program that SIGINT ends. The lock is released."""
    if how == "waiting":
        assert s3once("lock", "acquire", "--lease", "10m", "k").code == 0
    script = f"$s3once lock run k -- sh -c 'echo $$ >pid; exec sleep 60' {'</dev/null' * (how == 'redirected')}; echo went on"
    shell.type(shlex.join(["bash", "-c", f"echo $$ >script; {script}"]))
    if how != "waiting":
        command = shell.command()
        wait_until(lambda: how == "redirected" or shell.front() == command, 60, "the terminal")
    else:
        script = int(wait_until(lambda: (shell.folder / "script").exists() and (shell.folder / "script").read_text().strip(), 20))
        wait_until(lambda: any(blocks(pid, signal.SIGINT) for pid in children(script)), 60, "the wait")
    shell.type(CTRL_C)
    wait_until(lambda: shell.front() == shell.pid, 60, "the shell's prompt")
    shell.type("echo ended $?")
    shell.shows("ended 130")
    assert "went on\r" not in shell.screen()
    assert s3once("lock", "status", "k").code == (4 if how == "waiting" else 0)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def blocks(pid, number):
    """Whether a process, by its first thread, blocks a signal."""
    with open(f"/proc/{pid}/status") as file:
        mask = next(line for line in file if line.startswith("SigBlk:"))
    return int(mask.split()[1], 16) >> (number - 1) & 1


IN_BACKGROUND = """
import os, subprocess, sys
subprocess.run(sys.argv[1:], preexec_fn=os.setpgrp, check=True)
sys.exit(os.tcgetpgrp(0) != os.getpgrp())
"""


def test_in_the_background_the_terminal_is_left_alone(s3once, local, tmp_path):
    """It is the foreground's before, meanwhile and after."""
    argv = [sys.executable, "-c", IN_BACKGROUND, str(s3once.binary()), "lock", "run", "k", "--", "true"]
    with Terminal(s3once, tmp_path, *argv) as terminal:
        assert terminal.ended() == 0
