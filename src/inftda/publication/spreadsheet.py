"""CSV for people: what a spreadsheet would take for a formula is shown as the text it is.

A name such as `=HYPERLINK(...)` is run by spreadsheets when somebody opens the file. An
apostrophe in front makes it text. Numbers stay as they are.
"""

import re
from typing import Final

import pyarrow as pa

#: What a spreadsheet may leave out where a cell begins: blanks, control characters, and others
#: that nobody sees, such as a byte order mark.
_UNSEEN: Final = r"[\s\x00-\x1f\x7f-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]*"
#: Where a cell begins for a spreadsheet, whichever delimiter it assumes, before a formula.
_FORMULA: Final = re.compile(rf"""(^|[;,|\t\r\n"])({_UNSEEN})(?=[=+\-@\uff1d\uff0b\uff0d\uff20])""")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+([.,][0-9]+)*")


def disarmed(text: str) -> str:
    """A cell that no spreadsheet runs.

    >>> disarmed("=1+1"), disarmed("a;@b"), disarmed("-12"), disarmed("Aix-en-Provence")
    ("'=1+1", "a;'@b", '-12', 'Aix-en-Provence')
    """
    return text if _NUMBER.fullmatch(text) else _FORMULA.sub(r"\1\2'", text)


def disarmed_table(table: pa.Table) -> pa.Table:
    """A table whose texts and column names no spreadsheet runs."""
    columns = []
    for column in table.columns:
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            listed = column.cast(pa.string()).combine_chunks().dictionary_encode()
            safe = [disarmed(text) for text in listed.dictionary.to_pylist()]
            column = pa.array(safe, pa.string()).take(listed.indices)  # noqa: PLW2901 - its text
        columns.append(column)
    return pa.Table.from_arrays(columns, names=[disarmed(name) for name in table.column_names])
