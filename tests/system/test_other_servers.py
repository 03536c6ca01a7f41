"""Servers that answer otherwise than AWS does: what can be understood is, and what cannot names the request."""

import re

import pytest

from tests.faults import faults
from tests.system.harness import MIB, make_tree
from tests.system.pushing import counts


def errors(run):
    return [line for line in run.err.splitlines() if line.startswith("s3once: error: ")]


async def other_roots(x, rule):
    """As rclone's `serve s3` and moto name them."""
    reply = await x.forward()
    reply.body = re.sub(rb"<(/?)(\w+Upload)Result\b", rb"<\1\2Response", reply.body)
    reply.body = re.sub(rb"<(/?)ListPartsResult\b", rb"<\1ListParts", reply.body)
    x.fire(rule)
    await x.answer(reply)


def test_names_of_root_elements(s3once, s3, s3_wire, bucket, tmp_path):
    """Not even an upload that is gone on with."""
    tree = make_tree(tmp_path / "tree", {"large": 11 * MIB})
    rule = s3_wire.add(other_roots, times=None, where=lambda record: record.kind != "UploadPart")
    denied = s3_wire.add(faults.answer(403, "AccessDenied"), "UploadPart", nth=3, times=None)
    s3_wire.rules.reverse()
    command = ("push", "--json", "--part-size", "5MiB", "--concurrency", "1", tree, f"s3://{bucket}")
    assert s3once(*command).code == 1 and denied.fired
    denied.times = 0
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"uploaded": 1} and rule.fired, run
    kinds = [record.kind for record in s3_wire.history]
    assert kinds.count("CreateMultipartUpload") == 1 and kinds.count("ListParts") == 1, kinds
    s3.assert_same(tree, bucket)


def test_create_that_cannot_be_read(s3once, s3, s3_wire, bucket, tmp_path):
    """Said of the file by the request's name, after a second try; the other files go on."""
    tree = make_tree(tmp_path / "tree", {"large": 6 * MIB, **{f"small{number}": 10 for number in range(5)}})
    s3_wire.add(faults.garble_reply, "CreateMultipartUpload", times=None)
    run = s3once("push", "--json", "--part-size", "5MiB", tree, f"s3://{bucket}")
    assert run.code == 1 and counts(run) == {"uploaded": 5, "failed": 1}, run
    (error,) = errors(run)
    assert "large: " in error and "the reply to CreateMultipartUpload (status 200) is not what S3 answers" in error, run
    assert sum(record.kind == "CreateMultipartUpload" for record in s3_wire.history) == 2
