"""--help, the man pages and what the program accepts are one and the same."""

import re
import shutil
import subprocess

import pytest

from tests.system.harness import BUILD, REPOSITORY

MAN = REPOSITORY / "docs" / "man"
COMMANDS = ["push", "run", "watch", "proven", "status", "fleet", "verify", "manifest", "cat", "forget", "gc", "init", "config", "doctor", "lock"]
LOCK = ["run", "acquire", "renew", "release", "status", "list", "break", "init"]


def helps(s3once, command):
    """[(words that run it, its --help all)]: those of `lock` share a man page."""
    words = [["lock", name] for name in LOCK] if command == "lock" else [[command]]
    return [(argv, s3once(*argv, "--help", "all").out) for argv in words]


def options_of_help(text):
    return set(re.findall(r"^ {2,6}(?:-\w, )?--([a-z0-9-]+)", text, re.M)), set(re.findall(r"^  -(\w), --", text, re.M))


def options_of_man(text):
    """Options that have an entry of their own: a line that begins with one."""
    lines = [line for line in text.splitlines() if re.match(r"\*-", line)]
    return (
        {name for line in lines for name in re.findall(r"\*--([a-z0-9-]+)\*", line)},
        {letter for line in lines for letter in re.findall(r"\*-(\w)\*", line)},
    )


def man(command):
    return (MAN / f"s3once-{command}.1.scd").read_text()


def man_of_options(command):
    """The pages that describe the options: `run` takes those of `push` but for pipes, and `watch` has more."""
    but_pipes = re.sub(r"^# PIPES\n.*?(?=^# )", "", man("push"), flags=re.M | re.S)
    if command == "watch":
        return but_pipes + man(command)
    return but_pipes if command == "run" else man(command)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_and_man_name_the_same_options(s3once, command):
    found = [options_of_help(text) for _, text in helps(s3once, command)]
    assert all(len(names) >= 3 for names, _ in found)
    assert options_of_man(man_of_options(command)) == tuple(set().union(*kind) for kind in zip(*found))


# A value that is right for an option, or for what stands for it in the help. All others take any text.
VALUES = {"N": "2", "SIZE": "16MiB", "DUR": "1m", "AGE": "1d", "RATE": "1MiB"}
VALUES |= {"--checksum": "sha256", "--dialect": "java", "--format": "json", "--release-by": "delete", "--tokens": "row"}


def value_for(option, argument):
    return VALUES.get(option) or VALUES.get(argument) or re.split(r"[|\[]", argument)[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_exists(s3once, command):
    """All of them are taken on one line, each with a value where the help has one: only what follows them is complained about."""
    for argv, text in helps(s3once, command):
        options = re.findall(r"^  (?:-(\w), |    )(--[a-z0-9-]+)(?:\[?[= ](?! )([^\s]+?)\]?)?(?=\s|$)", text, re.M)
        names, letters = options_of_help(text)
        assert {name[2:] for _, name, _ in options} == names and {letter for letter, _, _ in options if letter} == letters
        words = [f"{name}={value_for(name, argument)}" if argument else name for _, name, argument in options if name != "--help"]
        words += [f"-{letter}" for letter, name, _ in options if letter and name != "--help"]
        run = s3once(*argv, *words, "--no-such-option")
        assert run.code == (125 if argv == ["lock", "run"] else 2) and "unknown option '--no-such-option'" in run.err, run
        assert "h" not in letters or s3once(*argv, "-h", "all").out == text


@pytest.mark.parametrize("command", COMMANDS)
def test_values_are_named_alike(s3once, command):
    text = re.sub(r"[*_]", "", man_of_options(command))
    for _, help_text in helps(s3once, command):
        for name, value in re.findall(r"--([a-z-]+) (\S+)(?=\s\s|\n)", help_text.split("\nExample")[0]):
            assert f"--{name} {value}\n" in text, f"--{name} {value}"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_a_terminal(s3once, command):
    assert not [line for _, text in helps(s3once, command) for line in text.splitlines() if len(line) > 80]


FIRST_SCREENS = {"push": 40, "run": 45, "watch": 45}  # lines


@pytest.mark.parametrize("command", FIRST_SCREENS)
def test_help_begins_with_one_screen(s3once, command):
    """It has the options that most people need, each of which is in --help all, too, and says how to see the others."""
    first, everything = s3once(command, "--help").out, s3once(command, "--help", "all").out
    assert len(first.splitlines()) <= FIRST_SCREENS[command] and max(map(len, first.splitlines())) <= 80
    assert 10 <= len(options_of_help(first)[0]) and options_of_help(first)[0] < options_of_help(everything)[0]
    assert f"s3once {command} --help all" in first
    assert s3once("help", command, "all").out == everything


@pytest.mark.parametrize("command", FIRST_SCREENS)
def test_help_has_topics(s3once, command):
    """Together, the topics that the first screen names have all options, each in one of them."""
    first, everything = s3once(command, "--help").out, s3once(command, "--help", "all").out
    topics = first.split("--help TOPIC, which is\n")[1].replace("\n", " ").strip().split(", ")
    texts = [s3once(command, "--help", topic) for topic in topics]
    assert all(text.code == 0 and text.out and text.out in everything for text in texts), texts
    names = [name for text in texts for name in sorted(options_of_help(text.out)[0])]
    assert sorted([*names, "help"]) == sorted(options_of_help(everything)[0])
    assert s3once("help", command, topics[0]).out == s3once(command, "-h", topics[0].upper()).out == texts[0].out
    unknown = s3once(command, "--help", "nothing")
    assert unknown.code == 2 and f"there is no help on 'nothing', but on: all, {', '.join(topics)}" in unknown.err, unknown


def is_given(name, text):
    """Whether a test gives this option: on a command line, in a job or by its variable."""
    variable = f"S3ONCE_{name.upper().replace('-', '_')}"
    return re.search(rf"--{name}(?![\w-])|(?:^|\\n)\s*{name} ?=|{variable}\b", text, re.M)


def test_each_option_of_push_is_given_by_a_test(s3once):
    """And there are no more of them than there were: one that is new takes the place of another."""
    names, _ = options_of_help(s3once("push", "--help", "all").out)
    assert len(names) <= 65
    folders = [REPOSITORY / "tests" / folder for folder in ("system", "faults", "suites")]
    text = "\n".join(path.read_text() for folder in folders for path in folder.glob("*.py"))
    assert not [name for name in sorted(names) if not is_given(name, text)]
    assert not is_given("no-such" + "-thing", text) and not is_given("ac", text)


def test_proven_has_few_options(s3once):
    """Those that say which files are meant, where their marks and objects are, and what is printed. It refuses push's others."""
    of_proven, _ = options_of_help(s3once("proven", "--help").out)
    of_push, _ = options_of_help(s3once("push", "--help", "all").out)
    assert len(of_proven) <= 20 and of_proven - of_push == {"job", "source"}
    for name in sorted(of_push - of_proven):
        run = s3once("proven", f"--{name}=1", "x", "s3://bucket")
        assert run.code == 2 and f"proven has no --{name}, which push has: leave it out" in run.err, run


def test_usage_lists_every_command(s3once):
    usage = s3once("--help").out
    overview = (MAN / "s3once.1.scd").read_text()
    for command in COMMANDS:
        assert re.search(rf"^  {command} ", usage, re.M)
        assert f"\n*{command}*\n" in overview and f"*s3once-{command}*(1)" in overview
    usage, page = s3once("lock", "--help").out, man("lock")
    for command in LOCK:
        assert re.search(rf"^  {command} ", usage, re.M) and f"*s3once lock {command}*" in page


def test_every_exit_code_is_documented(s3once):
    for page in ("s3once", "s3once-push", "s3once-run"):
        status = (MAN / f"{page}.1.scd").read_text().split("# EXIT STATUS")[1].split("\n# ")[0]
        assert re.findall(r"^\*([\d*, ]+)\*$", status, re.M) == ["0", "1", "2", "3", "4", "5", "6", "129*, *130*, *143"]
    help_text = s3once("push", "--help", "all").out.split("Exit codes:")[1]
    assert set(re.findall(r"\b\d+\b", help_text)) == {"0", "1", "2", "3", "4", "5", "6", "129", "130", "143"}
    header = (REPOSITORY / "include" / "s3once" / "push.h").read_text()
    assert re.findall(r"S3ONCE_EXIT_\w+ =\s*(\d+)", header) == ["0", "1", "2", "3", "4", "5", "6", "128"]
    for command in ("status", "fleet", "forget", "gc", "init", "config"):
        codes = set(re.findall(r"^\*(\d)\*$", man(command).split("# EXIT STATUS")[1], re.M))
        assert codes == {"0", "1", "2", "3"}
    assert set(re.findall(r"^\*(\d)\*$", man("doctor").split("# EXIT STATUS")[1], re.M)) == {"0", "1", "2"}
    of_lock = {code for _, text in helps(s3once, "lock") for code in re.findall(r"\b(\d) \w", text.split("Exit codes:")[1])}
    assert of_lock | {"1"} == set(re.findall(r"^\*(\d)\*$", man("lock").split("# EXIT STATUS")[1], re.M)) == set("012345")


@pytest.mark.parametrize("page", ["s3once.1", *(f"s3once-{command}.1" for command in COMMANDS), "s3once_lock.3", "s3once.conf.5"])
def test_man_pages_are_built(page):
    if not shutil.which("scdoc"):
        pytest.fail("scdoc is not installed: run tests/setup/install test")
    built = (BUILD / "docs" / "man" / page).read_text()
    again = subprocess.run(["scdoc"], input=(MAN / f"{page}.scd").read_text(), text=True, capture_output=True, check=True).stdout
    of_a_day = re.compile(r'^(\.TH .*)"\d{4}-\d\d-\d\d"', re.M)  # the day on which it was built
    assert of_a_day.subn(r"\1", built) == of_a_day.subn(r"\1", again) and len(of_a_day.findall(built)) == 1


def test_the_library_page_names_what_the_header_has():
    page = (MAN / "s3once_lock.3.scd").read_text()
    header = (REPOSITORY / "include" / "s3once" / "lock.h").read_text()
    assert set(re.findall(r"\bs3once_locks?_\w*[a-z]", page)) <= set(re.findall(r"\bs3once_locks?_\w*[a-z]", header))
