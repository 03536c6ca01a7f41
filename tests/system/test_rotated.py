"""Logs that logrotate itself rotates: every generation's content is in S3 exactly once, whatever its name is by then."""

import bz2
import contextlib
import gzip
import hashlib
import lzma
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.faults import faults
from tests.system.harness import MIB, make_tree, wait_until
from tests.system.pushing import counts, learn_conditions, marks_of, summary, told
from tests.system.test_push_changes import LEASE_HOLDER
from tests.system.test_push_resume import Killed

LOGROTATE = "/usr/sbin/logrotate"
KEY = re.compile(r"p/(.*/)?[^/]+-\d{8}T\d{6}Z-[0-9a-f]{8}(\.[a-z]+)?(\.gz)?$")


def plain(name, body):
    for suffix, unpack in {".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress}.items():
        if name.endswith(suffix):
            return unpack(body)
    return body


def stored(s3, bucket, prefix="p/"):
    """key → content, decompressed."""
    return {key: plain(key, s3.get(bucket, key)) for key in s3.objects(bucket, prefix)}


def rotated(folder, live="app.log"):
    """The contents of all generations on the disk, each once."""
    return Counter(plain(each.name, each.read_bytes()) for each in folder.iterdir() if each.name != live)


def rename_up(folder, last):
    for number in range(last, 0, -1):
        for suffix in ("", ".gz"):
            path = folder / f"app.log.{number}{suffix}"
            if path.exists():
                path.rename(folder / f"app.log.{number + 1}{suffix}")


def push(s3once, folder, bucket, *options, **how):
    return s3once("push", folder, f"s3://{bucket}/p", "--rotated", "--json", *options, **how)


# --- names, and what is left out


def test_names(s3once, s3, bucket, marks, tmp_path):
    """Keys of the family, time and content; the live file is left out, also one that was never rotated."""
    tree = make_tree(tmp_path / "tree", {"web/app.log": 5, "web/app.log.1": 10, "web/app-20260102.log": 20, "readme.txt": 3, "lone.log": 4})
    os.utime(tree / "web/app.log.1", (1767322800, 1767322800))
    run = push(s3once, tree, bucket, "-v")
    assert run.code == 0 and counts(run) == {"uploaded": 2, "waiting": 3}, run
    made = sorted(s3.objects(bucket))
    assert len(made) == 2 and all(re.fullmatch(r"p/web/app-\d{8}T\d{6}Z-[0-9a-f]{8}\.log", key) for key in made), made
    assert any("-20260102T030000Z-" in key for key in made), made
    assert sorted(Path(event["path"]).name for event in told(run, "waiting")) == ["app.log", "lone.log", "readme.txt"]


def test_options(s3once, tmp_path):
    """Contradictory options are refused."""
    tree = make_tree(tmp_path / "tree", {"a.1": 1})
    for options, said in (
        (["--rotated", "--files-from", "-"], "--rotated and --files-from cannot be used together"),
    ):
        run = s3once("push", *options, tree, "s3://some-bucket/p")
        assert run.code == 2 and re.search(said, run.err), run


def test_a_rotation_that_no_rule_knows(s3once, s3, bucket, tmp_path):
    """Such a name is that of a live log: it is sent once it is compressed, or with --live."""
    tree = make_tree(tmp_path / "tree", {"app.log": b"now\n", "app_part_b.log": b"second\n", "app_part_a.log.gz": gzip.compress(b"first\n")})
    run = push(s3once, tree, bucket)
    assert run.code == 0 and counts(run) == {"uploaded": 1, "waiting": 2}, run
    assert re.fullmatch(r"p/app_part_a-\d{8}T\d{6}Z-[0-9a-f]{8}\.log\.gz", *s3.objects(bucket))
    run = push(s3once, tree, bucket, "--live")
    assert run.code == 0 and counts(run) == {"uploaded": 2, "skipped": 1}, run


NAMES = [
    "app-1.log",
    "app-2.log.gz",
    "conn.00:00:00-01:00:00.log.gz",
    "conn.01:00:00-02:00:00.log",
    "binlog.000001",
    "mysql-bin.000123",
    "trace.00001.log",
    "system@0123456789abcdef0123456789abcdef-0000000000000001-00060b1c2d3e4f50.journal",
    "u_ex261127.log",
    "@400000006567c1b41dcd6500.s",
    "@400000006567c1b41dcd6501.u",
    "any name.gz",
]


@pytest.mark.parametrize(
    "key, content, remedy",
    [
        ([], b"of both", "upload them below different prefixes"),
        (["--key", "{family}/{mtime:%Y}"], None, "make --key distinguish them, for instance by {dir} or {id:8}"),
    ],
    ids=["default", "own"],
)
def test_two_logs_with_one_key(s3once, s3, bucket, tmp_path, key, content, remedy):
    """No field is proposed whose value changes with the next rotation."""
    for name in ("app.log.1", "app.log.2"):
        path = tmp_path / "logs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content or name.encode())
        os.utime(path, (1_700_000_000, 1_700_000_000))
    run = push(s3once, tmp_path / "logs", bucket, *key)
    assert run.code == 1 and counts(run) == {"failed": 2}, run
    for event in told(run, "failed"):
        assert event["text"].endswith(f"; exclude one, or {remedy}"), run
    assert not s3.objects(bucket)


@pytest.mark.parametrize("options", [[], ["--live"]], ids=["rotated", "live"])
def test_log_at_rest_is_sent_under_any_name(s3once, s3, bucket, tmp_path, options):
    """Once, also if it is compressed later; but the live file waits, however long it rests."""
    folder = make_tree(tmp_path / "tree", {name: gzip.compress(name.encode()) if name.endswith(".gz") else f"{name}\n".encode() for name in NAMES})
    make_tree(folder, {"app.log": b"live\n", "current": b"live, too\n"})
    for number, path in enumerate(sorted(folder.iterdir())):
        os.utime(path, (1767322800 + number,) * 2)
    run = s3once("push", folder, f"s3://{bucket}/p", "--rotated", "--json", *options)
    assert run.code == 0 and counts(run)["uploaded"] == len(NAMES) + 2 * len(options), run
    for path in list(folder.iterdir()):
        if not path.name.endswith(".gz") and path.name not in ("app.log", "current"):
            subprocess.run(["gzip", path], check=True)
    run = s3once("push", folder, f"s3://{bucket}/p", "--rotated", "--json", *options)
    assert run.code == 0 and counts(run)["skipped"] == len(NAMES) + 2 * len(options) and "uploaded" not in counts(run), run


@pytest.mark.parametrize("names", [["binlog.000001", "binlog.000002"], ["access.2026-01-01.log", "access.2026-01-02.log"]])
def test_the_newest_of_its_family_waits_for_a_day(s3once, s3, bucket, tmp_path, names):
    """A log whose writer gives it its name is live until it has rested for a day, or there is a newer one. If it grows later, it is not sent at once again."""
    folder = make_tree(tmp_path / "tree", dict.fromkeys(names, b"one\n"))
    os.utime(folder / names[0], (1767322800,) * 2)
    push = ("push", folder, f"s3://{bucket}/p", "--rotated", "--json")
    assert s3once(*push).code == 0
    assert len(s3.objects(bucket, "p/")) == 1
    os.utime(folder / names[1], (1767322900,) * 2)
    assert s3once(*push).code == 0
    assert len(s3.objects(bucket, "p/")) == 2
    with open(folder / names[1], "ab") as file:
        file.write(b"two\n")
    os.utime(folder / names[1], (1767323000,) * 2)
    run = s3once(*push)
    assert run.code == 0 and [each["reason"] for each in summary(run)["waits"]] == ["live"], run
    assert len(s3.objects(bucket, "p/")) == 2


def test_a_ring(s3once, s3, bucket, tmp_path):
    """rotatelogs -n: the file with the family's own name is finished once a program writes the next one, and is no copy of it."""
    folder = make_tree(tmp_path / "tree", {"app.log": b"one\n", "app.log.1": b"two\n"})
    os.utime(folder / "app.log", (1767322800,) * 2)
    push = ("push", folder, f"s3://{bucket}/p", "--rotated", "--json")
    with open(folder / "app.log.1", "ab") as file:
        assert s3once(*push).code == 0
        assert [s3.get(bucket, key) for key in s3.objects(bucket, "p/")] == [b"one\n"]
        file.truncate(0)
        file.write(b"one\n")  # as copytruncate, which has not emptied the log yet
        file.flush()
        (folder / "app.log").write_bytes(b"one\ntwo\n")
        os.utime(folder / "app.log", (1767322900,) * 2)
        assert s3once(*push).code == 0
    assert len(s3.objects(bucket, "p/")) == 1


def test_a_ring_goes_round_with_live(s3once, s3, bucket, tmp_path):
    """A file that is begun anew does not wait for the one that is open by then, which cannot have the lines that were there before."""
    folder = make_tree(tmp_path / "tree", {"app.log": b"one\n", "app.log.1": b"two\n"})
    push = ("push", folder, f"s3://{bucket}/p", "--rotated", "--live", "--json")

    def sent():
        run = s3once(*push)
        assert run.code == 0, run
        return sorted(s3.get(bucket, key) for key in s3.objects(bucket, "p/"))

    assert sent() == [b"one\n", b"two\n"]
    (folder / "app.log").write_bytes(b"three\n")
    with open(folder / "app.log.1", "wb") as file:
        file.write(b"four\n")
        file.flush()
        assert sent() == [b"one\n", b"three\n", b"two\n"]
    assert sent() == [b"four\n", b"one\n", b"three\n", b"two\n"]


def test_a_late_writer_makes_no_ring(s3once, s3, bucket, tmp_path):
    """A program that goes on writing to the renamed log says nothing of the log that was made after it."""
    folder = make_tree(tmp_path / "tree", {"app.log": b"one\n"})
    (folder / "app.log").rename(folder / "app.log.1")
    with open(folder / "app.log.1", "ab") as file:
        made = os.stat(folder / "app.log.1").st_ctime_ns
        wait_until(lambda: (tmp_path / "clock").write_bytes(b"") or os.stat(tmp_path / "clock").st_mtime_ns > made)
        (folder / "app.log").write_bytes(b"two\n")
        os.utime(folder / "app.log", (1767322800,) * 2)
        run = s3once("push", folder, f"s3://{bucket}/p", "--rotated", "--json")
    assert run.code == 0 and counts(run) == {"waiting": 2}, run


@pytest.mark.parametrize("options", [[], ["--live"]], ids=["rotated", "live"])
def test_rotated_after_it_was_compressed_is_told(s3once, s3, bucket, tmp_path, options):
    """By a wildcard of logrotate that takes all: each night makes another content, and so another object."""
    folder = make_tree(tmp_path / "tree", {"app.log.1.gz": gzip.compress(b"one\n")})
    run = s3once("push", folder, f"s3://{bucket}/p", "--rotated", "--json", *options)
    assert run.code == 0 and not told(run, "warning"), run
    (folder / "app.log.1.gz").rename(folder / "app.log.1.gz.1")
    subprocess.run(["gzip", folder / "app.log.1.gz.1"], check=True)
    run = s3once("push", folder, f"s3://{bucket}/p", "--rotated", "--json", *options)
    (warning,) = told(run, "warning")
    assert run.code == 0 and "app.log.1.gz.1.gz was rotated once more after it had been compressed" in warning["text"], run
    assert "let logrotate's wildcard match live logs alone" in warning["text"], run


@pytest.mark.parametrize("options", [[], ["--live"]], ids=["rotated", "live"])
def test_empty_logs_of_one_second(s3once, s3, bucket, tmp_path, options):
    """Nothing tells them apart, and nothing is in them: they are one object."""
    folder = make_tree(tmp_path / "tree", {"app.log.1": b"", "app.log.2": b"", "app.log.3.gz": gzip.compress(b""), "app.log.4": b"one\n"})
    for path in folder.iterdir():
        os.utime(path, (1767322800,) * 2)
    run = s3once("push", folder, f"s3://{bucket}/p", "--rotated", "--json", *options)
    assert run.code == 0 and counts(run) == {"uploaded": 2}, run
    assert Counter(plain(key, s3.get(bucket, key)) for key in s3.objects(bucket, "p/")) == Counter([b"", b"one\n"])
    (folder / "app.log.1").unlink()
    run = s3once("push", folder, f"s3://{bucket}/p", "--rotated", "--json", *options)
    assert run.code == 0 and counts(run) == {"skipped": 2}, run


@pytest.mark.parametrize("name, pack", [("app-1.log", False), ("app-1.log", True)])
def test_an_index_in_the_name_of_a_log_that_was_live(s3once, s3, bucket, tmp_path, name, pack):
    """log4j: what was sent of app.log is not sent again, and the rest of it is."""
    folder = make_tree(tmp_path / "tree", {"app.log": b"one\n"})
    push = ("push", folder, f"s3://{bucket}/p", "--rotated", "--live", "--json")
    assert s3once(*push).code == 0
    with open(folder / "app.log", "ab") as file:
        file.write(b"two\n")
    (folder / "app.log").rename(folder / name)
    if pack:
        subprocess.run(["gzip", folder / name], check=True)
    (folder / "app.log").write_bytes(b"three\n")
    run = s3once(*push)
    assert run.code == 0, run
    assert Counter(plain(key, s3.get(bucket, key)) for key in s3.objects(bucket, "p/")) == Counter([b"one\n", b"two\n", b"three\n"])


# --- one content, many names


@pytest.mark.parametrize("marks", ["dynamodb", "sqlite"], indirect=True)
def test_renamed_and_compressed(s3once, s3, bucket, marks, tmp_path):
    """A log that is renamed, compressed later, or by something else is done; the mark says which object has it."""
    tree = make_tree(tmp_path / "tree", {"app.log.1": 5000, "app.log": 1})
    log = tree / "app.log.1"
    assert counts(push(s3once, tree, bucket)) == {"uploaded": 1, "waiting": 1}
    (key,) = s3.objects(bucket)
    steps = [
        ["mv", "app.log.1", "app.log.2"],
        ["gzip", "app.log.2"],
        ["mv", "app.log.2.gz", "app.log.3.gz"],
        ["sh", "-c", "gzip -d app.log.3.gz && xz app.log.3"],
        ["sh", "-c", "xz -d app.log.3.xz && zstd -q --rm app.log.3"],
    ]
    for step in steps:
        subprocess.run(step, cwd=tree, check=True)
        run = push(s3once, tree, bucket)
        assert run.code == 0 and counts(run) == {"skipped": 1, "waiting": 1}, (step, run)
    run = push(s3once, tree, bucket, "--compare-content")
    assert run.code == 0 and counts(run) == {"skipped": 1, "waiting": 1}, run
    assert s3.objects(bucket).keys() == {key}
    (mark,) = marks_of(marks).values()
    assert len(mark["content"]) == 64 and "suffix" not in mark
    assert not log.exists()


def test_first_found_compressed(s3once, s3, bucket, marks, tmp_path):
    """The object is stored as it was found; its mark has no suffix, so that the plain log is the same file."""
    tree = make_tree(tmp_path / "tree", {"app.log.1": 5000})
    subprocess.run(["gzip", "app.log.1"], cwd=tree, check=True)
    assert counts(push(s3once, tree, bucket)) == {"uploaded": 1}
    (key,) = s3.objects(bucket)
    assert KEY.fullmatch(key) and key.endswith(".log.gz")
    ((mark_key, mark),) = marks_of(marks).items()
    assert mark_key + ".gz" == key and mark["suffix"] == ".gz"
    for asked in (key, mark_key):
        status = s3once("status", f"s3://{bucket}/{asked}")
        assert status.code == 0 and f"s3://{bucket}/{mark_key}\n  state     done" in status.out, status
    assert "state     done" not in s3once("status", f"s3://{bucket}/{mark_key}.xz").out
    subprocess.run(["gzip", "-d", "app.log.1.gz"], cwd=tree, check=True)
    assert counts(push(s3once, tree, bucket)) == {"skipped": 1}
    assert s3.objects(bucket).keys() == {key}


@pytest.mark.parametrize("first, later", [("", ".gz"), (".gz", ".gz"), ("", "")])
def test_marks_are_lost(s3once, s3, bucket, tmp_path, first, later):
    """The object says itself which content it has: it is adopted under the suffix that it was stored with."""
    tree = make_tree(tmp_path / "tree", {"app.log.1": 5000})
    if first:
        subprocess.run(["gzip", "app.log.1"], cwd=tree, check=True)
    assert counts(push(s3once, tree, bucket)) == {"uploaded": 1}
    before = s3.objects(bucket)
    if later != first:
        subprocess.run(["gzip", "app.log.1"], cwd=tree, check=True)
    shutil.rmtree(s3once.state)
    s3once.state.mkdir()
    for fate in ("adopted", "skipped"):
        run = push(s3once, tree, bucket)
        assert run.code == 0 and counts(run) == {fate: 1}, run
    assert s3.objects(bucket) == before


@pytest.mark.parametrize("pack", [["gzip", "app.log.1"], ["gunzip", "app.log.1.gz"]])
def test_marks_are_lost_with_compress(s3once, s3, bucket, tmp_path, pack):
    """The object has the key of what --compress makes of the log and of what logrotate does, although their bytes differ."""
    tree = make_tree(tmp_path / "tree", {"app.log.1": 5000})
    if pack[0] == "gunzip":
        subprocess.run(["gzip", "app.log.1"], cwd=tree, check=True)
    assert counts(push(s3once, tree, bucket, "--compress", "gzip")) == {"uploaded": 1}
    before = s3.objects(bucket)
    subprocess.run(pack, cwd=tree, check=True)
    shutil.rmtree(s3once.state)
    s3once.state.mkdir()
    for fate in ("adopted", "skipped"):
        run = push(s3once, tree, bucket, "--compress", "gzip")
        assert run.code == 0 and counts(run) == {fate: 1}, run
    assert s3.objects(bucket) == before


@pytest.mark.parametrize("first", ["", ".gz", ".xz", "zstd", "gzip"])
@pytest.mark.parametrize("later", [".gz", ".bz2", ".xz", ".zst", ""])
@pytest.mark.parametrize("lost", ["forgotten", "file"])
def test_one_object_whatever_compresses_it(s3once, s3, bucket, tmp_path, first, later, lost):
    """Its number and its compression are others, and no mark knows it: the object is looked for under every suffix."""
    tree = make_tree(tmp_path / "tree", {"app.log.1": 5000})
    pack = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
    if first in pack:
        subprocess.run([pack[first], "-q", "app.log.1"], cwd=tree, check=True)
    options = ["--compress", first] if first in ("zstd", "gzip") else []
    assert counts(push(s3once, tree, bucket, *options)) == {"uploaded": 1}
    before = s3.objects(bucket)
    if first in pack:
        subprocess.run([pack[first], "-qd", f"app.log.1{first}"], cwd=tree, check=True)
    (tree / "app.log.1").rename(tree / "app.log.2")
    if later:
        subprocess.run([pack[later], "-q", *(["--rm"] if later == ".zst" else []), "app.log.2"], cwd=tree, check=True)
    if lost == "file":
        shutil.rmtree(s3once.state)
        s3once.state.mkdir()
    else:
        forgotten = s3once("forget", f"s3://{bucket}/p", "--yes")
        assert forgotten.code == 0, forgotten
    for fate in ("adopted", "skipped"):
        run = push(s3once, tree, bucket, *options)
        assert run.code == 0 and counts(run) == {fate: 1}, run
    assert s3.objects(bucket) == before


def test_nothing_may_be_looked_at(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """A log without a mark is uploaded, and it is said that it might be there already."""
    tree = make_tree(tmp_path / "tree", {"app.log.1": 5000, "app.log.2": 6000})
    learn_conditions(s3once, bucket)
    s3_wire.add(faults.answer(403, "AccessDenied"), "HeadObject", times=None)
    run = push(s3once, tree, bucket)
    assert run.code == 0 and counts(run) == {"uploaded": 2}, run
    assert len([event for event in told(run, "note") if "with another compression" in event["text"]]) == 1, run


def test_compressed_after_its_upload_was_begun(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """The upload is of another object, which nobody needs any more: it is aborted."""
    tree = make_tree(tmp_path / "tree", {"app.log.1": 11 * MIB})
    command = ("push", tree, f"s3://{bucket}/p", "--rotated", "--part-size", "5MiB", "--concurrency", "1", "--json")
    Killed(s3once, s3, s3_wire, bucket, command, faults.kill_after, 1, "UploadPart")
    assert len(s3.uploads(bucket)) == 1
    want = rotated(tree)
    subprocess.run(["gzip", "-1", "app.log.1"], cwd=tree, check=True)
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    ((key, body),) = stored(s3, bucket).items()
    assert key.endswith(".gz") and Counter([body]) == want and not s3.uploads(bucket)


def test_other_content_with_another_suffix(s3once, s3, bucket, marks, tmp_path):
    """With one key for all contents, a log may take the place only of the object that it would be itself: another object of
    the same mark would stay behind."""
    tree = make_tree(tmp_path / "tree", {"app.log.1": 5000})
    options = ["--key", "{dir}{name}", "--if-changed", "replace"]
    subprocess.run(["gzip", "app.log.1"], cwd=tree, check=True)
    assert counts(push(s3once, tree, bucket, *options)) == {"uploaded": 1}
    before, known = s3.objects(bucket), marks_of(marks)
    assert list(before) == ["p/app.log.1.gz"]
    (tree / "app.log.1.gz").unlink()
    (tree / "app.log.1").write_bytes(b"another day\n")
    run = push(s3once, tree, bucket, *options)
    assert run.code == 1 and counts(run) == {"refused": 1}, run
    assert "cannot take that object's place as p/app.log.1:" in told(run, "refused")[0]["text"], run
    assert s3.objects(bucket) == before
    assert marks_of(marks) == known
    subprocess.run(["gzip", "app.log.1"], cwd=tree, check=True)
    assert counts(push(s3once, tree, bucket, *options)) == {"uploaded": 1}
    assert stored(s3, bucket) == {"p/app.log.1.gz": b"another day\n"}


def test_same_content_another_day(s3once, s3, bucket, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", {"app.log.1": 0, "app.log.2": 0})
    os.utime(tree / "app.log.2", (1767322800, 1767322800))
    assert counts(push(s3once, tree, bucket)) == {"uploaded": 2}
    assert len(s3.objects(bucket)) == 2


# --- nothing is read again


def bytes_read(s3once, tree, bucket, tmp_path):
    """How many bytes of the tree's files a run reads, and the run."""
    trace = tmp_path / "trace"
    options = ["-f", "-y", "-e", "trace=read,pread64,readv,preadv,mmap,copy_file_range,sendfile", "-o", trace]
    run = push(s3once, tree, bucket, wrap=["strace", *map(str, options)])
    lines = [line for line in trace.read_text(errors="replace").splitlines() if f"<{tree}/" in line]
    return sum(int(line.rsplit("= ", 1)[1].split()[0]) for line in lines if " mmap" not in line), run


def families(tree, n, generations):
    for i in range(n):
        folder = tree / f"{i % 20}"
        folder.mkdir(parents=True, exist_ok=True)
        for g in range(1, generations):
            (folder / f"app{i}.log.{g}").write_bytes(b"family %d generation %d\n" % (i, g) * 5)
            os.utime(folder / f"app{i}.log.{g}", (1767322800 - 86400 * g,) * 2)
        (folder / f"app{i}.log").write_bytes(b"live\n")


@pytest.mark.parametrize("n", [20, pytest.param(1000, marks=pytest.mark.full)])
def test_quiet_night(s3once, s3, bucket, s3_proxy, tmp_path, n):
    """Nothing new: no byte of any file is read, and S3 is asked once, whether the bucket is the same. After a rotation only
    names differ, and nothing is read either."""
    tree = tmp_path / "tree"
    families(tree, n, 7)
    run = push(s3once, tree, bucket, timeout=600)
    assert counts(run) == {"uploaded": 6 * n, "waiting": n}, run
    s3_proxy.requests()
    s3once.environment["ASAN_OPTIONS"] = "detect_leaks=0"  # which cannot be while it is traced
    read, run = bytes_read(s3once, tree, bucket, tmp_path)
    assert run.code == 0 and counts(run) == {"skipped": 6 * n, "waiting": n}, run
    assert read == 0
    assert len(s3_proxy.requests()) == 1
    for folder in tree.iterdir():
        for path in sorted(folder.iterdir(), reverse=True):
            name, _, number = path.name.partition(".log.")
            if number:
                path.rename(folder / f"{name}.log.{int(number) + 1}")
    read, run = bytes_read(s3once, tree, bucket, tmp_path)
    assert counts(run) == {"skipped": 6 * n, "waiting": n}, run
    assert read == 0


# --- while names and files change


def test_written_to(s3once, s3, bucket, marks, tmp_path):
    """A file that somebody has open for writing waits, as far as we may ask: delaycompress is for that."""
    tree = make_tree(tmp_path / "tree", {"app.log.1": 10, "app.log.2": 20})
    with open(tree / "app.log.1", "ab"):
        run = push(s3once, tree, bucket)
        assert run.code == 0 and counts(run) == {"uploaded": 1, "waiting": 1}, run
    assert counts(push(s3once, tree, bucket)) == {"uploaded": 1, "skipped": 1}


def test_file_under_a_lease(s3once, s3, bucket, tmp_path):
    """A lease as file servers take it: the file is named, and does not count as moved. The next run takes it."""
    tree = make_tree(tmp_path / "tree", {"app.log.1": 10, "app.log.2": 20})
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(["/usr/bin/python3", "-c", LEASE_HOLDER, tree / "app.log.1"], **pipes) as holder:
        assert holder.stdout.readline() == b"has it\n"
        run = push(s3once, tree, bucket)
        assert run.code == 1 and counts(run) == {"uploaded": 1, "failed": 1}, run
        (error,) = told(run, "failed")
        assert error["path"].endswith("/app.log.1") and error["text"].startswith("cannot be read: "), error
        holder.stdin.close()
    assert counts(push(s3once, tree, bucket)) == {"uploaded": 1, "skipped": 1}


def test_half_compressed(s3once, s3, bucket, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", {"app.log.1": 1000})
    (tree / "app.log.1.gz").write_bytes(gzip.compress((tree / "app.log.1").read_bytes())[:50])
    run = push(s3once, tree, bucket)
    assert run.code == 0 and counts(run) == {"uploaded": 1, "waiting": 1}, run
    assert len(s3.objects(bucket)) == 1


def test_compressed_and_plain_of_one_number(s3once, s3, bucket, marks, tmp_path):
    """If logrotate stopped while it compressed, there are logs of two days, and both are uploaded."""
    tree = make_tree(tmp_path / "tree", {"app.log.1": b"new day\n"})
    packed = tree / "app.log.1.gz"
    packed.write_bytes(gzip.compress(b"old day\n"))
    run = push(s3once, tree, bucket)
    assert run.code == 0 and counts(run) == {"uploaded": 1, "waiting": 1}, "it may be being made"
    os.utime(packed, (1767322800, 1767322800))
    run = push(s3once, tree, bucket)
    assert run.code == 0 and counts(run) == {"uploaded": 1, "skipped": 1}, run
    assert Counter(stored(s3, bucket).values()) == Counter([b"new day\n", b"old day\n"])
    os.utime(tree / "app.log.1", (1767322800, 1767322800))
    packed.write_bytes(gzip.compress(b"new day\n"))
    os.utime(packed, (1767322800, 1767322800))
    run = push(s3once, tree, bucket)
    assert counts(run) == {"uploaded": 1, "waiting": 1}, "gzip has given it its time, and has not removed the other yet"


async def hold_unread(x, rule):
    """The client has begun to send, and waits with most of the body unread from its file."""
    x.fire(rule)
    await x.hold(rule)
    await x.proxy.pass_on(x)


@pytest.mark.parametrize("way, nth", [("PutObject", 1), ("UploadPart", 2)])
@pytest.mark.parametrize("change", [lambda log: log.rename(log.with_suffix(".2")), Path.unlink], ids=["renamed", "deleted"])
def test_moved_while_it_is_sent(s3once, s3, s3_wire, bucket, marks, tmp_path, way, nth, change):
    """It is finished from its descriptor: that its name changed is no change of content."""
    tree = make_tree(tmp_path / "tree", {"app.log.1": 24 * MIB})
    body = (tree / "app.log.1").read_bytes()
    rule = s3_wire.add(hold_unread, way, nth=nth)
    part = "25MiB" if way == "PutObject" else "5MiB"
    running = s3once.start("push", tree, f"s3://{bucket}/p", "--rotated", "--part-size", part, "--concurrency", "2", "--json")
    assert rule.reached.wait(60), running.output()
    change(tree / "app.log.1")
    rule.released.set()
    run = running.wait()
    assert run.code == 0 and counts(run) == {"uploaded": 1} and not told(run, "retry"), run
    assert list(stored(s3, bucket).values()) == [body]


@pytest.mark.parametrize("way, nth, key", [("UploadPart", 2, []), ("PutObject", 1, ["--key", "{dir}{name}"])], ids=["own-key", "one-key-for-all"])
def test_written_to_while_it_is_sent(s3once, s3, s3_wire, bucket, marks, tmp_path, way, nth, key):
    """No object names a content that it does not have: what was read before and after the write never becomes visible."""
    tree = make_tree(tmp_path / "tree", {"app.log.1": 24 * MIB})
    rule = s3_wire.add(hold_unread, way, nth=nth)
    part = "25MiB" if way == "PutObject" else "5MiB"
    options = ["--part-size", part, "--concurrency", "2", *key]
    running = s3once.start("push", tree, f"s3://{bucket}/p", "--rotated", "--json", *options)
    assert rule.reached.wait(60), running.output()
    with open(tree / "app.log.1", "r+b") as log:
        log.seek(-5, os.SEEK_END)
        log.write(b"other")
    rule.released.set()
    run = running.wait()
    assert run.code == 1 and not s3.objects(bucket), run
    run = push(s3once, tree, bucket, *options)
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    ((key, body),) = stored(s3, bucket).items()
    assert Counter([body]) == rotated(tree)
    assert s3.client.head_object(Bucket=bucket, Key=key)["Metadata"]["s3once-content"] == hashlib.sha256(body).hexdigest()


def test_renamed_between_scan_and_upload(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """Files wait while the first is sent, and are renamed meanwhile: each is found again by its inode."""
    tree = make_tree(tmp_path / "tree", {"app.log.1": 24 * MIB, **{f"app.log.{n}": 100 * n for n in range(2, 12)}})
    want = rotated(tree)
    rule = s3_wire.add(hold_unread, "PutObject", nth=1)
    running = s3once.start("push", tree, f"s3://{bucket}/p", "--rotated", "--part-size", "25MiB", "--concurrency", "1", "--json")
    assert rule.reached.wait(60), running.output()
    rename_up(tree, 12)
    rule.released.set()
    run = running.wait()
    assert run.code == 0 and counts(run) == {"uploaded": 11}, run
    assert Counter(stored(s3, bucket).values()) == want


def test_compressed_between_scan_and_upload(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """The listed file is gone: that is reported, and the next run takes the file with its content."""
    tree = make_tree(tmp_path / "tree", {"app.log.1": 24 * MIB, "app.log.2": 500})
    want = rotated(tree)
    compressed = shutil.copytree(tree, tmp_path / "compressed")  # beforehand: gzip may take longer than a request is waited for
    subprocess.run(["gzip", "app.log.1", "app.log.2"], cwd=compressed, check=True)
    rule = s3_wire.add(hold_unread, "PutObject", nth=1)
    running = s3once.start("push", tree, f"s3://{bucket}/p", "--rotated", "--part-size", "25MiB", "--concurrency", "1", "--json")
    assert rule.reached.wait(60), running.output()
    for name in ("app.log.1", "app.log.2"):
        os.rename(compressed / f"{name}.gz", tree / f"{name}.gz")
        os.unlink(tree / name)
    rule.released.set()
    run = running.wait()
    assert run.code == 1 and counts(run) == {"uploaded": 1, "failed": 1}, run
    assert "was compressed or deleted before it could be sent" in told(run, "failed")[0]["text"]
    run = push(s3once, tree, bucket)
    assert run.code == 0 and counts(run) == {"uploaded": 1, "skipped": 1}, run
    assert Counter(stored(s3, bucket).values()) == want


# --- nights of logrotate


class Night:
    """One folder of a log that is written and rotated, on a clock of its own. is_still: nothing is written while it is rotated."""

    def __init__(self, folder, options, seed, is_still=False):
        self.folder, self.chosen, self.is_still = folder, random.Random(seed), is_still
        folder.mkdir(parents=True, exist_ok=True)
        self.live, self.config = folder / "logs/app.log", folder / "logrotate.conf"
        self.live.parent.mkdir()
        self.config.write_text(
            f"{self.live} {{\n  su root root\n  rotate 99\n  missingok\n  ifempty\n" + "".join(f"  {each}\n" for each in options) + "}\n"
        )
        self.written, self.days, self.runs, self.kills = 0, 0, 0, 0
        self.lock = threading.Lock()

    def write(self, lines):
        """Writes like a daemon that reopens its log for each line."""
        for _ in range(lines):
            with self.lock:
                with open(self.live, "ab") as file:
                    self.written += 1
                    file.write(b"line %d of %s\n" % (self.written, self.folder.name.encode()))

    def rotate(self):
        self.days += 1
        with self.lock if self.is_still else contextlib.nullcontext():
            done = subprocess.run(
                ["faketime", "-f", f"+{self.days}d", LOGROTATE, "-f", "-s", self.folder / "state", self.config],
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "NO_FAKE_STAT": "1"},  # the files' times stay what they are
            )
        # What another uploader has just removed is gone when logrotate wants to rename it.
        assert done.returncode == 0 or "No such file or directory" in done.stderr, done


def keep_writing(night, ended):
    while not ended.is_set():
        night.write(3)
        time.sleep(0.005)


def run_nights(night, nights, start, longest_s=0.4):
    """Pushes at random moments, some killed at random moments, while logrotate runs and lines are written."""
    for _ in range(nights):
        night.write(night.chosen.randrange(1, 40))
        is_down = night.chosen.random() < 0.3
        before = [] if is_down else [start() for _ in range(night.chosen.randrange(2))]
        time.sleep(night.chosen.random() * 0.2)
        ended = threading.Event()
        writer = threading.Thread(target=keep_writing, args=(night, ended))
        writer.start()
        try:
            during = [] if is_down else [start()]
            time.sleep(night.chosen.random() * 0.3)
            night.rotate()
        finally:
            ended.set()
            writer.join()
        for running in before + during:
            if night.chosen.random() < 0.5:
                time.sleep(night.chosen.random() * longest_s)
                running.kill()
            run = running.wait(120)
            assert run.code in (0, 1, 3, -signal.SIGKILL), run
            night.runs, night.kills = night.runs + 1, night.kills + (run.code == -signal.SIGKILL)
        if night.chosen.random() < 0.5:
            running = start()
            time.sleep(night.chosen.random() * 0.2)
            running.kill()
            night.runs, night.kills = night.runs + 1, night.kills + (running.wait(120).code == -signal.SIGKILL)


def assert_each_once(s3, bucket, night, prefix="p/", removes=False):
    """Each generation on the disk is in exactly one object, and no object is anything else but a generation that was removed.
    How many lines are nowhere."""
    objects, want = Counter(stored(s3, bucket, prefix).values()), rotated(night.live.parent)
    left_out, too_many = want - objects, Counter() if removes else objects - want
    assert not left_out and not too_many, {
        "left out": [body[:40] for body in left_out],
        "too many": [body[:40] for body in too_many],
    }
    lines = Counter(line for body in objects.elements() for line in body.splitlines())
    assert set(lines.values()) <= {1}, "a line is in two generations"
    live = set(night.live.read_bytes().splitlines())
    lost = night.written - len(lines) - len(live)
    print(
        f"figures: {night.days} generations, {night.written} lines, {objects.total()} objects, {night.runs} runs, {night.kills} killed,"
        f" {left_out.total()} left out, {too_many.total()} too many, {lost} lines nowhere, {want.total()} logs left on the disk"
    )
    return lost


NAMING = {"numeric": [], "dateext": ["dateext"]}
COMPRESSION = {"none": [], "compress": ["compress"], "delaycompress": ["compress", "delaycompress"]}
CREATION = {"create": ["create"], "copytruncate": ["copytruncate"], "renamecopy": ["create", "renamecopy"]}
IN_SHORT = ["numeric-delaycompress-create", "numeric-compress-copytruncate", "dateext-none-renamecopy", "dateext-compress-create"]
IN_LONG = [f"{naming}-{compression}-{creation}" for naming in NAMING for compression in COMPRESSION for creation in CREATION]
LONG = [pytest.param(way, 30, marks=pytest.mark.full) for way in IN_LONG]


@pytest.mark.parametrize("marks", ["sqlite"], indirect=True)
@pytest.mark.parametrize("way, nights", [(way, 4) for way in IN_SHORT] + LONG)
def test_nights(s3once, s3, bucket, marks, tmp_path, way, nights):
    naming, compression, creation = way.split("-")
    options = NAMING[naming] + COMPRESSION[compression] + CREATION[creation]
    night = Night(tmp_path / "host", options, f"{way} {nights}")
    run_nights(night, nights, lambda: s3once.start("push", night.live.parent, f"s3://{bucket}/p", "--rotated", "--json"))
    run = push(s3once, night.live.parent, bucket)
    assert run.code == 0, run
    lost = assert_each_once(s3, bucket, night)
    # Else logrotate itself copies a log, or compresses it, while a line is written to it.
    assert lost == 0 or creation != "create" or compression == "compress", f"{lost} lines are nowhere"


@pytest.mark.parametrize("marks", ["sqlite"], indirect=True)
@pytest.mark.parametrize("way, nights", [(way, 3) for way in IN_SHORT[:2]] + LONG)
def test_nights_that_remove(s3once, s3, bucket, marks, tmp_path, way, nights):
    """Files in S3 are removed from the disk. No line may be lost then, so none is written at moments when logrotate itself loses some."""
    naming, compression, creation = way.split("-")
    options = NAMING[naming] + COMPRESSION[compression] + CREATION[creation]
    is_still = creation != "create" or compression == "compress"
    night = Night(tmp_path / "host", options, f"{way} {nights} removing", is_still)
    argv = ["push", night.live.parent, f"s3://{bucket}/p", "--rotated", "--delete-after", "--json"]
    run_nights(night, nights, lambda: s3once.start(*argv), longest_s=4)
    run = s3once(*argv)
    assert run.code == 0, run
    assert assert_each_once(s3, bucket, night, removes=True) == 0
    assert [path.name for path in night.live.parent.iterdir()] == ["app.log"], run


@pytest.mark.parametrize("nights", [3, pytest.param(30, marks=pytest.mark.full)])
@pytest.mark.parametrize("place", ["disk", "memory"])
def test_two_hosts(s3once, s3, bucket, marks, tmp_path, place, nights):
    """Two hosts that share a folder of logs and the marks, on a disk and in memory (tmpfs)."""
    folder = Path(tempfile.mkdtemp(prefix="s3once-", dir="/dev/shm")) if place == "memory" else tmp_path
    try:
        night = Night(folder / "host", ["compress", "delaycompress", "create"], f"{place} {nights}")
        states = [tmp_path / "state-a", tmp_path / "state-b"]
        for state in states:
            state.mkdir()
        turn = iter(range(1_000_000))

        def start():
            state = {"XDG_STATE_HOME": str(states[next(turn) % 2])}
            return s3once.start("push", night.live.parent, f"s3://{bucket}/p", "--rotated", "--json", env=state, elsewhere=True)

        run_nights(night, nights, start)
        both = [start(), start()]
        for running in both:
            run = running.wait(120)
            assert run.code == 0, run
        assert assert_each_once(s3, bucket, night) == 0
    finally:
        if place == "memory":
            shutil.rmtree(folder)


def test_a_folder_that_is_not_there(s3once, s3, bucket, tmp_path):
    """With a slash behind its name, as it is usually written. Others are uploaded."""
    logs = make_tree(tmp_path / "logs", {"app.log.1": 10})
    run = s3once("push", "--rotated", f"{tmp_path}/gone/", logs, f"s3://{bucket}", "--json")
    assert run.code == 1 and counts(run) == {"uploaded": 1, "failed": 1}, run
    assert "does not exist" in told(run, "failed")[0]["text"]
