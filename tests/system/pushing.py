"""Shared by tests of `push`: places of marks, trees with hard names, and the meaning of requests at a proxy."""

import json
import random
from collections import Counter
from urllib.parse import unquote, urlsplit

from boto3.dynamodb.types import TypeDeserializer

from tests import packed_items
from tests.faults.checksums import base64_of, crc32c
from tests.system.harness import KIB, MIB

SHARDS = 16


def learn_conditions(s3once, bucket, *options):
    """Doctor finds out what the server does with conditions, so that a push with these marks need not look before it sends."""
    assert s3once("init", *options).code == 0
    run = s3once("doctor", *options, f"s3://{bucket}")
    assert "what the server does with them is kept with the marks" in run.out, run


# --- marks, read by an independent client


class DynamoDBMarks:
    """The table behind a counting proxy: the program goes through it, the test beside it."""

    kind = "dynamodb"

    def __init__(self, service, table, proxy):
        self.service, self.table, self.proxy = service, table, proxy

    def items(self):
        return self.service.items(self.table)

    def requests(self):
        """How many requests the program sent since the last call."""
        return len(self.proxy.requests())

    def end_session(self, row):
        """Ends a session, as an uploader does that takes over."""
        self.service.client.update_item(
            TableName=self.table,
            Key={"pk": {"S": row["pk"]}, "sk": {"S": row["sk"]}},
            UpdateExpression="SET #state = :ended",
            ExpressionAttributeNames={"#state": "state"},
            ExpressionAttributeValues={":ended": {"S": "ended"}},
        )

    def change(self, row, name, value):
        """Sets an attribute of a row: a string, or a number as DynamoDB writes it."""
        self.service.client.update_item(
            TableName=self.table,
            Key={"pk": {"S": row["pk"]}, "sk": {"S": row["sk"]}},
            UpdateExpression="SET #name = :value",
            ExpressionAttributeNames={"#name": name},
            ExpressionAttributeValues={":value": typed(value)},
        )


def typed(value):
    return {"S": value} if isinstance(value, str) else {"N": str(value)}


class SqliteMarks:
    kind = "sqlite"

    def __init__(self, path):
        self.path = path

    def rows(self):
        with packed_items.connect(self.path, only_read=True) as database:
            return database.execute("SELECT pk, sk, unpacked(doc) FROM items").fetchall()

    def items(self):
        plain = TypeDeserializer().deserialize
        return [
            {"pk": pk, "sk": sk, **{name: plain(value) for name, value in json.loads(doc).items()}}
            for pk, sk, doc in self.rows()
        ]

    def requests(self):
        return 0

    def end_session(self, row):
        (doc,) = (json.loads(doc) for pk, _, doc in self.rows() if pk == row["pk"])
        doc["state"] = {"S": "ended"}
        with packed_items.connect(self.path) as database:
            database.execute("UPDATE items SET doc = packed(?) WHERE pk = ?", (json.dumps(doc), row["pk"]))

    def change(self, row, name, value):
        with packed_items.connect(self.path) as database:
            database.execute(
                "UPDATE items SET doc = packed(json_set(unpacked(doc), '$.' || ?, json(?))) WHERE pk = ? AND sk = ?",
                (name, json.dumps(typed(value)), row["pk"], row["sk"]),
            )


def marks_of(store):
    """key → mark."""
    return {item["sk"]: item for item in store.items() if not item["pk"].startswith(("session#", "settings", "probe#", "bucket#", "jobs"))}


def sessions_of(store):
    return [item for item in store.items() if item["pk"].startswith("session#")]


def assert_done(store, paths):
    """Exactly these keys have marks, all done, each of the version that the file (key → path) is now."""
    marks = marks_of(store)
    assert marks.keys() == paths.keys(), sorted(marks.keys() ^ paths.keys())[:10]
    for key, path in paths.items():
        mark, status = marks[key], path.stat()
        assert mark["state"] == "done" and "upload" not in mark, (key, mark)
        assert (mark["size"], mark["mtime"]) == (status.st_size, status.st_mtime_ns), (key, mark)
        if status.st_size <= MIB:
            assert mark["sum"] == "crc32c:" + base64_of(crc32c(path.read_bytes())), (key, mark)


# --- a run


def summary(run):
    assert run.events[-1]["event"] == "summary", run
    assert run.events[-1]["exit"] == run.code, run
    return run.events[-1]


def counts(run, *names):
    """The fates of files that are not zero."""
    names = names or ("uploaded", "adopted", "refreshed", "skipped", "outdated", "refused", "failed", "held", "waiting", "oversized", "undersized", "links", "special", "planned")
    return {name: number for name, number in summary(run).items() if name in names and number}


def told(run, event):
    """The events of this name."""
    return [each for each in run.events if each["event"] == event]


# --- requests at a proxy


def key_of(request):
    return unquote(urlsplit(request["uri"]).path.split("/", 2)[2])


def is_visible_write(request):
    """PutObject or CompleteMultipartUpload, or anything else that changes what a reader of the bucket sees."""
    query = urlsplit(request["uri"]).query
    if request["method"] == "POST":
        return "uploadId=" in query
    return request["method"] in ("PUT", "DELETE") and "uploadId=" not in query


def visible_writes(requests):
    """key → how many requests made an object visible under it."""
    return Counter(key_of(request) for request in requests if is_visible_write(request) and request["status"] < 300)


# Kinds that only look: whether the bucket is there, and the one that the marks are about.
LOOKS_AT_BUCKET = {"HeadBucket", "HeadObject"}

# Kinds of the wire proxy's records that do so.
VISIBLE_WRITES = ("PutObject", "CompleteMultipartUpload", "DeleteObject", "DeleteObjects")


# --- trees

NAMES = [
    "plain",
    "with space",
    " leading",
    "trailing ",
    "plus+plus",
    "per%cent",
    "%2F",
    "%",
    "a&b=c",
    "it's",
    'qu"ote',
    "ha#sh",
    "que?stion",
    "?acl",
    "semi;colon",
    "til~de",
    "~",
    "back\\slash",
    "st*ar",
    "br[ack]et",
    "{brace}|^`",
    ".hidden",
    "..foo",
    "...",
    "a..b",
    "-dash",
    "--",
    "=",
    "comma,at@colon:dollar$",
    "(paren)!",
    "<lt>gt&amp;",
    "caf\u00e9",  # NFC
    "cafe\u0301",  # NFD
    "日本語",
    "🎉 emoji",
    "\u00a0nbsp",
    "a",
    "a-b",
    "a.txt",
    "A",
]


def hard_names(count, seed):
    """count relative names in nested folders; every hard name is a file's and many are folders'."""
    chosen = random.Random(seed)
    folders = ["", *(f"d{name}/" for name in NAMES), "ab/", "ab/c/", "ab-c/", "ab.txt/", "ab0/"]
    while len(folders) < count // 20:
        parent = chosen.choice(folders)
        if parent.count("/") < 6 and len(parent.encode()) < 300:
            folders.append(f"{parent}{chosen.choice(NAMES)} {len(folders)}/")
    names = [f"names/{name}" for name in NAMES]
    names += ["ab.d", "ab-", "ab!", "ab/c!", "ab/c-d", "ab/c/d"]
    names += ["long/" + "/".join(letter * 220 for letter in "xyz") + "/" + "w" * (900 - 5 - 3 * 221)]
    names += ["long/" + "é" * 110 + "/" + "日" * 80 + "/" + "+" * 200 + "/" + "%" * (900 - 5 - 221 - 241 - 201)]
    assert [len(name.encode()) for name in names[-2:]] == [900, 900]
    while len(names) < count:
        names.append(f"{chosen.choice(folders)}{chosen.choice(NAMES)}{len(names)}")
    return names


def hard_tree(count, part, seed=1, biggest=17 * MIB):
    """{name: size} for make_tree: mostly small files, and one of each size where something may go wrong."""
    chosen = random.Random(seed)
    names = hard_names(count, seed)
    edges = [0, 1, 4 * KIB, part - 1, part, part + 1, 2 * part - 1, 2 * part, 2 * part + 1, 3 * part + 1, biggest]
    small = [0, 1, 17, 700, 4 * KIB - 1, 4 * KIB, 4 * KIB + 1]
    tree = {name: chosen.choice(small) for name in names}
    tree.update(zip(chosen.sample(names, len(edges)), edges))
    return tree
