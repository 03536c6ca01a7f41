"""The downloads: packaging/release makes them from a tag, and each part is installed and used where nothing else of ours is.

It takes long, and Debian's archive.
"""

import os
import shutil
import subprocess

import pytest

from tests.system.harness import REPOSITORY, make_tree
from tests.system.test_static import EMULATOR, Root, push_killed_resumed_verified

pytestmark = [pytest.mark.full, pytest.mark.skipif(os.geteuid() != 0, reason="roots of other systems need root")]
NAME = "s3once-1.0.0"
SUITES = {"debian-12": "bookworm", "debian-13": "trixie"}
ENDINGS = ["", ".cdx.json", ".provenance.json"]


def run(*argv, **how):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", **how)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    run("openssl", "genpkey", "-algorithm", "ed25519", "-out", folder / "private.pem")
    run("openssl", "pkey", "-in", folder / "private.pem", "-pubout", "-out", folder / "public.pem")
    return folder


@pytest.fixture(scope="module")
def release(tmp_path_factory, keys):
    folder = tmp_path_factory.mktemp("release")
    run("git", "clone", "--quiet", REPOSITORY, folder / "source")
    run("git", "-C", folder / "source", "tag", "v1.0.0")
    run(folder / "source" / "packaging" / "release", "--key", keys / "private.pem", "1.0.0", folder, timeout=7200)
    yield folder / NAME
    shutil.rmtree(folder)


def test_a_tag_that_is_not_there(tmp_path):
    done = subprocess.run([REPOSITORY / "packaging" / "release", "0.0.1", tmp_path], capture_output=True, text=True)
    assert done.returncode == 1 and "there is no tag v0.0.1" in done.stderr and not any(tmp_path.iterdir())


def test_sums_and_signature(release, keys):
    """Each file has a sum, and the sums have a signature."""
    named = {line.split("  ", 1)[1] for line in (release / "SHA256SUMS").read_text().splitlines()}
    found = {str(path.relative_to(release)) for path in release.rglob("*") if path.is_file()}
    assert found == named | {"SHA256SUMS", "SHA256SUMS.sig"}
    assert named >= {f"{NAME}.tar.gz"} | {f"{NAME}-linux-{arch}{end}" for arch in EMULATOR for end in ENDINGS}
    assert named >= {f"{NAME}-image-{arch}.tar" for arch in EMULATOR}
    for system in SUITES:
        assert {name.split("/")[1].split("_")[0] for name in named if name.startswith(system)} >= {"s3once", "libs3once0", "libs3once-dev"}
    run("sha256sum", "--check", "--quiet", "SHA256SUMS", cwd=release)
    verify = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", keys / "public.pem", "-rawin"]
    run(*verify, "-in", release / "SHA256SUMS", "-sigfile", release / "SHA256SUMS.sig")


def test_the_source_is_that_of_the_tag(release, tmp_path):
    run("tar", "-xf", release / f"{NAME}.tar.gz", "-C", tmp_path)
    names = run("git", "ls-tree", "-r", "--name-only", "HEAD", cwd=REPOSITORY).splitlines()
    for name in names:
        assert (tmp_path / NAME / name).exists(), name


@pytest.mark.parametrize("arch", EMULATOR)
def test_the_static_program(release, arch, s3, s3_wire, bucket, tmp_path):
    emulator = [] if arch == run("dpkg", "--print-architecture").strip() else [EMULATOR[arch]]
    shutil.copy(release / f"{NAME}-linux-{arch}", tmp_path / "s3once")
    root = Root(tmp_path / "root", tmp_path / "s3once", emulator, s3)
    push_killed_resumed_verified(root, s3_wire, s3_wire.endpoint, bucket)


@pytest.mark.parametrize("system", SUITES)
def test_the_packages(release, system, s3, bucket, tmp_path):
    """They are installed in a root of that release, where s3once then uploads a tree, and a program is linked with the library."""
    mirror = run("apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", "Origin: Debian", "Label: Debian").split()[0]
    make_tree(tmp_path / "tree", {"a.log": 1000, "folder/large.log": 22 << 20})
    (tmp_path / "locks.c").write_text("#include <s3once/lock.h>\nint main(void) { return s3once_locks_open == 0; }\n")
    environment = {
        "AWS_ACCESS_KEY_ID": s3.access_key,
        "AWS_SECRET_ACCESS_KEY": s3.secret_key,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": s3.endpoint,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    steps = [
        "apt-get -qq -y install /release/*.deb gcc libc6-dev",
        f"s3once push --part-size 5MiB /tree s3://{bucket}/p",
        f"s3once verify --download s3://{bucket}/p",
        "cc -o /locks /locks.c -ls3once",
        "/locks",
    ]
    (tmp_path / "steps").write_text("\n".join(["set -ex", *(f"export {name}='{value}'" for name, value in environment.items()), *steps]))
    hooks = [
        "mkdir $1/release $1/tree",
        f"sync-in {release / system} /release",
        f"sync-in {tmp_path / 'tree'} /tree",
        f"copy-in {tmp_path / 'steps'} {tmp_path / 'locks.c'} /",
        'chroot "$1" sh /steps',
    ]
    run("mmdebstrap", "--mode=root", "--variant=minbase", *(f"--customize-hook={hook}" for hook in hooks), SUITES[system], "/dev/null", mirror, timeout=3000)
    s3.assert_same(tmp_path / "tree", bucket, "p")
