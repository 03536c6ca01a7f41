"""HTTP/1.1 by hand over asyncio streams: what a proxy needs that no library gives, down to the single byte."""

import asyncio
import socket
import struct
from email.utils import formatdate

BODILESS = {204, 304}
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "expect", "proxy-connection", "te", "trailer"}


class Malformed(Exception):
    """The received bytes are not HTTP/1.1."""


class Headers(dict):
    """Lower-case name → value; the last of a name wins."""


class Request:
    def __init__(self, method, target, headers):
        self.method, self.target, self.headers = method, target, headers
        self.path, _, self.query = target.partition("?")
        self.expects_continue = headers.get("expect", "").lower() == "100-continue"
        self.is_chunked = headers.get("transfer-encoding", "").lower() == "chunked"
        self.length = int(headers.get("content-length", 0))

    def head(self):
        """The head to forward, without headers that concern only one connection."""
        kept = [(name, value) for name, value in self.headers.items() if name not in HOP_BY_HOP]
        lines = "".join(f"{name}: {value}\r\n" for name, value in kept)
        return f"{self.method} {self.target} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")


class Reply:
    def __init__(self, status, headers=None, body=b"", reason="", declared=None):
        self.status, self.headers, self.body, self.reason = status, Headers(headers or {}), body, reason
        self.declared = declared  # the length that a reply to HEAD speaks of

    def copy(self):
        return Reply(self.status, self.headers, self.body, self.reason, self.declared)

    def encode(self, close=False):
        kept = {name: value for name, value in self.headers.items() if name not in HOP_BY_HOP | {"content-length"}}
        kept.setdefault("date", formatdate(usegmt=True))
        if self.status not in BODILESS:
            kept["content-length"] = str(len(self.body) if self.declared is None else self.declared)
        if close:
            kept["connection"] = "close"
        lines = "".join(f"{name}: {value}\r\n" for name, value in kept.items())
        return f"HTTP/1.1 {self.status} {self.reason or 'Status'}\r\n{lines}\r\n".encode("latin-1") + self.body


async def read_head(reader):
    """(words of the first line, Headers), or None at the end of the connection."""
    try:
        data = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as ended:
        if ended.partial:
            raise Malformed("the connection ended inside a head") from None
        return None
    first, *lines = data[:-4].decode("latin-1").split("\r\n")
    headers = Headers()
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise Malformed(line)
        headers[name.lower()] = value.strip()
    return first.split(" ", 2), headers


async def read_request(reader):
    head = await read_head(reader)
    if head is None:
        return None
    words, headers = head
    if len(words) != 3:
        raise Malformed(repr(words))
    return Request(words[0], words[1], headers)


async def read_chunked(reader):
    body = bytearray()
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass
    return bytes(body)


async def read_reply(reader, method):
    """The final reply, whole; ConnectionError if there is none. Also says whether the connection can be used again."""
    while True:
        try:
            head = await read_head(reader)
        except Malformed as error:
            raise ConnectionResetError(str(error)) from None
        if head is None:
            raise ConnectionResetError("closed without a reply")
        words, headers = head
        status = int(words[1])
        if status >= 200:
            break
    reply = Reply(status, headers, reason=words[2] if len(words) > 2 else "")
    keep = headers.get("connection", "").lower() != "close"
    try:
        if method == "HEAD":
            reply.declared = int(headers.get("content-length", 0))
        elif status in BODILESS:
            pass
        elif headers.get("transfer-encoding", "").lower() == "chunked":
            reply.body = await read_chunked(reader)
        elif "content-length" in headers:
            reply.body = await reader.readexactly(int(headers["content-length"]))
        else:
            reply.body, keep = await reader.read(), False
    except asyncio.IncompleteReadError:
        raise ConnectionResetError("the reply ended early") from None
    return reply, keep


def reset(writer):
    """Ends a connection with RST: whatever is under way is lost."""
    sock = writer.get_extra_info("socket")
    try:
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except OSError:
        pass
    writer.transport.abort()
