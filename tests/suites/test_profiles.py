"""The files of profiles as AWS's SDKs read them."""

import json
import re
import subprocess

from tests.suites.suite import Suite, read_table
from tests.system.harness import BUILD

ROWS, _ = read_table("profiles")


def reason_of(row):
    """Why this one differs on purpose."""
    if "key : value" in row["config"]:
        return "A colon may stand for the equals sign, as in botocore."
    if json.loads(row["config"]).endswith("name =") and "s3" not in row["config"]:
        return "A setting without a value is not set."
    if "!" in row["config"]:
        return "The name of a profile may have any characters, as in botocore."
    if "[profile in valid]" in row["config"]:
        return "The name of a profile that has a blank is found without quotes, too."
    return ""


def questions(row):
    """(profile, key, value); a sub-setting of s3 is "s3.name". A profile without settings is asked for ""."""
    profiles = json.loads(row["profiles"])
    for profile, keys in profiles.items():
        yield profile, "", None
        for key, value in keys.items():
            for line in value.split("\n")[1:] if value.startswith("\n") else []:
                name, _, inner = line.partition("=")
                yield profile, f"{key}.{name.strip()}", inner.strip() or None
            if not value.startswith("\n"):
                yield profile, key, value
    for section in re.findall(r"^\[(?:profile[ \t]+)?([^\]\n]+)\]", json.loads(row["config"]), re.M):
        if section.strip() not in profiles:
            yield section.strip(), "", False


def test_profiles(tmp_path):
    suite = Suite("Profiles")
    lines, wanted = [], []
    for number, row in enumerate(ROWS):
        files = [tmp_path / f"{number}-{name}" for name in ("config", "credentials")]
        for file, text in zip(files, (row["config"], row["credentials"])):
            file.write_bytes(json.loads(text).encode())
        asked = [("default", "", None)] if row["error"] else list(questions(row))
        wanted.append(asked)
        lines += ["\t".join([str(file) for file in files] + [profile, key]) + "\n" for profile, key, _ in asked]
    probe = [BUILD / "tests" / "system" / "profile_probe"]
    done = subprocess.run(probe, input="".join(lines), capture_output=True, text=True, check=True, timeout=60)
    answers = iter([json.loads(line) for line in done.stdout.splitlines()])
    for row, asked in zip(ROWS, wanted):
        found = [next(answers) for _ in asked]
        if row["error"]:
            agrees = isinstance(found[0], dict)
        else:
            agrees = found == [value for _, _, value in asked]
        suite.count(agrees, reason_of(row), (row, found))
    suite.compare_with_page()
