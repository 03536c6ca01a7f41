"""Each object is a file as it was at one moment, even if size and times do not show its changes: it is written
through a mapping, or its file system reports other values each time, or reports changes too late."""

import contextlib
import ctypes
import mmap
import os
import subprocess
import time

import pytest

from tests.faults import faults
from tests.system.fuse_tree import Fake, FuseTree
from tests.system.harness import MIB, wait_until

sqlite = pytest.mark.parametrize("marks", ["sqlite"], indirect=True)
pytestmark = sqlite


def wants_fuse():
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
        return os.geteuid() == 0
    except OSError:
        return False


fuse = pytest.mark.skipif(not wants_fuse(), reason="needs root and /dev/fuse")


LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class Mapped:
    """A file that is stored to through a mapping whose pages are dirty, as by a database. Nobody has it open besides: mmap.mmap
    would keep a descriptor."""

    def __init__(self, path, size):
        self.path, self.size = path, size
        path.write_bytes(b"a" * size)
        fd = os.open(path, os.O_RDWR)
        self.at = LIBC.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
        os.close(fd)
        self.fill(b"a")

    def fill(self, byte):
        ctypes.memset(self.at, byte[0], self.size)

    def close(self):
        LIBC.munmap(self.at, self.size)


@contextlib.contextmanager
def file_system(kind, folder):
    """A folder on the disk, in memory, of a container (overlayfs), or on a disk that keeps whole seconds (ext4 with small inodes)."""
    folder.mkdir()
    if kind == "disk":
        yield folder
        return
    layers = folder.with_name("layers")
    for layer in ("lower", "upper", "work"):
        (layers / layer).mkdir(parents=True)
    how = {
        "memory": "-t tmpfs -o size=64m s3once-test",
        "overlay": f"-t overlay -o lowerdir={layers}/lower,upperdir={layers}/upper,workdir={layers}/work overlay",
        "seconds": f"-o loop {layers}/disk",
    }
    if kind == "seconds":
        os.system(f"truncate -s 64M {layers}/disk; mkfs.ext4 -q -F -I 128 {layers}/disk 2>{os.devnull}")
    if os.geteuid() or os.system(f"mount {how[kind]} {folder}"):
        pytest.skip("needs root for a mount")
    try:
        yield folder
    finally:
        os.system(f"umount -l {folder}")


@pytest.fixture(params=["disk", "memory", "overlay"])
def mapped(request, tmp_path):
    """If the kernel writes pages back, a store is noticed later; in memory it never is."""
    with file_system(request.param, tmp_path / "file-system") as folder:
        tree = folder / "tree"
        tree.mkdir()
        db = Mapped(tree / "db", 12 * MIB)
        yield tree, db
        db.close()


@pytest.mark.parametrize("kind", ["HeadObject", "UploadPart"])
def test_stores_through_a_mapping_while_it_is_sent(s3once, s3, bucket, s3_wire, marks, mapped, kind):
    """Sent whole, it is digested before the HEAD and read again after it. In parts, one part is read after the other."""
    tree, db = mapped
    size = "64MiB" if kind == "HeadObject" else "5MiB"
    rule = s3_wire.add(faults.hold_request, kind, key="p/db")
    command = ("push", tree, f"s3://{bucket}/p", "--json", "--part-size", size, "--concurrency", "1")
    run = s3once.start(*command, env={"AWS_ENDPOINT_URL_S3": s3_wire.endpoint})
    assert rule.reached.wait(60)
    db.fill(b"b")
    rule.released.set()
    done = run.wait()
    assert done.code == 0 and set(s3.get(bucket, "p/db")) == {ord("b")}, done
    assert "changed while it was read" in done.out and "server received other bytes" not in done.out + done.err, done


@pytest.mark.parametrize("kind", ["disk", "overlay"])
def test_a_store_after_the_upload_is_found_by_the_next_run(s3once, s3, bucket, marks, tmp_path, kind):
    """The pages were written back before the file was read, so the store moves the modification time."""
    with file_system(kind, tmp_path / "file-system") as folder:
        tree = folder / "tree"
        tree.mkdir()
        db = Mapped(tree / "db", MIB)
        command = ("push", tree, f"s3://{bucket}/p", "--if-changed", "replace")
        assert s3once(*command).code == 0
        db.fill(b"b")
        assert s3once(*command).code == 0
        db.close()
    assert set(s3.get(bucket, "p/db")) == {ord("b")}


@pytest.mark.parametrize("s3", ["simulated"], indirect=True)
def test_a_change_within_one_step_of_the_clock(s3once, s3, bucket, s3_wire, marks, tmp_path):
    """The second of two changes within one second changes no time of a file on such a disk."""
    s3once.environment["AWS_ENDPOINT_URL_S3"] = s3_wire.endpoint
    with file_system("seconds", tmp_path / "file-system") as folder:
        path = folder / "db"
        for n in range(10):
            wait_until(lambda: time.time() % 1 < 0.05)
            path.write_bytes(b"a" * 12 * MIB)
            before = path.stat()
            rule = s3_wire.add(faults.hold_reply, "UploadPart", key=f"p{n}/db")
            run = s3once.start("push", path, f"s3://{bucket}/p{n}/", "--part-size", "5MiB", "--concurrency", "1")
            assert rule.reached.wait(60)
            with open(path, "r+b") as file:  # the part that was sent, and the one that is not read yet
                file.write(b"b" * 5 * MIB)
                file.seek(10 * MIB)
                file.write(b"b" * 2 * MIB)
            after = path.stat()
            rule.released.set()
            done = run.wait()
            if (before.st_mtime_ns, before.st_ctime_ns) == (after.st_mtime_ns, after.st_ctime_ns):
                break
        else:
            pytest.skip("this host is too slow to do all of it within a second")
        assert done.code == 0 and s3.get(bucket, f"p{n}/db") == path.read_bytes(), done


def rewritten_once(old, new):
    """A file that another host rewrites after the third part of it was read. Nothing tells of it: the attributes are kept."""

    def on_read(fake):
        if fake.reads == 3:
            fake.content = new

    fake = Fake(old)
    fake.on_read = on_read
    return fake


@fuse
@pytest.mark.parametrize("more", [[], ["--compress", "zstd"]], ids=["plain", "zstd"])
@pytest.mark.parametrize("mib", [1, 12], ids=["whole", "parts"])
def test_rewritten_on_its_file_server(s3once, s3, bucket, marks, tmp_path, mib, more):
    old, new = os.urandom(mib * MIB), os.urandom(mib * MIB)
    with FuseTree(tmp_path / "mount", {"f": rewritten_once(old, new)}, keeps=600) as tree:
        run = s3once("push", tree, f"s3://{bucket}/p", "--json", "--part-size", "5MiB", *more)
    assert run.code == 0, run
    (key,) = s3.objects(bucket)
    stored = s3.get(bucket, key)
    if more:
        stored = subprocess.run(["zstd", "-dc"], input=stored, stdout=subprocess.PIPE, check=True).stdout
    assert stored == new, "torn" if stored != old else "old"


@fuse
@pytest.mark.parametrize("what", ["ctime", "inode"])
def test_a_file_system_that_tells_another_ctime_or_inode_each_time(s3once, s3, bucket, marks, tmp_path, what):
    def change(fake):
        fake.ctime_ns += 1000 if what == "ctime" else 0
        fake.ino = 1000 + fake.looks if what == "inode" else 0

    files = {f"f{i}": Fake(os.urandom(1000 + i)) for i in range(5)}
    files["large"] = Fake(os.urandom(6 * MIB))
    for fake in files.values():
        fake.on_look = change
    with FuseTree(tmp_path / "mount", files) as tree:
        for _ in range(2):
            run = s3once("push", tree, f"s3://{bucket}/p", "--json", "--part-size", "5MiB")
            assert run.code == 0 and "changed while it was read" not in run.out, run
    for name, fake in files.items():
        assert s3.get(bucket, f"p/{name}") == fake.content


@fuse
def test_a_file_system_that_tells_another_time_each_time(s3once, s3, bucket, marks, tmp_path):
    fake = Fake(b"x" * 1000)
    fake.on_look = lambda fake: setattr(fake, "mtime_ns", fake.mtime_ns + 1000)
    with FuseTree(tmp_path / "mount", {"f": fake}) as tree:
        run = s3once("push", tree, f"s3://{bucket}/p")
    assert run.code == 1 and "a different modification time each time" in run.err, run


@fuse
def test_file_that_differs_at_each_reading_fails(s3once, s3, bucket, marks, tmp_path):
    fake = Fake(b"x" * 1000)
    fake.on_read = lambda fake: setattr(fake, "content", os.urandom(1000))
    with FuseTree(tmp_path / "mount", {"f": fake}) as tree:
        run = s3once("push", tree, f"s3://{bucket}/p")
    assert run.code == 1 and "each read of it returns other content, although its size and modification time stay" in run.err, run
    assert not s3.objects(bucket)


@fuse
def test_content_that_is_shorter_than_its_size(s3once, s3, bucket, marks, tmp_path):
    fake = Fake(b"7\n")
    fake.size = 4096
    with FuseTree(tmp_path / "mount", {"f": fake}) as tree:
        run = s3once("push", tree, f"s3://{bucket}/p")
    assert run.code == 1 and "its content ends before its size" in run.err, run


def test_files_of_sys(s3once, s3, bucket, marks):
    run = s3once("push", "/sys/kernel/notes", "/sys/kernel/uevent_seqnum", f"s3://{bucket}/p")
    assert run.code == 1 and "its content ends before its size" in run.err and "faster than it can be read" not in run.err, run
