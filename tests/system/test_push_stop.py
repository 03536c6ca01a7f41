"""A run that is stopped, or fenced, leaves nothing half done and nothing to wait for."""

import signal

import pytest

from tests.faults import faults
from tests.faults.proxy import Proxy
from tests.system.harness import MIB, expected_objects, make_tree, wait_until
from tests.system.pushing import VISIBLE_WRITES, assert_done, counts, marks_of, sessions_of, summary, told

SIGNALS = [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
BOTH = pytest.mark.parametrize("marks", ["dynamodb", "sqlite"], indirect=True)


def small_tree(tmp_path, n=60):
    return make_tree(tmp_path / "tree", {f"{name:03}": 100 + name for name in range(n)})


def assert_resumes_at_once(s3once, s3, bucket, marks, tree, command):
    """With a lease that nobody could wait for."""
    run = s3once(*command, "--lease", "1h", timeout=60)
    assert run.code == 0 and not told(run, "held"), run
    s3.assert_same(tree, bucket, "p")
    assert_done(marks, expected_objects(tree, "p"))
    assert not s3.uploads(bucket)
    return run


def stop(run, sig):
    """Signals it and returns once it has heard."""
    run.popen.send_signal(sig)
    wait_until(lambda: "s3once: stopping" in run.output()[1], 60, "the word that it stops")


@pytest.mark.threaded
@pytest.mark.parametrize("sig, code", SIGNALS)
@BOTH
def test_uploads_under_way_are_finished(s3once, s3, s3_wire, bucket, marks, tmp_path, sig, code):
    tree = small_tree(tmp_path)
    command = ("push", tree, f"s3://{bucket}/p", "--concurrency", "2", "--json")
    rules = [s3_wire.add(faults.hold_request, "PutObject", nth=nth) for nth in (5, 5)]
    run = s3once.start(*command, "--lease", "1h")
    assert all(rule.reached.wait(60) for rule in rules), run.output()
    stop(run, sig)
    s3_wire.clear()
    run = run.wait(60)
    assert run.code == code and summary(run)["in_flight"] == 0, run
    uploaded = counts(run)["uploaded"]
    assert uploaded == len(s3.objects(bucket)) == 6
    assert {mark["state"] for mark in marks_of(marks).values()} == {"done"}
    assert [session["state"] for session in sessions_of(marks)] == ["ended"]
    again = assert_resumes_at_once(s3once, s3, bucket, marks, tree, command)
    assert counts(again) == {"uploaded": 54, "skipped": 6}


@pytest.mark.parametrize("sig", [signal.SIGALRM, signal.SIGUSR1, signal.SIGVTALRM, signal.SIGIO, signal.SIGXCPU, signal.SIGRTMIN], ids=lambda sig: sig.name)
def test_a_signal_that_is_not_ours_ends_a_run_as_any_program(s3once, s3, s3_wire, bucket, tmp_path, sig):
    """Such as the alarm of a parent, or `ulimit -t`: the shell reports it, and nothing is lost."""
    tree = small_tree(tmp_path, 5)
    command = ("push", tree, f"s3://{bucket}/p", "--concurrency", "1", "--json")
    rule = s3_wire.add(faults.hold_request, "PutObject", nth=3)
    run = s3once.start(*command, "--lease", "1h")
    assert rule.reached.wait(60), run.output()
    run.popen.send_signal(sig)
    run = run.wait(60)
    assert run.code == -sig and "error" not in run.err, run
    s3_wire.clear()
    run = s3once(*command, "--lease", "1h", timeout=60)
    assert run.code == 0 and not told(run, "held"), run
    s3.assert_same(tree, bucket, "p")


@pytest.mark.parametrize("sig, code", SIGNALS[:1])
def test_marks_that_do_not_answer_are_not_waited_for(s3once, s3, bucket, dynamodb, table, tmp_path, sig, code):
    """Nothing has begun yet."""
    with Proxy(dynamodb, "dynamodb") as wire:
        s3once.environment.update(AWS_ENDPOINT_URL_DYNAMODB=wire.endpoint, S3ONCE_MARKS=f"dynamodb:{table}")
        rule = wire.add(faults.hang, times=None)
        run = s3once.start("push", small_tree(tmp_path, 1), f"s3://{bucket}/p")
        wait_until(lambda: rule.fired, 30, "the first request")
        stop(run, sig)
        run = run.wait(60)
        assert run.code == code and "error:" not in run.err, run


@BOTH
def test_upload_is_abandoned_after_the_grace(s3once, s3, s3_wire, bucket, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", {"large": 21 * MIB, "small": 10})
    command = ("push", tree, f"s3://{bucket}/p", "--part-size", "5MiB", "--concurrency", "2", "--json")
    put = s3_wire.add(faults.hang, "PutObject")
    part = s3_wire.add(faults.hang, "UploadPart", nth=3)
    run = s3once.start(*command, "--grace", "500ms", "--lease", "1h")
    wait_until(lambda: put.fired and part.fired, 60, "both requests")
    stop(run, signal.SIGTERM)
    run = run.wait(60)
    assert run.code == 143 and run.seconds < 60, run
    s3_wire.settle()
    s3_wire.clear()
    ((key, upload),) = s3.uploads(bucket)
    there = {number for number, _ in s3.uploads(bucket)[key, upload]}
    assert len(there) >= 1 and not s3.objects(bucket)
    assert marks_of(marks)["p/large"]["upload"] == upload
    assert [session["state"] for session in sessions_of(marks)] == ["ended"]
    since = len(s3_wire.history)
    assert_resumes_at_once(s3once, s3, bucket, marks, tree, command)
    assert not there & {each.operation.part for each in s3_wire.history[since:] if each.kind == "UploadPart"}


def test_the_manifest_is_abandoned_after_the_grace(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """By then the files are there, and the threads of the run have ended."""
    tree = make_tree(tmp_path / "tree", {"a": 10})
    rule = s3_wire.add(faults.hang, "PutObject", where=lambda record: "_s3once/" in record.operation.key, times=None)
    run = s3once.start("push", tree, f"s3://{bucket}/p", "--manifest", "--grace", "500ms")
    wait_until(lambda: rule.fired, 60, "the request")
    stop(run, signal.SIGTERM)
    run = run.wait(60)
    assert run.code == 1 and "_s3once/runs/" in run.err, run
    assert list(s3.objects(bucket)) == ["p/a"]


def test_second_signal_ends_the_grace(s3once, s3, s3_wire, bucket, marks, tmp_path):
    tree = small_tree(tmp_path, 3)
    command = ("push", tree, f"s3://{bucket}/p", "--json")
    rule = s3_wire.add(faults.hang, "PutObject", times=None)
    run = s3once.start(*command, "--grace", "1h", "--lease", "1h")
    wait_until(lambda: rule.fired, 60, "a request")
    stop(run, signal.SIGTERM)
    assert run.popen.poll() is None
    stop(run, signal.SIGTERM)
    assert run.wait(60).code == 143
    s3_wire.clear()
    assert_resumes_at_once(s3once, s3, bucket, marks, tree, command)


@pytest.mark.smoke
def test_stopped_while_it_waits_for_another(s3once, s3, s3_wire, bucket, marks, tmp_path):
    tree = small_tree(tmp_path, 1)
    command = ("push", tree, f"s3://{bucket}/p", "--json")
    rule = s3_wire.add(faults.hold_request, "PutObject")
    first = s3once.start(*command)
    assert rule.reached.wait(60)
    second = s3once.start(*command)
    wait_until(lambda: '"event":"held"' in second.output()[0], 60, "the word that it waits")
    stop(second, signal.SIGINT)
    assert second.wait(60).code == 130
    rule.released.set()
    assert first.wait().code == 0
    s3.assert_same(tree, bucket, "p")


def test_stopped_during_a_long_retry(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """The pause before the next try ends with the grace."""
    tree = small_tree(tmp_path, 5)
    rule = s3_wire.add(faults.answer(503, "SlowDown"), "PutObject", times=None)
    run = s3once.start("push", tree, f"s3://{bucket}/p", "--grace", "200ms", "--json", attempts=101)
    wait_until(lambda: rule.fired >= 10, 60, "some tries")
    stop(run, signal.SIGTERM)
    assert run.wait(60).code == 143
    s3_wire.clear()
    assert_resumes_at_once(s3once, s3, bucket, marks, tree, ("push", tree, f"s3://{bucket}/p", "--json"))


@pytest.mark.threaded
@BOTH
def test_fenced(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """Another uploader has ended its session: it stops by itself, and shows nothing any more."""
    tree = make_tree(tmp_path / "tree", {"large": 11 * MIB, **{f"{n:03}": n for n in range(40)}})
    command = ("push", tree, f"s3://{bucket}/p", "--part-size", "5MiB", "--concurrency", "2", "--json")
    rules = [
        s3_wire.add(faults.hold_request, "PutObject", nth=5),
        s3_wire.add(faults.hold_request, "UploadPart", nth=2),
    ]
    run = s3once.start(*command, "--lease", "4s")
    wait_until(lambda: any(rule.reached.is_set() for rule in rules), 60, "a request under way")
    (session,) = sessions_of(marks)
    marks.end_session(session)
    run = run.wait(60)
    assert run.code == 5 and summary(run)["in_flight"] == 0, run
    assert "another uploader" in told(run, "fatal")[0]["text"] and "another uploader" in run.err
    done = {key for key, mark in marks_of(marks).items() if mark["state"] == "done"}
    s3_wire.clear()
    s3_wire.settle()
    assert done <= s3.objects(bucket).keys()
    again = assert_resumes_at_once(s3once, s3, bucket, marks, tree, command)
    assert counts(again, "skipped") == ({"skipped": len(done)} if done else {})
    visible = [each.operation.key for each in s3_wire.history if each.kind in VISIBLE_WRITES and each.took_effect]
    assert len(set(visible)) == 41


@BOTH
def test_fenced_while_the_last_request_is_under_way(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """The object may be there, the mark of a fenced run is not: the next run finds it and sends nothing."""
    tree = small_tree(tmp_path, 1)
    command = ("push", tree, f"s3://{bucket}/p", "--json")
    rule = s3_wire.add(faults.delay_reply(60), "PutObject")
    run = s3once.start(*command, "--lease", "4s")
    wait_until(lambda: rule.fired, 60, "the request")
    (session,) = sessions_of(marks)
    marks.end_session(session)
    run = run.wait(60)
    rule.released.set()
    assert run.code == 5 and marks_of(marks)["p/000"]["state"] == "claimed", run
    again = assert_resumes_at_once(s3once, s3, bucket, marks, tree, command)
    assert counts(again) == {"adopted": 1}
