"""`inftda query`: flows of a release between areas of any levels."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from inftda.cli import options, output
from inftda.errors import InftdaError
from inftda.files import whole_file


class Format(StrEnum):
    """How the answer is given."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def command(  # noqa: PLR0913 - two ends, each with a level and a filter
    folder: Annotated[Path, typer.Argument(metavar="RELEASE", help="Folder of a release.")],
    *,
    origin_level: Annotated[
        str | None,
        typer.Option(help="Level of the origins, or all to sum them up [default: finest]."),
    ] = None,
    destination_level: Annotated[
        str | None,
        typer.Option(help="Level of the destinations, or all to sum them up [default: finest]."),
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(
            "--from", metavar="AREA", help="Only from here: a code or LEVEL:CODE; may be repeated."
        ),
    ] = None,
    destination: Annotated[
        list[str] | None,
        typer.Option(
            "--to", metavar="AREA", help="Only to here: a code or LEVEL:CODE; may be repeated."
        ),
    ] = None,
    level: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AXIS=LEVEL",
            help="Level of any axis, or all to sum it up [default: finest]; may be repeated.",
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="AXIS=AREA", help="Only this area of any axis; may be repeated."),
    ] = None,
    totals: Annotated[
        str | None,
        typer.Option(
            metavar="AXIS=LEVEL",
            help="Instead: totals of these areas as measured across the tree, with intervals.",
        ),
    ] = None,
    intervals: Annotated[
        bool,
        typer.Option(
            "--intervals",
            help="Add low and high: 95 % of numbers of a size have the true number between them.",
        ),
    ] = False,
    without_model: Annotated[
        bool,
        typer.Option("--without-model", help="Intervals by the noise alone: wider, no model."),
    ] = False,
    names: Annotated[
        bool, typer.Option("--names", help="Show the names of areas beside their codes.")
    ] = False,
    top: Annotated[
        int | None, typer.Option(min=1, help="Only this many flows, the largest first.")
    ] = None,
    format_: Annotated[
        Format | None,
        typer.Option("--format", help="How to write [default: as --out ends, else table]."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write to this file: .csv, .json or .parquet.")
    ] = None,
    force: output.Force = False,
    keep_formulas: output.KeepFormulas = False,
) -> None:
    """Sum up the flows of a release between areas of any levels."""
    from inftda.publication.release import open_release  # noqa: PLC0415
    from inftda.publication.trust import counting_note  # noqa: PLC0415 - help must be instant
    from inftda.tables import disarmed_table  # noqa: PLC0415

    kind = output.kind_of(Format, format_, out)
    if kind is Format.PARQUET and out is None:
        raise InftdaError("parquet cannot be printed; give a file with --out")
    output.check_out(out, force=force)
    if without_model and not intervals:
        raise InftdaError("--without-model is for intervals; add --intervals")
    release = open_release(folder)
    if totals is not None:
        if any([origin_level, destination_level, origin, destination, level, where]):
            raise InftdaError("--totals gives all areas of a level; leave out levels and filters")
        ((axis, of),) = options.pairs("--totals", [totals]).items()
        flows, largest = release.total_intervals(axis, of), "measured"
    else:
        flows, largest = (
            release.flows(
                origin_level,
                destination_level,
                origin=origin,
                destination=destination,
                levels=options.pairs("--level", level),
                where=options.lists("--where", where),
                intervals=intervals and ("noise" if without_model else "model"),
                names=names,
            ),
            "flow",
        )
    if top is not None:
        flows = flows.sort_by([(largest, "descending")]).slice(0, top)
    if kind is Format.PARQUET and out is not None:
        _write_parquet(flows, out)
    else:
        is_for_people = kind is Format.CSV and not keep_formulas
        output.give(_TEXTS[kind](disarmed_table(flows) if is_for_people else flows), out)
    if words := counting_note(release):
        output.say(f"Note:       {words}", err=True)


def _write_parquet(flows: Any, out: Path) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - only for this format

    with whole_file(out) as partial:
        pq.write_table(flows, partial)


def _as_csv(flows: Any) -> str:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.csv as pa_csv  # noqa: PLC0415

    sink = pa.BufferOutputStream()
    pa_csv.write_csv(flows, sink)
    return sink.getvalue().to_pybytes().decode()  # type: ignore[no-any-return] # untyped library


def _as_json(flows: Any) -> str:
    return output.as_json(flows.to_pylist()) + "\n"


def as_text(flows: Any) -> str:
    """Columns side by side: codes to the left, numbers to the right."""
    columns = []
    for name in flows.column_names:
        values = flows.column(name).to_pylist()
        is_number = any(isinstance(value, int | float) for value in values) or name == "flow"
        cells = [output.printable(name), *map(_cell, values)]
        width = max(map(len, cells))
        columns.append([cell.rjust(width) if is_number else cell.ljust(width) for cell in cells])
    return "".join("  ".join(row).rstrip() + "\n" for row in zip(*columns, strict=True))


def _cell(value: str | float | None) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, str):
        return output.printable(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


_TEXTS = {Format.TABLE: as_text, Format.CSV: _as_csv, Format.JSON: _as_json}
