"""Faults that an audit must catch, planted from outside into a sound build.

Each is a slip that real releases of this kind have had or could have. None of them is in the
package: they replace a part of it while a `with` block lasts.
"""

from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from fractions import Fraction
from unittest.mock import patch

import numpy as np

import inftda
from inftda.mechanism import measure, topdown
from inftda.noise import bits
from inftda.noise.distribution import Noise
from inftda.privacy import accountants, accounting
from inftda.privacy import guarantee as promise
from inftda.privacy import noise_plan as plan
from inftda.privacy.accounting import noise_at, pure_noise
from inftda.privacy.noise_plan import Plan
from inftda.privacy.unit import Unit
from inftda.reading import bounding
from inftda.tree import CellRows, CrossTable

#: The package is sound; what it is given is not.
nothing = nullcontext


@contextmanager
def together(*patches):
    """Several replacements at once."""
    with ExitStack() as stack:
        for one in patches:
            stack.enter_context(one)
        yield


def _plan_unchecked():
    """A plan recomputes its guarantee and would refuse; here it does not."""
    return patch.multiple(Plan, verify=lambda *_: None, check_parts=lambda _: None)


def without_noise():
    """What is drawn is zeros."""
    return patch.object(Noise, "fill_rows", lambda _, out, *__: out.fill(0))


def noise_scale(factor, families=("gaussian", "laplace")):
    """All noise, or that of some families, is drawn at `factor` times its scale."""
    right = Noise.table

    def wrong(law, *asked):
        is_wrong = law.family in families
        return right(Noise(law.square * factor**2, law.family) if is_wrong else law, *asked)

    return patch.object(Noise, "table", wrong)


def _sensitivity(of_level):
    """Every level that is not the root has this squared sensitivity."""
    right = Unit.squared_sensitivity

    def wrong(self, level):
        return of_level(self, level) if level.index else right(self, level)

    # The plan would notice a sensitivity that is impossible, as would who reads a manifest.
    return together(patch.object(Unit, "squared_sensitivity", wrong), _plan_unchecked())


def paper_sensitivity():
    """Sqrt(2m), or sqrt(m), at every level, which is right at the leaves only."""
    return _sensitivity(lambda unit, _: unit.trips * (2 if unit.is_substitute else 1))


def one_sided_sensitivity():
    """That a replaced person leaves one cell *and* enters another is forgotten."""
    return together(
        _sensitivity(lambda unit, _: unit.trips**2), patch.object(Unit, "sides", lambda *_: 1)
    )


def sensitivity_of_tables():
    """In off-tree tables a person counts as if they made one trip."""
    right = Unit.squared_sensitivity

    def wrong(self, level):
        return right(replace(self, trips=1) if isinstance(level, CrossTable) else self, level)

    return together(patch.object(Unit, "squared_sensitivity", wrong), _plan_unchecked())


def rho_over_too_few_levels(share):
    """Rho is divided by `share` of the number of levels, so each costs more than its part."""
    return together(
        patch.object(promise, "noise_at", lambda rho, shares: noise_at(rho / share, shares)),
        _plan_unchecked(),
    )


def root_without_noise():
    """The total is charged and published as it is."""
    right = topdown.measure_root

    def wrong(*asked):
        with without_noise():
            return right(*asked)

    return patch.object(topdown, "measure_root", wrong)


def empty_cells_without_noise():
    """Only cells that somebody travels in get noise."""
    right = measure.add_truth_kernel

    def wrong(x, *asked):
        there = np.zeros_like(x)
        right(there, *asked)
        x[there == 0] = 0
        right(x, *asked)

    return patch.object(measure, "add_truth_kernel", wrong)


def generator_reused():
    """What the operating system gives as fresh random bits is the same every time."""
    return patch.object(bits.os, "urandom", bytes)


def bits_shared_by_blocks():
    """All parents of a level draw the same bits; every release draws others."""
    right = bits.number_blocks_kernel

    def wrong(rows, *asked):
        right(np.zeros_like(rows), *asked)

    return patch.object(bits, "number_blocks_kernel", wrong)


def contributions_unbounded():
    """All trips of a person are counted, however many there are."""
    right = bounding._chosen

    def wrong(n, starts, month, _, *others):
        return right(n, starts, month, 10**9, *others)

    return patch.object(bounding, "_chosen", wrong)


def tables_not_charged():
    """The tree has the whole budget, and off-tree tables are measured far more precisely."""
    right = plan.make_plan

    def wrong(*asked, **budget):
        alone, both = right(*asked, **{**budget, "cross_tables": 0}), right(*asked, **budget)
        least = min(level.noise.square for level in alone.levels)
        free = tuple(replace(table, noise=Noise(least / 8)) for table in both.tables)
        return replace(both, levels=alone.levels, tables=free)

    return together(patch.object(inftda, "make_plan", wrong), _plan_unchecked())


def prices_from_the_truth():
    """Dual variables go by true sums; what is published as measured has its noise."""
    right, tables = topdown.divide_all, topdown.measure

    def wrong(given, parents, truth, **how):
        true = []
        for one in given.totals:
            sums = np.zeros(len(one.value), np.int64)
            np.add.at(sums, truth.areas()[given.step.level.axis], truth.count)
            true.append(one._replace(value=sums))
        made = right(replace(given, totals=true), parents, truth, **how)
        return _with_totals(made, given.totals)

    def true_table(measurement, *asked):
        if measurement.is_on_tree:
            return tables(measurement, *asked)
        with without_noise():
            return tables(measurement, *asked)

    return together(
        patch.object(topdown, "divide_all", wrong), patch.object(topdown, "measure", true_table)
    )


def totals_drawn_twice():
    """Dual variables go by other noise than that of the totals which are published."""
    right = topdown.divide_all

    def wrong(given, parents, truth, **how):
        level = given.step.level
        hierarchy, depth = level.axes[level.axis].hierarchy, level.depths
        above = hierarchy.descendant_offsets(depth[level.axis], hierarchy.depth)[:-1]
        margin = np.zeros(hierarchy.n_areas(hierarchy.depth), np.int64)
        np.add.at(margin, above[truth.areas()[level.axis]], truth.count)
        others = measure.measure_totals(given.step, margin, _other(given.secret))
        made = right(replace(given, totals=others), parents, truth, **how)
        return _with_totals(made, given.totals)

    return patch.object(topdown, "divide_all", wrong)


def _with_totals(made, totals):
    """What comes of a step, with the totals that are published in the place of those it used."""
    known = {one.depths: one for one in totals}
    return made._replace(noisy=[known.get(one.depths, one) for one in made.noisy])


def _other(secret):
    """Another secret."""
    return replace(secret, secret=bytes(byte ^ 1 for byte in secret.secret))


def _published(noisy_of):
    """Flows are made as ever; what is published as measured is something else."""
    right = topdown._divide

    def on_tree(made):
        return [one for one in made.noisy if one.measurement.is_on_tree]

    def wrong(*asked, **how):
        made = right(*asked, **how)
        tables = made.noisy[len(on_tree(made)) :]
        made = made._replace(noisy=on_tree(made))
        noisy = noisy_of(made, lambda *other: on_tree(right(*other, **how)), asked)
        return made._replace(noisy=[*noisy, *tables])

    return patch.object(topdown, "_divide", wrong)


def _true_values(divide, asked):
    with without_noise():
        return divide(*asked)


def measurements_without_noise():
    """What is published as measured is the truth."""
    return _published(lambda _, divide, asked: _true_values(divide, asked))


def measurements_of_true_cells():
    """Noisy values are published only of cells that somebody travels in."""

    def only(made, divide, asked):
        kept = []
        for truth, noisy in zip(_true_values(divide, asked), made.noisy, strict=True):
            is_there = truth.value > 0
            areas = tuple(numbers[is_there] for numbers in noisy.cells())
            rows = CellRows(noisy.rows.axis, areas, np.ones(int(is_there.sum()), np.int64))
            kept.append(noisy._replace(rows=rows, value=noisy.value[is_there]))
        return kept

    return _published(only)


def measurements_drawn_twice():
    """What is published as measured was drawn once more, with fresh noise."""

    def again(_, divide, asked):
        division, *others = asked
        return divide(replace(division, secret=_other(division.secret)), *others)

    return _published(again)


def laplace_charged_too_little():
    """Laplace noise is drawn at a quarter of its scale."""
    return noise_scale(Fraction(1, 4), ["laplace"])


def laplace_of_another_unit():
    """With delta 0, noise is that of a unit of one trip, whatever a person may have."""

    def wrong(epsilon, shares):
        one_trip = [share.sensitivity._replace(trips=1) for share in shares]
        return pure_noise(
            epsilon,
            [share._replace(sensitivity=one) for share, one in zip(shares, one_trip, strict=True)],
        )

    return together(patch.object(promise, "pure_noise", wrong), _plan_unchecked())


@contextmanager
def losses_with_a_wrong_sign():
    """The curve is shifted the wrong way by what Laplace noise loses; the check of a plan, too."""
    right = accountants._laplace_losses
    negated = patch.object(
        accountants, "_laplace_losses", lambda parts: [(p, -loss) for p, loss in right(parts)]
    )
    accounting._largest_rho.cache_clear()
    with negated:
        yield
    accounting._largest_rho.cache_clear()
