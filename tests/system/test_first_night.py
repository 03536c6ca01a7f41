"""A first night with nothing set up is no success, and whose keys a job has that root runs by hand."""

import os

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
    run = s3once("push", "--min-age", "1h", "--give-up-after", "1s", young, f"s3://{fresh_name('b')}", attempts=2)
    assert run.code == 3 and "127.0.0.1:9" in run.err, run


def test_s3_is_asked_once(s3once, s3, bucket, young):
    """With nothing to send that is one request. A run that has sent or skipped something asks nothing more."""
    url = f"s3://{bucket}/web1"
    assert summary(s3once("push", "--json", "--min-age", "1h", young, url))["requests"]["HeadBucket"] == 1
    assert summary(s3once("push", "--json", young, url))["requests"]["HeadBucket"] == 1
    run = summary(s3once("push", "--json", young, url))
    assert run["skipped"] == 1 and "HeadBucket" not in run["requests"], run


@pytest.fixture
def jobs(s3once, bucket, young, tmp_path):
    folder = tmp_path / "jobs"
    folder.mkdir()
    s3once.environment["S3ONCE_JOBS"] = str(folder)
    for name in ("one", "two"):
        (folder / f"{name}.conf").write_text(f"source = {young}\ntarget = s3://{bucket}/{name}\n")
    return folder


@pytest.mark.real_s3
def test_a_job_run_by_hand_has_the_keys_of_its_unit(s3once, s3, bucket, jobs):
    """Also beside another job, which has keys of its own."""
    for name, secret in (("one", s3.secret_key), ("two", "wrong")):
        (jobs / f"{name}.credentials").write_text(
            f"[default]\naws_access_key_id = {s3.access_key}\naws_secret_access_key = {secret}\n"
        )
        os.chmod(jobs / f"{name}.credentials", 0o600)
    (jobs / "two.env").write_text("S3ONCE_STORAGE_CLASS=STANDARD\n")
    without = dict.fromkeys(KEYS)
    run = s3once("run", "one", env=without)
    assert run.code == 0 and s3.get(bucket, "one/app.log"), run
    run = s3once("run", "two", "one", env=without)
    assert run.code == 3 and "two: " in run.out + run.err and "SignatureDoesNotMatch" in run.err, run
    assert "one: all 1 file" in run.out or "one: 1 file is in" in run.out, run
    run = s3once("run", "two", "one")
    assert run.code == 0 and s3.get(bucket, "two/app.log"), run  # what the environment has counts first


def test_the_variables_of_the_unit_count_in_a_run_by_hand(s3once, s3, bucket, jobs):
    (jobs / "one.env").write_text("S3ONCE_EXCLUDE=*.log\nS3ONCE_OPTIONS=--min-age 1h\n")
    run = s3once("config", "one")
    assert "exclude" in run.out and "*.log" in run.out, run
    run = s3once("run", "one", "two", "--json")
    assert run.code == 0 and "S3ONCE_OPTIONS is for the systemd unit alone" in run.err, run
    assert set(s3.objects(bucket)) == {"two/app.log"}, run
    run = s3once("run", "one", "--json", env={"S3ONCE_OPTIONS": "--min-age 1h"})  # as in the unit
    assert run.code == 0 and "S3ONCE_OPTIONS" not in run.err, run
