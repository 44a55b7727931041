"""Public totals of areas: how many trips start and end in each, from a small table."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inftda.errors import InftdaError
from inftda.hierarchy import Hierarchy
from inftda.tables import read_strings

Numbers = NDArray[np.int64] | NDArray[np.float64]


def read_area_numbers(
    source: Any,
    areas: Hierarchy,
    columns: Sequence[str],
    *,
    optional: Sequence[str] = (),
    what: str = "totals table",
) -> dict[str, Numbers]:
    """Columns of numbers, one for each finest area, in the order of the areas.

    Args:
        source: a file or table with a column named after the finest level.
        areas: the areas; the table must have a row for each, and no other.
        columns: columns that must be there.
        optional: columns that may be.
        what: what to call the table in messages.

    Returns:
        Each column: whole numbers if all are written so.

    Raises:
        InftdaError: a column or an area is missing, or a cell is not a number from 0 up.
    """
    finest = areas.level_name(areas.depth)
    table = read_strings(_written_out(source), what=what, error=InftdaError)
    wanted = [*columns, *(name for name in optional if name in table.column_names)]
    for name in (finest, *wanted):
        if name not in table.column_names:
            raise InftdaError(
                f"the {what} has no column {name!r}; it must have {', '.join((finest, *columns))}, "
                f"and has {', '.join(table.column_names)}"
            )
    index = pc.index_in(areas.codes(areas.depth), value_set=table.column(finest).combine_chunks())
    if index.null_count or table.num_rows != len(index):
        raise InftdaError(
            f"the {what} must have one row for each of the {len(index):,} areas of level "
            f"{finest!r}, and no other"
        )
    return {name: _numbers(table.column(name), index, name, what) for name in wanted}


def _written_out(source: Any) -> Any:
    """A table in memory with its decimal numbers as text; they are totals here, and not codes."""
    if isinstance(source, Mapping):
        source = pa.table(dict(source))
    if not isinstance(source, pa.Table):
        return source
    columns = [
        column.cast(pa.string()) if pa.types.is_floating(column.type) else column
        for column in source.columns
    ]
    return pa.Table.from_arrays(columns, names=source.column_names)


def _numbers(column: pa.ChunkedArray, index: pa.Array, name: str, what: str) -> Numbers:
    cells = column.combine_chunks().take(index)
    try:
        whole = not pc.any(pc.match_substring_regex(cells, "[.eE]")).as_py()
        numbers = np.asarray(cells.cast(pa.int64() if whole else pa.float64()))
    except pa.ArrowInvalid:
        raise InftdaError(f"column {name!r} of the {what} must be numbers") from None
    if cells.null_count or not np.isfinite(numbers).all() or (numbers < 0).any():
        raise InftdaError(f"column {name!r} of the {what} must be numbers from 0 up")
    return numbers
