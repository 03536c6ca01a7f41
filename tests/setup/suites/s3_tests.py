"""Runs the tests of ceph/s3-tests that concern what this program sends against one of our fakes of S3, and prints what became of
each. docs/suites.md has the counts and the reasons.

    python3 -m tests.setup.suites.s3_tests CLONE aws|simulated [--botocore CLONE]

aws is the AWS-like server of the fault tests, in front of Ceph RGW. The suite needs python3-munch and python3-isodate, and a
botocore that is newer than Debian's.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

from tests.faults.proxy import Proxy
from tests.system.harness import S3, SharedServers

# Multipart uploads, conditions, checksums and versions.
CHOSEN = "multipart or checksum or if_match or if_none_match or ifmatch or ifnonmatch or conditional or version"
FIXTURES = "[fixtures]\nbucket prefix = suite-{random}-\niam name prefix = suite-\niam path prefix = /suite/\n"

# What s3once never sends, by the names of the tests.
NEVER_SENT = [
    (r"copy|get_part|attributes|post_object|acl|policy|logging|lifecycle|lock|tagging|owner|sse|encryption", "other calls: copies, parts that are read, settings"),
    (r"delete_object|current_object|object_current|delete_marker", "conditional deletes, and conditions on versions"),
    (r"version", "versions that are made, listed or deleted"),
]
# The suite clears away by way of calls that not every fake has, and of IAM.
CLEARING = """
import s3tests.functional as suite


def clear(client):
    for bucket in suite.get_buckets_list(client, suite.get_prefix()):
        try:
            page = client.list_object_versions(Bucket=bucket)
            there = [(row["Key"], {"VersionId": row["VersionId"]}) for name in ("Versions", "DeleteMarkers") for row in page.get(name, [])]
        except suite.ClientError:
            there = [(row["Key"], {}) for row in client.list_objects_v2(Bucket=bucket).get("Contents", [])]
        for key, version in there:
            client.delete_object(Bucket=bucket, Key=key, **version)
        for upload in client.list_multipart_uploads(Bucket=bucket).get("Uploads", []):
            client.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
        client.delete_bucket(Bucket=bucket)


suite.setup = suite.teardown = lambda: clear(suite.get_client())
"""


def configuration(endpoint, keys):
    """All users of the suite are the one that there is."""
    host, port = re.match(r"http://([^:/]+):(\d+)", endpoint).groups()
    user = f"display_name = x\nuser_id = x\nemail = x@example.com\napi_name = default\naccess_key = {keys.access_key}\nsecret_key = {keys.secret_key}\n"
    text = f"[DEFAULT]\nhost = {host}\nport = {port}\nis_secure = False\nssl_verify = False\n\n{FIXTURES}"
    for name in ("s3 main", "s3 alt", "s3 tenant", "iam", "iam root", "iam alt root"):
        text += f"\n[{name}]\n{user}" + ("tenant = x\n" if name == "s3 tenant" else "")
    return text


def play(clone, endpoint, keys, botocore, folder):
    file = folder / "s3tests.conf"
    file.write_text(configuration(endpoint, keys))
    (folder / "clearing.py").write_text(CLEARING)
    path = os.pathsep.join(str(one) for one in (botocore, clone, folder) if one)
    env = {**os.environ, "S3TEST_CONF": str(file), "PYTHONPATH": path, "AWS_MAX_ATTEMPTS": "1", "COLUMNS": "300"}
    tests = ["s3tests/functional/test_s3.py", "s3tests/functional/test_headers.py"]
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "clearing", "-q", "-rA", "--tb=line", "-k", CHOSEN, *tests]
    return subprocess.run(argv, cwd=clone, env=env, capture_output=True, text=True, timeout=3600, check=False).stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("clone", type=Path)
    parser.add_argument("fake", choices=["aws", "simulated"])
    parser.add_argument("--botocore", type=Path)
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        servers = SharedServers(folder, os.getpid())
        try:
            service = S3(servers.get("rgw" if words.fake == "aws" else "simulated"))
            with Proxy(service, "s3", behaves="aws") if words.fake == "aws" else nullcontext(service) as at:
                output = play(words.clone.resolve(), at.endpoint, service, words.botocore, folder)
        finally:
            servers.stop()
    lines = re.findall(r"^(PASSED|FAILED|ERROR|SKIPPED) \S*?::(\S+)(?: - (.*))?$", output, re.M)
    counts = Counter()
    for outcome, test, why in sorted(lines):
        reasons = [reason for names, reason in NEVER_SENT if re.search(names, test)]
        counts[outcome if outcome == "PASSED" else (reasons or [outcome])[0]] += 1
        if outcome != "PASSED" and not reasons:
            print(outcome, test, why[:300])
    print(len(lines), "tests")
    for reason, n in counts.most_common():
        print(n, reason)


main()
