"""A first night with nothing set up is no success."""

import pytest

from tests.system.harness import fresh_name, make_tree
from tests.system.pushing import summary

KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@pytest.fixture
def young(tmp_path):
    """Nothing but a live log: there is nothing to send."""
    return make_tree(tmp_path / "logs", {"app.log": 10})


@pytest.mark.parametrize("dry", [[], ["--dry-run"]], ids=["run", "dry"])
@pytest.mark.parametrize("quiet", [[], ["--quiet"]], ids=["loud", "quiet"])
def test_no_bucket_is_no_success_with_nothing_to_send(s3once, s3, young, dry, quiet):
    missing = fresh_name("missing")
    run = s3once("push", *dry, *quiet, "--min-age", "1h", young, f"s3://{missing}/web1")
    assert run.code == 3 and missing in run.err and "does not exist" in run.err, run
    if not dry:
        run = s3once("fleet", "--json")
        assert run.code == 1 and run.events[0]["exit"] == 3 and not run.events[0]["succeeded"], run


def test_no_credentials_are_no_success_with_nothing_to_send(s3once, s3, bucket, young, tmp_path):
    url = f"s3://{bucket}/web1"
    run = s3once("push", "--quiet", "--min-age", "1h", young, url, env=dict.fromkeys(KEYS))
    assert run.code == 3 and "credentials" in run.err, run
    run = s3once("push", "--quiet", "--min-age", "1h", young, url, env={"AWS_ACCESS_KEY_ID": "AKIAWRONG"})
    assert run.code == 3 and "InvalidAccessKeyId" in run.err, run
    empty = tmp_path / "empty"
    empty.mkdir()
    run = s3once("push", empty, url, env=dict.fromkeys(KEYS))
    assert run.code == 3 and "credentials" in run.err, run
    run = s3once("push", "--quiet", "--min-age", "1h", young, url)
    assert (run.code, run.out, run.err) == (0, "", ""), run


def test_a_server_that_is_not_there_is_no_success(s3once, young, tmp_path):
    run = s3once("push", "--min-age", "1h", "--give-up-after", "1s", "--retries", "1", young, f"s3://{fresh_name('b')}")
    assert run.code == 3 and "127.0.0.1:9" in run.err, run


def test_s3_is_asked_once(s3once, s3, bucket, young):
    """With nothing to send that is one request. A run that has sent or skipped something asks nothing more."""
    url = f"s3://{bucket}/web1"
    assert summary(s3once("push", "--json", "--min-age", "1h", young, url))["requests"]["HeadBucket"] == 1
    assert summary(s3once("push", "--json", young, url))["requests"]["HeadBucket"] == 1
    run = summary(s3once("push", "--json", young, url))
    assert run["skipped"] == 1 and "HeadBucket" not in run["requests"], run
