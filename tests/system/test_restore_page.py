"""docs/restore.md: rclone brings back what was uploaded, with its times, and the lines of a log in their order."""

import os
import re
import shlex
import subprocess

import pytest

from tests.system.harness import REPOSITORY, make_tree

PAGE = (REPOSITORY / "docs" / "restore.md").read_text()
COMMANDS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S)


@pytest.fixture
def shell(s3, bucket, tmp_path):
    """Runs a command of the page, for this bucket and below the test's folder."""
    names = {"TYPE": "s3", "PROVIDER": "Other", "ACCESS_KEY_ID": s3.access_key, "SECRET_ACCESS_KEY": s3.secret_key, "ENDPOINT": s3.endpoint, "REGION": s3.region}
    remote = {f"RCLONE_CONFIG_REMOTE_{name}": value for name, value in names.items()}

    def run(command):
        command = command.replace("my-logs", bucket).replace("/restore", str(tmp_path / "restore")).replace("rclone ", "rclone --config /dev/null ")
        return subprocess.run(["sh", "-c", command], env={"PATH": os.environ["PATH"], **remote}, capture_output=True, timeout=120)

    return run


@pytest.mark.real_s3
def test_a_tree_comes_back_with_its_times(s3once, s3, bucket, shell, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a.log": b"one\n", "sub/ü b": b"", "sub/large": 9 << 20})
    for number, path in enumerate(sorted(path for path in tree.rglob("*") if path.is_file())):
        os.utime(path, ns=(0, 1_767_322_800_123_456_789 + number))
    s3once.environment.pop("S3ONCE_MARKS", None)
    assert s3once("push", tree, f"s3://{bucket}/web1").code == 0
    done = shell(COMMANDS[1])
    assert done.returncode == 0, done
    back = tmp_path / "restore" / "web1"
    files = {path.relative_to(tree) for path in tree.rglob("*") if path.is_file()}
    assert files == {path.relative_to(back) for path in back.rglob("*") if path.is_file()}
    for name in files:
        assert (back / name).read_bytes() == (tree / name).read_bytes()
        assert (back / name).stat().st_mtime_ns == (tree / name).stat().st_mtime_ns
    words = COMMANDS[2].replace("my-logs", bucket).replace("/restore/web1", str(back)).split()[1:]
    assert s3once(*words).code == 0


@pytest.mark.real_s3
def test_the_lines_of_a_log_come_back_in_order(s3once, s3, bucket, shell, tmp_path):
    """Two logs of that day, one compressed by logrotate, and one of the next day, which is another command's."""
    folder = make_tree(tmp_path / "nginx", {"access.log.2": b"1\n2\n", "access.log.1": b"3\n4\n", "access.log.3": b"0\n", "access.log.0": b"5\n"})
    noon = 1_896_091_200  # of 31 January 2030
    for name, time in (("access.log.3", noon), ("access.log.2", noon + 60), ("access.log.1", noon + 120), ("access.log.0", noon + 86400)):
        os.utime(folder / name, (time, time))
    subprocess.run(["gzip", folder / "access.log.3", folder / "access.log.2"], check=True)
    run = s3once("push", folder, f"s3://{bucket}/web1/nginx", "--rotated", "--min-age", "0s")
    assert run.code == 0, run
    done = shell(COMMANDS[4])
    assert (done.returncode, done.stdout) == (0, b"0\n1\n2\n3\n4\n"), done
    words = shlex.split(COMMANDS[3].replace("my-logs", bucket))[1:]
    run = s3once(*words, env={"TZ": "UTC"})
    assert (run.code, run.out, run.err) == (0, "0\n1\n2\n3\n4\n5\n", ""), run
