"""Keys made of a template: what each field is, and that a file has one key, whoever makes it and whatever was lost."""

import bz2
import gzip
import hashlib
import os
import signal
import socket
import subprocess
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

import pytest

from tests.system.harness import MIB, content, make_tree
from tests.system.pushing import assert_done, counts, marks_of, told, visible_writes
from tests.system.test_push_changes import LARGE, grows, hold_unread, shown

NIGHT = 1774746000  # 2026-03-29T01:00:00Z, when summer time begins in Berlin


def dated_tree(root, files):
    """Each file was modified an hour after the one before."""
    tree = make_tree(root, files)
    for i, name in enumerate(files):
        os.utime(tree / name, (NIGHT + 3600 * i, NIGHT + 3600 * i))
    return tree


LOGS = {"web/app.log.1": 300, "web/app.log.2.gz": gzip.compress(b"two\n"), "db/app.log.1": 200, "notes": b"", "a b/é.txt": 5}


def host():
    return socket.gethostname().split(".")[0]


def content_id(path):
    data = path.read_bytes()
    return hashlib.sha256(gzip.decompress(data) if path.suffix == ".gz" else data).hexdigest()


def at(path, zone=timezone.utc):
    return datetime.fromtimestamp(path.stat().st_mtime, zone)


@pytest.mark.parametrize(
    "template, key",
    [
        ("{path}", lambda path, name: name),
        ("{dir}{name}", lambda path, name: name),
        ("{dir}{stem}{ext}", lambda path, name: name),
        ("{ext}/{path}", lambda path, name: f"{path.suffix or '?'}/{name}"),
        ("by/{family}/{path}", lambda path, name: f"by/{'app.log' if 'app' in name else path.name}/{name}"),
        ("{host}/{mtime:%Y/%m/%d/%H}/{name}", lambda path, name: f"{host()}/{at(path):%Y/%m/%d/%H}/{path.name}"),
        ("{id}", lambda path, name: content_id(path)),
        ("{id:8}-{stem}{{}}", lambda path, name: f"{content_id(path)[:8]}-{path.stem}{{}}"),
        ("{env:SITE}/{mtime:%s}-{name}", lambda path, name: f"east/{int(path.stat().st_mtime)}-{path.name}"),
    ],
)
def test_fields(s3once, s3, s3_proxy, bucket, marks, tmp_path, template, key):
    tree = dated_tree(tmp_path / "tree", LOGS)
    if template == "{ext}/{path}":
        (tree / "notes").unlink()  # it has none, so that its key would begin with a slash
    paths = {"p/" + key(tree / name, name): tree / name for name in LOGS if (tree / name).exists()}
    assert len(paths) == len([name for name in LOGS if (tree / name).exists()])
    command = ("push", "--key", template, tree, f"s3://{bucket}/p", "--json", "-v")
    run = s3once(*command, env={"SITE": "east"})
    assert run.code == 0 and counts(run) == {"uploaded": len(paths)}, run
    assert s3.objects(bucket).keys() == paths.keys()
    for name, path in paths.items():
        assert s3.get(bucket, name) == path.read_bytes(), name
    assert_done(marks, paths)
    s3_proxy.requests()
    again = s3once(*command, env={"SITE": "east"})
    assert again.code == 0 and counts(again) == {"skipped": len(paths)}, again
    assert len(s3_proxy.requests()) == 1, "whether the bucket is the one that the marks are about"


def test_time_zone(s3once, s3, bucket, marks, tmp_path):
    """Also that the process's own TZ has no part in it."""
    tree = dated_tree(tmp_path / "tree", {name: 10 for name in "abc"})
    os.utime(tree / "a", (NIGHT - 1, NIGHT - 1))
    for zone in ("Europe/Berlin", "Asia/Kathmandu", "America/St_Johns"):
        for tz in ("Asia/Tokyo", None):
            run = s3once("push", "--key", "{mtime:%Y%m%dT%H%M%S%z}-{name}", "--time-zone", zone, tree, f"s3://{bucket}/{zone}", "--json", env={"TZ": tz})
            assert run.code == 0, run
        expected = {f"{zone}/{at(tree / name, ZoneInfo(zone)):%Y%m%dT%H%M%S%z}-{name}" for name in "abc"}
        assert s3.objects(bucket, zone).keys() == expected


def test_full_name_of_the_host(s3once, s3, bucket, marks, tmp_path):
    full = subprocess.run(["hostname", "-f"], capture_output=True, text=True, check=False).stdout.strip()
    tree = make_tree(tmp_path / "tree", {"a": 1})
    run = s3once("push", "--key", "{fqdn}/{name}", tree, f"s3://{bucket}", "--json")
    if "." in full:
        assert run.code == 0 and s3.objects(bucket).keys() == {f"{full}/a"}
    else:
        assert run.code == 3 and "the full name of this host" in told(run, "fatal")[0]["text"], run
        assert not s3.objects(bucket)


def test_lost_marks_find_the_same_keys(s3once, s3, s3_proxy, bucket, marks, tmp_path):
    tree = dated_tree(tmp_path / "tree", {**LOGS, "large": 11 * MIB})
    command = ("push", "--key", "{mtime:%Y%m%d}/{id:8}-{name}", tree, f"s3://{bucket}/p", "--part-size", "5MiB", "--json")
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"uploaded": 6}, run
    before = s3.objects(bucket)
    s3_proxy.requests()
    other = tmp_path / "other"
    other.mkdir()
    again = s3once(*command, "--marks", f"sqlite:{other}/marks.db")
    assert again.code == 0 and counts(again) == {"adopted": 6}, again
    assert not visible_writes(s3_proxy.requests())
    assert s3.objects(bucket).keys() == before.keys()


@pytest.mark.parametrize("marks", ["dynamodb", "sqlite"], indirect=True)
def test_two_uploaders(s3once, s3, s3_proxy, bucket, marks, tmp_path):
    """Killed once, two that go on at the same time: each key is written once."""
    tree = dated_tree(tmp_path / "tree", {f"d{i % 7}/f{i}.log.{i % 5}": 100 + i for i in range(120)} | {"large": 11 * MIB})
    command = ("push", "--key", "{family}/{mtime:%Y/%m/%d}/{id:16}-{name}", tree, f"s3://{bucket}/p", "--part-size", "5MiB", "--json")
    first = s3once.start(*command)
    first.kill(signal.SIGKILL)
    runs = [s3once.start(*command) for _ in range(2)]
    for run in [run.wait() for run in runs]:
        assert run.code == 0, run
    assert len(s3.objects(bucket)) == 121
    assert set(visible_writes(s3_proxy.requests()).values()) == {1}
    assert {mark["state"] for mark in marks_of(marks).values()} == {"done"}


def test_two_files_with_one_key(s3once, s3, bucket, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", {"1/x": 10, "2/x": 20, "3/y": 30})
    run = s3once("push", "--key", "{name}", tree, f"s3://{bucket}/p", "--json")
    assert run.code == 1 and counts(run) == {"uploaded": 1, "failed": 2}, run
    assert {event["path"] for event in told(run, "failed")} == {str(tree / "1/x"), str(tree / "2/x")}
    for event in told(run, "failed"):
        assert event["key"] == "p/x" and "two files have the key p/x" in event["text"]
        assert "exclude one, or make --key distinguish them" in event["text"]
    assert s3.objects(bucket).keys() == {"p/y"}
    assert marks_of(marks).keys() == {"p/y"}


@pytest.mark.parametrize("template, warns", [("{name}", True), ("{dir}{name}", False)])
def test_a_file_of_another_folder_with_the_key_of_one_that_is_gone(s3once, s3, bucket, tmp_path, template, warns):
    """It looks like a change of the file that was there before. The message says that the object may be the only copy of that one."""
    tree = make_tree(tmp_path / "tree", {"1/x": b"first"})
    assert s3once("push", "--key", template, tree, f"s3://{bucket}").code == 0
    make_tree(tree, {"2/x" if warns else "1/x": b"another"})
    if warns:
        (tree / "1/x").unlink()
    run = s3once("push", "--key", template, tree, f"s3://{bucket}")
    hint = "if a file of another folder had this key, put {path} into the template of --key; --if-changed=replace overwrites"
    assert run.code == 1 and "changed since it was uploaded; " in run.err and (hint in run.err) == warns, run
    assert s3.get(bucket, "x" if warns else "1/x") == b"first"


def test_keys_that_are_none(s3once, s3, bucket, marks, tmp_path):
    long = "n" * 200
    tree = make_tree(tmp_path / "tree", {"a.": 1, "none": 2, f"{'/'.join([long] * 6)}/deep.log": 3, b"\xff.x": 4, "ok.log": 5})
    run = s3once("push", "--key", "{ext}/{name}", tree, f"s3://{bucket}", "--json")
    assert run.code == 1 and counts(run) == {"uploaded": 2, "failed": 3}, run
    assert s3.objects(bucket).keys() == {".log/deep.log", ".log/ok.log"}, "only the key has to be short"
    reasons = {event["path"].rsplit("/", 1)[1]: event["text"] for event in told(run, "failed")}
    assert 'has the part "." or ".."' in reasons["a."]
    assert 'the key "/none" of it, which has an empty part' in reasons["none"]
    assert "not UTF-8" in reasons["\\xff.x"]


def test_dry_run_shows_the_keys(s3once, s3, bucket, marks, tmp_path):
    tree = dated_tree(tmp_path / "tree", {"web/app.log.1": 10})
    run = s3once("push", "-n", "--key", "{family}/{mtime:%Y/%m/%d}-{id:8}{ext}", tree, f"s3://{bucket}/p")
    key = f"p/app.log/2026/03/29-{content_id(tree / 'web/app.log.1')[:8]}.1"
    assert run.code == 0 and f"would upload {tree}/web/app.log.1 -> s3://{bucket}/{key} (10 B)" in run.out, run
    assert not s3.objects(bucket) and not marks_of(marks)


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["--key", "{nmae}"], "--key has no field {nmae}; did you mean {name}?"),
        (["--key", "{now}/{name}"], "--key has no field {now}, because the next run would make another key"),
        (["--key", "{mtime:%i}{name}"], "there is no %i; did you mean %I?"),
        (["--key", "{name"], "the { at character 1 of --key has no }"),
        (["--key", "{env:NOBODY}{name}"], "this variable is not set"),
        (["--key", "{dir}/{name}"], "{dir} of --key ends in a slash already: leave out the one behind it"),
        (["--key", "same"], "all files would have one key"),
        (["--key", "{mtime:%Y}{name}", "--time-zone", "Europe/Berln"], 'there is no time zone "Europe/Berln"'),
        (["--key", "{name}", "--time-zone", "UTC"], "--time-zone is for {mtime:…} in --key and for times of --bwlimit: give one"),
        (["--time-zone", "UTC"], "--time-zone is for {mtime:…} in --key and for times of --bwlimit: give one"),
        (["--key", "{name}", "--as", "k"], "--as names the key of exactly one file"),
    ],
)
def test_refused(s3once, tmp_path, arguments, sentence):
    tree = make_tree(tmp_path / "tree", {"a": 1})
    run = s3once("push", *arguments, tree, "s3://bucket-that-nobody-asks")
    assert run.code == 2 and sentence in run.err, run


def test_with_other_options(s3once, s3, bucket, marks, tmp_path):
    """Rules and lists are about paths, whatever the key; a SOURCE file has a name only."""
    tree = make_tree(tmp_path / "tree", {"a/x.log": 1, "a/y.log": 2, "b/x.log": 3, "b/z.tmp": 4, "c/w.log": 50})
    one = make_tree(tmp_path / "one", {"deep/only.log": 6}) / "deep/only.log"
    (tree / "link").symlink_to("a/x.log")
    key = ("--key", "k/{stem}-{dir}{ext}x")
    run = s3once("push", *key, "--exclude", "*.tmp", "--max-size", "20", tree, one, f"s3://{bucket}/p", "--json", "-v")
    assert run.code == 0 and counts(run) == {"uploaded": 4, "links": 1, "oversized": 1}, run
    assert s3.objects(bucket).keys() == {"p/k/x-a/.logx", "p/k/y-a/.logx", "p/k/x-b/.logx", "p/k/only-.logx"}
    run = s3once("push", "--key", "l-{name}", "--files-from", "-", tree, f"s3://{bucket}/q", "--json", stdin=b"c/w.log\na/y.log\nnone\n")
    assert run.code == 1 and counts(run) == {"uploaded": 2, "failed": 1}, run
    assert s3.objects(bucket, "q").keys() == {"q/l-w.log", "q/l-y.log"}
    run = s3once("push", "--key", "f-{id:4}{name}", "--follow", "--include", "link", tree, f"s3://{bucket}/r", "--json")
    assert run.code == 0 and s3.objects(bucket, "r").keys() == {f"r/f-{content_id(tree / 'a/x.log')[:4]}link"}, run


def test_too_large_files_are_not_read(s3once, s3, bucket, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", {"small": 5})
    with open(tree / "large", "wb") as file:
        file.truncate(1 << 40)
    run = s3once("push", "--key", "{id:8}", "--max-size", "1KiB", tree, f"s3://{bucket}", "--json", "-v", timeout=60)
    assert run.code == 0 and counts(run) == {"uploaded": 1, "oversized": 1}, run


def test_content_is_read_once(s3once, s3, bucket, tmp_path):
    """For {id} a file is read by the first run. After that its inode, size and time say what it contains, whatever its name is."""
    tree = make_tree(tmp_path / "tree", {"a": 1000, "b": 2000})
    for path in tree.iterdir():
        os.utime(path, (1767322800, 1767322800))
    command = ("push", "--key", "{id:10}", tree, f"s3://{bucket}", "--json")
    assert counts(s3once(*command)) == {"uploaded": 2}
    (tree / "a").rename(tree / "c")
    s3once.environment["ASAN_OPTIONS"] = "detect_leaks=0"  # which cannot be while it is traced
    trace = tmp_path / "trace"
    run = s3once(*command, wrap=["strace", "-f", "-y", "-e", "trace=read,pread64,mmap", "-o", str(trace)])
    assert run.code == 0 and counts(run) == {"skipped": 2}, run
    assert f"<{tree}/" not in trace.read_text(errors="replace")
    make_tree(tree, {"b": b"other"})
    assert counts(s3once(*command)) == {"skipped": 1, "uploaded": 1}


@pytest.mark.parametrize("template", ["{mtime:%s}-{name}", "{id:12}-{name}"])
def test_a_file_that_changes_waits_for_the_next_run(s3once, s3, s3_wire, bucket, marks, tmp_path, template):
    """One is being sent and the other has been found: neither is sent under the key of what it was."""
    tree = dated_tree(tmp_path / "tree", {"a": LARGE, "b": LARGE})
    rule = s3_wire.add(hold_unread, "PutObject", nth=1)
    command = ("push", "--key", template, tree, f"s3://{bucket}/p", "--part-size", "25MiB", "--concurrency", "1", "--json")
    run = s3once.start(*command)
    assert rule.reached.wait(60), run.output()
    for name in "ab":
        grows(tree / name)
    rule.released.set()
    run = run.wait()
    assert run.code == 1 and counts(run) == {"failed": 2}, run
    for event in told(run, "failed"):
        assert "changed while the run was under way" in event["text"] and "the next run takes it" in event["text"]
    assert not shown(s3_wire) and not s3.objects(bucket)

    again = s3once(*command)
    assert again.code == 0 and counts(again) == {"uploaded": 2}, again
    expected = {f"p/{int((tree / n).stat().st_mtime) if 'mtime' in template else content_id(tree / n)[:12]}-{n}" for n in "ab"}
    assert s3.objects(bucket).keys() == expected


def test_parts_of_a_version_that_is_gone_are_not_kept(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """No later run makes this key again, so that nobody would go on with its upload."""
    tree = dated_tree(tmp_path / "tree", {"a": LARGE})
    rule = s3_wire.add(hold_unread, "UploadPart", nth=2)
    command = ("push", "--key", "{mtime:%s}-{name}", tree, f"s3://{bucket}/p", "--part-size", "5MiB", "--concurrency", "2", "--json")
    run = s3once.start(*command)
    assert rule.reached.wait(60), run.output()
    grows(tree / "a")
    rule.released.set()
    run = run.wait()
    assert run.code == 1 and counts(run) == {"failed": 1}, run
    assert not s3.uploads(bucket)
    again = s3once(*command)
    assert again.code == 0 and s3.objects(bucket).keys() == {f"p/{int((tree / 'a').stat().st_mtime)}-a"}, again


def test_a_path_key_stays_with_a_file_that_changes(s3once, s3, s3_wire, bucket, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": LARGE})
    rule = s3_wire.add(hold_unread, "PutObject", nth=1)
    run = s3once.start("push", "--key", "{host}-{name}", tree, f"s3://{bucket}/p", "--part-size", "40MiB", "--json")
    assert rule.reached.wait(60), run.output()
    grows(tree / "a")
    rule.released.set()
    run = run.wait()
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    assert s3.get(bucket, f"p/{host()}-a") == (tree / "a").read_bytes()


def test_compressed_content_has_the_id_of_what_it_was(s3once, s3, bucket, marks, tmp_path):
    data = content("log", 5000)
    tree = make_tree(tmp_path / "tree", {"a": data, "b.gz": gzip.compress(data), "c.bz2": bz2.compress(data)})
    run = s3once("push", "--key", "{id:10}/{name}", tree, f"s3://{bucket}", "--json")
    assert run.code == 0, run
    assert {key.split("/")[0] for key in s3.objects(bucket)} == {hashlib.sha256(data).hexdigest()[:10]}


def test_a_stop_while_the_files_are_read(s3once, s3, bucket, marks, tmp_path):
    """The content of all files is read before anything is sent; a signal ends that at once."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for i in range(4):
        with open(tree / f"f{i}", "wb") as file:
            file.truncate(1 << 40)
    run = s3once.start("push", "--key", "{id}-{name}", tree, f"s3://{bucket}", "--json")
    with pytest.raises(subprocess.TimeoutExpired):
        run.popen.wait(2)
    run.popen.send_signal(signal.SIGTERM)
    run = run.wait(60)
    assert run.code == 143 and not told(run, "fatal"), run


def test_no_room_for_sorting(s3once, s3, bucket, marks, tmp_path):
    """A folder for temporary files that is full."""
    small = tmp_path / "small"
    small.mkdir()
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    mounted = subprocess.run(["unshare", *user, "--mount", "true"], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    tree = make_tree(tmp_path / "tree", {f"{'d' * 200}/{'e' * 200}/{'f' * 100}{i}": b"" for i in range(30000)})
    full = ("unshare", *user, "--mount", "sh", "-c", 'mount -t tmpfs -o size=64k none "$0" && exec "$@"', str(small))
    run = s3once("push", "-n", "--key", "{path}", tree, f"s3://{bucket}", "--json", wrap=full, env={"SQLITE_TMPDIR": str(small)})
    assert run.code == 3 and "cannot be sorted in a temporary file" in told(run, "fatal")[0]["text"], run
    assert "SQLITE_TMPDIR" in told(run, "fatal")[0]["text"]
