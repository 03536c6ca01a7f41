"""All files are done, their objects are gone, and what answers is not S3: a run never says that they are in S3."""

import pytest

from tests.faults import faults
from tests.faults.proxy import Proxy
from tests.system.harness import make_tree
from tests.system.pushing import counts, told

SOON = ("--give-up-after", "1s", "--json")


@pytest.fixture(autouse=True)
def two_attempts(s3once):
    s3once.environment["AWS_MAX_ATTEMPTS"] = "2"


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree", {"a": 10, "b/c": 2000})


@pytest.fixture
def done(s3once, s3, bucket, s3_wire, tree):
    """The command whose files are done, in a bucket that was emptied since."""
    command = ("push", tree, f"s3://{bucket}/p", *SOON)
    assert counts(s3once(*command)) == {"uploaded": 2}
    s3.empty(bucket)
    return command


def assert_not_done(s3once, command):
    """Nor is it taken for another bucket: nobody said so."""
    for more in ([], ["-n"]):
        run = s3once(*command, *more)
        assert run.code == 3 and not counts(run), run
        (fatal,) = told(run, "fatal")
        assert "--bucket new" not in fatal["text"], run


PAGES = [200, 203, 204, 301, 302, 303, 304, 307, 308, *range(400, 419), 429, 500, 501, 502, 503, 504, 505, 507, 511]


@pytest.mark.parametrize("status", PAGES)
def test_a_page_of_html(s3once, s3_wire, done, status):
    headers = {"location": "http://127.0.0.1:9/login"} if 300 < status < 309 and status != 304 else {}
    rule = s3_wire.add(faults.page(status, **headers), times=None)
    assert_not_done(s3once, done)
    assert rule.fired


def test_a_page_with_an_etag(s3once, s3_wire, done):
    """nginx gives such an etag to a file."""
    s3_wire.add(faults.page(200, etag='"5f3-61a"'), times=None)
    assert_not_done(s3once, done)


@pytest.mark.parametrize("status, code", [(400, "InvalidRequest"), (405, "MethodNotAllowed"), (409, "OperationAborted"), (412, "PreconditionFailed"), (500, "InternalError"), (501, "NotImplemented"), (503, "SlowDown"), (503, "ServiceUnavailable")])  # fmt: skip
def test_an_error_of_s3(s3once, s3_wire, done, status, code):
    """It is S3, and it shows nothing."""
    s3_wire.add(faults.answer(status, code), times=None)
    assert_not_done(s3once, done)


@pytest.mark.parametrize("fault", [faults.refuse, faults.drop_request, faults.drop_reply, faults.cut_reply, faults.garble_reply], ids=lambda fault: fault.__name__)  # fmt: skip
def test_no_reply(s3once, s3_wire, done, fault):
    s3_wire.add(fault, times=None)
    assert_not_done(s3once, done)


def test_the_headers_of_another_object(s3once, s3, bucket, s3_wire, tree, tmp_path):
    """It was uploaded by the same marks, so that only its key tells that it is another one."""
    other = make_tree(tmp_path / "other", {"x": 30})
    assert s3once("push", other, f"s3://{bucket}/q").code == 0
    command = ("push", tree, f"s3://{bucket}/p", *SOON)
    assert s3once(*command).code == 0
    headers = s3.client.head_object(Bucket=bucket, Key="q/x")["ResponseMetadata"]["HTTPHeaders"]
    assert "x-amz-meta-s3once-table" in headers and "x-amz-request-id" in headers
    s3.empty(bucket)
    for without in ((), ("x-amz-request-id",)):
        shown = {name: value for name, value in headers.items() if name not in without}
        rule = s3_wire.add(faults.headers_of(shown), "HeadObject", times=None, where=lambda record: record.operation.key.startswith("p/"))
        run = s3once(*command)
        assert run.code == 3 and not counts(run) and rule.fired, run
        s3_wire.clear()


def test_a_server_of_another_name(s3once, s3, bucket, tree, tmp_path):
    """Its certificate is trusted, and is not that of the address."""
    with Proxy(s3, "s3", tmp_path / "proxy", tls=True) as proxy, Proxy(s3, "s3", tmp_path / "other") as other:
        cert, key = tmp_path / "other" / "cert.pem", tmp_path / "other" / "key.pem"
        other.run(["openssl", "req", "-x509", "-nodes", "-days", "30", "-subj", "/CN=portal", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-addext", "subjectAltName=DNS:portal", "-keyout", key, "-out", cert])  # fmt: skip
        bundle = tmp_path / "bundle.pem"
        bundle.write_bytes(proxy.ca.read_bytes() + cert.read_bytes())
        s3once.environment |= {"AWS_ENDPOINT_URL_S3": proxy.endpoint, "AWS_CA_BUNDLE": str(bundle)}
        command = ("push", tree, f"s3://{bucket}/p", *SOON)
        assert counts(s3once(*command)) == {"uploaded": 2}
        s3.empty(bucket)
        proxy.context.load_cert_chain(cert, key)
        assert_not_done(s3once, command)
        assert "certificate" in s3once(*command).err


def test_a_proxy_that_wants_a_password(s3once, s3, s3_wire, done):
    with Proxy(s3, "s3") as http_proxy:
        http_proxy.add(faults.page(407, **{"proxy-authenticate": "Basic"}), times=None)
        s3once.environment["http_proxy"] = http_proxy.endpoint
        assert_not_done(s3once, done)
        assert http_proxy.history


def test_it_is_waited_for(s3once, s3, bucket, s3_wire, tree):
    """The portal goes away within --give-up-after."""
    command = ("push", tree, f"s3://{bucket}/p", "--json")
    assert s3once(*command).code == 0
    rule = s3_wire.add(faults.page(200), times=3)
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"skipped": 2} and rule.fired == 3, run
    assert "asking again for up to 300 s (--give-up-after)" in run.err, run


def test_verify_and_forget_ask_the_same(s3once, bucket, s3_wire, done):
    s3_wire.add(faults.page(404), times=None)
    for command in (["verify", "--give-up-after", "1s"], ["forget", "--missing", "--yes"]):
        run = s3once(*command, f"s3://{bucket}")
        assert run.code == 3 and "(status 404) is not that of S3, but of something on the way" in run.err, run
