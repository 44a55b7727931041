"""A map for kepler.gl: one file with its data, an arc layer for each level, and where to look.

Drag it onto kepler.gl, or give its parts to `keplergl.KeplerGl`. One layer is shown at first.
"""

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from inftda.errors import InftdaError
from inftda.exports.contents import Contents, Numbers
from inftda.exports.lines import Lines, lines_of
from inftda.exports.package import Resource, file_of
from inftda.exports.texts import degrees, joined, quoted_texts, write_rows
from inftda.exports.view import View
from inftda.tree import DESTINATION, ORIGIN

FILE: Final = "kepler.json"
#: Flows that a browser holds, and arcs that it draws at once without stumbling.
MAX_FLOWS, MAX_SHOWN = 500_000, 50_000
_PLACES = ("origin_lat", "origin_lng", "destination_lat", "destination_lng")
_FROM, _TO = [38, 100, 110], [222, 120, 46]
_COLORS: Final = {
    "name": "inftda",
    "type": "sequential",
    "category": "Custom",
    "colors": ["#26646E", "#DE782E"],
}


def write_kepler(contents: Contents, folder: Path) -> list[Resource]:
    """Write `kepler.json`.

    Raises:
        InftdaError: places are not known, or there are more flows than a browser holds.
    """
    contents.require_places("kepler")
    datasets, layers, sizes, facts = [], [], [], {}
    places = []
    for numbers in contents.numbers():
        lines = lines_of(contents, numbers)
        if len(lines.areas[0]) > MAX_FLOWS:
            raise InftdaError(
                f"level {numbers.level.name!r} has {len(lines.areas[0]):,} flows, more than the "
                f"{MAX_FLOWS:,} that a browser holds; choose a coarser one with --level"
            )
        datasets.append(_dataset(contents, numbers, lines))
        layers.append(_layer(numbers))
        sizes.append(len(lines.areas[0]))
        facts[numbers.level.name] = {**contents.facts(numbers), **lines.facts}
        places = [np.concatenate([lines.start[side], lines.end[side]]) for side in (0, 1)]
    _show_one(layers, sizes)
    about = {
        "config": {"version": "v1", "config": _config(layers, View.of(places[0], places[1]))},
        "info": {
            "app": "kepler.gl",
            "title": contents.title,
            "description": contents.description,
        },
    }
    after = "], " + json.dumps(about, ensure_ascii=False)[1:] + "\n"
    write_rows(folder / FILE, '{"datasets": [', pa.array(datasets, pa.large_string()), after)
    return [file_of(FILE, "json", "Map for kepler.gl", levels=facts)]


def _dataset(contents: Contents, numbers: Numbers, lines: Lines) -> str:
    """The flows of a level as kepler.gl saves them."""
    fields: list[tuple[str, str]] = []
    parts: list[object] = ["["]
    for end, axis, areas in zip((ORIGIN, DESTINATION), contents.ends, lines.areas, strict=True):
        depth = numbers.level.depths[axis]
        codes = contents.tree.axes[axis].hierarchy.codes(depth)
        names = contents.places.name(axis, depth)
        for name, texts in ((end, codes), (f"{end}_name", names)):
            fields.append((name, "string"))
            parts += [quoted_texts(texts, areas), ","]
    for name, values in zip(_PLACES, (*lines.start[::-1], *lines.end[::-1]), strict=True):
        fields.append((name, "real"))
        parts += [degrees(values), ","]
    for index, name in enumerate(numbers.measures):
        fields.append((name, "integer"))
        parts += ["," if index else "", lines.table.column(name)]
    rows = joined(*parts, "]")
    about = {
        "id": _id(numbers),
        "label": f"{numbers.level.name} ({contents.words(numbers)})",
        "color": _FROM,
        "fields": [
            {"name": name, "type": kind, "format": "", "analyzerType": _ANALYZED[kind]}
            for name, kind in fields
        ],
    }
    listed = json.dumps(about, ensure_ascii=False)[:-1]
    data = f'{listed}, "allData": [\n' + ",\n".join(rows.to_pylist()) + "\n]}"
    return f'{{"version": "v1", "data": {data}}}'


_ANALYZED: Final = {"string": "STRING", "real": "FLOAT", "integer": "INT"}


def _id(numbers: Numbers) -> str:
    return f"flows-{numbers.level.number}"


def _layer(numbers: Numbers) -> dict[str, Any]:
    """Arcs as wide as the number is large."""
    columns = zip(("lat0", "lng0", "lat1", "lng1"), _PLACES, strict=True)
    return {
        "id": f"arcs-{numbers.level.number}",
        "type": "arc",
        "config": {
            "dataId": _id(numbers),
            "label": numbers.level.name,
            "color": _FROM,
            "columns": dict(columns),
            "isVisible": False,
            "visConfig": {
                "opacity": 0.5,
                "thickness": 2,
                "colorRange": _COLORS,
                "sizeRange": [0.5, 20],
                "targetColor": _TO,
            },
        },
        "visualChannels": {
            "colorField": None,
            "colorScale": "quantile",
            "sizeField": {"name": numbers.value, "type": "integer"},
            "sizeScale": "sqrt",
        },
    }


def _show_one(layers: list[dict[str, Any]], sizes: list[int]) -> None:
    """The finest level that is drawn without stumbling, else the coarsest."""
    fit = [number for number, size in enumerate(sizes) if size <= MAX_SHOWN]
    layers[fit[-1] if fit else 0]["config"]["isVisible"] = True


def _config(layers: list[dict[str, Any]], view: View) -> dict[str, Any]:
    shown = ["origin_name", "destination_name", *("flow", "estimate", "low", "high")]
    return {
        "visState": {
            "filters": [],
            "layers": layers,
            "interactionConfig": {
                "tooltip": {
                    "fieldsToShow": {
                        layer["config"]["dataId"]: [
                            {"name": name, "format": None} for name in shown
                        ]
                        for layer in layers
                    },
                    "enabled": True,
                },
            },
            "layerBlending": "normal",
        },
        "mapState": {
            "bearing": 0,
            "dragRotate": False,
            "latitude": view.lat,
            "longitude": view.lon,
            "pitch": 0,
            "zoom": view.zoom,
            "isSplit": False,
        },
        "mapStyle": {"styleType": "positron"},
    }
