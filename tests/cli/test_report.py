"""`inftda report` as it is typed: one line, a bar on a terminal, or nothing."""

import re

import pytest


@pytest.fixture
def report(cli, released, tmp_path):
    return lambda *more: cli("report", released, "--out", tmp_path / "p.html", "--runs", 2, *more)


def test_it_says_one_line(report, tmp_path):
    done = report()
    assert (done.code, done.err) == (0, "")
    page = re.escape(str(tmp_path / "p.html"))
    assert re.fullmatch(rf"Page:       {page} \(0\.\d MB, needs no network\)\n", done.out)


def test_on_a_terminal_a_bar_shows_how_far_it_is(report, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as a terminal is known
    plain = report()
    assert "100/100" in plain.err
    assert "packing" in plain.err
    assert plain.out.startswith("Page: ")
    assert plain.out.count("\n") == 1


@pytest.mark.slow
def test_estimates_go_onto_the_page_and_those_of_another_release_do_not(country, cli, tmp_path):
    given = ("release", country.flows, "--areas", country.areas, "--epsilon", 1, "--delta", 1e-8)
    for name in ("one", "two"):
        made = cli(*given, "--measurements", "--quiet", "--out", tmp_path / name)
        assert made.code == 0, made.err
    estimates = tmp_path / "estimates"
    assert cli("estimate", tmp_path / "one", "--out", estimates).code == 0
    out = ("--estimate", estimates, "--seconds", 0, "--out", tmp_path / "page.html")
    refused = cli("report", tmp_path / "two", *out)
    assert refused.code == 2
    assert "made from another release" in refused.err
    assert not (tmp_path / "page.html").exists()
    assert cli("report", tmp_path / "one", *out).code == 0
    assert "Take the estimated ones" in (tmp_path / "page.html").read_text(encoding="utf-8")
