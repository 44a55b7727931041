"""The mechanisms by name."""

from inftda.errors import InftdaError
from inftda.mechanisms.base import Mechanism
from inftda.mechanisms.stability_histogram import StabilityHistogram
from inftda.mechanisms.topdown import TopDown
from inftda.mechanisms.vanilla_gauss import VanillaGauss
from inftda.optimize.segments import (
    optimize_intopt,
    optimize_intopt_descending,
    optimize_l2,
    optimize_linf,
    optimize_one_by_one,
)
from inftda.optimize.solvers import solve_l2, solve_linf

#: A black box takes milliseconds for each parent.
SMALL_BLOCK = 256

_ALL: tuple[Mechanism, ...] = (
    TopDown("inftda", "intopt", optimize_intopt),
    TopDown("inftda-descending", "intopt-descending", optimize_intopt_descending),
    TopDown("tda-l2", "l2", optimize_l2),
    TopDown("tda-linf", "linf", optimize_linf),
    TopDown("tda-l2-blackbox", "l2 by Clarabel", optimize_one_by_one(solve_l2), SMALL_BLOCK),
    TopDown("tda-linf-blackbox", "linf by GLPK_MI", optimize_one_by_one(solve_linf), SMALL_BLOCK),
    VanillaGauss("vanilla-gauss"),
    VanillaGauss("vanilla-gauss-clamped", "clamped"),
    StabilityHistogram("stability-histogram"),
)
MECHANISMS = {mechanism.name: mechanism for mechanism in _ALL}


def mechanism_named(name: str) -> Mechanism:
    """The mechanism the command line and the manifest call `name`.

    Raises:
        InftdaError: there is none.
    """
    if name not in MECHANISMS:
        raise InftdaError(f"there is no mechanism {name!r}; there are {', '.join(MECHANISMS)}")
    return MECHANISMS[name]
