"""Build the public tree of a release from the descriptions of its areas, and of the clock."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa

from inftda.areas.reader import Levels, read_areas
from inftda.errors import TreeError
from inftda.tree import DESTINATION, ORIGIN, Axis, Tree
from inftda.tree.hierarchy import Hierarchy
from inftda.tree.places import Places
from inftda.tree.tree import interleave

#: Parts of a time stamp that can be an axis, and its name.
ClockPart = Literal["hour", "weekday"]
WEEKDAYS: Final = ("1-Mon", "2-Tue", "3-Wed", "4-Thu", "5-Fri", "6-Sat", "7-Sun")
_PARTS: Final = {"00-05": "night", "06-11": "morning", "12-17": "afternoon", "18-23": "evening"}
_HOURS_OF_PART, _WORKDAYS = 6, 5


def default_order(axes: Sequence[Axis], first: str | None = None) -> list[str]:
    """Destination and origin in turn, then every other axis; the axis `first` comes before all."""
    by_name = {axis.name: axis for axis in axes}
    begin = [by_name.pop(first)] if first in by_name else []
    ends = [by_name.pop(name) for name in (DESTINATION, ORIGIN) if name in by_name]
    order = [axis.name for axis in begin for _ in range(axis.hierarchy.depth)]
    order += interleave(ends) if ends else []
    return order + [name for name, axis in by_name.items() for _ in range(axis.hierarchy.depth)]


def build_tree(  # noqa: PLR0913 - one keyword for each thing that shapes a tree
    areas: Any = None,
    *,
    axis: Mapping[str, Any] | None = None,
    levels: Levels | None = None,
    order: Sequence[str] | None = None,
    outside: bool | Collection[str] = False,
    first: str | None = None,
) -> Tree:
    """Build the public tree from the arguments of `release`.

    `outside` tells whether, or on which axes, there is an area for rows that cannot be placed.
    Without an order, the axis called `first` is refined before all others.

    Raises:
        TreeError: no hierarchy is given for an end, or the order does not fit.
    """
    given = {} if areas is None else {ORIGIN: areas, DESTINATION: areas}
    given |= dict(axis or {})
    ends = {ORIGIN, DESTINATION} & given.keys()
    if len(ends) == 1:
        other = ({ORIGIN, DESTINATION} - ends).pop()
        raise TreeError(f"there is no hierarchy for the {other}; give areas for both ends")
    if not given:
        raise TreeError(
            "there is no hierarchy; give areas by `areas=`, or by `axis=` for other tables"
        )
    # Origins and destinations mostly have the same areas, which are then read once.
    read: dict[tuple[Any, bool], Hierarchy] = {}
    axes = []
    for name, source in given.items():
        is_outside = outside if isinstance(outside, bool) else name in outside
        key = (str(source) if isinstance(source, str | Path) else id(source), is_outside)
        if key not in read:
            found = read_areas(source, levels=levels if name in ends else None)
            read[key] = found.with_outside() if is_outside else found
        axes.append(Axis(name, read[key]))
    if order is not None and sorted(order) == sorted(axis.name for axis in axes):
        by_name = {axis.name: axis for axis in axes}
        order = interleave([by_name[name] for name in order])
    return Tree.build(axes, order or default_order(axes, first))


def clock_hierarchy(part: ClockPart) -> Hierarchy:
    """Part of day > hour, or kind of day > weekday; codes sort as time goes by.

    >>> clock_hierarchy("hour")
    Hierarchy(4 part_of_day, 24 hour)
    >>> clock_hierarchy("weekday").codes(1).to_pylist()
    ['Mon-Fri', 'Sat-Sun']
    """
    if part == "weekday":
        kinds = ["Mon-Fri" if day < _WORKDAYS else "Sat-Sun" for day in range(len(WEEKDAYS))]
        return Hierarchy.read({"kind_of_day": kinds, "weekday": list(WEEKDAYS)})
    parts = [code for code in _PARTS for _ in range(_HOURS_OF_PART)]
    hours = Hierarchy.read({"part_of_day": parts, "hour": [f"{hour:02d}" for hour in range(24)]})
    return hours.with_places(Places(names={"part_of_day": pa.array(list(_PARTS.values()))}))
