"""The packages: each installed file is in exactly one of Debian's, two builds of those give the same bytes, and the RPM builds."""

import hashlib
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.system.harness import BUILD, REPOSITORY

DEBIAN = REPOSITORY / "debian"


def run(*argv, cwd=REPOSITORY, **how):
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, errors="replace", timeout=1800, **how)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def patterns(path):
    """The files that a listing of debhelper's takes; behind a blank it may say where they go."""
    return [line.split()[0] for line in path.read_text().splitlines() if line and not line.startswith("#")]


def test_every_installed_file_is_in_one_package(tmp_path):
    run("meson", "install", "-C", str(BUILD), "--no-rebuild", "--quiet", "--destdir", str(tmp_path))
    (program,) = tmp_path.rglob("bin/s3once")
    prefix = program.parent.parent
    installed = {"usr" / path.relative_to(prefix) for path in prefix.rglob("*") if path.is_symlink() or not path.is_dir()}
    packages = {}
    for listing in [*DEBIAN.glob("*.install"), DEBIAN / "not-installed"]:
        for pattern in patterns(listing):
            matching = [path for path in installed if any(one.match(pattern) for one in (path, *path.parents))]
            assert matching or "/man" in pattern, f"{listing.name}: {pattern} matches nothing"  # scdoc may be missing
            for path in matching:
                assert path not in packages, f"{path} is in {packages[path]} and in {listing.name}"
                packages[path] = listing.name
    assert installed == set(packages)


def test_build_can_find_its_commit():
    """Without git, a package built from a clone would say "commit unknown"."""
    assert re.search(r"^ git,$", (DEBIAN / "control").read_text(), re.MULTILINE)
    assert "BuildRequires:  git-core\n" in (REPOSITORY / "packaging" / "s3once.spec").read_text()


def test_the_versions_agree():
    (version,) = {line.split()[1] for line in (DEBIAN / "changelog").read_text().splitlines()[:1]}
    program = run(str(next(BUILD.rglob("cli/s3once"))), "--version").split()[1]
    assert version == f"({program})"
    assert f"Version:        {program}\n" in (REPOSITORY / "packaging" / "s3once.spec").read_text()


def test_no_instance_outlives_the_package():
    """Removing the package stops every instance of every unit, whose names only the administrator knows."""
    units = {path.name.replace("@", "@*") for path in (REPOSITORY / "systemd").glob("*@*")}
    debian = (DEBIAN / "s3once.prerm").read_text()
    rpm = (REPOSITORY / "packaging" / "s3once.spec").read_text().split("%preun")[1].split("%posttrans")[0]
    for script in (debian, rpm):
        assert set(re.findall(r"'(s3once\S*)'", script)) == units


@pytest.mark.parametrize("has_link", [True, False])
def test_purge_removes_the_marks(tmp_path, has_link):
    """The folder is systemd's, behind a link, or one that an administrator made for marks of another host."""
    state = tmp_path / "var/lib/s3once"
    (state.parent / "private/s3once").mkdir(parents=True)
    if has_link:
        state.symlink_to("private/s3once")
    else:
        state.mkdir()
    (state / "marks.db").write_bytes(b"marks")
    run("sh", str(DEBIAN / "s3once.postrm"), "purge", env={**os.environ, "DPKG_ROOT": str(tmp_path)})
    assert list(state.parent.iterdir()) == [state.parent / "private"] and not list((state.parent / "private").iterdir())


def test_jobs_can_be_read_by_the_unit():
    """Its user is none that a package could make the folder of the jobs belong to."""
    spec = (REPOSITORY / "packaging" / "s3once.spec").read_text()
    assert "install -d -m 0755 %{buildroot}%{_sysconfdir}/s3once\n" in spec and "%attr" not in spec


def test_bill_of_materials():
    program = str(next(BUILD.rglob("cli/s3once")))
    said = json.loads(run(program, "version", "--json"))
    bom = json.loads(run(str(REPOSITORY / "packaging" / "sbom"), program))
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.5")
    assert bom["metadata"]["component"]["version"] == said["version"]
    found = {each["name"]: each["version"] for each in bom["components"]}
    assert found == {name: each["running"] for name, each in said["libraries"].items()}
    needed = [line.split("[")[1].split("]")[0] for line in run("readelf", "-d", program).splitlines() if "(NEEDED)" in line]
    ours = [name for name in needed if not name.startswith(("libc.", "libm.", "libasan", "libubsan", "libtsan", "libisal"))]
    # libssl and libcrypto are both of OpenSSL.
    assert len({name.replace("libssl", "libcrypto") for name in ours}) == len(found), ours
    refs = {each["bom-ref"] for each in bom["components"]}
    assert set(bom["dependencies"][0]["dependsOn"]) == refs and len(refs) == len(found)


def test_apparmor_profile_is_read():
    run("apparmor_parser", "--skip-kernel-load", "--skip-cache", str(REPOSITORY / "config" / "apparmor" / "s3once"))


def of_archive(source):
    source.mkdir(parents=True)
    run("git", "archive", f"--output={source}.tar", "HEAD")
    run("tar", "-xf", f"{source}.tar", cwd=source)


def of_checkout(source):
    source.parent.mkdir(parents=True)
    run("git", "clone", "--quiet", str(REPOSITORY), str(source))


def build_packages(folder, get_source, umask, zone):
    """A build of what is committed. The packages' names, with a hash of each."""
    source = folder / "s3once-1.0.0"
    get_source(source)
    environment = {**os.environ, "TZ": zone, "SOURCE_DATE_EPOCH": "1700000000", "CCACHE_DISABLE": "1"}
    run("dpkg-buildpackage", "-us", "-uc", "-b", cwd=source, env=environment, umask=umask)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.deb")}


@pytest.mark.full
def test_two_builds_give_the_same_bytes(tmp_path):
    first = build_packages(tmp_path / "first", of_archive, 0o022, "UTC")
    second = build_packages(tmp_path / "another" / "folder", of_checkout, 0o077, "Asia/Tokyo")
    assert first == second and {name.split("_")[0] for name in first} >= {"s3once", "libs3once0", "libs3once-dev"}
    (changes,) = (tmp_path / "first").glob("*.changes")
    said = run("lintian", "--allow-root", "--fail-on=error,warning", str(changes))
    assert not said.strip(), said
    root = tmp_path / "root"
    for package in (tmp_path / "first").glob("*.deb"):
        run("dpkg-deb", "--extract", str(package), str(root))
    (library,) = root.glob("usr/lib/*/libs3once.so.0")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library.parent)}
    assert "push" in run(str(root / "usr/bin/s3once"), "--help", env=environment)


@pytest.mark.full
def test_the_rpm_builds(tmp_path):
    """rpmbuild fails on an installed file that no package lists. What it builds with comes from Debian here: --nodeps."""
    (tmp_path / "SOURCES").mkdir()
    archive = tmp_path / "SOURCES" / "s3once-1.0.0.tar.gz"
    run("git", "archive", "--prefix=s3once-1.0.0/", f"--output={archive}", "HEAD")
    run("rpmbuild", "--define", f"_topdir {tmp_path}", "--nodeps", "-bb", str(REPOSITORY / "packaging" / "s3once.spec"))
    packages = {path.name.rsplit("-", 2)[0]: path for path in (tmp_path / "RPMS").rglob("*.rpm")}
    assert set(packages) == {"s3once", "s3once-libs", "s3once-devel"}
    assert "/usr/bin/s3once" in run("rpm", "-qlp", str(packages["s3once"])).splitlines()
