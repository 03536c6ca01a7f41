"""The commands of README's table do what it says, in its order, in a fresh folder."""

import re

from tests.system.harness import REPOSITORY

README = (REPOSITORY / "README.md").read_text()
ENDING = {"push", "run", "proven", "status", "verify", "forget", "doctor", "fleet", "lock"}
COMMANDS = re.findall(r"^\| `s3once ([^`]+)` \|", README, re.M)


def test_the_commands_of_the_readme(s3once, s3, bucket, tmp_path):
    folder, job = tmp_path / "logs", tmp_path / "nightly.conf"
    folder.mkdir()
    (folder / "a.log").write_bytes(b"one line\n")
    job.write_text(f"source = {folder}\ntarget = s3://{bucket}/web1\n")
    job.chmod(0o600)
    words = {
        "DIR": folder,
        "s3://BUCKET/PREFIX": f"s3://{bucket}/web1",
        "s3://BUCKET/KEY": f"s3://{bucket}/web1/a.log",
        "s3://BUCKET": f"s3://{bucket}",
        "NAME": job,
        "FILE": folder / "a.log",
        "COMMAND": "true",
    }
    assert {command.split()[0] for command in COMMANDS} >= ENDING
    for command in COMMANDS:
        if command.split()[0] not in ENDING:
            continue
        given = {**words, "NAME": "nightly"} if command.startswith("lock") else words
        run = s3once(*(given.get(word, word) for word in command.split()))
        assert run.code == 0, (command, run)
    assert s3.get(bucket, "web1/a.log") == b"one line\n"
