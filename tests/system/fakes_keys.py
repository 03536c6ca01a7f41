"""A fake of who hands out temporary keys, and of S3 taking them: `Keys` knows what was handed out to whom and until when,
and its gate, a rule of the wire proxy, lets only requests through that such a key has signed, then signs them again for the
real server behind. What the fakes of IMDS, containers, STS and SSO hand out comes from here."""

import datetime
import json
import threading
import time
import uuid
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.faults.replies import error_reply
from tests.faults.sigv4 import AUTHORIZATION, sign, signature


@dataclass
class Key:
    access_key: str
    secret: str
    token: str
    expires: float  # time.time()
    source: str
    uses: list = field(default_factory=list)  # kinds of the requests that it has signed
    clock: int = 0
    patience: float = 0  # so many seconds after they have expired the keys are taken all the same
    signed: list = field(default_factory=list)  # when, as X-Amz-Date says

    @property
    def expiration(self):
        return datetime.datetime.utcfromtimestamp(self.expires + self.clock).strftime("%Y-%m-%dT%H:%M:%SZ")

    def as_json(self, token_name="Token"):
        """The shape in which containers, instances and programs hand it out."""
        return {
            "AccessKeyId": self.access_key,
            "SecretAccessKey": self.secret,
            token_name: self.token,
            "Expiration": self.expiration,
        }


ANSWER = object()


class Keys:
    """clock: by how many seconds those who hand them out are ahead of this host."""

    def __init__(self):
        self.all, self.clock = {}, 0

    def issue(self, source, seconds=3600):
        key = Key(f"ASIA{uuid.uuid4().hex[:16].upper()}", uuid.uuid4().hex, f"token/+={uuid.uuid4().hex}", 0, source, clock=self.clock)
        key.expires = int(time.time() + seconds)
        self.all[key.access_key] = key
        return key

    def used(self):
        """Sources of the keys that have signed something."""
        return [key.source for key in self.all.values() if key.uses]

    def fault_of(self, request):
        """(status, code) of what is wrong with a request's signature, or None; and its key."""
        found = AUTHORIZATION.match(request.headers.get("authorization", ""))
        access_key, _, scope = found[1].partition("/") if found else ("", "", "")
        key = self.all.get(access_key)
        if not key:
            return (403, "InvalidAccessKeyId"), None
        names, payload = found[2].split(";"), request.headers.get("x-amz-content-sha256")
        if "x-amz-security-token" not in names or request.headers["x-amz-security-token"] != key.token:
            return (400, "InvalidToken"), key
        if signature(request, key.secret, names, scope, payload) != found[3]:
            return (403, "SignatureDoesNotMatch"), key
        key.signed.append(datetime.datetime.strptime(request.headers["x-amz-date"] + "+0000", "%Y%m%dT%H%M%SZ%z").timestamp())
        return ((400, "ExpiredToken"), key) if time.time() >= key.expires + key.patience else (None, key)

    async def gate(self, x, rule):
        """For Proxy.add(keys.gate, times=None)."""
        fault, key = self.fault_of(x.request)
        x.fire(rule)
        if fault:
            await x.body()
            reply = error_reply("s3", *fault)
            reply.body = b"" if x.request.method == "HEAD" else reply.body
            return await x.answer(reply)
        key.uses.append(x.record.kind)
        del x.request.headers["x-amz-security-token"]
        sign(x.request, x.proxy.access_key, x.proxy.secret_key, x.proxy.region, "s3")
        return await x.proxy.pass_on(x)


class Fake:
    """An HTTP server on a free port of 127.0.0.1, in a thread. Subclasses answer: reply(method, path, headers, body) gives
    (status, body as bytes, str or what json can say), and perhaps headers. `failing`: this status instead. `stumbles`: what the first requests get
    instead: (status, body), None (the connection's end) or ANSWER. requests: (method, path, headers)."""

    def __init__(self, keys, seconds=3600):
        self.keys, self.seconds, self.failing, self.stumbles, self.requests = keys, seconds, None, [], []

    def __enter__(self):
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                fake.requests.append((self.command, self.path, headers))
                stumble = (fake.failing, "out of order") if fake.failing else (fake.stumbles or [ANSWER]).pop(0)
                if stumble is None:
                    self.close_connection = True
                    return
                answered = fake.reply(self.command, self.path, headers, body) if stumble is ANSWER else stumble
                status, answer, more = (*answered, {})[:3]
                if isinstance(answer, (dict, list)):
                    answer = json.dumps(answer)
                data = answer.encode() if isinstance(answer, str) else answer
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                for name, value in more.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_HEAD = do_PUT = do_POST = handle_any

            def date_time_string(self, timestamp=None):
                return super().date_time_string(time.time() + fake.keys.clock)

            def log_message(self, *words):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.server.shutdown()
        self.server.server_close()
