"""GeoJSON: one collection of desire lines for each level, in degrees."""

import json
from pathlib import Path

import pyarrow as pa

from inftda.exports.contents import Contents, Numbers
from inftda.exports.lines import Lines, lines_of
from inftda.exports.package import Resource, file_of
from inftda.exports.texts import degrees, joined, quoted_texts, write_rows
from inftda.tree import DESTINATION, ORIGIN


def write_geojson(contents: Contents, folder: Path) -> list[Resource]:
    """Write `flows-LEVEL.geojson`: both ends with their names, the number and its interval."""
    contents.require_places("geojson")
    written = []
    for numbers in contents.numbers():
        lines = lines_of(contents, numbers)
        about = {
            "type": "FeatureCollection",
            "name": f"{contents.title}: {numbers.level.name}",
            "description": contents.description,
            **contents.facts(numbers),
        }
        file = f"flows-{numbers.level.file}.geojson"
        before = json.dumps(about, ensure_ascii=False)[:-1] + ', "features": ['
        write_rows(folder / file, before, _features(contents, numbers, lines), "\n]}\n")
        written.append(
            file_of(
                file,
                "geojson",
                f"Desire lines at level {numbers.level.name}",
                **contents.facts(numbers),
                **lines.facts,
            )
        )
    return written


def _features(contents: Contents, numbers: Numbers, lines: Lines) -> pa.StringArray:
    parts: list[object] = ['{"type":"Feature","properties":{']
    ends = zip((ORIGIN, DESTINATION), contents.ends, lines.areas, strict=True)
    for end, axis, areas in ends:
        depth = numbers.level.depths[axis]
        codes = contents.tree.axes[axis].hierarchy.codes(depth)
        names = contents.places.name(axis, depth)
        parts += [f'"{end}":', quoted_texts(codes, areas), ","]
        parts += [f'"{end}_name":', quoted_texts(names, areas), ","]
    for index, name in enumerate(numbers.measures):
        parts += [f'{"," if index else ""}"{name}":', lines.table.column(name)]
    parts.append('},"geometry":{"type":"LineString","coordinates":[[')
    parts += [degrees(lines.start[0]), ",", degrees(lines.start[1]), "],["]
    parts += [degrees(lines.end[0]), ",", degrees(lines.end[1]), "]]}}"]
    return joined(*parts)
