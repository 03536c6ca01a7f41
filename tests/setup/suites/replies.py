"""Makes tests/suites/replies.tsv and tests/suites/lists.tsv anew, of a clone of boto/botocore.

    tests/setup/suites/replies.py CLONE

The errors among its tests of the protocols: the services' replies, and the code and message that AWS's SDKs read out of them. And
the lists of S3 among its tests of response parsing. All other operations of these tests are made up, or of other services.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path

from repository import Repository, write_table

PROTOCOLS = "tests/unit/protocols/output"
PARSING = "tests/unit/response_parsing"
COLUMNS = ["service", "case", "status", "headers", "body", "code", "message"]


def one_line(body):
    """Drops the blanks between elements and members, which mean nothing."""
    return re.sub(r"\s*\n\s*", " ", body).strip()


def protocols(clone, others):
    for service, file in (("dynamodb", "json"), ("dynamodb", "json_1_0"), ("s3", "rest-xml")):
        for test in clone.json(f"{PROTOCOLS}/{file}.json"):
            for case in test["cases"]:
                reply, code = case["response"], case.get("errorCode")
                if not code:
                    others[service, "what an operation that is never sent is answered"] += 1
                elif "<ErrorResponse>" in reply.get("body", ""):
                    others[service, "an error in a form that S3 does not have"] += 1
                else:
                    headers = json.dumps(reply.get("headers", {}))
                    body = one_line(reply.get("body", ""))
                    yield [service, case["id"], reply["status_code"], headers, body, code, case.get("errorMessage") or ""]


def parsed(clone, others):
    for file in clone.files(f"{PARSING}/xml/errors") + clone.files(f"{PARSING}/json/errors"):
        name = file.rpartition("/")[2]
        service = name.split("-")[0]
        if service not in ("s3", "dynamodb") or (service == "s3" and name.endswith(".json")):
            continue
        expected = file.replace(".xml", ".json") if service == "s3" else file.replace("/errors/", "/expected/")
        error = clone.json(expected)["Error"]
        body = one_line(re.sub(r"^(HTTP|[\w-]+:).*\n", "", clone.read(file), flags=re.M))
        yield [service, name, 400, "{}", body, error["Code"], one_line(error["Message"])]


def lists(clone):
    """Lists that this program reads, too: what boto has found in them."""
    for name, command, rows in (("list-objects", "objects", "Contents"), ("list-multipart-uploads", "uploads", "Uploads"), ("list-multipart-uploads#2", "uploads", "Uploads")):
        path = f"{PARSING}/xml/responses/s3-{name}"
        yield [name, command, one_line(clone.read(f"{path}.xml")), json.dumps(clone.json(f"{path}.json").get(rows, []))]


def main():
    clone, others = Repository(sys.argv[1], "boto/botocore"), Counter()
    rows = [*protocols(clone, others), *parsed(clone, others)]
    source = f"{PROTOCOLS} and {PARSING} of {clone.name}, {clone.date}, by tests/setup/suites/replies.py"
    write_table(Path(__file__).resolve().parents[2] / "suites" / "replies.tsv", source, others, COLUMNS, rows)
    read = len([file for file in clone.files(f"{PARSING}/xml/responses") if file.endswith(".xml")])
    not_ours = Counter({("lists", "what another service, or an operation that is never sent, is answered"): read - 3})
    write_table(Path(__file__).resolve().parents[2] / "suites" / "lists.tsv", source, not_ours, ["case", "command", "body", "rows"], list(lists(clone)))


main()
