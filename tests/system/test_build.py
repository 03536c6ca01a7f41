"""Meson builds and installs the program, the library and their documents, and a plain build reports missing libraries."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.system.harness import BUILD, REPOSITORY


def meson(*argv, **environment):
    run = subprocess.run(
        ["meson", *argv], cwd=REPOSITORY, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return re.sub(r"\x1b\[[\d;]*m", "", run.stdout)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A build folder with Meson's own defaults, and what was said when it was made."""
    folder = tmp_path_factory.mktemp("plain")
    return folder, meson("setup", folder)


def introspect(folder, what):
    return json.loads(meson("introspect", what, folder))


def test_a_plain_build_has_no_tests(plain):
    folder, said = plain
    assert re.search(r"^\s*tests\s*: NO$", said, re.M), said
    assert introspect(folder, "--tests") == introspect(folder, "--benchmarks") == []
    targets = introspect(folder, "--targets")
    assert targets and not [target["name"] for target in targets if "/tests/" in target["defined_in"]]


def test_a_build_without_scdoc_says_what_is_missing(tmp_path):
    """All programs of this host but that one. What ccache has put in front of the compilers would only find itself here."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in reversed(os.environ["PATH"].split(":")):
        for path in Path(folder).iterdir() if os.path.isdir(folder) else []:
            if path.resolve().name == "ccache" and path.name != "ccache":
                continue
            (programs / path.name).unlink(missing_ok=True)
            (programs / path.name).symlink_to(path)
    (programs / "scdoc").unlink(missing_ok=True)
    said = meson("setup", tmp_path / "build", PATH=str(programs))
    assert "WARNING: scdoc was not found: the man pages are neither built nor installed" in said
    assert re.search(r"^\s*man pages\s*: NO$", said, re.M), said


def test_everything_is_installed(tmp_path):
    meson("install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", tmp_path)
    (program,) = tmp_path.rglob("bin/s3once")
    assert os.access(program, os.X_OK)
    prefix = program.parent.parent
    installed = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if path.is_file()}
    doc = "share/doc/s3once"
    documents = [*(REPOSITORY / "docs").glob("*.md"), *REPOSITORY.glob("*.md"), REPOSITORY / "LICENSE"]
    assert {f"{doc}/{path.relative_to(REPOSITORY)}" for path in documents} <= installed
    config = REPOSITORY / "config"
    examples = [path.relative_to(config) for path in config.rglob("*") if path.is_file() and path.name != "meson.build"]
    examples = [path for path in examples if path.parts[0] != "completion"]
    assert {f"{doc}/examples/{path}" for path in examples} <= installed
    assert {f"lib/systemd/system/{unit}" for unit in ("s3once@.service", "s3once@.timer", "s3once-watch@.service", "s3once-final@.service")} <= installed
    assert {f"lib/systemd/user/{unit}" for unit in ("s3once@.service", "s3once@.timer", "s3once-watch@.service")} <= installed
    pages = {f"share/man/man{path.stem[-1]}/{path.stem}" for path in (REPOSITORY / "docs" / "man").glob("*.scd")}
    assert not shutil.which("scdoc") or pages <= installed
    assert {"include/s3once/push.h", "include/s3once/lock.h"} <= installed


def test_the_links_of_the_installed_pages(tmp_path):
    meson("install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", tmp_path)
    pages = list(tmp_path.rglob("doc/s3once/**/*.md"))
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)\s#]+)[^)\s]*\)", page.read_text())]
    links = [(page, link) for page, link in links if not re.match("[a-z]+:", link)]
    assert len(links) > 100
    assert [f"{page.name}: {link}" for page, link in links if not (page.parent / link).exists()] == []


def test_the_license_is_named_alike():
    assert re.search(r"license: 'BSD-2-Clause'", (REPOSITORY / "meson.build").read_text())
    assert (REPOSITORY / "LICENSE").read_text().startswith("BSD 2-Clause License\n")
