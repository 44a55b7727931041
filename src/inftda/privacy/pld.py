"""Privacy loss distributions by dp-accounting: one-trip units with any split of the budget.

All levels together are a product of unit shifts of discrete Gaussians; the library composes
their loss distributions, rounded so that delta is overstated. Its convolutions are Fourier
transforms in floating point: their error is bounded here and added to delta, which makes
the result useless far below 1e-11. Must never be used for several trips, and the continuous
Gaussian must never stand in for the discrete one: it claims too much.

The library takes a second to import, so it is imported when it is needed.
Proofs: `docs/proofs/accounting.md`, section 6.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np

from inftda.privacy.levels import Curve, Measured, total_rho

#: Below this delta, rounding in the transforms would dominate.
MIN_PLD_DELTA: Final = 1e-11
#: Above this sigma the library's tables take seconds per level.
MAX_PLD_SIGMA2: Final = Fraction(20_000**2)
#: Step of the loss grid: the library's default, but within these numbers of steps in one
#: standard deviation of the loss.
_STEP: Final = 1e-4
_FEWEST_STEPS: Final = 200
_MOST_STEPS: Final = 2000
#: The library cuts noise off at 11.6 sigma, leaving out less than 1e-29.
_CUT: Final = 11.6


def pld_curve(levels: Sequence[Measured]) -> Curve:
    """From epsilon to delta for these levels, which must all consist of unit shifts."""
    groups = _grouped(levels)
    width = math.sqrt(2 * float(total_rho(levels)))
    # One variance: the library's defaults, for figures that can be compared with published
    # ones (the exact accountant is tighter there anyway). Several: its finer method.
    is_fine = len(groups) > 1
    step = min(max(_STEP, width / _MOST_STEPS), width / _FEWEST_STEPS)
    if is_fine:
        step = width / (2 * _FEWEST_STEPS)
    composed: Any = None
    for sigma2, repeats in groups.items():
        distribution = _single(sigma2, step, is_fine=is_fine).self_compose(repeats)
        composed = distribution if composed is None else composed.compose(distribution)
    slack = transform_error(groups, step)

    def delta(epsilon: float) -> float:
        with np.errstate(all="ignore"):
            value = float(composed.get_delta_for_epsilon(epsilon))
        return min(1.0, value * (1 + 1e-9) + slack)

    return delta


def transform_error(groups: Mapping[Fraction, int], step: float) -> float:
    """What the transforms of composing may add to or take from delta, at most.

    A transform of n entries is right to log2(n) units in the last place of the norm of the
    vector; powers multiply that by the number of factors, and a sum over n entries by
    sqrt(n). The squared norm of probabilities is at most the largest of them: that of the
    few draws whose losses fall into one step.
    """
    n_shifts = sum(groups.values())
    entries = sum(n * (2 * _CUT / math.sqrt(s) + 2 / float(s)) / step for s, n in groups.items())
    largest = max((step * float(s) + 2) / math.sqrt(2 * math.pi * s) for s in groups)
    norm = math.sqrt(min(1.0, largest))
    return 2.0**-53 * (n_shifts + 2) * math.log2(entries + 2) * math.sqrt(entries + 2) * norm


def _grouped(levels: Sequence[Measured]) -> dict[Fraction, int]:
    """Number of unit shifts for each variance."""
    shifts: dict[Fraction, int] = {}
    for level in levels:
        shifts[level.sigma2] = shifts.get(level.sigma2, 0) + level.n_shifts
    return shifts


def _single(sigma2: Fraction, step: float, *, is_fine: bool) -> Any:
    """Loss distribution of one unit shift, at a sigma rounded to the nearest float."""
    from dp_accounting.pld import (  # noqa: PLC0415 - takes a second
        privacy_loss_distribution,
    )

    with np.errstate(all="ignore"):  # logarithms of 0 are meant in the library
        return privacy_loss_distribution.from_discrete_gaussian_mechanism(
            math.sqrt(sigma2),
            value_discretization_interval=step,
            use_connect_dots=is_fine,
        )
