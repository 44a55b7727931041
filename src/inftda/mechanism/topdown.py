"""InfTDA: noise and integer optimisation, level by level from the root (paper, section 4).

What is measured for one level is `inftda.mechanism.measure`, what is made of it
`inftda.mechanism.step`; here are the loop over the levels and the threads of one machine. The work
is the number of children of surviving parents.

Privacy:
    Level l is the discrete Gaussian mechanism on all its nodes at the scale the plan
    states; nodes below a dropped parent, and only children, are not drawn because the
    release does not depend on them (post-processing). Tables off the tree are further
    levels of this kind, as far as the plan has any. See docs/guarantee.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np

from inftda.mechanism.intopt import Candidates, Seed, words_of
from inftda.mechanism.measure import measure, measure_root, measure_table, measure_totals
from inftda.mechanism.prices import Groups
from inftda.mechanism.step import (
    PART_CHILDREN,
    Ints,
    Nodes,
    Noisy,
    Step,
    batches,
    divide,
    find_candidates,
    small_parts,
)
from inftda.noise.bits import RandomSource, Secret, draw_seed
from inftda.privacy.plan import Account
from inftda.screen import Progress, no_progress
from inftda.threads import Crew
from inftda.tree import OffTree, Tree, TreeLevel
from inftda.truth import Children, Truth

#: Batches of more children than this are divided on all threads.
LARGE: Final = 8 * PART_CHILDREN

#: Takes noisy counts as they are drawn, table after table.
Keep = Callable[[Noisy], object]


@dataclass(frozen=True)
class MeasuredTotals:
    """A one-way table off the tree, as it was measured: it may be published.

    Attributes:
        table: the table.
        value: int64[areas], noisy.
        sigma2: variance parameter of its noise.
    """

    table: OffTree
    value: Ints
    sigma2: Fraction


class Outcome(NamedTuple):
    """What comes of a release, all of which may be published.

    Attributes:
        leaves: released leaves.
        totals: one-way tables off the tree.
        seed: what decided ties.
    """

    leaves: Any
    totals: tuple[MeasuredTotals, ...]
    seed: bytes


def release_counts(  # noqa: PLR0913 - what is released, by which plan, where it goes
    truth: Truth,
    account: Account,
    source: RandomSource,
    *,
    threads: int | None = None,
    progress: Progress = no_progress,
    keep: Keep | None = None,
) -> Outcome:
    """Release the counts of a tree on the threads of this machine.

    Args:
        truth: the counts.
        account: a fresh account of the plan; the only place that noise scales come from.
        source: random bits.
        threads: how many; all cores by default. The release does not depend on it.
        progress: called as work is finished.
        keep: takes all noisy counts; without it they are forgotten.

    Raises:
        BudgetError: not all that was planned was drawn.
    """
    crew = Crew(threads)

    def carry_out(step: Step, parents: Nodes, secret: Secret, seed: Seed) -> Nodes:
        return divide_all(
            step, parents, truth.level(step.level), secret, seed,
            crew=crew, progress=progress, keep=keep,
        )  # fmt: skip

    return top_down(truth, account, source, carry_out, keep=keep)


def top_down(
    truth: Any,
    account: Account,
    source: RandomSource,
    carry_out: Callable[[Step, Any, Secret, Seed], Any],
    *,
    keep: Keep | None = None,
) -> Outcome:
    """The loop over the levels; `carry_out` makes children of parents, wherever that is done.

    Of the truth, wherever it is, `tree`, `total` and `margins` are asked for here.
    """
    tree: Tree = truth.tree
    secret, seed = Secret.of(source), draw_seed(source)
    nodes = Nodes.root(len(tree.axes), _total(truth.total, len(tree.axes), account, secret, keep))
    totals = []
    for level in tree.splitting_levels:
        step = step_to(level, tree, account)
        if step.one_way is not None:
            table, sigma2 = step.one_way
            noisy = measure_totals(step, truth.margins[level.axis], secret)
            totals.append(MeasuredTotals(table, noisy, sigma2))
            step = replace(step, totals=noisy)
        nodes = carry_out(step, nodes, secret, words_of(seed))
    account.finish()
    return Outcome(nodes, tuple(totals), seed)


def step_to(level: TreeLevel, tree: Tree, account: Account) -> Step:
    """The step to a level; all that is measured there is taken from the account."""
    sigma2 = account.charge(level.index).sigma2
    tables = [
        (table, account.charge(table.depths).sigma2)
        for table in tree.off_tree_at(level)
        if account.is_planned(table.depths)
    ]
    return Step(level, sigma2, tuple(tables))


def _total(total: int, n_axes: int, account: Account, secret: Secret, keep: Keep | None) -> int:
    """The root: public where the unit makes it so, otherwise noised and clamped at 0."""
    if not account.is_planned(0):
        return total
    noisy = measure_root(total, account.charge(0).sigma2, secret)
    if keep is not None:
        root = tuple(np.zeros(1, np.int32) for _ in range(n_axes))
        keep(Noisy((0,) * n_axes, 0, root, np.ones(1, np.int64), noisy))
    return max(int(noisy[0]), 0)


def divide_all(  # noqa: PLR0913 - one step, and how it is carried out
    step: Step,
    parents: Nodes,
    truth: Children,
    secret: Secret,
    seed: Seed,
    *,
    crew: Crew,
    progress: Progress = no_progress,
    keep: Keep | None = None,
) -> Nodes:
    """Released children of released parents, batches of them on all threads.

    Noisy counts of the tree are handed on as they come, those of other tables after them.
    """

    def carry_out(batch: slice, crew: Crew = Crew(1)) -> _Batch:  # noqa: B008 - has no state
        groups = Groups.of(step.level, parents.take(batch))
        return _divide(step, groups, truth, secret, seed, crew, is_kept=keep is not None)

    parents = parents.in_group_order(step.level, crew)
    total, done = int(step.offsets(parents)[-1]), 0
    work = np.concatenate([[0], np.cumsum(step.n_children(parents))])
    progress(step.level.name, 0, total)
    children, tables = [Nodes.root(len(parents.areas), 0)], []
    cut = batches(step, parents)
    for is_large, some in groupby(cut, lambda b: work[b.stop] - work[b.start] > LARGE):
        # A very large one on all threads, others on a thread each.
        for made in (carry_out(b, crew) for b in some) if is_large else crew.map(carry_out, some):
            done += made.n_draws
            progress(step.level.name, done, total)
            children.append(made.children)
            if keep is not None:
                tables.append(made.tables)
                for noisy in made.noisy:
                    keep(noisy)
    if keep is not None:
        if step.totals is not None:
            keep(step.noisy_totals())
        for noisy in (noisy for parts in zip(*tables, strict=True) for noisy in parts):
            keep(noisy)
    return Nodes.join(children)


class _Batch(NamedTuple):
    """What has become of a batch: children, and noisy counts if they are wanted."""

    children: Nodes
    n_draws: int
    noisy: Sequence[Noisy]
    tables: Sequence[Noisy]


def _divide(  # noqa: PLR0913, PLR0917 - private
    step: Step,
    groups: Groups,
    truth: Children,
    secret: Secret,
    seed: Seed,
    crew: Crew,
    *,
    is_kept: bool,
) -> _Batch:
    """Measure and divide one batch, if it is large in parts."""
    level, parents, is_hard = step.level, groups.parents, step.is_hard(groups)

    def find(part: slice) -> tuple[Candidates, Noisy | None]:
        some = parents.take(part)
        x = measure(step, some, truth, secret)
        noisy = Noisy.below(level, level.depths, some.areas, x.copy()) if is_kept else None
        return find_candidates(step, some, x, seed, is_hard=is_hard), noisy

    found, noisy = zip(*crew.map(find, small_parts(step, parents)), strict=True)
    tables = {
        known[0].depths: measure_table(step, known, groups, truth, secret) for known in step.two_way
    }
    children = divide(step, groups, Candidates.join(found), tables, crew)
    return _Batch(
        children,
        int(step.offsets(parents)[-1]),
        [one for one in noisy if one is not None],
        [
            Noisy.below(level, table.depths, groups.areas_of(table), tables[table.depths])
            for table, _ in step.two_way
            if is_kept
        ],
    )
