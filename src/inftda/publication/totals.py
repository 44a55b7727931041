"""Totals that were measured across the tree, as they are published in `totals.parquet`.

For every area of some levels of each axis: how many trips it has in all, with the noise that
the manifest states and nothing done to it since. So they are unbiased, may be negative, and
tell what the sum of released flows is off by: if m is the measured and S the released sum,
S is off by no more than |S - m| and the error of m.
"""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from inftda.errors import ReleaseError
from inftda.lattice import Table, coarsest_equal, off_tree_tables
from inftda.noise.quantiles import half_width
from inftda.privacy.spending import ReleasePlan
from inftda.publication.inventory import DAMAGED, TOTALS_FILE
from inftda.publication.parquet_file import (
    Shape,
    check_written_again,
    lists_others,
    opened,
    row_groups,
)
from inftda.tables import as_arrow, repeated, texts
from inftda.tree import Axis, Tree, TreeLevel

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inftda.mechanisms.base import MeasuredTotals

SCHEMA: Final = pa.schema(
    [
        pa.field("axis", pa.string(), nullable=False),
        pa.field("level", pa.string(), nullable=False),
        pa.field("area", pa.string(), nullable=False),
        pa.field("measured", pa.int64(), nullable=False),
        pa.field("sigma", pa.float64(), nullable=False),
    ]
)
#: Sums of no more noisy numbers than this are nearly as good as one.
_FEW: Final = 20


def planned_totals(tree: Tree, plan: ReleasePlan) -> list[tuple[Table, float]]:
    """Tables of totals that a plan measures, and the noise scale of each."""
    planned = {table.depths: table.sigma2 for table in plan.tables}
    return [
        (table, math.sqrt(sigma2))
        for table in off_tree_tables(tree)
        if table.across is None and (sigma2 := planned.get(table.depths)) is not None
    ]


def write_totals(folder: Path, measured: "Iterable[MeasuredTotals]") -> None:
    """Write what was measured, if anything was."""
    parts = [
        _rows(totals.table, math.sqrt(totals.sigma2), as_arrow(totals.value)) for totals in measured
    ]
    if parts:
        save_totals(folder / TOTALS_FILE, pa.concat_tables(parts))


def save_totals(file: Path | pa.NativeFile, totals: pa.Table) -> None:
    """Write the file: it follows from the rows, however they came together."""
    pq.write_table(totals.combine_chunks(), file, compression="zstd")


def read_totals(folder: Path, tree: Tree) -> pa.Table | None:
    """The totals of a release folder; None if it has none.

    Raises:
        ReleaseError: they cannot be read, or the file holds anything else.
    """
    path = folder / TOTALS_FILE
    if not path.exists():
        return None
    known, shape = _texts(tree), _shape(tree)
    parts = []
    with opened(path, shape) as file:
        if file.metadata.num_rows > _n_areas(tree):
            raise shape.fail(f"has {file.metadata.num_rows:,} rows, more than there are areas")
        for part in row_groups(file, shape):
            if any(map(lists_others, part.columns, known)):
                raise shape.fail("names other axes, levels or areas than the release has")
            parts.append(part.cast(SCHEMA))
    return pa.concat_tables(parts) if parts else SCHEMA.empty_table()


def _shape(tree: Tree) -> Shape:
    return Shape.of(TOTALS_FILE, SCHEMA, _texts(tree))


def _n_areas(tree: Tree) -> int:
    """Areas of all levels of all axes."""
    axes = [axis.hierarchy for axis in tree.axes]
    return sum(areas.n_areas(level) for areas in axes for level in range(1, areas.depth + 1))


def _texts(tree: Tree) -> tuple[pa.StringArray, pa.StringArray, pa.StringArray]:
    """What the columns of text may hold: names of axes, names of levels, codes of all levels."""
    axes = {axis.hierarchy for axis in tree.axes}  # most have both ends in common
    codes = [areas.codes(level) for areas in axes for level in range(1, areas.depth + 1)]
    levels = [name for areas in axes for name in areas.level_names]
    names = [axis.name for axis in tree.axes]
    return texts(names), texts(levels), pa.concat_arrays(codes)


def check_totals(totals: pa.Table, tree: Tree, plan: ReleasePlan) -> None:
    """Compare areas and noise of a file of totals with those of the plan.

    Raises:
        ReleaseError: an area is missing, unknown or listed twice, or the noise is another one.
    """
    expected = _expected(tree, plan)
    stated = [name for name in SCHEMA.names if name != "measured"]
    if not totals.select(stated).equals(expected.select(stated)):
        raise ReleaseError(
            f"{TOTALS_FILE} must list every area of the levels that were measured across, once, "
            f"with the noise that the manifest states; {DAMAGED}"
        )


def check_totals_file(file: Path, totals: pa.Table, tree: Tree) -> None:
    """Compare the file with one of the same rows.

    Raises:
        ReleaseError: it was written in another way.
    """
    save_totals(sink := pa.BufferOutputStream(), totals)
    check_written_again(file, sink.getvalue(), _shape(tree))


def totals_at(totals: pa.Table, axis: Axis, level: int) -> tuple[pa.Array, float]:
    """Measured totals of all areas of a level, in their order, and the noise scale.

    Raises:
        ReleaseError: they were not measured.
    """
    # A level that splits nothing has the totals of the one above it.
    name = axis.hierarchy.level_name(coarsest_equal(axis)[level])
    axes, levels = (np.array(totals.column(column)) for column in ("axis", "level"))
    rows = totals.take(np.flatnonzero((axes == axis.name) & (levels == name)))
    if len(rows) != axis.hierarchy.n_areas(level) or level == 0:
        measured = dict.fromkeys(zip(axes.tolist(), levels.tolist(), strict=True))
        known = ", ".join(f"{one} {of}" for one, of in measured)
        raise ReleaseError(
            f"totals of {axis.name} {axis.hierarchy.level_name(level)} were not measured across "
            f"the tree; those of {known} were. For others, sum up the flows"
        )
    return rows.column("measured").combine_chunks(), rows.column("sigma")[0].as_py()


def intervals(areas: pa.Array, released: pa.Array, measured: pa.Array, sigma: float) -> pa.Table:
    """What measured totals say of released sums.

    Returns:
        For each area the released sum, the measured total and its sigma, the interval from
        `low` to `high` that holds the true total with 95 % probability, and `max_error`, which
        the released sum is off by at most with 95 % probability.
    """
    half, m = half_width(sigma), np.asarray(measured)
    return pa.table(
        {
            "area": areas,
            "released": released,
            "measured": measured,
            "sigma": np.full(len(m), sigma),
            "low": np.maximum(m - half, 0),
            "high": np.maximum(m + half, 0),
            "max_error": np.abs(np.asarray(released) - m) + half,
        }
    )


def sums_up_many(tree: Tree, depths: "Sequence[int]") -> bool:
    """Whether a number at these levels is the sum of many that the tree has noise on.

    The coarsest level of the tree that is as fine on every axis has the numbers that add up to it.
    """
    for level in tree.levels:
        if all(fine >= at for fine, at in zip(level.depths, depths, strict=True)):
            return level.n_nodes > _FEW * TreeLevel(0, None, tree.axes, tuple(depths)).n_nodes
    return False


def unmeasured_totals(tree: Tree, plan: ReleasePlan) -> dict[str, list[str]]:
    """Totals across the tree whose errors are not known: axis to names of levels.

    None where they were measured, where noise is too little to matter, and for mechanisms that
    do not go down the tree. Totals that sum up a few numbers of the tree are not among them.
    """
    noise = {level.index: level.sigma2 for level in plan.levels}
    if plan.tables or any(level.index not in noise for level in tree.splitting_levels):
        return {}
    if min(sigma2 or 0 for sigma2 in noise.values()) < 1:
        return {}
    found: dict[str, list[str]] = {}
    for table in off_tree_tables(tree):
        if table.across is None and sums_up_many(tree, table.depths):
            axis = table.level.axes[table.level.axis]
            level = axis.hierarchy.level_name(table.depths[table.level.axis])
            found.setdefault(axis.name, []).append(level)
    return found


def across_words(tree: Tree, plan: ReleasePlan) -> str:
    """What is measured across the tree, or why nothing is and which totals not to use."""
    if plan.rho is None:
        return ""
    if not plan.across:
        return _unmeasured_words(unmeasured_totals(tree, plan))
    if not plan.tables:
        has_any = bool(off_tree_tables(tree))
        why = "noise scales below 1 leave" if has_any else "a tree of one axis has"
        return f"nothing is measured across the tree: {why} nothing to gain there"
    share = sum(float(table.rho) for table in plan.tables if table.rho is not None)
    known = ", ".join(
        f"{_level_of(table)} \N{PLUS-MINUS SIGN}{half_width(sigma):,}"
        for table, sigma in planned_totals(tree, plan)
        if table.is_finest_one_way
    )
    return (
        f"{100 * share / float(plan.rho):.2g} % of the budget measures totals of areas across the "
        f"tree, each measured to within (95 %): {known}; sums of flows come near these"
    )


def _unmeasured_words(totals: dict[str, list[str]]) -> str:
    if not totals:
        return ""
    known = " and ".join(f"{axis} ({', '.join(levels)})" for axis, levels in totals.items())
    return (
        f"nothing is measured across the tree: do not use totals of {known}, where errors add "
        "up; --across measures them"
    )


def _expected(tree: Tree, plan: ReleasePlan) -> pa.Table:
    """All rows that a plan measures, with zeros for what was measured."""
    parts = [
        _rows(table, sigma, as_arrow(np.zeros(table.n_nodes, np.int64)))
        for table, sigma in planned_totals(tree, plan)
    ]
    return pa.concat_tables(parts) if parts else SCHEMA.empty_table()


def _level_of(table: Table) -> str:
    """Axis and level of a one-way table."""
    axis = table.level.axes[table.level.axis]
    return f"{axis.name} {axis.hierarchy.level_name(table.depths[table.level.axis])}"


def _rows(table: Table, sigma: float, measured: pa.Array) -> pa.Table:
    """Rows of the file for one table."""
    axis = table.level.axes[table.level.axis]
    depth = table.depths[table.level.axis]
    n = table.n_nodes
    columns = [
        repeated(axis.name, n),
        repeated(axis.hierarchy.level_name(depth), n),
        axis.hierarchy.codes(depth),
        measured,
        as_arrow(np.full(n, sigma)),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)
