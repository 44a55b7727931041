"""`inftda ledger`: give data sets a budget and see what is left of it."""

import csv
import io
import json as json_text
import shlex
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

from inftda.cli import output
from inftda.cli.command import Force, Json, OutFile, command
from inftda.files import check_file
from inftda.ledger.budget import BY_HAND, Budget, Cost, Dataset
from inftda.ledger.ledger import CANNOT_KNOW, Ledger, check_name
from inftda.numbers import checked_rho, rounded_down, rounded_up
from inftda.options import PROMISE, Group, KeepFormulas, Option, Rho, exact
from inftda.privacy.unit import UNIT, Unit
from inftda.tables import disarmed

_Path = Annotated[Path, Option("The ledger's file.", metavar="LEDGER", is_argument=True)]
_Dataset = Annotated[str, Option("Name of the data set.", metavar="DATASET", is_argument=True)]
_COLUMNS = (
    "dataset", "number", "charged", "published", "rho", "epsilon", "delta", "mechanism", "note",
)  # fmt: skip


_FORMATS = ("csv", "json")


@command()
def create(  # noqa: PLR0913 - a budget and a unit
    path: _Path,
    dataset: _Dataset,
    *,
    rho: Rho = None,
    epsilon: Annotated[
        Fraction | None, Option("Strength; goes with delta.", "NUMBER", exact, panel=PROMISE)
    ] = None,
    delta: Annotated[
        Fraction | None, Option("Probability of failure.", "NUMBER", exact, panel=PROMISE)
    ] = None,
    unit: Annotated[Unit, Group(Unit)] = UNIT,
) -> None:
    """Give a data set a budget for one unit of privacy; both are fixed from then on."""
    path, budget = Path(path), Budget.make(rho=rho, epsilon=epsilon, delta=delta)
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


@command(name="list")
def list_(path: _Path, *, json: Json = False) -> None:
    """All data sets with what is spent and what is left."""
    datasets = Ledger(path).datasets()
    if json:
        shown = [dataset.to_dict() for dataset in datasets]
        for dataset in shown:
            del dataset["entries"]
        output.say(json_text.dumps({"datasets": shown, "cannot_know": CANNOT_KNOW}))
        return
    head = ("data set", "releases", "rho", "spent", "left", "epsilon spent", "of")
    for line in output.aligned(head, [_row(dataset) for dataset in datasets]):
        output.say(line)


@command()
def show(path: _Path, dataset: _Dataset, *, json: Json = False) -> None:
    """One data set: its unit, its budget, and every release it was charged for."""
    found = Ledger(path).dataset(dataset)
    if json:
        output.say(json_text.dumps({**found.to_dict(), "cannot_know": CANNOT_KNOW}))
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


@command()
def export(
    path: _Path,
    *,
    format_: Annotated[
        str | None, Option("How to write it; by default as the file ends, else csv.", "csv|json")
    ] = None,
    out: OutFile = None,
    force: Force = False,
    keep_formulas: KeepFormulas = False,
) -> None:
    """Every entry of the ledger, amounts as exact fractions."""
    out = None if out is None else Path(out)
    kind = output.kind_of(_FORMATS, format_, out)
    if out is not None:
        check_file(out, force=force, reads=(Path(path),))
    shown = [dataset.to_dict() for dataset in Ledger(path).datasets()]
    if kind == "json":
        text = json_text.dumps({"datasets": shown, "cannot_know": CANNOT_KNOW}, indent=2) + "\n"
    else:
        text = _as_csv(shown, keep_formulas=keep_formulas)
    output.give(text, out)


@command()
def charge(
    path: _Path,
    dataset: _Dataset,
    *,
    rho: Annotated[Fraction, Option("Its cost in zCDP.", "NUMBER", exact)],
    note: Annotated[str, Option("What was released, when and by whom.", "TEXT")],
) -> None:
    """Charge what was released by other means, for the data set's own unit of privacy."""
    cost = Cost(checked_rho(rho))
    ledger = Ledger(path)
    number = ledger.charge(
        dataset, cost, ledger.dataset(dataset).unit, mechanism=BY_HAND, note=note
    )
    ledger.note_published(number)
    output.say(f"Entry:      {number}, rho = {rounded_up(cost.rho)}")
    output.say(f"Spent:      {ledger.dataset(dataset).spent_words()}")


def _row(dataset: Dataset) -> tuple[str, ...]:
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
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for dataset in datasets:
        for entry in dataset["entries"]:
            row = {**entry, "dataset": dataset["dataset"]}
            cells = ["" if row[column] is None else str(row[column]) for column in _COLUMNS]
            writer.writerow(cells if keep_formulas else map(disarmed, cells))
    return sink.getvalue()
