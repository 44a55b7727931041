"""The forms: one field for each option of the commands, made of its annotation.

A new option of a command appears by itself, in the step of its panel.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from inftda.app.document import COMMANDS, LEFT_OUT, PLACES, READS_RELEASE, SHARED, options_of
from inftda.arguments import Parameter
from inftda.options import AREAS, GUARANTEE, TABLE

#: Labels that say more than the name of the option.
_LABELS: Final = {
    "flows": "Confidential table",
    "areas": "Public areas",
    "levels": "Levels of the areas",
    "origin": "Column where trips start",
    "destination": "Column where trips end",
    "count": "Column of counts",
    "person": "Column that identifies people",
    "trips": "Most trips of one person",
    "dataset": "Data set of the ledger",
    "total": "Number of trips, if it is public",
    "stand_in": "Public table that stands in",
    "html": "Page to write",
    "release out": "Folder of the release",
    "report out": "Page to write",
    "export out": "Folder to write",
    "dossier out": "Folder to write",
    "key": "Public key of the publisher",
    "sign": "Private key to sign with",
    "to": "Kind of files",
    "axis": "Additional dimensions",
    "force": "Replace what is there",
    "geojson": "Outlines of areas",
    "names": "Names of areas",
    "centroids": "Locations of areas",
    "sql": "SQL query",
}
#: Options that come first in a step; all others of its panels are behind a click.
FIRST: Final = {
    "table": ("flows", "areas", "levels", "origin", "destination", "count", "axis"),
    "unit": ("person", "trips"),
    "budget": ("epsilon", "delta", "total"),
    "preview": ("stand_in", "epsilon", "runs", "html"),
    "release": ("out", "ledger", "dataset", "counts", "edition"),
}
#: Options that the cards of the privacy unit set.
UNIT: Final = ("neighbours", "exactly")


@dataclass(frozen=True)
class Field:
    """One control.

    The section is that of the document, empty at its top; the key is in it. Widgets are text,
    number, check, choice, column, file and list. If it is a flag, its first choice is true.
    """

    section: str
    key: str
    label: str
    meaning: str
    flag: str
    widget: str
    choices: tuple[str, ...]
    default: str
    is_flag: bool
    metavar: str

    @property
    def name(self) -> str:
        """Address of the control in a page."""
        return f"{self.section or 'shared'}-{self.key}"

    @classmethod
    def of(cls, command: str, key: str, one: Parameter) -> "Field":
        """The control of an option."""
        is_shared = key in SHARED and command in {"release", "plan"}
        words = one.meaning
        if one.name == "out":
            words = words.replace(", on this machine or in a store (s3://, gs://, abfs://)", "")
        default = "" if one.default in {None, ""} or one.is_flag else one.default
        if isinstance(default, tuple):
            default = ",".join(map(str, default))
        return cls(
            section="" if is_shared else command,
            key=key,
            label=_LABELS.get(f"{command} {key}") or _LABELS.get(key) or _words(key),
            meaning=words,
            flag=one.metavar if one.option.is_argument else one.flag,
            widget=_widget(one),
            choices=_choices(one),
            default=str(default) if isinstance(default, str | int | float) else "",
            is_flag=one.is_flag,
            metavar=one.metavar,
        )


def _words(key: str) -> str:
    return key.replace("_", " ").capitalize()


def _widget(one: Parameter) -> str:
    """Kind of the control, from the type or the placeholder of the annotation."""
    if one.is_flag:
        return "choice" if one.option.spelling else "check"
    if one.option.is_repeated and one.metavar != "error|outside|drop|AXIS=outside":
        return "list"
    if one.metavar in PLACES:
        return "file"
    if one.metavar.startswith("COLUMN") and "," not in one.metavar.replace("LON,LAT", ""):
        return "column"
    if _choices(one):
        return "choice"
    return "number" if one.metavar == "NUMBER" else "text"


def _choices(one: Parameter) -> tuple[str, ...]:
    if one.is_flag and one.option.spelling:
        return tuple(flag.removeprefix("--") for flag in one.option.spelling.split("/"))
    parts = one.metavar.split("|")
    are_words = len(parts) > 1 and all(part == part.lower() for part in parts)
    return tuple(parts) if are_words else ()


def fields(step: str) -> tuple[list[Field], list[Field]]:
    """The controls of a step: those that come first, and the others."""
    found = [*_of_step(step)]
    first = FIRST.get(step, ())
    main = [one for key in first for one in found if one.key == key]
    return main, [one for one in found if one.key not in first]


def _of_step(step: str) -> Iterator[Field]:
    """All controls of a step, in the order of the options."""
    if step in {"verify", "report", "export", "dossier", "preview"}:
        shared = {*SHARED, READS_RELEASE.get(step, ""), "ledger", "dataset"}
        own = {"epsilon", "split"} if step == "preview" else set()
        keys: Iterable[str] = (key for key in options_of(step) if key not in shared - own)
        table = {key for key in _panel("release", TABLE) if key not in SHARED}
        for key in keys:
            if key not in LEFT_OUT | table:
                yield Field.of(step, key, options_of(step)[key])
        return
    unit = ["person", "trips", "distinct", "once_per"]
    places = {
        "table": [*FIRST["table"], *_panel("release", TABLE), *_panel("release", AREAS)],
        "unit": unit,
        "budget": [*FIRST["budget"], "beta", *_panel("release", GUARANTEE)],
    }
    for step_, keys in places.items():
        places[step_] = [key for key in keys if step_ == "unit" or key not in {*unit, *UNIT}]
    taken = {key for keys in places.values() for key in keys} | {*UNIT}
    places["release"] = [key for key in options_of("release") if key not in taken]
    for key in dict.fromkeys(places[step]):
        if key not in LEFT_OUT:
            command = "release" if key in options_of("release") else "plan"
            yield Field.of(command, key, options_of(command)[key])


def _panel(command: str, panel: str) -> list[str]:
    return [key for key, one in options_of(command).items() if one.option.panel == panel]


def all_fields() -> dict[str, tuple[list[Field], list[Field]]]:
    """The controls of every step."""
    steps = (*FIRST, *(command for command in COMMANDS if command in READS_RELEASE))
    return {step: fields(step) for step in steps}
