"""Methods side by side on the table at hand: how accurate, and what a reader finds out.

Everything here is computed from the truth. It must be kept where the truth is kept; and whoever
chooses a method or an epsilon by it has used the truth to choose, which has to be disclosed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from inftda.bars import Progress, no_progress
from inftda.comparisons.attack import Attack, attack
from inftda.comparisons.methods import CellKey, Method, Rounding, Suppression, check_size
from inftda.comparisons.published import measure_published, measure_shown_totals
from inftda.errors import InftdaError
from inftda.evaluation.evaluate import NOTICE, json_writer, table_writers, write_confidential
from inftda.evaluation.measures import (
    LevelMeasures,
    TotalMeasures,
    definitions,
    measure,
    measure_totals,
)
from inftda.evaluation.typical import Simulation
from inftda.lattice import share_or_default
from inftda.mechanisms.catalogue import OWN, mechanism_named, mechanism_names
from inftda.noise.entropy import RandomSource, SecureSource
from inftda.privacy.unit import PrivacyUnit
from inftda.reading import Columns, Unplaceable, read_leaves
from inftda.reading.columns import UNPROMISED
from inftda.tree import DESTINATION, ORIGIN, build_tree
from inftda.truth import Truth

#: What is compared unless something else is asked for.
DEFAULT_METHODS: Final = ("suppress:10", "round:5", "cell-key", OWN)
#: Methods without a guarantee: what their number means, its default, the least.
_KINDS: Final[Mapping[str, tuple[Any, int, int]]] = {
    "suppress": (Suppression, 10, 2),
    "suppress-primary": (lambda least: Suppression(least, is_secondary=False), 10, 2),
    "round": (Rounding, 5, 2),
    "cell-key": (CellKey, 3, 2),
}
_LARGEST_PARAMETER: Final = 10_000
LEVELS_FILE = "CONFIDENTIAL-methods"
SUMMARY_FILE, PAGE_FILE = "CONFIDENTIAL-methods.json", "CONFIDENTIAL-methods.html"


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


@dataclass(frozen=True)
class MethodComparison:
    """All methods. Confidential.

    Attributes:
        trips: of the table.
        n_flows: finest cells with trips.
        unit: who is protected, where something is promised.
        results: in the order asked for.
    """

    trips: int
    n_flows: int
    unit: str
    results: tuple[Result, ...]

    def level_table(self) -> pa.Table:
        """One row per method and level."""
        names = [field.name for field in fields(LevelMeasures) if field.name != "sizes"]
        rows = [
            {
                "method": one.method,
                "epsilon": one.epsilon,
                **{name: getattr(level, name) for name in names},
                "notice": NOTICE,
            }
            for one in self.results
            for level in one.levels
        ]
        # Levels with 2^63 possible cells and more are known by their size only roughly.
        for row in rows:
            row["n_cells"] = float(row["n_cells"])
        return pa.Table.from_pylist(rows).replace_schema_metadata({"notice": NOTICE})

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
            "methods": [
                {
                    "method": one.method,
                    "epsilon": one.epsilon,
                    "words": one.words,
                    "levels": [asdict(level) for level in one.levels],
                    "totals": [asdict(total) for total in one.totals],
                    "attack": None if one.attack is None else asdict(one.attack),
                }
                for one in self.results
            ],
        }


def compare(  # noqa: PLR0913 - the table, the methods, and one keyword for each thing to decide
    truth: Any,
    areas: Any = None,
    *,
    methods: Sequence[str] = DEFAULT_METHODS,
    epsilon: float | Sequence[float] = 1.0,
    delta: float | None = None,
    neighbours: str = "substitute",
    trips: int = 1,
    exactly: bool | None = None,
    distinct: bool = False,
    split: Any = "uniform",
    across: float | None = None,
    accountant: str = "auto",
    origin_areas: Any = None,
    destination_areas: Any = None,
    axes: Mapping[str, Any] | None = None,
    order: Sequence[str] | None = None,
    tree: Literal["destination", "origin"] = "destination",
    origin: str = ORIGIN,
    destination: str = DESTINATION,
    count: str | None = "auto",
    unplaceable: Unplaceable = "error",
    seed: int | None = None,
    source: RandomSource | None = None,
    progress: Progress | None = None,
) -> MethodComparison:
    """Compare what offices do today with what is promised, on the table at hand.

    Args:
        truth: the confidential table, as for `inftda.release`.
        areas: the public hierarchy, as for `inftda.release`.
        methods: `suppress:K`, `suppress-primary:K`, `round:B`, `cell-key:D`, and mechanisms by
            name, each once for every epsilon.
        epsilon: one or several.
        delta: for mechanisms.
        neighbours: as for `inftda.release`.
        trips: as for `inftda.release`.
        exactly: as for `inftda.release`.
        distinct: as for `inftda.release`.
        split: as for `inftda.release`.
        across: as for `inftda.release`.
        accountant: as for `inftda.release`.
        origin_areas: as for `inftda.release`.
        destination_areas: as for `inftda.release`.
        axes: as for `inftda.release`.
        order: as for `inftda.release`.
        tree: as for `inftda.release`.
        origin: as for `inftda.release`.
        destination: as for `inftda.release`.
        count: as for `inftda.release`.
        unplaceable: as for `inftda.release`.
        seed: of methods that promise nothing.
        source: random bits of mechanisms; secure by default.
        progress: called with what is done, methods done and methods in all.

    Raises:
        InftdaError: something is wrong with what was asked for or with the table.

    Privacy:
        What comes out is computed from the truth and promises nothing.
    """
    chosen = [_method(name) for name in methods]
    _check_across(chosen, across)
    strengths = [epsilon] if isinstance(epsilon, int | float) else list(epsilon)
    public = build_tree(
        areas,
        origin_areas=origin_areas,
        destination_areas=destination_areas,
        axes=axes,
        order=order,
        first=tree,
        outside=unplaceable == "outside",
    )
    unit = PrivacyUnit(neighbours, trips, exactly=exactly, distinct=distinct)
    todo: list[tuple[Method | str, Any, float | None]] = []
    for one in chosen:
        if not isinstance(one, str):
            todo.append((one, None, None))
            continue
        for strength in strengths:
            budget = {"epsilon": strength, "delta": delta, "rho": None, "accountant": accountant}
            budget |= {"split": split, **_across(one, across)}
            # Planned before the table is read, so that a wrong setting is reported at once.
            todo.append((one, mechanism_named(one).plan(public, unit, **budget), strength))
    columns = Columns(origin=origin, destination=destination, count=count, unplaceable=unplaceable)
    free = UNPROMISED if unplaceable == "drop" else None
    counts = Truth.of(public, read_leaves(truth, columns, public.axes, unit=free))
    check_size(counts)
    random, bits = np.random.default_rng(seed), source or SecureSource()
    results = []
    for number, (one, plan, promised) in enumerate(todo):
        if progress is not None:
            progress(one if isinstance(one, str) else one.name, number, len(todo))
        if isinstance(one, str):
            results.append(_promised(counts, Simulation(counts, one, plan, bits), promised))
        else:
            results.append(_unpromised(counts, one, random))
    return MethodComparison(counts.total, counts.n_leaves, unit.describe(), tuple(results))


def _method(name: str) -> Method | str:
    """A method without a guarantee, or the name of a mechanism."""
    kind, colon, text = name.partition(":")
    if kind not in _KINDS:
        if name in mechanism_names():
            return name
        known = ", ".join((*_KINDS, *mechanism_names()))
        raise InftdaError(f"there is no method {name!r}; there are {known}")
    make, default, least = _KINDS[kind]
    try:
        number = int(text) if colon else default
    except ValueError:
        number = 0
    if not least <= number <= _LARGEST_PARAMETER:
        raise InftdaError(
            f"{kind} takes a whole number from {least} to {_LARGEST_PARAMETER:,}, such as "
            f"{kind}:{default}, got {name!r}"
        )
    made: Method = make(number)
    return made


def _check_across(chosen: Sequence[Method | str], across: float | None) -> None:
    """Refuse a share for tables that none of the mechanisms measures; methods have no budget."""
    mechanisms = [one for one in chosen if isinstance(one, str)]
    if across and mechanisms and not any(map(_takes_across, mechanisms)):
        raise InftdaError(
            f"{mechanisms[0]} cannot measure totals across the tree; leave out --across "
            "(across= in Python)"
        )


def _across(name: str, across: float | None) -> dict[str, Any]:
    """What is measured across, for mechanisms that can; others need not know of it."""
    return {"across": share_or_default(across)} if _takes_across(name) else {}


def _takes_across(name: str) -> bool:
    return mechanism_named(name).description.takes_across


def _promised(counts: Truth, simulation: Simulation, epsilon: float | None) -> Result:
    areas, flow = simulation.run(no_progress)
    kept = flow != 0
    released = Truth.from_leaves(counts.tree, [axis[kept] for axis in areas], flow[kept])
    return Result(
        method=simulation.mechanism,
        epsilon=epsilon,
        words=simulation.plan.describe(),
        levels=measure(counts, released),
        totals=measure_totals(counts, released),
        attack=None,
    )


def _unpromised(counts: Truth, method: Method, random: np.random.Generator) -> Result:
    published = method.publish(counts, random)
    return Result(
        method=method.name,
        epsilon=None,
        words=method.words,
        levels=measure_published(published),
        totals=measure_shown_totals(counts, lambda true: method.show(true, random)),
        attack=attack(published),
    )


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

    Raises:
        ReleaseError: `out` is, or lies in, a release folder, is a link, or cannot be made.
    """
    writers: dict[str, Callable[[Path], object]] = {
        **table_writers(LEVELS_FILE, comparison.level_table()),
        SUMMARY_FILE: json_writer(comparison.to_dict()),
    }
    if page is not None:
        writers[PAGE_FILE] = page
    return write_confidential(writers, out)
