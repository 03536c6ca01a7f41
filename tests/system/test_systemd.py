"""The units: understood by systemd, closed to what they do not need, and their very command works."""

import os
import re
import shlex
import shutil
import subprocess

import pytest

from tests.system.harness import REPOSITORY, make_tree

UNITS = REPOSITORY / "systemd"


def setting(unit, name):
    return re.findall(rf"^{name}=(.*)$", (UNITS / unit).read_text(), re.M)


def analyze(*argv):
    run = subprocess.run(["systemd-analyze", *map(str, argv)], capture_output=True, text=True, timeout=60)
    return run.returncode, run.stdout + run.stderr


@pytest.fixture
def installed(s3once, tmp_path):
    """The units as instance NAME, with the program where systemd would find it."""
    program = tmp_path / "s3once"
    program.symlink_to(s3once.binary())
    for name in ("service", "timer"):
        text = (UNITS / f"s3once@.{name}").read_text()
        assert "man:" in text
        text = re.sub(r"^Documentation=.*\n", "", text, flags=re.M)  # the pages are not installed here
        (tmp_path / f"s3once@.{name}").write_text(text.replace("ExecStart=s3once ", f"ExecStart={program} "))
        (tmp_path / f"s3once@photos.{name}").symlink_to(f"s3once@.{name}")
    return tmp_path


def test_systemd_understands_the_units(installed):
    for name in ("service", "timer"):
        code, said = analyze("verify", "--man=no", installed / f"s3once@photos.{name}")
        assert (code, said) == (0, "")


def test_the_service_is_closed(installed):
    code, said = analyze("security", "--offline=true", "--threshold=20", installed / "s3once@photos.service")
    assert code == 0, said
    assert float(re.search(r"exposure level.*: ([\d.]+)", said)[1]) <= 2.0


def test_it_runs_nightly():
    assert setting("s3once@.timer", "OnCalendar") == ["*-*-* 02:00:00"]
    assert setting("s3once@.timer", "Persistent") == ["yes"]
    code, said = analyze("calendar", *setting("s3once@.timer", "OnCalendar"))
    assert code == 0, said


def environment_of(text):
    """An EnvironmentFile as systemd reads it."""
    lines = [line for line in text.splitlines() if line and not line.startswith(("#", ";"))]
    pairs = (line.split("=", 1) for line in lines)
    return {name: value[1:-1] if value[:1] == value[-1:] == "'" else value for name, value in pairs}


def command_of(line, environment):
    """An ExecStart line as systemd expands it: $NAME alone becomes words, ${NAME} stays one word."""
    words = []
    for word in shlex.split(line):
        if alone := re.fullmatch(r"\$(\w+)", word):
            words += environment.get(alone[1], "").split()
        else:
            words.append(re.sub(r"\$\{(\w+)\}", lambda m: environment.get(m[1], ""), word))
    return words


def uncommented(text):
    """The example with everything in it that is commented out."""
    return re.sub(r"^#(?=[A-Z0-9_]+=)", "", text, flags=re.M)


def test_the_example_is_what_the_unit_reads():
    example = environment_of(uncommented((REPOSITORY / "config" / "example.env").read_text()))
    (line,) = setting("s3once@.service", "ExecStart")
    asked_for = set(re.findall(r"\$\{?(\w+)", line))
    assert asked_for <= set(example)
    known = asked_for | {"S3ONCE_MARKS", "S3ONCE_CHECKSUM"}
    assert all(name in known or name.startswith("AWS_") for name in example)
    assert command_of(line, example) == (
        "s3once push --min-age 5min --exclude *.tmp -- /srv/photos s3://my-bucket/photos".split()
    )


@pytest.mark.parametrize("name", ["example.env", "logs.env"])
def test_a_shell_reads_the_examples_as_systemd_does(name, tmp_path):
    text = uncommented((REPOSITORY / "config" / name).read_text())
    (tmp_path / name).write_text(text)
    (tmp_path / "app.tmp").touch()  # must not take the place of a pattern
    command = """set -a -f; . "./$0"; env -0; printf '%s\\0' $S3ONCE_OPTIONS"""
    (line,) = re.findall(r"^#   (set -a.*); \. /etc/s3once/NAME.env$", (REPOSITORY / "config" / "example.env").read_text(), re.M)
    assert command.startswith(line + ";"), "as the example says"
    run = subprocess.run(["sh", "-c", command, name], cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True)
    said = run.stdout.split("\0")[:-1]
    assert run.stderr == ""
    example = environment_of(text)
    assert {key: value for key, value in (each.split("=", 1) for each in said if re.match("(S3ONCE|AWS)_", each))} == example
    words = example["S3ONCE_OPTIONS"].split()
    assert said[-len(words) :] == words


def test_the_options_of_the_examples_are_known(s3once):
    for name in ("example.env", "logs.env"):
        example = environment_of(uncommented((REPOSITORY / "config" / name).read_text()))
        example = {key: value for key, value in example.items() if key != "S3ONCE_MARKS"}
        (line,) = setting("s3once@.service", "ExecStart")
        words = command_of(line, example)[1:]
        words.insert(words.index("--"), "--help")  # what stands before it is read and checked
        run = s3once(*words, env=example)
        assert run.err == "" and run.code == 0, run


def test_the_drop_in_that_reads_logs(installed):
    folder = installed / "s3once@photos.service.d"
    folder.mkdir()
    shutil.copy(REPOSITORY / "config" / "read-logs.conf", folder)
    code, said = analyze("verify", "--man=no", installed / "s3once@photos.service")
    assert (code, said) == (0, "")
    assert "\nSupplementaryGroups=adm\n" in (folder / "read-logs.conf").read_text()


def test_the_upload_leaves_the_host_to_others():
    assert int(setting("s3once@.service", "Nice")[0]) > 0
    assert setting("s3once@.service", "IOSchedulingClass") == ["best-effort"]
    assert setting("s3once@.service", "IOSchedulingPriority") == ["7"]


def test_the_command_uploads(s3once, s3, bucket, tmp_path):
    """The ExecStart line, under an environment as the unit's and nothing else, marks in the state directory."""
    tree = make_tree(tmp_path / "source with spaces", {"a": b"a", "b.tmp": b"b"})
    state = tmp_path / "lib" / "private" / "s3once"
    state.mkdir(parents=True, mode=0o700)
    (tmp_path / "lib" / "s3once").symlink_to("private/s3once")  # as DynamicUser= does
    example = environment_of((REPOSITORY / "config" / "example.env").read_text())
    example |= {
        "S3ONCE_OPTIONS": "--exclude *.tmp --json",
        "S3ONCE_SOURCE": str(tree),
        "S3ONCE_TARGET": f"s3://{bucket}/p",
        "AWS_ACCESS_KEY_ID": s3.access_key,
        "AWS_SECRET_ACCESS_KEY": s3.secret_key,
        "AWS_ENDPOINT_URL_S3": s3.endpoint,
    }
    (line,) = setting("s3once@.service", "ExecStart")
    program, *argv = command_of(line, example)
    assert program == "s3once"
    bare = dict.fromkeys(s3once.environment) | {
        name: value for name, value in s3once.environment.items() if name.endswith("SAN_OPTIONS")
    }
    unit = {"PATH": "/usr/bin", "LANG": "C.UTF-8", "HOME": "/", "STATE_DIRECTORY": str(tmp_path / "lib" / "s3once")}
    for uploaded in (1, 0):
        run = s3once(*argv, env=bare | unit | example, cwd="/")
        assert run.code == 0, run
        assert run.events[-1]["uploaded"] == uploaded
    assert set(s3.objects(bucket)) == {"p/a"}
    assert (state / "marks.db").exists()


def test_it_tries_again_when_the_service_was_out_of_reach():
    """After exit status 3 and a kill, not after failures of files or a wrong command line, and not for ever."""
    assert setting("s3once@.service", "Type") == ["oneshot"]
    assert setting("s3once@.service", "Restart") == ["on-failure"]
    (statuses,) = setting("s3once@.service", "RestartPreventExitStatus")
    assert statuses.split() == ["1", "2", "4", "5", "129", "130"]
    assert setting("s3once@.service", "RestartSec") == ["15min"]
    (interval,) = setting("s3once@.service", "StartLimitIntervalSec")
    (burst,) = setting("s3once@.service", "StartLimitBurst")
    assert (interval, burst) == ("4h", "5"), "five runs that wait five minutes each, and the pauses between them, fit"


def test_stopping_the_service_is_no_failure():
    assert setting("s3once@.service", "SuccessExitStatus") == ["143"]
    (seconds,) = setting("s3once@.service", "TimeoutStopSec")
    assert int(seconds) > 10, "longer than the grace"


def test_the_journal_knows_levels(s3once, tmp_path):
    """Where standard error is the journal, and nowhere else."""
    tree = make_tree(tmp_path / "tree", {"a": 1})
    errors = tmp_path / "errors"
    argv = ["push", tree, "s3://bucket/p", "--marks", f"sqlite:{tmp_path}/marks.db", "--ca-bundle", tmp_path / "none"]
    argv += ["--retries", "0", "--give-up-after", "1s"]
    for is_journal in (True, False):
        with open(errors, "wb") as file:
            inode = os.fstat(file.fileno()).st_ino + (not is_journal)
            environment = {**s3once.environment, "JOURNAL_STREAM": f"{os.fstat(file.fileno()).st_dev}:{inode}"}
            run = subprocess.run([s3once.binary(), *argv], stderr=file, stdout=subprocess.DEVNULL, env=environment, timeout=60)
        lines = errors.read_text().splitlines()
        assert run.returncode == 3 and any("error: " in line for line in lines), lines
        for line in lines:
            level = "<3>" if "error: " in line else "<4>" if "warning: " in line else "<6>"
            level = level if is_journal else ""
            assert line.startswith(f"{level}s3once: "), lines
