"""What a release states about itself: its size, its errors, and what an observer can guess.

Everything follows from the manifest, the noise and simulations of the release: nothing here sees
the truth.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from inftda.errors import InftdaError, ReleaseError
from inftda.evaluation.typical import LevelErrors, TypicalError, TypicalErrors, typical_errors
from inftda.hierarchy import Hierarchy
from inftda.privacy.bounds import error_bounds
from inftda.publication.release import Release
from inftda.screen import Progress
from inftda.tree import DESTINATION, ORIGIN, TreeLevel

#: Probability that some guaranteed error, at any level, does not hold.
BETA: Final = 0.05


@dataclass(frozen=True)
class LevelRow:
    """What is known of the errors of one level; None where a figure is not known."""

    level: TreeLevel
    typical: LevelErrors | None
    guaranteed: int | None


def level_rows(release: Release, errors: TypicalErrors | None) -> list[LevelRow]:
    """The levels that were measured, coarse to fine, with what is known of their errors.

    Args:
        release: the release.
        errors: its typical errors, if they could be simulated.
    """
    bounds = guaranteed(release)
    shown = {level.index for level in release.tree.splitting_levels}
    if not release.manifest.plan.unit.root_is_public:
        shown.add(0)
    return [
        LevelRow(
            level,
            errors.at(level.depths) if errors else None,
            bounds.get(level.index),
        )
        for level in release.tree.levels
        if level.index in shown
    ]


def guaranteed(release: Release) -> dict[int, int]:
    """Largest error of any number, by level; empty if no bound is known."""
    try:
        bounds = error_bounds(release.tree, release.manifest.plan, BETA)
    except InftdaError:
        return {}
    return {bound.index: bound.max_error for bound in bounds}


def stated_errors(
    release: Release,
    *,
    runs: int,
    seconds: float,
    depths: Sequence[tuple[int, ...]] | None = None,
    progress: Progress | None = None,
) -> TypicalErrors | None:
    """Typical errors, none larger than what is guaranteed; see `typical_errors`.

    Returns:
        None for releases that cannot be used as the truth of a simulation.
    """
    try:
        errors = typical_errors(
            release, runs=runs, seconds=seconds, depths=depths, progress=progress
        )
    except ReleaseError:
        return None
    return within_guarantee(release, errors)


def within_guarantee(release: Release, errors: TypicalErrors) -> TypicalErrors:
    """Typical errors, none larger than what is guaranteed at its level.

    A simulation of a few numbers may by chance exceed the guaranteed bound.
    """
    bounds = guaranteed(release)
    most = {level.depths: bounds.get(level.index) for level in release.tree.levels}
    levels = (_capped(level, most.get(level.depths)) for level in errors.levels)
    return replace(errors, levels=tuple(levels))


def _capped(level: LevelErrors, most: int | None) -> LevelErrors:
    if most is None:
        return level

    def cap(entry: TypicalError) -> TypicalError:
        return replace(entry, median=min(entry.median, most), p95=min(entry.p95, most))

    return replace(
        level,
        overall=cap(level.overall),
        classes=tuple(map(cap, level.classes)),
        often_lost=min(level.often_lost, most),
        rarely_lost=min(level.rarely_lost or most, most),
    )


def describe_size(release: Release) -> str:
    """One line: how much was counted, between how many areas, and in how many numbers."""
    axes = {axis.name: axis.hierarchy for axis in release.tree.axes}
    counted = f"{release.total:,} {release.manifest.counted.what}"
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
    """What a page of a release is called unless it is said."""
    what = release.manifest.counted.what
    return f"{what[:1].upper()}{what[1:]} by {joined([axis.name for axis in release.tree.axes])}"


def joined(words: Sequence[str]) -> str:
    """Words in a row: "a, b and c"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _finest(hierarchy: Hierarchy) -> str:
    return hierarchy.level_name(hierarchy.depth)
