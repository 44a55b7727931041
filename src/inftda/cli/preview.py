"""`inftda preview`: what a release would be like, tried out on something public."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inftda.cli import options, output
from inftda.screen import Meter

if TYPE_CHECKING:
    from inftda.previews.findings import Preview, SettingPreview

_STAND_IN = "What stands in"


def command(  # noqa: PLR0913 - what stands in, and the options of a release
    *,
    areas: options.Areas = None,
    stand_in: Annotated[
        str | None,
        typer.Option(
            metavar="PUBLIC_FLOWS",
            help="A public table of flows: older, coarser, or of somewhere else.",
            rich_help_panel=_STAND_IN,
        ),
    ] = None,
    stand_in_level: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            help="Level of its areas, if it is coarser: it is spread over finer ones.",
            rich_help_panel=_STAND_IN,
        ),
    ] = None,
    totals: Annotated[
        Path | None,
        typer.Option(
            metavar="PUBLIC_TOTALS",
            help="Trips out of and in to each finest area (columns named after that level, out, "
            "in, perhaps within): flows are made up from them.",
            rich_help_panel=_STAND_IN,
        ),
    ] = None,
    origin: options.Origin = "origin",
    destination: options.Destination = "destination",
    count: options.Count = None,
    encoding: options.Encoding = None,
    unplaceable: Annotated[
        str,
        typer.Option(
            metavar="error|outside|drop",
            help="Rows of the public table with an unknown or missing area.",
            rich_help_panel=_STAND_IN,
        ),
    ] = "error",
    seed: Annotated[int, typer.Option(help="Of made-up flows.", rich_help_panel=_STAND_IN)] = 1,
    origin_areas: options.OriginAreas = None,
    destination_areas: options.DestinationAreas = None,
    axes: options.AxisFiles = None,
    order: options.Order = None,
    tree: options.TreeKind = "destination",
    epsilon: Annotated[
        str,
        typer.Option(metavar="NUMBER,NUMBER,...", help="Strengths to try; go with --delta."),
    ] = "0.5,1,2",
    delta: options.Delta = None,
    neighbours: Annotated[
        str,
        typer.Option(
            metavar="substitute|add-remove", help="What one person may change; or both, by comma."
        ),
    ] = "substitute",
    trips: Annotated[
        str, typer.Option(metavar="NUMBER,...", help="The most trips of one person.")
    ] = "1",
    exactly: options.Exactly = None,
    distinct: options.Distinct = False,
    accountant: options.Accountant = "auto",
    split: Annotated[
        list[str] | None,
        typer.Option(
            metavar="uniform|geometric:R|W,W,...",
            help="How the budget is split over levels; may be given several times.",
        ),
    ] = None,
    across: options.Across = None,
    runs: Annotated[int, typer.Option(help="Simulated releases of each setting.")] = 5,
    within: Annotated[
        float, typer.Option(help="Part of itself by which a usable number may be off.")
    ] = 0.3,
    allow_confidential: Annotated[
        bool,
        typer.Option(
            "--allow-confidential",
            help="The stand-in is confidential; so is what comes out, and marked so.",
        ),
    ] = False,
    html: Annotated[Path | None, typer.Option(metavar="PAGE", help="Write a page.")] = None,
    force: output.Force = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
    config: options.Config = None,  # noqa: ARG001 - its callback sets the defaults
) -> None:
    """Try settings out on something public. Spends nothing, reads nothing confidential."""
    from inftda.previews.preview import preview  # noqa: PLC0415 - help must be instant

    output.check_out(html, force=force, reads=None if stand_in is None else Path(stand_in))
    with Meter("releases", shown=not (quiet or as_json)) as progress:
        tried = preview(
            areas,
            stand_in=None if stand_in is None else options.table_at(stand_in, encoding),
            stand_in_level=stand_in_level,
            totals=totals,
            epsilon=options.numbers("--epsilon", epsilon),
            delta=delta,
            neighbours=options.names(neighbours) or [],
            trips=options.whole_numbers("--trips", trips),
            exactly=exactly,
            distinct=distinct,
            split=[options.split_of(one) for one in split or ["uniform"]],
            across=across,
            accountant=accountant,
            origin_areas=origin_areas,
            destination_areas=destination_areas,
            axes=options.pairs("--axis", axes),
            order=options.names(order),
            tree=tree,  # type: ignore[arg-type] # checked there
            origin=origin,
            destination=destination,
            count=options.count_of(count),
            unplaceable=unplaceable,  # type: ignore[arg-type] # checked there
            runs=runs,
            within=within,
            allow_confidential=allow_confidential,
            seed=seed,
            progress=progress,
        )
    if html is not None:
        from inftda.previews.page import write_preview_page  # noqa: PLC0415 - only for a page

        write_preview_page(tried, html, force=force)
    if as_json:
        output.say(output.as_json(tried.to_dict()))
    elif not quiet:
        output.say(as_text(tried))
        if html is not None:
            output.say(f"\nPage:       {html}")


def as_text(preview: "Preview") -> str:
    """Everything that a committee looks at first."""
    from inftda.evaluation.evaluate import NOTICE  # noqa: PLC0415 - help must be instant
    from inftda.previews.findings import WHAT_IS_USABLE  # noqa: PLC0415

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


def _setting(one: "SettingPreview", tolerance: float) -> list[str]:
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
        f"In words:   {one.verdict(tolerance)}",
        "",
        *output.aligned(head, rows),
        "",
        *output.aligned(("totals of", "areas", "95% within", "mean error"), sums),
    ]
