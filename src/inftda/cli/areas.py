"""`inftda areas`: public areas to count trips by, made or looked at."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inftda.cli import options, output, plan
from inftda.files import whole_file

if TYPE_CHECKING:
    from inftda.hierarchy import Hierarchy

app = typer.Typer(
    help="Public areas to count trips by: cells that cover an outline, and what areas cost.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

#: What a tree is tried with if nothing is said.
_EPSILON, _DELTA = 1.0, 1e-6
Outline = Annotated[
    Path,
    typer.Argument(
        help="Public polygons that the cells are to cover (GeoJSON, GeoPackage, shapefile): a "
        "city's border, never the points that were seen."
    ),
]
Out = Annotated[Path, typer.Option(help="CSV file to write.")]


@app.command("h3")
def h3_command(
    outline: Outline,
    *,
    resolutions: Annotated[
        str, typer.Option(metavar="N,N,...", help="Of each level, coarse to fine: 0 to 15.")
    ],
    out: Out,
    force: output.Force = False,
) -> None:
    """Hexagonal cells of H3 that cover an outline."""
    from inftda.areas.cells import h3_areas  # noqa: PLC0415 - help must be instant

    output.check_out(out, force=force, reads=outline)
    _write(h3_areas(outline, options.whole_numbers("--resolutions", resolutions)), outline, out)


@app.command("grid")
def grid_command(
    outline: Outline,
    *,
    sizes: Annotated[
        str,
        typer.Option(metavar="METRES,...", help="Side of the cells of each level, coarse to fine."),
    ],
    out: Out,
    force: output.Force = False,
) -> None:
    """Square cells that cover an outline."""
    from inftda.areas.cells import grid_areas  # noqa: PLC0415 - help must be instant

    output.check_out(out, force=force, reads=outline)
    _write(grid_areas(outline, options.whole_numbers("--sizes", sizes)), outline, out)


@app.command("show")
def show_command(  # noqa: PLR0913 - the budget of a release
    areas: Annotated[Path, typer.Argument(help="Areas, as a release takes them.")],
    *,
    levels: options.Levels = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Strength to try; goes with --delta [default: 1].")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Probability of failure [default: 0.000001].")
    ] = None,
    rho: options.Rho = None,
    neighbours: options.Neighbours = "substitute",
    trips: options.Trips = 1,
) -> None:
    """Levels of areas, how they branch, and the noise that trips between them would get."""
    from inftda.areas.reader import read_areas  # noqa: PLC0415 - help must be instant

    hierarchy = read_areas(areas, levels=options.levels_of(levels))
    output.say(_described(hierarchy))
    output.say()
    if rho is None:
        epsilon = _EPSILON if epsilon is None else epsilon
        delta = _DELTA if delta is None else delta
    plan.command(
        areas=hierarchy,  # type: ignore[arg-type] # whatever areas can be read from
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbours=neighbours,
        trips=trips,
    )


def _write(table: Any, outline: Path, out: Path) -> None:
    """Write the table, and say what it is."""
    import pyarrow.csv as pa_csv  # noqa: PLC0415 - help must be instant

    from inftda.areas.reader import read_areas  # noqa: PLC0415

    hierarchy = read_areas(table)
    with whole_file(out) as partial:
        pa_csv.write_csv(table, partial)
    levels = enumerate(hierarchy.level_names, start=1)
    sizes = ", ".join(f"{hierarchy.n_areas(level):,} {name}" for level, name in levels)
    output.say(f"Cells:      {sizes}, which cover {outline.name}")
    output.say("Public:     which cells there are follows from the outline, not from any trips")
    output.say(f"File:       {out}")
    output.say(f"Next:       inftda areas show {quote(str(out))}")


def _described(hierarchy: "Hierarchy") -> str:
    """Levels, numbers of areas, and how many of the next level each has."""
    import numpy as np  # noqa: PLC0415 - help must be instant

    head = ("level", "areas", "per parent", "at most", "named")
    rows = []
    for level, name in enumerate(hierarchy.level_names, start=1):
        inside = np.diff(hierarchy.child_offsets(level - 1))
        names = hierarchy.places.names.get(name)
        n_named = 0 if names is None else len(names) - names.null_count
        numbers = f"{inside.mean():,.1f}", f"{inside.max():,}", f"{n_named:,}"
        rows.append((name, f"{hierarchy.n_areas(level):,}", *numbers))
    lines = output.aligned(head, rows)
    places = hierarchy.places
    located = 0 if places.lon is None else int((~np.isnan(places.lon)).sum())
    outlined = 0 if places.outlines is None else len(places.outlines) - places.outlines.null_count
    lines.append(f"\nOf the finest areas {located:,} have a location and {outlined:,} an outline.")
    return "\n".join(lines)
