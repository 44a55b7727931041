"""OpenDP's discrete Gaussian as a second source of noise.

For users who prefer a widely reviewed library, and for checking one sampler against the
other. It is exact as well, and thousands of times slower. OpenDP keys its own
random bits, so a stream is accepted and ignored, and what it draws can never be reproduced.

Versions before 0.14.2 draw wrong noise (a division went wrong) and are refused.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

from inftda.errors import MissingExtraError, PrivacyError
from inftda.noise.sampler import WIDEST, check_out, draw, exact_positive

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from inftda.noise.entropy import RandomSource, Stream

FIRST_SOUND_VERSION: Final = (0, 14, 2)
CHUNK: Final = 1 << 14  # draws per call: enough to amortise its cost, small as a Python list


class OpenDPGaussian:
    """Sampler of the discrete Gaussian that calls OpenDP.

    OpenDP takes the scale as a float. It is given the square root of sigma2 rounded up, so its
    variance parameter is sigma2 or larger by less than one part in 10^15: never less noise
    than was asked for.

    Args:
        sigma2: the variance parameter, as for `DiscreteGaussian`.

    Raises:
        MissingExtraError: if OpenDP is not installed.
        PrivacyError: if it is older than 0.14.2.
    """

    __slots__ = ("_measure", "sigma", "sigma2")

    def __init__(self, sigma2: Fraction | float | str) -> None:
        self.sigma2: Fraction = exact_positive("sigma2", sigma2, at_most=WIDEST**2)
        self.sigma = sqrt_up(self.sigma2)
        self._measure = _measurement(self.sigma)

    def fill(self, out: NDArray[np.int64], stream: Stream | None = None) -> None:
        """Overwrite `out` (contiguous int64) with independent draws; the stream is ignored."""
        del stream
        check_out(out)
        for start in range(0, out.size, CHUNK):
            part = out[start : start + CHUNK]
            part[:] = self._measure([0] * part.size)

    def sample(self, n: int, source: RandomSource | None = None) -> NDArray[np.int64]:
        """Return n independent draws; the source is ignored."""
        return draw(self, n, source)

    def __repr__(self) -> str:
        return f"OpenDPGaussian(sigma2={str(self.sigma2)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return OpenDPGaussian, (self.sigma2,)


def sqrt_up(value: Fraction) -> float:
    """Return a float whose square is at least `value`, at most two floats above the root.

    Example:
        >>> sqrt_up(Fraction(2)), 1.414213562373095**2 < 2
        (1.4142135623730951, True)
    """
    root = math.sqrt(value)
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
    return root


def check_version() -> str:
    """Return the version of OpenDP that is installed.

    Raises:
        MissingExtraError: if there is none.
        PrivacyError: if it is one that draws wrong noise.
    """
    try:
        version = metadata.version("opendp")
    except metadata.PackageNotFoundError as error:
        raise MissingExtraError(
            "OpenDP is not installed (run: pip install 'opendp>=0.14.2')"
        ) from error
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:3])
    if numbers < FIRST_SOUND_VERSION:
        raise PrivacyError(
            f"opendp must be 0.14.2 or later, got {version}: earlier ones draw wrong noise "
            "(run: pip install --upgrade opendp)"
        )
    return version


def _measurement(sigma: float) -> Any:
    """Return OpenDP's function from a list of integers to the same with noise."""
    check_version()
    # Imported here because it takes half a second, which other users need not wait.
    import opendp.prelude as dp  # noqa: PLC0415

    dp.enable_features("contrib")  # OpenDP asks for this consent to use any mechanism
    integers = dp.vector_domain(dp.atom_domain(T="i64"))
    return dp.m.make_gaussian(integers, dp.l2_distance(T="f64"), scale=sigma)
