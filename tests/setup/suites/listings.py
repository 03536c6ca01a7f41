"""Makes tests/suites/listings.tsv anew, of a clone of localstack/localstack.

    tests/setup/suites/listings.py CLONE

Listings as AWS sent them: the order of the keys, and how they are written. Which keys there were, and what was asked, is written
down here. boto3 has decoded the keys of a listing unless it was told which encoding to ask for.
"""

import json
import sys
from collections import Counter
from pathlib import Path

from localstack import FOLDER, recordings
from repository import Repository, write_table

COLUMNS = ["test", "recorded", "step", "keys", "prefix", "after", "encoded", "told"]
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


def main():
    clone, rows = Repository(sys.argv[1], "localstack/localstack"), []
    for test, day, step, answer in recordings(clone, ["s3/test_s3_list_operations"]):
        keys, steps = STEPS.get(test, ([], {}))
        if step in steps:
            told = [{name: row[name] for name in ("Key", "Size", "ETag")} for row in answer["Contents"]]
            rows.append([test, day, step, json.dumps(keys), *steps[step], json.dumps(told)])
    source = f"{FOLDER}/s3/test_s3_list_operations.snapshot.json of {clone.name}, {clone.date}, by tests/setup/suites/listings.py"
    write_table(Path(__file__).resolve().parents[2] / "suites" / "listings.tsv", source, Counter(), COLUMNS, rows)


main()
