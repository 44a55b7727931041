"""The public page and the confidential one: well formed, harmless, marked, and true."""

import stat
from dataclasses import replace

import msgspec
import pytest
from markup import Markup

from inftda.confidential.evaluate import write_confidential_page
from inftda.pages.html import NOTICE, aligned
from inftda.pages.report import report
from inftda.pipeline import release
from inftda.privacy.risk import PRECEDENTS, risk_of
from inftda.privacy.unit import Unit
from inftda.publication.summary import level_rows
from inftda.reading import Columns
from inftda.reading.truth import Truth


@pytest.fixture
def page(tmp_path):
    def make(made, **options):
        out = report(made, tmp_path / "page.html", force=True, **options)
        return out.read_text(encoding="utf-8")

    return make


def test_a_page_is_one_well_formed_file_that_loads_nothing(page, od):
    found = Markup(page(od)).seen
    assert [tag for tag, _ in found].count("script") == 2
    loads = [a.get("src") or a.get("href") for _, a in found if a.get("src") or a.get("href")]
    sources = [one.source for one in PRECEDENTS]
    assert [link for link in loads if not link.startswith(("#", "data:,"))] == sources
    assert not [a for _, a in found if any(name.startswith("on") for name in a)]
    ids = {a["id"] for _, a in found if "id" in a}
    links = {a["href"][1:] for tag, a in found if tag == "a" and a["href"] not in sources}
    assert links == {"guarantee", "accuracy", "explore", "technical"} <= ids


def test_a_release_made_with_a_seed_is_marked(page, od):
    private = replace(od, manifest=msgspec.structs.replace(od.manifest, private=True))
    risk = risk_of(od.manifest.plan).describe()
    for made, is_marked in ((od, True), (private, False)):
        words = Markup(page(made)).words
        assert ("NOT PRIVATE" in words) == is_marked
        assert (risk in words) == (not is_marked), "a seed gives no guarantee"


@pytest.mark.parametrize(
    "choice",
    [
        {"rho": 0.1},
        {"unit": Unit(neighbours="add-remove", trips=3), "epsilon": 1, "delta": 1e-6},
        {"epsilon": 30, "delta": 1e-6, "order": ("origin", "destination")},
        {"columns": Columns(unplaceable="outside"), "epsilon": 1, "delta": 1e-6},
        {"columns": Columns(unplaceable="drop"), "unit": Unit("add-remove"), "rho": 0.1},
    ],
)
def test_the_guarantee_states_the_numbers_of_the_manifest(page, country, choice):
    made = release(country.flows(), country.areas, **choice)
    words, plan = Markup(page(made)).words, made.manifest.plan
    assert made.manifest.protected in words
    assert plan.describe() in words
    assert risk_of(plan).describe() in words
    sigmas = sorted(level.sigma for level in plan.levels)
    ends = dict.fromkeys(f"{sigma:.3g}" for sigma in (sigmas[0], sigmas[-1]))
    assert f"Noise (σ) {'–'.join(ends)} standard deviation" in words  # noqa: RUF001 - as it is
    assert ("guarantee is weak" in words) == (choice.get("epsilon") == 30)
    assert ("Epsilon (ε)" in words) == ("epsilon" in choice)
    is_public = "The overall total is the true one" in words
    assert is_public == plan.unit.root_is_public
    assert ("What was counted:" in words) == ("columns" in choice)
    leaves_out = made.manifest.counted.unplaceable == "drop"
    assert ("Errors do not include what this leaves out" in words) == leaves_out


def test_every_level_has_its_noise_and_what_is_guaranteed(page, od):
    words = Markup(page(od)).words
    rows = level_rows(od)
    for row, sigma in zip(rows, aligned(row.sigma for row in rows), strict=True):
        assert f"{row.n_published:,} {sigma} ±{row.guaranteed:,}" in words
    assert " > " not in words, "lists and tables name levels alike"


@pytest.mark.parametrize("measurements", ["all", "totals"])
@pytest.mark.parametrize("across", [0, 0.08])
def test_intervals_and_grades_are_explained_where_there_are_any(
    page, country, across, measurements
):
    budget = {"epsilon": 1, "delta": 1e-6, "measurements": measurements, "cross_tables": across}
    words = Markup(page(release(country.flows(), country.areas, **budget))).words
    has_intervals = measurements == "all"
    assert ("Intervals in the explorer" in words) == has_intervals
    rule = "up to 10 % A, 25 % B, 50 % C, or D, which may be off by more than half"
    assert (rule in words) == has_intervals
    assert ("Only totals of areas have intervals" in words) == (not has_intervals and across > 0)
    assert ("No interval is known" in words) == (not has_intervals and not across)
    assert ("Totals of areas were measured separately" in words) == (across > 0)
    assert ("were not measured themselves" in words) == (not across)
    assert ("Their intervals come from what was measured" in words) == (
        has_intervals and not across
    )


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
    Markup(text)
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
