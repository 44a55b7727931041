"""What every mechanism has in common: what it is given, and what it gives back."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from inftda.counts import Counts
from inftda.noise.entropy import RandomSource
from inftda.noise.sampler import Sampler
from inftda.privacy.plan import Plan
from inftda.privacy.stability import StabilityPlan
from inftda.privacy.unit import PrivacyUnit
from inftda.tree import Tree

if TYPE_CHECKING:
    from inftda.reading.spec import TableSpec

Item = TypeVar("Item")
Result = TypeVar("Result")

#: Called with the name of the level, the work done and the work in all (both known from
#: what is released, so that progress reveals nothing else).
Progress = Callable[[str, int, int], None]


def no_progress(level: str, done: int, total: int) -> None:
    """Show nothing."""


class Engine(Protocol):
    """Where blocks of work are carried out."""

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Results of `work` for every item, in the order of the items."""


class Account(Protocol):
    """A plan being spent: hands out the scale of each level once."""

    def charge(self, index: int) -> Any:
        """What was planned for a level: its noise scale, and whatever goes with it."""

    def is_planned(self, index: int) -> bool:
        """Whether a level gets noise."""

    def finish(self) -> None:
        """Raise unless all that was planned was charged."""


@dataclass(frozen=True)
class Setting:
    """What a mechanism may draw on.

    Attributes:
        spending: the plan being spent; the only place a noise scale comes from.
        make_sampler: from a variance to a source of noise with that variance.
        source: random bits.
        engine: where the work is carried out.
        progress: told about finished blocks.
    """

    spending: Account
    make_sampler: Callable[[Fraction], Sampler]
    source: RandomSource
    engine: Engine
    progress: Progress = no_progress


@dataclass(frozen=True)
class Flows:
    """Released leaves: an area number on every axis, and the flow."""

    areas: tuple[NDArray[np.int32], ...]
    value: NDArray[np.int64]


class Mechanism(Protocol):
    """From confidential counts to released flows, block by block."""

    @property
    def name(self) -> str:
        """As the command line and the manifest call it."""

    @property
    def options(self) -> Mapping[str, Any]:
        """Public options, for the manifest."""

    def plan(self, tree: Tree, unit: PrivacyUnit, **budget: Any) -> Plan | StabilityPlan:
        """What will be drawn and what it costs; `budget` as `make_plan` takes it."""

    def run(self, counts: Counts, setting: Setting) -> Iterator[Flows]:
        """Released flows in tree order; ends with an error unless all that was planned was drawn.

        The caller must take every block before anything becomes visible.
        """


@runtime_checkable
class Cluster(Protocol):
    """Many machines, for tables that outgrow one."""

    def check(self, mechanism: Mechanism) -> None:
        """Complain about a mechanism that does not run there, before the data is touched."""

    def started(self) -> AbstractContextManager["StartedCluster"]:
        """The cluster ready to work; at the end it forgets what it was told."""


class StartedCluster(Protocol):
    """Machines that hold the truth themselves: they read the table and write the flows."""

    def read(self, flows: Any, spec: "TableSpec", **options: Any) -> Any:
        """The truth, wherever the cluster keeps it; arguments as `inftda.reading.read_leaves`."""

    def write(  # noqa: PLR0913 - a release is all of these
        self,
        leaves: Any,
        folder: Path,
        *,
        tree: Tree,
        plan: Any,
        mechanism: Mechanism,
        setting: Setting,
    ) -> tuple[int, int]:
        """Draw all noise, once, and write released flows to a folder of Parquet files.

        Returns:
            Sum and number of the flows.
        """
