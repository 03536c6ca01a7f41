"""The simulation: that a seed is one story, and that nothing of src escapes the simulated machine."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent.parent
BUILD = REPOSITORY / os.environ.get("S3ONCE_BUILD", "build/check")
SIM = BUILD / "tests/sim/sim"

pytestmark = pytest.mark.skipif(not SIM.exists(), reason="this build has no simulation (ThreadSanitizer, or without tests)")


def sim(*argv):
    return subprocess.run([SIM, *map(str, argv)], capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("seed", [1, 7])
def test_a_seed_is_one_story(seed):
    first, second = sim(seed, "--requests"), sim(seed, "--requests")
    assert first.returncode == 0, first.stdout[-2000:]
    assert first.stdout == second.stdout


def only(settings):
    """These numbers of a world, and all others 0."""
    names = re.findall(r"X\((\w+)\)", (REPOSITORY / "tests/sim/scenario.h").read_text())
    return " ".join(f"{name}=0" for name in names if name != "name") + " " + settings


# All numbers of each world are here, so that it stays the same when seeds come to choose others.
@pytest.mark.parametrize(
    "seed, settings",
    [
        pytest.param(
            115,
            only(
                "hosts=2 clones=1 runs=12 overlap=200 files=1 large=2 dynamodb=1 drops_sums=1 small_pages=1 batches=2 no_old=1 "
                "concurrency=8 lease_s=30 attempts=1 edits=20 hot=1 kills=3 clock_jumps=1 locks=1 lost_after=100 hangs=10 again=30 "
                "late_s=60 errors=100 html=25 partial=300"
            ),
            id="an upload that could not be aborted when its object was found",
        ),
        pytest.param(
            21013,
            only(
                "hosts=3 clones=1 runs=5 overlap=500 files=8 dynamodb=1 ignores=1 batches=2 compress=2 concurrency=2 lease_s=5 edits=3 "
                "slow_files=1 hot=1 stops=3 net_cuts=2 clock_jumps=4 anew=3 lags=100 twice=3 errors_after=100 throttled=30 html=7 "
                "partial=300"
            ),
            id="another run began anew with --bucket new while this one asked for the objects of the earlier marks",
        ),
        pytest.param(
            22096,
            only(
                "hosts=2 clones=1 runs=5 files=30 dynamodb=1 drops_sums=1 stale=1 no_old=1 rotated=1 varies=1 concurrency=2 lease_s=30 "
                "edits=1 slow_files=1 stops=3 lost=30 again=3 late_s=60 errors=100 html=7 partial=100"
            ),
            id="a log that was found under another suffix was told under its own",
        ),
        pytest.param(
            255,
            only(
                "hosts=3 clones=1 runs=12 overlap=500 files=30 dynamodb=1 aws=1 varies=1 concurrency=2 lease_s=30 edits=60 slow_files=1 "
                "hot=1 kills=1 suspends=2 lost=100 partial=300 slow=1 once=1"
            ),
            id="a file that was only touched while --compare-content read it was sent once more",
        ),
        pytest.param(
            400,
            only(
                "hosts=4 clones=1 runs=5 overlap=200 files=3 dynamodb=1 aws=1 rotated=1 if_changed=2 concurrency=2 lease_s=7200 give_up_s=5 "
                "kills=4 stops=1 suspends=3 power_cuts=6 net_cuts=2 clock_jumps=1 night_h=200 asked=1 reboots=2 grace_s=30"
            ),
            id="a run that waited for a file held by another host gave up, although each question was answered",
        ),
        pytest.param(
            50011031,
            only(
                "hosts=2 runs=3 overlap=500 files=30 dynamodb=1 batches=2 rotated=2 concurrency=8 lease_s=30 attempts=1 edits=20 slow_files=1 "
                "hot=1 kills=5 suspends=2 power_cuts=1 net_cuts=1 clock_jumps=2 foreign=1 hangs=50 twice=30 again=200 late_s=10 errors=30 "
                "errors_after=30 audits=2 night_h=12 asked=1 grace_s=3600 once=1"
            ),
            id="a late request replaced an object whose mark was on its way",
        ),
        pytest.param(
            324,
            only(
                "hosts=3 runs=4 files=2 rotated=1 live=1 bad_reads=46 night_h=4"
            ),
            id="a log that was copied and emptied was taken for another one, since the emptied file could not be read",
        ),
        pytest.param(
            10,
            only(
                "hosts=3 clones=1 runs=8 overlap=500 finals=500 files=1 aws=1 versions=1 small_pages=1 rotated=1 live=1 concurrency=2 "
                "lease_s=600 edits=20 slow_files=1 kills=1 stops=1 suspends=3 power_cuts=3 net_cuts=2 backups=1 lost_after=100 hangs=7 "
                "errors=200 night_h=9 asked=3 grace_s=3600 rate_kib=8 rules=1"
            ),
            id="small bodies that were sent again did not wait for the limit of bandwidth",
        ),
        pytest.param(
            4000062,
            only(
                "hosts=2 runs=8 overlap=200 files=3 dynamodb=1 aws=1 versions=1 small_pages=1 rotated=1 if_changed=1 varies=1 "
                "concurrency=1 lease_s=5 give_up_s=20 edits=3 kills=4 suspends=1 net_cuts=3 clock_jumps=2 lost=10 errors=3 audits=1 "
                "night_h=9 asked=3 threads=12 pipes=4 spools=1"
            ),
            id="the mark of a compressed output did not have the suffix of its object",
        ),
        pytest.param(
            5145,
            only(
                "hosts=1 runs=5 overlap=200 files=3 ignores=2 stale=1 small_pages=1 batches=2 compress=1 removes=1 concurrency=4 "
                "lease_s=30 attempts=1 edits=10 slow_files=1 kills=1 backups=1 foreign=1 hangs=25 pipes=4 spools=1"
            ),
            id="no promise: the mark is from a backup, and its file is gone",
        ),
        pytest.param(
            10085,
            only(
                "hosts=2 runs=1 overlap=200 files=3 large=1 ignores=1 batches=2 no_old=1 rotated=1 live=1 compress=2 if_changed=1 "
                "concurrency=8 lease_s=30 attempts=3 edits=10 kills=5 power_cuts=1 net_cuts=1 clock_jumps=1 twice=100 errors=100 "
                "pipes=2 spools=1"
            ),
            id="no promise: a late request came over what --if-changed=skip had left alone",
        ),
        pytest.param(
            50136129,
            only("hosts=2 runs=2 files=2 rotated=2 edits=1 hot=1 power_cuts=1 backups=1 night_h=2"),
            id="no promise: a failure of power undid a change, and the mark of before it was restored",
        ),
        pytest.param(
            50168381,
            only(
                "hosts=2 runs=6 overlap=500 files=5 drops_sums=1 versions=1 stale=1 batches=2 rotated=2 concurrency=8 lease_s=30 edits=20 "
                "slow_files=1 bad_reads=5 hot=1 kills=1 stops=5 suspends=5 power_cuts=3 net_cuts=1 clock_jumps=2 backups=2 twice=10 "
                "partial=300 night_h=10 asked=5 reboots=4 grace_s=3600 limit_s=3"
            ),
            id="no promise: what was restored was copied before there were marks",
        ),
        pytest.param(50139980, only("rotated=1 pipes=1"), id="no promise: what a program wrote began as gzip does"),
        pytest.param(
            10009515,
            only(
                "hosts=3 runs=5 overlap=500 files=8 dynamodb=1 drops_sums=1 stale=1 batches=1 rotated=2 compress=2 concurrency=8 "
                "lease_s=5 edits=20 hot=1 stops=8 power_cuts=2 net_cuts=2 clock_jumps=4 locks=1 lags=300 night_h=9 grace_s=30 "
                "manifest=1"
            ),
            id="no promise: an object that a manifest lists was replaced by a later version before the run ended",
        ),
        pytest.param(
            20011069,
            only(
                "hosts=3 runs=3 overlap=500 files=8 dynamodb=1 aws=1 rotated=2 compress=1 if_changed=2 varies=1 concurrency=4 "
                "lease_s=30 edits=3 stops=9 power_cuts=1 net_cuts=3 lags=100 errors=3 errors_after=10 slow=1 audits=3 night_h=10 "
                "asked=4 grace_s=1 rate_kib=64 manifest=1"
            ),
            id="no promise: the same of an object that another run of the host replaced",
        ),
        pytest.param(
            10008818,
            only(
                "hosts=4 runs=3 overlap=500 files=2 dynamodb=1 ignores=2 stale=1 small_pages=1 batches=2 rotated=1 removes=1 "
                "if_changed=2 varies=1 concurrency=2 lease_s=30 deletes=1 kills=4 stops=3 suspends=2 power_cuts=2 net_cuts=2 "
                "clock_jumps=1 lost_after=10 hangs=25 twice=10 errors=10 throttled=3 partial=10 night_h=9 asked=3"
            ),
            id="no promise: a request of a run that has ended came late, under another suffix than that of the next run",
        ),
        pytest.param(
            20013375,
            only(
                "hosts=3 runs=5 overlap=200 files=3 dynamodb=1 aws=1 small_pages=1 rotated=2 varies=1 concurrency=1 lease_s=30 "
                "give_up_s=5 attempts=3 edits=20 hot=1 stops=1 suspends=4 power_cuts=1 net_cuts=4 clock_jumps=2 hangs=25 throttled=30 "
                "partial=100 night_h=9 asked=3 reboots=2 rules=1 manifest=1"
            ),
            id="a manifest was written after the grace",
        ),
        pytest.param(
            20034096,
            only(
                "hosts=4 runs=2 files=1 aws=1 small_pages=1 rotated=1 removes=1 if_changed=1 concurrency=4 lease_s=30 edits=10 "
                "slow_files=1 deletes=1 kills=4 stops=4 power_cuts=1 net_cuts=3 backups=1 twice=10 again=100 late_s=600 errors=3 "
                "partial=300 audits=1 night_h=14 asked=3 reboots=2 grace_s=30 rules=1 manifest=1 lockers=2"
            ),
            id="no promise: a stopped process kept the file of the locks locked",
        ),
        pytest.param(
            20068591,
            only(
                "hosts=3 clones=1 runs=5 overlap=500 files=1 dynamodb=1 ignores=1 stale=1 batches=2 rotated=2 removes=1 concurrency=2 "
                "lease_s=30 attempts=1 edits=20 bad_reads=50 hot=1 stops=6 locks=3 lost_after=30 hangs=50 twice=3 again=30 late_s=60 "
                "errors=30 errors_after=30 slow=1 night_h=14 grace_s=30 manifest=1"
            ),
            id="no promise: a late request came over a file that was to be removed, at a server that ignores conditions",
        ),
        pytest.param(
            20071170,
            only(
                "hosts=3 runs=3 finals=500 files=2 ignores=2 drops_sums=1 versions=1 stale=1 batches=1 rotated=1 live=1 if_changed=2 "
                "concurrency=8 lease_s=30 edits=3 kills=3 stops=2 suspends=2 net_cuts=4 clock_jumps=2 backups=1 hangs=25 twice=3 "
                "partial=100 audits=3 night_h=9 reboots=4 grace_s=1 rate_kib=8 rules=1 manifest=1 limit_s=3"
            ),
            id="no promise: a run with --final has a grace of its own",
        ),
        pytest.param(
            20062729,
            only(
                "hosts=4 runs=2 overlap=200 files=1 dynamodb=1 ignores=1 small_pages=1 batches=2 rotated=2 compress=2 if_changed=2 "
                "concurrency=8 lease_s=30 give_up_s=20 attempts=1 edits=3 bad_reads=50 kills=3 stops=3 suspends=1 power_cuts=4 "
                "net_cuts=1 lost_after=30 again=3 late_s=60 html=2 partial=300 audits=3 night_h=10 asked=2 reboots=3 grace_s=30"
            ),
            id="no promise: a process was let go on while its machine slept",
        ),
        pytest.param(
            20078113,
            only(
                "hosts=3 runs=3 overlap=500 files=2 versions=1 rotated=2 live=1 compress=2 if_changed=1 varies=1 concurrency=1 "
                "lease_s=30 edits=1 kills=3 stops=1 power_cuts=2 net_cuts=3 clock_jumps=4 anew=1 backups=2 night_h=12 asked=1 reboots=3 "
                "rules=1 lockers=4"
            ),
            id="no promise: the bucket was made anew, and the file of a mark is gone",
        ),
        pytest.param(
            21027735,
            only(
                "hosts=4 clones=1 runs=3 overlap=500 files=8 dynamodb=1 stale=1 no_old=1 rotated=2 varies=1 concurrency=1 lease_s=30 "
                "edits=10 slow_files=1 bad_reads=50 hot=1 stops=8 suspends=2 locks=3 lost=3 hangs=25 lags=300 twice=10 slow=1 night_h=9 "
                "rate_kib=8 id_object=1"
            ),
            id="what tells clones apart could be read by neither of them, so that one took the other's process for its own that is gone",
        ),
        pytest.param(
            50217595,
            only(
                "hosts=2 runs=5 files=1 aws=1 stale=1 rotated=2 live=1 concurrency=4 lease_s=30 edits=20 hot=1 kills=8 stops=2 "
                "suspends=3 power_cuts=4 net_cuts=3 clock_jumps=2 locks=3 anew=1 audits=1 night_h=14 asked=4 grace_s=1 once=1"
            ),
            id="a file became what it was while it was read, and was sent in place of itself",
        ),
        pytest.param(
            50230870,
            only(
                "hosts=4 runs=3 overlap=200 files=3 aws=1 versions=1 small_pages=1 rotated=1 live=1 if_changed=1 varies=1 "
                "concurrency=2 lease_s=30 attempts=1 edits=20 kills=3 stops=4 suspends=1 power_cuts=3 net_cuts=1 clock_jumps=4 "
                "anew=1 lost=100 lost_after=10 twice=100 again=30 late_s=1 errors_after=100 partial=10 night_h=10 asked=2 "
                "reboots=2 grace_s=1 rate_kib=16 manifest=1 id_object=1 once=1"
            ),
            id="a job made the object that identifies the bucket a second time, in another bucket, with the id that another job knew",
        ),
        pytest.param(
            50416833,
            only(
                "hosts=3 clones=1 runs=1 overlap=500 files=3 dynamodb=1 ignores=2 versions=1 small_pages=1 rotated=2 if_changed=2 "
                "varies=1 concurrency=4 lease_s=5 give_up_s=20 edits=20 hot=1 kills=2 stops=2 suspends=1 power_cuts=3 net_cuts=1 "
                "clock_jumps=1 locks=1 lost=3 lost_after=100 hangs=2 errors=30 errors_after=3 throttled=30 partial=300 night_h=12 "
                "asked=1 reboots=1 grace_s=3600 manifest=1 pipes=1 once=1"
            ),
            id="no promise: keys of batches were left out while all was calm",
        ),
        pytest.param(
            50545551,
            only(
                "hosts=3 runs=3 overlap=200 finals=500 files=3 large=1 dynamodb=1 ignores=1 stale=1 batches=2 rotated=2 "
                "concurrency=8 lease_s=30 attempts=1 edits=20 hot=1 stops=7 suspends=1 net_cuts=1 clock_jumps=2 clock_days=1000 "
                "lost=10 hangs=50 twice=100 again=200 late_s=60 html=25 partial=300 night_h=12 reboots=1 grace_s=1 lockers=4 once=1"
            ),
            id="the page of a proxy was believed to have aborted an upload",
        ),
        pytest.param(
            50876291,
            only(
                "hosts=2 runs=3 files=2 dynamodb=1 ignores=2 small_pages=1 batches=2 rotated=2 varies=1 concurrency=2 lease_s=5 edits=20 "
                "slow_files=1 kills=2 stops=7 suspends=3 power_cuts=2 net_cuts=5 clock_jumps=5 locks=1 audits=1 night_h=12 asked=1 "
                "reboots=1 grace_s=1 lockers=1 pipes=1 spools=1 once=1"
            ),
            id="a file was renamed and written to between its opening and the look at its state",
        ),
        pytest.param(
            50985469,
            only(
                "hosts=2 runs=7 overlap=200 files=3 dynamodb=1 aws=1 stale=1 rotated=2 concurrency=8 lease_s=30 attempts=1 edits=20 "
                "hot=1 kills=3 stops=6 clock_jumps=2 clock_days=1000 lost=30 hangs=50 twice=30 again=200 late_s=60 errors=30 "
                "errors_after=30 slow=1 audits=3 night_h=12 reboots=1 grace_s=30 rate_kib=64 once=1"
            ),
            id="no promise: a late request came between the look at an object and its mark",
        ),
        pytest.param(
            700010,
            only(
                "hosts=3 runs=2 overlap=200 finals=200 files=1 drops_sums=1 stale=1 rotated=1 compress=1 if_changed=2 concurrency=8 "
                "lease_s=600 attempts=1 edits=20 kills=3 stops=2 suspends=4 power_cuts=2 net_cuts=5 clock_jumps=2 backups=1 night_h=14 "
                "asked=3 reboots=5 grace_s=30 rate_kib=64 once=1 leases=1 timeless=1 silences=1"
            ),
            id="no promise: without --live, a log is another one if its compressor keeps no time",
        ),
        pytest.param(
            97003361,
            only(
                "hosts=2 runs=4 overlap=200 files=3 large=2 dynamodb=1 drops_sums=1 no_old=1 rotated=2 if_changed=2 concurrency=2 lease_s=5 "
                "edits=1 hot=1 kills=4 stops=2 suspends=1 clock_jumps=1 lost=30 twice=30 again=100 late_s=600 errors_after=100 partial=100 "
                "audits=1 night_h=14 asked=1 reboots=3 grace_s=3600 keep_marks_s=3600 leases=1 proxy=1 silences=3"
            ),
            id="no promise: the first bytes of a part left the host while S3 was silent",
        ),
        pytest.param(
            97005585,
            only(
                "hosts=4 clones=1 runs=3 overlap=200 files=30 large=1 ignores=2 versions=1 batches=2 rotated=1 live=1 varies=1 concurrency=1 "
                "lease_s=30 hot=1 kills=3 stops=1 net_cuts=4 clock_jumps=2 foreign=1 errors=100 throttled=100 night_h=10 asked=2 once=1 "
                "recompress=1 timeless=1 silences=1"
            ),
            id="no promise: a file that needs no request was done while nobody answered",
        ),
    ],
)
def test_worlds_that_broke_a_promise(seed, settings):
    told = sim("--seeds", seed, seed, *settings.split())
    assert told.returncode == 0, told.stdout


README = (REPOSITORY / "tests/sim/README.md").read_text()


@pytest.mark.parametrize("settings", re.findall(r"(?m)^\| [^|]+ \| `(\w+=\d+(?: \w+=\d+)*)` \|$", README))
def test_each_kind_of_worlds_can_be_played_alone(settings):
    """As the table in README.md says. Settings that exclude each other break promises."""
    told = sim("--seeds", 700001, 700010, *settings.split())
    assert told.returncode == 0, told.stdout


FOLLOW = REPOSITORY / "tests/model/follow"
needs_spin = pytest.mark.skipif(not shutil.which("spin"), reason="spin is not installed")


def follow(*argv):
    return subprocess.run([FOLLOW, *map(str, argv)], capture_output=True, text=True, timeout=900)


@needs_spin
def test_steps_of_the_program_are_steps_of_the_models():
    told = follow(SIM, 1, 10)
    assert told.returncode == 0, told.stdout


def asks_less(line, name):
    """The line of a request that does not ask for this attribute."""
    asked = line["asked"]
    before = asked["ConditionExpression"]
    for placeholder in (place for place, attribute in (asked["ExpressionAttributeNames"] or {}).items() if attribute == name):
        one = rf"({placeholder} = :\w+|attribute_not_exists\({placeholder}\))"
        asked["ConditionExpression"] = re.sub(rf"^{one} AND | AND {one}|{one}", "", asked["ConditionExpression"])
    return asked["ConditionExpression"] != before


@needs_spin
@pytest.mark.parametrize(
    "what, attribute",
    [("done", "claim"), ("done", "session"), ("done", "state"), ("failed", "claim"), ("open", "version"), ("ended", "state")],
)
def test_a_step_that_asks_for_less_is_no_step_of_the_models(tmp_path, what, attribute):
    lines = []
    changed = False
    for seed in range(1, 9):  # until one of these worlds has such a step
        argv = ["--trace", seed, *"dynamodb=1 batches=2 ignores=0 large=0 rotated=0 live=0 varies=0 audits=0 anew=0 deletes=0 night_h=0".split()]
        lines = [json.loads(line) for line in sim(*argv, "hot=1", "edits=4", "bad_reads=20").stdout.splitlines() if line.startswith("{")]
        for line in lines:
            state = (line.get("now") or {}).get("state", {}).get("S")
            if not changed and line.get("old") and state == what and asks_less(line, attribute):
                changed = True
        if changed:
            break
    assert changed
    (tmp_path / "trace").write_text("\n".join(map(json.dumps, lines)))
    told = follow("--read", tmp_path / "trace")
    assert told.returncode == 1 and "has no such step" in told.stdout, told.stdout


SMALL = "dynamodb=1 batches=2 ignores=0 large=0 rotated=0 live=0 varies=0 audits=0 anew=0 deletes=0 backups=0 night_h=0 id_object=0 hot=1".split()


def is_row(line):
    return line.get("pk", "").startswith("bucket#")


def has(line, name):
    return line.get("now") and name in line["now"]


def is_record(line):
    return has(line, "upload") and line["now"]["upload"] != (line["old"] or {}).get("upload")


def keeps_the_witness(line, before):
    """Whoever begins anew leaves the witness of the earlier marks in the row."""
    if not is_row(line) or not line["old"] or line["old"].get("generation") == line["now"]["generation"] or "last_key" not in line["old"]:
        return False
    line["now"].update({name: line["old"][name] for name in ("last_key", "last_etag")})
    return True


def loses_its_condition(line, before):
    if "upload" not in (before or {}) or before["what"] != "completed":
        return False
    line["if_none_match"] = line["if_match"] = None
    return True


def asks_less_in_a_batch(line, before):
    """The statement that marks a file done does not ask for the claim."""
    altered = False
    for one in (line.get("asked") or {}).get("Statements") or []:
        if has(line, "state") and line["now"]["state"]["S"] == "done" and ' AND "claim"=?' in one["Statement"] and {"S": line["sk"]} in one["Parameters"]:
            at = one["Statement"].split(' AND "claim"=?')[0].count("?")
            one["Statement"] = one["Statement"].replace(' AND "claim"=?', "")
            del one["Parameters"][at]
            altered = True
    return altered


ALTERED = {
    "a mark in a batch that becomes done under any claim": (["batches=0", "aws=1", "files=8", "concurrency=8"], asks_less_in_a_batch),
    "a row that is written whatever its version": ([], lambda line, before: is_row(line) and bool(line["old"]) and asks_less(line, "version")),
    "a row without a witness": ([], lambda line, before: is_row(line) and has(line, "last_key") and line.clear() is None),
    "a generation with an earlier witness": (["anew=1", "removes=0", "runs=8", "edits=2"], keeps_the_witness),
    "an upload that is recorded under another claim": (["large=1", "files=1"], lambda line, before: is_record(line) and asks_less(line, "claim")),
    "an upload that is recorded over another one": (["large=1", "files=1"], lambda line, before: is_record(line) and asks_less(line, "upload")),
    "an upload that is not recorded": (["large=1", "files=1"], lambda line, before: is_record(line) and line.clear() is None),
    "an upload that is completed over anything": (["large=1", "files=1"], loses_its_condition),
}


@needs_spin
@pytest.mark.parametrize("what", ALTERED)
def test_an_altered_trace_is_refused(tmp_path, what):
    """Of uploads in parts and of the bucket's row: as above, and where a step is missing."""
    settings, alter = ALTERED[what]
    for seed in range(1, 30):  # until one of these worlds has such a step
        lines = [json.loads(line) for line in sim("--trace", seed, *SMALL, *settings).stdout.splitlines() if line.startswith("{")]
        (tmp_path / "trace").write_text("\n".join(map(json.dumps, lines)))
        altered = [alter(line, before) for before, line in zip([None, *lines], lines)]
        if any(altered):
            break
    assert any(altered)
    told = follow("--read", tmp_path / "trace")
    assert told.returncode == 0, told.stdout
    (tmp_path / "trace").write_text("\n".join(json.dumps(line) for line in lines if line))
    told = follow("--read", tmp_path / "trace")
    assert told.returncode == 1 and "has no such step" in told.stdout, told.stdout


def test_bytes_are_the_choices_of_a_world(tmp_path):
    """As libFuzzer gives them: the same ones are one story, others another, and when they are at an end the world goes on."""
    stories = []
    for name, content in (("none", b""), ("some", bytes(range(256)) * 2), ("more", bytes(range(255, -1, -1)) * 20)):
        (tmp_path / name).write_bytes(content)
        stories.append(sim("--bytes", tmp_path / name, "--requests"))
        assert stories[-1].returncode == 0, stories[-1].stdout[-2000:]
        assert stories[-1].stdout == sim("--bytes", tmp_path / name, "--requests").stdout
    assert stories[0].stdout == sim(0, "--requests").stdout
    assert len({story.stdout for story in stories}) == 3


def test_shrink():
    """A world that breaks a promise becomes one with the fewest numbers that breaks the same one."""
    refused = ["rotated=1", "live=1", "removes=1", "dynamodb=0"]
    shrunk = sim("--shrink", 5, *refused).stdout.split()
    assert shrunk[:2] == ["sim", "5"]
    assert [setting for setting in shrunk[2:] if not setting.endswith("=0")] == ["rotated=1", "live=1", "removes=1"]
    assert "the options are refused: a log that is uploaded in pieces is not removed" in sim(*shrunk[1:]).stdout


def test_a_story_does_not_depend_on_what_was_played_before():
    alone = re.search(r"fingerprint (\w+)", sim(3).stdout)[1]
    after = sim("--fingerprints", 2, 3).stdout.split()
    assert alone == after[-1]


# What src may ask of libc directly: it depends on nothing but its arguments.
PURE = set(
    """__assert_fail __ctype_b_loc __ctype_tolower_loc __ctype_toupper_loc __errno_location __getdelim
    __isoc99_fscanf __isoc99_sscanf __sched_cpucount __stack_chk_fail abort alphasort64 asprintf calloc dirname fclose feof ferror fgets fprintf fread free freelocale fscanf gai_strerror
    getc getdelim gmtime_r inet_pton malloc memchr memcmp memcpy memmem memmove mempcpy memrchr memset newlocale qsort qsort_r realloc reallocarray
    regcomp regerror regexec regfree rewind sigemptyset sigfillset snprintf sscanf stpcpy strcasecmp strcasestr strchr strchrnul strcmp
    strcpy strcspn strdup strerror strftime strftime_l strlen strncasecmp strncmp strncpy strndup strnlen strpbrk strptime_l strrchr strspn strstr
    strtok_r strtol strtoll strtoul strtoull timegm ungetc vasprintf vsnprintf fputs fputc fwrite fflush puts strtod bcmp __xpg_basename
    atoi getline gnu_dev_makedev labs llabs ntohl ntohs strcat fseek fseeko64 ftell ftello64 strsep bsearch toupper tolower isalnum ffs""".split()
)
# Only of what no simulated process does: credentials of a command, keys that sign manifests, full host names, locks' events, commands of pipes, curl's half of src/http.
NOT_DONE = set(
    """_exit dup2 eventfd eventfd_read eventfd_write execvp fork freeaddrinfo getaddrinfo getsockname getsockopt ioctl setrlimit64 sigaction socket
    fileno waitpid uv_spawn uv_signal_init uv_signal_start uv_signal_stop uv_process_kill uv_pipe_init uv_read_start shutdown""".split()
)
LIBRARIES = re.compile(r"(sqlite3|curl|xml|json|EVP|ZSTD|LZ4|lzma|BZ2|inflate|deflate|OPENSSL|X509|SSL|BIO|PEM|ERR|isal|crc|zlib|HMAC|SHA|OSSL|MD5|UTF8)")
COMPILERS = re.compile(r"(__asan|__ubsan|__sanitizer|_GLOBAL_OFFSET|__cpu_model|__stack_chk|__gcov|__start_|__stop_)")


def is_pure(name):
    """A fortified build calls __NAME_chk instead of NAME. That is as pure as NAME is, but escapes where NAME is wrapped."""
    return re.sub(r"^__(\w+)_chk$", r"\1", name) in PURE


def test_nothing_escapes():
    """Each name that src takes from elsewhere is simulated, or depends on its arguments alone."""
    table = subprocess.run(["nm", BUILD / "libs3once-core.a"], capture_output=True, text=True).stdout
    rows = [line.split() for line in table.splitlines()]
    defined = {row[-1] for row in rows if len(row) == 3}
    # glibc has a name of its own for what reads numbers as C23 does.
    wanted = {row[-1].replace("__isoc23_", "") for row in rows if len(row) == 2 and row[0] == "U"} - defined
    wrapped = set((REPOSITORY / "tests/sim/wrapped.txt").read_text().split())
    simulated = {row[-1] for row in map(str.split, subprocess.run(["nm", SIM], capture_output=True, text=True).stdout.splitlines()) if row[-2:-1] in (["T"], ["t"])}
    escaping = {
        name
        for name in wanted - NOT_DONE - wrapped
        if not is_pure(name) and not LIBRARIES.match(name) and not COMPILERS.match(name) and not (name.startswith("uv_") and name in simulated)
    }
    assert not escaping
