"""The manifest of a release: the guarantee, the noise of each level, the axes.

Public by construction: everything here is a parameter, or computed from the released table. The
manifest is a record (`inftda.util.formats`), from which the reference and the published JSON Schema
are generated.
"""

import hashlib
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import pyarrow as pa
from msgspec import Meta

from inftda import __version__
from inftda.errors import InftdaError, ReleaseError
from inftda.privacy.noise_plan import Plan
from inftda.privacy.records import StatedPlan
from inftda.privacy.unit import Unit
from inftda.tree import DESTINATION, ORIGIN, Tree
from inftda.tree.hierarchy import OUTSIDE
from inftda.util.files import FLOWS_FILE, is_plain
from inftda.util.formats import END, GET_AGAIN, Name, Record, Version, decode

#: Format of the folder; bumped when a reader of the old one could misunderstand the new one.
FORMAT: Final = "inftda-release/1"
#: Number of the division of noisy counts; a change of its results takes the next number, and
#: `verify` keeps repeating the earlier ones.
ALGORITHM: Final = 1
MEASUREMENTS_FILE: Final = "measurements.parquet"
#: Signature of the manifest, if the release is signed.
SIGNATURE_FILE: Final = "manifest.sig"
#: Cause and remedy for a damaged release.
DAMAGED: Final = f"it was edited or damaged: {GET_AGAIN}"
#: What numbers count unless something else is said: in a table of trips, and in any other.
TRIPS, ENTRIES = "trips", "entries"
_NOUN: Final = r"[^\W\d_][\w '-]{0,39}"
_EDITION: Final = r"([A-Za-z0-9][A-Za-z0-9._-]{0,39})?"
#: Far more than any manifest has.
MAX_BYTES = 16 << 20
#: Far more than can be released; beyond it sums would wrap around.
_SIZE: Final = Meta(ge=0, le=1 << 62)
Sha256 = Annotated[str, Meta(pattern=rf"^[0-9a-f]{{64}}{END}")]
_NUMBERED: Final = r"(-[1-9][0-9]{0,3})?"
AreasFile = Annotated[str, Meta(pattern=rf"^areas{_NUMBERED}\.csv{END}")]
_TABLES: Final = "flows|measurements|estimate|places" + _NUMBERED
OwnFile = Annotated[str, Meta(pattern=rf"^(areas{_NUMBERED}\.csv|({_TABLES})\.parquet){END}")]
Software = dict[Name, Version]
#: Libraries whose versions are stated, besides Arrow.
LIBRARIES: Final = ("numpy", "numba", "cryptography", "python-flint")


def software_versions() -> Software:
    """Versions of Python and of the libraries a release depends on."""
    made_by = {"inftda": __version__, "python": platform.python_version()}
    return made_by | {name: version(name) for name in LIBRARIES} | {"arrow": arrow_version()}


def arrow_version() -> str:
    """Version and build of Arrow: these decide how the same rows are compressed."""
    build: Any = pa.cpp_build_info
    return f"{build.version}+{build.package_kind or 'source'}"


def _said(text: str) -> Meta:
    return Meta(description=text)


Requires = Annotated[
    dict[Name, Version],
    _said("features that a reader must know, each with the first version of inftda that does"),
]
Order = Annotated[
    tuple[str, ...], _said("order of refinement: names of axes, one mention for each level")
]
Files = Annotated[
    dict[OwnFile, Sha256],
    _said("SHA-256 of every file in the folder but `manifest.json` and `manifest.sig`, by name"),
]
MadeBy = Annotated[
    Software,
    _said(
        "for information: versions of inftda, Python and the libraries it was made with; `arrow` "
        "is the version and build that wrote the Parquet files"
    ),
]


class AxisEntry(Record, frozen=True, kw_only=True):
    """An axis: a hierarchy of public areas, and the column of their codes."""

    name: Annotated[str, _said("column of the axis in `flows.parquet`")]
    levels: Annotated[tuple[str, ...], _said("levels of its hierarchy, coarse to fine")]
    file: Annotated[
        AreasFile,
        _said("its areas: `areas.csv` if all axes have the same, otherwise `areas-1.csv`, ..."),
    ]


Axes = Annotated[tuple[AxisEntry, ...], _said("the axes of the table, in the order of columns")]


class Counting(Record, frozen=True):
    """Rules by which the confidential table was counted: the publisher's statement.

    A release describes the counted trips or rows only. The rules are public; the number of omitted
    trips or rows is not.
    """

    bounded: Annotated[
        bool, _said("whether at most `trips` of each person are counted, by a column of persons")
    ]
    unplaceable: Annotated[
        Literal["error", "outside", "drop"],
        _said(
            "rows without a known area: `error` if there are none, `outside` if they are counted "
            "in an area of that name, `drop` if they are left out"
        ),
    ]
    what: Annotated[str, _said("what the numbers count, in the plural: trips, people, jobs")]

    def __post_init__(self) -> None:
        if not re.fullmatch(_NOUN, self.what):
            raise ValueError("`what` must be a word or two, such as people or car trips")

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
        >>> Counting(True, "error", "trips").words(Unit("add-remove", 10), towns)[0]
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


class Manifest(Record, frozen=True, kw_only=True, dict=True):
    """The contents of `manifest.json`, in their order."""

    format: Annotated[
        Literal["inftda-release/1"],
        _said("format of the folder; other formats are refused rather than misread"),
    ]
    requires: Requires
    private: Annotated[
        bool,
        _said(
            "false for a release made with a seed: it has no guarantee and must not be published"
        ),
    ]
    edition: Annotated[
        str,
        Meta(
            pattern=rf"^{_EDITION}{END}",
            description="the period that the table is about, such as 2024-05; empty if not stated",
        ),
    ]
    counted: Annotated[Counting, _said("which rows of the table were counted")]
    total: Annotated[int, _SIZE, _said("sum of all flows")]
    n_flows: Annotated[int, _SIZE, _said("number of rows of `flows.parquet`")]
    guarantee: Annotated[StatedPlan, _said("the guarantee, and the noise that it follows from")]
    axes: Axes
    order: Order
    measurements: Annotated[
        Literal["none", "totals", "all"],
        _said(
            "what `measurements.parquet` holds: `totals` of areas in cross tables, `all` noisy "
            "values, or `none` if there is no such file"
        ),
    ]
    algorithm: Annotated[
        int, Meta(ge=1, description="number of the division of noisy counts into flows")
    ]
    division_seed: Annotated[
        str,
        Meta(
            pattern=rf"^[0-9a-f]{{32}}{END}",
            description="16 random bytes in hexadecimal digits, which decided between equal noisy "
            "counts; no noise follows from them, and with the measurements the flows do",
        ),
    ]
    files: Files
    software: MadeBy

    def __post_init__(self) -> None:
        check_listed(self.axes, self.files, self.tables)

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the files with numbers."""
        return (FLOWS_FILE, MEASUREMENTS_FILE)[: 1 + (self.measurements != "none")]

    @property
    def unit(self) -> Unit:
        """The privacy unit."""
        return self.plan.unit

    @property
    def mechanism(self) -> str:
        """The mechanism in words."""
        return f"inftda, algorithm {self.algorithm}"

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
        return Plan.from_stated(self.guarantee)

    @cached_property
    def sha256(self) -> str:
        """Digest of the manifest, which identifies the release."""
        return hashlib.sha256(self.to_text().encode()).hexdigest()

    @classmethod
    def read(cls, path: Path) -> "Manifest":
        """Read `manifest.json`; see `from_text`."""
        if not os.path.lexists(path):
            raise ReleaseError(f"there is no {path.name} in {str(path.parent)!r}")
        if not is_plain(path) or path.stat().st_size > MAX_BYTES:
            raise ReleaseError(
                f"{str(path)!r} is damaged or not a manifest: it must be a plain file of at most "
                f"{MAX_BYTES:,} bytes"
            )
        return cls.from_text(path.read_bytes())

    @classmethod
    def from_text(cls, text: bytes) -> "Manifest":
        """Read a text that `to_text` wrote, maybe with entries that this version does not know."""
        manifest = decode(text, cls, FORMAT)
        vars(manifest)["sha256"] = hashlib.sha256(text).hexdigest()  # with unknown entries
        return manifest

    def check_file(self, path: Path) -> None:
        """Refuse a file that is missing, or is not the one that the manifest was written for."""
        check_digest(path, self.files)


def areas_names(fingerprints: Sequence[str]) -> tuple[str, ...]:
    """File with the areas of each axis: one for all if they have the same areas.

    >>> areas_names(["a", "a"]), areas_names(["a", "b"])
    (('areas.csv', 'areas.csv'), ('areas-1.csv', 'areas-2.csv'))
    """
    if len(set(fingerprints)) == 1:
        return ("areas.csv",) * len(fingerprints)
    return tuple(f"areas-{number}.csv" for number in range(1, len(fingerprints) + 1))


def places_name(areas_file: str) -> str:
    """File with names, locations and outlines of the areas that a file lists, if there is one.

    >>> places_name("areas.csv"), places_name("areas-2.csv")
    ('places.parquet', 'places-2.parquet')
    """
    return areas_file.removesuffix(".csv").replace("areas", "places", 1) + ".parquet"


def check_listed(axes: Sequence[AxisEntry], files: Iterable[str], tables: Iterable[str]) -> None:
    """Refuse other files than those of such axes and tables: any file could be listed as one's own.

    Areas may have a file with their places.
    """
    numbered = [f"areas-{number}.csv" for number in range(1, len(axes) + 1)]
    areas = [axis.file for axis in axes]
    if areas not in (["areas.csv"] * len(areas), numbered):
        raise ValueError(f"the axes have other files of areas than {', '.join(numbered)}")
    expected = {*tables, *areas, *({*map(places_name, areas)} & {*files})}
    if files and [*files] != sorted(expected):
        raise ValueError(f"`files` must list {', '.join(sorted(expected))}")


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


def check_counts(counts: str) -> None:
    """Refuse what `Manifest.counts` never is."""
    if not re.fullmatch(rf"(counted )?{_NOUN}", counts):
        raise ValueError("`counts` must be a word or two, such as people or counted trips")


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


def check_digest(path: Path, stated: Mapping[str, str]) -> None:
    """Refuse a file that is missing, or has another digest than the one stated for its name."""
    if not path.exists():
        raise ReleaseError(f"the release has no {path.name}; {GET_AGAIN}")
    if digest(path) != stated.get(path.name):
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
