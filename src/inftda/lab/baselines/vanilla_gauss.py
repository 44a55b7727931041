"""VanillaGauss: discrete Gaussian noise on every leaf, the paper's simplest baseline (section 5).

Every possible cell is drawn, block by block, so memory does not grow with their number.
Sums over areas are unbiased but drown in noise, and nearly every cell is a false positive.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from inftda.errors import PrivacyError
from inftda.lab.baselines.one_machine import on_one_machine
from inftda.mechanisms.base import Setting
from inftda.mechanisms.description import Description
from inftda.mechanisms.step import Nodes
from inftda.privacy.plan import Plan, make_plan
from inftda.privacy.unit import PrivacyUnit
from inftda.tree import Tree
from inftda.truth import Truth

#: Cells in a block: random bits are made without the GIL, buffers stay small.
BLOCK_CELLS = 1 << 18
#: Cells are numbered in 64-bit integers.
MAX_CELLS = 2**62


@dataclass(frozen=True)
class VanillaGauss:
    """Noise on all leaves; negative counts are kept, or dropped with the zeros."""

    name: str = "vanilla-gauss"
    negative: Literal["kept", "clamped"] = "kept"

    @property
    def description(self) -> Description:
        """Noise on every possible leaf."""
        return Description(
            measures="leaves",
            values="any sign" if self.negative == "kept" else "positive",
            read_plan=Plan.from_dict,
            takes_sampler=True,
        )

    @property
    def options(self) -> Mapping[str, Any]:
        """What is done with negative counts."""
        return {"negative": self.negative}

    def plan(self, tree: Tree, unit: PrivacyUnit, **budget: Any) -> Plan:
        """Only the leaves are measured; the total is whatever they sum to."""
        return make_plan(tree, unit, scope="leaves", **budget)

    def run(self, truth: Any, setting: Setting[Any, Any]) -> Iterator[Any]:
        """Released cells, in the order of origin and destination."""
        counts, engine = on_one_machine(truth, setting)
        tree = counts.tree
        sizes = [axis.hierarchy.n_areas(axis.hierarchy.depth) for axis in tree.axes]
        n_cells = prod(sizes)
        if n_cells > MAX_CELLS:
            raise PrivacyError(f"vanilla-gauss cannot draw {n_cells:.1e} cells; use inftda")
        level = counts.levels[-1].level if counts.levels else tree.splitting_levels[-1]
        charged = setting.spending.charge(level.index)
        cells = _Cells(counts, sizes, self.negative == "clamped")
        sampler = setting.make_sampler(charged.sigma2)

        def noise_block(number: int) -> tuple[Nodes, int]:
            first = number * BLOCK_CELLS
            noise = np.empty(min(BLOCK_CELLS, n_cells - first), np.int64)
            sampler.fill(noise, setting.source.stream(level.index, number))
            return cells.keep(first, noise), len(noise)

        done = 0
        setting.progress(level.name, 0, n_cells)
        n_blocks = -(-n_cells // BLOCK_CELLS)
        for flows, drawn in engine.map(noise_block, range(n_blocks)):
            done += drawn
            setting.progress(level.name, done, n_cells)
            yield flows
        setting.spending.finish()


class _Cells:
    """All leaf cells, numbered with the last axis running fastest."""

    def __init__(self, counts: Truth, sizes: list[int], is_clamped: bool) -> None:  # noqa: FBT001 - private
        areas, count = counts.leaves
        cell = np.zeros(len(count), np.int64)
        for size, numbers in zip(sizes, areas, strict=True):
            cell = cell * size + numbers
        order = np.argsort(cell)
        self.sizes, self.is_clamped = sizes, is_clamped
        self.true_cell, self.true_count = cell[order], count[order]

    def keep(self, first: int, noise: NDArray[np.int64]) -> Nodes:
        """The cells of a block that are not zero (or above zero) with their noise."""
        low, high = np.searchsorted(self.true_cell, [first, first + len(noise)])
        cell, value = add_and_keep(
            noise,
            first,
            self.true_cell[low:high],
            self.true_count[low:high],
            is_clamped=self.is_clamped,
        )
        areas: list[NDArray[np.int32]] = []
        for size in self.sizes[::-1]:
            areas.append((cell % size).astype(np.int32))
            cell = cell // size
        return Nodes(tuple(areas[::-1]), value)


def add_and_keep(
    noise: NDArray[np.int64],
    first: int,
    true_cell: NDArray[np.int64],
    true_count: NDArray[np.int64],
    *,
    is_clamped: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Add true counts to noise in place and keep what is not dropped.

    Args:
        noise: int64[n], noise of the cells first..first+n; overwritten.
        first: int64.
        true_cell: int64[k], cells in that range with a true count, each once.
        true_count: int64[k].
        is_clamped: bool, whether negative counts are dropped too.

    Returns:
        (int64 cells, int64 counts) of what is kept.
    """
    noise[true_cell - first] += true_count
    kept = np.flatnonzero(noise > 0 if is_clamped else noise)
    return first + kept, noise[kept]
