"""Privacy parameters: their limits, exact reading, rounding to the safe side; exact sums."""

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from inftda.errors import PrivacyError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MIN_EPSILON: Final = 1e-9
MAX_EPSILON: Final = 1000.0  # exp(1000): far beyond any meaningful guarantee
MIN_DELTA: Final = 1e-100
MAX_RHO: Final = 5000  # keeps every sigma at 0.01 or above
#: Noise variances are rounded up to this many binary digits: by less than one in 10^9.
SIGMA2_BITS: Final = 31
_MAX_ODD_DENOMINATOR: Final = 1000
#: Longer numbers, and exponents of more than four digits, are attacks or slips.
_MAX_DIGITS: Final = 10_000
_LONG_EXPONENT: Final = re.compile(r"[eE][+-]?\d{5}")


def round_up(value: Fraction) -> Fraction:
    """Round up to a number with few digits: larger by less than one part in 10^9.

    Simple numbers are returned unchanged: 12, 60/7, 5/1024.

    >>> round_up(Fraction(60, 7)), round_up(Fraction(1, 3**20)) > Fraction(1, 3**20)
    (Fraction(60, 7), True)
    """
    denominator = value.denominator
    odd = denominator // (denominator & -denominator)
    if odd <= _MAX_ODD_DENOMINATOR and value.numerator.bit_length() <= 2 * SIGMA2_BITS:
        return value
    # Digits are counted from the leading one, so rounding and halving can be exchanged:
    # variances in a ratio of two stay in a ratio of two.
    exponent = SIGMA2_BITS - (value.numerator.bit_length() - denominator.bit_length())
    scale = Fraction(2) ** exponent
    return math.ceil(value * scale) / scale


def root_up(value: Fraction) -> Fraction:
    """A number of 31 binary digits that is not below the square root of `value`.

    >>> root_up(Fraction(9)), root_up(Fraction(2)) ** 2 > 2
    (Fraction(3, 1), True)
    """
    exponent = SIGMA2_BITS - (value.numerator.bit_length() - value.denominator.bit_length()) // 2
    scaled = math.ceil(value * Fraction(4) ** exponent)
    root = math.isqrt(scaled)
    return (root + (root**2 < scaled)) / Fraction(2) ** exponent


def checked_epsilon(epsilon: Fraction | float | str) -> float:
    """Check that `epsilon` is in a meaningful range and return it as a float."""
    value = _number("epsilon", epsilon)
    if not MIN_EPSILON <= value <= MAX_EPSILON:
        raise PrivacyError(
            f"epsilon must be between {MIN_EPSILON:g} and {MAX_EPSILON:g}, got {epsilon}; "
            "common values lie between 0.1 and 10, and a large one guarantees nothing"
        )
    return value


def checked_delta(delta: Fraction | float | str) -> float:
    """Check that `delta` is a probability that accountants support; return it as a float."""
    value = _number("delta", delta)
    if not MIN_DELTA <= value < 1:
        raise PrivacyError(
            f"delta must be at least {MIN_DELTA:g} and below 1, got {delta}; "
            "choose it far below 1 / number of people, or 0 with `epsilon=`"
        )
    return value


def checked_rho(rho: Fraction | float | str) -> Fraction:
    """Check `rho` and return it exactly as it is written: 0.1 is one tenth."""
    _number("rho", rho)
    value = exact_number(rho)
    if not 0 < value <= MAX_RHO:
        raise PrivacyError(
            f"rho must be > 0 and at most {MAX_RHO}, got {rho}; common values lie below 10"
        )
    return value


def exact_number(value: Fraction | float | str) -> Fraction:
    """A number as it is written: 0.1 is one tenth, not the float nearest to it.

    Raises:
        ValueError: it is not a finite number, or is unreasonably long (1e999999999 has a
            billion digits).
        ZeroDivisionError: its denominator is 0.

    >>> exact_number(0.1), exact_number("1e-8")
    (Fraction(1, 10), Fraction(1, 100000000))
    """
    if isinstance(value, Fraction):
        return value
    # A subclass of float may show more than its digits.
    if isinstance(value, float):
        value = float.__repr__(value)
    text = value if isinstance(value, str) else repr(value)
    if len(text) > _MAX_DIGITS or "_" in text or _LONG_EXPONENT.search(text):
        raise ValueError(f"{text[:40]!r} is not a number of reasonable length")
    return Fraction(text)


def exact_sum(counts: "NDArray[np.int64]") -> int:
    """Sum of counts of any size, none negative."""
    if not len(counts) or int(counts.max()) < 2**63 // len(counts):
        return int(counts.sum())
    # In halves, each of which is exact in int64.
    high, low = int((counts >> 32).sum()), int((counts & 0xFFFFFFFF).sum())
    return (high << 32) + low


def rounded_up(value: Fraction | float) -> str:
    """Format a number with six digits, rounded up: for budget spent and for guarantees.

    >>> rounded_up(0.65724115), rounded_up(Fraction(1, 3)), rounded_up(1e-8)
    ('0.657242', '0.333334', '1e-08')
    """
    return _shown(value, ROUND_CEILING)


def rounded_down(value: Fraction | float) -> str:
    """Format a number with six digits, rounded down: for the budget that is left.

    >>> rounded_down(Fraction(2, 3))
    '0.666666'
    """
    return _shown(value, ROUND_FLOOR)


def _shown(value: Fraction | float, rounding: str) -> str:
    exact = exact_number(value)
    # A quotient of exact numbers is rounded once, and a float keeps six digits as they are.
    digits = Context(prec=6, rounding=rounding).divide(
        Decimal(exact.numerator), Decimal(exact.denominator)
    )
    return f"{float(digits):.6g}"


def _number(name: str, value: Fraction | float | str) -> float:
    if isinstance(value, bool) or not isinstance(value, Fraction | int | float | str):
        raise PrivacyError(f"{name} must be a number, got {value!r}")
    try:
        number = float(exact_number(value)) if isinstance(value, str) else float(value)
    except (ValueError, OverflowError, ZeroDivisionError):
        shown = str(value)[:40]
        raise PrivacyError(f"{name} must be a number such as 0.1, got {shown!r}") from None
    if not math.isfinite(number):
        raise PrivacyError(f"{name} must be a finite number, got {number}")
    return number


def decode_fraction(kind: type, value: object) -> Fraction:
    """Decode a fraction for msgspec; only the text that `str` makes of it is accepted."""
    if kind is Fraction and isinstance(value, str):
        try:
            return exact_number(value)
        except (ValueError, ZeroDivisionError):
            pass
    raise ValueError(f"it must be a fraction such as 1/3, as text, got {str(value)[:40]!r}")
