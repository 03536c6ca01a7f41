"""The display of a run on terminals of several widths. The picture in README is made here."""

import html
import os
import re
import time

import pytest

from tests.servers.uplink import Uplink
from tests.system.harness import KIB, MIB, REPOSITORY, make_tree, wait_until
from tests.system.terminal import Terminal, picture

FILES = {f"access.log-202611{day:02}": 300_000 + 1000 * day for day in range(1, 22)} | {"app.log-20261121": 6 * MIB}
PICTURE = REPOSITORY / "docs" / "run.svg"


async def hold_its_body(x, rule):
    x.fire(rule)
    await x.hold(rule)
    await x.proxy.pass_on(x)


def run_of_22_files(terminal, s3_wire, bucket, folder):
    """Plays a run whose large file comes last. Returns what the screen showed then; the run has ended."""
    make_tree(folder / "var/log/app", FILES)
    rule = s3_wire.add(hold_its_body, "PutObject", key="web1/app.log-20261121")
    running = terminal.start("push", "var/log/app", f"s3://{bucket}/web1", cwd=folder)
    assert rule.reached.wait(60)
    reached = time.monotonic()
    wait_until(lambda: any(row.startswith("21 of 22 files") for row in terminal.rows[-2:]), what="the progress line")
    shown = terminal.rows
    wait_until(lambda: time.monotonic() - reached > 0.6, what="a run of which the summary tells the rate")
    rule.released.set()
    assert running.wait(60) == 0, terminal.rows
    return shown


@pytest.mark.parametrize(("columns", "language"), [(40, "C"), (80, "C.UTF-8"), (132, "C.UTF-8"), (200, "C")])
def test_progress_fits_the_terminal(s3once, s3_wire, bucket, tmp_path, columns, language):
    with Terminal(s3once, columns, LC_ALL=language) as terminal:
        shown = run_of_22_files(terminal, s3_wire, bucket, tmp_path)
        wait_until(lambda: "uploaded 22" in "".join(terminal.rows), what="the summary")
    *said, progress = shown
    if columns > 100:
        progress, largest = said.pop(), progress
        assert re.fullmatch(r"\S*var/log/app/app\.log-20261121: [\d.]+ (MiB|B) of 6\.0 MiB \(\d+%\)", largest), largest
        assert "app.log-20261121:" not in "\n".join(terminal.rows), "the second line is left behind"
    assert not [row for row in said if " of 22" in row], "it is one line that is drawn again and again"
    assert re.match(r"21 of 22 files(, [\d.]+ MiB of [\d.]+ MiB)? \(\d+%\)", progress) and len(progress) < columns
    assert ("in flight" in progress) == (columns >= 80) and not re.search(r"[,( ]$", progress), progress
    assert not re.search("files, .* in flight", "\n".join(terminal.rows)), "the line is left behind"
    assert language == "C.UTF-8" or terminal.bytes.isascii()


def seconds_of(left):
    """The seconds of "59 s", "1:05" or "1:00:05"."""
    total = 0
    for part in left.removesuffix(" s").split(":"):
        total = 60 * total + int(part)
    return total


def test_the_time_that_is_left(s3once, s3, bucket, tmp_path):
    """Small files, which take the time of their requests, and then large ones, which take that of their bytes: after ten
    seconds and until the last three, the time that is shown is right within a factor of two, nine times of ten: a host that is busy
    for a part of the run changes its speed. By files alone or by bytes alone, it would be wrong by a factor of eight."""
    small, large = 1000, 3
    tree = make_tree(tmp_path / "tree", {f"a/{i}": 4 * KIB for i in range(small)} | {f"b/{i}": 20 * MIB for i in range(large)})
    shown = []  # (when, seconds left)
    with Uplink(s3, 3 * MIB, delay=0.1) as line, Terminal(s3once, 80) as terminal:
        s3once.environment["AWS_ENDPOINT_URL_S3"] = terminal.environment["AWS_ENDPOINT_URL_S3"] = line.endpoint
        began = time.monotonic()
        running = terminal.start("push", "--concurrency", "8", tree, f"s3://{bucket}")
        while running.poll() is None:
            found = re.findall(r", ([\d:]+(?: s)?) left", "\n".join(terminal.rows))
            if found:
                shown.append((time.monotonic() - began, seconds_of(found[-1])))
            time.sleep(0.05)
        took = time.monotonic() - began
        assert running.wait(60) == 0, terminal.rows
    judged = [(at, left, took - at) for at, left in shown if at >= 10 and took - at >= 3]
    assert took > 18 and len(judged) > 50, (took, shown)
    wrong = [each for each in judged if not each[2] / 2 - 1 <= each[1] <= 2 * each[2] + 1]
    assert 10 * len(wrong) <= len(judged), (took, len(judged), wrong)


def like(text):
    """Without figures and what stands for them: those differ in each run."""
    text = re.sub(r", [\w ]+ left", "", text)  # nobody knows it in the first second
    return re.sub(r"[\d.,]+ ?(KiB|MiB|GiB|B|s|%)?\b", "0", text)


def test_picture_of_a_run(s3once, s3_wire, bucket, tmp_path):
    """S3ONCE_PICTURES=1 writes it anew."""
    command = "$ s3once push var/log/app s3://logs/web1"
    with Terminal(s3once, 100, S3ONCE_MARKS="local") as terminal:
        terminal.say(command + "\r\n")
        during = run_of_22_files(terminal, s3_wire, bucket, tmp_path)
        terminal.say(command + "\r\n")
        assert terminal.start("push", "var/log/app", f"s3://{bucket}/web1", cwd=tmp_path).wait(60) == 0
        wait_until(lambda: "uploaded 0" in "".join(terminal.rows), what="the second summary")
    rows = [row.replace(bucket, "logs") for row in during + ["", "(some moments later)", ""] + terminal.rows]
    drawn = picture(rows)
    if os.environ.get("S3ONCE_PICTURES"):
        PICTURE.write_text(drawn)
    shown = re.findall(r"<text [^>]*>(.*)</text>", PICTURE.read_text())
    assert [like(html.unescape(row)) for row in shown] == [like(row) for row in rows if row], rows


def test_the_screens_of_the_comparison(s3once, s3_wire, bucket, tmp_path):
    """Those of s3once, on 80 columns. Those of rclone are pasted."""
    page = (REPOSITORY / "docs" / "comparison.md").read_text().split("## A run beside rclone's")[1].split("\n## ")[0]
    blocks = [block for block in re.findall(r"```\n(.*?)```", page, re.S) if block.startswith("$ s3once")]
    shown = [line for block in blocks for line in block.splitlines() if not line.startswith("$ ")]
    with Terminal(s3once, 80, S3ONCE_MARKS="local") as terminal:
        during = run_of_22_files(terminal, s3_wire, bucket, tmp_path)
        assert terminal.start("push", "var/log/app", f"s3://{bucket}/web1", cwd=tmp_path).wait(60) == 0
        wait_until(lambda: "uploaded 0" in "".join(terminal.rows), what="the second summary")
    rows = {like(row.replace(bucket, "logs")) for row in during + terminal.rows}
    assert len(shown) == 5 and {like(line) for line in shown} <= rows, (shown, rows)
