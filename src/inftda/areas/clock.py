"""Ready public hierarchies of the clock: hours in parts of the day, days in the week.

Their codes sort as time goes by.
"""

from typing import Final, Literal

import pyarrow as pa

from inftda.tree.hierarchy import Hierarchy
from inftda.tree.places import Places

#: Parts of a time stamp that can be an axis, and its name.
ClockPart = Literal["hour", "weekday"]
WEEKDAYS: Final = ("1-Mon", "2-Tue", "3-Wed", "4-Thu", "5-Fri", "6-Sat", "7-Sun")
_PARTS: Final = {"00-05": "night", "06-11": "morning", "12-17": "afternoon", "18-23": "evening"}
_HOURS_OF_PART, _WORKDAYS = 6, 5


def clock_hierarchy(part: ClockPart) -> Hierarchy:
    """Part of day > hour, or kind of day > weekday.

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
