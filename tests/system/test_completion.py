"""Completion in bash, fish and zsh offers every command and option that the help has, and the values it knows."""

import os
import re
import subprocess

import pytest

from tests.system.harness import BUILD, REPOSITORY

SCRIPTS = REPOSITORY / "config" / "completion"
PROGRAM = next(BUILD.rglob("cli/s3once"))

BASH = """
. /usr/share/bash-completion/bash_completion
. "$SCRIPTS/s3once.bash"
COMP_LINE="$*" COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_POINT=${#COMP_LINE}
compopt() { :; }
_s3once
printf '%s\\n' "${COMPREPLY[@]}"
"""

FISH = 'source "$SCRIPTS/s3once.fish"; complete -C "$argv"'

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
words=("$@") CURRENT=$#
. $SCRIPTS/_s3once
"""


@pytest.fixture(params=["bash", "fish", "zsh"])
def complete(request, tmp_path):
    """complete("push", "--m"): what is offered behind "s3once push --m"."""
    home = tmp_path / "home"
    (home / ".aws").mkdir(parents=True)
    (home / ".aws" / "config").write_text("[default]\n[profile  night]\nregion = x\n")
    path = f"{PROGRAM.parent}:{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(home), "SCRIPTS": str(SCRIPTS), "S3ONCE_MARKS": "dynamodb:uploads", "LC_ALL": "C.UTF-8"}

    def ask(*words):
        line = ["s3once", *words]
        argv = {
            "bash": ["bash", "--norc", "-c", BASH, "bash", *line],
            "fish": ["fish", "--no-config", "-c", FISH, " ".join(line)],
            "zsh": ["zsh", "-f", "-c", ZSH, "zsh", *line],
        }[request.param]
        run = subprocess.run(argv, env=environment, cwd=REPOSITORY, capture_output=True, text=True, timeout=60)
        assert not run.stderr, run.stderr
        offered = [one.split("\t")[0] for one in run.stdout.splitlines()]
        return {one for one in offered if one.startswith(words[-1])}

    return ask


def help_of(*command):
    run = subprocess.run([PROGRAM, *command, "--help"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return run.stdout


def commands_of(*command):
    return re.findall(r"^  ([a-z]+) +\S", help_of(*command), re.M)


def every_command():
    commands = [(one,) for one in commands_of() if one not in ("help", "lock")]
    return commands + [("lock", one) for one in commands_of("lock")]


def test_every_command_is_offered(complete):
    assert {"push", "status", "lock"} <= complete("") == {*commands_of(), *complete("--")}
    assert complete("lock", "") >= set(commands_of("lock"))
    assert complete("pu") == {"push"} and complete("lock", "rel") == {"release"}
    assert complete("help", "") >= {"push", "status"}


@pytest.mark.parametrize("command", every_command(), ids=" ".join)
def test_every_option_is_offered(complete, command):
    options = set(re.findall(r"^  (?:-., |    )(--[a-z0-9-]+)", help_of(*command), re.M))
    assert "--help" in options and complete(*command, "--") == options


def test_values_are_offered(complete):
    assert complete("push", "--if-changed", "") == {"fail", "replace", "skip"}
    assert {"local", "dynamodb:uploads"} <= complete("push", "--marks", "")
    assert {"default", "night"} == complete("push", "--profile", "")
    assert "README.md" in complete("push", "--ca-bundle", "READ")
    assert "README.md" in complete("push", "READ")
