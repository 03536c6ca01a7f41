"""Shared by tests of locks: tables of each dialect, and a second implementation of each dialect's rules (boto3)."""

import subprocess
import time
import uuid
from decimal import Decimal

from botocore.exceptions import ClientError

from tests.faults import faults
from tests.system.harness import BUILD, wait_until

LOST, HELD, FAILED = 123, 124, 125  # exit statuses of `lock run` itself

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
    """A table of locks and what its rows look like, read by boto3. dialect: "java", …; "java sorted" has a sort key."""

    def __init__(self, dynamodb, s3once, name, dialect, *terms):
        self.client, self.name = dynamodb.client, name
        self.dialect, _, is_sorted = dialect.partition(" ")
        self.pk, self.sk = KEYS[self.dialect]
        self.extra = ["--dialect", self.dialect]  # of every command
        self.of_key = []  # of those that name a key
        if is_sorted:
            self.sk = "range"
            self.extra += ["--sort-name", "range"]
            self.of_key = ["--sort-key", "-"]
        s3once.environment["S3ONCE_LOCKS"] = f"dynamodb:{name}"
        run = s3once("lock", "init", *self.extra, *terms)
        assert run.code == 0 and run.out == f"dynamodb:{name} was created and is ready\n", run

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


def locks_in_s3(s3, bucket, endpoint=None):
    """The environment of a program that keeps its locks in this bucket."""
    return {
        "AWS_ENDPOINT_URL_S3": endpoint or s3.endpoint,
        "AWS_ACCESS_KEY_ID": s3.access_key,
        "AWS_SECRET_ACCESS_KEY": s3.secret_key,
        "S3ONCE_LOCKS": f"s3://{bucket}/locks",
    }


EXISTS = {
    "java": "attribute_exists(#pk)",
    "go": "attribute_exists(#pk)",
    "python": "attribute_exists(#pk) AND attribute_exists(#sk)",
}
NAMES = {"python": ("owner_name", "record_version_number"), "dlm": (None, "release_code")}


class Foreign:
    """A client of the dialect's own library, as far as its rules go: each write and condition as that library has it."""

    def __init__(self, table, lease=2, owner=None):
        self.table, self.lease, self.owner = table, lease, owner or f"foreign-{uuid.uuid4().hex[:8]}"
        self.owner_name, self.version_name = NAMES.get(table.dialect, ("ownerName", "recordVersionNumber"))
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

    def lease_ms(self, row):
        return {
            "java": lambda: int(row["leaseDuration"]["S"]),
            "go": lambda: go_ms(row["leaseDuration"]["S"]),
            "python": lambda: int(row["lease_duration"]["N"]) * 1000,
        }[self.table.dialect]()

    def write(self, call, key, condition, values, **more):
        """One conditional write; False if it was refused."""
        names = {"#pk": self.table.pk, "#sk": self.table.sk, "#rvn": self.version_name, "#on": self.owner_name, "#ir": "isReleased"}
        more["ConditionExpression"] = condition
        text = condition + more.get("UpdateExpression", "")
        more["ExpressionAttributeNames"] = {name: value for name, value in names.items() if name in text} | more.get(
            "ExpressionAttributeNames", {}
        )
        if values:
            more["ExpressionAttributeValues"] = {f":{name}": value for name, value in values.items()}
        if not more["ExpressionAttributeNames"]:
            del more["ExpressionAttributeNames"]
        try:
            call(TableName=self.table.name, **more)
        except ClientError as error:
            assert error.response["Error"]["Code"] == "ConditionalCheckFailedException", error
            return False
        return True

    def put(self, key, condition, **values):
        return self.write(self.table.client.put_item, key, condition, values, Item={**self.table.key(key), **self.attributes()})

    def absent(self):
        if self.table.dialect == "python":
            return "NOT(attribute_exists(#pk) AND attribute_exists(#sk))"
        return "attribute_not_exists(#pk)" + (" AND attribute_not_exists(#sk)" if self.table.sk else "")

    def ours(self):
        """The conditions of heartbeats and releases."""
        text = f"{EXISTS[self.table.dialect]} AND #rvn = :rvn"
        return text if self.table.dialect == "python" else f"{text} AND #on = :on"

    def try_acquire(self, key):
        """One look and, where its rules allow it, one write."""
        dialect = self.table.dialect
        if dialect == "dlm":
            return self.put(key, "attribute_not_exists(resource_id) OR expires <= :now", now={"N": str(int(time.time()))})
        row, one = self.table.row(key), {"S": "1"}
        is_released = dialect != "python" and row and row.get("isReleased") == one
        if dialect == "go" and (row is None or is_released):
            return self.put(key, "attribute_not_exists(#pk) OR (attribute_exists(#pk) AND #ir = :one)", one=one)
        if row is None:
            return self.put(key, self.absent())
        if is_released:
            return self.put(key, "attribute_exists(#pk) AND #ir = :one AND #rvn = :rvn", one=one, rvn=row[self.version_name])
        version = row[self.version_name]["S"]
        if self.seen.get(key, (None,))[0] != version:
            self.seen[key] = (version, time.monotonic())
        if time.monotonic() - self.seen[key][1] < self.lease_ms(row) / 1000:
            return False
        return self.put(key, f"{EXISTS[dialect]} AND #rvn = :rvn", rvn={"S": version})

    def acquire(self, key, seconds=30):
        deadline = time.monotonic() + seconds
        while not self.try_acquire(key):
            assert time.monotonic() < deadline, f"{self.table.dialect}: {key} never came free: {self.table.row(key)}"
            time.sleep(0.02)

    def values(self):
        return {"rvn": {"S": self.version}} | ({"on": {"S": self.owner}} if ":on" in self.ours() else {})

    def heartbeat(self, key):
        """True if it is still ours."""
        if self.table.dialect == "dlm":
            return self.table.row(key) is not None  # that library has none
        values, condition = self.values(), self.ours()
        fresh = self.attributes()
        changed = [name for name in fresh if name not in (self.owner_name, "owner_name")]
        return self.write(
            self.table.client.update_item,
            key,
            condition,
            values | {f"u{at}": fresh[name] for at, name in enumerate(changed)},
            Key=self.table.key(key),
            UpdateExpression="SET " + ", ".join(f"#u{at} = :u{at}" for at in range(len(changed))),
            ExpressionAttributeNames={f"#u{at}": name for at, name in enumerate(changed)},
        )

    def release(self, key):
        """True if it was still ours."""
        client, row = self.table.client, {"Key": self.table.key(key)}
        if self.table.dialect == "dlm":
            return self.write(client.delete_item, key, "release_code = :code", {"code": {"S": self.version}}, **row)
        if self.table.dialect == "go":
            values = self.values() | {"one": {"S": "1"}}
            return self.write(client.update_item, key, self.ours(), values, UpdateExpression="SET #ir = :one", **row)
        return self.write(client.delete_item, key, self.ours(), self.values(), **row)


class Probe:
    """lock_probe.c: a client of the library whose calls are lines; each goes on by itself."""

    def __init__(self, s3once, folder, lease_ms=4000, place=None, dialect=()):
        self.out = folder / f"probe-{uuid.uuid4().hex[:8]}"
        argv = [BUILD / "tests" / "system" / "lock_probe", place or s3once.environment["S3ONCE_LOCKS"], str(lease_ms), *dialect]
        with open(self.out, "w") as out:
            self.popen = subprocess.Popen(argv, env=s3once.environment, stdin=subprocess.PIPE, stdout=out, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        if failure[0]:
            self.popen.kill()
        self.popen.stdin.close()
        assert self.popen.wait(60) == 0 or failure[0]

    def begin(self, line):
        self.popen.stdin.write(line + "\n")
        self.popen.stdin.flush()

    def lines(self, start):
        return [line for line in self.out.read_text().split("\n")[:-1] if line.startswith(start)]

    def answer(self, line, seconds=30):
        """(result, ms, text) of the last call like this, once there is one."""
        start = " ".join(line.split()[:2]) + " "
        found = wait_until(lambda: self.lines(start), seconds, f"the answer to {line!r}")[-1].split(" ", 4)
        return int(found[2]), int(found[3]), found[4]

    def call(self, line, seconds=30):
        count = len(self.lines(" ".join(line.split()[:2]) + " "))
        self.begin(line)
        wait_until(lambda: len(self.lines(" ".join(line.split()[:2]) + " ")) > count, seconds, f"the answer to {line!r}")
        return self.answer(line)

    def events(self, key):
        """The types of those that came, in order."""
        return [line.split(" ")[1] for line in self.lines("event ") if line.split(" ")[2] == key]

    def await_event(self, name, key, seconds=20):
        wait_until(lambda: name in self.events(key), seconds, f"{name} of {key}")


def assert_renewed_by_two_at_once(s3once, handle, wire, operation):
    """The first renewal waits at the wire while the second one is done; the lock is released then."""
    rule = wire.add(faults.hold_request, operation)
    first = s3once.start("lock", "renew", handle)
    assert rule.reached.wait(60)
    assert s3once("lock", "renew", handle).code == 0
    rule.released.set()
    result = first.wait(60)
    assert result.code == 0, result
    assert s3once("lock", "release", handle).code == 0
