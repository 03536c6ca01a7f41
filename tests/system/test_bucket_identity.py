"""Marks belong to one bucket. Another one of the same name is refused, and never passed off as the one that was filled."""

from email.utils import formatdate
from urllib.parse import urlsplit

import pytest

from tests.faults import faults
from tests.faults.proxy import Proxy
from tests.servers.rgw import Rgw
from tests.system.harness import S3, make_tree, wait_until
from tests.system.pushing import counts, learn_conditions, marks_of, told


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


def row_of(marks):
    (row,) = [item for item in marks.items() if item["pk"].startswith("bucket#")]
    return row


def remove_row(marks):
    row = row_of(marks)
    marks.service.client.delete_item(TableName=marks.table, Key={"pk": {"S": row["pk"]}, "sk": {"S": "-"}})


def assert_refused(run, said=""):
    assert run.code == 3, run
    assert "is not the bucket that the marks are about" in run.err and said in run.err, run
    assert "--bucket new" in run.err and "--bucket same" in run.err, run


# --- another bucket


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
            assert_refused(s3once(*command, *more, env=env), "web1/")
        assert not theirs.objects("logs")
        run = s3once(*command, "--bucket", "new", "--json", env=env)
        assert run.code == 0 and counts(run) == {"uploaded": 2}, run
        theirs.assert_same(tree, "logs", "web1")
        assert s3once(*command, env=env).code == 0


@pytest.mark.parametrize("s3", ["swift"], indirect=True)
def test_another_account_s_bucket_on_swift(s3once, s3, bucket, tree):
    theirs, env = as_user(s3, "other:uploader")
    theirs.client.create_bucket(Bucket=bucket)
    command = ("push", tree, f"s3://{bucket}/p")
    assert s3once(*command).code == 0
    assert_refused(s3once(*command, env=env), "p/")
    assert s3once(*command).code == 0
    run = s3once(*command, "--bucket", "new", "--json", env=env)
    assert run.code == 0 and counts(run) == {"uploaded": 2}, run
    theirs.assert_same(tree, bucket, "p")
    theirs.remove_bucket(bucket)


def test_a_tunnel_that_leads_elsewhere_today(s3once, s3, bucket, s3_wire, marks, tree, tmp_path):
    """Another cluster with the same user and bucket behind the same address. New files do not go there either."""
    new = make_tree(tmp_path / "new", {"x": 10, "y": 10})
    command, other = ("push", tree, f"s3://{bucket}/p"), ("push", new, f"s3://{bucket}/q")
    assert s3once(*command).code == 0
    before = row_of(marks)
    with Rgw() as server:
        elsewhere = S3(server.info())
        elsewhere.client.create_bucket(Bucket=bucket)
        lead_to(s3_wire, server)
        for each in (command, other):
            assert_refused(s3once(*each), "p/")
        assert not elsewhere.objects(bucket) and row_of(marks) == before
        lead_to(s3_wire, s3)
        for each in (command, other):
            assert s3once(*each).code == 0
    s3.assert_same(new, bucket, "q")


@pytest.mark.parametrize("s3", ["rgw", "swift"], indirect=True)
@pytest.mark.parametrize("marks", ["sqlite", "dynamodb"], indirect=True)
def test_deleted_and_made_anew(s3once, s3, bucket, marks, s3_wire, tree):
    command = ("push", tree, f"s3://{bucket}/p")
    assert s3once(*command).code == 0
    before = len(s3_wire.history)
    run = s3once(*command, "--json")
    assert run.code == 0 and counts(run) == {"skipped": 2}
    assert kinds_since(s3_wire, before) == ["HeadObject"], "one request tells that it is the same"
    make_anew(s3, bucket)
    assert_refused(s3once(*command), "p/")
    assert not s3.objects(bucket)
    run = s3once(*command, "--bucket", "new", "--json")
    assert run.code == 0 and counts(run) == {"uploaded": 2}, run
    s3.assert_same(tree, bucket, "p")
    for more in ([], ["--bucket", "new"]):  # of no effect where an object is shown
        run = s3once(*command, "--json", *more)
        assert run.code == 0 and counts(run) == {"skipped": 2}, run
    run = s3once("status", f"s3://{bucket}/p")
    assert run.code == 0 and "done 2 files" in run.out and "1 earlier bucket " in run.out, run


@pytest.mark.parametrize("more", [["--reupload"], ["--compare-content"], ["--if-changed", "skip"]], ids=lambda more: more[0])
@pytest.mark.parametrize("change", ["none", "touched", "changed"])
def test_no_way_of_looking_at_files_goes_round_it(s3once, s3, bucket, marks, tree, more, change):
    command = ("push", tree, f"s3://{bucket}/p", "--json", *more)
    assert s3once(*command).code == 0
    make_anew(s3, bucket)
    for path in (tree / "a", tree / "b/c") if change != "none" else ():
        path.write_bytes(path.read_bytes() if change == "touched" else b"other")
    before = marks_of(marks)
    run = s3once(*command)
    assert run.code == 3 and not counts(run) and marks_of(marks) == before, run


def test_the_bucket_is_gone(s3once, s3, bucket, tree):
    command = ("push", tree, f"s3://{bucket}/p")
    assert s3once(*command).code == 0
    s3.remove_bucket(bucket)
    run = s3once(*command)
    s3.client.create_bucket(Bucket=bucket)
    assert run.code == 3 and bucket in run.err and "does not exist" in run.err, run


def test_uploaders_begin_anew_together(s3once, s3, bucket, marks, tree):
    """One of them takes the marks' next generation, and the others use the same one."""
    command = ("push", tree, f"s3://{bucket}/p", "--json", "--bucket", "new")
    assert s3once(*command).code == 0
    make_anew(s3, bucket)
    runs = [each.wait(120) for each in [s3once.start(*command) for _ in range(5)]]
    assert [run.code for run in runs] == [0] * 5, runs
    assert sum(counts(run).get("uploaded", 0) for run in runs) == 2
    assert row_of(marks)["generation"] == 1 and marks_of(marks).keys() == {"p/a", "p/b/c"}


def test_a_run_from_before_keeps_its_generation(s3once, s3, bucket, marks, s3_wire, tree, tmp_path):
    """Later runs do not read its marks, and find its objects by looking."""
    url = f"s3://{bucket}/p"
    assert s3once("push", tree / "a", url).code == 0
    held = s3_wire.add(faults.hold_request, "PutObject", key="p/b/c")
    earlier = s3once.start("push", tree, url, "--json", "--lease", "1h")
    assert held.reached.wait(60), earlier.output()
    make_anew(s3, bucket)
    assert s3once("push", tree / "a", url, "--bucket", "new").code == 0
    held.released.set()
    run = earlier.wait()
    assert run.code == 0 and counts(run) == {"skipped": 1, "uploaded": 1}, run
    generations = {(item["sk"], "~1#" in item["pk"]) for item in marks.items() if item["sk"].startswith("p/")}
    assert generations == {("p/a", False), ("p/a", True), ("p/b/c", False)}
    run = s3once("push", tree, url, "--json")
    assert run.code == 0 and counts(run) == {"skipped": 1, "adopted": 1}, run
    s3.assert_same(tree, bucket, "p")


def test_objects_of_a_run_that_begins_anew_identify_no_bucket(s3once, s3, bucket, marks, s3_wire, tree):
    """The row is read, and then the witness is asked for. If another run has begun anew in between, the object is its own."""
    url = f"s3://{bucket}/p"
    assert s3once("push", tree, url).code == 0
    make_anew(s3, bucket)
    held = s3_wire.add(faults.hold_request, "HeadObject")
    earlier = s3once.start("push", tree, url, "--json")
    assert held.reached.wait(60), earlier.output()
    witness = {"p/a": (tree / "a", url), "p/b/c": (tree / "b", f"{url}/b")}[row_of(marks)["last_key"]]
    assert s3once("push", *witness, "--bucket", "new").code == 0
    held.released.set()
    run = earlier.wait()
    assert run.code == 0 and counts(run) == {"skipped": 1, "uploaded": 1}, run
    s3.assert_same(tree, bucket, "p")


@pytest.mark.parametrize("command", [("verify",), ("forget", "--missing")])
def test_nor_does_it_to_those_who_look_later(s3once, s3, bucket, marks, s3_wire, tree, command):
    """They read the row and ask for the witness as a run does, and give up where a run asks anew."""
    url = f"s3://{bucket}/p"
    assert s3once("push", tree, url).code == 0
    make_anew(s3, bucket)
    before = marks_of(marks)
    held = s3_wire.add(faults.hold_request, "HeadObject")
    later = s3once.start(*command, url)
    assert held.reached.wait(60), later.output()
    witness = {"p/a": (tree / "a", url), "p/b/c": (tree / "b", f"{url}/b")}[row_of(marks)["last_key"]]
    assert s3once("push", *witness, "--bucket", "new").code == 0
    held.released.set()
    run = later.wait()
    assert run.code == 3 and "another uploader has begun anew with --bucket new meanwhile" in run.err, run
    assert marks_of(marks).keys() == before.keys()


# --- the witness


def test_the_witness_is_there_before_the_first_mark(s3once, s3, bucket, dynamodb, table, s3_wire, tmp_path):
    """It is the object of that mark, and is written once: not for every file."""
    tree = make_tree(tmp_path / "many", {f"{i:02}": 10 for i in range(20)})
    with Proxy(dynamodb, "dynamodb") as store:
        store.access_key, store.secret_key = s3.access_key, s3.secret_key
        s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = store.endpoint
        assert s3once("init").code == 0
        assert s3once("push", tree, f"s3://{bucket}/p").code == 0
        order = [operation.kind for record in store.history for operation in (record.operation.statements or [record.operation])]
    assert order.index("PutItem:bucket") < order.index("UpdateItem:done")
    assert order.count("PutItem:bucket") == 2, "the first object, and the last one at the end"


@pytest.mark.parametrize("marks", ["sqlite", "dynamodb"], indirect=True)
def test_a_first_run_that_is_killed(s3once, s3, bucket, marks, s3_wire, tmp_path):
    """Its marks are known to be about this bucket: the next run continues here, and refuses another bucket."""
    tree = make_tree(tmp_path / "tree", {"a": 10, "b": 10})
    command = ("push", tree, f"s3://{bucket}/p", "--concurrency", "1", "--json")
    held = s3_wire.add(faults.hold_request, "PutObject", nth=2)
    run = s3once.start(*command)
    assert held.reached.wait(60), run.output()
    run.kill(9)
    run.wait(60)
    held.released.set()
    (first,) = [key for key, mark in marks_of(marks).items() if mark["state"] == "done"]
    assert row_of(marks)["last_key"] == first
    with Rgw() as server:
        S3(server.info()).client.create_bucket(Bucket=bucket)
        lead_to(s3_wire, server)
        assert_refused(s3once(*command), first)
        lead_to(s3_wire, s3)
    run = s3once(*command)
    assert run.code == 0 and counts(run).get("skipped") == 1, run
    s3.assert_same(tree, bucket, "p")


def test_a_date_that_moves(s3once, s3, bucket, marks, s3_wire, tmp_path):
    """Servers that keep buckets as folders tell the folder's time: run, kill, run, run beside."""
    asked = s3_wire.add(faults.answer(403, "AccessDenied"), "ListBuckets", times=None)
    tree = make_tree(tmp_path / "tree", {"a": 10, "b": 10, "c": 10})
    command = ("push", tree, f"s3://{bucket}/p", "--concurrency", "1", "--json")
    held = s3_wire.add(faults.hold_request, "PutObject", nth=2)
    killed = s3once.start(*command)
    assert held.reached.wait(60), killed.output()
    killed.kill(9)
    killed.wait(60)
    held.released.set()
    held = s3_wire.add(faults.hold_request, "PutObject")
    first = s3once.start(*command)
    assert held.reached.wait(60), first.output()
    beside = s3once.start(*command)
    held.released.set()
    assert [run.wait(120).code for run in (first, beside)] == [0, 0]
    assert not asked.fired, "no run asks for it"
    s3.assert_same(tree, bucket, "p")


def push_elsewhere(s3once, s3, bucket, s3_wire, tree):
    """A run that is led to another cluster, where a bucket has the same name."""
    with Rgw() as server:
        S3(server.info()).client.create_bucket(Bucket=bucket)
        lead_to(s3_wire, server)
        assert s3once("push", tree, f"s3://{bucket}/p").code == 0
        lead_to(s3_wire, s3)


def test_hosts_that_begin_in_two_buckets(s3once, s3, bucket, marks, s3_wire, tmp_path):
    """Both have nothing to be shown. The one that is second is shown the first one's object before a mark of its own says done."""
    tree, other = make_tree(tmp_path / "tree", {"a": 10}), make_tree(tmp_path / "other", {"b": 10})
    held = s3_wire.add(faults.hold_reply, "PutObject", key="q/b")
    second = s3once.start("push", other, f"s3://{bucket}/q", "--json")
    assert held.reached.wait(60), second.output()
    push_elsewhere(s3once, s3, bucket, s3_wire, tree)
    held.released.set()
    run = second.wait(60)
    assert_refused(run, "p/a")
    assert "q/b" not in [key for key, mark in marks_of(marks).items() if mark["state"] == "done"]


def test_done_marks_of_a_host_that_began_elsewhere(s3once, s3, bucket, marks, s3_wire, tree):
    """They came after this run had found none, and are not believed without being shown."""
    held = s3_wire.add(faults.hold_request, "HeadBucket")
    run = s3once.start("push", tree, f"s3://{bucket}/p", "--json")
    assert held.reached.wait(60), run.output()
    push_elsewhere(s3once, s3, bucket, s3_wire, tree)
    held.released.set()
    run = run.wait(60)
    assert run.code == 3 and not counts(run), run
    assert_refused(run, "p/")


def test_one_object_of_many_is_gone(s3once, s3, bucket, marks, s3_wire, tmp_path):
    """Another one is shown, and is the first to be asked for from then on."""
    tree = make_tree(tmp_path / "many", {f"{i:03}": 10 for i in range(300)})
    command = ("push", tree, f"s3://{bucket}/p", "--json")
    assert s3once(*command).code == 0
    s3.client.delete_object(Bucket=bucket, Key=row_of(marks)["last_key"])
    for more, expected in ((["-n"], 2), ([], 2), ([], 1)):
        before = len(s3_wire.history)
        run = s3once(*command, *more)
        assert run.code == 0 and counts(run) == {"skipped": 300} and not told(run, "warning"), run
        assert kinds_since(s3_wire, before).count("HeadObject") in range(expected, 2 * expected), "of the others, one may be it"


def test_the_newest_objects_are_asked_for(s3once, s3, bucket, marks, s3_wire, tmp_path):
    """A lifecycle rule has left only these, and the run that uploaded them did not come to its end."""
    tree = make_tree(tmp_path / "many", {f"{i:03}": 10 for i in range(200)})
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    (first, *_), old = marks_of(marks).values(), set(marks_of(marks))
    marks.change(row_of(marks), "last_key", first["sk"])
    (tree / "zz").write_bytes(b"new")
    held = s3_wire.add(faults.hold_request, "PutObject", key="p/zzz")
    (tree / "zzz").write_bytes(b"newer")
    later = s3once.start("push", tree, f"s3://{bucket}/p")
    assert held.reached.wait(60), later.output()
    wait_until(lambda: marks_of(marks).get("p/zz", {}).get("state") == "done", 60, "its mark")
    later.kill(9)
    later.wait(60)
    held.released.set()
    marks.change(marks_of(marks)["p/zz"], "at", int(marks_of(marks)["p/zz"]["at"]) + 60)
    for key in old:
        s3.client.delete_object(Bucket=bucket, Key=key)
    run = s3once("push", tree, f"s3://{bucket}/p", "--json")
    assert run.code == 0 and counts(run)["skipped"] >= 201, run


def test_another_client_wrote_the_witness(s3once, s3, bucket, marks, tree):
    """It says nothing; another one does. If there is no other, the bucket was emptied."""
    command = ("push", tree, f"s3://{bucket}/p", "--json")
    assert s3once(*command).code == 0
    s3.client.put_object(Bucket=bucket, Key=row_of(marks)["last_key"], Body=b"theirs")
    assert counts(s3once(*command)) == {"skipped": 2}
    for key in ("p/a", "p/b/c"):
        s3.client.put_object(Bucket=bucket, Key=key, Body=b"theirs")
    assert_refused(s3once(*command))


def test_marks_of_an_earlier_version(s3once, s3, bucket, marks, tree):
    """Their row has a date and an owner, and perhaps an object; or there is no row at all."""
    command = ("push", tree, f"s3://{bucket}/p", "--json")
    assert s3once(*command).code == 0
    for name, value in (("created", "2020-01-01T00:00:00.000Z"), ("owner", "nobody"), ("doubt_from", 1), ("last_key", "")):
        marks.change(row_of(marks), name, value)
    assert counts(s3once(*command)) == {"skipped": 2}
    assert row_of(marks)["last_key"] in ("p/a", "p/b/c") and not {"created", "owner", "doubt_from"} & row_of(marks).keys()
    remove_row(marks)
    assert counts(s3once(*command)) == {"skipped": 2}
    make_anew(s3, bucket)
    assert_refused(s3once(*command), "p/a")


@pytest.mark.parametrize("marks", ["sqlite", "dynamodb"], indirect=True)
def test_a_host_with_nothing_new_for_months(s3once, s3, bucket, marks, s3_wire, tree):
    """As long as its objects exist, a night costs one request and no write."""
    command = ("push", tree, f"s3://{bucket}/p", "--json")
    assert s3once(*command).code == 0
    before, since = row_of(marks), len(s3_wire.history)
    for _ in range(3):
        assert counts(s3once(*command)) == {"skipped": 2}
    assert kinds_since(s3_wire, since) == ["HeadObject"] * 3 and row_of(marks) == before


@pytest.mark.real_s3
def test_nothing_may_be_asked(s3once, s3, bucket, s3_wire, marks, tree):
    """With a policy that can only write, S3 says that it may not be asked: what is not shown is not compared."""
    learn_conditions(s3once, bucket)
    for kind in ("HeadObject", "GetObject", "HeadBucket", "ListMultipartUploads"):
        s3_wire.add(faults.answer(403, "AccessDenied"), kind, times=None)
    command = ("push", tree, f"s3://{bucket}/p", "--json")
    assert counts(s3once(*command)) == {"uploaded": 2}
    before = row_of(marks)
    since = len(s3_wire.history)
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"skipped": 2}, run
    assert kinds_since(s3_wire, since) == ["HeadObject", "GetObject"], "and it is not asked again"
    (tree / "new").write_bytes(b"new")
    assert s3once(*command).code == 0 and row_of(marks)["last_key"] == before["last_key"], "it was not shown either"
    run = s3once(*command, "--bucket-id-object", "id")
    assert run.code == 3 and "allow s3:GetObject and s3:ListBucket" in run.err, run
    run = s3once(*command, "--bucket", "new")
    assert run.code in (1, 3) and not counts(run).get("skipped"), "each object is looked at, which is denied"


@pytest.mark.parametrize("fault", [faults.drop_request, faults.drop_reply, faults.answer(503, "SlowDown"), faults.answer(500, "InternalError"), faults.truncate_reply], ids=lambda f: f.__name__)  # fmt: skip
@pytest.mark.parametrize("kind", ["HeadObject", "PutItem:bucket", "GetItem:bucket"])
def test_requests_about_the_bucket_are_lost(s3once, s3, dynamodb, table, bucket, s3_wire, tree, fault, kind):
    with Proxy(dynamodb, "dynamodb") as store:
        store.access_key, store.secret_key = s3.access_key, s3.secret_key
        s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = store.endpoint
        assert s3once("init").code == 0
        command = ("push", tree, f"s3://{bucket}/p", "--json")
        at = store if ":" in kind else s3_wire
        if kind == "HeadObject":
            assert s3once(*command).code == 0
        rule = at.add(fault, kind)
        run = s3once(*command)
        # A reply of the store that is cut and well-formed all the same ends the run before anything was sent.
        assert run.code == 0 or (run.code == 3 and fault is faults.truncate_reply and kind != "HeadObject"), run
        assert rule.fired == 1
        assert s3once(*command).code == 0
        run = s3once(*command)
        assert run.code == 0 and counts(run) == {"skipped": 2}, run
        make_anew(s3, bucket)
        assert s3once(*command).code == 3


# --- the id object


def age(hours):
    """The replies to a HEAD of the key say that it is older."""

    async def fault(x, rule):
        reply = await x.forward()
        if "last-modified" in reply.headers:
            reply.headers["last-modified"] = formatdate(1_000_000_000, usegmt=True)
            reply.headers["date"] = formatdate(1_000_000_000 + hours * 3600, usegmt=True)
        x.fire(rule)
        await x.answer(reply)

    return fault


@pytest.mark.parametrize("s3", ["rgw", "swift"], indirect=True)
@pytest.mark.parametrize("marks", ["sqlite", "dynamodb"], indirect=True)
def test_an_object_identifies_the_bucket(s3once, s3, bucket, marks, s3_wire, tree):
    command = ("push", tree, f"s3://{bucket}/p")
    with_id = (*command, "--bucket-id-object", ".s3once-bucket")
    assert s3once(*with_id).code == 0
    assert set(s3.objects(bucket)) == {".s3once-bucket", "p/a", "p/b/c"}
    for each in (with_id, command):  # the marks know it from then on
        before = len(s3_wire.history)
        assert s3once(*each).code == 0
        assert kinds_since(s3_wire, before) == ["HeadObject"]
        assert s3_wire.history[-1].operation.key == ".s3once-bucket"
    make_anew(s3, bucket)
    for each in (with_id, command):
        assert_refused(s3once(*each), ".s3once-bucket")
    assert not s3.objects(bucket)
    assert s3once(*with_id, "--bucket", "new").code == 0
    assert s3once(*command).code == 0
    assert set(s3.objects(bucket)) == {".s3once-bucket", "p/a", "p/b/c"}


def test_nothing_is_stored_as_the_id_object(s3once, s3, bucket, marks, tmp_path):
    """Neither a file nor what comes through a pipe takes its place, whatever --if-changed says."""
    tree = make_tree(tmp_path / "tree", {"id": 5, "other": 5})
    identified = ("--bucket-id-object", "id")
    run = s3once("push", tree, f"s3://{bucket}", *identified, "--if-changed", "replace")
    assert run.code == 1 and f"{tree}/id: has the key of --bucket-id-object" in run.err, run
    before = s3.get(bucket, "id")
    assert before.startswith(b"This object lets s3once tell"), before
    run = s3once("push", *identified, "-", f"s3://{bucket}/id", stdin=b"output")
    assert run.code == 1 and "has the key of --bucket-id-object" in run.err, run
    for command in (["push", tree, f"s3://{bucket}", "--if-changed", "replace"], ["push", "-", f"s3://{bucket}/id"]):
        run = s3once(*command, stdin=b"output")  # the marks know it
        assert run.code == 1 and "has the key of --bucket-id-object" in run.err, run
    assert s3.get(bucket, "id") == before and set(s3.objects(bucket)) == {"id", "other"}


def test_the_earlier_bucket_comes_back(s3once, s3, bucket, marks, s3_wire, tree):
    """Its id object has another id than that of the bucket which took its place, although both hold the same files."""
    command = ("push", tree, f"s3://{bucket}/p", "--bucket-id-object", "id")
    assert s3once(*command).code == 0
    with Rgw() as server:
        S3(server.info()).client.create_bucket(Bucket=bucket)
        lead_to(s3_wire, server)
        assert s3once(*command, "--bucket", "new").code == 0
        lead_to(s3_wire, s3)
    assert_refused(s3once(*command), "id")


@pytest.mark.parametrize("marks", ["sqlite", "dynamodb"], indirect=True)
def test_a_lifecycle_rule_leaves_the_id_object(s3once, s3, bucket, marks, s3_wire, tree):
    """It is written anew before it is a day old, so that a rule for old objects never meets it, and no night is an alarm."""
    command = ("push", tree, f"s3://{bucket}/p", "--json")
    assert s3once(*command, "--bucket-id-object", "id").code == 0
    for key in ("p/a", "p/b/c"):
        s3.client.delete_object(Bucket=bucket, Key=key)
    first = s3.client.head_object(Bucket=bucket, Key="id")
    for hours, expected in ((1, 0), (24, 1), (24 * 400, 1)):
        rule = s3_wire.add(age(hours), "HeadObject", key="id", times=None)
        before = len(s3_wire.history)
        run = s3once(*command)
        assert run.code == 0 and counts(run) == {"skipped": 2} and rule.fired, run
        assert kinds_since(s3_wire, before).count("PutObject") == expected
        s3_wire.clear()
    assert s3.client.head_object(Bucket=bucket, Key="id")["Metadata"]["s3once-claim"] == first["Metadata"]["s3once-claim"]
    s3_wire.add(age(24), "HeadObject", key="id")
    s3_wire.add(faults.answer(403, "AccessDenied"), "PutObject")
    run = s3once(*command)
    assert run.code == 0 and "id is 24 hours old and cannot be written again" in run.err, run


@pytest.mark.parametrize("fault", [faults.drop_reply, faults.drop_request, faults.duplicate, faults.kill_after, faults.kill_before])
def test_the_id_object_is_written_again_and_the_reply_is_lost(s3once, s3, bucket, marks, s3_wire, tree, fault):
    """It is the same object whoever writes it how often."""
    command = ("push", tree, f"s3://{bucket}/p", "--json")
    assert s3once(*command, "--bucket-id-object", "id").code == 0
    first = s3.client.head_object(Bucket=bucket, Key="id")["Metadata"]["s3once-claim"]
    old = s3_wire.add(age(24), "HeadObject", key="id")
    lost = s3_wire.add(fault, "PutObject", key="id")
    run = s3once.start(*command)
    killed = fault in (faults.kill_after, faults.kill_before)
    assert run.popen.wait(60) == (-9 if killed else 0) and old.fired and lost.fired, run.output()
    assert "cannot be written again" not in run.output()[1]
    s3_wire.clear()
    s3_wire.settle()
    assert counts(s3once(*command)) == {"skipped": 2}
    assert s3.client.head_object(Bucket=bucket, Key="id")["Metadata"]["s3once-claim"] == first == row_of(marks)["object"]


@pytest.mark.parametrize("marks", ["sqlite", "dynamodb"], indirect=True)
def test_a_bucket_that_is_in_alarm(s3once, s3, bucket, marks, tree):
    """A lifecycle rule has deleted all objects. Somebody says that it is the same bucket, and from then on the id object does."""
    command = ("push", tree, f"s3://{bucket}/p", "--json")
    assert s3once(*command).code == 0
    s3.empty(bucket)
    assert_refused(s3once(*command))
    run = s3once(*command, "--bucket", "same")
    assert run.code == 2 and "--bucket-id-object" in run.err, run
    assert_refused(s3once(*command, "--bucket-id-object", "id"))
    assert not s3.objects(bucket)
    named = (*command, "--bucket", "same", "--bucket-id-object", "id")
    assert counts(s3once(*named, "-n")) == {"skipped": 2} and not s3.objects(bucket)
    assert counts(s3once(*named)) == {"skipped": 2} and set(s3.objects(bucket)) == {"id"}
    assert counts(s3once(*command)) == {"skipped": 2}
    s3.empty(bucket)  # and the id object, too
    assert_refused(s3once(*command), "id")
    assert counts(s3once(*named)) == {"skipped": 2}


def test_the_id_object_of_an_earlier_version(s3once, s3, bucket, marks, tree):
    """Its row does not say which key it has: the option does."""
    command = ("push", tree, f"s3://{bucket}/p", "--json")
    assert s3once(*command, "--bucket-id-object", "id").code == 0
    marks.change(row_of(marks), "object_key", "")
    s3.client.delete_object(Bucket=bucket, Key="id")
    assert_refused(s3once(*command, "--bucket-id-object", "id"), "id")


def test_jobs_with_marks_of_their_own_share_the_object(s3once, s3, bucket, tree, tmp_path):
    for name in ("one", "two", "one"):
        marks = f"sqlite:{tmp_path / name}.db"
        assert s3once("push", "--marks", marks, tree, f"s3://{bucket}/{name}", "--bucket-id-object", "id").code == 0


def test_an_object_that_is_made_again_is_another_one(s3once, s3, bucket, s3_wire, tree, tmp_path):
    """A job makes it and is killed before it notes that. In the bucket that is made anew, it makes it again. Another job knew the first one."""

    def push(name):
        return ("push", "--marks", f"sqlite:{tmp_path / name}.db", tree, f"s3://{bucket}/{name}", "--bucket-id-object", "id", "--json")

    rule = s3_wire.add(faults.kill_after, "PutObject", key="id")
    assert s3once.start(*push("one")).popen.wait(60) == -9 and rule.fired
    s3_wire.clear()
    assert counts(s3once(*push("two"))) == {"uploaded": 2}
    make_anew(s3, bucket)
    assert counts(s3once(*push("one"))) == {"uploaded": 2}
    assert_refused(s3once(*push("two")), "id")
    assert counts(s3once(*push("two"), "--bucket", "new")) == {"uploaded": 2}


def test_uploaders_that_race_agree_on_the_object(s3once, s3, bucket, marks, tree):
    command = ("push", tree, f"s3://{bucket}/p", "--bucket-id-object", "id")
    running = [s3once.start(*command) for _ in range(6)]
    for run in [each.wait(120) for each in running]:
        assert run.code == 0, run
    assert row_of(marks)["object"] == s3.client.head_object(Bucket=bucket, Key="id")["Metadata"]["s3once-claim"]


def test_hosts_that_say_same_bucket_together(s3once, s3, bucket, marks, s3_wire, tree):
    """Whichever host makes the object first, both accept it, and no mark is set aside."""
    command = ("push", tree, f"s3://{bucket}/p", "--json")
    assert s3once(*command).code == 0
    s3.empty(bucket)
    named = (*command, "--bucket", "same", "--bucket-id-object", "id")
    held = s3_wire.add(faults.hold_request, "PutObject", key="id")
    first = s3once.start(*named)
    assert held.reached.wait(60), first.output()
    second = s3once(*named)
    assert second.code == 0 and counts(second) == {"skipped": 2}, second
    held.released.set()
    run = first.wait(60)
    assert run.code == 0 and counts(run) == {"skipped": 2}, run
    assert row_of(marks)["object"] == s3.client.head_object(Bucket=bucket, Key="id")["Metadata"]["s3once-claim"]
    assert row_of(marks).get("generation", 0) == 0 and counts(s3once(*command)) == {"skipped": 2}


def test_the_object_is_somebody_else_s(s3once, s3, bucket, tree):
    s3.client.put_object(Bucket=bucket, Key="id", Body=b"theirs")
    run = s3once("push", tree, f"s3://{bucket}/p", "--bucket-id-object", "id")
    assert run.code == 3 and "name another key" in run.err, run
    assert s3.get(bucket, "id") == b"theirs"


@pytest.mark.real_s3
@pytest.mark.parametrize("copied", [True, False])
def test_moving_to_another_bucket_or_prefix(s3once, s3, bucket, tree, copied):
    """As described in docs/operations.md: objects that were copied there are found by their content, and the rest is sent."""
    (tree / "large").write_bytes(b"0123456789abcdef" * (6 << 16))
    assert s3once("push", "--part-size", "5MiB", tree, f"s3://{bucket}/old").code == 0
    for key in s3.objects(bucket) if copied else ():
        s3.client.copy_object(Bucket=bucket, Key=key.replace("old/", "new/"), CopySource={"Bucket": bucket, "Key": key})
    run = s3once("push", "--part-size", "5MiB", tree, f"s3://{bucket}/new", "--json")
    assert run.code == 0 and counts(run) == ({"adopted": 3} if copied else {"uploaded": 3}), run
    s3.assert_same(tree, bucket, "new")
    assert s3once("verify", f"s3://{bucket}/new").code == 0
    assert s3once("forget", "--yes", f"s3://{bucket}/old").code == 0
    run = s3once("push", tree, f"s3://{bucket}/new", "--json")
    assert run.code == 0 and counts(run) == {"skipped": 3}, run
