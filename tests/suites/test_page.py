"""docs/suites.md: each row of it belongs to a test, which compares the figures, and each table to a script that makes it anew."""

import re

from tests.suites.suite import HERE, PAGE, read_table
from tests.suites.test_endpoint_rules import NAMES
from tests.system.harness import REPOSITORY


def test_each_row_has_a_test():
    tests = "".join(path.read_text() for path in HERE.glob("test_*.py"))
    built = {f"Endpoints of {name}" for name in NAMES.values()} | {row["suite"] for row in read_table("credentials")[0]}
    rows = re.findall(r"^\| ([^|]+?) \| \d+ \| \d+ \| \d+ \| \d+ \|$", PAGE.read_text(), re.M)
    assert len(rows) > 30 and len(set(rows)) == len(rows)
    assert [row for row in rows if row not in built and f'"{row}"' not in tests] == []
    differ = re.findall(r"^\| ([^|]+?) \| \d+ \| [^|\d][^|]* \|$", PAGE.read_text(), re.M)
    assert differ and set(differ) <= set(rows)


def test_each_table_has_a_script():
    scripts = REPOSITORY / "tests" / "setup" / "suites"
    named = set(re.findall(r"tests/setup/suites/(\w+)\.py", PAGE.read_text()))
    for path in HERE.glob("*.tsv"):
        (script,) = re.findall(r"^# .*, by tests/setup/suites/(\w+)\.py$", path.read_text(), re.M)
        assert (scripts / f"{script}.py").is_file() and script in named, path
