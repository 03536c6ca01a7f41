"""`s3once proven`: whether a file may be removed by somebody else. 0 is said only of content that S3 shows now."""

import os
import subprocess

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
def test_files_in_s3_and_missing_ones_are_told_apart(s3once, target, marks, tree):
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
def test_a_part_of_a_folder_is_found_by_its_source(s3once, target, marks, tree):
    """By itself the part has other keys: the answer is no, and says what may be missing."""
    assert s3once("push", tree, target).code == 0
    run = s3once("proven", tree / "d", target)
    assert run.code == 1 and "give that folder with --source" in run.err, run
    run = s3once("proven", tree, f"{target}ictures")  # a wrong URL looks the same
    assert run.code == 1 and "s3once: check the keys above, the URL and --marks; if a file was" in run.err, run
    run = s3once("proven", "--source", tree, tree / "d", target)
    assert run.code == 0 and "--source" not in run.err, run
    (tree / "a").write_bytes(b"new")
    run = s3once("proven", tree, target)
    assert run.code == 1 and "--source" not in run.err, "some were found, so the SOURCE is right"


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
def test_file_that_cannot_be_checked_is_not_proven(s3once, s3_wire, target, marks, tree, tmp_path):
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
    assert s3once("push", tree / "large", target).code == 0
    before = marks.path.read_bytes(), s3.objects(bucket)
    assert s3once("proven", "--source", tree, tree / "a", target).code == 1
    assert (marks.path.read_bytes(), s3.objects(bucket)) == before


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
    """As with other commands that take --job. The environment does not win."""
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
def test_links_and_special_files(s3once, target, marks, tree, tmp_path):
    """They have no content, so that the exit status is 0. Each is named all the same, even with --quiet."""
    assert s3once("push", tree, target).code == 0
    (tree / "link").symlink_to("a")
    os.mkfifo(tree / "d" / "pipe")
    named = {f"s3once: warning: {tree}/link is a symbolic link, and not in S3", f"s3once: warning: {tree}/d/pipe is a named pipe, not a file, and not in S3"}
    run = s3once("proven", tree, target)
    assert run.code == 0 and set(run.err.splitlines()) == named, run
    assert run.out == "all 3 files are in S3; 1 symbolic link is not in S3, since push skips it unless --follow is given; 1 special file has no content\n", run
    run = s3once("proven", "--quiet", tree, target)
    assert run.code == 0 and set(run.err.splitlines()) == named and run.out == "", run
    run = s3once("proven", "--json", tree, target)
    assert [event["path"] for event in run.events if event["event"] in ("link", "special")] == [f"{tree}/d/pipe", f"{tree}/link"], run


@sqlite
def test_a_folder_without_files(s3once, target, marks, tree, tmp_path):
    """It may be a disk that is not mounted."""
    assert s3once("push", tree, target).code == 0
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
@pytest.mark.parametrize("place", ["words", "environment", "job", "variables of the job"])
def test_files_that_the_filter_leaves_out(s3once, target, marks, tree, tmp_path, place):
    """A removal of the folder would lose them, wherever the filter comes from. Their number is printed, even with --quiet."""
    words, env, lines = [tree, target], {}, f"source = {tree}\ntarget = {target}\n"
    job = tmp_path / "logs.conf"
    if place == "words":
        words = ["--exclude", "d/", "--exclude", "large", *words]
    elif place == "environment":
        env = {"S3ONCE_INCLUDE": "a"}
    else:
        words = ["--job", job]
        lines += "exclude = d/\nexclude = large\n" if place == "job" else ""
    job.write_text(lines)
    if place == "variables of the job":
        words, env = ["--job", "logs"], {"S3ONCE_JOBS": str(tmp_path)}
        job.with_suffix(".env").write_text("S3ONCE_INCLUDE=a\n")
    assert s3once("push", tree / "a", target).code == 0
    said = "s3once: error: 2 files were left out by --exclude or --include, and not looked for"
    run = s3once("proven", *words, env=env)
    assert (run.code, run.out, run.err) == (3, "1 file is in S3, 2 files were left out\n", f"{said} (-v names each)\n"), run
    run = s3once("proven", "--quiet", *words, env=env)
    assert (run.code, run.out, run.err) == (3, "", f"{said} (-v names each)\n"), run
    run = s3once("proven", "-v", *words, env=env)
    assert run.code == 3 and said in run.err and {f"left out by --exclude or --include: {tree}/{name}" for name in ("d/b", "large")} <= set(run.out.splitlines()), run
    events = s3once("proven", "--json", *words, env=env).events
    assert sorted((event["event"], event["path"]) for event in events) == [("excluded", f"{tree}/d/b"), ("excluded", f"{tree}/large"), ("proven", f"{tree}/a")], events


@sqlite
def test_files_that_a_list_leaves_out(s3once, target, marks, tree, tmp_path):
    """A folder stands for all files in it, also for those that --files-from does not name."""
    (tmp_path / "list").write_text("a\n")
    (tmp_path / "logs.conf").write_text(f"source = {tree}\ntarget = {target}\nfiles-from = {tmp_path}/list\n")
    assert s3once("run", tmp_path / "logs.conf").code == 0
    run = s3once("proven", "--job", tmp_path / "logs.conf")
    assert run.code == 1 and "1 file is in S3, 2 files are not" in run.out, run


@sqlite
def test_another_file_system(s3once, target, marks, tmp_path):
    """A removal of the folder would go into it, so that it counts also if push skips it."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    tree = make_tree(tmp_path / "tree", {"a": 1})
    (tree / "mnt").mkdir()
    (tmp_path / "logs.conf").write_text(f"source = {tree}\ntarget = {target}\none-file-system = yes\n")
    assert s3once("run", tmp_path / "logs.conf").code == 0
    inside = f'mount -t tmpfs none {tree}/mnt && exec "$@"'
    run = s3once("proven", "--job", tmp_path / "logs.conf", wrap=["unshare", "--mount", "sh", "-c", inside, "sh"])
    assert run.code == 3 and f"{tree}/mnt: another file system is mounted there" in run.err, run


@sqlite
def test_logs_in_pieces_cannot_be_checked(s3once, target, marks, tmp_path):
    """Each is named once, and nothing is said of what is in S3."""
    tree = make_tree(tmp_path / "tree", {"app.log": b"one\n"})
    (tmp_path / "logs.conf").write_text(f"source = {tree}\ntarget = {target}\nrotated = yes\nlive = yes\n")
    assert s3once("run", tmp_path / "logs.conf").code == 0
    for line in "two", "three":
        with open(tree / "app.log", "a") as file:
            file.write(f"{line}\n")
        assert s3once("run", tmp_path / "logs.conf").code == 0
    (tree / "app.log").rename(tree / "app.log.1")
    (tree / "app.log").write_text("four\n")
    assert s3once("run", tmp_path / "logs.conf").code == 0
    why = "cannot be checked, since --live uploads logs in pieces; s3once verify checks the objects"
    run = s3once("proven", "--job", tmp_path / "logs.conf")
    assert (run.code, run.out) == (3, "0 files are in S3, 2 files could not be checked\n"), run
    assert sorted(run.err.splitlines()) == sorted(f"s3once: error: {tree}/{name}: {why}" for name in ("app.log", "app.log.1")), run
    run = s3once("proven", "--job", tmp_path / "logs.conf", tree / "app.log.1")
    assert (run.code, run.out, run.err) == (3, "", f"s3once: error: {tree}/app.log.1: {why}\n"), run


@sqlite
def test_wrong_marks(s3once, target, marks, tree, tmp_path):
    assert s3once("push", tree, target).code == 0
    run = s3once("proven", "--marks", f"sqlite:{tmp_path}/none.db", tree, target)
    assert run.code == 3 and run.out == "" and f"there are no marks at {tmp_path}/none.db yet: push makes them" in run.err, run
    assert not (tmp_path / "none.db").exists()


@sqlite
def test_why_a_file_is_not_looked_for(s3once, target, marks, tree, tmp_path):
    (tmp_path / "logs.conf").write_text(f"source = {tree}\ntarget = {target}\nexclude = large\n")
    assert s3once("run", tmp_path / "logs.conf").code == 0
    make_tree(tmp_path, {"other": 1})
    for path, why in (
        (tree / "large", "was not looked for, since --exclude or --include leaves it out"),
        (tree / "none", "does not exist"),
        (tmp_path / "other", "lies in none of the SOURCEs"),
        (tmp_path / "missing", "does not exist"),
    ):
        run = s3once("proven", "--job", tmp_path / "logs.conf", path)
        assert (run.code, run.out, run.err) == (3, "", f"s3once: error: {path}: {why}\n"), run


@sqlite
def test_a_file_that_may_not_be_read(s3once, target, marks, tree, tmp_path):
    assert s3once("push", tree, target).code == 0
    (tree / "a").chmod(0)
    for path in (tmp_path, s3once.home, s3once.state, tree):
        path.chmod(0o755)
    run = s3once("proven", tree, target, unprivileged=True)
    assert run.code == 3 and f"{tree}/a: cannot be read: Permission denied; give this user access, or exclude it" in run.err, run


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
    assert s3once("push", tree / "a", target).code == 0
    assert s3once("proven", "--job", job).code == 1
    assert s3once("run", job).code == 0
    run = s3once("proven", "--job", job)
    assert (run.code, run.out) == (0, "all 3 files are in S3\n"), run
    run = s3once("proven", "--verbose", "--job", job)
    assert run.code == 0 and run.out.count("in S3: ") == 3, run
    run = s3once("proven", "--job", job, target)
    assert run.code == 2 and "beside --job, name each FILE" in run.err, run
    with job.open("a") as file:
        file.write("json = yes\n")
    run = s3once("proven", "--job", job)
    assert run.code == 0 and [event["event"] for event in run.events if event["event"] == "proven"] == 3 * ["proven"], run
