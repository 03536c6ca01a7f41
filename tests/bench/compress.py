"""A large log, compressed on its way: `push --compress zstd:3` against `zstd -3 -T2` piped into `curl -T`."""

import random
import socket
import sys
import threading

from tests.servers.nginx_sink import NginxSink

from .clients import BUCKET, S3once, Setting
from .measure import run
from .trees import GIB, MIB
from .uploads import warm

AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_1 like Mac OS X) AppleWebKit/605.1.15",
    "curl/8.5.0",
)


def lines(chance, seconds, size):
    """An access log: addresses that come back, paths of a site, times that rise."""
    addresses = [".".join(str(chance.randrange(256)) for _ in range(4)) for _ in range(5000)]
    made = 0
    while made < size:
        seconds += chance.random() < 0.3
        path = chance.choice(("/", "/login", f"/item/{chance.randrange(100000)}", f"/static/app.{chance.randrange(900)}.js"))
        line = (
            f'{chance.choice(addresses)} - - [{seconds}] "GET {path} HTTP/1.1" {chance.choice((200, 200, 200, 304, 404))} '
            f'{chance.randrange(100000)} "-" "{chance.choice(AGENTS)}" {chance.random():.3f}\n'
        )
        made += len(line)
        yield line


def make_log(folder, size):
    """64 MiB of lines, and those again and again in another order of blocks, so that no compressor's window sees both."""
    tree = folder / f"log{size}"
    path = tree / "access.log"
    if not path.exists() or path.stat().st_size != size:
        tree.mkdir(exist_ok=True)
        chance = random.Random(1)
        block = "".join(lines(chance, 1767225600, 64 * MIB)).encode()
        with open(path, "wb") as file:
            while file.tell() < size:
                cut = chance.randrange(len(block))
                file.write((block[cut:] + block[:cut])[: size - file.tell()])
    return tree


class Ours(S3once):
    name = "s3once push --compress zstd:3"

    def __init__(self, program):
        super().__init__(program, "sqlite")
        self.name = Ours.name

    def prepare(self, setting, tree):
        argv, environment = super().prepare(setting, tree)
        return [*argv[:2], "--compress", "zstd:3", *argv[2:]], environment


class Drain(threading.Thread):
    """Takes one body in chunks after the other, which the sink does not, and drops it."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self.socket.getsockname()[1]}"

    def run(self):
        buffer = bytearray(MIB)
        while True:
            connection, _ = self.socket.accept()
            end = b""
            while got := connection.recv_into(buffer):
                end = (end + bytes(buffer[max(0, got - 5) : got]))[-5:]
                if b"Expect:" in buffer[:500]:
                    connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                if end == b"0\r\n\r\n":
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    break
            connection.close()


class Pipe:
    name = "zstd -3 -T2 | curl -T"

    def __init__(self):
        self.drain = Drain()
        self.drain.start()

    def prepare(self, setting, tree):
        url = f"{self.drain.endpoint}/{BUCKET}/access.log.zst"
        script = 'zstd -3 -T2 -q -c "$0" | curl --silent --show-error --fail --output /dev/null -T - "$1"'
        return ["/bin/sh", "-c", script, tree / "access.log", url], setting.environment()


def main(options):
    size = options.size_mib * MIB
    tree = make_log(options.dir, size)
    clients = [Ours(options.build / "src" / "cli" / "s3once"), Pipe()]
    costs = {client: [] for client in clients}
    with NginxSink(options.dir / "sink") as sink:
        setting = Setting(sink, sink, "http", options.dir)
        for _ in range(options.runs):
            for client in clients:
                print(f"{client.name} …", file=sys.stderr, flush=True)
                argv, environment = client.prepare(setting, tree)
                warm(tree)
                costs[client].append(run(argv, environment, options.dir / "log"))
    print(f"{size / GIB:.2f} GiB of log\n\n| client | MB/s | CPU | peak memory |\n|---|---|---|---|")
    for client, runs in costs.items():
        fastest, cpu = min(each.wall for each in runs), min(each.cpu for each in runs)
        print(f"| `{client.name}` | {size / fastest / 1e6:.0f} | {cpu:.1f} s | {max(each.memory for each in runs) / MIB:.0f} MiB |")
