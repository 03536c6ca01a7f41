"""Servers that answer otherwise than AWS does: what can be understood is, and what cannot names the request."""

import re

import pytest

from tests.faults import faults
from tests.faults.proxy import Proxy
from tests.system.harness import MIB, make_tree
from tests.system.pushing import counts, learn_conditions


def errors(run):
    return [line for line in run.err.splitlines() if line.startswith("s3once: error: ")]


async def other_roots(x, rule):
    """Gives the replies the root elements of rclone's `serve s3` and moto."""
    reply = await x.forward()
    reply.body = re.sub(rb"<(/?)(\w+Upload)Result\b", rb"<\1\2Response", reply.body)
    reply.body = re.sub(rb"<(/?)ListPartsResult\b", rb"<\1ListParts", reply.body)
    x.fire(rule)
    await x.answer(reply)


def test_names_of_root_elements(s3once, s3, s3_wire, bucket, tmp_path):
    """They do not matter, not even for an upload that is resumed."""
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


def test_head_that_gives_no_reason(s3once, s3, s3_wire, bucket, tmp_path):
    """If the object must be checked, a GET shows the reason, and otherwise the upload itself."""
    tree = make_tree(tmp_path / "tree", {"small": 10, "large": 6 * MIB})
    command = ("push", "--json", "--part-size", "5MiB", tree, f"s3://{bucket}")
    s3_wire.add(faults.answer(400, "KeyIsNotLiked"), "HeadObject", times=None)
    s3_wire.add(faults.answer(400, "KeyIsNotLiked"), "GetObject", times=None)
    run = s3once(*command)
    assert run.code == 1 and len(errors(run)) == 2 and run.err.count("(KeyIsNotLiked, request id") == 2, run
    with Proxy(s3, "s3", behaves="aws") as wire:
        s3once.environment |= {"AWS_ENDPOINT_URL_S3": wire.endpoint, "S3ONCE_MARKS": f"sqlite:{tmp_path}/other.db"}
        learn_conditions(s3once, bucket)
        wire.add(faults.answer(400, "KeyIsNotLiked"), "HeadObject", times=None)
        wire.add(faults.answer(400, "NorItsUpload"), "CreateMultipartUpload", times=None)
        wire.add(faults.answer(400, "NorItsUpload"), "PutObject", times=None)
        run = s3once(*command)
    assert run.code == 1 and run.err.count("(NorItsUpload, request id") == 2, run


def test_files_that_always_get_500(s3once, s3, s3_wire, bucket, tmp_path):
    """They end when --give-up-after says, however many they are; the others are stored."""
    tree = make_tree(tmp_path / "tree", {**{f"bad{number}": 10 for number in range(36)}, "good": 10})
    s3_wire.add(faults.answer(500, "InternalError"), "PutObject", where=lambda r: r.operation.key.startswith("bad"), times=None)
    run = s3once("push", "--json", "--give-up-after", "4s", tree, f"s3://{bucket}")
    assert run.code == 1 and counts(run) == {"uploaded": 1, "failed": 36} and run.seconds < 60, run


@pytest.mark.parametrize("answer", [faults.answer(405, "MethodNotAllowed"), faults.garble_reply], ids=["405", "misread"])
def test_doctor_of_a_server_that_lists_no_parts(s3once, s3, s3_wire, bucket, answer):
    s3_wire.add(answer, "ListParts", times=None)
    run = s3once("doctor", f"s3://{bucket}")
    assert run.code == 0 and "warning  list parts" in run.out and "failure" not in run.out, run


# --- s3rver, which verifies nothing and has neither ListParts nor Abort

s3rver_only = pytest.mark.parametrize("s3", ["s3rver"], indirect=True)


@s3rver_only
def test_s3rver_gets_everything(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 0, "b c": 1, "sub/\u00e9": 5000, "large": 11 * MIB})
    command = ("push", "--json", "--part-size", "5MiB", tree, f"s3://{bucket}/p")
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"uploaded": 4}, run
    s3.assert_same(tree, bucket, "p")
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"skipped": 4}, run
    s3once.environment["S3ONCE_MARKS"] = f"sqlite:{tmp_path}/other.db"
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"adopted": 4}, run


@s3rver_only
def test_s3rver_does_not_take_every_key(s3once, s3, s3_wire, bucket, tmp_path):
    """A prefix with two slashes it answers 404, as if the bucket were not there: the file's, not the run's."""
    tree = make_tree(tmp_path / "tree", {"a": 10, "b": 10})
    run = s3once("push", "--json", tree, f"s3://{bucket}//p")
    assert run.code in (1, 3) and "does not exist" not in run.err and f"although bucket {bucket} is there" in run.err, run


@s3rver_only
def test_s3rver_is_doctored(s3once, s3, bucket):
    run = s3once("doctor", f"s3://{bucket}")
    assert run.code == 0 and "failure" not in run.out, run
