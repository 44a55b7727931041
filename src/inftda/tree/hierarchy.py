"""One nested public classification: areas, diseases, modes of transport.

Levels run from 1 (coarse) to `depth` (fine); level 0 is the whole, one area that holds
everything (the paper's P_0 .. P_g, section 3). Areas of each level are numbered depth-first,
so the children of an area are one contiguous range of the next level.

A hierarchy is public knowledge: it must never be derived from the trips.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inftda.errors import HierarchyError
from inftda.tree.places import Places
from inftda.util.tabular import as_arrow, as_numpy, find_texts, read_strings, repeated

#: Code, at every level, of the extra area for rows with a missing or unknown code.
OUTSIDE = "outside"


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Areas nested in levels, numbered depth-first.

    Build one with `Hierarchy.read`. Two hierarchies with the same level names and the same
    code paths are equal whatever the order of their rows, and have the same `fingerprint`;
    `places` make no difference. `row` is the position of each finest area in the table that was
    read: answers show areas in that order.

    >>> areas = Hierarchy.read({"region": ["N", "N", "S"], "town": ["001", "002", "003"]})
    >>> areas.depth, areas.n_areas(1), areas.codes(2).to_pylist()
    (2, 2, ['001', '002', '003'])
    >>> areas.child_offsets(1).tolist()
    [0, 2, 3]
    """

    level_names: tuple[str, ...]
    _codes: tuple[pa.StringArray, ...]
    _child_offsets: tuple[NDArray[np.int32], ...]
    row: NDArray[np.int64]
    places: Places = field(default_factory=Places)

    @classmethod
    def read(cls, source: Any, *, columns: Sequence[str] | None = None) -> Self:
        """Read a hierarchy from a CSV or Parquet file, or any pandas, polars or pyarrow table.

        Args:
            source: path, pandas/polars/pyarrow table, or mapping of column name to codes;
                one row per finest area.
            columns: the level columns from coarse to fine; all columns by default.
        """
        table = read_strings(source, what="areas table", error=HierarchyError, columns=columns)
        names = tuple(table.column_names)
        _check_names(names)
        _check_cells(table)
        # By number: Arrow takes some names (`../x`) for paths.
        numbers = [str(number) for number in range(len(names))]
        keys = [(one, "ascending") for one in numbers]
        row = pc.sort_indices(table.rename_columns(numbers), sort_keys=keys)
        in_order = table.take(row).combine_chunks()
        return cls(names, *_number_levels(in_order), as_numpy(row).astype(np.int64))

    @property
    def depth(self) -> int:
        """Number of levels below the whole."""
        return len(self.level_names)

    def n_areas(self, level: int) -> int:
        """Number of areas of a level; 1 at level 0."""
        return 1 if level == 0 else len(self._codes[level - 1])

    def codes(self, level: int) -> pa.StringArray:
        """Codes of the areas of a level, in depth-first order, as they were written."""
        if level == 0:
            return repeated("all", 1)
        return self._codes[level - 1]

    def child_offsets(self, level: int) -> NDArray[np.int32]:
        """int32[n_areas(level) + 1]: offsets of each area's children one level down."""
        return self._child_offsets[level]

    def level_name(self, level: int) -> str:
        """Name of a level for people; "all" for the whole."""
        return "all" if level == 0 else self.level_names[level - 1]

    def level_of(self, name: str) -> int:
        """Return the number of the level with this name; capitals matter only where two differ."""
        known = ["all", *self.level_names]
        folded = [level.casefold() for level in known]
        if name not in known and folded.count(name.casefold()) == 1:
            return folded.index(name.casefold())
        if name not in known:
            raise HierarchyError(f"there is no level {name!r}; the levels are {', '.join(known)}")
        return known.index(name)

    def descendant_offsets(self, level: int, finer: int) -> NDArray[np.int32]:
        """int32[n_areas(level) + 1]: offsets of each area's areas at level `finer`."""
        offsets = np.arange(self.n_areas(level) + 1, dtype=np.int32)
        for step in range(level, finer):
            offsets = self._child_offsets[step][offsets]
        return offsets

    def ancestor(self, level: int, coarser: int) -> NDArray[np.int32]:
        """int32[n_areas(level)]: for each area of `level` the area of `coarser` that holds it."""
        spans = np.diff(self.descendant_offsets(coarser, level))
        return np.repeat(np.arange(len(spans), dtype=np.int32), spans)

    def sum_up(self, finest: NDArray[np.int64], level: int) -> NDArray[np.int64]:
        """int64[n_areas(level)]: sums of a number for each finest area."""
        sums: NDArray[np.int64] = np.add.reduceat(
            finest, self.descendant_offsets(level, self.depth)[:-1]
        )
        return sums

    def as_read(self, level: int) -> NDArray[np.int64]:
        """int64[n_areas(level)]: areas in the order of the table that was read."""
        first = np.minimum.reduceat(self.row, self.descendant_offsets(level, self.depth)[:-1])
        return np.argsort(first, kind="stable")

    def leaves_under(self, level: int) -> NDArray[np.int64]:
        """int64[n_areas(level)]: number of finest areas inside each area of the level."""
        return np.diff(self.descendant_offsets(level, self.depth)).astype(np.int64)

    def splits(self, level: int) -> bool:
        """Whether any area of `level - 1` has two children or more at `level`."""
        return self.n_areas(level) > self.n_areas(level - 1)

    @property
    def has_outside(self) -> bool:
        """Whether there is an extra area for rows that cannot be placed."""
        return bool(find_texts(repeated(OUTSIDE, 1), self.codes(self.depth))[0] >= 0)

    def with_outside(self, code: str = OUTSIDE) -> "Hierarchy":
        """Add a public area for rows that cannot be placed."""
        for level in range(1, self.depth + 1):
            if pc.index(self.codes(level), code).as_py() >= 0:
                raise HierarchyError(
                    f"the code {code!r} is taken at level {self.level_name(level)!r}; "
                    "choose another code for the outside area"
                )
        extra = pa.table({name: [code] for name in self.level_names})
        listed = self.to_table().take(as_arrow(self.as_read(self.depth)))
        larger = Hierarchy.read(pa.concat_tables([listed, extra]))
        if self.places.is_empty:
            return larger
        numbers = {
            name: pc.index_in(larger.codes(level), value_set=self.codes(level))
            for level, name in enumerate(self.level_names, start=1)
        }
        return larger.with_places(self.places.take(numbers, self.level_names[-1]))

    def with_places(self, places: Places) -> "Hierarchy":
        """Replace names, locations and outlines."""
        places.check({name: self.n_areas(i) for i, name in enumerate(self.level_names, 1)})
        return replace(self, places=places)

    def find(self, level: int, codes: Sequence[str]) -> NDArray[np.int32]:
        """Numbers of the areas with these codes, all of which must be known."""
        found = pc.index_in(pa.array(codes, pa.string()), value_set=self.codes(level))
        if found.null_count:
            missing = codes[found.is_null().to_pylist().index(True)]
            raise HierarchyError(
                f"there is no area {missing!r} at level {self.level_name(level)!r}"
            )
        return np.asarray(found, dtype=np.int32)

    def to_table(self) -> pa.Table:
        """One row per finest area, columns from coarse to fine, in depth-first order."""
        columns = {
            name: self.codes(level).take(as_arrow(self.ancestor(self.depth, level)))
            for level, name in enumerate(self.level_names, start=1)
        }
        return pa.Table.from_arrays(list(columns.values()), names=list(columns))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of level names and code paths: equal exactly for equal hierarchies."""
        digest = hashlib.sha256()
        for column, name in enumerate(self.level_names):
            for text in (name, *self._codes[column].to_pylist()):
                # Each text follows its length, so different lists of texts differ.
                encoded = text.encode()
                digest.update(len(encoded).to_bytes(8, "little") + encoded)
            digest.update(self._child_offsets[column].astype("<i4").tobytes())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hierarchy) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        sizes = ", ".join(
            f"{self.n_areas(level):,} {name}" for level, name in enumerate(self.level_names, 1)
        )
        return f"Hierarchy({sizes})"


def _check_names(names: tuple[str, ...]) -> None:
    if not names:
        raise HierarchyError("the areas table has no levels; give at least one column of codes")
    if not all(name.strip() for name in names):
        raise HierarchyError("a level column of the areas table has no name; give it one")
    for name in names:
        # A release has them in the header of a CSV file, which must be read back unchanged.
        if name != name.strip() or len(name.splitlines()) > 1:
            raise HierarchyError(
                f"the level column {name!r} of the areas table has blanks around its name or a "
                "line break in it; rename that column"
            )
    if "all" in names:
        raise HierarchyError(
            "a level must not be called 'all', which means the whole; rename that column"
        )


def _check_cells(table: pa.Table) -> None:
    if table.num_rows == 0:
        raise HierarchyError("the areas table has no rows; give one row per finest area")
    for name in table.column_names:
        column = table.column(name)
        length = pc.binary_length(pc.utf8_trim_whitespace(column))
        if column.null_count or not pc.min(length).as_py():
            row = next(row for row, n in enumerate(length.to_pylist(), start=1) if not n)
            raise HierarchyError(
                f"column {name!r} of the areas table is blank in row {row}; "
                "every area needs a code at every level (repeat the coarser code if a level "
                "does not apply)"
            )


def _number_levels(
    table: pa.Table,
) -> tuple[tuple[pa.StringArray, ...], tuple[NDArray[np.int32], ...]]:
    """Codes and child ranges of every level, of rows in order; checks that the levels nest."""
    codes: list[pa.StringArray] = []
    offsets: list[NDArray[np.int32]] = []
    is_new = np.zeros(len(table), bool)
    is_new[0] = True
    previous = np.array([0])
    for level, name in enumerate(table.column_names):
        column = pa.concat_arrays(table.column(name).chunks)
        number = as_numpy(column.dictionary_encode().indices)  # of each code, as they come
        is_new[1:] |= number[1:] != number[:-1]
        first = np.flatnonzero(is_new)
        again = np.flatnonzero(number[first] != np.arange(len(first)))
        if len(again):
            run = int(again[0])
            parent = table.column_names[level - 1]
            rows = [int(first[of]) for of in (number[first[run]], run)]
            parents = " and ".join(repr(table.column(parent)[row].as_py()) for row in rows)
            raise HierarchyError(
                f"{name} {column[rows[0]].as_py()!r} lies in two areas of level {parent!r}: "
                f"{parents}; give each area one parent, or make the codes different (for example "
                "by putting the parent's code in front)"
            )
        codes.append(column.take(as_arrow(first)))
        offsets.append(np.append(np.searchsorted(first, previous), len(first)).astype(np.int32))
        previous = first
    if not is_new.all():
        raise HierarchyError(
            f"{name} {column[int(np.argmin(is_new))].as_py()!r} is in more than one row of the "
            "areas table; keep one row per finest area"
        )
    return tuple(codes), tuple(offsets)
