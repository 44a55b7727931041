"""The guarantee of a release, in words for people and in numbers for experts.

Every figure follows from the manifest; nothing is claimed that the plan does not give.
"""

# ruff: noqa: RUF001 - dashes, quotes and Greek letters as people write them

import math
from fractions import Fraction

from inftda.privacy.spending import ReleasePlan
from inftda.publication.release import Release
from inftda.publication.trust import not_shown
from inftda.reports.markup import Html, join, tag, text

#: From here on an observer who knows everything else is nearly sure: the page says so.
WEAK_GUESS = 0.95


def promise_section(release: Release) -> Html:
    """What is promised to the people in the table."""
    plan = release.manifest.plan
    trips = "trip" if plan.unit.trips == 1 else "trips"
    if not release.tree.is_od:
        trips = "entry" if plan.unit.trips == 1 else "entries"
    parts = [
        tag("h2", "What is promised", id="promise-title"),
        tag(
            "p",
            "Before anything was published, random noise of a measured size was added to the "
            f"numbers, so that no one’s {trips} can be read out of them. This is called "
            "differential privacy: the page you see would look much the same if any one person’s "
            f"{trips} had been different. The promise holds whatever else an observer knows, "
            "and cannot be undone by computing on the numbers.",
        ),
        _guess_words(plan, trips),
        _figures(release, plan),
        tag(
            "p",
            tag("strong", "Who is protected: "),
            f"{unit_words(release)}. ",
            _total_words(release),
        ),
        tag(
            "p",
            "Anyone can recompute this guarantee from the published files: ",
            tag("code", "inftda verify RELEASE"),
            ".",
            class_="note",
        ),
    ]
    return tag("section", *parts, id="promise", aria_labelledby="promise-title")


def guess_bound(epsilon: float | None, delta: float | None, rho: Fraction | None) -> float:
    """Probability of guessing which of two neighbouring tables it was, rounded up; 1/2 is chance.

    From (epsilon, delta): (e^epsilon + delta) / (1 + e^epsilon). From rho (zCDP): divergence is
    at most rho, so total variation is at most sqrt(rho / 2) (Pinsker) and at most
    sqrt(1 - e^-rho) (Bretagnolle and Huber). The least of these holds.
    """
    variation = 1.0
    if epsilon is not None and delta is not None:
        variation = min(variation, math.tanh(epsilon / 2) + delta)
    if rho is not None:
        cost = float(rho)
        variation = min(variation, math.sqrt(cost / 2), math.sqrt(-math.expm1(-cost)))
    return min(1.0, math.ceil((1 + variation) / 2 * 1000 + 1e-9) / 1000)


def scientific(value: float) -> Html:
    """A small number as people write it: 10 to the power of -8."""
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    power = join(["10", tag("sup", f"\N{MINUS SIGN}{-int(exponent)}")])
    if value >= 0.001 or value <= 0:
        return text(f"{value:g}")
    digits = mantissa.rstrip("0").rstrip(".")
    return power if digits == "1" else join([f"{digits} × ", power])


def _guess_words(plan: ReleasePlan, trips: str) -> Html:
    guess = guess_bound(plan.epsilon, plan.delta, plan.rho)
    odds = Html("")
    if plan.epsilon is not None and plan.delta is not None:
        factor = math.exp(plan.epsilon)
        size = f"{factor:.3g}" if factor < 1000 else f"{factor:,.0f}"
        change = (
            " Whatever someone concludes about one person, the odds of that conclusion change "
            f"by a factor of at most {size} (that is e to the power of epsilon), except with "
            "a probability of "
        )
        odds = join([change, scientific(plan.delta), "."])
    weak = ""
    if guess >= WEAK_GUESS:
        weak = (
            " At this setting the formal promise against so well-informed an observer is weak; "
            "a smaller epsilon makes it stronger."
        )
    return tag(
        "p",
        f"In numbers: imagine someone who knows the {trips} of everybody else, and for one last "
        "person has to tell which of two possibilities is true. Tossing a coin, they are right in "
        "50 % of cases. With all the numbers on this page, they are right in at most ",
        tag("strong", f"{100 * guess:.1f} %"),
        " of cases.",
        odds,
        weak,
    )


def unit_words(release: Release) -> str:
    """Who is protected; what becomes of the total only where the mechanism looks after it."""
    words = release.manifest.plan.unit.describe()
    return words if release.manifest.description.is_top_down else words.partition(";")[0]


def _total_words(release: Release) -> str:
    if not release.manifest.description.is_top_down:
        return "All numbers carry noise; the total is their sum."
    if release.manifest.plan.unit.root_is_public:
        of_what = " of what was counted" if not_shown(release) else ""
        return f"The overall total is the true one{of_what}; every other number carries noise."
    return "All numbers carry noise, the overall total too."


def _figures(release: Release, plan: ReleasePlan) -> Html:
    figures: list[tuple[str, object, str]] = []
    if plan.epsilon is not None and plan.delta is not None:
        figures += [
            ("Epsilon (ε)", f"{plan.epsilon:g}", "smaller is more private"),
            ("Delta (δ)", scientific(plan.delta), "probability that the bound on ε fails"),
        ]
    if plan.rho is not None:
        figures.append(("Rho (ρ)", f"{float(plan.rho):.4g}", "the same as zero-concentrated DP"))
    sigmas = [math.sqrt(level.sigma2) for level in plan.levels if level.sigma2 is not None]
    if sigmas:
        low, high = min(sigmas), max(sigmas)
        spread = f"{low:.3g}" if math.isclose(low, high, rel_tol=1e-3) else f"{low:.3g}–{high:.3g}"
        counted = " in trips," if release.tree.is_od else ""
        where = (
            "at each level" if release.manifest.description.is_top_down else "at the finest level"
        )
        figures.append(("Noise (σ)", spread, f"standard deviation,{counted} {where}"))
    items = [
        tag("div", tag("dt", name), tag("dd", value, tag("small", meaning)))
        for name, value, meaning in figures
    ]
    return tag("dl", *items, class_="figures")
