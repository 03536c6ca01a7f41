"""How many requests go at once: a run finds that out itself, stays below --concurrency, and tells it."""

import re

import pytest

from tests.faults import faults
from tests.faults.proxy import most_at_once
from tests.servers.nginx_sink import NginxSink
from tests.system.harness import make_tree
from tests.system.pushing import learn_conditions

FIRST = 16  # what a run begins with
ROOM = ["--memory", "2GiB"]  # sanitizers take much


@pytest.fixture
def push(s3once, s3, s3_wire, bucket, tmp_path):
    def push(files, *options):
        tree = make_tree(tmp_path / "tree", {f"f{number:04}": 100 for number in range(files)})
        run = s3once("push", *ROOM, *options, tree, f"s3://{bucket}", timeout=240)
        assert run.code == 0, run
        return run

    return push


def most_uploads_at_once(wire):
    return most_at_once(record for record in wire.history if record.kind == "PutObject")


@pytest.mark.threaded
def test_it_rises_while_requests_take_long(push, s3once, s3_wire, bucket):
    """An answer takes so long that the time for which a busy machine lets the program wait is nothing beside it."""
    learn_conditions(s3once, bucket)
    s3_wire.history.clear()
    s3_wire.latency = 1.5
    summary = push(230, "--json").events[-1]
    assert summary["uploaded"] == 230
    assert FIRST < summary["concurrency"] <= 1024, summary
    assert FIRST < most_uploads_at_once(s3_wire) <= summary["concurrency"]


@pytest.mark.parametrize("ceiling, files", [(1, 3), (8, 24), (FIRST, 50), (48, 150)])
def test_it_stays_below_what_was_asked_for(push, s3_wire, ceiling, files):
    s3_wire.latency = 0.5
    summary = push(files, "--json", "--concurrency", str(ceiling)).events[-1]
    assert most_uploads_at_once(s3_wire) <= summary["concurrency"] <= ceiling, summary
    assert summary["limited_by"] == "ceiling" or ceiling > FIRST, summary


def test_few_files_need_no_more(push, s3_wire):
    summary = push(5, "--json").events[-1]
    assert (summary["concurrency"], summary["limited_by"]) == (FIRST, "files"), summary


def test_throttling_is_told(push, s3_wire):
    """The first try of each file is refused, so that no file begins after the last refusal."""
    tried = set()

    def first_try(record):
        is_first = record.operation.key not in tried
        tried.add(record.operation.key)
        return is_first

    s3_wire.add(faults.answer(503, "SlowDown"), "PutObject", times=None, where=first_try)
    summary = push(FIRST + 8, "--json", "--give-up-after", "2m").events[-1]
    assert summary["uploaded"] == FIRST + 8 and summary["limited_by"] == "throttling", summary
    assert summary["concurrency"] == FIRST, "a run begins with as many"


def test_descriptors_limit_it(push, s3_wire, s3once, s3, bucket, tmp_path):
    s3_wire.latency = 0.5
    tree = make_tree(tmp_path / "tree", {f"f{number:03}": 100 for number in range(30)})
    run = s3once("push", "--json", *ROOM, tree, f"s3://{bucket}", wrap=["prlimit", "--nofile=100"])
    assert run.code == 0 and run.events[-1]["uploaded"] == 30, run
    assert run.events[-1]["concurrency"] <= 12 and run.events[-1]["limited_by"] == "descriptors", run


def test_v_tells_people(push, s3_wire):
    run = push(5, "-v")
    assert re.search(rf"^up to {FIRST} requests at once; there were too few files to need more$", run.out, re.M), run
    assert "requests at once" not in push(5).out


def test_connections_resume_a_tls_session(s3once, tmp_path):
    """The worker resumes the session of the connection that checked the bucket: a handshake costs as much as ten files."""
    tree = make_tree(tmp_path / "tree", {"a": 100})
    with NginxSink() as sink:
        s3once.environment |= {"AWS_ENDPOINT_URL_S3": sink.tls_endpoint, "AWS_CA_BUNDLE": str(sink.ca)}
        run = s3once("push", "--marks", f"sqlite:{tmp_path}/marks.db", tree, "s3://bucket")
        assert run.code == 0 and sink.resumed() >= 1, run
