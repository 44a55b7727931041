"""How far off exported numbers may be, and in which sense.

A release that was measured in a way that gives intervals brings them. For others, errors are
simulated from the release: 95 % of published numbers of a size err by no more, which is an
estimate (`inftda.evaluation.typical`) and said to be one.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.evaluation.typical import LevelErrors, TypicalErrors
from inftda.exports.levels import Level
from inftda.exports.source import Source
from inftda.publication.release import Release
from inftda.reports.accuracy import BETA, guaranteed, stated_errors
from inftda.tables import as_arrow, as_numpy

if TYPE_CHECKING:
    from inftda.bars import Progress
    from inftda.publication.intervals import Intervals as MeasuredIntervals

LOW, HIGH = "low", "high"
#: What intervals are, in words for those who read the export.
TYPICAL: Final = (
    "typical: the number less and plus the error that 95 % of published numbers of its size "
    "do not exceed, simulated from the release ({runs} runs); an estimate, not a guarantee"
)
ROUGH: Final = "; at this level sums run across the tree, so that they are a rough guess"
MEASURED: Final = (
    "95 % of the published numbers of a size have the true number in theirs, as tested: from what "
    "was measured, with known noise, narrowed by the model that estimates are made with"
)
ESTIMATED: Final = (
    "95 % of the estimates of a size have the true number in theirs, as tested: by the model of "
    "the estimate, not guaranteed"
)
NONE: Final = "none are stated"


@dataclass(frozen=True)
class Intervals:
    """Where the intervals of an export come from.

    Attributes:
        source: what is exported.
        errors: typical errors, if the source is a release that has no intervals itself.
        is_wanted: whether numbers get intervals at all.
        measured: intervals from what was measured, if the source is a release that has them.
    """

    source: Source
    errors: TypicalErrors | None = None
    is_wanted: bool = True
    measured: "MeasuredIntervals | None" = None

    @classmethod
    def of(  # noqa: PLR0913 - how long may be simulated, and who is told
        cls,
        source: Source,
        levels: tuple[Level, ...],
        *,
        wanted: bool,
        runs: int,
        seconds: float,
        progress: "Progress | None" = None,
    ) -> "Intervals":
        """Simulate what has to be simulated, for these levels."""
        if not (wanted and isinstance(source, Release)):
            return cls(source, is_wanted=wanted)
        if source.measured is not None:
            return cls(source, measured=source.intervals())
        depths = [level.depths for level in levels]
        errors = stated_errors(source, runs=runs, seconds=seconds, depths=depths, progress=progress)
        return cls(source, errors, is_wanted=errors is not None)

    def flows(self, level: Level) -> pa.Table:
        """Numbers of one level, with `low` and `high` where they are known."""
        table = self.source.flows(levels=level.shown)
        if self.measured is not None:
            beside: pa.Table = self.measured.beside(table, level.shown, {})
            # Nothing was measured at some levels: empty cells would be taken for intervals.
            is_known = beside.column(LOW).null_count < len(beside) or not len(beside)
            return beside if is_known else table
        if not self.is_wanted:
            known = [name for name in table.column_names if name not in {LOW, HIGH}]
            return table.select(known)
        errors = self.errors.at(level.depths) if self.errors else None
        if errors is None:
            return table
        flow = as_numpy(table.column("flow").combine_chunks())
        half = _half_widths(errors, flow)
        table = table.append_column(LOW, as_arrow(np.maximum(flow - half, 0)))
        return table.append_column(HIGH, as_arrow(flow + half))

    def words(self, level: Level, table: pa.Table) -> str:
        """What the intervals of a level are, in the table that `flows` gave."""
        if LOW not in table.column_names:
            return NONE
        if not isinstance(self.source, Release):
            return ESTIMATED
        if self.measured is not None:
            return MEASURED
        errors = self.errors.at(level.depths) if self.errors else None
        if self.errors is None or errors is None:
            return NONE
        return TYPICAL.format(runs=self.errors.runs) + (ROUGH if errors.is_rough else "")

    def guaranteed(self, level: Level) -> dict[str, Any] | None:
        """The error that no number of the level exceeds, where one is proven."""
        if not isinstance(self.source, Release):
            return None
        bounds = guaranteed(self.source)
        for tree_level in self.source.tree.levels:
            if tree_level.depths == level.depths and tree_level.index in bounds:
                return {"error": bounds[tree_level.index], "probability": 1 - BETA}
        return None


def _half_widths(errors: LevelErrors, flow: NDArray[np.int64]) -> NDArray[np.int64]:
    """The error that 95 % of numbers as large as each do not exceed."""
    classes = errors.classes or (errors.overall,)
    starts = np.array([entry.low for entry in classes], np.int64)
    widths = np.array([entry.p95 for entry in classes], np.int64)
    return np.asarray(widths[np.maximum(np.searchsorted(starts, flow, side="right") - 1, 0)])
