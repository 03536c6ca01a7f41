"""The cost of an upload for the client: ours and others in turn."""

import shutil
import statistics
import sys

from tests.servers.dynoxide import Dynoxide
from tests.servers.nginx_count import NginxCount
from tests.servers.nginx_sink import NginxSink

from .clients import Curl, S3once, Setting, others
from .measure import cpu_seconds, run
from .trees import CASES, MIB


def clients(options):
    program = options.build / "src" / "cli" / "s3once"
    ours = [S3once(program, "dynamodb"), S3once(program, "sqlite")]
    names = options.clients.split(",")
    found = others()
    for name in names:
        if name != "s3once" and name not in found:
            print(f"{name} is not on PATH: left out", file=sys.stderr)
    return (ours if "s3once" in names else []) + [found[name] for name in names if name in found]


def warm(tree):
    """Reads it all: else who comes after a slow client would pay for what the page cache has dropped meanwhile."""
    buffer = bytearray(MIB)
    for path in tree.rglob("*"):
        if path.is_file():
            with open(path, "rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass


def once(client, setting, tree):
    argv, environment = client.prepare(setting, tree)
    warm(tree)
    setting.store.requests()
    before, sink = sum(setting.sink.counts().values()), cpu_seconds(setting.sink)
    cost = run(argv, environment, setting.folder / "log")
    cost.sink = cpu_seconds(setting.sink) - sink
    cost.to_s3 = sum(setting.sink.counts().values()) - before
    cost.to_store = len(setting.store.requests())
    shutil.rmtree(setting.folder / "marks", ignore_errors=True)
    return cost


def measure(options, case, setting, tree):
    """client → costs of its runs, one run of each before the next of any."""
    costs = {client: [] for client in clients(options)}
    for _ in range(options.runs):
        for client, runs in costs.items():
            print(f"{case.name}, {setting.transport}, {client.name} …", file=sys.stderr, flush=True)
            runs.append(once(client, setting, tree))
    return costs


def cpu_of(cost, case):
    per_file = cost / case.files
    return f"{per_file * 1e6:,.0f} µs" if case.files > 1 else f"{per_file:.2f} s"


def rows(case, transport, costs):
    """A client's row: the run with the least CPU, how it compares with curl's, and medians."""
    floor = min((cost.cpu for client, runs in costs.items() if client.name == Curl.name for cost in runs), default=None)
    for client, runs in costs.items():
        cpu = min(cost.cpu for cost in runs)
        ratio = f"{cpu / floor:.2f}" if floor else "–"
        median = statistics.median(cost.cpu for cost in runs)
        wall = statistics.median(cost.wall for cost in runs)
        memory = max(cost.memory for cost in runs)
        busy = max(cost.sink / cost.wall for cost in runs)
        yield (
            f"| {case.name} | {transport.upper()} | {client.name} | {cpu_of(cpu, case)} | {ratio} "
            f"| {cpu_of(median, case)} | {wall:.1f} s | {memory / MIB:.0f} MiB | {max(c.to_s3 for c in runs):,} "
            f"| {max(c.to_store for c in runs):,} | {busy:.0%} |"
        )


COLUMNS = ["files", "over", "client", "CPU a file, least", "to curl's", "median", "wall", "peak memory"]
COLUMNS += ["requests to S3", "to DynamoDB", "sink busy"]


def main(options):
    print(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|", flush=True)
    (options.dir / "home").mkdir(exist_ok=True)
    (options.dir / "rclone.conf").touch()
    with NginxSink() as sink, Dynoxide() as dynamodb, NginxCount(dynamodb) as store:
        for name in options.cases.split(","):
            case = CASES[name]
            tree = case.make(options.dir)
            for transport in options.transports.split(","):
                setting = Setting(sink, store, transport, options.dir)
                for row in rows(case, transport, measure(options, case, setting, tree)):
                    print(row, flush=True)
            shutil.rmtree(tree)
            (options.dir / f"{tree.name}.made").unlink()
