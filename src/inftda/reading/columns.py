"""Meaning of the columns of the confidential table, and the treatment of its rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args

from inftda.areas.build import ClockPart, build_tree, clock_hierarchy
from inftda.areas.reader import Levels
from inftda.errors import IngestError, PrivacyError, TreeError
from inftda.options import TABLE, Option, documented, names, pairs
from inftda.privacy.unit import Unit
from inftda.tree import DESTINATION, ORIGIN, Axis, Tree

if TYPE_CHECKING:
    from inftda.reading.sources import Source

Unplaceable = Literal["error", "outside", "drop"]
RepeatedRows = Literal["error", "add"]
#: Columns that an axis is read from: one of codes, two of degrees, or one of time stamps.
Kind = Literal["code", "point", "hour", "weekday"]

COUNT: Final = "count"
#: Take the column `count` if there is one, otherwise every row is one trip.
AUTO: Final = "auto"
#: Other usual names of a column of counts; a message mentions such a column.
LIKE_COUNTS: Final = frozenset({
    "cnt", "count", "counts", "flow", "flows", "n", "ntrips", "number", "obsvalue", "people",
    "total", "tripcount", "trips", "value", "weight",
})  # fmt: skip
#: Roles of columns, with the options that name them.
_ENDS: Final = "`origin=`, `destination=`"
_ROLES: Final[Mapping[str, tuple[str, str]]] = {
    "code": ("area codes", f"{_ENDS}, `axis=`"),
    "point": ("points", _ENDS),
    "hour": ("time stamps", "`hour=`"),
    "weekday": ("time stamps", "`weekday=`"),
    "count": ("counts", "`count=`"),
    "person": ("persons", "`person=`"),
}
#: The privacy unit where no guarantee is given: rows may be left out, and a table may be empty.
NO_GUARANTEE: Final = Unit("add-remove", 1)


def _column(text: str) -> str | tuple[str, ...]:
    return tuple(names(text)) if "," in text else text


def _count(text: str) -> str | None:
    return None if text == "none" else text


def _unplaceable(given: Sequence[str]) -> str | dict[str, str]:
    texts = [text for one in given for text in one.split(",")]
    if len(texts) == 1 and "=" not in texts[0]:
        return texts[0]
    if not all("=" in text for text in texts):
        raise ValueError("must be one of error, outside and drop, or AXIS=outside for some axes")
    return pairs(texts)


@documented
@dataclass(frozen=True, kw_only=True)
class Columns:
    """Columns to read from a table of trips or flows.

    Every other axis is a column of codes with the name of the axis. Codes are compared as text;
    whole numbers are written out, so codes with leading zeros must be text.

    >>> Columns(origin=("lon", "lat")).kind_of("origin")
    'point'
    """

    origin: Annotated[
        str | Sequence[str],
        Option(
            "Column where trips start; or two, longitude and latitude in degrees, which are placed "
            "into areas that have outlines or are H3 cells.",
            metavar="COLUMN|LON,LAT",
            parse=_column,
        ),
    ] = ORIGIN
    destination: Annotated[
        str | Sequence[str],
        Option("Column where trips end; or two.", metavar="COLUMN|LON,LAT", parse=_column),
    ] = DESTINATION
    count: Annotated[
        str | None,
        Option(
            "Column of counts; none if every row is one trip. By default the column count if there "
            "is one, and a table with another column that looks like counts is refused.",
            metavar="COLUMN|none",
            parse=_count,
        ),
    ] = AUTO
    person: Annotated[
        str | None,
        Option(
            "Column that identifies people: at most as many trips of a person are kept as the "
            "privacy unit allows. Without it, the custodian must ensure that.",
            metavar="COLUMN",
            panel=TABLE,
        ),
    ] = None
    hour: Annotated[
        str | None,
        Option(
            "Column of time stamps: count by hour as well, in parts of the day.",
            metavar="COLUMN",
            panel=TABLE,
        ),
    ] = None
    weekday: Annotated[
        str | None,
        Option("Column of time stamps: count by weekday as well.", metavar="COLUMN", panel=TABLE),
    ] = None
    unplaceable: Annotated[
        Unplaceable | Mapping[str, str] | None,
        Option(
            "Rows with an unknown or missing area: refuse the table, count them in an area called "
            "outside, or drop them; AXIS=outside where only some axes have such rows. Without an "
            "axis, outside is for all but hours and weekdays. By default error, and where a "
            "release is evaluated as the release.",
            metavar="error|outside|drop|AXIS=outside",
            parse=_unplaceable,
            panel=TABLE,
            is_repeated=True,
        ),
    ] = None

    repeated_rows: Annotated[
        RepeatedRows,
        Option(
            "Rows with the same areas and the same count as another row, in a table with a column "
            "of counts: refuse the table, or add the counts up.",
            metavar="error|add",
            panel=TABLE,
        ),
    ] = "error"

    def __post_init__(self) -> None:
        if self.repeated_rows not in get_args(RepeatedRows):
            raise IngestError(f"`repeated_rows=` must be error or add, got {self.repeated_rows!r}")
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
                        "for one axis `unplaceable=` is error or outside, "
                        f"got {way!r}; rows are dropped whatever axis they cannot be placed by"
                    )
        elif self.unplaceable not in {None, *get_args(Unplaceable)}:
            raise IngestError(
                f"`unplaceable=` must be one of {', '.join(get_args(Unplaceable))}, or "
                f"AXIS=outside, got {self.unplaceable!r}"
            )

    def tree(
        self,
        areas: Any = None,
        *,
        axis: Mapping[str, Any] | None = None,
        levels: Levels | None = None,
        order: Sequence[str] | None = None,
        unit: Unit | None = None,
    ) -> Tree:
        """Build the public tree of a table with these columns.

        An axis that a person has one trip for each area of comes first: below it, one person
        changes each number by one.
        """
        given = dict(axis or {})
        clocks: dict[ClockPart, str | None] = {"hour": self.hour, "weekday": self.weekday}
        for part, column in clocks.items():
            if column is not None and part in given:
                raise TreeError(
                    f"the axis {part!r} is given twice, by its hierarchy and by `{part}=`; leave "
                    "out one of them"
                )
            if column is not None:
                given[part] = clock_hierarchy(part)
        first = None if unit is None else unit.once_per
        outside = {name for name in (ORIGIN, DESTINATION, *given) if self.has_outside(name)}
        return build_tree(
            areas, axis=given, levels=levels, order=order, outside=outside, first=first
        )

    def of_axis(self, axis: str) -> tuple[str, ...]:
        """Names of the columns that an axis is read from."""
        has_option = axis in {ORIGIN, DESTINATION, *get_args(ClockPart)}
        given = getattr(self, axis) if has_option else None
        if given is None or isinstance(given, str):
            return (axis if given is None else given,)
        return tuple(given)

    def kind_of(self, axis: str) -> Kind:
        """Kind of the columns of an axis: codes, points or time stamps."""
        if axis == "hour" and self.hour is not None:
            return "hour"
        if axis == "weekday" and self.weekday is not None:
            return "weekday"
        return "point" if len(self.of_axis(axis)) > 1 else "code"

    @property
    def policy(self) -> Unplaceable:
        """Policy for rows that cannot be placed on some axis."""
        if not isinstance(self.unplaceable, Mapping):
            return self.unplaceable or "error"
        return "outside" if "outside" in self.unplaceable.values() else "error"

    def has_outside(self, axis: str) -> bool:
        """Return whether rows that cannot be placed by this axis go to its area `outside`.

        Every hour exists, so noise in an outside hour would only add false trips: an axis of time
        stamps has such an area only if it is named.
        """
        if isinstance(self.unplaceable, Mapping):
            return self.unplaceable.get(axis) == "outside"
        return self.unplaceable == "outside" and self.kind_of(axis) in {"code", "point"}

    def check(self, axes: Sequence[Axis], unit: Unit | None) -> None:
        """Refuse columns and policies that contradict each other or the unit; no row is read.

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
                        f"`unplaceable=` names the axis {name!r}, but the "
                        f"axes are {', '.join(names)}"
                    )
        if self.policy == "outside" and not any(map(self.has_outside, names)):
            raise IngestError(
                f"`unplaceable='outside'` is not for hours and weekdays, and the axes are "
                f"{', '.join(names)}; name the axis: `unplaceable='{names[0]}=outside'`"
            )
        if self.person is not None and unit is None:
            raise PrivacyError(
                "a person column bounds contributions, but there is no privacy unit that says to "
                "how many trips; give the unit, or leave out the person column"
            )
        if self.policy == "drop" and (unit is None or not unit.may_drop_rows):
            raise PrivacyError(
                "rows that cannot be placed must not be dropped under neighbours 'substitute', "
                "because that changes the number of trips, which is public; use "
                "`unplaceable='outside'` or `neighbours='add-remove'`"
            )
        if unit is not None and self.person is None:
            self._check_distinct(unit, names)

    def _check_distinct(self, unit: Unit, names: Sequence[str]) -> None:
        """Refuse options that may make distinct trips equal where repeated ones are not dropped."""
        once = unit.once_per
        remedy = "give the person column, so that no one's trip is kept twice"
        if unit.is_broken_by([name for name in names if self.has_outside(name)]):
            what = f"two in one {once}" if once else "the same trip twice"
            raise PrivacyError(
                "trips to different unknown places become the same trip to 'outside', but the "
                f"privacy unit says that nobody makes {what}; list the places in the areas table, "
                f"leave out {'`once_per=`' if once else 'distinct'}, or {remedy}"
            )
        if unit.forbids_repeats and any(self.kind_of(name) != "code" for name in names):
            raise PrivacyError(
                "different points and times become the same trip between areas and hours, but the "
                "privacy unit says that nobody makes the same trip twice; leave out distinct, or "
                f"{remedy}"
            )


#: The default columns.
COLUMNS: Final = Columns()


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
    """Position and name of the columns of the axes, the count and the person, in this order.

    Also return the count column; None if every row is one trip.
    """
    if table.header:
        _check_matrix(table, columns, axes)
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


def _check_matrix(table: "Source", columns: Columns, axes: Sequence[Axis]) -> None:
    """Refuse a matrix without a header of areas.

    Its first line may then hold counts, so no number is shown that is not the code of an area.
    """
    if columns.count is None:
        raise IngestError(f"the cells of {table.label}, a matrix, are counts; leave out `count=`")
    for axis in axes:
        if axis.name != table.across:
            continue
        known = {*axis.hierarchy.codes(axis.hierarchy.depth).to_pylist()}
        unknown = {*table.header} - known
        is_number = any(name.lstrip("-").isdigit() for name in unknown)
        if len(unknown) == len(table.header) or (columns.policy == "error" and is_number):
            raise IngestError(
                f"the header of {table.label} has names that are no areas of the finest level, and "
                "are not shown here because they may be counts; a matrix has the codes of its "
                f"{table.across}s there, with their leading zeros, and `skip_rows=` says how many "
                "lines of titles are above it"
            )


def _check_header(table: "Source", uses: Sequence[tuple[str | None, str]]) -> None:
    """Refuse a CSV file or a sheet with none of the columns that are asked for.

    Its first line may be a person's row, so the message shows only those of its texts that resemble
    a requested name.
    """
    asked = list(dict.fromkeys(name for name, _ in uses if name))
    if not table.has_header or not {*asked, COUNT}.isdisjoint(table.names):
        return
    near = [found for name in asked if (found := table.nearest(name, cutoff=0.8)) is not None]
    hint = (
        f"did you mean {near[0]!r}?"
        if near
        else f"if its first line is a header, say which columns they are: {_ENDS}; if titles are "
        "above the header, how many lines they take: `skip_rows=`; if there is none, add one"
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
                "(`count='NAME'`), or that every row is one trip (`count=None`)"
            )
    return None
