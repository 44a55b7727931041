"""`inftda plan`, `preview` and `areas`: decisions before anything confidential is read."""

from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import pyarrow.csv as pa_csv

from inftda.areas.grids import grid_areas, h3_areas
from inftda.areas.reader import read_areas
from inftda.cli import output
from inftda.cli.command import Call, command
from inftda.options import Force, Json, Option, Quiet, whole_numbers
from inftda.planning import plan as outlook
from inftda.planning import preview as previews
from inftda.util.files import check_file, whole_file

_Outline = Annotated[
    Path,
    Option(
        "Public polygons that the cells are to cover (GeoJSON, GeoPackage, shapefile): a city's "
        "border, never the points of the table.",
        metavar="OUTLINE",
        parse=Path,
        is_argument=True,
    ),
]
_Out = Annotated[Path, Option("CSV file to write.", "FILE", Path)]


@command(outlook.plan)
def plan(call: Call, *, json: Json = False) -> None:
    """State guarantee and errors of a release to come. Reads no data and uses no budget."""
    made = call()
    output.result(made, made.shown(), json=json)


@command(previews.preview)
def preview(call: Call, *, quiet: Quiet = False, json: Json = False) -> None:
    """Simulate releases of a public table. Reads no confidential data and uses no budget."""
    tried = call.with_progress("releases", quiet=quiet, json=json)
    page = [("Page", str(call.given["html"]))] if "html" in call.given else []
    output.result(tried, [*tried.shown(), *page], quiet=quiet, json=json)


@command()
def h3(
    outline: _Outline,
    *,
    resolutions: Annotated[
        list[int], Option("Of each level, coarse to fine: 0 to 15.", "N,N,...", whole_numbers)
    ],
    out: _Out,
    force: Force = False,
) -> None:
    """Hexagonal cells of H3 that cover an outline."""
    check_file(out, force=force, reads=(outline,))
    _write_cells(h3_areas(outline, resolutions), outline, out)


@command()
def grid(
    outline: _Outline,
    *,
    sizes: Annotated[
        list[int],
        Option("Side of the cells of each level, coarse to fine.", "METRES,...", whole_numbers),
    ],
    out: _Out,
    force: Force = False,
) -> None:
    """Square cells that cover an outline."""
    check_file(out, force=force, reads=(outline,))
    _write_cells(grid_areas(outline, sizes), outline, out)


def _write_cells(table: Any, outline: Path, out: Path) -> None:
    """Write the table, and print its sizes and the next command."""
    hierarchy = read_areas(table)
    with whole_file(out) as partial:
        pa_csv.write_csv(table, partial)
    levels = enumerate(hierarchy.level_names, start=1)
    sizes = ", ".join(f"{hierarchy.n_areas(level):,} {name}" for level, name in levels)
    output.show([
        ("Cells", f"{sizes}, which cover {outline.name}"),
        ("Public", "which cells there are follows from the outline, not from any trips"),
        ("File", str(out)),
        ("Next", f"inftda plan --areas {quote(str(out))} --epsilon 1 --delta 1e-6"),
    ])  # fmt: skip
