"""GeoPackage and GeoJSON: desire lines from the place of the origin to that of the destination."""

from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.areas.polygons import library, shapely
from inftda.exports.contents import ExportData, ExportTable, Resource, resource_entry
from inftda.exports.spreadsheets import located
from inftda.publication.query import lines
from inftda.tree import DESTINATION, ORIGIN

FILE: Final = "flows.gpkg"


def write_geojson(data: ExportData, folder: Path) -> list[Resource]:
    """Write `flows-LEVEL.geojson`: both ends with their names, the number and its interval."""
    data.require_places("geojson")
    written = []
    for numbers in data.numbers():
        table, facts = _desire_lines(data, numbers)
        file = f"flows-{numbers.file}.geojson"
        options = {"DESCRIPTION": _about(data, numbers), "COORDINATE_PRECISION": "6"}
        title = f"{data.title}: {numbers.name}"
        _write(folder / file, "GeoJSON", title, table, "LineString", options)
        title = f"Desire lines at level {numbers.name}"
        written.append(resource_entry(file, title, **facts))
    return written


def write_geopackage(data: ExportData, folder: Path) -> list[Resource]:
    """Write `flows.gpkg`: for each level a layer of desire lines, and one of areas.

    Areas are outlines at the finest level, if they are known, and points otherwise. Origins and
    destinations with different areas have layers of their own.
    """
    data.require_places("geopackage")
    levels = {}
    for numbers in data.numbers():
        options = {"DESCRIPTION": _about(data, numbers)}
        table, levels[numbers.name] = _desire_lines(data, numbers)
        layer = f"flows_{numbers.file}"
        _write(folder / FILE, "GPKG", layer, table, "LineString", options)
        for end, axis in data.zones.items():
            table, kind = _areas(data, axis, numbers.depths[axis])
            layer = f"{f'{end}s' if end else 'areas'}_{numbers.file}"
            _write(folder / FILE, "GPKG", layer, table, kind, options)
    return [resource_entry(FILE, "Desire lines and places of areas by level", levels=levels)]


def _desire_lines(data: ExportData, numbers: ExportTable) -> tuple[pa.Table, dict[str, Any]]:
    """The numbers of a level as lines; trips inside one area are lines of no length."""
    columns: dict[str, Any] = {}
    at = []
    for end, axis in zip((ORIGIN, DESTINATION), data.ends, strict=True):
        areas, depth = numbers.areas(axis), numbers.depths[axis]
        columns[end] = data.tree.axes[axis].hierarchy.codes(depth).take(areas)
        columns[f"{end}_name"] = data.places.name(axis, depth).take(areas)
        lon, lat = data.places.at(axis, depth)
        at.append((lon[areas], lat[areas]))
    columns |= {name: numbers.table.column(name) for name in numbers.measures}
    geometries = lines(*at)
    is_known = ~shapely().is_missing(geometries)
    facts = dict(numbers.facts)
    if not is_known.all():
        n_left_out = int((~is_known).sum())
        facts["left_out"] = f"{n_left_out:,} rows with an end whose place is not known"
    return _with_geometry(pa.table(columns), geometries).filter(is_known), facts


def _areas(data: ExportData, axis: int, depth: int) -> tuple[pa.Table, str]:
    """Areas of a level, and the kind of geometry they have."""
    hierarchy = data.tree.axes[axis].hierarchy
    outlines = hierarchy.places.outlines
    if depth < hierarchy.depth or outlines is None:
        places = located(data, axis, depth)
        points = shapely().points(places["lon"].to_numpy(), places["lat"].to_numpy())
        return _with_geometry(places.select(["code", "name"]), points), "Point"
    table = pa.table({"code": hierarchy.codes(depth), "name": data.places.name(axis, depth)})
    return table.append_column("geom", outlines).filter(outlines.is_valid()), "Unknown"


def _with_geometry(table: pa.Table, geometries: NDArray[Any]) -> pa.Table:
    encoded = shapely().to_wkb(geometries, byte_order=1)
    return table.append_column("geom", pa.array(np.atleast_1d(encoded), pa.binary()))


def _about(data: ExportData, numbers: ExportTable) -> str:
    return f"{data.description} {numbers.facts['intervals']}".strip()


def _write(  # noqa: PLR0913, PLR0917 - private
    path: Path, driver: str, layer: str, table: pa.Table, kind: str, options: dict[str, str]
) -> None:
    pyogrio = library("pyogrio", needed_for="exports to GeoPackage and GeoJSON")
    pyogrio.write_arrow(
        table,
        path,
        layer=layer,
        driver=driver,
        geometry_name="geom",
        geometry_type=kind,
        crs="EPSG:4326",
        layer_options=options,
    )
