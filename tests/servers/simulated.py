"""S3 and DynamoDB of the simulation (tests/sim/serve.c): there at once, in memory, and installed with the build. It checks no signature."""

import os
from pathlib import Path

from .base import Server, ServerError, answers, free_ports

REPOSITORY = Path(__file__).resolve().parent.parent.parent


class Simulated(Server):
    """build: where its program is. latency: milliseconds until S3 answers and until DynamoDB does, or nothing."""

    def __init__(self, folder=None, build=None, latency=()):
        super().__init__(folder)
        self.build = build or REPOSITORY / os.environ.get("S3ONCE_BUILD", "build")
        self.latency = latency

    def launch(self):
        program = self.build / "tests" / "sim" / "serve"
        if not program.is_file():
            raise ServerError(f"no program at {program}: build it, or set S3ONCE_BUILD")
        (port,) = free_ports(1)
        self.endpoint = f"http://127.0.0.1:{port}"
        self.spawn("serve", [program, port, self.access_key, *self.latency])
        self.wait_until(lambda: answers(self.endpoint), 20)
