"""What tests of locks share: tables of each dialect, and a second implementation of each dialect's rules (boto3)."""

import time
import uuid
from decimal import Decimal

from botocore.exceptions import ClientError

KEYS = {
    "java": ("key", None),
    "go": ("key", None),
    "python": ("lock_key", "sort_key"),
    "dlm": ("resource_id", "concurrency_id"),
}
LEASES = {"ms": 1, "s": 1000, "m": 60000, "h": 3600000}


def go_ms(text):
    """A Go duration in ms."""
    total, number = Decimal(0), ""
    unit = ""
    for at, letter in enumerate(text):
        if letter.isdigit() or letter == ".":
            number += letter
            continue
        unit += letter
        if at + 1 == len(text) or text[at + 1].isdigit():
            total += Decimal(number) * LEASES[unit]
            number = unit = ""
    assert not number, text
    return int(total)


class Table:
    """A table of locks and what its rows look like, read by boto3."""

    def __init__(self, dynamodb, s3once, name, dialect):
        self.client, self.name, self.dialect = dynamodb.client, name, dialect
        self.pk, self.sk = KEYS[dialect]
        s3once.environment["S3ONCE_LOCKS"] = f"dynamodb:{name}"
        run = s3once("lock", "init", "--dialect", dialect)
        assert run.code == 0 and "created just now" in run.out, run
        self.extra = ["--dialect", dialect]

    def key(self, key, slot=0):
        found = {self.pk: {"S": key}}
        if self.sk:
            found[self.sk] = {"N": str(slot)} if self.dialect == "dlm" else {"S": "-"}
        return found

    def row(self, key, slot=0):
        """The row in DynamoDB's JSON, without keys; None if there is none."""
        item = self.client.get_item(TableName=self.name, Key=self.key(key, slot), ConsistentRead=True).get("Item")
        return item and {name: value for name, value in item.items() if name not in (self.pk, self.sk)}

    def put(self, key, attributes, slot=0, **condition):
        self.client.put_item(TableName=self.name, Item={**self.key(key, slot), **attributes}, **condition)

    def delete(self, key, slot=0, **condition):
        self.client.delete_item(TableName=self.name, Key=self.key(key, slot), **condition)


class Foreign:
    """A client of the dialect's own library, as far as its rules go: each condition as that library writes it."""

    def __init__(self, table, lease=2, owner=None):
        self.table, self.lease, self.owner = table, lease, owner or f"foreign-{uuid.uuid4().hex[:8]}"
        self.version = None
        self.seen = {}  # key: (version, when first seen)

    def attributes(self):
        self.version = uuid.uuid4().hex
        now = int(time.time())
        return {
            "java": {
                "ownerName": {"S": self.owner},
                "leaseDuration": {"S": str(self.lease * 1000)},
                "recordVersionNumber": {"S": self.version},
            },
            "go": {
                "ownerName": {"S": self.owner},
                "leaseDuration": {"S": f"{self.lease}s"},
                "recordVersionNumber": {"S": self.version},
            },
            "python": {
                "owner_name": {"S": self.owner},
                "lease_duration": {"N": str(self.lease)},
                "record_version_number": {"S": self.version},
                "expiry_time": {"N": str(now + 3600)},
            },
            "dlm": {"release_code": {"S": self.version}, "expires": {"N": str(now + self.lease)}},
        }[self.table.dialect]

    def version_name(self):
        return {"python": "record_version_number", "dlm": "release_code"}.get(self.table.dialect, "recordVersionNumber")

    def lease_ms(self, row):
        return {
            "java": lambda: int(row["leaseDuration"]["S"]),
            "go": lambda: go_ms(row["leaseDuration"]["S"]),
            "python": lambda: int(row["lease_duration"]["N"]) * 1000,
        }[self.table.dialect]()

    def put(self, key, expression, **values):
        try:
            self.table.put(
                key,
                self.attributes(),
                ConditionExpression=expression,
                **({"ExpressionAttributeValues": {f":{name}": value for name, value in values.items()}} if values else {}),
            )
        except ClientError as error:
            assert error.response["Error"]["Code"] == "ConditionalCheckFailedException", error
            return False
        return True

    def try_acquire(self, key):
        """One look and, where its rules allow it, one write."""
        if self.table.dialect == "dlm":
            return self.put(key, "attribute_not_exists(resource_id) OR expires <= :now", now={"N": str(int(time.time()))})
        row, name = self.table.row(key), self.version_name()
        if row is None:
            return self.put(key, f"attribute_not_exists({name})")
        if self.table.dialect != "python" and row.get("isReleased") == {"S": "1"}:
            return self.put(key, "isReleased = :one", one={"S": "1"})
        version = row[name]["S"]
        if self.seen.get(key, (None,))[0] != version:
            self.seen[key] = (version, time.monotonic())
        if time.monotonic() - self.seen[key][1] < self.lease_ms(row) / 1000:
            return False
        return self.put(key, f"{name} = :seen", seen={"S": version})

    def acquire(self, key, seconds=30):
        deadline = time.monotonic() + seconds
        while not self.try_acquire(key):
            assert time.monotonic() < deadline, f"{self.table.dialect}: {key} never came free: {self.table.row(key)}"
            time.sleep(0.02)

    def release(self, key):
        """True if it was still ours."""
        values = {":seen": {"S": self.version}}
        condition = {"ConditionExpression": f"{self.version_name()} = :seen", "ExpressionAttributeValues": values}
        try:
            if self.table.dialect == "go":
                self.table.client.update_item(
                    TableName=self.table.name,
                    Key=self.table.key(key),
                    UpdateExpression="SET isReleased = :one",
                    ConditionExpression=condition["ConditionExpression"],
                    ExpressionAttributeValues={**values, ":one": {"S": "1"}},
                )
            else:
                self.table.delete(key, **condition)
        except ClientError as error:
            assert error.response["Error"]["Code"] == "ConditionalCheckFailedException", error
            return False
        return True
