"""Methods of disclosure control compared on one table, each with the same measures.

All results are computed from the truth and must be kept where the truth is kept. An epsilon or a
method chosen by them depends on the truth, which has to be disclosed.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import pyarrow as pa

from inftda.confidential.confidential_files import check_output, table_of, write_confidential
from inftda.confidential.coverage import measure_published_totals
from inftda.confidential.methods import OFFICES, Method, find_method
from inftda.estimates.estimate import estimate
from inftda.mechanism.topdown import Outcome, release_counts
from inftda.noise.bits import RandomSource, SecureSource
from inftda.options import (
    Accountant,
    AreasFile,
    AxisFiles,
    CrossTables,
    Delta,
    Doc,
    Group,
    Levels,
    Notified,
    Option,
    Order,
    Rhos,
    Split,
    Watched,
    documented,
    names,
    numbers,
)
from inftda.options import Method as PlanMethod
from inftda.pages.html import render, write_page
from inftda.pipeline import release
from inftda.planning.accuracy import (
    NOTICE,
    LevelMeasures,
    TotalMeasures,
    area_totals,
    definitions,
    marginal_totals,
    measure,
    measure_level,
    measure_total,
    measure_totals,
)
from inftda.privacy.noise_plan import Account, make_plan
from inftda.privacy.unit import UNIT, Unit
from inftda.publication.release import Release
from inftda.publication.reliability import totals_name
from inftda.reading import Columns, read_leaves, table_from
from inftda.reading.columns import COLUMNS
from inftda.reading.truth import Truth
from inftda.util.files import check_file
from inftda.util.screen import Formats, Grid, Part, Progress

#: The methods with a guarantee: the published table, and the estimate from its measurements.
OWN, ESTIMATED = "inftda", "inftda-estimate"
DEFAULT_METHODS: Final = (*OFFICES, "suppress:10", OWN, ESTIMATED)
LEVELS_FILE = "CONFIDENTIAL-methods"
SUMMARY_FILE, PAGE_FILE = "CONFIDENTIAL-methods.json", "CONFIDENTIAL-methods.html"
NO_GUARANTEE: Final = (
    "Methods without a guarantee do not limit what a reader can find out: hidden cells may follow "
    "from published sums, and two editions of a table, one with and one without a person, may show "
    "where that person's trip went. Epsilon limits this for every attack."
)
DISCLOSE: Final = (
    "If you choose a method or an epsilon by this comparison, the choice depends on the truth and "
    "must be disclosed; inftda preview chooses on a public table instead."
)

#: Columns of the table of methods, with their formats.
_RESULTS: Final[Formats] = {
    "at the finest level": "{0.label}",
    "max error": lambda one: f"{one.levels[-1].max_abs_error:,}",
    "false": lambda one: f"{one.levels[-1].false_discovery_rate:.1%}",
    "lost": lambda one: f"{one.levels[-1].false_negative_rate:.1%}",
    "guarantee": lambda one: "yes" if one.is_guaranteed else "none",
}


@dataclass(frozen=True)
class MethodResult:
    """Accuracy of one method. Confidential.

    Epsilon is None without a guarantee, or with rho alone; `words` describe the method.
    """

    method: str
    epsilon: float | None
    is_guaranteed: bool
    words: str
    levels: tuple[LevelMeasures, ...]
    totals: tuple[TotalMeasures, ...]

    @property
    def label(self) -> str:
        """Its name and epsilon."""
        return self.method if self.epsilon is None else f"{self.method}, epsilon {self.epsilon:g}"


@dataclass(frozen=True)
class MethodComparison:
    """All methods. Confidential.

    Attributes:
        trips: of the table.
        n_flows: finest cells with trips.
        unit: the privacy unit of the guarantees.
        results: in the order asked for.
        files: that it was written to, if it was.
    """

    trips: int
    n_flows: int
    unit: str
    results: tuple[MethodResult, ...]
    files: tuple[Path, ...] = ()

    def by_level(self, figure: str) -> list[tuple[str, list[Any]]]:
        """A measure of every level below the root: name of the level, figure of each method."""
        levels = zip(*(one.levels for one in self.results), strict=True)
        return [(at[0].name, [getattr(one, figure) for one in at]) for at in levels if at[0].level]

    def by_total(self) -> list[tuple[str, list[float]]]:
        """Mean error of totals: axis and level, figure of each method."""
        totals = zip(*(one.totals for one in self.results), strict=True)
        return [
            (totals_name(at[0].axis, at[0].level), [one.mean_abs_error for one in at])
            for at in totals
        ]

    def shown(self) -> list[Part]:
        """Accuracy at every level, and of totals, of every method."""
        labels = [one.label for one in self.results]
        levels = [
            (name, *(f"{part:.4f}" for part in parts))
            for name, parts in self.by_level("common_part")
        ]
        totals = [
            (name, *(f"{error:,.1f}" for error in errors)) for name, errors in self.by_total()
        ]
        return [
            Grid(("common part*", *labels), levels),
            *([Grid(("mean error of totals of", *labels), totals)] if totals else []),
            Grid.of(self.results, _RESULTS),
            *(f"{one.label}: {one.words}." for one in self.results),
            "",
            "* common part of commuters: share of trips in which both tables agree; hidden is 0",
            NO_GUARANTEE,
            DISCLOSE,
        ]

    def level_table(self) -> pa.Table:
        """One row per method and level."""
        rows = (
            {"method": one.method, "epsilon": one.epsilon, **asdict(level)}
            for one in self.results
            for level in one.levels
        )
        return table_of(rows, LevelMeasures, method=str, epsilon=float)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as a mapping, as written to a JSON file."""
        return {
            "confidential": True,
            "notice": NOTICE,
            "trips": self.trips,
            "flows": self.n_flows,
            "unit": self.unit,
            "definitions": definitions(LevelMeasures),
            "definitions_of_totals": definitions(TotalMeasures),
            "methods": list(map(asdict, self.results)),
        }


@documented
def compare(  # noqa: PLR0913 - the table, the methods, and one keyword for each thing to decide
    truth: Annotated[
        Any, Option("The confidential table.", metavar="TRUTH", is_argument=True), Group(table_from)
    ],
    areas: AreasFile = None,
    *,
    methods: Annotated[
        Sequence[str],
        Option(
            "Methods of offices (cbs, bfs, stats-nz, ons), suppress:K, suppress-primary:K, "
            "round:B, round-nearest:B, cell-key:D; and inftda and inftda-estimate, once for every "
            "epsilon.",
            metavar="METHOD,METHOD,...",
            parse=names,
        ),
    ] = DEFAULT_METHODS,
    epsilon: Annotated[
        float | Sequence[float],
        Option("Values of epsilon for inftda; go with delta.", "NUMBER,NUMBER,...", numbers),
    ] = 1.0,
    delta: Delta = None,
    out: Annotated[str | Path | None, Option("Folder for the figures, not in a release.")] = None,
    html: Annotated[bool, Option("Write a page as well.")] = False,
    columns: Annotated[Columns, Doc("What to read from the table."), Group(Columns)] = COLUMNS,
    unit: Annotated[Unit, Doc("Privacy unit."), Group(Unit)] = UNIT,
    axis: AxisFiles = None,
    levels: Levels = None,
    order: Order = None,
    rho: Rhos = None,
    method: PlanMethod = "inftda",
    split: Split = None,
    cross_tables: CrossTables = None,
    accountant: Accountant = "auto",
    seed: Annotated[int | None, Doc("Of methods without a guarantee.")] = None,
    source: Annotated[RandomSource | None, Doc("Random bits of inftda; secure by default.")] = None,
    progress: Watched = None,
    on_message: Notified = None,
) -> MethodComparison:
    """Compare with other disclosure-control methods. The output is CONFIDENTIAL.

    Raises:
        InftdaError: an argument or the table is wrong.

    Privacy:
        The output is computed from the truth and has no guarantee.
    """
    chosen = [None if name in {OWN, ESTIMATED} else find_method(name) for name in methods]
    check_output(out, html=html)
    of_tree: dict[str, Any] = {
        "axis": axis, "levels": levels, "order": order, "unit": unit,
    }  # fmt: skip
    tree = columns.tree(areas, **of_tree)
    given, word = (epsilon, "epsilon") if rho is None else (rho, "rho")
    budgets = list(given) if isinstance(given, Sequence) else [given]
    budget: dict[str, Any] = {
        "delta": delta, "accountant": accountant, "method": method, "split": split,
        "cross_tables": cross_tables,
    }  # fmt: skip
    if None in chosen:  # planned before the table is read, to report a wrong setting at once
        for one in budgets:
            make_plan(tree, unit, **(budget | {word: one}))
    bits = source or SecureSource()
    # Counted once, as for a release: all methods are compared on the rows that it would count.
    leaves = read_leaves(truth, columns, tree.axes, unit=unit, random_source=bits, say=on_message)
    counts, random = Truth.of(tree, leaves), np.random.default_rng(seed)
    released: list[Release] = []
    results: list[MethodResult] = []
    for number, (name, other) in enumerate(zip(methods, chosen, strict=True)):
        if progress is not None:
            progress(name, number, len(chosen))
        if other is not None:
            results.append(_without_guarantee(counts, other, random))
            continue
        # The estimates are made from the same releases as the published tables.
        released = released or [
            release(
                None,
                areas,
                columns=columns,
                engine=_Counted(counts),
                source=bits,
                allow_large_delta=True,
                **of_tree,
                **(budget | {word: one}),
            )
            for one in budgets
        ]
        results += [_with_guarantee(counts, made, name) for made in released]
    found = MethodComparison(counts.total, counts.n_leaves, unit.describe(), tuple(results))
    if out is None:
        return found
    files = write_confidential(
        out,
        {LEVELS_FILE: found.level_table()},
        (SUMMARY_FILE, found.to_dict()),
        (PAGE_FILE, partial(write_methods_page, found)) if html else None,
    )
    return replace(found, files=files)


@dataclass(frozen=True, repr=False)
class _Counted:
    """An engine of `release` for a table that is counted already."""

    truth: Truth

    def started(self) -> AbstractContextManager["_Counted"]:
        return nullcontext(self)

    def read(self, *_: Any, **__: Any) -> Truth:
        return self.truth

    def release(
        self, truth: Truth, account: Account, source: RandomSource, *, progress: Progress
    ) -> Outcome:
        return release_counts(truth, account, source, progress=progress)


def _with_guarantee(counts: Truth, made: Release, name: str) -> MethodResult:
    """Accuracy of a release, or of the estimate from it."""
    plan = made.manifest.plan
    words, epsilon = plan.describe(), None if plan.epsilon is None else float(plan.epsilon)
    if name == ESTIMATED:
        found = estimate(made).leaves()
        shown = Truth.from_leaves(made.tree, found.areas, found.value)
        words = f"estimates by a model from the same measurements; {words}"
        totals = measure_totals(counts, shown)
    else:
        shown = Truth.from_leaves(made.tree, *made.leaves())
        totals = measure_published_totals(counts, made)
    return MethodResult(name, epsilon, True, words, measure(counts, shown), totals)


def _without_guarantee(counts: Truth, method: Method, random: np.random.Generator) -> MethodResult:
    """Accuracy of a method of an office; hidden cells count as 0."""
    pairs = {
        at.level.index: (at.count, shown)
        for at, shown in zip(counts.levels, method.show_levels(counts, random), strict=True)
    }
    total = np.array([counts.total], np.int64)
    pair, levels = (total, method.show(total, random)), []
    for level in counts.tree.levels:
        pair = pairs.get(level.index, pair)  # a level that splits nothing has those above it
        levels.append(measure_level(level, *pair))
    totals = []
    for number, axis, depth in marginal_totals(counts.tree):
        true = area_totals(counts, number, depth)
        totals.append(measure_total(axis, depth, true, method.show(true, random)))
    return MethodResult(method.name, None, False, method.words, tuple(levels), tuple(totals))


def write_methods_page(comparison: MethodComparison, out: str | Path) -> Path:
    """Write everything as a page, readable by its owner only."""
    check_file(Path(out), force=True)
    page = render(
        "comparison.html",
        {"compared": comparison, "notes": (NO_GUARANTEE, DISCLOSE)},
        title="Methods compared",
        style="style.css charts.css",
        is_confidential=True,
    )
    return write_page(Path(out), page, is_confidential=True)
