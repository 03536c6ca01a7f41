"""Faults of a single request. Each fault is an async function of an Exchange and its Rule that calls fire() when it
has really happened. Functions that take parameters return the fault."""

import asyncio
import contextlib
import email.utils
import hashlib
import os
import re
import signal
import time
from urllib.parse import quote

from tests.faults.checksums import HEADERS, BodyDigests, sum_of
from tests.faults.http1 import BODILESS, Headers, Reply, Request
from tests.faults.replies import error_reply
from tests.faults.sigv4 import sign


def named(name):
    def give(fault):
        fault.name = name
        return fault

    return give


# --- the network


async def refuse(x, rule):
    """Reset before the body was read."""
    x.reset()
    x.fire(rule)


def outage(seconds):
    @named(f"outage({seconds})")
    async def fault(x, rule):
        x.reset()
        x.fire(rule)
        x.proxy.later(x.proxy.outage(seconds))

    return fault


async def drop_request(x, rule):
    """Read whole, never forwarded."""
    await x.body()
    x.reset()
    x.fire(rule)


async def drop_reply(x, rule):
    """Applied, the answer lost."""
    await x.forward()
    x.reset()
    x.fire(rule)


async def hang(x, rule):
    """Read whole, never forwarded, never answered: until the client goes away."""
    await x.body()
    x.fire(rule)
    await wait_for_client(x, rule)
    x.reset()


async def hang_applied(x, rule):
    await x.forward()
    x.fire(rule)
    await wait_for_client(x, rule)
    x.reset()


async def wait_for_client(x, rule, seconds=60):
    deadline = time.monotonic() + seconds
    while not x.reader.at_eof() and not rule.released.is_set() and time.monotonic() < deadline:
        await asyncio.sleep(0.02)


def delay_reply(seconds):
    @named(f"delay_reply({seconds})")
    async def fault(x, rule):
        reply = await x.forward()
        x.fire(rule)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not rule.released.is_set():
            await asyncio.sleep(0.02)
        await x.answer(reply)

    return fault


def late_request(seconds):
    """Cut off at once, and yet it arrives, so much later."""

    @named(f"late_request({seconds})")
    async def fault(x, rule):
        await x.body()
        x.reset()
        x.fire(rule)
        x.record.late = True
        x.proxy.later(forward_later(x, seconds))

    return fault


async def forward_later(x, seconds):
    await asyncio.sleep(seconds)
    await x.forward()


async def duplicate(x, rule):
    """Sent twice; the client gets the second answer, as when its library sent it again in silence."""
    await x.body()
    await x.forward()
    x.fire(rule)
    await x.answer(await x.forward())


def late_duplicate(seconds):
    """Answered as usual; a copy arrives so much later."""

    @named(f"late_duplicate({seconds})")
    async def fault(x, rule):
        await x.body()
        reply = await x.forward()
        x.record.late = True
        x.proxy.later(forward_later(x, seconds))
        x.fire(rule)
        await x.answer(reply)

    return fault


async def cut_request(x, rule):
    """Reset in the middle of the request's body, on both sides."""
    if x.request.length < 2:
        return await x.proxy.pass_on(x)  # nothing to cut: does not fire
    if x.whole is None:
        await x.forward_cut()
    x.reset()
    x.fire(rule)


async def cut_reply(x, rule):
    """Reset in the middle of the reply: of its body, or of its head if it has none."""
    data = (await x.forward()).encode()
    head = data.index(b"\r\n\r\n") + 4
    await x.write(data[: (head + len(data)) // 2 if len(data) > head else head // 2])
    await asyncio.sleep(0.02)
    x.reset()
    x.fire(rule)


async def truncate_reply(x, rule):
    """Half of the body, which its length says is all; a reply without a body loses its headers instead."""
    reply = await x.forward()
    if reply.body:
        reply.body = reply.body[: len(reply.body) // 2]
        reply.headers.pop("x-amz-crc32", None)
    else:
        reply.headers.clear()
    x.fire(rule)
    await x.answer(reply)


async def garble_reply(x, rule):
    """Bytes that are no answer at all."""
    reply = await x.forward()
    if reply.body:
        reply.body = bytes(byte ^ 0x55 for byte in reply.body)
        reply.headers.pop("x-amz-crc32", None)
        x.fire(rule)
        await x.answer(reply)
    else:
        x.fire(rule)
        await x.write(b"HTP/\x00\xff 2OO garbage\r\n\r\n")
        x.is_closed = True


def trickle_reply(seconds):
    """The reply byte by byte."""

    @named(f"trickle_reply({seconds})")
    async def fault(x, rule):
        reply = await x.forward()
        data = reply.encode()
        x.fire(rule)
        for at in range(len(data)):
            await x.write(data[at : at + 1])
            await asyncio.sleep(seconds / len(data))
        x.record.answered = reply.status

    return fault


# --- answers the server never gave


def answer(status, code, applied=False):
    """This error instead of the server's answer; applied: after the server has done it."""

    @named(f"{status} {code}{' (applied)' if applied else ''}")
    async def fault(x, rule):
        if applied:
            await x.forward()
        else:
            await x.body()
        reply = error_reply(x.proxy.service, status, code)
        if x.request.method == "HEAD":
            reply.body = b""
        x.fire(rule)
        await x.answer(reply)

    return fault


def page(status, **headers):
    """Answers with a page of HTML in place of the server: a portal, a balancer, a maintenance page."""

    @named(f"page {status}")
    async def fault(x, rule):
        await x.body()
        text = b"" if status in BODILESS else b"<html><body>Please come back later.</body></html>"
        reply = Reply(status, {"content-type": "text/html", **headers}, text)
        if x.request.method == "HEAD":
            reply.declared, reply.body = len(text), b""
        x.fire(rule)
        await x.answer(reply)

    return fault


def headers_of(headers):
    """The reply to a HEAD has the headers of another object."""

    @named("headers of another object")
    async def fault(x, rule):
        reply = Reply(200, headers, b"", declared=int(headers["content-length"]))
        x.fire(rule)
        await x.answer(reply)

    return fault


def date_ahead(seconds):
    """The server's clock is ahead of the client's, by the Date of its answers."""

    @named(f"date {seconds} s ahead")
    async def fault(x, rule):
        reply = await x.forward()
        reply.headers["date"] = email.utils.formatdate(time.time() + seconds, usegmt=True)
        x.fire(rule)
        await x.answer(reply)

    return fault


async def wrong_etag(x, rule):
    """An etag that is not the object's, in whatever the answer is."""
    reply = await x.forward()
    wrong = "0123456789abcdef0123456789abcdef"
    if b"<ETag>" in reply.body:
        reply.body = re.sub(rb"<ETag>[^<]*</ETag>", f"<ETag>&quot;{wrong}-2&quot;</ETag>".encode(), reply.body)
    else:
        reply.headers["etag"] = f'"{wrong}"'
    x.fire(rule)
    await x.answer(reply)


async def wrong_checksum(x, rule):
    """A success whose checksum of what arrived (of the reply itself from DynamoDB) is another."""
    reply = await x.forward()
    if x.proxy.service == "dynamodb":
        reply.headers["x-amz-crc32"] = "305419896"
    else:
        for name in {*x.digests.promised} & {*HEADERS} or ["crc32c"]:
            reply.headers[HEADERS[name]] = sum_of(name, b"something else")
    x.fire(rule)
    await x.answer(reply)


async def corrupt_byte(x, rule):
    """One byte of the body is another when it arrives; the server goes by what the request promises."""
    body = bytearray(await x.body())
    body[len(body) // 2] ^= 1
    x.whole, x.digests = bytes(body), BodyDigests(x.request)
    x.digests.update(x.whole)
    x.fire(rule)
    await x.proxy.pass_on(x)


def ignores(*names):
    """The server does as if the request had not these headers."""

    @named(f"ignores({', '.join(names)})")
    async def fault(x, rule):
        if [x.request.headers.pop(name) for name in names if name in x.request.headers]:
            sign(x.request, x.proxy.access_key, x.proxy.secret_key, x.proxy.region, "s3")
            x.fire(rule)
        await x.proxy.pass_on(x)

    return fault


def hides(header):
    """The answer without this header."""

    @named(f"hides({header})")
    async def fault(x, rule):
        reply = await x.forward()
        if reply.headers.pop(header, None):
            x.fire(rule)
        await x.answer(reply)

    return fault


def refuses_crc32c(code="InvalidRequest"):
    """Refuses CRC32C by name, in any header, like a server that lacks the library for it."""

    @named(f"refuses_crc32c({code})")
    async def fault(x, rule):
        await x.body()
        sums = {header for header in x.request.headers if header.startswith("x-amz-checksum-") and header != "x-amz-checksum-mode"}
        if "x-amz-checksum-crc32c" in sums or x.request.headers.get("x-amz-checksum-algorithm") == "CRC32C":
            x.fire(rule)
            words = "Checksum algorithm CRC32C is not supported by this server; install the package for it."
            return await x.answer(error_reply("s3", 400, code, words))
        await x.proxy.pass_on(x)

    return fault


def refuses_unequal_parts(code="InvalidPart"):
    """A fake of Cloudflare's R2 as others have met it: all parts but the last have one length, and the last one is no larger."""

    @named(f"refuses_unequal_parts({code})")
    async def fault(x, rule):
        upload = x.record.operation.upload
        sent = [each for each in x.proxy.history if each.kind == "UploadPart" and each.operation.upload == upload and each.took_effect]
        sizes = {each.operation.part: each.body_bytes for each in sent}
        first = sizes[1]
        if any(size > first or (size < first and number < max(sizes)) for number, size in sizes.items()):
            await x.body()
            x.fire(rule)
            return await x.answer(error_reply("s3", 400, code, "All non-trailing parts must have the same length."))
        await x.proxy.pass_on(x)

    return fault


def answers_to(header, status, code, words):
    """A request with this header is refused in these words, which name nothing."""

    @named(f"answers_to({header}, {code})")
    async def fault(x, rule):
        if any(name.startswith(header) and name != "x-amz-checksum-mode" for name in x.request.headers):
            await x.body()
            x.fire(rule)
            return await x.answer(error_reply("s3", status, code, words))
        await x.proxy.pass_on(x)

    return fault


def tells(header, value):
    """A success with this header, and in a document the element of that checksum."""

    @named(f"tells({header})")
    async def fault(x, rule):
        reply = await x.forward()
        if reply.status < 300:
            reply.headers[header] = value
            element = f"Checksum{header.rpartition('-')[2].upper()}"
            reply.body = reply.body.replace(b"</ETag>", f"</ETag><{element}>{value}</{element}>".encode())
            x.fire(rule)
        await x.answer(reply)

    return fault


def cuts_keys_at(*characters):
    """A server that stores an object under what its key has before one of these, and answers as if nothing had happened."""

    @named(f"cuts_keys_at({''.join(characters)})")
    async def fault(x, rule):
        for character in characters:
            path, found, _ = x.request.path.partition(quote(character))
            if found:
                x.request.path = path
                x.request.target = path + ("?" + x.request.query if x.request.query else "")
                sign(x.request, x.proxy.access_key, x.proxy.secret_key, x.proxy.region, "s3")
                x.fire(rule)
        await x.proxy.pass_on(x)

    return fault


def tells_md5_of_the_whole():
    """A fake of gofakes3: Complete answers with the etag of an object in parts, HEAD and the listing show the MD5 of the whole."""
    shown = {}  # the etag of parts → the MD5

    @named("tells_md5_of_the_whole")
    async def fault(x, rule):
        reply = await x.forward()
        kind = x.record.operation.kind
        if kind == "CompleteMultipartUpload" and reply.status == 200:
            body = Request("GET", x.request.path, Headers({"host": x.request.headers["host"]}))
            sign(body, x.proxy.access_key, x.proxy.secret_key, x.proxy.region, "s3")
            whole = await x.proxy.send(body, b"")
            etag = whole.headers["etag"].strip('"')
            shown[etag] = hashlib.md5(whole.body).hexdigest()
            reply.body = re.sub(rb"<ETag>[^<]*</ETag>|<ETag/>", f"<ETag>&quot;{etag}&quot;</ETag>".encode(), reply.body)
            x.fire(rule)
        elif kind in ("HeadObject", "GetObject"):
            etag = reply.headers.get("etag", "").strip('"')
            reply.headers["etag"] = f'"{shown.get(etag, etag)}"'
        elif kind == "ListObjectsV2":
            reply.body = re.sub(rb"[0-9a-f]{32}-\d+", lambda found: shown[found[0].decode()].encode(), reply.body)
        await x.answer(reply)

    return fault


def looks_then_writes():
    """A table whose server looks at a condition first and writes then: whoever asks before the first write has ended wins too.
    The first request for an item waits for a second one, unless none comes for a second."""
    written = {}  # item → when it was last written
    second = {}  # item → whether another request for it has come

    @named("looks_then_writes")
    async def fault(x, rule):
        await x.body()
        item = (x.record.operation.pk, x.record.operation.key)
        if item in second:
            second[item].set()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(second.setdefault(item, asyncio.Event()).wait(), 1)
        reply = await x.forward()
        if reply.status == 200:
            written[item] = time.monotonic()
        elif b"ConditionalCheckFailed" in reply.body and x.record.begun < written.get(item, 0):
            x.fire(rule)
            reply = Reply(200, {"content-type": "application/x-amz-json-1.0"}, b"{}")
        await x.answer(reply)

    return fault


async def other_xml(x, rule):
    """A success, and another document than was asked for."""
    reply = await x.forward()
    reply.body = b'<?xml version="1.0"?><ListBucketResult><Name>b</Name></ListBucketResult>'
    reply.status = 200
    x.fire(rule)
    await x.answer(reply)


async def kms_etag(x, rule):
    """The reply says that the object is encrypted with KMS: then its etag is no MD5."""
    reply = await x.forward()
    if reply.status < 300 and x.record.kind in ("PutObject", "HeadObject", "UploadPart", "CompleteMultipartUpload"):
        reply.headers["x-amz-server-side-encryption"] = "aws:kms"
    x.fire(rule)
    await x.answer(reply)


def store_damaged(lost=False, kill=False):
    """One byte is another, and the server, which verifies nothing, stores it. lost: its answer does not arrive; kill: nor
    does the client live on."""

    @named(f"store_damaged({lost}, {kill})")
    async def fault(x, rule):
        body = bytearray(await x.body())
        body[len(body) // 2] ^= 1
        x.whole, x.digests = bytes(body), BodyDigests(Request(x.request.method, x.request.path, Headers({})))
        for name in ("content-md5", *HEADERS.values()):
            x.request.headers.pop(name, None)
        sign(x.request, x.proxy.access_key, x.proxy.secret_key, x.proxy.region, "s3", "UNSIGNED-PAYLOAD")
        reply = await x.forward()
        x.record.crc32c = None  # not what the client sent
        if kill:
            send_signal(x, rule, signal.SIGKILL)
            return x.reset()
        x.fire(rule)
        if lost:
            return x.reset()
        await x.answer(reply)

    return fault


async def upload_gone(x, rule):
    """The multipart upload is aborted behind the client's back, then the request goes on: a real NoSuchUpload."""
    await x.body()
    headers = Headers({"host": x.request.headers["host"]})
    abort = Request("DELETE", f"{x.request.path}?uploadId={upload_id(x.request)}", headers)
    sign(abort, x.proxy.access_key, x.proxy.secret_key, x.proxy.region, "s3")
    gone = await x.proxy.send(abort, b"")
    if gone.status < 300:
        x.fire(rule)
    await x.proxy.pass_on(x)


def upload_id(request):
    return next(word.partition("=")[2] for word in request.query.split("&") if word.startswith("uploadId="))


# --- the client itself


def send_signal(x, rule, sig):
    """To the client, if it still lives: only then the fault has fired."""
    if x.record.pid is None:
        return
    x.fire(rule)
    try:
        os.kill(x.record.pid, sig)
    except ProcessLookupError:
        pass


async def stop(x, rule, seconds=10):
    """SIGSTOP to the client, and waits until it has: another process's signal takes its time to arrive."""
    send_signal(x, rule, signal.SIGSTOP)
    deadline = time.monotonic() + seconds
    while x.record.pid is not None and time.monotonic() < deadline:
        try:
            with open(f"/proc/{x.record.pid}/stat") as stat:
                if stat.read().rsplit(")", 1)[1].split()[0] in "TtZX":
                    return
        except FileNotFoundError:
            return
        await asyncio.sleep(0.001)


async def kill_before(x, rule):
    """kill -9 of the client when the request has been read; it is never forwarded."""
    await x.body()
    send_signal(x, rule, signal.SIGKILL)
    x.reset()


async def kill_inside(x, rule):
    """kill -9 in the middle of the body."""
    if x.whole is not None or x.request.length < 2:
        return await x.proxy.pass_on(x)
    await x.forward_cut()
    send_signal(x, rule, signal.SIGKILL)
    x.reset()


async def kill_after(x, rule):
    """kill -9 when the server has done it, before the client hears of it."""
    await x.forward()
    send_signal(x, rule, signal.SIGKILL)
    x.reset()


async def hold_killed(x, rule):
    """kill -9 before, and the request arrives nevertheless, once rule.released."""

    async def forward_when_released():
        await x.hold(rule)
        await x.forward()

    await x.body()
    send_signal(x, rule, signal.SIGKILL)
    x.reset()
    x.record.late = True
    x.proxy.later(forward_when_released())


def kill_late(seconds):
    """kill -9 before, and the request arrives nevertheless, so much later."""

    @named(f"kill_late({seconds})")
    async def fault(x, rule):
        await x.body()
        send_signal(x, rule, signal.SIGKILL)
        x.reset()
        x.record.late = True
        x.proxy.later(forward_later(x, seconds))

    return fault


async def stop_before(x, rule):
    """SIGSTOP when the request has been read; it waits until rule.released, then goes on. The test sends SIGCONT."""
    await x.body()
    await stop(x, rule)
    await x.hold(rule)
    await x.proxy.pass_on(x)


async def stop_inside(x, rule):
    """SIGSTOP in the middle of the body. What the client has not sent yet comes after SIGCONT."""
    if x.whole is not None or x.request.length < 2:
        return await x.proxy.pass_on(x)
    await stop(x, rule)
    await x.hold(rule)
    await x.proxy.pass_on(x)


async def stop_after(x, rule):
    """SIGSTOP when the server has done it; the answer waits for the client."""
    reply = await x.forward()
    await stop(x, rule)
    await x.hold(rule)
    await x.answer(reply)


async def hold_reply(x, rule):
    """The server has done it; the answer waits in the network until rule.released."""
    reply = await x.forward()
    x.fire(rule)
    await x.hold(rule)
    await x.answer(reply)


async def hold_request(x, rule):
    """The request waits in the network until rule.released."""
    await x.body()
    x.fire(rule)
    await x.hold(rule)
    await x.proxy.pass_on(x)
