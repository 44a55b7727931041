"""Every kind of release, each made once per test session from a small table."""

import csv
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from inftda.cli.main import run

#: Finest areas, with names and places. The south has one district only, with one town only.
TOWNS = [
    # region, district, town, town_name, lon, lat
    ("N", "N1", "11", "Ash", 10.1, 50.3),
    ("N", "N1", "12", "Birch", 10.3, 50.4),
    ("N", "N2", "21", "Cedar", 10.6, 50.2),
    ("N", "N2", "22", "Date", 10.8, 50.5),
    ("N", "N2", "23", "Elm", 10.9, 50.1),
    ("S", "S1", "31", "Fir", 10.2, 49.6),
    ("E", "E1", "41", "Gorse", 11.4, 50.0),
    ("E", "E1", "42", "Hazel", 11.5, 49.9),
    ("E", "E2", "51", "Ivy", 11.7, 49.7),
]
CODES = [town[2] for town in TOWNS]
#: The second group has one mode only, so that only children are met on this axis.
MODES = [("private", "car"), ("private", "bike"), ("public", "bus")]
AGES = [("0-4",), ("5-9",), ("10-14",), ("15+",)]
MONTHS = [("2024-01",), ("2024-02",), ("2024-03",)]
FILES = {
    "areas.csv": (("region", "district", "town", "town_name", "lon", "lat"), TOWNS),
    "modes.csv": (("group", "mode"), MODES),
    "ages.csv": (("age",), AGES),
    "months.csv": (("month",), MONTHS),
    "zones.csv": (
        ("town", "zone"),
        [(code, "inner" if code < "23" else "outer") for code in CODES],
    ),
}
BUDGET = "--epsilon 2 --delta 1e-6"
PAIRS = "--areas areas.csv"


def _rows(axes, *, seed, scale=60.0):
    """Counts of all cells of some axes; two in five are empty."""
    random = np.random.default_rng(seed)
    cells = list(product(*axes))
    counts = random.gamma(0.6, scale, len(cells)).astype(int) * (random.random(len(cells)) < 0.6)
    return [(*cell, count) for cell, count in zip(cells, counts.tolist(), strict=True) if count]


def _trips(columns, areas, *, n, seed):
    """Trips of people who have one to eight each, a row for each."""
    random = np.random.default_rng(seed)
    return [
        (f"p{person}", *(areas[column][random.integers(len(areas[column]))] for column in columns))
        for person in range(n)
        for _ in range(random.integers(1, 9))
    ]


def _write(path, columns, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])


ENDS = {"origin": CODES, "destination": CODES}
_AXES = {
    "mode": [mode for _, mode in MODES],
    "age": [age for (age,) in AGES],
    "month": [month for (month,) in MONTHS],
}


def _counts(*more, seed=3, ends=ENDS):
    names = (*ends, *more)
    return (*names, "count"), _rows([(ends | _AXES)[name] for name in names], seed=seed)


def _persons(*more):
    names = ("origin", "destination", *more)
    return ("who", *names), _trips(names, ENDS | _AXES, n=400, seed=9)


def _with_outside():
    names, rows = _counts()
    return names, [*rows, ("nowhere", "11", 40)]


@dataclass(frozen=True)
class Kind:
    """How a release is made.

    Attributes:
        table: column names and rows of the confidential table.
        reading: options that say what the table holds, the same for `evaluate` and `compare`.
        areas: options that name public areas.
        guarantee: privacy unit, budget, method.
        rest: other options of `release`.
        budget: of the release.
        axes: names of the axes, origin and destination among them if there are any.
        editions: names of editions; a series if there are several.
    """

    table: Callable = _counts
    areas: str = PAIRS
    guarantee: str = ""
    reading: str = ""
    rest: str = ""
    budget: str = BUDGET
    axes: tuple[str, ...] = ("origin", "destination")
    editions: tuple[str, ...] = field(default=())

    @property
    def is_series(self):
        return bool(self.editions)


KINDS = {
    "pairs": Kind(),
    "three-axes": Kind(
        table=lambda: _counts("mode"),
        areas=f"{PAIRS} --axis mode=modes.csv",
        axes=("origin", "destination", "mode"),
    ),
    "four-axes": Kind(
        table=lambda: _counts("mode", "age"),
        areas=f"{PAIRS} --axis mode=modes.csv --axis age=ages.csv",
        axes=("origin", "destination", "mode", "age"),
    ),
    "one-axis": Kind(
        table=lambda: _counts(ends={"place": CODES}),
        areas="--axis place=areas.csv",
        axes=("place",),
    ),
    "delta-0": Kind(budget="--epsilon 2 --delta 0"),
    "delta-0-three-axes": Kind(
        table=lambda: _counts("mode"),
        areas=f"{PAIRS} --axis mode=modes.csv",
        budget="--epsilon 2 --delta 0",
        axes=("origin", "destination", "mode"),
    ),
    "add-remove": Kind(guarantee="--neighbours add-remove"),
    "persons": Kind(
        table=_persons, guarantee="--neighbours add-remove --trips 5", reading="--person who"
    ),
    "once-per": Kind(
        table=lambda: _persons("month"),
        areas=f"{PAIRS} --axis month=months.csv",
        guarantee="--neighbours add-remove --trips 3 --once-per month",
        reading="--person who",
        axes=("origin", "destination", "month"),
    ),
    "outside": Kind(table=_with_outside, reading="--unplaceable outside"),
    "totals-only": Kind(rest="--measurements totals"),
    "delta-0-totals-only": Kind(budget="--epsilon 2 --delta 0", rest="--measurements totals"),
    "no-cross-tables": Kind(guarantee="--cross-tables 0"),
    "flows-only": Kind(guarantee="--cross-tables 0", rest="--measurements totals"),
    "paper": Kind(guarantee="--method paper"),
    "rho": Kind(budget="--rho 0.1"),
    "series": Kind(editions=("2024-01", "2024-02")),
    "series-three-axes": Kind(
        table=lambda: _counts("mode"),
        areas=f"{PAIRS} --axis mode=modes.csv",
        axes=("origin", "destination", "mode"),
        editions=("2023", "2024"),
    ),
    "seeded": Kind(rest="--not-private-seed SEED"),
    "signed": Kind(rest="--sign key.pem"),
    "spark": Kind(rest="--engine spark"),
    "empty": Kind(
        table=lambda: (("origin", "destination", "count"), [("11", "12", 0)]),
        guarantee="--neighbours add-remove",
    ),
}

#: Kinds on which every push runs all verbs: each has several features at once.
ALWAYS = ("delta-0-three-axes", "once-per", "series", "totals-only")


def kinds(*, often=tuple(KINDS)):
    """Names of all kinds for a test; those that are not run often are left to the night."""
    return [
        pytest.param("spark", marks=[pytest.mark.nightly, pytest.mark.xdist_group("spark")])
        if name == "spark"
        else pytest.param(name, marks=() if name in often else pytest.mark.nightly)
        for name in KINDS
    ]


class Made:
    """A release of one kind and what it was made from, in a folder of its own."""

    def __init__(self, name: str, folder: Path):
        self.name, self.folder, self.kind = name, folder, KINDS[name]
        for file, (columns, rows) in FILES.items():
            _write(folder / file, columns, rows)
        if "--sign" in self.kind.rest:
            self.done("keygen key.pem")
        _write(folder / "table.csv", *self.kind.table())
        for edition in self.kind.editions:
            self._make(f"release/{edition}", f"--edition {edition}")
        if not self.kind.editions:
            self._make("release")

    def _make(self, out: str, more: str = "") -> None:
        kind = self.kind
        rest = kind.rest.replace("SEED", "6" if out == "earlier" else "5")
        options = f"{kind.areas} {kind.guarantee} {kind.reading} {kind.budget} {rest} {more}"
        self.done(f"release {self.folder}/table.csv --out {out} --quiet {options}")

    @cached_property
    def earlier(self) -> str:
        """Another release of the table: the first edition, or one that is made now."""
        if self.kind.editions:
            return f"release/{self.kind.editions[0]}"
        self._make("earlier")
        return "earlier"

    @property
    def release(self) -> str:
        """The folder of the release, or of its last edition."""
        return "/".join(["release", *self.kind.editions[-1:]])

    def run(self, line: str) -> int:
        """Run a command in the folder; give its exit code."""
        with chdir(self.folder):
            return run(line.split())

    def done(self, line: str) -> None:
        """Run a command that must succeed."""
        assert self.run(line) == 0, line
