"""Faults that an audit must catch, planted from outside into a sound build.

Each is a slip that real releases of this kind have had or could have. None of them is in the
package: they replace a part of it while a `with` block lasts.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import inftda
from inftda.mechanism import measure, step, topdown
from inftda.noise import bits
from inftda.noise.gaussian import DiscreteGaussian
from inftda.noise.laplace import DiscreteLaplace
from inftda.privacy import plan
from inftda.privacy.accounting import Noise, Share, noise_at
from inftda.privacy.plan import Plan
from inftda.privacy.unit import Unit
from inftda.reading import bounding
from inftda.tree import OffTree, TreeLevel
from inftda.truth import Children


class Nothing:
    """A sampler that draws zeros."""

    def __init__(self, sigma2: Fraction) -> None:
        del sigma2

    def fill(self, out: NDArray[np.int64], *_: object) -> None:
        """No noise."""
        out[:] = 0

    fill_rows = fill


@contextmanager
def without_noise() -> Iterator[None]:
    """What is drawn is zeros."""
    with patch.object(measure, "DiscreteGaussian", Nothing):
        yield


@contextmanager
def noise_scale(factor: Fraction) -> Iterator[None]:
    """All noise is drawn at `factor` times its scale."""
    gaussian, laplace = DiscreteGaussian.__init__, DiscreteLaplace.__init__

    def wrong_gaussian(self: DiscreteGaussian, sigma2: Any, **options: Any) -> None:
        gaussian(self, Fraction(sigma2) * factor**2, **options)

    def wrong_laplace(self: DiscreteLaplace, scale: Any, **options: Any) -> None:
        laplace(self, Fraction(scale) * factor, **options)

    with (
        patch.object(DiscreteGaussian, "__init__", wrong_gaussian),
        patch.object(DiscreteLaplace, "__init__", wrong_laplace),
    ):
        yield


@contextmanager
def sensitivity(of_level: Callable[[Unit, TreeLevel], int]) -> Iterator[None]:
    """Every level that is not the root has this squared sensitivity."""
    right = Unit.squared_sensitivity

    def wrong(self: Unit, level: TreeLevel) -> int:
        return of_level(self, level) if level.index else right(self, level)

    # The plan would notice a sensitivity that is impossible, as would who reads a manifest.
    with patch.object(Unit, "squared_sensitivity", wrong), _plan_unchecked():
        yield


def paper_sensitivity(unit: Unit, level: TreeLevel) -> int:
    """Sqrt(2m), or sqrt(m), at every level, which is right at the leaves only."""
    del level
    return unit.trips * (2 if unit.is_substitute else 1)


def one_sided_sensitivity(unit: Unit, level: TreeLevel) -> int:
    """That a replaced person leaves one cell *and* enters another is forgotten."""
    del level
    return unit.trips**2


@contextmanager
def rho_over_too_few_levels(share: Fraction) -> Iterator[None]:
    """Rho is divided by `share` of the number of levels, so each costs more than its part."""

    def wrong(rho: Fraction, shares: list[Share]) -> tuple[Noise, ...]:
        return noise_at(rho / share, shares)

    with patch.object(plan, "noise_at", wrong), _plan_unchecked():
        yield


@contextmanager
def root_without_noise() -> Iterator[None]:
    """The total is charged and published as it is."""
    right = topdown.measure_root

    def wrong(*asked: Any) -> NDArray[np.int64]:
        with without_noise():
            return right(*asked)

    with patch.object(topdown, "measure_root", wrong):
        yield


@contextmanager
def empty_cells_without_noise() -> Iterator[None]:
    """Only cells that somebody travels in get noise."""
    right = measure.add_truth_kernel

    def wrong(
        x: NDArray[np.int64],
        offsets: NDArray[np.int64],
        key: NDArray[np.int64],
        truth: tuple[NDArray[Any], ...],
    ) -> None:
        there = np.zeros_like(x)
        right(there, offsets, key, truth)
        x[there == 0] = 0
        right(x, offsets, key, truth)

    with patch.object(measure, "add_truth_kernel", wrong):
        yield


@contextmanager
def generator_reused() -> Iterator[None]:
    """What the operating system gives as fresh random bits is the same every time."""
    with patch.object(bits.os, "urandom", bytes):
        yield


@contextmanager
def bits_shared_by_blocks() -> Iterator[None]:
    """All parents of a level draw the same bits; every release draws others."""
    right = bits.number_blocks_kernel

    def wrong(rows: NDArray[np.int64], *asked: Any) -> None:
        right(np.zeros_like(rows), *asked)

    with patch.object(bits, "number_blocks_kernel", wrong):
        yield


@contextmanager
def contributions_unbounded() -> Iterator[None]:
    """All trips of a person are counted, however many there are."""
    right = bounding._chosen
    with patch.object(bounding, "_chosen", lambda leaf, areas, _: right(leaf, areas, 10**9)):
        yield


@contextmanager
def tables_not_charged() -> Iterator[None]:
    """The tree has the whole budget, and off-tree tables are measured far more precisely."""
    right = plan.make_plan

    def wrong(*asked: Any, **budget: Any) -> Plan:
        alone, both = right(*asked, **{**budget, "across": 0}), right(*asked, **budget)
        least = min(level.sigma2 for level in alone.levels)
        free = tuple(replace(table, sigma2=least / 8) for table in both.tables)
        return replace(both, levels=alone.levels, tables=free)

    with patch.object(inftda, "make_plan", wrong), _plan_unchecked():
        yield


@contextmanager
def sensitivity_of_tables() -> Iterator[None]:
    """In off-tree tables a person counts as if they made one trip."""
    right = Unit.squared_sensitivity

    def wrong(self: Unit, level: TreeLevel) -> int:
        return right(replace(self, trips=1) if isinstance(level, OffTree) else self, level)

    with patch.object(Unit, "squared_sensitivity", wrong), _plan_unchecked():
        yield


@contextmanager
def prices_from_the_truth() -> Iterator[None]:
    """Prices go by true sums; what is published as measured has its noise."""
    right = topdown.divide_all

    def wrong(
        given: step.Step, parents: step.Nodes, truth: Children, *asked: Any, **how: Any
    ) -> Any:
        if given.totals is not None:
            sums = np.zeros(len(given.totals), np.int64)
            areas = truth.areas()[given.level.axis]
            np.add.at(sums, areas, truth.count)
            given = replace(given, totals=sums)
        return right(given, parents, truth, *asked, **how)

    tables = topdown.measure_table

    def true_table(*asked: Any) -> NDArray[np.int64]:
        with without_noise():
            return tables(*asked)

    with (
        patch.object(topdown, "divide_all", wrong),
        patch.object(topdown, "measure_table", true_table),
    ):
        yield


@contextmanager
def totals_drawn_twice() -> Iterator[None]:
    """Prices go by other noise than that of the totals which are published."""
    right = topdown.divide_all

    def wrong(
        given: step.Step, parents: step.Nodes, truth: Children, *asked: Any, **how: Any
    ) -> Any:
        if given.totals is not None and given.one_way is not None:
            hierarchy, depth = given.level.axes[given.level.axis].hierarchy, given.level.depths
            above = hierarchy.descendant_offsets(depth[given.level.axis], hierarchy.depth)[:-1]
            margin = np.zeros(hierarchy.n_areas(hierarchy.depth), np.int64)
            np.add.at(margin, above[truth.areas()[given.level.axis]], truth.count)
            secret = replace(asked[0], secret=bytes(b ^ 1 for b in asked[0].secret))
            given = replace(given, totals=measure.measure_totals(given, margin, secret))
        return right(given, parents, truth, *asked, **how)

    with patch.object(topdown, "divide_all", wrong):
        yield


@contextmanager
def measurements_without_noise() -> Iterator[None]:
    """Flows are made of noisy counts; what is published as measured is the truth."""
    right = topdown._divide

    def wrong(*asked: Any, **how: Any) -> Any:
        with without_noise():
            bare = right(*asked, **how)
        return right(*asked, **how)._replace(noisy=bare.noisy)

    with patch.object(topdown, "_divide", wrong):
        yield


@contextmanager
def measurements_of_true_cells() -> Iterator[None]:
    """Noisy values are published only of cells that somebody travels in."""
    right = topdown._divide

    def wrong(*asked: Any, **how: Any) -> Any:
        with without_noise():
            bare = right(*asked, **how)
        made = right(*asked, **how)
        kept = []
        for truth, noisy in zip(bare.noisy, made.noisy, strict=True):
            is_there = truth.value > 0
            areas = tuple(numbers[is_there] for numbers in noisy.cells())
            one = np.ones(int(is_there.sum()), np.int64)
            kept.append(step.Noisy(noisy.depths, noisy.refined, areas, one, noisy.value[is_there]))
        return made._replace(noisy=kept)

    with patch.object(topdown, "_divide", wrong):
        yield


@contextmanager
def measurements_drawn_twice() -> Iterator[None]:
    """What is published as measured was drawn once more, with fresh noise."""
    right = topdown._divide

    def wrong(given: Any, parents: Any, truth: Any, secret: Any, *asked: Any, **how: Any) -> Any:
        other = replace(secret, secret=bytes(b ^ 1 for b in secret.secret))
        again = right(given, parents, truth, other, *asked, **how)
        return right(given, parents, truth, secret, *asked, **how)._replace(noisy=again.noisy)

    with patch.object(topdown, "_divide", wrong):
        yield


@contextmanager
def _plan_unchecked() -> Iterator[None]:
    """A plan recomputes its promise and would refuse; here it does not."""
    unchecked = {"verify": lambda *_: None, "check_parts": lambda _: None}
    with patch.multiple(Plan, **unchecked):
        yield


@contextmanager
def nothing() -> Iterator[None]:
    """The package is sound; what it is given is not."""
    yield
