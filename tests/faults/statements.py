"""Faults of single statements of a BatchExecuteStatement: the rest of the batch goes as it should."""

import json

from tests.faults.faults import named
from tests.faults.http1 import Headers, Request


async def forward_some(x, wanted):
    """Sends the server those statements alone whose number is wanted: (their numbers, the Reply)."""
    call = json.loads(await x.body())
    numbers = [number for number in range(len(call["Statements"])) if wanted(number, len(call["Statements"]))]
    call["Statements"] = [call["Statements"][number] for number in numbers]
    body = json.dumps(call).encode()
    kept = {name: x.request.headers[name] for name in ("host", "content-type", "x-amz-target", "authorization", "x-amz-date")}
    reply = await x.proxy.send(Request("POST", "/", Headers(kept | {"content-length": str(len(body))})), body)
    x.note_statements(reply, numbers)
    return numbers, reply


def rewrite(reply, responses):
    reply.body = json.dumps({"Responses": responses}).encode()
    reply.headers.pop("x-amz-crc32", None)
    reply.headers["content-length"] = str(len(reply.body))
    return reply


def every_other(number, count):
    return number % 2 == 0


def is_not_middle(number, count):
    return number != count // 2


async def some_applied(x, rule):
    """Every other statement is applied, and the reply is lost."""
    await forward_some(x, every_other)
    x.reset()
    x.fire(rule)


async def some_answered(x, rule):
    """All are applied, and the reply has an answer for every other only."""
    reply = await x.forward()
    x.fire(rule)
    await x.answer(rewrite(reply, json.loads(reply.body)["Responses"][::2]))


def one_answered(code, applied=False):
    """This error for the middle one of the statements, which was not applied, or was."""

    @named(f"a statement's {code}{' (applied)' if applied else ''}")
    async def fault(x, rule):
        count = len(x.record.statements)
        error = {"Error": {"Code": code, "Message": "said by the wire proxy"}}
        if applied:
            reply = await x.forward()
            answers = json.loads(reply.body)["Responses"]
            answers[count // 2] = error
        else:
            _, reply = await forward_some(x, is_not_middle)
            answers = json.loads(reply.body)["Responses"]
            answers.insert(count // 2, error)
        x.fire(rule)
        await x.answer(rewrite(reply, answers))

    return fault


async def one_garbled(x, rule):
    """All are applied, and the answer of the middle one is none."""
    reply = await x.forward()
    answers = json.loads(reply.body)["Responses"]
    answers[len(answers) // 2] = {"Errxr": {"Cxde": "DuplicateItem"}}
    x.fire(rule)
    await x.answer(rewrite(reply, answers))
