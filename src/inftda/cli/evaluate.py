"""`inftda evaluate`: how far a release is from the truth. Confidential."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inftda.cli import options, output
from inftda.screen import Meter

if TYPE_CHECKING:
    from inftda.evaluation.evaluate import Comparison


def command(  # noqa: PLR0913 - the columns of the table, as for a release
    folder: Annotated[Path, typer.Argument(metavar="RELEASE", help="Folder of a release.")],
    *,
    truth: Annotated[
        str, typer.Option(metavar="FLOWS", help="The confidential table it was made from.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the measures; not in a release.")],
    estimate: Annotated[
        Path | None, typer.Option(help="Folder of an estimate made from it, compared as well.")
    ] = None,
    origin: options.Origin = "origin",
    destination: options.Destination = "destination",
    origin_point: options.OriginPoint = None,
    destination_point: options.DestinationPoint = None,
    hour_of: options.HourOf = None,
    weekday_of: options.WeekdayOf = None,
    count: options.Count = None,
    encoding: options.Encoding = None,
    unplaceable: options.Unplaceable = None,
    html: Annotated[bool, typer.Option("--html", help="Write a page as well.")] = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Compare a release with the truth; what comes out is CONFIDENTIAL."""
    from inftda.publication.release import open_release  # noqa: PLC0415
    from inftda.publication.trust import counting_note  # noqa: PLC0415 - help must be instant
    from inftda.words import evaluate  # noqa: PLC0415

    release = open_release(folder)
    said: list[str] = []
    with Meter("levels", shown=not (quiet or as_json)) as progress:
        comparison = evaluate(
            release,
            options.table_at(truth, encoding),
            estimate=estimate,
            out=out,
            html=html,
            origin=origin,
            destination=destination,
            origin_point=options.names(origin_point),
            destination_point=options.names(destination_point),
            hour_of=hour_of,
            weekday_of=weekday_of,
            count=options.count_of(count),
            unplaceable=options.unplaceable_of(unplaceable),
            progress=progress,
            say=said.append,
        )
    if as_json:
        output.say(output.as_json(comparison.to_dict()))
    elif not quiet:
        output.say(summary(comparison, counted="; ".join(said)))
        if words := counting_note(release):
            output.say(f"What the release counts: {words}.")
        output.say(f"\nWritten, for your eyes only: {', '.join(map(str, comparison.files))}")


def summary(comparison: "Comparison", *, counted: str) -> str:
    """The main measures of every level, side by side; `counted` says what a row was taken for."""
    from inftda.evaluation.evaluate import NOTICE  # noqa: PLC0415 - help must be instant

    parts = [NOTICE, "", *_measures(comparison)]
    notes = [
        "*  over cells that are not zero in both tables",
        "** mean relative error of the 100 largest true flows",
        f"How the truth was counted: {counted}.",
    ]
    if comparison.estimate is not None:
        parts += ["", "The estimate that was made from it:", "", *_measures(comparison.estimate)]
    return "\n".join([*parts, "", *notes])


def _measures(comparison: "Comparison") -> list[str]:
    """Levels, totals across the tree, and intervals."""
    head = ("level", "cells", "max error", "mean error*", "FDR", "FNR", "common part", "top 100**")
    rows = [
        (
            level.name,
            f"{level.n_cells:,}",
            f"{level.max_abs_error:,}",
            f"{level.mean_abs_error_nonzero:,.1f}",
            f"{level.false_discovery_rate:.1%}",
            f"{level.false_negative_rate:.1%}",
            f"{level.common_part:.4f}",
            f"{level.top_mean_relative_error:.2%}",
        )
        for level in comparison.levels
    ]
    return [*output.aligned(head, rows), *_totals(comparison), *_intervals(comparison)]


def _totals(comparison: "Comparison") -> list[str]:
    """Totals of areas across the tree, if it has any."""
    head = (
        "total across the tree",
        "areas",
        "max error",
        "mean error",
        "bias of largest",
        "in interval",
    )
    rows = [
        (
            f"{total.axis} {total.level}",
            f"{total.n_areas:,}",
            f"{total.max_abs_error:,}",
            f"{total.mean_abs_error:,.1f}",
            f"{total.bias_of_largest:+.2%}",
            "not measured" if total.in_interval is None else f"{total.in_interval:.1%}",
        )
        for total in comparison.totals
    ]
    return ["", *output.aligned(head, rows)] if rows else []


def _intervals(comparison: "Comparison") -> list[str]:
    """Coverage of the intervals, if there are any; it is stated as 95 %."""
    from inftda.evaluation.intervals import LEAST, lowest_coverage, overall  # noqa: PLC0415

    head = ("intervals (95 %)", "numbers", "in interval", "mean width", "lowest of any size")
    rows = []
    for name in dict.fromkeys(one.name for one in comparison.intervals):
        here = [one for one in comparison.intervals if one.name == name]
        every, lowest = overall(here), lowest_coverage(here)
        rows.append(
            (
                name,
                f"{every.n_numbers:,}",
                f"{every.in_interval:.1%}",
                f"{every.mean_width:,.1f}",
                f"fewer than {LEAST:,}"
                if lowest is None
                else f"{lowest.in_interval:.1%} of {lowest.smallest:,} to "
                + ("any" if lowest.largest is None else f"{lowest.largest:,}"),
            )
        )
    return ["", *output.aligned(head, rows)] if rows else []
