"""What a release says of itself: the guarantee, the noise of each level, the axes.

Public by construction: everything here is a parameter, or computed from the released table.
"""

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from inftda import __version__
from inftda.errors import ReleaseError
from inftda.files import is_plain
from inftda.privacy.plan import Plan
from inftda.privacy.records import decode
from inftda.privacy.unit import UNIT_KEYS, PrivacyUnit
from inftda.publication.counting import Counting
from inftda.publication.inventory import GET_AGAIN

#: Bumped when a reader of the old format could misunderstand the new one.
FORMAT = "inftda-release/1"
#: The mechanism that makes releases, and what is stated of it.
MECHANISM = "inftda"
OPTIONS = {"noise": "table", "objective": "intopt"}
#: Far more than any manifest has.
MAX_BYTES = 16 << 20
#: Far more than can be released; beyond it sums would be others in 64 bits.
_LARGEST = 1 << 62
_LIBRARIES = ("numpy", "numba", "cryptography", "python-flint")
#: What a manifest states versions of; one of another version of inftda may state fewer.
SOFTWARE = frozenset({"python", "inftda", "arrow", *_LIBRARIES})


@dataclass(frozen=True)
class AxisEntry:
    """One axis: its name, the levels of its hierarchy, and the file that lists its areas.

    Attributes:
        places_sha256: digest of the file with names, locations and outlines of the areas; empty
            if there is none.
    """

    name: str
    levels: tuple[str, ...]
    file: str
    fingerprint: str
    places_sha256: str = field(default="", compare=False)  # of the file, not of what it holds

    def to_dict(self) -> dict[str, Any]:
        """As it stands in `manifest.json`."""
        found = {**asdict(self), "levels": list(self.levels)}
        return {key: value for key, value in found.items() if key != "places_sha256" or value}


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
        measurements: which noisy values are published: none, totals across the tree, or all.
        measurements_sha256: digest of their file; empty without one.
        counted: what of the table was counted.
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
    measurements: Literal["none", "totals", "all"] = "none"
    measurements_sha256: str = field(default="", compare=False)
    counted: Counting = field(default_factory=Counting)
    software: Mapping[str, str] = field(default_factory=lambda: software_versions())  # noqa: PLW0108 - defined below

    @property
    def unit(self) -> PrivacyUnit:
        """Who is protected, as it is stated; `plan` recomputes what they are promised.

        Raises:
            PrivacyError: it is not stated.
        """
        stated = {key: self.guarantee[key] for key in UNIT_KEYS if key in self.guarantee}
        return PrivacyUnit.from_dict(stated)

    @property
    def plan(self) -> Plan:
        """The plan, with its guarantee recomputed from the noise of each level.

        Raises:
            PrivacyError: the noise does not give what is promised.
            ReleaseError: the mechanism is not known here.
        """
        if self.mechanism != MECHANISM:
            raise ReleaseError(
                f"the manifest names a mechanism that is not known here: {self.mechanism[:60]!r}; "
                f"{GET_AGAIN}"
            )
        return Plan.from_dict(self.guarantee)

    def to_dict(self) -> dict[str, Any]:
        """As it is written to `manifest.json`."""
        return {
            "format": FORMAT,
            "private": self.private,
            "mechanism": self.mechanism,
            "options": dict(self.options),
            "guarantee": dict(self.guarantee),
            "tree": {
                "axes": [axis.to_dict() for axis in self.axes],
                "order": list(self.order),
            },
            "counted": asdict(self.counted),
            "total": self.total,
            "n_flows": self.n_flows,
            "flows_sha256": self.flows_sha256,
            "measurements": self.measurements,
            "measurements_sha256": self.measurements_sha256,
            "software": dict(self.software),
        }

    def to_text(self) -> str:
        """The contents of `manifest.json`: it follows from the manifest, to the bit."""
        return json.dumps(self.to_dict(), indent=2) + "\n"

    @classmethod
    def from_dict(cls, data: Any) -> "Manifest":
        """Read back what `to_dict` gives.

        Raises:
            ReleaseError: something is missing, of another kind, or not known here.
        """
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ReleaseError(
                f"the manifest is not of format {FORMAT!r}; "
                "it was edited, damaged, or written by another version of inftda"
            )
        tree = decode(
            _TreeEntry,
            _with_places(data.get("tree")),
            what="the manifest's tree",
            error=ReleaseError,
        )
        whole = {**data, "axes": [], "order": []}
        read = decode(cls, whole, what="the manifest", error=ReleaseError)
        manifest = replace(read, axes=tree.axes, order=tree.order)
        check_same(data, manifest.to_dict())
        if abs(manifest.total) > _LARGEST or not 0 <= manifest.n_flows <= _LARGEST:
            raise ReleaseError(
                f"the manifest states {str(manifest.n_flows)[:60]} flows that sum to "
                f"{str(manifest.total)[:60]}, which no release can have; it was edited"
            )
        return manifest

    @classmethod
    def read(cls, path: Path) -> "Manifest":
        """Read `manifest.json`.

        Raises:
            ReleaseError: it cannot be read or does not say what it must.
        """
        return cls.from_dict(read_json(path))


def read_json(path: Path) -> Any:
    """What a manifest of any kind holds.

    Raises:
        ReleaseError: it cannot be read.
    """
    if not is_plain(path) or path.stat().st_size > MAX_BYTES:
        raise ReleaseError(
            f"{str(path)!r} is damaged or not a manifest: it must be a plain file of at most "
            f"{MAX_BYTES:,} bytes"
        )
    try:
        data = json.loads(
            path.read_text(encoding="utf-8"),
            object_pairs_hook=_without_duplicates,
            parse_constant=_refuse_constant,
        )
        json.dumps(data, ensure_ascii=False).encode()  # half a character is not text
    except (OSError, ValueError, RecursionError):
        raise ReleaseError(f"{str(path)!r} is not readable as JSON; it was damaged") from None
    return data


def check_same(found: Any, expected: Any, at: str = "") -> None:
    """Refuse whatever differs in any way: keys, values, or their kinds.

    Args:
        found: what JSON gave.
        expected: what it must be.
        at: where it stands in the manifest.

    Raises:
        ReleaseError: it says where they differ.
    """
    if isinstance(found, dict) and isinstance(expected, dict):
        for key in found:
            if key not in expected:
                raise ReleaseError(
                    f"the manifest states {_below(at, key)!r}, which is not known here; it was "
                    "edited, or written by another version of inftda"
                )
        for key, value in expected.items():
            if key not in found:
                raise ReleaseError(
                    f"the manifest has no {_below(at, key)!r}; it was edited, or written by "
                    "another version of inftda"
                )
            check_same(found[key], value, _below(at, key))
    elif isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        for number, pair in enumerate(zip(found, expected, strict=True)):
            check_same(*pair, f"{at}[{number}]")
    elif type(found) is not type(expected) or found != expected:
        raise ReleaseError(
            f"the manifest states {str(found)[:60]!r} as {at!r}, where {str(expected)[:60]!r} "
            "follows from the rest of it; it was edited"
        )


def _with_places(tree: Any) -> Any:
    """Axes whose areas have no names, locations or outlines say nothing of them."""
    if not isinstance(tree, dict) or not isinstance(tree.get("axes"), list):
        return tree
    return tree | {
        "axes": [
            {"places_sha256": "", **axis} if isinstance(axis, dict) else axis
            for axis in tree["axes"]
        ]
    }


def _below(at: str, key: str) -> str:
    return f"{at}.{key}" if at else key


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; readers differ in which of two equal keys they take."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ReleaseError(f"the manifest states {key[:60]!r} twice; it was edited or damaged")
        found[key] = value
    return found


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


def software_versions() -> dict[str, str]:
    """Versions of Python and of the libraries a release depends on."""
    versions = {"python": platform.python_version(), "inftda": __version__}
    for name in _LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return versions | {"arrow": arrow_version()}


def arrow_version() -> str:
    """Version and build of Arrow: these decide how the same rows are compressed."""
    build: Any = pa.cpp_build_info
    return f"{build.version}+{build.package_kind or 'source'}"
