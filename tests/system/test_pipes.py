"""Uploads from a pipe: no object is visible before the producer has ended well, and a key that is done needs no producer."""

import hashlib
import os
import signal
import subprocess

import pytest

from tests.faults import faults
from tests.system.harness import GIB, MIB, content, wait_until
from tests.system.pushing import marks_of

TEXT = b"COPY public.t (id, name) FROM stdin;\n" + b"1\tsome row of a dump\n" * 5000


@pytest.fixture
def producer(tmp_path):
    """producer(script) is a command that runs it, whose words are always the same, and producer.starts() says how often one was
    begun."""
    starts, path = tmp_path / "starts", tmp_path / "script"

    def command(script):
        (tmp_path / "new-script").write_text(f'echo x >>"{starts}"; {script}')
        (tmp_path / "new-script").replace(path)  # an earlier one may still run
        return ("--", "/bin/sh", str(path))

    command.starts = lambda: starts.read_text().count("x") if starts.exists() else 0
    return command


def pushed(bucket, *options, key="db.dump"):
    return ("push", "--lease", "2s", *options, f"s3://{bucket}/{key}")


def from_stdin(bucket, *options, key="db.dump"):
    return ("push", *options, "-", f"s3://{bucket}/{key}")


@pytest.mark.parametrize("marks", ["dynamodb", "sqlite"], indirect=True)
def test_the_output_of_a_command(s3once, s3, bucket, marks, producer):
    """Once it is done its key needs no command, and says so, also if only the object shows it."""
    first = s3once(*pushed(bucket), *producer("printf whole"))
    assert first.code == 0 and s3.get(bucket, "db.dump") == b"whole", first
    mark = marks_of(marks)["db.dump"]
    assert mark["state"] == "done" and mark["size"] == 5 and "upload" not in mark
    again = s3once(*pushed(bucket), *producer("printf other"))
    assert again.code == 0 and "note: db.dump is in S3 already, since " in again.err, again
    assert "ago): the command was not started\n" in again.err, again
    assert s3once("forget", f"s3://{bucket}/db.dump").code == 0
    again = s3once(*pushed(bucket), *producer("printf other"))
    assert again.code == 0 and "ago): the command was not started\n" in again.err, again
    assert producer.starts() == 1 and s3.get(bucket, "db.dump") == b"whole"


@pytest.mark.parametrize("marks", ["dynamodb", "sqlite"], indirect=True)
def test_another_command_is_not_passed_over(s3once, s3, bucket, marks, producer):
    """The second of two dumps under one key fails each time. Standard input cannot be compared."""
    assert s3once(*pushed(bucket), *producer("printf a")).code == 0
    for options in ((), ("-q",), ("--dry-run",)):
        run = s3once(*pushed(bucket, *options), "--", "printf", "b")
        assert run.code == 1 and s3.get(bucket, "db.dump") == b"a", run
        why = "the object under this key was made by another command, so this one was not started; give each command its own key"
        assert f"s3once: error: db.dump: {why}\n" in run.err, run
    run = s3once("fleet")
    assert run.code == 1 and f"db.dump: {why}" in run.out, run
    assert s3once(*pushed(bucket, key="b.dump"), "--", "printf", "b").code == 0 and s3.get(bucket, "b.dump") == b"b"
    assert s3once(*pushed(bucket), *producer("printf a")).code == 0
    assert s3once(*from_stdin(bucket), stdin=b"b").code == 0 and producer.starts() == 1


def test_an_object_that_is_gone_is_made_by_another_command(s3once, s3, bucket, producer):
    """With --reupload alone, and only while the object is gone: nothing is lost by it."""
    assert s3once(*pushed(bucket), *producer("printf a")).code == 0
    other = ("--", "printf", "b")
    assert s3once(*pushed(bucket, key="kept.dump"), *other).code == 0  # an empty bucket would be taken for a new one
    assert s3once(*pushed(bucket, "--reupload"), *other).code == 1 and s3.get(bucket, "db.dump") == b"a"
    s3.client.delete_object(Bucket=bucket, Key="db.dump")
    assert s3once(*pushed(bucket), *other).code == 1
    assert s3once(*pushed(bucket, "--reupload"), *other).code == 0 and s3.get(bucket, "db.dump") == b"b"
    run = s3once(*pushed(bucket), *producer("printf a"))
    assert run.code == 1 and producer.starts() == 1, run


def test_the_command_of_a_found_object_is_not_known(s3once, s3, bucket, producer):
    """The object's mark is lost: the command that finds it has not made it, and the one that has may come back."""
    assert s3once(*pushed(bucket), *producer("printf a")).code == 0
    assert s3once("forget", f"s3://{bucket}/db.dump").code == 0
    run = s3once(*pushed(bucket), "--", "printf", "b")
    assert run.code == 0 and s3.get(bucket, "db.dump") == b"a" and "note: db.dump is in S3 already" in run.err, run
    assert s3once(*pushed(bucket), *producer("printf a")).code == 0 and producer.starts() == 1


def test_output_that_another_command_has_kept_is_not_sent(s3once, s3, s3_wire, bucket, producer, tmp_path):
    (tmp_path / "spool").mkdir()
    options = ("--spool", str(tmp_path / "spool"))
    s3_wire.add(faults.kill_before, "PutObject", nth=1)
    killed = s3once.start(*pushed(bucket, *options), *producer("printf a")).popen.wait(60)
    assert killed == -signal.SIGKILL and len(list((tmp_path / "spool").iterdir())) == 1
    s3_wire.clear()
    run = s3once(*pushed(bucket, *options), "--", "printf", "b")
    assert run.code == 0 and s3.get(bucket, "db.dump") == b"b", run


def age(marks, key, hours):
    """Makes a mark as old as that of another night."""
    mark = marks_of(marks)[key]
    marks.change(mark, "at", mark["at"] - hours * 3600)


@pytest.mark.parametrize("marks", ["sqlite"], indirect=True)
@pytest.mark.parametrize("reads", ["command", "stdin"])
def test_a_night_without_a_backup_is_said(s3once, s3, bucket, marks, producer, reads):
    """A dump under one key for all nights: the second night stores nothing, and no word of it sounds like a backup."""

    def night(*options):
        if reads == "stdin":
            return s3once(*from_stdin(bucket, "-q", *options), stdin=b"dump")
        return s3once(*pushed(bucket, "-q", *options), *producer("printf dump"))

    first = night()
    assert (first.code, first.out, first.err) == (0, "", ""), first
    run = s3once("fleet")
    assert run.code == 0 and "succeeded " in run.out, run
    again = night()  # tried again, or on another host: the same night
    assert (again.code, again.out, again.err) == (0, "", ""), again
    age(marks, "db.dump", 24)
    second = night()
    assert second.code == 0 and "warning: db.dump is in S3 already, since 20" in second.err, second
    assert "(24 h ago)" in second.err and "put the date into the key" in second.err, second
    run = s3once("status", f"s3://{bucket}")
    assert "nothing new" in run.out and "succeeded" not in run.out and "last upload" in run.out, run
    run = s3once("fleet", "--json")
    assert run.code == 0 and run.events[0]["files_uploaded"] == 0 and run.events[0]["last_upload"], run


@pytest.mark.parametrize("marks", ["sqlite"], indirect=True)
def test_a_night_without_a_backup_is_no_success_for_those_who_watch(s3once, s3, bucket, marks, producer, tmp_path):
    told, metrics = tmp_path / "told", tmp_path / "metrics.prom"
    options = ("-q", "--on-success", f"echo yes >>{told}", "--metrics", metrics)

    def last_success():
        (line,) = [line for line in metrics.read_text().splitlines() if line.startswith("s3once_last_success_timestamp_seconds{")]
        return int(line.split()[-1])

    assert s3once(*pushed(bucket, *options), *producer("printf dump")).code == 0
    assert told.read_text() == "yes\n"
    (row,) = [item for item in marks.items() if item["pk"] == "jobs"]
    marks.change(row, "succeeded", row["succeeded"] - 24 * 3600)
    age(marks, "db.dump", 24)
    done_at = marks_of(marks)["db.dump"]["at"]
    run = s3once(*pushed(bucket, *options, "--json"), *producer("printf dump"))
    assert run.code == 0 and run.events[-1]["uploaded_before"], run
    assert told.read_text() == "yes\n" and last_success() == done_at
    run = s3once("fleet", "--quiet")
    assert run.code == 0 and run.out.startswith("repeats ") and run.out.endswith("; last success 24 h ago\n1 job: 1 fine, 1 repeating\n"), run
    run = s3once("fleet", "--expect", "12h")
    assert run.code == 1 and run.out.startswith("overdue "), run


@pytest.mark.parametrize("marks", ["sqlite"], indirect=True)
def test_a_host_whose_key_another_one_has_taken_is_seen(s3once, s3, bucket, marks, producer):
    """It ends with 0 each night, and has never stored anything: the first host was faster."""
    assert s3once(*pushed(bucket), *producer("printf dump")).code == 0
    assert s3once("fleet", "--forget", os.uname().nodename).code == 0  # the next run is that of another host
    run = s3once(*pushed(bucket, "-q"), *producer("printf dump"))
    assert (run.code, run.out, run.err) == (0, "", ""), run
    run = s3once("fleet", "--quiet")
    assert run.code == 0 and run.out.startswith("repeats ") and "no upload yet; no success yet\n" in run.out, run
    (job, sums) = s3once("fleet", "--json").events
    assert job["repeats"] and job["fine"] and sums["repeating"] == 1, job


def test_settings_go_by_the_key(s3once, s3, bucket, tmp_path):
    (tmp_path / "rules").write_text('[rule "printf"]\ncontent-type = text/x-command\n[rule "db/*.json"]\ncontent-type = application/x-key\n')
    run = s3once("push", "--rules", tmp_path / "rules", f"s3://{bucket}/db/x.json", "--", "printf", "{}")
    assert run.code == 0 and s3.client.head_object(Bucket=bucket, Key="db/x.json")["ContentType"] == "application/x-key", run
    options = ("--rules", tmp_path / "rules", "--compress", "gzip", "--header", "Content-Encoding: gzip")
    run = s3once("push", *options, f"s3://{bucket}/db/y.json", "--", "printf", "{}")
    assert run.code == 0 and s3.client.head_object(Bucket=bucket, Key="db/y.json")["ContentType"] == "application/x-key", run


def test_words_behind_the_command_are_its_own(s3once, s3, bucket, tmp_path):
    """Behind "--", -n is not --dry-run, and a second "--" is a word like others."""
    (tmp_path / "list").write_text("10\n9\n")
    run = s3once("push", "-q", f"s3://{bucket}/k", "--", "sort", "-n", str(tmp_path / "list"))
    assert run.code == 0 and s3.get(bucket, "k") == b"9\n10\n", run
    run = s3once("push", f"s3://{bucket}/k2", "--", "echo", "--", "--help", "-q")
    assert run.code == 0 and s3.get(bucket, "k2") == b"-- --help -q\n", run


def test_standard_input(s3once, s3, bucket):
    first = s3once(*from_stdin(bucket), stdin=TEXT)
    assert first.code == 0 and s3.get(bucket, "db.dump") == TEXT, first
    again = s3once(*from_stdin(bucket), stdin=b"other")
    assert again.code == 0 and "nothing was read from standard input" in again.err, again
    assert s3.get(bucket, "db.dump") == TEXT


@pytest.mark.parametrize("size", [1, 5 * MIB, 5 * MIB + 1, 17 * MIB])
def test_sizes(s3once, s3, bucket, size, tmp_path):
    body = content("pipe", size)
    (tmp_path / "body").write_bytes(body)
    command = ("--", "cat", str(tmp_path / "body"))
    run = s3once(*pushed(bucket, "--part-size", "5MiB"), *command)
    assert run.code == 0 and s3.get(bucket, "db.dump") == body, run


@pytest.mark.parametrize(
    "end, told",
    [
        ("exit 3", "ended with exit status 3"),
        ("kill -9 $$", "was ended by signal 9"),
        ("exec /no/such/program", "ended with exit status 127"),
    ],
)
def test_a_producer_that_fails(s3once, s3, bucket, marks, producer, end, told):
    """Nothing of it is visible or left, and the next run takes the key at once. The error names the key: many may come from one program."""
    run = s3once(*pushed(bucket, "--part-size", "5MiB"), *producer(f"head -c 6000000 /dev/zero; {end}"))
    assert run.code == 1 and f"error: db.dump: {told}" in run.err and "after 6000000 bytes" in run.err, run
    assert f"db.dump: {told}" in s3once("fleet").out
    assert not s3.objects(bucket) and not s3.uploads(bucket)
    assert marks_of(marks)["db.dump"]["state"] == "failed"
    again = s3once(*pushed(bucket), *producer("printf well"))
    assert again.code == 0 and s3.get(bucket, "db.dump") == b"well", again


def test_a_command_that_is_not_there(s3once, s3, bucket):
    run = s3once(*pushed(bucket), "--", "no-such-command")
    assert run.code == 1 and "cannot start no-such-command" in run.err and "exit status 127" in run.err, run
    assert not s3.objects(bucket)


def test_no_output_is_an_error(s3once, s3, bucket, producer):
    run = s3once(*pushed(bucket), *producer("exit 0"))
    assert run.code == 1 and "ended without any output" in run.err, run
    assert s3once(*from_stdin(bucket)).code == 1
    assert not s3.objects(bucket)


@pytest.mark.parametrize("codec", ["zstd", "gzip"])
def test_compressed(s3once, s3, bucket, tmp_path, codec):
    (tmp_path / "text").write_bytes(TEXT * 200)
    run = s3once(*pushed(bucket, "--compress", codec), "--", "cat", str(tmp_path / "text"))
    assert run.code == 0, run
    (key,) = s3.objects(bucket)
    assert key == {"zstd": "db.dump.zst", "gzip": "db.dump.gz"}[codec]
    plain = subprocess.run([codec, "-dc"], input=s3.get(bucket, key), capture_output=True, check=True).stdout
    assert plain == TEXT * 200
    again = s3once(*pushed(bucket, "--compress", codec), "--", "cat", str(tmp_path / "text"))
    assert again.code == 0, again
    found = s3once("verify", f"s3://{bucket}")
    assert found.code == 0, found  # the mark knows the suffix


@pytest.mark.parametrize(
    "key, options, output, object_key, is_noted",
    [
        ("db.zst", (), TEXT, "db.zst.zst", True),
        ("db.zst", (), b"\x28\xb5\x2f\xfd" + TEXT, "db.zst", False),  # compressed already
        ("db.zst", ("--header", "content-encoding: zstd"), TEXT, "db.zst", False),
        ("db.gz", (), TEXT, "db.gz.zst", False),
    ],
    ids=["twice", "compressed-already", "by-header", "another"],
)
def test_a_second_suffix_is_noted(s3once, s3, bucket, tmp_path, key, options, output, object_key, is_noted):
    """--compress adds its suffix to any key, also to one that somebody gave the suffix himself."""
    (tmp_path / "text").write_bytes(output)
    run = s3once(*pushed(bucket, "--compress", "zstd", *options, key=key), "--", "cat", str(tmp_path / "text"))
    assert run.code == 0 and set(s3.objects(bucket)) == {object_key}, run
    note = f"s3once: note: the key is {object_key}: --compress adds .zst, so leave it out of the key that you give\n"
    assert (note in run.err) == is_noted, run


def test_existing_object_is_found_before_the_command_starts(s3once, s3, bucket, producer):
    s3.client.put_object(Bucket=bucket, Key="db.dump", Body=b"somebody else's")
    run = s3once(*pushed(bucket), *producer("printf mine"))
    assert run.code == 1 and "exists with unknown content: " in run.err and producer.starts() == 0, run
    assert s3.get(bucket, "db.dump") == b"somebody else's"


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".xz"])
def test_an_object_of_another_key_is_not_the_output(s3once, s3, bucket, tmp_path, producer, suffix):
    """An object that was uploaded under KEY.gz for itself is not what a command makes for KEY, also if that has failed before."""
    (tmp_path / f"db.dump{suffix}").write_bytes(b"another backup")
    assert s3once("push", tmp_path / f"db.dump{suffix}", f"s3://{bucket}").code == 0
    assert s3once(*pushed(bucket), *producer("exit 1")).code == 1
    run = s3once(*pushed(bucket), *producer("printf whole"))
    assert run.code == 0 and producer.starts() == 2 and s3.get(bucket, "db.dump") == b"whole", run


@pytest.mark.parametrize("first, later", [(("--compress", "zstd"), ()), ((), ("--compress", "zstd"))], ids=["zstd-first", "plain-first"])
def test_two_outputs_with_the_same_object_are_a_conflict(s3once, s3, bucket, producer, first, later):
    """The compressed object of db.dump would have the same key as that of db.dump.zst."""
    keys = {(): "db.dump.zst", ("--compress", "zstd"): "db.dump"}
    assert s3once(*pushed(bucket, *first, key=keys[first]), *producer("printf one")).code == 0
    before = s3.get(bucket, "db.dump.zst")
    run = s3once(*pushed(bucket, *later, key=keys[later]), *producer("printf two"))
    assert run.code == 1 and "exists with unknown content: " in run.err and producer.starts() == 1, run
    assert s3.get(bucket, "db.dump.zst") == before


def test_killed_before_the_mark_says_done(s3once, s3, s3_wire, bucket, marks, producer):
    """The object is there: the next run finds it, and the command is not started once more."""
    s3_wire.add(faults.kill_after, "PutObject", nth=1)
    killed = s3once.start(*pushed(bucket), *producer("printf first")).popen.wait(60)
    assert killed == -signal.SIGKILL and s3.get(bucket, "db.dump") == b"first"
    s3_wire.clear()
    run = s3once(*pushed(bucket), *producer("printf second"))
    assert run.code == 0 and producer.starts() == 1 and s3.get(bucket, "db.dump") == b"first", run
    assert marks_of(marks)["db.dump"]["state"] == "done"


@pytest.mark.parametrize("spool", [False, True])
def test_killed_while_parts_are_sent(s3once, s3, s3_wire, bucket, marks, producer, tmp_path, spool):
    """With --spool the upload goes on with the very output that was kept; without it, the command makes another one."""
    folder = tmp_path / "spool"
    folder.mkdir()
    options = ["--part-size", "5MiB", "--concurrency", "1", *(["--spool", str(folder)] if spool else [])]
    script = "head -c 17000000 /dev/urandom"
    s3_wire.add(faults.kill_after, "UploadPart", nth=2)
    killed = s3once.start(*pushed(bucket, *options), *producer(script)).popen.wait(60)
    assert killed == -signal.SIGKILL and not s3.objects(bucket)
    s3_wire.clear()
    kept = [hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()]
    assert len(kept) == spool
    s3_wire.history.clear()
    run = s3once(*pushed(bucket, *options), *producer(script))
    assert run.code == 0 and producer.starts() == (1 if spool else 2), run
    sent = [one.operation.part for one in s3_wire.history if one.kind == "UploadPart"]
    assert sorted(sent) == ([3, 4] if spool else [1, 2, 3, 4])
    assert not spool or s3.sha256(bucket, "db.dump") == kept[0]
    assert not list(folder.iterdir()) and not s3.uploads(bucket)
    assert marks_of(marks)["db.dump"]["state"] == "done"


def test_a_kill_before_the_end_keeps_nothing(s3once, s3, bucket, producer, tmp_path):
    (tmp_path / "spool").mkdir()
    options = ("--spool", str(tmp_path / "spool"))
    running = s3once.start(*pushed(bucket, *options), *producer(f"printf half; echo >{tmp_path}/there; sleep 600"))
    wait_until((tmp_path / "there").exists)
    running.kill()
    running.popen.wait()
    assert not list((tmp_path / "spool").iterdir())
    run = s3once(*pushed(bucket, *options), *producer("printf whole"))
    assert run.code == 0 and s3.get(bucket, "db.dump") == b"whole" and producer.starts() == 2, run


def test_foreign_file_in_the_spool_is_not_uploaded(s3once, s3, bucket, producer, tmp_path):
    """In a folder of others: a link, a pipe without a writer, or a file with a second name, in place of the kept output."""
    spool = tmp_path / "spool"
    spool.mkdir()
    words = producer("printf x")[1:]
    command = hashlib.sha256("".join(f"{word}\0" for word in words).encode()).hexdigest()[:16]
    name = hashlib.sha256(f"{s3.endpoint.removeprefix('http://')}/{bucket}/db.dump\0{command}".encode()).hexdigest()[:32]
    path = spool / f"s3once-{name}"
    (tmp_path / "other").write_bytes(b"of another")
    for make in (lambda: path.symlink_to("/etc/hostname"), lambda: os.mkfifo(path), lambda: path.hardlink_to(tmp_path / "other")):
        make()
        run = s3once(*pushed(bucket, "--spool", str(spool)), *producer("printf x"))
        assert run.code == 1 and "cannot be used" in run.err and producer.starts() == 0, run
        path.unlink()
    assert not s3.objects(bucket)
    path.symlink_to("/etc/hostname")
    assert s3once(*pushed(bucket), *producer("printf x")).code == 0
    run = s3once(*pushed(bucket, "--spool", str(spool)), *producer("printf x"))
    assert run.code == 0 and path.is_symlink(), run


@pytest.mark.parametrize("folder, why", [("absent", "No such file or directory"), ("file", "Not a directory"), ("file/in", "Not a directory")])
def test_a_spool_that_is_no_folder(s3once, bucket, producer, tmp_path, folder, why):
    """It is refused before the key is claimed, and whatever is there stays."""
    (tmp_path / "file").write_bytes(b"not ours")
    run = s3once(*pushed(bucket, "--spool", str(tmp_path / folder)), *producer("printf x"))
    assert run.code == 2 and f"--spool: {tmp_path}/{folder} cannot be used: {why}; name a directory" in run.err and "remove" not in run.err, run
    assert producer.starts() == 0 and (tmp_path / "file").read_bytes() == b"not ours"


@pytest.mark.parametrize("key_bytes, is_refused", [(1020, False), (1021, True), (1024, True)])
def test_a_key_without_room_for_the_suffix(s3once, s3, bucket, producer, key_bytes, is_refused):
    """It is said before anything runs. With --header Content-Encoding there is no suffix."""
    key = "/".join(["k" * 99] * 11)[:key_bytes]
    run = s3once(*pushed(bucket, "--compress", "zstd", key=key), *producer("printf x"))
    if is_refused:
        assert run.code == 1 and "more than 1024 bytes with the .zst that --compress adds" in run.err and producer.starts() == 0, run
        run = s3once(*pushed(bucket, "--compress", "zstd", "--header", "content-encoding: zstd", key=key), *producer("printf x"))
    assert run.code == 0 and len(s3.objects(bucket)) == 1, run


@pytest.mark.parametrize("key", ["k", "a/b.c", "x//y z", "%2F+ä?", "-", "- -"])
def test_the_url_has_the_whole_key(s3once, s3, bucket, producer, key):
    """Byte for byte, as for cp of other tools."""
    assert s3once("push", "-", f"s3://{bucket}/{key}", stdin=b"in").code == 0
    assert s3.get(bucket, key) == b"in" and len(s3.objects(bucket)) == 1
    assert s3once("push", f"s3://{bucket}/{key}2", *producer("printf out")).code == 0
    assert s3.get(bucket, key + "2") == b"out" and len(s3.objects(bucket)) == 2


@pytest.mark.parametrize("sig, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_command_too(s3once, s3, bucket, producer, tmp_path, sig, code):
    """It is asked first, with all that it has started, and ended when it does not hear."""
    script = f"trap 'echo asked >{tmp_path}/asked; exit 1' TERM; printf half; (sleep 600; :) & echo $! >{tmp_path}/there; wait"
    running = s3once.start(*pushed(bucket), *producer(script))
    wait_until(lambda: (tmp_path / "there").exists() and (tmp_path / "there").read_text().strip())
    os.kill(running.pid, sig)
    run = running.wait()
    assert run.code == code and (tmp_path / "asked").exists() and not s3.objects(bucket), run
    other = int((tmp_path / "there").read_text())
    wait_until(lambda: not os.path.exists(f"/proc/{other}") or "Z" in open(f"/proc/{other}/stat").read().split()[2])


def test_a_command_that_cannot_be_ended(s3once, s3, bucket, tmp_path):
    """It has become another user's, as by sudo, and writes nothing: the run ends all the same."""
    if os.geteuid():
        pytest.skip("only root can make a process that belongs to another user")
    pid = tmp_path / "pid"
    command = ("--", "sh", "-c", f"echo $$ >{pid}; exec setpriv --reuid=65534 sleep 200")
    may_not_kill = ("setpriv", "--bounding-set=-kill", "--inh-caps=-kill", "--")
    run = s3once(*pushed(bucket, "--max-duration", "1s", "--grace", "0"), *command, wrap=may_not_kill)
    os.kill(int(pid.read_text()), signal.SIGKILL)
    assert run.code == 6 and "does not end" in run.err and not s3.objects(bucket), run


def test_a_producer_that_stalls(s3once, s3, bucket, producer):
    """It is told, and --max-duration ends it."""
    options = ("--request-timeout", "1s", "--max-duration", "3s")
    run = s3once(*pushed(bucket, *options), *producer("printf half; sleep 600"))
    assert run.code == 6 and "nothing came for 1 s, after 4 bytes" in run.err, run
    assert "--max-duration is over: output that is not whole is dropped, and the next run begins again\n" in run.err, run
    assert not s3.objects(bucket)


def test_two_at_once(s3once, s3, bucket, marks, producer, tmp_path):
    """One claims the key and runs its command; the other one waits, and starts none."""
    script = f"echo >{tmp_path}/there; until [ -e {tmp_path}/go ]; do sleep 0.1; done; printf once"
    first = s3once.start(*pushed(bucket), *producer(script))
    wait_until((tmp_path / "there").exists)
    refused = s3once(*pushed(bucket, "--no-wait"), *producer(script))
    assert refused.code == 4 and "held by another uploader" in refused.err, refused
    second = s3once.start(*pushed(bucket), *producer(script))
    (tmp_path / "go").touch()
    assert first.wait().code == 0 and second.wait().code == 0
    assert producer.starts() == 1 and s3.get(bucket, "db.dump") == b"once"


def test_a_full_disk(s3once, s3, bucket, producer, tmp_path):
    if os.geteuid():
        pytest.skip("only root can mount a small file system")
    spool = tmp_path / "spool"
    spool.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "none", spool], check=True)
    try:
        run = s3once(*pushed(bucket, "--spool", str(spool)), *producer("head -c 5000000 /dev/zero"))
        assert run.code == 1 and "cannot be kept in" in run.err and "No space left on device" in run.err, run
        assert not s3.objects(bucket) and not list(spool.iterdir())
    finally:
        subprocess.run(["umount", spool], check=True)


def test_contradictory_options_are_refused(s3once, bucket):
    for options in (["--min-age", "1m"], ["--if-changed", "replace"], ["--delete-after"], ["--rotated"], ["--exclude", "x"], ["--key", "{name}"]):
        for line in (from_stdin(bucket, *options), (*pushed(bucket, *options), "--", "true")):
            run = s3once(*line)
            assert run.code == 2 and "what comes through a pipe is no file" in run.err, run
    for target in (f"s3://{bucket}", f"s3://{bucket}/", f"s3://{bucket}/db/"):
        for line in (("push", "-", target), ("push", target, "--", "true")):
            run = s3once(*line)
            assert run.code == 2 and "the input has no name of its own: end the URL with the name of the object" in run.err, run
    run = s3once("push", "--as", "k", f"s3://{bucket}", "--", "true")
    assert run.code == 2 and "a pipe has its key in the URL: write s3://BUCKET/KEY without --as" in run.err, run
    run = s3once("push", f"s3://{bucket}/k", "--")
    assert run.code == 2 and "no COMMAND follows --: write s3://BUCKET/KEY -- COMMAND..." in run.err, run
    run = s3once("push", f"s3://{bucket}/k", "touch", "file")
    assert run.code == 2 and "a command is written behind --" in run.err and not os.path.exists("file"), run
    for command in (["ls", "-l"], ["pg_dump", "-h", "/sock", "-Fc", "db"], ["tar", "--create", "."]):
        run = s3once("push", f"s3://{bucket}/k", *command)
        assert run.code == 2 and run.err == "s3once: error: push: a command is written behind --: s3://BUCKET/KEY -- COMMAND...\n", run
    assert "unknown option '-l'" in s3once("push", f"s3://{bucket}/k", "-l", "--", "ls").err
    assert "through a pipe" in s3once("push", "--spool", "/tmp", "/etc/hostname", f"s3://{bucket}").err


def test_a_dry_run_starts_nothing(s3once, s3, bucket, producer):
    run = s3once(*pushed(bucket, "--dry-run"), *producer("printf x"))
    assert run.code == 0 and producer.starts() == 0 and not s3.objects(bucket), run


PEAK = """import resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(code)"""


@pytest.mark.parametrize("size", [96 * MIB, pytest.param(GIB, marks=pytest.mark.full)])
def test_memory_is_flat(s3once, s3, bucket, tmp_path, size):
    """The additional memory for a large dump depends on --memory alone."""
    peaks = []
    s3once.environment["ASAN_OPTIONS"] += ":quarantine_size_mb=1"
    for n in (1, size // len(TEXT)):
        script = f"import sys; row = {TEXT!r}; [sys.stdout.buffer.write(row) for _ in range({n})]"
        wrap = ["/usr/bin/python3", "-c", PEAK, str(tmp_path / "peak")]
        run = s3once(*pushed(bucket, key=str(n)), "--", "/usr/bin/python3", "-c", script, wrap=wrap, timeout=600)
        assert run.code == 0 and s3.objects(bucket)[str(n)].size == n * len(TEXT), run
        peaks.append(int((tmp_path / "peak").read_text()))
    assert peaks[1] - peaks[0] < 40 * 1024, peaks
