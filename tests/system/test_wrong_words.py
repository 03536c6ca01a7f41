"""With any fault of a command line, each command ends with 2, or `lock run` with 125, and with one sentence that names the option and the remedy."""

import re

import pytest

from tests.system.locking import FAILED

VALID = ["s3://bucket/p"]
# What each command needs, so that nothing else is wrong with it; None: it takes no operands.
OPERANDS = {
    "push": [".", "s3://bucket"],
    "run": ["./job.conf"],
    "watch": ["./job.conf"],
    "proven": ["job.conf", "s3://bucket"],
    "status": VALID,
    "fleet": [],
    "forget": VALID,
    "verify": VALID,
    "manifest": VALID,
    "cat": ["s3://bucket/p/app.log"],
    "gc": VALID,
    "init": [],
    "config": [],
    "doctor": VALID,
    "version": [],
    "lock run": ["key", "--", "true"],
    "lock acquire": ["key", "--lease", "1m"],
    "lock renew": ["handle"],
    "lock release": ["handle"],
    "lock status": ["key"],
    "lock list": [],
    "lock break": ["key", "--if-version", "v"],
    "lock init": [],
}
OPTIONAL = {"status", "doctor", "config"}  # they tell something without one, too
MANY = {"push", "run", "watch", "proven", "manifest", "cat", "config", "lock run"}
KINDS = {"N": ("many", "12x", "-1", ""), "SIZE": ("12x", "1.5G", ""), "DUR": ("12x", "1.5h", ""), "PLACE": ("",), "FILE": ("",), "URL": ("",)}


@pytest.fixture
def wrong(s3once, tmp_path):
    """wrong(command, *words): the sentence. Whatever would be done otherwise is nothing here: no server answers."""
    (tmp_path / "job.conf").write_text(f"source = {tmp_path}\ntarget = s3://bucket\n")
    (tmp_path / "log").touch()

    def ask(command, *words):
        run = s3once(*command.split(), *words, cwd=tmp_path, timeout=30)
        line = re.fullmatch(rf"s3once: error: ({command}|{command.split()[0]}): (.+)\n", run.err)
        assert run.code == (FAILED if command == "lock run" else 2) and line and not run.out, run
        return line[2]

    return ask


@pytest.fixture(params=OPERANDS, ids=lambda name: name.replace(" ", "-"))
def command(request):
    return request.param


@pytest.fixture
def options(s3once, command):
    """name → what stands for its value, or ""."""
    text = s3once(*command.split(), "--help", "all").out
    return dict(re.findall(r"^  (?:-\w, |    )--([a-z0-9-]+)(?: (\S+))?", text, re.M))


def test_options(wrong, command, options):
    operands = OPERANDS[command]
    long = max(options, key=len)
    assert wrong(command, f"--{long[:-1]}", *operands).endswith(f"did you mean --{long}?")
    assert "unknown option '--qqqqqq'; see s3once " in wrong(command, "--qqqqqq", *operands)
    assert "unknown option '-Z'; see s3once " in wrong(command, "-Z", *operands)
    assert wrong(command, "--help=x", *operands) == "--help takes no value"
    kinds = {argument: name for name, argument in options.items() if argument in KINDS}
    for argument, name in kinds.items():
        before = [] if command != "lock run" else ["key"]
        assert wrong(command, *before, f"--{name}") == f"--{name} needs a value: --{name} {argument}"
        for value in KINDS[argument]:
            sentence = wrong(command, f"--{name}={value}", *operands)
            assert sentence.startswith(f"--{name}: ") and len(sentence) > len(name) + 15, sentence


def test_operands(wrong, command):
    """Too few, an empty one, too many."""
    operands = OPERANDS[command]
    if operands:
        if command not in OPTIONAL:
            assert re.search(r"\b(name|give)\b", sentence := wrong(command)), sentence
        where = ["--locks", "local"] if command.startswith("lock ") else []  # else a warning comes first
        sentence = wrong(command, *where, *["" if word == operands[0] else word for word in operands])
        assert re.search(r"empty|is written s3://BUCKET|name|not the handle|a key has 1 to 1000 bytes", sentence), sentence
    if command not in MANY:
        sentence = wrong(command, *operands, "s3://one-more")
        assert re.search(r"'s3://one-more'", sentence), sentence
