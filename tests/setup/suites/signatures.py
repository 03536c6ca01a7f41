"""Makes tests/suites/signatures.tsv anew, of a clone of awslabs/aws-c-auth.

    tests/setup/suites/signatures.py CLONE

Path and query are taken as the suite has them in its canonical request: this program makes them in that form itself, by the
rules of S3.
"""

import json
import re
import sys
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote

from repository import Repository, write_table

FOLDER = "tests/aws-signing-test-suite/v4"
COLUMNS = ["case", "method", "key", "query", "headers", "payload_hash", "region", "service", "time", "access_key", "secret", "authorization"]


def row(clone, name):
    read = lambda file: clone.read(f"{FOLDER}/{name}/{file}")
    context = json.loads(read("context.json"))
    method, path, query, *_, payload_hash = read("header-canonical-request.txt").split("\n")
    head = re.sub(r"\n[ \t]+", " ", read("header-signed-request.txt").partition("\n\n")[0])
    headers = [line.partition(":")[::2] for line in head.split("\n")[1:]]
    authorization = next(value.strip() for key, value in headers if key.lower() == "authorization")
    signed = re.search(r"SignedHeaders=([^,]*)", authorization)[1].split(";")
    kept = [[key.lower(), value.strip()] for key, value in headers if key.lower() in signed]
    keys = context["credentials"]
    at = datetime.fromisoformat(context["timestamp"].replace("Z", "+00:00"))
    asked = [method, unquote(path)[1:], query, json.dumps(kept), payload_hash, context["region"], context["service"]]
    return [name, *asked, int(at.timestamp()), keys["access_key_id"], keys["secret_access_key"], authorization]


def main():
    clone = Repository(sys.argv[1], "awslabs/aws-c-auth")
    names = sorted({file.split("/")[-2] for file in clone.files(FOLDER)})
    source = f"{FOLDER} of {clone.name}, {clone.date}, by tests/setup/suites/signatures.py"
    write_table(Path(__file__).resolve().parents[2] / "suites" / "signatures.tsv", source, {}, COLUMNS, [row(clone, name) for name in names])


main()
