"""`s3once init` cut at each of its requests: what it says is so, and the next init finishes what was begun."""

import pytest

from tests.faults import faults
from tests.faults.proxy import Proxy
from tests.system.harness import Program, fresh_name

KINDS = ["DescribeTable", "CreateTable", "UpdateTimeToLive", "GetItem:settings", "PutItem:settings"]
FAULTS = [
    faults.refuse, faults.drop_request, faults.drop_reply, faults.cut_reply, faults.garble_reply, faults.duplicate,
    faults.answer(500, "InternalServerError"), faults.answer(500, "InternalServerError", applied=True),
    faults.answer(400, "ThrottlingException"), faults.kill_before, faults.kill_after,
]  # fmt: skip


@pytest.fixture(scope="module")
def wire(dynoxide, tmp_path_factory):
    with Proxy(dynoxide, "dynamodb", tmp_path_factory.mktemp("wire")) as proxy:
        yield proxy
        assert not proxy.failures


def assert_ready(dynamodb, table):
    """By an independent client: what a run needs, once."""
    assert dynamodb.client.describe_table(TableName=table)["Table"]["TableStatus"] == "ACTIVE"
    ttl = dynamodb.client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    assert (ttl["TimeToLiveStatus"], ttl["AttributeName"]) == ("ENABLED", "expires")
    (settings,) = dynamodb.items(table)
    assert (settings["pk"], settings["shards"]) == ("settings", 4)


@pytest.mark.parametrize("kind", KINDS)
def test_cut_anywhere(dynoxide, wire, tmp_path, kind):
    for number, fault in enumerate(FAULTS):
        table = fresh_name("table")
        (tmp_path / str(number)).mkdir()
        program = Program(tmp_path / str(number), None, wire, table)
        rule = wire.add(fault, kind)
        run = program("init", "--shards", "4")
        assert rule.fired == 1, (rule.name, run)
        is_killed = fault in (faults.kill_before, faults.kill_after)
        assert (run.code == -9) if is_killed else run.code == 0, (rule.name, run)
        if run.code == 0:
            assert_ready(dynoxide, table)
        wire.clear()
        again = program("init", "--shards", "4")
        assert again.code == 0, (rule.name, again)
        assert_ready(dynoxide, table)
