"""The axes of a page: two that are laid out as rows and columns, further ones to filter by.

Where there are an origin and a destination they are laid out, wherever they stand in the tree;
otherwise the first two axes are. Everything that goes into a page has its axes in this order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from inftda.tree import DESTINATION, ORIGIN, Axis, Tree

#: Axes that are laid out.
LAID_OUT: Final = 2

Item = TypeVar("Item")


@dataclass(frozen=True)
class Layout:
    """The order of axes in a page.

    Attributes:
        tree: axes of the table.
        order: numbers of these axes, those that are laid out first.
    """

    tree: Tree
    order: tuple[int, ...]

    @classmethod
    def of(cls, tree: Tree) -> "Layout":
        """Origin and destination first, if there are both."""
        names = [axis.name for axis in tree.axes]
        first = [names.index(ORIGIN), names.index(DESTINATION)] if _is_trips(names) else []
        rest = (number for number in range(len(names)) if number not in first)
        return cls(tree, (*first, *rest))

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes in the order of the page."""
        return tuple(self.arranged(self.tree.axes))

    @property
    def has_trips(self) -> bool:
        """Whether it is about trips: from somewhere to somewhere, whatever else is known."""
        return _is_trips([axis.name for axis in self.tree.axes])

    @property
    def is_shared(self) -> bool:
        """Whether rows and columns are the same areas."""
        first = self.axes[:LAID_OUT]
        return len(first) == LAID_OUT and first[0].hierarchy == first[1].hierarchy

    def arranged(self, items: Sequence[Item]) -> list[Item]:
        """One thing for each axis of the tree, in the order of the page."""
        return [items[number] for number in self.order]

    def key(self, depths: Sequence[int]) -> str:
        """How the page names a level of each axis of the tree."""
        return ",".join(map(str, self.arranged(depths)))

    def index_of(self, axis: int) -> int:
        """Index of an axis of the tree among those of the page."""
        return self.order.index(axis)


def _is_trips(names: Sequence[str]) -> bool:
    return ORIGIN in names and DESTINATION in names
