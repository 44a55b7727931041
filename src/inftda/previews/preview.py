"""A preview: releases of a public stand-in, simulated for every setting that is considered.

Nothing confidential is read and nothing is charged to any ledger, so settings can be tried out as
often as one likes. What is guaranteed holds for every table; all else is true of the stand-in,
and of the confidential table as far as the two are alike.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from inftda.errors import InftdaError
from inftda.evaluation.measures import LevelMeasures, area_totals, measure
from inftda.evaluation.stated import BETA
from inftda.evaluation.typical import (
    MIN_SIMULATED,
    N_BINS,
    ErrorHistogram,
    Simulation,
    bin_of,
    first_of,
    last_above,
    quantile,
)
from inftda.noise.bits import RandomSource, SecureSource
from inftda.noise.quantiles import half_width
from inftda.previews.findings import (
    RARELY,
    LevelPreview,
    Preview,
    Setting,
    SettingPreview,
    TotalPreview,
    Usable,
)
from inftda.previews.stand_in import StandIn, from_flows, from_totals
from inftda.privacy.bounds import error_bounds
from inftda.privacy.plan import Plan, make_plan, share_or_default
from inftda.privacy.unit import Unit
from inftda.publication.trust import planned_totals
from inftda.reading import Columns, Unplaceable
from inftda.screen import Progress
from inftda.tree import DESTINATION, ORIGIN, Tree, TreeLevel, build_tree
from inftda.truth import Truth

#: More settings than a committee can look at.
MAX_SETTINGS: Final = 60


def preview(  # noqa: PLR0913 - what stands in, and one keyword for each thing to decide
    areas: Any = None,
    *,
    stand_in: Any = None,
    stand_in_level: str | None = None,
    totals: Any = None,
    epsilon: float | Sequence[float] = (0.5, 1, 2),
    delta: float | None = None,
    neighbours: str | Sequence[str] = "substitute",
    trips: int | Sequence[int] = 1,
    exactly: bool | None = None,
    distinct: bool = False,
    split: Any = "uniform",
    across: float | None = None,
    accountant: str = "auto",
    origin_areas: Any = None,
    destination_areas: Any = None,
    axes: dict[str, Any] | None = None,
    order: Sequence[str] | None = None,
    tree: Literal["destination", "origin"] = "destination",
    origin: str = ORIGIN,
    destination: str = DESTINATION,
    count: str | None = "auto",
    unplaceable: Unplaceable = "error",
    runs: int = 5,
    within: float = 0.3,
    allow_confidential: bool = False,
    seed: int = 1,
    source: RandomSource | None = None,
    progress: Progress | None = None,
) -> Preview:
    """Try settings out on a public stand-in for the confidential table.

    Args:
        areas: the public hierarchy, as for `inftda.release`.
        stand_in: a public table of flows that is like the confidential one.
        stand_in_level: name of the level of its areas, if it is coarser.
        totals: public totals of the finest areas (columns named after that level, `out`, `in`
            and perhaps `within`), to make flows up from, or to spread a coarser table by.
        epsilon: one or several; every combination of the values given is a setting.
        delta: probability that the guarantee does not hold.
        neighbours: one or several of "substitute" and "add-remove".
        trips: one or several numbers of trips of one person.
        exactly: as for `inftda.release`.
        distinct: as for `inftda.release`.
        split: one, or a list of several: "uniform", "geometric:1.3", or lists of weights.
        across: as for `inftda.release`.
        accountant: as for `inftda.release`.
        origin_areas: as for `inftda.release`.
        destination_areas: as for `inftda.release`.
        axes: as for `inftda.release`.
        order: as for `inftda.release`.
        tree: as for `inftda.release`.
        origin: column of the public table where trips start.
        destination: column where they end.
        count: column of counts.
        unplaceable: rows of the public table with an unknown area.
        runs: simulations of each setting.
        within: part of itself by which a number may be off to be relied on.
        allow_confidential: the table to stand in is confidential. What comes out is then
            confidential and marked so, and a choice made by it has to be disclosed.
        seed: of made-up flows; of their noise if `source` says so.
        source: random bits; secure by default.
        progress: called with what is done, how much of it, and how much there is.

    Raises:
        InftdaError: something is wrong with what was asked for or with a public table.

    Privacy:
        None is spent, as long as the tables given are public.
    """
    if (stand_in is None) == (totals is None) and (stand_in is None or stand_in_level is None):
        raise InftdaError("give either a public table of flows to stand in, or public totals")
    if not 0 < within < 1:
        raise InftdaError(f"within must be between 0 and 1, got {within}")
    if not 1 <= runs <= 1000:
        raise InftdaError(f"runs must be from 1 to 1000, got {runs}")
    public = build_tree(
        areas,
        origin_areas=origin_areas,
        destination_areas=destination_areas,
        axes=axes,
        order=order,
        first=tree,
        outside=unplaceable == "outside",
    )
    settings = _settings(
        epsilon, neighbours, trips, split, {"exactly": exactly, "distinct": distinct}
    )
    budget = {"delta": delta, "accountant": accountant, "across": share_or_default(across)}
    # Planned before anything is made up, so that a wrong setting is reported at once.
    plans = [plan_of(public, one, budget) for one in settings]
    if stand_in is not None:
        columns = Columns(
            origin=origin, destination=destination, count=count, unplaceable=unplaceable
        )
        made = from_flows(
            public, stand_in, level=stand_in_level, totals=totals, columns=columns, seed=seed
        )
    else:
        made = from_totals(public, totals, seed=seed, progress=progress)
    tried = simulate_settings(
        made,
        list(zip(settings, plans, strict=True)),
        runs=runs,
        tolerance=within,
        source=source or SecureSource(),
        progress=progress,
    )
    return replace(tried, is_confidential=allow_confidential)


def plan_of(tree: Tree, setting: Setting, budget: dict[str, Any]) -> Plan:
    """The noise of a setting."""
    return make_plan(
        tree, setting.unit, epsilon=setting.epsilon, rho=None, split=setting.split, **budget
    )


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
    epsilon: Any, neighbours: Any, trips: Any, split: Any, unit: dict[str, Any]
) -> list[Setting]:
    """Every combination; a list of splits is a list of texts or of lists."""
    splits = split if isinstance(split, list | tuple) and _holds_splits(split) else [split]
    units = [
        Unit(one, number, **unit) for one, number in product(_several(neighbours), _several(trips))
    ]
    made = [
        Setting(float(strength), one, way)
        for one, way, strength in product(units, splits, _several(epsilon))
    ]
    if not made:
        raise InftdaError("give at least one epsilon")
    if len(made) > MAX_SETTINGS:
        raise InftdaError(
            f"these are {len(made)} settings, more than the {MAX_SETTINGS} that anybody can "
            "compare; give fewer epsilons, units or splits"
        )
    return made


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
    tallies = [ErrorHistogram(tree, level.depths, areas, flow, factor=1) for level in shown_levels]
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
    widths = {table.depths: half_width(sigma) for table, sigma in planned_totals(tree, plan)}
    noise = [float(level.sigma2) ** 0.5 for level in plan.levels]
    totals = tuple(one.errors(widths) for one in sums)
    return SettingPreview(setting, plan.describe(), noise[-1], levels, totals)


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
