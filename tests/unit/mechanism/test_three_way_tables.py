"""A new kind of cross table, of three axes, goes through a release without any other change."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import inftda
from inftda.publication.measurements import planned_measurements
from inftda.publication.verify import verify
from inftda.tree import tree as module

TOWNS = {"region": list("AAABB"), "town": list("abcde")}
KINDS = {"mode": ["bus", "car"]}


@pytest.fixture
def with_three_way(monkeypatch):
    """Trees that also measure marginals of three axes, each beside the level that it is for."""
    right = module.distinguishing

    def further(level):
        yield from right(level)
        top = [axis.coarsest[depth] for axis, depth in zip(level.axes, level.depths, strict=True)]
        others = [a for a, depth in enumerate(top) if depth and a != level.axis]
        if len(others) == 2:
            for depths in product(*(range(1, top[axis] + 1) for axis in others)):
                one = list(top)
                for axis, depth in zip(others, depths, strict=True):
                    one[axis] = depth
                yield tuple(one)

    monkeypatch.setattr(module, "distinguishing", further)


@pytest.mark.usefixtures("with_three_way")
def test_a_cross_table_of_three_axes_is_measured_published_and_verified(tmp_path):
    random = np.random.default_rng(1)
    cells = [*product("abcde", "abcde", KINDS["mode"])]
    origin, destination, mode = zip(*cells, strict=True)
    table = pa.table(
        {
            "origin": origin,
            "destination": destination,
            "mode": mode,
            "count": random.integers(0, 60, len(cells)),
        }
    )
    made = inftda.release(
        table, TOWNS, axis={"mode": KINDS}, epsilon=1, delta=1e-6, out=tmp_path / "release"
    )
    planned = planned_measurements(made.tree, made.manifest.plan)
    three_way = [one for one in planned if not one.is_on_tree and len(one.marginal.others) == 2]
    assert {one.name for one in three_way} == {
        "region \N{MULTIPLICATION SIGN} region \N{MULTIPLICATION SIGN} mode",
        "region \N{MULTIPLICATION SIGN} town \N{MULTIPLICATION SIGN} mode",
        "town \N{MULTIPLICATION SIGN} region \N{MULTIPLICATION SIGN} mode",
    }
    assert any("flows follow" in words for words in verify(tmp_path / "release"))
