"""Where an answer goes: to the screen, or to a file whose ending says how it is written."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from inftda.errors import InftdaError
from inftda.scratch import whole_file

Kind = TypeVar("Kind", bound=StrEnum)

Force = Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")]


def kind_of(kinds: type[Kind], given: Kind | None, out: Path | None) -> Kind:
    """The format given by --format, else by the ending of --out; on the screen the first one.

    Raises:
        InftdaError: they contradict each other, or nothing says it.
    """
    if out is None:
        return next(iter(kinds)) if given is None else given
    ending = out.suffix.lower().removeprefix(".")
    ended = kinds(ending) if ending in set(kinds) else None
    if given is not None and ended is not None and given is not ended:
        raise InftdaError(
            f"--format {given} contradicts the ending of {str(out)!r}; leave one of them out"
        )
    kind = given or ended
    if kind is None:
        endings = ", ".join(f".{known}" for known in kinds if known != "table")
        raise InftdaError(
            f"the ending of {str(out)!r} does not say how to write it; give one of {endings}, "
            "or say --format"
        )
    return kind


def check_out(out: Path | None, *, force: bool, reads: Path | None = None) -> None:
    """Complain about the file to write, if there is to be one, before any work is done."""
    from inftda.publication.target import check_target  # noqa: PLC0415 - help must be instant

    if out is not None:
        check_target(out, force=force, reads=(reads,))


def give(text: str, out: Path | None) -> None:
    """Print a text, or write it as a whole or not at all."""
    if out is None:
        typer.echo(text, nl=False)
        return
    with whole_file(out) as partial:
        partial.write_text(text, encoding="utf-8")
