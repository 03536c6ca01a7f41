"""--delete-after and --move-to: a file leaves this host only when S3 shows, at that moment, what it is."""

import os
import re
import shutil
import signal
import time
from pathlib import Path

import pytest

from tests import packed_items
from tests.faults import faults
from tests.faults.preloads import preload_library, preloaded
from tests.system.harness import MIB, make_tree, wait_until
from tests.system.pushing import counts, marks_of, summary, told

pytestmark = pytest.mark.parametrize("marks", ["sqlite"], indirect=True)

TREE = {"a": 100, "empty": 0, "d/b": 5000, "d/e/c": 70000, "large": 12 * MIB}
OURS = ".s3once-removing"
DAY = 24 * 3600


def files(tree):
    return {str(path.relative_to(tree)) for path in tree.rglob("*") if not path.is_dir()}


def make_marks_older(marks, seconds):
    """Makes the marks as old as if the files had been done that long ago."""
    with packed_items.connect(marks.path) as database:
        database.execute(
            "UPDATE items SET doc = packed(json_set(unpacked(doc), '$.at.N', cast(unpacked(doc) ->> '$.at.N' - ? AS TEXT)))"
            " WHERE unpacked(doc) ->> '$.state.S' = 'done'",
            (seconds,),
        )


@pytest.mark.parametrize("seconds", [30 * DAY, -30 * DAY])
def test_a_clock_that_is_wrong_removes_nothing_by_age(s3once, s3_wire, bucket, target, marks, tmp_path, seconds):
    """The age in local marks is counted by this host's clock; the replies of S3 show that it is wrong."""
    tree = make_tree(tmp_path / "tree", {"a": 100})
    assert s3once("push", tree, target).code == 0
    make_marks_older(marks, 8 * DAY)
    rule = s3_wire.add(faults.date_ahead(-seconds), times=None)
    run = s3once("push", tree, target, "--delete-after=7d")
    words = "ahead of" if seconds > 0 else "behind"
    assert run.code == 0 and files(tree) == {"a"} and rule.fired, run
    assert re.search(rf"warning: this host's clock is \d+ s {words} the server's: set it; no file is removed by its age until then", run.err), run
    s3_wire.clear()
    run = s3once("push", tree, target, "--delete-after=7d")
    assert run.code == 0 and files(tree) == set() and "clock" not in run.err, run


@pytest.fixture
def target(bucket):
    return f"s3://{bucket}/p"


@pytest.mark.parametrize("s3", ["rgw", "swift"], indirect=True)
def test_files_are_removed_once_they_are_in_s3(s3once, s3, bucket, target, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", TREE)
    kept = tmp_path / "kept"
    shutil.copytree(tree, kept)
    run = s3once("push", tree, target, "--delete-after", "--part-size", "5MiB", "--json")
    assert run.code == 0 and counts(run, "uploaded", "removed") == {"uploaded": 5, "removed": 5}, run
    assert files(tree) == set() and (tree / "d" / "e").is_dir()
    s3.assert_same(kept, bucket, "p")
    removed = {event["key"]: event for event in told(run, "removed")}
    assert removed.keys() == {f"p/{name}" for name in TREE}
    for name in TREE:
        event = removed[f"p/{name}"]
        assert event["path"] == f"{tree}/{name}" and event["bytes"] == TREE[name], event
        assert event["etag"] == s3.client.head_object(Bucket=bucket, Key=f"p/{name}")["ETag"].strip('"'), event
    assert summary(run)["bytes_removed"] == sum(TREE.values())
    again = s3once("push", tree, target, "--delete-after", "--json")
    assert again.code == 0 and summary(again)["files"] == 0, again


@pytest.mark.real_s3
def test_version_and_checksum_are_told(s3once, s3, bucket, target, marks, tmp_path):
    s3.client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    tree = make_tree(tmp_path / "tree", {"a": 100})
    run = s3once("push", tree, target, "--delete-after", "--checksum", "sha256", "--json")
    (event,) = told(run, "removed")
    head = s3.client.head_object(Bucket=bucket, Key="p/a", ChecksumMode="ENABLED")
    assert event["version_id"] == head["VersionId"] != "", (event, head)
    if "ChecksumSHA256" in head:
        assert event["checksum"] == "sha256:" + head["ChecksumSHA256"], event


def test_files_of_earlier_runs_are_removed_when_they_come_of_age(s3once, s3, bucket, target, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", TREE)
    kept = tmp_path / "kept"
    shutil.copytree(tree, kept)
    assert s3once("push", tree, target, "--part-size", "5MiB").code == 0
    run = s3once("push", tree, target, "--delete-after=2h", "--json")
    assert run.code == 0 and counts(run, "skipped", "removed", "kept") == {"skipped": 5}, run
    assert files(tree) == set(TREE) and summary(run)["requests"]["HeadObject"] == 1, "of the witness of the bucket"
    make_marks_older(marks, 2 * 3600)
    (tree / "new").write_bytes(b"new")
    run = s3once("push", tree, target, "--delete-after=2h", "--json")
    assert run.code == 0 and counts(run, "uploaded", "skipped", "removed") == {"uploaded": 1, "skipped": 5, "removed": 5}, run
    assert files(tree) == {"new"}
    (kept / "new").write_bytes(b"new")
    s3.assert_same(kept, bucket, "p")


def test_nothing_is_removed_that_s3_does_not_show(s3once, s3, bucket, target, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", {"gone": 100, "other": 100, "there": 100})
    assert s3once("push", tree, target).code == 0
    s3.client.delete_object(Bucket=bucket, Key="p/gone")
    s3.client.put_object(Bucket=bucket, Key="p/other", Body=b"x" * 100)
    run = s3once("push", tree, target, "--delete-after", "--json")
    assert run.code == 1 and counts(run, "removed", "not_removed") == {"removed": 1, "not_removed": 2}, run
    assert files(tree) == {"gone", "other"}
    texts = {event["key"]: event["text"] for event in told(run, "not_removed")}
    assert "does not hold its object any more" in texts["p/gone"], texts
    assert "holds another object" in texts["p/other"], texts
    run = s3once("push", tree, target, "--delete-after")
    assert run.code == 1 and "0 of 2 files are verified to be in" in run.out + run.err, run


def test_links_are_left_behind(s3once, s3, bucket, target, marks, tmp_path):
    """Their targets were removed, as they should be. Without a removal, a tree of links is most likely a mistake."""
    tree = make_tree(tmp_path / "tree", {"log-1": 100})
    (tree / "current").symlink_to("log-1")
    assert s3once("push", tree, target, "--delete-after").code == 0
    assert files(tree) <= {"current"}
    assert s3once("push", tree, target, "--delete-after").code == 0
    run = s3once("push", tree, target)
    assert run.code == 1 and "found only symbolic links" in run.out + run.err, run


def test_content_that_was_changed_behind_the_times_stays(s3once, target, marks, tmp_path):
    """The size and modification time are those of the mark: a run would skip it."""
    tree = make_tree(tmp_path / "tree", {"a": 100})
    assert s3once("push", tree, target).code == 0
    status = (tree / "a").stat()
    (tree / "a").write_bytes(b"x" * 100)
    os.utime(tree / "a", ns=(status.st_atime_ns, status.st_mtime_ns))
    run = s3once("push", tree, target, "--delete-after", "--json")
    (event,) = told(run, "not_removed")
    assert run.code == 1 and "content is not what was uploaded" in event["text"] and "--compare-content" in event["text"], run
    assert (tree / "a").read_bytes() == b"x" * 100


def test_a_folder_that_may_not_be_written(s3once, target, marks, tmp_path):
    """The sentence names the folder, and the permission that is missing."""
    tree = make_tree(tmp_path / "tree", {"d/ok": 10})
    (tree / "d").chmod(0o555)
    run = s3once("push", tree, target, "--delete-after", unprivileged=True)
    (tree / "d").chmod(0o755)
    words = f"may not rename it in its folder {tree}/d (Permission denied): give this user write permission on the folder"
    assert run.code == 1 and words in run.err, run


def test_a_file_that_was_written_a_moment_ago_is_read_again(s3once, target, marks, tmp_path):
    """Two changes within one step of a file system's clock look like one: what was read before the step is over proves nothing."""
    tree = make_tree(tmp_path / "tree", {"a": 100})
    written = (tree / "a").stat().st_ctime
    run = s3once("push", tree, target, "--delete-after", "--json")
    assert run.code == 0 and counts(run, "uploaded", "removed") == {"uploaded": 1, "removed": 1}, run
    assert time.time() - written >= 2  # of FAT


def test_no_file_is_removed_before_its_mark_is_on_the_disk(s3once, target, marks, tmp_path):
    """A failure of power would leave neither, and the file would be missed nowhere."""
    tree = make_tree(tmp_path / "tree", {"a": 100})
    written, trace = (tree / "a").stat().st_ctime, tmp_path / "trace"
    wait_until(lambda: time.time() - written > 2.5, 30)  # then it is removed in the second of its mark
    calls = "trace=pwrite64,fdatasync,fsync,mkdirat,renameat2,unlinkat"
    s3once.environment["ASAN_OPTIONS"] = "detect_leaks=0"  # which cannot be while it is traced
    run = s3once("push", tree, target, "--delete-after", wrap=["strace", "-f", "-y", "-e", calls, "-o", str(trace)])
    assert run.code == 0 and files(tree) == set(), run
    log, changes = "", []  # what was done to SQLite's log last, whenever the tree is changed
    for line in trace.read_text().splitlines():
        log = "synced" if re.search(r"f(data)?sync\(\d+<[^>]*marks.db-wal>", line) else log
        log = "written" if re.search(r"pwrite64\(\d+<[^>]*marks.db-wal>", line) else log
        changes += [log] if re.search(rf"(mkdirat|renameat2|unlinkat)\(\d+<{tree}", line) else []
    assert len(changes) > 1 and set(changes) == {"synced"}, trace.read_text()


def test_changed_and_failed_files_stay(s3once, s3, bucket, target, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", {"changed": 100, "other": 10})
    assert s3once("push", tree, target).code == 0
    (tree / "changed").write_bytes(b"more than before" * 20)
    s3.client.put_object(Bucket=bucket, Key="p/conflict", Body=b"x")
    make_tree(tree, {"conflict": 20})
    run = s3once("push", tree, target, "--delete-after", "--json")
    assert run.code == 1 and counts(run, "refused", "failed", "removed") == {"refused": 1, "failed": 1, "removed": 1}, run
    assert files(tree) == {"changed", "conflict"}


# --- the rules


def hard_link(tree):
    os.link(tree / "a", tree.parent / "second name")


def other_owner(tree):
    os.chown(tree / "a", 12345, -1)


def nothing(tree):
    pass


@pytest.mark.parametrize(
    "prepare, kind, words",
    [(hard_link, "linked", "hard links"), (other_owner, "foreign", "another user"), (nothing, "open", "open for writing")],
)
def test_kept_by_a_rule_and_removed_by_its_option(s3once, target, marks, tmp_path, prepare, kind, words):
    if prepare is other_owner and os.geteuid():
        pytest.skip("only root gives files away")
    tree = make_tree(tmp_path / "tree", {"a": 100, "plain": 10})
    prepare(tree)
    writer = os.open(tree / "a", os.O_WRONLY) if prepare is nothing else None
    run = s3once("push", tree, target, "--delete-after", "--json")
    (event,) = told(run, "kept")
    assert run.code == 0 and words in event["text"] and f"--remove-even {kind} removes" in event["text"].replace(" all the same", " removes"), run
    assert files(tree) == {"a"}
    # A file that is open for writing goes later by itself; the others never do, and are a warning.
    run = s3once("push", tree, target, "--delete-after", "-q")
    assert run.code == 0 and ("warning: " in run.err and "stays in this run and in later ones" in run.err and words in run.err) == (kind != "open"), run
    run = s3once("push", tree, target, "--delete-after", "--remove-even", kind, "--json")
    assert run.code == 0 and counts(run, "removed") == {"removed": 1} and files(tree) == set(), run
    if writer is not None:
        os.close(writer)


def test_a_link_that_was_named_is_not_removed(s3once, target, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 100})
    (tmp_path / "link").symlink_to(tree / "a")
    run = s3once("push", tmp_path / "link", target, "--delete-after", "--json")
    (event,) = told(run, "kept")
    assert run.code == 0 and "symbolic link" in event["text"] and event["key"] == "p/link", run
    assert files(tree) == {"a"} and (tmp_path / "link").is_symlink()
    run = s3once("push", tree / "a", target, "--delete-after", "--json")
    assert run.code == 0 and files(tree) == set(), run


def test_own_marks_are_never_removed(s3once, target, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 100})
    database = tree / "marks.db"
    run = s3once("push", tree, target, "--delete-after", "--marks", f"sqlite:{database}", "--json")
    assert run.code == 0 and database.exists() and not (tree / "a").exists(), run


@pytest.mark.parametrize("options", [["--delete-after", "--follow"], ["--remove-even", "open"], ["--delete-after", "--remove-even", "open,all"], ["--delete-after=soon"]])
def test_options_that_make_no_sense(s3once, target, marks, tmp_path, options):
    tree = make_tree(tmp_path / "tree", {"a": 100})
    run = s3once("push", tree, target, *options)
    assert run.code == 2 and ("--delete" in run.err or "--remove-even: 'all' is not one of linked|open|foreign" in run.err), run
    assert files(tree) == {"a"}


def test_an_age_that_would_be_a_source(s3once, target, marks, tmp_path):
    """Files that were to stay for a week would be removed at once."""
    tree = make_tree(tmp_path / "tree", {"a": 100})
    for words in (["--delete-after", "7d", tree, target], ["--delete-after", "-v", tree, "7d", target]):
        run = s3once("push", *words)
        assert run.code == 2 and "write --delete-after=7d, or ./7d" in run.err, run
    assert files(tree) == {"a"}


# --- moving


def test_move_to_keeps_the_relative_path(s3once, s3, bucket, target, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", TREE)
    kept, moved = tmp_path / "kept", tmp_path / "moved"
    shutil.copytree(tree, kept)
    moved.mkdir()
    run = s3once("push", tree, target, "--move-to", moved, "--json")
    assert run.code == 0 and counts(run, "moved", "removed") == {"moved": 5}, run
    assert files(tree) == set() and files(moved) == set(TREE)
    s3.assert_same(kept, bucket, "p")
    s3.assert_same(moved, bucket, "p")
    (tree / "a").write_bytes((moved / "a").read_bytes())
    shutil.copystat(moved / "a", tree / "a")
    run = s3once("push", tree, target, "--move-to", moved, "--json")
    (event,) = told(run, "not_removed")
    assert run.code == 1 and "there is another file at a below --move-to" in event["text"], run
    assert files(tree) == {"a"} and files(moved) == set(TREE)


def test_move_to_what_cannot_be(s3once, target, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 100, "inside/b": 1})
    elsewhere = Path("/dev/shm") / tmp_path.name
    elsewhere.mkdir()
    try:
        for directory, words in [(tree / "inside", "lies in the SOURCE"), (tmp_path / "missing", "cannot be opened"), (elsewhere, "another file system")]:
            run = s3once("push", tree, target, "--move-to", directory)
            assert run.code == 3 and words in run.err, run
    finally:
        elsewhere.rmdir()
    assert files(tree) == {"a", "inside/b"}


# --- a dry run, and stops


def test_dry_run_lists(s3once, target, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 100, "held": 10})
    assert s3once("push", tree, target).code == 0
    make_tree(tree, {"new": 10})
    writer = os.open(tree / "held", os.O_WRONLY)
    before = marks_of(marks)
    run = s3once("push", tree, target, "--delete-after", "--dry-run", "--json")
    os.close(writer)
    assert run.code == 0 and counts(run, "planned", "removable", "kept", "removed") == {"planned": 1, "removable": 1, "kept": 1}, run
    assert [event["path"] for event in told(run, "removable")] == [f"{tree}/a"]
    assert files(tree) == {"a", "held", "new"} and marks_of(marks) == before
    plain = s3once("push", tree, target, "--delete-after", "--dry-run")
    assert f"would remove {tree}/a -> {target}/a (100 B)" in plain.out, plain
    assert f"dry run: would upload 1 file (10 B) to {target}, and then remove them from this host\n" in plain.out, plain
    aged = s3once("push", tree, target, "--delete-after=7d", "--dry-run")
    assert f" to {target}, and then remove them from this host, once they have been there for 7 days\n" in aged.out, aged
    assert "and then" not in s3once("push", tree, target, "--dry-run").out


def test_a_dry_run_of_a_move_says_what_the_run_does(s3once, target, marks, tmp_path):
    """It never speaks of removing a file, and names the files whose names below --move-to are taken."""
    tree = make_tree(tmp_path / "tree", {"a": 100, "taken": 10})
    done = make_tree(tmp_path / "done", {"taken": 20})
    assert s3once("push", tree, target).code == 0
    dry = s3once("push", tree, target, "--move-to", done, "--dry-run")
    assert f"would move away {tree}/a -> {target}/a (100 B)" in dry.out and "would be moved away 1" in dry.out, dry
    real = s3once("push", tree, target, "--move-to", done)
    for run in (dry, real):
        assert run.code == 1 and f"error: {tree}/taken: it is not moved, since there is another file at taken below --move-to" in run.err, run
        assert "due, but not moved 1" in run.out and "remove" not in run.out, run
    assert files(tree) == {"taken"} and files(done) == {"a", "taken"}


# The short run cuts a move at each of its calls as well, in tests/unit/scan/test_removal.c.
@pytest.mark.parametrize("way", ["remove", pytest.param("move", marks=pytest.mark.full)])
def test_killed_at_each_call_that_changes_the_folder(s3once, s3, bucket, target, marks, tmp_path, way):
    library = preload_library()
    kept = make_tree(tmp_path / "kept", {"d/a": 100, "d/b": 200})
    tree, moved = tmp_path / "tree", tmp_path / "moved"
    moved.mkdir()
    options = ["--move-to", moved] if way == "move" else ["--delete-after"]
    backs, killed, nth = 0, True, 0
    while killed:
        nth += 1
        shutil.copytree(kept, tree, dirs_exist_ok=True)
        shutil.rmtree(moved)
        moved.mkdir()
        env = preloaded(s3once, library, S3ONCE_TEST_KILLED_AT=nth)
        running = s3once.start("push", tree, target, *options, "--concurrency", "1", env=env)
        killed = running.popen.wait(60) == -signal.SIGKILL
        aside = tree / "d" / OURS
        backs += aside.exists() and bool(files(aside))
        run = s3once("push", tree, target, *options, "--json")
        assert run.code == 0 and files(tree) == set(), (nth, run)
        assert not aside.exists()
        assert way == "remove" or files(moved) == files(kept)
        s3.assert_same(kept, bucket, "p")
        assert nth < 30
    assert nth > 4 and backs


def test_file_that_cannot_be_put_back_is_reported(s3once, target, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", {"d/a": 100, f"d/{OURS}/a": 50})
    (tree / "d" / OURS).chmod(0o700)
    run = s3once("push", tree, target, "--delete-after", "--json")
    failed, not_removed = told(run, "failed"), told(run, "not_removed")
    assert run.code == 1 and failed[0]["path"] == f"{tree}/d/{OURS}" and "another file has its name" in failed[0]["text"], run
    assert len(not_removed) == 1 and files(tree) == {"d/a", f"d/{OURS}/a"}, run


def test_a_plain_run_puts_back_and_uploads(s3once, s3, bucket, target, marks, tmp_path):
    """A file that a removal left behind is not lost to the next run, whatever its options."""
    tree = make_tree(tmp_path / "tree", {f"d/{OURS}/a": 50})
    (tree / "d" / OURS).chmod(0o700)
    run = s3once("push", tree, target, "--json")
    assert run.code == 0 and files(tree) == {"d/a"} and list(s3.objects(bucket)) == ["p/d/a"], run
