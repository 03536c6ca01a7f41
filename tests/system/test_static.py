"""The program that packaging/static makes: one file that needs nothing of the system, for both processors.

It is built from Debian's archive, which takes minutes and the network: in ./check --full. arm64 is run by qemu.
"""

import functools
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
