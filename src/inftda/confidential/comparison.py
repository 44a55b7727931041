"""A release compared with the truth it was made from, and the files of the comparison.

The comparison is computed from the true counts and is not private: it must be kept where the
truth is kept, and never beside the release. Each file is marked in its name and its content, is
readable by its owner only, and must never be written to a release folder.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from inftda.confidential.coverage import (
    LEAST,
    IntervalMeasures,
    lowest_coverage,
    measure_estimated,
    measure_intervals,
    measure_published_totals,
    overall,
)
from inftda.errors import IngestError, ReleaseError
from inftda.estimates.estimate import Estimate
from inftda.noise.bits import SeededSource
from inftda.planning.accuracy import (
    NOTICE,
    LevelMeasures,
    SizeMeasures,
    TotalMeasures,
    definitions,
    measure,
    measure_totals,
)
from inftda.publication.release import Release
from inftda.publication.reliability import counting_note
from inftda.reading import Columns, Unplaceable, read_leaves
from inftda.reading.columns import COLUMNS
from inftda.reading.truth import Truth
from inftda.util.files import published_around, whole_file
from inftda.util.screen import Formats, Grid, Part, Progress, card
from inftda.util.tabular import disarmed_table

SUMMARY_FILE, PAGE_FILE = "CONFIDENTIAL-evaluation.json", "CONFIDENTIAL-evaluation.html"

#: Writes a file to the path it is given.
Writer = Callable[[Path], object]


def _lowest(measures: Sequence[IntervalMeasures]) -> str:
    lowest = lowest_coverage(measures)
    if lowest is None:
        return f"fewer than {LEAST:,}"
    largest = "any" if lowest.largest is None else f"{lowest.largest:,}"
    return f"{lowest.in_interval:.1%} of {lowest.smallest:,} to {largest}"


#: Columns of the tables on the screen, with their formats.
_LEVELS: Final[Formats] = {
    "level": "{0.name}",
    "cells": "{0.n_cells:,}",
    "max error": "{0.max_abs_error:,}",
    "mean error*": "{0.mean_abs_error_nonzero:,.1f}",
    "FDR": "{0.false_discovery_rate:.1%}",
    "FNR": "{0.false_negative_rate:.1%}",
    "common part": "{0.common_part:.4f}",
    "top 100**": "{0.top_mean_relative_error:.2%}",
}
_TOTALS: Final[Formats] = {
    "marginal totals": "{0.axis} {0.level}",
    "areas": "{0.n_areas:,}",
    "max error": "{0.max_abs_error:,}",
    "mean error": "{0.mean_abs_error:,.1f}",
    "bias of largest": "{0.bias_of_largest:+.2%}",
    "in interval": lambda total: (
        "not measured" if total.in_interval is None else f"{total.in_interval:.1%}"
    ),
}
#: Coverage of intervals of 95 %, for all measures of one name.
_INTERVALS: Final[Formats] = {
    "intervals (95 %)": "{0[0].name}",
    "numbers": lambda here: f"{overall(here).n_numbers:,}",
    "in interval": lambda here: f"{overall(here).in_interval:.1%}",
    "mean width": lambda here: f"{overall(here).mean_width:,.1f}",
    "lowest of any size": _lowest,
}


@dataclass(frozen=True, repr=False)
class Comparison:
    """Errors of a release against the true counts. Confidential.

    Attributes:
        settings: public parameters of the release.
        levels: measures of every level, from the root to the leaves.
        totals: measures of marginal totals.
        intervals: of intervals of published numbers; none without measurements.
        estimate: the same of an estimate that was made from the release, if there is one.
        files: that it was written to, if it was.
        truth: sentences on the rows that errors are about; see `truth_note`.
    """

    settings: Mapping[str, Any]
    levels: tuple[LevelMeasures, ...]
    totals: tuple[TotalMeasures, ...]
    intervals: tuple[IntervalMeasures, ...] = ()
    estimate: "Comparison | None" = None
    files: tuple[Path, ...] = ()
    truth: str = ""

    def __repr__(self) -> str:
        return f"<comparison of {len(self.levels)} levels; {NOTICE}>"

    def _repr_html_(self) -> str:
        return card(NOTICE, self.shown())

    def shown(self) -> list[Part]:
        """The main measures of levels, totals and intervals, with the guarantee compared."""
        names = ("rho",) if self.settings["epsilon"] is None else ("epsilon", "delta")
        guarantee = ", ".join(f"{name} = {self.settings[name]}" for name in names)
        parts: list[Part] = [
            ("Guarantee", guarantee),
            *([("Truth", self.truth)] if self.truth else []),
            *self.grids(),
        ]
        if self.estimate is not None:
            parts += ["The estimate that was made from it:", *self.estimate.grids()]
        return [
            *parts,
            "*  over cells that are not zero in both tables",
            "** mean relative error of the 100 largest true flows",
        ]

    def grids(self) -> list[Part]:
        """The tables of measures that are not empty."""
        names = dict.fromkeys(one.name for one in self.intervals)
        intervals = [[one for one in self.intervals if one.name == name] for name in names]
        found = [
            Grid.of(self.levels, _LEVELS),
            Grid.of(self.totals, _TOTALS),
            Grid.of(intervals, _INTERVALS),
        ]
        return [grid for grid in found if grid.rows]

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
        """Return all figures as a mapping, as written to a JSON file."""
        return {
            "confidential": True,
            "notice": NOTICE,
            "release": dict(self.settings),
            "truth": self.truth,
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

    The privacy unit, the contribution bound and the policy for rows that cannot be placed are
    those of the manifest. Errors are about the counted rows, as all numbers and guarantees of the
    release are. Which trips of a person with too many are counted is a random choice whose secret
    the release has discarded. The same rule is applied with a fixed seed, so a part of each error
    is the difference between two choices.

    Raises:
        IngestError: the columns contradict the manifest, the table cannot be read by the areas of
            the release, or it cannot be its truth because its total is not the release's.
    """
    _check_columns(release, columns)
    tree, unit = release.tree, release.manifest.unit
    leaves = read_leaves(
        flows,
        replace(columns, unplaceable=_as_released(release)),
        tree.axes,
        unit=unit,
        random_source=SeededSource(0),
        say=on_message,
    )
    truth = Truth.of(tree, leaves)
    if unit.root_is_public and truth.total != release.total:
        raise IngestError(
            "the total of this table differs from that of the release, which is exact; check that "
            "it is the table the release was made from, and its count column"
        )
    return truth


def truth_note(release: Release) -> str:
    """Sentences on the rows that errors are about; empty if all rows of the table were counted."""
    words = counting_note(release)
    if not words:
        return ""
    note = f"Errors are about the counted rows, as the release is: {words}."
    counted, unit = release.manifest.counted, release.manifest.unit
    if counted.bounded and not unit.root_is_public:
        _, many = counted.entries
        note += (
            f" Which {many} of people with more were counted is secret: they were chosen again by "
            "the same rule, so a part of each error is the difference between two choices."
        )
    return note


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
        truth: the result of `read_truth`.
        estimate: made from the release, to be compared as well.
        progress: called with the name of the level, levels done and number of levels.
    """
    if estimate is not None:
        estimate.check_release(release)
    released = Truth.from_leaves(release.tree, *release.leaves())
    levels = measure(truth, released, progress=progress)
    return Comparison(
        _settings(release),
        levels,
        measure_published_totals(truth, release, released),
        measure_intervals(truth, release),
        None if estimate is None else _compare_estimate(release, truth, estimate),
        truth=truth_note(release),
    )


def _compare_estimate(release: Release, truth: Truth, estimate: Estimate) -> Comparison:
    made = estimate.leaves()
    counts = Truth.from_leaves(release.tree, made.areas, made.value)
    return Comparison(
        {**_settings(release), "n_flows": estimate.manifest.n_rows, "estimate": True},
        measure(truth, counts),
        measure_totals(truth, counts),
        measure_estimated(truth, made),
        truth=truth_note(release),
    )


def _check_columns(release: Release, columns: Columns) -> None:
    """Refuse columns that contradict the manifest: the truth is counted as the release was."""
    counted, unit = release.manifest.counted, release.manifest.unit
    if counted.bounded and columns.person is None:
        most = "exactly" if unit.exactly else "at most"
        raise IngestError(
            f"the release counts {most} {unit.contribution(*counted.entries)} of each person; name "
            "the column that identifies people (`person=`), so that the truth is counted alike"
        )
    if columns.person is not None and not counted.bounded:
        raise IngestError(
            "the release was made without a person column and counts all rows of everybody; leave "
            "out `person=`"
        )
    expected = _as_released(release)
    # One word is for all axes; a mapping names the axes with an area outside.
    given = columns.unplaceable if isinstance(columns.unplaceable, Mapping) else columns.policy
    is_same = given == (expected if isinstance(given, Mapping) else counted.unplaceable)
    if columns.unplaceable is not None and not is_same:
        stated: str = counted.unplaceable
        if isinstance(expected, Mapping):
            stated = ",".join(f"{axis}={way}" for axis, way in expected.items())
        raise IngestError(
            f"the release was made with `unplaceable='{stated}'`, which holds for its truth as "
            "well; leave out `unplaceable=`"
        )


def _as_released(release: Release) -> Unplaceable | Mapping[str, str]:
    """Policy of the release for rows that could not be placed; "outside" where it has that area."""
    policy = release.manifest.counted.unplaceable
    if policy != "outside":
        return policy
    return {axis.name: "outside" for axis in release.tree.axes if axis.hierarchy.has_outside}


def _settings(release: Release) -> dict[str, Any]:
    manifest = release.manifest
    guarantee = {
        key: manifest.guarantee.get(key) for key in ("epsilon", "delta", "rho", "accountant")
    }
    return {
        "mechanism": manifest.mechanism,
        "options": dict(manifest.options),
        "private": manifest.private,
        **guarantee,
        "total": manifest.total,
        "n_flows": manifest.n_flows,
    }


def table_of(rows: Iterable[Mapping[str, Any]], kind: type, **before: type) -> pa.Table:
    """Measures as a table, marked as confidential.

    Args:
        rows: by name of the field; fields that hold nested measures are left out.
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
    """Convert the values of one field to Arrow."""
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
        comparison: its measures are written.
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
        page: functions that write a page to a path, by name of the file.
        known: folder of a release, which must not be written to.
    """
    folder = Path(out)
    check_outside(folder, *([] if known is None else [known]))
    if folder.is_symlink():  # a link could lead confidential files elsewhere
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
    """Refuse to write into a release or an estimate, also by links or relative paths.

    Args:
        out: a file or folder to write, there or not.
        known: folders that are releases; other releases are recognised by their files.
    """
    folder = published_around(out, *known)
    if folder is not None:
        raise ReleaseError(
            f"{str(out)!r} lies in the release folder or estimate {str(folder)!r}, which is for "
            "publication; measures are confidential, choose a folder elsewhere"
        )
