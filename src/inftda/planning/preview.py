"""A preview: releases of a public stand-in, simulated for every setting that is considered.

Nothing confidential is read and no ledger is charged, so any number of settings can be tried.
Guaranteed errors hold for every table. All other figures hold for the stand-in, and for the
confidential table as far as the two are alike.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import ceil
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np

from inftda.errors import InftdaError
from inftda.mechanism.topdown import release_counts
from inftda.noise.bits import RandomSource, SecureSource
from inftda.options import (
    GUARANTEE,
    Accountant,
    AllowLargeDelta,
    AreasFile,
    AxisFiles,
    CrossTables,
    Delta,
    Doc,
    Group,
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
from inftda.planning.accuracy import (
    CLASS_STARTS,
    LevelCells,
    LevelMeasures,
    area_totals,
    axis_totals,
    class_of,
    level_cells,
    measure_level,
)
from inftda.planning.findings import (
    LevelPreview,
    Preview,
    Setting,
    SettingPreview,
    SizeShares,
    TotalPreview,
    Usable,
    write_preview_page,
)
from inftda.planning.stand_in import StandIn, from_flows
from inftda.privacy.bounds import error_bounds
from inftda.privacy.noise_plan import Plan, check_delta, make_plan, usual_split
from inftda.privacy.risk import risk_of
from inftda.privacy.unit import UNIT, Unit
from inftda.publication.intervals import Intervals
from inftda.publication.measurements import measurements_of, noisy_table
from inftda.publication.reliability import level_use, planned_totals
from inftda.publication.summary import BETA, guarantee_sentence
from inftda.reading import Columns, table_from
from inftda.reading.columns import COLUMNS
from inftda.reading.truth import Truth
from inftda.tree import Axis, Ints, Tree, TreeLevel
from inftda.util.files import check_file
from inftda.util.screen import Progress

#: More settings than a committee can look at.
MAX_SETTINGS: Final = 60
#: Shares of fewer numbers than this are left out.
MIN_SIMULATED: Final = 40
#: Quantiles of errors that are stated.
_SHARES: Final = (0.5, 0.95)


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
    epsilon: Annotated[
        float | Sequence[float],
        Option("Values of epsilon to compare; go with delta.", "NUMBER,NUMBER,...", numbers),
    ] = (0.5, 1, 2),
    delta: Delta = None,
    columns: Annotated[Columns, Doc("Columns of the public table."), Group(Columns)] = COLUMNS,
    unit: Annotated[
        Unit | Sequence[Unit],
        Doc("Privacy unit; or several to compare."),
        Group(Unit, is_several=True),
    ] = UNIT,
    axis: AxisFiles = None,
    levels: Levels = None,
    order: Order = None,
    rho: Rhos = None,
    method: Method = "inftda",
    split: Annotated[
        Any,
        Option(
            "How the budget is split over the levels; or several splits to compare.",
            metavar="log|uniform|W,W,...",
            parse=splits,
            panel=GUARANTEE,
            is_repeated=True,
        ),
    ] = None,
    cross_tables: CrossTables = None,
    accountant: Accountant = "auto",
    allow_large_delta: AllowLargeDelta = False,
    runs: Annotated[int, Option("Simulated releases of each setting.")] = 5,
    seed: Annotated[int, Option("Of the flows of a coarser table between finer areas.")] = 1,
    allow_confidential: Annotated[
        bool,
        Option(
            "The stand-in is confidential. The output is then marked as confidential, and a "
            "choice made by it has to be disclosed."
        ),
    ] = False,
    html: Annotated[str | Path | None, Option("Page to write.", metavar="FILE")] = None,
    force: Annotated[bool, Option("Replace a page that is there.")] = False,
    source: Annotated[RandomSource | None, Doc("Random bits; secure by default.")] = None,
    progress: Watched = None,
) -> Preview:
    """Simulate releases of a public stand-in for the confidential table.

    Every combination of the values given is a setting.

    Raises:
        InftdaError: an argument or a public table is wrong.

    Privacy:
        No budget is used if the given tables are public.
    """
    if stand_in is None:
        raise InftdaError(
            "give `stand_in=`, a public table of flows; without one, `inftda plan` states the "
            "errors, and `inftda demo --sizes` makes a table up"
        )
    if not 1 <= runs <= 1000:
        raise InftdaError(f"`runs=` must be from 1 to 1000, got {runs}")
    if html is not None:
        table = Path(stand_in) if isinstance(stand_in, str | Path) else None
        check_file(Path(html), force=force, reads=[table])
    first, *others = _several(unit) or [UNIT]
    if any(one.once_per != first.once_per for one in others):
        raise InftdaError(
            "units with different `once_per=` refine their axes in different orders; preview them "
            "one by one"
        )
    tree = columns.tree(areas, axis=axis, levels=levels, order=order, unit=first)
    # Planned before the table is read, so that a wrong setting is reported at once.
    strengths = ("epsilon", epsilon) if rho is None else ("rho", rho)
    budget: dict[str, Any] = {
        "delta": delta, "accountant": accountant, "method": method, "cross_tables": cross_tables,
    }  # fmt: skip
    split = usual_split(method)[0] if split is None else split
    settings = _settings(tree, unit, split, strengths, budget)
    made = from_flows(tree, stand_in, level=stand_in_level, columns=columns, seed=seed)
    for _, plan in settings:
        check_delta(plan, total=made.counts.total, allowed=allow_large_delta)
    tried = simulate_settings(
        made, settings, runs=runs, source=source or SecureSource(), progress=progress
    )
    tried = replace(tried, is_confidential=allow_confidential)
    if html is not None:
        write_preview_page(tried, html, force=force)
    return tried


def simulate_settings(
    made: StandIn,
    settings: Sequence[tuple[Setting, Plan]],
    *,
    runs: int,
    source: RandomSource,
    progress: Progress | None = None,
) -> Preview:
    """Simulate releases of a stand-in with each setting."""
    tried = []
    for number, (setting, plan) in enumerate(settings):

        def show(run: int, before: int = number * runs) -> None:
            if progress is not None:
                progress("simulating", before + run, len(settings) * runs)

        tried.append(_simulate(made.counts, setting, plan, source, runs, show))
    delta = settings[0][1].delta
    return Preview(
        stand_in=made.words,
        n_trips=made.counts.total,
        n_flows=made.counts.n_leaves,
        runs=runs,
        delta=0.0 if delta is None else float(delta),
        settings=tuple(tried),
    )


def _settings(
    tree: Tree, unit: Any, split: Any, strengths: tuple[str, Any], options: dict[str, Any]
) -> list[tuple[Setting, Plan]]:
    """Every combination, planned; a list of splits is a list of texts or of lists."""
    several = isinstance(split, list | tuple) and all(
        isinstance(one, str | list | tuple) for one in split
    )
    word, values = strengths
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
        plan = make_plan(tree, who, split=way, **{word: value}, **options)
        if plan.epsilon is None:
            raise InftdaError("`rho=` goes with `delta=` here, so that epsilon can be stated")
        settings.append((Setting(float(plan.epsilon), who, way), plan))
    return settings


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


class LevelRun(NamedTuple):
    """One level of one simulated release.

    `errors` are the median and the 95 % quantile of published numbers; `sizes`, int64[4, classes],
    counts published and false numbers, and true and lost flows.
    """

    measures: LevelMeasures
    errors: Ints
    usable: Usable
    sizes: Ints


def _simulate(  # noqa: PLR0913, PLR0917 - private
    counts: Truth,
    setting: Setting,
    plan: Plan,
    source: RandomSource,
    runs: int,
    show: Callable[[int], None],
) -> SettingPreview:
    """Release a table again and again, and return the mean of the measures.

    The table is a public stand-in or, where the output is marked confidential, the truth. The
    simulated releases are published nowhere and charged to nothing.
    """
    tree = counts.tree
    tried = [_run(counts, plan, source, partial(show, run)) for run in range(runs)]
    levels, totals = (zip(*parts, strict=True) for parts in zip(*tried, strict=True))
    planned = {level.index for level in plan.levels}
    shown = [level for level in tree.levels if level.index in planned]
    bounds = {bound.index: bound.max_error for bound in error_bounds(tree, plan, BETA)}
    widths = {table.depths: noise.half_width() for table, noise in planned_totals(tree, plan)}
    return SettingPreview(
        setting,
        guarantee_sentence(plan),
        f"{plan.describe()}; {plan.describe_noise()}",
        risk_of(plan),
        plan.levels[-1].sigma,
        tuple(
            _level(level, bounds[level.index], found)
            for level, found in zip(shown, levels, strict=True)
        ),
        tuple(
            _total(axis, depth, errors, widths.get(tree.one_way(number, depth)))
            for (number, axis, depth), errors in zip(axis_totals(tree), totals, strict=True)
        ),
    )


def _run(
    counts: Truth, plan: Plan, source: RandomSource, show: Callable[[], None]
) -> tuple[list[LevelRun], list[Ints]]:
    """One simulated release: figures of each planned level, and errors of totals by one axis."""
    tree, planned = counts.tree, {level.index for level in plan.levels}
    drawn = release_counts(counts, plan.account(), source, progress=lambda *_: show())
    leaves = drawn.leaves
    released = Truth.from_leaves(tree, leaves.areas, leaves.value)
    known = Intervals(
        tree,
        measurements_of(tree, plan, map(noisy_table, drawn.noisy)),
        leaves.areas,
        leaves.value,
        is_public=plan.unit.root_is_public,
    )
    levels = [
        level_run(cells, known)
        for cells in level_cells(counts, released)
        if cells.level.index in planned
    ]
    return levels, [
        np.abs(area_totals(released, number, depth) - area_totals(counts, number, depth))
        for number, _, depth in axis_totals(tree)
    ]


def level_run(cells: LevelCells, known: Intervals) -> LevelRun:
    """Figures of one level of a simulated release, whose intervals are `known`.

    Errors are stated by the size of the *published* number, which readers see, and include numbers
    whose simulated truth is zero.
    """
    areas, flow, true = cells.published()
    use = level_use(cells.level, areas, flow, known, ("", ""))
    is_true, is_lost = cells.true > 0, (cells.true > 0) & (cells.released == 0)
    by_size = flow, flow[true == 0], cells.true[is_true], cells.true[is_lost]
    return LevelRun(
        measure_level(cells.level, cells.true, cells.released),
        quantiles(np.abs(flow - true)),
        Usable(use.smallest, use.n_used / max(use.n_published, 1), use.share),
        np.array([np.bincount(class_of(one), minlength=len(CLASS_STARTS)) for one in by_size]),
    )


def quantiles(errors: Ints) -> Ints:
    """Median and 95 % quantile, errors that occur; 0 without any."""
    if not len(errors):
        return np.zeros(len(_SHARES), np.int64)
    return np.asarray(np.quantile(errors, _SHARES, method="inverted_cdf"), np.int64)


def mean_errors(runs: Sequence[Ints]) -> list[int]:
    """Mean over the runs of each quantile, rounded up."""
    return [ceil(mean) for mean in np.mean(runs, axis=0)]


def mean_usable(runs: Sequence[Usable]) -> Usable:
    """The smallest usable count in the middle of the runs, and mean shares."""
    by_size = sorted((one.smallest is None, one.smallest or 0) for one in runs)
    is_none, smallest = by_size[len(by_size) // 2]
    if is_none:
        return Usable(None, 0.0, 0.0)
    numbers, trips = np.mean([(one.numbers, one.trips) for one in runs], axis=0)
    return Usable(smallest, float(numbers), float(trips))


def size_shares(runs: Sequence[Ints]) -> tuple[SizeShares, ...]:
    """Shares of each size class that occurs, over all runs."""
    published, false, true, lost = np.sum(runs, axis=0)

    def share(part: Ints, whole: Ints, at: int) -> float | None:
        return float(part[at] / whole[at]) if whole[at] >= MIN_SIMULATED else None

    return tuple(
        SizeShares(CLASS_STARTS[at], share(false, published, at), share(lost, true, at))
        for at in np.flatnonzero(published + true).tolist()
    )


def _level(level: TreeLevel, bound: int, runs: Sequence[LevelRun]) -> LevelPreview:
    def mean(name: str) -> float:
        return float(np.mean([getattr(run.measures, name) for run in runs]))

    median, p95 = mean_errors([run.errors for run in runs])
    return LevelPreview(
        name=level.name,
        depths=level.depths,
        n_cells=level.n_nodes,
        guaranteed=bound,
        largest_error=max(run.measures.max_abs_error for run in runs),
        mean_error=mean("mean_abs_error_nonzero"),
        common_part=mean("common_part"),
        false_share=mean("false_discovery_rate"),
        lost_share=mean("false_negative_rate"),
        median=median,
        p95=p95,
        usable=mean_usable([run.usable for run in runs]),
        sizes=size_shares([run.sizes for run in runs]),
    )


def _total(axis: Axis, depth: int, runs: Sequence[Ints], within: int | None) -> TotalPreview:
    """Totals of one level of an axis, from their errors in each run."""
    return TotalPreview(
        axis=axis.name,
        level=axis.hierarchy.level_name(depth),
        n_areas=len(runs[0]),
        mean_error=float(np.mean(runs)),
        p95=mean_errors([quantiles(run) for run in runs])[1],
        largest_error=int(np.max(runs)),
        stated_within=within,
    )
