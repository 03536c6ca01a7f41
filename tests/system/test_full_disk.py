"""Commands that only read, where nothing can be written: they say what may be deleted when the disk of the marks is full."""

import os
import shutil
import signal
import subprocess

import pytest

from tests.faults import faults
from tests.system.harness import make_tree

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount")


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree", {"a.txt": b"a", "sub/b.txt": b"bb"})


@pytest.fixture
def disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", disk], check=True)
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def fill(disk):
    with open(disk / "filler", "wb", buffering=0) as filler:
        for step in (4096, 512):
            try:
                while True:
                    filler.write(bytes(step))
            except OSError:
                pass
    assert shutil.disk_usage(disk).free == 0


def read_only(disk):
    mount = f'mount --bind {disk} {disk} && mount -o remount,ro,bind {disk} && exec "$@"'
    return ["unshare", "-m", "sh", "-c", mount, "sh"]


def kill_in_the_middle(s3once, s3_wire, tree, *push):
    make_tree(tree, {"c.txt": b"ccc"})
    rule = s3_wire.add(faults.hold_request, "PutObject", key="c.txt")
    running = s3once.start(*push)
    assert rule.reached.wait(60), running.output()
    os.kill(running.pid, signal.SIGKILL)
    running.popen.wait()
    rule.released.set()


def assert_all_read(s3once, target, tree, marks, **how):
    """Each of them finds a.txt and b.txt in S3."""
    for command, words in {
        ("status", *marks, target): "done 2 files",
        ("verify", *marks, target): "2 objects are as their marks say",
        ("proven", *marks, "--source", tree, tree / "a.txt", target): "in S3: ",
        ("fleet", *marks): "push",
        ("push", "-n", *marks, tree, target): "",
        ("forget", "-n", *marks, target): "marks would be forgotten",
        ("gc", "-n", *marks, target): "",
        ("lock", "status", "--locks", marks[1], "x"): "x: free",
        ("lock", "list", "--locks", marks[1]): "",
    }.items():
        run = s3once(*command, **how)
        # 1 of the file that a killed run was sending, and of the full disk, which may hide a failure.
        may_complain = command[0] in ("verify", "fleet")
        assert run.code in ((0, 1) if may_complain else (0,)) and words in run.out + run.err, run


@pytest.mark.parametrize("state", ["closed", "killed", "killed, and there is no index"])
@pytest.mark.parametrize("where", ["full", "read only"])
def test_reading_commands_need_no_disk_space(s3once, s3, s3_wire, bucket, tree, disk, where, state):
    target, marks = f"s3://{bucket}", ("--marks", f"sqlite:{disk}/marks.db")
    push = ("push", *marks, tree, target)
    assert s3once(*push).code == 0
    if state != "closed":
        kill_in_the_middle(s3once, s3_wire, tree, *push)
        assert (disk / "marks.db-wal").stat().st_size
    if state == "killed, and there is no index":
        (disk / "marks.db-shm").unlink()
    if where == "full":
        fill(disk)
    how = {"wrap": read_only(disk)} if where == "read only" else {}
    if where == "read only" and state == "killed, and there is no index":
        run = s3once("status", *marks, target, **how)
        assert run.code == 3 and "no file can be made in its folder" in run.err, run
        return
    before = (disk / "marks.db").read_bytes()
    assert_all_read(s3once, target, tree, marks, **how)
    if state == "closed":
        assert (disk / "marks.db").read_bytes() == before
    (disk / "filler").unlink(missing_ok=True)
    assert s3once(*push).code == 0
    s3.assert_same(tree, bucket)


def test_live_logs_need_no_second_look(s3once, s3_wire, bucket, disk, tmp_path):
    """The marks and the rows of the logs are in one file, which is locked while it is read without an index."""
    logs = make_tree(tmp_path / "logs", {"app.log": b"one\ntwo\n"})
    push = ("push", "--marks", f"sqlite:{disk}/marks.db", "--rotated", "--live", logs, f"s3://{bucket}")
    assert s3once(*push).code == 0
    with open(logs / "app.log", "ab") as log:
        log.write(b"three\n")
    rule = s3_wire.add(faults.hold_request, "PutObject")
    running = s3once.start(*push)
    assert rule.reached.wait(60), running.output()
    os.kill(running.pid, signal.SIGKILL)
    running.popen.wait()
    rule.released.set()
    (disk / "marks.db-shm").unlink()
    fill(disk)
    run = s3once(*push, "-n")
    assert run.code == 0 and "already done 1" in run.out, run


def copy_marks(source, to):
    subprocess.run(["sh", "-c", f"rm -f {to}/marks.db* && cp -p {source}/marks.db* {to}"], check=True)


def test_the_recipe_for_a_full_disk(s3once, s3, bucket, tree, disk, tmp_path):
    """docs/operations.md: proven says what may be deleted, and a copy of the marks serves a push with --delete-after."""
    target, marks = f"s3://{bucket}", ("--marks", f"sqlite:{disk}/marks.db")
    assert s3once("push", *marks, tree, target).code == 0
    make_tree(tree, {"c.txt": b"ccc"})
    fill(disk)
    run = s3once("push", "--delete-after=0s", *marks, tree, target)
    assert run.code == 3 and "make room and run again; s3once proven tells which files of a push are in S3" in run.err, run
    run = s3once("proven", "-v", *marks, tree, target)
    assert run.code == 1 and f"in S3: {tree}/a.txt" in run.out and f"not in S3: {tree}/c.txt" in run.out, run
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    copy_marks(disk, other)
    run = s3once("push", "--delete-after=0s", "--marks", f"sqlite:{other}/marks.db", tree, target)
    assert run.code == 0 and not [name for _, _, names in os.walk(tree) for name in names], run
    (disk / "filler").unlink()
    copy_marks(other, disk)
    make_tree(tree, {"d.txt": b"dddd"})
    assert s3once("push", *marks, tree, target).code == 0
    assert {name: s3.get(bucket, name) for name in ("a.txt", "c.txt", "d.txt")} == {"a.txt": b"a", "c.txt": b"ccc", "d.txt": b"dddd"}
