"""Makes tests/suites/profiles.tsv anew, of a clone of smithy-lang/smithy-rs.

    tests/setup/suites/profiles.py CLONE

How AWS's SDKs read the two files of profiles: the files, and the profiles and settings that are in them, or the error.
"""

import json
import sys
from pathlib import Path

from repository import Repository, write_table

CASES = "aws/rust-runtime/aws-runtime/test-data/profile-parser-tests.json"
COLUMNS = ["case", "config", "credentials", "profiles", "error"]


def row(case):
    given, expected = case["input"], case["output"]
    profiles = expected.get("config", {}).get("profiles", {})
    files = [json.dumps(given.get(name, "")) for name in ("configFile", "credentialsFile")]
    return [case["name"], *files, json.dumps(profiles, sort_keys=True), expected.get("errorContaining", "")]


def main():
    clone = Repository(sys.argv[1], "smithy-lang/smithy-rs")
    source = f"{CASES} of {clone.name}, {clone.date}, by tests/setup/suites/profiles.py"
    rows = [row(case) for case in clone.json(CASES)["tests"]]
    write_table(Path(__file__).resolve().parents[2] / "suites" / "profiles.tsv", source, {}, COLUMNS, rows)


main()
