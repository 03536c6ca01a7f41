"""This host fails: disks that are full or broken, files cut short, descriptors and memory used up. A sentence and an exit code."""

import os
import subprocess

import pytest

from tests.faults import faults
from tests.faults.preloads import preload_library, preloaded
from tests.faults.scenarios import COMPRESS, LARGE
from tests.faults.stage import Stage
from tests.system.locking import FAILED


@pytest.fixture
def make_stage(arenas, tmp_path):
    made = []

    def make(**how):
        stage = Stage(tmp_path / f"stage{len(made)}", arenas(), **how)
        made.append(stage)
        return stage.__enter__()

    yield make
    for stage in made:
        stage.__exit__()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MiB, and a function that fills it up to so many bytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", disk], check=True)

    def fill(leave=0):
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        with open(disk / "filler", "wb", buffering=0) as filler:
            try:
                filler.write(bytes(max(0, free - leave)))
            except OSError:
                assert not leave  # the program has taken what was left

    def empty():
        (disk / "filler").unlink()

    yield disk, fill, empty
    subprocess.run(["umount", disk], check=True)


def test_full_disk_under_the_marks_from_the_start(make_stage, small_disk):
    disk, fill, empty = small_disk
    stage = make_stage(store="sqlite")
    stage.write("a", 1000)
    stage.marks_file = disk / "marks.db"
    stage.program.environment["S3ONCE_MARKS"] = f"sqlite:{stage.marks_file}"
    fill()
    result = stage.push()
    assert result.code == 3 and "marks.db" in result.err, result
    empty()
    stage.finish()


@pytest.mark.parametrize("leave", [0, 4096, 20000])
def test_full_disk_under_the_marks_in_the_middle(make_stage, small_disk, leave):
    disk, fill, empty = small_disk
    stage = make_stage(store="sqlite")
    for n in range(40):
        stage.write(f"f{n}", 100)
    stage.marks_file = disk / "marks.db"
    stage.program.environment["S3ONCE_MARKS"] = f"sqlite:{stage.marks_file}"
    rule = stage.s3.add(faults.hold_request, "PutObject", nth=3)
    running = stage.start("--request-timeout", "30s")
    assert rule.reached.wait(60), running.result(None)
    fill(leave)
    rule.released.set()
    result = stage.ended(running)
    assert result.code in (1, 3) and "marks.db" in result.err, result
    empty()
    stage.finish()


def test_full_disk_under_the_state_directory(make_stage, small_disk):
    """Observations of other sessions cannot be kept: the next run starts observing again, and nothing else changes."""
    disk, fill, empty = small_disk
    stage = make_stage()
    stage.write("a", 1000)
    stage.program.environment["XDG_STATE_HOME"] = str(disk)
    fill()
    result = stage.push()
    assert result.code in (0, 3), result  # 0 is checked to be true
    empty()
    stage.finish()


def push_with_bad_reads(stage, how, nth, name, *options):
    """From the nth on, reads of this file fail in that way."""
    stage.write("sound", 1000, *options)
    how = {"S3ONCE_TEST_READ": how, "S3ONCE_TEST_READ_PATH": f"tree/{name}", "S3ONCE_TEST_READ_FROM": nth}
    return stage.push(*options, env=preloaded(stage.program, preload_library(), **how))


@pytest.mark.parametrize("name, size", [("faulty", 1000), ("faulty", LARGE)], ids=["small", "large"])
@pytest.mark.parametrize("nth", [1, 2, 3, 4])
@pytest.mark.parametrize("how", ["eio", "short", "zero"])
def test_bad_reads(make_stage, how, nth, name, size):
    stage = make_stage()
    stage.write(name, size)
    result = push_with_bad_reads(stage, how, nth, name)
    objects = stage.arena.s3.objects(stage.arena.bucket, stage.prefix)
    assert stage.key("sound") in objects
    if how == "short" or result.code == 0:  # 0: all was read before it broke, which is checked
        assert result.code == 0, result
    else:
        assert result.code == 1 and name in result.err, result
        assert stage.key(name) not in objects
    stage.finish()


@pytest.mark.parametrize("nth", [1, 2])
def test_a_file_that_is_replaced_on_nfs(make_stage, nth):
    """The first read is the one that finds out whether the file is compressed already."""
    stage = make_stage()
    stage.write("faulty", 1000, *COMPRESS)
    result = push_with_bad_reads(stage, "stale", nth, "faulty", *COMPRESS)
    assert result.code == 0, result
    stage.finish()


@pytest.mark.parametrize("name, size", [("faulty", 1000), ("faulty", LARGE)], ids=["small", "large"])
def test_no_memory_to_read_a_file(make_stage, name, size):
    """The file fails and says so; the run goes on."""
    stage = make_stage()
    stage.write(name, size)
    result = push_with_bad_reads(stage, "enomem", 1, name)
    assert result.code == 1 and f"{name}: out of memory" in result.err, result
    assert stage.key("sound") in stage.arena.s3.objects(stage.arena.bucket, stage.prefix)
    stage.finish()


@pytest.mark.parametrize("kind", ["UploadPart", "CreateMultipartUpload", "HeadObject"])
@pytest.mark.parametrize("left", [0, 10, LARGE - 1])
def test_file_cut_short_under_way(make_stage, kind, left):
    stage = make_stage()
    path = stage.write("a", LARGE)
    rule = stage.s3.add(faults.hold_request, kind)
    running = stage.start("--request-timeout", "30s")
    assert rule.reached.wait(60), running.result(None)
    stage.write("a", path.read_bytes()[:left])
    rule.released.set()
    result = stage.ended(running)
    assert result.code == 0, result
    stage.finish()


@pytest.mark.parametrize("limit", [*range(4, 40, 3), 48, 64])
def test_out_of_descriptors(make_stage, limit):
    """With any limit, the run finishes, or its error blames no server."""
    stage = make_stage()
    stage.write("a", 1000)
    stage.write("large", LARGE)
    result = stage.push(wrap=["prlimit", f"--nofile={limit}"], concurrency=8, attempts=3)
    assert result.code in (0, 1, 3, 127) and (result.code == 0 or result.err), result
    assert "check the endpoint" not in result.err, result
    stage.finish()


NO_PROCESS = {
    "push --on-success": (0, "warning: --on-success: the command cannot be started: Resource temporarily unavailable"),
    "push -- COMMAND": (1, "no process can be started for it: Resource temporarily unavailable"),
    "lock run": (FAILED, "lock run: cannot start a process: Resource temporarily unavailable"),
    "credential_process": (3, "Resource temporarily unavailable"),
}


@pytest.mark.parametrize("who", NO_PROCESS)
def test_no_process_can_be_started(s3once, s3, bucket, tmp_path, who):
    """The command is not run, nothing hangs, nothing of what it would have written is in S3, and a sentence says why."""
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "profile").write_text("[default]\ncredential_process = /bin/true\n")
    touch = ["touch", str(tmp_path / "was-run")]
    commands = {
        "push --on-success": ["push", tmp_path / "a", f"s3://{bucket}", "--on-success", " ".join(touch)],
        "push -- COMMAND": ["push", f"s3://{bucket}/k", "--", *touch],
        "lock run": ["lock", "run", "k", "--", *touch],
        "credential_process": ["push", tmp_path / "a", f"s3://{bucket}"],
    }
    code, words = NO_PROCESS[who]
    env = preloaded(s3once, preload_library(), S3ONCE_TEST_NO_PROCESS=1)
    if who == "credential_process":
        env |= {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None, "AWS_CONFIG_FILE": str(tmp_path / "profile")}
    run = s3once(*commands[who], env=env)
    assert run.code == code and words in run.err, run
    assert not (tmp_path / "was-run").exists() and list(s3.objects(bucket)) == (["a"] if code == 0 else [])


def test_libcurl_that_cannot_be_set_up(make_stage):
    stage = make_stage(store="sqlite")
    stage.write("a", 100)
    result = stage.push(env=preloaded(stage.program, preload_library(), S3ONCE_TEST_NO_CURL=1))
    assert result.code == 3 and "libcurl cannot be set up" in result.err, result
    stage.finish()
