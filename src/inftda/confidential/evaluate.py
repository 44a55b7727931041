"""Compare a release with the truth it was made from, as measures and as a page.

The output is CONFIDENTIAL: it is computed from the true counts, is not private, and must be kept
where the truth is kept.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import pyarrow as pa

from inftda.confidential.confidential_files import check_output, table_of, write_confidential
from inftda.confidential.coverage import (
    LEAST,
    IntervalMeasures,
    lowest_coverage,
    measure_estimated,
    measure_intervals,
    measure_published_totals,
    overall,
)
from inftda.errors import IngestError
from inftda.estimates.estimate import Estimate, open_estimate
from inftda.noise.bits import SeededSource
from inftda.options import Doc, Group, Notified, Option, Released, Watched, documented
from inftda.pages import html as pages
from inftda.pages.explorer import Quality, Table, pack_explorer, release_totals, summed_levels
from inftda.pages.report import explorer_facts
from inftda.pages.shapes import read_places
from inftda.planning.accuracy import (
    NOTICE,
    LevelMeasures,
    SizeMeasures,
    TotalMeasures,
    definitions,
    measure,
    measure_totals,
)
from inftda.publication.release import Release, open_release
from inftda.publication.reliability import counting_note, totals_name
from inftda.publication.summary import describe_size
from inftda.reading import Columns, Unplaceable, read_leaves, table_from
from inftda.reading.columns import COLUMNS
from inftda.reading.truth import Truth
from inftda.util.files import check_file
from inftda.util.screen import Formats, Grid, Part, Progress, card

SUMMARY_FILE, PAGE_FILE = "CONFIDENTIAL-evaluation.json", "CONFIDENTIAL-evaluation.html"
#: Main measures and their headings; the page folds all others.
_MAIN: Final = {
    "name": "Level",
    "n_true": "True cells",
    "n_released": "Released cells",
    "max_abs_error": "Largest error",
    "mean_abs_error_nonzero": "Mean error of non-zero cells",
    "false_discovery_rate": "False positives",
    "false_negative_rate": "False negatives",
    "common_part": "Common part",
    "in_interval": "Numbers in their interval",
}
_RATES: Final = {"false_discovery_rate", "false_negative_rate", "in_interval"}


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
    "marginal totals": lambda total: totals_name(total.axis, total.level),
    "areas": "{0.n_areas:,}",
    "max error": "{0.max_abs_error:,}",
    "mean error": "{0.mean_abs_error:,.1f}",
    "bias of largest": "{0.bias_of_largest:+.2%}",
    "in interval": lambda total: "-" if total.in_interval is None else f"{total.in_interval:.1%}",
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

    def by_level(self) -> list[dict[str, Any]]:
        """The measures of every level, with the coverage of its intervals if known."""
        measures = [
            {key: value for key, value in asdict(level).items() if key != "sizes"}
            for level in self.levels
        ]
        for level in measures:
            known = [one for one in self.intervals if one.name == level["name"]]
            if known:
                level["in_interval"] = overall(known).in_interval
        return measures

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


@documented
def evaluate(  # noqa: PLR0913 - the columns of the table, as for a release
    release: Released,
    truth: Annotated[
        Any, Option("The confidential table it was made from.", metavar="FLOWS"), Group(table_from)
    ],
    *,
    out: Annotated[str | Path | None, Option("Folder for the measures, not in a release.")] = None,
    html: Annotated[bool, Option("Write a page as well.")] = False,
    estimate: Annotated[
        Estimate | str | Path | None,
        Option("Estimate made from the release, or its folder, to be compared as well."),
    ] = None,
    columns: Annotated[Columns, Doc("What to read from the table."), Group(Columns)] = COLUMNS,
    progress: Watched = None,
    on_message: Notified = None,
) -> Comparison:
    """Compare a release with the truth. The output is CONFIDENTIAL.

    The table is counted as it was for the release: privacy unit, contribution bound and the policy
    for rows that cannot be placed are those of the manifest.

    Raises:
        InftdaError: the table cannot be the truth of the release, `columns` contradicts the
            manifest, the estimate was made from another release, or `out` is in a release.
    """
    found = open_release(release)
    check_output(out, html=html)
    made = None if estimate is None else open_estimate(estimate)
    if made is not None:
        made.check_release(found)  # before the truth is read
    counts = read_truth(found, truth, columns, on_message=on_message)
    comparison = compare(found, counts, estimate=made, progress=progress)
    if out is None:
        return comparison
    page = partial(write_confidential_page, found, counts, comparison.by_level()) if html else None
    return replace(comparison, files=write_comparison(comparison, out, page=page))


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
    """Compare a release with its truth, as `read_truth` gives it, at every level."""
    released = Truth.from_leaves(release.tree, *release.leaves())
    levels = measure(truth, released, progress=progress)
    return Comparison(
        _settings(release),
        levels,
        measure_published_totals(truth, release),
        measure_intervals(truth, released, release),
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
    stated = manifest.guarantee.to_dict()
    guarantee = {key: stated[key] for key in ("epsilon", "delta", "rho", "accountant")}
    return {
        "algorithm": manifest.algorithm,
        "private": manifest.private,
        **guarantee,
        "total": manifest.total,
        "n_flows": manifest.n_flows,
    }


def write_comparison(
    comparison: Comparison, out: str | Path, *, page: Callable[[Path], object] | None = None
) -> tuple[Path, ...]:
    """Write the measures to a separate folder, readable by the owner only.

    Returns:
        The files: levels, size classes, totals and intervals as CSV and Parquet, the same of an
        estimate, everything as JSON, the page.
    """
    tables = {f"CONFIDENTIAL-{name}": made for name, made in comparison.tables().items()}
    if comparison.estimate is not None:
        of_estimate = comparison.estimate.tables().items()
        tables |= {f"CONFIDENTIAL-estimate-{name}": made for name, made in of_estimate}
    return write_confidential(
        out, tables, (SUMMARY_FILE, comparison.to_dict()), page and (PAGE_FILE, page)
    )


def write_confidential_page(
    release: Release, counts: Truth, measures: Sequence[Mapping[str, Any]], out: str | Path
) -> Path:
    """Write the page that compares a release with the truth, readable by its owner only.

    `measures` are those of `Comparison.by_level`.
    """
    check_file(Path(out), force=True)
    places, shapes = read_places(release.tree.axes)
    what = release.manifest.counts
    table = Table(release.tree.axes, *release.leaves(), truth=counts.leaves, what=what)
    totals = release_totals(release)
    quality = Quality(totals, intervals=totals, summed=summed_levels(release.tree))
    packed, depths = pack_explorer(table, places, shapes, quality)
    every = dict.fromkeys(
        key
        for level in measures
        for key, value in level.items()
        if isinstance(value, str | int | float)
    )
    facts = {
        "size": describe_size(release),
        "truth": truth_note(release),
        "main": _measures_table({key: _MAIN[key] for key in _MAIN if key in every}, measures),
        "every": _measures_table({key: key for key in every}, measures),
        **explorer_facts(release.tree.axes, packed, depths),
    }
    page = pages.render(
        "confidential.html",
        facts,
        title="Release against truth",
        script=pages.script("explore.mjs"),
        is_confidential=True,
    )
    return pages.write_page(Path(out), page, is_confidential=True)


def _measures_table(
    columns: Mapping[str, str], measures: Sequence[Mapping[str, Any]]
) -> tuple[list[str], list[list[str]]]:
    rows = [[_figure(key, level.get(key)) for key in columns] for level in measures]
    return list(columns.values()), rows


def _figure(key: str, value: object) -> str:
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, float):
        return pages.percent(value, 1) if key in _RATES else f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
