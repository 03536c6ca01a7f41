"""Standard input, output and error that are closed, full or without a reader: for every command, 0 is only for results that arrived."""

import os
import re
import signal
import sqlite3
import subprocess

import pytest

from tests.system.harness import make_tree, wait_until
from tests.system.locking import FAILED
from tests.system.test_help_and_man import COMMANDS, LOCK


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree", {"a.txt": b"a", "sub/b.txt": b"bb"})


def raw(s3once, *argv, before="", stdin=b"", stdout=subprocess.PIPE):
    """Runs the program by a shell that may redirect its streams; returns (code, stdout, stderr)."""
    argv = ["sh", "-c", f'exec "$0" "$@" {before}', str(s3once.binary()), *map(str, argv)]
    run = subprocess.run(argv, env=s3once.environment, input=stdin, stdout=stdout, stderr=subprocess.PIPE, timeout=60, cwd=s3once.folder)
    return run.returncode, (run.stdout or b"").decode(), run.stderr.decode()


def raw_without_reader(s3once, *argv):
    reads, writes = os.pipe()
    os.close(reads)
    try:
        return raw(s3once, *argv, stdout=writes)
    finally:
        os.close(writes)


# The words of each command, and its exit code if its results cannot be written. Each word in braces is one of scene().
WORDS = {
    "--help": 1,
    "--version": 1,
    "version": 1,
    "help push": 1,
    "push tree {there}": 1,
    "push tree {new}": 1,
    "push --json tree {new}": 1,
    "push {new}/key -- echo text": 1,
    "run ./job.conf": 1,
    "proven tree/a.txt {there}": 3,  # 1 would say that the file is not in S3
    "status {there}": 1,
    "status --json {there}": 1,
    "fleet": 1,
    "fleet --json": 1,
    "forget {mark}": 1,
    "verify --json {there}": 1,
    "manifest {there}": 1,
    "manifest {run} {there}": 1,
    "manifest --format sha256sum {run} {there}": 1,
    "cat {logs}/app.log": 1,
    "cat --list {logs}/app.log": 1,
    "gc {there}": 1,
    "init": 1,
    "config": 1,
    "doctor {new}": 1,
    "lock run --json {lock} -- true": FAILED,
    "lock acquire --wait 0 --lease 1m {lock}": 3,  # nobody could release the lock
    "lock renew {handle}": 1,
    "lock release --json {fresh}": 1,
    "lock status {lock}": 1,
    "lock list": 1,
    "lock break --json --if-version {version} {held}": 1,
    "lock init": 1,
}


def scene(s3once, bucket):
    """Files that are in S3, a log, the manifest of a run and a lock. Returns a function that fills in the words of a command."""
    folder = s3once.folder
    make_tree(folder / "logs", {"app.log.1": b"line\n" * 10})
    (folder / "job.conf").write_text(f"source = {folder}/tree\ntarget = s3://{bucket}/there\n")
    assert s3once("push", "--manifest", "tree", f"s3://{bucket}/there").code == 0
    assert s3once("push", "--rotated", "--min-age", "0", "logs", f"s3://{bucket}/logs").code == 0
    (run,) = s3once("manifest", f"s3://{bucket}/there").out.split()
    made = [0]

    def acquire(key):
        return s3once("lock", "acquire", "--lease", "1h", key).out.strip()

    handle = acquire("kept")

    def words(command):
        made[0] += 1
        values = {place: f"s3://{bucket}/{place}" for place in ("there", "logs")}
        values |= {"new": f"s3://{bucket}/new{made[0]}", "run": run, "handle": handle, "lock": f"lock{made[0]}", "held": f"held{made[0]}"}
        if "{mark}" in command:
            assert s3once("push", "-q", "tree", values["new"]).code == 0
            values["mark"] = values["new"] + "/a.txt"
        if "{fresh}" in command or "{version}" in command:
            values["fresh"] = acquire(values["held"])
            (event,) = s3once("lock", "status", "--json", values["held"]).events
            values["version"] = event["version"]
        return command.format_map(values).split()

    return words


def assert_unharmed(s3once):
    """No file of the user's or of the program's has been taken for a standard stream."""
    assert (s3once.folder / "tree" / "a.txt").read_bytes() == b"a"
    assert (s3once.folder / "tree" / "sub" / "b.txt").read_bytes() == b"bb"
    for path in s3once.state.rglob("*.db"):
        with sqlite3.connect(path) as marks:
            assert marks.execute("PRAGMA integrity_check").fetchone() == ("ok",), path


def test_the_table_has_every_command():
    named = {tuple(words.split()[:2]) if words.startswith("lock") else (words.split()[0],) for words in WORDS}
    expected = {(name,) for name in COMMANDS if name not in ("lock", "watch")} | {("lock", name) for name in LOCK}
    assert expected <= named  # watch has a test of its own


@pytest.mark.parametrize("before", ["", "<&-", "2>&-"])
def test_results_arrive_without_the_other_streams(s3once, bucket, tree, before):
    words = scene(s3once, bucket)
    for command in WORDS:
        code, out, err = raw(s3once, *words(command), before=before)
        assert code == 0 and out, (command, out, err)
    assert_unharmed(s3once)


# What is done to standard output, and the reason that is reported.
LOST = {
    ">/dev/full": "No space left on device",
    ">&-": "Bad file descriptor",
    "<&- >&- 2>&-": "",
    "| a closed pipe": "Broken pipe",
}


@pytest.mark.parametrize("before", LOST)
def test_0_is_only_for_results_that_arrived(s3once, bucket, tree, before):
    words = scene(s3once, bucket)
    is_pipe = before.startswith("|")
    for command, expected in WORDS.items():
        run = raw_without_reader(s3once, *words(command)) if is_pipe else raw(s3once, *words(command), before=before)
        code, _, err = run
        if is_pipe and command.startswith("cat"):  # as `head` ends it
            assert (code, err) == (0, ""), command
        elif "2>" in before:
            assert run == (expected, "", ""), command
        else:
            assert code == expected, (command, err)
            assert len(re.findall(f"(cannot write to standard output|the handle cannot be printed): {LOST[before]}", err)) == 1, (command, err)
    assert_unharmed(s3once)


# Without results, no stream is missed.
SILENT = ["push -q tree {new}", "proven -q tree/a.txt {there}", "verify {there}", "run -q ./job.conf", "lock run {lock} -- true", "lock release {fresh}"]


@pytest.mark.parametrize("before", ["", "<&-", "2>&-", *LOST])
def test_streams_that_are_not_needed_may_be_closed(s3once, bucket, tree, before):
    words = scene(s3once, bucket)
    for command in SILENT:
        run = raw_without_reader(s3once, *words(command)) if before.startswith("|") else raw(s3once, *words(command), before=before)
        assert run[:2] == (0, ""), (command, run)
    assert_unharmed(s3once)


@pytest.mark.parametrize("options", [[], ["-v"], ["--json"]])
@pytest.mark.parametrize("before", [">/dev/full", ">&-", "<&- >&- 2>&-"])
def test_a_push_without_an_output_uploads_all_the_same(s3once, s3, bucket, tree, options, before):
    code, _, err = raw(s3once, "push", *options, tree, f"s3://{bucket}", before=before)
    assert code == 1
    assert err.count("cannot write to standard output: ") == (0 if "2>" in before else 1)
    s3.assert_same(tree, bucket)


def test_a_push_into_a_closed_pipe_uploads_all_the_same(s3once, s3, bucket, tree):
    code, _, err = raw_without_reader(s3once, "push", "--json", tree, f"s3://{bucket}")
    assert code == 1
    assert "cannot write to standard output: Broken pipe" in err
    s3.assert_same(tree, bucket)


def test_a_service_without_streams_uploads(s3once, s3, bucket, tree):
    (s3once.folder / "job.conf").write_text(f"source = {tree}\ntarget = s3://{bucket}/there\n")
    for name in ("a.txt", "sub/b.txt"):
        os.utime(tree / name, (1e9, 1e9))  # at rest
    argv = ["sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', str(s3once.binary()), "watch", "-q", "./job.conf"]
    watch = subprocess.Popen(argv, env=s3once.environment, cwd=s3once.folder)
    try:
        wait_until(lambda: len(s3.objects(bucket)) == 2, 60, "both objects")
        watch.send_signal(signal.SIGTERM)
        assert watch.wait(60) == 0
    finally:
        watch.kill()
        watch.wait()
    s3.assert_same(tree, bucket, "there")
    assert_unharmed(s3once)


def test_a_command_has_the_streams_that_it_would_have_without_us(s3once, bucket):
    """Those that are closed fail, too, with `lock run` and with `push -- COMMAND`, whose output is read."""
    script = "read line || echo in; echo text || echo out >&2"
    for before in ("", "<&-", ">&-", "<&- >&-"):
        alone = subprocess.run(["sh", "-c", f"sh -c '{script}' {before}"], input=b"", capture_output=True, timeout=60)
        code, out, err = raw(s3once, "lock", "run", "--locks", "local", "k", "--", "sh", "-c", script, before=before)
        assert (code, out, err) == (alone.returncode, alone.stdout.decode(), alone.stderr.decode()), before
    code, _, err = raw(s3once, "push", "-q", f"s3://{bucket}/key", "--", "cat", before="<&-")
    assert code == 1 and "cat: -: Bad file descriptor" in err


def test_closed_streams_without_dev_null(s3once, tree):
    wrap = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev && exec "$@" <&-', "sh"]
    if subprocess.run([*wrap, "true"], capture_output=True).returncode:
        pytest.skip("needs the right to mount, to have no /dev/null")
    run = s3once("push", tree, "s3://bucket", wrap=wrap)
    assert (run.code, run.out) == (3, "") and "s3once: error: standard input, output or error is closed" in run.err


def test_closed_standard_input_is_no_empty_input(s3once, s3, bucket, tree):
    code, _, err = raw(s3once, "push", "--files-from", "-", tree, f"s3://{bucket}", before="<&-")
    assert code == 3
    assert "s3once: error: the list (stdin) cannot be read: Bad file descriptor\n" in err
    code, _, err = raw(s3once, "push", "-q", "-", f"s3://{bucket}/key", before="<&-")
    assert code == 1
    assert "cannot be read: Bad file descriptor\n" in err
    assert s3.objects(bucket) == {}
