"""S3ONCE_* variables: each option of a job has one, and the job's file and the command line win over it."""

from pathlib import Path

import pytest

from tests.system.harness import make_tree
from tests.system.pushing import summary


@pytest.fixture
def job(tmp_path, bucket):
    tree = make_tree(tmp_path / "tree", {"a.log": 10, "a.tmp": 20, "b.old": 30})

    def write(*lines):
        file = tmp_path / "night.conf"
        file.write_text("\n".join([f"source = {tree}", f"target = s3://{bucket}/p", *lines, ""]))
        return file

    return write


def settings(run):
    """{name: [(value, from), …]} of config --json."""
    found = {}
    for event in run.events:
        if event["event"] == "setting":
            found.setdefault(event["name"], []).append((event["value"], event["from"]))
    return found


def test_environment_then_file_then_command_line(s3once, s3, bucket, job):
    file = job("exclude = *.tmp", "storage-class = STANDARD")
    env = {"S3ONCE_EXCLUDE": "*.old", "S3ONCE_METADATA": "from=environment", "S3ONCE_STORAGE_CLASS": "GLACIER"}
    run = s3once("run", file, "--json", env=env)
    assert run.code == 0 and set(s3.objects(bucket)) == {"p/a.log"}, run
    assert s3.client.head_object(Bucket=bucket, Key="p/a.log")["Metadata"]["from"] == "environment"
    run = s3once("run", file, "--include", "*.old", "--metadata", "from=words", env=env)
    assert run.code == 0 and set(s3.objects(bucket)) == {"p/a.log", "p/b.old"}, run
    assert s3.client.head_object(Bucket=bucket, Key="p/b.old")["Metadata"]["from"] == "words"


def test_push_takes_variables(s3once, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 10, "b": 20})
    run = s3once("push", tree, f"s3://{bucket}", env={"S3ONCE_DRY_RUN": "yes", "S3ONCE_JSON": "yes", "S3ONCE_MAX_SIZE": "15"})
    assert run.code == 0 and summary(run)["planned"] == 1 and summary(run)["oversized"] == 1, run
    run = s3once("push", tree, f"s3://{bucket}", "--max-size", "1M", env={"S3ONCE_DRY_RUN": "no", "S3ONCE_JSON": "", "S3ONCE_MAX_SIZE": "15"})
    assert run.code == 0 and "uploaded 2" in run.out, run


def test_config_says_where_each_is_from(s3once, job, tmp_path):
    file = job("min-age = 3m", "no-wait = yes", "exclude = *.tmp")
    env = {
        "S3ONCE_MIN_AGE": "5m",
        "S3ONCE_PART_SIZE": "32M",
        "S3ONCE_NO_WAIT": "no",
        "S3ONCE_LEASE": "10s",
        "S3ONCE_TAG": "a=1",
        "S3ONCE_TAG_2": "b=2",
        "S3ONCE_FULL_SCAN": "1h",
        "S3ONCE_REGION": "eu-central-1",
        "S3ONCE_MARKS": f"sqlite:{tmp_path}/marks",
        "S3ONCE_CHECKSUM": "sha256",
    }
    run = s3once("config", file, "--json", env=env)
    assert run.code == 0, run
    found = settings(run)
    assert found["min-age"] == [("3m", f"line 3 of {file}")] and found["no-wait"] == [("yes", f"line 4 of {file}")]
    assert found["part-size"] == [("32M", "S3ONCE_PART_SIZE")] and found["full-scan"] == [("1h", "S3ONCE_FULL_SCAN")]
    assert found["tag"] == [("a=1", "S3ONCE_TAG"), ("b=2", "S3ONCE_TAG_2")]
    assert found["lease"] == [("10s", "S3ONCE_LEASE")]
    assert found["region"] == [("eu-central-1", "S3ONCE_REGION")] and found["checksum"] == [("sha256", "S3ONCE_CHECKSUM")]
    assert found["marks"] == [(f"sqlite:{tmp_path}/marks", "S3ONCE_MARKS")]
    found = settings(s3once("config", file, "--json", "--region", "eu-west-1", "--marks", "local", env=env))
    assert found["region"] == [("eu-west-1", "--region")] and found["marks"] == [("local", "--marks")]
    found = settings(s3once("config", "--json", env=env))
    assert found["region"] == [("eu-central-1", "S3ONCE_REGION")] and "part-size" not in found


@pytest.mark.parametrize("option", ["ping-url", "metrics", "on-success", "on-failure"])
def test_config_shows_no_secret(s3once, job, option):
    """The unit s3once-final@ prints it into the journal."""
    variable = "S3ONCE_" + option.replace("-", "_").upper()
    for line, env, words in [(f"{option} = https://host/secret", {}, "line 3"), ("", {variable: "https://host/secret"}, variable)]:
        for how in [], ["--json"]:
            run = s3once("config", job(line), *how, env=env)
            assert run.code == 0 and option in run.out and words in run.out and "/secret" not in run.out, run


def test_the_marks_of_a_job_win_over_the_environment(s3once, job, tmp_path):
    """Also for those who ask about the job, in whose environment a unit would find other ones."""
    file = job(f"marks = sqlite:{tmp_path}/of-job", "live = no")
    other = {"S3ONCE_MARKS": f"sqlite:{tmp_path}/of-environment"}
    assert s3once("run", file, env=other).code == 0
    run = s3once("status", "--job", file, "--json", env=other)
    assert run.code == 0 and run.events[-1]["done"] == 3, run
    assert not (tmp_path / "of-environment").exists()
    assert s3once("status", "--json", env=other).code == 3, "no such marks"


def test_a_job_without_a_file(s3once, s3, bucket, tmp_path):
    """As in a container, where the whole job is in the environment."""
    tree = make_tree(tmp_path / "tree", {"a": 10, "b.tmp": 20})
    env = {"S3ONCE_JOBS": str(tmp_path), "S3ONCE_SOURCE": str(tree), "S3ONCE_TARGET": f"s3://{bucket}/p", "S3ONCE_EXCLUDE": "*.tmp"}
    run = s3once("run", "pod", env=env)
    assert run.code == 0 and set(s3.objects(bucket)) == {"p/a"} and "warning" not in run.err, run


@pytest.mark.parametrize(
    "name, words",
    [
        ("S3ONCE_MIN_AEG", "; did you mean S3ONCE_MIN_AGE?"),
        ("S3ONCE_TAG_3", "; did you mean S3ONCE_TAG?"),
        ("S3ONCE_PORT_9000_TCP", ""),
        ("S3ONCE_HELP", ""),
    ],
)
def test_a_variable_of_no_option_is_told(s3once, job, name, words):
    for command in ("run", "config"):
        run = s3once(command, job(), env={name: "1m", "S3ONCE_TAG": "a=b"})
        assert run.code == 0 and f"warning: the variable {name} sets no option{words}\n" in run.err, run


def test_a_variable_of_no_option_in_the_file_of_a_job(s3once, job):
    """Outside of the unit, which has them in its environment, too."""
    path = Path(job())
    env = {"S3ONCE_JOBS": str(path.parent)}
    path.with_suffix(".env").write_text("S3ONCE_MIN_AEG=1m\nS3ONCE_TAG=a=b\nS3ONCE_TAG_2=c=d\nAWS_REGION=eu-west-1\n")
    for command in ("run", "config"):
        run = s3once(command, path.stem, env=env)
        words = f"warning: {path.with_suffix('.env')}: the variable S3ONCE_MIN_AEG sets no option; did you mean S3ONCE_MIN_AGE?\n"
        assert run.code == 0 and words in run.err and run.err.count("the variable") == 1, run
    run = s3once("run", path.stem, env=env | {"S3ONCE_MIN_AEG": "1m"})  # what is set already counts
    assert run.err.count("the variable") == 1, run


def test_variables_of_others_are_not(s3once, job):
    names = ["S3ONCE_OPTIONS", "S3ONCE_LOCKS", "S3ONCE_LOCK_KEY", "S3ONCE_LOCK_FD", "S3ONCE_JOB", "S3ONCE_STATUS", "S3ONCE_COUNT_FILES"]
    run = s3once("run", job(), env=dict.fromkeys(names, "1") | {"S3ONCE_MIN_AEG": ""})
    assert run.code == 0 and "the variable" not in run.err, run


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("MIN_AGE", "soon", "'soon' is not"),
        ("NO_WAIT", "perhaps", "'perhaps' is neither yes nor no"),
        ("CHECKSUM", "crc", "'crc' is not one of"),
        ("BWLIMIT", "5X", "'5X' is not a size"),
    ],
)
def test_a_wrong_value_is_an_error(s3once, job, name, value, words):
    for argv in (("run", job()), ("push", "/tmp", "s3://bucket"), ("config", job())):
        run = s3once(*argv, env={f"S3ONCE_{name}": value})
        assert run.code == 2 and f"S3ONCE_{name}: {words}" in run.err, run
    assert s3once("run", "--help", env={f"S3ONCE_{name}": value}).code == 0


def test_contradictions_are_told(s3once, job, tmp_path):
    run = s3once("push", tmp_path, "s3://bucket", "--as", "k", env={"S3ONCE_KEY": "x"})
    assert run.code == 2 and "--as and --key contradict each other" in run.err and "environment" in run.err, run
    run = s3once("run", job("key = x"), env={"S3ONCE_AS": "k"})
    assert run.code == 2 and "S3ONCE_AS and key contradict each other" in run.err, run
    run = s3once("run", job("no-wait = yes"), "-v", env={"S3ONCE_NO_WAIT": "no", "S3ONCE_QUIET": "yes"})
    assert run.code == 0 and "uploaded" in run.out, run


def test_the_marks_of_a_host_contradict_nothing_that_needs_none(s3once):
    variables = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "S3ONCE_MARKS": "dynamodb:t"}
    run = s3once("verify", "--manifest", "m", "s3://bucket", env=variables)
    assert run.code == 3 and "the key of its manifest in this bucket" in run.err, run
    run = s3once("verify", "--manifest", "m", "--marks", "dynamodb:t", "s3://bucket", env=variables)
    assert run.code == 2 and "--manifest and --marks contradict each other" in run.err, run
