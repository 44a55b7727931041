"""The guarantee for one person: how often the best attacker is right.

Two neighbouring tables differ in one person. An attacker who knows everything else, and considers
both equally likely, sees all measurements and guesses which of the two it was. The accountant's
curve bounds the success: delta at epsilon 0 is the attacker's *advantage* over guessing. The rate
of detection at a given rate of false alarms follows from the whole curve. All figures are rounded
up.

A bare (epsilon, delta) allows far more success than the noise does; `bare_advantage` computes it.
Proofs: `docs/proofs/risk.md`.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Final, NamedTuple

from inftda.privacy.accountants import AUTO, Curve, Part, resolve, total_rho
from inftda.privacy.noise_plan import Plan
from inftda.privacy.unit import Unit


class Precedent(NamedTuple):
    """A public use of differential privacy, to compare an epsilon with.

    Attributes:
        what: publisher and publication.
        epsilon: as the source states it.
        protects: its privacy unit.
        source: address of the source.
    """

    what: str
    epsilon: str
    protects: str
    source: str


#: Each epsilon is stated for another privacy unit: compare with care.
PRECEDENTS: Final = (
    Precedent(
        "Wikimedia, page views by country, since 2023",
        "about 1",
        "ten pages that a device opens on a day",
        "https://analytics.wikimedia.org/published/datasets/country_project_page/00_README.html",
    ),
    Precedent(
        "Google, searches for symptoms, 2020",
        "1.68",
        "what a user searches for on a day",
        "https://arxiv.org/abs/2009.01265",
    ),
    Precedent(
        "Ministry of Health of Israel, live births of 2014",
        "9.98",
        "a mother and her newborn child",
        "https://arxiv.org/abs/2405.00267",
    ),
    Precedent(
        "US Census Bureau, redistricting data of 2020",
        "19.61",
        "answers of a person (17.14) and of a housing unit (2.47)",
        "https://www.census.gov/newsroom/press-releases/2021/2020-census-key-parameters.html",
    ),
)
#: Rates of false alarms at which detection is stated.
FALSE_ALARMS: Final = (0.01, 0.05)
#: Detection is searched for up to this epsilon: beyond it a bound changes by less than 1e-5.
_LARGEST_EPSILON: Final = 12.0
#: Steps of the search; every point that is tried is a valid bound.
_STEPS: Final = 40
_GOLDEN: Final = (math.sqrt(5) - 1) / 2
#: Covers the rounding of the few operations here.
_SLACK: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Risk:
    """Success of the best attacker against one person.

    Attributes:
        unit: the privacy unit.
        advantage: advantage over guessing: 0 if nothing is learned, 1 if everything is.
        detection: largest detection rate for each rate of `FALSE_ALARMS`.
        is_exact: whether some attacker reaches these figures; otherwise they are upper bounds.
    """

    unit: Unit
    advantage: float
    detection: tuple[float, ...]
    is_exact: bool

    @property
    def success(self) -> float:
        """Probability that the attacker is right; guessing is right half of the time."""
        return (1 + self.advantage) / 2

    @property
    def mu(self) -> float:
        """The parameter of Gaussian differential privacy with the same advantage."""
        if self.success >= 1:
            return math.inf
        return 2 * NormalDist().inv_cdf(self.success) * (1 + _SLACK)

    @property
    def figures(self) -> tuple[str, ...]:
        """Success, and detection at each rate of false alarms, in per cent and rounded up."""
        return tuple(map(_percent, (self.success, *self.detection)))

    def describe(self) -> str:
        """State the guarantee for a person in words, as every output of the package does.

        >>> print(Risk(Unit(), 0.0781, (0.0163, 0.0735), is_exact=True).describe()[:77])
        An attacker who knows the whole table except for one person, and has to choos
        """
        task = "has to choose between two possibilities for that person"
        if not self.unit.is_substitute:
            task = "has to tell whether that person is in it"
        mu = "" if self.mu == math.inf else f" (mu = {_rounded_up(self.mu, 3)})"
        success, *parts = self.figures
        found = "; ".join(
            f"{test} {100 * rate:g} % false alarms detects at most {part}"
            for test, rate, part in zip(
                ("A test with", "one with"), FALSE_ALARMS, parts, strict=True
            )
        )
        bound = "" if self.is_exact else " These are upper bounds: the true figures are lower."
        return (
            f"An attacker who knows the whole table except for one person, and {task}, is right "
            f"in at most {success} of cases; guessing gives 50 %{mu}. {found}.{bound}"
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        rates = zip(FALSE_ALARMS, self.detection, strict=True)
        return {
            "advantage": self.advantage,
            "success": self.success,
            "mu": None if self.mu == math.inf else self.mu,
            "detection": {f"{rate:g}": part for rate, part in rates},
            "is_exact": self.is_exact,
            "words": self.describe(),
        }


def risk_of(plan: Plan) -> Risk:
    """Compute the success of the best attacker from the noise of a plan.

    Privacy:
        It bounds every attack on anything that is computed from the measurements of the plan.
    """
    is_stated = plan.epsilon is not None and plan.delta is not None
    stated = ((plan.epsilon, plan.delta),) if is_stated else ()
    return _risk(plan.unit, plan.measured, stated)


@lru_cache(maxsize=64)  # summary, page and dossier of one release ask for the same
def _risk(unit: Unit, parts: tuple[Part, ...], stated: tuple[tuple[float, float], ...]) -> Risk:
    # The tightest accountant is valid for the noise, whichever one the plan used.
    accountant = resolve(AUTO, parts)
    curve, rho = accountant.curve(parts), float(total_rho(parts))
    bounds = [
        curve(0.0),
        math.sqrt(rho / 2),  # Pinsker: the divergence of Kullback and Leibler is at most rho
        math.sqrt(-math.expm1(-rho)),  # Bretagnolle and Huber
        *(bare_advantage(*one) for one in stated),
    ]
    advantage = min(1.0, min(bounds) * (1 + _SLACK))
    detection = tuple(_detection(curve, rate, advantage, stated) for rate in FALSE_ALARMS)
    # Where the total changes, only one of the two people has a trip, and less changes below it.
    change_together = unit.root_is_public or not unit.is_substitute
    return Risk(unit, advantage, detection, accountant.is_reached and change_together)


def bare_advantage(epsilon: float, delta: float) -> float:
    """Largest advantage that (epsilon, delta) alone allows, for any noise.

    >>> round(bare_advantage(1, 1e-8), 3)
    0.462
    """
    return math.tanh(epsilon / 2) + 2 * delta / (1 + math.exp(min(epsilon, 700.0)))


def _detection(
    curve: Curve, rate: float, advantage: float, stated: Iterable[tuple[float, float]]
) -> float:
    """Upper bound of the detection rate of a test with this rate of false alarms.

    Every (epsilon, delta) of the curve gives two lower bounds of the missed share, as a test may be
    reversed. Each way is a concave function of exp(epsilon) or exp(-epsilon).
    """

    def steep(epsilon: float, delta: float) -> float:
        return 1 - delta - math.exp(min(epsilon, 700.0)) * rate

    def flat(epsilon: float, delta: float) -> float:
        return math.exp(-epsilon) * (1 - delta - rate)

    missed = [1 - advantage - rate]
    for side in (steep, flat):
        missed += [side(*one) for one in stated]
        missed.append(_largest(side, curve))
    return min(1.0, 1 - max(missed) + _SLACK)


def _largest(side: Callable[[float, float], float], curve: Curve) -> float:
    """The largest value along the curve, which has one peak, by golden sections."""

    def function(epsilon: float) -> float:
        return side(epsilon, curve(epsilon))

    low, high = 0.0, _LARGEST_EPSILON
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    best = max(at_left, at_right)
    for _ in range(_STEPS):
        if at_left >= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
        best = max(best, at_left, at_right)
    return best


def _percent(part: float) -> str:
    return f"{_rounded_up(100 * part, 1)} %"


def _rounded_up(value: float, decimals: int) -> str:
    scale = 10**decimals
    return f"{math.ceil(value * scale) / scale:.{decimals}f}"
