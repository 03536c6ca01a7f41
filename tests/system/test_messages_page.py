"""Each message that docs/messages.md quotes is one that the program has: its fixed words stand in the strings of src/."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "messages.md"
LITERAL = re.compile(r'"((?:\\.|[^"\\\n])*)"')
CONVERSION = re.compile(r"%[-+ #0-9.*]*(?:hh|h|ll|l|z|j|t)?[a-zA-Z]")
# What stands for other words in the page: names in capital letters, a number, the system's own words.
VARIABLE = re.compile(
    r"\b(?:dynamodb:TABLE|BUCKET|DIR|ENDPOINT|FILE|HOST|ID|KEY|LIST|N|NAME|OWNER|PATH|PATTERN|PREFIX|REASON|REGION|SOURCE|TIME|30|Permission denied)\b|…"
)
FEWEST_WORDS = 2  # of a piece that one string has, if the message goes on with another string


def strings():
    """The program's strings, those that C joins joined, with a blank for what is filled in."""
    for path in sorted((ROOT / "src").rglob("*.[ch]")):
        # In one pass, since a string may have the beginning of a comment in it.
        text = re.sub(
            r"""("(?:\\.|[^"\\])*")|(/\*.*?\*/)|'(?:\\.|[^'\\])+'""",
            lambda found: found[1] or ("" if found[2] else "0"),
            path.read_text(),
            flags=re.S,
        )
        text = re.sub(r'"\s*\\?\n?\s*"', "", text)
        yield from (CONVERSION.sub("\0", literal.replace('\\"', '"')) for literal in LITERAL.findall(text))


STRINGS = "\n".join(strings())


def is_said(piece):
    return piece.strip(" .,:;()") in STRINGS


def is_made_of_strings(fragment):
    """Whether strings of the program make this up, one after the other."""
    words = fragment.split()
    reached = {0}
    for end in range(1, len(words) + 1):
        begins = (at for at in reached if end - at >= FEWEST_WORDS or (at == 0 and end == len(words)))
        if any(is_said(" ".join(words[at:end])) for at in begins):
            reached.add(end)
    return len(words) in reached


def quoted(page):
    return [message for line in page.splitlines() if line.startswith("**`") for message in re.findall(r"`([^`]+)`", line)]


def unknown(page):
    return [
        (message, fragment)
        for message in quoted(page)
        for fragment in VARIABLE.split(message)
        if re.search(r"[a-z]{2}", fragment) and not is_made_of_strings(fragment)
    ]


def test_each_message_of_the_page_is_in_the_program():
    page = PAGE.read_text()
    assert len(quoted(page)) > 30
    assert unknown(page) == []


def test_a_message_that_no_longer_exists_is_found():
    page = PAGE.read_text()
    for message in quoted(page):
        words = message.split()
        middle = len(words) // 2
        words[middle] = "unheard-of"
        assert unknown(f"**`{' '.join(words)}`**"), message
