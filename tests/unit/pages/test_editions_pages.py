"""Pages of two editions and of a series."""

import re

import pytest

import inftda
from inftda import SeededSource
from packed_page import unpack

AREAS = {"region": ["N", "N", "S", "S"], "town": ["1", "2", "3", "4"]}
#: Flows of the old and of the new edition, which have hardly any noise.
COUNTS = {"2024": [10_000, 20_000, 40_000], "2025": [13_000, 24_000, 20_000]}


@pytest.fixture
def series(tmp_path):
    for name, counts in COUNTS.items():
        flows = {"origin": ["1", "2", "3"], "destination": ["2", "3", "4"], "count": counts}
        out, source = tmp_path / "series" / name, SeededSource(1)
        inftda.release(flows, AREAS, rho=50, edition=name, out=out, source=source)
    return tmp_path / "series"


@pytest.fixture
def change_page(series, tmp_path):
    (tmp_path / "places.csv").write_text("town,lon,lat\n1,9,44\n2,9.5,44\n3,9,45\n4,9.5,45\n")
    both, page = [series / name for name in COUNTS], tmp_path / "page.html"
    inftda.change(*both, html=page, centroids=tmp_path / "places.csv")
    return page.read_text()


def rows(page):
    """Text of the cells of each row that has any, with headings."""
    found = (re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in page.split("<tr>"))
    return [[re.sub("<[^>]*>", "", cell) for cell in row] for row in found if row]


def test_old_counts_stand_before_new_ones(change_page):
    """The counts are right within 2 %, so both are recognised."""
    found = rows(change_page)
    assert found[0][1:3] == ["2024", "2025"]
    for label, counts in (("1 \N{RIGHTWARDS ARROW} 2", [10_000, 13_000]), ("3", [40_000, 20_000])):
        row = next(row for row in found if row[0] == label)
        assert [int(cell.replace(",", "")) for cell in row[1:3]] == pytest.approx(counts, rel=0.02)


def test_the_map_says_the_same_as_the_lists(change_page):
    """From 10,000 to 13,000 is more than a quarter, from 20,000 to 24,000 is less."""
    header, _ = unpack(change_page)
    starts = header["maps"][0]
    shown = {name: (kind, words) for _, kind, name, words in starts["areas"]}
    for town, kind, counts in zip(
        "123", ("rose2", "rose1", "fell2"), zip(*COUNTS.values(), strict=True), strict=True
    ):
        assert shown[town][0] == kind
        old, new = re.match(rf"{town}: from ([\d,]+) to ([\d,]+), ", shown[town][1]).groups()
        assert [int(one.replace(",", "")) for one in (old, new)] == pytest.approx(counts, rel=0.02)
    assert [[*line[:2], line[2]] for line in starts["lines"]] == [
        [0, 1, "rose2"], [1, 2, "rose2"], [2, 3, "fell2"],
    ]  # fmt: skip
    assert starts["places"] == [[9, 44], [9.5, 44], [9, 45], [9.5, 45]]


def test_a_page_of_a_series_needs_areas_that_fit_together(series, tmp_path):
    areas = AREAS | {"region": ["N", "S", "S", "S"]}
    flows = {"origin": ["1"], "destination": ["2"], "count": [900]}
    inftda.release(
        flows, areas, rho=50, edition="2026", out=series / "moved", source=SeededSource(1)
    )
    with pytest.raises(inftda.InftdaError, match=r"do not fit on one page: town '2' lies in two"):
        inftda.report(series, tmp_path / "series.html")
