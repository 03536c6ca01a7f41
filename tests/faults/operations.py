"""Classifies a request: its kind by name, and its effect on which key. Pure."""

import json
import re
from dataclasses import dataclass, field
from urllib.parse import unquote


@dataclass
class Operation:
    """kind: "PutObject", "UpdateItem:done", … The rest where it applies.

    bucket, key, upload, part, version: of S3. table, pk, sk: of DynamoDB; key is sk for a mark, the key of a lock. session, claim: whose request it is.
    sets: attributes it writes. conditions: header or attribute → value (None: must be absent, "*": must be present).
    statements: of a batch, what each would be as a request of its own.
    """

    kind: str
    bucket: str = None
    key: str = None
    upload: str = None
    part: int = None
    version: str = None
    table: str = None
    pk: str = None
    session: str = None
    claim: str = None
    sets: dict = field(default_factory=dict)
    conditions: dict = field(default_factory=dict)
    statements: list = field(default_factory=list)


# --- S3

# What a run may ask although everything was done: whether this is the bucket, and what an object is.
LOOKS = ("HeadBucket", "HeadObject", "GetObject")

BY_QUERY = {
    ("POST", "uploads"): "CreateMultipartUpload",
    ("GET", "uploads"): "ListMultipartUploads",
    ("PUT", "partNumber"): "UploadPart",
    ("POST", "uploadId"): "CompleteMultipartUpload",
    ("DELETE", "uploadId"): "AbortMultipartUpload",
    ("GET", "uploadId"): "ListParts",
    ("GET", "list-type"): "ListObjectsV2",
    ("POST", "delete"): "DeleteObjects",
    ("GET", "location"): "GetBucketLocation",
    ("GET", "lifecycle"): "GetBucketLifecycleConfiguration",
    ("GET", "tagging"): "GetObjectTagging",
}
OBJECT = {"PUT": "PutObject", "GET": "GetObject", "HEAD": "HeadObject", "DELETE": "DeleteObject"}
BUCKET = {"PUT": "CreateBucket", "GET": "ListObjects", "HEAD": "HeadBucket", "DELETE": "DeleteBucket"}


def of_s3(request):
    """Path style. Needs no body."""
    bucket, _, key = request.path.lstrip("/").partition("/")
    query = dict(word.partition("=")[::2] for word in request.query.split("&") if word)
    names = (kind for (method, word), kind in BY_QUERY.items() if method == request.method and word in query)
    plain = OBJECT if key else BUCKET
    if not bucket:
        plain = {"GET": "ListBuckets"}
    operation = Operation(next(names, None) or plain.get(request.method, request.method))
    operation.bucket, operation.key = unquote(bucket), unquote(key)
    operation.upload = unquote(query["uploadId"]) if "uploadId" in query else None
    operation.part = int(query["partNumber"]) if "partNumber" in query else None
    operation.version = query.get("versionId")
    operation.claim = request.headers.get("x-amz-meta-s3once-claim")
    operation.conditions = {
        name: request.headers[name] for name in ("if-none-match", "if-match") if name in request.headers
    }
    return operation


# --- DynamoDB

WORD = re.compile(r"[#:\w.]+")
COMPARISON = re.compile(r"(attribute_not_exists|attribute_exists)\s*\(\s*([#\w]+)\s*\)|([#\w]+)\s*=\s*([:\w]+)")
ASSIGNMENT = re.compile(r"([#\w]+)\s*=\s*([:\w]+)")


def plain(value):
    """{"S": "x"} → "x"; {"N": "1"} → 1; anything else as it is."""
    if isinstance(value, dict) and len(value) == 1:
        ((kind, inner),) = value.items()
        return int(inner) if kind == "N" and re.fullmatch(r"-?\d+", inner) else inner
    return value


def of_dynamodb(request, body):
    name = request.headers.get("x-amz-target", "").rpartition(".")[2]
    operation = Operation(name or request.method)
    try:
        call = json.loads(body)
    except ValueError:
        return operation
    if name == "BatchExecuteStatement":
        operation.statements = [of_statement(statement) for statement in call["Statements"]]
        is_probe = operation.statements[0].pk.startswith(PROBES)
        operation.kind += ":probe" if is_probe else ":marks"
        return operation
    operation.table = call.get("TableName")
    names, values = call.get("ExpressionAttributeNames", {}), call.get("ExpressionAttributeValues", {})
    for function, tested, left, right in COMPARISON.findall(call.get("ConditionExpression", "")):
        attribute = names.get(tested or left, tested or left)
        known = {"attribute_not_exists": None, "attribute_exists": "*"}
        operation.conditions[attribute] = known[function] if function else plain(values.get(right))
    row = call.get("Key") or call.get("Item") or {}
    operation.pk, operation.key = plain(row.get("pk")), plain(row.get("sk", row.get("key")))
    if name == "PutItem":
        operation.sets = {attribute: plain(value) for attribute, value in row.items() if attribute not in ("pk", "sk")}
    elif name == "UpdateItem":
        text = call.get("UpdateExpression", "")
        set_part, _, remove_part = text.partition("REMOVE")
        for left, right in ASSIGNMENT.findall(set_part.replace("SET", "", 1)):
            operation.sets[names.get(left, left)] = plain(values.get(right))
        for word in WORD.findall(remove_part):
            operation.sets[names.get(word, word)] = None
    elif name == "Query":
        operation.pk = next((plain(value) for value in values.values() if "#" in str(plain(value))), None)
    if operation.pk and name in ("PutItem", "UpdateItem", "DeleteItem"):
        operation.kind += ":" + intent(name, operation)
    elif operation.pk and name == "GetItem":
        operation.kind += ":" + room(operation.pk)
    return operation


INSERT = re.compile(r'INSERT INTO "([^"]+)" VALUE \{(.*)\}')
UPDATE = re.compile(r'UPDATE "([^"]+)"(.*?)( REMOVE .*)? WHERE (.*)')
NAME = re.compile(r'"([^"]+)"(=\?| IS MISSING)?')


def of_statement(call):
    """A PartiQL statement, as the PutItem or UpdateItem that says the same."""
    text, values = call["Statement"], iter([plain(value) for value in call["Parameters"]])
    insert = INSERT.fullmatch(text)
    if insert:
        row = {name: next(values) for name in re.findall(r"'([^']+)':\?", insert[2])}
        operation = Operation("PutItem", table=insert[1], conditions={"pk": None})
        operation.pk, operation.key = row.pop("pk"), row.pop("sk")
        operation.sets = row
    else:
        table, sets, removes, where = UPDATE.fullmatch(text).groups()
        operation = Operation("UpdateItem", table=table)
        operation.sets = {name: next(values) for name, _ in NAME.findall(sets)}
        operation.sets |= {name: None for name, _ in NAME.findall(removes or "")}
        conditions = {name: next(values) if test == "=?" else None for name, test in NAME.findall(where)}
        operation.pk, operation.key = conditions.pop("pk"), conditions.pop("sk")
        operation.conditions = conditions
    assert next(values, None) is None, "more parameters than question marks"
    operation.kind += ":" + intent(operation.kind, operation)
    return operation


PROBES = ("probe#", "doctor#")


def room(pk):
    names = {"probe": "probe", "doctor": "probe", "session": "session", "settings": "settings", "bucket": "bucket", "jobs": "job"}
    return names.get(pk.partition("#")[0], "mark")


def intent(name, operation):
    """The word after the colon: what a write is for. Also tells whose it is."""
    sets, conditions = operation.sets, operation.conditions
    place = room(operation.pk)
    if place == "session":
        operation.session = operation.pk.partition("#")[2]
        if name == "UpdateItem":
            return "end" if sets.get("state") == "ended" else "heartbeat"
        return "session"
    if place in ("settings", "bucket", "job"):
        return place
    if place == "probe":
        return "probe"
    operation.session = sets.get("session") or conditions.get("session")
    operation.claim = sets.get("claim") or conditions.get("claim")
    if name == "PutItem":
        return "forget" if sets.get("state") == "forgotten" else "claim"
    if name == "DeleteItem":
        return "mark"
    if sets.get("state") == "claimed":
        return "take"
    if sets.get("state") in ("done", "failed"):
        return {"done": "done", "failed": "fail"}[sets["state"]]
    if sets.get("upload"):
        return "upload"
    return "refresh"
