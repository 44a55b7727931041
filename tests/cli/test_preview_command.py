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
    done = typed("--like", country.flows, "--html", tmp_path / "page.html")
    assert done.code == 0, done.err
    assert done.out.startswith("Stand-in:   a public table of flows")
    assert done.out.count("In words:   ") == 2
    assert "municipality > municipality" in done.out
    assert "origin municipality" in done.out
    assert "nothing is spent" in done.out
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [tmp_path / "page.html"]


def test_json_is_one_object(typed, country):
    done = typed(
        "--like",
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


def test_totals_make_a_stand_in(typed, country, tmp_path):
    codes = country.made.areas.codes(3).to_pylist()
    rows = "".join(f"{code},100,100\n" for code in codes)
    (tmp_path / "totals.csv").write_text(f"municipality,out,in\n{rows}")
    done = typed("--totals", tmp_path / "totals.csv", "--quiet", "--html", tmp_path / "page.html")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert "nested surroundings" in (tmp_path / "page.html").read_text()


def test_a_charged_table_is_refused_also_by_the_ledger_of_the_house(
    typed, country, cli, tmp_path, monkeypatch
):
    book = tmp_path / "book"
    book.mkdir(mode=0o700)
    ledger = book / "ledger.db"
    assert cli("ledger", "create", ledger, "people", "--rho", "1").code == 0
    charged = cli(
        "release", country.flows, "--areas", country.areas, "--rho", "0.1", "--quiet",
        "--out", tmp_path / "release", "--ledger", ledger, "--dataset", "people",
    )  # fmt: skip
    assert charged.code == 0, charged.err
    monkeypatch.setenv("INFTDA_LEDGER", str(ledger))
    refused = typed("--like", country.flows, "--html", tmp_path / "page.html")
    assert refused.code == 2
    assert "confidential data set 'people'" in refused.err
    assert not (tmp_path / "page.html").exists()
    page = tmp_path / "page.html"
    told = typed("--like", country.flows, "--even-if-confidential", "--html", page)
    assert told.out.startswith("CONFIDENTIAL")
    assert page.read_text().count("CONFIDENTIAL: this page") == 2
    assert page.stat().st_mode & 0o077 == 0
    assert cli("ledger", "show", ledger, "people").out.count("(published)") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "either a public table"),
        (("--like", "none.csv"), "none.csv"),
        (("--like", "x.csv", "--trips", "1.5"), "whole numbers"),
        (("--like", "x.csv", "--epsilon", "a"), "--epsilon must be numbers"),
        (("--like", "x.csv", "--like-level", "galaxy"), "no level 'galaxy'"),
    ],
)
def test_wrong_use_is_told_in_one_line(typed, arguments, words):
    done = typed(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert words in done.err
