"""JSON of many rows at once: texts are escaped once for each area, rows are joined as columns."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inftda.tables import as_arrow

#: Digits after the point of a degree: a tenth of a metre.
DIGITS = 6
#: Rows that are texts in memory at a time.
_ROWS = 1 << 16
_TEXT = pa.large_string()


def quoted_texts(texts: pa.StringArray, numbers: NDArray[np.int32]) -> pa.StringArray:
    r"""The text of each row by the number of its area, as JSON has it.

    >>> quoted_texts(pa.array(["a", 'say "b"']), np.array([1, 0], np.int32)).to_pylist()
    ['"say \\"b\\""', '"a"']
    """
    quoted = [json.dumps(text, ensure_ascii=False) for text in texts.to_pylist()]
    return pa.array(quoted, pa.string()).take(as_arrow(numbers))


def degrees(values: NDArray[np.float64]) -> pa.Array:
    """Longitudes or latitudes with as many digits as anybody needs."""
    return as_arrow(np.round(values, DIGITS) + 0.0)  # and no -0


def joined(*parts: object) -> pa.StringArray:
    """Columns and constant texts side by side, row by row.

    >>> joined("[", pa.array([1, None]), "]").to_pylist()
    ['[1]', '[null]']
    """
    columns = [
        pa.scalar(part, _TEXT) if isinstance(part, str) else _as_texts(part) for part in parts
    ]
    return pc.binary_join_element_wise(*columns, pa.scalar("", _TEXT))


def _as_texts(column: object) -> pa.Array:
    whole: Any = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return pc.fill_null(whole.cast(_TEXT), "null")


def write_rows(path: Path, before: str, rows: pa.StringArray, after: str) -> None:
    """Write texts with commas between them, and what stands before and after."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(before)
        for start in range(0, len(rows), _ROWS):
            file.write(",\n" if start else "\n")
            file.write(",\n".join(rows.slice(start, _ROWS).to_pylist()))
        file.write(after)
