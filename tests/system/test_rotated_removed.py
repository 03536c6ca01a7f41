"""--rotated with --delete-after and --move-to, and `s3once proven` of rotated logs: known by content, removed by name."""

import gzip
import os
import re
import subprocess

import pytest

from tests.faults.preloads import preload_library, preloaded
from tests.system.harness import MIB, REPOSITORY, make_tree
from tests.system.pushing import counts, marks_of, told
from tests.system.test_rotated import LOGROTATE, hold_unread, plain, push, stored

sqlite = pytest.mark.parametrize("marks", ["sqlite"], indirect=True)

PAGE = REPOSITORY / "docs" / "logs.md"
REMOVING = ("uploaded", "skipped", "failed", "removed", "kept", "not_removed", "moved")


def names(tree):
    return {str(path.relative_to(tree)) for path in tree.rglob("*") if not path.is_dir()}


def removing(s3once, tree, bucket, *options, **how):
    return push(s3once, tree, bucket, "--delete-after", *options, **how)


def proven(s3once, tree, bucket, *files):
    return s3once("proven", "--rotated", "--source", tree, *(tree / name for name in files), f"s3://{bucket}/p")


# --- --delete-after


@sqlite
def test_removed_once_uploaded(s3once, s3, bucket, marks, tmp_path):
    """The live log stays, and so does what was changed behind the times of the file."""
    tree = make_tree(tmp_path / "tree", {"app.log": 5, "app.log.1": 10, "d/app.log.2": 20})
    subprocess.run(["gzip", "d/app.log.2"], cwd=tree, check=True)
    want = {(tree / "app.log.1").read_bytes(), gzip.decompress((tree / "d/app.log.2.gz").read_bytes())}
    run = removing(s3once, tree, bucket)
    assert run.code == 0 and counts(run, *REMOVING) == {"uploaded": 2, "removed": 2}, run
    assert names(tree) == {"app.log"}
    objects = stored(s3, bucket)
    assert set(objects.values()) == want
    assert {event["key"] for event in told(run, "removed")} == objects.keys()


@sqlite
def test_log_that_has_only_rested_stays(s3once, s3, bucket, marks, tmp_path):
    """Its writer may be quiet, and go on with it. Once there is a newer log, it is removed."""
    tree = make_tree(tmp_path / "tree", {"binlog.000001": b"one\n", "binlog.000002": b"two\n"})
    for number, path in enumerate(sorted(tree.iterdir())):
        os.utime(path, (1767322800 + number,) * 2)
    run = removing(s3once, tree, bucket)
    assert run.code == 0 and counts(run, *REMOVING) == {"uploaded": 2, "removed": 1}, run
    assert names(tree) == {"binlog.000002"}
    (tree / "binlog.000003").write_bytes(b"three\n")
    run = removing(s3once, tree, bucket)
    assert run.code == 0 and counts(run, *REMOVING) == {"skipped": 1, "removed": 1}, run
    assert names(tree) == {"binlog.000003"}


@sqlite
def test_removed_by_its_content(s3once, s3, bucket, marks, tmp_path):
    """A log that was uploaded plain and is compressed by now is proven by its content; other content of its size is not."""
    tree = make_tree(tmp_path / "tree", {"app.log.1": 5000, "app.log.2": 300})
    os.utime(tree / "app.log.2", (1767322800, 1767322800))  # so long ago that its identity is kept
    assert counts(push(s3once, tree, bucket)) == {"uploaded": 2}
    objects = s3.objects(bucket)
    subprocess.run(["sh", "-c", "mv app.log.1 app.log.3 && gzip app.log.3"], cwd=tree, check=True)
    status = (tree / "app.log.2").stat()
    (tree / "app.log.2").write_bytes(b"x" * 300)
    os.utime(tree / "app.log.2", ns=(status.st_atime_ns, status.st_mtime_ns))
    run = removing(s3once, tree, bucket)
    assert run.code == 1 and counts(run, *REMOVING) == {"skipped": 2, "removed": 1, "not_removed": 1}, run
    assert "content is not what was uploaded" in told(run, "not_removed")[0]["text"]
    assert names(tree) == {"app.log.2"} and s3.objects(bucket) == objects


def renamed(tree):
    (tree / "app.log.1").rename(tree / "app.log.2")


def replaced(tree):
    """By another log of its size and time, as a rotation would that comes at this moment."""
    status = (tree / "app.log.1").stat()
    renamed(tree)
    (tree / "app.log.1").write_bytes(b"another log")
    os.truncate(tree / "app.log.1", status.st_size)
    os.utime(tree / "app.log.1", ns=(status.st_atime_ns, status.st_mtime_ns))


@sqlite
@pytest.mark.parametrize("change, left", [(renamed, {"app.log.2"}), (replaced, {"app.log.1", "app.log.2"})])
def test_renamed_while_it_is_sent(s3once, s3, s3_wire, bucket, marks, tmp_path, change, left):
    """It is uploaded and stays under its new name, and what has its old name is not touched. The next run removes both."""
    tree = make_tree(tmp_path / "tree", {"app.log.1": 24 * MIB})
    rule = s3_wire.add(hold_unread, "PutObject", nth=1)
    running = s3once.start("push", tree, f"s3://{bucket}/p", "--rotated", "--delete-after", "--part-size", "25MiB", "--json")
    assert rule.reached.wait(60), running.output()
    change(tree)
    rule.released.set()
    run = running.wait()
    assert run.code == 0 and counts(run, *REMOVING) == {"uploaded": 1, "kept": 1}, run
    assert "its name is gone, or is another file's" in told(run, "kept")[0]["text"] and names(tree) == left
    run = removing(s3once, tree, bucket)
    assert run.code == 0 and counts(run, "removed") == {"removed": len(left)} and names(tree) == set(), run
    assert len(stored(s3, bucket)) == len(left)


@sqlite
@pytest.mark.parametrize("options", [["--rotated"], []], ids=["rotated", "plain"])
def test_removed_by_another_uploader_meanwhile(s3once, s3, s3_wire, bucket, marks, tmp_path, options):
    """A listed file that is gone by its turn is no error if its mark says done."""
    tree = make_tree(tmp_path / "tree", {"a.log.1": 100, "b.log.2": 100, "c.log.3": 100})
    argv = ["push", tree, f"s3://{bucket}/p", *options, "--concurrency", "1", "--json"]
    rule = s3_wire.add(hold_unread, "PutObject", nth=1)
    running = s3once.start(*argv)
    assert rule.reached.wait(60), running.output()
    other = s3once(*argv, "--delete-after", "--no-wait")
    assert other.code == 4 and counts(other, "uploaded", "removed", "held") == {"uploaded": 2, "removed": 2, "held": 1}, other
    rule.released.set()
    run = running.wait()
    assert run.code == 0 and counts(run, *REMOVING) == {"uploaded": 1, "skipped": 2}, run
    assert len(names(tree)) == 1 and len(s3.objects(bucket)) == 3


@sqlite
def test_moved_to_the_name_of_its_object(s3once, s3, bucket, marks, tmp_path):
    """The numbers of logs come again every night: what is moved has the name that its object has below the prefix."""
    tree, moved = make_tree(tmp_path / "tree", {"web/app.log": 1}), tmp_path / "moved"
    moved.mkdir()
    for night in range(2):
        make_tree(tree, {"web/app.log.1": 100 + night})
        if night:
            subprocess.run(["gzip", "web/app.log.1"], cwd=tree, check=True)
        run = push(s3once, tree, bucket, "--move-to", moved)
        assert run.code == 0 and counts(run, *REMOVING) == {"uploaded": 1, "moved": 1}, run
    assert names(tree) == {"web/app.log"}
    assert {f"p/{name}" for name in names(moved)} == s3.objects(bucket).keys()
    assert all((moved / key.removeprefix("p/")).read_bytes() == s3.get(bucket, key) for key in s3.objects(bucket))


@sqlite
def test_moved_with_the_suffix_of_its_own(s3once, s3, bucket, marks, tmp_path):
    """A plain log that is compressed on the way stays plain, and so does its name."""
    tree, moved = make_tree(tmp_path / "tree", {"app.log.1": 100, "app.log.2": 200}), tmp_path / "moved"
    moved.mkdir()
    plain = (tree / "app.log.1").read_bytes()
    subprocess.run(["gzip", "app.log.2"], cwd=tree, check=True)
    run = push(s3once, tree, bucket, "--compress", "gzip", "--move-to", moved)
    assert run.code == 0 and counts(run, *REMOVING) == {"uploaded": 2, "moved": 2}, run
    first, second = sorted(names(moved), key=lambda name: name.endswith(".gz"))
    assert first.endswith(".log") and (moved / first).read_bytes() == plain and second.endswith(".log.gz"), names(moved)
    assert s3.objects(bucket).keys() == {f"p/{first}.gz", f"p/{second}"}


@sqlite
def test_dry_run_lists(s3once, bucket, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", {"app.log.1": 10, "app.log.2": 20})
    assert counts(push(s3once, tree, bucket)) == {"uploaded": 2}
    run = removing(s3once, tree, bucket, "--dry-run")
    assert run.code == 0 and counts(run, "removable", "removed") == {"removable": 2}, run
    assert names(tree) == {"app.log.1", "app.log.2"}


@sqlite
@pytest.mark.full
@pytest.mark.parametrize("way", ["remove", "move"])
def test_killed_at_each_call_that_changes_the_folder(s3once, s3, bucket, marks, tmp_path, way):
    """Like the test of this name in test_delete_after.py, with logs that are renamed and compressed in between."""
    library = preload_library()
    tree, moved = tmp_path / "tree", tmp_path / "moved"
    moved.mkdir()
    options = ["--move-to", moved] if way == "move" else ["--delete-after"]
    killed, nth, want = True, 0, set()
    while killed:
        nth += 1
        make_tree(tree, {"d/app.log.1": 100 + nth, "d/app.log.2": 300 + nth})
        want |= {path.read_bytes() for path in tree.rglob("app.log.?")}
        env = preloaded(s3once, library, S3ONCE_TEST_KILLED_AT=nth)
        running = s3once.start("push", tree, f"s3://{bucket}/p", "--rotated", *options, "--concurrency", "1", env=env)
        killed = running.popen.wait(60) < 0
        for path in list((tree / "d").glob("app.log.1")):
            subprocess.run(["gzip", path], check=True)
        run = push(s3once, tree, bucket, *options)
        assert run.code == 0 and names(tree) == set(), (nth, run)
        assert not (tree / "d" / ".s3once-removing").exists() and nth < 30
    assert nth > 4
    objects = stored(s3, bucket)
    assert set(objects.values()) == want and len(objects) == len(want)
    assert way == "remove" or len(names(moved)) == len(want)


# --- proven


@pytest.mark.parametrize("marks", ["dynamodb", "sqlite"], indirect=True)
def test_proven(s3once, s3, bucket, marks, tmp_path):
    """Under any name and compression. A live log does not count, since these options do not upload it."""
    tree = make_tree(tmp_path / "tree", {"app.log": 5, "app.log.1": 1000, "app.log.2": 500, "d/app.log.1": 70})
    subprocess.run(["gzip", "app.log.2"], cwd=tree, check=True)
    assert counts(push(s3once, tree, bucket)) == {"uploaded": 3, "waiting": 1}
    subprocess.run(["sh", "-c", "gunzip app.log.2.gz && xz app.log.2 && mv app.log.1 app.log.3 && gzip app.log.3"], cwd=tree, check=True)
    run = proven(s3once, tree, bucket, "app.log.3.gz", "app.log.2.xz", "d/app.log.1")
    assert run.code == 0 and {line.split(" -> ")[1] for line in run.out.splitlines()} == {f"s3://{bucket}/{key}" for key in s3.objects(bucket)}, run
    make_tree(tree, {"app.log.4": 8})
    run = proven(s3once, tree, bucket, "app.log.3.gz", "app.log.4")
    assert run.code == 1 and "app.log.4" in run.out and "no upload of it is marked as done" in run.out, run
    for name in ("app.log", "app.log.1.tmp", "missing.1"):
        run = proven(s3once, tree, bucket, name)
        assert run.code == 3 and name in run.err, run


@sqlite
def test_a_live_log_has_no_key_yet(s3once, bucket, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", {"app.log": 10})
    assert s3once("push", make_tree(tmp_path / "other", {"a": 1}), f"s3://{bucket}/other").code == 0  # so that there are marks
    run = s3once("proven", "--rotated", "--key", "{family}-{id:8}", tree, f"s3://{bucket}/p")
    assert run.code == 1 and f"not in S3: {tree}/app.log: has no key yet, since it is younger than --min-age, or a log" in run.out, run


@sqlite
def test_proven_asks_s3_and_reads_the_file(s3once, s3, bucket, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", {"app.log.1": 1000, "app.log.2": 500, "app.log.3": 500})
    assert counts(push(s3once, tree, bucket)) == {"uploaded": 3}
    before = marks_of(marks)
    key = next(key for key, body in stored(s3, bucket).items() if len(body) == 1000)
    s3.client.delete_object(Bucket=bucket, Key=key)
    run = proven(s3once, tree, bucket, "app.log.1")
    assert run.code == 1 and "does not hold its object any more" in run.out, run
    status = (tree / "app.log.2").stat()
    (tree / "app.log.2").write_bytes(b"x" * 500)
    os.utime(tree / "app.log.2", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert proven(s3once, tree, bucket, "app.log.2").code == 1
    with open(tree / "app.log.3", "ab") as log:
        log.write(b"a line that came late")
    assert proven(s3once, tree, bucket, "app.log.3").code == 1
    assert marks_of(marks) == before


@sqlite
@pytest.mark.parametrize(
    "outage, options",
    [(2, []), (4, ["dateext"]), (4, ["dateext", "compress"]), (4, ["dateext", "compress", "delaycompress"])],
    ids=["numeric", "dateext", "compress", "delaycompress"],
)
def test_preremove_of_logrotate(s3once, s3, bucket, marks, tmp_path, outage, options):
    """The page's script: what was uploaded goes, and what was not stays until then, once, compressed or not."""
    logs, job, config = tmp_path / "logs", tmp_path / "app.conf", tmp_path / "logrotate.conf"
    logs.mkdir()
    job.write_text(f"source = {logs}\ntarget = s3://{bucket}/p\nrotated = yes\n")
    (script,) = re.findall(r"\tpreremove\n(.*?)\tendscript\n", PAGE.read_text(), re.S)
    asks = script.replace("s3once ", f"{s3once.binary()} ").replace("--job nginx", f"--job {job}")
    assert str(job) in asks, script
    body = "".join(f"\t{option}\n" for option in ["rotate 1", "su root root", "create", *options])
    config.write_text(f"{logs}/app.log {{\n{body}\tpreremove\n\t\tunset LD_PRELOAD\n{asks}\tendscript\n}}\n")
    environment = {**os.environ, **s3once.environment, "NO_FAKE_STAT": "1"}

    def night(day):
        with open(logs / "app.log", "ab") as log:
            log.write(b"written on day %d\n" % day)
        argv = ["faketime", "-f", f"+{day}d", LOGROTATE, "-f", "-s", tmp_path / "logrotate.state", config]
        subprocess.run(argv, check=False, capture_output=True, env=environment, timeout=60)

    def written(*days):
        return [b"written on day %d" % day for day in days]

    def lines(bodies):
        return sorted(line for body in bodies for line in body.splitlines())

    def on_disk():
        return lines(plain(path.name.partition("-20")[0] + path.suffix, path.read_bytes()) for path in logs.iterdir())

    for day in range(3):
        night(day)
        assert s3once("run", job).code == 0
    assert on_disk() == written(2), "what was uploaded was not removed"
    back = 3 + outage
    for day in range(3, back):
        night(day)
    assert not list(logs.glob("*.backup")), "logrotate compressed a log again"
    assert on_disk() == written(*range(3, back)), "what was not uploaded was removed"
    assert s3once("run", job).code == 0
    night(back)
    begun = back if not options else back - 2  # with dateext, the log goes on while an older one is refused
    assert on_disk() == written(*range(begun, back + 1)), "what was uploaded after the outage was not removed"
    assert len(list(logs.glob("app.log?*"))) == 1
    assert s3once("run", job).code == 0
    assert lines(stored(s3, bucket).values()) == written(*range(back + 1))
