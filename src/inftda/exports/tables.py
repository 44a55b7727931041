"""CSV: a file for each level, for totals and for the areas, with a schema for every column.

`od` is the same for the R packages od and stplanr: origins and destinations only, and zones.
"""

from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from inftda.errors import ReleaseError
from inftda.exports.contents import (
    HIGH,
    LOW,
    ExportData,
    LevelTable,
    Resource,
    file_part,
    resource_entry,
)
from inftda.publication.folder import axis_entries
from inftda.publication.release import Release
from inftda.tables import disarmed, disarmed_table

#: Columns of a file of totals: type and meaning.
_TOTALS: Final = {
    "area": ("string", "Code of the area"),
    "released": ("integer", "Sum of the published numbers"),
    "measured": ("integer", "The total as it was measured, with noise"),
    "sigma": ("number", "Standard deviation of that noise"),
    "low": ("integer", "Lower end of the interval that holds the true total"),
    "high": ("integer", "Upper end of that interval"),
    "max_error": ("integer", "Bound on the error of the sum of published numbers, 95 %"),
}


def write_csv(data: ExportData, folder: Path) -> list[Resource]:
    """Write `flows-LEVEL.csv` for each level, totals that were measured, and the areas."""
    written = [
        _write(
            data,
            folder / f"flows-{numbers.level.file}.csv",
            numbers.table,
            f"Numbers at level {numbers.level.name}",
            fields={name: _field(data, numbers, name) for name in numbers.table.column_names},
            key=[name for name in numbers.table.column_names if name not in numbers.measures],
            **numbers.facts,
        )
        for numbers in data.numbers()
    ]
    return written + _write_totals(data, folder) + _write_areas(data, folder)


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
    if name in {LOW, HIGH}:
        end = "Lower" if name == LOW else "Upper"
        meaning = f"{end} end of an interval; {numbers.facts['intervals']}"
    else:
        known = "Estimated" if name == "estimate" else "Published"
        meaning = f"{known} number; a cell that is not listed is 0 here, and not known to be empty"
    return {
        "type": "integer",
        "unit": "trips" if data.tree.is_od else "counted",
        "description": meaning,
        "constraints": {"required": not numbers.table.column(name).null_count},
    }


def _code(level: str) -> dict[str, Any]:
    required = {"required": True}
    return {"type": "string", "description": f"Code of the {level}", "constraints": required}


def _write_totals(data: ExportData, folder: Path) -> list[Resource]:
    """Totals of areas that were measured by themselves, with intervals that need no simulation."""
    if not isinstance(data.source, Release) or not data.source.has_totals:
        return []
    written: dict[tuple[int, int], Resource] = {}
    for level in data.levels:
        for number, axis in enumerate(data.tree.axes):
            depth = level.depths[number]
            if (number, depth) in written:  # an axis with fewer levels than others
                continue
            name = axis.hierarchy.level_name(depth)
            try:
                table = data.source.total_intervals(axis.name, name)
            except ReleaseError:  # not measured
                continue
            written[number, depth] = _write(
                data,
                folder / f"totals-{level.file}-{file_part(number + 1, axis.name)}.csv",
                table,
                f"Totals by {axis.name} at level {name}",
                fields={
                    column: {"type": kind, "description": meaning}
                    for column, (kind, meaning) in _TOTALS.items()
                },
                key=["area"],
                intervals="95 %, for each total by itself: measured with the noise that is stated",
            )
    return list(written.values())


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
