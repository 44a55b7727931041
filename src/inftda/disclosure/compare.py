"""Methods side by side on the table at hand: how accurate, and what a reader finds out.

Everything here is computed from the truth. It must be kept where the truth is kept. Choosing a
method or an epsilon by it uses the truth to choose, which has to be disclosed.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import pyarrow as pa

from inftda.disclosure.attack import Attack, attack
from inftda.disclosure.methods import (
    KINDS,
    Method,
    ProtectedTables,
    check_size,
)
from inftda.errors import InftdaError
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
from inftda.evaluation.typical import Simulation
from inftda.files import check_file
from inftda.noise.bits import RandomSource, SecureSource
from inftda.options import (
    Accountant,
    Across,
    AreasFile,
    AxisFiles,
    Delta,
    Doc,
    Group,
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
from inftda.pages.html import percent, render, write_page
from inftda.privacy.plan import DEFAULT_ACROSS, make_plan
from inftda.privacy.unit import UNIT, Unit
from inftda.reading import Columns, read_leaves, table_from
from inftda.reading.columns import COLUMNS, UNPROMISED
from inftda.screen import no_progress
from inftda.truth import Truth

#: The method with a guarantee.
OWN: Final = "inftda"
#: What is compared unless something else is asked for.
DEFAULT_METHODS: Final = ("suppress:10", "round:5", "cell-key", OWN)
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
            "suppress:K, suppress-primary:K, round:B, cell-key:D, and inftda once for every "
            "epsilon.",
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
    rho: Rhos = None,
    split: Split = "uniform",
    across: Across = DEFAULT_ACROSS,
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
    tree = columns.tree(areas, axis=axis, levels=levels, order=order)
    given, word = (epsilon, "epsilon") if rho is None else (rho, "rho")
    strengths = list(given) if isinstance(given, Sequence) else [given]
    budget: dict[str, Any] = {
        "delta": delta, "accountant": accountant, "split": split, "across": across,
    }  # fmt: skip
    # Planned before the table is read, so that a wrong setting is reported at once.
    plans = [make_plan(tree, unit, **(budget | {word: one})) for one in strengths if None in chosen]
    todo: list[tuple[Method | None, Any]] = []
    for one in chosen:
        todo += [(one, None)] if one is not None else [(None, plan) for plan in plans]
    free = UNPROMISED if columns.policy == "drop" else None
    counts = Truth.of(tree, read_leaves(truth, columns, tree.axes, unit=free))
    check_size(counts)
    random, bits = np.random.default_rng(seed), source or SecureSource()
    results = []
    for number, (one, plan) in enumerate(todo):
        if progress is not None:
            progress(OWN if one is None else one.name, number, len(todo))
        if one is None:
            promised = None if plan.epsilon is None else float(plan.epsilon)
            results.append(_promised(counts, Simulation(counts, plan, bits), promised))
        else:
            results.append(_unpromised(counts, one, random))
    made = MethodComparison(counts.total, counts.n_leaves, unit.describe(), tuple(results))
    if out is None:
        return made
    page = partial(write_methods_page, made) if html else None
    return replace(made, files=write_methods(made, out, page=page))


def _method(name: str) -> Method | None:
    """A method without a guarantee; None for the one with a guarantee."""
    if name == OWN:
        return None
    kind, colon, text = name.partition(":")
    if kind not in KINDS:
        raise InftdaError(f"there is no method {name!r}; there are {', '.join((*KINDS, OWN))}")
    number = text if colon else str(KINDS[kind].default)
    if not number.isdecimal() or not 2 <= int(number) <= _LARGEST_PARAMETER:
        raise InftdaError(
            f"{kind} takes a whole number from 2 to {_LARGEST_PARAMETER:,}, such as "
            f"{kind}:{KINDS[kind].default}, got {name!r}"
        )
    return KINDS[kind](int(number))


def _promised(counts: Truth, simulation: Simulation, epsilon: float | None) -> Result:
    released = Truth.from_leaves(counts.tree, *simulation.run(no_progress))
    measures = measure(counts, released), measure_totals(counts, released)
    return Result(OWN, epsilon, simulation.plan.describe(), *measures, attack=None)


def _unpromised(counts: Truth, method: Method, random: np.random.Generator) -> Result:
    published = method.publish(counts, random)
    totals = []
    for number, axis, depth in totals_across(counts.tree):
        true = area_totals(counts, number, depth)
        totals.append(measure_total(axis, depth, true, method.show(true, random)))
    measures = _measure_levels(published), tuple(totals)
    return Result(method.name, None, method.words, *measures, attack(published))


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
    """Which method keeps most, with and without a promise, at the finest level and in sums."""
    finest = {one.label: one.levels[-1].common_part for one in comparison.results}
    best = max(finest, key=lambda label: finest[label])
    promised = [one for one in comparison.results if one.attack is None]
    words = f"At the finest level {best} keeps most: {finest[best]:.3f} of the trips."
    if not promised:
        return words
    kept = max(promised, key=lambda one: one.levels[-1].common_part)
    if kept.label == best:
        words += " It also promises something."
    else:
        words += (
            f" Of those that promise something, {kept.label} does, with {finest[kept.label]:.3f}. "
            "The difference is the price of the promise at this level."
        )
    levels = [level for level in comparison.results[0].levels if level.level]
    at = min(levels, key=lambda level: (level.n_cells < 2, level.n_cells)).level
    in_sums = max(promised, key=lambda one: one.levels[at].common_part)
    if in_sums.label != kept.label:
        words += (
            f" Sums are another matter: at {kept.levels[at].name} it has "
            f"{kept.levels[at].common_part:.3f}, {in_sums.label} "
            f"{in_sums.levels[at].common_part:.3f}."
        )
    return words
