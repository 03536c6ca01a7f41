"""Over TLS, where the server takes it, a part is read once: its checksum is computed while it is sent, and follows it (x-amz-trailer)."""

import os

import pytest

from tests.faults import faults
from tests.faults.proxy import Proxy
from tests.system.pushing import counts

MIB = 1 << 20
PARTS = ["--part-size", "5MiB", "--concurrency", "1", "--json"]

pytestmark = pytest.mark.parametrize("s3", ["simulated"], indirect=True)


@pytest.fixture
def wire(s3once, s3, tmp_path):
    with Proxy(s3, "s3", tmp_path / "proxy", tls=True) as proxy:
        s3once.environment |= {"AWS_ENDPOINT_URL_S3": proxy.endpoint, "AWS_CA_BUNDLE": str(proxy.ca)}
        yield proxy
        assert not proxy.failures


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "large").write_bytes(os.urandom(22 * MIB))
    return folder


def teach(s3once, bucket):
    assert s3once("init").code == 0, "what doctor finds out is kept with the marks"
    run = s3once("doctor", f"s3://{bucket}", "--json")
    assert "x-amz-trailer is taken" in run.out, run


def trailed(wire, since=0):
    """For each part that was sent, whether its checksum followed it."""
    parts = [record for record in wire.history[since:] if record.kind == "UploadPart"]
    return ["x-amz-trailer" in record.headers for record in parts]


def test_doctor_teaches(s3once, s3, bucket, wire, tree, tmp_path):
    """The first part of a run shows whether checksums are echoed; those behind it are read once."""
    push = ("push", tree, f"s3://{bucket}/p", *PARTS)
    s3once.environment["ASAN_OPTIONS"] = "detect_leaks=0"  # which cannot be while it is traced
    assert counts(s3once(*push, "--marks", f"sqlite:{tmp_path}/before.db")) == {"uploaded": 1}
    assert trailed(wire) == 5 * [False], "nothing is known of this server"
    s3.empty(bucket, "p/")
    teach(s3once, bucket)
    since = len(wire.history)
    run = s3once(*push, wrap=["strace", "-ff", "-y", "-e", "trace=pread64", "-o", str(tmp_path / "trace")])
    assert counts(run) == {"uploaded": 1}, run
    assert trailed(wire, since) == [False] + 4 * [True]
    assert s3.get(bucket, "p/large") == (tree / "large").read_bytes()
    assert "ContentEncoding" not in s3.client.head_object(Bucket=bucket, Key="p/large")
    lines = [line for trace in tmp_path.glob("trace.*") for line in trace.read_text(errors="replace").splitlines()]
    read = sum(int(line.rsplit("= ", 1)[1]) for line in lines if f"<{tree}/large>" in line)
    assert read == 27 * MIB, "the first part twice, the others once"
    assert counts(s3once(*push, "--compare-content")) == {"skipped": 1}


@pytest.mark.parametrize("answer", [(400, "InvalidRequest"), (501, "NotImplemented"), (403, "AccessDenied"), (400, "BadDigest")], ids=lambda answer: answer[1])
def test_a_server_that_takes_it_no_more(s3once, s3, bucket, wire, tree, answer):
    """The part that is refused is sent once more, and all others without it."""
    teach(s3once, bucket)
    since = len(wire.history)
    refused = wire.add(faults.answer(*answer), "UploadPart", times=None, where=lambda record: "x-amz-trailer" in record.headers)
    run = s3once("push", tree, f"s3://{bucket}/p", *PARTS)
    assert run.code == 0 and refused.fired, run
    assert trailed(wire, since) == [False] + refused.fired * [True] + 4 * [False]
    assert s3.get(bucket, "p/large") == (tree / "large").read_bytes()


def test_a_lost_reply(s3once, s3, bucket, wire, tree):
    """The part is read and digested again."""
    teach(s3once, bucket)
    lost = wire.add(faults.drop_reply, "UploadPart", nth=3)
    run = s3once("push", tree, f"s3://{bucket}/p", *PARTS)
    assert run.code == 0 and lost.fired, run
    assert s3.get(bucket, "p/large") == (tree / "large").read_bytes()


@pytest.mark.parametrize("fault", [faults.corrupt_byte, faults.wrong_checksum], ids=["sent", "told"])
def test_other_bytes_than_were_sent(s3once, s3, bucket, wire, tree, fault):
    teach(s3once, bucket)
    damaged = wire.add(fault, "UploadPart", nth=3)
    run = s3once("push", tree, f"s3://{bucket}/p", *PARTS)
    assert run.code == 0 and damaged.fired, run
    assert s3.get(bucket, "p/large") == (tree / "large").read_bytes()


def test_written_to_while_it_is_sent(s3once, s3, bucket, wire, tree):
    """No part of two versions becomes an object, although nothing is read twice."""
    teach(s3once, bucket)
    held = wire.add(faults.hold_request, "UploadPart", nth=3)
    run = s3once.start("push", tree, f"s3://{bucket}/p", *PARTS)
    assert held.reached.wait(30)
    (tree / "large").write_bytes(os.urandom(22 * MIB))
    held.released.set()
    assert run.wait().code == 0
    assert s3.get(bucket, "p/large") == (tree / "large").read_bytes()


def keeps_the_frame(wire):
    """The server goes by the length alone, and stores what is around the body as well."""
    return wire.add(faults.ignores("x-amz-content-sha256"), "UploadPart", times=None)


def test_a_server_that_never_took_it(s3once, s3, bucket, wire, tree):
    kept = keeps_the_frame(wire)
    assert s3once("init").code == 0
    run = s3once("doctor", f"s3://{bucket}", "--json")
    assert kept.fired and "x-amz-trailer is not taken" in run.out, run
    since = len(wire.history)
    assert s3once("push", tree, f"s3://{bucket}/p", *PARTS).code == 0
    assert trailed(wire, since) == 5 * [False]
    assert s3.get(bucket, "p/large") == (tree / "large").read_bytes()


def test_a_server_that_keeps_the_frame_one_day(s3once, s3, bucket, wire, tree):
    """Such a part has another MD5 than was sent, and never becomes an object."""
    teach(s3once, bucket)
    since = len(wire.history)
    keeps_the_frame(wire)
    run = s3once("push", tree, f"s3://{bucket}/p", *PARTS)
    assert run.code == 0, run
    assert trailed(wire, since) == [False, True] + 4 * [False]
    assert s3.get(bucket, "p/large") == (tree / "large").read_bytes()
