"""`s3once verify --batch-report`: the completion report of S3 Batch Operations' checksums. No server here makes one: the reports are
written by the tests, in the form of the Amazon S3 User Guide, "Examples: S3 Batch Operations completion reports"."""

import base64
import csv
import hashlib
import json
from urllib.parse import quote_plus

import pytest

from tests.system.harness import MIB, make_tree
from tests.system.pushing import marks_of

NAMES = ["a b", "a+b", "a%20b", "a%", "ü/ä", 'q"u,o', "new\nline", "x"]


def result(sum_of, kind="CRC32C", of="FULL_OBJECT", etag="e"):
    """The message of a task that succeeded."""
    return json.dumps({"checksum_base64": sum_of, "etag": etag, "checksumAlgorithm": kind, "checksumType": of}).replace("=", "\\u003d")


def succeeded(bucket, key, message, version=""):
    return [bucket, quote_plus(key, safe="/"), version, "succeeded", "200", "", message]


def failed(bucket, key, status, code):
    return [bucket, quote_plus(key, safe="/"), "", "failed", status, code, "it could not be read"]


def write(path, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def rows_of(marks, bucket):
    """What the job would report of each object that is as its mark says."""
    return {key: succeeded(bucket, key, result(mark["sum"].removeprefix("crc32c:"))) for key, mark in marks_of(marks).items()}


def write_manifest(folder, bucket, files, made="2099-01-01T00:00:00.000Z"):
    results = [
        {
            "TaskExecutionStatus": "succeeded",
            "Bucket": "reports",
            "MD5Checksum": hashlib.md5((folder / name).read_bytes()).hexdigest(),
            "Key": f"job-1/results/{name.rsplit('/', 1)[-1]}",
        }
        for name in files
    ]
    path = folder / "manifest.json"
    path.write_text(json.dumps({"Format": "Report_CSV_20180820", "ReportCreationDate": made, "Results": results}))
    return path


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree", {name: f"content of {name}".encode() for name in NAMES})


@pytest.mark.smoke
@pytest.mark.parametrize("marks", ["sqlite", "dynamodb"], indirect=True)
def test_each_checksum_is_compared_with_its_mark(s3once, s3, bucket, marks, tree, tmp_path):
    url = f"s3://{bucket}/p"
    assert s3once("push", tree, url).code == 0
    rows = rows_of(marks, bucket)
    report = write(tmp_path / "rows.csv", [["other", "p/zz", "", "succeeded", "200", "", "{}"], *reversed(rows.values())])
    run = s3once("verify", "-v", "--batch-report", report, url)
    assert run.code == 0 and len(run.out.splitlines()) == len(NAMES), run
    assert f"{len(NAMES)} objects are as their marks say, by the checksum in the report\n" in run.err
    rows["p/a b"] = succeeded(bucket, "p/a b", result("AAAAAA=="))
    rows["p/zz"] = succeeded(bucket, "p/zz", result("AAAAAA=="))
    rows["q"] = succeeded(bucket, "q", result("AAAAAA=="))
    rows["p/a+b"] = failed(bucket, "p/a+b", "404", "NoSuchKey")
    rows["p/a%"] = failed(bucket, "p/a%", "403", "AccessDenied")
    rows["p/x"] = succeeded(bucket, "p/x", result("AAAAAAAAAAA=", "XXHASH3", etag=""))
    rows["p/ü/ä"] = succeeded(bucket, "p/ü/ä", result("AAAAAA==", "CRC32", etag=marks_of(marks)["p/ü/ä"]["etag"]))
    del rows["p/new\nline"]
    run = s3once("verify", "--batch-report", write(tmp_path / "rows.csv", rows.values()), url)
    assert run.code == 1 and set(run.out.splitlines()) == {
        "* p/a b",
        "- p/a+b",
        "! p/a%",
        "! p/x",
        "! p/ü/ä",
        "! p/new\\nline",
        "+ p/zz",
    }, run
    assert "p/a b: its content differs: the report has the CRC32C AAAAAA==, and its mark " in run.err
    assert "error: p/a%: S3 Batch Operations has not computed its checksum: AccessDenied it could not be read" in run.err
    assert "error: p/x: the report has its XXHASH3, and its mark has none to compare it with (crc32c)" in run.err
    assert "error: p/ü/ä: the report has its CRC32, and its mark has none" in run.err
    assert "error: p/new\\nline: the report does not have it" in run.err
    end = s3once("verify", "--json", "--batch-report", tmp_path / "rows.csv", url).events[-1]
    assert [end[name] for name in ("listed", "same", "missing", "differs", "unknown", "error")] == [len(NAMES), 2, 1, 1, 1, 4]
    assert end["complete"] and end["exit"] == 1 and "HeadObject" not in end["requests"]


def test_checksums_of_other_kinds(s3once, s3, bucket, marks, tmp_path):
    """MD5 is known of an object that was sent whole, by its etag; of parts the checksum of theirs."""
    tree = make_tree(tmp_path / "tree", {"small": b"one", "large": 6 * MIB})
    url = f"s3://{bucket}/p"
    assert s3once("push", "--checksum", "sha256", "--part-size", "5MiB", tree, url).code == 0
    parts = marks_of(marks)["p/large"]["parts_sum"].removeprefix("sha256:")
    assert parts.endswith("-2")
    md5 = base64.b64encode(hashlib.md5(b"one").digest()).decode()
    for told in (parts, parts.removesuffix("-2")):
        rows = [succeeded(bucket, "p/small", result(md5, "MD5")), succeeded(bucket, "p/large", result(told, "SHA256", "COMPOSITE"))]
        run = s3once("verify", "--batch-report", write(tmp_path / "rows.csv", rows), url)
        assert run.code == 0, run
    other = base64.b64encode(hashlib.md5(b"two").digest()).decode()
    rows = [succeeded(bucket, "p/small", result(other, "MD5")), succeeded(bucket, "p/large", result(parts[:-1] + "3", "SHA256", "COMPOSITE"))]
    run = s3once("verify", "--batch-report", write(tmp_path / "rows.csv", rows), url)
    assert run.code == 1 and set(run.out.splitlines()) == {"* p/small", "* p/large"}, run


def test_versions(s3once, s3, bucket, marks, tmp_path):
    """A report of all versions: only the one of the mark counts."""
    s3.client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    url = f"s3://{bucket}/p"
    assert s3once("push", make_tree(tmp_path / "tree", {"a": b"one"}), url).code == 0
    mark = marks_of(marks)["p/a"]
    right = succeeded(bucket, "p/a", result(mark["sum"].removeprefix("crc32c:")), mark["version_id"])
    old = succeeded(bucket, "p/a", result("AAAAAA=="), "older")
    assert s3once("verify", "--batch-report", write(tmp_path / "rows.csv", [old, right, old]), url).code == 0
    run = s3once("verify", "--batch-report", write(tmp_path / "rows.csv", [old]), url)
    assert run.code == 1 and "p/a: the report does not have it" in run.err, run


def test_manifest_of_the_report(s3once, s3, bucket, marks, tree, tmp_path):
    url = f"s3://{bucket}/p"
    assert s3once("push", tree, url).code == 0
    rows = list(rows_of(marks, bucket).values())
    folder = tmp_path / "job-1"
    (folder / "results").mkdir(parents=True)
    write(folder / "results" / "1.csv", rows[:3])
    write(folder / "2.csv", rows[3:])
    manifest = write_manifest(folder, bucket, ["results/1.csv", "2.csv"])
    assert s3once("verify", "--batch-report", manifest, url).code == 0
    run = s3once("verify", "--batch-report", folder / "2.csv", "--batch-report", folder / "results" / "1.csv", url)
    assert run.code == 0, run
    (tree / "later").write_bytes(b"uploaded after the report was made")
    assert s3once("push", tree, url).code == 0
    run = s3once("verify", "--batch-report", write_manifest(folder, bucket, ["results/1.csv", "2.csv"], "2020-01-01T00:00:00.000Z"), url)
    assert run.code == 0 and "1 file is claimed or failed, or newer than the report, and not compared" in run.err, run
    (folder / "2.csv").write_bytes((folder / "2.csv").read_bytes() + b"\n")
    run = s3once("verify", "--batch-report", manifest, url)
    assert run.code == 3 and run.out == "" and "job-1/results/2.csv: its MD5 is" in run.err, run
    (folder / "2.csv").unlink()
    run = s3once("verify", "--batch-report", manifest, url)
    assert run.code == 3 and "it names job-1/results/2.csv, which is neither beside it" in run.err, run


GARBAGE = {
    b"": "has nothing of s3://",
    b"a,b\n": "has 2 fields and not the 7 of a completion report",
    b'"a,b\n': "it is damaged in line 2: a quotation mark is not closed",
    b"\x1f\x8b\x08\x00\x00": "it is damaged in line 1: it has a NUL byte",
    b"{": "it is not JSON",
    b'{"Format": "other"}': "it is not the manifest of a completion report",
    None: "it cannot be opened: No such file or directory",
}


def test_garbage(s3once, s3, bucket, tmp_path):
    url = f"s3://{bucket}/p"
    assert s3once("push", make_tree(tmp_path / "tree", {"a": b"one"}), url).code == 0
    for number, (content, said) in enumerate(GARBAGE.items()):
        report = tmp_path / f"report{number}"
        if content is not None:
            report.write_bytes(content)
        run = s3once("verify", "--batch-report", report, url)
        assert run.code == 3 and run.out == "" and said in run.err and len(run.err.splitlines()) == 1, run


def test_result_without_quotation_marks_and_results_that_are_none(s3once, s3, bucket, marks, tmp_path):
    url = f"s3://{bucket}/p"
    assert s3once("push", make_tree(tmp_path / "tree", {"a": b"one", "b": b"two", "c": b"three"}), url).code == 0
    good = result(marks_of(marks)["p/a"]["sum"].removeprefix("crc32c:"))
    report = tmp_path / "report"
    report.write_text(f'{bucket},p/a,null,succeeded,200,,{good}\n{bucket},p/b,null,succeeded,200,,ok\n{bucket},p/c,,succeeded,,200,"[1]"\n')
    run = s3once("verify", "-v", "--batch-report", report, url)
    assert run.code == 1 and set(run.out.splitlines()) == {"= p/a", "! p/b", "! p/c"}, run
    assert "error: p/b: the report has no checksum of it" in run.err
