"""Whether a server honours conditions is kept with the marks, so that no run looks before each upload once that is known."""

import time

import pytest

from tests.faults import faults
from tests.faults.proxy import Proxy
from tests.system.harness import make_tree
from tests.system.pushing import counts

DAY_S = 24 * 3600


def bucket_row(marks):
    (row,) = [item for item in marks.items() if item["pk"].startswith("bucket#")]
    return row


def change_row(marks, name, value):
    row = bucket_row(marks)
    marks.service.client.update_item(
        TableName=marks.table,
        Key={"pk": {"S": row["pk"]}, "sk": {"S": "-"}},
        UpdateExpression="SET #name = :value",
        ExpressionAttributeNames={"#name": name},
        ExpressionAttributeValues={":value": value},
    )


@pytest.fixture
def push_new(s3once, bucket, s3_wire, tmp_path):
    """Uploads two files that nobody has seen, and gives how many of their keys were looked at before."""
    trees = []

    def push(*more):
        trees.append(make_tree(tmp_path / f"tree{len(trees)}", {"a": 10, "b": 20}))
        before, prefix = len(s3_wire.history), f"p{len(trees)}"
        run = s3once("push", trees[-1], f"s3://{bucket}/{prefix}", "--json", *more)
        assert run.code == 0 and counts(run) == {"uploaded": 2}, run
        looks = [record for record in s3_wire.history[before:] if record.kind == "HeadObject"]
        return sum(record.operation.key.startswith(prefix + "/") for record in looks)

    return push


@pytest.mark.real_s3
def test_doctor_teaches(s3once, bucket, marks, s3_wire, push_new):
    assert push_new() == 2 and "honours" not in bucket_row(marks), "nothing is known of this server"
    assert s3once("doctor", f"s3://{bucket}").code == 0
    assert "put" in bucket_row(marks)["honours"].split()
    assert "complete" not in bucket_row(marks)["honours"].split(), "Ceph ignores that one"
    assert push_new() == 0
    assert push_new() == 0 and "put" in bucket_row(marks)["honours"]


def test_doctor_may_come_first(s3once, bucket, marks, push_new):
    assert s3once("doctor", f"s3://{bucket}").code == 0
    assert push_new() == 0
    assert bucket_row(marks)["last_key"] and push_new() == 0


def test_a_refusal_teaches_nothing(s3once, s3, bucket, marks, s3_wire, push_new, tmp_path):
    """The server may look first and write then: of several writers at once more than one would win."""
    tree = make_tree(tmp_path / "q", {"b": 10})
    assert s3once("push", tree, f"s3://{bucket}/q").code == 0
    s3.client.put_object(Bucket=bucket, Key="q/a", Body=b"theirs")
    make_tree(tree, {"a": 10})  # a new file among known ones, which is not looked for
    unseen = s3_wire.add(faults.answer(404, "NoSuchKey"), "HeadObject", key="q/a")
    run = s3once("push", tree, f"s3://{bucket}/q", "--concurrency", "1")
    assert run.code == 1 and s3.get(bucket, "q/a") == b"theirs" and unseen.fired, run
    assert any(record.answered == 412 for record in s3_wire.history) and "honours" not in bucket_row(marks)
    assert push_new() == 2


@pytest.mark.parametrize("name, value", [("honours_at", {"N": str(int(time.time()) - 31 * DAY_S)}), ("server", {"S": "another"})])
def test_learnt_conditions_expire(s3once, bucket, marks, push_new, name, value):
    """A server is upgraded, or another one stands behind its name."""
    assert s3once("doctor", f"s3://{bucket}").code == 0
    assert push_new() == 0
    change_row(marks, name, value)
    assert push_new() == 2
    assert s3once("doctor", f"s3://{bucket}").code == 0
    assert push_new() == 0


def test_a_server_that_ignores_conditions_now(s3once, s3, bucket, marks, tmp_path):
    """Doctor finds out, and what was known is forgotten."""
    with Proxy(s3, "s3", behaves="ignores") as proxy:
        s3once.environment["AWS_ENDPOINT_URL_S3"] = proxy.endpoint
        assert s3once("push", make_tree(tmp_path / "t", {"a": 1}), f"s3://{bucket}/p").code == 0
        change_row(marks, "honours", {"S": "put complete"})
        change_row(marks, "honours_at", {"N": str(int(time.time()))})
        s3once("doctor", f"s3://{bucket}")
        assert "honours" not in bucket_row(marks)
        s3.client.put_object(Bucket=bucket, Key="q/a", Body=b"theirs")
        run = s3once("push", make_tree(tmp_path / "q", {"a": 10}), f"s3://{bucket}/q")
        assert run.code == 1 and s3.get(bucket, "q/a") == b"theirs", run
