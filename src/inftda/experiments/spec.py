"""What to run: data sets x settings x mechanisms x epsilons x repetitions, from one TOML file."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inftda.errors import InftdaError
from inftda.experiments.synthetic import PAPER
from inftda.mechanisms.catalogue import mechanism_named

SETTINGS = ("ours", "published")


@dataclass(frozen=True)
class DataSet:
    """A data set by name: files, or one of the paper's synthetic ones.

    Attributes:
        name: for tables and figures.
        flows: file of flows; None for a synthetic one.
        areas: file of areas.
        synthetic: name of the synthetic data set.
        published: its name among the published figures, if it has any.
        mechanisms: to run on this one; all of the experiment's by default.
    """

    name: str
    flows: Path | None = None
    areas: Path | None = None
    synthetic: str | None = None
    published: str | None = None
    mechanisms: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Spec:
    """An experiment.

    Attributes:
        datasets: what to release.
        mechanisms: names of mechanisms.
        epsilons: strengths.
        delta: odds of failure.
        runs: repetitions.
        settings: "ours" (the default guarantee) and "published" (how the paper's figures
            were made, which is not private as stated; see `reproduction`).
        time_limit: seconds after which a mechanism is given up on a data set.
        seed: first seed; run r uses seed + r.
    """

    datasets: tuple[DataSet, ...]
    mechanisms: tuple[str, ...]
    epsilons: tuple[float, ...] = (0.1, 1.0, 10.0)
    delta: float = 1e-8
    runs: int = 10
    settings: tuple[str, ...] = ("ours",)
    time_limit: float = 60.0
    seed: int = 1

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
        datasets = tuple(_dataset(entry, path.parent) for entry in data.pop("dataset", []))
        if not datasets:
            raise InftdaError(f"{str(path)!r} has no [[dataset]]; name at least one")
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
        """Complain before hours of work.

        Raises:
            InftdaError: a mechanism or a setting is unknown, or a number is out of range.
        """
        for dataset in self.datasets:
            for name in dataset.mechanisms or self.mechanisms:
                mechanism_named(name)
        for setting in self.settings:
            if setting not in SETTINGS:
                raise InftdaError(f"settings are {' and '.join(SETTINGS)}, got {setting!r}")
        if self.runs < 1 or not self.epsilons or not self.mechanisms:
            raise InftdaError("an experiment needs mechanisms, epsilons and at least one run")


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
    files = {key: folder / entry[key] for key in ("flows", "areas") if key in entry}
    mechanisms = entry.get("mechanisms")
    return DataSet(
        str(entry["name"]),
        **files,
        synthetic=synthetic,
        published=entry.get("published"),
        mechanisms=None if mechanisms is None else tuple(mechanisms),
    )
