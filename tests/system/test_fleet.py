"""`s3once fleet`: what runs leave behind of themselves in the marks, and what it says of them."""

import os
import subprocess
import re
import shutil
import signal
import time

import pytest

from tests.faults import faults
from tests.system.harness import fresh_name, make_tree
from tests.system.test_cli import assert_setup_error


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree", {"a.txt": b"a", "b.txt": b"bb"})


@pytest.fixture(params=["local", "dynamodb"])
def marks(request, s3once):
    """A program with marks of either kind, set up."""
    if request.param == "local":
        return "local"
    name = fresh_name("table")
    s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = request.getfixturevalue("dynamodb").endpoint
    s3once.environment["S3ONCE_MARKS"] = f"dynamodb:{name}"
    assert s3once("init").code == 0
    return f"dynamodb:{name}"


def job_file(folder, name, tree, target, **more):
    folder.mkdir(exist_ok=True)
    lines = {"source": tree, "target": target, **more}
    (folder / f"{name}.conf").write_text("".join(f"{key.replace('_', '-')} = {value}\n" for key, value in lines.items()))


@pytest.fixture
def run_job(s3once, tmp_path, tree, bucket):
    """run_job(name, options of the file): runs a job of that name, or starts it (how=s3once.start)."""

    def run(name, *args, how=s3once, **more):
        job_file(tmp_path / "jobs", name, tree, f"s3://{bucket}/p", **more)
        return how("run", *args, str(tmp_path / "jobs" / f"{name}.conf"))

    return run


def fleet(s3once, *args, code=0):
    """({job: event}, the sums)."""
    run = s3once("fleet", "--json", *args)
    assert run.code == code, run
    *jobs, sums = run.events
    assert sums["event"] == "fleet" and sums["exit"] == code and {each["event"] for each in jobs} <= {"job"}, run
    return {each["job"]: each for each in jobs}, sums


@pytest.mark.parametrize("marks", ["local", pytest.param("dynamodb", marks=pytest.mark.smoke)], indirect=True)
def test_each_job_has_a_row(s3once, s3, bucket, tree, marks, run_job):
    """By the name of its file, or else by its sources and its target; success is kept when a run fails."""
    assert run_job("nginx").code == 0
    assert s3once("push", tree, f"s3://{bucket}/q").code == 0
    jobs, sums = fleet(s3once)
    assert jobs.keys() == {"nginx", f"{tree} s3://{bucket}/q"} and (sums["jobs"], sums["fine"]) == (2, 2)
    nginx = jobs["nginx"]
    assert nginx["host"] == os.uname().nodename and nginx["target"] == f"s3://{bucket}/p"
    assert (nginx["state"], nginx["exit"], nginx["error"], nginx["session"]) == ("idle", 0, "", None)
    assert (nginx["files_uploaded"], nginx["files_failed"], nginx["bytes_uploaded"]) == (2, 0, 3)
    assert nginx["ended"] == nginx["succeeded"] >= nginx["began"]

    (tree / "a.txt").write_bytes(b"other")
    assert run_job("nginx").code == 1
    jobs, sums = fleet(s3once, code=1)
    failed = jobs["nginx"]
    assert (failed["exit"], failed["failed"], failed["fine"], failed["files_failed"]) == (1, True, False, 1)
    assert failed["succeeded"] == nginx["succeeded"] and "a.txt: " in failed["error"]
    assert (sums["fine"], sums["failed"]) == (1, 1)

    assert run_job("nginx", if_changed="replace").code == 0
    jobs, _ = fleet(s3once)
    assert jobs["nginx"]["fine"] and jobs["nginx"]["error"] == ""


@pytest.mark.parametrize("marks", ["local"], indirect=True)
def test_table_for_people(s3once, s3, bucket, tree, marks, run_job):
    assert run_job("good").code == 0
    (tree / "a.txt").write_bytes(b"other")
    assert run_job("bad").code == 1
    host = os.uname().nodename
    run = s3once("fleet")
    assert run.code == 1 and run.err == ""
    bad, why, good, sums = run.out.splitlines()
    assert bad.startswith(f"failed   {host}/bad: exit status 1, ") and bad.endswith("; no success yet")
    assert f"{tree}/a.txt: " in why and why.startswith("         ")
    assert good.startswith(f"ok       {host}/good: succeeded ") and good.endswith(" ago, uploaded 2 files (3 B)")
    assert sums == "2 jobs: 1 fine, 1 failed"
    quiet = s3once("fleet", "--quiet").out.splitlines()
    assert quiet[0].startswith(f"failed   {host}/bad: ") and quiet[1:] == [why, sums]


def row_key(client, marks, job):
    rows = client.query(
        TableName=marks.partition(":")[2], KeyConditionExpression="pk = :jobs", ExpressionAttributeValues={":jobs": {"S": "jobs"}}
    )["Items"]
    (key,) = [row["sk"]["S"] for row in rows if row["sk"]["S"].split("/", 2)[2] == job]
    return key


def set_row(marks, s3once, dynamodb_client, job, **values):
    """Sets the row's times as if its run had been long ago."""
    sk = row_key(dynamodb_client, marks, job)
    dynamodb_client.update_item(
        TableName=marks.partition(":")[2],
        Key={"pk": {"S": "jobs"}, "sk": {"S": sk}},
        UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in values),
        ExpressionAttributeNames={f"#{name}": name for name in values},
        ExpressionAttributeValues={f":{name}": {"N": str(value)} for name, value in values.items()},
    )


@pytest.mark.parametrize("marks", ["dynamodb"], indirect=True)
def test_overdue(s3once, s3, dynamodb, bucket, tree, marks, run_job):
    """The last success of a job counts, not its last run."""
    assert run_job("new").code == run_job("old").code == 0
    now = int(time.time())
    set_row(marks, s3once, dynamodb.client, "old", succeeded=now - 27 * 3600, exit=4)
    jobs, sums = fleet(s3once)
    assert sums["fine"] == 2 and not jobs["old"]["overdue"]
    jobs, sums = fleet(s3once, "--expect", "26h", code=1)
    assert (jobs["old"]["overdue"], jobs["new"]["overdue"], sums["overdue"]) == (True, False, 1)
    run = s3once("fleet", "--expect", "26h", "-q")
    assert run.code == 1 and run.out.startswith("overdue  ") and "last success 27 h ago" in run.out
    assert s3once("fleet", "--expect", "28h").code == 0
    set_row(marks, s3once, dynamodb.client, "old", succeeded=now - 27 * 3600, exit=1)
    jobs, sums = fleet(s3once, "--expect", "26h", code=1)
    assert jobs["old"]["failed"] and jobs["old"]["overdue"] and (sums["fine"], sums["failed"], sums["overdue"]) == (1, 1, 0)
    run = s3once("fleet", "--expect", "26h")
    assert "last success 27 h ago; overdue" in run.out and "2 jobs: 1 fine, 1 failed\n" in run.out, run


def test_run_that_is_at_work_or_was_killed(s3once, s3_wire, bucket, tree, marks, run_job):
    """Its session says so; a later run of the job that ends makes it good."""
    rule = s3_wire.add(faults.hold_request, "PutObject", key="p/a.txt")
    holder = run_job("nginx", how=s3once.start)
    assert rule.reached.wait(60), holder.output()
    jobs, sums = fleet(s3once)
    nginx = jobs["nginx"]
    assert (nginx["state"], nginx["exit"], nginx["fine"], sums["running"]) == ("running", None, True, 1)
    assert nginx["session"]["open"] and nginx["session"]["lease_ms"] == 30000 and nginx["session"]["silent_seconds"] < 30
    assert fleet(s3once, "--expect", "1h")[1]["overdue"] == 0, "its first run is not over"
    run = s3once("fleet")
    assert run.code == 0 and run.out.startswith("running  ") and "no success yet" in run.out
    assert "with 0 files" not in run.out, "it has not sent a heartbeat yet"
    run = s3once("fleet", "--forget", os.uname().nodename)
    assert run.code == 1 and "kept: " in run.out and "a run of it is at work" in run.out

    os.kill(holder.pid, signal.SIGKILL)
    holder.popen.wait()
    rule.released.set()
    jobs, sums = fleet(s3once, code=1)
    assert (jobs["nginx"]["state"], sums["silent"]) == ("silent", 1) and jobs["nginx"]["session"]["gone"]
    run = s3once("fleet")
    assert run.out.startswith("silent   ") and "its process is gone" in run.out
    assert run_job("nginx").code == 0
    jobs, _ = fleet(s3once)
    assert (jobs["nginx"]["state"], jobs["nginx"]["session"]) == ("idle", None)


@pytest.mark.parametrize("marks", ["local"], indirect=True)
def test_heartbeats_say_how_many_files_are_under_way(s3once, s3_wire, bucket, tree, marks, run_job):
    rule = s3_wire.add(faults.hold_request, "PutObject", key="p/a.txt")
    holder = run_job("nginx", "--lease", "2s", how=s3once.start)
    assert rule.reached.wait(60), holder.output()
    deadline = time.monotonic() + 60
    while not (files := fleet(s3once)[0]["nginx"]["session"]["files"]):
        assert time.monotonic() < deadline
    assert files in (1, 2)
    assert re.search(r"with (1 file|2 files) under way at the last heartbeat \d+ s ago; ", s3once("fleet").out)
    rule.released.set()
    assert holder.wait().code == 0


@pytest.mark.parametrize("marks", ["dynamodb"], indirect=True)
def test_run_that_ended_without_a_word(s3once, s3, dynamodb, bucket, tree, marks, run_job):
    """Its session is over, or swept, and no run of the job has ended since."""
    assert run_job("nginx").code == 0
    key = {"pk": {"S": "jobs"}, "sk": {"S": row_key(dynamodb.client, marks, "nginx")}}
    dynamodb.client.update_item(
        TableName=marks.partition(":")[2],
        Key=key,
        UpdateExpression="SET #session = :id, began = began + :day",
        ExpressionAttributeNames={"#session": "session"},
        ExpressionAttributeValues={":id": {"S": "0" * 32}, ":day": {"N": "86400"}},
    )
    jobs, sums = fleet(s3once, code=1)
    assert (jobs["nginx"]["state"], jobs["nginx"]["session"], sums["lost"]) == ("lost", None, 1)
    assert "did not say how it ended" in s3once("fleet").out


@pytest.mark.parametrize("marks", ["dynamodb"], indirect=True)
def test_stopped_and_dry_runs(s3once, s3_wire, bucket, tree, marks, run_job):
    """A stop is neither failure nor success; a dry run leaves no trace."""
    assert run_job("nginx", "--dry-run").code == 0
    assert_setup_error(s3once("fleet"), "no run with these marks has said yet")
    rule = s3_wire.add(faults.hold_request, "PutObject")
    holder = run_job("nginx", "--grace", "0s", how=s3once.start)
    assert rule.reached.wait(60), holder.output()
    os.kill(holder.pid, signal.SIGTERM)
    assert holder.wait().code == 143
    rule.released.set()
    jobs, sums = fleet(s3once)
    assert (jobs["nginx"]["exit"], jobs["nginx"]["state"], jobs["nginx"]["fine"]) == (128, "idle", True)
    assert "stopped before its end" in s3once("fleet").out


@pytest.mark.parametrize("marks", ["dynamodb"], indirect=True)
def test_forget(s3once, s3, bucket, tree, marks, run_job):
    """The rows of a host or a job are removed; the marks of its files stay."""
    host = os.uname().nodename
    assert run_job("a").code == run_job("b").code == run_job("ab").code == 0
    run = s3once("fleet", "--forget", f"{host}/a")
    assert (run.code, run.out) == (0, f"forgotten: {host}/a\n"), run
    assert fleet(s3once)[0].keys() == {"ab", "b"}
    run = s3once("fleet", "--forget", host[:-1] or "x")
    assert run.code == 1 and "know no run of" in run.err
    run = s3once("fleet", "--json", "--forget", host)
    assert run.code == 0 and [(each["event"], each["job"]) for each in run.events] == [("forgotten", "ab"), ("forgotten", "b")]
    assert_setup_error(s3once("fleet"), "no run with these marks has said yet")
    assert "done 2 files" in s3once("status", f"s3://{bucket}").out


@pytest.mark.parametrize("marks", ["local"], indirect=True)
def test_files_of_a_folder_are_one_job(s3once, s3, bucket, tree, marks):
    """Each night's files have other names."""
    for names in (["a.txt"], ["a.txt", "b.txt"], ["b.txt"]):
        assert s3once("push", *[tree / name for name in names], f"s3://{bucket}").code == 0
    assert fleet(s3once)[0].keys() == {f"{tree}/* s3://{bucket}"}


@pytest.mark.parametrize("marks", ["local"], indirect=True)
def test_folders_whose_paths_end_alike_are_two(s3once, s3, bucket, tmp_path, marks):
    inner = make_tree(tmp_path / "data", {"a": 10})
    outer = make_tree(tmp_path / "srv" / str(inner).lstrip("/"), {"b": 10})
    assert s3once("push", "--marks", marks, outer, inner, f"s3://{bucket}").code == 0
    assert fleet(s3once)[0].keys() == {f"{outer} {inner} s3://{bucket}"}


def test_outputs_of_a_folder_are_one_job(s3once, s3, bucket, marks):
    """Each night's output has another name. What another folder gets is another job, so that its success hides no failure."""
    for key, code in (("one/1", 0), ("one/2", 3), ("two/1", 0), ("top", 0)):
        run = s3once("push", f"s3://{bucket}/{key}", "--", "sh", "-c", f"echo a line; exit {code}")
        assert (run.code == 0) == (code == 0), run
    jobs, _ = fleet(s3once, code=1)
    assert {job: each["failed"] for job, each in jobs.items()} == {
        f"sh s3://{bucket}/one/": True,
        f"sh s3://{bucket}/two/": False,
        f"sh s3://{bucket}": False,
    }


@pytest.mark.parametrize("marks", ["dynamodb"], indirect=True)
def test_long_and_strange_names(s3once, s3, bucket, tmp_path, marks):
    """Keys of DynamoDB are text, and have limits."""
    deep = tmp_path / "/".join(["ü" * 100] * 5)
    strange = tmp_path / os.fsdecode(b"a\xff\n\x1b[31m")
    for folder in (deep, strange):
        make_tree(folder, {"x": b"x"})
        assert s3once("push", folder, f"s3://{bucket}/p").code == 0
    jobs, _ = fleet(s3once)
    assert len(jobs) == 2 and all(len(job.encode()) <= 700 and "\x1b" not in job for job in jobs)
    assert sum("..." in job for job in jobs) == 1
    assert "\x1b" not in s3once("fleet").out


@pytest.mark.parametrize("marks", ["local"], indirect=True)
def test_forget_takes_the_name_that_fleet_shows(s3once, s3, bucket, marks, run_job):
    for name in ("back\\slash", "new\nline"):
        assert run_job(name).code == 0
    shown = [line.split()[1].removesuffix(":") for line in s3once("fleet").out.splitlines()[:-1]]
    host = os.uname().nodename
    assert shown == [f"{host}/back\\\\slash", f"{host}/new\\nline"]
    for name in shown:
        run = s3once("fleet", "--forget", name)
        assert (run.code, run.out) == (0, f"forgotten: {name}\n"), run


@pytest.mark.parametrize("marks", ["local"], indirect=True)
def test_a_push_is_shown_as_it_was_typed(s3once, s3, bucket, tree, marks):
    assert s3once("push", tree, f"s3://{bucket}/q").code == 0
    name = f"{os.uname().nodename} push {tree} s3://{bucket}/q"
    assert s3once("fleet").out.startswith(f"ok       {name}: succeeded ")
    run = s3once("fleet", "--forget", name)
    assert (run.code, run.out) == (0, f"forgotten: {name}\n"), run


@pytest.mark.parametrize("marks", ["dynamodb"], indirect=True)
def test_other_commands_leave_the_rows_alone(s3once, s3, bucket, tree, marks, run_job):
    assert run_job("nginx").code == 0
    before, _ = fleet(s3once)
    assert s3once("status", f"s3://{bucket}").out.count("done 2 files") == 1
    assert s3once("verify", f"s3://{bucket}").code == 0
    assert s3once("gc", f"s3://{bucket}").code == 0
    assert s3once("forget", "--yes", f"s3://{bucket}").code == 0
    after, _ = fleet(s3once)
    assert [each.pop("time") for each in (before["nginx"], after["nginx"])] and before == after


# --- hosts that share a name


def on_machine(tmp_path, number):
    """A host `twin` of its own, with a machine id of its own; 0: with none."""
    path = tmp_path / f"machine-id-{number}"
    path.write_text(f"{number:032x}\n" if number else "")
    script = 'hostname twin && mount --bind "$0" /etc/machine-id && exec "$@"'
    return {"wrap": ("unshare", "--uts", "--mount", "sh", "-c", script, str(path))}


@pytest.fixture
def twins(s3once, bucket, tmp_path, marks):
    """twins(number of a machine, exit status): a night of it, which fails for want of a file that it should send."""

    def run(number, code):
        tree = make_tree(tmp_path / str(number), {"a.txt": b"a"})
        job_file(tmp_path / f"jobs{number}", "nginx", f"{tree}\nsource = {tree}/missing" if code else tree, f"s3://{bucket}/{number}")
        got = s3once("run", str(tmp_path / f"jobs{number}" / "nginx.conf"), **on_machine(tmp_path, number))
        assert got.code == code, got

    return run


def test_a_success_of_one_host_hides_no_failure_of_another_with_its_name(s3once, s3, twins):
    twins(1, 1)
    twins(2, 0)
    run = s3once("fleet", "--quiet")
    assert run.code == 1 and re.match(r"failed   twin@[0-9a-f]{12}/nginx: exit status 1, ", run.out), run
    assert "2 jobs: 1 fine, 1 failed" in run.out, run
    first, second = s3once("fleet", "--json").events[:-1]
    assert first["machine"] != second["machine"] and {first["host"], second["host"]} == {"twin"}, (first, second)
    twins(1, 0)
    run = s3once("fleet", "--quiet")
    assert run.code == 0 and run.out == "2 jobs: 2 fine\n", run
    gone = f"twin@{first['machine']}"
    run = s3once("fleet", "--forget", gone)
    assert run.code == 0 and run.out == f"forgotten: {gone}/nginx\n", run
    run = s3once("fleet")
    assert run.code == 0 and run.out.startswith("ok       twin/nginx: ") and "1 job: 1 fine" in run.out, run


@pytest.mark.parametrize("marks", ["dynamodb"], indirect=True)
def test_a_host_that_was_installed_again_leaves_nothing_to_do(s3once, s3, dynamodb, marks, twins):
    """It has another machine id, and the row of the one before counts no more once the job has succeeded."""
    twins(1, 1)
    (old,) = s3once("fleet", "--json").events[:-1]
    long_ago = int(time.time()) - 7 * 24 * 3600
    set_row(marks, s3once, dynamodb.client, "nginx", first=long_ago, began=long_ago, ended=long_ago)
    twins(2, 1)
    run = s3once("fleet", "--quiet")
    assert run.code == 1 and "2 jobs: 0 fine, 2 failed" in run.out, run
    twins(2, 0)
    run = s3once("fleet", "--expect", "26h")
    assert run.code == 0 and run.out.startswith("ok       twin/nginx: ") and "1 job: 1 fine" in run.out, run
    (event, sums) = s3once("fleet", "--json").events
    assert event["machine"] != old["machine"] and sums["jobs"] == 1, event
    # The old one was not gone.
    twins(1, 1)
    assert "2 jobs: 1 fine, 1 failed" in s3once("fleet").out
    assert s3once("fleet", "--forget", "twin/nginx").out.count("forgotten: twin@") == 2


@pytest.mark.parametrize("marks", ["local"], indirect=True)
def test_containers_without_a_machine_id_share_a_row(s3once, s3, twins):
    twins(0, 1)
    twins(0, 0)
    (event, sums) = s3once("fleet", "--json").events
    assert event["machine"] is None and event["fine"] and sums["jobs"] == 1, event


def test_bad_command_lines(s3once, s3):
    run = s3once("fleet", "web1")
    assert run.code == 2 and "it takes no operand" in run.err
    run = s3once("fleet", "--forget", "web1", "--expect", "1h")
    assert run.code == 2 and "--forget" in run.err and "--expect" in run.err
    assert_setup_error(s3once("fleet"), "there are no marks at .*/marks.db yet")


# --- what it costs, and what happens if the row cannot be written


def row_writes(wire, before=0):
    return [record.kind for record in wire.history[before:] if record.kind.endswith(":job")]


def test_one_or_two_writes_a_run(s3once, s3, bucket, tree, dynamodb_wire, table, run_job):
    """A run that finds nothing to upload writes once. The first run of a job makes the row first. To read many rows takes few requests."""
    assert s3once("init").code == 0
    for first in (True, False):
        before = len(dynamodb_wire.history)
        (tree / "a.txt").write_bytes(b"first" if first else b"other")
        assert run_job("nginx", if_changed="replace").code == 0
        assert row_writes(dynamodb_wire, before) == ["UpdateItem:job", "GetItem:job"] * first + ["UpdateItem:job"] * 2
    before = len(dynamodb_wire.history)
    assert run_job("nginx").code == 0
    assert row_writes(dynamodb_wire, before) == ["UpdateItem:job"]
    before = len(dynamodb_wire.history)
    fleet(s3once)
    assert [record.kind for record in dynamodb_wire.history[before:]] == ["GetItem:settings", "Query"]


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(faults.answer(400, "AccessDeniedException"), id="denied"),
        pytest.param(faults.answer(400, "ProvisionedThroughputExceededException"), id="throttled", marks=pytest.mark.full),
        pytest.param(faults.hang, id="hangs", marks=pytest.mark.full),
    ],
)
def test_row_that_cannot_be_written_is_a_warning(s3once, s3, bucket, tree, dynamodb_wire, table, run_job, fault):
    """The files are in S3, and that is what the exit status says."""
    assert s3once("init").code == 0
    assert run_job("nginx").code == 0
    dynamodb_wire.add(fault, "UpdateItem:job", times=None)
    run = run_job("nginx", "--json")
    assert run.code == 0 and "warning: " in run.err and "s3once fleet does not show how this run ended" in run.err, run
    assert [each for each in run.events if each["event"] == "warning"]
    make_tree(tree, {"c.txt": b"ccc"})
    assert run_job("nginx").code == 0


def test_lost_reply_to_the_row(s3once, s3, bucket, tree, dynamodb_wire, table, run_job):
    """It is written again as it was."""
    assert s3once("init").code == 0
    rule = dynamodb_wire.add(faults.drop_reply, "UpdateItem:job", times=None, where=lambda record: "exit" in record.operation.sets and not rule.fired)
    run = run_job("nginx")
    assert run.code == 0 and run.err.count("warning") == 0, run
    assert rule.fired and fleet(s3once)[0]["nginx"]["exit"] == 0


@pytest.mark.parametrize("marks", ["local"], indirect=True)
def test_a_mistyped_target_ends_with_the_right_one(s3once, s3, bucket, tree, marks):
    """A push by hand to a bucket that is not there: the same files in the right one make up for it, and no other success does."""
    assert s3once("push", tree, f"s3://{bucket}-typo/web1").code == 3
    assert s3once("push", tree / "a.txt", f"s3://{bucket}/other").code == 0
    run = s3once("fleet", "--quiet")
    assert run.code == 1 and run.out.startswith("failed "), run
    assert s3once("push", tree, f"s3://{bucket}/web1").code == 0
    run = s3once("fleet", "--quiet")
    assert run.code == 0 and run.out == "3 jobs: 3 fine\n", run
    run = s3once("fleet")
    assert "replaced " in run.out and "were uploaded to another target since" in run.out, run
    assert [event["replaced"] for event in s3once("fleet", "--json").events[:-1]].count(True) == 1


@pytest.mark.parametrize("marks", ["dynamodb"], indirect=True)
def test_a_second_target_that_fails_each_night_is_no_typo(s3once, s3, dynamodb, bucket, tree, marks):
    """The copy of another region, which never worked: the success of the first one does not make up for it."""
    second = f"s3://{bucket}-second/web1"
    for night in range(2):
        assert s3once("push", tree, second).code == 3
        assert s3once("push", tree, f"s3://{bucket}/web1").code == 0
        run = s3once("fleet", "--quiet")
        assert (run.code, "failed " in run.out) == (night, night == 1), run
        (job,) = (event["job"] for event in s3once("fleet", "--json").events[:-1] if event["target"] == second)
        set_row(marks, s3once, dynamodb.client, job, failed_since=int(time.time()) - 24 * 3600)


@pytest.mark.parametrize("source", ["tree/dump.sql", "tree"])
def test_a_source_that_was_missing_for_a_night(s3once, s3, bucket, tmp_path, source, marks):
    """The failure is in the row of the job that misses it, and the next success clears it; a relative path names the same job."""
    path = tmp_path / source
    for night in ("first", "missing", "back"):
        make_tree(tmp_path, {} if night == "missing" else {"tree/dump.sql" if source == "tree" else source: night.encode()})
        if night == "missing":
            path.rename(tmp_path / "gone")
        given = path if night == "first" else source
        assert s3once("push", "--if-changed=replace", given, f"s3://{bucket}/n", cwd=tmp_path).code == (1 if night == "missing" else 0)
        jobs, _ = fleet(s3once, code=1 if night == "missing" else 0)
        assert len(jobs) == 1 and [each["failed"] for each in jobs.values()] == [night == "missing"], jobs


@pytest.mark.parametrize("marks", ["local"], indirect=True)
def test_a_mistyped_source_leaves_no_job(s3once, s3, bucket, tree, marks):
    """Nothing would correct its row. But a SOURCE that may not be reached is a job that fails."""
    for typo in (tree / "c.txt", f"{tree}s/", tree / "none" / "c.txt", "typo"):
        assert s3once("push", typo, f"s3://{bucket}/p").code == 1
    assert s3once("push", tree, tree / "c.txt", f"s3://{bucket}/p").code == 1
    assert "no run with these marks" in s3once("fleet").err
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    assert len(fleet(s3once)[0]) == 1


@pytest.mark.parametrize("marks", ["local"], indirect=True)
def test_an_idle_night_is_told_as_one(s3once, s3, bucket, tree, marks):
    for _ in range(2):
        assert s3once("push", tree, f"s3://{bucket}/web1").code == 0
    run = s3once("fleet")
    assert run.code == 0 and "nothing new " in run.out and "; last upload " in run.out and "succeeded" not in run.out, run


@pytest.mark.parametrize("marks", ["local"], indirect=True)
def test_a_run_that_found_no_files_is_told_as_one(s3once, s3, bucket, tree, marks):
    """Its folder had files the night before: perhaps it is on another disk by now."""
    command = ("push", tree, f"s3://{bucket}/web1")
    assert s3once(*command).code == 0
    shutil.rmtree(tree)
    tree.mkdir()
    assert s3once(*command).code == 0
    for shown in (s3once("fleet"), s3once("status", f"s3://{bucket}/web1")):
        assert "found no files " in shown.out and "; last upload " in shown.out and "nothing new" not in shown.out, shown
    (job,) = fleet(s3once)[0].values()
    assert job["files_found"] == 0 and job["fine"] and job["last_upload"], job


def test_a_full_disk_hides_no_failure(s3once, s3, bucket, tree, tmp_path):
    """The run that met it could not write down that it failed: the marks show the success before."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", disk], check=True)
    try:
        marks = ("--marks", f"sqlite:{disk}/m.db")
        assert s3once("push", *marks, tree, f"s3://{bucket}/web1").code == 0
        run = s3once("fleet", *marks)
        assert run.code == 0 and run.err == "", run
        with open(disk / "fill", "wb", buffering=0) as fill:
            for step in (4096, 512):
                try:
                    while True:
                        fill.write(bytes(step))
                except OSError:
                    pass
        (tree / "new").write_bytes(b"new")
        assert s3once("push", *marks, tree, f"s3://{bucket}/web1").code != 0
        run = s3once("fleet", "--quiet", *marks)
        assert run.code != 0 and "is full" in run.err, run
        run = s3once("status", *marks, f"s3://{bucket}/web1")
        assert "is full" in run.err and "may not have recorded how they ended" in run.err, run
    finally:
        subprocess.run(["umount", disk], check=True)
