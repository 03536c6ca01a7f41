"""Throttled at random, by S3 and DynamoDB both, no file fails: fewer requests are sent at once, and more again afterwards."""

import time

import pytest

from tests.faults import faults
from tests.faults.conftest import note_figure
from tests.faults.stage import Stage
from tests.system.harness import FULL

FILES = 5000 if FULL else 300
SLOW_DOWN = {"s3": faults.answer(503, "SlowDown"), "dynamodb": faults.answer(400, "ThrottlingException")}


@pytest.fixture
def stage(arenas, tmp_path):
    with Stage(tmp_path / "stage", arenas()) as stage:
        yield stage
        stage.finish("--give-up-after", "1m")


def most_at_once(records):
    """The most requests that were under way together."""
    edges = sorted([(record.begun, 1) for record in records] + [(record.ended, -1) for record in records])
    most = now = 0
    for _, step in edges:
        now += step
        most = max(most, now)
    return most


def line(name, records):
    seconds = max(record.ended for record in records) - min(record.begun for record in records)
    refused = sum(record.fired for record in records)
    at_once = most_at_once(records)
    note_figure(f"{name:34}{len(records):8} requests{refused:7} throttled{len(records) / seconds:8.0f}/s{at_once:5} at once")
    return at_once


def push_throttled(stage, files, chance, first, last):
    """Pushes so many files, with that part of the requests from the first to the last throttled. The rules, by proxy."""
    for number in range(files):
        stage.write(f"f{number}", 10)

    def where(record):  # heartbeats have their own patience, and a lease of two seconds is none
        return first <= len(stage.s3.history) <= last and "session" not in record.kind

    proxies = {"s3": stage.s3, "dynamodb": stage.dynamodb}
    rules = {name: proxy.add(SLOW_DOWN[name], times=None, probability=chance, where=where) for name, proxy in proxies.items()}
    begun = time.monotonic()
    result = stage.push("--give-up-after", "1m", "--lease", "30s", "--request-timeout", "20s", "--json", concurrency=32, timeout=1800)
    assert result.code == 0 and result.events[-1]["uploaded"] == files, result
    when = "all along" if last == float("inf") else "in between"
    note_figure(f"{files} files, {chance:.0%} of the requests throttled {when}: {time.monotonic() - begun:.1f} s")
    return [(name, proxies[name], rules[name]) for name in proxies]


@pytest.mark.parametrize("chance", [0.1, 0.5])
def test_throttled_all_along(stage, chance):
    files = FILES if FULL else 50
    for name, _, rule in push_throttled(stage, files, chance, 0, float("inf")):
        if name == "dynamodb":  # marks travel in batches: so few requests that of one in ten there may be none
            assert rule.fired or chance < 0.5
        else:
            assert rule.fired > chance * files / 3


@pytest.mark.parametrize("chance", [0.1, 0.5])
def test_slower_and_faster_again(stage, chance):
    """The first third is served, the second throttled, the last served again. Thirds are of the requests to S3: marks
    travel in batches, so that their number says little."""
    first, last = FILES * 2 // 3, FILES * 4 // 3
    for name, proxy, rule in push_throttled(stage, FILES, chance, first, last):
        if name == "dynamodb":
            assert rule.fired or chance < 0.5
            continue
        assert rule.fired > chance * (last - first) / 2
        thirds = [proxy.history[:first], proxy.history[first:last], proxy.history[last:]]
        at_once = [line(f"  {name}, {when}", third) for when, third in zip(("before", "throttled", "after"), thirds)]
        if FULL or chance == 0.5:  # one request in ten, of a few hundred, tells too little
            fewest = most_at_once(proxy.history[(first + last) // 2 : last])
            assert fewest <= at_once[0] * 0.7 and at_once[2] > fewest, (at_once, fewest)


@pytest.mark.parametrize("service", ["s3", "dynamodb"])
def test_what_fails_is_tried_again_at_the_end(stage, service):
    """A service that only throttles or fails for a while costs time and no file."""
    for number in range(10):
        stage.write(f"f{number}", 10)
    kind = {"s3": "PutObject", "dynamodb": "UpdateItem:done"}[service]
    rule = {"s3": stage.s3, "dynamodb": stage.dynamodb}[service].add(faults.answer(500, "InternalError"), kind, times=12)
    result = stage.push("--give-up-after", "1m", "--retries", "1", "--json", concurrency=4)
    assert result.code == 0 and rule.fired == 12, result
    again = [event for event in result.events if event["event"] == "retry"]
    assert again and all("will be retried later" in event["text"] for event in again)


def test_giving_up(stage):
    stage.write("f", 10)
    rule = stage.s3.add(faults.answer(503, "SlowDown"), "PutObject", times=None)
    begun = time.monotonic()
    result = stage.push("--give-up-after", "1500ms", "--retries", "0")
    assert result.code == 1 and "slow down" in result.err and rule.fired >= 2, result
    assert time.monotonic() - begun > 1.5
