"""Makes tests/suites/conditions.tsv and tests/suites/recordings.tsv anew, of a clone of localstack/localstack.

    tests/setup/suites/recordings.py CLONE

Its *.snapshot.json are what AWS has answered, each with the day of its recording. conditions.tsv has the tests of conditional
writes, step by step; which request belongs to a step is written down here. recordings.tsv has each error that AWS answered to
an operation which this program sends, too.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path

from localstack import DYNAMODB, FOLDER, S3, code_of, recordings, status_of
from repository import Repository, write_table

HERE = Path(__file__).resolve().parents[2] / "suites"

# Step → request. "@STEP" is the etag that AWS told there; a create sends one part, too.
REQUESTS = {
    "test_put_object_if_none_match": {"put-obj": "put", "put-obj-if-none-match": "put if-none-match=*", "del-obj": "delete", "put-obj-after-del": "put if-none-match=*"},
    "test_put_object_if_none_match_validation": {"put-obj": "put", "put-obj-if-none-match-bad-value": 'put if-none-match="abcdef"'},
    "test_multipart_if_none_match_with_delete": {
        "put-obj": "put",
        "create-multipart": "create",
        "complete-multipart-if-none-match": "complete if-none-match=*",
        "del-obj": "delete",
        "complete-multipart-after-del": "complete if-none-match=*",
        "complete-multipart-after-del-restart": "create complete if-none-match=*",
    },
    "test_multipart_if_none_match_with_put": {"create-multipart": "create", "put-obj": "put", "complete-multipart-if-none-match-put-during": "complete if-none-match=*"},
    "test_put_object_if_match": {
        "put-obj": "put test",
        "put-obj-if-match-wrong-etag": 'put if-match="d41d8cd98f00b204e9800998ecf8427e"',
        "put-obj-overwrite": "put if-match=@put-obj",
        "del-obj": "delete",
        "put-obj-if-match-key-not-exists": "put if-match=@put-obj",
        "put-obj-after-del": "put",
    },
    "test_put_object_if_match_validation": {
        "put-obj-if-match-star-value": "put if-match=*",
        "put-obj-if-match-bad-value": 'put if-match="abcdef"',
        "put-obj-if-match-bad-value-2": 'put if-match="bad-char_/"',
    },
    "test_multipart_if_match_with_put": {
        "put-obj": "put test",
        "create-multipart": "create",
        "put-obj-during": "put test2",
        "complete-multipart-if-match-put-before": "complete if-match=@put-obj",
        "complete-multipart-if-match-put-during": "complete if-match=@put-obj-during",
        "create-multipart-again": "create",
        "complete-multipart-if-match-put-before-restart": "complete if-match=@put-obj-during",
    },
    "test_multipart_if_match_with_put_identical": {
        "put-obj": "put test",
        "create-multipart": "create",
        "put-obj-during": "put test",
        "complete-multipart-if-match-put-during": "complete if-match=@put-obj-during",
        "create-multipart-again": "create",
        "complete-multipart-if-match-put-before-restart": "complete if-match=@put-obj-during",
    },
    "test_multipart_if_match_with_delete": {
        "put-obj": "put test",
        "create-multipart": "create",
        "del-obj": "delete",
        "complete-multipart-after-del": "complete if-match=@put-obj",
        "put-obj-2": "put test",
        "complete-multipart-if-match-after-put": "complete if-match=@put-obj-2",
    },
    "test_put_object_if_match_and_if_none_match_validation": {"put-obj-both-precondition": 'put if-match="abcdef" if-none-match=*'},
    "test_multipart_if_match_etag": {
        "put-obj": "put test",
        "create-multipart": "create",
        "complete-multipart-if-match": "complete if-match=@put-obj",
        "create-multipart-overwrite": "create",
        "complete-multipart-if-match-true-etag": "complete if-match=@put-obj",
        "complete-multipart-if-match-overwrite-multipart": "complete if-match=@complete-multipart-if-match",
    },
}

# What a step's name begins with → the operation.
OPERATIONS = [
    (r"put-obj|put-object|put-wrong-checksum|md5-error|put-storage", "PutObject"),
    (r"head-obj|head-object", "HeadObject"),
    (r"create-m|create-multipart|create-mpu", "CreateMultipartUpload"),
    (r"upload-part|part-wrong", "UploadPart"),
    (r"complete-", "CompleteMultipartUpload"),
    (r"list-part", "ListParts"),
    (r"list-multipart|list-mpu", "ListMultipartUploads"),
    (r"list-obj", "ListObjectsV2"),
    (r"get-obj|get-object|get-range|get--|get-deleted|get-delete", "GetObject"),
]
NOT_SENT = re.compile(r"copy|acl|lock|retention|legal|tagging|attr|version|torrent|presign|acp")


def conditions(clone):
    for test, day, step, answer in recordings(clone, S3):
        request = REQUESTS.get(test, {}).get(step)
        if request:
            yield [test, day, step, request, status_of(answer), code_of(answer)]


def operation_of(step):
    return next((name for begin, name in OPERATIONS if re.match(begin, step) and not NOT_SENT.search(step)), None)


def errors(clone, others):
    for service, files in (("s3", S3), ("dynamodb", DYNAMODB)):
        seen = set()
        for test, day, step, answer in recordings(clone, files):
            if not code_of(answer):
                continue
            operation = operation_of(step) if service == "s3" else "any"
            if not operation:
                others[service, "an error of an operation that is never sent"] += 1
                continue
            error = answer["Error"]
            row = [service, operation, status_of(answer), error["Code"], " ".join(error.get("Message", "").split())]
            if tuple(row[:4]) in seen:
                others[service, "the same error of the same operation once more"] += 1
                continue
            seen.add(tuple(row[:4]))
            yield [*row[:4], day, row[4][:200], json.dumps(answer["Item"], sort_keys=True) if "Item" in answer else ""]


def main():
    clone = Repository(sys.argv[1], "localstack/localstack")
    source = f"{FOLDER}/*/*.snapshot.json of {clone.name}, {clone.date}, by tests/setup/suites/recordings.py"
    columns = ["test", "recorded", "step", "request", "status", "code"]
    write_table(HERE / "conditions.tsv", source, Counter(), columns, list(conditions(clone)))
    others = Counter()
    rows = sorted(errors(clone, others), key=str)
    columns = ["service", "operation", "status", "code", "recorded", "message", "item"]
    write_table(HERE / "recordings.tsv", source, others, columns, rows)


main()
