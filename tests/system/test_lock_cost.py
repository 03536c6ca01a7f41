"""The cost of each step in requests, counted at the proxy: the table of docs/locks.md."""

import re

import pytest

from tests.faults.proxy import Proxy
from tests.system.harness import REPOSITORY
from tests.system.locking import Foreign, Probe, Table

ROW = ["--release-by", "mark", "--tokens", "row"]


@pytest.fixture
def wire(dynamodb, s3once, table):
    locks = Table(dynamodb, s3once, table, "java")
    with Proxy(dynamodb, "dynamodb") as proxy:
        proxy.locks = locks
        s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = proxy.endpoint
        yield proxy


def count(wire, since):
    """(writes, reads) from history[since] on."""
    kinds = [kind for kind, _ in wire.kinds(since) if kind != "DescribeTable"]  # once a process, and free
    reads = sum(kind in ("GetItem", "Query", "Scan") for kind in kinds)
    return len(kinds) - reads, reads


def cost(wire, s3once, *argv, code=0):
    """(writes, reads, standard output)."""
    since = len(wire.history)
    run = s3once("lock", *argv)
    assert run.code == code, run
    return *count(wire, since), run.out.strip()


def of_library(wire, s3once, folder):
    """Requests for a heartbeat and a release by a client that holds the lock."""
    found = []
    with Probe(s3once, folder, 60000) as probe:
        assert probe.call("acquire 0 e 0")[0] == 0
        for line in ("heartbeat 0", "release 0"):
            since = len(wire.history)
            assert probe.call(line)[0] == 0
            found.append(count(wire, since))
    return found


def measure(wire, s3once, folder):
    """step → (writes, reads)."""
    found = {}
    base = ["--lease", "20s", "--wait", "0"]
    *found["acquire, token in the row, no row"], handle = cost(wire, s3once, "acquire", *base, *ROW, "a")
    s3once("lock", "release", *ROW, handle)
    *found["acquire, token in the row, released row"], _ = cost(wire, s3once, "acquire", *base, *ROW, "a")
    *found["acquire, token from a counter"], handle = cost(wire, s3once, "acquire", *base, "b")
    *found["acquire, no token"], _ = cost(wire, s3once, "acquire", *base, "--tokens", "none", "c")
    *found["try, held by another"], _ = cost(wire, s3once, "acquire", *base, "b", code=4)
    *found["renew by handle"], _ = cost(wire, s3once, "renew", handle)
    *found["release by handle"], _ = cost(wire, s3once, "release", handle)
    dead = Foreign(wire.locks, lease=1)
    assert dead.try_acquire("d")
    writes, reads, _ = cost(wire, s3once, "acquire", "--lease", "20s", "--wait", "20s", "--tokens", "none", "d")
    found["take over a dead holder, besides the looks"] = [writes, 0]
    writes, reads, _ = cost(wire, s3once, "acquire", "--lease", "20s", "--wait", "1s", "d", code=4)
    assert reads >= 3  # besides the first try, which writes
    found["look, while waiting"] = [writes - 1, 1]
    found["heartbeat"], found["release"] = of_library(wire, s3once, folder)
    return {step: tuple(count) for step, count in found.items()}


@pytest.mark.parametrize("dynamodb", ["dynalite"], indirect=True)
def test_a_refusal_without_the_row_costs_a_read(wire, s3once):
    """From a server that does not return the row with a refusal."""
    assert cost(wire, s3once, "acquire", "--lease", "20s", "--tokens", "none", "k")[:2] == (1, 0)
    assert cost(wire, s3once, "acquire", "--lease", "20s", "--wait", "0", "--tokens", "none", "k", code=4)[:2] == (1, 1)


@pytest.mark.parametrize("dynamodb", ["dynoxide"], indirect=True)
def test_cost_is_what_the_docs_say(wire, s3once, tmp_path):
    text = (REPOSITORY / "docs" / "locks.md").read_text().split("## What it costs")[1].split("\n## ")[0]
    documented = {
        step.strip(): (int(writes), int(reads)) for step, writes, reads in re.findall(r"^\| ([a-z][^|]+) \| (\d) \+ (\d) \|", text, re.M)
    }
    assert measure(wire, s3once, tmp_path) == documented
