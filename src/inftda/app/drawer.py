"""A document as a command for a terminal and as a call in Python."""

import shlex
from collections.abc import Callable, Iterator
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

from inftda.app.document import COMMANDS, Document, completed, given, options_of, to_toml
from inftda.arguments import Parameter, values
from inftda.errors import InftdaError
from inftda.noise.bits import SeededSource
from inftda.options import Group, Option, metadata, signature_of
from inftda.reading import SqlQuery, TableFile


def drawer(document: Document) -> dict[str, Any]:
    """The document as TOML, and each command in a terminal and in Python.

    Raises:
        InftdaError: a text cannot be read.
    """
    whole = completed(document)
    made = {}
    for command in COMMANDS:
        said = given(whole, command)
        try:
            in_python = python(command, said)
        except InftdaError as problem:
            in_python = f"# {problem}"
        made[command] = {"terminal": terminal(command, said), "python": in_python}
    return {"commands": made, "toml": to_toml(document)}


def terminal(command: str, said: dict[str, Any]) -> str:
    """The command line, one option a line."""
    known = {one.name: one for one in options_of(command).values()}
    places = [
        shlex.quote(f"./{said[name]}" if str(said[name]).startswith("-") else str(said[name]))
        for name in known
        if known[name].option.is_argument and name in said
    ]
    flags = [
        words
        for name, value in said.items()
        if not known[name].option.is_argument
        for words in _flags(known[name], value)
    ]
    return " \\\n    ".join([" ".join(["inftda", command, *places]), *flags])


def _flags(one: Parameter, value: Any) -> Iterator[str]:
    if one.is_flag:
        yes, _, no = (one.option.spelling or one.flag).partition("/")
        if value or no:
            yield yes if value else no
        return
    for text in value if isinstance(value, list) else [value]:
        word = shlex.quote(_number(text) if isinstance(text, float) else str(text))
        yield f"{one.flag}={word}" if word.startswith("-") else f"{one.flag} {word}"


def python(command: str, said: dict[str, Any]) -> str:
    """A script with the call.

    Raises:
        InftdaError: a text cannot be read.
    """
    make = COMMANDS[command]
    lines = [f"    {text},\n" for text in _arguments(make, said)]
    call = f"inftda.{make.__name__}(\n{''.join(lines)})\n"
    needs_fractions = "from fractions import Fraction\n\n" if "Fraction(" in call else ""
    shown = f"print({call.rstrip()})\n" if command in {"plan", "preview"} else call
    return f"{needs_fractions}import inftda\n\n{shown}"


def _arguments(make: Callable[..., Any], said: dict[str, Any]) -> Iterator[str]:
    """The arguments of a call that were given, as Python spells them."""
    found = values(make, said)
    for parameter in signature_of(make).parameters.values():
        if parameter.name not in found:
            continue
        value = found[parameter.name]
        group = next((one for one in metadata(parameter) if isinstance(one, Group)), None)
        if group is None or not isinstance(group.make, type):
            text = _literal(value)
        elif isinstance(value, list):
            several = {"trips", "neighbours", "exactly", "distinct", "once_per"} & said.keys()
            text = f"[{', '.join(_made(group.make, one, several) for one in value)}]"
        else:
            text = f"inftda.{group.make.__name__}({', '.join(_arguments(group.make, said))})"
        is_first = any(isinstance(one, Option) and one.is_argument for one in metadata(parameter))
        yield text if is_first else f"{parameter.name}={text}"


def _made(make: type, value: Any, names: set[str]) -> str:
    inside = (f"{name}={_literal(getattr(value, name))}" for name in sorted(names))
    return f"inftda.{make.__name__}({', '.join(inside)})"


def _literal(value: Any) -> str:
    text = repr(value)
    match value:
        case Fraction():
            text = f"Fraction({value.numerator}, {value.denominator})"
        case Path():
            text = repr(str(value))
        case float():
            text = _number(value)
        case SeededSource():
            text = f"inftda.SeededSource({value.seed})"
        case SqlQuery():
            text = f"inftda.SqlQuery({value.query!r}, {value.database!r})"
        case TableFile():
            options = ", ".join(
                f"{one.name}={getattr(value, one.name)!r}"
                for one in fields(value)
                if getattr(value, one.name) != one.default and one.name != "path"
            )
            text = f"inftda.TableFile({str(value.path)!r}, {options})"
    return text


def _number(value: float) -> str:
    """All its digits, and no more."""
    return repr(value).removesuffix(".0")
