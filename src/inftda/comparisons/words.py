"""What a comparison of methods says, in words."""

from collections.abc import Sequence

from inftda.comparisons.attack import Attack
from inftda.comparisons.comparing import MethodComparison, Result
from inftda.pages.html import percent

DISCLOSE = (
    "Whoever chooses a method or an epsilon by this has looked at the truth to choose, and has to "
    "say so; inftda preview chooses on something public instead."
)


def exact_words(found: Attack) -> str:
    """What follows exactly."""
    if not found.exact_with_totals:
        return "no cell follows exactly from what is published"
    by_levels, in_all = found.exact_by_levels, found.exact_with_totals
    what = "hidden cells" if found.hidden_cells else "cells"
    words = f"{what} that follow exactly from the levels: {by_levels:,}"
    if in_all > by_levels:
        words += f", from levels and totals: {in_all:,}"
    return f"{words}, of which {found.exact_ones:,} are a single person"


def seen_words(found: Attack) -> str:
    """What two editions show."""
    share = percent(found.share_reidentified)
    return (
        f"{found.n_reidentified:,} of {found.trips:,} persons ({share}) are seen "
        "exactly by comparing an edition with and one without them"
    )


def honest_words(comparison: MethodComparison) -> str:
    """Which keeps most, said plainly."""
    finest = {one.label: one.levels[-1].common_part for one in comparison.results}
    best = max(finest, key=lambda label: finest[label])
    promised = [one for one in comparison.results if one.attack is None]
    words = f"At the finest level {best} keeps most: {finest[best]:.3f} of the trips."
    if not promised:
        return words
    kept = max(promised, key=lambda one: one.levels[-1].common_part)
    if kept.label == best:
        words += " It also promises something."
    else:
        words += (
            f" Of those that promise something, {kept.label} does, with {finest[kept.label]:.3f}. "
            "The difference is the price of the promise at this level."
        )
    return f"{words}{_sums_words(comparison, promised, kept)}"


def _sums_words(comparison: MethodComparison, promised: Sequence[Result], kept: Result) -> str:
    """The method that keeps most at the finest level need not keep sums."""
    levels = [level for level in comparison.results[0].levels if level.level]
    at = min(levels, key=lambda level: (level.n_cells < 2, level.n_cells)).level
    best = max(promised, key=lambda one: one.levels[at].common_part)
    if best.label == kept.label:
        return ""
    return (
        f" Sums are another matter: at {kept.levels[at].name} it has "
        f"{kept.levels[at].common_part:.3f}, {best.label} {best.levels[at].common_part:.3f}."
    )


def finding(one: Result) -> str:
    """What a reader finds out, or cannot."""
    if one.attack is None:
        return f"guaranteed, whatever a reader knows: {one.words}"
    return f"{exact_words(one.attack)}; {seen_words(one.attack)}"
