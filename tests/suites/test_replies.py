"""Errors of S3 and DynamoDB in each form that AWS's SDKs read: the code and the message that this program finds in them."""

import json

import pytest

from tests.suites.suite import Suite, read_table
from tests.system.fakes_keys import Fake
from tests.system.test_aws_layer import Probe

ROWS, NOT_OURS = read_table("replies")


class Replying(Fake):
    """Answers everything with one row."""

    def __init__(self):
        super().__init__(type("Clock", (), {"clock": 0}))

    def reply(self, method, path, headers, body):
        return int(self.row["status"]), self.row["body"], json.loads(self.row["headers"])


@pytest.mark.parametrize("service", ["s3", "dynamodb"])
def test_replies(tmp_path, service):
    suite = Suite({"s3": "Replies of S3", "dynamodb": "Replies of DynamoDB"}[service], NOT_OURS[service])
    words = {"s3": ["s3", "b", "uploads"], "dynamodb": ["dynamodb", "t", "describe"]}[service]
    with Replying() as server:
        program = Probe(tmp_path)
        for row in (row for row in ROWS if row["service"] == service):
            server.row = row
            found = program(*words, env={"AWS_ENDPOINT_URL": server.endpoint, "AWS_MAX_ATTEMPTS": "1"})
            problem = found.get("problem", {})
            agrees = (problem.get("code"), problem.get("status")) == (row["code"], int(row["status"]))
            agrees = agrees and row["message"][:60] in problem["text"]
            suite.count(agrees, "", (row, found))
        program.kill_all()
    suite.compare_with_page()
