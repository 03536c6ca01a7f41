"""AWS's own test suite for signatures, version 4."""

import json
import subprocess

from tests.suites.suite import Suite, read_table
from tests.system.harness import BUILD

ROWS, _ = read_table("signatures")
NAMES = ("method", "key", "query", "payload_hash", "region", "service", "access_key", "secret")


def test_signatures():
    suite = Suite("Signatures")
    asked = [{**{name: row[name] for name in NAMES}, "headers": json.loads(row["headers"]), "time": int(row["time"])} for row in ROWS]
    lines = "".join(json.dumps(one) + "\n" for one in asked)
    probe = [BUILD / "tests" / "system" / "sigv4_probe"]
    done = subprocess.run(probe, input=lines.encode(), capture_output=True, check=True, timeout=60)
    answers = [line.split("\t")[1] for line in done.stdout.decode().split("\n")[:-1]]
    assert len(answers) == len(ROWS) and not done.stderr
    for row, answer in zip(ROWS, answers):
        suite.count(answer.replace(" ", "") == row["authorization"].replace(" ", ""), "", (row, answer))
    suite.compare_with_page()
