"""The library as others meet it: installed, found by pkg-config, linked by the example."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.system.harness import make_tree

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / os.environ.get("S3ONCE_BUILD", "build")


def output_of(argv, **environment):
    done = subprocess.run(argv, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    output_of(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", folder])
    return folder


@pytest.fixture(scope="module")
def flags(installed):
    """The flags that pkg-config prints for the installed copy, and the sanitizer of this build."""
    (description,) = installed.rglob("s3once.pc")
    words = output_of(
        ["pkg-config", "--cflags", "--libs", "s3once"],
        PKG_CONFIG_LIBDIR=str(description.parent),
        PKG_CONFIG_SYSROOT_DIR=str(installed),
    ).split()
    options = json.loads(output_of(["meson", "introspect", "--buildoptions", BUILD]))
    (sanitizer,) = (option["value"] for option in options if option["name"] == "b_sanitize")
    return words + ([] if sanitizer == "none" else [f"-fsanitize={sanitizer}"])


def test_example_uploads(installed, flags, s3, bucket, s3once, tmp_path):
    example = ROOT / "tests" / "library" / "example.c"
    assert len(example.read_text().splitlines()) <= 45
    output_of(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", example, "-o", tmp_path / "example", *flags])
    tree = make_tree(tmp_path / "tree", {"a": b"first", "sub/b": b"second"})
    (library,) = installed.rglob("libs3once.so.0")
    environment = {**s3once.environment, "LD_LIBRARY_PATH": str(library.parent)}
    argv = [tmp_path / "example", bucket, "p", tree]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 files" in done.stdout
    s3.assert_same(tree, bucket, "p/")
    again = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=120)
    assert again.returncode == 0 and "0 of 2 files" in again.stdout


def test_example_locks(installed, flags, s3once, tmp_path):
    example = ROOT / "tests" / "library" / "lock.c"
    output_of(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", example, "-o", tmp_path / "lock", *flags])
    (library,) = installed.rglob("libs3once.so.0")
    environment = {**s3once.environment, "LD_LIBRARY_PATH": str(library.parent)}
    argv = [tmp_path / "lock", f"sqlite:{tmp_path}/locks.db", "k"]
    for token in (1, 2):
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"token {token}, enough left\n"


@pytest.mark.parametrize("compiler, standard", [("cc", "c11"), ("c++", "c++17")])
def test_headers_stand_alone(installed, compiler, standard, tmp_path):
    headers = sorted(installed.rglob("include/s3once/*.h"))
    assert headers
    for header in headers:
        source = tmp_path / f"alone.{'c' if compiler == 'cc' else 'cc'}"
        source.write_text(f'#include "{header}"\n')
        output_of([compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c", source, "-o", os.devnull])


def test_library_has_a_versioned_name(installed):
    (library,) = installed.rglob("libs3once.so.0")
    listing = output_of(["readelf", "-d", library])
    assert "SONAME" in listing and "[libs3once.so.0]" in listing
    # So the list of files in s3once.spec has the file itself, too.
    assert library.resolve().name == "libs3once.so.0.0.0"
