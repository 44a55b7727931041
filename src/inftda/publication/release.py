"""The published table and what is promised about it: open, save, sum up.

A release is a folder with `flows.parquet` (one column per axis, and `flow`), the areas it
refers to, `manifest.json`, and `measurements.parquet`, the noisy values behind the flows. It holds
what was released and public parameters, nothing else computed from the truth, and nothing here ever
sees the truth.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from inftda.errors import ReleaseError
from inftda.files import FLOWS_FILE, MANIFEST_FILE
from inftda.groupings import Grouping, asked_for, groupings
from inftda.inference.agreement import TableFit, fit_table, table_fits
from inftda.inference.measured import Measurements, NoisyTable
from inftda.options import AtLeast, Doc, Option, Top, Zones, documented, lists, pairs
from inftda.publication import query
from inftda.publication.folder import (
    check_release,
    own_files,
    read_release_tree,
    write_public_files,
)
from inftda.publication.manifest import (
    DAMAGED,
    GET_AGAIN,
    MEASUREMENTS_FILE,
    Manifest,
    check_plain,
    digest,
)
from inftda.publication.measurements import (
    PlannedTable,
    planned_measurements,
    read_measurements,
    write_measurements,
)
from inftda.publication.tables import Flows, read_flows, write_flows
from inftda.publication.totals import (
    AreaTotals,
    asked_total,
    sum_totals,
    total_ends,
    totals_by_level,
)
from inftda.publication.trust import NOT_PRIVATE_LINE, LevelUse, level_uses, use_notes
from inftda.screen import card
from inftda.stores import fetched, is_remote, output_folder
from inftda.tree import DESTINATION, ORIGIN, Tree

if TYPE_CHECKING:
    from inftda.publication.intervals import Intervals


@dataclass(frozen=True, repr=False)
class Release:
    """A published table: non-negative flows between finest areas, and what is promised.

    Attributes:
        manifest: what was done and what is guaranteed.
        tree: axes and order of refinement.
        table: the leaf flows, or the Parquet file that holds them.
        measured: noisy values that are published, if any, or the Parquet file that holds them.
        known_fits: how the flows agree with all that was measured, if it was made just now.
    """

    manifest: Manifest
    tree: Tree
    table: pa.Table | Path
    measured: pa.Table | Path | None = None
    known_fits: tuple[TableFit, ...] | None = None

    @documented
    def flows(  # noqa: PLR0913 - two ends, each with a level and a filter
        self,
        origin_level: Annotated[
            str | None,
            Option("Level of the origins, or all to sum them up; by default the finest."),
        ] = None,
        destination_level: Annotated[str | None, Option("The same of the destinations.")] = None,
        *,
        from_: Annotated[
            str | Sequence[str] | None,
            Option("Only from this area: a code, a name, or LEVEL:CODE.", "AREA", is_repeated=True),
        ] = None,
        to: Annotated[
            str | Sequence[str] | None,
            Option("Only to this area: a code, a name, or LEVEL:CODE.", "AREA", is_repeated=True),
        ] = None,
        level: Annotated[
            Mapping[str, str] | None,
            Option(
                "Level of any axis, or all to sum it up.", "AXIS=LEVEL", pairs, is_repeated=True
            ),
        ] = None,
        where: Annotated[
            Mapping[str, str | Sequence[str]] | None,
            Option("Only this area of any axis.", "AXIS=AREA", lists, is_repeated=True),
        ] = None,
        zones: Zones = None,
        intervals: Annotated[
            bool,
            Option(
                "Add low and high: for 95 % of the published numbers of a size the true number is "
                "between them; and a grade, from A (within 10 %) to D (may be zero). They are "
                "about noise only, not about errors of the survey. Needs all measurements, except "
                "for totals."
            ),
        ] = False,
        at_least: AtLeast = None,
        names: Annotated[bool, Option("Add the names of areas beside their codes.")] = False,
        top: Top = None,
        as_: Annotated[
            query.FlowFormat,
            Doc(
                '"arrow", "pandas", "polars", or "geopandas": lines from origin to destination, or '
                "areas where only one end is shown, if the areas came with their places."
            ),
        ] = "arrow",
    ) -> Any:
        """Flows between areas of any levels: the sums of the finest flows.

        Totals of areas that were measured across the tree are those that are published, with a
        further column `listed`: the sums of the finest flows.

        Raises:
            ReleaseError: no such axis, an axis is named twice, or an area is unknown or
                ambiguous; or names, intervals or places are asked for, and the release has none.
        """
        intervals = intervals or at_least is not None
        level_of_end = {ORIGIN: origin_level, DESTINATION: destination_level}
        ends = {ORIGIN: from_, DESTINATION: to}
        asked = asked_for(self.tree, (level_of_end, level), (ends, where), zones)
        axis = self._asked_total(asked)
        if axis is not None:
            totals = self.totals_of(asked[axis].name)
            found = sum_totals(asked, axis, totals[asked[axis].axis.hierarchy.depth])
        else:
            found = query.sum_flows(self.table, asked)
        if intervals:
            found = self.with_intervals(found, asked)
        found = query.largest(query.graded(found, at_least), top)
        named = query.with_names(found, asked) if names else found
        return query.converted_flows(named, as_, asked)

    def with_intervals(
        self, table: pa.Table, asked: Sequence[Grouping], *, number: str = query.FLOW
    ) -> pa.Table:
        """Sums with columns `low`, `high` and `grade`; see `Intervals.beside`."""
        axis = self._asked_total(asked)
        if axis is None:
            return self.intervals().beside(table, asked, number=number)
        own = asked[axis]
        low, high = total_ends(own, self.totals_of(own.name), self._measured_totals(axis))
        row = own.numbers(table)
        return query.with_intervals(table, (low[row], high[row]), number)

    def _asked_total(self, asked: Sequence[Grouping]) -> int | None:
        """The axis whose totals are asked for, if they were measured across the tree."""
        return asked_total(self.tree, asked) if self.has_totals else None

    def intervals(self) -> "Intervals":
        """Intervals of published numbers, from the measurements; computed once."""
        return self._intervals

    @cached_property
    def _intervals(self) -> "Intervals":
        from inftda.publication.intervals import Intervals  # noqa: PLC0415 - compiled kernels

        return Intervals(self.tree, self.measurements(), self.total)

    def _measured_totals(self, axis: int) -> dict[int, NoisyTable]:
        """Totals of an axis as they were measured across the tree, by its levels."""
        return {table.depths[axis]: table for table in self._totals.values() if table.depths[axis]}

    def totals_of(self, axis: str) -> Mapping[int, AreaTotals]:
        """Totals of an axis by its levels, those that were measured across the tree."""
        return self._totals_by_axis[axis] if self.has_totals else {}

    @cached_property
    def _totals_by_axis(self) -> dict[str, dict[int, AreaTotals]]:
        found = {}
        for number, axis in enumerate(self.tree.axes):
            hierarchy, depth = axis.hierarchy, axis.hierarchy.depth
            asked = groupings(self.tree, {axis.name: hierarchy.level_name(depth)})
            sums = query.sum_flows(self.table, asked)
            listed = np.zeros(hierarchy.n_areas(depth), np.int64)
            listed[asked[number].numbers(sums)] = sums.column(query.FLOW).to_numpy()
            measured = self._measured_totals(number)
            found[axis.name] = totals_by_level(self.tree, number, listed, measured)
        return found

    def fit(self, *, as_: query.TableFormat = "arrow") -> Any:
        """How sums of flows agree with each table that was measured and is published.

        Each measured value is compared with the sum of flows that is published for it; z is their
        difference in noise scales.

        Returns:
            For each `table` the number of its `cells`; `rms_z`, the root mean square of z, right at
            about 1 or less; and `beyond_3`, the percentage of cells with z beyond 3, right at about
            0.3 or less.
        """
        return query.converted(fit_table(self.fits), as_)

    @cached_property
    def fits(self) -> tuple[TableFit, ...]:
        """The same, and whether each table fits."""
        if self.known_fits is not None:
            return self.known_fits
        measured = self.measurements() if self.measured is None else self._read_measurements()
        return table_fits(self.tree, measured, *self.leaves())

    @cached_property
    def uses(self) -> tuple[LevelUse, ...]:
        """From what size on numbers can be used, level by level; see `LevelUse.describe`."""
        return level_uses(self)

    def use_at(self, depths: Sequence[int]) -> LevelUse | None:
        """From what size on numbers can be used at these levels of the axes; None off the tree."""
        asked = self.tree.coarsest(depths)
        return next(
            (use for use in self.uses if self.tree.coarsest(use.level.depths) == asked), None
        )

    def leaves(self) -> Flows:
        """The flows between finest areas, by the numbers of the areas."""
        found = read_flows(self.table, self.tree, n_flows=self.manifest.n_flows)
        if found.flow.min(initial=0) < 0:
            raise ReleaseError(
                f"the release has negative numbers, which inftda does not release; {DAMAGED}"
            )
        return found

    @property
    def has_measurements(self) -> bool:
        """Whether every noisy value that was drawn is published."""
        return self.manifest.measurements == "all"

    @property
    def has_totals(self) -> bool:
        """Whether totals of areas were measured across the tree."""
        return self.measured is not None and bool(self.manifest.plan.tables)

    @cached_property
    def _totals(self) -> dict[tuple[int, ...], NoisyTable]:
        """Measurements of totals across the tree, by their depths."""
        read = self.measurements(only_totals=True)
        tables = zip(self.published_tables(), read.tables, strict=True)
        return {table.depths: table for planned, table in tables if planned.is_total}

    def measurements(self, *, only_totals: bool = False) -> Measurements:
        """Every noisy value that was drawn for the release, table by table, or totals only."""
        if not self.has_measurements and not only_totals:
            raise ReleaseError(
                "this release has no measurements; its publisher can release with "
                "`measurements='all'`, the default, which costs no privacy"
            )
        return self._read_measurements(only_totals=only_totals)

    def _read_measurements(self, *, only_totals: bool = False) -> Measurements:
        """What is published of the noisy values."""
        measured, stated = self.measured, self.manifest.measurements_sha256
        if measured is None:
            raise ReleaseError(f"the release has no {MEASUREMENTS_FILE}; {GET_AGAIN}")
        if isinstance(measured, Path) and measured.exists() and digest(measured) != stated:
            raise ReleaseError(
                f"{MEASUREMENTS_FILE} is not the one that was published with this release: it is "
                f"damaged or of another release; {GET_AGAIN}"
            )
        tables, n_flows = self.published_tables(), self.manifest.n_flows
        return read_measurements(
            measured, self.tree, tables, n_flows=n_flows, only_totals=only_totals
        )

    def published_tables(self) -> tuple[PlannedTable, ...]:
        """The tables whose noisy values are published, by the guarantee."""
        return planned_measurements(
            self.tree, self.manifest.plan, only_totals=not self.has_measurements
        )

    @property
    def total(self) -> int:
        """Sum of all flows."""
        return self.manifest.total

    def __repr__(self) -> str:
        place = "in memory" if isinstance(self.table, pa.Table) else repr(self.table.parent.name)
        axes = ", ".join(axis.name for axis in self.tree.axes)
        return (
            f"<release {place}: {self.manifest.n_flows:,} flows by {axes}, {self._total()}; "
            f"{self._promise()}; {self._uses()}>"
        )

    def _repr_html_(self) -> str:
        rows = [
            (f"{axis.name}: {name}", f"{axis.hierarchy.n_areas(depth):,}")
            for axis in self.tree.axes
            for depth, name in enumerate(axis.hierarchy.level_names, start=1)
        ]
        notes = [("Guarantee:", self._promise())]
        if self.manifest.private:
            notes.insert(0, ("Protected:", self.manifest.protected))
        notes += [("Use:", words) for words in use_notes(self)]
        title = f"Release of {self.manifest.n_flows:,} flows, {self._total()}"
        return card(title, ("level", "areas"), rows, notes)

    def _total(self) -> str:
        return f"{self.total:,} {self.manifest.counted.what} in all"

    def _uses(self) -> str:
        """The finest level in words, where most has to be said."""
        return "; ".join(use_notes(self)[-1:])

    def _promise(self) -> str:
        return self.manifest.plan.describe() if self.manifest.private else NOT_PRIVATE_LINE

    def in_memory(self) -> "Release":
        """The same release, which no longer needs its folder."""
        table, measured = (
            pq.read_table(part) if isinstance(part, Path) else part
            for part in (self.table, self.measured)
        )
        return replace(self, table=table, measured=measured)

    def save(self, out: str | Path, *, force: bool = False) -> "Release":
        """Write the release as a folder, atomically; one that is in a folder is copied as it is."""
        with output_folder(out, check=check_release, force=force) as folder:
            if isinstance(self.table, Path):
                for path in own_files(self.table.parent, self.manifest):
                    shutil.copyfile(path, folder / path.name)
            else:
                write_flows(folder / FLOWS_FILE, self.tree, self.leaves())
                if self.measured is not None:
                    path = folder / MEASUREMENTS_FILE
                    write_measurements(path, self.tree, self._read_measurements().tables)
                write_public_files(folder, self.tree, self.manifest)
        return open_release(out)


def open_release(path: Release | str | Path) -> Release:
    """Read a release folder, also in a store; a release that is open already is given back."""
    if isinstance(path, Release):
        return path
    if is_remote(path):
        with fetched(path, ReleaseError, is_folder=True) as copy:
            return open_release(Path(copy)).in_memory()
    folder = Path(path)
    if not folder.is_dir():
        raise ReleaseError(f"there is no release folder {str(folder)!r}; check the path")
    for name in (MANIFEST_FILE, FLOWS_FILE):
        if not os.path.lexists(folder / name):
            raise ReleaseError(f"{str(folder)!r} is not a release: it has no {name}")
    check_plain(folder, (MANIFEST_FILE, FLOWS_FILE, MEASUREMENTS_FILE))
    manifest = Manifest.read(folder / MANIFEST_FILE)
    tree = read_release_tree(folder, manifest.tree)
    measured = None if manifest.measurements == "none" else folder / MEASUREMENTS_FILE
    return Release(manifest, tree, folder / FLOWS_FILE, measured)
