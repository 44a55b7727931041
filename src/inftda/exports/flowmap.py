"""Files for flowmap.gl and flowmap.blue: locations, flows, and our hierarchy as zoom levels.

`locations.csv` and `flows.csv` are what flowmap.blue takes. `flowmap.json` holds the same and
the clusters of every level, as the layer of flowmap.gl takes it: what one sees from afar are
regions of the release, not clusters that a program has made up.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from inftda.errors import InftdaError
from inftda.exports.contents import Contents, Numbers
from inftda.exports.csv_files import write_table
from inftda.exports.package import Resource, file_of
from inftda.exports.texts import joined, quoted_texts, write_rows
from inftda.exports.view import View
from inftda.tables import as_arrow
from inftda.tree import DESTINATION, ORIGIN

#: Flows that a browser holds.
MAX_FLOWS = 2_000_000


def write_flowmap(contents: Contents, folder: Path) -> list[Resource]:
    """Write the three files, from the finest level that was chosen.

    Raises:
        InftdaError: places are not known, or there are more flows than a browser holds.
    """
    contents.require_places("flowmap")
    *_, numbers = contents.numbers()
    if numbers.table.num_rows > MAX_FLOWS:
        raise InftdaError(
            f"level {numbers.level.name!r} has {numbers.table.num_rows:,} flows, more than the "
            f"{MAX_FLOWS:,} that a browser holds; choose a coarser one with --level"
        )
    prefixes = ("", "") if contents.shares_areas else (f"{ORIGIN}:", f"{DESTINATION}:")
    locations = _Locations(contents, numbers, prefixes)
    listed = locations.table()
    flows = _flows(contents, numbers, prefixes)
    write_table(folder / "locations.csv", listed, contents)
    plain = flows.select(["origin", "dest", "count"])
    write_table(folder / "flows.csv", plain, contents)
    settings = {
        "title": contents.title,
        "description": contents.description,
        **contents.facts(numbers),
        "viewState": locations.view_state(),
        "clusterLevels": locations.clusters(),
        "locations": listed.to_pylist(),
    }
    before = json.dumps(settings, ensure_ascii=False)[:-1] + ', "flows": ['
    write_rows(folder / "flowmap.json", before, _as_json(flows), "\n]}\n")
    level = numbers.level.name
    facts = contents.facts(numbers)
    return [
        file_of("locations.csv", "csv", f"Places of level {level}: id, name, lat, lon"),
        file_of("flows.csv", "csv", f"Flows of level {level}: origin, dest, count", **facts),
        file_of("flowmap.json", "json", "Locations, flows and clusters for flowmap.gl", **facts),
    ]


class _Locations:
    """Places of both ends, at the finest level that is shown and at those above it."""

    def __init__(self, contents: Contents, numbers: Numbers, prefixes: tuple[str, str]) -> None:
        ends = list(zip(prefixes, contents.ends, strict=True))
        self._ends = ends[:1] if contents.shares_areas else ends
        self._contents, self._level = contents, numbers.level
        places = [contents.places.at(axis, self._level.depths[axis]) for _, axis in self._ends]
        lon, lat = (np.concatenate([place[side] for place in places]) for side in (0, 1))
        self._view = View.of(lon, lat)

    def view_state(self) -> dict[str, float]:
        """Where the map begins."""
        view = self._view
        return {"longitude": view.lon, "latitude": view.lat, "zoom": view.zoom}

    def table(self) -> pa.Table:
        """One row for each place: id, name, lat, lon."""
        parts = []
        for prefix, axis in self._ends:
            depth = self._level.depths[axis]
            known, lon, lat = self._known(axis, depth)
            codes = self._contents.tree.axes[axis].hierarchy.codes(depth).take(as_arrow(known))
            names = self._contents.places.name(axis, depth)
            columns = {
                "id": joined(prefix, codes).cast(pa.string()),
                "name": names.take(as_arrow(known)),
                "lat": np.round(lat, 6),
                "lon": np.round(lon, 6),
            }
            parts.append(pa.table(columns))
        return pa.concat_tables(parts)

    def clusters(self) -> list[dict[str, Any]]:
        """A level of clusters for each level of the release, coarse to fine, and the places."""
        finest = max(self._level.depths[axis] for _, axis in self._ends)
        found: list[dict[str, Any]] = []
        zoom = -1
        for step in range(1, finest + 1):
            depths = [min(step, self._level.depths[axis]) for _, axis in self._ends]
            trees = [self._contents.tree.axes[axis].hierarchy for _, axis in self._ends]
            most = max(tree.n_areas(depth) for tree, depth in zip(trees, depths, strict=True))
            # Whole numbers, and each level has one of its own.
            zoom = max(zoom + 1, math.ceil(self._view.zoom_for(most)))
            nodes = [
                node
                for (prefix, axis), depth in zip(self._ends, depths, strict=True)
                for node in self._nodes(prefix, axis, depth, zoom)
            ]
            found.append({"zoom": zoom, "nodes": nodes})
        return found

    def _nodes(self, prefix: str, axis: int, depth: int, zoom: int) -> list[dict[str, Any]]:
        """Areas of one level; each but the finest lists the areas in it that have a place."""
        contents, finest = self._contents, self._level.depths[axis]
        hierarchy = contents.tree.axes[axis].hierarchy
        codes = hierarchy.codes(depth).to_pylist()
        names = contents.places.name(axis, depth).to_pylist()
        known, lon, lat = self._known(axis, depth)
        places = np.round(np.column_stack([lon, lat]), 6).tolist()
        nodes = []
        for area, place in zip(known.tolist(), places, strict=True):
            node = {"id": self._id(prefix, axis, depth, codes[area]), "zoom": zoom}
            node |= {"centroid": place, "name": names[area]}
            nodes.append(node)
        if depth == finest:
            return nodes
        below = hierarchy.codes(depth + 1).to_pylist()
        inside, *_ = self._known(axis, depth + 1)
        offsets = np.searchsorted(inside, hierarchy.child_offsets(depth))
        for area, node in zip(known.tolist(), nodes, strict=True):
            children = inside[offsets[area] : offsets[area + 1]].tolist()
            node["children"] = [self._id(prefix, axis, depth + 1, below[one]) for one in children]
        return nodes

    def _id(self, prefix: str, axis: int, depth: int, code: str) -> str:
        """A place has its code; an area above it also its level, so that no two are the same."""
        if depth == self._level.depths[axis]:
            return prefix + code
        return f"{prefix}{{{self._contents.tree.axes[axis].hierarchy.level_name(depth)}}}:{code}"

    def _known(self, axis: int, depth: int) -> tuple[Any, Any, Any]:
        lon, lat = self._contents.places.at(axis, depth)
        known = np.flatnonzero(~np.isnan(lon + lat))
        return known, lon[known], lat[known]


def _flows(contents: Contents, numbers: Numbers, prefixes: tuple[str, str]) -> pa.Table:
    """Rows with the names that flowmap takes."""
    columns = {}
    for name, prefix, axis in zip(("origin", "dest"), prefixes, contents.ends, strict=True):
        codes = numbers.table.column(contents.tree.axes[axis].name).cast(pa.string())
        columns[name] = joined(prefix, codes).cast(pa.string())
    columns["count"] = numbers.table.column(numbers.value)
    for name in numbers.measures[1:]:
        columns[name] = numbers.table.column(name)
    return pa.table(columns)


def _as_json(flows: pa.Table) -> pa.StringArray:
    """One object for each flow."""
    parts: list[object] = ["{"]
    for name in ("origin", "dest"):
        encoded = flows.column(name).combine_chunks().dictionary_encode()
        areas = np.asarray(encoded.indices, np.int32)
        parts += [f'"{name}":', quoted_texts(encoded.dictionary, areas), ","]
    for index, name in enumerate(flows.column_names[2:]):
        parts += [f'{"," if index else ""}"{name}":', flows.column(name)]
    return joined(*parts, "}")
