"""`inftda plan`: what a release would promise, before any data is touched."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inftda.cli import options, output

if TYPE_CHECKING:
    from inftda.privacy.plan import Plan
    from inftda.tree import Tree


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
        float, typer.Option(help="Probability that a stated maximum error is exceeded.")
    ] = 0.05,
    total: Annotated[
        int | None,
        typer.Option(min=0, help="Number of trips, if you know it: marks levels lost in noise."),
    ] = None,
    as_json: options.Json = False,
    config: options.Config = None,  # noqa: ARG001 - its callback sets the defaults
) -> None:
    """Show the noise and the guaranteed error of each level. Needs no data, spends nothing."""
    from inftda.evaluation.outlook import held  # noqa: PLC0415 - help must be instant
    from inftda.publication.trust import warnings  # noqa: PLC0415
    from inftda.words import plan as planned  # noqa: PLC0415

    made = planned(
        areas,
        sizes=sizes,
        origin_areas=origin_areas,
        destination_areas=destination_areas,
        levels=options.levels_of(levels),
        hour_of=hour_of,
        weekday_of=weekday_of,
        axes=options.pairs("--axis", axes),
        order=options.names(order),
        tree=tree,  # type: ignore[arg-type] # checked there
        epsilon=epsilon,
        delta=delta,
        rho=options.exact_number("--rho", rho),
        neighbours=neighbours,
        trips=trips,
        exactly=exactly,
        distinct=distinct,
        accountant=accountant,
        split=options.split_of(split),
        across=across,
        beta=beta,
    )
    shape, plan, errors = made.tree, made.plan, made.errors
    if as_json:
        output.say(json.dumps(_as_object(shape, plan, errors)))
        return
    output.say(f"Protected:  {plan.unit.describe()}")
    output.say(f"Guarantee:  {plan.describe()}")
    for words in warnings(plan):
        output.say(f"Careful:    {words}")
    output.say()
    head = ("level", "possible cells", "sigma", "max error", "")
    rows = _rows(shape, plan, errors, total)
    output.say("\n".join(output.aligned(head, rows, ends_in_notes=True)))
    if words := _across(shape, plan):
        output.say(f"\n{words}")
    output.say(f"\nWith probability {held(beta)} no cell is further off than stated.")
    if total is not None:
        output.say(
            "Levels are judged by their mean flow: trips that keep to few pairs do better. "
            "A release judges again, by what it publishes."
        )


def _as_object(shape: "Tree", plan: "Plan", errors: Mapping[int, int]) -> dict[str, Any]:
    described = plan.to_dict()
    for level in described["levels"]:
        level["max_error"] = errors[level["index"]]
    widths = _half_widths(shape, plan)
    for table in described.get("tables", []):
        table["half_width"] = widths.get(tuple(table["depths"]))
    return described


def _half_widths(shape: "Tree", plan: "Plan") -> dict[tuple[int, ...], int]:
    """How far measured totals are off at most, with 95 % probability."""
    from inftda.noise.quantiles import half_width  # noqa: PLC0415 - help must be instant
    from inftda.publication.trust import planned_totals  # noqa: PLC0415

    return {table.depths: half_width(sigma) for table, sigma in planned_totals(shape, plan)}


def _across(shape: "Tree", plan: "Plan") -> str:
    """What is measured across the tree, or why nothing is."""
    from inftda.publication.trust import describe_cross_totals  # noqa: PLC0415

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
    shape: "Tree", plan: "Plan", errors: Mapping[int, int], total: int | None
) -> list[tuple[str, ...]]:
    noise = {level.index: level for level in plan.levels}
    rows: list[tuple[str, ...]] = []
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
    from inftda.publication.trust import DO_NOT_USE, is_drowned  # noqa: PLC0415 - instant help

    if is_drowned(total, cells, sigma):
        return DO_NOT_USE
    mean = total / cells
    return "" if mean >= sigma else f"noise exceeds the mean flow of {mean:.3g}"
