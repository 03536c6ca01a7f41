"""Words that hands type: those of other tools, typing errors, a target that looks like a key. Each has an answer, and none leads to a loss."""

import re

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
            sentence = sentence.replace(f"'{word}'", "")
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
