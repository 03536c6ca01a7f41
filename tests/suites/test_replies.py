"""Errors of S3 and DynamoDB in each form that AWS's SDKs read: the code and the message that this program finds in them. And lists
of S3."""

import calendar
import json
import time

import pytest

from tests.suites.suite import Suite, read_table
from tests.system.fakes_keys import Fake
from tests.system.test_aws_layer import Probe

ROWS, NOT_OURS = read_table("replies")
LISTS, OTHER_LISTS = read_table("lists")


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


def seconds(text):
    return calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))


def test_lists(tmp_path):
    suite = Suite("Lists of S3", OTHER_LISTS["lists"])
    with Replying() as server:
        program = Probe(tmp_path)
        for row in LISTS:
            server.row = {"status": 200, "body": row["body"], "headers": "{}"}
            rows = json.loads(row["rows"])
            words = ["objects", "", ""] if row["command"] == "objects" else ["uploads"]
            found = program("s3", "b", *words, env={"AWS_ENDPOINT_URL": server.endpoint}, stop_after=len(rows) or 1)
            if row["command"] == "objects":
                wanted = [{"key": one["Key"], "size": one["Size"], "etag": one["ETag"].strip('"')} for one in rows]
            else:
                wanted = [{"key": one["Key"], "upload_id": one["UploadId"], "initiated_s": seconds(one["Initiated"])} for one in rows]
            suite.count(found.get(row["command"], []) == wanted, "", (row, found))
        program.kill_all()
    suite.compare_with_page()
