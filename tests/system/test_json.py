"""Every field of every event is as docs/json.md says, no more and no less."""

import base64
import os
import re
import signal
from datetime import datetime, timezone

import pytest

from tests.faults import faults
from tests.system.harness import MIB, REPOSITORY, fresh_name, make_tree, wait_until

TYPES = {
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "number or null": lambda value: value is None or type(value) in (int, float),
    "string or null": lambda value: value is None or isinstance(value, str),
    "object or null": lambda value: value is None or isinstance(value, dict),
}


def rows(section):
    """The cells of the tables of a section of docs/json.md."""
    text = (REPOSITORY / "docs" / "json.md").read_text()
    part = re.split(r"^#{2,3} ", text, flags=re.M)
    lines = next(p for p in part if p.startswith(section)).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if line.startswith("|")]
    return [row for row in cells if row[0].startswith("`")]


def names(cell):
    return re.findall(r"`(\w+)`", cell)


COMMON = {row[0].strip("`"): row[1] for row in rows("In every event")}
COUNTS = {
    name: next((kind for kind in ("boolean", "string") if row[1].startswith(kind)), "number")
    for row in rows("The counts")
    for name in names(row[0])
}


def shapes(section):
    """event → its fields, and field → its type."""
    table = rows(section)
    types = {name: row[1] for row in table if row[1] in TYPES for name in names(row[0])}
    fields = {}
    for row in table:
        if row[1] not in TYPES:
            fields[row[0].strip("`")] = set(names(row[2])) | (set(COUNTS) if "the counts" in row[2] else set())
    return fields, types


PUSH_FIELDS, PUSH_TYPES = shapes("push")
STATUS_FIELDS, STATUS_TYPES = shapes("status")
FLEET_FIELDS, FLEET_TYPES = shapes("fleet")
LOCK_FIELDS, LOCK_TYPES = shapes("lock")


def check(event, fields, types):
    about = f"{event['event']}: {event}"
    expected = fields[event["event"]] | set(COMMON)
    optional = {"outlook"} if event["event"] == "mark" else set()
    plain = {name for name in event if not (name.endswith("_bytes") and name.removesuffix("_bytes") in event)}
    assert plain | optional == expected | optional, about
    for name in plain:
        kind = COMMON.get(name) or (COUNTS if "files" in expected else {}).get(name) or types[name]
        assert TYPES[kind](event[name]), f"{name} of {about}"
    for name in set(event) - plain:
        assert not is_utf8(base64.b64decode(event[name], validate=True)), about
    assert event["v"] == 1
    written = datetime.strptime(event["time"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
    assert abs((datetime.now(timezone.utc) - written).total_seconds()) < 300


def is_utf8(value):
    try:
        value.decode()
        return True
    except UnicodeDecodeError:
        return False


def push(s3once, *argv, code=0):
    """The events of a push, each checked against the document."""
    run = s3once("push", "--json", *argv)
    assert run.code == code, run
    return checked(run)


def checked(run):
    events = run.events
    for event in events:
        check(event, PUSH_FIELDS, PUSH_TYPES)
    assert events[-1]["event"] == "summary" and events[-1]["exit"] == run.code
    assert [event["event"] for event in events].count("summary") == 1
    return events


def only(events, name):
    return [event for event in events if event["event"] == name]


def test_the_document_was_understood():
    assert set(COMMON) == {"v", "event", "time"}
    assert {"files", "refused", "bytes", "scan_complete", "seconds"} <= set(COUNTS)
    assert len(PUSH_FIELDS) == 30 and len(STATUS_FIELDS) == 6
    assert {"requests", "exit", "files"} <= PUSH_FIELDS["summary"]
    assert len(LOCK_FIELDS) == 12
    for fields, types in ((PUSH_FIELDS, PUSH_TYPES), (STATUS_FIELDS, STATUS_TYPES), (LOCK_FIELDS, LOCK_TYPES)):
        missing = {name for of_event in fields.values() for name in of_event} - set(types) - set(COUNTS)
        assert not missing


def test_uploaded_skipped_refreshed_adopted_refused(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": b"aaa", "b": b"bb", "c": b"c", "there": b"there"})
    s3.client.put_object(Bucket=bucket, Key="p/there", Body=b"there")
    url = f"s3://{bucket}/p"
    events = push(s3once, tree, url)
    start = events[0]
    assert (start["event"], start["bucket"], start["prefix"]) == ("start", bucket, "p")
    assert (start["marks_shared"], start["dry_run"]) == (False, False)
    assert {(e["path"], e["key"], e["bytes"]) for e in only(events, "uploaded")} == {
        (f"{tree}/a", "p/a", 3),
        (f"{tree}/b", "p/b", 2),
        (f"{tree}/c", "p/c", 1),
    }
    assert [(e["key"], e["bytes"]) for e in only(events, "adopted")] == [("p/there", 5)]
    summary = events[-1]
    assert (summary["files"], summary["uploaded"], summary["adopted"], summary["bytes"]) == (4, 3, 1, 6)
    assert (summary["bytes_found"], summary["scan_complete"]) == (11, True)
    assert summary["requests"]["PutObject"] >= 3 and summary["seconds"] > 0

    os.utime(tree / "a", (1, 1))
    (tree / "b").write_bytes(b"changed")
    events = push(s3once, "-v", tree, url, code=1)
    assert [e["key"] for e in only(events, "refreshed")] == ["p/a"]
    assert [e["key"] for e in only(events, "refused")] == ["p/b"]
    assert "--if-changed" in only(events, "refused")[0]["text"]
    assert {e["key"] for e in only(events, "skipped")} == {"p/c", "p/there"}
    summary = events[-1]
    assert (summary["refreshed"], summary["refused"], summary["skipped"], summary["bytes"]) == (1, 1, 2, 0)
    assert not only(push(s3once, tree, url, code=1), "skipped"), "only with -v"


def test_manifest(s3once, s3, s3_wire, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": b"aaa"})
    events = push(s3once, "--manifest", tree, f"s3://{bucket}")
    assert [e["key"] for e in only(events, "manifest")] == [events[-1]["manifest"]]
    s3_wire.add(faults.answer(403, "AccessDenied"), "PutObject", times=None)
    events = push(s3once, "--manifest", tree, f"s3://{bucket}", code=1)
    assert [e["code"] for e in only(events, "manifest_failed")] == ["AccessDenied"] and events[-1]["manifest"] is None


def test_planned(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": b"aaa"})
    events = push(s3once, "-n", tree, f"s3://{bucket}")
    assert [(e["path"], e["key"], e["bytes"]) for e in only(events, "planned")] == [(f"{tree}/a", "a", 3)]
    assert events[0]["dry_run"] and events[-1]["dry_run"] and events[-1]["planned"] == 1


def test_link_and_young(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"old": b"x", "young": b"x"})
    os.utime(tree / "old", (1, 1))
    (tree / "link").symlink_to("old")
    events = push(s3once, "-v", "--min-age", "1h", tree, f"s3://{bucket}")
    assert [e["path"] for e in only(events, "link")] == [f"{tree}/link"]
    assert [(e["path"], e["reason"]) for e in only(events, "waiting")] == [(f"{tree}/young", "young")]
    (waits,) = events[-1]["waits"]
    assert set(waits) == {"reason", "text", "files", "oldest", "path"} and waits["files"] == 1, waits
    assert waits["oldest"] == only(events, "waiting")[0]["modified"] and waits["path"] == f"{tree}/young", waits
    assert (events[-1]["links"], events[-1]["waiting"], events[-1]["uploaded"]) == (1, 1, 1)


def test_outdated_special_and_note(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": b"x", "b": b"y"})
    os.mkfifo(tree / "pipe")
    push(s3once, tree, f"s3://{bucket}")
    make_tree(tree, {"a": b"changed"})
    events = push(s3once, "-v", "--if-changed=skip", "--exclude", "*.tmp", tree, f"s3://{bucket}")
    assert [(e["path"], e["key"]) for e in only(events, "outdated")] == [(f"{tree}/a", "a")]
    assert [e["path"] for e in only(events, "special")] == [f"{tree}/pipe"]
    assert "*.tmp" in only(events, "note")[0]["text"]
    assert (events[-1]["files"], events[-1]["outdated"], events[-1]["special"], events[-1]["skipped"]) == (3, 1, 1, 1)


def test_failed_with_names_that_are_not_utf8(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {b"bad\xff\\": b"x", "gut ü\n": b"x"})
    events = push(s3once, tree, f"s3://{bucket}", code=1)
    (failed,) = only(events, "failed")
    assert failed["path"] == f"{tree}/bad\\xff\\\\"
    assert base64.b64decode(failed["path_bytes"]) == os.fsencode(tree) + b"/bad\xff\\"
    assert "UTF-8" in failed["text"] and (failed["code"], failed["request_id"]) == ("", "")
    assert [e["key"] for e in only(events, "uploaded")] == ["gut ü\n"]
    assert "path_bytes" not in only(events, "uploaded")[0]


def test_fatal(s3once, s3, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": b"x"})
    events = push(s3once, tree, f"s3://{fresh_name('missing')}", code=3)
    (fatal,) = only(events, "fatal")
    assert fatal["code"] == "NoSuchBucket" and fatal["request_id"]


def test_warning(s3once, s3, bucket, tmp_path):
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "l").symlink_to("x")
    events = push(s3once, "links", f"s3://{bucket}", code=1)
    assert "--follow" in only(events, "warning")[0]["text"]


def test_held_and_progress(s3once, s3, table, bucket, tmp_path):
    assert s3once("init").code == 0  # not SQLite: see Holder in test_cli
    tree = tmp_path / "tree"
    tree.mkdir()
    with open(tree / "big", "wb") as file:
        file.truncate(400 * MIB)
    holder = s3once.start("push", "--concurrency", "1", tree, f"s3://{bucket}")
    wait_until(lambda: s3.uploads(bucket), 30, "an upload")
    os.kill(holder.pid, signal.SIGSTOP)
    events = push(s3once, "--no-wait", tree, f"s3://{bucket}", code=4)
    assert [(e["key"], bool(e["text"])) for e in only(events, "held")] == [("big", True)]
    assert events[-1]["held"] == 1
    waiting = s3once.start("push", "--json", tree, f"s3://{bucket}")
    wait_until(lambda: '"progress"' in waiting.output()[0], 30, "progress")
    os.kill(waiting.pid, signal.SIGTERM)
    progress = only(checked(waiting.wait(60)), "progress")
    assert progress[0]["files"] == 1 and progress[0]["bytes_found"] == 400 * MIB


def test_retry(s3once, s3_proxy, bucket, tmp_path):
    """A file that is written to while it is sent, until it has been begun again."""
    tree = make_tree(tmp_path / "tree", {"growing": 40 * MIB})
    running = s3once.start("push", "--json", tree, f"s3://{bucket}")
    with open(tree / "growing", "ab") as file:
        while running.popen.poll() is None and '"retry"' not in running.output()[0]:
            file.write(b"x")
            file.flush()
    run = running.wait()
    events = checked(run)
    if not only(events, "retry"):
        pytest.skip("the file was sent before it was written to")
    assert only(events, "retry")[0]["key"] == "growing"


def test_status(s3once, s3, table, bucket, tmp_path):
    assert s3once("init").code == 0  # not SQLite: see Holder in test_cli
    tree = make_tree(tmp_path / "tree", {"a": b"aaa", "b": b"bb", "folder/in/c": b"c"})
    s3.client.put_object(Bucket=bucket, Key="b", Body=b"other")
    push(s3once, tree, f"s3://{bucket}", code=1)
    big = tmp_path / "big"
    big.mkdir()
    with open(big / "big", "wb") as file:
        file.truncate(400 * MIB)
    holder = s3once.start("push", "--concurrency", "1", big, f"s3://{bucket}")
    wait_until(lambda: s3.uploads(bucket), 30, "an upload")
    os.kill(holder.pid, signal.SIGSTOP)
    seen = set()
    for url in ([f"s3://{bucket}"], [f"s3://{bucket}/a"], [f"s3://{bucket}/b"], [], ["--depth", "1", f"s3://{bucket}/folder"]):
        run = s3once("status", "--json", *url)
        assert run.code == 0, run
        for event in run.events:
            if event["event"] == "job":
                failed = [] if event["session"] else [f"{tree}/b"]  # the holder has failed nothing so far
                assert [line.split(": ")[0] for line in event.pop("failures")] == failed
                check(event, FLEET_FIELDS, FLEET_TYPES)
                continue
            check(event, STATUS_FIELDS, STATUS_TYPES)
            seen.add(event["event"])
        if url == [f"s3://{bucket}"]:
            (session,) = only(run.events, "session")
            assert (session["claims"], session["known"], session["open"], session["lease_ms"]) == (1, True, True, 30000)
            claimed = [e for e in only(run.events, "mark") if e["state"] == "claimed"]
            assert [(e["key"], e["session"]) for e in claimed] == [("big", session["session"])]
    assert seen == set(STATUS_FIELDS)


def test_locks(s3once, tmp_path):
    """Every event of `lock`, but for those of an outage, which look the same."""
    s3once.environment["S3ONCE_LOCKS"] = f"sqlite:{tmp_path}/locks.db"
    seen = []

    def lock(*argv, code=0):
        run = s3once("lock", argv[0], "--json", *argv[1:])
        assert run.code == code, run
        for event in run.events:
            check(event, LOCK_FIELDS, LOCK_TYPES)
            seen.append(event["event"])
        return run.events[-1]

    lock("init")
    handle = lock("acquire", "--lease", "1m", "--owner", "me", "k")["handle"]
    failed = lock("acquire", "--lease", "1m", "--wait", "0", "k", code=4)
    assert (failed["holder"], failed["exit"]) == ("me", 4) and "held by me" in failed["text"]
    version = lock("status", "k", code=4)["version"]
    assert lock("list")["version"] == version
    handle = lock("renew", handle)["handle"]
    lock("release", handle)
    assert lock("release", handle, code=5)["exit"] == 5
    assert not lock("status", "k")["held"]
    lock("acquire", "--lease", "1m", "k")
    lock("break", "--if-version", lock("status", "k", code=4)["version"], "k")
    lock("run", "k", "--", "true")
    assert set(LOCK_FIELDS) - set(seen) == {"suspect", "recovered", "expired", "lost", "outage"}
