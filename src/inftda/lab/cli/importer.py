"""`inftda import`: official files as downloaded to flows and areas ready for a release."""

from pathlib import Path
from typing import Annotated

import typer

from inftda.bars import Meter
from inftda.cli import options, output

app = typer.Typer(
    help="Turn official files as downloaded into flows and areas.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@app.callback()
def _root() -> None:
    """Keeps `istat` a word of its own while it is the only one."""


@app.command("istat")
def istat_command(
    path: Annotated[Path, typer.Argument(metavar="ZIP", help="The file as downloaded.")],
    *,
    out: Annotated[Path, typer.Option(help="Folder to write; it must not be there yet.")],
    with_: Annotated[
        str | None,
        typer.Option(
            "--with",
            metavar="AXIS,AXIS,...",
            help="Further axes of the municipality matrix: sex, reason (exact numbers); "
            "transport, departure, duration (estimates, rounded).",
        ),
    ] = None,
    abroad: Annotated[
        str,
        typer.Option(
            metavar="outside|drop",
            help="Destinations abroad or unknown: kept as one area, or left out.",
        ),
    ] = "outside",
    quiet: options.Quiet = False,
) -> None:
    """ISTAT's commuting matrices of 2011: between census sections, or municipalities."""
    from inftda.lab.istat.importer import import_istat  # noqa: PLC0415 - help must be instant

    with Meter("bytes", shown=not quiet) as progress:
        made = import_istat(
            path,
            out,
            axes=options.names(with_) or (),
            abroad=abroad,  # type: ignore[arg-type] # checked there
            progress=progress,
        )
    if quiet:
        return
    outside = "left out" if made.is_dropping else "kept as the area 'outside'"
    output.say(f"Imported:  {made.n_flows:,} flows, {made.n_trips:,} trips, between {made.layout}")
    output.say(f"Areas:     {made.areas!r}")
    output.say(f"Abroad:    {made.n_outside:,} trips end abroad or nobody knows where; {outside}")
    output.say(
        "Note:      the areas are those that occur in this published file; for a confidential "
        "table take them from an official list"
    )
    output.say(f"Next:      {made.next_command}")
