"""The file of the office: what only it knows, in TOML, checked before anything is written."""

import re
import tomllib
from collections.abc import Mapping
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from inftda.dossiers.fields import CATALOGUE_FIELDS, FIELDS, Field
from inftda.errors import InftdaError

#: What the office may state, and may override, by key.
_OWN: Final = (
    "url_slug",
    "status",
    "tier",
    "data_product_type",
    "release_type",
    "release_type_details",
)
ASKED: Final = {
    field.key: field
    for field in (*FIELDS, *CATALOGUE_FIELDS)
    if field.question or field.key in _OWN
}
_INTRODUCTION: Final = """\
# What only you know about a release; all that follows from the release itself is filled in.
# Fill in what stands between quotes; leave empty what does not apply.
# Then: inftda dossier RELEASE --about about.toml --out dossier
"""
_CATALOGUE: Final = "\n# For the data catalogue only.\n"
_SLUG: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def template() -> str:
    """A file to fill in: every key with what it means."""
    lines = [_INTRODUCTION]
    for key, field in ASKED.items():
        if not field.question:
            continue
        if key == CATALOGUE_FIELDS[0].key:
            lines.append(_CATALOGUE)
        needed = " Required." if field.required else ""
        allowed = f" One of: {', '.join(map(str, field.allowed))}." if field.allowed else ""
        lines.append(f"# {field.question}{allowed}{needed}")
        empty = "[]" if field.kind == "texts" else '""'
        lines.append(f"{key} = {empty}\n")
    return "\n".join(lines)


def read_office(path: str | Path) -> dict[str, Any]:
    """What the office states; keys without an answer are left out.

    Raises:
        InftdaError: it cannot be read, a key is unknown or missing, or an answer is not of the
            kind or none of the values that the registry allows.
    """
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as problem:
        raise InftdaError(f"cannot read {str(path)!r}: {problem.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InftdaError(f"{str(path)!r} is not TOML: {problem}") from None
    return check_office(data, name=str(path))


def check_office(data: Mapping[str, Any], *, name: str = "about") -> dict[str, Any]:
    """Answers of the office as the registry takes them; see `read_office`.

    Args:
        data: keys and answers.
        name: of the file, for messages.
    """
    for key in data:
        if key not in ASKED:
            near = get_close_matches(key, ASKED, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InftdaError(f"{name!r} has a key {key!r} that nobody asked for{hint}")
    known = {
        key: _checked(ASKED[key], value, name)
        for key, value in data.items()
        if value not in ("", [])
    }
    missing = [key for key, field in ASKED.items() if field.required and key not in known]
    missing = [key for key in missing if ASKED[key].question]
    if missing:
        raise InftdaError(
            f"{name!r} does not say {', '.join(missing)}; `inftda dossier --template` has all keys "
            "with what they mean"
        )
    return known


def _checked(field: Field, value: Any, name: str) -> Any:
    """One answer, of its kind and allowed."""
    if field.is_date:
        return _day(field, value, name)
    if field.kind == "texts":
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            raise InftdaError(f'{field.key} in {name!r} must be a list of texts, such as ["one"]')
        return value
    if not isinstance(value, str) and field.kind != "whole":
        raise InftdaError(f"{field.key} in {name!r} must be a text between quotes")
    if field.allowed and (value not in field.allowed or isinstance(value, bool)):
        allowed = ", ".join(repr(one) for one in field.allowed)
        raise InftdaError(f"{field.key} in {name!r} must be one of {allowed}, got {value!r}")
    if field.key == "url_slug" and not _SLUG.fullmatch(value):
        raise InftdaError(
            f"url_slug in {name!r} must be small letters, digits and hyphens, got {value!r}"
        )
    if not isinstance(value, str):
        return value
    is_yes_or_no = re.match(r"(yes|no)\b", value, re.IGNORECASE)
    if field.key == "preprocessing_and_hyperparameter_tuning" and not is_yes_or_no:
        raise InftdaError(f"{field.key} in {name!r} must begin with yes or no")
    return value.strip()


def _day(field: Field, value: Any, name: str) -> str:
    try:
        return (value if type(value) is date else date.fromisoformat(str(value))).isoformat()
    except ValueError:
        raise InftdaError(
            f"{field.key} in {name!r} must be a day such as 2026-01-31, got {str(value)[:40]!r}"
        ) from None
