"""Commands that publish: if one fails, it is said whether something was published.

A command states of itself that it publishes, so that those of other packages can, too.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from functools import wraps
from pathlib import Path
from typing import Any, Final

import typer

from inftda.cli import output
from inftda.errors import InftdaError
from inftda.files import bring_back

_HAS_BEGUN: Final = ContextVar("has_begun", default=False)


def publishing(command: Callable[..., None]) -> Callable[..., None]:
    """A command that publishes, for `typer.Typer.command`."""

    @wraps(command)
    def begun(*arguments: Any, **options: Any) -> None:
        _HAS_BEGUN.set(True)
        command(*arguments, **options)

    return begun


def outcome(context: Context) -> str:
    """What else to say of a command that failed in this context."""
    return "; nothing was published" if context.get(_HAS_BEGUN) else ""


@contextmanager
def telling_what_is_published(out: Path) -> Iterator[None]:
    """What goes wrong when the release is in place must not be taken for a failed release.

    Args:
        out: folder of the release that is made meanwhile.
    """
    bring_back(out)
    before = {_identity(out), None}
    try:
        yield
    except InftdaError:  # it says what was wrong, before there was anything to publish
        raise
    except (KeyboardInterrupt, Exception) as problem:
        if _identity(out) in before:
            raise
        what = "interrupted" if isinstance(problem, KeyboardInterrupt) else type(problem).__name__
        output.say(
            f"error: {what} when the release in {str(out)!r} was complete and in place", err=True
        )
        raise typer.Exit(1) from None


def _identity(folder: Path) -> tuple[int, int] | None:
    """Identifies a folder, so that another put in its place is noticed; None if it is not there."""
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
