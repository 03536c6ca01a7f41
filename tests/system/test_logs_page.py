"""docs/logs.md followed as it is written: its files, its commands, and nights of logrotate itself."""

import gzip
import os
import re
import shlex
import subprocess
import time

import pytest

from tests.system.harness import REPOSITORY
from tests.system.test_delete_after import make_marks_older
from tests.system.test_systemd import analyze, installed  # noqa: F401, a fixture

PAGE = (REPOSITORY / "docs" / "logs.md").read_text()


def files_of_page():
    """path → text of each block that the page says to write into a file."""
    blocks = re.findall(r"`(/etc/[^`]+)`[^`]*(?:`chmod 600`\))?:\n\n```\n(.*?)```", PAGE, re.S)
    assert len(blocks) == len(dict(blocks)) == 5, [path for path, _ in blocks]
    return dict(blocks)


def commands_of_page():
    """The words of each command of ours."""
    lines = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.S) for line in block.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("s3once ")]


class Host:
    """A folder of logs that logrotate rotates by the page's file, on nights of another year."""

    def __init__(self, folder, bucket):
        self.folder, self.logs = folder, folder / "logs"
        self.logs.mkdir()
        self.target = f"s3://{bucket}/web1/nginx"
        files = files_of_page()
        rotate = files["/etc/logrotate.d/nginx"].replace("/var/log/nginx", str(self.logs))
        rotate = rotate.replace("invoke-rc.d nginx rotate", "true").replace("create 0640 www-data adm\n\tsu root adm", "create 0640\n\tsu root root")
        (folder / "logrotate.conf").write_text(rotate)
        job = files["/etc/s3once/nginx.conf"].replace("/var/log/nginx", str(self.logs)).replace("s3://my-logs/web1/nginx", self.target)
        assert job.count(self.target) == 1
        (folder / "nginx.conf").write_text(job)
        self.written = []

    def night(self, day):
        """A day's lines, written two hours before midnight; then logrotate."""
        before = time.time() - 7200 - 86400 * (30 - day)
        for name in ("access", "error"):
            path = self.logs / f"{name}.log"
            lines = b"".join(b"%s on day %d, line %d\n" % (name.encode(), day, n) for n in range(100))
            with open(path, "ab") as log:
                log.write(lines)
            os.utime(path, (before, before))
            self.written.append((name, lines))
        argv = ["faketime", f"2030-01-{day:02} 00:00:00", "logrotate", "-f", "-s", self.folder / "logrotate.state", self.folder / "logrotate.conf"]
        environment = {**os.environ, "NO_FAKE_STAT": "1"}  # the times of files are those of this year
        run = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60)
        assert run.returncode == 0 and "error" not in run.stderr, run.stderr

    def uploaded(self, s3, bucket):
        """(family, content) of each object, whose key has the family and the date."""
        keys = re.compile(r"web1/nginx/(access|error)-\d{8}T\d{6}Z-[0-9a-f]{8}\.log(\.gz)?")
        found = [(keys.fullmatch(key), s3.get(bucket, key)) for key in s3.objects(bucket)]
        return sorted((key[1], gzip.decompress(body) if key[2] else body) for key, body in found)


@pytest.fixture
def host(s3once, tmp_path, bucket):
    s3once.environment["S3ONCE_JOBS"] = str(tmp_path)
    return Host(tmp_path, bucket)


@pytest.mark.parametrize("marks", ["sqlite"], indirect=True)
def test_each_log_is_uploaded_once(s3once, s3, bucket, marks, host):
    """Also those of a week without an uploader. A week after their upload they are gone from the disk."""
    for day in range(1, 12):
        host.night(day)
        if 3 <= day <= 9:
            continue
        run = s3once("run", "nginx", "--json")
        assert run.code == 0, run
        assert host.uploaded(s3, bucket) == sorted(host.written), f"on day {day}"
        expected = {1: 2, 2: 2, 10: 16, 11: 2}[day]
        assert run.events[-1]["uploaded"] == expected and run.events[-1]["job"] == "nginx"
    make_marks_older(marks, 7 * 86400)
    host.night(12)
    run = s3once("run", "nginx", "--json")
    assert run.code == 0 and (run.events[-1]["removed"], run.events[-1]["uploaded"]) == (22, 2), run
    assert sorted(path.name for path in host.logs.iterdir()) == ["access.log", "access.log.1", "error.log", "error.log.1"]
    assert host.uploaded(s3, bucket) == sorted(host.written)


@pytest.mark.parametrize("marks", ["sqlite"], indirect=True)
def test_two_groups_are_enough(s3once, bucket, marks, host, tmp_path):
    """A member of the group of the logs and of the group of their folder uploads and removes them, and can read no other file. logrotate still works."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to give files to groups")
    unit = files_of_page()["/etc/systemd/system/s3once@nginx.service.d/logs.conf"]
    assert "CAP_DAC" not in unit and "SupplementaryGroups=adm s3once-logs\n" in unit and "\tsu root adm\n" in files_of_page()["/etc/logrotate.d/nginx"]
    user, reads, removes = 61236, 61237, 61238
    capability = re.search("^AmbientCapabilities=CAP_(.*)$", unit, re.M)[1].lower()
    become = ["setpriv", "--reuid", str(user), "--regid", str(user), "--groups", f"{reads},{removes}", "--inh-caps", f"+{capability}"]
    become += ["--ambient-caps", f"+{capability}", "--bounding-set", f"-all,+{capability}"]
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(folder.stat().st_mode | 0o011)
    state = tmp_path / "unit"
    state.mkdir(mode=0o700)
    os.chown(state, user, user)
    (host.folder / "nginx.conf").chmod(0o644)

    def night(day):
        host.night(day)
        subprocess.run(["chgrp", str(removes), host.logs], check=True)  # as the unit does before it starts
        subprocess.run(["chmod", "g+rwx", host.logs], check=True)
        for path in host.logs.iterdir():
            os.chown(path, 33, reads)
            path.chmod(0o640)
        os.chown(host.logs, 0, removes)
        environment = {"STATE_DIRECTORY": str(state), "S3ONCE_MARKS": "local"}
        return s3once("run", "nginx", "--json", wrap=become, env=environment)

    run = night(1)
    assert run.code == 0 and run.events[-1]["uploaded"] == 2, run
    marks.path = state / "marks.db"
    make_marks_older(marks, 8 * 86400)
    run = night(2)
    assert run.code == 0 and (run.events[-1]["removed"], run.events[-1]["uploaded"]) == (2, 2), run
    secret = tmp_path / "secret"
    secret.write_bytes(b"of root")
    secret.chmod(0o600)
    run = s3once("push", secret, f"s3://{bucket}/secret", wrap=become, env={"STATE_DIRECTORY": str(state), "S3ONCE_MARKS": "local"})
    assert run.code == 1 and "Permission denied" in run.err, run


def test_the_commands_of_the_page(s3once, s3, bucket, host):
    host.night(1)
    host.night(2)
    commands = commands_of_page()
    assert [words[0] for words in commands] == ["config", "run", "status", "verify", "cat", "cat", "cat"]
    marks = s3once.state / "s3once" / "marks.db"
    printed = []  # by cat
    for words in commands:
        if words[0] == "status":
            assert s3once("run", "nginx").code == 0
        words = words[: words.index("|")] if "|" in words else words
        words = [word.replace("/var/lib/s3once/marks.db", str(marks)).replace("my-logs", bucket).replace("2026-11-20", "2020-01-01") for word in words]
        run = s3once(*words)
        assert run.code == 0 and "error" not in run.err, run
        if words[0] == "cat":
            printed.append(run.out)
        if words[0] == "config":
            assert f"line 1 of {host.folder}/nginx.conf" in run.out
        if words[:2] == ["run", "--dry-run"]:
            assert run.out.count("would upload ") == 5 and not s3.objects(bucket), run
        if words[0] == "verify":
            assert "4 objects are as their marks say" in run.err, run
    assert len(s3.objects(bucket)) == 4
    access = [lines.decode() for name, lines in host.written if name == "access"]
    assert printed[:2] == [access[0], "".join(access)] and printed[2].count("/web1/nginx/access-") == 2, printed


def test_numbers_are_told(s3once, s3, bucket, host):
    """The page warns that without `rotated` and dateext the run exits with 1, and yesterday's object stays."""
    path = host.folder / "logrotate.conf"
    path.write_text(path.read_text().replace("\tdelaycompress\n", ""))
    job = host.folder / "nginx.conf"
    job.write_text(job.read_text().replace("rotated = yes\n", "include = *.gz\n"))
    host.night(1)
    assert s3once("run", "nginx").code == 0
    before = s3.get(bucket, "web1/nginx/access.log.1.gz")
    host.night(2)
    run = s3once("run", "nginx")
    assert run.code == 1 and "access.log.1.gz" in run.err, run
    assert s3.get(bucket, "web1/nginx/access.log.1.gz") == before


def test_the_units_of_the_page(installed):  # noqa: F811
    files = files_of_page()
    (installed / "s3once@nginx.service").symlink_to("s3once@.service")
    (installed / "logrotate.service").write_text("[Service]\nType=oneshot\nExecStart=/usr/sbin/logrotate /etc/logrotate.conf\n")
    for path, text in files.items():
        if path.startswith("/etc/systemd/system/"):
            copy = installed / path.removeprefix("/etc/systemd/system/")
            copy.parent.mkdir()
            copy.write_text(text)
            assert re.search(rf"^mkdir -p .*{path.rsplit('/', 1)[0]}", PAGE, re.M), "the page says to make its folder"
    for unit in ("s3once@nginx.service", "logrotate.service"):
        code, said = analyze("verify", "--man=no", installed / unit)
        assert (code, said) == (0, "")
    code, said = analyze("security", "--offline=true", "--threshold=20", installed / "s3once@nginx.service")
    assert code == 0, said
