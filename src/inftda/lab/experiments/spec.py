"""What to run: data sets x settings x mechanisms x epsilons x repetitions, from one TOML file."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from inftda.errors import InftdaError
from inftda.lab.experiments.reproduction import check_published
from inftda.lab.generators.synthetic import PAPER
from inftda.mechanisms.catalogue import mechanism_named
from inftda.privacy.numbers import checked_delta, checked_epsilon

SETTINGS: Final = ("ours", "across", "published")
#: Names of data sets are parts of file names.
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_NUMBER: Final = (int, float)


@dataclass(frozen=True)
class DataSet:
    """A data set by name: files, or one of the paper's synthetic ones.

    Attributes:
        name: for tables and figures.
        flows: file of flows; None for a synthetic one.
        areas: file of areas.
        axes: files of the areas of further columns, by their names.
        synthetic: name of the synthetic data set.
        published: its name among the published figures, if it has any.
        mechanisms: to run on this one; all of the experiment's by default.
        public: whether anybody may see the flows of the files.
        centroids: file of where areas are, for estimates.
    """

    name: str
    flows: Path | None = None
    areas: Path | None = None
    axes: Mapping[str, Path] = field(default_factory=dict)
    synthetic: str | None = None
    published: str | None = None
    mechanisms: tuple[str, ...] | None = None
    public: bool = False
    centroids: Path | None = None

    @property
    def is_confidential(self) -> bool:
        """Whether its results tell of flows that are neither made up nor said to be public."""
        return self.synthetic is None and not self.public


@dataclass(frozen=True)
class Spec:
    """An experiment.

    Attributes:
        datasets: what to release.
        mechanisms: names of mechanisms.
        epsilons: strengths.
        delta: probability of failure.
        runs: repetitions.
        settings: "ours" (the paper's algorithm with our guarantee), "across" (the same with
            totals across the tree, for mechanisms that measure them) and "published" (how the
            paper's figures were made, which is not private as stated; see `reproduction`).
        time_limit: seconds after which a mechanism is given up on a data set.
        seed: first seed; run r uses seed + r.
        estimates: whether to make estimates as well, of top-down mechanisms with our guarantee.
    """

    datasets: tuple[DataSet, ...]
    mechanisms: tuple[str, ...] = ()
    epsilons: tuple[float, ...] = (0.1, 1.0, 10.0)
    delta: float = 1e-8
    runs: int = 10
    settings: tuple[str, ...] = ("ours",)
    time_limit: float = 60.0
    seed: int = 1
    estimates: bool = False

    @property
    def confidential(self) -> tuple[str, ...]:
        """Names of the data sets whose results are confidential."""
        return tuple(dataset.name for dataset in self.datasets if dataset.is_confidential)

    @classmethod
    def read(cls, path: Path) -> "Spec":
        """Read a spec file; paths in it are relative to it.

        Raises:
            InftdaError: the file cannot be read or says something unknown.
        """
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as problem:
            raise InftdaError(f"cannot read {str(path)!r}: {problem.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise InftdaError(f"{str(path)!r} is not TOML: {problem}") from None
        entries = data.pop("dataset", [])
        if not (_is_list(entries, dict) and entries):
            raise InftdaError(f"{str(path)!r} has no [[dataset]]; name at least one")
        datasets = tuple(_dataset(entry, path.parent) for entry in entries)
        known = set(cls.__dataclass_fields__) - {"datasets"}
        for key in data:
            if key not in known:
                raise InftdaError(f"{str(path)!r} has an unknown key {key!r}")
        options: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in data.items()
        }
        spec = cls(datasets, **options)
        spec.check()
        return spec

    def check(self) -> None:
        """Check everything before hours of work.

        Raises:
            InftdaError: a mechanism or a setting is unknown, or a number is out of range.
        """
        for name, kinds in (("mechanisms", str), ("settings", str), ("epsilons", _NUMBER)):
            _check_list(name, getattr(self, name), kinds)
        for setting in self.settings:
            if setting not in SETTINGS:
                raise InftdaError(f"settings are {', '.join(SETTINGS)}; got {setting!r}")
        for epsilon in self.epsilons:
            checked_epsilon(epsilon)
        checked_delta(self.delta)
        if not _is_kind(self.runs, int) or self.runs < 1:
            raise InftdaError(f"runs must be a whole number from 1 up, got {self.runs!r}")
        if not isinstance(self.estimates, bool):
            raise InftdaError(f"estimates must be true or false, got {self.estimates!r}")
        if not _is_kind(self.seed, int):
            raise InftdaError(f"seed must be a whole number, got {self.seed!r}")
        if not _is_kind(self.time_limit, _NUMBER) or not self.time_limit > 0:
            raise InftdaError(f"time_limit must be seconds above 0, got {self.time_limit!r}")
        _check_once("data set", [dataset.name for dataset in self.datasets])
        for dataset in self.datasets:
            self._check_dataset(dataset)

    def _check_dataset(self, dataset: DataSet) -> None:
        if not (_is_kind(dataset.name, str) and _NAME.fullmatch(dataset.name)):
            raise InftdaError(
                f"the 'name' of a data set must be letters, digits, - and _, got {dataset.name!r}"
            )
        if not isinstance(dataset.public, bool):
            raise InftdaError(
                f"the 'public' of a data set must be true or false, got {dataset.public!r}"
            )
        if dataset.mechanisms is not None:
            _check_list("mechanisms", dataset.mechanisms, str)
        for name in dataset.mechanisms or self.mechanisms:
            mechanism_named(name)
            if "published" in self.settings:
                check_published(name)


def _is_kind(value: Any, kinds: Any) -> bool:
    """Whether a value is of a kind; True is an int in Python, but not a number here."""
    return isinstance(value, kinds) and not isinstance(value, bool)


def _is_list(value: Any, kinds: Any) -> bool:
    return isinstance(value, list | tuple) and all(_is_kind(item, kinds) for item in value)


def _check_list(name: str, values: Any, kinds: Any) -> None:
    if not _is_list(values, kinds) or not values:
        what = "texts" if kinds is str else "numbers"
        raise InftdaError(f"{name} must be a list of {what}, at least one; got {values!r}")
    _check_once(name, values)


def _check_once(what: str, values: Any) -> None:
    for value in values:
        if values.count(value) > 1:
            raise InftdaError(f"the {what} {value!r} is given twice; name it once")


def _dataset(entry: Mapping[str, Any], folder: Path) -> DataSet:
    unknown = set(entry) - set(DataSet.__dataclass_fields__)
    if unknown or "name" not in entry:
        raise InftdaError(
            f"a [[dataset]] has name and either flows and areas, or synthetic; got {sorted(entry)}"
        )
    synthetic = entry.get("synthetic")
    if synthetic is not None and synthetic not in PAPER:
        raise InftdaError(f"there is no synthetic data set {synthetic!r}; there are {list(PAPER)}")
    if synthetic is None and not {"flows", "areas"} <= set(entry):
        raise InftdaError(f"the data set {entry['name']!r} needs flows and areas, or synthetic")
    for key in ("flows", "areas", "published", "centroids"):
        if not isinstance(entry.get(key, ""), str):
            raise InftdaError(f"the {key!r} of a data set must be text, got {entry[key]!r}")
    further = entry.get("axes", {})
    if not (isinstance(further, dict) and _is_list(list(further.values()), str)):
        raise InftdaError(f"the 'axes' of a data set are columns and files, got {further!r}")
    files = {key: folder / entry[key] for key in ("flows", "areas", "centroids") if key in entry}
    mechanisms = entry.get("mechanisms")
    return DataSet(
        entry["name"],
        **files,
        axes={name: folder / file for name, file in further.items()},
        synthetic=synthetic,
        published=entry.get("published"),
        mechanisms=tuple(mechanisms) if isinstance(mechanisms, list) else mechanisms,
        public=entry.get("public", False),
    )
