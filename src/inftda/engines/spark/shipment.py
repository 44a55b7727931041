"""What executors need to draw noise: the public tree, the mechanism, the charged scales.

And the secret that the noise follows from: a shipment never shows itself, and it is taken
back from the executors when the release is written.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.metadata import version

from inftda.engines.local import LocalEngine
from inftda.engines.spark.keys import KeyedSource
from inftda.engines.spark.scales import Charged
from inftda.errors import InftdaError, ReleaseError
from inftda.mechanisms.base import Mechanism, Setting
from inftda.mechanisms.catalogue import mechanism_named
from inftda.noise.sampler import Sampler
from inftda.tree import Tree


def own_version() -> str:
    """Version of this package where it runs."""
    return version("inftda")


@dataclass(frozen=True, repr=False)
class Shipment:
    """Everything a task needs but the true leaves.

    Attributes:
        tree: the public tree.
        packed: the mechanism; by name if it is one of the catalogue.
        charged: the scales of all levels.
        make_sampler: from a variance to a source of noise with that variance.
        secret: what the noise of all tasks follows from.
        is_secure: whether it came from a secure source.
        version: of this package on the driver.
    """

    tree: Tree
    packed: str | Mechanism
    charged: Charged
    make_sampler: Callable[[Fraction], Sampler]
    secret: bytes
    is_secure: bool
    version: str = field(default_factory=own_version)

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism, unpacked."""
        return mechanism_named(self.packed) if isinstance(self.packed, str) else self.packed

    def setting(self, *place: int, top: int, threads: int) -> Setting:
        """What one part of the work may draw on.

        Args:
            place: labels of the part; no two parts of a release have the same.
            top: level of the tree that the part starts below.
            threads: how many cores the task has.

        Raises:
            ReleaseError: this executor has another version of this package.
        """
        if own_version() != self.version:
            raise ReleaseError(
                f"an executor has inftda {own_version()}, the driver {self.version}; install the "
                "same version everywhere"
            )
        return Setting(
            spending=self.charged.below(top),
            make_sampler=self.make_sampler,
            source=KeyedSource(self.secret, place, self.is_secure),
            engine=LocalEngine(threads),
        )

    def __repr__(self) -> str:
        return "Shipment(confidential)"


def pack(mechanism: Mechanism) -> str | Mechanism:
    """A mechanism as it is sent: by name where that is enough, so that nothing is compiled anew."""
    try:
        is_listed = mechanism_named(mechanism.name) is mechanism
    except InftdaError:
        is_listed = False
    return mechanism.name if is_listed else mechanism
