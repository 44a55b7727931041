"""`inftda plan`, `preview` and `areas`: what is decided before anything confidential is read."""

import json as json_text
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import numpy as np
import pyarrow.csv as pa_csv

from inftda.areas.cells import grid_areas, h3_areas
from inftda.areas.reader import read_areas
from inftda.cli import output
from inftda.cli.command import Call, Force, Json, Quiet, command
from inftda.evaluation import outlook
from inftda.evaluation.evaluate import NOTICE
from inftda.evaluation.outlook import Outlook, held
from inftda.files import check_file, whole_file
from inftda.hierarchy import Hierarchy
from inftda.options import Delta, Epsilon, Group, Levels, Option, Rho, whole_numbers
from inftda.previews import preview as previews
from inftda.previews.findings import WHAT_IS_USABLE, Preview, SettingPreview
from inftda.privacy.plan import Plan
from inftda.privacy.unit import UNIT, Unit
from inftda.publication.trust import describe_cross_totals, planned_totals
from inftda.tree import Tree

#: What areas are tried with if nothing is said.
_EPSILON, _DELTA = 1.0, 1e-6
_Outline = Annotated[
    Path,
    Option(
        "Public polygons that the cells are to cover (GeoJSON, GeoPackage, shapefile): a city's "
        "border, never the points that were seen.",
        metavar="OUTLINE",
        is_argument=True,
    ),
]
_Out = Annotated[Path, Option("CSV file to write.", metavar="FILE")]


@command(outlook.plan)
def plan(call: Call, *, json: Json = False) -> None:
    """Show the noise and the guaranteed error of each level. Needs no data, spends nothing."""
    _show_plan(call(), json=json)


def _show_plan(made: Outlook, *, json: bool = False) -> None:
    tree, planned, errors = made.tree, made.plan, made.errors
    if json:
        facts = {
            "risk": made.risk.to_dict(),
            "wanted": made.wanted(),
            "warnings": made.warnings(),
        }
        output.say(json_text.dumps(_as_object(tree, planned, errors) | facts))
        return
    output.say(f"Protected:  {planned.unit.describe()}")
    output.say(f"Guarantee:  {planned.describe()}")
    output.say(f"Noise:      {planned.describe_noise()}")
    output.say(f"Risk:       {made.risk.describe()}")
    for words in made.wanted():
        output.say(f"Wanted:     {words}")
    for words in made.warnings():
        output.say(f"Careful:    {words}")
    output.say()
    head = ("level", "possible cells", "sigma", "max error", "")
    rows = _rows(tree, planned, errors, made.total)
    output.say("\n".join(output.aligned(head, rows, ends_in_notes=True)))
    if words := _across(tree, planned):
        output.say(f"\n{words}")
    output.say(f"\nWith probability {held(made.beta)} no cell is further off than stated.")
    if made.total is not None:
        output.say(
            "Levels are judged by their mean flow: trips that keep to few pairs do better. "
            "A release judges again, by what it publishes."
        )


def _as_object(shape: Tree, plan: Plan, errors: Mapping[int, int]) -> dict[str, Any]:
    described = plan.to_dict()
    for level in described["levels"]:
        level["max_error"] = errors[level["index"]]
    widths = _half_widths(shape, plan)
    for table in described.get("tables", []):
        table["half_width"] = widths.get(tuple(table["depths"]))
    return described


def _half_widths(shape: Tree, plan: Plan) -> dict[tuple[int, ...], int]:
    """How far measured totals are off at most, with 95 % probability."""
    return {table.depths: noise.half_width() for table, noise in planned_totals(shape, plan)}


def _across(shape: Tree, plan: Plan) -> str:
    """What is measured across the tree, or why nothing is."""
    words = describe_cross_totals(shape, plan)
    if not words:
        return ""
    words = f"Across:     {words}"
    if not plan.tables:
        return words
    widths = _half_widths(shape, plan)
    head = ("table across", "cells", "sigma", "totals within")
    rows = []
    for table in plan.tables:
        width = widths.get(table.depths)
        shown = "" if width is None else f"\N{PLUS-MINUS SIGN}{width:,}"
        rows.append((table.name, f"{table.cells:,}", f"{table.sigma:,.2f}", shown))
    return "\n".join([words, "", *output.aligned(head, rows)])


def _rows(
    shape: Tree, plan: Plan, errors: Mapping[int, int], total: int | None
) -> list[tuple[str, ...]]:
    noise = {level.index: level for level in plan.levels}
    rows: list[tuple[str, ...]] = []
    for level in shape.levels:
        if level.index not in errors:
            continue
        measured = noise.get(level.index)
        sigma = measured.sigma if measured else 0.0
        note = "" if total is None else _lost_in_noise(total, level.n_nodes, sigma)
        if measured is None:
            note = "public" if level.index == 0 else "splits nothing, costs nothing"
        shown = f"{sigma:,.2f}" if measured else "-"
        rows.append((level.name, f"{level.n_nodes:,}", shown, f"{errors[level.index]:,}", note))
    return rows


def _lost_in_noise(total: int, cells: int, sigma: float) -> str:
    """What the mean flow of a level tells of it."""
    mean = total / cells
    return "" if mean >= sigma else f"noise exceeds the mean flow of {mean:.3g}"


@command(previews.preview)
def preview(call: Call, *, quiet: Quiet = False, json: Json = False) -> None:
    """Try settings out on something public. Spends nothing, reads nothing confidential."""
    tried = call.with_progress("releases", shown=not (quiet or json))
    if json:
        output.say(output.as_json(tried.to_dict()))
    elif not quiet:
        output.say(_preview_text(tried))
        if "html" in call.given:
            output.say(f"\nPage:       {call.given['html']}")


def _preview_text(preview: Preview) -> str:
    """Everything that a committee looks at first."""
    marked = [NOTICE, ""] if preview.is_confidential else []
    lines = [
        *marked,
        f"Stand-in:   {preview.stand_in}; {preview.n_trips:,} trips, {preview.n_flows:,} flows",
        f"Simulated:  each setting {preview.runs} times; nothing is spent",
    ]
    for one in preview.settings:
        lines += ["", *_setting(one, preview.tolerance)]
    lines += [
        "",
        "guaranteed: no number will be further off, whatever the table, with probability 95%",
        "95% within: of the published numbers",
        "false: published, but zero in truth; lost: true, but not published",
        WHAT_IS_USABLE,
        "All but what is guaranteed is true of the stand-in only.",
    ]
    return "\n".join(lines)


def _setting(one: SettingPreview, tolerance: float) -> list[str]:
    head = ("level", "guaranteed", "95% within", "common part", "false", "lost", "usable from")
    rows = [
        (
            level.name,
            f"{level.guaranteed:,}",
            f"{level.typical.overall.p95:,}",
            f"{level.common_part:.4f}",
            f"{level.false_share:.1%}",
            f"{level.lost_share:.1%}",
            level.usable_from,
        )
        for level in one.levels
    ]
    sums = [
        (
            f"{total.axis} {total.level}",
            f"{total.n_areas:,}",
            f"{total.p95:,}",
            f"{total.mean_error:,.1f}",
        )
        for total in one.totals
    ]
    return [
        f"Setting:    {one.setting.describe()}",
        f"Guarantee:  {one.promise}",
        f"Risk:       {one.risk.describe()}",
        f"In words:   {one.verdict(tolerance)}",
        "",
        *output.aligned(head, rows),
        "",
        *output.aligned(("totals of", "areas", "95% within", "mean error"), sums),
    ]


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
    check_file(Path(out), force=force, reads=(Path(outline),))
    _write_cells(h3_areas(outline, resolutions), Path(outline), Path(out))


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
    check_file(Path(out), force=force, reads=(Path(outline),))
    _write_cells(grid_areas(outline, sizes), Path(outline), Path(out))


@command(name="show")
def show_areas(  # noqa: PLR0913 - the budget of a release
    areas: Annotated[
        Path, Option("Areas, as a release takes them.", metavar="AREAS", is_argument=True)
    ],
    *,
    levels: Levels = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    unit: Annotated[Unit, Group(Unit)] = UNIT,
) -> None:
    """Levels of areas, how they branch, and the noise that trips between them would get."""
    hierarchy = read_areas(areas, levels=levels)
    if rho is None:
        epsilon = _EPSILON if epsilon is None else epsilon
        delta = _DELTA if delta is None else delta
    made = outlook.plan(hierarchy, epsilon=epsilon, delta=delta, rho=rho, unit=unit)
    output.say(_described(hierarchy))
    output.say()
    _show_plan(made)


def _write_cells(table: Any, outline: Path, out: Path) -> None:
    """Write the table, and say what it is."""
    hierarchy = read_areas(table)
    with whole_file(out) as partial:
        pa_csv.write_csv(table, partial)
    levels = enumerate(hierarchy.level_names, start=1)
    sizes = ", ".join(f"{hierarchy.n_areas(level):,} {name}" for level, name in levels)
    output.say(f"Cells:      {sizes}, which cover {outline.name}")
    output.say("Public:     which cells there are follows from the outline, not from any trips")
    output.say(f"File:       {out}")
    output.say(f"Next:       inftda areas show {quote(str(out))}")


def _described(hierarchy: Hierarchy) -> str:
    """Levels, numbers of areas, and how many of the next level each has."""
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
