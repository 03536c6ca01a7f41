"""A byte that changes on the way, and a server that stored something else, under every checksum."""

import pytest

from tests.faults import faults
from tests.faults.checksums import NAMES
from tests.faults.stage import PART, Stage


@pytest.fixture
def stage(arenas, tmp_path):
    with Stage(tmp_path / "stage", arenas(), store="sqlite", behaves="aws") as stage:
        stage.write("small", 1000)
        stage.write("large", 2 * PART + 77)
        yield stage


@pytest.mark.parametrize("name", NAMES)
def test_a_byte_that_changed_is_caught_and_sent_again(stage, name):
    rules = [stage.s3.add(faults.corrupt_byte, kind) for kind in ("PutObject", "UploadPart")]
    run = stage.push("--checksum", name)
    assert run.code == 0, run
    assert [rule.fired for rule in rules] == [1, 1]
    refused = [record for record in stage.s3.history if record.refused == "BadDigest"]
    assert sorted(record.kind for record in refused) == ["PutObject", "UploadPart"]
    for kind, least in (("PutObject", 1), ("UploadPart", 3)):
        assert sum(record.kind == kind for record in stage.s3.history) == least + 1
    assert all(mark["sum"].split(":")[0] in (name, "crc32c") for mark in stage.marks().values())
    stage.finish("--checksum", name)


def lie(name):
    return faults.wrong_etag if name == "md5" else faults.wrong_checksum


@pytest.mark.parametrize("name", NAMES)
def test_a_part_that_the_server_tells_another_of_is_no_success(stage, name):
    """It verifies nothing and answers 200: with another checksum, or another etag where that is all there is."""
    rule = stage.s3.add(lie(name), "UploadPart")
    run = stage.push("--checksum", name)
    assert run.code == 1 and rule.fired == 1, run
    assert "S3 stored other bytes" in run.err, run
    stage.finish("--checksum", name)


@pytest.mark.parametrize("name", NAMES)
def test_object_is_sent_once_if_the_server_reports_another_checksum(stage, name):
    """The object has the sent content after all, so it is not sent twice."""
    rule = stage.s3.add(lie(name), "PutObject")
    run = stage.push("--checksum", name)
    assert run.code == 0 and rule.fired == 1, run
    assert [record.kind for record in stage.s3.history].count("PutObject") == 1
    stage.finish("--checksum", name)
