"""`inftda plan`, `preview` and `areas`: decisions before anything confidential is read."""

import json as json_text
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Final

import pyarrow.csv as pa_csv

from inftda.areas.grids import grid_areas, h3_areas
from inftda.areas.reader import read_areas
from inftda.cli import output
from inftda.cli.command import Call, command
from inftda.options import Force, Json, Option, Quiet, whole_numbers
from inftda.planning import plan as outlook
from inftda.planning import preview as previews
from inftda.planning.accuracy import NOTICE
from inftda.planning.findings import WHAT_IS_USABLE, Preview
from inftda.util.files import check_file, whole_file
from inftda.util.screen import Formats, Grid, Part

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
#: Columns of the tables of a preview, with their formats.
_LEVELS: Final[Formats] = {
    "level": "{0.name}",
    "guaranteed": "{0.guaranteed:,}",
    "95% within": "{0.p95:,}",
    "common part": "{0.common_part:.4f}",
    "false": "{0.false_share:.1%}",
    "lost": "{0.lost_share:.1%}",
    "usable from": "{0.usable_from}",
}
_TOTALS: Final[Formats] = {
    "totals of": "{0.axis} {0.level}",
    "areas": "{0.n_areas:,}",
    "95% within": "{0.p95:,}",
    "mean error": "{0.mean_error:,.1f}",
}


@command(outlook.plan)
def plan(call: Call, *, json: Json = False) -> None:
    """State guarantee and errors of a release to come. Reads no data and uses no budget."""
    made = call()
    if json:
        output.say(json_text.dumps(made.to_dict()))
    else:
        output.show(made.shown())


@command(previews.preview)
def preview(call: Call, *, quiet: Quiet = False, json: Json = False) -> None:
    """Simulate releases of a public table. Reads no confidential data and uses no budget."""
    tried = call.with_progress("releases", quiet=quiet, json=json)
    if json:
        output.say(output.as_json(tried.to_dict()))
    elif not quiet:
        page = [("Page", str(call.given["html"]))] if "html" in call.given else []
        output.show([*_preview_parts(tried), *page])


def _preview_parts(preview: Preview) -> Iterator[Part]:
    """Guarantee, result, levels and totals of every setting; technical details last."""
    if preview.is_confidential:
        yield from (NOTICE, "")
    counted = f"{preview.n_trips:,} trips, {preview.n_flows:,} flows"
    yield "Stand-in", f"{preview.stand_in}; {counted}"
    runs = f"{preview.runs} release{'s' if preview.runs > 1 else ''}"
    yield "Simulated", f"{runs} of each setting; no budget is used"
    for one in preview.settings:
        yield from (
            "",
            ("Setting", one.setting.describe()),
            ("Guarantee", one.guarantee),
            ("Result", one.verdict),
            Grid.of(one.levels, _LEVELS),
            Grid.of(one.totals, _TOTALS),
        )
    yield from (
        "guaranteed: with probability 95%, no error is larger, whatever the table",
        "95% within: 95% of the published numbers have at most this error",
        "false: published flows that are truly zero; lost: true flows that are not published",
        WHAT_IS_USABLE,
        "Guaranteed errors hold for every table, all other figures for the stand-in only.",
        "",
        "Technical details",
    )
    for one in preview.settings:
        yield "Setting", one.setting.describe()
        yield "Accounting", one.accounting
        yield "Attacker", one.risk.describe()


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
