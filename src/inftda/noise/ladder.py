"""Running sums of probabilities, enclosed between integers.

The samplers draw a magnitude by comparing random bits with F(k) = P[magnitude <= k]. A ladder
holds F at a fixed precision: `lower[k] <= 2^bits F(k) <= lower[k] + slack` for every rung k.
The constants come from ball arithmetic, which proves its own error bounds; the rungs follow
by integer arithmetic that only ever rounds down, with the error counted. So the enclosure is a
theorem, not an estimate: see `docs/proofs/exact-sampling.md`.

Floating point must never decide anything here; it only guesses how many rungs are needed.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from flint import acb, arb, ctx, fmpq

from inftda.errors import PrivacyError

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

_PRECISION: Final = threading.Lock()  # the precision of ball arithmetic is a global of flint


@dataclass(frozen=True, slots=True)
class Ladder:
    """F(0), F(1), ..., each between `lower[k] / 2^bits` and `(lower[k] + slack) / 2^bits`."""

    lower: list[int]
    slack: int
    bits: int

    def floors(self, bits: int) -> list[int] | None:
        """Return floor(2^bits F(k)) for each rung, or None if some are not certain."""
        shift = self.bits - bits
        mask = (1 << shift) - 1
        certain_below = (1 << shift) - self.slack
        # The last rung needs no check: it is at least 1 - 2^-bits, and F never reaches 1.
        if any(rung & mask >= certain_below for rung in self.lower[:-1]):
            return None
        return [rung >> shift for rung in self.lower]

    def find(self, word: int, bits: int) -> int | None:
        """Return the k with F(k-1) <= U < F(k) for every U that begins with `word`, if any.

        Args:
            word: the first `bits` bits after the point of a number U in [0, 1).
            bits: how many bits that is.
        """
        shift = self.bits - bits
        k = bisect_left(self.lower, (word + 1) << shift)
        if k == len(self.lower) or (k and self.lower[k - 1] + self.slack > word << shift):
            return None
        return k


def gaussian_ladder(sigma2: Fraction, bits: int, *, guard: int = 64) -> Ladder:
    """Return the ladder of |X| for P[X = x] proportional to exp(-x^2 / (2 sigma2)).

    Args:
        sigma2: the variance parameter.
        bits: the ladder reaches the first k with P[|X| > k] < 2^-bits.
        guard: each rung is known to 2^-(bits + guard).
    """

    def constants() -> tuple[arb, arb, arb, arb]:
        exponent = arb(fmpq(sigma2.denominator, 2 * sigma2.numerator))
        q = (-exponent).exp()
        # The sum of q^(x^2) over all integers x is the theta constant at i exponent / pi.
        total = acb.modular_theta(acb(0), acb(0, exponent / arb.pi()))[2].real
        return 1 / total, 2 * q / total, q**3, q**2

    sigma = math.sqrt(sigma2)
    return _climb(
        constants, math.ceil(sigma * math.sqrt(2 * math.log(2) * (bits + 2))) + 3, bits, guard
    )


def laplace_ladder(scale: Fraction, bits: int, *, guard: int = 64) -> Ladder:
    """Return the ladder of |X| for P[X = x] proportional to exp(-|x| / scale).

    The arguments are those of `gaussian_ladder`, with the scale instead of sigma2.
    """

    def constants() -> tuple[arb, arb, arb, arb]:
        exponent = arb(fmpq(scale.denominator, scale.numerator))
        q = (-exponent).exp()
        first = (exponent / 2).tanh()
        return first, 2 * q * first, q, arb(1)

    return _climb(constants, math.ceil(float(scale) * math.log(2) * (bits + 2)) + 3, bits, guard)


def _climb(
    constants: Callable[[], tuple[arb, arb, arb, arb]], n_rungs: int, bits: int, guard: int
) -> Ladder:
    """Sum p_0, p_1, ... where p_(k+1) = p_k s_k and s_(k+1) = s_k r for k >= 1.

    Args:
        constants: gives p_0, p_1, s_1 and r as balls at the current precision.
        n_rungs: a number of rungs that certainly suffices for a tail below 2^-bits.
        bits: as in `gaussian_ladder`.
        guard: as in `gaussian_ladder`.
    """
    slack = 2 * n_rungs**3  # see the proof: at most 2 (k + 1)^3 units at rung k
    scale = bits + guard + slack.bit_length()
    total, term, ratio, ratio_step = _fixed(constants, scale)
    lower = [total]
    goal = ((1 << bits) - 1) << (scale - bits)
    while total < goal and len(lower) < n_rungs:
        total += term
        lower.append(total)
        term = term * ratio >> scale
        ratio = ratio * ratio_step >> scale
    if not goal <= total <= 1 << scale:
        raise PrivacyError(
            "the probabilities of a noise table must add up to 1, but they do not "
            "(python-flint seems to be damaged: reinstall it)"
        )
    return Ladder(lower, slack, scale)


def _fixed(constants: Callable[[], tuple[arb, ...]], bits: int) -> tuple[int, ...]:
    """Return integers below 2^bits times each constant, at most 2 below it."""
    precision = bits + 64
    while True:
        with _PRECISION, ctx.workprec(precision):
            bounds = [_around(ball * arb(2) ** bits) for ball in constants()]
        if all(upper - lower <= 2 for lower, upper in bounds):
            return tuple(lower for lower, _ in bounds)
        precision *= 2


def _around(ball: Any) -> tuple[int, int]:
    """Return integers on both sides of a ball that holds a number >= 0."""
    lower = int(ball.lower().floor().unique_fmpz())
    return max(0, lower), int(ball.upper().ceil().unique_fmpz())
