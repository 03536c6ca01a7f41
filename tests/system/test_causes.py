"""Each row of the table at the end of docs/messages.md, provoked: the sentence begins with the cause and ends with the remedy."""

import contextlib
import os
import re
import socket
import sqlite3
import ssl
import subprocess
import threading
from pathlib import Path

import pytest

from tests.faults import faults
from tests.faults.http1 import Reply
from tests.servers.base import Server, free_ports
from tests.servers.nginx_cache import NginxCache
from tests.servers.nginx_count import nginx_head, nginx_paths, start_nginx
from tests.system.harness import S3, make_tree, wait_until
from tests.system.locking import LOST

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "messages.md"
HEAD = "| seen | the sentence |\n|---|---|\n"
# What stands for other words in a sentence of the table.
VARIABLE = re.compile(r"\b(?:BUCKET|COMMAND|ENDPOINT|FILE|HOST|KEY|LIST|N|NAME|PATH|PROXY|REASON|REQUEST|TIME)\b")


def table():
    """The table: observed error → sentence."""
    rows = PAGE.read_text().partition(HEAD)[2].splitlines()
    return dict(row.strip("| ").split(" | ") for row in rows)


def assert_said(run, seen, code=3):
    """The one error of this run is the sentence of this row, from its first word on."""
    (error,) = [line for line in run.err.splitlines() if line.startswith("s3once: error: ")]
    assert is_sentence(error, seen) and run.code == code, run


def is_sentence(error, seen):
    words = ".+".join(map(re.escape, VARIABLE.split(table()[seen].replace("`", ""))))
    return re.match(f"s3once: error: {words}(?: \\(.*\\))?$", error)


def test_each_row_is_provoked_here():
    here = Path(__file__).read_text()
    assert len(table()) > 2 and [seen for seen in table() if f'"{seen}"' not in here] == []


@pytest.fixture(autouse=True)
def two_attempts(s3once):
    s3once.environment["AWS_MAX_ATTEMPTS"] = "2"


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree", {"a": 10, "b": 20})


UPLOADED_BEFORE = {
    "no credentials on a host that has uploaded before": {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None},
    "an unknown access key on a host that has uploaded before": {"AWS_ACCESS_KEY_ID": "AKIASOMEBODYELSE"},
    "the bucket is gone on a host that has uploaded before": {},
}


@pytest.mark.parametrize("seen", UPLOADED_BEFORE)
def test_on_a_host_with_marks(s3once, s3, bucket, tree, seen):
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    if not UPLOADED_BEFORE[seen]:
        s3.empty(bucket)
        s3.client.delete_bucket(Bucket=bucket)
    try:
        assert_said(s3once("push", tree, f"s3://{bucket}/p", env=UPLOADED_BEFORE[seen]), seen)
    finally:
        if not UPLOADED_BEFORE[seen]:
            s3.client.create_bucket(Bucket=bucket)


SOON = ("--give-up-after", "1s")


def answered_by(status, body, **headers):
    """A fake on the wire: this reply to each PutObject."""

    @faults.named(f"a fake {status}")
    async def fault(x, rule):
        await x.body()
        x.fire(rule)
        await x.answer(Reply(status, headers, body.encode()))

    return fault


# As Ceph says it, without a message; as the page of a disk that is full; as nginx and squid say it.
REFUSED = {
    "the quota of a bucket or user at the server is used up": (403, "<Error><Code>QuotaExceeded</Code></Error>", 3),
    "the server's disk is full (507)": (507, "", 3),
    "a proxy takes no body of this size (413)": (413, "<html>413 Request Entity Too Large</html>", 1),
    "a firewall or proxy refuses the upload with a page of its own (403)": (403, "<html>blocked</html>", 3),
}


@pytest.mark.parametrize("seen", REFUSED)
def test_an_upload_is_refused(s3once, s3_wire, bucket, tree, seen):
    status, body, code = REFUSED[seen]
    (tree / "b").unlink() if code == 1 else None
    rule = s3_wire.add(answered_by(status, body), "PutObject", times=None)
    run = s3once("push", tree, f"s3://{bucket}/p", *SOON)
    assert_said(run, seen, code)
    assert rule.fired


def test_a_signature_with_the_host_that_was_signed(s3once, s3_wire, bucket, tree):
    """A fake: AWS returns the canonical request, and no server here does."""
    canonical = "<CanonicalRequest>PUT\n/\n\nhost:s3.inner:9000\nx-amz-date:1\n</CanonicalRequest>"
    body = f"<Error><Code>SignatureDoesNotMatch</Code><Message>…</Message>{canonical}</Error>"
    s3_wire.add(answered_by(403, body), times=None)
    assert_said(s3once("push", tree, f"s3://{bucket}/p", *SOON), "a proxy rewrites the header Host")


CONFIGURATION = """\
{head}
worker_processes 1;
events {{ worker_connections 100; }}
http {{
	access_log off;
	{paths}
	proxy_cache_path {folder}/cache keys_zone=cache:1m;
	server {{
		listen 127.0.0.1:{port};
		location / {{
			proxy_pass {upstream};
			proxy_http_version 1.1;
			{manner}
		}}
	}}
}}
"""


class NginxWrong(Server):
    """nginx before S3, with one line of configuration that breaks signatures."""

    def __init__(self, upstream, manner, folder):
        super().__init__(folder)
        self.upstream, self.manner = upstream, manner

    def launch(self):
        (port,) = free_ports(1)
        self.endpoint = f"http://127.0.0.1:{port}"
        names = {"head": nginx_head(self.folder), "paths": nginx_paths(self.folder), "folder": self.folder, "port": port, "manner": self.manner}
        start_nginx(self, CONFIGURATION.format(upstream=self.upstream.endpoint, **names))


@pytest.mark.real_s3
def test_a_proxy_that_rewrites_the_host(s3once, s3, bucket, tree, tmp_path):
    with NginxWrong(s3, "", tmp_path / "nginx") as proxy:
        run = s3once("push", tree, f"s3://{bucket}/p", *SOON, env={"AWS_ENDPOINT_URL_S3": proxy.endpoint})
        assert_said(run, "a proxy rewrites the header Host, and the server does not say so")


CACHE = "proxy_set_header Host $http_host; proxy_cache cache; proxy_cache_valid any 1h;"


@pytest.mark.real_s3
def test_a_cache(s3once, s3, bucket, tree, tmp_path):
    """nginx makes a GET of a HEAD, and leaves Range out, so that S3 refuses both; and it keeps the refusal."""
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    with NginxWrong(s3, CACHE, tmp_path / "nginx") as proxy:
        run = s3once("push", tree, f"s3://{bucket}/p", *SOON, env={"AWS_ENDPOINT_URL_S3": proxy.endpoint})
        assert_said(run, "a cache answers a signed request from what it kept")


def test_head_is_refused(s3once, s3_wire, bucket, tree):
    """A fake of a cache that turns HEAD into GET."""
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    rule = s3_wire.add(faults.answer(403, ""), "HeadObject", times=None)
    assert_said(s3once("push", tree, f"s3://{bucket}/p", *SOON), "a cache turns HEAD into GET")
    assert rule.fired


def test_head_is_refused_for_some_names(s3once, s3_wire, bucket, tmp_path):
    """A fake of a cache that treats pictures otherwise."""
    tree = make_tree(tmp_path / "tree", {"a.jpg": 10, "b": 20})
    refused = {"times": None, "where": lambda record: record.operation.key.endswith(".jpg")}
    rule = s3_wire.add(faults.answer(403, ""), "HeadObject", **refused)
    run = s3once("push", tree, f"s3://{bucket}/p", *SOON)
    assert_said(run, "HEAD is answered 403 for some file names only", 1)
    assert rule.fired


def without_length():
    """A fake on the wire: the reply to a HEAD as a proxy passes it on that compresses."""

    @faults.named("no length")
    async def fault(x, rule):
        reply = await x.forward()
        x.fire(rule)
        lines = reply.encode(x.proxy.close_each).split(b"\r\n")
        await x.write(b"\r\n".join(line for line in lines if not line.lower().startswith(b"content-length:")), reply.status)

    return fault


def test_head_without_a_length(s3once, s3_wire, bucket, tree):
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    rule = s3_wire.add(without_length(), "HeadObject", times=None)
    assert_said(s3once("push", tree, f"s3://{bucket}/p", *SOON), "HEAD is answered without Content-Length")
    assert rule.fired


def make_certificate(folder, name, not_before, not_after):
    """Makes a certificate of a new CA, valid between these two times (YYYYMMDDHHMMSSZ). Returns the CA's file, and the server's two."""
    folder.mkdir()
    key, request, made = folder / "key", folder / "request", folder / "made"
    made.mkdir()
    (folder / "index").write_text("")
    (folder / "names").write_text(f"subjectAltName={name}\n")
    (folder / "ca.cnf").write_text(
        f"[ca]\ndefault_ca=here\n[here]\ndatabase={folder}/index\nnew_certs_dir={made}\nrand_serial=yes\n"
        "default_md=sha256\npolicy=any\n[any]\ncommonName=optional\n"
    )
    new = ["-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    for argv in (
        ["req", "-x509", *new, "-days", "30", "-subj", "/CN=ca", "-keyout", folder / "ca.key", "-out", folder / "ca.pem"],
        ["req", *new, "-subj", "/CN=server", "-keyout", key, "-out", request],
        ["ca", "-batch", "-notext", "-config", folder / "ca.cnf", "-cert", folder / "ca.pem", "-keyfile", folder / "ca.key"]
        + ["-in", request, "-out", folder / "pem", "-startdate", not_before, "-enddate", not_after, "-extfile", folder / "names"],
    ):
        subprocess.run(["openssl", *argv], check=True, capture_output=True)
    return folder / "ca.pem", folder / "pem", key


@contextlib.contextmanager
def answering(serve):
    """Calls serve(connection) for each connection; gives its address."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError):
                        serve(connection)

        threading.Thread(target=accept, daemon=True).start()
        yield "127.0.0.1:%d" % listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


HERE, LONG_AGO, BEFORE, LATER, LATEST = "IP:127.0.0.1", "20010101000000Z", "20100101000000Z", "20980101000000Z", "20990101000000Z"
CERTIFICATES = {
    "the server's certificate has expired, or this host's clock is ahead": (HERE, LONG_AGO, BEFORE),
    "the server's certificate is not valid yet, or this host's clock is behind": (HERE, LATER, LATEST),
    "the server's certificate is for another name": ("DNS:portal.example", LONG_AGO, LATEST),
    "the server's certificate has an unknown issuer": (HERE, LONG_AGO, LATEST),
}


@pytest.mark.parametrize("seen", CERTIFICATES)
def test_a_certificate(s3once, tree, tmp_path, seen):
    ca, cert, key = make_certificate(tmp_path / "ca", *CERTIFICATES[seen])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    env = {} if "issuer" in seen else {"AWS_CA_BUNDLE": str(ca)}
    with answering(lambda connection: context.wrap_socket(connection, server_side=True).close()) as address:
        run = s3once("push", tree, "s3://bucket/p", *SOON, env={**env, "AWS_ENDPOINT_URL_S3": f"https://{address}"})
    assert_said(run, seen)


def refuse(connection):
    """A proxy that allows nothing."""
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def test_a_proxy_that_refuses(s3once, tree):
    with answering(refuse) as address:
        env = {"HTTPS_PROXY": f"http://{address}", "AWS_ENDPOINT_URL_S3": "https://s3.example.com"}
        assert_said(s3once("push", tree, "s3://bucket/p", *SOON, env=env), "the proxy refuses the host of S3")


def test_a_proxy_that_does_not_run(s3once, tree):
    with answering(refuse) as address:
        pass
    env = {"HTTPS_PROXY": f"http://{address}", "AWS_ENDPOINT_URL_S3": "https://s3.example.com"}
    assert_said(s3once("push", tree, "s3://bucket/p", *SOON, env=env), "the proxy does not run")


def test_another_tool_wrote_the_object(s3once, s3, bucket, tree):
    s3.client.put_object(Bucket=bucket, Key="wal/00000002.history", Body=b"of the other timeline")
    run = s3once("push", tree / "a", f"s3://{bucket}", "--as", "wal/00000002.history")
    assert_said(run, "an object under the key of `--as` that another tool wrote", 1)
    assert "00000002.history exists" in run.err, run


@pytest.mark.parametrize("s3", ["rgw"], indirect=True)
def test_a_404_that_was_kept(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "one", {"a b": 10})  # it is looked at for its blank
    with NginxCache(s3, "ignores the query") as cache:
        with pytest.raises(Exception, match="404"):
            S3(cache.info()).client.head_object(Bucket=bucket, Key="p/a b")
        run = s3once("push", tree, f"s3://{bucket}/p", env={"AWS_ENDPOINT_URL_S3": cache.endpoint})
    assert_said(run, "a cache keeps that an object is not there (404)", 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_folder_that_is_read_only(s3once, bucket, tree):
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    folder = s3once.state / "s3once"
    mount = f"mount --bind {folder} {folder} && mount -o remount,ro,bind {folder} && exec \"$@\""
    run = s3once("push", tree, f"s3://{bucket}/p", wrap=["unshare", "-m", "sh", "-c", mount, "sh"])
    assert_said(run, "the folder of the marks is read-only")


@pytest.mark.parametrize("limit", [20_000, 120_000], ids=["at the start", "in the middle"])
def test_a_limit_of_the_size_of_files(s3once, bucket, tree, limit):
    make_tree(tree, {f"f{number}": 10 for number in range(100)})
    assert s3once("push", tree / "a", f"s3://{bucket}/p").code == 0
    run = s3once("push", tree, f"s3://{bucket}/p", wrap=["prlimit", f"--fsize={limit}"])
    assert_said(run, "the limit of the size of a file is reached (`ulimit -f`)")


def test_the_row_of_a_lock_was_deleted(s3once, tmp_path):
    s3once.environment["S3ONCE_LOCKS"] = f"sqlite:{tmp_path}/locks.db"
    command = ("--", "sh", "-c", f"touch {tmp_path}/held; exec sleep 60")
    holder = s3once.start("lock", "run", "--lease", "15s", "k", *command)
    wait_until((tmp_path / "held").exists, 60, "the lock")
    with sqlite3.connect(tmp_path / "locks.db", timeout=30) as database:
        assert database.execute("DELETE FROM items WHERE pk LIKE '%k'").rowcount == 1
    database.close()
    assert s3once("lock", "acquire", "--lease", "60s", "k").code == 0
    run = holder.wait(60)
    assert run.code == LOST and table()["the row of a lock was deleted, and another process took the lock"] in run.err, run


@pytest.mark.parametrize("secret", ["{}\n", "'{}'", '"{}"', " {}"], ids=["line break", "quotes", "double quotes", "blank"])
def test_a_secret_that_was_copied_wrongly(s3once, s3, bucket, tree, secret):
    run = s3once("push", tree, f"s3://{bucket}/p", env={"AWS_SECRET_ACCESS_KEY": secret.format(s3.secret_key)})
    assert_said(run, "the secret access key ends with a line break, or is in quotes")
    assert s3.secret_key not in run.err, run


def test_an_access_key_of_windows(s3once, s3, bucket, tree):
    run = s3once("push", tree, f"s3://{bucket}/p", env={"AWS_ACCESS_KEY_ID": f"{s3.access_key}\r"})
    assert_said(run, "the access key id ends with a carriage return")
