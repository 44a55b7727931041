"""Totals of areas that are public anyway, which estimates agree with.

Each known total is an interval: the number itself, or all that its error allows. Going up the
levels of an axis, an area lies within its own interval and within the sum of its children's. Going
down, the children of an area are scaled alike until they add up to it, none beyond its interval.
Then flows are brought to these totals, axis by axis in turn: by their variances if noise explains
what is missing, since the largest flows are known best, and in proportion otherwise. They are made
whole, and single trips go to other areas of an axis until the totals of that axis are right, which
leaves those of all other axes as they are.

Post-processing of what is released, and of what is public: no cost.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.errors import ReleaseError
from inftda.groupings import find_area
from inftda.hierarchy import Hierarchy
from inftda.inference.measured import Areas, CellIntervals, Floats, Whole, keys_of
from inftda.tables import read_strings
from inftda.tree import Axis, Marginal, Tree

Ints = NDArray[np.int64]

_WHAT: Final = "table of known totals"
_COLUMNS: Final = ("axis", "level", "area", "total")
_ERROR: Final = "error"
#: No total is larger.
_MOST: Final = 1 << 44
#: Rounds of fitting, unless all totals are as near as this already.
_ROUNDS, _NEAR = 50, 0.1
#: Standard deviations in an interval, and so many that noise explains.
_WIDTH, _FAR = 4.9, 4.0
#: Totals of other axes stay if noise explains this part of what is missing.
_MOSTLY: Final = 0.9
#: Steps to find a factor: it is then known to 1 in 10^12 or so.
_STEPS: Final = 100
#: An area without any trips counts as this many where it has to have some.
_FEW: Final = 1e-3
#: A number that is as little below a whole one is that.
_TINY: Final = 1e-6


class TotalBounds(NamedTuple):
    """Least and largest totals of the areas of one level."""

    low: Ints
    high: Ints


class KnownTotals(NamedTuple):
    """Totals that are known, by axis and level.

    Attributes:
        n: how many.
        axes: number of an axis to the bounds of all areas of its levels, from the whole on down.
    """

    n: int
    axes: Mapping[int, Sequence[TotalBounds]]

    @classmethod
    def read(cls, source: Any, tree: Tree) -> "KnownTotals":
        """Read them from a table with columns axis, level, area and total, and perhaps error.

        Raises:
            ReleaseError: it says something that cannot be, or names what the tree does not have.
        """
        table = read_strings(source, what=_WHAT, error=ReleaseError)
        others = {*table.column_names} - {*_COLUMNS, _ERROR}
        if others or not {*_COLUMNS} <= {*table.column_names}:
            raise ReleaseError(
                f"the {_WHAT} must have the columns {', '.join(_COLUMNS)}, and error if they are "
                f"not exact; it has {', '.join(table.column_names)}"
            )
        numbers = {axis.name: number for number, axis in enumerate(tree.axes)}
        found: dict[int, list[TotalBounds]] = {}
        seen = set()
        for row, line in enumerate(table.to_pylist(), start=1):
            if line["axis"] not in numbers:
                raise ReleaseError(
                    f"row {row} of the {_WHAT} names the axis {line['axis']!r}; the axes are "
                    f"{', '.join(numbers)}"
                )
            number = numbers[line["axis"]]
            axis = tree.axes[number]
            level, area = _place(axis, line["level"], line["area"], row)
            if (number, level, area) in seen:
                raise ReleaseError(f"row {row} of the {_WHAT} has an area that it has already")
            seen.add((number, level, area))
            total = _whole(line["total"], "total", row)
            error = _whole(line.get(_ERROR) or "0", _ERROR, row)
            at = found.setdefault(number, _nothing(axis.hierarchy))[level]
            at.low[area], at.high[area] = max(total - error, 0), total + error
        return cls(
            len(seen), {a: _narrowed(tree.axes[a], bounds) for a, bounds in sorted(found.items())}
        )

    def whole(self, total: int, *, is_public: bool) -> int:
        """What all trips are, if a release says `total`.

        Raises:
            ReleaseError: that cannot be.
        """
        low = max((int(bounds[0].low[0]) for bounds in self.axes.values()), default=0)
        high = min((int(bounds[0].high[0]) for bounds in self.axes.values()), default=_MOST)
        if low > high:
            raise ReleaseError(
                "known totals contradict each other: those of one axis add up to at least "
                f"{low:,}, those of another to at most {high:,}; {_CORRECT}"
            )
        if is_public and not low <= total <= high:
            stated = f"at least {low:,}" if total < low else f"at most {high:,}"
            raise ReleaseError(
                f"known totals add up to {stated}, but the release counts {total:,} in all, which "
                f"is public; are they of the same people and trips? {_CORRECT}"
            )
        return min(max(total, low), high)


_CORRECT: Final = "correct them, or say in a column `error` how far they may be off"


def _place(axis: Axis, level: str, area: str, row: int) -> tuple[int, int]:
    if level == "all":
        return 0, 0
    if level not in axis.hierarchy.level_names:
        raise ReleaseError(
            f"row {row} of the {_WHAT} names the level {level!r}; the levels of {axis.name} are "
            f"all, {', '.join(axis.hierarchy.level_names)}"
        )
    return find_area(axis, f"{level}:{area}")


def _whole(text: str, what: str, row: int) -> int:
    if not (text.isdecimal() and text.isascii()) or int(text) > _MOST:
        raise ReleaseError(f"the {what} in row {row} of the {_WHAT} must be a whole number")
    return int(text)


def _narrowed(axis: Axis, bounds: list[TotalBounds]) -> list[TotalBounds]:
    """Bounds that allow for those of the levels below, down to the last level that has any."""
    hierarchy = axis.hierarchy
    last = max(level for level, at in enumerate(bounds) if at.low.any() or (at.high < _MOST).any())
    for level in range(last - 1, -1, -1):
        starts = hierarchy.child_offsets(level)[:-1]
        low, high = (np.add.reduceat(of, starts) for of in bounds[level + 1])
        own = bounds[level]
        is_wrong = (low > own.high) | (high < own.low)
        if is_wrong.any():
            area = int(np.argmax(is_wrong))
            is_more = low[area] > own.high[area]
            inside = f"{'at least' if is_more else 'at most'} {(low if is_more else high)[area]:,}"
            stated = (own.high if is_more else own.low)[area]
            raise ReleaseError(
                f"known totals contradict each other: {axis.name}, {hierarchy.level_name(level)} "
                f"{hierarchy.codes(level)[area].as_py()!r} has {stated:,}, but what lies in it "
                f"adds up to {inside}; {_CORRECT}"
            )
        bounds[level] = TotalBounds(np.maximum(own.low, low), np.minimum(own.high, high))
    return bounds[: last + 1]


def agreeing(
    tree: Tree, cells: CellIntervals, known: KnownTotals, total: int, seed: int
) -> CellIntervals:
    """Flows that agree with known totals, and their intervals, extended to hold them.

    Args:
        tree: the public tree.
        cells: estimates, of which there are some.
        known: totals.
        total: what all trips are, by `KnownTotals.whole`.
        seed: decides which trips are moved.
    """
    value = cells.value * (total / cells.value.sum())
    variance = ((cells.high - cells.low) / _WIDTH) ** 2 + _FEW
    goals = {}
    for number, axis in enumerate(tree.axes):
        bounds = known.axes.get(number, _nothing(axis.hierarchy))
        above = axis.hierarchy.ancestor(axis.hierarchy.depth, len(bounds) - 1)
        now = np.bincount(above[cells.areas[number]], value, minlength=int(above[-1]) + 1)
        goal = _goals(axis.hierarchy, bounds, now.astype(float), total)
        doubt = np.bincount(above[cells.areas[number]], variance, minlength=len(goal))
        goals[number] = _Goal(above, goal, (goal - now) ** 2 <= _FAR**2 * doubt)
    if any(goal.is_noise.mean() < _MOSTLY for goal in goals.values()):
        # Known totals count something else: those of other axes are not what they were, either.
        goals = {number: goals[number] for number in known.axes}
    for _ in range(_ROUNDS):
        farthest = 0.0
        for number, (above, goal, is_noise) in goals.items():
            block = above[cells.areas[number]]
            missing = goal - np.bincount(block, value, minlength=len(goal))
            weight = np.where(is_noise[block], variance, value)
            room = np.bincount(block, weight, minlength=len(goal))
            value += weight * (missing / np.where(room > 0, room, 1))[block]
            np.maximum(value, 0, out=value)
            farthest = max(farthest, float(np.abs(missing)[room > 0].max(initial=0)))
        if farthest < _NEAR:
            break
    value *= total / max(value.sum(), _FEW)
    # In the order of the last axis, whose totals are then nearly right.
    order = np.argsort(block, kind="stable")
    whole = np.empty(len(value), np.int64)
    whole[order] = _rounded(value[order], np.array([0, len(value)]))
    found, random = _Flows(cells.areas, whole, np.arange(len(value))), np.random.default_rng(seed)
    for number, one in goals.items():
        found = found.moved(number, one, tree.levels[-1], random)
    return found.with_ends(cells)


class _Goal(NamedTuple):
    """Totals of an axis that are aimed at.

    Attributes:
        above: int32[finest areas], the area that a total is of.
        goal: int64[such areas].
        is_noise: bool[such areas], whether noise explains how far it is away.
    """

    above: NDArray[np.int32]
    goal: Ints
    is_noise: NDArray[np.bool_]


def _nothing(hierarchy: Hierarchy) -> list[TotalBounds]:
    sizes = [hierarchy.n_areas(level) for level in range(hierarchy.depth + 1)]
    return [TotalBounds(np.zeros(n, np.int64), np.full(n, _MOST)) for n in sizes]


def _goals(hierarchy: Hierarchy, bounds: Sequence[TotalBounds], finest: Floats, total: int) -> Ints:
    """int64[areas of the last level]: whole totals within bounds that add up, level by level.

    `finest` are those of that level as they are.
    """
    goal, depth = np.array([total], np.int64), len(bounds) - 1
    for level in range(1, depth + 1):
        offsets = hierarchy.child_offsets(level - 1)
        parent = np.repeat(np.arange(len(goal)), np.diff(offsets))
        low, high = bounds[level].low, np.minimum(bounds[level].high, goal[parent])
        starts = hierarchy.descendant_offsets(level, depth)[:-1]
        wish = np.add.reduceat(finest, starts) + _FEW
        # One factor for each parent, between 0 and one with which any child has all of it.
        least, most = np.zeros(len(goal)), (goal + 1) / np.minimum.reduceat(wish, offsets[:-1])
        for _ in range(_STEPS):
            factor = (least + most) / 2
            is_more = (
                np.add.reduceat(np.clip(factor[parent] * wish, low, high), offsets[:-1]) > goal
            )
            least, most = np.where(is_more, least, factor), np.where(is_more, factor, most)
        goal = _rounded(np.clip(most[parent] * wish, low, high), offsets)
    return goal


def _rounded(value: Floats, offsets: NDArray[np.integer]) -> Ints:
    """Whole numbers, each next to its own, in slices whose sums are whole and stay."""
    floor = np.floor(value + _TINY)
    running = np.append(0.0, np.cumsum(value - floor))
    slices = np.repeat(offsets[:-1], np.diff(offsets))
    ends = np.floor(running[1:] - running[slices] + 0.5)
    before = np.where(np.arange(len(value)) == slices, 0, np.append(0.0, ends[:-1]))
    return np.asarray(floor + ends - before, np.int64)


class _Flows(NamedTuple):
    """Whole flows, and which of the given cells each of them was; -1 for those that are new."""

    areas: Areas
    value: Ints
    cell: Ints

    def moved(
        self, number: int, aim: _Goal, leaves: Marginal, random: np.random.Generator
    ) -> "_Flows":
        """Flows after single trips have gone to other areas of an axis, so that totals are right.

        Args:
            number: of the axis.
            aim: its totals.
            leaves: of which some may be impossible.
            random: decides which trips go where.

        Raises:
            ReleaseError: trips would have to go where they cannot.
        """
        above, goal, _ = aim
        block = above[self.areas[number]]
        more = np.bincount(block, self.value, minlength=len(goal)).astype(np.int64) - goal
        givers = self._trips(block, np.maximum(more, 0), random)
        takers = self._trips(block, np.maximum(-more, 0), random)
        to = np.append(self.areas[number][takers], self._empty(above, block, goal))
        # Trips go where others from the same areas of all other axes go, as far as there are any.
        others = [numbers for axis, numbers in enumerate(self.areas) if axis != number]
        alike = keys_of(others) if others else np.zeros(len(self.value), np.int64)
        givers = givers[np.argsort(alike[givers], kind="stable")]
        to = to[
            np.argsort(np.append(alike[takers], np.full(len(to) - len(takers), -1)), kind="stable")
        ]
        new = [numbers[givers] for numbers in self.areas]
        new[number] = to
        never, near = np.flatnonzero(~leaves.is_possible(new)), 1
        while len(never) and near < len(to):
            # Who cannot go there changes places with another, at first with one nearby.
            near = min(2 * near, len(to))
            for one in random.permutation(never).tolist():
                other = random.integers(max(one - near, 0), min(one + near, len(to)))
                to[[one, other]] = to[[other, one]]
            never = np.flatnonzero(~leaves.is_possible(new))
        if len(never):
            raise ReleaseError(
                f"the {_WHAT} cannot be met by flows that can occur: the release says which "
                f"cannot; {_CORRECT}"
            )
        areas = [np.append(old, more) for old, more in zip(self.areas, new, strict=True)]
        value = self.value - np.bincount(givers, minlength=len(self.value))
        value, cell = np.append(value, np.ones_like(givers)), np.append(self.cell, givers * 0 - 1)
        # Old flows come first: they lend their places to new ones with the same areas.
        _, first, where = np.unique(keys_of(areas), return_index=True, return_inverse=True)
        sums = np.bincount(where, value).astype(np.int64)
        first, sums = first[sums > 0], sums[sums > 0]
        return _Flows(tuple(numbers[first] for numbers in areas), sums, cell[first])

    def _trips(self, block: Whole, n: Ints, random: np.random.Generator) -> Ints:
        """Flows of so many trips of each block, evenly spread over its trips; more if it has few.

        Blocks without any trips have none.
        """
        order = np.argsort(block, kind="stable")
        ends = np.cumsum(self.value[order])
        sums = np.bincount(block, self.value, minlength=len(n))
        n = np.where(sums > 0, n, 0)
        of = np.repeat(np.arange(len(n)), n)
        step = np.arange(len(of)) - np.repeat(np.cumsum(n) - n, n)
        inside = np.floor((step + random.random(len(n))[of]) * (sums / np.maximum(n, 1))[of])
        at = (np.cumsum(sums) - sums)[of] + np.minimum(inside, sums[of] - 1)
        return order[np.searchsorted(ends, at, side="right")]

    def _empty(self, above: NDArray[np.int32], block: Whole, goal: Ints) -> NDArray[np.int32]:
        """Finest areas for the trips of blocks that have none yet, evenly."""
        is_empty = np.bincount(block, self.value, minlength=len(goal)) == 0
        starts, sizes = np.searchsorted(above, np.arange(len(goal))), np.bincount(above)
        n = np.where(is_empty, goal, 0)
        step = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
        return np.asarray(np.repeat(starts, n) + step % np.repeat(sizes, n), np.int32)

    def with_ends(self, cells: CellIntervals) -> CellIntervals:
        """With the intervals that were given; those of new flows are like others of one trip."""
        is_new = self.cell < 0
        usual = np.median(cells.high[cells.value == cells.value.min()])
        low = np.where(is_new, 0, cells.low[self.cell])
        high = np.where(is_new, int(usual), cells.high[self.cell])
        value = self.value
        return CellIntervals(self.areas, value, np.minimum(low, value), np.maximum(high, value))
