"""The release as a sealed box: tables go in, what is published comes out.

Four boxes, from quick to literal:

- `Copies`: one call of `inftda.release` (or of the command line) publishes many copies of both
  tables side by side, each an area of one more public axis that is refined first. One person is
  in one copy, so the claim of the release holds for every single copy, and as noise is
  independent, the copies are independent releases;
- `Runs`: the mechanism, called again and again on the same counts;
- `Calls`: `inftda.release`, again and again;
- `Commands`: `inftda release` writes a folder, again and again.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

import inftda
from audit.evidence import Features, Sample
from audit.pairs import Areas, Pair, labelled
from inftda.cli.main import run as run_command
from inftda.mechanism.step import Noisy
from inftda.mechanism.topdown import release_counts
from inftda.noise.bits import RandomSource, SecureSource, SeededSource
from inftda.publication.measurements import PlannedTable, planned_measurements
from inftda.truth import Truth

#: From batch, side and number of a release to its random bits.
Randomness = Callable[[int, int, int], RandomSource]


def seeded(batch: int, side: int, number: int) -> RandomSource:
    """Different bits for every release, the same ones every time."""
    return SeededSource((batch << 40) + (side << 32) + number)


def secure(batch: int, side: int, number: int) -> RandomSource:
    """Fresh bits for every release."""
    del batch, side, number
    return SecureSource()


@dataclass(frozen=True)
class _Box:
    """What all boxes have in common.

    Attributes:
        pair: the neighbouring tables.
        budget: epsilon, delta and accountant, as `inftda.release` takes them.
        randomness: where the bits of each release come from.
    """

    pair: Pair
    budget: dict[str, Any] = field(default_factory=lambda: {"epsilon": 1.0, "delta": 0.1})
    randomness: Randomness = seeded

    @property
    def sides(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self.pair.left, self.pair.right


@dataclass(frozen=True)
class Copies(_Box):
    """Many copies of both tables in one release.

    Attributes:
        ratio: how much more of the budget goes to a level that tells the tables apart than
            to one that exists because there are copies. A power of two.
        by_command: whether to use the command line.
    """

    ratio: int = 16
    by_command: bool = False

    def draw(self, n: int, batch: int) -> Sample:
        """One release; copies with even numbers hold the left table."""
        codes = [f"{number:07d}" for number in range(2 * n)]
        both = np.stack([side.ravel() for side in self.sides])
        origin, destination = np.divmod(np.arange(self.pair.n_cells), self.sides[0].shape[1])
        table = pa.table(
            {
                "copy": labelled(np.repeat(np.arange(2 * n), self.pair.n_cells), codes),
                "origin": labelled(np.tile(origin, 2 * n), self.pair.origin_codes),
                "destination": labelled(np.tile(destination, 2 * n), self.pair.destination_codes),
                "count": np.tile(both, (n, 1)).ravel(),
            }
        )
        source = self.randomness(batch, 0, 0)
        if self.by_command:
            release = _command(self, table, {"copy": codes}, source)
        else:
            release = inftda.release(
                table,
                axis={
                    "origin": self.pair.origins,
                    "destination": self.pair.destinations,
                    "copy": {"copy": codes},
                },
                source=source,
                **self.options,
            )
        cells = self._cells(release, 2 * n)
        claim = release.manifest.plan
        return _sample(cells[::2], cells[1::2], claim)

    @property
    def options(self) -> dict[str, Any]:
        """Of the release, without the tables."""
        chosen = {**self.pair.unit, **self.budget}
        chosen["order"] = ["copy", *self.pair.order]
        chosen["across"] = 0  # totals across would be shared by all copies; `Runs` looks at them
        chosen["split"] = self.split
        return chosen

    @property
    def split(self) -> list[int]:
        """Weights of root, copies, and all further levels.

        If the total is public, one person's trips stay in their copy and the level of copies
        tells nothing. If not, copies are to the audit what the root is to a release of one.
        """
        further = [self.ratio] * self.pair.n_splitting
        return [1, *further] if self.pair.is_total_public else [1, self.ratio, *further]

    def _cells(self, release: inftda.Release, n_copies: int) -> Features:
        table = (
            release.table if isinstance(release.table, pa.Table) else pq.read_table(release.table)
        )
        columns = [
            _numbers(table["copy"]),
            _places(table["origin"], self.pair.origin_codes),
            _places(table["destination"], self.pair.destination_codes),
        ]
        cells = np.zeros((n_copies, *self.sides[0].shape))
        cells[tuple(columns)] = table["flow"].to_numpy()
        return cells.reshape(n_copies, -1)


@dataclass(frozen=True)
class Runs(_Box):
    """The mechanism on the same counts, again and again: flows, and totals if there are any.

    Attributes:
        is_kept: whether all noisy values are published, too.
    """

    is_kept: bool = False

    def draw(self, n: int, batch: int) -> Sample:
        """One run of the mechanism for each release."""
        unit = inftda.Unit(**self.pair.unit)
        plan = inftda.make_plan(self._tree, unit, **self.budget)
        sides = []
        for side, counts in enumerate(self._counts):
            cells = np.zeros((n, *self.sides[0].shape))
            totals: list[NDArray[np.int64]] = []
            kept = [_Kept() if self.is_kept else None for _ in range(n)]
            for number in range(n):
                outcome = release_counts(
                    counts,
                    plan.account(),
                    self.randomness(batch, side, number),
                    threads=1,
                    keep=None if (one := kept[number]) is None else one.keep,
                )
                cells[number][outcome.leaves.areas] = outcome.leaves.value
                totals.append(_side_by_side(measured.value for measured in outcome.totals))
            seen = [cells.reshape(n, -1), np.stack(totals)]
            if self.is_kept:
                planned = planned_measurements(self._tree, plan)
                seen.append(np.stack([one.seen(planned) for one in kept if one is not None]))
            sides.append(np.column_stack(seen))
        return _sample(sides[0], sides[1], plan)

    @cached_property
    def _tree(self) -> inftda.Tree:
        return inftda.build_tree(
            axis={"origin": self.pair.origins, "destination": self.pair.destinations}
        )

    @cached_property
    def _counts(self) -> list[Truth]:
        # Codes are written such that their order is the order of areas in the tree.
        origin, destination = np.divmod(
            np.arange(self.pair.n_cells, dtype=np.int32), self.sides[0].shape[1]
        )
        areas = origin.astype(np.int32), destination.astype(np.int32)
        return [Truth.from_leaves(self._tree, areas, side.ravel()) for side in self.sides]


@dataclass(frozen=True)
class Calls(_Box):
    """The public function, again and again.

    Attributes:
        tables: what is released, made from one side; its trips by default.
        areas: the public areas of both ends, made from one side. Those of the pair by default;
            anything that looks at the side is a fault.
        more: further options of `inftda.release`.
    """

    tables: Callable[[Pair, NDArray[np.int64]], pa.Table] = Pair.table
    areas: Callable[[Pair, NDArray[np.int64]], tuple[Areas, Areas]] = lambda pair, _: (
        pair.origins,
        pair.destinations,
    )
    more: dict[str, Any] = field(default_factory=dict)

    def draw(self, n: int, batch: int) -> Sample:
        """One call for each release; everything that is shown counts as seen."""
        seen: list[Features] = []
        claim: Any = None
        for side, counts in enumerate(self.sides):
            table, areas = self.tables(self.pair, counts), self.areas(self.pair, counts)
            rows = []
            for number in range(n):
                source = self.randomness(batch, side, number)
                release = self.call(table, areas, source)
                rows.append(_seen(release, self.pair))
                claim = release.manifest.plan
            seen.append(np.array(rows))
        return _sample(seen[0], seen[1], claim)

    def call(
        self, table: pa.Table, areas: tuple[Areas, Areas], source: RandomSource
    ) -> inftda.Release:
        """One release."""
        return inftda.release(
            table,
            axis={"origin": areas[0], "destination": areas[1]},
            source=source,
            threads=1,
            **self.pair.unit,
            **self.budget,
            **self.more,
        )


@dataclass(frozen=True)
class Commands(Calls):
    """The command line, again and again: what is seen is read back from the folder."""

    def call(
        self, table: pa.Table, areas: tuple[Areas, Areas], source: RandomSource
    ) -> inftda.Release:
        """One release, written and opened."""
        del areas
        return _command(self, table, {}, source)


def _sample(left: Features, right: Features, claim: Any) -> Sample:
    """With what is claimed, as the manifest states it."""
    return Sample(left, right, float(claim.epsilon), float(claim.delta))


def _command(
    box: _Box, table: pa.Table, axes: dict[str, list[str]], source: RandomSource
) -> inftda.Release:
    """`inftda release`, with everything in files; the release is read into memory."""
    chosen = {**box.pair.unit, **box.budget}
    if isinstance(box, Copies):
        chosen |= box.options
    with TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(table, folder / "flows.parquet")
        arguments = ["release", folder / "flows.parquet", "--out", folder / "out", "--quiet"]
        ends = {"origin-areas": box.pair.origins, "destination-areas": box.pair.destinations}
        for end, areas in ends.items():
            pa_csv.write_csv(pa.table(areas), folder / f"{end}.csv")
            arguments += [f"--{end}", folder / f"{end}.csv"]
        for axis, codes in axes.items():
            pa_csv.write_csv(pa.table({axis: codes}), folder / f"{axis}.csv")
            arguments += ["--axis", f"{axis}={folder / f'{axis}.csv'}"]
        for option, value in chosen.items():
            arguments += _as_arguments(option, value)
        if isinstance(source, SeededSource):
            arguments += ["--not-private-seed", source.seed]
        code = run_command([str(argument) for argument in arguments])
        if code:
            raise RuntimeError(f"the command failed with code {code}")
        release = inftda.open_release(folder / "out")
        return inftda.Release(release.manifest, release.tree, pq.read_table(release.table))


def _as_arguments(option: str, value: Any) -> list[Any]:
    match option, value:
        case "exactly", bool():
            return ["--exactly" if value else "--at-most"]
        case _, bool():
            return [f"--{option}"] if value else []
        case _, list():
            return [f"--{option}", ",".join(str(item) for item in value)]
    return [f"--{option}", value]


def _seen(release: inftda.Release, pair: Pair) -> Features:
    """All that a release shows: flows, totals, measurements, sum and number of flows, areas."""
    flows = np.zeros(pair.left.shape)
    table: Any = release.table
    places = (
        _places(table["origin"], pair.origin_codes),
        _places(table["destination"], pair.destination_codes),
    )
    flows[places] = table["flow"].to_numpy()
    areas = [axis.hierarchy.n_areas(axis.hierarchy.depth) for axis in release.tree.axes]
    totals = []
    if release.has_totals:
        totals = [value for table in release._totals.tables for value in table.value.tolist()]
    if release.has_measurements:
        planned = planned_measurements(release.tree, release.manifest.plan)
        tables = zip(planned, release.measurements().tables, strict=True)
        totals += [*every_value((known, [(got.areas, got.value)]) for known, got in tables)]
    numbers = [*flows.ravel(), *totals, release.total, release.manifest.n_flows, *areas]
    return np.array(numbers, np.float64)


class _Kept:
    """Remembers all noisy values of a release."""

    def __init__(self) -> None:
        self._values: dict[tuple[int, ...], list[Block]] = {}

    def keep(self, noisy: Noisy) -> None:
        """Take values of a table."""
        self._values.setdefault(noisy.depths, []).append((noisy.cells(), noisy.value))

    def seen(self, planned: Sequence[PlannedTable]) -> Features:
        """All of them."""
        return every_value([(known, self._values.get(known.depths, [])) for known in planned])


#: Areas of some values of a table, and the values.
Block = tuple[tuple[NDArray[np.int32], ...], NDArray[np.int64]]


def every_value(tables: Iterable[tuple[PlannedTable, Iterable[Block]]]) -> Features:
    """Every cell of every table that is measured: its value, and whether it has one."""
    seen: list[Features] = []
    for known, blocks in tables:
        axes = zip(known.level.axes, known.depths, strict=True)
        value = np.zeros([axis.hierarchy.n_areas(depth) for axis, depth in axes])
        is_drawn = np.zeros_like(value)
        for areas, values in blocks:
            value[areas] = values
            is_drawn[areas] = 1
        seen += [value.ravel(), is_drawn.ravel()]
    return np.concatenate(seen)


def _side_by_side(parts: Iterable[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _numbers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Codes that are numbers."""
    encoded = _encoded(column)
    values = np.array([int(code) for code in encoded.dictionary.to_pylist()], np.int64)
    return np.asarray(values[encoded.indices.to_numpy()], np.int64)


def _places(column: pa.ChunkedArray, codes: list[str]) -> NDArray[np.int64]:
    """Where codes stand in a list."""
    encoded = _encoded(column)
    place = {code: number for number, code in enumerate(codes)}
    values = np.array([place[code] for code in encoded.dictionary.to_pylist()], np.int64)
    return np.asarray(values[encoded.indices.to_numpy()], np.int64)


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    return column.unify_dictionaries().combine_chunks()
