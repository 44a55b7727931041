"""From a release or an estimate to a folder of files of one kind, with `datapackage.json`.

The folder is a data package (specs.frictionlessdata.io) with a few properties of our own: the
guarantee, the meaning of intervals, and warnings to readers.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

from inftda import __version__
from inftda.areas.locations import Gazetteer
from inftda.errors import InftdaError, ReleaseError
from inftda.estimates.estimate import Estimate, open_estimate
from inftda.exports.contents import ExportData, Resource, chosen_levels
from inftda.exports.gis import write_geojson, write_geopackage
from inftda.exports.matrices import write_omx
from inftda.exports.spreadsheets import write_csv, write_flowmap
from inftda.options import Centroids, KeepFormulas, Names, Option, documented
from inftda.publication.release import Release, open_release
from inftda.publication.reliability import NOT_PRIVATE, counting_note
from inftda.publication.summary import describe_size
from inftda.tree import DESTINATION, ORIGIN
from inftda.util.files import (
    ESTIMATE_FILE,
    check_folder,
    check_own,
    check_unpublished,
    whole_folder,
)

Kind = Literal["csv", "flowmap", "geopackage", "geojson", "omx"]
KINDS: Final[tuple[str, ...]] = get_args(Kind)
PACKAGE_FILE: Final = "datapackage.json"
#: Marks folders that we have written and may replace.
FORMAT: Final = "inftda-export/1"
_WRITERS: Final[dict[Kind, Callable[[ExportData, Path], list[Resource]]]] = {
    "csv": write_csv,
    "flowmap": write_flowmap,
    "geopackage": write_geopackage,
    "geojson": write_geojson,
    "omx": write_omx,
}
_ZEROS: Final = (
    "A missing cell is not necessarily zero, and some small published counts are truly zero."
)
_NOISE_ONLY: Final = (
    "Intervals and grades cover the noise only, not errors of the survey or register that was "
    "counted."
)
_ESTIMATED: Final = (
    "These are estimates, computed from a published release by a model. Their errors have no "
    "guarantee."
)


@documented
def export(  # noqa: PLR0913 - one keyword for each thing a publisher may decide
    source: Annotated[
        Any, Option("A release or an estimate, or its folder.", metavar="RELEASE", is_argument=True)
    ],
    *,
    to: Annotated[
        Kind, Option("What kind of files.", metavar="csv|flowmap|geopackage|geojson|omx")
    ],
    out: Annotated[str | Path, Option("Folder to write, not in a release.")],
    level: Annotated[
        Sequence[str] | None, Option("Only this level; by default all levels.", is_repeated=True)
    ] = None,
    names: Names = None,
    centroids: Centroids = None,
    title: Annotated[str | None, Option("Title of the export.")] = None,
    licence: Annotated[
        str | None, Option("Licence of the numbers, such as CC-BY-4.0.", metavar="NAME")
    ] = None,
    intervals: Annotated[
        bool,
        Option(
            "Give each number an interval where one is known.",
            spelling="--intervals/--no-intervals",
        ),
    ] = True,
    force: Annotated[bool, Option("Replace an export that is there.")] = False,
    keep_formulas: KeepFormulas = False,
) -> Path:
    """Write a release or an estimate as files that other programs read.

    Returns:
        The folder, with `datapackage.json`, which describes its files.

    Raises:
        InftdaError: there is no such kind or level, places are needed and not known, a level
            is too large for the kind of file, or `out` must not be written.

    Privacy:
        Post-processing of a release: no cost.
    """
    if to not in KINDS:
        raise InftdaError(f"there is no export to {to!r}; there are {', '.join(KINDS)}")
    folder = Path(out)
    check_unpublished(folder)
    check_folder(folder, force=force, check=check_export)
    opened = source
    if isinstance(opened, str | Path):
        is_estimate = (Path(opened) / ESTIMATE_FILE).exists()
        opened = open_estimate(opened) if is_estimate else open_release(opened)
    axes = [axis.name for axis in opened.tree.axes]
    if to != "csv" and not {ORIGIN, DESTINATION} <= {*axes}:
        raise InftdaError(
            f"an export to {to} needs origins and destinations, but the axes are "
            f"{', '.join(axes)}; export it as csv"
        )
    chosen = chosen_levels(opened.tree, level, pairs_only=to != "csv")
    hierarchies = [axis.hierarchy for axis in opened.tree.axes]
    places = Gazetteer.of(hierarchies, names=names, centroids=centroids)
    about = _describe(opened, title=title, licence=licence)
    data = ExportData(
        opened,
        chosen,
        places,
        about["title"],
        about["description"],
        keep_formulas=keep_formulas,
        intervals=intervals,
    )
    is_public = opened.manifest.private
    with whole_folder(folder, force=force, check=check_export, is_public=is_public) as partial:
        resources = _WRITERS[to](data, partial)
        _write_package(partial, about, resources)
    return folder


def check_export(folder: Path) -> None:
    """Complain unless a folder is an export with nothing else in it."""
    try:
        listed = json.loads((folder / PACKAGE_FILE).read_text(encoding="utf-8"))
        own = {PACKAGE_FILE, *(entry["path"] for entry in listed["resources"])}
        is_ours = listed["format"] == FORMAT
    except (OSError, ValueError, KeyError, TypeError):
        is_ours, own = False, set()
    if not is_ours:
        raise ReleaseError(f"{str(folder)!r} is not an export of inftda; it is not replaced")
    check_own(folder, own, "the export")


def _write_package(folder: Path, about: dict[str, Any], resources: list[Resource]) -> None:
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


def _describe(
    source: Release | Estimate, *, title: str | None, licence: str | None
) -> dict[str, Any]:
    """Properties of the data package, `title` and `description` among them."""
    manifest = source.manifest
    caveats = [] if manifest.private else [NOT_PRIVATE]
    facts: dict[str, Any]
    if isinstance(source, Release):
        plan, counted = source.manifest.plan, counting_note(source)
        what = "Origin-destination flows" if source.tree.is_od else "Counts"
        words = (
            f"Released with differential privacy: {plan.describe()}; protected: "
            f"{source.manifest.protected}. {describe_size(source)}."
        )
        caveats += [f"What was counted: {counted}."] if counted else []
        caveats += [_ZEROS, _NOISE_ONLY]
        guarantee = {
            "private": source.manifest.private,
            "statement": plan.describe(),
            "privacy_unit": source.manifest.protected,
            "epsilon": plan.epsilon,
            "delta": plan.delta,
            "rho": str(plan.rho),
        }
        facts = {"guarantee": guarantee, "release_sha256": source.manifest.sha256}
    else:
        what, words = "Estimated flows", ""
        caveats += [_ESTIMATED, _NOISE_ONLY]
        facts = {"estimate": source.manifest.to_dict()}
    return {
        "name": "inftda-export",
        "title": title or what,
        "description": " ".join([words, *caveats]).strip(),
        "caveats": caveats,
        **facts,
        **({"licenses": [{"name": licence}]} if licence else {}),
    }
