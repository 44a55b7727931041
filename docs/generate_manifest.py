# ruff: noqa: INP001 - a script of the documentation, not a package
"""Write what the reference says of manifests, from the records that decode them.

`python docs/generate_manifest.py` writes the JSON Schemas beside `reference/manifest.md`, and the
tables of fields in that page, between its two marks. A test compares both with the records.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from inftda.estimates.estimate import EstimateManifest
from inftda.publication.manifest import Manifest

REFERENCE: Final = Path(__file__).parent / "reference"
PAGE: Final = REFERENCE / "manifest.md"
#: Begin and end of the part that is written here.
MARKS: Final = (
    "<!-- Fields: written by docs/generate_manifest.py -->\n",
    "<!-- End of fields -->\n",
)
#: Records by the name of their schema, and titles of their tables.
RECORDS: Final[dict[str, tuple[type, str]]] = {
    "inftda-release-1": (Manifest, "manifest.json"),
    "inftda-estimate-1": (EstimateManifest, "manifest.json of an estimate"),
}
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def files() -> dict[Path, str]:
    """Every file that is written here, and its text."""
    schemas = {name: schema_of(record) for name, (record, _) in RECORDS.items()}
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    shown = dict[str, str]()
    fields = "\n".join(
        line
        for name, schema in schemas.items()
        for line in _section(schema, schema["$ref"], RECORDS[name][1], shown)
    )
    return {
        **{
            REFERENCE / f"{name}.schema.json": json.dumps(schema, indent=1, ensure_ascii=False)
            + "\n"
            for name, schema in schemas.items()
        },
        PAGE: f"{before}{MARKS[0]}\n{fields}\n{MARKS[1]}{after}",
    }


def schema_of(record: type) -> dict[str, Any]:
    """The JSON Schema of a record; further entries are allowed, as readers allow them."""
    return {"$schema": _DIALECT, **msgspec.json.schema(record)}


def _section(schema: dict[str, Any], ref: str, title: str, shown: dict[str, str]) -> Iterator[str]:
    """A table of the fields of a record, and one for each record inside it.

    A row that is in an earlier table already is named only, with the title of that table.
    """
    shown[ref] = title
    record = schema["$defs"][ref.rpartition("/")[2]]
    yield f"{'###' if '.json' not in title else '##'} {title}\n"
    yield record["description"].partition("\n\n")[0] + "\n"
    rows, repeated, inside = list[str](), dict[str, list[str]](), dict[str, str]()
    for name, field in record["properties"].items():
        row = f"| `{name}` | {_type(field)} | {field['description']} |"
        if shown.setdefault(row, title) == title:
            rows.append(row)
        else:
            repeated.setdefault(shown[row], []).append(f"`{name}`")
        inner = field.get("$ref") or field.get("items", {}).get("$ref")
        if inner and inner not in shown:
            inside[name] = inner
    if rows:
        yield "\n".join(["| field | type | meaning |", "|---|---|---|", *rows, ""])
    for earlier, names in repeated.items():
        yield f"As in {earlier}: {', '.join(names)}.\n"
    for name, inner in inside.items():
        yield from _section(schema, inner, name, shown)


def _type(field: dict[str, Any]) -> str:
    """Type of a field in words."""
    if "$ref" in field:
        return "object"
    if "anyOf" in field:
        return " or ".join(map(_type, field["anyOf"]))
    if "enum" in field:
        return "text"
    if field["type"] == "array":
        inner = _type(field["items"])
        return f"list of {'whole numbers' if inner == 'whole number' else inner + 's'}"
    if field["type"] == "string" and "(/[0-9]" in field.get("pattern", ""):
        return "fraction as text"
    words = {"boolean": "true or false", "integer": "whole number", "string": "text"}
    return words.get(field["type"], field["type"])


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
