"""A release in words and public figures: its size, guarantee, noise and guaranteed errors.

Everything follows from the manifest and the published numbers; nothing here sees true counts. In
summaries the guarantee comes first, in a sentence without terms of the field; the terms follow
under "Technical details".
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from inftda.errors import InftdaError
from inftda.privacy.bounds import error_bounds
from inftda.privacy.noise_plan import Plan
from inftda.privacy.risk import risk_of
from inftda.publication.reliability import (
    NOT_PRIVATE_LINE,
    counting_note,
    describe_cross_totals,
    misfit_warnings,
    outside_warnings,
    use_notes,
    warnings,
)
from inftda.tree import DESTINATION, ORIGIN, Tree, TreeLevel
from inftda.tree.hierarchy import Hierarchy
from inftda.util.exact_numbers import rounded_up
from inftda.util.screen import Part

if TYPE_CHECKING:
    from inftda.publication.release import Release

#: Probability that a guaranteed error, at any level, does not hold.
BETA: Final = 0.05
_TIMES = " \N{MULTIPLICATION SIGN} "


def guarantee_sentence(plan: Plan, one: str = "trip", many: str = "trips") -> str:
    """State the privacy unit, epsilon and delta, and the success of the best attacker.

    `one` and `many` are the noun for a counted entry.
    """
    unit, (success, *_) = plan.unit, risk_of(plan).figures
    budget = f"rho = {rounded_up(plan.rho)}"
    if plan.epsilon is not None and plan.delta is not None:
        budget = f"epsilon = {rounded_up(plan.epsilon)}, delta = {rounded_up(plan.delta)}"
    bound = "exactly" if unit.exactly else "at most"
    learned = "whether that person is in the table"
    if unit.is_substitute:
        verb = "made" if one == "trip" else "has"
        pair = f"two {many}" if unit.trips == 1 else f"two sets of {many}"
        learned = f"which of {pair} that person {verb}"
    return (
        f"every person with {bound} {unit.contribution(one, many)} is protected ({budget}): an "
        f"attacker who knows the {many} of everyone else can tell {learned} at most {success} of "
        "the time (guessing: 50 %)"
    )


def technical_details(tree: Tree, plan: Plan, unit: str) -> list[Part]:
    """Privacy unit, accounting and noise, in the terms of the field."""
    totals = describe_cross_totals(tree, plan)
    return [
        "Technical details",
        ("Unit", unit),
        ("Accounting", plan.describe()),
        ("Noise", plan.describe_noise()),
        *([("Totals", totals)] if totals else []),
    ]


def release_guarantee(release: "Release") -> Part:
    """The guarantee of a release in one sentence, or that it has none."""
    manifest = release.manifest
    if not manifest.private:
        return f"{NOT_PRIVATE_LINE}."
    return ("Guarantee", guarantee_sentence(manifest.plan, *manifest.counted.entries))


def release_notes(release: "Release") -> list[Part]:
    """The guarantee, what was counted, which numbers to use, and warnings."""
    manifest = release.manifest
    cautions = warnings(manifest.plan, total=release.total) if manifest.private else []
    cautions += [*outside_warnings(release), *misfit_warnings(release)]
    return [
        release_guarantee(release),
        *([("Edition", manifest.edition)] if manifest.edition else []),
        *([("Note", words)] if (words := counting_note(release)) else []),
        *(("Usable", words) for words in use_notes(release)),
        *(("Warning", words) for words in cautions),
    ]


def release_summary(release: "Release", out: str | Path, *, counted: str = "") -> list[Part]:
    """Summary of a new release, for the custodian.

    `counted` is how rows of the table were interpreted.
    """
    manifest = release.manifest
    technical: list[Part] = []
    if manifest.private:
        technical = ["", *technical_details(release.tree, manifest.plan, manifest.protected)]
    return [
        ("Released", f"{_contents(release)}, {release.total:,} {manifest.counts} in all"),
        *([("Counted", counted)] if counted else []),
        *release_notes(release),
        ("Files", str(out)),
        ("Next", f"inftda verify {shlex.quote(str(out))}"),
        *technical,
    ]


def _contents(release: "Release") -> str:
    """Number of flows or cells, and numbers of finest areas."""
    tree, n_flows = release.tree, release.manifest.n_flows
    finest = [
        f"{axis.hierarchy.n_areas(axis.hierarchy.depth):,} "
        f"{axis.hierarchy.level_name(axis.hierarchy.depth)}"
        for axis in tree.axes
    ]
    if tree.is_od:
        # Both ends are often the same areas, which are then named once.
        areas = " and ".join(dict.fromkeys(finest))
        return f"{n_flows:,} {'flow' if n_flows == 1 else 'flows'} between {areas} areas"
    return f"{n_flows:,} {'cell' if n_flows == 1 else 'cells'} of {_TIMES.join(finest)}"


@dataclass(frozen=True)
class LevelRow:
    """Figures of one level; None where a figure is not known."""

    level: TreeLevel
    n_published: int | None
    sigma: float | None
    guaranteed: int | None


def level_rows(release: "Release") -> list[LevelRow]:
    """Rows for the measured levels, coarse to fine."""
    bounds = guaranteed(release)
    sigma = {level.index: level.sigma for level in release.manifest.plan.levels}
    published = {use.level.index: use.n_published for use in release.uses}
    published[0] = int(release.total > 0)
    shown = {level.index for level in release.tree.splitting_levels}
    if not release.manifest.plan.unit.root_is_public:
        shown.add(0)
    return [
        LevelRow(level, published.get(level.index), sigma.get(level.index), bounds.get(level.index))
        for level in release.tree.levels
        if level.index in shown
    ]


def guaranteed(release: "Release") -> dict[int, int]:
    """Guaranteed largest error, by level; empty if no bound is known."""
    try:
        bounds = error_bounds(release.tree, release.manifest.plan, BETA)
    except InftdaError:
        return {}
    return {bound.index: bound.max_error for bound in bounds}


def describe_size(release: "Release") -> str:
    """Describe in one line the total, the numbers of areas and the number of flows."""
    axes = {axis.name: axis.hierarchy for axis in release.tree.axes}
    counted = f"{release.total:,} {release.manifest.counts}"
    where, n_numbers = "", f"{release.manifest.n_flows:,}"
    if {ORIGIN, DESTINATION} <= axes.keys():
        # Both ends are often the same areas, which are then named once.
        ends = (axes.pop(ORIGIN), axes.pop(DESTINATION))
        areas = dict.fromkeys(f"{it.n_areas(it.depth):,} areas ({_finest(it)})" for it in ends)
        where = f" between {' and '.join(areas)}"
    further = [
        f"{name} ({it.n_areas(it.depth):,})"
        if name == _finest(it)
        else f"{name} ({it.n_areas(it.depth):,} {_finest(it)})"
        for name, it in axes.items()
    ]
    by = f" by {joined(further)}" if further else ""
    cells = "flows" if release.tree.is_od else "published numbers"
    return f"{counted}{where}{by}: {n_numbers} {cells}"


def default_title(release: "Release") -> str:
    """Title of a page of a release, unless one is given."""
    what = release.manifest.counted.what
    return f"{what[:1].upper()}{what[1:]} by {joined([axis.name for axis in release.tree.axes])}"


def joined(words: Sequence[str]) -> str:
    """Join words as in "a, b and c"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _finest(hierarchy: Hierarchy) -> str:
    return hierarchy.level_name(hierarchy.depth)
