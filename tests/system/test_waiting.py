"""Files that a run leaves for later: each reason has one line, with an example and an age, and none is silent."""

import gzip
import os
import re
import time

import pytest

from tests.system.harness import make_tree
from tests.system.pushing import counts, summary, told
from tests.system.test_fleet import fleet
from tests.system.test_metrics import read

DAY = 86400


def age(path, days):
    then = time.time() - days * DAY
    os.utime(path, (then, then))


@pytest.fixture
def old_log(tmp_path):
    """A folder with a log that its writer has open, and to which it wrote last three days ago."""
    tree = make_tree(tmp_path / "tree", {"app.log": b"one line\n"})
    with (tree / "app.log").open("ab"):
        age(tree / "app.log", 3)
        yield tree


def reasons(run):
    return {each["reason"]: each for each in summary(run)["waits"]}


def test_one_line_for_each_reason(s3once, s3, bucket, tmp_path):
    """With its count, the age of the oldest file and an example; -v names each file."""
    tree = make_tree(tmp_path / "tree", {name: b"one line\n" for name in ("app.log", "web.log", "db.log.1", "a.log.tmp", "z.log.1")})
    (tree / "z.log.1.gz").write_bytes(gzip.compress(b"one li"))
    with (tree / "app.log").open("ab"), (tree / "web.log").open("ab"):
        for path in tree.iterdir():
            age(path, 0.5)
        age(tree / "app.log", 0.9)
        os.utime(tree / "z.log.1.gz")
        run = s3once("push", tree, f"s3://{bucket}/p", "--rotated")
        assert run.code == 0 and "all 2 files are in" in run.out and "waiting for a later run 4" in run.out, run
        assert f"\n2 files are waiting, the oldest for 21 h (may still be written to), such as {tree}/app.log\n" in run.out, run
        assert f"\n1 file has been waiting for 12 h (unfinished or put aside, by its name): {tree}/a.log.tmp\n" in run.out, run
        assert re.search(rf"\n1 file has been waiting for \d+ s \(still being compressed\): {tree}/z.log.1.gz\n", run.out), run
        assert run.out.count(" wait") == 4 and "warning" not in run.err, run
        run = s3once("push", tree, f"s3://{bucket}/p", "--rotated", "-v")
        for name, why in {"app.log": "may still be written to", "web.log": "may still be written to", "z.log.1.gz": "still being compressed"}.items():
            assert f"waits: {tree}/{name}: {why}\n" in run.out, run
        run = s3once("push", tree, f"s3://{bucket}/p", "--rotated", "--json", "-v")
        assert counts(run) == {"skipped": 2, "waiting": 4}, run
        assert {why: each["files"] for why, each in reasons(run).items()} == {"live": 2, "unfinished": 1, "compressing": 1}, run
        assert reasons(run)["live"]["path"] == f"{tree}/app.log", run
        assert sorted(each["reason"] for each in told(run, "waiting")) == ["compressing", "live", "live", "unfinished"], run


def test_a_live_log_without_a_whole_line(s3once, s3, bucket, tmp_path):
    """An empty log waits, too, but nothing is in it: it has no age, and is no warning."""
    tree = make_tree(tmp_path / "tree", {"half.log": b"half a li", "none.log": b""})
    for path in tree.iterdir():
        age(path, 3)
    run = s3once("push", tree, f"s3://{bucket}/p", "--rotated", "--live", "--json")
    assert run.code == 0 and set(counts(run)) <= {"waiting", "uploaded"}, run
    waits = [each for each in summary(run)["waits"] if each["path"] == f"{tree}/none.log"]
    assert all(each["oldest"] is None for each in waits), run
    (tree / "half.log").unlink()
    run = s3once("push", tree, f"s3://{bucket}/q", "--rotated", "--live", "-q")
    assert run.code == 0 and run.out + run.err == "", run


def test_waiting_for_more_than_a_day_is_a_warning(s3once, s3, bucket, old_log):
    """On standard error also with -q, with what to do; before that, -q says nothing."""
    target = f"s3://{bucket}/p"
    said = f"warning: 1 file has been waiting for 3 days (may still be written to): {old_log}/app.log; --live sends its lines before it is rotated\n"
    for options in ((), ("-q",), ("--json",), ("-q", "--json")):
        run = s3once("push", old_log, target, "--rotated", *options)
        assert run.code == 0 and run.err.count(said) == 1 and "waits for 3 days" not in run.out, run
    age(old_log / "app.log", 0.9)
    run = s3once("push", old_log, target, "--rotated", "-q")
    assert run.code == 0 and run.out + run.err == "", run


def test_a_wait_that_was_asked_for_is_no_warning(s3once, s3, bucket, old_log):
    """--min-age may be many days."""
    run = s3once("push", old_log, f"s3://{bucket}/p", "--min-age", "10d", "-q")
    assert run.code == 0 and run.out + run.err == "", run
    run = s3once("push", old_log, f"s3://{bucket}/p", "--min-age", "10d")
    assert f"\n1 file has been waiting for 3 days (younger than --min-age): {old_log}/app.log\n" in run.out and run.err.count("warning") == 0, run


def test_fleet_and_status_and_metrics_count_them(s3once, s3, bucket, old_log, tmp_path):
    metrics = tmp_path / "job.prom"
    s3once.environment["S3ONCE_MARKS"] = f"sqlite:{tmp_path}/marks.db"
    run = s3once("push", old_log, f"s3://{bucket}/p", "--rotated", "--metrics", metrics)
    assert run.code == 0, run
    _, found = read(metrics)
    then = int((old_log / "app.log").stat().st_mtime)
    assert found["last_run_files", "waiting"] == 1 and found["oldest_waiting_timestamp_seconds",] == then, found
    jobs, sums = fleet(s3once)
    (job,) = jobs.values()
    assert job["files_waiting"] == 1 and job["waiting_since"] and job["fine"] and sums["waiting"] == 1, job
    for command in (("fleet",), ("fleet", "--quiet"), ("status", f"s3://{bucket}/p")):
        run = s3once(*command)
        assert run.code == 0, run
        assert re.search(r"^waits +.*: nothing new .* ago; no upload yet; 1 file has been waiting for 3 days$", run.out, re.M), run
    # Once it is at rest and was sent, it is gone everywhere.
    (old_log / "app.log").rename(old_log / "app.log.1")
    run = s3once("push", old_log, f"s3://{bucket}/p", "--rotated", "--metrics", metrics, "--final")
    assert run.code == 0, run
    assert ("oldest_waiting_timestamp_seconds",) not in read(metrics)[1]
    jobs, sums = fleet(s3once)
    (job,) = jobs.values()
    assert (job["files_waiting"], job["waiting_since"], sums["waiting"]) == (0, None, 0), job
    assert s3once("fleet", "--quiet").out == "1 job: 1 fine\n"
