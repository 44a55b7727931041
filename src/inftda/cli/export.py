"""`inftda export`: a release or an estimate as files that other programs read."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from inftda.cli import options, output
from inftda.screen import Meter

if TYPE_CHECKING:
    from inftda.exports.export import Kind


def command(  # noqa: PLR0913 - one option for each thing a publisher may decide
    folder: Annotated[
        Path, typer.Argument(metavar="RELEASE", help="Folder of a release or an estimate.")
    ],
    *,
    to: Annotated[
        str,
        typer.Option(metavar="csv|flowmap|geopackage|geojson|omx|od", help="What kind of files."),
    ],
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    level: Annotated[
        list[str] | None,
        typer.Option(help="Only this level; may be repeated [default: all levels]."),
    ] = None,
    centroids: Annotated[
        Path | None,
        typer.Option(
            help="Locations of areas, if the release brings none: a column named after a level, "
            "lon, lat."
        ),
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option(help="Names of areas, likewise: columns level, code, name."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="What it is called.")] = None,
    licence: Annotated[
        str | None, typer.Option(metavar="NAME", help="Licence, for example CC-BY-4.0.")
    ] = None,
    intervals: Annotated[
        bool, typer.Option("--intervals/--no-intervals", help="Give each number an interval.")
    ] = True,
    runs: Annotated[int, typer.Option(min=1, help="Simulations for intervals, at most.")] = 20,
    seconds: Annotated[float, typer.Option(min=0.0, help="Time for these simulations.")] = 20.0,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an export that is there.")
    ] = False,
    keep_formulas: output.KeepFormulas = False,
    quiet: options.Quiet = False,
    config: options.Config = None,  # noqa: ARG001 - its callback sets the defaults
) -> None:
    """Write files for spreadsheets, maps, GIS, transport models or R."""
    from inftda.exports.export import export  # noqa: PLC0415 - help must be instant

    with Meter("%", shown=not quiet) as progress:
        export(
            folder,
            to=cast("Kind", to),
            out=out,
            levels=level,
            centroids=centroids,
            names=names,
            title=title,
            licence=licence,
            intervals=intervals,
            runs=runs,
            seconds=seconds,
            force=force,
            keep_formulas=keep_formulas,
            progress=progress,
        )
    if quiet:
        return
    for path in sorted(out.iterdir()):
        output.say(output.printable(f"Written:    {out / path.name}"))
