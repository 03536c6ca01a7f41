"""A tree with hard names and sizes reaches S3 byte for byte, and a second run sends nothing."""

import os

import pytest

from tests.servers.nginx_count import NginxCount
from tests.system.harness import FULL, MIB, expected_objects, make_tree
from tests.system.pushing import SHARDS, assert_done, counts, hard_tree, marks_of, summary, told, visible_writes

MANY = 10_000 if FULL else 400
FEW = 1_000 if FULL else 110


def store_calls(run):
    """Calls of SQLite, which no proxy can count."""
    calls = ("Put", "Get", "Update", "Take", "Delete", "Sync", "Query", "BatchGet")
    return sum(number for name, number in summary(run)["requests"].items() if name in calls)


@pytest.mark.parametrize(
    "s3, marks, prefix, count",
    [
        ("rgw", "dynamodb", "p", MANY),
        ("rgw", "dynamodb", "p//", FEW),
        ("rgw", "sqlite", "", MANY),
        ("swift", "dynamodb", "", FEW),
        ("swift", "sqlite", "p//", FEW),
    ],
    indirect=["s3", "marks"],
)
def test_tree(s3once, s3, s3_proxy, bucket, marks, tmp_path, prefix, count):
    biggest = 300 * MIB if FULL and count == MANY else 17 * MIB
    tree = make_tree(tmp_path / "tree", hard_tree(count, 5 * MIB, biggest=biggest))
    command = ("push", tree, f"s3://{bucket}/{prefix}", "--json", "--part-size", "5MiB")

    run = s3once(*command, timeout=600)
    assert run.code == 0, run
    assert counts(run) == {"uploaded": count}
    s3.assert_same(tree, bucket, prefix)
    assert_done(marks, expected_objects(tree, prefix))
    requests = s3_proxy.requests()
    writes = visible_writes(requests)
    assert sum(summary(run)["requests"].values()) == len(requests) + (marks.requests() or store_calls(run))
    refused = sum(request["status"] == 501 for request in requests)  # conditions: sent again without
    size = sum(row.size for row in s3.objects(bucket).values())
    assert summary(run)["bytes_sent"] == size if not refused else summary(run)["bytes_sent"] >= size and refused <= 64
    assert writes.keys() == expected_objects(tree, prefix).keys() and set(writes.values()) == {1}
    assert not s3.uploads(bucket)

    again = s3once(*command, timeout=600)
    assert again.code == 0 and counts(again) == {"skipped": count}, again
    assert len(s3_proxy.requests()) == 1, "whether the bucket is the one that the marks are about"
    assert marks.requests() <= 3 * SHARDS + 10


@pytest.mark.smoke
@pytest.mark.parametrize("marks", ["dynamodb", "sqlite"], indirect=True)
def test_defaults(s3once, s3, bucket, marks, tmp_path):
    """Without any option, threshold and part size are 16 MiB."""
    tree = make_tree(tmp_path / "tree", {"a/empty": 0, "a/small": 5, "one": 16 * MIB, "two": 16 * MIB + 1})
    run = s3once("push", tree, f"s3://{bucket}/p", timeout=120)
    assert run.code == 0 and "4 files" in run.out, run
    s3.assert_same(tree, bucket, "p")
    assert {key for key, row in s3.objects(bucket).items() if row.etag.endswith("-2")} == {"p/two"}


@pytest.mark.parametrize("s3", ["rgw", "swift"], indirect=True)
def test_over_tls(s3once, s3, marks, bucket, tmp_path):
    with NginxCount(s3) as proxy:
        tree = make_tree(tmp_path / "tree", {"empty": 0, "small": 5, "sp ace+%": 100, "large": 11 * MIB})
        access = ("--endpoint-url", proxy.tls_endpoint, "--ca-bundle", proxy.ca)
        run = s3once("push", tree, f"s3://{bucket}/p", *access, "--part-size", "5MiB", "--json")
        assert run.code == 0 and counts(run) == {"uploaded": 4}, run
        assert len(proxy.requests()) > 4
    s3.assert_same(tree, bucket, "p")
    assert_done(marks, expected_objects(tree, "p"))


def test_marks_of_this_host_are_said_to_be(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 1})
    run = s3once("push", tree, f"s3://{bucket}/p", "--json")
    assert run.code == 0 and "this host" in run.err, run
    assert told(run, "start")[0]["marks_shared"] is False and summary(run)["marks_shared"] is False


@pytest.mark.parametrize("marks", ["dynamodb", "sqlite"], indirect=True)
@pytest.mark.parametrize(
    "name", [b"f\xfcr", ("é" * 120 + "/" + "日" * 80).encode(), ("🎉" * 60 + "/\\n\x1b").encode()], ids=["bytes", "long", "odd"]
)
def test_source_of_any_name(s3once, s3, marks, bucket, tmp_path, name):
    """Marks record the source of the files, in any bytes and of any length."""
    tree = os.fsencode(tmp_path) + b"/" + name
    os.makedirs(tree)
    with open(tree + b"/file", "wb") as file:
        file.write(b"content")
    run = s3once("push", tree, f"s3://{bucket}/p", "--json")
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    assert s3.get(bucket, "p/file") == b"content"
    assert marks_of(marks)["p/file"]["state"] == "done"


@pytest.mark.parametrize("size", [10, 11 * MIB])
def test_longest_key(s3once, s3, marks, bucket, tmp_path, size):
    """1,024 bytes are a key, one more is an error of that file."""
    longest = "/".join(["x" * 250] * 4) + "/" + "y" * (1024 - len("p/") - 4 * 251)
    tree = make_tree(tmp_path / "tree", {longest: size, longest + "y": 1, "other": 2})
    run = s3once("push", tree, f"s3://{bucket}/p", "--part-size", "5MiB", "--json")
    # Ceph's gateway answers Complete of such a key with less than a reply: then the object is looked at.
    assert run.code == 1 and counts(run, "failed") == {"failed": 1} and len(s3.objects(bucket)) == 2, run
    assert "1025 bytes" in told(run, "failed")[0]["text"]
    (tree / (longest + "y")).unlink()
    s3.assert_same(tree, bucket, "p")
    assert_done(marks, expected_objects(tree, "p"))


def test_one_new_among_many(s3once, s3, s3_proxy, bucket, marks, tmp_path):
    """Files that are done cost next to nothing, neither at S3 nor at the store."""
    tree = make_tree(tmp_path / "tree", {f"{n % 3}/{n:05}": 3 for n in range(500)})
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    make_tree(tree, {"1/new": 4})
    s3_proxy.requests(), marks.requests()
    run = s3once("push", tree, f"s3://{bucket}/p", "--json")
    assert counts(run) == {"uploaded": 1, "skipped": 500}, run
    assert visible_writes(s3_proxy.requests()) == {"p/1/new": 1}
    assert marks.requests() <= 3 * SHARDS + 10
