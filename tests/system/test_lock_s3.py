"""Locks in S3: what is tried out and refused, what the objects look like, and what each step costs."""

import json

import pytest

from tests.faults import faults
from tests.faults.proxy import Proxy
from tests.system.harness import REPOSITORY, wait_until
from tests.system.locking import FAILED, Probe, assert_renewed_by_two_at_once, locks_in_s3


@pytest.fixture
def place(s3once, s3, bucket):
    """A bucket that was not tried out yet."""
    s3once.environment |= locks_in_s3(s3, bucket)


@pytest.fixture
def wire(s3once, s3, bucket, place):
    """The wire proxy before a bucket that was tried out."""
    with Proxy(s3, "s3") as proxy:
        s3once.environment["AWS_ENDPOINT_URL_S3"] = proxy.endpoint
        assert s3once("lock", "init").code == 0
        yield proxy
        proxy.clear()
        assert not proxy.failures


def row(s3, bucket, key="k"):
    return json.loads(s3.get(bucket, f"locks/lock/{key}"))


ACQUIRE = ("lock", "acquire", "--lease", "5m", "--wait", "0")


@pytest.mark.smoke
def test_a_bucket_is_tried_once(s3once, s3, bucket, place):
    """By the first lock. Another process of another user knows it from the bucket."""
    with Proxy(s3, "s3") as wire:
        s3once.environment["AWS_ENDPOINT_URL_S3"] = wire.endpoint
        puts = []
        for home in ("one", "two"):
            since = len(wire.history)
            run = s3once(*ACQUIRE, home, env={"XDG_STATE_HOME": str(s3once.folder / home)})
            assert run.code == 0 and run.err == "", run
            puts.append(sum(kind == "PutObject" for kind, _ in wire.kinds(since)))
    assert puts[0] > 80 and puts[1] == 2, puts  # eight writers, five rounds, two conditions; then the row and its token
    assert set(s3.objects(bucket)) == {"locks/store/conditions", "locks/lock/one", "locks/lock/two", "locks/lock-token/one", "locks/lock-token/two"}


@pytest.mark.parametrize(
    ("behaves", "words"), [("ignores", "ignores If-None-Match"), ("refuses", "refuses If-None-Match"), ("races", "told that they had won")]
)
def test_a_server_that_lets_two_win_is_refused(s3once, s3, bucket, place, tmp_path, behaves, words):
    """By each command that would write, and nothing is left of what was tried."""
    with Proxy(s3, "s3", behaves=behaves) as wire:
        s3once.environment["AWS_ENDPOINT_URL_S3"] = wire.endpoint
        for command in (("lock", "init"), (*ACQUIRE, "k"), ("lock", "run", "k", "--", "touch", tmp_path / "ran")):
            run = s3once(*command)
            assert run.code == (FAILED if command[1] == "run" else 3) and words in run.err and f"s3://{bucket}" in run.err, run
            assert "two hosts could hold one lock" in run.err and "dynamodb:TABLE" in run.err, run
        assert s3once("lock", "list").out == ""
    assert s3.objects(bucket) == {} and not (tmp_path / "ran").exists()


def test_a_trial_that_gets_no_answer_is_reported_and_ends(s3once, s3, bucket, place):
    with Proxy(s3, "s3") as wire:
        s3once.environment["AWS_ENDPOINT_URL_S3"] = wire.endpoint
        wire.add(faults.hang, "PutObject", times=None)
        run = s3once("lock", "acquire", "--lease", "9s", "k", timeout=100)
        assert run.code == 3 and run.seconds < 40, run
        assert "warning: lock k: " in run.err and "trying again for up to 9 s" in run.err, run


@pytest.mark.real_s3
def test_a_reply_that_is_lost_while_a_bucket_is_tried_blames_no_server(s3once, s3, bucket, place):
    """The same put, sent again, is refused by its own condition. The trial has shown nothing, and is repeated."""
    with Proxy(s3, "s3") as wire:
        s3once.environment["AWS_ENDPOINT_URL_S3"] = wire.endpoint
        for _ in range(4):  # of the four puts of one writer, one after the other
            wire.add(faults.drop_reply, "PutObject")
        run = s3once("lock", "acquire", "--lease", "5m", "--wait", "1m", "k")
        assert run.code == 0 and all(rule.fired for rule in wire.rules), run
    assert json.loads(s3.get(bucket, "locks/store/conditions"))["etags"] == {"S": "bare"}


@pytest.mark.parametrize("s3", ["s3rver", "swift"], indirect=True)
def test_real_servers_that_are_refused(s3once, s3, bucket, place):
    run = s3once(*ACQUIRE, "k")
    assert run.code == 3 and "two hosts could hold one lock" in run.err, run


def test_options_that_s3_lacks_are_refused(s3once, place):
    for options, words in (
        (["--dialect", "go"], "no dialect but java"),
        (["--dialect", "dlm"], "no dialect but java"),
        (["--release-by", "delete"], "released by mark only"),
        (["--locks", "s3://"], "s3://BUCKET/PREFIX"),
    ):
        run = s3once(*ACQUIRE, *options, "k")
        assert run.code == 2 and words in run.err, run
    run = s3once(*ACQUIRE, "\N{SNOWMAN}" * 300)
    assert run.code == 3 and "more than 1024 bytes" in run.err, run


def test_rows_are_small_objects(s3once, s3, bucket, place):
    """One of each name, whatever characters the name has; a released row stays."""
    names = {"k": "k", "deploy/web #1?": "deploy%2Fweb%20%231%3F", "../up": "%2E.%2Fup", "é": "%C3%A9", ".": "%2E"}
    handles = {}
    for key in names:
        handles[key] = s3once(*ACQUIRE, "--owner", "anna", key).out.strip()
    found = {name.removeprefix("locks/lock/") for name in s3.objects(bucket, "locks/lock/")}
    assert found == set(names.values())
    assert sorted(event["key"] for event in s3once("lock", "list", "--json").events) == sorted(names)
    assert [event["key"] for event in s3once("lock", "list", "--json", "--prefix", "deploy/").events] == ["deploy/web #1?"]
    held = row(s3, bucket)
    assert held["ownerName"] == {"S": "anna"} and held["leaseDuration"] == {"S": "300000"} and "isReleased" not in held
    assert s3.client.head_object(Bucket=bucket, Key="locks/lock/k")["ContentType"] == "application/json"
    for key in names:
        assert s3once("lock", "release", handles[key]).code == 0
    assert row(s3, bucket)["isReleased"] == {"S": "1"} and row(s3, bucket)["recordVersionNumber"] == held["recordVersionNumber"]


def test_two_prefixes_are_two_places(s3once, s3, bucket, place):
    for where in (f"s3://{bucket}", f"s3://{bucket}/locks/", f"s3://{bucket}/a/b"):
        assert s3once(*ACQUIRE, "--locks", where, "k").code == 0
    assert s3once(*ACQUIRE, "--locks", f"s3://{bucket}/locks", "k").code == 4
    assert {"lock/k", "locks/lock/k", "a/b/lock/k"} <= set(s3.objects(bucket))


def test_a_row_that_is_removed_by_hand_loses_the_lock(s3once, s3, bucket, place):
    handle = s3once(*ACQUIRE, "k").out.strip()
    s3.client.delete_object(Bucket=bucket, Key="locks/lock/k")
    for command in ("renew", "release"):
        run = s3once("lock", command, handle)
        assert run.code == 5 and "s3://" in run.err, run
    (event,) = s3once(*ACQUIRE, "--json", "k").events
    assert event["token"] == 2  # the counter is another object


def test_an_object_that_is_no_row_is_not_overwritten(s3once, s3, bucket, place):
    s3.client.put_object(Bucket=bucket, Key="locks/lock/k", Body=b"a page")
    run = s3once(*ACQUIRE, "k")
    assert run.code == 3 and "is not one of these locks" in run.err and "locks/lock/k" in run.err, run
    assert s3.get(bucket, "locks/lock/k") == b"a page"


def test_a_write_whose_reply_is_lost_is_known_again(s3once, s3, bucket, wire):
    """The condition refuses the second try, and the object that is there then is ours."""
    rule = wire.add(faults.drop_reply, "PutObject")
    run = s3once(*ACQUIRE, "--json", "k")
    assert run.code == 0 and run.events[0]["token"] == 1 and rule.fired, run
    rule = wire.add(faults.drop_reply, "PutObject")
    assert s3once("lock", "renew", run.events[0]["handle"]).code == 0 and rule.fired
    rule = wire.add(faults.drop_reply, "PutObject")
    assert s3once("lock", "release", run.events[0]["handle"]).code == 0 and rule.fired
    assert row(s3, bucket)["isReleased"] == {"S": "1"}


def test_the_page_of_a_portal_is_no_lock(s3once, s3, bucket, wire):
    """200 and HTML, where S3 would have stored the row."""
    rule = wire.add(faults.page(200), "PutObject", times=None)
    run = s3once(*ACQUIRE, "k")
    assert run.code == 3 and rule.fired, run
    assert "locks/lock/k" not in s3.objects(bucket)


def test_renewed_by_two_at_once(s3once, wire):
    """The object changes between the read and the write of one: it reads again, and neither calls lost what is held."""
    handle = s3once(*ACQUIRE, "k").out.strip()
    assert_renewed_by_two_at_once(s3once, handle, wire, "PutObject")


def test_without_permission_to_list(s3once, s3, bucket, wire):
    """S3 answers 403 for an object that is not there."""
    wire.add(faults.answer(403, "AccessDenied"), "GetObject", times=None, where=lambda record: "lock/k" in record.operation.key)
    run = s3once(*ACQUIRE, "k")
    assert run.code == 3 and "s3:ListBucket" in run.err and "locks/lock/k" in run.err, run


def test_cost_is_what_the_docs_say(s3once, wire, tmp_path):
    """Requests of each step, as the table of docs/locks.md has them."""

    def cost(since):
        kinds = [kind for kind, _ in wire.kinds(since)]
        gets = kinds.count("GetObject")
        assert len(kinds) == gets + kinds.count("PutObject"), kinds
        return len(kinds) - gets, gets

    found = {}
    with Probe(s3once, tmp_path, 60000) as probe:
        for step, line in (("acquire", "acquire 0 k 0"), ("heartbeat", "heartbeat 0"), ("release", "release 0"), ("acquire again", "acquire 0 k 0")):
            since = len(wire.history)
            assert probe.call(line)[0] == 0
            found[step] = cost(since)
    page = (REPOSITORY / "docs" / "locks.md").read_text()
    since = len(wire.history)
    assert s3once(*ACQUIRE, "k").code == 4
    found["try"] = cost(since)
    assert found == {"acquire": (2, 3), "heartbeat": (1, 1), "release": (1, 1), "acquire again": (2, 2), "try": (0, 2)}
    for line in ("| acquire | 2 + 2 |", "| heartbeat | 1 + 1 |", "| release | 1 + 1 |", "| try, held by another | 0 + 1 |"):
        assert line in page, line


def test_heartbeats_keep_the_lock_and_a_dead_holder_loses_it(s3once, s3, bucket, place):
    run = s3once.start("lock", "run", "--lease", "2s", "k", "--", "sleep", "1000")
    wait_until(lambda: "locks/lock/k" in s3.objects(bucket), 60)
    seen = {row(s3, bucket)["recordVersionNumber"]["S"]}
    wait_until(lambda: seen.add(row(s3, bucket)["recordVersionNumber"]["S"]) or len(seen) > 3, 60, "three heartbeats")
    assert s3once(*ACQUIRE, "k").code == 4
    run.kill()
    assert s3once("lock", "acquire", "--lease", "5m", "--wait", "60s", "k").code == 0
