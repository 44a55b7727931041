"""What the columns of the confidential table mean, and how its rows are treated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from inftda.areas.clock import ClockPart
from inftda.errors import IngestError, PrivacyError
from inftda.hierarchy import OUTSIDE, Hierarchy
from inftda.privacy.unit import PrivacyUnit
from inftda.tree import DESTINATION, ORIGIN, Tree

Unplaceable = Literal["error", "outside", "drop"]

#: Take the column `count` if there is one, otherwise every row is one trip.
AUTO: Final = "auto"
#: The unit where nothing is promised to anybody: rows may be left out, and a table may be empty.
UNPROMISED: Final = PrivacyUnit("add-remove", 1)


@dataclass(frozen=True, slots=True)
class Point:
    """Two columns with the degrees of a point, which is placed into one of the areas."""

    lon: str
    lat: str


@dataclass(frozen=True, slots=True)
class Clock:
    """A column of time stamps, and the part of them (hour, weekday) that trips are counted by."""

    column: str
    part: ClockPart


#: The columns that an axis is read from: area codes, points, or time stamps.
AxisColumns = str | Point | Clock


@dataclass(frozen=True, kw_only=True)
class TableSpec:
    """What to read from a table of trips or flows.

    Attributes:
        axes: the column (or columns) of each axis and the hierarchy its codes come from. Codes
            are compared as text; whole numbers are written out, so codes with leading zeros must
            be text.
        count: the column with the number of trips in a row; None if every row is one
            trip; "auto" takes the column `count` if there is one, and refuses a table with
            another column that looks like counts.
        person: the column that identifies persons; with it, contributions are bounded to what
            `unit` says. Without it, the unit is the custodian's promise.
        unit: who is protected; needed for `person` and for dropping rows.
        unplaceable: what to do with rows whose code is missing or not in the hierarchy:
            "error", "outside" (they go to the area `outside` of that axis), or "drop".
        only: numbers of the axes for which "outside" holds, others being an error; all if None.
        outside: code of that area; see `Hierarchy.with_outside`.

    Raises:
        IngestError: there is no axis, or no such way to treat unplaceable rows.
        PrivacyError: the options would break the privacy promise.

    Privacy:
        Under `substitute` the number of trips is public, and dropping rows would change it,
        so "drop" is refused. Distinct trips may coincide "outside", so without a person
        column that says which to keep, a unit of several distinct trips is refused there, and
        for the same reason with points and time stamps.
    """

    axes: tuple[tuple[AxisColumns, Hierarchy], ...]
    count: str | None = AUTO
    person: str | None = None
    unit: PrivacyUnit | None = None
    unplaceable: Unplaceable = "error"
    only: frozenset[int] | None = None
    outside: str = OUTSIDE

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", tuple(self.axes))
        if not self.axes:
            raise IngestError(
                "there is no axis to count by; give at least one column and hierarchy"
            )
        if self.unplaceable not in get_args(Unplaceable):
            raise IngestError(
                f"--unplaceable (unplaceable= in Python) must be one of "
                f"{', '.join(get_args(Unplaceable))}, or AXIS=outside, got {self.unplaceable!r}"
            )
        if self.person is not None and self.unit is None:
            raise PrivacyError(
                "a person column bounds contributions, but there is no privacy unit that says to "
                "how many trips; give the unit, or leave out the person column"
            )
        if self.is_dropping and (self.unit is None or self.unit.is_substitute):
            raise PrivacyError(
                "rows that cannot be placed must not be dropped under neighbours 'substitute', "
                "because that changes the number of trips, which is public; use --unplaceable "
                "outside or --neighbours add-remove (unplaceable='outside', "
                "neighbours='add-remove' in Python)"
            )
        if self._merges_trips and self.unit is not None and self.unit.distinct:
            raise PrivacyError(
                "trips to different unknown places become the same trip to 'outside', but the "
                "privacy unit says that nobody makes the same trip twice; leave out distinct, list "
                "the places in the areas table, or give the person column, so that no one's trip "
                "is kept twice"
            )
        if self._rounds_trips and self.unit is not None and self.unit.distinct:
            raise PrivacyError(
                "different points and times become the same trip between areas and hours, but the "
                "privacy unit says that nobody makes the same trip twice; leave out distinct, or "
                "give the person column, so that no one's trip is kept twice"
            )

    @property
    def names(self) -> list[str]:
        """The columns of the axes, each once."""
        return list(dict.fromkeys(name for axis, _ in self.axes for name in columns_of(axis)))

    @property
    def is_dropping(self) -> bool:
        """Whether rows that cannot be placed are left out."""
        return self.unplaceable == "drop"

    def has_outside(self, axis: int) -> bool:
        """Whether rows that cannot be placed by this axis have an area of their own."""
        is_meant = self.only is None or axis in self.only
        return self.unplaceable == "outside" and is_meant

    @property
    def may_be_empty(self) -> bool:
        """Whether a table without trips is read like any other."""
        return may_be_empty(self.unit)

    @property
    def _merges_trips(self) -> bool:
        has_several = self.unit is not None and self.unit.trips > 1
        return self.unplaceable == "outside" and self.person is None and has_several

    @property
    def _rounds_trips(self) -> bool:
        has_several = self.unit is not None and self.unit.trips > 1
        is_rounding = any(not isinstance(axis, str) for axis, _ in self.axes)
        return is_rounding and self.person is None and has_several


def columns_of(axis: AxisColumns) -> tuple[str, ...]:
    """Names of the columns that an axis is read from."""
    if isinstance(axis, Point):
        return axis.lon, axis.lat
    return (axis.column,) if isinstance(axis, Clock) else (axis,)


def axes_of(
    tree: Tree,
    *,
    origin: str,
    destination: str,
    points: Mapping[str, Sequence[str] | None] | None = None,
    clocks: Mapping[str, str | None] | None = None,
) -> tuple[tuple[AxisColumns, Hierarchy], ...]:
    """What each axis of a tree is read from.

    Args:
        tree: the tree.
        origin: column of the origins; others are called as their axes are.
        destination: column of the destinations.
        points: for the ends that are points, the columns of longitudes and latitudes.
        clocks: part of the clock to the column of its time stamps.

    Raises:
        IngestError: points are not two columns, or an end is given both ways.
    """
    columns: dict[str, AxisColumns] = {ORIGIN: origin, DESTINATION: destination}
    for end, pair in (points or {}).items():
        if pair is None:
            continue
        if isinstance(pair, str) or len(pair) != 2:
            raise IngestError(
                f"the {end} point must be two columns, longitude and latitude, got {pair!r}"
            )
        if columns[end] != end:
            raise IngestError(
                f"the {end} is given twice, as column {columns[end]!r} and as a point; leave out "
                "one of them"
            )
        columns[end] = Point(*pair)
    for part, column in (clocks or {}).items():
        if column is not None:
            columns[part] = Clock(column, part)  # type: ignore[arg-type] # one of the parts
    return tuple((columns.get(axis.name, axis.name), axis.hierarchy) for axis in tree.axes)


def may_be_empty(unit: PrivacyUnit | None) -> bool:
    """Whether a table without trips is released like any other.

    Privacy:
        Unless the total is public, an empty table has neighbours that are not empty, and an
        error would distinguish them.
    """
    return unit is not None and not unit.root_is_public


def outside_axes(unplaceable: Unplaceable | Mapping[str, str]) -> bool | frozenset[str]:
    """The axes that have an area of their own for rows that cannot be placed: all, none or some.

    Args:
        unplaceable: for all axes, or for some by their names; others are "error".

    Raises:
        IngestError: rows would be dropped for one axis only.

    >>> sorted(outside_axes({"origin": "outside", "destination": "error"}))
    ['origin']
    """
    if isinstance(unplaceable, Mapping):
        return _outside_by_name(unplaceable)
    return unplaceable == "outside"


def placing(
    unplaceable: Unplaceable | Mapping[str, str], tree: Tree
) -> tuple[Unplaceable, frozenset[int] | None]:
    """What to do with rows that cannot be placed, and by which axes; None for all of them.

    Args:
        unplaceable: for all axes, or for some by their names; others are "error".
        tree: has the axes.

    Raises:
        IngestError: there is no such axis, or rows would be dropped for one axis only.
    """
    if not isinstance(unplaceable, Mapping):
        return unplaceable, None
    outside = _outside_by_name(unplaceable)
    axes = [axis.name for axis in tree.axes]
    for name in unplaceable:
        if name not in axes:
            raise IngestError(
                f"--unplaceable (unplaceable= in Python) names the axis {name!r}, but the axes "
                f"are {', '.join(axes)}"
            )
    only = frozenset(number for number, name in enumerate(axes) if name in outside)
    return "outside" if outside else "error", only


def _outside_by_name(unplaceable: Mapping[str, str]) -> frozenset[str]:
    for way in unplaceable.values():
        if way not in {"error", "outside"}:
            raise IngestError(
                "for one axis --unplaceable (unplaceable= in Python) is error or outside, got "
                f"{way!r}; rows are dropped whatever axis they cannot be placed by"
            )
    return frozenset(axis for axis, way in unplaceable.items() if way == "outside")
