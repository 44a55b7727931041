"""Where an answer goes: to the screen, or to a file whose ending says how it is written."""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from inftda.errors import InftdaError
from inftda.files import whole_file
from inftda.screen import printable as printable  # noqa: PLC0414 - others look for it here

#: How a message names an option: as Python spells it.
_OPTION = re.compile(r"`(\w+)=([^`]*)`")


def say(text: str = "", *, err: bool = False) -> None:
    """Print lines, options as the command line spells them, and nothing a terminal would obey."""
    lines = _OPTION.sub(_spelled, text).split("\n")
    click.echo("\n".join(map(printable, lines)), err=err)


def _spelled(found: re.Match[str]) -> str:
    flag, value = f"--{found[1].strip('_').replace('_', '-')}", found[2].strip("'\"")
    if value in {"", "True"}:
        return flag
    return f"{flag} {'none' if value == 'None' else value}"


def as_json(data: Any) -> str:
    """JSON as people read it in one line, and nothing in it that a terminal would obey."""
    text = json.dumps(data, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(data).replace("\x7f", "\\u007f")


def kind_of(kinds: Sequence[str], given: str | None, out: Path | None) -> str:
    """The format given by --format, else by the ending of --out; on the screen the first one.

    Raises:
        InftdaError: there is no such format, they contradict each other, or nothing says it.
    """
    if given is not None and given not in kinds:
        raise InftdaError(f"--format must be one of {', '.join(kinds)}, got {given!r}")
    if out is None:
        return given or kinds[0]
    ending = out.suffix.lower().removeprefix(".")
    ended = ending if ending in kinds else None
    if given is not None and ended is not None and given != ended:
        raise InftdaError(
            f"--format {given} contradicts the ending of {str(out)!r}; leave one of them out"
        )
    kind = given or ended
    if kind is None:
        endings = ", ".join(f".{known}" for known in kinds if known != "table")
        raise InftdaError(
            f"the ending of {str(out)!r} does not say how to write it; give one of {endings}, "
            "or give --format"
        )
    return kind


def give(text: str, out: Path | None) -> None:
    """Print a text, or write it as a whole or not at all."""
    if out is None:
        # Data for a program stays as it is; to a terminal nothing goes that it would obey.
        shown = "\n".join(map(printable, text.split("\n"))) if sys.stdout.isatty() else text
        click.echo(shown, nl=False, color=True)  # or it would leave out what looks like a colour
        return
    with whole_file(out) as partial:
        partial.write_text(text, encoding="utf-8")


def aligned(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, ends_in_notes: bool = False
) -> list[str]:
    """Lines of a table, its first column to the left and all others to the right.

    Args:
        head: names of the columns.
        rows: of text.
        ends_in_notes: whether the last column is to the left as well.
    """
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    to_the_left = {0, len(head) - 1} if ends_in_notes else {0}
    return [
        "  ".join(
            cell.ljust(width) if column in to_the_left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, *rows)
    ]


def as_text(flows: Any) -> str:
    """Columns of an Arrow table side by side: codes to the left, numbers to the right."""
    columns = []
    for name in flows.column_names:
        values = flows.column(name).to_pylist()
        is_number = any(isinstance(value, int | float) for value in values) or name == "flow"
        cells = [printable(name), *map(_cell, values)]
        width = max(map(len, cells))
        columns.append([cell.rjust(width) if is_number else cell.ljust(width) for cell in cells])
    return "".join("  ".join(row).rstrip() + "\n" for row in zip(*columns, strict=True))


def _cell(value: str | float | None) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, str):
        return printable(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
