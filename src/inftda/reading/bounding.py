# ruff: noqa: S608 - the SQL here is made of names that this package gives, never of input
"""Contribution bounding: no person moves the counts by more than the privacy unit states.

Bounding comes after rows are placed or dropped, so it applies to the rows that are kept: a dropped
trip does not push out one that could be counted, and a trip to the outside area counts like any
other.

Rows are sorted by person and leaf, on disk where they do not fit into memory, and come in parts
that hold all rows of their persons. Of a person with more than m trips, m are drawn one after the
other, each uniformly from those that are left: the trip at position

    w mod (trips left), where w = first 64 bits of AES-256(key, (person, j)), j = 0, ..., m - 1

and positions follow the order of the leaves. Where a person has one trip for each area of an axis,
one leaf of each area is drawn in this way with j = 2^63 + area, and then m of these areas, so that
areas in which the person has many trips are not preferred.

The key is 256 fresh bits from the secure source and is discarded after the reading. To anyone who
does not know it, blocks of AES at different inputs are as good as independent uniform numbers. The
remainder of w for t trips differs from a uniform number by less than t / 2^64, so every set of m
trips of a person is equally likely up to this difference. The input names the person by a 64-bit
hash of the id (FNV-1a). If two persons have the same hash, the same w are used for both; the draws
of each of them are still uniform.

The trips kept of a person depend on the key and on this person's rows only: not on the order of the
rows, not on other persons, and not on how the rows are split into parts. So bounding is 1-stable,
and a seeded source repeats it, on one machine and on a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from inftda.reading.meaning import MAX_INT64, Flaw
from inftda.util.kernels import kernel
from inftda.util.tabular import as_arrow, as_numpy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from inftda.noise.bits import RandomSource
    from inftda.privacy.unit import Unit

#: Label of the stream that the key is taken from ("bound" in ASCII).
STREAM_LABEL: Final = 0x626F756E64
#: Largest number of rows of a part, unless one person has more.
PART_ROWS: Final = 1 << 20
#: Number of trips that are drawn at once.
MOST_DRAWS: Final = 1 << 20
#: First number of the draws that choose a trip of an area.
_OF_AREAS: Final = np.uint64(1 << 63)


def draw_key(source: RandomSource) -> bytes:
    """Draw a key of 256 fresh random bits for one table."""
    return source.bits(STREAM_LABEL).words(4).tobytes()


def gathered(placed: str, areas: Sequence[str]) -> str:
    """SQL for each person's trips between the same areas: `person`, areas and `n`.

    Applying it to parts of the table and again to the results gives the same as applying it once.
    `placed` is SQL for rows as `Rows.placed` gives them.
    """
    leaf = ", ".join(areas)
    trips = f"CASE WHEN {areas[0]} < 0 THEN sum(n) ELSE least(sum(n), {MAX_INT64}) END"
    return (
        f"SELECT person, {leaf}, CAST({trips} AS BIGINT) AS n FROM ({placed}) "
        f"GROUP BY person, {leaf}"
    )


def sort_keys(areas: Sequence[str], once: str | None) -> list[str]:
    """Columns by which rows are sorted, ascending, before they are bounded."""
    return ["person", *([once] if once else []), *(area for area in areas if area != once)]


def by_person(batches: Iterable[pa.RecordBatch], most: int = PART_ROWS) -> Iterator[pa.Table]:
    """Parts of about `most` rows, of whole persons; batches are sorted by `person`, nulls first."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(part.num_rows for part in held) < most:
            continue
        table = pa.Table.from_batches(held)
        last = table["person"][-1]
        # Rows without a person are flaws, which may be cut anywhere.
        cut = pc.index(table["person"], last).as_py() if last.is_valid else table.num_rows
        if cut:
            yield table.slice(0, cut)
            held = table.slice(cut).to_batches()
    if held:
        yield pa.Table.from_batches(held)


def bounded(
    part: pa.Table, areas: Sequence[str], *, once: str | None, unit: Unit, key: bytes
) -> pa.Table:
    """Count trips per leaf, at most `unit.trips` of each person.

    Leaves may be listed several times. Flawed rows are passed through; persons without exactly the
    unit's number of trips, or with two where there may be one, are counted as `Flaw.INEXACT` if the
    total is public.

    Args:
        part: columns `person`, areas and `n`, sorted by `sort_keys`; all rows of its persons. Rows
            without a person are flawed.
        areas: names of the columns with area numbers.
        once: the column of the axis that a person has one trip for each area of, if there is one.
        unit: the privacy unit.
        key: of `draw_key`.

    Privacy:
        Each person adds at most `unit.trips` to the sum of all counts, to different leaves if
        the unit is `distinct`, and to one for each area of `once`; whether a trip is kept depends
        on the same person's trips only, so bounding is 1-stable and costs no budget.
    """
    names = [*areas, "n"]
    n_flawed = part["person"].null_count
    flawed = part.slice(0, n_flawed).select(names)
    part = part.slice(n_flawed).combine_chunks()
    if not part.num_rows:
        return flawed
    leaf = [as_numpy(part[name].combine_chunks()) for name in areas]
    n = as_numpy(part["n"].combine_chunks())
    is_new_person = _is_new(part["person"])
    first = np.flatnonzero(np.logical_or.reduce([is_new_person, *map(_is_new, leaf)]))
    leaf = [axis[first] for axis in leaf]
    n = sum_groups(n, _offsets(first, len(n)))
    if unit.distinct:
        n = np.minimum(n, 1)
    starts = np.flatnonzero(is_new_person[first])
    month = None if once is None else leaf[areas.index(once)]
    if unit.root_is_public:
        kept = np.minimum(n, unit.trips)
        inexact = _count_inexact(n, starts, month, unit.trips)
        flaws = [[-Flaw.INEXACT] * bool(inexact), *([0] * bool(inexact) for _ in areas[1:])]
        flaws.append([inexact] * bool(inexact))
    else:
        ids = part["person"].take(as_arrow(first[starts])).cast(pa.string()).combine_chunks()
        kept = _chosen(n, starts, month, unit.trips, Lots(numbers_of(ids), key))
        flaws = [[] for _ in names]
    is_kept = kept > 0
    columns = [as_arrow(column[is_kept]) for column in (*leaf, kept)]
    flaws = pa.table(dict(zip(names, flaws, strict=True)), schema=flawed.schema)
    return pa.concat_tables([flawed, flaws, pa.table(columns, names=names)])


def _count_inexact(
    n: NDArray[np.int64], starts: NDArray[np.int64], month: NDArray[np.int32] | None, trips: int
) -> int:
    """Count persons without exactly `trips` trips, or with two in a `month`."""
    is_wrong = sum_groups(n, _offsets(starts, len(n))) != trips
    if month is not None:
        has_trip = n > 0  # a row with count 0 is no trip
        person = np.repeat(np.arange(len(starts)), np.diff(_offsets(starts, len(n))))[has_trip]
        is_second = ~(_is_new(person) | _is_new(month[has_trip]))
        is_wrong[person[is_second]] = True
    return int(is_wrong.sum())


class Lots(NamedTuple):
    """What decides which trips are drawn: the persons, and the key of `draw_key`.

    Attributes:
        ids: uint64[groups], the person of each group of trips.
        key: the key.
        first: uint64[groups], or the same for all: the number of the first draw.
    """

    ids: NDArray[np.uint64]
    key: bytes
    first: NDArray[np.uint64] | np.uint64 = np.uint64(0)


def _chosen(
    n: NDArray[np.int64],
    starts: NDArray[np.int64],
    month: NDArray[np.int32] | None,
    most: int,
    lots: Lots,
) -> NDArray[np.int64]:
    """int64[leaves]: the trips that are kept, at most `most` of a person, one in a `month`.

    Args:
        n: int64[leaves], trips; those of a person are beside each other, and so are its months.
        starts: int64[persons], the first leaf of each.
        month: int32[leaves], the areas of the axis that a person has one trip for each of.
        most: trips that are kept of a person.
        lots: what decides, by person.
    """
    if month is None:
        return draw_trips(n, _offsets(starts, len(n)), most, lots)
    ids, key = lots.ids, lots.key
    kept = np.zeros_like(n)
    alive = np.flatnonzero(n)  # a row with count 0 is no trip
    person = np.repeat(np.arange(len(starts)), np.diff(_offsets(starts, len(n))))[alive]
    first = np.flatnonzero(_is_new(person) | _is_new(month[alive]))  # leaf of each month
    one = np.ones(len(alive), np.int64)
    numbers = _OF_AREAS | month[alive][first].astype(np.uint64)
    offsets = _offsets(first, len(alive))
    alive = alive[draw_trips(one, offsets, 1, Lots(ids[person[first]], key, numbers)) > 0]
    # Now each month of a person is one leaf.
    starts = np.flatnonzero(_is_new(person[first]))
    offsets = _offsets(starts, len(first))
    ids = ids[person[first][starts]]
    kept[alive] = draw_trips(one[: len(alive)], offsets, most, Lots(ids, key))
    return kept


def draw_trips(
    n: NDArray[np.int64], offsets: NDArray[np.int64], most: int, lots: Lots
) -> NDArray[np.int64]:
    """int64[leaves]: `most` trips of each group that has more, drawn at random; else all.

    Args:
        n: int64[leaves], trips.
        offsets: int64[groups + 1], the leaves of each group.
        most: how many are drawn.
        lots: what decides, by group.
    """
    ids, key, first = lots
    kept = n.copy()
    busy = np.flatnonzero(sum_groups(n, offsets) > most)
    left = n.astype(np.uint64)
    cipher = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()  # noqa: S305 - blocks differ
    step = max(1, MOST_DRAWS // most)
    for some in (busy[i : i + step] for i in range(0, len(busy), step)):
        blocks = np.empty((len(some), most, 2), np.uint64)
        blocks[:, :, 0] = ids[some][:, None]
        blocks[:, :, 1] = np.arange(most, dtype=np.uint64)
        blocks[:, :, 1] += first[some][:, None] if isinstance(first, np.ndarray) else first
        words = np.frombuffer(cipher.update(blocks.tobytes()), np.uint64)
        draw_trips_kernel(left, offsets, some, words[::2].reshape(len(some), most), kept)
    return kept


def numbers_of(ids: pa.StringArray) -> NDArray[np.uint64]:
    """uint64[persons]: FNV-1a of the bytes of each id."""
    numbers = np.empty(len(ids), np.uint64)
    ends = np.frombuffer(ids.buffers()[1], np.int32)[ids.offset : ids.offset + len(ids) + 1]
    text = ids.buffers()[2]
    hash_kernel(np.frombuffer(b"" if text is None else text, np.uint8), ends, numbers)
    return numbers


def sum_groups(n: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[groups]: sums of whole numbers from 0 up, or 2^63 - 1 where they are larger."""
    sums = np.zeros(len(offsets) - 1, np.int64)
    sum_groups_kernel(n, offsets, sums)
    return sums


def _is_new(column: NDArray[np.int32] | pa.ChunkedArray) -> NDArray[np.bool_]:
    """bool[rows]: whether a value is different from the one before; the first is."""
    is_new = np.ones(len(column), np.bool_)
    if isinstance(column, pa.ChunkedArray):
        found = pc.not_equal(column.slice(1), column.slice(0, len(column) - 1))
        is_new[1:] = as_numpy(found.cast(pa.uint8()).combine_chunks())
    else:
        np.not_equal(column[1:], column[:-1], out=is_new[1:])
    return is_new


def _offsets(starts: NDArray[np.int64], end: int) -> NDArray[np.int64]:
    return np.append(starts, end)


@kernel
def sum_groups_kernel(
    n: NDArray[np.int64], offsets: NDArray[np.int64], sums: NDArray[np.int64]
) -> None:
    """Add up groups of numbers from 0 up.

    Args:
        n: int64[numbers].
        offsets: int64[groups + 1].
        sums: int64[groups], zeros; written, at most 2^63 - 1.
    """
    for group in range(sums.size):
        for i in range(offsets[group], offsets[group + 1]):
            sums[group] += min(n[i], MAX_INT64 - sums[group])


@kernel
def draw_trips_kernel(
    left: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    groups: NDArray[np.int64],
    words: NDArray[np.uint64],
    kept: NDArray[np.int64],
) -> None:
    """Draw trips of each of some groups, one after the other.

    Args:
        left: uint64[leaves], trips that are not drawn yet; overwritten.
        offsets: int64[all groups + 1].
        groups: int64[groups], those with more trips than are drawn.
        words: uint64[groups, trips that are drawn], random.
        kept: int64[leaves], drawn trips; written for leaves of these groups.
    """
    for i in range(groups.size):
        start, stop = offsets[groups[i]], offsets[groups[i] + 1]
        total = np.uint64(0)
        for leaf in range(start, stop):
            kept[leaf] = 0
            total += min(left[leaf], np.uint64(MAX_INT64) - total)
        for word in words[i]:
            at = word % total
            leaf = start
            while at >= left[leaf]:
                at -= left[leaf]
                leaf += 1
            left[leaf] -= np.uint64(1)
            kept[leaf] += 1
            total -= np.uint64(1)


@kernel
def hash_kernel(
    text: NDArray[np.uint8], ends: NDArray[np.int32], numbers: NDArray[np.uint64]
) -> None:
    """Hash texts by FNV-1a.

    Args:
        text: uint8[bytes].
        ends: int32[texts + 1], where each begins and ends.
        numbers: uint64[texts], written.
    """
    for i in range(numbers.size):
        number = np.uint64(0xCBF29CE484222325)
        for at in range(ends[i], ends[i + 1]):
            number = (number ^ np.uint64(text[at])) * np.uint64(0x100000001B3)
        numbers[i] = number
