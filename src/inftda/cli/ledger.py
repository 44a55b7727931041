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
from inftda.publication.manifest import checked_edition
from inftda.tables import disarmed

_Path = Annotated[Path, Option("The ledger's file.", metavar="LEDGER", is_argument=True)]
_Dataset = Annotated[str, Option("Name of the data set.", metavar="DATASET", is_argument=True)]
_COLUMNS = (
    "dataset", "number", "period", "charged", "published", "rho", "epsilon", "delta", "mechanism",
    "note",
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
    period_rho: Annotated[
        Fraction | None,
        Option("A further budget for each period, in zCDP.", "NUMBER", exact, panel=PROMISE),
    ] = None,
    period_epsilon: Annotated[
        Fraction | None, Option("The same as strength.", "NUMBER", exact, panel=PROMISE)
    ] = None,
    period_delta: Annotated[
        Fraction | None, Option("Its probability of failure.", "NUMBER", exact, panel=PROMISE)
    ] = None,
    unit: Annotated[Unit, Group(Unit)] = UNIT,
) -> None:
    """Give a data set a budget for one unit of privacy; both are fixed from then on."""
    path, budget = Path(path), Budget.make(rho=rho, epsilon=epsilon, delta=delta)
    each_period = None
    if any(one is not None for one in (period_rho, period_epsilon, period_delta)):
        each_period = Budget.make(rho=period_rho, epsilon=period_epsilon, delta=period_delta)
    check_name(dataset)
    # An empty file is left over from an interrupted creation.
    is_new = not path.exists() or path.stat().st_size == 0
    ledger = Ledger.create(path) if is_new else Ledger(path)
    ledger.add(dataset, unit, budget, each_period)
    output.say(f"Data set:   {dataset}")
    output.say(f"Protected:  {unit.describe()}")
    _say_budget(budget, each_period)
    chosen = f"--ledger {shlex.quote(str(path))} --dataset {shlex.quote(dataset)}"
    chosen += "" if each_period is None else " --edition PERIOD"
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
    _say_budget(found.budget, found.each_period)
    _say_spent(found)
    for entry in found.entries:
        state = "published" if entry.published else "charged, not known to be published"
        note = f": {entry.note}" if entry.note else ""
        output.say(
            f"  {entry.number}  {f'{entry.period}  ' if entry.period else ''}{entry.charged}  "
            f"{entry.mechanism}  "
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
    period: Annotated[str, Option("The period it is about.")] = "",
) -> None:
    """Charge what was released by other means, for the data set's own unit of privacy."""
    cost = Cost(checked_rho(rho))
    ledger = Ledger(path)
    number = ledger.charge(
        dataset,
        cost,
        ledger.dataset(dataset).unit,
        mechanism=BY_HAND,
        note=note,
        period=checked_edition(period),
    )
    ledger.note_published(number)
    output.say(f"Entry:      {number}, rho = {rounded_up(cost.rho)}")
    _say_spent(ledger.dataset(dataset))


def _say_budget(budget: Budget, each_period: Budget | None) -> None:
    """What may be spent."""
    output.say(f"Budget:     {budget.describe()}")
    if each_period is not None:
        output.say(f"Each:       {each_period.describe()}, in each period")


def _say_spent(dataset: Dataset) -> None:
    """What is spent, in all and in one period."""
    for line in dataset.spent_words():
        output.say(f"Spent:      {line}")


def _row(dataset: Dataset) -> tuple[str, ...]:
    budget, epsilon = dataset.budget, dataset.spending.epsilon
    whole = "" if budget.epsilon is None else f"{float(budget.epsilon):.6g}"
    return (
        dataset.name,
        str(len(dataset.entries)),
        f"{float(budget.rho):.6g}",
        rounded_up(dataset.spending.spent),
        rounded_down(max(budget.rho - dataset.spending.spent, budget.rho * 0)),
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
