"""`inftda preview` as it is typed."""

import json

import pytest


@pytest.fixture
def typed(country, cli):
    def call(*arguments):
        return cli(
            "preview", "--areas", country.areas, "--epsilon", "1,5", "--delta", 1e-6, "--runs", 1,
            *arguments,
        )  # fmt: skip

    return call


def test_settings_are_tried_out_and_said_in_words(typed, country, tmp_path):
    done = typed("--stand-in", country.flows, "--html", tmp_path / "page.html")
    assert done.code == 0, done.err
    assert done.out.startswith("Stand-in:   a public table of flows")
    assert done.out.count("In words:   ") == 2
    assert "municipality > municipality" in done.out
    assert "origin municipality" in done.out
    assert "nothing is spent" in done.out
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [tmp_path / "page.html"]


@pytest.mark.slow
def test_json_is_one_object(typed, country):
    done = typed(
        "--stand-in",
        country.flows,
        "--json",
        "--across",
        0,
        "--split",
        "uniform",
        "--split",
        "1,1,1,1,1,2",
    )
    data = json.loads(done.out)
    assert [one["epsilon"] for one in data["settings"]] == [1, 5, 1, 5]
    assert data["kind"] == "inftda-preview"


@pytest.mark.slow
def test_totals_make_a_stand_in(typed, country, tmp_path):
    codes = country.made.areas.codes(3).to_pylist()
    rows = "".join(f"{code},100,100\n" for code in codes)
    (tmp_path / "totals.csv").write_text(f"municipality,out,in\n{rows}")
    done = typed("--totals", tmp_path / "totals.csv", "--quiet", "--html", tmp_path / "page.html")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert "nested surroundings" in (tmp_path / "page.html").read_text()


def test_a_confidential_stand_in_is_marked(typed, country, tmp_path):
    page = tmp_path / "page.html"
    told = typed("--stand-in", country.flows, "--allow-confidential", "--html", page)
    assert told.out.startswith("CONFIDENTIAL")
    assert page.read_text().count("CONFIDENTIAL: this page") == 2
    assert page.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "either a public table"),
        (("--stand-in", "none.csv"), "none.csv"),
        (("--stand-in", "x.csv", "--trips", "1.5"), "whole numbers"),
        (("--stand-in", "x.csv", "--epsilon", "a"), "--epsilon must be numbers"),
        (("--stand-in", "x.csv", "--stand-in-level", "galaxy"), "no level 'galaxy'"),
    ],
)
def test_wrong_use_is_told_in_one_line(typed, arguments, words):
    done = typed(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert words in done.err
