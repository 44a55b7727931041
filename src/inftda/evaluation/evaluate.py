"""A release compared with the truth it was made from, and the files of the comparison.

The comparison is computed from the true counts and is not private: it must be kept where the
truth is kept, and never beside the release. Each file says so in its name and in its content, is
readable by its owner only, and must never get into a release folder, by whatever path.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from inftda.errors import IngestError, ReleaseError
from inftda.estimates import Estimate
from inftda.evaluation.cells import estimated_leaves
from inftda.evaluation.intervals import (
    IntervalMeasures,
    measure_estimated,
    measure_intervals,
    measure_published_totals,
)
from inftda.evaluation.measures import (
    LevelMeasures,
    SizeMeasures,
    TotalMeasures,
    definitions,
    measure,
    measure_totals,
)
from inftda.files import published_around, whole_file
from inftda.privacy.unit import Unit
from inftda.publication.release import Release
from inftda.reading import Columns, Unplaceable, read_leaves
from inftda.reading.columns import COLUMNS, UNPROMISED, may_be_empty
from inftda.screen import Progress, card
from inftda.tables import disarmed_table
from inftda.truth import Truth

NOTICE = "CONFIDENTIAL: computed from the true counts, not private, not for publication"
SUMMARY_FILE, PAGE_FILE = "CONFIDENTIAL-evaluation.json", "CONFIDENTIAL-evaluation.html"

#: Writes a file to the path it is given.
Writer = Callable[[Path], object]


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

    def tables(self) -> dict[str, pa.Table]:
        """All measures: by level, by size of the true flow, of totals, and of intervals if any."""
        sizes = (
            {"level": level.level, "name": level.name, **asdict(size)}
            for level in self.levels
            for size in level.sizes
        )
        found = {
            "levels": table_of(map(asdict, self.levels), LevelMeasures),
            "sizes": table_of(sizes, SizeMeasures, level=int, name=str),
            "totals": table_of(map(asdict, self.totals), TotalMeasures),
        }
        if self.intervals:
            found["intervals"] = table_of(map(asdict, self.intervals), IntervalMeasures)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Everything, as it is written to a JSON file."""
        return {
            "confidential": True,
            "notice": NOTICE,
            "release": dict(self.settings),
            "definitions": definitions(LevelMeasures),
            "levels": [asdict(level) for level in self.levels],
            "definitions_of_totals": definitions(TotalMeasures),
            "totals": [asdict(total) for total in self.totals],
            "definitions_of_intervals": definitions(IntervalMeasures),
            "intervals": [asdict(one) for one in self.intervals],
            "estimate": None if self.estimate is None else self.estimate.to_dict(),
        }


def read_truth(
    release: Release,
    flows: Any,
    columns: Columns = COLUMNS,
    *,
    on_message: Callable[[str], object] | None = None,
) -> Truth:
    """The confidential table a release was made from, by the areas of the release.

    All rows of the table count: what a release left out to bound the trips of one person
    is part of its error. Rows that cannot be placed are treated as the release says, unless
    `columns` says otherwise.

    Raises:
        IngestError: the table cannot be read by the areas of the release, or cannot be its
            truth because its total is not the release's.
    """
    if columns.unplaceable is None:
        columns = replace(columns, unplaceable=_as_released(release))
    promised = release.manifest.unit
    # Reading drops rows, and accepts an empty table, only for units under which a release may
    # do so. Nothing else about the unit matters here.
    is_free = columns.policy == "drop" or may_be_empty(promised)
    unit = UNPROMISED if is_free else None
    tree = release.tree
    leaves = read_leaves(
        flows, columns, tree.axes, unit=unit, impossible=tree.impossible, say=on_message
    )
    truth = Truth.of(tree, leaves)
    if promised.root_is_public:
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
        progress: called with the name of the level, levels done and number of levels.
    """
    if estimate is not None:
        estimate.check_release(release)
    released = Truth.from_leaves(release.tree, *release.leaves())
    levels = measure(truth, released, progress=progress)
    across = (
        measure_published_totals(truth, release)
        if release.has_totals
        else measure_totals(truth, released)
    )
    return Comparison(
        _settings(release),
        levels,
        across,
        measure_intervals(truth, release),
        None if estimate is None else _compare_estimate(release, truth, estimate),
    )


def _compare_estimate(release: Release, truth: Truth, estimate: Estimate) -> Comparison:
    made = estimated_leaves(estimate)
    counts = Truth.from_leaves(release.tree, made.areas, made.value)
    return Comparison(
        {**_settings(release), "n_flows": estimate.manifest.n_rows, "estimate": True},
        measure(truth, counts),
        measure_totals(truth, counts),
        measure_estimated(truth, made),
    )


def _check_total(truth: Truth, release: Release, unit: Unit) -> None:
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


def table_of(rows: Iterable[Mapping[str, Any]], kind: type, **before: type) -> pa.Table:
    """Measures as a table, marked as confidential.

    Args:
        rows: by name of the field; fields that hold further measures are left out.
        kind: the class of the measures, whose fields are the columns.
        before: types of columns that stand before these.
    """
    known = list(rows)
    declared = {**before, **get_type_hints(kind)}
    columns = {
        name: _column([row[name] for row in known], {members, *get_args(members)})
        for name, members in declared.items()
        if SizeMeasures not in get_args(members)
    }
    # Many CSV readers do not accept comment lines, so the notice is a column.
    columns["notice"] = pa.array([NOTICE] * len(known), pa.string())
    return pa.table(columns).replace_schema_metadata({"notice": NOTICE})


def _column(values: list[Any], kinds: set[Any]) -> pa.Array:
    """Values of one field as Arrow."""
    if str in kinds:
        return pa.array(values, pa.string())
    # Levels with 2^63 possible cells and more are known by their size only roughly.
    if float in kinds or any(value is not None and value >= 2**63 for value in values):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array(values, pa.int64())


def write_comparison(
    comparison: Comparison,
    out: str | Path,
    *,
    release: str | Path | None,
    page: Writer | None = None,
) -> tuple[Path, ...]:
    """Write the measures to a separate folder, readable by the owner only.

    Args:
        comparison: what to write.
        out: folder to write to; it is made if it is not there.
        release: folder of the release, which must not be written to; None if it has none.
        page: writes the same as a page to the path it is given.

    Returns:
        The files: levels, size classes, totals and intervals as CSV and Parquet, the same of an
        estimate, everything as JSON, the page.
    """
    tables = {f"CONFIDENTIAL-{name}": made for name, made in comparison.tables().items()}
    if comparison.estimate is not None:
        of_estimate = comparison.estimate.tables().items()
        tables |= {f"CONFIDENTIAL-estimate-{name}": made for name, made in of_estimate}
    summary = {SUMMARY_FILE: comparison.to_dict()}
    return write_confidential(out, tables, summary, {PAGE_FILE: page}, known=release)


def write_confidential(
    out: str | Path,
    tables: Mapping[str, pa.Table],
    summary: Mapping[str, dict[str, Any]],
    page: Mapping[str, Writer | None],
    *,
    known: str | Path | None = None,
) -> tuple[Path, ...]:
    """Write files to a separate folder, readable by the owner only.

    Args:
        out: folder to write to, not in a release; it is made if it is not there.
        tables: each is written as CSV and as Parquet, by name without ending.
        summary: written as JSON, by name of the file.
        page: what writes a page to the path it is given, by name of the file.
        known: folder of a release, which must not be written to.
    """
    folder = Path(out)
    check_outside(folder, *([] if known is None else [known]))
    if folder.is_symlink():  # what is confidential goes where it was sent
        raise ReleaseError(f"{str(folder)!r} is a link; give a folder that is not a link")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise ReleaseError(f"cannot make the folder {str(folder)!r}: {problem.strerror}") from None
    writers: dict[str, Writer] = {}
    for name, table in tables.items():
        writers[f"{name}.csv"] = partial(pa_csv.write_csv, disarmed_table(table))
        writers[f"{name}.parquet"] = partial(pq.write_table, table)
    for name, data in summary.items():
        writers[name] = partial(_write_json, data)
    writers |= {name: write for name, write in page.items() if write is not None}
    for name, write in writers.items():
        with whole_file(folder / name, mode=0o600) as unfinished:
            write(unfinished)
    return tuple(folder / name for name in writers)


def _write_json(data: dict[str, Any], path: Path) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    path.write_text(text, encoding="utf-8")


def check_outside(out: Path, *known: str | Path) -> None:
    """Refuse to write into a release or an estimate, by whatever links or relative paths.

    Args:
        out: a file or folder to write, there or not.
        known: folders of releases, whatever they hold; others are recognised by their files.
    """
    folder = published_around(out, *known)
    if folder is not None:
        raise ReleaseError(
            f"{str(out)!r} lies in the release folder or estimate {str(folder)!r}, which is for "
            "publication; measures are confidential, choose a folder elsewhere"
        )
