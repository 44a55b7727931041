"""Levels and areas that are written to break a page stay text on every page."""

import pyarrow as pa
import pytest
from markup import Markup

import inftda
from inftda.confidential.compare import compare, write_methods_page
from inftda.confidential.evaluate import write_confidential_page
from inftda.noise.bits import SeededSource
from inftda.pages.report import report
from inftda.planning.findings import write_preview_page
from inftda.reading.truth import Truth
from inftda.tree.hierarchy import Hierarchy

#: Codes and names a careless page would obey.
HOSTILE = (
    "</script><script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=2">',
    "<!--<script>",
    "{{packed}}",
    "=1+1,'\"",
    "\u2028&amp;<b>",
)
LEVELS = {"hostile": ("<i>group", "</title><script>x"), "harmless": ("group", "town")}


def flows(codes):
    return pa.table(
        {
            "origin": codes * 2,
            "destination": [codes[0]] * 6 + codes[::-1],
            "count": [*range(500, 512)],
        }
    )


def write(page, kind, folder):
    """One page from areas that are hostile or harmless, but for that the same."""
    codes = list(HOSTILE) if kind == "hostile" else [f"c{i}" for i in range(6)]
    coarse, fine = LEVELS[kind]
    areas = Hierarchy.read({coarse: ["a"] * 3 + ["b"] * 3, fine: codes})
    table, out = flows(codes), folder / f"{kind}.html"
    budget = {"epsilon": 5, "delta": 1e-6, "source": SeededSource(1)}
    if page == "preview":
        tried = inftda.preview(areas, stand_in=table, **budget, runs=1)
        return write_preview_page(tried, out, title=codes[0])
    if page == "comparison":
        return write_methods_page(compare(table, areas, **budget, seed=1), out)
    made = inftda.release(table, areas, **budget, out=folder / f"release-{kind}")
    if page == "summary":
        folder = inftda.dossier(
            folder / f"release-{kind}", title=codes[0], out=folder / kind, selftest=False
        )
        return folder / "summary.html"
    if page == "confidential":
        leaves = made.tree.axes[0].hierarchy.n_areas(2)
        ends = [pa.array(range(leaves), pa.int32()).to_numpy()] * 2
        truth = Truth.from_leaves(made.tree, ends, pa.array([1] * leaves, pa.int64()).to_numpy())
        return write_confidential_page(made, truth, [{"name": coarse, "max_abs_error": 1}], out)
    return report(made, out, title=codes[0])


@pytest.mark.parametrize("page", ["report", "confidential", "preview", "comparison", "summary"])
def test_hostile_areas_add_no_element_and_no_attribute(page, tmp_path):
    found, expected = (
        Markup(write(page, kind, tmp_path).read_text(encoding="utf-8")).kinds
        for kind in ("hostile", "harmless")
    )
    assert found == expected
    assert (("script",) in expected) == (page in {"report", "confidential"})
