"""An arena per worker; what the matrix counted, printed at the end."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from tests.faults.stage import Arena
from tests.system.harness import REPOSITORY

COUNTS = REPOSITORY / os.environ.get("S3ONCE_COUNTS", "build/logs/faults.jsonl")


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        COUNTS.parent.mkdir(parents=True, exist_ok=True)
        COUNTS.unlink(missing_ok=True)


def note_case(**case):
    """One case that ran: suite, server, scenario, fault, operation, passed."""
    with open(COUNTS, "a") as log:
        log.write(json.dumps(case) + "\n")


def pytest_terminal_summary(terminalreporter, config):
    if hasattr(config, "workerinput") or not COUNTS.exists():
        return
    cases = [json.loads(line) for line in COUNTS.read_text().splitlines()]
    for figure in (case["figure"] for case in cases if "figure" in case):
        terminalreporter.write_line(figure)
    cases = [case for case in cases if "suite" in case]
    for suite, ran in sorted(Counter(case["suite"] for case in cases).items()):
        passed = sum(case["passed"] for case in cases if case["suite"] == suite)
        terminalreporter.write_line(f"{suite}: {ran} cases of faults, {passed} passed")


@pytest.fixture(scope="session")
def arenas(request, tmp_path_factory):
    """arenas(s3 server, dynamodb server): an Arena, one for the whole session."""
    made = {}

    def arena(s3="rgw", dynamodb="dynoxide"):
        if (s3, dynamodb) not in made:
            servers = request.getfixturevalue(s3), request.getfixturevalue(dynamodb)
            made[s3, dynamodb] = Arena(*servers, tmp_path_factory.mktemp("init"))
        return made[s3, dynamodb]

    yield arena
    for one in made.values():
        one.close()


def note_figure(text):
    """A measurement, printed at the end."""
    with open(COUNTS, "a") as log:
        log.write(json.dumps({"figure": text}) + "\n")
