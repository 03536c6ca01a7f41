"""The sources of credentials: the built program with the environment, the files and the recorded replies of each case. All of
its connections go to one fake, which plays those replies, and is the DynamoDB table for which the credentials are used."""

import hashlib
import json
import re
import socket
import ssl
import subprocess
import threading
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.faults.http1 import Headers, Request
from tests.faults.preloads import preload_library, preloaded
from tests.faults.sigv4 import AUTHORIZATION, signature
from tests.suites.suite import Suite, read_table
from tests.system.fakes_keys import Fake
from tests.system.harness import REPOSITORY, Program

ROWS, NOT_OURS = read_table("credentials")
TABLE = "http://table.test"
THREAD = threading.local()  # of one connection


def same_url(url):
    parts = urlsplit(url)
    return parts.scheme, parts.netloc, parts.path or "/", sorted(parse_qsl(parts.query))


class Player(Fake):
    """Plays the answers of a case in their order. A request that comes again before the next one is answered as it was."""

    def __init__(self, certificate):
        super().__init__(type("Clock", (), {"clock": 0}))
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(certificate)

    def begin(self, row):
        self.row, self.recorded = row, json.loads(row["requests"])
        self.at, self.used, self.strange = 0, [], []

    def __enter__(self):
        super().__enter__()
        server, tls = self.server, self.tls
        process = server.process_request_thread

        def process_either(connection, address):
            try:
                if connection.recv(1, socket.MSG_PEEK) == b"\x16":
                    connection = tls.wrap_socket(connection, server_side=True)
                    THREAD.scheme = "https"
            except OSError:
                return server.shutdown_request(connection)
            return process(connection, address)

        server.process_request_thread = process_either
        return self

    def reply(self, method, path, headers, body):
        if headers["host"] == urlsplit(TABLE).netloc:
            return self.use(method, path, headers, body)
        asked = dict(parse_qsl(body.decode(errors="replace")))
        scheme = getattr(THREAD, "scheme", "http")
        for at in (self.at, self.at - 1):
            if not 0 <= at < len(self.recorded):
                continue
            wanted_method, url, parameters, signer, status, answer = self.recorded[at]
            fits = (method, same_url(f"{scheme}://{headers['host']}{path}")) == (wanted_method, same_url(url))
            credential = headers.get("authorization", "").partition("Credential=")[2].partition("/")[0]
            if fits and parameters.items() <= asked.items() and (not signer or credential == signer):
                self.at = at + 1
                return status, answer
        self.strange.append(f"{method} {scheme}://{headers['host']}{path} {body[:200]}")
        return 404, ""

    def use(self, method, path, headers, body):
        """Notes whose credentials have signed, and says no to anything."""
        found = AUTHORIZATION.match(headers.get("authorization", ""))
        access_key, _, scope = found[1].partition("/")
        request = Request(method, path, Headers(headers))
        by_secret = signature(request, self.row["secret"], found[2].split(";"), scope, hashlib.sha256(body).hexdigest())
        self.used.append((access_key, by_secret == found[3], headers.get("x-amz-security-token", "")))
        return 400, {"__type": "com.amazonaws.dynamodb.v20120810#AccessDeniedException", "message": "not you"}



def reason_of(row, run):
    """Why this one differs on purpose."""
    if row["case"] == "environment_variables_blank" and "malformed" in run.err:
        return "Keys that are blank are refused with a sentence, and not skipped."
    if row["suite"] == "Profile provider" and "| base64" in row["files"]:
        return "No shell runs what `credential_process` says, as in botocore."
    if row["suite"] == "Sessions of aws login" and "export-credentials --profile signin" in run.err:
        return "The AWS CLI hands these credentials out by way of `credential_process`, and the error says so."
    return ""


@pytest.fixture
def player(tmp_path):
    """Its certificate is that of all hosts which the cases name."""
    hosts = {urlsplit(request[1]).hostname for row in ROWS for request in json.loads(row["requests"]) if request[1].startswith("https")}
    names = ",".join(f"DNS:{host}" for host in sorted(hosts))
    path = tmp_path / "certificate.pem"
    argv = ["openssl", "req", "-x509", "-nodes", "-days", "30", "-subj", "/CN=player", "-newkey", "ec", "-pkeyopt"]
    argv += ["ec_paramgen_curve:prime256v1", "-addext", f"subjectAltName={names}", "-keyout", path, "-out", f"{path}.only"]
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    with open(path, "a", encoding="ascii") as file:
        file.write(open(f"{path}.only", encoding="ascii").read())
    with Player(path) as player:
        player.certificate = path
        yield player


def play(player, library, folder, row):
    """The run, and whether the credentials were those that were expected, or none were used where none are."""
    root = folder / "root"
    for name, text in json.loads(row["files"]).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("{root}", str(root)))
    (root / "home").mkdir(parents=True, exist_ok=True)
    env = {name: value.replace("{root}", str(root)) for name, value in json.loads(row["env"]).items()}
    program = Program(folder)
    for name in [name for name in program.environment if name.startswith("AWS_")]:
        del program.environment[name]
    program.environment |= {"HOME": str(root / "home"), "AWS_CA_BUNDLE": str(player.certificate), "AWS_ENDPOINT_URL_DYNAMODB": TABLE}
    if "AWS_REGION" not in env and "region" not in row["files"]:
        env["AWS_REGION"] = "us-east-1"
    port = player.server.server_port
    player.begin(row)
    words = ["--profile", row["profile"]] if row["profile"] else []
    run = program("init", "--marks", "dynamodb:marks", *words, env={**env, **preloaded(program, library, S3ONCE_TEST_LED_TO=port)})
    if not row["access_key"]:
        return run, run.code == 3 and not player.used
    played = not player.strange and player.at == len(player.recorded)
    return run, played and set(player.used) == {(row["access_key"], True, row["token"])}


@pytest.mark.parametrize("name", sorted({row["suite"] for row in ROWS}))
def test_credentials(tmp_path, player, name):
    suite, library = Suite(name, NOT_OURS[name]), preload_library()
    for number, row in enumerate(row for row in ROWS if row["suite"] == name):
        folder = tmp_path / str(number)
        folder.mkdir()
        run, agrees = play(player, library, folder, row)
        suite.count(agrees, reason_of(row, run), (row["case"], run, player.used, player.strange, player.at))
    suite.compare_with_page()


def test_programs_that_the_page_names(tmp_path, player):
    """The profiles of docs/permissions.md, with fakes of AWS's two programs that check their words."""
    page = (REPOSITORY / "docs" / "permissions.md").read_text()
    profiles = re.findall(r"```ini\n(\[profile s3once\]\ncredential_process = (\S+) ([^\n]*)\n)```", page)
    assert [Path(program).name for _, program, _ in profiles] == ["aws", "aws_signing_helper"]
    library = preload_library()
    for profile, program, words in profiles:
        folder, fake = tmp_path / Path(program).name, tmp_path / f"fake-{Path(program).name}"
        folder.mkdir()
        printed = {"Version": 1, "AccessKeyId": "ASIAPAGE", "SecretAccessKey": "a-secret", "SessionToken": "a-token"}
        printed["Expiration"] = "2099-01-01T00:00:00Z"
        fake.write_text(f"#!/bin/sh\n[ \"$*\" = '{words}' ] && echo '{json.dumps(printed)}'\n")
        fake.chmod(0o755)
        row = {"env": "{}", "files": json.dumps({"home/.aws/config": profile.replace(program, str(fake))}), "requests": "[]"}
        row |= {"profile": "s3once", "access_key": "ASIAPAGE", "secret": "a-secret", "token": "a-token"}
        run, agrees = play(player, library, folder, row)
        assert agrees, run
