"""--log-file: what would be printed goes to a file, whatever logrotate does to it, and never silently nowhere."""

import json
import os
import re
import signal
import subprocess

import pytest

from tests.faults import faults
from tests.system.harness import make_tree, wait_until
from tests.system.pushing import counts
from tests.system.watching import Watched

TIME = r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ "
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount")


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree", {"a": b"a", "b": b"bb"})


def test_lines_go_to_the_file_instead(s3once, s3, bucket, tree, tmp_path):
    """As with rclone: nothing is printed, and runs are appended, with their errors."""
    log = tmp_path / "s3once.log"
    run = s3once("push", "-v", "--log-file", log, tree, f"s3://{bucket}/p")
    assert (run.code, run.out, run.err) == (0, "", ""), run
    assert log.stat().st_mode & 0o777 == 0o640 & ~os.umask(os.umask(0))
    lines = log.read_text().splitlines()
    assert all(re.match(TIME, line) for line in lines), lines
    assert re.fullmatch(rf"{TIME}uploaded {tree}/a -> s3://{bucket}/p/a \(1 B\)", next(line for line in lines if "/a " in line))
    assert any(re.fullmatch(rf"{TIME}all 2 files are in s3://{bucket}/p", line) for line in lines), lines
    (tree / "a").write_bytes(b"changed")
    run = s3once("push", "--log-file", log, tree, f"s3://{bucket}/p")
    assert (run.code, run.out, run.err) == (1, "", ""), run
    more = log.read_text().splitlines()
    assert more[: len(lines)] == lines and any(re.match(rf"{TIME}error: {tree}/a: ", line) for line in more), more


def test_events_go_to_the_file(s3once, s3, bucket, tree, tmp_path):
    """Only they do, so that all of the file is JSON: errors are printed as ever."""
    log = tmp_path / "s3once.json"
    s3.client.put_object(Bucket=bucket, Key="a", Body=b"another's")
    run = s3once("push", "--json", "--log-file", log, tree, f"s3://{bucket}")
    assert run.code == 1 and run.out == "" and f"s3once: error: {tree}/a: " in run.err, run
    run.out = log.read_text()
    assert run.events[0]["event"] == "start" and counts(run) == {"uploaded": 1, "failed": 1}, run


def test_it_is_not_uploaded_by_its_own_run(s3once, s3, bucket, tree):
    """It is left out, and named; one that logrotate has put aside is uploaded."""
    log = tree / "s3once.log"
    for _ in range(2):
        run = s3once("push", "-vv", "--log-file", log, tree, f"s3://{bucket}")
        assert run.code == 0 and set(s3.objects(bucket)) == {"a", "b"}, run
    assert f"note: 1 file of s3once itself is left out (marks, state, log): {log}\n" in log.read_text() and "all 2 files are in" in log.read_text()
    log.rename(tree / "s3once.log.1")
    assert s3once("push", "--log-file", log, tree, f"s3://{bucket}").code == 0
    assert set(s3.objects(bucket)) == {"a", "b", "s3once.log.1"}


def test_logrotate_in_the_middle_of_a_run(s3once, s3_wire, bucket, tree, tmp_path):
    """Renamed: the next line is in a new file. Copied and cut short: it is at the beginning."""
    log = tmp_path / "s3once.log"
    command = ("push", "-v", "--log-file", log, "--concurrency", "1", tree)
    for i, rotate in enumerate([lambda: log.rename(tmp_path / "s3once.log.1"), lambda: os.truncate(log, 0)]):
        rule = s3_wire.add(faults.hold_request, "PutObject", key=f"{i}/b")
        running = s3once.start(*command, f"s3://{bucket}/{i}")
        assert rule.reached.wait(60), running.output()
        wait_until(lambda: f"s3://{bucket}/{i}/a" in log.read_text(), 30, "the line of the first file")
        rotate()
        rule.released.set()
        assert running.wait().code == 0
        text = log.read_text()
        assert re.match(rf"{TIME}uploaded {tree}/b ", text) and "\0" not in text and f"/{i}/a " not in text, text
    assert f"/{0}/a " in (tmp_path / "s3once.log.1").read_text()


@pytest.mark.parametrize("path, sentence", [
    ("{tmp}", "--log-file: {tmp} is a directory: name a file in it, such as {tmp}/s3once.log"),
    ("{tmp}/fifo", "--log-file: {tmp}/fifo is neither a file nor a device: name a file, or redirect the output"),
], ids=["directory", "fifo"])  # fmt: skip
def test_a_file_that_cannot_be_one(s3once, bucket, tree, tmp_path, path, sentence):
    """Nothing is done then."""
    os.mkfifo(tmp_path / "fifo")
    run = s3once("push", "--log-file", path.format(tmp=tmp_path), tree, f"s3://{bucket}")
    assert (run.code, run.err) == (2, f"s3once: error: push: {sentence.format(tmp=tmp_path)}\n"), run


@pytest.mark.parametrize("path, reason", [
    ("none/log", "No such file or directory"), ("shut/log", "Permission denied"), ("shut.log", "Permission denied"),
], ids=["no directory", "shut directory", "shut file"])  # fmt: skip
def test_a_file_that_cannot_be_written_stops_no_upload(s3once, s3, bucket, tree, tmp_path, path, reason):
    """The lines are printed, and everybody who is told of the run learns that the log lacks them."""
    (tmp_path / "shut").mkdir(mode=0o555)
    (tmp_path / "shut.log").touch(mode=0o444)
    told = tmp_path / "told"
    told.touch(mode=0o666)
    command = ("push", "--log-file", tmp_path / path, "--on-failure", f"cat > {told}", tree, f"s3://{bucket}")
    run = s3once(*command, unprivileged=True)
    assert run.code == 1 and set(s3.objects(bucket)) == {"a", "b"}, run
    assert f"error: --log-file: cannot write to {tmp_path / path}: {reason}; lines are printed instead" in run.err, run
    assert "uploaded 2 " in run.out and "--log-file" in json.loads(told.read_text())["failures"][0]["text"], run


def test_only_a_run_writes_it(s3once, s3, bucket, tree, tmp_path):
    """A dry run prints instead. It and the commands that ask of a job need no file that they could write."""
    shut = tmp_path / "shut"
    shut.mkdir()
    job = tmp_path / "app.conf"
    job.write_text(f"source = {tree}\ntarget = s3://{bucket}\nlog-file = {shut}/log\nmetrics = {shut}/prom\n")
    run = s3once("run", "--dry-run", job)
    assert run.code == 0 and "dry run: would upload 2 files" in run.out and not list(shut.iterdir()), run
    assert s3once("run", job).code == 0
    job.write_text(job.read_text().replace("/shut/", "/none/"))
    for command in [("run", "-n", job), ("config", job), ("status", "--job", job), ("proven", "--job", job)]:
        assert s3once(*command).code == 0, command


@NEEDS_ROOT
@pytest.mark.parametrize("json", [(), ("--json",)], ids=["lines", "events"])
def test_a_full_disk(s3once, s3, bucket, tree, tmp_path, json):
    """All files are uploaded, the lines are printed, that is said, and it is no success."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=True)
    try:
        (disk / "filler").write_bytes(bytes(60 << 10))
        (disk / "log").write_text("x\n" * 2000)  # the last page has room for some bytes
        run = s3once("push", "-v", *json, "--log-file", disk / "log", tree, f"s3://{bucket}")
        assert run.code == 1 and set(s3.objects(bucket)) == {"a", "b"}, run
        assert run.err.count(f"--log-file: cannot write to {disk}/log: No space left on device; lines are printed instead") == 1, run
        assert '"event":"summary"' in run.out if json else re.search(f"^{TIME}uploaded 2 ", run.out, re.M), run
        os.unlink(disk / "filler")
        run = s3once("push", *json, "--log-file", disk / "log", tree, f"s3://{bucket}")
        assert (run.code, run.out, "cannot write" in run.err) == (0, "", False), run
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.threaded
def test_a_service_whose_log_lies_in_its_folder(s3once, s3, bucket, tmp_path):
    """Its own lines start no pass, and the file is followed from pass to pass."""
    watched = Watched(s3once, bucket, tmp_path)
    log = watched.tree / "watch.log"
    watched.write(f"log-file = {log}")
    watched.start()
    assert '"summary"' in log.read_text()
    log.rename(watched.tree / "watch.log.1")  # this file and the next one come to rest together
    watched.rename_in("a", b"a")
    watched.manager.pass_with(files=2)
    passes = log.read_text().count('"summary"')
    watched.rename_in("b", b"b")
    watched.manager.pass_with(files=3)
    run = watched.stop(signal.SIGINT)  # which drains nothing
    assert run.code in (0, 130) and run.out == "", run
    assert log.read_text().count('"summary"') == passes + 1
    assert set(s3.objects(bucket)) == {"p/a", "p/b", "p/watch.log.1"}
