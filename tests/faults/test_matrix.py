"""The cut-anywhere matrix: every scenario × every operation of its run × every fault, then a clean rerun and every check.

A case whose fault did not fire is a failure. ./check plays a part of it that touches every scenario, operation and fault;
./check --full plays all. The counts are printed at the end.
"""

import re
import zlib
from dataclasses import dataclass

import pytest

from tests.faults import faults
from tests.faults.conftest import note_case
from tests.faults.faults import answer
from tests.faults.scenarios import SCENARIOS
from tests.faults.stage import LEASE
from tests.system.harness import FULL

PART_OF = 4  # without --full every so manyth operation is cut
RETRIES = 3  # in a scenario that races an operation may not come up: so often it is tried again

VISIBLE = "PutObject|CompleteMultipartUpload"
NO_HEAD = "(?!Head).*"


@dataclass
class Fault:
    """fault; service: where it makes sense; kinds: a pattern of operations; codes: exit codes that are right for the run."""

    fault: object
    service: str = "both"
    kinds: str = ".*"
    codes: tuple = (0,)

    @property
    def name(self):
        return getattr(self.fault, "name", None) or self.fault.__name__

    def fits(self, service, kind):
        return self.service in ("both", service) and re.fullmatch(self.kinds, kind)


KILLED = (-9,)
ANY = (0, 1, 3)
FAULTS = [
    Fault(faults.refuse),
    Fault(faults.outage(0.3)),
    Fault(faults.drop_request),
    Fault(faults.drop_reply),
    Fault(faults.hang),
    Fault(faults.hang_applied),
    Fault(faults.delay_reply(1.5)),
    Fault(faults.delay_reply(LEASE + 1)),
    Fault(faults.late_request(0.05)),
    Fault(faults.late_request(LEASE + 0.5)),
    Fault(faults.duplicate),
    Fault(faults.late_duplicate(0.05)),
    Fault(faults.late_duplicate(LEASE + 0.5)),
    Fault(faults.cut_request, "s3", "PutObject|UploadPart|CompleteMultipartUpload"),
    Fault(faults.cut_reply),
    Fault(faults.truncate_reply, codes=ANY),
    Fault(faults.garble_reply),
    Fault(faults.trickle_reply(0.5)),
    Fault(faults.kill_before, codes=KILLED),
    Fault(faults.kill_inside, "s3", "PutObject|UploadPart", codes=KILLED),
    Fault(faults.kill_after, codes=KILLED),
    Fault(faults.kill_late(0.1), codes=KILLED),
    Fault(faults.kill_late(LEASE + 0.5), codes=KILLED),
    Fault(answer(500, "InternalError"), "s3"),
    Fault(answer(500, "InternalError", applied=True), "s3"),
    Fault(answer(503, "SlowDown"), "s3"),
    Fault(answer(503, "ServiceUnavailable", applied=True), "s3"),
    Fault(answer(429, "TooManyRequests"), "s3"),
    Fault(answer(400, "RequestTimeout"), "s3", NO_HEAD),  # a reply to HEAD has no body to say why
    Fault(answer(403, "ExpiredToken"), "s3", codes=ANY),
    Fault(answer(403, "RequestTimeTooSkewed"), "s3", NO_HEAD),
    Fault(answer(400, "Bad Request"), "s3", "HeadObject|HeadBucket", codes=ANY),
    Fault(answer(403, "AccessDenied"), "s3", codes=ANY),
    Fault(answer(400, "BadDigest"), "s3", "PutObject|UploadPart", codes=(0, 1)),
    Fault(answer(409, "ConditionalRequestConflict"), "s3", VISIBLE),
    Fault(answer(412, "PreconditionFailed"), "s3", VISIBLE, codes=(0, 1)),
    Fault(answer(200, "InternalError"), "s3", "CompleteMultipartUpload"),
    Fault(answer(200, "InternalError", applied=True), "s3", "CompleteMultipartUpload"),
    Fault(answer(404, "NoSuchUpload"), "s3", "UploadPart|CompleteMultipartUpload|ListParts"),
    Fault(faults.upload_gone, "s3", "UploadPart|CompleteMultipartUpload|ListParts"),
    Fault(faults.wrong_etag, "s3", "PutObject|UploadPart|CompleteMultipartUpload", codes=(0, 1)),
    Fault(faults.wrong_checksum, "s3", "PutObject|UploadPart", codes=(0, 1)),
    Fault(answer(500, "InternalServerError"), "dynamodb"),
    Fault(answer(500, "InternalServerError", applied=True), "dynamodb"),
    Fault(answer(503, "ServiceUnavailable"), "dynamodb"),
    Fault(answer(400, "ProvisionedThroughputExceededException"), "dynamodb"),
    Fault(answer(400, "ThrottlingException"), "dynamodb"),
    Fault(answer(400, "RequestLimitExceeded"), "dynamodb"),
    Fault(answer(400, "TransactionConflictException"), "dynamodb"),
    Fault(answer(400, "ExpiredTokenException"), "dynamodb", codes=ANY),
    Fault(answer(400, "InvalidSignatureException"), "dynamodb", codes=ANY),
    Fault(faults.wrong_checksum, "dynamodb"),
]

# name: (S3 server, DynamoDB server, how the stage is set up)
PLACES = {
    "rgw": ("rgw", "dynoxide", {}),
    "aws-like": ("rgw", "dynoxide", {"behaves": "aws"}),
    "swift": ("swift", "dynoxide", {"honours": False}),
    "no conditions": ("rgw", "dynoxide", {"behaves": "ignores", "honours": False}),
    "fresh connections": ("rgw", "dynoxide", {"close_each": True}),
    "TLS": ("rgw", "dynoxide", {"behaves": "aws", "tls": True}),
    "dynalite": ("rgw", "dynalite", {}),
}


def operations(scenario, place, arenas, folder, known={}):
    """[(service, kind, index)] of a run without faults, each worker finds out once; of runs that race, what all have."""
    name = (scenario.name, place)
    if name not in known:
        recordings = [record(scenario, place, arenas, folder / f"recorded{n}") for n in range(3 if scenario.races else 1)]
        known[name] = [one for one in recordings[0] if all(one in other for other in recordings)]
    return known[name]


def record(scenario, place, arenas, folder):
    s3, dynamodb, how = PLACES[place]
    with scenario.stage(folder, arenas(s3, dynamodb), **how) as stage:
        play(scenario, stage)
        found = [(proxy.service, *one) for proxy in (stage.s3, stage.dynamodb) for one in proxy.recorded]
        stage.finish(*scenario.options, expect=scenario.expect)
    wanted = [one for one in found if (one[1] in scenario.only if scenario.only else "heartbeat" not in one[1])]
    return list(dict.fromkeys(wanted))


def play(scenario, stage, rule=None):
    """The results of the runs that are hit. rule: (fault, service, kind, index)."""
    scenario.prepare(stage)
    before = {}
    for proxy in (stage.s3, stage.dynamodb):
        proxy.begin_run()
        before[proxy] = len(proxy.history)
    added = None
    if rule:
        fault, service, kind, index = rule
        added = (stage.s3 if service == "s3" else stage.dynamodb).add(fault.fault, kind, nth=index)
    results = scenario.play(stage)
    for proxy in (stage.s3, stage.dynamodb):
        proxy.recorded = proxy.kinds(before[proxy])
    return results, added


def case(scenario, place, arenas, folder, fault, operation):
    """None, or what went wrong."""
    s3, dynamodb, how = PLACES[place]
    with scenario.stage(folder, arenas(s3, dynamodb), **how) as stage:
        try:
            results, rule = play(scenario, stage, (fault, *operation))
            codes = {result.code for result in results}
            right = {*fault.codes, scenario.expect}
            if fault.codes == KILLED and scenario.runs == 1:
                right = {-9}
            if not rule.fired:
                return "the fault did not fire"
            if not codes <= right:
                return f"exit codes {codes}, right were {right}: {results}"
            stage.finish(*scenario.options, expect=scenario.expect)
        except AssertionError as failure:
            return f"{type(failure).__name__}: {failure}\n{story(stage)}"
    return None


def story(stage):
    """The wire's history, to be read."""
    records = sorted(stage.s3.history + stage.dynamodb.history, key=lambda record: record.begun)
    start = records[0].begun if records else 0
    return "\n".join(
        f"{record.begun - start:7.3f} {record.pid} {record.kind} {record.operation.key or ''} part {record.operation.part} "
        f"{record.body_bytes} B {record.operation.conditions or ''} -> {[s for _, s in record.applied]} {record.answered}"
        f" {record.fault or ''}{' FIRED' if record.fired else ''} {record.refused or ''}"
        for record in records
    )


def one_of(parts, *words):
    return zlib.crc32(repr(words).encode()) % parts == 0


def chosen():
    """What is played: (place, scenario, fault). Places beyond the first three differ in little: a part of theirs is enough."""
    for at, place in enumerate(PLACES):
        for scenario in SCENARIOS:
            for fault in FAULTS:
                if one_of((1 if at < 3 else 7) if FULL else (9 if at < 3 else 36), place, scenario.name, fault.name):
                    yield pytest.param(place, scenario, fault, id=f"{place}-{scenario.name}-{fault.name}")


@pytest.mark.parametrize("place, scenario, fault", chosen())
def test_cut_anywhere(place, scenario, fault, arenas, tmp_path):
    failures = []
    for number, operation in enumerate(operations(scenario, place, arenas, tmp_path)):
        service, kind, index = operation
        if not fault.fits(service, kind) or not (FULL or one_of(PART_OF, place, scenario.name, fault.name, operation)):
            continue
        for attempt in range(RETRIES if scenario.races else 1):
            folder = tmp_path / f"{number}-{attempt}"
            wrong = case(scenario, place, arenas, folder, fault, operation)
            if wrong != "the fault did not fire":
                break
        name = {"server": place, "scenario": scenario.name, "fault": fault.name, "operation": f"{kind} {index}"}
        note_case(suite="matrix", passed=not wrong, **name)
        if wrong:
            failures.append(f"{kind} {index}: {wrong}")
    assert not failures, "\n\n".join(failures)
