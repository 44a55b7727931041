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
from inftda.lattice import Table
from inftda.mechanisms import step, topdown
from inftda.mechanisms.across import AcrossStep
from inftda.mechanisms.base import Setting
from inftda.noise import entropy
from inftda.noise.discrete_gaussian import DiscreteGaussian
from inftda.noise.discrete_laplace import DiscreteLaplace
from inftda.privacy import plan
from inftda.privacy.accounting import Noise, Share, noise_at
from inftda.privacy.plan import Plan
from inftda.privacy.unit import PrivacyUnit
from inftda.reading import bounding
from inftda.tree import TreeLevel


class Nothing:
    """A sampler that draws zeros."""

    def fill(self, out: NDArray[np.int64], stream: entropy.Stream) -> None:
        """No noise."""
        del stream
        out[:] = 0


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
def sensitivity(of_level: Callable[[PrivacyUnit, TreeLevel], int]) -> Iterator[None]:
    """Every level that is not the root has this squared sensitivity."""
    right = PrivacyUnit.squared_sensitivity

    def wrong(self: PrivacyUnit, level: TreeLevel) -> int:
        return of_level(self, level) if level.index else right(self, level)

    # The plan would notice a sensitivity that is impossible, as would who reads a manifest.
    with patch.object(PrivacyUnit, "squared_sensitivity", wrong), _plan_unchecked():
        yield


def paper_sensitivity(unit: PrivacyUnit, level: TreeLevel) -> int:
    """Sqrt(2m), or sqrt(m), at every level, which is right at the leaves only."""
    del level
    return unit.trips * (2 if unit.is_substitute else 1)


def one_sided_sensitivity(unit: PrivacyUnit, level: TreeLevel) -> int:
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
    right = topdown.release_total

    def wrong(total: int, setting: Setting[Any, Any]) -> int:
        return right(total, replace(setting, make_sampler=lambda _: Nothing()))  # type: ignore[arg-type, return-value] # a sampler that only fills

    with patch.object(topdown, "release_total", wrong):
        yield


@contextmanager
def empty_cells_without_noise() -> Iterator[None]:
    """Only cells that somebody travels in get noise."""
    right = step.add_truth_kernel

    def wrong(
        x: NDArray[np.int64],
        start: NDArray[np.int64],
        truth: NDArray[np.int64],
        *children: NDArray[Any],
    ) -> None:
        true_start, true_ordinal, _ = children
        parents = np.flatnonzero((truth >= 0) & (np.diff(start) > 0))
        first, last = true_start[truth[parents]], true_start[truth[parents] + 1]
        child = np.repeat(last - np.cumsum(last - first), last - first) + np.arange(
            (last - first).sum()
        )
        is_true = np.zeros(len(x), bool)
        is_true[np.repeat(start[parents], last - first) + true_ordinal[child]] = True
        x[~is_true] = 0
        right(x, start, truth, *children)

    with patch.object(step, "add_truth_kernel", wrong):
        yield


@contextmanager
def generator_reused() -> Iterator[None]:
    """What the operating system gives as fresh random bits is the same every time."""
    with patch.object(entropy.os, "urandom", bytes):
        yield


@contextmanager
def bits_shared_by_blocks() -> Iterator[None]:
    """Every item of work of a release draws the same bits; every release draws others."""

    def wrong(self: entropy.SeededSource, *labels: int) -> entropy.Stream:
        return right(self, *labels[:1])  # the level, without the number of the block

    right = entropy.SeededSource.stream
    with patch.object(entropy.SeededSource, "stream", wrong):
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
    right = PrivacyUnit.squared_sensitivity

    def wrong(self: PrivacyUnit, level: TreeLevel) -> int:
        return right(replace(self, trips=1) if isinstance(level, Table) else self, level)

    with patch.object(PrivacyUnit, "squared_sensitivity", wrong), _plan_unchecked():
        yield


@contextmanager
def prices_from_the_truth() -> Iterator[None]:
    """Prices go by true sums; what is published as measured has its noise."""
    right = AcrossStep._cells_of

    def wrong(self: AcrossStep, *asked: Any) -> NDArray[np.int64]:
        tables = tuple(replace(known, sampler=Nothing()) for known in self.across.tables)
        across = replace(self.across, tables=tables, totals=None)
        return right(replace(self, across=across), *asked)

    with patch.object(AcrossStep, "_cells_of", wrong):
        yield


@contextmanager
def totals_drawn_twice() -> Iterator[None]:
    """Prices go by other noise than that of the totals which are published."""
    right = AcrossStep._cells_of

    def wrong(self: AcrossStep, number: int, item: int, *asked: Any) -> NDArray[np.int64]:
        across = replace(self.across, totals=None)
        return right(replace(self, across=across), number, item + 10**6, *asked)

    with patch.object(AcrossStep, "_cells_of", wrong):
        yield


@contextmanager
def measurements_without_noise() -> Iterator[None]:
    """Flows are made of noisy counts; what is published as measured is the truth."""
    right = step.LevelStep.divide

    def wrong(self: step.LevelStep, *asked: Any, **how: Any) -> step.Divided:
        bare = right(replace(self, sampler=Nothing()), *asked, **how)  # type: ignore[arg-type] # a sampler that only fills
        return right(self, *asked, **how)._replace(drawn=bare.drawn)

    with patch.object(step.LevelStep, "divide", wrong):
        yield


@contextmanager
def measurements_of_true_cells() -> Iterator[None]:
    """Noisy values are published only of cells that somebody travels in."""
    right = step.LevelStep.divide

    def wrong(self: step.LevelStep, *asked: Any, **how: Any) -> step.Divided:
        bare = right(replace(self, sampler=Nothing()), *asked, **how)  # type: ignore[arg-type] # likewise
        made = right(self, *asked, **how)
        (truth,), (drawn,) = bare.drawn, made.drawn
        is_there = truth.value > 0
        areas = tuple(numbers[is_there] for numbers in drawn.cells())
        one = np.ones(int(is_there.sum()), np.int64)
        some = step.Drawn(drawn.depths, drawn.refined, areas, one, drawn.value[is_there])
        return made._replace(drawn=(some,))

    with patch.object(step.LevelStep, "divide", wrong):
        yield


@contextmanager
def measurements_drawn_twice() -> Iterator[None]:
    """What is published as measured was drawn once more, with fresh noise."""
    right = step.LevelStep.divide

    def wrong(self: step.LevelStep, item: int, *asked: Any, **how: Any) -> step.Divided:
        again = right(self, item + 10**6, *asked, **how)
        return right(self, item, *asked, **how)._replace(drawn=again.drawn)

    with patch.object(step.LevelStep, "divide", wrong):
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
