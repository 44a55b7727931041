"""What readers and custodians must know of a release, in words.

All of it follows from the manifest and from what is released: nothing here sees the truth. The
words are made here and nowhere else, so that summary, page, `query` and `verify` agree.
"""

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from inftda.privacy.spending import ReleasePlan
    from inftda.publication.release import Release

#: Above this epsilon hardly anything is promised: odds may change by a factor of 500 million.
LARGE_EPSILON: Final = 20
#: Of one over the number of people: a delta above this part of it is no promise to speak of.
FAR_BELOW: Final = 0.1
#: At which epsilon is judged if only rho is promised.
_USUAL_DELTA: Final = 1e-6
#: Said of a level of which most published numbers are noise.
MOSTLY_NOISE: Final = "most of its pairs are noise"
#: Said beside such a level.
DO_NOT_USE: Final = f"do not use this level: {MOSTLY_NOISE}"
#: Said of a release that was made with a seed, whatever its plan would promise.
NOT_PRIVATE: Final = (
    "NOT PRIVATE: this release was made with a seed, for testing. It promises nothing and must "
    "not be published."
)
#: The same in a line, beside other lines.
NOT_PRIVATE_LINE: Final = "NOT PRIVATE: made with a seed, promises nothing, must not be published"
#: Said of what was made from such a release: a page, an estimate.
MADE_FROM_NOT_PRIVATE: Final = "NOT PRIVATE: made with a seed, must not be published."


def not_shown(release: "Release") -> str:
    """What the table leaves out, or counts where one would not look; empty if nothing."""
    manifest = release.manifest
    return "; ".join(manifest.counted.words(manifest.unit, release.tree))


def noisy_words(release: "Release") -> list[str]:
    """Which levels not to use, since what they have is mostly noise.

    Raises:
        ReleaseError: the flows cannot be read.
    """
    from inftda.publication.noisiness import mostly_noise  # noqa: PLC0415 - it reads the release

    return [f"do not use the level {level.name}: {MOSTLY_NOISE}" for level in mostly_noise(release)]


def careful_words(plan: "ReleasePlan", *, total: int | None = None) -> list[str]:
    """What a custodian should think about before publishing.

    Args:
        plan: what is promised.
        total: sum of the released flows, if there is a release: the true one may be confidential.
    """
    said = []
    epsilon = plan.epsilon if plan.epsilon is not None else _epsilon_of(plan.rho)
    if epsilon > LARGE_EPSILON:
        said.append(
            f"epsilon above {LARGE_EPSILON} promises next to nothing; values from 0.1 to 10 are "
            "usual"
        )
    if total is None:
        return said
    people = total // plan.unit.trips
    if plan.delta is not None and plan.delta * people > FAR_BELOW:
        said.append(f"delta should be far below 1 / people, here about 1 / {people:,}")
    if total == 0:
        said.append(
            "the release is empty: noise exceeds what was counted, or no row could be counted; "
            "check the columns and areas that were named"
        )
    return said


def _epsilon_of(rho: Fraction | None) -> float:
    """What rho comes to at a usual delta, by the simplest conversion."""
    cost = float(rho or 0)
    return cost + 2 * math.sqrt(cost * math.log(1 / _USUAL_DELTA))
