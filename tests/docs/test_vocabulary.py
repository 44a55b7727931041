"""One term for one thing: words that were replaced by a term of the field do not come back.

Checked is prose: comments, docstrings and messages of Python and of the page script, templates, and
documentation without its code. Names in code are not, among them former names of options:
`RENAMED` in `inftda.options` holds former names of parameters.
"""

import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: What is checked; one test for each.
PLACES = (
    *sorted(path.name for path in ROOT.glob("*.md")),
    "pyproject.toml",
    "mkdocs.yml",
    ".github",
    "benchmarks",
    "docs",
    "examples",
    "lab",
    "src",
    "tests",
)

#: Replaced words, as regular expressions without case, and what is written instead.
TERMS = {
    r"promis(?:e[sd]?|ing)": "guarantee",
    r"strengths?": "epsilon, or privacy budget",
    r"(?<!Zipf's\s)(?<!power\s)(?<!by\s)laws?(?! of large numbers)": "noise distribution",
    r"units? of (?:protection|privacy)|who is protected": "privacy unit",
    r"(?:what|which cells) (?:cannot|can not|could not) occur": "structural zeros",
    r"(?:across|off) the tree|both margins|totals both ways": "marginal totals; cross table",
    r"(?:further|additional) ax[ei]s": "additional dimension",
    r"prices|lean(?:s|ed|ing)": "dual variables, adjustment",
    r"doubt(?:s|ful)?": "effective noise scale, reliability",
    r"crews?": "thread pool",
    r"parcels?": "broadcast",
    r"strangers?": "unexpected files",
    r"(?:tell|tells|telling|told)(?: \w+){0,2} apart": "distinguish",
    r"from (?:which|what) size on|the size on that": "smallest usable count",
    r"in the right place": "common part of commuters",
    r"careful(?! not to)": "warning",
    r"small print": "technical details",
    r"says? nothing": "state what is printed or known",
    r"spend it once": "every release uses budget",
    r"a table every month|publish once": "recurring releases",
    r"what comes out": "output",
    r"called as": "named after",
}
#: A blank in a term may be the end of a line, with the mark of a comment on the next one.
PATTERNS = {
    re.compile(rf"\b(?:{term})\b".replace(" ", r"[\s#*]+"), re.IGNORECASE): new
    for term, new in TERMS.items()
}

#: Files or folders where a word may stand, the word, and the reason.
ALLOWED = (
    ("docs/explanation/glossary.md", None, "lists the words of other tools beside each term"),
    ("CHANGELOG.md", None, "names what was renamed"),
    ("tests/docs/test_vocabulary.py", None, "has the list"),
)

#: A text without a blank is a key, a name or a value, and not prose.
_KEY = re.compile(r"[\"'`]?[\w.:/#-]*[\"'`]?")
_SCRIPT = re.compile(r"/\*.*?\*/|'(?:\\.|[^'\\\n])*'|`[^`]*`", re.DOTALL)
_PAGE_CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]*`|\]\([^)]*\)", re.MULTILINE | re.DOTALL)
_PROSE = {
    tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING),
}  # fmt: skip


def blanked(pattern: re.Pattern[str], text: str) -> str:
    """A text without what matches, in lines of the same numbers."""
    return pattern.sub(lambda found: "\n" * found[0].count("\n"), text)


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Texts of a file that people read, each with the number of its first line."""
    if path.suffix == ".py":
        with path.open("rb") as file:
            for token in tokenize.tokenize(file.readline):
                if token.type in _PROSE and not _KEY.fullmatch(token.string):
                    yield token.start[0], token.string
        return
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".mjs":
        for found in _SCRIPT.finditer(text):
            if not _KEY.fullmatch(found[0]):
                yield text.count("\n", 0, found.start()) + 1, found[0]
    elif path.suffix == ".md" and "templates" not in path.parts:
        yield 1, blanked(_PAGE_CODE, text)
    else:
        yield 1, text


def retired(path: Path, name: str) -> Iterator[str]:
    """Replaced words in a file, each as a line for people."""
    for first, text in prose(path):
        for pattern, new in PATTERNS.items():
            for found in pattern.finditer(text):
                if not any(
                    name.startswith(place) and word in {None, found[0].lower()}
                    for place, word, _ in ALLOWED
                ):
                    line = first + text.count("\n", 0, found.start())
                    yield f"{name}:{line}: {found[0]!r}; write: {new}"


def files_of(place: str) -> list[Path]:
    """Files of a place with prose."""
    path = ROOT / place
    if path.is_file():
        return [path]
    suffixes = {".py", ".mjs", ".html", ".jinja", ".md", ".yaml", ".yml", ".ipynb", ".toml"}
    return sorted(one for one in path.rglob("*") if one.suffix in suffixes)


@pytest.mark.parametrize("place", PLACES)
def test_replaced_words_do_not_come_back(place):
    files = files_of(place)
    assert files
    found = [line for path in files for line in retired(path, path.relative_to(ROOT).as_posix())]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("a.py", '"""Keeps its\npromise."""\nx = {"across": "promise"}  # the law of it\n', [2, 3]),
        ("a.py", 'say(f"{n} trips off the tree")\n# across the\n# tree\n', [1]),
        ("a.mjs", "/* A\n further axis. */\nconst law = 'promise';\nsay('be careful');\n", [2, 4]),
        ("a.html", "<p>{{ n }}</p>\n<p>The small print</p>\n", [2]),
        (
            "a.md",
            "A [page](guides/promise.md)\n\n```text\nlaw\n```\n\nWhat comes out: `law`.\n",
            [7],
        ),
        ("a.md", "The price of a ticket by Zipf's law, impossible to tell; across areas.\n", []),
    ],
)
def test_words_are_found_in_prose_only(tmp_path, name, text, lines):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert [int(one.split(":")[1]) for one in sorted(retired(path, name))] == lines
