"""The wire proxy: one real server behind it, every request numbered and recorded, a chosen one treated as faults.py says.

It runs in a thread of the test with an event loop of its own. Use it like the server it stands before (it has the same
attributes); `history` holds a Record for each request, in the order they came.

    with Proxy(rgw_info, "s3") as s3, Proxy(dynoxide_info, "dynamodb") as dynamodb:
        rule = s3.add(faults.drop_reply, "PutObject", nth=3)
        ...
        assert rule.fired
"""

import asyncio
import json
import random
import ssl
import threading
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.faults import operations, sigv4
from tests.faults.aws_like import AwsLike
from tests.faults.checksums import BodyDigests
from tests.faults.clients import client_pid
from tests.faults.http1 import Malformed, read_chunked, read_reply, read_request, reset
from tests.faults.replies import error_reply
from tests.servers.base import Server

WHOLE = 256 << 10  # bodies up to this size are forwarded in one piece
PIECE = 256 << 10
IDLE_SECONDS = 2  # a connection to the server that was idle for longer is not used again
HOLD_SECONDS = 120  # the longest a fault waits to be released


@dataclass
class Record:
    """One request of a client. Times are time.monotonic(); None: it did not happen."""

    number: int  # from 1, over everything
    index: int  # from 1, among its kind
    operation: operations.Operation
    headers: dict  # as they came, names in lower case
    begun: float
    reused: bool  # not the first request of its connection
    pid: int = None  # of the client
    body_bytes: int = 0  # received from the client
    crc32c: int = 0
    forwarded: list = field(default_factory=list)  # when each copy began to go to the server
    applied: list = field(default_factory=list)  # (when, status) of each answer of the server
    answered: int = None  # the status the client got
    ended: float = None
    fault: str = None
    fired: bool = False
    refused: str = None  # why the proxy itself refused it
    late: bool = False  # forwarded after the client had been cut off
    statements: list = field(default_factory=list)  # of a batch: a Record each, as if it had come alone

    @property
    def kind(self):
        return self.operation.kind

    @property
    def took_effect(self):
        """When the server first said yes, None if it never did."""
        return next((when for when, status in self.applied if status < 300), None)

    def line(self, start):
        """To be read; its times count from start."""
        applied = ", ".join(f"{status} at {when - start:.3f}" for when, status in self.applied)
        ended = f"{self.ended - start:.3f}" if self.ended else "never"
        return (
            f"{self.begun - start:7.3f} {self.pid} {self.kind} {self.operation.key or ''} part {self.operation.part} "
            f"{self.body_bytes} B {self.operation.conditions or ''} -> [{applied}] {self.answered} ended {ended}"
            f" {self.fault or ''}{' FIRED' if self.fired else ''} {self.refused or ''}"
        )


def each(history):
    """The requests, and after each batch its statements as if they had been requests."""
    return [one for record in history for one in (record, *record.statements)]


def most_at_once(records):
    """The most requests that were under way together."""
    edges = sorted(edge for record in records for edge in ((record.begun, 1), (record.ended, -1)))
    most = now = 0
    for _, step in edges:
        now += step
        most = max(most, now)
    return most


@dataclass
class Rule:
    """When a fault is to happen: at the nth request that matches, for `times` requests (None: for ever).

    kind: "UpdateItem" also matches "UpdateItem:done". where: a further condition on the Record.
    """

    fault: object
    kind: str = None
    nth: int = 1
    times: int = 1
    key: str = None
    pid: int = None
    reused: bool = None
    probability: float = 1.0
    where: object = None
    seen: int = 0
    fired: int = 0
    records: list = field(default_factory=list)

    def __post_init__(self):
        self.reached = threading.Event()  # a fault that holds the request has got there
        self.released = threading.Event()

    def wants(self, record):
        operation = record.operation
        if self.kind and operation.kind != self.kind and operation.kind.partition(":")[0] != self.kind:
            return False
        if self.key is not None and operation.key != self.key:
            return False
        if self.pid is not None and record.pid != self.pid or self.reused not in (None, record.reused):
            return False
        if self.where and not self.where(record):
            return False
        self.seen += 1
        if self.seen < self.nth or self.times is not None and self.seen >= self.nth + self.times:
            return False
        return self.probability >= 1 or random.random() < self.probability

    @property
    def name(self):
        return getattr(self.fault, "name", None) or self.fault.__name__


class Exchange:
    """One request under way: the steps that faults are made of."""

    def __init__(self, proxy, connection, request, record):
        self.proxy, self.request, self.record = proxy, request, record
        self.reader, self.writer = connection
        self.whole = None
        self.left = request.length
        self.digests = BodyDigests(request)
        self.is_closed = False

    # The request's body.

    async def continue_(self):
        if self.request.expects_continue:
            self.request.expects_continue = False
            self.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    async def read(self, most=PIECE):
        """The next bytes of the body, b"" at its end."""
        await self.continue_()
        piece = await self.reader.read(min(most, self.left))
        if not piece and self.left:
            raise ConnectionResetError("the client went away inside the body")
        self.left -= len(piece)
        self.digests.update(piece)
        self.record.body_bytes, self.record.crc32c = self.digests.bytes, self.digests.crc32c
        return piece

    async def body(self):
        """All of it, kept."""
        if self.whole is None:
            if self.request.is_chunked:
                await self.continue_()
                self.whole = await read_chunked(self.reader)
                self.digests.update(self.whole)
                self.request.headers["content-length"] = str(len(self.whole))
            else:
                pieces = []
                while self.left:
                    pieces.append(await self.read())
                self.whole = b"".join(pieces)
        return self.whole

    # To the server and back.

    async def forward(self):
        """Sends it to the server once (again): the Reply. ConnectionError: no reply."""
        if self.whole is None and (self.left <= WHOLE or self.request.is_chunked or self.proxy.aws_like):
            await self.body()
        if self.whole is not None:
            refused = self.proxy.refusal(self)
            if refused:
                return refused
        if self.proxy.aws_like:
            return await self.proxy.aws_like.forward(self)
        return await self.forward_plain()

    async def forward_plain(self):
        self.record.forwarded.append(time.monotonic())
        if self.whole is not None:
            reply = await self.proxy.send(self.request, self.whole)
        else:
            reply = await self.stream()
        self.record.applied.append((time.monotonic(), reply.status))
        if self.record.statements:
            self.note_statements(reply, range(len(self.record.statements)))
        return reply

    def note_statements(self, reply, numbers):
        """Notes the server's result for the forwarded statements with these numbers."""
        if reply.status != 200:
            return
        for number, response in zip(numbers, json.loads(reply.body)["Responses"], strict=True):
            statement = self.record.statements[number]
            statement.applied.append((time.monotonic(), 400 if "Error" in response else 200))

    async def stream(self):
        """Passes the body on as it comes; its last piece only once all promises about it are found true."""
        server = await self.proxy.connect()
        try:
            server[1].write(self.request.head())
            held = b""
            while self.left:
                piece = await self.read()
                server[1].write(held)
                held = piece
                await server[1].drain()
            refused = self.proxy.refusal(self)
            if refused:
                reset(server[1])
                return refused
            server[1].write(held)
        except ConnectionError:
            if self.left and self.reader.at_eof():
                reset(server[1])
                raise
            while self.left:  # the server answers before it has read everything
                await self.read()
        return await self.proxy.receive(server, self.request)

    async def forward_cut(self):
        """Sends half of the body to the server, then resets that connection."""
        server = await self.proxy.connect()
        self.record.forwarded.append(time.monotonic())
        server[1].write(self.request.head())
        half = self.request.length // 2
        while self.left > self.request.length - half:
            server[1].write(await self.read(self.left - (self.request.length - half)))
            await server[1].drain()
        await asyncio.sleep(0.02)
        reset(server[1])

    # To the client.

    async def answer(self, reply):
        if self.left and self.whole is None:
            while self.left:
                await self.read()
        await self.write(reply.encode(self.proxy.close_each), reply.status)

    async def write(self, data, status=None):
        self.writer.write(data)
        await self.writer.drain()
        self.record.answered = status

    def reset(self):
        """The client sees its connection reset."""
        self.is_closed = True
        reset(self.writer)

    # What faults tell.

    def fire(self, rule):
        self.record.fired = True
        rule.fired += 1
        rule.records.append(self.record)

    async def hold(self, rule, seconds=HOLD_SECONDS):
        """Until rule.released is set."""
        rule.reached.set()
        deadline = time.monotonic() + seconds
        while not rule.released.is_set() and time.monotonic() < deadline:
            await asyncio.sleep(0.01)


class Proxy(Server):
    """upstream: the info() of a server, or anything with its attributes.

    service: "s3" or "dynamodb". latency: seconds added to each answer. tls: listen with TLS. close_each: every request on a
    fresh connection. check_signature: by default for DynamoDB, whose servers here do not. behaves: see AwsLike.
    """

    def __init__(
        self,
        upstream,
        service,
        folder=None,
        latency=0,
        tls=False,
        close_each=False,
        check_signature=None,
        behaves=None,
        keep=True,
    ):
        super().__init__(folder)
        info = upstream if isinstance(upstream, dict) else vars(upstream)
        self.upstream = urlsplit(info["endpoint"])
        self.access_key, self.secret_key, self.region = info["access_key"], info["secret_key"], info["region"]
        self.service, self.latency, self.tls, self.close_each = service, latency, tls, close_each
        self.check_signature = service == "dynamodb" if check_signature is None else check_signature
        self.aws_like = AwsLike(self, behaves) if behaves else None
        self.keep = keep  # the history
        self.history, self.rules, self.counts = [], [], {}
        self.number = 0
        self.idle, self.connections, self.tasks = [], set(), set()
        self.failures = []  # exceptions that should not have been
        self.loop = None

    # The test's side: any thread.

    def add(self, fault, kind=None, **how):
        """A Rule from now on; its nth counts from now."""
        rule = Rule(fault, kind, **how)
        self.rules = [*self.rules, rule]
        return rule

    def clear(self):
        """No rules any more; what they hold goes on."""
        for rule in self.rules:
            rule.released.set()
        self.rules = []

    def begin_run(self):
        """Numbers by kind start at 1 again."""
        self.counts = {}

    def kinds(self, since=0):
        """[(kind, index)] of the requests from history[since] on."""
        return [(record.kind, record.index) for record in self.history[since:]]

    # Start and stop.

    def launch(self):
        self.context = None
        if self.tls:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*self.make_certificate())
        started = threading.Event()
        self.thread = threading.Thread(target=self.serve, args=(started,), name=f"proxy-{self.service}", daemon=True)
        self.thread.start()
        assert started.wait(20)
        scheme = "https" if self.tls else "http"
        self.endpoint = f"{scheme}://127.0.0.1:{self.port}"
        self.tls_endpoint = self.endpoint if self.tls else None

    def serve(self, started):
        self.loop = asyncio.new_event_loop()
        self.loop.run_until_complete(self.listen())
        started.set()
        self.loop.run_forever()
        self.loop.close()

    async def listen(self, port=0):
        self.server = await asyncio.start_server(
            self.accept, "127.0.0.1", port, ssl=self.context, limit=2 * PIECE, backlog=1024
        )
        self.port = self.server.sockets[0].getsockname()[1]

    def stop(self):
        self.clear()
        if self.loop and self.thread.is_alive():
            asyncio.run_coroutine_threadsafe(self.shut(), self.loop).result(20)
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(20)
        super().stop()

    async def shut(self):
        self.server.close()
        for _, writer, _ in self.idle:
            writer.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def settle(self, seconds=30):
        """Returns once no request is under way any more, late copies included."""
        deadline = time.monotonic() + seconds
        while self.tasks or any(record.ended is None for record in self.history):
            assert time.monotonic() < deadline, "requests still under way"
            time.sleep(0.01)

    def later(self, coroutine):
        """Runs on after the exchange has ended."""
        task = self.loop.create_task(self.guard(coroutine))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def guard(self, coroutine):
        try:
            await coroutine
        except (ConnectionError, OSError):
            pass

    async def outage(self, seconds):
        """Refuses connections, and ends those there are, for so long."""
        self.server.close()
        for writer in list(self.connections):
            reset(writer)
        await asyncio.sleep(seconds)
        while True:
            try:
                return await self.listen(self.port)
            except OSError:  # meanwhile somebody's connection goes out from this port
                await asyncio.sleep(0.05)

    # Connections of clients.

    async def accept(self, reader, writer):
        self.connections.add(writer)
        pid = client_pid(writer) if self.keep else None
        first = True
        try:
            while True:
                request = await read_request(reader)
                if request is None:
                    break
                if await self.handle((reader, writer), request, pid, not first) or self.close_each:
                    break
                first = False
        except (ConnectionError, ssl.SSLError, Malformed, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            pass
        except Exception as error:  # a bug of the proxy, not of the program: the test must fail
            self.failures.append(error)
            raise
        finally:
            self.connections.discard(writer)
            writer.close()

    async def handle(self, connection, request, pid, reused):
        """Returns whether the connection is over."""
        exchange = Exchange(self, connection, request, None)
        record = Record(0, 0, None, dict(request.headers), time.monotonic(), reused, pid)
        exchange.record = record
        if self.service == "s3":
            record.operation = operations.of_s3(request)
        else:
            record.operation = operations.of_dynamodb(request, await exchange.body())
        of_batch = (record.headers, record.begun, reused, pid)
        record.statements = [Record(0, 0, one, *of_batch) for one in record.operation.statements]
        self.number += 1
        record.number = self.number
        record.index = self.counts[record.kind] = self.counts.get(record.kind, 0) + 1
        if self.keep:
            self.history.append(record)
        try:
            rule = next((rule for rule in self.rules if rule.wants(record)), None)
            if rule:
                record.fault = rule.name
                await rule.fault(exchange, rule)
            else:
                await self.pass_on(exchange)
        except ConnectionError:
            exchange.reset()
        finally:
            record.ended = time.monotonic()
            for statement in record.statements:
                statement.ended, statement.answered = record.ended, record.answered
        return exchange.is_closed

    async def pass_on(self, exchange):
        try:
            reply = await exchange.forward()
        except (ConnectionError, OSError):
            return exchange.reset()
        if self.latency:
            await asyncio.sleep(exchange.record.begun + self.latency - time.monotonic())
        await exchange.answer(reply)

    def refusal(self, exchange):
        """The refusal by the proxy itself, like that of the real service, once the body is known."""
        request, record = exchange.request, exchange.record
        wrong = exchange.digests.wrong() if self.service == "s3" else None
        if wrong:
            record.refused = wrong
            return error_reply(self.service, 400, wrong, "The digest that you specified does not match what was received.")
        if self.check_signature and exchange.whole is not None:
            wrong = sigv4.fault_of(request, exchange.whole, self.access_key, self.secret_key)
            if wrong:
                record.refused = wrong
                return error_reply(self.service, 400, "InvalidSignatureException", wrong)
        return None

    # Connections to the server.

    async def connect(self):
        """A fresh or kept (reader, writer)."""
        while self.idle:
            reader, writer, since = self.idle.pop()
            if time.monotonic() - since < IDLE_SECONDS and not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        return await asyncio.open_connection(self.upstream.hostname, self.upstream.port, limit=2 * PIECE)

    async def send(self, request, body):
        server = await self.connect()
        try:
            server[1].write(request.head() + body)
            await server[1].drain()
        except ConnectionError:
            pass  # it may have answered before it read everything
        return await self.receive(server, request)

    async def receive(self, server, request):
        reader, writer = server
        try:
            reply, keep = await read_reply(reader, request.method)
        except BaseException:
            writer.close()
            raise
        if keep:
            self.idle.append((reader, writer, time.monotonic()))
        else:
            writer.close()
        return reply
