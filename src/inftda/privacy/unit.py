"""The privacy unit: how much one person can change each level (paper, sections 2 and 4.1).

The paper states one sensitivity for the whole tree. For people with several distinct trips
that figure holds at the leaves only: trips between different towns may all lie between the
same two regions. So each level has a sensitivity of its own here.

This module must never read trips: a sensitivity that depends on the data gives no guarantee.
`docs/proofs/sensitivity.md` has proofs, and the cases where a bound is not reached.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from inftda.errors import PrivacyError
from inftda.options import GUARANTEE, Option, documented

if TYPE_CHECKING:
    from inftda.tree import CrossTable, TreeLevel

NEIGHBOURS: Final = ("substitute", "add-remove")
#: What a manifest says of the unit.
UNIT_KEYS: Final = ("neighbours", "trips", "exactly", "distinct", "once_per")


class Sensitivity(NamedTuple):
    """Largest change of the counts of a level or cross table by one person.

    Attributes:
        squared: square of the l2 sensitivity.
        sides: 2 if they can lower one count and raise another, else 1.
        trips: largest sum of changes on one side.
    """

    squared: int
    sides: int
    trips: int = 1

    @property
    def l2(self) -> float:
        """The l2 sensitivity, to the nearest float."""
        return math.sqrt(self.squared)

    @property
    def l1(self) -> int:
        """The l1 sensitivity."""
        return self.sides * self.trips


@documented
@dataclass(frozen=True, slots=True)
class Unit:
    """Privacy unit: the difference between neighbouring tables.

    Only if everybody contributes exactly that many trips is the total public under "substitute".
    Under "add-remove" `exactly` changes nothing and is stored as False. With `once_per` trips are
    distinct, and `distinct` is stored as True.

    >>> Unit().root_is_public, Unit("add-remove").root_is_public
    (True, False)
    """

    neighbours: Annotated[
        str,
        Option(
            "The difference between two tables that a reader cannot distinguish: one person "
            "replaced by another, or one person more or less.",
            metavar="substitute|add-remove",
            panel=GUARANTEE,
        ),
    ] = "substitute"
    trips: Annotated[int, Option("The most trips of one person.", panel=GUARANTEE)] = 1
    exactly: Annotated[
        bool | None,
        Option(
            "Whether everybody has exactly that many trips, or at most that many. By default "
            "exactly, for substitute.",
            panel=GUARANTEE,
            spelling="--exactly/--at-most",
        ),
    ] = None
    distinct: Annotated[bool, Option("Nobody makes the same trip twice.", panel=GUARANTEE)] = False
    once_per: Annotated[
        str | None,
        Option(
            "Nobody has two trips with the same finest area of this axis, such as month: at most "
            "one trip in each.",
            metavar="AXIS",
            panel=GUARANTEE,
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.neighbours not in NEIGHBOURS:
            raise PrivacyError(
                f"`neighbours=` must be substitute or add-remove, got {self.neighbours!r}"
            )
        # True is an int to Python, but it is not a number of trips.
        if not isinstance(self.trips, int) or isinstance(self.trips, bool) or self.trips < 1:
            raise PrivacyError(
                f"`trips=` must be a whole number of at least 1, got {self.trips!r} "
                "(the most trips one person contributes)"
            )
        for name, value in (("exactly", self.exactly), ("distinct", self.distinct)):
            if not isinstance(value, bool) and not (name == "exactly" and value is None):
                raise PrivacyError(f"`{name}=` must be true or false, got {value!r}")
        if self.once_per is not None:
            if not isinstance(self.once_per, str) or self.trips == 1:
                raise PrivacyError(
                    "`once_per=` is the name of an axis, and goes with `trips=`, the most trips of "
                    f"one person in all, above 1; got {self.once_per!r} and {self.trips}"
                )
            object.__setattr__(self, "distinct", True)  # it follows
        if not self.is_substitute:
            object.__setattr__(self, "exactly", False)
        elif self.exactly is None:
            object.__setattr__(self, "exactly", True)

    @property
    def is_substitute(self) -> bool:
        """Whether one person is replaced, rather than added or removed."""
        return self.neighbours == "substitute"

    @property
    def root_is_public(self) -> bool:
        """Whether all neighbours have the same total, so that it needs no noise."""
        return self.is_substitute and bool(self.exactly)

    @property
    def is_single_trip(self) -> bool:
        """Whether one person changes single cells by one each, at every level."""
        return self.trips == 1

    @property
    def may_drop_rows(self) -> bool:
        """Whether rows may be left out: else the number of trips is public, and would change."""
        return not self.is_substitute

    @property
    def forbids_repeats(self) -> bool:
        """Whether two trips of one person must differ in some axis."""
        return self.distinct and self.trips > 1 and self.once_per is None

    def is_broken_by(self, outside: Collection[str]) -> bool:
        """Whether an area `outside` on these axes could make equal two trips that must differ."""
        return self.once_per in outside or (self.forbids_repeats and bool(outside))

    def sensitivity(self, level: "TreeLevel | CrossTable") -> Sensitivity:
        """Largest change of the counts of a level or cross table by one person."""
        return Sensitivity(self.squared_sensitivity(level), self.sides(level.index), self.trips)

    def squared_sensitivity(self, level: "TreeLevel | CrossTable") -> int:
        """Square of the l2 sensitivity of all counts of a level, exact.

        Privacy:
            No pair of neighbours is further apart at this level. See
            `docs/proofs/sensitivity.md`, theorem 1.
        """
        if level.index == 0 and self.root_is_public:
            return 0
        return self._most_in(level) * self.sides(level.index)

    def sides(self, index: int) -> int:
        """2 if one person can lower one count of a level and raise another, else 1.

        Privacy:
            On each side cells change by `trips` at most, together. For one-trip units that is
            one cell for each side, and below the root some pair of neighbours changes as many at
            every level.
        """
        return 2 if self.is_substitute and index else 1

    def _most_in(self, level: "TreeLevel | CrossTable") -> int:
        """Largest sum of squares of one person's counts over the nodes of a level."""
        if not self.distinct:
            return self.trips**2
        left, total = self.trips, 0
        for leaves, nodes in level.leaf_capacities(self.once_per):
            full = min(nodes, left // leaves)
            left -= full * leaves
            total += full * leaves**2
            if full < nodes:
                return total + left**2
        return total

    def describe(self, one: str = "trip", many: str = "trips") -> str:
        """Describe the unit in plain words; `one` and `many` are nouns for the counted entries.

        >>> Unit("add-remove", trips=3, distinct=True).describe()
        'a person with at most 3 different trips may be added or removed; the total is noised'
        """
        bound = "exactly" if self.exactly else "at most"
        change = "replaced by another" if self.is_substitute else "added or removed"
        total = "public" if self.root_is_public else "noised"
        trips = self.contribution(one, many)
        return f"a person with {bound} {trips} may be {change}; the total is {total}"

    def contribution(self, one: str = "trip", many: str = "trips") -> str:
        """Describe the entries of a person in the table.

        >>> Unit("add-remove", trips=12, once_per="month").contribution()
        '12 trips (one in each month)'
        """
        if self.once_per is not None:
            return f"{self.trips:,} {many} (one in each {self.once_per})"
        kind = "different " if self.distinct and self.trips > 1 else ""
        return f"{self.trips:,} {kind}{one if self.trips == 1 else many}"

    def to_dict(self) -> dict[str, Any]:
        """As it is written to a manifest."""
        return {
            "neighbours": self.neighbours,
            "trips": self.trips,
            "exactly": self.exactly,
            "distinct": self.distinct,
            "once_per": self.once_per,
        }

    @classmethod
    def from_dict(cls, data: Any) -> "Unit":
        """Read back what `to_dict` gives.

        Raises:
            PrivacyError: something is missing or of another kind.
        """
        if not isinstance(data, Mapping) or set(data) != set(UNIT_KEYS):
            raise PrivacyError(f"a privacy unit must have {', '.join(UNIT_KEYS)}")
        return cls(**dict(data))


#: The default privacy unit: one trip of one person, replaced by another.
UNIT: Final = Unit()
