"""Plan a release: its guarantee and its errors, stated without data."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property, partial
from typing import Annotated, Any, Final

import numpy as np
import pyarrow as pa

from inftda.errors import InftdaError, PrivacyError
from inftda.options import (
    Accountant,
    AllowLargeDelta,
    AreasFile,
    AxisFiles,
    CrossTables,
    Delta,
    Doc,
    Epsilon,
    Group,
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
from inftda.planning.target_accuracy import kept, least_budget, typical_errors
from inftda.privacy.bounds import guaranteed_errors
from inftda.privacy.noise_plan import SPLITS, Plan, check_delta, make_plan, usual_split
from inftda.privacy.risk import Risk, risk_of
from inftda.privacy.unit import UNIT, Unit
from inftda.publication.query import TableFormat, converted
from inftda.publication.reliability import is_drowned, planned_totals, warnings
from inftda.publication.summary import guarantee_sentence, technical_details
from inftda.reading.columns import COLUMNS, Columns
from inftda.tree import Tree
from inftda.util.exact_numbers import rounded_up
from inftda.util.screen import Grid, Part, as_text, card

#: More areas than any country has; a stand-in for each is made in memory.
MAX_AREAS: Final = 20_000_000

_SPLITS: Final = (
    "Splits of the same budget over the levels, and their errors at the coarsest and the finest "
    "level with noise:"
)
_SPLITS_SHOWN: Final = (
    "95 %: 95 % of the noise is within this. max: the max error, which includes errors passed on "
    "from coarser levels."
)


@dataclass(frozen=True, slots=True)
class SplitOutlook:
    """Errors of a split of the budget at the coarsest and the finest level with noise.

    Attributes:
        split: its name.
        is_planned: whether it is the one that is planned.
        typical: for the two levels, a bound of 95 % of the noise.
        guaranteed: for the two levels, the largest error of any cell.
        risk: success of an attacker.
    """

    split: str
    is_planned: bool
    typical: tuple[int, int]
    guaranteed: tuple[int, int]
    risk: Risk

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "split": self.split,
            "is_planned": self.is_planned,
            "coarsest": {"typical_error": self.typical[0], "max_error": self.guaranteed[0]},
            "finest": {"typical_error": self.typical[1], "max_error": self.guaranteed[1]},
            "success": self.risk.success,
        }


@dataclass(frozen=True, repr=False)
class Outlook:
    """A plan, and the errors that it guarantees.

    Attributes:
        tree: axes and order of refinement.
        plan: noise of every level, and the guarantee.
        errors: largest error of any cell, by number of the level.
        beta: probability that one of these is exceeded.
        total: number of trips, if it is known.
        want: errors that were asked for, by level.
        typical: whether these are typical errors, and not guaranteed ones.
        other: the plan with the smallest budget for the other kind of error, if there is one.
        split: the split that is planned, if it has a name.
        planned: from another split to the plan of the same budget.
    """

    tree: Tree
    plan: Plan
    errors: Mapping[int, int]
    beta: float
    total: int | None = None
    want: Mapping[str, int] = field(default_factory=dict)
    typical: bool = False
    other: Plan | None = None
    split: str | None = None
    planned: Callable[..., Plan] | None = field(default=None, compare=False)

    @cached_property
    def splits(self) -> tuple[SplitOutlook, ...]:
        """Errors of each named split of the same budget.

        Splits whose noise would be too wide to be drawn are left out.
        """
        found: list[SplitOutlook] = []
        if self.planned is None:
            return ()
        for split in SPLITS:
            with suppress(PrivacyError):
                plan = self.plan if split == self.split else self.planned(split=split)
                first, last = plan.levels[0].index, plan.levels[-1].index
                typical, largest = (
                    (errors[first], errors[last])
                    for errors in (
                        typical_errors(self.tree, plan),
                        guaranteed_errors(self.tree, plan, self.beta),
                    )
                )
                is_planned = plan is self.plan
                found.append(SplitOutlook(split, is_planned, typical, largest, risk_of(plan)))
        return tuple(found)

    @property
    def risk(self) -> Risk:
        """Success probabilities of an attacker who knows everybody else's trips."""
        return risk_of(self.plan)

    def wanted(self) -> list[str]:
        """State the requested errors and those of the plan, in words."""
        found = kept(self.tree, self.plan, self.want, None if self.typical else self.beta)
        words = [one.describe(held(self.beta)) for one in found]
        if self.other is None:
            return words
        plans = (self.plan, self.other) if self.typical else (self.other, self.plan)
        typical, guaranteed = (
            f"rho = {rounded_up(plan.rho)}"
            if plan.epsilon is None
            else f"epsilon = {rounded_up(plan.epsilon)}"
            for plan in plans
        )
        both = (
            f"as guaranteed errors this takes {guaranteed}, as typical errors (95 % of the noise) "
            f"{typical}; planned is the {'latter' if self.typical else 'former'}"
        )
        return [*words, both]

    def warnings(self) -> list[str]:
        """Warnings about delta and about levels whose mean flow is below the noise."""
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
            said.append(f"{', '.join(drowned)}: the mean flow is far below the noise")
        return said

    def levels(self, *, as_: TableFormat = "arrow") -> Any:
        """One row for each level: possible cells, noise, and largest error.

        `sigma` is the standard deviation of the noise, 0 if none is drawn.

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

    def __str__(self) -> str:
        return as_text(self.shown())

    def _repr_html_(self) -> str:
        return card("Plan", self.shown())

    def shown(self) -> list[Part]:
        """Parts of the output: guarantee, errors of each level, technical details."""
        held_for = (
            f"sigma: standard deviation of the noise. With probability {held(self.beta)}, no "
            "number has an error above the max error of its level."
        )
        if self.total is not None:
            held_for += (
                " Warnings assume evenly spread trips; concentrated tables do better. The release "
                "repeats them from published counts."
            )
        return [
            ("Guarantee", guarantee_sentence(self.plan)),
            *(("Wanted", words) for words in self.wanted()),
            *(("Warning", words) for words in self.warnings()),
            Grid(("level", "possible cells", "sigma", "max error", ""), [*self._level_rows()]),
            held_for,
            *self._splits(),
            "",
            *technical_details(self.tree, self.plan, self.plan.unit.describe()),
            ("Attacker", self.risk.describe()),
            *([self._cross_tables()] if self.plan.tables else []),
        ]

    def _level_rows(self) -> Iterator[tuple[str, ...]]:
        noise = {level.index: level for level in self.plan.levels}
        for level in self.tree.levels:
            if level.index not in self.errors:
                continue
            measured = noise.get(level.index)
            if measured is None:
                sigma, note = "-", "not split at this level; uses no budget"
            else:
                mean = math.inf if self.total is None else self.total / level.n_nodes
                is_lost = mean < measured.sigma
                sigma = f"{measured.sigma:,.2f}"
                note = f"noise exceeds the mean flow of {mean:.3g}" if is_lost else ""
            if level.index == 0 and measured is None:
                note = "public"
            yield level.name, f"{level.n_nodes:,}", sigma, f"{self.errors[level.index]:,}", note

    def _splits(self) -> Iterator[Part]:
        """One line for each split that has a name."""
        if not self.splits:
            return
        yield from ("", _SPLITS)
        yield Grid.of(
            self.splits,
            {
                "split": "{0.split}",
                "coarsest 95 %": "{0.typical[0]:,}",
                "coarsest max": "{0.guaranteed[0]:,}",
                "finest 95 %": "{0.typical[1]:,}",
                "finest max": "{0.guaranteed[1]:,}",
                "attacker right": "{0.risk.figures[0]}",
                "": lambda split: "planned" if split.is_planned else "",
            },
        )
        yield _SPLITS_SHOWN

    def _cross_tables(self) -> Grid:
        widths = self._half_widths()
        within = {
            table.depths: f"\N{PLUS-MINUS SIGN}{widths[table.depths]:,}"
            for table in self.plan.tables
            if table.depths in widths
        }
        return Grid.of(
            self.plan.tables,
            {
                "cross table": "{0.name}",
                "cells": "{0.cells:,}",
                "sigma": "{0.sigma:,.2f}",
                "totals within": lambda table: within.get(table.depths, ""),
            },
        )

    def _half_widths(self) -> dict[tuple[int, ...], int]:
        """Half widths of the 95 % intervals of measured totals, by cross table."""
        totals = planned_totals(self.tree, self.plan)
        return {table.depths: noise.half_width() for table, noise in totals}

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the plan, the errors of its levels and tables, risk and warnings."""
        described = self.plan.to_dict()
        for level in described["levels"]:
            level["max_error"] = self.errors[level["index"]]
        widths = self._half_widths()
        for table in described["cross_tables"]:
            table["half_width"] = widths.get(tuple(table["depths"]))
        said = {"wanted": self.wanted(), "warnings": self.warnings()}
        described["splits"] = [split.to_dict() for split in self.splits]
        return described | {"risk": self.risk.to_dict()} | said


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
            "The largest guaranteed error of a level, or the error of marginal totals such as "
            "'origin municipality' with 95 % probability; in place of epsilon or rho, which is "
            "then the smallest that keeps it. A percentage is of a number: "
            "'province > province=10% of 500'.",
            metavar="LEVEL=ERROR",
            parse=errors,
            is_repeated=True,
        ),
    ] = None,
    typical: Annotated[
        bool,
        Option(
            "The target of a level is the error that 95 % of its noise does not exceed, instead "
            "of the guaranteed one."
        ),
    ] = False,
    total: Annotated[
        int | None,
        Option("Number of trips, if it is public: warns of levels lost in noise, and of delta."),
    ] = None,
    beta: Annotated[float, Option("Probability that a stated maximum error is exceeded.")] = 0.05,
    columns: Annotated[Columns, Doc("Columns of the table to come."), Group(Columns)] = COLUMNS,
    unit: Annotated[Unit, Doc("Privacy unit."), Group(Unit)] = UNIT,
    axis: AxisFiles = None,
    levels: Levels = None,
    order: Order = None,
    rho: Rho = None,
    method: Method = "inftda",
    split: Split = None,
    cross_tables: CrossTables = None,
    accountant: Accountant = "auto",
    allow_large_delta: AllowLargeDelta = False,
) -> Outlook:
    """State guarantee and errors of a release to come. Needs no data and uses no budget.

    Raises:
        InftdaError: an argument is wrong, or arguments contradict one another.

    Example:
        >>> plan(sizes=[2, 10], epsilon=1, delta=1e-6).levels().column("level").to_pylist()[:2]
        ['all > all', 'all > level 1']
    """
    if sizes is not None and (areas is not None or axis):
        raise InftdaError("`sizes=` stands for the areas; give either sizes or files, not both")
    if total is not None and total < 0:
        raise InftdaError(f"`total=` must be at least 0, got {total}")
    public = areas if sizes is None else balanced_areas(sizes)
    tree = columns.tree(public, axis=axis, levels=levels, order=order, unit=unit)
    budget = partial(
        make_plan,
        tree,
        unit,
        delta=delta,
        accountant=accountant,
        method=method,
        split=split,
        cross_tables=cross_tables,
    )
    other = None
    if want:
        if epsilon is not None or rho is not None:
            raise InftdaError(
                "`want=` asks for the budget; leave out epsilon and rho, or leave out what is "
                "wanted"
            )

        def planned(number: float) -> Plan:
            return budget(rho=number) if delta is None else budget(epsilon=number)

        kinds = (None, beta) if typical else (beta, None)
        made = least_budget(tree, planned, want, kinds[0])
        if not want.keys().isdisjoint(level.name for level in tree.levels):
            with suppress(InftdaError):  # no budget is enough for the other kind
                other = least_budget(tree, planned, want, kinds[1])
    else:
        made = budget(epsilon=epsilon, rho=rho)
    check_delta(made, total=total, allowed=allow_large_delta)
    found = guaranteed_errors(tree, made, beta=beta)
    used = usual_split(method)[0] if split is None else split
    by_rho = rho is not None or (want and delta is None)
    strength = {"rho": made.rho} if by_rho else {"epsilon": made.epsilon}
    return Outlook(
        tree,
        made,
        found,
        beta,
        total,
        dict(want or {}),
        typical,
        other,
        used if isinstance(used, str) else None,
        partial(budget, **strength),
    )


def held(beta: float) -> str:
    """1 - beta in per cent, with all its digits: 99.9 % must not be called 100 %."""
    return f"{(100 * (1 - Decimal(repr(beta)))).normalize():f} %"


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
