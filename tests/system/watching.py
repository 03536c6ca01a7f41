"""A service under test: its manager, its job and what it says."""

import queue
import re
import socket
import threading
import time

from tests.system.harness import make_tree, wait_until


STATUS = r"STATUS=Watching ([\d,]+) folders?: ([\d,]+) full scans?, ([\d,]+) pass(?:es)? over some folders, ([\d,]+) of both failed; uploaded ([\d,]+) files? .*"


def read_all(reads, unread):
    while message := reads.recv(8192):
        unread.put(message)


class Manager:
    """The role of systemd for a service of Type=notify: a socket, and the messages received. It reads all the time: a
    socket holds ten unread messages, and a service does not wait for its reader, so READY=1 could be lost."""

    def __init__(self, path):
        self.path, self.lines, self.figures = path, [], {}
        self.unread = queue.SimpleQueue()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        threading.Thread(target=read_all, args=(self.socket, self.unread), daemon=True).start()

    def __del__(self):
        self.socket.shutdown(socket.SHUT_RD)  # the end of the thread

    def forget(self):
        """Discards messages of an earlier process."""
        while not self.unread.empty():
            self.unread.get()
        self.figures = {}

    def next_line(self, pattern, seconds=120):
        """Waits for a line that was not read yet, and returns its match."""
        end = time.monotonic() + seconds
        while True:
            for line in self.next_message(max(0, end - time.monotonic())):
                if match := re.fullmatch(pattern, line):
                    return match

    def next_message(self, seconds=60):
        """The lines that are told at once."""
        lines = self.unread.get(timeout=seconds).decode().splitlines()
        self.lines += lines
        return lines

    def pass_ended(self):
        """The figures in the status after the next pass: folders, full scans, other passes, failed ones, files."""
        match = self.next_line(STATUS)
        numbers = [int(number.replace(",", "")) for number in match.groups()]
        self.figures = dict(zip(("folders", "full", "some", "failed", "files"), numbers))
        return self.figures

    def pass_with(self, **wanted):
        """The first status that has these figures: the last one told, or one that comes."""
        while not wanted.items() <= self.figures.items():
            self.pass_ended()
        return self.figures


class Watched:
    """`s3once watch` of one job, with a tree and a bucket."""

    def __init__(self, s3once, bucket, folder):
        self.s3once, self.folder = s3once, folder
        self.bucket = bucket
        self.tree = make_tree(folder / "tree", {})
        self.tree.mkdir()
        self.file = folder / "job.conf"
        self.write()
        self.manager = Manager(folder / "notify")
        self.running = None

    def write(self, *lines, **values):
        """The file of the job: a file rests after a moment, and no full scan comes unless the test asks for it."""
        values = {"source": self.tree, "target": f"s3://{self.bucket}/p", "min_age": "200ms", "full_scan": "1h", "json": "yes", **values}
        text = [f"{name.replace('_', '-')} = {value}" for name, value in values.items()]
        self.file.write_text("\n".join([*text, *lines]) + "\n")

    def begin(self, *args, **how):
        how["env"] = {"NOTIFY_SOCKET": str(self.manager.path), **how.get("env", {})}
        self.manager.forget()
        self.running = self.s3once.start("watch", self.file, *args, **how)
        self.manager.next_line("READY=1")

    def start(self, *args, **how):
        """Returns when the first full scan is over; its figures."""
        self.begin(*args, **how)
        return self.manager.pass_ended()

    def rename_in(self, name, value, age=0):
        """A file that appears whole, as programs do that know what they do."""
        path = self.folder / "elsewhere"
        make_tree(self.folder, {path.name: value})
        to = self.tree / name
        to.parent.mkdir(parents=True, exist_ok=True)
        path.rename(to)
        return to

    def stop(self, signal_number=15):
        self.running.popen.send_signal(signal_number)
        return self.running.wait()

    def said(self, sentence):
        return self.running.output()[1].count(sentence)

    def wait_said(self, sentence):
        wait_until(lambda: self.said(sentence), 60, f"the words {sentence!r}")
