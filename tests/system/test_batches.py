"""Marks in batches: how many requests, where they are used, and what is done where the table or the policy has none.

Servers that read PartiQL otherwise than dynoxide does are not to be had here: they are played by the wire proxy, and said so.
"""

import json
import re
from collections import Counter

import pytest

from tests.faults import faults, statements
from tests.faults.proxy import Proxy, each
from tests.system.harness import make_tree, wait_until
from tests.system.pushing import learn_conditions

MARKS, PROBE = "BatchExecuteStatement:marks", "BatchExecuteStatement:probe"
DENIED = "dynamodb:PartiQLInsert and dynamodb:PartiQLUpdate"


@pytest.fixture
def wire(s3once, dynamodb, table):
    with Proxy(dynamodb, "dynamodb", latency=0.006) as wire:
        s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = wire.endpoint
        assert s3once("init").code == 0
        yield wire
        assert not wire.failures


def kinds(wire):
    """How many requests of each kind since the last call."""
    found = Counter(record.kind for record in wire.history)
    wire.history.clear()
    return found


def settings(dynamodb, table):
    return next(item for item in dynamodb.items(table) if item["pk"] == "settings")


def files(folder, count):
    return make_tree(folder, {f"{number:04}": b"%d" % number for number in range(count)})


def assert_done(run, dynamodb, table, s3, bucket, tree):
    assert run.code == 0, run
    s3.assert_same(tree, bucket)
    marks = dynamodb.marks(table)
    assert len(marks) == len(list(tree.iterdir())) and {mark["state"] for mark in marks.values()} == {"done"}


def test_requests_a_file(s3once, s3, dynamodb, wire, table, bucket, tmp_path):
    """As many writes as before, two a file, but a tenth of the requests, if replies take longer than the program's own work."""
    count = 1000
    tree = files(tmp_path / "tree", count)
    learn_conditions(s3once, bucket)
    wire.history.clear()
    wire.latency = 0.1
    run = s3once("push", "--concurrency", "64", tree, f"s3://{bucket}")
    assert_done(run, dynamodb, table, s3, bucket, tree)
    writes = [one for one in each(wire.history) if one.kind in ("PutItem:claim", "UpdateItem:done")]
    assert len(writes) == 2 * count and all(one.took_effect for one in writes)
    batches = [record for record in wire.history if record.kind == MARKS]
    assert max(len(record.statements) for record in batches) == 25
    for record in batches:
        assert len({one.operation.key for one in record.statements}) == len(record.statements) > 1
    assert len(wire.history) <= 0.2 * count, kinds(wire)


@pytest.mark.threaded
def test_table_is_probed_once(s3once, dynamodb, wire, table, bucket, tmp_path):
    tree = files(tmp_path / "tree", 1)
    assert "batches" not in settings(dynamodb, table)
    assert s3once("push", "-n", tree, f"s3://{bucket}").code == 0
    assert "batches" not in settings(dynamodb, table) and not kinds(wire)[PROBE]
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    first = kinds(wire)
    assert first[PROBE] and settings(dynamodb, table)["batches"] == "lists"
    assert all(0 < int(item["expires"]) for item in dynamodb.items(table) if item["pk"].startswith("probe#"))
    assert s3once("push", tree, f"s3://{bucket}/again").code == 0
    assert not kinds(wire)[PROBE]


def test_a_stop_while_the_table_is_tried_out(s3once, s3, dynamodb, wire, table, bucket, tmp_path):
    hung = wire.add(faults.hang, PROBE)
    tree = files(tmp_path / "tree", 1)
    run = s3once.start("push", tree, f"s3://{bucket}")
    wait_until(lambda: hung.fired, 60, "the probe")
    run.kill(15)
    assert run.wait(60).code == 143 and not dynamodb.marks(table)
    wire.clear()
    assert_done(s3once("push", tree, f"s3://{bucket}"), dynamodb, table, s3, bucket, tree)


def test_a_lone_mark_is_a_request_of_its_own(s3once, wire, bucket, tmp_path):
    assert s3once("push", files(tmp_path / "tree", 1), f"s3://{bucket}").code == 0
    found = kinds(wire)
    assert (found["PutItem:claim"], found["UpdateItem:done"], found[MARKS]) == (1, 1, 0)


@pytest.mark.parametrize("dynamodb", ["dynalite"], indirect=True)
def test_a_server_without_statements(s3once, s3, dynamodb, wire, table, bucket, tmp_path):
    tree = files(tmp_path / "tree", 40)
    assert_done(s3once("push", tree, f"s3://{bucket}"), dynamodb, table, s3, bucket, tree)
    found = kinds(wire)
    assert (found["BatchExecuteStatement"] + found[PROBE], found[MARKS]) == (1, 0)
    assert settings(dynamodb, table)["batches"] == "none"
    assert s3once("push", tree, f"s3://{bucket}/again").code == 0
    assert not any("Execute" in kind for kind in kinds(wire))


async def yes_to_all(x, rule):
    """Like moto: every statement counts as applied, whatever its condition."""
    reply = await x.forward()
    x.fire(rule)
    await x.answer(statements.rewrite(reply, [{"TableName": "t"}] * len(x.record.statements)))


def test_a_server_that_ignores_conditions(s3once, s3, dynamodb, wire, table, bucket, tmp_path):
    """Played by the proxy."""
    wire.add(yes_to_all, "BatchExecuteStatement", times=None)
    tree = files(tmp_path / "tree", 40)
    assert_done(s3once("push", tree, f"s3://{bucket}"), dynamodb, table, s3, bucket, tree)
    assert settings(dynamodb, table)["batches"] == "none" and not kinds(wire)[MARKS]


def in_lists(text):
    """SET a=? SET b=? REMOVE c REMOVE d → SET a=?, b=? REMOVE c, d; None if it is in lists already."""
    changes, where, rest = text.partition(" WHERE ")
    if "," in changes:
        return None
    first, *more = re.split(r" (?=SET|REMOVE)", changes)
    sets = [one.removeprefix("SET ") for one in more if one.startswith("SET")]
    removes = [one.removeprefix("REMOVE ") for one in more if one.startswith("REMOVE")]
    return f"{first} SET {', '.join(sets)}" + (f" REMOVE {', '.join(removes)}" if removes else "") + where + rest


async def only_clauses(x, rule):
    """As AWS documents UPDATE: each change has a clause of its own, and any other form is refused."""
    call = json.loads(await x.body())
    asked = [one["Statement"] for one in call["Statements"]]
    texts = [in_lists(text) if text.startswith("UPDATE") else text for text in asked]
    call["Statements"] = [{**one, "Statement": text} for one, text in zip(call["Statements"], texts) if text]
    x.fire(rule)
    good = [number for number, text in enumerate(texts) if text]
    x.whole = json.dumps(call).encode()
    answers = [{"Error": {"Code": "ValidationError", "Message": "not well formed"}} for _ in texts]
    _, reply = await statements.forward_some(x, lambda *_: True)
    for number, answer in zip(good, json.loads(reply.body)["Responses"]):
        answers[number] = answer
    await x.answer(statements.rewrite(reply, answers))


def test_the_dialect_that_aws_documents(s3once, s3, dynamodb, wire, table, bucket, tmp_path):
    """Played by the proxy."""
    wire.add(only_clauses, "BatchExecuteStatement", times=None)
    tree = files(tmp_path / "tree", 100)
    assert_done(s3once("push", tree, f"s3://{bucket}"), dynamodb, table, s3, bucket, tree)
    assert settings(dynamodb, table)["batches"] == "clauses" and kinds(wire)[MARKS] > 2


def test_a_policy_without_the_rights(s3once, s3, dynamodb, wire, table, bucket, tmp_path):
    """Each mark by itself; the next run asks again. Said once, at -v and by doctor."""
    wire.add(faults.answer(400, "AccessDeniedException"), "BatchExecuteStatement", times=None)
    tree = files(tmp_path / "tree", 40)
    run = s3once("push", "-v", tree, f"s3://{bucket}")
    assert_done(run, dynamodb, table, s3, bucket, tree)
    assert run.err.count(DENIED) == 1 and kinds(wire)[PROBE] == 1
    assert "batches" not in settings(dynamodb, table)
    run = s3once("doctor")
    assert run.code == 0 and "warning  marks in batches" in run.out and DENIED in run.out, run


def test_a_policy_that_lost_the_rights(s3once, s3, dynamodb, wire, table, bucket, tmp_path):
    assert s3once("doctor").code == 0
    kinds(wire)
    wire.add(statements.one_answered("AccessDenied"), MARKS, times=None)
    tree = files(tmp_path / "tree", 200)
    run = s3once("push", "-v", "--concurrency", "16", tree, f"s3://{bucket}")
    assert_done(run, dynamodb, table, s3, bucket, tree)
    assert run.err.count(DENIED) == 1 and kinds(wire)[MARKS] <= 8
    assert settings(dynamodb, table)["batches"] == "lists"


def test_a_batch_that_hangs_stalls_its_sender_alone(s3once, s3, dynamodb, wire, table, bucket, tmp_path):
    """Neither other marks nor the heartbeats wait; who travels with it repeats its own after five seconds. A sender that waits
    for the done mark of a file has claimed the next one, which waits with it."""
    assert s3once("doctor").code == 0
    kinds(wire)
    hung = wire.add(faults.hang, MARKS)
    tree = files(tmp_path / "tree", 60)
    running = s3once.start("push", "--concurrency", "40", "--lease", "12s", "--request-timeout", "2m", tree, f"s3://{bucket}")
    wait_until(lambda: hung.fired, 60, "the batch")

    def answered(kind):
        return [one for one in each(list(wire.history)) if one.kind == kind and one.took_effect]

    def done():
        return {one.operation.key for one in answered("UpdateItem:done")}

    names = {path.name for path in tree.iterdir()}
    sender, *others = (one.operation.key for one in hung.records[0].statements)
    wait_until(lambda: len(names - done()) <= 2 and done().issuperset(names & set(others)), 60, "all other marks")
    assert sender not in done()
    beats = len(answered("UpdateItem:heartbeat"))
    wait_until(lambda: len(answered("UpdateItem:heartbeat")) > beats, 60, "a heartbeat meanwhile")
    assert hung.records[0].ended is None
    hung.released.set()
    assert_done(running.wait(), dynamodb, table, s3, bucket, tree)


def test_a_stop_while_a_batch_hangs(s3once, s3, dynamodb, wire, table, bucket, tmp_path):
    assert s3once("doctor").code == 0
    hung = wire.add(faults.hang, MARKS, times=None)
    tree = files(tmp_path / "tree", 100)
    running = s3once.start("push", "--concurrency", "16", "--grace", "1s", tree, f"s3://{bucket}")
    wait_until(lambda: hung.fired, 60, "the batch")
    running.kill(15)
    assert running.wait().code == 143
    wire.clear()
    assert_done(s3once("push", tree, f"s3://{bucket}"), dynamodb, table, s3, bucket, tree)
