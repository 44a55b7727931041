"""`inftda compare`: methods side by side on the table at hand. Confidential."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inftda.cli import options, output
from inftda.screen import Meter

if TYPE_CHECKING:
    from inftda.disclosure.compare import MethodComparison


def command(  # noqa: PLR0913 - the table, the methods and the options of a release
    truth: Annotated[str, typer.Argument(metavar="TRUTH", help="The confidential table.")],
    *,
    out: Annotated[Path, typer.Option(help="Folder for the figures; not in a release.")],
    areas: options.Areas = None,
    methods: Annotated[
        str,
        typer.Option(
            metavar="METHOD,METHOD,...",
            help="suppress:K, suppress-primary:K, round:B, cell-key:D and inftda.",
        ),
    ] = "suppress:10,round:5,cell-key,inftda",
    epsilon: Annotated[
        str, typer.Option(metavar="NUMBER,NUMBER,...", help="Of inftda; goes with --delta.")
    ] = "1",
    delta: options.Delta = None,
    origin: options.Origin = "origin",
    destination: options.Destination = "destination",
    count: options.Count = None,
    encoding: options.Encoding = None,
    unplaceable: Annotated[
        str,
        typer.Option(metavar="error|outside|drop", help="Rows with an unknown or missing area."),
    ] = "error",
    origin_areas: options.OriginAreas = None,
    destination_areas: options.DestinationAreas = None,
    axes: options.AxisFiles = None,
    order: options.Order = None,
    tree: options.TreeKind = "destination",
    neighbours: options.Neighbours = "substitute",
    trips: options.Trips = 1,
    exactly: options.Exactly = None,
    distinct: options.Distinct = False,
    accountant: options.Accountant = "auto",
    split: options.Split = "uniform",
    across: options.Across = None,
    html: Annotated[bool, typer.Option("--html", help="Write a page as well.")] = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
    config: options.Config = None,  # noqa: ARG001 - its callback sets the defaults
) -> None:
    """Compare what offices do today with what is promised; what comes out is CONFIDENTIAL."""
    from inftda.disclosure.compare import (  # noqa: PLC0415 - help must be instant
        compare,
        write_methods,
        write_methods_page,
    )
    from inftda.evaluation.evaluate import check_outside  # noqa: PLC0415

    check_outside(out)
    with Meter("methods", shown=not (quiet or as_json)) as progress:
        compared = compare(
            options.table_at(truth, encoding),
            areas,
            methods=options.names(methods) or [],
            epsilon=options.numbers("--epsilon", epsilon),
            delta=delta,
            neighbours=neighbours,
            trips=trips,
            exactly=exactly,
            distinct=distinct,
            split=options.split_of(split),
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
            progress=progress,
        )
    page = (lambda path: write_methods_page(compared, path)) if html else None
    files = write_methods(compared, out, page=page)
    if as_json:
        output.say(output.as_json(compared.to_dict()))
    elif not quiet:
        output.say(summary(compared))
        output.say(f"\nConfidential files written: {', '.join(map(str, files))}")


def summary(compared: "MethodComparison") -> str:
    """Accuracy and disclosure of every method, side by side."""
    from inftda.disclosure.compare import DISCLOSE, summary_sentence  # noqa: PLC0415 - instant help
    from inftda.evaluation.evaluate import NOTICE  # noqa: PLC0415

    head = ("method", "common part*", "max error", "false", "lost", "exact cells", "persons seen")
    rows = []
    for one in compared.results:
        finest, found = one.levels[-1], one.attack
        rows.append(
            (
                one.label,
                f"{finest.common_part:.4f}",
                f"{finest.max_abs_error:,}",
                f"{finest.false_discovery_rate:.1%}",
                f"{finest.false_negative_rate:.1%}",
                "-" if found is None else f"{found.exact_with_totals:,}",
                "-" if found is None else f"{found.n_reidentified:,}",
            )
        )
    said = [f"{one.label}: {one.finding}." for one in compared.results]
    notes = [
        "* of the trips, at the finest level; hidden cells counted as 0",
        "A person is taken to have one trip.",
        DISCLOSE,
    ]
    table = output.aligned(head, rows)
    return "\n".join([NOTICE, "", *table, "", summary_sentence(compared), "", *said, "", *notes])
