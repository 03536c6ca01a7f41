"""The last minute of a host: `--final` sends what is there by a deadline, and says what is left; `watch` drains when it is stopped."""

import os
import signal
import subprocess
import threading
from collections import Counter

import pytest

from tests.faults import faults
from tests.servers.uplink import Uplink
from tests.system.fakes_keys import Keys
from tests.system.fakes_metadata import Imds
from tests.system.harness import GIB, KIB, MIB, REPOSITORY, content, expected_objects, make_tree, wait_until
from tests.system.pushing import counts, summary, told
from tests.system.test_rotated import plain
from tests.system.watching import Watched


@pytest.fixture
def watched(s3once, bucket, tmp_path):
    return Watched(s3once, bucket, tmp_path)


def aged(tree, times):
    for name, seconds in times.items():
        os.utime(tree / name, (seconds, seconds))


def names(run, event):
    return sorted(os.path.basename(each["path"]) for each in told(run, event))


# --- what goes


def test_nothing_waits(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 10, "b": 20})
    push = ("push", tree, f"s3://{bucket}", "--min-age", "1h", "--json")
    assert counts(s3once(*push)) == {"waiting": 2}
    run = s3once(*push, "--final")
    assert run.code == 0 and counts(run) == {"uploaded": 2}, run
    s3.assert_same(tree, bucket)


def test_nothing_is_removed(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 10})
    push = ("push", tree, f"s3://{bucket}", "--delete-after", "--json")
    assert counts(s3once(*push, "--final")) == {"uploaded": 1}
    assert (tree / "a").exists()
    run = s3once(*push)
    assert summary(run)["removed"] == 1 and not (tree / "a").exists(), run


def test_nothing_is_moved(s3once, s3, bucket, tmp_path):
    """The folder may be unmounted already."""
    tree = make_tree(tmp_path / "tree", {"a": 10})
    push = ("push", tree, f"s3://{bucket}", "--move-to", tmp_path / "gone", "--json")
    assert s3once(*push).code == 3
    assert counts(s3once(*push, "--final")) == {"uploaded": 1}
    assert (tree / "a").exists()


def test_the_oldest_and_smallest_first(s3once, s3, bucket, s3_wire, tmp_path):
    """Files of up to 1 MiB by age, then larger ones by size. The first file may be any that was found so far."""
    sizes = {f"s{i:02}": 10 for i in range(60)} | {"a-part": 6 * MIB, "b-large": 3 * MIB, "c-large": 2 * MIB, "d-part": 11 * MIB}
    tree = make_tree(tmp_path / "tree", sizes)
    aged(tree, {name: 2_000_000_000 - i for i, name in enumerate(sorted(sizes))})
    held = s3_wire.add(faults.hold_request, "PutObject")
    push = ("push", tree, f"s3://{bucket}", "--concurrency", "1", "--part-size", "5M", "--final")
    running = s3once.start(*push, "--json")
    wait_until(lambda: '"scan_complete":true' in running.output()[0], 60, "the end of the scan")
    assert held.reached.wait(60)
    held.released.set()
    run = running.wait()
    order = [os.path.basename(each["path"]) for each in told(run, "uploaded")]
    wanted = sorted((name for name in sizes if name[0] == "s"), reverse=True) + ["c-large", "b-large", "a-part", "d-part"]
    assert run.code == 0 and order[1:] == [name for name in wanted if name != order[0]], order
    s3.assert_same(tree, bucket)


# --- logs


def logs(tmp_path):
    folder = make_tree(tmp_path / "logs", {"app.log": b"one\ntwo\nthr", "app.log.1": b"zero\n"})
    aged(folder, {"app.log.1": 1_767_322_800})
    return folder


def contents(s3, bucket):
    return Counter(plain(key, s3.get(bucket, key)) for key in s3.objects(bucket))


def test_a_live_log_in_pieces(s3once, s3, bucket, tmp_path):
    """Lines written after the final run are uploaded once."""
    folder = logs(tmp_path)
    push = ("push", folder, f"s3://{bucket}", "--rotated", "--live", "--min-age", "1h", "--marks", f"sqlite:{tmp_path}/marks", "--json")
    run = s3once(*push, "--final")
    assert run.code == 0 and counts(run) == {"uploaded": 2}, run
    assert contents(s3, bucket) == Counter([b"zero\n", b"one\ntwo\n"])
    with open(folder / "app.log", "ab") as file:
        file.write(b"ee\n")
    assert counts(s3once(*push)) == {"skipped": 2, "uploaded": 1}
    (folder / "app.log.1").rename(folder / "app.log.2")
    (folder / "app.log").rename(folder / "app.log.1")
    aged(folder, {"app.log.1": 1_767_409_200})
    assert counts(s3once(*push)) == {"skipped": 3}
    assert contents(s3, bucket) == Counter([b"zero\n", b"one\ntwo\n", b"three\n"])


def test_a_copy_that_is_being_written_ends_at_its_last_line(s3once, s3, bucket, tmp_path):
    """No line is cut in two, also if it is rotated by its name, and what was missing is an object of its own."""
    folder = make_tree(tmp_path / "logs", {"app.log.1": b""})
    push = ("push", folder, f"s3://{bucket}", "--rotated", "--live", "--marks", f"sqlite:{tmp_path}/marks", "--json")
    with open(folder / "app.log.1", "ab") as file:
        file.write(b"one\ntwo\nthr")
        file.flush()
        run = s3once(*push, "--final")
        assert run.code == 0 and counts(run) == {"uploaded": 1}, run
        assert contents(s3, bucket) == Counter([b"one\ntwo\n"])
        file.write(b"ee")
    run = s3once(*push)
    assert run.code == 0 and counts(run) == {"uploaded": 1, "skipped": 1}, run
    assert contents(s3, bucket) == Counter([b"one\ntwo\n", b"three"])


@pytest.mark.parametrize("compress", [(), ("--compress", "gzip")])
def test_a_live_log_as_it_is(s3once, s3, bucket, tmp_path, compress):
    """Also with shared marks, and where logs are removed. If nothing is written later, it is not uploaded again once it has rotated."""
    folder = logs(tmp_path)
    make_tree(folder, {"empty.log": b"", "big.log": 2 * KIB})
    push = ("push", folder, f"s3://{bucket}", "--rotated", "--delete-after=7d", "--max-size", "1K", *compress, "--json")
    run = s3once(*push, "--final")
    assert run.code == 0 and counts(run) == {"uploaded": 2, "waiting": 1, "oversized": 1}, run
    assert contents(s3, bucket) == Counter([b"zero\n", b"one\ntwo\nthr"])
    assert counts(s3once(*push, "--final")) == {"skipped": 2, "waiting": 1, "oversized": 1}
    (folder / "app.log.1").rename(folder / "app.log.2")
    (folder / "app.log").rename(folder / "app.log.1")
    run = s3once(*push)
    assert run.code == 0 and counts(run) == {"skipped": 2, "waiting": 2}, run


def test_a_log_that_is_written_meanwhile(s3once, s3, bucket, s3_wire, tmp_path):
    """Nothing torn: the object is what the log had at one moment."""
    folder = make_tree(tmp_path / "logs", {"app.log": b"one\n"})
    held = s3_wire.add(faults.hold_request, "PutObject")
    running = s3once.start("push", folder, f"s3://{bucket}", "--rotated", "--final", "--json")
    assert held.reached.wait(60)
    with open(folder / "app.log", "ab") as file:
        file.write(b"two\n")
    held.released.set()
    run = running.wait()
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    assert contents(s3, bucket) == Counter([b"one\n"])


# --- the deadline


def assert_none_torn(s3, bucket, tree):
    wanted = expected_objects(tree)
    there = s3.objects(bucket)
    for key in there:
        assert s3.get(bucket, key) == wanted[key].read_bytes(), key
    return set(there)


def write_log(path, size):
    with open(path, "wb") as file:
        for at in range(0, size, MIB):
            file.write(content(f"log {at % (15 * MIB)}", MIB))


@pytest.mark.parametrize(
    "files, large, limit",
    [(2000, 48 * MIB, "8s"), pytest.param(10_000, 48 * MIB, "8s", marks=pytest.mark.full), pytest.param(2000, 4 * GIB, "20s", marks=pytest.mark.full)],
)
def test_a_deadline(s3once, s3, bucket, table, tmp_path, files, large, limit):
    """Many files and a large one over a slow line: what went is whole, what did not is told by name, and another host goes on."""
    tree = make_tree(tmp_path / "tree", {f"{i % 7}/f{i:05}": 100 for i in range(files)})
    write_log(tree / "large", large)
    assert s3once("init").code == 0
    push = ("push", tree, f"s3://{bucket}", "--part-size", "5M", "--min-age", "1h", "--json")
    with Uplink(s3, 2 * MIB) as line:
        where = {"env": {"AWS_ENDPOINT_URL_S3": line.endpoint}, "elsewhere": True}
        run = s3once(*push, "--final", "--max-duration", limit, "--grace", "4s", **where)
        there, end = assert_none_torn(s3, bucket, tree), summary(run)
        assert run.code == 6 == end["exit"], run
        assert end["scan_complete"] and end["left"] + end["uploaded"] == end["files"] == files + 1, end
        left = told(run, "left")
        assert end["left"] == len(left) and end["bytes_left"] == sum(each["bytes"] for each in left)
        assert "large" in {each["key"] for each in left}
        assert there >= {each["key"] for each in told(run, "uploaded")}
        kept = sum(size for parts in s3.uploads(bucket).values() for _, size in parts)
        line.bytes_per_second = 2 * GIB
        run = s3once(*push, "--final", timeout=1200, **where)
    assert run.code == 0 and (summary(run)["left"], summary(run)["skipped"]) == (0, end["uploaded"]), run
    s3.assert_same(tree, bucket)
    assert not s3.uploads(bucket)
    assert summary(run)["bytes_sent"] <= end["bytes_left"] - kept


def test_people_are_told(s3once, bucket, s3_wire, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 10, "b": 20, "c": 30})
    aged(tree, {"a": 1, "b": 2, "c": 3})
    s3_wire.add(faults.hold_request, "PutObject", times=None)
    run = s3once("push", tree, f"s3://{bucket}", "--final", "--concurrency", "1", "--max-duration", "1s", "--grace", "0")
    s3_wire.clear()
    assert run.code == 6, run
    for name, size in {"a": 10, "b": 20, "c": 30}.items():
        assert f"not finished: {tree}/{name} -> s3://{bucket}/{name} ({size} B)\n" in run.out
    assert "3 files (60 B) are left for the next run" in run.out


# --- the end of a service


def test_drain(watched, s3, bucket):
    """Files that have not rested, in folders that came, are uploaded before the end."""
    watched.write(min_age="1h")
    watched.start()
    for name in ("a", "new/b", "c"):
        watched.rename_in(name, 10)
    run = watched.stop()
    assert run.code == 0 and summary(run)["uploaded"] == 3, run
    s3.assert_same(watched.tree, bucket, "p")


def test_drain_under_load(watched, s3, s3_wire, bucket):
    """A pass is under way: what it has begun ends, and the last pass does the rest."""
    make_tree(watched.tree, {f"f{i}": 10 for i in range(300)})
    for path in watched.tree.iterdir():
        os.utime(path, (1, 1))
    held = s3_wire.add(faults.hold_request, "PutObject")
    watched.begin("--concurrency", "4")
    assert held.reached.wait(60)
    watched.running.popen.send_signal(signal.SIGTERM)
    watched.wait_said("stopping; uploads under way may finish within --grace, and a second signal ends them at once")
    held.released.set()
    run = watched.running.wait()
    assert run.code == 0, run
    assert sum(each["uploaded"] for each in told(run, "summary")) == 300
    s3.assert_same(watched.tree, bucket, "p")


def test_a_drain_that_takes_too_long(watched, s3, s3_wire, bucket):
    watched.write(min_age="1h", grace="0")
    watched.start()
    watched.rename_in("a", 10)
    s3_wire.add(faults.hold_request, "PutObject", times=None)
    watched.write(min_age="1h", grace="0", drain="1s")
    watched.running.popen.send_signal(signal.SIGHUP)
    watched.manager.next_line("RELOADING=1")
    watched.manager.next_line("READY=1")
    run = watched.stop()
    s3_wire.clear()
    assert run.code == 143 and names(run, "left") == ["a"], run
    watched.write(min_age="0s")
    watched.start()
    watched.stop()
    s3.assert_same(watched.tree, bucket, "p")


NO_TIME = "what was under way took all the time of --drain, so files are left for the next start"


def test_a_drain_without_time(watched, s3, s3_wire, bucket):
    """The pass under way has a longer grace than the drain has time: it is said, and the next start goes on."""
    make_tree(watched.tree, {f"f{i}": 10 for i in range(30)})
    for path in watched.tree.iterdir():
        os.utime(path, (1, 1))
    hung = s3_wire.add(faults.hang, "PutObject", nth=3, times=None)
    watched.write(grace="2s", drain="1s")
    watched.begin("--concurrency", "1")
    wait_until(lambda: hung.fired, 60, "the file that hangs")
    run = watched.stop()
    assert run.code == 143 and NO_TIME in run.err, run
    s3_wire.clear()
    watched.start()
    assert watched.stop().code == 0
    s3.assert_same(watched.tree, bucket, "p")


def test_a_second_signal_ends_a_drain(watched, s3_wire, bucket):
    watched.write(min_age="1h", grace="1h", drain="1h")
    watched.start()
    watched.rename_in("a", 10)
    held = s3_wire.add(faults.hold_request, "PutObject", times=None)
    watched.running.popen.send_signal(signal.SIGTERM)
    assert held.reached.wait(60)
    assert watched.stop().code == 143
    s3_wire.clear()


@pytest.mark.parametrize("number, drain", [(signal.SIGINT, "30s"), (signal.SIGTERM, "0")])
def test_only_sigterm_drains(watched, s3, bucket, number, drain):
    watched.write(min_age="1h", drain=drain)
    watched.start(env={"WATCHDOG_USEC": "1000000"})
    watched.rename_in("a", 10)
    watched.manager.next_line("WATCHDOG=1")
    watched.manager.next_line("WATCHDOG=1")
    assert watched.stop(number).code == 128 + number
    assert not s3.objects(bucket)


def assert_nothing_twice(s3_wire):
    sent = Counter((each.operation.key, each.operation.part) for each in s3_wire.history if each.kind in ("PutObject", "UploadPart") and each.took_effect)
    assert sent and set(sent.values()) == {1}, sent.most_common(3)


@pytest.mark.parametrize("end", ["drain", "power"])
def test_an_end_under_load(watched, s3, s3_wire, bucket, end):
    """Files come all the time, and one is so large that the drain is too short for it. The service goes on with it when it is back."""
    watched.write("part-size = 5MiB", grace="0", drain="1s")
    watched.start()
    over = threading.Event()

    def work():
        number = 0
        while not over.wait(0.02):
            watched.rename_in(f"{number % 5}/f{number}", 1000)
            number += 1

    hung = s3_wire.add(faults.hang, "UploadPart", nth=3, times=None)
    large = make_tree(watched.folder, {"large": 22 * MIB}) / "large"
    worker = threading.Thread(target=work)
    worker.start()
    try:
        wait_until(lambda: len(s3.objects(bucket)) > 20, 60, "the load")
        large.rename(watched.tree / "large")
        wait_until(lambda: hung.fired, 60, "the large file")
        if end == "power":
            watched.running.kill()
            watched.running.popen.wait()
        else:
            run = watched.stop()
            assert run.code == 143 and ("large" in names(run, "left") or NO_TIME in run.err), run
    finally:
        over.set()
        worker.join()
    s3_wire.clear()
    watched.write("part-size = 5MiB")
    watched.start()
    run = watched.stop()
    assert run.code == 0, run
    s3.assert_same(watched.tree, bucket, "p")
    assert_nothing_twice(s3_wire)


def test_a_host_that_loses_its_power(watched, s3, s3_wire, bucket):
    """SIGKILL while it drains, and nothing is lost or sent twice."""
    watched.write(min_age="1h")
    watched.start()
    for i in range(50):
        watched.rename_in(f"f{i}", 10)
    rule = s3_wire.add(faults.hold_request, "PutObject", nth=20, times=None)
    watched.running.popen.send_signal(signal.SIGTERM)
    assert rule.reached.wait(60)
    watched.running.kill()
    watched.running.popen.wait()
    s3_wire.clear()
    run = watched.s3once("run", watched.file, "--final")
    assert run.code == 0, run
    s3.assert_same(watched.tree, bucket, "p")
    assert_nothing_twice(s3_wire)


# --- notices of EC2


@pytest.mark.parametrize(
    "notice",
    [
        {"spot/instance-action": '{"action": "terminate", "time": "2030-01-01T00:02:00Z"}'},
        {"autoscaling/target-lifecycle-state": "Terminated"},
    ],
    ids=["spot", "group"],
)
def test_a_notice_of_ec2(s3once, s3, bucket, tmp_path, notice):
    """The script does nothing before the notice comes. Then the files are sent, and the group is told to go on."""
    tree = make_tree(tmp_path / "tree", {"a": 10})
    told_aws = tmp_path / "told-aws"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "aws").write_text(f'#!/bin/sh\necho "$@" >{told_aws}\n')
    (tmp_path / "bin" / "aws").chmod(0o755)
    with Imds(Keys(), notices={"autoscaling/target-lifecycle-state": "InService", "instance-id": "i-0a"}) as imds:
        environment = {
            **s3once.environment,
            **{"AWS_EC2_METADATA_SERVICE_ENDPOINT": imds.endpoint, "SECONDS_BETWEEN": "0.05", "PATH": f"{tmp_path}/bin:/usr/bin:/bin"},
            **{"LIFECYCLE_HOOK": "upload", "AUTO_SCALING_GROUP": "web"},
        }
        command = [s3once.binary(), "push", "--final", "--min-age", "1h", tree, f"s3://{bucket}"]
        script = subprocess.Popen([REPOSITORY / "config" / "ec2-last-minute", *command], env=environment)
        try:
            wait_until(lambda: imds.asked > 5, 60, "five questions")
            assert script.poll() is None and not s3.objects(bucket)
            imds.notices |= notice
            assert script.wait(60) == 0
        finally:
            script.kill()
            script.wait()
    s3.assert_same(tree, bucket)
    assert told_aws.read_text().split() == (
        "autoscaling complete-lifecycle-action --lifecycle-hook-name upload --auto-scaling-group-name web "
        "--lifecycle-action-result CONTINUE --instance-id i-0a"
    ).split()
