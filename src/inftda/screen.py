"""What people see: progress on a terminal or in a notebook, and objects as a notebook shows them.

Progress of a release tells the work of a level, which follows from the released level above:
nothing else. It is gone when the work is done. Names of areas and columns come from files, so no
text is obeyed: not by a terminal, not by a browser.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from html import escape
from importlib import import_module
from typing import Any, Final, Self

#: Called with what is being done (of a release, the name of a level), the work done and the work
#: in all. Of a release both follow from what is released, so that progress reveals nothing else.
Progress = Callable[[str, int, int], None]

#: Seconds between two changes of the line in a notebook.
_PAUSE: Final = 0.1
_RIGHT, _LEFT = "text-align:right", "text-align:left"


def printable(text: str) -> str:
    """A text without anything that a terminal would obey."""
    return "".join(sign if sign.isprintable() else _code(ord(sign)) for sign in text)


def _code(number: int) -> str:
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


@contextmanager
def following(progress: Progress | bool | None) -> Iterator[Progress]:  # noqa: FBT001 - True is a word here
    """What to call with the name of a level, work done and work in all: a bar if it is True."""
    if progress is True:
        with Meter("draws", shown=True) as meter:
            yield meter
    else:
        yield progress or no_progress


def no_progress(what: str, done: int, total: int) -> None:
    """Show nothing."""


class Meter:
    """Shows one bar; call it with what is being done, work done and work in all.

    On a terminal the bar is on standard error, in a notebook it is a line below the cell, and
    elsewhere there is none. Work is counted in some `unit`.
    """

    def __init__(self, unit: str, *, shown: bool) -> None:
        view = _notebook_line if _is_notebook() else _terminal_bar
        self._view = view(unit) if shown else nullcontext(no_progress)
        self._stack = ExitStack()
        self._show: Progress = no_progress

    def __enter__(self) -> Self:
        self._show = self._stack.enter_context(self._view)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Move the bar; work of which there is none is done at once."""
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


def _is_notebook() -> bool:
    """Whether this runs in a kernel of Jupyter, which has loaded IPython itself."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"


def card(
    title: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    notes: Iterable[tuple[str, str]] = (),
) -> str:
    """An object as a notebook shows it, in HTML: a heading, a small table and a few lines of text.

    The first column is text and all others are numbers; each note has a word in front of it.

    >>> card("2 < 3", ["level"], [["<b>"]])
    '<div><strong>2 &lt; 3</strong><table><tr><th style="text-align:left">level</th></tr><tr><td style="text-align:left">&lt;b&gt;</td></tr></table></div>'
    """  # noqa: E501 - one line of output
    lines = [_row("th", head), *(_row("td", row) for row in rows)]
    said = "".join(
        f"<div><strong>{escape(word)}</strong> {escape(text)}</div>" for word, text in notes
    )
    return f"<div><strong>{escape(title)}</strong><table>{''.join(lines)}</table>{said}</div>"


def _row(kind: str, cells: Sequence[str]) -> str:
    shown = (
        f'<{kind} style="{_RIGHT if column else _LEFT}">{escape(cell)}</{kind}>'
        for column, cell in enumerate(cells)
    )
    return f"<tr>{''.join(shown)}</tr>"
