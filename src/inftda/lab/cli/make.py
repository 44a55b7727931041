"""`inftda make`: data sets to try things out with, none of them anybody's data."""

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inftda.bars import Meter
from inftda.cli import options, output
from inftda.errors import InftdaError
from inftda.files import check_unpublished, whole_file

if TYPE_CHECKING:
    from inftda.lab.generators.country import Country

app = typer.Typer(
    help="Make data sets to try things out with.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

#: Folder for the files; they are also what many people call their own.
FLOWS, AREAS = "flows.parquet", "areas.csv"
Out = Annotated[Path, typer.Option(help=f"Folder for {FLOWS} and {AREAS}, which are not replaced.")]
Seed = Annotated[int, typer.Option(help="Same seed, same data.")]


@app.command("country")
def country_command(  # noqa: PLR0913 - a country has many sides
    *,
    out: Out,
    sizes: Annotated[
        str, typer.Option(metavar="N,N,...", help="Number of areas of each level, coarse to fine.")
    ] = "5,25,300",
    areas: Annotated[
        Path | None, typer.Option(help="Areas that exist already, instead of --sizes.")
    ] = None,
    trips: Annotated[
        int | None, typer.Option(help="Number of trips [default: residents given, else 250000].")
    ] = None,
    margins: Annotated[
        Path | None,
        typer.Option(
            help="Table of finest code, residents, jobs: trips that start and end there, kept "
            "exactly if they are whole numbers that sum up to --trips."
        ),
    ] = None,
    seed: Seed = 1,
    quiet: options.Quiet = False,
) -> None:
    """A country: a gravity model with given or made-up residents and jobs."""
    from inftda.hierarchy import Hierarchy  # noqa: PLC0415
    from inftda.lab.generators.country import make_country  # noqa: PLC0415 - help must be instant

    _check_free(out)
    given = None if areas is None else Hierarchy.read(areas)
    if margins is not None and given is None:
        raise InftdaError("--margins need --areas: they are given by the codes of areas")
    residents, jobs = (None, None) if margins is None else _read_margins(margins, given)
    with Meter("trips", shown=not quiet) as progress:
        made = make_country(
            options.whole_numbers("--sizes", sizes),
            trips,
            seed=seed,
            areas=given,
            residents=residents,
            jobs=jobs,
            progress=progress,
        )
    _write(made, out, quiet=quiet)


@app.command("synthetic")
def synthetic_command(  # noqa: PLR0913 - what a data set is made by
    name: Annotated[
        str | None,
        typer.Argument(help="binary or random, _, complete, dense or sparse: binary_sparse."),
    ] = None,
    *,
    out: Out,
    partition: Annotated[
        str | None, typer.Option(metavar="binary|random", help="Instead of a name.")
    ] = None,
    share: Annotated[float, typer.Option(help="Share of the pairs with trips.")] = 0.01,
    levels: Annotated[int | None, typer.Option(help="Number of levels [default: 8, 4].")] = None,
    mean_flow: Annotated[float, typer.Option(help="Mean trips of such a pair.")] = 20.0,
    seed: Seed = 1,
    quiet: options.Quiet = False,
) -> None:
    """One of the paper's six synthetic data sets, or one like it of any size."""
    from inftda.lab.generators.synthetic import (  # noqa: PLC0415 - help must be instant
        Synthetic,
        make_synthetic,
    )

    _check_free(out)
    if (name is None) == (partition is None):
        raise InftdaError("give either a name such as binary_sparse or --partition")
    kind = name or Synthetic(partition, share, levels, mean_flow)  # type: ignore[arg-type] # checked there
    with Meter("pairs", shown=not quiet) as progress:
        made = make_synthetic(kind, seed=seed, progress=progress)
    _write(made, out, quiet=quiet)


def _read_margins(path: Path, areas: Any) -> tuple[Any, Any]:
    """Residents and jobs of every finest area, in the order of the areas."""
    from inftda.previews.public_totals import read_area_numbers  # noqa: PLC0415 - instant help

    names = ("residents", "jobs")
    found = read_area_numbers(path, areas, names, what="margins table")
    return found[names[0]], found[names[1]]


def check_folder(out: Path) -> None:
    """Refuse a folder that cannot be written to or is a release.

    Raises:
        InftdaError: give another one.
    """
    if out.exists() and not out.is_dir():
        raise InftdaError(f"{str(out)!r} is not a folder; give another --out")
    check_unpublished(out)


def _check_free(out: Path) -> None:
    """Refuse a folder that has one of the files already."""
    check_folder(out)
    for path in (out / FLOWS, out / AREAS):
        if os.path.lexists(path):
            raise InftdaError(
                f"{str(path)!r} exists already; it is not replaced, give another --out or move it"
            )


def write_country(made: "Country", out: Path) -> None:
    """Write both files or none."""
    import pyarrow.csv as pa_csv  # noqa: PLC0415 - help must be instant
    import pyarrow.parquet as pq  # noqa: PLC0415

    out.mkdir(parents=True, exist_ok=True)
    with whole_file(out / FLOWS) as flows, whole_file(out / AREAS) as areas:
        pq.write_table(made.flows(), flows, compression="zstd")
        pa_csv.write_csv(made.areas.to_table(), areas)


def _write(made: "Country", out: Path, *, quiet: bool) -> None:
    write_country(made, out)
    if quiet:
        return
    flows, areas = (shlex.quote(str(out / name)) for name in (FLOWS, AREAS))
    output.say(f"Made:  {len(made.count):,} flows, {int(made.count.sum()):,} trips in all")
    output.say(f"Areas: {made.areas!r}")
    output.say(
        f"Next:  inftda release {flows} --areas {areas} --epsilon 1 --delta 1e-8 --out RELEASE"
    )
