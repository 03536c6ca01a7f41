"""The programs that are compared: how each is told to upload a tree to the sink.

All upload with as many requests at once as s3once does by default (curl: one after the other), and none asks for what
the sink cannot answer. What they do for it differs: curl signs nothing and computes no checksum; the others sign and send
checksums; only s3once claims each file first, proves it by the reply, and marks it done.
"""

import json
import os
import shutil
import ssl
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path

BUCKET = "bench"
SYSTEM_CA = "/etc/ssl/certs/ca-certificates.crt"
CONCURRENCY = "64"


@dataclass
class Setting:
    """The target of a run: sink for S3, store for DynamoDB (through a counting proxy). transport, for both: "http" or "tls"."""

    sink: object
    store: object
    transport: str
    folder: Path

    def over(self, server):
        return server.endpoint if self.transport == "http" else server.tls_endpoint

    @property
    def endpoint(self):
        return self.over(self.sink)

    @property
    def ca(self):
        """The servers' certificates and, where there are any, all that this host trusts: reading those costs, too."""
        bundle = self.folder / "ca.pem"
        system = ssl.get_default_verify_paths().openssl_cafile
        known = next((path for path in (Path(SYSTEM_CA), Path(system)) if path.is_file()), None)
        trusted = ([known] if known else []) + [Path(server.ca) for server in (self.sink, self.store) if server.ca]
        bundle.write_text("\n".join(file.read_text() for file in trusted))
        return bundle

    def environment(self):
        """The environment of every client, without our own: proxies and other certificates would change the result."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "home"),
            "AWS_ACCESS_KEY_ID": self.sink.access_key,
            "AWS_SECRET_ACCESS_KEY": self.sink.secret_key,
            "AWS_REGION": self.sink.region,
            "AWS_DEFAULT_REGION": self.sink.region,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CA_BUNDLE": str(self.ca),
        }


class S3once:
    """marks: "dynamodb" (a table of its own for each run) or "sqlite" (a new file for each run)."""

    def __init__(self, program, marks):
        self.program, self.marks = program, marks
        self.name = f"s3once, {'DynamoDB' if marks == 'dynamodb' else 'SQLite'} marks"

    def prepare(self, setting, tree):
        """Prepares the part of a run that is not measured. Returns (argv, environment)."""
        environment = setting.environment()
        if self.marks == "dynamodb":
            environment["AWS_ENDPOINT_URL_DYNAMODB"] = setting.over(setting.store)
            where = f"dynamodb:bench-{uuid.uuid4().hex}"
        else:
            folder = setting.folder / "marks" / uuid.uuid4().hex
            folder.mkdir(parents=True, mode=0o700)
            where = f"sqlite:{folder / 'marks.db'}"
        # What doctor finds out is kept with the marks, so that no HEAD precedes an upload. It ends with 1: the sink keeps nothing.
        subprocess.run([self.program, "init", "--marks", where], env=environment, check=True, stdout=subprocess.DEVNULL)
        where = ["--marks", where, "--endpoint-url", setting.endpoint, f"s3://{BUCKET}"]
        subprocess.run([self.program, "doctor", *where], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return [self.program, "push", tree, *where], environment


class Rclone:
    """Without the HEAD after each upload, since the sink keeps nothing that a HEAD could find."""

    name = "rclone copy"

    def prepare(self, setting, tree):
        environment = setting.environment()
        environment.update(
            RCLONE_CONFIG_SINK_TYPE="s3",
            RCLONE_CONFIG_SINK_PROVIDER="Other",
            RCLONE_CONFIG_SINK_ENV_AUTH="true",
            RCLONE_CONFIG_SINK_ENDPOINT=setting.endpoint,
            RCLONE_CONFIG_SINK_REGION=setting.sink.region,
            RCLONE_S3_NO_HEAD="true",
            RCLONE_S3_NO_CHECK_BUCKET="true",
        )
        del environment["AWS_CA_BUNDLE"]  # the SDK in it would refuse to start with rclone's own HTTP client
        argv = ["rclone", "copy", "--config", setting.folder / "rclone.conf", "--ca-cert", setting.ca]
        argv += ["--transfers", CONCURRENCY, "--checkers", CONCURRENCY, "--s3-upload-cutoff", "16Mi"]
        return argv + ["--s3-chunk-size", "16Mi", tree, f"sink:{BUCKET}"], environment


class Awscli:
    """With its own defaults: 10 requests at once; more do not help it."""

    name = "aws s3 cp"

    def prepare(self, setting, tree):
        argv = ["aws", "--endpoint-url", setting.endpoint, "s3", "cp", "--recursive", "--only-show-errors"]
        return argv + [tree, f"s3://{BUCKET}"], setting.environment()


class S5cmd:
    """workers: how many requests at once, None: as many as by default, 256."""

    name = "s5cmd cp"

    def __init__(self, workers=CONCURRENCY):
        self.workers = workers

    def prepare(self, setting, tree):
        argv = ["s5cmd", "--endpoint-url", setting.endpoint] + (["--numworkers", self.workers] if self.workers else [])
        return argv + ["cp", f"{tree}/", f"s3://{BUCKET}/"], setting.environment()


class Curl:
    """The floor: one process, one connection, a PUT a file, and nothing else."""

    name = "curl -T"

    def prepare(self, setting, tree):
        config = setting.folder / "curl.conf"
        with open(config, "w") as writes:
            for path in sorted(path for path in tree.rglob("*") if path.is_file()):
                url = f"{setting.endpoint}/{BUCKET}/{path.relative_to(tree)}"
                writes.write(f"upload-file = {json.dumps(str(path))}\nurl = {json.dumps(url)}\noutput = /dev/null\n")
        argv = ["curl", "--silent", "--show-error", "--fail", "--cacert", setting.ca, "--config", config]
        return argv, setting.environment()


def others():
    """Name → client, of those that are on PATH."""
    known = {"curl": Curl, "rclone": Rclone, "s5cmd": S5cmd, "aws": Awscli}
    return {name: client() for name, client in known.items() if shutil.which(name)}
