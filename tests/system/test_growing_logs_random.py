"""Logs that grow, under random operations: what docs/logs.md promises of them is compared with what is in S3.

Each line has a number and is written once: `<17 xxxxx 17>`. Its beginning and its end are counted, each for itself, so that a line
that was torn is seen, too. Operations are chosen by a seed. When exactly a run meets them is left to chance.
"""

import gzip
import os
import random
import re
import shutil
import signal
import time
from collections import Counter

import pytest

from tests.system.pushing import counts
from tests.system.test_growing_logs import LIVE, push
from tests.system.test_rotated import plain

BEGINNING, END = re.compile(rb"<(\d+) "), re.compile(rb" (\d+)>\n")
SECOND = 10**9


def ends_of_lines(text):
    return Counter([b"<" + n for n in BEGINNING.findall(text)] + [n + b">" for n in END.findall(text)])


def torn_lines(text):
    """The numbers of lines of which only one end is in the text."""
    return set(BEGINNING.findall(text)) ^ set(END.findall(text))


class Log:
    """A folder of one log, and what a daemon, logrotate and a careless administrator do to it."""

    def __init__(self, folder, chosen):
        self.folder, self.chosen = folder, chosen
        self.live = folder / "app.log"
        folder.mkdir()
        self.is_dated = chosen.random() < 0.3
        self.header = b"header\n" * chosen.randrange(2)
        self.clock = 1767322800 * SECOND  # the time of files that look old
        self.lines = self.days = 0
        self.half = b""  # the rest of a line that was begun in the live log
        self.renamed = None  # the inode of the log to which the daemon may still write
        self.is_watched = False  # a run is at work
        self.done = []  # the names of all operations, for who reads a failure
        self.generations = []  # all that each generation of the log has ever contained
        # What docs/logs.md excludes:
        self.may_be_torn = set()  # numbers of lines that were cut in two by a rotation
        self.may_be_twice = Counter()  # ends of lines, and in how many more objects than one they may be
        self.settled = set()  # inodes of the files that were there when all was uploaded
        self.touched = set()  # inodes of files whose time was changed since then

    def operate(self):
        often = [self.append] * 5 + [self.rename] * 3 + [self.append_half, self.append_late, self.copytruncate, self.compress] * 2
        operation = self.chosen.choice([*often, self.delete_oldest, self.delete_live, self.replace, self.touch])
        self.done.append(operation.__name__)
        operation()

    # --- the daemon

    def append(self):
        rest, self.half = self.half, b""
        self.write(rest + b"".join(self.new_line() for _ in range(self.chosen.randrange(1, 4))))

    def append_half(self):
        if not self.half:
            line = self.new_line()
            at = min(self.chosen.randrange(len(line) // 2, len(line)), END.search(line).start())
            self.half = line[at:]
            self.write(line[:at])

    def append_late(self):
        """To the log that was renamed, before the daemon has opened the new one."""
        for path in self.rotated():
            if path.stat().st_ino == self.renamed and path.suffix != ".gz" and self.is_new():
                rest, self.half = self.half, b""
                self.write(rest + self.new_line(), path)

    def new_line(self):
        self.lines += 1
        return b"<%d %s %d>\n" % (self.lines, b"x" * self.chosen.randrange(4, 90), self.lines)

    def write(self, text, path=None):
        if not path and self.is_new():
            self.generations.append(b"")
            text = self.header + text
        with open(path or self.live, "ab") as file:
            file.write(text)
        self.generations[-1] += text
        self.age(path or self.live)

    def is_new(self):
        return not self.live.exists() or not self.live.stat().st_size

    def age(self, path):
        """Files that look old are not read again. No run may have seen the file with another time."""
        if not self.is_watched and self.chosen.random() < 0.6:
            self.date(path, self.chosen.choice([SECOND // 1000, SECOND, 60 * SECOND]))

    def date(self, path, later=SECOND):
        self.clock += later
        os.utime(path, ns=(self.clock, self.clock))

    # --- logrotate

    def rename(self):
        if not self.live.exists() or (self.is_watched and self.is_new()):
            return
        to = self.begin_rotation()
        if self.is_new():  # empty logs of the same second cannot be told apart
            self.date(self.live)
        self.renamed = self.live.stat().st_ino
        self.live.rename(to)
        self.pause()
        if self.chosen.random() < 0.5:
            self.live.touch()

    def copytruncate(self):
        if self.is_new():
            return
        to = self.begin_rotation()
        shutil.copyfile(self.live, to)
        self.age(to)
        self.pause()
        if self.chosen.random() < 0.2:
            self.may_be_twice += ends_of_lines(to.read_bytes())
            self.append()
            self.half = b""
            self.pause()
        os.truncate(self.live, 0)
        self.renamed = None

    def compress(self):
        for path in self.rotated():
            if path.suffix == ".gz" or self.chosen.random() < 0.3:
                continue
            body, packed, status = path.read_bytes(), path.with_name(path.name + ".gz"), path.stat()
            with open(packed, "wb", buffering=0) as file:
                file.write(gzip.compress(body)[:20])
                self.pause()
                file.write(gzip.compress(body)[20:])
            self.settled.discard(packed.stat().st_ino)  # of a file that was deleted
            os.utime(packed, ns=(status.st_mtime_ns, status.st_mtime_ns))
            self.pause()
            path.unlink()
            if status.st_ino in self.touched:
                self.may_be_twice += ends_of_lines(body)

    def delete_oldest(self):
        for path in self.rotated()[-1:]:
            path.unlink()

    def rotated(self):
        """The newest first."""
        found = [each for each in self.folder.iterdir() if each != self.live]
        return sorted(found, key=lambda each: int(re.split(r"[.-]", each.name)[2]), reverse=self.is_dated)

    def begin_rotation(self):
        """The name of the next rotated log."""
        self.days += 1
        if self.half:
            self.may_be_torn.add(END.search(self.half)[1])
        if self.is_dated:
            return self.folder / f"app.log-{20260100 + self.days}"
        for path in reversed(self.rotated()):
            number = path.name.split(".")[2]
            path.rename(self.folder / path.name.replace(number, str(int(number) + 1)))
            self.pause()
        return self.folder / "app.log.1"

    def pause(self):
        if self.is_watched:
            time.sleep(self.chosen.random() * 0.02)

    # --- the administrator

    def delete_live(self):
        """The next one may have its inode."""
        if self.live.exists():
            self.live.unlink()
            self.half = b""
            self.append()

    def replace(self):
        """A log becomes another one of the same size, in place or by a new file."""
        logs = [each for each in sorted(self.folder.iterdir()) if each.suffix != ".gz" and each.stat().st_size > 30]
        if not logs:
            return
        path = self.chosen.choice(logs)
        self.lines += 1
        room = path.stat().st_size - len(b"<%d  %d>\n" % (self.lines, self.lines))
        body = b"<%d %s %d>\n" % (self.lines, b"x" * room, self.lines)
        if path == self.live:
            self.half = b""
            self.generations.append(body)
        else:
            self.generations.insert(0, body)
            self.renamed = None
        if self.chosen.random() < 0.5:
            with open(path, "r+b") as file:
                file.write(body)
        else:
            other = self.folder.parent / "other"
            other.write_bytes(body)
            other.replace(path)
        self.age(path)

    def touch(self):
        logs = sorted(self.folder.iterdir())
        if self.is_watched or not logs:
            return
        path = self.chosen.choice(logs)
        self.date(path)
        self.touched.add(path.stat().st_ino)
        if path.suffix == ".gz" and path.stat().st_ino not in self.settled:
            self.may_be_twice += ends_of_lines(gzip.decompress(path.read_bytes()))

    def link(self):
        """A second name of one of the files."""
        path = self.chosen.choice([self.live, *self.rotated()] if self.live.exists() else self.rotated())
        if path == self.live and self.half:
            self.may_be_torn.add(END.search(self.half)[1])
        other = self.folder / (("app.log-20251231" if self.is_dated else "app.log.999") + ".gz" * (path.suffix == ".gz"))
        os.link(path, other)
        return other

    # --- what there is

    def settle(self):
        self.settled = {each.stat().st_ino for each in self.folder.iterdir()}
        self.touched = set()

    def counts_as_live(self):
        """The live log or, where no file has its name, the newest one with a date, for a day after it was written."""
        plain_ones = [each for each in self.rotated() if each.suffix != ".gz"]
        if self.live.exists() or not self.is_dated or not plain_ones:
            return self.live
        newest = max(plain_ones, key=lambda each: (each.stat().st_mtime_ns, each.name))
        return newest if newest.stat().st_mtime > time.time() - 86400 else self.live

    def to_upload(self):
        """The ends of all lines that a run takes: of the live log up to the end of its last line, or none."""
        found, live = Counter(), self.counts_as_live()
        for path in self.folder.iterdir():
            body = plain(path.name, path.read_bytes())
            if path == live:
                body = body[: body.rfind(b"\n") + 1]
            found |= ends_of_lines(body)
        return found


class Play:
    """A log, and the runs that upload it."""

    def __init__(self, s3once, s3, bucket, folder, seed):
        self.s3once, self.s3, self.bucket = s3once, s3, bucket
        self.chosen = random.Random(seed)
        self.log = Log(folder, self.chosen)
        self.loses_marks = self.chosen.random() < 0.3
        self.kept = None  # what S3 had when the marks were copied
        self.bodies = {}  # key → content of all objects

    def play(self, rounds):
        for _ in range(rounds):
            for _ in range(self.chosen.randrange(1, 5)):
                self.log.operate()
            what = self.chosen.random()
            if what < 0.45:
                self.run_meanwhile()
            elif what < 0.55 and self.log.rotated():
                self.run_with_link()
            elif what < 0.65 and self.kept is not None:
                self.restore_marks()
            if self.chosen.random() < 0.6:
                self.run_in_silence()
        self.run_in_silence()

    def run(self):
        run = push(self.s3once, self.log.folder, self.bucket, LIVE)
        self.log.done.append(f"run: {run.code}")
        return run

    def run_in_silence(self):
        """While nothing happens, a run takes all that there is, and the next one has nothing to do."""
        run = self.run()
        assert run.code == 0, (run, self.log.done)
        self.compare(run)
        missing = self.log.to_upload() - self.uploaded()
        assert not missing, ("missing", missing, run, self.log.done)
        before = set(self.bodies)
        run = self.run()
        assert run.code == 0 and "uploaded" not in counts(run), ("sent again", run, self.log.done)
        self.compare(run)
        assert set(self.bodies) == before, ("sent again", run, self.log.done)
        if self.kept is None:
            self.log.settle()
            if self.loses_marks and self.chosen.random() < 0.3:
                self.keep_marks()

    def run_meanwhile(self):
        """One run, or two at once, some of them killed, while the log is written and rotated."""
        running = [self.s3once.start("push", self.log.folder, f"s3://{self.bucket}/p", *LIVE) for _ in range(self.chosen.choice([1, 1, 2]))]
        self.log.is_watched = True
        for _ in range(self.chosen.randrange(5)):
            time.sleep(self.chosen.random() * 0.06)
            self.log.operate()
        self.log.is_watched = False
        for each in running:
            if self.chosen.random() < 0.4:
                time.sleep(self.chosen.random() * 0.2)
                each.kill()
            run = each.wait(120)
            assert run.code in (0, 1, -signal.SIGKILL), run
            self.log.done.append(f"run meanwhile: {run.code}")
        self.compare(running)

    def run_with_link(self):
        other = self.log.link()
        self.log.done.append("link")
        run = self.run()
        assert run.code in (0, 1), run
        other.unlink()
        self.compare(run)

    def keep_marks(self):
        self.kept = self.uploaded()
        shutil.copytree(self.s3once.state, self.s3once.folder / "kept")
        self.log.done.append("keep marks")

    def restore_marks(self):
        """Lines uploaded since then may be uploaded again."""
        shutil.rmtree(self.s3once.state)
        (self.s3once.folder / "kept").rename(self.s3once.state)
        self.log.may_be_twice += self.uploaded() - self.kept
        self.kept = None
        self.log.done.append("restore marks")

    def uploaded(self):
        for key in self.s3.objects(self.bucket, "p/").keys() - self.bodies.keys():
            self.bodies[key] = plain(key, self.s3.get(self.bucket, key))
        return sum(map(ends_of_lines, self.bodies.values()), Counter())

    def compare(self, run):
        """Nothing in S3 is there twice, torn or made up."""
        found = self.uploaded()
        twice = found - Counter(dict.fromkeys(found, 1)) - self.log.may_be_twice
        assert not twice, ("twice", twice, run, self.bodies, self.log.done)
        for key, body in self.bodies.items():
            torn = torn_lines(body) - self.log.may_be_torn
            assert not torn, ("torn", torn, key, body, run, self.log.done)
            assert any(body in each for each in self.log.generations), ("made up", key, body, run, self.log.done)


@pytest.mark.parametrize("seed", [1, 2, 15, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(100, 200))])
def test_random(s3once, s3, bucket, tmp_path, seed):
    Play(s3once, s3, bucket, tmp_path / "logs", seed).play(8)
