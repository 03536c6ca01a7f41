"""`s3once events`: a log of --json reads as the same run without --json would have."""

import base64
import json
import os
import re

import pytest

from tests.system.harness import make_tree

TIME = r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ "


def event(name, **fields):
    return json.dumps({"v": 1, "event": name, "time": "2026-11-21T07:56:28.123Z", **fields})


def without_figures(text):
    """Times, rates and ids are others in each run."""
    text = re.sub(rf"^({TIME}|s3once: )", "", text, flags=re.M)
    text = re.sub(r" in \d.*? s\b.*|request id \S+|up to \d+ requests.*", "", text)
    return sorted(line for line in text.splitlines() if " begins: " not in line and "marks" not in line)


@pytest.mark.parametrize("words", [(), ("-v",), ("-q",), ("-n",)], ids=lambda words: words[0] if words else "plain")
def test_it_reads_as_the_run_itself(s3once, s3, bucket, tmp_path, words):
    """Of files that were uploaded, were there, failed, and have names that are no text."""
    tree = make_tree(tmp_path / "tree", {"a": 2000, "there": b"there", "other": b"o", b"bad\xff\x1b[31m": b"x", "caf\u00e9\n": b"x"})
    log, own = tmp_path / "log", [word for word in words if word != "-n"]
    prefixes = ("p", "q")  # each has the same objects
    for prefix in prefixes:
        s3.client.put_object(Bucket=bucket, Key=f"{prefix}/there", Body=b"there")
        s3.client.put_object(Bucket=bucket, Key=f"{prefix}/other", Body=b"another's")
    plain = s3once("push", *words, tree, f"s3://{bucket}/p")
    assert s3once("push", "--json", *words, "--log-file", log, tree, f"s3://{bucket}/q").code == plain.code
    run = s3once("events", *own, log)
    assert (run.code, run.err) == (0, ""), run
    assert "\x1b" not in run.out and all(re.match(TIME, line) for line in run.out.splitlines()), run
    assert without_figures(run.out.replace(f"{bucket}/q", f"{bucket}/p")) == without_figures(plain.out + plain.err)
    if "-q" not in words:
        assert re.search(rf"^{TIME}a (dry )?run begins: s3://{bucket}/q, marks: ", run.out, re.M), run


def test_lines_that_are_no_events(s3once, tmp_path):
    """Each is named, the others are printed, and what comes from outside steers no terminal."""
    log = tmp_path / "log"
    lines = [
        event("start", version="1", bucket="b\x1b[2J", prefix="p", marks="m\x1b", marks_shared=False, dry_run=False),
        "not json", "[]", '{"v": 1}', "", event("mark", key="x"), event("proven", path="x", key="x"), event("uploaded", path="x"),
        event("uploaded", path="x", key="k", bytes=1).replace('"v": 1', '"v": 2'),
        event("failed", path="p\x1b[31m", path_bytes=base64.b64encode(b"p\xff").decode(), key="k", text="t\x1b[0m", code="C\x1b", request_id="r"),
        event("uploaded", path="x", key="k", bytes=1)[:-9], "x" * (1 << 21), event("summary", files=1, seconds=1e300),
        event("uploaded", path="/tree/x", key="k", bytes=1),
    ]  # fmt: skip
    log.write_text("\n".join(lines) + "\n")
    run = s3once("events", "-v", log)
    left_out = {int(n): why for n, why in re.findall(r"^s3once: warning: line (\d+) (.*): it is left out$", run.err, re.M)}
    assert run.code == 1 and sorted(left_out) == [2, 3, 4, 6, 7, 8, 9, 11, 12, 13], run
    assert left_out[2] == left_out[11] == "is not JSON, or only a part of a line" and left_out[4] == "is no event of s3once"
    assert "another command" in left_out[6] and "later version" in left_out[9] and "1 MiB" in left_out[12]
    assert run.out.splitlines() == [
        "2026-11-21T07:56:28Z a run begins: s3://b\\x1b[2J/p, marks: m\\x1b",
        "2026-11-21T07:56:28Z error: p\\xff: t\\x1b[0m (C\\x1b, request id r)",
        "2026-11-21T07:56:28Z uploaded /tree/x -> s3://b\\x1b[2J/k (1 B)",
    ]
    log.write_text("x\n" * 40)
    run = s3once("events", log)
    assert run.err.count("is left out") == 10 and "40 lines were left out in all" in run.err, run


def test_a_log_that_is_written_meanwhile(s3once, tmp_path):
    """Each line is printed when it comes; two jobs are not taken for one."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    running = s3once.start("events", "-v", pipe)
    with open(pipe, "w") as log:
        for job in "ab":
            print(event("start", job=job, bucket=f"of-{job}", prefix="", marks="m", marks_shared=True, dry_run=False), file=log)
        for job in "ab":
            print(event("uploaded", job=job, path=f"/{job}", key="k", bytes=1024), file=log, flush=True)
            while f"uploaded /{job} -> s3://of-{job}/k (1.0 KiB)" not in running.output()[0]:
                assert running.popen.poll() is None
    assert running.wait().code == 0


@pytest.mark.parametrize("words, code, sentence", [
    (["no-such"], 3, "events: cannot read no-such: No such file or directory"),
    (["."], 3, "events: cannot read .: Is a directory"),
    (["a", "b"], 2, "events: 'b': one FILE at a time; cat several into standard input"),
    ([""], 2, "events: the name of FILE is empty"),
])  # fmt: skip
def test_what_cannot_be_read(s3once, words, code, sentence):
    run = s3once("events", *words)
    assert (run.code, run.out, run.err) == (code, "", f"s3once: error: {sentence}\n"), run
