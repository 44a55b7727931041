"""A progress bar by level, on standard error.

It shows the work of a level, which follows from the released level above: nothing else.
"""

from types import TracebackType
from typing import TYPE_CHECKING, Self

from inftda.cli.output import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class LevelProgress:
    """Shows a bar for each level; call it with name, work done and work in all."""

    def __init__(self, *, shown: bool) -> None:
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._waiting: TaskID | None = None
        if shown:
            self._bars = _make_bars()

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
            self._waiting = self._bars.add_task("reading", total=None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

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


def _make_bars() -> "Progress | None":
    from rich.console import Console  # noqa: PLC0415 - only when something is shown
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415

    console = Console(stderr=True)
    if not console.is_terminal:  # a bar that is only disabled would still end with a blank line
        return None
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("draws"),
        console=console,
        transient=True,
    )
