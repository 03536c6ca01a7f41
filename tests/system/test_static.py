"""The program that packaging/static makes: one file that needs nothing of the system, for both processors.

It is built from Debian's archive, which takes minutes and the network: in ./check --full. arm64 is run by qemu.
"""

import functools
import gzip
import hashlib
import json
import os
import platform
import shutil
import subprocess

import pytest

from tests.system.harness import BUILD, REPOSITORY, make_tree

pytestmark = pytest.mark.full
LIMIT = 15 << 20  # bytes
EMULATOR = {"amd64": [], "arm64": ["/usr/bin/qemu-aarch64-static"]}
BUNDLES = ["etc/ssl/certs/ca-certificates.crt", "etc/pki/tls/certs/ca-bundle.crt", "etc/ssl/ca-bundle.pem"]


@functools.cache
def built(processor):
    """What was fetched and built is kept beside the other builds, for the next time and for other workers."""
    folder = BUILD.parent / "static" / processor
    folder.mkdir(parents=True, exist_ok=True)
    argv = ["flock", folder, REPOSITORY / "packaging" / "static", "--arch", processor, folder]
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=3000)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder / "s3once"


@pytest.fixture(params=["amd64", "arm64"])
def static(request):
    """The program of that processor, and what runs it here."""
    if request.param == "arm64" and not (shutil.which("aarch64-linux-gnu-gcc") and os.path.exists(EMULATOR["arm64"][0])):
        pytest.skip("gcc-aarch64-linux-gnu or qemu-user-static is missing")
    if request.param == "amd64" and platform.machine() != "x86_64":
        pytest.skip("this is no amd64")
    return built(request.param), EMULATOR[request.param]


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


@pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")
@pytest.mark.parametrize("bundle", BUNDLES)
def test_push_and_verify_in_an_empty_root(static, s3, bucket, tmp_path, bundle):
    """As in a container that was made from nothing, as another user than root. The certificate is where that system has it."""
    program, emulator = static
    root = tmp_path / "root"
    for name in ("bin", "data", "state", "tmp", os.path.dirname(bundle)):
        (root / name).mkdir(parents=True, exist_ok=True)
    for each in [program, *emulator]:
        shutil.copy(each, root / "bin")
    shutil.copy(s3.ca, root / bundle)
    (root / bundle).chmod(0o644)
    shutil.chown(root / "state", 65532)
    make_tree(root / "data", {"small.log": 1000, "folder/large.log": 12 << 20})
    environment = {
        "AWS_ACCESS_KEY_ID": s3.access_key,
        "AWS_SECRET_ACCESS_KEY": s3.secret_key,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": s3.tls_endpoint,
        "AWS_EC2_METADATA_DISABLED": "true",
        "STATE_DIRECTORY": "/state",
    }
    argv = ["/usr/sbin/chroot", "--userspec=65532:65532", root, *("/bin/" + os.path.basename(each) for each in emulator), "/bin/s3once"]

    def run(*args):
        return subprocess.run([*argv, *args], env=environment, capture_output=True, text=True, timeout=600)

    first = run("push", "--part-size", "5MiB", "/data", f"s3://{bucket}/p")
    assert first.returncode == 0, first.stderr
    s3.assert_same(root / "data", bucket, "p")
    again = run("push", "/data", f"s3://{bucket}/p")
    assert again.returncode == 0 and "not looked at again 2" in again.stdout, again.stdout + again.stderr
    checked = run("verify", "--download", f"s3://{bucket}/p")
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")
def test_without_certificates_it_says_so(static, s3, bucket, tmp_path):
    program, emulator = static
    if emulator:
        pytest.skip("the words are the same")
    (tmp_path / "root/data").mkdir(parents=True)
    shutil.copy(program, tmp_path / "root")
    make_tree(tmp_path / "root/data", {"a": 1})
    environment = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": s3.tls_endpoint}
    environment |= {"STATE_DIRECTORY": "/", "AWS_EC2_METADATA_DISABLED": "true"}
    done = subprocess.run(
        ["/usr/sbin/chroot", tmp_path / "root", "/s3once", "push", "/data", f"s3://{bucket}/p"], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode not in (0, 1) and "--ca-bundle" in done.stderr, done.stderr


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
    assert config["config"]["User"] == "65532:65532"


def test_a_program_that_needs_libraries_makes_no_image(tmp_path):
    done = subprocess.run([REPOSITORY / "packaging" / "image", "/bin/sh", tmp_path / "image.tar"], capture_output=True, text=True)
    assert done.returncode == 1 and "PROGRAM needs libraries" in done.stderr and not (tmp_path / "image.tar").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")
def test_the_image_runs_with_a_read_only_root(image, s3, bucket, tmp_path):
    """As an engine runs it: its own user and environment, nothing to write to but the volume, and the job in variables."""
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
    assert again.returncode == 0 and "not looked at again 2" in again.stdout, again
    refused = run("push", "--metrics-file", "/data/s3once.prom", "/data", f"s3://{bucket}/p")
    assert refused.returncode == 1 and "Read-only file system" in refused.stderr, refused
    del environment["S3ONCE_EXCLUDE"]
    piped = run("push", "--as", "piped", "-", f"s3://{bucket}", input="from another container")
    assert piped.returncode == 0 and "piped" in s3.objects(bucket), piped
