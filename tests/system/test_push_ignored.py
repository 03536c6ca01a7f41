"""Servers that pass over what they were asked for, or cannot do what others can: said, and never taken for done."""

import pytest

from tests.faults import faults
from tests.faults.proxy import Proxy
from tests.system.harness import MIB, make_tree
from tests.system.pushing import counts, told

PART = 5 * MIB
SIZES = {"small": 1000, "large": 2 * PART + 77}
SSE = "x-amz-server-side-encryption"
KEY_HEADERS = [f"{SSE}-customer-{name}" for name in ("algorithm", "key", "key-md5")]


def push(s3once, tree, bucket, *options):
    return s3once("push", tree, f"s3://{bucket}/p", "--json", "--part-size", "5MiB", *options)


def key_file(folder):
    path = folder / "key"
    path.write_bytes(bytes(range(32)))
    path.chmod(0o600)
    return path


@pytest.fixture
def wire(s3, s3once, tmp_path):
    """TLS, since without it no key is sent."""
    with Proxy(s3, "s3", tmp_path / "proxy", tls=True) as wire:
        s3once.environment.update(AWS_ENDPOINT_URL_S3=wire.endpoint, AWS_CA_BUNDLE=str(wire.ca))
        yield wire
        assert not wire.failures


@pytest.mark.parametrize("how", ["AES256", "aws:kms", "own key"])
@pytest.mark.parametrize("size", SIZES)
def test_encryption_that_was_ignored_is_a_failure(s3once, s3, wire, bucket, tmp_path, size, how):
    tree = make_tree(tmp_path / "tree", {"file": SIZES[size]})
    options = ("--sse-c-key-file", key_file(tmp_path)) if how == "own key" else ("--sse", how)
    rule = wire.add(faults.ignores(SSE, *KEY_HEADERS), times=None)
    for _ in range(2):
        run = push(s3once, tree, bucket, *options)
        assert run.code == 1 and counts(run) == {"failed": 1}, run
        assert "does not confirm the encryption" in told(run, "failed")[0]["text"]
    assert rule.fired and not [each for each in wire.history if each.kind == "UploadPart"] and not s3.uploads(bucket)
    wire.clear()
    run = push(s3once, tree, bucket)
    assert run.code == 0, run
    s3.assert_same(tree, bucket, "p")


@pytest.mark.parametrize("size", SIZES)
def test_what_is_there_in_clear_is_not_adopted_as_encrypted(s3once, s3, bucket, tmp_path, size):
    tree = make_tree(tmp_path / "tree", {"file": SIZES[size]})
    assert push(s3once, tree, bucket).code == 0
    run = push(s3once, tree, bucket, "--sse", "aws:kms", "--marks", f"sqlite:{tmp_path}/other.db")
    assert run.code == 1 and "does not confirm the encryption" in told(run, "failed")[0]["text"], run


@pytest.mark.parametrize("fault", [faults.answer(405, "MethodNotAllowed"), faults.answer(501, "NotImplemented"), faults.other_xml])
@pytest.mark.parametrize("aborts", [True, False])
def test_upload_that_cannot_be_listed_begins_anew(s3once, s3, s3_wire, bucket, tmp_path, fault, aborts):
    tree = make_tree(tmp_path / "tree", {"file": SIZES["large"]})
    s3_wire.add(faults.kill_after, "UploadPart", nth=2)
    assert push(s3once, tree, bucket).code == -9
    s3_wire.clear()
    s3_wire.add(fault, "ListParts", times=None)
    if not aborts:
        s3_wire.add(faults.answer(405, "MethodNotAllowed"), "AbortMultipartUpload", times=None)
    run = push(s3once, tree, bucket)
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    (warning,) = [event["text"] for event in told(run, "warning") if "cannot list the parts" in event["text"]]
    assert str(tree / "file") in warning
    s3.assert_same(tree, bucket, "p")
    assert len(s3.uploads(bucket)) == (0 if aborts else 1)
