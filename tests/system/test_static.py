"""The program that packaging/static makes: one file that needs nothing of the system, for both processors.

It is built from Debian's archive, which takes minutes and the network, by a step of ./check. arm64 is run by qemu.
"""

import functools
import gzip
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.faults import faults
from tests.system.harness import BUILD, REPOSITORY, make_tree

pytestmark = pytest.mark.static
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")
LIMIT = 15 << 20  # bytes
PROCESSORS = {"amd64": "x86_64", "arm64": "aarch64"}
EMULATOR = {"amd64": "/usr/bin/qemu-x86_64-static", "arm64": "/usr/bin/qemu-aarch64-static"}
BUNDLES = {
    "debian": "etc/ssl/certs/ca-certificates.crt",  # distroless images have it, too
    "fedora": "etc/pki/tls/certs/ca-bundle.crt",
    "fedora-43": "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "opensuse": "etc/ssl/ca-bundle.pem",
    "alpine": "etc/ssl/cert.pem",
}


def build(processor, folder, source=REPOSITORY, **how):
    folder.mkdir(parents=True, exist_ok=True)
    argv = ["flock", folder, source / "packaging" / "static", "--arch", processor, folder]
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=3000, **how)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder / "s3once"


@functools.cache
def built(processor):
    """Downloads and builds are kept beside the other builds, for the next time and for other workers."""
    return build(processor, BUILD.parent / "static" / processor)


@pytest.fixture(params=[each if PROCESSORS[each] == platform.machine() else pytest.param(each, marks=pytest.mark.full) for each in PROCESSORS])
def static(request):
    """The program of that processor, and what runs it here."""
    if PROCESSORS[request.param] == platform.machine():
        return built(request.param), []
    if not (shutil.which(f"{PROCESSORS[request.param]}-linux-gnu-gcc") and os.path.exists(EMULATOR[request.param])):
        pytest.skip(f"the compiler for {request.param} or qemu-user-static is missing")
    return built(request.param), [EMULATOR[request.param]]


@pytest.fixture
def native(static):
    if static[1]:
        pytest.skip("what is asked has nothing to do with the processor")
    return static[0]


def test_it_needs_nothing(static):
    program, _ = static
    told = subprocess.run(["readelf", "-ldW", program], capture_output=True, text=True, check=True).stdout
    assert "INTERP" not in told and "(NEEDED)" not in told
    assert program.stat().st_size <= LIMIT


def test_its_libraries_are_those_it_was_built_with(static):
    program, emulator = static
    told = subprocess.run([*emulator, program, "version", "--json"], capture_output=True, text=True, check=True).stdout
    libraries = json.loads(told)["libraries"].values()
    assert libraries and all(each["built"] in (None, each["running"]) for each in libraries), told


# --- where it comes from


def test_provenance(static):
    """It names this program, the commit that the program names itself, and what was linked, by the sums of what was fetched."""
    program, emulator = static
    about = json.loads(Path(f"{program}.provenance.json").read_text())
    assert (about["_type"], about["predicateType"]) == ("https://in-toto.io/Statement/v1", "https://slsa.dev/provenance/v1")
    assert about["subject"] == [{"name": "s3once", "digest": {"sha256": hashlib.sha256(program.read_bytes()).hexdigest()}}]
    said = json.loads(subprocess.run([*emulator, program, "version", "--json"], capture_output=True, text=True, check=True).stdout)
    source, *others = about["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert source["digest"]["gitCommit"].startswith(said["commit"])
    (archives,) = program.parent.glob("*/apt/archives")
    fetched = {each["digest"]["sha256"] for each in others if "digest" in each}
    assert fetched == {hashlib.sha256(path.read_bytes()).hexdigest() for path in archives.iterdir() if path.suffix in (".deb", ".dsc")}
    names = {each["uri"].split("@")[0].removeprefix("pkg:deb/debian/") for each in others}
    assert names >= {"curl", "libxml2", "libssl-dev", "libsqlite3-dev"} and any(name.startswith("libc6-dev") for name in names)


@pytest.mark.full
def test_two_builds_give_the_same_bytes(native, tmp_path):
    """From the same packages in other folders, with nothing that the first build has made."""
    source, folder = tmp_path / "another" / "folder" / "source", tmp_path / "out"
    shutil.copytree(REPOSITORY, source, symlinks=True, ignore=shutil.ignore_patterns("build", "build-*", "__pycache__"))
    (apt,) = native.parent.glob("*/apt")
    shutil.copytree(apt, folder / apt.relative_to(native.parent))
    environment = {**os.environ, "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8", "CCACHE_DISABLE": "1"}
    again = build(apt.parent.name, folder, source, env=environment, umask=0o077)
    assert again.read_bytes() == native.read_bytes()
    assert Path(f"{again}.provenance.json").read_text() == Path(f"{native}.provenance.json").read_text()


# --- roots that have little


class Root:
    """A folder that the program takes for the whole system, as another user than root."""

    def __init__(self, path, program, emulator, s3):
        self.path, self.emulator, self.s3, self.mounted = path, emulator, s3, []
        for name in ("bin", "data", "state"):
            (path / name).mkdir(parents=True)
        for each in [program, *emulator]:
            shutil.copy(each, path / "bin")
        shutil.chown(path / "state", 65532)

    def trust(self, bundle):
        (self.path / bundle).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.s3.ca, self.path / bundle)
        (self.path / bundle).chmod(0o644)

    def run(self, *args, endpoint):
        environment = {
            "AWS_ACCESS_KEY_ID": self.s3.access_key,
            "AWS_SECRET_ACCESS_KEY": self.s3.secret_key,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
            "STATE_DIRECTORY": "/state",
            "PATH": "/bin",
        }
        argv = [*self.mounted, "/usr/sbin/chroot", "--userspec=65532:65532", self.path, *("/bin/" + os.path.basename(each) for each in self.emulator), *args]
        return subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)


@needs_root
@pytest.mark.parametrize("system", BUNDLES)
def test_certificates(native, s3, bucket, tmp_path, system):
    """Each system has them in another file."""
    root = Root(tmp_path / "root", native, [], s3)
    root.trust(BUNDLES[system])
    make_tree(root.path / "data", {"a.log": 1000})
    done = root.run("/bin/s3once", "push", "/data", f"s3://{bucket}/p", endpoint=s3.tls_endpoint)
    assert done.returncode == 0, done
    s3.assert_same(root.path / "data", bucket, "p")


def push_killed_resumed_verified(root, s3_wire, endpoint, bucket):
    make_tree(root.path / "data", {"small.log": 1000, "folder/large.log": 22 << 20})
    push = ("/bin/s3once", "push", "--part-size", "5MiB", "--concurrency", "1", "/data", f"s3://{bucket}/p")
    s3_wire.add(faults.kill_before, "UploadPart", nth=3)
    assert root.run(*push, endpoint=endpoint).returncode == -signal.SIGKILL
    again = root.run(*push, endpoint=endpoint)
    assert again.returncode == 0, again
    root.s3.assert_same(root.path / "data", bucket, "p")
    sent = Counter(each.operation.part for each in s3_wire.history if each.kind == "UploadPart" and each.took_effect)
    assert sent == {number: 1 for number in range(1, 6)}
    checked = root.run("/bin/s3once", "verify", "--download", f"s3://{bucket}/p", endpoint=endpoint)
    assert checked.returncode == 0 and "2 objects are as" in checked.stderr, checked


@needs_root
def test_a_root_with_nothing(static, s3, s3_wire, bucket, tmp_path):
    """As in a container from scratch. Killed in the middle of a file, it resumes with the parts that are there."""
    root = Root(tmp_path / "root", *static, s3)
    push_killed_resumed_verified(root, s3_wire, s3_wire.endpoint, bucket)


def files_of(package):
    return [Path(line) for line in subprocess.run(["dpkg", "-L", package], capture_output=True, text=True, check=True).stdout.splitlines()]


@needs_root
def test_a_root_like_that_of_alpine(native, s3, s3_wire, bucket, tmp_path):
    """A stand-in for Alpine, made of Debian's packages of musl and busybox: musl's loader and no glibc, busybox as the only tool, and
    names of hosts by /etc/hosts without an nsswitch.conf."""
    root = Root(tmp_path / "root", native, [], s3)
    for name in ("lib", "var/tmp", "proc", "dev"):
        (root.path / name).mkdir(parents=True)
    (root.path / "var/tmp").chmod(0o1777)
    mounts = 'mount --rbind /proc "$0/proc" && mount --rbind /dev "$0/dev" && exec "$@"'
    root.mounted = ["/usr/bin/unshare", "--mount", "/bin/sh", "-c", mounts, root.path]
    (loader,) = [path for path in files_of("musl") if path.name.startswith("ld-musl-") and path.suffix == ".1"]
    shutil.copy(loader, root.path / "lib" / loader.name)
    shutil.copy("/bin/busybox", root.path / "bin" / "busybox")
    for name in ("sh", "cat", "sleep"):
        (root.path / "bin" / name).symlink_to("busybox")
    shutil.copy("/usr/bin/env", root.path / "bin" / "of-glibc")
    make_tree(root.path / "etc", {"alpine-release": b"3.22.0\n", "hosts": b"127.0.0.1 storage.example\n", "passwd": b"root:x:0:0:root:/root:/bin/sh\n"})
    refused = root.run("/bin/sh", "-c", "/bin/of-glibc", endpoint="")
    assert refused.returncode == 127, "a root with glibc is no stand-in for Alpine"
    push_killed_resumed_verified(root, s3_wire, s3_wire.endpoint, bucket)
    named = root.run("/bin/s3once", "push", "/data", f"s3://{bucket}/p", endpoint=s3_wire.endpoint.replace("127.0.0.1", "storage.example"))
    assert "NoSuchBucket" in named.stderr, named  # the server was found, and takes its name for that of a bucket
    script = f"s3once push s3://{bucket}/piped -- cat /etc/alpine-release"
    piped = root.run("/bin/sh", "-c", script, endpoint=s3_wire.endpoint)
    assert piped.returncode == 0 and s3.get(bucket, "piped") == b"3.22.0\n", piped


@needs_root
def test_without_certificates_it_says_so(native, s3, bucket, tmp_path):
    root = Root(tmp_path / "root", native, [], s3)
    make_tree(root.path / "data", {"a": 1})
    done = root.run("/bin/s3once", "push", "/data", f"s3://{bucket}/p", endpoint=s3.tls_endpoint)
    assert done.returncode not in (0, 1) and "--ca-bundle" in done.stderr, done


# --- the image


def unpack(archive, folder):
    folder.mkdir()
    subprocess.run(["tar", "-xp", "--numeric-owner", "-C", folder], input=archive, check=True)


@pytest.fixture
def image(static, tmp_path):
    """The image of the program: its configuration, the folder with its only layer, and its size."""
    program, emulator = static
    path = tmp_path / "image.tar"
    subprocess.run([REPOSITORY / "packaging" / "image", program, path], check=True, capture_output=True)
    unpack(path.read_bytes(), tmp_path / "layout")

    def blob(about):
        content = (tmp_path / "layout/blobs" / about["digest"].replace(":", "/")).read_bytes()
        assert len(content) == about["size"] and hashlib.sha256(content).hexdigest() == about["digest"].split(":")[1]
        return content

    index = json.loads((tmp_path / "layout/index.json").read_text())
    manifest = json.loads(blob(index["manifests"][0]))
    config, (layer,) = json.loads(blob(manifest["config"])), manifest["layers"]
    tree = gzip.decompress(blob(layer))
    assert config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(tree).hexdigest()]
    unpack(tree, tmp_path / "root")
    return path, config, tmp_path / "root", emulator


def test_the_same_program_makes_the_same_image(static, image, tmp_path):
    path, config, root, _ = image
    again = tmp_path / "elsewhere.tar"
    environment = {"PATH": os.environ["PATH"], "TZ": "Asia/Tokyo"}
    subprocess.run([REPOSITORY / "packaging" / "image", static[0], again], check=True, capture_output=True, cwd="/", env=environment, umask=0o077)
    assert path.read_bytes() == again.read_bytes() and len(path.read_bytes()) <= LIMIT
    assert sum(each.stat().st_size for each in root.rglob("*") if each.is_file()) <= LIMIT
    inside = json.loads((root / "usr/share/doc/s3once/sbom.json").read_text())
    assert {"libcurl", "openssl", "sqlite"} <= {each["name"] for each in inside["components"]}
    assert (root / "usr/share/doc/s3once/provenance.json").read_bytes() == Path(f"{static[0]}.provenance.json").read_bytes()
    assert config["config"]["User"] == "65532:65532"
    labels = {name.rsplit(".", 1)[1]: value for name, value in config["config"]["Labels"].items()}
    assert labels["licenses"] == "BSD-2-Clause" and re.fullmatch(r"[0-9a-f]{40}", labels["revision"]), labels


def test_a_program_that_needs_libraries_makes_no_image(tmp_path):
    done = subprocess.run([REPOSITORY / "packaging" / "image", "/bin/sh", tmp_path / "image.tar"], capture_output=True, text=True)
    assert done.returncode == 1 and "PROGRAM needs libraries" in done.stderr and not (tmp_path / "image.tar").exists()


def test_an_image_is_of_the_program_that_is_told(native, tmp_path):
    """The provenance of another build says nothing."""
    program = tmp_path / "s3once"
    shutil.copy(native, program)
    make = [REPOSITORY / "packaging" / "image", program, tmp_path / "image.tar"]
    missing = subprocess.run(make, capture_output=True, text=True)
    assert missing.returncode == 1 and "s3once.provenance.json is missing" in missing.stderr, missing
    shutil.copy(f"{native}.provenance.json", tmp_path)
    with open(program, "ab") as file:
        file.write(b"x")
    other = subprocess.run(make, capture_output=True, text=True)
    assert other.returncode == 1 and "is of another program" in other.stderr and not (tmp_path / "image.tar").exists(), other


@needs_root
def test_the_image_runs_with_a_read_only_root(image, s3, bucket, tmp_path):
    """As an engine runs it: with its own user and environment, a volume as the only writable folder, and the job in variables."""
    _, config, root, emulator = image
    (tmp_path / "state").mkdir(mode=0o700)
    shutil.chown(tmp_path / "state", 65532, 65532)
    make_tree(tmp_path / "data", {"small.log": 1000, "folder/large.log": 12 << 20, "left.tmp": 1})
    for each in ["data", "emulator"]:
        (root / each).mkdir()
    for each in emulator:
        shutil.copy(each, root / "emulator")
    shutil.copy(s3.ca, root / "etc/ssl/certs/ca-certificates.crt")
    (root / "etc/ssl/certs/ca-certificates.crt").chmod(0o644)
    environment = dict(each.split("=", 1) for each in config["config"]["Env"]) | {
        "AWS_ACCESS_KEY_ID": s3.access_key,
        "AWS_SECRET_ACCESS_KEY": s3.secret_key,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": s3.tls_endpoint,
        "AWS_EC2_METADATA_DISABLED": "true",
        "S3ONCE_SOURCE": "/data",
        "S3ONCE_TARGET": f"s3://{bucket}/p",
        "S3ONCE_EXCLUDE": "*.tmp",
        "S3ONCE_PART_SIZE": "5MiB",
    }
    (volume,) = config["config"]["Volumes"]
    mounts = """set -e; cd "$1"; mount --bind . .; mount -o remount,bind,ro .; cd "$1"
        mount --bind "$2" ."$4"; mount --bind "$3" data; mount -o remount,bind,ro data; shift 4
        exec /usr/sbin/chroot "$@"
        """
    mounted = ["/usr/bin/unshare", "--mount", "/bin/sh", "-c", mounts, "sh", root, tmp_path / "state", tmp_path / "data", volume]
    emulated = ["/emulator/" + os.path.basename(each) for each in emulator]

    def run(*args, **how):
        argv = [*mounted, "--userspec", config["config"]["User"], ".", *emulated, *config["config"]["Entrypoint"], *args]
        return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=600, **how)

    first = run("run", "pod")
    assert first.returncode == 0 and "all 2 files" in first.stdout and "warning" not in first.stderr, first
    assert set(s3.objects(bucket)) == {"p/small.log", "p/folder/large.log"}
    again = run("run", "pod")
    assert again.returncode == 0 and "already done 2" in again.stdout, again
    refused = run("push", "--metrics", "/data/s3once.prom", "/data", f"s3://{bucket}/p")
    assert refused.returncode == 1 and "Read-only file system" in refused.stderr, refused
    del environment["S3ONCE_EXCLUDE"]
    piped = run("push", "-", f"s3://{bucket}/piped", input="from another container")
    assert piped.returncode == 0 and "piped" in s3.objects(bucket), piped
