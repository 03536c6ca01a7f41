"""Completion in bash, fish and zsh offers every command and option that the help has, and the values it knows."""

import os
import re
import subprocess

import pytest

from tests.system.harness import PROGRAM, REPOSITORY

SCRIPTS = REPOSITORY / "config" / "completion"

# Each script is given command lines, with a word on each line of them, and writes a NUL behind what is offered for each.
BASH = """
. /usr/share/bash-completion/bash_completion
. "$SCRIPTS/s3once.bash"
compopt() { :; }
for one; do
	mapfile -t COMP_WORDS <<<"$one"
	COMP_LINE="${COMP_WORDS[*]}" COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
	COMP_POINT=${#COMP_LINE}
	_s3once
	printf '%s\\n' "${COMPREPLY[@]}"
	printf '\\0'
done
"""

FISH = """
source "$SCRIPTS/s3once.fish"
for one in $argv
	complete -C (string replace -a \\n ' ' -- $one | string collect)
	printf '\\0'
end
"""

# What the shell's own functions would be given.
ZSH = r"""
_describe() { for one in ${(P)2}; do print -r -- ${one%%:*}; done }
_files() { print -l -- *(N) }
compadd() { while [[ $1 != -- ]]; do shift; done; shift; print -rl -- "$@" }
_arguments() {
	for one in "$@"; do
		[[ $one = \** && $one = *--* ]] || continue
		name=${${one#\*}%%:*}
		[[ ${words[CURRENT]} != -* ]] || print -r -- $name
		[[ ${words[CURRENT-1]} = $name ]] || continue
		action=${one##*:}
		[[ $action = \(* ]] && print -rl -- ${=${action#\(}%\)} || $=action
	done
	[[ ${words[CURRENT]} = -* || ${words[CURRENT-1]} = --* ]] || ${${@[-1]}##*:}
}
for one in "$@"; do
	words=("${(@f)one}") CURRENT=$#words
	. $SCRIPTS/_s3once
	print -n '\0'
done
"""


SHELLS = {
    "bash": ["bash", "--norc", "-c", BASH, "bash"],
    "fish": ["fish", "--no-config", "-c", FISH],
    "zsh": ["zsh", "-f", "-c", ZSH, "zsh"],
}
every_shell = pytest.mark.parametrize("shell", SHELLS)


@pytest.fixture
def complete(tmp_path):
    """complete(shell, ["push", "--m"], …): of each line, what is offered behind "s3once push --m"."""
    home = tmp_path / "home"
    (home / ".aws").mkdir(parents=True)
    (home / ".aws" / "config").write_text("[default]\n[profile  night]\nregion = x\n")
    environment = {"HOME": str(home), "SCRIPTS": str(SCRIPTS), "S3ONCE_MARKS": "dynamodb:uploads", "LC_ALL": "C.UTF-8"}

    def ask(shell, *lines, programs=PROGRAM.parent, jobs=None):
        argv = [*SHELLS[shell], *("\n".join(["s3once", *line]) for line in lines)]
        path = {"PATH": f"{programs}:{os.environ['PATH']}"} | ({"S3ONCE_JOBS": str(jobs)} if jobs else {})
        run = subprocess.run(argv, env=environment | path, cwd=REPOSITORY, capture_output=True, text=True, timeout=60)
        assert not run.stderr, run.stderr
        answers = run.stdout.split("\0")
        assert len(answers) == len(lines) + 1 and not answers[-1], run.stdout
        offered = [{one.split("\t")[0] for one in answer.splitlines()} for answer in answers]
        return [{one for one in each if one.startswith(line[-1])} for each, line in zip(offered, lines)]

    return ask


def help_of(*command, topic=()):
    run = subprocess.run([PROGRAM, *command, "--help", *topic], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return run.stdout


def commands_of(*command):
    return re.findall(r"^  ([a-z]+) +\S", help_of(*command), re.M)


def every_command():
    commands = [(one,) for one in commands_of() if one not in ("help", "lock")]
    return commands + [("lock", one) for one in commands_of("lock")]


@every_shell
def test_every_command_is_offered(complete, shell):
    commands, dashes, of_lock, pu, rel, of_help = complete(shell, [""], ["--"], ["lock", ""], ["pu"], ["lock", "rel"], ["help", ""])
    assert {"push", "status", "lock"} <= commands == {*commands_of(), *dashes}
    assert of_lock >= set(commands_of("lock"))
    assert pu == {"push"} and rel == {"release"}
    assert of_help >= {"push", "status"}


@pytest.fixture
def repeating(tmp_path):
    """The folder of a program that repeats what the real one says for each --help all, which is started once for each."""
    helps = {command: help_of(*command, topic=["all"]) for command in every_command()}
    for command, text in helps.items():
        (tmp_path / " ".join([*command, "--help", "all"])).write_text(text)
    program = tmp_path / "bin" / "s3once"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec cat "{tmp_path}/$*"\n')
    program.chmod(0o755)
    return program.parent, helps


def test_every_option_is_offered(complete, repeating):
    programs, helps = repeating
    for shell in SHELLS:
        offered = complete(shell, *([*command, "--"] for command in helps), programs=programs)
        for (command, text), options in zip(helps.items(), offered, strict=True):
            of_help = set(re.findall(r"^  (?:-., |    )(--[a-z0-9-]+)", text, re.M))
            assert "--help" in of_help and options == of_help, (shell, command)


@every_shell
def test_values_that_s3_knows_are_offered(complete, shell):
    """The lists of the source, by which push checks them."""
    source = (REPOSITORY / "src" / "s3" / "s3_setting.c").read_text()
    lists = [re.search(rf"{name}\[\] = \{{(.*?)NULL", source, re.S)[1] for name in ("acls", "storage_classes")]
    acls, classes = complete(shell, ["push", "--acl", ""], ["run", "--storage-class", ""])
    assert [acls, classes] == [set(re.findall(r'"([^"]+)"', one)) for one in lists]
    assert len(acls) > 5 and len(classes) > 5


@every_shell
def test_values_are_offered(complete, shell):
    lines = [["--if-changed", ""], ["--marks", ""], ["--profile", ""], ["--ca-bundle", "READ"], ["READ"]]
    changed, marks, profiles, bundle, source = complete(shell, *(["push", *line] for line in lines))
    assert changed == {"fail", "replace", "skip", "replace-any"}
    assert {"local", "dynamodb:uploads"} <= marks
    assert profiles == {"default", "night"}
    assert "README.md" in bundle and "README.md" in source


@every_shell
def test_jobs_are_offered(complete, shell, tmp_path):
    """Those of the folder that S3ONCE_JOBS names, as s3once run takes them."""
    folder = tmp_path / "jobs"
    folder.mkdir()
    (folder / "photos.conf").write_text("marks = dynamodb:of-a-job\n")
    for command, option in (("run", []), ("status", ["--job"])):
        (jobs,) = complete(shell, [command, *option, "ph"], jobs=folder)
        assert jobs == {"photos"}, (command, jobs)
    (places,) = complete(shell, ["push", "--marks", ""], jobs=folder)
    assert any("of-a-job" in place for place in places), places
