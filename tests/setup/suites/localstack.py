"""AWS's replies to the tests of localstack/localstack: its *.snapshot.json, each with the day of its recording."""

FOLDER = "tests/aws/services"
S3 = ["s3/test_s3", "s3/test_s3_api", "s3/test_s3_list_operations", "s3/test_s3_preconditions"]
DYNAMODB = ["dynamodb/test_dynamodb"]


def status_of(answer):
    return answer.get("ResponseMetadata", {}).get("HTTPStatusCode")


def code_of(answer):
    return answer.get("Error", {}).get("Code", "")


def recordings(clone, files):
    """(test, day, step, answer), where an answer is that of one request."""
    for file in files:
        for name, test in clone.json(f"{FOLDER}/{file}.snapshot.json").items():
            day = "-".join(reversed(test["recorded-date"].split(",")[0].split("-")))
            for step, answer in test["recorded-content"].items():
                if isinstance(answer, dict) and status_of(answer):
                    yield name.split("::")[-1], day, step, answer
