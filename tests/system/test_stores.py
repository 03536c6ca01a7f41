"""The stores on real servers: the table of cases that the embedded store passes as well; and how a table is set up."""

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError

from tests.faults.proxy import Proxy
from tests.servers.dynalite import Dynalite
from tests.system.harness import BUILD, CRASHES, FULL, WRAP, DynamoDB

CONFORMANCE = BUILD / "tests" / "unit" / "store" / "store_conformance"
QUICK = "counts_and_time"  # a case that asks little, where only set-up is of interest
SERVERS = pytest.mark.parametrize("dynamodb", ["dynoxide", "dynalite"], indirect=True)


def conformance(s3once, table, *cases, endpoint=None, timeout=300, store="dynamodb"):
    env = dict(s3once.environment)
    if endpoint:
        env["AWS_ENDPOINT_URL_DYNAMODB"] = endpoint
    argv = [*WRAP, str(CONFORMANCE), f"{store}:{table}", *cases]
    done = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
    assert done.returncode not in CRASHES, done.stderr
    return done


def facts(done):
    """{"created": "1", "ttl": "0", "id": …, "shards": "16"} from the first line."""
    assert done.returncode == 0, done.stdout + done.stderr
    words = done.stdout.splitlines()[0].split(": ", 1)[1].split(", ")
    return dict(word.split() for word in words)


def settings_of(dynamodb, table):
    return [item for item in dynamodb.items(table) if item["pk"] == "settings"]


@SERVERS
def test_every_case(s3once, dynamodb, table):
    done = conformance(s3once, table)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout and done.stdout.count("ok ") >= 19


@pytest.mark.parametrize("dynamodb, how", [pytest.param("dynoxide", "lists", marks=pytest.mark.threaded), ("dynalite", "none")], indirect=["dynamodb"])
def test_every_case_with_batches(s3once, dynamodb, table, how):
    """Batches are used if the server honours the conditions of statements. All servers end the cases alike."""
    cases = [QUICK] if how == "none" and not FULL else []  # without batches each case is as in the test above
    done = conformance(s3once, table, *cases, store="batches")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout and done.stdout.count("ok ") >= (1 if cases else 19)
    assert f"batches: {how}\n" in done.stdout
    batches, puts, _ = map(int, re.search(r"requests: (\d+) batches, (\d+) puts, (\d+) updates", done.stdout).groups())
    assert batches > 100 if how == "lists" else batches == 1, done.stdout


@pytest.mark.parametrize("s3, etags", [("rgw", "bare"), ("simulated", "quoted")], indirect=["s3"])
def test_every_case_in_s3(s3once, s3, bucket, etags):
    """RGW compares etags without quotes, and the simulated S3 with them, as AWS does. That is found out once."""
    done = conformance(s3once, f"//{bucket}/of locks/", store="s3")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout and done.stdout.count("ok ") >= 19
    assert json.loads(s3.get(bucket, "of locks/store/conditions"))["etags"] == {"S": etags}
    assert not s3.objects(bucket, "of locks/probe/")  # with which it was found out


def test_no_item_is_twice_in_one_batch(s3once, dynamodb, table):
    """DynamoDB refuses such a request. Dynoxide does not, so that what is sent is looked at."""
    with Proxy(dynamodb, "dynamodb", latency=0.006) as wire:
        done = conformance(s3once, table, "no_lost_update", "one_winner", endpoint=wire.endpoint, store="batches")
        assert done.returncode == 0, done.stdout + done.stderr
        batches = [[(one.operation.pk, one.operation.key) for one in record.statements] for record in wire.history if record.statements]
        assert not wire.failures
    assert max(map(len, batches)) > 1 and all(len(set(keys)) == len(keys) for keys in batches)


@SERVERS
def test_several_make_one_table(s3once, dynamodb, table):
    with ThreadPoolExecutor(4) as pool:
        found = [facts(done) for done in pool.map(lambda _: conformance(s3once, table, QUICK), range(4))]
    assert sorted(fact["created"] for fact in found) == ["0", "0", "0", "1"]
    (settings,) = settings_of(dynamodb, table)
    assert {fact["id"] for fact in found} == {settings["id"]}
    assert (settings["sk"], settings["layout"], settings["shards"]) == ("-", 1, 16)
    again = facts(conformance(s3once, table, QUICK))
    assert (again["created"], again["id"]) == ("0", settings["id"])
    shape = dynamodb.client.describe_table(TableName=table)["Table"]
    assert shape["KeySchema"] == [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ]


def test_ttl_is_turned_on(s3once, dynoxide, dynamodb, table):
    assert facts(conformance(s3once, table, QUICK))["ttl"] == "1"
    ttl = dynoxide.client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    assert ttl["TimeToLiveStatus"] in ("ENABLED", "ENABLING") and ttl["AttributeName"] == "expires"


@pytest.mark.parametrize("dynamodb", ["dynalite"], indirect=True)
def test_server_without_ttl(s3once, dynamodb, table):
    assert facts(conformance(s3once, table, QUICK))["ttl"] == "0"


def make_table(client, table, hash_key, range_key=None):
    keys = [(hash_key, "HASH")] + ([(range_key, "RANGE")] if range_key else [])
    client.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": name, "KeyType": kind} for (name, _), kind in keys],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": type} for (name, type), _ in keys],
    )


@SERVERS
@pytest.mark.parametrize(
    "keys, named",
    [
        ([("id", "S")], 'partition key "id" (S) and no sort key'),
        ([("pk", "S")], 'partition key "pk" (S) and no sort key'),
        ([("pk", "S"), ("sk", "N")], 'partition key "pk" (S) and sort key "sk" (N)'),
        ([("pk", "B"), ("sk", "S")], 'partition key "pk" (B) and sort key "sk" (S)'),
        ([("sk", "S"), ("pk", "S")], 'partition key "sk" (S) and sort key "pk" (S)'),
    ],
)
def test_another_shape_is_refused(s3once, dynamodb, table, keys, named):
    make_table(dynamodb.client, table, *keys)
    done = conformance(s3once, table, QUICK)
    assert done.returncode == 1
    assert named in done.stderr and 'partition key "pk" (S) and sort key "sk" (S)' in done.stderr
    assert table in done.stderr
    assert dynamodb.items(table) == []


@pytest.mark.parametrize(
    "settings, word",
    [
        ({"id": {"S": "0" * 32}, "layout": {"N": "2"}, "shards": {"N": "16"}}, "layout 2"),
        ({"id": {"S": "0" * 32}, "shards": {"N": "16"}}, "damaged"),
        ({"id": {"S": "0" * 31}, "layout": {"N": "1"}, "shards": {"N": "16"}}, "damaged"),
        ({"id": {"S": "0" * 32}, "layout": {"N": "1"}, "shards": {"N": "0"}}, "damaged"),
        ({"id": {"S": "0" * 32}, "layout": {"N": "1"}, "shards": {"N": "1025"}}, "damaged"),
        ({"id": {"S": "0" * 32}, "layout": {"N": "1"}, "shards": {"S": "16"}}, "damaged"),
    ],
)
def test_settings_of_others_are_refused(s3once, dynamodb, table, settings, word):
    make_table(dynamodb.client, table, ("pk", "S"), ("sk", "S"))
    item = {"pk": {"S": "settings"}, "sk": {"S": "-"}, **settings}
    dynamodb.client.put_item(TableName=table, Item=item)
    done = conformance(s3once, table, QUICK)
    assert done.returncode == 1 and word in done.stderr
    assert dynamodb.client.get_item(TableName=table, Key={"pk": item["pk"], "sk": item["sk"]})["Item"] == item


def test_a_table_in_the_making_or_going_is_waited_for(s3once, tmp_path, table):
    with Dynalite(tmp_path / "slow", create_ms=600, delete_ms=600) as server:
        slow = DynamoDB(server.info())
        make_table(slow.client, table, ("pk", "S"), ("sk", "S"))
        assert slow.client.describe_table(TableName=table)["Table"]["TableStatus"] == "CREATING"
        first = facts(conformance(s3once, table, QUICK, endpoint=slow.endpoint))
        assert first["created"] == "0"
        slow.client.delete_table(TableName=table)
        assert slow.client.describe_table(TableName=table)["Table"]["TableStatus"] == "DELETING"
        second = facts(conformance(s3once, table, QUICK, endpoint=slow.endpoint))
        assert second["created"] == "1" and second["id"] != first["id"]
        with pytest.raises(ClientError):
            make_table(slow.client, table, ("pk", "S"), ("sk", "S"))
