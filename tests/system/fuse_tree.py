"""A file system of one folder in user space (FUSE), spoken over /dev/fuse as the kernel defines it, so that no package is
needed: whatever a test wants files to be. It needs root and /dev/fuse."""

import ctypes
import errno
import os
import struct
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
ROOT = 1
LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE = 1, 2, 3, 14, 15, 17, 18
INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT, BATCH_FORGET, DESTROY = 26, 27, 28, 29, 36, 42, 38
MNT_DETACH = 2


class Fake:
    """A file: its bytes, and what is told of it. reads and looks count the requests."""

    def __init__(self, content, mtime_ns=None):
        self.content, self.size = content, len(content)
        self.mtime_ns = mtime_ns or time.time_ns() - 3600 * 10**9
        self.ctime_ns = self.mtime_ns
        self.ino = 0  # 0: the number of its node
        self.reads = self.looks = 0
        self.on_read = self.on_look = lambda fake: None


class FuseTree:
    """with FuseTree(folder, {"name": Fake(…)}, keeps=20) as tree: the kernel keeps attributes for that many seconds."""

    def __init__(self, folder, files, keeps=0):
        self.folder, self.files, self.keeps = folder, list(files.items()), keeps

    def __enter__(self):
        self.folder.mkdir()
        self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        if LIBC.mount(b"fake", os.fsencode(self.folder), b"fuse", 0, options):
            os.close(self.fd)
            raise OSError(ctypes.get_errno(), "mount")
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        return self.folder

    def __exit__(self, *_):
        LIBC.umount2(os.fsencode(self.folder), MNT_DETACH)
        self.thread.join(20)
        os.close(self.fd)

    def serve(self):
        while True:
            try:
                request = os.read(self.fd, 1 << 20)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.ENOENT, errno.EAGAIN):
                    continue
                return  # ENODEV: it is unmounted
            _, code, unique, node = struct.unpack_from("=IIQQ", request)
            if code in (FORGET, BATCH_FORGET, INTERRUPT):
                continue
            answer = self.answer(code, node, request[40:])
            error, body = (answer, b"") if isinstance(answer, int) else (0, answer)
            try:
                os.write(self.fd, struct.pack("=IiQ", 16 + len(body), -error, unique) + body)
            except OSError:  # the kernel waits no more
                pass

    def attributes(self, node):
        if node == ROOT:
            return struct.pack("=QQQQQQIIIIIIIIII", ROOT, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, 0, 0, 0, 4096, 0)
        fake = self.files[node - ROOT - 1][1]
        fake.looks += 1
        fake.on_look(fake)
        (mtime, mtime_ns), (ctime, ctime_ns) = divmod(fake.mtime_ns, 10**9), divmod(fake.ctime_ns, 10**9)
        times = (mtime, mtime, ctime, mtime_ns, mtime_ns, ctime_ns)
        ids = (0o100644, 1, 0, 0, 0, 4096, 0)
        return struct.pack("=QQQQQQIIIIIIIIII", fake.ino or node, fake.size, fake.size // 512 + 1, *times, *ids)

    def answer(self, code, node, body):
        """The reply's bytes, or an error number."""
        if code == INIT:
            return struct.pack("=IIIIHHIIHHI7I", 7, 31, 65536, 0, 12, 9, 1 << 17, 1, 32, 0, 0, *[0] * 7)
        if code == GETATTR:
            return struct.pack("=QII", self.keeps, 0, 0) + self.attributes(node)
        if code == LOOKUP:
            names = [name for name, _ in self.files]
            name = os.fsdecode(body.rstrip(b"\0"))
            if name not in names:
                return errno.ENOENT
            found = names.index(name) + ROOT + 1
            return struct.pack("=QQQQII", found, 0, self.keeps, self.keeps, 0, 0) + self.attributes(found)
        if code in (OPEN, OPENDIR):
            return struct.pack("=QII", node, 0, 0)
        if code == READ:
            _, offset, size = struct.unpack_from("=QQI", body)
            fake = self.files[node - ROOT - 1][1]
            fake.reads += 1
            fake.on_read(fake)
            return fake.content[offset : offset + size]
        if code == READDIR:
            _, offset, _ = struct.unpack_from("=QQI", body)
            return b"".join(self.entries())[offset:] if not offset else b""
        if code in (RELEASE, RELEASEDIR, DESTROY):
            return b""
        if code == STATFS:
            return struct.pack("=QQQQQIIII6I", 0, 0, 0, 0, 0, 4096, 255, 4096, 0, *[0] * 6)
        return errno.ENOSYS

    def entries(self):
        for i, (name, _) in enumerate(self.files):
            name = os.fsencode(name)
            yield struct.pack("=QQII", ROOT + 1 + i, i + 1, len(name), 8) + name + b"\0" * (-len(name) % 8)
