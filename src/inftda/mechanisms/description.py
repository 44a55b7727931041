"""What a mechanism states about itself, as data.

Whoever treats mechanisms differently asks here, and never for a name or a class: what is not
stated is not assumed. A mechanism that nobody describes is refused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from inftda.privacy.plan import Plan
from inftda.privacy.spending import Measures, ReleasePlan


@dataclass(frozen=True, kw_only=True)
class Description:
    """What others need to know of a mechanism.

    Attributes:
        measures: what gets noise; its plans must have this scope, or they promise too much.
        values: sign of what it releases; zeros are never written down.
        read_plan: from the guarantee of a manifest to the plan, recomputed and verified.
        takes_sampler: whether it draws from the sampler it is given, so that the source of
            noise can be chosen; otherwise it brings its own.
        error_bound: which guaranteed error is proven for it: "shared" where what is over or
            missing is shared out one by one (`inftda.privacy.bounds`), "theorem 4" of the
            paper for every optimum in the largest error, None if nothing is proven.
        takes_across: whether it can measure tables off the tree beside its levels.
        replay: how released children follow from noisy counts, so that whoever has both can
            repeat it: "intopt" by `inftda.optimize` (but for equal counts), None if nobody can.
    """

    measures: Measures
    values: Literal["positive", "any sign"]
    read_plan: Callable[[Any], ReleasePlan]
    takes_sampler: bool
    error_bound: Literal["shared", "theorem 4"] | None = None
    takes_across: bool = False
    replay: Literal["intopt"] | None = None

    @property
    def is_top_down(self) -> bool:
        """Whether it is made of level steps, which every engine carries out, each measured.

        Then the total is the true one wherever the unit makes it public, and typical errors
        can be found by simulation: with noise on leaves only, all other numbers are sums
        across, which simulation cannot judge.
        """
        return self.measures == "levels"


#: The top-down loop with IntOpt, and what its variants start from. It is stated here, away from
#: the compiled loop itself, so that a release can be verified without loading it.
TOP_DOWN: Final = Description(
    measures="levels",
    values="positive",
    read_plan=Plan.from_dict,
    takes_sampler=True,
    error_bound="shared",
    takes_across=True,
    replay="intopt",
)
