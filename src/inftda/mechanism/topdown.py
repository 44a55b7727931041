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

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain, groupby
from typing import Any, Final, NamedTuple

import numpy as np

from inftda.mechanism.intopt import Candidates, Seed, words_of
from inftda.mechanism.measure import measure, measure_root, measure_table, measure_totals
from inftda.mechanism.prices import Groups
from inftda.mechanism.step import (
    PART_CHILDREN,
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
from inftda.tree import Tree, TreeLevel
from inftda.truth import Children, Truth

#: Batches of more children than this are divided on all threads.
LARGE: Final = 8 * PART_CHILDREN


class Outcome(NamedTuple):
    """What comes of a release, all of which may be published.

    Attributes:
        leaves: released leaves.
        noisy: all noisy counts as they were drawn, table after table; to be gone through once.
        seed: what decided ties.
    """

    leaves: Any
    noisy: Iterable[Noisy]
    seed: bytes


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
        account: a fresh account of the plan; the only place that noise scales come from.
        source: random bits.
        threads: how many; all cores by default. The release does not depend on it.
        progress: called as work is finished.

    Raises:
        BudgetError: not all that was planned was drawn.
    """
    crew = Crew(threads)

    def carry_out(step: Step, parents: Nodes, secret: Secret, seed: Seed) -> Divided:
        return divide_all(
            step, parents, truth.level(step.level), secret, seed, crew=crew, progress=progress
        )

    return top_down(truth, account, source, carry_out)


def top_down(
    truth: Any,
    account: Account,
    source: RandomSource,
    carry_out: Callable[[Step, Any, Secret, Seed], tuple[Any, Iterable[Noisy]]],
) -> Outcome:
    """The loop over the levels; `carry_out` makes children of parents, wherever that is done.

    Of the truth, wherever it is, `tree`, `total` and `margins` are asked for here.
    """
    tree: Tree = truth.tree
    secret, seed = Secret.of(source), draw_seed(source)
    total, drawn = truth.total, list[Iterable[Noisy]]()
    if account.is_planned(0):
        root = measure_root(total, account.charge(0).noise, secret)
        nowhere = tuple(np.zeros(1, np.int32) for _ in tree.axes)
        drawn.append([Noisy(tree.levels[0].depths, 0, nowhere, np.ones(1, np.int64), root)])
        total = max(int(root[0]), 0)
    nodes = Nodes.root(len(tree.axes), total)
    for level in tree.splitting_levels:
        step = step_to(level, tree, account)
        if step.one_way is not None:
            totals = measure_totals(step, truth.margins[level.axis], secret)
            step = replace(step, totals=totals)
        nodes, noisy = carry_out(step, nodes, secret, words_of(seed))
        drawn.append(noisy)
    account.finish()
    return Outcome(nodes, chain.from_iterable(drawn), seed)


def step_to(level: TreeLevel, tree: Tree, account: Account) -> Step:
    """The step to a level; all that is measured there is taken from the account."""
    noise = account.charge(level.index).noise
    tables = [
        (table, account.charge(table.depths).noise)
        for table in tree.off_tree_at(level)
        if account.is_planned(table.depths)
    ]
    return Step(level, noise, tuple(tables))


class Divided(NamedTuple):
    """What comes of a step: released children, and noisy counts, the tree's before the others."""

    children: Nodes
    noisy: list[Noisy]


def divide_all(  # noqa: PLR0913 - one step, and how it is carried out
    step: Step,
    parents: Nodes,
    truth: Children,
    secret: Secret,
    seed: Seed,
    *,
    crew: Crew,
    progress: Progress = no_progress,
) -> Divided:
    """Released children of released parents, batches of them on all threads."""

    def carry_out(batch: slice, crew: Crew = Crew(1)) -> _Batch:  # noqa: B008 - has no state
        groups = Groups.of(step.level, parents.take(batch))
        return _divide(step, groups, truth, secret, seed, crew)

    parents = parents.in_group_order(step.level, crew)
    total, done = int(step.offsets(parents)[-1]), 0
    work = np.concatenate([[0], np.cumsum(step.n_children(parents))])
    progress(step.level.name, 0, total)
    children, noisy, tables = [Nodes.root(len(parents.areas), 0)], list[Noisy](), []
    cut = batches(step, parents)
    for is_large, some in groupby(cut, lambda b: work[b.stop] - work[b.start] > LARGE):
        # A very large one on all threads, others on a thread each.
        for made in (carry_out(b, crew) for b in some) if is_large else crew.map(carry_out, some):
            done += made.n_draws
            progress(step.level.name, done, total)
            children.append(made.children)
            noisy += made.noisy
            tables.append(made.tables)
    if step.totals is not None:
        noisy.append(step.noisy_totals())
    noisy += chain.from_iterable(zip(*tables, strict=True))
    return Divided(Nodes.join(children), noisy)


class _Batch(NamedTuple):
    """What has become of a batch: children, and noisy counts."""

    children: Nodes
    n_draws: int
    noisy: Sequence[Noisy]
    tables: Sequence[Noisy]


def _divide(  # noqa: PLR0913, PLR0917 - private
    step: Step, groups: Groups, truth: Children, secret: Secret, seed: Seed, crew: Crew
) -> _Batch:
    """Measure and divide one batch, if it is large in parts."""
    level, parents, is_hard = step.level, groups.parents, step.is_hard(groups)

    def find(part: slice) -> tuple[Candidates, Noisy]:
        some = parents.take(part)
        x = measure(step, some, truth, secret)
        found = find_candidates(step, some, x, seed, is_hard=is_hard)
        return found, Noisy.below(level, level.depths, some.areas, x)

    found, noisy = zip(*crew.map(find, small_parts(step, parents)), strict=True)
    tables = {
        known[0].depths: measure_table(step, known, groups, truth, secret) for known in step.two_way
    }
    return _Batch(
        divide(step, groups, Candidates.join(found), tables, crew),
        int(step.offsets(parents)[-1]),
        noisy,
        [
            Noisy.below(level, table.depths, groups.areas_of(table), tables[table.depths])
            for table, _ in step.two_way
        ],
    )
