"""Replies without end, with plenty of memory and with little: a sentence and an exit code, never a crash."""

import pytest

from tests.faults.http1 import Headers, Reply
from tests.faults.scenarios import LARGE
from tests.faults.stage import Stage
from tests.system.harness import MIB


@pytest.fixture
def stage(arenas, tmp_path):
    with Stage(tmp_path / "stage", arenas()) as stage:
        yield stage


def huge(body):
    """A success whose body is endless, or nests without end."""

    async def fault(x, rule):
        await x.forward()
        x.fire(rule)
        await x.answer(Reply(200, Headers({"content-type": "application/xml"}), body))

    return fault


HUGE = {
    "long": b"<?xml version='1.0'?><R>" + b"<ETag>x</ETag>" * (4 * MIB) + b"</R>",
    "deep": b"<?xml version='1.0'?>" + b"<a>" * MIB,
    "entities": b"<!DOCTYPE a [" + b"".join(b"<!ENTITY e%d '%s'>" % (n + 1, b"&e%d;" % n * 10) for n in range(9)) + b"]><a>&e9;</a>",
    "one name": b"<" + b"a" * 8 * MIB + b">",
    "JSON": b'{"Item":' + b"[" * 8 * MIB,
}


@pytest.mark.parametrize("memory", [None, 200 * MIB], ids=["", "little memory"])
@pytest.mark.parametrize("body", HUGE.values(), ids=HUGE)
@pytest.mark.parametrize(
    "service, kind",
    [
        ("s3", "CreateMultipartUpload"),
        ("s3", "CompleteMultipartUpload"),
        ("dynamodb", "BatchGetItem"),
        ("dynamodb", "UpdateItem:upload"),
    ],
)
def test_huge_reply(stage, service, kind, body, memory):
    stage.write("large", LARGE)
    proxy = stage.s3 if service == "s3" else stage.dynamodb
    rule = proxy.add(huge(body), kind, times=None)
    wrap = ["prlimit", f"--data={memory}"] if memory else []
    result = stage.push("--retries", "2", wrap=wrap)
    assert rule.fired, result
    assert result.code in (0, 1, 3) and (result.code == 0 or result.err), result
    stage.finish()
