"""`s3once fleet`, `forget` and `gc` where the marks fail in the middle, or hold rows that s3once did not write."""

import os
import re
import signal

import pytest

from tests import packed_items
from tests.faults import faults
from tests.system.harness import make_tree

UNPRINTABLE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
ON_DYNAMODB = pytest.mark.parametrize("marks", ["dynamodb"], indirect=True)
IN_SQLITE = pytest.mark.parametrize("marks", ["sqlite"], indirect=True)


@pytest.fixture
def pushed(s3once, bucket, marks, tmp_path):
    """One job has run, of one file."""
    tree = make_tree(tmp_path / "tree", {"a": b"a"})
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    return marks


def add_rows(marks, rows):
    """rows: (pk, sk, attributes as DynamoDB writes them)."""
    if marks.kind == "sqlite":
        with packed_items.connect(marks.path) as database:
            database.executemany("INSERT INTO items(pk, sk, doc) VALUES(?, ?, ?)", [(pk, sk, packed_items.pack(values)) for pk, sk, values in rows])
        database.close()
        return
    client = marks.service.client
    rows = [{"PutRequest": {"Item": {"pk": {"S": pk}, "sk": {"S": sk}, **values}}} for pk, sk, values in rows]
    for at in range(0, len(rows), 25):
        assert not client.batch_write_item(RequestItems={marks.table: rows[at : at + 25]})["UnprocessedItems"]


def job(host, name, session=None, **more):
    """The row of a job that succeeded, or whose session has not reported its end."""
    ended = {"exit": {"N": "0"}, "ended": {"N": "1700000000"}, "succeeded": {"N": "1700000000"}}
    begun = {"session": session, "began": {"N": "1700000001"}} if session else {}
    return "jobs", f"{host}//{name}", {"version": {"S": "0" * 32}, **ended, **begun, **more}


@ON_DYNAMODB
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (faults.answer(400, "ResourceNotFoundException"), "ResourceNotFoundException"),
        pytest.param(
            faults.answer(400, "ProvisionedThroughputExceededException"), "ProvisionedThroughputExceededException", marks=pytest.mark.full
        ),
    ],
    ids=["gone", "throttled"],
)
def test_marks_fail_in_the_middle(s3once, pushed, dynamodb_wire, fault, code):
    """The results so far are shown without sums, and the exit status 3 shows that they are incomplete."""
    add_rows(pushed, [job("a", f"{number:04}") for number in range(600)])
    dynamodb_wire.add(fault, "Query", times=None, where=lambda record: len([one for one in dynamodb_wire.history if one.kind == "Query"]) > 1)
    run = s3once("fleet", "--json")
    assert run.code == 3 and len(run.events) == 500 and {event["event"] for event in run.events} == {"job"}, run
    assert len(run.err.splitlines()) == 1 and run.err.startswith("s3once: error: fleet: ") and code in run.err, run


@ON_DYNAMODB
def test_stopped_while_it_waits(s3once, pushed, dynamodb_wire):
    held = dynamodb_wire.add(faults.hold_request, "Query")
    fleet = s3once.start("fleet")
    assert held.reached.wait(60), fleet.output()
    os.kill(fleet.pid, signal.SIGTERM)
    run = fleet.wait(30)
    held.released.set()
    assert run.code in (143, -signal.SIGTERM) and run.out == "" and "error" not in run.err, run


@pytest.mark.parametrize("marks", ["sqlite", "dynamodb"], indirect=True)
def test_rows_of_jobs_that_nobody_wrote(s3once, pushed):
    """All others are shown, once each, and nothing reaches the terminal as it is."""
    long = "l" * 1000
    rows = [job("h", "new\nline\x1b[31m\u009b2J"), job("\x1b]0;title\x07", "x"), job("no job", ""), job("", "no host")]
    rows += [job("h", f"wrong {number}", **{name: value}) for number, (name, value) in enumerate(
        [("exit", {"S": "0"}), ("ended", {"N": "-1"}), ("succeeded", {"N": "9" * 30}), ("error", {"BOOL": True}), ("session", {"S": "short"}),
         ("error", {"S": "\x1b[2J" * 100}), ("target", {"S": "t" * 300_000}), ("version", {"N": "1"})])]  # fmt: skip
    rows += [job("h", "twice 1", {"S": "1" * 32}), job("h", "twice 2", {"S": "1" * 32})]
    rows += [("jobs", f"{long}{number:04}", {}) for number in range(510)]  # more than a page
    rows += [job("z", "last")]
    add_rows(pushed, rows)
    run = s3once("fleet")
    assert run.code == 1 and not run.err and not UNPRINTABLE.search(run.out), run
    lines = run.out.splitlines()
    for name in ("h/new\\nline", "h/wrong 0", "h/wrong 7", "h/twice 1", "h/twice 2", "z/last"):
        assert sum(f" {name}" in line for line in lines) == 1, (name, lines)
    run = s3once("fleet", "--forget", "z")
    assert (run.code, run.out) == (0, "forgotten: z/last\n"), run


@pytest.mark.full
@IN_SQLITE
def test_ten_thousand_sessions(s3once, pushed):
    """Sessions of killed runs, of which only half still have a row."""
    ids = [f"{number:032x}" for number in range(10_000)]
    add_rows(pushed, [job("h", f"{number:05}", {"S": ids[number]}) for number in range(len(ids))])
    add_rows(pushed, [(f"session#{one}", "-", {"state": {"S": "ended"}, "owner": {"S": "h 1"}, "expires": {"N": "1"}}) for one in ids[::2]])
    run = s3once("fleet", "--json")
    assert run.code == 1 and (run.events[-1]["jobs"], run.events[-1]["lost"]) == (10_001, 10_000), run.events[-1]


@IN_SQLITE
def test_marks_that_nobody_wrote(s3once, s3, bucket, pushed):
    """`forget` and `gc` name each on one line, and keep it."""
    (mark,) = [row for row in pushed.items() if row["sk"] == "a"]
    names = ["new\nline", "\x1b]0;title\x07", "\u009b2J", "l" * 900]
    wrong = [{}, {"state": {"S": "\x1b[31m"}}, {"state": {"N": "1"}}, {"state": {"S": "done"}, "size": {"S": "x" * 300_000}}]
    add_rows(pushed, [(mark["pk"], f"x/{number}{name}", values) for name in names for number, values in enumerate(wrong)])
    n = len(names) * len(wrong)
    for word, code, *command in (("kept", 0, "forget"), ("kept", 1, "forget", "--yes"), ("damaged", 1, "gc", "--keep-marks", "1d")):
        run = s3once(*command, f"s3://{bucket}/x")
        assert run.code == code and not UNPRINTABLE.search(run.out + run.err), run
        lines = run.out.splitlines()
        assert len(lines) == n + 1 and all(line.startswith(f"{word}: s3://{bucket}/x/") for line in lines[:-1]), run
    assert len([row for row in pushed.items() if row["sk"].startswith("x/")]) == n
    run = s3once("verify", f"s3://{bucket}")
    assert run.code == 1 and len(run.out.splitlines()) == n and not UNPRINTABLE.search(run.out), run


@pytest.fixture
def about_to_end(s3once, bucket, s3_wire, table, tmp_path):
    """(a run whose last reply is held: that of its manifest, the rule that holds it)."""
    assert s3once("init").code == 0
    manifest = s3_wire.add(faults.hold_reply, "PutObject", where=lambda record: "_s3once/runs" in record.operation.key)
    run = s3once.start("push", "--manifest", make_tree(tmp_path / "tree", {"a": b"a"}), f"s3://{bucket}")
    assert manifest.reached.wait(60), run.output()
    return run, manifest


def test_a_run_that_stores_its_manifest_is_still_at_work(s3once, about_to_end):
    running, manifest = about_to_end
    run = s3once("fleet")
    assert run.code == 0 and "running" in run.out, run
    manifest.released.set()
    assert running.wait().code == 0
    assert s3once("fleet").code == 0


def test_a_run_that_ends_after_its_row_was_read(s3once, about_to_end, dynamodb_wire):
    """It has not lost its end."""
    running, manifest = about_to_end
    sessions = dynamodb_wire.add(faults.hold_request, "BatchGetItem")
    fleet = s3once.start("fleet")
    assert sessions.reached.wait(60), fleet.output()
    manifest.released.set()
    assert running.wait().code == 0
    sessions.released.set()
    run = fleet.wait()
    assert run.code == 0 and "lost" not in run.out, run
