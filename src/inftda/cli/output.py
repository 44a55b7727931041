"""Print results and messages, without control characters."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from inftda.arguments import spelled
from inftda.util.files import whole_file
from inftda.util.screen import Part, aligned, printable
from inftda.util.screen import as_text as text_of


def say(text: str = "", *, err: bool = False) -> None:
    """Print lines with options as the command line spells them, without control characters."""
    lines = spelled(text).split("\n")
    click.echo("\n".join(map(printable, lines)), err=err)


def show(parts: Iterable[Part], *, err: bool = False) -> None:
    """Print a result."""
    say(text_of(parts), err=err)


def show_json(data: Any) -> None:
    """Print a result as JSON, on one line."""
    say(as_json(data))


def result(made: Any, parts: Iterable[Part], *, quiet: bool = False, json: bool = False) -> None:
    """Print a result: as JSON of its `to_dict`, as text, or not at all."""
    if json:
        show_json(made.to_dict())
    elif not quiet:
        show(parts)


def as_json(data: Any) -> str:
    """Format JSON on one line, without control characters."""
    text = json.dumps(data, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(data).replace("\x7f", "\\u007f")


def give(text: str, out: Path | None) -> None:
    """Print a text, or write it as a whole or not at all."""
    if out is None:
        # A program gets the data unchanged; a terminal gets no control characters.
        shown = "\n".join(map(printable, text.split("\n"))) if sys.stdout.isatty() else text
        click.echo(shown, nl=False, color=True)  # or it would leave out what looks like a colour
        return
    with whole_file(out) as partial:
        partial.write_text(text, encoding="utf-8")


def as_text(flows: Any) -> str:
    """Columns of an Arrow table side by side: codes to the left, numbers to the right."""
    columns = [flows.column(name).to_pylist() for name in flows.column_names]
    is_number = [
        name == "flow" or any(isinstance(value, int | float) for value in values)
        for name, values in zip(flows.column_names, columns, strict=True)
    ]
    head = [*map(printable, flows.column_names)]
    rows = zip(*(map(_cell, values) for values in columns), strict=True)
    return "".join(
        f"{line}\n" for line in aligned(head, rows, lambda column: not is_number[column])
    )


def _cell(value: str | float | None) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, str):
        return printable(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
