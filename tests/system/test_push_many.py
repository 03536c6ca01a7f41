"""Several uploaders over the same files: each file is sent by one of them, and all of them end well."""

import os
import signal
import time

import pytest

from tests.faults import faults
from tests.faults.operations import LOOKS
from tests.faults.preloads import preload_library, preloaded
from tests.faults.proxy import Proxy
from tests.system.harness import FULL, MIB, expected_objects, make_tree, wait_until
from tests.system.pushing import assert_done, counts, is_visible_write, key_of, marks_of, sessions_of, summary, told
from tests.system.pushing import visible_writes

FILES = 2000 if FULL else 500


class Barrier:
    """Starts programs that all begin at once."""

    def __init__(self, folder):
        self.path = folder / "barrier"
        os.mkfifo(self.path)

    def release(self, running):
        """The writer stays until the last of them has come through: who opens later begins at once."""
        gate = os.open(self.path, os.O_RDWR)
        wait_until(lambda: all(self.is_through(run) for run in running), 60, "the programs to begin")
        os.close(gate)

    def is_through(self, run):
        try:
            line = open(f"/proc/{run.pid}/cmdline", "rb").read()  # empty for a moment, while one program becomes the next
            return run.popen.poll() is not None or (line and b"barrier" not in line)
        except ProcessLookupError:
            return True


def race(s3once, tmp_path, processes, command, timeout=300):
    """The Results of so many processes that were released together."""
    barrier = Barrier(tmp_path)
    running = [s3once.start(*command, after=barrier.path) for _ in range(processes)]
    barrier.release(running)
    return [run.wait(timeout) for run in running]


@pytest.mark.parametrize("marks", ["dynamodb", "sqlite"], indirect=True)
def test_four_processes_share_a_tree(s3once, s3, s3_proxy, bucket, marks, tmp_path, record_property):
    tree = make_tree(tmp_path / "tree", {f"{n % 40:02}/{n:04}": 1024 + n for n in range(FILES)})
    runs = race(s3once, tmp_path, 4, ("push", tree, f"s3://{bucket}/p", "--json"))
    for run in runs:
        assert run.code == 0 and not counts(run, "failed", "held", "adopted"), run
    requests = [request for request in s3_proxy.requests() if is_visible_write(request)]
    written = visible_writes(requests)
    assert len(requests) == FILES, "a file was sent more than once"
    assert written.keys() == expected_objects(tree, "p").keys() and set(written.values()) == {1}
    assert sum(summary(run)["uploaded"] for run in runs) == FILES
    refused = sum(summary(run)["claims_refused"] for run in runs) / FILES
    figures = {"failed claims per file": round(refused, 3), "files each": [summary(run)["uploaded"] for run in runs]}
    record_property("figures", str(figures))
    print(marks.kind, figures)
    assert refused < 0.5 or not FULL, "in a small tree and on a busy machine they meet more often"
    s3.assert_same(tree, bucket, "p")
    assert_done(marks, expected_objects(tree, "p"))
    assert {session["state"] for session in sessions_of(marks)} == {"ended"}


@pytest.mark.parametrize("marks", ["dynamodb", "sqlite"], indirect=True)
def test_a_run_alone_reads_marks_once(s3once, s3, bucket, marks, tmp_path):
    """Also where files wait in the queue for seconds."""
    tree = make_tree(tmp_path / "tree", {f"{n:03}": 16 * 1024 for n in range(250)})
    run = s3once("push", tree, f"s3://{bucket}", "--concurrency", "2", "--bwlimit", "1M", "--json")
    assert run.code == 0 and counts(run) == {"uploaded": 250}, run
    requests = summary(run)["requests"]
    assert not requests.keys() & {"BatchGetItem", "BatchGet"}, requests
    assert sum(requests.get(name, 0) for name in ("GetItem", "Get")) < 10, requests


def test_four_processes_replace_what_has_changed(s3once, s3, s3_proxy, bucket, marks, tmp_path):
    names = [f"{n % 20}/{n}" for n in range(300)]
    tree = make_tree(tmp_path / "tree", dict.fromkeys(names, 100))
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    make_tree(tree, dict.fromkeys(names, 101))
    s3_proxy.requests()
    runs = race(s3once, tmp_path, 4, ("push", tree, f"s3://{bucket}/p", "--if-changed=replace", "--json"))
    assert [run.code for run in runs] == [0] * 4, runs
    written = visible_writes(s3_proxy.requests())
    assert len(written) == 300 and set(written.values()) == {1}
    s3.assert_same(tree, bucket, "p")
    assert_done(marks, expected_objects(tree, "p"))


@pytest.mark.threaded
@pytest.mark.parametrize("marks", ["dynamodb", "sqlite", "dynalite"], indirect=True)
def test_two_processes_and_parts(s3once, s3, s3_proxy, bucket, marks, tmp_path):
    """Large files between small ones, two uploaders, all parts once."""
    files = {f"small/{n:03}": 10 * n for n in range(150)} | {"large/a": 21 * MIB, "large/b": 11 * MIB, "z": 6 * MIB}
    tree = make_tree(tmp_path / "tree", files)
    options = ("--part-size", "5MiB", "--concurrency", "6", "--json")
    runs = race(s3once, tmp_path, 2, ("push", tree, f"s3://{bucket}/p", *options))
    assert [run.code for run in runs] == [0, 0], runs
    requests = s3_proxy.requests()
    assert set(visible_writes(requests).values()) == {1}
    parts = [request["uri"] for request in requests if "partNumber=" in request["uri"]]
    assert len(parts) == len(set(parts)) == 5 + 3 + 2
    assert sum("?uploads" in request["uri"] for request in requests) == 3
    s3.assert_same(tree, bucket, "p")
    assert_done(marks, expected_objects(tree, "p"))


@pytest.fixture
def held(request, s3once, s3_wire, bucket, marks, tmp_path):
    """A run whose large file is sent but for Complete, which waits: (it, rule to release, command)."""
    tree = make_tree(tmp_path / "tree", {"large": 11 * MIB})
    command = ("push", tree, f"s3://{bucket}/p", "--part-size", "5MiB", "--concurrency", "2", "--json")
    rule = s3_wire.add(faults.hold_request, "CompleteMultipartUpload")
    first = s3once.start(*command, "--lease", getattr(request, "param", "30s"))
    assert rule.reached.wait(60), first.output()
    return first, rule, command


def wait_until_waiting(run):
    """A file that another uploader holds is news after five seconds."""
    wait_until(lambda: '"event":"held"' in run.output()[0], 60, "the word that it waits")
    assert run.popen.poll() is None


@pytest.mark.parametrize("marks", ["dynamodb", "sqlite"], indirect=True)
def test_one_waits_for_the_other(s3once, s3, s3_wire, bucket, marks, held, tmp_path):
    first, rule, command = held
    before = len(s3_wire.history)
    second = s3once.start(*command)
    wait_until_waiting(second)
    session = marks_of(marks)["p/large"]["session"]
    rule.released.set()
    assert counts(first.wait()) == {"uploaded": 1}
    run = second.wait()
    assert run.code == 0 and counts(run) == {"skipped": 1}, run
    text = told(run, "held")[0]["text"]
    assert session in text and f" pid {first.pid}, running since 20" in text and "its files are free after 30 s at most" in text
    assert run.err.count("waiting: ") == 1 and f" pid {first.pid}" in run.err
    assert not [each.kind for each in s3_wire.history[before:] if each.kind not in LOOKS]
    s3.assert_same(tmp_path / "tree", bucket, "p")
    assert_done(marks, expected_objects(tmp_path / "tree", "p"))


@pytest.mark.parametrize("marks", ["dynamodb", "sqlite"], indirect=True)
def test_one_does_not_wait(s3once, s3, bucket, marks, held, tmp_path):
    first, rule, command = held
    make_tree(tmp_path / "tree", {"other": 5})
    run = s3once(*command, "--no-wait")
    assert run.code == 4 and counts(run) == {"uploaded": 1, "held": 1}, run
    assert "--no-wait" in told(run, "held")[0]["text"]
    rule.released.set()
    assert first.wait().code == 0
    assert s3once(*command, "--no-wait").code == 0
    s3.assert_same(tmp_path / "tree", bucket, "p")


@pytest.mark.parametrize("held", ["1h"], indirect=True)
@pytest.mark.parametrize("waited_for", [True, False])
def test_the_other_is_killed_while_one_waits(s3once, s3, s3_wire, bucket, marks, held, tmp_path, waited_for):
    """On the same host that is seen at once, not after a lease; also where its parent does not wait for it."""
    first, rule, command = held
    second = s3once.start(*command, "--lease", "1h")
    wait_until_waiting(second)
    os.kill(first.pid, signal.SIGKILL)
    if waited_for:
        first.popen.wait()
    run = second.wait()
    assert run.code == 0, run
    rule.released.set()
    s3_wire.settle()
    assert sum(each.kind == "UploadPart" for each in s3_wire.history) == 3, "parts that S3 has were sent again"
    s3.assert_same(tmp_path / "tree", bucket, "p")
    assert_done(marks, expected_objects(tmp_path / "tree", "p"))


def test_each_waits_for_the_other(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """Two runs that hold one large file each, and want both: neither sends the other's."""
    tree = make_tree(tmp_path / "tree", {"a": 11 * MIB, "b": 11 * MIB})
    rules = [s3_wire.add(faults.hold_request, "CompleteMultipartUpload", key=f"p/{name}") for name in "ab"]
    options = ("--part-size", "5MiB", "--concurrency", "2", "--json")
    first = s3once.start("push", tree / "a", f"s3://{bucket}/p", *options)
    second = s3once.start("push", tree / "b", f"s3://{bucket}/p", *options)
    assert all(rule.reached.wait(60) for rule in rules)
    both = [s3once.start("push", tree, f"s3://{bucket}/p", *options) for _ in range(2)]
    for run in both:
        wait_until_waiting(run)
    for rule in rules:
        rule.released.set()
    assert [run.wait().code for run in (first, second, *both)] == [0, 0, 0, 0]
    kinds = [each.kind for each in s3_wire.history]
    assert kinds.count("UploadPart") == 6 and kinds.count("CompleteMultipartUpload") == 2
    s3.assert_same(tree, bucket, "p")


# --- uploaders of another host


@pytest.fixture
def died_elsewhere(s3once, s3_wire, bucket, marks, tmp_path):
    """A run as of another host that was killed while it sent its only file: (lease in seconds, command of the next)."""
    tree = make_tree(tmp_path / "tree", {"file": 1000})
    command = ("push", tree, f"s3://{bucket}/p", "--json")
    rule = s3_wire.add(faults.hang, "PutObject")
    run = s3once.start(*command, "--lease", "4s", elsewhere=True)
    wait_until(lambda: rule.fired, 60, "its request")
    run.kill()
    run.popen.wait()
    s3_wire.settle()
    return 4, command


@pytest.mark.parametrize("marks", ["dynamodb", "sqlite"], indirect=True)
def test_died_on_another_host(s3once, s3, bucket, marks, died_elsewhere, tmp_path):
    """Its end cannot be seen: its file is taken over after a whole lease without a sign of life, and not before."""
    lease, command = died_elsewhere
    run = s3once(*command, timeout=60)
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    assert lease <= run.seconds < 28, "a lease of its own would be 30 s"
    s3.assert_same(tmp_path / "tree", bucket, "p")
    assert_done(marks, expected_objects(tmp_path / "tree", "p"))
    assert {session["state"] for session in sessions_of(marks)} == {"ended"}


@pytest.mark.skipif(os.geteuid() != 0, reason="a time namespace is root's to make")
@pytest.mark.parametrize("marks", ["dynamodb", "sqlite"], indirect=True)
def test_alive_in_another_time_namespace(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """There the start times of processes are others, which says nothing about who lives: its files are left to it."""
    tree = make_tree(tmp_path / "tree", {"file": 1000})
    command = ("push", tree, f"s3://{bucket}/p", "--json")
    rule = s3_wire.add(faults.hold_request, "PutObject")
    apart = ("unshare", "--time", "--boottime", "100000", "--fork", "--kill-child")
    first = s3once.start(*command, wrap=apart)
    assert rule.reached.wait(60), first.output()
    (session,) = sessions_of(marks)
    run = s3once(*command, "--no-wait")
    assert run.code == 4 and counts(run) == {"held": 1}, run
    (after,) = (row for row in sessions_of(marks) if row["pk"] == session["pk"])
    assert after["state"] == "open" and session["time_space"] != os.readlink("/proc/self/ns/time")
    rule.released.set()
    assert first.wait().code == 0
    assert s3once(*command).code == 0
    s3.assert_same(tree, bucket, "p")


@pytest.mark.parametrize("marks", ["dynamodb", "sqlite"], indirect=True)
def test_files_that_do_not_move_are_given_up(s3once, s3, bucket, marks, tmp_path):
    """The process lives and its disk does not answer: another uploader gets the file, the first one notices when it wakes."""
    tree = make_tree(tmp_path / "tree", {"file": 1000, "other": 1000})
    command = ("push", tree, f"s3://{bucket}/p", "--json", "--lease", "2s")
    hung = tmp_path / "hung"
    hung.touch()
    names = {"READ": "hang", "READ_PATH": "tree/file", "READ_HUNG": hung}
    environment = preloaded(s3once, preload_library(), **{f"S3ONCE_TEST_{name}": value for name, value in names.items()})
    first = s3once.start(*command, "--give-up-after", "3s", env=environment)
    wait_until(lambda: '"event":"start"' in first.output()[0], 60, "its marks")
    wait_until(lambda: marks_of(marks).get("p/file", {}).get("state") == "claimed", 60, "its claim")
    run = s3once(*command, timeout=60)
    assert run.code == 0 and run.seconds > 1, run
    objects = s3.objects(bucket, metadata=True)
    hung.unlink()
    fenced = first.wait(60)
    assert fenced.code == 5 and "no file has made progress" in fenced.err, fenced
    assert s3.objects(bucket, metadata=True) == objects
    s3.assert_same(tree, bucket, "p")
    assert_done(marks, expected_objects(tree, "p"))


def test_runs_that_do_not_wait_get_there_too(s3once, s3, bucket, marks, died_elsewhere):
    """A run keeps its observations of others for the next one."""
    lease, command = died_elsewhere
    begun = time.monotonic()
    codes = [4]
    while codes[-1] == 4 and time.monotonic() < begun + 60:
        codes.append(s3once(*command, "--no-wait").code)
    assert codes[-1] == 0 and codes[1] == 4
    assert lease <= time.monotonic() - begun
    assert s3.objects(bucket).keys() == {"p/file"}


@pytest.mark.parametrize("marks", ["dynamodb", "sqlite"], indirect=True)
def test_suspended_for_longer_than_its_lease(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """Another takes over; when it wakes up it sees that, and leaves everything as it is."""
    tree = make_tree(tmp_path / "tree", {"a": 11 * MIB, "b": 1000})
    command = ("push", tree, f"s3://{bucket}/p", "--part-size", "5MiB", "--concurrency", "2", "--json")
    rule = s3_wire.add(faults.hold_request, "UploadPart", nth=3)
    first = s3once.start(*command, "--lease", "2s")
    assert rule.reached.wait(60), first.output()
    os.kill(first.pid, signal.SIGSTOP)
    run = s3once(*command, timeout=60)
    assert run.code == 0 and run.seconds >= 2, run
    objects, before = s3.objects(bucket, metadata=True), marks_of(marks)
    rule.released.set()
    os.kill(first.pid, signal.SIGCONT)
    fenced = first.wait(60)
    s3_wire.settle()
    assert fenced.code == 5 and "another uploader" in fenced.err, fenced
    assert s3.objects(bucket, metadata=True) == objects and marks_of(marks) == before
    s3.assert_same(tree, bucket, "p")
    assert_done(marks, expected_objects(tree, "p"))
