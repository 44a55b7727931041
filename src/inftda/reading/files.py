"""Files of trips or flows on this machine: CSV and Parquet, alone or many at once, and Excel."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING, Final

from inftda import excel
from inftda.errors import IngestError
from inftda.reading import csv_file
from inftda.reading.csv_file import CsvFile
from inftda.reading.layouts import check_types, locate
from inftda.reading.memory import open_columns
from inftda.reading.sources import Input, Relation, Use, label_of, select_positions
from inftda.reading.workspace import Workspace, quote
from inftda.tables import CSV_ENDINGS, PARQUET_ENDINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Of files that hold tables.
ENDINGS: Final = CSV_ENDINGS + PARQUET_ENDINGS + excel.ENDINGS


def open_path(path: str | Path, workspace: Workspace) -> Input:
    """What is at a path: a file, a folder or a glob of one kind of files.

    Raises:
        IngestError: it cannot be read.
    """
    files = _find_files(path)
    if _kind(files[0]) == "parquet":
        return _open_parquet(files, label_of(path), workspace)
    if _kind(files[0]) == "xlsx":
        return _open_workbook(files, label_of(path), workspace)
    return _open_csv(files, CsvFile(path))


def open_csv(source: CsvFile) -> Input:
    """As `open_path`, for what is said to be CSV.

    Raises:
        IngestError: it is something else, or cannot be read.
    """
    files = _find_files(source.path)
    if _kind(files[0]) != "csv":
        raise IngestError(f"{label_of(source.path)} is not a CSV file; leave out the encoding")
    return _open_csv(files, source)


def _open_csv(files: Sequence[Path], options: CsvFile) -> Input:
    headers = [
        csv_file.read_header(file, delimiter=options.delimiter, encoding=options.encoding)
        for file in files
    ]
    names, delimiter = headers[0]
    for file, header in zip(files, headers, strict=True):
        if header != headers[0]:
            raise IngestError(
                f"{file.name!r} has a different header from {files[0].name!r}; files that are read "
                "as one table need the same columns in the same order"
            )
    relation = csv_file.relation(
        [_escape(file) for file in files],
        n_columns=len(names),
        delimiter=delimiter,
        encoding=options.encoding,
    )
    return Input(
        label_of(options.path),
        "csv",
        tuple(names),
        lambda uses: Relation(select_positions(uses, relation, len(names)), {}),
        encoding=options.encoding,
    )


def _open_workbook(files: Sequence[Path], label: str, workspace: Workspace) -> Input:
    if len(files) > 1:
        raise IngestError(f"{label} has {len(files)} workbooks; give one, or save them as CSV")
    names, columns = excel.read_sheet(files[0], what=label, error=IngestError)
    return open_columns(names, columns, workspace, label=label, kind="xlsx")


def _open_parquet(files: Sequence[Path], label: str, workspace: Workspace) -> Input:
    def select(uses: Sequence[Use]) -> Relation:
        groups = opened.attempt(lambda: _same_layouts(files, workspace))
        return _join_layouts(groups, uses, workspace)

    opened = Input(label, "parquet", (), select)
    names = opened.attempt(lambda: _parquet_names(files[0], workspace))
    return Input(label, "parquet", names, select)


def _same_layouts(files: Sequence[Path], workspace: Workspace) -> list[list[Path]]:
    """The files in groups that have the same columns of the same types, in order."""
    if len(files) == 1:
        return [list(files)]
    schema = workspace.fetch(
        "SELECT file_name, name, type, converted_type, logical_type, num_children, precision, "  # noqa: S608 - quoted
        f"scale FROM parquet_schema({_listed(files)})"
    )
    layouts: dict[str, list[object]] = {}
    for name, *node in zip(*(column.to_pylist() for column in schema.columns), strict=True):
        layouts.setdefault(name, []).append(node)
    groups: dict[str, list[Path]] = {}
    for file in files:
        layout = layouts.get(str(file), [str(file)])
        groups.setdefault(repr((layout, _folder_names(file))), []).append(file)
    return list(groups.values())


def _join_layouts(
    groups: Sequence[Sequence[Path]], uses: Sequence[Use], workspace: Workspace
) -> Relation:
    """SQL for all files; whole numbers of several widths take the widest.

    Raises:
        IngestError: the files differ in the kinds of the columns in use.
    """
    first = groups[0][0].name
    parts: list[str] = []
    layouts: list[tuple[str, Sequence[str]]] = []
    for files in groups:
        names = _parquet_names(files[0], workspace)
        here = locate(uses, names, files[0].name, first)
        part = select_positions(here, _relation(files), len(names))
        layouts.append((files[0].name, workspace.types(part)))
        parts.append(part)
    check_types(uses, layouts)
    return Relation(" UNION ALL ".join(parts), {})


def _relation(files: Sequence[Path]) -> str:
    return (
        f"read_parquet({_listed(files)}, "
        # Codes in folder names (origin=001) are text, too.
        "hive_types_autocast = false, binary_as_string = true)"
    )


def _listed(files: Sequence[Path]) -> str:
    return f"[{', '.join(quote(_escape(file)) for file in files)}]"


def _parquet_names(file: Path, workspace: Workspace) -> tuple[str, ...]:
    """Column names as they are written: those in the file, then those in folder names."""
    schema = workspace.fetch(
        f"SELECT name, num_children FROM parquet_schema({quote(_escape(file))})"  # noqa: S608 - quoted
    ).to_pylist()
    written = []
    position = 1  # after the root
    while position < len(schema):
        written.append(schema[position]["name"])
        position = _skip(schema, position)
    return tuple(written) + workspace.names(f"FROM {_relation([file])}")[len(written) :]


def _skip(schema: list[dict[str, int]], position: int) -> int:
    """Position after a node of a depth-first schema and all that is nested in it."""
    pending = 1
    while pending:
        pending += (schema[position]["num_children"] or 0) - 1
        position += 1
    return position


def _folder_names(file: Path) -> list[str]:
    """Columns in the names of folders: `origin` for origin=001."""
    return [part.partition("=")[0] for part in file.parts[:-1] if "=" in part]


def _find_files(path: str | Path) -> list[Path]:
    """The files of a path, folder or glob: all of one kind, sorted.

    Raises:
        IngestError: there is none, or they are of an unknown kind or of two kinds.
    """
    root = Path(path)
    if root.is_file():
        files = [root]
    elif root.is_dir():
        files = [file for file in sorted(root.rglob("*")) if _is_data(file, root)]
    elif root.exists():
        raise IngestError(
            f"{str(path)!r} is a pipe or a device, and a table is read more than once; write it to "
            "a file first"
        )
    else:
        files = sorted(Path(name) for name in glob.glob(str(path), recursive=True))  # noqa: PTH207 - Path.glob refuses absolute patterns
        files = [file for file in files if file.is_file()]
    if not files:
        what = "no CSV or Parquet file in the folder" if root.is_dir() else "no file"
        raise IngestError(f"there is {what} {str(path)!r}; check the path")
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1:
        both = "CSV and Parquet" if kinds == {"csv", "parquet"} else "workbooks and other"
        raise IngestError(f"{str(path)!r} holds both {both} files; keep one kind")
    return files


def _is_data(file: Path, folder: Path) -> bool:
    """Whether a file in a folder is meant to be read: not hidden, not `_SUCCESS` and the like."""
    is_hidden = any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    return not is_hidden and file.is_file() and _has_ending(file)


def _has_ending(file: Path) -> bool:
    return file.name.lower().endswith(ENDINGS)


def _kind(file: Path) -> str:
    if not _has_ending(file):
        raise IngestError(f"{file.name!r} has an unknown ending; use one of {', '.join(ENDINGS)}")
    name = file.name.lower()
    if name.endswith(excel.ENDINGS):
        return "xlsx"
    return "parquet" if name.endswith(PARQUET_ENDINGS) else "csv"


def _escape(file: Path) -> str:
    """A path as a DuckDB pattern that matches nothing but itself."""
    return glob.escape(str(file))
