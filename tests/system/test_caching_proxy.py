"""Only S3 itself proves what it holds: behind a proxy that answers from a cache, or lets no GET through, nothing is believed."""

import pytest

from tests.faults import faults
from tests.servers.nginx_cache import NginxCache
from tests.system.harness import S3, make_tree
from tests.system.test_bucket_identity import lead_to

sqlite = pytest.mark.parametrize("marks", ["sqlite"], indirect=True)
TELLING = ["tells", "tells by RFC 9211", "tells the age"]


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree", {f"f{i}": 100 + i for i in range(6)})


@pytest.fixture
def cache(request, s3):
    with NginxCache(s3, request.param) as server:
        yield server


@pytest.fixture
def target(s3once, s3, s3_wire, bucket, marks, tree, cache):
    """The proxy has cached that all six files are in S3. Then S3 loses f3, which is not the object by which the bucket is known: nginx
    takes the header Range out of the GET that would ask for that one, and so breaks its signature."""
    s3once.environment["AWS_ENDPOINT_URL_S3"] = s3_wire.endpoint
    target = f"s3://{bucket}/p"
    assert s3once("push", "--concurrency", "1", tree, target).code == 0
    lead_to(s3_wire, cache)
    for path in tree.iterdir():
        S3(cache.info()).client.head_object(Bucket=bucket, Key=f"p/{path.name}")
    s3.client.delete_object(Bucket=bucket, Key="p/f3")
    return target


@sqlite
@pytest.mark.parametrize("cache", TELLING, indirect=True)
def test_a_reply_from_a_cache_proves_nothing(s3once, target, tree):
    run = s3once("proven", "--source", tree, tree, target)
    assert run.code == 3 and "a cache on the way answered in place of S3" in run.out + run.err, run
    run = s3once("push", tree, target, "--delete-after=0s")
    assert run.code == 3 and "a cache on the way answered in place of S3" in run.err, run
    assert len(list(tree.iterdir())) == 6


@sqlite
@pytest.mark.parametrize("cache", ["obeys", "goes by the URL"], indirect=True)
def test_reads_are_passed_on_by_caches(s3once, target, tree):
    run = s3once("proven", "--source", tree, tree, target)
    assert run.code == 1 and run.out.count("not in S3") == 1, run
    run = s3once("push", tree, target, "--delete-after=0s")
    assert run.code == 1 and [path.name for path in tree.iterdir()] == ["f3"], run


@pytest.mark.parametrize("cache", ["ignores the query", "tells"], indirect=True)
def test_doctor_finds_a_cache(s3once, s3, bucket, cache):
    run = s3once("doctor", f"s3://{bucket}", "--json", env={"AWS_ENDPOINT_URL_S3": cache.endpoint})
    found = [event for event in run.events if event["finding"] == "failure"]
    assert run.code == 1 and any("cache on the way answer" in event["text"] for event in found), run


@sqlite
def test_no_get_is_let_through(s3once, s3_wire, s3, bucket, marks, tree):
    """HEAD says 404 of each object of an emptied bucket, and a proxy refuses GET: that is no sign that the marks are right."""
    target = f"s3://{bucket}/p"
    assert s3once("push", tree, target).code == 0
    for key in s3.objects(bucket):
        s3.client.delete_object(Bucket=bucket, Key=key)
    s3_wire.add(faults.answer(403, "AccessDenied"), "GetObject", times=None)
    run = s3once("push", tree, target, "--give-up-after", "0s")
    assert run.code == 3 and "HEAD says that there is no object" in run.err and "GET is refused" in run.err, run
