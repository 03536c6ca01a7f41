"""Makes tests/suites/checksums.tsv anew, of a clone of localstack/localstack.

    tests/setup/suites/checksums.py CLONE

What AWS answered to requests with checksums: objects, uploads in parts, what HEAD shows of them, and what AWS refuses. Which
request belongs to a step is written down here:

    put CONTENT KIND          an object with its checksum; KIND=bad: with that of something else, KIND=no: with none at all
    create [KIND] [type=T]    an upload in parts; all that follows is about the last one
    part N CONTENT KIND       likewise
    parts                     a list of them
    complete parts=WHAT       own: with the checksum of each part, wrong: with another one, none: without;
      [whole=KIND] [type=T]   and with that of the whole object; whole=KIND=bad: that of something else
      [size=N]
    head                      with x-amz-checksum-mode
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path

from localstack import FOLDER, S3, code_of, recordings, status_of
from repository import Repository, write_table

COLUMNS = ["test", "recorded", "step", "request", "status", "code", "told"]
MULTIPART = {
    "upload-part-0": "part 1 a*5242881 KIND",
    "upload-part-1": "part 2 a*5242881 KIND",
    "upload-part-2": "part 3 a*10 KIND",
    "list-parts": "parts",
    "complete-multipart-wrong-parts-checksum": "complete parts=wrong",
    "head-object-with-checksum": "head",
}
EXCEPTIONS = {
    "create-mpu-wrong-checksum-algo": "create TEST",
    "upload-part-no-checksum-ok": "part 1 abc KIND",
    "create-mpu-with-checksum": "create OTHER",
    "upload-part-different-checksum-exc": "part 1 abc CRC32",
}
# "[X]" of a test is KIND below, "[T-X]" TYPE and KIND.
REQUESTS = {
    "test_put_object_checksum": {
        "put-wrong-checksum-no-b64": "put test_data.. KIND=no",
        "put-wrong-checksum-value": "put test_data.. KIND=bad",
        "put-object-generated": "put test_data.. KIND",
        "head-object-with-checksum": "head",
    },
    "test_s3_get_object_checksum": {"put-object": "put test-checksum KIND"},
    "test_multipart_upload_part_checksum_exception": {
        "put-wrong-checksum-no-b64": "create ; part 1 right_body KIND=no",
        "put-wrong-checksum-value": "part 1 right_body KIND=bad",
    },
    "test_multipart_checksum_type_compatibility": {"create-mpu-checksum": "create KIND type=TYPE", "create-mpu-checksum-exc": "create KIND type=TYPE"},
    "test_multipart_checksum_type_default_for_checksum": {"create-mpu-default-checksum-type": "create KIND"},
    "test_complete_multipart_parts_checksum_composite": {
        "create-mpu-checksum": "create KIND type=COMPOSITE",
        **MULTIPART,
        "complete-multipart-no-checksum": "complete parts=none",
        "complete-multipart-checksum": "complete parts=own",
    },
    "test_complete_multipart_parts_checksum_full_object": {
        "create-mpu-checksum": "create KIND type=FULL_OBJECT",
        **MULTIPART,
        "complete-multipart-checksum": "complete parts=none whole=KIND type=FULL_OBJECT",
    },
    "test_multipart_parts_checksum_exceptions_composite": {
        **EXCEPTIONS,
        "create-mpu-no-checksum-algo-with-type": "create type=COMPOSITE",
        "create-mpu-composite-checksum": "create KIND type=COMPOSITE",
        "complete-part-with-bad-checksum-type": "complete parts=own type=FULL_OBJECT",
    },
    "test_multipart_parts_checksum_exceptions_full_object": {
        **EXCEPTIONS,
        "create-mpu-no-checksum-algo-with-type": "create type=FULL_OBJECT",
        "create-mpu-checksum-crc32c": "create KIND type=FULL_OBJECT",
        "create-mpu-with-checksum": "create OTHER type=FULL_OBJECT",
        "complete-part-bad-checksum-type": "complete parts=own type=COMPOSITE",
        "complete-part-bad-checksum": "complete parts=own whole=KIND=bad type=FULL_OBJECT",
        "complete-success": "complete parts=own whole=KIND type=FULL_OBJECT",
    },
    "test_complete_multipart_parts_checksum_full_object_default": {
        "create-mpu-checksum-crc64": "create KIND",
        "upload-part": "part 1 aaa KIND",
        "complete-multipart-checksum": "complete parts=none",
        "head-object-with-checksum": "head",
    },
    "test_multipart_size_validation": {
        "create-mpu": "create",
        "upload-part": "part 1 aaaa CRC32",
        "complete-multipart-wrong-size": "complete parts=none size=5",
    },
}
KINDS = {
    "test_multipart_parts_checksum_exceptions_composite": ("CRC32", "SHA256"),
    "test_multipart_parts_checksum_exceptions_full_object": ("CRC32C", "CRC32C"),
    "test_complete_multipart_parts_checksum_full_object_default": ("CRC64NVME", ""),
}
TOLD = re.compile(r"Checksum\w*|ETag|ContentLength|PartNumber$|Size$")


def told(answer):
    """The checksums and etags in the reply, with a list of them for parts."""
    found = {name: value for name, value in answer.items() if TOLD.match(name)}
    if "Parts" in answer:
        found["Parts"] = [told(part) for part in answer["Parts"]]
    return found


def requests_of(test):
    """Step → request."""
    name, _, variant = test.partition("[")
    *type_, kind = variant.rstrip("]").split("-")
    kind, other = KINDS.get(name, (kind, ""))
    steps = REQUESTS.get(name, {}) if kind != "None" else {}
    names = {"KIND": kind, "OTHER": other, "TYPE": "".join(type_)}
    return {step: re.sub(r"\b(KIND|OTHER|TYPE)\b", lambda found: names[found[0]], request) for step, request in steps.items()}


def main():
    clone, rows, others = Repository(sys.argv[1], "localstack/localstack"), [], Counter()
    for test, day, step, answer in recordings(clone, S3):
        request = requests_of(test).get(step)
        if request:
            rows.append([test, day, step, request, status_of(answer), code_of(answer), json.dumps(told(answer), sort_keys=True)])
    source = f"{FOLDER}/s3/*.snapshot.json of {clone.name}, {clone.date}, by tests/setup/suites/checksums.py"
    write_table(Path(__file__).resolve().parents[2] / "suites" / "checksums.tsv", source, others, COLUMNS, rows)


main()
