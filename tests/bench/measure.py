"""A program run once: the CPU it used, how long it took, its peak memory."""

import os
import signal
import subprocess
import time
from dataclasses import dataclass

from tests.servers.base import die_with_parent

LIMIT = 3600  # seconds; a run that takes longer hangs


class BenchError(Exception):
    """A run failed: its figures would mean nothing."""


@dataclass
class Cost:
    """cpu: user and system seconds of the whole process. wall: seconds. memory: the peak resident set, bytes."""

    cpu: float
    wall: float
    memory: int
    requests: int = 0


def run(argv, environment, log):
    """Runs it to its end with this environment and nothing else; BenchError with its output unless it exits 0."""
    with open(log, "wb") as out:
        begun = time.monotonic()
        child = subprocess.Popen(
            [os.fspath(arg) for arg in argv],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=environment,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        signal.alarm(LIMIT)
        _, status, usage = os.wait4(child.pid, 0)
        signal.alarm(0)
        wall = time.monotonic() - begun
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise BenchError(f"{argv[0]} exited {child.returncode}: {log.read_text(errors='replace')[-2000:]}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * 1024)
