"""The benchmark of reruns still runs: a few files only, and nothing is said of its figures."""

import os
import subprocess

from .harness import BUILD, REPOSITORY


def test_a_rerun_is_measured_with_both_stores(tmp_path):
    """Its servers hold what the marks say, or no run would believe the marks."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_CACHE_HOME") if name in os.environ}
    argv = ["/usr/bin/python3", "-m", "tests.bench", "--build", BUILD, "--dir", tmp_path, "--runs", "1", "--files", "300"]
    told = subprocess.run([*argv, "rerun"], cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=240)
    assert told.returncode == 0, told
    rows = [line for line in told.stdout.splitlines() if line.startswith("| s3once")]
    assert [row.split("|")[1].strip() for row in rows] == ["s3once, DynamoDB marks", "s3once, SQLite marks"], told
