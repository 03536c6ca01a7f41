"""Makes tests/suites/reads.tsv anew, of a clone of localstack/localstack.

    tests/setup/suites/reads.py CLONE

What AWS answered to GET and HEAD, with ranges, versions and delete markers, and to conditional writes where there are versions.
Which request belongs to a step is written down here, in words: "version=STEP" is the version that AWS told there. A step that was
not recorded stands between. Conditions of a GET or a HEAD, and other forms of a range, are never sent.
"""

import json
import sys
from collections import Counter
from pathlib import Path

from localstack import FOLDER, code_of, status_of
from repository import Repository, write_table

COLUMNS = ["test", "recorded", "versions", "step", "request", "status", "code", "told"]
TEN, EIGHT = "put 0123456789", "put abcdefgh"
# Test → [(step, request)]; a step that begins with "-" was not recorded.
REQUESTS = {
    "test_get_object_range": [
        ("-put", TEN),
        ("get-0-8", "get range=0-8"),
        ("get-1-1", "get range=1-1"),
        ("get-0-100", "get range=0-100"),
        ("get-0-0", "get range=0-0"),
        ("get-100-200", "get range=100-200"),
    ],
    "test_invalid_range_error": [("-put", EIGHT), ("exc", "get range=1024-4096")],
    "test_range_key_not_exists": [("exc", "get range=1024-4096")],
    "test_range_header_body_length": [
        ("-put", "put x*2048"),
        ("get-object", "get range=0-1023"),
        ("get-object-2", "get range=1024-2048"),
    ],
    "test_head_object_fields": [("head-object-404", "head"), ("-put", EIGHT), ("head-object", "head")],
    "test_get_object_with_version_unversioned_bucket": [
        ("put-object", "put test-version"),
        ("get-obj-with-version", "get version=HPniJFCxqTsMuIH9KX8K8wEjNUgmABCD"),
        ("get-obj-with-null-version", "get version=null"),
    ],
}
VERSIONED = {
    "test_get_object_after_deleted_in_versioned_bucket": [
        ("-put", EIGHT),
        ("get-object", "get"),
        ("-delete", "delete"),
        ("get-object-after-delete", "get"),
    ],
    "test_delete_object_versioned": [
        ("put-object", "put test-delete"),
        ("delete-object", "delete"),
        ("get-deleted-object", "get"),
        ("get-object-with-version", "get version=put-object"),
        ("get-delete-marker", "get version=delete-object"),
        ("-delete-version", "delete version=put-object"),
        ("get-deleted-object-with-version", "get version=put-object"),
    ],
    "test_object_lock_delete_markers": [
        ("-put", "put test-put-object-lock"),
        ("put-delete-marker", "delete"),
        ("head-object-locked-delete-marker", "head version=put-delete-marker"),
    ],
    "test_put_object_if_none_match_versioned_bucket": [
        ("put-obj", "put if-none-match=*"),
        ("put-obj-if-none-match", "put if-none-match=*"),
        ("del-obj", "delete"),
        ("put-obj-after-del", "put if-none-match=*"),
    ],
    "test_put_object_if_match_versioned_bucket": [
        ("put-obj", "put test"),
        ("put-obj-if-none-match-bad-value", 'put if-match="abcdef"'),
        ("del-obj", "delete"),
        ("put-obj-after-del-exc", "put if-match=@put-obj"),
        ("put-obj-after-del", "put test-after-del"),
        ("put-obj-if-match", "put test-if-match if-match=@put-obj-after-del"),
    ],
}
# Of what was told: what this program reads, or what tells a version from another.
READ = ("Body", "ContentLength", "ContentRange", "ETag")
NEVER = {
    "test_s3_get_object_preconditions[get_object]": "conditions of a GET or a HEAD",
    "test_s3_get_object_preconditions[head_object]": "conditions of a GET or a HEAD",
    "test_s3_get_object_headers": "conditions of a GET or a HEAD",
    "test_precondition_failed_error": "conditions of a GET or a HEAD",
    "test_get_object_range": "other forms of a range",
    "test_s3_put_object_versioned": "lists of versions, and versioning that is suspended",
    "test_list_object_versions_order_unversioned": "lists of versions, and versioning that is suspended",
    "test_delete_keys_in_versioned_bucket": "lists of versions, and versioning that is suspended",
    "test_delete_objects_versioned": "lists of versions, and versioning that is suspended",
    "test_get_bucket_versioning_order": "lists of versions, and versioning that is suspended",
}


def rows(clone, others):
    for file in ("s3/test_s3", "s3/test_s3_api"):
        for name, test in clone.json(f"{FOLDER}/{file}.snapshot.json").items():
            name, content = name.split("::")[-1], test["recorded-content"]
            day = "-".join(reversed(test["recorded-date"].split(",")[0].split("-")))
            steps = {**REQUESTS, **VERSIONED}.get(name, [])
            for step, request in steps:
                answer = content[step] if step[0] != "-" else {}
                told = {key: answer[key] for key in READ if key in answer and not str(answer[key]).startswith("<")}
                if not told.get("Body"):  # it was read before it was recorded
                    told.pop("Body", None)
                told |= {"VersionId": True} if "VersionId" in answer else {}
                status, code = (status_of(answer), code_of(answer)) if answer else ("", "")
                code = "" if request.startswith("head") else code
                yield [name, day, "on" if name in VERSIONED else "", step, request, status, code, json.dumps(told)]
            if name in NEVER:
                others["reads", NEVER[name]] += len(content) - sum(step[0] != "-" for step, _ in steps)


def main():
    clone, others = Repository(sys.argv[1], "localstack/localstack"), Counter()
    found = list(rows(clone, others))
    source = f"{FOLDER}/s3/test_s3.snapshot.json and test_s3_api.snapshot.json of {clone.name}, {clone.date}, by tests/setup/suites/reads.py"
    write_table(Path(__file__).resolve().parents[2] / "suites" / "reads.tsv", source, others, COLUMNS, found)


main()
