"""The cut-anywhere matrix: every scenario × every operation of its run × every fault, then a clean rerun and every check.

A case whose fault did not fire is a failure. Only ./check --full plays it, since the simulated worlds meet the same faults
in many more orders. At a place like AWS all of it is played but for what would only be repeated:
- of operations that come often in a run, the first two are cut, and the last unless that differs from run to run;
- the operations that every run begins with are cut in some scenarios only (Scenario.whole);
- of answers that the program takes for the same thing each comes up, but one at a time, in turn (Fault.like).
At the places of other servers each fault is played in each scenario, at one operation, which is another one at each place. The
rest differs in little: there each fault is played once, in one scenario, each scenario as often as the others. The counts are
printed at the end.

Where uploaders race, what all of several recordings have is cut. A run may go another way all the same, and not come to that
operation: then nothing was cut, and the next one is. A case in which none is cut is a failure.
"""

import fcntl
import json
import re
import zlib
from collections import Counter
from dataclasses import dataclass

import pytest

from tests.faults import faults, statements
from tests.faults.checker import Violation
from tests.faults.conftest import note_case
from tests.faults.faults import answer
from tests.faults.scenarios import BATCHES, SCENARIOS
from tests.faults.stage import LEASE

LONG = 0.9  # seconds, less than the request timeout of these runs
RETRIES = 3  # so often a slow run is recorded again
UNREACHED = "the run did not come to the operation"

BEGINNING = ("HeadBucket", "GetItem:settings", "PutItem:session")
VISIBLE = "PutObject|CompleteMultipartUpload"
NO_HEAD = "(?!Head).*"


@dataclass
class Fault:
    """fault; service: where it makes sense; kinds: a pattern of operations; codes: exit codes that are right for the run;
    like: the name of a group whose faults are one to the program."""

    fault: object
    service: str = "both"
    kinds: str = ".*"
    codes: tuple = (0,)
    like: str = None

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
    Fault(answer(500, "InternalError"), "s3", like="busy"),
    Fault(answer(500, "InternalError", applied=True), "s3", like="applied"),
    Fault(answer(503, "SlowDown"), "s3", like="busy"),
    Fault(answer(503, "ServiceUnavailable", applied=True), "s3", like="applied"),
    Fault(answer(429, "TooManyRequests"), "s3", like="busy"),
    Fault(answer(400, "RequestTimeout"), "s3", NO_HEAD),  # a reply to HEAD has no body to say why
    Fault(answer(403, "ExpiredToken"), "s3", codes=ANY, like="refused"),
    Fault(answer(403, "RequestTimeTooSkewed"), "s3", NO_HEAD),
    Fault(answer(400, "Bad Request"), "s3", "HeadObject|HeadBucket", codes=ANY),
    Fault(answer(403, "AccessDenied"), "s3", codes=ANY, like="refused"),
    Fault(answer(400, "BadDigest"), "s3", "PutObject|UploadPart", codes=(0, 1)),
    Fault(answer(409, "ConditionalRequestConflict"), "s3", VISIBLE),
    Fault(answer(412, "PreconditionFailed"), "s3", VISIBLE, codes=(0, 1)),
    Fault(answer(200, "InternalError"), "s3", "CompleteMultipartUpload"),
    Fault(answer(200, "InternalError", applied=True), "s3", "CompleteMultipartUpload"),
    Fault(answer(404, "NoSuchUpload"), "s3", "UploadPart|CompleteMultipartUpload|ListParts"),
    Fault(faults.upload_gone, "s3", "UploadPart|CompleteMultipartUpload|ListParts"),
    Fault(faults.wrong_etag, "s3", "PutObject|UploadPart|CompleteMultipartUpload", codes=(0, 1)),
    Fault(faults.wrong_checksum, "s3", "PutObject|UploadPart", codes=(0, 1)),
    Fault(answer(500, "InternalServerError"), "dynamodb", like="throttle"),
    Fault(answer(500, "InternalServerError", applied=True), "dynamodb"),
    Fault(answer(503, "ServiceUnavailable"), "dynamodb", like="throttle"),
    Fault(answer(400, "ProvisionedThroughputExceededException"), "dynamodb", like="throttle"),
    Fault(answer(400, "ThrottlingException"), "dynamodb", like="throttle"),
    Fault(answer(400, "RequestLimitExceeded"), "dynamodb", like="throttle"),
    Fault(answer(400, "TransactionConflictException"), "dynamodb", like="throttle"),
    Fault(answer(400, "ExpiredTokenException"), "dynamodb", codes=ANY, like="signature"),
    Fault(answer(400, "InvalidSignatureException"), "dynamodb", codes=ANY, like="signature"),
    Fault(faults.wrong_checksum, "dynamodb"),
    Fault(statements.some_applied, "dynamodb", *BATCHES),
    Fault(statements.some_answered, "dynamodb", *BATCHES),
    Fault(statements.one_answered("ThrottlingError"), "dynamodb", *BATCHES),
    Fault(statements.one_answered("ProvisionedThroughputExceeded"), "dynamodb", *BATCHES),
    Fault(statements.one_answered("InternalServerError"), "dynamodb", *BATCHES),
    Fault(statements.one_answered("InternalServerError", applied=True), "dynamodb", *BATCHES),
    Fault(statements.one_answered("TransactionConflict"), "dynamodb", *BATCHES),
    Fault(statements.one_answered("AccessDenied"), "dynamodb", *BATCHES),
    Fault(statements.one_answered("ValidationError"), "dynamodb", *BATCHES),
    Fault(statements.one_garbled, "dynamodb", *BATCHES),
]

# name: (S3 server, DynamoDB server, how the stage is set up). The first is played whole, and the next two in each scenario.
PLACES = {
    "aws-like": ("rgw", "dynoxide", {"behaves": "aws"}),
    "rgw": ("rgw", "dynoxide", {}),
    "swift": ("swift", "dynoxide", {"honours": False}),
    "no conditions": ("rgw", "dynoxide", {"behaves": "ignores", "honours": False}),
    "fresh connections": ("rgw", "dynoxide", {"close_each": True}),
    "TLS": ("rgw", "dynoxide", {"behaves": "aws", "tls": True}),
    "dynalite": ("rgw", "dynalite", {}),
}


def operations(scenario, place, arenas, folder, shared):
    """[[service, kind, index]] of a run without faults, found out once for all workers; of runs that race, what all have."""
    known = shared / f"{place}-{scenario.name}.operations"
    with open(known, "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read()
        if not text:
            recordings = [record(scenario, place, arenas, folder / f"recorded{n}") for n in range(3 if scenario.races else 1)]
            text = json.dumps(worth_cutting(scenario, [one for one in recordings[0] if all(one in r for r in recordings)]))
            file.write(text)
        return json.loads(text)


def worth_cutting(scenario, found):
    times = Counter(kind for _, kind, _ in found)
    return [
        (service, kind, index)
        for service, kind, index in found
        if (index <= 2 or (index == times[kind] and not scenario.races)) and (scenario.whole or kind not in BEGINNING)
    ]


def record(scenario, place, arenas, folder):
    """Records the requests of a run. A slow request may have been sent again, so such a run does not count."""
    s3, dynamodb, how = PLACES[place]
    for attempt in range(RETRIES):
        with scenario.stage(folder / str(attempt), arenas(s3, dynamodb), **how) as stage:
            play(scenario, stage)
            proxies = (stage.s3, stage.dynamodb)
            found = [(proxy.service, *one) for proxy in proxies for one in proxy.recorded]
            was_slow = any(not one.ended or one.ended - one.begun > LONG for proxy in proxies for one in proxy.history)
            stage.finish(*scenario.options, expect=scenario.expect)
        if not was_slow:
            break
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
    try:
        with scenario.stage(folder, arenas(s3, dynamodb), **how) as stage:
            results, rule = play(scenario, stage, (fault, *operation))
            codes = {result.code for result in results}
            right = {*fault.codes, scenario.expect}
            if fault.codes == KILLED and scenario.runs == 1:
                right = {-9}
            if not rule.fired:
                return UNREACHED if rule.seen < rule.nth else "the fault did not fire"
            if not codes <= right:
                raise Violation(f"exit codes {codes}, right were {right}: {results}")
            stage.finish(*scenario.options, expect=scenario.expect)
    except AssertionError as failure:
        return f"{type(failure).__name__}: {failure}"
    return None


def lot(*words):
    """A number that is always the same for these words and looks random."""
    return zlib.crc32(repr(words).encode())


def touches(fault, scenario):
    kinds = [("s3", kind) for kind in scenario.s3] + [("dynamodb", kind) for kind in scenario.only]
    kinds += [("dynamodb", "any")] * (scenario.store == "dynamodb")
    return any(fault.fits(*kind) for kind in kinds)


def part(place):
    """(scenario, [fault]): each fault in one scenario, always in the one that had the fewest so far."""
    played = Counter()
    for fault in FAULTS:
        touched = [scenario for scenario in SCENARIOS if touches(fault, scenario)]
        scenario = min(touched, key=lambda one: (played[one.name], lot(place, fault.name, one.name)))
        played[scenario.name] += 1
        yield scenario, [fault]


def whole():
    """(scenario, [faults of which one is due at each operation]): all there is."""
    groups = {}
    for fault in FAULTS:
        groups.setdefault(fault.like or (fault.service, fault.name), []).append(fault)
    for scenario in SCENARIOS:
        for group in groups.values():
            if touches(group[0], scenario):
                yield scenario, group


def chosen():
    for at, place in enumerate(PLACES):
        for scenario, group in whole() if at < 3 else part(place):
            if scenario.only == BATCHES and PLACES[place][1] == "dynalite":
                continue  # it has none
            name = group[0].like or group[0].name if len(group) > 1 else group[0].name
            yield pytest.param(place, scenario, group, at == 0, id=f"{place}-{scenario.name}-{name}")


def due(place, scenario, group, found):
    """[(fault, operation)] that may be played, in an order that is the same each time."""
    pairs = [(group[lot(place, scenario.name, one) % len(group)], one) for one in found if group[0].fits(*one[:2])]
    return sorted(pairs, key=lambda pair: lot(place, scenario.name, pair[0].name, pair[1]))


@pytest.mark.full
@pytest.mark.parametrize("place, scenario, group, is_whole", chosen())
def test_cut_anywhere(place, scenario, group, is_whole, arenas, tmp_path, pytestconfig):
    failures, cut = [], 0
    pairs = due(place, scenario, group, operations(scenario, place, arenas, tmp_path, pytestconfig.servers.folder))
    assert pairs, "no operation to cut: Scenario.s3 is wrong"
    for number, (fault, operation) in enumerate(pairs):
        wrong = case(scenario, place, arenas, tmp_path / str(number), fault, operation)
        if wrong == UNREACHED and scenario.races:
            continue
        cut += 1
        name = f"{operation[1]} {operation[2]}"
        note_case(suite="matrix", passed=not wrong, server=place, scenario=scenario.name, fault=fault.name, operation=name)
        if wrong:
            failures.append(f"{fault.name} at {name}: {wrong}")
        if not is_whole:
            break
    assert not failures, "\n\n".join(failures)
    assert cut, f"the race came to none of {[operation for _, operation in pairs]}"
