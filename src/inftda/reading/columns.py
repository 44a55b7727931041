"""What the columns of the confidential table mean, and how its rows are treated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

from inftda.errors import IngestError, PrivacyError
from inftda.privacy.unit import Unit
from inftda.tree import DESTINATION, ORIGIN, Axis

if TYPE_CHECKING:
    from inftda.reading.sources import Source

Unplaceable = Literal["error", "outside", "drop"]
#: What an axis is read from: a column of codes, two of degrees, or one of time stamps.
Kind = Literal["code", "point", "hour", "weekday"]

COUNT: Final = "count"
#: Take the column `count` if there is one, otherwise every row is one trip.
AUTO: Final = "auto"
#: The letters of other names that counts go by: such a column is not passed over in silence.
LIKE_COUNTS: Final = frozenset({
    "cnt", "count", "counts", "flow", "flows", "n", "ntrips", "number", "obsvalue", "people",
    "total", "tripcount", "trips", "value", "weight",
})  # fmt: skip
#: What columns hold, and the options that say which they are.
_ENDS: Final = "--origin, --destination (origin=, destination= in Python)"
_POINTS: Final = "--origin-point, --destination-point (origin_point=, destination_point= in Python)"
_ROLES: Final[Mapping[str, tuple[str, str]]] = {
    "code": ("area codes", _ENDS),
    "point": ("points", _POINTS),
    "hour": ("time stamps", "--hour-of (hour_of= in Python)"),
    "weekday": ("time stamps", "--weekday-of (weekday_of= in Python)"),
    "count": ("counts", "--count (count= in Python)"),
    "person": ("persons", "--person (person= in Python)"),
}
#: The unit where nothing is promised to anybody: rows may be left out, and a table may be empty.
UNPROMISED: Final = Unit("add-remove", 1)


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What to read from a table of trips or flows.

    Every other axis is a column of codes with the name of the axis.

    Attributes:
        origin: the column where trips start, or the two columns of longitude and latitude.
            Codes are compared as text; whole numbers are written out, so codes with leading
            zeros must be text.
        destination: the same of where they end.
        hour: the column of time stamps that the axis "hour" is read from.
        weekday: the same for the axis "weekday".
        count: the column with the number of trips in a row; None if every row is one
            trip; "auto" takes the column `count` if there is one, and refuses a table with
            another column that looks like counts.
        person: the column that identifies persons; with it, contributions are bounded to what
            the privacy unit says. Without it, the unit is the custodian's promise.
        unplaceable: what to do with rows whose code is missing or not in the hierarchy:
            "error", "outside" (they go to the area `outside` of that axis), or "drop"; or axis
            name to "outside" or "error", axes that are not named being "error".

    Raises:
        IngestError: a point is not two columns, or there is no such way to treat rows.

    >>> Columns(origin=("lon", "lat")).kind_of("origin")
    'point'
    """

    origin: str | Sequence[str] = ORIGIN
    destination: str | Sequence[str] = DESTINATION
    hour: str | None = None
    weekday: str | None = None
    count: str | None = AUTO
    person: str | None = None
    unplaceable: Unplaceable | Mapping[str, str] = "error"

    def __post_init__(self) -> None:
        for end in (ORIGIN, DESTINATION):
            given = getattr(self, end)
            if not isinstance(given, str) and len(given) != 2:
                raise IngestError(
                    f"the {end} point must be two columns, longitude and latitude, got {given!r}"
                )
        if isinstance(self.unplaceable, Mapping):
            for way in self.unplaceable.values():
                if way not in {"error", "outside"}:
                    raise IngestError(
                        "for one axis --unplaceable (unplaceable= in Python) is error or outside, "
                        f"got {way!r}; rows are dropped whatever axis they cannot be placed by"
                    )
        elif self.unplaceable not in get_args(Unplaceable):
            raise IngestError(
                f"--unplaceable (unplaceable= in Python) must be one of "
                f"{', '.join(get_args(Unplaceable))}, or AXIS=outside, got {self.unplaceable!r}"
            )

    def of_axis(self, axis: str) -> tuple[str, ...]:
        """Names of the columns that an axis is read from."""
        given = {
            ORIGIN: self.origin,
            DESTINATION: self.destination,
            "hour": self.hour,
            "weekday": self.weekday,
        }.get(axis)
        if given is None:
            return (axis,)
        return (given,) if isinstance(given, str) else tuple(given)

    def kind_of(self, axis: str) -> Kind:
        """What the columns of an axis hold."""
        if axis == "hour" and self.hour is not None:
            return "hour"
        if axis == "weekday" and self.weekday is not None:
            return "weekday"
        return "point" if len(self.of_axis(axis)) > 1 else "code"

    @property
    def policy(self) -> Unplaceable:
        """What happens to rows that cannot be placed by some axis."""
        if not isinstance(self.unplaceable, Mapping):
            return self.unplaceable
        return "outside" if "outside" in self.unplaceable.values() else "error"

    @property
    def outside(self) -> bool | frozenset[str]:
        """The axes that have an area for rows that cannot be placed: all, none, or these."""
        if not isinstance(self.unplaceable, Mapping):
            return self.unplaceable == "outside"
        return frozenset(axis for axis, way in self.unplaceable.items() if way == "outside")

    def has_outside(self, axis: str) -> bool:
        """Whether rows that cannot be placed by this axis go to its area `outside`."""
        return self.outside if isinstance(self.outside, bool) else axis in self.outside

    def check(self, axes: Sequence[Axis], unit: Unit | None) -> None:
        """Refuse what cannot be read, or must not be under this unit; no row is looked at.

        Raises:
            IngestError: there is no axis, or an axis is named that does not exist.
            PrivacyError: the options would break the privacy promise.

        Privacy:
            Under `substitute` the number of trips is public, and dropping rows would change it,
            so "drop" is refused. Distinct trips may coincide "outside", so without a person
            column that says which to keep, a unit of several distinct trips is refused there,
            and for the same reason with points and time stamps.
        """
        names = [axis.name for axis in axes]
        if not names:
            raise IngestError("there is no axis to count by; give at least one hierarchy")
        if isinstance(self.unplaceable, Mapping):
            for name in self.unplaceable:
                if name not in names:
                    raise IngestError(
                        f"--unplaceable (unplaceable= in Python) names the axis {name!r}, but the "
                        f"axes are {', '.join(names)}"
                    )
        if self.person is not None and unit is None:
            raise PrivacyError(
                "a person column bounds contributions, but there is no privacy unit that says to "
                "how many trips; give the unit, or leave out the person column"
            )
        if self.policy == "drop" and (unit is None or unit.is_substitute):
            raise PrivacyError(
                "rows that cannot be placed must not be dropped under neighbours 'substitute', "
                "because that changes the number of trips, which is public; use --unplaceable "
                "outside or --neighbours add-remove (unplaceable='outside', "
                "neighbours='add-remove' in Python)"
            )
        if unit is None or not unit.distinct or unit.trips == 1 or self.person is not None:
            return
        if self.policy == "outside":
            raise PrivacyError(
                "trips to different unknown places become the same trip to 'outside', but the "
                "privacy unit says that nobody makes the same trip twice; leave out distinct, list "
                "the places in the areas table, or give the person column, so that no one's trip "
                "is kept twice"
            )
        if any(self.kind_of(name) != "code" for name in names):
            raise PrivacyError(
                "different points and times become the same trip between areas and hours, but the "
                "privacy unit says that nobody makes the same trip twice; leave out distinct, or "
                "give the person column, so that no one's trip is kept twice"
            )


def end_of(end: str, column: str, point: Sequence[str] | None) -> str | Sequence[str]:
    """The columns of one end of a trip, which is given by its code or as a point.

    Raises:
        IngestError: it is given both ways.
    """
    if point is None:
        return column
    if column != end:
        raise IngestError(
            f"the {end} is given twice, as column {column!r} and as a point; leave out one of them"
        )
    if isinstance(point, str):
        raise IngestError(
            f"the {end} point must be two columns, longitude and latitude, got {point!r}"
        )
    return tuple(point)


def may_be_empty(unit: Unit | None) -> bool:
    """Whether a table without trips is released like any other.

    Privacy:
        Unless the total is public, an empty table has neighbours that are not empty, and an
        error would distinguish them.
    """
    return unit is not None and not unit.root_is_public


# --- which column is which


def find_columns(
    table: "Source", columns: Columns, axes: Sequence[Axis]
) -> tuple[list[tuple[int, str]], str | None]:
    """Where the columns in use are in a table.

    Returns:
        Position and name of those of the axes, the count and the person, in this order; and the
        count column, None if every row is one trip.

    Raises:
        IngestError: a column is missing, occurs twice or is given two roles; or nothing was said
            of counts and a column that is not used looks like them.
    """
    uses = [
        (name, str(columns.kind_of(axis.name)))
        for axis in axes
        for name in columns.of_axis(axis.name)
    ]
    if columns.person is not None:
        uses.append((columns.person, "person"))
    _check_header(table, [*uses, *([(columns.count, COUNT)] if columns.count != AUTO else [])])
    count = _count_column(table, columns, [name for name, _ in uses])
    if count is not None:
        uses.insert(len(uses) - (columns.person is not None), (count, COUNT))
    taken: dict[str, str] = {}
    for name, role in uses:
        # Hour and weekday may come from one column of times.
        if name in taken and {taken[name], role} != {"hour", "weekday"}:
            raise IngestError(
                f"column {name!r} of {table.label} is given twice, for {taken[name]} and {role}; "
                "name another column for one of them"
            )
        taken[name] = role
    return [(table.position(name, *_ROLES[role]), name) for name, role in uses], count


def _check_header(table: "Source", uses: Sequence[tuple[str | None, str]]) -> None:
    """Refuse a CSV file or a sheet with none of the columns that are asked for.

    Its first line may be somebody's row, so nothing of that line is shown but what is spelt
    nearly like a name that is asked for.
    """
    asked = list(dict.fromkeys(name for name, _ in uses if name))
    if not table.has_header or not {*asked, COUNT}.isdisjoint(table.names):
        return
    near = [found for name in asked if (found := table.nearest(name, cutoff=0.8)) is not None]
    hint = (
        f"did you mean {near[0]!r}?"
        if near
        else f"if its first line is a header, say which columns they are: {_ENDS}; if it is not, "
        "add one"
    )
    raise IngestError(f"{table.label} has no column {' or '.join(map(repr, asked))}; {hint}")


def _count_column(table: "Source", columns: Columns, used: Sequence[str]) -> str | None:
    """The column with the number of trips in a row, or None if every row is one trip."""
    if columns.count != AUTO:
        return columns.count
    unused = [name for name in table.names if name not in used]
    if COUNT in unused:
        return COUNT
    for name in unused:
        if "".join(filter(str.isalpha, name.casefold())) in LIKE_COUNTS:
            raise IngestError(
                f"column {name!r} of {table.label} may hold counts; say which column counts trips "
                "(--count NAME, or count= in Python), or that every row is one trip (--count none, "
                "or count=None)"
            )
    return None
