"""A byte that changes on the way to a server that verifies nothing: recognised, said, sent again, never taken for another version."""

import gzip
import os
import shutil
import subprocess

import pytest

from tests.faults import faults
from tests.faults.stage import PART, Stage
from tests.system.harness import FULL

PLACES = {"rgw": {}, "aws": {"behaves": "aws"}, "ignores": {"behaves": "ignores"}, "refuses": {"behaves": "refuses"}}
CHOICES = ["fail", "skip", "replace"]
SAID = "S3 holds other bytes than were sent"


@pytest.fixture(params=PLACES)
def stage(request, arenas, tmp_path):
    with Stage(tmp_path / "stage", arenas(), store="sqlite", **PLACES[request.param]) as stage:
        yield stage


def damage(stage, fault, kind="PutObject", **how):
    """Not of a conditional request that the server refuses whatever its body is."""
    refused = stage.s3.aws_like and stage.s3.aws_like.behaves == "refuses"
    return stage.s3.add(fault, kind, where=lambda record: not (refused and record.operation.conditions), **how)


def puts(stage):
    return sum(record.kind == "PutObject" for record in stage.s3.history)


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("lost", [False, True], ids=["answered", "reply lost"])
def test_a_byte_that_nobody_verified_is_sent_again(stage, lost, choice):
    body = stage.write("a", 1000).read_bytes()
    rule = damage(stage, faults.store_damaged(lost))
    run = stage.push("--if-changed", choice)
    assert rule.fired == 1 and run.code == 0, run
    assert SAID in run.err or lost and stage.s3.aws_like and stage.s3.aws_like.behaves != "aws", run  # else sent over it
    assert "changed since" not in run.err, run
    assert stage.arena.s3.get(stage.arena.bucket, stage.key("a")) == body


@pytest.mark.parametrize("lost, choice", [(lost, choice) for lost in (False, True) for choice in CHOICES if FULL or not lost or choice == "skip"])
def test_damage_without_end_is_an_error(stage, lost, choice):
    """A bounded number of times, in each run; and once it ends, the file is in."""
    body = stage.write("a", 1000).read_bytes()
    rule = damage(stage, faults.store_damaged(lost), times=None)
    for _ in range(2):
        sent = puts(stage)
        run = stage.push("--if-changed", choice)
        # Where every reply is lost, nothing moves, and the run itself may give up before the file does.
        assert run.code in ((1, 3) if lost else (1,)) and puts(stage) - sent < 40, run
        assert "changed since" not in run.err, run
    assert rule.fired
    stage.s3.clear()
    assert stage.push("--if-changed", choice).code == 0
    assert stage.arena.s3.get(stage.arena.bucket, stage.key("a")) == body


@pytest.mark.parametrize("choice", CHOICES)
def test_damage_that_a_killed_run_left_is_recognised(stage, choice):
    body = stage.write("a", 1000).read_bytes()
    rule = damage(stage, faults.store_damaged(kill=True))
    assert stage.push().code == -9 and rule.fired == 1
    stage.s3.clear()
    run = stage.push("--if-changed", choice)
    assert run.code == 0 and SAID in run.err, run
    assert stage.arena.s3.get(stage.arena.bucket, stage.key("a")) == body


OTHER_INODE_TIME = {
    "chmod": lambda path: path.chmod(0o640),
    "chown": lambda path: os.chown(path, 1, 1),
    "link": lambda path: os.link(path, path.parent.parent / "linked"),
}


@pytest.mark.parametrize("touch", OTHER_INODE_TIME)
@pytest.mark.parametrize("choice", CHOICES)
def test_damage_is_recognised_whatever_else_happened_to_the_file(stage, choice, touch):
    """Its ctime is another, and its content is what it was."""
    body = stage.write("a", 1000).read_bytes()
    damage(stage, faults.store_damaged(kill=True))
    assert stage.push().code == -9
    stage.s3.clear()
    OTHER_INODE_TIME[touch](stage.tree / "a")
    run = stage.push("--if-changed", choice)
    assert run.code == 0 and SAID in run.err, run
    assert stage.arena.s3.get(stage.arena.bucket, stage.key("a")) == body


ROTATED = {  # the log as it is found first, options, and whether logrotate compresses it between the two runs
    "plain": ("app.log.1", [], False),
    "gz": ("app.log.1.gz", [], False),
    "compress": ("app.log.1", ["--compress", "gzip"], False),
    "compress, then gz": ("app.log.1", ["--compress", "gzip"], True),
    "plain, then gz": ("app.log.1", [], True),
    "zstd, then gz": ("app.log.1", ["--compress", "zstd"], True),
}


def rotated_log(stage, how):
    """The first run of a log is killed over a damaged upload. Its content, and the options for the next run."""
    name, options, later = ROTATED[how]
    line = "".join(f"line {n}\n" for n in range(200)).encode()
    path = stage.tree / name
    path.write_bytes(gzip.compress(line) if name.endswith(".gz") else line)
    options = ["--rotated", "--min-age", "0s", *options]
    rule = damage(stage, faults.store_damaged(kill=True))
    assert stage.push(*options).code == -9 and rule.fired == 1
    stage.s3.clear()
    if later:
        subprocess.run(["gzip", name], cwd=stage.tree, check=True)
    return line, options


def holds(stage):
    """Which of the objects can be decompressed, as they are or by zstd or gzip: key → content."""
    found = {}
    for key in stage.arena.s3.objects(stage.arena.bucket, stage.prefix + "/"):
        body = stage.arena.s3.get(stage.arena.bucket, key)
        tool = {"zst": "zstd", "gz": "gzip"}.get(key.rsplit(".", 1)[-1])
        run = subprocess.run([tool, "-dc"], input=body, capture_output=True) if tool else None
        found[key] = (run.stdout if not run.returncode else None) if run else body
    return found


@pytest.mark.parametrize("how", ROTATED)
@pytest.mark.parametrize("lost", [False, True], ids=["", "marks lost"])
@pytest.mark.parametrize("stage", ["rgw", "aws", "ignores"], indirect=True)
def test_damage_of_a_rotated_log_is_recognised(stage, how, lost):
    """Never adopted, whichever key it is under and whatever it says of its content; the file is not removed for it."""
    line, options = rotated_log(stage, how)
    if lost:
        for each in stage.marks_file.parent.iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()
    (damaged,) = stage.arena.s3.objects(stage.arena.bucket, stage.prefix + "/")
    run = stage.start(*options, "--delete-after=0s").wait(60)  # the checker does not know the keys of rotated logs
    if lost and holds(stage)[damaged] != line:  # it is ours to replace only by the marks that sent it
        assert run.code == 1 or len(holds(stage)) == 2, run
    else:
        assert run.code == 0 and "S3 holds other bytes" in run.err, run
    found = holds(stage)
    if run.code == 0:
        assert list(found.values()).count(line) == 1 and len(found) <= 2, (run, found)
        assert not list(stage.tree.iterdir()), "what S3 has proven may go"
    else:
        assert [each for each in stage.tree.iterdir()], "the only good copy"


def test_a_version_that_was_rewritten_with_its_time_is_no_damage(stage):
    """The file's ctime tells that: what was sent is an earlier version, and is replaced only if asked for."""
    path = stage.write("a", 1000)
    earlier, before = path.read_bytes(), path.stat()
    damage(stage, faults.kill_after)
    assert stage.push().code == -9
    stage.s3.clear()
    path.write_bytes(b"x" * 1000)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    stage.checker.note_version(stage.key("a"), b"x" * 1000, before.st_mtime_ns)
    for _ in range(2):  # what is done keeps its own time, and no later run takes that for this file's
        run = stage.push()
        assert run.code == 1 and "changed since" in run.err and SAID not in run.err, run
        mark = stage.marks()[stage.key("a")]
        assert mark["state"] == "done" and int(mark["mtime"]) == before.st_mtime_ns, mark
        assert int(mark["mtime_shared"]) == 1, mark
    assert stage.arena.s3.get(stage.arena.bucket, stage.key("a")) == earlier
    assert stage.push("--if-changed", "replace").code == 0
    assert "mtime_shared" not in stage.marks()[stage.key("a")]


def test_a_damaged_part_is_never_an_object(stage):
    """Its etag tells it: the part is sent again, and the object is whole."""
    body = stage.write("large", 2 * PART + 77).read_bytes()
    rule = damage(stage, faults.store_damaged(False), "UploadPart")
    for _ in range(2):
        run = stage.push()
    assert rule.fired == 1 and run.code == 0, run
    assert stage.arena.s3.get(stage.arena.bucket, stage.key("large")) == body
