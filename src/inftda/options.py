"""Options, each defined once: meaning, and conversion from the text of a command line.

A parameter of a public function, or a field of `Unit` or `Columns`, carries its option in its
annotation. Commands, the keys of a configuration, help, docstrings and the reference follow from
these annotations (`inftda.arguments`). Parameters without an `Option` exist in Python only.
"""

import inspect
import math
import warnings
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import wraps
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any, Final, TypeVar, cast

from inftda.util.exact_numbers import exact_number

#: Panels of a command's help, in this order; options that most people need are in none.
TABLE, AREAS, GUARANTEE, RUN = "The table", "Areas and levels", "The guarantee", "Running"

#: Former names of parameters and options, and their names now. A former name works for at least one
#: minor version, with a warning that names the new one: on the command line, in a configuration and
#: in Python. An entry is removed with the name.
RENAMED: Final = {"across": "cross_tables"}

_Callable = TypeVar("_Callable", bound=Callable[..., Any])


@dataclass(frozen=True)
class Doc:
    """Meaning of a parameter."""

    help: str


@dataclass(frozen=True)
class Option(Doc):
    """A parameter that has an option of the same name on the command line.

    Attributes:
        metavar: placeholder for its value in help.
        parse: from its text to its value; raises ValueError, which says what it must be. Without
            it, the text becomes a number, a flag or a text, as the annotation says.
        panel: of help; None for the first.
        is_argument: whether it is given by its place and not by its name.
        is_repeated: whether it may be given several times; `parse` then takes a list.
        spelling: of flags that have two names.
    """

    metavar: str | None = None
    parse: Callable[[Any], Any] | None = None
    panel: str | None = None
    is_argument: bool = False
    is_repeated: bool = False
    spelling: str | None = None


@dataclass(frozen=True)
class Group:
    """A parameter that is made of several options.

    Attributes:
        make: what makes it; its parameters carry the options. Where the parameter has an option
            of its own, its text is the first of them.
        is_several: whether each option takes several values, by comma, and all combinations are
            made.
    """

    make: Callable[..., Any]
    is_several: bool = False


def documented(function: _Callable) -> _Callable:
    """Fill in the docstring of a public function from its annotations, and tidy its signature."""
    signature = inspect.signature(function)
    lines, plain = ["Args:"], []
    for parameter in signature.parameters.values():
        found = [one for one in metadata(parameter) if isinstance(one, Doc)]
        text = f"{parameter.name}: {found[0].help}" if found else parameter.name
        lines += [f"    {line}" for line in wrap(text, 90, subsequent_indent="    ")]
        hint = parameter.annotation
        plain.append(parameter.replace(annotation=getattr(hint, "__origin__", hint)))
    body = inspect.cleandoc(function.__doc__ or "")
    opening, blank, rest = body.partition("\n\n")
    function.__doc__ = "\n".join([opening, "", *lines, blank + rest])
    function.__options__ = signature  # type: ignore[attr-defined] # for `signature_of`
    function.__signature__ = signature.replace(parameters=plain)  # type: ignore[attr-defined] # help
    if signature.parameters.keys().isdisjoint(RENAMED.values()):
        return function

    @wraps(function)
    def checked(*arguments: Any, **named: Any) -> Any:
        known = signature.parameters
        return function(
            *arguments, **{current_name(name, known): value for name, value in named.items()}
        )

    return cast("_Callable", checked)


def current_name(
    name: str, known: Container[str], warn: Callable[[str], object] | None = None
) -> str:
    """The name that a parameter has now; a former one is told to `warn`, or as a Python warning.

    Args:
        name: a name that was given.
        known: the names of now.
        warn: what prints a warning.
    """
    new = RENAMED.get(name, name)
    if name in known or new not in known:
        return name
    words = f"`{name}=` was renamed to `{new}=`; a later version will refuse the former name"
    if warn is None:
        warnings.warn(words, FutureWarning, stacklevel=3)
    else:
        warn(f"warning: {words}")
    return new


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Signature of a function with evaluated annotations."""
    return getattr(function, "__options__", None) or inspect.signature(function)


def metadata(parameter: inspect.Parameter) -> tuple[Any, ...]:
    """Metadata in the annotation of a parameter."""
    return getattr(parameter.annotation, "__metadata__", ())


def pairs(given: Sequence[str]) -> dict[str, str]:
    """From texts NAME=VALUE to a mapping."""
    found = lists(given)
    for name, values in found.items():
        if len(values) > 1:
            raise ValueError(f"names {name!r} twice; name it once")
    return {name: values[0] for name, values in found.items()}


def errors(given: Sequence[str]) -> dict[str, int]:
    """From texts LEVEL=ERROR to whole numbers; an error may be a percentage of a number.

    >>> errors(["province > province=50", "region > region=2.5% of 1000"])
    {'province > province': 50, 'region > region': 25}
    """
    found = {}
    for name, text in pairs(given).items():
        number, is_part, whole = text.partition("% of ")
        try:
            part = exact_number(number) * int(whole) / 100 if is_part else int(number)
        except (ValueError, ZeroDivisionError):
            raise ValueError(
                "must be LEVEL=ERROR, such as 'province > province=50', or a percentage of a "
                "number that you state, such as 'province > province=10% of 500'"
            ) from None
        found[name] = math.floor(part)
    return found


def lists(given: Sequence[str]) -> dict[str, list[str]]:
    """From texts NAME=VALUE to all the values of each name."""
    found: dict[str, list[str]] = {}
    for pair in given:
        name, _, value = pair.partition("=")
        if not (name and value):
            raise ValueError("must be NAME=VALUE")
        found.setdefault(name, []).append(value)
    return found


def names(text: str) -> list[str]:
    """From a list with commas to names."""
    return [name.strip() for name in text.split(",")]


def numbers(text: str) -> list[float]:
    """From a list with commas to numbers."""
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise ValueError("must be numbers with commas between them") from None


def whole_numbers(text: str) -> list[int]:
    """From a list with commas to whole numbers."""
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise ValueError("must be whole numbers with commas between them") from None


def exact(text: str) -> Fraction:
    """A number as it is written: 0.1 is one tenth, not the nearest float."""
    try:
        return exact_number(text)
    except (ValueError, ZeroDivisionError):
        raise ValueError("must be a number such as 0.1 or 1/10") from None


def split_of(text: str) -> Any:
    """A rule by its name, or weights."""
    return numbers(text) if "," in text else text


def splits(given: Sequence[str]) -> list[Any]:
    """Several of them."""
    return [split_of(text) for text in given]


def _levels(text: str) -> dict[str, str | None]:
    parts = [part.partition("=") for part in text.split(",")]
    return {level.strip(): name.strip() or None for level, _, name in parts}


# --- options of several commands

AreasFile = Annotated[
    Any,
    Option(
        "Public areas of both ends: a table with one row for each finest area and columns from "
        "coarse to fine, or polygons (GeoJSON, GeoPackage, shapefile); here or in a store.",
        metavar="FILE",
    ),
]
AxisFiles = Annotated[
    Mapping[str, Any] | None,
    Option(
        "A column and its hierarchy: an additional dimension, or each dimension of a table that "
        "is not origin/destination; origin and destination where they have different areas.",
        metavar="NAME=FILE",
        parse=pairs,
        panel=AREAS,
        is_repeated=True,
    ),
]
Levels = Annotated[
    Sequence[str] | Mapping[str, str | None] | None,
    Option(
        "Columns of the areas that are the levels, from coarse to fine; CODE=NAME also says where "
        "their names are. By default all but name, LEVEL_name, lon, lat and wkt.",
        metavar="COLUMN,COLUMN,...",
        parse=_levels,
        panel=AREAS,
    ),
]
Order = Annotated[
    Sequence[str] | None,
    Option(
        "Order of refinement: every mention refines that axis by one level. Axes that are "
        "mentioned once each are refined in turn. By default destination and origin in turn, and "
        "every other axis after them.",
        metavar="AXIS,AXIS,...",
        parse=names,
        panel=AREAS,
    ),
]
Epsilon = Annotated[
    float | None, Option("Epsilon of the guarantee, the privacy budget; goes with delta.")
]
Delta = Annotated[
    float | None,
    Option(
        "Delta of the guarantee: the probability that it does not hold, far below 1 / number of "
        "people. 0 for pure differential privacy."
    ),
]
AllowLargeDelta = Annotated[
    bool,
    Option(
        "Allow a delta above 1 / number of people, which may leave a person without protection.",
        panel=GUARANTEE,
    ),
]
Rho = Annotated[
    float | Fraction | None,
    Option(
        "Privacy budget in zero-concentrated differential privacy, in place of epsilon.",
        metavar="NUMBER",
        parse=exact,
        panel=GUARANTEE,
    ),
]
Rhos = Annotated[
    float | Sequence[float] | None,
    Option(
        "Privacy budgets in zero-concentrated differential privacy, in place of epsilon.",
        metavar="NUMBER,NUMBER,...",
        parse=numbers,
        panel=GUARANTEE,
    ),
]
Accountant = Annotated[
    str,
    Option("How the guarantee is accounted for.", metavar="auto|exact|zcdp|pure", panel=GUARANTEE),
]
Method = Annotated[
    str,
    Option(
        "Split of the budget: inftda by logarithms, with 0.08 for cross tables; paper evenly, with "
        "Gaussian noise and no cross tables, as the published algorithm.",
        metavar="inftda|paper",
        panel=GUARANTEE,
    ),
]
Split = Annotated[
    Any,
    Option(
        "Split of the budget over the levels: by the logarithm of their cells (with epsilon, "
        "Laplace noise at the finest level where that is less), with more for the finest level "
        "(pairs), evenly, or by weights, one for each measured level. By default that of the "
        "method; `inftda plan` shows what each costs.",
        metavar="log|pairs|uniform|W,W,...",
        parse=split_of,
        panel=GUARANTEE,
    ),
]
CrossTables = Annotated[
    float | Fraction | None,
    Option(
        "Part of the budget for cross tables, which measure marginal totals: all trips from, and "
        "to, each area. 0 for none; by default 0.08, and none for method paper.",
        metavar="PART",
        parse=exact,
        panel=GUARANTEE,
    ),
]
Threads = Annotated[int | None, Option("Threads; by default all cores.", panel=RUN)]
Centroids = Annotated[
    Any,
    Option(
        "Locations of areas: a column named after a level, lon and lat. By default those that the "
        "release brings.",
        metavar="FILE",
    ),
]
AtLeast = Annotated[
    str | None,
    Option("Only numbers of this grade or better; adds intervals.", metavar="A|B|C|D"),
]
Outlines = Annotated[
    str | Path | None, Option("Outlines of areas, for a map, in degrees.", metavar="FILE")
]
Top = Annotated[
    int | None,
    Option("Only this many flows, the largest first; with intervals none that may be zero."),
]
Zones = Annotated[
    Any,
    Option(
        "Your own zones: a table of two columns, finest area and zone. Name the first column "
        "after the finest level; the second can have any name. Areas are then shown by zone unless "
        "you give a level; areas that the table lacks are left out.",
        metavar="FILE",
    ),
]
Names = Annotated[Any, Option("Names of areas: columns level, code and name.", metavar="FILE")]
KeepFormulas = Annotated[bool, Option("Keep formulas in CSV cells, which a spreadsheet would run.")]
Released = Annotated[Any, Option("A release, or its folder.", metavar="RELEASE", is_argument=True)]
Notified = Annotated[
    Callable[[str], object] | None,
    Doc("Called with how rows of the table are interpreted, and with warnings for the custodian."),
]
Watched = Annotated[
    Callable[[str, int, int], None] | None,
    Doc("Called with what is being done, how much of it is done, and how much there is."),
]
#: Options of the command line alone.
Quiet = Annotated[bool, Option("Print errors only.")]
Json = Annotated[bool, Option("Print one JSON object.")]
Force = Annotated[bool, Option("Replace an existing file.")]
OutFile = Annotated[
    Path | None, Option("File to write; by default the answer is printed.", "FILE", Path)
]
