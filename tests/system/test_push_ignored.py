"""Servers that pass over what they were asked for, or cannot do what others can: said, and never taken for done."""

import base64

import pytest

from tests.faults import faults
from tests.faults.checksums import HEADERS, sum_of
from tests.faults.proxy import Proxy
from tests.system.harness import MIB, make_tree
from tests.system.pushing import counts, learn_conditions, told

PART = 5 * MIB
SIZES = {"small": 1000, "large": 2 * PART + 77}
SSE = "x-amz-server-side-encryption"
KEY_HEADERS = [f"{SSE}-customer-{name}" for name in ("algorithm", "key", "key-md5")]


def push(s3once, tree, bucket, *options):
    return s3once("push", tree, f"s3://{bucket}/p", "--json", "--part-size", "5MiB", *options)


def key_file(folder):
    path = folder / "key"
    path.write_bytes(bytes(range(32)))
    path.chmod(0o600)
    return path


@pytest.fixture
def wire(s3, s3once, tmp_path):
    """TLS, since without it no key is sent."""
    with Proxy(s3, "s3", tmp_path / "proxy", tls=True) as wire:
        s3once.environment.update(AWS_ENDPOINT_URL_S3=wire.endpoint, AWS_CA_BUNDLE=str(wire.ca))
        yield wire
        assert not wire.failures


@pytest.mark.parametrize("how", ["AES256", "aws:kms", "own key"])
@pytest.mark.parametrize("size", SIZES)
def test_encryption_that_was_ignored_is_a_failure(s3once, s3, wire, bucket, tmp_path, size, how):
    tree = make_tree(tmp_path / "tree", {"file": SIZES[size]})
    options = ("--sse-c-key-file", key_file(tmp_path)) if how == "own key" else ("--sse", how)
    rule = wire.add(faults.ignores(SSE, *KEY_HEADERS), times=None)
    for _ in range(2):
        run = push(s3once, tree, bucket, *options)
        assert run.code == 1 and counts(run) == {"failed": 1}, run
        assert "does not confirm the encryption" in told(run, "failed")[0]["text"]
    assert rule.fired and not [each for each in wire.history if each.kind == "UploadPart"] and not s3.uploads(bucket)
    wire.clear()
    run = push(s3once, tree, bucket)
    assert run.code == 0, run
    s3.assert_same(tree, bucket, "p")


@pytest.mark.parametrize("size", SIZES)
def test_plain_object_is_not_adopted_as_encrypted(s3once, s3, bucket, tmp_path, size):
    tree = make_tree(tmp_path / "tree", {"file": SIZES[size]})
    assert push(s3once, tree, bucket).code == 0
    run = push(s3once, tree, bucket, "--sse", "aws:kms", "--marks", f"sqlite:{tmp_path}/other.db")
    assert run.code == 1 and "does not confirm the encryption" in told(run, "failed")[0]["text"], run


def test_an_upload_that_was_begun_in_clear_is_not_gone_on_with(s3once, s3, s3_wire, bucket, tmp_path):
    """The encryption was asked for only later."""
    tree = make_tree(tmp_path / "tree", {"file": SIZES["large"]})
    s3_wire.add(faults.kill_after, "UploadPart", nth=2)
    assert push(s3once, tree, bucket).code == -9
    s3_wire.clear()
    s3_wire.add(faults.ignores(SSE), times=None)
    run = push(s3once, tree, bucket, "--sse", "AES256")
    assert run.code == 1 and "not uploaded: the server does not confirm the encryption" in told(run, "failed")[0]["text"], run
    assert not s3.objects(bucket) and not s3.uploads(bucket)


@pytest.mark.parametrize("fault", [faults.answer(405, "MethodNotAllowed"), faults.answer(501, "NotImplemented"), faults.other_xml])
@pytest.mark.parametrize("aborts", [True, False])
def test_upload_that_cannot_be_listed_begins_anew(s3once, s3, s3_wire, bucket, tmp_path, fault, aborts):
    tree = make_tree(tmp_path / "tree", {"file": SIZES["large"]})
    s3_wire.add(faults.kill_after, "UploadPart", nth=2)
    assert push(s3once, tree, bucket).code == -9
    s3_wire.clear()
    s3_wire.add(fault, "ListParts", times=None)
    if not aborts:
        s3_wire.add(faults.answer(405, "MethodNotAllowed"), "AbortMultipartUpload", times=None)
    run = push(s3once, tree, bucket)
    assert run.code == 0 and counts(run) == {"uploaded": 1}, run
    (warning,) = [event["text"] for event in told(run, "warning") if "cannot list the parts" in event["text"]]
    assert str(tree / "file") in warning
    s3.assert_same(tree, bucket, "p")
    assert len(s3.uploads(bucket)) == (0 if aborts else 1)


@pytest.mark.parametrize("size", SIZES)
def test_an_object_that_is_not_under_its_key(s3once, s3, s3_wire, bucket, tmp_path, size):
    """A fake server: it answers 200 and the right MD5, and stores what comes behind a # nowhere. No such file counts, however many go at once."""
    tree = make_tree(tmp_path / "tree", {name: SIZES[size] for name in ("plain", "h#1", "h#2", "h#3", "s p")})
    for kind in ("PutObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"):
        s3_wire.add(faults.cuts_keys_at("#"), kind, times=None)
    run = push(s3once, tree, bucket)
    assert run.code == 1 and counts(run) == {"uploaded": 2, "failed": 3}, run
    failed = [event["text"] for event in told(run, "failed")]
    assert any("there is no object p/h#" in text for text in failed), failed
    assert all("there is no object p/h#" in text or "but HEAD finds no object" in text for text in failed), failed
    assert push(s3once, tree, bucket).code == 1
    assert s3.get(bucket, "p/plain") == (tree / "plain").read_bytes() and s3.get(bucket, "p/s p") == (tree / "s p").read_bytes()


def test_keys_are_looked_at_once(s3once, s3, bucket, tmp_path):
    """A HEAD for the first key with a character that has to be encoded, where conditions spare the others."""
    tree = make_tree(tmp_path / "tree", {f"{end}{number}": 10 for end in ("plain", "a#", "b?", "c#?", "\u00e9", "\u00fc") for number in range(4)})
    with Proxy(s3, "s3", behaves="aws") as wire:
        s3once.environment["AWS_ENDPOINT_URL_S3"] = wire.endpoint
        learn_conditions(s3once, bucket)
        wire.history.clear()
        run = push(s3once, tree, bucket, "--concurrency", "1")
    assert run.code == 0 and counts(run) == {"uploaded": 24}, run
    heads = [record.operation.key for record in wire.history if record.kind == "HeadObject"]
    assert heads == ["p/a#0", "p/b?0", "p/\u00e90"], heads


def test_key_that_nobody_may_look_at(s3once, s3, bucket, tmp_path):
    """With s3:PutObject alone the reply to the upload has to do."""
    tree = make_tree(tmp_path / "tree", {"a#": 10, "b#": 10})
    with Proxy(s3, "s3", behaves="aws") as wire:
        s3once.environment["AWS_ENDPOINT_URL_S3"] = wire.endpoint
        learn_conditions(s3once, bucket)
        wire.add(faults.answer(403, "AccessDenied"), "HeadObject", times=None)
        run = push(s3once, tree, bucket, "--concurrency", "1")
    (warning,) = told(run, "warning")
    assert run.code == 0 and "is found under its key cannot be seen" in warning["text"], run


def test_etag_that_is_another_after_complete(s3once, s3, s3_wire, bucket, tmp_path):
    """A fake of gofakes3. The mark has what HEAD shows, which the MD5 of the file settles."""
    tree = make_tree(tmp_path / "tree", SIZES)
    rule = s3_wire.add(faults.tells_md5_of_the_whole(), times=None)
    run = push(s3once, tree, bucket)
    assert run.code == 0 and counts(run) == {"uploaded": 2} and rule.fired, run
    for options in ((), ("--head",), ("--download",)):
        run = s3once("verify", *options, f"s3://{bucket}/p")
        assert run.code == 0, run
    run = s3once("proven", "--json", tree / "small", tree / "large", f"s3://{bucket}/p")
    assert run.code == 0, run


def test_etag_that_was_another_when_it_was_marked(s3once, s3, bucket, tmp_path):
    """As above, for a mark with the etag of the parts: the MD5 of the file is that of the object."""
    tree = make_tree(tmp_path / "tree", SIZES)
    with Proxy(s3, "s3", behaves="aws") as wire:
        s3once.environment["AWS_ENDPOINT_URL_S3"] = wire.endpoint
        learn_conditions(s3once, bucket)
        rule = wire.add(faults.tells_md5_of_the_whole(), times=None)
        denied = wire.add(faults.answer(403, "AccessDenied"), "HeadObject", times=None)
        wire.rules.reverse()
        run = push(s3once, tree, bucket)
        assert run.code == 0 and rule.fired and denied.fired, run
        denied.times = 0
        assert s3once("proven", tree / "large", f"s3://{bucket}/p").code == 0
        assert s3once("verify", "--download", f"s3://{bucket}/p").code == 0
        with open(tree / "large", "r+b") as file:
            file.write(b"other")
        assert s3once("proven", tree / "large", f"s3://{bucket}/p").code == 1


KEPT = {
    "content-language": (("--header", "Content-Language: en"), "content-language", "--header Content-Language: the object of {} does not have this value"),
    "cache-control": (("--header", "Cache-Control: no-cache"), "cache-control", "--header Cache-Control: the object of {} does not have this value"),
    "content-type": (("--content-type", "text/x-log"), "content-type", "--content-type: the object of {} does not have this value"),
    "storage class": (("--storage-class", "GLACIER"), "x-amz-storage-class", "--storage-class GLACIER: the object of {} is stored as STANDARD"),
    "metadata": (("--metadata", "team=logs"), "x-amz-meta-team", "--metadata: the object of {} does not have all of this metadata"),
    "tags": (("--tag", "team=logs", "--tag", "a=b"), "x-amz-tagging", "--tag: the object of {} does not have all of these tags"),
}


def ignored(run):
    return [event["text"] for event in told(run, "warning") if "ignored" in event["text"]]


@pytest.mark.real_s3
@pytest.mark.parametrize("what", KEPT)
@pytest.mark.parametrize("size", SIZES)
def test_setting_that_was_ignored_is_said_once(s3once, s3, s3_wire, bucket, tmp_path, size, what):
    """For the first object that has it. The others are not checked, and all are uploaded."""
    options, header, words = KEPT[what]
    tree = make_tree(tmp_path / "tree", {f"{size}{number}": SIZES[size] for number in range(3)})
    rule = s3_wire.add(faults.ignores(header), times=None)
    run = push(s3once, tree, bucket, "--concurrency", "1", *options)
    assert run.code == 0 and counts(run) == {"uploaded": 3}, run
    (warning,) = ignored(run)
    assert "the server ignored " + words.format(tree / f"{size}0") in warning, warning
    assert rule.fired >= 3 and len([each for each in s3_wire.history if each.kind == "GetObjectTagging"]) == (what == "tags")
    s3.assert_same(tree, bucket, "p")


@pytest.mark.real_s3
def test_tags_of_objects_in_parts_that_rgw_drops(s3once, s3, bucket, tmp_path):
    """Ceph's gateway itself, which keeps those of objects sent whole."""
    run = push(s3once, make_tree(tmp_path / "tree", SIZES), bucket, "--tag", "a=b")
    assert run.code == 0 and counts(run) == {"uploaded": 2}, run
    (warning,) = ignored(run)
    assert "--tag: the object of " in warning and "large" in warning, warning


def test_setting_that_is_ignored_in_parts_alone(s3once, s3, s3_wire, bucket, tmp_path):
    """One object sent whole and one sent in parts are looked at."""
    tree = make_tree(tmp_path / "tree", {f"{size}{number}": SIZES[size] for size in SIZES for number in range(2)})
    s3_wire.add(faults.ignores("content-language"), "CreateMultipartUpload", times=None)
    run = push(s3once, tree, bucket, "--header", "Content-Language: en", "--header", "Cache-Control: no-cache")
    assert run.code == 0 and counts(run) == {"uploaded": 4}, run
    (warning,) = ignored(run)
    assert "--header Content-Language: the object of " in warning and "large" in warning and "sent in parts, only this one" in warning, warning


async def one_empty_tag(x, rule):
    """As in gofakes3's reply."""
    reply = await x.forward()
    reply.body = b"<Tagging><TagSet><Tag><Key></Key><Value></Value></Tag></TagSet></Tagging>"
    x.fire(rule)
    await x.answer(reply)


def test_an_empty_tag_is_none(s3once, s3, s3_wire, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"file": 1000})
    rule = s3_wire.add(one_empty_tag, "GetObjectTagging", times=None)
    s3_wire.add(faults.hides("x-amz-tagging-count"), "HeadObject", times=None)
    run = push(s3once, tree, bucket, "--tag", "a=b")
    assert run.code == 0 and rule.fired and "the server ignored --tag" in ignored(run)[0], run


@pytest.mark.real_s3
def test_setting_that_was_ignored_is_printed_by_a_quiet_run(s3once, s3, s3_wire, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"file": 1000})
    s3_wire.add(faults.ignores("x-amz-tagging"), times=None)
    run = s3once("push", "-q", tree, f"s3://{bucket}/p", "--tag", "a=b")
    assert run.code == 0 and not run.out and "warning: the server ignored --tag" in run.err and "is in s3://" in run.err, run


@pytest.mark.parametrize("s3, what", [(server, what) for server in ("rgw", "swift") for what in ("metadata", "tags", "STANDARD", "content-language", "cache-control", "content-type") if (server, what) != ("swift", "tags")], indirect=["s3"])
def test_setting_that_is_kept_is_not_complained_of(s3once, s3, bucket, tmp_path, what):
    """Swift refuses tags, see test_push_refused.py."""
    tree = make_tree(tmp_path / "tree", SIZES if what != "tags" else {"one": 1000, "two": 1000})
    options = KEPT[what][0] if what in KEPT else ("--storage-class", what)
    run = push(s3once, tree, bucket, "-vv", *options)
    assert run.code == 0 and counts(run) == {"uploaded": 2} and not ignored(run), run
    assert "could not be looked at" not in run.err, run


def test_class_that_is_kept_is_not_complained_of(s3once, s3, s3_wire, bucket, tmp_path):
    """The server here has one class only; its answer is made that of one that has it."""
    tree = make_tree(tmp_path / "tree", {"file": 1000})
    s3_wire.add(faults.ignores("x-amz-storage-class"), "PutObject", times=None)
    s3_wire.add(faults.tells("x-amz-storage-class", "GLACIER"), "HeadObject", times=None)
    run = push(s3once, tree, bucket, "--storage-class", "GLACIER")
    assert run.code == 0 and not ignored(run), run


@pytest.mark.parametrize("answer", [faults.answer(403, "AccessDenied"), faults.answer(501, "NotImplemented"), faults.other_xml])
def test_setting_that_cannot_be_looked_at_is_told_with_vv(s3once, s3, s3_wire, bucket, tmp_path, answer):
    tree = make_tree(tmp_path / "tree", {"file": 1000})
    s3_wire.add(answer, "GetObjectTagging", times=None)
    s3_wire.add(faults.hides("x-amz-tagging-count"), "HeadObject", times=None)
    run = push(s3once, tree, bucket, "-vv", "--tag", "a=b")
    assert run.code == 0 and counts(run) == {"uploaded": 1} and not told(run, "warning"), run
    assert "whether the server keeps --tag could not be looked at" in run.err, run


FEW = {f"f{number}": 1000 for number in range(8)}


@pytest.mark.parametrize("code", ["InvalidRequest", "InvalidArgument"])
@pytest.mark.parametrize("options", [(), ("--checksum", "auto"), ("--tag", "a=b")], ids=["", "auto", "with a setting"])
def test_checksum_that_is_refused_by_name_is_done_without(s3once, s3, s3_wire, bucket, tmp_path, options, code):
    """It goes by Content-MD5 then, and every file is in. Once it is known nothing is refused any more."""
    tree = make_tree(tmp_path / "tree", FEW | {"large": SIZES["large"]})
    rule = s3_wire.add(faults.refuses_crc32c(code), times=None)
    run = push(s3once, tree, bucket, "--concurrency", "1", *options)
    assert run.code == 0 and counts(run) == {"uploaded": 9}, run
    assert rule.fired == 1
    s3.assert_same(tree, bucket, "p")
    assert all("content-md5" in each.headers for each in s3_wire.history if each.kind in ("PutObject", "UploadPart"))


@pytest.mark.parametrize("status, code", [(501, "NotImplemented"), (400, "InvalidRequest"), (400, "InvalidArgument")])
def test_checksum_that_is_refused_in_any_words_is_done_without(s3once, s3, s3_wire, bucket, tmp_path, status, code):
    """The same request without it shows that it was that."""
    tree = make_tree(tmp_path / "tree", FEW | {"large": SIZES["large"]})
    rule = s3_wire.add(faults.answers_to("x-amz-checksum-", status, code, "Not here."), times=None)
    run = push(s3once, tree, bucket, "--concurrency", "1")
    assert run.code == 0 and counts(run) == {"uploaded": 9} and rule.fired == 1, run
    s3.assert_same(tree, bucket, "p")


def test_refusal_that_is_not_about_the_checksum(s3once, s3, s3_wire, bucket, tmp_path):
    """It is reported as the server said it, and later files keep their checksum."""
    tree = make_tree(tmp_path / "tree", {"a": 1000, "b": 1000})
    s3_wire.add(faults.answer(400, "InvalidRequest"), "PutObject", times=None, where=lambda record: record.operation.key.endswith("/a"))
    run = push(s3once, tree, bucket, "--concurrency", "1")
    assert run.code == 1 and counts(run, "failed", "uploaded") == {"failed": 1, "uploaded": 1}, run
    assert "x-amz-checksum-crc32c" in [each for each in s3_wire.history if each.kind == "PutObject"][-1].headers


def test_checksum_that_was_chosen_is_not_done_without(s3once, s3, s3_wire, bucket, tmp_path):
    tree = make_tree(tmp_path / "tree", {"small": 1000})
    s3_wire.add(faults.refuses_crc32c(), times=None)
    run = push(s3once, tree, bucket, "--checksum", "crc32c")
    assert run.code == 1 and "CRC32C is not supported" in told(run, "failed")[0]["text"] and not s3.objects(bucket), run


@pytest.mark.parametrize("how", ["the whole", "without -N"])
@pytest.mark.parametrize("kind", ["sha1", "sha256", "crc32"])
def test_checksum_of_parts_that_is_told_otherwise(s3once, s3, bucket, tmp_path, kind, how):
    """Servers that ignore x-amz-checksum-type, or leave out how many parts it is of: no other content, where the etag fits."""
    tree = make_tree(tmp_path / "tree", {"large": SIZES["large"]})
    body = (tree / "large").read_bytes()
    with Proxy(s3, "s3") as wire:
        s3once.environment["AWS_ENDPOINT_URL_S3"] = wire.endpoint
        parts = [sum_of(kind, body[at : at + PART]) for at in range(0, len(body), PART)]
        composite = sum_of(kind, b"".join(map(base64.b64decode, parts)))
        told_sum = composite if how == "without -N" else sum_of(kind, body)
        wire.add(faults.tells(HEADERS[kind], told_sum), "HeadObject", times=None)
        wire.add(faults.tells(HEADERS[kind], told_sum), "CompleteMultipartUpload", times=None)
        run = push(s3once, tree, bucket, "--checksum", kind)
        assert run.code == 0 and counts(run) == {"uploaded": 1}, run
        run = push(s3once, tree, bucket, "--checksum", kind, "--marks", f"sqlite:{tmp_path}/other.db")
        assert run.code == 0 and counts(run) == {"adopted": 1}, run
        assert not wire.failures
