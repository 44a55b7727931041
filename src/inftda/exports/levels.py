"""The levels of an export: all axes at their first level, at their second, and so on."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from inftda.errors import InftdaError
from inftda.tree import DESTINATION, ORIGIN, Tree, TreeLevel

#: Longest part of a file name that a level's name becomes.
_LONGEST = 40


@dataclass(frozen=True)
class Level:
    """One level of every axis.

    Attributes:
        number: counting from 1, coarse to fine.
        name: for people and options: "municipality", or "region-state" where axes differ.
        depths: level of each axis's hierarchy, 0 where the axis is summed up.
        shown: axis name to level name, as `flows` takes it.
    """

    number: int
    name: str
    depths: tuple[int, ...]
    shown: dict[str, str]

    @property
    def file(self) -> str:
        """The level in the name of a file, whatever its own name is.

        >>> Level(2, "LAU/2 <new>", (2, 2), {}).file
        '2-LAU-2-new'
        """
        return file_part(self.number, self.name)

    def n_cells(self, tree: Tree) -> int:
        """Number of possible cells."""
        return TreeLevel(0, None, tree.axes, self.depths).n_nodes


def file_part(number: int, name: str) -> str:
    """A name as part of the name of a file; the number makes it one of its own."""
    plain = re.sub(r"[^\w.]+", "-", name).strip("-.")[:_LONGEST]
    return f"{number}-{plain}" if plain else str(number)


def levels_of(tree: Tree, *, pairs_only: bool) -> tuple[Level, ...]:
    """All levels, coarse to fine; an axis with fewer of them stays at its finest.

    Args:
        tree: the axes.
        pairs_only: whether other axes than origin and destination are summed up.
    """
    used = [not pairs_only or axis.name in {ORIGIN, DESTINATION} for axis in tree.axes]
    deepest = max(
        axis.hierarchy.depth for axis, is_used in zip(tree.axes, used, strict=True) if is_used
    )
    found = []
    for number in range(1, deepest + 1):
        depths = tuple(
            min(number, axis.hierarchy.depth) if is_used else 0
            for axis, is_used in zip(tree.axes, used, strict=True)
        )
        shown = {
            axis.name: axis.hierarchy.level_name(depth)
            for axis, depth in zip(tree.axes, depths, strict=True)
        }
        names = [shown[axis.name] for axis, is_used in zip(tree.axes, used, strict=True) if is_used]
        found.append(Level(number, "-".join(dict.fromkeys(names)), depths, shown))
    return tuple(found)


def chosen_levels(
    tree: Tree, names: Sequence[str] | None, *, pairs_only: bool
) -> tuple[Level, ...]:
    """The levels with these names; all if none is named.

    Raises:
        InftdaError: there is no such level.
    """
    every = levels_of(tree, pairs_only=pairs_only)
    if not names:
        return every
    known = {level.name: level for level in every}
    for name in names:
        if name not in known:
            raise InftdaError(f"there is no level {name!r} to export; there are {', '.join(known)}")
    return tuple(level for level in every if level.name in set(names))
