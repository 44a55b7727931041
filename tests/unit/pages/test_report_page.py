"""The public page and the confidential one: well formed, harmless, marked, and true."""

import re
import stat
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest

from inftda.errors import InftdaError, ReleaseError
from inftda.evaluation.stated import guess_bound, level_rows
from inftda.evaluation.typical import TypicalErrors, typical_errors
from inftda.hierarchy import Hierarchy
from inftda.noise.bits import SeededSource
from inftda.pages.html import NOTICE
from inftda.pages.report import ReferenceFiles, write_confidential_page, write_report
from inftda.publish import release
from inftda.truth import Truth

VOID = {"meta", "link", "br", "img", "input", "circle", "line", "path", "rect"}


class Strict(HTMLParser):
    """Notes elements, and complains if they do not nest."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.texts = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else None, data))


def parsed(page):
    parser = Strict()
    parser.feed(page)
    assert parser.open == []
    return parser


def one_trip(tree):
    """A truth of a single trip."""
    nowhere = np.zeros(1, np.int32)
    return Truth.from_leaves(tree, [nowhere, nowhere], np.ones(1, np.int64))


def words_of(page):
    """What people read, on one line."""
    texts = (data for tag, data in parsed(page).texts if tag not in {"script", "style"})
    return " ".join(" ".join(texts).replace("\N{NO-BREAK SPACE}", " ").split())


@pytest.fixture
def page(tmp_path):
    def make(made, **options):
        out = write_report(made, tmp_path / "page.html", runs=1, force=True, **options)
        return out.read_text(encoding="utf-8")

    return make


@pytest.fixture
def stated(monkeypatch):
    """Lets a page state other errors than simulated ones."""
    return lambda errors: monkeypatch.setattr(
        "inftda.pages.report.stated_errors", lambda *_, **__: errors
    )


def test_a_page_is_one_well_formed_file_that_loads_nothing(page, od):
    found = parsed(page(od)).seen
    assert [tag for tag, _ in found].count("script") == 2
    loads = [a.get("src") or a.get("href") for _, a in found if a.get("src") or a.get("href")]
    assert all(link.startswith(("#", "data:,")) for link in loads)
    assert not [a for _, a in found if any(name.startswith("on") for name in a)]
    ids = {a["id"] for _, a in found if "id" in a}
    links = {a["href"][1:] for tag, a in found if tag == "a"}
    assert links == {"promise", "accuracy", "explore", "technical"} <= ids


def test_a_release_made_with_a_seed_is_marked(page, od):
    assert "NOT PRIVATE" in page(od)
    private = replace(od, manifest=replace(od.manifest, private=True))
    assert "NOT PRIVATE" not in page(private)


@pytest.mark.parametrize("name", ["three_axes", "one_axis"])
def test_tables_without_trips_have_cells_and_no_trips_pairs_or_areas(page, request, name):
    words = words_of(page(request.getfixturevalue(name)))
    assert re.search(r"cells of 3 (disease|kind)", words)
    assert "A cell that is missing from the table" in words
    assert not re.search(r"\b(pairs?|trips)\b", words)


@pytest.mark.parametrize(
    "choice",
    [
        {"rho": 0.1},
        {"neighbours": "add-remove", "trips": 3, "epsilon": 1, "delta": 1e-6},
        {"epsilon": 30, "delta": 1e-6, "tree": "origin"},
        {"unplaceable": "outside", "epsilon": 1, "delta": 1e-6},
    ],
)
def test_the_promise_states_the_numbers_of_the_manifest(page, country, choice):
    made = release(country.flows(), country.areas, **choice)
    words, plan = words_of(page(made)), made.manifest.plan
    assert plan.unit.describe() in words
    assert plan.describe() in words
    assert f"{100 * guess_bound(plan.epsilon, plan.delta, plan.rho):.1f} %" in words
    assert ("is weak" in words) == (choice.get("epsilon") == 30)
    assert ("Epsilon (ε)" in words) == ("epsilon" in choice)
    is_public = "The overall total is the true one" in words
    assert is_public == plan.unit.root_is_public
    assert ("What was counted:" in words) == ("unplaceable" in choice)


def test_table_and_chart_show_the_same_figures(page, od, stated):
    errors = typical_errors(od, runs=2)
    stated(errors)
    text, rows = page(od), level_rows(od, errors)
    for row in rows:
        assert f"±{row.guaranteed:,}" in text
        assert f"±{row.typical.overall.p95:,}" in text
    places = [float(x) for x in re.findall(r'class="p95" cx="([\d.]+)%"', text)]
    assert len(places) == len(rows) + 1  # and one in the key
    by_size = sorted(range(len(rows)), key=lambda i: rows[i].typical.overall.p95)
    assert sorted(places[1:]) == [places[1:][i] for i in by_size]
    assert all(0 <= place <= 100 for place in places)
    assert not re.search(r"\d%<", re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL))


@pytest.mark.parametrize(
    ("often", "rarely", "words"),
    [
        (1234, 1240, "true numbers up to about 1,234 often vanish (at least one in 20)."),
        (12, 140, "(at least one in 20); between that and 140 there are too few to tell."),
        (12, None, "(at least one in 20); of larger ones there are too few to tell."),
        (0, None, "some small published numbers are zero in truth. Compared"),
    ],
)
def test_sizes_that_vanish_are_stated_as_simulated(  # noqa: PLR0917 - fixtures and cases
    page, od, stated, often, rarely, words
):
    *others, finest = typical_errors(od, runs=1).levels
    finest = replace(finest, often_lost=often, rarely_lost=rarely)
    stated(TypicalErrors(1, (*others, finest)))
    assert words in words_of(page(od))


def test_a_release_without_typical_errors_says_so(page, od, stated, unpacked):
    stated(None)
    text = page(od)
    assert "Typical errors are not stated" in text
    assert "<details>" not in text
    assert "the smaller a number" in text
    assert unpacked(text)[0]["errors"] is None


def test_negative_flows_get_no_page(page, od):
    flow = od.table.column("flow").to_numpy().copy()
    flow[0] = -5
    with pytest.raises(ReleaseError, match="negative numbers"):
        page(replace(od, table=od.table.set_column(2, "flow", pa.array(flow))))


def test_ends_with_different_areas_get_a_page(page, country, unpacked):
    areas = Hierarchy.read({"half": ["E", "W"], "quarter": ["E1", "W1"]})
    ends = pa.array([("E1", "W1")[i % 2] for i in range(len(country.count))])
    flows = country.flows().set_column(0, "origin", ends)
    flows = flows.group_by(["origin", "destination"]).aggregate([("count", "sum")])
    flows = flows.rename_columns(["origin", "destination", "count"])
    made = release(flows, axis={"origin": areas, "destination": country.areas}, rho=1)
    header, _ = unpacked(page(made))
    assert not header["shared"]
    assert [len(axis["levels"]) for axis in header["axes"]] == [2, 3]


def test_names_and_places_get_into_the_page(page, od, unpacked, tmp_path):
    finest = od.tree.axes[0].hierarchy
    codes = finest.codes(finest.depth).to_pylist()
    lines = [f"{code},Town {code},{7 + i / 10},45" for i, code in enumerate(codes)]
    (tmp_path / "c.csv").write_text("\n".join(["municipality,name,lon,lat", *lines]))
    (tmp_path / "n.csv").write_text("level,code,name\nregion,1,First\n")
    header, _ = unpacked(page(od, files=ReferenceFiles(tmp_path / "n.csv", tmp_path / "c.csv")))
    assert header["axes"][0]["levels"][0]["names"][0] == "First"
    assert header["axes"][0]["levels"][2]["names"][5] == f"Town {codes[5]}"
    assert header["places"][0][3] == [pytest.approx([7 + i / 10, 45]) for i in range(30)]


def test_an_estimate_of_another_release_is_refused(page, od, country):
    from inftda import estimate  # noqa: PLC0415 - only here

    budget = {"epsilon": 1, "delta": 1e-6, "measurements": True}
    other = release(country.flows(), country.areas, **budget, source=SeededSource(3))
    with pytest.raises(ReleaseError, match="another release"):
        page(od, estimate=estimate(other))


def test_a_page_is_not_written_where_it_must_not_be(od, tmp_path):
    with pytest.raises(InftdaError, match="is a folder"):
        write_report(od, tmp_path)
    od.save(tmp_path / "release")
    inside = tmp_path / "release" / "page.html"
    with pytest.raises(ReleaseError, match="lies in the release"):
        write_report(od, inside)
    with pytest.raises(ReleaseError, match="lies in the release"):
        write_confidential_page(od, one_trip(od.tree), [], inside)
    (tmp_path / "page.html").write_text("mine")
    with pytest.raises(InftdaError, match="--force"):
        write_report(od, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == "mine"


@pytest.fixture
def confidential(od, country, tmp_path):
    measures = [
        {"name": "all > all", "max_abs_error": 0, "false_discovery_rate": 0.0, "sizes": ()},
        {"name": "x", "max_abs_error": 12_345, "false_discovery_rate": 0.25, "sizes": ()},
    ]
    truth = Truth.from_leaves(od.tree, [country.origin, country.destination], country.count)
    return write_confidential_page(od, truth, measures, tmp_path / "page.html")


def test_the_confidential_page_says_unmistakably_what_it_is(confidential, unpacked, od, country):
    text = confidential.read_text()
    parsed(text)
    assert text.count(NOTICE) == 2
    assert "<title>CONFIDENTIAL" in text
    assert 'class="confidential"' in text
    assert "noindex" in text
    assert stat.S_IMODE(confidential.stat().st_mode) == 0o600
    assert "12,345" in text
    assert "25.0\N{NO-BREAK SPACE}%" in text
    header, arrays = unpacked(text)
    assert header["confidential"]
    assert sum(arrays["flows.truth"]) == country.count.sum()
    assert sum(arrays["flows.value"]) == od.total
