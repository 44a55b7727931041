"""CSV: a file for each level, for totals and for the areas, with a schema for every column."""

from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from inftda.errors import ReleaseError
from inftda.exports.contents import Contents, Numbers
from inftda.exports.intervals import HIGH, LOW
from inftda.exports.levels import file_part
from inftda.exports.package import Resource, file_of
from inftda.hierarchy import Hierarchy
from inftda.publication.folder import areas_files
from inftda.publication.release import Release
from inftda.publication.spreadsheet import disarmed, disarmed_table
from inftda.tables import as_arrow

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


def write_csv(contents: Contents, folder: Path) -> list[Resource]:
    """Write `flows-LEVEL.csv` for each level, and the areas."""
    written = []
    for numbers in contents.numbers():
        file = f"flows-{numbers.level.file}.csv"
        write_table(folder / file, numbers.table, contents)
        schema = _schema(contents, numbers)
        written.append(
            file_of(
                file,
                "csv",
                f"Numbers at level {numbers.level.name}",
                profile="tabular-data-resource",
                encoding="utf-8",
                schema=schema if contents.keep_formulas else _disarmed(schema),
                **contents.facts(numbers),
            )
        )
    return written + _write_totals(contents, folder) + write_areas(contents, folder)


def _write_totals(contents: Contents, folder: Path) -> list[Resource]:
    """Totals of areas that were measured by themselves, with intervals that need no simulation."""
    source = contents.intervals.source
    if not isinstance(source, Release) or source.totals is None:
        return []
    written: dict[tuple[int, int], Resource] = {}
    for level in contents.levels:
        for number, axis in enumerate(contents.tree.axes):
            depth = level.depths[number]
            if (number, depth) in written:  # an axis with fewer levels than others
                continue
            try:
                table = source.total_intervals(axis.name, axis.hierarchy.level_name(depth))
            except ReleaseError:  # not measured
                continue
            file = f"totals-{level.file}-{file_part(number + 1, axis.name)}.csv"
            write_table(folder / file, table, contents)
            fields = [
                {"name": name, "type": kind, "description": words}
                for name, (kind, words) in _TOTALS.items()
            ]
            written[number, depth] = file_of(
                file,
                "csv",
                f"Totals by {axis.name} at level {axis.hierarchy.level_name(depth)}",
                profile="tabular-data-resource",
                encoding="utf-8",
                schema={"fields": fields, "primaryKey": ["area"]},
                intervals="95 %, for each total by itself: measured with the noise that is stated",
            )
    return list(written.values())


def write_areas(contents: Contents, folder: Path) -> list[Resource]:
    """Write the areas of each axis: codes of all levels, name and place where they are known."""
    written: dict[str, Resource] = {}
    for number, axis in enumerate(contents.tree.axes):
        file = areas_files(contents.tree)[axis.name]
        if file in written:
            continue
        table = areas_table(contents, number)
        write_table(folder / file, table, contents)
        fields = [_area_field(axis.hierarchy, name) for name in table.column_names]
        schema = {"fields": fields, "primaryKey": [axis.hierarchy.level_names[-1]]}
        written[file] = file_of(
            file,
            "csv",
            "Areas, one row for each of the finest",
            profile="tabular-data-resource",
            encoding="utf-8",
            schema=schema if contents.keep_formulas else _disarmed(schema),
        )
    return list(written.values())


def areas_table(contents: Contents, axis: int) -> pa.Table:
    """Codes of all levels of an axis, one row for each finest area; name, lon and lat if known."""
    hierarchy = contents.tree.axes[axis].hierarchy
    table = hierarchy.to_table()
    if (axis, hierarchy.depth) in contents.places.names and "name" not in table.column_names:
        names = contents.places.name(axis, hierarchy.depth)
        table = table.append_column("name", names)
    if contents.places.has([axis]) and not {"lon", "lat"} & {*table.column_names}:
        for name, values in zip(("lon", "lat"), contents.places.finest[axis], strict=True):
            degrees = pa.array(np.round(values, 6), mask=np.isnan(values))
            table = table.append_column(name, degrees)
    return table


def write_table(path: Path, table: pa.Table, contents: Contents) -> None:
    """Write a table; by default nothing in it is run by a spreadsheet."""
    pa_csv.write_csv(table if contents.keep_formulas else disarmed_table(table), path)


def level_codes(hierarchy: Hierarchy, level: int) -> pa.Table:
    """Codes of the areas of a level, with a number for each, counting from 1."""
    n = hierarchy.n_areas(level)
    numbers = as_arrow(np.arange(1, n + 1, dtype=np.int64))
    return pa.table({"number": numbers, hierarchy.level_name(level): hierarchy.codes(level)})


def _schema(contents: Contents, numbers: Numbers) -> dict[str, Any]:
    unit = "trips" if contents.tree.is_od else "counted"
    fields: list[dict[str, Any]] = []
    for name in numbers.table.column_names:
        if name in numbers.measures:
            fields.append(
                {
                    "name": name,
                    "type": "integer",
                    "unit": unit,
                    "description": _meaning(contents, numbers, name),
                    "constraints": {"required": not numbers.table.column(name).null_count},
                }
            )
        else:
            fields.append(
                {
                    "name": name,
                    "type": "string",
                    "description": f"Code of the {numbers.level.shown[name]}",
                    "constraints": {"required": True},
                }
            )
    codes = [name for name in numbers.table.column_names if name not in numbers.measures]
    return {"fields": fields, "primaryKey": codes}


def _meaning(contents: Contents, numbers: Numbers, name: str) -> str:
    if name in {LOW, HIGH}:
        end = "Lower" if name == LOW else "Upper"
        return f"{end} end of an interval; {contents.words(numbers)}"
    known = "Estimated" if name == "estimate" else "Published"
    return f"{known} number; a cell that is not listed is 0 here, and not known to be empty"


def _area_field(hierarchy: Hierarchy, name: str) -> dict[str, Any]:
    if name in hierarchy.level_names:
        required = {"constraints": {"required": True}}
        return {"name": name, "type": "string", "description": f"Code of the {name}", **required}
    if name == "name":
        return {"name": name, "type": "string", "description": "Name of the finest area"}
    return {"name": name, "type": "number", "unit": "degrees", "description": "WGS 84"}


def _disarmed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a table whose column names no spreadsheet runs."""
    fields = [{**field, "name": disarmed(field["name"])} for field in schema["fields"]]
    return {"fields": fields, "primaryKey": [disarmed(name) for name in schema["primaryKey"]]}
