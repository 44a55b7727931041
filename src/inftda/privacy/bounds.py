"""Guaranteed errors: what a release will be off by at most, before any data is touched.

The paper's theorem 4 bounds the error of a level by twice its largest noise plus the error of
the level above, so errors pile up with depth. They do not: an error is passed on in parts
(too much is shared by the children), or absorbed (too little is taken where there is
something to take). The bounds here follow from that, hold for every table, and use tails of
the noise that are never understated. Proofs: `docs/proofs/error-bounds.md`.

Must never look at the counts: these are guarantees, not measurements.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from inftda.errors import BudgetError, PrivacyError
from inftda.noise.law import Law
from inftda.privacy.exact import (
    ABSOLUTE_SLACK,
    RELATIVE_SLACK,
    gaussian_quantile,
    gaussian_tail,
    law_of_sum,
    log_inflation,
    log_theta_excess,
    rounding_of_sum,
)
from inftda.privacy.plan import Plan, measured_levels, measured_tables
from inftda.tree import HARD_REACH, Tree, TreeLevel

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Bound of P[S > t], for t >= 0, of a sum S of a few draws.
_Tail = Callable[[int], float]

_MIN_BETA: Final = 1e-9
_SUMMED_SIGMA2: Final = 50.0**2  # up to here tails are sums, beyond it Gaussian integrals
_SHARES: Final = (0.45, 0.45, 0.1)  # of a level's beta: too much, too little, a corner case
_LOOSEST: Final = 50.0  # beyond this log factor the lattice bound is no use
_EXACT_FACTORS: Final = 64


@dataclass(frozen=True, slots=True)
class ErrorBound:
    """What the released counts of one level are off by at most, all of them.

    Attributes:
        index: number of the level in the tree.
        name: for people.
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
        tree: what is released.
        plan: its noise.
        beta: probability that some bound, at any level, does not hold.

    Returns:
        One bound for each level, trivial ones included. With probability 1 - beta all
        `over` and `under` hold together. What prices for tables across the tree may add is
        included.
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
    extra = 0  # what prices of the levels so far may add to too much; see _moved
    for level in tree.levels:
        if level.index in planned:
            noise = _noise(level, planned[level.index])
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
    """How far prices for tables across the tree may move noisy counts, up and down, by level.

    By theorem 4 of docs/proofs/across.md, too much grows by the sum of the two and 1 more, for
    the level where that is largest, and too little by twice the larger one, at its own level.
    """
    levels = {level.index: level for level in plan.levels}
    planned = {table.depths: table for table in plan.tables}
    moved: dict[int, tuple[int, int]] = {}
    measured = measured_tables(tree, is_pure=plan.is_pure) if planned else ()
    for table in measured:
        level = levels[table.index]
        hard_from = table.hard_from((level.sigma / planned[table.depths].sigma) ** 2)
        reach = HARD_REACH if table.level.most_parents >= hard_from else 1
        # Rounded up: a count moves by whole numbers, and sigma to the nearest float is not less
        # than what the kernel clips at, which is the same float.
        up, down = math.ceil(level.sigma), math.ceil(reach * level.sigma)
        moved[table.index] = up, max(down, moved.get(table.index, (0, 0))[1])
    return moved


def _noise(level: TreeLevel, law: Law) -> "_Noise":
    """Noise of a level."""
    if law.is_laplace:
        return _Laplace(level.n_nodes, level.max_children, float(law.scale))
    return _Gaussian(level.n_nodes, level.max_children, float(law.square))


@dataclass(frozen=True)
class _Noise(ABC):
    """Noise of one level: the number of draws, the largest number of siblings, and a law."""

    cells: int
    siblings: int

    @abstractmethod
    def tail(self, summands: int) -> _Tail:
        """Tail of the sum of one or two draws, rounded up."""

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
        return _least(self.tail(1), -math.expm1(math.log1p(-beta) / self.cells) / 2)

    def too_little(self, beta: float) -> int:
        """Bound of true minus released count unless the parent lacks more: noise of a pair."""
        pairs = 1.5 * self.cells * (self.siblings - 1)
        one, two = self.tail(1), self.tail(2)
        bound = _least(lambda t: pairs * two(t) + self.cells * one(t), beta)
        return min(bound, 2 * _least(one, beta / (2 * self.cells)))

    def corner(self, above: int, beta: float) -> int:
        """Bound of true minus released count where all siblings are raised.

        IntOpt then takes back less than one for each sibling, from the smallest: at most
        min(a, b - 1 - a), a the raise. The first is small for many siblings, the second
        for few.
        """
        each = beta / (2 * self.cells)
        largest = _least(self.tail(1), each)

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
class _Gaussian(_Noise):
    """Discrete Gaussian noise."""

    sigma2: float

    @property
    def sigma(self) -> float:
        return math.sqrt(self.sigma2)

    def tail(self, summands: int) -> _Tail:
        return _GaussianTail(self.sigma2, summands)

    def too_much(self, above: int, beta: float) -> int:
        scale = self.sigma * math.sqrt(2 * math.log(self.cells / beta))
        bound = _largest_share(scale, above - 1, self.siblings)
        loose = _log_inflation_of(self.siblings - 1, self.sigma2)
        loose += log_theta_excess(self.sigma2 / self.siblings)
        if loose < _LOOSEST:
            scale = self.sigma * gaussian_quantile(beta / self.cells * math.exp(-loose))
            bound = min(bound, _largest_share(scale, above, self.siblings))
        return math.floor(1 + bound)

    def below_mean(self, b: int, p: float) -> float:
        return self.sigma * math.sqrt(-2 * math.log(p) * (1 + 3 / b))


@dataclass(frozen=True)
class _Laplace(_Noise):
    """Discrete Laplace noise: P[z = x] is proportional to a^|x|, a = exp(-1 / scale)."""

    scale: float

    def tail(self, summands: int) -> _Tail:
        a, rest = math.exp(-1 / self.scale), -math.expm1(-1 / self.scale)  # rest = 1 - a
        constant, slope = 1 / (1 + a), 0.0
        if summands == 2:
            constant, slope = (1 + a + 2 * a**2) / (1 + a) ** 3, rest / (1 + a) ** 2

        def tail(t: int) -> float:
            power = math.exp(-(t + 1) / self.scale) * (1 + RELATIVE_SLACK)
            return power * (constant + slope * (t + 1)) + ABSOLUTE_SLACK

        return tail

    def too_much(self, above: int, beta: float) -> int:
        # Of three siblings and more, the fewest or the most are the worst.
        p = beta / self.cells
        excess = {2: _least(self.tail(2), p) / 2}  # that of two siblings is half a difference
        if self.siblings > 2:
            excess |= {b: self._combined(b, -1, p) for b in (3, self.siblings)}
        return math.floor(1 + max(t + (above - 1) / b for b, t in excess.items()))

    def below_mean(self, b: int, p: float) -> float:
        return self._combined(b, 1, p)

    def _combined(self, b: int, sign: int, p: float) -> float:
        """Some t with P[z + sign * mean(z) >= t] <= p, of b siblings; three or more for -1."""
        # The moments of the others: those of a continuous Laplace are larger.
        others = -(b - 1) * math.log1p(-1 / (b + sign) ** 2)
        log_odds = -math.log(p) - math.log1p(math.exp(-1 / self.scale)) + others
        return self.scale * (1 + sign / b) * log_odds * (1 + RELATIVE_SLACK)


class _GaussianTail:
    """P[S > t] for the sum S of a few draws, rounded up."""

    def __init__(self, sigma2: float, summands: int) -> None:
        ratios = (1,) * summands
        self.deviation = math.sqrt(summands * sigma2)
        self.beyond: NDArray[np.float64] | None = None
        if sigma2 <= _SUMMED_SIGMA2:
            law = law_of_sum(ratios, sigma2)
            upper = law[len(law) // 2 + 1 :]
            sums = np.cumsum(upper[::-1])[::-1] * (1 + rounding_of_sum(law, summands))
            self.beyond = sums + ABSOLUTE_SLACK
        else:
            self.factor = math.exp(log_inflation(ratios, sigma2))

    def __call__(self, t: int) -> float:
        if self.beyond is not None:
            return float(self.beyond[t]) if t < len(self.beyond) else ABSOLUTE_SLACK
        # The density is convex beyond one deviation: a unit step lies below its integral.
        start = t + 0.5 if t + 0.5 >= self.deviation else t
        return self.factor * gaussian_tail(start / self.deviation)


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
