"""The commands of README do what it says, in its order, typed as they stand there; only names are replaced."""

import re
import shlex

from tests.system.harness import REPOSITORY

README = (REPOSITORY / "README.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", README, re.M | re.S)
COMMANDS = [shlex.split(line, comments=True)[1:] for block in BLOCKS for line in block.splitlines() if line.startswith("s3once ")]
JOB = re.search(r"^```ini\n(.*?)^```$", README, re.M | re.S).group(1)


def test_the_commands_of_the_readme(s3once, s3, dynamodb, table, bucket, tmp_path):
    s3once.environment.pop("S3ONCE_MARKS")
    names = {"dynamodb:uploads": f"dynamodb:{table}", "my-logs": bucket, "my-backups": bucket, "nginx": f"{tmp_path}/nginx.conf"}
    names |= {"$(date +%F)": "2026-11-23", "pg_dump": "echo"}
    for folder in ("/var/log/app", "/srv/shared", "/var/log/nginx"):
        names[folder] = str(tmp_path / folder[1:])
        (tmp_path / folder[1:]).mkdir(parents=True)
        (tmp_path / folder[1:] / "error.log.1").write_bytes(b"one line\n")

    def named(text):
        for name, instead in names.items():
            if name != "nginx" or text == name:
                text = text.replace(name, instead)
        return text

    (tmp_path / "nginx.conf").write_text("".join(" ".join(map(named, line.split())) + "\n" for line in JOB.splitlines()))
    (tmp_path / "nginx.conf").chmod(0o600)
    assert [command[0] for command in COMMANDS] == ["doctor", "push", "push", "status", "verify", "push", "init", "push", "fleet", "run"]
    for command in COMMANDS:
        run = s3once(*map(named, command))
        assert run.code == 0, (command, run)
    assert sorted(s3.objects(bucket)) == ["db/2026-11-23.dump", "shared/error.log.1", "web1/error.log.1"]
    assert re.search(r"^would upload .*/nginx/error-[0-9TZ]+-[0-9a-f]{8}\.log", run.out, re.M), run
