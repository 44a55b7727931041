"""Output for a terminal or a notebook: results as text or HTML, and progress.

Progress of a release shows the work of a level, which follows from the released level above, and
nothing else. The bar disappears when the work is done. Names of areas and columns come from files,
so control characters and HTML in them are escaped.
"""

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from html import escape
from importlib import import_module
from typing import Any, Final, NamedTuple, Self

#: Receives the name of the work (for a release, of a level), the work done and all work. For a
#: release these follow from released counts, so progress reveals nothing else.
Progress = Callable[[str, int, int], None]

#: Variable that asks for progress as lines, and the sign that such a line starts with.
TOLD: Final = "INFTDA_PROGRESS"
MARK: Final = "\x1e"
#: Seconds between two changes of the line in a notebook.
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
    """Provide a callback for progress; True stands for a progress bar."""
    if progress is True:
        with Meter("draws", shown=True) as meter:
            yield meter
    else:
        yield progress or no_progress


def no_progress(what: str, done: int, total: int) -> None:
    """Show nothing."""


class Meter:
    """A progress bar; call it with the name of the work, the work done and all work.

    On a terminal the bar is on standard error, in a notebook it is a line below the cell, a program
    that sets `TOLD` gets lines, and elsewhere there is none. Work is counted in some `unit`.
    """

    def __init__(self, unit: str, *, shown: bool) -> None:
        view = _lines if TOLD in os.environ else _terminal_bar
        view = _notebook_line if _is_notebook() else view
        self._view = view(unit) if shown else nullcontext(no_progress)
        self._stack = ExitStack()
        self._show: Progress = no_progress

    def __enter__(self) -> Self:
        self._show = self._stack.enter_context(self._view)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Move the bar; work of size 0 is complete at once."""
        self._show(printable(what), done if total else 1, max(total, 1))


@contextmanager
def _terminal_bar(unit: str) -> Iterator[Progress]:
    """A bar by rich, if standard error is a terminal."""
    from rich import progress as rich  # noqa: PLC0415 - only when something is shown
    from rich.console import Console  # noqa: PLC0415

    console = Console(stderr=True)
    if not console.is_terminal:  # a bar that is only disabled would still end with a blank line
        yield no_progress
        return
    columns = (
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TextColumn(unit),
        rich.TimeElapsedColumn(),
    )
    with rich.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading", total=None)
        yield lambda what, done, total: bar.update(
            task, description=what, completed=done, total=total
        )


@contextmanager
def _notebook_line(unit: str) -> Iterator[Progress]:
    """A line of plain text below the cell: bars of rich need a library of widgets."""
    display: Any = import_module("IPython.display").display  # it is loaded already
    line = display({"text/plain": "reading"}, raw=True, display_id=True)
    due = 0.0

    def show(what: str, done: int, total: int) -> None:
        nonlocal due
        if line is not None and (done == total or time.monotonic() >= due):
            due = time.monotonic() + _PAUSE
            line.update({"text/plain": f"{what}: {done:,} of {total:,} {unit}"}, raw=True)

    try:
        yield show
    finally:
        if line is not None:
            line.update({"text/plain": ""}, raw=True)


@contextmanager
def _lines(unit: str) -> Iterator[Progress]:
    """Lines on standard error for the program that started this one, not too many of them."""
    due = 0.0

    def show(what: str, done: int, total: int) -> None:
        nonlocal due
        if done == total or time.monotonic() >= due:
            due = time.monotonic() + _PAUSE
            sys.stderr.write(f"{MARK}{json.dumps([what, done, total, unit])}\n")
            sys.stderr.flush()

    yield show


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
