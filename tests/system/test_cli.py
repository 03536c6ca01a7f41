"""The command line: what is refused and with which words, exit codes, streams and signals."""

import contextlib
import json
import os
import pty
import random
import re
import shlex
import signal
import socket
import sqlite3
import ssl
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from tests.faults import faults
from tests.servers.base import free_ports
from tests.system.harness import MIB, RESOLVER_IS_LEFT, S3, fresh_name, make_tree, wait_until
from tests.system.pushing import counts, told

COMMANDS = ["push", "status", "init"]


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree", {"a.txt": b"a", "sub/b.txt": b"bb"})


# --- usage: exit 2, one sentence, nothing done

USAGE = [
    ("", "Usage: s3once COMMAND"),
    ("psuh a s3://bucket", "unknown command 'psuh'; did you mean push?"),
    ("frobnicate", "unknown command 'frobnicate'; see s3once --help"),
    ("--frobnicate", "unknown option '--frobnicate'; see s3once --help"),
    ("push", "nothing to do: name a SOURCE and s3://BUCKET"),
    ("push s3://bucket", "nothing to upload: name a SOURCE before s3://BUCKET"),
    ("push tree", "the last argument says where to: 'tree': an S3 URL is written s3://BUCKET"),
    ("push tree other", "the last argument says where to: 'other'"),
    ("push s3://bucket tree", "push: s3once does not download: read objects with aws s3 cp or rclone copy; a command is written behind --: s3://BUCKET/KEY -- COMMAND...\n"),
    ("push s3://bucket/p s3://other", "a SOURCE is on this host"),
    ("push '' s3://bucket", "a SOURCE is empty"),
    ("push tree s3://bucket/web/{host}", "nothing fills in {host} here: write its value, or a field of --key, as in --key '{host}/{path}'"),
    ("push - s3://bucket/db-{mtime:%F}.dump", "nothing fills in {mtime:%F} here"),
    ("push tree s3:/bucket", "'s3:/bucket': an S3 URL is written"),
    ("push tree S3://bucket", "'S3://bucket': an S3 URL is written"),
    ("push tree s3://", "'s3://': a bucket's name has 3 to 63 characters"),
    ("push tree s3://Bucket", "lower-case letters, digits, dots and hyphens"),
    ("push tree s3://my_bucket/p", "lower-case letters, digits, dots and hyphens"),
    ("push tree s3://1.2.3.4", "must not look like an IP address"),
    ("push tree $'s3://bucket/a\\x01b'", "U+0001"),
    ("push tree $'s3://bucket/\\x1b[31m'", "'s3://bucket/\\x1b[31m'"),
    ("push --frob tree s3://bucket", "unknown option '--frob'; see s3once push --help"),
    ("push --exlude x tree s3://bucket", "unknown option '--exlude'; did you mean --exclude?"),
    ("push -Z tree s3://bucket", "unknown option '-Z'"),
    ("push --delete tree s3://bucket", "there is no --delete: s3once never deletes in S3"),
    ("push tree s3://bucket --as", "--as needs a value: --as KEY"),
    ("push --follow=on tree s3://bucket", "--follow: 'on' is neither yes nor no"),
    ("push --min-age 5 tree s3://bucket", "--min-age: '5' is not a duration"),
    ("push --min-age 5w tree s3://bucket", "--min-age: '5w' is not a duration"),
    ("push --min-age -5s tree s3://bucket", "--min-age: '-5s' is not a duration"),
    ("push --min-age 99999999999999999999d tree s3://bucket", "is too large"),
    ("help psuh", "unknown command 'psuh'; did you mean push?"),
    ("push --min-age 30m1h tree s3://bucket", "--min-age: '30m1h' is not a duration: write whole numbers with d, h, m"),
    ("push --memory 1MBit tree s3://bucket", "--memory: '1MBit' is not a size: write a whole number of bytes"),
    ("push --memory 1KiB tree s3://bucket", "--memory: '1KiB' is too small: at least 1MiB"),
    ("push --part-size 1MiB tree s3://bucket", "--part-size: '1MiB' is too small: at least 5MiB"),
    ("push --part-size 6GiB tree s3://bucket", "--part-size: '6GiB' is too large: at most 5GiB"),
    ("push --concurrency 0 tree s3://bucket", "--concurrency: '0' is too small: at least 1"),
    ("push --concurrency 1025 tree s3://bucket", "--concurrency: '1025' is too large: at most 1024"),
    ("push --concurrency many tree s3://bucket", "--concurrency: 'many' is not a whole number"),
    ("push --lease 10ms tree s3://bucket", "--lease: '10ms' is too small: at least 1s"),
    ("push --request-timeout 0s tree s3://bucket", "--request-timeout: '0s' is too small"),
    ("push --checksum=md4 tree s3://bucket", "--checksum: 'md4' is not one of crc32c|crc32|crc64nvme|sha1|sha256|md5|auto"),
    ("push --if-changed=maybe tree s3://bucket", "--if-changed: 'maybe' is not one of fail|replace|skip|replace-any"),
    ("push --profile '' tree s3://bucket", "--profile: the value is empty"),
    ("push -qv tree s3://bucket", "--quiet and --verbose contradict each other"),
    ("push --as k tree other s3://bucket", "--as names the key of one file, so there is one SOURCE"),
    ("push --as k tree/a.txt s3://bucket/p", "--as names the whole key"),
    ("push --as k --include x tree s3://bucket", "--as and --include contradict each other"),
    ("push --as k --files-from l tree s3://bucket", "--as and --files-from contradict each other"),
    ("push --files-from l tree other s3://bucket", "--files-from is relative to one SOURCE"),
    ("push --exclude '' tree s3://bucket", "--exclude: the value is empty"),
    ("push --include= tree s3://bucket", "--include: the value is empty"),
    ("push --exclude-from= tree s3://bucket", "--exclude-from: the value is empty"),
    ("push --files-from l --files-from=m tree s3://bucket", "--files-from is given twice, but takes only one FILE"),
    ("push --rules l --rules m tree s3://bucket", "--rules is given twice, but takes only one FILE"),
    ("proven --job a --job b", "--job is given twice, but takes only one JOB"),
    ("proven --source a --source b a/x b/x s3://bucket", "--source is given twice, but takes only one DIR"),
    ("verify --job a --job b", "--job is given twice, but takes only one JOB"),
    ("verify --manifest a --manifest b s3://bucket", "--manifest is given twice, but takes only one RUN"),
    ("fleet --forget a --forget b", "--forget is given twice, but takes only one HOST"),
    ("push --exclude 'a[' tree s3://bucket", "is empty or has an unclosed ["),
    ("push --marks sqlite: tree s3://bucket", "sqlite:PATH"),
    ("push --marks table tree s3://bucket", "dynamodb:TABLE"),
    ("status s3://a1 s3://b1", "'s3://b1' is too much: it takes [s3://BUCKET[/KEY-OR-PREFIX]]; see s3once status --help"),
    ("status --watch 5s s3://bucket", "5s looks like the value of --watch: write --watch=5s"),
    ("status bucket", "'bucket': an S3 URL is written"),
    ("status --marks dynamodb:a s3://bucket", "'dynamodb:a': a table's name has 3 to 255 characters"),
    ("status --shards 3", "unknown option '--shards'"),
    ("init table", "'table' is too much: it takes no operand; see s3once init --help"),
    ("init --marks table", "'table': marks are in dynamodb:TABLE, sqlite:PATH or local"),
    ("init --marks dynamodb:t/t", "has only letters, digits"),
    ("init --marks local --shards 0", "--shards: '0' is too small: at least 1"),
    ("init --marks local --shards 1025", "--shards: '1025' is too large: at most 1024"),
]


@pytest.mark.parametrize("line, sentence", USAGE)
def test_usage_errors_are_explained(s3once, tree, line, sentence):
    words = re.sub(r"\$'([^']*)'", lambda m: shlex.quote(m[1].encode().decode("unicode_escape")), line)
    run = s3once(*shlex.split(words))
    assert (run.code, run.out) == (2, "")
    assert sentence in run.err
    assert line == "" or re.fullmatch(r"s3once: .*\n", run.err), "one line"
    assert "\x1b" not in run.err
    assert not list(s3once.state.iterdir())


def test_hostile_arguments_do_no_harm(s3once):
    run = s3once("push", "--" + "x" * 100_000, "a", "s3://bucket")
    assert run.code == 2 and len(run.err) < 1000
    run = s3once("push", b"--\xff\xfe=\n", "a", "s3://bucket")
    assert run.code == 2 and "\\xff\\xfe" in run.err
    run = s3once("push", "a", "s3://bucket/" + "k" * 5000)
    assert run.code == 2 and "5000" in run.err


@pytest.mark.parametrize(
    "options",
    [
        ["--exclude", "\x1b[31m["],
        ["--marks", "\x1b[31m"],
        ["--marks", "dynamodb:\x1b[31m"],
        ["--marks", "sqlite:\x1b[31m/\n/x"],
        ["--profile", "\x1b[31m"],
        ["--region", "\x1b[31m"],
        ["--endpoint-url", "http://\x1b[31m"],
        ["--endpoint-url", "\x1b[31m"],
        ["--ca-bundle", "\x1b[31m", "--endpoint-url", "https://127.0.0.1:9"],
        ["--as", "\x1b[31m"],
        ["--files-from", "\x1b[31m"],
    ],
    ids=" ".join,
)
def test_arguments_never_control_the_terminal(s3once, tree, options):
    run = s3once("push", "--give-up-after", "1s", *options, tree, "s3://bucket", attempts=1)
    assert run.code in (1, 2, 3), run
    assert "\x1b" not in run.err + run.out, run
    lines = [line for line in run.err.splitlines() if "; trying again for up to 1 s" not in line]
    assert len(lines) <= 2, run


# --- help and version


@pytest.mark.parametrize("argv", [["--help"], ["-h"], *([command, "--help"] for command in COMMANDS), ["push", "-vh"]])
def test_help_goes_to_standard_output(s3once, argv):
    run = s3once(*argv)
    assert (run.code, run.err) == (0, "")
    assert run.out.startswith("Usage: s3once ")
    assert max(map(len, run.out.splitlines())) <= 90


@pytest.mark.parametrize("words", [[], ["push"], ["status"], ["doctor"], ["lock"], ["lock", "run"]], ids=" ".join)
def test_help_is_a_command_too(s3once, words):
    run = s3once("help", *words)
    assert (run.code, run.out, run.err) == (0, s3once(*words, "--help").out, "")


def test_durations_and_sizes_as_people_write_them(s3once, s3, bucket, tree):
    options = ["--min-age=0", "--lease=1min30s", "--give-up-after", "1h30m", "--memory", "24MB", "--part-size", "10M"]
    assert s3once("push", *options, tree, f"s3://{bucket}").code == 0


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version(s3once, option):
    run = s3once(option)
    assert (run.code, run.err) == (0, "")
    assert re.fullmatch(r"s3once \d+\.\d+\.\d+\n", run.out)


def test_versions_of_the_libraries(s3once):
    run = s3once("version")
    assert run.code == 0 and re.match(r"s3once \d+\.\d+\.\d+, commit \w+, built by (gcc|clang) \d", run.out), run
    found = json.loads(s3once("version", "--json").out)
    assert found["event"] == "version" and f"s3once {found['version']}, commit {found['commit']}" in run.out
    for name, library in found["libraries"].items():
        built = library["built"] or "unknown"  # the headers of bzip2 do not say it
        assert re.fullmatch(r"\d+\.\d+(\.\d+)*", library["running"]) and built in ("unknown", library["running"]), name
        assert re.search(rf"^{name} +built with {built} +running with {library['running']}$", run.out, re.M)
    assert [name for name, library in found["libraries"].items() if not library["built"]] == ["bzip2"]
    assert s3once("version", "extra").code == 2


# --- what people see


@pytest.mark.smoke
@pytest.mark.threaded
def test_summary_and_marks_note(s3once, s3, bucket, tree):
    run = s3once("push", tree, f"s3://{bucket}/p")
    assert run.code == 0
    assert f"all 2 files are in s3://{bucket}/p\nuploaded 2 (3 B) in " in run.out
    lines = [line for line in run.err.splitlines() if line.startswith("s3once: ")]  # and not valgrind's
    assert len(lines) == 1 and lines[0].startswith("s3once: this host remembers its uploads in /"), run
    assert "this host remembers" not in run.out, "said once, at the start"
    run = s3once("push", tree, f"s3://{bucket}/p")
    assert "this host remembers" not in run.err, "said by the first run alone"
    assert f"all 2 files are in s3://{bucket}/p\nuploaded 0 (0 B) in " in run.out
    assert "; already done 2" in run.out


def test_no_marks_note_when_marks_were_chosen(s3once, s3, bucket, tree):
    run = s3once("push", "--marks", "local", tree, f"s3://{bucket}")
    assert (run.code, run.err) == (0, "")
    assert "host" not in run.out


def test_quiet_says_nothing_unless_something_failed(s3once, s3, bucket, tree):
    run = s3once("push", "-q", tree, f"s3://{bucket}")
    assert (run.code, run.out, run.err) == (0, "", "")
    run = s3once("push", "-q", tree, "missing", f"s3://{bucket}")
    assert (run.code, run.out) == (1, "")
    error, summary = run.err.splitlines()
    assert error == "s3once: error: missing: does not exist"
    assert re.fullmatch(rf"s3once: 2 of 3 files are verified to be in s3://{bucket}; uploaded 0 \(0 B\) in .*; already done 2; failed 1", summary)


def test_quiet_tells_warnings(s3once, s3, bucket, tmp_path):
    """Warnings that a person should see although no file failed."""
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "l").symlink_to("/etc/hostname")
    run = s3once("push", "-q", "links", f"s3://{bucket}")
    assert run.out == "" and re.fullmatch(r"s3once: warning: .*--follow.*\ns3once: found no files for s3://.*; symbolic links skipped 1\n", run.err), run


def test_quiet_tells_why_a_run_ended_early(s3once, s3_wire, bucket, tmp_path):
    tree = make_tree(tmp_path / "many", {"a": 100, "b": 100})
    command = ("push", "-q", "--concurrency", "1", "--grace", "0", tree)
    run = s3once(*command, f"s3://{bucket}/1", "--max-transfer", "1")
    assert run.code == 6 and run.err.startswith("s3once: note: --max-transfer is reached: nothing more is sent; the next run goes on\n"), run
    rule = s3_wire.add(faults.hold_request, "PutObject", key="2/a")
    running = s3once.start(*command, f"s3://{bucket}/2")
    assert rule.reached.wait(60), running.output()
    running.popen.send_signal(signal.SIGTERM)
    run = running.wait()
    rule.released.set()
    assert run.code == 143 and run.err.startswith("s3once: note: stopped by SIGTERM; the next run goes on\n"), run


def test_errors_that_are_alike_are_counted(s3once, s3, bucket, tree):
    for i in range(2000):
        open(os.fsencode(tree) + b"/%04d\xff" % i + b"\xfe" * 200, "wb").close()
    (tree / "other\x07").touch()
    run = s3once("push", tree, f"s3://{bucket}")
    assert run.code == 1 and len(run.err) < 8000 and len(run.out) < 1000
    assert run.err.count(r"\xff\xfe") == 3
    assert "s3once: error: 1,997 more files have the same error: the name is not UTF-8" in run.err
    assert run.err.count("U+0007") == 1, "an error of another kind"
    assert s3once("push", "-v", tree, f"s3://{bucket}").err.count(r"\xff\xfe") == 2000
    run = s3once("push", "--json", tree, f"s3://{bucket}")
    assert len(told(run, "failed")) == 2001 and len(run.err) < 8000


@pytest.mark.smoke
@pytest.mark.threaded
def test_verbose_names_files_and_links(s3once, s3, bucket, tree):
    (tree / "link").symlink_to("a.txt")
    run = s3once("push", "-v", tree, f"s3://{bucket}/p")
    assert run.code == 0
    assert f"uploaded {tree}/a.txt -> s3://{bucket}/p/a.txt (1 B)\n" in run.out
    assert f"skipped symbolic link {tree}/link" in run.out
    assert "symbolic links skipped 1" in run.out
    assert f"skipped {tree}" not in s3once("push", "-v", tree, f"s3://{bucket}/p").out
    assert f"skipped {tree}/a.txt" in s3once("push", "-vv", tree, f"s3://{bucket}/p").out


def test_dry_run_says_what_would_be_uploaded(s3once, s3, bucket, tree):
    run = s3once("push", "-n", tree, f"s3://{bucket}/p")
    assert run.code == 0
    assert f"would upload {tree}/a.txt -> s3://{bucket}/p/a.txt (1 B)\n" in run.out
    assert f"dry run: would upload 2 files (3 B) to s3://{bucket}/p\n" in run.out
    assert s3.objects(bucket) == {}


def test_names_never_steer_the_terminal(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "hostile", {b"ok\x1b[31m\xc2\x9b.txt": b"x", b"bad\x1b]0;x\x07\xff": b"x"})
    run = s3once("push", "-v", tree, f"s3://{bucket}")
    assert run.code == 1
    assert "bad\\x1b]0;x\\x07\\xff: the name is not UTF-8" in run.err
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", run.out + run.err)


@pytest.mark.threaded
def test_progress_is_drawn_on_a_terminal_only(s3once, s3, bucket, tmp_path):
    big = tmp_path / "big"
    big.mkdir()
    for i in range(3):
        with open(big / f"{i}", "wb") as file:
            file.truncate(100 * MIB)
    master, terminal = pty.openpty()
    argv = [str(s3once.binary()), "push", str(big), f"s3://{bucket}"]
    popen = subprocess.Popen(
        argv, env={**s3once.environment, "TERM": "xterm"}, stdout=subprocess.PIPE, stderr=terminal, cwd=tmp_path
    )
    os.close(terminal)
    shown = b""
    try:
        while piece := os.read(master, 65536):
            shown += piece
    except OSError:
        pass  # the terminal is gone: the program has ended
    out = popen.communicate(timeout=60)[0]
    os.close(master)
    assert popen.returncode == 0 and b"all 3 files are in" in out
    lines = shown.split(b"\r\x1b[K")
    assert any(re.fullmatch(rb"\d of 3\+? files, [\d.]+ [KMG]?i?B of .* in flight.*", line) for line in lines), shown
    assert all(len(line) < 80 for line in lines[1:])
    assert shown.endswith(b"\r\x1b[K")
    assert b"\x1b" not in out


# --- signals, and files that others hold


class Holder:
    """An uploader that is stopped in the middle of a file, and so holds it for as long as the lease lasts.

    Its marks are in DynamoDB: stopped in the middle of a write to SQLite it would hold the whole file locked.
    """

    def __init__(self, s3once, s3, bucket, folder):
        assert s3once("init").code == 0
        self.s3once, self.url = s3once, f"s3://{bucket}/held"
        self.tree = folder / "held"
        self.tree.mkdir()
        with open(self.tree / "big", "wb") as file:
            file.truncate(400 * MIB)
        self.running = s3once.start("push", "--concurrency", "1", self.tree, self.url)
        wait_until(lambda: s3.uploads(bucket), 30, "an upload")
        os.kill(self.running.pid, signal.SIGSTOP)
        assert not s3.objects(bucket), "stopped too late"

    def start(self, *options):
        return self.s3once.start("push", *options, self.tree, self.url)


@pytest.fixture
def holder(s3once, s3, table, bucket, tmp_path):
    return Holder(s3once, s3, bucket, tmp_path)


def test_limits_of_the_process(holder):
    """No core dump can hold a secret, and as many descriptors as are allowed."""
    with open(f"/proc/{holder.running.pid}/limits") as file:
        limits = file.read()
    assert re.search(r"^Max core file size +0 ", limits, re.M)
    soft, hard = re.search(r"^Max open files +(\d+) +(\d+)", limits, re.M).groups()
    assert soft == hard


@pytest.mark.threaded
@pytest.mark.parametrize("sig, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signal_stops_a_run_in_good_order(holder, sig, code):
    running = holder.start("--json")
    wait_until(lambda: '"held"' in running.output()[0], 30, "the wait for the holder")
    os.kill(running.pid, sig)
    run = running.wait(60)
    assert run.code == code
    assert run.events[-1]["event"] == "summary" and run.events[-1]["exit"] == code
    assert "s3once: stopping" in run.err


def test_ignored_signal_stays_ignored(holder):
    argv = ["sh", "-c", 'trap "" HUP; exec "$0" "$@"', str(holder.s3once.binary())]
    argv += ["push", "-v", str(holder.tree), holder.url]
    popen = subprocess.Popen(argv, env=holder.s3once.environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    while b"waiting" not in popen.stderr.readline():
        assert popen.poll() is None
    popen.send_signal(signal.SIGHUP)
    popen.send_signal(signal.SIGINT)
    popen.communicate(timeout=15)
    assert popen.returncode == 130


@pytest.fixture
def silent_server():
    """An endpoint that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_grace_ends_what_does_not_end(s3once, silent_server, tree):
    options = ["--grace", "1s", "--endpoint-url", silent_server]
    running = s3once.start("push", *options, tree, "s3://bucket")
    wait_until(lambda: "this host remembers" in running.output()[1], 30, "the start")
    os.kill(running.pid, signal.SIGTERM)
    assert running.wait(60).code == 143


def test_second_signal_ends_the_grace(s3once, silent_server, tree):
    options = ["--grace", "5m", "--endpoint-url", silent_server]
    running = s3once.start("push", *options, tree, "s3://bucket")
    wait_until(lambda: "this host remembers" in running.output()[1], 30, "the start")
    os.kill(running.pid, signal.SIGTERM)
    wait_until(lambda: "stopping" in running.output()[1], 60, "the first signal")
    os.kill(running.pid, signal.SIGINT)
    assert running.wait(60).code == 143, "the first signal counts"


def test_no_wait_leaves_held_files_and_exits_4(holder):
    run = holder.start("--no-wait").wait(15)
    assert run.code == 4
    assert f"{holder.tree}/big: " in run.err
    assert "0 of 1 file is verified to be in" in run.out and "held by other uploaders 1" in run.out


def test_worse_exit_codes_win_over_4(holder, tmp_path):
    run = holder.s3once("push", "--no-wait", holder.tree, tmp_path / "missing", holder.url, timeout=15)
    assert run.code == 1


def test_status_names_who_holds_a_file(holder, bucket):
    run = holder.s3once("status", f"s3://{bucket}/held/big")
    assert run.code == 0
    for words in ("state     claimed since 20", "still open", "fence     session ", "next run  the next run waits"):
        assert words in run.out
    run = holder.s3once("status", f"s3://{bucket}")
    assert "claimed: 1 file by " in run.out and "done 0 files (0 B), claimed 1\n" in run.out


# --- exit 3: once for the run, before the first file


def setup_errors():
    nothing = f"http://127.0.0.1:{free_ports(1)[0]}"
    wrong = {"AWS_ACCESS_KEY_ID": "AKIAWRONGWRONGWRONG", "AWS_SECRET_ACCESS_KEY": "wrong"}
    none = dict.fromkeys(["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
    return {
        "no credentials": (none, [], "credentials"),
        "half of the credentials": ({"AWS_SECRET_ACCESS_KEY": None}, [], "credentials|AWS_SECRET_ACCESS_KEY"),
        "unknown key": (wrong, [], r"\((InvalidAccessKeyId|SignatureDoesNotMatch).*request id"),
        "wrong secret": ({"AWS_SECRET_ACCESS_KEY": "wrong"}, [], r"\(SignatureDoesNotMatch, request id"),
        "no such profile": ({}, ["--profile", "nobody"], "nobody"),
        "refused": ({}, ["--endpoint-url", nothing], nothing.removeprefix("http://")),
        "unresolvable": (RESOLVER_IS_LEFT, ["--endpoint-url", "http://no-such-host.invalid"], "no-such-host.invalid"),
        "malformed endpoint": ({}, ["--endpoint-url", "ftp://host"], "ftp://host"),
    }


SETUP_ERRORS = setup_errors()


def assert_setup_error(run, pattern):
    errors = [line for line in run.err.splitlines() if line.startswith("s3once: error: ")]
    assert run.code == 3, run
    assert len(errors) == 1, run
    assert re.search(pattern, errors[0]), run


@pytest.mark.real_s3
@pytest.mark.parametrize("case", SETUP_ERRORS)
def test_setup_error_ends_the_run_at_once(s3once, s3, bucket, tree, case):
    env, options, pattern = SETUP_ERRORS[case]
    run = s3once("push", "--give-up-after", "1s", *options, tree, f"s3://{bucket}", env=env, attempts=2)
    assert_setup_error(run, pattern)
    assert run.out == "", "nothing to sum up"
    assert s3.objects(bucket) == {}


def test_no_such_bucket(s3once, s3, tree):
    missing = fresh_name("missing")
    run = s3once("push", tree, f"s3://{missing}")
    assert_setup_error(run, missing)


@pytest.mark.real_s3
def test_untrusted_certificate(s3once, s3, bucket, tree):
    run = s3once("push", "--endpoint-url", s3.tls_endpoint, tree, f"s3://{bucket}", attempts=2)
    assert_setup_error(run, "certificate")
    run = s3once("push", "--endpoint-url", s3.tls_endpoint, "--ca-bundle", s3.ca, tree, f"s3://{bucket}")
    assert run.code == 0, run
    s3.assert_same(tree, bucket)


@pytest.mark.parametrize(
    "name, is_known, says",
    [
        (None, False, "cannot establish a TLS connection to {host} .*wrong version number.*: check that it speaks https"),
        ("127.0.0.1", False, "the certificate of {host} is not trusted"),
        ("192.0.2.1", True, "the certificate of {host} is for another name"),
    ],
    ids=["no TLS", "unknown CA", "another name"],
)
def test_wrong_tls_is_said_at_once(s3once, tmp_path, tree, name, is_known, says):
    """One connection, and none of the minutes that a server is waited for that is down."""
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    context, connections = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), []
    if name:
        make = ["openssl", "req", "-x509", "-nodes", "-newkey", "rsa:2048", "-subj", "/CN=x", "-addext", f"subjectAltName=IP:{name}"]
        subprocess.run([*make, "-keyout", key, "-out", certificate], check=True, capture_output=True)
        context.load_cert_chain(certificate, key)

    def serve(listener):
        with contextlib.suppress(OSError):
            while True:
                connections.append(listener.accept()[0])
                with contextlib.suppress(OSError), connections[-1] as client:
                    if name:
                        context.wrap_socket(client, server_side=True).recv(1)
                    else:
                        client.recv(1)
                        client.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = f"127.0.0.1:{listener.getsockname()[1]}"
        server = threading.Thread(target=serve, args=(listener,))
        server.start()
        trust = ["--ca-bundle", certificate] if is_known else []
        run = s3once("push", "--endpoint-url", f"https://{host}", *trust, tree, "s3://bucket", "--marks", f"sqlite:{tmp_path}/marks.db", timeout=60)
        listener.shutdown(socket.SHUT_RDWR)
        server.join()
    assert_setup_error(run, says.format(host=host))
    assert len(connections) == 1


@pytest.mark.real_s3
def test_certificates_that_are_not_there(s3once, s3, bucket, tree):
    options = ["--endpoint-url", s3.tls_endpoint, "--ca-bundle", "/nonexistent.pem"]
    assert_setup_error(s3once("push", *options, tree, f"s3://{bucket}"), "/nonexistent.pem")


def test_no_such_table(s3once, s3, dynamodb, bucket, table, tree):
    run = s3once("push", tree, f"s3://{bucket}")
    assert_setup_error(run, table)
    assert "s3once init" in run.err
    assert s3.objects(bucket) == {}


def make_table(dynamodb, name, *keys):
    dynamodb.client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"))],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
    )


@pytest.mark.parametrize("keys", [["id"], ["pk"], ["sk", "pk"]])
def test_table_of_another_shape(s3once, s3, dynamodb, bucket, table, tree, keys):
    make_table(dynamodb, table, *keys)
    run = s3once("push", tree, f"s3://{bucket}")
    assert_setup_error(run, table)
    run = s3once("init")
    assert_setup_error(run, table)
    assert dynamodb.items(table) == []


def test_table_that_was_never_set_up(s3once, s3, dynamodb, bucket, table, tree):
    make_table(dynamodb, table, "pk", "sk")
    for argv in (["push", tree, f"s3://{bucket}"], ["status", f"s3://{bucket}"]):
        where = f"dynamodb:{table} is not set up at {dynamodb.endpoint}: check its name and the region"
        assert_setup_error(s3once(*argv), f"{where}.*s3once init --marks dynamodb:{table}")


def test_dynamodb_endpoint_that_is_not_there(s3once, s3, bucket, tree):
    nothing = f"http://127.0.0.1:{free_ports(1)[0]}"
    options = ["--give-up-after", "1s", "--marks", "dynamodb:marks"]
    run = s3once("push", *options, tree, f"s3://{bucket}", env={"AWS_ENDPOINT_URL_DYNAMODB": nothing}, attempts=2)
    assert_setup_error(run, nothing.removeprefix("http://"))


LOCAL_MARKS = {
    "no home": ({"HOME": None, "XDG_STATE_HOME": None}, "local", "set HOME"),
    "a relative home": ({"HOME": "tree", "XDG_STATE_HOME": None}, "local", "set HOME"),
    "a home that is no folder": ({"HOME": "/dev/null", "XDG_STATE_HOME": None}, "local", "Not a directory"),
    "a directory": ({}, "sqlite:.", "."),
    "no database": ({}, "sqlite:tree/a.txt", "a.txt"),
    "no such folder's parent is a file": ({}, "sqlite:tree/a.txt/marks.db", "a.txt"),
}


@pytest.mark.parametrize("case", LOCAL_MARKS)
def test_local_marks_that_cannot_be(s3once, s3, bucket, tree, case):
    env, marks, words = LOCAL_MARKS[case]
    before = (tree / "a.txt").read_bytes()
    run = s3once("push", "--marks", marks, tree, f"s3://{bucket}", env=env)
    assert_setup_error(run, re.escape(words))
    assert (tree / "a.txt").read_bytes() == before
    assert s3.objects(bucket) == {}


def test_local_marks_of_another_program(s3once, tree):
    with sqlite3.connect(s3once.folder / "theirs.db") as database:
        database.execute("CREATE TABLE songs(name)")
    run = s3once("push", "--marks", "sqlite:theirs.db", tree, "s3://bucket")
    assert_setup_error(run, "theirs.db: is an SQLite file of another program")


def test_damaged_local_marks(s3once, s3, bucket, tree):
    marks = s3once.folder / "marks.db"
    assert s3once("push", "--marks", f"sqlite:{marks}", tree, f"s3://{bucket}").code == 0
    size = marks.stat().st_size
    marks.write_bytes(marks.read_bytes()[:100] + b"\xff" * (size - 100))
    assert_setup_error(s3once("push", "--marks", f"sqlite:{marks}", tree, f"s3://{bucket}"), "marks.db")


@pytest.mark.parametrize("how", ["removed", "replaced", "only the log removed"])
def test_local_marks_that_go_away_meanwhile(s3once, s3, s3_wire, bucket, tree, how):
    rule = s3_wire.add(faults.hold_request, "PutObject")
    running = s3once.start("push", tree, f"s3://{bucket}")
    assert rule.reached.wait(60), running.output()
    marks = s3once.state / "s3once" / "marks.db"
    for end in ["-wal"] if "only" in how else ["", "-wal", "-shm"]:
        Path(f"{marks}{end}").unlink()
    if how == "replaced":
        marks.touch(0o600)
    rule.released.set()
    run = running.wait()
    assert_setup_error(run, "marks.db: was removed or replaced while this run")
    run = s3once("push", "--json", tree, f"s3://{bucket}")
    assert run.code == 0 and run.events[-1]["adopted"] + run.events[-1]["skipped"] == 2, run


def test_local_marks_that_are_locked_away_meanwhile(s3once, s3_wire, bucket, tree):
    rule = s3_wire.add(faults.hold_request, "PutObject")
    running = s3once.start("push", tree, f"s3://{bucket}", unprivileged=True)
    assert rule.reached.wait(60), running.output()
    (s3once.state / "s3once").chmod(0)
    rule.released.set()
    run = running.wait()
    (s3once.state / "s3once").chmod(0o700)
    assert_setup_error(run, "marks.db: Permission denied, so that marks may be lost: run again")


def limited(s3once, limits, *argv, wrap=()):
    argv = [*wrap, "bash", "-c", f'{limits}; exec "$0" "$@"', str(s3once.binary()), *map(str, argv)]
    environment = {**s3once.environment, "ASAN_OPTIONS": s3once.environment["ASAN_OPTIONS"] + ":detect_leaks=0"}
    return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60, cwd=s3once.folder)


@pytest.mark.parametrize("limit", range(5, 13))
def test_out_of_descriptors(s3once, s3, bucket, tree, limit):
    run = limited(s3once, f"ulimit -n {limit}", "push", "--concurrency", "64", tree, f"s3://{bucket}")
    assert run.returncode == 3, run
    assert "descriptor" in run.stderr or "Too many open files" in run.stderr


def test_little_address_space_for_threads(s3once, s3, bucket, tree):
    """A run makes do with the threads that there are; without one for its heartbeats it cannot. The stacks of the sixteen that it
    begins with take 128 MiB, which do not fit beside the smallest program."""
    if re.search(rb"__[at]san_init", s3once.binary().read_bytes()):
        pytest.skip("a sanitizer needs more address space than the limit leaves")
    run = limited(s3once, "ulimit -v 150000", "push", "--json", tree, f"s3://{bucket}")
    summary = json.loads(run.stdout.splitlines()[-1])
    assert summary["concurrency"] < 32 and summary["limited_by"] == "threads", summary
    assert run.returncode == 0 or run.returncode == 3 and re.search(r"thread.*ulimit -u", run.stderr), run


@pytest.mark.parametrize("limit", [1, 2, 3, 12, 20, 24])
def test_out_of_processes(s3once, s3, bucket, tree, limit):
    """The limit counts a user's threads, and root's never: another user, who may read our files."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to become a user who runs nothing else")
    user, dac = str(random.randrange(10**8, 10**9)), "+dac_override,+dac_read_search"
    wrap = ["setpriv", "--reuid", user, "--clear-groups", "--inh-caps", dac, "--ambient-caps", dac, "--bounding-set", f"-all,{dac}"]
    run = limited(s3once, f"ulimit -u {limit}", "push", "-v", tree, f"s3://{bucket}", wrap=wrap)
    if limit >= 12:
        assert run.returncode == 0 and re.search(r"^up to \d+ requests at once; limited by the threads", run.stdout, re.M), run
    else:
        assert run.returncode == 3 and re.search(r"thread.*ulimit -u", run.stderr), run


def test_file_size_limit_is_an_error_like_any_other(s3once, s3, bucket, tree):
    run = limited(s3once, "ulimit -f 1", "push", f"--marks=sqlite:{s3once.folder}/m.db", tree, f"s3://{bucket}")
    assert run.returncode == 3, run
    assert "s3once: error: " in run.stderr and "m.db" in run.stderr


def test_setup_error_as_json(s3once, s3, tree):
    run = s3once("push", "--json", tree, f"s3://{fresh_name('missing')}")
    assert run.code == 3
    fatal, summary = run.events[-2:]
    assert fatal["event"] == "fatal" and fatal["code"] == "NoSuchBucket" and fatal["request_id"]
    assert summary["event"] == "summary" and summary["exit"] == 3


def test_requests_are_told_to_who_asks_thrice(s3once, s3, bucket, tree):
    run = s3once("push", "-vvv", tree, f"s3://{bucket}/p+q")
    for key in ("p%2Bq/a.txt", "p%2Bq/sub/b.txt"):
        assert re.search(rf"^s3once: debug: PutObject /.*{key}: ok \(status 200\)$", run.err, re.M), run
    assert "PutObject" not in s3once("push", "-vv", tree, f"s3://{bucket}/other").err


@pytest.mark.real_s3
def test_wrong_credentials_of_another_user_are_never_shown(s3once, s3, bucket, tree):
    secret = "zH9secretsecretsecret"
    for options in ([], ["-vvv"], ["--json", "-vvv"]):
        run = s3once("push", *options, tree, f"s3://{bucket}", env={"AWS_SECRET_ACCESS_KEY": secret}, attempts=2)
        assert run.code == 3 and secret not in run.out + run.err


# --- exit 1: the others go on


def test_missing_and_unreadable_sources(s3once, s3, bucket, tree, tmp_path):
    other = make_tree(tmp_path / "other", {"ok": b"ok", "secret": b"s", "closed/file": b"f"})
    (other / "secret").chmod(0)
    (other / "closed").chmod(0)
    for path in (tmp_path, s3once.home, s3once.state, tree, other):
        path.chmod(0o755)
    run = s3once("push", tree, "missing", other, f"s3://{bucket}/p", unprivileged=True)
    (other / "closed").chmod(0o755)
    assert run.code == 1, run
    assert "s3once: error: missing: does not exist" in run.err
    assert re.search(r"other/secret: .*Permission denied", run.err)
    assert re.search(r"other/closed: .*Permission denied", run.err)
    assert set(s3.objects(bucket)) == {"p/a.txt", "p/sub/b.txt", "p/ok"}
    assert "3 of 6 files are verified to be in" in run.out and "failed 3" in run.out


BAD_FILES = {
    "not UTF-8": ({b"bad\xff": b"x"}, r"/bad\\xff: .*not UTF-8"),
    "not in XML": ({"bell\x07": b"x"}, r"/bell\\x07: .*U\+0007"),
    "key too long": ({"d" * 200 + "/" + "e" * 200 + "/" + "f" * 200 + "/" + "g" * 200 + "/" + "h" * 230: b"x"}, "1,?024"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_names_that_cannot_be_keys(s3once, s3, bucket, tree, case):
    files, pattern = BAD_FILES[case]
    make_tree(tree, files)
    run = s3once("push", tree, f"s3://{bucket}/p")
    assert run.code == 1, run
    assert re.search(rf"^s3once: error: .*{pattern}", run.err, re.M), run
    assert set(s3.objects(bucket)) == {"p/a.txt", "p/sub/b.txt"}


def test_two_files_for_one_key(s3once, s3, bucket, tree, tmp_path):
    other = make_tree(tmp_path / "other", {"a.txt": b"another", "c": b"c"})
    run = s3once("push", tree, other, f"s3://{bucket}/p")
    assert run.code == 1, run
    assert f"error: {tree}/a.txt: " in run.err and f"error: {other}/a.txt: " in run.err
    assert set(s3.objects(bucket)) == {"p/sub/b.txt", "p/c"}


def test_file_over_the_limit(s3once, s3, bucket):
    """No object is larger than 10,000 parts of 5 GiB. Only a file system in memory has such (sparse) files."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        make_tree(folder, {"small": b"s"})
        with open(f"{folder}/huge", "wb") as file:
            file.truncate(49 << 40)
        run = s3once("push", folder, f"s3://{bucket}/p")
        assert run.code == 1, run
        assert re.search(rf"error: {folder}/huge: larger than the largest object", run.err), run
    assert set(s3.objects(bucket)) == {"p/small"}
    assert s3.uploads(bucket) == {}


def test_special_files_in_a_tree_are_skipped_and_counted(s3once, s3, bucket, tree):
    os.mkfifo(tree / "pipe")
    run = s3once("push", tree, f"s3://{bucket}")
    assert run.code == 0 and "pipe" not in run.err, run
    assert "all 2 files" in run.out and "sockets, named pipes, devices and own files skipped 1" in run.out, run
    assert set(s3.objects(bucket)) == {"a.txt", "sub/b.txt"}
    assert f"skipped {tree}/pipe: is a named pipe" in s3once("push", "-v", tree, f"s3://{bucket}").out


def test_special_files_that_were_named_are_errors(s3once, s3, bucket, tree):
    os.mkfifo(tree / "pipe")
    run = s3once("push", tree / "pipe", f"s3://{bucket}")
    assert run.code == 1 and f"error: {tree}/pipe: is a " in run.err, run
    for i in range(20):
        os.mkfifo(tree / f"pipe{i:02}")
    names = sorted(path.name for path in tree.glob("pipe*"))
    (tree.parent / "list").write_text("".join(f"{name}\n" for name in names))
    command = ("push", tree, f"s3://{bucket}", "--files-from", tree.parent / "list")
    run = s3once(*command, "--json")
    named = [f"s3once: error: {tree}/{name}: is a named pipe, not a file; exclude it" for name in ("pipe", "pipe00", "pipe01")]
    number = "s3once: error: 18 more files have the same error: is a named pipe, not a file; exclude it (-v names each)"
    assert run.code == 1 and [line for line in run.err.splitlines() if "error" in line] == [*named, number], run
    assert len(told(run, "failed")) == counts(run)["failed"] == 21
    run = s3once(*command, "-v")
    assert run.err.count(": is a named pipe, not a file") == 21 and " more files" not in run.err, run


def test_only_links(s3once, s3, bucket, tmp_path):
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "l").symlink_to("/etc/hostname")
    run = s3once("push", "links", f"s3://{bucket}")
    assert run.code == 1
    assert "--follow" in run.err


def test_empty_folder_is_fine(s3once, s3, bucket, tmp_path):
    (tmp_path / "empty").mkdir()
    run = s3once("push", "empty", f"s3://{bucket}/p")
    assert run.code == 0
    assert f"found no files for s3://{bucket}/p" in run.out


def test_files_that_are_all_left_for_later(s3once, s3, bucket, tree):
    run = s3once("push", "--min-age", "1h", tree, f"s3://{bucket}/p")
    assert run.code == 0 and run.out.startswith(f"all 2 files wait for a later run, and none is ready for s3://{bucket}/p\n"), run
    assert "; waiting for a later run 2\n2 files are waiting, the oldest for " in run.out, run
    assert f" (younger than --min-age), such as {tree}/" in run.out, run


def test_object_with_other_content_is_kept(s3once, s3, bucket, tree):
    s3.client.put_object(Bucket=bucket, Key="p/a.txt", Body=b"somebody else's")
    run = s3once("push", tree, f"s3://{bucket}/p")
    assert run.code == 1
    assert f"s3once: error: {tree}/a.txt: " in run.err
    assert s3.get(bucket, "p/a.txt") == b"somebody else's"
    assert s3.get(bucket, "p/sub/b.txt") == b"bb"


# --- --as, --files-from and their likes, through the command line


def test_as_names_the_key(s3once, s3, bucket, tree):
    assert s3once("push", "--as", "x//y z", tree / "a.txt", f"s3://{bucket}").code == 0
    assert list(s3.objects(bucket)) == ["x//y z"]


@pytest.mark.parametrize("given", [b"sub/b.txt\n", b"sub/b.txt\0"])
def test_files_from_standard_input(s3once, s3, bucket, tree, given):
    run = s3once("push", "--files-from=-", tree, f"s3://{bucket}", stdin=given)
    assert run.code == 0, run
    assert list(s3.objects(bucket)) == ["sub/b.txt"]


def test_order_of_filters_counts(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "filtered", {"a.log": b"1", "b.log": b"2", "c.txt": b"3"})
    assert s3once("push", "--exclude", "*.log", "--include=a.log", tree, f"s3://{bucket}").code == 0
    assert set(s3.objects(bucket)) == {"a.log", "c.txt"}


def test_options_after_operands_and_double_dash(s3once, s3, bucket, tmp_path):
    make_tree(tmp_path, {"-dash/f": b"x"})
    assert s3once("push", "-q", "--", "-dash", f"s3://{bucket}").code == 0
    assert set(s3.objects(bucket)) == {"f"}
    assert s3once("push", "./-dash", f"s3://{bucket}/q", "-q").code == 0
