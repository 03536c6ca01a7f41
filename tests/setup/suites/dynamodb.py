"""Makes tests/suites/dynamodb.tsv and tests/suites/dynamodb_errors.tsv anew, of clones of localstack/localstack and boto/botocore.

    tests/setup/suites/dynamodb.py LOCALSTACK BOTOCORE

dynamodb.tsv has what AWS answered to the tests of localstack, step by step. Which request belongs to a step is written down here,
with pk for the name of the partition key. Requests whose answers were not recorded stand between. dynamodb_errors.tsv has the
errors of AWS's model of DynamoDB: those of the operations that this program sends, and those of the statements of a batch.
"""

import gzip
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from localstack import DYNAMODB, FOLDER, code_of, status_of
from repository import Repository, write_table

HERE = Path(__file__).resolve().parents[2] / "suites"
MODEL = "botocore/data/dynamodb/2012-08-10/service-2.json"
SENT = "PutItem UpdateItem DeleteItem GetItem BatchGetItem Query Scan CreateTable DescribeTable UpdateTimeToLive DescribeTimeToLive BatchExecuteStatement"
# What the recordings say instead of names that differ from run to run, and the name of the partition key.
NAMES = {"id": "pk", "Username": "pk", "PK": "pk"}
TABLE = re.compile(r"<(?:test-table|table-name:1)>")


def text(value):
    return {"S": value}


SEEN = {"TableName": "TABLE"}
CREATE = {
    **SEEN,
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
}
GOODS = {"pk": text("456"), "price": {"N": "650"}, "product": text("sporting goods")}
BINARY = {"pk": text("id1"), "version": {"N": "1"}, "data": {"B": "kA=="}}
# Test → [(step or "" if the answer was not recorded, operation, body)]. Each begins with a new table.
REQUESTS = {
    "test_table_crud": [("create-table", "CreateTable", CREATE), ("describe-table", "DescribeTable", SEEN)],
    "test_create_duplicate_table": [("", "CreateTable", CREATE), ("Error", "CreateTable", CREATE)],
    "test_return_values_in_put_item": [
        ("", "CreateTable", CREATE),
        ("PutSecondItem", "PutItem", {**SEEN, "Item": {"pk": text("id1"), "data": text("foobar")}}),
        ("PutSecondItemReturnNone", "PutItem", {**SEEN, "Item": {"pk": text("id1"), "data": text("foobar")}}),
    ],
    "test_empty_and_binary_values": [
        ("", "CreateTable", CREATE),
        ("PutFirstItem", "PutItem", {**SEEN, "Item": {"pk": text("id1"), "data": text("")}}),
        ("PutSecondItem", "PutItem", {**SEEN, "Item": {"pk": text("id2"), "data": {"B": "kA=="}}}),
    ],
    "test_data_encoding_consistency": [
        ("", "CreateTable", CREATE),
        ("", "PutItem", {**SEEN, "Item": BINARY}),
        ("GetItem", "GetItem", {**SEEN, "Key": {"pk": text("id1")}}),
        (
            "",
            "UpdateItem",
            {**SEEN, "Key": {"pk": text("id1")}, "UpdateExpression": "SET version=:v", "ExpressionAttributeValues": {":v": {"N": "2"}}},
        ),
        ("GetItemAfterUpdate", "GetItem", {**SEEN, "Key": {"pk": text("id1")}}),
    ],
    "test_return_values_on_conditions_check_failure": [
        ("", "CreateTable", CREATE),
        ("", "PutItem", {**SEEN, "Item": GOODS}),
        (
            "items",
            "DeleteItem",
            {
                **SEEN,
                "Key": {"pk": text("456")},
                "ConditionExpression": "price between :lo and :hi",
                "ExpressionAttributeValues": {":lo": {"N": "500"}, ":hi": {"N": "600"}},
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            },
        ),
    ],
    "test_dynamodb_get_batch_items": [
        ("", "CreateTable", CREATE),
        ("Response", "BatchGetItem", {"RequestItems": {"TABLE": {"Keys": [{"pk": text("test-key")}]}}}),
    ],
    "test_dynamodb_batch_execute_statement": [
        ("", "CreateTable", CREATE),
        ("", "PutItem", {**SEEN, "Item": {"pk": text("user02")}}),
        (
            "ExecutedStatement",
            "BatchExecuteStatement",
            {
                "Statements": [
                    {"Statement": "INSERT INTO TABLE VALUE {'pk': 'user01'}"},
                    {"Statement": "UPDATE TABLE SET Age=20 WHERE pk='user02'"},
                ]
            },
        ),
        ("ItemUser2", "GetItem", {**SEEN, "Key": {"pk": text("user02")}}),
        ("ItemUser1", "GetItem", {**SEEN, "Key": {"pk": text("user01")}}),
    ],
    "test_ttl_cdk": [
        ("", "CreateTable", CREATE),
        ("", "UpdateTimeToLive", {**SEEN, "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "expire_at"}}),
        ("table", "DescribeTimeToLive", SEEN),
    ],
}
# Of what a table is told to be, what this program reads.
READ = ("AttributeDefinitions", "KeySchema", "TableName", "TableStatus")


def plain(answer):
    """An answer as it was on the wire, as far as it says something of the request."""
    if isinstance(answer, list):
        return [plain(one) for one in answer]
    if not isinstance(answer, dict):
        if isinstance(answer, str):
            answer = "kA==" if answer == r"b'\x90'" else TABLE.sub("TABLE", NAMES.get(answer, answer))
        return answer
    if "TableStatus" in answer:
        answer = {name: value for name, value in answer.items() if name in READ}
    found = {TABLE.sub("TABLE", NAMES.get(name, name)): plain(value) for name, value in answer.items()}
    return {name: value for name, value in found.items() if name not in ("ResponseMetadata", "message")}


def recorded(step, answer):
    """(status, answer) of a recording, which is a reply, an item of one, or the text of boto3's error."""
    if isinstance(answer, str):
        code, message = re.match(r"An error occurred \((\w+)\).*?: (.*)", answer).groups()
        return 400, {"Error": {"Code": code, "Message": TABLE.sub("TABLE", message)}}
    if status_of(answer):
        return status_of(answer), plain(answer)
    return 200, {"Item": plain(answer)}


def steps(clone, others):
    tests = {}
    for file in [*DYNAMODB, "cloudformation/resources/test_dynamodb"]:
        for name, test in clone.json(f"{FOLDER}/{file}.snapshot.json").items():
            tests[name.split("::")[-1]] = test
    for name, test in sorted(tests.items()):
        day = "-".join(reversed(test["recorded-date"].split(",")[0].split("-")))
        for step, operation, body in REQUESTS.get(name, []):
            status, answer = recorded(step, test["recorded-content"][step]) if step else ("", "")
            yield [name, day, step, operation, json.dumps(body), status, json.dumps(answer) if step else ""]
        left = set(test["recorded-content"]) - {step for step, _, _ in REQUESTS.get(name, [])}
        others["steps", "a request that is never sent: streams, transactions, indexes, SELECT, settings of tables"] += len(left)


def model_errors(clone):
    path = clone.path, f"HEAD:{MODEL}"
    packed = subprocess.run(["git", "-C", path[0], "show", f"{path[1]}.gz"], check=False, capture_output=True)
    model = json.loads(gzip.decompress(packed.stdout) if packed.returncode == 0 else clone.read(MODEL))
    operations = {}
    for operation in SENT.split():
        for error in model["operations"][operation]["errors"]:
            operations.setdefault(error["shape"], []).append(operation)
    for code, names in sorted(operations.items()):
        yield ["reply", code, " ".join(names)]
    for code in sorted(model["shapes"]["BatchStatementErrorCodeEnum"]["enum"]):
        yield ["statement", code, "BatchExecuteStatement"]


def main():
    clone, botocore, others = Repository(sys.argv[1], "localstack/localstack"), Repository(sys.argv[2], "boto/botocore"), Counter()
    rows = list(steps(clone, others))
    source = f"dynamodb and cloudformation below {FOLDER} of {clone.name}, {clone.date}, by tests/setup/suites/dynamodb.py"
    columns = ["test", "recorded", "step", "operation", "body", "status", "answer"]
    write_table(HERE / "dynamodb.tsv", source, others, columns, rows)
    source = f"{MODEL} of {botocore.name}, {botocore.date}, by tests/setup/suites/dynamodb.py"
    write_table(HERE / "dynamodb_errors.tsv", source, Counter(), ["of", "code", "operations"], list(model_errors(botocore)))


main()
