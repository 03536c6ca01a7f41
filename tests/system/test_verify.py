"""`s3once verify`: what is in the bucket against the marks."""

import json
import signal

import pytest

from tests.faults import faults
from tests.system.harness import MIB, content, make_tree, wait_until

NAMES = ["a b", "a+b", "a%20b", "a%", "ü/ä", "new\nline", "tab\tq", "&<>\"'", "日本/語", "a", "a-b", "a.b/c", "~", "\\x"]
ON_BOTH = pytest.mark.parametrize("s3", ["rgw", "swift"], indirect=True)
WITH_BOTH = pytest.mark.parametrize("marks", ["sqlite", "dynamodb"], indirect=True)


def found(run):
    """The lines of standard output as a set."""
    return set(run.out.splitlines())


def last(run):
    return run.events[-1]


def put(s3, bucket, key, body):
    s3.client.put_object(Bucket=bucket, Key=key, Body=body)


def remove(s3, bucket, key):
    s3.client.delete_object(Bucket=bucket, Key=key)


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree", {name: f"content of {name}".encode() for name in NAMES})


@pytest.mark.smoke
@ON_BOTH
@WITH_BOTH
def test_planted_damage_is_found_and_nothing_else(s3once, s3, bucket, marks, tree):
    """Missing, truncated, replaced by the same number of bytes, and foreign, under names that are hard to list."""
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    run = s3once("verify", f"s3://{bucket}/p", "-v")
    assert run.code == 0 and f"{len(NAMES)} objects are as their marks say, by size and etag\n" in run.err, run
    assert len(found(run)) == len(NAMES) and all(line.startswith("= p/") for line in found(run))
    remove(s3, bucket, "p/a+b")
    put(s3, bucket, "p/a b", b"short")
    put(s3, bucket, "p/ü/ä", b"x" * len("content of ü/ä".encode()))
    for key in ("p/a+", "p/zz", "p/a b.gz", "p/new\nlines"):
        put(s3, bucket, key, b"foreign")
    put(s3, bucket, "q", b"not below the prefix")
    damage = {"- p/a+b", "* p/a b", "* p/ü/ä", "+ p/a+", "+ p/zz", "+ p/a b.gz", "+ p/new\\nlines"}
    for by in ([], ["--head"], ["--download"]):
        run = s3once("verify", *by, f"s3://{bucket}/p/")
        assert run.code == 1 and found(run) == damage, run
        assert f"s3://{bucket}/p/: {len(NAMES) - 3} objects are as their marks say" in run.err
        assert ", 1 missing, 2 differ, 4 unknown to the marks, 0 could not be compared\n" in run.err
        assert "p/a b: its size is another: 5 bytes in S3, and 14 bytes when it was uploaded\n" in run.err
    events = s3once("verify", "--json", f"s3://{bucket}/p").events
    assert {(event["result"], event["key"]) for event in events[:-1]} >= {("missing", "p/a+b"), ("unknown", "p/new\nlines")}
    end = events[-1]
    assert end["event"] == "verify" and end["exit"] == 1 and end["complete"] and end["after"] is None
    assert [end[name] for name in ("same", "missing", "differs", "unknown", "error")] == [len(NAMES) - 3, 1, 2, 4, 0]
    assert end["requests"]["ListObjectsV2"] == 1
