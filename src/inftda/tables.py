"""Any table in, Arrow out: files, DataFrames, mappings.

Codes are strings and stay as they are written: "001001" keeps its zeros.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from inftda.errors import InftdaError

#: Endings of files that hold comma-separated text; DuckDB unpacks .gz by itself.
CSV_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")
PARQUET_ENDINGS = (".parquet", ".pq")


def read_strings(source: Any, *, what: str, error: type[InftdaError]) -> pa.Table:
    """A small table with every column as strings.

    Args:
        source: path to a CSV or Parquet file, any object with the Arrow stream interface
            (pandas, polars, pyarrow), or a mapping of column name to values.
        what: name of the table for error messages.
        error: the class of error to raise.
    """
    if isinstance(source, str | Path):
        table = _read_file(Path(source), what=what, error=error)
    elif isinstance(source, Mapping):
        table = pa.table(dict(source))
    elif isinstance(source, pa.Table):
        table = source
    elif hasattr(source, "__arrow_c_stream__"):
        table = pa.table(source)
    else:
        raise error(
            f"the {what} is a {type(source).__name__}; give a path to a CSV or Parquet file, "
            "or a pandas, polars or pyarrow table"
        )
    return _as_strings(table, what=what, error=error)


def _read_file(path: Path, *, what: str, error: type[InftdaError]) -> pa.Table:
    import duckdb  # noqa: PLC0415 - 0.1 s that a mapping or DataFrame need not pay

    if not path.exists():
        raise error(f"there is no file {str(path)!r} (the {what}); check the path")
    name = path.name.lower()
    with duckdb.connect() as connection:
        try:
            if name.endswith(PARQUET_ENDINGS):
                return connection.read_parquet(str(path)).to_arrow_table()
            if name.endswith(CSV_ENDINGS):
                return connection.read_csv(
                    str(path), header=True, all_varchar=True
                ).to_arrow_table()
        except duckdb.Error as problem:
            first_line = str(problem).splitlines()[0]
            raise error(f"cannot read {str(path)!r} (the {what}): {first_line}") from None
    raise error(
        f"{path.name!r} (the {what}) has an unknown ending; use {', '.join(CSV_ENDINGS[:3])} "
        f"or {PARQUET_ENDINGS[0]}"
    )


def _as_strings(table: pa.Table, *, what: str, error: type[InftdaError]) -> pa.Table:
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_floating(column.type):
            raise error(
                f"column {name!r} of the {what} holds decimal numbers; codes must be text or "
                "whole numbers (a column with blanks often turns into decimals: read it as text)"
            )
        columns.append(pc.cast(column, pa.string()))
    return pa.table(columns, names=table.column_names)
