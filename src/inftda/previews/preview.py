"""A preview: releases of a public stand-in, simulated for every setting that is considered.

Nothing confidential is read and nothing is charged to any ledger, so settings can be tried out as
often as one likes. What is guaranteed holds for every table; all else is true of the stand-in,
and of the confidential table as far as the two are alike.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray

from inftda.errors import InftdaError
from inftda.evaluation.measures import LevelMeasures, area_totals, measure
from inftda.evaluation.stated import BETA
from inftda.files import check_file
from inftda.noise.bits import RandomSource, SecureSource
from inftda.options import (
    PROMISE,
    Accountant,
    Across,
    AreasFile,
    AxisFiles,
    Delta,
    Doc,
    Group,
    ImpossibleAreas,
    Levels,
    Method,
    Option,
    Order,
    Rhos,
    Watched,
    documented,
    numbers,
    splits,
)
from inftda.previews.errors import (
    MIN_SIMULATED,
    N_BINS,
    ErrorHistogram,
    Simulation,
    bin_of,
    first_of,
    last_above,
    quantile,
)
from inftda.previews.findings import (
    RARELY,
    LevelPreview,
    Preview,
    Setting,
    SettingPreview,
    TotalPreview,
    Usable,
)
from inftda.previews.page import write_preview_page
from inftda.previews.stand_in import StandIn, from_flows, from_totals
from inftda.privacy.bounds import error_bounds
from inftda.privacy.plan import Plan, make_plan, usual_split
from inftda.privacy.risk import risk_of
from inftda.privacy.unit import UNIT, Unit
from inftda.publication.trust import planned_totals
from inftda.reading import Columns, table_from
from inftda.reading.columns import COLUMNS
from inftda.screen import Progress
from inftda.tree import Tree, TreeLevel
from inftda.truth import Truth

#: More settings than a committee can look at.
MAX_SETTINGS: Final = 60


@documented
def preview(  # noqa: PLR0913 - what stands in, and one keyword for each thing to decide
    areas: AreasFile = None,
    *,
    stand_in: Annotated[
        Any,
        Option(
            "A public table of flows that is like the confidential one: older, coarser, or of "
            "somewhere else.",
            metavar="FLOWS",
        ),
        Group(table_from),
    ] = None,
    stand_in_level: Annotated[
        str | None,
        Option("Level of its areas, if it is coarser: it is spread over finer ones.", "LEVEL"),
    ] = None,
    totals: Annotated[
        Any,
        Option(
            "Public totals of the finest areas (columns named after that level, out, in, perhaps "
            "within), to make flows up from or to spread a coarser table by.",
            metavar="FILE",
        ),
    ] = None,
    epsilon: Annotated[
        float | Sequence[float],
        Option("Strengths to try; go with delta.", "NUMBER,NUMBER,...", numbers),
    ] = (0.5, 1, 2),
    delta: Delta = None,
    columns: Annotated[Columns, Doc("Columns of the public table."), Group(Columns)] = COLUMNS,
    unit: Annotated[
        Unit | Sequence[Unit],
        Doc("Who is protected; or several to try."),
        Group(Unit, is_several=True),
    ] = UNIT,
    axis: AxisFiles = None,
    levels: Levels = None,
    order: Order = None,
    impossible: ImpossibleAreas = None,
    rho: Rhos = None,
    method: Method = "inftda",
    split: Annotated[
        Any,
        Option(
            "How the budget is split over the levels; or several splits to try.",
            metavar="log|uniform|geometric:R|W,W,...",
            parse=splits,
            panel=PROMISE,
            is_repeated=True,
        ),
    ] = None,
    across: Across = None,
    accountant: Accountant = "auto",
    runs: Annotated[int, Option("Simulated releases of each setting.")] = 5,
    within: Annotated[
        float, Option("Part of itself by which a number may be off to be relied on.")
    ] = 0.3,
    seed: Annotated[int, Option("Of made-up flows.")] = 1,
    allow_confidential: Annotated[
        bool,
        Option(
            "The stand-in is confidential. So is what comes out, which is marked so, and a choice "
            "made by it has to be disclosed."
        ),
    ] = False,
    html: Annotated[str | Path | None, Option("Page to write.", metavar="FILE")] = None,
    force: Annotated[bool, Option("Replace a page that is there.")] = False,
    source: Annotated[RandomSource | None, Doc("Random bits; secure by default.")] = None,
    progress: Watched = None,
) -> Preview:
    """Try settings out on a public stand-in for the confidential table.

    Every combination of the values given is a setting.

    Raises:
        InftdaError: something is wrong with what was asked for or with a public table.

    Privacy:
        None is spent, as long as the tables given are public.
    """
    if (stand_in is None) == (totals is None) and (stand_in is None or stand_in_level is None):
        raise InftdaError("give either a public table of flows to stand in, or public totals")
    if not 0 < within < 1:
        raise InftdaError(f"`within=` must be between 0 and 1, got {within}")
    if not 1 <= runs <= 1000:
        raise InftdaError(f"`runs=` must be from 1 to 1000, got {runs}")
    if html is not None:
        tables = [Path(one) for one in (stand_in, totals) if isinstance(one, str | Path)]
        check_file(Path(html), force=force, reads=tables)
    one = unit if isinstance(unit, Unit) else None
    tree = columns.tree(
        areas, axis=axis, levels=levels, order=order, impossible=impossible, unit=one
    )
    # Planned before anything is made up, so that a wrong setting is reported at once.
    strength = {"epsilon": epsilon} if rho is None else {"rho": rho}
    budget: dict[str, Any] = {
        "delta": delta, "accountant": accountant, "method": method, "across": across,
    }  # fmt: skip
    split = usual_split(method)[0] if split is None else split
    settings = _settings(tree, unit, split, strength, budget)
    if stand_in is not None:
        made = from_flows(
            tree, stand_in, level=stand_in_level, totals=totals, columns=columns, seed=seed
        )
    else:
        made = from_totals(tree, totals, seed=seed, progress=progress)
    tried = simulate_settings(
        made,
        settings,
        runs=runs,
        tolerance=within,
        source=source or SecureSource(),
        progress=progress,
    )
    tried = replace(tried, is_confidential=allow_confidential)
    if html is not None:
        write_preview_page(tried, html, force=force)
    return tried


def simulate_settings(  # noqa: PLR0913 - what is tried out, how often, and who is told
    made: StandIn,
    settings: Sequence[tuple[Setting, Plan]],
    *,
    runs: int,
    tolerance: float,
    source: RandomSource,
    progress: Progress | None = None,
) -> Preview:
    """Simulate releases of a stand-in with each setting."""
    tried = []
    for number, (setting, plan) in enumerate(settings):

        def show(run: int, before: int = number * runs) -> None:
            if progress is not None:
                progress("simulating", before + run, len(settings) * runs)

        simulation = Simulation(made.counts, plan, source)
        tried.append(_simulate(simulation, setting, runs, tolerance, show))
    delta = settings[0][1].delta
    return Preview(
        stand_in=made.words,
        n_trips=made.counts.total,
        n_flows=made.counts.n_leaves,
        runs=runs,
        tolerance=tolerance,
        delta=0.0 if delta is None else float(delta),
        settings=tuple(tried),
    )


def _settings(
    tree: Tree, unit: Any, split: Any, strength: dict[str, Any], budget: dict[str, Any]
) -> list[tuple[Setting, Plan]]:
    """Every combination, planned; a list of splits is a list of texts or of lists."""
    several = isinstance(split, list | tuple) and _holds_splits(split)
    ((word, values),) = strength.items()
    combinations = list(product(_several(unit), split if several else [split], _several(values)))
    if not combinations:
        raise InftdaError("give at least one epsilon")
    if len(combinations) > MAX_SETTINGS:
        raise InftdaError(
            f"these are {len(combinations)} settings, more than the {MAX_SETTINGS} that anybody "
            "can compare; give fewer epsilons, units or splits"
        )
    settings = []
    for who, way, value in combinations:
        plan = make_plan(tree, who, split=way, **{word: value}, **budget)
        if plan.epsilon is None:
            raise InftdaError("`rho=` goes with `delta=` here, so that epsilon can be stated")
        settings.append((Setting(float(plan.epsilon), who, way), plan))
    return settings


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _holds_splits(split: Sequence[Any]) -> bool:
    return all(isinstance(one, str | list | tuple) for one in split)


class ReliabilityHistogram:
    """Counts how many simulated numbers of a level are within a part of themselves."""

    def __init__(self, tolerance: float) -> None:
        self._tolerance = tolerance
        self._n, self._far, self._trips = (np.zeros(N_BINS, np.int64) for _ in range(3))

    def add(self, value: NDArray[np.int64], truth: NDArray[np.int64]) -> None:
        """Count the numbers of one simulated release."""
        at = bin_of(value)
        is_far = np.abs(value - truth) > self._tolerance * value
        self._n += np.bincount(at, minlength=N_BINS)
        self._far += np.bincount(at[is_far], minlength=N_BINS)
        np.add.at(self._trips, at, value)

    def usable(self) -> Usable:
        """What the count says."""
        first = last_above(self._n, self._far, RARELY) + 1
        n = int(self._n[first:].sum())
        if n < min(MIN_SIMULATED, int(self._n.sum())) or n == 0:
            return Usable(None, 0.0, 0.0)
        trips = int(self._trips[first:].sum()) / max(int(self._trips.sum()), 1)
        # The smallest number that was published at all says more than the bin it lies in.
        there = first + int(np.argmax(self._n[first:] > 0))
        return Usable(first_of(there), n / int(self._n.sum()), trips)


def _simulate(
    simulation: Simulation,
    setting: Setting,
    runs: int,
    tolerance: float,
    show: Callable[[int], None],
) -> SettingPreview:
    counts, plan, tree = simulation.counts, simulation.plan, simulation.counts.tree
    areas, flow = counts.leaves
    shown_levels = [
        level
        for level in tree.levels
        if not level.is_trivial and (level.index or not plan.unit.root_is_public)
    ]
    tallies = [ErrorHistogram(tree, level.depths, areas, flow) for level in shown_levels]
    near = [ReliabilityHistogram(tolerance) for _ in shown_levels]
    sums = [_TotalErrors(counts, number, depth) for number, depth in _totals_of(tree)]
    measured: list[tuple[LevelMeasures, ...]] = []
    for run in range(runs):
        made_areas, made = simulation.run(lambda *_, run=run: show(run))
        released = Truth.from_leaves(tree, made_areas, made)
        measured.append(measure(counts, released))
        for tally, close in zip(tallies, near, strict=True):
            close.add(*tally.add(made_areas, made))
        for total in sums:
            total.add(released)
    proven = error_bounds(tree, plan, BETA)
    bounds = {bound.index: bound.max_error for bound in proven}
    levels = tuple(
        _level(level, bounds[level.index], [run[level.index] for run in measured], tally, close)
        for level, tally, close in zip(shown_levels, tallies, near, strict=True)
    )
    widths = {table.depths: noise.half_width() for table, noise in planned_totals(tree, plan)}
    noise = [level.sigma for level in plan.levels]
    totals = tuple(one.errors(widths) for one in sums)
    promise = f"{plan.describe()}; {plan.describe_noise()}"
    return SettingPreview(setting, promise, risk_of(plan), noise[-1], levels, totals)


def _level(
    level: TreeLevel,
    bound: int,
    runs: Sequence[LevelMeasures],
    tally: ErrorHistogram,
    close: ReliabilityHistogram,
) -> LevelPreview:
    def mean(name: str) -> float:
        return float(np.mean([getattr(run, name) for run in runs]))

    return LevelPreview(
        name=level.name,
        depths=level.depths,
        n_cells=level.n_nodes,
        guaranteed=bound,
        largest_error=max(run.max_abs_error for run in runs),
        mean_error=mean("mean_abs_error_nonzero"),
        common_part=mean("common_part"),
        false_share=mean("false_discovery_rate"),
        lost_share=mean("false_negative_rate"),
        typical=tally.errors(),
        usable=close.usable(),
    )


def _totals_of(tree: Tree) -> list[tuple[int, int]]:
    """Axis and level of all totals by one axis."""
    return [
        (number, depth)
        for number, axis in enumerate(tree.axes)
        for depth in range(1, axis.hierarchy.depth + 1)
        if axis.hierarchy.splits(depth)
    ]


class _TotalErrors:
    """Errors of the totals of one level of an axis over all simulations."""

    def __init__(self, counts: Truth, number: int, depth: int) -> None:
        self._axis, self._depth, self._number = counts.tree.axes[number], depth, number
        self._depths = tuple(depth if i == number else 0 for i in range(len(counts.tree.axes)))
        self._true = area_totals(counts, number, depth)
        self._bins = np.zeros(N_BINS, np.int64)
        self._sum, self._largest, self._runs = 0, 0, 0

    def add(self, released: Truth) -> None:
        """Count the errors of one simulated release."""
        error = np.abs(area_totals(released, self._number, self._depth) - self._true)
        self._bins += np.bincount(bin_of(error), minlength=N_BINS)
        self._sum += int(error.sum())
        self._largest = max(self._largest, int(error.max()))
        self._runs += 1

    def errors(self, widths: dict[tuple[int, ...], int]) -> TotalPreview:
        """What the count says."""
        n = len(self._true)
        return TotalPreview(
            axis=self._axis.name,
            level=self._axis.hierarchy.level_name(self._depth),
            n_areas=n,
            mean_error=self._sum / max(n * self._runs, 1),
            p95=quantile(self._bins, 0.95),
            largest_error=self._largest,
            stated_within=widths.get(self._depths),
        )
