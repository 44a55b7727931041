"""CSV files: the header is read here, the rows by DuckDB, and nothing is guessed from rows.

Every cell stays the text that is written, so "001001" keeps its zeros. A guess from the first
rows (types, quotes, comments) can be wrong further down, so the only thing that is inferred is
the separator, from the header.
"""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from inftda.errors import IngestError
from inftda.reading.workspace import quote
from inftda.tables import split_header

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: What we call an encoding -> what Python and DuckDB call it. DuckDB has no others built in.
ENCODINGS: Final = {
    "utf-8": ("utf-8-sig", "utf-8"),
    "utf-16": ("utf-16", "utf-16"),
    "latin-1": ("latin-1", "latin-1"),
}
MAX_HEADER: Final = 1 << 20
#: Bytes of a line, quoted line ends included; it is as much as DuckDB reads at once anyway.
MAX_LINE: Final = 32_000_000
#: How Parquet begins; the byte after the four letters never occurs in a CSV header.
_PARQUET: Final = re.compile(r"PAR1[\x00-\x08\x0e-\x1f]")


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A CSV file whose delimiter or encoding must be given.

    Attributes:
        path: file, folder or glob; `.gz` is unpacked on the way.
        delimiter: one character; without it the one of , ; tab | that splits the header most.
        encoding: utf-8 (with or without a byte order mark), utf-16 or latin-1.

    >>> CsvFile("trips.csv", delimiter=";", encoding="ISO-8859-1").encoding
    'latin-1'
    """

    path: str | Path
    delimiter: str | None = None
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        """Check what can be checked without the file."""
        object.__setattr__(self, "encoding", _encoding_named(self.encoding))
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise IngestError(f"delimiter must be one character, got {self.delimiter!r}")


def _encoding_named(name: str) -> str:
    """The key of `ENCODINGS` for any of the names an encoding goes by."""
    with suppress(LookupError, TypeError, ValueError):
        meant = codecs.lookup(name)
        for known in ENCODINGS:
            if codecs.lookup(known).name == meant.name:
                return known
    raise IngestError(
        f"encoding must be one of {', '.join(ENCODINGS)}, got {name!r}; convert the file to UTF-8 "
        "(for example with iconv)"
    )


def read_header(path: Path, *, delimiter: str | None, encoding: str) -> tuple[list[str], str]:
    """Column names of a CSV file, and the separator.

    Raises:
        IngestError: the file is empty or cannot be read.
    """
    label = repr(path.name)
    line = _first_line(path, label, encoding)
    if not line.strip():
        raise IngestError(f"{label} is empty; give a table with a header and rows")
    return split_header(line, delimiter)


def _first_line(path: Path, label: str, encoding: str) -> str:
    codec, _ = ENCODINGS[encoding]
    opener = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opener(path, "rb") as raw, io.TextIOWrapper(raw, codec) as handle:
            refuse_parquet(raw.read(8).decode("latin-1"), label)
            raw.seek(0)
            line = handle.readline(MAX_HEADER)
    except UnicodeError:
        raise IngestError(wrong_encoding(label, encoding)) from None
    except (OSError, EOFError, zlib.error):
        raise IngestError(f"cannot read {label}: {DAMAGED}") from None
    if len(line) == MAX_HEADER:
        raise IngestError(f"the first line of {label} has no end; is this a CSV file?")
    return line.rstrip("\r\n")


def refuse_parquet(start: str, label: str) -> None:
    """Refuse a Parquet file whose name says CSV.

    Args:
        start: the first few characters of the file.
        label: what it is called.

    Raises:
        IngestError: it is one.
    """
    if _PARQUET.match(start):
        raise IngestError(f"{label} is a Parquet file; call it .parquet, and give no encoding")


def relation(paths: Sequence[str], *, n_columns: int, delimiter: str, encoding: str) -> str:
    """SQL for the rows of CSV files, all columns as text.

    Args:
        paths: the files, with DuckDB's wildcards escaped.
        n_columns: how many columns the header has.
        delimiter: the separator.
        encoding: a key of `ENCODINGS`.
    """
    files = ", ".join(quote(path) for path in paths)
    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(n_columns))
    return (
        f"read_csv([{files}], auto_detect = false, header = true, delim = {quote(delimiter)}, "
        f"quote = '\"', escape = '\"', encoding = {quote(ENCODINGS[encoding][1])}, "
        f"max_line_size = {MAX_LINE:d}, buffer_size = {MAX_LINE:d}, columns = {{{columns}}})"
    )


DAMAGED: Final = "it is damaged or cut off, or not readable; check the file and its permissions"


def wrong_encoding(label: str, encoding: str) -> str:
    """The message for a file that is not in the encoding given."""
    return (
        f"{label} is not {encoding} text; give its encoding ({', '.join(ENCODINGS)}) with "
        "--encoding, or CsvFile in Python, or convert it to UTF-8"
    )


def explain(message: str, label: str, encoding: str) -> str:
    """What is wrong with a CSV file, from DuckDB's message, without the row it quotes."""
    if "nicode" in message or "not utf-8" in message:
        return wrong_encoding(label, encoding)
    line = re.search(r"CSV Error on Line: (\d+)", message)
    if line is None:
        return f"cannot read {label}: {DAMAGED}"
    where = f"line {line[1]} of {label}"
    if "Maximum line size" in message:
        return (
            f"{where} is longer than {MAX_LINE // 10**6} MB; shorten its cells, leave out the "
            "column that holds so much, or write the table as Parquet"
        )
    if "unterminated quote" in message:
        return f"{where} opens a quote that is never closed; close it"
    if "Expected Number of Columns" in message:
        return f"{where} has a different number of cells from the header; correct that line"
    return f"{where} is not valid CSV; correct that line"
