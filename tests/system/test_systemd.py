"""The units: understood by systemd, closed to what they do not need, and their very command works."""

import os
import re
import shlex
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from tests.faults import faults
from tests.system.harness import REPOSITORY, make_tree

UNITS = REPOSITORY / "systemd"
UNIT_NAMES = ["s3once@.service", "s3once@.timer", "s3once-watch@.service", "s3once-final@.service"]


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
    for name in UNIT_NAMES:
        text = (UNITS / name).read_text()
        assert "man:" in text
        text = re.sub(r"^Documentation=.*\n", "", text, flags=re.M)  # the pages are not installed here
        (tmp_path / name).write_text(re.sub("^(Exec[a-zA-Z]+)=s3once ", rf"\1={program} ", text, flags=re.M))
        (tmp_path / name.replace("@", "@photos")).symlink_to(name)
    return tmp_path


@pytest.mark.parametrize("name", UNIT_NAMES)
def test_systemd_understands_the_units(installed, name):
    code, said = analyze("verify", "--man=no", installed / name.replace("@", "@photos"))
    assert (code, said) == (0, "")


@pytest.mark.parametrize("name", ["s3once@.service", "s3once@.timer", "s3once-watch@.service"])
def test_systemd_understands_the_units_of_a_user(s3once, tmp_path, name):
    (tmp_path / "s3once").symlink_to(s3once.binary())
    for unit in (UNITS / "user").iterdir():
        text = re.sub(r"^Documentation=.*\n", "", unit.read_text(), flags=re.M)
        (tmp_path / unit.name).write_text(re.sub("^(Exec[a-zA-Z]+)=s3once ", rf"\1={tmp_path}/s3once ", text, flags=re.M))
        (tmp_path / unit.name.replace("@", "@photos")).symlink_to(unit.name)
    os.environ.setdefault("XDG_RUNTIME_DIR", str(tmp_path))
    code, said = analyze("verify", "--user", "--man=no", tmp_path / name.replace("@", "@photos"))
    assert (code, said) == (0, "")


def test_the_units_of_a_user_are_like_those_of_the_host():
    """When they run, and what counts as a failure."""
    for name in ("Type", "ExecStart", "ExecReload", "SuccessExitStatus", "Restart", "RestartPreventExitStatus", "RestartSec", "WatchdogSec", "OnCalendar", "Persistent"):
        for unit in ("s3once@.service", "s3once@.timer", "s3once-watch@.service"):
            assert setting(f"user/{unit}", name) == setting(unit, name), (unit, name)
    assert setting("user/s3once@.service", "EnvironmentFile") == ["-%E/s3once/%i.env"]


@pytest.mark.parametrize("name", [name for name in UNIT_NAMES if name.endswith("service")])
def test_the_service_is_closed(installed, name):
    code, said = analyze("security", "--offline=true", "--threshold=20", installed / name.replace("@", "@photos"))
    assert code == 0, said
    assert float(re.search(r"exposure level.*: ([\d.]+)", said)[1]) <= 2.0


def test_the_services_are_alike():
    """In what stops them, what they may read, and where their state is."""
    own = {"Type", "WatchdogSec", "ExecStart", "ExecReload", "RestartPreventExitStatus", "RestartSec"}

    def settings(unit):
        lines = (UNITS / unit).read_text().split("[Service]")[1].split("[Install]")[0].splitlines()
        return sorted(line for line in lines if line and line[0] != "#" and line.split("=")[0] not in own)

    assert settings("s3once@.service") == settings("s3once-watch@.service")
    assert setting("s3once-watch@.service", "Type") == ["notify"]
    assert setting("s3once-watch@.service", "ExecStart") == ["s3once watch --drain 0 %i $S3ONCE_OPTIONS"]
    closed = (UNITS / "s3once-final@.service").read_text().split("DynamicUser=yes\n")[1]
    assert closed == (UNITS / "s3once-watch@.service").read_text().split("DynamicUser=yes\n")[1]
    for name in ("EnvironmentFile", "LoadCredential", "SetCredential", "Environment"):
        assert setting("s3once-final@.service", name) == setting("s3once@.service", name)


def test_the_unit_of_the_last_minute(s3once, s3, bucket, tmp_path):
    """Its commands work, and what they may take is less than systemd waits for."""
    tree = make_tree(tmp_path / "tree", {"a": 10})
    (tmp_path / "photos.conf").write_text(f"source = {tree}\ntarget = s3://{bucket}\nmin-age = 1h\n")
    (start,), (stop,), (seconds,) = (setting("s3once-final@.service", name) for name in ("ExecStart", "ExecStop", "TimeoutStopSec"))
    for line in (start, stop):
        assert not s3.objects(bucket)
        words = command_of(line.replace("%i", "photos"), {"S3ONCE_OPTIONS": "--verbose"})[1:]
        run = s3once(*words, env={"S3ONCE_JOBS": str(tmp_path)})
        assert run.code == 0, run
    s3.assert_same(tree, bucket)
    assert sum(int(each) for each in re.findall(r"(?:--max-duration|--grace) (\d+)s", stop)) + 10 <= int(seconds)


@pytest.mark.parametrize("name", UNIT_NAMES)
def test_a_small_host_has_what_the_units_call(name):
    """Debian's smallest has a shell, and no kill but the shell's own."""
    programs = {line.split()[0] for line in re.findall(r"^Exec\w+=(.*)$", (UNITS / name).read_text(), re.M)}
    assert programs <= {"s3once", "/bin/sh"}


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


def test_the_example_of_an_environment():
    example = environment_of(uncommented((REPOSITORY / "config" / "example.env").read_text()))
    (line,) = setting("s3once@.service", "ExecStart")
    known = set(re.findall(r"\$\{?(\w+)", line)) | {"S3ONCE_MARKS", "S3ONCE_CHECKSUM", "S3ONCE_PING_URL"}
    assert known <= set(example) and all(name in known or name.startswith("AWS_") for name in example)
    assert command_of(line, example) == "s3once run %i --verbose --exclude *.tmp".split()


@pytest.mark.parametrize("path", sorted((REPOSITORY / "config" / "jobs").glob("*.conf")), ids=lambda path: path.stem)
def test_the_examples_of_jobs_are_valid(s3once, path, tmp_path):
    """Also with everything in them that is commented out."""
    copy = tmp_path / path.name
    for text in (path.read_text(), re.sub(r"^#(?=[a-z-]+ = )", "", path.read_text(), flags=re.M)):
        copy.write_text(text)
        run = s3once("config", copy)
        assert run.code == 0 and run.err == "", run
    assert f"/etc/s3once/{path.name}" in text, "it says where to copy it to"
    assert [line for line in text.splitlines() if line.startswith("target = s3://my-")]


def test_the_drop_in_that_reads_logs(installed):
    folder = installed / "s3once@photos.service.d"
    folder.mkdir()
    shutil.copy(REPOSITORY / "config" / "read-logs.conf", folder)
    code, said = analyze("verify", "--man=no", installed / "s3once@photos.service")
    assert (code, said) == (0, "")
    assert "\nSupplementaryGroups=adm\n" in (folder / "read-logs.conf").read_text()


def test_the_drop_in_that_writes_metrics(installed):
    folder = installed / "s3once@photos.service.d"
    folder.mkdir()
    text = (REPOSITORY / "config" / "metrics.conf").read_text()
    (folder / "metrics.conf").write_text(text)
    code, said = analyze("verify", "--man=no", installed / "s3once@photos.service")
    assert (code, said) == (0, "")
    (path,) = re.findall("^ReadWritePaths=(.*)$", text, re.M)
    assert f"# The job has a line such as: metrics = {path}/s3once-NAME.prom\n" in text


def test_the_drop_in_that_mails_failures(installed):
    folder = installed / "s3once@photos.service.d"
    folder.mkdir()
    for name, place in [("s3once-failed@.service", installed), ("on-failure.conf", folder)]:
        shutil.copy(REPOSITORY / "config" / name, place)
    code, said = analyze("verify", "--man=no", installed / "s3once@photos.service")
    assert (code, said) == (0, "")
    (unit,) = re.findall("^OnFailure=(.*)$", (folder / "on-failure.conf").read_text(), re.M)
    assert unit == "s3once-failed@%n.service"
    (installed / "s3once-failed@s3once@photos.service.service").symlink_to("s3once-failed@.service")
    code, said = analyze("verify", "--man=no", installed / "s3once-failed@s3once@photos.service.service")
    assert (code, said) == (0, "")


@pytest.mark.parametrize("name", ["notify", "\0s3once-test-{pid}"], ids=["path", "abstract"])
def test_systemd_is_told_how_far_a_run_is(s3once, bucket, s3_wire, tmp_path, name):
    """Also with --quiet. That it gets on is said only when it does: held up, it says nothing of the kind."""
    tree = make_tree(tmp_path / "tree", {"a": 10, "b": 20})
    held = s3_wire.add(faults.hold_request, "PutObject", times=None)
    address = name.format(pid=os.getpid()) if name[0] == "\0" else str(tmp_path / name)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(60)
        assert setting("s3once@.service", "NotifyAccess") == ["main"]
        running = s3once.start("push", "-q", tree, f"s3://{bucket}", env={"NOTIFY_SOCKET": address.replace("\0", "@")})
        assert held.reached.wait(60), running.output()
        first = message = manager.recv(4096).decode()
        assert "EXTEND_TIMEOUT_USEC=60000000" in first.splitlines()
        while not re.fullmatch(r"STATUS=0 of 2 files, [^\n]*\n", message):
            message = manager.recv(4096).decode()
        s3_wire.clear()
        run = running.wait()
    assert run.code == 0 and run.out == "" and run.err == "", run


def test_the_drop_in_that_lets_a_job_remove_files(installed):
    folder = installed / "s3once@photos.service.d"
    folder.mkdir()
    text = (REPOSITORY / "config" / "remove-files.conf").read_text()
    (folder / "remove-files.conf").write_text(text)
    code, said = analyze("verify", "--man=no", installed / "s3once@photos.service")
    assert (code, said) == (0, "")
    (path,) = re.findall("^ReadWritePaths=(.*)$", text, re.M)
    assert f"source = {path}\n" in (REPOSITORY / "config" / "jobs" / "backups.conf").read_text()


def test_the_drop_in_that_follows_logrotate(installed):
    """systemd of Debian 12 knows OnSuccess=, in the unit that Debian's logrotate has."""
    logrotate = Path("/lib/systemd/system/logrotate.service")
    if not logrotate.exists():
        pytest.fail("logrotate is not installed: run tests/setup/install test")
    (installed / "logrotate.service").write_text(re.sub(r"^Documentation=.*\n", "", logrotate.read_text(), flags=re.M))
    folder = installed / "logrotate.service.d"
    folder.mkdir()
    text = (REPOSITORY / "config" / "after-logrotate.conf").read_text()
    assert "\nOnSuccess=s3once@nginx.service\n" in text
    (installed / "s3once@nginx.service").symlink_to("s3once@.service")
    for line, known in [("OnSuccess=", True), ("OnSucces=", False)]:
        (folder / "s3once.conf").write_text(text.replace("OnSuccess=", line))
        code, said = analyze("verify", "--man=no", installed / "logrotate.service")
        assert (code == 0 and said == "") == known, said


def test_secrets_are_credentials():
    """A credential that LoadCredential= does not find is the empty file of SetCredential=, as in systemd.exec(5)."""
    assert setting("s3once@.service", "LoadCredential") == ["credentials:/etc/s3once/%i.credentials"]
    assert setting("s3once@.service", "SetCredential") == ["credentials:\\n"]
    assert setting("s3once@.service", "Environment") == ["AWS_SHARED_CREDENTIALS_FILE=%d/credentials"]
    assert setting("s3once@.service", "EnvironmentFile") == ["-/etc/s3once/%i.env"]


def test_the_upload_leaves_the_host_to_others():
    assert int(setting("s3once@.service", "Nice")[0]) > 0
    assert setting("s3once@.service", "CPUSchedulingPolicy") == ["batch"]
    assert setting("s3once@.service", "IOSchedulingClass") == ["best-effort"]
    assert setting("s3once@.service", "IOSchedulingPriority") == ["7"]


@pytest.mark.parametrize("has_job", [True, False], ids=["a job", "an environment file alone"])
def test_the_command_uploads(s3once, s3, bucket, tmp_path, has_job):
    """The ExecStart line, under an environment as the unit's and nothing else, marks in the state directory."""
    tree = make_tree(tmp_path / "source with spaces", {"a": b"a", "b.tmp": b"b"})
    state = tmp_path / "lib" / "private" / "s3once"
    state.mkdir(parents=True, mode=0o700)
    (tmp_path / "lib" / "s3once").symlink_to("private/s3once")  # as DynamicUser= does
    target = f"s3://{bucket}/p"
    credentials = tmp_path / "credentials"
    if has_job:
        (tmp_path / "photos.conf").write_text(f"source = {tree}\ntarget = {target}\nexclude = *.tmp\njson = yes\nendpoint-url = {s3.endpoint}\n")
        credentials.write_text(f"[default]\naws_access_key_id = {s3.access_key}\naws_secret_access_key = {s3.secret_key}\n")
        example = {}
    else:
        credentials.write_text("\n")
        example = {
            "S3ONCE_OPTIONS": "--exclude *.tmp --json",
            "S3ONCE_SOURCE": str(tree),
            "S3ONCE_TARGET": target,
            "AWS_ACCESS_KEY_ID": s3.access_key,
            "AWS_SECRET_ACCESS_KEY": s3.secret_key,
            "AWS_ENDPOINT_URL_S3": s3.endpoint,
        }
    (line,) = setting("s3once@.service", "ExecStart")
    program, *argv = command_of(line.replace("%i", "photos"), example)
    assert program == "s3once"
    bare = dict.fromkeys(s3once.environment) | {
        name: value for name, value in s3once.environment.items() if name.endswith("SAN_OPTIONS")
    }
    unit = {"PATH": "/usr/bin", "LANG": "C.UTF-8", "HOME": "/", "STATE_DIRECTORY": str(tmp_path / "lib" / "s3once")}
    unit |= {"AWS_SHARED_CREDENTIALS_FILE": str(credentials), "S3ONCE_JOBS": str(tmp_path)}
    for uploaded in (1, 0):
        run = s3once(*argv, env=bare | unit | example, cwd="/")
        assert run.code == 0, run
        assert run.events[-1]["uploaded"] == uploaded and run.events[-1]["job"] == "photos"
    assert set(s3.objects(bucket)) == {"p/a"}
    assert (state / "marks.db").exists()


def test_it_tries_again_when_the_service_was_out_of_reach():
    """After exit status 3 and a kill, not after failures of files or a wrong command line, and not for ever."""
    assert setting("s3once@.service", "Type") == ["oneshot"]
    assert setting("s3once@.service", "Restart") == ["on-failure"]
    (statuses,) = setting("s3once@.service", "RestartPreventExitStatus")
    assert statuses.split() == ["1", "2", "5", "129", "130"]
    assert setting("s3once@.service", "RestartSec") == ["15min"]
    (interval,) = setting("s3once@.service", "StartLimitIntervalSec")
    (burst,) = setting("s3once@.service", "StartLimitBurst")
    assert (interval, burst) == ("4h", "5"), "five runs that wait five minutes each, and the pauses between them, fit"


def test_stopping_the_service_is_no_failure():
    """Neither are files that others hold (4) and a limit that ended the run (6)."""
    assert setting("s3once@.service", "SuccessExitStatus") == ["143 4 6"]
    (seconds,) = setting("s3once@.service", "TimeoutStopSec")
    assert int(seconds) > 10, "longer than the grace"


def test_the_journal_knows_levels(s3once, tmp_path):
    """If standard error is the journal, and only then."""
    tree = make_tree(tmp_path / "tree", {"a": 1})
    errors = tmp_path / "errors"
    argv = ["push", tree, "s3://bucket/p", "--marks", f"sqlite:{tmp_path}/marks.db", "--ca-bundle", tmp_path / "none"]
    argv += ["--give-up-after", "1s"]
    for is_journal in (True, False):
        with open(errors, "wb") as file:
            inode = os.fstat(file.fileno()).st_ino + (not is_journal)
            environment = {**s3once.environment, "AWS_MAX_ATTEMPTS": "1", "JOURNAL_STREAM": f"{os.fstat(file.fileno()).st_dev}:{inode}"}
            run = subprocess.run([s3once.binary(), *argv], stderr=file, stdout=subprocess.DEVNULL, env=environment, timeout=60)
        lines = errors.read_text().splitlines()
        assert run.returncode == 3 and any("error: " in line for line in lines), lines
        for line in lines:
            level = "<3>" if "error: " in line else "<4>" if "warning: " in line else "<6>"
            level = level if is_journal else ""
            assert line.startswith(f"{level}s3once: "), lines
