"""Public figures of a release: its size, and the noise and guaranteed errors of its levels.

Everything follows from published files; nothing here sees true counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from inftda.errors import InftdaError
from inftda.privacy.bounds import error_bounds
from inftda.publication.release import Release
from inftda.tree import DESTINATION, ORIGIN, TreeLevel
from inftda.tree.hierarchy import Hierarchy

#: Probability that a guaranteed error, at any level, does not hold.
BETA: Final = 0.05


@dataclass(frozen=True)
class LevelRow:
    """Figures of one level; None where a figure is not known.

    Attributes:
        level: the level.
        n_published: number of published numbers.
        sigma: standard deviation of its noise.
        guaranteed: guaranteed largest error of any number.
    """

    level: TreeLevel
    n_published: int | None
    sigma: float | None
    guaranteed: int | None


def level_rows(release: Release) -> list[LevelRow]:
    """Rows for the measured levels, coarse to fine."""
    bounds = guaranteed(release)
    sigma = {level.index: level.sigma for level in release.manifest.plan.levels}
    published = {use.level.index: use.n_published for use in release.uses}
    published[0] = int(release.total > 0)
    shown = {level.index for level in release.tree.splitting_levels}
    if not release.manifest.plan.unit.root_is_public:
        shown.add(0)
    return [
        LevelRow(
            level,
            published.get(level.index),
            sigma.get(level.index),
            bounds.get(level.index),
        )
        for level in release.tree.levels
        if level.index in shown
    ]


def guaranteed(release: Release) -> dict[int, int]:
    """Guaranteed largest error, by level; empty if no bound is known."""
    try:
        bounds = error_bounds(release.tree, release.manifest.plan, BETA)
    except InftdaError:
        return {}
    return {bound.index: bound.max_error for bound in bounds}


def describe_size(release: Release) -> str:
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


def default_title(release: Release) -> str:
    """Title of a page of a release, unless one is given."""
    what = release.manifest.counted.what
    return f"{what[:1].upper()}{what[1:]} by {joined([axis.name for axis in release.tree.axes])}"


def joined(words: Sequence[str]) -> str:
    """Join words as in "a, b and c"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _finest(hierarchy: Hierarchy) -> str:
    return hierarchy.level_name(hierarchy.depth)
