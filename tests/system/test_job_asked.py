"""`--job NAME` of the commands that ask: the file of the job says where, and root is led to the marks of the units."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.system.harness import make_tree

UNIT_USER = 61235


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree", {"a.log": 10, "sub/b.log": 20})


@pytest.fixture
def jobs(s3once, tmp_path):
    folder = tmp_path / "jobs"
    folder.mkdir()
    s3once.environment["S3ONCE_JOBS"] = str(folder)
    return folder


@pytest.fixture
def nginx(s3once, s3, bucket, jobs, tree, tmp_path):
    """A job whose marks, endpoint and region only its file names."""
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_REGION", "S3ONCE_MARKS"):
        s3once.environment.pop(name, None)
    marks = tmp_path / "m.db"
    text = f"source = {tree}\ntarget = s3://{bucket}/web1\nmarks = sqlite:{marks}\nendpoint-url = {s3.endpoint}\nregion = us-east-1\nmanifest = yes\n"
    (jobs / "nginx.conf").write_text(text)
    assert s3once("run", "nginx").code == 0
    return text


def test_the_name_is_enough(s3once, s3, bucket, nginx, tree):
    run = s3once("status", "--job", "nginx")
    assert run.code == 0 and f"s3://{bucket}/web1/ at {s3.endpoint.removeprefix('http://')}: done 2 files" in run.out, run
    run = s3once("verify", "--job", "nginx")
    assert run.code == 0 and "2 objects are as their marks say" in run.err, run
    run = s3once("manifest", "--job", "nginx")
    (key,) = run.out.splitlines()
    assert run.code == 0 and key.startswith("web1/_s3once/runs/"), run
    run = s3once("manifest", "--job", "nginx", "--format", "json", key)
    assert run.code == 0 and len(run.out.splitlines()) == 2, run
    assert s3once("verify", "--job", "nginx", "--manifest", key).code == 0
    run = s3once("proven", "--job", "nginx", tree / "sub")
    assert (run.code, run.out) == (0, "1 file is in S3\n"), run
    assert s3once("gc", "-n", "--job", "nginx").code == 0
    run = s3once("forget", "--job", "nginx", f"s3://{bucket}/web1/a.log")
    assert run.code == 0 and "forgot 1 mark" in run.out, run
    run = s3once("forget", "--yes", "--job", "nginx")
    assert run.code == 0 and "forgot 1 mark" in run.out, run


def on(host):
    return {"wrap": ("unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', host)}


@pytest.mark.parametrize("template", ["{host}/{path}", "{family}/{host}-{name}"])
def test_verify_of_a_job_leaves_the_objects_of_other_hosts_alone(s3once, s3, bucket, jobs, tree, tmp_path, template):
    """Each host has its marks in a file of its own, and all have one job, with the host in its keys."""
    for host in ("web1", "web2"):
        text = f"source = {tree}\ntarget = s3://{bucket}/logs\nkey = {template}\nmarks = sqlite:{tmp_path}/{host}.db\nmanifest = yes\n"
        (jobs / "nginx.conf").write_text(text)
        assert s3once("run", "nginx", **on(host)).code == 0
    run = s3once("verify", "--job", "nginx", **on("web2"))
    assert run.code == 0 and run.out == "" and "2 objects are as their marks say, by size and etag, 2 of other hosts\n" in run.err, run
    run = s3once("verify", "--json", "--job", "nginx", **on("web2"))
    assert run.code == 0 and (run.events[-1]["same"], run.events[-1]["unknown"], run.events[-1]["of_other_hosts"]) == (2, 0, 2), run
    # Without the job, and for an object that no host makes, nothing has changed.
    assert s3once("verify", "--marks", f"sqlite:{tmp_path}/web2.db", f"s3://{bucket}/logs", **on("web2")).out.count("+ ") == 2
    own = "web2/new" if template.startswith("{host}") else "new/web2-new"
    for key in (own, "stray"):
        s3.client.put_object(Bucket=bucket, Key=f"logs/{key}", Body=b"x")
    run = s3once("verify", "--job", "nginx", **on("web2"))
    assert run.code == 1 and sorted(run.out.splitlines()) == sorted([f"+ logs/{own}", "+ logs/stray"]), run
    # With the marks of web1, the objects of this host have none.
    for key in (own, "stray"):
        s3.client.delete_object(Bucket=bucket, Key=f"logs/{key}")
    (jobs / "nginx.conf").write_text(text.replace("web2.db", "web1.db"))
    run = s3once("verify", "--job", "nginx", **on("web2"))
    assert run.code == 1 and run.out.count("+ ") == 2 and "2 objects are as their marks say" in run.err, run


def test_verify_of_a_job_whose_hosts_share_a_table(s3once, s3, table, bucket, jobs, tree):
    """The marks of all hosts are there, so an object without one is nobody's."""
    assert s3once("init", "--marks", f"dynamodb:{table}").code == 0
    text = f"source = {tree}\ntarget = s3://{bucket}/logs\nkey = {{host}}/{{path}}\nmarks = dynamodb:{table}\n"
    (jobs / "nginx.conf").write_text(text)
    for host in ("web1", "web2"):
        assert s3once("run", "nginx", **on(host)).code == 0
    s3.client.put_object(Bucket=bucket, Key="logs/web1/new", Body=b"x")
    run = s3once("verify", "--job", "nginx", **on("web2"))
    assert run.code == 1 and run.out == "+ logs/web1/new\n" and "4 objects are as their marks say" in run.err, run


def test_verify_of_a_job_on_a_host_that_has_uploaded_nothing(s3once, s3, bucket, jobs, tree, tmp_path):
    text = f"source = {tree}\ntarget = s3://{bucket}/logs\nkey = {{host}}/{{path}}\nmarks = sqlite:{tmp_path}/web1.db\n"
    (jobs / "nginx.conf").write_text(text)
    assert s3once("run", "nginx", **on("web1")).code == 0
    empty = make_tree(tmp_path / "other", {"x": 1})
    assert s3once("push", empty, f"s3://{bucket}/elsewhere", "--marks", f"sqlite:{tmp_path}/web3.db").code == 0
    (jobs / "nginx.conf").write_text(text.replace("web1.db", "web3.db"))
    run = s3once("verify", "--job", "nginx", **on("web3"))
    assert run.code == 1 and run.out == "" and "all objects there are of other hosts: check --marks and the name of this host" in run.err, run


def test_a_question_makes_no_marks(s3once, s3, bucket, jobs, tree):
    """The options of a job are checked as those of a run, which would make its marks and its cache of what files contain."""
    s3once.environment.pop("S3ONCE_MARKS", None)
    (jobs / "app.conf").write_text(f"source = {tree}\ntarget = s3://{bucket}/web1\nrotated = yes\nlive = yes\n")
    assert s3once("config", "app").code == 0
    for command in ("status", "verify", "gc"):
        run = s3once(command, "--job", "app")
        assert run.code == 3 and "yet: push makes them" in run.err, run
    assert not list(s3once.state.rglob("*.db"))


def test_command_line_wins_over_the_job(s3once, bucket, nginx, tmp_path):
    run = s3once("status", "--job", "nginx", "--marks", f"sqlite:{tmp_path}/other.db")
    assert run.code == 3 and "there are no marks at" in run.err, run
    run = s3once("status", "--job", "nginx", f"s3://{bucket}/web1/sub")
    assert run.code == 0 and "done 1 file " in run.out, run


def test_the_environment_of_the_unit(s3once, s3, bucket, jobs, nginx, tree):
    """NAME.env and NAME.credentials count as in the unit, unless a variable is set already."""
    credentials = {name: s3once.environment.pop(name) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
    (jobs / "nginx.conf").write_text("\n".join(line for line in nginx.splitlines() if not line.startswith("region")))
    run = s3once("verify", "--job", "nginx")
    assert run.code == 3, run
    lines = "".join(f"{name.lower()} = {value}\n" for name, value in credentials.items())
    (jobs / "nginx.credentials").write_text(f"[default]\n{lines}")
    (jobs / "nginx.env").write_text("# of the unit\nAWS_REGION='us-east-1'\n")
    run = s3once("verify", "--job", "nginx")
    assert run.code == 0, run
    (jobs / "nginx.env").chmod(0o666)
    run = s3once("verify", "--job", "nginx")
    assert os.geteuid() or (run.code == 2 and "nginx.env: others than root may write it" in run.err), run


def test_a_job_that_cannot_be_read(s3once, jobs):
    for command in ("status", "verify", "forget", "gc", "manifest", "proven"):
        run = s3once(command, "--job", "none")
        assert run.code == 2 and "none.conf: there is no such file" in run.err and run.err.count("error: ") == 1, run


def test_which_files_failed_last_night_and_why(s3once, s3, bucket, jobs, nginx, tree):
    """Also those that have no mark, since they could not even be read."""
    make_tree(tree, {"c.log": 5, "sub/d.log": 5, "e.log": 5})
    (tree / "c.log").chmod(0)
    (tree / "sub").chmod(0)
    s3.client.put_object(Bucket=bucket, Key="web1/e.log", Body=b"somebody else's")
    assert s3once("run", "nginx", unprivileged=True).code == 1
    run = s3once("status", "--job", "nginx")
    lines = run.out.splitlines()
    (at,) = [at for at, line in enumerate(lines) if line.startswith("failed   ") and "/nginx: exit status 1, " in line]
    assert run.code == 0 and "3 failed" in lines[at], run
    told = sorted(line.strip() for line in lines[at + 1 : at + 4])
    assert [line.split(": ")[0] for line in told] == [f"{tree}/c.log", f"{tree}/e.log", f"{tree}/sub"], run
    assert "Permission denied" in told[0] and "Permission denied" in told[2], run
    for place in (f"s3://{bucket}", f"s3://{bucket}/web1/c.log", f"s3://{bucket}/web1/sub"):
        assert f"{tree}/c.log: " in s3once("status", "--job", "nginx", place).out, place
    assert "c.log" not in s3once("status", "--job", "nginx", f"s3://{bucket}/web10").out
    (job,) = [event for event in s3once("status", "--json", "--job", "nginx").events if event["event"] == "job"]
    assert (job["exit"], job["files_failed"], len(job["failures"])) == (1, 3, 3), job
    (jobs / "wider.conf").write_text(nginx.replace(f"source = {tree}", f"source = {tree}/none").replace("/web1", ""))
    assert s3once("run", "wider").code == 1
    assert f"{tree}/none" not in s3once("status", "--job", "nginx").out, "of another job, whose target is above"
    assert f"{tree}/none" in s3once("status", "--job", "wider").out
    (tree / "c.log").chmod(0o644)
    (tree / "sub").chmod(0o755)
    s3.client.delete_object(Bucket=bucket, Key="web1/e.log")
    assert s3once("run", "nginx").code == 0
    run = s3once("status", "--job", "nginx")
    assert "ok       " in run.out and f"{tree}/" not in run.out, run


def test_many_failures(s3once, bucket, nginx, tree):
    """As many as fit are listed, and the others are counted."""
    make_tree(tree, {f"{n:03}-{'x' * 200}": 1 for n in range(200)})
    for path in tree.glob("*x"):
        path.chmod(0)
    assert s3once("run", "-q", "nginx", unprivileged=True).code == 1
    lines = s3once("status", "--job", "nginx").out.splitlines()
    told = [line for line in lines if "Permission denied" in line]
    assert 20 < len(told) < 200 and f"         and {200 - len(told)} more: the log of the run has them" in lines, lines


def test_a_bucket_that_the_marks_do_not_know(s3once, bucket, nginx):
    run = s3once("status", "--job", "nginx", f"s3://{bucket}-x")
    assert run.code == 0 and "these marks know of no file there, nor of the bucket: check its name" in run.out and "done 0" not in run.out, run
    run = s3once("status", "--job", "nginx", f"s3://{bucket}/none/")
    assert run.code == 0 and "these marks know of no file there\n" in run.out, run


@pytest.fixture
def host(s3once, tmp_path, tree, bucket, jobs):
    """A host whose units have marks: what makes a program see it, and be the units' user there."""
    if os.geteuid() != 0:
        pytest.skip("needs root, who asks, and to become another user")
    library = tmp_path / "library"
    (library / "private" / "s3once").mkdir(parents=True, mode=0o700)
    os.chown(library / "private" / "s3once", UNIT_USER, UNIT_USER)
    (library / "s3once").symlink_to("private/s3once")
    s3once.environment.pop("S3ONCE_MARKS", None)
    (jobs / "nginx.conf").write_text(f"source = {tree}\ntarget = s3://{bucket}/web1\n")
    here = ["unshare", "--mount", "sh", "-c", f'mount --bind {library} /var/lib && exec "$@"', "-"]
    read = "+dac_read_search"
    unit = here + ["setpriv", "--reuid", str(UNIT_USER), "--regid", str(UNIT_USER), "--clear-groups", "--inh-caps", read, "--ambient-caps", read]
    return here, [*unit, "--bounding-set", f"-all,{read}", "env", "STATE_DIRECTORY=/var/lib/s3once"]


def test_root_asks_the_units(s3once, bucket, host, tree):
    here, unit = host
    assert s3once("run", "nginx", wrap=unit).code == 0
    run = s3once("status", "--job", "nginx", wrap=here)
    assert run.code == 0 and "marks: sqlite:/var/lib/s3once/marks.db" in run.out and "done 2 files" in run.out and run.err == "", run
    assert s3once("verify", "--job", "nginx", wrap=here).code == 0
    assert s3once("proven", "--job", "nginx", wrap=here).code == 0
    run = s3once("status", f"s3://{bucket}", wrap=here)
    assert run.code == 3 and "the systemd units keep theirs in sqlite:/var/lib/s3once/marks.db, which root reads with --job NAME" in run.err, run
    run = s3once("forget", "--yes", "--job", "nginx", wrap=here)
    assert run.code == 3 and "belongs to another user" in run.err and "systemd-run" in run.err, run


def test_root_has_marks_of_its_own_too(s3once, bucket, host, tree):
    """It is told whose marks it looks at, and where the others are."""
    here, unit = host
    assert s3once("run", "nginx", wrap=unit).code == 0
    assert s3once("push", tree / "sub", f"s3://{bucket}/mine", wrap=here).code == 0
    run = s3once("status", "--job", "nginx", wrap=here)
    assert run.code == 0 and "done 2 files" in run.out, run
    assert "these are the marks of the systemd units" in run.err and "--marks local looks there" in run.err, run
    run = s3once("status", "--job", "nginx", "--marks", "local", f"s3://{bucket}", wrap=here)
    assert run.code == 0 and "done 1 file " in run.out, run
    run = s3once("status", f"s3://{bucket}", wrap=here)
    assert run.code == 0 and "done 1 file " in run.out and "the systemd units keep theirs in sqlite:/var/lib/s3once/marks.db" in run.err, run
    run = s3once("status", f"s3://{bucket}", wrap=unit)
    assert run.code == 0 and "done 2 files" in run.out and run.err == "", run


@pytest.fixture
def user(s3once, tmp_path):
    """(their folder, the host's folder, what makes a program that user's): a user who has jobs on a host that has jobs."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to become another user and to mount")
    etc, home = tmp_path / "etc", Path(tempfile.mkdtemp(prefix="s3once-home-"))
    (etc / "s3once").mkdir(parents=True)
    for name in ("ld.so.cache", "passwd", "nsswitch.conf", "hosts"):
        shutil.copy(f"/etc/{name}", etc)
    (home / ".config/s3once").mkdir(parents=True)
    for folder in (home, home / ".config", home / ".config/s3once"):
        os.chown(folder, UNIT_USER, UNIT_USER)
    for name in ("S3ONCE_JOBS", "S3ONCE_MARKS", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        s3once.environment.pop(name, None)
    s3once.environment["HOME"] = str(home)
    read = "+dac_read_search"  # the folders of the test are root's
    here = ["unshare", "--mount", "sh", "-c", f'mount --bind {etc} /etc && exec "$@"', "-"]
    become = ["setpriv", "--reuid", str(UNIT_USER), "--regid", str(UNIT_USER), "--clear-groups", "--inh-caps", read, "--ambient-caps", read]
    yield home / ".config/s3once", etc / "s3once", [*here, *become, "--bounding-set", f"-all,{read}"]
    shutil.rmtree(home)


def test_jobs_of_a_user(s3once, s3, bucket, tree, user):
    own, hosts, wrap = user
    (own / "notes.conf").write_text(f"source = {tree}\ntarget = s3://{bucket}/mine\n")
    (own / "notes.env").write_text("AWS_ENDPOINT_URL_S3=" + s3once.environment.pop("AWS_ENDPOINT_URL_S3") + "\n")
    run = s3once("run", "notes", wrap=wrap)
    assert run.code == 0 and f"all 2 files are in s3://{bucket}/mine" in run.out, run
    assert (own.parent.parent / ".local/state/s3once/marks.db").exists(), "its marks are the user's"
    for command in ("status", "verify", "proven"):
        run = s3once(command, "--job", "notes", wrap=wrap)
        assert run.code == 0, run
    assert f"{own}/notes.conf" in s3once("config", "notes", wrap=wrap).out
    assert "/notes: succeeded" in s3once("fleet", wrap=wrap).out


def test_jobs_of_a_user_and_of_the_host(s3once, s3, bucket, tree, user):
    """A job of the user hides the host's of the same name; root has those of the host alone, and S3ONCE_JOBS is the only folder."""
    own, hosts, wrap = user
    as_root = wrap[:6]
    target = {folder: f"s3://{bucket}/{name}" for folder, name in ((own, "mine"), (hosts, "hosts"))}
    for folder in (own, hosts):
        (folder / "both.conf").write_text(f"source = {tree}\ntarget = {target[folder]}\n")
    (hosts / "only.conf").write_text(f"source = {tree}\ntarget = {target[hosts]}\n")
    (own / "private.conf").write_text(f"source = {tree}\ntarget = {target[own]}\n")

    def path_of(name, wrap, env=None):
        """The path of the job file that a run would read."""
        run = s3once("config", name, wrap=wrap, env=env)
        assert run.code == 0, run
        (path,) = {path for path in (f"{own}/{name}.conf", f"/etc/s3once/{name}.conf") if path in run.out}
        return path

    assert path_of("both", wrap) == f"{own}/both.conf"
    assert path_of("only", wrap) == "/etc/s3once/only.conf"
    assert path_of("both", as_root) == "/etc/s3once/both.conf"
    assert path_of("both", wrap, {"S3ONCE_JOBS": "/etc/s3once"}) == "/etc/s3once/both.conf"
    assert path_of("private", wrap, {"XDG_CONFIG_HOME": str(own.parent), "HOME": "/"}) == f"{own}/private.conf"
    run = s3once("run", "none", wrap=wrap)
    assert run.code == 2 and f"/etc/s3once/none.conf: there is no such file, nor {own}/none.conf; name a job" in run.err, run
    run = s3once("run", "private", wrap=as_root)
    assert run.code == 2 and "/etc/s3once/private.conf: there is no such file, and root has no jobs in ~/.config; name a job" in run.err, run
