"""A short document: written once, read as Markdown and as HTML."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from inftda import __version__
from inftda.reports.markup import Html, document, join, table, tag, text

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")


@dataclass(frozen=True)
class Block:
    """A part of a document.

    Attributes:
        kind: "heading", "text", "list", "table" or "warning".
        lines: the text, one for each item of a list; the heading of each column of a table.
        rows: of a table.
        texts: how many columns of a table, from the first, are words.
    """

    kind: str
    lines: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...] = ()
    texts: int = 1

    def markdown(self) -> str:
        """As Markdown; nothing in the texts is taken for markup."""
        lines = [_plain(line) for line in self.lines]
        if self.kind == "heading":
            return f"## {lines[0]}\n"
        if self.kind == "warning":
            return f"> **{lines[0]}**\n"
        if self.kind == "list":
            return "".join(f"- {line}\n" for line in lines)
        if self.kind == "table":
            rows = [lines, ["---"] * len(lines), *[[_plain(c) for c in row] for row in self.rows]]
            return "".join(f"| {' | '.join(row)} |\n" for row in rows)
        return f"{lines[0]}\n"

    def html(self) -> Html:
        """As HTML."""
        if self.kind == "heading":
            return tag("h2", self.lines[0])
        if self.kind == "warning":
            return tag("p", self.lines[0], class_="warning", role="alert")
        if self.kind == "list":
            return tag("ul", *(tag("li", line) for line in self.lines))
        if self.kind == "table":
            return table(self.lines, self.rows, texts=self.texts)
        return tag("p", self.lines[0])


def heading(words: str) -> Block:
    """The title of a part."""
    return Block("heading", (words,))


def paragraph(words: str) -> Block:
    """Sentences."""
    return Block("text", (words,))


def warning(words: str) -> Block:
    """What must not be overlooked."""
    return Block("warning", (words,))


def listing(items: Sequence[str]) -> Block:
    """Items."""
    return Block("list", tuple(items))


def grid(head: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int = 1) -> Block:
    """A table whose first `texts` columns are words."""
    return Block("table", tuple(head), tuple(tuple(row) for row in rows), texts)


def as_markdown(title: str, blocks: Sequence[Block]) -> str:
    """The whole document."""
    parts = [f"# {_plain(title)}\n", *(block.markdown() for block in blocks), f"{_footer()}\n"]
    return "\n".join(parts)


def as_html(title: str, blocks: Sequence[Block]) -> str:
    """The whole document: one file that loads nothing from anywhere."""
    folder = files("inftda.dossiers").joinpath("assets")
    style = folder.joinpath("summary.css").read_text(encoding="utf-8")
    parts = {
        "title": text(title),
        "body": join([tag("h1", title), *(block.html() for block in blocks)]),
        "footer": text(_footer()),
    }
    return document(folder.joinpath("summary.html").read_text(encoding="utf-8"), parts, style)


def _footer() -> str:
    return f"Made with inftda {__version__} from the published release."


def _plain(words: str) -> str:
    """A text on one line in which Markdown finds nothing to obey."""
    return _SPECIAL.sub(r"\\\1", " ".join(words.split()))
