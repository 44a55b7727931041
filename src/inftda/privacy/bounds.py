"""Guaranteed errors: upper bounds of the error of a release, computed without the data.

The paper's theorem 4 bounds the error of a level by twice its largest noise plus the error of the
level above, so its bounds grow with depth. Actual errors do not: an excess is shared among the
children, and a deficit is taken from the children that have counts. The bounds here use that. They
hold for every table, with tails of the noise that are never understated. Proofs:
`docs/proofs/error-bounds.md`.

This module must never use counts: the bounds are guarantees, not measurements.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from inftda.errors import BudgetError, PrivacyError
from inftda.noise.distribution import Noise
from inftda.noise.tails import (
    RELATIVE_SLACK,
    gaussian_quantile,
    log_inflation,
    log_theta_excess,
    tail_bound,
)
from inftda.privacy.noise_plan import Plan, measured_levels, measured_tables
from inftda.tree import Tree, TreeLevel

_MIN_BETA: Final = 1e-9
_SHARES: Final = (0.45, 0.45, 0.1)  # of a level's beta: too much, too little, a corner case
_LOOSEST: Final = 50.0  # beyond this log factor the lattice bound is no use
_EXACT_FACTORS: Final = 64


@dataclass(frozen=True, slots=True)
class ErrorBound:
    """Largest error of all released counts of one level.

    Attributes:
        index: number of the level in the tree.
        name: name of the level, for people.
        cells: number of possible nodes, false positives included.
        over: released minus true count is at most this.
        under: true minus released count is at most this.
    """

    index: int
    name: str
    cells: int
    over: int
    under: int

    @property
    def max_error(self) -> int:
        """The larger of `over` and `under`."""
        return max(self.over, self.under)


def guaranteed_errors(tree: Tree, plan: Plan, beta: float = 0.05) -> dict[int, int]:
    """Largest absolute error of any cell, by number of the level; see `error_bounds`."""
    return {bound.index: bound.max_error for bound in error_bounds(tree, plan, beta)}


def error_bounds(tree: Tree, plan: Plan, beta: float = 0.05) -> tuple[ErrorBound, ...]:
    """Largest errors at every level of a top-down release, root first.

    Args:
        tree: the released levels and cross tables.
        plan: its noise.
        beta: probability that some bound, at any level, does not hold.

    Returns:
        One bound for each level, trivial ones included. With probability 1 - beta all
        `over` and `under` hold together. Adjustments to cross tables are included.
    """
    if not isinstance(beta, int | float) or not _MIN_BETA <= beta < 1:
        raise PrivacyError(f"beta must be at least {_MIN_BETA:g} and below 1, got {beta!r}")
    planned = {level.index: level.noise for level in plan.levels}
    if [level.index for level in measured_levels(tree, plan.unit)] != sorted(planned):
        raise BudgetError("the plan does not measure the levels of this tree; plan anew")
    each = beta / len(planned)
    bounds: list[ErrorBound] = []
    moved_at = _moved(tree, plan)
    over = under = 0
    extra = 0  # what adjustments of the levels so far may add to `over`, by `_moved`
    for level in tree.levels:
        if level.index in planned:
            noise = _Drawn.of(level, planned[level.index])
            if level.index == 0:
                over = under = noise.quantile_of_largest(each)
            else:
                high, low, corner = (each * share for share in _SHARES)
                moved = moved_at.get(level.index, (0, 0))
                corner_case = noise.corner(over + extra, corner)
                over = max(over, noise.too_much(over, high))
                under = max(under, max(noise.too_little(low), corner_case) + 2 * max(moved))
                extra = max(extra, sum(moved) + 1 if any(moved) else 0)
        bounds.append(ErrorBound(level.index, level.name, level.n_nodes, over + extra, under))
    return tuple(bounds)


def _moved(tree: Tree, plan: Plan) -> dict[int, tuple[int, int]]:
    """How far adjustments to cross tables may raise and lower noisy counts, by level.

    By theorem 4 of docs/proofs/cross-tables.md, `over` grows by the sum of the two and 1 more, for
    the level where that is largest, and `under` by twice the larger one, at its own level.
    """
    levels = {level.index: level for level in plan.levels}
    planned = {table.depths: table for table in plan.tables}
    moved: dict[int, tuple[int, int]] = {}
    measured = measured_tables(tree, is_pure=plan.is_pure) if planned else ()
    for table in measured:
        level = levels[table.index]
        ratio = (level.sigma / planned[table.depths].sigma) ** 2
        limits = table.limits(ratio, table.level.most_parents)
        # Rounded up: a count moves by whole numbers, and sigma to the nearest float is not less
        # than what the kernel clips at, which is the same float.
        up, down = math.ceil(limits.up * level.sigma), math.ceil(limits.down * level.sigma)
        moved[table.index] = up, max(down, moved.get(table.index, (0, 0))[1])
    return moved


@dataclass(frozen=True)
class _Drawn(ABC):
    """Noise of one level: the number of draws, the largest number of siblings, the distribution."""

    cells: int
    siblings: int
    noise: Noise

    @classmethod
    def of(cls, level: TreeLevel, noise: Noise) -> "_Drawn":
        """Noise of a level."""
        kind = _Laplace if noise.is_laplace else _Gaussian
        return kind(level.n_nodes, level.max_children, noise)

    @abstractmethod
    def too_much(self, above: int, beta: float) -> int:
        """Bound of released minus true count, when parents have `above` too much at most.

        It is z - mean(z) + (above + b - 1) / b for a node with b siblings.
        """

    @abstractmethod
    def below_mean(self, b: int, p: float) -> float:
        """Some t with P[-z - mean(z) >= t] <= p for b siblings; falls with b."""

    def quantile_of_largest(self, beta: float) -> int:
        """Least t with P[all |z| <= t] >= 1 - beta, for independent draws."""
        return _least(tail_bound(self.noise, 1), -math.expm1(math.log1p(-beta) / self.cells) / 2)

    def too_little(self, beta: float) -> int:
        """Bound of true minus released count unless the parent lacks more: noise of a pair."""
        pairs = 1.5 * self.cells * (self.siblings - 1)
        one, two = tail_bound(self.noise, 1), tail_bound(self.noise, 2)
        bound = _least(lambda t: pairs * two(t) + self.cells * one(t), beta)
        return min(bound, 2 * _least(one, beta / (2 * self.cells)))

    def corner(self, above: int, beta: float) -> int:
        """Bound of true minus released count where all siblings are raised.

        IntOpt then takes back less than one for each sibling, from the smallest: at most
        min(a, b - 1 - a), a the raise. The first is small for many siblings, the second
        for few.
        """
        each = beta / (2 * self.cells)
        largest = _least(tail_bound(self.noise, 1), each)

        def few(b: int) -> float:
            return largest + (b - 1) // 2

        def many(b: int) -> float:
            return 1 + max(above - 1, 0) / b + self.below_mean(b, each)

        low, high = 2, self.siblings  # `few` grows with b, `many` falls
        if few(high) <= many(high):
            return math.floor(few(high))
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if few(middle) >= many(middle) else (middle + 1, high)
        return math.floor(max(few(low - 1), many(low)))


@dataclass(frozen=True)
class _Gaussian(_Drawn):
    """Discrete Gaussian noise."""

    def too_much(self, above: int, beta: float) -> int:
        sigma2, sigma = float(self.noise.square), self.noise.sigma
        scale = sigma * math.sqrt(2 * math.log(self.cells / beta))
        bound = _largest_share(scale, above - 1, self.siblings)
        loose = _log_inflation_of(self.siblings - 1, sigma2)
        loose += log_theta_excess(sigma2 / self.siblings)
        if loose < _LOOSEST:
            scale = sigma * gaussian_quantile(beta / self.cells * math.exp(-loose))
            bound = min(bound, _largest_share(scale, above, self.siblings))
        return math.floor(1 + bound)

    def below_mean(self, b: int, p: float) -> float:
        return self.noise.sigma * math.sqrt(-2 * math.log(p) * (1 + 3 / b))


@dataclass(frozen=True)
class _Laplace(_Drawn):
    """Discrete Laplace noise."""

    def too_much(self, above: int, beta: float) -> int:
        # Of three siblings and more, the fewest or the most are the worst.
        p = beta / self.cells
        excess = {
            2: _least(tail_bound(self.noise, 2), p) / 2
        }  # that of two siblings is half a difference
        if self.siblings > 2:
            excess |= {b: self._combined(b, -1, p) for b in (3, self.siblings)}
        return math.floor(1 + max(t + (above - 1) / b for b, t in excess.items()))

    def below_mean(self, b: int, p: float) -> float:
        return self._combined(b, 1, p)

    def _combined(self, b: int, sign: int, p: float) -> float:
        """Some t with P[z + sign * mean(z) >= t] <= p, of b siblings; three or more for -1."""
        # The moments of the others: those of a continuous Laplace are larger.
        others = -(b - 1) * math.log1p(-1 / (b + sign) ** 2)
        scale = float(self.noise.scale)
        log_odds = -math.log(p) - math.log1p(math.exp(-1 / scale)) + others
        return scale * (1 + sign / b) * log_odds * (1 + RELATIVE_SLACK)


def _least(falling: Callable[[int], float], limit: float) -> int:
    """Least t >= 0 with falling(t) <= limit."""
    high = 1
    while falling(high) > limit:
        high *= 2
    low = -1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if falling(middle) <= limit else (middle, high)
    return high


def _largest_share(scale: float, passed_on: float, siblings: int) -> float:
    """Largest scale * sqrt(1 - x) + passed_on * x for x = 1 / b, b from 2 to `siblings`.

    It is concave in x, so the largest over all x between the ends bounds it.
    """
    x = 1 - (scale / (2 * passed_on)) ** 2 if passed_on > 0 else 0.0
    x = min(max(x, 1 / siblings), 0.5)
    return scale * math.sqrt(1 - x) + passed_on * x


def _log_inflation_of(summands: int, sigma2: float) -> float:
    """Log factor of a sum of many draws; the factors fall, so the last known bounds the rest."""
    known = min(summands, _EXACT_FACTORS)
    if known < 2:
        return 0.0
    rest = (summands - known) * log_theta_excess(sigma2 * known / (known + 1))
    return log_inflation((1,) * known, sigma2) + rest
