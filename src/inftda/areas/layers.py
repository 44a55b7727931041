"""Files and frames with geometry: GeoJSON, GeoPackage, shapefile, geopandas."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from inftda.areas.geometry import Geometries, in_degrees, library, shapely
from inftda.errors import HierarchyError
from inftda.tables import CSV_ENDINGS, PARQUET_ENDINGS

ENDINGS: Final = (".geojson", ".json", ".gpkg", ".shp", ".fgb")


@dataclass(frozen=True)
class Layer:
    """Features: what is said of each, and its geometry.

    Attributes:
        label: what they come from, for messages.
        table: one row for each.
        geometries: of each, in degrees, None where there is none.
    """

    label: str
    table: pa.Table
    geometries: Geometries


def is_layer(source: Any) -> bool:
    """Whether a source of areas has geometry of its own."""
    if isinstance(source, str | Path):
        return str(source).lower().endswith(ENDINGS)
    return hasattr(source, "crs") and hasattr(source, "geometry")


def read_layer(source: Any) -> Layer:
    """Features of a file or of a geopandas frame.

    Raises:
        HierarchyError: it cannot be read, is empty, or is in an unknown coordinate system.
        MissingExtraError: it needs an optional library.
    """
    layer = _read_file(Path(source)) if isinstance(source, str | Path) else _read_frame(source)
    if not len(layer.geometries):
        raise HierarchyError(f"{layer.label} has no areas in it; give one polygon or more")
    return layer


def as_outline(source: Any) -> Any:
    """One public outline, of all polygons in a file, or of one geometry.

    Raises:
        HierarchyError: it has anything but polygons, such as the points of trips.
    """
    if isinstance(source, str | Path):
        return _read_outline(Path(source))
    return _polygons(np.array([source], object), "the outline")


def _read_outline(path: Path) -> Any:
    name = path.name.lower()
    if name.endswith((*CSV_ENDINGS, *PARQUET_ENDINGS)):
        raise HierarchyError(
            f"{path.name!r} is a table, and perhaps one of trips; {_WHY} (GeoJSON, GeoPackage, "
            "shapefile)"
        )
    if not name.endswith(ENDINGS):
        raise HierarchyError(
            f"{path.name!r} has an unknown ending; an outline ends in {', '.join(ENDINGS)}"
        )
    layer = read_layer(path)
    return _polygons(layer.geometries, layer.label)


def _polygons(geometries: Geometries, label: str) -> Any:
    kinds = {getattr(geometry, "geom_type", "nothing") for geometry in geometries}
    if not kinds <= {"Polygon", "MultiPolygon"}:
        raise HierarchyError(f"{label} has {', '.join(sorted(kinds))} in it; {_WHY}")
    # Outlines are drawn by hand, and no point is placed by them: what is broken is repaired.
    library_ = shapely()
    whole = library_.union_all(library_.make_valid(library_.force_2d(geometries)))
    # A polygon that collapses to a line is repaired to one.
    parts = library_.get_parts(library_.get_parts([whole]))
    outline = library_.union_all(parts[library_.area(parts) > 0])
    if outline.is_empty:
        raise HierarchyError(f"the polygons in {label} enclose nothing; {_WHY}")
    return outline


_WHY: Final = (
    "cells must cover an outline that is known without the trips, never the points that were "
    "seen, because which cells there are is published: give polygons"
)


def _read_file(path: Path) -> Layer:
    label = repr(path.name)
    if not path.is_file():
        raise HierarchyError(f"there is no file {str(path)!r} (the areas); check the path")
    pyogrio = library("pyogrio", needed_for="files of polygons")
    try:
        with warnings.catch_warnings():
            # About parts that it leaves out or repairs; what is missing is noticed later.
            warnings.simplefilter("ignore", RuntimeWarning)
            layers = [str(name) for name, kind in pyogrio.list_layers(path) if kind is not None]
            if len(layers) > 1:
                raise HierarchyError(
                    f"{label} has several layers ({', '.join(layers)}); save the one to use to a "
                    "file of its own"
                )
            meta, _, geometry, columns = pyogrio.raw.read(path)
    except (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError) as problem:
        raise HierarchyError(
            f"cannot read {label}: it is damaged, or not what its name says ({_line(problem)})"
        ) from None
    except UnicodeDecodeError:
        raise HierarchyError(f"cannot read {label}: save it with texts in UTF-8") from None
    if geometry is None:
        raise HierarchyError(f"{label} has no geometry in it; give polygons")
    names = [str(name) for name in meta["fields"]]
    table = pa.table([_column(column) for column in columns], names=names)
    geometries = shapely().from_wkb(geometry, on_invalid="ignore")
    geometries = np.array(geometries, object)
    return Layer(label, table, in_degrees(geometries, meta["crs"], label))


def _read_frame(frame: Any) -> Layer:
    label = "the frame of areas"
    geometries = np.array(frame.geometry.array, object)
    rest = frame.drop(columns=frame.geometry.name)
    table = pa.Table.from_pandas(rest, preserve_index=any(rest.index.names))
    crs = None if frame.crs is None else frame.crs.to_wkt()
    if frame.crs is not None and frame.crs.to_epsg() == 4326:
        crs = "EPSG:4326"
    return Layer(label, table, in_degrees(geometries, crs, label))


def _column(values: Any) -> pa.Array:
    """A column of attributes; a library for files without types may give objects."""
    if values.dtype.kind == "O":
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    return pa.array(values, from_pandas=True)


def _line(problem: Exception) -> str:
    return " ".join(str(problem).split())[:120]
