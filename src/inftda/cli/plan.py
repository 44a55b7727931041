"""`inftda plan`: what a release would promise, before any data is touched."""

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inftda.cli import options, output
from inftda.errors import InftdaError

if TYPE_CHECKING:
    from inftda.privacy.plan import Plan
    from inftda.tree import Tree

#: More areas than any country has; a stand-in for each is made in memory.
MAX_AREAS = 20_000_000


def command(  # noqa: PLR0913 - the same options as a release
    *,
    areas: options.Areas = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,...", help="Only the numbers of areas per level, coarse to fine."
        ),
    ] = None,
    origin_areas: options.OriginAreas = None,
    destination_areas: options.DestinationAreas = None,
    levels: options.Levels = None,
    axes: options.AxisFiles = None,
    hour_of: options.HourOf = None,
    weekday_of: options.WeekdayOf = None,
    order: options.Order = None,
    tree: options.TreeKind = "destination",
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rho: options.Rho = None,
    neighbours: options.Neighbours = "substitute",
    trips: options.Trips = 1,
    exactly: options.Exactly = None,
    distinct: options.Distinct = False,
    accountant: options.Accountant = "auto",
    split: options.Split = "uniform",
    across: options.Across = None,
    beta: Annotated[
        float, typer.Option(help="Odds that a stated maximum error is exceeded.")
    ] = 0.05,
    total: Annotated[
        int | None,
        typer.Option(min=0, help="Number of trips, if you know it: marks levels lost in noise."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show the noise and the guaranteed error of each level. Needs no data, spends nothing."""
    from inftda.areas.clock import with_clocks  # noqa: PLC0415 - help must be instant
    from inftda.evaluate.bounds import guaranteed_errors  # noqa: PLC0415
    from inftda.lattice import DEFAULT_SHARE  # noqa: PLC0415
    from inftda.privacy.plan import make_plan  # noqa: PLC0415
    from inftda.privacy.unit import PrivacyUnit  # noqa: PLC0415
    from inftda.publication.caveats import careful_words  # noqa: PLC0415
    from inftda.tree import build_tree  # noqa: PLC0415

    if sizes is not None and (areas or origin_areas or destination_areas or axes):
        raise InftdaError("--sizes stands for the areas; give either sizes or files, not both")
    shape = build_tree(
        areas if sizes is None else balanced_areas(sizes),
        origin_areas=origin_areas,
        destination_areas=destination_areas,
        levels=options.levels_of(levels),
        axes=with_clocks(options.pairs("--axis", axes), hour_of=hour_of, weekday_of=weekday_of),
        order=options.names(order),
        first=tree,  # type: ignore[arg-type] # checked there
    )
    unit = PrivacyUnit(neighbours, trips, exactly=exactly, distinct=distinct)
    plan = make_plan(
        shape,
        unit,
        epsilon=epsilon,
        delta=delta,
        rho=options.exact_number("--rho", rho),
        accountant=accountant,
        split=options.split_of(split),
        across=DEFAULT_SHARE if across is None else across,
    )
    errors = guaranteed_errors(shape, plan, beta=beta)
    if as_json:
        output.say(json.dumps(_as_object(shape, plan, errors)))
        return
    output.say(f"Protected:  {unit.describe()}")
    output.say(f"Guarantee:  {plan.describe()}")
    for words in careful_words(plan):
        output.say(f"Careful:    {words}")
    output.say()
    output.say(_as_text(_rows(shape, plan, errors, total)))
    if words := _across(shape, plan):
        output.say(f"\n{words}")
    output.say(f"\nWith probability {_held(beta)} no cell is further off than stated.")
    if total is not None:
        output.say(
            "Levels are judged by their mean flow: trips that keep to few pairs do better. "
            "A release judges again, by what it publishes."
        )


def balanced_areas(sizes: str) -> Any:
    """A stand-in hierarchy with the given number of areas on each level, split evenly.

    Raises:
        InftdaError: the sizes are not growing whole numbers.
    """
    import numpy as np  # noqa: PLC0415 - help must be instant
    import pyarrow as pa  # noqa: PLC0415

    try:
        numbers = [int(size) for size in sizes.split(",")]
    except ValueError:
        numbers = []
    if not numbers or numbers != sorted(numbers) or numbers[0] < 1:
        raise InftdaError(f"--sizes must be growing numbers such as 20,110,8092, got {sizes!r}")
    if numbers[-1] > MAX_AREAS:
        raise InftdaError(f"--sizes must be at most {MAX_AREAS:,}, got {numbers[-1]}")
    area = np.arange(numbers[-1], dtype=np.int64)
    columns = {}
    for level in range(len(numbers), 0, -1):
        columns[f"level {level}"] = area.astype(str)
        if level > 1:
            area = area * numbers[level - 2] // numbers[level - 1]
    return pa.table(dict(reversed(columns.items())))


def _held(beta: float) -> str:
    """1 - beta in per cent, with all its digits: 99.9% must not be called 100%."""
    return f"{(100 * (1 - Decimal(repr(beta)))).normalize():f}%"


def _as_object(shape: "Tree", plan: "Plan", errors: dict[int, int]) -> dict[str, Any]:
    described = plan.to_dict()
    for level in described["levels"]:
        level["max_error"] = errors[level["index"]]
    widths = _half_widths(shape, plan)
    for table in described.get("tables", []):
        table["half_width"] = widths.get(tuple(table["depths"]))
    return described


def _half_widths(shape: "Tree", plan: "Plan") -> dict[tuple[int, ...], int]:
    """How far measured totals are off at most, with 95 % probability."""
    from inftda.publication.totals import half_width, planned_totals  # noqa: PLC0415

    return {table.depths: half_width(sigma) for table, sigma in planned_totals(shape, plan)}


def _across(shape: "Tree", plan: "Plan") -> str:
    """What is measured across the tree, or why nothing is."""
    from inftda.publication.totals import across_words  # noqa: PLC0415

    words = across_words(shape, plan)
    if not words:
        return ""
    words = f"Across:     {words}"
    if not plan.tables:
        return words
    widths = _half_widths(shape, plan)
    rows: list[tuple[str, ...]] = [("table across", "cells", "sigma", "totals within", "")]
    for table in plan.tables:
        width = widths.get(table.depths)
        shown = "" if width is None else f"\N{PLUS-MINUS SIGN}{width:,}"
        rows.append((table.name, f"{table.cells:,}", f"{table.sigma:,.2f}", shown, ""))
    return f"{words}\n\n{_as_text(rows)}"


def _rows(
    shape: "Tree", plan: "Plan", errors: dict[int, int], total: int | None
) -> list[tuple[str, ...]]:
    noise = {level.index: level for level in plan.levels}
    rows: list[tuple[str, ...]] = [("level", "possible cells", "sigma", "max error", "")]
    for level in shape.levels:
        if level.index not in errors:
            continue
        measured = noise.get(level.index)
        sigma = float(measured.sigma2) ** 0.5 if measured else 0.0
        note = "" if total is None else _lost_in_noise(total, level.n_nodes, sigma)
        if measured is None:
            note = "public" if level.index == 0 else "splits nothing, costs nothing"
        shown = f"{sigma:,.2f}" if measured else "-"
        rows.append((level.name, f"{level.n_nodes:,}", shown, f"{errors[level.index]:,}", note))
    return rows


def _lost_in_noise(total: int, cells: int, sigma: float) -> str:
    """What the mean flow of a level tells of it."""
    from inftda.publication.caveats import MOSTLY_NOISE  # noqa: PLC0415 - help must be instant
    from inftda.publication.noisiness import is_drowned  # noqa: PLC0415

    if is_drowned(total, cells, sigma):
        return f"do not use this level: {MOSTLY_NOISE}"
    mean = total / cells
    return "" if mean >= sigma else f"noise exceeds the mean flow of {mean:.3g}"


def _as_text(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:4], widths[1:4], strict=True)]
        lines.append("  ".join([*cells, row[4]]).rstrip())
    return "\n".join(lines)
