"""Sums that were measured off the tree as targets: prices that move the sums of estimates there.

Every cell of a table off the tree has a price, which is added to the noisy counts of its children.
Weighted least squares asks for a price of (what the sum still lacks) x (sigma of the layer / sigma
of the sum)^2. Tables that lie inside each other form a chain, whose prices are found together, as
if each count moved by its slope: sums up the chain, then prices down it. Several chains take turns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.inference.families import Floats, Layer
from inftda.inference.off_tree import Sums

#: How far a price goes, in noise scales.
_REACH: Final = 4.0
#: How much more totals of short axes are trusted than their noise says: the model knows little of
#: what their areas have in common, and a release keeps to such totals as well.
_HARD: Final = 100.0


class Link(NamedTuple):
    """A table in its chain.

    Attributes:
        cells: its cells among those of all tables.
        inside: int64[cells], for each the cell of the table before it that it lies in.
    """

    cells: slice
    inside: NDArray[np.int64]


@dataclass(frozen=True)
class Targets:
    """All sums over children of a layer that were measured off the tree.

    Attributes:
        start: int64[tables, families], cell of each family's first child; its siblings' follow.
        block: int64[cells]: siblings, whose sum is decided by the nodes above, have one number.
        value: float64[cells], what was measured, less what is in no family.
        variance: float64[cells], of the noise.
        is_hard: bool[cells], whether estimates have to agree with it.
        chains: tables that lie inside each other, coarse to fine, in the order of their turns.
    """

    start: NDArray[np.int64]
    block: NDArray[np.int64]
    value: Floats
    variance: Floats
    is_hard: NDArray[np.bool_]
    chains: Sequence[Sequence[Link]]

    @classmethod
    def of(
        cls, layer: Layer, chains: Sequence[Sequence[Sums]], elsewhere: Sequence[Floats]
    ) -> "Targets":
        """Tables of a layer in chains, and what of their sums is in no family.

        Args:
            layer: the layer.
            chains: tables that lie inside each other, coarse to fine.
            elsewhere: float64[cells] for each table.
        """
        tables = [table for chain in chains for table in chain]
        offsets = np.cumsum([0, *(len(table.value) for table in tables)])
        starts = [table.start + first for table, first in zip(tables, offsets, strict=False)]
        is_first = np.zeros(layer.n_areas, bool)
        is_first[layer.level.child_offsets[:-1]] = True
        areas = [table.area for table in tables]
        apart = np.concatenate([np.empty(0), *elsewhere])
        value = np.concatenate([np.empty(0), *(table.value for table in tables)])
        cells = [slice(*ends) for ends in pairwise(offsets.tolist())]
        numbers = iter(range(len(tables)))
        return cls(
            start=np.array(starts, np.int64).reshape(len(tables), len(layer.first)),
            block=np.cumsum(np.concatenate([np.empty(0, bool), *map(is_first.take, areas)])) - 1,
            value=value - apart,
            variance=np.concatenate([np.empty(0), *(table.variance for table in tables)]),
            is_hard=np.concatenate(
                [np.empty(0, bool), *(np.full(len(one.value), one.is_hard) for one in tables)]
            ),
            chains=_in_turns(
                [_links(layer, [next(numbers) for _ in one], starts, cells) for one in chains]
            ),
        )

    @property
    def n_cells(self) -> int:
        """Cells of all tables."""
        return len(self.value)

    def better(self, chain: Sequence[Link], prices: Floats, sums: Floats, sigma: float) -> Floats:
        """float64[cells]: prices of one chain that come nearer to the targets, and all others.

        Args:
            chain: one of the chains.
            prices: float64[cells].
            sums: float64[2, cells], what these prices lead to; see `balance.shift_kernel`.
            sigma: noise scale of the layer.
        """
        trust = sigma**2 / self.variance * np.where(self.is_hard, _HARD, 1.0)
        missing = self.value - sums[0]
        with np.errstate(divide="ignore"):
            spread = np.bincount(self.block, 1 / trust)
        # What all cells of a block lack together is decided by the nodes above.
        pull = trust * missing - (np.bincount(self.block, missing) / spread)[self.block] - prices
        step = np.zeros(self.n_cells)
        _solve(chain, trust, np.where(trust > 0, pull, 0.0), sums[1], step)
        return np.asarray(np.clip(prices + step, -_REACH * sigma, _REACH * sigma))


def _in_turns(chains: list[list[Link]]) -> list[list[Link]]:
    """Chains in the order of their turns: totals, which the first has, come last and once more."""
    return [*chains[::-1], chains[0][:1]] if len(chains) > 1 else chains


def _links(
    layer: Layer, chain: Sequence[int], starts: Sequence[NDArray[np.int64]], cells: Sequence[slice]
) -> list[Link]:
    """A chain of tables, by their numbers."""
    sizes = np.diff(layer.offsets)
    links = [Link(cells[chain[0]], np.empty(0, np.int64))]
    for coarse, fine in pairwise(chain):
        _, family = np.unique(starts[fine], return_index=True)
        n = sizes[family]
        sibling = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
        inside = np.full(cells[fine].stop - cells[fine].start, cells[coarse].start)
        at = np.repeat(starts[fine][family], n) + sibling - cells[fine].start
        inside[at] = np.repeat(starts[coarse][family], n) + sibling
        links.append(Link(cells[fine], inside))
    return links


def _solve(chain: Sequence[Link], trust: Floats, pull: Floats, rise: Floats, step: Floats) -> None:
    """Prices of one chain that bring all its sums to where they are wanted, if slopes are right.

    Args:
        chain: the tables.
        trust: float64[cells], (sigma of the layer / sigma of the sum)^2.
        pull: float64[cells], by how much each price would have to change if sums stayed.
        rise: float64[cells], by how much sums rise with the prices.
        step: float64[cells], written.
    """
    slope, moved = np.zeros_like(rise), np.zeros_like(rise)
    slope[chain[-1].cells] = rise[chain[-1].cells]
    for link in reversed(chain[1:]):
        at = link.cells
        damping = 1 + trust[at] * slope[at]
        n = len(rise)
        slope += np.bincount(link.inside, slope[at] / damping, n)
        moved += np.bincount(link.inside, (slope[at] * pull[at] + moved[at]) / damping, n)
    above = np.zeros_like(rise)
    for number, link in enumerate(chain):
        at = link.cells
        if number:
            above[at] = above[link.inside] + step[link.inside]
        missing = pull[at] - trust[at] * (moved[at] + slope[at] * above[at])
        step[at] = missing / (1 + trust[at] * slope[at])
