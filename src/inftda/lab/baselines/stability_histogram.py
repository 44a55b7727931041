"""Stability histogram: Laplace noise on positive leaves, small results dropped (paper, section 2).

There are no false positives, and large flows are accurate; small flows vanish, so sums over
areas are far too low. It does not need to know which cells are possible.

The paper states scale and threshold for one trip under substitution: Laplace noise of scale
2 / epsilon and threshold 1 + 2 ln(2 / delta) / epsilon. For m trips the scale follows the l1
sensitivity, and the threshold must hide every cell that only one person's trips make positive: at
most m cells with one trip each, or (repeated trips) one cell with m.

Privacy:
    (epsilon, delta), see docs/proofs/stability-histogram.md: a person's own cells stay
    below the threshold except with probability delta, all others are the Laplace mechanism.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import expm1, floor, log, log1p
from typing import Any

import numpy as np

from inftda.errors import BudgetError, PrivacyError
from inftda.lab.baselines.leaf_changes import l1_sensitivity, max_cell_change, max_new_cells
from inftda.lab.baselines.one_machine import on_one_machine
from inftda.mechanisms.base import Setting
from inftda.mechanisms.description import Description
from inftda.mechanisms.step import Nodes
from inftda.noise.discrete_laplace import DiscreteLaplace
from inftda.privacy.numbers import (
    check_drawable,
    checked_delta,
    checked_epsilon,
    rounded_up,
)
from inftda.privacy.records import decode, with_unit
from inftda.privacy.spending import Measures, Spending
from inftda.privacy.unit import PrivacyUnit
from inftda.tree import Tree

ACCOUNTANT = "stability"
#: Logarithms and products below are a few roundings long; this slack covers them.
SLACK = 1e-12
BLOCK_CELLS = 1 << 18


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

    @property
    def noise(self) -> str:
        """Its noise in a few words."""
        return f"discrete Laplace, scale {float(self.scale):.5g}, dropped up to {self.threshold}"

    @property
    def sigma2(self) -> None:
        """The noise is not Gaussian."""

    @property
    def sensitivity(self) -> None:
        """The guarantee rests on the l1 sensitivity and on the threshold."""

    @property
    def rho(self) -> None:
        """The guarantee is not zCDP."""

    def to_dict(self) -> dict[str, Any]:
        """As it is written to a manifest."""
        return {
            "index": self.index,
            "name": self.name,
            "cells": self.cells,
            "scale": str(self.scale),
            "threshold": self.threshold,
        }


@dataclass(frozen=True)
class StabilityPlan:
    """What a stability histogram draws and what it promises."""

    unit: PrivacyUnit
    epsilon: float
    delta: float
    levels: tuple[StabilityLevel, ...]

    @property
    def rho(self) -> None:
        """The guarantee is not zCDP."""

    @property
    def scope(self) -> Measures:
        """Only true leaves get noise."""
        return "positive leaves"

    @property
    def across(self) -> Fraction:
        """Nothing is measured off the tree."""
        return Fraction(0)

    @property
    def tables(self) -> tuple[()]:
        """Nothing else is measured."""
        return ()

    def describe(self) -> str:
        """The guarantee in one line."""
        promise = f"({rounded_up(self.epsilon)}, {rounded_up(self.delta)})"
        return f"{promise}-differential privacy, stability histogram"

    def verify(self, tree: Tree | None = None) -> None:
        """Recompute scale and threshold; with a tree, check that the leaves are measured.

        Raises:
            BudgetError: the plan promises more than its noise gives.
        """
        epsilon, delta = checked_epsilon(self.epsilon), checked_delta(self.delta)
        scale, threshold = needed(self.unit, epsilon, delta)
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

    def spending(self) -> Spending[StabilityLevel]:
        """A fresh account of what has been drawn: use one for each release."""
        return Spending(self.levels)

    def to_dict(self) -> dict[str, Any]:
        """As it is written to a manifest."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rho": None,
            "accountant": ACCOUNTANT,
            **self.unit.to_dict(),
            "levels": [level.to_dict() for level in self.levels],
        }

    @classmethod
    def from_dict(cls, data: Any) -> "StabilityPlan":
        """Read back what `to_dict` gives, and check that the promise follows from the noise.

        Raises:
            BudgetError: something is missing or of another kind, or scale or threshold are too
                small for what is promised.
            PrivacyError: a parameter is out of range.
        """
        plan = decode(cls, with_unit(data), what="the plan", error=BudgetError)
        stated = data.get("accountant")
        if stated != ACCOUNTANT:
            raise BudgetError(f"the accountant of the plan must be {ACCOUNTANT!r}, got {stated!r}")
        plan.verify()
        return plan


def make_stability_plan(  # noqa: PLR0913 - the same words as every other plan
    tree: Tree,
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
    strength, failure = checked_epsilon(epsilon), checked_delta(delta)
    scale, threshold = needed(unit, strength, failure)
    check_drawable(scale**2)
    leaves = tree.levels[-1]
    level = StabilityLevel(leaves.index, leaves.name, leaves.n_nodes, scale, threshold)
    return StabilityPlan(unit, strength, failure, (level,))


def needed(unit: PrivacyUnit, epsilon: float, delta: float) -> tuple[Fraction, int]:
    """Smallest scale and threshold that keep the promise.

    Raises:
        PrivacyError: delta is too large for so small an epsilon.
    """
    # The epsilon that is stated is the decimal number, not the float nearest to it.
    scale = Fraction(l1_sensitivity(unit)) / Fraction(repr(epsilon))
    if -log1p(-delta) > 1 / float(scale) or expm1(-1 / float(scale)) == 0:
        raise PrivacyError(
            f"delta = {delta:g} is too large for epsilon = {epsilon:g} and {unit.trips} trips; "
            "use a smaller delta"
        )
    single = 1 + float(scale) * log(2 * max_new_cells(unit) / delta)
    piled = max_cell_change(unit) + float(scale) * log(2 / delta)
    # Whole counts above t are those above its whole part.
    return scale, floor(max(single, piled) * (1 + SLACK))


@dataclass(frozen=True)
class StabilityHistogram:
    """Noise on positive leaves and a threshold; no false positives."""

    name: str = "stability-histogram"

    @property
    def description(self) -> Description:
        """Noise on positive leaves."""
        return Description(
            measures="positive leaves",
            values="positive",
            read_plan=StabilityPlan.from_dict,
            takes_sampler=False,
        )

    @property
    def options(self) -> Mapping[str, Any]:
        """None; scale and threshold are part of the guarantee."""
        return {}

    def plan(self, tree: Tree, unit: PrivacyUnit, **budget: Any) -> StabilityPlan:
        """Scale and threshold for the leaves."""
        return make_stability_plan(tree, unit, **budget)

    def run(self, truth: Any, setting: Setting[Any, Any]) -> Iterator[Any]:
        """Released leaves in tree order."""
        counts, engine = on_one_machine(truth, setting)
        areas, count = counts.leaves
        charged = setting.spending.charge(counts.tree.levels[-1].index)
        sampler = DiscreteLaplace(charged.scale)
        name = counts.tree.levels[-1].name

        def noise_block(number: int) -> Nodes:
            here = slice(number * BLOCK_CELLS, (number + 1) * BLOCK_CELLS)
            value = np.empty(len(count[here]), np.int64)
            sampler.fill(value, setting.source.stream(number))
            value += count[here]
            kept = value > charged.threshold
            return Nodes(tuple(axis[here][kept] for axis in areas), value[kept])

        # The number of positive cells is confidential, so progress only says done or not.
        setting.progress(name, 0, 1)
        n_blocks = max(1, -(-len(count) // BLOCK_CELLS))
        yield from engine.map(noise_block, range(n_blocks))
        setting.progress(name, 1, 1)
        setting.spending.finish()
