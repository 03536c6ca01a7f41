"""python3 -m tests.servers [--dir DIR] [--owner PID] NAME...

Starts the servers (rgw, swift, s3rver, simulated, dynoxide, dynalite, sink) and stays until SIGTERM, SIGINT or the end of the owner
(by default the process that started this one). When all are ready it prints, as shell assignments, NAME_ENDPOINT,
NAME_TLS_ENDPOINT, NAME_CA, NAME_ACCESS_KEY, NAME_SECRET_KEY and NAME_REGION, and then writes the same to DIR/env
and, as JSON, to DIR/servers.json. On failure it says why on standard error and exits 1.
"""

import argparse
import json
import os
import select
import shlex
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from .base import ServerError
from .dynalite import Dynalite
from .dynoxide import Dynoxide
from .nginx_sink import NginxSink
from .rgw import Rgw
from .s3rver import S3rver
from .simulated import Simulated
from .swift import Swift

SERVERS = {
    **{"rgw": Rgw, "swift": Swift, "s3rver": S3rver, "simulated": Simulated, "sink": NginxSink},
    **{"dynoxide": Dynoxide, "dynalite": Dynalite},
}


def publish(folder, running):
    info = {name: server.info() for name, server in running.items()}
    assignments = "".join(
        f"{name.upper()}_{field.upper()}={shlex.quote(value or '')}\n"
        for name, fields in info.items()
        for field, value in fields.items()
    )
    print(assignments, end="", flush=True)
    for name, text in (("env", assignments), ("servers.json", json.dumps(info))):
        (folder / f"{name}.new").write_text(text)
        (folder / f"{name}.new").rename(folder / name)


def wait_for_the_end(wake, owner):
    """Returns when a signal arrived or the owner is gone."""
    poll = select.poll()
    poll.register(wake, select.POLLIN)
    poll.register(owner, select.POLLIN)
    poll.poll()


def main():
    parser = argparse.ArgumentParser(prog="python3 -m tests.servers", description=__doc__.split("\n\n")[1])
    parser.add_argument("--dir", type=Path, help="folder for data and logs, kept (default: a temporary one, removed)")
    parser.add_argument("--owner", type=int, default=os.getppid(), metavar="PID", help="end when this process has ended")
    parser.add_argument("names", nargs="+", choices=SERVERS, metavar="NAME")
    options = parser.parse_args()
    owner = os.pidfd_open(options.owner)
    wake, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(waker)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    folder = options.dir or Path(tempfile.mkdtemp(prefix="s3once-servers-"))
    running = {}
    try:
        for name in options.names:
            running[name] = SERVERS[name](folder / name).start()
        publish(folder, running)
        wait_for_the_end(wake, owner)
    except ServerError as error:
        sys.exit(f"tests.servers: {error}")
    finally:
        for server in running.values():
            server.stop()
        if not options.dir:
            shutil.rmtree(folder, ignore_errors=True)


main()
