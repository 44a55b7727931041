"""Make, write and open an estimate: whole numbers that add up, each with an interval.

This is post-processing of a release with its measurements, so it uses no budget and every reader
can do it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Meta
from numpy.typing import NDArray

from inftda.areas.locations import Gazetteer, unit_vectors
from inftda.errors import InftdaError, ReleaseError
from inftda.estimates.model import Fit
from inftda.options import Centroids, Option, Released, Threads, documented
from inftda.publication.agreement import TableFit, fit_table, table_fits
from inftda.publication.folder import digests, read_tree, write_areas
from inftda.publication.manifest import (
    MAX_BYTES,
    Axes,
    Files,
    MadeBy,
    Order,
    Requires,
    Sha256,
    check_counts,
    check_listed,
    check_plain,
    digest,
    software_versions,
)
from inftda.publication.measured import CellIntervals, keys_of
from inftda.publication.parquet import CODE, known_areas
from inftda.publication.query import (
    HIGH,
    LOW,
    FlowFormat,
    TableFormat,
    converted,
    converted_flows,
    graded,
    largest,
    sum_flows,
    with_intervals,
    with_names,
)
from inftda.publication.release import Release, open_release
from inftda.tree import DESTINATION, ORIGIN, Tree
from inftda.tree.groupings import asked_for
from inftda.util.files import (
    ESTIMATE_FILE,
    MANIFEST_FILE,
    check_folder,
    check_own,
    is_plain,
    whole_folder,
)
from inftda.util.formats import Record, decode
from inftda.util.tabular import as_arrow

#: Format of the folder; bumped when a reader of the old one could misunderstand the new one.
FORMAT: Final = "inftda-estimate/1"
NOTICE: Final = (
    "Model-based estimates from the measurements of a release: good on average, not guaranteed, "
    "and a listed flow need not exist. The guaranteed table is the release."
)
#: Columns besides those of the axes.
ESTIMATE: Final = "estimate"
VALUES: Final = (ESTIMATE, LOW, HIGH)


class LevelModel(Record, frozen=True, kw_only=True):
    """The model of one level."""

    level: Annotated[str, Meta(description="name of the level")]
    standard_deviation: Annotated[
        float, Meta(description="standard deviation of the noise of its measurements")
    ]
    spread: Annotated[float, Meta(description="spread of the counts around their means")]
    zeros: Annotated[float, Meta(description="part of the counts that are zero")]
    same: Annotated[
        float, Meta(description="factor of the area that contains the other end of the trip")
    ]


class Model(Record, frozen=True, kw_only=True):
    """The model behind the numbers."""

    locations: Annotated[bool, Meta(description="whether distances were used")]
    seed: Annotated[int, Meta(description="decided which numbers were rounded up")]
    levels: Annotated[tuple[LevelModel, ...], Meta(description="coarse to fine")]


class EstimateManifest(Record, frozen=True, kw_only=True):
    """The contents of the `manifest.json` of an estimate."""

    format: Annotated[Literal["inftda-estimate/1"], Meta(description="format of the folder")]
    requires: Requires
    notice: Annotated[str, Meta(description="how to interpret the numbers")]
    private: Annotated[bool, Meta(description="false if the release was made with a seed")]
    release_sha256: Annotated[
        Sha256, Meta(description="SHA-256 of the manifest of the release it was made from")
    ]
    counts: Annotated[str, Meta(description="what the numbers count, as in the release")]
    total: Annotated[int, Meta(description="sum of all estimates, which is that of the release")]
    n_rows: Annotated[int, Meta(description="number of rows")]
    axes: Axes
    order: Order
    model: Annotated[Model, Meta(description="parameters of the model")]
    files: Files
    software: MadeBy

    def __post_init__(self) -> None:
        check_listed(self.axes, self.files, [ESTIMATE_FILE])
        check_counts(self.counts)

    @classmethod
    def read(cls, folder: Path) -> "EstimateManifest":
        """Read the manifest of a folder."""
        path = folder / MANIFEST_FILE
        content = path.read_bytes() if is_plain(path) and path.stat().st_size <= MAX_BYTES else b""
        try:
            return decode(content, cls, FORMAT)
        except ReleaseError as problem:
            raise ReleaseError(
                f"{str(folder)!r} is not an estimate: {problem}; make one with `inftda estimate`"
            ) from None


@dataclass(frozen=True, repr=False)
class Estimate:
    """Estimated flows between finest areas.

    Attributes:
        manifest: its release and its model.
        tree: axes and order of refinement.
        table: one column for each axis, and `estimate`, `low`, `high`; or the file that holds it.
    """

    manifest: EstimateManifest
    tree: Tree
    table: pa.Table | Path

    def __repr__(self) -> str:
        place = "in memory" if isinstance(self.table, pa.Table) else repr(self.table.parent.name)
        axes = ", ".join(axis.name for axis in self.tree.axes)
        about = self.manifest
        return (
            f"<estimate {place}: {about.n_rows:,} flows by {axes}, {about.total:,} "
            f"{about.counts} in all; by a model, nothing is guaranteed>"
        )

    def flows(  # noqa: PLR0913 - two ends, each with a level and a filter
        self,
        origin_level: str | None = None,
        destination_level: str | None = None,
        *,
        from_: str | Sequence[str] | None = None,
        to: str | Sequence[str] | None = None,
        level: Mapping[str, str] | None = None,
        where: Mapping[str, str | Sequence[str]] | None = None,
        zones: Any = None,
        release: Release | str | Path | None = None,
        intervals: bool = True,
        at_least: str | None = None,
        names: bool = False,
        top: int | None = None,
        as_: FlowFormat = "arrow",
    ) -> Any:
        """Estimates between areas of any levels; arguments as `Release.flows` takes them.

        Returns:
            A table with `estimate`, and unless `intervals` is False also `low`, `high` and `grade`:
            between finest areas, and of sums if `release` is the release it was made from.

        Raises:
            ReleaseError: no such axis, an axis is named twice, or an area is unknown or ambiguous.
        """
        level_of_end = {ORIGIN: origin_level, DESTINATION: destination_level}
        ends = {ORIGIN: from_, DESTINATION: to}
        asked = asked_for(self.tree, (level_of_end, level), (ends, where), zones)
        is_finest = all(axis.depth == axis.axis.hierarchy.depth for axis in asked)
        if at_least is not None and not is_finest and release is None:
            raise ReleaseError(
                "sums of estimates have grades only beside their release; give it by `release=`, "
                "or leave out `at_least=`"
            )
        is_wanted = intervals or at_least is not None
        has_own = is_finest and is_wanted
        areas, *numbers = self.leaves()
        columns = VALUES if has_own else (ESTIMATE,)
        found = sum_flows([(areas, numbers[: len(columns)])], columns, asked)
        if has_own:
            low, high = (found.column(name).to_numpy() for name in (LOW, HIGH))
            found = with_intervals(found.drop_columns([LOW, HIGH]), (low, high), ESTIMATE)
        elif is_wanted and release is not None:
            opened = open_release(release)
            self.check_release(opened)
            found = opened.with_intervals(found, asked, number=ESTIMATE)
        found = largest(graded(found, at_least), top, ESTIMATE)
        named = with_names(found, asked) if names else found
        return converted_flows(named, as_, asked)

    def leaves(self) -> CellIntervals:
        """The estimates between finest areas, by the numbers of the areas, with their intervals."""
        try:
            table = self.table
            found = (
                table if isinstance(table, pa.Table) else pq.read_table(table, partitioning=None)
            )
            values = [found.column(name).to_numpy().astype(np.int64, copy=False) for name in VALUES]
            areas = known_areas(self.tree, found)
        except (pa.ArrowException, OSError, KeyError):
            raise ReleaseError(
                "the estimate cannot be read as estimates between areas; estimate again with "
                "`inftda estimate`"
            ) from None
        return CellIntervals(areas, *values)

    @property
    def total(self) -> int:
        """Sum of all estimates."""
        return self.manifest.total

    def fit(self, release: Release | str | Path, *, as_: TableFormat = "arrow") -> Any:
        """How sums of estimates agree with the measurements they are made from: `Release.fit`."""
        return converted(fit_table(self.fits(open_release(release))), as_)

    def fits(self, release: Release) -> tuple[TableFit, ...]:
        """Agreement of sums of estimates with each measured table."""
        self.check_release(release)
        found = self.leaves()
        return table_fits(self.tree, release.measurements(), found.areas, found.value)

    def check_release(self, release: Release) -> None:
        """Refuse any release but the one it was made from."""
        if self.manifest.release_sha256 != release.manifest.sha256:
            raise ReleaseError(
                "the estimate was made from another release; make it again from this one with "
                "`inftda estimate`"
            )


@documented
def estimate(  # noqa: PLR0913 - one keyword for each thing a reader may decide
    release: Released,
    *,
    out: Annotated[
        str | Path | None,
        Option("Folder to write. In Python, without it the estimate stays in memory."),
    ] = None,
    centroids: Centroids = None,
    seed: Annotated[int, Option("Decides which numbers are rounded up; nothing else.")] = 0,
    threads: Threads = None,
    force: Annotated[bool, Option("Replace an estimate that is there.")] = False,
) -> Estimate:
    """Estimate all flows of a release from its measurements.

    Raises:
        ReleaseError: the release has no measurements, or they are damaged, of another one or
            such that no model fits them.
        InftdaError: locations cannot be read.

    Privacy:
        Post-processing of the release: no cost.
    """
    if seed < 0:
        raise InftdaError(f"seed must be at least 0, got {seed}")
    opened = release if isinstance(release, Release) else open_release(release)
    if out is not None:
        check_folder(Path(out), force=force, check=_check_replaceable)
    points = located(opened.tree, centroids)
    model, columns = _fitted(opened, points, seed, threads)
    table = _table(opened.tree, columns)
    manifest = EstimateManifest(
        format=FORMAT,
        requires={},
        notice=NOTICE,
        private=opened.manifest.private,
        release_sha256=opened.manifest.sha256,
        counts=opened.manifest.counts,
        total=opened.total if len(table) else 0,
        n_rows=len(table),
        axes=opened.manifest.axes,
        order=opened.manifest.order,
        model=model,
        files={},
        software=software_versions(),
    )
    made = Estimate(manifest, opened.tree, table)
    return made if out is None else _save(made, Path(out), force=force)


def open_estimate(path: Estimate | str | Path) -> Estimate:
    """Read the folder of an estimate; one that is open already is given back.

    The table must have the digest that the manifest states and the columns of an estimate. Nothing
    else is checked: an estimate is checked by making it again from its release.

    Raises:
        ReleaseError: the folder is missing, is not an estimate, or is damaged.
    """
    if isinstance(path, Estimate):
        return path
    folder = Path(path)
    if not folder.is_dir():
        raise ReleaseError(f"there is no folder {str(folder)!r}; check the path")
    check_plain(folder, (MANIFEST_FILE, ESTIMATE_FILE))
    manifest = EstimateManifest.read(folder)
    tree = read_tree(folder, manifest.axes, manifest.order, manifest.files)
    table = folder / ESTIMATE_FILE
    if not _is_written(table, tree, manifest.files[ESTIMATE_FILE]):
        raise ReleaseError(
            f"{ESTIMATE_FILE} of {str(folder)!r} does not match its manifest: it was edited or "
            "damaged; make it again with `inftda estimate`"
        )
    return Estimate(manifest, tree, table)


def _check_replaceable(folder: Path) -> None:
    """Refuse a folder that is not an estimate, or has something else in it."""
    try:
        manifest = EstimateManifest.read(folder)
    except ReleaseError as problem:
        raise ReleaseError(f"{str(folder)!r} is not replaced: {problem}") from None
    check_own(folder, {MANIFEST_FILE, *manifest.files}, "an estimate")


def _save(made: Estimate, out: Path, *, force: bool) -> Estimate:
    is_public = made.manifest.private
    with whole_folder(out, force=force, check=_check_replaceable, is_public=is_public) as folder:
        pq.write_table(made.table, folder / ESTIMATE_FILE, compression="zstd")
        files = digests(folder, [ESTIMATE_FILE, *write_areas(folder, made.tree)])
        manifest = msgspec.structs.replace(made.manifest, files=files)
        (folder / MANIFEST_FILE).write_text(manifest.to_text(), encoding="utf-8")
    return replace(made, manifest=manifest, table=out / ESTIMATE_FILE)


def located(tree: Tree, centroids: Any = None) -> dict[str, NDArray[np.float64]]:
    """Unit vectors of the finest areas of both ends, by axis name; NaN where unknown."""
    known = Gazetteer.of((axis.hierarchy for axis in tree.axes), centroids=centroids)
    return {
        axis.name: unit_vectors(*known.finest[number])
        for number, axis in enumerate(tree.axes)
        if axis.name in {ORIGIN, DESTINATION} and number in known.finest
    }


def _fitted(
    release: Release, points: dict[str, NDArray[np.float64]], seed: int, threads: int | None
) -> tuple[Model, list[NDArray[Any]]]:
    """Fit the model; return it with areas, values and intervals of estimates."""
    # No name keeps the measurements, which intervals read again, beside the fit.
    fit = Fit.of(release.tree, release.measurements(), release.total, points, threads=threads)
    areas, value = fit.leaves(seed)
    levels = tuple(
        LevelModel(
            level=level.layer.level.name,
            standard_deviation=level.layer.sigma,
            spread=level.posterior.spread,
            zeros=level.posterior.zeros,
            same=level.shares.same,
        )
        for level in fit.levels
    )
    if not all(math.isfinite(x) for one in levels for x in (one.spread, one.zeros, one.same)):
        raise ReleaseError(
            "no model with finite parameters fits the measurements; check the release with "
            "`inftda verify`"
        )
    model = Model(locations=bool(points), seed=seed, levels=levels)
    del fit  # as large as all that intervals need
    low, high = release.intervals().of(release.tree.levels[-1].depths, areas, value)
    return model, [*areas, value, low, high]


def _table(tree: Tree, columns: list[NDArray[Any]]) -> pa.Table:
    """The estimates, by the numbers of their areas; the columns given are used up."""
    order = np.argsort(keys_of(columns[: len(tree.axes)]), kind="stable")
    made = [
        pa.DictionaryArray.from_arrays(
            as_arrow(columns.pop(0)[order]), axis.hierarchy.codes(axis.hierarchy.depth)
        )
        for axis in tree.axes
    ]
    made += [as_arrow(columns.pop(0)[order].astype(np.int64)) for _ in VALUES]
    return pa.Table.from_arrays(made, names=[*(axis.name for axis in tree.axes), *VALUES])


def _is_written(table: Path, tree: Tree, sha256: str) -> bool:
    """Whether a file has this digest and the columns of an estimate."""
    fields = [pa.field(axis.name, CODE) for axis in tree.axes]
    schema = pa.schema([*fields, *(pa.field(name, pa.int64()) for name in VALUES)])
    try:
        return digest(table) == sha256 and pq.read_schema(table).equals(schema)
    except (pa.ArrowException, OSError):
        return False
