"""Methods side by side on the table at hand: how accurate, and what a reader finds out.

Everything here is computed from the truth. It must be kept where the truth is kept. Choosing a
method or an epsilon by it uses the truth to choose, which has to be disclosed.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import pyarrow as pa

from inftda.disclosure.attack import Attack, attack
from inftda.disclosure.methods import (
    KINDS,
    OFFICES,
    Method,
    ProtectedTables,
    check_size,
)
from inftda.errors import InftdaError
from inftda.estimates import located
from inftda.evaluation.evaluate import NOTICE, check_outside, table_of, write_confidential
from inftda.evaluation.measures import (
    LevelMeasures,
    TotalMeasures,
    area_totals,
    definitions,
    measure,
    measure_level,
    measure_total,
    measure_totals,
    totals_across,
)
from inftda.files import check_file
from inftda.inference.measured import Measurements, NoisyTable
from inftda.inference.model import Fit
from inftda.mechanism.step import Noisy
from inftda.mechanism.topdown import release_counts
from inftda.noise.bits import RandomSource, SecureSource
from inftda.options import (
    Accountant,
    Across,
    AreasFile,
    AxisFiles,
    Delta,
    Doc,
    Group,
    ImpossibleAreas,
    Levels,
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
from inftda.pages.html import percent, render, write_page
from inftda.privacy.plan import Plan, make_plan
from inftda.privacy.unit import UNIT, Unit
from inftda.publication.measurements import PlannedTable, join_parts, planned_measurements
from inftda.publication.totals import totals_by_level
from inftda.reading import Columns, read_leaves, table_from
from inftda.reading.columns import COLUMNS, UNPROMISED
from inftda.truth import Truth

#: The method with a guarantee: what it publishes, and what a model makes of its measurements.
OWN, ESTIMATED = "inftda", "inftda-estimate"
#: What is compared unless something else is asked for.
DEFAULT_METHODS: Final = (*OFFICES, "suppress:10", OWN, ESTIMATED)
_LARGEST_PARAMETER: Final = 10_000
LEVELS_FILE = "CONFIDENTIAL-methods"
SUMMARY_FILE, PAGE_FILE = "CONFIDENTIAL-methods.json", "CONFIDENTIAL-methods.html"
DISCLOSE: Final = (
    "If you choose a method or an epsilon by this, you have looked at the truth to choose, and "
    "have to say so; inftda preview chooses on something public instead."
)


@dataclass(frozen=True)
class Result:
    """One method on the table at hand. Confidential.

    Attributes:
        method: its name.
        epsilon: what it promises; None if it promises nothing.
        words: what it does, or what it promises.
        levels: measures of every level.
        totals: measures of totals across the tree.
        attack: what a reader finds out; None for methods that promise something.
    """

    method: str
    epsilon: float | None
    words: str
    levels: tuple[LevelMeasures, ...]
    totals: tuple[TotalMeasures, ...]
    attack: Attack | None

    @property
    def label(self) -> str:
        """Its name and epsilon."""
        return self.method if self.epsilon is None else f"{self.method}, epsilon {self.epsilon:g}"

    @property
    def finding(self) -> str:
        """What a reader finds out, or cannot."""
        if self.attack is None:
            return f"guaranteed, whatever a reader knows: {self.words}"
        return f"{exact_sentence(self.attack)}; {reidentification_sentence(self.attack)}"


@dataclass(frozen=True)
class MethodComparison:
    """All methods. Confidential.

    Attributes:
        trips: of the table.
        n_flows: finest cells with trips.
        unit: who is protected, where something is promised.
        results: in the order asked for.
        files: that it was written to, if it was.
    """

    trips: int
    n_flows: int
    unit: str
    results: tuple[Result, ...]
    files: tuple[Path, ...] = ()

    def by_level(self, figure: str) -> list[tuple[str, list[Any]]]:
        """A measure of every level: the name of the level, and the figure of each method."""
        levels = zip(*(one.levels for one in self.results), strict=True)
        return [(at[0].name, [getattr(one, figure) for one in at]) for at in levels if at[0].level]

    def by_total(self) -> list[tuple[str, list[float]]]:
        """Mean error of totals: whose they are, and the figure of each method."""
        totals = zip(*(one.totals for one in self.results), strict=True)
        return [
            (f"{at[0].axis} {at[0].level}", [one.mean_abs_error for one in at]) for at in totals
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
        """Everything, as it is written to a JSON file."""
        return {
            "confidential": True,
            "notice": NOTICE,
            "trips": self.trips,
            "flows": self.n_flows,
            "unit": self.unit,
            "definitions": definitions(LevelMeasures),
            "definitions_of_totals": definitions(TotalMeasures),
            "summary": summary_sentence(self),
            "methods": list(map(asdict, self.results)),
        }


@documented
def compare(  # noqa: PLR0913 - the table, the methods, and one keyword for each thing to decide
    truth: Annotated[
        Any,
        Option("The confidential table.", metavar="TRUTH", is_argument=True),
        Group(table_from),
    ],
    areas: AreasFile = None,
    *,
    methods: Annotated[
        Sequence[str],
        Option(
            "What offices do (cbs, bfs, stats-nz, ons), suppress:K, suppress-primary:K, round:B, "
            "round-nearest:B, cell-key:D; and inftda and inftda-estimate, once for every epsilon.",
            metavar="METHOD,METHOD,...",
            parse=names,
        ),
    ] = DEFAULT_METHODS,
    epsilon: Annotated[
        float | Sequence[float],
        Option("Strengths of inftda; go with delta.", "NUMBER,NUMBER,...", numbers),
    ] = 1.0,
    delta: Delta = None,
    out: Annotated[str | Path | None, Option("Folder for the figures, not in a release.")] = None,
    html: Annotated[bool, Option("Write a page as well.")] = False,
    columns: Annotated[Columns, Doc("What to read from the table."), Group(Columns)] = COLUMNS,
    unit: Annotated[Unit, Doc("Who is protected."), Group(Unit)] = UNIT,
    axis: AxisFiles = None,
    levels: Levels = None,
    order: Order = None,
    impossible: ImpossibleAreas = None,
    rho: Rhos = None,
    method: PlanMethod = "inftda",
    split: Split = None,
    across: Across = None,
    accountant: Accountant = "auto",
    seed: Annotated[int | None, Doc("Of methods that promise nothing.")] = None,
    source: Annotated[RandomSource | None, Doc("Random bits of inftda; secure by default.")] = None,
    progress: Watched = None,
) -> MethodComparison:
    """Compare what offices do today with what is promised. What comes out is CONFIDENTIAL.

    Raises:
        InftdaError: something is wrong with what was asked for or with the table.

    Privacy:
        What comes out is computed from the truth and promises nothing.
    """
    chosen = [_method(name) for name in methods]
    if out is None and html:
        raise InftdaError("a page needs a folder to be written to; give `out=`")
    if out is not None:
        check_outside(Path(out))
    tree = columns.tree(
        areas, axis=axis, levels=levels, order=order, impossible=impossible, unit=unit
    )
    given, word = (epsilon, "epsilon") if rho is None else (rho, "rho")
    strengths = list(given) if isinstance(given, Sequence) else [given]
    budget: dict[str, Any] = {
        "delta": delta, "accountant": accountant, "method": method, "split": split,
        "across": across,
    }  # fmt: skip
    # Planned before the table is read, so that a wrong setting is reported at once.
    plans = [make_plan(tree, unit, **(budget | {word: one})) for one in strengths if None in chosen]
    free = UNPROMISED if columns.policy == "drop" else None
    leaves = read_leaves(truth, columns, tree.axes, unit=free, impossible=tree.impossible)
    counts = Truth.of(tree, leaves)
    check_size(counts)
    random, bits = np.random.default_rng(seed), source or SecureSource()
    # Both of ours are made from the same noise.
    drawn = [Drawn(counts, plan, bits) for plan in plans]
    results: list[Result] = []
    for number, (name, office) in enumerate(zip(methods, chosen, strict=True)):
        if progress is not None:
            progress(name, number, len(chosen))
        if office is not None:
            results.append(_unpromised(counts, name, office, random))
        else:
            results += [one.estimated() if name == ESTIMATED else one.published() for one in drawn]
    made = MethodComparison(counts.total, counts.n_leaves, unit.describe(), tuple(results))
    if out is None:
        return made
    page = partial(write_methods_page, made) if html else None
    return replace(made, files=write_methods(made, out, page=page))


def _method(name: str) -> Method | None:
    """A method without a guarantee; None for those with a guarantee."""
    if name in {OWN, ESTIMATED}:
        return None
    if name in OFFICES:
        return OFFICES[name].method
    kind, colon, text = name.partition(":")
    if kind not in KINDS:
        known = ", ".join((*OFFICES, *KINDS, OWN, ESTIMATED))
        raise InftdaError(f"there is no method {name!r}; there are {known}")
    number = text if colon else str(KINDS[kind].default)
    if not number.isdecimal() or not 2 <= int(number) <= _LARGEST_PARAMETER:
        raise InftdaError(
            f"{kind} takes a whole number from 2 to {_LARGEST_PARAMETER:,}, such as "
            f"{kind}:{KINDS[kind].default}, got {name!r}"
        )
    return KINDS[kind](int(number))


class Drawn:
    """What a release of the table would be, drawn when it is first needed."""

    def __init__(self, counts: Truth, plan: Plan, source: RandomSource) -> None:
        self.counts, self.plan, self._source = counts, plan, source
        self._planned = planned_measurements(counts.tree, plan)

    @cached_property
    def _made(self) -> tuple[Truth, dict[tuple[int, ...], list[Noisy]]]:
        """Released counts, and the parts of each table that was measured."""
        made = release_counts(self.counts, self.plan.account(), self._source)
        parts: dict[tuple[int, ...], list[Noisy]] = {table.depths: [] for table in self._planned}
        for part in made.noisy:
            parts[part.depths].append(part)
        return Truth.from_leaves(self.counts.tree, made.leaves.areas, made.leaves.value), parts

    def _measured(self, table: PlannedTable) -> NoisyTable:
        parts = self._made[1][table.depths]
        return join_parts(table, [(part.cells(), part.value) for part in parts])

    def published(self) -> Result:
        """The numbers that readers see: totals are weighed with their measurements."""
        tree, released = self.counts.tree, self._made[0]
        totals = [table for table in self._planned if table.is_total]
        across = []
        for number, axis in enumerate(tree.axes):
            own = {one.depths[number]: one for one in totals if one.depths[number]}
            measured = {depth: self._measured(table) for depth, table in own.items()}
            shown = totals_by_level(tree, number, released.margins[number], measured)
            across += [
                measure_total(
                    axis,
                    depth,
                    area_totals(self.counts, number, depth),
                    shown[depth].flow if shown else area_totals(released, number, depth),
                )
                for other, _, depth in totals_across(tree)
                if other == number
            ]
        return self._result(OWN, measure(self.counts, released), tuple(across))

    def estimated(self) -> Result:
        """What the model makes of the measurements."""
        tree, released = self.counts.tree, self._made[0]
        levels = (table.level.index if table.is_on_tree else None for table in self._planned)
        measured = Measurements(tuple(map(self._measured, self._planned)), tuple(levels))
        found = Fit.of(tree, measured, released.total, located(tree)).leaves(0)
        made = Truth.from_leaves(tree, found.areas, found.value.astype(np.int64))
        totals = measure_totals(self.counts, made)
        return self._result(ESTIMATED, measure(self.counts, made), totals)

    def _result(
        self, name: str, levels: tuple[LevelMeasures, ...], totals: tuple[TotalMeasures, ...]
    ) -> Result:
        promised = None if self.plan.epsilon is None else float(self.plan.epsilon)
        model = "estimates by a model from the same measurements; " if name == ESTIMATED else ""
        return Result(name, promised, model + self.plan.describe(), levels, totals, attack=None)


def _unpromised(counts: Truth, name: str, method: Method, random: np.random.Generator) -> Result:
    published = method.publish(counts, random)
    totals = []
    for number, axis, depth in totals_across(counts.tree):
        true = area_totals(counts, number, depth)
        totals.append(measure_total(axis, depth, true, method.show(true, random)))
    measures = _measure_levels(published), tuple(totals)
    called, words = method.name, method.words
    if name in OFFICES:
        called, words = name, f"{words}. {OFFICES[name].source}"
    return Result(called, None, words, *measures, attack(published))


def _measure_levels(published: ProtectedTables) -> tuple[LevelMeasures, ...]:
    """Measures of every level of the tree; hidden cells count as 0."""
    splitting = [level.level.index for level in published.truth.levels]
    by_index = dict(zip(splitting, published.levels[1:], strict=True))
    shown, measures = published.levels[0], []
    for level in published.truth.tree.levels:
        shown = by_index.get(level.index, shown)
        measures.append(measure_level(level, shown.true, shown.value))
    return tuple(measures)


def write_methods(
    comparison: MethodComparison,
    out: str | Path,
    *,
    page: Callable[[Path], object] | None = None,
) -> tuple[Path, ...]:
    """Write everything to a folder of its own, readable by the owner only.

    Args:
        comparison: what to write.
        out: folder to write to, not in a release; it is made if it is not there.
        page: writes the same as a page to the path it is given.
    """
    return write_confidential(
        out,
        {LEVELS_FILE: comparison.level_table()},
        {SUMMARY_FILE: comparison.to_dict()},
        {PAGE_FILE: page},
    )


def write_methods_page(comparison: MethodComparison, out: str | Path) -> Path:
    """Write everything as a page, readable by its owner only."""
    check_file(Path(out), force=True)
    facts = {
        "trips": comparison.trips,
        "n_flows": comparison.n_flows,
        "unit": comparison.unit,
        "summary": summary_sentence(comparison),
        "disclose": DISCLOSE,
        "results": comparison.results,
        "compared": comparison,
    }
    page = render(
        "comparison.html",
        facts,
        title="Methods compared",
        style="style.css charts.css",
        is_confidential=True,
    )
    return write_page(Path(out), page, is_confidential=True)


def exact_sentence(found: Attack) -> str:
    """What follows exactly."""
    if not found.exact_with_totals:
        return "no cell follows exactly from what is published"
    by_levels, with_totals = found.exact_by_levels, found.exact_with_totals
    what = "hidden cells" if found.hidden_cells else "cells"
    words = f"{what} that follow exactly from the levels: {by_levels:,}"
    if with_totals > by_levels:
        words += f", from levels and totals: {with_totals:,}"
    return f"{words}, of which {found.exact_ones:,} are a single person"


def reidentification_sentence(found: Attack) -> str:
    """What two editions show."""
    share = percent(found.share_reidentified)
    return (
        f"{found.n_reidentified:,} of {found.trips:,} persons ({share}) are seen exactly by "
        "comparing an edition with and one without them"
    )


def summary_sentence(comparison: MethodComparison) -> str:
    """At how many levels, and in how many kinds of totals, a promise costs nothing."""
    others = [one for one in comparison.results if one.attack is not None]
    promised = [one for one in comparison.results if one.attack is None]
    return " ".join(_against(own, others) for own in promised) if others else ""


def _against(own: Result, others: Sequence[Result]) -> str:
    at = [level.level for level in own.levels if level.level]
    kept = [
        sum(own.levels[i].common_part >= one.levels[i].common_part for i in at) for one in others
    ]
    words = (
        f"{own.label} keeps at least as many trips in the right place as "
        f"{_counted(others, kept, len(at))}"
    )
    if own.totals:
        pairs = [list(zip(own.totals, one.totals, strict=True)) for one in others]
        close = [sum(a.mean_abs_error <= b.mean_abs_error for a, b in some) for some in pairs]
        near = _counted(others, close, len(own.totals))
        words += f". Its totals err by no more than those of {near}"
    return f"{words}."


def _counted(others: Sequence[Result], counts: Sequence[int], n_levels: int) -> str:
    """Methods by the number of levels, most first: cbs at 7 of 8 levels; bfs, ons at no level."""
    alike: dict[int, list[str]] = {}
    for one, n in sorted(zip(others, counts, strict=True), key=lambda pair: -pair[1]):
        alike.setdefault(n, []).append(one.label)
    return "; ".join(
        f"{', '.join(names)} at {f'{n} of {n_levels} levels' if n else 'no level'}"
        for n, names in alike.items()
    )
