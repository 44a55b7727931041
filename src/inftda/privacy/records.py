"""Strict decoding: from what a JSON file holds to typed records.

Manifests come from anywhere, so nothing is converted: a whole number is not a fraction, `true`
is not a number, and text is read as a number only where a fraction is expected. Keys that a record
does not have are left to whoever compares the whole.
"""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from inftda.errors import InftdaError
from inftda.privacy.numbers import exact_number
from inftda.privacy.unit import UNIT_KEYS

Record = TypeVar("Record")


class _WrongKindError(Exception):
    """Where something is, and what it must be."""


def decode(kind: type[Record], data: Any, *, what: str, error: type[InftdaError]) -> Record:
    """A dataclass from a JSON object with a key for each of its fields.

    Fields may be int, float, bool, str, Fraction (written as text), Literal, None, mappings
    with text keys, `tuple[X, ...]` (written as lists), unions, and dataclasses.

    Args:
        kind: the dataclass.
        data: what JSON gave.
        what: what it is called in messages, such as "the manifest".
        error: raised if it does not fit.

    Example:
        >>> from inftda.privacy.unit import PrivacyUnit
        >>> unit = {"neighbours": "add-remove", "trips": 2, "exactly": False, "distinct": True}
        >>> decode(PrivacyUnit, unit, what="the unit", error=InftdaError).trips
        2
    """
    try:
        record: Record = _value(kind, data, "")
    except _WrongKindError as problem:
        raise error(f"{what} is not readable: {problem}; it was edited or damaged") from None
    return record


def _value(kind: Any, value: Any, at: str) -> Any:
    """A value of the kind, all that is inside of it included."""
    if is_dataclass(kind):
        return _record(kind, value, at)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return _one_of(arguments, value, at)
    if origin is tuple and isinstance(value, list):
        return tuple(_value(arguments[0], item, f"{at}[{i}]") for i, item in enumerate(value))
    if origin is Mapping and isinstance(value, dict):
        return {name: _value(arguments[1], item, _below(at, name)) for name, item in value.items()}
    if not _is_plain(kind, value):
        raise _WrongKindError(f"{at!r} must be {_name(kind)}, got {repr(value)[:60]}")
    if kind is Fraction:
        return _fraction(value, at)
    return float(value) if kind is float else value


def _is_plain(kind: Any, value: Any) -> bool:
    """Whether a value without parts is of the kind; True is an int to Python, but not here."""
    if get_origin(kind) is Literal:
        return isinstance(value, str) and value in get_args(kind)
    if kind is float:
        return type(value) in {int, float} and _is_finite(value)
    if kind is Fraction:
        return isinstance(value, str)
    return kind is Any or (kind in {int, str, bool, NoneType} and type(value) is kind)


def _record(kind: Any, value: Any, at: str) -> Any:
    if not isinstance(value, dict):
        where = repr(at) if at else "it"
        raise _WrongKindError(f"{where} must be an object, got {repr(value)[:60]}")
    kinds = get_type_hints(kind)
    missing = [repr(_below(at, field.name)) for field in fields(kind) if field.name not in value]
    if missing:
        raise _WrongKindError(f"there is no {', '.join(missing)}")
    return kind(
        **{
            field.name: _value(kinds[field.name], value[field.name], _below(at, field.name))
            for field in fields(kind)
        }
    )


def _one_of(kinds: tuple[Any, ...], value: Any, at: str) -> Any:
    for kind in kinds:
        try:
            return _value(kind, value, at)
        except _WrongKindError:
            continue
    names = " or ".join(map(_name, kinds))
    raise _WrongKindError(f"{at!r} must be {names}, got {repr(value)[:60]}")


def _fraction(text: str, at: str) -> Fraction:
    try:
        return exact_number(text)
    except (ValueError, ZeroDivisionError):
        raise _WrongKindError(f"{at!r} must be a fraction such as 1/3, got {text[:60]!r}") from None


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def _below(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _name(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    if get_origin(kind) is tuple:
        return "a list"
    names = {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "text",
        Fraction: "a fraction written as text",
        NoneType: "null",
    }
    return names.get(kind, "an object")


def with_unit(data: Any) -> dict[str, Any]:
    """A guarantee with the facts of its unit, which stand among the others, under one key.

    What is not a guarantee at all is left to whoever decodes it.
    """
    if not isinstance(data, Mapping):
        return {}
    return {**data, "unit": {key: data[key] for key in UNIT_KEYS if key in data}}
