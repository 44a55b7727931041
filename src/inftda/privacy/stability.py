"""Scale and threshold of the stability histogram, for every unit of privacy.

The paper states them for one trip under substitution: Laplace noise of scale 2 / epsilon and
threshold 1 + 2 ln(2 / delta) / epsilon. For m trips the scale follows the l1 sensitivity,
and the threshold must hide every cell that only one person's trips make positive: at most
m cells with one trip each, or (repeated trips) one cell with m. Proof:
`docs/proofs/stability-histogram.md`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import expm1, floor, log, log1p
from typing import Any

from inftda.errors import BudgetError, PrivacyError
from inftda.privacy.levels import (
    check_drawable,
    checked_delta,
    checked_epsilon,
    exact_number,
    rounded_up,
)
from inftda.privacy.unit import UNIT_KEYS, Levels, PrivacyUnit

ACCOUNTANT = "stability"
#: Logarithms and products below are a few roundings long; this slack covers them.
SLACK = 1e-12


@dataclass(frozen=True)
class StabilityLevel:
    """The one level that is measured: the leaves.

    Attributes:
        index: its number in the tree.
        name: for people.
        cells: number of possible cells.
        scale: of the discrete Laplace noise.
        threshold: noisy counts up to this are dropped.
    """

    index: int
    name: str
    cells: int
    scale: Fraction
    threshold: int


@dataclass(frozen=True)
class StabilityPlan:
    """What a stability histogram draws and what it promises."""

    unit: PrivacyUnit
    epsilon: float
    delta: float
    levels: tuple[StabilityLevel, ...]

    def describe(self) -> str:
        """The guarantee in one line."""
        promise = f"({rounded_up(self.epsilon)}, {rounded_up(self.delta)})"
        return f"{promise}-differential privacy, stability histogram"

    def verify(self, tree: Levels | None = None) -> None:
        """Recompute scale and threshold; with a tree, check that the leaves are measured.

        Raises:
            BudgetError: the plan promises more than its noise gives.
        """
        scale, threshold = needed(self.unit, self.epsilon, self.delta)
        if len(self.levels) != 1:
            raise BudgetError("a stability histogram measures the leaves and nothing else")
        level = self.levels[0]
        if level.scale < scale or level.threshold < threshold:
            raise BudgetError("scale and threshold are too small for what is promised")
        if tree is not None:
            leaves = tree.levels[-1]
            stated = level.index, level.name, level.cells
            if stated != (leaves.index, leaves.name, leaves.n_nodes):
                raise BudgetError("the plan does not measure the leaves of this tree")

    def spending(self) -> "StabilitySpending":
        """A fresh record of what is drawn."""
        return StabilitySpending(self)

    def to_dict(self) -> dict[str, Any]:
        """As it is written to a manifest."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rho": None,
            "accountant": ACCOUNTANT,
            **self.unit.to_dict(),
            "levels": [
                {
                    "index": level.index,
                    "name": level.name,
                    "cells": level.cells,
                    "scale": str(level.scale),
                    "threshold": level.threshold,
                }
                for level in self.levels
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "StabilityPlan":
        """Read back what `to_dict` gives, and check that the promise follows from the noise.

        Raises:
            PrivacyError: something is missing or of another kind.
            BudgetError: scale or threshold are too small for what is promised.
        """
        try:
            unit = PrivacyUnit.from_dict({key: data[key] for key in UNIT_KEYS})
            epsilon, delta = checked_epsilon(data["epsilon"]), checked_delta(data["delta"])
            levels = tuple(
                StabilityLevel(
                    int(level["index"]),
                    str(level["name"]),
                    int(level["cells"]),
                    exact_number(str(level["scale"])),
                    int(level["threshold"]),
                )
                for level in data["levels"]
            )
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            raise PrivacyError("the plan of the stability histogram is damaged") from None
        plan = cls(unit, epsilon, delta, levels)
        plan.verify()
        return plan


class StabilitySpending:
    """What has been drawn of a stability histogram."""

    def __init__(self, plan: StabilityPlan) -> None:
        self._waiting = {level.index: level for level in plan.levels}

    def is_planned(self, index: int) -> bool:
        """Whether a level gets noise and has not had it yet."""
        return index in self._waiting

    def charge(self, index: int) -> StabilityLevel:
        """Scale and threshold of a level, once.

        Raises:
            BudgetError: the level is not planned, or was charged before.
        """
        if index not in self._waiting:
            raise BudgetError(f"level {index} is not planned, or was drawn before")
        return self._waiting.pop(index)

    def finish(self) -> None:
        """Make sure that everything planned was drawn.

        Raises:
            BudgetError: something was not.
        """
        if self._waiting:
            raise BudgetError("a planned level was not drawn")


def make_stability_plan(  # noqa: PLR0913 - the same words as every other plan
    tree: Levels,
    unit: PrivacyUnit,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: Fraction | float | None = None,
    accountant: str = "auto",
    split: Any = "uniform",
) -> StabilityPlan:
    """Plan a stability histogram.

    Raises:
        PrivacyError: epsilon or delta is missing or invalid, or an option does not apply.
    """
    if rho is not None or accountant != "auto" or split != "uniform":
        raise PrivacyError(
            "the stability histogram takes epsilon and delta only; leave out rho, accountant "
            "and split"
        )
    if epsilon is None or delta is None:
        raise PrivacyError("the stability histogram needs both epsilon and delta")
    strength, odds = checked_epsilon(epsilon), checked_delta(delta)
    scale, threshold = needed(unit, strength, odds)
    check_drawable(scale**2)
    leaves = tree.levels[-1]
    level = StabilityLevel(leaves.index, leaves.name, leaves.n_nodes, scale, threshold)
    return StabilityPlan(unit, strength, odds, (level,))


def needed(unit: PrivacyUnit, epsilon: float, delta: float) -> tuple[Fraction, int]:
    """Smallest scale and threshold that keep the promise.

    Raises:
        PrivacyError: delta is too large for so small an epsilon.
    """
    # The epsilon that is stated is the decimal number, not the float nearest to it.
    scale = Fraction(unit.l1_sensitivity) / Fraction(repr(epsilon))
    if -log1p(-delta) > 1 / float(scale) or expm1(-1 / float(scale)) == 0:
        raise PrivacyError(
            f"delta = {delta:g} is too large for epsilon = {epsilon:g} and {unit.trips} trips; "
            "use a smaller delta"
        )
    single = 1 + float(scale) * log(2 * unit.max_new_cells / delta)
    piled = unit.max_cell_change + float(scale) * log(2 / delta)
    # Whole counts above t are those above its whole part.
    return scale, floor(max(single, piled) * (1 + SLACK))
