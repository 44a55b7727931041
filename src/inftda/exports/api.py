"""One call: from a release or an estimate to a folder of files of one kind."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, get_args

from inftda.areas.locations import Gazetteer
from inftda.errors import InftdaError
from inftda.exports.contents import Contents
from inftda.exports.csv_files import write_csv
from inftda.exports.flowmap import write_flowmap
from inftda.exports.geojson import write_geojson
from inftda.exports.geopackage import write_geopackage
from inftda.exports.intervals import Intervals
from inftda.exports.kepler import write_kepler
from inftda.exports.levels import chosen_levels
from inftda.exports.od import write_od
from inftda.exports.omx import write_omx
from inftda.exports.package import Resource, check_export, describe, write_package
from inftda.exports.source import Source, has_pairs, open_source
from inftda.files import check_folder, check_unpublished, whole_folder

if TYPE_CHECKING:
    from inftda.bars import Progress

Kind = Literal["csv", "flowmap", "kepler", "geopackage", "geojson", "omx", "od"]
KINDS: Final[tuple[str, ...]] = get_args(Kind)
_WRITERS: Final[dict[Kind, Callable[[Contents, Path], list[Resource]]]] = {
    "csv": write_csv,
    "flowmap": write_flowmap,
    "kepler": write_kepler,
    "geopackage": write_geopackage,
    "geojson": write_geojson,
    "omx": write_omx,
    "od": write_od,
}


def export(  # noqa: PLR0913 - one keyword for each thing a publisher may decide
    source: "Source | str | Path",
    *,
    to: Kind,
    out: str | Path,
    levels: Sequence[str] | None = None,
    centroids: str | Path | None = None,
    names: str | Path | None = None,
    title: str | None = None,
    licence: str | None = None,
    intervals: bool = True,
    wide: bool = False,
    runs: int = 20,
    seconds: float = 20.0,
    force: bool = False,
    keep_formulas: bool = False,
    progress: "Progress | None" = None,
) -> Path:
    """Write a release or an estimate as files that other programs read.

    Args:
        source: a release or an estimate, or its folder.
        to: what kind of files: "csv", "flowmap", "kepler", "geopackage", "geojson", "omx" or
            "od".
        out: folder to write, not in a release.
        levels: names of levels to write; all by default.
        centroids: locations of areas (a column named after a level, lon, lat), for maps; by
            default those that the release brings.
        names: names of areas (columns level, code, name), likewise.
        title: what it is called.
        licence: licence of the numbers, for example "CC-BY-4.0".
        intervals: whether each number gets an interval where one is known.
        wide: for "od", one row for each origin and one column for each destination.
        runs: simulations for intervals, at most, where they are simulated.
        seconds: time for them.
        force: replace an export that is there.
        keep_formulas: leave CSV cells as they are that a spreadsheet would run as formulas.
        progress: called with what is done, and how much of the work or time of 100.

    Returns:
        The folder, with `datapackage.json`, which says what is in it.

    Raises:
        InftdaError: there is no such kind or level, places are needed and not known, a level
            is too large for the kind of file, or `out` must not be written.

    Privacy:
        Post-processing of what is published: no cost.
    """
    if to not in KINDS:
        raise InftdaError(f"there is no export to {to!r}; there are {', '.join(KINDS)}")
    if wide and to != "od":
        raise InftdaError("only an export to od can be wide; leave out --wide")
    folder = Path(out)
    check_unpublished(folder)
    check_folder(folder, force=force, check=check_export)
    opened = open_source(source) if isinstance(source, str | Path) else source
    if to != "csv" and not has_pairs(opened.tree):
        axes = ", ".join(axis.name for axis in opened.tree.axes)
        raise InftdaError(
            f"an export to {to} needs origins and destinations, but the axes are {axes}; "
            "export it as csv"
        )
    chosen = chosen_levels(opened.tree, levels, pairs_only=to != "csv")
    places = Gazetteer.of(
        (axis.hierarchy for axis in opened.tree.axes), names=names, centroids=centroids
    )
    shown = Intervals.of(
        opened, chosen, wanted=intervals, runs=runs, seconds=seconds, progress=progress
    )
    about = describe(opened, title=title, licence=licence)
    contents = Contents(
        opened.tree,
        chosen,
        shown,
        places,
        about["title"],
        about["description"],
        wide=wide,
        keep_formulas=keep_formulas,
    )
    with whole_folder(folder, force=force, check=check_export) as partial:
        resources = _WRITERS[to](contents, partial)
        write_package(partial, about, resources)
    return folder
