"""Large files over a slow line that all connections share: few parts at once, nothing sent twice, and a kill keeps what was sent."""

import os
import signal

import pytest

from tests.servers.uplink import Uplink
from tests.system.harness import GIB, KIB, MIB, expected_objects, make_tree, wait_until
from tests.system.pushing import SqliteMarks, assert_done, counts, summary, told

PART = 5 * MIB
RATE = 3 * MIB
AT_ONCE = 4  # so many parts at most are under way over such a line


@pytest.fixture
def line(s3_wire):
    with Uplink(s3_wire, RATE) as line:
        yield line


@pytest.fixture
def push(s3once, s3, bucket, line, tmp_path):
    """push(*options) starts the program over the line, with marks of this host and a lease nobody waits for."""
    s3once.environment["AWS_ENDPOINT_URL_S3"] = line.endpoint

    def start(*options):
        return s3once.start(
            "push", "--part-size", "5MiB", "--lease", "1h", "--json", *options, tmp_path / "tree", f"s3://{bucket}/p"
        )

    return start


def parts_received(wire):
    """For each UploadPart, how many bytes of its body arrived."""
    return [each.body_bytes for each in wire.history if each.kind == "UploadPart"]


def parts_kept(s3, bucket):
    return sum(len(parts) for parts in s3.uploads(bucket).values())


def assert_whole(s3, bucket, s3once, tree):
    s3.assert_same(tree, bucket, "p")
    assert_done(SqliteMarks(s3once.state / "s3once" / "marks.db"), expected_objects(tree, "p"))
    assert not s3.uploads(bucket)


def test_nothing_twice(s3once, s3, s3_wire, bucket, line, push, tmp_path):
    """Few parts at once from beginning to end; the count of bytes sent is that of what came."""
    tree = make_tree(tmp_path / "tree", {"large": 32 * MIB + 1})
    run = push().wait(120)
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    assert sum(parts_received(s3_wire)) == 32 * MIB + 1 == summary(run)["bytes_sent"]
    records = [each for each in s3_wire.history if each.kind == "UploadPart"]
    at_once = max(sum(other.begun <= each.begun < other.ended for other in records) for each in records)
    assert at_once <= AT_ONCE, at_once
    assert_whole(s3, bucket, s3once, tree)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_killed(s3once, s3, s3_wire, bucket, line, push, tmp_path, share):
    """All but the parts that were under way is there, and is not sent again."""
    size = 40 * MIB
    tree = make_tree(tmp_path / "tree", {"large": size})
    running = push()
    wait_until(lambda: line.carried >= share * size, 120)
    running.kill()
    running.popen.wait()
    s3_wire.settle()
    carried, kept = line.carried, parts_kept(s3, bucket)
    assert kept >= carried // PART - AT_ONCE, f"{kept} parts of {carried / PART:.1f} that were sent"
    line.bytes_per_second = 100 * MIB
    run = push().wait(120)
    assert run.code == 0, run
    assert sum(parts_received(s3_wire)) <= size + AT_ONCE * PART
    assert_whole(s3, bucket, s3once, tree)


def test_cut(s3once, s3, s3_wire, bucket, line, push, tmp_path):
    """A connection that is lost costs at most the part it carried."""
    size, cuts = 40 * MIB, 3
    tree = make_tree(tmp_path / "tree", {"large": size})
    running = push()
    for i in range(1, cuts + 1):
        wait_until(lambda: line.carried >= size * i / (cuts + 1), 120)
        line.cut()
    run = running.wait(120)
    assert run.code == 0, run
    # A part that had arrived as a whole is sent again if the cut took its reply.
    received = parts_received(s3_wire)
    assert size // PART <= received.count(PART) and len(received) <= size // PART + cuts
    # How far a body has come is looked at once a second at least. What the line carried of it since then, before a cut, is not
    # counted. What the line had taken and not carried on is counted.
    assert abs(summary(run)["bytes_sent"] - line.carried) <= cuts * RATE
    assert_whole(s3, bucket, s3once, tree)


def test_all_connections_cut_again_and_again(s3once, s3, s3_wire, bucket, line, push, tmp_path):
    size = 40 * MIB
    tree = make_tree(tmp_path / "tree", {"large": size})
    running = push()
    for i in range(1, 4):
        wait_until(lambda: line.carried >= size * i / 4, 120)
        line.cut(len(line.pairs))
    run = running.wait(120)
    assert run.code == 0, run
    assert line.carried <= size + 3 * 2 * PART
    assert_whole(s3, bucket, s3once, tree)


def test_body_longer_than_any_limit(s3once, s3, s3_wire, bucket, line, push, tmp_path):
    """A body that moves is ended by no clock: once its rate was guessed."""
    line.bytes_per_second = 40 * KIB
    tree = make_tree(tmp_path / "tree", {"file": 300 * KIB})
    run = push("--request-timeout", "1s").wait(120)
    assert run.code == 0, run
    assert [each.body_bytes for each in s3_wire.history if each.kind == "PutObject"] == [300 * KIB]
    assert_whole(s3, bucket, s3once, tree)


def test_large_files_sent_whole(s3once, s3, s3_wire, bucket, line, push, tmp_path):
    """Files that need no parts fill the line likewise: one after the other is done, not all at the end."""
    tree = make_tree(tmp_path / "tree", {f"{i}": 4 * MIB for i in range(6)})
    running = push()
    wait_until(lambda: line.carried >= 17 * MIB, 120)
    there = len(s3.objects(bucket))
    assert there >= 1, "none of the files was complete when most of the bytes were sent"
    assert running.wait(120).code == 0
    assert_whole(s3, bucket, s3once, tree)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_small_files_beside_a_huge_one(s3once, s3, s3_wire, bucket, line, push, tmp_path, concurrency):
    line.bytes_per_second = 10 * MIB
    n = 200
    tree = make_tree(tmp_path / "tree", {f"small/{i:03}": 100 for i in range(n)})
    with open(tree / "huge", "wb") as huge:
        os.truncate(huge.fileno(), 2 * GIB)
    running = push("--concurrency", str(concurrency), "--exclude", "small/199")
    wait_until(lambda: len(s3.objects(bucket)) == n - 1, 120)
    running.kill()
    running.popen.wait()
    s3_wire.settle()
    kinds = [each.kind for each in s3_wire.history]
    assert kinds.count("UploadPart") <= 100  # of 410; they took turns


def test_progress(s3, bucket, line, push, tmp_path):
    """One large file: percent, rate and time left, from before its first part is through."""
    make_tree(tmp_path / "tree", {"large": 24 * MIB})
    run = push().wait(120)
    assert run.code == 0, run
    progress = told(run, "progress")
    percents = [each["percent"] for each in progress if each["percent"] is not None]
    assert len({int(percent) for percent in percents}) >= 4 and percents == sorted(percents)
    moving = [each for each in progress if 0 < each["bytes_sent"] < 24 * MIB]
    assert any(each["bytes_sent"] < PART for each in moving)
    assert any(each["bytes_per_second"] > 0 and each["seconds_left"] is not None for each in moving)
    assert all(each["bytes_settled"] == 0 and each["bytes_under_way"] > 0 for each in moving)


def test_kept_bytes_are_reported(s3once, s3, s3_wire, bucket, line, push, tmp_path):
    tree = make_tree(tmp_path / "tree", {"large": 40 * MIB})
    running = push("--grace", "0s")
    wait_until(lambda: line.carried >= 17 * MIB, 120)
    running.kill(signal.SIGTERM)
    run = running.wait()
    kept = sum(size for parts in s3.uploads(bucket).values() for _, size in parts)
    assert run.code == 143 and kept >= PART
    assert kept - PART <= summary(run)["bytes_kept"] <= kept  # the answer to one may just have been lost
    line.bytes_per_second = 100 * MIB
    s3once.environment["AWS_ENDPOINT_URL_S3"] = line.endpoint
    run = s3once("push", "--part-size", "5MiB", tree, f"s3://{bucket}/p")
    assert run.code == 0 and "S3 keeps" not in run.out, run
    assert_whole(s3, bucket, s3once, tree)
