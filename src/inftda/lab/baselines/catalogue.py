"""The baselines, as the entry points of this package name them."""

from dataclasses import replace
from typing import Final

from inftda.lab.baselines.descending import optimize_intopt_descending
from inftda.lab.baselines.nearest import optimize_l2, optimize_linf
from inftda.lab.baselines.solvers import optimize_one_by_one, solve_l2, solve_linf
from inftda.lab.baselines.stability_histogram import StabilityHistogram
from inftda.lab.baselines.vanilla_gauss import VanillaGauss
from inftda.mechanisms.description import TOP_DOWN
from inftda.mechanisms.topdown import TopDown

#: A black box takes milliseconds for each parent.
SMALL_BLOCK: Final = 256

#: Prices for tables off the tree are made for IntOpt, which alone `verify` repeats.
_PLAIN: Final = replace(TOP_DOWN, takes_across=False, replay=None)
_ANY_CHEBYSHEV_OPTIMUM: Final = replace(_PLAIN, error_bound="theorem 4")
_ROUNDED: Final = replace(_PLAIN, error_bound=None)

INFTDA_DESCENDING: Final = TopDown(
    "inftda-descending", "intopt-descending", optimize_intopt_descending, description=_PLAIN
)
TDA_L2: Final = TopDown("tda-l2", "l2", optimize_l2, description=_PLAIN)
TDA_LINF: Final = TopDown("tda-linf", "linf", optimize_linf, description=_ANY_CHEBYSHEV_OPTIMUM)
TDA_L2_BLACKBOX: Final = TopDown(
    "tda-l2-blackbox",
    "l2 by Clarabel",
    optimize_one_by_one(solve_l2),
    SMALL_BLOCK,
    description=_ROUNDED,
)
TDA_LINF_BLACKBOX: Final = TopDown(
    "tda-linf-blackbox",
    "linf by GLPK_MI",
    optimize_one_by_one(solve_linf),
    SMALL_BLOCK,
    description=_ANY_CHEBYSHEV_OPTIMUM,
)
VANILLA_GAUSS: Final = VanillaGauss("vanilla-gauss")
VANILLA_GAUSS_CLAMPED: Final = VanillaGauss("vanilla-gauss-clamped", "clamped")
STABILITY_HISTOGRAM: Final = StabilityHistogram("stability-histogram")
