"""How the published figures were made, for comparison only. NOT PRIVATE AS STATED.

The paper's code divides its budget over twice the number of levels, so its
top-down mechanisms spend half of it; and it ran the stability histogram with an l1
sensitivity of sqrt(2) instead of 2, which costs 1.41 epsilon, with continuous noise and the
threshold of the library it calls. These settings live here, where no release can reach them:
nothing here makes a plan with a promise.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log, sqrt
from typing import Final

import numpy as np

from inftda.errors import InftdaError
from inftda.mechanisms.base import Mechanism, Setting
from inftda.mechanisms.step import Nodes
from inftda.noise.discrete_laplace import DiscreteLaplace
from inftda.privacy.plan import Account, make_plan
from inftda.privacy.unit import PrivacyUnit
from inftda.tree import Tree
from inftda.truth import Truth

#: The l1 sensitivity that was used, where 2 is right.
SENSITIVITY = sqrt(2)
#: The mechanisms that the paper has figures for.
PUBLISHED: Final = frozenset(
    {
        "inftda",
        "tda-l2",
        "tda-linf",
        "tda-l2-blackbox",
        "tda-linf-blackbox",
        "vanilla-gauss",
        "stability-histogram",
    }
)
#: Continuous noise is drawn on a grid so fine that nothing published could tell.
GRID = 1 << 20


def check_published(name: str) -> None:
    """Refuse a mechanism that the paper does not have.

    Raises:
        InftdaError: nothing was published for the mechanism.
    """
    if name not in PUBLISHED:
        raise InftdaError(
            f"nothing was published for the mechanism {name!r}; run it with the setting 'ours'"
        )


def published_run(
    mechanism: Mechanism,
    counts: Truth,
    setting: Setting[Truth, Nodes],
    *,
    epsilon: float,
    delta: float,
) -> Iterator[Nodes]:
    """A run of the mechanism as the paper's code had it; `setting` brings no spending.

    Raises:
        InftdaError: nothing was published for the mechanism.
    """
    check_published(mechanism.name)
    if mechanism.description.measures == "positive leaves":
        return _stability_run(counts, setting, epsilon=epsilon, delta=delta)
    spending = _spending(mechanism, counts.tree, epsilon=epsilon, delta=delta)
    return mechanism.run(counts, replace(setting, spending=spending))


def _spending(mechanism: Mechanism, tree: Tree, *, epsilon: float, delta: float) -> Account:
    # epsilon = rho + 2 sqrt(rho log(1 / delta)), solved for rho.
    odds = -log(delta)
    whole = Fraction((epsilon / (sqrt(odds + epsilon) + sqrt(odds))) ** 2)
    if mechanism.description.is_top_down:
        return make_plan(tree, PrivacyUnit(), rho=whole / 2).spending()
    return make_plan(tree, PrivacyUnit(), rho=whole, scope="leaves").spending()


@dataclass(frozen=True)
class _Threshold:
    """Scale and threshold as the library the paper's code calls found them."""

    scale: float
    threshold: float

    @classmethod
    def of(cls, epsilon: float, delta: float) -> "_Threshold":
        scale = SENSITIVITY / epsilon
        return cls(scale, SENSITIVITY + scale * log(1 / (2 * delta)))


def _stability_run(
    counts: Truth, setting: Setting[Truth, Nodes], *, epsilon: float, delta: float
) -> Iterator[Nodes]:
    used = _Threshold.of(epsilon, delta)
    areas, count = counts.leaves
    noise = np.empty(len(count), np.int64)
    DiscreteLaplace(Fraction(used.scale * GRID)).fill(noise, setting.source.stream())
    noisy = count + noise / GRID
    kept = noisy >= used.threshold
    value = np.rint(noisy[kept]).astype(np.int64)
    yield Nodes(tuple(axis[kept] for axis in areas), value)
