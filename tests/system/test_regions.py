"""The bucket's region is found by itself and remembered; AWS's endpoints are reached through a proxy."""

import pytest

from tests.system.fakes_aws import Aws
from tests.system.harness import make_tree

HOME, OTHER = "us-east-1", "eu-west-1"  # Swift demands us-east-1 in the signature
NAMED = [("x-amz-bucket-region", HOME)]


def error(code, more=""):
    return f"<Error><Code>{code}</Code><Message>elsewhere</Message>{more}</Error>".encode()


def by_header(method):
    return 301, NAMED, b"" if method == "HEAD" else error("PermanentRedirect")


def by_body(method):
    if method == "HEAD":
        return 400, NAMED
    return 400, [], error("AuthorizationHeaderMalformed", f"<Region>{HOME}</Region>")


@pytest.fixture
def aws(s3, s3once, tmp_path):
    """aws(redirect): the program goes to AWS, which is there as a fake in front of Swift (RGW takes unknown hosts for buckets)."""
    made = []

    def start(redirect):
        aws = Aws(tmp_path, s3.endpoint, HOME, redirect)
        made.append(aws.__enter__())
        config = tmp_path / "config"
        config.write_text("[default]\ns3 =\n  addressing_style = path\n")
        s3once.environment.update(
            {"AWS_CONFIG_FILE": str(config), "AWS_CA_BUNDLE": str(aws.ca), "HTTPS_PROXY": aws.url, "AWS_REGION": OTHER}
        )
        for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
            s3once.environment[name] = None
        return aws

    yield start
    for server in made:
        server.__exit__()


@pytest.mark.parametrize("s3", ["swift"], indirect=True)
@pytest.mark.parametrize("redirect", [by_header, by_body])
def test_region_is_found_and_remembered(s3once, s3, bucket, tmp_path, aws, redirect):
    server = aws(redirect)
    tree = make_tree(tmp_path / "tree", {f"f{i}": 100 + i for i in range(40)})
    run = s3once("push", "--concurrency", "2", tree, f"s3://{bucket}")
    assert run.code == 0, run
    s3.assert_same(tree, bucket)
    wrong = [method for method, host in server.seen if host == f"s3.{OTHER}.amazonaws.com"]
    right = [method for method, host in server.seen if host == f"s3.{HOME}.amazonaws.com"]
    assert len(wrong) + len(right) == len(server.seen)
    assert 1 <= len(wrong) <= 6 and right.count("PUT") >= 40, (wrong, len(right))
    assert set(server.tunnels) == {f"s3.{OTHER}.amazonaws.com:443", f"s3.{HOME}.amazonaws.com:443"}


@pytest.mark.parametrize("s3", ["swift"], indirect=True)
def test_region_that_nobody_tells(s3once, s3, bucket, tmp_path, aws):
    aws(lambda method: (301, [], b"" if method == "HEAD" else error("PermanentRedirect")))
    tree = make_tree(tmp_path / "tree", {"f": 100})
    run = s3once("push", tree, f"s3://{bucket}")
    assert run.code == 3 and "--region" in run.err, run
    assert not s3.objects(bucket)


@pytest.mark.parametrize("s3", ["swift"], indirect=True)
def test_a_proxy_that_breaks_tls_open_is_not_trusted(s3once, bucket, tmp_path, aws):
    """It ends the run at once: not one request was sent."""
    server = aws(by_header)
    s3once.environment["AWS_CA_BUNDLE"] = None
    run = s3once("push", "--concurrency", "1", make_tree(tmp_path / "tree", {"a": 1, "b": 1}), f"s3://{bucket}")
    assert run.code == 3 and "is not trusted" in run.err and "--ca-bundle" in run.err, run
    assert len(server.tunnels) == 1 and not server.seen


@pytest.mark.real_s3
@pytest.mark.parametrize("direct", [True, False])
def test_no_proxy(s3once, s3, bucket, tmp_path, direct):
    tree = make_tree(tmp_path / "tree", {"f": 100})
    env = {"HTTPS_PROXY": "http://127.0.0.1:9", "AWS_ENDPOINT_URL_S3": s3.tls_endpoint, "AWS_CA_BUNDLE": s3.ca}
    argv = ["push", "--give-up-after", "1s", tree, f"s3://{bucket}"]
    run = s3once(*argv, env={**env, "NO_PROXY": "127.0.0.1" if direct else None}, attempts=1)
    assert run.code == (0 if direct else 3), run
    assert len(s3.objects(bucket)) == direct
