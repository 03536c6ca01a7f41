"""Logs that are uploaded while they grow: what is new of one is an object of its own, and each line is in S3 exactly once."""

import contextlib
import gzip
import os
import re
import shutil
import sqlite3
import struct
import subprocess
import time
from collections import Counter

import pytest

from tests.faults.preloads import preload_library, preloaded
from tests.system.harness import make_tree, wait_until
from tests.system.pushing import counts, told
from tests.system.test_rotated import COMPRESSION, CREATION, IN_LONG, NAMING, Night, hold_unread, plain, run_nights

LIVE = ["--rotated", "--live", "--json"]
OLD = 1767322800


def push(s3once, folder, bucket, options, **how):
    return s3once("push", folder, f"s3://{bucket}/p", *options, **how)


def contents(s3, bucket):
    return Counter(plain(key, s3.get(bucket, key)) for key in s3.objects(bucket, "p/"))


def append(path, text):
    with open(path, "ab") as file:
        file.write(text)


def logs_of(tmp_path, **files):
    folder = tmp_path / "logs"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_bytes(text)
    return folder


@pytest.fixture
def marks(request, s3once):
    """Only marks in a file can do it."""


# --- what grows


def test_live(s3once, s3, bucket, tmp_path):
    """A live log is uploaded to the end of its last line; then what is new; then, rotated and compressed, what was still missing."""
    logs = logs_of(tmp_path, app_log=b"one\ntwo\nthr")
    want = [b"one\ntwo\n"]
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1}
    assert contents(s3, bucket) == Counter(want)
    assert counts(push(s3once, logs, bucket, LIVE)) == {"skipped": 1}, "half a line is nothing new"
    append(logs / "app.log", b"ee\nfour")
    want.append(b"three\n")
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1, "skipped": 1}
    assert contents(s3, bucket) == Counter(want)
    (logs / "app.log").rename(logs / "app.log.1")
    (logs / "app.log").write_bytes(b"another\n")
    append(logs / "app.log.1", b"five\n")
    subprocess.run(["gzip", "app.log.1"], cwd=logs, check=True)
    want += [b"fourfive\n", b"another\n"]
    run = push(s3once, logs, bucket, LIVE)
    assert run.code == 0 and counts(run) == {"uploaded": 2, "skipped": 2}, run
    assert contents(s3, bucket) == Counter(want)
    assert counts(push(s3once, logs, bucket, LIVE)) == {"skipped": 4}
    tails = sorted(key for key in s3.objects(bucket) if "~" in key)
    assert {key.rsplit("~")[1] for key in tails} == {"8", "14"}, tails
    assert all(re.fullmatch(r"p/app-\d{8}T\d{6}Z-[0-9a-f]{8}\.log~\d+", key) for key in tails), tails
    for key in s3.objects(bucket):
        said = s3.client.head_object(Bucket=bucket, Key=key)["Metadata"]
        assert said.get("s3once-offset", "") == key.partition("~")[2], (key, said)


def test_compressed_without_its_time(s3once, s3, bucket, tmp_path):
    """As with kubelet and lumberjack: the name has the moment of the rotation, which distinguishes equal logs."""
    logs = logs_of(tmp_path, app_log=b"one\n")
    push(s3once, logs, bucket, LIVE)
    rotated = logs / "app.log.20300101-130559"
    (logs / "app.log").rename(rotated)
    append(rotated, b"two\n")
    os.utime(rotated, (OLD, OLD))
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1, "skipped": 1}
    compress_anew(rotated, OLD + 3600)
    run = push(s3once, logs, bucket, [*LIVE, "--dry-run"])
    assert counts(run) == {"skipped": 2}, run
    assert counts(push(s3once, logs, bucket, LIVE)) == {"skipped": 2}
    # Another log with the same lines.
    rotated.with_name(rotated.name + ".gz").unlink()
    equal = logs / "app.log.20300102-130559"
    equal.write_bytes(b"one\ntwo\n")
    compress_anew(equal, OLD + 7200)
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1}
    assert contents(s3, bucket) == Counter([b"one\n", b"two\n", b"one\ntwo\n"])


@pytest.mark.parametrize("is_grown", [False, True], ids=["as-it-was", "grown"])
def test_docker_compresses_what_was_sent(s3once, s3, bucket, tmp_path, is_grown):
    """A run between renaming and compressing: neither time nor name is kept, but the plain file is gone, and its content is there."""
    logs = logs_of(tmp_path, app_log=b"one\n")
    push(s3once, logs, bucket, LIVE)
    append(logs / "app.log", b"two\n")
    (logs / "app.log").rename(logs / "app.log.1")
    append(logs / "app.log", b"three\n")
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 2, "skipped": 1}
    want = [b"one\n", b"two\n", b"three\n"]
    if is_grown:
        append(logs / "app.log.1", b"late\n")
        want.append(b"late\n")
    compress_anew(logs / "app.log.1", time.time() + 5)
    for _ in range(2):
        assert push(s3once, logs, bucket, LIVE).code == 0
        assert contents(s3, bucket) == Counter(want)
    # An equal log that takes the place of the compressed one is another log.
    (logs / "app.log.1.gz").unlink()
    (logs / "app.log.1").write_bytes(b"".join(want[:2] + want[3:]))
    compress_anew(logs / "app.log.1", time.time() + 90000)
    assert push(s3once, logs, bucket, LIVE).code == 0
    assert contents(s3, bucket) == Counter([*want, b"".join(want[:2] + want[3:])])


@pytest.mark.parametrize("how", ["create", "copytruncate"])
def test_logrotate_compresses_what_was_sent(s3once, s3, bucket, tmp_path, how):
    """It gives the compressed log the time at which it began, before the last line came and the run between the two."""
    logs = logs_of(tmp_path, app_log=b"")
    hook = tmp_path / "between"
    hook.write_text(f"#!/bin/sh\n{'echo late >>' + str(logs / 'app.log.1') if how == 'create' else ':'}\ntouch {tmp_path}/rotated\nwhile [ -e {tmp_path}/rotated ]; do sleep 0.05; done\n")
    hook.chmod(0o755)
    (tmp_path / "conf").write_text(f"{logs}/app.log {{\nsize 1\nrotate 9\n{how}\ncompress\npostrotate\n{hook}\nendscript\n}}\n")
    lines = []
    for night in range(3):
        append(logs / "app.log", f"begin {night}\n".encode())
        push(s3once, logs, bucket, LIVE)
        append(logs / "app.log", f"end {night}\n".encode())
        os.utime(logs / "app.log", (time.time() - 100,) * 2)
        lines += [f"begin {night}", f"end {night}"] + ["late"] * (how == "create")
        logrotate = subprocess.Popen(["logrotate", "-f", "-s", tmp_path / "rotations", tmp_path / "conf"])
        wait_until(lambda: (tmp_path / "rotated").exists(), 30)
        push(s3once, logs, bucket, LIVE)
        (tmp_path / "rotated").unlink()
        assert logrotate.wait(60) == 0 and (logs / "app.log.1.gz").exists()
        assert push(s3once, logs, bucket, LIVE).code == 0
        sent = [line for body in contents(s3, bucket).elements() for line in body.decode().splitlines()]
        assert sorted(sent) == sorted(lines)


def test_a_copy_that_counts_as_the_live_log(s3once, s3, bucket, tmp_path):
    """If no file has the family's own name, the newest one with a date is live. It may still be a copy of lines that were sent."""
    logs = logs_of(tmp_path, app_log=b"one\n")
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1}
    append(logs / "app.log", b"two\nthr")
    shutil.copyfile(logs / "app.log", logs / "app.log-20260101")
    (logs / "app.log").unlink()
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1, "skipped": 1}
    assert contents(s3, bucket) == Counter([b"one\n", b"two\n"])
    # The last line is finished once nobody has written it for a day.
    os.utime(logs / "app.log-20260101", (OLD, OLD))
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1, "skipped": 2}
    assert contents(s3, bucket) == Counter([b"one\n", b"two\n", b"thr"])
    assert counts(push(s3once, logs, bucket, LIVE)) == {"skipped": 3}


def compress_anew(path, mtime):
    with gzip.open(f"{path}.gz", "wb") as file:
        file.write(path.read_bytes())
    os.utime(f"{path}.gz", (mtime, mtime))
    path.unlink()


@pytest.mark.parametrize("options, new", [([], b"first\nsecond\n"), (["--live"], b"second\n")], ids=["whole", "pieces"])
def test_a_rotated_log_that_grows(s3once, s3, bucket, tmp_path, options, new):
    logs = logs_of(tmp_path, app_log_1=b"first\n")
    options = ["--rotated", *options, "--json"]
    assert counts(push(s3once, logs, bucket, options)) == {"uploaded": 1}
    append(logs / "app.log.1", b"second\n")
    run = push(s3once, logs, bucket, options)
    assert run.code == 0 and counts(run) == {"uploaded": 1, **({"skipped": 1} if new == b"second\n" else {})}, run
    assert contents(s3, bucket) == Counter([b"first\n", new])


def test_a_wrong_clock_uploads_nothing_again(s3once, s3, bucket, tmp_path):
    """Two jobs share the marks. Both run twice while the clock is ahead by years, and then while it is behind."""
    ahead = tmp_path / "ahead"
    env = preloaded(s3once, preload_library(), S3ONCE_TEST_REALTIME=ahead)
    jobs = [(logs_of(tmp_path / job, app_log=b"one\ntwo\n"), f"s3://{bucket}/{job}") for job in ("a", "b")]
    for years, want in (0, "uploaded"), (3, "skipped"), (3, "skipped"), (-9, "skipped"), (0, "skipped"):
        ahead.write_bytes(struct.pack("q", years * 365 * 24 * 3600))
        for logs, target in jobs:
            run = s3once("push", logs, target, *LIVE, env=env)
            assert run.code == 0 and counts(run) == {want: 1}, (years, run)


def test_equal_beginnings(s3once, s3, bucket, tmp_path):
    """Logs of which one is the beginning of another, or equal to it, are different logs."""
    logs = logs_of(tmp_path, app_log=b"header\n")
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1}
    (logs / "app.log").rename(logs / "app.log.1")
    (logs / "app.log").write_bytes(b"header\nsecond\n")
    append(logs / "app.log.1", b"first\n")
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 2, "skipped": 1}
    os.unlink(logs / "app.log.1")
    (logs / "app.log").rename(logs / "app.log.1")
    (logs / "app.log").write_bytes(b"header\nfirst\nthird\n")
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1, "skipped": 1}
    assert contents(s3, bucket) == Counter([b"header\n", b"first\n", b"header\nsecond\n", b"header\nfirst\nthird\n"])


@pytest.mark.parametrize("longer", [False, True], ids=["shorter", "longer"])
def test_copytruncate_is_told_once(s3once, s3, bucket, tmp_path, longer):
    """The copy goes on where the live log was; what is in the emptied log is new, also if it is longer than what was there."""
    logs, want = logs_of(tmp_path, app_log=b"one\n"), [b"one\n"]
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1}
    notices = []
    for number in (2, 1):
        append(logs / "app.log", b"last of %d\n" % number)
        shutil.copyfile(logs / "app.log", logs / f"app.log.{number}")
        os.truncate(logs / "app.log", 0)
        begun = b"begun %d\n" % number * (9 if longer else 1)
        append(logs / "app.log", begun)
        want += [b"last of %d\n" % number, begun]
        run = push(s3once, logs, bucket, LIVE)
        assert run.code == 0 and counts(run)["uploaded"] == 2, run
        notices += [event["text"] for event in told(run, "warning") if "copytruncate" in event["text"]]
    assert contents(s3, bucket) == Counter(want)
    assert len(notices) == 1 and "what was written between the two is lost" in notices[0], notices


def test_copy_of_a_quiet_log_is_compressed(s3once, s3, bucket, tmp_path):
    """The copy has a time of its own, by which it is known once it is compressed."""
    logs = logs_of(tmp_path, app_log=b"one\n")
    os.utime(logs / "app.log", (OLD, OLD))
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1}
    shutil.copyfile(logs / "app.log", logs / "app.log.1")
    os.truncate(logs / "app.log", 0)
    assert counts(push(s3once, logs, bucket, LIVE)) == {"skipped": 1, "waiting": 1}
    subprocess.run(["gzip", "app.log.1"], cwd=logs, check=True)
    assert counts(push(s3once, logs, bucket, LIVE)) == {"skipped": 1, "waiting": 1}
    assert contents(s3, bucket) == Counter([b"one\n"])


def test_equal_log_of_another_day_is_compressed(s3once, s3, bucket, tmp_path):
    """Two days may have logged the same. Compressing keeps the time, so a compressed log of another time is another log."""
    logs = logs_of(tmp_path, app_log_1=b"same\n")
    os.utime(logs / "app.log.1", (OLD, OLD))
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1}
    os.utime(logs / "app.log.1", (OLD + 86400, OLD + 86400))
    shutil.copy2(logs / "app.log.1", logs / "app.log.2")
    (logs / "app.log.1").unlink()
    subprocess.run(["gzip", "app.log.2"], cwd=logs, check=True)
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1}
    assert contents(s3, bucket) == Counter([b"same\n"] * 2)


def test_compressed_in_two_ways(s3once, s3, bucket, tmp_path):
    """A log in two pieces of which two compressed copies are there is one log, whichever of them stays; another time makes another log."""
    logs = logs_of(tmp_path, app_log=b"one\n")
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1}
    append(logs / "app.log", b"two\n")
    os.utime(logs / "app.log", (OLD, OLD))
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1, "skipped": 1}
    (logs / "app.log").rename(logs / "app.log.1")
    subprocess.run("gzip -k app.log.1 && xz app.log.1", shell=True, cwd=logs, check=True)
    for _ in range(2):
        run = push(s3once, logs, bucket, LIVE)
        assert run.code == 0 and counts(run) == {"skipped": 2}, run
    assert contents(s3, bucket) == Counter([b"one\n", b"two\n"])
    (logs / "app.log.1.gz").unlink()
    assert counts(push(s3once, logs, bucket, LIVE)) == {"skipped": 2}, "it goes on as the log"
    shutil.copy2(logs / "app.log.1.xz", logs / "app.log.2.xz")
    os.utime(logs / "app.log.2.xz", (OLD + 86400, OLD + 86400))
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1, "skipped": 2}
    assert contents(s3, bucket) == Counter([b"one\n", b"two\n", b"one\ntwo\n"])


def test_empty_log_grows(s3once, s3, bucket, tmp_path):
    """The empty piece and the next one begin at the same byte."""
    logs = logs_of(tmp_path, app_log_1=b"")
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1}
    append(logs / "app.log.1", b"late\n")
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1, "skipped": 1}
    assert contents(s3, bucket) == Counter([b"", b"late\n"])


def test_rotated_log_is_overwritten(s3once, s3, bucket, tmp_path):
    """The content of a waiting live log proves nothing about a rotated log: the file that replaced the rotated one is uploaded at once."""
    logs = logs_of(tmp_path, app_log_1=b"one\n")
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1}
    (logs / "app.log.1").write_bytes(b"two\n")
    append(logs / "app.log", b"half a line")
    run = push(s3once, logs, bucket, LIVE)
    assert run.code == 0 and counts(run) == {"uploaded": 1, "waiting": 1}, run
    assert contents(s3, bucket) == Counter([b"one\n", b"two\n"])


@pytest.mark.parametrize("begins", [b"", b"starting\n"], ids=["empty", "shorter"])
def test_the_same_first_lines_after_a_run_that_saw_the_log_emptied(s3once, s3, bucket, tmp_path, begins):
    """Without a copy in the folder, only that run knows that the lines are of another log."""
    logs = logs_of(tmp_path, app_log=b"starting\nlistening\n")
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1}
    (logs / "app.log").write_bytes(begins)
    run = push(s3once, logs, bucket, LIVE)
    assert run.code == 0 and "was emptied after 19 bytes of it were taken" in told(run, "warning")[0]["text"], run
    (logs / "app.log").write_bytes(b"starting\nlistening\nGET /\n")
    assert push(s3once, logs, bucket, LIVE).code == 0
    want = [b"starting\nlistening\n", b"starting\n", b"listening\nGET /\n"] if begins else [b"starting\nlistening\n", b"starting\nlistening\nGET /\n"]
    assert contents(s3, bucket) == Counter(want)


def test_written_between_copy_and_emptying(s3once, s3, bucket, tmp_path):
    """The copy is shorter than what was uploaded, and nobody can tell whether it is a part of it: it is uploaded, which is told."""
    logs = logs_of(tmp_path, app_log=b"one\n")
    shutil.copyfile(logs / "app.log", logs / "app.log.1")
    append(logs / "app.log", b"two\n")
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1, "waiting": 1}
    (logs / "app.log").write_bytes(b"three\n")
    run = push(s3once, logs, bucket, LIVE)
    assert run.code == 0 and counts(run) == {"uploaded": 2}, run
    assert "a copy that was made before the last of them were written" in told(run, "warning")[0]["text"], run
    assert contents(s3, bucket) == Counter([b"one\ntwo\n", b"one\n", b"three\n"])


def test_interrupted_tail_keeps_its_range(s3once, s3, s3_wire, bucket, tmp_path):
    """The bounds of a piece are final: a killed upload is resumed, and later lines form the next piece."""
    logs = logs_of(tmp_path, app_log=b"one\n")
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1}
    append(logs / "app.log", b"two\n")
    rule = s3_wire.add(hold, "PutObject")
    running = s3once.start("push", logs, f"s3://{bucket}/p", *LIVE)
    assert rule.reached.wait(60), running.output()
    append(logs / "app.log", b"three\n")
    running.kill()
    running.wait(60)
    rule.released.set()
    (logs / "app.log").rename(logs / "app.log.1")
    subprocess.run(["gzip", "app.log.1"], cwd=logs, check=True)
    run = push(s3once, logs, bucket, LIVE)
    assert run.code == 0, run
    assert contents(s3, bucket) == Counter([b"one\n", b"two\n", b"three\n"])


def test_object_of_a_new_piece_is_not_checked_for(s3once, s3, s3_wire, bucket, tmp_path):
    """Under other suffixes there may be what an earlier run knew of: the log's first piece, and one that a run has begun. Each costs five requests."""
    logs = logs_of(tmp_path, app_log=b"one\n")

    def looked_for():
        before = len(s3_wire.history)
        assert counts(push(s3once, logs, bucket, LIVE))["uploaded"] == 1
        heads = {record.operation.key for record in s3_wire.history[before:] if record.kind == "HeadObject"}
        return len(heads - set(s3.objects(bucket, "p/")))

    first = looked_for()
    append(logs / "app.log", b"two\n")
    behind = looked_for()
    append(logs / "app.log", b"three\n")
    rule = s3_wire.add(hold, "PutObject")
    running = s3once.start("push", logs, f"s3://{bucket}/p", *LIVE)
    assert rule.reached.wait(60), running.output()
    running.kill()
    running.wait(60)
    rule.released.set()
    assert (first, behind, looked_for()) == (5, 0, 5)


async def hold(x, rule):
    x.fire(rule)
    await x.hold(rule)


def test_grows_while_it_is_sent(s3once, s3, s3_wire, bucket, tmp_path):
    """A copy is sent, in parts too, so neither growth nor rotation disturbs it."""
    line = b"x" * 1023 + b"\n"
    logs = logs_of(tmp_path, app_log=line * 12 * 1024)
    rule = s3_wire.add(hold_unread, "UploadPart", nth=2)
    running = s3once.start("push", logs, f"s3://{bucket}/p", *LIVE, "--part-size", "5MiB")
    assert rule.reached.wait(60), running.output()
    append(logs / "app.log", b"more\n")
    (logs / "app.log").rename(logs / "app.log.1")
    rule.released.set()
    run = running.wait()
    assert run.code == 0 and counts(run) == {"uploaded": 1} and not told(run, "retry"), run
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1, "skipped": 1}
    assert contents(s3, bucket) == Counter([line * 12 * 1024, b"more\n"])


def test_two_runs_at_once(s3once, s3, bucket, tmp_path):
    logs, want = logs_of(tmp_path, app_log=b"begin\n"), b"begin\n"
    for i in range(3):
        both = [s3once.start("push", logs, f"s3://{bucket}/p", *LIVE) for _ in range(2)]
        append(logs / "app.log", b"line %d\n" % i)
        want += b"line %d\n" % i
        for running in both:
            assert running.wait(60).code == 0
    assert push(s3once, logs, bucket, LIVE).code == 0
    lines = [line for body in contents(s3, bucket).elements() for line in body.splitlines(keepends=True)]
    assert sorted(lines) == sorted(want.splitlines(keepends=True))


def test_copies_have_times_of_whole_seconds(s3once, s3, bucket, tmp_path):
    logs = logs_of(tmp_path, app_log=b"one\n")
    os.utime(logs / "app.log", ns=(OLD * 10**9 + 5, OLD * 10**9 + 5))
    env = preloaded(s3once, preload_library(), S3ONCE_TEST_COPIES="whole_seconds")
    run = push(s3once, logs, bucket, LIVE, env=env)
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    (key,) = s3.objects(bucket, "p/")
    assert s3.client.head_object(Bucket=bucket, Key=key)["Metadata"]["mtime"] == f"{OLD}.000000005", "the time of the log"


def test_no_copy_can_be_made(s3once, bucket, tmp_path):
    logs = logs_of(tmp_path, app_log=b"one\n")
    run = push(s3once, logs, bucket, LIVE, env={"TMPDIR": str(tmp_path / "nowhere")})
    text = told(run, "failed")[0]["text"]
    assert run.code == 1 and "nowhere (No such file or directory); name another folder in SQLITE_TMPDIR" in text, run
    env = preloaded(s3once, preload_library(), S3ONCE_TEST_COPIES="emfile")
    run = push(s3once, logs, bucket, LIVE, env=env)
    assert run.code == 3 and "out of file descriptors" in told(run, "fatal")[0]["text"], run


def test_compressed_on_the_way(s3once, s3, bucket, tmp_path):
    logs = logs_of(tmp_path, app_log=b"one\n")
    options = [*LIVE, "--compress", "gzip"]
    assert counts(push(s3once, logs, bucket, options)) == {"uploaded": 1}
    append(logs / "app.log", b"two\n")
    assert counts(push(s3once, logs, bucket, options)) == {"uploaded": 1, "skipped": 1}
    assert contents(s3, bucket) == Counter([b"one\n", b"two\n"])
    assert all(key.endswith(".gz") for key in s3.objects(bucket)), s3.objects(bucket)


def test_quiet_run_reads_nothing(s3once, s3, bucket, tmp_path):
    logs = logs_of(tmp_path, app_log=b"one\n", app_log_1=b"zero\n", app_log_2=b"z\n")
    for each in logs.iterdir():
        os.utime(each, (OLD, OLD))
    subprocess.run(["gzip", "app.log.2"], cwd=logs, check=True)
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 3}
    append(logs / "app.log", b"two\n")
    os.utime(logs / "app.log", (OLD + 60, OLD + 60))
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1, "skipped": 3}
    trace = tmp_path / "trace"
    s3once.environment["ASAN_OPTIONS"] = "detect_leaks=0"  # which cannot be while it is traced
    run = push(s3once, logs, bucket, LIVE, wrap=["strace", "-f", "-y", "-e", "trace=read,pread64,readv,preadv", "-o", str(trace)])
    assert counts(run) == {"skipped": 4}, run
    assert f"<{logs}/" not in trace.read_text(errors="replace")


def push_traced(s3once, logs, bucket, folder):
    """The run, and the number of bytes that it has read of app.log."""
    s3once.environment["ASAN_OPTIONS"] = "detect_leaks=0"  # which cannot be while it is traced
    # -ff: a file for each thread, so that no call is cut in two by another thread
    wrap = ["strace", "-ff", "-y", "-e", "trace=read,pread64,readv,preadv", "-o", str(folder / "trace")]
    run = push(s3once, logs, bucket, LIVE, wrap=wrap)
    lines = [line for trace in folder.glob("trace.*") for line in trace.read_text(errors="replace").splitlines()]
    return run, sum(int(line.rsplit("= ", 1)[1]) for line in lines if f"<{logs}/app.log>" in line)


def test_a_grown_log_is_read_from_where_it_ended(s3once, s3, bucket, tmp_path):
    """And a little of its beginning and its end, to see that it is the same log."""
    before, more = b"".join(b"%09d\n" % number for number in range(400_000)), b"more\n" * 20_000
    logs = logs_of(tmp_path, app_log=before)
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1}
    append(logs / "app.log", more)
    run, read = push_traced(s3once, logs, bucket, tmp_path)
    assert counts(run) == {"uploaded": 1, "skipped": 1}, run
    assert contents(s3, bucket) == Counter([before, more])
    assert 2 * len(more) <= read < len(before) / 4, read


@pytest.mark.parametrize("time", [OLD, None], ids=["created", "copytruncate"])
def test_a_first_pass_reads_a_live_log_twice(s3once, s3, bucket, tmp_path, time):
    """Once to measure it and once to copy it, however many rotated logs there are that may be copies of it: it is newer than they
    are (create), or begins otherwise (copytruncate)."""
    each = [b"".join(b"%d %09d\n" % (log, number) for number in range(100_000)) for log in range(3)]
    logs = logs_of(tmp_path, app_log=each[0], app_log_1=each[1], app_log_2=each[2])
    subprocess.run(["gzip", "app.log.2"], cwd=logs, check=True)
    for rotated in [path for path in logs.iterdir() if time and path.name != "app.log"]:
        os.utime(rotated, (time, time))
    run, read = push_traced(s3once, logs, bucket, tmp_path)
    assert counts(run) == {"uploaded": 3}, run
    assert contents(s3, bucket) == Counter(each)
    assert 2 * len(each[0]) <= read < 2.9 * len(each[0]), read


def test_days_without_a_log_count_from_its_last_absence(s3once, s3, bucket, tmp_path):
    """A log that is gone is looked for on seven days with a run. Days of an earlier absence do not count."""
    logs, away = logs_of(tmp_path, app_log_1=b"an older log\n", app_log=b"one\n"), tmp_path / "away"

    def runs(days):
        for _ in range(days):
            with contextlib.closing(sqlite3.connect(s3once.state / "s3once" / "marks.db")) as db, db:
                db.execute("UPDATE log_day SET clock = clock - 1")  # so that the next run is on another day
            run = push(s3once, logs, bucket, LIVE)
        return run

    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 2}
    append(logs / "app.log", b"two\n")
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1, "skipped": 2}
    for days in (5, 5):
        (logs / "app.log").rename(away)
        runs(days)
        away.rename(logs / "app.log")
        assert counts(runs(1)) == {"skipped": 3}
    assert contents(s3, bucket) == Counter([b"an older log\n", b"one\n", b"two\n"])
    (logs / "app.log").rename(away)
    runs(9)
    away.rename(logs / "app.log")
    assert counts(runs(1)) == {"uploaded": 1, "skipped": 1}, "a new log, of which nothing is known"


def test_dry_run_keeps_nothing(s3once, s3, bucket, tmp_path):
    logs = logs_of(tmp_path, app_log=b"one\n")
    run = push(s3once, logs, bucket, [*LIVE, "--dry-run"])
    assert run.code == 0 and counts(run) == {"planned": 1}, run
    append(logs / "app.log", b"two\n")
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1}
    assert contents(s3, bucket) == Counter([b"one\ntwo\n"])


# --- what it refuses


def test_refused(s3once, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"app.log": 10})
    for options, said in (
        (["--live"], "needs --rotated"),
        (["--rotated", "--live", "--delete-after"], "is not removed"),
        (["--rotated", "--live", "--max-size=1M"], "does not go with --min-size"),
        (["--rotated", "--live", "--marks", "dynamodb:some"], "--live needs marks in a file of this host"),
    ):
        run = s3once("push", *options, tree, f"s3://{bucket}/p")
        assert run.code == 2 and said in run.err, (options, run)
    run = s3once("push", "--rotated", "--live", tree / "app.log", f"s3://{bucket}/p")
    assert run.code == 1 and "is a single file" in run.err, run


def test_hard_links_and_other_folders(s3once, s3, bucket, tmp_path):
    """A log that cannot be judged is an error, and is never skipped in silence."""
    logs = logs_of(tmp_path, app_log=b"one\n")
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1}
    os.link(logs / "app.log", logs / "app.log.1")
    run = push(s3once, logs, bucket, LIVE)
    assert run.code == 1 and "hard link" in told(run, "failed")[0]["text"], run
    os.unlink(logs / "app.log.1")
    (logs / "old").mkdir()
    (logs / "app.log").rename(logs / "old/app.log.1")
    (logs / "old/app.log").write_bytes(b"live\n")
    (logs / "old/app.log.2").write_bytes(b"two\n")
    run = push(s3once, logs, bucket, LIVE)
    (failed,) = told(run, "failed")
    assert run.code == 1 and f"is known as a log of {logs}/app.log: it was moved" in failed["text"], run
    assert failed["path"] == f"{logs}/old/app.log.1" and counts(run)["uploaded"] == 2, "others of its family are uploaded"


@pytest.mark.parametrize(
    "first, second",
    [("app.log-20260101", "app.log-20260102"), ("app.log-202601", "app.log-202602"), ("app-2026-01-01-1.log", "app-2026-01-02-1.log")],
)
def test_logs_of_days_that_begin_alike(s3once, s3, bucket, tmp_path, first, second):
    """A day's log is not the rest of an earlier day's, although it begins with all of it: the dates in the names differ."""
    logs = logs_of(tmp_path, **{first.replace(".", "_"): b"start\n"})
    os.utime(logs / first, (OLD, OLD))
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1}
    (logs / first).unlink()
    (logs / f"{second}.gz").write_bytes(gzip.compress(b"start\nsecond day\n"))
    os.utime(logs / f"{second}.gz", (OLD + 86400, OLD + 86400))
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1}
    assert contents(s3, bucket) == Counter([b"start\n", b"start\nsecond day\n"])


def test_equal_logs_of_one_date(s3once, s3, bucket, tmp_path):
    """Two runs of a program on one day have written the same: a date does not make them one, since their times differ."""
    logs = logs_of(tmp_path, **{"app_log-20260101": b"backup ok\n"})
    os.utime(logs / "app.log-20260101", (OLD, OLD))
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1}
    (logs / "app.log").write_bytes(b"backup ok\n")
    os.utime(logs / "app.log", (OLD + 3600, OLD + 3600))
    (logs / "app.log").rename(logs / "app.log-20260101")
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1}
    assert contents(s3, bucket) == Counter({b"backup ok\n": 2})


def test_idle_days_before_a_live_log_that_begins_alike(s3once, s3, bucket, tmp_path):
    """A file that was written last before the live file was made is no copy of it."""
    logs = logs_of(tmp_path, **{"app_log-20260101": b"start\n", "app_log-20260102": b"start\n", "app_log": b"start\nwork\n"})
    for day in (1, 2):
        os.utime(logs / f"app.log-2026010{day}", (OLD + 86400 * day, OLD + 86400 * day))
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 3}
    assert contents(s3, bucket) == Counter({b"start\n": 2, b"start\nwork\n": 1})


def test_a_copy_waits_also_if_it_is_compressed(s3once, s3, bucket, tmp_path):
    """Like a file made by logrotate's `copy`: its lines are in the live log, too. A last run takes it nevertheless."""
    logs = logs_of(tmp_path, app_log=b"one\ntwo\n")
    os.utime(logs / "app.log", (OLD, OLD))
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1}
    (logs / "app.log.1.gz").write_bytes(gzip.compress(b"one\ntwo\n"))
    append(logs / "app.log", b"three\n")
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1, "skipped": 1, "waiting": 1}
    assert contents(s3, bucket) == Counter([b"one\ntwo\n", b"three\n"])
    run = push(s3once, logs, bucket, [*LIVE, "--final"])
    assert run.code == 0 and not told(run, "left"), run
    assert counts(run) == {"uploaded": 1, "skipped": 2}, run


@pytest.mark.parametrize("is_packed", [False, True], ids=["plain", "gzip"])
def test_an_emptied_log_waits_for_its_copy(s3once, s3, bucket, tmp_path, is_packed):
    """While the copy is still written to, its log keeps the row by which the copy is known."""
    logs = logs_of(tmp_path, app_log=b"one\n")
    assert counts(push(s3once, logs, bucket, LIVE)) == {"uploaded": 1}
    append(logs / "app.log", b"two\n")
    copy = logs / ("app.log.1.gz" if is_packed else "app.log.1")
    with open(copy, "wb", buffering=0) as file:
        file.write(gzip.compress(b"one\ntwo\n") if is_packed else b"one\ntwo\n")
        (logs / "app.log").write_bytes(b"three\n")
        assert counts(push(s3once, logs, bucket, LIVE)) == {"waiting": 2}
    assert push(s3once, logs, bucket, LIVE).code == 0
    assert push(s3once, logs, bucket, LIVE).code == 0
    assert contents(s3, bucket) == Counter([b"one\n", b"two\n", b"three\n"])


# --- nights of logrotate


def repeats_a_copy(tmp_path):
    """Whether a run has warned that a copy is uploaded as a whole: copytruncate made it before the last lines were written that a run saw."""
    return any("is uploaded as a whole" in output.read_text() for output in tmp_path.glob("run*.err"))


def assert_each_line_once(s3, bucket, night, run, may_repeat=False):
    """Each line that is on the disk, or was in an object, is in exactly one object. How many lines are nowhere."""
    lines = Counter(line for body in contents(s3, bucket).elements() for line in body.splitlines())
    assert set(lines.values()) <= ({1, 2} if may_repeat else {1}), [line for line, n in lines.items() if n > 1][:5]
    # logrotate puts aside its own unfinished copies. A live log that the writer made anew too early counts.
    logs = [each for each in night.live.parent.iterdir() if not each.name.endswith(".backup") or re.fullmatch(r"app\.log-\d{10}\.backup", each.name)]
    on_disk = {line for each in logs for line in plain(each.name, each.read_bytes()).splitlines()}
    assert on_disk == set(lines), (list(on_disk - set(lines))[:5], list(set(lines) - on_disk)[:5], run)
    lost = night.written - len(lines)
    print(f"figures: {night.days} nights, {night.written} lines, {len(s3.objects(bucket))} objects, {night.runs} runs, {night.kills} killed, {lost} lines nowhere")
    return lost


SHORT = [("numeric-delaycompress-create", 3), ("numeric-compress-copytruncate", 3)]


@pytest.mark.parametrize("way, nights", SHORT + [pytest.param(way, 30, marks=pytest.mark.full) for way in IN_LONG])
def test_nights(s3once, s3, bucket, tmp_path, way, nights):
    naming, compression, creation = way.split("-")
    night = Night(tmp_path / "host", NAMING[naming] + COMPRESSION[compression] + CREATION[creation], f"{way} {nights} grows")
    run_nights(night, nights, lambda: s3once.start("push", night.live.parent, f"s3://{bucket}/p", *LIVE))
    run = push(s3once, night.live.parent, bucket, LIVE)
    assert run.code == 0, run
    lost = assert_each_line_once(s3, bucket, night, run, creation == "copytruncate" and repeats_a_copy(tmp_path))
    # Else logrotate itself copies a log, or compresses it, while a line is written to it.
    assert lost == 0 or creation != "create" or compression == "compress", f"{lost} lines are nowhere"
