"""`inftda release`: the main job."""

import json
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inftda.cli import options, output
from inftda.cli.publishing import publishing, telling_what_is_published
from inftda.screen import Meter

if TYPE_CHECKING:
    from inftda.publication.release import Release

_TABLE, _RUN, _PAYS = "The table", "Running", "What it is charged to"
TIMES = " \N{MULTIPLICATION SIGN} "


@publishing
def command(  # noqa: PLR0913 - one option for each thing a custodian may decide
    flows: Annotated[
        str | None,
        typer.Argument(
            help="Trips or flows: CSV, Parquet, Excel, a folder or glob of CSV or Parquet files."
        ),
    ] = None,
    *,
    out: Annotated[Path | None, typer.Option(help="Folder to write the release to.")] = None,
    areas: options.Areas = None,
    origin_areas: options.OriginAreas = None,
    destination_areas: options.DestinationAreas = None,
    levels: options.Levels = None,
    axes: options.AxisFiles = None,
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
    origin: options.Origin = "origin",
    destination: options.Destination = "destination",
    origin_point: options.OriginPoint = None,
    destination_point: options.DestinationPoint = None,
    hour_of: options.HourOf = None,
    weekday_of: options.WeekdayOf = None,
    count: options.Count = None,
    encoding: options.Encoding = None,
    person: Annotated[
        str | None,
        typer.Option(
            help="Column that tells people apart; at most --trips of each are kept.",
            rich_help_panel=_TABLE,
        ),
    ] = None,
    unplaceable: options.Unplaceable = None,
    sql: Annotated[
        str | None,
        typer.Option(help="Read the table with this query instead.", rich_help_panel=_TABLE),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            help="Where to run it: postgresql://... or sqlite:///FILE.", rich_help_panel=_TABLE
        ),
    ] = None,
    measurements: Annotated[
        bool,
        typer.Option(
            "--measurements",
            help="Publish every noisy value as well; it costs no privacy.",
            rich_help_panel=_RUN,
        ),
    ] = False,
    threads: Annotated[
        int | None, typer.Option(help="Threads [default: all cores].", rich_help_panel=_RUN)
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="local|spark",
            help="Where to run: this machine, or Spark for tables beyond one machine.",
            rich_help_panel=_RUN,
        ),
    ] = "local",
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Spark cluster [default: all cores of this machine].",
            rich_help_panel=_RUN,
        ),
    ] = None,
    not_private_seed: Annotated[
        int | None,
        typer.Option(
            help="For tests: repeatable noise. The release promises NOTHING and says so.",
            rich_help_panel=_RUN,
        ),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Charge the release to a ledger (see inftda ledger).",
            rich_help_panel=_PAYS,
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Its data set.", rich_help_panel=_PAYS),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(metavar="KEY.pem", help="Sign the release with this key (inftda keygen)."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a release.")] = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
    config: options.Config = None,  # noqa: ARG001 - its callback sets the defaults
) -> None:
    """Publish a confidential table under differential privacy."""
    from inftda.publish import release  # noqa: PLC0415 - help must be instant

    if out is None:
        raise typer.BadParameter("give the folder to write to", param_hint="--out")
    said: list[str] = []
    with telling_what_is_published(out):
        with Meter("draws", shown=not (quiet or as_json)) as progress:
            made = release(
                _table(flows, sql, database, encoding),
                areas,
                out=out,
                force=force,
                sign=sign,
                origin_areas=origin_areas,
                destination_areas=destination_areas,
                levels=options.levels_of(levels),
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
                measurements=measurements,
                origin=origin,
                destination=destination,
                origin_point=options.names(origin_point),
                destination_point=options.names(destination_point),
                hour_of=hour_of,
                weekday_of=weekday_of,
                count=options.count_of(count),
                person=person,
                unplaceable=options.unplaceable_of(unplaceable) or "error",
                threads=threads,
                engine=_engine(engine, master=master),
                source=_source(not_private_seed),
                progress=progress,
                say=said.append,
                ledger=ledger,
                dataset=dataset,
            )
        if as_json:
            output.say(json.dumps({"out": str(out), **made.manifest.to_dict()}))
        elif not quiet:
            output.say(summary(made, out, counted="; ".join(said)))


#: What a release with measurements says of them.
KEPT_WORDS = "every noisy value is in measurements.parquet, at no further cost in privacy"


def _table(flows: str | None, sql: str | None, database: str | None, encoding: str | None) -> Any:
    if sql is None and database is None and flows is not None:
        return options.table_at(flows, encoding)
    if flows is not None or sql is None or database is None:
        raise typer.BadParameter(
            "give either a file of trips or flows, or both --sql and --database",
            param_hint="FLOWS",
        )
    if encoding is not None:
        raise typer.BadParameter("is for CSV files; leave it out", param_hint="--encoding")
    from inftda.reading import SqlQuery  # noqa: PLC0415 - DuckDB

    return SqlQuery(sql, database)


def _engine(name: str, *, master: str | None) -> Any:
    """Spark with what the options say, and other names as they are: they are checked later."""
    if name == "spark":
        from inftda.spark import SparkEngine  # noqa: PLC0415 - an optional library

        return SparkEngine(master=master)
    if master is not None:
        raise typer.BadParameter("needs --engine spark", param_hint="--master")
    return name


def _source(seed: int | None) -> Any:
    if seed is None:
        return None
    from inftda.noise.bits import SeededSource  # noqa: PLC0415 - help must be instant

    return SeededSource(seed)


def summary(release: "Release", out: Path, *, counted: str = "") -> str:
    """What was done, in plain words; `counted` says what a row was taken for."""
    from inftda.publication.trust import counting_note, noise_warnings  # noqa: PLC0415 - as above

    tree = release.tree
    finest = [
        f"{axis.hierarchy.n_areas(axis.hierarchy.depth):,} "
        f"{axis.hierarchy.level_name(axis.hierarchy.depth)}"
        for axis in tree.axes
    ]
    n_flows = release.manifest.n_flows
    if tree.is_od:
        # Both ends are often the same areas, which are then named once.
        areas = " and ".join(dict.fromkeys(finest))
        what = f"{'flow' if n_flows == 1 else 'flows'} between {areas} areas"
        total = f"{release.total:,} {'trip' if release.total == 1 else 'trips'} in all"
    else:
        what = f"{'cell' if n_flows == 1 else 'cells'} of {TIMES.join(finest)}"
        total = f"{release.total:,} in all"
    lines = [
        f"Released:   {n_flows:,} {what}, {total}",
        *([f"Counted:    {counted}"] if counted else []),
        *([f"Note:       {words}"] if (words := counting_note(release)) else []),
        *_promise(release),
        *([f"Measured:   {KEPT_WORDS}"] if release.has_measurements else []),
        *(f"Careful:    {words}" for words in noise_warnings(release)),
        f"Files:      {out}",
        f"Next:       inftda verify {quote(str(out))}",
    ]
    return "\n".join(lines)


def _promise(release: "Release") -> list[str]:
    from inftda.publication.trust import (  # noqa: PLC0415
        NOT_PRIVATE_LINE,
        describe_cross_totals,
        warnings,
    )

    if not release.manifest.private:
        return [f"{NOT_PRIVATE_LINE}."]
    plan = release.manifest.plan
    lines = [f"Protected:  {plan.unit.describe()}", f"Guarantee:  {plan.describe()}"]
    if across := describe_cross_totals(release.tree, plan):
        lines.append(f"Across:     {across}")
    careful = warnings(plan, total=release.total)
    return [*lines, *(f"Careful:    {words}" for words in careful)]
