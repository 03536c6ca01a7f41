"""Shared by all servers: ports, processes that die with us, readiness, TLS."""

import http.client
import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from pathlib import Path


class ServerError(Exception):
    """The server did not start or did not get ready; the text carries the end of its logs."""


def dying_with_parent(argv, death=signal.SIGKILL):
    """The command that runs argv and gets this signal when the thread that started it ends. A preexec_fn could say the
    same, but it makes Popen fork all memory of pytest for each start."""
    return ["/usr/bin/setpriv", "--pdeathsig", death.name, "--", *argv]


def free_ports(count):
    """Ports nobody listens on, below the range that outgoing connections take theirs from."""
    held = []
    while len(held) < count:
        sock = socket.socket()
        try:
            sock.bind(("127.0.0.1", random.randrange(10000, 32000)))
            held.append(sock)
        except OSError:
            sock.close()
    ports = [sock.getsockname()[1] for sock in held]
    for sock in held:
        sock.close()
    return ports


def program(name):
    """The path of a program, also where sbin is not on the PATH of a plain user."""
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/bin:/usr/sbin:/usr/local/sbin")
    if not path:
        raise ServerError(f"{name} is not installed: run tests/setup/install demo test")
    return path


def npm_package(name):
    """The folder of an npm package that tests/setup/install put into the cache, None where it is not there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "s3once-tests"
    packages = (Path(__file__).parent.parent / "setup" / "packages").read_text().split()
    for package in packages:
        if package.startswith(f"npm:{name}@"):
            folder = cache / package[4:].replace("/", "+") / "node_modules" / name
            return folder if folder.is_dir() else None
    return None


def answers(url):
    """True once anything speaks HTTP at url, whatever it says. Another protocol's server may hold the port for a moment."""
    tls = urllib.request.HTTPSHandler(context=ssl._create_unverified_context())
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), tls)
    try:
        opener.open(url, timeout=2).close()
    except urllib.error.HTTPError:
        return True
    except (OSError, http.client.HTTPException):
        return False
    return True


class Server:
    """start() and stop() of processes in one folder. Subclasses implement launch() and say when they are ready.

    folder: where data, configuration and logs go; by default a temporary one that stop() removes.
    endpoint: http URL. tls_endpoint: https URL or None; ca: the certificate to trust for it.
    """

    access_key = "AKIAS3ONCEEXAMPLE"
    secret_key = "exampleSecretKeyForTests/0123456789+abcd"
    region = "us-east-1"
    stop_signal = signal.SIGTERM
    pem = None  # a certificate and its key, for all servers of this process

    def __init__(self, folder=None):
        self.temporary = folder is None
        self.folder = Path(tempfile.mkdtemp(prefix="s3once-server-") if folder is None else folder).resolve()
        self.processes = {}
        self.endpoint = self.tls_endpoint = self.ca = None
        self.log_read_to = 0

    def launch(self):
        """Chooses ports, starts the processes and returns when the server answers; else ServerError."""
        raise NotImplementedError

    def start(self):
        for attempt in range(3):
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                self.launch()
                return self
            except ServerError as error:  # a port may have been taken between choosing and binding
                self.stop_processes()
                failure = error
                if not any(said in str(error) for said in ("in use", "EADDRINUSE", "bind")):
                    break
        if self.temporary:
            shutil.rmtree(self.folder, ignore_errors=True)
        raise failure

    def stop(self):
        self.stop_processes()
        if self.temporary:
            shutil.rmtree(self.folder, ignore_errors=True)

    __enter__ = start

    def __exit__(self, *_):
        self.stop()

    def info(self):
        """The facts that a client needs, as plain data."""
        return {
            "endpoint": self.endpoint,
            "tls_endpoint": self.tls_endpoint,
            "ca": self.ca and str(self.ca),
            "access_key": self.access_key,
            "secret_key": self.secret_key,
            "region": self.region,
        }

    def spawn(self, name, argv, death=signal.SIGKILL, **env):
        """Starts a process whose output goes to folder/NAME.log and that ends with us."""
        with open(self.folder / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(
                dying_with_parent([str(arg) for arg in argv], death),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={**os.environ, **env},
                start_new_session=True,
            )

    def run(self, argv, seconds=60):
        """Runs a command to its end; ServerError with its output if it fails."""
        try:
            done = subprocess.run(
                [str(arg) for arg in argv],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired as late:
            raise ServerError(f"{argv[0]} took more than {seconds} s: {late.output!r}") from late
        if done.returncode:
            raise ServerError(f"{argv[0]} failed: {done.stdout.decode(errors='replace')[-2000:]}")
        return done.stdout

    def wait_until(self, ready, seconds=60):
        """Polls ready() until it is true; ServerError when a process ended or the time is over."""
        deadline = time.monotonic() + seconds
        while not ready():
            ended = [name for name, process in self.processes.items() if process.poll() is not None]
            if ended or time.monotonic() > deadline:
                what = f"{', '.join(ended)} ended" if ended else f"not ready after {seconds} s"
                raise ServerError(f"{type(self).__name__}: {what}\n{self.log_tails()}")
            time.sleep(0.02)

    def log_tails(self):
        logs = sorted(self.folder.rglob("*.log"))
        return "\n".join(f"--- {log.name}\n{log.read_text(errors='replace')[-2000:]}" for log in logs)

    def new_log_lines(self, log, seconds=20):
        """The lines of a request log since the last call. Complete: a request of our own is the end to wait for."""
        mark = f"/?end={uuid.uuid4().hex}"
        answers(self.endpoint + mark)
        deadline = time.monotonic() + seconds
        while True:
            with open(log, "rb") as file:
                file.seek(self.log_read_to)
                text = file.read()
            if mark.encode() in text and text.endswith(b"\n"):
                break
            if time.monotonic() > deadline:
                raise ServerError(f"{log} does not show our own request after {seconds} s")
            time.sleep(0.01)
        self.log_read_to += len(text)
        return [line for line in text.decode(errors="replace").splitlines() if mark not in line]

    def stop_processes(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(self.stop_signal)
        deadline = time.monotonic() + 5
        for process in self.processes.values():
            try:
                process.wait(max(0.01, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.clear()

    def make_certificate(self):
        """A self-signed certificate for 127.0.0.1, localhost and *.s3.localhost: sets ca, returns (cert, key)."""
        cert, key = self.folder / "cert.pem", self.folder / "key.pem"
        if not Server.pem:
            names = "DNS:localhost,DNS:s3.localhost,DNS:*.s3.localhost,IP:127.0.0.1"
            self.run(
                ["openssl", "req", "-x509", "-nodes", "-days", "30", "-subj", "/CN=localhost"]
                + ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-addext", f"subjectAltName={names}"]
                + ["-keyout", key, "-out", cert]
            )
            Server.pem = cert.read_bytes(), key.read_bytes()
        for path, text in zip((cert, key), Server.pem):
            path.write_bytes(text)
        self.ca = cert
        return cert, key
