"""The table "What becomes of a log" of docs/logs.md, cell by cell: what happens is done to a log, and a run has to send what the cell says."""

import os
import re
import shutil
import subprocess

import pytest

from tests.system.harness import REPOSITORY
from tests.system.pushing import counts
from tests.system.test_rotated import plain

OLD = 1767322800
JOBS = {"plain": [], "rotated": ["--rotated"], "live": ["--rotated", "--live"]}
PAGE = (REPOSITORY / "docs" / "logs.md").read_text()
(SECTION,) = re.findall(r"^### What becomes of a log\n(.*?)^## ", PAGE, re.M | re.S)
TABLE = {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in (line.strip("|\n").split("|") for line in re.findall(r"^\|[^-].*$", SECTION, re.M)[1:])}


class World:
    """The folder of a job, and what its runs have sent."""

    def __init__(self, s3once, s3, bucket, folder, job, compress):
        self.s3once, self.s3, self.bucket, self.folder = s3once, s3, bucket, folder
        self.job, self.compress = job, compress
        self.options = JOBS[job]
        self.live, self.log = folder / "app.log", folder / "app.log.1"
        self.times = iter(range(OLD, OLD + 1000, 10))
        folder.mkdir()

    def write(self, path, text):
        with open(path, "ab") as file:
            file.write(text)
        os.utime(path, (next(self.times),) * 2)

    def run(self):
        compress = ["--compress", self.compress] if self.compress else []
        return self.s3once("push", self.folder, f"s3://{self.bucket}/p", "--json", *self.options, *compress)

    def change_compress(self):
        self.compress = "gzip"

    def gzip(self, path):
        subprocess.run(["gzip", path], check=True)

    def begin(self, path):
        """A log that was uploaded as the job does it; with live in two pieces."""
        self.write(self.live, b"one\n")
        assert self.job != "live" or self.run().code == 0
        self.write(self.live, b"two\n")
        assert self.job != "live" or self.run().code == 0
        if path != self.live:
            self.live.rename(path)
        assert self.run().code == 0

    def sent(self):
        zstd = {"capture_output": True, "check": True}
        bodies = {key: self.s3.get(self.bucket, key) for key in self.s3.objects(self.bucket, "p/")}
        return {key: subprocess.run(["zstd", "-dc"], input=body, **zstd).stdout if key.endswith(".zst") else plain(key, body) for key, body in bodies.items()}


# What happens, by the first cell of its row. Each function returns the run whose words count.


def found_first(w):
    w.write(w.live, b"one\ntwo")
    return w.run()


def of_live(happens):
    def row(w):
        w.begin(w.live)
        w.before = w.sent()
        happens(w)
        return w.run()

    return row


def of_rotated(happens, name="app.log.1"):
    def row(w):
        w.log = w.folder / name
        w.begin(w.log)
        w.before = w.sent()
        happens(w)
        return w.run()

    return row


def renamed_with_new_lines(w):
    w.write(w.live, b"three\n")
    w.live.rename(w.log)


def renamed_and_compressed(w):
    renamed_with_new_lines(w)
    w.gzip(w.log)


def copytruncate(w):
    shutil.copyfile(w.live, w.log)
    os.truncate(w.live, 0)


def copytruncate_after_a_run(w):
    w.write(w.live, b"three\n")
    shutil.copyfile(w.live, w.log)
    w.write(w.live, b"four\n")
    w.run()
    os.truncate(w.live, 0)


def copytruncate_alike(w):
    w.write(w.live, b"three\n")
    copytruncate(w)
    w.write(w.live, b"one\ntwo\nfour\nfive\n")


def replaced(w):
    w.write(w.log, w.live.read_bytes() + b"three\n")
    w.live.unlink()


def numbers_move_up(w):
    w.write(w.folder / "app.log.2", b"earlier\n")
    assert w.run().code == 0
    w.before = w.sent()
    (w.folder / "app.log.2").rename(w.folder / "app.log.3")
    w.log.rename(w.folder / "app.log.2")


def compressed_without_time(w):
    w.gzip(w.log)
    os.utime(f"{w.log}.gz", (OLD + 5000,) * 2)


def compressed_as_docker_does(w):
    """With the time at which it was done."""
    w.gzip(w.log)
    os.utime(f"{w.log}.gz")


def compressed_with_an_earlier_time(w):
    """logrotate has asked for the time before the last line came."""
    w.gzip(w.log)
    os.utime(f"{w.log}.gz", (OLD - 60,) * 2)


def compressed_twice(w):
    subprocess.run(["gzip", "-k", w.log], check=True)
    subprocess.run(["xz", w.log], check=True)


def compressed_and_decompressed(w):
    w.gzip(w.log)
    assert w.run().code == 0
    subprocess.run(["gunzip", f"{w.log}.gz"], check=True)


def grown_and_compressed(w):
    w.write(w.log, b"three\n")
    w.gzip(w.log)


def moved(w):
    (w.folder / "old").mkdir()
    w.log.rename(w.folder / "old" / "app.log.1")


def lose_marks(w):
    shutil.rmtree(w.s3once.state)
    w.s3once.state.mkdir()


def forget(w):
    assert w.s3once("forget", f"s3://{w.bucket}/p", "--yes").code == 0


def restore_marks(w):
    w.live.write_bytes(b"")
    shutil.copytree(w.s3once.state, w.folder.parent / "copy")
    for line in (b"three\n", b"four\n"):
        w.write(w.live, line)
        w.run()
    w.live.rename(w.folder / "app.log.0")
    w.run()
    w.before = w.sent()
    lose_marks(w)
    w.s3once.state.rmdir()
    (w.folder.parent / "copy").rename(w.s3once.state)


def other_options(w):
    w.options = {"plain": ["--rotated"], "rotated": [], "live": ["--rotated"]}[w.job]


ROWS = {
    "a run finds `app.log` for the first time": found_first,
    "`app.log` is written to": of_live(lambda w: w.write(w.live, b"three\n")),
    "`app.log` is renamed to `app.log.1`": of_live(lambda w: w.live.rename(w.log)),
    "… and has new lines": of_live(renamed_with_new_lines),
    "… and has new lines, and is compressed": of_live(renamed_and_compressed),
    "`app.log` is copied to `app.log.1` and emptied (`copytruncate`)": of_live(copytruncate),
    "… after a run has sent lines that the copy lacks": of_live(copytruncate_after_a_run),
    "… and grows longer than before, with the same first lines": of_live(copytruncate_alike),
    "`app.log` is gone, and `app.log.1` begins with all of its lines (`renamecopy`, or a different log)": of_live(replaced),
    "all numbers move up by one": of_rotated(numbers_move_up),
    "`app.log.1` is compressed": of_rotated(lambda w: w.gzip(w.log)),
    "… without its time, but its name contains that time (`app.log.20260101-130559`, as by the kubelet)": of_rotated(
        compressed_without_time, "app.log.20260101-130559"
    ),
    "… without its time, as Docker does it": of_rotated(compressed_as_docker_does),
    "… with the time at which its rotation began, by logrotate, and lines came later": of_rotated(compressed_with_an_earlier_time),
    "… by two programs, to `.gz` and to `.xz`": of_rotated(compressed_twice),
    "… and decompressed again": of_rotated(compressed_and_decompressed),
    "`app.log.1` grows": of_rotated(lambda w: w.write(w.log, b"three\n")),
    "… and is compressed": of_rotated(grown_and_compressed),
    "`app.log.1` gets another time (`touch`)": of_rotated(lambda w: os.utime(w.log, (OLD + 5000,) * 2)),
    "`app.log.1` is copied, with its time (`cp -p`)": of_rotated(lambda w: shutil.copy2(w.log, w.folder / "app.log.2")),
    "… without its time (`cp`)": of_rotated(lambda w: w.write(w.folder / "app.log.2", w.log.read_bytes())),
    "`app.log.1` gets a second name (`ln`)": of_rotated(lambda w: os.link(w.log, w.folder / "app.log.2")),
    "`app.log.1` is moved to another folder (`olddir`)": of_rotated(moved),
    "the job gets another `compress`": of_rotated(lambda w: w.change_compress()),
    "the marks of the log are forgotten (`s3once forget`)": of_rotated(forget),
    "… and the job gets another `compress`": of_rotated(lambda w: (forget(w), w.change_compress())),
    "the file of the marks is lost": of_rotated(lose_marks),
    "the file of the marks is lost, and the job gets another `compress`": of_rotated(lambda w: (lose_marks(w), w.change_compress())),
    "an older copy of that file is restored": of_rotated(restore_marks),
    "`rotated` is added to the job or left out, or `live` is left out": of_rotated(other_options),
}


def words(w, before, run):
    """The result of a run, in the words of the table."""
    after = w.sent()
    known = {line for body in before.values() for line in body.splitlines()}
    wholes = [plain(path.name, path.read_bytes()) for path in w.folder.rglob("app.log*")]
    found = set()
    for key in after.keys() - before.keys():
        is_known = known & set(after[key].splitlines())
        found.add("again" if is_known else "whole" if after[key] in wholes else "new lines")
    if run.code == 1:
        found.add("refused")
    assert run.code in (0, 1) and all(after[key] == before[key] for key in before), run
    return found or {"waits" if counts(run).keys() == {"waiting"} else "nothing"}


@pytest.fixture
def marks(request, s3once):
    """In a file: --live needs that."""


def test_the_table_has_these_rows():
    assert list(TABLE) == list(ROWS) and all(len(cells) == len(JOBS) for cells in TABLE.values())


@pytest.mark.parametrize("compress", [None, pytest.param("zstd", marks=pytest.mark.full)], ids=["as-it-is", "zstd"])
@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("row", ROWS)
def test_a_cell(s3once, s3, bucket, tmp_path, row, job, compress):
    w = World(s3once, s3, bucket, tmp_path / "logs", job, compress)
    w.before = {}
    run = ROWS[row](w)
    assert words(w, w.before, run) == set(TABLE[row][list(JOBS).index(job)].split(", ")), (run, w.sent())
    sent, code = w.sent(), run.code
    run = w.run()
    assert run.code == code and w.sent() == sent, "a further run sends nothing"
