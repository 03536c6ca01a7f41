"""The table "Which writers were tried" of docs/logs.md: after a night and a day of rest, each line that a writer has left on the disk is in
exactly one object, whatever the writer calls its files, and a run says what it leaves. `tool`: the program itself writes;
`imitation`: this file does what the program's documentation says."""

import bz2
import gzip
import logging
import logging.handlers
import os
import re
import shutil
import subprocess
import time
from collections import Counter

import pytest

from tests.system.harness import REPOSITORY, wait_until
from tests.system.pushing import told
from tests.system.test_rotated import LOGROTATE, plain

LINE = re.compile(rb"<([\w.-]+ \d+)>")
PAGE = (REPOSITORY / "docs" / "logs.md").read_text()
SECTION = re.search(r"^## Which writers were tried\n(.*?)(?:^## |\Z)", PAGE, re.M | re.S)
ROWS = [[cell.strip() for cell in line.strip("|\n").split(" | ")] for line in re.findall(r"^\|[^-].*$", SECTION[1], re.M)[1:]] if SECTION else []
TABLE = {row[0].strip("| `"): row for row in ROWS}


class Night:
    """A folder of one writer. Its lines have numbers, so that each is known wherever it ends up."""

    def __init__(self, folder, name):
        self.folder, self.name, self.n = folder, name, 0
        folder.mkdir(parents=True)

    def lines(self, n=5):
        """Lines as bytes. Each is longer than its number, since some writers rotate by size."""
        first, self.n = self.n, self.n + n
        return b"".join(b"<%s %d> %s\n" % (self.name.encode(), i, b"x" * 60) for i in range(first, self.n))

    def write(self, name, n=5):
        with (self.folder / name).open("ab") as file:
            file.write(self.lines(n))

    def pack(self, name, suffix=".gz", keeps_time=True):
        path = self.folder / name
        packed = path.with_name(path.name + suffix)
        packed.write_bytes({".gz": gzip.compress, ".bz2": bz2.compress}[suffix](path.read_bytes()))
        if keeps_time:
            shutil.copystat(path, packed)
        path.unlink()


# --- writers. Each is a generator: what it does in the evening, and after its yield what it does in the night.


def numbered(live, pattern, pack=None, first=1, keeps_time=True):
    """app.log → app.log.1 → app.log.2, compressed from the second on (or at once)."""

    def writer(night):
        night.write(live)
        yield
        for _ in range(2):
            night.write(live)
            for i in range(8, first - 1, -1):
                for suffix in ("", pack or ""):
                    old = night.folder / ((pattern % i) + suffix)
                    if old.exists():
                        old.rename(night.folder / ((pattern % (i + 1)) + suffix))
            (night.folder / live).rename(night.folder / (pattern % first))
            if pack:
                night.pack(pattern % first, pack, keeps_time)
        night.write(live)

    return writer


def moved(live, names, pack=None):
    """The live file gets a name of its own, which stays."""

    def writer(night):
        night.write(live)
        yield
        for name in names:
            night.write(live)
            (night.folder / live).rename(night.folder / name)
            if pack:
                night.pack(name, pack)
        night.write(live)

    return writer


def begun(names, pack=None):
    """Each file has its last name from the first line on."""

    def writer(night):
        night.write(names[0])
        yield
        for i, name in enumerate(names):
            night.write(name)
            if pack and i + 1 < len(names):
                night.pack(name, pack)

    return writer


def piped(*command, batch=60, pause=0):
    """The program reads lines from its standard input."""

    def writer(night):
        args = [str(part).replace("FOLDER", str(night.folder)) for part in command]
        with subprocess.Popen(args, stdin=subprocess.PIPE, cwd=night.folder) as process:
            process.stdin.write(night.lines(batch))
            process.stdin.flush()
            yield
            for _ in range(3):
                process.stdin.write(night.lines(batch))
                process.stdin.flush()
        assert process.returncode in (0, 3), args  # cronolog ends with 3 at the end of its input

    return writer


def ring(night):
    """rotatelogs goes on until the end, as under Apache: it has the newest file open when the runs come."""
    command = ["rotatelogs", "-n", "9", night.folder / "access.log", "4K"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        for _ in range(2):
            process.stdin.write(night.lines(120))
            process.stdin.flush()
            wait_until(lambda: len(set().union(*lines_on_disk(night.folder).values())) == night.n)
            yield


def logrotate(config, live="app.log"):
    """The program itself, told to rotate, twice."""

    def writer(night):
        night.write(live)
        yield
        conf, state = (night.folder.parent.parent / f"{night.name}.{kind}" for kind in ("conf", "state"))
        for day in "67":
            conf.write_text(f'"{night.folder}/{live}" {{\n  rotate 9\n  missingok\n{config.replace("DAY", day)}\n}}\n')
            night.write(live)
            subprocess.run([LOGROTATE, "-f", "-s", state, conf], check=True)
            night.write(live)

    return writer


def python(make):
    """A handler of Python's logging."""

    def writer(night):
        handler = make(str(night.folder / "app.log"))
        log = logging.Logger(night.name)
        log.addHandler(handler)
        for line in night.lines().decode().splitlines():
            log.error(line)
        yield
        for _ in range(2):
            for line in night.lines(20).decode().splitlines():
                log.error(line)
            if hasattr(handler, "rolloverAt"):
                handler.rolloverAt -= 2 * 86400  # its midnight has passed, and the next line rotates
            elif hasattr(handler, "doRollover"):
                handler.doRollover()
        handler.close()

    return writer


WRITERS = {
    "multilog": piped("multilog", "s4096", "n9", "FOLDER"),
    "multilog-t": piped("multilog", "t", "s4096", "n9", "FOLDER"),
    "svlogd": None,
    "s6-log": piped("s6-log", "n9", "s4096", "FOLDER"),
    "s6-log-t": piped("s6-log", "t", "n9", "s4096", "FOLDER"),
    "rotatelogs-ring": ring,
    "rotatelogs-time": piped("rotatelogs", "FOLDER/access.%Y-%m-%d-%H_%M_%S", "86400"),
    "cronolog": piped("cronolog", "FOLDER/%Y-%m-%d-access.log"),
    "logrotate-create": logrotate("  create"),
    "logrotate-compress": logrotate("  create\n  compress"),
    "logrotate-delaycompress": logrotate("  create\n  compress\n  delaycompress"),
    "logrotate-copytruncate": logrotate("  copytruncate"),
    "logrotate-dateext": logrotate("  create\n  dateext\n  dateformat -%Y112DAY"),
    "logrotate-extension": logrotate("  create\n  extension .log\n  compress"),
    "python-rotating": python(lambda path: logging.handlers.RotatingFileHandler(path, maxBytes=1000, backupCount=99)),
    "python-timed": python(lambda path: logging.handlers.TimedRotatingFileHandler(path, when="midnight", backupCount=9)),
    "python-watched": python(logging.handlers.WatchedFileHandler),
    "log4j-i": numbered("app.log", "app-%d.log"),
    "log4j-i-gz": numbered("app.log", "app-%d.log.gz".removesuffix(".gz"), ".gz"),
    "log4j-max": moved("app.log", ["app-1.log", "app-2.log"]),
    "log4j-max-gz": moved("app.log", ["app-1.log", "app-2.log"], ".gz"),
    "logback-date": moved("app.log", ["app.2026-11-26.log", "app.2026-11-27.log"]),
    "logback-date-i-gz": moved("app.log", ["app.2026-11-26.0.log", "app.2026-11-26.1.log"], ".gz"),
    "docker": numbered("c0ffee-json.log", "c0ffee-json.log.%d"),
    "docker-compress": numbered("c0ffee-json.log", "c0ffee-json.log.%d", ".gz", keeps_time=False),
    "kubelet": moved("0.log", ["0.log.20261126-010203", "0.log.20261127-010203"], ".gz"),
    "zeek": moved("conn.log", ["conn.00:00:00-01:00:00.log", "conn.01:00:00-02:00:00.log"], ".gz"),
    "mysql-error": moved("error.log", ["error.log-old"]),
    "mysql-binlog": begun(["binlog.000001", "binlog.000002", "binlog.000003"]),
    "mariadb-bin": begun(["mysql-bin.000123", "mysql-bin.000124"]),
    "postgresql": begun(["postgresql-2026-11-26_000000.log", "postgresql-2026-11-27_000000.log"]),
    "postgresql-weekday": begun(["postgresql-Thu.log", "postgresql-Fri.log"]),
    "journald": moved("system.journal", [f"system@{42:032x}-{n:016x}-{n:016x}.journal" for n in (1, 2)]),
    "iis": begun(["u_ex261126.log", "u_ex261127.log"]),
    "iis-hourly": begun(["u_ex26112600.log", "u_ex26112601.log"]),
    "sudo": begun(["000001.log", "000002.log", "000003.log"]),
    "trace": begun(["trace.00001.log", "trace.00002.log"]),
    "newsyslog": numbered("messages", "messages.%d", ".bz2", first=0),
    "savelog": numbered("savelog.log", "savelog.log.%d", ".gz", first=0),
    "winston": begun(["app-2026-11-26.log", "app-2026-11-27.log", "app-2026-11-27.log.1"]),
    "serilog": begun(["log20261126.txt", "log20261127.txt", "log20261127_001.txt"]),
    "glog": begun(["app.web1.root.log.INFO.20261126-010203.4711", "app.web1.root.log.INFO.20261127-010203.4711"]),
    "tomcat": begun(["catalina.2026-11-26.log", "localhost_access_log.2026-11-27.txt"]),
    "gc-log": numbered("gc.log", "gc.log.%d", first=0),
    "audit": numbered("audit.log", "audit.log.%d"),
    "uuid": begun(["1f0c9a61-20261126.log.gz".removesuffix(".gz"), "7be2-20261127.log"], ".gz"),
}


def svlogd(night):
    """It rotates by its own configuration."""
    (night.folder / "config").write_text("s4096\nn9\n")
    yield from piped("svlogd", "FOLDER")(night)
    (night.folder / "config").unlink()


WRITERS["svlogd"] = svlogd


def rest(tree):
    """A day of rest: what was written just now was written two days ago, in the same order."""
    now = time.time()
    fresh = sorted((path.stat().st_mtime_ns, path) for path in tree.rglob("*") if path.is_file() and not path.is_symlink() and path.stat().st_mtime > now - 3600)
    for i, (_, path) in enumerate(fresh):
        then = int(now) - 2 * 86400 + 7 * i
        os.utime(path, (then, then))


MODES = {"rotated": [], "live": ["--live"], "compressed": ["--compress", "zstd"], "lost-marks": []}


def lines_on_disk(folder):
    """Each line that is there, however often it is: a run sends a copy of a log once."""
    return {path: set(LINE.findall(plain(path.name, path.read_bytes()))) for path in folder.iterdir() if path.name not in ("lock", "state")}


def lines_in_s3(s3, bucket):
    found = Counter()
    for key in s3.objects(bucket, "p/"):
        body = s3.get(bucket, key)
        if key.endswith(".zst"):
            body = subprocess.run(["zstd", "-dc"], input=body, capture_output=True, check=True).stdout
        found.update(LINE.findall(plain(key, body)))
    return found


# What becomes of a writer's lines, from the worst to the best. In each case a run names every file that has lines which are not in S3.
FATES = ("the newest waits", "all")


def judge(files, in_s3, said):
    """One of FATES, or what is wrong."""
    lines = set().union(*files.values())
    twice = sorted(line for line in lines if in_s3[line] > 1)
    left = [path for path, has in files.items() if any(not in_s3[line] for line in has)]
    silent = [path.name for path in left if str(path) not in said]
    if not lines or twice or silent:
        return f"{len(lines)} lines, {len(twice)} in two objects, unsaid: {silent}"
    newest = max(files, key=lambda path: path.stat().st_mtime_ns)
    return "all" if not left else "the newest waits" if left == [newest] else f"waiting: {left}"


@pytest.mark.parametrize("mode", MODES)
def test_each_line_is_in_one_object(s3once, s3, bucket, tmp_path, mode):
    """With `live` the evening's run sends the first lines; with `lost-marks` the marks are lost between the two runs of the morning."""
    tree, marks = tmp_path / "tree", tmp_path / "marks.db"

    def run():
        how = ["--rotated", "--json", "-v", "--marks", f"sqlite:{marks}", "--exclude", "lock", "--exclude", "state", *MODES[mode]]
        run = s3once("push", tree, f"s3://{bucket}/p", *how)
        assert run.code == (1 if told(run, "failed") else 0), run
        return run

    nights = {name: (night := Night(tree / name, name), writer(night)) for name, writer in WRITERS.items()}
    for _, writer in nights.values():
        next(writer)
    if mode == "live":
        run()
    for name, (night, writer) in nights.items():
        assert next(writer, None) is None, name
    rest(tree)
    files = {name: lines_on_disk(tree / name) for name in WRITERS}
    run()
    if mode == "lost-marks":
        marks.unlink()
    last = run()
    said = {each["path"] for each in told(last, "waiting") if each["reason"] in ("live", "changed")}
    in_s3 = lines_in_s3(s3, bucket)
    became = {name: judge(files[name], in_s3, said) for name in WRITERS}
    expected = {name: row[3 if mode == "live" else 2] for name, row in TABLE.items()}
    wrong = [f"{name}: {fate}, not {expected.get(name)}" for name, fate in became.items() if not is_as_good(fate, expected.get(name))]
    assert wrong == [], "\n".join(wrong)


def is_as_good(fate, expected):
    return fate in FATES and expected in FATES and FATES.index(fate) >= FATES.index(expected)


def test_the_table_has_each_writer():
    assert TABLE.keys() == WRITERS.keys() and len(WRITERS) >= 40
    for name, (_, how, *fates) in TABLE.items():
        assert how in ("tool", "imitation") and len(fates) == 2 and set(fates) <= set(FATES), name
