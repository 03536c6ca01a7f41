"""How objects are stored: each setting reaches S3 as botocore would send it, for objects in one piece and in parts, and is
read back where the server keeps it. Wrong ones are told before anything is sent."""

import base64
import datetime
import hashlib
import re

import pytest

from tests.faults import faults
from tests.faults.proxy import Proxy
from tests.servers.rgw import KMS_KEY
from tests.system.harness import MIB, REPOSITORY, make_tree
from tests.system.pushing import counts

PART = 5 * MIB
CONTEXT = '{"department": "sales"}'
KEY = bytes(range(32))
FAR = datetime.datetime(2099, 12, 31, 23, 59, 59, tzinfo=datetime.timezone.utc)
ALL_USERS = "http://acs.amazonaws.com/groups/global/AllUsers"

# Of a request: what it would carry without any setting.
OURS = re.compile(
    r"host|accept.*|content-length|content-md5|authorization|user-agent|expect|connection|amz-sdk-.*|if-(none-)?match"
    r"|x-amz-(date|content-sha256|checksum-.*|meta-mtime|meta-s3once-.*|mp-object-size|sdk-.*)"
)

# Group of files: lines of the rules, and the same for botocore.
RULES = {
    "texts": (
        """content-type = text/plain; charset=utf-8
        header: Content-Encoding: gzip
        header = Content-Language: de, en
        header = Content-Disposition: attachment; filename="a b"
        header = cache-control: max-age=3600
        header = Expires: 2030-12-31T23:59:59Z
        header = x-amz-website-redirect-location:/other
        storage-class = STANDARD_IA
        acl = public-read
        metadata = Team=a=b  c
        metadata = empty=
        tag = first key=1+1
        tag = ä/=
        """,
        {
            "ContentType": "text/plain; charset=utf-8",
            "ContentEncoding": "gzip",
            "ContentLanguage": "de, en",
            "ContentDisposition": 'attachment; filename="a b"',
            "CacheControl": "max-age=3600",
            "Expires": datetime.datetime(2030, 12, 31, 23, 59, 59),
            "WebsiteRedirectLocation": "/other",
            "StorageClass": "STANDARD_IA",
            "ACL": "public-read",
            "Metadata": {"team": "a=b  c", "empty": ""},
            "Tagging": "first%20key=1%2B1&%C3%A4%2F=",
        },
    ),
    "grants": (
        f"""header = x-amz-grant-read: uri="{ALL_USERS}", id="s3once"
        header = x-amz-grant-read-acp: id="s3once"
        header = x-amz-grant-write-acp: id="s3once"
        header = x-amz-grant-full-control: id="s3once"
        """,
        {
            "GrantRead": f'uri="{ALL_USERS}", id="s3once"',
            "GrantReadACP": 'id="s3once"',
            "GrantWriteACP": 'id="s3once"',
            "GrantFullControl": 'id="s3once"',
        },
    ),
    "kms": (
        f"""sse = aws:kms
        sse-kms-key-id = {KMS_KEY}
        header = x-amz-server-side-encryption-context: {CONTEXT}
        header = x-amz-server-side-encryption-bucket-key-enabled: true
        """,
        {
            "ServerSideEncryption": "aws:kms",
            "SSEKMSKeyId": KMS_KEY,
            "SSEKMSEncryptionContext": base64.b64encode(CONTEXT.encode()).decode(),
            "BucketKeyEnabled": True,
        },
    ),
    "aes": ("sse = AES256", {"ServerSideEncryption": "AES256"}),
    "dsse": ("sse = aws:kms:dsse", {"ServerSideEncryption": "aws:kms:dsse"}),
    "locked": (
        """object-lock = GOVERNANCE:2099-12-31T23:59:59Z
        header = x-amz-object-lock-legal-hold: ON
        """,
        {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": FAR, "ObjectLockLegalHoldStatus": "ON"},
    ),
}


class Captured(Exception):
    pass


def botocore_sends(client, operation, **parameters):
    """The headers of botocore's request, which goes nowhere."""

    def capture(request, **_):
        raise Captured({name.lower(): value for name, value in request.headers.items()})

    client.meta.events.register("before-send.s3", capture, unique_id="capture")
    try:
        getattr(client, operation)(Bucket="b", Key="k", **parameters)
    except Captured as captured:
        (headers,) = captured.args
        return plain(headers)
    finally:
        client.meta.events.unregister("before-send.s3", capture, unique_id="capture")


def plain(headers):
    def text(value):
        value = value.decode() if isinstance(value, bytes) else value
        return "true" if value == "True" else value  # older botocore writes a boolean as Python does

    return {name: text(value) for name, value in headers.items() if not OURS.fullmatch(name)}


def rules_file(folder, *groups):
    indented = "".join(f'[rule "{group}.*"]\n{RULES[group][0]}\n' for group in groups)
    path = folder / "rules"
    path.write_text("\n".join(line.strip() for line in indented.splitlines()))
    return path


def two_of_each(folder, *groups):
    """A file that goes in one piece and one that goes in parts."""
    sizes = {"small": 7, "large": PART + 1}
    return make_tree(folder / "tree", {f"{group}.{size}": n for group in groups for size, n in sizes.items()})


def sent(proxy, kind, key):
    found = [record for record in proxy.history if record.kind == kind and record.operation.key == key]
    assert found, f"no {kind} of {key}"
    return [plain(record.headers) for record in found]


def push(s3once, tree, bucket, *options, code=0):
    run = s3once("push", tree, f"s3://{bucket}", "--json", "--part-size", "5MiB", *options)
    assert run.code == code, run
    return run


def assert_wire(s3, proxy, groups):
    for group in groups:
        extra = RULES[group][1]
        expected = botocore_sends(s3.client, "put_object", Body=b"x", **extra)
        assert len(expected) >= len(extra) - 1
        for each in sent(proxy, "PutObject", f"{group}.small"):
            assert each == expected, group
        expected = botocore_sends(s3.client, "create_multipart_upload", **extra)
        for each in sent(proxy, "CreateMultipartUpload", f"{group}.large"):
            assert each == expected, group


@pytest.mark.real_s3
def test_settings_reach_the_server(s3once, s3, s3_wire, bucket, tmp_path):
    """By a file of rules, read back with boto3."""
    groups = ("texts", "grants", "kms")
    tree = two_of_each(tmp_path, *groups)
    run = push(s3once, tree, bucket, "--rules", rules_file(tmp_path, *groups))
    assert counts(run) == {"uploaded": 6}
    s3.assert_same(tree, bucket)
    assert_wire(s3, s3_wire, groups)
    for size in ("small", "large"):
        head = s3.client.head_object(Bucket=bucket, Key=f"texts.{size}")
        for name in ("ContentType", "ContentEncoding", "ContentLanguage", "ContentDisposition", "CacheControl", "StorageClass"):
            assert head[name] == RULES["texts"][1][name], (name, size)
        assert head["Expires"].isoformat() == "2030-12-31T23:59:59+00:00"
        assert {name: head["Metadata"][name] for name in ("team", "empty")} == {"team": "a=b  c", "empty": ""}
        assert ("READ", ALL_USERS) in grants(s3, bucket, f"texts.{size}")
        assert grants(s3, bucket, f"grants.{size}") == {
            ("READ", ALL_USERS), ("READ", "s3once"), ("READ_ACP", "s3once"), ("WRITE_ACP", "s3once"), ("FULL_CONTROL", "s3once"),
        }  # fmt: skip
        head = s3.client.head_object(Bucket=bucket, Key=f"kms.{size}")
        assert (head["ServerSideEncryption"], head["SSEKMSKeyId"]) == ("aws:kms", KMS_KEY)
    tags = s3.client.get_object_tagging(Bucket=bucket, Key="texts.small")["TagSet"]  # this server drops those of multipart
    assert {tag["Key"]: tag["Value"] for tag in tags} == {"first key": "1+1", "ä/": ""}


@pytest.mark.real_s3
@pytest.mark.parametrize("group", ["texts", "grants", "kms"])
def test_settings_on_the_command_line(s3once, s3, s3_wire, bucket, tmp_path, group):
    lines = [re.split(r"\s*[=:]\s*", line.strip(), maxsplit=1) for line in RULES[group][0].strip().splitlines()]
    tree = two_of_each(tmp_path, group)
    push(s3once, tree, bucket, *[f"--{name}={value}" for name, value in lines])
    assert_wire(s3, s3_wire, (group,))


def grants(s3, bucket, key):
    found = s3.client.get_object_acl(Bucket=bucket, Key=key)["Grants"]
    return {(grant["Permission"], grant["Grantee"].get("URI") or grant["Grantee"]["ID"]) for grant in found}


def test_settings_that_no_server_here_keeps_are_sent(s3once, s3, s3_wire, bucket, tmp_path):
    """Refused by this server, but sent as botocore sends it."""
    groups = ("aes", "dsse")
    rules = rules_file(tmp_path, *groups)
    for file in two_of_each(tmp_path, *groups).iterdir():  # each by itself: Ceph 18 refuses all of them, so that a run ends with the first
        run = s3once("push", file, f"s3://{bucket}", "--part-size", "5MiB", "--rules", rules)
        assert run.code in (1, 3), run
    assert_wire(s3, s3_wire, groups)


@pytest.mark.real_s3
def test_object_lock(s3once, s3, s3_wire, tmp_path):
    bucket = "locked"
    s3.client.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)  # goes away with the server
    push(s3once, two_of_each(tmp_path, "locked"), bucket, "--rules", rules_file(tmp_path, "locked"))
    assert_wire(s3, s3_wire, ("locked",))
    head = s3.client.head_object(Bucket=bucket, Key="locked.small")
    assert (head["ObjectLockMode"], head["ObjectLockLegalHoldStatus"]) == ("GOVERNANCE", "ON")
    assert head["ObjectLockRetainUntilDate"].replace(microsecond=0) == FAR


@pytest.mark.real_s3  # which shows the date
def test_object_lock_for_days(s3once, s3, tmp_path):
    bucket = "locked-for-days"
    s3.client.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)  # goes away with the server
    tree = make_tree(tmp_path / "tree", {"small": 10})
    before = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    push(s3once, tree, bucket, "--object-lock", "COMPLIANCE:1d", "--object-lock", "GOVERNANCE:400d")
    after = datetime.datetime.now(datetime.timezone.utc)
    until = s3.client.head_object(Bucket=bucket, Key="small")["ObjectLockRetainUntilDate"]
    assert before + datetime.timedelta(days=400) <= until <= after + datetime.timedelta(days=400)


def test_owner_and_payer(s3once, s3, s3_wire, bucket, tmp_path):
    """With every request that AWS takes them with."""
    tree = two_of_each(tmp_path, "any")
    push(s3once, tree, bucket, "--header", "X-Amz-Expected-Bucket-Owner: 123456789012", "--header", "x-amz-request-payer: requester")
    both = {"x-amz-expected-bucket-owner": "123456789012", "x-amz-request-payer": "requester"}
    taken = {"HeadBucket": {"x-amz-expected-bucket-owner": "123456789012"}}
    kinds = {record.kind for record in s3_wire.history}
    assert kinds >= {"HeadBucket", "HeadObject", "PutObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"}
    for record in s3_wire.history:
        # Reads also ask caches to pass them on.
        found = {name: value for name, value in plain(record.headers).items() if name not in ("content-type", "cache-control")}
        assert found == taken.get(record.kind, both), record.kind


def test_customer_key(s3once, rgw, bucket, tmp_path):
    """SSE-C: every request that needs the key has it, and no event or line of the log ever shows it."""
    key = tmp_path / "key"
    key.write_bytes(KEY)
    ssec = {"SSECustomerKey": KEY, "SSECustomerAlgorithm": "AES256"}
    part = {"UploadId": "u", "PartNumber": 1, "Body": b"x"}
    encoded = base64.b64encode(KEY).decode()  # which this botocore does not do for Complete by itself
    md5 = base64.b64encode(hashlib.md5(KEY).digest()).decode()
    complete = {"UploadId": "u", "MultipartUpload": {"Parts": []}, "SSECustomerKey": encoded, "SSECustomerKeyMD5": md5}
    with Proxy(rgw, "s3", tmp_path / "proxy", tls=True) as proxy:
        s3once.environment |= {"AWS_ENDPOINT_URL_S3": proxy.endpoint, "AWS_CA_BUNDLE": str(proxy.ca)}
        run = push(s3once, two_of_each(tmp_path, "secret"), bucket, "--sse-c-key-file", key, "-vvv")
        for operation, kind, size, parameters in (
            ("put_object", "PutObject", "small", {"Body": b"x"}),
            ("head_object", "HeadObject", "large", {}),
            ("create_multipart_upload", "CreateMultipartUpload", "large", {}),
            ("upload_part", "UploadPart", "large", part),
            ("complete_multipart_upload", "CompleteMultipartUpload", "large", complete),
        ):
            expected = botocore_sends(rgw.client, operation, **{**ssec, **parameters})
            expected.pop("content-type", None)
            for each in sent(proxy, kind, f"secret.{size}"):
                each.pop("content-type", None)
                assert each.pop("cache-control", None) == ("no-cache" if kind == "HeadObject" else None)
                assert each == expected and len(each) == 3, kind
    assert run.err and encoded not in run.out + run.err


@pytest.mark.parametrize("form", ["bytes", "base64"])
def test_customer_key_is_kept_to(s3once, rgw, bucket, tmp_path, form):
    key = tmp_path / "key"
    key.write_bytes(KEY if form == "bytes" else base64.b64encode(KEY) + b"\n")
    tree = two_of_each(tmp_path, "secret")
    s3once.environment |= {"AWS_ENDPOINT_URL_S3": rgw.tls_endpoint, "AWS_CA_BUNDLE": str(rgw.ca)}
    push(s3once, tree, bucket, "--sse-c-key-file", key)
    for path in tree.iterdir():
        found = rgw.make_client(rgw.tls_endpoint).get_object(
            Bucket=bucket, Key=path.name, SSECustomerKey=KEY, SSECustomerAlgorithm="AES256"
        )
        assert hashlib.sha256(found["Body"].read()).digest() == hashlib.sha256(path.read_bytes()).digest()
        assert found["SSECustomerAlgorithm"] == "AES256"
    # Without marks the object is looked at: with the key it is adopted, with another it is a conflict.
    key.write_bytes(KEY if form == "bytes" else bytes(32))
    s3once.environment["S3ONCE_MARKS"] = f"sqlite:{tmp_path}/other.db"
    run = push(s3once, tree, bucket, "--sse-c-key-file", key, code=0 if form == "bytes" else 1)
    assert counts(run) == ({"adopted": 2} if form == "bytes" else {"failed": 2}), run


def test_the_bucket_is_known_by_an_object_with_a_key_of_a_rule(s3once, rgw, bucket, tmp_path):
    """It was proven last, so the next run asks for it, with that key."""
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "rules").write_text(f'[rule "z*"]\nsse-c-key-file = {tmp_path}/key\n')
    tree = make_tree(tmp_path / "tree", {"a": 10, "z": 10})
    s3once.environment |= {"AWS_ENDPOINT_URL_S3": rgw.tls_endpoint, "AWS_CA_BUNDLE": str(rgw.ca)}
    for expected in ({"uploaded": 2}, {"skipped": 2}):
        run = push(s3once, tree, bucket, "--rules", tmp_path / "rules", "--concurrency", "1", "--give-up-after", "1s")
        assert counts(run) == expected, run


def test_an_object_with_a_key_hides_the_bucket_from_nobody(s3once, rgw, bucket, tmp_path):
    """The object that was proven last has a key. verify with it finds the bucket by it, and who has no key by another object."""
    key, prefix = tmp_path / "key", f"s3://{bucket}"
    key.write_bytes(KEY)
    s3once.environment |= {"AWS_ENDPOINT_URL_S3": rgw.tls_endpoint, "AWS_CA_BUNDLE": str(rgw.ca)}
    encrypted, open_tree = make_tree(tmp_path / "encrypted", {"a": 10}), make_tree(tmp_path / "open", {"b": 10})
    assert s3once("push", open_tree, f"{prefix}/open").code == 0
    assert s3once("push", encrypted, f"{prefix}/encrypted", "--sse-c-key-file", key).code == 0
    make_tree(open_tree, {"c": 10})
    run = s3once("push", open_tree, f"{prefix}/open", "--give-up-after", "1s", "--json")
    assert run.code == 0 and counts(run) == {"uploaded": 1, "skipped": 1}, run
    assert s3once("verify", f"{prefix}/open").code == 0
    assert s3once("push", encrypted, f"{prefix}/encrypted", "--sse-c-key-file", key, "--reupload").code == 0
    assert s3once("verify", "--head", f"{prefix}/encrypted", "--sse-c-key-file", key).code == 0
    s3once.environment["S3ONCE_MARKS"] = f"sqlite:{tmp_path}/only-encrypted.db"
    assert s3once("push", encrypted, f"{prefix}/more", "--sse-c-key-file", key).code == 0
    assert s3once("verify", f"{prefix}/more", "--sse-c-key-file", key).code == 0
    s3once.environment["S3ONCE_SSE_C_KEY_FILE"] = str(key)  # as for push
    assert s3once("verify", f"{prefix}/more").code == 0
    del s3once.environment["S3ONCE_SSE_C_KEY_FILE"]
    run = s3once("push", open_tree, f"{prefix}/open", "--give-up-after", "1s")
    assert run.code == 3 and "Customer" in run.err, "no object is shown without the key"


@pytest.mark.parametrize("then", [bytes(32), None], ids=["another key", "no key"])
def test_upload_goes_on_with_its_own_key_only(s3once, rgw, bucket, tmp_path, then):
    """Begun with one key and broken off before it was completed, it is started again with what is given now."""
    tree = make_tree(tmp_path / "tree", {"large": 11 * MIB})
    key = tmp_path / "key"
    key.write_bytes(KEY)
    options = ["--part-size", "5MiB", "--sse-c-key-file", key]
    with Proxy(rgw, "s3", tmp_path / "proxy", tls=True) as proxy:
        s3once.environment |= {"AWS_ENDPOINT_URL_S3": proxy.endpoint, "AWS_CA_BUNDLE": str(proxy.ca)}
        proxy.add(faults.answer(403, "AccessDenied"), "CompleteMultipartUpload", times=None)
        run = push(s3once, tree, bucket, *options, code=1)
        (begun,) = rgw.uploads(bucket)
        push(s3once, tree, bucket, *options, code=1)
        assert [*rgw.uploads(bucket)] == [begun], "the same key goes on with it"
        proxy.clear()
        key.write_bytes(then or b"")
        push(s3once, tree, bucket, *options[: 4 if then else 2])
    ssec = {"SSECustomerKey": then, "SSECustomerAlgorithm": "AES256"} if then else {}
    found = rgw.make_client(rgw.tls_endpoint).get_object(Bucket=bucket, Key="large", **ssec)
    assert found["Body"].read() == (tree / "large").read_bytes() and not rgw.uploads(bucket)


@pytest.mark.parametrize("s3", ["swift"], indirect=True)
def test_on_the_other_server(s3once, s3, bucket, tmp_path):
    options = ["--content-type=text/x-a", "--header=Content-Encoding: gzip", "--header=Content-Disposition: inline", "--metadata=team=a=b"]
    push(s3once, two_of_each(tmp_path, "any"), bucket, *options)
    for name in ("any.small", "any.large"):
        head = s3.client.head_object(Bucket=bucket, Key=name)
        assert (head["ContentType"], head["ContentEncoding"], head["ContentDisposition"]) == ("text/x-a", "gzip", "inline")
        assert head["Metadata"]["team"] == "a=b"


def test_rules(s3once, s3, bucket, tmp_path):
    """Defaults, then the last rule that matches, then the command line; an empty value takes back."""
    (tmp_path / "rules").write_text(
        """[default]
header =
    cache-control = no-cache
metadata =
    host = web1
    team = a
[rule "*.html"]
content-type = text/html
[rule "*.gz"]
content-type = application/gzip
header = Content-Encoding: gzip
[rule "sub/*.gz"]
content-type = text/plain
metadata = team=b
header = Cache-Control:
"""
    )
    tree = make_tree(tmp_path / "tree", {name: 3 for name in ("a.html", "b.HTM", "c.gz", "sub/d.gz", "e", ".css")})
    options = ["--rules", tmp_path / "rules", "--metadata", "host=web2"]
    push(s3once, tree, bucket, *options)
    found = {key: s3.client.head_object(Bucket=bucket, Key=key) for key in s3.objects(bucket)}
    types = {key: head["ContentType"] for key, head in found.items()}
    other = types["e"]  # what the server has by itself
    assert types == {
        "a.html": "text/html", "b.HTM": other, "c.gz": "application/gzip", "sub/d.gz": "text/plain", "e": other, ".css": other,
    }  # fmt: skip
    assert {key: head.get("ContentEncoding") for key, head in found.items() if head.get("ContentEncoding")} == {"c.gz": "gzip"}
    assert {key for key, head in found.items() if head.get("CacheControl") == "no-cache"} == found.keys() - {"sub/d.gz"}
    assert {key: (head["Metadata"]["host"], head["Metadata"]["team"]) for key, head in found.items()} == {
        key: ("web2", "b" if key == "sub/d.gz" else "a") for key in found
    }


def test_example(s3once, s3, bucket, tmp_path):
    """config/rules.example holds nothing that is refused."""
    tree = make_tree(tmp_path / "tree", {"public/a": 1, "audit/b": 1})
    push(s3once, tree, bucket, "--dry-run", "--rules", REPOSITORY / "config" / "rules.example")


@pytest.mark.parametrize(
    "options, sentence",
    [
        (["--storage-class", "standard_ia"], "did you mean STANDARD_IA?"),
        (["--storage-class", "a b"], "cannot be the name of a storage class"),
        (["--acl", "publik"], "'publik' is not one of private, public-read"),
        (["--header", "x-amz-grant-read: all"], "is not a list of grantees"),
        (["--header", "x-amz-grant-read: id=x, id="], "is not a list of grantees"),
        (["--acl", "private", "--header", "x-amz-grant-read: id=x"], "acl and the headers x-amz-grant-… contradict each other"),
        (["--header", "no-cache"], "'no-cache' is not a header; it looks like 'Cache-Control: max-age=3600'"),
        (["--header", ": x"], "is not a header"),
        (["--header", "Cache_Control: x"], "S3 knows no header Cache_Control for an upload; there are Content-Encoding, Content-Language, Content-Disposition, Cache-Control,"),
        (["--header", "X-Amz-Storage-Class: GLACIER"], "X-Amz-Storage-Class is set by --storage-class"),
        (["--header", "content-type: text/plain"], "content-type is set by --content-type"),
        (["--header", "x-amz-server-side-encryption: AES256"], "is set by --sse"),
        (["--header", "x-amz-server-side-encryption-customer-key: x"], "is set by --sse-c-key-file"),
        (["--header", "x-amz-meta-team: a"], "x-amz-meta-team is set by --metadata"),
        (["--header", "x-amz-tagging: a=b"], "is set by --tag"),
        (["--header", "x-amz-checksum-sha256: a"], "is set by --checksum"),
        (["--header", "If-None-Match: *"], "is set by --if-changed"),
        (["--header", "Host: a"], "Host is set by s3once itself in each request"),
        (["--tag", "x"], "is not a tag"),
        (["--tag", "k=" + 257 * "v"], "a value 256"),
        ([f"--tag=k{i}=v" for i in range(11)], "at most 10 tags"),
        (["--metadata", "a b=c"], "a character other than letters"),
        (["--metadata", "mtime=1"], "this program itself writes"),
        (["--metadata", "k=ä"], "no header can carry"),
        (["--metadata", "k=" + 1500 * "v"], "at most 1,500 bytes"),
        ([f"--metadata=k{i}=v" for i in range(61)], "too many settings"),
        (["--content-type", "text"], "is not a content type"),
        (["--header", "Cache-Control: a\nb"], "header Cache-Control: 'a\\nb' has characters that no header can carry"),
        (["--header", ""], "the value is empty"),
        (["--header", "Cache-Control: " + 9000 * "x"], "too long for a header"),
        (["--header", "Expires: tomorrow"], "header Expires: 'tomorrow' is not a time in UTC"),
        (["--header", "x-amz-website-redirect-location: x"], "is not a place to redirect to"),
        (["--sse", "kms"], "is not one of AES256, aws:kms, aws:kms:dsse"),
        (["--sse-kms-key-id", "x"], "go with sse aws:kms"),
        (["--sse", "aws:kms", "--header", "x-amz-server-side-encryption-context: [1]"], "is not an encryption context"),
        (["--sse-c-key-file", "/nonexistent"], "/nonexistent cannot be read: No such file"),
        (["--sse-c-key-file", "/etc/passwd"], "/etc/passwd holds no key"),
        *[(["--object-lock", wrong], f"object-lock: '{wrong}' is not a retention: it looks like GOVERNANCE:400d") for wrong in
          ("GOVERNANCE", "GOVERNANCE:", "400d", "governance:400d", "GOVERNANCE:400", "GOVERNANCE:0d", "COMPLIANCE:40000d", "GOV:1d")],
        (["--object-lock", "GOVERNANCE:2020-01-01T00:00:00Z"], "is past"),
        (["--header", "x-amz-object-lock-mode: GOVERNANCE"], "x-amz-object-lock-mode is set by --object-lock"),
        (["--header", "x-amz-object-lock-legal-hold: on"], "is not one of ON, OFF"),
        (["--header", "x-amz-expected-bucket-owner: 123"], "'123' is not an account number of 12 digits"),
        (["--header", "x-amz-request-payer: me"], "is not one of requester"),
        (["--rules", "/nonexistent"], "/nonexistent: it cannot be read"),
    ],
)
def test_wrong_values(s3once, tmp_path, options, sentence):
    run = s3once("push", tmp_path, "s3://bucket", *options)
    assert run.code == 2 and sentence in run.err and len(run.err.splitlines()) == 1, run


def test_the_most_metadata_leaves_room_for_our_own(s3once, s3, bucket, tmp_path):
    """S3 takes 2 KiB, names without x-amz-meta- and values together. Ours are the most where logs are rotated and compressed."""
    tree = make_tree(tmp_path / "tree", {"small.log.1": 100, "large.log.1": 17 * MIB})
    most = ["--metadata", "k=" + 1499 * "v"]
    run = s3once("push", "--rotated", "--compress", "gzip", "--part-size", "5MiB", *most, tree, f"s3://{bucket}")
    assert run.code == 0, run
    for key in s3.objects(bucket):
        metadata = s3.client.head_object(Bucket=bucket, Key=key)["Metadata"]
        assert metadata["k"] == 1499 * "v" and sum(map(len, [*metadata, *metadata.values()])) <= 2048, (key, metadata)


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("acl = private\n", "line 1 is neither [section] nor name = value"),
        ("[all]\nacl = private\n", "the section [all] is unknown"),
        ("[default]\nacls = private\n", "[default]: there is no setting 'acls'"),
        ('[rule "[a"]\nacl = private\n', "unclosed ["),
        ('[rule "*.gz"]\nacl = x\n', "[rule *.gz]: acl: 'x' is not one of"),
        ('[rule "*.gz"]\nsse-kms-key-id = x\n', "[rule *.gz]: sse-kms-key-id"),
        ("[default]\ncache-control = a\n", "there is no setting 'cache-control' of objects"),
        ("[default]\nheader Cache-Control = a\n", "there is no setting 'header Cache-Control' of objects"),
        ("[default]\nheader = x-amz-request-payer: requester\n", "x-amz-request-payer is for all requests"),
        ('[rule "*.gz"]\nheader = Cache: a\n', "[rule *.gz]: header: S3 knows no header Cache for an upload"),
    ],
)
def test_wrong_rules(s3once, tmp_path, text, sentence):
    (tmp_path / "rules").write_text(text)
    run = s3once("push", tmp_path, "s3://bucket", "--rules", tmp_path / "rules")
    assert run.code == 2 and sentence in run.err and len(run.err.splitlines()) == 1, run


def test_key_over_plain_http(s3once, s3, bucket, tmp_path):
    (tmp_path / "key").write_bytes(KEY)
    run = s3once("push", make_tree(tmp_path / "tree", {"a": 1}), f"s3://{bucket}", "--sse-c-key-file", tmp_path / "key")
    assert run.code == 3 and "the endpoint must be https" in run.err, run
    assert not s3.objects(bucket)
