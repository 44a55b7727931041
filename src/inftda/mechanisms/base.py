"""What every mechanism has in common: what it is given, and what it gives back."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from inftda.counts import Counts
from inftda.noise.entropy import RandomSource
from inftda.noise.sampler import Sampler
from inftda.privacy.plan import Plan, Spending
from inftda.privacy.unit import PrivacyUnit
from inftda.tree import Tree

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

    spending: Spending
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

    def plan(self, tree: Tree, unit: PrivacyUnit, **budget: Any) -> Plan:
        """What will be drawn and what it costs; `budget` as `make_plan` takes it."""

    def run(self, counts: Counts, setting: Setting) -> Iterator[Flows]:
        """Released flows in tree order; ends with an error unless all that was planned was drawn.

        The caller must take every block before anything becomes visible.
        """
