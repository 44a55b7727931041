"""Areas as people have them: files and tables of codes, with names, locations and outlines.

Columns of codes are the levels, from coarse to fine. Of the others, `name` (of the finest areas),
`LEVEL_name`, `lon`, `lat` and `wkt` go along as `Places`; the rest are of no concern here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inftda.areas import polygons
from inftda.areas.features import ENDINGS, has_features, read_features
from inftda.areas.locations import LAT_NAMES, LON_NAMES, degrees
from inftda.errors import HierarchyError
from inftda.tree.hierarchy import Hierarchy
from inftda.tree.places import MAX_LAT, MAX_LON, MAX_NAME, Places, tidy
from inftda.util.stores import ZIP, is_remote, local_file
from inftda.util.tabular import TABLE_ENDINGS, as_strings, distinct, find_texts, read_table

#: The levels from coarse to fine; as a mapping, with the column of the names of each.
Levels = Sequence[str] | Mapping[str, str | None]

_OUTLINE: Final = ("wkt", "geometry")
_NAME, _NAME_OF = "name", "_name"
_WHAT: Final = "areas table"
_SAY: Final = "`levels=`"


def read_areas(source: Any, *, levels: Levels | None = None) -> Hierarchy:
    """Read a hierarchy with names, locations and outlines of its areas.

    Args:
        source: a hierarchy, which is given back; a CSV or Parquet file or any table that speaks
            Arrow, one row per finest area; or polygons: GeoJSON, GeoPackage, shapefile, or a
            geopandas frame, of which several may be one area. Files may be in a store, or packed
            into a zip file.
        levels: the columns of codes from coarse to fine; `{level: column of names}` says where
            names are. By default all columns but those that have a meaning of their own.

    Raises:
        HierarchyError: there is no such column, the levels do not nest, or a polygon, location or
            coordinate system is not what it should be.
        MissingExtraError: polygons need an optional library.

    Example:
        >>> read_areas({"region": ["N", "N"], "town": ["1", "2"], "name": ["Aa", "Bo"]})
        Hierarchy(1 region, 2 town)
    """
    if isinstance(source, Hierarchy):
        return source
    if isinstance(source, str | Path) and (is_remote(source) or str(source).lower().endswith(ZIP)):
        with local_file(source, (*TABLE_ENDINGS, *ENDINGS), HierarchyError) as file:
            return read_areas(file, levels=levels)
    geometries, label = None, f"the {_WHAT}"
    if is_polygons := has_features(source):
        label, table, geometries = read_features(source)
    else:
        table = read_table(source, what=_WHAT, error=HierarchyError)
    columns = _choose(table.column_names, levels)
    if is_polygons and levels is None and len(columns.levels) != 1:
        raise HierarchyError(
            f"say which columns of {label} are the levels, from coarse to fine: {_SAY}. It "
            f"has {', '.join(table.column_names) or 'none'}"
        )
    what = label if is_polygons else _WHAT
    texts = as_strings(table, what=what, error=HierarchyError, columns=columns.texts)
    paths = texts.select(columns.levels)
    if is_polygons:  # several may be one area
        paths = distinct(paths)
    hierarchy = _nested(paths, is_chosen=is_polygons or levels is not None)
    if not is_polygons and not columns.names and columns.lon is columns.outline is None:
        return hierarchy
    codes = hierarchy.codes(hierarchy.depth)
    finest = texts.column(columns.levels[-1]).combine_chunks()
    lon, lat = _locations(table, columns, find_texts(codes, finest))
    if columns.outline is not None and not is_polygons:
        geometries = polygons.from_wkt(texts.column(columns.outline).to_pylist())
    outlines = None
    if geometries is not None:
        with np.errstate(all="ignore"):  # strange coordinates are refused, not warned of
            whole = polygons.whole_areas(geometries, finest, codes, label)
            outlines = polygons.as_outlines(whole)
            if lon is None:
                lon, lat = polygons.inner_points(whole)
    return hierarchy.with_places(Places(_names(texts, columns, hierarchy), lon, lat, outlines))


@dataclass(frozen=True)
class _Columns:
    """Which column is which: of codes, of the names of each level, of places and outlines."""

    levels: tuple[str, ...]
    names: Mapping[str, str]
    lon: str | None
    lat: str | None
    outline: str | None

    @property
    def texts(self) -> list[str]:
        """All columns but those of locations."""
        outline = [] if self.outline is None else [self.outline]
        return list(dict.fromkeys([*self.levels, *self.names.values(), *outline]))


def _choose(present: Sequence[str], levels: Levels | None) -> _Columns:
    """Find the columns that have a meaning."""
    asked = dict(levels) if isinstance(levels, Mapping) else dict.fromkeys(levels or ())
    for column in [*asked, *filter(None, asked.values())]:
        if column not in present:
            alike = [name for name in present if name.casefold() == column.casefold()]
            hint = f"did you mean {alike[0]!r}? It" if alike else "it"
            raise HierarchyError(
                f"the {_WHAT} has no column {column!r} ({_SAY}); {hint} has {', '.join(present)}"
            )
    free = [column for column in present if column not in asked]
    lon, lat, outline = (_first(free, wanted) for wanted in (LON_NAMES, LAT_NAMES, _OUTLINE))
    if lon is None or lat is None:
        lon = lat = None
    chosen = tuple(asked)
    if levels is None:
        special = {lon, lat, outline, _first(free, (_NAME,))}
        special |= {name for name in free if name.removesuffix(_NAME_OF) in {*free} - {name}}
        # A table of nothing else is a table of codes, whatever they are called.
        chosen = tuple(name for name in present if name not in special) or tuple(present)
        free = [name for name in free if name not in chosen]
    names = {level: column for level, column in asked.items() if column is not None}
    for level in chosen:
        if level not in names and f"{level}{_NAME_OF}" in free:
            names[level] = f"{level}{_NAME_OF}"
    name = _first(free, (_NAME,))
    if chosen and chosen[-1] not in names and name is not None:
        names[chosen[-1]] = name
    lon, lat, outline = (column if column in free else None for column in (lon, lat, outline))
    return _Columns(chosen, names, lon, lat, outline)


def _first(columns: Sequence[str], wanted: Sequence[str]) -> str | None:
    return next((column for column in columns if column.lower() in wanted), None)


def _nested(table: pa.Table, *, is_chosen: bool) -> Hierarchy:
    """The hierarchy of some columns, which the user chose as levels or which just were there."""
    try:
        return Hierarchy.read(table)
    except HierarchyError as problem:
        raise HierarchyError(f"{problem}{_hint(table, is_chosen=is_chosen)}") from None


def _hint(table: pa.Table, *, is_chosen: bool) -> str:
    """Explain the usual mistakes behind columns that do not nest."""
    names = table.column_names
    sizes = [pc.count_distinct(table.column(name)).as_py() for name in names]
    if sizes != sorted(sizes) and sizes[::-1] == sorted(sizes):
        listed = ", ".join(f"{size:,} {name}" for size, name in zip(sizes, names, strict=True))
        return (
            f". Or do the levels go from fine to coarse ({listed})? Give them from coarse to "
            f"fine: {_SAY} {','.join(names[::-1])}"
        )
    if not is_chosen and table.num_rows and table.num_rows in sizes[:-1]:
        last = sizes.index(table.num_rows)
        return (
            f". Or is {', '.join(names[last + 1 :])} not a level? {names[last]!r} tells all areas "
            f"apart: say which columns are levels, {_SAY} {','.join(names[: last + 1])}"
        )
    return ""


def _names(texts: pa.Table, columns: _Columns, hierarchy: Hierarchy) -> dict[str, pa.StringArray]:
    """Names of the areas of each level that has any: the first that is not blank."""
    found = {}
    for number, level in enumerate(hierarchy.level_names, start=1):
        column = columns.names.get(level)
        if column is None:
            continue
        names = tidy(texts.column(column).combine_chunks())
        if (pc.max(pc.binary_length(names)).as_py() or 0) > MAX_NAME:
            raise HierarchyError(
                f"a name in column {column!r} of the {_WHAT} is longer than {MAX_NAME:,} bytes; "
                "shorten it"
            )
        is_known = names.is_valid()
        codes = texts.column(level).combine_chunks().filter(is_known)
        first = pc.index_in(hierarchy.codes(number), value_set=codes)
        named = names.filter(is_known).take(first)
        if named.null_count < len(named):
            found[level] = named
    return found


def _locations(
    table: pa.Table, columns: _Columns, row: NDArray[np.int32]
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
    """Longitudes and latitudes of the finest areas, by the row that each stands in."""
    if columns.lon is None or columns.lat is None:
        return None, None
    lon = degrees(table, columns.lon, MAX_LON, f"the {_WHAT}")[row]
    lat = degrees(table, columns.lat, MAX_LAT, f"the {_WHAT}")[row]
    is_known = ~np.isnan(lon + lat)
    if not is_known.any():
        return None, None
    return np.where(is_known, lon, np.nan), np.where(is_known, lat, np.nan)
