"""The choices of a user: a document of TOML that `--config` of every command accepts.

It is also shown as a command for a terminal, and as a call in Python.

In the browser it is the same document, in which each value is a text as it would be typed, a list
of them, or true or false. Options that `plan` knows as well stand at its top, others in the section
of their command. Every job is one command that reads this document.
"""

import json
import re
import shlex
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import fields
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Final

from inftda.arguments import Parameter, as_given, parameters_of, read_configuration, values
from inftda.documents.dossier import dossier
from inftda.errors import InftdaError
from inftda.exports.export import export
from inftda.noise.bits import SeededSource
from inftda.options import Group, Option, current_name, metadata, signature_of
from inftda.pages.report import report
from inftda.pipeline import release
from inftda.planning.plan import plan
from inftda.planning.preview import preview
from inftda.publication.verify import verify
from inftda.reading import SqlQuery, TableFile
from inftda.reading.sources import files_at
from inftda.util.stores import is_remote

Document = dict[str, Any]

#: Commands that the app runs.
COMMANDS: Final[Mapping[str, Callable[..., Any]]] = {
    "plan": plan,
    "preview": preview,
    "release": release,
    "verify": verify,
    "report": report,
    "export": export,
    "dossier": dossier,
}
#: Option of each command that names the release to read.
READS_RELEASE: Final = {
    "verify": "release",
    "report": "release",
    "export": "source",
    "dossier": "release",
}
#: Options that the app does not offer: it runs on one machine, and shows nothing confidential.
LEFT_OUT: Final = frozenset({"engine", "master", "allow_confidential", "keep_formulas"})
#: Placeholders of options that name a file or folder, or several of them after a name.
PLACES: Final = frozenset(
    {"FILE", "FLOWS", "FOLDER", "KEY.pem", "OUT", "PUBLIC.pem", "RELEASE", "NAME=FILE"}
)
#: An address with a password in it, and those of databases in a file.
_PASSWORD: Final = re.compile(r"://[^/@]*:[^/@]*@")
_DATABASES: Final = ("sqlite:///", "duckdb:///")


@cache
def options_of(command: str) -> dict[str, Parameter]:
    """Options of a command by key."""
    found: dict[str, Parameter] = {}
    for one in parameters_of(COMMANDS[command]):
        found.setdefault(one.name.strip("_"), one)
    return found


#: Keys at the top of the document; the person column is of the confidential table alone.
SHARED: Final = frozenset({*options_of("plan"), "ledger", "dataset"}) - {"person"}


def given(document: Document, command: str, only: Container[str] | None = None) -> dict[str, Any]:
    """The options of a command, as its command line would have them: texts, numbers and flags.

    `only` are the keys that are wanted, by default all.

    Raises:
        InftdaError: a text is no number where one is needed.
    """
    said = {key: value for key, value in document.items() if not isinstance(value, dict)}
    said |= document.get(command, {})
    found = {}
    for key, one in options_of(command).items():
        value = said.get(key) if only is None or key in only else None
        if one.option.is_repeated and isinstance(value, str):
            value = [value]
        if isinstance(value, list):
            value = [text for text in value if text]
        if value not in (None, "", []):
            found[one.name] = one.plain(value) if isinstance(value, str) else value
    return found


def completed(document: Document) -> Document:
    """The document with the folder of the release in every section that reads it."""
    out = document.get("release", {}).get("out")
    if not out:
        return document
    sections = {
        command: document.get(command, {}) | {key: out} for command, key in READS_RELEASE.items()
    }
    return {**document, **sections}


def to_toml(document: Document) -> str:
    """The document as it is saved, and as a command reads it.

    Raises:
        InftdaError: a text is no number where one is needed.
    """
    whole = completed(document)
    lines = [*_lines(whole, "release", "plan", "preview")]
    for command in COMMANDS:
        inside = [*_lines(whole.get(command, {}), command)]
        lines += ["", f"[{command}]", *inside] if inside else []
    return "\n".join(lines).strip() + "\n"


def _lines(said: Mapping[str, Any], *commands: str) -> Iterator[str]:
    for key, value in said.items():
        if isinstance(value, dict) or value in ("", None, []):
            continue
        one = next(found[key] for name in commands if key in (found := options_of(name)))
        if isinstance(value, list):
            yield f"{key} = [{', '.join(_quoted(text) for text in value if text)}]"
        elif isinstance(value, bool):
            yield f"{key} = {'true' if value else 'false'}"
        else:
            plain = one.plain(value)
            yield f"{key} = {_quoted(value) if plain == value else _number(plain)}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def from_toml(path: Path) -> Document:
    """Read a document.

    Raises:
        InftdaError: it cannot be read, or has keys that no command of the app knows.
    """
    document: Document = {}
    for key, value in read_configuration(path).items():
        if isinstance(value, dict) and key in COMMANDS:
            document[key] = dict(_read(path, value, key))
        elif key.replace("-", "_") in SHARED:
            document |= _read(path, {key: value}, "release", "plan")
        else:  # an option of one command, written at the top
            known = [name for name in COMMANDS if key.replace("-", "_") in options_of(name)]
            found = dict(_read(path, {key: value}, *known or COMMANDS))
            section = "release" if "release" in known else known[0]
            document.setdefault(section, {}).update(found)
    return document


def _read(path: Path, said: Mapping[str, Any], *commands: str) -> Iterator[tuple[str, Any]]:
    known = {key: one for name in reversed(commands) for key, one in options_of(name).items()}
    for written, value in said.items():
        key = current_name(written.replace("-", "_"), known)
        if key not in known:
            raise InftdaError(f"{path.name!r} has a key {written!r} that the app does not know")
        text = as_given(path, written, known[key], value)
        if isinstance(text, float):
            text = repr(text).removesuffix(".0")
        texts = [*map(str, text)] if isinstance(text, list) else str(text)
        yield key, text if isinstance(text, bool) else texts


def checked(document: Any) -> Document:
    """A document that came from a browser: known keys, and values of the kinds that forms have.

    Raises:
        InftdaError: it is something else.
    """
    if not isinstance(document, dict):
        raise InftdaError("the choices must be an object")
    for key, value in document.items():
        if isinstance(value, dict):
            known = options_of(key).keys() - LEFT_OUT if key in COMMANDS else set()
            if any(not _is_value(inner) or name not in known for name, inner in value.items()):
                raise InftdaError(f"the app has no such choices in {key!r}")
        elif key not in SHARED or not _is_value(value):
            raise InftdaError(f"the app has no choice {key!r}")
    return document


def _is_value(value: Any) -> bool:
    texts = value if isinstance(value, list) else [value]
    return isinstance(value, bool) or all(
        isinstance(text, str) and "\0" not in text for text in texts
    )


def check_places(document: Document, root: Path) -> None:
    """Refuse files and folders that are not below the start folder, links followed.

    Raises:
        InftdaError: there is one.
    """
    sections = [("release", document), *((name, document.get(name, {})) for name in COMMANDS)]
    for command, said in sections:
        known = options_of(command) | options_of("plan")
        for key, value in said.items():
            if isinstance(value, dict) or not value:
                continue
            texts = value if isinstance(value, list) else [value]
            if key in known and known[key].metavar in PLACES:
                for text in texts:
                    is_named = known[key].metavar == "NAME=FILE"
                    check_place(text.partition("=")[2] if is_named else text, root)
            elif key == "database":
                _check_database(value, root)


def check_place(text: str, root: Path) -> Path:
    """The path that a text names, if it is below the start folder; addresses of stores pass.

    Raises:
        InftdaError: it is elsewhere.
    """
    if is_remote(text):
        return Path(text)
    path = root / text
    for one in _path_and_files(path) if text else [path]:
        if not one.resolve().is_relative_to(root):
            raise InftdaError(
                f"{text!r} is not below the folder that the app was started in, {str(root)!r}; "
                "start it in a folder that holds the file"
            )
    return path


def _path_and_files(path: Path) -> Iterator[Path]:
    """A path and the files there, which are looked for once the path is found to be allowed."""
    yield path
    yield from files_at(path)


def _check_database(address: str, root: Path) -> None:
    for start in _DATABASES:
        if address.startswith(start):
            check_place(address.removeprefix(start), root)
    if _PASSWORD.search(address):
        raise InftdaError(
            "a password does not belong in a form; leave it to PGPASSWORD, ~/.pgpass or a profile"
        )


# --- the document as commands


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
