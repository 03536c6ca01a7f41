"""The harness itself: what it says of a program must be true, or no other test means anything. The program here is a shell."""

import time
from pathlib import Path

import pytest

from tests.system.harness import Program, make_tree, wait_until


class Shell(Program):
    def binary(self):
        return "/bin/sh"


@pytest.fixture
def shell(tmp_path):
    program = Shell(tmp_path)
    yield program
    program.kill_all()


@pytest.fixture(autouse=True)
def no_wrapper(monkeypatch):
    monkeypatch.setattr("tests.system.harness.WRAP", [])


def test_code_output_and_input_are_those_of_the_program(shell):
    run = shell("-c", "cat; echo no >&2; exit 3", stdin=b'{"a": 1}\n')
    assert (run.code, run.events, run.err) == (3, [{"a": 1}], "no\n")


def test_nothing_of_this_environment_reaches_the_program(shell, monkeypatch):
    monkeypatch.setenv("AWS_CA_BUNDLE", "x")
    monkeypatch.setenv("HTTPS_PROXY", "x")
    names = {line.split("=")[0] for line in shell("-c", "env", env={"MORE": "1", "LANG": None}).out.splitlines()}
    assert "MORE" in names and not names & {"AWS_CA_BUNDLE", "HTTPS_PROXY", "LANG"}


def has_died(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_a_run_that_does_not_end_is_killed_with_its_children(shell, tmp_path):
    begun = time.monotonic()
    with pytest.raises(AssertionError, match="(?s)not ended after 0.5 s.*begun"):
        shell("-c", "echo begun; sleep 60 & echo $! >pid; wait", timeout=0.5)
    assert time.monotonic() - begun < 10
    pid = (tmp_path / "pid").read_text().strip()
    wait_until(lambda: has_died(pid), 60, "the end of its child")


@pytest.mark.parametrize("end", ["kill -SEGV $$", "exit 99"])
def test_a_crash_is_never_an_exit_code(shell, end):
    with pytest.raises(AssertionError, match="crashed"):
        shell("-c", end)


def test_unprivileged_is_refused_what_permissions_forbid(shell, tmp_path):
    make_tree(tmp_path, {"secret": b"x"})
    (tmp_path / "secret").chmod(0)
    assert shell("-c", "cat secret", unprivileged=True).code == 1


@pytest.mark.parametrize("wrong", [{"a": b"1"}, {"a": b"1", "b/c": b"3"}, {"a": b"1", "b/c": b"2", "d": b""}])
def test_assert_same_sees_what_is_missing_other_or_too_much(s3, bucket, tmp_path, wrong):
    tree = make_tree(tmp_path / "tree", {"a": b"1", "b/c": b"2"})

    def put(files):
        for name, body in files.items():
            s3.client.put_object(Bucket=bucket, Key=f"p/{name}", Body=body)

    put(wrong)
    with pytest.raises(AssertionError):
        s3.assert_same(tree, bucket, "p")
    s3.remove_bucket(bucket)
    s3.client.create_bucket(Bucket=bucket)
    put({"a": b"1", "b/c": b"2"})
    s3.assert_same(tree, bucket, "p")
