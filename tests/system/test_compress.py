"""--compress: what is in S3 decompresses to what was read, whatever the size, and all promises hold as without it."""

import gzip
import hashlib
import os
import subprocess
import sys

import pytest

from tests.faults import faults
from tests.system.harness import KIB, MIB, content, make_tree
from tests.system.pushing import counts, marks_of, told
from tests.system.test_push_resume import Killed

CODECS = {"zstd": ".zst", "gzip": ".gz"}
ENCODERS = {"zstd": "zstd-", "gzip:3": "zlib-"}
PART = 5 * MIB


def text(size, seed=0):
    """Lines that compress to about a fifth."""
    lines = [b"%d host%d GET /index/%s 200 %d\n" % (n, n % 7, hashlib.md5(b"%d%d" % (seed, n)).hexdigest()[:6].encode(), n * n % 9973) for n in range(20000)]
    block = b"".join(lines)
    return (block * (size // len(block) + 1))[:size]


def decompressed(codec, body):
    """By the tools that people use, which agree."""
    tools = {"zstd": [["zstd", "-dcq"]], "gzip": [["gzip", "-dc"], ["zcat"]]}[codec]
    made = [subprocess.run(tool, input=body, capture_output=True, check=True).stdout for tool in tools]
    if codec == "gzip":
        made.append(gzip.decompress(body))
    assert all(each == made[0] for each in made)
    return made[0]


def push(s3once, tree, bucket, codec, *options, **how):
    return s3once("push", tree, f"s3://{bucket}/p", "--compress", codec, "--part-size", "5MiB", "--json", *options, **how)


def assert_round_trip(s3, bucket, tree, codec):
    """Each file is one object with the suffix, and decompresses to the file. Returns key → Object."""
    found = s3.objects(bucket, "p/", metadata=True)
    names = {f"p/{path.relative_to(tree)}{CODECS[codec]}": path for path in tree.rglob("*") if path.is_file()}
    assert found.keys() == names.keys()
    for key, path in names.items():
        assert decompressed(codec, s3.get(bucket, key)) == path.read_bytes(), key
        assert found[key].metadata["s3once-size"] == str(path.stat().st_size)
    assert not s3.uploads(bucket)
    return found


@pytest.mark.parametrize("codec", CODECS)
def test_sizes(s3once, s3, bucket, marks, tmp_path, codec):
    """Around every limit: nothing, a piece of the encoder's input, and one part."""
    sizes = (0, 1, 256 * KIB - 1, 256 * KIB, 256 * KIB + 1, PART - 1, PART, PART + 1)
    files = {f"text{n}": text(n) for n in sizes} | {f"random{n}": n for n in (1000, PART - 1, PART + 1)}
    tree = make_tree(tmp_path / "tree", files)
    run = push(s3once, tree, bucket, codec)
    assert run.code == 0 and counts(run) == {"uploaded": len(files)}, run
    found = assert_round_trip(s3, bucket, tree, codec)
    for name, value in files.items():
        whole = (tree / name).read_bytes()
        if name != f"random{PART + 1}":  # which has two parts, and is read only once
            assert found[f"p/{name}{CODECS[codec]}"].metadata["s3once-content"] == hashlib.sha256(whole).hexdigest()
        mark = marks_of(marks)[f"p/{name}"]
        assert mark["state"] == "done" and mark["size"] == len(whole) and mark["suffix"] == CODECS[codec]
        assert mark["object_size"] == found[f"p/{name}{CODECS[codec]}"].size
    sent = run.events[-1]["bytes_sent"]
    assert sent == sum(each.size for each in found.values()) and run.events[-1]["bytes"] == sum(map(len, ((tree / name).read_bytes() for name in files)))
    again = push(s3once, tree, bucket, codec)
    assert again.code == 0 and counts(again) == {"skipped": len(files)} and again.events[-1]["bytes_sent"] == 0, again


# Of the parts of gzip, the short run has those of test_sizes and test_compressed_object_is_adopted.
@pytest.mark.parametrize("codec", ["zstd", pytest.param("gzip", marks=pytest.mark.full)])
def test_parts(s3once, s3, bucket, marks, tmp_path, codec):
    """Several parts: of what cannot be compressed, of text around a multiple of its range, of what is text where it is
    sampled and not elsewhere, and of nothing but zeros, whose parts have to be padded."""
    tree = make_tree(tmp_path / "tree", {"random": 16 * MIB + 1})
    mixed = bytearray(content("mixed", 18 * MIB))
    for at in (0, len(mixed) // 2 - MIB, len(mixed) - MIB):
        mixed[at : at + MIB] = text(MIB)
    (tree / "mixed").write_bytes(mixed)
    with open(tree / "zeros", "wb") as file:
        file.truncate(257 * MIB if codec == "zstd" else 260 * MIB)
    run = push(s3once, tree, bucket, codec)
    assert run.code == 0 and counts(run) == {"uploaded": 3}, run
    found = assert_round_trip(s3, bucket, tree, codec)
    parts = {name: int(found[f"p/{name}{CODECS[codec]}"].metadata.get("s3once-part", 0)) for name in ("random", "mixed", "zeros")}
    assert parts["random"] == 5 * MIB and parts["zeros"] == 256 * MIB, parts
    assert PART < found[f"p/zeros{CODECS[codec]}"].size < PART + MIB, "the padding of one part"
    # Around a range: one that is whole, and one byte more or less in the last.
    length = 2 * parts["random"]
    near = make_tree(tmp_path / "near", {f"{name}": length + more for name, more in (("less", -1), ("even", 0), ("more", 1))})
    assert push(s3once, near, f"{bucket}/near", codec).code == 0
    for path in near.iterdir():
        assert decompressed(codec, s3.get(bucket, f"near/p/{path.name}{CODECS[codec]}")) == path.read_bytes()


def test_metadata_and_what_is_compressed_already(s3once, s3, bucket, marks, tmp_path):
    """A file that its first bytes show to be compressed is sent as it is, whatever its name; the others are described by metadata."""
    body = text(300 * KIB)
    zipped = {"a.gz": gzip.compress(body), "b": subprocess.run(["zstd", "-qc"], input=body, capture_output=True, check=True).stdout}
    for name, tool in (("c.xz", "xz"), ("d.bz2", "bzip2"), ("e.lz4", "lz4")):
        zipped[name] = subprocess.run([tool, "-c"], input=body, capture_output=True, check=True).stdout
    tree = make_tree(tmp_path / "tree", {**zipped, "fake.gz": body})
    run = push(s3once, tree, bucket, "zstd:5", "--metadata", "team=logs")
    assert run.code == 0 and counts(run) == {"uploaded": 6}, run
    for name, each in zipped.items():
        assert s3.get(bucket, f"p/{name}") == each
    assert s3.objects(bucket, "p/").keys() == {f"p/{name}" for name in zipped} | {"p/fake.gz.zst"}
    head = s3.client.head_object(Bucket=bucket, Key="p/fake.gz.zst")
    assert decompressed("zstd", s3.get(bucket, "p/fake.gz.zst")) == body and "ContentEncoding" not in head
    said = head["Metadata"]
    assert said["s3once-content"] == hashlib.sha256(body).hexdigest() and said["s3once-size"] == str(len(body)) and said["team"] == "logs"
    assert said["s3once-encoding"].startswith("zstd-") and said["s3once-encoding"].endswith(":5") and said["s3once-suffix"] == ".zst"
    assert "suffix" not in marks_of(marks)["p/a.gz"] and "object_size" not in marks_of(marks)["p/a.gz"]


@pytest.mark.real_s3
def test_an_object_of_another_compressor_is_known_by_its_content(s3once, s3, bucket, marks, tmp_path):
    """It cannot be made again by this build, so that size and SHA-256 of its metadata decide."""
    tree = make_tree(tmp_path / "tree", {"same": text(1000), "other": text(1000)})
    assert push(s3once, tree, bucket, "zstd").code == 0
    (tree / "other").write_bytes(text(1000, seed=1))
    for key in ("p/same.zst", "p/other.zst"):
        said = s3.client.head_object(Bucket=bucket, Key=key)["Metadata"] | {"s3once-encoding": "zstd-0.0.1:3"}
        s3.client.copy_object(Bucket=bucket, Key=key, CopySource={"Bucket": bucket, "Key": key}, Metadata=said, MetadataDirective="REPLACE")
        assert s3once("forget", f"s3://{bucket}/{key.removesuffix('.zst')}").code == 0
    assert not [mark for mark in marks_of(marks).values() if mark["state"] == "done"]
    run = push(s3once, tree, bucket, "zstd")
    assert run.code == 1 and counts(run) == {"adopted": 1, "refused": 1} and told(run, "adopted")[0]["key"] == "p/same.zst", run
    assert decompressed("zstd", s3.get(bucket, "p/other.zst")) == text(1000)


def test_another_codec_without_a_mark_is_another_object(s3once, s3, bucket, tmp_path):
    """A run looks only under the key that it would write to."""
    tree = make_tree(tmp_path / "tree", {"a": text(1000)})
    for codec in CODECS:
        run = push(s3once, tree, bucket, codec, "--marks", f"sqlite:{tmp_path}/{codec}.db")
        assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    assert s3.objects(bucket).keys() == {"p/a.zst", "p/a.gz"}


def test_header_in_place_of_the_suffix(s3once, s3, bucket, marks, tmp_path):
    """--header Content-Encoding: only of what was compressed, under its own key; also found again without a mark."""
    tree = make_tree(tmp_path / "tree", {"a.log": text(100 * KIB), "b.gz": gzip.compress(b"b")})
    run = push(s3once, tree, bucket, "gzip", "--header", "Content-Encoding: gzip")
    assert run.code == 0 and sorted(s3.objects(bucket, "p/")) == ["p/a.log", "p/b.gz"], run
    assert s3.client.head_object(Bucket=bucket, Key="p/a.log")["ContentEncoding"] == "gzip"
    assert "ContentEncoding" not in s3.client.head_object(Bucket=bucket, Key="p/b.gz")
    assert decompressed("gzip", s3.get(bucket, "p/a.log")) == text(100 * KIB)
    again = push(s3once, tree, bucket, "gzip:9", "--header", "Content-Encoding: gzip", "--marks", f"sqlite:{tmp_path}/new.db")
    assert again.code == 0 and counts(again) == {"adopted": 2}, again
    assert counts(push(s3once, tree, bucket, "gzip", "--header", "Content-Encoding: gzip", "--reupload")) == {"adopted": 2}


def test_rules_that_name_an_encoding(s3once, s3, bucket, marks, tmp_path):
    """They are about files that have it."""
    tree = make_tree(tmp_path / "tree", {"a.br": text(1000), "a.log": text(1000)})
    rules = tmp_path / "rules"
    rules.write_text('[rule "*.br"]\nheader = Content-Encoding: br\n')
    assert push(s3once, tree, bucket, "zstd", "--rules", rules).code == 0
    assert sorted(s3.objects(bucket, "p/")) == ["p/a.br", "p/a.log.zst"]
    assert s3.client.head_object(Bucket=bucket, Key="p/a.br")["ContentEncoding"] == "br"


def test_options(s3once, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": 1})
    for options, said in (
        (["--compress", "lz4"], "neither zstd nor gzip"),
        (["--compress", "zstd:20"], "not a level of zstd: give a number from 1 to 19"),
        (["--compress", "gzip", "--header", "content-encoding:br"], "--header Content-Encoding is gzip with --compress gzip"),
        (["--compress", "zstd:19", "--memory", "1M"], "zstd:19 needs at least --memory"),
    ):
        run = s3once("push", *options, tree, "s3://some-bucket/p")
        assert run.code == 2 and said in run.err, run


def test_dry_run_tells_the_key(s3once, s3, bucket, marks, tmp_path):
    tree = make_tree(tmp_path / "tree", {"a": text(1000), "b": gzip.compress(b"b")})
    run = push(s3once, tree, bucket, "zstd", "--dry-run")
    assert run.code == 0 and sorted(event["key"] for event in told(run, "planned")) == ["p/a.zst", "p/b"], run
    assert not s3.objects(bucket)


def test_two_files_of_one_object(s3once, s3, bucket, marks, tmp_path):
    """X would become X.zst, which another file is: both are errors. If one of them comes later, the object stays."""
    other = subprocess.run(["zstd", "-qc"], input=b"other", capture_output=True, check=True).stdout
    tree = make_tree(tmp_path / "tree", {"x": text(1000), "x.zst": other, "y": text(10), "y.zst": text(20)})
    run = push(s3once, tree, bucket, "zstd")
    assert run.code == 1 and counts(run) == {"failed": 2, "uploaded": 2}, run
    assert sorted(s3.objects(bucket, "p/")) == ["p/y.zst", "p/y.zst.zst"]
    assert all("p/x.zst" in event["text"] for event in told(run, "failed")), run
    excluded = push(s3once, tree, bucket, "zstd", "--exclude", "x.zst")
    assert excluded.code == 0 and counts(excluded) == {"uploaded": 1, "skipped": 2}, excluded
    later = push(s3once, tree / "x.zst", bucket, "zstd", "--if-changed", "replace")
    assert later.code == 1 and counts(later) == {"failed": 1}, later
    assert decompressed("zstd", s3.get(bucket, "p/x.zst")) == text(1000)
    marked = marks_of(marks)
    assert marked["p/x"]["state"] == "done" and marked["p/x.zst"]["state"] == "failed"
    alone = s3once("push", make_tree(tmp_path / "alone", {"x.zst": 5}), f"s3://{bucket}/p", "--if-changed", "replace")
    assert alone.code == 1 and "s3once uploaded it for another file" in alone.err and "; remove it" not in alone.err, alone
    assert decompressed("zstd", s3.get(bucket, "p/x.zst")) == text(1000)


def test_changed_and_touched(s3once, s3, bucket, marks, tmp_path):
    """The content decides, by the checksum of what was read; a change replaces the object, or is left alone."""
    tree = make_tree(tmp_path / "tree", {"a": text(MIB), "large": 11 * MIB})
    assert push(s3once, tree, bucket, "zstd").code == 0
    for path in tree.iterdir():
        path.touch()
    run = push(s3once, tree, bucket, "zstd:9")
    assert run.code == 0 and counts(run) == {"refreshed": 2}, run
    make_tree(tree, {"a": text(MIB, seed=1), "large": 11 * MIB - 1})
    kept = push(s3once, tree, bucket, "zstd")
    assert kept.code == 1 and counts(kept) == {"refused": 2}, kept
    plain = s3once("push", tree, f"s3://{bucket}/p", "--if-changed=replace", "--json")
    assert plain.code == 1 and counts(plain) == {"refused": 2} and "use the same --compress" in plain.out, plain
    replaced = push(s3once, tree, bucket, "zstd", "--if-changed=replace")
    assert replaced.code == 0 and counts(replaced) == {"uploaded": 2}, replaced
    assert_round_trip(s3, bucket, tree, "zstd")


@pytest.mark.parametrize("codec", CODECS)
def test_compressed_object_is_adopted(s3once, s3, bucket, marks, tmp_path, codec):
    """Without its mark a file is compressed again, and compared; by whatever level the object was made with."""
    tree = make_tree(tmp_path / "tree", {"a": text(MIB), "large": 11 * MIB})
    assert push(s3once, tree, bucket, codec).code == 0
    before = s3.objects(bucket, "p/")
    run = push(s3once, tree, bucket, f"{codec}:1", "--reupload")
    assert run.code == 0 and counts(run) == {"adopted": 2} and run.events[-1]["bytes_sent"] == 0, run
    assert s3.objects(bucket, "p/") == before


def test_removal_and_proven(s3once, s3, bucket, marks, tmp_path):
    """The object is proven by its own size and checksum, and the file by those of the bytes read."""
    tree = make_tree(tmp_path / "tree", {"a": text(MIB), "large": 11 * MIB})
    assert push(s3once, tree, bucket, "zstd").code == 0
    target = f"s3://{bucket}/p"
    assert s3once("proven", "--source", tree, tree / "a", tree / "large", target).code == 0
    run = push(s3once, tree, bucket, "zstd", "--delete-after")
    assert run.code == 0 and sorted(event["key"] for event in told(run, "removed")) == ["p/a.zst", "p/large.zst"], run
    assert not list(tree.iterdir())
    make_tree(tree, {"new": text(1000)})
    run = push(s3once, tree, bucket, "zstd", "--delete-after")
    assert run.code == 0 and [event["key"] for event in told(run, "removed")] == ["p/new.zst"], run


def test_rotated(s3once, s3, bucket, marks, tmp_path):
    """A log that was compressed on its way is the same when logrotate has compressed it."""
    tree = make_tree(tmp_path / "tree", {"app.log": 5, "app.log.1": text(MIB)})
    run = push(s3once, tree, bucket, "zstd", "--rotated")
    assert run.code == 0 and counts(run) == {"uploaded": 1, "waiting": 1}, run
    (key,) = s3.objects(bucket)
    assert key.endswith(".log.zst") and decompressed("zstd", s3.get(bucket, key)) == text(MIB)
    subprocess.run(["gzip", tree / "app.log.1"], check=True)
    (tree / "app.log.1.gz").rename(tree / "app.log.2.gz")
    run = push(s3once, tree, bucket, "zstd", "--rotated")
    assert run.code == 0 and counts(run) == {"skipped": 1, "waiting": 1}, run
    assert list(s3.objects(bucket)) == [key]


COMPRESSED = 4  # parts of the large file below


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return make_tree(tmp_path_factory.mktemp("large") / "tree", {"large": (COMPRESSED - 1) * PART + 12345})


def resumable(tree, bucket, codec):
    return ("push", tree, f"s3://{bucket}/p", "--compress", codec, "--part-size", "5MiB", "--concurrency", "1", "--lease", "1h", "--json")


def parts_sent(wire):
    return sorted(each.operation.part for each in wire.history if each.kind == "UploadPart")


@pytest.mark.parametrize(
    "nth, marks, codec", [(1, "dynamodb", "zstd"), (2, "sqlite", "gzip:3"), (3, "dynamodb", "gzip:3"), (4, "sqlite", "zstd")], indirect=["marks"]
)
def test_killed_at_each_part(s3once, s3, s3_wire, bucket, marks, large, nth, codec):
    """The parts that S3 has are made again, compared, and not sent again."""
    command = resumable(large, bucket, codec)
    killed = Killed(s3once, s3, s3_wire, bucket, command, faults.kill_after, nth, "UploadPart")
    assert len(killed.there) == nth
    assert marks_of(marks)["p/large"]["upload_encoding"].startswith(ENCODERS[codec])
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    assert parts_sent(s3_wire) == list(range(nth + 1, COMPRESSED + 1))
    assert_round_trip(s3, bucket, large, codec.partition(":")[0])


@pytest.mark.parametrize("first, codec", [("zstd", "zstd:4"), ("gzip:3", "gzip:4"), ("zstd", "gzip:3")])
def test_resumed_with_another_encoding(s3once, s3, s3_wire, bucket, marks, large, first, codec):
    """Its parts would be others, perhaps under another key: the upload is aborted, and another one begun."""
    Killed(s3once, s3, s3_wire, bucket, resumable(large, bucket, first), faults.kill_after, 2, "UploadPart")
    run = s3once(*resumable(large, bucket, codec))
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    assert parts_sent(s3_wire) == list(range(1, COMPRESSED + 1))
    assert_round_trip(s3, bucket, large, codec.partition(":")[0])


@pytest.mark.parametrize("marks", ["sqlite"], indirect=True)
@pytest.mark.parametrize("header", [(True, False), (False, True)], ids=["then without", "then with"])
def test_resumed_without_the_suffix(s3once, s3, s3_wire, bucket, marks, large, header):
    """The same encoding under another key: the upload of the other key is aborted there, and not forgotten."""
    first, then = [("--header", "Content-Encoding: zstd") * has for has in header]
    Killed(s3once, s3, s3_wire, bucket, (*resumable(large, bucket, "zstd"), *first), faults.kill_after, 2, "UploadPart")
    run = s3once(*resumable(large, bucket, "zstd"), *then)
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    assert s3.objects(bucket).keys() == {"p/large" if then else "p/large.zst"} and not s3.uploads(bucket)


@pytest.mark.parametrize("marks", ["sqlite"], indirect=True)
def test_resumed_by_another_build(s3once, s3, s3_wire, bucket, marks, large):
    """An upload that was begun at the same level by another version of zlib is started again."""
    command = resumable(large, bucket, "gzip:3")
    Killed(s3once, s3, s3_wire, bucket, command, faults.kill_after, 1, "UploadPart")
    own = marks_of(marks)["p/large"]["upload_encoding"]
    marks.change(marks_of(marks)["p/large"], "upload_encoding", "zlib-1.2.11:3")
    assert marks_of(marks)["p/large"]["upload_encoding"] == "zlib-1.2.11:3"
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    assert parts_sent(s3_wire) == list(range(1, COMPRESSED + 1))
    found = assert_round_trip(s3, bucket, large, "gzip")
    assert found["p/large.gz"].metadata["s3once-encoding"] == own


def test_killed_after_complete(s3once, s3, s3_wire, bucket, marks, large):
    """Nothing is sent again."""
    Killed(s3once, s3, s3_wire, bucket, resumable(large, bucket, "zstd"), faults.kill_after, 1, "CompleteMultipartUpload")
    run = s3once(*resumable(large, bucket, "zstd:1"))
    assert run.code == 0 and counts(run) == {"adopted": 1} and run.events[-1]["bytes_sent"] == 0, run
    assert_round_trip(s3, bucket, large, "zstd")


@pytest.mark.parametrize("marks", ["sqlite"], indirect=True)
def test_limit_of_bandwidth(s3once, s3, bucket, marks, tmp_path):
    """It is about what leaves: 64 MiB that become a few KiB would take minutes at it. What cannot be compressed takes its time."""
    tree = make_tree(tmp_path / "tree", {"random": 300 * KIB})
    with open(tree / "zeros", "wb") as file:
        file.truncate(64 * MIB)
    run = s3once("push", tree, f"s3://{bucket}/p", "--compress", "zstd", "--bwlimit", "400K", "--json")
    assert run.code == 0 and counts(run) == {"uploaded": 2}, run
    assert 300 / 400 - 0.25 <= run.seconds < 64 * 1024 / 400 / 2, run
    assert_round_trip(s3, bucket, tree, "zstd")


@pytest.mark.parametrize("marks", ["sqlite"], indirect=True)
def test_looked_for_right_before_it_is_sent(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """If conditions may be ignored, also after a file has waited for the one compressor that fits into --memory."""
    tree = make_tree(tmp_path / "tree", {"a": 4 * MIB, "b": 4 * MIB})
    s3_wire.add(faults.delay_reply(1), "PutObject", nth=1)
    run = s3once("push", tree, f"s3://{bucket}/p", "--compress", "zstd", "--memory", "6M", "--concurrency", "2", "--json")
    assert run.code == 0 and counts(run) == {"uploaded": 2}, run
    first, second = (each for each in s3_wire.history if each.kind == "PutObject")
    looks = [each for each in s3_wire.history if each.kind == "HeadObject" and each.operation.key == second.operation.key]
    assert first.ended < looks[-1].begun < second.begun
    assert_round_trip(s3, bucket, tree, "zstd")


@pytest.mark.parametrize("marks", ["sqlite"], indirect=True)
@pytest.mark.parametrize("s3", ["s3rver"], indirect=True)
def test_an_object_that_comes_before_it_is_sent_stays(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """This server ignores conditions, so that only the look right before the write sees it."""
    tree = make_tree(tmp_path / "tree", {"a": text(100 * KIB)})
    rule = s3_wire.add(faults.hold_reply, "HeadObject", key="p/a.zst")
    run = s3once.start("push", tree, f"s3://{bucket}/p", "--compress", "zstd", "--json")
    assert rule.reached.wait(60), run.output()
    s3.client.put_object(Bucket=bucket, Key="p/a.zst", Body=b"of others")
    rule.released.set()
    result = run.wait()
    assert result.code == 1 and s3.get(bucket, "p/a.zst") == b"of others", result


PEAK = """import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print("peak:", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(code)"""


@pytest.mark.parametrize("marks", ["sqlite"], indirect=True)
@pytest.mark.parametrize("size", [96 * MIB, pytest.param(1024 * MIB, marks=pytest.mark.full)])
def test_memory_is_flat(s3once, s3, bucket, marks, tmp_path, size):
    """The additional memory for a large file depends on --memory alone."""
    block, peaks = os.urandom(8 * MIB), []
    s3once.environment["ASAN_OPTIONS"] += ":quarantine_size_mb=1"
    for n in (1, size):
        tree = tmp_path / f"tree{n}"
        tree.mkdir()
        with open(tree / "file", "wb") as file:
            while file.tell() < n:  # further apart than the compressor looks back
                file.write(block[: n - file.tell()])
        target = f"s3://{bucket}/{n}"
        run = s3once("push", tree, target, "--compress", "zstd", "--memory", "16M", wrap=[sys.executable, "-c", PEAK])
        assert run.code == 0, run
        peaks.append(int(run.err.split("peak:")[1]) * KIB)
    assert peaks[1] - peaks[0] < 80 * MIB, peaks


def test_several_uploaders(s3once, s3, bucket, marks, tmp_path):
    """They share a tree, and send each file once."""
    files = {f"{n}": text(20 * KIB + n) for n in range(12)} | {"large": 11 * MIB}
    tree = make_tree(tmp_path / "tree", files)
    command = ("push", tree, f"s3://{bucket}/p", "--compress", "zstd", "--part-size", "5MiB", "--json")
    runs = [each.wait(120) for each in [s3once.start(*command) for _ in range(3)]]
    assert all(run.code == 0 for run in runs), runs
    assert sum(run.events[-1]["uploaded"] for run in runs) == len(files), runs
    assert_round_trip(s3, bucket, tree, "zstd")


# --- servers that want parts of one length


def part_sizes(wire):
    """upload → the sizes of its parts in order, of the uploads that became visible."""
    done = {each.operation.upload for each in wire.history if each.kind == "CompleteMultipartUpload" and each.took_effect}
    sizes = {}
    for each in wire.history:
        if each.kind == "UploadPart" and each.operation.upload in done and each.took_effect:
            sizes.setdefault(each.operation.upload, {})[each.operation.part] = each.body_bytes
    return [[parts[number] for number in sorted(parts)] for parts in sizes.values()]


def assert_equal_parts(wire):
    for sizes in part_sizes(wire):
        assert len(sizes) > 1 and set(sizes[:-1]) == {sizes[0]} and sizes[-1] <= sizes[0], sizes


def uneven():
    """Samples of it say that it compresses well, and in one place it does not."""
    return text(36 * MIB) + content("uneven", 7 * MIB) + text(18 * MIB)


@pytest.mark.parametrize("codec, code", [("zstd", "InvalidPart"), ("zstd", "InvalidRequest"), pytest.param("gzip:1", "InvalidPart", marks=pytest.mark.full)])
def test_server_that_wants_equal_parts(s3once, s3, s3_wire, bucket, marks, tmp_path, codec, code):
    """Parts are padded to one length once the server has refused others; where one is larger, all are made of less."""
    files = {"a": content("a", 6 * MIB) + text(9 * MIB), "b": uneven(), "c": content("c", 7 * MIB), "small": text(1000)}
    tree = make_tree(tmp_path / "tree", files)
    rule = s3_wire.add(faults.refuses_unequal_parts(code), "CompleteMultipartUpload", times=None)
    run = push(s3once, tree, bucket, codec, "--concurrency", "1")
    assert run.code == 0 and counts(run) == {"uploaded": 4} and 1 <= rule.fired <= 6, run
    assert len([event for event in told(run, "note") if "padded to one length" in event["text"]]) == 1, run
    assert_round_trip(s3, bucket, tree, codec.partition(":")[0])
    assert_equal_parts(s3_wire)
    assert counts(push(s3once, tree, bucket, codec)) == {"skipped": 4}
    for each in marks_of(marks):  # what lies there is made again to be compared
        assert s3once("forget", f"s3://{bucket}/{each}").code == 0
    run = push(s3once, tree, bucket, codec)
    assert run.code == 0 and counts(run) == {"adopted": 4}, run


def test_equal_parts_are_resumed(s3once, s3, s3_wire, bucket, marks, tmp_path):
    """The next run learns from the mark what the server wants, and sends only what lacks."""
    tree = make_tree(tmp_path / "tree", {"a": uneven()})
    s3_wire.add(faults.refuses_unequal_parts(), "CompleteMultipartUpload", times=None)
    refused = lambda record: any(each.kind == "CompleteMultipartUpload" and each.ended for each in s3_wire.history)  # noqa: E731
    s3_wire.add(faults.kill_after, "UploadPart", where=refused, nth=1)
    assert push(s3once, tree, bucket, "zstd", "--concurrency", "1").code == -9
    s3_wire.clear()
    rule = s3_wire.add(faults.refuses_unequal_parts(), "CompleteMultipartUpload", times=None)
    since = len(s3_wire.history)
    run = push(s3once, tree, bucket, "zstd", "--concurrency", "1")
    assert run.code == 0 and counts(run) == {"uploaded": 1} and not rule.fired, run
    assert not [each for each in s3_wire.history[since:] if each.kind == "CreateMultipartUpload"]
    assert_round_trip(s3, bucket, tree, "zstd")
    assert_equal_parts(s3_wire)
