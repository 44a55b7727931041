"""Small releases for the tests of pages; made with a seed, so the same every time."""

import base64
import gzip
import json
import re
from itertools import accumulate

import pyarrow as pa
import pytest

from inftda.demo import make_country
from inftda.hierarchy import Hierarchy
from inftda.noise.bits import SeededSource
from inftda.publish import release


@pytest.fixture(scope="session")
def country():
    return make_country((3, 8, 30), 20_000)


@pytest.fixture(scope="session")
def od(country):
    """Origin and destination over the same three levels."""
    return release(country.flows(), country.areas, epsilon=1, delta=1e-6, source=SeededSource(1))


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
    return release(table, axes=axes, epsilon=1, delta=1e-6, source=SeededSource(1))


@pytest.fixture(scope="session")
def one_axis():
    areas = Hierarchy.read({"group": ["x", "x", "y"], "kind": ["x1", "x2", "y1"]})
    table = pa.table({"kind": ["x1", "x2", "y1"], "count": [1000, 2000, 30]})
    return release(table, axes={"kind": areas}, epsilon=1, delta=1e-6, source=SeededSource(1))


@pytest.fixture
def unpacked():
    """Header and arrays of a page's packed data, read as the browser reads them."""

    def read(text):
        if "<html" in text:
            text = re.search(r'id="packed">([^<]*)<', text).group(1)
        plain = gzip.decompress(base64.b64decode(text))
        length = int.from_bytes(plain[:4], "little")
        header = json.loads(plain[4 : 4 + length])
        arrays = {}
        for name, (start, n, width, least) in header["arrays"].items():
            planes = plain[4 + length + start :][: n * width]
            numbers = [
                least + sum(planes[plane * n + i] << 8 * plane for plane in range(width))
                for i in range(n)
            ]
            arrays[name] = list(accumulate(numbers)) if name.endswith(".cells") else numbers
        return header, arrays

    return read
