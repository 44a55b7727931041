"""The distribution of a whole release of a tiny tree, computed by enumerating all possible noise.

Independent of the package: nested tuples for the tree, all noise vectors on a box so large that
what lies outside has probability below 1e-30, the slow reference of IntOpt, and sums of positive
numbers, so that every probability is right to about 1e-13 of itself, however small it is.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from slow_optimizers import algorithm_2, compositions

#: exp(-TAIL^2 / 2) < 1e-31: how many standard deviations of noise are gone through.
TAIL: Final = 12.0

#: A leaf by its number, or the parts of a node.
Node = Any
Table = tuple[int, ...]
Law = dict[Table, float]


@dataclass(frozen=True)
class Laplace:
    """A discrete Laplace in place of a discrete Gaussian."""

    scale: Fraction


def width(noise: Fraction | Laplace | None) -> float:
    """What `TAIL` is a multiple of: beyond it a Laplace has less than exp(-72) as well."""
    return 6 * float(noise.scale) if isinstance(noise, Laplace) else math.sqrt(noise or 0)


def leaves(node: Node) -> list[int]:
    """Numbers of the leaves below a node, in order."""
    return [node] if isinstance(node, int) else [leaf for part in node for leaf in leaves(part)]


@dataclass(frozen=True)
class ExactRelease:
    """From a table to the distribution of its release.

    Attributes:
        root: the tree, leaves numbered in order; all leaves equally deep.
        sigma2: variance of the noise of each level, coarse to fine, or its Laplace scale.
        root_sigma2: of the total; None where it is public.
        most: largest total of a table.
        shift: how much further than the tail to go, so that Rényi divergences of high order,
            which live there, are right as well.
        is_descending: whether large counts give way first.
    """

    root: Node
    sigma2: tuple[Fraction | Laplace, ...]
    most: int
    root_sigma2: Fraction | Laplace | None = None
    shift: int = 0
    is_descending: bool = False
    _divisions: dict[Any, NDArray[np.float64]] = field(
        default_factory=dict, init=False, compare=False
    )

    def law(self, table: Table) -> Law:
        """Probability of every release of a table (of leaf counts)."""
        total = sum(table)
        if self.root_sigma2 is None:
            return self._below(self.root, total, 0, table)
        noise = gaussian(self.root_sigma2, self.most + self.reach)
        found: Law = {}
        for released in range(self.most + self.reach + 1):
            # The total is clamped: all that is below 0 becomes 0.
            chance = noise.at(released - total) if released else noise.up_to(-total)
            for output, p in self._below(self.root, released, 0, table).items():
                found[output] = found.get(output, 0.0) + chance * p
        return found

    @cached_property
    def reach(self) -> int:
        """How far noise goes."""
        return math.ceil(TAIL * max(map(width, (*self.sigma2, self.root_sigma2)))) + self.shift

    def _below(self, node: Node, released: int, depth: int, table: Table) -> Law:
        """Distribution of the leaves below a node whose released count is given."""
        if isinstance(node, int):
            return {(released,): 1.0}
        if released == 0:
            return {(0,) * len(leaves(node)): 1.0}
        true = tuple(sum(table[leaf] for leaf in leaves(part)) for part in node)
        found: Law = {}
        chances = self._division(true, released, depth)
        for shares, chance in zip(compositions(len(node), released), chances, strict=True):
            if chance > 0:
                parts = [
                    self._below(part, share, depth + 1, table).items()
                    for part, share in zip(node, shares, strict=True)
                ]
                for chosen in itertools.product(*parts):
                    output = tuple(itertools.chain.from_iterable(o for o, _ in chosen))
                    p = chance * math.prod(p for _, p in chosen)
                    found[output] = found.get(output, 0.0) + p
        return found

    def _division(self, true: Table, released: int, depth: int) -> NDArray[np.float64]:
        """Distribution of the division of one node, over `compositions`."""
        if len(true) == 1:
            return np.ones(1)  # an only child has its parent's count, and no noise is drawn
        key = true, released, depth
        if key not in self._divisions:
            divide = of_two if len(true) == 2 else of_many
            self._divisions[key] = divide(
                true,
                released,
                self.sigma2[depth],
                low=-self.reach,
                high=self.most + self.reach,
                is_descending=self.is_descending,
            )
        return self._divisions[key]


def of_many(
    true: Table,
    released: int,
    sigma2: Fraction | Laplace,
    *,
    low: int,
    high: int,
    is_descending: bool,
) -> NDArray[np.float64]:
    """Distribution of the division of a node: all vectors of a box, all orders of ties."""
    noise = gaussian(sigma2, high)
    joint = np.ones(1)
    for count in true:
        joint = np.multiply.outer(joint, noise.at(np.arange(low, high + 1) - count))
    outcomes = all_outcomes(len(true), released, low, high, is_descending=is_descending)
    n = len(compositions(len(true), released))
    sums = [np.bincount(row, weights=joint.ravel(), minlength=n) for row in outcomes]
    return np.asarray(sum(sums) / len(sums), np.float64)


def of_two(
    true: Table,
    released: int,
    sigma2: Fraction | Laplace,
    *,
    low: int,
    high: int,
    is_descending: bool,
) -> NDArray[np.float64]:
    """The same for two parts, where IntOpt looks at their difference only."""
    noise = gaussian(sigma2, high - low)
    differences = np.convolve(noise.p, noise.p)  # noise is symmetric
    middle = len(differences) // 2
    law = np.zeros(released + 1)
    for gap in range(2 * (low - high), 2 * (high - low) + 1):
        chance = differences[middle + gap - (true[0] - true[1])]
        x = max(gap, 0), max(-gap, 0)
        first = _solve(x, released, is_descending)[0]
        last = _solve(x[::-1], released, is_descending)[1]  # equal ones, the other way round
        law[first] += chance / 2
        law[last] += chance / 2
    return law


@dataclass(frozen=True)
class Noise:
    """Probabilities of noise at -reach..reach, the rest being negligible."""

    sigma2: Fraction | Laplace
    reach: int
    p: NDArray[np.float64]

    def at(self, values: Any) -> Any:
        """Probabilities of integers; 0 beyond the reach."""
        values = np.asarray(values)
        inside = np.abs(values) <= self.reach
        return np.where(inside, self.p[np.clip(values, -self.reach, self.reach) + self.reach], 0.0)

    def up_to(self, value: int) -> float:
        """Probability of being at most `value`."""
        return float(self.p[: value + self.reach + 1].sum())


@cache
def gaussian(sigma2: Fraction | Laplace, reach: int) -> Noise:
    """The discrete Gaussian, or Laplace."""
    reach = max(2 * reach, math.ceil(2 * TAIL * width(sigma2)))
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    if isinstance(sigma2, Laplace):
        weights = np.exp(-np.abs(x) / float(sigma2.scale))
    else:
        weights = np.exp(-(x**2) / (2 * float(sigma2)))
    return Noise(sigma2, reach, weights / weights.sum())


@cache
def all_outcomes(
    size: int, total: int, low: int, high: int, *, is_descending: bool
) -> tuple[NDArray[np.int64], ...]:
    """For every vector of a box, which composition IntOpt makes of it.

    One array for each order in which equal elements may be looked at; orders are equally likely.
    """
    shares_of = compositions(size, total)
    place = {shares: number for number, shares in enumerate(shares_of)}
    box = range(low, high + 1)
    vectors = np.array(list(itertools.product(box, repeat=size)))
    # Vectors with the same elements need IntOpt once: it looks at equal ones in their order.
    ascending = np.argsort(vectors, axis=1, kind="stable")
    distinct, which = np.unique(
        np.take_along_axis(vectors, ascending, axis=1), axis=0, return_inverse=True
    )
    solved = [_solve(tuple(x), total, is_descending) for x in distinct.tolist()]
    results = np.empty_like(vectors)
    np.put_along_axis(results, ascending, np.array(solved)[which.ravel()], axis=1)
    first = np.array([place[tuple(y)] for y in results.tolist()]).reshape((len(box),) * size)
    arrays = []
    for order in itertools.permutations(range(size)):
        # Element i of the vector is looked at as number back[i], and gets its share.
        back = tuple(order.index(i) for i in range(size))
        renamed = np.array([place[tuple(shares[i] for i in back)] for shares in shares_of])
        arrays.append(renamed[first.transpose(back)].ravel())
    return tuple(arrays)


@cache
def _solve(x: Table, total: int, is_descending: bool) -> list[int]:  # noqa: FBT001 - private
    """IntOpt by its slow reference."""
    return algorithm_2(x, total, is_descending=is_descending)


def contributions(unit: Any, n_leaves: int) -> list[Table]:
    """Leaves of everything one person may contribute."""
    choose = itertools.combinations if unit.distinct else itertools.combinations_with_replacement
    sizes = range(unit.trips if unit.exactly else 0, unit.trips + 1)
    return [chosen for size in sizes for chosen in choose(range(n_leaves), size)]


def aligned(laws: Sequence[Law]) -> NDArray[np.float64]:
    """Distributions as rows over all outputs of any of them."""
    outputs = {output: number for number, output in enumerate(sorted(set().union(*laws)))}
    rows = np.zeros((len(laws), len(outputs)))
    for row, law in zip(rows, laws, strict=True):
        for output, p in law.items():
            row[outputs[output]] = p
    return rows


def hockey_stick(p: NDArray[np.float64], q: NDArray[np.float64], epsilon: float) -> float:
    """The least delta for which p is within (epsilon, delta) of q: sum of max(0, p - e^eps q)."""
    return float(np.maximum(0.0, p - math.exp(epsilon) * q).sum())


def renyi(p: NDArray[np.float64], q: NDArray[np.float64], order: float) -> float:
    """Rényi divergence of order > 1.

    Outputs so unlikely that floats lose them are left out. Likelihood ratios are below 1e45
    on all boxes that are gone through, so at orders up to 5 they add less than 1e-60.
    """
    here = p > 1e-250
    terms = order * np.log(p[here]) + (1 - order) * np.log(q[here])
    top = terms.max()
    return float((top + math.log(np.exp(terms - top).sum())) / (order - 1))
