"""Records of files that later and earlier versions read as well, as JSON.

A file states its format, the features that a reader must know, and the software that wrote it.
Readers ignore unknown entries, but nothing else may differ from the text that follows from the
record: `check_text` finds edits and returns the places of unknown entries.

A field of the first version of a format has no default and is always written. A field that was
added later has one, and is written only where it states something else: so a record has the same
text in every version.
"""

import json
from itertools import zip_longest
from typing import Annotated, Any, Final, TypeVar

import msgspec

from inftda import __version__
from inftda.errors import ReleaseError

#: Remedy for a release that is not as it was published.
GET_AGAIN: Final = "get the release again from its publisher"
#: The end of a pattern: `$` alone, in Python, also matches before a line break at the end.
END: Final = r"$(?!\n)"
Version = Annotated[str, msgspec.Meta(pattern=rf"^[0-9A-Za-z.+!_-]{{1,80}}{END}")]
Name = Annotated[str, msgspec.Meta(pattern=rf"^[a-z][a-z0-9_-]{{0,39}}{END}")]
#: Features that a file may require of its readers, and that this version knows.
FEATURES: Final = frozenset[str]()

R = TypeVar("R", bound="Record")


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of a file. Only fields added after its first version have a default."""

    def to_dict(self) -> dict[str, Any]:
        """As it is written to JSON."""
        found: dict[str, Any] = json.loads(msgspec.json.encode(self))  # lists for tuples
        return found

    def to_text(self) -> str:
        """The contents of a file: they follow from the record, bit for bit."""
        return _text(self.to_dict())


class Header(Record, frozen=True, kw_only=True):
    """The entries that every version of every format has.

    Attributes:
        format: kind of file and number of its format.
        requires: features that a reader must know, each with the first version that knows it.
        software: versions of what wrote the file.
    """

    format: str
    requires: dict[Name, Version]
    software: dict[Name, Version]


def decode(text: bytes, kind: type[R], format_: str) -> R:
    """Decode a file of a known format that requires no unknown feature.

    Raises:
        ReleaseError: the file is damaged, edited, or of a newer format.
    """
    try:
        header = msgspec.json.decode(text, type=Header)
        if header.format == format_ and header.requires.keys() <= FEATURES:
            found = msgspec.json.decode(text, type=kind)
            check_text(text, found)
            return found
    except msgspec.ValidationError as problem:
        raise ReleaseError(
            f"the manifest is not that of a release or estimate: {str(problem)[:200]}; it was "
            "edited or damaged"
        ) from None
    except (msgspec.DecodeError, RecursionError, ValueError):  # also for too long a number
        raise ReleaseError(
            f"the manifest is not readable as JSON; it was damaged: {GET_AGAIN}"
        ) from None
    for name, since in header.requires.items():
        if header.format == format_ and name not in FEATURES:
            raise ReleaseError(
                f"reading this needs {name!r}, which inftda knows from version {since} on; this is "
                f"version {__version__}: use a newer one"
            )
    made_by = header.software.get("inftda", "an unknown version")
    raise ReleaseError(
        f"the manifest has the format {header.format[:80]!r}, written by inftda {made_by}, and "
        f"{format_!r} is needed here; use that version of inftda or a newer one, or check the path"
    )


def check_text(text: bytes, record: Record) -> list[str]:
    """Compare a text with that of its record, and return the places of unknown entries.

    Raises:
        ReleaseError: they differ elsewhere; the message states the first difference.
    """
    unknown: list[str] = []
    found = json.loads(text)
    known = _without(unknown, found, record.to_dict())
    # The first comparison finds other values, the second one whatever JSON does not keep: blanks,
    # keys that are stated twice, the way a number is written.
    for stated, expected in ((_text(known), record.to_text()), (text.decode(), _text(found))):
        if stated != expected:
            first = _difference(stated, expected)
            raise ReleaseError(f"the manifest was edited or damaged: {first}")
    return unknown


def _text(contents: Any) -> str:
    return json.dumps(contents, indent=2) + "\n"


def _without(unknown: list[str], found: Any, known: Any, at: str = "") -> Any:
    """`found` without the keys of objects that `known` does not have; adds these to `unknown`."""
    if isinstance(found, dict) and isinstance(known, dict):
        unknown += [f"{at}{key}" for key in found if key not in known]
        return {
            key: _without(unknown, found[key], known[key], f"{at}{key}.")
            for key in found
            if key in known
        }
    if isinstance(found, list) and isinstance(known, list) and len(found) == len(known):
        return [_without(unknown, *pair, at) for pair in zip(found, known, strict=True)]
    return found


def difference(stated: Record, follows: Record) -> str:
    """Describe the first difference of two records; the second one follows from the first."""
    return _difference(stated.to_text(), follows.to_text())


def _difference(stated: str, expected: str) -> str:
    lines = zip_longest(stated.splitlines(), expected.splitlines(), fillvalue="")
    pairs = enumerate(([line.strip().rstrip(",") for line in pair] for pair in lines), start=1)
    for number, (here, there) in pairs:
        if here != there:
            return f"line {number} states {here[:80]!r}, where {there[:80]!r} is expected"
    return "it has other blanks than a release has"
