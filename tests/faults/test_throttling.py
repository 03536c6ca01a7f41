"""Throttled by S3 and DynamoDB both, no file fails: fewer requests are sent at once, and more again afterwards.

How many were sent at once is asserted by ./check --full alone, since it depends on what else the machine does; what it
follows from is in the unit tests of the pace and the level."""

import itertools
import time

import pytest

from tests.faults import faults
from tests.faults.conftest import note_figure
from tests.faults.proxy import most_at_once
from tests.faults.stage import Stage
from tests.system.harness import FULL

FILES = 5000 if FULL else 150
SLOW_DOWN = {"s3": faults.answer(503, "SlowDown"), "dynamodb": faults.answer(400, "ThrottlingException")}


@pytest.fixture
def stage(arenas, tmp_path):
    with Stage(tmp_path / "stage", arenas()) as stage:
        yield stage
        stage.finish("--give-up-after", "1m")


def line(name, records):
    seconds = max(record.ended for record in records) - min(record.begun for record in records)
    refused = sum(record.fired for record in records)
    at_once = most_at_once(records)
    note_figure(f"{name:34}{len(records):8} requests{refused:7} throttled{len(records) / seconds:8.0f}/s{at_once:5} at once")
    return at_once


def push_throttled(stage, files, one_in, first, last):
    """Pushes so many files. Of the requests between the first and the last to S3 one in so many is throttled."""
    for number in range(files):
        stage.write(f"f{number}", 10)

    def throttles(proxy):
        seen = itertools.count()

        def where(record):  # heartbeats have their own patience, and a lease of two seconds is none
            return first <= len(stage.s3.history) <= last and "session" not in record.kind and next(seen) % one_in == 0

        return proxy.add(SLOW_DOWN[proxy.service], times=None, where=where)

    proxies = {"s3": stage.s3, "dynamodb": stage.dynamodb}
    rules = {name: throttles(proxy) for name, proxy in proxies.items()}
    begun = time.monotonic()
    result = stage.push("--give-up-after", "1m", "--lease", "30s", "--request-timeout", "20s", "--json", concurrency=32, timeout=1800)
    assert result.code == 0 and result.events[-1]["uploaded"] == files, result
    when = "all along" if last == float("inf") else "in between"
    note_figure(f"{files} files, one request in {one_in} throttled {when}: {time.monotonic() - begun:.1f} s")
    return rules


@pytest.mark.parametrize("one_in, files", [(10, 50), (2, 20)])
def test_throttled_all_along(stage, one_in, files):
    files = FILES if FULL else files
    rules = push_throttled(stage, files, one_in, 0, float("inf"))
    assert rules["s3"].fired >= files / one_in and rules["dynamodb"].fired


@pytest.mark.parametrize("one_in", [10, 2])
def test_slower_and_faster_again(stage, one_in):
    """The first third is served, the second throttled, the last served again. Thirds are of the requests to S3: marks
    travel in batches, so that their number says little."""
    first, last = FILES * 2 // 3, FILES * 4 // 3
    rules = push_throttled(stage, FILES, one_in, first, last)
    assert rules["s3"].fired == (last - first) // one_in + 1
    history = stage.s3.history
    thirds = {"before": history[:first], "throttled": history[first:last], "after": history[last:]}
    at_once = [line(f"  s3, {when}", third) for when, third in thirds.items()]
    if FULL:
        fewest = most_at_once(history[(first + last) // 2 : last])
        assert fewest <= at_once[0] * 0.7 and at_once[2] > fewest, (at_once, fewest)


@pytest.mark.parametrize("service", ["s3", "dynamodb"])
def test_failed_file_is_retried_at_the_end(stage, service):
    """A service that only throttles or fails for a while costs time and no file."""
    for number in range(10):
        stage.write(f"f{number}", 10)
    kind = {"s3": "PutObject", "dynamodb": "UpdateItem:done"}[service]
    rule = {"s3": stage.s3, "dynamodb": stage.dynamodb}[service].add(faults.answer(500, "InternalError"), kind, times=6)
    result = stage.push("--give-up-after", "1m", "--json", concurrency=4, attempts=2)
    assert result.code == 0 and rule.fired == 6, result
    again = [event for event in result.events if event["event"] == "retry"]
    assert again and all("will be retried later" in event["text"] for event in again)


def test_giving_up(stage):
    stage.write("f", 10)
    rule = stage.s3.add(faults.answer(503, "SlowDown"), "PutObject", times=None)
    begun = time.monotonic()
    result = stage.push("--give-up-after", "4s", "--request-timeout", "4s", attempts=1)
    assert result.code == 3 and "slow down; nothing has moved for" in result.err and rule.fired >= 2, result
    assert time.monotonic() - begun > 4
