"""Global tables, whose replicas judge conditions by themselves. No server here has any: a fake, which is the proxy, adds to the answer of
DescribeTable what AWS says of such a table."""

import json

import pytest

from tests.faults import faults
from tests.faults.proxy import Proxy
from tests.system.locking import FAILED

EVENTUAL = {"Replicas": [{"RegionName": "eu-west-1"}, {"RegionName": "eu-west-2"}], "MultiRegionConsistency": "EVENTUAL"}
UNNAMED = {"Replicas": [{"RegionName": "eu-west-1"}]}
OF_2017 = {"GlobalTableVersion": "2017.11.29"}
STRONG = EVENTUAL | {"MultiRegionConsistency": "STRONG"}
SPLIT = pytest.mark.parametrize("says", [EVENTUAL, UNNAMED, OF_2017], ids=["eventual", "unnamed", "of 2017"])


def fake_replicas(says):
    async def fault(x, rule):
        reply = await x.forward()
        if reply.status == 200:
            body = json.loads(reply.body)
            body["Table"] |= says
            reply.body = json.dumps(body).encode()
            reply.headers = {name: value for name, value in reply.headers.items() if name.lower() != "x-amz-crc32"}
            x.fire(rule)
        await x.answer(reply)

    return fault


@pytest.fixture
def wire(dynamodb, s3once, table):
    with Proxy(dynamodb, "dynamodb") as proxy:
        s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = proxy.endpoint
        yield proxy


def described_as(wire, says):
    return wire.add(fake_replicas(says), "DescribeTable", times=None)


@SPLIT
def test_locks_refuse_a_table_whose_replicas_grant_locks_of_their_own(s3once, table, wire, says):
    s3once.environment["S3ONCE_LOCKS"] = f"dynamodb:{table}"
    rule = described_as(wire, says)
    run = s3once("lock", "init")
    assert run.code == 0 and "has replicas" in run.err and rule.fired, run
    for command in (("run", "k", "--", "false"), ("acquire", "--lease", "1m", "k")):
        run = s3once("lock", *command)
        assert run.code == (FAILED if command[0] == "run" else 3) and "has replicas" in run.err and "or allow replicas if all holders" in run.err, run
    assert s3once("lock", "status", "k").code == 0  # nothing was written
    assert s3once("lock", "run", "--allow-replicas", "k", "--", "true").code == 0


def test_locks_take_strongly_consistent_replicas(s3once, table, wire):
    s3once.environment["S3ONCE_LOCKS"] = f"dynamodb:{table}"
    rule = described_as(wire, STRONG)
    run = s3once("lock", "init")
    assert run.code == 0 and "replicas" not in run.err and rule.fired, run
    run = s3once("lock", "run", "k", "--", "true")
    assert run.code == 0 and "replicas" not in run.err, run


def test_denied_describe_table_is_warned_of(s3once, table, wire):
    s3once.environment["S3ONCE_LOCKS"] = f"dynamodb:{table}"
    assert s3once("lock", "init").code == 0
    wire.add(faults.answer(400, "AccessDeniedException"), "DescribeTable", times=None)
    run = s3once("lock", "run", "k", "--", "true")
    assert run.code == 0 and "allow dynamodb:DescribeTable" in run.err, run


@SPLIT
def test_marks_go_on_and_init_and_doctor_say_it(s3once, s3, bucket, table, wire, tmp_path, says):
    rule = described_as(wire, says)
    run = s3once("init", "--marks", f"dynamodb:{table}")
    assert run.code == 0 and "each Region judges claims by its own" in run.err and rule.fired, run
    run = s3once("doctor", f"s3://{bucket}", "--marks", f"dynamodb:{table}", "--json")
    found = {event["check"]: event for event in run.events}
    assert found["replicas"]["finding"] == "warning" and "one Region" in found["replicas"]["text"], run
    (tmp_path / "file").write_text("a line\n")
    assert s3once("push", tmp_path / "file", f"s3://{bucket}/p/", "--marks", f"dynamodb:{table}").code == 0


def test_strongly_consistent_replicas_have_no_time_to_live(s3once, s3, bucket, table, wire):
    described_as(wire, STRONG)
    run = s3once("init", "--marks", f"dynamodb:{table}")
    assert run.code == 0 and "strongly consistent replicas have no time to live" in run.err, run
    assert "UpdateTimeToLive" not in [kind for kind, _ in wire.kinds()]
    run = s3once("doctor", f"s3://{bucket}", "--marks", f"dynamodb:{table}", "--json")
    found = {event["check"]: event for event in run.events}
    assert found["replicas"]["finding"] == "ok", run
