"""./quickstart: what it says while it works. The tools that take long are fakes here, which wait until the test lets them end."""

import os
import shutil
import signal
import subprocess
import threading

import pytest

from tests.system.harness import REPOSITORY, wait_until

LONG = {  # each long step: the line before it, and the tool that takes long
    "install": ("== Install what is missing", "tests/setup/install"),
    "ninja": ("== Build build/release", "tools/ninja"),
    "s3once": ("== Upload ", "build/release/src/cli/s3once"),
}


def fake(path, name):
    """Tells that it has begun, and ends when somebody opens its gate."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/bash\n[ {name} != ninja ] || echo "[50/100] cc"\necho "{name} $*" >>"$FAKES/begun"\nread -r _ <"$FAKES/{name}"\n')
    path.chmod(0o755)


@pytest.fixture
def copy(tmp_path):
    shutil.copy(REPOSITORY / "quickstart", tmp_path)
    (tmp_path / "gates").mkdir()
    for name, (_, tool) in LONG.items():
        os.mkfifo(tmp_path / "gates" / name)
        fake(tmp_path / tool, name)
    (tmp_path / "tools" / "meson").symlink_to("/bin/true")
    return tmp_path


def begun(copy):
    path = copy / "gates" / "begun"
    return path.read_text().splitlines() if path.exists() else []


def test_a_line_is_there_before_each_long_step(copy):
    """And while the build goes on, how far it is; the exit status is that of the upload."""
    env = {"PATH": f"{copy}/tools:/usr/bin:/bin", "FAKES": str(copy / "gates")}
    with subprocess.Popen([copy / "quickstart", copy, "s3://bucket/p"], env=env, stdout=subprocess.PIPE, text=True, start_new_session=True) as run:
        end = threading.Timer(60, os.killpg, (run.pid, signal.SIGKILL))  # what says nothing would be waited for
        end.start()
        for name, (line, _) in LONG.items():
            wait_until(lambda: len(begun(copy)) > list(LONG).index(name), 60, name)
            said = run.stdout.readline()
            assert said.startswith(line), said
            if name == "ninja":
                assert run.stdout.readline() == "[50/100]\n"
            gate = os.open(copy / "gates" / name, os.O_RDWR)
            os.write(gate, b"go\n")
            assert run.stdout.readline().startswith("   done in ")
            os.close(gate)
        assert run.stdout.read() == "" and run.wait(60) == 0
        end.cancel()
    assert begun(copy) == ["install build", "ninja -C build/release src/cli/s3once", f"s3once push --marks local {copy} s3://bucket/p"]


@pytest.mark.parametrize("args", [["--nonsense"], ["/nowhere"], ["/", "bucket"], ["s3://bucket"], ["/", "s3://b", "x"]])
def test_wrong_arguments_begin_nothing(copy, args):
    run = subprocess.run([copy / "quickstart", *args], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=60)
    assert run.returncode == 2 and run.stderr.startswith("quickstart: ") and run.stdout == "", run
