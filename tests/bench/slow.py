"""A large file over a slow line that all connections share, against curl -T over the same line; and what a kill keeps."""

import os
import signal
import subprocess
import time
import uuid

from tests.servers.nginx_sink import NginxSink
from tests.servers.uplink import Uplink
from tests.system.harness import make_tree

from .clients import BUCKET, Curl, S3once, Setting
from .measure import BenchError, run
from .trees import MIB

MB = 1000 * 1000
PART = 16 * MIB
# Bytes a second, and a file that takes some minutes at most.
CASES = [(MB // 2, 64 * MIB), (2 * MB, 128 * MIB), (8 * MB, 512 * MIB), (100 * MB, 2048 * MIB)]


class Line(Setting):
    """The setting of a client whose uploads go over the line."""

    def __init__(self, sink, line, folder):
        super().__init__(sink, sink, "http", folder)
        self.line = line

    @property
    def endpoint(self):
        return self.line.endpoint


def timed(client, setting, tree):
    """(seconds, bytes that went up)"""
    argv, environment = client.prepare(setting, tree)
    before = setting.line.carried
    cost = run(argv, environment, setting.folder / "log")
    return cost.wall, setting.line.carried - before


def killed(client, setting, tree, size):
    """Kills a run once half of the file was sent. Returns (parts sent, parts received completely)."""
    argv, environment = client.prepare(setting, tree)
    carried, kept = setting.line.carried, setting.sink.stored()
    process = subprocess.Popen(
        [os.fspath(arg) for arg in argv], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while setting.line.carried - carried < size / 2:
        if process.poll() is not None:
            raise BenchError(f"{argv[0]} ended before it was killed")
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return (setting.line.carried - carried) / PART, setting.sink.stored() - kept


def main(options):
    program = options.build / "src" / "cli" / "s3once"
    print("| line | file | `curl -T` | s3once | to curl's | sent twice | killed at half: parts sent | kept |")
    print("|---" * 8 + "|", flush=True)
    (options.dir / "home").mkdir(exist_ok=True)
    for rate, size in CASES:
        tree = make_tree(options.dir / uuid.uuid4().hex, {"large": size})
        with NginxSink() as sink, Uplink(sink, rate) as line:
            setting, ours = Line(sink, line, options.dir), S3once(program, "sqlite")
            floor, _ = timed(Curl(), setting, tree)
            wall, carried = timed(ours, setting, tree)
            sent, kept = killed(ours, setting, tree, size)
            print(
                f"| {rate / MB:g} MB/s | {size // MIB} MiB | {floor:.1f} s | {wall:.1f} s | {wall / floor:.2f} "
                f"| {max(0, carried / size - 1):.1%} | {sent:.1f} | {kept} |",
                flush=True,
            )
        (tree / "large").unlink()
