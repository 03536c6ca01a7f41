"""Words that hands type: those of other tools, typing errors, a target that looks like a key. Each has an answer, and none leads to a loss."""

import pathlib
import re
import shlex

import pytest

REMOVING = re.compile(r"--(delete-|move-to|yes|keep-marks)|did you mean (forget|gc|lock break)")


@pytest.fixture
def answer(s3once, tmp_path):
    """answer(*words): the one sentence of a command line that is refused. No server is there."""
    (tmp_path / "f").write_text("one\n")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_text("a\n")

    def ask(*words):
        run = s3once(*words, cwd=tmp_path, timeout=30)
        line = re.fullmatch(r"s3once: error: (.+)\n", run.err)
        assert run.code == 2 and line and not run.out, run
        sentence = line[1]
        for word in words:
            sentence = sentence.replace(f"'{word}'", "").replace(f"there is no {word}: ", "")
        assert not REMOVING.search(sentence), run
        assert (tmp_path / "f").exists() and (tmp_path / "photos" / "a.jpg").exists()
        return line[1]

    return ask


@pytest.mark.parametrize(
    "words",
    [
        "push --delete f s3://bucket/p",
        "push --delet f s3://bucket/p",
        "push --delete-afte f s3://bucket/p",
        "push --delete-al f s3://bucket/p",
        "push --move-t f s3://bucket/p",
        "push --move f s3://bucket/p",
        "proven --delete f s3://bucket/p",
        "run --delete ./job.conf",
        "watch --delete ./job.conf",
        "forget --yess s3://bucket/p",
        "gc --keep-mark 1d s3://bucket",
        "forgett s3://bucket",
        "gcc s3://bucket",
        "lock brek key",
    ],
)
def test_no_hint_leads_to_an_option_that_removes(answer, words):
    assert answer(*words.split())


def test_delete_is_told_what_s3once_never_does(s3once, answer, tmp_path):
    assert answer("push", "--delete", "photos", "s3://bucket") == "push: there is no --delete: s3once never deletes in S3"
    (tmp_path / "j.conf").write_text("source = f\ntarget = s3://bucket\ndelete = yes\ndelete-afte = yes\n")
    run = s3once("run", tmp_path / "j.conf")
    assert run.code == 2 and "j.conf:3: there is no delete: s3once never deletes in S3\n" in run.err, run
    assert "j.conf:4: unknown name 'delete-afte'; there are" in run.err, run


ROOT = pathlib.Path(__file__).parents[2]
TABLE = re.findall(r'^\t\{"([^"]+)",(?: (OTHER_\w+),)?', (ROOT / "src/cli/other_tools.c").read_text(), re.M)
OPTIONS = [word for word, kind in TABLE if not kind]
COMMANDS = {word: kind for word, kind in TABLE if kind}

# What an answer has to say, by what is typed.
TO_OPTIONS = {
    "--progress": "progress is shown only on a terminal",
    "-P": "progress is shown only on a terminal",
    "--no-progress": "unless TERM is dumb",
    "-r": "everything below it",
    "--recursive": "everything below it",
    "--no-sign-request": "credentials are needed",
    "--ignore-existing": "are not overwritten, except as --if-changed",
    "--no-overwrite": "are not overwritten, except as --if-changed",
    "--no-clobber": "are not overwritten, except as --if-changed",
    "--update": "are not overwritten, except as --if-changed",
    "--checksum": "--compare-content",
    "--bucket=logs": "'logs' is not one of known|new|same; it is the relation of the bucket to the marks; name the bucket as s3://BUCKET",
    "--debug": "-vvv",
    "--transfers=8": "--concurrency",
    "--dryrun": "--dry-run",
    "--size-only": "by size and time",
    "--delete-excluded": "never deletes in S3",
    "--remove-source-files": "s3once push --help removal",
}
TO_COMMANDS = {
    "cp": "s3once push SOURCE...",
    "sync --delete": "s3once push SOURCE...",
    "upload a b c s3://bucket": "s3once push SOURCE...",
    "mv f s3://bucket/p": "stay on this host",
    "ls s3://bucket": "s3once status s3://",
    "rm s3://bucket/k": "never deletes in S3",
    "du s3://bucket": "status --depth",
    "get s3://bucket/k": "does not download",
    "restore s3://bucket/k": "does not download",
    "cp s3://bucket/k .": "does not download",
    "cp s3://bucket/k s3://bucket/l": "only from this host",
    "help cp": "s3once push SOURCE...",
}


@pytest.mark.parametrize("word", TO_OPTIONS)
def test_options_of_other_tools_are_answered(answer, word):
    said = answer("push", word, "f", "s3://bucket/p")
    assert TO_OPTIONS[word] in said and "did you mean" not in said, said


def test_each_option_of_the_table_is_answered_by_each_command_that_uploads(answer):
    """Nothing of the table is an option, but for two that other tools understand otherwise."""
    for i, word in enumerate(OPTIONS):
        command = ("push", "run", "watch", "proven")[i % 4]
        typed = f"-{word}" if len(word) == 1 else f"--{word}"
        said = answer(command, typed, "./f", "s3://bucket/p")
        of_push = f"proven has no {typed}, which push has" if command == "proven" else f"{typed}: './f' is not one of "
        start = f"{command}: {of_push}" if word in ("bucket", "checksum") else f"{command}: there is no {typed}: "
        assert said.startswith(start), said
    assert answer("push", "f", "s3://bucket", "--checksum").endswith("compares files by their content")


@pytest.mark.parametrize("typed", TO_COMMANDS)
def test_commands_of_other_tools_are_answered(answer, typed):
    said = answer(*typed.split())
    assert said.startswith(f"there is no command {typed.removeprefix('help ').split()[0]}: ") and TO_COMMANDS[typed] in said, said


def test_each_command_of_the_table_is_answered(answer):
    for word, kind in COMMANDS.items():
        said = answer(word, "photos", "s3://bucket/p")
        assert said.startswith(f"there is no command {word}: "), said
        assert ("type s3once push photos s3://bucket/p" in said) == (kind != "OTHER_ANSWERED"), said


@pytest.mark.parametrize(
    ("typed", "line", "keys"),
    [
        (["cp", "photos", "s3://{}/p", "--recursive"], "push photos s3://{}/p", ["p/a.jpg"]),
        (["sync", "photos", "s3://{}"], "push photos s3://{}", ["a.jpg"]),
        (["s3", "sync", "photos/", "s3://{}/p/"], "push photos/ s3://{}/p/", ["p/a.jpg"]),
        (["cp", "f", "s3://{}/new"], "push --as new f s3://{}", ["new"]),
        (["cp", "f", "s3://{}/p/"], "push f s3://{}/p/", ["p/f"]),
        (["copy", "f", "s3://{}/p"], "push f s3://{}/p", ["p/f"]),
        (["s3", "cp", "-", "s3://{}/p/x y"], "push - 's3://{}/p/x y'", ["p/x y"]),
        (["cp", "a b", "s3://{}/x y"], "push --as 'x y' 'a b' s3://{}", ["x y"]),
    ],
)
def test_a_copy_is_told_as_the_push_to_type(s3once, s3, bucket, answer, tmp_path, typed, line, keys):
    """The line that is told does what was meant, if it is typed."""
    (tmp_path / "a b").touch()
    said = answer(*[word.format(bucket) for word in typed])
    told = re.search(r": type s3once ([^;]+)", said)[1]
    assert told == line.format(bucket), said
    assert ("its options are in s3once push --help" in said) == ("--recursive" in typed)
    run = s3once(*shlex.split(told), cwd=tmp_path, stdin=b"input")
    assert run.code == 0 and sorted(s3.objects(bucket)) == keys, run


@pytest.mark.parametrize(
    ("sources", "target", "keys", "note"),
    [
        (["a.txt"], "new.txt", {"new.txt"}, "new.txt is taken as the key, not as a folder: end the URL with / for new.txt/a.txt"),
        (["./sub/b.tar.gz"], "d/latest.gz", {"d/latest.gz"}, "d/latest.gz is taken as the key, not as a folder: end the URL with / for d/latest.gz/b.tar.gz"),
        (["f"], "wal/f", {"wal/f"}, "wal/f is taken as the key, not as a folder: end the URL with / for wal/f/f"),
        (["f"], "wal/f/", {"wal/f/f"}, None),
        (["a.txt"], "new.txt/", {"new.txt/a.txt"}, None),
        (["a.txt"], "p", {"p/a.txt"}, None),
        (["a.txt"], "v1.2", {"v1.2/a.txt"}, None),
        (["a.txt"], "h.example.com", {"h.example.com/a.txt"}, "the key is h.example.com/a.txt: end the URL with / if that is meant, or give --as h.example.com s3://{}"),
        (["f"], "new.txt", {"new.txt/f"}, "the key is new.txt/f: end the URL with / if that is meant, or give --as new.txt s3://{}"),
        (["f", "a.txt"], "new.txt", {"new.txt/f", "new.txt/a.txt"}, None),
        (["photos"], "new.jpg", {"new.jpg/a.jpg"}, None),
        (["f", "sub"], "x/", {"x/f", "x/b.tar.gz"}, "the files of each folder go directly below s3://{}/x/: sub/FILE gets the key x/FILE; to keep the names of folders, push the folder above them"),
        (["f", "sub", "photos"], "x", {"x/f", "x/b.tar.gz", "x/a.jpg"}, "the files of each folder go directly below s3://{}/x: sub/FILE gets the key x/FILE; to keep the names of folders, push the folder above them"),
    ],
)
def test_the_keys_are_said_before_the_first_byte(s3once, s3, bucket, answer, tmp_path, sources, target, keys, note):
    """push says how it understands a target, -n and proven understand it in the same way, and -q is quiet."""
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.tar.gz").write_text("b\n")
    url = f"s3://{bucket}/{target}"
    planned = s3once("push", "-n", *sources, url, cwd=tmp_path)
    assert {line.split(" -> ")[1].split(" (")[0] for line in planned.out.splitlines() if line.startswith("would upload ")} == {
        f"s3://{bucket}/{key}" for key in keys
    }, planned
    run = s3once("push", *sources, url, cwd=tmp_path)
    notes = [line for line in run.err.splitlines() if line.startswith("s3once: note: ")]
    assert run.code == 0 and set(s3.objects(bucket)) == keys, run
    assert notes == ([f"s3once: note: {note.format(bucket)}"] if note else []), run
    assert s3once("proven", *sources, url, cwd=tmp_path).code == 0
    assert s3once("push", "-q", *sources, url, cwd=tmp_path).err == ""


def test_the_target_of_a_job_is_a_prefix(s3once, s3, bucket, tmp_path):
    """A job's keys do not depend on what its source is at the moment."""
    (tmp_path / "a.txt").write_text("a\n")
    (tmp_path / "j.conf").write_text(f"source = {tmp_path}/a.txt\ntarget = s3://{bucket}/new.txt\n")
    run = s3once("run", tmp_path / "j.conf")
    assert run.code == 0 and set(s3.objects(bucket)) == {"new.txt/a.txt"} and "note: " not in run.err, run


def test_files_in_s3_that_could_not_be_removed_are_in_s3(s3once, s3, bucket, tmp_path):
    """Only a removal that finds a file's object gone takes the file from the count."""
    for folder in ("tree", "moved"):
        (tmp_path / folder).mkdir()
        for name in "abc":
            (tmp_path / folder / name).write_text(folder)
    push = ["push", tmp_path / "tree", f"s3://{bucket}/p", "--move-to", tmp_path / "moved"]
    run = s3once(*push)
    assert run.code == 1 and f"\n3 files are verified to be in s3://{bucket}/p\n" in f"\n{run.out}", run
    assert "; due, but not moved 3" in run.out, run
    s3.client.delete_object(Bucket=bucket, Key="p/a")
    run = s3once(*push)
    assert run.code == 1 and f"\n2 of 3 files are verified to be in s3://{bucket}/p\n" in f"\n{run.out}", run
    assert "; already done 3; due, but not moved 3" in run.out, run
    summary = s3once(*push, "--json").events[-1]
    assert (summary["not_removed"], summary["unproven"]) == (3, 1), summary


@pytest.mark.parametrize("option", ["sse", "acl", "object-lock"])
def test_a_value_that_was_forgotten_is_named(answer, option):
    """The option has taken the SOURCE for its value."""
    said = answer("push", f"--{option}", "photos", "s3://bucket")
    assert said.startswith(f"push: no SOURCE is left: {option}: 'photos' is not {'a retention: ' if option == 'object-lock' else 'one of '}"), said
    assert answer("push", "s3://bucket") == "push: nothing to upload: name a SOURCE before s3://BUCKET"


def test_a_dry_run_of_what_looks_for_lost_objects(answer):
    said = answer("push", "-n", "--reupload", "photos", "s3://bucket")
    assert said.startswith("push: --dry-run and --reupload contradict each other: ") and "s3once verify shows which objects are gone" in said, said


@pytest.mark.parametrize("option", ["exclude", "region", "profile", "marks", "sse-kms-key-id", "log-file"])
def test_an_option_that_took_the_source_is_named(answer, option, tmp_path):
    """Any value is right for these, so that nothing is wrong with the one that they took."""
    assert answer("push", f"--{option}", tmp_path / "photos", "s3://bucket") == (
        f"push: no SOURCE is left: --{option} has taken '{tmp_path}/photos' for its value; name both before s3://BUCKET"
    )
    assert answer("push", f"--{option}", "none-such", "s3://bucket") == "push: nothing to upload: name a SOURCE before s3://BUCKET"
