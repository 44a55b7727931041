"""The release as a sealed box: tables go in, what is published comes out.

Three boxes, from quick to literal:

- `Copies`: one call of `inftda.release` (or of the command line) publishes many copies of both
  tables side by side, each an area of one more public axis that is refined first. One person is
  in one copy, so the claim of the release holds for every single copy, and as noise is
  independent, the copies are independent releases;
- `Runs`: the mechanism, called again and again on the same counts;
- `Calls`: `inftda.release` (or the command line, which writes a folder), again and again.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

import inftda
from audit.evidence import Sample
from audit.pairs import Pair, labelled
from inftda.cli.main import run as run_command
from inftda.mechanism.topdown import release_counts
from inftda.noise.bits import RandomSource, SecureSource, SeededSource
from inftda.publication.measurements import planned_measurements
from inftda.reading.truth import Truth

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
    def sides(self):
        return self.pair.left, self.pair.right

    @property
    def axes(self):
        """The public areas of both ends."""
        return {"origin": self.pair.origins, "destination": self.pair.destinations}


@dataclass(frozen=True)
class Copies(_Box):
    """Many copies of both tables in one release.

    Attributes:
        ratio: how much more of the budget goes to a level that distinguishes the tables than
            to one that exists because there are copies. A power of two.
        by_command: whether to use the command line.
        by_logarithms: whether the budget is split as it is by default instead: with Laplace noise
            at the finest level, if delta is small.
    """

    ratio: int = 16
    by_command: bool = False
    by_logarithms: bool = False

    def draw(self, n: int, batch: int) -> Sample:
        """One release; copies with even numbers hold the left table."""
        codes = [f"{number:07d}" for number in range(2 * n)]
        both = np.stack([side.ravel() for side in self.sides])
        origin, destination = np.divmod(np.arange(self.pair.n_cells), self.sides[0].shape[1])
        table = pa.table(
            {
                "copy": labelled(np.repeat(np.arange(2 * n), self.pair.n_cells), codes),
                **self.pair.ends(np.tile(origin, 2 * n), np.tile(destination, 2 * n)),
                "count": np.tile(both, (n, 1)).ravel(),
            }
        )
        release = (_by_command if self.by_command else inftda.release)(
            table,
            axis=self.axes | {"copy": {"copy": codes}},
            order=["copy", *self.pair.order],
            unit=self.pair.unit,
            source=self.randomness(batch, 0, 0),
            allow_large_delta=True,
            # Totals across would be shared by all copies; `Runs` looks at them.
            **(self.budget | {"cross_tables": 0, "split": self.split}),
        )
        cells = np.zeros((2 * n, *self.sides[0].shape))
        cells[_places(release.table, {"copy": codes} | _codes(self.pair))] = _flows(release)
        cells = cells.reshape(2 * n, -1)
        return _sample(cells[::2], cells[1::2], release.manifest.plan)

    @property
    def split(self) -> list[int] | str:
        """Weights of root, copies, and all further levels.

        If the total is public, one person's trips stay in their copy and the level of copies
        tells nothing. If not, copies are to the audit what the root is to a release of one.
        """
        if self.by_logarithms:
            return "log"
        further = [self.ratio] * self.pair.n_splitting
        return [1, *further] if self.pair.unit.root_is_public else [1, self.ratio, *further]


@dataclass(frozen=True)
class Runs(_Box):
    """The mechanism on the same counts, again and again: flows, and totals if there are any.

    Attributes:
        is_kept: whether all noisy values are published, too.
    """

    is_kept: bool = False

    def draw(self, n: int, batch: int) -> Sample:
        """One run of the mechanism for each release."""
        plan = inftda.make_plan(self._tree, self.pair.unit, **self.budget, method="paper")
        planned = planned_measurements(self._tree, plan, only_totals=not self.is_kept)
        sides = []
        for side, counts in enumerate(self._counts):
            seen = []
            for number in range(n):
                kept = defaultdict(list)
                outcome = release_counts(
                    counts, plan.account(), self.randomness(batch, side, number), threads=1
                )
                for noisy in outcome.noisy:
                    kept[noisy.depths].append((noisy.cells(), noisy.value))
                cells = np.zeros(self.sides[0].shape)
                cells[outcome.leaves.areas] = outcome.leaves.value
                parts = [cells.ravel()]
                parts += every_value((known, kept[known.depths]) for known in planned)
                seen.append(np.concatenate(parts))
            sides.append(np.stack(seen))
        return _sample(*sides, plan)

    @cached_property
    def _tree(self) -> inftda.Tree:
        return inftda.build_tree(axis=self.axes)

    @cached_property
    def _counts(self) -> list[Truth]:
        # Codes are written such that their order is the order of areas in the tree.
        cells = np.arange(self.pair.n_cells, dtype=np.int32)
        areas = tuple(part.astype(np.int32) for part in np.divmod(cells, self.sides[0].shape[1]))
        return [Truth.from_leaves(self._tree, areas, side.ravel()) for side in self.sides]


@dataclass(frozen=True)
class Calls(_Box):
    """The public function, again and again.

    Attributes:
        tables: what is released, made from one side; its trips by default.
        areas: the public areas of both ends, made from one side. Those of the pair by default;
            anything that looks at the side is a fault.
        more: further options of `inftda.release`.
        by_command: whether to use the command line.
    """

    tables: Callable[..., pa.Table] = Pair.table
    areas: Callable[..., Any] = lambda pair, _: (pair.origins, pair.destinations)
    more: dict[str, Any] = field(default_factory=dict)
    by_command: bool = False

    def draw(self, n: int, batch: int) -> Sample:
        """One call for each release; everything that is shown counts as seen."""
        call = _by_command if self.by_command else inftda.release
        seen = []
        for side, counts in enumerate(self.sides):
            table, areas = self.tables(self.pair, counts), self.areas(self.pair, counts)
            rows = []
            for number in range(n):
                release = call(
                    table,
                    axis=dict(zip(("origin", "destination"), areas, strict=True)),
                    unit=self.pair.unit,
                    source=self.randomness(batch, side, number),
                    threads=1,
                    allow_large_delta=True,
                    **self.budget,
                    **self.more,
                )
                rows.append(_seen(release, self.pair))
            seen.append(np.array(rows))
        return _sample(*seen, release.manifest.plan)


def _sample(left, right, claim) -> Sample:
    """With what is claimed, as the manifest states it."""
    return Sample(left, right, float(claim.epsilon), float(claim.delta))


def _by_command(table, *, axis, unit, source, **options) -> inftda.Release:
    """`inftda release`, with everything in files; the release is read into memory."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(table, folder / "flows.parquet")
        arguments = ["release", folder / "flows.parquet", "--out", folder / "out", "--quiet"]
        for end, areas in axis.items():
            pa_csv.write_csv(pa.table(areas), folder / f"{end}.csv")
            arguments += ["--axis", f"{end}={folder / f'{end}.csv'}"]
        arguments += ["--neighbours", unit.neighbours, "--trips", unit.trips]
        arguments += ["--exactly" if unit.exactly else "--at-most"]
        arguments += ["--distinct"] if unit.distinct else []
        for option, value in options.items():
            text = ",".join(map(str, value)) if isinstance(value, list) else value
            flag = f"--{option.replace('_', '-')}"
            arguments += [flag] if value is True else [flag, text]
        if isinstance(source, SeededSource):
            arguments += ["--not-private-seed", source.seed]
        if code := run_command([str(argument) for argument in arguments]):
            raise RuntimeError(f"the command failed with code {code}")
        release = inftda.open_release(folder / "out")
        measured = None if release.measured is None else pq.read_table(release.measured)
        return replace(release, table=pq.read_table(release.table), measured=measured)


def _seen(release: inftda.Release, pair: Pair):
    """All that a release shows: flows, totals, measurements, sum and number of flows, areas."""
    flows = np.zeros(pair.left.shape)
    flows[_places(release.table, _codes(pair))] = _flows(release)
    parts = [flows.ravel()]
    if release.measured is not None:
        tables = zip(release.published_tables(), release.read_published().tables, strict=True)
        parts += every_value((known, [(got.areas, got.value)]) for known, got in tables)
    areas = [axis.hierarchy.n_areas(axis.hierarchy.depth) for axis in release.tree.axes]
    parts.append([release.total, release.manifest.n_flows, *areas])
    return np.concatenate(parts).astype(np.float64)


def every_value(tables):
    """Every cell of every table that is measured: its value, and whether it has one.

    Args:
        tables: what is planned, and blocks of areas with their values.
    """
    seen = []
    for known, blocks in tables:
        axes = zip(known.level.axes, known.depths, strict=True)
        value = np.zeros([axis.hierarchy.n_areas(depth) for axis, depth in axes])
        is_drawn = np.zeros_like(value)
        for areas, values in blocks:
            value[areas] = values
            is_drawn[areas] = 1
        seen += [value.ravel(), is_drawn.ravel()]
    return seen


def _codes(pair: Pair):
    return dict(zip(("origin", "destination"), pair.codes, strict=True))


def _flows(release: inftda.Release):
    return release.table["flow"].to_numpy()


def _places(table: pa.Table, codes: dict[str, list[str]]):
    """Where the codes of a table's columns stand in lists, for every row."""
    places = []
    for name, listed in codes.items():
        column = table[name]
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        encoded = column.unify_dictionaries().combine_chunks()
        place = {code: number for number, code in enumerate(listed)}
        values = np.array([place[code] for code in encoded.dictionary.to_pylist()], np.int64)
        places.append(values[encoded.indices.to_numpy()])
    return tuple(places)
