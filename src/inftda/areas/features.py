"""Files of polygons: GeoJSON, GeoPackage, shapefile, FlatGeobuf; also geopandas frames.

Such files may be hostile. GDAL chooses a driver by the content of a file, not by its ending, and
some drivers run programs: a file called `towns.geojson` may open any other file of this machine, or
a URL, and query it with SQL. The answer would be published as the names of areas. Therefore this
module determines the format of a file, and no library does.

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
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
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
#: Exceptions of libraries for a damaged file; pyogrio should not raise the last two, but does.
_UNREADABLE: Final = (
    OSError, ValueError, RuntimeError, msgspec.MsgspecError, sqlite3.Error, LookupError, NameError,
)  # fmt: skip
#: A coordinate system's name in GeoJSON: EPSG:3035, or urn:ogc:def:crs:EPSG::3035.
_URN: Final = re.compile(r"urn:(?:x-)?ogc:def:crs:(\w+):[\w.]*:(\w+)", re.IGNORECASE)


class Features(NamedTuple):
    """Features: their source for messages, attributes, geometries in degrees or None."""

    label: str
    table: pa.Table
    geometries: Geometries


class _Layer(NamedTuple):
    """Content of a file: attributes by name, geometries, and their coordinate system."""

    columns: dict[str, Sequence[Any]]
    geometries: Geometries
    crs: str | None


def has_features(source: Any) -> bool:
    """Whether a source of areas has geometry, by its ending or its attributes."""
    if isinstance(source, str | Path):
        return str(source).lower().endswith(ENDINGS)
    return hasattr(source, "crs") and hasattr(source, "geometry")


def read_features(source: Any) -> Features:
    """Features of a file or of a geopandas frame."""
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
    shapely()  # a user who lacks it should hear of that first
    try:
        if ending in _BY_GDAL:
            found = _read_by_gdal(path)
        else:
            found = (_read_geopackage if ending == ".gpkg" else _read_geojson)(path)
    except UnicodeDecodeError:
        raise HierarchyError(f"cannot read {label}: save it with texts in UTF-8") from None
    except _UNREADABLE as problem:
        reason = " ".join(str(problem).split())[:120]
        raise HierarchyError(
            f"cannot read {label}: it is damaged, or not what its name says ({reason})"
        ) from None
    table = pa.table({name: _column(values) for name, values in found.columns.items()})
    return Features(label, table, in_degrees(found.geometries, found.crs, label))


def _column(values: Sequence[Any]) -> pa.Array:
    """Values of one attribute; as text if they are not of one kind."""
    try:
        array = pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    return array.cast(pa.string()) if pa.types.is_null(array.type) else array


def _decoded(decode: Callable[..., Any], raw: Sequence[Any]) -> Geometries:
    """Geometries from texts or bytes, None where there is none."""
    found = np.array(decode(np.array(raw, object), on_invalid="ignore"), object)
    for number, (geometry, given) in enumerate(zip(found, raw, strict=True), start=1):
        if geometry is None and given is not None:
            raise ValueError(f"the geometry of feature {number} cannot be read")
    return found


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


def _read_geojson(path: Path) -> _Layer:
    text = path.read_text(encoding="utf-8-sig")
    whole = msgspec.json.decode(text, type=_GeoJson)
    if whole.type == "FeatureCollection":
        features = whole.features
    elif whole.type == "Feature":
        features = [whole]
    else:
        features = [_Feature("Feature", msgspec.Raw(text.encode()))]
    rows = [dict(feature.properties or {}) for feature in features]
    for row, feature in zip(rows, features, strict=True):
        if isinstance(feature.id, str):
            row.setdefault("id", feature.id)
    names = dict.fromkeys(name for row in rows for name in row)
    raw = [bytes(feature.geometry).decode() for feature in features]
    return _Layer(
        {name: [row.get(name) for row in rows] for name in names},
        _decoded(_from_geojson, [None if each == "null" else each for each in raw]),
        _geojson_crs(whole.crs),
    )


def _from_geojson(texts: Geometries, **options: Any) -> Geometries:
    """Geometries; rings that rounding has left open by a hair are closed."""
    found: Geometries = shapely().from_geojson(texts, **options)
    shape = library("shapely.geometry", needed_for="polygons").shape
    for number, text in enumerate(texts):
        if text is not None and found[number] is None:
            with suppress(*_UNREADABLE, TypeError, AttributeError, shapely().errors.ShapelyError):
                found[number] = shape(msgspec.json.decode(text))
    return found


def _geojson_crs(system: _System | None) -> str:
    if system is None:
        return "EPSG:4326"
    name = system.properties.get("name")
    if system.type != "name" or not isinstance(name, str):
        raise ValueError("its coordinate system is a link; name the system instead")
    by_urn = _URN.fullmatch(name)
    return ":".join(by_urn.groups()) if by_urn else name


# --- GeoPackage


def _read_geopackage(path: Path) -> _Layer:
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
        table, column, organization, number, definition = map(str, layers[0])
        described = database.execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall()
        if any(hidden for *_, hidden in described):
            raise ValueError("it has computed columns; save it with plain ones")
        # SQLite numbers the rows of a layer by a key that is independent of the areas.
        attributes = [
            name
            for _, name, kind, _, _, is_key, _ in described
            if name.lower() != column.lower() and not (is_key and kind.upper() == "INTEGER")
        ]
        listed = ", ".join(map(_quoted, [*attributes, column]))
        rows = database.execute(f"SELECT {listed} FROM {_quoted(table)}").fetchall()  # noqa: S608 - quoted
    *columns, blobs = zip(*rows, strict=True) if rows else [()] * (len(attributes) + 1)
    if organization.upper() in {"EPSG", "ESRI", "OGC"}:
        crs: str | None = f"{organization}:{number}"
    else:
        crs = None if definition.lower() in {"none", "undefined"} else definition
    geometries = _decoded(shapely().from_wkb, [blob and _as_wkb(blob) for blob in blobs])
    return _Layer(dict(zip(attributes, columns, strict=True)), geometries, crs)


def _only_reads_tables(action: int, name: str | None, _: Any, __: Any, view: str | None) -> int:
    """Let SQLite read tables; views, functions, recursion and other databases are denied."""
    is_plain = action in {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ} and view is None
    is_listing = action == sqlite3.SQLITE_PRAGMA and name == "table_xinfo"
    return sqlite3.SQLITE_OK if is_plain or is_listing else sqlite3.SQLITE_DENY


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _as_wkb(blob: Any) -> bytes | None:
    """A geometry without the header that GeoPackage puts before it; None if it is empty."""
    if not isinstance(blob, bytes) or len(blob) < 8 or blob[:2] != b"GP":
        raise ValueError("a geometry is not one of GeoPackage")
    flags = blob[3]
    size_of_box = {0: 0, 1: 32, 2: 48, 3: 48, 4: 64}.get(flags >> 1 & 7, 0)
    return None if flags & 16 else blob[8 + size_of_box :]


# --- Shapefile, FlatGeobuf


def _read_by_gdal(path: Path) -> _Layer:
    pyogrio = library("pyogrio", needed_for="shapefiles and FlatGeobuf")
    ending = path.suffix.lower()
    driver, first, belonging = _BY_GDAL[ending]
    with TemporaryDirectory(prefix="inftda-areas-") as folder:
        for beside in path.parent.iterdir():
            if beside.stem == path.stem and beside.suffix.lower() in belonging:
                if beside.is_symlink() and not path.is_symlink():
                    raise ValueError(f"{beside.name} is a link; put the file itself there")
                shutil.copyfile(beside, Path(folder, f"areas{beside.suffix.lower()}"))
        copy = Path(folder, f"areas{ending}")
        with copy.open("rb") as file:
            start = file.read(_START)
        if not start.startswith(first) or 0 not in start:
            raise ValueError(f"it does not begin as {driver} does")
        with warnings.catch_warnings():
            # Warnings about parts that it leaves out or repairs; missing areas are noticed later.
            warnings.simplefilter("ignore", RuntimeWarning)
            if pyogrio.read_info(copy)["driver"] != driver:
                raise ValueError(f"GDAL does not take it for {driver}")
            meta, _, geometries, columns = pyogrio.raw.read(copy)
    if geometries is None:
        raise ValueError("it has no geometry; give polygons")
    values = (column.tolist() for column in columns)
    return _Layer(
        dict(zip(map(str, meta["fields"]), values, strict=True)),
        _decoded(shapely().from_wkb, geometries.tolist()),
        meta["crs"],
    )
