"""The servers do what the program relies on: where one changes, this says so before anything else does."""

import base64
import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real_s3

from tests.servers.nginx_sink import NginxSink
from tests.servers.rgw import Rgw
from tests.system.harness import MIB, REPOSITORY, S3, fresh_name, wait_until

both_s3 = pytest.mark.parametrize("s3", ["rgw", "swift"], indirect=True)


@both_s3
def test_objects_are_stored_and_listed(s3, bucket, tmp_path):
    keys = ["a", "p//q", "ü/日本", "x +%&='\"#?;~\\*[]", "..foo"]
    for key in keys:
        s3.client.put_object(Bucket=bucket, Key=key, Body=key.encode(), Metadata={"mtime": "1.5"})
    assert set(s3.objects(bucket)) == set(keys)
    assert s3.objects(bucket, "p//", metadata=True)["p//q"].metadata == {"mtime": "1.5"}
    assert s3.get(bucket, "ü/日本") == "ü/日本".encode()


@both_s3
def test_wrong_signature_is_refused(s3, bucket):
    other = S3({**vars(s3), "secret_key": "wrong"})
    status, _, body = other.request("PUT", f"/{bucket}/a", body=b"x")
    assert (status, b"SignatureDoesNotMatch" in body) == (403, True)


@both_s3
def test_wrong_content_md5_is_refused(s3, bucket):
    md5 = base64.b64encode(hashlib.md5(b"other").digest()).decode()
    status, _, body = s3.request("PUT", f"/{bucket}/a", {"Content-MD5": md5}, b"x")
    assert (status, b"BadDigest" in body) == (400, True)


@pytest.mark.parametrize("s3, status", [("rgw", 412), ("swift", 501)], indirect=["s3"])
def test_put_if_none_match(s3, bucket, status):
    path, header = f"/{bucket}/a", {"If-None-Match": "*"}
    s3.client.put_object(Bucket=bucket, Key="a", Body=b"first")
    assert s3.request("PUT", path, header, b"second")[0] == status
    assert s3.get(bucket, "a") == b"first"


def complete(s3, bucket, key, bodies, headers=None):
    """A multipart upload sent part by part: the answer to Complete, and the upload id."""
    upload = s3.client.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    rows = ""
    for number, body in enumerate(bodies, 1):
        ids = {"Bucket": bucket, "Key": key, "UploadId": upload}
        etag = s3.client.upload_part(PartNumber=number, Body=body, **ids)["ETag"]
        rows += f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"
    body = f"<CompleteMultipartUpload>{rows}</CompleteMultipartUpload>".encode()
    return s3.request("POST", f"/{bucket}/{key}?uploadId={upload}", headers, body), upload


@pytest.mark.parametrize("s3, status", [("rgw", 200), ("swift", 412)], indirect=["s3"])
def test_complete_if_none_match(s3, bucket, status):
    s3.client.put_object(Bucket=bucket, Key="a", Body=b"first")
    answer, _ = complete(s3, bucket, "a", [b"x" * 5 * MIB, b"y"], {"If-None-Match": "*"})
    assert answer[0] == status
    assert s3.objects(bucket)["a"].size == (5 * MIB + 1 if status == 200 else 5)


def test_rgw_completes_with_or_without_an_etag_and_head_shows_it(s3, bucket):
    """Ceph 16 without, Ceph 18 with it."""
    parts = [b"x" * 5 * MIB, b"y"]
    (status, _, body), _ = complete(s3, bucket, "a", parts)
    digest = hashlib.md5(b"".join(hashlib.md5(part).digest() for part in parts)).hexdigest()
    assert status == 200 and re.findall(b"<ETag>(.*)</ETag>", body)[0].decode() in ("", f"{digest}-2")
    assert s3.client.head_object(Bucket=bucket, Key="a")["ETag"] == f'"{digest}-2"'


def test_rgw_ignores_a_wrong_checksum_and_echoes_none(s3, bucket):
    status, headers, _ = s3.request("PUT", f"/{bucket}/a", {"x-amz-checksum-crc32": "AAAAAA=="}, b"x")
    assert (status, [name for name in headers if "checksum" in name]) == (200, [])


@both_s3
def test_open_uploads_and_their_parts_are_seen(s3, bucket):
    upload = s3.client.create_multipart_upload(Bucket=bucket, Key="a")["UploadId"]
    s3.client.upload_part(Bucket=bucket, Key="a", UploadId=upload, PartNumber=1, Body=b"x" * 5 * MIB)
    assert s3.uploads(bucket) == {("a", upload): [(1, 5 * MIB)]}


def test_rgw_speaks_tls(s3, bucket):
    s3.make_client(s3.tls_endpoint).put_object(Bucket=bucket, Key="a", Body=b"x")
    assert s3.get(bucket, "a") == b"x"


def test_rgw_gateway_comes_back_with_its_data():
    with Rgw() as server:
        s3 = S3(server.info())
        s3.client.create_bucket(Bucket="bucket")
        s3.client.put_object(Bucket="bucket", Key="a", Body=b"x")
        server.kill_gateway()
        server.start_gateway()
        assert s3.get("bucket", "a") == b"x"


def test_rgw_logs_its_requests():
    with Rgw(access_log=True) as server:
        s3 = S3(server.info())
        s3.client.create_bucket(Bucket="bucket")
        wait_until(server.requests)  # it logs behind its reply
        s3.client.put_object(Bucket="bucket", Key='a "b', Body=b"12345")
        assert wait_until(server.requests) == [{"method": "PUT", "uri": "/bucket/a%20%22b", "status": 200, "bytes": 5}]


def create_table(dynamodb):
    table = fresh_name("table")
    keys = [("pk", "HASH"), ("sk", "RANGE")]
    dynamodb.client.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in keys],
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys],
    )
    wait_until(lambda: dynamodb.client.describe_table(TableName=table)["Table"]["TableStatus"] == "ACTIVE")
    return table


@pytest.mark.parametrize("dynamodb, shown", [("dynoxide", True), ("dynalite", False)], indirect=["dynamodb"])
def test_failed_condition_shows_the_item(dynamodb, shown):
    table = create_table(dynamodb)
    item = {"pk": {"S": "p"}, "sk": {"S": "s"}, "claim": {"S": "first"}}
    put = {"TableName": table, "Item": item, "ConditionExpression": "attribute_not_exists(pk)"}
    assert dynamodb.call("PutItem", **put)[0] == 200
    status, reply = dynamodb.call("PutItem", **put, ReturnValuesOnConditionCheckFailure="ALL_OLD")
    assert (status, reply["__type"].split("#")[1]) == (400, "ConditionalCheckFailedException")
    assert reply.get("Item") == (item if shown else None)
    assert dynamodb.items(table) == [{"pk": "p", "sk": "s", "claim": "first"}]


@pytest.mark.parametrize("dynamodb, known", [("dynoxide", True), ("dynalite", False)], indirect=["dynamodb"])
def test_time_to_live_is_known(dynamodb, known):
    table = create_table(dynamodb)
    ttl = {"AttributeName": "expires", "Enabled": True}
    status, _ = dynamodb.call("UpdateTimeToLive", TableName=table, TimeToLiveSpecification=ttl)
    assert (status == 200) == known


def test_proxy_counts_requests_and_bytes(s3_proxy, s3, bucket):
    through = S3(s3_proxy.info())
    through.client.put_object(Bucket=bucket, Key="a b", Body=b"x" * 100_000)
    through.make_client(s3_proxy.tls_endpoint).put_object(Bucket=bucket, Key="c", Body=b"y")
    first, second = s3_proxy.requests()
    assert (first["method"], first["uri"], first["status"]) == ("PUT", f"/{bucket}/a%20b", 200)
    assert (first["body_bytes"], second["body_bytes"]) == (100_000, 1)
    assert s3_proxy.requests() == []
    assert s3.get(bucket, "a b") == b"x" * 100_000


def test_proxy_counts_dynamodb_operations(dynamodb_proxy, dynamodb):
    table = create_table(dynamodb)
    client = type(dynamodb)(dynamodb_proxy.info())
    client.items(table)
    assert [request["target"] for request in dynamodb_proxy.requests()] == ["DynamoDB_20120810.Scan"]


def test_sink_answers_proof():
    with NginxSink(md5=True) as sink:
        s3 = S3(sink.info())
        _, headers, _ = s3.request("PUT", "/b/k", {"x-amz-checksum-crc32c": "yZRlqg=="}, b"hello")
        assert headers["etag"] == f'"{hashlib.md5(b"hello").hexdigest()}"'
        assert headers["x-amz-checksum-crc32c"] == "yZRlqg=="
        assert complete(s3, "b", "k", [b"x"])[0][0] == 200


def children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def has_ended(pid):
    """Also true of a zombie that its new parent has not collected yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.fixture
def runner(tmp_path):
    """`python3 -m tests.servers` of an owner that can be killed: (owner, runner, pids of the servers)."""
    owner = subprocess.Popen(["sleep", "60"])
    argv = [sys.executable, "-m", "tests.servers", "--dir", tmp_path, "--owner", str(owner.pid), "rgw", "sink"]
    runner = subprocess.Popen(argv, cwd=REPOSITORY, stdout=subprocess.DEVNULL)
    try:
        wait_until((tmp_path / "env").exists, 60)
        pids = children(runner.pid)
        assert len(pids) == 4
        yield owner, runner, pids
    finally:
        for process in (owner, runner):
            process.kill()
            process.wait()


def test_servers_end_with_their_owner(runner):
    owner, process, pids = runner
    owner.kill()
    owner.wait()
    assert process.wait(20) == 0
    assert all(map(has_ended, pids))


def test_servers_do_not_outlive_a_killed_runner(runner):
    _, process, pids = runner
    process.kill()
    process.wait()
    wait_until(lambda: all(map(has_ended, pids)), 60, "the end of the servers")
