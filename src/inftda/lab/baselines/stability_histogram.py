"""Stability histogram: Laplace noise on positive leaves, small results dropped (paper, section 2).

There are no false positives, and large flows are accurate; small flows vanish, so sums over
areas are far too low. It does not need to know which cells are possible.

Privacy:
    (epsilon, delta), see docs/proofs/stability-histogram.md: a person's own cells stay
    below the threshold except with probability delta, all others are the Laplace mechanism.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from inftda.lab.baselines.one_machine import on_one_machine
from inftda.lab.baselines.stability_plan import StabilityPlan, make_stability_plan
from inftda.mechanisms.base import Setting
from inftda.mechanisms.description import Description
from inftda.mechanisms.step import Nodes
from inftda.noise.discrete_laplace import DiscreteLaplace
from inftda.privacy.unit import PrivacyUnit
from inftda.tree import Tree

BLOCK_CELLS = 1 << 18


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
            return Nodes.leaves(tuple(axis[here][kept] for axis in areas), value[kept])

        # The number of positive cells is confidential, so progress only says done or not.
        setting.progress(name, 0, 1)
        n_blocks = max(1, -(-len(count) // BLOCK_CELLS))
        yield from engine.map(noise_block, range(n_blocks))
        setting.progress(name, 1, 1)
        setting.spending.finish()
