"""Files for flowmap.gl and flowmap.blue: locations, flows, and our hierarchy as zoom levels.

`locations.csv` and `flows.csv` are what flowmap.blue takes. `flowmap.json` holds the same and
the clusters of every level, as the layer of flowmap.gl takes it: what one sees from afar are
regions of the release, not clusters that a program has made up.
"""

import math
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inftda.areas.locations import from_seam
from inftda.errors import InftdaError
from inftda.exports.contents import ExportData, LevelTable, Resource, resource_entry
from inftda.exports.tables import located, write_table
from inftda.tree import DESTINATION, ORIGIN

#: Flows that a browser holds.
MAX_FLOWS: Final = 2_000_000
#: Pixels of the whole world at zoom 0, of a map on a screen, and between neighbouring areas.
_WORLD, _SCREEN, _APART = 512, 700, 60
_NEAREST: Final = 18.0
#: Rows that are texts in memory at a time.
_ROWS: Final = 1 << 16


def write_flowmap(data: ExportData, folder: Path) -> list[Resource]:
    """Write the three files, from the finest level that was chosen."""
    data.require_places("flowmap")
    *_, numbers = data.numbers()
    level = numbers.level.name
    if numbers.table.num_rows > MAX_FLOWS:
        raise InftdaError(
            f"level {level!r} has {numbers.table.num_rows:,} flows, more than the {MAX_FLOWS:,} "
            "that a browser holds; choose a coarser one with `level=`"
        )
    prefixes = ("", "") if data.shares_areas else (f"{ORIGIN}:", f"{DESTINATION}:")
    ends = list(zip(prefixes, data.ends, strict=True))
    locations = pa.concat_tables(
        [
            _renamed(located(data, axis, numbers.level.depths[axis]), prefix)
            for prefix, axis in (ends[:1] if data.shares_areas else ends)
        ]
    )
    flows = _flows(numbers, data, ends)
    write_table(data, folder / "locations.csv", locations)
    write_table(data, folder / "flows.csv", flows.select(["origin", "dest", "count"]))
    view = _view(data, locations)
    settings = {
        "title": data.title,
        "description": data.description,
        **numbers.facts,
        "viewState": view,
        "clusterLevels": _clusters(data, numbers, ends, view["zoom"]),
        "locations": locations.to_pylist(),
    }
    with (folder / "flowmap.json").open("wb") as file:
        file.write(msgspec.json.encode(settings)[:-1] + b', "flows": [\n')
        for start in range(0, flows.num_rows, _ROWS):
            rows = flows.slice(start, _ROWS).to_pylist()
            file.write((b",\n" if start else b"") + b",\n".join(map(msgspec.json.encode, rows)))
        file.write(b"\n]}\n")
    titles = {
        "locations.csv": f"Places of level {level}: id, name, lat, lon",
        "flows.csv": f"Flows of level {level}: origin, dest, count",
        "flowmap.json": "Locations, flows and clusters for flowmap.gl",
    }
    return [resource_entry(file, title, **numbers.facts) for file, title in titles.items()]


def _renamed(places: pa.Table, prefix: str) -> pa.Table:
    ids = pc.binary_join_element_wise(prefix, places["code"], "")
    return pa.table({"id": ids, **{name: places[name] for name in ("name", "lat", "lon")}})


def _flows(numbers: LevelTable, data: ExportData, places: list[tuple[str, int]]) -> pa.Table:
    """Rows with the names that flowmap takes."""
    columns = {}
    for name, (prefix, axis) in zip(("origin", "dest"), places, strict=True):
        codes = numbers.table.column(data.tree.axes[axis].name).cast(pa.string())
        columns[name] = pc.binary_join_element_wise(prefix, codes, "")
    value, *ends = numbers.measures
    columns["count"] = numbers.table.column(value)
    return pa.table(columns | {name: numbers.table.column(name) for name in ends})


def _view(data: ExportData, locations: pa.Table) -> dict[str, float]:
    """Middle of the map and zoom at which all of it fits a screen; the world if it is empty."""
    if not locations.num_rows:
        return {"longitude": 0.0, "latitude": 0.0, "zoom": 0.0}
    lon = from_seam(locations["lon"].to_numpy(), data.places.seam)
    lat = locations["lat"].to_numpy()
    middle = (float(lat.min()) + float(lat.max())) / 2
    height = float(np.ptp(lat)) / max(math.cos(math.radians(middle)), 0.1)
    width = max(float(np.ptp(lon)), height, 1e-3)
    return {
        "longitude": (float(lon.min()) + float(lon.max())) / 2,
        "latitude": middle,
        "zoom": _clipped(math.log2(360 * _SCREEN / (_WORLD * width))),
    }


def _clipped(zoom: float) -> float:
    return round(min(max(zoom, 0.0), _NEAREST), 2)


def _clusters(
    data: ExportData, numbers: LevelTable, ends: list[tuple[str, int]], zoom: float
) -> list[dict[str, Any]]:
    """A level of clusters for each level of the release, coarse to fine, and the places.

    Each level has a zoom, a whole number, at which its areas can be told apart.
    """
    ends = ends[:1] if data.shares_areas else ends
    finest = [numbers.level.depths[axis] for _, axis in ends]
    found: list[dict[str, Any]] = []
    for step in range(1, max(finest) + 1):
        nodes = [
            node
            for (prefix, axis), depth in zip(ends, finest, strict=True)
            for node in _nodes(data, prefix, axis, min(step, depth), depth)
        ]
        # Areas that are evenly spread are as far apart as the map is wide by their root.
        apart = zoom + math.log2(_APART / _SCREEN * math.sqrt(max(len(nodes), 1)))
        at = max(found[-1]["zoom"] + 1 if found else 0, math.ceil(_clipped(apart)))
        found.append({"zoom": at, "nodes": [{**node, "zoom": at} for node in nodes]})
    return found


def _nodes(
    data: ExportData, prefix: str, axis: int, depth: int, finest: int
) -> list[dict[str, Any]]:
    """Areas of one level with a place; each but the finest lists the areas in it."""
    hierarchy = data.tree.axes[axis].hierarchy

    def id_of(code: str, level: int) -> str:
        """A place has its code; an area above it also its level, so no two are the same."""
        inner = "" if level == finest else f"{{{hierarchy.level_name(level)}}}:"
        return f"{prefix}{inner}{code}"

    nodes = {
        row["code"]: {
            "id": id_of(row["code"], depth),
            "name": row["name"],
            "centroid": [row["lon"], row["lat"]],
        }
        for row in located(data, axis, depth).to_pylist()
    }
    if depth < finest:
        codes = hierarchy.codes(depth)
        inside = located(data, axis, depth + 1)["code"].to_pylist()
        above = codes.take(hierarchy.ancestor(depth + 1, depth)[hierarchy.find(depth + 1, inside)])
        for code, parent in zip(inside, above.to_pylist(), strict=True):
            nodes[parent].setdefault("children", []).append(id_of(code, depth + 1))
    return list(nodes.values())
