"""`datapackage.json`: what the files of an export hold, for people and for `frictionless`.

A data package (specs.frictionlessdata.io) with a few properties of our own: the guarantee, what
intervals are, and what readers must know.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from inftda import __version__
from inftda.errors import ReleaseError
from inftda.publication.inventory import is_plain

PACKAGE_FILE: Final = "datapackage.json"
#: Marks folders that we have written and may replace.
FORMAT: Final = "inftda-export/1"
_MEDIA: Final = {
    "csv": "text/csv",
    "geojson": "application/geo+json",
    "gpkg": "application/geopackage+sqlite3",
    "json": "application/json",
    "omx": "application/x-hdf5",
}

Resource = dict[str, Any]


def file_of(path: str, kind: str, title: str, **facts: Any) -> Resource:
    """The entry of one file; empty facts are left out."""
    name = path.lower().rpartition(".")[0]
    kept = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in name)
    entry = {
        "name": kept.strip("-"),
        "path": path,
        "title": title,
        "format": kind,
        "mediatype": _MEDIA[kind],
    }
    return {**entry, **{key: value for key, value in facts.items() if value}}


def write_package(folder: Path, about: Mapping[str, Any], resources: list[Resource]) -> None:
    """Write `datapackage.json` beside the files it lists."""
    for entry in resources:
        entry["bytes"] = (folder / entry["path"]).stat().st_size
    whole = {
        "profile": "data-package",
        "format": FORMAT,
        **about,
        "software": f"inftda {__version__}",
        "resources": resources,
    }
    text = json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
    (folder / PACKAGE_FILE).write_text(text, encoding="utf-8")


def check_export(folder: Path, name: Path) -> None:
    """Complain unless a folder is an export with nothing else in it.

    Raises:
        ReleaseError: it is something else, which is not replaced.
    """
    try:
        listed = json.loads((folder / PACKAGE_FILE).read_text(encoding="utf-8"))
        own = {PACKAGE_FILE, *(entry["path"] for entry in listed["resources"])}
        is_ours = listed["format"] == FORMAT
    except (OSError, ValueError, KeyError, TypeError):
        is_ours, own = False, set()
    if not is_ours:
        raise ReleaseError(f"{str(name)!r} is not an export of inftda; it is not replaced")
    for path in sorted(folder.iterdir()):
        if path.name not in own or not is_plain(path):
            raise ReleaseError(
                f"{str(name)!r} is not replaced: {path.name!r} in it is not part of the export; "
                "move it elsewhere or choose another folder"
            )
