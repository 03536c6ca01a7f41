"""src/s3 and src/dynamodb against real servers, call by call, through aws_probe; what it did is read back with boto3."""

import base64
import hashlib
import json
import random
import ssl
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.faults.checksums import base64_of, crc32c
from tests.faults.proxy import Proxy
from tests.system.harness import BUILD, MIB, Program, content, fresh_name, wait_until

both_s3 = pytest.mark.parametrize("s3", ["rgw", "swift"], indirect=True)
both_dynamodb = pytest.mark.parametrize("dynamodb", ["dynoxide", "dynalite"], indirect=True)

ECHOES, PUT_CONDITION, COMPLETE_CONDITION, IF_MATCH = range(4)  # enum s3_feature
UNKNOWN, YES, NO = range(3)  # enum s3_support


class Probe(Program):
    """Runs aws_probe; a call gives its reply, or the list of them for repeat=N and for several calls."""

    def binary(self):
        return BUILD / "tests" / "system" / "aws_probe"

    def __call__(self, *args, repeat=1, env=None, timeout=120, **options):
        words = [f"--repeat={repeat}"] if repeat > 1 else []
        for name, values in options.items():  # a list is the option several times
            for value in values if isinstance(values, list) else [values]:
                words.append(f"--{name.replace('_', '-')}" + ("" if value is True else f"={value}"))
        result = self.start(*words, "--", *[str(arg) for arg in args], env=env).wait(timeout)
        assert result.code == 0, result
        return result.events if repeat > 1 or "then" in args else result.events[0]


@pytest.fixture
def probes(s3, bucket, tmp_path):
    """probes(["put", KEY, FILE], …): the replies to several calls, which one process makes on the bucket."""
    program = Probe(tmp_path, s3)
    yield lambda *calls: program("s3", bucket, *(word for call in calls for word in (*call, "then")))
    program.kill_all()


@pytest.fixture
def probe(s3, bucket, tmp_path):
    """probe("put", KEY, FILE) on the bucket."""
    program = Probe(tmp_path, s3)
    yield lambda *args, at=bucket, **how: program("s3", at, *args, **how)
    program.kill_all()


@pytest.fixture
def file(tmp_path):
    def make(data):
        path = tmp_path / f"data{random.getrandbits(64):x}"
        path.write_bytes(data)
        return path

    return make


def md5(data):
    return hashlib.md5(data).hexdigest()


# --- objects

HARD_KEYS = [
    "plain",
    "a b",
    "+%&='\"#?;~\\*[]",
    "{}|^`<>!$(),:@",
    "%41",
    "a+b c%20d",
    "folder//file",
    "/leading",
    "trailing/",
    ".dot",
    "..foo",
    "a/../b",
    "a/./b",
    "\u00e4\u20ac\U0001f600",
    "a\u0308",
    "x=y&uploads",
    "k/" + "n" * 940,
]


@both_s3
def test_hard_keys_arrive_as_they_are(s3, bucket, probes, file):
    bodies = {key: f"content {number}".encode() for number, key in enumerate(HARD_KEYS)}
    replies = probes(*(["put", key, file(body)] for key, body in bodies.items()))
    for (key, body), reply in zip(bodies.items(), replies, strict=True):
        assert (reply["outcome"], reply["etag"]) == ("ok", md5(body)), (key, reply)
    found = s3.objects(bucket)
    assert sorted(found) == sorted(HARD_KEYS)
    for key, reply in zip(HARD_KEYS, probes(*(["head", key] for key in HARD_KEYS)), strict=True):
        assert found[key].etag == md5(bodies[key]), key
        assert (reply["outcome"], reply["etag"]) == ("ok", found[key].etag), (key, reply)


@both_s3
@pytest.mark.parametrize("size", [0, 1, 4096, 17 * MIB])
@pytest.mark.parametrize("stream", [False, True])
def test_bodies_of_every_kind(s3, bucket, probe, file, size, stream):
    data = content("body", size)
    reply = probe("put", "key", file(data), **({"stream": True} if stream else {}))
    assert (reply["outcome"], reply["size"], reply["etag"]) == ("ok", size, md5(data))
    assert s3.sha256(bucket, "key") == hashlib.sha256(data).hexdigest()


@both_s3
def test_metadata_comes_back(s3, bucket, probe, file):
    given = {"table": "t1", "claim": "c1", "mtime": 1637000000123456789, "part": 8388608}
    assert probe("put", "key", file(b"x"), **given)["outcome"] == "ok"
    reply = probe("head", "key")
    assert (reply["outcome"], reply["size"], reply["etag"]) == ("ok", 1, md5(b"x"))
    assert (reply["table"], reply["claim"], reply["mtime_ns"], reply["part_bytes"]) == tuple(given.values())
    assert s3.client.head_object(Bucket=bucket, Key="key")["Metadata"] == {
        "s3once-table": "t1",
        "s3once-claim": "c1",
        "s3once-key": hashlib.sha256(f"{bucket}/key".encode()).hexdigest()[:20],
        "s3once-part": "8388608",
        "s3once-sums": f"crc32c:{base64_of(crc32c(b'x'))} md5:{base64.b64encode(hashlib.md5(b'x').digest()).decode()}",
        "mtime": "1637000000.123456789",
    }
    s3.client.put_object(Bucket=bucket, Key="foreign", Body=b"xy", Metadata={"mtime": "yesterday"})
    reply = probe("head", "foreign")
    assert (reply["size"], reply["table"], reply["mtime_ns"], reply["part_bytes"]) == (2, "", 0, 0)
    assert probe("head", "none")["outcome"] == "absent"


@both_s3
def test_a_server_without_echo_is_given_md5_and_learned(probe, file):
    first, second = probe("put", "key", file(b"x"), repeat=2)
    assert first["sent_md5"] and second["sent_md5"]
    assert first["crc32c"] == "" and first["knows"][ECHOES] == NO


def test_put_if_none_match_refused(s3, bucket, probe, file):
    first, second = probe("put", "key", file(b"one"), if_none_match=True, repeat=2)
    assert first["outcome"] == "ok" and first["knows"][PUT_CONDITION] == UNKNOWN
    assert second["outcome"] == "refused" and second["knows"][PUT_CONDITION] == UNKNOWN, "several at once may still all be taken"
    assert second["problem"]["code"] == "PreconditionFailed" and second["problem"]["request_id"]
    assert probe("put", "key", file(b"two"), if_none_match=True)["outcome"] == "refused"
    assert s3.get(bucket, "key") == b"one"
    assert probe("put", "key", file(b"two"), if_match="0" * 32)["outcome"] == "refused"
    assert s3.get(bucket, "key") == b"one"


@pytest.mark.parametrize("s3", ["swift"], indirect=True)
def test_put_if_none_match_unsupported(s3, bucket, probe, file):
    reply = probe("put", "key", file(b"one"), if_none_match=True)
    assert reply["outcome"] == "unsupported" and reply["knows"][PUT_CONDITION] == NO
    assert reply["problem"]["status"] == 501
    assert probe("put", "key", file(b"one"))["outcome"] == "ok"
    assert probe("put", "key", file(b"two"), if_match=md5(b"one"))["outcome"] == "unsupported"
    assert s3.get(bucket, "key") == b"one"


@both_s3
def test_other_bytes_than_announced_are_refused(s3, bucket, probe, file):
    reply = probe("put", "key", file(b"x"), wrong_digest=True)
    assert reply["outcome"] == "bad digest", reply
    assert s3.objects(bucket) == {}


# --- multipart


def start_upload(probe, key, **meta):
    reply = probe("create", key, **meta)
    assert reply["outcome"] == "ok", reply
    return reply["upload_id"]


@both_s3
@pytest.mark.parametrize("key", ["big", "a b/+%&='\"#?ä"])
def test_multipart_from_create_to_head(s3, bucket, probe, file, key):
    data = content("multipart", 5 * MIB + 3)
    upload = start_upload(probe, key, table="t", claim="c", mtime=1500000000, part=5 * MIB)
    pieces = [data[: 5 * MIB], data[5 * MIB :]]
    parts = []
    for number, piece in enumerate(pieces, 1):
        reply = probe("part", key, upload, number, file(piece), stream=True)
        assert reply["outcome"] == "ok", reply
        assert (reply["part"]["size"], reply["part"]["etag"]) == (len(piece), md5(piece))
        parts.append(reply["part"])
    assert s3.objects(bucket) == {}
    listed = probe("parts", key, upload)
    assert (listed["outcome"], listed["parts"]) == ("ok", parts)
    ended = probe("parts", key, upload, stop_after=1)
    assert (ended["outcome"], len(ended["parts"])) == ("local", 1)
    etags = [f"{part['number']}:{part['etag']}" for part in parts]
    done = probe("complete", key, upload, file(data), *etags)
    assert (done["outcome"], done["size"]) == ("ok", len(data)), done
    whole = hashlib.md5(b"".join(hashlib.md5(piece).digest() for piece in pieces)).hexdigest() + "-2"
    assert done["etag"] in ("", whole)
    reply = probe("head", key)
    assert (reply["size"], reply["etag"], reply["mtime_ns"]) == (len(data), whole, 1500000000)
    assert (reply["table"], reply["claim"], reply["part_bytes"]) == ("t", "c", 5 * MIB)
    assert s3.sha256(bucket, key) == hashlib.sha256(data).hexdigest()


@both_s3
def test_upload_that_is_not_there(s3, bucket, probe, file):
    upload = start_upload(probe, "key")
    assert probe("part", "key", upload, 1, file(b"x"))["outcome"] == "ok"
    assert probe("abort", "key", upload)["outcome"] == "ok"
    assert s3.uploads(bucket) == {}
    assert probe("abort", "key", upload)["outcome"] == "no such upload"
    assert probe("parts", "key", upload)["outcome"] == "no such upload"
    assert probe("part", "key", upload, 2, file(b"x"))["outcome"] == "no such upload"


@both_s3
def test_complete_of_parts_that_the_server_has_not(s3, bucket, probe, file):
    upload = start_upload(probe, "key")
    part = probe("part", "key", upload, 1, file(b"x"))["part"]
    wrong = probe("complete", "key", upload, file(b"x"), f"1:{md5(b'y')}")
    missing = probe("complete", "key", upload, file(b"xx"), f"1:{part['etag']}", f"2:{md5(b'x')}")
    assert (wrong["outcome"], missing["outcome"]) == ("bad part", "bad part"), (wrong, missing)
    assert s3.objects(bucket) == {}


@pytest.mark.parametrize("s3", ["swift"], indirect=True)
def test_complete_if_none_match_refused(s3, bucket, probe, file):
    upload = start_upload(probe, "key")
    part = probe("part", "key", upload, 1, file(b"new"))["part"]
    s3.client.put_object(Bucket=bucket, Key="key", Body=b"old")
    reply = probe("complete", "key", upload, file(b"new"), f"1:{part['etag']}", if_none_match=True)
    assert reply["outcome"] == "refused" and reply["knows"][COMPLETE_CONDITION] == UNKNOWN
    assert s3.get(bucket, "key") == b"old"


@both_s3
def test_part_of_other_bytes_is_refused(probe, file):
    upload = start_upload(probe, "key")
    assert probe("part", "key", upload, 1, file(b"x"), wrong_digest=True)["outcome"] == "bad digest"
    assert "parts" not in probe("parts", "key", upload)


def test_parts_beyond_one_page(s3, bucket, probe):
    upload = start_upload(probe, "key")

    def send(number):
        s3.client.upload_part(Bucket=bucket, Key="key", UploadId=upload, PartNumber=number, Body=b"%d" % number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(send, range(1, 1012)))
    reply = probe("parts", "key", upload)
    assert reply["outcome"] == "ok" and reply["requests"] == {"ListParts": 2}
    assert [part["number"] for part in reply["parts"]] == list(range(1, 1012))
    assert all(part["etag"] == md5(b"%d" % part["number"]) for part in reply["parts"])


@both_s3
def test_uploads_are_listed(s3, bucket, probe):
    keys = ["a b", "a+b", "p/ä", "p/x&<y>", "p/x&<y>"]
    ids = sorted((key, start_upload(probe, key)) for key in keys)
    reply = probe("uploads")
    assert sorted((row["key"], row["upload_id"]) for row in reply["uploads"]) == ids
    assert all(abs(row["initiated_s"] - time.time()) < 300 for row in reply["uploads"])
    below = probe("uploads", "p/")["uploads"]
    assert sorted((row["key"], row["upload_id"]) for row in below) == [row for row in ids if row[0].startswith("p/")]
    assert "uploads" not in probe("uploads", "q")
    assert probe("uploads", stop_after=1)["outcome"] == "local"


@pytest.mark.real_s3
def test_one_page_of_uploads(s3, bucket, probe):
    """Nothing asks for more than the first thousand."""

    def create(number):
        key = f"k {number // 2}"
        return key, s3.client.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]

    def abort(upload):
        s3.client.abort_multipart_upload(Bucket=bucket, Key=upload[0], UploadId=upload[1])

    with ThreadPoolExecutor(4) as pool:
        created = sorted(pool.map(create, range(1010)))
        reply = probe("uploads")
        list(pool.map(abort, created))
    assert reply["outcome"] == "ok" and reply["requests"] == {"ListMultipartUploads": 1}
    rows = [(row["key"], row["upload_id"]) for row in reply["uploads"]]
    assert len(rows) == 1000 and set(rows) <= set(created)


# --- what only someone can fix


@both_s3
@pytest.mark.parametrize(
    "env, code",
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "SignatureDoesNotMatch"),
        ({"AWS_ACCESS_KEY_ID": "AKIAUNKNOWN"}, "InvalidAccessKeyId"),
    ],
)
def test_wrong_credentials(probe, file, env, code):
    reply = probe("put", "key", file(b"x"), env=env)
    assert reply["outcome"] == "setup", reply
    assert reply["problem"]["code"] in (code, "SignatureDoesNotMatch")  # Swift says this of an unknown key as well


def test_no_credentials(probe, file):
    reply = probe("put", "key", file(b"x"), env={"AWS_ACCESS_KEY_ID": None})
    assert reply["outcome"] == "setup" and "no credentials: AWS_ACCESS_KEY_ID is not set" in reply["problem"]["text"]
    assert reply["requests"] == {}


@both_s3
def test_no_bucket(probe, file):
    gone = fresh_name("bucket")
    reply = probe("put", "key", file(b"x"), at=gone)
    assert (reply["outcome"], reply["problem"]["code"]) == ("setup", "NoSuchBucket")
    assert probe("create", "key", at=gone)["outcome"] == "setup"
    assert probe("uploads", at=gone)["outcome"] == "setup"
    assert probe("bucket", at=gone)["outcome"] == "setup"
    assert probe("bucket")["outcome"] == "ok"


def test_server_that_does_not_listen(probe, file):
    reply = probe("put", "key", file(b"x"), env={"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9"})
    assert reply["outcome"] == "setup", reply
    assert "127.0.0.1" in reply["problem"]["text"]


@pytest.mark.real_s3
def test_over_tls(s3, bucket, probe, file):
    data = content("tls", MIB)
    env = {"AWS_ENDPOINT_URL_S3": s3.tls_endpoint, "AWS_CA_BUNDLE": s3.ca}
    first, second = probe("put", "key", file(data), env=env, if_none_match=True, repeat=2)
    assert (first["outcome"], first["etag"], second["outcome"]) == ("ok", md5(data), "refused")
    assert s3.sha256(bucket, "key") == hashlib.sha256(data).hexdigest()
    reply = probe("put", "other", file(data), env={**env, "AWS_CA_BUNDLE": None})
    assert reply["outcome"] == "setup", reply
    assert list(s3.objects(bucket)) == ["key"]


class Chosen(Proxy):
    """Takes the first cipher that a client offers, as servers do by default: .ciphers, of each connection."""

    ciphers = ()
    version = None

    async def listen(self, port=0):
        self.context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
        self.context.maximum_version = self.version
        await super().listen(port)

    async def accept(self, reader, writer):
        self.ciphers = [*self.ciphers, writer.get_extra_info("cipher")[0]]
        await super().accept(reader, writer)


@pytest.mark.parametrize(
    "version, cipher",
    [(ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES128-GCM-SHA256"), (ssl.TLSVersion.TLSv1_3, "TLS_AES_128_GCM_SHA256")],
)
def test_the_cheaper_cipher_is_offered_first(s3, bucket, probe, file, tmp_path, version, cipher):
    proxy = Chosen(s3, "s3", tmp_path / "proxy", tls=True)
    proxy.version = version
    with proxy:
        env = {"AWS_ENDPOINT_URL_S3": proxy.endpoint, "AWS_CA_BUNDLE": str(proxy.ca)}
        assert probe("put", "key", file(b"x"), env=env)["outcome"] == "ok"
    assert proxy.ciphers == [cipher]


@pytest.mark.real_s3
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_bucket_in_the_host_name(s3, bucket, probe, file, tmp_path, scheme):
    """Virtual-host style; curl itself finds *.localhost, and the certificate is for *.s3.localhost."""
    config = tmp_path / "config"
    config.write_text("[default]\ns3 =\n  addressing_style = virtual\n")
    endpoint = s3.endpoint if scheme == "http" else s3.tls_endpoint
    env = {
        "AWS_ENDPOINT_URL_S3": endpoint.replace("127.0.0.1", "s3.localhost"),
        "AWS_CONFIG_FILE": config,
        "AWS_CA_BUNDLE": s3.ca,
    }
    for number, key in enumerate(HARD_KEYS):
        assert probe("put", key, file(b"%d" % number), env=env)["outcome"] == "ok", key
    assert {key: found.etag for key, found in s3.objects(bucket).items()} == {
        key: md5(b"%d" % number) for number, key in enumerate(HARD_KEYS)
    }
    assert probe("bucket", env=env)["outcome"] == "ok"
    assert "uploads" not in probe("uploads", env=env)


# --- DynamoDB


@pytest.fixture
def db(dynamodb, tmp_path):
    """db("put", PK, SK, ITEM) on a table made by aws_probe."""
    program = Probe(tmp_path, None, dynamodb)
    name = fresh_name("table")

    def run(*args, at=name, **how):
        return program("dynamodb", at, *args, **how)

    run.table = name
    reply = run("create")
    assert reply["outcome"] == "ok", reply
    wait_until(lambda: run("describe").get("shape", [""])[0] == "ACTIVE")
    yield run
    program.kill_all()


def stored(dynamodb, db, pk, sk):
    """The item as boto3 sees it, without its keys."""
    item = dynamodb.client.get_item(TableName=db.table, Key={"pk": {"S": pk}, "sk": {"S": sk}}, ConsistentRead=True)
    return {name: value for name, value in item.get("Item", {}).items() if name not in ("pk", "sk")}


def item_of(reply):
    return {name: value for name, value in reply["item"].items() if name not in ("pk", "sk")}


@both_dynamodb
def test_tables(dynamodb, db):
    assert db("describe")["shape"] == ["ACTIVE", "pk", "sk", "S", "S"]
    assert db("create")["outcome"] == "refused"
    assert db("describe", at="no-such-table")["outcome"] == "absent"
    other = fresh_name("table")
    assert db("create", at=other, keys="id")["outcome"] == "ok"
    assert db("describe", at=other)["shape"][1:] == ["id", "", "S", ""]
    billing = dynamodb.client.describe_table(TableName=db.table)["Table"].get("BillingModeSummary", {})
    assert billing.get("BillingMode") == "PAY_PER_REQUEST"


@both_dynamodb
def test_ttl(request, dynamodb, db):
    first, second = db("ttl", "expires", repeat=2)
    if "dynalite" in request.node.callspec.params.values():
        assert first["outcome"] == second["outcome"] == "unsupported"
        return
    assert (first["outcome"], second["outcome"]) == ("ok", "ok"), (first, second)
    on = dynamodb.client.describe_time_to_live(TableName=db.table)["TimeToLiveDescription"]
    assert (on["TimeToLiveStatus"], on["AttributeName"]) == ("ENABLED", "expires")


@both_dynamodb
def test_put_if_absent(dynamodb, db):
    # every name is a reserved word, and every type comes back
    first = {
        "state": {"S": "claimed"},
        "size": {"N": "12"},
        "token": {"B": base64.b64encode(b"\0\1\xff").decode()},
        "data": {"L": [{"S": "x"}, {"BOOL": True}]},
        "error": {"S": 'quote " back \\ line \n ä'},
        "hash": {"S": ""},
    }
    assert db("put", "p", "s", json.dumps(first), absent="pk")["outcome"] == "ok"
    reply = db("put", "p", "s", json.dumps({"state": {"S": "mine"}}), absent="pk")
    assert reply["outcome"] == "refused"
    assert item_of(reply) == first and reply["item"]["pk"] == {"S": "p"}
    assert item_of(db("get", "p", "s")) == first
    assert stored(dynamodb, db, "p", "s")["error"] == first["error"]
    assert db("put", "p", "s", json.dumps({"a": {"N": "1"}}))["outcome"] == "ok"
    assert stored(dynamodb, db, "p", "s") == {"a": {"N": "1"}}
    assert db("get", "p", "other")["outcome"] == "absent"
    assert db("get", "p", "other", weak=True)["outcome"] == "absent"


@both_dynamodb
def test_refused_because_the_item_is_gone(dynamodb, db):
    for reply in (
        db("put", "p", "s", "{}", present="state"),
        db("update", "p", "s", set="state=done"),
        db("delete", "p", "s", equals="state=done"),
    ):
        assert (reply["outcome"], reply["item"]) == ("refused", {}), reply
    assert stored(dynamodb, db, "p", "s") == {}
    assert db("delete", "p", "s")["outcome"] == "ok"


@both_dynamodb
def test_update(dynamodb, db):
    db("put", "p", "s", json.dumps({"state": {"S": "claimed"}, "upload": {"S": "u"}, "tries": {"N": "1"}}))
    reply = db("update", "p", "s", equals="state=done", set="state=failed")
    assert reply["outcome"] == "refused" and item_of(reply)["state"] == {"S": "claimed"}
    assert stored(dynamodb, db, "p", "s")["state"] == {"S": "claimed"}
    conditions = {"equals": ["state=claimed", "tries=1"], "absent": "size"}
    assert db("update", "p", "s", **conditions)["outcome"] == "ok"  # nothing but the condition
    assert db("update", "p", "s", **conditions, set=["state=done", "size=7"], remove="upload")["outcome"] == "ok"
    assert stored(dynamodb, db, "p", "s") == {"state": {"S": "done"}, "tries": {"N": "1"}, "size": {"N": "7"}}
    assert db("update", "p", "s", remove="size")["outcome"] == "ok"
    assert "size" not in stored(dynamodb, db, "p", "s")


@both_dynamodb
def test_delete(dynamodb, db):
    db("put", "p", "s", json.dumps({"version": {"S": "v1"}}))
    reply = db("delete", "p", "s", equals="version=v2")
    assert (reply["outcome"], item_of(reply)) == ("refused", {"version": {"S": "v1"}})
    assert db("delete", "p", "s", equals="version=v1")["outcome"] == "ok"
    assert stored(dynamodb, db, "p", "s") == {}


HARD_SORT_KEYS = ["a b", 'q"\\', "line\nfeed\ttab\x01", "ä", "a\u0308", "\U0001f600", "x" * 1000, "a.b", "a/b", "a-b"]


@both_dynamodb
def test_hard_sort_keys(dynamodb, db):
    for key in HARD_SORT_KEYS:
        assert db("put", "p", key, "{}", absent="pk")["outcome"] == "ok", key
    found = dynamodb.client.query(
        TableName=db.table, KeyConditionExpression="pk = :p", ExpressionAttributeValues={":p": {"S": "p"}}
    )["Items"]
    assert [item["sk"]["S"] for item in found] == sorted(HARD_SORT_KEYS, key=str.encode)
    assert [row[1] for row in db("query", "p")["items"]] == sorted(HARD_SORT_KEYS, key=str.encode)
    assert sorted(row[1] for row in db("many", "p", *HARD_SORT_KEYS)["items"]) == sorted(HARD_SORT_KEYS)


def fill(dynamodb, db, count, size):
    """count items below "p", each of about size bytes; returns their sort keys in order."""
    keys = [f"k{number:05}" for number in range(count)]
    for key in keys:
        item = {"pk": {"S": "p"}, "sk": {"S": key}, "data": {"S": "x" * size}}
        dynamodb.client.put_item(TableName=db.table, Item=item)
    return keys


@both_dynamodb
def test_many_keys(dynamodb, db):
    keys = fill(dynamodb, db, 250, 10)
    asked = [*keys, *(f"none{number}" for number in range(20))]
    reply = db("many", "p", *asked)
    assert reply["outcome"] == "ok" and reply["requests"] == {"BatchGetItem": 3}
    assert sorted(row[1] for row in reply["items"]) == keys
    assert db("many", "p")["requests"] == {}
    ended = db("many", "p", *asked, stop_after=1)
    assert (ended["outcome"], len(ended["items"])) == ("local", 1)


@both_dynamodb
def test_many_keys_of_more_than_a_reply_holds(dynamodb, db):
    keys = fill(dynamodb, db, 60, 350_000)
    reply = db("many", "p", *keys)
    assert reply["outcome"] == "ok" and reply["requests"]["BatchGetItem"] >= 2
    assert sorted(row[1] for row in reply["items"]) == keys


def walk(db, **options):
    """All pages of a query, each begun after the last key of the one before."""
    found, pages, more = [], 0, True
    while more:
        reply = db("query", "p", **options)
        assert reply["outcome"] == "ok", reply
        page = [row[1] for row in reply.get("items", [])]
        assert page or not reply["more"]
        found, pages, more = found + page, pages + 1, reply["more"]
        if page:
            options.pop("from", None)
            options["after"] = page[-1]
    return found, pages


@both_dynamodb
def test_query_pages(dynamodb, db):
    keys = fill(dynamodb, db, 24, 100_000)
    found, pages = walk(db)
    assert found == keys and pages >= 3
    assert db("query", "q")["more"] is False
    assert db("query", "p", at="no-such-table")["problem"]["code"] == "ResourceNotFoundException"


@both_dynamodb
def test_query_ranges(dynamodb, db):
    keys = fill(dynamodb, db, 30, 10)
    chance = random.Random(7)
    ends = [*keys[::5], "", "a", "k00003x", "z"]
    for _ in range(12):
        low, high = chance.choice([None, *ends]), chance.choice([None, *ends])
        after, most = chance.random() < 0.5, chance.choice([None, 1, 2, 7])
        options = {"after" if after else "from": low} if low is not None else {}
        options |= {"to": high} if high is not None else {}
        options |= {"most": most} if most else {}
        wanted = [
            key
            for key in keys
            if (low is None or key > low or (key == low and not after)) and (high is None or key <= high)
        ]
        found, pages = walk(db, **options)
        assert found == wanted, options
        assert not most or pages >= -(-len(wanted) // most)


@both_dynamodb
def test_no_table(db):
    for reply in (
        db("get", "p", "s", at="no-such-table"),
        db("put", "p", "s", "{}", at="no-such-table", absent="pk"),
        db("many", "p", "s", at="no-such-table"),
        db("query", "p", at="no-such-table"),
    ):
        assert (reply["outcome"], reply["problem"]["code"]) == ("setup", "ResourceNotFoundException")


@both_dynamodb
def test_only_one_of_many_puts_wins(db):
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda n: db("put", "p", "s", json.dumps({"by": {"N": str(n)}}), absent="pk"), range(8)))
    won = [number for number, reply in enumerate(runs) if reply["outcome"] == "ok"]
    assert len(won) == 1
    for reply in (reply for reply in runs if reply["outcome"] != "ok"):
        assert (reply["outcome"], item_of(reply)) == ("refused", {"by": {"N": str(won[0])}})
