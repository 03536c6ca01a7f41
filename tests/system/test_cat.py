"""s3once cat: the lines of a log from its objects, in order and once, and what is missing by name."""

import fcntl
import gzip
import os
import random
import re
import shutil
import struct
import subprocess
import termios
from datetime import datetime, timedelta, timezone

import pytest

from tests.faults import faults
from tests.faults.faults import hold_reply
from tests.system.harness import MIB, REPOSITORY, content, wait_until

UTC = timezone.utc
LIVE = ["--rotated", "--live", "--min-age", "0s"]
KEY = re.compile(r"-(\d{8}T\d{6})Z-[0-9a-f]{8}\.log(?:~(\d+))?(?:\.\w+)?$")


class Nginx:
    """An access log, its rotation by logrotate, and the uploader that runs now and then, on days of the past."""

    def __init__(self, s3once, bucket, folder):
        self.s3once, self.url, self.folder = s3once, f"s3://{bucket}/web1/nginx", folder
        self.live, self.written, self.now, self.chosen = folder / "access.log", b"", None, random.Random(17)
        folder.mkdir()

    def write(self, at, lines=None):
        self.now = at
        text = b"".join(
            b'10.0.0.1 - - [%s] "GET /%d HTTP/1.1" 200\n' % ((at + timedelta(seconds=i)).strftime("%d/%b/%Y:%H:%M:%S +0000").encode(), self.chosen.randrange(1 << 60))
            for i in range(lines or self.chosen.randrange(1, 40))
        )
        with open(self.live, "ab") as file:
            file.write(text)
        self.written += text
        ns = int(at.timestamp()) * 10**9 + self.chosen.randrange(10**9)
        os.utime(self.live, ns=(ns, ns))

    def rotate(self, tool):
        """Rotates like logrotate with delaycompress: each log is compressed a night later, and keeps its time."""
        first, names = self.folder / "access.log.1", sorted(self.folder.glob("access.log.[2-9].*"), reverse=True)
        for path in names:
            number = int(path.name.split(".")[2])
            path.rename(path.with_name(f"access.log.{number + 1}{path.suffix}")) if number < 4 else path.unlink()
        if first.exists():
            suffix = {"gzip": "gz", "zstd": "zst", "xz": "xz", "bzip2": "bz2"}[tool]
            second = self.folder / "access.log.2"
            first.rename(second)
            subprocess.run([tool, "-q", second], check=True)
            made = second.with_name(f"access.log.2.{suffix}")
            assert made.exists()
            second.unlink(missing_ok=True)
        self.live.rename(first)

    def push(self, *options, code=0):
        run = self.s3once("push", self.folder, self.url, *LIVE, *options)
        assert run.code == code, run
        return run

    def cat(self, *options, code=0, **how):
        run = self.s3once("cat", self.url + "/access.log", *options, **how)
        assert run.code == code, run
        return run


def moment(key):
    return datetime.strptime(KEY.search(key)[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)


def lose_marks(s3once):
    shutil.rmtree(s3once.state)


@pytest.fixture
def nginx(s3once, bucket, tmp_path):
    return Nginx(s3once, bucket, tmp_path / "nginx")


def test_a_month(nginx, s3once, s3, s3_wire, bucket):
    """Rotated each night, compressed by all tools, sent in pieces by day, with runs that are killed, and with marks that are lost twice."""
    begin = datetime(2026, 10, 1, tzinfo=UTC)
    for day in range(30):
        night = begin + timedelta(days=day)
        compress = ["--compress", "zstd"] if day > 9 else []
        for hour in (2, 9, 10, 17):
            nginx.write(night + timedelta(hours=hour))
            if day in (6, 13) and hour == 9:
                held = s3_wire.add(hold_reply, "PutObject")
                running = s3once.start("push", nginx.folder, nginx.url, *LIVE, *compress)
                assert held.reached.wait(60), running.output()
                running.kill()
                running.wait()
                s3_wire.clear()
            elif (day + hour) % 3 == 0:
                nginx.push(*compress)
        if day in (11, 20):
            lose_marks(s3once)
            nginx.write(night + timedelta(hours=20))
            nginx.push(*compress)
        nginx.write(night + timedelta(hours=23, minutes=59))
        nginx.rotate(nginx.chosen.choice(["gzip", "zstd", "xz", "bzip2"]))
        if day % 4:
            nginx.write(night + timedelta(days=1, minutes=1))
            nginx.push(*compress)
    nginx.push()
    assert sum("~" in key for key in s3.objects(bucket)) > 20 and any(key.endswith(".zst") for key in s3.objects(bucket))
    run = nginx.cat()
    assert run.out.encode() == nginx.written
    assert "are not repeated" in run.err and "error" not in run.err, "the marks were lost, and lines were sent twice"
    # An hour, by the times of the objects.
    times = sorted({moment(key) for key in s3.objects(bucket)})
    for since, until in (("2026-10-03 09:00", "2026-10-03 10:30"), ("2026-10-22 00:00", "2026-10-24 00:00")):
        run = nginx.cat("--from", since, "--to", until, env={"TZ": "UTC"})
        first, last = (datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=UTC) for text in (since, until))
        before, behind = max(at for at in times if at < first), min(at for at in times if at >= last)
        lines = [line for line in nginx.written.decode().splitlines(True) if before + timedelta(minutes=1) < datetime.strptime(line[14:34], "%d/%b/%Y:%H:%M:%S").replace(tzinfo=UTC) <= behind + timedelta(minutes=1)]
        assert lines and run.out == "".join(lines) and run.err == "", (since, until)
        listed = nginx.cat("--list", "--from", since, "--to", until, env={"TZ": "UTC"}).out.splitlines()
        want = sorted(key for key in s3.objects(bucket) if before < moment(key) <= behind)
        assert [line.split("s3://")[1] for line in listed] == [f"{bucket}/{key}" for key in want]
        for line, key in zip(listed, want):
            assert line.split()[:2] == [moment(key).strftime("%Y-%m-%dT%H:%M:%SZ"), str(len(s3.get(bucket, key)))]


def pieces(nginx, n=4):
    """A log in n pieces, and another one behind it. Returns what each object has."""
    texts = []
    for i in range(n + 1):
        if i == n:
            nginx.rotate("gzip")
        size = len(nginx.written)
        nginx.write(datetime(2026, 11, 1, 8 + i, tzinfo=UTC))
        nginx.push()
        texts.append(nginx.written[size:].decode())
    return texts


def test_lines_that_were_sent_twice(nginx, s3once, s3, bucket, tmp_path):
    """With marks of before, whose next piece overlaps another one, and with none, which begin the log again; also where only the last
    of them is asked for, and the log's beginning is not looked at."""
    texts = []

    def go_on(hour):
        size = len(nginx.written)
        nginx.write(datetime(2026, 11, 1, hour, tzinfo=UTC))
        nginx.push()
        texts.append(nginx.written[size:].decode())
        return len(s3.objects(bucket))

    go_on(0)
    shutil.copytree(s3once.state, tmp_path / "copy")
    go_on(1)
    shutil.rmtree(s3once.state)
    (tmp_path / "copy").rename(s3once.state)
    assert go_on(2) == 3
    overlapping = max(key for key in s3.objects(bucket))
    assert overlapping.endswith(f"~{len(texts[0])}") and len(s3.get(bucket, overlapping)) == len(texts[1] + texts[2])
    run = nginx.cat()
    assert run.out == "".join(texts) and f"{overlapping}: its first {len(texts[1])} bytes are in objects before it, and are not repeated" in run.err, run
    for hour in range(3, 14):
        go_on(hour)
    lose_marks(s3once)
    go_on(14)
    whole = max(key for key in s3.objects(bucket))
    assert s3.get(bucket, whole) == nginx.written
    go_on(15)
    assert nginx.cat().out == "".join(texts)
    for first in (13, 14, 15):
        run = nginx.cat("--from", f"2026-11-01T{first:02}:00:00Z")
        assert run.out == "".join(texts[first:]) and "error" not in run.err, run


def test_a_missing_piece_is_named(nginx, s3, bucket):
    """Within the log, at its beginning, and before the time that is asked for."""
    texts = pieces(nginx)
    keys = sorted(s3.objects(bucket))
    assert nginx.cat().out == "".join(texts)
    s3.client.delete_object(Bucket=bucket, Key=keys[1])
    run = nginx.cat(code=1)
    ends = [len("".join(texts[: i + 1])) for i in range(4)]
    want = f"error: s3://{bucket}/{keys[2]}: the bytes of the log from {ends[0]} to {ends[1]} are missing before it: there is no object web1/nginx/access-….log~{ends[0]}"
    assert want in run.err and run.out == "".join([texts[0], *texts[2:]]), run
    run = nginx.cat("--from", "2026-11-01T10:00:00Z", "--to", "2026-11-01T10:30:00Z", code=1)
    assert want in run.err and run.out == texts[2] + texts[3], run
    assert nginx.cat("--from", "2026-11-01T11:00:00Z").out == texts[3] + texts[4]
    s3.client.delete_object(Bucket=bucket, Key=keys[0])
    run = nginx.cat(code=1)
    assert f"from 0 to {ends[1]} are missing before it: there is no object web1/nginx/access-….log\n" in run.err, run


def test_unreadable_object_is_named(nginx, s3, s3_wire, bucket):
    """An archived object, one removed after the listing, and a denied one. The first two are reported, and the rest is printed."""
    texts = pieces(nginx)
    keys = sorted(s3.objects(bucket))
    s3_wire.add(faults.answer(403, "InvalidObjectState"), "GetObject", key=keys[1], times=None)
    run = nginx.cat(code=1)
    assert f"error: s3://{bucket}/{keys[1]}: it is archived" in run.err and f"aws s3api restore-object --bucket {bucket} --key '{keys[1]}'" in run.err, run
    assert run.out == "".join([texts[0], *texts[2:]]) and "missing" not in run.err
    s3_wire.clear()
    s3_wire.add(faults.answer(404, "NoSuchKey"), "GetObject", key=keys[2], times=None)
    run = nginx.cat(code=1)
    assert f"error: s3://{bucket}/{keys[2]}: it was removed after it was listed" in run.err, run
    assert run.out == "".join([*texts[:2], *texts[3:]])
    s3_wire.clear()
    s3_wire.add(faults.answer(403, "AccessDenied"), "ListObjectsV2", times=None)
    run = nginx.cat(code=3)
    assert "allow s3:ListBucket" in run.err and run.out == "", run


def test_a_damaged_object_is_not_printed_to_its_end(nginx, s3, bucket):
    """Its last lines are not printed, the next object begins a line, and a compressed one that is cut off is told likewise."""
    texts = pieces(nginx)
    keys = sorted(s3.objects(bucket))
    head = s3.client.head_object(Bucket=bucket, Key=keys[1])
    s3.client.put_object(Bucket=bucket, Key=keys[1], Body=texts[1].encode().replace(b"GET", b"PUT"), Metadata=head["Metadata"])
    run = nginx.cat(code=1)
    assert f"error: s3://{bucket}/{keys[1]}: it is damaged" in run.err and run.out == "".join([texts[0], *texts[2:]]), run
    s3.client.put_object(Bucket=bucket, Key=keys[1], Body=gzip.compress(content("large", MIB))[:-9], Metadata=head["Metadata"])
    assert "it cannot be decompressed" in nginx.cat(code=1).err


def test_an_object_that_another_client_has_replaced(nginx, s3, bucket):
    """Its name has the checksum of the content. Without the metadata of s3once, that alone decides."""
    texts = pieces(nginx)
    keys = sorted(s3.objects(bucket))
    s3.client.put_object(Bucket=bucket, Key=keys[0], Body=texts[0].encode())
    assert nginx.cat().out == "".join(texts)
    other = s3.client.head_object(Bucket=bucket, Key=keys[2])["Metadata"]
    for body, metadata in ((b"other\n", {}), (texts[2].encode(), {}), (texts[2].encode(), other)):
        s3.client.put_object(Bucket=bucket, Key=keys[1], Body=body, Metadata=metadata)
        run = nginx.cat(code=1)
        assert f"error: s3://{bucket}/{keys[1]}: another client has replaced it: the SHA-256" in run.err, run
        assert run.out == "".join([texts[0], *texts[2:]]), run


def test_a_reader_that_goes_away(nginx, s3once, s3, bucket):
    nginx.write(datetime(2026, 11, 1, tzinfo=UTC), lines=100_000)
    nginx.push()
    for options in ([], ["--list"]):
        reading, writing = os.pipe()
        os.close(reading)
        argv = [s3once.binary(), "cat", *options, nginx.url + "/access.log"]
        run = subprocess.run(argv, env=s3once.environment, stdout=writing, stderr=subprocess.PIPE, timeout=60)
        os.close(writing)
        assert (run.returncode, run.stderr) == (0, b""), run
    with open("/dev/full", "wb") as full:
        run = subprocess.run(argv[:2] + argv[-1:], env=s3once.environment, stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert run.returncode == 1 and b"cannot write to standard output: No space left" in run.stderr, run


def test_a_pipe_that_another_process_has_made_nonblocking(nginx, s3once, bucket):
    nginx.write(datetime(2026, 11, 1, tzinfo=UTC), lines=100_000)
    nginx.push()
    reading, writing = os.pipe()
    size = fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writing, False)
    argv = [s3once.binary(), "cat", nginx.url + "/access.log"]
    process = subprocess.Popen(argv, env=s3once.environment, stdout=writing, stderr=subprocess.PIPE)
    wait_until(lambda: struct.unpack("i", fcntl.ioctl(reading, termios.FIONREAD, bytes(4)))[0] == size, what="a full pipe")
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        text = file.read()
    assert (process.communicate(timeout=60)[1], process.returncode) == (b"", 0)
    assert text == nginx.written


def test_standard_output_that_takes_no_more(s3once, s3, bucket, tmp_path):
    """The error of the write is not taken for that of an object, although xz and zstd have the same one (EFBIG)."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for day in (1, 2):
        log = folder / f"app.log.{day}"
        log.write_bytes(b"%062d\n\n" % day * (MIB >> 6))  # each piece that is written ends a line
        os.utime(log, (10**9 - day, 10**9 - day))
    assert s3once("push", folder, f"s3://{bucket}/web1", "--rotated").code == 0
    run = s3once("cat", f"s3://{bucket}/web1/app.log", wrap=["prlimit", "--fsize=102400", "--"])
    assert run.code == 1 and run.err == "s3once: error: cat: cannot write to standard output: File too large\n", run


def test_nothing_is_found(nginx, s3once, s3, bucket):
    """No such log, or nothing of that time: exit 1, and why."""
    assert f"there is no log s3://{bucket}/web1/nginx/access.log" in nginx.cat(code=1).err
    pieces(nginx, n=1)
    run = nginx.cat("--from", "2026-11-02", code=1)
    assert "nothing of access.log is from that time: the time of its last object is 2026-11-01T09:00:00Z" in run.err, run
    # A name that begins alike is another log's.
    (nginx.folder / "access-error.log").write_bytes(b"other\n")
    nginx.push()
    assert nginx.cat().out == nginx.written.decode()
    assert s3once("cat", nginx.url + "/access-error.log").out == "other\n"


@pytest.mark.parametrize(
    "words, why",
    [
        (["s3://bkt/p/access.log", "--from", "yesterday"], "--from yesterday is not a time"),
        (["s3://bkt/p/access.log", "--from", "2026-02-30"], "--from 2026-02-30 is not a time"),
        (["s3://bkt/p/access.log", "--to", "25:00"], "--to 25:00 is not a time"),
        (["s3://bkt/p/access.log", "--from", "2026-11-02", "--to", "2026-11-01 23:59"], "--to is before --from"),
        (["s3://bkt/p/"], "names no log"),
        (["s3://bkt"], "names no log"),
        (["access.log"], "or give --job"),
        (["s3://bkt/p/access-20261101T080000Z-0f3c9a61.log~60.zst"], "is one object of a log: name the log, access.log"),
        (["s3://bkt/p/a.log", "s3://bkt/p/b.log"], "name one log"),
        (["s3://bkt/p/access.log", "--since", "1d"], "s3once cat --from TIME does that"),
    ],
)
def test_wrong_words(s3once, words, why):
    run = s3once("cat", *words)
    assert run.code == 2 and why in run.err and run.out == "", run


def test_times_are_local_unless_they_say_utc(nginx):
    texts = pieces(nginx)  # at 8, 9, 10 … in UTC
    for since, want in (("2026-11-01T10:00:00Z", 2), ("2026-11-01 11:00", 2), ("2026-11-01 11:00:01", 3), ("2026-11-01T10:00:01Z", 3), ("2026-11-01", 0)):
        assert nginx.cat("--from", since, env={"TZ": "CET-1"}).out == "".join(texts[want:]), since
    assert nginx.cat("--from", "2026-11-01 10:00", "--to", "10:30", env={"TZ": "CET-1"}).out == "".join(texts[1:3])


def test_a_job(nginx, s3once, s3, bucket, tmp_path):
    """The target, the service and the key come from its file. Keys that cat cannot put into order are refused."""
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    s3once.environment["S3ONCE_JOBS"] = str(jobs)
    lines = [f"source = {nginx.folder}", f"target = s3://{bucket}/logs", "rotated = yes", "live = yes", "min-age = 0s"]

    def job(name, *more):
        (jobs / f"{name}.conf").write_text("\n".join([*lines, *more]) + "\n")

    job("plain")
    job("host", "key = {host}/x/{dir}{stem}-{mtime:%Y%m%dT%H%M%SZ}-{id:8}{ext}")
    job("days", "key = {mtime:%Y/%m/%d}/{stem}-{mtime:%Y%m%dT%H%M%SZ}-{id:8}{ext}")
    job("zone", "key = {stem}-{mtime:%Y%m%dT%H%M%SZ}-{id:8}{ext}", "time-zone = Europe/Berlin")
    job("names", "key = {dir}{name}-{mtime:%s}")
    (nginx.folder / "sub").mkdir()
    (nginx.folder / "sub" / "error.log").write_bytes(b"bad\n")
    nginx.write(datetime(2026, 11, 1, tzinfo=UTC))
    for name in ("plain", "host"):
        assert s3once("run", name).code == 0
        for log in ("access.log", nginx.live):
            run = s3once("cat", "--job", name, log)
            assert run.code == 0 and run.out == nginx.written.decode(), run
        assert s3once("cat", "--job", name, "sub/error.log").out == "bad\n"
    for name in ("days", "zone", "names"):
        run = s3once("cat", "--job", name, "access.log")
        assert run.code == 2 and f"job {name}: its key" in run.err and "restore.md" in run.err, run
    (jobs / "whole.conf").write_text("\n".join(lines[:2]) + "\n")
    run = s3once("cat", "--job", "whole", "access.log")
    assert run.code == 2 and "job whole has no rotated = yes" in run.err, run
    assert "name a log of the job" in s3once("cat", "--job", "plain").err
    assert "is not below the source of job plain" in s3once("cat", "--job", "plain", "/etc/passwd").err


def test_equal_logs_are_printed_as_often_as_they_were_written(s3once, s3, bucket, tmp_path):
    """Logs without times: some are equal, and one begins with all of another. None of them is a repetition."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for number, text in enumerate([b"ok\n", b"ok\n", b"ok\nwarning\n", b"ok\n"]):
        path = folder / f"cron.log.{4 - number}"
        path.write_bytes(text)
        os.utime(path, (1793500000 + 60 * number,) * 2)
    assert s3once("push", folder, f"s3://{bucket}/p", "--rotated", "--min-age", "0s").code == 0
    run = s3once("cat", f"s3://{bucket}/p/cron.log")
    assert (run.code, run.out, run.err) == (0, "ok\nok\nok\nwarning\nok\n", ""), run


def test_large_objects_in_flat_memory(s3once, s3, bucket, tmp_path):
    """Many ranges, objects sent in parts, and a compressed one: the same bytes, and memory that does not grow with them."""
    folder = tmp_path / "logs"
    folder.mkdir()
    whole = b""
    for number, size in ((3, 30 * MIB), (2, 90 * MIB), (1, 40 * MIB)):
        block = content(f"log {number}", MIB).hex().encode()[: MIB - 1] + b"\n"
        text = block * (size // MIB)
        path = folder / f"big.log.{number}"
        path.write_bytes(text)
        os.utime(path, (1793500000 - 60 * number,) * 2)
        whole += text
    subprocess.run(["zstd", "-q", "--rm", "-1", folder / "big.log.2"], check=True)
    os.utime(folder / "big.log.2.zst", (1793500000 - 120,) * 2)
    assert s3once("push", folder, f"s3://{bucket}/p", "--rotated", "--min-age", "0s", "--part-size", "8MiB").code == 0
    out = tmp_path / "out"
    with open(out, "wb") as file:
        process = subprocess.Popen([s3once.binary(), "cat", f"s3://{bucket}/p/big.log"], env=s3once.environment, stdout=file)
        _, status, usage = os.wait4(process.pid, 0)
    assert status == 0 and out.read_bytes() == whole
    sanitized = b"__asan_init" in s3once.binary().read_bytes() if hasattr(s3once.binary(), "read_bytes") else True
    assert usage.ru_maxrss < (900 if sanitized else 160) * 1024, usage
