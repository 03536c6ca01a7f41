"""python3 -m tests.faults.soak MINUTES [SEED]: four uploaders over random trees, with random faults, kills, pauses, changes and
failures of power.

In rounds of half a minute; after each the faults end, a clean run finishes, and the checker decides. Prints what happened, and
exits 1 if a promise was broken. The last line: N rounds passed, M failed.
"""

import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from tests.faults.clients import descendants
from tests.faults.power import PowerStage
from tests.faults.stage import LEASE, PART, Arena, Stage
from tests.faults.test_matrix import FAULTS
from tests.servers.dynoxide import Dynoxide
from tests.servers.rgw import Rgw
from tests.system.harness import S3, DynamoDB

ROUND = 25  # seconds of faults
UPLOADERS = 4
REPLACE = ["--if-changed", "replace"]
IGNORES = {"behaves": "ignores", "honours": False}
PLACES = [
    (Stage, {}),
    (Stage, {"behaves": "aws"}),
    (Stage, {"behaves": "aws", "tls": True}),
    (Stage, {"close_each": True}),
    (Stage, IGNORES),
    (PowerStage, {"behaves": "aws"}),
    (PowerStage, IGNORES),
]


class Round:
    """One tree and its uploaders."""

    def __init__(self, stage, dice, changes):
        self.stage, self.dice, self.changes = stage, dice, changes
        self.counts = Counter()
        for n in range(dice.randrange(10, 60)):
            stage.write(f"f{n:02}", self.size())
        for proxy in (stage.s3, stage.dynamodb):
            for fault in FAULTS:
                if fault.service in ("both", proxy.service) and "outage" not in fault.name:
                    deadly = "kill" in fault.name
                    chance = 0.0005 if deadly else 0.004
                    proxy.add(fault.fault, times=None, probability=chance, where=fits(fault, proxy))

    def size(self):
        kinds = [0, 1, self.dice.randrange(1, 5000), self.dice.randrange(PART), PART + self.dice.randrange(2 * PART)]
        return self.dice.choices(kinds, [1, 1, 20, 3, 2])[0]

    def change_one(self):
        """Replaces a file as editors do: what is read is one version or the other."""
        name = self.dice.choice(sorted(path.name for path in self.stage.tree.iterdir()))
        fresh = self.stage.folder / "fresh"
        body = self.dice.randbytes(self.size())
        fresh.write_bytes(body)
        self.stage.checker.note_version(self.stage.key(name), body, fresh.stat().st_mtime_ns)
        fresh.rename(self.stage.tree / name)
        self.counts["changes"] += 1

    def start(self):
        self.counts["runs"] += 1
        return self.stage.start(*REPLACE, elsewhere=self.dice.random() < 0.3, concurrency=self.dice.choice([1, 2, 8]))

    def play(self):
        running = [self.start() for _ in range(UPLOADERS)]
        deadline = time.monotonic() + ROUND
        while time.monotonic() < deadline:
            time.sleep(0.05)
            at = self.dice.randrange(UPLOADERS)
            one, chance = running[at], self.dice.random()
            if one.popen.poll() is not None:
                self.note(one)
                running[at] = self.start()
            elif chance < 0.01:
                one.kill()
                self.counts["kills"] += 1
            elif chance < 0.015:
                self.pause(one)
            elif chance < 0.05 and self.changes:
                self.change_one()
            elif chance < 0.06 and isinstance(self.stage, PowerStage):
                self.counts["failures of power"] += 1
                self.counts["marks lost"] += len(self.stage.fail_power())
        for proxy in (self.stage.s3, self.stage.dynamodb):
            proxy.clear()
        for one in running:
            one.wait(120)
            self.note(one)

    def pause(self, one):
        self.stage.checker.paused.update([one.pid, *descendants(one.pid)])
        one.kill(signal.SIGSTOP)
        time.sleep(self.dice.uniform(0, 1.5 * LEASE))
        one.kill(signal.SIGCONT)
        self.counts["pauses"] += 1

    def note(self, one):
        result = one.wait(1)
        self.stage.checker.check_exit_code(result)
        self.counts[f"exit {result.code}"] += 1


def fits(fault, proxy):
    return lambda record: bool(fault.fits(proxy.service, record.kind))


def play_round(arena, folder, dice, total):
    kind, how = dice.choice(PLACES)
    with kind(folder, arena, **how) as stage:
        one = Round(stage, dice, changes="honours" not in how)
        try:
            one.play()
            stage.finish(*REPLACE)
        finally:
            total.update(one.counts)
            records = stage.s3.history + stage.dynamodb.history
            total["operations"] += len(records)
            total["faults"] += sum(record.fired for record in records)


def main():
    minutes, seed = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    print(f"soak of {minutes:g} minutes, seed {seed}", flush=True)
    total, passed, failed = Counter(), 0, 0
    work = Path(tempfile.mkdtemp(prefix="s3once-soak-"))
    with Rgw() as rgw, Dynoxide() as dynoxide:
        arena = Arena(S3(rgw.info()), DynamoDB(dynoxide.info()), work)
        deadline, number = time.monotonic() + 60 * minutes, 0
        while time.monotonic() < deadline:
            number += 1
            try:
                play_round(arena, work / f"{number}", random.Random(seed + number), total)
                passed += 1
            except Exception:
                failed += 1
                print(f"round {number} of seed {seed}, kept in {work / str(number)}:\n{traceback.format_exc()}", flush=True)
    print(", ".join(f"{count} {what}" for what, count in sorted(total.items())))
    print(f"{passed} rounds passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


main()
