"""Consequences of the choices, without reading rows: columns, areas, unit, plan, ledger, sheet.

Files are read once and read again only if they have changed, so that a plan takes no longer than
its own computation.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple

from inftda.app.document import COMMANDS, Document, check_places, drawer, given, options_of
from inftda.areas.reader import read_areas
from inftda.arguments import parameters_of, spelled, values
from inftda.errors import InftdaError, IngestError
from inftda.planning.plan import Outlook, plan
from inftda.planning.target_accuracy import typical_errors
from inftda.privacy.budget import RELEASE, Cost, Entry, Spending
from inftda.privacy.ledger import Ledger
from inftda.privacy.unit import UNIT, Unit
from inftda.publication.reliability import (
    GRADES,
    NOT_PRIVATE,
    axis_and_level,
    planned_totals,
    totals_name,
)
from inftda.publication.summary import guarantee_sentence
from inftda.reading import Columns, SqlQuery, table_from
from inftda.reading.columns import COLUMNS, COUNT, LIKE_COUNTS, find_columns
from inftda.reading.sources import Source, files_at, local_files, open_source
from inftda.reading.sql_source import open_query
from inftda.reading.workspace import Workspace
from inftda.tree import DESTINATION, ORIGIN, Tree
from inftda.tree.hierarchy import Hierarchy
from inftda.util.exact_numbers import rounded_up
from inftda.util.screen import printable
from inftda.util.stores import name_of

_TABLE_KEYS: Final = frozenset({"flows", *(one.name for one in parameters_of(table_from))})
_COLUMN_KEYS: Final = frozenset(one.name for one in parameters_of(Columns))
_UNIT_KEYS: Final = frozenset(one.name for one in parameters_of(Unit))
_TREE_KEYS: Final = _COLUMN_KEYS | _UNIT_KEYS | {"areas", "axis", "levels", "order"}
#: Beginnings of names of columns, by what they probably are.
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    ORIGIN: ("origin", "orig", "from", "start", "home", "resid", "o_", "h_"),
    DESTINATION: ("destination", "dest", "to", "end", "work", "d_", "w_"),
    COUNT: tuple(sorted(LIKE_COUNTS)),
    "person": ("person", "people_id", "user", "device", "card", "traveller", "who", "pid"),
}
#: Types of columns in words, and their names in DuckDB.
_TYPES: Final = {
    "whole number": r"U?(BIG|SMALL|TINY|HUGE)?INT(EGER)?",
    "number": r"DOUBLE|FLOAT|DECIMAL.*",
    "text": r"VARCHAR|ENUM.*",
    "time stamp": r"TIMESTAMP.*|DATE",
}


class _MissingError(InftdaError):
    """A choice is missing."""


class _Schema(NamedTuple):
    """A table without its rows, and the facts that are shown of it."""

    source: Source
    shown: dict[str, Any]


class Desk:
    """Evaluates choices, and caches the content of public files."""

    def __init__(self, root: Path) -> None:
        self._root, self._lock = root, Lock()
        self._known: dict[Any, Any] = {}

    def look(self, document: Document) -> dict[str, Any]:
        """Evaluate the choices: for each part its value, or the message about an error or a gap.

        Raises:
            InftdaError: a file is outside of the start folder.
        """
        with self._lock:
            check_places(document, self._root)
            found = {
                name: _part(make, document)
                for name, make in {
                    "table": lambda of: self._schema(of).shown,
                    "areas": self._areas,
                    "columns": self._columns,
                    "unit": self._unit,
                    "plan": lambda of: plan_facts(self._outlook(of)),
                    "ledger": self._ledger,
                    "drawer": drawer,
                }.items()
            }
            wrong = [found[name] for name in _NEEDED if "value" not in found[name]]
            wrong += [found["ledger"]] if "error" in found["ledger"] else []
            found["sheet"] = wrong[0] if wrong else _part(self._sheet, document)
            return found

    def solve(self, document: Document, level: str, most: str) -> dict[str, Any]:
        """The smallest epsilon with which a level, or totals, are off by no more than wanted.

        Raises:
            InftdaError: there is no such level, or no such epsilon.
        """
        with self._lock:
            check_places(document, self._root)
            without = {
                key: value for key, value in document.items() if key not in {"epsilon", "rho"}
            }
            without["plan"] = {**document.get("plan", {}), "want": [f"{level}={most}"]}
            made = self._outlook(without)
        return {"epsilon": rounded_up(made.plan.epsilon or 0), "words": made.wanted()}

    def name_to_type(self, document: Document) -> str:
        """The name that a custodian types before a release: of the data set, or of the table."""
        said = given(document, "release", _TABLE_KEYS | {"dataset"})
        return str(said.get("dataset") or name_of(said.get("flows", "query")))

    # --- parts

    def _schema(self, document: Document) -> _Schema:
        said = given(document, "release", _TABLE_KEYS)
        if not said.get("flows") and not said.get("sql"):
            raise _MissingError("Choose the confidential table.")
        table = values(COMMANDS["release"], said)["flows"]
        path = said.get("flows")
        files = [] if path is None else [(str(file), *_stamp(file)) for file in files_at(path)]
        key = ("table", repr(said), repr(files))
        read: _Schema = self._once(key, lambda: _read_schema(table))
        return read

    def _tree(self, document: Document) -> Tree:
        said = given(document, "plan", _TREE_KEYS)
        if not {"areas", "axis"} & said.keys():
            raise _MissingError("Choose the public areas.")
        found = values(plan, said) | self._hierarchies(document)
        arguments = {key: found.get(key) for key in ("axis", "levels", "order")}
        columns, unit = found.get("columns", COLUMNS), found.get("unit", UNIT)
        tree: Tree = columns.tree(found.get("areas"), **arguments, unit=unit)
        return tree

    def _hierarchies(self, document: Document) -> dict[str, Any]:
        """The areas that were chosen, read already."""
        said = values(plan, given(document, "plan", {"areas", "axis", "levels"}))
        levels = said.get("levels")
        found: dict[str, Any] = {}
        if "areas" in said:
            found["areas"] = self._hierarchy(said["areas"], levels)
        if "axis" in said:
            found["axis"] = {
                name: self._hierarchy(file, levels if name in {ORIGIN, DESTINATION} else None)
                for name, file in said["axis"].items()
            }
        return found

    def _hierarchy(self, file: str, levels: Any) -> Hierarchy:
        key = ("areas", file, repr(levels), _stamp(Path(file)))
        read: Hierarchy = self._once(key, lambda: read_areas(file, levels=levels))
        return read

    def _once(self, key: Any, read: Callable[[], Any]) -> Any:
        """Cached content of the same files, otherwise read now; only the last few are kept."""
        if key not in self._known:
            while len(self._known) > 20:
                self._known.pop(next(iter(self._known)))
            self._known[key] = read()
        return self._known[key]

    def _areas(self, document: Document) -> dict[str, Any]:
        sizes = (
            ", ".join(
                f"{axis.hierarchy.n_areas(depth):,} {axis.hierarchy.level_name(depth)}"
                for depth in range(1, axis.hierarchy.depth + 1)
            )
            for axis in self._tree(document).axes
        )
        return {"words": "; ".join(dict.fromkeys(sizes))}

    def _columns(self, document: Document) -> dict[str, Any]:
        """Compare the columns of the table with those that were chosen, as a release does."""
        source, tree = self._schema(document).source, self._tree(document)
        said = given(document, "release", _COLUMN_KEYS | _UNIT_KEYS)
        found = values(COMMANDS["release"], said)
        columns: Columns = found.get("columns", COLUMNS)
        columns.check(tree.axes, found.get("unit", UNIT))
        _, count = find_columns(source, columns, tree.axes)
        row = "every row is one trip" if count is None else f"{count} has counts"
        read = [" and ".join(columns.of_axis(axis.name)) for axis in tree.axes]
        ends = [
            column if column == axis.name else f"{axis.name} in {column}"
            for axis, column in zip(tree.axes, read, strict=True)
        ]
        words = f"areas are in the columns {', '.join(ends)}; {row}"
        if columns.person is not None:
            words += f"; {columns.person} identifies people"
        return {"words": words}

    def _unit(self, document: Document) -> dict[str, Any]:
        if not (document.get("neighbours") and document.get("trips")):
            raise _MissingError("Choose what one person has in the table.")
        unit: Unit = values(plan, given(document, "plan", _UNIT_KEYS))["unit"]
        return {"words": unit.describe()}

    def _outlook(self, document: Document) -> Outlook:
        self._unit(document)
        said = given(document, "plan")
        if not {"areas", "axis"} & said.keys():
            raise _MissingError("Choose the public areas.")
        if not {"delta", "rho"} & said.keys():
            raise _MissingError("Give delta, far below 1 / number of people, such as 1e-8.")
        found = values(plan, said)
        files = [found.get("areas", ""), *found.get("axis", {}).values()]
        key = ("plan", repr(said), *(_stamp(Path(file)) for file in files))
        made: Outlook = self._once(key, lambda: plan(**found | self._hierarchies(document)))
        return made

    def _ledger(self, document: Document) -> dict[str, Any]:
        said = given(document, "release", {"ledger", "dataset", "edition"})
        if "ledger" not in said:
            raise _MissingError("No ledger is charged; inftda ledger create makes one.")
        ledger = Ledger(said["ledger"])
        names = [one.name for one in ledger.datasets()]
        if "dataset" not in said:
            raise _MissingError(f"Say which data set of the ledger: {', '.join(names)}.")
        dataset, made = ledger.dataset(said["dataset"]), self._outlook(document)
        cost, period = Cost.of(made.plan), said.get("edition", "")
        dataset.check(cost, made.plan.unit, period)
        after = Spending(dataset.budget, (*dataset.entries, _entry(cost, period)))
        return {
            "budget": dataset.budget.describe(),
            "before": dataset.spending.words(),
            "cost": cost.describe(),
            "after": after.words(),
            "share_before": _share(dataset.spending),
            "share_after": _share(after),
        }

    def _sheet(self, document: Document) -> dict[str, Any]:
        """Summary of the release to come, for a final check."""
        said = given(document, "release")
        if "out" not in said:
            raise _MissingError("Choose the folder to write to.")
        made = self._outlook(document)
        cost = _cost(made)
        is_private = "not_private_seed" not in said
        charged = f"data set {said['dataset']!r}" if "ledger" in said else "none is charged"
        shown = _TABLE_KEYS | _COLUMN_KEYS | _UNIT_KEYS
        shown |= {"areas", "axis", "epsilon", "delta", "rho", "out", "ledger", "dataset"}
        known = {one.name: one for one in options_of("release").values()}
        others = [
            f"{known[name].flag} {' '.join(value) if isinstance(value, list) else value}"
            for name, value in said.items()
            if name.strip("_") not in shown
        ]
        return {
            "rows": [
                ("Table", name_of(said["flows"]) if "flows" in said else "the SQL query"),
                ("Columns", self._columns(document)["words"]),
                ("Areas", self._areas(document)["words"]),
                ("Unit", made.plan.unit.describe()),
                ("Guarantee", guarantee_sentence(made.plan) if is_private else NOT_PRIVATE),
                ("Ledger", charged),
                ("Folder", said["out"]),
                *([("Also", "; ".join(others))] if others else []),
            ],
            "type": self.name_to_type(document),
            "button": f"Release and spend {cost}" if is_private else "Make a test release",
            "is_private": is_private,
        }


#: Parts that a release needs; the first that is wrong or missing is reported.
_NEEDED: Final = ("table", "areas", "columns", "unit", "plan", "drawer")


def plan_facts(made: Outlook) -> dict[str, Any]:
    """Facts of a plan for the page."""
    typical = typical_errors(made.tree, made.plan)
    success, *_ = made.risk.figures
    return {
        "guarantee": guarantee_sentence(made.plan),
        "success": success,
        "advantage": made.risk.advantage,
        "cost": _cost(made),
        "rho": rounded_up(made.plan.rho),
        "warnings": made.warnings(),
        "levels": [
            {
                "name": level.name,
                "cells": level.n_nodes,
                "typical": typical[level.index],
                "usable": math.ceil(typical[level.index] / GRADES["C"]),
                "max": made.errors[level.index],
            }
            for level in made.tree.levels
            if made.errors.get(level.index)
        ],
        "totals": [
            {"name": totals_name(*axis_and_level(table)), "within": noise.half_width()}
            for table, noise in planned_totals(made.tree, made.plan)
        ],
    }


def message(problem: Exception) -> str:
    """Message for the user about an error; the message of a bug may hold data and is replaced."""
    if isinstance(problem, InftdaError):
        return printable(spelled(str(problem)))
    if isinstance(problem, OSError):
        return printable(f"{problem.strerror or problem} ({problem.filename!r})")
    return f"unexpected {type(problem).__name__}; please report it"


def _part(make: Callable[[Document], Any], document: Document) -> dict[str, Any]:
    try:
        return {"value": make(document)}
    except _MissingError as problem:
        return {"missing": str(problem)}
    except Exception as problem:  # noqa: BLE001 - of this part only; the others are shown
        return {"error": message(problem)}


def _stamp(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def _read_schema(table: Any) -> _Schema:
    """Names and types of the columns; no row is kept."""
    with local_files(table) as files, Workspace(files) as workspace:
        is_query = isinstance(table, SqlQuery)
        source = open_query(table, workspace) if is_query else open_source(table, files, workspace)
        types = [_type(source, position, workspace) for position in range(len(source.names))]
    shown = {
        "label": source.label,
        "columns": [
            {"name": name, "type": kind} for name, kind in zip(source.names, types, strict=True)
        ],
        "guesses": _guesses(source.names),
    }
    return _Schema(replace(source, select=_no_rows), shown)


def _type(source: Source, position: int, workspace: Workspace) -> str:
    if not source.is_repeatable:
        return ""
    try:
        ((_, kind),) = workspace.describe(source.select([position]))
    except Exception:  # noqa: BLE001 - messages of libraries may quote a row
        return "cannot be read"
    return next((words for words, name in _TYPES.items() if re.fullmatch(name, kind)), kind.lower())


def _no_rows(_: object) -> str:
    raise IngestError("only names and types of columns are known here")


def _guesses(names: tuple[str, ...]) -> dict[str, str]:
    """Columns by what they probably are, where none has the name that is taken by default."""
    found: dict[str, str] = {}
    for role, starts in _NAMES.items():
        if role in names:
            continue
        free = [name for name in names if name not in {*found.values(), ORIGIN, DESTINATION, COUNT}]
        near = [name for start in starts for name in free if name.lower().startswith(start)]
        if near:
            found[role] = near[0]
    return found


def _cost(made: Outlook) -> str:
    if made.plan.epsilon is None:
        return f"rho {rounded_up(made.plan.rho)}"
    return f"epsilon {rounded_up(made.plan.epsilon)}"


def _entry(cost: Cost, period: str) -> Entry:
    return Entry(
        rho=cost.rho,
        epsilon=cost.epsilon,
        delta=cost.delta,
        number=0,
        charged="",
        published=None,
        mechanism=RELEASE,
        note="",
        period=period,
    )


def _share(spending: Spending) -> float:
    """Part of the budget that is spent, at most 1."""
    return min(1.0, float(spending.spent / spending.budget.rho))
