"""`s3once watch` while what it needs is out of order: it says so, survives, and ships afterwards what came meanwhile."""

import pytest

from tests.faults import faults
from tests.faults.proxy import Proxy
from tests.system.fakes_keys import Keys
from tests.system.test_credentials import NOTHING, file_of, put
from tests.system.watching import Watched

HASTY = ("give-up-after = 0",)


@pytest.fixture
def watched(s3once, bucket, tmp_path):
    s3once.environment["AWS_MAX_ATTEMPTS"] = "1"
    return Watched(s3once, bucket, tmp_path)


@pytest.fixture
def table_wire(s3once, dynamodb, table):
    with Proxy(dynamodb, "dynamodb") as wire:
        s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = wire.endpoint
        assert s3once("init", "--marks", f"dynamodb:{table}").code == 0
        yield wire
        wire.clear()
        assert not wire.failures


def test_the_table_is_gone_for_a_while(watched, s3, table, table_wire, bucket):
    watched.write(*HASTY, marks=f"dynamodb:{table}", full_scan="1s")
    watched.start()
    table_wire.add(faults.refuse, times=None)
    watched.rename_in("a", 1)
    watched.manager.pass_with(failed=2)
    assert "job: exit status 3, is tried again" in watched.manager.lines[-2]
    table_wire.clear()
    watched.rename_in("b", 1)
    watched.manager.pass_with(files=2)
    run = watched.stop()
    s3.assert_same(watched.tree, bucket, "p")
    assert run.code == 0 and run.err.count("error") == run.err.count(f"dynamodb:{table}: the connection to"), run


@pytest.mark.full
def test_credentials_expire(watched, s3once, s3, s3_wire, bucket):
    keys = Keys()
    s3_wire.add(keys.gate, times=None)
    aws = s3once.home / ".aws"
    aws.mkdir()
    old, new = keys.issue("old"), keys.issue("new")
    put(aws / "credentials", file_of(old))
    watched.write(*HASTY, full_scan="1s")
    watched.start(env=NOTHING)
    old.expires = 0
    watched.rename_in("a", 1)
    watched.manager.pass_with(failed=2)
    put(aws / "credentials", file_of(new))
    watched.rename_in("b", 1)
    watched.manager.pass_with(files=2)
    run = watched.stop()
    s3.assert_same(watched.tree, bucket, "p")
    assert run.code == 0 and run.err.count("error") == run.err.count("the credentials have expired: renew them"), run
