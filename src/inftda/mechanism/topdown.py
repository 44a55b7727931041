"""InfTDA: noise and integer optimisation, level by level from the root (paper, section 4).

`inftda.mechanism.measure` measures one level and `inftda.mechanism.step` divides its parents; this
module has the loop over the levels and the threads of one machine. The work is proportional to the
number of children of surviving parents.

Privacy:
    Level l is the discrete Gaussian mechanism on all its nodes at the scale the plan
    states; nodes below a dropped parent, and only children, are not drawn because the
    release does not depend on them (post-processing). Each cross table of the plan is one more
    mechanism of this kind. See docs/guarantee.md.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Any, Final, NamedTuple

import numpy as np

from inftda.mechanism.batches import (
    PART_CHILDREN,
    batches,
    in_group_order,
    n_children,
    small_parts,
)
from inftda.mechanism.data import MeasuredTable, Step
from inftda.mechanism.intopt import Candidates, Seed, words_of
from inftda.mechanism.measure import measure, measure_root, measure_totals
from inftda.mechanism.step import divide, find_candidates, hard_tables
from inftda.noise.bits import RandomSource, Secret, draw_seed
from inftda.privacy.measurement import Measurement
from inftda.privacy.noise_plan import Account
from inftda.reading.truth import Children, Truth
from inftda.tree import Cells, CrossTable, Tree, TreeLevel
from inftda.util.screen import Progress, no_progress
from inftda.util.threads import ThreadPool

#: Batches of more children than this are divided on all threads.
LARGE: Final = 8 * PART_CHILDREN


class Outcome(NamedTuple):
    """Output of the mechanism, all of which may be published.

    Attributes:
        leaves: released leaves.
        measured: noisy counts of the total, if it is noisy, and of each step, table after table.
        seed: the public seed, which decided ties.
    """

    leaves: Any
    measured: Sequence[Iterable[MeasuredTable]]
    seed: bytes

    @property
    def noisy(self) -> Iterator[MeasuredTable]:
        """All noisy counts in the order they were drawn."""
        return chain.from_iterable(self.measured)


def release_counts(
    truth: Truth,
    account: Account,
    source: RandomSource,
    *,
    threads: int | None = None,
    progress: Progress = no_progress,
) -> Outcome:
    """Release the counts of a tree on the threads of this machine.

    Args:
        truth: the counts.
        account: a new account of the plan, the only source of noise scales.
        source: random bits.
        threads: number of threads; all cores by default. The release does not depend on it.
        progress: receives the parts of work that are finished.

    Raises:
        BudgetError: some planned measurement was not drawn.
    """
    pool = ThreadPool(threads)

    def carry_out(division: Division, parents: Cells) -> Divided:
        true = truth.level(division.step.level)
        return divide_all(division, parents, true, pool=pool, progress=progress)

    return top_down(truth, account, source, carry_out)


def top_down(
    truth: Any,
    account: Account,
    source: RandomSource,
    carry_out: Callable[["Division", Any], tuple[Any, Iterable[MeasuredTable]]],
) -> Outcome:
    """Run the loop over the levels.

    Args:
        truth: true counts on this machine or a cluster: `tree`, `total` and `marginal_totals`.
        account: a fresh account of the plan.
        source: random bits.
        carry_out: divides parents.
    """
    tree: Tree = truth.tree
    secret, seed = Secret.of(source), draw_seed(source)
    total, drawn = truth.total, list[Iterable[MeasuredTable]]()
    if account.is_planned(0):
        measured = measure_root(_charged(tree.levels[0], account), total, secret)
        drawn.append([measured])
        total = max(int(measured.value[0]), 0)
    cells = Cells.root(len(tree.axes), total)
    for level in tree.splitting_levels:
        step = step_to(level, tree, account)
        totals = measure_totals(step, truth.marginal_totals[level.axis], secret)
        cells, noisy = carry_out(Division(step, totals, secret, words_of(seed)), cells)
        drawn.append(noisy)
    account.finish()
    return Outcome(cells, drawn, seed)


def step_to(level: TreeLevel, tree: Tree, account: Account) -> Step:
    """Make the step to a level; its measurements are taken from the account."""
    cross = [table for table in tree.cross_tables_at(level) if account.is_planned(table.key)]
    return Step(_charged(level, account), tuple(_charged(table, account) for table in cross))


def _charged(one: TreeLevel | CrossTable, account: Account) -> Measurement:
    """Take the planned measurement of a level or cross table from the account."""
    return replace(account.charge(one.key), of_tree=one)


@dataclass(frozen=True, repr=False)
class Division:
    """How the parents of a level are divided. It holds the secret, so its repr shows nothing.

    Attributes:
        step: the step and its measurements.
        totals: cross tables of the step that were measured as a whole.
        secret: the noise is a function of it.
        seed: words of the public seed.
    """

    step: Step
    totals: Sequence[MeasuredTable]
    secret: Secret
    seed: Seed

    def __repr__(self) -> str:
        return "Division(confidential)"


class Divided(NamedTuple):
    """Output of a step: released children, and noisy counts, the level's before cross tables."""

    children: Cells
    noisy: list[MeasuredTable]


def divide_all(
    division: Division,
    parents: Cells,
    truth: Children,
    *,
    pool: ThreadPool,
    progress: Progress = no_progress,
) -> Divided:
    """Divide released parents in batches on all threads."""

    def carry_out(batch: slice, pool: ThreadPool = ThreadPool(1)) -> _Batch:  # noqa: B008 - has no state
        return _divide(division, parents.take(batch), truth, pool)

    step, level = division.step, division.step.level
    parents = in_group_order(level, parents, pool)
    n = n_children(level, parents)
    total, done = int(n[n > 1].sum()), 0
    work = np.concatenate([[0], np.cumsum(n)])
    progress(level.name, 0, total)
    children, drawn = [Cells.root(len(parents.areas), 0)], list[Sequence[MeasuredTable]]()
    cut = batches(step, parents)
    for is_large, some in groupby(cut, lambda b: work[b.stop] - work[b.start] > LARGE):
        # A very large batch uses all threads, other batches use one thread each.
        for made in (carry_out(b, pool) for b in some) if is_large else pool.map(carry_out, some):
            done += sum(len(one.value) for one in made.noisy if one.depths == level.depths)
            progress(level.name, done, total)
            children.append(made.children)
            drawn.append(made.noisy)
    noisy = [*division.totals, *chain.from_iterable(drawn)]
    order = [one.depths for one in (step.children, *step.cross)]
    return Divided(Cells.join(children), sorted(noisy, key=lambda one: order.index(one.depths)))


class _Batch(NamedTuple):
    """Output of a batch: released children, and noisy counts."""

    children: Cells
    noisy: Sequence[MeasuredTable]


def _divide(division: Division, parents: Cells, truth: Children, pool: ThreadPool) -> _Batch:
    """Measure and divide one batch, in parts if it is large."""
    step, secret = division.step, division.secret
    is_hard = bool(hard_tables(step, parents))

    def find(part: slice) -> tuple[Candidates, MeasuredTable]:
        some = parents.take(part)
        noisy = measure(step.children, step.level.rows(some.areas), truth, secret)
        found = find_candidates(step, some.value, noisy, division.seed, is_hard=is_hard)
        return found, noisy.bare()

    parts = pool.map(find, small_parts(step.level, parents))
    candidates, noisy = zip(*parts, strict=True)
    whole = {one.depths: one for one in division.totals}
    tables = []
    for one in step.cross:
        rows, known = one.marginal.rows(parents.areas), whole.get(one.depths)
        tables.append(measure(one, rows, truth, secret) if known is None else known.take(rows))
    children = divide(step, parents, Candidates.join(candidates), tables, pool)
    kept = [table.bare() for table in tables if table.depths not in whole]
    return _Batch(children, [*noisy, *kept])
