"""A command inherits its standard streams and the descriptors of its caller, and none of the program's own."""

import re
import resource

import pytest

from tests.system.harness import make_tree

# Writes what the descriptors of the shell are, and its soft limit of them.
SHOW = "ls -l /proc/$$/fd >'OUT'; ulimit -Sn >>'OUT'"
LIMIT = 500


def read(path):
    *lines, limit = path.read_text().splitlines()
    return {int(number): what for number, what in re.findall(r" (\d+) -> (.+)$", "\n".join(lines), re.MULTILINE)}, int(limit)


@pytest.fixture
def wrap(tmp_path):
    """A caller with a limit of its own that has a file open as descriptor 9."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert LIMIT < hard
    return ["sh", "-c", f'ulimit -Sn {LIMIT}; exec "$@" 9>{tmp_path}/given', "sh"]


def assert_inherits(out, tmp_path, numbers):
    descriptors, limit = read(out)
    descriptors.pop(10, None)  # where dash keeps its standard output while it redirects it
    assert sorted(descriptors) == sorted([0, 1, 2, 9, *numbers]), descriptors
    assert descriptors[9] == str(tmp_path / "given") and limit == LIMIT


def test_command_of_a_lock_inherits_only_the_lock(s3once, dynamodb, table, tmp_path, wrap):
    s3once.environment.update(AWS_ENDPOINT_URL_DYNAMODB=dynamodb.endpoint, S3ONCE_LOCKS=f"dynamodb:{table}")
    assert s3once("lock", "init").code == 0
    command = SHOW.replace("OUT", str(tmp_path / "out")) + f"; echo $S3ONCE_LOCK_FD >'{tmp_path}/fd'"
    run = s3once("lock", "run", "k", "--", "sh", "-c", command, wrap=wrap)
    assert run.code == 0, run
    assert_inherits(tmp_path / "out", tmp_path, [int((tmp_path / "fd").read_text())])


def test_producer_inherits_no_descriptors(s3once, s3, bucket, tmp_path, wrap):
    command = SHOW.replace("OUT", str(tmp_path / "out")) + "; echo output"
    run = s3once("push", f"s3://{bucket}/key", "--", "sh", "-c", command, wrap=wrap)
    assert run.code == 0, run
    assert_inherits(tmp_path / "out", tmp_path, [])


def test_notified_command_inherits_no_descriptors(s3once, s3, bucket, tmp_path, wrap):
    tree = make_tree(tmp_path / "tree", {str(n): 10 for n in range(50)})
    run = s3once("push", tree, f"s3://{bucket}", "--on-success", SHOW.replace("OUT", str(tmp_path / "out")), wrap=wrap)
    assert run.code == 0 and "warning" not in run.err, run
    assert_inherits(tmp_path / "out", tmp_path, [])
