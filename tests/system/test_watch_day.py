"""`s3once watch` through a day that goes wrong: whatever happens, each file that came to rest is shipped, and the service stays as it is."""

import hashlib
import os
import random
import shutil
import signal
import time

import pytest

from tests.faults import faults
from tests.system.harness import PROGRAM, make_tree, wait_until
from tests.system.watching import Watched

HURRY = 100  # times as fast as a service by its defaults: files rest after 100 ms, and all are looked at every 6 s


class Day:
    """Two jobs of one service, and what happens to their trees."""

    def __init__(self, watched, s3, wire, seed):
        self.watched, self.s3, self.wire = watched, s3, wire
        self.random = random.Random(seed)
        self.trees = [watched.tree, watched.folder / "other"]
        self.trees[1].mkdir()
        self.files = [watched.file, watched.folder / "other.conf"]
        self.write_jobs()
        self.made = 0
        self.worst_s = 0

    def write_jobs(self):
        values = {"min_age": "100ms", "full_scan": "6s", "if_changed": "replace", "give_up_after": 0}
        self.watched.file = self.files[1]
        self.watched.write(**values, source=self.trees[1], target=f"s3://{self.watched.bucket}/q")
        self.watched.file = self.files[0]
        self.watched.write(**values)

    def start(self):
        self.watched.start(self.files[1], env={"AWS_MAX_ATTEMPTS": "1"})

    @property
    def process(self):
        return self.watched.running.popen

    def name(self):
        self.made += 1
        return f"n{self.made}"

    def tree(self):
        return self.random.choice(self.trees)

    def folder(self):
        tree = self.tree()
        return self.random.choice([tree, *(each for each in tree.iterdir() if each.is_dir() and not each.is_symlink())])

    # What happens:

    def files_appear(self):
        folder = self.folder()
        make_tree(folder, {self.name(): self.random.randrange(2000) for _ in range(self.random.randrange(1, 20))})

    def folders_appear(self):
        make_tree(self.tree(), {f"{self.name()}/{self.name()}/{self.name()}": 10, f"{self.name()}/x": 20})

    def a_file_grows(self):
        with open(self.folder() / self.name(), "wb", buffering=0) as file:
            for _ in range(50):
                file.write(b"a line\n")

    def a_log_rotates(self):
        folder = self.folder()
        for number in (2, 1, 0):
            if (path := folder / f"log.{number}").exists():
                path.rename(folder / f"log.{number + 1}")
        (folder / "log.0").write_text(self.name())

    def a_folder_is_renamed(self):
        folder = self.folder()
        if folder not in self.trees:
            folder.rename(folder.parent / self.name())

    def a_folder_is_deleted(self):
        folder = self.folder()
        if folder not in self.trees:
            shutil.rmtree(folder)

    def a_folder_becomes_a_link(self):
        folder = self.folder()
        if folder not in self.trees:
            away = self.watched.folder / self.name()
            folder.rename(away)
            folder.symlink_to(away)

    def the_source_is_gone(self):
        tree = self.tree()
        tree.rename(self.watched.folder / "parked")
        (self.watched.folder / "parked").rename(tree)

    def the_server_is_gone(self):
        self.wire.clear()
        self.wire.add(faults.refuse, times=None)

    def the_file_of_a_job_is_broken(self):
        self.files[1].write_text("nonsense\n")
        self.process.send_signal(signal.SIGHUP)
        self.files_appear()
        self.write_jobs()
        self.process.send_signal(signal.SIGHUP)

    def the_host_stands_still(self):
        self.process.send_signal(signal.SIGSTOP)
        for _ in range(3):
            self.random.choice(self.ORDINARY)(self)
        self.process.send_signal(signal.SIGCONT)

    def the_queue_overflows(self):
        self.process.send_signal(signal.SIGSTOP)
        names = [self.trees[0] / "x.log", self.trees[0] / "y.log"]
        names[0].write_bytes(b"moves")
        with open("/proc/sys/fs/inotify/max_queued_events") as file:
            for i in range(int(file.read()) // 2 + 1):
                names[i % 2].rename(names[1 - i % 2])
        self.files_appear()
        self.process.send_signal(signal.SIGCONT)

    def it_is_killed(self):
        self.process.kill()
        self.process.wait()
        self.random.choice(self.ORDINARY)(self)
        self.wire.clear()
        self.start()

    def it_is_stopped(self):
        self.random.choice(self.ORDINARY)(self)
        self.wire.clear()
        self.end()
        self.start()

    ORDINARY = (files_appear, files_appear, files_appear, folders_appear, a_file_grows, a_log_rotates, a_folder_is_renamed, a_folder_is_deleted, a_folder_becomes_a_link)
    RARE = (the_source_is_gone, the_server_is_gone, the_file_of_a_job_is_broken, the_host_stands_still)
    ENDS = (it_is_killed, it_is_stopped)

    # What is promised:

    def missing(self):
        found = self.s3.objects(self.watched.bucket)
        missing = []
        for tree, prefix in zip(self.trees, "pq"):
            for folder, _, names in os.walk(tree):
                for name in names:
                    path = os.path.join(folder, name)
                    if os.path.islink(path):
                        continue
                    with open(path, "rb") as file:
                        etag = hashlib.md5(file.read()).hexdigest()
                    known = found.get(f"{prefix}/{os.path.relpath(path, tree)}")
                    if not known or known.etag != etag:
                        missing.append(path)
        return missing

    def all_is_shipped(self):
        """Returns when it is so; what S3 holds of files that rest now."""
        self.wire.clear()
        begun = time.monotonic()
        wait_until(lambda: not self.missing(), 120, "that all files are in S3")
        self.worst_s = max(self.worst_s, time.monotonic() - begun)

    def live(self, events, ordinary=8):
        for event in events:
            for _ in range(ordinary):
                self.random.choice(self.ORDINARY)(self)
            event(self)
            self.all_is_shipped()
            for tree in self.trees:  # the trees stay small
                for each in sorted(tree.iterdir())[30:]:
                    shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()

    def end(self):
        """The last pass may have found that a file was just deleted (1), or files may wait for one (143). With 0, nothing is left."""
        run = self.watched.stop()
        assert run.code in (0, 1, 143), run
        assert run.code or not self.missing(), run

    def resident_kib(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(next(line for line in file if line.startswith("VmRSS")).split()[1])


@pytest.fixture
def day(s3once, s3, s3_wire, bucket, tmp_path):
    return Day(Watched(s3once, bucket, tmp_path), s3, s3_wire, seed=1)


def test_some_minutes(day):
    day.start()
    day.live([Day.the_host_stands_still, *Day.ENDS], ordinary=4)
    day.end()


@pytest.mark.full
def test_a_day(day):
    """24 hours at HURRY times the speed. It ends in the first fifth only, for its memory is compared from then on."""
    begun, seconds = time.monotonic(), 24 * 3600 / HURRY
    day.start()
    while time.monotonic() - begun < seconds / 5:
        day.live([day.random.choice((*Day.RARE, *Day.ENDS, Day.the_queue_overflows))])
    early = day.resident_kib()
    while time.monotonic() - begun < seconds:
        day.live([day.random.choice((*Day.RARE, Day.the_queue_overflows))])
    late = day.resident_kib()
    print(f"{day.made} names; shipped at most {day.worst_s:.1f} s after the last change; {early} KiB, then {late} KiB")
    if b"__asan_init" not in PROGRAM.read_bytes():
        assert late < early + 8192
    day.end()
