"""Trees that another program has uploaded: what is there is found by the bucket's listing, and nothing of it is sent again."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from boto3.s3.transfer import TransferConfig

from tests.faults import faults
from tests.system.harness import KIB, MIB, make_tree
from tests.system.pushing import counts, learn_conditions, marks_of, told

TWO_SERVERS = pytest.mark.parametrize("s3", ["rgw", "simulated"], indirect=True)
SENDS = ("PutObject", "UploadPart", "CreateMultipartUpload")


def as_aws(path):
    return {}, 8


def as_rclone(path):
    return {"mtime": f"{os.stat(path).st_mtime_ns / 1e9:.9f}", "md5chksum": "bm90aGluZyBsaWtlIGl0IQ=="}, 5


def as_s3cmd(path):
    return {"s3cmd-attrs": f"atime:1/ctime:1/gid:0/gname:root/mode:33188/mtime:{int(os.stat(path).st_mtime)}/uid:0/uname:root"}, 15


@pytest.fixture
def honours(s3once, bucket, marks):
    """The server is known to honour If-None-Match, so that no HEAD comes before each upload."""
    assert s3once("doctor", f"s3://{bucket}").code in (0, 1)


def upload(s3, bucket, tree, prefix, tool=as_aws, names=None):
    """Uploads a tree as this tool does."""
    for path in sorted(path for path in tree.rglob("*") if path.is_file()):
        name = str(path.relative_to(tree))
        if names is None or name in names:
            metadata, mebibytes = tool(path)
            config = TransferConfig(multipart_threshold=mebibytes * MIB, multipart_chunksize=mebibytes * MIB)
            s3.client.upload_file(str(path), bucket, f"{prefix}/{name}", Config=config, ExtraArgs={"Metadata": metadata})


def put_all(s3, bucket, objects):
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda item: s3.client.put_object(Bucket=bucket, Key=item[0], Body=item[1]), objects.items()))


def sent(wire, since=0):
    """The traffic: the number of listings and of HEADs of files, and the bytes of bodies."""
    records = [record for record in wire.history[since:] if record.operation.kind != "HeadBucket"]
    return {
        "lists": sum(record.kind == "ListObjectsV2" for record in records),
        "heads": len({record.operation.key for record in records if record.kind == "HeadObject"}),
        "bytes": sum(record.body_bytes for record in records if record.kind in SENDS),
    }


def push(s3once, tree, target, *more):
    run = s3once("push", *more, "--json", tree, target)
    return run, counts(run)


@TWO_SERVERS
@pytest.mark.parametrize("tool", [as_aws, as_rclone, as_s3cmd], ids=["aws", "rclone", "s3cmd"])
def test_a_tree_of_another_tool_is_adopted(s3once, s3, s3_wire, bucket, marks, honours, tmp_path, tool):
    """Each file up to a part was sent whole and refused; a dry run told that all would be uploaded."""
    tree = make_tree(tmp_path / "tree", {"a/1": 900 * KIB, "a/2": 2 * MIB, "b": 0, "c.log": 17 * MIB + 5, "d e": 100})
    upload(s3, bucket, tree, "web1", tool)
    before, since = s3.objects(bucket), len(s3_wire.history)
    rows = marks_of(marks)
    run, found = push(s3once, tree, f"s3://{bucket}/web1", "-n")
    assert run.code == 0 and found == {"adopted": 5}, run
    assert sent(s3_wire, since) == {"lists": 1, "heads": 5, "bytes": 0} and marks_of(marks) == rows
    since = len(s3_wire.history)
    run, found = push(s3once, tree, f"s3://{bucket}/web1")
    assert run.code == 0 and found == {"adopted": 5}, run
    assert sent(s3_wire, since) == {"lists": 1, "heads": 5, "bytes": 0}
    assert s3.objects(bucket) == before
    since = len(s3_wire.history)
    run, found = push(s3once, tree, f"s3://{bucket}/web1")
    assert run.code == 0 and found == {"skipped": 5} and sent(s3_wire, since)["lists"] == 0, run


@TWO_SERVERS
def test_part_of_a_tree_is_there(s3once, s3, s3_wire, bucket, marks, honours, tmp_path):
    """A HEAD is sent only for what the listing shows. The dry run says what comes of each file."""
    tree = make_tree(tmp_path / "tree", {f"f{n:02}": 10 * KIB + n for n in range(30)})
    upload(s3, bucket, tree, "p", names={f"f{n:02}" for n in range(0, 20, 2)})
    s3.client.put_object(Bucket=bucket, Key="p/f01", Body=b"of somebody else")
    s3.client.put_object(Bucket=bucket, Key="p/between", Body=b"no file of the tree")
    since = len(s3_wire.history)
    run, found = push(s3once, tree, f"s3://{bucket}/p", "-n")
    assert run.code == 1 and found == {"adopted": 10, "planned": 19, "failed": 1}, run
    assert "other content" in told(run, "failed")[0]["text"]
    assert sent(s3_wire, since) == {"lists": 1, "heads": 11, "bytes": 0} and not marks_of(marks)
    since = len(s3_wire.history)
    run, found = push(s3once, tree, f"s3://{bucket}/p")
    assert run.code == 1 and found == {"adopted": 10, "uploaded": 19, "failed": 1}, run
    here = sent(s3_wire, since)
    assert here["lists"] == 1 and here["bytes"] == sum(path.stat().st_size for path in tree.iterdir()) - sum(
        (tree / name).stat().st_size for name in ["f01", *(f"f{n:02}" for n in range(0, 20, 2))]
    )
    assert s3.get(bucket, "p/f01") == b"of somebody else"


def test_a_first_run_into_an_empty_prefix(s3once, s3, s3_wire, bucket, marks, honours, tmp_path):
    """It costs one listing, whatever the number of files, and no HEAD."""
    tree = make_tree(tmp_path / "tree", {f"d{n % 7}/f{n:04}": 5 for n in range(1100)})
    since = len(s3_wire.history)
    run, found = push(s3once, tree, f"s3://{bucket}/new")
    assert run.code == 0 and found == {"uploaded": 1100}, run
    here = sent(s3_wire, since)
    assert here["lists"] == 1 and here["bytes"] == 5 * 1100


@pytest.mark.parametrize("s3", ["simulated"], indirect=True)
def test_a_listing_is_read_once(s3once, s3, s3_wire, bucket, marks, honours, tmp_path):
    """One request tells of a thousand objects; what lies before and behind the tree is not listed."""
    tree = make_tree(tmp_path / "tree", {f"f{n:04}": 5 for n in range(1300)})
    put_all(s3, bucket, {f"web2/m/f{n:04}": (tree / f"f{n:04}").read_bytes() for n in range(1300)})
    put_all(s3, bucket, {f"web2/{'a' if n % 2 else 'z'}{n:04}": b"x" for n in range(100)})
    since = len(s3_wire.history)
    run, found = push(s3once, tree, f"s3://{bucket}/web2/m")
    assert run.code == 0 and found == {"adopted": 1300}, run
    here = sent(s3_wire, since)
    assert here["lists"] == 2 and here["bytes"] == 0, here


@pytest.mark.parametrize("s3", ["simulated"], indirect=True)
def test_files_that_lie_far_apart_are_looked_at_one_by_one(s3once, s3, s3_wire, bucket, marks, honours, tmp_path):
    """Between two of them are more objects than a page has: a listing would cost more than HEADs."""
    names = [f"{group}/file" for group in "abc"]
    tree = make_tree(tmp_path / "tree", {name: 20 for name in names})
    upload(s3, bucket, tree, "far", names=names[1:])
    put_all(s3, bucket, {f"far/a/zz{n:04}": b"x" for n in range(1050)})
    since = len(s3_wire.history)
    run, found = push(s3once, tree, f"s3://{bucket}/far")
    assert run.code == 0 and found == {"uploaded": 1, "adopted": 2}, run
    here = sent(s3_wire, since)
    assert here["lists"] == 1 and here["bytes"] == 20, here


def test_few_new_files_among_known_ones_are_not_looked_for(s3once, s3, s3_wire, bucket, marks, honours, tmp_path):
    tree = make_tree(tmp_path / "tree", {f"f{n:02}": 5 for n in range(40)})
    assert push(s3once, tree, f"s3://{bucket}/p")[1] == {"uploaded": 40}
    make_tree(tree, {"new": 7})
    since = len(s3_wire.history)
    run, found = push(s3once, tree, f"s3://{bucket}/p")
    assert found == {"skipped": 40, "uploaded": 1}, run
    assert sent(s3_wire, since)["lists"] == 0
    assert "p/new" not in [record.operation.key for record in s3_wire.history[since:] if record.kind == "HeadObject"]


@pytest.mark.parametrize("status, code", [(403, "AccessDenied"), (501, "NotImplemented")])
def test_a_listing_that_is_refused(s3once, s3, s3_wire, bucket, marks, honours, tmp_path, status, code):
    """Each file is looked at by a HEAD then."""
    tree = make_tree(tmp_path / "tree", {f"f{n:02}": 5000 for n in range(15)})
    upload(s3, bucket, tree, "p", names={f"f{n:02}" for n in range(9)})
    rule = s3_wire.add(faults.answer(status, code), "ListObjectsV2", times=None)
    since = len(s3_wire.history)
    run, found = push(s3once, tree, f"s3://{bucket}/p")
    assert run.code == 0 and found == {"adopted": 9, "uploaded": 6} and rule.fired, run
    assert sent(s3_wire, since)["bytes"] == 6 * 5000


def test_lost_marks_of_compressed_files(s3once, s3, s3_wire, bucket, marks, honours, tmp_path):
    """The objects of "a" and "a-b" are listed in another order than the files."""
    names = ["a", "a-b", "a.b", *(f"x{n}" for n in range(20))]
    tree = make_tree(tmp_path / "tree", {name: (name + " line\n").encode() * 500 for name in names})
    command = ("push", "--compress", "zstd", "--json", tree, f"s3://{bucket}/p")
    assert counts(s3once(*command)) == {"uploaded": len(names)}
    before, since = s3.objects(bucket), len(s3_wire.history)
    assert s3once("forget", "--yes", f"s3://{bucket}/p").code == 0
    run = s3once("push", "-n", "--marks", f"sqlite:{tmp_path / 'other'}", "--compress", "zstd", "--json", tree, f"s3://{bucket}/p")
    assert run.code == 0 and counts(run) == {"adopted": len(names)}, run
    assert sent(s3_wire, since)["bytes"] == 0
    learn_conditions(s3once, bucket, "--marks", f"sqlite:{tmp_path / 'other'}")
    since = len(s3_wire.history)
    run = s3once("push", "--marks", f"sqlite:{tmp_path / 'other'}", "--compress", "zstd", "--json", tree, f"s3://{bucket}/p")
    assert run.code == 0 and counts(run) == {"adopted": len(names)}, run
    assert sent(s3_wire, since)["bytes"] == 0 and s3.objects(bucket) == before


def test_a_dry_run_without_marks_says_what_has_changed(s3once, s3, s3_wire, bucket, marks, honours, tmp_path):
    """The objects are those of s3once, whose marks are lost: the run reports what it would report without -n, and writes nothing."""
    tree = make_tree(tmp_path / "tree", {"same": 5000, "changed": 5000, "new": 30})
    assert push(s3once, tree, f"s3://{bucket}/p", "--exclude", "new")[1] == {"uploaded": 2}
    (tree / "changed").write_bytes(b"other" * 1000)
    assert s3once("forget", "--yes", f"s3://{bucket}/p").code == 0
    rows, objects = marks_of(marks), s3.objects(bucket)
    run, found = push(s3once, tree, f"s3://{bucket}/p", "-n")
    assert run.code == 1 and found == {"adopted": 1, "refused": 1, "planned": 1}, run
    assert marks_of(marks) == rows and s3.objects(bucket) == objects
    run, found = push(s3once, tree, f"s3://{bucket}/p", "-n", "--if-changed=replace")
    assert run.code == 0 and found == {"adopted": 1, "planned": 2}, run
    run, found = push(s3once, tree, f"s3://{bucket}/p")
    assert run.code == 1 and found == {"adopted": 1, "refused": 1, "uploaded": 1}, run
