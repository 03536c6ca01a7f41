"""Behaviour of AWS that a server here lacks, or lack of it that it has: conditional writes and echoed checksums.

behaves: "aws": If-None-Match and If-Match are honoured on PutObject and CompleteMultipartUpload, checksums are kept, checked and
echoed. "ignores": conditions are taken away before the server sees them. "refuses": a conditional request is answered 501.
"""

import asyncio
import re

from tests.faults.checksums import base64_of, crc32c
from tests.faults.http1 import Headers, Request
from tests.faults.replies import error_reply
from tests.faults.sigv4 import sign

CONDITIONS = ("if-none-match", "if-match")
CHECKSUM = "x-amz-checksum-crc32c"
VISIBLE = ("PutObject", "CompleteMultipartUpload")


class AwsLike:
    def __init__(self, proxy, behaves):
        assert behaves in ("aws", "ignores", "refuses")
        self.proxy, self.behaves = proxy, behaves
        self.locks = {}
        self.objects = {}  # path → (etag without quotes, checksum)
        self.parts = {}  # (upload, number) → checksum

    async def forward(self, x):
        operation = x.record.operation
        if operation.kind not in VISIBLE or self.behaves == "aws":
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
            reply = await x.forward_plain()
            if reply.status < 300 and self.behaves == "aws":
                self.echo(x, reply)
            return reply
        async with self.locks.setdefault(x.request.path, asyncio.Lock()):
            conditions = x.record.operation.conditions
            if conditions:
                etag = await self.etag_of(x.request)
                if "if-none-match" in conditions and etag is not None:
                    return self.error(x, 412, "PreconditionFailed")
                if "if-match" in conditions:
                    if etag is None:
                        return self.error(x, 404, "NoSuchKey")
                    if conditions["if-match"].strip('"') != etag:
                        return self.error(x, 412, "PreconditionFailed")
            promised = x.request.headers.get(CHECKSUM)
            self.take_away(x.request, CHECKSUM)
            reply = await x.forward_plain()
            if reply.status < 300 and b"<Error>" not in reply.body:
                await self.keep(x, reply, promised)
            return reply

    async def ask(self, method, request):
        asked = Request(method, request.path, Headers({"host": request.headers["host"]}))
        sign(asked, self.proxy.access_key, self.proxy.secret_key, self.proxy.region, "s3")
        return await self.proxy.send(asked, b"")

    async def etag_of(self, request):
        reply = await self.ask("HEAD", request)
        return reply.headers.get("etag", "").strip('"') if reply.status == 200 else None

    async def keep(self, x, reply, promised):
        """The checksum of an object that became visible."""
        if x.record.operation.kind == "PutObject":
            found, etag = base64_of(x.digests.crc32c), reply.headers.get("etag", "").strip('"')
            if promised:
                reply.headers[CHECKSUM] = found
        else:
            object_ = await self.ask("GET", x.request)
            found, etag = promised, object_.headers.get("etag", "").strip('"')
            if promised and promised != base64_of(crc32c(object_.body)):
                self.proxy.failures.append(f"{x.request.path}: completed with a checksum that is not the object's")
            words = f"<ChecksumCRC32C>{promised}</ChecksumCRC32C><ChecksumType>FULL_OBJECT</ChecksumType>" if promised else ""
            reply.body = re.sub(rb"<ETag>[^<]*</ETag>|<ETag/>", f"<ETag>&quot;{etag}&quot;</ETag>{words}".encode(), reply.body)
        self.objects[x.request.path] = (etag, found)

    def echo(self, x, reply):
        operation = x.record.operation
        if operation.kind == "UploadPart" and x.request.headers.get(CHECKSUM):
            self.parts[operation.upload, operation.part] = reply.headers[CHECKSUM] = base64_of(x.digests.crc32c)
        elif operation.kind == "HeadObject" and x.request.headers.get("x-amz-checksum-mode"):
            etag, found = self.objects.get(x.request.path, (None, None))
            if found and etag == reply.headers.get("etag", "").strip('"'):
                reply.headers[CHECKSUM] = found
        elif operation.kind == "ListParts":
            reply.body = re.sub(rb"<PartNumber>(\d+)</PartNumber>", lambda found: self.row(operation, found), reply.body)

    def row(self, operation, found):
        checksum = self.parts.get((operation.upload, int(found[1])))
        return found[0] + (f"<ChecksumCRC32C>{checksum}</ChecksumCRC32C>".encode() if checksum else b"")
