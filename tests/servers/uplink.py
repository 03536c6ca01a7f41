"""A slow line: all connections to a server share one uplink, a piece of each in turn, through small buffers.

It runs in a thread of the test. Use it like the server it stands before (it has the same attributes). An answer of the
server comes back after `delay` seconds, by default at once.

    with Uplink(rgw, 2 * MB) as line:
        ...
        line.cut()
"""

import selectors
import socket
import struct
import threading
import time
from urllib.parse import urlsplit

TICK = 0.005  # seconds; what the line takes within one goes in one piece


class Pair:
    """One connection of a client, and the one to the server behind it."""

    def __init__(self, client, server):
        self.client, self.server = client, server
        self.down = []  # (when it is due, bytes) from the server, not yet written to the client
        self.is_readable = False

    def close(self, reset=False):
        for sock in (self.client, self.server):
            if reset:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()


class Uplink:
    """bytes_per_second: of all connections together; may be changed at any time. carried: bytes that went up so far."""

    def __init__(self, server, bytes_per_second, delay=0.0):
        self.server, self.bytes_per_second, self.delay = server, bytes_per_second, delay
        self.carried = 0
        self.pairs = {}  # client's socket → Pair, in the order of their turns
        self.to_cut = 0
        self.lock = threading.Lock()
        self.stopped = False

    def __getattr__(self, name):
        if name in ("access_key", "secret_key", "region", "ca"):
            return getattr(self.server, name)
        raise AttributeError(name)

    def __enter__(self):
        self.listener = socket.socket()
        # Segments as on a real line; those of the loopback interface are larger than the buffers.
        self.listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1400)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, max(16 << 10, int(self.bytes_per_second / 50)))
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(256)
        self.listener.setblocking(False)
        self.endpoint = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.tls_endpoint = None
        parts = urlsplit(self.server.endpoint)
        self.behind = (parts.hostname, parts.port)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped = True
        self.thread.join(10)
        for pair in list(self.pairs.values()):
            pair.close()
        self.listener.close()
        self.selector.close()

    def cut(self, connections=1):
        """Resets so many connections: those whose turn comes next with something to carry."""
        with self.lock:
            self.to_cut += connections

    # What follows runs in the thread.

    def run(self):
        credit, last = 0.0, time.monotonic()
        while not self.stopped:
            for key, _ in self.selector.select(TICK):
                self.see(key)
            now = time.monotonic()
            self.answer(now)
            credit = min(credit + (now - last) * self.bytes_per_second, 8 * TICK * self.bytes_per_second)
            last = now
            credit -= self.carry(credit)
            if not any(pair.is_readable for pair in self.pairs.values()):
                continue
            time.sleep(TICK)

    def see(self, key):
        if key.fileobj is self.listener:
            self.accept()
            return
        pair = key.data
        if key.fileobj is pair.client:  # nothing more is asked of it until its turn
            pair.is_readable = True
            self.selector.unregister(pair.client)
            return
        try:
            answer = pair.server.recv(1 << 16)
            if answer:
                pair.down.append((time.monotonic() + self.delay, answer))
                return
        except OSError:
            pass
        self.drop(pair)

    def answer(self, now):
        """Hands down the answers that are due."""
        for pair in list(self.pairs.values()):
            try:
                while pair.down and pair.down[0][0] <= now:
                    pair.client.setblocking(True)
                    pair.client.sendall(pair.down.pop(0)[1])
            except OSError:
                self.drop(pair)

    def accept(self):
        client, _ = self.listener.accept()
        server = socket.create_connection(self.behind)
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pair = self.pairs[client] = Pair(client, server)
        self.selector.register(client, selectors.EVENT_READ, pair)
        self.selector.register(server, selectors.EVENT_READ, pair)

    def drop(self, pair, reset=False):
        for sock in (pair.client, pair.server):
            try:
                self.selector.unregister(sock)
            except (KeyError, ValueError):
                pass
        self.pairs.pop(pair.client, None)
        pair.close(reset)

    def carry(self, credit):
        """A piece of each that has something, until the credit is used; how much that was."""
        used = 0
        piece = max(1400, int(self.bytes_per_second * TICK / 4))
        ready = [pair for pair in self.pairs.values() if pair.is_readable]
        while ready and used < credit:
            pair = ready.pop(0)
            with self.lock:
                is_cut, self.to_cut = self.to_cut > 0, max(0, self.to_cut - 1)
            if is_cut:
                self.drop(pair, reset=True)
                continue
            try:
                pair.client.setblocking(False)
                data = pair.client.recv(piece)
                if data:
                    pair.server.sendall(data)
            except BlockingIOError:
                pair.is_readable = False
                self.selector.register(pair.client, selectors.EVENT_READ, pair)
                continue
            except OSError:
                data = b""
            if not data:
                self.drop(pair)
                continue
            used += len(data)
            self.carried += len(data)
            self.pairs[pair.client] = self.pairs.pop(pair.client)  # behind the others
            ready.append(pair)
        return used
