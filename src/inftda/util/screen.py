"""Output for a terminal or a notebook: results as text or HTML, and progress.

Progress of a release shows the work of a level, which follows from the released level above, and
nothing else. Names of areas and columns come from files,
so control characters and HTML in them are escaped.
"""

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from importlib import import_module
from typing import Any, Final, NamedTuple, Self

#: Receives the name of the work (for a release, of a level), the work done and all work. For a
#: release these follow from released counts, so progress reveals nothing else.
Progress = Callable[[str, int, int], None]

#: Variable that asks for progress as lines, and the sign that such a line starts with.
TOLD: Final = "INFTDA_PROGRESS"
MARK: Final = "\x1e"
#: Seconds between two changes of the line.
_PAUSE: Final = 0.1
#: Width of the labels in front of sentences.
_LABEL: Final = 12


def printable(text: str) -> str:
    """Escape the control characters of a text."""
    return "".join(sign if sign.isprintable() else _code(ord(sign)) for sign in text)


def _code(number: int) -> str:
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


@contextmanager
def following(progress: Progress | bool | None) -> Iterator[Progress]:  # noqa: FBT001 - True is a word here
    """Provide a callback for progress; True shows it."""
    if progress is True:
        with metered("draws") as meter:
            yield meter
    else:
        yield progress or no_progress


def no_progress(what: str, done: int, total: int) -> None:
    """Show nothing."""


@contextmanager
def metered(unit: str, *, shown: bool = True) -> Iterator[Progress]:
    """Show progress in a line that is gone when the work is done; work is counted in some `unit`.

    On a terminal the line is on standard error, in a notebook it is below the cell, a program that
    sets `TOLD` gets lines of JSON, and elsewhere there is none.
    """
    write, due = _writer() if shown else None, 0.0
    if write is None:
        yield no_progress
        return
    show_line = write

    def show(what: str, done: int, total: int) -> None:
        nonlocal due
        if done == total or time.monotonic() >= due:
            due = time.monotonic() + _PAUSE
            # Work of size 0 is complete at once.
            show_line([printable(what), done if total else 1, max(total, 1), unit])

    try:
        yield show
    finally:
        show_line([])


def _writer() -> Callable[[Sequence[Any]], object] | None:
    """What replaces the line of progress, by its parts or by nothing; None if nobody sees one."""
    if _is_notebook():
        display: Any = import_module("IPython.display").display  # it is loaded already
        line = display({"text/plain": "reading"}, raw=True, display_id=True)
        return line and (lambda parts: line.update({"text/plain": _in_words(parts)}, raw=True))
    if TOLD in os.environ:
        return lambda parts: _write_error(f"{MARK}{json.dumps(parts)}\n" if parts else "")
    if not sys.stderr.isatty():
        return None
    width = shutil.get_terminal_size().columns - 1

    def show(text: str) -> None:
        # The cursor goes back, so that a message takes the place of the line.
        _write_error(f"\r{text[:width]:<{width}}\r")

    show("reading")
    return lambda parts: show(_in_words(parts))


def _in_words(parts: Sequence[Any]) -> str:
    return "{}: {:,} of {:,} {}".format(*parts) if parts else ""


def _write_error(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _is_notebook() -> bool:
    """Whether this runs in a kernel of Jupyter, which has loaded IPython itself."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"


#: Names of columns, with a format such as "{0.name}" or a function of each item.
Formats = Mapping[str, str | Callable[[Any], str]]


class Grid(NamedTuple):
    """A small table of text: names of its columns, and rows."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    @classmethod
    def of(cls, items: Iterable[Any], columns: Formats) -> Self:
        """One row for each item.

        >>> Grid.of([3, 1000], {"number": "{0:,}", "square": lambda n: f"{n * n:,}"}).rows
        [('3', '9'), ('1,000', '1,000,000')]
        """
        made = [one.format if isinstance(one, str) else one for one in columns.values()]
        return cls(tuple(columns), [tuple(make(item) for make in made) for item in items])

    def is_text(self, column: int) -> bool:
        """Whether a column is text: the first one, and notes, which have no name."""
        return column == 0 or not self.head[column]


#: A part of a result: a labelled sentence, a table, or a line of its own.
Part = tuple[str, str] | Grid | str


def as_text(parts: Iterable[Part]) -> str:
    """A result as a terminal shows it.

    >>> print(as_text([("Files", "out"), Grid(("level", "cells"), [("town", "9")])]))
    Files:      out
    <BLANKLINE>
    level  cells
    town       9
    <BLANKLINE>
    """
    lines: list[str] = []
    for part in parts:
        match part:
            case Grid():
                rows = ([*map(printable, row)] for row in part.rows)
                lines += ["", *aligned(part.head, rows, part.is_text), ""]
            case str():
                lines.append(printable(part))
            case label, words:
                lines.append(f"{label + ':':<{_LABEL}}{printable(words)}")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def aligned(
    head: Sequence[str], rows: Iterable[Sequence[str]], is_text: Callable[[int], bool]
) -> list[str]:
    """Lines of a table; columns of text are aligned to the left, all others to the right."""
    every = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*every, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if is_text(column) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in every
    ]


def card(title: str, parts: Iterable[Part]) -> str:
    """A result as a notebook shows it, in HTML.

    >>> card("2 < 3", [Grid(["level"], [["<b>"]])])
    '<div><strong>2 &lt; 3</strong><table><tr><th style="text-align:left">level</th></tr><tr><td style="text-align:left">&lt;b&gt;</td></tr></table></div>'
    """  # noqa: E501 - one line of output
    lines = [f"<strong>{escape(title)}</strong>"]
    for part in parts:
        match part:
            case Grid():
                rows = [_row("th", part, part.head), *(_row("td", part, row) for row in part.rows)]
                lines.append(f"<table>{''.join(rows)}</table>")
            case str():
                lines += [f"<div>{escape(part)}</div>"] if part else []
            case label, words:
                lines.append(f"<div><strong>{escape(label)}:</strong> {escape(words)}</div>")
    return f"<div>{''.join(lines)}</div>"


def _row(kind: str, grid: Grid, cells: Sequence[str]) -> str:
    shown = (
        f'<{kind} style="text-align:{"left" if grid.is_text(column) else "right"}">'
        f"{escape(cell)}</{kind}>"
        for column, cell in enumerate(cells)
    )
    return f"<tr>{''.join(shown)}</tr>"
