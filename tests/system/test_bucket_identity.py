"""Marks belong to one bucket. Another one of the same name is refused, and never passed off as the one that was filled."""

import time
from urllib.parse import urlsplit

import pytest

from tests.faults import faults
from tests.faults.proxy import Proxy
from tests.servers.rgw import Rgw
from tests.system.harness import S3, make_tree, wait_until
from tests.system.pushing import counts, marks_of, told

IDENTITY = {"ListBuckets", "GetBucketAcl", "HeadObject"}


def as_user(s3, access_key):
    """The same server with another user's keys, and what the program needs to be that user."""
    info = {name: getattr(s3, name) for name in ("endpoint", "tls_endpoint", "ca", "secret_key", "region")}
    return S3({**info, "access_key": access_key}), {"AWS_ACCESS_KEY_ID": access_key}


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree", {"a": 10, "b/c": 2000})


def make_anew(s3, bucket):
    s3.remove_bucket(bucket)
    s3.client.create_bucket(Bucket=bucket)


def lead_to(s3_wire, server):
    s3_wire.upstream, s3_wire.idle = urlsplit(server.endpoint), []


def kinds_since(s3_wire, before):
    return [record.kind for record in s3_wire.history[before:]]


def assert_refused(run, said):
    assert run.code == 3, run
    assert "is not the bucket that the marks are about" in run.err and said in run.err and "--new-bucket" in run.err, run


@pytest.mark.parametrize("tenant", [None, "tenant"])
@pytest.mark.parametrize("marks", ["sqlite", "dynamodb"], indirect=True)
def test_another_owner_s_bucket_of_the_same_name(s3once, marks, tree, tenant):
    with Rgw() as server:
        server.add_user("other", "OTHERACCESSKEY", tenant)
        mine = S3(server.info())
        theirs, env = as_user(mine, "OTHERACCESSKEY")
        s3once.environment["AWS_ENDPOINT_URL_S3"] = mine.endpoint
        s3once.environment["AWS_ACCESS_KEY_ID"] = mine.access_key
        s3once.environment["AWS_SECRET_ACCESS_KEY"] = mine.secret_key
        mine.client.create_bucket(Bucket="logs")
        command = ("push", tree, "s3://logs/web1")
        assert s3once(*command).code == 0
        mine.assert_same(tree, "logs", "web1")
        if not tenant:  # the name is taken there, but for a bucket of another tenant
            mine.remove_bucket("logs")
        theirs.client.create_bucket(Bucket="logs")
        for more in ([], ["-n"]):
            assert_refused(s3once(*command, *more, env=env), "owned by ")
        assert not theirs.objects("logs")
        run = s3once(*command, "--new-bucket", "--json", env=env)
        assert run.code == 0 and counts(run) == {"uploaded": 2}, run
        theirs.assert_same(tree, "logs", "web1")
        assert s3once(*command, env=env).code == 0


@pytest.mark.parametrize("s3", ["swift"], indirect=True)
def test_another_account_s_bucket_on_swift(s3once, s3, bucket, tree):
    """Swift tells the account's user, and no date."""
    theirs, env = as_user(s3, "other:uploader")
    theirs.client.create_bucket(Bucket=bucket)
    command = ("push", tree, f"s3://{bucket}/p")
    assert s3once(*command).code == 0
    assert_refused(s3once(*command, env=env), "owned by s3once:uploader")
    assert s3once(*command).code == 0
    run = s3once(*command, "--new-bucket", "--json", env=env)
    assert run.code == 0 and counts(run) == {"uploaded": 2}, run
    theirs.assert_same(tree, bucket, "p")
    theirs.remove_bucket(bucket)


def test_a_tunnel_that_leads_elsewhere_today(s3once, s3, bucket, s3_wire, tree):
    """Another cluster with the same user and bucket behind the same address."""
    command = ("push", tree, f"s3://{bucket}/p")
    assert s3once(*command).code == 0
    with Rgw() as server:
        other = S3(server.info())
        other.client.create_bucket(Bucket=bucket)
        lead_to(s3_wire, server)
        assert_refused(s3once(*command), "created ")
        assert not other.objects(bucket)
        lead_to(s3_wire, s3)
        assert s3once(*command).code == 0


@pytest.mark.parametrize("marks", ["sqlite", "dynamodb"], indirect=True)
def test_deleted_and_made_anew(s3once, s3, bucket, marks, s3_wire, tree):
    command = ("push", tree, f"s3://{bucket}/p")
    assert s3once(*command).code == 0
    before = len(s3_wire.history)
    run = s3once(*command, "--json")
    assert run.code == 0 and counts(run) == {"skipped": 2}
    assert kinds_since(s3_wire, before) == ["ListBuckets"], "one request tells that it is the same"
    make_anew(s3, bucket)
    assert_refused(s3once(*command), "created ")
    assert not s3.objects(bucket)
    run = s3once(*command, "--new-bucket", "--json")
    assert run.code == 0 and counts(run) == {"uploaded": 2}, run
    s3.assert_same(tree, bucket, "p")
    for more in ([], ["--new-bucket"]):  # of no effect where the service proves that it is the same
        run = s3once(*command, "--json", *more)
        assert run.code == 0 and counts(run) == {"skipped": 2}, run
    run = s3once("status", f"s3://{bucket}/p")
    assert run.code == 0 and "done 2 files" in run.out and "created 20" in run.out, run


@pytest.mark.parametrize("s3", ["rgw", "swift"], indirect=True)
def test_made_anew_where_the_service_tells_nothing(s3once, s3, bucket, s3_wire, tree):
    """A policy without the rights to ask, and Swift: then the object that was uploaded last is looked at."""
    for kind in ("ListBuckets", "GetBucketAcl"):
        s3_wire.add(faults.answer(403, "AccessDenied"), kind, times=None)
    command = ("push", tree, f"s3://{bucket}/p")
    assert s3once(*command).code == 0
    before = len(s3_wire.history)
    assert s3once(*command).code == 0
    assert kinds_since(s3_wire, before) == ["HeadObject"], "one request tells that it is the same"
    make_anew(s3, bucket)
    run = s3once(*command)
    assert run.code == 3 and "does not hold p/" in run.err and "--new-bucket" in run.err, run
    run = s3once(*command, "--reupload", "--json")
    assert run.code == 0 and counts(run) == {"uploaded": 2}, run
    assert s3once(*command).code == 0
    make_anew(s3, bucket)
    run = s3once(*command, "--new-bucket", "--json")
    assert run.code == 0 and counts(run) == {"uploaded": 2}, run
    s3.assert_same(tree, bucket, "p")


# --- the service shows nothing of the bucket, and the object that was uploaded last is gone


@pytest.fixture
def silent(s3_wire):
    """A service that names neither a creation date nor an owner."""
    for kind in ("ListBuckets", "GetBucketAcl"):
        s3_wire.add(faults.answer(403, "AccessDenied"), kind, times=None)
    return s3_wire


def row_of(marks):
    (row,) = [item for item in marks.items() if item["pk"].startswith("bucket#")]
    return row


def another_second():
    """Marks and rows tell the time in seconds."""
    begun = int(time.time())
    wait_until(lambda: int(time.time()) > begun + 1, 60, "another second")


def looks(s3_wire, before):
    return kinds_since(s3_wire, before).count("HeadObject")


@pytest.mark.parametrize("s3", ["rgw", "swift"], indirect=True)
@pytest.mark.parametrize("marks", ["sqlite", "dynamodb"], indirect=True)
def test_new_files_go_on_where_the_last_object_is_gone(s3once, s3, bucket, marks, silent, tree, tmp_path):
    """A lifecycle rule or an administrator deleted it. That is a warning, until a file is to be skipped."""
    new = make_tree(tmp_path / "new", {"x": 10, "y": 10})
    old, other = ("push", tree, f"s3://{bucket}/p", "--json"), ("push", new, f"s3://{bucket}/q", "--json")
    assert s3once(*old).code == 0
    make_anew(s3, bucket)
    another_second()
    for expected in ({"uploaded": 2}, {"skipped": 2}):
        before = len(silent.history)
        run = s3once(*other)
        assert run.code == 0 and counts(run) == expected, run
        assert any("does not hold p/" in each["text"] for each in told(run, "warning")), run
        assert "skipped" not in expected or looks(silent, before) == 2, "one for the last object, one of the new ones"
    s3.assert_same(new, bucket, "q")
    # What was uploaded since then says nothing about what the marks knew before.
    for more in ([], ["-n"], []):
        run = s3once(*old, *more)
        assert run.code == 3 and not counts(run).get("skipped"), run
        said = told(run, "fatal")[0]["text"]
        assert "does not hold p/" in said and "--new-bucket" in said, run
    run = s3once(*old, "--new-bucket")
    assert run.code == 0 and counts(run) == {"uploaded": 2}, run
    assert counts(s3once(*old)) == {"skipped": 2} and not told(s3once(*other), "warning")


@pytest.mark.parametrize("concurrency", ["1", "16"])
def test_one_of_several_objects_is_gone(s3once, s3, bucket, marks, silent, tmp_path, concurrency):
    tree = make_tree(tmp_path / "many", {f"{i:03}": 10 for i in range(300)})
    command = ("push", tree, f"s3://{bucket}/p", "--json", "--concurrency", concurrency)
    assert s3once(*command).code == 0
    another_second()
    s3.client.delete_object(Bucket=bucket, Key=row_of(marks)["last_key"])
    for more, expected in ((["-n"], 2), ([], 2), ([], 1)):
        before = len(silent.history)
        run = s3once(*command, *more)
        assert run.code == 0 and counts(run) == {"skipped": 300}, run
        assert expected <= looks(silent, before) <= expected + (expected > 1), "the next one is there, and is the last from then on"
        assert bool(told(run, "warning")) == (expected > 1), run


def test_many_objects_are_gone(s3once, s3, bucket, marks, silent, tmp_path):
    """A few of them are looked at, however many there are, and none is said to be skipped."""
    tree = make_tree(tmp_path / "many", {f"{i:03}": 10 for i in range(300)})
    command = ("push", tree, f"s3://{bucket}/p", "--json")
    assert s3once(*command).code == 0
    make_anew(s3, bucket)
    another_second()  # marks of the second in which the doubt begins are looked at apart from those before it
    (tree / "new").write_bytes(b"new")
    before = len(silent.history)
    run = s3once(*command)
    assert run.code == 3 and not counts(run).get("skipped"), run
    assert 4 <= looks(silent, before) <= 5, "the last one, three that are done, and perhaps the new one before it is sent"
    assert row_of(marks)["last_key"] != "p/new"


@pytest.mark.parametrize("change", ["touched", "changed"])
def test_files_that_need_a_closer_look_are_not_skipped_either(s3once, s3, bucket, marks, silent, tree, change):
    command = ("push", tree, f"s3://{bucket}/p", "--if-changed", "skip", "--json")
    assert s3once(*command).code == 0
    make_anew(s3, bucket)
    for path in (tree / "a", tree / "b/c"):
        path.write_bytes(path.read_bytes() if change == "touched" else b"other")
    before = {key: mark["mtime"] for key, mark in marks_of(marks).items()}
    run = s3once(*command)
    assert run.code == 3 and not counts(run), run
    assert {key: mark["mtime"] for key, mark in marks_of(marks).items()} == before


def test_what_was_uploaded_elsewhere_is_not_skipped_here(s3once, s3, bucket, marks, silent, tree, tmp_path):
    """The address led to another cluster for a while. What went there is not here."""
    new = make_tree(tmp_path / "new", {"x": 10, "y": 10})
    old, other = ("push", tree, f"s3://{bucket}/p", "--json"), ("push", new, f"s3://{bucket}/q", "--json")
    assert s3once(*old).code == 0
    another_second()
    with Rgw() as server:
        S3(server.info()).client.create_bucket(Bucket=bucket)
        lead_to(silent, server)
        assert counts(s3once(*other)) == {"uploaded": 2}
        another_second()
        lead_to(silent, s3)
    assert counts(s3once(*old)) == {"skipped": 2}
    run = s3once(*other)
    assert run.code == 3 and not counts(run), run
    assert "does not hold q/" in told(run, "fatal")[0]["text"]
    run = s3once(*other, "--new-bucket")
    assert run.code == 0 and counts(run) == {"uploaded": 2}, run


def test_nothing_may_be_asked(s3once, s3, bucket, s3_wire, tree):
    """With a policy that can only write, what is not told is not compared."""
    for kind in ("ListBuckets", "GetBucketAcl", "HeadObject", "HeadBucket", "ListMultipartUploads"):
        s3_wire.add(faults.answer(403, "AccessDenied"), kind, times=None)
    command = ("push", "--trust-conditions", tree, f"s3://{bucket}/p", "--json")
    assert counts(s3once(*command)) == {"uploaded": 2}
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"skipped": 2}, run
    run = s3once(*command, "--new-bucket")
    assert run.code in (1, 3) and not counts(run).get("skipped"), "each object is looked at, which is denied"


@pytest.mark.parametrize("s3", ["rgw", "swift"], indirect=True)
@pytest.mark.parametrize("marks", ["sqlite", "dynamodb"], indirect=True)
def test_an_object_identifies_the_bucket(s3once, s3, bucket, marks, s3_wire, tree):
    command = ("push", tree, f"s3://{bucket}/p", "--bucket-id-object", ".s3once-bucket")
    assert s3once(*command).code == 0
    assert set(s3.objects(bucket)) == {".s3once-bucket", "p/a", "p/b/c"}
    before = len(s3_wire.history)
    assert s3once(*command).code == 0
    assert kinds_since(s3_wire, before) == ["HeadObject"]
    assert s3_wire.history[-1].operation.key == ".s3once-bucket"
    make_anew(s3, bucket)
    assert_refused(s3once(*command), ".s3once-bucket is not there")
    assert not s3.objects(bucket)
    assert s3once(*command, "--new-bucket").code == 0
    assert s3once(*command).code == 0
    assert set(s3.objects(bucket)) == {".s3once-bucket", "p/a", "p/b/c"}


def test_uploaders_that_race_agree_on_the_object(s3once, s3, bucket, marks, tree):
    command = ("push", tree, f"s3://{bucket}/p", "--bucket-id-object", "id")
    running = [s3once.start(*command) for _ in range(6)]
    for run in [each.wait(120) for each in running]:
        assert run.code == 0, run
    (row,) = [item for item in marks.items() if item["pk"].startswith("bucket#")]
    assert row["object"] == s3.client.head_object(Bucket=bucket, Key="id")["Metadata"]["s3once-claim"]


def test_the_object_is_somebody_else_s(s3once, s3, bucket, tree):
    s3.client.put_object(Bucket=bucket, Key="id", Body=b"theirs")
    run = s3once("push", tree, f"s3://{bucket}/p", "--bucket-id-object", "id")
    assert run.code == 3 and "name another key" in run.err, run
    assert s3.get(bucket, "id") == b"theirs"


@pytest.mark.parametrize("s3", ["rgw"], indirect=True)
def test_another_date_of_the_same_bucket(s3once, s3, bucket, marks, s3_wire, tree):
    """As AWS has it after a policy was edited: what was uploaded last is there, so it is the same bucket."""
    command = ("push", tree, f"s3://{bucket}/p")
    assert s3once(*command).code == 0
    (row,) = [item for item in marks.items() if item["pk"].startswith("bucket#")]
    marks.service.client.update_item(
        TableName=marks.table,
        Key={"pk": {"S": row["pk"]}, "sk": {"S": "-"}},
        UpdateExpression="SET created = :c",
        ExpressionAttributeValues={":c": {"S": "2020-01-01T00:00:00.000Z"}},
    )
    for expected in (["ListBuckets", "HeadObject"], ["ListBuckets"]):
        before = len(s3_wire.history)
        run = s3once(*command, "--json")
        assert run.code == 0 and counts(run) == {"skipped": 2}, run
        assert kinds_since(s3_wire, before) == expected


def test_marks_from_before_learn_the_bucket(s3once, s3, bucket, marks, tree):
    """A store without the row gets it from the next run."""
    command = ("push", tree, f"s3://{bucket}/p", "--json")
    assert s3once(*command).code == 0
    (row,) = [item for item in marks.items() if item["pk"].startswith("bucket#")]
    marks.service.client.delete_item(TableName=marks.table, Key={"pk": {"S": row["pk"]}, "sk": {"S": "-"}})
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"skipped": 2}, run
    make_anew(s3, bucket)
    assert s3once(*command).code == 3


@pytest.mark.parametrize("fault", [faults.drop_request, faults.drop_reply, faults.answer(503, "SlowDown"), faults.answer(500, "InternalError"), faults.truncate_reply], ids=lambda f: f.__name__)  # fmt: skip
@pytest.mark.parametrize("kind", ["ListBuckets", "PutItem:bucket", "GetItem:bucket"])
def test_requests_about_the_bucket_are_lost(s3once, s3, dynamodb, table, bucket, s3_wire, tree, fault, kind):
    with Proxy(dynamodb, "dynamodb") as store:
        store.access_key, store.secret_key = s3.access_key, s3.secret_key
        s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = store.endpoint
        assert s3once("init").code == 0
        at = store if ":" in kind else s3_wire
        rule = at.add(fault, kind)
        command = ("push", tree, f"s3://{bucket}/p", "--json")
        run = s3once(*command)
        # A reply of the store that is cut and well-formed all the same ends the run before anything was sent.
        assert run.code == 0 or (run.code == 3 and fault is faults.truncate_reply), run
        assert rule.fired == 1
        assert s3once(*command).code == 0
        run = s3once(*command)
        assert run.code == 0 and counts(run) == {"skipped": 2}, run
        make_anew(s3, bucket)
        assert s3once(*command).code == 3


def test_nothing_is_said_of_a_bucket_that_cannot_be_asked(s3once, s3, bucket, s3_wire, tree):
    """All files are done, and S3 does not answer: no exit 0."""
    command = ("push", tree, f"s3://{bucket}/p", "--retries", "1", "--give-up-after", "1s")
    assert s3once(*command).code == 0
    s3_wire.add(faults.drop_request, None, times=None)
    run = s3once(*command)
    assert run.code == 3 and "all 2" not in run.out, run


def test_the_bucket_is_gone(s3once, s3, bucket, tree):
    command = ("push", tree, f"s3://{bucket}/p")
    assert s3once(*command).code == 0
    s3.remove_bucket(bucket)
    run = s3once(*command)
    s3.client.create_bucket(Bucket=bucket)
    assert run.code == 3 and bucket in run.err, run


def test_uploaders_begin_anew_together(s3once, s3, bucket, marks, tree):
    """One of them takes the marks' next generation, and the others use the same one."""
    command = ("push", tree, f"s3://{bucket}/p", "--json", "--new-bucket")
    assert s3once(*command).code == 0
    make_anew(s3, bucket)
    runs = [each.wait(120) for each in [s3once.start(*command) for _ in range(5)]]
    assert [run.code for run in runs] == [0] * 5, runs
    assert sum(counts(run).get("uploaded", 0) for run in runs) == 2
    (row,) = [item for item in marks.items() if item["pk"].startswith("bucket#")]
    assert row["generation"] == 1 and marks_of(marks).keys() == {"p/a", "p/b/c"}


def test_a_run_from_before_keeps_its_generation(s3once, s3, bucket, marks, s3_wire, tree, tmp_path):
    """Later runs do not read its marks, and find its objects by looking."""
    url = f"s3://{bucket}/p"
    assert s3once("push", tree / "a", url).code == 0
    held = s3_wire.add(faults.hold_request, "PutObject", key="p/b/c")
    earlier = s3once.start("push", tree, url, "--json", "--lease", "1h", "--heartbeat", "10m")
    assert held.reached.wait(60), earlier.output()
    make_anew(s3, bucket)
    assert s3once("push", tree / "a", url, "--new-bucket").code == 0
    held.released.set()
    run = earlier.wait()
    assert run.code == 0 and counts(run) == {"skipped": 1, "uploaded": 1}, run
    generations = {(item["sk"], "~1#" in item["pk"]) for item in marks.items() if item["sk"].startswith("p/")}
    assert generations == {("p/a", False), ("p/a", True), ("p/b/c", False)}
    run = s3once("push", tree, url, "--json")
    assert run.code == 0 and counts(run) == {"skipped": 1, "adopted": 1}, run
    s3.assert_same(tree, bucket, "p")
