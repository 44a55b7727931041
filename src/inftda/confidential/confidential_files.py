"""Files of confidential figures: a folder for their owner only, never in or beside a release.

Each file is marked in its name and its content, and is readable by its owner only.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from inftda.errors import InftdaError, ReleaseError
from inftda.planning.accuracy import NOTICE, SizeMeasures
from inftda.util.files import check_unpublished, whole_file
from inftda.util.tabular import disarmed_table

#: Writes a page to the path it is given.
Writer = Callable[[Path], object]


def table_of(rows: Iterable[Mapping[str, Any]], kind: type, **before: type) -> pa.Table:
    """Measures as a table, marked as confidential.

    Its columns are the fields of `kind` except nested measures, after those of `before`.
    """
    known = list(rows)
    declared = {**before, **get_type_hints(kind)}
    columns = {
        name: _column([row[name] for row in known], {members, *get_args(members)})
        for name, members in declared.items()
        if SizeMeasures not in get_args(members)
    }
    # Many CSV readers do not accept comment lines, so the notice is a column.
    columns["notice"] = pa.array([NOTICE] * len(known), pa.string())
    return pa.table(columns).replace_schema_metadata({"notice": NOTICE})


def _column(values: list[Any], kinds: set[Any]) -> pa.Array:
    """Convert the values of one field to Arrow."""
    if str in kinds:
        return pa.array(values, pa.string())
    # Levels with 2^63 possible cells and more are known by their size only roughly.
    if float in kinds or any(value is not None and value >= 2**63 for value in values):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array(values, pa.int64())


def write_confidential(
    out: str | Path,
    tables: Mapping[str, pa.Table],
    summary: tuple[str, dict[str, Any]],
    page: tuple[str, Writer] | None,
) -> tuple[Path, ...]:
    """Write files to a separate folder, readable by the owner only.

    Each table is written as CSV and as Parquet, the summary as JSON.
    """
    folder = Path(out)
    check_unpublished(folder)
    if folder.is_symlink():  # a link could lead confidential files elsewhere
        raise ReleaseError(f"{str(folder)!r} is a link; give a folder that is not a link")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise ReleaseError(f"cannot make the folder {str(folder)!r}: {problem.strerror}") from None
    writers: dict[str, Writer] = {}
    for name, table in tables.items():
        writers[f"{name}.csv"] = partial(pa_csv.write_csv, disarmed_table(table))
        writers[f"{name}.parquet"] = partial(pq.write_table, table)
    name, data = summary
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    writers[name] = partial(Path.write_text, data=text, encoding="utf-8")
    writers |= dict([page] if page is not None else [])
    for name, write in writers.items():
        with whole_file(folder / name, mode=0o600) as unfinished:
            write(unfinished)
    return tuple(folder / name for name in writers)


def check_output(out: str | Path | None, *, html: bool) -> None:
    """Refuse a page without a folder, and a folder in a release, before the truth is read."""
    if out is not None:
        check_unpublished(Path(out))
    elif html:
        raise InftdaError("a page needs a folder to be written to; give `out=`")
