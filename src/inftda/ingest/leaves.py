"""Leaves: how many trips there are at each finest combination of areas, and how to read them.

This is the truth, as the paper's section 3 has it: one count per leaf of the tree, only the
non-zero ones. Nothing here adds noise, so nothing of it may be published; it does not even
print itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from inftda.errors import IngestError, PrivacyError
from inftda.hierarchy import OUTSIDE
from inftda.ingest.bounding import Bounding, fetch_bounded
from inftda.ingest.columns import COUNT_FLAWS, MAX_INT64, Flaw
from inftda.ingest.rows import AUTO, Rows, check_header, how_counted, make_axes
from inftda.ingest.sources import Source, open_source
from inftda.ingest.workspace import Workspace
from inftda.noise.entropy import RandomSource, SecureSource
from inftda.tables import as_numpy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from inftda.hierarchy import Hierarchy
    from inftda.privacy.unit import PrivacyUnit

Unplaceable = Literal["error", "outside", "drop"]


@dataclass(frozen=True, eq=False)
class Leaves:
    """The confidential leaf counts: one entry per leaf with trips, in any order.

    Attributes:
        areas: for each axis, int32 depth-first numbers of the finest areas.
        counts: int64, all above zero; their sum is below 2^63.
    """

    areas: tuple[NDArray[np.int32], ...]
    counts: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"Leaves({len(self.areas)} axes, confidential)"


def read_leaves(  # noqa: PLR0913 - each option is one decision of the custodian
    source: Source,
    axes: Sequence[tuple[str, Hierarchy]],
    *,
    count: str | None = AUTO,
    person: str | None = None,
    unit: PrivacyUnit | None = None,
    unplaceable: Unplaceable = "error",
    outside: str = OUTSIDE,
    random_source: RandomSource | None = None,
    say: Callable[[str], object] | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    spill_directory: str | Path | None = None,
) -> Leaves:
    """Read trips or flows and count them per leaf.

    Args:
        source: path of a CSV (also .gz) or Parquet file, a folder or glob of them, a
            `CsvFile`, an `SqlQuery`, a pandas, polars or pyarrow table, or any Arrow stream.
        axes: the column of each axis and the hierarchy its codes come from. Codes are
            compared as text; whole numbers are written out, so codes with leading zeros must
            be text in the source.
        count: the column that says how many trips a row stands for; None if every row is one
            trip; "auto" takes the column `count` if there is one, and refuses a table with
            another column that looks like counts.
        person: the column that tells persons apart; with it, contributions are bounded to
            what `unit` says. Without it, the unit is the custodian's promise.
        unit: who is protected; needed for `person` and for dropping rows.
        unplaceable: what to do with rows whose code is missing or not in the hierarchy:
            "error", "outside" (they go to the area `outside` of that axis), or "drop".
        outside: code of that area; see `Hierarchy.with_outside`.
        random_source: where the choice of a person's trips comes from; secure by default.
        say: called with what a row was taken for, one trip or a count.
        memory_limit: what DuckDB may hold in memory before it spills to disk, as "4GB".
        threads: how many threads DuckDB uses; all cores by default.
        spill_directory: where to spill; a private directory is made in it and removed again.

    Raises:
        IngestError: the source cannot be read as counts; the message says why.
        PrivacyError: the options would break the privacy promise.
        MissingExtraError: the source needs an optional library.

    Example:
        >>> from inftda.hierarchy import Hierarchy
        >>> towns = Hierarchy.read({"town": ["001", "002"]})
        >>> trips = {"origin": ["001", "001", "002"], "destination": ["002", "002", "002"]}
        >>> leaves = read_leaves(trips, [("origin", towns), ("destination", towns)])
        >>> sorted(zip(*(axis.tolist() for axis in leaves.areas), leaves.counts.tolist()))
        [(0, 1, 2), (1, 1, 1)]

    Privacy:
        Under `substitute` the number of trips is public, and dropping rows would change it,
        so "drop" is refused. Distinct trips may coincide "outside", so without a person
        column that tells which to keep, a unit of several distinct trips is refused there.
    """
    check_policy(axes, person=person, unit=unit, unplaceable=unplaceable)
    with Workspace(
        memory_limit=memory_limit, threads=threads, spill_directory=spill_directory
    ) as workspace:
        table = open_source(source, workspace)
        check_header(table, [name for name, _ in axes], count=count, person=person)
        placed_axes = make_axes(
            table, axes, workspace, outside=outside if unplaceable == "outside" else None
        )
        rows = Rows.of(table, placed_axes, count=count, person=person)
        if say is not None:
            say(how_counted(rows.count_name))
        rows = rows.grouped_once(workspace)
        placed = rows.placed(is_dropping=unplaceable == "drop")
        if person is not None and unit is not None:
            numbers = [axis.number for axis in placed_axes]
            result = fetch_bounded(
                placed,
                numbers,
                table=table,
                workspace=workspace,
                bounding=Bounding(unit, random_source or SecureSource()),
            )
        else:
            sql = rows.counted(placed)
            result = table.attempt(lambda: workspace.fetch(sql))
        *areas, counts = (as_numpy(column.combine_chunks()) for column in result.columns)
        del result
        _check_flaws(areas[0], counts, rows, workspace)
    if not may_be_empty(unit):
        _check_not_empty(counts, table.label, is_dropping=unplaceable == "drop")
    return _make_leaves(areas, counts, table.label)


def may_be_empty(unit: PrivacyUnit | None) -> bool:
    """Whether a table without trips is released like any other.

    Privacy:
        Unless the total is public, an empty table has neighbours that are not empty, and an
        error would tell them apart.
    """
    return unit is not None and not unit.root_is_public


def check_policy(
    axes: Sequence[tuple[str, Hierarchy]],
    *,
    person: str | None,
    unit: PrivacyUnit | None,
    unplaceable: str,
) -> None:
    """Refuse options that do not fit together, before anything is read.

    Raises:
        IngestError: there is no axis, or no such way to treat unplaceable rows.
        PrivacyError: the options would break the privacy promise.
    """
    if not axes:
        raise IngestError("there is no axis to count by; give at least one column and hierarchy")
    if unplaceable not in get_args(Unplaceable):
        raise IngestError(
            f"unplaceable must be one of {', '.join(get_args(Unplaceable))}, got {unplaceable!r}"
        )
    if person is not None and unit is None:
        raise PrivacyError(
            "a person column bounds contributions, but there is no privacy unit that says to "
            "how many trips; give the unit, or leave out the person column"
        )
    if unplaceable == "drop" and (unit is None or unit.neighbours != "add-remove"):
        raise PrivacyError(
            "rows that cannot be placed must not be dropped under neighbours 'substitute', "
            "because that changes the number of trips, which is public; use "
            "unplaceable='outside', or a privacy unit with neighbours 'add-remove'"
        )
    merges_trips = unplaceable == "outside" and person is None
    if merges_trips and unit is not None and unit.distinct and unit.trips > 1:
        raise PrivacyError(
            "trips to different unknown places become the same trip to 'outside', but the privacy "
            "unit says that nobody makes the same trip twice; leave out distinct, list the places "
            "in the areas table, or give the person column, so that no one's trip is kept twice"
        )


def _check_flaws(
    first: NDArray[np.int32], counts: NDArray[np.int64], rows: Rows, workspace: Workspace
) -> None:
    """Report the first kind of flaw there is, with the number of rows that have it."""
    flawed = first < 0
    if not flawed.any():
        return
    tally = np.zeros(len(Flaw) + 1, np.int64)
    np.add.at(tally, -first[flawed], counts[flawed])
    flaw = Flaw(int(np.flatnonzero(tally)[0]))
    lost = rows.describe_lost(workspace) if flaw is Flaw.UNPLACEABLE else ""
    raise IngestError(
        flaw_message(
            flaw, int(tally[flaw]), label=rows.table.label, count_name=rows.count_name, lost=lost
        )
    )


def flaw_message(
    flaw: Flaw, n_rows: int, *, label: str, count_name: str | None, lost: str = ""
) -> str:
    """What is wrong with rows that cannot be counted, and what to do.

    Args:
        flaw: what they have in common.
        n_rows: how many there are.
        label: what the table is called.
        count_name: its count column.
        lost: for rows that cannot be placed, the codes that are unknown.
    """
    is_one = n_rows == 1
    found = f"{'1 row' if is_one else f'{n_rows:,} rows'} of {label}"
    if flaw is Flaw.UNPLACEABLE:
        return (
            f"{found} cannot be placed: {lost}. Add the "
            "areas to the hierarchy, mend the rows, or choose what to do with them (unplaceable)"
        )
    if flaw is Flaw.NOBODY:
        return (
            f"{found} {'names' if is_one else 'name'} no person; give every row a person, or leave "
            "out the person column"
        )
    digits = " in digits, without separators" if flaw is Flaw.TEXT else ""
    return (
        f"{found} {'has' if is_one else 'have'} {COUNT_FLAWS[flaw]} in column {count_name!r}; "
        f"counts must be whole numbers from 0 up{digits} (or choose another count column)"
    )


def _check_not_empty(counts: NDArray[np.int64], label: str, *, is_dropping: bool) -> None:
    if len(counts) == 0:
        raise IngestError(no_rows_message(label, is_dropping=is_dropping))
    if counts.max() == 0:
        raise IngestError(all_zero_message(label))


def _make_leaves(areas: list[NDArray[np.int32]], counts: NDArray[np.int64], label: str) -> Leaves:
    # Summed in halves: each half is exact in int64 whatever the counts are.
    high, low = int((counts >> 32).sum()), int((counts & 0xFFFFFFFF).sum())
    if counts.min(initial=0) < 0 or (high << 32) + low > MAX_INT64:
        raise IngestError(too_many_message(label))
    if counts.min(initial=1) == 0:
        positive = counts > 0
        areas, counts = [axis[positive] for axis in areas], counts[positive]
    return Leaves(tuple(areas), counts)


def no_rows_message(label: str, *, is_dropping: bool) -> str:
    """For a table in which nothing is left to count."""
    rest = "no row that can be placed" if is_dropping else "no rows"
    return f"{label} has {rest}; there is nothing to count"


def all_zero_message(label: str) -> str:
    """For a table in which every count is 0."""
    return f"all counts of {label} are 0; there is nothing to count"


def too_many_message(label: str) -> str:
    """For counts that 64 bits cannot hold."""
    return f"the counts of {label} sum up beyond 2^63 - 1; check the count column"
