"""`inftda estimate`: the best guess at every flow, from the measurements of a release."""

from pathlib import Path
from typing import Annotated

import typer

from inftda.cli import options, output


def command(  # noqa: PLR0913 - one option for each thing a reader may decide
    folder: Annotated[
        Path, typer.Argument(metavar="RELEASE", help="Folder of a release with measurements.")
    ],
    *,
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    centroids: Annotated[
        Path | None,
        typer.Option(
            help="Locations of areas, for distances: a column named after a level, lon, lat."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides which numbers are rounded up.")] = 0,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads [default: all cores].")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an estimate that is there.")
    ] = False,
    quiet: options.Quiet = False,
    config: options.Config = None,  # noqa: ARG001 - its callback sets the defaults
) -> None:
    """Estimate all flows of a release: model-based, closer on average, not guaranteed."""
    from inftda.estimates import estimate  # noqa: PLC0415 - help must be instant
    from inftda.publication.trust import MADE_FROM_NOT_PRIVATE  # noqa: PLC0415

    made = estimate(folder, centroids=centroids, out=out, force=force, seed=seed, threads=threads)
    if quiet:
        return
    manifest = made.manifest
    distances = "areas, same area, distance" if manifest.model.locations else "areas, same area"
    output.say(f"Estimate:   {out}")
    output.say(f"Flows:      {manifest.n_rows:,} of at least 1, {manifest.total:,} trips")
    output.say(f"Model:      shares by {distances}; {len(manifest.model.levels)} levels")
    output.say("Use it for: patterns and sums of flows. It is model-based: not guaranteed, and")
    output.say("            not a list of existing flows; the guaranteed table, with intervals")
    output.say("            for totals that were measured, is the release.")
    if not manifest.private:
        output.say(MADE_FROM_NOT_PRIVATE, err=True)
