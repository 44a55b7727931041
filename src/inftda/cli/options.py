"""Options that several commands share, and what to make of them."""

import tomllib
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from inftda.errors import InftdaError

_TABLE, _AREAS, _PRIVACY = "The table", "Public areas", "What is promised"

Areas = Annotated[
    Path | None,
    typer.Option(
        help="Areas, one row per finest area, columns coarse to fine (CSV, Parquet, Excel), or "
        "polygons (GeoJSON, GeoPackage, shapefile).",
        rich_help_panel=_AREAS,
    ),
]
OriginAreas = Annotated[
    Path | None, typer.Option(help="Areas of the origins, if different.", rich_help_panel=_AREAS)
]
DestinationAreas = Annotated[
    Path | None,
    typer.Option(help="Areas of the destinations, if different.", rich_help_panel=_AREAS),
]
Levels = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN,COLUMN,...",
        help="Columns of the areas that are the levels, coarse to fine; CODE=NAME also says where "
        "their names are [default: all but name, LEVEL_name, lon, lat, wkt].",
        rich_help_panel=_AREAS,
    ),
]
OriginPoint = Annotated[
    str | None,
    typer.Option(
        metavar="LON,LAT",
        help="Columns with the point where trips start, in degrees, instead of --origin.",
        rich_help_panel=_TABLE,
    ),
]
DestinationPoint = Annotated[
    str | None,
    typer.Option(
        metavar="LON,LAT",
        help="Columns with the point where they end, instead of --destination.",
        rich_help_panel=_TABLE,
    ),
]
HourOf = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of time stamps: count by hour as well, in parts of the day.",
        rich_help_panel=_TABLE,
    ),
]
WeekdayOf = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of time stamps: count by weekday as well.",
        rich_help_panel=_TABLE,
    ),
]
AxisFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--axis",
        metavar="NAME=FILE",
        help="A further column and its hierarchy; for other tables, all of them.",
        rich_help_panel=_AREAS,
    ),
]
Order = Annotated[
    str | None,
    typer.Option(
        metavar="AXIS,AXIS,...",
        help="Order of refinement: each mention refines that axis by one level.",
        rich_help_panel=_AREAS,
    ),
]
TreeKind = Annotated[
    str,
    typer.Option(
        "--tree",
        metavar="destination|origin",
        help="Which end is refined first.",
        rich_help_panel=_AREAS,
    ),
]
Epsilon = Annotated[
    float | None, typer.Option(help="Strength; goes with --delta.", rich_help_panel=_PRIVACY)
]
Delta = Annotated[
    float | None,
    typer.Option(help="Probability of failure; far below 1 / people.", rich_help_panel=_PRIVACY),
]
Rho = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER", help="Strength as zCDP, instead of epsilon.", rich_help_panel=_PRIVACY
    ),
]
Neighbours = Annotated[
    str,
    typer.Option(
        metavar="substitute|add-remove",
        help="What one person may change.",
        rich_help_panel=_PRIVACY,
    ),
]
Trips = Annotated[int, typer.Option(help="The most trips of one person.", rich_help_panel=_PRIVACY)]
Exactly = Annotated[
    bool | None,
    typer.Option(
        "--exactly/--at-most",
        help="Whether everybody has exactly that many trips [default: exactly, for substitute].",
        rich_help_panel=_PRIVACY,
    ),
]
Distinct = Annotated[
    bool,
    typer.Option("--distinct", help="Nobody makes the same trip twice.", rich_help_panel=_PRIVACY),
]
Accountant = Annotated[
    str,
    typer.Option(
        metavar="auto|exact|zcdp",
        help="How the guarantee is computed.",
        rich_help_panel=_PRIVACY,
    ),
]
Split = Annotated[
    str,
    typer.Option(
        metavar="uniform|geometric:R|W,W,...",
        help="How the budget is split over levels.",
        rich_help_panel=_PRIVACY,
    ),
]
Across = Annotated[
    float | None,
    typer.Option(
        metavar="PART",
        help="Part of the budget for totals across the tree, so that out- and in-totals of all "
        "areas come out right; 0 for the paper's algorithm [default: 0.08].",
        rich_help_panel=_PRIVACY,
    ),
]
Count = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|none",
        help="Column of counts, none if every row is one trip [default: count, if there is one].",
        rich_help_panel=_TABLE,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        metavar="utf-8|utf-16|latin-1",
        help="How the text of a CSV table is encoded [default: utf-8].",
        rich_help_panel=_TABLE,
    ),
]
Unplaceable = Annotated[
    str | None,
    typer.Option(
        metavar="error|outside|drop|AXIS=outside",
        help="Rows with an unknown or missing area; AXIS=outside where only one axis has such "
        "rows [default: error; to evaluate, as the release].",
        rich_help_panel=_TABLE,
    ),
]
Origin = Annotated[str, typer.Option(help="Column where trips start.", rich_help_panel=_TABLE)]
Destination = Annotated[str, typer.Option(help="Column where trips end.", rich_help_panel=_TABLE)]
Quiet = Annotated[bool, typer.Option("--quiet", help="Say nothing unless it fails.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]


def pairs(option: str, given: list[str] | None) -> dict[str, str]:
    """From NAME=VALUE arguments to a mapping.

    Raises:
        InftdaError: an argument is not of that form, or a name is given twice.
    """
    mapping = {}
    for name, values in lists(option, given).items():
        if len(values) > 1:
            raise InftdaError(f"{option} names {name!r} twice; name it once")
        mapping[name] = values[0]
    return mapping


def lists(option: str, given: list[str] | None) -> dict[str, list[str]]:
    """From NAME=VALUE arguments to all the values of each name.

    Raises:
        InftdaError: an argument is not of that form.
    """
    mapping: dict[str, list[str]] = {}
    for pair in given or []:
        name, equals, value = pair.partition("=")
        if not (name and equals and value):
            raise InftdaError(f"{option} must be NAME=VALUE, got {pair!r}")
        mapping.setdefault(name, []).append(value)
    return mapping


def table_at(path: str, encoding: str | None) -> Any:
    """The confidential table in a file, with its encoding."""
    if encoding is None:
        return path
    from inftda.reading import CsvFile  # noqa: PLC0415 - DuckDB

    return CsvFile(path, encoding=encoding)


def count_of(text: str | None) -> str | None:
    """From the text of --count to what a release takes."""
    if text is None:
        return "auto"
    return None if text == "none" else text


def unplaceable_of(text: str | None) -> Any:
    """From the text of --unplaceable to what a release takes; None if nothing was said."""
    if text is None or "=" not in text:
        return text
    return pairs("--unplaceable", text.split(","))


def names(text: str | None) -> list[str] | None:
    """From a comma-separated list to names."""
    return [name.strip() for name in text.split(",")] if text else None


def levels_of(text: str | None) -> dict[str, str | None] | None:
    """From the text of --levels to levels, each with the column of its names if it is given."""
    if text is None:
        return None
    parts = [part.partition("=") for part in text.split(",")]
    return {level.strip(): name.strip() or None for level, _, name in parts}


def whole_numbers(option: str, text: str) -> list[int]:
    """From a comma-separated list to whole numbers.

    Raises:
        InftdaError: one is not.
    """
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise InftdaError(
            f"{option} must be whole numbers with commas between them, got {text[:40]!r}"
        ) from None


def numbers(option: str, text: str) -> list[float]:
    """From a comma-separated list to numbers.

    Raises:
        InftdaError: one of them is not a number.
    """
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise InftdaError(
            f"{option} must be numbers with commas between them, got {text[:40]!r}"
        ) from None


def split_of(text: str) -> Any:
    """From the text of --split to what the plan takes.

    Raises:
        InftdaError: a weight is not a number.
    """
    return numbers("--split", text) if "," in text else text


def load_config(context: typer.Context, path: Path | None) -> Path | None:
    """Take defaults from a TOML file whose keys are the option names; flags win.

    One file serves all commands: each takes the keys that it knows, and those in the section of
    its name before others.

    Raises:
        InftdaError: the file cannot be read, or a key is not an option.
    """
    if path is None:
        return None
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        reason = problem.strerror
        raise InftdaError(f"cannot read the configuration {str(path)!r}: {reason}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InftdaError(f"the configuration {str(path)!r} is not TOML: {problem}") from None
    others = _sections(context)
    own = str(context.info_name)
    # `estimate` is a command, and an option of `report`: a section only where it holds keys.
    sections = {key for key, value in data.items() if isinstance(value, dict)} & {own, *others}
    section = data[own] if own in sections else {}
    shared = {key: value for key, value in data.items() if key not in sections}
    given = {str(option.name): option for option in context.command.params}
    known = given.keys() - {"config"}
    defaults = {}
    for key, value in {**shared, **section}.items():
        name = "axes" if key == "axis" else key.replace("-", "_")
        if name in known:
            defaults[name] = _as_argument(given[name], value)
        elif key in section or not any(name in options for options in others.values()):
            near = get_close_matches(name, sorted(known), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            if key == own:
                hint = f": it is a command; write [{own}] on a line before its options"
            raise InftdaError(f"the configuration {str(path)!r} has an unknown key {key!r}{hint}")
    context.default_map = {**(context.default_map or {}), **defaults}
    return path


def _sections(context: typer.Context) -> dict[str, set[str]]:
    """The other commands that take a configuration, and their options."""
    group = context.parent.command if context.parent is not None else None
    commands = dict(getattr(group, "commands", {}))
    commands.pop(str(context.info_name), None)
    options = {
        name: {str(one.name) for one in command.params} for name, command in commands.items()
    }
    return {name: given - {"config"} for name, given in options.items() if "config" in given}


def _as_argument(option: Any, value: Any) -> Any:
    """TOML has tables and lists where the command line has text, and one value for a list.

    Options whose text is a list say so by a comma in what stands for it (COLUMN,COLUMN,...).
    """
    if isinstance(value, dict):
        given = [f"{key}={item}" for key, item in value.items()]
        return ",".join(given) if option.name == "unplaceable" else given
    is_many = getattr(option, "multiple", False)
    if isinstance(value, list) and "," in (getattr(option, "metavar", None) or ""):
        # Weights of one split are one value, also where several splits may be given.
        is_one = not (is_many and any(isinstance(item, str) for item in value))
        value = ",".join(str(item) for item in value) if is_one else value
    return [value] if is_many and isinstance(value, str) else value


def exact_number(option: str, text: str | None) -> Fraction | None:
    """A number as it is written: "0.1" is one tenth, not the nearest float.

    Raises:
        InftdaError: it is not a number.
    """
    if text is None:
        return None
    from inftda.privacy.numbers import exact_number as parsed  # noqa: PLC0415 - help must be instant

    try:
        return parsed(text)
    except (ValueError, ZeroDivisionError):
        raise InftdaError(
            f"{option} must be a number such as 0.1 or 1/10, got {text[:40]!r}"
        ) from None


Config = Annotated[
    Path | None,
    typer.Option(
        help="Options from a TOML file, [COMMAND] for those of one command only; flags win.",
        callback=load_config,
        is_eager=True,
    ),
]
