"""OpenDP's discrete Gaussian, for checking our sampler against another one.

OpenDP keys its own random bits, so a stream is accepted and ignored.
"""

import math
from fractions import Fraction

CHUNK = 1 << 14  # draws per call: enough to amortise its cost, small as a Python list


class OpenDPGaussian:
    """A sampler of the discrete Gaussian that calls OpenDP."""

    def __init__(self, sigma2):
        import opendp.prelude as dp  # noqa: PLC0415 - it takes half a second

        dp.enable_features("contrib")  # OpenDP asks for this consent to use any mechanism
        integers = dp.vector_domain(dp.atom_domain(T="i64"))
        scale = math.sqrt(Fraction(sigma2))
        self._measure = dp.m.make_gaussian(integers, dp.l2_distance(T="f64"), scale=scale)

    def fill(self, out, *_):
        for start in range(0, out.size, CHUNK):
            part = out[start : start + CHUNK]
            part[:] = self._measure([0] * part.size)
