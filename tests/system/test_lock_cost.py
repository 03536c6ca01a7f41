"""What each step costs in requests, counted at the proxy: the table of docs/locks.md."""

import re

import pytest

from tests.faults.proxy import Proxy
from tests.system.harness import REPOSITORY
from tests.system.locking import Foreign, Table

ROW = ["--release-by", "mark", "--tokens", "row"]


@pytest.fixture(params=["dynoxide"])
def wire(request, s3once, table):
    dynamodb = request.getfixturevalue(request.param)
    locks = Table(dynamodb, s3once, table, "java")
    with Proxy(dynamodb, "dynamodb") as proxy:
        proxy.locks = locks
        s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = proxy.endpoint
        yield proxy


def cost(wire, s3once, *argv, code=0):
    """(writes, reads, standard output)."""
    since = len(wire.history)
    run = s3once("lock", *argv)
    assert run.code == code, run
    kinds = [kind for kind, _ in wire.kinds(since)]
    reads = sum(kind in ("GetItem", "Query", "Scan") for kind in kinds)
    return len(kinds) - reads, reads, run.out.strip()


def measure(wire, s3once):
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
    since = len(wire.history)
    assert s3once("lock", "run", "--lease", "4s", *base[2:], "--tokens", "none", "e", "--", "sleep", "2.5").code == 0
    kinds = [kind for kind, _ in wire.kinds(since)]
    assert kinds[0] == "UpdateItem" and kinds[-1] == "DeleteItem" and set(kinds[1:-1]) == {"UpdateItem"}
    assert 2 <= len(kinds) - 2 <= 3  # a heartbeat a second
    found["heartbeat"], found["release"] = [1, 0], [1, 0]
    return {step: tuple(count) for step, count in found.items()}


def test_cost_is_what_the_docs_say(wire, s3once):
    text = (REPOSITORY / "docs" / "locks.md").read_text().split("## What it costs")[1].split("\n## ")[0]
    documented = {
        step.strip(): (int(writes), int(reads)) for step, writes, reads in re.findall(r"^\| ([a-z][^|]+) \| (\d) \| (\d) \|", text, re.M)
    }
    assert measure(wire, s3once) == documented
