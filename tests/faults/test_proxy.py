"""The wire proxy does what it says: where it does not, no other test of faults means anything."""

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, HTTPClientError, ReadTimeoutError

from tests.faults import faults
from tests.faults.checksums import base64_of, crc32c
from tests.faults.http1 import Headers, Request
from tests.faults.operations import of_dynamodb, of_s3
from tests.faults.proxy import Proxy
from tests.system.harness import MIB, S3, DynamoDB, content, fresh_name, wait_until

LOST = (HTTPClientError, ConnectionError, ConnectionClosedError, ReadTimeoutError)


@pytest.fixture
def proxy(s3):
    with Proxy(s3, "s3") as proxy:
        yield proxy
        assert not proxy.failures


@pytest.fixture
def through(proxy):
    return S3(proxy.info()).client


@pytest.fixture
def db_proxy(dynamodb):
    with Proxy(dynamodb, "dynamodb") as proxy:
        yield proxy
        assert not proxy.failures


@pytest.fixture
def db(db_proxy, dynamodb):
    """A client through the proxy and a table."""
    table = fresh_name("table")
    keys = [("pk", "HASH"), ("sk", "RANGE")]
    dynamodb.client.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in keys],
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys],
    )
    return DynamoDB(db_proxy.info()), table


def test_crc32c():
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"6789", crc32c(b"12345")) == 0xE3069283
    assert base64_of(crc32c(b"hello")) == "mnG7TA=="


@pytest.mark.parametrize(
    "method, target, kind",
    [
        ("PUT", "/b/k%20x?x-id=PutObject", "PutObject"),
        ("PUT", "/b/k%20x?partNumber=7&uploadId=u%2F1", "UploadPart"),
        ("POST", "/b/k%20x?uploads", "CreateMultipartUpload"),
        ("POST", "/b/k%20x?uploads=", "CreateMultipartUpload"),
        ("POST", "/b/k%20x?uploadId=u%2F1", "CompleteMultipartUpload"),
        ("DELETE", "/b/k%20x?uploadId=u%2F1", "AbortMultipartUpload"),
        ("GET", "/b/k%20x?max-parts=1&uploadId=u%2F1", "ListParts"),
        ("HEAD", "/b/k%20x", "HeadObject"),
        ("GET", "/b/?uploads", "ListMultipartUploads"),
        ("HEAD", "/b", "HeadBucket"),
        ("HEAD", "/b/", "HeadBucket"),
        ("GET", "/b?list-type=2", "ListObjectsV2"),
    ],
)
def test_kinds_of_s3(method, target, kind):
    operation = of_s3(Request(method, target, Headers()))
    assert (operation.kind, operation.bucket, operation.key) == (kind, "b", "k x" if "/k" in target else "")
    assert operation.upload == ("u/1" if "uploadId" in target else None)


MARK, SESSION = {"pk": {"S": "h:1/b#3"}, "sk": {"S": "k"}}, {"pk": {"S": "session#s1"}, "sk": {"S": "-"}}
DONE = {
    "Key": MARK,
    "UpdateExpression": "SET #0 = :0, #1 = :1 REMOVE #2",
    "ConditionExpression": "attribute_exists(#3) AND #0 = :2 AND #4 = :3 AND #5 = :4",
    "ExpressionAttributeNames": {"#0": "state", "#1": "size", "#2": "upload", "#3": "pk", "#4": "session", "#5": "claim"},
    "ExpressionAttributeValues": {":0": {"S": "done"}, ":1": {"N": "5"}, ":2": {"S": "claimed"}, ":3": {"S": "s1"}, ":4": {"S": "c1"}},
}


def update(key, **sets):
    names = {f"#{name}": name for name in sets}
    values = {f":{name}": {"S": value} for name, value in sets.items()}
    expression = "SET " + ", ".join(f"#{name} = :{name}" for name in sets)
    return {"Key": key, "UpdateExpression": expression, "ExpressionAttributeNames": names, "ExpressionAttributeValues": values}


@pytest.mark.parametrize(
    "name, call, kind",
    [
        ("PutItem", {"Item": {**MARK, "session": {"S": "s1"}, "claim": {"S": "c1"}}}, "PutItem:claim"),
        ("PutItem", {"Item": SESSION}, "PutItem:session"),
        ("PutItem", {"Item": {"pk": {"S": "settings"}, "sk": {"S": "-"}}}, "PutItem:settings"),
        ("UpdateItem", DONE, "UpdateItem:done"),
        ("UpdateItem", update(MARK, state="claimed", session="s1", claim="c1"), "UpdateItem:take"),
        ("UpdateItem", update(MARK, state="failed"), "UpdateItem:fail"),
        ("UpdateItem", update(MARK, upload="u"), "UpdateItem:upload"),
        ("UpdateItem", update(MARK, mtime="1"), "UpdateItem:refresh"),
        ("UpdateItem", update(SESSION, version="v"), "UpdateItem:heartbeat"),
        ("UpdateItem", update(SESSION, state="ended"), "UpdateItem:end"),
        ("GetItem", {"Key": SESSION}, "GetItem:session"),
        ("Query", {}, "Query"),
    ],
)
def test_kinds_of_dynamodb(name, call, kind):
    request = Request("POST", "/", Headers({"x-amz-target": f"DynamoDB_20120810.{name}"}))
    assert of_dynamodb(request, json.dumps(call)).kind == kind


def test_done_is_understood():
    request = Request("POST", "/", Headers({"x-amz-target": "DynamoDB_20120810.UpdateItem"}))
    operation = of_dynamodb(request, json.dumps(DONE))
    assert operation.sets == {"state": "done", "size": 5, "upload": None}
    assert operation.conditions == {"pk": "*", "state": "claimed", "session": "s1", "claim": "c1"}
    assert (operation.key, operation.session, operation.claim) == ("k", "s1", "c1")


def test_everything_passes_and_is_recorded(proxy, through, s3, bucket):
    body = content("big", 9 * MIB)
    through.put_object(Bucket=bucket, Key="a b/ü", Body=b"x" * 100, Metadata={"s3once-claim": "c1"})
    through.put_object(Bucket=bucket, Key="big", Body=body)
    assert s3.get(bucket, "a b/ü") == b"x" * 100
    assert hashlib.sha256(body).hexdigest() == s3.sha256(bucket, "big")
    assert through.head_object(Bucket=bucket, Key="big")["ContentLength"] == 9 * MIB
    with pytest.raises(ClientError):
        through.head_object(Bucket=bucket, Key="none")
    proxy.settle()
    assert proxy.kinds() == [("PutObject", 1), ("PutObject", 2), ("HeadObject", 1), ("HeadObject", 2)]
    first, second, _, last = proxy.history
    assert (first.operation.key, first.operation.claim, first.body_bytes) == ("a b/ü", "c1", 100)
    assert (second.crc32c, second.body_bytes, second.reused) == (crc32c(body), len(body), True)
    assert (second.answered, second.applied[0][1], last.answered) == (200, 200, 404)
    assert first.pid is None or first.pid == os.getpid()  # not a child


def test_the_client_process_is_found(proxy, s3, bucket):
    code = "import socket,sys; s=socket.create_connection(('127.0.0.1',%d)); s.sendall(b'GET / HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n'); s.recv(9)"
    child = subprocess.Popen([sys.executable, "-c", code % proxy.port])
    assert child.wait(20) == 0
    assert proxy.history[0].pid == child.pid


@pytest.mark.parametrize(
    "fault, arrives",
    [
        (faults.refuse, 0),
        (faults.drop_request, 0),
        (faults.drop_reply, 1),
        (faults.cut_request, 0),
        (faults.cut_reply, 1),
        (faults.garble_reply, 1),
        (faults.late_request(0.2), 1),
        (faults.hang, 0),
        (faults.hang_applied, 1),
        (faults.outage(0.2), 0),
    ],
    ids=lambda value: getattr(value, "name", None) or getattr(value, "__name__", None),
)
def test_no_answer(proxy, through, s3, bucket, fault, arrives):
    client = short(proxy) if fault.__name__.startswith("hang") else through
    rule = proxy.add(fault, "PutObject", nth=2)
    client.put_object(Bucket=bucket, Key="first", Body=b"x")
    with pytest.raises(LOST):
        client.put_object(Bucket=bucket, Key="a", Body=b"x" * MIB)
    proxy.settle()
    assert rule.fired == 1 and rule.records[0].index == 2
    assert len(s3.objects(bucket, "a")) == arrives
    wait_until(lambda: answers_again(client, bucket), 10)


def answers_again(client, bucket):
    try:
        client.put_object(Bucket=bucket, Key="a", Body=b"y")
        return True
    except LOST:
        return False


def short(proxy):
    import boto3
    import botocore.config

    config = botocore.config.Config(
        signature_version="s3v4", s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, read_timeout=0.5, proxies={}
    )
    keys = {"aws_access_key_id": proxy.access_key, "aws_secret_access_key": proxy.secret_key}
    return boto3.client("s3", endpoint_url=proxy.endpoint, region_name=proxy.region, config=config, **keys)


def test_sent_twice(proxy, through, bucket):
    proxy.add(faults.duplicate, "PutObject")
    late = proxy.add(faults.late_duplicate(0.1), "HeadObject")
    through.put_object(Bucket=bucket, Key="a", Body=b"x")
    through.head_object(Bucket=bucket, Key="a")
    proxy.settle()
    put, head = proxy.history
    assert [len(put.applied), len(head.applied), late.fired] == [2, 2, 1]


def test_answers_that_the_server_never_gave(proxy, through, s3, bucket):
    proxy.add(faults.answer(503, "SlowDown"), "PutObject")
    proxy.add(faults.answer(500, "InternalError", applied=True), "PutObject", nth=1)
    for code, objects in (("SlowDown", 0), ("InternalError", 1)):
        with pytest.raises(ClientError) as error:
            through.put_object(Bucket=bucket, Key="a", Body=b"x")
        assert error.value.response["Error"]["Code"] == code
        assert len(s3.objects(bucket)) == objects
    proxy.add(faults.wrong_etag, "PutObject")
    assert through.put_object(Bucket=bucket, Key="b", Body=b"x")["ETag"] == '"0123456789abcdef0123456789abcdef"'
    proxy.add(faults.trickle_reply(0.2), "HeadObject")
    begun = time.monotonic()
    through.head_object(Bucket=bucket, Key="b")
    assert time.monotonic() - begun > 0.2


def test_rules_choose(proxy, through, bucket):
    third = proxy.add(faults.answer(503, "SlowDown"), "PutObject", nth=3)
    by_key = proxy.add(faults.answer(500, "InternalError"), key="chosen", times=None)
    outcomes = []
    for key in ("a", "b", "c", "d", "chosen", "chosen"):
        try:
            through.put_object(Bucket=bucket, Key=key, Body=b"x")
            outcomes.append(200)
        except ClientError as error:
            outcomes.append(error.response["ResponseMetadata"]["HTTPStatusCode"])
    assert outcomes == [200, 200, 503, 200, 500, 500]
    assert (third.fired, by_key.fired) == (1, 2)
    proxy.begin_run()
    through.put_object(Bucket=bucket, Key="a", Body=b"x")
    assert proxy.history[-1].index == 1


def test_promises_about_the_body_are_verified(proxy, s3, bucket):
    client = S3(proxy.info())
    for size in (10, MIB):
        body = b"x" * size
        status, _, text = client.request("PUT", f"/{bucket}/k", {"x-amz-checksum-crc32c": "AAAAAA=="}, body)
        assert (status, b"BadDigest" in text) == (400, True)
        assert s3.objects(bucket) == {}
    right = {"x-amz-checksum-crc32c": base64_of(crc32c(b"x" * 10))}
    assert client.request("PUT", f"/{bucket}/k", right, b"x" * 10)[0] == 200


def test_a_gone_upload_is_really_gone(proxy, through, bucket):
    rule = proxy.add(faults.upload_gone, "UploadPart")
    upload = through.create_multipart_upload(Bucket=bucket, Key="a")["UploadId"]
    with pytest.raises(ClientError) as error:
        through.upload_part(Bucket=bucket, Key="a", UploadId=upload, PartNumber=1, Body=b"x")
    assert error.value.response["Error"]["Code"] == "NoSuchUpload" and rule.fired


def test_conditions_as_aws_has_them(s3, bucket):
    with Proxy(s3, "s3", behaves="aws") as proxy:
        client = S3(proxy.info())
        sum_of = {"x-amz-checksum-crc32c": base64_of(crc32c(b"x"))}
        status, headers, _ = client.request("PUT", f"/{bucket}/k", {"If-None-Match": "*", **sum_of}, b"x")
        assert (status, headers["x-amz-checksum-crc32c"]) == (200, sum_of["x-amz-checksum-crc32c"])
        assert client.request("PUT", f"/{bucket}/k", {"If-None-Match": "*"}, b"y")[0] == 412
        etag = headers["etag"]
        assert client.request("PUT", f"/{bucket}/k", {"If-Match": '"0"'}, b"y")[0] == 412
        assert client.request("HEAD", f"/{bucket}/k", {"x-amz-checksum-mode": "ENABLED"})[1]["x-amz-checksum-crc32c"]
        assert client.request("PUT", f"/{bucket}/k", {"If-Match": etag}, b"y")[0] == 200
        assert client.request("PUT", f"/{bucket}/none", {"If-Match": etag}, b"y")[0] == 404
        assert s3.get(bucket, "k") == b"y"

        body = b"z" * 5 * MIB
        upload = client.client.create_multipart_upload(Bucket=bucket, Key="k")["UploadId"]
        ids = {"Bucket": bucket, "Key": "k", "UploadId": upload}
        part = client.client.upload_part(PartNumber=1, Body=body, **ids)["ETag"]
        xml = f"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{part}</ETag></Part></CompleteMultipartUpload>"
        path = f"/{bucket}/k?uploadId={upload}"
        whole = {"x-amz-checksum-crc32c": base64_of(crc32c(body))}
        assert client.request("POST", path, {"If-None-Match": "*", **whole}, xml.encode())[0] == 412
        status, _, text = client.request("POST", path, whole, xml.encode())
        assert status == 200 and f"<ChecksumCRC32C>{whole['x-amz-checksum-crc32c']}<".encode() in text
        assert not proxy.failures


@pytest.mark.parametrize("behaves, status, after", [("ignores", 200, b"y"), ("refuses", 501, b"x")])
def test_conditions_taken_away(s3, bucket, behaves, status, after):
    s3.client.put_object(Bucket=bucket, Key="k", Body=b"x")
    with Proxy(s3, "s3", behaves=behaves) as proxy:
        assert S3(proxy.info()).request("PUT", f"/{bucket}/k", {"If-None-Match": "*"}, b"y")[0] == status
    assert s3.get(bucket, "k") == after


def test_fresh_connections_and_tls(s3, bucket):
    with Proxy(s3, "s3", close_each=True) as proxy:
        client = S3(proxy.info()).client
        for _ in range(3):
            client.put_object(Bucket=bucket, Key="k", Body=b"x")
        assert [record.reused for record in proxy.history] == [False] * 3
    with Proxy(s3, "s3", tls=True) as proxy:
        S3(proxy.info()).make_client(proxy.tls_endpoint).put_object(Bucket=bucket, Key="k", Body=b"x" * MIB)
        proxy.settle()
        assert proxy.endpoint.startswith("https") and proxy.history[0].answered == 200


def test_dynamodb_signatures_are_verified(db_proxy, db, dynamodb):
    client, table = db
    item = {"pk": {"S": "p"}, "sk": {"S": "k"}}
    client.client.put_item(TableName=table, Item=item)
    wrong = DynamoDB({**db_proxy.info(), "secret_key": "wrong"})
    status, reply = wrong.call("PutItem", TableName=table, Item=item)
    assert (status, reply["__type"].partition("#")[2]) == (400, "InvalidSignatureException")
    assert db_proxy.history[-1].refused and not db_proxy.history[-1].applied


def test_dynamodb_faults(db_proxy, db):
    client, table = db
    item = {"pk": {"S": "h/b#0"}, "sk": {"S": "k"}, "state": {"S": "claimed"}}
    for code in ("ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"):
        rule = db_proxy.add(faults.answer(400, code), "PutItem")
        status, reply = client.call("PutItem", TableName=table, Item=item)
        assert (status, reply["__type"].partition("#")[2], rule.fired) == (400, code, 1)
    lost = db_proxy.add(faults.drop_reply, "PutItem:claim")
    with pytest.raises(LOST):
        client.client.put_item(TableName=table, Item=item)
    assert lost.fired and len(client.items(table)) == 1


STATEMENTS = [
    ("INSERT INTO \"t\" VALUE {'pk':?,'sk':?,'session':?,'claim':?}", ["h:1/b#3", "k", "s1", "c1"], "PutItem:claim"),
    (
        'UPDATE "t" SET "state"=?,"size"=? REMOVE "upload","part" WHERE "pk"=? AND "sk"=? AND "session"=? AND "claim"=? AND "x" IS MISSING',
        ["done", "5", "h:1/b#3", "k", "s1", "c1"],
        "UpdateItem:done",
    ),
    (
        'UPDATE "t" SET "state"=? SET "claim"=? WHERE "pk"=? AND "sk"=? AND "claim"=?',
        ["claimed", "c1", "h:1/b#3", "k", "c0"],
        "UpdateItem:take",
    ),
]


def test_statements_are_what_they_would_be_alone():
    request = Request("POST", "/", Headers({"x-amz-target": "DynamoDB_20120810.BatchExecuteStatement"}))
    call = [{"Statement": text, "Parameters": [{"S": value} for value in values]} for text, values, _ in STATEMENTS]
    batch = of_dynamodb(request, json.dumps({"Statements": call}))
    assert batch.kind == "BatchExecuteStatement:marks"
    assert [one.kind for one in batch.statements] == [kind for _, _, kind in STATEMENTS]
    assert {(one.pk, one.key, one.claim) for one in batch.statements} == {("h:1/b#3", "k", "c1")}
    assert batch.statements[1].sets == {"state": "done", "size": "5", "upload": None, "part": None}
    assert batch.statements[1].conditions == {"session": "s1", "claim": "c1", "x": None}


def test_a_stopped_client_goes_on(proxy, s3, bucket):
    code = (
        "import sys; from tests.system.harness import S3; import json;"
        "S3(json.loads(sys.argv[1])).client.put_object(Bucket=sys.argv[2], Key='k', Body=b'x')"
    )
    rule = proxy.add(faults.stop_before, "PutObject")
    argv = [sys.executable, "-c", code, json.dumps(proxy.info()), bucket]
    child = subprocess.Popen(argv, cwd=os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
    try:
        assert rule.reached.wait(60)
        assert open(f"/proc/{child.pid}/stat").read().rsplit(")", 1)[1].split()[0] in "Tt"
        assert s3.objects(bucket) == {}
        child.send_signal(signal.SIGCONT)
        rule.released.set()
        assert child.wait(20) == 0
        assert set(s3.objects(bucket)) == {"k"}
    finally:
        child.kill()
        child.wait()
