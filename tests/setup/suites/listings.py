"""Makes tests/suites/listings.tsv anew, of a clone of localstack/localstack.

    tests/setup/suites/listings.py CLONE

Listings as AWS sent them: the order of the keys, and how they are written. Which keys there were, and what was asked, is written
down here. boto3 has decoded the keys of a listing unless it was told which encoding to ask for.

Lists of uploads and of parts are here, too. Uploads are told by their numbers, in the order in which they were begun, one of each of
the keys. The keys of a list of parts are the contents of the parts; null is an upload that was completed. `next` is where a page that
is not the last says that the next one begins.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path

from localstack import FOLDER, code_of, recordings
from repository import Repository, write_table

COLUMNS = ["test", "recorded", "step", "list", "keys", "prefix", "after", "encoded", "max", "told", "next", "code"]
FILES = ["s3/test_s3_list_operations", "s3/test_s3"]
PREFIXES = ["test/foo/bar/123", "test/foo/bar/456", "test/bar/foo/123"]
SAFE = ["file%2Fname", "test@key/", "test%123", "test%percent", "test key/", "test key//", "test%123/", "a/%F0%9F%98%80/"]
SAFE += [f"date=2026-0{month}-01/" for month in (1, 2, 3, 5)]
# Step → prefix, after which key, and whether the keys were asked for encoded.
STEPS = {
    "test_list_objects_v2_with_prefix": (
        PREFIXES,
        {"list-objects-v2-1": ("test/", "", "url"), "list-objects-v2-2": ("test/foo", "", "url"), "list-objects-v2-3": ("test/foo/bar", "", "url")},
    ),
    "test_list_objects_v2_continuation_token_safe_chars": (
        SAFE,
        {
            "list-objects-v2-max-5": ("", "", "decoded"),
            "list-objects-start-after": ("", "date=2026-02-01/", ""),
            "list-objects-start-after-url-type": ("", "date=2026-02-01/", "url"),
            "list-objects-start-after-encoded": ("", "date%3D2026-02-01/", "decoded"),
        },
    ),
    "test_list_objects_v2_continuation_start_after": (
        [f"test_{number}" for number in range(12)],
        {"list-objects-v2-max-5": ("", "", "decoded"), "list-objects-start-after": ("", "test_7", "decoded")},
    ),
    "test_list_objects_v2_continuation_common_prefixes": (
        ["folder/aSubfolder/subFile1", "folder/aSubfolder/subFile2", "folder/file1", "folder/file2"],
        {"list-objects-v2-all-keys": ("", "", "decoded")},
    ),
}

FIVE = ["test_c", "test_b", "test_a", "test_a", "test_a"]
# Step → which list, of what, after what, and how many at most.
PAGES = {
    "test_list_multiparts_next_marker": {
        "list-multiparts-empty": ("uploads", [], "", ""),
        "list-multiparts-all": ("uploads", FIVE, "", ""),
        "list-multiparts-max-1": ("uploads", FIVE, "", 1),
        "list-multiparts-both-markers": ("uploads", FIVE, "test_a 3", 1),
        "list-multiparts-both-markers-2": ("uploads", FIVE, "test_a 5", 1),
        "list-multiparts-get-last-upload-no-truncate": ("uploads", FIVE, "test_b 2", 1),
        "list-multiparts-wrong-id-for-key": ("uploads", FIVE, "test_c 2", 1),
    },
    "test_multipart_and_list_parts": {
        "list-part-after-created": ("parts", [], "", ""),
        "list-all-uploads": ("uploads", ["test-list-parts"], "", ""),
        "list-part-after-upload": ("parts", ["upload-part-1" * 5], "", ""),
        "list-all-uploads-after": ("uploads", ["test-list-parts"], "", ""),
        "list-part-after-complete-exc": ("parts", None, "", ""),
        "list-all-uploads-completed": ("uploads", [], "", ""),
    },
    "test_list_parts_pagination": {
        "list-parts-empty": ("parts", [], "", ""),
        "list-parts-all": ("parts", ["data", "data"], "", ""),
        "list-parts-1": ("parts", ["data", "data"], "", 1),
        "list-parts-next": ("parts", ["data", "data"], 1, 1),
        "list-parts-wrong-part": ("parts", ["data", "data"], 10, 1),
    },
    "test_multipart_parts_checksum_exceptions_composite": {"list-multiparts": ("uploads", ["test-multipart-checksum-exc"], "", "")},
    "test_multipart_parts_checksum_exceptions_full_object": {"list-multiparts": ("uploads", ["test-multipart-checksum-exc"], "", "")},
    "test_complete_multipart_parts_checksum_default": {
        "list-multiparts": ("uploads", ["test-multipart-checksum"], "", ""),
        "list-parts": ("parts", ["aaa"], "", ""),
    },
}


def number_of(reference):
    return int(re.fullmatch(r"<upload-id:(\d+)>", reference)[1])


def told_by(what, keys, answer):
    """The rows of a page, and where the next one begins."""
    if what == "parts":
        rows = [{name: value for name, value in part.items() if name != "LastModified"} for part in answer.get("Parts", [])]
        return rows, answer["NextPartNumberMarker"] if answer["IsTruncated"] else ""
    rows = []
    for upload in answer.get("Uploads", []):
        number, key = number_of(upload["UploadId"]), upload["Key"]
        hidden = re.fullmatch(r"<key:(\d+)>", key)  # they are numbered as they were listed, which is their order
        assert keys[number - 1] == (sorted(set(keys))[int(hidden[1]) - 1] if hidden else key)
        rows.append(number)
    return rows, number_of(answer["NextUploadIdMarker"]) if answer["IsTruncated"] else ""


def main():
    clone, rows = Repository(sys.argv[1], "localstack/localstack"), []
    for test, day, step, answer in recordings(clone, FILES):
        if any(row[0] == test and row[2] == step for row in rows):
            continue  # an older recording of the same
        keys, steps = STEPS.get(test, ([], {}))
        if step in steps:
            prefix, after, encoded = steps[step]
            told = [{name: row[name] for name in ("Key", "Size", "ETag")} for row in answer["Contents"]]
            rows.append([test, day, step, "objects", json.dumps(keys), prefix, after, encoded, "", json.dumps(told), "", ""])
        if step in PAGES.get(test, {}):
            what, keys, after, most = PAGES[test][step]
            told, after_that = ([], "") if code_of(answer) else told_by(what, keys, answer)
            rows.append([test, day, step, what, json.dumps(keys), "", after, "", most, json.dumps(told), after_that, code_of(answer)])
    source = f"{FOLDER}/s3/*.snapshot.json of {clone.name}, {clone.date}, by tests/setup/suites/listings.py"
    write_table(Path(__file__).resolve().parents[2] / "suites" / "listings.tsv", source, Counter(), COLUMNS, rows)


main()
