"""Which column is which: found by name, and no column with two roles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from inftda.errors import IngestError
from inftda.reading.sources import Input, Use
from inftda.reading.spec import AUTO, AxisColumns, Clock, Point, TableSpec, columns_of

if TYPE_CHECKING:
    from inftda.reading.sources import Purpose

COUNT: Final = "count"
#: The letters of other names that counts go by: such a column is not passed over in silence.
LIKE_COUNTS: Final = frozenset({
    "cnt", "count", "counts", "flow", "flows", "n", "ntrips", "number", "obsvalue", "people",
    "total", "tripcount", "trips", "value", "weight",
})  # fmt: skip
_ENDS: Final = "--origin, --destination (origin=, destination= in Python)"
_POINTS: Final = "--origin-point, --destination-point (origin_point=, destination_point= in Python)"


@dataclass(frozen=True, slots=True)
class Roles:
    """The columns in use.

    Attributes:
        areas: those of each axis.
        count: the number of trips in a row; None if every row is one trip.
        person: what identifies persons, if anything.
    """

    areas: tuple[tuple[Use, ...], ...]
    count: Use | None
    person: Use | None

    @property
    def uses(self) -> list[Use]:
        """All of them."""
        axes = [use for axis in self.areas for use in axis]
        return [use for use in (*axes, self.count, self.person) if use is not None]

    @property
    def count_name(self) -> str | None:
        """The count column as it is written."""
        return None if self.count is None else self.count.name

    def describe(self) -> str:
        """What a row of the table was taken for, in words."""
        name = self.count_name
        return "one row is one trip" if name is None else f"trips by column {name!r}"


def choose_roles(table: Input, spec: TableSpec) -> Roles:
    """Find the columns that the specification names.

    Raises:
        IngestError: a column is missing, occurs twice or is given two roles, or nothing was
            said of counts and a column that is not used looks like them.
    """
    _check_header(table, spec)
    count = _count_column(table, spec)
    _check_roles(table, spec, count)
    areas = tuple(_axis_uses(table, axis, i) for i, (axis, _) in enumerate(spec.axes))
    return Roles(areas, _find(table, count, "count"), _find(table, spec.person, "person"))


def _axis_uses(table: Input, axis: AxisColumns, number: int) -> tuple[Use, ...]:
    """The columns of one axis."""
    purpose: Purpose = "codes"
    role, option = "area codes", f"say which columns they are: {_ENDS}."
    if isinstance(axis, Point):
        purpose, role, option = "degrees", "points", f"say which columns they are: {_POINTS}."
    elif isinstance(axis, Clock):
        purpose, role = "times", "time stamps"
        option = f"say which column it is: --{axis.part}-of ({axis.part}_of= in Python)."
    return tuple(
        Use(table.position(name, role=role, option=option), name, f"raw_{number}{mark}", purpose)
        for name, mark in zip(columns_of(axis), ("", "_lat"), strict=False)
    )


def _find(table: Input, name: str | None, role: str) -> Use | None:
    if name is None:
        return None
    option = f"say which column it is: --{role} ({role}= in Python)."
    position = table.position(name, role=f"{role}s", option=option)
    return Use(position, name, f"raw_{role}", "counts" if role == "count" else "codes")


def _check_header(table: Input, spec: TableSpec) -> None:
    """Refuse a CSV file or a sheet with none of the columns that are asked for.

    Its first line may be somebody's row, so nothing of that line is shown but what is spelt
    nearly like a name that is asked for.
    """
    given = [name for name in (spec.count, spec.person) if name is not None and name != AUTO]
    asked = [*spec.names, *given]
    if table.kind not in {"csv", "xlsx"} or not {*asked, COUNT}.isdisjoint(table.names):
        return
    near = [found for name in asked if (found := table.nearest(name, cutoff=0.8)) is not None]
    hint = (
        f"did you mean {near[0]!r}?"
        if near
        else f"if its first line is a header, say which columns they are: {_ENDS}; if it is not, "
        "add one"
    )
    raise IngestError(f"{table.label} has no column {' or '.join(map(repr, asked))}; {hint}")


def _count_column(table: Input, spec: TableSpec) -> str | None:
    """The column with the number of trips in a row, or None if every row is one trip."""
    if spec.count != AUTO:
        return spec.count
    unused = [name for name in table.names if name not in (*spec.names, spec.person)]
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


def _check_roles(table: Input, spec: TableSpec, count: str | None) -> None:
    taken: dict[str, str] = {}
    # Hour and weekday may come from one column of time stamps.
    clocks = dict.fromkeys(axis.column for axis, _ in spec.axes if isinstance(axis, Clock))
    others = [axis for axis, _ in spec.axes if not isinstance(axis, Clock)]
    roles: list[tuple[str | None, str]] = [
        *((name, "axis") for axis in others for name in columns_of(axis)),
        *((name, "time") for name in clocks),
        (count, "count"),
        (spec.person, "person"),
    ]
    for name, role in roles:
        if name is None:
            continue
        if name in taken:
            raise IngestError(
                f"column {name!r} of {table.label} is given twice, for {taken[name]} and {role}; "
                "name another column for one of them"
            )
        taken[name] = role
