"""The signature of random requests is botocore's. AWS's published examples are in tests/unit/aws/test_sigv4.c."""

import datetime
import hashlib
import json
import random
import subprocess
from urllib.parse import quote

import botocore.auth
import botocore.awsrequest
import botocore.credentials

from tests.system.harness import BUILD

COUNT = 1000
LETTERS = "abcxyzABCXYZ019 -._~/!$&'()*+,;=:@%?#[]{}|\\^`\"<>\täöüßéñ中文字😀\u0301\u200b\u00a0\x7f"
KEYS = ["a/../b", "./a", "a//b", "a/./", "/", "//", "%2F", "%25", "+", "a b", "~", "ümlaut/日本.txt", "a?b#c", "=&", "a\tb"]
OPERATIONS = ["uploads", "uploadId", "partNumber", "prefix", "key-marker", "list-type", "x-id", "Prefix", "a b", "ä", ""]
SPACES = ["", " ", "   ", "\t", " \t "]


def word(chosen, most):
    return "".join(chosen.choice(LETTERS) for _ in range(chosen.randrange(most)))


def encoded(text):
    return quote(text, safe="~")


def query_of(chosen):
    """Repeated names, empty values, names that are beginnings of others; encoded, then sorted as bytes."""
    names = [chosen.choice(OPERATIONS) or word(chosen, 6) or "k" for _ in range(chosen.randrange(6))]
    names += names[: chosen.randrange(3)]
    pairs = sorted((encoded(name), encoded(chosen.choice(["", word(chosen, 12)]))) for name in names)
    return "&".join(f"{name}={value}" for name, value in pairs)


def header_value(chosen):
    """Spaces before, after, and many between the words."""
    words = ["".join(c for c in word(chosen, 8) if c not in "\t \u00a0\x7f") for _ in range(chosen.randrange(4))]
    return chosen.choice(SPACES) + chosen.choice([" ", "  ", " \t", "     "]).join(words) + chosen.choice(SPACES)


def request_of(chosen):
    is_s3 = chosen.random() < 0.8
    time = chosen.randrange(1_000_000_000, 4_000_000_000)
    body = hashlib.sha256(chosen.randbytes(8)).hexdigest()
    payload = chosen.choice([body, "UNSIGNED-PAYLOAD", hashlib.sha256(b"").hexdigest()]) if is_s3 else body
    stamp = datetime.datetime.fromtimestamp(time, datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    host = chosen.choice(["b.s3.eu-west-1.amazonaws.com", "127.0.0.1:9000", "[::1]:9000", "s3.localhost"])
    headers = [["host", host], ["x-amz-date", stamp], ["x-amz-content-sha256", payload]]
    if chosen.random() < 0.4:
        headers.append(["x-amz-security-token", "token//++==" + encoded(word(chosen, 200))])
    names = {f"x-amz-meta-{chosen.choice('abcdefgh')}{n}" for n in range(chosen.randrange(5))}
    headers += [[name, header_value(chosen)] for name in names]
    if chosen.random() < 0.3:
        headers += [["x-amz-meta-twice", header_value(chosen)] for _ in range(2)]
    chosen.shuffle(headers)
    return {
        "method": chosen.choice(["GET", "PUT", "POST", "HEAD", "DELETE"]),
        "key": chosen.choice([chosen.choice(KEYS), word(chosen, 60)]) if is_s3 else "",
        "query": query_of(chosen) if is_s3 else "",
        "headers": headers,
        "payload_hash": payload,
        "region": chosen.choice(["us-east-1", "cn-north-1", "auto", "a"]),
        "service": "s3" if is_s3 else chosen.choice(["dynamodb", "sts"]),
        "time": time,
        "access_key": "AKID" + str(chosen.randrange(10**9)),
        "secret": encoded(word(chosen, 30)) + "/+=",
    }


def by_botocore(asked):
    """(path, Authorization)"""
    path = "/" + quote(asked["key"], safe="/~")
    host = dict(asked["headers"])["host"]
    url = f"https://{host}{path}" + (f"?{asked['query']}" if asked["query"] else "")
    signed = botocore.awsrequest.AWSRequest(asked["method"], url)
    for name, value in asked["headers"]:
        signed.headers.add_header(name, value)
    signed.context["timestamp"] = dict(asked["headers"])["x-amz-date"]
    keys = botocore.credentials.Credentials(asked["access_key"], asked["secret"])
    signer = botocore.auth.S3SigV4Auth if asked["service"] == "s3" else botocore.auth.SigV4Auth
    auth = signer(keys, asked["service"], asked["region"])
    names = auth.signed_headers(auth.headers_to_sign(signed))
    signature = auth.signature(auth.string_to_sign(signed, auth.canonical_request(signed)), signed)
    scope = auth.scope(signed)
    return path, f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders={names}, Signature={signature}"


def test_equal_to_botocore():
    chosen = random.Random(20261121)
    asked = [request_of(chosen) for _ in range(COUNT)]
    lines = "".join(json.dumps(one) + "\n" for one in asked)
    done = subprocess.run(
        [BUILD / "tests" / "system" / "sigv4_probe"], input=lines.encode(), capture_output=True, check=True, timeout=60
    )
    answers = [tuple(line.split("\t")) for line in done.stdout.decode().split("\n")[:-1]]
    assert len(answers) == COUNT and not done.stderr
    for one, answer in zip(asked, answers):
        assert (answer[0], answer[1].replace(",", ", ").replace(",  ", ", ")) == by_botocore(one), one
    assert len({answer[1] for answer in answers}) == COUNT
