"""--metrics: what monitoring is told of the last run, in a form that Prometheus's own tools read."""

import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.faults import faults
from tests.system.harness import REPOSITORY, make_tree
from tests.system.pushing import summary

OLD = 1_600_000_000


def promtool(*words, **how):
    """Prometheus's own check, where its package is installed."""
    if shutil.which("promtool"):
        run = subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True, timeout=60, **how)
        assert run.returncode == 0 and not run.stderr.strip(), run


def read(path):
    """{(name, label of its own): value} of a file whose samples all have the same other labels."""
    text = path.read_text()
    promtool("check", "metrics", input=text)
    found, common = {}, set()
    for family in text_string_to_metric_families(text):
        assert family.type == "gauge" and family.documentation and family.name.startswith("s3once_")
        for sample in family.samples:
            labels = dict(sample.labels)
            common.add((labels.pop("job", None), labels.pop("target")))
            key = (sample.name.removeprefix("s3once_"), *labels.values())
            assert key not in found
            found[key] = sample.value
    assert len(common) == 1
    assert path.stat().st_mode & 0o7777 == 0o644
    assert [each.name for each in path.parent.iterdir() if each.name.startswith(path.name)] == [path.name]
    return common.pop(), found


@pytest.fixture
def metrics(tmp_path):
    (tmp_path / "collected").mkdir()
    return tmp_path / "collected" / "s3once.prom"


def test_a_run_that_succeeds(s3once, bucket, metrics, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 10, "b": 20})
    before = int(time.time())
    run = s3once("push", tree, f"s3://{bucket}/p", "--metrics", metrics, "--json")
    assert run.code == 0, run
    labels, found = read(metrics)
    assert labels == (None, f"s3://{bucket}/p")
    assert before <= found["last_success_timestamp_seconds",] <= time.time()
    assert found["last_run_timestamp_seconds",] == found["last_success_timestamp_seconds",]
    assert found["last_run_exit_status",] == 0 and found["last_run_duration_seconds",] > 0
    assert found["last_run_files", "uploaded"] == 2 and found["last_run_bytes", "sent"] == 30
    told = summary(run)
    assert {key[1]: value for key, value in found.items() if key[0] == "last_run_requests"} == told["requests"]
    assert ("oldest_unshipped_timestamp_seconds",) not in found, "all is shipped"
    assert [key[1:] for key in found if key[0] == "build_info"][0][0] == s3once("--version").out.split()[1]


@pytest.mark.real_s3
def test_a_failed_run_keeps_the_last_success(s3once, bucket, metrics, tmp_path):
    """And says how old the oldest file is that has not been shipped."""
    tree = make_tree(tmp_path / "tree", {"a": 10})
    command = ("push", tree, f"s3://{bucket}/p", "--metrics", metrics)
    assert s3once(*command).code == 0
    metrics.write_text(re.sub(r"(?m)^(s3once_last_success.*) \d+$", r"\1 1234567890", metrics.read_text()))
    (tree / "a").write_bytes(b"changed")
    os.utime(tree / "a", (OLD, OLD))
    assert s3once(*command).code == 1
    _, found = read(metrics)
    assert found["last_success_timestamp_seconds",] == 1234567890 and found["last_run_exit_status",] == 1
    assert found["last_run_files", "refused"] == 1 and found["oldest_unshipped_timestamp_seconds",] == OLD
    # A run that sees no files knows nothing better.
    run = s3once(*command, env={"AWS_SECRET_ACCESS_KEY": "wrong"})
    assert run.code == 3, run
    _, found = read(metrics)
    assert found["last_success_timestamp_seconds",] == 1234567890 and found["last_run_exit_status",] == 3
    assert found["oldest_unshipped_timestamp_seconds",] == OLD
    assert s3once(*command, "--if-changed=skip").code == 0
    _, found = read(metrics)
    assert ("oldest_unshipped_timestamp_seconds",) not in found
    assert found["last_success_timestamp_seconds",] > 1234567890


@pytest.mark.real_s3
def test_another_target_has_another_past(s3once, bucket, metrics, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 10})
    assert s3once("push", tree, f"s3://{bucket}/p", "--metrics", metrics).code == 0
    run = s3once("push", tree, f"s3://{bucket}/p2", "--metrics", metrics, env={"AWS_SECRET_ACCESS_KEY": "wrong"})
    assert run.code == 3, run
    labels, found = read(metrics)
    assert labels[1] == f"s3://{bucket}/p2" and ("last_success_timestamp_seconds",) not in found


def test_young_files_wait(s3once, bucket, metrics, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 10, "b": 10})
    now = int(time.time())
    os.utime(tree / "a", (now - 3600, now - 3600))
    assert s3once("push", tree, f"s3://{bucket}", "--metrics", metrics, "--min-age", "1d").code == 0
    _, found = read(metrics)
    assert found["last_run_files", "waiting"] == 2 and found["oldest_unshipped_timestamp_seconds",] == now - 3600


def test_files_that_failed_in_the_scan_count_as_unshipped(s3once, bucket, metrics, tmp_path):
    """A name that cannot be a key is not shipped either."""
    tree = make_tree(tmp_path / "tree", {"a": 10})
    name = os.fsencode(tree) + b"/\xff"
    os.close(os.open(name, os.O_CREAT))
    os.utime(name, (OLD, OLD))
    assert s3once("push", tree, f"s3://{bucket}", "--metrics", metrics).code == 1
    _, found = read(metrics)
    assert found["last_run_files", "failed"] == 1 and found["oldest_unshipped_timestamp_seconds",] == OLD


def test_a_stopped_run(s3once, s3, bucket, s3_wire, metrics, tmp_path):
    """Files under way, and files that were not reached, do not count as shipped."""
    tree = make_tree(tmp_path / "tree", {f"f{i:02}": 100 for i in range(80)})
    for i, path in enumerate(sorted(tree.iterdir())):
        os.utime(path, (OLD + i, OLD + i))
    held = s3_wire.add(faults.hold_request, "PutObject", times=None)
    running = s3once.start("push", tree, f"s3://{bucket}", "--metrics", metrics, "--concurrency", "2", "--grace", "0")
    assert held.reached.wait(60), running.output()
    running.kill(signal.SIGTERM)
    assert running.wait().code == 143
    _, found = read(metrics)
    assert found["last_run_exit_status",] == 143 and ("last_success_timestamp_seconds",) not in found
    assert found["last_run_files", "unfinished"] > 70
    assert OLD <= found["oldest_unshipped_timestamp_seconds",] < OLD + 80


def test_a_dry_run_writes_nothing(s3once, bucket, metrics, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 10})
    assert s3once("push", "-n", tree, f"s3://{bucket}", "--metrics", metrics).code == 0
    assert not metrics.exists()


def test_names_are_escaped(s3once, bucket, metrics, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 10})
    assert s3once("push", tree, f's3://{bucket}/a"b\\c\nd', "--metrics", metrics).code == 0
    (_, target), _ = read(metrics)
    assert target == f's3://{bucket}/a"b\\c\nd'
    job = os.fsencode(tmp_path) + b"/\xff.conf"
    with open(job, "w") as file:
        file.write(f"source = {tree}\ntarget = s3://{bucket}\nmetrics = {metrics}\n")
    assert s3once("run", job).code == 0
    (name, _), _ = read(metrics)
    assert name == r"\xff"



def test_jobs(s3once, bucket, metrics, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 10})
    jobs = {}
    for name in ("one", "two"):
        jobs[name] = tmp_path / f"{name}.conf"
        jobs[name].write_text(f"source = {tree}\ntarget = s3://{bucket}/{name}\nmetrics = {metrics.parent}/{name}.prom\n")
    assert s3once("run", *jobs.values()).code == 0
    for name in jobs:
        (job, target), found = read(metrics.parent / f"{name}.prom")
        assert (job, target) == (name, f"s3://{bucket}/{name}") and found["last_run_exit_status",] == 0
    # The text of a metric is the same in all files of a collector.
    helps = [re.findall("^# .*", path.read_text(), re.M) for path in metrics.parent.iterdir()]
    assert helps[0] == helps[1]
    run = s3once("run", *jobs.values(), "--metrics", metrics)
    assert run.code == 2 and "the jobs one and two both write --metrics" in run.err, run


@pytest.mark.parametrize(
    "path, sentence",
    [
        ("{tmp}", "--metrics: {tmp} is a directory: name a file in it, such as {tmp}/s3once.prom"),
        ("/dev/null", "--metrics: /dev/null is no regular file, and would be replaced by one: name another"),
    ],
)
def test_a_place_that_is_none(s3once, bucket, tmp_path, path, sentence):
    tree = make_tree(tmp_path / "tree", {"a": 10})
    run = s3once("push", tree, f"s3://{bucket}", "--metrics", path.format(tmp=tmp_path))
    assert run.code == 2 and sentence.format(tmp=tmp_path) in run.err, run


def test_a_folder_that_is_gone_stops_no_upload(s3once, s3, bucket, tmp_path):
    """node_exporter was removed: files are uploaded, and each report names the missing folder."""
    tree = make_tree(tmp_path / "tree", {"a": 10})
    told = tmp_path / "told"
    job = tmp_path / "app.conf"
    path = tmp_path / "none" / "s3once.prom"
    job.write_text(f"source = {tree}\ntarget = s3://{bucket}\nmetrics = {path}\non-failure = cat > {told}\n")
    run = s3once("run", "-q", job)
    reason = f"--metrics: cannot write {path}: No such file or directory; make its directory, or name the one that node_exporter reads"
    assert run.code == 1 and f"error: {reason}\n" in run.err and set(s3.objects(bucket)) == {"a"}, run
    body = json.loads(told.read_text())
    assert body["exit"] == 1 and [failure["text"] for failure in body["failures"]] == [reason], body


def test_a_file_that_cannot_be_written(s3once, s3, bucket, metrics, tmp_path):
    """The files are uploaded all the same, and the run says what is wrong by its exit status, too."""
    tree = make_tree(tmp_path / "tree", {"a": 10})
    assert s3once("push", tree, f"s3://{bucket}", "--metrics", metrics).code == 0
    before = metrics.read_bytes()
    metrics.parent.chmod(0o555)
    try:
        command = ("push", tree, f"s3://{bucket}/2", "--metrics", metrics, "--json")
        run = s3once(*command, unprivileged=True)
    finally:
        metrics.parent.chmod(0o755)
    assert run.code == 1 and f"--metrics: cannot write {metrics}: " in run.err, run
    assert summary(run)["exit"] == 1 and summary(run)["uploaded"] == 1
    assert metrics.read_bytes() == before and len(list(metrics.parent.iterdir())) == 1


def names_in(expression):
    return set(re.findall(r"\bs3once_\w+", expression))


def written_metrics(s3once, bucket, metrics, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a.log": 10})
    with (tree / "a.log").open("ab"):
        assert s3once("push", tree, f"s3://{bucket}", "--metrics", metrics, "--rotated").code == 0
    return set(re.findall(r"^# TYPE (\w+)", metrics.read_text(), re.M))


def test_the_alert_rules(s3once, bucket, metrics, tmp_path):
    rules = REPOSITORY / "config" / "prometheus-rules.yml"
    promtool("check", "rules", rules)
    (group,) = yaml.safe_load(rules.read_text())["groups"]
    used = set().union(*(names_in(rule["expr"]) for rule in group["rules"]))
    assert len(used) >= 3 and used <= written_metrics(s3once, bucket, metrics, tmp_path)
    for rule in group["rules"]:
        assert rule["alert"].startswith("S3once") and rule["annotations"]["summary"] and rule["labels"]["severity"]


def test_the_dashboard(s3once, bucket, metrics, tmp_path):
    dashboard = json.loads((REPOSITORY / "config" / "grafana-dashboard.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    used = set().union(*map(names_in, expressions))
    written = written_metrics(s3once, bucket, metrics, tmp_path)
    assert len(expressions) >= 5 and used <= written
    # And the page lists exactly what is written.
    page = (REPOSITORY / "docs" / "operations.md").read_text()
    assert set(re.findall(r"^\| `(s3once_(?!watch_)\w+)", page, re.M)) == written
