"""CSV: files for spreadsheets, with a schema for every column, and two files for flowmap.blue."""

from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from inftda.errors import InftdaError
from inftda.exports.contents import (
    INTERVALS,
    ExportData,
    ExportTable,
    Resource,
    file_part,
    resource_entry,
)
from inftda.publication.folder import axis_entries
from inftda.publication.query import GRADE, HIGH, LISTED, LOW
from inftda.publication.reliability import GRADE_RULE, GRADES
from inftda.util.tabular import as_arrow, disarmed, disarmed_table

#: Descriptions of columns; those of numbers and ends of intervals depend on the source.
_MEANINGS: Final = {
    "flow": "Published number; a missing cell counts as 0 here and is not necessarily zero",
    "estimate": "Estimated number; a missing cell counts as 0 here and is not necessarily zero",
    LISTED: "Sum of the flows that are listed; the others are too small",
    LOW: f"Lower end of an interval. {INTERVALS}",
    HIGH: f"Upper end of an interval. {INTERVALS}",
    GRADE: f"Distance of the interval from the number: {GRADE_RULE}",
}
#: Flows that a browser holds.
MAX_FLOWS: Final = 2_000_000
_DEGREES: Final = {"type": "number", "unit": "degrees", "description": "WGS 84"}


def write_csv(data: ExportData, folder: Path) -> list[Resource]:
    """Write `flows-LEVEL.csv` for each level, totals of the areas of each axis, zones and areas.

    Zones are the areas of a level with their places, where places of both ends are known.
    """
    written = []
    for numbers in data.numbers():
        path, title = folder / f"flows-{numbers.file}.csv", f"Numbers at level {numbers.name}"
        written.append(_write_level(data, path, numbers, title))
        if data.zones and data.places.has(data.ends):
            written += _write_zones(data, folder, numbers)
    for axis, totals in data.totals():
        name = data.tree.axes[axis].name
        file = f"totals-{totals.file}-{file_part(axis + 1, name)}.csv"
        title = f"Totals by {name} at level {totals.name}"
        written.append(_write_level(data, folder / file, totals, title))
    return written + _write_areas(data, folder)


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


def zones_file(numbers: ExportTable, end: str) -> str:
    """Name of the file with the zones of a level."""
    return f"zones-{numbers.file}{f'-{end}' if end else ''}.csv"


def _write_zones(data: ExportData, folder: Path, numbers: ExportTable) -> list[Resource]:
    """Write code, name and place of the areas of a level, for each end with areas of its own."""
    title, written = f"Places of the areas of level {numbers.name}", []
    for end, axis in data.zones.items():
        level = numbers.level_name(data.tree.axes[axis].name)
        fields = {"code": _code(level), "name": _name(level), "lon": _DEGREES, "lat": _DEGREES}
        table, path = located(data, axis, numbers.depths[axis]), folder / zones_file(numbers, end)
        written.append(_write(data, path, table, title, fields=fields, key=["code"]))
    return written


def located(data: ExportData, axis: int, depth: int) -> pa.Table:
    """Code, name, lon and lat of the areas of a level that have a place."""
    lon, lat = (np.round(degrees, 6) for degrees in data.places.at(axis, depth))
    codes = data.tree.axes[axis].hierarchy.codes(depth)
    table = pa.table({"code": codes, "name": data.places.name(axis, depth), "lon": lon, "lat": lat})
    return table.filter(~np.isnan(lon + lat))


def write_table(data: ExportData, path: Path, table: pa.Table) -> None:
    """Write a table; by default nothing in it is run by a spreadsheet."""
    pa_csv.write_csv(table if data.keep_formulas else disarmed_table(table), path)


def _write_level(data: ExportData, path: Path, numbers: ExportTable, title: str) -> Resource:
    """Write the numbers of a level."""
    columns = numbers.table.column_names
    fields = {name: _field(data, numbers, name) for name in columns}
    key = [name for name in columns if name not in numbers.measures]
    return _write(data, path, numbers.table, title, fields=fields, key=key, **numbers.facts)


def _write(  # noqa: PLR0913 - what a file is, and what is said of it
    data: ExportData,
    path: Path,
    table: pa.Table,
    title: str,
    *,
    fields: dict[str, dict[str, Any]],
    key: list[str],
    **facts: Any,
) -> Resource:
    """Write a table and return its entry, with a schema."""
    write_table(data, path, table)
    shown = str if data.keep_formulas else disarmed
    schema = {
        "fields": [{"name": shown(name), **field} for name, field in fields.items()],
        "primaryKey": [shown(name) for name in key],
    }
    kind = {"profile": "tabular-data-resource", "encoding": "utf-8", "schema": schema}
    return resource_entry(path.name, title, **kind, **facts)


def _field(data: ExportData, numbers: ExportTable, name: str) -> dict[str, Any]:
    """Schema of a column of numbers or codes."""
    if name not in numbers.measures:
        return _code(numbers.level_name(name))
    meaning = _MEANINGS[name]
    known: dict[str, Any] = {"required": not numbers.table.column(name).null_count}
    if name == GRADE:
        known["enum"] = list(GRADES)
        return {"type": "string", "description": meaning, "constraints": known}
    return {"type": "integer", "unit": data.counts, "description": meaning, "constraints": known}


def _code(level: str) -> dict[str, Any]:
    required = {"required": True}
    return {"type": "string", "description": f"Code of the {level}", "constraints": required}


def _name(level: str) -> dict[str, Any]:
    return {"type": "string", "description": f"Name of the {level}"}


def _write_areas(data: ExportData, folder: Path) -> list[Resource]:
    """Write the areas of each axis: codes and names of all levels, and places, where known."""
    written: dict[str, Resource] = {}
    for number, axis in enumerate(data.tree.axes):
        file = axis_entries(data.tree)[number].file
        if file in written:
            continue
        hierarchy = axis.hierarchy
        table = hierarchy.to_table()
        fields = {level: _code(level) for level in hierarchy.level_names}
        for depth, level in enumerate(hierarchy.level_names, start=1):
            column = "name" if depth == hierarchy.depth else f"{level}_name"
            if (number, depth) not in data.places.names or column in fields:
                continue
            above = as_arrow(hierarchy.ancestor(hierarchy.depth, depth))
            table = table.append_column(column, data.places.name(number, depth).take(above))
            fields[column] = _name(level)
        if data.places.has([number]) and not {"lon", "lat"} & {*fields}:
            for name, values in zip(("lon", "lat"), data.places.finest[number], strict=True):
                degrees = pa.array(np.round(values, 6), mask=np.isnan(values))
                table = table.append_column(name, degrees)
                fields[name] = _DEGREES
        written[file] = _write(
            data,
            folder / file,
            table,
            "Areas, one row for each of the finest",
            fields=fields,
            key=[hierarchy.level_names[-1]],
        )
    return list(written.values())
