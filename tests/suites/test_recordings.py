"""Recorded replies of AWS: the outcome that this program reads in each error, and whether the AWS-like server
of the fault tests answers conditional writes in the same way."""

import copy
import json
import re
from xml.sax.saxutils import escape

import pytest

from tests.faults.proxy import Proxy
from tests.suites.suite import Suite, read_table
from tests.system.fakes_keys import Fake
from tests.system.test_aws_layer import Probe

CONDITIONS, _ = read_table("conditions")
ERRORS, NOT_OURS = read_table("recordings")

# How the probe sends each operation, on object k or upload u. GetObject stands for any GET.
WORDS = {
    "PutObject": ["put", "k", "{file}"],
    "HeadObject": ["head", "k"],
    "CreateMultipartUpload": ["create", "k"],
    "UploadPart": ["part", "k", "u", "1", "{file}"],
    "CompleteMultipartUpload": ["complete", "k", "u", "{file}"],
    "ListParts": ["parts", "k", "u"],
    "GetObject": ["uploads"],
    "ListMultipartUploads": ["uploads"],
    "any": ["put", "p", "s", "{{}}"],
}

# What the program has to make of an error: by its code, or by operation and code where that matters.
OUTCOMES = {
    "AccessDenied": "denied",
    "BadDigest": "bad digest",
    "ConditionalCheckFailedException": "refused",
    "ConditionalRequestConflict": "conflict",
    "EntityTooSmall": "bad part",
    "InvalidArgument": "invalid",
    "InvalidDigest": "bad digest",
    "InvalidEncryptionAlgorithmError": "setting refused",
    "InvalidObjectState": "denied",
    "InvalidPart": "bad part",
    "InvalidPartOrder": "bad part",
    "InvalidRange": "invalid",
    "InvalidRequest": "invalid",
    "InvalidStorageClass": "setting refused",
    "InvalidTag": "setting refused",
    "KMS.DisabledException": "setting refused",
    "KMS.KMSInvalidStateException": "setting refused",
    "KMS.NotFoundException": "setting refused",
    "MalformedXML": "invalid",
    "MethodNotAllowed": "unsupported",
    "NoSuchKey": "absent",
    "NoSuchUpload": "no such upload",
    "NotImplemented": "unsupported",
    "PreconditionFailed": "refused",
    "ResourceNotFoundException": "setup",
    "ValidationException": "invalid",
    "HeadObject 400": "invalid",
    "HeadObject 403": "denied",
    "HeadObject 404": "absent",
}


class Recorded(Fake):
    """Answers everything with one recording."""

    def __init__(self):
        super().__init__(type("Clock", (), {"clock": 0}))
        self.answer = None

    def reply(self, method, path, headers, body):
        row = self.answer
        status, code, message = int(row["status"]), row["code"], row["message"]
        if method == "HEAD":
            return status, ""
        if row["service"] == "s3":
            return status, f"<?xml version='1.0'?>\n<Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
        item = {"Item": json.loads(row["item"])} if row["item"] else {}
        return status, {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": message, **item}


@pytest.mark.parametrize("service", ["s3", "dynamodb"])
def test_errors(tmp_path, service):
    suite = Suite({"s3": "Errors of S3", "dynamodb": "Errors of DynamoDB"}[service], NOT_OURS[service])
    (tmp_path / "file").write_bytes(b"x")
    with Recorded() as recorded:
        program = Probe(tmp_path)
        place = "b" if service == "s3" else "t"
        env = {"AWS_ENDPOINT_URL": recorded.endpoint, "AWS_MAX_ATTEMPTS": "1"}
        for row in (row for row in ERRORS if row["service"] == service):
            recorded.answer = row
            words = [word.format(file=tmp_path / "file") for word in WORDS[row["operation"]]]
            options = {"if_match": "x"} if row["operation"] == "CompleteMultipartUpload" and row["code"] == "NoSuchKey" else {}
            found = program(service, place, *words, env=env, **options)
            expected = OUTCOMES.get(f"{row['operation']} {row['code']}") or OUTCOMES.get(row["code"])
            code = "" if row["operation"] == "HeadObject" else row["code"]
            agrees = (found["outcome"], found["problem"]["code"], found["problem"]["status"]) == (expected, code, int(row["status"]))
            if row["item"]:
                agrees = agrees and found["item"] == json.loads(row["item"])
            suite.count(agrees, "", (row, found))
        program.kill_all()
    suite.compare_with_page()


def play_conditional_writes(suite, client, bucket):
    """Each step of AWS's recordings, whose answer is compared."""
    assert client.request("PUT", f"/{bucket}")[0] == 200
    etags, upload, part = {}, None, None
    for row in CONDITIONS:
        path = f"/{bucket}/{row['test']}"
        steps = etags.setdefault(row["test"], {})
        for word in (word for word in row["request"].split() if word in ("put", "create", "complete", "delete")):
            body = re.search(r"put (\w+)(?!\S)", row["request"])
            headers = {
                name: steps[value[1:]] if value[0] == "@" else value
                for name, value in re.findall(r"(if-match|if-none-match)=(\S+)", row["request"])
            }
            if word == "put":
                status, told, answer = client.request("PUT", path, headers, body[1].encode() if body else b"")
            elif word == "delete":
                status, told, answer = client.request("DELETE", path)
            elif word == "create":
                status, told, answer = client.request("POST", f"{path}?uploads=")
                upload = re.search(rb"<UploadId>([^<]*)<", answer)[1].decode()
                part = client.request("PUT", f"{path}?partNumber=1&uploadId={upload}", {}, b"test")[1]["etag"]
            else:
                parts = f"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{escape(part)}</ETag></Part></CompleteMultipartUpload>"
                status, told, answer = client.request("POST", f"{path}?uploadId={upload}", headers, parts.encode())
        etag = re.search(rb"<ETag>&quot;([^<]*)&quot;<", answer)
        steps[row["step"]] = f'"{etag[1].decode()}"' if etag else told.get("etag")
        code = re.search(rb"<Code>(\w+)<", answer)
        found = (str(status), code[1].decode() if code else "")
        suite.count(found == (row["status"], row["code"]), "", (row, found))
    client.remove_bucket(bucket)
    suite.compare_with_page()


def test_conditional_writes(rgw):
    with Proxy(rgw, "s3", behaves="aws") as proxy:
        client = copy.copy(rgw)
        client.endpoint = proxy.endpoint
        play_conditional_writes(Suite("Conditional writes, AWS-like server"), client, "suites-conditions")
        assert not proxy.failures


def test_conditional_writes_simulated(simulated):
    play_conditional_writes(Suite("Conditional writes, simulated S3"), simulated, "suites-conditions")
