"""Changes between two editions of a table: numbers, intervals, and a verdict for each.

Both editions published their measurements with the noise distribution of each. The difference of
two measured counts is the true change plus the noise of both, whose distribution is known exactly.
No model is needed:

- The interval of a change is the measured difference plus or minus a quantile of the sum of both
  noises.
- The verdict is a test whether there was no change. Verdicts of all numbers of a table together are
  held to a rate of false ones (Benjamini and Hochberg, 1995).

Readers see the numbers that were published, which are those with high noise. So both count every
number that was measured, published or not (Benjamini and Yekutieli, 2005).

A count below a number that was published as 0 was not measured. It is at least 0, and at most the
measured count above it (docs/proofs/change.md).

Post-processing of two releases: no cost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.errors import ReleaseError
from inftda.estimates.estimate import ESTIMATE, Estimate
from inftda.noise.distribution import Noise
from inftda.noise.tails import Tail
from inftda.publication.measured import find_rows, keys_of, measured_at
from inftda.publication.query import FLOW, TableFormat, converted
from inftda.publication.release import Release
from inftda.series.common import CommonAreas, Links, common_areas
from inftda.series.series import check_comparable, guarantees
from inftda.tree import Areas, Ints, TreeLevel
from inftda.tree.groupings import asked_for
from inftda.util.screen import Grid, Part, card
from inftda.util.tabular import as_arrow, find_texts, texts

Floats = NDArray[np.float64]
ROSE, FELL, UNKNOWN = "rose", "fell", "not significant"
_VERDICTS: Final = (UNKNOWN, ROSE, FELL)
#: Of the probability of an error, the part for counts that were measured; the rest is for those
#: that were not.
_MEASURED: Final = 0.95
#: Intervals are stated as 95 %.
_MISSED: Final = 0.05
#: Columns of the answer beside those of the axes.
COLUMNS: Final = ("old", "new", "change", "low", "high", "verdict")


@dataclass(frozen=True, repr=False)
class Changes:
    """Differences of two editions.

    Attributes:
        table: one row for each number that either edition has: areas, `old`, `new`, `change`, the
            ends `low` and `high` of its 95 % interval, and `verdict`: rose, fell, or not
            significant. Those with a verdict come first, the largest changes before others.
        levels: of each axis.
        editions: names of both.
        cells: term for the numbers: flows, cells or totals.
        what: the counted things, in the plural.
        rate: of the verdicts rose and fell, the part that is false at most, on average.
        guarantees: of each edition, and of both together, in words.
    """

    table: pa.Table
    levels: Mapping[str, str]
    editions: tuple[str, str]
    cells: str
    what: str
    rate: float
    guarantees: Sequence[str]

    def __len__(self) -> int:
        return len(self.table)

    def count(self, verdict: str) -> int:
        """How many numbers have this verdict."""
        return int((self.table["verdict"].to_numpy() == verdict).sum())

    def describe(self) -> str:
        """State the numbers of verdicts in a sentence."""
        return (
            f"From {self.editions[0]} to {self.editions[1]}, {self.count(ROSE):,} of {len(self):,} "
            f"{self.cells} rose and {self.count(FELL):,} fell; the other changes are not "
            f"significant. Of these verdicts, at most {100 * self.rate:g} % are expected to "
            "be false."
        )

    def notes(self) -> list[Part]:
        """Parts of a notebook card: the sentence, and the guarantee of each edition."""
        return [("Result", self.describe()), *(("Guarantee", one) for one in self.guarantees)]

    def to(self, as_: TableFormat) -> Any:
        """The table in another form: "arrow", "pandas" or "polars"."""
        return converted(self.table, as_)

    def __repr__(self) -> str:
        return f"<changes: {self.describe()} {'; '.join(self.guarantees)}>"

    def _repr_html_(self) -> str:
        head = self.table.slice(0, 20)
        rows = [[str(cell) for cell in row.values()] for row in head.to_pylist()]
        return card("What changed", [Grid(self.table.column_names, rows), *self.notes()])


class _Evidence(NamedTuple):
    """Bounds on some counts from the measurements of one edition.

    A count is at least `low` plus the noise of `low_draws`, and at most `high` plus that of
    `high_draws`.

    Attributes:
        low: float64[counts].
        high: float64[counts]; infinite if nothing is known.
        low_draws: int32[noises, counts], how many draws of each noise distribution are in it.
        high_draws: the same for `high`.
        is_measured: bool[counts], whether all of it was measured: then both are the same.
        noises: the noise distributions.
        cells: common numbers of everything that was measured at these levels.
    """

    low: Floats
    high: Floats
    low_draws: NDArray[np.int32]
    high_draws: NDArray[np.int32]
    is_measured: NDArray[np.bool_]
    noises: tuple[Noise, ...]
    cells: Ints


class _Measured(NamedTuple):
    """A table that was measured, without noise if it is the public total.

    `level` is its level of the tree; None for the total and for cross tables.
    """

    areas: Areas
    value: Ints
    noise: Noise | None
    level: TreeLevel | None = None


class _Asked(NamedTuple):
    """Axes, levels and areas of a comparison."""

    axes: tuple[str, ...]
    levels: Mapping[str, str]
    common: tuple[CommonAreas, ...]

    def numbers(self, common: Sequence[Ints]) -> Ints:
        """One number for each combination of common areas."""
        number = np.zeros(len(common[0]), np.int64)
        for areas, here in zip(self.common, common, strict=True):
            number = number * len(areas.codes) + here
        return number

    def areas_at(self, number: Ints) -> list[Ints]:
        """The common areas with these numbers."""
        found = []
        for areas in reversed(self.common):
            number, here = np.divmod(number, len(areas.codes))
            found.append(here)
        return found[::-1]

    def nodes(self, side: int, number: Ints) -> tuple[Ints, Areas]:
        """Areas of an edition that make up numbers: position of each, and its areas."""
        position, found = np.arange(len(number)), list[Ints]()
        for areas, here in zip(self.common, self.areas_at(number), strict=True):
            inside, area = areas.expand(side, here[position])
            position, found = position[inside], [*(one[inside] for one in found), area]
        return position, tuple(area.astype(np.int32) for area in found)


def changes(  # noqa: PLR0913 - two editions, and what to compare
    both: tuple[Release, Release],
    levels: Mapping[str, str],
    *,
    zones: Any = None,
    links: Links = (),
    estimates: Sequence[Estimate] = (),
    rate: float = 0.05,
) -> Changes:
    """Compare two editions at one level of each axis; "all" sums it up.

    Axes that are not named are at the level of the zones, or at their finest. `links` state which
    finest areas became which. Numbers of estimates are shown instead of those of their editions.

    Raises:
        ReleaseError: the editions cannot be compared, or not at these levels.
    """
    if not 0 < rate < 1:
        raise ReleaseError(f"`rate=` must be a part between 0 and 1, got {rate}")
    check_comparable(*both)
    asked = _asked(both, levels, links, zones)
    is_measured = all(_is_measured(release, asked) for release in both)
    has_ends = not is_measured and all(release.has_measurements for release in both) and not links
    shown = _shown(both, estimates, asked, zones, has_ends=has_ends)
    number = _different(shown[0].number, shown[1].number)
    values = [_looked_up(number, side.number, side.value) for side in shown]
    if is_measured:
        known = [_evidence(release, asked, side, number) for side, release in enumerate(both)]
        low, high, verdict = _decided(number, values, known, rate)
    else:
        low, high, verdict = _by_ends(number, values, shown, rate)
    change = values[1] - values[0]
    # Changes with a verdict first, and of these the largest.
    order = np.lexsort([number, -np.abs(change), verdict == 0])
    columns = {
        axis: areas.codes.take(as_arrow(at[order]))
        for axis, areas, at in zip(asked.axes, asked.common, asked.areas_at(number), strict=True)
        if asked.levels[axis] != "all"
    }
    numbers = (*values, change, low, high)
    columns |= {name: _whole(one[order]) for name, one in zip(COLUMNS, numbers, strict=False)} | {
        "verdict": texts(_VERDICTS).take(as_arrow(verdict[order]))
    }
    names = _names(both)
    return Changes(
        pa.table(columns),
        asked.levels,
        names,
        _cells(both[0], asked.levels),
        both[0].manifest.counts,
        rate,
        guarantees(zip(names, both, strict=True)),
    )


def _whole(numbers: NDArray[Any]) -> pa.Array:
    """Whole numbers; nothing where there is no end."""
    is_known = np.isfinite(numbers)
    return pa.array(np.where(is_known, numbers, 0).astype(np.int64), mask=~is_known)


def _names(both: tuple[Release, Release]) -> tuple[str, str]:
    """The names of two editions, which differ."""
    old, new = (release.manifest.edition for release in both)
    if old == new and old:
        return f"{old} (old)", f"{new} (new)"
    return old or "the old edition", new or "the new one"


def _cells(release: Release, levels: Mapping[str, str]) -> str:
    """Term for numbers at these levels: flows, cells or totals."""
    if sum(level != "all" for level in levels.values()) == 1:
        return "totals"
    return "flows" if release.tree.is_od else "cells"


def _asked(
    both: tuple[Release, Release], levels: Mapping[str, str], links: Links, zones: Any
) -> _Asked:
    """Return the levels of the comparison and the common areas of the editions there."""
    axes = both[0].tree.axes
    shown = [asked_for(release.tree, ({}, levels), ({}, None), zones) for release in both]
    other = {one.name: one for one in shown[1]}
    common = []
    for one in shown[0]:
        pair = one.axis.hierarchy, other[one.name].axis.hierarchy
        if pair[0].level_names != pair[1].level_names:
            raise ReleaseError(
                f"the levels of {one.name} are {', '.join(pair[0].level_names)} in the old "
                f"edition and {', '.join(pair[1].level_names)} in the new one; they are not "
                "comparable"
            )
        if one.depth is None:  # zones, which are the same for both
            codes = texts(sorted({*one.codes.to_pylist(), *other[one.name].codes.to_pylist()}))
            common.append(CommonAreas(codes, (np.empty(0, np.int64),) * 2))
        else:
            common.append(common_areas(one.name, pair, one.level, links))
    names = {one.name: one.level for one in shown[0]}
    return _Asked(tuple(axis.name for axis in axes), names, tuple(common))


def _is_measured(release: Release, asked: _Asked) -> bool:
    """Whether the numbers are those of a table that was measured."""
    tree, depths = release.tree, []
    for axis in tree.axes:
        if asked.levels[axis.name] not in {"all", *axis.hierarchy.level_names}:
            return False
        depths.append(axis.hierarchy.level_of(asked.levels[axis.name]))
    measured = {tree.coarsest(table.depths) for table in release.manifest.plan.tables}
    return tree.coarsest(depths) in tree.on_tree | measured


class _Shown(NamedTuple):
    """Published numbers of an edition, in order, and ends of intervals if they were asked for."""

    number: Ints
    value: Ints
    ends: tuple[Floats, Floats] | None


def _shown(
    both: tuple[Release, Release],
    estimates: Sequence[Estimate],
    asked: _Asked,
    zones: Any,
    *,
    has_ends: bool,
) -> list[_Shown]:
    """Common numbers and values that each edition shows, with intervals if they are wanted."""
    if estimates and len(estimates) != len(both):
        raise ReleaseError("`estimates=` must be two, of the old and of the new edition")
    found = []
    for side, release in enumerate(both):
        wanted = {"level": asked.levels, "zones": zones, "intervals": has_ends}
        if estimates:
            estimates[side].check_release(release)
            name, table = ESTIMATE, estimates[side].flows(release=release, **wanted)
        else:
            name, table = FLOW, release.flows(**wanted)
        hierarchies = {axis.name: axis.hierarchy for axis in release.tree.axes}
        areas = []
        for axis, common in zip(asked.axes, asked.common, strict=True):
            hierarchy, at = hierarchies[axis], asked.levels[axis]
            here = np.zeros(len(table), np.int64)
            if at in hierarchy.level_names:
                codes = hierarchy.codes(hierarchy.level_of(at))
                here = common.of[side][find_texts(table.column(axis).combine_chunks(), codes)]
            elif at != "all":
                at_zone = find_texts(table.column(axis).combine_chunks(), common.codes)
                here = at_zone.astype(np.int64)
            areas.append(here)
        number, row = np.unique(asked.numbers(areas), return_inverse=True)
        value = np.zeros(len(number), np.int64)
        np.add.at(value, row, table.column(name).to_numpy())
        ends = None
        if has_ends:  # rows are numbers: nothing was put together
            low, high = np.zeros(len(number)), np.zeros(len(number))
            low[row], high[row] = (table.column(end).to_numpy() for end in ("low", "high"))
            ends = low, high
        found.append(_Shown(number, value, ends))
    return found


def _different(*numbers: Ints) -> Ints:
    """All different numbers, in order."""
    every = np.sort(np.concatenate(numbers))  # many times faster than `np.unique`
    return every[np.diff(every, prepend=-1) > 0]


def _looked_up(number: Ints, known: Ints, value: Ints) -> Ints:
    """Values of numbers, 0 where there is none."""
    found = np.zeros(len(number), np.int64)
    found[np.searchsorted(number, known)] = value
    return found


def _evidence(release: Release, asked: _Asked, side: int, number: Ints) -> _Evidence:
    """Return the bounds on some numbers from the measurements of an edition."""
    tree = release.tree
    tables = _tables(release, [asked.levels[axis.name] for axis in tree.axes])
    order = [asked.axes.index(axis.name) for axis in tree.axes]
    position, nodes = asked.nodes(side, number)
    areas = tuple(nodes[axis] for axis in order)
    n, noises = len(number), [one.noise for one in tables if one.noise is not None]
    low, high, exact = np.zeros(n), np.zeros(n), np.ones(len(position), bool)
    low_draws, high_draws = np.zeros((2, len(noises), n), np.int32)
    is_measured = np.ones(n, bool)
    for draw, table in enumerate(tables):
        row = find_rows(table.areas, areas)
        is_found = row >= 0
        is_known = is_found & exact
        np.add.at(low, position[is_known], table.value[row[is_known]])
        is_measured[position[is_found & ~exact]] = False
        # All counts below one that was not divided share it as upper end.
        size = len(table.value)
        above = np.divmod(_different(position[is_found] * size + row[is_found]), size)
        np.add.at(high, above[0], table.value[above[1]])
        if table.noise is not None:
            np.add.at(low_draws[draw], position[is_known], 1)
            np.add.at(high_draws[draw], above[0], 1)
        position, exact = position[~is_found], exact[~is_found]
        areas = tuple(numbers[~is_found] for numbers in areas)
        if table.level is not None:  # the rest may follow from the level above
            level = table.level
            exact = exact & (level.n_children[level.parent_area[areas[level.axis]]] == 1)
            areas = level.parents(areas)
    high[position], is_measured[position] = np.inf, False
    finest = [tables[0].areas[order.index(axis)] for axis in range(len(order))]
    cells = asked.numbers([one.of[side][at] for one, at in zip(asked.common, finest, strict=True)])
    return _Evidence(low, high, low_draws, high_draws, is_measured, tuple(noises), cells)


def _tables(release: Release, levels: Sequence[str]) -> list[_Measured]:
    """Return the tables measured at these levels of the axes, and then those above."""
    tree = release.tree
    named = zip(tree.axes, levels, strict=True)
    depths = tree.coarsest([axis.hierarchy.level_of(level) for axis, level in named])
    if depths not in tree.on_tree:
        is_total = sum(depth > 0 for depth in depths) == 1
        found = measured_at(tree, release.measurements(only_totals=is_total), depths)
        if found is None:
            raise ReleaseError("the measurements of a table are missing; get the release again")
        return [_Measured(found.areas, found.value, found.noise)]
    measured = release.measurements()
    tables = []
    for level in tree.splitting_levels:
        if all(at <= most for at, most in zip(tree.coarsest(level.depths), depths, strict=True)):
            noisy = measured.level(level.index)
            tables.append(_Measured(noisy.areas, noisy.value, noisy.noise, level))
    whole = tuple(np.zeros(1, np.int32) for _ in tree.axes)
    total = _Measured(whole, np.array([release.total]), None)
    if 0 in measured.levels:
        noisy = measured.level(0)
        total = _Measured(whole, noisy.value, noisy.noise)
    return [*reversed(tables), total]


def _decided(
    number: Ints, values: Sequence[Ints], known: Sequence[_Evidence], rate: float
) -> tuple[Floats, Floats, NDArray[np.int8]]:
    """Lower and upper ends of changes, and the number of each verdict."""
    old, new = known
    n_cells = max(len(_different(old.cells, new.cells)), len(number))
    # Every number has the whole probability of an error if it was measured, and may have a little
    # more if it is known from one of the levels above.
    n_noises = max(1, len(old.noises), len(new.noises))
    part = np.where(old.is_measured & new.is_measured, _MEASURED, (1 - _MEASURED) / n_noises)
    missed = part * _MISSED * len(number) / n_cells / 2
    change = values[1] - values[0]
    rise, low = _tested(new.low - old.high, change, (new.low_draws, old.high_draws), known, missed)
    fall, high = _tested(
        old.low - new.high, -change, (old.low_draws, new.high_draws), known[::-1], missed
    )
    chance = np.minimum(1, 2 * np.minimum(rise, fall) / part)
    verdict = _verdicts(change, chance, rate, n_cells)
    return np.minimum(low, change), np.maximum(-high, change), verdict


def _by_ends(
    number: Ints, values: Sequence[Ints], shown: Sequence[_Shown], rate: float
) -> tuple[Floats, Floats, NDArray[np.int8]]:
    """Return ends and verdicts of sums that were not measured, from the intervals of both.

    Distances from numbers to the ends of their intervals are those of independent errors, so their
    squares add up (Zou and Donner, 2008). That a change is by noise alone is taken to be as likely
    as for the widest tails of any noise, those of Laplace.
    """
    change = values[1] - values[0]
    off = []
    for value, side in zip(values, shown, strict=True):
        low, high = (np.full(len(number), np.nan) for _ in range(2))
        if side.ends is not None:
            at = np.searchsorted(number, side.number)
            low[at], high[at] = side.ends
        off.append((value - low, high - value))
    down, up = (np.hypot(off[1][end], off[0][1 - end]) for end in (0, 1))
    towards = np.where(change > 0, down, up)
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = np.where(change == 0, 1, _MISSED ** np.abs(change / towards))
    verdict = _verdicts(change, np.nan_to_num(chance, nan=1), rate, len(number))
    is_known = ~np.isnan(down + up)
    low, high = change - down, change + up
    return np.where(is_known, low, -np.inf), np.where(is_known, high, np.inf), verdict


def _verdicts(change: Ints, chance: Floats, rate: float, n_cells: int) -> NDArray[np.int8]:
    """Verdicts of Benjamini and Hochberg; every number that could be shown counts as a test."""
    ordered = np.sort(chance)
    passed = np.flatnonzero(ordered <= rate * np.arange(1, len(ordered) + 1) / n_cells)
    is_sure = chance <= (ordered[passed[-1]] if len(passed) else -1.0)
    rose, fell = _VERDICTS.index(ROSE), _VERDICTS.index(FELL)
    found = np.where(is_sure & (change > 0), rose, np.where(is_sure & (change < 0), fell, 0))
    return found.astype(np.int8)


def _tested(
    apart: Floats,
    shown: Ints,
    draws: tuple[NDArray[np.int32], NDArray[np.int32]],
    known: Sequence[_Evidence],
    missed: Floats,
) -> tuple[Floats, Floats]:
    """Return p-values of differences under noise alone, and lower ends of the true differences.

    The published counts are measurements that were adjusted to be at least 0 and to add up. Where
    their difference `shown` is below that least, or goes the other way, its own probability is
    given instead: a verdict must hold for the numbers beside it.

    `draws` counts the noise of both editions; `known` has the edition of the latter first.
    """
    noises = (*known[1].noises, *known[0].noises)
    together = [*draws[0], *draws[1]]
    none = np.zeros(len(apart), np.int32)  # where nothing has noise
    kind = keys_of((none, *together))
    chance, least = np.ones(len(apart)), np.full(len(apart), -np.inf)
    is_known = np.isfinite(apart)
    for one, first in zip(*np.unique(kind, return_index=True), strict=True):
        tail = Tail.of([(noise, int(n[first])) for noise, n in zip(noises, together, strict=True)])
        here = is_known & (kind == one)
        least[here] = apart[here] - tail.quantile(missed[here])
        is_borne_out = shown[here] >= np.maximum(least[here], 1)
        tested = np.where(is_borne_out, apart[here], np.minimum(apart, shown)[here])
        chance[here] = tail.probability(tested)
    return chance, least
