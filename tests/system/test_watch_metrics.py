"""`s3once watch --metrics-listen`: what Prometheus is answered, in a form that its own tools read."""

import contextlib
import http.client
import os
import re
import signal
import socket
import struct
import threading
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.faults import faults
from tests.faults.preloads import preload_library, preloaded
from tests.servers.base import free_ports
from tests.system.harness import REPOSITORY, make_tree, wait_until
from tests.system.test_metrics import promtool
from tests.system.watching import Watched


@pytest.fixture
def watched(s3once, bucket, tmp_path):
    return Watched(s3once, bucket, tmp_path)


@pytest.fixture
def port():
    return free_ports(1)[0]


def ask(port, path="/metrics", method="GET", host="127.0.0.1", source=""):
    connection = http.client.HTTPConnection(host, port, timeout=30, source_address=(source, 0) if source else None)
    connection.request(method, path)
    reply = connection.getresponse()
    body = reply.read().decode()
    connection.close()
    return reply, body


def read(port, **how):
    """{(name without s3once_, job, its other labels…): value}"""
    reply, text = ask(port, **how)
    assert reply.status == 200 and reply.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    promtool("check", "metrics", input=text)
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation and text.count(f"# TYPE {family.name}") == 1
        for sample in family.samples:
            labels = dict(sample.labels)
            job = labels.pop("job", None)
            labels.pop("target", None)
            key = (sample.name.removeprefix("s3once_"), job, *labels.values())
            assert key not in found
            found[key] = sample.value
    return found


def is_closed(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) != 0


def test_two_jobs(watched, bucket, port, tmp_path):
    """Each has its own figures, with one description of each metric; the second one fails."""
    other = tmp_path / "other.conf"
    other.write_text(f"source = {tmp_path}/nowhere\ntarget = s3://{bucket}/q\nfull-scan = 1h\n")
    watched.write(metrics_listen=f"127.0.0.1:{port}")
    watched.start(other)
    watched.rename_in("a", 10)
    watched.manager.pass_with(files=1, full=2)
    found = read(port)
    assert found["watch_uploaded_files_total", "job"] == 1 and found["watch_uploaded_bytes_total", "job"] == 10
    assert found["watch_passes_total", "job", "all"] == 1 and found["watch_passes_total", "job", "some"] == 1
    assert found["watch_folders", "job"] == 1
    assert found["last_run_exit_status", "job"] == 0 and found["last_success_timestamp_seconds", "job"] > 1e9
    assert found["last_run_files", "job", "uploaded"] == 1
    assert found["last_run_exit_status", "other"] == 1 and found["watch_failed_passes_total", "other"] >= 1
    assert ("last_success_timestamp_seconds", "other") not in found
    page = (REPOSITORY / "docs" / "operations.md").read_text()
    assert set(re.findall(r"^\| `s3once_(watch_\w+)", page, re.M)) == {name for name, *_ in found if name.startswith("watch_")}
    assert watched.stop().code == 1
    assert is_closed(port)


def test_requests(watched, port):
    watched.start("--metrics-listen", str(port))
    reply, body = ask(port, method="HEAD")
    assert reply.status == 200 and not body and int(reply.headers["Content-Length"]) > 100
    reply, body = ask(port, "/")
    assert (reply.status, body) == (404, "The metrics are at /metrics.\n")
    reply, body = ask(port, method="POST")
    assert (reply.status, reply.headers["Allow"], body) == (405, "GET, HEAD", "Only GET and HEAD are allowed.\n")
    assert ask(port, "/metrics?name[]=x")[0].status == 200
    watched.rename_in("a", 1)
    watched.manager.pass_with(files=1)
    with socket.create_connection(("127.0.0.1", port)) as silent, socket.create_connection(("127.0.0.1", port)) as other:
        other.sendall(b"\0\xff nonsense\r\n\r\n")
        silent.sendall(b"GET /metr")
        assert read(port)["watch_uploaded_files_total", "job"] == 1
        assert watched.stop().code == 0


def test_the_port_is_flooded(watched, port):
    """More clients than are served at once, who send half a request, read nothing, ask too much or hang up: files are shipped
    meanwhile, with a bounded number of descriptors, and the next one is answered."""
    watched.start("--metrics-listen", str(port))
    descriptors = Path(f"/proc/{watched.running.pid}/fd")
    before = len(list(descriptors.iterdir()))
    requests = (
        b"GET /metr",
        b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 500,
        b"GET /" + b"a" * 200_000,
        b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999\r\n\r\n" + b"x" * 200_000,
        b"GET /metrics HTTP/1.1\r\n" + b"A: b\r\n" * 30_000,
        b"\0\xff\r\n\r\n" * 1000,
        b"",
    )
    with contextlib.ExitStack() as clients:
        for i in range(10 * len(requests)):
            client = clients.enter_context(socket.create_connection(("127.0.0.1", port)))
            client.setblocking(False)
            if i % 4 == 0:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, when it is closed
            with contextlib.suppress(OSError):
                client.send(requests[i % len(requests)])
        for i in range(2):
            watched.rename_in(f"file{i}", 1)
            watched.manager.pass_with(files=i + 1)
        assert len(list(descriptors.iterdir())) <= before + 16 + 20, "16 clients, and what a pass may have left open"
    assert read(port, source="127.0.0.2")["watch_uploaded_files_total", "job"] == 2
    assert watched.stop().code == 0


def probe(port, name):
    reply, body = ask(port, f"/-/{name}")
    assert reply.headers["Content-Type"] == "text/plain; charset=utf-8"
    return reply.status, body


def rested(tree, *names):
    """Files that the first pass takes."""
    make_tree(tree, {name: 1 for name in names})
    for name in names:
        os.utime(tree / name, (1, 1))


ALIVE, READY = (200, "The service is alive.\n"), (200, "All jobs have reached S3 and their marks.\n")
NOT_READY = (503, "Some job has not reached S3 and its marks.\n")


def test_it_is_ready_once_s3_is_reached(watched, bucket, port, tmp_path):
    """Not while one of its jobs names a bucket that is not there, nor after a reload to such a job."""
    other = tmp_path / "other.conf"
    other.write_text(f"source = {tmp_path}/tree\ntarget = s3://{bucket}/q\nfull-scan = 1h\nmin-age = 200ms\n")
    rested(watched.tree, "a")
    watched.write(target=f"s3://{bucket}-is-not-there/p", metrics_listen=port)
    watched.start(other)
    watched.manager.pass_with(full=2)
    assert probe(port, "ready") == NOT_READY and probe(port, "healthy") == ALIVE
    for target, answer in ((f"s3://{bucket}/p", READY), (f"s3://{bucket}-is-not-there/p", NOT_READY)):
        watched.write(target=target, metrics_listen=port)
        watched.running.popen.send_signal(signal.SIGHUP)
        watched.manager.next_line("READY=1")
        wait_until(lambda: probe(port, "ready") == answer, 60, f"the answer {answer} for {target}")
    assert probe(port, "healthy") == ALIVE
    watched.stop()


def test_it_is_ready_while_the_first_pass_goes_on(watched, s3_wire, port):
    rested(watched.tree, "a", "b")
    held = s3_wire.add(faults.hold_request, "PutObject", nth=2)
    watched.begin("--metrics-listen", str(port), "--concurrency", "1")
    assert held.reached.wait(60)
    wait_until(lambda: probe(port, "ready") == READY, 60, "readiness")
    s3_wire.clear()
    watched.manager.pass_with(files=2)
    assert watched.stop().code == 0


def test_it_is_not_healthy_when_it_hangs(watched, port, tmp_path):
    """By the rule of the watchdog: while the file system does not answer, there is no sign of life."""
    hung = tmp_path / "hung"
    library = preload_library()
    watched.write("lease = 1s", "give-up-after = 0", metrics_listen=port)
    watched.start(env={"WATCHDOG_USEC": "4000000", **preloaded(watched.s3once, library, S3ONCE_TEST_LIST_HUNG=hung, S3ONCE_TEST_LIST_PATH="/tree")})
    hung.touch()
    watched.rename_in("new/a", 1)
    wait_until(lambda: probe(port, "healthy") == (503, "The service has given no sign of life for too long.\n"), 60, "no sign of life")
    hung.unlink()
    watched.manager.pass_with(files=1)
    assert probe(port, "healthy") == ALIVE and probe(port, "ready") == READY
    assert watched.stop().code == 0


class Dribbling(threading.Thread):
    """A client whose request grows by a header every half second, until it is cut off."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.client = socket.create_connection(("127.0.0.1", port))
        self.client.settimeout(0.5)
        self.start()

    def run(self):
        with contextlib.suppress(ConnectionError), self.client:
            self.client.sendall(b"GET /metrics HTTP/1.1\r\n")
            for _ in range(120):
                self.client.sendall(b"A: b\r\n")
                with contextlib.suppress(TimeoutError):
                    if not self.client.recv(1):
                        return


def test_clients_that_never_end(watched, port):
    """They leave room for clients of other addresses, and are cut off."""
    watched.start("--metrics-listen", str(port))
    clients = [Dribbling(port) for _ in range(16)]
    assert read(port, source="127.0.0.2")["watch_folders", "job"] == 1
    for client in clients:
        client.join(30)
    assert not any(client.is_alive() for client in clients)
    assert watched.stop().code == 0


def test_last_success_survives_a_failing_start(watched, port, tmp_path):
    """The last success is that of the file, after a start that fails."""
    watched.write("metrics = watch.prom", metrics_listen=f"[::1]:{port}")
    (tmp_path / "watch.prom").write_text(f's3once_last_success_timestamp_seconds{{job="job",target="s3://{watched.bucket}/p"}} 5\n')
    watched.tree.rmdir()
    watched.start(cwd=tmp_path)
    found = read(port, host="::1")
    assert found["last_run_exit_status", "job"] == 1 and found["last_success_timestamp_seconds", "job"] == 5
    assert f"{found['last_run_timestamp_seconds', 'job']:.0f}" in (tmp_path / "watch.prom").read_text()


def test_reload(watched, tmp_path):
    """Figures stay; the address changes with the file; what cannot be opened leaves the other one open."""
    first, second, taken = free_ports(3)
    watched.write(metrics_listen=first)
    watched.start()
    watched.rename_in("a", 1)
    watched.manager.pass_with(files=1)

    def reload():
        watched.running.popen.send_signal(signal.SIGHUP)
        watched.manager.next_line("READY=1")

    reload()
    watched.manager.pass_ended()
    assert read(first)["watch_uploaded_files_total", "job"] == 1
    watched.write(metrics_listen=second)
    reload()
    assert is_closed(first) and read(second)["last_run_exit_status", "job"] == 0
    with socket.create_server(("127.0.0.1", taken)):
        watched.write(metrics_listen=taken)
        reload()
        watched.wait_said(f"the metrics are still at {second}")
        assert read(second)
    watched.write()
    reload()
    assert is_closed(second)


def test_reload_of_two_jobs(watched, bucket, tmp_path):
    """Both move to another address at once. One that moves alone keeps the options that it had."""
    first, second = free_ports(2)
    other = tmp_path / "other.conf"

    def write(mine, its):
        watched.write(metrics_listen=mine)
        other.write_text(f"source = {tmp_path}/nowhere\ntarget = s3://{bucket}/q\nfull-scan = 1h\nmetrics-listen = {its}\n")

    def reload():
        watched.running.popen.send_signal(signal.SIGHUP)
        watched.manager.next_line("READY=1")

    write(first, first)
    watched.start(other)
    write(second, second)
    reload()
    assert is_closed(first) and ("watch_folders", "job") in read(second)
    assert watched.said("goes on with the options") == 0
    write(first, second)
    reload()
    assert watched.said("have different --metrics-listen") == 1 and watched.said("goes on with the options") == 1
    assert is_closed(first) and read(second)


def test_a_port_that_is_taken(watched, port):
    with socket.create_server(("127.0.0.1", port)):
        run = watched.s3once("watch", watched.file, "--metrics-listen", str(port))
    assert run.code == 3 and f"another program listens at {port}; end it, or choose another port" in run.err, run
    run = watched.s3once("watch", watched.file, "--metrics-listen", f"192.0.2.1:{port}")
    assert run.code == 3 and f"cannot listen at 192.0.2.1:{port}: Cannot assign requested address" in run.err, run


def test_addresses_that_are_not_right(watched, bucket, port, tmp_path):
    watched.write(metrics_listen="localhost:14469")
    for command in ("watch", "run"):
        run = watched.s3once(command, watched.file)
        assert run.code == 2 and "job.conf:6: --metrics-listen: 'localhost:14469' is not a port" in run.err, run
    watched.write(metrics_listen=port)
    other = make_tree(tmp_path, {"other.conf": f"source = {tmp_path}\ntarget = s3://{bucket}/q\nmetrics-listen = 127.0.0.1:{port}\n".encode()}) / "other.conf"
    run = watched.s3once("watch", watched.file, other)
    assert run.code == 2 and "the jobs job and other have different --metrics-listen" in run.err, run
    (tmp_path / "more").mkdir()
    same = tmp_path / "more" / "job.conf"
    same.write_text(watched.file.read_text())
    run = watched.s3once("watch", watched.file, same)
    assert run.code == 2 and "two jobs are called job and have the same target" in run.err, run
    run = watched.s3once("run", "--metrics-listen", "1", watched.file)
    assert run.code == 2 and "unknown option '--metrics-listen'" in run.err, run
