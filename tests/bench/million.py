"""Very many files: what a rerun costs when all of them are done, and what the scan alone costs."""

import http.client
import json
import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from urllib.parse import urlsplit

from tests.packed_items import pack
from tests.servers.dynoxide import Dynoxide
from tests.servers.nginx_count import NginxCount
from tests.servers.nginx_sink import NginxSink

from .clients import BUCKET, S3once, Setting
from .measure import BenchError, run
from .trees import MIB

PER_FOLDER = 1000
WRITERS = 4
MTIME_NS = 1700000000123456789


def make_files(options):
    """Empty files, all of the same time, in folders of a thousand."""
    root = options.dir / f"{options.files} files"
    print(f"making {options.files:,} files …", file=sys.stderr, flush=True)
    for key in keys(options):
        path = root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, ns=(MTIME_NS, MTIME_NS))
    return root


def keys(options):
    for i in range(options.files):
        yield f"logs/{i // PER_FOLDER:04d}/application-{i % PER_FOLDER:03d}.log"


def shard_of(key, shards):
    """FNV-1a of 64 bits, as src/marks/mark.c has it."""
    value = 14695981039346656037
    for byte in key.encode():
        value = (value ^ byte) * 1099511628211 & 0xFFFFFFFFFFFFFFFF
    return value % shards


def mark(options):
    """The attributes of a done mark, of a usual length."""
    return {
        "state": {"S": "done"},
        "session": {"S": "0123456789abcdef0123456789abcdef"},
        "claim": {"S": "fedcba9876543210fedcba9876543210"},
        "source": {"S": f"host.example.org:{options.dir}"},
        "tries": {"N": "1"},
        "at": {"N": "1700000001"},
        "size": {"N": "0"},
        "mtime": {"N": str(MTIME_NS)},
        "sum": {"S": "crc32c:AAAAAA=="},
        "etag": {"S": "d41d8cd98f00b204e9800998ecf8427e"},
    }


def rows(options, space, shards):
    """(partition, key) of every mark."""
    for key in keys(options):
        yield f"{space}#{shard_of(key, shards)}", key


def write_to_dynamodb(options, endpoint, table, all_rows):
    attributes = mark(options)

    def write(batches):
        connection = http.client.HTTPConnection(urlsplit(endpoint).netloc, timeout=60)
        headers = {"X-Amz-Target": "DynamoDB_20120810.BatchWriteItem", "Content-Type": "application/x-amz-json-1.0"}
        headers["X-Amz-Date"] = "20260101T000000Z"
        headers["Authorization"] = (  # of the right form: that is all this server looks at
            "AWS4-HMAC-SHA256 Credential=A/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0"
        )
        for batch in batches:
            puts = [{"PutRequest": {"Item": {"pk": {"S": pk}, "sk": {"S": sk}, **attributes}}} for pk, sk in batch]
            connection.request("POST", "/", json.dumps({"RequestItems": {table: puts}}), headers)
            reply = connection.getresponse()
            said = reply.read()
            if reply.status != 200 or json.loads(said).get("UnprocessedItems"):
                raise BenchError(f"BatchWriteItem: {reply.status} {said[:500]!r}")

    batches = iter(lambda: list(islice(all_rows, 25)), [])
    shares = [[] for _ in range(WRITERS)]
    for i, batch in enumerate(batches):
        shares[i % WRITERS].append(batch)
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, shares))


def write_to_sqlite(options, path, all_rows):
    document = pack(mark(options))
    database = sqlite3.connect(path)
    with database:
        database.executemany(
            "INSERT INTO items(pk, sk, doc) VALUES (?, ?, ?)", ((pk, sk, document) for pk, sk in all_rows)
        )
    database.close()


def shards_of(argv, environment):
    """The number of shards, as the program itself reports it."""
    told = subprocess.run(argv, env=environment, check=True, capture_output=True, text=True).stdout
    return json.loads(told.splitlines()[0])["shards"]


def one_store(options, tree, setting, kind, counted):
    client = S3once(options.build / "src" / "cli" / "s3once", kind)
    argv, environment = client.prepare(setting, tree)
    where = argv[argv.index("--marks") + 1]
    status = [client.program, "status", "--json", "--marks", where, "--endpoint-url", setting.endpoint]
    if kind == "sqlite":
        init = [client.program, "init", "--marks", where]
        subprocess.run(init, env=environment, check=True, stdout=subprocess.DEVNULL)
    shards = shards_of([*status, f"s3://{BUCKET}/none"], environment)
    all_rows = rows(options, f"{urlsplit(setting.endpoint).netloc}/{BUCKET}", shards)
    print(f"writing {options.files:,} marks, {kind} …", file=sys.stderr, flush=True)
    if kind == "sqlite":
        write_to_sqlite(options, where.removeprefix("sqlite:"), all_rows)
    else:
        write_to_dynamodb(options, counted.upstream.endpoint, where.removeprefix("dynamodb:"), all_rows)
    counted.requests()
    before = setting.sink.counts()
    for _ in range(options.runs):
        cost = run([*argv, "--json"], environment, options.dir / "log")
        summary = json.loads((options.dir / "log").read_text().splitlines()[-1])
        if summary["skipped"] != options.files:
            raise BenchError(f"{summary['skipped']} of {options.files} files were skipped: the marks are not as written")
        to_store = len(counted.requests()) if kind == "dynamodb" else sum(summary["requests"].values())
        to_s3 = sum(setting.sink.counts().values()) - sum(before.values())
        before = setting.sink.counts()
        print(f"| {client.name} | {cost.cpu:.1f} s | {cost.wall:.1f} s | {options.files / cost.wall:,.0f} | {cost.memory / MIB:.0f} MiB ", end="")
        print(f"| {to_store} | {to_s3} |", flush=True)


def rerun(options):
    tree = make_files(options)
    (options.dir / "home").mkdir(exist_ok=True)
    print(f"\n{options.files:,} files, all done before:\n")
    print("| client | CPU | wall | files a second | peak memory | requests to the store | requests to S3 |")
    print("|---|---|---|---|---|---|---|", flush=True)
    with NginxSink(holds_empty=True) as sink, Dynoxide() as dynamodb, NginxCount(dynamodb) as counted:
        setting = Setting(sink, counted, "http", options.dir)
        for kind in options.stores.split(","):
            one_store(options, tree, setting, kind, counted)


def scan(options):
    program = options.build / "tests" / "unit" / "scan" / "scan_dump"
    if not program.exists():
        raise BenchError(f"build it first: ninja -C {options.build} tests/unit/scan/scan_dump")
    tree = make_files(options)
    print(f"\n{options.files:,} files, the scan alone:\n\n| | CPU | wall | peak memory |\n|---|---|---|---|")
    ways = {"scan": [], "scan with `--key {mtime:%Y}/{path}`": ["-k", "{mtime:%Y}/{path}"]}
    for _ in range(options.runs):
        for name, how in ways.items():
            cost = run([program, "-q", *how, tree], {}, options.dir / "log")
            print(f"| {name} | {cost.cpu:.1f} s | {cost.wall:.1f} s | {cost.memory / MIB:.0f} MiB |", flush=True)
