"""docs/operations.md has an archive_command for PostgreSQL. A real server archives with it."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.system.harness import REPOSITORY, wait_until

SEGMENT = 1 << 20


def archive_command(bucket, program):
    page = (REPOSITORY / "docs" / "operations.md").read_text()
    (command,) = re.findall(r"^archive_command = '(.*)'$", page, re.M)
    return command.replace("s3once ", f"{program} ").replace("s3://my-backups", f"s3://{bucket}")


def test_the_archive_command(s3once, s3, bucket, tmp_path):
    """By hand, with files that have names of WAL segments: the keys, the exit statuses, and one row of the fleet."""
    folder = tmp_path / "data" / "pg_wal"
    folder.mkdir(parents=True)
    names = [f"00000001000000000000000{number}" for number in range(3)] + ["00000002.history"]
    for name in names:
        (folder / name).write_text(name)

    def archive(name):
        command = archive_command(bucket, s3once.binary()).replace("%f", name)
        return subprocess.run(["sh", "-c", command], cwd=folder.parent, env=s3once.environment, capture_output=True, text=True, timeout=60)

    for name in [*names, names[0]]:
        run = archive(name)
        assert (run.returncode, run.stdout, run.stderr) == (0, "", ""), run
    assert set(s3.objects(bucket)) == {f"wal/{name}" for name in names}
    assert len([event for event in s3once("fleet", "--json").events if event["event"] == "job"]) == 1
    assert archive("000000010000000000000009").returncode == 1, "a segment that does not exist"
    (folder / names[0]).write_text("another segment")
    assert archive(names[0]).returncode == 1 and s3.get(bucket, f"wal/{names[0]}") == names[0].encode()


def test_a_server_archives(s3once, s3, bucket, tmp_path):
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:
        pytest.skip("PostgreSQL is not installed")
    where = programs[-1].parent
    folder = Path(f"/tmp/{bucket}")  # the path of a socket is short, and tmp_path is private to this user
    folder.mkdir()
    as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
    environment = {**s3once.environment, "HOME": str(folder), "XDG_STATE_HOME": str(folder), "LC_ALL": "C"}

    def run(*command):
        done = subprocess.run([*as_user, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done
        return done.stdout.strip()

    def ask(question):
        return run(where / "psql", "-h", folder, "-Atc", question, "postgres")

    try:
        if as_user:
            shutil.chown(folder, "postgres", "postgres")
        run(where / "initdb", "-D", folder / "data", "--wal-segsize=1", "-A", "trust", "-N")
        with open(folder / "data" / "postgresql.conf", "a") as settings:
            settings.write(f"archive_mode = on\narchive_command = '{archive_command(bucket, s3once.binary())}'\n")
            settings.write(f"listen_addresses = ''\nunix_socket_directories = '{folder}'\nfsync = off\n")
        run(where / "pg_ctl", "-D", folder / "data", "-l", folder / "log", "-w", "start")
        try:
            for number in range(3):
                ask(f"CREATE TABLE t{number} AS SELECT 1")
                ask("SELECT pg_switch_wal()")
            counts = "SELECT archived_count >= 3 OR failed_count > 0, failed_count FROM pg_stat_archiver"
            wait_until(lambda: ask(counts)[0] == "t", 60)
            assert ask(counts) == "t|0", (folder / "log").read_text()
        finally:
            run(where / "pg_ctl", "-D", folder / "data", "-m", "fast", "-w", "stop")
        archived = s3.objects(bucket, "wal/")
        assert len(archived) >= 3
        for key in archived:
            assert re.fullmatch(r"wal/[0-9A-F]{24}", key) and len(s3.get(bucket, key)) == SEGMENT
    finally:
        shutil.rmtree(folder)
