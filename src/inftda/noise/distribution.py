"""Integer noise: a discrete Gaussian or a discrete Laplace, drawn exactly.

One exact number states the width, `square`: the variance parameter sigma2 of a Gaussian, the square
of the parameter b of a Laplace. By that number both cost the same in zCDP
(`docs/proofs/accounting.md`, section 7). People are told the standard deviation, `sigma`.

Draws come from secure bits at a few nanoseconds each. Nothing is rounded, truncated or capped: the
distribution is the one the accountants reason about (`docs/proofs/exact-sampling.md`). A
distribution holds no random state: a draw follows from the bits at its address
(`inftda.noise.bits`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache, cached_property, lru_cache, partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from numpy.typing import NDArray

from inftda.errors import PrivacyError
from inftda.noise.ladder import gaussian_ladder, laplace_ladder
from inftda.noise.table import WordTable

if TYPE_CHECKING:
    from inftda.noise.bits import Bits, RandomSource

Family = Literal["gaussian", "laplace"]

#: Largest sigma of a Gaussian and largest scale of a Laplace: their tables have 1.8 million entries
#: (15 MB) and are built in a second.
_WIDEST: Final = {"gaussian": 200_000, "laplace": 40_000}
#: Smallest variance or squared scale, far below any that a plan has.
_NARROWEST: Final = Fraction(1, 2**100)
#: Up to these the table is short enough for words of 32 bits; wider noise is drawn from 64.
_SHORT_WORDS: Final = {"gaussian": 1024, "laplace": 512}
#: Up to this sigma the probabilities of a Gaussian are summed up. Beyond it the quantile of the
#: normal distribution, rounded up, is on the safe side and at most one too much.
_SUMMED: Final = 20.0
#: No draw goes further, in sigmas or in scales, with a probability that 64 bits distinguish from 0.
_FURTHEST: Final = {"gaussian": 38, "laplace": 50}


@dataclass(frozen=True)
class Noise:
    """A discrete Gaussian or a discrete Laplace; `Noise.gaussian` and `Noise.laplace` make one.

    Attributes:
        square: variance parameter of a Gaussian, square of the parameter b of a Laplace; exact.
        family: which of the two.

    Privacy:
        Adding independent draws to counts with l2 sensitivity D is D^2 / (2 square)-zCDP. With
        Laplace noise of parameter b and l1 sensitivity D it is (D / b)-DP.

    Example:
        >>> Noise.gaussian("81/4").sample(3).dtype
        dtype('int64')
        >>> Noise.laplace("3/2")
        Noise(square=Fraction(9, 4), family='laplace')
    """

    square: Fraction
    family: Family = "gaussian"

    @classmethod
    def gaussian(cls, sigma2: Fraction | float | str) -> "Noise":
        """Return the discrete Gaussian, P[X = x] proportional to exp(-x^2 / (2 sigma2)).

        Args:
            sigma2: the variance parameter, exact: a fraction, an integer, a text such as "81/4",
                or a float, taken at its exact binary value.
        """
        return cls(_exact("sigma2", sigma2)).check()

    @classmethod
    def laplace(cls, scale: Fraction | float | str) -> "Noise":
        """Return the discrete Laplace, P[X = x] proportional to exp(-|x| / scale).

        Args:
            scale: its parameter b, exact, as `gaussian` takes its own; the standard deviation is
                about 1.4 times as large.
        """
        return cls(_exact("scale", scale) ** 2, "laplace").check()

    @property
    def is_laplace(self) -> bool:
        """Whether it is a Laplace."""
        return self.family == "laplace"

    @cached_property
    def scale(self) -> Fraction:
        """The parameter b of a Laplace, exact.

        Raises:
            PrivacyError: the scale is not a fraction, so the noise could not be drawn exactly.
        """
        root = Fraction(math.isqrt(self.square.numerator), math.isqrt(self.square.denominator))
        if root**2 != self.square:
            raise PrivacyError(
                f"Laplace noise with the squared scale {str(self.square)[:40]} has no exact "
                "scale; it was edited or damaged"
            )
        return root

    def check(self) -> "Noise":
        """Return the noise as it is if it can be drawn; plans ask before anything is spent.

        Raises:
            PrivacyError: it is too wide or too narrow, or has no exact scale.
        """
        widest = Fraction(_WIDEST[self.family] ** 2)
        if not _NARROWEST <= self.square <= widest:
            factor = 2 if self.is_laplace else 1
            deviation, limit = (
                f"{Decimal(math.isqrt(int(factor * square))):,.6g}"
                for square in (self.square, widest)
            )
            raise PrivacyError(
                f"the noise would be a discrete {self.family.title()} with a standard deviation of "
                f"{deviation}, but it must be above 0 and at most {limit}; use a larger epsilon or "
                "rho, or fewer trips"
            )
        if self.is_laplace:
            _ = self.scale  # it raises an error if there is none
        return self

    @cached_property
    def sigma(self) -> float:
        """Standard deviation of the noise, or close to it: for people and estimates.

        The noise itself is drawn from `square`.
        """
        if not self.is_laplace:
            return math.sqrt(self.square)
        a = math.exp(-1 / float(self.scale))
        return math.sqrt(2 * a) / -math.expm1(-1 / float(self.scale))

    def rho(self, squared_sensitivity: int) -> Fraction:
        """Cost in zCDP for counts with this square of the l2 sensitivity."""
        return squared_sensitivity / (2 * self.square)

    def epsilon(self, l1_sensitivity: int) -> Fraction:
        """Cost in pure differential privacy; only Laplace noise has such a cost."""
        return l1_sensitivity / self.scale

    def sample(self, n: int, source: "RandomSource | None" = None) -> NDArray[np.int64]:
        """Return n independent draws; secure unless another source is given."""
        from inftda.noise.bits import SecureSource  # noqa: PLC0415 - a cipher, for draws only

        out = np.empty(n, dtype=np.int64)
        self.fill(out, (SecureSource() if source is None else source).bits())
        return out

    def fill(self, out: NDArray[np.int64], bits: "Bits") -> None:
        """Overwrite `out` (contiguous int64) with the draws of row 0."""
        self.fill_rows(out, bits, np.zeros(1, np.int64), np.array([0, len(out)]))

    def fill_rows(
        self,
        out: NDArray[np.int64],
        bits: "Bits",
        rows: NDArray[np.int64],
        offsets: NDArray[np.int64],
    ) -> None:
        """Overwrite an array with independent draws, without the interpreter lock.

        Args:
            out: int64, contiguous.
            bits: random bits.
            rows: int64[rows], ascending: where the bits of each row are.
            offsets: int64[rows + 1], slices of out.
        """
        flags = out.flags
        if out.dtype != np.int64 or out.ndim != 1 or not (flags.c_contiguous and flags.writeable):
            raise PrivacyError(
                "out must be a writable, contiguous, one-dimensional int64 array, got "
                f"{out.dtype} with {out.ndim} dimensions (allocate it with np.empty(n, np.int64))"
            )
        self.table().fill(out, bits, rows, offsets)

    def table(self, word_bits: int | None = None) -> WordTable:
        """Return the table of the distribution.

        Args:
            word_bits: length of the random word of a draw, for tests; chosen by default.
        """
        if word_bits is None:
            word_bits = 32 if self.square <= _SHORT_WORDS[self.family] ** 2 else 64
        return _table(self.check(), word_bits)

    def half_width(self, missed: float = 0.05) -> int:
        """Noise is at most this, on either side, except with probability `missed` (from 1e-14).

        >>> [Noise.gaussian(sigma**2).half_width() for sigma in (0.5, 1, 60.13)]
        [1, 2, 118]
        >>> Noise.laplace(1).half_width(), Noise.laplace(7).half_width()
        (3, 21)
        """
        if not self.is_laplace:
            return _gaussian_half_width(self.sigma, missed)
        # P[|X| > t] = 2 a^(t + 1) / (1 + a) with a = exp(-1 / scale).
        scale = float(self.scale)
        a = math.exp(-1 / scale)
        return max(0, math.ceil(-scale * math.log(missed * (1 + a) / 2) - 1 - 1e-9))

    def squares(self, off: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return squared z-scores of whole numbers under this noise.

        Laplace noise goes further than a Gaussian of the same deviation. So its z is the normal
        quantile that is exceeded as often.

        >>> Noise.laplace(7).squares(np.array([0.0, 21.0])).round(1).tolist()
        [0.0, 3.7]
        """
        if not self.is_laplace:
            return np.square(off / self.sigma)
        scale, most = float(self.scale), math.ceil(_FURTHEST["laplace"] * self.scale)
        if most >= len(off):
            return _laplace_squares(off, scale)
        known = _laplace_squares(np.arange(most + 1.0), scale)  # few numbers, which many share
        return np.asarray(known[np.minimum(np.abs(off), most).astype(np.int64)])

    def __str__(self) -> str:
        if self.is_laplace:
            b = float(self.scale)
            return f"discrete Laplace, standard deviation {self.sigma:.5g} (b = {b:.5g})"
        return f"discrete Gaussian, standard deviation {self.sigma:.5g}"


def describe_noise(drawn: Sequence[Noise]) -> str:
    """Noise of one family in words, with its smallest and largest standard deviation.

    >>> describe_noise([Noise.gaussian(4), Noise.gaussian(9)])
    'discrete Gaussian noise of standard deviation 2 to 3'
    """
    sigmas = [noise.sigma for noise in drawn]
    width = " to ".join(dict.fromkeys((f"{min(sigmas):.3g}", f"{max(sigmas):.3g}")))
    return f"discrete {drawn[0].family.title()} noise of standard deviation {width}"


def _exact(name: str, value: Fraction | float | str) -> Fraction:
    """Return `value` as a fraction without rounding it."""
    try:
        exact = Fraction(value)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        exact = Fraction(0)
    if exact <= 0:
        raise PrivacyError(
            f"{name} must be a number above 0, got {value!r} (give a fraction such as 81/4)"
        )
    return exact


@lru_cache(maxsize=32)
def _table(noise: Noise, word_bits: int) -> WordTable:
    """Return a table, which holds no random state, so it can be shared."""
    if noise.is_laplace:
        return WordTable(partial(laplace_ladder, noise.scale), word_bits)
    return WordTable(partial(gaussian_ladder, noise.square), word_bits)


@cache
def _gaussian_half_width(sigma: float, missed: float) -> int:
    """Return `Noise.half_width` of a Gaussian: small noise is far from a normal distribution."""
    if sigma > _SUMMED:
        return math.ceil(-NormalDist().inv_cdf(missed / 2) * sigma)
    noise = np.arange(math.ceil(_FURTHEST["gaussian"] * sigma) + 1)
    weight = np.exp(-0.5 * (noise / sigma) ** 2)
    beyond = 2 * (np.cumsum(weight[::-1])[::-1] - weight)
    return int(np.argmax(beyond <= missed * (beyond[0] + weight[0])))


@cache
def _rarity() -> NDArray[np.float64]:
    """Normal quantiles, and minus the logarithm of how often each is exceeded."""
    normal = np.linspace(0, _FURTHEST["gaussian"] / 2, 2048)
    return np.stack([normal, [-math.log(math.erfc(z / math.sqrt(2))) for z in normal]])


def _laplace_squares(off: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Return squares of the normal quantiles that are exceeded as often as these by the noise."""
    normal, rarity = _rarity()
    rare = np.abs(off) / scale + math.log1p(math.exp(-1 / scale)) - math.log(2)
    # Beyond the last the square grows by 2 for each unit, as the logarithm of a bell curve does.
    beyond = 2 * np.maximum(rare - rarity[-1], 0)
    # Noise of at least 0 is certain.
    return np.where(off == 0, 0, np.interp(rare, rarity, normal**2) + beyond)
