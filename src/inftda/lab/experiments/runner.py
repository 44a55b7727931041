"""Runs an experiment cell by cell; what is done is not done again.

A cell is one data set, setting, mechanism and epsilon; its results are one small Parquet file,
written when all its repetitions are done, so an interrupted experiment resumes where it stopped.
Noise is seeded: results can be repeated, and promise nothing. Those of confidential data sets
are marked.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from inftda.bars import Progress
from inftda.engines.local import LocalEngine
from inftda.errors import InftdaError
from inftda.evaluation.evaluate import NOTICE, make_private
from inftda.evaluation.measures import measure, measure_totals
from inftda.lab.experiments.confidential import marked, write_private
from inftda.lab.experiments.estimates import estimate_figures
from inftda.lab.experiments.reproduction import published_run
from inftda.lab.experiments.spec import DataSet, Spec
from inftda.lab.generators.synthetic import make_synthetic
from inftda.lattice import DEFAULT_SHARE
from inftda.mechanisms.base import Setting
from inftda.mechanisms.catalogue import mechanism_named
from inftda.noise.discrete_gaussian import DiscreteGaussian
from inftda.noise.entropy import SeededSource
from inftda.privacy.unit import PrivacyUnit
from inftda.reading import Columns, read_leaves
from inftda.tree import Tree, build_tree
from inftda.truth import Truth

#: Figures kept of each level.
MEASURES = (
    "max_abs_error",
    "mean_abs_error_nonzero",
    "rmse_nonzero",
    "false_discovery_rate",
    "false_negative_rate",
    "common_part",
)
#: Figures kept of totals across the tree, as "total_..." at level -1.
TOTAL_MEASURES = ("max_abs_error", "mean_abs_error", "bias_of_largest")
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
                if setting == "across" and not mechanism_named(mechanism).description.takes_across:
                    continue
                for epsilon in spec.epsilons:
                    yield Cell(dataset, setting, mechanism, epsilon)


def run_experiment(spec: Spec, folder: Path, *, progress: Progress | None = None) -> pa.Table:
    """Run what is not done yet; returns all results, tidy, and writes `results.parquet`.

    Rows of confidential data sets have a notice in a further column.

    Raises:
        InftdaError: the spec makes no sense, or the folder holds results of another one, lies
            in a release or cannot be made.
    """
    spec.check()
    for private in (folder, folder / "cells"):
        make_private(private)
    _check_folder(spec, folder)
    todo = list(cells(spec))
    truth: tuple[str, Truth] | None = None
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
    tables = [_read_cell(cell, folder) for cell in todo]
    results = pa.concat_tables(tables, promote_options="default")
    results = results.replace_schema_metadata({"notice": NOTICE} if spec.confidential else None)
    _write(results, folder / "results.parquet")
    return results


def _check_folder(spec: Spec, folder: Path) -> None:
    """Refuse a folder of another experiment: cells do not record their settings."""
    path = folder / "cells" / "experiment.json"
    ours: dict[str, Any] = {"delta": spec.delta, "runs": spec.runs, "seed": spec.seed}
    if spec.estimates:
        ours["estimates"] = True
    theirs = _read_note(path) if path.exists() else ours
    if {key: theirs.get(key) for key in ours} != ours:
        raise InftdaError(
            f"{str(folder)!r} holds results of another experiment: {str(theirs)[:200]}, and this "
            f"one is {ours}; choose another folder"
        )
    confidential = {*_still_confidential(spec, theirs), *spec.confidential}
    notice = {"confidential": sorted(confidential), "notice": NOTICE} if confidential else {}
    text = json.dumps({**ours, **notice})
    write_private(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def _still_confidential(spec: Spec, note: dict[str, Any]) -> set[str]:
    """Data sets with confidential cells in the folder that are not in this experiment."""
    before = set(note.get("confidential", ()))
    for dataset in spec.datasets:
        if dataset.name in before and dataset.synthetic is not None:
            # Its cells would be taken for those of the made-up one, and lose their notice.
            raise InftdaError(
                f"the folder holds results of a confidential data set {dataset.name!r}, and this "
                "one is made up; choose another name or another folder"
            )
    return before - {dataset.name for dataset in spec.datasets}


def _read_note(path: Path) -> dict[str, Any]:
    """How the cells of a folder were made; nothing if that cannot be read."""
    try:
        note = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return {}
    is_note = isinstance(note, dict) and isinstance(note.get("confidential", []), list)
    return note if is_note else {}


def load_counts(dataset: DataSet) -> Truth:
    """The counts of a data set, in the destination tree."""
    if dataset.synthetic is not None:
        made = make_synthetic(dataset.synthetic)
        tree = Tree.destination_first(made.areas)
        return Truth.from_leaves(tree, (made.origin, made.destination), made.count)
    tree = build_tree(dataset.areas, axes=dataset.axes)
    return Truth.of(tree, read_leaves(str(dataset.flows), Columns(), tree.axes))


def run_cell(cell: Cell, spec: Spec, truth: Truth) -> pa.Table:
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
        rows += [fixed | figure for figure in _figures(truth, released)]
        if spec.estimates and _has_estimates(cell):
            made = estimate_figures(
                truth,
                mechanism=cell.mechanism,
                epsilon=cell.epsilon,
                delta=spec.delta,
                across=DEFAULT_SHARE if cell.setting == "across" else 0,
                seed=spec.seed + run,
                centroids=cell.dataset.centroids,
            )
            rows += [fixed | figure for figure in made]
        if spent > spec.time_limit:
            break
    results = pa.Table.from_pylist(rows, schema=SCHEMA)
    return marked(results, is_confidential=cell.dataset.is_confidential)


def _has_estimates(cell: Cell) -> bool:
    """Whether anybody could estimate what such a release was made from."""
    is_ours = cell.setting != "published"
    return is_ours and mechanism_named(cell.mechanism).description.is_top_down


def _figures(truth: Truth, released: Truth) -> Iterator[dict[str, Any]]:
    """What is kept of one release: of every level, and of totals across the tree."""
    for level in measure(truth, released):
        where = {"level": level.level, "level_name": level.name}
        for name in MEASURES:
            yield {**where, "measure": name, "value": float(getattr(level, name))}
    for total in measure_totals(truth, released):
        where = {"level": -1, "level_name": f"{total.axis} {total.level}"}
        for name in TOTAL_MEASURES:
            yield {**where, "measure": f"total_{name}", "value": float(getattr(total, name))}


class _OutOfTimeError(Exception):
    """A mechanism took longer than the experiment allows."""


def run_once(cell: Cell, spec: Spec, truth: Truth, seed: int) -> tuple[Truth | None, float]:
    """One release, summed up like the truth, and the seconds it took; None if given up."""
    mechanism = mechanism_named(cell.mechanism)
    started = time.perf_counter()

    def watch(level: str, done: int, total: int) -> None:
        del level, done, total
        if time.perf_counter() - started > spec.time_limit:
            raise _OutOfTimeError

    across = {"across": DEFAULT_SHARE} if cell.setting == "across" else {}
    plan = mechanism.plan(
        truth.tree, PrivacyUnit(), epsilon=cell.epsilon, delta=spec.delta, **across
    )
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
    return Truth.from_leaves(truth.tree, areas, value), seconds


def _read_cell(cell: Cell, folder: Path) -> pa.Table:
    """Results of a cell, marked as the spec has it now, which may not be as it was then.

    Raises:
        InftdaError: the file is damaged.
    """
    try:
        found = pq.read_table(cell.file(folder), partitioning=None)
    except pa.ArrowException:
        found = pa.table({})
    if found.schema.names[: len(SCHEMA)] != SCHEMA.names:
        raise InftdaError(
            f"{str(cell.file(folder))!r} does not hold results; remove it, so that they are made "
            "again"
        )
    wanted = marked(found, is_confidential=cell.dataset.is_confidential)
    if not wanted.schema.equals(found.schema, check_metadata=True):
        _write(wanted, cell.file(folder))
    return wanted


def _write(table: pa.Table, path: Path) -> None:
    """All or nothing: a cell that exists is complete."""
    write_private(path, lambda partial: pq.write_table(table, partial))
