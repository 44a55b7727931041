"""CSV: a file for each level, for totals and for the areas, with a schema for every column.

`od` is the same for the R packages od and stplanr: origins and destinations only, and zones.
"""

from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from inftda.exports.contents import (
    ExportData,
    LevelTable,
    Resource,
    file_part,
    resource_entry,
)
from inftda.publication.folder import axis_entries
from inftda.publication.query import GRADE, HIGH, LISTED, LOW
from inftda.publication.trust import GRADE_RULE, GRADES
from inftda.tables import disarmed, disarmed_table

#: What columns mean; numbers and ends of intervals are explained where they come from.
_MEANINGS: Final = {
    "flow": "Published number; a cell that is not listed is 0 here, and not known to be empty",
    "estimate": "Estimated number; a cell that is not listed is 0 here, and not known to be empty",
    LISTED: "Sum of the flows that are listed; the others are too small",
    LOW: "Lower end of an interval; {intervals}",
    HIGH: "Upper end of an interval; {intervals}",
    GRADE: f"How far the interval goes from the number: {GRADE_RULE}",
}


def write_csv(data: ExportData, folder: Path) -> list[Resource]:
    """Write `flows-LEVEL.csv` for each level, totals across the tree, and the areas."""
    written = [
        _write_level(
            data,
            folder / f"flows-{numbers.level.file}.csv",
            numbers,
            f"Numbers at level {numbers.level.name}",
        )
        for numbers in data.numbers()
    ]
    for axis, totals in data.totals():
        name, level = data.tree.axes[axis].name, totals.level
        file = f"totals-{level.file}-{file_part(axis + 1, name)}.csv"
        title = f"Totals by {name} at level {level.name}"
        written.append(_write_level(data, folder / file, totals, title))
    return written + _write_areas(data, folder)


def write_od(data: ExportData, folder: Path) -> list[Resource]:
    """Write `flows-LEVEL.csv` (origin, destination, number), zones if places are known, areas."""
    written = []
    for numbers in data.numbers():
        first = [data.tree.axes[axis].name for axis in data.ends]
        file, title = f"flows-{numbers.level.file}.csv", f"Flows at level {numbers.level.name}"
        write_table(data, folder / file, numbers.table.select([*first, *numbers.measures]))
        written.append(resource_entry(file, title, **numbers.facts))
        if data.shares_areas and data.places.has(data.ends):
            file = f"zones-{numbers.level.file}.csv"
            places = located(data, data.ends[0], numbers.level.depths[data.ends[0]])
            write_table(data, folder / file, places)
            title = f"Places of the areas of level {numbers.level.name}"
            written.append(resource_entry(file, title))
    return written + _write_areas(data, folder)


def located(data: ExportData, axis: int, depth: int) -> pa.Table:
    """Code, name, lon and lat of the areas of a level that have a place."""
    lon, lat = (np.round(degrees, 6) for degrees in data.places.at(axis, depth))
    codes = data.tree.axes[axis].hierarchy.codes(depth)
    table = pa.table({"code": codes, "name": data.places.name(axis, depth), "lon": lon, "lat": lat})
    return table.filter(~np.isnan(lon + lat))


def write_table(data: ExportData, path: Path, table: pa.Table) -> None:
    """Write a table; by default nothing in it is run by a spreadsheet."""
    pa_csv.write_csv(table if data.keep_formulas else disarmed_table(table), path)


def _write_level(data: ExportData, path: Path, numbers: LevelTable, title: str) -> Resource:
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
    """Write a table with a schema, and say what is in it."""
    write_table(data, path, table)
    shown = str if data.keep_formulas else disarmed
    schema = {
        "fields": [{"name": shown(name), **field} for name, field in fields.items()],
        "primaryKey": [shown(name) for name in key],
    }
    kind = {"profile": "tabular-data-resource", "encoding": "utf-8", "schema": schema}
    return resource_entry(path.name, title, **kind, **facts)


def _field(data: ExportData, numbers: LevelTable, name: str) -> dict[str, Any]:
    """What a column of numbers or codes is."""
    if name not in numbers.measures:
        return _code(numbers.level.shown[name])
    meaning = _MEANINGS[name].format(intervals=numbers.facts["intervals"])
    known: dict[str, Any] = {"required": not numbers.table.column(name).null_count}
    if name == GRADE:
        known["enum"] = list(GRADES)
        return {"type": "string", "description": meaning, "constraints": known}
    return {"type": "integer", "unit": data.counts, "description": meaning, "constraints": known}


def _code(level: str) -> dict[str, Any]:
    required = {"required": True}
    return {"type": "string", "description": f"Code of the {level}", "constraints": required}


def _write_areas(data: ExportData, folder: Path) -> list[Resource]:
    """Write the areas of each axis: codes of all levels, name and place where they are known."""
    written: dict[str, Resource] = {}
    for number, axis in enumerate(data.tree.axes):
        file = axis_entries(data.tree)[number].file
        if file in written:
            continue
        hierarchy = axis.hierarchy
        table = hierarchy.to_table()
        fields = {level: _code(level) for level in hierarchy.level_names}
        if (number, hierarchy.depth) in data.places.names and "name" not in fields:
            table = table.append_column("name", data.places.name(number, hierarchy.depth))
            fields["name"] = {"type": "string", "description": "Name of the finest area"}
        if data.places.has([number]) and not {"lon", "lat"} & {*fields}:
            for name, values in zip(("lon", "lat"), data.places.finest[number], strict=True):
                degrees = pa.array(np.round(values, 6), mask=np.isnan(values))
                table = table.append_column(name, degrees)
                fields[name] = {"type": "number", "unit": "degrees", "description": "WGS 84"}
        written[file] = _write(
            data,
            folder / file,
            table,
            "Areas, one row for each of the finest",
            fields=fields,
            key=[hierarchy.level_names[-1]],
        )
    return list(written.values())
