"""What a release says of itself: the guarantee, the noise of each level, the axes.

Public by construction: everything here is a parameter, or computed from the released table.
"""

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from inftda import __version__
from inftda.errors import InftdaError, ReleaseError
from inftda.mechanisms.catalogue import description_of
from inftda.mechanisms.description import Description
from inftda.privacy.records import decode
from inftda.privacy.spending import ReleasePlan

#: Bumped when a reader of the old format could misunderstand the new one.
FORMAT = "inftda-release/1"
_SOFTWARE = ("numpy", "numba", "cryptography", "python-flint", "opendp", "pyarrow")


@dataclass(frozen=True)
class AxisEntry:
    """One axis: its name, the levels of its hierarchy, and the file that lists its areas."""

    name: str
    levels: tuple[str, ...]
    file: str
    fingerprint: str


@dataclass(frozen=True)
class _TreeEntry:
    """The axes and the order of refinement, which stand under one key."""

    axes: tuple[AxisEntry, ...]
    order: tuple[str, ...]


@dataclass(frozen=True)
class Manifest:
    """The contents of `manifest.json`.

    Attributes:
        private: False for a release made with a seed, which promises nothing.
        mechanism: name of the mechanism.
        options: its public options.
        guarantee: the plan as a dictionary: epsilon, delta, rho, the unit of privacy, and
            for each measured level the noise, its sensitivity and what it costs.
        axes: the axes of the table.
        order: axis names in the order of refinement.
        total: sum of all flows.
        n_flows: number of rows.
        flows_sha256: digest of the flows as they were written; empty while they are in memory only.
        totals_sha256: likewise of the totals that were measured across; empty if none were.
        software: versions of what made it.
    """

    private: bool
    mechanism: str
    options: Mapping[str, Any]
    guarantee: Mapping[str, Any]
    axes: tuple[AxisEntry, ...]
    order: tuple[str, ...]
    total: int
    n_flows: int
    flows_sha256: str = field(default="", compare=False)  # of the file, not of what it holds
    totals_sha256: str = field(default="", compare=False)
    software: Mapping[str, str] = field(default_factory=lambda: software_versions())  # noqa: PLW0108 - defined below

    @property
    def description(self) -> Description:
        """What the mechanism that made the release states about itself.

        Raises:
            ReleaseError: the mechanism is not known here, so nothing is known of the release.
        """
        try:
            return description_of(self.mechanism)
        except InftdaError as problem:
            raise ReleaseError(
                f"the manifest names a mechanism that is not known here: {problem}. Install the "
                "package that brings it, or get the release again from its publisher"
            ) from None

    @property
    def plan(self) -> ReleasePlan:
        """The plan, with its guarantee recomputed from the noise of each level.

        Raises:
            PrivacyError: the noise does not give what is promised.
            ReleaseError: the mechanism is not known here.
        """
        return self.description.read_plan(self.guarantee)

    def to_dict(self) -> dict[str, Any]:
        """As it is written to `manifest.json`."""
        return {
            "format": FORMAT,
            "private": self.private,
            "mechanism": self.mechanism,
            "options": dict(self.options),
            "guarantee": dict(self.guarantee),
            "tree": {
                "axes": [
                    {
                        "name": axis.name,
                        "levels": list(axis.levels),
                        "file": axis.file,
                        "fingerprint": axis.fingerprint,
                    }
                    for axis in self.axes
                ],
                "order": list(self.order),
            },
            "total": self.total,
            "n_flows": self.n_flows,
            "flows_sha256": self.flows_sha256,
            **({"totals_sha256": self.totals_sha256} if self.totals_sha256 else {}),
            "software": dict(self.software),
        }

    @classmethod
    def from_dict(cls, data: Any) -> "Manifest":
        """Read back what `to_dict` gives.

        Raises:
            ReleaseError: something is missing or of another kind.
        """
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ReleaseError(
                f"the manifest is not of format {FORMAT!r}; "
                "it was edited, damaged, or written by another version of inftda"
            )
        tree = decode(_TreeEntry, data.get("tree"), what="the manifest's tree", error=ReleaseError)
        whole = {"totals_sha256": "", **data, "axes": [], "order": []}
        read = decode(cls, whole, what="the manifest", error=ReleaseError)
        return replace(read, axes=tree.axes, order=tree.order)

    @classmethod
    def read(cls, path: Path) -> "Manifest":
        """Read `manifest.json`.

        Raises:
            ReleaseError: it cannot be read or does not say what it must.
        """
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            raise ReleaseError(f"{str(path)!r} is not readable as JSON; it was damaged") from None
        return cls.from_dict(data)


def software_versions() -> dict[str, str]:
    """Versions of Python and of the libraries a release depends on."""
    versions = {"python": platform.python_version(), "inftda": __version__}
    for name in _SOFTWARE:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return versions
