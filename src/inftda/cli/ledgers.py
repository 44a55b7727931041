"""`inftda ledger`: privacy budgets of data sets."""

import shlex
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Final

from inftda.cli import output
from inftda.cli.command import command
from inftda.options import GUARANTEE, Group, Json, Option, Rho, exact
from inftda.privacy.budget import BY_HAND, PERIOD_RULE, Budget, Cost, Dataset, Entry
from inftda.privacy.ledger import CANNOT_KNOW, Ledger, check_name
from inftda.privacy.unit import UNIT, Unit
from inftda.publication.manifest import checked_edition
from inftda.util.exact_numbers import checked_rho, rounded_down, rounded_up
from inftda.util.screen import Formats, Grid, Part

_Path = Annotated[Path, Option("File of the ledger.", "LEDGER", Path, is_argument=True)]
_Dataset = Annotated[str, Option("Name of the data set.", metavar="DATASET", is_argument=True)]


_Number = Fraction | None
_Epsilon = Annotated[
    _Number, Option("Epsilon of the budget; goes with delta.", "NUMBER", exact, panel=GUARANTEE)
]
_Delta = Annotated[_Number, Option("Delta of the budget.", "NUMBER", exact, panel=GUARANTEE)]
_PeriodRho = Annotated[
    _Number,
    Option(
        f"Additional budget for each period, in zCDP; {PERIOD_RULE}.",
        "NUMBER",
        exact,
        panel=GUARANTEE,
    ),
]
_PeriodEpsilon = Annotated[
    _Number, Option("Budget for each period, as epsilon.", "NUMBER", exact, panel=GUARANTEE)
]
_PeriodDelta = Annotated[
    _Number, Option("Delta of the budget for each period.", "NUMBER", exact, panel=GUARANTEE)
]


@command()
def create(  # noqa: PLR0913 - a budget and a unit
    path: _Path,
    dataset: _Dataset,
    *,
    rho: Rho = None,
    epsilon: _Epsilon = None,
    delta: _Delta = None,
    period_rho: _PeriodRho = None,
    period_epsilon: _PeriodEpsilon = None,
    period_delta: _PeriodDelta = None,
    unit: Annotated[Unit, Group(Unit)] = UNIT,
) -> None:
    """Give a data set a privacy budget; budget and privacy unit are fixed from then on."""
    budget = Budget.make(rho=rho, epsilon=epsilon, delta=delta)
    each_period = None
    if any(one is not None for one in (period_rho, period_epsilon, period_delta)):
        each_period = Budget.make(rho=period_rho, epsilon=period_epsilon, delta=period_delta)
    check_name(dataset)
    # An empty file is left over from an interrupted creation.
    is_new = not path.exists() or path.stat().st_size == 0
    ledger = Ledger.create(path) if is_new else Ledger(path)
    ledger.add(dataset, unit, budget, each_period)
    chosen = f"--ledger {shlex.quote(str(path))} --dataset {shlex.quote(dataset)}"
    chosen += "" if each_period is None else " --edition PERIOD"
    output.show([
        ("Data set", dataset),
        ("Unit", unit.describe()),
        *_budgets(budget, each_period),
        *([] if each_period is None else [("Periods", PERIOD_RULE)]),
        ("Next", f"inftda release ... {chosen}"),
    ])  # fmt: skip


@command(name="list")
def list_(path: _Path, *, json: Json = False) -> None:
    """List all data sets with the used and the remaining budget."""
    datasets = Ledger(path).datasets()
    if json:
        shown = [dataset.to_dict() for dataset in datasets]
        output.show_json({"datasets": shown, "cannot_know": CANNOT_KNOW})
        return
    output.show([Grid.of(datasets, _COLUMNS)])


@command()
def show(path: _Path, dataset: _Dataset, *, json: Json = False) -> None:
    """Show a data set: its privacy unit, its budget, and every release charged to it."""
    found = Ledger(path).dataset(dataset)
    if json:
        output.show_json({**found.to_dict(), "cannot_know": CANNOT_KNOW})
        return
    output.show([
        ("Data set", f"{found.name}, since {found.created}"),
        ("Unit", found.unit.describe()),
        *_budgets(found.budget, found.each_period),
        *_spent(found),
        *map(_line, found.entries),
        "",
        CANNOT_KNOW,
    ])  # fmt: skip


@command()
def charge(
    path: _Path,
    dataset: _Dataset,
    *,
    rho: Annotated[Fraction, Option("Cost in zCDP.", "NUMBER", exact)],
    note: Annotated[str, Option("Publication, date and publisher.", "TEXT")],
    period: Annotated[str, Option("Period of the publication, in the form of earlier ones.")] = "",
) -> None:
    """Charge a publication made by other means, for the privacy unit of the data set."""
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
    entry = ("Entry", f"{number}, rho = {rounded_up(cost.rho)}")
    output.show([entry, *_spent(ledger.dataset(dataset))])


def _budgets(budget: Budget, each_period: Budget | None) -> list[Part]:
    """State a budget, in words."""
    each = [] if each_period is None else [("Each", f"{each_period.describe()}, in each period")]
    return [("Budget", budget.describe()), *each]


def _spent(dataset: Dataset) -> list[Part]:
    """State the used budget, in all and in one period."""
    return [("Spent", line) for line in dataset.spent_words()]


def _line(entry: Entry) -> str:
    """Format an entry as one line."""
    state = "published" if entry.published else "charged, not known to be published"
    note = f": {entry.note}" if entry.note else ""
    return (
        f"  {entry.number}  {f'{entry.period}  ' if entry.period else ''}{entry.charged}  "
        f"{entry.mechanism}  rho = {rounded_up(entry.rho)}  ({state}){note}"
    )


def _whole(budget: Budget) -> str:
    """A budget as epsilon, where it is stated as that."""
    whole = "" if budget.epsilon is None else f"{float(budget.epsilon):.6g}"
    return whole if budget.delta is None else f"{whole} at delta {float(budget.delta):.6g}".strip()


def _epsilon_spent(dataset: Dataset) -> str:
    epsilon = dataset.spending.epsilon
    return "" if epsilon is None else rounded_up(epsilon)


def _left(dataset: Dataset) -> str:
    return rounded_down(max(dataset.budget.rho - dataset.spending.spent, Fraction(0)))


#: Columns of the list of data sets, with their formats.
_COLUMNS: Final[Formats] = {
    "data set": "{0.name}",
    "releases": lambda dataset: str(len(dataset.entries)),
    "rho": lambda dataset: f"{float(dataset.budget.rho):.6g}",
    "spent": lambda dataset: rounded_up(dataset.spending.spent),
    "left": _left,
    "epsilon spent": _epsilon_spent,
    "of": lambda dataset: _whole(dataset.budget),
}
