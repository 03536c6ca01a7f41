"""Files that change under the uploader and objects that were there before: nothing torn, nothing overwritten in silence."""

import os
import subprocess
import time

import pytest
from boto3.s3.transfer import TransferConfig

from tests.faults import faults
from tests.faults.proxy import Proxy
from tests.system.harness import MIB, S3, content, expected_objects, make_tree, wait_until
from tests.system.pushing import LOOKS_AT_BUCKET, VISIBLE_WRITES, assert_done, counts, marks_of, summary, told

LARGE = 24 * MIB  # more than sockets hold: the rest is read only once the proxy reads
WAYS = {"PutObject": "25MiB", "UploadPart": "5MiB"}


async def hold_unread(x, rule):
    """The client has begun to send, and waits with most of the body unread from its file."""
    x.fire(rule)
    await x.hold(rule)
    await x.proxy.pass_on(x)


def shown(wire, since=0):
    """Requests that made something visible, or took it away."""
    return [each for each in wire.history[since:] if each.kind in VISIBLE_WRITES and each.took_effect]


LEASE_HOLDER = """
import fcntl, signal, sys
file = open(sys.argv[1], "r+b")
signal.signal(signal.SIGIO, lambda *_: None)  # it is asked for the lease, and keeps it
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("has it", flush=True)
sys.stdin.read()
"""


def test_file_under_a_lease(s3once, s3, bucket, marks, tmp_path):
    """A lease as file servers take it (fcntl, F_SETLEASE): the file is retried until its holder gives the lease back."""
    tree = make_tree(tmp_path / "tree", {"file": 1000, "other": 10})
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(["/usr/bin/python3", "-c", LEASE_HOLDER, tree / "file"], **pipes) as holder:
        assert holder.stdout.readline() == b"has it\n"
        run = s3once.start("push", tree, f"s3://{bucket}/p", "--json")
        wait_until(lambda: '"retry"' in run.output()[0], 30, "the event")
        holder.stdin.close()
    run = run.wait()
    assert run.code == 0 and counts(run)["uploaded"] == 2, run
    assert {event["text"] for event in told(run, "retry")} == {
        "will be retried later: cannot be read: another process holds a lease on it"
    }
    s3.assert_same(tree, bucket, "p")


# --- while it is read


def grows(path):
    with open(path, "ab") as file:
        file.write(content("more", 6 * MIB))


def shrinks(path):
    os.truncate(path, MIB)


def is_emptied(path):
    os.truncate(path, 0)


def is_replaced(path):
    other = make_tree(path.parent.parent, {"other": LARGE}) / "other"
    other.rename(path)


def is_rewritten(path):
    with open(path, "r+b") as file:
        file.seek(LARGE // 2)
        file.write(content("rewritten", LARGE // 2))


def is_rewritten_and_its_time_put_back(path):
    before = path.stat()
    is_rewritten(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def is_rewritten_with_its_time(path, data):
    before = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "change", [grows, shrinks, is_emptied, is_replaced, is_rewritten, is_rewritten_and_its_time_put_back]
)
def test_file_that(s3once, s3, s3_wire, bucket, marks, tmp_path, change, way):
    tree = make_tree(tmp_path / "tree", {"file": LARGE})
    rule = s3_wire.add(hold_unread, way, nth=1 if way == "PutObject" else 2)
    command = ("push", tree, f"s3://{bucket}/p", "--part-size", WAYS[way], "--concurrency", "2", "--json")
    run = s3once.start(*command)
    assert rule.reached.wait(60), run.output()
    change(tree / "file")
    rule.released.set()
    run = run.wait()
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    assert "changed while it was read" in told(run, "retry")[0]["text"]
    assert len(shown(s3_wire)) == 1, "an object of torn content was visible for a while"
    s3.assert_same(tree, bucket, "p")
    assert_done(marks, expected_objects(tree, "p"))
    assert not s3.uploads(bucket)


def becomes_a_link(path):
    path.unlink()
    path.symlink_to("/etc/passwd")


def becomes_a_pipe(path):
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "change, reason", [(os.unlink, "disappeared"), (becomes_a_link, "symbolic link"), (becomes_a_pipe, "no longer a regular file")]
)
def test_file_that_goes_away(s3once, s3, s3_wire, bucket, marks, tmp_path, change, reason, way):
    tree = make_tree(tmp_path / "tree", {"file": LARGE, "other": 10})
    rule = s3_wire.add(hold_unread, way, key="p/file")
    command = ("push", tree, f"s3://{bucket}/p", "--part-size", WAYS[way], "--concurrency", "2", "--json")
    run = s3once.start(*command)
    assert rule.reached.wait(60), run.output()
    change(tree / "file")
    rule.released.set()
    run = run.wait()
    assert run.code == 1 and counts(run) == {"uploaded": 1, "failed": 1}, run
    assert summary(run)["bytes_kept"] == 0, "no run can go on with it"
    assert reason in told(run, "failed")[0]["text"] and told(run, "failed")[0]["path"] == str(tree / "file")
    assert reason in run.err
    assert s3.objects(bucket).keys() == {"p/other"} and len(shown(s3_wire)) == 1
    states = {key: mark["state"] for key, mark in marks_of(marks).items()}
    assert states == {"p/file": "failed", "p/other": "done"} and reason in marks_of(marks)["p/file"]["error"]


@pytest.mark.parametrize("way", WAYS)
def test_file_that_never_stops_changing(s3once, s3, s3_wire, bucket, marks, tmp_path, way):
    tree = make_tree(tmp_path / "tree", {"log": LARGE})

    async def write_on(x, rule):
        with open(tree / "log", "ab") as file:
            file.write(b"one more line\n")
        await x.proxy.pass_on(x)

    s3_wire.add(write_on, way, times=None)
    command = ("push", tree, f"s3://{bucket}/p", "--part-size", WAYS[way].replace("25", "30"), "--concurrency", "2", "--json")
    run = s3once(*command)
    assert run.code == 1 and counts(run) == {"failed": 1}, run
    assert "--min-age" in told(run, "failed")[0]["text"]
    assert not s3.objects(bucket) and not shown(s3_wire)
    s3_wire.clear()
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    s3.assert_same(tree, bucket, "p")
    assert not s3.uploads(bucket)


def test_file_that_changed_after_the_scan(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """Nothing of it was read yet: what counts is what it is when it is opened."""
    tree = make_tree(tmp_path / "tree", {"file": 10, "gone": 10, "folder/file": 10})
    make_tree(tmp_path / "secret", {"file": b"secret"})
    rule = s3_wire.add(hold_unread, "HeadBucket")
    run = s3once.start("push", tree, f"s3://{bucket}/p", "--concurrency", "1", "--json")
    assert rule.reached.wait(60), run.output()
    # One of them is open already. The folder's is asked for after it in any case but one.
    make_tree(tree, {"file": 11})
    (tree / "folder").rename(tmp_path / "folder")
    (tree / "folder").symlink_to(tmp_path / "secret")
    (tree / "gone").unlink()
    rule.released.set()
    run = run.wait()
    assert run.code == 1 and not any(b"secret" in s3.get(bucket, key) for key in s3.objects(bucket)), run
    assert counts(run, "failed")["failed"] >= 1
    for key, row in s3.objects(bucket).items():
        assert row.size == marks_of(marks)[key]["size"]
    assert "p/file" not in s3.objects(bucket) or s3.get(bucket, "p/file") == (tree / "file").read_bytes()


# --- objects that were there before


@pytest.fixture
def server(request, s3once):
    """(S3, Proxy between it and the program): rgw, swift, or rgw behind a proxy that honours conditions as AWS does."""
    name = request.param
    s3 = request.getfixturevalue("swift" if name == "swift" else "rgw")
    with Proxy(s3, "s3", behaves="aws" if name == "aws" else None) as wire:
        s3once.environment.update(
            AWS_ENDPOINT_URL_S3=wire.endpoint, AWS_ACCESS_KEY_ID=s3.access_key, AWS_SECRET_ACCESS_KEY=s3.secret_key
        )
        yield s3, wire
        assert not wire.failures


@pytest.fixture
def place(server):
    """A bucket on it."""
    s3, _ = server
    name = f"place-{os.urandom(6).hex()}"
    s3.client.create_bucket(Bucket=name)
    yield name
    s3.remove_bucket(name)


EVERYWHERE = pytest.mark.parametrize("server", ["rgw", "swift", "aws"], indirect=True)
FIVE = ("--part-size", "5MiB")


def in_parts(mebibytes):
    def put(s3, bucket, key, path):
        size = mebibytes * MIB
        config = TransferConfig(multipart_threshold=size, multipart_chunksize=size)
        s3.client.upload_file(str(path), bucket, key, Config=config)

    return put


def whole(s3, bucket, key, path):
    s3.client.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())


@EVERYWHERE
@pytest.mark.parametrize(
    "size, put",
    [(0, whole), (1000, whole), (11 * MIB, whole), (11 * MIB, in_parts(5)), (11 * MIB, in_parts(8))],
    ids=["empty", "small", "large at once", "parts like ours", "parts of 8 MiB"],
)
def test_object_that_is_there(s3once, server, place, marks, tmp_path, size, put):
    s3, wire = server
    tree = make_tree(tmp_path / "tree", {"same": size, "new": 7})
    put(s3, place, "p/same", tree / "same")
    before = s3.objects(place)
    run = s3once("push", tree, f"s3://{place}/p", *FIVE, "--json")
    assert run.code == 0 and counts(run) == {"uploaded": 1, "adopted": 1}, run
    assert s3.objects(place)["p/same"] == before["p/same"]
    assert [each.operation.key for each in shown(wire)] == ["p/new"]
    assert not [each for each in wire.history if each.kind == "UploadPart"]
    assert_done(marks, expected_objects(tree, "p"))
    s3.assert_same(tree, place, "p")


@pytest.mark.parametrize("size, parts", [(9, 5), (51, 50), (20, 15), (21, 20)], ids=["rclone", "s5cmd", "s3cmd", "20 MiB"])
def test_trees_that_others_uploaded(s3once, s3, s3_wire, bucket, marks, tmp_path, size, parts):
    """In parts of their usual size, and with s3once's own default: several sizes make the same number of parts."""
    tree = make_tree(tmp_path / "tree", {"same": size * MIB + 77})
    in_parts(parts)(s3, bucket, "p/same", tree / "same")
    run = s3once("push", tree, f"s3://{bucket}/p", "--json")
    assert run.code == 0 and counts(run) == {"adopted": 1}, run
    assert not [each for each in s3_wire.history if each.kind in ("UploadPart", "PutObject")]
    assert int(marks_of(marks)["p/same"]["parts"]) == parts * MIB


@faults.named("the size of the first part")
async def first_part(x, rule):
    """The reply of S3 to HEAD ?partNumber=1. A fake: the server here ignores the parameter."""
    reply = await x.forward()
    if "partNumber=1" in x.request.query:
        x.fire(rule)
        reply.status, reply.declared = 206, 7 * MIB
    await x.answer(reply)


def test_parts_of_an_unusual_size(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """S3 tells it, or the user does."""
    tree = make_tree(tmp_path / "tree", {"same": 9 * MIB})
    in_parts(7)(s3, bucket, "p/same", tree / "same")
    command = ("push", tree, f"s3://{bucket}/p", "--json")
    s3_wire.add(faults.answer(400, "InvalidArgument"), "HeadObject", times=None, where=lambda record: record.operation.part == 1)
    run = s3once(*command)
    assert run.code == 1 and "name that size with --part-size" in told(run, "failed")[0]["text"], run
    s3_wire.clear()
    rule = s3_wire.add(first_part, "HeadObject", times=None)
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"adopted": 1} and rule.fired, run
    s3_wire.clear()
    assert s3once("forget", f"s3://{bucket}/p/same").code == 0
    s3_wire.add(faults.answer(400, "InvalidArgument"), "HeadObject", times=None, where=lambda record: record.operation.part == 1)
    run = s3once(*command, "--part-size", "7MiB")
    assert run.code == 0 and counts(run) == {"adopted": 1}, run


@EVERYWHERE
@pytest.mark.parametrize(
    "size, there, put, reason",
    [
        (1000, 1000, whole, "other content"),
        (1000, 999, whole, "other content"),
        (11 * MIB, 11 * MIB, whole, "other content"),
        (11 * MIB, 12 * MIB, in_parts(5), "other content"),
        (11 * MIB, 11 * MIB, in_parts(5), "name that size with --part-size"),
        (7 * MIB, 0, whole, "other content"),
    ],
    ids=["same size", "other size", "large at once", "parts of other size", "parts", "empty"],
)
def test_object_of_other_content(s3once, server, place, marks, tmp_path, size, there, put, reason):
    s3, wire = server
    tree = make_tree(tmp_path / "tree", {"file": size, "new": 7})
    foreign = make_tree(tmp_path, {"foreign": there}) / "foreign"
    put(s3, place, "p/file", foreign)
    status, headers, _ = s3.request("HEAD", f"/{place}/p/file?partNumber=1")
    if "--part-size" in reason and status == 206 and int(headers["content-length"]) < size:
        reason = "other content"  # the server tells the size of the parts
    for _ in range(2):
        since = len(wire.history)
        run = s3once("push", tree, f"s3://{place}/p", *FIVE, "--if-changed=replace", "--json")
        assert run.code == 1 and counts(run, "failed") == {"failed": 1}, run
        assert reason in told(run, "failed")[0]["text"] and told(run, "failed")[0]["key"] == "p/file"
        assert "p/file" not in [each.operation.key for each in shown(wire, since)]
        assert s3.get(place, "p/file") == foreign.read_bytes()
        assert {key: mark["state"] for key, mark in marks_of(marks).items()} == {"p/file": "failed", "p/new": "done"}
    s3.client.delete_object(Bucket=place, Key="p/file")
    run = s3once("push", tree, f"s3://{place}/p", *FIVE, "--json")
    assert run.code == 0 and counts(run) == {"uploaded": 1, "skipped": 1}, run
    s3.assert_same(tree, place, "p")
    assert_done(marks, expected_objects(tree, "p"))
    assert not s3.uploads(place)


def test_object_that_nothing_can_be_said_of(s3once, s3, bucket, marks, tmp_path):
    """Parts of a size that cannot be guessed: not adopted, not replaced."""
    tree = make_tree(tmp_path / "tree", {"file": 13 * MIB})
    in_parts(6)(s3, bucket, "p/file", tree / "file")
    before = s3.objects(bucket)
    run = s3once("push", tree, f"s3://{bucket}/p", *FIVE, "--json")
    assert run.code == 1 and "name that size with --part-size" in told(run, "failed")[0]["text"], run
    assert s3.objects(bucket) == before and marks_of(marks)["p/file"]["state"] == "failed"


@EVERYWHERE
@pytest.mark.parametrize("size", [1000, 7 * MIB])
def test_object_that_comes_at_the_last_moment(request, s3once, server, place, marks, tmp_path, size):
    """After the uploader looked. Where the server honours conditions nothing is overwritten."""
    s3, wire = server
    server_name = request.node.callspec.params["server"]
    tree = make_tree(tmp_path / "tree", {"file": size})
    visible = "PutObject" if size < MIB else "CompleteMultipartUpload"

    async def come_first(x, rule):
        await x.body()
        theirs = {"Bucket": place, "Key": "p/file", "Body": b"theirs"}
        await wire.loop.run_in_executor(None, lambda: S3(wire.info()).client.put_object(**theirs))
        x.fire(rule)
        await x.proxy.pass_on(x)

    rule = wire.add(come_first, visible, where=lambda record: record.operation.key == "p/file")
    run = s3once("push", tree, f"s3://{place}/p", *FIVE, "--json")
    honoured = {"aws": True, "swift": size > MIB, "rgw": size < MIB}[server_name]
    assert rule.fired
    if honoured:
        assert run.code == 1 and "other content" in told(run, "failed")[0]["text"], run
        assert s3.get(place, "p/file") == b"theirs"
    else:
        assert run.code in (0, 1), run


def copy_in_s3(s3, bucket, source, key, forget=()):
    """Copies like `aws s3 cp`: the metadata is copied, except the given names."""
    metadata = s3.client.head_object(Bucket=bucket, Key=source)["Metadata"]
    kept = {name: value for name, value in metadata.items() if name not in forget}
    how = {"Metadata": kept, "MetadataDirective": "REPLACE"}
    s3.client.copy_object(Bucket=bucket, Key=key, CopySource={"Bucket": bucket, "Key": source}, **how)


@EVERYWHERE
@pytest.mark.parametrize("forget", [(), ("s3once-key", "s3once-ctime")], ids=["", "of an earlier version"])
@pytest.mark.parametrize("size, local", [(1000, 1000), (1000, 1001), (11 * MIB, 11 * MIB)])
def test_copy_made_in_s3_is_not_ours(s3once, server, place, marks, tmp_path, size, local, forget):
    """Its metadata names our table and a claim of ours; but it was written for another key."""
    s3, wire = server
    tree = make_tree(tmp_path / "tree", {"app.log": content("old", size)})
    command = ("push", tree, f"s3://{place}/p", *FIVE, "--json")
    assert s3once(*command).code == 0
    copy_in_s3(s3, place, "p/app.log", "p/app.log.1", forget)
    make_tree(tree, {"app.log.1": content("another", local)})
    since = len(wire.history)
    for choice in ("fail", "skip", "replace"):
        run = s3once(*command, f"--if-changed={choice}")
        assert run.code == 1 and counts(run, "failed", "uploaded") == {"failed": 1}, run
        assert told(run, "failed")[0]["key"] == "p/app.log.1"
        assert ("under another key" in told(run, "failed")[0]["text"]) == (not forget)
    assert not shown(wire, since) and s3.get(place, "p/app.log.1") == content("old", size)


@EVERYWHERE
@pytest.mark.parametrize("size", [1000, 11 * MIB])
def test_copy_made_in_s3_of_the_same_content_is_adopted(s3once, server, place, marks, tmp_path, size):
    s3, wire = server
    tree = make_tree(tmp_path / "tree", {"app.log": content("old", size)})
    command = ("push", tree, f"s3://{place}/p", *FIVE, "--json")
    assert s3once(*command).code == 0
    copy_in_s3(s3, place, "p/app.log", "p/app.log.1")
    make_tree(tree, {"app.log.1": content("old", size)})
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"adopted": 1, "skipped": 1}, run
    assert_done(marks, expected_objects(tree, "p"))


@EVERYWHERE
def test_object_sent_for_this_key_is_ours(request, s3once, server, place, marks, tmp_path):
    """Also if it was put there once more: its metadata say for which key it was sent."""
    s3, wire = server
    tree = make_tree(tmp_path / "tree", {"file": content("old", 1000)})
    command = ("push", tree, f"s3://{place}/p", "--json", "--if-changed=replace")
    is_swift = request.node.callspec.params["server"] == "swift"  # which refuses a conditional one, with a checksum and without
    wire.add(faults.kill_after, "PutObject", nth=3 if is_swift else 1)
    assert s3once(*command).code == -9
    wire.clear()
    assert s3.get(place, "p/file") == content("old", 1000)
    copy_in_s3(s3, place, "p/file", "p/file", ())
    make_tree(tree, {"file": content("new", 1000)})
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    s3.assert_same(tree, place, "p")
    assert_done(marks, expected_objects(tree, "p"))


# --- done, and changed since


@EVERYWHERE
@pytest.mark.parametrize("old, new", [(1000, 1001), (1000, 1000), (1000, 6 * MIB), (6 * MIB, 1000), (11 * MIB, 11 * MIB)])
def test_file_that_changed_since_it_was_done(s3once, server, place, marks, tmp_path, old, new):
    s3, wire = server
    tree = make_tree(tmp_path / "tree", {"file": content("old", old)})
    command = ("push", tree, f"s3://{place}/p", *FIVE, "--json")
    assert s3once(*command).code == 0
    before = marks_of(marks)
    make_tree(tree, {"file": content("new", new)})
    since = len(wire.history)
    for choice in ((), ("--if-changed=fail",)):
        run = s3once(*command, *choice)
        assert run.code == 1 and counts(run) == {"refused": 1}, run
        text = told(run, "refused")[0]["text"]
        assert "--if-changed=replace" in text and "--if-changed=skip" in text
    run = s3once(*command, "--if-changed=skip")
    assert run.code == 0 and counts(run) == {"outdated": 1}, run
    assert {each.kind for each in wire.history[since:]} <= LOOKS_AT_BUCKET
    noted = {"newer_size": new, "newer_mtime": (tree / "file").stat().st_mtime_ns}
    assert marks_of(marks) == {"p/file": before["p/file"] | noted}
    assert s3.get(place, "p/file") == content("old", old)

    run = s3once(*command, "--if-changed=replace")
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    assert len(shown(wire, since)) == 1
    s3.assert_same(tree, place, "p")
    assert_done(marks, expected_objects(tree, "p"))
    assert counts(s3once(*command)) == {"skipped": 1}
    assert not s3.uploads(place)


@pytest.mark.parametrize("how", ["killed", "failed"])
def test_replacing_what_was_adopted_and_interrupted(s3once, s3, s3_wire, bucket, marks, tmp_path, how):
    """The object was put by another tool, but found to be this file: a later version takes its place if that is asked for,
    also at the second attempt."""
    tree = make_tree(tmp_path / "tree", {"file": content("old", 1000)})
    s3.client.put_object(Bucket=bucket, Key="p/file", Body=content("old", 1000))
    command = ("push", tree, f"s3://{bucket}/p", "--json", "--if-changed=replace-any", "--give-up-after=1s")
    assert counts(s3once(*command)) == {"adopted": 1}
    make_tree(tree, {"file": content("new", 1001)})
    if how == "killed":
        rule = s3_wire.add(faults.kill_before, "PutObject")
        assert s3once(*command).code == -9
    else:
        rule = s3_wire.add(faults.answer(500, "InternalError"), "PutObject", times=2)
        assert s3once(*command, attempts=1).code in (0, 1)
    assert rule.fired
    s3_wire.clear()
    assert s3once(*command).code == 0
    s3.assert_same(tree, bucket, "p")
    assert_done(marks, expected_objects(tree, "p"))


def test_object_of_one_part_is_adopted(s3once, s3, bucket, marks, tmp_path):
    """Some tools send every file as a multipart upload of one part."""
    tree = make_tree(tmp_path / "tree", {"file": 6 * MIB})
    where = {"Bucket": bucket, "Key": "p/file"}
    where["UploadId"] = s3.client.create_multipart_upload(**where)["UploadId"]
    part = s3.client.upload_part(**where, PartNumber=1, Body=(tree / "file").read_bytes())
    s3.client.complete_multipart_upload(**where, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]})
    assert s3.client.head_object(Bucket=bucket, Key="p/file")["ETag"].endswith('-1"')
    run = s3once("push", tree, f"s3://{bucket}/p", "--json")
    assert run.code == 0 and counts(run) == {"adopted": 1}, run
    assert_done(marks, expected_objects(tree, "p"))


@EVERYWHERE
def test_object_in_parts_of_another_program_is_compared(s3once, server, place, tmp_path):
    """Its mark may have no checksum, but an etag that is made of those of the parts."""
    s3, wire = server
    tree = make_tree(tmp_path / "tree", {"file": 12 * MIB})
    where = {"Bucket": place, "Key": "p/file"}
    where["UploadId"] = s3.client.create_multipart_upload(**where)["UploadId"]
    data, parts = (tree / "file").read_bytes(), []
    for number, body in enumerate((data[: 8 * MIB], data[8 * MIB :]), 1):
        part = s3.client.upload_part(**where, PartNumber=number, Body=body)
        parts.append({"PartNumber": number, "ETag": part["ETag"]})
    s3.client.complete_multipart_upload(**where, MultipartUpload={"Parts": parts})
    command = ("push", tree, f"s3://{place}/p", "--json")
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"adopted": 1}, run
    run = s3once(*command, "--compare-content")
    assert run.code == 0 and counts(run) == {"skipped": 1}, run
    is_rewritten_with_its_time(tree / "file", content("new", 12 * MIB))
    run = s3once(*command, "--compare-content")
    assert run.code == 1 and counts(run) == {"refused": 1}, run


@pytest.mark.parametrize("server", ["rgw", "aws"], indirect=True)
@pytest.mark.parametrize("size", [1000, 11 * MIB])
def test_other_content_of_the_same_time_than_was_sent_and_not_marked(s3once, server, place, marks, tmp_path, size):
    """The object was looked at, so its content decides: it is not this file's, whatever size and time say."""
    s3, wire = server
    tree = make_tree(tmp_path / "tree", {"file": content("old", size)})
    command = ("push", tree, f"s3://{place}/p", *FIVE, "--json")
    rule = wire.add(faults.kill_after, "PutObject" if size < MIB else "CompleteMultipartUpload")
    s3once(*command)
    assert rule.fired and s3.get(place, "p/file") == content("old", size)
    is_rewritten_with_its_time(tree / "file", content("new", size))
    for _ in range(2):
        run = s3once(*command)
        assert run.code == 1 and counts(run) == {"refused": 1}, run
    run = s3once(*command, "--if-changed=replace")
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    s3.assert_same(tree, place, "p")
    assert_done(marks, expected_objects(tree, "p"))


@EVERYWHERE
@pytest.mark.parametrize("size", [1000, 7 * MIB])
def test_replacing_what_someone_else_has_replaced(s3once, server, place, marks, tmp_path, size):
    s3, wire = server
    tree = make_tree(tmp_path / "tree", {"file": 100, "other": 1})
    command = ("push", tree, f"s3://{place}/p", *FIVE, "--if-changed=replace", "--json")
    assert s3once(*command).code == 0
    through = S3(wire.info())
    through.client.put_object(Bucket=place, Key="p/file", Body=b"theirs")
    make_tree(tree, {"file": size})
    run = s3once(*command)
    assert run.code == 1 and "other content" in told(run, "failed")[0]["text"], run
    assert s3.get(place, "p/file") == b"theirs"
    assert not [key for key, _ in s3.uploads(place)]


@EVERYWHERE
@pytest.mark.parametrize("size", [1000, 7 * MIB])
def test_replacing_what_was_deleted(s3once, server, place, marks, tmp_path, size):
    s3, wire = server
    tree = make_tree(tmp_path / "tree", {"file": 100, "first": 3})
    command = ("push", tree, f"s3://{place}/p", *FIVE, "--if-changed=replace", "--concurrency", "1", "--json")
    assert s3once(*command).code == 0
    s3.client.delete_object(Bucket=place, Key="p/file")
    make_tree(tree, {"file": size, "first": 4})
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"uploaded": 2}, run
    s3.assert_same(tree, place, "p")
    assert_done(marks, expected_objects(tree, "p"))


@EVERYWHERE
@pytest.mark.parametrize("size", [1000, 7 * MIB])
def test_deleted_at_the_last_moment(s3once, server, place, marks, tmp_path, size):
    """The object to be replaced is deleted after the uploader's check: then there is nothing to replace."""
    s3, wire = server
    tree = make_tree(tmp_path / "tree", {"file": 100})
    command = ("push", tree, f"s3://{place}/p", *FIVE, "--if-changed=replace", "--json")
    assert s3once(*command).code == 0

    async def delete_first(x, rule):
        await x.body()
        gone = {"Bucket": place, "Key": "p/file"}
        await wire.loop.run_in_executor(None, lambda: s3.client.delete_object(**gone))
        x.fire(rule)
        await x.proxy.pass_on(x)

    make_tree(tree, {"file": size})
    rule = wire.add(delete_first, "PutObject" if size < MIB else "CompleteMultipartUpload")
    run = s3once(*command)
    assert rule.fired and run.code == 0 and counts(run) == {"uploaded": 1}, run
    s3.assert_same(tree, place, "p")
    assert_done(marks, expected_objects(tree, "p"))
    assert not s3.uploads(place)


@pytest.mark.parametrize("marks", ["dynamodb", "sqlite"], indirect=True)
@pytest.mark.parametrize("size", [0, 1000, 7 * MIB])
def test_another_time_and_the_same_content(s3once, s3, s3_wire, bucket, marks, tmp_path, size):
    tree = make_tree(tmp_path / "tree", {"file": size})
    command = ("push", tree, f"s3://{bucket}/p", *FIVE, "--json")
    assert s3once(*command).code == 0
    before = marks_of(marks)["p/file"]
    os.utime(tree / "file", ns=(0, 1_234_567_890_123_456_789))
    since = len(s3_wire.history)
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"refreshed": 1}, run
    assert {each.kind for each in s3_wire.history[since:]} <= LOOKS_AT_BUCKET
    assert marks_of(marks)["p/file"]["mtime"] == 1_234_567_890_123_456_789
    assert marks_of(marks)["p/file"]["etag"] == before["etag"]
    since = len(s3_wire.history)
    assert counts(s3once(*command)) == {"skipped": 1}
    assert [each.kind for each in s3_wire.history[since:]] == ["HeadObject"]


@pytest.mark.parametrize("marks", ["sqlite"], indirect=True)
def test_another_time_and_a_content_that_nothing_can_be_said_of(s3once, s3, bucket, marks, tmp_path):
    """The server has returned no checksum for the object, and an etag of its own: the file counts as changed."""
    tree = make_tree(tmp_path / "tree", {"a": 100})
    command = ("push", "--json", tree, f"s3://{bucket}/p")
    assert s3once(*command).code == 0
    marks.change(marks_of(marks)["p/a"], "sum", "")
    marks.change(marks_of(marks)["p/a"], "etag", "5f3-of-a-server")
    (tree / "a").write_bytes(b"x" * 100)
    os.utime(tree / "a", (1_700_000_000, 1_700_000_000))
    run = s3once(*command)
    assert run.code == 1 and counts(run) == {"refused": 1}, run


def test_changes_without_a_trace_in_size_and_time_go_unnoticed(s3once, bucket, marks, tmp_path):
    """As documented: neither other content with the same size and time, nor an object deleted after it was done."""
    tree = make_tree(tmp_path / "tree", {"file": b"old", "deleted": b"x"})
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    is_rewritten_with_its_time(tree / "file", b"new")
    run = s3once("push", tree, f"s3://{bucket}/p", "--json")
    assert run.code == 0 and counts(run) == {"skipped": 2}, run


def test_object_deleted_after_it_was_done(s3once, s3, s3_proxy, bucket, marks, tmp_path):
    """The mark says done; that is believed."""
    tree = make_tree(tmp_path / "tree", {"file": 10})
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    make_tree(tree, {"last": 10})
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    s3.client.delete_object(Bucket=bucket, Key="p/file")
    s3_proxy.requests()
    run = s3once("push", tree, f"s3://{bucket}/p", "--json")
    assert run.code == 0 and counts(run) == {"skipped": 2}, run
    (request,) = s3_proxy.requests()
    assert request["method"] == "HEAD", "of the object that shows the bucket"
    assert set(s3.objects(bucket)) == {"p/last"}
    run = s3once("push", tree, f"s3://{bucket}/p", "--reupload", "--json")
    assert run.code == 0 and counts(run) == {"uploaded": 1, "adopted": 1}, run
    run = s3once("push", tree, f"s3://{bucket}/p", "--reupload", "--json")
    assert run.code == 0 and counts(run) == {"adopted": 2}, run
    s3.assert_same(tree, bucket, "p")


def test_reupload_keeps_no_earlier_version_that_is_gone(s3once, s3, bucket, marks, tmp_path):
    """A changed file is left out since S3 keeps what it was. If S3 does not, the file is uploaded."""
    tree = make_tree(tmp_path / "tree", {"gone": 10, "kept": 10})
    command = ("push", tree, f"s3://{bucket}/p", "--reupload", "--if-changed", "skip", "--json")
    assert s3once(*command).code == 0
    for name in ("gone", "kept"):
        (tree / name).write_bytes(b"changed")
    kept = s3.get(bucket, "p/kept")
    s3.client.delete_object(Bucket=bucket, Key="p/gone")
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"uploaded": 1, "outdated": 1}, run
    assert s3.get(bucket, "p/gone") == b"changed" and s3.get(bucket, "p/kept") == kept


@pytest.mark.parametrize("compress", [(), ("--compress", "gzip")])
def test_content_of_done_files_is_compared_on_request(s3once, s3, bucket, marks, tmp_path, compress):
    """Rewritten with its size and time, a file is noticed by its content alone; a file that is as it was is not."""
    tree = make_tree(tmp_path / "tree", {"rewritten": b"old " * 50, "same": b"same" * 50})
    command = ("push", tree, f"s3://{bucket}/p", "--json", *compress)
    assert s3once(*command).code == 0
    objects = s3.objects(bucket)
    is_rewritten_with_its_time(tree / "rewritten", b"new " * 50)
    before = marks_of(marks)
    run = s3once(*command, "--dry-run", "--compare-content")
    assert run.code == 1 and counts(run) == {"refused": 1, "skipped": 1} and marks_of(marks) == before, run
    assert s3once(*command, "--compare-content").code == 1 and s3.objects(bucket) == objects
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"skipped": 2}, run
    make_tree(tree, {"z": 1})
    assert s3once(*command).code == 0
    for key in objects:
        s3.client.delete_object(Bucket=bucket, Key=key)
    run = s3once(*command, "--compare-content", "--reupload")
    assert run.code == 1 and counts(run) == {"refused": 1, "uploaded": 1, "adopted": 1}, run
    assert {key for key in s3.objects(bucket) if "/z" not in key} == {key for key in objects if "same" in key}


@pytest.mark.parametrize("s3", ["rgw", "swift"], indirect=True)
def test_content_that_is_another_replaces_its_object(s3once, s3, bucket, tmp_path):
    """With --if-changed=replace. A run after that finds nothing to do."""
    tree = make_tree(tmp_path / "tree", {"file": b"old"})
    command = ("push", tree, f"s3://{bucket}", "--json", "--compare-content", "--if-changed=replace")
    assert counts(s3once(*command)) == {"uploaded": 1}
    is_rewritten_with_its_time(tree / "file", b"new")
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    s3.assert_same(tree, bucket)
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"skipped": 1}, run


def test_time_goes_by_between_runs(s3once, s3, bucket, marks, tmp_path):
    """A file appended to after each run is a changed one each time, and --if-changed=replace follows it."""
    tree = make_tree(tmp_path / "tree", {"log": b""})
    for line in range(4):
        with open(tree / "log", "a") as file:
            file.write(f"line {line}\n")
        run = s3once("push", tree, f"s3://{bucket}/p", "--if-changed=replace", "--json")
        assert run.code == 0 and counts(run) == {"uploaded": 1}, run
        assert s3.get(bucket, "p/log") == (tree / "log").read_bytes()
    assert marks_of(marks)["p/log"]["tries"] >= 1 and time.time() - int(marks_of(marks)["p/log"]["at"]) < 600


def test_server_that_reads_if_match_otherwise(s3once, s3, bucket, s3_wire, tmp_path):
    """It refuses the etag that HEAD shows: a HEAD right before replaces the condition from then on."""
    tree = make_tree(tmp_path / "tree", {"a": b"one", "b": b"one"})
    command = ("push", tree, f"s3://{bucket}", "--json", "--if-changed=replace", "--concurrency=1")
    assert s3once(*command).code == 0
    make_tree(tree, {"a": b"later", "b": b"later"})
    refused = s3_wire.add(faults.answer(412, "PreconditionFailed"), "PutObject", times=None, where=lambda record: "if-match" in record.headers)
    before = len(s3_wire.history)
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"uploaded": 2} and refused.fired == 1, run
    s3.assert_same(tree, bucket)
    writes = [at for at, record in enumerate(s3_wire.history) if at >= before and record.kind == "PutObject"]
    assert len(writes) == 3 and all(s3_wire.history[at - 1].kind == "HeadObject" for at in writes[1:])
