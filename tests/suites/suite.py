"""Compares the figures of a suite in docs/suites.md with the counts of a test."""

import csv
import re
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "suites.md"


def read_table(name):
    """The rows of NAME.tsv, and how many cases of each group are left out of it."""
    lines = (HERE / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    others = Counter()
    for line in lines:
        if line.startswith("# not ours\t"):
            _, group, n, _ = line.split("\t")
            others[group] += int(n)
    rows = (line for line in lines if not line.startswith("# "))
    return list(csv.DictReader(rows, delimiter="\t", quoting=csv.QUOTE_NONE)), others


class Suite:
    """Counts the cases of one suite. Each case agrees, or differs for a reason that the page gives in the same words."""

    def __init__(self, name, others=0):
        self.name, self.others, self.agreed, self.reasons, self.unexplained = name, others, 0, Counter(), []

    def count(self, agrees, reason="", what=""):
        """`reason` is why a case that does not agree is meant to be so; "" if there is none."""
        if agrees:
            self.agreed += 1
        elif reason:
            self.reasons[reason] += 1
        else:
            self.unexplained.append(str(what))

    def compare_with_page(self):
        assert not self.unexplained, f"{len(self.unexplained)} cases:\n" + "\n".join(self.unexplained)
        differ = sum(self.reasons.values())
        figures = [self.others + self.agreed + differ, self.agreed + differ, self.agreed, differ]
        wanted = {f"| {self.name} | {' | '.join(map(str, figures))} |"}
        wanted |= {f"| {self.name} | {n} | {reason} |" for reason, n in self.reasons.items()}
        row = re.compile(rf"\| {re.escape(self.name)} \| \d")
        found = {line for line in PAGE.read_text(encoding="utf-8").splitlines() if row.match(line)}
        assert found == wanted, "docs/suites.md should have these lines:\n" + "\n".join(sorted(wanted))
