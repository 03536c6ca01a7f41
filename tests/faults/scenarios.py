"""The scenarios that faults are thrown at: what is there before, and the runs during which the fault happens."""

from dataclasses import dataclass, field

from tests.faults import faults
from tests.faults.stage import PART, Stage
from tests.system.harness import MIB

LARGE = 2 * PART + 2 * MIB  # three parts


@dataclass
class Scenario:
    """prepare(stage): files, and runs before. runs: processes at once. expect: exit code once all is well.
    s3: the kinds of requests to S3 that may be cut. whole: those that each run begins with are cut, too. races: how many
    requests of a kind there are differs from run to run."""

    name: str
    prepare: object
    s3: tuple
    options: list = field(default_factory=list)
    runs: int = 1
    store: str = "dynamodb"
    expect: int = 0
    latency: float = 0
    only: tuple = ()  # kinds of operations; empty: all but heartbeats
    whole: bool = False
    races: bool = False

    def stage(self, folder, arena, **how):
        return Stage(folder, arena, store=self.store, latency=self.latency, **how)

    def play(self, stage):
        """The Results of the runs that the fault may hit."""
        running = [stage.start(*self.options) for _ in range(self.runs)]
        return [stage.ended(one) for one in running]


def one_small(stage):
    stage.write("a", 1000)


def one_large(stage):
    stage.write("large", LARGE)


def small_and_large(stage):
    stage.write("a", 1000)
    stage.write("large", LARGE)


def compressed(stage):
    stage.write("a", b"line\n" * 1000, *COMPRESS)
    stage.write("large", LARGE, *COMPRESS)


def interrupted(stage):
    """Killed when the second part had arrived."""
    one_large(stage)
    kill(stage, stage.s3, faults.kill_after, "UploadPart", 2, concurrency=1)


def killed_before_sending(stage):
    one_small(stage)
    kill(stage, stage.s3, faults.kill_before, "PutObject", 1)


def killed_before_done(stage):
    one_small(stage)
    kill(stage, stage.dynamodb, faults.kill_before, "UpdateItem:done", 1)


def dead_elsewhere(stage):
    """Killed before sending, in a namespace of process ids of its own: only its lease tells that it is dead."""
    one_small(stage)
    kill(stage, stage.s3, faults.kill_before, "PutObject", 1, elsewhere=True)


def kill(stage, proxy, fault, kind, nth, elsewhere=False, **how):
    rule = proxy.add(fault, kind, nth=nth)
    result = stage.push(elsewhere=elsewhere, **how)
    killed = (1, -9) if elsewhere else (-9,)  # unshare of util-linux 2.38 does not pass the signal on
    assert result.code in killed and rule.fired == 1, result
    proxy.clear()


def changed_small(stage):
    one_small(stage)
    assert stage.push().code == 0
    stage.write("a", 2000)


def changed_large(stage):
    one_large(stage)
    assert stage.push().code == 0
    stage.write("large", LARGE + 1)


def touched(stage):
    """Another mtime, the same content."""
    path = stage.write("a", 1000)
    assert stage.push().code == 0
    stage.write("a", path.read_bytes())


def done_before(stage):
    """A witness is there, and S3 is asked for it before the marks are believed."""
    for name in "abc":
        stage.write(name, 1000)
    assert stage.push().code == 0
    stage.write("d", 1000)


def witness_expired(stage):
    """S3 is asked for others of the objects that are marked done."""
    done_before(stage)
    stage.expire_witness()


def exists_otherwise(stage):
    stage.write("a", 1000)
    stage.put_foreign("a", b"somebody else's")


def exists_alike(stage):
    path = stage.write("a", 1000)
    stage.arena.s3.client.put_object(Bucket=stage.arena.bucket, Key=stage.key("a"), Body=path.read_bytes())


def piped_small(stage):
    stage.write_piped("dump", 1000)


def piped(stage):
    stage.write_piped("dump", LARGE)


def piped_and_kept(stage):
    """Killed when the second part had arrived: the output is in the spool."""
    (stage.folder / "spool").mkdir()
    stage.write_piped("dump", LARGE, "--spool", str(stage.folder / "spool"))
    kill(stage, stage.s3, faults.kill_after, "UploadPart", 2, concurrency=1)


def some_files(stage):
    for name in "abc":
        stage.write(name, 1000)
    stage.write("large", LARGE)


def many_small(stage):
    for number in range(24):
        stage.write(f"{number:02}", 100 + number)


COMPRESS = ["--compress", "zstd", "--header", "Content-Encoding: zstd"]
REPLACE = ["--if-changed", "replace"]
MANY = ["--concurrency", "12"]
HEARTBEATS = ("UpdateItem:heartbeat",)
BATCHES = ("BatchExecuteStatement:marks",)
LOOK = ("HeadObject",)
PUT = ("HeadObject", "PutObject")
COMPLETE = ("HeadObject", "UploadPart", "CompleteMultipartUpload")
RESUME = ("ListParts", *COMPLETE)
BOTH = ("PutObject", *COMPLETE)

SCENARIOS = [
    Scenario("one small file", one_small, PUT, whole=True),
    Scenario("multipart file", one_large, COMPLETE),
    Scenario("compressed files", compressed, BOTH, COMPRESS, store="sqlite"),
    Scenario("resume", interrupted, RESUME, whole=True),
    Scenario("take-over before sending", killed_before_sending, PUT),
    Scenario("take-over before done", killed_before_done, LOOK),
    Scenario("take-over by lease", dead_elsewhere, PUT, races=True),
    Scenario("changed file", changed_small, PUT, REPLACE),
    Scenario("changed multipart file", changed_large, COMPLETE, REPLACE),
    Scenario("touched file", touched, ()),
    Scenario("object exists, other content", exists_otherwise, LOOK, expect=1),
    Scenario("object exists, same content", exists_alike, LOOK),
    Scenario("rerun over done marks", done_before, PUT, whole=True),
    Scenario("rerun, the witness is gone", witness_expired, ("GetObject", *PUT), whole=True),
    Scenario("two uploaders", some_files, BOTH, runs=2, whole=True, races=True),
    Scenario("heartbeats", one_large, (), latency=0.25, only=HEARTBEATS, races=True),
    Scenario("marks in batches", many_small, (), MANY, latency=0.05, only=BATCHES, races=True),
    Scenario("batches of two uploaders", many_small, (), MANY, runs=2, latency=0.05, only=BATCHES, races=True),
    Scenario("pipe", piped_small, PUT, whole=True),
    Scenario("pipe in parts", piped, COMPLETE),
    Scenario("pipe that was kept", piped_and_kept, RESUME),
    Scenario("two uploaders of a pipe", piped, COMPLETE, runs=2, races=True),
    Scenario("SQLite store", small_and_large, BOTH, store="sqlite", whole=True),
]
