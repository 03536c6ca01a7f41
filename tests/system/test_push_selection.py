"""Which files a push takes, and under which keys."""

import os
import re
import subprocess
import time

import pytest

from tests.faults import faults
from tests.system.harness import MIB, make_tree, wait_until
from tests.system.pushing import assert_done, counts, marks_of, summary, told, visible_writes

NAMES = ["a.log", "a.txt", "b/a.log", "b/c/d.txt", "b/c/keep.log", "b.d/x", "tmp/x", "tmp/deep/y.txt", "other/tmp/z"]


def keys_after(s3once, s3, bucket, *arguments, code=0, prefix="p", **how):
    """The keys in the bucket after a push with these options and sources."""
    run = s3once("push", *arguments, f"s3://{bucket}/{prefix}", "--json", **how)
    assert run.code == code, run
    return set(s3.objects(bucket))


@pytest.mark.parametrize(
    "rules, left",
    [
        (["--exclude", "*.log"], {"a.txt", "b/c/d.txt", "b.d/x", "tmp/x", "tmp/deep/y.txt", "other/tmp/z"}),
        (["--exclude", "/a.*"], set(NAMES) - {"a.log", "a.txt"}),
        (["--exclude", "tmp/"], set(NAMES) - {"tmp/x", "tmp/deep/y.txt", "other/tmp/z"}),
        (["--exclude", "/tmp/"], set(NAMES) - {"tmp/x", "tmp/deep/y.txt"}),
        (["--exclude", "tmp"], set(NAMES) - {"tmp/x", "tmp/deep/y.txt", "other/tmp/z"}),  # as in gitignore
        (["--exclude", "/tmp"], set(NAMES) - {"tmp/x", "tmp/deep/y.txt"}),
        (["--exclude", "tmp/*"], set(NAMES) - {"tmp/x", "tmp/deep/y.txt", "other/tmp/z"}),
        (["--exclude", "tmp", "--include", "/tmp/deep"], set(NAMES) - {"tmp/x", "other/tmp/z"}),
        (["--include", "tmp"], {"tmp/x", "tmp/deep/y.txt", "other/tmp/z"}),
        (["--include", "b", "--exclude", "c"], {"b/a.log"}),
        (["--exclude", "/b/*"], set(NAMES) - {"b/a.log", "b/c/d.txt", "b/c/keep.log"}),
        (["--exclude", "/b/*", "--include", "/b/*/"], set(NAMES) - {"b/a.log"}),
        (["--exclude", "/b/**"], set(NAMES) - {"b/a.log", "b/c/d.txt", "b/c/keep.log"}),
        (["--exclude", "/b/*.log"], set(NAMES) - {"b/a.log"}),
        (["--exclude", "/b/**.log"], set(NAMES) - {"b/a.log", "b/c/keep.log"}),
        (["--include", "*.txt"], {"a.txt", "b/c/d.txt", "tmp/deep/y.txt"}),
        (["--exclude", "*.log", "--include", "keep.log"], set(NAMES) - {"a.log", "b/a.log"}),
        (["--include", "*.log", "--exclude", "keep.log"], {"a.log", "b/a.log"}),
        (["--exclude", "no such name"], set(NAMES)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_filters(s3once, s3, bucket, tmp_path, rules, left):
    tree = make_tree(tmp_path / "tree", dict.fromkeys(NAMES, 3))
    assert keys_after(s3once, s3, bucket, *rules, tree) == {f"p/{name}" for name in left}


def test_excluded_files_are_counted_and_named(s3once, s3, bucket, tmp_path):
    """A folder that they leave out whole counts as one."""
    tree = make_tree(tmp_path / "tree", dict.fromkeys(["a.log", "a.tmp", ".git/x/y", ".git/z", "d/b.tmp"], 3))
    rules = ("--exclude", ".git", "--exclude", "*.tmp")
    run = s3once("push", *rules, tree, f"s3://{bucket}/p", "-v")
    assert run.code == 0 and "left out by --exclude or --include 3\n" in run.out, run
    named = [line.split("--include: ")[1] for line in run.out.splitlines() if "left out by --exclude or --include: " in line]
    assert named == [f"{tree}/.git/", f"{tree}/a.tmp", f"{tree}/d/b.tmp"], run
    for more in ([], ["--rotated"], ["--key", "p/{name}"], ["--dry-run"]):
        run = s3once("push", *rules, tree, f"s3://{bucket}/q", "--json", "-v", *more)
        assert run.code == 0 and summary(run)["excluded"] == len(told(run, "excluded")) == 3, run
    one = s3once("push", *rules, tree / "a.tmp", tree / "a.log", f"s3://{bucket}/p", "--json")
    assert one.code == 0 and (summary(one)["excluded"], summary(one)["files"]) == (1, 1), one


PATTERNS = """# what is made anew
   *.txt \r
; and more

/b/c/
[x-z]
\\#*
"""


@pytest.mark.parametrize(
    "rules, left",
    [
        (["--exclude-from"], {"a.log", "b/a.log"}),
        (["--include", "d.txt", "--exclude-from"], set()),
        (["--exclude-from", "--include", "keep.log"], {"a.log", "b/a.log", "b/c/keep.log"}),
        (["--exclude-from", "--include", "*", "--exclude", "b/"], {"a.log", "a.txt", "tmp/x", "tmp/deep/y.txt", "other/tmp/z", "b.d/x", "#1"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_exclude_from(s3once, s3, bucket, tmp_path, rules, left):
    """The patterns of the file stand where the option does: the last one that matches wins."""
    tree = make_tree(tmp_path / "tree", dict.fromkeys([*NAMES, "#1"], 3))
    (tmp_path / "patterns").write_bytes(PATTERNS.encode())
    at = rules.index("--exclude-from") + 1
    assert keys_after(s3once, s3, bucket, *rules[:at], tmp_path / "patterns", *rules[at:], tree) == {f"p/{name}" for name in left}


def test_exclude_from_a_file_without_patterns(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", dict.fromkeys(NAMES, 3))
    for text in ("", "# nothing\n"):
        (tmp_path / "patterns").write_text(text)
        assert keys_after(s3once, s3, bucket, "--exclude-from", tmp_path / "patterns", tree) == {f"p/{name}" for name in NAMES}
    (tmp_path / "patterns").write_text("*.none\n*.never\n")
    run = s3once("push", "--exclude-from", tmp_path / "patterns", tree, f"s3://{bucket}/p")
    assert run.code == 0 and run.err.count(f"note: --exclude-from {tmp_path}/patterns matches nothing: check the patterns") == 1, run


def test_exclude_from_a_file_of_windows(s3once, s3, bucket, tmp_path):
    """A byte order mark is no part of the first pattern, and a carriage return no part of any."""
    tree = make_tree(tmp_path / "tree", dict.fromkeys(("secret", "other", "kept"), 3))
    (tmp_path / "patterns").write_bytes(b"\xef\xbb\xbfsecret\r\nother\r\n")
    assert keys_after(s3once, s3, bucket, "--exclude-from", tmp_path / "patterns", tree) == {"p/kept"}


@pytest.mark.parametrize(
    "text, said",
    [
        (None, "the patterns in {} cannot be read: No such file or directory"),
        (b"*.tmp\n\n[a\n", "{}:3: the pattern is empty or has an unclosed ["),
        (b"/\n", "{}:1: the pattern is empty or has an unclosed ["),
        (b"*.tmp\n+ *.log\n", "{}:2: a line has a pattern alone, without ! or + or - before it: what is included has --include"),
        (b"!keep\n", "{}:1: a line has a pattern alone"),
        (b"a\nb\0c\n", "{}:2: there is a NUL byte in it"),
        (b"a\0", "{}:1: there is a NUL byte in it"),
    ],
)
def test_exclude_from_a_wrong_file(s3once, s3, bucket, tmp_path, text, said):
    tree, path = make_tree(tmp_path / "tree", {"a": 1}), tmp_path / "patterns"
    if text is not None:
        path.write_bytes(text)
    run = s3once("push", "--exclude-from", path, tree, f"s3://{bucket}/p")
    assert run.code == 2 and said.format(path) in run.err and not s3.objects(bucket), run
    (tmp_path / "job.conf").write_text(f"source = {tree}\ntarget = s3://{bucket}/p\nexclude-from = {path}\n")
    run = s3once("run", tmp_path / "job.conf")
    assert run.code == 2 and f"{tmp_path}/job.conf:3: exclude-from: {said.format(path)}" in run.err, run


def test_exclude_from_in_a_job(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", dict.fromkeys(NAMES, 3))
    (tmp_path / "patterns").write_text("*.log\n")
    rules = f"exclude-from = {tmp_path}/patterns\ninclude = keep.log\nexclude = b.d/\n"
    (tmp_path / "job.conf").write_text(f"source = {tree}\ntarget = s3://{bucket}/p\n{rules}")
    assert s3once("run", tmp_path / "job.conf").code == 0
    assert set(s3.objects(bucket)) == {f"p/{name}" for name in set(NAMES) - {"a.log", "b/a.log", "b.d/x"}}


def test_pruned_folder_is_not_read(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 1, "secret/b": 1})
    (tree / "secret").chmod(0)
    try:
        how = {"unprivileged": True}
        (tmp_path / "tree").chmod(0o755)
        assert keys_after(s3once, s3, bucket, "--exclude", "secret/", tree, **how) == {"p/a"}
        run = s3once("push", tree, f"s3://{bucket}/p", "--json", **how)
        assert run.code == 1 and "secret" in told(run, "failed")[0]["path"], run
    finally:
        (tree / "secret").chmod(0o755)


def test_min_age(s3once, s3, bucket, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", {"old": 3, "young": 4})
    os.utime(tree / "old", (0, time.time() - 3600))
    command = ("push", tree, f"s3://{bucket}/p", "--min-age", "30m", "--json")
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"uploaded": 1, "waiting": 1}, run
    assert set(s3.objects(bucket)) == {"p/old"} == set(marks_of(marks))
    os.utime(tree / "young", (0, time.time() - 3600))
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"uploaded": 1, "skipped": 1}, run
    assert_done(marks, {"p/old": tree / "old", "p/young": tree / "young"})


def test_min_age_of_a_file_from_the_future(s3once, s3, bucket, marks, tmp_path):
    """Its ctime counts, which no touch can set; it is not hidden until 2099."""
    tree = make_tree(tmp_path / "tree", {"future": 3})
    os.utime(tree / "future", (0, 4_070_908_800))
    command = ("push", tree, f"s3://{bucket}/p", "--json", "--min-age")
    run = s3once(*command, "30m")
    assert run.code == 0 and counts(run) == {"waiting": 1}, run
    wait_until(lambda: time.time() > (tree / "future").stat().st_ctime + 1.1)
    run = s3once(*command, "1s")
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    (warning,) = told(run, "warning")
    assert f"{tree}/future was last modified in the future (2099-01-01T00:00:00Z)" in warning["text"]
    run = s3once("push", tree, f"s3://{bucket}/p", "--json")
    assert not told(run, "warning") and counts(run) == {"skipped": 1}, "without --min-age the time does not matter"


def test_patterns_that_match_nothing(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a.log": 1, "b.tmp": 2, "cache/c": 3})
    rules = ["--exclude", "*.tmp", "--exclude", "cache/", "--exclude", "*.bak", "--exclude", "*.log.?z"]
    run = s3once("push", tree, f"s3://{bucket}", *rules)
    assert run.code == 0 and set(s3.objects(bucket)) == {"a.log"}, run
    notes = [line for line in run.err.splitlines() if "matches nothing" in line]
    assert notes == [f"s3once: note: --exclude {pattern} matches nothing: check the pattern" for pattern in ("*.bak", "*.log.?z")]
    assert "matches nothing" not in s3once("push", "-q", tree, f"s3://{bucket}", *rules).err
    run = s3once("push", "-q", tree, f"s3://{bucket}", "--include", "*.log", "--include", "*.lgo")
    assert run.code == 0 and "warning: --include *.lgo matches nothing" in run.err and "*.log " not in run.err, run


def test_an_empty_source_is_a_warning(s3once, s3, bucket, tmp_path):
    (tmp_path / "empty").mkdir()
    tree = make_tree(tmp_path / "tree", {"a": 1})
    run = s3once("push", tmp_path / "empty", tree, f"s3://{bucket}")
    assert run.code == 0 and f"warning: there are no files in {tmp_path}/empty\n" in run.err and "in {tree}" not in run.err, run
    run = s3once("push", tree, f"s3://{bucket}", "--include", "*.log")
    assert f"warning: there are no files in {tree} but those that --exclude and --include leave out" in run.err, run
    run = s3once("push", "--exclude", "*.part", tmp_path / "empty", f"s3://{bucket}")
    assert f"warning: there are no files in {tmp_path}/empty\n" in run.err and "matches nothing" not in run.err, run  # a disk that is not mounted, perhaps


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount another /etc/fstab")
def test_an_empty_source_that_is_not_mounted_fails(s3once, s3, bucket, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    (tmp_path / "fstab").write_text(f"tmpfs {disk} tmpfs noauto 0 0\n")
    script = f'touch /etc/fstab && mount --bind {tmp_path}/fstab /etc/fstab && %s && exec "$@"'

    def push(prepare="true"):
        return s3once("push", disk, f"s3://{bucket}", wrap=("unshare", "--mount", "sh", "-c", script % prepare, "sh"))

    run = push()
    assert run.code == 1 and f"error: {disk}: there are no files in it, and {disk} of /etc/fstab is not mounted: mount it\n" in run.err, run
    run = push(f"mount {disk}")
    assert run.code == 0 and f"warning: there are no files in {disk}\n" in run.err, "it is mounted, and empty"
    run = push(f"mount {disk} && touch {disk}/a")
    assert run.code == 0 and set(s3.objects(bucket)) == {"a"}, run
    make_tree(disk, {"b": 1})
    assert push().code == 0 and set(s3.objects(bucket)) == {"a", "b"}, "its files are there, whatever fstab says"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount another /etc/fstab")
def test_an_empty_folder_that_is_not_mounted_fails(s3once, s3, bucket, tmp_path):
    """The SOURCE has other files, which are uploaded all the same."""
    tree = make_tree(tmp_path / "tree", {"a": 1})
    disk = tree / "disk"
    for folder in (disk, tree / "empty"):
        folder.mkdir()
    (tmp_path / "fstab").write_text(f"tmpfs {disk} tmpfs defaults 0 0\n")
    script = f'touch /etc/fstab && mount --bind {tmp_path}/fstab /etc/fstab && %s && exec "$@"'

    def push(*options, prepare="true"):
        return s3once("push", *options, tree, f"s3://{bucket}", wrap=("unshare", "--mount", "sh", "-c", script % prepare, "sh"))

    run = push()
    assert run.code == 1 and f"error: {disk}: it is empty, and its file system in /etc/fstab is not mounted: mount it, or exclude the folder\n" in run.err, run
    assert run.err.count("error: ") == 1 and set(s3.objects(bucket)) == {"a"}, "the folder without a disk is no error"
    for options in (("--exclude", "disk/"), ("--one-file-system",)):
        run = push(*options)
        assert run.code == 0 and "fstab" not in run.err, run
    assert push(prepare=f"mount {disk}").code == 0, "it is mounted, and empty"
    assert push(prepare=f"mount {disk} && touch {disk}/b").code == 0 and set(s3.objects(bucket)) == {"a", "disk/b"}
    make_tree(disk, {"c": 1})
    assert push().code == 0 and set(s3.objects(bucket)) == {"a", "disk/b", "disk/c"}, "its files are there, whatever fstab says"


def test_an_empty_list_is_a_note(s3once, s3, bucket, tmp_path):
    """The list is empty, not the SOURCE. That is so on each night without new files, so --quiet is silent."""
    tree = make_tree(tmp_path / "tree", {"a": 1})
    command = ("push", "--files-from", "-", tree, f"s3://{bucket}")
    run = s3once(*command, stdin=b"\n")
    assert run.code == 0 and "note: --files-from - names no files\n" in run.err and "no files in" not in run.err, run
    run = s3once(*command, "--quiet", stdin=b"")
    assert (run.code, run.out, run.err) == (0, "", ""), run


def test_written_to_after_the_scan(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """A file waits for its turn, and is young again by then."""
    tree = make_tree(tmp_path / "tree", {"log": 100})
    os.utime(tree / "log", (0, 1))
    rule = s3_wire.add(faults.hold_request, "HeadBucket")  # before the first file is opened again
    run = s3once.start("push", tree, f"s3://{bucket}/p", "--min-age", "1h", "--json")
    assert rule.reached.wait(60)
    with open(tree / "log", "ab") as file:
        file.write(b"half a li")
    rule.released.set()
    run = run.wait()
    assert run.code == 0 and counts(run) == {"waiting": 1}, run
    assert not s3.objects(bucket)


def test_max_size(s3once, s3, bucket, marks, tmp_path):
    """Left out, counted and said; the time left is that of the others."""
    tree = make_tree(tmp_path / "tree", {"small": 3000, "exactly": 4096, "large": 4097})
    with open(tree / "sparse", "wb") as sparse:
        os.truncate(sparse.fileno(), 1 << 40)
    command = ("push", tree, f"s3://{bucket}/p", "--max-size", "4KiB")
    run = s3once(*command, "--json", "-v")
    assert run.code == 0 and counts(run) == {"uploaded": 2, "oversized": 2}, run
    assert summary(run)["bytes_found"] == summary(run)["bytes_settled"] == 7096
    assert {(each["path"], each["bytes"]) for each in told(run, "oversized")} == {
        (f"{tree}/large", 4097),
        (f"{tree}/sparse", 1 << 40),
    }
    run = s3once(*command)
    assert run.code == 0 and "larger than --max-size 2" in run.out and "2 files" in run.out and "sparse" not in run.out, run
    run = s3once(*command, "--min-size", "4000", "-v")
    for line in ("larger than --max-size: {}/large", "larger than --max-size: {}/sparse", "smaller than --min-size: {}/small"):
        assert f"skipped, {line.format(tree)} -> s3://{bucket}/p/" in run.out, run
    assert set(s3.objects(bucket)) == {"p/small", "p/exactly"}


def test_bytes_of_links_and_young_files(s3once, s3, bucket, marks, tmp_path):
    """Files that are settled were found, and count."""
    tree = make_tree(tmp_path / "tree", {"a": MIB, "y": 3})
    for number in range(10):
        (tree / f"b{number}").symlink_to("a")
    for options in ((), ("--min-age", "1h")):
        whole = summary(s3once("push", tree, f"s3://{bucket}/p", "--json", *options))
        assert whole["links"] == 10 and whole["bytes_found"] == whole["bytes_settled"] == MIB + 3, whole


@pytest.mark.parametrize("marks", ["dynamodb", "sqlite"], indirect=True)
def test_dry_run_leaves_the_dead_alone(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """A file that a killed run had is planned, and nobody's row is written to."""
    tree = make_tree(tmp_path / "tree", {"file": 1000})
    command = ("push", tree, f"s3://{bucket}/p", "--json")
    s3_wire.add(faults.kill_before, "PutObject")
    assert s3once(*command).code == -9
    s3_wire.clear()
    before = marks.items()
    run = s3once(*command, "--dry-run")
    assert run.code == 0 and counts(run)["planned"] == 1, run
    assert marks.items() == before


@pytest.mark.parametrize("marks", ["dynamodb", "sqlite"], indirect=True)
def test_dry_run_changes_nothing(s3once, s3, s3_proxy, bucket, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", {"done": 3, "touched": 3, "changed": 3})
    command = ("push", tree, f"s3://{bucket}/p", "--json")
    assert s3once(*command).code == 0
    before, objects = marks.items(), s3.objects(bucket)
    s3_proxy.requests()
    os.utime(tree / "touched", (0, 1))
    make_tree(tree, {"changed": 4, "new": 5, "large": 17 << 20})
    run = s3once(*command, "--dry-run")
    assert run.code == 1 and {"planned": 2, "refused": 1}.items() <= counts(run).items(), run
    assert {event["key"] for event in told(run, "planned")} == {"p/new", "p/large"}
    run = s3once(*command, "--dry-run", "--if-changed=replace")
    assert run.code == 0 and counts(run)["planned"] == 3, run
    assert {request["method"] for request in s3_proxy.requests()} <= {"HEAD", "GET"}
    assert marks.items() == before and s3.objects(bucket) == objects and not s3.uploads(bucket)


@pytest.mark.smoke
def test_links(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"file": 3, "folder/file": 4})
    make_tree(tmp_path / "outside", {"x": 5})
    (tree / "to-file").symlink_to("file")
    (tree / "to-folder").symlink_to(tmp_path / "outside")
    (tree / "folder" / "loop").symlink_to("..")
    (tree / "broken").symlink_to("nowhere")
    run = s3once("push", tree, f"s3://{bucket}/p", "--json")
    assert run.code == 0 and counts(run) == {"uploaded": 2, "links": 4}, run
    run = s3once("push", "--follow", tree, f"s3://{bucket}/f", "--json")
    assert run.code == 1 and {event["path"] for event in told(run, "failed")} == {
        str(tree / "broken"),
        str(tree / "folder" / "loop"),
    }, run
    followed = {"f/file", "f/folder/file", "f/to-file", "f/to-folder/x"}
    assert set(s3.objects(bucket, "f/")) == followed
    assert s3.get(bucket, "f/to-folder/x") == (tmp_path / "outside" / "x").read_bytes()


@pytest.mark.parametrize("options, keys", [((), {"a", "mnt/inner", "z"}), (("--one-file-system",), {"a", "z"}), (("-x",), {"a", "z"})])
def test_other_file_systems(s3once, s3, bucket, tmp_path, options, keys):
    """With the option, a directory where another file system is mounted is left out, counted, and named with -v."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    tree = make_tree(tmp_path / "tree", {"a": 1, "z": 1})
    (tree / "mnt").mkdir()
    inside = f'mount -t tmpfs none {tree}/mnt && echo inner >{tree}/mnt/inner && exec "$@"'
    run = s3once("push", *options, tree, f"s3://{bucket}", "--json", "-v", wrap=["unshare", "--mount", "sh", "-c", inside, "sh"])
    assert run.code == 0 and set(s3.objects(bucket)) == keys, run
    assert [event["text"] for event in told(run, "special")] == (["another file system is mounted there (--one-file-system)"] if options else [])


def test_source_that_is_a_link_is_followed(s3once, s3, bucket, tmp_path):
    make_tree(tmp_path / "tree", {"file": 3})
    (tmp_path / "link").symlink_to("tree")
    (tmp_path / "name").symlink_to("tree/file")
    assert keys_after(s3once, s3, bucket, tmp_path / "link", tmp_path / "name") == {"p/file", "p/name"}
    run = s3once("proven", tmp_path / "name", f"s3://{bucket}/p")
    assert run.code == 0 and run.out == f"in S3: {tmp_path}/name -> s3://{bucket}/p/name\n", run


def test_name_of_a_link(s3once, s3, bucket, tmp_path):
    """Filters and rules go by the name that makes the key, which is the link's, but with --rotated that of the log."""
    make_tree(tmp_path / "tree", {"file.txt": 3, "app.log-20260101.gz": 30})
    (tmp_path / "name").symlink_to("tree/file.txt")
    (tmp_path / "a").symlink_to("tree/app.log-20260101.gz")
    (tmp_path / "rules").write_text('[rule "name"]\ncontent-type = x/link\n[rule "app*"]\ncontent-type = x/log\n')
    names = ["--rules", tmp_path / "rules", "--include", "name", "--include", "app.*"]
    assert keys_after(s3once, s3, bucket, *names, tmp_path / "name", tmp_path / "a") == {"p/name"}
    run = s3once("push", "--rotated", *names, tmp_path / "a", f"s3://{bucket}/r")
    (key,) = s3.objects(bucket, "r/")
    assert run.code == 0 and re.fullmatch(r"r/app-\d{8}T\d{6}Z-[0-9a-f]{8}\.log\.gz", key), run
    assert [s3.client.head_object(Bucket=bucket, Key=each)["ContentType"] for each in ("p/name", key)] == ["x/link", "x/log"]
    assert s3once("proven", "--rotated", tmp_path / "a", f"s3://{bucket}/r").code == 0


def test_only_links(s3once, s3, bucket, tmp_path):
    tree = tmp_path / "tree"
    (tree / "folder").mkdir(parents=True)
    (tree / "folder" / "link").symlink_to("/etc/hostname")
    run = s3once("push", tree, f"s3://{bucket}/p", "--json")
    assert run.code == 1 and counts(run) == {"links": 1} and "--follow" in run.err, run
    assert not s3.objects(bucket)


@pytest.mark.parametrize(
    "slash, prefix, key",
    [("", "p", "p/x"), ("/", "p", "p/x"), ("", "p/", "p/x"), ("", "p//", "p//x"), ("", "", "x"), ("/.", "p", "p/x")]
    + [("", odd, f"{odd}/x") for odd in ("/p", "a/../b", "./c", "..", "p ", "%2F", "a+b", "é")],
)
def test_keys_of_a_folder(s3once, s3, bucket, tmp_path, slash, prefix, key):
    tree = make_tree(tmp_path / "tree", {"x": 3})
    assert keys_after(s3once, s3, bucket, f"{tree}{slash}", prefix=prefix) == {key}


def test_keys_of_files(s3once, s3, bucket, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a/x": 3, "b/y": 4})
    assert keys_after(s3once, s3, bucket, tree / "a" / "x", "b/y", cwd=tree) == {"p/x", "p/y"}
    run = s3once("push", tree / "a" / "x", "--as", "p/ex act%2Fly//this", f"s3://{bucket}", "--json")
    assert run.code == 0 and s3.get(bucket, "p/ex act%2Fly//this") == (tree / "a" / "x").read_bytes(), run
    assert set(marks_of(marks)) == {"p/x", "p/y", "p/ex act%2Fly//this"}
    run = s3once("push", tree / "a", "--as", "key", f"s3://{bucket}", "--json")
    assert run.code not in (0, 1) and "key" not in s3.objects(bucket), run


@pytest.mark.parametrize(
    "given, separator", [("\n", "\n"), ("\0", "\0"), ("\0", "")], ids=["lines", "NUL", "NUL without the last"]
)
def test_files_from(s3once, s3, s3_proxy, bucket, marks, tmp_path, given, separator):
    names = ["b/two", "a", "ab c", "-x", "b/ö"] + (["new\nline"] if given == "\0" else [])
    tree = make_tree(tmp_path / "tree", dict.fromkeys(names + ["not this"], 3))
    wanted = [name for name in names if "\n" not in name]
    text = given.join(wanted) + separator
    (tmp_path / "list").write_text(text)
    run = s3once("push", tree, f"s3://{bucket}/p", "--files-from", tmp_path / "list", "--json")
    assert run.code == 0 and counts(run) == {"uploaded": len(wanted)}, run
    assert set(s3.objects(bucket)) == {f"p/{name}" for name in wanted}
    assert visible_writes(s3_proxy.requests()).total() == len(wanted)
    run = s3once("push", tree, f"s3://{bucket}/p", "--files-from", "-", "--json", stdin=text.encode())
    assert run.code == 0 and counts(run) == {"skipped": len(wanted)}, run


def test_files_from_that_are_not_there(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 3, "folder/b": 3})
    make_tree(tmp_path, {"outside": b"secret"})
    given = b"a\ngone\n../outside\nfolder/../../outside\n"
    run = s3once("push", tree, f"s3://{bucket}/p", "--files-from", "-", "--json", stdin=given)
    assert run.code == 1 and counts(run)["uploaded"] == 1 and counts(run)["failed"] == 3, run
    assert set(s3.objects(bucket)) == {"p/a"}


def test_a_file_that_two_sources_contain(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 3, "b": 3})
    run = s3once("push", tree, tree / "a", f"s3://{bucket}")
    assert run.code == 1 and set(s3.objects(bucket)) == {"b"}, run
    assert f"{tree}/a: two SOURCEs contain this file, with the key a: give only one of them" in run.err, run


def test_files_from_a_list_of_windows(s3once, s3, bucket, tmp_path):
    """The invisible character that makes a path of the list differ from a file's name is shown and named."""
    tree = make_tree(tmp_path / "tree", {"a": 3, "b": 3, "c": 3})
    run = s3once("push", "tree", f"s3://{bucket}/p", "--files-from", "-", stdin=b"\xef\xbb\xbfa\nb\r\nc\n", cwd=tmp_path)
    assert run.code == 1 and set(s3.objects(bucket)) == {"p/c"}, run
    assert r"tree/\xef\xbb\xbfa: does not exist; the line in the list begins with a byte order mark, remove it" in run.err, run
    assert r"tree/b\x0d: does not exist; the line in the list ends with a carriage return, remove it" in run.err, run


def test_files_from_are_named_one_by_one(s3once, s3, bucket, tmp_path):
    """A path that leads out is shown as it is, and the next one below the SOURCE again."""
    tree = make_tree(tmp_path / "tree", {"a": 3, "long/name": 3})
    run = s3once("push", "tree", f"s3://{bucket}", "--files-from", "-", "--json", stdin=b"/etc/passwd\na\nlong/name\n", cwd=tmp_path)
    assert run.code == 1 and [event["path"] for event in told(run, "failed")] == ["/etc/passwd"], run
    assert {event["path"] for event in told(run, "uploaded")} == {"tree/a", "tree/long/name"}, run


def test_marks_that_lie_in_the_tree(s3once, s3, bucket, tmp_path):
    """They are skipped unopened: closing them would drop SQLite's locks, and another run would damage them."""
    tree = make_tree(tmp_path / "tree", {"a": 3, "state/other": 3})
    (tree / "state").chmod(0o700)
    place = f"--marks=sqlite:{tree}/state/m.db"
    for _ in range(2):
        run = s3once("push", place, tree, f"s3://{bucket}", "--json")
        assert run.code == 0 and counts(run)["special"] == 3, run
        assert f"3 files of s3once itself are left out (marks, state, log), such as {tree}/state/m.db" in run.out, run
    os.link(tree / "state" / "m.db", tree / "b")
    run = s3once("push", "-v", place, tree, f"s3://{bucket}", "--exclude", "m.db*")
    assert run.code == 0 and f"1 file of s3once itself is left out (marks, state, log): {tree}/b" in run.err, run
    run = s3once("push", place, tree / "state" / "m.db", f"s3://{bucket}")
    assert run.code == 1 and f"{tree}/state/m.db: is a file of s3once itself; exclude it" in run.err, run
    assert set(s3.objects(bucket)) == {"a", "state/other"}


@pytest.mark.parametrize("options", [(), ("--rotated",)], ids=["names", "rotated"])
def test_a_home_with_the_state_of_s3once(s3once, s3, bucket, tmp_path, options):
    """Nothing of the state is uploaded, and the home is proven to be in S3; a file that only has such a name is uploaded."""
    home = make_tree(tmp_path / "home", {"a": 3, "mail/sessions": 3, "mail/marks.db": 3})
    for path in ("a", "mail/sessions", "mail/marks.db"):
        os.utime(home / path, (1_600_000_000, 1_600_000_000))
    log = home / "s3once.log"
    environment = {"HOME": str(home), "XDG_STATE_HOME": None}
    command = (*options, "--bwlimit", "100M", home, f"s3://{bucket}/home")
    for _ in range(2):
        run = s3once("push", "--log-file", log, *command, env=environment)
        assert run.code == 0 and " files of s3once itself are left out" in log.read_text(), run
    assert len(s3.objects(bucket)) == (0 if options else 3) and not [key for key in s3.objects(bucket) if "state" in key or "log" in key]
    if not options:
        log.unlink()
        run = s3once("proven", home, f"s3://{bucket}/home", env=environment)
        assert run.code == 0 and f"warning: {home}/.local/state/s3once/marks.db is a file of s3once itself, and not in S3" in run.err, run


@pytest.mark.smoke
def test_sources_are_merged(s3once, s3, bucket, marks, tmp_path):
    """Two files for one key are both refused, whatever order they are named in; the rest goes up."""
    one = make_tree(tmp_path / "one", {"a": 3, "same": 4, "d/x": 5, "d-e": 6})
    two = make_tree(tmp_path / "two", {"b": 7, "same": 8, "d/y": 9})
    three = make_tree(tmp_path, {"c": 10}) / "c"
    for sources in ((one, two, three), (three, two, one)):
        run = s3once("push", *sources, f"s3://{bucket}/p", "--json")
        failed = told(run, "failed")
        assert run.code == 1 and {event["path"] for event in failed} == {str(one / "same"), str(two / "same")}, run
        assert {event["key"] for event in failed} == {"p/same"}
    expected = {"p/a": one / "a", "p/b": two / "b", "p/c": three, "p/d/x": one / "d/x", "p/d/y": two / "d/y", "p/d-e": one / "d-e"}
    assert {key: s3.get(bucket, key) for key in s3.objects(bucket)} == {
        key: path.read_bytes() for key, path in expected.items()
    }
    assert_done(marks, expected)


def test_times(s3once, s3, bucket, marks, tmp_path):
    """Before 1970, 1970 itself, and after the year 2262, where nanoseconds no longer fit: a second run knows them all."""
    times = {"0": 0, "-1.5": -1_500_000_000, "-0.000000001": -1, "1.25": 1_250_000_000, "9223372036.854775807": 13_600_000_000 * 10**9}
    tree = make_tree(tmp_path / "tree", {name: len(name) for name in times})
    for name, ns in times.items():
        os.utime(tree / name, ns=(0, ns))
    command = ("push", tree, f"s3://{bucket}/p", "--json")
    run = s3once(*command)
    assert counts(run) == {"uploaded": 5}
    (warning,) = told(run, "warning")
    assert f"{tree}/9223372036.854775807 was last modified after the year 2262; all such times count as one" in warning["text"], run
    assert {key: row.metadata["mtime"] for key, row in s3.objects(bucket, metadata=True).items()} == {
        f"p/{name}": name for name in times
    }
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"skipped": 5}, run


def test_sum_of_all_fates(s3once, s3, bucket, marks, tmp_path):
    """Every entry of a tree is accounted for."""
    tree = make_tree(tmp_path / "tree", {"done": 3, "touched": 3, "changed": 3})
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    s3.client.put_object(Bucket=bucket, Key="p/there", Body=b"there")
    s3.client.put_object(Bucket=bucket, Key="p/foreign", Body=b"foreign")
    make_tree(tree, {"changed": 4, "new": 5, "there": b"there", "foreign": b"other", b"\xff": 2})
    make_tree(tree, {"young": 1})
    for path in tree.rglob("*"):
        if path.name != "young" and path.name != "done":
            os.utime(path, (0, time.time() - 3600 + path.stat().st_mtime % 1))
    os.utime(tree / "done", ns=(0, int(marks_of(marks)["p/done"]["mtime"])))
    (tree / "link").symlink_to("new")
    os.mkfifo(tree / "pipe")
    run = s3once("push", tree, f"s3://{bucket}/p", "--json", "-vv")
    fates = {"uploaded": 1, "adopted": 1, "refreshed": 1, "skipped": 1, "refused": 1, "failed": 2, "links": 1, "special": 1}
    assert run.code == 1 and counts(run) == fates | {"uploaded": 2}, run
    assert summary(run)["files"] == 10 == sum(counts(run).values())
    assert {event["path"] for event in told(run, "failed")} >= {str(tree / "foreign")}
