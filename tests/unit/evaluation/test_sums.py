"""Sums of leaves at any level of each axis."""

import numpy as np
import pytest

from inftda.evaluation import cells as cells_module
from inftda.evaluation.cells import Cells, LevelSums, match_cells, released_leaves
from inftda.lab.generators.country import make_country
from inftda.noise.entropy import SeededSource
from inftda.publish import release


@pytest.fixture(scope="module")
def made():
    country = make_country((2, 4, 12), 3000, seed=1)
    return release(country.flows(), country.areas, epsilon=1, delta=1e-6, source=SeededSource(1))


@pytest.mark.parametrize("dense", [0, 10**9])
def test_sums_are_the_same_by_counting_and_by_sorting(made, monkeypatch, dense):
    monkeypatch.setattr(cells_module, "DENSE_CELLS", dense)
    level = LevelSums(made.tree, (1, 2))
    cells = level.of(*released_leaves(made))
    rows, columns = level.areas(cells.number)
    hierarchy = made.tree.axes[0].hierarchy
    found = {
        (hierarchy.codes(1)[r].as_py(), hierarchy.codes(2)[c].as_py()): v
        for r, c, v in zip(rows.tolist(), columns.tolist(), cells.value.tolist(), strict=True)
    }
    expected = made.flows("region", "province").to_pylist()
    assert found == {(row["origin"], row["destination"]): row["flow"] for row in expected}


@pytest.mark.parametrize("dense", [0, 10**9])
def test_sums_beyond_what_floating_point_holds_are_exact(made, monkeypatch, dense):
    monkeypatch.setattr(cells_module, "DENSE_CELLS", dense)
    areas = (np.zeros(3, np.int32), np.arange(3, dtype=np.int32))
    cells = LevelSums(made.tree, (0, 0)).of(areas, np.array([2**54, 1, 2**59]))
    assert cells.value.tolist() == [2**59 + 2**54 + 1]


def test_simulated_cells_find_their_truth():
    simulated = Cells(np.array([1, 4, 7]), np.array([10, 20, 30]))
    truth = Cells(np.array([0, 4, 9]), np.array([5, 6, 7]))
    value, is_lost = match_cells(simulated, truth)
    assert value.tolist() == [0, 6, 0]
    assert is_lost.tolist() == [True, False, True]
