"""The folder of a dossier: a summary in two forms, nothing obeyed in it, nothing half-written."""

import re

import pyarrow as pa
import pytest

import inftda
from inftda.documents.dossier import FILES
from inftda.errors import InftdaError, LedgerError, ReleaseError
from inftda.noise.bits import SeededSource
from inftda.pipeline import release
from inftda.privacy.budget import Budget
from inftda.privacy.ledger import Ledger
from inftda.privacy.unit import Unit
from inftda.reading import Columns

HOSTILE = "</style><script>alert(1)</script> [x](javascript:1) | `a` *b*"


def plain(html):
    text = re.sub(r"<[^>]+>", " ", html.partition("<body>")[2])
    for escaped, sign in (("&gt;", ">"), ("&#39;", "'"), ("\N{NO-BREAK SPACE}", " ")):
        text = text.replace(escaped, sign)
    return " ".join(text.split())


def test_both_forms_say_what_a_reviewer_asks(made, published):
    files = made(ledger=published.ledger, dataset="commuting")
    assert {*files} == {*FILES}
    plan = published.release.manifest.plan
    for text in (files["summary.md"].replace("\\", ""), plain(files["summary.html"])):
        assert plan.unit.describe() in text
        assert plan.describe() in text
        assert "statements of the office" in text
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
    rows = pa.table({"origin": ["a"] * 50, "destination": ["b"] * 50})
    release(rows, {"town": ["a", "b"]}, rho=1, source=SeededSource(1), out=tmp_path / "seeded")
    files = made(source=tmp_path / "seeded")
    text = files["summary.md"]
    assert text.index("NOT PRIVATE") < text.index("Privacy unit and guarantee")
    assert "does not verify" in text
    assert "NOT PRIVATE" in files["registry.yaml"]  # which is read without the summary
    for name in ("epsilon", "delta", "rho"):
        assert f"      {name}: null\n" in files["registry.yaml"]


def test_what_was_not_counted_is_said(made, tmp_path):
    rows = pa.table({"who": [1, 1, 2], "origin": ["a"] * 3, "destination": ["b"] * 3})
    unit = {"unit": Unit(neighbours="add-remove", trips=1), "columns": Columns(person="who")}
    release(rows, {"town": ["a", "b"]}, rho=1, out=tmp_path / "bounded", **unit)
    files = made(source=tmp_path / "bounded")
    assert "Not in the table: at most 1 trip of each person is counted" in files["summary.md"]
    assert re.search(r"\d counted trips .*\. At most 1 trip of each person", files["summary.md"])
    assert "at most 1 trip of each person" in files["registry.yaml"]


def test_what_was_counted_outside_was_not_left_out(made, tmp_path):
    rows = pa.table({"origin": ["a"] * 50, "destination": ["b"] * 49 + ["x"]})
    columns = Columns(unplaceable="outside")
    release(rows, {"town": ["a", "b"]}, rho=1, out=tmp_path / "outside", columns=columns)
    text = made(source=tmp_path / "outside")["summary.md"]
    assert "Rows without a known area are counted in the area 'outside'" in text
    assert "All rows of the table were counted." in text
    assert "leaves out" not in text


@pytest.mark.slow
def test_a_build_can_be_checked_as_well(made):
    assert "passed when this dossier was made" in made(selftest=True)["summary.md"]


def test_nothing_in_a_text_is_obeyed(made):
    files = made(title=HOSTILE)
    html, markdown = files["summary.html"], files["summary.md"]
    assert "<script" not in html
    rendered = pytest.importorskip("markdown_it").MarkdownIt("commonmark").render(markdown)
    assert not re.search("<(script|a|em|code)", rendered)


def test_a_dossier_replaces_a_dossier_only_if_asked(made, tmp_path):
    made()
    with pytest.raises(ReleaseError, match="exists already"):
        made()
    made(force=True)
    (tmp_path / "dossier" / "mine.txt").write_text("mine")
    with pytest.raises(ReleaseError, match=r"'mine.txt' in it is not part of a dossier"):
        made(force=True)


def test_wrong_ledgers_and_places_are_refused_and_nothing_is_written(made, published, tmp_path):
    with pytest.raises(InftdaError, match="go together"):
        made(ledger=published.ledger)
    with pytest.raises(LedgerError, match="other"):
        made(ledger=published.ledger, dataset="other")
    ledger = Ledger.create(tmp_path / "office.ledger")
    ledger.add("other", Unit("add-remove"), Budget.make(rho="1"))
    with pytest.raises(InftdaError, match="has another privacy unit"):
        made(ledger=tmp_path / "office.ledger", dataset="other")
    with pytest.raises(ReleaseError, match="lies in the release folder"):
        inftda.dossier(published.folder, out=published.folder / "dossier")
    assert {path.name for path in tmp_path.iterdir()} == {"office.ledger"}
