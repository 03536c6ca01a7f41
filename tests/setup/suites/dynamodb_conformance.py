"""Runs nubo-db/dynamodb-conformance, each test of which was verified at AWS, against a DynamoDB of ours, and prints what became of
each. docs/suites.md has the counts and the reasons.

    python3 -m tests.setup.suites.dynamodb_conformance CLONE simulated|dynoxide|dynalite

CLONE needs a work tree in which `npm install` was run. Tables that a server does not make are left out: the simulated DynamoDB has
neither indexes nor keys that are numbers or bytes.
"""

import argparse
import json
import os
import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from tests.system.harness import DynamoDB, SharedServers

SETUP = """
import {createTable, cleanupAllTables, hashTableDef, hashNTableDef, compositeTableDef, compositeNTableDef, compositeBTableDef} from './helpers.js'

beforeAll(async () => {
  await cleanupAllTables()
  for (const table of [hashTableDef, hashNTableDef, compositeTableDef, compositeNTableDef, compositeBTableDef]) {
    try { await createTable(table) } catch {
      try { await createTable({...table, gsis: [], lsis: []}) } catch {}
    }
  }
}, 120_000)
afterAll(cleanupAllTables, 60_000)
"""
# What s3once never sends, by the file and the name of the test.
NEVER_SENT = [
    (r"batchWrite|transact|streams|/tags|updateTable|executeStatement|executeTransaction|legacy-api|listTables|deleteTable",
     "other calls: BatchWriteItem, transactions, streams, tags, ExecuteStatement, the legacy API, tables that are changed"),
    (r"[gl]si|index|numericKeys|binaryKeys|numberPrecision|hashN|numeric|binary|nested|paths|list|[Ss]et\b|size|contains|begins_with|attribute_type",
     "indexes; keys and attributes that are no strings and numbers; functions, nested paths"),
    (r"[Pp]rojection|[Ff]ilter|[Ss]elect|[Cc]onsumedCapacity|itemCollectionMetrics|ALL_OLD when|UPDATED_|return values|parallel|[Ss]egment|ScanIndexForward|descending|COUNT|if_not_exists|arithmetic",
     "parameters: projections, filters, Select, capacity, other ReturnValues, segments, descending order, functions of updates"),
    (r"validation|reject|error|unused|mixing|limits|empty|reserved|missing|Limit of 0|invalid|exceed|fails with",
     "requests that are not valid"),
]  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("clone", type=Path)
    parser.add_argument("server", choices=["simulated", "dynoxide", "dynalite"])
    words = parser.parse_args()
    clone, setup = words.clone.resolve(), words.clone.resolve() / "src" / "setup.ts"
    theirs = setup.read_text()
    with tempfile.TemporaryDirectory() as name:
        servers, report = SharedServers(Path(name), os.getpid()), Path(name) / "report.json"
        try:
            setup.write_text(SETUP)
            service = DynamoDB(servers.get(words.server))
            env = {**os.environ, "DYNAMODB_ENDPOINT": service.endpoint, "AWS_REGION": service.region, "AWS_MAX_ATTEMPTS": "1"}
            env |= {"AWS_ACCESS_KEY_ID": service.access_key, "AWS_SECRET_ACCESS_KEY": service.secret_key}
            argv = ["npx", "--no-install", "vitest", "run", "--reporter=json", f"--outputFile={report}"]
            subprocess.run(argv, cwd=clone, env=env, stdout=subprocess.DEVNULL, timeout=3600, check=False)
            results = json.loads(report.read_text())["testResults"]
        finally:
            setup.write_text(theirs)
            servers.stop()
    counts = Counter()
    for file in results:
        for test in file["assertionResults"]:
            where = f"{Path(file['name']).relative_to(clone / 'tests')}: {test['fullName']}"
            reasons = [reason for names, reason in NEVER_SENT if re.search(names, where)]
            counts["passed" if test["status"] == "passed" else (reasons or ["others"])[0]] += 1
            if test["status"] != "passed" and not reasons:
                print(test["status"], where, *(message.split("\n")[0][:300] for message in test["failureMessages"]))
    print(counts.total(), "tests")
    for reason, n in counts.most_common():
        print(n, reason)


main()
