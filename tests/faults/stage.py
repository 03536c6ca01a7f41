"""The stage of a case of faults: a tree of its own, proxies of its own before shared servers, and runs that are all checked."""

import os
import signal
from pathlib import Path

from boto3.dynamodb.types import TypeDeserializer

from tests.faults.checker import Checker, Violation, sqlite_marks
from tests.faults.operations import LOOKS
from tests.faults.proxy import Proxy
from tests.system.harness import MIB, Program, content, fresh_name

SHARDS = 2
LEASE = 2  # seconds, of every case
PART = 5 * MIB
QUICK = ["--lease", f"{LEASE}s", "--part-size", "5MiB", "--request-timeout", "1s", "--give-up-after", "6s"]
STORED = {}  # what files become in S3 with options such as --compress


class Stage:
    """store: "dynamodb" or "sqlite". behaves, close_each, tls, latency: see Proxy. Use it with `with`."""

    def __init__(self, folder, arena, store="dynamodb", behaves=None, close_each=False, tls=False, latency=0, honours=True):
        self.folder, self.arena, self.store = Path(folder), arena, store
        self.folder.mkdir(parents=True, exist_ok=True)
        self.prefix = fresh_name("p")
        self.tree = self.folder / "tree"
        self.tree.mkdir()
        how = {"close_each": close_each, "tls": tls, "latency": latency}
        self.s3 = Proxy(arena.s3, "s3", self.folder / "s3-proxy", behaves=behaves, **how)
        self.dynamodb = Proxy(arena.dynamodb, "dynamodb", self.folder / "dynamodb-proxy", **how)
        self.dynamodb.access_key, self.dynamodb.secret_key = self.s3.access_key, self.s3.secret_key  # the program has one pair
        self.checker = Checker(arena.s3, arena.bucket, lambda: (self.s3.history, self.dynamodb.history), honours)
        self.runs = []
        self.piped = None  # (name, options): the runs push what a command writes, under that name

    def __enter__(self):
        self.s3.start()
        self.dynamodb.start()
        self.arena.forget_service(f"127.0.0.1:{self.s3.port}")
        table = self.arena.table if self.store == "dynamodb" else None
        self.program = Program(self.folder, self.s3, self.dynamodb, table)
        if self.store == "sqlite":
            self.marks_file = self.folder / "state" / "marks.db"
            self.program.environment["S3ONCE_MARKS"] = f"sqlite:{self.marks_file}"
        if self.s3.ca:
            self.program.environment["AWS_CA_BUNDLE"] = str(self.both_certificates())
        return self

    def __exit__(self, kind=None, *_):
        if kind:
            self.tell()
        self.program.kill_all()
        self.s3.stop()
        self.dynamodb.stop()
        self.arena.s3.empty(self.arena.bucket, self.prefix + "/")  # servers keep what they have in memory

    def both_certificates(self):
        path = self.folder / "ca.pem"
        path.write_bytes(self.s3.ca.read_bytes() + self.dynamodb.ca.read_bytes())
        return path

    def tell(self):
        """Keeps the history of the wire as a text, and prints its end."""
        path, records = self.folder / "story", sorted(self.s3.history + self.dynamodb.history, key=lambda record: record.begun)
        lines = [record.line(records[0].begun) for record in records]
        path.write_text("\n".join(lines))
        print("\n".join([f"all of this is in {path}:", *lines[-80:]]))

    # Files and objects.

    def key(self, name):
        return f"{self.prefix}/{name}"

    def write(self, name, body, *options):
        """Makes or replaces a file; body may be a size. Every version is noted for the checker. options: those that make its
        object something else than the file."""
        path = self.tree / name
        body = content(f"{name} {len(self.checker.versions[self.key(name)])}", body) if isinstance(body, int) else body
        path.write_bytes(body)
        stored = self.stored(path, options) if options else None
        self.checker.note_version(self.key(name), body, path.stat().st_mtime_ns, stored)
        return path

    def stored(self, path, options):
        """The object that a run without faults stores for a file: the same bytes each time."""
        known = (path.read_bytes(), *options)
        if known not in STORED:
            prefix = fresh_name("stored")
            folder = self.folder / prefix  # with marks of its own, since the object goes
            folder.mkdir()
            program = Program(folder, self.arena.s3)
            run = program("push", *QUICK, *options, path, f"s3://{self.arena.bucket}/{prefix}")
            assert run.code == 0, run
            STORED[known] = self.arena.s3.get(self.arena.bucket, f"{prefix}/{path.name}")
            self.arena.s3.empty(self.arena.bucket, prefix + "/")
        return STORED[known]

    def write_piped(self, name, size, *options):
        """The output of a command at each start. The time of its object is that of its end."""
        body = content(name, size)
        (self.folder / name).write_bytes(body)
        self.checker.note_version(self.key(name), body, None)
        self.piped = (name, options)

    def put_foreign(self, name, body):
        self.arena.s3.client.put_object(Bucket=self.arena.bucket, Key=self.key(name), Body=body)
        self.checker.note_foreign(self.key(name), body)

    def expire_witness(self):
        """A lifecycle rule has met the object by which runs know the bucket, and its file is gone, too."""
        item = self.arena.dynamodb.client.get_item(
            TableName=self.arena.table, Key={"pk": {"S": f"bucket#127.0.0.1:{self.s3.port}/{self.arena.bucket}"}, "sk": {"S": "-"}}
        )["Item"]
        key = item["last_key"]["S"]
        self.arena.s3.client.delete_object(Bucket=self.arena.bucket, Key=key)
        (self.tree / key.removeprefix(f"{self.prefix}/")).unlink()
        self.checker.expired.add(key)

    def marks(self):
        if self.store == "sqlite":
            return sqlite_marks(self.marks_file)
        return self.arena.marks(f"127.0.0.1:{self.s3.port}", self.prefix)

    # Runs.

    def start(self, *options, source=None, elsewhere=False, concurrency=2, **how):
        target = [source or self.tree, f"s3://{self.arena.bucket}/{self.prefix}"]
        if self.piped:
            name, own = self.piped
            target = [*own, f"s3://{self.arena.bucket}/{self.key(name)}", "--", "cat", str(self.folder / name)]
        if elsewhere:  # only its lease tells that it lives
            how["elsewhere"] = True
        return self.program.start("push", *QUICK, "--concurrency", str(concurrency), *options, *target, **how)

    def ended(self, running, timeout=60):
        """The Result of a run, its exit code checked."""
        result = running.wait(timeout)
        self.runs.append(result)
        self.checker.check_exit(result, self.prefix + "/", self.marks() if result.code == 0 else {})
        return result

    def push(self, *options, timeout=60, **how):
        return self.ended(self.start(*options, **how), timeout)

    def settle(self):
        """Everything that was still under way has arrived."""
        self.s3.settle()
        self.dynamodb.settle()

    def finish(self, *options, expect=0):
        """No more faults: a clean run, what was late arrives, one more run that sends nothing; then every check."""
        self.s3.clear()
        self.dynamodb.clear()
        result = self.push(*options)
        if result.code != expect:
            raise Violation(f"the clean run should exit {expect}: {result!r}")
        self.settle()
        before = len(self.s3.history)
        again = self.push(*options)
        if again.code != expect:
            raise Violation(f"the run after it should exit {expect}: {again!r}")
        sent = [record.kind for record in self.s3.history[before:] if record.kind not in LOOKS]
        if sent:
            raise Violation(f"everything was done, and {sent} was sent: {again!r}")
        self.checker.check_history()
        for proxy in (self.s3, self.dynamodb):
            if proxy.failures:
                raise AssertionError(f"the wire proxy failed: {proxy.failures}")


def cont(running):
    os.killpg(running.pid, signal.SIGCONT)


class Arena:
    """Shared by the cases of one worker: an S3 server with a bucket, a DynamoDB server with a table."""

    def __init__(self, s3, dynamodb, folder):
        self.s3, self.dynamodb = s3, dynamodb
        self.bucket, self.table = fresh_name("bucket"), fresh_name("table")
        s3.client.create_bucket(Bucket=self.bucket)
        program = Program(folder, s3, dynamodb, self.table)
        init = program("init", "--shards", str(SHARDS))
        assert init.code == 0, init
        (folder / "first").mkdir()
        first = program("push", folder / "first", f"s3://{self.bucket}/first")  # finds out what the table can do
        assert first.code == 0, first

    def marks(self, service, prefix=""):
        """key → mark below a prefix, for runs that saw S3 at `service`. The table holds the marks of many cases."""
        below = {"KeyConditionExpression": "pk = :pk AND begins_with(sk, :prefix)"} if prefix else {"KeyConditionExpression": "pk = :pk"}
        found, plain = {}, TypeDeserializer().deserialize
        for shard in range(SHARDS):
            reply = self.dynamodb.client.query(
                TableName=self.table,
                ConsistentRead=True,
                **below,
                ExpressionAttributeValues={
                    ":pk": {"S": f"{service}/{self.bucket}#{shard}"},
                    **({":prefix": {"S": prefix + "/"}} if prefix else {}),
                },
            )
            assert "LastEvaluatedKey" not in reply
            for item in reply["Items"]:
                found[item["sk"]["S"]] = {name: plain(value) for name, value in item.items()}
        return found

    def forget_service(self, service):
        """A port may be used again, and with it the marks and the row of the bucket that an earlier case has written. Its objects
        are gone, so that no object of such a mark could be shown."""
        keys = [(f"bucket#{service}/{self.bucket}", "-")]
        keys += [(mark["pk"], key) for key, mark in self.marks(service).items()]
        for pk, sk in keys:
            self.dynamodb.client.delete_item(TableName=self.table, Key={"pk": {"S": pk}, "sk": {"S": sk}})

    def close(self):
        self.s3.remove_bucket(self.bucket)
