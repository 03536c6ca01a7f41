"""packaging/kubernetes: the manifests as linters and the program see them, and the logs of a simulated kubelet, of which each line is
in S3 exactly once."""

import gzip
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
import uuid
from collections import Counter
from datetime import datetime, timezone
from types import SimpleNamespace

import pytest
import yaml

from tests.servers.base import free_ports, npm_package
from tests.system.harness import REPOSITORY, wait_until
from tests.system.test_watch_metrics import ask
from tests.system.watching import Manager

FOLDER = REPOSITORY / "packaging" / "kubernetes"


# --- the manifests


def kustomized(folder):
    """The objects that kubectl apply -k makes. Without kubectl, those of the files, with the names of ConfigMaps as they are."""
    if shutil.which("kubectl"):
        run = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True, timeout=60)
        assert run.returncode == 0, run.stderr
        return list(yaml.safe_load_all(run.stdout))
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    return [yaml.safe_load((folder / name).read_text()) for name in kustomization["resources"]]


def pod_spec(objects):
    (spec,) = (each["spec"] for each in objects if each["kind"] in ("DaemonSet", "CronJob"))
    return spec.get("jobTemplate", {"spec": spec})["spec"]["template"]["spec"]


def job_of(path):
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return dict(line.split(" = ", 1) for line in lines)


def seconds(duration):
    return int(re.fullmatch(r"(\d+)s", duration)[1])


def lint(objects):
    """Like kubeconform -strict: returns the faults found by the schemas of Kubernetes."""
    package = npm_package("kubernetes-models")
    if not package:
        pytest.skip("tests/setup/install has not installed the npm package kubernetes-models")
    argv = ["node", REPOSITORY / "tests" / "system" / "manifests.js", package]
    run = subprocess.run(argv, input=json.dumps(objects), capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


@pytest.mark.parametrize("folder", [FOLDER, FOLDER / "backup"], ids=["logs", "backup"])
def test_the_manifests_are_right_by_the_schemas(folder):
    objects = kustomized(folder)
    assert len(objects) >= 2 and lint(objects) == []
    (workload,) = (each for each in objects if each["kind"] in ("DaemonSet", "CronJob"))
    pod_spec(objects)["containers"][0]["imagePullPolcy"] = "Always"
    del workload["spec"]["selector" if workload["kind"] == "DaemonSet" else "schedule"]
    faults = lint(objects)
    assert len(faults) == 2 and "must have required property" in faults[0] and faults[1].endswith("/imagePullPolcy: no such field"), faults


@pytest.mark.parametrize("folder", [FOLDER, FOLDER / "backup"], ids=["logs", "backup"])
def test_objects_have_the_recommended_labels(folder):
    objects = [each for each in kustomized(folder) if each["kind"] != "ConfigMap"]
    (image,) = yaml.safe_load((folder / "kustomization.yaml").read_text())["images"]
    labels = [each["metadata"]["labels"] for each in objects]
    specs = [each["spec"] for each in objects if each["kind"] in ("DaemonSet", "CronJob")]
    labels += [spec.get("jobTemplate", {"spec": spec})["spec"]["template"]["metadata"]["labels"] for spec in specs]
    assert {each["app.kubernetes.io/part-of"] for each in labels} == {"s3once"}
    versions = [each["app.kubernetes.io/version"] for each in labels if "app.kubernetes.io/name" in each]
    assert len(versions) == 3 and set(versions) == {image["newTag"]}


@pytest.mark.parametrize("folder, user", [(FOLDER, 0), (FOLDER / "backup", 65532)], ids=["logs", "backup"])
def test_the_manifests_fit_the_image_and_the_job(s3once, folder, user):
    objects = kustomized(folder)
    spec = pod_spec(objects)
    (container,) = spec["containers"]
    command, path = container["args"]
    mounts = {each["mountPath"]: each for each in container["volumeMounts"]}
    volumes = {each["name"]: each for each in spec["volumes"]}
    file = folder / os.path.basename(path)
    job = job_of(file)
    # The program reads the job, without another word.
    run = s3once("config", file)
    assert run.code == 0 and run.err == "", run
    # What the job names is mounted, and read-only; state is where the image keeps it.
    assert mounts[os.path.dirname(path)]["readOnly"] and mounts[job["source"]]["readOnly"]
    image = (REPOSITORY / "packaging" / "image").read_text()
    (state,) = re.findall(r'^STATE = "(.*)"$', image, re.M)
    assert not mounts[f"/{state}"].get("readOnly") and len(mounts) == 3
    assert f"USER = 65532\n" in image
    security = {**spec.get("securityContext", {}), **container["securityContext"]}
    assert security["runAsUser"] == user and bool(security.get("runAsNonRoot")) == bool(user)
    assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"] and security["capabilities"] == {"drop": ["ALL"]}
    assert seconds(job.get("drain", "0s")) + seconds(job["grace"]) < spec["terminationGracePeriodSeconds"]
    assert not spec["enableServiceLinks"], "the variables of a Service s3once would be taken for options"
    (account,) = (each for each in objects if each["kind"] == "ServiceAccount")
    assert account["metadata"]["name"] == spec["serviceAccountName"] and "eks.amazonaws.com/role-arn" in account["metadata"]["annotations"]
    page = (REPOSITORY / "docs" / "kubernetes.md").read_text()
    if command == "run":
        assert job["marks"].startswith("dynamodb:") and "emptyDir" in volumes["state"]
        return
    assert command == "watch"
    assert volumes["logs"]["hostPath"]["path"] == mounts[job["source"]]["mountPath"] == "/var/log/pods"
    assert volumes["state"]["hostPath"]["path"] == f"/{state}"
    (port,) = (each["containerPort"] for each in container["ports"])
    assert job["metrics-listen"] == f"0.0.0.0:{port}"
    assert [container[probe]["httpGet"] for probe in ("livenessProbe", "readinessProbe")] == [
        {"path": path, "port": "metrics"} for path in ("/-/healthy", "/-/ready")
    ]
    assert {each["metadata"].get("namespace", each["metadata"]["name"]) for each in objects} <= {"s3once"} or not shutil.which("kubectl")
    assert job["exclude"] == "/s3once_*/", "its own log would wake it up for ever"
    assert job["key"] in page


# --- a simulated kubelet


class Kubelet:
    """The actions of kubelet and the runtime in /var/log/pods, after pkg/kubelet/logs/container_log_manager.go: the live log is renamed, and
    the previous one is compressed at the next rotation, into a file with that moment's time. Its clock runs apart from this host's."""

    MAX_FILES = 5

    def __init__(self, root):
        self.root, self.lines, self.count = root, Counter(), itertools.count()
        self.now = time.time() - 86400 * 30
        root.mkdir()

    def tick(self):
        self.now += 7
        return self.now

    def start(self, namespace, pod, container):
        folder = self.root / f"{namespace}_{pod}_{uuid.UUID(int=random.getrandbits(128))}" / container
        folder.mkdir(parents=True)
        found = SimpleNamespace(folder=folder, restarts=0, log=None, namespace=namespace, pod=pod, name=container)
        self.open(found)
        return found

    def path(self, container):
        return container.folder / f"{container.restarts}.log"

    def open(self, container):
        """The runtime holds the log open for writing, and lets go of the one that was renamed."""
        if container.log:
            container.log.close()
        container.log = os.fdopen(os.open(self.path(container), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640), "ab", buffering=0)

    def write(self, container, n):
        stamp = datetime.fromtimestamp(self.tick(), timezone.utc)
        for _ in range(n):
            line = f"{stamp:%Y-%m-%dT%H:%M:%S.%f}000Z stdout F {container.name} says {next(self.count)}\n".encode()
            self.lines[line] += 1
            container.log.write(line)
        os.utime(container.log.fileno(), (self.now, self.now))

    def rotate(self, container):
        rotated = sorted(container.folder.glob(f"{container.restarts}.log.*"))
        for path in rotated[: max(0, len(rotated) - (self.MAX_FILES - 2))]:
            path.unlink()
        for path in container.folder.glob(f"{container.restarts}.log.*"):
            if path.suffix != ".gz":
                self.compress(path)
        stamp = datetime.fromtimestamp(self.tick(), timezone.utc)
        self.path(container).rename(f"{self.path(container)}.{stamp:%Y%m%d-%H%M%S}")
        self.open(container)

    def compress(self, path):
        temporary = path.with_name(path.name + ".tmp")
        temporary.write_bytes(gzip.compress(path.read_bytes()))
        os.utime(temporary, (self.tick(), self.now))
        temporary.rename(path.with_name(path.name + ".gz"))
        path.unlink()

    def restart(self, container):
        """Only the last container that has ended keeps its logs."""
        container.restarts += 1
        for path in container.folder.glob(f"{container.restarts - 2}.log*"):
            path.unlink()
        self.open(container)

    def delete(self, container):
        container.log.close()
        shutil.rmtree(container.folder.parent)


class Node:
    """A node with the DaemonSet's pod on it, whose job is that of the manifests."""

    def __init__(self, s3once, s3, bucket, folder):
        self.s3once, self.s3, self.bucket, self.got = s3once, s3, bucket, {}
        self.kubelet = Kubelet(folder / "pods")
        (self.port,) = free_ports(1)
        self.job = folder / "pods.conf"
        text = (FOLDER / "pods.conf").read_text()
        for before, after in {
            "source = /var/log/pods": f"source = {self.kubelet.root}",
            "s3://my-logs/pods": f"s3://{bucket}/pods",
            "region = eu-central-1\n": "",
            "min-age = 10s": "min-age = 200ms",
            "full-scan = 1min": "full-scan = 2s",
            "0.0.0.0:14469": f"127.0.0.1:{self.port}",
        }.items():
            assert text.count(before) == 1, before
            text = text.replace(before, after)
        self.job.write_text(text)
        self.manager = Manager(folder / "notify")

    def start(self):
        """As root without any capability, as in the manifest."""
        self.manager.forget()
        self.running = self.s3once.start("watch", self.job, env={"NOTIFY_SOCKET": str(self.manager.path)}, unprivileged=True)
        self.manager.next_line("READY=1")

    def stored(self):
        """Each line of all objects, and how often it is there."""
        for key in self.s3.objects(self.bucket, "pods/").keys() - self.got.keys():
            body = self.s3.get(self.bucket, key)
            self.got[key] = gzip.decompress(body) if key.endswith(".gz") else body
        return Counter(line for key, text in self.got.items() if not key.endswith("-bucket") for line in text.splitlines(keepends=True))

    def wait_stored(self):
        wait_until(lambda: not self.kubelet.lines - self.stored(), 120, "all lines")


@pytest.fixture
def node(s3once, s3, bucket, tmp_path):
    return Node(s3once, s3, bucket, tmp_path)


def test_each_line_of_the_pods_once(node):
    """Names, rotation with compression, restarts, deletion of pods; an uploader that is killed, and away for some rotations. Nothing waits
    for it but what kubelet would lose: before a log goes, its lines are in S3."""
    random.seed(14469)
    kubelet = node.kubelet
    pods = [("default", "web-0", "app"), ("default", "web-0", "sidecar"), ("kube-system", "coredns-5d78c9869d-x2x7b", "coredns"), ("shop", "db.1", "postgres")]
    containers = [kubelet.start(*names) for names in pods]
    itself = kubelet.start("s3once", "s3once-4kq2n", "s3once")
    for container in containers:
        kubelet.write(container, 5)
    node.start()
    node.wait_stored()
    for turn in range(24):
        if turn in (8, 16):
            node.running.popen.kill()
            node.running.popen.wait()
        for container in containers:
            kubelet.write(container, random.randrange(4))
        some = random.choice(containers)
        if turn not in (8, 9, 16, 17):
            node.wait_stored()
        kubelet.rotate(some)
        if turn in (9, 17):
            node.start()
        elif turn % 5 == 0 and turn != 16:
            node.wait_stored()
            kubelet.restart(random.choice(containers))
        elif turn % 7 == 6:
            node.wait_stored()
            kubelet.delete(containers[0])
            containers[0] = kubelet.start("default", "web-0", "app")
    node.wait_stored()
    kubelet.write(itself, 3)
    for line in [line for line in kubelet.lines if b" s3once says " in line]:
        del kubelet.lines[line]
    for path in ("/-/healthy", "/-/ready"):
        assert ask(node.port, path)[0].status == 200, path
    for container in containers:
        kubelet.write(container, 1)
    node.running.popen.send_signal(signal.SIGTERM)
    run = node.running.wait()
    assert run.code == 0, run
    assert node.stored() == kubelet.lines
    names = {tuple(key.split("/")[1:4]) for key in node.got if not key.endswith("-bucket")}
    assert names == set(pods)
    assert all(re.fullmatch(r"pods/[^/]+/[^/]+/[^/]+/\d{4}/\d\d/\d\d/\d+-\d{8}T\d{6}Z-[0-9a-f]{8}\.log(~\d+)?(\.gz)?", key) for key in node.got if not key.endswith("-bucket"))


def test_a_file_in_no_folder_of_a_pod(s3once, s3, bucket, tmp_path):
    """It fails, and says why; the others are uploaded."""
    kubelet = Kubelet(tmp_path / "pods")
    kubelet.write(kubelet.start("default", "web-0", "app"), 1)
    (kubelet.root / "0.log").write_bytes(b"a line\n")
    run = s3once("push", "--key", "{namespace}/{pod}/{container}-{name}", kubelet.root, f"s3://{bucket}")
    assert run.code == 1 and "is not in a folder NAMESPACE_POD_UID/CONTAINER as the kubelet makes them, which {namespace} of --key needs" in run.err, run
    assert list(s3.objects(bucket)) == ["default/web-0/app-0.log"]
