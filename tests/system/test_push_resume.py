"""kill -9 at any moment of a large file: the next run sends what is missing, and waits for nothing."""

import hashlib
import os
import random
import signal
import subprocess

import pytest

from tests.faults import faults
from tests.system.harness import FULL, GIB, MIB, expected_objects, make_tree
from tests.system.pushing import VISIBLE_WRITES, assert_done, counts, marks_of, sessions_of

PART = (16 if FULL else 5) * MIB
SIZE = (GIB if FULL else 80 * MIB) + 12345
PARTS = -(-SIZE // PART)
CONNECTIONS = 4
MOMENTS = 20 if FULL else 6
KILLS = (faults.kill_before, faults.kill_inside, faults.kill_after)


def moments(seed=2):
    """(which request of the run, how, store) spread over a whole run and seeded within each slice: HeadBucket, HeadObject
    and Create come first, then the parts, at last a HeadObject, Complete, and a HeadObject for the proof."""
    chosen = random.Random(seed)
    slices = [(PARTS + 6) * at / MOMENTS for at in range(MOMENTS + 1)]
    return [
        (1 + int(chosen.uniform(*ends)), chosen.choice(KILLS), store)
        for *ends, store in zip(slices, slices[1:], MOMENTS * ("dynamodb", "sqlite"))
    ]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return make_tree(tmp_path_factory.mktemp("large") / "tree", {"folder/large": SIZE})


class Killed:
    """A push that is killed at the nth request (of a kind), and what S3 held then."""

    def __init__(self, s3once, s3, wire, bucket, command, kill, nth, kind=None):
        async def at_this_request(x, rule):
            await (kill if kill is not faults.kill_inside or x.request.length > 1 else faults.kill_after)(x, rule)

        wire.history.clear()
        rule = wire.add(at_this_request, kind, nth=nth)
        run = s3once.start(*command)
        self.code = run.popen.wait(300)
        wire.settle()
        assert rule.fired and self.code == -signal.SIGKILL, "it ended before the moment came"
        wire.clear()
        self.received = parts_received(wire)
        wire.history.clear()
        self.there = {part for parts in s3.uploads(bucket).values() for part in parts}
        self.visible = set(s3.objects(bucket))


def parts_received(wire):
    """[(part number, bytes of its body received)]"""
    return [(each.operation.part, each.body_bytes) for each in wire.history if each.kind == "UploadPart"]


def push(tree, bucket):
    # A lease that, if it were waited for, would be waited for until the test gives up.
    options = ("--part-size", f"{PART // MIB}MiB", "--concurrency", str(CONNECTIONS), "--lease", "1h", "--json")
    return ("push", tree, f"s3://{bucket}/p", *options)


def bytes_of(parts):
    return sum(size for _, size in parts)


def assert_whole(s3, bucket, marks, tree, orphans=()):
    s3.assert_same(tree, bucket, "p")
    assert_done(marks, expected_objects(tree, "p"))
    assert s3.uploads(bucket).keys() == set(orphans)


def orphans_of(s3, bucket, marks):
    """Uploads that no mark names, since the run was killed before it could record them. They have no parts."""
    named = {mark.get("upload") for mark in marks_of(marks).values()}
    orphans = {key: parts for key, parts in s3.uploads(bucket).items() if key[1] not in named}
    assert len(orphans) <= 1 and not any(orphans.values()), orphans
    return orphans


@pytest.mark.parametrize("nth, kill, marks", moments(), indirect=["marks"])
def test_killed_once(s3once, s3, s3_wire, bucket, marks, tree, nth, kill):
    killed = Killed(s3once, s3, s3_wire, bucket, push(tree, bucket), kill, nth)
    orphans = orphans_of(s3, bucket, marks)
    run = s3once(*push(tree, bucket), timeout=600)
    assert run.code == 0, run
    sent = parts_received(s3_wire)
    missing = 0 if killed.visible else SIZE - bytes_of(killed.there)
    assert bytes_of(sent) <= missing + CONNECTIONS * PART
    assert not {number for number, _ in killed.there} & {number for number, _ in sent}, "S3 had these parts"
    assert_whole(s3, bucket, marks, tree, orphans)


def test_the_summary_says_what_s3_had(s3once, s3_wire, bucket, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", {"large": 22 * MIB})
    command = ("push", tree, f"s3://{bucket}", "--part-size=5MiB", "--concurrency=1")
    s3_wire.add(faults.kill_before, "UploadPart", nth=3)
    assert s3once(*command).code == -9
    s3_wire.clear()
    run = s3once(*command)
    assert run.code == 0 and "; S3 already had 10.0 MiB of it in parts" in run.out + run.err, run


@pytest.mark.parametrize(
    "s3, marks", [("rgw", "dynamodb"), ("rgw", "sqlite"), ("swift", "dynamodb")], indirect=True
)
def test_killed_again_and_again(s3once, s3, s3_wire, bucket, marks, tree):
    """Each run gets a little further than the one before it."""
    kills = 3
    received = 0
    for _ in range(kills):
        killed = Killed(s3once, s3, s3_wire, bucket, push(tree, bucket), faults.kill_after, 2, "UploadPart")
        assert killed.there and not killed.visible
        received += bytes_of(killed.received)
    assert len(marks_of(marks)["p/folder/large"]["upload"]) > 1 and len(s3.uploads(bucket)) == 1
    run = s3once(*push(tree, bucket), timeout=600)
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    received += bytes_of(parts_received(s3_wire))
    assert received <= SIZE + kills * CONNECTIONS * PART
    assert_whole(s3, bucket, marks, tree)
    assert {session["state"] for session in sessions_of(marks)} == {"ended"}


def test_file_changed_since_it_was_killed(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """Parts of the earlier version are of no use: that upload is aborted and another begun."""
    tree = make_tree(tmp_path / "tree", {"large": 31 * MIB})
    killed = Killed(s3once, s3, s3_wire, bucket, push(tree, bucket), faults.kill_after, 2, "UploadPart")
    assert killed.there
    make_tree(tree, {"large": 31 * MIB - 1})
    run = s3once(*push(tree, bucket))
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    assert {number for number, _ in parts_received(s3_wire)} == set(range(1, -(-31 * MIB // PART) + 1))
    assert_whole(s3, bucket, marks, tree)


def test_file_touched_since_it_was_killed(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """The metadata of its upload have the earlier time, and are sent before the first part."""
    tree = make_tree(tmp_path / "tree", {"large": 31 * MIB})
    killed = Killed(s3once, s3, s3_wire, bucket, push(tree, bucket), faults.kill_after, 2, "UploadPart")
    assert killed.there
    os.utime(tree / "large", (1_800_000_000, 1_800_000_000))
    run = s3once(*push(tree, bucket))
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    (shown,) = s3.objects(bucket, metadata=True).values()
    assert float(shown.metadata["mtime"]) == 1_800_000_000
    assert_whole(s3, bucket, marks, tree)


def test_upload_aborted_by_someone_else(s3once, s3, s3_wire, bucket, marks, tree):
    """As a lifecycle rule does. The upload begins again with its first part."""
    killed = Killed(s3once, s3, s3_wire, bucket, push(tree, bucket), faults.kill_after, 4, "UploadPart")
    assert killed.there
    for key, upload in s3.uploads(bucket):
        s3.client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload)
    run = s3once(*push(tree, bucket))
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    assert_whole(s3, bucket, marks, tree)


@pytest.mark.real_s3
@pytest.mark.parametrize("size, kind", [(2 * PART + MIB, "UploadPart"), (1000, "PutObject")])
@pytest.mark.parametrize("kill", [faults.kill_before, faults.kill_after])
def test_killed_while_it_replaced(s3once, s3, s3_wire, bucket, marks, tmp_path, size, kind, kill):
    """The next run was not asked to replace: what is in S3 stays, be it the earlier version or the one just sent."""
    tree = make_tree(tmp_path / "tree", {"file": size})
    earlier = (tree / "file").read_bytes()
    assert s3once(*push(tree, bucket)).code == 0
    make_tree(tree, {"file": size + 1})
    was_sent = kind == "PutObject" and kill is faults.kill_after
    # The first PutObject names the earlier object's etag in a way that this server refuses.
    command = (*push(tree, bucket), "--if-changed=replace")
    Killed(s3once, s3, s3_wire, bucket, command, kill, 2 if was_sent else 1, kind)
    run = s3once(*push(tree, bucket))
    if was_sent:
        assert run.code == 0 and counts(run) == {"adopted": 1}, run
    else:
        assert run.code == 1 and counts(run) == {"refused": 1}, run
        assert s3.get(bucket, "p/file") == earlier and not s3.uploads(bucket)
        assert marks_of(marks)["p/file"]["state"] == "done" and marks_of(marks)["p/file"]["size"] == size
        assert s3once(*push(tree, bucket), "--if-changed=replace").code == 0
    assert_whole(s3, bucket, marks, tree)


@pytest.mark.parametrize("adopted", [False, True], ids=["sent", "adopted"])
def test_killed_while_it_replaced_and_resumed(s3once, s3, s3_wire, bucket, marks, tmp_path, adopted):
    """A run that is asked to replace, too, sends only the parts that S3 lacks."""
    size = 5 * PART + MIB
    tree = make_tree(tmp_path / "tree", {"file": size})
    if adopted:
        s3.client.put_object(Bucket=bucket, Key="p/file", Body=(tree / "file").read_bytes())
    assert s3once(*push(tree, bucket)).code == 0
    make_tree(tree, {"file": size + 1})
    command = (*push(tree, bucket), "--if-changed=replace-any" if adopted else "--if-changed=replace")
    killed = Killed(s3once, s3, s3_wire, bucket, command, faults.kill_after, 2, "UploadPart")
    assert killed.there
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    sent = parts_received(s3_wire)
    assert not {number for number, _ in killed.there} & {number for number, _ in sent}, "S3 had these parts"
    assert_whole(s3, bucket, marks, tree)


def test_replaced_and_compressed_before_it_was_marked(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """The log is in S3 under the key that it had, without the suffix."""
    tree = make_tree(tmp_path / "tree", {"app.log.1": 2 * PART + MIB})
    log, command = tree / "app.log.1", (*push(tree, bucket), "--rotated", "--key", "{name}", "--if-changed=replace")
    assert counts(s3once(*command)) == {"uploaded": 1}
    log.write_bytes(random.Random(1).randbytes(2 * PART + MIB))
    Killed(s3once, s3, s3_wire, bucket, command, faults.kill_after, 1, "CompleteMultipartUpload")
    subprocess.run(["gzip", "-1", log], check=True)
    assert counts(s3once(*command)) == {"adopted": 1}
    assert set(s3.objects(bucket)) == {"p/app.log.1"}


def test_many_small_files(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """Objects in S3 are not sent again."""
    tree = make_tree(tmp_path / "tree", {f"{n % 7}/{n}": 100 + n for n in range(300)})
    command = ("push", tree, f"s3://{bucket}/p", "--concurrency", "8", "--lease", "1h", "--json")
    killed = Killed(s3once, s3, s3_wire, bucket, command, faults.kill_before, 150, "PutObject")
    assert 0 < len(killed.visible) < 300
    run = s3once(*command)
    assert run.code == 0 and counts(run, "failed", "held") == {}, run
    again = [each.operation.key for each in s3_wire.history if each.kind in VISIBLE_WRITES]
    assert not set(again) & killed.visible and len(again) == 300 - len(killed.visible)
    assert_whole(s3, bucket, marks, tree)


WAYS = {
    "plain": ([], "large"),
    "plain, content compared": (["--compare-content"], "large"),
    "rotated, one key for all contents": (["--rotated", "--key", "{dir}{name}"], "app.log.1"),
    "rotated, content in the key": (["--rotated"], "app.log.1"),
    "compressed": (["--compress", "zstd"], "large"),
    "compressed, SHA-256": (["--compress", "zstd", "--checksum", "sha256"], "large"),
}


@pytest.mark.parametrize("way", WAYS)
def test_other_content_of_the_same_size_and_time(s3once, s3, s3_wire, bucket, marks, tmp_path, way):
    """Parts of the earlier content are no parts of the object, and its metadata is not about that content either."""
    options, name = WAYS[way]
    tree = make_tree(tmp_path / "tree", {name: 3 * PART + MIB})
    file, status = tree / name, (tree / name).stat()
    command = (*push(tree, bucket), *options)
    killed = Killed(s3once, s3, s3_wire, bucket, command, faults.kill_after, 2, "UploadPart")
    assert killed.there
    other = random.Random(1).randbytes(3 * PART + MIB)
    (tmp_path / "other").write_bytes(other)
    os.utime(tmp_path / "other", ns=(status.st_mtime_ns, status.st_mtime_ns))
    (tmp_path / "other").rename(file)
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    found = {key: s3.get(bucket, key) for key in s3.objects(bucket)}
    ((key, body),) = found.items()
    made = subprocess.run(["zstd", "-dqc"], input=body, stdout=subprocess.PIPE, check=True).stdout if key.endswith(".zst") else body
    assert made == other
    told = s3.client.head_object(Bucket=bucket, Key=key)["Metadata"].get("s3once-content")
    assert told in (None, hashlib.sha256(other).hexdigest())
    assert (told is not None) == ("rotated" in way or "SHA-256" in way)
