"""The manifest of a release: the guarantee, the noise of each level, the axes.

Public by construction: everything here is a parameter, or computed from the released table.
A manifest is a typed record, and its text follows from it bit for bit. So a file that gives other
text when it is read and written again was edited: it states a key twice, or one that is not
known, or has blanks or numbers that a release does not write.
"""

import hashlib
import json
import os
import platform
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

import msgspec
import pyarrow as pa

from inftda import __version__
from inftda.errors import InftdaError, ReleaseError
from inftda.privacy.noise_plan import Plan
from inftda.privacy.unit import Unit
from inftda.tree import DESTINATION, ORIGIN, Tree
from inftda.tree.hierarchy import OUTSIDE
from inftda.util.files import is_plain

MEASUREMENTS_FILE: Final = "measurements.parquet"
#: Signature of the manifest, if the release is signed.
SIGNATURE_FILE: Final = "manifest.sig"
#: Remedy for a release that is not as it was published.
GET_AGAIN: Final = "get the release again from its publisher"
#: Cause and remedy for a damaged release.
DAMAGED: Final = f"it was edited or damaged: {GET_AGAIN}"
#: What numbers count unless something else is said: in a table of trips, and in any other.
TRIPS, ENTRIES = "trips", "entries"
_NOUN: Final = r"[^\W\d_][\w '-]{0,39}"
Noun = Annotated[str, msgspec.Meta(pattern=rf"^{_NOUN}\Z")]
#: A noun, preceded by "counted" if rows may be left out; see `Manifest.counts`.
Counts = Annotated[str, msgspec.Meta(pattern=rf"^(counted )?{_NOUN}\Z")]
_EDITION: Final = r"([A-Za-z0-9][A-Za-z0-9._-]{0,39})?"
Edition = Annotated[str, msgspec.Meta(pattern=rf"^{_EDITION}\Z")]
#: Statements about the mechanism that makes releases.
OPTIONS = {"noise": "table", "objective": "intopt"}
#: Far more than any manifest has.
MAX_BYTES = 16 << 20
#: Far more than can be released; beyond it sums would wrap around.
Size = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
Library = Literal["numpy", "numba", "cryptography", "python-flint"]
#: What a manifest states versions of; one of another version of inftda may state fewer.
Software = Literal["python", "inftda", "arrow", Library]
Version = Annotated[str, msgspec.Meta(pattern=r"^[0-9A-Za-z.+!_-]{1,80}\Z")]


def software_versions() -> dict[Software, Version]:
    """Versions of Python and of the libraries a release depends on."""
    libraries: dict[Software, Version] = {name: version(name) for name in get_args(Library)}
    made_by: dict[Software, Version] = {
        "python": platform.python_version(),
        "inftda": __version__,
    }
    return made_by | libraries | {"arrow": arrow_version()}


def arrow_version() -> str:
    """Version and build of Arrow: these decide how the same rows are compressed."""
    build: Any = pa.cpp_build_info
    return f"{build.version}+{build.package_kind or 'source'}"


@dataclass(frozen=True)
class AxisEntry:
    """One axis: its name, the levels of its hierarchy, and the file that lists its areas.

    `areas_sha256` is the digest of that file, `places_sha256` that of the file with names,
    locations and outlines; empty without one.
    """

    name: str
    levels: tuple[str, ...]
    file: str
    fingerprint: str
    areas_sha256: str = field(default="", compare=False)  # of the file, not of what it holds
    places_sha256: str = field(default="", compare=False)


@dataclass(frozen=True)
class TreeEntry:
    """The axes, and their names in the order of refinement."""

    axes: tuple[AxisEntry, ...]
    order: tuple[str, ...]


@dataclass(frozen=True)
class Counting:
    """Rules by which the confidential table was counted, with caveats for readers.

    A release describes the counted trips or rows only. The rules are public; the number of omitted
    trips or rows is not.

    With a person column it is `bounded`: of each person, at most as many trips are counted as the
    privacy unit has. Rows without a known area were refused ("error"), have an area of their own
    on the axes that have one ("outside"), or are not counted ("drop"). `what` is the noun for the
    counted entries, in the plural: trips, people, jobs.
    """

    bounded: bool = False
    unplaceable: Literal["error", "outside", "drop"] = "error"
    what: Noun = TRIPS

    @classmethod
    def noun(cls, given: str | None, tree: Tree) -> str:
        """What is counted; by default trips between two ends, and otherwise entries.

        Raises:
            InftdaError: it is not a word or two.
        """
        if given is None:
            return TRIPS if {ORIGIN, DESTINATION} <= {axis.name for axis in tree.axes} else ENTRIES
        if not re.fullmatch(_NOUN, given):
            raise InftdaError(
                f"`counts=` must be a word or two such as people or car trips, got {given[:40]!r}"
            )
        return given

    @property
    def entries(self) -> tuple[str, str]:
        """The noun for what a person has in the table, one and many: trips, or entries."""
        return ("trip", TRIPS) if self.what == TRIPS else ("entry", ENTRIES)

    def is_partial(self, unit: Unit) -> bool:
        """Whether rows of the table may be left out, so that its total is another."""
        # With exactly as many trips as stated, whoever has another number stops the release.
        is_cut = not unit.root_is_public or self._counts_once(unit)
        return (self.bounded and is_cut) or self.unplaceable == "drop"

    def _counts_once(self, unit: Unit) -> bool:
        return self.bounded and unit.forbids_repeats

    def words(self, unit: Unit, tree: Tree) -> tuple[str, ...]:
        """Caveats: rows that were dropped, moved to "outside" or cut; empty if there are none.

        >>> from inftda.tree.hierarchy import Hierarchy
        >>> towns = Tree.destination_first(Hierarchy.read({"town": ["a", "b"]}))
        >>> Counting(bounded=True).words(Unit("add-remove", 10), towns)[0]
        'at most 10 trips of each person are counted: the table does not show all trips of people with more'
        """  # noqa: E501 - one line of output
        said = []
        one, many = self.entries
        # With exactly as many trips as stated, whoever has another number stops the release.
        if self.bounded and not unit.root_is_public:
            most = f"{unit.contribution(one, many)} of each person"
            said.append(
                f"at most {most} {'is' if unit.trips == 1 else 'are'} counted: the table does not "
                f"show all {many} of people with more"
            )
        if self._counts_once(unit):
            said.append(f"{many} that a person repeats are counted once")
        rows = "rows without a known area"
        if self.unplaceable == "drop":
            said.append(f"{rows} are left out")
        if self.unplaceable == "outside":
            where = [axis.name for axis in tree.axes if axis.hierarchy.has_outside]
            of = "" if len(where) == len(tree.axes) else f" of {' and '.join(where)}"
            said.append(f"{rows} are counted in the area {OUTSIDE!r}{of}")
        return tuple(said)

    def check(self, unit: Unit, tree: Tree) -> None:
        """Refuse counting rules that contradict the privacy unit or the areas."""
        is_outside = self.unplaceable == "outside"
        outside = [axis.name for axis in tree.axes if axis.hierarchy.has_outside]
        contradictions = {
            "rows without a known area were dropped, which is never done under neighbours "
            "'substitute'": self.unplaceable == "drop" and not unit.may_drop_rows,
            f"rows without a known area are in {OUTSIDE!r}, but no axis has such an area": (
                is_outside and not outside
            ),
            f"nobody makes the same trip twice, but trips to {OUTSIDE!r} may coincide": (
                is_outside and not self.bounded and unit.is_broken_by(outside)
            ),
        }
        for words, is_stated in contradictions.items():
            if is_stated:
                raise ReleaseError(f"the manifest says that {words}; it was edited")


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The contents of `manifest.json`, in their order.

    Attributes:
        format: bumped when a reader of the old format could misunderstand the new one.
        private: False for a release made with a seed, which gives no guarantee.
        mechanism: name of the mechanism.
        options: its public options.
        guarantee: the plan as a dictionary: epsilon, delta, rho, the privacy unit, and
            for each measured level its noise, sensitivity and cost.
        tree: the axes of the table, and the order of refinement.
        counted: the counted rows and their name.
        edition: the period that the table is about, such as 2024-05, if that was said.
        total: sum of all flows.
        n_flows: number of rows.
        seed: 16 random bytes, as hexadecimal digits, which decided between equal noisy counts. No
            noise follows from it; with the measurements it determines the flows.
        flows_sha256: digest of the flows as they were written; empty while they are in memory only.
        measurements: which noisy values are published: none, marginal totals, or all.
        measurements_sha256: digest of their file; empty without one.
        software: versions of the software that made it.
    """

    format: Literal["inftda-release/1"] = "inftda-release/1"
    private: bool
    mechanism: Literal["inftda"] = "inftda"
    options: dict[str, Any] = field(default_factory=OPTIONS.copy)
    guarantee: dict[str, Any]
    tree: TreeEntry
    counted: Counting = Counting()
    edition: Edition = ""
    total: Size
    n_flows: Size
    seed: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{32}\Z")] = "00" * 16
    flows_sha256: str = field(default="", compare=False)  # of the file, not of what it holds
    measurements: Literal["none", "totals", "all"] = "none"
    measurements_sha256: str = field(default="", compare=False)
    software: dict[Software, Version] = field(default_factory=software_versions)

    @property
    def unit(self) -> Unit:
        """The privacy unit."""
        return self.plan.unit

    @property
    def protected(self) -> str:
        """The privacy unit in plain words."""
        return self.unit.describe(*self.counted.entries)

    @property
    def counts(self) -> str:
        """Noun for the counted entries: "trips", or "counted trips" if rows may be left out."""
        what = self.counted.what
        return f"counted {what}" if self.counted.is_partial(self.unit) else what

    @cached_property
    def plan(self) -> Plan:
        """The plan; a `PrivacyError` if its noise does not give the stated guarantee."""
        return Plan.from_dict(self.guarantee)

    def to_dict(self) -> dict[str, Any]:
        """As it is written to `manifest.json`."""
        found: dict[str, Any] = msgspec.to_builtins(asdict(self))  # lists for tuples
        return found

    def to_text(self) -> str:
        """The contents of `manifest.json`: it follows from the manifest, bit for bit."""
        return json.dumps(self.to_dict(), indent=2) + "\n"

    @classmethod
    def read(cls, path: Path) -> "Manifest":
        """Read `manifest.json`; see `from_text`."""
        if not is_plain(path) or path.stat().st_size > MAX_BYTES:
            raise ReleaseError(
                f"{str(path)!r} is damaged or not a manifest: it must be a plain file of at most "
                f"{MAX_BYTES:,} bytes"
            )
        return cls.from_text(path.read_bytes())

    @classmethod
    def from_text(cls, text: bytes) -> "Manifest":
        """Read a text that `to_text` wrote; any other text is refused."""
        try:
            manifest = msgspec.json.decode(text, type=cls)
        except msgspec.ValidationError as problem:
            raise ReleaseError(
                f"the manifest is not that of a release: {str(problem)[:200]}; it was edited or "
                "damaged, or written by another version of inftda"
            ) from None
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            raise ReleaseError(
                f"the manifest is not readable as JSON; it was damaged: {GET_AGAIN}"
            ) from None
        check_text(text, manifest)
        return manifest


def checked_edition(given: str | None) -> str:
    """The name of a period, or nothing.

    Raises:
        InftdaError: it has blanks or signs that no period has, or is too long.
    """
    if not re.fullmatch(_EDITION, given or ""):
        raise InftdaError(
            f"an edition is a period such as 2024 or 2024-05: letters, digits, '.', '_' and '-', "
            f"at most 40; got {str(given)[:40]!r}"
        )
    return given or ""


def check_text(found: bytes, manifest: Manifest) -> None:
    """Refuse any text but that of a manifest; the message says where they differ first."""
    expected = manifest.to_text().encode()
    if found == expected:
        return
    lines = zip_longest(found.splitlines(), expected.splitlines(), fillvalue=b"")
    pairs = enumerate(([line.strip().rstrip(b",") for line in pair] for pair in lines), start=1)
    number, pair = next((one for one in pairs if one[1][0] != one[1][1]), (1, [b"", b""]))
    stated, known = (line[:80].decode(errors="replace") for line in pair)
    raise ReleaseError(
        f"the manifest states {stated!r} in line {number}, where a release states {known!r}; it "
        "was edited, or written by another version of inftda"
    )


def check_plain(folder: Path, names: Iterable[str]) -> None:
    """Refuse files that are links, pipes or anything else that must not be read."""
    for name in names:
        path = folder / name
        if os.path.lexists(path) and not is_plain(path):
            kind = "a link" if path.is_symlink() else "not a plain file"
            raise ReleaseError(
                f"{name!r} of the release {str(folder)!r} is {kind}, which no release has; "
                f"{GET_AGAIN}"
            )


def check_digest(path: Path, stated: str) -> None:
    """Refuse a file that is missing, or is not the one that the manifest was written for."""
    if not path.exists():
        raise ReleaseError(f"the release has no {path.name}; {GET_AGAIN}")
    if digest(path) != stated:
        raise ReleaseError(
            f"{path.name} is not what the manifest was written for; it was damaged or changed, or "
            f"is of another release: {GET_AGAIN}"
        )


def digest(path: Path) -> str:
    """SHA-256 of a file.

    It finds damage and mistakes, not forgery: a forger who changes the flows can change the
    digest as well, unless the manifest is signed.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
