"""Each checksum: the figures against libraries that are not ours, what goes over the wire, what is told and remembered."""

import os
import random
import signal
import subprocess

import pytest

from tests.faults import faults
from tests.faults.checksums import COMBINE, HEADERS, NAMES, composite_of, crc32c, digest_of, new, promised_by, sum_of
from tests.faults.proxy import Proxy
from tests.system.harness import BUILD, MIB, S3, make_tree
from tests.system.pushing import SqliteMarks, counts, marks_of

PART = 5 * MIB
FILES = {"small": 1000, "large": 2 * PART + 77}


# --- the figures


@pytest.mark.parametrize("size", [0, 1, 7, 8, 63, 64, 65, 4096, MIB - 1, 5 * MIB + 3, pytest.param(64 * MIB, marks=pytest.mark.full)])
def test_sums_equal_those_of_others(tmp_path, size):
    """Whole, without the processor's help, and in two parts, split anywhere."""
    chosen = random.Random(size)
    body = chosen.randbytes(size)
    (tmp_path / "file").write_bytes(body)
    splits = sorted({0, size, *(chosen.randint(0, size) for _ in range(3 if size > MIB else 20))})
    program = BUILD / "tests" / "unit" / "base" / "sum_dump"
    lines = subprocess.run([program, tmp_path / "file", *map(str, splits)], capture_output=True, text=True, check=True).stdout
    found = {tuple(line.split()[:2]): line.split()[2] for line in lines.splitlines()}
    wanted = {}
    for name in NAMES:
        whole = digest_of(name, body).hex()
        wanted[name, "whole"] = whole
        if name in COMBINE:
            wanted[name, "portable"] = whole
        for at in splits:
            wanted[name, str(at)] = whole if name in COMBINE else of_parts(name, body, at)
    assert found == wanted


def of_parts(name, body, at):
    both = new(name)
    for part in (body[:at], body[at:]):
        both.update(digest_of(name, part))
    return both.digest().hex()


# --- the wire


class Pusher:
    """Pushes one tree through a proxy that keeps checksums as AWS does."""

    def __init__(self, s3once, proxy, bucket, tree):
        self.s3once, self.proxy, self.bucket, self.tree = s3once, proxy, bucket, tree
        self.marks = SqliteMarks(s3once.state / "s3once" / "marks.db")

    def command(self, name, *options):
        chosen = ["--checksum", name] if name else []
        return "push", self.tree, f"s3://{self.bucket}", "--json", "--part-size", "5MiB", *chosen, *options

    def __call__(self, name, *options, env=None):
        self.proxy.history.clear()
        run = self.s3once(*self.command(name, *options), env=env)
        assert run.code == 0 and not self.proxy.failures, (run, self.proxy.failures)
        return counts(run)

    def sent(self, kind):
        return [record for record in self.proxy.history if record.kind == kind]

    def promises(self):
        """Which checksums the requests named, of any kind."""
        return {name for record in self.proxy.history for name in promised_by(record.headers)}

    def told(self, key):
        """By HEAD: as others find it."""
        client = S3(self.proxy.info())
        return promised_by(client.request("HEAD", f"/{self.bucket}/{key}", {"x-amz-checksum-mode": "ENABLED"})[1])


@pytest.fixture
def pusher(s3once, s3, bucket, tmp_path):
    with Proxy(s3, "s3", behaves="aws") as proxy:
        s3once.environment["AWS_ENDPOINT_URL_S3"] = proxy.endpoint
        yield Pusher(s3once, proxy, bucket, make_tree(tmp_path / "tree", FILES))


def object_sum(name, body):
    parts = [body[at : at + PART] for at in range(0, len(body), PART)]
    return sum_of(name, body) if name in COMBINE or len(parts) == 1 else composite_of(name, [sum_of(name, part) for part in parts])


@pytest.mark.parametrize("name", NAMES)
def test_each_is_sent_kept_and_remembered(pusher, s3, bucket, name):
    assert pusher(name) == {"uploaded": 2}
    s3.assert_same(pusher.tree, bucket)
    wanted = {name} & HEADERS.keys()
    assert pusher.promises() == wanted
    bodies = {key: (pusher.tree / key).read_bytes() for key in FILES}
    for key, body in bodies.items():
        assert pusher.told(key) == {one: object_sum(one, body) for one in wanted}
    assert all("content-md5" in record.headers for record in pusher.sent("PutObject"))  # the first: nobody knows yet
    marks = marks_of(pusher.marks)
    assert marks["small"]["sum"] == f"{name}:{sum_of(name, bodies['small'])}"
    of_whole = name if name in COMBINE else "crc32c"
    assert marks["large"]["sum"] == f"{of_whole}:{sum_of(of_whole, bodies['large'])}"


@pytest.mark.parametrize("name", ["crc32", "sha1", "sha256"])
def test_checksums_are_sent_like_botocore(pusher, s3, name):
    """For the checksums that Debian's botocore knows without its C runtime."""
    pusher(name)
    body = (pusher.tree / "small").read_bytes()
    (ours,) = pusher.sent("PutObject")
    assert promised_by(ours.headers) == promised_by(botocore_sends(s3, "put_object", Body=body, ChecksumAlgorithm=name.upper()))
    (ours,) = pusher.sent("CreateMultipartUpload")
    theirs = botocore_sends(s3, "create_multipart_upload", ChecksumAlgorithm=name.upper())
    assert ours.headers["x-amz-checksum-algorithm"] == theirs["x-amz-checksum-algorithm"]


def botocore_sends(s3, operation, **parameters):
    seen = {}

    def capture(request, **_):
        seen.update({key.lower(): value.decode() if isinstance(value, bytes) else value for key, value in request.headers.items()})
        raise InterruptedError

    s3.client.meta.events.register("before-send.s3", capture, unique_id="sums")
    try:
        with pytest.raises(InterruptedError):
            getattr(s3.client, operation)(Bucket="b", Key="k", **parameters)
    finally:
        s3.client.meta.events.unregister("before-send.s3", capture, unique_id="sums")
    return seen


@pytest.mark.parametrize("s3", ["rgw", "swift"], indirect=True)
@pytest.mark.parametrize("name", ["crc64nvme", "sha256", "md5"])
def test_on_servers_that_keep_none(s3once, s3, bucket, tmp_path, name):
    """Proven by MD5 then, of parts too."""
    tree = make_tree(tmp_path / "tree", FILES)
    command = ("push", tree, f"s3://{bucket}", "--json", "--part-size", "5MiB", "--checksum", name)
    run = s3once(*command)
    assert run.code == 0 and counts(run) == {"uploaded": 2}, run
    s3.assert_same(tree, bucket)
    run = s3once(*command, "--marks", f"sqlite:{tmp_path}/other.db")
    assert run.code == 0 and counts(run) == {"adopted": 2}, run


WHEN_REQUIRED = {"AWS_REQUEST_CHECKSUM_CALCULATION": "when_required"}


@pytest.mark.parametrize(
    ("name", "env", "wanted"),
    [
        (None, {}, "crc32c"),
        ("auto", {"S3ONCE_CHECKSUM": "sha1"}, "crc32c"),
        (None, {"S3ONCE_CHECKSUM": "sha1"}, "sha1"),
        (None, WHEN_REQUIRED, None),
        ("auto", WHEN_REQUIRED, None),
        ("crc32", WHEN_REQUIRED, "crc32"),
        ("md5", {}, None),
    ],
)
def test_which_one(pusher, name, env, wanted):
    assert pusher(name, env=env) == {"uploaded": 2}
    assert pusher.promises() == {wanted} - {None}
    (created,) = pusher.sent("CreateMultipartUpload")
    assert created.headers.get("x-amz-checksum-algorithm") == (wanted and wanted.upper())


# --- what was uploaded under another


@pytest.mark.parametrize("name, other", [("sha256", "crc32"), ("crc64nvme", "md5"), ("md5", "sha1")])
def test_another_choice_uploads_nothing_again(pusher, name, other):
    assert pusher(name) == {"uploaded": 2}
    assert pusher(other) == {"skipped": 2}
    for key in FILES:
        os.utime(pusher.tree / key, ns=(1, 1))
    assert pusher(other) == {"refreshed": 2}
    (pusher.tree / "small").write_bytes(b"x" * FILES["small"])
    assert pusher(other, "--if-changed", "replace") == {"uploaded": 1, "skipped": 1}
    assert [record.operation.key for record in pusher.sent("PutObject")] == ["small"] and not pusher.sent("UploadPart")


@pytest.mark.parametrize("name", NAMES)
def test_object_is_proven_by_its_own_checksum(pusher, name):
    """No mark says so: HEAD tells the checksum, or an etag that is an MD5."""
    pusher(name)
    assert pusher("crc32", "--marks", f"sqlite:{pusher.s3once.folder}/other.db") == {"adopted": 2}
    assert not pusher.sent("UploadPart") and not pusher.sent("CreateMultipartUpload")


@pytest.mark.parametrize("name, other", [("sha256", "crc64nvme"), ("crc32", "sha1"), ("md5", "crc32c"), ("crc64nvme", "md5")])
def test_an_upload_goes_on_with_the_one_it_was_begun_with(pusher, s3, bucket, name, other):
    """The proxy refuses parts of another, as AWS does."""
    pusher.proxy.add(faults.kill_after, "UploadPart", nth=2)
    running = pusher.s3once.start(*pusher.command(name, "--concurrency", "1"))
    assert running.popen.wait(60) == -signal.SIGKILL
    pusher.proxy.settle()
    pusher.proxy.clear()
    assert marks_of(pusher.marks)["large"]["upload_sum"] == name
    there = {number for parts in s3.uploads(bucket).values() for number, _ in parts}
    assert there
    pusher(other)
    sent = {record.operation.part for record in pusher.sent("UploadPart")}
    assert sent == {1, 2, 3} - there and not pusher.sent("CreateMultipartUpload")
    s3.assert_same(pusher.tree, bucket)
    assert pusher.told("large") == {one: object_sum(one, (pusher.tree / "large").read_bytes()) for one in {name} & HEADERS.keys()}


# --- content that was made to have the same checksum


def forged(body, at=100):
    """Other content of the same size and CRC-32C: four bytes make up for one that changed. A CRC is linear, so these
    are found by solving 32 equations."""
    changed = bytearray(body)
    changed[at] ^= 1
    place, wanted = len(body) // 2, crc32c(body)
    base = crc32c(bytes(changed))
    rows = []
    for bit in range(32):
        flipped = bytearray(changed)
        flipped[place + bit // 8] ^= 1 << bit % 8
        rows.append([crc32c(bytes(flipped)) ^ base, 1 << bit])
    left, chosen = base ^ wanted, 0
    for bit in range(32):
        pivot = next(row for row in rows if row[0] >> bit & 1)
        rows.remove(pivot)
        rows = [[row[0] ^ pivot[0], row[1] ^ pivot[1]] if row[0] >> bit & 1 else row for row in rows]
        if left >> bit & 1:
            left, chosen = left ^ pivot[0], chosen ^ pivot[1]
    for bit in range(32):
        changed[place + bit // 8] ^= (chosen >> bit & 1) << bit % 8
    assert crc32c(bytes(changed)) == wanted and changed != body
    return bytes(changed)


@pytest.mark.parametrize("name", ["crc32c", "sha256"])
@pytest.mark.parametrize("key", FILES)
def test_forged_file_is_a_changed_one(pusher, s3, bucket, key, name):
    """Its mark has the MD5 in the etag, and of parts under SHA-256 their checksums'."""
    pusher(name)
    path, body = pusher.tree / key, (pusher.tree / key).read_bytes()
    mark = marks_of(pusher.marks)[key]
    assert mark["md5"] == 1 and mark.get("parts") == (PART if key == "large" else None)
    of_parts = f"sha256:{object_sum('sha256', body)}" if (key, name) == ("large", "sha256") else None
    assert mark.get("parts_sum") == of_parts
    path.write_bytes(forged(body))
    run = pusher.s3once(*pusher.command(name))
    assert run.code == 1 and counts(run) == {"refused": 1, "skipped": 1}, run
    assert s3.get(bucket, key) == body
    os.utime(pusher.tree / "small", ns=(1, 1))
    path.write_bytes(body)
    run = pusher.s3once(*pusher.command(name))
    assert run.code == 0 and counts(run)["refreshed"] >= 1, run


@pytest.mark.parametrize("key", FILES)
def test_forged_file_whose_etag_says_nothing_is_a_changed_one_by_sha256(pusher, key):
    """As for an object that is encrypted with KMS."""
    pusher.proxy.add(faults.kms_etag, times=None)
    pusher("sha256")
    assert "md5" not in marks_of(pusher.marks)[key]
    body = (pusher.tree / key).read_bytes()
    (pusher.tree / key).write_bytes(forged(body))
    run = pusher.s3once(*pusher.command("sha256"))
    assert run.code == 1 and counts(run) == {"refused": 1, "skipped": 1}, run
    (pusher.tree / key).write_bytes(body)
    assert pusher("sha256") == {"refreshed": 1, "skipped": 1}


@pytest.mark.parametrize("key", FILES)
def test_forged_object_is_not_adopted(pusher, s3, bucket, key):
    """No mark knows it: what HEAD tells of it is compared, and the etag too."""
    pusher("crc32c")
    body = (pusher.tree / key).read_bytes()
    (pusher.tree / key).write_bytes(forged(body))
    run = pusher.s3once(*pusher.command("crc32c", "--marks", f"sqlite:{pusher.s3once.folder}/other.db"))
    assert run.code == 1 and counts(run) == {"failed": 1, "adopted": 1}, run
    assert s3.get(bucket, key) == body
