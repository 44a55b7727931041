"""What is exported, whatever the kind of file: numbers of each level, places, words."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inftda.areas.locations import Gazetteer
from inftda.errors import InftdaError, ReleaseError
from inftda.exports.intervals import HIGH, LOW, Intervals
from inftda.exports.levels import Level
from inftda.exports.source import VALUES
from inftda.tree import DESTINATION, ORIGIN, Tree


@dataclass(frozen=True)
class Numbers:
    """The numbers of one level.

    Attributes:
        level: which.
        table: codes of the shown axes, the number, and `low` and `high` where they are known.
        value: name of the column of numbers.
    """

    level: Level
    table: pa.Table
    value: str

    @property
    def measures(self) -> list[str]:
        """Names of the columns that are not codes."""
        return [name for name in (self.value, LOW, HIGH) if name in self.table.column_names]

    def areas(self, tree: Tree, axis: int) -> NDArray[np.int32]:
        """Number of the area of each row on one axis.

        Raises:
            ReleaseError: a code is not among the areas.
        """
        of = tree.axes[axis]
        codes = self.table.column(of.name).cast(pa.string())
        found = pc.index_in(codes, value_set=of.hierarchy.codes(self.level.depths[axis]))
        if found.null_count:
            raise ReleaseError(
                f"the table has a code on axis {of.name!r} that is not among its areas; check it "
                "with `inftda verify`"
            )
        return np.asarray(found, np.int32)


@dataclass(frozen=True)
class Contents:
    """All that is exported.

    Attributes:
        tree: the axes.
        levels: coarse to fine.
        intervals: where the numbers and their intervals come from.
        places: where areas lie and what they are called.
        title: for people.
        description: what is promised and what readers must know, in a few sentences.
        wide: whether tables have a column for each destination.
        keep_formulas: whether cells are left as they are that a spreadsheet would run.
    """

    tree: Tree
    levels: tuple[Level, ...]
    intervals: Intervals
    places: Gazetteer
    title: str
    description: str
    wide: bool = False
    keep_formulas: bool = False

    def numbers(self) -> Iterator[Numbers]:
        """Level by level, coarse to fine; one is in memory at a time."""
        for level in self.levels:
            table = self.intervals.flows(level)
            value = next(name for name in VALUES if name in table.column_names)
            yield Numbers(level, table, value)

    @property
    def ends(self) -> tuple[int, int]:
        """Numbers of the axes of origins and destinations."""
        names = [axis.name for axis in self.tree.axes]
        return names.index(ORIGIN), names.index(DESTINATION)

    @property
    def shares_areas(self) -> bool:
        """Whether origins and destinations have the same areas."""
        origin, destination = (self.tree.axes[end].hierarchy for end in self.ends)
        return origin == destination

    def require_places(self, kind: str) -> None:
        """Complain unless it is known where the areas of both ends lie.

        Raises:
            InftdaError: it is not.
        """
        if not self.places.has(self.ends):
            raise InftdaError(
                f"an export to {kind} needs to know where the areas lie, which the release does "
                "not say; give --centroids FILE with a column named after a level, lon and lat"
            )

    def check_cells(self, most: int, what: str, instead: str) -> None:
        """Refuse levels with too many cells to write all of them.

        Args:
            most: number of cells that are written.
            what: what has a place for each cell.
            instead: what to do if no level is small enough.

        Raises:
            InftdaError: there is one; the message says which levels fit.
        """
        sizes = {level.name: level.n_cells(self.tree) for level in self.levels}
        fit = [name for name, size in sizes.items() if size <= most]
        for name, size in sizes.items():
            if size > most:
                advice = f"these fit: --level {' --level '.join(fit)}" if fit else instead
                raise InftdaError(
                    f"{what} at level {name!r} would have {size:,} cells, more than {most:,}; "
                    f"{advice}"
                )

    def words(self, numbers: Numbers) -> str:
        """What the intervals of a level are."""
        return self.intervals.words(numbers.level, numbers.table)

    def facts(self, numbers: Numbers) -> dict[str, Any]:
        """What is known of the errors of a level, for machines."""
        known: dict[str, Any] = {"intervals": self.words(numbers)}
        bound = self.intervals.guaranteed(numbers.level)
        return {**known, "guaranteed": bound} if bound else known
