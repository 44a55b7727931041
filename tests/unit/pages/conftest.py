"""Small releases for the tests of pages; made with a seed, so the same every time."""

import pyarrow as pa
import pytest

from inftda.noise.bits import SeededSource
from inftda.pipeline import release
from inftda.tree.hierarchy import Hierarchy
from packed_page import unpack


@pytest.fixture(scope="session")
def three_axes():
    """A table that is not about trips: disease by sex by age."""
    disease = Hierarchy.read({"chapter": ["A", "A", "B"], "disease": ["A1", "A2", "B1"]})
    axes = {
        "disease": disease,
        "sex": Hierarchy.read({"sex": ["f", "m"]}),
        "age": Hierarchy.read({"age": ["young", "old"]}),
    }
    cells = [(d, s, a) for d in ("A1", "A2", "B1") for s in "fm" for a in ("young", "old")]
    columns = zip(*cells, strict=True)
    table = pa.table(
        {**dict(zip(axes, columns, strict=True)), "count": [100 * i for i in range(1, 13)]}
    )
    return release(table, axis=axes, epsilon=1, delta=1e-6, source=SeededSource(1))


@pytest.fixture(scope="session")
def one_axis():
    areas = Hierarchy.read({"group": ["x", "x", "y"], "kind": ["x1", "x2", "y1"]})
    table = pa.table({"kind": ["x1", "x2", "y1"], "count": [1000, 2000, 30]})
    return release(table, axis={"kind": areas}, epsilon=1, delta=1e-6, source=SeededSource(1))


@pytest.fixture
def unpacked():
    """Header and arrays of a page's packed data."""
    return unpack
