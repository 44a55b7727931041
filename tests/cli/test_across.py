"""`--across` as it is typed: plan, release, verify, query."""

import json
from contextlib import redirect_stdout
from io import StringIO

import pytest

from inftda.cli.main import run
from inftda.noise.quantiles import half_width

BUDGET = ("--epsilon", 1, "--delta", 1e-8)
ACROSS = (*BUDGET, "--across", 0.08)


@pytest.fixture(scope="module")
def released(country, tmp_path_factory):
    """A release, made once, and what was said of it."""
    out = tmp_path_factory.mktemp("across") / "release"
    given = ("release", country.flows, "--areas", country.areas, *ACROSS, "--out", out)
    with redirect_stdout(StringIO()) as said:
        assert run([*map(str, given)]) == 0
    return out, said.getvalue()


def test_a_release_says_what_it_does_and_can_be_verified(released, cli):
    out, said = released
    assert "Across: " in said
    assert "% of the budget measures totals" in said
    assert "origin municipality ±" in said
    done = cli("verify", out)
    assert done.code == 0, done.err
    assert done.out.count("measured totals") == 1


def test_without_it_the_totals_not_to_use_are_named(country, cli, tmp_path):
    given = ("release", country.flows, "--areas", country.areas, *BUDGET, "--across", "0")
    for said in (
        cli(*given, "--out", tmp_path / "out").out,
        cli("plan", "--areas", country.areas, *BUDGET, "--across", "0").out,
    ):
        assert "do not use totals of origin (municipality)" in said


def test_it_is_the_default_and_said_in_words(country, cli, tmp_path):
    given = ("release", country.flows, "--areas", country.areas, *BUDGET)
    shown = cli(*given, "--out", tmp_path / "out").out
    assert "measures totals of areas across the tree" in shown
    assert (tmp_path / "out" / "measurements.parquet").exists()
    assert cli("plan", "--areas", country.areas, *BUDGET, "--json").out == (
        cli("plan", "--areas", country.areas, *ACROSS, "--json").out
    )


def test_a_plan_lists_the_tables(country, cli):
    text = cli("plan", "--areas", country.areas, *ACROSS).out
    assert "municipality > all" in text
    assert "totals within" in text
    stated = json.loads(cli("plan", "--areas", country.areas, *ACROSS, "--json").out)
    assert stated["across"] == "2/25"
    assert len(stated["tables"]) == 15 - 6
    for table in stated["tables"]:
        is_one_way = sum(depth > 0 for depth in table["depths"]) == 1
        assert (table["half_width"] is not None) == is_one_way
        if is_one_way:
            assert table["half_width"] == half_width(table["sigma"])


def test_a_plan_says_why_nothing_is_measured(country, cli):
    precise = ("--epsilon", 300, "--delta", 1e-8, "--across", 0.08)
    assert "below 1" in cli("plan", "--areas", country.areas, *precise).out
    one_axis = cli("plan", "--axis", f"area={country.areas}", *ACROSS)
    assert "one axis" in one_axis.out, one_axis.err


@pytest.mark.parametrize("across", ["-0.1", "0.9"])
def test_a_part_that_makes_no_sense_is_an_error(country, cli, across):
    done = cli("plan", "--areas", country.areas, *BUDGET, f"--across={across}")
    assert done.code == 2
    assert "across must be a part of the budget" in done.err


def test_totals_in_every_format(released, cli, tmp_path):
    ask = ("query", released[0], "--totals", "origin=province")
    rows = json.loads(cli(*ask, "--format", "json").out)
    assert len(rows) == 6
    names = ["area", "released", "measured", "sigma", "low", "high", "max_error"]
    assert list(rows[0]) == names
    assert sum(row["released"] for row in rows) == 5_000
    assert cli(*ask).out.splitlines()[0].split() == names
    assert len(cli(*ask, "--format", "csv").out.splitlines()) == 7
    assert cli(*ask, "--out", tmp_path / "totals.parquet").code == 0
    largest = json.loads(cli(*ask, "--top", 2, "--format", "json").out)
    assert largest == sorted(rows, key=lambda row: -row["measured"])[:2]


@pytest.mark.parametrize(
    "wrong",
    [
        ("--totals", "origin"),
        ("--totals", "origin=street"),
        ("--totals", "destination=region"),
        ("--totals", "origin=province", "--origin-level", "region"),
        ("--totals", "origin=province", "--from", "1"),
    ],
    ids=str,
)
def test_other_questions_are_refused(released, cli, wrong):
    done = cli("query", released[0], *wrong)
    assert done.code == 2
    assert done.err.startswith("error: ")


def test_a_page_lists_the_tables(released, cli, tmp_path):
    done = cli("report", released[0], "--out", tmp_path / "page.html")
    assert done.code == 0, done.err
    assert "Noise of tables across the tree" in (tmp_path / "page.html").read_text()
