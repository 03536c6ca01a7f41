"""Decides from S3, the marks and the history of the wire, with boto3 alone, whether the promises were kept.

A Checker is told every content a file has ever had (note_version) and every object somebody else put there
(note_foreign). Its checks return nothing and raise Violation.
"""

from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass

from tests import packed_items
from tests.faults.checksums import crc32c, sum_of
from tests.faults.proxy import each

MARK_WRITES = ("PutItem:claim", "UpdateItem:take", "UpdateItem:done", "UpdateItem:fail", "UpdateItem:upload")
FENCED_WRITES = ("UpdateItem:done", "UpdateItem:fail", "UpdateItem:upload")
EXITS = {0, 1, 3, 4, 5, 129, 130, 143, -9}


class Violation(AssertionError):
    """A promise was broken."""


@dataclass
class Version:
    """stored: what its object holds, if that is something else than the file. mtime_ns: None if nobody knows it."""

    body: bytes
    mtime_ns: int
    stored: bytes = None

    def __post_init__(self):
        self.stored = self.body if self.stored is None else self.stored
        self.crc32c = crc32c(self.stored)


def hold(true, sentence):
    if not true:
        raise Violation(sentence)


class Checker:
    """s3: harness.S3, straight to the server. records: gives the history of the S3 proxy and of the DynamoDB proxy."""

    def __init__(self, s3, bucket, records, honours_conditions=True):
        self.s3, self.bucket, self.records = s3, bucket, records
        self.honours_conditions = honours_conditions
        self.versions = defaultdict(list)  # key → [Version], the last one is what the file is
        self.foreign = {}  # key → body
        self.expired = set()  # keys whose file and object somebody else has deleted
        self.paused = set()  # ids of processes that were stopped for a while

    def note_version(self, key, body, mtime_ns, stored=None):
        self.versions[key].append(Version(body, mtime_ns, stored))

    def note_foreign(self, key, body):
        self.foreign[key] = body

    # After any run.

    def check_exit(self, result, prefix, marks):
        """The exit code is one of those documented, says why if it is not 0, and tells the truth if it is."""
        self.check_exit_code(result)
        if result.code == 0:
            self.check_complete(prefix, marks)

    def check_exit_code(self, result):
        hold(result.code in EXITS, f"exit code {result.code} is none that is documented: {result!r}")
        hold(result.code in (0, -9) or result.err.strip(), f"exit {result.code} without a word: {result!r}")

    def check_complete(self, prefix, marks):
        """Every file is in S3 as it is now, and its mark says so."""
        objects = self.s3.objects(self.bucket, prefix)
        files = set(self.versions) - self.expired
        hold(set(objects) == files, f"objects {sorted(objects)} for files {sorted(files)}")
        for key in files:
            now = self.versions[key][-1]
            hold(self.s3.get(self.bucket, key) == now.stored, f"{key}: S3 holds other content")
            mark = marks.get(key)
            hold(mark is not None and mark["state"] == "done", f"{key}: exit 0, and the mark is {mark}")
            said = (int(mark["size"]), int(mark["mtime"]), mark["sum"])
            if now.mtime_ns is None:  # it cannot be read again: a server without checksums has shown its size and etag
                now = Version(now.body, said[1], now.stored)
                mark["sum"] = mark["sum"] or f"crc32c:{sum_of('crc32c', now.body)}"
                said = (*said[:2], mark["sum"])
            name = mark["sum"].partition(":")[0]
            true = (len(now.body), now.mtime_ns, f"{name}:{sum_of(name, now.body)}")
            hold(said == true, f"{key}: the mark says {said}, the file is {true}")
            hold(not mark.get("upload"), f"{key}: done, and an upload id is left in the mark")

    # Of the whole history.

    def check_history(self):
        s3, dynamodb = self.records()
        records = sorted(s3 + each(dynamodb), key=lambda record: record.begun)
        self.claims = self.order_of_claims(records)
        self.check_contents(records)
        self.check_foreign(records)
        self.check_sent_after_done(records)
        self.check_fence(records)
        self.check_written_once(records)
        self.check_parts_once(records)

    def order_of_claims(self, records):
        """key → [(when, claim)] as they took effect; also whose claim an upload is."""
        order, self.claim_of_upload = defaultdict(list), {}
        for record in records:
            if record.kind in ("PutItem:claim", "UpdateItem:take"):
                order[record.operation.key] += [
                    (when, record.operation.sets["claim"]) for when, status in record.applied if status < 300
                ]
            elif record.kind == "UpdateItem:upload":
                self.claim_of_upload[record.operation.sets["upload"]] = record.operation.claim
        return {key: sorted(claims) for key, claims in order.items()}

    def claim_of(self, record):
        return record.operation.claim or self.claim_of_upload.get(record.operation.upload)

    def superseded(self, key, claim):
        """When another claim of the key took effect after this one, or None."""
        seen = False
        for when, other in self.claims.get(key, []):
            if seen and other != claim:
                return when
            seen = seen or other == claim
        return None

    def visible(self, records):
        """[(when, record, content)] of everything that became visible; content is a CRC-32C, None for torn."""
        parts, found = defaultdict(dict), []
        for record in records:
            for when, status in record.applied:
                if record.kind in ("UploadPart", "PutObject", "CompleteMultipartUpload") and status < 300:
                    found.append((when, record))
        visible, completed = [], set()
        for when, record in sorted(found, key=lambda one: one[0]):
            upload = record.operation.upload
            if record.kind == "UploadPart":
                parts[upload][record.operation.part] = (record.crc32c, record.body_bytes)
            elif record.kind == "PutObject":
                visible.append((when, record, record.crc32c))
            elif upload not in completed:
                completed.add(upload)
                visible.append((when, record, self.assembled(record.operation.key, parts[upload])))
        return visible

    def assembled(self, key, parts):
        """The CRC of the version that these parts are, or None."""
        for version in self.versions[key]:
            at, same = 0, True
            for number in sorted(parts):
                crc, size = parts[number]
                same = same and crc32c(version.stored[at : at + size]) == crc
                at += size
            if same and at == len(version.stored):
                return version.crc32c
        return None

    def check_contents(self, records):
        """Nothing was ever visible that the file never was."""
        for _, record, crc in self.visible(records):
            key = record.operation.key
            known = {version.crc32c for version in self.versions[key]}
            hold(crc in known, f"{key}: {record.kind} {record.index} made content visible that the file never had")

    def check_foreign(self, records):
        for key, body in self.foreign.items():
            hold(self.s3.get(self.bucket, key) == body, f"{key}: somebody else's object was replaced")
        for _, record, _ in self.visible(records):
            hold(record.operation.key not in self.foreign, f"{record.operation.key}: written over somebody else's object")

    def check_sent_after_done(self, records):
        """Nothing of a file is sent while its mark is done."""
        spans = defaultdict(list)  # key → [[from, to, claim]]
        for record in records:
            when = record.took_effect
            if when is None:
                continue
            if record.kind == "UpdateItem:done":
                spans[record.operation.key].append([when, float("inf"), record.operation.claim])
            elif record.kind in ("UpdateItem:take", "PutItem:claim", "PutItem:forget") and spans[record.operation.key]:
                spans[record.operation.key][-1][1] = when
        for record in records:
            if record.kind not in ("PutObject", "UploadPart", "CreateMultipartUpload"):
                continue
            claim, key = self.claim_of(record), record.operation.key
            for begin, end, of in spans[key]:
                # A fenced uploader hears of it within a heartbeat; what it may not do is check_fence's.
                own = claim == of or self.superseded(key, claim) is None
                hold(not (own and begin < record.begun < end), f"{key}: {record.kind} {record.index} after its mark was done")

    def check_fence(self, records):
        """A client that has lost its claim changes neither the mark nor the writes of a later owner."""
        for record in records:
            if record.kind in FENCED_WRITES:
                lost = self.superseded(record.operation.key, record.operation.claim)
                late = [when for when, status in record.applied if status < 300 and lost is not None and when > lost + 0.005]
                hold(not late, f"{record.operation.key}: {record.kind} of a claim that was taken over took effect")
        last = {}
        for _, record, crc in self.visible(records):
            key, claim = record.operation.key, self.claim_of(record)
            order = [one for _, one in self.claims.get(key, [])]
            place = order.index(claim) if claim in order else -1
            before, content = last.get(key, (-1, None))
            hold(place >= before or crc == content, f"{key}: {record.kind} of a fenced claim replaced a later version")
            last[key] = (max(place, before), crc)

    def check_written_once(self, records):
        """Each version of a small file is written by one conditional PutObject at most, where conditions are honoured."""
        if not self.honours_conditions:
            return
        seen = set()
        for _, record, crc in self.visible(records):
            if record.kind == "PutObject" and record.operation.conditions:
                name = (record.operation.key, crc)
                hold(name not in seen, f"{record.operation.key}: the same version was written twice")
                seen.add(name)

    def check_parts_once(self, records):
        """A part is not sent again by whom has heard that S3 holds it: by its reply, or by ListParts. Who was stopped while
        the reply came may have heard nothing: the deadline had passed when it woke."""
        held, listed, begun = {}, {}, set()
        paused = {record.pid for record in records if record.fired and record.fault.startswith("stop")} | self.paused
        for record in records:
            upload = record.operation.upload
            if record.kind == "ListParts":
                listed[record.pid, upload] = record.begun
            if record.kind == "UpdateItem:upload":
                begun.add((record.pid, record.operation.sets["upload"]))
            if record.kind != "UploadPart":
                continue
            name = (upload, record.operation.part, record.crc32c)
            before = held.get(name)
            if before and before.pid == record.pid:
                known = before.answered == 200 and not before.fired and before.ended < record.begun
                known = known and record.pid not in paused
            elif (record.pid, upload) in begun:  # what others have sent since they took over it has not heard of
                known = False
            else:
                known = before and before.took_effect < listed.get((record.pid, upload), record.begun)
            hold(not known, f"{record.operation.key}: part {record.operation.part} was sent again")
            if record.took_effect:
                held[name] = record


def sqlite_marks(path):
    """key → mark, as harness.DynamoDB.marks() gives them, of an embedded store."""
    with closing(packed_items.connect(path, only_read=True)) as database:
        rows = database.execute("SELECT pk, sk, doc FROM items").fetchall()
    marks = {}
    for pk, sk, doc in rows:
        if not pk.startswith(("session#", "settings", "probe#", "bucket#", "jobs")):
            item = {name: next(iter(value.values())) for name, value in packed_items.unpack(doc).items()}
            marks[sk] = {**item, "pk": pk, "sk": sk}
    return marks
