"""Behaviour of AWS that a server here lacks, or lack of it that it has: conditional writes and echoed checksums. tests/suites
compares it with what AWS has answered.

behaves: "aws": If-None-Match and If-Match are honoured on PutObject and CompleteMultipartUpload, checksums are kept, checked and
echoed. "races": the same by a server that looks first and writes then, so that several writers at once win. "ignores": conditions are taken away before the server sees them. "refuses": a conditional request is answered 501.
"""

import asyncio
import re
import time

from tests.faults.checksums import COMBINE, ELEMENTS, HEADERS, composite_of, promised_by, sum_of
from tests.faults.http1 import Headers, Request
from tests.faults.replies import error_reply
from tests.faults.sigv4 import sign

CONDITIONS = ("if-none-match", "if-match")
VISIBLE = ("PutObject", "CompleteMultipartUpload")
ALONE_SECONDS = 0.3  # after which a writer is the only one


class AwsLike:
    def __init__(self, proxy, behaves):
        assert behaves in ("aws", "races", "ignores", "refuses")
        self.proxy, self.behaves = proxy, behaves
        self.locks = {}
        self.looked = {}  # path → how many conditions were found true
        self.objects = {}  # path → (etag without quotes, name of the checksum, checksum)
        self.uploads = {}  # upload → (name, type) of the checksum that it was begun with
        self.parts = {}  # (upload, number) → (checksum or None, size)
        self.changes = {}  # path → how often its object was written or deleted
        self.begun = {}  # upload → such a number when it began
        self.versions = {}  # version → whether it is a delete marker

    async def forward(self, x):
        operation = x.record.operation
        if operation.kind not in VISIBLE or self.behaves in ("aws", "races"):
            return await self.aws(x)
        if operation.conditions and self.behaves == "refuses":
            return self.error(x, 501, "NotImplemented")
        self.take_away(x.request)
        return await x.forward_plain()

    def error(self, x, status, code):
        x.record.refused = code
        reply = error_reply("s3", status, code)
        reply.body = b"" if x.request.method == "HEAD" else reply.body
        return reply

    def take_away(self, request, *names):
        for name in CONDITIONS + names:
            request.headers.pop(name, None)
        sign(request, self.proxy.access_key, self.proxy.secret_key, self.proxy.region, "s3")

    async def aws(self, x):
        kind = x.record.operation.kind
        if kind not in VISIBLE:
            begun_with = self.uploads.get(x.record.operation.upload)
            if kind == "UploadPart" and begun_with and [begun_with[0]] != list(promised_by(x.request.headers)):
                return self.error(x, 400, "InvalidRequest")
            if kind == "CreateMultipartUpload" and self.type_of(x.request.headers) is None:
                return self.error(x, 400, "InvalidRequest")
            reply = await x.forward_plain()
            if reply.status == 404 and x.record.operation.version:
                return self.error(x, *self.absent(x.record.operation.version))
            if reply.status < 300 and self.behaves in ("aws", "races"):
                self.see_version(reply)
                self.changes[x.request.path] = self.changes.get(x.request.path, 0) + (kind == "DeleteObject")
                self.echo(x, reply)
            return reply
        lock = asyncio.Lock() if self.behaves == "races" else self.locks.setdefault(x.request.path, asyncio.Lock())
        async with lock:
            conditions = x.record.operation.conditions
            if conditions:
                refused = self.refuses(x, conditions, await self.etag_of(x.request))
                if refused:
                    return self.error(x, *refused)
                if self.behaves == "races":
                    await self.let_others_look(x.request.path)
            refused = self.refuses_complete(x) if kind == "CompleteMultipartUpload" else None
            if refused:
                return self.error(x, 400, refused)
            promised = promised_by(x.request.headers)
            self.take_away(x.request, *HEADERS.values())
            reply = await x.forward_plain()
            if reply.status < 300 and b"<Error>" not in reply.body:
                self.changes[x.request.path] = self.changes.get(x.request.path, 0) + 1
                self.see_version(reply)
                await self.keep(x, reply, promised)
            return reply

    def refuses(self, x, conditions, etag):
        """(status, code), or None. tests/suites compares this with what AWS has answered."""
        match, none_match = conditions.get("if-match"), conditions.get("if-none-match")
        if (match and none_match) or match == "*" or (none_match and none_match != "*"):
            return 501, "NotImplemented"
        if match and etag is None:
            return 404, "NoSuchKey"
        if (none_match and etag is not None) or (match and match.strip('"') != etag):
            return 412, "PreconditionFailed"
        upload = x.record.operation.upload
        if upload in self.begun and self.begun[upload] != self.changes.get(x.request.path, 0):
            return 409, "ConditionalRequestConflict"
        return None

    def see_version(self, reply):
        version = reply.headers.get("x-amz-version-id")
        if version and version not in self.versions:
            self.versions[version] = reply.headers.get("x-amz-delete-marker") == "true"

    def absent(self, version):
        """(status, code) for a version that the server does not show."""
        known = {True: (405, "MethodNotAllowed"), False: (404, "NoSuchVersion")}
        return known.get(self.versions.get(version), (400, "InvalidArgument"))

    @staticmethod
    def type_of(headers):
        """(name, type) of the checksum that an upload is to have, (None, None) if it has none, None if there is no such."""
        name, type_ = (headers.get(f"x-amz-checksum-{word}") for word in ("algorithm", "type"))
        if not name and not type_:
            return None, None
        name = (name or "").lower()
        types = {"COMPOSITE", "FULL_OBJECT"} if name in COMBINE else {"COMPOSITE"}
        if name not in HEADERS:
            return None
        types = {"FULL_OBJECT"} if name == "crc64nvme" else types
        type_ = type_ or min(types)
        return (name, type_) if type_ in types else None

    def refuses_complete(self, x):
        """The code of what is wrong with the parts, the type and the size that it names, or None."""
        upload, headers = x.record.operation.upload, x.request.headers
        name, type_ = self.uploads.get(upload, (None, None))
        size = headers.get("x-amz-mp-object-size")
        numbers = []
        for row in re.findall(r"<Part>(.*?)</Part>", x.whole.decode(), re.S):
            numbers.append(int(re.search(r"<PartNumber>(\d+)<", row)[1]))
            kept = self.parts.get((upload, numbers[-1]), (None, 0))[0]
            told = name and re.search(rf"<{ELEMENTS[name]}>([^<]*)<", row)
            if type_ == "COMPOSITE" and not told:
                return "InvalidRequest"
            if told and kept and told[1] != kept:
                return "InvalidPart"
        if name and headers.get("x-amz-checksum-type", type_) != type_:
            return "InvalidRequest"
        known = all((upload, number) in self.parts for number in numbers)
        if size and known and int(size) != sum(self.parts[upload, number][1] for number in numbers):
            return "InvalidRequest"
        return None

    async def let_others_look(self, path):
        """Holds a write until a second client has checked, or until it is clear that none comes."""
        self.looked[path] = self.looked.get(path, 0) + 1
        deadline = time.monotonic() + ALONE_SECONDS
        while self.looked[path] < 2 and time.monotonic() < deadline:
            await asyncio.sleep(0.01)

    async def ask(self, method, request):
        asked = Request(method, request.path, Headers({"host": request.headers["host"]}))
        sign(asked, self.proxy.access_key, self.proxy.secret_key, self.proxy.region, "s3")
        return await self.proxy.send(asked, b"")

    async def etag_of(self, request):
        reply = await self.ask("HEAD", request)
        return reply.headers.get("etag", "").strip('"') if reply.status == 200 else None

    async def keep(self, x, reply, promised):
        """The checksum of an object that became visible."""
        ((name, sum_),) = promised.items() or [(None, None)]
        if x.record.operation.kind == "PutObject":
            etag = reply.headers.get("etag", "").strip('"')
            if name:
                reply.headers[HEADERS[name]] = sum_  # the proxy has compared it
                reply.headers["x-amz-checksum-type"] = "FULL_OBJECT"
        else:
            name, type_ = self.uploads.get(x.record.operation.upload, (name, "FULL_OBJECT" if name in COMBINE else "COMPOSITE"))
            object_ = await self.ask("GET", x.request)
            sum_, etag = self.sum_of_upload(x, name, type_, object_.body), object_.headers.get("etag", "").strip('"')
            if promised and promised != {name: sum_}:
                self.proxy.failures.append(f"{x.request.path}: completed with a checksum that is not the object's")
            words = f"<{ELEMENTS[name]}>{sum_}</{ELEMENTS[name]}><ChecksumType>{type_}</ChecksumType>" if name else ""
            reply.body = re.sub(rb"<ETag>[^<]*</ETag>|<ETag/>", f"<ETag>&quot;{etag}&quot;</ETag>{words}".encode(), reply.body)
        self.objects[x.request.path] = (etag, name, sum_)

    def sum_of_upload(self, x, name, type_, body):
        """The checksum as S3 keeps it, from those of the parts if the object's is composed of them."""
        if not name or type_ == "FULL_OBJECT":
            return name and sum_of(name, body)
        return composite_of(name, re.findall(rf"<{ELEMENTS[name]}>([^<]*)</{ELEMENTS[name]}>", x.whole.decode()))

    def echo(self, x, reply):
        operation = x.record.operation
        promised = promised_by(x.request.headers)
        if operation.kind == "CreateMultipartUpload":
            upload = re.search(rb"<UploadId>([^<]*)</UploadId>", reply.body)[1].decode()
            self.begun[upload] = self.changes.get(x.request.path, 0)
        if operation.kind == "CreateMultipartUpload" and x.request.headers.get("x-amz-checksum-algorithm"):
            upload = re.search(rb"<UploadId>([^<]*)</UploadId>", reply.body)[1].decode()
            name, type_ = self.uploads[upload] = self.type_of(x.request.headers)
            reply.headers["x-amz-checksum-algorithm"], reply.headers["x-amz-checksum-type"] = name.upper(), type_
            if x.request.headers.get("x-amz-checksum-type") != ("FULL_OBJECT" if name in COMBINE else "COMPOSITE"):
                self.proxy.failures.append(f"{x.request.path}: an upload of {name} is not of this type")
        elif operation.kind == "UploadPart":
            ((name, sum_),) = promised.items() or [(None, None)]
            self.parts[operation.upload, operation.part] = sum_, x.record.body_bytes
            if name:
                reply.headers[HEADERS[name]] = sum_
        elif operation.kind == "HeadObject" and x.request.headers.get("x-amz-checksum-mode"):
            etag, name, sum_ = self.objects.get(x.request.path, (None, None, None))
            if name and etag == reply.headers.get("etag", "").strip('"'):
                reply.headers[HEADERS[name]] = sum_
                reply.headers["x-amz-checksum-type"] = "COMPOSITE" if "-" in sum_ else "FULL_OBJECT"
        elif operation.kind == "ListParts":
            name, type_ = self.uploads.get(operation.upload, (None, None))
            words = f"<ChecksumAlgorithm>{name.upper()}</ChecksumAlgorithm><ChecksumType>{type_}</ChecksumType>" if name else ""
            reply.body = re.sub(rb"<PartNumber>(\d+)</PartNumber>", lambda found: self.row(operation, found), reply.body)
            reply.body = reply.body.replace(b"</ListPartsResult>", words.encode() + b"</ListPartsResult>")

    def row(self, operation, found):
        sum_, _ = self.parts.get((operation.upload, int(found[1])), (None, 0))
        name = self.uploads.get(operation.upload, (None,))[0]
        return found[0] + (f"<{ELEMENTS[name]}>{sum_}</{ELEMENTS[name]}>".encode() if name and sum_ else b"")
