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
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np

from inftda.privacy.levels import Curve, Measured, total_rho

#: Below this delta, rounding in the transforms would dominate.
MIN_PLD_DELTA: Final = 1e-11
#: Above this sigma the library's tables take seconds a level.
MAX_PLD_SIGMA2: Final = Fraction(20_000**2)
#: Step of the loss grid: the library's default, unless the whole loss is hardly wider.
_STEP: Final = 1e-4
_STEPS: Final = 200  # at least so many in one standard deviation of the loss
#: The library cuts noise off at 11.6 sigma, leaving out less than 1e-29.
_CUT: Final = 11.6


def pld_curve(levels: Sequence[Measured]) -> Curve:
    """From epsilon to delta for these levels, which must all consist of unit shifts."""
    groups = _grouped(levels)
    width = math.sqrt(2 * float(total_rho(levels)))
    # One variance: the library's defaults, for figures that can be compared with published
    # ones (the exact accountant is tighter there anyway). Several: its finer method.
    is_fine = len(groups) > 1
    step = width / (2 * _STEPS) if is_fine else min(_STEP, width / _STEPS)
    composed: Any = None
    size, n_shifts = 0.0, 0
    for sigma2, repeats in groups.items():
        distribution = _single(sigma2, step, is_fine=is_fine).self_compose(repeats)
        composed = distribution if composed is None else composed.compose(distribution)
        size += repeats * (2 * _CUT / math.sqrt(sigma2) + 2 / float(sigma2)) / step
        n_shifts += repeats
    slack = transform_error(size, n_shifts)

    def delta(epsilon: float) -> float:
        with np.errstate(all="ignore"):
            value = float(composed.get_delta_for_epsilon(epsilon))
        return min(1.0, value * (1 + 1e-9) + slack)

    return delta


def transform_error(size: float, n_shifts: int) -> float:
    """What the transforms of composing may add to or take from delta.

    A transform of n entries is right to log2(n) units in the last place of its norm, which
    is at most 1; powers multiply that by the number of factors, and a sum over n entries
    by sqrt(n).
    """
    entries = max(size, 2.0)
    return 2.0**-53 * (n_shifts + 2) * math.log2(entries) * math.sqrt(entries)


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
