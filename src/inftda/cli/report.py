"""`inftda report`: a page that anyone can open."""

from pathlib import Path
from typing import Annotated

import typer

from inftda.cli import options, output
from inftda.screen import Meter


def command(  # noqa: PLR0913 - one option for each file that helps people to read it
    folder: Annotated[Path, typer.Argument(metavar="RELEASE", help="Folder of a release.")],
    *,
    out: Annotated[Path, typer.Option(help="HTML file to write.")],
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    names: Annotated[
        Path | None, typer.Option(help="Names of areas: columns level, code, name.")
    ] = None,
    centroids: Annotated[
        Path | None,
        typer.Option(help="Locations of areas, for a map: a column named after a level, lon, lat."),
    ] = None,
    geojson: Annotated[
        Path | None, typer.Option(help="Outlines of areas, for a map, in degrees.")
    ] = None,
    estimate: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Estimates made from this release (inftda estimate), to switch to.",
        ),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Simulations for typical errors, at most.")] = 20,
    seconds: Annotated[float, typer.Option(min=0.0, help="Time for these simulations.")] = 20.0,
    force: output.Force = False,
    keep_formulas: output.KeepFormulas = False,
    quiet: options.Quiet = False,
    config: options.Config = None,  # noqa: ARG001 - its callback sets the defaults
) -> None:
    """Write a page with the guarantee, the errors to expect, and the flows to explore."""
    from inftda.publication.release import open_release  # noqa: PLC0415
    from inftda.publication.trust import MADE_FROM_NOT_PRIVATE  # noqa: PLC0415 - instant help
    from inftda.words import report  # noqa: PLC0415

    release = open_release(folder)
    with Meter("%", shown=not quiet) as progress:
        report(
            release,
            out,
            names=names,
            centroids=centroids,
            geojson=geojson,
            estimate=estimate,
            title=title,
            runs=runs,
            seconds=seconds,
            force=force,
            keep_formulas=keep_formulas,
            progress=progress,
        )
    if quiet:
        return
    size = out.stat().st_size / 1e6
    output.say(f"Page:       {out} ({size:.1f} MB, needs no network)")
    if not release.manifest.private:
        output.say(MADE_FROM_NOT_PRIVATE, err=True)
