"""GeoPackage: a file with a layer of desire lines and one of areas for each level.

It is a SQLite database with some tables of its own (OGC 12-128), written by the library that
comes with Python. Every GIS opens it.
"""

import sqlite3
import struct
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Final

import numpy as np

from inftda.areas.wkb import Ends, points_or_lines, rings
from inftda.exports.contents import Contents, Numbers
from inftda.exports.lines import lines_of
from inftda.exports.package import Resource, file_of
from inftda.publication.query import quoted
from inftda.tree import DESTINATION, ORIGIN

FILE: Final = "flows.gpkg"
#: "GPKG" and the version of the standard, 1.3.1.
_APPLICATION, _VERSION = 0x47504B47, 10301
_WGS84 = 4326
#: What stands before a geometry: that it is one, in degrees, without a box around it.
_HEAD = struct.pack("<2sBBi", b"GP", 0, 1, _WGS84)
_AXES = 'AXIS["Latitude",NORTH],AXIS["Longitude",EAST]'
_DEGREES = (
    'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563,'
    'AUTHORITY["EPSG","7030"]],AUTHORITY["EPSG","6326"]],PRIMEM["Greenwich",0,'
    'AUTHORITY["EPSG","8901"]],UNIT["degree",0.0174532925199433,AUTHORITY["EPSG","9122"]],'
    f'{_AXES},AUTHORITY["EPSG","4326"]]'
)
#: The tables that every GeoPackage has.
_SCHEMA = """
CREATE TABLE gpkg_spatial_ref_sys (
  srs_name TEXT NOT NULL, srs_id INTEGER PRIMARY KEY, organization TEXT NOT NULL,
  organization_coordsys_id INTEGER NOT NULL, definition TEXT NOT NULL, description TEXT);
CREATE TABLE gpkg_contents (
  table_name TEXT NOT NULL PRIMARY KEY, data_type TEXT NOT NULL, identifier TEXT UNIQUE,
  description TEXT DEFAULT '',
  last_change DATETIME NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  min_x DOUBLE, min_y DOUBLE, max_x DOUBLE, max_y DOUBLE,
  srs_id INTEGER REFERENCES gpkg_spatial_ref_sys(srs_id));
CREATE TABLE gpkg_geometry_columns (
  table_name TEXT NOT NULL UNIQUE REFERENCES gpkg_contents(table_name), column_name TEXT NOT NULL,
  geometry_type_name TEXT NOT NULL, srs_id INTEGER NOT NULL, z TINYINT NOT NULL,
  m TINYINT NOT NULL, PRIMARY KEY (table_name, column_name));
"""
_SYSTEMS = (
    ("Undefined cartesian SRS", -1, "NONE", -1, "undefined", None),
    ("Undefined geographic SRS", 0, "NONE", 0, "undefined", None),
    ("WGS 84 geodetic", _WGS84, "EPSG", _WGS84, _DEGREES, "longitude and latitude"),
)


def write_geopackage(contents: Contents, folder: Path) -> list[Resource]:
    """Write `flows.gpkg`."""
    contents.require_places("geopackage")
    facts = {}
    # Whatever is half-written is in a private folder: no journal is needed.
    with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = OFF")
        database.execute(f"PRAGMA application_id = {_APPLICATION}")
        database.execute(f"PRAGMA user_version = {_VERSION}")
        database.executescript(_SCHEMA)
        for system in _SYSTEMS:
            database.execute("INSERT INTO gpkg_spatial_ref_sys VALUES (?,?,?,?,?,?)", system)
        for numbers in contents.numbers():
            database.execute("BEGIN")
            left_out = _write_lines(database, contents, numbers)
            _write_areas(database, contents, numbers)
            database.execute("COMMIT")
            facts[numbers.level.name] = {**contents.facts(numbers), **left_out}
    return [file_of(FILE, "gpkg", "Desire lines and places of areas by level", levels=facts)]


def _write_lines(
    database: sqlite3.Connection, contents: Contents, numbers: Numbers
) -> dict[str, str]:
    lines = lines_of(contents, numbers)
    columns: dict[str, list[object]] = {}
    for end, axis, areas in zip((ORIGIN, DESTINATION), contents.ends, lines.areas, strict=True):
        depth = numbers.level.depths[axis]
        listed = {
            end: contents.tree.axes[axis].hierarchy.codes(depth),
            f"{end}_name": contents.places.name(axis, depth),
        }
        for name, texts in listed.items():
            columns[name] = texts.take(areas).to_pylist()
    for name in numbers.measures:
        columns[name] = lines.table.column(name).to_pylist()
    layer = _Layer(f"flows_{numbers.level.file}", "LINESTRING", contents, numbers)
    shapes = points_or_lines((lines.start, lines.end), head=_HEAD)
    layer.write(database, columns, shapes, _box((lines.start, lines.end)))
    return lines.facts


def _write_areas(database: sqlite3.Connection, contents: Contents, numbers: Numbers) -> None:
    """Areas of a level; those of origins and destinations apart where they differ."""
    ends = ["areas"] if contents.shares_areas else [f"{ORIGIN}s", f"{DESTINATION}s"]
    for what, axis in zip(ends, contents.ends, strict=False):
        depth = numbers.level.depths[axis]
        hierarchy = contents.tree.axes[axis].hierarchy
        shapes: Iterable[bytes]
        outlines = hierarchy.places.outlines
        if depth == hierarchy.depth and outlines is not None:
            known, kind = np.flatnonzero(outlines.is_valid()), "GEOMETRY"
            shapes = [_HEAD + outline for outline in outlines.take(known).to_pylist()]
            corners = np.concatenate([ring for one in shapes for ring in rings(one[len(_HEAD) :])])
            places = corners[:, 0], corners[:, 1]
        else:
            lon, lat = contents.places.at(axis, depth)
            known, kind = np.flatnonzero(~np.isnan(lon + lat)), "POINT"
            places = lon[known], lat[known]
            shapes = points_or_lines((places,), head=_HEAD)
        names = contents.places.name(axis, depth)
        columns = {
            "code": hierarchy.codes(depth).take(known).to_pylist(),
            "name": names.take(known).to_pylist(),
        }
        layer = _Layer(f"{what}_{numbers.level.file}", kind, contents, numbers)
        layer.write(database, columns, shapes, _box((places,)))


class _Layer:
    """One table of features."""

    def __init__(self, name: str, kind: str, contents: Contents, numbers: Numbers) -> None:
        self._name, self._kind = name, kind
        self._numbers = set(numbers.measures)
        said = contents.words(numbers)
        self._description = f"{contents.description} Intervals (low to high): {said}."

    def write(
        self,
        database: sqlite3.Connection,
        columns: dict[str, list[object]],
        shapes: Iterable[bytes],
        box: list[float | None],
    ) -> None:
        """Make the table, fill it, and say what is in it."""
        kinds = [
            f"{quoted(name)} {'INTEGER' if name in self._numbers else 'TEXT'}" for name in columns
        ]
        database.execute(
            f"CREATE TABLE {quoted(self._name)} (fid INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, "
            f"geom {self._kind}, {', '.join(kinds)})"
        )
        database.execute(
            "INSERT INTO gpkg_contents (table_name, data_type, identifier, description, min_x, "
            "min_y, max_x, max_y, srs_id) VALUES (?,?,?,?,?,?,?,?,?)",
            (self._name, "features", self._name, self._description, *box, _WGS84),
        )
        database.execute(
            "INSERT INTO gpkg_geometry_columns VALUES (?,?,?,?,0,0)",
            (self._name, "geom", self._kind, _WGS84),
        )
        names = ", ".join(map(quoted, columns))
        places = ",".join("?" * (1 + len(columns)))
        database.executemany(
            f"INSERT INTO {quoted(self._name)} (geom, {names}) VALUES ({places})",  # noqa: S608 - names are quoted
            zip(shapes, *columns.values(), strict=True),
        )


def _box(ends: tuple[Ends, ...]) -> list[float | None]:
    """West, south, east and north of all places; nothing if there are none."""
    if not len(ends[0][0]):
        return [None] * 4
    sides = [np.concatenate([end[side] for end in ends]) for side in (0, 1)]
    return [float(edge(side)) for edge in (np.min, np.max) for side in sides]
