"""Servers that take a request and never answer it, or never as a whole. Whatever the reason, the run says what it waits for,
and ends by the program's own options. The bounds are those of the options; only a run that waits for something else breaks them."""

import asyncio
import contextlib
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from tests.faults import faults
from tests.system.harness import MIB, make_tree, wait_until
from tests.system.pushing import learn_conditions

GIVE_UP, TIMEOUT = 13, 3  # seconds; the first is more than the ten after which a line says what is waited for
OPTIONS = ("--give-up-after", f"{GIVE_UP}s", "--request-timeout", f"{TIMEOUT}s")
SILENCE = 30  # seconds; a large body may be silent for that long, whatever --request-timeout says
SLACK = 8  # of a slow machine that runs other tests


class Listener:
    """Calls serve(connection) in a thread for each connection."""

    def __init__(self, serve):
        self.serve, self.open = serve, []
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=1000)
        self.endpoint = "http://127.0.0.1:%d" % self.socket.getsockname()[1]
        self.where = {"AWS_ENDPOINT_URL_S3": self.endpoint}

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                self.open.append(connection)
                threading.Thread(target=self.one, args=(connection,), daemon=True).start()

    def one(self, connection):
        with contextlib.suppress(OSError):
            self.serve(connection)

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        for connection in self.open:
            connection.close()


def read_head(connection):
    head = b""
    while b"\r\n\r\n" not in head:
        more = connection.recv(65536)
        if not more:
            raise OSError
        head += more
    return head


def says_nothing(connection):
    while connection.recv(1 << 20):
        pass


def all_but_uploads(reached):
    """The bucket is there and empty; an upload is taken, and never answered."""

    def serve(connection):
        while (head := read_head(connection)) and not head.startswith(b"PUT"):
            status = b"501 x" if head.startswith(b"GET") else b"404 x" if b"/p/a" in head.split(b"\r\n")[0] else b"200 OK"
            connection.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")
        reached.set()
        says_nothing(connection)

    return serve


def endless_headers(connection):
    read_head(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"X-More: and more\r\n")
        time.sleep(0.3)


def early_503(connection):
    """Before the body was read, and then a reset, so that it may never be seen."""
    read_head(connection)
    connection.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def answers(status):
    def serve(connection):
        while head := read_head(connection):
            for line in head.lower().split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    rest = int(line.split(b":")[1]) - len(head.split(b"\r\n\r\n", 1)[1])
                    while rest > 0:
                        rest -= len(connection.recv(rest))
            connection.sendall(b"HTTP/1.1 %d x\r\nContent-Length: 0\r\n\r\n" % status)

    return serve


def assert_given_up(run, *words, silence=TIMEOUT):
    """After GIVE_UP, counted from the first failure: `silence` later at most."""
    assert run.code == 3, run
    assert GIVE_UP <= run.seconds <= GIVE_UP + silence + SLACK, run
    assert re.search("nothing has moved for 10 s(, waiting|; if it fails, it is retried) for up to", run.err), run
    last = [line for line in run.err.splitlines() if "error: " in line][-1]
    assert "nothing has moved for" in last and "(--give-up-after)" in last, run
    assert all(word in last for word in words), run


@pytest.mark.parametrize("attempts", [None, 1, 2], ids=["", "no-retry", "one-retry"])
@pytest.mark.parametrize("size", [10, 20 * MIB], ids=["small", "large"])
def test_a_listener_that_never_answers(s3once, tmp_path, size, attempts):
    tree = make_tree(tmp_path / "tree", {"a": size, "b": size})
    with Listener(says_nothing) as listener:
        run = s3once("push", *OPTIONS, tree, "s3://bucket/p", env=listener.where, attempts=attempts)
    assert_given_up(run, "127.0.0.1")


def test_a_part_that_is_never_answered_is_sent_again(s3once, s3, s3_wire, bucket, tmp_path):
    """Although it may be silent for longer than the run waits for: that time begins when it fails."""
    tree = make_tree(tmp_path / "tree", {"a": 12 * MIB})
    rule = s3_wire.add(faults.hang, "UploadPart")
    run = s3once("push", "--part-size", "5MiB", "--request-timeout", "1s", "--give-up-after", "2s", tree, f"s3://{bucket}/p")
    assert run.code == 0 and rule.fired, run
    assert "there is no answer to UploadPart yet; nothing has moved for 10 s; if it fails, it is retried for up to 2 s (--give-up-after)" in run.err, run
    s3.assert_same(tree, bucket, "p")


def test_a_quiet_run_says_what_it_waits_for(s3once, tmp_path):
    """After ten seconds without progress, on standard error: cron sends what is there, and nothing else is."""
    tree = make_tree(tmp_path / "tree", {"a": 10})
    with Listener(says_nothing) as listener:
        run = s3once("push", "-q", *OPTIONS, tree, "s3://bucket/p", env=listener.where)
    assert_given_up(run, "127.0.0.1")
    assert run.out == "" and run.err.startswith("s3once: warning: 127.0.0.1:"), run
    assert f"waiting for up to {GIVE_UP} s (--give-up-after)" in run.err, run


def test_the_time_announced_is_longer_while_the_server_answers(s3once, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 10})
    with Listener(answers(500)) as listener:
        run = s3once("push", "-q", *OPTIONS, tree, "s3://bucket/p", env=listener.where)
    assert run.code == 3 and run.seconds < GIVE_UP + TIMEOUT + SLACK, run
    assert f"waiting for up to {GIVE_UP + TIMEOUT} s (--give-up-after and one --request-timeout)" in run.err, run


def test_no_time_is_left_while_nothing_moves(s3once, s3, s3_wire, bucket, tmp_path):
    """The rates of before say nothing then."""
    tree = make_tree(tmp_path / "tree", {f"{number:03}": 10 for number in range(40)})
    s3_wire.add(faults.hang, "PutObject", where=lambda r: (r.operation.key or "") >= "p/020", times=None)
    s3_wire.add(faults.delay_reply(0.2), "PutObject", times=None)
    run = s3once("push", "--json", *OPTIONS, "--concurrency", "1", tree, f"s3://{bucket}/p")
    assert run.code == 3 and run.events[-1]["uploaded"] == 20, run
    left = [event["seconds_left"] for event in run.events if event["event"] == "progress"]
    assert any(seconds is not None for seconds in left), left
    # Of thirteen seconds the first five may still show the estimate of before.
    assert len(left) > 12 and left[-7:] == [None] * 7, left


def test_a_stop_says_what_was_waited_for(s3once, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 10})
    reached = threading.Event()
    with Listener(all_but_uploads(reached)) as listener:
        run = s3once.start("push", "--grace", "6s", tree, "s3://bucket/p", env=listener.where)
        assert reached.wait(30), run.output()
        run.popen.send_signal(signal.SIGTERM)
        result = run.wait(60)
    assert result.code == 143 and "when it was stopped, nothing had moved for" in result.err, result
    assert "s: there is no answer to " in result.err, result


@pytest.mark.parametrize("serve", [endless_headers, early_503])
@pytest.mark.parametrize("size", [10, 20 * MIB], ids=["small", "large"])
def test_answers_that_are_none(s3once, tmp_path, serve, size):
    tree = make_tree(tmp_path / "tree", {f"f{number}": size for number in range(3)})
    with Listener(serve) as listener:
        run = s3once("push", *OPTIONS, tree, "s3://bucket/p", env=listener.where)
    if serve is early_503:  # an answer: one request more is allowed for
        assert run.code == 3 and run.seconds < GIVE_UP + TIMEOUT + SLACK, run
    else:
        assert_given_up(run, "127.0.0.1")


def assert_the_run_gave_up(run):
    """And no file did, although the time of the run's own clock, which waits for a slow request more, was not over yet."""
    assert run.code == 3 and run.seconds < 60, run
    assert run.err.count("error: ") == 1, run


@pytest.mark.parametrize("status", [500, 502, 503])
def test_a_server_that_answers_everything_with_errors(s3once, tmp_path, status):
    tree = make_tree(tmp_path / "tree", {f"f{number}": 10 for number in range(20)})
    with Listener(answers(status)) as listener:
        run = s3once("push", "--give-up-after", f"{TIMEOUT}s", tree, "s3://bucket/p", env=listener.where, attempts=1)
    assert_the_run_gave_up(run)
    assert f"S3 answers with status {status}; nothing has moved for" in run.err, run


def test_a_server_that_refuses_everything(s3once, tmp_path):
    tree = make_tree(tmp_path / "tree", {f"f{number}": 10 for number in range(20)})
    with socket.create_server(("127.0.0.1", 0)) as unheard:
        where = {"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:%d" % unheard.getsockname()[1]}
    run = s3once("push", "--give-up-after", f"{TIMEOUT}s", tree, "s3://bucket/p", env=where, attempts=1)
    assert_the_run_gave_up(run)
    assert "cannot connect to 127.0.0.1" in run.err, run


def test_marks_that_never_answer(s3once, tmp_path):
    """Before there is a loop: the table is asked for its settings first."""
    tree = make_tree(tmp_path / "tree", {"a": 10})
    with Listener(says_nothing) as listener:
        where = {"AWS_ENDPOINT_URL_DYNAMODB": listener.endpoint}
        run = s3once("push", *OPTIONS, "--marks", "dynamodb:marks", tree, "s3://bucket/p", env=where)
    assert_given_up(run, "127.0.0.1")


@pytest.mark.parametrize("size", [10, 12 * MIB], ids=["small", "large"])
def test_a_proxy_that_is_half_open(s3once, s3, bucket, tmp_path, size):
    """It has forwarded, and from the first body on takes everything and forwards nothing; the looks before are answered."""
    is_deaf = threading.Event()

    def forward(connection):
        with socket.create_connection(("127.0.0.1", int(s3.endpoint.rsplit(":", 1)[1]))) as server:
            threading.Thread(target=back, args=(server, connection), daemon=True).start()
            while data := connection.recv(65536):
                if b"PUT /" in data or b"POST /" in data:
                    is_deaf.set()
                if not is_deaf.is_set():
                    server.sendall(data)

    def back(server, connection):
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                connection.sendall(data)

    tree = make_tree(tmp_path / "tree", {"a": size})
    with Listener(forward) as proxy:
        run = s3once("push", *OPTIONS, "--part-size", "5MiB", tree, f"s3://{bucket}/p", env=proxy.where)
    assert_given_up(run, "127.0.0.1")
    run = s3once("push", *OPTIONS, "--part-size", "5MiB", tree, f"s3://{bucket}/p")
    assert run.code == 0, run
    s3.assert_same(tree, bucket, "p")


def test_a_complete_that_hangs(s3once, s3, s3_wire, bucket, tmp_path):
    """All other requests are answered, which moves nothing; what was sent is not sent again, now or in the next run."""
    tree = make_tree(tmp_path / "tree", {"large": 12 * MIB})
    command = ("push", *OPTIONS, "--part-size", "5MiB", tree, f"s3://{bucket}/p")
    s3_wire.add(faults.hang, "CompleteMultipartUpload", times=None)
    run = s3once(*command)
    assert_given_up(run, "127.0.0.1")
    s3_wire.clear()
    assert s3once(*command).code == 0
    s3.assert_same(tree, bucket, "p")
    sent = [record.operation.kind for record in s3_wire.history]
    assert sent.count("CreateMultipartUpload") == 1 and sent.count("UploadPart") == 3, sent


def test_a_file_that_fails_for_good_is_the_files(s3once, s3, s3_wire, bucket, tmp_path):
    """Its last part is answered with errors for ever, while other requests go well: it ends by --give-up-after, with 1, and the
    others are there."""
    tree = make_tree(tmp_path / "tree", {"large": 12 * MIB, **{f"f{number}": 10 for number in range(5)}})
    s3_wire.add(faults.answer(500, "InternalError"), "UploadPart", where=lambda r: r.operation.part == 3, times=None)
    run = s3once("push", *OPTIONS, "--part-size", "5MiB", tree, f"s3://{bucket}/p")
    assert run.code == 1 and run.err.count("error: ") == 1 and f"{tree}/large" in run.err, run
    assert run.seconds < GIVE_UP + TIMEOUT + SLACK, run
    assert len(s3.objects(bucket)) == 5


IN_CONFLICT = {"CompleteMultipartUpload": (409, "ConditionalRequestConflict")}  # with the first one, as AWS says it


@pytest.mark.parametrize("meanwhile", [{kind: (404, "NoSuchUpload") for kind in ("ListParts", "CompleteMultipartUpload")}, {}, IN_CONFLICT],
                         ids=["gone", "listed", "in conflict"])  # fmt: skip
def test_a_complete_that_takes_longer_than_a_request(s3once, s3, s3_wire, bucket, tmp_path, meanwhile):
    """The server goes on with it, and shows the object only then: the file is sent once, and nobody is blamed."""
    tree = make_tree(tmp_path / "tree", {"large": 12 * MIB})

    async def takes_long(x, rule):
        await x.body()
        for kind, answer in meanwhile.items():
            s3_wire.add(faults.answer(*answer), kind, times=None)
        x.fire(rule)
        await asyncio.sleep(4 * TIMEOUT)
        await x.forward()
        x.reset()

    s3_wire.add(takes_long, "CompleteMultipartUpload")
    run = s3once("push", "--json", "--request-timeout", f"{TIMEOUT}s", "--part-size", "5MiB", tree, f"s3://{bucket}/p")
    assert run.code == 0 and run.events[-1]["uploaded"] == 1 and "lifecycle" not in run.err, run
    sent = [record.operation.kind for record in s3_wire.history]
    assert sent.count("CreateMultipartUpload") == 1 and sent.count("UploadPart") == 3, sent
    s3.assert_same(tree, bucket, "p")


@pytest.mark.parametrize("looks", [True, False], ids=["looks", "knows"])
def test_a_key_that_the_server_signs_otherwise(s3once, s3, s3_wire, bucket, tmp_path, looks):
    """Like Ceph with blanks and Scality with @: only that file fails, and all others are sent."""
    tree = make_tree(tmp_path / "tree", {"odd one": 10, **{f"f{number}": 10 for number in range(12)}})
    if not looks:
        learn_conditions(s3once, bucket)
    s3_wire.add(faults.answer(403, "SignatureDoesNotMatch"), where=lambda r: "odd" in (r.operation.key or ""), times=None)
    run = s3once("push", "--json", "--concurrency", "1", tree, f"s3://{bucket}/p")
    assert run.code == 1 and run.events[-1]["uploaded"] == 12 and run.events[-1]["failed"] == 1, run
    [failed] = [event for event in run.events if event["event"] == "failed"]
    assert failed["path"].endswith("odd one") and "rename the file" in failed["text"], run
    assert failed["code"] == "SignatureDoesNotMatch", run


SERVER = """
import http.server, sys
class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self, status):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.send_header("x-amz-request-id", "1")
        self.end_headers()
    def do_HEAD(self):
        self.answer(200 if self.path.count("/") < 2 or self.path.endswith("/") else 404)
    def do_PUT(self):
        self.answer(200)
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("10.0.0.2", 9000), Server).serve_forever()
"""


@contextlib.contextmanager
def namespace_with_a_server():
    """Two namespaces of networks with a line between them. Gives what enters that of the client, and that of the server."""
    holders = [subprocess.Popen(["unshare", "--net", "--kill-child", "--fork", "sleep", "600"]) for _ in range(2)]
    try:
        inner = []
        for holder in holders:
            children = f"/proc/{holder.pid}/task/{holder.pid}/children"
            wait_until(lambda path=children: open(path).read().split(), 30, "a namespace")
            inner.append(open(children).read().split()[0])
        client, server = ([shutil.which("nsenter"), "-t", pid, "-n"] for pid in inner)
        for argv in (
            ["ip", "link", "add", "line", "type", "veth", "peer", "name", "line", "netns", inner[1]],
            ["ip", "addr", "add", "10.0.0.1/24", "dev", "line"],
            ["ip", "link", "set", "line", "gso_max_segs", "1", "up"],
        ):
            subprocess.run([*client, *argv], check=True)
        for argv in (["ip", "addr", "add", "10.0.0.2/24", "dev", "line"], ["ip", "link", "set", "line", "up"]):
            subprocess.run([*server, *argv], check=True)
        listens = subprocess.Popen([*server, sys.executable, "-c", textwrap.dedent(SERVER)])
        holders.append(listens)
        probe = [*client, sys.executable, "-c", "import socket; socket.create_connection(('10.0.0.2', 9000), 1)"]
        wait_until(lambda: subprocess.run(probe, stderr=subprocess.DEVNULL).returncode == 0, 30, "the server")
        yield client, server
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()


def needs_namespaces():
    if os.geteuid():
        pytest.skip("only root makes namespaces of networks here")
    for program in ("ip", "unshare", "nsenter"):
        if not shutil.which(program):
            pytest.skip(f"there is no {program}")
    made = ["unshare", "--net", "ip", "link", "add", "line", "type", "veth", "peer", "name", "other"]
    if subprocess.run(made, capture_output=True).returncode:
        pytest.skip("this host makes no namespaces with a line between them")


@pytest.mark.parametrize("hole", ["all", "mtu"])
def test_a_black_hole(s3once, tmp_path, hole):
    """Nothing comes through from some time on, or only small packets do and nobody says so: a body never arrives."""
    needs_namespaces()
    tree = make_tree(tmp_path / "tree", {"a": 100_000, "b": 50_000})
    where = {"AWS_ENDPOINT_URL_S3": "http://10.0.0.2:9000"}
    with namespace_with_a_server() as (client, server):
        command = ("push", *OPTIONS, tree, "s3://bucket/p")
        if hole == "mtu":
            subprocess.run([*server, "ip", "route", "change", "10.0.0.0/24", "dev", "line", "src", "10.0.0.2", "advmss", "1460"], check=True)
            subprocess.run([*server, "ip", "link", "set", "line", "mtu", "1000"], check=True)
        else:
            subprocess.run([*client, "ip", "neigh", "replace", "10.0.0.2", "lladdr", "02:00:00:00:00:01", "dev", "line"], check=True)
        run = s3once(*command, env=where, wrap=client)
    assert_given_up(run, "10.0.0.2:9000", silence=SILENCE)
