"""docs/questions.md: its commands do what it says, in its order; only names are replaced."""

import re
import shlex

import pytest

from tests.faults import faults
from tests.system.harness import REPOSITORY, fresh_name, make_tree, wait_until
from tests.system.pushing import counts

PAGE = (REPOSITORY / "docs" / "questions.md").read_text()
COMMANDS = [line for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S) for line in block.splitlines()]


def test_each_question_has_a_short_answer_and_a_command():
    questions = PAGE.split("\n## ")[1:]
    assert len(questions) == 9
    for question in questions:
        title, _, rest = question.partition("\n")
        answer, command = rest.split("```sh\n")
        assert (title.endswith("?") or title.endswith("What now?")) and len(answer.strip().splitlines()) <= 3, title
        assert command.startswith("s3once "), title


@pytest.fixture
def old(s3):
    """Another bucket, emptied and removed afterwards."""
    name = fresh_name("bucket")
    s3.client.create_bucket(Bucket=name)
    yield name
    s3.remove_bucket(name)


def test_the_commands_of_the_page(s3once, s3, bucket, old, tmp_path):
    logs = bucket
    s3once.environment.pop("S3ONCE_MARKS", None)
    s3once.environment["S3ONCE_JOBS"] = str(tmp_path)
    disk = make_tree(tmp_path / "disk", {"a": 10, "b/c": 20})
    app = make_tree(tmp_path / "app", {"app.log": 30})
    source = make_tree(tmp_path / "nginx", {"access.log.1": 40})
    (tmp_path / "nginx.conf").write_text(f"source = {source}\ntarget = s3://{logs}/nginx\n")
    for target, tree in ((f"{logs}/disk", disk), (old, disk)):
        assert s3once("push", tree, f"s3://{target}").code == 0
    assert s3once("run", "nginx").code == 0
    names = {"/mnt/disk": disk, "/var/log/app": app, "my-logs": logs, "old-logs": old}
    printed = {}
    for line in COMMANDS:
        words = shlex.split(re.split("&&|;", line)[0])[1:]
        for name, instead in names.items():
            words = [word.replace(name, str(instead)) for word in words]
        run = s3once(*words)
        assert run.code == 0, (line, run)
        printed[words[0]] = run.out + run.err
    assert "all 2 files are in S3" in printed["proven"]
    assert "/nginx: succeeded" in printed["status"]
    assert "1 object is as its mark says" in printed["verify"]
    assert "forgot 2 marks" in printed["forget"]
    assert s3.get(logs, "web1/app.log")


def test_two_runs_overlap(s3once, s3, s3_wire, bucket, tmp_path):
    """No file is sent twice: the second run waits for what the first one holds, and both end with 0."""
    s3once.environment["S3ONCE_MARKS"] = f"sqlite:{tmp_path}/m.db"
    tree = make_tree(tmp_path / "tree", {"a": 10, "b": 20})
    rule = s3_wire.add(faults.hold_request, "PutObject", key="a")
    first = s3once.start("push", "--json", tree, f"s3://{bucket}")
    assert rule.reached.wait(60), first.output()
    run = s3once("push", "-q", "--no-wait", tree, f"s3://{bucket}")
    assert run.code == 4 and f"warning: {tree}/a: held by another uploader" in run.err, run
    second = s3once.start("push", "--json", tree, f"s3://{bucket}")
    wait_until(lambda: '"held"' in second.output()[0], 60, "the wait for the first one")
    rule.released.set()
    runs = [first.wait(), second.wait()]
    assert [run.code for run in runs] == [0, 0], runs
    assert sum(counts(run).get("uploaded", 0) for run in runs) == 2, runs
    assert sorted(s3.objects(bucket)) == ["a", "b"]


@pytest.mark.real_s3
def test_another_bucket(s3once, s3, bucket, old, tmp_path):
    """Every file is uploaded there once more, unless its object was copied there before."""
    s3once.environment["S3ONCE_MARKS"] = f"sqlite:{tmp_path}/m.db"
    tree = make_tree(tmp_path / "tree", {"a": 10, "b": 20})
    assert s3once("push", tree, f"s3://{old}/p").code == 0
    s3.client.copy_object(Bucket=bucket, Key="p/a", CopySource={"Bucket": old, "Key": "p/a"})
    run = s3once("push", "--json", tree, f"s3://{bucket}/p")
    assert run.code == 0 and counts(run) == {"adopted": 1, "uploaded": 1}, run


def test_quiet_for_cron(s3once, bucket, tmp_path):
    s3once.environment["S3ONCE_MARKS"] = f"sqlite:{tmp_path}/m.db"
    tree = make_tree(tmp_path / "tree", {f"{n:03}": 20000 for n in range(100)})
    run = s3once("push", "-q", "--max-transfer", "100K", "--concurrency", "1", tree, f"s3://{bucket}")
    assert run.code == 6 and run.err, run
    run = s3once("push", "-q", tree, f"s3://{bucket}")
    assert (run.code, run.out, run.err) == (0, "", ""), run
