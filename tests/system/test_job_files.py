"""Jobs in files: what a file says is what the same words on a command line say, and every error of it is told with its line."""

import os
import re
import signal

import pytest

from tests.faults import faults
from tests.system.harness import make_tree, wait_until
from tests.system.pushing import counts, told


@pytest.fixture
def job(s3once, tmp_path):
    """job(name, text) writes the file of a job where `run NAME` finds it, and returns its path."""
    folder = tmp_path / "jobs"
    folder.mkdir()
    s3once.environment["S3ONCE_JOBS"] = str(folder)

    def write(name, text, mode=0o644):
        path = folder / f"{name}.conf"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        return path

    return write


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree", {"a.log": 10, "b.tmp": 20, "keep.tmp": 30, "sub/c.log": 40})


def errors(run):
    return [line.removeprefix("s3once: error: ") for line in run.err.splitlines()]


def test_a_job_is_pushed(s3once, s3, bucket, job, tree, tmp_path):
    other = make_tree(tmp_path / "with spaces = and #", {"d.log": 5})
    path = job(
        "logs",
        f"""\
        # A comment, and an empty line

        ; another comment
        source = {tree}
        source = "{other}"
          target=s3://{bucket}/p
        exclude = *.tmp
        include = keep.tmp\r
        min-age = 0
        part-size = 8MiB
        metadata = team=logs
        metadata = stage=a=b
        header = Content-Disposition: attachment; filename="x"
        quiet = no
        """,
    )
    run = s3once("run", "logs")
    assert run.code == 0 and not errors(run)[1:], run
    assert run.out.splitlines()[0] == f"logs: all 4 files are in s3://{bucket}/p"
    found = s3.objects(bucket, metadata=True)
    assert set(found) == {"p/a.log", "p/keep.tmp", "p/sub/c.log", "p/d.log"}
    head = s3.client.head_object(Bucket=bucket, Key="p/d.log")
    assert head["Metadata"]["team"] == "logs" and head["Metadata"]["stage"] == "a=b"
    assert head["ContentDisposition"] == 'attachment; filename="x"'
    assert counts(s3once("run", path, "--json")) == {"skipped": 4}, "a path names the same job"


def test_events_name_the_job(s3once, s3, bucket, job, tree):
    job("one", f"source = {tree}\ntarget = s3://{bucket}/1\njson = yes\n")
    job("two", f"source = {tree}/a.log\ntarget = s3://{bucket}/2\njson = true\n")
    run = s3once("run", "one", "two")
    assert run.code == 0, run
    names = [event["job"] for event in run.events]
    assert names == sorted(names) and set(names) == {"one", "two"}
    assert [event["job"] for event in told(run, "summary")] == ["one", "two"]
    assert "job" not in s3once("push", tree, f"s3://{bucket}/1", "--json").events[0]


def test_every_error_of_every_file_is_told_with_its_line(s3once, job, tree, tmp_path):
    """And nothing is done, not even by a job that is right."""
    bad = job(
        "bad",
        f"""\
min-aeg = 5min
min-age = 5 minutes
min-age = 5min
exclude = [a
storage-class = NO SUCH
sse = rot13
dry-run = perhaps
verbose = much
part-size = 1
if-changed = ignore
[s3]
flag
= value
region = eu-west-1 # here
profile = "open
help = yes
source = logs
target = s3://B
target = s3://bucket
as = key
files-from = list
delete-after = 7d
follow = yes
""".encode()
        + b"follow = y\0es\n",
    )
    none = job("none", "# nothing\n")
    cross = job("cross", f"source = {tree}\ntarget = s3://bucket/p\ntime-zone = UTC\n")
    rules = job("rules", f"source = {tree}\ntarget = s3://bucket/p\nrules = {tmp_path}/no-such-rules\n")
    job("good", f"source = {tree}\ntarget = s3://bucket/p\n")
    run = s3once("run", "good", "bad", "none", "cross", "rules", "missing")
    assert run.code == 2 and not run.out, run
    expected = [
        (bad, 1, "unknown name 'min-aeg'; did you mean min-age?"),
        (bad, 2, "min-age: '5 minutes' is not a duration"),
        (bad, 3, "min-age: line 2 says it already"),
        (bad, 4, 'exclude: the pattern "[a" is empty or has an unclosed ['),
        (bad, 5, "storage-class: 'NO SUCH' cannot be the name of a storage class"),
        (bad, 6, "sse: 'rot13' is not one of"),
        (bad, 7, "dry-run: 'perhaps' is neither yes nor no"),
        (bad, 8, "verbose: 'much' is neither yes nor no nor a number from 0 to 9"),
        (bad, 9, "part-size: '1' is too small: at least 5MiB"),
        (bad, 10, "if-changed: 'ignore' is not one of fail|replace|skip|replace-any"),
        (bad, 11, "a job has no [sections]"),
        (bad, 12, "this is not name = value; a flag is written as name = yes"),
        (bad, 13, "there is no name before the ="),
        (bad, 14, "a comment has its own line"),
        (bad, 15, "a value that begins with a quote ends with the same quote"),
        (bad, 16, "unknown name 'help'; there are source, target and the options of s3once push"),
        (bad, 17, "source: 'logs' is not an absolute path"),
        (bad, 18, "target: 's3://B'"),
        (bad, 19, "target: there is one before"),
        (bad, 24, "there is a NUL byte in it"),
        (bad, 23, "delete-after and follow contradict each other: what is reached through symbolic links is not removed"),
        (bad, 21, "as and files-from contradict each other: --as names the key of exactly one file"),
        (bad, 20, "as and exclude contradict each other: --as names the key of exactly one file"),
        (none, None, "nothing to upload: add a line source = /PATH"),
        (none, None, "it does not say where to: add a line target = s3://BUCKET/PREFIX"),
        (cross, 3, "--time-zone is for {mtime:…} in --key and for times of --bwlimit"),
        (rules, None, f"the rules {tmp_path}/no-such-rules: it cannot be read: No such file or directory"),
        (tmp_path / "jobs" / "missing.conf", None, "there is no such file; name a job of another folder by its path, such as ./missing.conf"),
    ]
    for line, (path, number, sentence) in zip(errors(run), expected, strict=True):
        assert line.startswith(f"{path}:{number}: {sentence}" if number else f"{path}: {sentence}"), line


@pytest.mark.parametrize(
    ("line", "near"),
    [("sorce = /a", "source"), ("targt = s3://b", "target"), ("exclud = x", "exclude"), ("--json = yes", "json"), ("min_age = 1s", "min-age")],
)
def test_an_unknown_name_is_told_with_the_nearest(s3once, job, line, near):
    job("near", line + "\n")
    assert f"did you mean {near}?" in errors(s3once("run", "near"))[0]


def test_a_mistyped_job_is_told_with_the_nearest(s3once, job):
    job("nginx", "source = /a\n")
    for command in (["run", "ngnix"], ["status", "--job", "ngnix"]):
        run = s3once(*command)
        assert run.code == 2 and "; did you mean nginx? Otherwise, name a job of" in run.err and run.err.count("error: ") == 1, run
    assert "did you mean" not in s3once("run", "mysql").err


def test_a_job_whose_file_is_a_link_to_nowhere(s3once, bucket, job, tree):
    """Neither the variables nor another job stand in for it."""
    file = job("lost", "")
    file.unlink()
    file.symlink_to("gone.conf")
    variables = {"S3ONCE_SOURCE": str(tree), "S3ONCE_TARGET": f"s3://{bucket}"}
    for name in ("lost", file):
        run = s3once("run", name, env=variables)
        assert run.code == 2 and f"{file}: it is a symbolic link to a file that does not exist\n" in run.err, run


def test_two_jobs_of_one_name(s3once, s3, bucket, tree, tmp_path):
    """The one that succeeds last would hide the failure of the other, so a warning says so."""
    files = [tmp_path / folder / "logs.conf" for folder in ("a", "b")]
    for file, source in zip(files, (tmp_path / "gone", tree)):
        file.parent.mkdir()
        file.write_text(f"source = {source}\ntarget = s3://{bucket}/{file.parent.name}\n")
    warning = f"warning: run: {files[0]} and {files[1]} are jobs of one name, so that fleet and status show only the one that ended last"
    run = s3once("run", *files)
    assert run.code == 1 and run.err.count(warning) == 1, run
    assert "are jobs of one name" not in s3once("run", files[1], f"{tmp_path}/b/../b/logs.conf").err


def test_a_job_by_the_name_of_its_file(s3once, job, tree):
    job("logs", f"source = {tree}\ntarget = s3://bucket/p\n")
    assert s3once("config", "logs.conf").out == s3once("config", "logs").out != ""
    assert "by its path, such as ./missing.conf" in s3once("run", "missing.conf").err


def test_the_command_line_wins(s3once, s3, bucket, job, tree):
    path = job(
        "logs",
        f"source = {tree}\ntarget = s3://{bucket}/p\nstorage-class = GLACIER\nexclude = *.tmp\nquiet = yes\nlease = 10s\n",
    )
    run = s3once("run", "--dry-run", "-v", "logs", "--include", "keep.tmp", "--json")
    assert run.code == 0 and {event["key"] for event in told(run, "planned")} == {"p/a.log", "p/sub/c.log", "p/keep.tmp"}, run
    run = s3once("run", "logs", "--storage-class", "STANDARD", "--verbose")
    assert run.code == 0 and "uploaded" in run.out, run
    assert s3.client.head_object(Bucket=bucket, Key="p/a.log").get("StorageClass", "STANDARD") == "STANDARD"
    assert set(s3.objects(bucket)) == {"p/a.log", "p/sub/c.log"}
    job("logs", path.read_text() + "min-age = soon\n")
    run = s3once("run", "logs", "--min-age", "5s")
    assert run.code == 2 and "logs.conf:7: min-age: 'soon' is not a duration" in run.err, "what is overridden is checked, too"


def test_contradictions_with_the_command_line(s3once, job, tree):
    """Only two values of one thing replace each other."""
    job("one", f"source = {tree}/a.log\ntarget = s3://bucket\nas = key\n")
    run = s3once("run", "one", "--exclude", "x")
    assert run.code == 2 and "one.conf:3: as and --exclude contradict each other" in run.err, run
    run = s3once("run", "one", "--exclude", "x", "--no-such")
    assert run.code == 2 and errors(run) == ["run: unknown option '--no-such'; see s3once run --help"]


def test_fault_of_a_job_file_names_its_line(s3once, job, tree):
    """Also one that push finds only when a run begins."""
    path = job("key", f"source = {tree}\ntarget = s3://bucket/p\nkey = {{pth}}\n")
    assert errors(s3once("run", "key")) == [f"{path}:3: --key has no field {{pth}}; did you mean {{path}}?"]
    job("key", f"source = {tree}\ntarget = s3://bucket/p\nfollow = yes\ndelete-after = 7d\n")
    assert errors(s3once("run", "key"))[0].startswith(f"{path}:4: delete-after and follow contradict each other")


@pytest.mark.parametrize(
    "target, says",
    [
        ("{host}", "target: nothing fills in {host} here: fields are for key, as in key = {host}/{path}"),
        ("web/{env:POD}/x", "target: nothing fills in {env:POD} here: fields are for key, "),
        ("$HOSTNAME/x", "target: nothing fills in $HOSTNAME here: write its value, or a field of key, "),
        ("${HOST}", "target: nothing fills in ${HOST} here: "),
        ("a/$(hostname -s)", "target: nothing fills in $(hostname -s) here: "),
        ("%Y/%m", "target: nothing fills in %Y here: write the date of a file into key, as in key = {mtime:%Y/%m/%d}/{path}"),
        ("%C3%BC/%/$/{}/{3F-1}/50%, $", None),
    ],
)
def test_nothing_in_the_target_is_filled_in(s3once, s3, bucket, job, tree, target, says):
    """Every host would upload to this one prefix."""
    path = job("one", f"source = {tree}\ntarget = s3://{bucket}/{target}\n")
    run = s3once("run", "one")
    if says:
        assert run.code == 2 and len(errors(run)) == 1 and errors(run)[0].startswith(f"{path}:2: {says}"), run
    else:
        assert run.code == 0 and all(key.startswith(target) for key in s3.objects(bucket)), run


REMOVES = "delete-after = 0s\n"


@pytest.mark.parametrize(
    "first, second, says",
    [
        (("tree", REMOVES), ("tree/sub", ""), "run: the job one removes each file of TREE/sub at once, and the job two uploads only those that it finds there before"),
        (("tree/sub/", REMOVES), ("tree", ""), "run: the job one removes each file of TREE/sub/ at once"),
        (("tree", ""), ("tree/sub", REMOVES), None),  # the one that runs last
        (("tree", "delete-after = 7d\n"), ("tree", ""), None),
        (("tree", REMOVES), ("tree2", ""), None),
        (("tree", REMOVES + "exclude = *.gz\n"), ("tree", "include = *.gz\n"), None),
    ],
)
def test_job_that_removes_the_files_of_the_next(s3once, bucket, job, tmp_path, first, second, says):
    make_tree(tmp_path, {"tree/sub/a": 10, "tree/b.gz": 10, "tree2/c": 10})
    for name, (folder, options) in [("one", first), ("two", second)]:
        job(name, f"source = {tmp_path}/{folder}\ntarget = s3://{bucket}/{name}\n{options}")
    run = s3once("run", "--dry-run", "one", "two")
    found = [line for line in run.err.splitlines() if " at once, and the job " in line]
    assert run.code == 0 and len(found) == (says is not None), run
    assert not says or says.replace("TREE", f"{tmp_path}/tree") in found[0], run


@pytest.mark.parametrize(
    "given, says",
    [
        ("{tree}/*.log", "does not exist; wildcards are not expanded: name the folder, and give the pattern to --include"),
        ("{tree} {tree}", "does not exist; write each SOURCE as a word of its own, or in a job on a line of its own"),
        ("{tree}, {tree}", "does not exist; write each SOURCE as a word of its own, or in a job on a line of its own"),
    ],
)
def test_pattern_or_list_as_a_source(s3once, bucket, job, tree, given, says):
    source = given.format(tree=tree)
    job("one", f"source = {source}\ntarget = s3://{bucket}\n")
    run = s3once("run", "one")
    assert run.code == 1 and errors(run)[-1] == f"{source}: {says}", run


def test_list_as_a_pattern(s3once, bucket, job, tree):
    job("one", f"source = {tree}\ntarget = s3://{bucket}\nexclude = *.gz, *.tmp\n")
    assert "note: --exclude *.gz, *.tmp matches nothing: check the pattern, and give each pattern an option of its own\n" in s3once("run", "one").err


def test_fault_of_a_variable_names_the_variable(s3once, job, tree):
    path = job("one", f"source = {tree}\ntarget = s3://bucket/p\n")
    run = s3once("run", "one", env={"S3ONCE_KEY": "{pth}"})
    assert run.code == 2 and errors(run) == [f"{path}: S3ONCE_KEY has no field {{pth}}; did you mean {{path}}?"], run
    run = s3once("run", "one", env={"S3ONCE_BUCKET": "logs"})
    sentence = "'logs' is not one of known|new|same; it is the relation of the bucket to the marks; name the bucket as s3://BUCKET[/PREFIX]"
    assert run.code == 2 and errors(run) == [f"run: S3ONCE_BUCKET: {sentence}"], run
    run = s3once("run", "one", "--key", "{pth}", env={"S3ONCE_KEY": "{path}"})
    assert run.code == 2 and errors(run) == [f"{path}: --key has no field {{pth}}; did you mean {{path}}?"], run


def test_a_list_from_standard_input_is_for_one_job(s3once, s3, bucket, job, tree):
    """The second one would find it at its end, and have nothing to do."""
    job("one", f"source = {tree}\ntarget = s3://{bucket}/p\nfiles-from = -\n")
    job("two", f"source = {tree}\ntarget = s3://{bucket}/q\n")
    for args in (["one", "two"], ["two", "one", "--files-from", "-"]):
        run = s3once("run", *args, stdin=b"a.log\n")
        assert run.code == 2 and "--files-from - is for one job" in run.err and not s3.objects(bucket), run
    run = s3once("run", "two", "--files-from", "-", stdin=b"a.log\n")
    assert run.code == 0 and set(s3.objects(bucket)) == {"q/a.log"}, run


def test_flags_that_are_off(s3once, s3, bucket, job, tree):
    job("off", f"source = {tree}\ntarget = s3://{bucket}/p\ndry-run = no\nverbose = 0\nquiet = false\nno-wait = no\njson = no\nfollow = yes\ndelete-after = no\n")
    run = s3once("run", "off")
    assert run.code == 0 and run.out.startswith("off: all 4 files"), run


def test_the_command_line_switches_off_what_a_job_switches_on(s3once, s3, bucket, job, tree):
    """It does so by =no, which every option without a value takes, and the age of a removal, too."""
    everything = s3once("run", "--help", "all").out
    flags = set(re.findall(r"^  (?:-\w, |    )--([a-z-]+)(?:  |$)", everything, re.M)) - {"help"}
    assert {"no-wait", "dry-run", "json", "rotated", "quiet"} < flags
    switched_on = "".join(f"{name} = yes\n" for name in ("dry-run", "verbose", "json", "delete-after"))
    job("on", f"source = {tree}\ntarget = s3://{bucket}/p\n{switched_on}")
    run = s3once("run", "on")
    assert run.code == 0 and run.events and not s3.objects(bucket), run
    run = s3once("run", "on", *(f"--{name}=no" for name in sorted(flags | {"delete-after"})))
    assert run.code == 0 and run.out.startswith("on: all 4 files are in s3:") and "a.log" not in run.err, run
    assert len(s3.objects(bucket)) == 4 and (tree / "a.log").exists()
    wrong = s3once("run", "on", "--no-wait=never")
    assert wrong.code == 2 and "--no-wait: 'never' is neither yes nor no" in wrong.err, wrong


def test_a_job_that_does_not_wait(s3once, s3, s3_wire, bucket, job, tree):
    job("logs", f"source = {tree}/a.log\ntarget = s3://{bucket}/p\nno-wait = yes\n")
    held = s3_wire.add(faults.hold_request, "PutObject")
    first = s3once.start("push", tree / "a.log", f"s3://{bucket}/p")
    assert held.reached.wait(60), first.output()
    assert s3once("run", "logs").code == 4
    s3_wire.clear()
    assert first.wait(60).code == 0


def test_the_exit_status_is_that_of_the_worst_job(s3once, s3, bucket, job, tree):
    """And each job runs, whatever became of the one before."""
    os.symlink("loop", tree / "loop")
    job("good", f"source = {tree}/sub\ntarget = s3://{bucket}/good\n")
    job("files", f"source = {tree}\nsource = {tree}/no-such\ntarget = s3://{bucket}/files\n")
    job("setup", f"source = {tree}\ntarget = s3://{bucket}-none/setup\n")
    for names, code in [(["good"], 0), (["files"], 1), (["setup"], 3), (["files", "good"], 1), (["setup", "files", "good"], 3), (["files", "setup"], 3)]:
        run = s3once("run", *names, "--json")
        assert run.code == code, (names, run)
        assert [event["job"] for event in told(run, "summary")] == names
        assert max(event["exit"] for event in told(run, "summary")) == code
    run = s3once("run", "setup", "good")
    assert any(line.startswith("setup: ") for line in errors(run)), "what is about no file names its job"


@pytest.fixture
def noted(s3once, bucket, job, tree, tmp_path):
    """Jobs with variables of their own. Each run adds a line with what it has of all of them: the file, and each job's right line."""
    file = tmp_path / "noted"
    note = f'echo "$S3ONCE_JOB $OF $ONLY_ONE $GIVEN $AWS_SHARED_CREDENTIALS_FILE" >>{file}'
    for name, into in [("one", bucket), ("two", bucket), ("bare", bucket), ("broken", f"{bucket}-none")]:
        path = job(name, f"source = {tree}\ntarget = s3://{into}/{name}\nfull-scan = 1s\non-success = {note}\non-failure = {note}\n")
        if name != "bare":
            path.with_suffix(".env").write_text(f"OF={name}\n")
    (path.parent / "one.env").write_text("OF=before\nONLY_ONE=1\nGIVEN=in-the-file\nOF=one\n")  # as in systemd, the last one counts
    (path.parent / "two.credentials").write_text("[default]\n")
    s3once.environment["GIVEN"] = "given"
    s3once.environment.pop("AWS_SHARED_CREDENTIALS_FILE", None)
    return file, {
        "one": "one one 1 given ",
        "two": f"two two  given {path.parent}/two.credentials",
        "bare": "bare   given ",
        "broken": "broken broken  given ",
    }


def test_each_job_has_its_own_variables_alone(s3once, noted):
    """Those of its NAME.env and NAME.credentials, and none of a job before it, however that one ended. The environment wins."""
    file, lines = noted
    names = "one two one bare one broken two bare two broken bare broken one".split()  # each job follows each other one
    assert s3once("run", *names).code == 3
    assert file.read_text().splitlines() == [lines[name] for name in names]


def test_each_pass_has_the_variables_of_its_job_alone(s3once, noted):
    file, lines = noted
    watching = s3once.start("watch", *lines)
    wait_until(lambda: file.exists() and len(file.read_text().splitlines()) >= 3 * len(lines), 60, "several passes of each job")
    watching.popen.send_signal(signal.SIGTERM)
    assert watching.wait().code == 3
    assert set(file.read_text().splitlines()) == set(lines.values())


@pytest.mark.parametrize("sig, code", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_jobs_that_follow_too(s3once, s3, s3_wire, bucket, job, tree, sig, code):
    job("one", f"source = {tree}\ntarget = s3://{bucket}/1\n")
    job("two", f"source = {tree}\ntarget = s3://{bucket}/2\n")
    held = s3_wire.add(faults.hold_request, "PutObject")
    run = s3once.start("run", "one", "two", "--concurrency", "1")
    assert held.reached.wait(60), run.output()
    run.popen.send_signal(sig)
    wait_until(lambda: "s3once: stopping" in run.output()[1], 60, "the word that it stops")
    s3_wire.clear()
    run = run.wait(60)
    assert run.code == code and not [key for key in s3.objects(bucket) if key.startswith("2/")], run


@pytest.mark.skipif(os.geteuid() != 0, reason="what root is refused")
def test_root_is_refused_a_file_that_others_may_write(s3once, s3, bucket, job, tree):
    text = f"source = {tree}\ntarget = s3://{bucket}/p\n"
    path = job("logs", text, mode=0o666)
    run = s3once("run", "logs")
    assert run.code == 2 and errors(run) == [
        f"{path}: others than root may write it (mode 666), and root would do what they write into it; run: chmod go-w {path}"
    ]
    os.chmod(path, 0o664)
    os.chown(path, 0, 4)
    assert "(mode 664)" in s3once("run", "logs").err
    os.chown(path, 4, 0)
    assert f"it belongs to another user (uid 4), and root would do what that user writes into it; run: chown root {path}" in s3once("run", "logs").err
    os.chown(path, 0, 0)
    assert s3once("run", "logs").code == 0, "the group is root's"
    assert errors(s3once("run", path.parent)) == [f"{path.parent}: it cannot be read: Is a directory"]


def test_config_shows_what_is_in_force(s3once, s3, bucket, job, tree):
    path = job(
        "logs",
        f"source = {tree}\ntarget = s3://{bucket}/p\n\nexclude = *.tmp\nexclude = *.bak\nregion = eu-west-1\nmarks = sqlite:/m\ndry-run = no\n"
        f"request-timeout = 5s\nendpoint-url = {s3.endpoint}\nconcurrency = 3\nlease = 10s\n",
    )
    run = s3once("config", "logs", "--json", "--region", "eu-west-2", env={"AWS_REGION": "eu-west-3"})
    assert run.code == 0 and {event["job"] for event in run.events} == {"logs"}, run
    rows = [(event["name"], event["value"], event["from"]) for event in run.events]
    for name, value, line in [
        ("source", str(tree), 1),
        ("target", f"s3://{bucket}/p", 2),
        ("exclude", "*.tmp", 4),
        ("exclude", "*.bak", 5),
        ("marks", "sqlite:/m", 7),
        ("dry-run", "no", 8),
        ("request_timeout", "5s", 9),
        ("s3_endpoint", s3.endpoint, 10),
        ("concurrency", "3", 11),
        ("lease", "10s", 12),
    ]:
        assert rows.count((name, value, f"line {line} of {path}")) == 1, name
    assert [row for row in rows if row[0] == "region"] == [("region", "eu-west-2", "--region")]
    assert not [row for row in rows if row[0] in ("endpoint-url", "request-timeout")], "each thing is told once"
    assert [row for row in rows if row[0] == "locks"] == [("locks", "local", "default")]
    assert ("part-size", "16MiB", "default") in rows and ("if-changed", "fail", "default") in rows
    assert [row[1] for row in rows if row[0] == "lease"] == ["10s"]
    text = s3once("config", "logs").out
    assert f"line 5 of {path}" in text and text.startswith("source ")
    assert s3once("config", "logs", "other").code == 2
    job("logs", "source = x\n")
    run = s3once("config", "logs")
    assert run.code == 2 and len(errors(run)) == 2 and not run.out, run


def test_an_environment_file_alone_is_a_job(s3once, s3, bucket, job, tree):
    """Like those written before job files existed."""
    env = {"S3ONCE_SOURCE": str(tree), "S3ONCE_TARGET": f"s3://{bucket}/p"}
    run = s3once("run", "--exclude", "*.tmp", "photos", env=env)
    assert run.code == 0 and run.out.startswith("photos: all 2 files"), run
    job("photos", f"source = {tree}\ntarget = s3://{bucket}/q\n")
    assert s3once("run", "photos", env=env).out.startswith(f"photos: all 4 files are in s3://{bucket}/q")
    assert "there is no such file" in s3once("run", "other", env={"S3ONCE_SOURCE": str(tree)}).err


def test_every_option_of_push_can_stand_in_a_file(s3once, job):
    """Also one that is made tomorrow: what is not known is the value at most. A job has files and no command."""
    names = set(re.findall(r"^ {2,6}(?:-\w, )?--([a-z0-9-]+)", s3once("push", "--help", "all").out, re.M))
    names -= {"help", "spool"}
    assert len(names) > 50
    path = job("all", "".join(f"{name} = \n" for name in sorted(names)))
    run = s3once("run", "all")
    assert "unknown name" not in run.err
    refused = {int(number) for number in re.findall(rf"{path}:(\d+): ", run.err)}
    assert refused == set(range(1, len(names) + 1)), "an empty value is none of any option"
