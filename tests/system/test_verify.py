"""`s3once verify`: what is in the bucket against the marks."""

import pytest

from tests.faults import faults
from tests.system.harness import make_tree, wait_until

NAMES = ["a b", "a+b", "a%20b", "a%", "ü/ä", "new\nline", "tab\tq", "&<>\"'", "日本/語", "a", "a-b", "a.b/c", "~", "\\x"]
ON_BOTH = pytest.mark.parametrize("s3", ["rgw", "swift"], indirect=True)
WITH_BOTH = pytest.mark.parametrize("marks", ["sqlite", "dynamodb"], indirect=True)


async def hold_reply(x, rule):
    """The server has answered; the reply waits in the network until rule.released."""
    reply = await x.forward()
    x.fire(rule)
    await x.hold(rule)
    await x.answer(reply)


async def hold_request(x, rule):
    """The request waits in the network until rule.released."""
    x.fire(rule)
    await x.hold(rule)
    await x.answer(await x.forward())


def found(run):
    """The lines of standard output as a set."""
    return set(run.out.splitlines())


def last(run):
    return run.events[-1]


def put(s3, bucket, key, body):
    s3.client.put_object(Bucket=bucket, Key=key, Body=body)


def remove(s3, bucket, key):
    s3.client.delete_object(Bucket=bucket, Key=key)


@pytest.fixture
def tree(tmp_path):
    return make_tree(tmp_path / "tree", {name: f"content of {name}".encode() for name in NAMES})


@pytest.mark.parametrize(
    "s3, marks",
    [("rgw", "sqlite"), pytest.param("rgw", "dynamodb", marks=pytest.mark.smoke), ("swift", "sqlite"), ("swift", "dynamodb")],
    indirect=True,
)
def test_planted_damage_is_found_and_nothing_else(s3once, s3, bucket, marks, tree):
    """Missing, truncated, replaced by the same number of bytes, and foreign, under names that are hard to list."""
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    run = s3once("verify", f"s3://{bucket}/p", "-v")
    assert run.code == 0 and f"{len(NAMES)} objects are as their marks say, by size and etag\n" in run.err, run
    assert len(found(run)) == len(NAMES) and all(line.startswith("= p/") for line in found(run))
    remove(s3, bucket, "p/a+b")
    put(s3, bucket, "p/a b", b"short")
    put(s3, bucket, "p/ü/ä", b"x" * len("content of ü/ä".encode()))
    for key in ("p/a+", "p/zz", "p/a b.gz", "p/new\nlines"):
        put(s3, bucket, key, b"foreign")
    put(s3, bucket, "q", b"not below the prefix")
    damage = {"- p/a+b", "* p/a b", "* p/ü/ä", "+ p/a+", "+ p/zz", "+ p/a b.gz", "+ p/new\\nlines"}
    for by in ([], ["--head"], ["--download"]):
        run = s3once("verify", *by, f"s3://{bucket}/p/")
        assert run.code == 1 and found(run) == damage, run
        assert f"s3://{bucket}/p/: {len(NAMES) - 3} objects are as their marks say" in run.err
        assert ", 1 missing (-), 2 differ (*), 4 unknown to the marks (+)\ns3once: push with --reupload uploads missing objects again, " in run.err
        assert "p/a b: its size differs: 5 bytes in S3, and 14 bytes when it was uploaded\n" in run.err
    events = s3once("verify", "--json", f"s3://{bucket}/p").events
    assert {(event["result"], event["key"]) for event in events[:-1]} >= {("missing", "p/a+b"), ("unknown", "p/new\nlines")}
    end = events[-1]
    assert end["event"] == "verify" and end["exit"] == 1 and end["complete"] and end["after"] is None
    assert [end[name] for name in ("same", "missing", "differs", "unknown", "error")] == [len(NAMES) - 3, 1, 2, 4, 0]
    assert end["requests"]["ListObjectsV2"] == 1


def test_uploaders_at_work_are_no_difference(s3once, s3, s3_wire, bucket, tmp_path):
    """Neither an object whose mark is still claimed, nor one that was replaced after it was listed."""
    tree = make_tree(tmp_path / "tree", {"done": b"1", "under way": b"2"})
    url = f"s3://{bucket}/p"
    assert s3once("push", tree / "done", url).code == 0
    holds = s3_wire.add(hold_reply, "PutObject", key="p/under way")
    uploader = s3once.start("push", tree, url)
    assert holds.reached.wait(60), uploader.output()
    run = s3once("verify", url)
    assert run.code == 0 and run.out == "" and "1 file is being uploaded, and not compared" in run.err, run
    holds.released.set()
    assert uploader.wait().code == 0
    listed = s3_wire.add(hold_reply, "ListObjectsV2")
    verifier = s3once.start("verify", "-v", url)
    assert listed.reached.wait(60), verifier.output()
    (tree / "done").write_bytes(b"other")
    (tree / "new").write_bytes(b"3")
    assert s3once("push", "--if-changed=replace", tree, url).code == 0
    listed.released.set()
    run = verifier.wait()
    assert run.code == 0 and found(run) == {"= p/done", "= p/new", "= p/under way"}, run


@pytest.mark.parametrize("command", ["verify", "proven", "status", "status of a prefix"])
def test_an_uploader_that_ends_after_its_mark_was_read(s3once, bucket, s3_wire, table, dynamodb_wire, tmp_path, command):
    """It has done what its mark said it was about to do."""
    tree = make_tree(tmp_path / "tree", {"a": b"1", "done": b"2"})
    url = f"s3://{bucket}/p"
    assert s3once("init").code == 0 and s3once("push", tree / "done", url).code == 0
    put = s3_wire.add(hold_reply, "PutObject", key="p/a")
    uploader = s3once.start("push", tree, url)
    assert put.reached.wait(60), uploader.output()
    session = dynamodb_wire.add(hold_request, "GetItem:session")
    words = {"verify": ("-v", url), "proven": ("--source", tree, tree / "a", url), "status": (f"{url}/a",), "status of a prefix": (url,)}
    looking = s3once.start(command.split()[0], *words[command])
    assert session.reached.wait(60), looking.output()
    put.released.set()
    assert uploader.wait().code == 0
    session.released.set()
    run = looking.wait()
    assert run.code == 0 and (command != "verify" or found(run) == {"= p/a", "= p/done"}), run
    assert command != "status of a prefix" or ("done 2 files" in run.out and "claimed" not in run.out), run
    assert command != "status" or ("state     done since" in run.out and "next run  the next run skips it" in run.out), run


def test_an_object_that_is_replaced_while_it_is_asked_for(s3once, s3, s3_wire, bucket, tmp_path):
    """The new mark is as long as the one before."""
    tree = make_tree(tmp_path / "tree", {"done": b"1"})
    url = f"s3://{bucket}/p"
    assert s3once("push", tree, url).code == 0
    (tree / "done").write_bytes(b"3")
    assert s3once("push", "--if-changed=replace", tree, url).code == 0
    asks = s3_wire.add(hold_request, "HeadObject", nth=2)  # the first is about the bucket
    verifier = s3once.start("verify", "-v", "--head", url)
    assert asks.reached.wait(60), verifier.output()
    (tree / "done").write_bytes(b"2")
    assert s3once("push", "--if-changed=replace", tree, url).code == 0
    asks.released.set()
    run = verifier.wait()
    assert run.code == 0 and found(run) == {"= p/done"}, run


def test_many_verifiers_beside_an_uploader(s3once, s3, bucket, tmp_path):
    """At any moment, nothing is reported."""
    tree = make_tree(tmp_path / "tree", {f"d{n % 7}/{n}": n for n in range(60)})
    url = f"s3://{bucket}/p"
    assert s3once("push", tree / "d0", url + "/d0").code == 0
    uploader = s3once.start("push", tree, url)
    runs = [s3once("verify", url) for _ in range(3)]
    assert uploader.wait().code == 0
    for run in runs:
        assert run.code == 0 and run.out == "", run
    run = s3once("verify", "-v", "--head", "--concurrency", "3", url)
    assert run.code == 0 and len(found(run)) == 60, run


def test_a_listing_that_fails_is_no_difference(s3once, s3, s3_wire, bucket, tree):
    """The second page does not come: exit 3 with the service's code, and where to go on."""
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    s3_wire.add(faults.answer(403, "AccessDenied"), "ListObjectsV2", times=None)
    run = s3once("verify", "--json", f"s3://{bucket}/p")
    assert run.code == 3 and "allow s3:ListBucket" in run.err and "AccessDenied" in run.err, run
    fatal, end = run.events
    assert (fatal["event"], fatal["code"], end["exit"], end["complete"]) == ("fatal", "AccessDenied", 3, False)
    s3_wire.clear()
    s3_wire.add(faults.refuse, times=None)
    run = s3once("verify", "--give-up-after", "0", f"s3://{bucket}/p")
    assert run.code == 3 and run.out == "" and "error: verify: after 9 attempts: the connection to " in run.err, run


def test_verify_continues_where_the_last_one_stopped(s3once, s3, s3_wire, bucket, tmp_path):
    """Several threads are checking objects when S3 fails: the next run continues with the first unchecked one."""
    tree = make_tree(tmp_path / "tree", {f"{number:02}": b"x" for number in range(60)})
    url = f"s3://{bucket}/p"
    assert s3once("push", tree, url).code == 0
    s3_wire.add(faults.answer(503, "InternalError"), "HeadObject", nth=21, times=None)
    first = s3once("verify", "--json", "-v", "--head", "--concurrency", "4", "--give-up-after", "0", url, env={"AWS_MAX_ATTEMPTS": "1"})
    assert first.code == 3 and not last(first)["complete"], first
    s3_wire.clear()
    rest = s3once("verify", "--json", "-v", "--head", "--after", last(first)["after"], url)
    assert rest.code == 0 and last(rest)["complete"], rest
    looked_at = {event["key"] for event in first.events + rest.events if "key" in event}
    assert looked_at == {f"p/{number:02}" for number in range(60)}


def test_one_key_and_the_rest_of_a_run(s3once, s3, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {f"{name}": name.encode() for name in "abcd"})
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    remove(s3, bucket, "p/b")
    run = s3once("verify", f"s3://{bucket}/p/b")
    assert run.code == 1 and run.out == "- p/b\n", run
    assert s3once("verify", "--download", f"s3://{bucket}/p/c").code == 0
    run = s3once("verify", "-v", "--after", "p/b", f"s3://{bucket}/p")
    assert run.code == 0 and run.out == "= p/c\n= p/d\n", run
    run = s3once("verify", "--json", "--max-duration", "1ms", "--after", "p/b", f"s3://{bucket}/p")
    assert run.code == 6 and (last(run)["complete"], last(run)["after"], last(run)["same"]) == (False, "p/b", 0), run


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["s3://bkt/p", "--subset", "1/7"], "--subset goes with --head or --download"),
        (["s3://bkt/p", "--head", "--subset", "8/7"], "--subset: '8/7' is neither a part (1/7), nor a percentage (5%), nor a size"),
        (["s3://bkt/p", "--head", "--subset", "0%"], "--subset: '0%' is neither"),
        (["s3://bkt/p", "--head", "--subset", "0"], "--subset: '0' is neither"),
        (["s3://bkt/p", "--local"], "there is no --local: s3once push --dry-run --compare-content DIR"),
        (["s3://bkt/p", "--repair=1"], "there is no --repair: s3once push --reupload --compare-content DIR"),
        (["s3://bkt/p", "--head", "--download"], "--download does what --head does"),
        (["s3://bkt/p", "--after", "q"], "--after 'q' is not a key below s3://bkt/p"),
        ([], "something is missing: give s3://BUCKET[/KEY-OR-PREFIX] | --job JOB"),
        (["s3://bkt/p", "--concurrency", "65"], "--concurrency"),
    ],
)
def test_bad_input_is_a_sentence(s3once, argv, said):
    run = s3once("verify", *argv)
    assert run.code == 2 and run.out == "" and said in run.err and len(run.err.splitlines()) == 1, run


def test_a_subset_of_so_many_bytes(s3once, s3, bucket, tmp_path):
    """About as many as were asked for, the same each time, and all where there are no more."""
    tree = make_tree(tmp_path / "tree", {f"{i:02}": b"x" * 1000 for i in range(100)})
    assert s3once("push", "--manifest", "--json", tree, f"s3://{bucket}/p").code == 0
    (manifest,) = [key for key in s3.objects(bucket) if "_s3once" in key]
    for of in ([], ["--manifest", manifest]):
        runs = [s3once("verify", "--json", "--download", "--subset", "20K", *of, f"s3://{bucket}/p") for _ in range(2)]
        assert [run.code for run in runs] == [0, 0], runs
        read = {last(run)["bytes_read"] for run in runs}
        assert len(read) == 1 and 10_000 <= min(read) <= 32_000, read
        run = s3once("verify", "--json", "--download", "--subset", "1G", *of, f"s3://{bucket}/p")
        assert run.code == 0 and last(run)["bytes_read"] == 100_000, run


def test_nothing_is_no_success(s3once, s3, bucket, tmp_path):
    assert s3once("push", make_tree(tmp_path / "tree", {"a": 1}), f"s3://{bucket}/p").code == 0
    run = s3once("verify", f"s3://{bucket}/typo")
    assert run.code == 1 and f"there is no mark of s3://{bucket}/typo, and no mark or object below" in run.err, run


def test_compressed_objects_are_compared_as_they_are_stored(s3once, s3, bucket, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a.log": b"one line\n" * 5000, "b.log": b"another line\n" * 5000})
    assert s3once("push", "--compress", "zstd", tree, f"s3://{bucket}/p").code == 0
    for by in ([], ["--head"], ["--download"]):
        run = s3once("verify", "-v", *by, f"s3://{bucket}/p")
        assert run.code == 0 and found(run) == {"= p/a.log.zst", "= p/b.log.zst"}, run
        for key in ("p/a.log", "p/a.log.zst"):
            run = s3once("verify", "-v", *by, f"s3://{bucket}/{key}")
            assert run.code == 0 and found(run) == {f"= {key}"}, run
    put(s3, bucket, "p/b.log.zst", b"x" * len(s3.get(bucket, "p/b.log.zst")))
    for by in ([], ["--head"], ["--download"]):
        run = s3once("verify", *by, f"s3://{bucket}/p")
        assert run.code == 1 and found(run) == {"* p/b.log.zst"}, run


@pytest.mark.real_s3
@pytest.mark.parametrize("marks", ["sqlite"], indirect=True)
def test_another_bucket_of_the_same_name(s3once, s3, bucket, marks, tree):
    """Every object would be missing there: it is refused, as push refuses it. A bucket without marks is said to be one."""
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    s3.remove_bucket(bucket)
    s3.client.create_bucket(Bucket=bucket)
    run = s3once("verify", "--json", f"s3://{bucket}")
    assert run.code == 3 and "is not the bucket that the marks are about" in run.err and "push once with --bucket new" in run.err, run
    assert [event["event"] for event in run.events] == ["fatal", "verify"] and last(run)["missing"] == 0, run
    s3.client.create_bucket(Bucket=bucket + "x")
    run = s3once("verify", f"s3://{bucket}x")
    s3.remove_bucket(bucket + "x")
    assert run.code == 3 and f"no mark of bucket {bucket}x at " in run.err, run


@pytest.mark.real_s3
@pytest.mark.parametrize("env, code", [({"AWS_SECRET_ACCESS_KEY": "wrong"}, "SignatureDoesNotMatch"), ({"AWS_ACCESS_KEY_ID": "AKIANOBODY"}, "InvalidAccessKeyId")])
@pytest.mark.parametrize("command", [["verify"], ["forget", "--missing"]], ids=lambda words: words[0])
def test_credentials_that_are_refused(s3once, bucket, tree, command, env, code):
    """In the words of the service: the reply to a HEAD has none, so that the bucket seemed to be another one."""
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    run = s3once(*command, f"s3://{bucket}", env=env)
    assert run.code == 3 and f"bucket {bucket} at " in run.err and f"({code}, request id " in run.err, run



@pytest.mark.parametrize("s3", ["s3rver"], indirect=True)
def test_a_listing_that_is_not_in_byte_order(s3once, s3, bucket, tmp_path):
    """s3rver lists the files of a folder after its folders. Each mark is compared by HEAD then, and what is missing is found."""
    tree = make_tree(tmp_path / "tree", {"a/1": 10, "a-b": 20, "a.c": 30, "z": 40})
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    listed = [row["Key"] for row in s3.client.list_objects_v2(Bucket=bucket)["Contents"]]
    assert listed != sorted(listed), "this server lists in byte order"
    run = s3once("verify", f"s3://{bucket}/p")
    assert run.code == 0 and "does not list objects in byte order" in run.err and "4 objects are as their marks say" in run.err, run
    s3.client.delete_object(Bucket=bucket, Key="p/z")
    run = s3once("verify", "--json", f"s3://{bucket}/p")
    assert run.code == 1 and [event["event"] for event in run.events] == ["warning", "object", "verify"], run
    assert run.events[1]["key"] == "p/z" and run.events[1]["result"] == "missing"


def test_marks_that_went_by_age(s3once, s3, bucket, tmp_path):
    """`gc --keep-marks` and `verify --keep-marks` agree; what is younger and has no mark is still somebody else's."""
    tree = make_tree(tmp_path / "tree", {"a": 10, "b": 20})
    s3once.environment["S3ONCE_MARKS"] = f"sqlite:{tmp_path}/m.db"
    assert s3once("push", tree, f"s3://{bucket}/p").code == 0
    wait_until(lambda: "2 marks would be forgotten" in s3once("forget", "-n", "--older-than", "2s", f"s3://{bucket}").out, 30, "two seconds")
    assert s3once("gc", "--keep-marks", "2s", f"s3://{bucket}").code == 0
    run = s3once("verify", f"s3://{bucket}/p")
    assert run.code == 1 and run.out.splitlines() == ["+ p/a", "+ p/b"], run
    run = s3once("verify", "--keep-marks", "2s", f"s3://{bucket}/p")
    assert run.code == 0 and run.out == "" and "2 without a mark are older than --keep-marks" in run.err, run
    event = s3once("verify", "--json", "--keep-marks", "2s", f"s3://{bucket}/p").events[-1]
    assert (event["aged"], event["unknown"], event["exit"]) == (2, 0, 0), event
    run = s3once("verify", "--keep-marks", "1d", f"s3://{bucket}/p")
    assert run.code == 1 and run.out.splitlines() == ["+ p/a", "+ p/b"], run
    s3.client.delete_object(Bucket=bucket, Key="p/a")
    run = s3once("push", "--bucket", "new", tree, f"s3://{bucket}/p")  # the one object that was known is gone
    assert run.code == 0, run
    s3.client.delete_object(Bucket=bucket, Key="p/b")
    run = s3once("verify", "--keep-marks", "2s", f"s3://{bucket}/p")
    assert run.code == 1 and run.out.splitlines() == ["- p/b"], run


def test_lines_come_in_the_order_of_the_keys(s3once, s3, bucket, tmp_path):
    """Although many objects are looked at at once. Most are as they were: a few are asked for before anything is compared."""
    tree = make_tree(tmp_path / "tree", {f"{n:03}": 100 for n in range(120)})
    assert s3once("push", tree, f"s3://{bucket}").code == 0
    for n in range(0, 120, 12):
        s3.client.delete_object(Bucket=bucket, Key=f"{n:03}")
        s3.client.put_object(Bucket=bucket, Key=f"{n + 1:03}", Body=b"other")
        s3.client.put_object(Bucket=bucket, Key=f"{n + 1:03}-new", Body=b"foreign")
    for options in ((), ("--head", "-v"), ("--download", "-v", "--concurrency", "64")):
        run = s3once("verify", *options, f"s3://{bucket}")
        keys = [line[2:] for line in run.out.splitlines()]
        assert run.code == 1 and len(keys) == (130 if options else 30) and keys == sorted(keys), run


def test_file_that_was_never_sent_is_reported(s3once, s3, s3_wire, bucket, tmp_path):
    """A failed upload, and one whose uploader was killed: the bucket lacks both files."""
    tree = make_tree(tmp_path / "tree", {"done": b"1", "failed": b"2", "killed": b"3"})
    url = f"s3://{bucket}/p"
    assert s3once("push", tree / "done", url).code == 0
    s3.client.put_object(Bucket=bucket, Key="p/failed", Body=b"of others")
    assert s3once("push", tree / "failed", url).code == 1
    holds = s3_wire.add(hold_reply, "PutObject", key="p/killed")
    uploader = s3once.start("push", tree / "killed", url)
    assert holds.reached.wait(60), uploader.output()
    run = s3once("verify", url)
    assert run.code == 1 and found(run) == {"! p/failed"} and "1 file is being uploaded" in run.err, run
    uploader.kill()
    uploader.popen.wait()
    holds.released.set()
    s3.client.delete_object(Bucket=bucket, Key="p/killed")
    run = s3once("verify", url)
    assert run.code == 1 and found(run) == {"! p/failed", "! p/killed"} and "2 not sent" in run.err, run
    run = s3once("verify", f"{url}/killed", "--json")
    assert run.code == 1 and run.events[0]["result"] == "unsent" and run.events[-1]["unsent"] == 1, run
