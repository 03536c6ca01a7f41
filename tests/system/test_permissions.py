"""config/iam: the policies allow what the program sends and nothing else; the templates make the table that it wants."""

import json
import re

import pytest
import yaml

from tests.faults import faults
from tests.faults.proxy import Proxy
from tests.system.harness import MIB, REPOSITORY, make_tree
from tests.system.pushing import learn_conditions

IAM = REPOSITORY / "config" / "iam"
UPLOADS = {"upload", "upload-verify"}

# What the program can send → the action that allows it, and the policies that have it (Service Authorization Reference).
OPERATIONS = {
    "PutObject": ("s3:PutObject", UPLOADS),
    "CreateMultipartUpload": ("s3:PutObject", UPLOADS),
    "UploadPart": ("s3:PutObject", UPLOADS),
    "CompleteMultipartUpload": ("s3:PutObject", UPLOADS),
    "AbortMultipartUpload": ("s3:AbortMultipartUpload", UPLOADS),
    "ListParts": ("s3:ListMultipartUploadParts", UPLOADS),
    "HeadObject": ("s3:GetObject", {"upload-verify", "verify"}),
    "GetObject": ("s3:GetObject", {"upload-verify", "verify"}),
    "GetObjectTagging": ("s3:GetObjectTagging", {"upload-verify"}),
    "HeadBucket": ("s3:ListBucket", {"upload-verify", "verify"}),
    "ListObjectsV2": ("s3:ListBucket", {"upload-verify", "verify"}),
    "ListMultipartUploads": ("s3:ListBucketMultipartUploads", {"upload-verify"}),
    "BatchGetItem": ("dynamodb:BatchGetItem", UPLOADS | {"verify", "fleet"}),
    "Query": ("dynamodb:Query", UPLOADS | {"verify", "fleet"}),
    "GetItem": ("dynamodb:GetItem", UPLOADS | {"lock", "init", "verify", "fleet"}),
    "PutItem": ("dynamodb:PutItem", UPLOADS | {"init"}),
    "UpdateItem": ("dynamodb:UpdateItem", UPLOADS | {"lock"}),
    "DeleteItem": ("dynamodb:DeleteItem", {"lock", "doctor"}),
    "Scan": ("dynamodb:Scan", {"lock"}),
    "CreateTable": ("dynamodb:CreateTable", {"init"}),
    "DescribeTable": ("dynamodb:DescribeTable", {"init", "doctor", "lock"}),
    "UpdateTimeToLive": ("dynamodb:UpdateTimeToLive", {"init"}),
    "DeleteObject": ("s3:DeleteObject", {"doctor"}),
    "GetBucketLifecycleConfiguration": ("s3:GetLifecycleConfiguration", {"doctor"}),
    "DescribeTimeToLive": ("dynamodb:DescribeTimeToLive", {"doctor"}),
    # What is in the request counts: there is no action for it as such, or another one besides.
    "BatchExecuteStatement": ("dynamodb:PartiQLInsert", UPLOADS),
    "UPDATE": ("dynamodb:PartiQLUpdate", UPLOADS),
    "PUT with tags": ("s3:PutObjectTagging", {"doctor"}),
    "HEAD with a version": ("s3:GetObjectVersion", {"verify"}),
}
# The policy of a bucket, which denies: see test_write_once_is_enough.
OF_THE_BUCKET = "write-once"
# About the bucket; all others are about its objects.
OF_BUCKET = {"s3:ListBucket", "s3:ListBucketMultipartUploads", "s3:GetLifecycleConfiguration"}
# Probes only, wherever the prefix is.
OF_PROBES = {"s3:DeleteObject", "s3:PutObjectTagging"}


def policies():
    found = {path.stem: json.loads(path.read_text()) for path in IAM.glob("*.json") if path.name != "table.tf.json"}
    return {name: policy["Statement"] for name, policy in found.items() if name != OF_THE_BUCKET}


def test_policies_allow_what_is_sent():
    kinds = [re.findall(r'^\t\[\w+\] = "(\w+)",', (REPOSITORY / "src" / name).read_text(), re.M)
             for name in ("s3/s3.c", "store/dynamodb_request.c")]  # fmt: skip
    assert {*sum(kinds, []), "UPDATE", "PUT with tags", "HEAD with a version"} == OPERATIONS.keys()
    assert policies().keys() == set.union(*(names for _, names in OPERATIONS.values()))
    for name, statements in policies().items():
        allowed = [action for statement in statements for action in statement["Action"]]
        assert sorted(allowed) == sorted({action for action, names in OPERATIONS.values() if name in names}), name


def test_policies_name_the_right_resources():
    for name, statements in policies().items():
        for statement in statements:
            assert statement["Effect"] == "Allow" and isinstance(statement["Resource"], str)
            for action in statement["Action"]:
                if action.startswith("dynamodb:"):
                    expected = "arn:aws:dynamodb:*:*:table/s3once" + ("-locks" if name == "lock" else "")
                else:
                    expected = "arn:aws:s3:::my-bucket" + ("" if action in OF_BUCKET else "/*")
                    expected += ".s3once-doctor-*" if action in OF_PROBES else ""
                assert statement["Resource"] == expected, (name, action)


def test_permissions_are_explained():
    text = (REPOSITORY / "docs" / "permissions.md").read_text()
    for action, _ in OPERATIONS.values():
        assert f"`{action}`" in text, action
    for name in [*policies(), OF_THE_BUCKET]:
        assert f"(../config/iam/{name}.json)" in text, name


def sent(proxies):
    """The kinds of requests since the last call."""
    kinds = {record.kind.partition(":")[0] for proxy in proxies for record in proxy.history}
    for proxy in proxies:
        proxy.history.clear()
    return kinds


@pytest.fixture
def wires(s3once, s3, dynamodb, table):
    """Wire proxies before both services; S3 honours conditions and echoes checksums, as AWS does."""
    with Proxy(s3, "s3", behaves="aws") as s3_wire, Proxy(dynamodb, "dynamodb") as dynamodb_wire:
        dynamodb_wire.access_key, dynamodb_wire.secret_key = s3.access_key, s3.secret_key
        endpoints = {"AWS_ENDPOINT_URL_S3": s3_wire.endpoint, "AWS_ENDPOINT_URL_DYNAMODB": dynamodb_wire.endpoint}
        s3once.environment |= endpoints
        yield s3_wire, dynamodb_wire


def test_each_command_sends_what_its_policy_allows(s3once, s3, wires, bucket, table, tmp_path):
    tree = make_tree(tmp_path / "tree", {"small": 1, "large": 5 * MIB + 1})
    url = f"s3://{bucket}"
    locks = ["--locks", f"dynamodb:{table}-locks"]
    expected = [
        ({"init"}, ["init"]),
        ({"upload-verify", "doctor"}, ["doctor", f"{url}/prefix"]),
        ({"upload-verify"}, ["push", "--part-size", "5MiB", tree, url]),
        ({"upload"}, ["status", url]),
        ({"verify"}, ["verify", "--download", url]),
        ({"init"}, ["lock", "init", *locks]),
        ({"lock"}, ["lock", "run", *locks, "k", "--", "true"]),
        ({"lock"}, ["lock", "list", *locks]),
    ]
    for names, command in expected:
        run = s3once(*command)
        assert run.code == 0, run
        kinds = sent(wires)
        assert kinds and all(names & OPERATIONS[kind][1] for kind in kinds), (command, kinds)


@pytest.mark.real_s3
def test_upload_only_is_enough(s3once, s3, wires, bucket, tmp_path):
    """Every action that the policy lacks is refused as by AWS. All files are uploaded, even large ones."""
    learn_conditions(s3once, bucket)
    s3_wire, _ = wires
    denied = [s3_wire.add(faults.answer(403, "AccessDenied"), kind, times=None) for kind, (_, names) in OPERATIONS.items()
              if "upload" not in names and kind[:4] in ("Head", "List", "GetB")]  # fmt: skip
    tree = make_tree(tmp_path / "tree", {"small": 1, "large": 5 * MIB + 1})
    run = s3once("push", "--part-size", "5MiB", tree, f"s3://{bucket}")
    assert run.code == 0, run
    assert sum(rule.fired for rule in denied) >= 2
    s3.assert_same(tree, bucket)


def deny(s3_wire, where):
    for kind in ("PutObject", "CompleteMultipartUpload"):
        s3_wire.add(faults.answer(403, "AccessDenied"), kind, where=lambda record: where(record.operation.conditions), times=None)


@pytest.mark.real_s3
@pytest.mark.parametrize("size", [1, 5 * MIB + 1])
def test_replacing_needs_get_object(s3once, s3, wires, bucket, tmp_path, size):
    """A fake of AWS under upload.json: If-Match is refused there, since it needs s3:GetObject, and the message says so.

    Doctor comes first, since nothing needs to be looked at in a service that is known to honour If-Match.
    """
    assert s3once("init").code == 0 and s3once("doctor", f"s3://{bucket}").code == 0
    s3_wire, _ = wires
    for kind in ("HeadObject", "GetObject", "HeadBucket"):
        s3_wire.add(faults.answer(403, "AccessDenied"), kind, times=None)
    deny(s3_wire, lambda conditions: "if-match" in conditions)
    tree = make_tree(tmp_path / "tree", {"file": size})
    command = ["push", "--part-size", "5MiB", "--if-changed", "replace", tree, f"s3://{bucket}"]
    assert s3once(*command).code == 0
    content = (tree / "file").read_bytes()
    (tree / "file").write_bytes(b"other" + content)
    run = s3once(*command)
    assert run.code in (1, 3) and "S3 does not show whose it is: allow s3:GetObject" in run.err, run
    run = s3once(*command, "--if-changed=replace-any")  # which does not ask whose it is
    assert run.code in (1, 3) and "s3:GetObject beside s3:PutObject" in run.err and "(AccessDenied, request id" in run.err, run
    assert s3.get(bucket, "file") == content


def test_write_once_is_enough(s3once, s3, wires, bucket, tmp_path):
    """A fake of AWS under write-once.json, which lets objects only be made. All is uploaded, in parts too, and nothing is replaced."""
    (statement,) = json.loads((IAM / "write-once.json").read_text())["Statement"]
    assert statement["Effect"] == "Deny" and statement["Action"] == "s3:PutObject"
    assert statement["Condition"] == {"Null": {"s3:if-none-match": "true"}, "Bool": {"s3:ObjectCreationOperation": "true"}}
    assert s3once("init").code == 0
    s3_wire, _ = wires
    deny(s3_wire, lambda conditions: "if-none-match" not in conditions)
    tree = make_tree(tmp_path / "tree", {"small": 1, "large": 5 * MIB + 1})
    command = ["push", "--part-size", "5MiB", "--if-changed", "replace", "--manifest", tree, f"s3://{bucket}/p"]
    assert s3once(*command).code == 0
    before = s3.get(bucket, "p/small")
    assert before == (tree / "small").read_bytes() and s3.get(bucket, "p/large") == (tree / "large").read_bytes()
    (tree / "small").write_bytes(b"other")
    run = s3once(*command)
    assert run.code in (1, 3) and "a policy may let objects only be made" in run.err, run
    assert s3.get(bucket, "p/small") == before


def test_templates_make_the_table(s3once, dynamodb, table):
    """Both templates make the same table, which init accepts."""
    cloudformation = yaml.safe_load((IAM / "table.cloudformation.yaml").read_text())["Resources"]["Marks"]
    assert cloudformation["Type"] == "AWS::DynamoDB::Table"
    wanted = cloudformation["Properties"]
    terraform = json.loads((IAM / "table.tf.json").read_text())["resource"]["aws_dynamodb_table"]["s3once"]
    names = ("TableName", "BillingMode", "AttributeDefinitions", "KeySchema", "TimeToLiveSpecification")
    same = {
        "TableName": terraform["name"],
        "BillingMode": terraform["billing_mode"],
        "AttributeDefinitions": [{"AttributeName": a["name"], "AttributeType": a["type"]} for a in terraform["attribute"]],
        "KeySchema": [
            {"AttributeName": terraform["hash_key"], "KeyType": "HASH"},
            {"AttributeName": terraform["range_key"], "KeyType": "RANGE"},
        ],
        "TimeToLiveSpecification": {"AttributeName": terraform["ttl"]["attribute_name"], "Enabled": terraform["ttl"]["enabled"]},
    }
    assert same == {name: wanted[name] for name in names}
    ttl = wanted["TimeToLiveSpecification"]
    dynamodb.client.create_table(**{**{name: wanted[name] for name in names[:4]}, "TableName": table})
    dynamodb.client.update_time_to_live(TableName=table, TimeToLiveSpecification=ttl)
    run = s3once("init")
    assert run.code == 0 and f"table {table} is ready" in run.out and "time to live" in run.out, run
    assert "created" not in run.out
