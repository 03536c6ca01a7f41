"""The endpoints of requests: equal to botocore's for the same settings, and to AWS's documentation where this botocore lacks the feature."""

import csv
import itertools
import subprocess
from functools import lru_cache
from pathlib import Path

import botocore.config
import botocore.session
import pytest

from tests.system.harness import BUILD

VECTORS = Path(__file__).with_name("endpoint_vectors.tsv")

REGIONS = ["us-east-1", "eu-west-1", "cn-north-1", "us-gov-west-1", "us-iso-east-1", "us-isob-east-1", "aws-global"]
TERMS = ["", "dualstack", "fips", "fips,dualstack", "accelerate", "accelerate,dualstack", "accelerate,fips"]
BUCKETS = ["my-bucket", "my.bucket", "Old_Bucket", "point-4kj3xu6p1a3v8qyeozd8aqkzs2c6ause1a-s3alias"]
POINT = "arn:aws:s3:us-west-2:123456789012:accesspoint"
ARNS = [
    f"{POINT}/my-point",
    f"{POINT}:my-point",
    f"{POINT}/My-Point",
    "arn:aws-cn:s3:cn-north-1:123456789012:accesspoint/my-point",
    "arn:aws-us-gov:s3:us-gov-east-1:123456789012:accesspoint/my-point",
    "arn:aws:s3-object-lambda:us-west-2:123456789012:accesspoint/my-point",
    f"{POINT}",
    f"{POINT}/",
    f"{POINT}/my_point",
    f"{POINT}/my-point/more",
    "arn:aws:s3:us-west-2::accesspoint/my-point",
    "arn:aws:s3:us-west-2:123456789012:bucket/my-bucket",
    "arn:aws:s3:::my-bucket",
    "arn:aws:sqs:us-west-2:123456789012:accesspoint/my-point",
]
CUSTOM = [
    "http://localhost:9000",
    "https://s3.example.com",
    "http://127.0.0.1:9000",
    "http://[::1]:9000",
    "https://minio.example.com/base",
    "http://minio.example.com:80",
    "https://s3.example.com:443/",
]


def is_older(region, custom, bucket, style, terms):
    """Whether botocore 1.29 answers otherwise than AWS's rules of today, whose cases are in tests/suites."""
    if custom:
        return style == "virtual" and bucket == "my.bucket" and custom.startswith("http:")
    if bucket:
        return "fips" in terms and "accelerate" not in terms and (style == "path" or bucket in ("my.bucket", "Old_Bucket"))
    return "dualstack" in terms and "-iso" in region


def rows():
    """service, region, custom URL, bucket, style, terms."""
    for region, terms, bucket in itertools.product(REGIONS, TERMS, BUCKETS):
        if (region, terms) != ("aws-global", "accelerate,dualstack"):  # there botocore makes up a host
            yield "s3", region, "", bucket, "auto", terms
    for region, terms, bucket, style in itertools.product(["us-east-1", "eu-west-1"], TERMS, BUCKETS, ["path", "virtual"]):
        yield "s3", region, "", bucket, style, terms
    for region, arn, terms in itertools.product(["us-west-2", "eu-west-1", "cn-north-1"], ARNS, ["", "dualstack", "fips"]):
        yield "s3", region, "", arn, "auto", terms
    for arn, terms in itertools.product(ARNS[:6], ["accelerate", "keep-region", "fips,dualstack"]):
        yield "s3", "us-east-1", "", arn, "path", terms
    for url, bucket, style in itertools.product(CUSTOM, [*BUCKETS, ARNS[0], ARNS[5]], ["auto", "path", "virtual"]):
        if not ("127.0.0.1" in url and bucket.startswith("arn:")):  # there botocore puts words before the address
            yield "s3", "us-west-2", url, bucket, style, ""
    for url, terms in itertools.product(CUSTOM[:2], TERMS[1:]):
        yield "s3", "us-west-2", url, "my-bucket", "virtual", terms
    for region, terms in itertools.product(REGIONS[:-1], TERMS[:4]):
        yield "dynamodb", region, "", "", "auto", terms
        yield "sts", region, "", "", "auto", terms
        yield "sts", region, "", "", "auto", f"{terms},sts-global"
    for url, service in itertools.product(CUSTOM, ["dynamodb", "sts"]):
        yield service, "eu-west-1", url, "", "auto", ""


# --- botocore


class Sent(Exception):
    """Instead of being sent: where to, and the scope it was signed for."""


def instead_of_sending(request, **_):
    scope = request.headers["Authorization"].decode().split("Credential=")[1].split(",")[0].split("/")
    raise Sent(request.url, scope[2], scope[3])


@lru_cache
def session(sts_mode):
    made = botocore.session.Session()
    made.set_config_variable("sts_regional_endpoints", sts_mode)
    return made


@lru_cache
def client(service, region, custom, style, terms):
    words = terms.split(",")
    config = botocore.config.Config(
        s3={
            "addressing_style": style,
            "use_accelerate_endpoint": "accelerate" in words,
            "use_arn_region": "keep-region" not in words,
            "us_east_1_regional_endpoint": "regional",
        },
        use_dualstack_endpoint="dualstack" in words,
        use_fips_endpoint="fips" in words,
        retries={"total_max_attempts": 1},
        proxies={},
    )
    made = session("legacy" if "sts-global" in words else "regional").create_client(
        service,
        region,
        endpoint_url=custom or None,
        config=config,
        aws_access_key_id="AKIDEXAMPLE",
        aws_secret_access_key="secret",
    )
    made.meta.events.register("before-send", instead_of_sending)
    return made


def by_botocore(service, region, custom, bucket, style, terms):
    try:
        made = client(service, region, custom, style, terms)
        if service == "s3":
            made.put_object(Bucket=bucket, Key="k", Body=b"")
        elif service == "dynamodb":
            made.list_tables()
        else:
            made.get_caller_identity()
    except Sent as sent:
        url, *scope = sent.args
        return (url.removesuffix("/k") if service == "s3" else url.removesuffix("/"), *scope)
    except Exception as refused:  # of a dozen classes
        return "error", str(refused)
    raise AssertionError("nothing was sent")


# --- ours


def by_us(questions):
    lines = "".join("\t".join(question) + "\n" for question in questions)
    done = subprocess.run(
        [BUILD / "tests" / "system" / "endpoint_probe"], input=lines, capture_output=True, text=True, check=True, timeout=60
    )
    assert not done.stderr, done.stderr
    answers = [tuple(line.split("\t")) for line in done.stdout.splitlines()]
    assert len(answers) == len(questions)
    return answers


def without_default_port(url):
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.removesuffix({'http': ':80', 'https': ':443'}.get(scheme, ' '))}{slash}{path}"


def test_equal_to_botocore(monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    questions = [row for row in dict.fromkeys(rows()) if not is_older(*row[1:])]
    differences, refused = [], 0
    for question, ours in zip(questions, by_us(questions)):
        theirs = by_botocore(*question)
        refused += theirs[0] == "error"
        same = ours[0] == "error" if theirs[0] == "error" else ours == (without_default_port(theirs[0]), *theirs[1:])
        if not same:
            differences.append(f"{question}\n  ours   {ours}\n  theirs {theirs}")
    assert not differences, f"{len(differences)} of {len(questions)}:\n" + "\n".join(differences)
    assert len(questions) > 500 and 50 < refused < len(questions) / 2, refused


def test_equal_to_the_documentation():
    """Cases that botocore 1.29 does not know yet, or resolves differently from its successors. Each row names its source."""
    with open(VECTORS) as file:
        vectors = list(csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t"))
    fields = ("service", "region", "custom", "bucket", "style", "terms")
    answers = by_us([tuple(vector[field] for field in fields) for vector in vectors])
    for vector, answer in zip(vectors, answers):
        expected = (vector["url"], vector["signing_region"], vector["signing_name"])
        if vector["url"] == "error":
            assert answer[0] == "error" and vector["signing_name"] in answer[1], (vector, answer)
        else:
            assert answer == expected, (vector, answer)
    assert len(vectors) >= 20 and all(vector["source"] for vector in vectors)
