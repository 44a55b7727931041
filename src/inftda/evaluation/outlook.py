"""What a release would promise and how far off it would be, before any data is touched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, Final

import numpy as np
import pyarrow as pa

from inftda.errors import InftdaError
from inftda.evaluation.wanted import kept, least_budget
from inftda.options import (
    Accountant,
    Across,
    AreasFile,
    AxisFiles,
    Delta,
    Doc,
    Epsilon,
    Group,
    ImpossibleAreas,
    Levels,
    Method,
    Option,
    Order,
    Rho,
    Split,
    documented,
    errors,
    whole_numbers,
)
from inftda.privacy.bounds import guaranteed_errors
from inftda.privacy.plan import Plan, make_plan
from inftda.privacy.risk import Risk, risk_of
from inftda.privacy.unit import UNIT, Unit
from inftda.publication.query import TableFormat, converted
from inftda.publication.trust import describe_cross_totals, is_drowned, warnings
from inftda.reading.columns import COLUMNS, Columns
from inftda.screen import card
from inftda.tree import Tree

#: More areas than any country has; a stand-in for each is made in memory.
MAX_AREAS: Final = 20_000_000


@dataclass(frozen=True, repr=False)
class Outlook:
    """A plan, and the errors that it guarantees.

    Attributes:
        tree: axes and order of refinement.
        plan: noise of every level, and what is promised.
        errors: largest error of any cell, by number of the level.
        beta: probability that one of these is exceeded.
        total: number of trips, if it is known.
        want: errors that were asked for, by level.
        typical: whether these are typical errors, and not guaranteed ones.
    """

    tree: Tree
    plan: Plan
    errors: Mapping[int, int]
    beta: float
    total: int | None = None
    want: Mapping[str, int] = field(default_factory=dict)
    typical: bool = False

    @property
    def risk(self) -> Risk:
        """What it leaves to an attacker who knows all but one person."""
        return risk_of(self.plan)

    def wanted(self) -> list[str]:
        """What was asked for and what is kept, in words."""
        found = kept(self.tree, self.plan, self.want, None if self.typical else self.beta)
        return [one.describe(held(self.beta)) for one in found]

    def warnings(self) -> list[str]:
        """What to think about before anything is spent."""
        said = warnings(self.plan, total=self.total or None)
        if self.total is None:
            return said
        sigma = {level.index: level.sigma for level in self.plan.levels}
        drowned = [
            level.name
            for level in self.tree.levels
            if is_drowned(self.total, level.n_nodes, sigma.get(level.index, 0))
        ]
        if drowned:
            said.append(
                f"most numbers of {', '.join(drowned)} will be noise, as far as its mean flow tells"
            )
        return said

    def levels(self, *, as_: TableFormat = "arrow") -> Any:
        """One row for each level: possible cells, sigma (0 if nothing is drawn), largest error.

        Args:
            as_: "arrow", "pandas" or "polars".
        """
        sigma = {level.index: level.sigma for level in self.plan.levels}
        shown = [level for level in self.tree.levels if level.index in self.errors]
        table = pa.table({
            "level": pa.array([level.name for level in shown], pa.string()),
            "possible_cells": pa.array([float(level.n_nodes) for level in shown]),
            "sigma": pa.array([sigma.get(level.index, 0.0) for level in shown]),
            "max_error": pa.array([self.errors[level.index] for level in shown], pa.int64()),
        })  # fmt: skip
        return converted(table, as_)

    def __repr__(self) -> str:
        largest = max(self.errors.values())
        return (
            f"<plan: {self.plan.describe()}; {len(self.plan.levels)} levels with noise, "
            f"no cell off by more than {largest:,} ({held(self.beta)})>"
        )

    def _repr_html_(self) -> str:
        rows = [
            (row["level"], f"{row['possible_cells']:,.0f}", f"{row['sigma']:,.2f}",
             f"{row['max_error']:,}")
            for row in self.levels().to_pylist()
        ]  # fmt: skip
        notes = [
            ("Protected:", self.plan.unit.describe()),
            ("Guarantee:", self.plan.describe()),
            ("Noise:", self.plan.describe_noise()),
            ("Risk:", self.risk.describe()),
            *(
                [("Across:", words)]
                if (words := describe_cross_totals(self.tree, self.plan))
                else []
            ),
            *(("Wanted:", words) for words in self.wanted()),
            *(("Careful:", words) for words in self.warnings()),
            ("Errors:", f"with probability {held(self.beta)} no cell is further off than stated"),
        ]
        return card("Plan", ("level", "possible cells", "sigma", "max error"), rows, notes)


@documented
def plan(  # noqa: PLR0913 - the same options as a release
    areas: AreasFile = None,
    *,
    epsilon: Epsilon = None,
    delta: Delta = None,
    sizes: Annotated[
        Sequence[int] | None,
        Option(
            "Only the numbers of areas of each level, from coarse to fine, in place of areas.",
            metavar="N,N,...",
            parse=whole_numbers,
        ),
    ] = None,
    want: Annotated[
        Mapping[str, int] | None,
        Option(
            "The largest error of a level, guaranteed, or of totals across the tree such as "
            "'origin municipality', with 95 % probability; in place of epsilon or rho, which is "
            "then the smallest that keeps it.",
            metavar="LEVEL=ERROR",
            parse=errors,
            is_repeated=True,
        ),
    ] = None,
    typical: Annotated[
        bool,
        Option(
            "What is wanted of a level is the error that 95 % of its noise does not exceed, and "
            "not the guaranteed one."
        ),
    ] = False,
    total: Annotated[
        int | None,
        Option("Number of trips, if it is public: warns of levels lost in noise, and of delta."),
    ] = None,
    beta: Annotated[float, Option("Probability that a stated maximum error is exceeded.")] = 0.05,
    columns: Annotated[Columns, Doc("Columns of the table to come."), Group(Columns)] = COLUMNS,
    unit: Annotated[Unit, Doc("Who is protected."), Group(Unit)] = UNIT,
    axis: AxisFiles = None,
    levels: Levels = None,
    order: Order = None,
    impossible: ImpossibleAreas = None,
    rho: Rho = None,
    method: Method = "inftda",
    split: Split = None,
    across: Across = None,
    accountant: Accountant = "auto",
) -> Outlook:
    """What a release would promise and how far off it would be. Needs no data, spends nothing.

    Raises:
        InftdaError: something is wrong with what was asked for.

    Example:
        >>> plan(sizes=[2, 10], epsilon=1, delta=1e-6).levels().column("level").to_pylist()[:2]
        ['all > all', 'all > level 1']
    """
    if sizes is not None and (areas is not None or axis):
        raise InftdaError("`sizes=` stands for the areas; give either sizes or files, not both")
    if total is not None and total < 0:
        raise InftdaError(f"`total=` must be at least 0, got {total}")
    public = areas if sizes is None else balanced_areas(sizes)
    tree = columns.tree(
        public, axis=axis, levels=levels, order=order, impossible=impossible, unit=unit
    )
    budget = partial(
        make_plan,
        tree,
        unit,
        delta=delta,
        accountant=accountant,
        method=method,
        split=split,
        across=across,
    )
    if want:
        if epsilon is not None or rho is not None:
            raise InftdaError(
                "`want=` asks for the budget; leave out epsilon and rho, or leave out what is "
                "wanted"
            )

        def planned(number: float) -> Plan:
            return budget(rho=number) if delta is None else budget(epsilon=number)

        made = least_budget(tree, planned, want, None if typical else beta)
    else:
        made = budget(epsilon=epsilon, rho=rho)
    found = guaranteed_errors(tree, made, beta=beta)
    return Outlook(tree, made, found, beta, total, dict(want or {}), typical)


def held(beta: float) -> str:
    """1 - beta in per cent, with all its digits: 99.9% must not be called 100%."""
    return f"{(100 * (1 - Decimal(repr(beta)))).normalize():f}%"


def balanced_areas(sizes: Sequence[int]) -> pa.Table:
    """A stand-in hierarchy with the given number of areas on each level, split evenly.

    Raises:
        InftdaError: the sizes are not growing whole numbers.
    """
    numbers = list(sizes)
    if not numbers or numbers != sorted(numbers) or numbers[0] < 1:
        raise InftdaError(f"`sizes=` must be growing numbers such as 20,110,8092, got {sizes!r}")
    if numbers[-1] > MAX_AREAS:
        raise InftdaError(f"`sizes=` must be at most {MAX_AREAS:,}, got {numbers[-1]}")
    area = np.arange(numbers[-1], dtype=np.int64)
    columns = {}
    for level in range(len(numbers), 0, -1):
        columns[f"level {level}"] = area.astype(str)
        if level > 1:
            area = area * numbers[level - 2] // numbers[level - 1]
    return pa.table(dict(reversed(columns.items())))
