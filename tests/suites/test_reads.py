"""GET, HEAD and versions as AWS has answered: what this program makes of each answer, and whether Ceph RGW (behind the AWS-like
server of the fault tests) and the simulated S3 give the same ones."""

import copy
import json
import re

from tests.faults.proxy import Proxy
from tests.suites.suite import Suite, read_table
from tests.system.fakes_keys import Fake
from tests.system.harness import fresh_name
from tests.system.test_aws_layer import Probe

ROWS, OTHERS = read_table("reads")
RECORDED = [row for row in ROWS if row["step"][0] != "-"]
# What the program has to make of an answer to GET or HEAD that is no object.
OUTCOMES = {
    "404 ": "absent",
    "404 NoSuchKey": "absent",
    "404 NoSuchVersion": "absent",
    "405 ": "unsupported",
    "405 MethodNotAllowed": "unsupported",
    "400 InvalidArgument": "invalid",
    "416 InvalidRange": "invalid",
}


class Recorded(Fake):
    """Answers everything with one recording."""

    def __init__(self):
        super().__init__(type("Clock", (), {"clock": 0}))
        self.row = None

    def reply(self, method, path, headers, body):
        status, code, told = int(self.row["status"]), self.row["code"], json.loads(self.row["told"])
        if status >= 300:
            return status, f"<?xml version='1.0'?>\n<Error><Code>{code}</Code><Message>recorded</Message></Error>" if code else ""
        return status, told.get("Body", "x" * told["ContentLength"]), {"ETag": told.get("ETag", '"0"')}


def test_reply_is_read_like_aws_reply(tmp_path):
    suite = Suite("Reads, read")
    with Recorded() as server:
        program, env = Probe(tmp_path), {"AWS_ENDPOINT_URL": server.endpoint, "AWS_MAX_ATTEMPTS": "1"}
        for server.row in (row for row in RECORDED if row["request"].split()[0] in ("get", "head")):
            row, told = server.row, json.loads(server.row["told"])
            version = re.search(r"version=(\S+)", row["request"])
            version = [version[1]] if version else []
            if row["request"].startswith("get"):
                found = program("s3", "b", "range", "k", "0", str(told.get("ContentLength", 1)), *version, env=env)
                expected = told.get("Body", "x" * told.get("ContentLength", 0))
            else:
                found, expected = program("s3", "b", "head", "k", *version, env=env), told.get("ContentLength")
            if int(row["status"]) < 300:
                agrees = (found["outcome"], found.get("bytes", found.get("size"))) == ("ok", expected)
            else:
                agrees = (found["outcome"], found["problem"]["code"]) == (OUTCOMES[f"{row['status']} {row['code']}"], row["code"])
            suite.count(agrees, "", (row, found))
        program.kill_all()
    suite.compare_with_page()


def shown(status, headers, body, method, told):
    """The values of a reply that AWS's reply has, too."""
    code = re.search(rb"<Code>(\w+)<", body)
    seen = {
        "Body": body.decode(),
        "ContentLength": int(headers.get("content-length") or 0),
        "ContentRange": headers.get("content-range"),
        "ETag": headers.get("etag"),
        "VersionId": bool(headers.get("x-amz-version-id")),
    }
    return str(status), code[1].decode() if code and method != "HEAD" else "", {key: seen[key] for key in told}


def play(suite, client, reason_of, versions):
    """Each step; where there are no versions, those tests are counted as differing."""
    buckets, seen = {}, {}
    for row in ROWS:
        bucket = buckets.get(row["versions"])
        if not bucket:
            bucket = buckets[row["versions"]] = fresh_name("suites-reads")
            assert client.request("PUT", f"/{bucket}")[0] == 200
            if row["versions"] and versions:
                client.client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
        steps = seen.setdefault(row["test"], {})
        verb, *words = row["request"].split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        content = next((word for word in words if "=" not in word), "")
        content = "x" * int(content[2:]) if content[:2] == "x*" else content
        method = {"get": "GET", "head": "HEAD", "put": "PUT", "delete": "DELETE"}[verb]
        headers = {name: options[name] for name in ("if-match", "if-none-match") if name in options}
        headers = {name: steps[value[1:]]["etag"] if value[0] == "@" else value for name, value in headers.items()}
        if "range" in options:
            headers["range"] = f"bytes={options['range']}"
        version = steps.get(options.get("version"), {}).get("x-amz-version-id", options.get("version"))
        path = f"/{bucket}/{row['test']}" + (f"?versionId={version}" if version else "")
        status, told, body = client.request(method, path, headers, content.encode())
        steps[row["step"].lstrip("-")] = told
        if row["step"][0] == "-":
            assert status < 300, (row, status, body)
            continue
        expected = json.loads(row["told"])
        found = shown(status, told, body, method, expected)
        suite.count(found == (row["status"], row["code"], expected), reason_of(row, found), (row, found))
    suite.compare_with_page()


def test_aws_like_server(rgw):
    with Proxy(rgw, "s3", behaves="aws") as proxy:
        client = copy.copy(rgw)
        client.endpoint = proxy.endpoint
        play(Suite("Reads, AWS-like server", sum(OTHERS.values())), client, lambda row, found: "", True)
        assert not proxy.failures


def test_simulated_s3(simulated):
    kept = "It keeps no earlier versions and no delete markers."
    play(Suite("Reads, simulated S3", sum(OTHERS.values())), simulated, lambda row, found: kept if row["versions"] else "", False)
