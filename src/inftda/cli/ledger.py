"""`inftda ledger`: give data sets a budget and see what is left of it."""

import json
import shlex
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inftda.cli import options, output
from inftda.privacy.numbers import rounded_down, rounded_up

if TYPE_CHECKING:
    from inftda.ledger.budget import Dataset

app = typer.Typer(
    help="Budgets of data sets, and what releases have spent of them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

LedgerFile = Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger's file.")]
DatasetName = Annotated[str, typer.Argument(metavar="DATASET", help="Name of the data set.")]
ExactEpsilon = Annotated[
    str | None, typer.Option("--epsilon", metavar="NUMBER", help="Strength; goes with --delta.")
]
ExactDelta = Annotated[
    str | None, typer.Option("--delta", metavar="NUMBER", help="Probability of failure.")
]
_COLUMNS = (
    "dataset", "number", "charged", "published", "rho", "epsilon", "delta", "mechanism", "note",
)  # fmt: skip


class Format(StrEnum):
    """How a ledger is exported."""

    CSV = "csv"
    JSON = "json"


@app.command("create")
def create(  # noqa: PLR0913 - a budget and a unit
    path: LedgerFile,
    dataset: DatasetName,
    *,
    rho: options.Rho = None,
    epsilon: ExactEpsilon = None,
    delta: ExactDelta = None,
    neighbours: options.Neighbours = "substitute",
    trips: options.Trips = 1,
    exactly: options.Exactly = None,
    distinct: options.Distinct = False,
) -> None:
    """Give a data set a budget for one unit of privacy; both are fixed from then on."""
    from inftda.ledger.budget import Budget  # noqa: PLC0415 - help must be instant
    from inftda.ledger.ledger import Ledger, check_name  # noqa: PLC0415
    from inftda.privacy.unit import Unit  # noqa: PLC0415

    budget = Budget.make(
        rho=options.exact_number("--rho", rho),
        epsilon=options.exact_number("--epsilon", epsilon),
        delta=options.exact_number("--delta", delta),
    )
    unit = Unit(neighbours, trips, exactly=exactly, distinct=distinct)
    check_name(dataset)
    # An empty file is left over from an interrupted creation.
    is_new = not path.exists() or path.stat().st_size == 0
    ledger = Ledger.create(path) if is_new else Ledger(path)
    ledger.add(dataset, unit, budget)
    output.say(f"Data set:   {dataset}")
    output.say(f"Protected:  {unit.describe()}")
    output.say(f"Budget:     {budget.describe()}")
    chosen = f"--ledger {shlex.quote(str(path))} --dataset {shlex.quote(dataset)}"
    output.say(f"Next:       inftda release ... {chosen}")


@app.command("list")
def list_(path: LedgerFile, *, as_json: options.Json = False) -> None:
    """All data sets with what is spent and what is left."""
    from inftda.ledger.ledger import CANNOT_KNOW, Ledger  # noqa: PLC0415 - help must be instant

    datasets = Ledger(path).datasets()
    if as_json:
        shown = [dataset.to_dict() for dataset in datasets]
        for dataset in shown:
            del dataset["entries"]
        output.say(json.dumps({"datasets": shown, "cannot_know": CANNOT_KNOW}))
        return
    head = ("data set", "releases", "rho", "spent", "left", "epsilon spent", "of")
    for line in output.aligned(head, [_row(dataset) for dataset in datasets]):
        output.say(line)


@app.command("show")
def show(path: LedgerFile, dataset: DatasetName, *, as_json: options.Json = False) -> None:
    """One data set: its unit, its budget, and every release it was charged for."""
    from inftda.ledger.ledger import CANNOT_KNOW, Ledger  # noqa: PLC0415 - help must be instant

    found = Ledger(path).dataset(dataset)
    if as_json:
        output.say(json.dumps({**found.to_dict(), "cannot_know": CANNOT_KNOW}))
        return
    output.say(f"Data set:   {found.name}, since {found.created}")
    output.say(f"Protected:  {found.unit.describe()}")
    output.say(f"Budget:     {found.budget.describe()}")
    output.say(f"Spent:      {found.spent_words()}")
    for entry in found.entries:
        state = "published" if entry.published else "charged, not known to be published"
        note = f": {entry.note}" if entry.note else ""
        output.say(
            f"  {entry.number}  {entry.charged}  {entry.mechanism}  "
            f"rho = {rounded_up(entry.rho)}  ({state}){note}"
        )
    output.say(f"\n{CANNOT_KNOW}")


@app.command("export")
def export(
    path: LedgerFile,
    *,
    format_: Annotated[
        Format | None,
        typer.Option("--format", help="How to write it [default: as --out ends, else csv]."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file: .csv or .json.")] = None,
    force: output.Force = False,
    keep_formulas: output.KeepFormulas = False,
) -> None:
    """Every entry of the ledger, amounts as exact fractions."""
    from inftda.ledger.ledger import CANNOT_KNOW, Ledger  # noqa: PLC0415 - help must be instant

    kind = output.kind_of(Format, format_, out)
    output.check_out(out, force=force, reads=path)
    shown = [dataset.to_dict() for dataset in Ledger(path).datasets()]
    if kind is Format.JSON:
        text = json.dumps({"datasets": shown, "cannot_know": CANNOT_KNOW}, indent=2) + "\n"
    else:
        text = _as_csv(shown, keep_formulas=keep_formulas)
    output.give(text, out)


@app.command("charge")
def charge(
    path: LedgerFile,
    dataset: DatasetName,
    *,
    note: Annotated[str, typer.Option(help="What was released, when and by whom.")],
    rho: Annotated[str, typer.Option("--rho", metavar="NUMBER", help="Its cost in zCDP.")],
) -> None:
    """Charge what was released by other means, for the data set's own unit of privacy."""
    from inftda.ledger.budget import BY_HAND, Cost  # noqa: PLC0415 - help must be instant
    from inftda.ledger.ledger import Ledger  # noqa: PLC0415
    from inftda.privacy.numbers import checked_rho  # noqa: PLC0415

    cost = Cost(checked_rho(options.exact_number("--rho", rho) or 0))
    ledger = Ledger(path)
    number = ledger.charge(
        dataset, cost, ledger.dataset(dataset).unit, mechanism=BY_HAND, note=note
    )
    ledger.note_published(number)
    output.say(f"Entry:      {number}, rho = {rounded_up(cost.rho)}")
    output.say(f"Spent:      {ledger.dataset(dataset).spent_words()}")


def _row(dataset: "Dataset") -> tuple[str, ...]:
    budget, epsilon = dataset.budget, dataset.epsilon_spent()
    whole = "" if budget.epsilon is None else f"{float(budget.epsilon):.6g}"
    return (
        dataset.name,
        str(len(dataset.entries)),
        f"{float(budget.rho):.6g}",
        rounded_up(dataset.spent),
        rounded_down(max(budget.rho - dataset.spent, budget.rho * 0)),
        "" if epsilon is None else rounded_up(epsilon),
        whole if budget.delta is None else f"{whole} at delta {float(budget.delta):.6g}".strip(),
    )


def _as_csv(datasets: list[dict[str, Any]], *, keep_formulas: bool) -> str:
    import csv  # noqa: PLC0415 - only here
    import io  # noqa: PLC0415

    from inftda.tables import disarmed  # noqa: PLC0415

    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for dataset in datasets:
        for entry in dataset["entries"]:
            row = {**entry, "dataset": dataset["dataset"]}
            cells = ["" if row[column] is None else str(row[column]) for column in _COLUMNS]
            writer.writerow(cells if keep_formulas else map(disarmed, cells))
    return sink.getvalue()
