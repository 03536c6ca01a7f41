"""The demonstration of ./quickstart: an upload, a second run, and a killed upload that two uploaders finish. Objects are counted at the server."""

import hashlib
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import unquote

REPOSITORY = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(REPOSITORY))

from tests.servers.base import ServerError, dying_with_parent, npm_package  # noqa: E402
from tests.servers.dynalite import Dynalite  # noqa: E402
from tests.servers.dynoxide import Dynoxide  # noqa: E402
from tests.servers.rgw import Rgw  # noqa: E402
from tests.system.harness import MIB, S3, expected_objects  # noqa: E402

BUCKET = "quickstart"
LIMIT = 1800


class Failure(Exception):
    """The demonstration did not show what it promises."""


class Step:
    """Says what is done, and at the end how long it took."""

    def __init__(self, text):
        print(f"\n== {text}", flush=True)
        self.begun = time.monotonic()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if not kind:
            print(f"   done in {time.monotonic() - self.begun:.1f} s", flush=True)


class Demonstration:
    def __init__(self, program, work, rgw, dynamodb):
        self.program, self.work, self.rgw = program, work, rgw
        self.s3 = S3(rgw.info())
        (work / "home").mkdir()
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TERM": os.environ.get("TERM", "dumb"),
            "HOME": str(work / "home"),
            "AWS_ACCESS_KEY_ID": rgw.access_key,
            "AWS_SECRET_ACCESS_KEY": rgw.secret_key,
            "AWS_REGION": rgw.region,
            "AWS_ENDPOINT_URL_S3": rgw.endpoint,
            "AWS_ENDPOINT_URL_DYNAMODB": dynamodb.endpoint,
            "S3ONCE_MARKS": "dynamodb:s3once",
        }

    def start(self, *args, output=None, label=""):
        print(f"   {label}$ s3once {shlex.join(map(str, args))}", flush=True)
        return subprocess.Popen(
            dying_with_parent([self.program, *args]),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT if output else None,
        )

    def run(self, *args):
        code = self.start(*args).wait(LIMIT)
        if code:
            raise Failure(f"s3once ended with exit code {code}")

    def upload_twice(self, source):
        target = f"s3://{BUCKET}/first"
        with Step(f"Upload {source}"):
            self.run("push", source, target)
        self.count_sent()
        with Step("The same again: the marks know that it is there"):
            self.run("push", source, target)
        print(f"   what the S3 server received meanwhile: {self.count_sent()} objects and parts")

    def count_sent(self):
        """Objects and parts that the server took since the last call; adds them to what it took in all."""
        sent = 0
        for request in self.rgw.requests():
            path, _, query = request["uri"].partition("?")
            part = re.search(r"partNumber=(\d+)", query)
            made = request["method"] == "PUT" or (request["method"] == "POST" and "uploadId=" in query)
            if request["status"] != 200 or not made:
                continue
            sent += 1
            (self.parts if part else self.written)[unquote(path), part and int(part[1])] += 1
        return sent

    def parts_at_server(self, key):
        """Numbers of the parts of the open upload of key; none when there is no such upload."""
        return [part[0] for upload, parts in self.s3.uploads(BUCKET, key).items() for part in parts]

    def kill_in_the_middle(self, source, big):
        """Starts a push and kills it when the server holds some parts: returns how many. None if it was too quick."""
        key = f"second/{big.name}"
        push = self.start("push", "--concurrency", "4", source, f"s3://{BUCKET}/second")
        deadline = time.monotonic() + LIMIT
        while push.poll() is None and len(self.parts_at_server(key)) < 4:
            if time.monotonic() > deadline:
                push.kill()
                raise Failure("no part of the big file arrived")
        push.kill()
        push.wait()
        held = len(self.parts_at_server(key))
        return held if push.returncode == -signal.SIGKILL and held else None

    def two_finish(self, source):
        """Two uploaders at once; shows the last lines of each."""
        outputs = [open(self.work / f"uploader{number}.log", "w+") for number in (1, 2)]
        pushes = [
            self.start("push", source, f"s3://{BUCKET}/second", output=output, label=f"uploader {n} ")
            for n, output in enumerate(outputs, 1)
        ]
        codes = [push.wait(LIMIT) for push in pushes]
        for number, output in enumerate(outputs, 1):
            output.seek(0)
            for line in output.read().splitlines()[-4:]:
                print(f"   uploader {number} | {line}")
            output.close()
        if any(codes):
            raise Failure(f"the uploaders ended with exit codes {codes}")

    def show_the_promise(self):
        source = self.work / "tree"
        source.mkdir()
        for number in range(2000):
            (source / f"small-{number:04}").write_bytes(os.urandom(4096))
        for size in (256, 1024, 4096):
            big = source / f"big-{size}-MiB"
            with open(big, "wb") as file:
                for _ in range(size):
                    file.write(os.urandom(MIB))
            with Step(f"Kill an upload (kill -9) while the server holds a part of a {size} MiB file"):
                held = self.kill_in_the_middle(source, big)
            if held:
                break
            print("   it was done before it could be killed: once more with a larger file")
        else:
            raise Failure("this machine is too fast for it: no upload could be killed in the middle")
        print(f"   killed; the server holds {held} parts of {big.name} and no object of that name")
        self.parts.clear()
        self.count_sent()
        self.parts.clear()
        with Step("Two uploaders at once finish it"):
            self.two_finish(source)
        self.count_sent()
        sent = sum(count for (path, _), count in self.parts.items() if path.endswith(big.name))
        print(f"   parts of {big.name}: {held} were kept, {sent} were sent")
        return source

    def is_same(self, key, path):
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return key in self.found and self.s3.sha256(BUCKET, key) == digest

    def show(self, source):
        self.written, self.parts = Counter(), Counter()
        with Step("Make the bucket, and the table for the marks"):
            self.s3.client.create_bucket(Bucket=BUCKET)
            self.rgw.requests()
            self.run("init")
        self.upload_twice(source)
        tree = self.show_the_promise()
        with Step("Count at the server, with another client: every file against its object"):
            self.found = self.s3.objects(BUCKET)
            files = {**expected_objects(source, "first"), **expected_objects(tree, "second")}
            with ThreadPoolExecutor(4) as pool:
                omissions = list(pool.map(self.is_same, files.keys(), files.values())).count(False)
        duplicates = sum(count - 1 for count in self.written.values())
        print(f"\nfiles {len(files)}   objects {len(self.found)}   duplicates {duplicates}   omissions {omissions}")
        if duplicates or omissions or len(files) != len(self.found):
            raise Failure("an object is missing, wrong, or was sent more than once")


def main():
    program, source = REPOSITORY / sys.argv[1], Path(sys.argv[2])
    prepared_s = int(sys.argv[3])  # what the installation and the build took
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    begun = time.monotonic()
    database = Dynoxide if npm_package("@dynoxide/linux-x64") else Dynalite
    try:
        with ExitStack() as stack:
            work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="s3once-quickstart-")))
            with Step(f"Start an S3 server (Ceph RADOS Gateway) and a DynamoDB server ({database.__name__})"):
                rgw = stack.enter_context(Rgw(access_log=True))
                dynamodb = stack.enter_context(database())
            Demonstration(program, work, rgw, dynamodb).show(source)
    except (Failure, ServerError, subprocess.TimeoutExpired) as failure:
        sys.exit(f"quickstart: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
    print(f"All as promised, {prepared_s + time.monotonic() - begun:.0f} s after ./quickstart began. Its servers and their files are removed.")


main()
