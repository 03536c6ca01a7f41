"""`s3once status --depth` sums up the marks by folder as du does, and `--watch` looks again and again."""

import os
import re
import signal
import subprocess

import pytest

from tests.faults import faults
from tests.system.harness import make_tree, wait_until
from tests.system.terminal import Terminal

TREE = {"top": 10, "2023/a": 100, "2023/jan/b": 1000, "2023/jan/deep/c": 2048, "2024/d": 1, "2024-x": 5, "2024/changed": 7}


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree", TREE)


def rows(text):
    """folder → (done, size, claimed, failed, changed)."""
    table = re.findall(r"^ *([\d,]+) +([\d.]+ \w+) +([\d,]+) +([\d,]+) +([\d,]+)  (\S+)$", text, re.M)
    return {row[5]: row[:5] for row in table}


def test_sums_of_folders(s3once, s3, bucket, table, tree):
    """For all shards in one order; for a folder and everything below it, for files that are not done, and for a prefix alone."""
    assert s3once("init").code == 0
    s3.client.put_object(Bucket=bucket, Key="p/2024/d", Body=b"another's")
    assert s3once("push", tree, f"s3://{bucket}/p").code == 1
    (tree / "2024" / "changed").write_bytes(b"other")
    assert s3once("push", "--if-changed=skip", tree, f"s3://{bucket}/p").code == 1
    run = s3once("status", "--depth", "1", f"s3://{bucket}/p")
    assert run.code == 0 and list(rows(run.out).items()) == [
        ("p/2023/", ("3", "3.1 KiB", "0", "0", "0")),
        ("p/2024/", ("1", "7 B", "0", "1", "1")),
        (f"s3://{bucket}/p/", ("6", "3.1 KiB", "0", "1", "1")),
    ], run
    run = s3once("status", "--depth", "2", f"s3://{bucket}")
    assert list(rows(run.out)) == ["p/2023/", "p/2024/", "p/", f"s3://{bucket}/"], run
    run = s3once("status", "--depth", "9", "--json", f"s3://{bucket}/p/2023")
    store_event, about, *told, total = run.events
    folders = [each for each in told if each["event"] != "job"]
    assert [(each["event"], each["prefix"], each["done"], each["bytes"]) for each in folders] == [
        ("folder", "p/2023/jan/deep/", 1, 2048),
        ("folder", "p/2023/jan/", 2, 3048),
    ], run
    assert (total["event"], total["prefix"], total["done"], total["bytes"]) == ("status", "p/2023/", 3, 3148)
    assert list(rows(s3once("status", "--depth", "1", f"s3://{bucket}/none").out)) == [f"s3://{bucket}/none/"]


def test_looks_again_and_again(s3once, s3, s3_wire, bucket, tree):
    """Without a terminal, one look follows the other, with the jobs, the time, and the changes since the last one."""
    rule = s3_wire.add(faults.hold_request, "PutObject", key="top")
    uploader = s3once.start("push", tree, f"s3://{bucket}")
    assert rule.reached.wait(60), uploader.output()
    looks = s3once.start("status", "--depth", "1", "--watch=100ms", f"s3://{bucket}")
    wait_until(lambda: re.search(r"Z, 0 files \(0 B\) done since the last look, 0.0 files/s", looks.output()[0]), 60, "a second look")
    assert re.search(r"^running .*: running for ", looks.output()[0], re.M), looks.output()
    rule.released.set()
    assert uploader.wait().code == 0
    wait_until(lambda: re.search(r"^ok .*: succeeded ", looks.output()[0], re.M), 60, "the end of the run")
    wait_until(lambda: re.search(r"^20\S+Z, \d files? \(\S+ \S+\) done since the last look, \S+ files/s, \S+ \S+/s$", looks.output()[0], re.M), 60, "a rate")
    wait_until(lambda: rows(looks.output()[0].rsplit("folder\n", 2)[1]).get(f"s3://{bucket}/", "0")[0] == "7", 60, "all files")
    looks.popen.send_signal(signal.SIGINT)
    run = looks.wait()
    assert run.code == -signal.SIGINT and run.err == "" and "\033" not in run.out, run


@pytest.mark.threaded
def test_on_a_terminal_it_is_drawn_anew(s3once, s3, bucket, tmp_path):
    """In its size: the sum and the time are always seen."""
    tree = make_tree(tmp_path / "tree", {f"{n:02}-{'x' * 90}/f": 1 for n in range(40)})
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    with Terminal(s3once, 80) as terminal:
        running = terminal.start("status", "--depth", "1", "--watch=100ms", f"s3://{bucket}")
        wait_until(lambda: terminal.bytes.count(b"since the last look") >= 2, 60, "a third look")
        running.send_signal(signal.SIGINT)
        running.wait(60)
        drawn = terminal.rows
    assert len(drawn) <= 23 and all(len(row) <= 80 for row in drawn)
    assert drawn[0].startswith("marks: ") and drawn[2].startswith("ok ") and drawn[3].split() == ["done", "size", "claimed", "failed", "changed", "folder"], drawn
    assert drawn[-3].split()[0] == "40" and "lines more have no room here" in drawn[-2] and "since the last look" in drawn[-1], drawn


def test_a_reader_that_goes_ends_it(s3once, s3, bucket, tree):
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    reads, writes = os.pipe()
    argv = [str(s3once.binary()), "status", "--watch=100ms", f"s3://{bucket}"]
    looks = subprocess.Popen(argv, env=s3once.environment, stdout=writes, stderr=subprocess.PIPE)
    os.close(writes)
    os.read(reads, 1)
    os.close(reads)
    assert looks.wait(60) == 1 and b"cannot write to standard output" in looks.stderr.read()


@pytest.mark.parametrize("words, sentence", [
    (["--depth", "1"], "--depth shows the folders of a bucket: name s3://BUCKET[/PREFIX]"),
    (["--watch"], "--watch looks at a bucket: name s3://BUCKET[/PREFIX]"),
    (["--depth", "0", "s3://b"], "--depth: '0' is too small: at least 1"),
    (["--watch=1ms", "s3://b"], "--watch: '1ms' is too small: at least 100ms"),
])  # fmt: skip
def test_contradictory_options_are_refused(s3once, words, sentence):
    run = s3once("status", *words)
    assert (run.code, run.out, run.err) == (2, "", f"s3once: error: status: {sentence}\n"), run
