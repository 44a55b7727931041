"""Runs an experiment cell by cell; what is done is not done again.

A cell is one data set, setting, mechanism and epsilon; its results are one small Parquet file,
written when all its repetitions are done, so an interrupted experiment goes on where it was.
Noise is seeded: results can be repeated, and promise nothing.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from inftda.counts import Counts
from inftda.engines.local import LocalEngine
from inftda.errors import InftdaError
from inftda.evaluate.metrics import measure
from inftda.experiments.reproduction import published_run
from inftda.experiments.spec import DataSet, Spec
from inftda.experiments.synthetic import make_synthetic
from inftda.hierarchy import Hierarchy
from inftda.ingest import read_leaves
from inftda.mechanisms.base import Setting
from inftda.mechanisms.catalogue import mechanism_named
from inftda.noise.discrete_gaussian import DiscreteGaussian
from inftda.noise.entropy import SeededSource
from inftda.privacy.unit import PrivacyUnit
from inftda.tree import Tree

#: Figures kept of each level.
MEASURES = (
    "max_abs_error",
    "mean_abs_error_nonzero",
    "rmse_nonzero",
    "false_discovery_rate",
    "false_negative_rate",
    "common_part",
)
SCHEMA = pa.schema(
    [
        ("dataset", pa.string()),
        ("setting", pa.string()),
        ("mechanism", pa.string()),
        ("epsilon", pa.float64()),
        ("run", pa.int64()),
        ("level", pa.int64()),
        ("level_name", pa.string()),
        ("measure", pa.string()),
        ("value", pa.float64()),
    ]
)
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Cell:
    """One file of results."""

    dataset: DataSet
    setting: str
    mechanism: str
    epsilon: float

    def file(self, folder: Path) -> Path:
        """Where its results are kept."""
        # As short as it can be without two epsilons sharing a file.
        epsilon = repr(float(self.epsilon)).removesuffix(".0")
        name = f"{self.dataset.name}__{self.setting}__{self.mechanism}__{epsilon}"
        return folder / "cells" / f"{name}.parquet"


def cells(spec: Spec) -> Iterator[Cell]:
    """All cells, data set by data set."""
    for dataset in spec.datasets:
        for setting in spec.settings:
            for mechanism in dataset.mechanisms or spec.mechanisms:
                for epsilon in spec.epsilons:
                    yield Cell(dataset, setting, mechanism, epsilon)


def run_experiment(spec: Spec, folder: Path, *, progress: Progress | None = None) -> pa.Table:
    """Run what is not done yet; returns all results, tidy, and writes `results.parquet`.

    Raises:
        InftdaError: the spec makes no sense, or the folder holds results of another one.
    """
    spec.check()
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    _check_folder(spec, folder)
    todo = list(cells(spec))
    truth: tuple[str, Counts] | None = None
    for number, cell in enumerate(todo):
        if progress is not None:
            progress(f"{cell.dataset.name}, {cell.mechanism}", number, len(todo))
        if cell.file(folder).exists():
            continue
        if truth is None or truth[0] != cell.dataset.name:
            truth = cell.dataset.name, load_counts(cell.dataset)
        _write(run_cell(cell, spec, truth[1]), cell.file(folder))
    if progress is not None:
        progress("done", len(todo), len(todo))
    results = pa.concat_tables([pq.read_table(cell.file(folder)) for cell in todo])
    _write(results, folder / "results.parquet")
    return results


def _check_folder(spec: Spec, folder: Path) -> None:
    """Cells do not say how they were made: those of one folder are all made alike."""
    path = folder / "cells" / "experiment.json"
    ours = json.dumps({"delta": spec.delta, "runs": spec.runs, "seed": spec.seed})
    theirs = path.read_text(encoding="utf-8") if path.exists() else ours
    if theirs != ours:
        raise InftdaError(
            f"{str(folder)!r} holds results of another experiment: {theirs[:200]}, and this one "
            f"is {ours}; choose another folder"
        )
    path.write_text(ours, encoding="utf-8")


def load_counts(dataset: DataSet) -> Counts:
    """The counts of a data set, in the destination tree."""
    if dataset.synthetic is not None:
        made = make_synthetic(dataset.synthetic)
        tree = Tree.destination_first(made.areas)
        return Counts.from_leaves(tree, (made.origin, made.destination), made.count)
    areas = Hierarchy.read(dataset.areas)
    tree = Tree.destination_first(areas)
    leaves = read_leaves(str(dataset.flows), [("origin", areas), ("destination", areas)])
    return Counts.from_leaves(tree, leaves.areas, leaves.counts)


def run_cell(cell: Cell, spec: Spec, truth: Counts) -> pa.Table:
    """All repetitions of one cell; fewer if the time limit is reached, at least one begun."""
    rows: list[dict[str, Any]] = []
    spent = 0.0
    for run in range(spec.runs):
        released, seconds = run_once(cell, spec, truth, spec.seed + run)
        spent += seconds
        if released is None:  # given up: the cell is known to be too slow
            break
        fixed = {
            "dataset": cell.dataset.name,
            "setting": cell.setting,
            "mechanism": cell.mechanism,
            "epsilon": cell.epsilon,
            "run": run,
        }
        rows.append({**fixed, "level": -1, "level_name": "", "measure": "time", "value": seconds})
        for level in measure(truth, released):
            for name in MEASURES:
                value = float(getattr(level, name))
                place = {"level": level.level, "level_name": level.name}
                rows.append({**fixed, **place, "measure": name, "value": value})
        if spent > spec.time_limit:
            break
    return pa.Table.from_pylist(rows, schema=SCHEMA)


class _OutOfTimeError(Exception):
    """A mechanism took longer than the experiment allows."""


def run_once(cell: Cell, spec: Spec, truth: Counts, seed: int) -> tuple[Counts | None, float]:
    """One release, summed up like the truth, and the seconds it took; None if given up."""
    mechanism = mechanism_named(cell.mechanism)
    started = time.perf_counter()

    def watch(level: str, done: int, total: int) -> None:
        del level, done, total
        if time.perf_counter() - started > spec.time_limit:
            raise _OutOfTimeError

    plan = mechanism.plan(truth.tree, PrivacyUnit(), epsilon=cell.epsilon, delta=spec.delta)
    setting = Setting(
        spending=plan.spending(),
        make_sampler=DiscreteGaussian,
        source=SeededSource(seed),
        engine=LocalEngine(),
        progress=watch,
    )
    try:
        if cell.setting == "published":
            budget = {"epsilon": cell.epsilon, "delta": spec.delta}
            blocks = list(published_run(mechanism, truth, setting, **budget))
        else:
            blocks = list(mechanism.run(truth, setting))
    except _OutOfTimeError:
        return None, time.perf_counter() - started
    seconds = time.perf_counter() - started
    areas = [
        np.concatenate([block.areas[axis] for block in blocks])
        for axis in range(len(truth.tree.axes))
    ]
    value = np.concatenate([block.value for block in blocks])
    return Counts.from_leaves(truth.tree, areas, value), seconds


def _write(table: pa.Table, path: Path) -> None:
    """All or nothing: a cell that exists is complete."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        pq.write_table(table, partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
