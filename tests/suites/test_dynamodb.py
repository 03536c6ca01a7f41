"""DynamoDB as AWS has answered, and as its model says that it may fail: what this program makes of each answer, and whether
dynoxide and the simulated DynamoDB (tests/sim) answer in the same way. By the latter the worlds of the simulation are judged."""

import json

import pytest

from tests.suites.suite import Suite, read_table
from tests.system.fakes_keys import Fake
from tests.system.harness import wait_until
from tests.system.test_aws_layer import Probe

STEPS, NOT_OURS = read_table("dynamodb")
ERRORS, _ = read_table("dynamodb_errors")

# How the probe sends each operation.
WORDS = {
    "PutItem": ["put", "p", "s", "{}"],
    "UpdateItem": ["update", "p", "s"],
    "DeleteItem": ["delete", "p", "s"],
    "GetItem": ["get", "p", "s"],
    "BatchGetItem": ["many", "p", "s"],
    "BatchExecuteStatement": ["statements", "p", "s", "t"],
    "CreateTable": ["create"],
    "DescribeTable": ["describe"],
    "DescribeTimeToLive": ["ttl-is", "expire_at"],
    "UpdateTimeToLive": ["ttl", "expire_at"],
}
# What the program has to make of an error of the model. What none of them says is refused without any effect.
OUTCOMES = {
    **dict.fromkeys(["ConditionalCheckFailedException", "ConditionalCheckFailed", "DuplicateItem", "ResourceInUseException"], "refused"),
    **dict.fromkeys(["InternalServerError"], "transient"),
    **dict.fromkeys(["ItemCollectionSizeLimitExceededException", "ItemCollectionSizeLimitExceeded", "ValidationError"], "invalid"),
    **dict.fromkeys(["ResourceNotFoundException", "ResourceNotFound"], "setup"),
    **dict.fromkeys(["LimitExceededException", "ProvisionedThroughputExceededException", "ReplicatedWriteConflictException"], "throttled"),
    **dict.fromkeys(["RequestLimitExceeded", "ThrottlingException", "TransactionConflictException", "ProvisionedThroughputExceeded"], "throttled"),
    **dict.fromkeys(["ThrottlingError", "TransactionConflict"], "throttled"),
    "AccessDenied": "denied",
}


class Answering(Fake):
    """Answers everything in one way."""

    def __init__(self):
        super().__init__(type("Clock", (), {"clock": 0}))
        self.answer = None

    def reply(self, method, path, headers, body):
        return self.answer


@pytest.fixture
def ask(tmp_path):
    """ask(operation, status, answer): what the program makes of that answer."""
    with Answering() as server:
        program, env = Probe(tmp_path), {"AWS_ENDPOINT_URL": server.endpoint, "AWS_MAX_ATTEMPTS": "1"}

        def call(operation, status, answer):
            server.answer = status, answer
            return program("dynamodb", "TABLE", *WORDS[operation], env=env)

        yield call
        program.kill_all()


def error(code, **more):
    return {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "recorded", **more}


def agrees(found, operation, status, answer):
    """Whether the program has read what the answer says."""
    if status != 200:
        code = answer["Error"]["Code"]
        return (found["outcome"], found["problem"]["code"], found.get("item")) == (OUTCOMES[code], code, answer.get("Item"))
    told = {
        "GetItem": lambda: found["item"] == answer["Item"],
        "BatchGetItem": lambda: found.get("items", []) == answer["Responses"]["TABLE"],
        "BatchExecuteStatement": lambda: found["answers"] == ["ok"] * len(answer["Responses"]),
        "DescribeTable": lambda: found["shape"][:4] == ["ACTIVE", "pk", "", "S"],
        "DescribeTimeToLive": lambda: found["on"],
    }
    return found["outcome"] == "ok" and told.get(operation, lambda: True)()


def test_error_gives_the_expected_outcome(ask):
    suite = Suite("Rows of DynamoDB, read")
    for row in (row for row in STEPS if row["step"]):
        status, answer = int(row["status"]), json.loads(row["answer"])
        more = {"Item": answer["Item"]} if "Item" in answer else {}
        found = ask(row["operation"], status, answer if status == 200 else error(answer["Error"]["Code"], **more))
        suite.count(agrees(found, row["operation"], status, answer), "", (row, found))
    suite.compare_with_page()


def test_errors_of_the_model(ask):
    """Each error that an operation of ours may have, and each that a statement of a batch may have."""
    suite = Suite("Errors of DynamoDB's model")
    for row in ERRORS:
        code = row["code"]
        if row["of"] == "statement":
            one = {"Error": {"Code": code, "Message": "recorded"}}
            found = ask("BatchExecuteStatement", 200, {"Responses": [{"TableName": "TABLE"}, one]})
            suite.count(found.get("answers") == ["ok", OUTCOMES[code]], "", (row, found))
            continue
        for operation in (name for name in row["operations"].split() if name in WORDS):
            reasons = {"ThrottlingReasons": [{"reason": "TableWriteProvisionedThroughputExceeded", "resource": "arn:aws:dynamodb:r:1:table/TABLE"}]}
            found = ask(operation, 500 if code == "InternalServerError" else 400, error(code, **reasons))
            # A batch that failed may have been applied in part.
            expected = {"DescribeTable ResourceNotFoundException": "absent"}.get(f"{operation} {code}", OUTCOMES[code])
            suite.count(found["outcome"] == expected, "", (row, operation, found))
    suite.compare_with_page()


def play(suite, dynamodb, reason_of=lambda row: ""):
    """Each step of the recordings, whose answer is compared. dynoxide's tables are CREATING for a moment, as AWS' are."""
    made = {}
    for row in STEPS:
        name = made.setdefault(row["test"], f"suites_{row['test']}")
        status, answer = dynamodb.call(row["operation"], **json.loads(row["body"].replace("TABLE", name)))
        if status == 200 and row["operation"] == "CreateTable":
            wait_until(lambda: dynamodb.call("DescribeTable", TableName=name)[1]["Table"]["TableStatus"] == "ACTIVE")  # noqa: B023
        if not row["step"]:
            assert status == 200, (row, answer)
            continue
        wanted = json.loads(row["answer"].replace("TABLE", name))
        if status != 200:
            answer["Error"] = {"Code": answer["__type"].split("#")[-1], "Message": answer.get("message") or answer.get("Message")}
        for part in ("Table", "TableDescription"):  # what tables have beyond what is read of them
            if part in wanted:
                answer[part] = {key: value for key, value in answer[part].items() if key in wanted[part]}
        found = {key: value for key, value in answer.items() if key not in ("__type", "message", "Message")}
        suite.count((status, found) == (int(row["status"]), wanted), reason_of(row), (row, status, answer))
    for name in made.values():
        assert dynamodb.call("DeleteTable", TableName=name)[0] == 200
    suite.compare_with_page()


def test_dynoxide(dynoxide):
    play(Suite("Rows of DynamoDB, dynoxide", NOT_OURS["steps"]), dynoxide)


def test_simulated_dynamodb(simulated_dynamodb):
    play(Suite("Rows of DynamoDB, simulated DynamoDB", NOT_OURS["steps"]), simulated_dynamodb)
