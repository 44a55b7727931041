"""All estimates of a release, from its measurements: the way into this package."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from inftda.growing import Growing
from inftda.inference.families import Areas, Floats, Whole, layers_of
from inftda.inference.intervals import child_ends, unseen_ends
from inftda.inference.model import Estimated, estimate_layers
from inftda.inference.noise_intervals import Ends
from inftda.inference.off_tree import Measured, sums_of, totals_by_depth
from inftda.inference.rounding import Rounded, round_down_the_tree
from inftda.threads import Crew, available_cores
from inftda.tree import Tree


class EstimatedLeaves(NamedTuple):
    """Estimated numbers of finest areas, each with an interval.

    Attributes:
        areas: int32[numbers] for each axis.
        value: whole numbers, positive.
        low: lower ends of their intervals.
        high: upper ends.
    """

    areas: Areas
    value: Whole
    low: Whole
    high: Whole


@dataclass(frozen=True)
class Fit:
    """Estimates of every measured level.

    Attributes:
        tree: the public tree.
        total: of everything.
        levels: estimates, coarse to fine.
        threads: how many to work on.
    """

    tree: Tree
    total: int
    levels: Sequence[Estimated]
    threads: int

    @classmethod
    def of(
        cls,
        tree: Tree,
        measured: Measured,
        total: int,
        points: Mapping[str, Floats] | None = None,
        *,
        threads: int | None = None,
    ) -> "Fit":
        """Estimate everything from what was measured.

        Args:
            tree: the public tree.
            measured: the noisy counts.
            total: released sum of all flows, which estimates keep to.
            points: float64[finest areas, 3] by axis name: where areas are, as unit vectors,
                NaN where it is not known.
            threads: how many; all cores by default. Estimates do not depend on it.

        Raises:
            ReleaseError: the measurements are damaged.
        """
        layers = layers_of(tree, [measured.level(at.index) for at in tree.splitting_levels])
        by_axis = [totals_by_depth(tree, measured, axis) for axis in range(len(tree.axes))]
        totals = [by_axis[at.level.axis].get(at.level.depths[at.level.axis]) for at in layers]
        sums = sums_of(tree, measured, layers, totals)
        del measured  # as large as all that follows, if nobody else has it
        threads = threads or available_cores()
        levels = estimate_layers(
            layers,
            float(total),
            totals=totals,
            sums=sums,
            points=dict(points or {}),
            map_=Crew(threads).map,
        )
        return cls(tree, total, levels, threads)

    def leaves(self, seed: int) -> EstimatedLeaves:
        """Positive whole numbers of finest areas that add up at every level, and their intervals.

        Args:
            seed: decides which numbers are rounded up.
        """
        areas = [Growing() for _ in self.tree.axes]
        values = [Growing() for _ in range(3)]
        random = np.random.default_rng(seed)
        for part in round_down_the_tree(
            self.tree, self.levels, self.total, random, self._with_ends, Crew(self.threads).map
        ):
            for column, numbers in zip((*areas, *values), (*part.areas, *part[1:]), strict=True):
                column.add(numbers)
        return EstimatedLeaves(tuple(one.cut() for one in areas), *(one.cut() for one in values))

    def _with_ends(self, rounded: Rounded) -> EstimatedLeaves:
        """Some numbers with their intervals."""
        low, high = rounded.value.copy(), rounded.value.copy()
        for number, level in enumerate(self.levels):
            is_here = rounded.layer == number
            low[is_here], high[is_here] = child_ends(self.levels, number, rounded.child[is_here])
            if number == len(self.levels) - 1:
                is_unseen = rounded.layer < 0
                posterior, sigma = level.known.posterior, level.layer.sigma
                low[is_unseen], high[is_unseen] = unseen_ends(
                    posterior, sigma, rounded.mean[is_unseen]
                )
        areas, value = rounded.areas, rounded.value
        return EstimatedLeaves(areas, value, np.minimum(low, value), np.maximum(high, value))

    def node_ends(self, number: int, areas: Areas) -> Ends:
        """Intervals of nodes that were released.

        Args:
            number: which of the measured levels they are of.
            areas: int32[n] for each axis.
        """
        layer = self.levels[number].layer
        child = layer.find(areas)
        is_found = child >= 0
        low, high = (np.zeros(len(child), np.int64) for _ in range(2))
        low[is_found], high[is_found] = child_ends(self.levels, number, child[is_found])
        if number and not is_found.all():  # only children, which have their parent's count
            above = layer.level.parents([numbers[~is_found] for numbers in areas])
            low[~is_found], high[~is_found] = self.node_ends(number - 1, above)
        return low, high
