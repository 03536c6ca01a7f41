"""A run keeps its limits: of time, bytes sent, sizes, bandwidth and disk."""

import json
import os
import re
import signal
import struct
import threading
import time

import pytest

from tests.faults import faults
from tests.system.harness import KIB, MIB, make_tree, wait_until
from tests.system.pushing import counts, summary, told, visible_writes


def notes(run):
    return [each["text"] for each in told(run, "note")]


# --- sizes


def test_min_size(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"empty": 0, "small": 99, "fits": 100, "large": 201})
    command = ("push", tree, f"s3://{bucket}", "--min-size", "100", "--max-size", "200", "--json", "-v")
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"uploaded": 1, "undersized": 2, "oversized": 1}, run
    assert summary(run)["bytes_found"] == 100
    assert {(os.path.basename(each["path"]), each["bytes"]) for each in told(run, "undersized")} == {("empty", 0), ("small", 99)}
    assert set(s3.objects(bucket)) == {"fits"}
    run = s3once("push", tree, f"s3://{bucket}", "--min-size", "100")
    assert run.code == 0 and "smaller than --min-size 2" in run.out, run


# --- time and volume


def over(running):
    return "--max-duration is over" in running.output()[0]


def test_max_duration(s3once, s3, bucket, s3_wire, tmp_path):
    """Uploads under way at the limit may finish. The next run does the rest, and nothing twice."""
    tree = make_tree(tmp_path / "tree", {f"f{i}": 10 for i in range(5)})
    held = s3_wire.add(faults.hold_request, "PutObject")
    command = ("push", tree, f"s3://{bucket}", "--concurrency", "1", "--grace", "1h", "--json")
    running = s3once.start(*command, "--max-duration", "2s")
    wait_until(lambda: over(running), 60, "the word that the time is over")
    sent = int(held.reached.is_set())  # on a slow host it did not come so far
    s3_wire.clear()
    run = running.wait()
    assert run.code == 6 and summary(run)["exit"] == 6, run
    assert summary(run)["uploaded"] == sent and "error" not in run.err
    run = s3once(*command)
    assert run.code == 0 and (summary(run)["skipped"], summary(run)["uploaded"]) == (sent, 5 - sent), run


def test_the_grace_of_max_duration(s3once, bucket, s3_wire, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 10, "b": 10})
    s3_wire.add(faults.hold_request, "PutObject", times=None)
    run = s3once("push", tree, f"s3://{bucket}", "--concurrency", "1", "--grace", "0", "--max-duration", "1s", "--json")
    assert run.code == 6 and summary(run)["uploaded"] == 0, run
    s3_wire.clear()


def test_a_signal_wins_over_max_duration(s3once, bucket, s3_wire, tmp_path):
    """And ends its grace."""
    tree = make_tree(tmp_path / "tree", {"a": 10, "b": 10})
    held = s3_wire.add(faults.hold_request, "PutObject", times=None)
    for seconds in (1, 5, 30):  # until the host is fast enough to have something under way by then
        running = s3once.start("push", tree, f"s3://{bucket}", "--concurrency", "1", "--grace", "1h", "--max-duration", f"{seconds}s", "--json")
        wait_until(lambda: over(running), 60, "the word that the time is over")
        if held.reached.is_set():
            break
        running.wait()
    running.popen.send_signal(signal.SIGTERM)
    assert running.wait().code == 143
    s3_wire.clear()


def test_a_run_that_ends_in_time(s3once, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 10})
    run = s3once("push", tree, f"s3://{bucket}", "--max-duration", "1h", "--max-transfer", "1G", "--json")
    assert run.code == 0 and not notes(run), run


def test_max_transfer(s3once, s3, bucket, s3_proxy, tmp_path):
    """Each run sends so much, and at most one body more per worker; in the end all is there once."""
    tree = make_tree(tmp_path / "tree", {f"f{i}": 100 * KIB for i in range(7)})
    command = ("push", tree, f"s3://{bucket}", "--concurrency", "1", "--max-transfer", "250K", "--json")
    for code, sent in [(6, 3), (6, 3), (0, 1)]:
        run = s3once(*command)
        assert run.code == code and summary(run)["uploaded"] == sent, run
        assert summary(run)["bytes_sent"] == sent * 100 * KIB
        assert ("--max-transfer is reached" in "".join(notes(run))) == (code == 6)
    assert set(visible_writes(s3_proxy.requests()).values()) == {1}
    s3.assert_same(tree, bucket)


def test_max_transfer_of_a_large_file(s3once, s3, bucket, s3_proxy, tmp_path):
    """It goes on from run to run, part by part."""
    tree = make_tree(tmp_path / "tree", {"big": 22 * MIB})
    command = ("push", tree, f"s3://{bucket}", "--concurrency", "1", "--part-size", "5M", "--max-transfer", "9M", "--json")
    codes = []
    while not codes or codes[-1] == 6 and len(codes) < 5:
        run = s3once(*command)
        codes.append(run.code)
        assert summary(run)["bytes_sent"] <= 10 * MIB, run
    assert codes == [6, 6, 0], run
    parts = [request["uri"] for request in s3_proxy.requests() if "partNumber=" in request["uri"]]
    assert len(parts) == len(set(parts)) == 5
    s3.assert_same(tree, bucket)


def test_nothing_is_under_way_when_a_limit_has_ended_the_run(s3once, bucket, tmp_path):
    """Not even the upload whose parts were to come when one of the other was sent."""
    tree = make_tree(tmp_path / "tree", {name: 30 * MIB for name in ("a", "b")})
    limits = ("--bwlimit", "1M", "--max-duration", "1s", "--grace", "0")
    run = s3once("push", tree, f"s3://{bucket}", "--concurrency", "1", "--part-size", "5M", *limits, "--json")
    assert run.code == 6 and summary(run)["in_flight"] == 0, run


# --- the line


def test_bwlimit_is_kept_by_a_run_of_small_files(s3once, s3, bucket, tmp_path):
    """The first moment is free: a fifth of a second, and a piece."""
    tree = make_tree(tmp_path / "tree", {f"f{i:03}": 8 * KIB for i in range(100)})
    run = s3once("push", tree, f"s3://{bucket}", "--bwlimit", "400K", "--json")
    assert run.code == 0 and summary(run)["uploaded"] == 100, run
    assert run.seconds >= 800 / 400 - 0.25, run
    s3.assert_same(tree, bucket)


def test_small_files_come_to_their_end_on_a_slow_line(s3once, s3, bucket, tmp_path):
    """They begin one after the other, so that a limit of time leaves some whole."""
    tree = make_tree(tmp_path / "tree", {f"f{i:02}": MIB for i in range(24)})
    run = s3once("push", tree, f"s3://{bucket}", "--bwlimit", "600K", "--max-duration", "8s", "--grace", "0", "--json")
    assert run.code == 6 and 0 < summary(run)["uploaded"] < 24, run
    assert len(s3.objects(bucket)) == summary(run)["uploaded"]


def test_bwlimit_of_large_bodies(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"parts": 11 * MIB, "whole": 3 * MIB})
    run = s3once("push", tree, f"s3://{bucket}", "--part-size", "5M", "--bwlimit", "7M", "--json")
    assert run.code == 0 and run.seconds >= 2 - 0.25, run
    s3.assert_same(tree, bucket)


def test_time_left_after_a_resume(s3once, s3, bucket, tmp_path):
    """A large file beside small ones, of which S3 has a half already, over a slow line."""
    tree = make_tree(tmp_path / "tree", {"large": 30 * MIB, **{f"small{i}": KIB for i in range(20)}})
    command = ("push", tree, f"s3://{bucket}", "--part-size", "5M", "--json")
    run = s3once(*command, "--concurrency", "1", "--max-transfer", "14M")
    assert run.code == 6 and summary(run)["bytes_kept"] >= 10 * MIB, run
    kept = summary(run)["bytes_kept"]
    run = s3once(*command, "--bwlimit", "1M")
    end = summary(run)
    assert end["bytes_resumed"] == kept, run
    assert run.code == 0 and end["bytes_moved"] < 21 * MIB < end["bytes"], run
    told_left = [(end["seconds"] - each["seconds"], each["seconds_left"]) for each in told(run, "progress") if each["seconds"] > 10]
    told_left = [(really, left) for really, left in told_left if really > 3]
    assert told_left and all(abs(left - really) <= really / 3 + 1 for really, left in told_left), told_left


def test_the_rate_after_a_resume_is_of_what_moved(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"large": 16 * MIB})
    command = ("push", tree, f"s3://{bucket}", "--part-size", "5M", "--concurrency", "1")
    assert s3once(*command, "--max-transfer", "9M").code == 6
    run = s3once(*command, "--bwlimit", "2M")
    rate = re.search(r"uploaded 1 \(16[^)]*\) in [^,]*, ([0-9.]+) MiB/s", run.out)
    assert run.code == 0 and rate and float(rate[1]) < 3, run


def test_sigusr2_lifts_the_limit(s3once, s3, bucket, tmp_path):
    """At 8 KiB a second it would take half an hour. The run says what limits it."""
    tree = make_tree(tmp_path / "tree", {"big": 16 * MIB})
    running = s3once.start("push", tree, f"s3://{bucket}", "--bwlimit", "8K", "--json")
    wait_until(lambda: '"limited_by":"bandwidth"' in running.output()[0], 60, "the limit to be what limits")
    running.popen.send_signal(signal.SIGUSR2)
    run = running.wait()
    assert run.code == 0 and notes(run) == ["the limit of bandwidth is lifted"], run


def test_sigusr2_restores_the_limit(s3once, bucket, s3_wire, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 10})
    held = s3_wire.add(faults.hold_request, "PutObject")
    running = s3once.start("push", tree, f"s3://{bucket}", "--bwlimit", "00:00,8K 12:00,8K", "--json")
    assert held.reached.wait(60), running.output()
    for said in ("is lifted", "holds again"):
        running.popen.send_signal(signal.SIGUSR2)
        wait_until(lambda: said in running.output()[0], what=f"the word that it {said}")
    s3_wire.clear()
    run = running.wait()
    assert run.code == 0 and notes(run) == ["the limit of bandwidth is lifted", "the limit of bandwidth holds again"], run


def test_sigusr2_without_a_limit_does_nothing(s3once, bucket, s3_wire, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 10})
    held = s3_wire.add(faults.hold_request, "PutObject")
    running = s3once.start("push", tree, f"s3://{bucket}", "--json")
    assert held.reached.wait(60), running.output()
    running.popen.send_signal(signal.SIGUSR2)
    s3_wire.clear()
    run = running.wait()
    assert run.code == 0 and not notes(run), run


def zone_where_it_is(hour):
    """Far from every time at which something changes."""
    east = hour - time.gmtime().tm_hour
    east += 24 if east < -12 else 0
    return f"Etc/GMT{-east:+}"


def test_the_limit_of_this_time_of_day(s3once, bucket, tmp_path):
    """The times are of --time-zone."""
    tree = make_tree(tmp_path / "tree", {"a": 40 * KIB})
    for hour, limited in [(14, False), (2, True)]:
        command = ("push", tree, f"s3://{bucket}/{limited}", "--bwlimit", "00:00,16K 12:00,off", "--json")
        run = s3once(*command, "--time-zone", zone_where_it_is(hour), *(["--key", "{dir}{name}"] if limited else []))
        assert run.code == 0, run
        if limited:
            assert run.seconds >= 2, run
        else:
            assert summary(run)["limited_by"] != "bandwidth", run


def test_bwlimit_that_cannot_be_shared(s3once, bucket, tmp_path):
    """The limit is that of the run alone then, which says why."""
    shared = s3once.state / "s3once" / "bandwidth"
    shared.mkdir(parents=True)
    run = s3once("push", make_tree(tmp_path / "tree", {"file": 1000}), f"s3://{bucket}", "--bwlimit", "1M")
    assert run.code == 0 and f"{shared}: Is a directory" in run.err, run


def test_damage_to_what_bwlimit_shares(s3once, s3, bucket, tmp_path):
    """Under a run: the file is made anew or written again, but a link is not followed. The run goes on by its own limit."""
    tree, theirs = make_tree(tmp_path / "tree", {"big": 16 * MIB}), make_tree(tmp_path, {"theirs": b"theirs"}) / "theirs"
    shared = s3once.state / "s3once" / "bandwidth"
    running = s3once.start("push", tree, f"s3://{bucket}", "--bwlimit", "64K", "--json")

    def is_used():
        return shared.exists() and shared.stat().st_size >= 8 and struct.unpack("=Q", shared.read_bytes()[:8])[0] < 1 << 62

    wait_until(is_used, 60, "the first use of the shared file")
    for damage in (lambda: os.truncate(shared, 0), lambda: shared.write_bytes(b"\xff" * 5000), shared.unlink):
        damage()
        wait_until(is_used, 60, "another use of the shared file")
    (tmp_path / "link").symlink_to(theirs)
    (tmp_path / "link").replace(shared)
    wait_until(lambda: running.output()[1].count(f"{shared}: it is a symbolic link") == 1, 60, "the word that it is a link")
    running.popen.send_signal(signal.SIGUSR2)
    run = running.wait()
    assert run.code == 0 and theirs.read_bytes() == b"theirs", run
    s3.assert_same(tree, bucket)


@pytest.mark.skipif(os.geteuid() != 0, reason="a time namespace is root's to make")
def test_bwlimit_is_shared_with_a_time_namespace(s3once, s3, bucket, tmp_path):
    """The clock is another one there. What it leaves in the shared file is the host's time, or both would ignore each other."""
    tree = make_tree(tmp_path / "tree", {"file": 1000})
    apart = ("unshare", "--time", "--boottime", "100000", "--fork", "--kill-child")
    assert s3once.start("push", tree, f"s3://{bucket}", "--bwlimit", "1M", wrap=apart).wait().code == 0
    (free_ns,) = struct.unpack("=Q", (s3once.state / "s3once" / "bandwidth").read_bytes()[:8])
    assert abs(time.clock_gettime_ns(time.CLOCK_BOOTTIME) - free_ns) < 100000e9 / 2


@pytest.mark.full
def test_four_processes_share_the_line(s3once, s3, bucket, tmp_path):
    """Within 5 % of the limit over 30 s, large bodies and small ones."""
    trees = [make_tree(tmp_path / f"t{i}", {"big": 300 * MIB} if i % 2 else {f"f{n:04}": 128 * KIB for n in range(2500)}) for i in range(4)]
    runs = [s3once.start("push", tree, f"s3://{bucket}/{i}", "--bwlimit", "8M", "--marks", f"sqlite:{tmp_path}/m{i}", "--json") for i, tree in enumerate(trees)]

    def sent():
        total = 0
        for run in runs:
            events = [line for line in run.output()[0].splitlines() if '"progress"' in line]
            total += json.loads(events[-1])["bytes_sent"] if events else 0
        return total

    wait_until(lambda: sent() > 16 * MIB, 60, "all of them sending")
    begun, first = time.monotonic(), sent()
    threading.Event().wait(30)
    rate = (sent() - first) / (time.monotonic() - begun)
    for run in runs:
        run.kill(signal.SIGKILL)
    assert abs(rate / (8 * MIB) - 1) <= 0.05, rate / MIB


# --- what makes no sense


@pytest.mark.parametrize(
    "options, sentence",
    [
        (["--bwlimit", "fast"], "--bwlimit: 'fast' is not a size"),
        (["--bwlimit", "100"], "--bwlimit: '100' is too small: at least 8KiB, or off"),
        (["--bwlimit", "8:00,2M"], "--bwlimit: '8:00,2M' is not a time of day and a rate: write them as in 08:00,2M 19:00,off"),
        (["--bwlimit", "08:00,2M 25:00,off"], "--bwlimit: '25:00,off' is not a time of day and a rate"),
        (["--bwlimit", "08:00,2M 08:00,off"], "--bwlimit: '08:00,2M 08:00,off' has a time twice"),
        (["--bwlimit", "08:00,2M 19:00,off", "--time-zone", "Mars"], "--time-zone"),
        (["--time-zone", "Europe/Berlin"], "--time-zone is for {mtime:…} in --key and for times of --bwlimit: give one"),
        (["--max-duration", "0"], "--max-duration: '0' is too small: at least 1s"),
        (["--max-duration", "tomorrow"], "--max-duration: "),
        (["--max-transfer", "0"], "--max-transfer: '0' is too small: at least 1"),
        (["--min-size", "10M", "--max-size", "1M"], "--min-size is more than --max-size, so that no file would be left"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_limits(s3once, bucket, tmp_path, options, sentence):
    tree = make_tree(tmp_path / "tree", {"a": 10})
    run = s3once("push", tree, f"s3://{bucket}", *options)
    assert run.code == 2 and sentence in run.err, run
