"""What every mechanism has in common: what it is given, and what it gives back."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from inftda.bars import Progress, no_progress
from inftda.lattice import Table
from inftda.mechanisms.step import Drawn, LevelStep
from inftda.noise.entropy import RandomSource
from inftda.noise.sampler import Sampler
from inftda.privacy.plan import Key
from inftda.privacy.unit import Unit
from inftda.reading import Columns
from inftda.tree import Tree


class Truth(Protocol):
    """The confidential counts, wherever an engine keeps them."""

    @property
    def tree(self) -> Tree:
        """The public tree."""

    @property
    def total(self) -> int:
        """Number of trips."""

    @property
    def margins(self) -> Sequence[NDArray[np.int64]]:
        """int64[finest areas] for each axis: the trips of every area."""


#: The truth as an engine keeps it.
AnyTruth = TypeVar("AnyTruth", bound=Truth)
#: Released nodes of a level as an engine keeps them.
AnyNodes = TypeVar("AnyNodes")


class Written(NamedTuple):
    """What was written: sum and number of the flows."""

    total: int
    n_flows: int


class Keeper(Protocol):
    """Takes every noisy count that is drawn, to be published with the release."""

    def keep_total(self, value: int) -> None:
        """Take the noisy total."""

    def keep(self, drawn: Drawn) -> None:
        """Take the next counts of a table, in group order."""

    def keep_file(self, file: bytes) -> None:
        """Take counts that are in a file already."""


class Engine(Protocol[AnyTruth, AnyNodes]):
    """Where a release is carried out: it reads the table, divides level by level, writes."""

    def read(  # noqa: PLR0913 - the table, what it means, and what it is read for
        self,
        table: Any,
        columns: Columns,
        tree: Tree,
        *,
        unit: Unit,
        source: RandomSource,
        say: Callable[[str], object] | None,
    ) -> AnyTruth:
        """The confidential table as counts of the tree's leaves.

        Args:
            table: the table, of any kind that the engine reads.
            columns: what its columns mean.
            tree: the public tree.
            unit: who is protected.
            source: random bits, to choose which trips of a person are kept.
            say: called with what a row was taken for, one trip or a count.
        """

    def root(self, truth: AnyTruth, value: int) -> AnyNodes:
        """The root with its released count, which every level step starts from."""

    def step(
        self,
        parents: AnyNodes,
        truth: AnyTruth,
        step: LevelStep,
        progress: Progress,
        keeper: Keeper | None = None,
    ) -> AnyNodes:
        """Released children of released parents: the level step, for all of them.

        Args:
            parents: all of them.
            truth: the confidential counts.
            step: the step.
            progress: called as work is finished.
            keeper: gets all noisy counts of the step, also of its tables off the tree.
        """

    def write(self, flows: Iterable[AnyNodes], path: Path, tree: Tree) -> Written:
        """Released leaves as Parquet: a file, or a folder of files."""


class EngineStart(Protocol[AnyTruth, AnyNodes]):
    """An engine that is not started yet."""

    def started(self) -> AbstractContextManager[Engine[AnyTruth, AnyNodes]]:
        """The engine ready to work on one release; at the end it forgets what it was told."""


class Account(Protocol):
    """A plan being spent: hands out the scale of each level and table once."""

    def charge(self, key: Key) -> Any:
        """What was planned for a level or table: its noise scale, and whatever goes with it."""

    def is_planned(self, key: Key) -> bool:
        """Whether a level or table gets noise."""

    def finish(self) -> None:
        """Raise unless all that was planned was charged."""


@dataclass(frozen=True)
class MeasuredTotals:
    """A one-way table off the tree, as it was measured: it may be published.

    Attributes:
        table: the table.
        value: int64[areas], noisy.
        sigma2: variance parameter of its noise.
    """

    table: Table
    value: NDArray[np.int64]
    sigma2: Fraction


@dataclass(frozen=True)
class Setting(Generic[AnyTruth, AnyNodes]):
    """What a mechanism may draw on.

    Attributes:
        spending: the plan being spent; the only place a noise scale comes from.
        make_sampler: from a variance to a source of noise with that variance.
        source: random bits.
        engine: where the work is carried out.
        progress: called as work is finished.
        totals: filled with the one-way tables that were measured off the tree.
        keeper: gets every noisy count; None if they are not published.
    """

    spending: Account
    make_sampler: Callable[[Fraction], Sampler]
    source: RandomSource
    engine: Engine[AnyTruth, AnyNodes]
    progress: Progress = no_progress
    totals: list[MeasuredTotals] = field(default_factory=list)
    keeper: Keeper | None = None
