"""From any table to its leaves, on one machine."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from inftda.errors import IngestError
from inftda.noise.entropy import RandomSource, SecureSource
from inftda.reading import bounding
from inftda.reading.csv_file import CsvFile
from inftda.reading.files import open_csv, open_path
from inftda.reading.flaws import Complaint, Flaw, first_flaw
from inftda.reading.memory import open_table
from inftda.reading.roles import choose_roles
from inftda.reading.rows import Rows
from inftda.reading.sql_query import SqlQuery, open_query
from inftda.reading.workspace import Workspace
from inftda.tables import as_numpy
from inftda.threads import Crew, available_cores
from inftda.truth import Leaves

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from numpy.typing import NDArray

    from inftda.reading.sources import Input, Source
    from inftda.reading.spec import TableSpec


def read_leaves(  # noqa: PLR0913 - each option is one decision of the custodian
    source: Source,
    spec: TableSpec,
    *,
    random_source: RandomSource | None = None,
    say: Callable[[str], object] | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    spill_directory: str | Path | None = None,
) -> Leaves:
    """Read trips or flows and count them per leaf.

    Args:
        source: path of a CSV (also .gz) or Parquet file, a folder or glob of them, a
            `CsvFile`, an `SqlQuery`, a pandas, polars or pyarrow table, a mapping of columns,
            or any Arrow stream.
        spec: what its columns mean.
        random_source: where the choice of a person's trips comes from; secure by default.
        say: called with what a row was taken for, one trip or a count.
        memory_limit: what DuckDB may hold in memory before it spills to disk, as "4GB".
        threads: how many threads DuckDB uses; all cores by default.
        spill_directory: where to spill; a private directory is made in it and removed again.

    Raises:
        IngestError: the source cannot be read as counts; the message says why.
        MissingExtraError: the source needs an optional library.

    Example:
        >>> from inftda.hierarchy import Hierarchy
        >>> towns = Hierarchy.read({"town": ["001", "002"]})
        >>> trips = {"origin": ["001", "001", "002"], "destination": ["002", "002", "002"]}
        >>> spec = TableSpec(axes=(("origin", towns), ("destination", towns)))
        >>> leaves = read_leaves(trips, spec)
        >>> sorted(zip(*(axis.tolist() for axis in leaves.areas), leaves.counts.tolist()))
        [(0, 1, 2), (1, 1, 1)]
    """
    with Workspace(
        memory_limit=memory_limit, threads=threads, spill_directory=spill_directory
    ) as workspace:
        table = open_source(source, workspace)
        roles = choose_roles(table, spec)
        rows = Rows.of(table, roles, spec, workspace)
        rows.register_lookups(workspace)
        if say is not None:
            say(roles.describe())
        fetch = partial(rows.count, workspace)
        if spec.person is not None and spec.unit is not None:
            fetch = partial(
                bounding.fetch_bounded,
                rows.placed(),
                rows.numbers,
                workspace=workspace,
                unit=spec.unit,
                secret=bounding.draw_secret(random_source or SecureSource()),
            )
        result = table.attempt(fetch)
        *areas, counts = Crew(threads or available_cores()).map(_joined, result.columns)
        del result
        complaint = Complaint(label=table.label, spec=spec, count_name=roles.count_name)
        found = _flaws(areas[0], counts)
        complaint.check(found)
        if first_flaw(found) is Flaw.UNPLACEABLE:
            lost = table.attempt(partial(workspace.fetch, rows.lost()))
            codes = zip(*(column.to_pylist() for column in lost.columns), strict=True)
            said = rows.describe_lost((axis, code) for axis, code in codes)
            raise IngestError(complaint.unplaceable(found[Flaw.UNPLACEABLE], said))
    if not spec.may_be_empty:
        _check_not_empty(counts, complaint)
    return Leaves.of(areas, counts)


def _joined(column: pa.ChunkedArray) -> NDArray[Any]:
    """The numbers of a column in one array."""
    if column.num_chunks < 2:
        return as_numpy(column.combine_chunks())
    # Not by Arrow, which would get the room from its own store of memory and keep it.
    return np.concatenate([as_numpy(chunk) for chunk in column.chunks])


def _flaws(first: NDArray[np.int32], counts: NDArray[np.int64]) -> dict[int, int]:
    """How many rows have each flaw: minus the flaw is their first area."""
    is_flawed = first < 0
    if not is_flawed.any():
        return {}
    tally = np.zeros(len(Flaw) + 1, np.int64)
    np.add.at(tally, -first[is_flawed], counts[is_flawed])
    return {int(flaw): int(tally[flaw]) for flaw in np.flatnonzero(tally)}


def _check_not_empty(counts: NDArray[np.int64], complaint: Complaint) -> None:
    if len(counts) == 0:
        raise IngestError(complaint.no_rows())
    if counts.max() == 0:
        raise IngestError(complaint.all_zero())


def open_source(source: Source, workspace: Workspace) -> Input:
    """Make any source known to the workspace.

    Raises:
        IngestError: it cannot be read.
        MissingExtraError: it needs an optional library.
    """
    if isinstance(source, SqlQuery):
        return open_query(source, workspace)
    if isinstance(source, CsvFile):
        return open_csv(source)
    if isinstance(source, str | Path):
        return open_path(source, workspace)
    return open_table(source, workspace)
