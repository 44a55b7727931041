"""Files of polygons: GeoJSON, GeoPackage, shapefile, FlatGeobuf; also geopandas frames.

Such files are often downloaded from strangers. GDAL chooses a driver by what is in a file, whatever
its ending, and some drivers run programs: a file called `towns.geojson` may open any other file of
this machine, or a URL, and query it with SQL. The names of areas are published, and so would be the
answer. This module therefore decides what a file is, and lets no library decide it.

- GeoJSON is decoded as JSON. A coordinate system that must be fetched from a URL is refused.
- A GeoPackage is opened by SQLite, which may read plain tables and do nothing else.
- GDAL sees shapefiles and FlatGeobuf only, when they begin as these do. Both have a zero byte near
  their start, so a driver that looks for text finds none. They are copied to an empty folder first,
  so there are no other files beside them.
"""

import re
import shutil
import sqlite3
import warnings
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from inftda.areas.polygons import Geometries, in_degrees, library, shapely
from inftda.errors import HierarchyError

ENDINGS: Final = (".geojson", ".json", ".gpkg", ".shp", ".fgb")
#: Ending to GDAL's driver, to the first bytes, and to the files that belong to it.
_BY_GDAL: Final = {
    ".shp": ("ESRI Shapefile", b"\x00\x00\x27\x0a", (".shp", ".shx", ".dbf", ".prj", ".cpg")),
    ".fgb": ("FlatGeobuf", b"fgb\x03fgb", (".fgb",)),
}
#: Among so many bytes there is a zero, where text drivers stop looking.
_START: Final = 12
#: A coordinate system's name in GeoJSON: EPSG:3035, or urn:ogc:def:crs:EPSG::3035.
_URN: Final = re.compile(r"urn:(?:x-)?ogc:def:crs:(\w+):[\w.]*:(\w+)", re.IGNORECASE)


class Features(NamedTuple):
    """Geometries, and what is said of each.

    Attributes:
        label: what they come from, for messages.
        table: one row for each.
        geometries: of each, in degrees, None where there is none.
    """

    label: str
    table: pa.Table
    geometries: Geometries


def has_features(source: Any) -> bool:
    """Whether a source of areas has geometry, by its ending or its attributes."""
    if isinstance(source, str | Path):
        return str(source).lower().endswith(ENDINGS)
    return hasattr(source, "crs") and hasattr(source, "geometry")


def read_features(source: Any) -> Features:
    """Features of a file or of a geopandas frame.

    Raises:
        HierarchyError: it cannot be read, is empty, or is in an unknown coordinate system.
        MissingExtraError: it needs an optional library.
    """
    found = _read_file(Path(source)) if isinstance(source, str | Path) else _read_frame(source)
    if not len(found.geometries):
        raise HierarchyError(f"{found.label} has no areas in it; give one polygon or more")
    return found


def _read_frame(frame: Any) -> Features:
    label = "the frame of areas"
    rest = frame.drop(columns=frame.geometry.name)
    table = pa.Table.from_pandas(rest, preserve_index=any(rest.index.names))
    is_degrees = frame.crs is not None and frame.crs.to_epsg() == 4326
    crs = "EPSG:4326" if is_degrees else frame.crs and frame.crs.to_wkt()
    geometries = np.array(frame.geometry.array, object)
    return Features(label, table, in_degrees(geometries, crs, label))


def _read_file(path: Path) -> Features:
    label, ending = repr(path.name), path.suffix.lower()
    if not path.is_file():
        raise HierarchyError(f"there is no file {str(path)!r} (the areas); check the path")
    shapely()  # whoever lacks it should hear of that first
    try:
        if ending in _BY_GDAL:
            found, crs = _read_by_gdal(path)
        else:
            found, crs = (_read_geopackage if ending == ".gpkg" else _read_geojson)(path)
    except UnicodeDecodeError:
        raise HierarchyError(f"cannot read {label}: save it with texts in UTF-8") from None
    except (OSError, ValueError, RuntimeError, msgspec.MsgspecError, sqlite3.Error) as problem:
        raise HierarchyError(
            f"cannot read {label}: it is damaged, or not what its name says ({_line(problem)})"
        ) from None
    return Features(label, found.table, in_degrees(found.geometries, crs, label))


# --- GeoJSON


class _Feature(msgspec.Struct):
    type: str
    geometry: msgspec.Raw = msgspec.Raw(b"null")
    properties: dict[str, Any] | None = None
    id: Any = None


class _System(msgspec.Struct):
    type: str
    properties: dict[str, Any]


class _GeoJson(_Feature):
    features: list[_Feature] = []
    crs: _System | None = None


def _read_geojson(path: Path) -> tuple[Features, str]:
    text = path.read_text(encoding="utf-8-sig")
    whole = msgspec.json.decode(text, type=_GeoJson)
    if whole.type == "FeatureCollection":
        features = whole.features
    elif whole.type == "Feature":
        features = [whole]
    else:
        features = [_Feature("Feature", msgspec.Raw(text.encode()))]
    raw = [bytes(feature.geometry) for feature in features]
    geometries = shapely().from_geojson(
        np.array([None if each == b"null" else each.decode() for each in raw], object),
        on_invalid="ignore",
    )
    rows = [dict(feature.properties or {}) for feature in features]
    for row, feature in zip(rows, features, strict=True):
        if isinstance(feature.id, str):
            row.setdefault("id", feature.id)
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = [[row.get(name) for row in rows] for name in names]
    return _checked(path, names, columns, geometries, raw, b"null"), _geojson_crs(whole.crs)


def _geojson_crs(system: _System | None) -> str:
    if system is None:
        return "EPSG:4326"
    name = system.properties.get("name")
    if system.type != "name" or not isinstance(name, str):
        raise ValueError("its coordinate system is a link; name the system instead")
    by_urn = _URN.fullmatch(name)
    return ":".join(by_urn.groups()) if by_urn else name


# --- GeoPackage


def _read_geopackage(path: Path) -> tuple[Features, str | None]:
    if any(Path(f"{path}{ending}").exists() for ending in ("-wal", "-journal")):
        raise ValueError("another program has it open; close that program")
    # Immutable: nothing is written, not even a lock.
    address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as database:
        database.set_authorizer(_only_reads_tables)
        layers = database.execute(
            "SELECT c.table_name, g.column_name, s.organization, s.organization_coordsys_id, "
            "s.definition FROM gpkg_contents c JOIN gpkg_geometry_columns g USING (table_name) "
            "LEFT JOIN gpkg_spatial_ref_sys s ON s.srs_id = g.srs_id "
            "WHERE c.data_type = 'features'"
        ).fetchall()
        if len(layers) != 1:
            names = ", ".join(str(layer[0]) for layer in layers)
            raise ValueError(
                f"it has several layers ({names}); save one of them to another file"
                if names
                else "it has no layer with geometry"
            )
        table, column, organization, number, definition = layers[0]
        described = database.execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall()
        if any(hidden for *_, hidden in described):
            raise ValueError("it has computed columns; save it with plain ones")
        # SQLite numbers the rows of a layer by a key, which says nothing about areas.
        attributes = [
            name
            for _, name, kind, _, _, is_key, _ in described
            if name.lower() != column.lower() and not (is_key and kind.upper() == "INTEGER")
        ]
        listed = ", ".join(map(_quoted, [*attributes, column]))
        rows = database.execute(f"SELECT {listed} FROM {_quoted(table)}").fetchall()  # noqa: S608 - quoted
    *columns, blobs = zip(*rows, strict=True) if rows else [()] * (len(attributes) + 1)
    raw = [b"" if blob is None else _as_wkb(blob) for blob in blobs]
    geometries = shapely().from_wkb(
        np.array([each or None for each in raw], object), on_invalid="ignore"
    )
    is_known = str(organization).upper() in {"EPSG", "ESRI", "OGC"}
    crs = f"{organization}:{number}" if is_known else _defined(definition)
    return _checked(path, attributes, columns, geometries, raw, b""), crs


def _only_reads_tables(action: int, name: str | None, _: Any, __: Any, view: str | None) -> int:
    """Let SQLite read tables; views, functions, recursion and other databases are denied."""
    is_plain = action in {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ} and view is None
    is_listing = action == sqlite3.SQLITE_PRAGMA and name == "table_xinfo"
    return sqlite3.SQLITE_OK if is_plain or is_listing else sqlite3.SQLITE_DENY


def _quoted(name: str) -> str:
    return '"' + str(name).replace('"', '""') + '"'


def _as_wkb(blob: Any) -> bytes:
    """A geometry without the header that GeoPackage puts before it; nothing if it is empty."""
    if not isinstance(blob, bytes) or len(blob) < 8 or blob[:2] != b"GP":
        raise ValueError("a geometry is not one of GeoPackage")
    flags = blob[3]
    size_of_box = {0: 0, 1: 32, 2: 48, 3: 48, 4: 64}.get(flags >> 1 & 7, 0)
    return b"" if flags & 16 else blob[8 + size_of_box :]


def _defined(definition: Any) -> str | None:
    is_known = isinstance(definition, str) and definition.lower() != "undefined"
    return definition if is_known else None


# --- Shapefile, FlatGeobuf


def _read_by_gdal(path: Path) -> tuple[Features, str | None]:
    pyogrio = library("pyogrio", needed_for="shapefiles and FlatGeobuf")
    ending = path.suffix.lower()
    driver, first, belonging = _BY_GDAL[ending]
    with TemporaryDirectory(prefix="inftda-areas-") as folder:
        for beside in path.parent.iterdir():
            if beside.stem == path.stem and beside.suffix.lower() in belonging:
                shutil.copyfile(beside, Path(folder, f"areas{beside.suffix.lower()}"))
        copy = Path(folder, f"areas{ending}")
        with copy.open("rb") as file:
            start = file.read(_START)
        if not start.startswith(first) or 0 not in start:
            raise ValueError(f"it does not begin as {driver} does")
        with warnings.catch_warnings():
            # About parts that it leaves out or repairs; what is missing is noticed later.
            warnings.simplefilter("ignore", RuntimeWarning)
            if pyogrio.read_info(copy)["driver"] != driver:
                raise ValueError(f"GDAL does not take it for {driver}")
            meta, _, geometries, columns = pyogrio.raw.read(copy)
    if geometries is None:
        raise ValueError("it has no geometry; give polygons")
    names = [str(name) for name in meta["fields"]]
    found = shapely().from_wkb(np.array(geometries, object), on_invalid="ignore")
    values = [column.tolist() for column in columns]
    return _checked(path, names, values, found, list(geometries), None), meta["crs"]


# --- All of them


def _checked(  # noqa: PLR0913, PLR0917 - private
    path: Path,
    names: Sequence[str],
    columns: Sequence[Sequence[Any]],
    geometries: Geometries,
    raw: Sequence[Any],
    nothing: bytes | None,
) -> Features:
    """Features of these columns.

    Args:
        path: the file.
        names: of the columns.
        columns: one value for each feature.
        geometries: None where there is none, or where it could not be read.
        raw: as they are in the file.
        nothing: what stands in the file where there is no geometry.

    Raises:
        ValueError: a geometry could not be read.
    """
    for number, (geometry, text) in enumerate(zip(geometries, raw, strict=True), start=1):
        if geometry is None and text != nothing:
            raise ValueError(f"the geometry of feature {number} cannot be read")
    table = pa.table([_column(values) for values in columns], names=list(names))
    return Features(repr(path.name), table, np.array(geometries, object))


def _column(values: Sequence[Any]) -> pa.Array:
    """Values of one attribute; as text if they are not of one kind."""
    try:
        array = pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    return array.cast(pa.string()) if pa.types.is_null(array.type) else array


def _line(problem: Exception) -> str:
    return " ".join(str(problem).split())[:120]
