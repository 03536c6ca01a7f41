"""`s3once proven`: whether a file may be removed by somebody else. 0 is said only of content that S3 shows now."""

import os

import pytest

from tests.faults import faults
from tests.system.harness import MIB, make_tree

sqlite = pytest.mark.parametrize("marks", ["sqlite"], indirect=True)


@pytest.fixture
def target(bucket):
    return f"s3://{bucket}/p"


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree", {"a": 100, "d/b": 5000, "large": 12 * MIB})


@pytest.mark.parametrize("marks", ["dynamodb", "sqlite"], indirect=True)
def test_what_is_in_s3_and_what_is_not(s3once, target, marks, tree):
    assert s3once("push", tree, target, "--part-size", "5MiB").code == 0
    run = s3once("proven", "--source", tree, tree / "a", tree / "d" / "b", tree / "large", target)
    assert run.code == 0 and run.out.splitlines() == [f"in S3: {tree}/{name} -> {target}/{name}" for name in ("a", "d/b", "large")], run
    make_tree(tree, {"new": 10})
    run = s3once("proven", "--source", tree, tree / "a", tree / "new", target)
    assert run.code == 1 and f"not in S3: {tree}/new -> {target}/new: no upload of it is marked as done" in run.out, run
    run = s3once("proven", "--quiet", "--source", tree, tree / "new", target)
    assert (run.code, run.out, run.err) == (1, "", ""), run


@sqlite
def test_a_file_by_itself_has_the_key_that_push_gives_it(s3once, target, marks, tree):
    assert s3once("push", tree / "a", target).code == 0
    assert s3once("proven", tree / "a", target).code == 0
    assert s3once("proven", tree / "d" / "b", target).code == 1
    assert s3once("push", tree / "d" / "b", "s3://" + target.split("/")[2], "--as", "other/name").code == 0
    assert s3once("proven", tree / "d" / "b", "s3://" + target.split("/")[2], "--as", "other/name").code == 0


@sqlite
def test_content_counts_and_not_the_time(s3once, target, marks, tree):
    assert s3once("push", tree, target).code == 0
    status = (tree / "a").stat()
    os.utime(tree / "a", (1, 1))
    assert s3once("proven", "--source", tree, tree / "a", target).code == 0
    (tree / "a").write_bytes(b"x" * 100)
    os.utime(tree / "a", ns=(status.st_atime_ns, status.st_mtime_ns))
    run = s3once("proven", "--source", tree, tree / "a", target)
    assert run.code == 1 and "content is not what was uploaded" in run.out, run


async def held(x, rule):
    x.fire(rule)
    await x.hold(rule)
    await x.proxy.pass_on(x)


@sqlite
def test_a_file_that_changes_while_s3_is_asked_is_not_proven(s3once, s3_wire, target, marks, tree):
    """Its content was read by then. A line that comes after that is not in S3."""
    assert s3once("push", tree, target).code == 0
    rule = s3_wire.add(held, "HeadObject", key="p/a")
    running = s3once.start("proven", "--source", tree, tree / "a", target)
    assert rule.reached.wait(60), running.output()
    with open(tree / "a", "ab") as file:
        file.write(b"one more line\n")
    rule.released.set()
    run = running.wait()
    assert run.code == 3 and "it changed while it was read" in run.out + run.err, run


@sqlite
def test_s3_is_asked(s3once, s3, bucket, target, marks, tree):
    assert s3once("push", tree, target).code == 0
    s3.client.delete_object(Bucket=bucket, Key="p/a")
    s3.client.put_object(Bucket=bucket, Key="p/d/b", Body=b"x" * 5000)
    run = s3once("proven", "--source", tree, tree / "a", target)
    assert run.code == 1 and "does not hold its object any more" in run.out, run
    assert s3once("proven", "--source", tree, tree / "d" / "b", target).code == 1


@sqlite
def test_what_cannot_be_known(s3once, s3_wire, target, marks, tree, tmp_path):
    assert s3once("push", tree, target).code == 0
    (tree / "link").symlink_to("a")
    for path in (tree / "missing", tree / "link", tmp_path / "missing"):
        run = s3once("proven", "--quiet", "--source", tree, path, target)
        assert run.code == 3 and str(path) in run.err, run
    s3_wire.add(faults.drop_request, times=None)
    job = tmp_path / "short.conf"
    job.write_text(f"source = {tree}\ntarget = {target}\ngive-up-after = 1s\n")
    run = s3once("proven", "--job", job, tree / "a", attempts=1)
    assert run.code == 3 and run.err, run


@sqlite
def test_nothing_is_changed(s3once, s3, bucket, target, marks, tree):
    run = s3once("proven", "--source", tree, tree / "a", target)
    assert run.code == 1 and not marks.path.exists(), run
    assert s3.objects(bucket) == {}


@sqlite
def test_job(s3once, target, marks, tree, tmp_path):
    job = tmp_path / "logs.conf"
    job.write_text(f"source = {tree}\ntarget = {target}\nexclude = large\n")
    assert s3once("run", job).code == 0
    run = s3once("proven", "--job", job, tree / "a", tree / "d" / "b")
    assert run.code == 0 and run.out.count("in S3: ") == 2, run
    assert s3once("proven", "--job", job, tree / "large").code == 3
    run = s3once("proven", "--job", job, "--as", "x", tree / "a")
    assert run.code == 2 and "--job" in run.err, run
    run = s3once("proven", "--job", job, tree / "a", target)
    assert run.code == 2 and "the job says where files are uploaded" in run.err, run


@sqlite
def test_marks_and_services_win_over_the_job(s3once, target, marks, tree, tmp_path):
    """As with other commands that take --job; the environment does not win."""
    job, other = tmp_path / "logs.conf", f"sqlite:{tmp_path}/other.db"
    job.write_text(f"source = {tree}\ntarget = {target}\n")
    assert s3once("run", job, "--marks", other).code == 0
    run = s3once("proven", "--job", job, "--marks", other)
    assert run.code == 0 and "all 3 files are in S3" in run.out, run
    assert s3once("proven", "--job", job).code != 0, "the marks of the job know of nothing"
    real = s3once.environment.pop("AWS_ENDPOINT_URL_S3")
    with open(job, "a") as more:
        more.write(f"marks = {other}\nendpoint-url = http://127.0.0.1:9\n")
    run = s3once("proven", "--job", job, "--endpoint-url", real, "--region", "us-east-1", env={"S3ONCE_MARKS": "sqlite:/nowhere/m.db"})
    assert run.code == 0, run


@sqlite
def test_json(s3once, target, marks, tree):
    assert s3once("push", tree / "a", target).code == 0
    run = s3once("proven", "--json", tree / "a", tree / "d" / "b", target)
    assert run.code == 1, run
    proven, unproven = run.events
    assert (proven["event"], proven["path"], proven["key"], proven["bytes"]) == ("proven", f"{tree}/a", "p/a", 100), proven
    assert proven["etag"] and (unproven["event"], unproven["key"]) == ("unproven", "p/b"), run


@pytest.mark.parametrize("marks", ["dynamodb", "sqlite"], indirect=True)
def test_a_whole_folder(s3once, s3, bucket, target, marks, tree):
    """May this disk be erased? Every file in it counts, and what is not uploaded is named."""
    assert s3once("push", tree, target).code == 0
    run = s3once("proven", tree, target)
    assert (run.code, run.out, run.err) == (0, "all 3 files are in S3\n", ""), run
    assert s3once("proven", "--quiet", "--source", tree, tree / "d", target).code == 0
    make_tree(tree, {"d/new": 10})
    s3.client.delete_object(Bucket=bucket, Key="p/a")
    run = s3once("proven", tree, target)
    assert run.code == 1 and sorted(line.split(" -> ")[0] for line in run.out.splitlines()) == [
        "2 files are in S3, 2 files are not",
        f"not in S3: {tree}/a",
        f"not in S3: {tree}/d/new",
    ], run
    run = s3once("proven", "--source", tree, tree / "d", target)
    assert run.code == 1 and run.out.splitlines()[-1] == "1 file is in S3, 1 file is not", run
    events = s3once("proven", "--json", tree, target).events
    assert sorted(event["event"] for event in events) == ["proven"] * 2 + ["unproven"] * 2, events


@sqlite
def test_a_folder_with_what_is_not_uploaded(s3once, target, marks, tree, tmp_path):
    """Links are said and not asked for, as push skips them. What cannot be read cannot be known, and an empty folder may be a disk that is not mounted."""
    assert s3once("push", tree, target).code == 0
    (tree / "link").symlink_to("a")
    run = s3once("proven", tree, target)
    assert run.code == 0 and "files are in S3; 1 symbolic link is not in S3, since push skips it unless --follow is given" in run.out, run
    run = s3once("proven", "-v", tree, target)
    assert run.code == 0 and f"skipped symbolic link {tree}/link" in run.out, run
    (tree / "link").unlink()
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "link").symlink_to("a")
    run = s3once("proven", tmp_path / "links", target)
    assert run.code == 3 and f"{tmp_path}/links: there is no file in it" in run.err, run
    (tmp_path / "empty").mkdir()
    run = s3once("proven", tmp_path / "empty", target)
    assert run.code == 3 and f"{tmp_path}/empty: there is no file in it" in run.err, run
    os.mkfifo(tmp_path / "empty" / "pipe")
    run = s3once("proven", tmp_path / "empty", target)
    assert run.code == 3 and f"{tmp_path}/empty: there is no file in it" in run.err, run
    run = s3once("proven", "--source", tree, tmp_path / "empty", target)
    assert run.code == 3 and f"{tmp_path}/empty: there is no file in it" in run.err, run


@sqlite
@pytest.mark.parametrize("options", [[], ["--rotated"]], ids=["names", "rotated"])
def test_a_file_that_an_interrupted_removal_has_left(s3once, s3, bucket, target, marks, tmp_path, options):
    """It is the only copy if its object was deleted since."""
    tree = make_tree(tmp_path / "tree", {"d/app.log.1": 100, "d/app.log.2": 50})
    assert s3once("push", tree, target, *options).code == 0
    s3.client.delete_object(Bucket=bucket, Key=next(key for key in s3.objects(bucket) if len(s3.get(bucket, key)) == 100))
    (tree / "d" / ".s3once-removing").mkdir(mode=0o700)
    (tree / "d" / "app.log.1").rename(tree / "d" / ".s3once-removing" / "app.log.1")
    for command, exit_code in (["proven"], 3), (["push", "--dry-run"], 1):
        run = s3once(*command, *options, tree, target)
        assert run.code == exit_code and f"{tree}/d/.s3once-removing: holds the file app.log.1, which a run that was cut short" in run.err, run
    assert (tree / "d" / ".s3once-removing" / "app.log.1").exists()
    assert s3once("push", *options, tree, target).code == 0
    assert s3once("proven", *options, tree, target).code == 1


@sqlite
def test_the_folders_of_a_job(s3once, target, marks, tree, tmp_path):
    job = tmp_path / "logs.conf"
    job.write_text(f"source = {tree}\ntarget = {target}\n")
    assert s3once("proven", "--job", job).code == 1
    assert s3once("run", job).code == 0
    run = s3once("proven", "--job", job)
    assert (run.code, run.out) == (0, "all 3 files are in S3\n"), run
    run = s3once("proven", "--verbose", "--job", job)
    assert run.code == 0 and run.out.count("in S3: ") == 3, run
