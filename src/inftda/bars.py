"""Progress bars: on a terminal on standard error; by level also in a notebook, below the cell.

Those of a release show the work of a level, which follows from the released level above: nothing
else. They are gone when the work is done.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Self

from inftda.terminal import printable

if TYPE_CHECKING:
    from rich import progress as rich

#: Called with the name of a level, the work done and the work in all. Of a release both follow
#: from what is released, so that progress reveals nothing else.
Progress = Callable[[str, int, int], None]

#: Seconds between two pictures of the bars of a notebook.
_PAUSE: Final = 0.1


@contextmanager
def following(progress: Progress | bool | None) -> Iterator[Progress]:  # noqa: FBT001 - True is a word here
    """What to call with the name of a level, work done and work in all.

    Args:
        progress: what to call; True for bars, None or False for nothing.
    """
    if progress is True:
        with LevelProgress(shown=True) as bars:
            yield bars
    else:
        yield progress or no_progress


def no_progress(level: str, done: int, total: int) -> None:
    """Show nothing."""


class _Shown:
    """Bars from when the work begins until it is done; none if there is nothing to show them on."""

    def __init__(self, bars: "rich.Progress | _NotebookBars | None") -> None:
        self._bars = bars
        self._waiting: Any = None

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
            self._waiting = self._bars.add_task("reading", total=None)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()


class LevelProgress(_Shown):
    """Shows a bar for each level; call it with name, work done and work in all."""

    def __init__(self, *, shown: bool) -> None:
        super().__init__(_level_bars() if shown else None)
        self._tasks: dict[str, Any] = {}

    def __call__(self, level: str, done: int, total: int) -> None:
        """Move the bar of `level`."""
        if self._bars is None:
            return
        if self._waiting is not None:
            self._bars.remove_task(self._waiting)
            self._waiting = None
        if level not in self._tasks:
            self._tasks[level] = self._bars.add_task(printable(level), total=max(total, 1))
        # A level without draws is done at once.
        self._bars.update(self._tasks[level], completed=done if total else 1)


class Meter(_Shown):
    """Shows one bar on a terminal; call it with what is being done, work done and work in all.

    Args:
        unit: what the work is counted in; "bytes" is shown as a size.
        shown: whether to show anything.
    """

    _bars: "rich.Progress | None"

    def __init__(self, unit: str, *, shown: bool) -> None:
        super().__init__(_terminal_bars(unit, has_time=True) if shown else None)

    def __call__(self, what: str, done: int, total: int) -> None:
        """Move the bar."""
        if self._bars is not None and self._waiting is not None:
            self._bars.update(
                self._waiting, description=printable(what), completed=done, total=max(total, 1)
            )


def _level_bars() -> "rich.Progress | _NotebookBars | None":
    return _NotebookBars() if _is_notebook() else _terminal_bars("draws")


def _terminal_bars(unit: str, *, has_time: bool = False) -> "rich.Progress | None":
    from rich import progress as rich  # noqa: PLC0415 - only when something is shown
    from rich.console import Console  # noqa: PLC0415

    console = Console(stderr=True)
    if not console.is_terminal:  # a bar that is only disabled would still end with a blank line
        return None
    amount = (
        [rich.DownloadColumn()]
        if unit == "bytes"
        else [rich.MofNCompleteColumn(), rich.TextColumn(unit)]
    )
    return rich.Progress(
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(),
        *amount,
        *([rich.TimeElapsedColumn()] if has_time else []),
        console=console,
        transient=True,
    )


def _is_notebook() -> bool:
    """Whether this runs in a kernel of Jupyter, which has loaded IPython itself."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"


class _NotebookBars:
    """Bars in a notebook, in plain HTML: those of rich need a library of widgets."""

    def __init__(self) -> None:
        self._ipython: Any = import_module("IPython.display")  # it is loaded already
        self._bars: list[tuple[str, int, int | None]] = []
        self._shown: Any = None
        self._due = 0.0

    def start(self) -> None:
        self._shown = self._ipython.display(self._ipython.HTML(""), display_id=True)

    def stop(self) -> None:
        self._bars.clear()
        self._show()

    def add_task(self, name: str, total: int | None) -> int:
        self._bars.append((name, 0, total))
        self._show()
        return len(self._bars) - 1

    def remove_task(self, number: int) -> None:
        """Called for the bar that waits only, when there is no other."""
        del self._bars[number]

    def update(self, number: int, *, completed: int) -> None:
        name, _, total = self._bars[number]
        self._bars[number] = (name, completed, total)
        if completed == total or time.monotonic() >= self._due:
            self._show()

    def _show(self) -> None:
        self._due = time.monotonic() + _PAUSE
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td><progress max='{total}' value='{done}'></progress>"
            f"</td><td>{done:,} of {total:,} draws</td></tr>"
            if total is not None
            else f"<tr><td>{escape(name)}</td><td><progress></progress></td><td></td></tr>"
            for name, done, total in self._bars
        )
        if self._shown is not None:
            self._shown.update(self._ipython.HTML(f"<table>{rows}</table>" if rows else ""))
