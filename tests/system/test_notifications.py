"""--ping-url, --on-success, --on-failure and --metrics: others are told how a run went, and whatever they do, the run is none
the worse for it. The receivers are fakes, which note what they are told."""

import json
import os
import signal
import socket
import ssl
import subprocess
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.system.harness import make_tree, wait_until
from tests.system.pushing import summary
from tests.system.test_metrics import read
from tests.system.watching import Watched


@dataclass
class Told:
    method: str
    path: str
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.told.append(Told(self.command, self.path, dict(self.headers), body))
        if self.server.hangs:
            self.server.ended.wait()
            return
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_HEAD = do_GET

    def log_message(self, *_):
        pass


class Receiver(ThreadingHTTPServer):
    """A fake of healthchecks.io, or of a collector: what it was told, and what it answers."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.told, self.statuses, self.hangs, self.scheme = [], [], False, "http"
        self.ended = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"{self.scheme}://127.0.0.1:{self.server_port}/ping/uuid"

    @property
    def paths(self):
        return [(each.method, each.path.removeprefix("/ping/uuid")) for each in self.told]

    def speak_tls(self, folder):
        key, self.ca = folder / "tls.key", folder / "tls.crt"
        make = ["openssl", "req", "-x509", "-nodes", "-days", "30", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
        names = ["-subj", "/CN=x", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", self.ca]
        subprocess.run([*make, *names], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.ca, key)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.scheme = "https"


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.ended.set()
    receiver.shutdown()
    receiver.server_close()


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree", {"a": 10, "b": 20})


def change(tree):
    """A file that was uploaded has changed, which a run refuses."""
    (tree / "a").write_bytes(b"something else")


def test_a_night_that_succeeds(s3once, bucket, receiver, tree):
    run = s3once("push", tree, f"s3://{bucket}/p", "--ping-url", receiver.url, "--json")
    assert run.code == 0 and "warning" not in run.err, run
    assert receiver.paths == [("GET", "/start"), ("POST", "")]
    told, printed = receiver.told[1].json, summary(run)
    assert told.pop("failures") == [] and told.pop("failures_left_out") == 0
    assert (told.pop("bucket"), told.pop("prefix")) == (bucket, "p")
    assert {**told, "time": 0} == {**printed, "time": 0}, "the summary of --json"


def test_failed_files_are_told_by_name_and_reason(s3once, bucket, receiver, tree):
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    change(tree)
    run = s3once("push", tree, f"s3://{bucket}", "--ping-url", receiver.url + "/", "--json")
    assert run.code == 1 and receiver.paths == [("GET", "/start"), ("POST", "/fail")], run
    told = receiver.told[1].json
    assert told["exit"] == 1 and told["refused"] == 1
    (failure,) = told["failures"]
    (printed,) = (event for event in run.events if event["event"] == "refused")
    assert {**failure, "time": 0} == {**printed, "time": 0} and failure["path"] == str(tree / "a") and "changed" in failure["text"]


def test_very_many_failures_are_counted(s3once, bucket, receiver, tmp_path):
    tree = make_tree(tmp_path / "tree", {f"{i:03}-{'x' * 200}": 1 for i in range(400)})
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    for path in tree.iterdir():
        path.write_bytes(b"other")
    assert s3once("push", tree, f"s3://{bucket}", "--ping-url", receiver.url).code == 1
    told = receiver.told[1].json
    assert len(receiver.told[1].body) < 100_000, "what healthchecks.io keeps"
    assert told["failures_left_out"] > 0 and len(told["failures"]) + told["failures_left_out"] == 400


@pytest.mark.parametrize(
    "options, target, code, ending, command",
    [
        ((), "{bucket}", 0, "", "success"),
        (("--key", "{unknown}"), "{bucket}", 2, "/fail", "failure"),
        ((), "no-such-bucket-here", 3, "/fail", "failure"),
        (("--max-transfer", "1"), "{bucket}", 6, "/log", None),
    ],
)
def test_exit_status_decides_the_notification(s3once, bucket, receiver, tmp_path, options, target, code, ending, command):
    tree = make_tree(tmp_path / "tree", {f"{i}": 10_000 for i in range(200)})
    say = [f"--on-{word}=printf {word} > '{tmp_path}/said'" for word in ("success", "failure")]
    target = f"s3://{target.format(bucket=bucket)}"
    run = s3once("push", tree, target, *options, *say, "--ping-url", receiver.url, "--concurrency", "1")
    assert run.code == code, run
    started = [] if code == 2 else [("GET", "/start")]
    assert receiver.paths == [*started, ("POST", ending)]
    told = receiver.told[-1].json
    assert told["exit"] == code
    assert code not in (2, 3) or [each["event"] for each in told["failures"]] == ["fatal"]
    assert code != 2 or "unknown" in told["failures"][0]["text"]
    said = tmp_path / "said"
    assert (said.read_text() if said.exists() else None) == command


def start_slowly(s3once, bucket, tmp_path, *options):
    tree = make_tree(tmp_path / "tree", {f"{i}": 60_000 for i in range(50)})
    return s3once.start("push", tree, f"s3://{bucket}", "--bwlimit", "20K", "--grace", "0", *options)


def test_a_run_that_is_stopped_is_neither(s3once, bucket, receiver, tmp_path):
    running = start_slowly(s3once, bucket, tmp_path, "--ping-url", receiver.url)
    wait_until(lambda: receiver.told, what="the first ping")
    running.kill(signal.SIGTERM)
    run = running.wait()
    assert run.code == 143 and receiver.paths == [("GET", "/start"), ("POST", "/log")], run
    assert receiver.told[1].json["exit"] == 143


def test_a_run_that_is_killed_never_says_success(s3once, bucket, receiver, tmp_path):
    running = start_slowly(s3once, bucket, tmp_path, "--ping-url", receiver.url, "--on-success", f"touch '{tmp_path}/said'")
    wait_until(lambda: receiver.told, what="the first ping")
    running.kill(signal.SIGKILL)
    running.wait()
    assert receiver.paths == [("GET", "/start")] and not (tmp_path / "said").exists()


def test_a_receiver_that_hangs_does_not_hold_the_run(s3once, bucket, receiver, tree):
    receiver.hangs = True
    run = s3once("push", tree, f"s3://{bucket}", "--ping-url", receiver.url, "--metrics", f"{receiver.url}/metrics")
    assert run.code == 0, run
    assert "warning: --ping-url: nobody was told that the run began: no answer within 10 seconds" in run.err
    assert "warning: --ping-url: nobody was told how the run ended: no answer within 10 seconds" in run.err
    assert "warning: --metrics: the metrics of the run are lost: no answer within 10 seconds" in run.err
    assert sorted(receiver.paths) == [("GET", "/start"), ("POST", ""), ("POST", "/metrics")]


def test_a_second_signal_waits_for_no_receiver(s3once, bucket, receiver, tmp_path):
    """The run is over at once, or three seconds later: whatever hangs, its exit status tells of the signal."""
    receiver.hangs = True
    running = start_slowly(s3once, bucket, tmp_path, "--ping-url", receiver.url)
    wait_until(lambda: receiver.told, what="the first ping")
    running.kill(signal.SIGTERM)
    wait_until(lambda: "stopping" in running.output()[1], what="the word that it stops")
    running.kill(signal.SIGTERM)
    run = running.wait()
    assert run.code == 143 and "no answer within" not in run.err, run


def test_a_receiver_that_is_not_there(s3once, bucket, tree):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        run = s3once("push", tree, f"s3://{bucket}", "--ping-url", url, "--metrics", url, "--json")
    assert run.code == 0 and summary(run)["exit"] == 0, run
    assert run.err.count("cannot connect to 127.0.0.1") == 3, "start, end and metrics"
    assert "warning: --metrics: the metrics of the run are lost" in run.err


@pytest.mark.parametrize("statuses, is_told", [([503, 200, 200], True), ([200, 503, 503], False), ([200, 404, 404], False), ([200, 301, 301], False)])
def test_a_receiver_that_refuses(s3once, bucket, receiver, tree, statuses, is_told):
    receiver.statuses = list(statuses)
    run = s3once("push", tree, f"s3://{bucket}", "--ping-url", receiver.url)
    assert run.code == 0 and len(receiver.told) == 3, run
    assert is_told == ("warning" not in run.err)
    assert is_told or f"the server answered with HTTP status {statuses[-1]}" in run.err


def test_certificates(s3once, bucket, receiver, tree, tmp_path):
    """Those that the system trusts, or the file of --ca-bundle or AWS_CA_BUNDLE."""
    receiver.speak_tls(tmp_path)
    command = ("push", tree, f"s3://{bucket}", "--ping-url", receiver.url)
    run = s3once(*command)
    assert run.code == 0 and "the certificate of 127.0.0.1" in run.err and not receiver.told, run
    run = s3once(*command, "--ca-bundle", receiver.ca)
    assert run.code == 0 and "warning" not in run.err and receiver.paths == [("GET", "/start"), ("POST", "")], run
    receiver.told.clear()
    s3once.environment["AWS_CA_BUNDLE"] = str(receiver.ca)
    run = s3once(*command)
    assert run.code == 0 and "warning" not in run.err and receiver.paths == [("GET", "/start"), ("POST", "")], run


def test_a_scheme_in_capitals(s3once, bucket, receiver, tree):
    url = receiver.url.replace("http://", "HTTP://")
    run = s3once("push", tree, f"s3://{bucket}", "--ping-url", url, "--metrics", url)
    assert run.code == 0 and "warning" not in run.err and len(receiver.told) == 3, run


def test_settings_of_the_receiver_stay_behind_the_path(s3once, bucket, receiver, tree):
    assert s3once("push", tree, f"s3://{bucket}", "--ping-url", f"{receiver.url}?create=1").code == 0
    assert [each.path for each in receiver.told] == ["/ping/uuid/start?create=1", "/ping/uuid?create=1"]


def test_a_producer_that_fails_is_told(s3once, bucket, receiver):
    command = ("push", "--ping-url", receiver.url, f"s3://{bucket}/dump", "--", "sh", "-c")
    run = s3once(*command, "echo some; exit 3")
    assert run.code == 1 and receiver.paths == [("GET", "/start"), ("POST", "/fail")], run
    assert receiver.told[1].json["failures"], receiver.told[1].json
    assert s3once(*command, "echo all").code == 0 and receiver.paths[2:] == [("GET", "/start"), ("POST", "")]


def test_a_dry_run_tells_nobody(s3once, bucket, receiver, tree, tmp_path):
    options = ("--ping-url", receiver.url, "--metrics", receiver.url, "--on-success", f"touch '{tmp_path}/said'")
    assert s3once("push", "-n", tree, f"s3://{bucket}", *options).code == 0
    assert not receiver.told and not (tmp_path / "said").exists()


NO_URLS = ["healthchecks.example/uuid", "ftp://x/", "http:///path", "https://host/a b", "https://host/#part"]


@pytest.mark.parametrize("option, url", [*(("ping-url", url) for url in NO_URLS), *(("metrics", url) for url in NO_URLS[2:])])
def test_a_url_that_is_none(s3once, tree, option, url):
    run = s3once("push", tree, "s3://bucket", f"--{option}", url)
    assert run.code == 2 and f"--{option}: this is not a URL such as https://HOST/PATH" in run.err and url not in run.err, run


# --- commands


def job(tmp_path, bucket, tree, **values):
    values = {"source": tree, "target": f"s3://{bucket}/p", **values}
    (tmp_path / "night.conf").write_text("".join(f"{name.replace('_', '-')} = {value}\n" for name, value in values.items()))
    return tmp_path / "night.conf"


def test_a_command_gets_json_and_variables(s3once, bucket, tree, tmp_path):
    """The job's name may be anything: it is never part of the command."""
    out = tmp_path / "out"
    command = f'cat > "{out}.json"; env > "{out}.env"; echo $S3ONCE_COUNT_REFUSED refused in $S3ONCE_JOB'
    file = job(tmp_path, bucket, tree, on_success=f"exec > '{out}.success'", on_failure=command)
    named = file.rename(tmp_path / "night $(touch x).conf")
    assert s3once("run", named).code == 0
    assert (tmp_path / "out.success").exists() and not (tmp_path / "out.json").exists()
    change(tree)
    run = s3once("run", named, "--json", env={"S3ONCE_STATUS": "of before", "S3ONCE_COUNT_GONE": "1"})
    assert run.code == 1 and run.events and "1 refused in night $(touch x)" in run.err, run
    told = json.loads((tmp_path / "out.json").read_text())
    variables = dict(line.split("=", 1) for line in (tmp_path / "out.env").read_text().splitlines() if "=" in line)
    assert variables["S3ONCE_STATUS"] == "1" and variables["S3ONCE_JOB"] == told["job"] == "night $(touch x)"
    counts = {name.removeprefix("S3ONCE_COUNT_").lower(): int(value) for name, value in variables.items() if "_COUNT_" in name}
    assert len(counts) > 20 and counts == {name: summary(run)[name] for name in counts}
    assert told["failures"][0]["path"] == str(tree / "a")
    assert not (tmp_path / "x").exists()


def test_a_command_that_fails_changes_nothing(s3once, bucket, tree, tmp_path):
    for command, words in [("exit 7", "the command ended with exit status 7"), ("kill -9 $$", "the command was ended by signal 9")]:
        run = s3once("push", tree, f"s3://{bucket}", "--on-success", command)
        assert run.code == 0 and f"warning: --on-success: {words}" in run.err, run


def hanging(tmp_path):
    """Its child does not die of SIGTERM to the shell alone, and holds the pipe open as long as it lives."""
    os.mkfifo(tmp_path / "alive")
    return f"exec 3<> '{tmp_path}/alive'; touch '{tmp_path}/begun'; sleep 1000 & sleep 1000"


def is_alive(tmp_path):
    """Whether a process has the pipe open."""
    try:
        os.close(os.open(tmp_path / "alive", os.O_WRONLY | os.O_NONBLOCK))
        return True
    except OSError:
        return False


def test_a_signal_ends_a_command(s3once, bucket, tree, tmp_path):
    running = s3once.start("push", tree, f"s3://{bucket}", "--on-success", hanging(tmp_path))
    wait_until((tmp_path / "begun").exists, what="the command")
    running.kill(signal.SIGTERM)
    run = running.wait()
    assert run.code == 0 and "warning: --on-success: the command was ended: a signal came" in run.err, run
    wait_until(lambda: not is_alive(tmp_path), what="the end of its children")


@pytest.mark.full
def test_a_command_has_a_minute(s3once, bucket, tree, tmp_path):
    run = s3once("push", tree, f"s3://{bucket}", "--on-success", hanging(tmp_path))
    assert run.code == 0 and "warning: --on-success: the command was ended: it took too long" in run.err, run
    wait_until(lambda: not is_alive(tmp_path), what="the end of its children")


# --- OTLP


def points(told):
    """{(name, label of its own): value} as of a file of metrics, and the attributes that all have."""
    (resource,) = told["resourceMetrics"]
    (scope,) = resource["scopeMetrics"]
    found, common = {}, set()
    for metric in scope["metrics"]:
        assert metric["description"] and int(metric["gauge"]["dataPoints"][0]["timeUnixNano"]) > 1.6e18
        for point in metric["gauge"]["dataPoints"]:
            labels = {each["key"]: each["value"]["stringValue"] for each in point["attributes"]}
            common.add((labels.pop("exported_job", None), labels.pop("target")))
            found[metric["name"].removeprefix("s3once_"), *labels.values()] = point["asDouble"]
    about = {each["key"]: each["value"]["stringValue"] for each in resource["resource"]["attributes"]}
    assert about["service.name"] == "s3once" and about["host.name"] == socket.gethostname().split(".")[0]
    (labels,) = common
    return labels, found


def test_metrics_by_otlp_are_those_of_the_file(s3once, bucket, receiver, tree, tmp_path):
    file = job(tmp_path, bucket, tree, metrics=receiver.url)
    strange = file.rename(tmp_path / 'a"b\\c.conf')
    assert s3once("run", strange).code == 0
    (told,) = receiver.told
    assert (told.method, told.path, told.headers["Content-Type"]) == ("POST", "/ping/uuid", "application/json")
    assert s3once("run", strange, "--metrics", tmp_path / "s3once.prom").code == 0 and len(receiver.told) == 1
    labels, written = read(tmp_path / "s3once.prom")
    assert points(told.json)[0] == labels and {name for name, *_ in points(told.json)[1]} == {name for name, *_ in written}
    change(tree)
    assert s3once("run", strange).code == 1
    labels, found = points(receiver.told[1].json)
    assert labels[0] == 'a"b\\c' and found["last_run_exit_status",] == 1 and found["last_run_files", "refused"] == 1


def test_metrics_by_otlp_alone(s3once, bucket, receiver, tree):
    assert s3once("push", tree, f"s3://{bucket}", "--metrics", receiver.url).code == 0
    labels, found = points(receiver.told[0].json)
    assert labels == (None, f"s3://{bucket}") and found["last_run_files", "uploaded"] == 2


# --- watch


def test_a_service_tells_of_its_full_scans(s3once, bucket, receiver, tmp_path):
    said = tmp_path / "said"
    watched = Watched(s3once, bucket, tmp_path)
    watched.write(f"ping-url = {receiver.url}", f"metrics = {receiver.url}/metrics", f"on-success = echo done >> {said}")
    watched.start()
    assert receiver.paths == [("POST", ""), ("POST", "/metrics")] and said.read_text() == "done\n"
    watched.rename_in("a", 10, age=60)
    watched.manager.pass_with(files=1)
    assert len(receiver.told) == 2 and said.read_text() == "done\n", "a pass over some folders is not told"
    watched.running.kill(signal.SIGTERM)
    assert watched.running.wait().code == 0
    assert receiver.paths[2:] == [("POST", ""), ("POST", "/metrics")] and said.read_text() == "done\n" * 2, "the drain"
