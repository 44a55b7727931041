"""Measured totals of one axis with given values, for tests of what is computed from them."""

from fractions import Fraction

import numpy as np

from inftda.noise.distribution import Noise
from inftda.privacy.measurement import Measurement
from inftda.privacy.unit import Sensitivity
from inftda.publication.measured import NoisyTable
from inftda.tree import Cells


def totals_table(values, sigma2, depth=1):
    """Totals of all areas at a level, with Gaussian noise of this variance."""
    measurement = Measurement(
        index=depth,
        name="totals",
        cells=len(values),
        noise=Noise(Fraction(sigma2)),
        sensitivity=Sensitivity(2, 2),
        cross=(depth,),
    )
    areas = (np.arange(len(values), dtype=np.int32),)
    return NoisyTable(measurement, Cells(areas, np.array(values, np.int64)))
