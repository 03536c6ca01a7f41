"""OUTPUT of the manual pages: what a command prints on standard output, and what on standard error."""

import re

import pytest

from tests.system.harness import REPOSITORY, make_tree

PAGES = sorted((REPOSITORY / "docs" / "man").glob("*.1.scd"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_says_it_once(page):
    sections = re.findall(r"^# OUTPUT\n\n(.*?)\n\n", page.read_text(), re.M | re.S)
    assert len(sections) == 1, page
    said = " ".join(sections[0].split()).lower()
    assert "standard output" in said and "standard error" in said and ("exit status" in said or page.name == "s3once-version.1.scd"), said


@pytest.fixture
def host(s3once, s3, bucket, tmp_path):
    """Two files are uploaded by a job, and a third one is not; the object of the first is gone."""
    tree = make_tree(tmp_path / "tree", {"a": b"a", "b": b"b"})
    job = tmp_path / "job.conf"
    job.write_text(f"source = {tree}\ntarget = s3://{bucket}/p\nmanifest = yes\n")
    assert s3once("run", job).code == 0
    s3.client.delete_object(Bucket=bucket, Key="p/a")
    make_tree(tree, {"new": b"n"})
    return tree, job


def test_results_and_all_else(s3once, bucket, host):
    tree, job = host
    target = f"s3://{bucket}/p"
    wrong = []
    # command, its status, what is on standard output, and what is on standard error ("": nothing)
    for command, code, out, err in [
        (["push", "-n", "-v", tree, target], 0, r"would upload .*new", r"marks"),
        (["verify", target], 1, r"^. p/a$", r"1 object is as its mark says, .*1 missing"),
        (["proven", tree / "b", tree / "new", target], 1, r"in S3: .*b\n(.*\n)*.*new", ""),
        (["status", target], 0, r"done 2 files", ""),
        (["fleet"], 0, r"ok .*\n1 job: 1 fine", ""),
        (["forget", f"{target}/b"], 0, r"p/b\n", ""),
        (["gc", target], 0, r".", ""),
        (["config", job], 0, r"target", ""),
        (["doctor", target], None, r".", ""),
        (["manifest", target], 0, r"^p/_s3once/runs/", ""),
        (["init", "--marks", "local"], 0, r"ready", ""),
        (["version"], 0, r"^s3once ", ""),
        (["lock", "acquire", "--locks", "local", "--lease", "60s", "night"], 0, r".", ""),
        (["lock", "status", "--locks", "local", "night"], None, r"night", ""),
    ]:
        run = s3once(*command)
        is_right = code in (None, run.code) and re.search(out, run.out, re.M) and (re.search(err, run.err) if err else not run.err)
        wrong += [] if is_right else [run]
    assert not wrong, "\n".join(map(repr, wrong))


@pytest.mark.parametrize(
    "command",
    [["push", "{tree}", "s3://x"], ["verify", "s3://x"], ["proven", "{tree}", "s3://x"], ["status", "s3://x"], ["fleet"], ["forget", "s3://x/y"], ["gc", "s3://x"], ["manifest", "s3://x"], ["lock", "status", "night"]],
    ids=lambda command: command[0],
)
def test_an_error_is_on_standard_error_alone(s3once, tmp_path, command):
    tree = make_tree(tmp_path / "tree", {"a": b"a"})
    place = "--locks" if command[0] == "lock" else "--marks"
    words = [word.format(tree=tree) for word in command] + ([] if command[0] == "manifest" else [place, f"sqlite:{tmp_path}/tree/a/m.db"])
    run = s3once(*words)
    assert run.code not in (0, 1) and not run.out and run.err.startswith("s3once: "), run
