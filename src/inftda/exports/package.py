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
from inftda.exports.source import Source
from inftda.files import is_plain
from inftda.publication.caveats import NOT_PRIVATE, not_shown
from inftda.publication.release import Release
from inftda.reports.page import summary

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
_ZEROS: Final = (
    "A cell that is not listed is not known to be empty, and some small numbers are zero in truth."
)
_ESTIMATED: Final = (
    "These are estimates, computed from a published release by a model: nothing is guaranteed "
    "about their errors."
)

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


def describe(source: Source, *, title: str | None, licence: str | None) -> dict[str, Any]:
    """Properties of the data package, `title` and `description` among them."""
    known = _of_release(source) if isinstance(source, Release) else _of_estimate(source)
    caveats: list[str] = known["caveats"]
    facts = {
        "name": "inftda-export",
        "title": title or known["title"],
        "description": " ".join([known["promise"], *caveats]).strip(),
        "caveats": caveats,
        **known["facts"],
    }
    return {**facts, "licenses": [{"name": licence}]} if licence else facts


def _of_release(release: Release) -> dict[str, Any]:
    manifest, plan = release.manifest, release.manifest.plan
    counted = not_shown(release)
    caveats = [] if manifest.private else [NOT_PRIVATE]
    caveats += [f"What was counted: {counted}."] if counted else []
    caveats.append(_ZEROS)
    what = "Origin-destination flows" if release.tree.is_od else "Counts"
    promise = (
        f"Released with differential privacy: {plan.describe()}; protected: "
        f"{plan.unit.describe()}. {summary(release)}."
    )
    guarantee = {
        "private": manifest.private,
        "mechanism": manifest.mechanism,
        "promise": plan.describe(),
        "unit": plan.unit.describe(),
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "rho": None if plan.rho is None else str(plan.rho),
    }
    facts = {"guarantee": guarantee, "release_sha256": manifest.flows_sha256}
    return {"title": what, "promise": promise, "caveats": caveats, "facts": facts}


def _of_estimate(source: Source) -> dict[str, Any]:
    """What is known of an estimate: its manifest goes along as it is."""
    manifest: Any = getattr(source, "manifest", None)
    stated = manifest.to_dict() if hasattr(manifest, "to_dict") else manifest
    facts = {"estimate": json.loads(json.dumps(stated, default=str))} if stated else {}
    is_marked = getattr(manifest, "private", True) is False
    return {
        "title": "Estimated flows",
        "promise": "",
        "caveats": [*([NOT_PRIVATE] if is_marked else []), _ESTIMATED],
        "facts": facts,
    }
