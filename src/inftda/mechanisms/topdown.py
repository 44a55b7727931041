"""InfTDA: noise and integer optimisation, level by level from the root (paper, section 4).

The loop over the levels; what is done to one level is `inftda.mechanisms.step`, and where it is
done is the engine's business. The work is the number of children of surviving parents.

Privacy:
    Level l is the discrete Gaussian mechanism on all its nodes at the scale the plan
    states; nodes below a dropped parent, and only children, are not drawn because the
    release does not depend on them (post-processing). Tables off the tree are further
    levels of this kind, as far as the plan has any. See docs/privacy-guarantee.md.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from inftda.lattice import Table, off_tree_tables
from inftda.mechanisms.across import Across, AcrossStep, MeasuredTable
from inftda.mechanisms.base import AnyNodes, AnyTruth, MeasuredTotals, Setting
from inftda.mechanisms.step import ITEM_CHILDREN, LevelStep
from inftda.optimize.segments import Optimizer, optimize_intopt
from inftda.tree import Tree, TreeLevel


@dataclass(frozen=True)
class TopDown:
    """The top-down loop.

    Attributes:
        optimize: the integer optimiser, for many parents at once.
        item_children: children in an item of work.
    """

    optimize: Optimizer = optimize_intopt
    item_children: int = ITEM_CHILDREN

    def run(self, truth: AnyTruth, setting: Setting[AnyTruth, AnyNodes]) -> Iterator[AnyNodes]:
        """Released leaves."""
        nodes = setting.engine.root(truth, release_total(truth.total, setting))
        tables = planned_tables(truth.tree, setting)
        for level in truth.tree.splitting_levels:
            step = with_totals(self.step_to(level, setting, tables), truth, setting)
            nodes = setting.engine.step(nodes, truth, step, setting.progress, setting.keeper)
        setting.spending.finish()
        yield nodes

    def step_to(
        self,
        level: TreeLevel,
        setting: Setting[AnyTruth, AnyNodes],
        tables: Sequence[Table] = (),
    ) -> LevelStep:
        """The step to a level, charged with all that is measured there."""
        sigma2 = setting.spending.charge(level.index).sigma2
        return LevelStep(
            level=level,
            sampler=setting.make_sampler(sigma2),
            optimize=self.optimize,
            source=setting.source,
            item_children=self.item_children,
            across=across_at(level, tables, sigma2, setting),
        )


def planned_tables(tree: Tree, setting: Setting[AnyTruth, AnyNodes]) -> list[Table]:
    """Tables off the tree that the plan has."""
    return [table for table in off_tree_tables(tree) if setting.spending.is_planned(table.depths)]


def across_at(
    level: TreeLevel,
    tables: Sequence[Table],
    sigma2: Fraction,
    setting: Setting[AnyTruth, AnyNodes],
) -> Across | None:
    """Those of the tables that are measured at the step to a level, charged."""
    measured = []
    for table in tables:
        if table.index == level.index:
            noise = setting.spending.charge(table.depths).sigma2
            sampler = setting.make_sampler(noise)
            measured.append(MeasuredTable(table, sampler, float(sigma2 / noise), noise))
    return Across(tuple(measured), math.sqrt(sigma2)) if measured else None


def with_totals(
    step: LevelStep, truth: AnyTruth, setting: Setting[AnyTruth, AnyNodes]
) -> LevelStep:
    """The step with the one-way table measured there, if it has one; it is kept to be published."""
    if step.across is None or step.across.one_way is None:
        return step
    totals = AcrossStep.of(step).measure_totals(truth.margins[step.level.axis])
    one_way = step.across.one_way
    setting.totals.append(MeasuredTotals(one_way.table, totals, one_way.sigma2))
    return replace(step, across=replace(step.across, totals=totals))


def release_total(total: int, setting: Setting[AnyTruth, AnyNodes]) -> int:
    """The root: public where the unit makes it so, otherwise noised and clamped at 0."""
    if not setting.spending.is_planned(0):
        return total
    noise = np.empty(1, np.int64)
    sampler = setting.make_sampler(setting.spending.charge(0).sigma2)
    sampler.fill(noise, setting.source.stream(0, 0))
    noisy = total + int(noise[0])
    if setting.keeper is not None:
        setting.keeper.keep_total(noisy)
    return max(noisy, 0)
