"""A program run once: the CPU it used, how long it took, its peak memory."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.servers.base import dying_with_parent

LIMIT = 3600  # seconds; a run that takes longer hangs

# Starts the program from a small process of its own: Linux counts the memory of the process that forked as the
# child's. This one has 10 MiB, and no figure can be less. The report goes to descriptor argv[1].
STARTER = """
import json, os, sys, time
begun = time.monotonic()
child = os.spawnvp(os.P_NOWAIT, sys.argv[2], sys.argv[2:])
_, status, usage = os.wait4(child, 0)
report = [os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, time.monotonic() - begun, usage.ru_maxrss]
os.write(int(sys.argv[1]), json.dumps(report).encode())
"""


class BenchError(Exception):
    """A run failed: its figures would mean nothing."""


@dataclass
class Cost:
    """cpu: user and system seconds of the whole process. wall: seconds. memory: the peak resident set, bytes.

    to_s3, to_store: requests, as the servers counted them. sink: the CPU seconds that the sink used.
    """

    cpu: float
    wall: float
    memory: int
    to_s3: int = 0
    to_store: int = 0
    sink: float = 0


def run(argv, environment, log):
    """Runs it to its end with this environment and nothing else; BenchError with its output unless it exits 0."""
    theirs, ours = os.pipe()
    with open(log, "wb") as out, os.fdopen(theirs) as report:
        starter = subprocess.Popen(
            dying_with_parent([sys.executable, "-I", "-S", "-c", STARTER, str(ours), *[os.fspath(arg) for arg in argv]]),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=environment,
            pass_fds=[ours],
            start_new_session=True,
        )
        os.close(ours)
        signal.alarm(LIMIT)
        told = report.read()
        starter.wait()
        signal.alarm(0)
    code, cpu, wall, kib = json.loads(told) if told else [starter.returncode, 0, 0, 0]
    if code:
        raise BenchError(f"{argv[0]} exited {code}: {log.read_text(errors='replace')[-2000:]}")
    return Cost(cpu, wall, kib * 1024)


def cpu_seconds(server):
    """CPU time of this server's processes so far."""
    sessions = {str(process.pid) for process in server.processes.values()}
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if fields[3] in sessions:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
