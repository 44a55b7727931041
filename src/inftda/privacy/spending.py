"""What all plans have in common, and the spending of any of them.

A mechanism takes its noise scales from a plan and from nowhere else, through a `Spending` that
refuses to hand out a level twice and to finish before all of them are handed out. So what was
drawn is what was accounted for.
"""

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any, Generic, Literal, Protocol, TypeVar

from inftda.errors import BudgetError
from inftda.privacy.unit import Unit
from inftda.tree import Tree

#: What gets noise: every level that splits (and the total, unless it is public), all possible
#: leaves, or only the leaves with a positive true count.
Measures = Literal["levels", "leaves", "positive leaves"]


class PlannedLevel(Protocol):
    """One measured level of a plan."""

    @property
    def index(self) -> int:
        """Number of the level in the tree; 0 is the root."""

    @property
    def name(self) -> str:
        """For people."""

    @property
    def cells(self) -> int:
        """Number of possible nodes."""

    @property
    def noise(self) -> str:
        """Its noise in a few words."""

    @property
    def sigma2(self) -> Fraction | None:
        """Variance parameter of its Gaussian noise; None if the noise is of another kind."""

    @property
    def sensitivity(self) -> float | None:
        """Its l2 sensitivity; None where the guarantee does not rest on it."""

    @property
    def rho(self) -> Fraction | None:
        """What it costs in zCDP; None where the guarantee is not zCDP."""


class PlannedTable(PlannedLevel, Protocol):
    """One measured table off the tree; its `index` is the level whose step it belongs to."""

    @property
    def depths(self) -> tuple[int, ...]:
        """Level of each axis's hierarchy, 0 where the axis is summed up."""


LevelT = TypeVar("LevelT", bound=PlannedLevel)
#: What is drawn: a level by its number, a table off the tree by the depths of its axes.
Key = int | tuple[int, ...]


class ReleasePlan(Protocol):
    """What will be drawn and what is promised; every mechanism makes one of some kind."""

    @property
    def unit(self) -> Unit:
        """Who is protected."""

    @property
    def epsilon(self) -> float | None:
        """Promised with `delta`; None if only rho is promised."""

    @property
    def delta(self) -> float | None:
        """Likewise."""

    @property
    def rho(self) -> Fraction | None:
        """Cost in zCDP, exact; None if only epsilon and delta are promised."""

    @property
    def scope(self) -> Measures:
        """What gets noise."""

    @property
    def levels(self) -> Sequence[PlannedLevel]:
        """The measured levels, root first."""

    @property
    def across(self) -> Fraction:
        """Part of the budget that was asked for to measure tables off the tree."""

    @property
    def tables(self) -> Sequence[PlannedTable]:
        """The measured tables off the tree."""

    def spending(self) -> Any:
        """A fresh account of what has been drawn: use one for each release."""

    def verify(self, tree: Tree | None = None) -> None:
        """Recompute the guarantee; with a tree, check that its levels are the planned ones.

        Raises:
            BudgetError: the plan promises more than its noise gives.
        """

    def describe(self) -> str:
        """The promise in one line."""

    def to_dict(self) -> dict[str, Any]:
        """As it is written to a manifest, nothing rounded."""


class Spending(Generic[LevelT]):
    """What has been drawn of a plan. Not for several threads at once."""

    def __init__(
        self, levels: Sequence[LevelT], tables: Mapping[Key, LevelT] | None = None
    ) -> None:
        self._left: dict[Key, LevelT] = {level.index: level for level in levels}
        self._left.update(tables or {})
        self._planned = frozenset(self._left)

    def is_planned(self, key: Key) -> bool:
        """Whether the plan has noise for a level or table, drawn already or not."""
        return key in self._planned

    def charge(self, key: Key) -> LevelT:
        """Take what was planned for a level or table, once.

        Raises:
            BudgetError: it is not in the plan, or was taken before.
        """
        if key not in self._planned:
            raise BudgetError(
                f"{_name(key)} is not in the plan, which has {_named(self._planned)}; "
                "noise that is not accounted for is never drawn"
            )
        if key not in self._left:
            raise BudgetError(f"{_name(key)} was drawn already; a second draw costs again")
        return self._left.pop(key)

    def finish(self) -> None:
        """End the release.

        Raises:
            BudgetError: a planned level or table was not drawn.
        """
        if self._left:
            raise BudgetError(
                f"{_named(self._left)} were planned but not drawn; "
                "the release is not the one that was accounted for"
            )


def _name(key: Key) -> str:
    return f"level {key}" if isinstance(key, int) else f"table {key}"


def _named(keys: Collection[Key]) -> str:
    """Levels by their numbers, tables by their depths."""
    levels = sorted(key for key in keys if isinstance(key, int))
    tables = sorted(key for key in keys if not isinstance(key, int))
    named = [f"levels {levels}"] if levels else []
    return " and ".join([*named, *([f"tables {tables}"] if tables else [])])
