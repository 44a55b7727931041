"""What a plan has for one level of the tree, or for one table off it."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from inftda.errors import PrivacyError
from inftda.lattice import Table, off_tree_tables
from inftda.privacy.accounting import Noise
from inftda.privacy.numbers import exact_number
from inftda.privacy.unit import Level, Levels
from inftda.tree import Tree

#: Of the budget: with more for tables off the tree, little would be left for the tree itself.
MAX_ACROSS = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class LevelPlan:
    """One measured level.

    Attributes:
        index: number of the level in the tree; 0 is the root.
        name: for people.
        cells: number of possible nodes.
        squared_sensitivity: square of its l2 sensitivity.
        sigma2: variance parameter of its discrete Gaussian noise, exact.
        rho: what it costs in zCDP: squared_sensitivity / (2 sigma2), exact.
    """

    index: int
    name: str
    cells: int
    squared_sensitivity: int
    sigma2: Fraction
    rho: Fraction

    @classmethod
    def of(cls, level: Level, noise: Noise) -> "LevelPlan":
        """A level with its noise."""
        return cls(
            level.index,
            level.name,
            level.n_nodes,
            noise.squared_sensitivity,
            noise.sigma2,
            noise.rho,
        )

    @property
    def sigma(self) -> float:
        """Noise scale, to the nearest float; the noise itself is drawn from `sigma2`."""
        return math.sqrt(self.sigma2)

    @property
    def sensitivity(self) -> float:
        """Its l2 sensitivity, to the nearest float."""
        return math.sqrt(self.squared_sensitivity)

    @property
    def noise(self) -> str:
        """Its noise in a few words."""
        return f"discrete Gaussian, σ = {self.sigma:.5g}"  # noqa: RUF001 - a Greek letter

    def to_dict(self) -> dict[str, Any]:
        """As it is written to a manifest; `sigma` and `sensitivity` are for people."""
        return {
            "index": self.index,
            "name": self.name,
            "cells": self.cells,
            "sensitivity": self.sensitivity,
            "squared_sensitivity": self.squared_sensitivity,
            "sigma": self.sigma,
            "sigma2": str(self.sigma2),
            "rho": str(self.rho),
        }


@dataclass(frozen=True, slots=True)
class TablePlan(LevelPlan):
    """One measured table off the tree; `index` is the level whose step it belongs to.

    Attributes:
        depths: level of each axis's hierarchy, 0 where the axis is summed up.
    """

    depths: tuple[int, ...]

    @classmethod
    def at(cls, table: Table, noise: Noise) -> "TablePlan":
        """A table with its noise."""
        level = LevelPlan.of(table, noise)
        return cls(
            level.index,
            level.name,
            level.cells,
            level.squared_sensitivity,
            level.sigma2,
            level.rho,
            table.depths,
        )

    def to_dict(self) -> dict[str, Any]:
        """As it is written to a manifest."""
        # The parent is named: with slots, super() without arguments is that of another class.
        return {**LevelPlan.to_dict(self), "depths": list(self.depths)}


def tables_off(tree: Levels) -> tuple[Table, ...]:
    """Tables off a tree that are measured.

    Raises:
        PrivacyError: there are levels only, and no axes to know the tables from.
    """
    if not isinstance(tree, Tree):
        raise PrivacyError("tables off the tree can only be measured for a tree with axes")
    return off_tree_tables(tree)


def checked_across(across: Fraction | float | str) -> Fraction:
    """A part of the budget as the number it is written as: 0.08 is eight hundredths.

    Raises:
        PrivacyError: it is not a number, or not a part that makes sense.
    """
    share = None
    if isinstance(across, Fraction | int | float | str) and not isinstance(across, bool):
        try:
            share = exact_number(across)
        except (ValueError, ZeroDivisionError):
            share = None
    if share is None or not 0 <= share <= MAX_ACROSS:
        raise PrivacyError(
            f"across must be a part of the budget from 0 to {float(MAX_ACROSS):g}, such as 0.08, "
            f"got {str(across)[:40]!r}"
        )
    return share
