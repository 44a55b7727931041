"""A release, the published table and its guarantee: open, save, sum up.

A release is a folder with `flows.parquet` (one column per axis, and `flow`), the areas it
refers to, `manifest.json`, and `measurements.parquet`, the noisy values behind the flows. It holds
released numbers and public parameters; nothing here sees true counts.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pyarrow as pa

from inftda.errors import ReleaseError, first_few
from inftda.options import AtLeast, Doc, Option, Top, Zones, documented, lists, pairs
from inftda.privacy.measurement import Measurement
from inftda.publication import query
from inftda.publication.agreement import TableFit, fit_table, table_fits
from inftda.publication.folder import check_release, own_files, read_tree, write_public_files
from inftda.publication.manifest import DAMAGED, MEASUREMENTS_FILE, Manifest, check_plain
from inftda.publication.measured import Measurements, NoisyTable
from inftda.publication.measurements import (
    measured_groups,
    planned_measurements,
    read_measurements,
    write_measurements,
)
from inftda.publication.parquet import check_flows, flow_groups, flow_parts, join_flows, write_flows
from inftda.publication.reliability import NOT_PRIVATE_LINE, LevelUse, level_uses, use_notes
from inftda.publication.summary import release_notes
from inftda.publication.totals import AreaTotals, asked_total, sum_totals, totals_by_level
from inftda.tree import DESTINATION, ORIGIN, Cells, Tree
from inftda.tree.groupings import Grouping, asked_for
from inftda.util.exact_numbers import exact_sum
from inftda.util.files import FLOWS_FILE, MANIFEST_FILE
from inftda.util.formats import GET_AGAIN
from inftda.util.screen import Grid, card
from inftda.util.stores import ZIP, fetched, is_release_file, is_remote, output_folder

if TYPE_CHECKING:
    from inftda.publication.intervals import Intervals


@dataclass(frozen=True, repr=False)
class Release:
    """A published table: non-negative flows between finest areas, and the guarantee.

    Attributes:
        manifest: the guarantee, the measurements and the public parameters.
        tree: axes and order of refinement.
        table: the leaf flows, or the Parquet file that holds them.
        measured: published noisy values, if any, or the Parquet file that holds them.
    """

    manifest: Manifest
    tree: Tree
    table: pa.Table | Path
    measured: pa.Table | Path | None = None

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
                "Add low and high: for 95 % of the published numbers of similar size, and for a "
                "total of an area chosen beforehand with a probability of 95 %, the true number is "
                "between them. And a grade, from A (within 10 %) to D (may be off by more than "
                "half). They are about noise only, not about errors of the survey. Needs all "
                "measurements, except for totals."
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
        """Sum up flows between areas of any levels.

        Totals of areas that a cross table measured are the published totals, with an additional
        column `listed`, the sums of the finest flows.

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
            parts = ((areas, [value]) for areas, value in self._parts())
            found = query.sum_flows(parts, [query.FLOW], asked)
        if intervals:
            found = self.with_intervals(found, asked)
        found = query.largest(query.graded(found, at_least), top)
        named = query.with_names(found, asked) if names else found
        return query.converted_flows(named, as_, asked)

    def with_intervals(
        self, table: pa.Table, asked: Sequence[Grouping], *, number: str = query.FLOW
    ) -> pa.Table:
        """Add columns `low`, `high` and `grade` to a table of `sum_flows`.

        They are those of the column `number`.
        """
        value = table.column(number).to_numpy()
        is_whole = not any(own.needed for own in asked)
        if is_whole and self.manifest.plan.unit.root_is_public:
            total = np.full(len(table), self.total)
            return query.with_intervals(table, (total, total), number)
        if self._asked_total(asked) is None:
            self.check_measurements()
            if not value.all():  # one row, for an empty answer
                return query.with_intervals(table, None, number)
        groups = tuple(own.numbers(table) for own in asked)
        return query.with_intervals(table, self.intervals().of_groups(asked, groups, value), number)

    def has_intervals(self, depths: Sequence[int]) -> bool:
        """Whether numbers at these levels of the axes have intervals.

        Without all measurements, only a public total and measured totals of areas have them.
        """
        used = [number for number, depth in enumerate(self.tree.coarsest(depths)) if depth]
        if self.has_measurements:
            return True
        if not used:
            return self.manifest.plan.unit.root_is_public
        number = used[0]
        return len(used) == 1 and depths[number] in self.totals_of(self.tree.axes[number].name)

    def _asked_total(self, asked: Sequence[Grouping]) -> int | None:
        """The axis of an answer that consists of published totals; None for other answers."""
        axis = asked_total(asked)
        is_total = axis is not None and asked[axis].needed in self.totals_of(asked[axis].name)
        return axis if is_total else None

    def intervals(self) -> "Intervals":
        """Intervals of published numbers, from the published measurements."""
        return self._intervals

    @cached_property
    def _intervals(self) -> "Intervals":
        from inftda.publication.intervals import Intervals  # noqa: PLC0415 - compiled kernels

        is_public = self.manifest.plan.unit.root_is_public
        return Intervals(self.tree, self._published, *self._leaves, is_public=is_public)

    def totals_of(self, axis: str) -> Mapping[int, AreaTotals]:
        """Published totals of an axis by level, for the levels that cross tables measured.

        With delta 0 only totals of finest areas were measured. Totals of coarser areas are then
        sums of flows; if no other measurements are published, their intervals follow from the
        totals of finest areas, and their levels are included here.
        """
        if not self.has_totals:
            return {}
        known = self._totals_by_axis[axis]
        if not self.has_measurements:
            return known
        return {depth: totals for depth, totals in known.items() if totals.sigma is not None}

    @cached_property
    def _totals_by_axis(self) -> dict[str, dict[int, AreaTotals]]:
        found, leaves = {}, self.leaves()
        for number, axis in enumerate(self.tree.axes):
            listed = np.zeros(axis.hierarchy.n_areas(axis.hierarchy.depth), np.int64)
            np.add.at(listed, leaves.areas[number], leaves.value)
            tables = (table for table in self._totals.values() if table.depths[number])
            measured = {table.depths[number]: table for table in tables}
            found[axis.name] = totals_by_level(self.tree, number, listed, measured)
        return found

    def fit(self, *, as_: query.TableFormat = "arrow") -> Any:
        """Agreement of sums of flows with each measured and published table.

        Each measured value is compared with the published sum of flows; z is their difference in
        standard deviations of the noise.

        Returns:
            For each `table` the number of its `cells`; `rms_z`, the root mean square of z, right at
            about 1 or less; and `beyond_3`, the percentage of cells with z beyond 3, right at about
            0.3 or less.
        """
        return query.converted(fit_table(self.fits), as_)

    @cached_property
    def fits(self) -> tuple[TableFit, ...]:
        """Agreement of the published numbers with each measured table."""
        if self.measured is None:
            self.check_measurements()
        return table_fits(self.tree, self._published, *self._leaves)

    @cached_property
    def uses(self) -> tuple[LevelUse, ...]:
        """Smallest usable counts level by level, as `LevelUse.describe` states them."""
        return level_uses(self)

    def use_at(self, depths: Sequence[int]) -> LevelUse | None:
        """Smallest usable count at these levels; None if the tree has no such level."""
        asked = self.tree.coarsest(depths)
        return next(
            (use for use in self.uses if self.tree.coarsest(use.level.depths) == asked), None
        )

    def leaves(self) -> Cells:
        """Flows between finest areas, with areas by number."""
        return self._leaves

    @cached_property
    def _leaves(self) -> Cells:
        return join_flows(self.tree, self._parts())

    def _parts(self) -> Iterator[Cells]:
        """The leaves, by row group of their file."""
        total = 0
        for cells in flow_parts(self.table, self.tree, self.manifest.n_flows):
            total += exact_sum(cells.value)
            if cells.value.min(initial=0) < 0 or total >= 1 << 63:
                raise ReleaseError(
                    "the release has negative numbers, or larger ones than inftda releases; "
                    f"{DAMAGED}"
                )
            yield cells

    @property
    def has_measurements(self) -> bool:
        """Whether every noisy value that was drawn is published."""
        return self.manifest.measurements == "all"

    @property
    def has_totals(self) -> bool:
        """Whether cross tables measured totals of areas."""
        return self.measured is not None and bool(self.manifest.plan.tables)

    @cached_property
    def _totals(self) -> dict[tuple[int, ...], NoisyTable]:
        """Measurements of marginal totals, by their depths."""
        read = self.measurements(only_totals=True)
        return {table.depths: table for table in read.tables if table.measurement.is_total}

    def measurements(self, *, only_totals: bool = False) -> Measurements:
        """Noisy values of the release, table by table; all of them, or totals only."""
        if not only_totals:
            self.check_measurements()
        return self.read_published(only_totals=only_totals)

    def check_measurements(self) -> None:
        """Raise an error unless all measurements are published."""
        if not self.has_measurements:
            raise ReleaseError(
                "this release has no measurements; its publisher can release with "
                "`measurements='all'`, the default, which costs no privacy"
            )

    def read_published(self, *, only_totals: bool = False) -> Measurements:
        """Read the published noisy values: all of them, or totals."""
        tables, n_flows = self.published_tables(), self.manifest.n_flows
        return read_measurements(
            self._intact_measured, self.tree, tables, n_flows=n_flows, only_totals=only_totals
        )

    @cached_property
    def _published(self) -> Measurements:
        """The published noisy values, kept for intervals and fits."""
        return self.read_published()

    @cached_property
    def _intact_measured(self) -> pa.Table | Path:
        """The measurements, after one check of the digest of their file."""
        if self.measured is None:
            raise ReleaseError(f"the release has no {MEASUREMENTS_FILE}; {GET_AGAIN}")
        if isinstance(self.measured, Path):
            self.manifest.check_file(self.measured)
        return self.measured

    def published_tables(self) -> tuple[Measurement, ...]:
        """Tables whose noisy values are published, according to the manifest."""
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
        guarantee = self.manifest.plan.describe() if self.manifest.private else NOT_PRIVATE_LINE
        finest = "; ".join(use_notes(self)[-1:])
        return (
            f"<release {place}: {self.manifest.n_flows:,} flows by {axes}, {self._total()}; "
            f"{guarantee}; {finest}>"
        )

    def _repr_html_(self) -> str:
        rows = [
            (f"{axis.name}: {name}", f"{axis.hierarchy.n_areas(depth):,}")
            for axis in self.tree.axes
            for depth, name in enumerate(axis.hierarchy.level_names, start=1)
        ]
        title = f"Release of {self.manifest.n_flows:,} flows, {self._total()}"
        return card(title, [Grid(("level", "areas"), rows), *release_notes(self)])

    def _total(self) -> str:
        return f"{self.total:,} {self.manifest.counts} in all"

    def in_memory(self) -> "Release":
        """Copy the release to memory, so that it does not need its folder."""
        table, measured, tree = self.table, self.measured, self.tree
        if isinstance(table, Path):
            groups = flow_groups(table, tree, self.manifest.n_flows)
            table = pa.concat_tables(rows for rows, _ in groups)
        if measured is not None:
            tables, n_flows = self.published_tables(), self.manifest.n_flows
            groups = measured_groups(self._intact_measured, tree, tables, n_flows)
            measured = pa.concat_tables(groups)
        return replace(self, table=table, measured=measured)

    def save(self, out: str | Path, *, force: bool = False) -> "Release":
        """Write the release as a folder, atomically; a release in a folder is copied."""
        is_public = self.manifest.private
        with output_folder(out, check=check_release, force=force, is_public=is_public) as folder:
            if isinstance(self.table, Path):
                for path in own_files(self.table.parent, self.manifest):
                    shutil.copyfile(path, folder / path.name)
            else:
                write_flows(folder / FLOWS_FILE, self.tree, self.leaves())
                if self.measured is not None:
                    path = folder / MEASUREMENTS_FILE
                    write_measurements(path, self.tree, self.read_published().tables)
                write_public_files(folder, self.tree, self.manifest)
        return open_release(out)


def open_release(path: Release | str | Path) -> Release:
    """Open a release folder, also in a store; an open release is returned unchanged.

    Every file is compared with its digest in the manifest before it is used; measurements, which
    may be large, when they are first read.
    """
    if isinstance(path, Release):
        return path
    if is_remote(path):
        with fetched(path, ReleaseError, is_wanted=is_release_file, is_folder=True) as copy:
            return open_release(Path(copy)).in_memory()
    folder = Path(path)
    if folder.is_file() and folder.name.lower().endswith(ZIP):
        raise ReleaseError(
            f"{str(folder)!r} is a zip file; unpack it first and give the folder of the release"
        )
    if not folder.is_dir():
        raise ReleaseError(f"there is no release folder {str(folder)!r}; check the path")
    for name in (MANIFEST_FILE, FLOWS_FILE):
        if not os.path.lexists(folder / name):
            inside = [file.parent for file in sorted(folder.glob(f"*/{FLOWS_FILE}"))]
            found = [str(one) for one in inside if (one / MANIFEST_FILE).exists()]
            hint = f"; give one that is in it: {first_few(found, 3)}" if found else ""
            raise ReleaseError(f"{str(folder)!r} is not a release: it has no {name}{hint}")
    check_plain(folder, (MANIFEST_FILE, FLOWS_FILE, MEASUREMENTS_FILE))
    manifest = Manifest.read(folder / MANIFEST_FILE)
    manifest.check_file(folder / FLOWS_FILE)
    tree = read_tree(folder, manifest.axes, manifest.order, manifest.files)
    check_flows(folder / FLOWS_FILE, tree, manifest.n_flows)
    measured = None if manifest.measurements == "none" else folder / MEASUREMENTS_FILE
    return Release(manifest, tree, folder / FLOWS_FILE, measured)
