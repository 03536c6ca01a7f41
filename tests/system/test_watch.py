"""`s3once watch`: what comes to rest is uploaded some seconds later, whatever happens to folders, kernel, server and program."""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.faults import faults
from tests.faults.preloads import preload_library, preloaded
from tests.system.harness import make_tree, wait_until
from tests.system.pushing import told
from tests.system.watching import Watched


@pytest.fixture
def watched(s3once, bucket, tmp_path):
    return Watched(s3once, bucket, tmp_path)


def summaries(running):
    return told(running.result(None), "summary")


# --- files


def test_file_at_rest_is_uploaded(watched, s3, bucket):
    """Files that are there, that come, in folders that come, and that are renamed into place; without another full scan."""
    make_tree(watched.tree, {"before": 5})
    os.utime(watched.tree / "before", (1, 1))
    watched.start()
    make_tree(watched.tree, {"a": 10, "new/deep/b": 20})
    watched.rename_in("c", 30)
    figures = watched.manager.pass_with(files=4)
    assert "STATUS=Watching 1 folder: 1 full scan, 0 passes over some folders, 0 of both failed; uploaded 1 file (5 B)" in watched.manager.lines
    assert (figures["full"], figures["failed"], figures["folders"]) == (1, 0, 3)
    s3.assert_same(watched.tree, bucket, "p")
    run = watched.stop()
    assert run.code == 0 and not run.err.count("error"), run
    assert run.err.count(f"s3once: note: watching {watched.tree} for s3://{bucket}/p\n") == 1, run


def test_a_folder_of_a_touched_file_is_not_listed(watched, s3, bucket, tmp_path):
    """It may have a million other files."""
    make_tree(watched.tree, {"one/a": 1, "one/two/b": 1})
    trace = tmp_path / "trace"
    watched.s3once.environment["ASAN_OPTIONS"] = "detect_leaks=0"  # which cannot be while it is traced
    watched.start(wrap=["strace", "-f", "-y", "-e", "trace=getdents64", "-o", str(trace)])
    watched.manager.pass_with(files=2)

    def listings():
        return trace.read_text(errors="replace").count(f"<{watched.tree}")

    before = listings()
    watched.rename_in("one/c", 1)
    watched.rename_in("one/two/d", 1)
    watched.manager.pass_with(files=4)
    s3.assert_same(watched.tree, bucket, "p")
    assert before and listings() == before


def test_a_time_in_the_future_says_nothing(watched, s3, bucket):
    """Like a file of a host whose clock is ahead: it rests by the time of its last change on this host."""
    watched.start()
    path = watched.folder / "elsewhere"
    make_tree(watched.folder, {path.name: 10})
    os.utime(path, (time.time() + 86400, time.time() + 86400))
    path.rename(watched.tree / "a")
    watched.manager.pass_with(files=1)
    s3.assert_same(watched.tree, bucket, "p")
    assert watched.stop().code == 0


@pytest.mark.full
def test_a_pass_looks_at_touched_files_alone(watched, s3, bucket):
    make_tree(watched.tree, {"one/a": 1, "one/b": 1, "two/c": 1, "one/deep/d": 1})
    for path in watched.tree.rglob("?"):
        os.utime(path, (1, 1))
    watched.start()
    watched.rename_in("one/e", 1)
    watched.manager.pass_with(files=5)
    run = watched.stop(signal.SIGINT)
    assert [(each["uploaded"], each["skipped"]) for each in told(run, "summary")] == [(4, 0), (1, 0)]


@pytest.mark.full
def test_file_being_written_waits(watched, s3, bucket):
    """During its writes it is not even checked, since a pass costs requests."""
    watched.write(min_age="2s", json="no")
    gaps, over = [], threading.Event()

    def write():
        with open(watched.tree / "growing", "wb", buffering=0) as file:
            last = time.monotonic()
            while not over.wait(0.02):
                file.write(b"x")
                now = time.monotonic()
                gaps.append(now - last)
                last = now

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_until((watched.tree / "growing").exists)
        watched.start(env={"WATCHDOG_USEC": "1000000"})
        ticks = 0
        while ticks < 10:  # each half a second, while nothing is done
            watched.manager.next_line("WATCHDOG=1")
            ticks += 1
        told_so_far = [line for line in watched.manager.lines if line.startswith("STATUS=Watching")]
        if max(gaps) < 1.5:  # else the host let the file rest
            assert "growing" not in "".join(s3.objects(bucket)) and len(told_so_far) <= 3, told_so_far
    finally:
        over.set()
        writer.join()
    watched.manager.pass_with(files=1)
    s3.assert_same(watched.tree, bucket, "p")


@pytest.mark.full
def test_excluded_files_cause_no_pass(watched, s3, bucket):
    watched.write("exclude = *.tmp", "exclude = cache/")
    watched.start()
    make_tree(watched.tree, {"a.tmp": 1, "cache/x": 1})
    watched.rename_in("b", 1)
    figures = watched.manager.pass_with(files=1)
    assert (figures["some"], figures["folders"]) == (1, 1)
    assert set(s3.objects(bucket)) == {"p/b"}


def test_a_file_of_patterns_counts_as_it_is_at_each_full_scan(watched, s3, bucket):
    """A folder that it no longer excludes is watched from then on, so that its files need no full scan."""

    def folders_after_two_passes():  # the first of which may have begun before the change
        return [watched.manager.pass_ended()["folders"] for _ in range(2)][1]

    make_tree(watched.tree, {"sub/old": 1})
    patterns = watched.folder / "patterns"
    patterns.write_text("/sub/\n")
    watched.write(f"exclude-from = {patterns}", full_scan="1s")
    assert watched.start()["folders"] == 1
    patterns.write_text("*.part\n")
    assert folders_after_two_passes() == 2
    wait_until(lambda: set(s3.objects(bucket)) == {"p/sub/old"}, 60, "the file that was excluded before")
    patterns.write_text("/sub/\n")
    assert folders_after_two_passes() == 1


@pytest.mark.full
def test_a_source_that_is_a_file(watched, s3, bucket):
    """Changes of files beside it cause no pass."""
    source = watched.rename_in("one", 10)
    watched.write(source=source)
    watched.start()
    watched.manager.pass_with(files=1)  # the file was young
    watched.rename_in("other", 10)
    source.unlink()
    watched.rename_in("one", b"other content")
    assert watched.manager.pass_ended()["failed"] == 1
    assert "changed since it was uploaded" in watched.running.output()[0]
    assert set(s3.objects(bucket)) == {"p/one"}


@pytest.mark.full
def test_keys_of_a_template(watched, s3, bucket):
    """Its keys may be the same for files of two folders, so that all are looked at."""
    watched.write("key = {name}")
    watched.start()
    make_tree(watched.tree, {"x/a": 1})
    assert watched.manager.pass_with(files=1)["some"] == 0
    make_tree(watched.tree, {"y/a": 2})
    assert watched.manager.pass_with(failed=1)["files"] == 1
    assert set(s3.objects(bucket)) == {"p/a"}


def test_a_log_that_rotates(watched, s3, bucket):
    """The live log waits for its rotation, and is not looked at again and again until then."""
    watched.write("rotated = yes")
    (watched.tree / "app.log").write_bytes(b"one\n")
    watched.start()
    with open(watched.tree / "app.log", "ab") as live:
        live.write(b"two\n")
        (watched.tree / "app.log").rename(watched.tree / "app.log.1")
    (watched.tree / "app.log").write_bytes(b"three\n")
    watched.manager.pass_with(files=1)
    (key,) = s3.objects(bucket)
    assert s3.get(bucket, key) == b"one\ntwo\n"
    run = watched.stop()
    assert len(told(run, "summary")) <= 4, run


@pytest.mark.full
def test_files_are_removed(watched, s3, bucket):
    """The removal itself is no reason for another pass."""
    watched.write("delete-after = yes", f"metrics = {watched.folder}/watch.prom")
    watched.start(env={"WATCHDOG_USEC": "1000000"})
    watched.rename_in("sub/a", 10)
    figures = watched.manager.pass_with(files=1)
    assert not (watched.tree / "sub" / "a").exists() and set(s3.objects(bucket)) == {"p/sub/a"}
    for _ in range(4):
        watched.manager.next_line("WATCHDOG=1")
    run = watched.stop(signal.SIGINT)
    assert len(told(run, "summary")) == figures["full"] + figures["some"] and run.code == 0, run
    metrics = (watched.folder / "watch.prom").read_text()
    assert "s3once_last_success_timestamp_seconds" in metrics
    assert 's3once_last_run_exit_status{job="job"' in metrics


# --- folders


def test_folders_are_renamed_and_deleted(watched, s3, bucket):
    """Without a full scan."""
    watched.start()
    make_tree(watched.tree, {"old/sub/a": 1, "gone/b": 1})
    watched.manager.pass_with(files=2, folders=4)
    (watched.tree / "old").rename(watched.tree / "new")
    watched.manager.pass_with(files=3, folders=4)
    watched.rename_in("new/sub/c", 1)
    watched.manager.pass_with(files=4)
    shutil.rmtree(watched.tree / "gone")
    make_tree(watched.tree, {"gone/d": 1})
    figures = watched.manager.pass_with(files=5, folders=4)
    assert (figures["full"], figures["failed"]) == (1, 0)
    assert set(s3.objects(bucket)) == {"p/old/sub/a", "p/gone/b", "p/new/sub/a", "p/new/sub/c", "p/gone/d"}
    assert watched.stop().code == 0


@pytest.mark.full
def test_a_folder_moved_out_is_left_alone(watched, s3, bucket):
    watched.start()
    make_tree(watched.tree, {"away/a": 1})
    watched.manager.pass_with(files=1, folders=2)
    (watched.tree / "away").rename(watched.folder / "away")
    make_tree(watched.folder, {"away/secret": 1})
    watched.rename_in("b", 1)
    watched.manager.pass_with(files=2, folders=1)
    assert set(s3.objects(bucket)) == {"p/away/a", "p/b"}


def test_warnings_of_two_sources_of_which_one_name_begins_the_other(watched, tmp_path):
    (tmp_path / "ab").mkdir()
    (tmp_path / "a").mkdir()
    watched.write(f"source = {tmp_path / 'a'}", source=tmp_path / "ab", json="no")
    watched.start()
    run = watched.stop()
    warnings = [line.rpartition("/")[2] for line in run.err.splitlines() if "there are no files in" in line]
    assert warnings == ["ab", "a"], run


@pytest.mark.full
def test_the_source_disappears_and_comes_back(watched, s3, bucket):
    watched.write(full_scan="1s")
    watched.rename_in("a", 1)
    watched.start()
    watched.manager.pass_with(files=1)
    watched.tree.rename(watched.folder / "parked")
    watched.wait_said("was removed, renamed or unmounted")
    while watched.manager.pass_ended()["failed"] < 2:
        pass
    assert watched.said("was removed, renamed or unmounted") == 1
    (watched.folder / "parked").rename(watched.tree)
    watched.rename_in("b", 1)
    watched.manager.pass_with(files=2, folders=1)
    s3.assert_same(watched.tree, bucket, "p")


@pytest.mark.full
def test_the_source_is_made_anew(watched, s3, bucket):
    """Deleted and made again at once, replaced by a link to another folder, and made again: each is found."""
    watched.write(full_scan="1s", if_changed="replace")
    watched.rename_in("a", 1)
    watched.start()
    watched.manager.pass_with(files=1)
    shutil.rmtree(watched.tree)
    watched.rename_in("b", 2)
    watched.manager.pass_with(files=2, folders=1)
    make_tree(watched.folder, {"away/c": 3})
    watched.tree.rename(watched.folder / "parked")
    watched.tree.symlink_to(watched.folder / "away")
    watched.manager.pass_with(files=3, folders=1)
    make_tree(watched.folder, {"away/sub/d": 4})
    watched.manager.pass_with(files=4, folders=2)
    watched.tree.unlink()
    watched.rename_in("e", 5)
    watched.manager.pass_with(files=5, folders=1)
    assert set(s3.objects(bucket)) == {"p/a", "p/b", "p/c", "p/sub/d", "p/e"}


def test_names_of_every_kind(watched, s3, bucket):
    """Without a full scan. One that cannot be a key is an error that keeps no other file waiting."""
    watched.start()
    names = ["new\nline", "fol\nder/a\nb", "'\"\\ $(x)", " ", "\n", "é" * 120, "*/?[a-z]"]
    for name in names:
        watched.rename_in(name, 1)
    figures = watched.manager.pass_with(files=len(names))
    assert (figures["full"], figures["failed"]) == (1, 0)
    s3.assert_same(watched.tree, bucket, "p")
    watched.rename_in(os.fsdecode(b"\xff\n"), 1)
    watched.manager.pass_with(failed=1)
    assert watched.said("\\xff\\n: the name is not UTF-8, so it cannot be a key") == 1
    watched.rename_in("fol\nder/next", 1)
    watched.manager.pass_with(files=len(names) + 1)


@pytest.mark.full
@pytest.mark.skipif(os.geteuid() != 0, reason="file systems are root's to mount")
def test_a_file_system_is_mounted_and_unmounted(watched, s3, bucket):
    """Over the SOURCE, and over a folder in it."""
    watched.write(full_scan="1s", if_changed="replace")
    watched.rename_in("sub/a", 1)
    watched.start()
    watched.manager.pass_with(files=1, folders=2)
    done = 1
    for folder, folders in ((watched.tree / "sub", 2), (watched.tree, 1)):
        if subprocess.run(["mount", "-t", "tmpfs", "none", folder], capture_output=True).returncode:
            pytest.skip("this host allows no mounts")
        try:
            (folder / f"over{done}").write_text("over")
            done += 1
            watched.manager.pass_with(files=done, folders=folders)
        finally:
            subprocess.run(["umount", "-l", folder], check=True)
        watched.rename_in(f"sub/under{done}", 1)
        done += 1
        watched.manager.pass_with(files=done, folders=2)
    assert set(s3.objects(bucket)) == {"p/sub/a", "p/sub/over1", "p/sub/under2", "p/over3", "p/sub/under4"}


# --- the kernel


def test_the_queue_overflows(watched, s3, bucket):
    """A real queue, of a process that stands still meanwhile."""
    watched.write("exclude = *.tmp")
    watched.start()
    watched.running.popen.send_signal(signal.SIGSTOP)
    names = [watched.tree / "x.tmp", watched.tree / "y.tmp"]
    names[0].touch()
    for i in range(int(Path("/proc/sys/fs/inotify/max_queued_events").read_text()) // 2 + 1):
        names[i % 2].rename(names[1 - i % 2])  # two events each
    watched.rename_in("a", 1)
    watched.running.popen.send_signal(signal.SIGCONT)
    assert watched.manager.pass_with(files=1)["full"] == 2
    assert watched.said("its queue for inotify has overflowed") == 1
    assert set(s3.objects(bucket)) == {"p/a"}


def with_limit(name, value):
    """A command that runs another one in a namespace of users with such a limit of its own."""
    command = ("unshare", "--user", "--map-current-user", "--keep-caps", "sh", "-c", f'echo {value} >/proc/sys/user/{name} && exec "$0" "$@"')
    if subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("this host allows no namespaces of users")
    return command


@pytest.mark.parametrize(
    "limit, words, folders",
    [
        ("max_inotify_watches", "folders are not watched", 2),
        pytest.param("max_inotify_instances", "the kernel reports no new files", 0, marks=pytest.mark.full),
    ],
)
def test_the_kernel_allows_no_more(watched, s3, bucket, limit, words, folders):
    """The full scan finds what nobody tells of."""
    watched.write(full_scan="1s")
    make_tree(watched.tree, {f"{i}/a": 1 for i in range(4)})
    watched.start(wrap=with_limit(limit, folders))
    watched.manager.pass_with(files=4, folders=folders)
    for i in range(4):
        watched.rename_in(f"{i}/b", 1)
    watched.manager.pass_with(files=8)
    assert watched.said(words) == 1
    s3.assert_same(watched.tree, bucket, "p")


# --- the server and the program


def test_the_server_is_gone_for_a_while(watched, s3, s3_wire, bucket):
    """Each pass that fails is followed by another one; the service goes on."""
    watched.write("give-up-after = 0", full_scan="1s")
    watched.s3once.environment["AWS_MAX_ATTEMPTS"] = "1"
    watched.start()
    s3_wire.add(faults.refuse, times=None)
    watched.rename_in("a", 1)
    watched.manager.pass_with(failed=2)
    s3_wire.clear()
    figures = watched.manager.pass_with(files=1)
    assert figures["failed"] >= 2
    run = watched.stop()
    assert run.code == 0 and set(s3.objects(bucket)) == {"p/a"}, run


def test_a_scan_that_stands_still(watched, s3, bucket, tmp_path):
    """Nothing feeds the watchdog until the file system answers."""
    hung = tmp_path / "hung"
    library = preload_library()
    watched.write("lease = 1s", "give-up-after = 0")
    watched.start(env={"WATCHDOG_USEC": "60000000", **preloaded(watched.s3once, library, S3ONCE_TEST_LIST_HUNG=hung, S3ONCE_TEST_LIST_PATH="/tree")})
    hung.touch()
    watched.rename_in("new/a", 1)
    told_since = []
    while len(told_since) < 5:
        lines = watched.manager.next_message()
        told_since = [] if "WATCHDOG=1" in lines else [*told_since, lines]
    hung.unlink()
    watched.manager.pass_with(files=1)
    assert set(s3.objects(bucket)) == {"p/new/a"}


def test_reload(watched, s3, bucket):
    """A file that is right holds at once; one that is not is told of, and nothing changes."""
    watched.start()
    watched.write("storage-clas = GLACIER")
    watched.running.popen.send_signal(signal.SIGHUP)
    watched.manager.next_line("RELOADING=1")
    watched.manager.next_line("READY=1")
    assert watched.said("unknown name 'storage-clas'") == 1 and watched.said("goes on with the options that it had") == 1
    watched.rename_in("a", 1)
    watched.manager.pass_with(files=1)
    watched.write(target=f"s3://{bucket}/q")
    watched.running.popen.send_signal(signal.SIGHUP)
    watched.manager.next_line("READY=1")
    watched.manager.pass_with(files=2)
    assert set(s3.objects(bucket)) == {"p/a", "q/a"}
    assert watched.stop().code == 0


def test_a_job_that_removes_the_files_of_another_one(watched):
    """It is said when the options of one say so, and when a service begins with them."""
    warning = "watch: the job job removes each file of "
    other = watched.folder / "other.conf"
    other.write_text(f"source = {watched.tree}\ntarget = s3://{watched.bucket}/q\nmin-age = 200ms\nfull-scan = 1h\njson = yes\n")
    watched.begin(other)
    assert watched.said(warning) == 0
    watched.write("delete-after = 0s")
    watched.running.popen.send_signal(signal.SIGHUP)
    watched.manager.next_line("READY=1")
    assert watched.said(warning) == 1
    assert watched.stop().code == 0
    watched.begin(other)
    assert watched.said(warning) == 1
    assert watched.stop().code == 0


@pytest.mark.full
def test_a_stop_amid_an_upload(watched, s3, s3_wire, bucket):
    watched.write("grace = 0")
    watched.start()
    held = s3_wire.add(faults.hold_request, "PutObject", times=None)
    watched.rename_in("a", 1)
    assert held.reached.wait(60)
    assert watched.stop().code == 143
    s3_wire.clear()
    assert watched.start()["failed"] == 0
    s3.assert_same(watched.tree, bucket, "p")


def test_a_stop_while_a_file_waits(watched, s3, bucket):
    """The exit status says that not all is done."""
    watched.write(min_age="1h")
    watched.start(env={"WATCHDOG_USEC": "1000000"})
    watched.rename_in("a", 1)
    watched.manager.next_line("WATCHDOG=1")
    watched.manager.next_line("WATCHDOG=1")
    run = watched.stop(signal.SIGINT)
    assert run.code == 130 and not s3.objects(bucket), run


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_amid_a_pass_while_another_file_waits(watched, s3, s3_wire, bucket, sig):
    """The pass ends well, and the exit status says that a file has come since it began."""
    watched.write("drain = 0")
    watched.start()
    held = s3_wire.add(faults.hold_request, "PutObject")
    watched.rename_in("a", 1)
    assert held.reached.wait(60)
    watched.rename_in("b", 2)
    watched.running.popen.send_signal(sig)
    watched.wait_said("stopping;")
    held.released.set()
    run = watched.running.wait()
    assert [key for key in s3.objects(bucket)] == ["p/a"], run
    assert run.code == 128 + sig, run


def test_a_stop_while_a_young_file_that_was_touched_again_waits(watched, bucket):
    """A file that is left as too young does not count at the end, unless it is written to after that."""
    watched.write(min_age="1h")
    watched.rename_in("a", 1)
    watched.start(env={"WATCHDOG_USEC": "1000000"})
    watched.manager.next_line("WATCHDOG=1")
    assert watched.stop(signal.SIGINT).code == 0
    watched.start(env={"WATCHDOG_USEC": "1000000"})
    (watched.tree / "a").write_bytes(b"22")
    watched.manager.next_line("WATCHDOG=1")
    watched.manager.next_line("WATCHDOG=1")
    assert watched.stop(signal.SIGINT).code == 130


def test_killed_and_started_again(watched, s3, s3_wire, bucket):
    """Files that were sent are not sent again."""
    watched.start()
    watched.rename_in("a", 1)
    watched.manager.pass_with(files=1)
    held = s3_wire.add(faults.hold_request, "PutObject", times=None)
    watched.rename_in("b", 2)
    assert held.reached.wait(60)
    watched.running.kill()
    watched.running.popen.wait()
    s3_wire.clear()
    assert watched.start()["failed"] == 0
    s3.assert_same(watched.tree, bucket, "p")
    assert Counter(each.operation.key for each in s3_wire.history if each.kind == "PutObject" and each.took_effect) == {"p/a": 1, "p/b": 1}


@pytest.mark.full
def test_idle_it_asks_nobody(watched, s3_proxy, bucket):
    watched.rename_in("a", 1)
    watched.start(env={"WATCHDOG_USEC": "1000000"})
    watched.manager.pass_with(files=1)
    s3_proxy.requests()
    for _ in range(6):
        watched.manager.next_line("WATCHDOG=1")
    assert not s3_proxy.requests()


# --- the command line


@pytest.mark.parametrize("line", ["dry-run = yes", "files-from = -", "reupload = yes", "bucket = new", "bucket = same\nbucket-id-object = id", "manifest = yes", "compare-content = yes"])
def test_options_for_a_single_run_are_refused(watched, line):
    watched.write(line)
    run = watched.s3once("watch", watched.file)
    assert run.code == 2 and f"job: {line.split()[0]} is for a single run" in run.err, run


def test_a_file_that_is_not_right(watched):
    watched.write("full-scan = 1")
    run = watched.s3once("watch", watched.file)
    assert run.code == 2 and "full-scan" in run.err, run
    assert watched.s3once("watch").code == 2
    run = watched.s3once("run", "--full-scan", "1h", watched.file)
    assert run.code == 2 and "unknown option '--full-scan'" in run.err, run
