"""`s3once doctor` tells the truth about what servers support, over plain HTTP and TLS, path and virtual-host style."""

import json
import re
import signal

import pytest

from tests.faults import faults
from tests.faults.checksums import BodyDigests
from tests.faults.proxy import Proxy
from tests.faults.sigv4 import sign
from tests.system.fakes_aws import Aws
from tests.system.harness import fresh_name, make_tree, wait_until

# What each server does, as facts that other tests of this folder rely on: check → finding and words.
RGW = {
    "put": ("ok", ""),
    "proof": ("ok", ""),
    "checksums": ("warning", "ignored by this server; Content-MD5 is verified"),
    "conditional put": ("ok", "honoured, also when several write at once"),
    "names": ("ok", ""),
    "conditional replace": ("warning", "not read as RFC 9110 writes it"),
    "storage class": ("ok", "refused by this server, not ignored"),
    "metadata": ("ok", "kept"),
    "tags": ("ok", "kept"),
    "list parts": ("ok", ""),
    "multipart": ("ok", ""),
    "conditional complete": ("warning", "ignored"),
    "abort": ("ok", ""),
    "lifecycle rule": ("warning", "nothing aborts uploads"),
}
SWIFT = {
    "put": ("ok", ""),
    "proof": ("ok", ""),
    "checksums": ("warning", "ignored by this server; Content-MD5 is verified"),
    "conditional put": ("warning", "refused"),
    "conditional replace": ("warning", "refused"),
    "storage class": ("ok", "refused by this server, not ignored"),
    "metadata": ("ok", "kept"),
    "tags": ("ok", "refused by this server, not ignored"),
    "list parts": ("ok", ""),
    "multipart": ("ok", ""),
    # It looks first and writes then: mostly several of the writers that try at once win, and by chance one.
    "conditional complete": ("ok or warning", "honoured"),
    "names": ("ok", ""),
    "abort": ("ok", ""),
    "lifecycle rule": ("warning", "shows none"),
}


@pytest.fixture
def doctor(s3once):
    """doctor(*args, env={…}) gives (run, {check: (finding, text)})."""

    def run(*args, **how):
        done = s3once("doctor", "--json", *args, **how)
        return done, {event["check"]: (event["finding"], event["text"]) for event in done.events}

    return run


@pytest.fixture(params=["http", "https"])
def reached(request, s3, s3once, tmp_path):
    """The environment in which s3 is at s3.localhost, with or without TLS; Swift's TLS is a proxy's, as it is deployed."""
    endpoint = (s3.endpoint if request.param == "http" else s3.tls_endpoint or "").replace("127.0.0.1", "s3.localhost")
    if endpoint:
        yield {"AWS_ENDPOINT_URL_S3": endpoint, "AWS_CA_BUNDLE": s3.ca}
        return
    with Aws(tmp_path, s3.endpoint, "localhost", None) as front:
        yield {"AWS_ENDPOINT_URL_S3": "https://s3.localhost", "AWS_CA_BUNDLE": str(front.ca), "HTTPS_PROXY": front.url}


def style(tmp_path, name):
    path = tmp_path / "config"
    path.write_text(f"[default]\ns3 =\n  addressing_style = {name}\n")
    return {"AWS_CONFIG_FILE": str(path)}


@pytest.mark.parametrize("s3", ["rgw", "swift"], indirect=True)
@pytest.mark.parametrize("addressing", ["path", "virtual"])
def test_truth_and_uploads(doctor, s3once, s3, bucket, reached, tmp_path, addressing):
    env = {**reached, **style(tmp_path, addressing)}
    run, found = doctor(f"s3://{bucket}/some/prefix", env=env)
    assert run.code == 0, run
    for check, (finding, words) in (SWIFT if ":" in s3.access_key else RGW).items():
        assert found[check][0] in finding.split(" or ") and words in found[check][1], (check, found[check])
    assert found["S3 endpoint"][0] == ("ok" if reached["AWS_ENDPOINT_URL_S3"].startswith("https") else "warning")
    assert found["bucket"][0] == found["clock"][0] == found["credentials"][0] == "ok"
    assert "clean-up" not in found and not s3.objects(bucket) and not s3.uploads(bucket)
    tree = make_tree(tmp_path / "tree", {"a": 10, "sub/b": 5 << 20 | 1, "c d": 0})
    push = s3once("push", "--part-size", "5MiB", tree, f"s3://{bucket}/p", env=env)
    assert push.code == 0, push
    s3.assert_same(tree, bucket, "p")


@pytest.mark.parametrize("seconds, words", [(3600, "ahead of"), (-3600, "behind")])
def test_a_clock_that_is_wrong_is_found(doctor, s3_wire, bucket, seconds, words):
    """Which way, too: it has to be set."""
    s3_wire.add(faults.date_ahead(-seconds), times=None)
    run, found = doctor(f"s3://{bucket}")
    assert found["clock"][0] == "warning" and re.match(rf"(3599|3600|3601) s {words} the server's", found["clock"][1]), run


@pytest.mark.real_s3
def test_lines_for_people(s3once, s3, bucket):
    run = s3once("doctor", f"s3://{bucket}")
    assert run.code == 0, run
    assert "\nok       put                   PutObject works\n" in run.out
    assert "\nwarning  conditional complete  If-None-Match is ignored" in run.out


@pytest.mark.real_s3
def test_lifecycle_rule(doctor, s3, bucket):
    rule = {"ID": "a", "Status": "Enabled", "Filter": {"Prefix": "logs/"}, "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 3}}
    s3.client.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": [rule]})
    assert doctor(f"s3://{bucket}/logs/web")[1]["lifecycle rule"] == ("ok", "unfinished uploads are aborted after 3 days")
    assert doctor(f"s3://{bucket}/other")[1]["lifecycle rule"][0] == "warning"


@pytest.mark.parametrize(
    ("behaves", "finding", "words"), [("aws", "ok", "honoured"), ("ignores", "warning", "ignored"), ("refuses", "warning", "refused")]
)
def test_conditions_as_other_servers_have_them(doctor, s3, bucket, behaves, finding, words):
    with Proxy(s3, "s3", behaves=behaves) as proxy:
        run, found = doctor(f"s3://{bucket}", env={"AWS_ENDPOINT_URL_S3": proxy.endpoint})
    assert run.code == 0, run
    for check in ("conditional put", "conditional replace", "conditional complete"):
        assert found[check][0] == finding and words in found[check][1], (check, found[check])
    if behaves == "aws":
        assert found["checksums"] == ("ok", "x-amz-checksum-crc32c is verified and kept by the server")


@pytest.mark.parametrize("check, ability", [("conditional put", "put"), ("conditional replace", "if-match"), ("conditional complete", "complete")])
def test_conditions_that_several_writers_at_once_meet(doctor, s3once, s3, bucket, marks, tmp_path, check, ability):
    """A fake server that looks first and writes then. One writer after another cannot tell it from AWS."""
    assert s3once("push", make_tree(tmp_path / "tree", {"a": 1}), f"s3://{bucket}/p").code == 0
    for behaves, words in (("aws", "is honoured, also when several write at once"), ("races", "were told that they had won")):
        with Proxy(s3, "s3", behaves=behaves) as proxy:
            run, found = doctor(f"s3://{bucket}", env={"AWS_ENDPOINT_URL_S3": proxy.endpoint})
        assert run.code == 0 and words in found[check][1], (check, found[check])
        assert found[check][0] == ("ok" if behaves == "aws" else "warning")
    assert not s3.uploads(bucket) and set(s3.objects(bucket)) == {"p/a"}


@pytest.mark.parametrize("kind", ["PutObject", None], ids=["put", "whatever is asked"])
@pytest.mark.parametrize("behaves", ["aws", "ignores"])
@pytest.mark.parametrize("characters", ["#", "?", "#?"])
def test_keys_that_are_cut(doctor, s3, bucket, characters, behaves, kind):
    """A fake server: it answers 200 and the right MD5, and stores the object under another key."""
    with Proxy(s3, "s3", behaves=behaves) as wire:
        wire.add(faults.cuts_keys_at(*characters), kind, times=None)
        run, found = doctor(f"s3://{bucket}", env={"AWS_ENDPOINT_URL_S3": wire.endpoint})
    assert run.code == 1 and found["names"][0] == "failure", run
    assert all(f"'{each}a'" in found["names"][1] for each in characters), found["names"]


@pytest.mark.real_s3
def test_a_policy_that_enforces_write_once(doctor, s3, bucket):
    """A fake of AWS under config/iam/write-once.json: what is put without If-None-Match is refused."""
    with Proxy(s3, "s3", behaves="aws") as proxy:
        for kind in ("PutObject", "CompleteMultipartUpload"):
            proxy.add(faults.answer(403, "AccessDenied"), kind, where=lambda r: "if-none-match" not in r.operation.conditions, times=None)
        run, found = doctor(f"s3://{bucket}", env={"AWS_ENDPOINT_URL_S3": proxy.endpoint})
    assert run.code == 0 and not [check for check, (finding, _) in found.items() if finding == "failure"], run
    assert found["conditional replace"][0] == "warning" and "a policy that lets objects only be made" in found["conditional replace"][1]
    for check in ("put", "proof", "checksums", "conditional put", "names", "metadata", "tags", "multipart", "conditional complete", "abort"):
        assert found[check][0] == "ok", (check, found[check])
    assert "clean-up" not in found and not s3.objects(bucket)


@pytest.mark.parametrize("name, finding, words", [
    ("sha256", "ok", "x-amz-checksum-sha256 is verified and kept by the server"),
    ("crc64nvme", "ok", "x-amz-checksum-crc64nvme is verified and kept by the server"),
    ("md5", "warning", "no x-amz-checksum- header is sent, as asked for (checksum, request_checksum_calculation); Content-MD5 is verified"),
])
def test_the_checksum_that_was_chosen(doctor, s3, bucket, name, finding, words):
    with Proxy(s3, "s3", behaves="aws") as proxy:
        run, found = doctor(f"s3://{bucket}", "--checksum", name, env={"AWS_ENDPOINT_URL_S3": proxy.endpoint})
    assert run.code == 0 and not proxy.failures, run
    assert found["checksums"][0] == finding and words in found["checksums"][1], found["checksums"]
    assert found["proof"][0] == found["multipart"][0] == found["list parts"][0] == "ok"


async def takes_any_checksum(x, rule):
    """Keeps the checksum that was sent, whatever the body is."""
    sent = x.request.headers.pop("x-amz-checksum-crc32c", None)
    x.digests = BodyDigests(x.request)
    sign(x.request, x.proxy.access_key, x.proxy.secret_key, x.proxy.region, "s3")
    reply = await x.forward()
    if sent:
        x.fire(rule)
        reply.headers["x-amz-checksum-crc32c"] = sent
    await x.answer(reply)


def test_a_checksum_that_is_kept_and_not_verified(doctor, s3, bucket):
    with Proxy(s3, "s3") as wire:
        rule = wire.add(takes_any_checksum, "PutObject", times=None)
        run, found = doctor(f"s3://{bucket}", env={"AWS_ENDPOINT_URL_S3": wire.endpoint})
    assert rule.fired and run.code == 0, run
    assert found["checksums"][0] == "warning" and "x-amz-checksum-crc32c is not verified by this server" in found["checksums"][1], found


async def shows_nothing(x, rule):
    """An etag that is no MD5, and no checksum."""
    reply = await x.forward()
    for name in [name for name in reply.headers if name.startswith("x-amz-checksum-")]:
        del reply.headers[name]
    if "etag" in reply.headers:
        reply.headers["etag"] = '"opaque"'
        x.fire(rule)
    await x.answer(reply)


def test_objects_that_nothing_proves(doctor, s3, bucket):
    with Proxy(s3, "s3") as wire:
        for kind in ("PutObject", "HeadObject"):
            wire.add(shows_nothing, kind, times=None)
        run, found = doctor(f"s3://{bucket}", env={"AWS_ENDPOINT_URL_S3": wire.endpoint})
    assert run.code == 1 and found["proof"][0] == "failure" and "no upload can be proven" in found["proof"][1], run


@pytest.mark.parametrize("pattern, instead", [(rb"<Part>.*</Part>", b""), (rb"<ETag>.*</ETag>", b"<ETag>opaque</ETag>")], ids=["no part", "no proof"])
def test_a_server_that_lists_no_checksum(doctor, s3, bucket, pattern, instead):
    async def lists(x, rule):
        reply = await x.forward()
        body = re.sub(rb"<(Checksum\w+)>[^<]*</\1>", b"", reply.body)  # some servers list it beside the ETag
        reply.body = re.sub(pattern, instead, body, flags=re.DOTALL)
        x.fire(rule)
        await x.answer(reply)

    with Proxy(s3, "s3") as wire:
        rule = wire.add(lists, "ListParts", times=None)
        run, found = doctor(f"s3://{bucket}", env={"AWS_ENDPOINT_URL_S3": wire.endpoint})
    assert rule.fired and run.code == 0, run
    assert found["list parts"] == ("warning", "ListParts shows no checksum: after a break all parts are sent again"), found


@pytest.mark.real_s3
@pytest.mark.parametrize(
    ("denied", "check", "finding"),
    [
        ("s3:PutObject", "put", "failure"),
        ("s3:GetObject", "proof", "warning"),
        ("s3:ListMultipartUploadParts", "list parts", "failure"),
        ("s3:AbortMultipartUpload", "abort", "warning"),
        ("s3:DeleteObject", "clean-up", "warning"),
        ("s3:GetLifecycleConfiguration", "lifecycle rule", "warning"),
        ("s3:ListBucket", "bucket", "ok"),
    ],
)
def test_missing_permission_is_named(doctor, s3, bucket, denied, check, finding):
    resource = [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]
    statement = {"Effect": "Deny", "Principal": "*", "Action": denied, "Resource": resource}
    s3.client.put_bucket_policy(Bucket=bucket, Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    run, found = doctor(f"s3://{bucket}")
    s3.client.delete_bucket_policy(Bucket=bucket)
    assert found[check][0] == finding and denied in found[check][1], run
    assert run.code == (1 if finding == "failure" else 0), run


@pytest.mark.real_s3
@pytest.mark.parametrize("check, header", [("storage class", "x-amz-storage-class"), ("metadata", "x-amz-meta-doctor"), ("tags", "x-amz-tagging")])
def test_settings_that_are_ignored(doctor, s3, bucket, check, header):
    with Proxy(s3, "s3") as wire:
        wire.add(faults.ignores(header), times=None)
        run, found = doctor(f"s3://{bucket}", env={"AWS_ENDPOINT_URL_S3": wire.endpoint})
    assert run.code == 0 and found[check][0] == "warning" and "is ignored by this server" in found[check][1], run


@pytest.mark.parametrize("kind, permission", [("PutObject", "s3:PutObjectTagging"), ("GetObjectTagging", "s3:GetObjectTagging")])
def test_missing_permission_for_tags_is_named(doctor, s3, bucket, kind, permission):
    """Refused as AWS does; the server here tells the number of tags by itself."""
    with Proxy(s3, "s3") as wire:
        wire.add(faults.answer(403, "AccessDenied"), kind, where=lambda record: kind != "PutObject" or "x-amz-tagging" in record.headers, times=None)
        wire.add(faults.hides("x-amz-tagging-count"), "HeadObject", times=None)
        run, found = doctor(f"s3://{bucket}", env={"AWS_ENDPOINT_URL_S3": wire.endpoint})
    assert run.code == 0 and found["tags"][0] == "warning" and f"these credentials need {permission}" in found["tags"][1], run


# --- failures


@pytest.mark.parametrize("kind, nth", [("PutObject", 1), ("PutObject", 3), ("CreateMultipartUpload", 2), ("UploadPart", 1), ("CompleteMultipartUpload", 1)])
def test_stopped_while_it_probes(s3once, s3, bucket, kind, nth):
    """The server does it, and the reply does not come: what doctor never heard of is removed too."""
    with Proxy(s3, "s3") as wire:
        rule = wire.add(faults.hang_applied, kind, nth=nth)
        running = s3once.start("doctor", f"s3://{bucket}/p", env={"AWS_ENDPOINT_URL_S3": wire.endpoint})
        wait_until(lambda: rule.fired, 60, "the request")
        running.kill(signal.SIGINT)
        run = running.wait(60)
    assert run.code == 130 and "stopping; the probes are removed first" in run.err, run
    assert "failure" not in run.out and "clean-up" not in run.out, run
    assert not s3.objects(bucket) and not s3.uploads(bucket), run


def test_clean_up_that_hangs_is_ended(s3once, s3, bucket):
    with Proxy(s3, "s3") as wire:
        rule = wire.add(faults.hang, "DeleteObject", times=None)
        running = s3once.start("doctor", f"s3://{bucket}/p", env={"AWS_ENDPOINT_URL_S3": wire.endpoint})
        wait_until(lambda: rule.fired, 60, "the request")
        running.kill(signal.SIGTERM)
        wait_until(lambda: "stopping" in running.output()[1], 60, "the first signal")
        running.kill(signal.SIGTERM)
        run = running.wait(60)
    assert run.code == 143 and run.out.count("warning  clean-up") == 1, run
    assert f"probe objects p/.s3once-doctor-" in run.out and "may be left, remove them" in run.out, run


def test_no_such_bucket(doctor, s3):
    run, found = doctor(f"s3://{fresh_name('none')}")
    assert run.code == 1 and found["bucket"][0] == "failure" and "create it" in found["bucket"][1], run
    assert "put" not in found


def test_server_that_does_not_listen(doctor):
    run, found = doctor("s3://my-bucket", env={"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9"})
    assert run.code == 1 and "127.0.0.1" in found["bucket"][1], run


@pytest.mark.real_s3
def test_wrong_keys(doctor, s3, bucket):
    run, found = doctor(f"s3://{bucket}", env={"AWS_SECRET_ACCESS_KEY": "wrong"})
    assert run.code == 1 and found["bucket"][0] == "failure", run
    assert "secret key" in found["bucket"][1] and "SignatureDoesNotMatch" in found["bucket"][1]


@pytest.mark.real_s3
def test_untrusted_certificate(doctor, s3, bucket):
    run, found = doctor(f"s3://{bucket}", env={"AWS_ENDPOINT_URL_S3": s3.tls_endpoint})
    assert run.code == 1 and "certificate" in found["bucket"][1], run


def test_no_credentials_and_wrong_settings(doctor, s3):
    env = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}
    run, found = doctor(env=env)
    assert run.code == 1 and found["credentials"][0] == "failure" and found["region"] == ("ok", "us-east-1 (AWS_REGION)"), run
    run, found = doctor(env={"AWS_USE_FIPS_ENDPOINT": "maybe"})
    assert run.code == 1 and "AWS_USE_FIPS_ENDPOINT is maybe" in found["configuration"][1], run


def test_credentials_that_end_soon_and_no_region(doctor, s3, tmp_path):
    keys = {"Version": 1, "AccessKeyId": "AKIAX", "SecretAccessKey": "s", "Expiration": "2026-01-01T00:00:00Z"}
    config = tmp_path / "config"
    config.write_text(f"[default]\ncredential_process = echo '{json.dumps(keys)}'\n")
    env = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None, "AWS_REGION": None, "AWS_CONFIG_FILE": str(config)}
    env["AWS_ENDPOINT_URL"] = env["AWS_ENDPOINT_URL_S3"] = None
    run, found = doctor(env=env)
    assert run.code == 1 and "expired at 2026-01-01" in found["credentials"][1], run
    assert found["region"][0] == "warning" and "set AWS_REGION" in found["region"][1]


def test_few_descriptors(doctor, s3):
    run, found = doctor(wrap=["prlimit", "--nofile=100:100"])
    assert run.code == 0 and found["file descriptors"][0] == "warning" and "ulimit" in found["file descriptors"][1], run


# --- marks


def test_local_marks(doctor, s3once, s3, bucket, tmp_path):
    run, found = doctor()
    assert run.code == 0 and found["marks"][0] == "ok" and "push makes it" in found["marks"][1], run
    assert not (s3once.state / "s3once" / "marks.db").exists()
    assert s3once("push", make_tree(tmp_path / "tree", {"a": 1}), f"s3://{bucket}").code == 0
    assert "for this host" in doctor()[1]["marks"][1]


@pytest.mark.parametrize("dynamodb", ["dynoxide", "dynalite"], indirect=True)
def test_table(doctor, s3once, s3, dynamodb, table):
    run, found = doctor()
    assert run.code == 1 and found["table"][0] == "failure" and "s3once init" in found["table"][1], run
    assert s3once("init").code == 0
    before = dynamodb.items(table)
    run, found = doctor()
    assert run.code == 0 and found["table"][0] == found["table access"][0] == found["marks"][0] == "ok", run
    status, reply = dynamodb.call("DescribeTimeToLive", TableName=table)
    has_ttl = status == 200 and reply["TimeToLiveDescription"]["TimeToLiveStatus"] == "ENABLED"
    assert found["time to live"][0] == ("ok" if has_ttl else "warning"), found["time to live"]
    known = "none" if found["marks in batches"][0] == "warning" else "lists"
    assert dynamodb.items(table) == [{**settings, "batches": known} for settings in before]


def test_a_table_whose_conditions_several_writers_at_once_meet(doctor, s3once, s3, dynamodb, table):
    """A fake server that looks first and writes then. One writer after another cannot tell it from AWS."""
    assert s3once("init").code == 0
    with Proxy(dynamodb, "dynamodb", check_signature=False) as wire:
        s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = wire.endpoint
        rules = [wire.add(faults.looks_then_writes(), kind, times=None) for kind in ("PutItem", "UpdateItem")]
        run, found = doctor()
    assert all(rule.fired for rule in rules), "no two writers were at it at the same time"
    assert run.code == 1 and found["table access"][0] == "failure", run
    assert "were told by PutItem" in run.out and "were told by UpdateItem" in run.out, run
    assert len(dynamodb.items(table)) == 1, "only the settings are left"


def test_a_table_that_cannot_be_described(doctor, s3once, s3, dynamodb, table):
    """push does not need that, so everything else is tried out."""
    assert s3once("init").code == 0
    with Proxy(dynamodb, "dynamodb", check_signature=False) as wire:
        s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = wire.endpoint
        wire.add(faults.answer(400, "AccessDeniedException"), "DescribeTable", times=None)
        run, found = doctor()
    assert run.code == 0 and found["table"][0] == "warning" and "dynamodb:DescribeTable" in found["table"][1], run
    assert found["table access"][0] == found["marks"][0] == "ok", run


def test_table_of_another_shape(doctor, s3, dynamodb, table):
    dynamodb.client.create_table(
        TableName=table,
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    run, found = doctor()
    assert run.code == 1 and found["table"][0] == "failure" and "another table name" in found["table"][1], run
    dynamodb.client.delete_table(TableName=table)
