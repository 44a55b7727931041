"""Levels whose published numbers are mostly noise, recognised from the release alone.

A published pair is *noise* here if its true number is nothing, or less than half of the noise
scale of its level: nobody could tell these two apart. How many pairs of a level are noise cannot
be known without the truth, but two public figures go with it closely:

- the part of the published numbers that are smaller than the noise scale, and
- how many cells were drawn for each that is published, since the more there were to choose
  from, the larger the noise of those that made it.

The share of noise is estimated as the first and a fifth of the decimal logarithm of the second.
Compared with the truth on 16 tables, epsilon 0.1 to 10, at 482 levels with 30 published numbers
or more, that has a correlation of 0.98 with the true share. A level is called mostly noise from
an estimate of 0.55 on: 96 % of the levels are called what they are, and where it was wrong the
true share lay between 33 and 67 % (`docs/what-to-trust.md`).

Only what is published goes in, so this is post-processing: it costs no privacy.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from inftda.publication.query import FLOW, open_database, open_flows, quoted
from inftda.publication.release import Release
from inftda.tables import as_arrow
from inftda.tree import TreeLevel

#: Fewer numbers than this say nothing about a share.
ENOUGH: Final = 30
#: From this estimate on a level is called mostly noise.
MOSTLY: Final = 0.55
#: What ten times as many cells drawn add to the estimate.
_PER_DECADE: Final = 0.2
#: Before there is a release: a level whose mean flow is below this part of its noise scale.
_FAR_BELOW: Final = 0.01


@dataclass(frozen=True, slots=True)
class LevelNoise:
    """What is published at one level, and how much of it is noise.

    Attributes:
        level: the level of the tree.
        n_published: how many of its numbers are above zero.
        n_drawn: how many were drawn: all children of the published numbers above them.
        n_small: how many of the published ones are smaller than the noise scale.
    """

    level: TreeLevel
    n_published: int
    n_drawn: int
    n_small: int

    @property
    def share(self) -> float:
        """Estimated part of the published numbers that are noise."""
        if self.n_published == 0:
            return 0.0
        choice = math.log10(max(self.n_drawn / self.n_published, 1))
        return min(self.n_small / self.n_published + _PER_DECADE * choice, 1.0)

    @property
    def is_mostly_noise(self) -> bool:
        """Whether most of its pairs are noise."""
        return self.n_published >= ENOUGH and self.share >= MOSTLY


def mostly_noise(release: Release) -> tuple[TreeLevel, ...]:
    """Levels of a release that should not be used, coarse to fine.

    None for mechanisms that do not go down a tree: there nothing is known of it.

    Raises:
        ReleaseError: the flows cannot be read.
    """
    return tuple(one.level for one in level_noise(release) if one.is_mostly_noise)


def level_noise(release: Release) -> tuple[LevelNoise, ...]:
    """The levels at which noise was added, coarse to fine; none likewise.

    Raises:
        ReleaseError: the flows cannot be read.
    """
    if not release.manifest.description.is_top_down:
        return ()
    sigma = {
        level.index: math.sqrt(level.sigma2)
        for level in release.manifest.plan.levels
        if level.sigma2 is not None and level.index > 0
    }
    with open_database() as connection:
        open_flows(connection, release.table).create_view(_named(release.tree.levels[-1]))
        return tuple(reversed(list(_upwards(connection, release, sigma))))


def is_drowned(total: int, cells: int, sigma: float) -> bool:
    """Whether most pairs of a level will be noise, as far as its mean flow tells.

    Args:
        total: trips in all.
        cells: possible cells of the level.
        sigma: its noise scale.
    """
    return total < _FAR_BELOW * sigma * cells


def _upwards(connection: Any, release: Release, sigma: dict[int, float]) -> Iterator[LevelNoise]:
    """From the finest level up: each is the sum of the one below, and far smaller."""
    levels, axes = release.tree.levels, release.tree.axes
    for axis in axes:
        codes = axis.hierarchy.codes(axis.hierarchy.depth)
        numbers = as_arrow(np.arange(len(codes), dtype=np.int32))
        connection.register(f"finest {axis.name}", pa.table({"code": codes, "area": numbers}))
    for level, above in zip(levels[:0:-1], levels[-2::-1], strict=True):
        limit = sigma.get(level.index, 0.0)
        ((n_published, n_small),) = connection.sql(
            f"SELECT count(*), count(*) FILTER ({FLOW} < {limit!r}) "  # noqa: S608 - our own names
            f"FROM {_named(level)} WHERE {FLOW} > 0"
        ).fetchall()
        sums = _summed(connection, release, level)
        connection.execute(f"CREATE TEMP TABLE {_named(above)} AS {sums}")
        if level.index in sigma:
            yield LevelNoise(level, n_published, _drawn(connection, level, above), n_small)


def _named(level: TreeLevel) -> str:
    """The table of a level."""
    return f"level_{level.index}"


def _summed(connection: Any, release: Release, level: TreeLevel) -> str:
    """The query that sums a level up to the one above, by the numbers of areas."""
    shown, joins = [], []
    for number, (axis, depth) in enumerate(zip(level.axes, level.depths, strict=True)):
        area = f"{_named(level)}.{quoted(axis.name)}"
        if level.index == len(release.tree.levels) - 1:  # areas by their codes
            table = quoted(f"finest {axis.name}")
            joins.append(f"JOIN {table} ON {area}::VARCHAR = {table}.code")
            area = f"{table}.area"
        if number == level.axis:
            above = as_arrow(axis.hierarchy.ancestor(depth, depth - 1))
            numbers = as_arrow(np.arange(len(above), dtype=np.int32))
            connection.register("above", pa.table({"area": numbers, "above": above}))
            joins.append(f"JOIN above ON {area} = above.area")
            area = "above.above"
        shown.append(f"{area} AS {quoted(axis.name)}")
    return (
        f"SELECT {', '.join(shown)}, sum({FLOW})::BIGINT AS {FLOW} "  # noqa: S608 - likewise
        f"FROM {_named(level)} {' '.join(joins)} GROUP BY ALL"
    )


def _drawn(connection: Any, level: TreeLevel, above: TreeLevel) -> int:
    """How many children the published numbers of the level above have."""
    axis, depth = level.axes[level.axis], level.depths[level.axis]
    children = np.diff(axis.hierarchy.child_offsets(depth - 1)).astype(np.int64)
    numbers = as_arrow(np.arange(len(children), dtype=np.int32))
    connection.register("children", pa.table({"area": numbers, "n": as_arrow(children)}))
    ((found,),) = connection.sql(
        f"SELECT coalesce(sum(n), 0)::BIGINT FROM {_named(above)} "  # noqa: S608 - likewise
        f"JOIN children ON {_named(above)}.{quoted(axis.name)} = children.area "
        f"WHERE {FLOW} > 0"
    ).fetchall()
    return int(found)
