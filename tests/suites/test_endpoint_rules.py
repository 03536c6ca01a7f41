"""AWS's own test cases for the endpoints of S3, DynamoDB, STS and SSO, each put to endpoint_resolve()."""

import pytest

from tests.suites.suite import Suite, read_table
from tests.system.test_endpoints import by_us, without_default_port

ASKED = ("service", "region", "custom", "bucket", "style", "terms")
ROWS, OTHERS = read_table("endpoints")
NAMES = {"s3": "S3", "dynamodb": "DynamoDB", "sts": "STS", "portal.sso": "SSO", "oidc": "tokens of SSO"}
UNSUPPORTED = ("Express", "Outposts", "outposts", "multi-region")


def reason_of(row, ours):
    """Why this answer differs on purpose."""
    words = row["terms"].split(",")
    if ours[0] == "error" and any(word in ours[1] for word in UNSUPPORTED):
        return "S3 Express One Zone, S3 on Outposts and multi-region access points are refused with a sentence."
    if row["custom"] and row["url"] == "error" and ("fips" in words or "dualstack" in words):
        return "FIPS and dualstack do not change an endpoint URL, as in botocore."
    if row["custom"] and row["url"] == "error" and "dual-stack endpoints" in row["signing_name"]:
        return "An endpoint URL is used as it is given."
    if row["custom"] and "." in row["bucket"]:
        return "A bucket with dots goes into the path of an endpoint URL, as in botocore."
    if "s3-global" in words and row["region"] == "us-east-1":
        return "The regional endpoint of us-east-1 is used: `s3_us_east_1_regional_endpoint` is not read."
    if "accelerate" in words and row["style"] == "path":
        return "S3 Transfer Acceleration overrides the path style, as in botocore."
    if "accelerate" in words and row["region"] == "aws-global":
        return "The host of S3 Transfer Acceleration has no region in its name, as AWS documents it."
    return ""


@pytest.mark.parametrize("service", sorted(NAMES))
def test_endpoint_rules(service):
    suite = Suite(f"Endpoints of {NAMES[service]}", OTHERS[service])
    rows = [row for row in ROWS if row["service"] == service]
    for row, ours in zip(rows, by_us([tuple(row[field] for field in ASKED) for row in rows])):
        expected = (without_default_port(row["url"].rstrip("/")), row["signing_region"], row["signing_name"])
        agrees = ours[0] == "error" if row["url"] == "error" else ours == expected
        suite.count(agrees, reason_of(row, ours), (row, ours))
    suite.compare_with_page()
