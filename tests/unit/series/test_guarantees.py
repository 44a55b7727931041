"""Guarantees that are stated for series and for changes, wherever they are stated."""

import re
from fractions import Fraction

import pytest

import inftda
from inftda import SeededSource, Unit
from inftda.cli.main import run
from inftda.privacy.accounting import epsilon_of_rho

AREAS = {"region": ["N", "N", "S", "S"], "town": ["1", "2", "3", "4"]}
FLOWS = {"origin": ["1", "2", "3"], "destination": ["2", "3", "4"], "count": [400, 300, 200]}
PURE, RHO = {"epsilon": 1, "delta": 0}, {"rho": "1/50"}
ONE = {"epsilon": 1, "delta": 1e-8}
ADDED = Unit("add-remove")


@pytest.fixture
def series(tmp_path):
    """Makes a series: a release for each set of options."""

    def make(*options):
        for number, more in enumerate(options, start=1):
            name = f"may-{number:02}"
            inftda.release(FLOWS, AREAS, edition=name, out=tmp_path / "series" / name, **more)
        return tmp_path / "series"

    return make


def statements(folder, capsys):
    """All statements about a series of two editions: in Python, on pages, and by the command."""
    opened, page = inftda.open_series(folder), folder.parent / "page.html"
    yield repr(opened)
    yield "\n".join(opened.guarantees())
    yield inftda.report(folder, page).read_text()
    both = [str(folder / name) for name in opened.editions]
    changes = inftda.change(*both, html=page, force=True)
    yield page.read_text()
    yield repr(changes)
    yield changes._repr_html_()
    capsys.readouterr()
    assert run(["change", *both]) == 0
    yield capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        (ONE, {"rho": "50"}),
        ({"epsilon": 2, "delta": 1e-12}, {"epsilon": 1.9, "delta": 1e-4}),
        (ONE, ONE | {"unit": ADDED}),
        (PURE, ONE),
    ],
    ids=str,
)
def test_every_edition_has_its_own_guarantee_and_its_privacy_unit(series, options, capsys):
    folder = series(*options)
    for stated in statements(folder, capsys):
        for name, release in inftda.open_series(folder).editions.items():
            guarantee = release.manifest.plan.describe().partition(" by the accountant")[0]
            assert re.search(f"{name}[^\n;]*: {re.escape(guarantee)}", stated)
            assert release.manifest.protected in stated


def test_equal_guarantees_are_stated_once(series, capsys):
    folder = series(ONE, ONE)
    for stated in statements(folder, capsys):
        assert stated.lower().count("each edition: epsilon = 1, delta = 1e-08") == 1
        assert stated.lower().count("privacy unit of each edition: a person with exactly 1") == 1


def test_editions_with_one_privacy_unit_cost_the_sum_of_their_rho(series):
    opened = inftda.open_series(series(ONE, ONE, ONE))
    plan = opened.editions["may-01"].manifest.plan
    *_, together = opened.guarantees()
    epsilon = epsilon_of_rho(3 * plan.rho, delta=1e-8)
    assert together.startswith("all 3 editions together: ")
    shown = float(together.partition("epsilon = ")[2].partition(",")[0])
    assert epsilon <= shown < epsilon + 1e-5
    assert plan.epsilon < shown < 3 * plan.epsilon


@pytest.mark.parametrize(
    ("options", "together"),
    [
        ([PURE, PURE], "epsilon = 2, delta = 0; rho ="),
        ([RHO, RHO], "rho = 0.04 (zCDP)"),
        ([RHO, ONE], "rho ="),
        ([PURE, ONE], "rho ="),
        ([ONE, {"epsilon": 1, "delta": 1e-6}], "rho ="),
    ],
    ids=str,
)
def test_editions_together_have_an_epsilon_only_at_a_common_delta(series, options, together):
    opened = inftda.open_series(series(*options))
    stated = opened.guarantees()[-1]
    assert stated.startswith(f"all 2 editions together: {together}")
    rho = sum(release.manifest.plan.rho for release in opened.editions.values())
    shown = Fraction(stated.partition("rho = ")[2].partition(" ")[0])
    assert rho <= shown < rho * Fraction("1.0001")


def test_costs_for_different_privacy_units_are_not_added_up(series, capsys):
    folder = series(ONE, ONE | {"unit": ADDED})
    for stated in statements(folder, capsys):
        assert "together: " not in stated
        assert "different privacy units have no guarantee together" in stated
    inftda.release(FLOWS, AREAS, edition="may-03", out=folder / "may-03", unit=ADDED, rho="1/50")
    lines = inftda.open_series(folder).guarantees()
    assert [line for line in lines if "together: " in line] == [
        next(line for line in lines if line.startswith("may-02, may-03 together: rho"))
    ]


def test_seeded_editions_have_no_guarantee(series, capsys):
    for stated in statements(series(ONE, RHO | {"source": SeededSource(1)}), capsys):
        assert "NOT PRIVATE" in stated
        assert "rho =" not in stated


def test_two_releases_of_one_edition_are_told_apart_and_both_count():
    both = [inftda.release(FLOWS, AREAS, edition="2024", **RHO) for _ in range(2)]
    changes = inftda.change(*both)
    assert changes.editions == ("2024 (old)", "2024 (new)")
    assert changes.guarantees[-1] == "all 2 editions together: rho = 0.04 (zCDP)"
