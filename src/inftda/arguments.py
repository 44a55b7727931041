"""From texts to the arguments of a function: the options of its annotations, read alike everywhere.

Texts come from the command line, from a configuration, and from the forms of `inftda app`.
"""

import inspect
import re
import tomllib
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final, get_args

import click

from inftda.errors import InftdaError
from inftda.options import Group, Option, metadata, names, signature_of, whole_numbers

#: How a message names an option: as Python spells it.
_OPTION: Final = re.compile(r"`(\w+)=([^`]*)`")


class _Number(click.types.FloatParamType):
    """A number, called so in messages."""

    name = "number"


class _Whole(click.types.IntParamType):
    """A whole number, called so in messages."""

    name = "whole number"


#: Types of numbers by their kind in Python.
NUMBERS: Final = {float: _Number(), int: _Whole()}


class Parameter:
    """One option of a function: its kind and its spelling.

    Attributes:
        name: of the parameter in Python.
        option: its help and its parser.
        kind: type of its value where it is not parsed.
        default: in Python.
        is_several: whether it takes several values, by comma.
    """

    def __init__(
        self, parameter: inspect.Parameter, option: Option, *, is_several: bool = False
    ) -> None:
        self.name, self.option, self.is_several = parameter.name, option, is_several
        hint = parameter.annotation.__origin__
        kinds = get_args(hint) or (hint,)
        self.kind = next((kind for kind in (bool, int, float) if kind in kinds), str)
        self.default = parameter.default

    @property
    def flag(self) -> str:
        """Its name on the command line."""
        return f"--{self.name.strip('_').replace('_', '-')}"

    @property
    def is_flag(self) -> bool:
        """Whether it is given without a value."""
        return self.kind is bool and self.option.parse is None

    @property
    def is_text(self) -> bool:
        """Whether its value is made of a text, and is not a plain number or a flag."""
        return self.option.parse is not None or (self.is_several and self.kind is not bool)

    @property
    def metavar(self) -> str:
        """Placeholder for its value."""
        word = self.name.strip("_").rpartition("_")[2].upper()
        return self.option.metavar or {int: "NUMBER", float: "NUMBER"}.get(self.kind, word)

    @property
    def meaning(self) -> str:
        """Its help, without notes about Python."""
        return self.option.help.partition(" In Python")[0].replace("`", "")

    def read(self, given: Any) -> Any:
        """Parse a text.

        Raises:
            InftdaError: it cannot be read.
        """
        if not self.is_text:
            return given
        said = " ".join(given) if isinstance(given, tuple | list) else str(given)
        try:
            if self.is_several and self.kind is int:
                return whole_numbers(given)
            if self.is_several and self.kind is str:
                return names(given)
            return given if self.option.parse is None else self.option.parse(given)
        except ValueError as problem:
            raise InftdaError(f"{self.flag} {problem}, got {said[:40]!r}") from None

    def plain(self, text: str) -> Any:
        """The number that a text stands for, as the command line reads it; other texts as they are.

        Raises:
            InftdaError: it is no such number.
        """
        try:
            kind = str if self.is_text else self.kind
            return click.types.convert_type(NUMBERS.get(kind, kind)).convert(text, None, None)
        except click.BadParameter as problem:
            raise InftdaError(f"Invalid value for '{self.flag}': {problem.message}") from None


def parameters_of(make: Callable[..., Any], *, is_several: bool = False) -> Iterator[Parameter]:
    """All options of a function, those of groups included."""
    for parameter in signature_of(make).parameters.values():
        for one in metadata(parameter):
            if isinstance(one, Option):
                yield Parameter(parameter, one, is_several=is_several)
            elif isinstance(one, Group):
                yield from parameters_of(one.make, is_several=one.is_several)


def values(make: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """Parameter to value, of those parameters of a function that were given."""
    found: dict[str, Any] = {}
    for parameter in signature_of(make).parameters.values():
        for one in metadata(parameter):
            if isinstance(one, Option) and parameter.name in given:
                found[parameter.name] = Parameter(parameter, one).read(given[parameter.name])
            elif isinstance(one, Group):
                _add_group(found, parameter.name, one, given)
    return found


def _add_group(found: dict[str, Any], name: str, group: Group, given: dict[str, Any]) -> None:
    """Build the value of a group of options, if one of them was given."""
    if group.is_several:
        options = {
            one.name: one.read(given[one.name])
            for one in parameters_of(group.make, is_several=True)
            if one.name in given
        }
        lists = [value if isinstance(value, list) else [value] for value in options.values()]
        if options:
            found[name] = [
                group.make(**dict(zip(options, some, strict=True))) for some in product(*lists)
            ]
        return
    inner = values(group.make, given)
    if inner:
        own = [found[name]] if name in found else []
        found[name] = group.make(*own, **inner)


def read_configuration(path: Path) -> dict[str, Any]:
    """The keys of a TOML file.

    Raises:
        InftdaError: it cannot be read.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise InftdaError(
            f"cannot read the configuration {str(path)!r}: {problem.strerror}"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InftdaError(f"the configuration {str(path)!r} is not TOML: {problem}") from None


def as_given(path: Path, key: str, one: Parameter, value: Any) -> Any:
    """A value of TOML as it would be given on the command line.

    Raises:
        InftdaError: it is of the wrong kind.
    """
    option, is_text = one.option, one.option.parse is not None or one.is_several
    if isinstance(value, dict):
        texts = [f"{name}={item}" for name, item in value.items()]
        return texts if option.is_repeated else ",".join(texts)
    if isinstance(value, list) and (is_text or option.is_repeated):
        is_one = not option.is_repeated or not any(isinstance(item, str) for item in value)
        joined = ",".join(map(str, value))
        return [joined] if is_one and option.is_repeated else joined if is_one else value
    if option.is_repeated:
        return [str(value)]
    if is_text and not isinstance(value, bool):
        return str(value)
    fitting = {bool: bool, int: int, float: int | float}.get(one.kind, str | int | float)
    if isinstance(value, fitting) and isinstance(value, bool) == (one.kind is bool):
        return one.kind(value)
    wanted = {bool: "true or false", int: "a whole number", float: "a number"}.get(one.kind, "text")
    raise InftdaError(f"{key!r} of the configuration {str(path)!r} must be {wanted}")


def spelled(message: str) -> str:
    """A message with options as the command line spells them.

    >>> spelled("give `skip_rows=` or `force=True`")
    'give --skip-rows or --force'
    """
    return _OPTION.sub(_flag_of, message)


def _flag_of(found: re.Match[str]) -> str:
    flag, value = f"--{found[1].strip('_').replace('_', '-')}", found[2].strip("'\"")
    if value in {"", "True"}:
        return flag
    return f"{flag} {'none' if value == 'None' else value}"
