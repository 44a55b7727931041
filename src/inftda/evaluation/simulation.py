"""A table released again and again, to see how far releases of it are off.

The table is one that may be known: a release, a public stand-in, or, where what comes out is
marked confidential, the truth. What is drawn here promises nothing and is charged to nothing.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from inftda.evaluation.sums import Areas

if TYPE_CHECKING:
    from inftda.bars import Progress
    from inftda.noise.entropy import RandomSource
    from inftda.privacy.spending import ReleasePlan
    from inftda.truth import Truth


@dataclass(frozen=True)
class Simulation:
    """A table taken for the truth, and all that is needed to release it.

    Attributes:
        counts: the table.
        mechanism: name of the mechanism.
        plan: its noise.
        source: random bits.
    """

    counts: "Truth"
    mechanism: str
    plan: "ReleasePlan"
    source: "RandomSource"

    def run(self, progress: "Progress") -> tuple[Areas, NDArray[np.int64]]:
        """One simulated release: areas and flows of its leaves."""
        from inftda.engines.local import LocalEngine  # noqa: PLC0415 - compiled kernels
        from inftda.mechanisms.base import Setting  # noqa: PLC0415
        from inftda.mechanisms.catalogue import mechanism_named  # noqa: PLC0415
        from inftda.noise.discrete_gaussian import DiscreteGaussian  # noqa: PLC0415

        setting = Setting(
            spending=self.plan.spending(),
            # The library's own sampler whatever draws the release: the same law, and fast.
            make_sampler=DiscreteGaussian,
            source=self.source,
            engine=LocalEngine(),
            progress=progress,
        )
        blocks = list(mechanism_named(self.mechanism).run(self.counts, setting))
        areas = tuple(
            np.concatenate([block.areas[axis] for block in blocks])
            for axis in range(len(self.counts.tree.axes))
        )
        return areas, np.concatenate([block.value for block in blocks])
