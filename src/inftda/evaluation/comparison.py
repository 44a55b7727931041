"""A release compared with the truth it was made from.

The comparison is computed from the true counts and is not private: it must be kept where the
truth is kept, and never beside the release.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa

from inftda.bars import Progress
from inftda.errors import IngestError
from inftda.estimates.estimating import Estimate
from inftda.evaluation import coverage, totals
from inftda.evaluation.coverage import (
    EstimatedLeaves,
    IntervalMeasures,
    measure_estimated,
    measure_intervals,
)
from inftda.evaluation.metrics import DEFINITIONS, LevelMeasures, SizeMeasures, measure
from inftda.evaluation.totals import TotalMeasures, measure_totals, with_intervals
from inftda.evaluation.typical import released_leaves
from inftda.notebook import card
from inftda.privacy.unit import PrivacyUnit
from inftda.publication.release import Release
from inftda.reading import TableSpec, Unplaceable, read_leaves
from inftda.reading.spec import UNPROMISED, axes_of, may_be_empty, placing
from inftda.tree import DESTINATION, ORIGIN
from inftda.truth import Truth

NOTICE = "CONFIDENTIAL: computed from the true counts, not private, not for publication"


@dataclass(frozen=True, repr=False)
class Comparison:
    """How far a release is from the truth. Confidential.

    Attributes:
        settings: public parameters of the release.
        levels: measures of every level, from the root to the leaves.
        totals: measures of totals across the tree.
        intervals: of intervals of published numbers; none without measurements.
        estimate: the same of an estimate that was made from the release, if there is one.
        files: that it was written to, if it was.
    """

    settings: Mapping[str, Any]
    levels: tuple[LevelMeasures, ...]
    totals: tuple[TotalMeasures, ...]
    intervals: tuple[IntervalMeasures, ...] = ()
    estimate: "Comparison | None" = None
    files: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        return f"<comparison of {len(self.levels)} levels; {NOTICE}>"

    def _repr_html_(self) -> str:
        rows = [
            (level.name, f"{level.max_abs_error:,}", f"{level.mean_abs_error_nonzero:,.1f}",
             f"{level.false_discovery_rate:.1%}", f"{level.common_part:.4f}")
            for level in self.levels
        ]  # fmt: skip
        head = ("level", "max error", "mean error", "false pairs", "common part")
        names = ("rho",) if self.settings["epsilon"] is None else ("epsilon", "delta")
        promised = ", ".join(f"{name} = {self.settings[name]}" for name in names)
        return card(NOTICE, head, rows, [("Guarantee of the release:", promised)])

    def level_table(self) -> pa.Table:
        """One row per level, one column per measure."""
        names = [field.name for field in fields(LevelMeasures) if field.name != "sizes"]
        columns = {
            name: _column([getattr(level, name) for level in self.levels], LevelMeasures, name)
            for name in names
        }
        return _with_notice(pa.table(columns))

    def size_table(self) -> pa.Table:
        """One row per level and size class of the true flow."""
        rows = [(level, size) for level in self.levels for size in level.sizes]
        columns = {
            name: _column([getattr(level, name) for level, _ in rows], LevelMeasures, name)
            for name in ("level", "name")
        }
        for field in fields(SizeMeasures):
            values = [getattr(size, field.name) for _, size in rows]
            columns[field.name] = _column(values, SizeMeasures, field.name)
        return _with_notice(pa.table(columns))

    def totals_table(self) -> pa.Table:
        """One row per level of each axis whose totals are sums across the tree."""
        return _table(self.totals, TotalMeasures)

    def interval_table(self) -> pa.Table:
        """One row per level and size class of the published number."""
        return _table(self.intervals, IntervalMeasures)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as it is written to a JSON file."""
        return {
            "confidential": True,
            "notice": NOTICE,
            "release": dict(self.settings),
            "definitions": DEFINITIONS,
            "levels": [asdict(level) for level in self.levels],
            "definitions_of_totals": totals.DEFINITIONS,
            "totals": [asdict(total) for total in self.totals],
            "definitions_of_intervals": coverage.DEFINITIONS,
            "intervals": [asdict(one) for one in self.intervals],
            "estimate": None if self.estimate is None else self.estimate.to_dict(),
        }


def read_truth(  # noqa: PLR0913 - the columns of the table, as for a release
    release: Release,
    flows: Any,
    *,
    origin: str = ORIGIN,
    destination: str = DESTINATION,
    origin_point: Sequence[str] | None = None,
    destination_point: Sequence[str] | None = None,
    hour_of: str | None = None,
    weekday_of: str | None = None,
    count: str | None = "auto",
    unplaceable: Unplaceable | Mapping[str, str] | None = None,
    say: Callable[[str], object] | None = None,
) -> Truth:
    """The confidential table a release was made from, by the areas of the release.

    All rows of the table count: what a release left out to bound the trips of one person
    is part of its error.

    Args:
        release: the release.
        flows: trips or flows, anything `inftda.publish.release` takes.
        origin: name of the column where trips start.
        destination: name of the column where they end.
        origin_point: columns of longitude and latitude where trips start, as for a release.
        destination_point: likewise where they end.
        hour_of: column of time stamps, as for a release.
        weekday_of: likewise.
        count: name of the column of counts, None for one row per trip; "auto" as for a release.
        unplaceable: rows with an unknown or missing area, as for a release; by default as the
            release says.
        say: called with what a row was taken for, one trip or a count.

    Raises:
        IngestError: the table cannot be read by the areas of the release, or cannot be its
            truth because its total is not the release's.
    """
    axes = axes_of(
        release.tree,
        origin=origin,
        destination=destination,
        points={ORIGIN: origin_point, DESTINATION: destination_point},
        clocks={"hour": hour_of, "weekday": weekday_of},
    )
    given = _as_released(release) if unplaceable is None else unplaceable
    policy, only = placing(given, release.tree)
    promised = release.manifest.unit
    # Reading drops rows, and accepts an empty table, only for units under which a release may
    # do so. Nothing else about the unit matters here.
    is_free = policy == "drop" or may_be_empty(promised)
    unit = UNPROMISED if is_free else None
    spec = TableSpec(axes=axes, count=count, unplaceable=policy, only=only, unit=unit)
    leaves = read_leaves(flows, spec, say=say)
    truth = Truth.of(release.tree, leaves)
    if promised.root_is_public and release.manifest.description.is_top_down:
        _check_total(truth, release, promised)
    return truth


def compare(
    release: Release,
    truth: Truth,
    *,
    estimate: Estimate | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare a release with its truth at every level.

    Args:
        release: the release.
        truth: what `read_truth` gives.
        estimate: made from the release, to be compared as well.
        progress: called with the name of the level, levels done and levels in all.

    Raises:
        ReleaseError: the release has areas that it does not list, its measurements are damaged,
            or the estimate was made from another one.
    """
    if estimate is not None:
        estimate.check_release(release)
    released = released_counts(release)
    levels = measure(truth, released, progress=progress)
    across = with_intervals(measure_totals(truth, released), truth, release)
    return Comparison(
        _settings(release),
        levels,
        across,
        measure_intervals(truth, release),
        None if estimate is None else _compare_estimate(release, truth, estimate),
    )


def _compare_estimate(release: Release, truth: Truth, estimate: Estimate) -> Comparison:
    made = EstimatedLeaves.read(estimate)
    counts = Truth.from_leaves(release.tree, made.areas, made.value)
    return Comparison(
        {**_settings(release), "n_flows": estimate.manifest.n_rows, "estimate": True},
        measure(truth, counts),
        measure_totals(truth, counts),
        measure_estimated(truth, made),
    )


def released_counts(release: Release) -> Truth:
    """The released leaves, summed up by the tree of the release.

    Raises:
        ReleaseError: the release has areas that it does not list.
    """
    areas, flow = released_leaves(release)
    kept = flow != 0
    return Truth.from_leaves(release.tree, [axis[kept] for axis in areas], flow[kept])


def _check_total(truth: Truth, release: Release, unit: PrivacyUnit) -> None:
    """Refuse a table whose total differs from the release's, where that is exact.

    Of several distinct trips, a release leaves out what one person does twice.
    """
    if truth.total < release.total or (truth.total > release.total and not unit.distinct):
        raise IngestError(
            "the total of this table differs from that of the release, which is exact; check that "
            "it is the table the release was made from, and its count column"
        )


def _as_released(release: Release) -> Unplaceable | Mapping[str, str]:
    """What the release did with rows that could not be placed; "outside" where it has that area."""
    policy = release.manifest.counted.unplaceable
    if policy != "outside":
        return policy
    return {axis.name: "outside" for axis in release.tree.axes if axis.hierarchy.has_outside}


def _settings(release: Release) -> dict[str, Any]:
    manifest = release.manifest
    promised = {
        key: manifest.guarantee.get(key) for key in ("epsilon", "delta", "rho", "accountant")
    }
    return {
        "mechanism": manifest.mechanism,
        "options": dict(manifest.options),
        "private": manifest.private,
        **promised,
        "total": manifest.total,
        "n_flows": manifest.n_flows,
    }


def _table(measures: Sequence[Any], kind: type) -> pa.Table:
    """One row for each measure, one column for each of its fields."""
    columns = {
        name: _column([getattr(one, name) for one in measures], kind, name)
        for name in kind.__annotations__
    }
    return _with_notice(pa.table(columns))


def _column(values: list[Any], kind: type, name: str) -> pa.Array:
    """Values of one field of a dataclass as Arrow."""
    declared = kind.__annotations__[name]
    members = get_args(declared) or (declared,)
    if str in members:
        return pa.array(values, pa.string())
    # Levels with 2^63 possible cells and more are known by their size only roughly.
    if float in members or any(value is not None and value >= 2**63 for value in values):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array(values, pa.int64())


def _with_notice(table: pa.Table) -> pa.Table:
    """Add the notice as a column, since many CSV readers do not accept comment lines."""
    table = table.append_column("notice", pa.array([NOTICE] * table.num_rows, pa.string()))
    return table.replace_schema_metadata({"notice": NOTICE})
