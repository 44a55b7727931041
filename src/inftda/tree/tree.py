"""A tree: axes and the order in which they are refined."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from inftda.errors import TreeError
from inftda.tree.cross_tables import CELLS_PER_AREA, CrossTable, distinguishing
from inftda.tree.hierarchy import Hierarchy
from inftda.tree.levels import DESTINATION, ORIGIN, Axis, TreeLevel, is_od

#: Columns that stand beside those of the axes.
_TAKEN = frozenset({"flow", "listed", "estimate", "low", "high", "grade"})


@dataclass(frozen=True)
class Tree:
    """Axes, each with its hierarchy, and the order in which they are refined.

    Attributes:
        axes: the columns of the table.
        order: names of axes; each mention refines that axis by one level.

    >>> areas = Hierarchy.read({"region": ["N", "N", "S"], "town": ["1", "2", "3"]})
    >>> tree = Tree.destination_first(areas)
    >>> [level.name for level in tree.levels]
    ['all > all', 'all > region', 'region > region', 'region > town', 'town > town']
    >>> tree.levels[-1].n_nodes, tree.depth
    (9, 4)
    """

    axes: tuple[Axis, ...]
    order: tuple[str, ...]

    @classmethod
    def build(cls, axes: Sequence[Axis], order: Sequence[str]) -> Self:
        """Build a tree from its axes and the order of refinement.

        Args:
            axes: the columns of the table.
            order: names of axes; each mention refines that axis by one level.

        Raises:
            TreeError: an axis is missing, named twice, or not refined to its finest level.
        """
        names = [axis.name for axis in axes]
        _check_names(names)
        for name in order:
            if name not in names:
                raise TreeError(
                    f"the order names the axis {name!r}; the axes are {', '.join(names)}"
                )
        for axis in axes:
            times = list(order).count(axis.name)
            if times != axis.hierarchy.depth:
                raise TreeError(
                    f"the order names the axis {axis.name!r} {times} times, but its "
                    f"hierarchy has {axis.hierarchy.depth} levels; name it once for each level"
                )
        return cls(tuple(axes), tuple(order))

    @classmethod
    def destination_first(cls, origin: Hierarchy, destination: Hierarchy | None = None) -> Self:
        """Build the destination tree of the paper: destination 1, origin 1, destination 2, ..."""
        axes = (Axis(ORIGIN, origin), Axis(DESTINATION, destination or origin))
        return cls.build(axes, interleave([axes[1], axes[0]]))

    @cached_property
    def levels(self) -> tuple[TreeLevel, ...]:
        """Levels 0 (root) to the number of steps, trivial ones included."""
        names = [axis.name for axis in self.axes]
        depths = [0] * len(names)
        levels = [TreeLevel(self.axes, tuple(depths), 0, None)]
        for index, axis in enumerate(map(names.index, self.order), start=1):
            depths[axis] += 1
            levels.append(TreeLevel(self.axes, tuple(depths), index, axis))
        return tuple(levels)

    @cached_property
    def splitting_levels(self) -> tuple[TreeLevel, ...]:
        """Levels below the root with split areas; only these are measured."""
        return tuple(level for level in self.levels[1:] if not level.is_trivial)

    @property
    def depth(self) -> int:
        """T: number of levels that are measured."""
        return len(self.splitting_levels)

    @property
    def is_od(self) -> bool:
        """Whether the axes are just origin and destination."""
        return is_od(self.axes)

    def check_numbers(self) -> None:
        """Refuse a tree that has more nodes than there are numbers for them.

        Raises:
            TreeError: the tree has too many nodes. Plans can be made for it, but no releases.
        """
        for level in self.splitting_levels:
            _ = level.numbering

    @cached_property
    def cross_tables(self) -> tuple[CrossTable, ...]:
        """Cross tables that are measured, in the order of the steps they belong to.

        These are all candidates with at most two axes that are not summed up, and not too many
        cells.
        """
        longest = max(axis.hierarchy.n_areas(axis.hierarchy.depth) for axis in self.axes)
        found = [
            CrossTable(self.axes, depths, level)
            for level in self.splitting_levels
            for depths in distinguishing(level)
            if depths not in self.on_tree
        ]
        return tuple(one for one in found if one.n_nodes <= CELLS_PER_AREA * longest)

    def cross_tables_at(self, level: TreeLevel) -> tuple[CrossTable, ...]:
        """Cross tables that are measured in the step to a level."""
        return tuple(one for one in self.cross_tables if one.index == level.index)

    @cached_property
    def marginals(self) -> tuple[TreeLevel | CrossTable, ...]:
        """All levels, each followed by the cross tables of its step."""
        found: list[TreeLevel | CrossTable] = []
        for level in self.levels:
            found += [level, *self.cross_tables_at(level)]
        return tuple(found)

    @cached_property
    def on_tree(self) -> frozenset[tuple[int, ...]]:
        """Depths of all levels, by the coarsest levels of the axes that have the same areas."""
        return frozenset(self.coarsest(level.depths) for level in self.levels)

    def coarsest(self, depths: Sequence[int]) -> tuple[int, ...]:
        """For each axis the coarsest level that has the same areas as the given one."""
        return tuple(axis.coarsest[depth] for axis, depth in zip(self.axes, depths, strict=True))

    def one_way(self, axis: int, depth: int) -> tuple[int, ...]:
        """Depths of the totals by one axis: all other axes are summed up."""
        return tuple(depth if number == axis else 0 for number in range(len(self.axes)))


def interleave(axes: Sequence[Axis]) -> list[str]:
    """Order of refinement that takes one level of each axis in turn until all are used."""
    deepest = max(axis.hierarchy.depth for axis in axes)
    return [
        axis.name
        for level in range(1, deepest + 1)
        for axis in axes
        if level <= axis.hierarchy.depth
    ]


def _check_names(names: list[str]) -> None:
    if not names:
        raise TreeError("a tree needs at least one axis")
    # Query engines ignore case in column names, so names must differ in more than case.
    folded = [name.casefold() for name in names]
    for name in names:
        if folded.count(name.casefold()) > 1:
            raise TreeError(f"the axis {name!r} is given twice; name each axis once")
        if not name.strip() or name.casefold() in _TAKEN:
            raise TreeError(
                f"an axis must not be called {name!r}; give its column another name (columns of "
                f"what is released are called {', '.join(sorted(_TAKEN))})"
            )
