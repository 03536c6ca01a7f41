"""A refusal by S3 concerns the file, until S3 has refused several and stored none: then it concerns the set-up, and is reported once."""

import pytest

from tests.faults import faults
from tests.faults.http1 import Headers, Reply
from tests.faults.proxy import Proxy
from tests.system.harness import MIB, make_tree, wait_until
from tests.system.pushing import counts, told

DENIED = faults.answer(403, "AccessDenied")
SEVERAL = 10  # different files that are refused before a run ends early


def errors(run):
    return [line for line in run.err.splitlines() if line.startswith("s3once: error: ")]


def logs(folder, count, **others):
    return make_tree(folder, {**{f"log{number:03}": 100 for number in range(count)}, **others})


def push(s3once, tree, bucket, *options, rules=None):
    if rules:
        path = tree.parent / "rules"
        path.write_text(rules)
        options = [*options, "--rules", path]
    return s3once("push", "--json", *options, tree, f"s3://{bucket}")


@pytest.mark.parametrize("concurrency", ["1", "64"])
def test_one_denied_key_fails_alone(s3once, s3, s3_wire, bucket, tmp_path, concurrency):
    """It is answered before all others, and is the first in the order of keys."""
    tree = logs(tmp_path / "tree", 40, **{"a.exe": 100})
    s3_wire.add(DENIED, "PutObject", key="a.exe", times=None)
    s3_wire.latency = 0.3 if concurrency == "64" else 0
    run = push(s3once, tree, bucket, "--concurrency", concurrency)
    assert run.code == 1 and counts(run) == {"uploaded": 40, "failed": 1}, run
    assert len(errors(run)) == 1 and "a.exe: bucket" in errors(run)[0] and "(AccessDenied, " in errors(run)[0], run


def test_uploads_under_way_finish_before_the_set_up_is_blamed(s3once, s3, s3_wire, bucket, tmp_path):
    """More are denied at once than a run ends for, while the first that S3 takes is on its way still."""
    tree = logs(tmp_path / "tree", 2 * SEVERAL, **{f"a{number:02}.exe": 100 for number in range(2 * SEVERAL)})
    s3_wire.add(DENIED, "PutObject", where=lambda record: record.operation.key.endswith(".exe"), times=None)
    s3_wire.latency = 1
    run = push(s3once, tree, bucket, "--concurrency", "64")
    assert run.code == 1 and counts(run) == {"uploaded": 2 * SEVERAL, "failed": 2 * SEVERAL}, run


@pytest.mark.parametrize("concurrency, denied", [("1", 300), ("64", 300), ("16", 3000)])
def test_denied_folder_does_not_keep_the_others_back(s3once, s3, s3_wire, bucket, tmp_path, concurrency, denied):
    """More files of the first folder are denied than a run ends for, before one of another folder is found."""
    tree = make_tree(tmp_path / "tree", {f"{folder}/{number:04}": 100 for folder, n in [("denied", denied), ("open", 60)] for number in range(n)})
    s3_wire.add(DENIED, "PutObject", where=lambda record: record.operation.key.startswith("denied/"), times=None)
    s3_wire.latency = 0.3 if concurrency == "64" else 0
    run = push(s3once, tree, bucket, "--concurrency", concurrency)
    assert run.code == 1 and counts(run) == {"uploaded": 60, "failed": denied}, run


def test_large_file_under_way_is_finished(s3once, s3, s3_wire, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"large": 6 * MIB, **{f"a{number:02}.exe": 100 for number in range(SEVERAL + 5)}})
    s3_wire.add(DENIED, "PutObject", times=None)
    s3_wire.latency = 0.3
    run = push(s3once, tree, bucket, "--concurrency", "16", "--part-size", "5MiB")
    assert run.code == 1 and counts(run) == {"uploaded": 1, "failed": SEVERAL + 5}, run


@pytest.mark.parametrize("concurrency", [1, 8])
def test_wrong_set_up_ends_soon_and_is_told_once(s3once, s3, s3_wire, bucket, tmp_path, concurrency):
    s3_wire.add(DENIED, "PutObject", times=None)
    run = push(s3once, logs(tmp_path / "tree", 300), bucket, "--concurrency", str(concurrency))
    assert run.code == 3 and len(errors(run)) == 1 and "(AccessDenied, " in errors(run)[0], run
    assert f" files that were tried are refused, such as s3://{bucket}/log" in errors(run)[0], run
    assert not counts(run) and sum(record.kind == "PutObject" for record in s3_wire.history) <= SEVERAL + concurrency


@pytest.mark.parametrize("files, code", [(1, 1), (2, 3)])
def test_few_files_that_are_all_denied(s3once, s3, s3_wire, bucket, tmp_path, files, code):
    """One file may be denied for what it is; of several it is more likely the policy."""
    s3_wire.add(DENIED, "PutObject", times=None)
    run = push(s3once, logs(tmp_path / "tree", files), bucket)
    assert run.code == code and len(errors(run)) == 1 and "(AccessDenied, " in errors(run)[0], run


def test_denied_file_is_tried_again_by_the_next_run(s3once, s3, s3_wire, bucket, tmp_path):
    tree = logs(tmp_path / "tree", 3)
    s3_wire.add(DENIED, "PutObject", key="log001", times=None)
    assert push(s3once, tree, bucket).code == 1
    s3_wire.clear()
    run = push(s3once, tree, bucket)
    assert run.code == 0 and counts(run) == {"uploaded": 1, "skipped": 2}, run
    s3.assert_same(tree, bucket)


def test_stop_while_the_verdict_is_out(s3once, s3, s3_wire, bucket, tmp_path):
    tree = logs(tmp_path / "tree", 2 * SEVERAL)
    s3_wire.add(DENIED, "PutObject", where=lambda record: record.operation.key != "log000", times=None)
    hold = s3_wire.add(faults.hang, "PutObject", times=None)
    running = s3once.start("push", "--grace", "1s", tree, f"s3://{bucket}")
    assert hold.reached is not None
    wait_until(lambda: hold.fired, 30)
    running.kill(15)
    run = running.wait(60)
    assert run.code == 143, run


def test_denied_table_ends_the_run(s3once, s3, dynamodb, bucket, table, tmp_path):
    with Proxy(dynamodb, "dynamodb") as wire:
        s3once.environment["AWS_ENDPOINT_URL_DYNAMODB"] = wire.endpoint
        assert s3once("init").code == 0
        wire.add(faults.answer(400, "AccessDeniedException"), "PutItem", where=is_claim, times=None)
        run = s3once("push", logs(tmp_path / "tree", 1), f"s3://{bucket}")
        assert run.code == 3 and len(errors(run)) == 1 and f"table {table} at" in errors(run)[0], run


def is_claim(record):
    return record.operation.key is not None


REFUSED = {
    "KMS.DisabledException": ("sse = aws:kms\nsse-kms-key-id = gone", "--sse-kms-key-id gone"),
    "KMS.NotFoundException": ("sse = aws:kms\nsse-kms-key-id = gone", "--sse-kms-key-id gone"),
    "InvalidStorageClass": ("storage-class = COLDEST", "--storage-class COLDEST"),
    "InvalidTag": ("tag = a=b", "--tag"),
    "AccessControlListNotSupported": ("acl = public-read", "--acl public-read"),
}


@pytest.mark.parametrize("code", REFUSED)
def test_setting_of_one_rule_that_is_refused(s3once, s3, s3_wire, bucket, tmp_path, code):
    """The other rule's files are stored; where all files have the setting, it is told once, by its name."""
    setting, named = REFUSED[code]
    tree = logs(tmp_path / "tree", 20, **{f"a{number}.db": 100 for number in range(15)})
    s3_wire.add(faults.answer(400, code), "PutObject", where=lambda record: record.operation.key.endswith(".db"), times=None)
    s3_wire.latency = 0.3
    run = push(s3once, tree, bucket, rules=f'[rule "*.db"]\n{setting}\n')
    assert run.code == 1 and counts(run) == {"uploaded": 20, "failed": 15}, run
    for path in tree.glob("log*"):
        path.unlink()
    run = push(s3once, tree, bucket, rules=f"[default]\n{setting}\n")
    assert run.code == 3 and len(errors(run)) == 1 and f"{named}: S3 says" in errors(run)[0], run


VAGUE = [
    ("rgw", ["--storage-class", "COLDEST"], "the reason may be --storage-class COLDEST: S3 answers with status 400", "InvalidArgument"),
    ("rgw", ["--storage-class", "COLDEST", "--tag", "a=b"], "the reason may be one of --storage-class COLDEST, --tag: S3 answers with status 400", "InvalidArgument"),
    ("rgw", ["--header", "x-amz-grant-read: uri=http://x/y"], "the reason may be --header x-amz-grant-read uri=http://x/y: S3 answers with status 400", "InvalidArgument"),
    ("rgw", ["--header", "x-amz-grant-read: id=nobody"], "the reason may be --header x-amz-grant-read id=nobody: S3 answers 404 for this file", "NoSuchKey"),
    ("swift", ["--tag", "a=b"], "the reason may be --tag: S3 says: Object tagging is not supported", "NotImplemented"),
]


@pytest.mark.parametrize("s3, options, words, code", VAGUE, indirect=["s3"], ids=["class", "class-and-tag", "grant", "unknown-grantee", "tag-at-swift"])
def test_setting_that_a_server_refuses_without_its_name(s3once, s3, bucket, tmp_path, options, words, code):
    """As with these servers: reported once if nothing was stored, with the options that may be meant."""
    tree = logs(tmp_path / "tree", 20, large=6 * MIB)
    run = push(s3once, tree, bucket, "--part-size", "5MiB", *options)
    assert run.code == 3 and not counts(run) and not s3.objects(bucket), run
    (error,) = errors(run)
    assert words in error and f"({code}, " in error, run


def test_file_that_is_invalid_fails_alone(s3once, s3, s3_wire, bucket, tmp_path):
    tree = logs(tmp_path / "tree", 20, odd=100)
    s3_wire.add(faults.answer(400, "InvalidArgument"), "PutObject", key="odd", times=None)
    run = push(s3once, tree, bucket, "--tag", "a=b")
    assert run.code == 1 and counts(run) == {"uploaded": 20, "failed": 1} and len(errors(run)) == 1, run


@pytest.mark.parametrize("answer", [faults.answer(404, ""), faults.answer(404, "NoSuchBucket")], ids=["bare", "named"])
@pytest.mark.parametrize("kind, name", [("PutObject", "odd"), ("CreateMultipartUpload", "odd-large")])
def test_404_to_one_key_is_that_file_s(s3once, s3, s3_wire, bucket, tmp_path, answer, kind, name):
    tree = logs(tmp_path / "tree", 30, odd=100, **{"odd-large": 6 * MIB})
    s3_wire.add(bare(answer), kind, key=name, times=None)
    run = push(s3once, tree, bucket, "--part-size", "5MiB")
    assert run.code == 1 and counts(run) == {"uploaded": 31, "failed": 1}, run
    (error,) = errors(run)
    assert f"{name}: S3 answers 404 for this key, although bucket {bucket} is there" in error, run


def test_404_that_passes_is_tried_again(s3once, s3, s3_wire, bucket, tmp_path):
    """Swift answers NoSuchBucket while it cannot reach the server that knows the bucket."""
    tree = logs(tmp_path / "tree", 3, odd=100)
    s3_wire.add(faults.answer(404, "NoSuchBucket"), "PutObject", key="odd", times=2)
    run = push(s3once, tree, bucket)
    assert run.code == 0 and counts(run) == {"uploaded": 4}, run
    assert all("not take such keys" not in retry["text"] for retry in told(run, "retry")) and len(told(run, "retry")) == 2
    s3.assert_same(tree, bucket, "")


def bare(fault):
    """Without a body where there is no code."""

    async def answer(x, rule):
        if fault.name != "404 ":
            return await fault(x, rule)
        await x.body()
        x.fire(rule)
        await x.answer(Reply(404, Headers({}), b""))

    return answer


def test_bucket_that_goes_away_meanwhile_is_named(s3once, s3, s3_wire, bucket, tmp_path):
    """A bare 404 to the write; the bucket's HEAD then says that it is gone."""
    s3_wire.add(bare(faults.answer(404, "")), "PutObject", times=None)
    s3_wire.add(bare(faults.answer(404, "")), "HeadBucket", nth=2, times=None)
    run = push(s3once, logs(tmp_path / "tree", 3), bucket)
    assert run.code == 3 and len(errors(run)) == 1 and f"the bucket {bucket} does not exist at" in errors(run)[0], run
