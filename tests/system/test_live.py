"""tests/live, which tries out at AWS what is assumed of it: with servers that stand in for AWS."""

import json
import os
import subprocess

import pytest

from tests.system.harness import REPOSITORY

LIVE = REPOSITORY / "tests" / "live"
# What Ceph RGW does otherwise than AWS: docs/guarantees.md, "Servers and conditional writes".
OF_RGW = {"put_if_match", "complete_if_absent", "complete_race", "checksum", "checksum_types", "trailer"}


def live(*arguments, **environment):
    argv = ["/usr/bin/python3", LIVE, *map(str, arguments)]
    environment = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", **environment}
    return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=300)


def test_dry_run_lists_what_it_would_do_and_cost():
    run = live("--dry-run", "--region", "eu-central-1")
    assert run.returncode == 0, run
    assert "put_race: of many writers of an absent key one wins" in run.stdout
    assert run.stdout.splitlines()[-1].startswith("about 0.00")


def test_it_needs_an_account_by_name():
    run = live("--region", "eu-central-1", AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b")
    assert run.returncode == 2
    assert "name the account of the sandbox" in run.stderr


@pytest.mark.parametrize("s3, dynamodb", [("rgw", "dynoxide"), ("simulated", "dynoxide"), ("simulated", "simulated_dynamodb")], indirect=True)
def test_servers_that_stand_in_for_aws(request, s3, dynamodb, s3once, tmp_path):
    record = tmp_path / "record.json"
    before = {row["Name"] for row in s3.client.list_buckets()["Buckets"]}
    run = live(
        *("--region", s3.region, "--program", s3once.binary(), "--record", record),
        *("--s3-endpoint", s3.endpoint, "--dynamodb-endpoint", dynamodb.endpoint),
        AWS_ACCESS_KEY_ID=s3.access_key,
        AWS_SECRET_ACCESS_KEY=s3.secret_key,
    )
    steps = {row["step"]: row for row in json.loads(record.read_text())["steps"]}
    otherwise = {name for name, row in steps.items() if row["result"] == "OTHERWISE"}
    assert otherwise <= (OF_RGW if "rgw" in request.node.name else set()), run.stdout
    assert run.returncode == (1 if otherwise else 0), run
    assert steps["policies"]["result"] == "not tried"
    assert steps["uploaders"]["seen"] == 201
    left = {row["Name"] for row in s3.client.list_buckets()["Buckets"]} - before
    assert not [name for name in left if name.startswith("s3once-live-")]
