"""Behaviour of AWS that a server here lacks, or lack of it that it has: conditional writes and echoed checksums.

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
        self.uploads = {}  # upload → name of the checksum that it was begun with
        self.parts = {}  # (upload, number) → checksum
        self.changes = {}  # path → how often its object was written or deleted
        self.begun = {}  # upload → such a number when it began

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
        return error_reply("s3", status, code)

    def take_away(self, request, *names):
        for name in CONDITIONS + names:
            request.headers.pop(name, None)
        sign(request, self.proxy.access_key, self.proxy.secret_key, self.proxy.region, "s3")

    async def aws(self, x):
        kind = x.record.operation.kind
        if kind not in VISIBLE:
            begun_with = self.uploads.get(x.record.operation.upload)
            if kind == "UploadPart" and begun_with and [begun_with] != list(promised_by(x.request.headers)):
                return self.error(x, 400, "InvalidRequest")
            reply = await x.forward_plain()
            if reply.status < 300 and self.behaves in ("aws", "races"):
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
            promised = promised_by(x.request.headers)
            self.take_away(x.request, *HEADERS.values())
            reply = await x.forward_plain()
            if reply.status < 300 and b"<Error>" not in reply.body:
                self.changes[x.request.path] = self.changes.get(x.request.path, 0) + 1
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

    async def let_others_look(self, path):
        """Nobody writes before two have looked, unless nobody else comes."""
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
        else:
            name = self.uploads.get(x.record.operation.upload, name)
            object_ = await self.ask("GET", x.request)
            sum_, etag = self.sum_of_upload(x, name, object_.body), object_.headers.get("etag", "").strip('"')
            if promised and promised != {name: sum_}:
                self.proxy.failures.append(f"{x.request.path}: completed with a checksum that is not the object's")
            words = f"<{ELEMENTS[name]}>{sum_}</{ELEMENTS[name]}>" if name else ""
            reply.body = re.sub(rb"<ETag>[^<]*</ETag>|<ETag/>", f"<ETag>&quot;{etag}&quot;</ETag>{words}".encode(), reply.body)
        self.objects[x.request.path] = (etag, name, sum_)

    def sum_of_upload(self, x, name, body):
        """As S3 keeps it; the list of parts must name theirs where that is how the object's comes about."""
        if not name or name in COMBINE:
            return name and sum_of(name, body)
        listed = re.findall(rf"<{ELEMENTS[name]}>([^<]*)</{ELEMENTS[name]}>", x.whole.decode())
        kept = [sum_ for (upload, _), sum_ in sorted(self.parts.items()) if upload == x.record.operation.upload]
        if listed != kept:
            self.proxy.failures.append(f"{x.request.path}: completed with {listed} where the parts have {kept}")
        return composite_of(name, kept)

    def echo(self, x, reply):
        operation = x.record.operation
        promised = promised_by(x.request.headers)
        if operation.kind == "CreateMultipartUpload":
            upload = re.search(rb"<UploadId>([^<]*)</UploadId>", reply.body)[1].decode()
            self.begun[upload] = self.changes.get(x.request.path, 0)
        if operation.kind == "CreateMultipartUpload" and x.request.headers.get("x-amz-checksum-algorithm"):
            upload = re.search(rb"<UploadId>([^<]*)</UploadId>", reply.body)[1].decode()
            name = x.request.headers["x-amz-checksum-algorithm"].lower()
            self.uploads[upload] = name
            if x.request.headers.get("x-amz-checksum-type") != ("FULL_OBJECT" if name in COMBINE else "COMPOSITE"):
                self.proxy.failures.append(f"{x.request.path}: an upload of {name} is not of this type")
        elif operation.kind == "UploadPart" and promised:
            ((name, sum_),) = promised.items()
            self.parts[operation.upload, operation.part] = reply.headers[HEADERS[name]] = sum_
        elif operation.kind == "HeadObject" and x.request.headers.get("x-amz-checksum-mode"):
            etag, name, sum_ = self.objects.get(x.request.path, (None, None, None))
            if name and etag == reply.headers.get("etag", "").strip('"'):
                reply.headers[HEADERS[name]] = sum_
        elif operation.kind == "ListParts":
            reply.body = re.sub(rb"<PartNumber>(\d+)</PartNumber>", lambda found: self.row(operation, found), reply.body)

    def row(self, operation, found):
        sum_, name = self.parts.get((operation.upload, int(found[1]))), self.uploads.get(operation.upload, "crc32c")
        return found[0] + (f"<{ELEMENTS[name]}>{sum_}</{ELEMENTS[name]}>".encode() if sum_ else b"")
