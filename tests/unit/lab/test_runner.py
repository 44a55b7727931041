"""Running an experiment: what is done is not done again, and what is half done is not there."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
from tiny_experiment import tiny_spec, write_country

from further_mechanisms import offer
from inftda.engines.local import LocalEngine
from inftda.errors import InftdaError
from inftda.evaluation.measures import measure, totals_across
from inftda.lab.baselines.catalogue import SMALL_BLOCK, TDA_L2_BLACKBOX
from inftda.lab.baselines.solvers import optimize_one_by_one
from inftda.lab.experiments import runner
from inftda.lab.experiments.runner import (
    MEASURES,
    SCHEMA,
    TOTAL_MEASURES,
    cells,
    load_counts,
    run_cell,
    run_experiment,
    run_once,
)
from inftda.lab.experiments.spec import DataSet, Spec
from inftda.lab.experiments.summary import write_summary
from inftda.truth import Truth


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a small country."""
    folder = tmp_path_factory.mktemp("tiny")
    write_country(folder)
    return folder


@pytest.fixture(scope="module")
def truth(place):
    return load_counts(tiny_spec(place).datasets[0])


def note_runs(monkeypatch):
    """Notes every release that is made."""
    made = []
    original = runner.run_once

    def noted(cell, spec, truth, seed):
        made.append((cell.setting, cell.mechanism, cell.epsilon, seed))
        return original(cell, spec, truth, seed)

    monkeypatch.setattr(runner, "run_once", noted)
    return made


def test_cells_are_all_combinations(place):
    spec = tiny_spec(
        place,
        mechanisms=("inftda", "tda-l2"),
        epsilons=(0.1, 1.0, 10.0),
        settings=("ours", "published"),
    )
    found = [(cell.setting, cell.mechanism, cell.epsilon) for cell in cells(spec)]
    expected = itertools.product(("ours", "published"), ("inftda", "tda-l2"), (0.1, 1.0, 10.0))
    assert sorted(found) == sorted(expected)


def test_no_two_cells_share_a_file(place):
    names = ["a", "b", "a_b", "a-b", "a.b", "ours", "a__ours"]
    datasets = tuple(DataSet(name, place / "flows.parquet", place / "areas.csv") for name in names)
    spec = Spec(
        datasets,
        ("inftda", "tda-l2"),
        epsilons=(0.1, 0.10000001, 1.0),
        settings=("ours", "published"),
    )
    files = [cell.file(place) for cell in cells(spec)]
    assert len(set(files)) == len(files) == 7 * 2 * 2 * 3
    assert {file.parent for file in files} == {place / "cells"}


def n_figures(tree):
    """Figures of one run: of every level, of totals across the tree, and the time."""
    n_totals = len(list(totals_across(tree)))
    return len(tree.levels) * len(MEASURES) + n_totals * len(TOTAL_MEASURES) + 1


def test_totals_across_are_measured_with_and_without_them(place, tmp_path):
    spec = tiny_spec(place, settings=("ours", "across"), mechanisms=("inftda", "vanilla-gauss"))
    rows = run_experiment(spec, tmp_path).to_pylist()
    assert {row["mechanism"] for row in rows if row["setting"] == "across"} == {"inftda"}
    errors = {
        (row["setting"], row["level_name"]): row["value"]
        for row in rows
        if row["measure"] == "total_mean_abs_error" and row["mechanism"] == "inftda"
    }
    assert {name for _, name in errors} == {
        "origin region", "origin province", "origin municipality",
        "destination province", "destination municipality",
    }  # fmt: skip
    write_summary(
        pq.read_table(tmp_path / "results.parquet"), spec, tmp_path / "summary.md",
        published=None, figures=[],
    )  # fmt: skip
    shown = (tmp_path / "summary.md").read_text()
    assert "## Totals across the tree" in shown
    assert "| origin municipality |" in shown


def test_estimates_stand_beside_the_releases_they_are_made_from(place, tmp_path):
    spec = tiny_spec(
        place, settings=("ours", "across"), mechanisms=("inftda", "vanilla-gauss"),
        epsilons=(1.0,), runs=1, estimates=True,
    )  # fmt: skip
    rows = run_experiment(spec, tmp_path).to_pylist()
    figures = {
        (row["setting"], row["level_name"], row["measure"]): row["value"]
        for row in rows
        if row["mechanism"] == "inftda"
    }
    for setting in spec.settings:
        finest = "municipality > municipality"
        # Equal seeds give equal releases, so the same figures are found in two ways.
        assert figures[setting, finest, "common_part"] == pytest.approx(
            figures[setting, "", "released_common_part"]
        )
        for name in ("estimated_common_part", "estimated_rmse", "released_rmse"):
            assert figures[setting, "", name] >= 0
        for axis in ("origin", "destination"):
            assert figures[setting, axis, "estimated_total_mean_abs_error"] >= 0
    assert not [
        row for row in rows if row["mechanism"] != "inftda" and "estimated_" in row["measure"]
    ]
    write_summary(
        pq.read_table(tmp_path / "results.parquet"), spec, tmp_path / "summary.md",
        published=None, figures=[],
    )  # fmt: skip
    lines = (tmp_path / "summary.md").read_text().partition("## Estimates and intervals")[2]
    shown = [line.split(" | ") for line in lines.splitlines() if line.startswith("| tiny")]
    assert [line[3] for line in shown] == ["0", "0.08"]
    assert all("\N{RIGHTWARDS ARROW}" in line[4] for line in shown)
    assert "| total of origin | total of destination | lowest coverage |" in lines
    with pytest.raises(InftdaError, match="another experiment"):
        run_experiment(replace(spec, runs=2), tmp_path)


def test_results_without_estimates_are_not_taken_for_results_with_them(place, tmp_path):
    spec = tiny_spec(place, mechanisms=("inftda",), epsilons=(1.0,), runs=1)
    run_experiment(spec, tmp_path)
    with pytest.raises(InftdaError, match="another experiment"):
        run_experiment(replace(spec, estimates=True), tmp_path)


def test_results_are_tidy(place, tmp_path, truth):
    spec = tiny_spec(place, settings=("ours", "published"))
    results = run_experiment(spec, tmp_path)
    assert results.schema.equals(SCHEMA)
    assert pq.read_table(tmp_path / "results.parquet").equals(results)
    rows = results.to_pylist()
    keys = [tuple(row[name] for name in results.column_names[:-1]) for row in rows]
    assert len(set(keys)) == len(keys)
    assert len(rows) == 2 * 2 * 2 * n_figures(truth.tree)
    assert {row["run"] for row in rows} == {0, 1}
    of_totals = {f"total_{name}" for name in TOTAL_MEASURES}
    assert {row["measure"] for row in rows} == {*MEASURES, *of_totals, "time"}
    names = [level.name for level in truth.tree.levels]
    for row in rows:
        if row["measure"] == "time":
            assert (row["level"], row["level_name"]) == (-1, "")
            assert row["value"] > 0
        elif row["measure"] in MEASURES:
            assert row["level_name"] == names[row["level"]]
    assert all(np.isfinite(row["value"]) for row in rows)


def test_figures_are_those_of_the_release_with_that_seed(place, truth):
    spec = tiny_spec(place, runs=3, seed=40)
    cell = next(iter(cells(spec)))
    table = run_cell(cell, spec, truth).to_pylist()
    for run in range(3):
        released, _ = run_once(cell, spec, truth, 40 + run)
        for level in measure(truth, released):
            found = {
                row["measure"]: row["value"]
                for row in table
                if (row["run"], row["level"]) == (run, level.level)
            }
            assert found == {name: float(getattr(level, name)) for name in MEASURES}
    errors = {
        row["value"] for row in table if row["measure"] == "max_abs_error" and row["level"] == 6
    }
    assert len(errors) > 1, "runs differ"


def test_an_experiment_can_be_repeated(place, tmp_path):
    spec = tiny_spec(place)
    tables = [run_experiment(spec, tmp_path / name) for name in ("a", "b")]
    kept = [[row for row in table.to_pylist() if row["measure"] != "time"] for table in tables]
    assert kept[0] == kept[1]


def test_what_is_done_is_not_done_again(place, tmp_path, monkeypatch):
    spec = tiny_spec(place)
    made = note_runs(monkeypatch)
    first = run_experiment(spec, tmp_path)
    assert len(made) == 4
    assert run_experiment(spec, tmp_path).equals(first)
    assert len(made) == 4
    # One more epsilon is two cells more, and nothing else.
    longer = tiny_spec(place, epsilons=(1.0, 10.0))
    results = run_experiment(longer, tmp_path)
    assert len(made) == 8
    assert {epsilon for _, _, epsilon, _ in made[4:]} == {10.0}
    assert results.num_rows == 2 * first.num_rows


def test_a_removed_cell_is_run_again(place, tmp_path, monkeypatch):
    spec = tiny_spec(place)
    run_experiment(spec, tmp_path)
    first, _ = cells(spec)
    first.file(tmp_path).unlink()
    made = note_runs(monkeypatch)
    run_experiment(spec, tmp_path)
    assert {mechanism for _, mechanism, _, _ in made} == {first.mechanism}


@pytest.mark.parametrize("problem", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("is_writing", [False, True])
def test_an_interrupted_experiment_goes_on_and_has_no_half_cell(
    place, tmp_path, monkeypatch, problem, is_writing
):
    spec = tiny_spec(place)
    first, second = cells(spec)
    with monkeypatch.context() as patch:
        original = pq.write_table if is_writing else runner.run_once
        calls = itertools.count(1)

        def interrupted(*arguments):
            # The second cell: its only file, or the second of its runs.
            if next(calls) == (2 if is_writing else 4):
                if is_writing:
                    arguments[1].write_bytes(b"PAR1")
                raise problem
            return original(*arguments)

        patch.setattr(*(pq, "write_table") if is_writing else (runner, "run_once"), interrupted)
        with pytest.raises(problem):
            run_experiment(spec, tmp_path)
    left = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {first.file(tmp_path).name, "experiment.json"}
    made = note_runs(monkeypatch)
    results = run_experiment(spec, tmp_path)
    assert {mechanism for _, mechanism, _, _ in made} == {second.mechanism}
    assert set(results.column("mechanism").to_pylist()) == set(spec.mechanisms)


@pytest.mark.parametrize(
    "changes", [{"delta": 1e-6}, {"runs": 3}, {"seed": 7}], ids=lambda changes: next(iter(changes))
)
def test_results_of_another_experiment_are_not_taken_for_those_of_this_one(
    place, tmp_path, monkeypatch, changes
):
    first = run_experiment(tiny_spec(place), tmp_path)
    made = note_runs(monkeypatch)
    with pytest.raises(InftdaError, match="another experiment"):
        run_experiment(tiny_spec(place, **changes), tmp_path)
    assert made == []
    assert run_experiment(tiny_spec(place), tmp_path).equals(first)


@pytest.mark.parametrize("name", ["tda-l2-blackbox", "tda-linf-blackbox", "inftda"])
def test_what_takes_too_long_is_given_up_once_and_for_all(place, tmp_path, monkeypatch, name):
    spec = tiny_spec(place, mechanisms=(name, "stability-histogram"), time_limit=1e-9)
    made = note_runs(monkeypatch)
    results = run_experiment(spec, tmp_path)
    assert [mechanism for _, mechanism, _, _ in made].count(name) == 1, "one try, not two"
    assert name not in results.column("mechanism").to_pylist()
    assert results.schema.equals(SCHEMA)
    del made[:]
    run_experiment(spec, tmp_path)
    assert made == [], "what was given up is not tried again"


def test_a_black_box_is_stopped_in_the_middle_of_a_level(tmp_path, monkeypatch):
    """By a clock of its own, on which solving for one parent takes a second."""
    solved = []

    def solve(vector, total):
        solved.append(len(vector))
        even = np.full(len(vector), total // len(vector))
        even[: total % len(vector)] += 1
        return even

    name = "tda-l2-blackbox"
    offer(monkeypatch, name, replace(TDA_L2_BLACKBOX, optimize=optimize_one_by_one(solve)))
    monkeypatch.setattr(runner, "LocalEngine", lambda: LocalEngine(1))
    clock = SimpleNamespace(perf_counter=lambda: float(len(solved)))
    monkeypatch.setattr(runner, "time", clock)
    write_country(tmp_path, sizes=(4, 40, 200), trips=20_000)
    seconds = {}
    for limit in (100_000, 2_500):
        del solved[:]
        spec = tiny_spec(tmp_path, mechanisms=(name,), runs=1, time_limit=limit)
        (cell,) = cells(spec)
        released, seconds[limit] = run_once(cell, spec, load_counts(cell.dataset), 1)
        assert (released is None) == (limit == 2_500)
    assert seconds[100_000] > 5_000
    assert 2_500 < seconds[2_500] <= 2_500 + SMALL_BLOCK


def test_a_black_box_within_the_limit_is_measured_like_all_others(place, truth):
    spec = tiny_spec(place, mechanisms=("tda-l2-blackbox",), runs=1, time_limit=600)
    table = run_cell(next(iter(cells(spec))), spec, truth)
    assert table.num_rows == n_figures(truth.tree)


def test_a_cell_stops_when_its_runs_have_used_up_the_limit(place, truth, monkeypatch):
    spec = tiny_spec(place, runs=10, time_limit=5)
    original = runner.run_once
    monkeypatch.setattr(runner, "run_once", lambda *given: (original(*given)[0], 2.0))
    table = run_cell(next(iter(cells(spec))), spec, truth)
    assert max(table.column("run").to_pylist()) == 2, "6 seconds are more than 5"


def test_progress_ends_with_all_cells(place, tmp_path):
    steps = []
    run_experiment(tiny_spec(place), tmp_path, progress=lambda *step: steps.append(step))
    assert [(done, total) for _, done, total in steps] == [(0, 2), (1, 2), (2, 2)]
    assert "tiny" in steps[0][0]


def test_counts_come_from_files_or_from_a_generator(place):
    counts = load_counts(tiny_spec(place).datasets[0])
    assert counts.total == 3_000
    synthetic = load_counts(DataSet("x", synthetic="random_sparse"))
    assert synthetic.n_leaves == 1_892
    assert synthetic.tree.order[0] == "destination"


def test_counts_of_mechanisms_that_keep_negative_flows_are_measured(place, truth):
    spec = tiny_spec(place, mechanisms=("vanilla-gauss",), runs=1)
    released, _ = run_once(next(iter(cells(spec))), spec, truth, 1)
    assert isinstance(released, Truth)
    assert (released.leaves[1] < 0).any()
    table = run_cell(next(iter(cells(spec))), spec, truth)
    assert table.num_rows > 0


def test_a_data_set_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(InftdaError, match="areas"):
        run_experiment(tiny_spec(tmp_path), tmp_path / "out")
