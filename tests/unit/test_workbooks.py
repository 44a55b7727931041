"""Workbooks of Excel are read like the same table as CSV, or refused in words."""

import sys
import tracemalloc
from datetime import UTC, datetime

import pytest

import inftda
from inftda.errors import InftdaError, IngestError, MissingExtraError
from inftda.util.tabular import read_sheet

openpyxl = pytest.importorskip("openpyxl", reason="workbooks need openpyxl")

AREAS = {"region": ["N", "N", "S"], "town": ["001", "002", "003"]}
FLOWS = {
    "origin": ["001", "002", "003"],
    "destination": ["002", "003", "003"],
    "count": [30, 4, 50],
}
BUDGET = {"epsilon": 1, "delta": 1e-6}


def workbook(path, *tables):
    """A file of Excel with one sheet for each table."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, table in enumerate(tables):
        sheet = book.create_sheet(f"sheet {number}")
        if table:
            sheet.append(list(table))
        for row in zip(*table.values(), strict=True):
            sheet.append(row)
    book.save(path)
    return path


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ([{**FLOWS, "origin": ["001", datetime(2020, 1, 1), "2"]}], "several kinds"),  # noqa: DTZ001 - as Excel
        ([{"origin": ["001"], None: ["002"]}], "without a name"),
        ([{"origin": ["001"], "destination": ["002"], " ": ["003"]}], "without a name"),
        ([{}], "no sheet"),
    ],
)
def test_a_sheet_that_cannot_be_counted_is_refused(tmp_path, tables, said):
    flows = workbook(tmp_path / "flows.xlsx", *tables)
    with pytest.raises(IngestError, match=said) as caught:
        inftda.release(flows, AREAS, **BUDGET)
    assert caught.value.__context__ is None


def test_a_damaged_workbook_and_one_with_moments_for_areas_are_refused(tmp_path):
    damaged = workbook(tmp_path / "damaged.xlsx", FLOWS)
    damaged.write_bytes(damaged.read_bytes()[:500])
    with pytest.raises(IngestError, match="damaged"):
        inftda.release(damaged, AREAS, **BUDGET)
    moment = datetime.now(UTC).replace(tzinfo=None)
    areas = workbook(tmp_path / "areas.xlsx", {"town": [moment]})
    with pytest.raises(InftdaError, match="text or whole numbers"):
        inftda.plan(areas, **BUDGET)


def test_a_coloured_row_does_not_make_the_others_as_long(tmp_path):
    """Three hundred rows of 16,384 cells would take 40 MB."""
    book = openpyxl.Workbook()
    book.active.append(["town", "n"])
    for number in range(300):
        book.active.append([f"{number:03d}", number])
    book.active.cell(1, 16_384).font = openpyxl.styles.Font(bold=True)
    book.save(tmp_path / "wide.xlsx")
    tracemalloc.start()
    try:
        names, columns = read_sheet(tmp_path / "wide.xlsx", what="it", error=InftdaError)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (names, len(columns[0])) == (["town", "n"], 300)
    assert most < 20e6


def test_without_the_library_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "flows.xlsx").write_bytes(b"")
    with pytest.raises(MissingExtraError, match=r"inftda-od\[xlsx\]"):
        inftda.release(tmp_path / "flows.xlsx", AREAS, **BUDGET)
