"""Replies without end, with plenty of memory and with little: a sentence and an exit code, never a crash."""

import pytest

from tests.faults.http1 import Headers, Reply
from tests.faults.scenarios import LARGE
from tests.faults.stage import Stage
from tests.system.harness import FULL, MIB


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


# Bodies are made by the test that sends them: each worker of pytest imports this file.
HUGE = {
    "long": lambda: b"<?xml version='1.0'?><R>" + b"<ETag>x</ETag>" * (4 * MIB) + b"</R>",
    "deep": lambda: b"<?xml version='1.0'?>" + b"<a>" * MIB,
    "entities": lambda: b"<!DOCTYPE a [" + b"".join(b"<!ENTITY e%d '%s'>" % (n + 1, b"&e%d;" % n * 10) for n in range(9)) + b"]><a>&e9;</a>",
    "one name": lambda: b"<" + b"a" * 8 * MIB + b">",
    "JSON": lambda: b'{"Item":' + b"[" * 8 * MIB,
}


SLOW = {
    "attributes": lambda: b"<?xml version='1.0'?><R " + b" ".join(b"a%d=''" % n for n in range(90_000)) + b"/>",
    "spaced attributes": lambda: b"<?xml version='1.0'?><R " + b" ".join(b"a%d =\n''" % n for n in range(80_000)) + b"/>",
    "elements": lambda: b"<?xml version='1.0'?><R>" + b"<a/>" * (250 << 10) + b"</R>",
    "JSON attributes": lambda: b'{"Item":{' + b",".join(b'"a%d":{"S":""}' % n for n in range(4_500_000)) + b"}}",
    "few JSON attributes": lambda: b'{"Item":{' + b",".join(b'"a%d":{"S":""}' % n for n in range(200_000)) + b"}}",
    "JSON lists": lambda: b'{"Item":[' + b",".join([b"[]"] * (19 << 20)) + b"]}",
    "JSON pages": lambda: b'{"Responses":{},"Items":[' + b",".join([b"[]"] * (19 << 20)) + b"]}",
}


@pytest.mark.parametrize(
    "service, kind, body",
    [
        *(("s3", kind, body) for kind in ("CreateMultipartUpload", "CompleteMultipartUpload") for body in SLOW if "JSON" not in body),
        ("dynamodb", "GetItem:settings", "JSON attributes"),
        ("dynamodb", "GetItem:settings", "few JSON attributes"),
        ("dynamodb", "GetItem:settings", "JSON lists"),
        ("dynamodb", "BatchGetItem", "JSON lists"),
        ("dynamodb", "BatchGetItem", "JSON pages"),
    ],
)
def test_reply_that_is_made_to_be_slow(stage, service, kind, body):
    """Little of it takes long to read, or much memory: it is refused before."""
    stage.write("large", LARGE)
    proxy = stage.s3 if service == "s3" else stage.dynamodb
    rule = proxy.add(huge(SLOW[body]()), kind, times=None)
    result = stage.push("--give-up-after", "0", wrap=["prlimit", f"--data={400 * MIB}"], attempts=1)
    assert rule.fired, result
    assert result.code in (0, 1, 3) and (result.code == 0 or result.err) and result.seconds < 20, result
    assert "out of memory" not in result.err, result
    proxy.clear()
    stage.finish()


KINDS = [("s3", "CreateMultipartUpload"), ("s3", "CompleteMultipartUpload"), ("dynamodb", "BatchGetItem"), ("dynamodb", "UpdateItem:upload")]


def answers():
    """Each body as the answer of the service that speaks its language; ./check --full also gives it as the other's answer."""
    for service, kind in KINDS:
        for body in HUGE:
            if FULL or (service == "dynamodb") == (body == "JSON"):
                yield pytest.param(service, kind, body, id=f"{kind}-{body}")


@pytest.mark.parametrize("memory", [None, 200 * MIB], ids=["", "little memory"])
@pytest.mark.parametrize("service, kind, body", answers())
def test_huge_reply(stage, service, kind, body, memory):
    stage.write("large", LARGE)
    proxy = stage.s3 if service == "s3" else stage.dynamodb
    rule = proxy.add(huge(HUGE[body]()), kind, times=None)
    wrap = ["prlimit", f"--data={memory}"] if memory else []
    result = stage.push(wrap=wrap, attempts=3)
    assert rule.fired, result
    assert result.code in (0, 1, 3) and (result.code == 0 or result.err), result
    stage.finish()
