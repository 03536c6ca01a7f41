"""Makes src/aws/endpoint_partitions.h and tests/suites/endpoints.tsv anew, of a clone of boto/botocore.

    tests/setup/suites/endpoints.py CLONE

The table of partitions is AWS's own, and so are the cases: they test the rules by which AWS's SDKs find the endpoints of
S3, DynamoDB, STS and SSO. Cases about something that this program does not have are only counted.
"""

import re
import sys
from collections import Counter
from pathlib import Path

from repository import Repository, write_table

ROOT = Path(__file__).resolve().parents[3]
PARTITIONS = "botocore/data/partitions.json"
CASES = "tests/functional/endpoint-rules/{}/endpoint-tests-1.json"
SERVICES = {"s3": "s3", "dynamodb": "dynamodb", "sts": "sts", "portal.sso": "sso", "oidc": "sso-oidc"}
COLUMNS = ["service", "region", "custom", "bucket", "style", "terms", "url", "signing_region", "signing_name"]

HEAD = """/* The partitions that AWS published on {date}. Made by tests/setup/suites/endpoints.py, not by
 * hand. */
#pragma once

struct partition {{
	const char *region_prefix, *name, *suffix, *dualstack_suffix;
}};

/* The first prefix that fits a region counts. */
"""


def prefixes(partition):
    """The prefixes of its region names. The common partition has all other regions."""
    if partition["id"] == "aws":
        return [""]
    written = re.match(r"\^((?:[a-z]|\\-|\(de\))+?)\\-\\w", partition["regionRegex"]).group(1)
    prefix = written.replace("\\-", "-").replace("(de)", "").rstrip("-") + "-"
    return [prefix, *(region for region in partition["regions"] if not region.startswith(prefix))]


def write_partitions(botocore, cases):
    partitions = botocore.json(PARTITIONS)["partitions"]
    rows = [(prefix, p["outputs"]) for p in partitions for prefix in prefixes(p)]
    assert all(outputs["supportsDualStack"] and outputs["supportsFIPS"] for _, outputs in rows)
    rows.sort(key=lambda row: (-len(row[0]), row[0]))
    words = lambda row: [row[0], row[1]["name"], row[1]["dnsSuffix"], row[1]["dualStackDnsSuffix"]]
    lines = "".join("\t{" + ", ".join(f'"{word}"' for word in words(row)) + "},\n" for row in rows)
    older = sorted({row[1] for row in cases if row[0] == "sts" and row[6] == "https://sts.amazonaws.com"})
    regions = "".join(f'\t"{region}",\n' for region in older)
    text = HEAD.format(date=botocore.changed(PARTITIONS))
    text += f"static const struct partition partitions[] = {{\n{lines}}};\n\n"
    text += "/* The regions that share STS's one endpoint if `sts_regional_endpoints` is \"legacy\". */\n"
    text += f"static const char *const sts_global_regions[] = {{\n{regions}}};\n"
    (ROOT / "src" / "aws" / "endpoint_partitions.h").write_text(text)


def not_ours(params):
    """The feature of a case that this program lacks, or ""."""
    if "Region" not in params:
        return "no region: there is a default one"
    if params.get("AccountIdEndpointMode") == "required":
        return "account ids in endpoints"
    if params.get("AccountIdEndpointMode") != "disabled" and {"AccountId", "ResourceArn", "ResourceArnList"} & params.keys():
        return "account ids in endpoints"
    if params.get("IsSearchOperation"):
        return "an operation that is never sent"
    if params.get("UseS3ExpressControlEndpoint") or params.get("UseObjectLambdaEndpoint"):
        return "an operation that is never sent"
    if params.get("DisableAccessPoints"):
        return "an operation that is never sent"
    if params.get("CopySource"):
        return "an operation that is never sent"
    return ""


def terms(service, params):
    words = {"UseFIPS": "fips", "UseDualStack": "dualstack", "Accelerate": "accelerate"}
    found = [word for name, word in words.items() if params.get(name)]
    if params.get("UseArnRegion") is False:
        found.append("keep-region")
    if params.get("UseGlobalEndpoint"):
        found.append(f"{service}-global")
    return ",".join(found)


def row(service, case):
    params, expected = case.get("params", {}), case["expect"]
    style = "path" if params.get("ForcePathStyle") else "virtual"
    url, region, name = "error", "", expected.get("error", "")
    if "endpoint" in expected:
        endpoint = expected["endpoint"]
        schemes = endpoint.get("properties", {}).get("authSchemes", [{}])
        scheme = next((s for s in schemes if s.get("name") != "sigv4a"), schemes[0])
        url = endpoint["url"]
        region, name = scheme.get("signingRegion", params.get("Region", "")), scheme.get("signingName", service)
    asked = [params.get("Region", ""), params.get("Endpoint", ""), params.get("Bucket", ""), style, terms(service, params)]
    return [service, *asked, url, region, " ".join(name.split())]


def main():
    botocore = Repository(sys.argv[1], "boto/botocore")
    cases, others = [], Counter()
    for service, name in SERVICES.items():
        for case in botocore.json(CASES.format(name))["testCases"]:
            reason = not_ours(case.get("params", {}))
            if reason:
                others[service, reason] += 1
            else:
                cases.append(row(service, case))
    write_partitions(botocore, cases)
    source = f"{CASES.format('*')} of {botocore.name}, {botocore.date}, by tests/setup/suites/endpoints.py"
    write_table(ROOT / "tests" / "suites" / "endpoints.tsv", source, others, COLUMNS, cases)


main()
