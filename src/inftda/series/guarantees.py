"""Guarantees of several editions in words: of each edition, and of editions together."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction

from inftda.privacy.accounting import epsilon_of_rho
from inftda.privacy.noise_plan import Plan
from inftda.publication.release import Release
from inftda.publication.reliability import NOT_PRIVATE_LINE
from inftda.util.exact_numbers import exact_number, rounded_up


def guarantees(editions: Iterable[tuple[str, Release]]) -> list[str]:
    """State the privacy unit and the guarantee of each edition, and of all with one privacy unit.

    Editions with the same guarantee share a line. If one edition was made with a seed, the only
    line says so.

    Args:
        editions: the name and the release of each edition.

    Privacy:
        Costs are added up only over editions with the same privacy unit: sums over different units
        have no meaning.
    """
    named = list(editions)
    if not all(release.manifest.private for _, release in named):
        return [NOT_PRIVATE_LINE]
    by_unit = defaultdict[str, list[tuple[str, Plan]]](list)
    for name, release in named:
        by_unit[release.manifest.protected].append((name, release.manifest.plan))
    lines = []
    for unit, members in by_unit.items():
        is_whole = len(by_unit) == 1
        every = "each edition" if is_whole else _listed(members)
        lines.append(f"privacy unit of {every}: {unit}")
        alike = defaultdict[str, list[tuple[str, Plan]]](list)
        for member in members:
            alike[member[1].describe()].append(member)
        for words, which in alike.items():
            lines.append(f"{every if len(alike) == 1 else _listed(which)}: {words}")
        if len(members) > 1:
            which_all = f"all {len(members)} editions" if is_whole else every
            lines.append(f"{which_all} together: {_together([plan for _, plan in members])}")
    if len(by_unit) > 1:
        lines.append(
            "editions with different privacy units have no guarantee together, because their "
            "costs do not add up"
        )
    return lines


def _listed(members: Sequence[tuple[str, Plan]]) -> str:
    return ", ".join(name for name, _ in members)


def _together(plans: Sequence[Plan]) -> str:
    """State the guarantee of editions with one privacy unit to a person who is in all of them."""
    rho = sum((plan.rho for plan in plans), Fraction(0))
    cost, deltas = f"rho = {rounded_up(rho)} (zCDP)", {plan.delta for plan in plans}
    if all(plan.is_pure for plan in plans):
        epsilon = sum(exact_number(plan.epsilon or 0) for plan in plans)
        return f"epsilon = {rounded_up(epsilon)}, delta = 0; {cost}"
    delta = next(iter(deltas))
    if len(deltas) > 1 or delta is None:
        return cost
    epsilon_at = epsilon_of_rho(rho, delta=delta)
    return f"epsilon = {rounded_up(epsilon_at)}, delta = {rounded_up(delta)}; {cost}"
