"""python3 -m tests.bench [OPTIONS] uploads|latency|compress|slow|rerun|scan|marks|checksums

uploads   what an upload costs the client: each case by each client in turn, run after run, so that whatever else the
          machine does meets all of them alike. Prints a table in Markdown.
latency   files a second where requests take long, against s5cmd, and what the servers take of the CPUs
compress  a large log, compressed on its way, against zstd piped into curl -T
slow      a large file over slow lines that all connections share, against curl -T; what a kill -9 keeps
uploaders several uploaders that begin together over one tree: requests, read and write units, dollars, CPU, threads
rerun     a tree of a million finished files pushed again: requests (counted by a proxy), memory, time
scan      the same tree scanned, nothing else
marks     claims and marks a second in SQLite, with as many connections as a run has workers
checksums each algorithm, a second of CPU time

CPU is user + system time of the whole process; of several runs the one that used least (others' work on the machine
can only add to it). Over TLS, S3 and DynamoDB are both reached by TLS. Requests are what the servers counted. "sink
busy" is the CPU time of the S3 server to the wall time: below 100 % it kept nobody waiting. Nothing here passes or fails
by its figures.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.servers.base import ServerError

from . import compress, latency, million, slow, uploaders, uploads
from .measure import BenchError, run

REPOSITORY = Path(__file__).resolve().parent.parent.parent


def marks(options):
    folder = options.dir / "marks"
    folder.mkdir(mode=0o700, exist_ok=True)
    log = options.dir / "log"
    run([options.build / "tests" / "unit" / "store" / "store_bench", folder / "marks.db", "64"], {}, log)
    print(log.read_text(), end="")


def checksums(options):
    log = options.dir / "log"
    run([options.build / "tests" / "unit" / "base" / "sum_dump", "--speed"], {}, log)
    print(log.read_text(), end="")


def parse():
    what = {"uploads": uploads.main, "latency": latency.main, "compress": compress.main, "slow": slow.main, "uploaders": uploaders.main, "rerun": million.rerun, "scan": million.scan, "marks": marks, "checksums": checksums}
    parser = argparse.ArgumentParser(
        prog="python3 -m tests.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=what)
    parser.add_argument("--build", type=Path, default=REPOSITORY / "build" / "release", help="the build to measure")
    parser.add_argument("--dir", type=Path, help="where files and marks are made [a temporary folder, removed]")
    parser.add_argument("--runs", type=int, default=3, help="of each client in each case [3]")
    parser.add_argument("--cases", default="small,medium,large", help="[small,medium,large]")
    parser.add_argument("--transports", default="http,tls", help="[http,tls]")
    parser.add_argument("--latencies", default="30/6,100/20", help="ms of S3/DynamoDB, of latency [30/6,100/20]")
    parser.add_argument("--clients", default="s3once,curl,rclone,s5cmd", help="those on PATH, of these and aws")
    parser.add_argument("--files", type=int, default=1000000, help="of rerun and scan [1000000], and of uploaders")
    parser.add_argument("--uploaders", default="1,16,64", help="how many begin together [1,16,64]")
    parser.add_argument("--push", nargs="*", default=[], help="of uploaders: further options of push, as --push=--concurrency=16")
    parser.add_argument("--stores", default="dynamodb,sqlite", help="of rerun: where the marks are [dynamodb,sqlite]")
    parser.add_argument("--size-mib", type=int, default=4096, help="of compress [4096]")
    options = parser.parse_args()
    options.main = what[options.what]
    return options


def main():
    options = parse()
    options.build = options.build.resolve()
    temporary = None
    if not options.dir:
        temporary = tempfile.TemporaryDirectory(prefix="s3once-bench-")
        options.dir = Path(temporary.name)
    options.dir = options.dir.resolve()
    options.dir.mkdir(parents=True, exist_ok=True)
    try:
        options.main(options)
    except (BenchError, ServerError) as error:
        sys.exit(f"tests.bench: {error}")
    finally:
        if temporary:
            temporary.cleanup()


main()
