"""Tables in memory: of pandas, polars, pyarrow, mappings of columns, and Arrow streams.

Only the columns in use are converted. What a library declares as text or whole numbers goes
to DuckDB as it is; columns without a type of their own are converted cell by cell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pyarrow as pa

from inftda.errors import IngestError
from inftda.reading import cells
from inftda.reading.cells import Cells
from inftda.reading.sources import ARROW_INPUT, RAW_FLAW, Input, Relation, Use

if TYPE_CHECKING:
    from inftda.reading.workspace import Workspace

_LABEL: Final = "the table"
#: What columns should hold, for messages.
_GIVE: Final = {
    "codes": "text or whole numbers",
    "counts": "text or whole numbers",
    "degrees": "numbers",
    "times": "time stamps",
}
#: Types that DuckDB knows, and text of PostgreSQL.
_KNOWN_EXTENSIONS: Final = frozenset({"arrow.uuid", "arrow.json", "arrow.bool8", "arrow.opaque"})


def open_table(table: Any, workspace: Workspace) -> Input:
    """A table in memory, or an Arrow stream.

    Raises:
        IngestError: it is not a table.
    """
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if isinstance(table, Mapping):
        return open_columns([str(name) for name in table], list(table.values()), workspace)
    library = type(table).__module__.partition(".")[0]
    if library in {"pandas", "polars"} and hasattr(table, "collect"):
        raise IngestError(f"a {type(table).__name__} is not computed yet; collect() it first")
    if library in {"pandas", "geopandas"} and hasattr(table, "columns"):
        return open_columns(*_pandas_columns(table), workspace)
    if library == "polars" and hasattr(table, "get_columns"):
        return open_columns(table.columns, table.get_columns(), workspace)
    if isinstance(table, pa.Table):
        return open_columns(table.column_names, table.columns, workspace)
    if isinstance(table, pa.RecordBatchReader):
        return open_stream(table, workspace, label=_LABEL)
    if hasattr(table, "__arrow_c_stream__"):
        return open_stream(pa.RecordBatchReader.from_stream(table), workspace, label=_LABEL)
    raise IngestError(
        f"cannot read trips from a {type(table).__name__}; give a path, a pandas, polars or "
        "pyarrow table, an Arrow stream, or an SqlQuery"
    )


def open_stream(reader: pa.RecordBatchReader, workspace: Workspace, *, label: str) -> Input:
    """A stream of Arrow batches, whose columns have types."""
    names = tuple(reader.schema.names)
    _check_columns(names, label)

    def select(uses: Sequence[Use]) -> Relation:
        for use in uses:
            if _is_foreign(reader.schema.field(use.position).type, workspace):
                raise IngestError(_unfit(use, label))
        positions = [use.position for use in uses]
        types = [reader.schema.field(position).type for position in positions]
        schema = pa.schema(list(zip([use.alias for use in uses], types, strict=True)))
        batches = (
            pa.record_batch([batch.column(position) for position in positions], schema=schema)
            for batch in reader
        )
        workspace.register(ARROW_INPUT, pa.RecordBatchReader.from_batches(schema, batches))
        return Relation(f"FROM {ARROW_INPUT}", {})

    return Input(label, "table", names, select, is_repeatable=False)


def open_columns(
    names: Sequence[str],
    columns: Sequence[Any],
    workspace: Workspace,
    *,
    label: str = _LABEL,
    kind: Literal["table", "xlsx"] = "table",
) -> Input:
    """Columns in memory, by their names."""
    _check_columns(names, label)

    def select(uses: Sequence[Use]) -> Relation:
        workspace.register(ARROW_INPUT, _convert(uses, columns, workspace, label))
        return Relation(f"FROM {ARROW_INPUT}", {})

    return Input(label, kind, tuple(names), select)


def _check_columns(names: Sequence[str], label: str) -> None:
    if not names:
        raise IngestError(f"{label} has no columns; give a table with a row per trip or flow")


def _convert(
    uses: Sequence[Use], columns: Sequence[Any], workspace: Workspace, label: str
) -> pa.Table:
    """The columns in use by their aliases, and the flaws of their cells if there are any."""
    arrays: dict[str, Any] = {}
    flaw = None
    for use in uses:
        # Arrow's message quotes the cell it stumbled over, so the error is raised outside of
        # `except`, where it has no context.
        found = _attempt(lambda use=use: column_cells(columns[use.position], use))  # type: ignore[misc]
        if found is None or _is_foreign(found.values.type, workspace):
            raise IngestError(_unfit(use, label))
        if not {len(array) for array in arrays.values()} <= {len(found.values)}:
            raise IngestError(_unfit(use, label))
        arrays[use.alias] = found.values
        if found.flaw is not None:
            flaw = found.flaw if flaw is None else np.where(flaw > 0, flaw, found.flaw)
    if flaw is not None:
        arrays[RAW_FLAW] = pa.array(flaw)
    return pa.table(list(arrays.values()), names=list(arrays))


def _unfit(use: Use, label: str) -> str:
    return (
        f"column {use.name!r} of {label} cannot be read; give {_GIVE[use.purpose]}, as many in "
        "each column"
    )


def _is_foreign(kind: pa.DataType, workspace: Workspace) -> bool:
    """Whether DuckDB does not know the type, or may mistake its storage for its meaning."""
    if isinstance(kind, pa.BaseExtensionType):
        return kind.extension_name not in _KNOWN_EXTENSIONS
    return not workspace.knows(kind)


def _attempt(action: Callable[[], Cells]) -> Cells | None:
    try:
        return action()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


def column_cells(column: Any, use: Use) -> Cells:
    """A column of any library as Arrow.

    Args:
        column: the column.
        use: what it is for.

    Raises:
        TypeError: it is not a column.
        ValueError: it cannot be converted.
        ArrowException: likewise.
    """
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return Cells(column)
    library = type(column).__module__.partition(".")[0]
    if library == "pandas" and hasattr(column, "dtype"):
        return _pandas_cells(column, use)
    if library == "polars" and hasattr(column, "to_arrow"):
        is_object = str(column.dtype) == "Object"
        return _untyped(column.to_list(), use) if is_object else Cells(column.to_arrow())
    if isinstance(column, np.ndarray):
        return _numpy_cells(column, use)
    if isinstance(column, str | bytes):
        raise TypeError
    return _untyped(list(column), use)


def _untyped(column: Sequence[object], use: Use) -> Cells:
    return cells.convert(column, use.purpose)


def _numpy_cells(column: Any, use: Use) -> Cells:
    if column.dtype.kind == "f" and use.purpose == "codes":
        return cells.codes_from_floats(column.astype(np.float64))
    if column.dtype.kind in "OU":
        return _untyped(column.tolist(), use)
    return Cells(pa.array(column, from_pandas=True))


def _pandas_columns(frame: Any) -> tuple[list[str], list[Any]]:
    """Names and columns of a pandas frame, and those of its index that have names."""
    names = [str(name) for name in frame.columns]
    columns = [frame.iloc[:, i] for i in range(len(names))]
    for level, name in enumerate(frame.index.names):
        if name is not None:
            names.append(str(name))
            columns.append(frame.index.get_level_values(level))
    return names, columns


def _pandas_cells(column: Any, use: Use) -> Cells:
    """A pandas column: whole numbers among blanks are floats there, and text may be objects."""
    dtype = column.dtype
    if str(dtype) == "category":
        return _category_cells(column, use)
    if str(dtype) == "object":
        return _untyped(column.tolist(), use)
    # Of pandas' and numpy's own types only: a float of Arrow was declared as such.
    is_float = str(dtype) in {"float16", "float32", "float64", "Float32", "Float64"}
    if is_float and use.purpose == "codes":
        return cells.codes_from_floats(column.to_numpy(np.float64, na_value=np.nan))
    return Cells(pa.array(column, from_pandas=True))


def _category_cells(column: Any, use: Use) -> Cells:
    """Each category is converted by itself; a cell without one is missing."""
    values = column.cat if hasattr(column, "cat") else column
    numbers = np.asarray(values.codes)
    kinds = _pandas_cells(values.categories, use)
    indices = pa.array(numbers, mask=numbers < 0)
    flaw = None
    if kinds.flaw is not None:
        flaw = np.where(numbers < 0, 0, kinds.flaw[numbers]).astype(np.int8)
    return Cells(kinds.values.take(indices), flaw)
