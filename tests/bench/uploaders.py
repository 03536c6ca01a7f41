"""Several uploaders that begin together over one tree: what all of them cost a file, and what DynamoDB bills for it.

The servers are the simulated ones (tests/sim/serve.c), which keep a bill: requests, read units and write units. A file is
1 KiB. Prices are those of docs/scaling.md.
"""

import json
import os
import subprocess
import sys
import time
import urllib.request
import uuid
from dataclasses import dataclass

from tests.servers.simulated import Simulated

from .measure import BenchError
from .trees import Case

BUCKET = "bench"
WRITE_PRICE, READ_PRICE = 0.625, 0.125  # dollars of a million units


@dataclass
class Total:
    """Sums over all uploaders. threads: the largest number in one process."""

    cpu: float
    wall: float
    threads: int
    uploaded: int
    refused: int
    bill: dict


def ask(server, target):
    request = urllib.request.Request(server.endpoint, b"{}", {"X-Amz-Target": target})
    request.add_header("Authorization", f"AWS4-HMAC-SHA256 Credential={server.access_key}/x")
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


def bill_between(before, after):
    """The requests of each kind and the units of the time between two bills."""
    requests = {name: n - before["requests"].get(name, 0) for name, n in after["requests"].items()}
    units = {name: after[name] - before[name] for name in ("read_units", "write_units")}
    return {**units, **{name: n for name, n in requests.items() if n and name != "Bill"}}


def prepare(options, server, store):
    """The command line and the environment of an uploader to marks of its own."""
    program = options.build / "src" / "cli" / "s3once"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(options.dir / "home"),
        "AWS_ACCESS_KEY_ID": server.access_key,
        "AWS_SECRET_ACCESS_KEY": server.secret_key,
        "AWS_REGION": server.region,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL_DYNAMODB": server.endpoint,
    }
    name = uuid.uuid4().hex
    marks = f"dynamodb:{name}" if store == "dynamodb" else f"sqlite:{options.dir / name}.db"
    bucket = f"{BUCKET}-{name}"
    request = urllib.request.Request(f"{server.endpoint}/{bucket}", method="PUT")
    request.add_header("Authorization", f"AWS4-HMAC-SHA256 Credential={server.access_key}/x")
    urllib.request.urlopen(request).close()
    subprocess.run([program, "init", "--marks", marks], env=environment, check=True, stdout=subprocess.DEVNULL)
    target = ["--marks", marks, "--endpoint-url", server.endpoint, f"s3://{bucket}"]
    subprocess.run([program, "doctor", *target], env=environment, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return [program, "push", options.tree, *options.push, *target, "--json"], environment


def threads_of(process):
    try:
        return len(os.listdir(f"/proc/{process.pid}/task"))
    except OSError:  # it has ended
        return 0


def summary_of(log):
    lines = [line for line in log.read_text().splitlines() if line.startswith("{")]
    return next((event for event in map(json.loads, reversed(lines)) if event.get("event") == "summary"), {})


def once(options, server, store, uploaders):
    argv, environment = prepare(options, server, store)
    before, begun, cpu, threads, ended = ask(server, "Simulated.Bill"), time.monotonic(), 0, 0, set()
    logs = [options.dir / f"log-{i}" for i in range(uploaders)]
    processes = []
    for log in logs:
        with open(log, "wb") as out:
            processes.append(subprocess.Popen(argv, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out))
    while len(ended) < uploaders:
        for i, process in enumerate(processes):
            if i in ended:
                continue
            threads = max(threads, threads_of(process))
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if not pid:
                continue
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise BenchError(f"an uploader exited {process.returncode}: {logs[i].read_text()[-2000:]}")
            cpu += usage.ru_utime + usage.ru_stime
            ended.add(i)
        time.sleep(0.05)
    wall = time.monotonic() - begun
    sums = [summary_of(log) for log in logs]
    return Total(
        cpu, wall, threads,
        sum(each["uploaded"] for each in sums),
        sum(each["claims_refused"] for each in sums),
        bill_between(before, ask(server, "Simulated.Bill")),
    )


COLUMNS = ["marks", "uploaders", "files/s of all", "CPU a file", "most threads of one", "failed claims a file"]
COLUMNS += ["requests to DynamoDB a file", "read units", "write units", "dollars a million files"]


def row(options, store, uploaders, total):
    n, bill = options.files, total.bill
    requests = {name: count for name, count in bill.items() if not name.endswith("_units")}
    reads, writes = bill["read_units"] / n, bill["write_units"] / n
    print(f"{store}, {uploaders}: {json.dumps(requests)}", file=sys.stderr, flush=True)
    of_dynamodb = f"{sum(requests.values()) / n:.3f} | {reads:.3f} | {writes:.3f} | {reads * READ_PRICE + writes * WRITE_PRICE:.2f}"
    return (
        f"| {store} | {uploaders} | {n / total.wall:,.0f} | {total.cpu / n * 1e6:,.0f} µs | {total.threads} "
        f"| {total.refused / n:.4f} | {of_dynamodb if store == 'dynamodb' else '– | – | – | –'} |"
    )


def main(options):
    print(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|", flush=True)
    (options.dir / "home").mkdir(exist_ok=True)
    options.tree = Case(f"{options.files} x 1 KiB", options.files, 1024).make(options.dir)
    s3_ms, _, dynamodb_ms = options.latencies.split(",")[0].partition("/")
    with Simulated(build=options.build, latency=[s3_ms, dynamodb_ms]) as server:
        for store in options.stores.split(","):
            for uploaders in map(int, options.uploaders.split(",")):
                total = once(options, server, store, uploaders)
                if total.uploaded != options.files:
                    raise BenchError(f"{total.uploaded} of {options.files} files were uploaded")
                print(row(options, store, uploaders, total), flush=True)
