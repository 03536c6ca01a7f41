"""Names that are looked up for a minute: no deadline, no signal and no heartbeat waits for that."""

import signal
import time

import pytest

from tests.faults import faults
from tests.faults.preloads import preload_library, preloaded
from tests.faults.proxy import Proxy
from tests.system.harness import make_tree, wait_until
from tests.system.locking import FAILED, LOST
from tests.system.test_lock import start_holder


@pytest.fixture
def hung(tmp_path):
    """A file: while it is there names are not answered."""
    return tmp_path / "hung"


@pytest.fixture
def environment(s3once, hung):
    return preloaded(s3once, preload_library(), S3ONCE_TEST_HUNG_DNS=hung)


@pytest.mark.parametrize("signals", [1, 2])
def test_a_push_is_stopped(s3once, environment, hung, tmp_path, signals):
    hung.touch()
    tree = make_tree(tmp_path / "tree", {"file": 100})
    where = ("--endpoint-url", "http://name.test:9", "--marks", f"sqlite:{tmp_path}/marks.db")
    run = s3once.start("push", tree, "s3://bucket/p", *where, "--grace", "1s", env=environment)
    wait_until(lambda: len(list((tmp_path / "tree").parent.glob("marks.db"))) == 1, 60, "its marks")
    time.sleep(0.5)  # it looks up the name: whenever the signal comes it has to end
    for _ in range(signals):
        run.popen.send_signal(signal.SIGTERM)
        wait_until(lambda: "s3once: stopping" in run.output()[1], 60, "the word that it stops")
    assert run.wait(30).code == 143


def test_a_request_has_its_time(s3once, environment, hung, tmp_path):
    hung.touch()
    tree = make_tree(tmp_path / "tree", {"file": 100})
    where = ("--endpoint-url", "http://name.test:9", "--marks", f"sqlite:{tmp_path}/marks.db")
    environment["AWS_MAX_ATTEMPTS"] = "2"
    patience = ("--request-timeout", "1s", "--give-up-after", "2s")
    run = s3once("push", tree, "s3://bucket/p", *where, *patience, env=environment, timeout=50)
    assert run.code in (1, 3) and run.seconds < 40 and "its name was not resolved" in run.err, run


def test_a_lock_is_waited_for_as_long_as_was_said(s3once, environment, hung):
    hung.touch()
    env = {**environment, "AWS_ENDPOINT_URL_DYNAMODB": "http://name.test:9"}
    patience = ("--wait", "3s", "--request-timeout", "1s")
    run = s3once("lock", "run", "--locks", "dynamodb:locks", *patience, "k", "--", "true", env=env, timeout=50)
    assert run.code == FAILED and run.seconds < 40, run


def test_heartbeats(s3once, dynamodb, table, environment, hung, tmp_path):
    """They need a new connection, and names hang from then on: the command is ended when the lease is over."""
    with Proxy(dynamodb, "dynamodb") as wire:
        s3once.environment["S3ONCE_LOCKS"] = f"dynamodb:{table}"
        s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = wire.endpoint.replace("127.0.0.1", "name.test")
        assert s3once("lock", "init", env=environment).code == 0
        run, _ = start_holder(s3once, tmp_path, "--lease", "4s", env=environment)
        hung.touch()
        wire.add(faults.drop_request, times=None)
        begun = time.monotonic()
        result = run.wait(40)
        assert result.code == LOST and time.monotonic() - begun < 30, result
