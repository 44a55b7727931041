"""The summary for reviewers: all that they ask about, in both forms, and nothing obeyed in it."""

import re

import pyarrow as pa
import pytest
from office_answers import MORE, OFFICE

from inftda.dossiers.document import as_html, as_markdown, grid, heading, listing, paragraph
from inftda.noise.entropy import SeededSource
from inftda.publish import release

HOSTILE = "</style><script>alert(1)</script> [x](javascript:1) | `a` *b*"


def plain(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.partition("<body>")[2]))


def test_both_forms_say_what_a_reviewer_asks(made, published):
    options = {"ledger": published.ledger, "dataset": "commuting"}
    files = made(OFFICE | MORE, **options)
    plan = published.release.manifest.plan
    markdown = files["summary.md"].replace("\\", "")
    for text in (markdown, plain(files["summary.html"]).replace("\N{NO-BREAK SPACE}", " ")):
        text = text.replace("&gt;", ">").replace("&#x27;", "'")  # noqa: PLW2901 - as it is read
        assert plan.unit.describe() in text
        assert plan.describe() in text
        assert "The committee decided." in text
        assert "Without noise: the total of all that was counted" in text
        assert "municipality > municipality" in text
        assert "checks, all passed" in text
        assert "self-test was not run" in text
        assert "by 2 releases; all together epsilon = " in text
        assert published.release.manifest.software["numpy"] in text
        # A ledger notes the folder a release went to; a dossier does not tell where that is.
        assert "inftda: second" in text
        assert str(published.folder.parent) not in text


def test_without_a_ledger_it_says_that_nothing_is_known(made):
    assert "No ledger was given" in made()["summary.md"]


def test_a_release_that_promises_nothing_is_marked_before_all_else(made, tmp_path):
    areas = {"town": ["a", "b"]}
    rows = pa.table({"origin": ["a"] * 50, "destination": ["b"] * 50})
    release(rows, areas, rho=1, source=SeededSource(1), out=tmp_path / "seeded")
    files = made(source=tmp_path / "seeded")
    text = files["summary.md"]
    assert text.index("NOT PRIVATE") < text.index("Who is protected")
    assert "does not verify" in text
    for name in ("registry.yaml", "dcat.jsonld"):  # which are read without the summary
        assert "NOT PRIVATE" in files[name]
        assert "rho" not in files[name]


def test_what_was_not_counted_is_said(made, tmp_path):
    areas = {"town": ["a", "b"]}
    rows = pa.table({"who": [1, 1, 2], "origin": ["a"] * 3, "destination": ["b"] * 3})
    unit = {"neighbours": "add-remove", "trips": 1, "person": "who"}
    release(rows, areas, rho=1, out=tmp_path / "bounded", **unit)
    files = made(OFFICE | MORE, source=tmp_path / "bounded")
    assert "Not in the table: at most 1 trip of each person is counted" in files["summary.md"]
    assert "at most 1 trip of each person" in files["registry.yaml"].replace("\n      ", " ")
    assert "at most 1 trip of each person" in files["dcat.jsonld"]


@pytest.mark.slow
def test_a_build_can_be_checked_as_well(made):
    assert "passed when this dossier was made" in made(selftest=True)["summary.md"]


def test_nothing_in_a_text_is_obeyed():
    blocks = [
        heading(HOSTILE),
        paragraph(HOSTILE),
        listing([HOSTILE]),
        grid([HOSTILE], [[HOSTILE]]),
    ]
    html = as_html(HOSTILE, blocks)
    assert "<script" not in html
    assert html.count("</style>") == 1
    markdown = as_markdown(HOSTILE, blocks)
    assert not re.search(r"(?<!\\)[`*\[<]", markdown)
    assert markdown.count("\n| ") == 3
    rendered = pytest.importorskip("markdown_it").MarkdownIt("commonmark").render(markdown)
    assert not re.search("<(script|a|em|code)", rendered)


def test_html_loads_nothing_and_has_its_policy(made):
    html = made()["summary.html"]
    assert "default-src &#x27;none&#x27;" in html or "default-src 'none'" in html
    assert not re.search(r"(src|href)=[\"']?(https?:|//)", html)


@pytest.mark.parametrize("mechanism", ["vanilla-gauss", "stability-histogram"])
def test_other_mechanisms_are_described_by_what_they_are(made, mechanism, tmp_path):
    rows = pa.table({"origin": ["a", "b"] * 40, "destination": ["b", "a"] * 40})
    promised = {"epsilon": 5, "delta": 1e-3, "mechanism": mechanism}
    release(rows, {"town": ["a", "b"]}, out=tmp_path / "other", **promised)
    text = made(source=tmp_path / "other")["summary.md"]
    assert "Neither guaranteed nor typical errors are known" in text
    assert "Without noise: the total" not in text
