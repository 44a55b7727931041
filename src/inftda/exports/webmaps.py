"""CSV files for flowmap.blue: locations and flows of the finest level."""

from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from inftda.errors import InftdaError
from inftda.exports.contents import ExportData, Resource, resource_entry
from inftda.exports.spreadsheets import located, write_table

#: Flows that a browser holds.
MAX_FLOWS: Final = 2_000_000


def write_flowmap(data: ExportData, folder: Path) -> list[Resource]:
    """Write `locations.csv` and `flows.csv`, from the finest level that was chosen."""
    data.require_places("flowmap")
    level, depths = list(data.levels.items())[-1]
    numbers = data.numbers_at(level, depths)
    if numbers.table.num_rows > MAX_FLOWS:
        raise InftdaError(
            f"level {level!r} has {numbers.table.num_rows:,} flows, more than the {MAX_FLOWS:,} "
            "that a browser holds; choose a coarser one with `level=`"
        )
    # Different areas at both ends may have the same codes.
    prefixes = {axis: f"{end}:" if end else "" for end, axis in data.zones.items()}
    locations = []
    for axis, prefix in prefixes.items():
        places = located(data, axis, depths[axis])
        ids = pc.binary_join_element_wise(prefix, places["code"], "")
        locations.append(places.select(["name", "lat", "lon"]).add_column(0, "id", ids))
    flows = {}
    for name, axis in zip(("origin", "dest"), data.ends, strict=True):
        codes = numbers.table.column(data.tree.axes[axis].name).cast(pa.string())
        flows[name] = pc.binary_join_element_wise(prefixes.get(axis, ""), codes, "")
    value, *ends = numbers.measures
    flows["count"] = numbers.table.column(value)
    tables = {
        "locations": pa.concat_tables(locations),
        "flows": pa.table(flows | {name: numbers.table.column(name) for name in ends}),
    }
    written = []
    for name, table in tables.items():
        write_table(data, folder / f"{name}.csv", table)
        title = f"{name.capitalize()} of level {level}: {', '.join(table.column_names)}"
        written.append(resource_entry(f"{name}.csv", title, **numbers.facts))
    return written
