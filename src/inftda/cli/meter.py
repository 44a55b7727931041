"""Bars for work that is not noise: on a terminal, on standard error, gone when done."""

from types import TracebackType
from typing import TYPE_CHECKING, Self

from inftda.terminal import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Meter:
    """Shows one bar; call it with what is being done, work done and work in all.

    Args:
        unit: what the work is counted in; "bytes" is shown as a size.
        shown: whether to show anything.
    """

    def __init__(self, unit: str, *, shown: bool) -> None:
        self._bar: Progress | None = _make_bar(unit) if shown else None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("reading", total=None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Move the bar."""
        if self._bar is not None and self._task is not None:
            self._bar.update(
                self._task, description=printable(what), completed=done, total=max(total, 1)
            )


def _make_bar(unit: str) -> "Progress | None":
    from rich.console import Console  # noqa: PLC0415 - only when something is shown
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    console = Console(stderr=True)
    if not console.is_terminal:  # a bar that is only disabled would still end with a blank line
        return None
    amount = [DownloadColumn()] if unit == "bytes" else [MofNCompleteColumn(), TextColumn(unit)]
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *amount,
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
