"""Libraries loaded into the program that make its host misbehave: our own preload.c, and libfaketime."""

import functools
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.system.harness import BUILD, PROGRAM, REPOSITORY

ASAN = "verify_asan_link_order=0"  # ours does not disturb it


@functools.cache
def preload_library():
    """The path of the library of preload.c, which each worker compiles once."""
    path = BUILD / "preload.so"
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        made = Path(folder) / path.name
        source = REPOSITORY / "tests" / "faults" / "preload.c"
        argv = ["cc", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", made, source, "-ldl"]
        subprocess.run(argv, check=True, timeout=60)
        made.replace(path)
    return path


def preloaded(program, library, **variables):
    """The environment for a run with that library."""
    if b"/ld-linux" not in program.binary().read_bytes()[:4096]:
        pytest.skip("a static program loads no library")
    asan = program.environment["ASAN_OPTIONS"] + ":" + ASAN
    return {"LD_PRELOAD": str(library), "ASAN_OPTIONS": asan, **{name: str(value) for name, value in variables.items()}}


def faketime():
    """The library of libfaketime; it does not stand sanitizers, so ./check gives these tests the release build."""
    assert b"__asan_init" not in PROGRAM.read_bytes(), "needs a build without sanitizers"
    return next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
