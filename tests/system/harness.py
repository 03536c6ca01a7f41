"""Building blocks of system tests: the program in an environment of its own, and independent clients of the servers."""

import fcntl
import functools
import hashlib
import http.client
import json
import os
import random
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
import uuid
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import boto3
import botocore.auth
import botocore.awsrequest
import botocore.config
import botocore.credentials
from boto3.dynamodb.types import TypeDeserializer
from botocore.exceptions import ClientError

from tests.servers.base import dying_with_parent

REPOSITORY = Path(__file__).resolve().parent.parent.parent
BUILD = REPOSITORY / os.environ.get("S3ONCE_BUILD", "build")
PROGRAM = REPOSITORY / os.environ.get("S3ONCE_PROGRAM", BUILD / "src" / "cli" / "s3once")  # what is tested; its probes are those of BUILD
WRAP = shlex.split(os.environ.get("S3ONCE_WRAP", ""))
FULL = os.environ.get("S3ONCE_FULL") == "1"
IN_TURN = os.environ.get("S3ONCE_FULL") == "0"  # as ./check without --full says
QUICK = os.environ.get("S3ONCE_QUICK") == "1"  # SQLite marks, and the simulated S3 as the only server
# For runs that leave a resolver behind.
RESOLVER_IS_LEFT = {"LSAN_OPTIONS": f"suppressions={Path(__file__).parent / 'lsan-suppressions'}:print_suppressions=0"}
# boto3 of Debian 13 adds checksums to what it sends, in a body that is longer for it.
os.environ["AWS_REQUEST_CHECKSUM_CALCULATION"] = "when_required"
SANITIZER_EXIT = 99
CRASHES = {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGFPE, -signal.SIGILL, SANITIZER_EXIT}

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def fresh_name(kind):
    return f"{kind}-{uuid.uuid4().hex[:16]}"


def looks_for_leaks():
    """Whether runs of this test end with LeakSanitizer's search, which is a fifth of their CPU time. ./check does so in one test
    in four, chosen by its name; --full and pytest itself do so in all of them."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]  # the last word is the phase
    return not IN_TURN or zlib.crc32(test.encode()) % 4 == 0


def wait_until(condition, seconds=30, what="the condition"):
    """Polls until condition() is true and returns its value; AssertionError when the time is over."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what} did not come true in {seconds} s"
        time.sleep(0.01)
    return value


# --- the program


@dataclass
class Result:
    """A run that ended: exit code (negative: the signal), standard output and error as text."""

    argv: list
    code: int
    out: str
    err: str
    seconds: float

    @property
    def events(self):
        """The lines of --json."""
        return [json.loads(line) for line in self.out.splitlines()]

    def __repr__(self):
        return f"<{shlex.join(self.argv)}: exit {self.code} after {self.seconds:.2f} s\n{self.out}\n{self.err}>"


class Running:
    """A program that was started and may still run."""

    def __init__(self, argv, popen, out, err):
        self.argv, self.popen, self.out, self.err = argv, popen, out, err
        self.begun = time.monotonic()

    @property
    def pid(self):
        return self.popen.pid

    def output(self):
        """(stdout, stderr) so far."""
        return self.out.read_text(errors="replace"), self.err.read_text(errors="replace")

    def kill(self, sig=signal.SIGKILL):
        if self.popen.poll() is None:
            os.killpg(self.pid, sig)

    def has_ended(self, seconds):
        """Waits for it so long at most, and not in steps of 50 ms as Popen.wait() does."""
        if self.popen.returncode is not None:
            return True
        process = os.pidfd_open(self.pid)
        try:
            return bool(select.select([process], [], [], seconds)[0])
        finally:
            os.close(process)

    def wait(self, timeout=60):
        """The Result. A crash or sanitizer report is an AssertionError; so is a run that does not end (it is killed)."""
        if not self.has_ended(timeout * (10 if "valgrind" in WRAP else 1)):
            self.kill()
            self.popen.wait()
            raise AssertionError(f"not ended after {timeout} s: {self.result(None)!r}")
        code = self.popen.wait()
        result = self.result(code)
        assert code not in CRASHES, f"crashed: {result!r}"
        return result

    def result(self, code):
        return Result(self.argv, code, *self.output(), time.monotonic() - self.begun)


class Program:
    """Runs the program under test, always with a clean environment, a deadline and a process group of its own.

    run = s3once("push", tree, f"s3://{bucket}/p", env={"NAME": "value"}, timeout=60)   gives a Result
    run = s3once.start("push", …)                                                     gives a Running

    env: added to (None: taken away from) the clean environment. cwd: where it runs, by default the test's folder.
    stdin: bytes. unprivileged: without root's power to open what permissions forbid. after: a FIFO; it begins when
    somebody has opened that for writing. elsewhere: in a pid namespace of its own, so that others cannot see whether it
    lives, as if it ran on another host. wrap: a command that runs it.
    """

    def __init__(self, folder, s3=None, dynamodb=None, table=None):
        self.folder = folder
        self.home, self.state = folder / "home", folder / "state"
        self.home.mkdir(exist_ok=True)
        self.state.mkdir(exist_ok=True)
        self.running = []
        self.runs = 0
        keys = s3 or dynamodb
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HOME": str(self.home),
            "XDG_STATE_HOME": str(self.state),
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": keys.access_key if keys else "AKIAEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": keys.secret_key if keys else "exampleSecret",
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9",  # nothing listens there: no test reaches the real AWS
            "ASAN_OPTIONS": f"exitcode={SANITIZER_EXIT}:detect_leaks={int(looks_for_leaks())}:detect_stack_use_after_return=1",
            "UBSAN_OPTIONS": f"exitcode={SANITIZER_EXIT}:halt_on_error=1:print_stacktrace=1",
            "TSAN_OPTIONS": f"exitcode={SANITIZER_EXIT}:halt_on_error=1:suppressions={Path(__file__).parent / 'tsan-suppressions'}",
        }
        if s3:
            self.environment["AWS_ENDPOINT_URL_S3"] = s3.endpoint
        if dynamodb:
            self.environment["AWS_ENDPOINT_URL_DYNAMODB"] = dynamodb.endpoint
        if table:
            self.environment["S3ONCE_MARKS"] = f"dynamodb:{table}"

    def start(self, *args, env=None, cwd=None, stdin=b"", unprivileged=False, after=None, elsewhere=False, wrap=(), attempts=None):
        argv = [os.fspath(arg) if isinstance(arg, Path) else arg for arg in args]
        argv = [*wrap, *WRAP, str(self.binary()), *argv]
        if unprivileged and os.geteuid() == 0:
            argv = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--", *argv]
        if elsewhere:
            user = [] if os.geteuid() == 0 else ["--user", "--map-current-user"]  # a changed root has no namespaces of users
            argv = ["unshare", *user, "--pid", "--fork", "--kill-child", *argv]
        if after:
            argv = ["/bin/sh", "-c", ': <"$0" && exec "$@"', str(after), *argv]
        environment = {**self.environment, **({"AWS_MAX_ATTEMPTS": str(attempts)} if attempts else {}), **(env or {})}
        preload = environment.pop("LD_PRELOAD", None)
        if preload:  # not into setpriv, which runs first
            argv = ["/usr/bin/env", f"LD_PRELOAD={preload}", *argv]
        self.runs += 1
        out, err = self.folder / f"run{self.runs}.out", self.folder / f"run{self.runs}.err"
        given = self.folder / f"run{self.runs}.in"
        given.write_bytes(stdin)
        with open(given, "rb") as reads, open(out, "wb") as writes, open(err, "wb") as errors:
            popen = subprocess.Popen(
                dying_with_parent(argv),
                stdin=reads,
                stdout=writes,
                stderr=errors,
                cwd=cwd or self.folder,
                env={name: value for name, value in environment.items() if value is not None},
                start_new_session=True,
            )
        running = Running([os.fsdecode(arg) for arg in argv], popen, out, err)
        self.running.append(running)
        return running

    def __call__(self, *args, timeout=120, **how):
        return self.start(*args, **how).wait(timeout)

    def binary(self):
        assert PROGRAM.is_file(), f"no program at {PROGRAM}: build it, or set S3ONCE_BUILD"
        return PROGRAM

    def kill_all(self):
        for running in self.running:
            running.kill()
            running.popen.wait()


# --- files


def content(name, size):
    """Bytes that look random and are the same for the same name and size."""
    return (made_once if size <= 16 * MIB else made)(name, size)


def made(name, size):
    generator = random.Random(f"{name} {size}")
    return b"".join(generator.randbytes(min(MIB, size - at)) for at in range(0, size, MIB))


made_once = functools.lru_cache(maxsize=16)(made)  # tests of one file ask for the same again and again


def make_tree(root, files):
    """Makes files below root: {relative name (str or bytes): bytes or a size}. Returns root."""
    for name, value in files.items():
        path = Path(root) / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(name, value) if isinstance(value, int) else value)
    return Path(root)


def expected_objects(root, prefix=""):
    """key → path of every regular file below root, by the rule for keys."""
    if prefix and not prefix.endswith("/"):
        prefix += "/"
    root = Path(root)
    return {
        prefix + str((Path(folder) / name).relative_to(root)): Path(folder) / name
        for folder, _, names in os.walk(root)
        for name in names
        if (Path(folder) / name).is_file() and not (Path(folder) / name).is_symlink()
    }


# --- servers shared by all workers of a pytest run


class SharedServers:
    """Each server is started by whoever needs it first, belongs to the process `owner`, and is stopped by stop()."""

    def __init__(self, folder, owner):
        self.folder, self.owner = folder, owner

    def get(self, name):
        """A value of the server's info()."""
        found = self.folder / name / "servers.json"
        with open(self.folder / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not found.exists():
                self.start(name, found)
        return json.loads(found.read_text())[name]

    def start(self, name, found):
        argv = [sys.executable, "-m", "tests.servers", "--dir", self.folder / name, "--owner", str(self.owner), name]
        log = self.folder / f"{name}.log"
        (self.folder / name).mkdir(exist_ok=True)
        with open(log, "w") as writes:
            popen = subprocess.Popen(
                argv, cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=writes, stderr=writes, start_new_session=True
            )
        (self.folder / f"{name}.pid").write_text(str(popen.pid))
        wait_until(lambda: found.exists() or popen.poll() is not None, 120, f"the start of {name}")
        assert found.exists(), log.read_text()

    def stop(self):
        for path in self.folder.glob("*.pid"):
            pid = int(path.read_text())
            try:
                process = os.pidfd_open(pid)
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                continue
            if not select.select([process], [], [], 20)[0]:
                os.kill(pid, signal.SIGKILL)
            os.close(process)
        shutil.rmtree(self.folder, ignore_errors=True)


class Service:
    """Shared by all clients: a server's info() as attributes, and boto3 without retries, environment or profile."""

    name = None

    def __init__(self, info):
        self.endpoint, self.tls_endpoint, self.ca = info["endpoint"], info["tls_endpoint"], info["ca"]
        self.access_key, self.secret_key, self.region = info["access_key"], info["secret_key"], info["region"]
        self.client = self.make_client()

    def make_client(self, endpoint=None):
        config = botocore.config.Config(
            signature_version="s3v4" if self.name == "s3" else "v4",
            s3={"addressing_style": "path"},
            retries={"total_max_attempts": 1},
            proxies={},
            max_pool_connections=32,
            read_timeout=120,
        )
        session = boto3.session.Session(
            aws_access_key_id=self.access_key, aws_secret_access_key=self.secret_key, region_name=self.region
        )
        return session.client(
            self.name, endpoint_url=endpoint or self.endpoint, config=config, verify=self.ca if endpoint else None
        )

    def request(self, method, path, headers=None, body=b""):
        """One signed request with exactly these headers: (status, headers in lower case, body)."""
        signed = botocore.awsrequest.AWSRequest(method, self.endpoint + path, headers or {}, body)
        keys = botocore.credentials.Credentials(self.access_key, self.secret_key)
        sign = botocore.auth.S3SigV4Auth if self.name == "s3" else botocore.auth.SigV4Auth
        sign(keys, self.name, self.region).add_auth(signed)
        connection = http.client.HTTPConnection(urlsplit(self.endpoint).netloc, timeout=60)
        connection.request(method, path, body, dict(signed.headers.items()))
        reply = connection.getresponse()
        answer = reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read()
        connection.close()
        return answer


@dataclass
class Object:
    size: int
    etag: str
    metadata: dict = None


class S3(Service):
    name = "s3"

    def objects(self, bucket, prefix="", metadata=False):
        """key → Object of everything below prefix; metadata costs a HEAD each."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        found = {
            row["Key"]: Object(row["Size"], row["ETag"].strip('"')) for page in pages for row in page.get("Contents", [])
        }
        if metadata:
            for key, value in found.items():
                value.metadata = self.client.head_object(Bucket=bucket, Key=key)["Metadata"]
        return found

    def get(self, bucket, key):
        return self.client.get_object(Bucket=bucket, Key=key)["Body"].read()

    def sha256(self, bucket, key):
        body = self.client.get_object(Bucket=bucket, Key=key)["Body"]
        digest = hashlib.sha256()
        for piece in body.iter_chunks(MIB):
            digest.update(piece)
        return digest.hexdigest()

    def uploads(self, bucket, prefix=""):
        """Open multipart uploads: (key, upload id) → [(part number, size), …]."""
        pages = self.client.get_paginator("list_multipart_uploads").paginate(Bucket=bucket, Prefix=prefix)
        found = {}
        for row in (row for page in pages for row in page.get("Uploads", [])):
            ids = {"Bucket": bucket, "Key": row["Key"], "UploadId": row["UploadId"]}
            parts = self.client.get_paginator("list_parts").paginate(**ids)
            found[row["Key"], row["UploadId"]] = [
                (part["PartNumber"], part["Size"]) for page in parts for part in page.get("Parts", [])
            ]
        return found

    def assert_same(self, root, bucket, prefix=""):
        """Every regular file below root is below prefix, byte for byte, and nothing else is."""
        expected = expected_objects(root, prefix)
        found = self.objects(bucket, prefix)
        missing, extra = sorted(expected.keys() - found.keys()), sorted(found.keys() - expected.keys())
        assert not missing and not extra, f"missing {missing[:10]}, not expected {extra[:10]}"

        def differs(key):
            with open(expected[key], "rb") as file:
                return self.sha256(bucket, key) != hashlib.file_digest(file, "sha256").hexdigest()

        with ThreadPoolExecutor(4) as pool:
            wrong = [key for key, bad in zip(expected, pool.map(differs, expected)) if bad]
        assert not wrong, f"other content: {wrong[:10]}"

    def empty(self, bucket, prefix=""):
        for key, upload in self.uploads(bucket, prefix):
            self.client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload)
        keys = [{"Key": key} for key in self.objects(bucket, prefix)]
        for at in range(0, len(keys), 1000):
            self.client.delete_objects(Bucket=bucket, Delete={"Objects": keys[at : at + 1000], "Quiet": True})

    def remove_bucket(self, bucket):
        self.empty(bucket)
        try:
            self.client.delete_bucket(Bucket=bucket)
        except ClientError:
            pass  # a request that was still under way put something there: the server goes away with it


class S3OfS3rver(S3):
    def remove_bucket(self, bucket):
        """It lists no uploads and fails at DeleteObjects: its buckets go with it."""


class DynamoDB(Service):
    name = "dynamodb"

    def items(self, table):
        """Every item of the table as plain Python values (numbers are Decimal)."""
        pages = self.client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
        plain = TypeDeserializer().deserialize
        return [{name: plain(value) for name, value in item.items()} for page in pages for item in page["Items"]]

    def marks(self, table):
        """key → mark of all items that are marks of files."""
        others = ("session#", "settings", "probe#", "bucket#", "jobs")
        return {item["sk"]: item for item in self.items(table) if not item["pk"].startswith(others)}

    def call(self, operation, **parameters):
        """One call in DynamoDB JSON: (status, reply). For what this boto3 does not know yet."""
        headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"DynamoDB_20120810.{operation}"}
        status, _, body = self.request("POST", "/", headers, json.dumps(parameters).encode())
        return status, json.loads(body)
