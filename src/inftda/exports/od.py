"""Tables for the R packages od and stplanr: flows long or wide, and zones to join them to."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from inftda.exports.contents import Contents, Numbers
from inftda.exports.csv_files import write_areas, write_table
from inftda.exports.package import Resource, file_of
from inftda.exports.texts import degrees, joined, quoted_texts, write_rows
from inftda.publication.spreadsheet import disarmed

#: Cells of a wide table: more than 2,000 areas in a row are for no spreadsheet and slow in R.
MAX_WIDE = 4_000_000


def write_od(contents: Contents, folder: Path) -> list[Resource]:
    """Write `flows-LEVEL.csv`, long (origin, destination, number) or wide, and zones if known.

    Raises:
        InftdaError: a wide table would be too large.
    """
    if contents.wide:
        contents.check_cells(MAX_WIDE, "a wide table", "leave out --wide")
    written = []
    for numbers in contents.numbers():
        file = f"flows-{numbers.level.file}.csv"
        if contents.wide:
            _write_wide(contents, numbers, folder / file)
        else:
            first = [contents.tree.axes[axis].name for axis in contents.ends]
            table = numbers.table.select([*first, *numbers.measures])
            write_table(folder / file, table, contents)
        form = "wide" if contents.wide else "long"
        title = f"Flows at level {numbers.level.name}, {form}"
        written.append(file_of(file, "csv", title, **contents.facts(numbers)))
        if contents.shares_areas and contents.places.has(contents.ends):
            written.append(_zones(contents, numbers, folder))
    return written + write_areas(contents, folder)


def _write_wide(contents: Contents, numbers: Numbers, path: Path) -> None:
    """A row for each origin, a column for each destination."""
    codes = []
    for axis in contents.ends:
        listed = contents.tree.axes[axis].hierarchy.codes(numbers.level.depths[axis])
        codes.append(
            listed
            if contents.keep_formulas
            else pa.array([disarmed(code) for code in listed.to_pylist()])
        )
    matrix = np.zeros((len(codes[0]), len(codes[1])), np.int64)
    origin, destination = (numbers.areas(contents.tree, axis) for axis in contents.ends)
    matrix[origin, destination] = numbers.table.column(numbers.value).to_numpy()
    columns = [pa.array(matrix[:, column]) for column in range(matrix.shape[1])]
    table = pa.Table.from_arrays([codes[0], *columns], ["origin", *codes[1].to_pylist()])
    pa_csv.write_csv(table, path)


def _zones(contents: Contents, numbers: Numbers, folder: Path) -> Resource:
    """Places of the areas of a level; the first property is the code, as od takes it."""
    axis = contents.ends[0]
    depth = numbers.level.depths[axis]
    codes = contents.tree.axes[axis].hierarchy.codes(depth)
    if not contents.keep_formulas:  # as they are in the flows, or they would not join
        codes = pa.array([disarmed(code) for code in codes.to_pylist()], pa.string())
    lon, lat = contents.places.at(axis, depth)
    known = np.flatnonzero(~np.isnan(lon + lat)).astype(np.int32)
    rows = joined(
        '{"type":"Feature","properties":{"code":',
        quoted_texts(codes, known),
        ',"name":',
        quoted_texts(contents.places.name(axis, depth), known),
        '},"geometry":{"type":"Point","coordinates":[',
        degrees(lon[known]),
        ",",
        degrees(lat[known]),
        "]}}",
    )
    file = f"zones-{numbers.level.file}.geojson"
    name = json.dumps(f"{contents.title}: {numbers.level.name}", ensure_ascii=False)
    before = f'{{"type":"FeatureCollection","name":{name},"features":['
    write_rows(folder / file, before, rows, "\n]}\n")
    return file_of(file, "geojson", f"Places of the areas of level {numbers.level.name}")
