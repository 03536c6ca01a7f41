"""For whom a lock holds: this user on this host, unless a place is named, and the recipe of docs/locks.md for once a night."""

import os
import re
import sqlite3

import pytest

from tests.faults import faults
from tests.system.harness import REPOSITORY, wait_until


def on(host):
    return {"wrap": ("unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', host)}


def test_a_lock_of_this_host_alone_is_no_secret(s3once):
    for command in (("run", "nightly", "--", "true"), ("acquire", "--lease", "1s", "other"), ("status", "nightly"), ("list",)):
        run = s3once("lock", *command)
        assert run.code == 0 and "exclude no other host" in run.err and "--locks dynamodb:TABLE" in run.err, run
    for said in ({"S3ONCE_LOCKS": "local"}, {"S3ONCE_LOCKS": f"sqlite:{s3once.folder}/locks.db"}):
        run = s3once("lock", "run", "nightly", "--", "true", env=said)
        assert run.code == 0 and run.err == "", run
    run = s3once("lock", "run", "--locks", "local", "nightly", "--", "true")
    assert run.code == 0 and run.err == "", run


def test_help_begins_with_many_hosts(s3once):
    for command in (("lock", "--help"), ("lock", "run", "--help")):
        run = s3once(*command)
        example = next(line for line in run.out.splitlines() if "lock run --" in line and "--help" not in line)
        assert "--locks dynamodb:" in example, run
    page = (REPOSITORY / "docs" / "locks.md").read_text()
    assert "--locks dynamodb:" in page[: page.index("--locks local")]


@pytest.fixture
def night(bucket, tmp_path):
    """The line of docs/locks.md, with a command that says on which host it was begun. Its words are the same on each host."""
    ran, path = tmp_path / "ran", tmp_path / "script"
    page = (REPOSITORY / "docs" / "locks.md").read_text()
    assert """s3once push --marks dynamodb:s3once "s3://ops/nightly/$(date -u +%F)" -- sh -c 'date -u && exec backup --all'""" in page

    def line(date, script):
        (tmp_path / "new-script").write_text(f'uname -n >>"{ran}"; {script}')
        (tmp_path / "new-script").replace(path)  # an earlier one may still run
        return ("push", "--lease", "2s", f"s3://{bucket}/nightly/{date}", "--", "sh", str(path))

    line.ran = lambda: ran.read_text().split() if ran.exists() else []
    return line


@pytest.mark.parametrize("marks", ["dynamodb"], indirect=True)
def test_once_a_night_on_one_of_many_hosts(s3once, s3, s3_wire, bucket, marks, tmp_path, night):
    """Two hosts begin at once, and a third one later: the command runs once, also if its host dies before it is done."""
    go = tmp_path / "go"
    waits = f'while [ ! -e "{go}" ]; do sleep 0.05; done; echo done'
    hosts = [s3once.start(*night("2026-11-28", waits), **on(host)) for host in ("web1", "web2")]
    wait_until(night.ran)
    go.touch()
    for host in hosts:
        assert host.wait().code == 0, host
    assert s3once(*night("2026-11-28", "echo late"), **on("web3")).code == 0
    assert len(night.ran()) == 1 and s3.get(bucket, "nightly/2026-11-28") == b"done\n"
    # The next night the command fails on the first host, and its second one does it.
    assert s3once(*night("2026-11-29", "exit 1"), **on("web1")).code != 0
    assert s3once(*night("2026-11-29", "echo done"), **on("web2")).code == 0
    assert s3once(*night("2026-11-29", "echo late"), **on("web1")).code == 0
    assert night.ran()[1:] == ["web1", "web2"]
    # And then the first host dies.
    rule = s3_wire.add(faults.kill_before, "PutObject")
    s3once(*night("2026-11-30", "echo lost"), **on("web1"))
    assert rule.fired
    s3_wire.clear()
    assert s3once(*night("2026-11-30", "echo done"), **on("web2")).code == 0
    assert s3.get(bucket, "nightly/2026-11-30") == b"done\n"


@pytest.mark.parametrize("command", [("status", "nightly"), ("list",)])
def test_looking_at_locks_makes_nothing(s3once, tmp_path, command):
    """A mistyped path is no free lock. The file of this user may be missing: then there are no locks yet."""
    home = tmp_path / "fresh"
    home.mkdir()
    own = {"HOME": str(home), "XDG_STATE_HOME": None, "STATE_DIRECTORY": None}
    run = s3once("lock", *command, "--locks", f"sqlite:{home}/mistyped.db", env=own)
    assert run.code == 3 and f"{home}/mistyped.db: No such file or directory" in run.err and run.out == "", run
    run = s3once("lock", *command, "--locks", "local", env=own)
    assert run.code == 0 and run.out == ("nightly: free\n" if command[0] == "status" else ""), run
    assert list(home.iterdir()) == []
    assert s3once("lock", "run", "--locks", "local", "nightly", "--", "true", env=own).code == 0
    assert s3once("lock", *command, "--locks", "local", env=own).out == "nightly: free\n"


NO_ROW = "has no row in the locks of this user: it was released, or is in another place"


@pytest.mark.parametrize("command, code, says", [("renew", 5, NO_ROW), ("release", 5, NO_ROW), ("break", 0, "nothing was broken")])
def test_a_lock_that_is_there_already_makes_no_place(s3once, tmp_path, command, code, says):
    """Neither does a command whose lock is elsewhere."""
    home = tmp_path / "fresh"
    home.mkdir()
    own = {"HOME": str(home), "XDG_STATE_HOME": None, "STATE_DIRECTORY": None}
    run = s3once("lock", "acquire", "--lease", "1m", "--locks", f"sqlite:{tmp_path}/locks.db", "nightly")
    operands = ("--if-version", "1", "nightly") if command == "break" else (run.out.strip(),)
    run = s3once("lock", command, "--locks", f"sqlite:{home}/mistyped.db", *operands, env=own)
    assert run.code == 3 and f"{home}/mistyped.db: No such file or directory: correct the path" in run.err, run
    run = s3once("lock", command, "--locks", "local", *operands, env=own)
    assert run.code == code and says in run.err, run
    assert list(home.iterdir()) == []


BAD_FILES = {
    "garbage": (lambda path: path.write_bytes(b"no database" * 1000), "give another path; if it held marks, move it away"),
    "of another user": (lambda path: (path.touch(0o600), os.chown(path, 65534, -1)), r"\(uid 65534\): run as that user, or use a file of your own; users share dynamodb:TABLE"),
    "a folder": (lambda path: path.mkdir(), "is not a regular file: give another path"),
    "damaged": (lambda path: damage(path), "end what uses it, and move it away; if it held marks, restore them"),
}


def damage(path):
    """Makes a file with the header of SQLite, and garbage behind it."""
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE t (x)")
    db.close()
    path.chmod(0o600)
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * (path.stat().st_size - 100))


@pytest.mark.parametrize("fault", BAD_FILES)
@pytest.mark.skipif(os.geteuid() != 0, reason="a file of another user needs root")
def test_faults_of_an_sqlite_file_are_named_for_locks_too(s3once, tmp_path, fault):
    """A file may hold locks or marks: no sentence proposes what only one of them has."""
    make, words = BAD_FILES[fault]
    make(tmp_path / "locks.db")
    run = s3once("lock", "acquire", "--lease", "1m", "--locks", f"sqlite:{tmp_path}/locks.db", "k")
    assert run.code == 3 and re.search(words, run.err) and "--marks" not in run.err and "these" not in run.err, run
