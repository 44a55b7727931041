"""Tables as people have them: matrices, sheets, lines above the header, zip files."""

import stat
import sys
import tempfile
import tracemalloc
import zipfile
from datetime import datetime
from pathlib import Path

import pytest

from inftda.errors import InftdaError, IngestError, MissingExtraError
from inftda.reading import TableFile, sources
from inftda.tree.hierarchy import Hierarchy
from inftda.util import stores
from inftda.util.tabular import read_sheet

openpyxl = pytest.importorskip("openpyxl", reason="workbooks need openpyxl")

ROWS = [["", "001", "002", "003"], ["001", 5, None, "-"], ["003", 0, 12, None]]
EXPECTED = {("001", "001"): 5, ("003", "002"): 12}
FLOWS = [["origin", "destination", "count"], ["001", "002", 3], ["003", "001", 5]]
COUNTED = {("001", "002"): 3, ("003", "001"): 5}


def csv_file(path, rows, above=""):
    lines = (",".join("" if cell is None else str(cell) for cell in row) for row in rows)
    path.write_text(above + "\n".join(lines) + "\n")
    return path


def workbook(path, **sheets):
    """A file of Excel with these sheets."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def zip_file(path, **members):
    """A zip file with these members, __ in whose names stands for a dot."""
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in members.items():
            packed.writestr(name.replace("__", "."), content)
    return path


@pytest.mark.parametrize("make", [csv_file, lambda path, rows: workbook(path, table=rows)])
def test_a_matrix_is_a_row_for_each_cell(read, tmp_path, make):
    path = make(tmp_path / ("m.csv" if make is csv_file else "m.xlsx"), ROWS)
    assert read(TableFile(path, matrix=True)) == EXPECTED


def test_a_wide_matrix_keeps_every_cell_at_its_place(read, tmp_path):
    n = 2 * sources._BLOCK + 3
    codes = [f"{i:04d}" for i in range(n)]
    areas = Hierarchy.read({"town": codes})
    rows = [["", *codes], *([code, *range(i, i + n)] for i, code in enumerate(codes))]
    found = read(
        TableFile(csv_file(tmp_path / "m.csv", rows), matrix=True),
        axes=[("origin", areas), ("destination", areas)],
    )
    expected = {(codes[i], codes[j]): i + j for i in range(n) for j in range(n) if i + j}
    assert found == expected


def test_a_matrix_may_be_cut_into_files_with_one_header(read, tmp_path):
    twice = {key: 2 * n for key, n in EXPECTED.items()}
    csv_file(tmp_path / "a.csv", ROWS)
    csv_file(tmp_path / "b.csv", ROWS)
    assert read(TableFile(tmp_path / "*.csv", matrix=True), repeated_rows="add") == twice
    workbook(tmp_path / "a.xlsx", may=ROWS, notes=[["of", "2026"]])
    workbook(tmp_path / "b.xlsx", may=ROWS)
    source = TableFile(tmp_path / "*.xlsx", matrix=True, sheet="may")
    assert read(source, repeated_rows="add") == twice
    with pytest.raises(IngestError, match="repeat another one"):
        read(source)
    workbook(tmp_path / "b.xlsx", may=[row[:3] for row in ROWS])
    with pytest.raises(IngestError, match=r"'b.xlsx' has a different header from 'a.xlsx'"):
        read(source)


def test_a_cell_of_a_matrix_means_what_it_means_alone(read, tmp_path):
    """What is beside it changes neither how it is read nor how many cells are wrong."""
    rows = [["", "001", "002"], ["001", 2, 2.5], ["002", 1e6, 3.0], ["003", "7", " - "]]
    path = workbook(tmp_path / "m.xlsx", m=rows)
    with pytest.raises(IngestError, match=r"^1 cell of 'm.xlsx' has a count with a decimal point"):
        read(TableFile(path, matrix=True))
    rows[1][2] = 4
    counts = read(TableFile(workbook(path, m=rows), matrix=True))
    assert sorted(counts.values()) == [2, 3, 4, 7, 1_000_000]


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("x", "text that is not a number"),
        (-1, "a negative count"),
        ("1.000", "a decimal point"),
        ("--", "text that is not a number"),
        (":", "text that is not a number"),
        (True, "text that is not a number"),
        (datetime(2026, 5, 17), "text that is not a number"),  # noqa: DTZ001 - as Excel
        ("9" * 19, "a count beyond"),
    ],
)
def test_a_cell_that_is_no_count_is_refused_and_not_shown(read, tmp_path, cell, says):
    rows = [["", "001", "002"], ["001", 2, cell]]
    sources = [workbook(tmp_path / "m.xlsx", m=rows), csv_file(tmp_path / "m.csv", rows)]
    for path in sources:
        with pytest.raises(IngestError, match=f"^1 cell of '{path.name}' has .*{says}") as error:
            read(TableFile(path, matrix=True))
        assert error.value.__context__ is None
        assert "column" not in str(error.value), "a matrix has no column of counts"


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([["", "001", "002"], ["001", 1]], "line 2 of 'm.csv' has a different number of cells"),
        ([["", "001", "001"], ["001", 1, 2]], "names the same destination twice; .*`skip_rows=`"),
        ([["001"], ["002"]], "names no destination; .*`skip_rows=`"),
        ([["Commuters", "", ""], ["", "001", "002"]], "names no destination; .*`skip_rows=`"),
        ([["001", 17, "x", "y"], ["002", 3, 4, 5]], "no areas of the finest level"),
        ([["001", 17, "002", "003"], ["002", 3, 4, 5]], "no areas of the finest level"),
        (
            [["", "001", "002", "Total"], ["001", 1, 2, 3]],
            "unknown destination 'Total'.* a total: ",
        ),
        ([["", "001", "002"], ["Total", 1, 2]], "unknown origin 'Total'.* a total: take rows and "),
        ([["", "001", "002", ""], ["001", 1, 2, 5]], "^1 cell .*missing destination"),
        ([["", "001", "002"], ["", "", 5]], "^1 cell .*missing origin"),
        ([["", "001", "002"], ["001", 1, '"4,157"']], "^1 cell .*a separator of thousands.*4157"),
    ],
)
def test_a_matrix_that_is_none_is_refused(read, tmp_path, rows, says):
    with pytest.raises(IngestError, match=says) as error:
        read(TableFile(csv_file(tmp_path / "m.csv", rows), matrix=True))
    assert "17" not in str(error.value)


def test_blank_columns_and_rows_without_a_name_are_no_cells(read, tmp_path):
    rows = [[*ROWS[0], "", ""], *([*row, "", " "] for row in ROWS[1:]), [""] * 6]
    assert read(TableFile(csv_file(tmp_path / "m.csv", rows), matrix=True)) == EXPECTED


@pytest.mark.parametrize("make", [csv_file, lambda path, rows: workbook(path, table=rows)])
def test_rows_of_a_matrix_may_be_destinations(read, tmp_path, make):
    path = make(tmp_path / ("m.csv" if make is csv_file else "m.xlsx"), ROWS)
    swapped = {(destination, origin): n for (origin, destination), n in EXPECTED.items()}
    assert read(TableFile(path, matrix=True, transposed=True)) == swapped
    with pytest.raises(IngestError, match="`transposed=` is for a matrix; give `matrix=` as well"):
        TableFile(path, transposed=True)
    twice = make(path, [["", "001", "001"], ["001", 1, 2]])
    with pytest.raises(
        IngestError, match="the same origin twice; a matrix has destinations in its"
    ):
        read(TableFile(twice, matrix=True, transposed=True))
    strange = make(path, [["", "17", "18"], ["001", 1, 2]])
    with pytest.raises(IngestError, match="has the codes of its origins there"):
        read(TableFile(strange, matrix=True, transposed=True))


def test_titles_above_a_header_are_hinted_at(read, tmp_path):
    for above in ("Commuters 2026\n", "Commuters 2026,,\n"):
        path = csv_file(tmp_path / "a.csv", FLOWS, above)
        with pytest.raises(IngestError, match=r"if titles are above the header, .*`skip_rows=`"):
            read(path)
    path = workbook(tmp_path / "a.xlsx", a=[["Commuters 2026"], *FLOWS])
    with pytest.raises(IngestError, match="`skip_rows=` says how many are above it"):
        read(path)


def test_merged_cells_of_a_sheet_are_hinted_at(read, tmp_path):
    book = openpyxl.Workbook()
    for row in [*FLOWS, ["", "002", 7]]:
        book.active.append(row)
    book.active.merge_cells("A3:A4")
    book.save(tmp_path / "a.xlsx")
    with pytest.raises(IngestError, match=r"1 row .*missing origin \(merged cells of a sheet have"):
        read(tmp_path / "a.xlsx")


def test_what_cannot_be_said_of_a_matrix_is_refused(read, tmp_path):
    source = TableFile(csv_file(tmp_path / "m.csv", ROWS), matrix=True)
    with pytest.raises(IngestError, match="are counts; leave out `count=`"):
        read(source, count=None)
    with pytest.raises(IngestError, match="no column 'home'"):
        read(source, origin="home")


def test_lines_above_the_header_are_skipped(read, tmp_path):
    above = '"Commuters, ""new""",,"2026"\n\nby town;;\n'
    path = csv_file(tmp_path / "a.csv", FLOWS, above)
    assert read(TableFile(path, skip_rows=3)) == COUNTED
    for encoding in ("utf-16", "latin-1"):
        path.write_text("Città\n" + csv_file(tmp_path / "b.csv", FLOWS).read_text(), encoding)
        assert read(TableFile(path, skip_rows=1, encoding=encoding)) == COUNTED
    rows = [["Commuters"], [], [None, "by town"], *FLOWS]
    path = workbook(tmp_path / "a.xlsx", a=rows, b=ROWS)
    assert read(TableFile(path, sheet="a", skip_rows=3)) == COUNTED
    with pytest.raises(IngestError, match=r"'b.csv' is empty from line 10 on"):
        read(TableFile(tmp_path / "b.csv", skip_rows=9))


@pytest.mark.parametrize("line", ['"Commuters', 'Commuters, "2026', 'x"y,"z', '"a" ,"b"'])
def test_a_quote_above_the_header_that_would_swallow_rows_is_refused(read, tmp_path, line):
    path = csv_file(tmp_path / "a.csv", [*FLOWS, ['"001"', "002", 1]], f"{line}\n")
    with pytest.raises(IngestError, match=r"the lines above the header of 'a.csv' have a quote"):
        read(TableFile(path, skip_rows=1))


def test_a_wrong_line_is_numbered_as_in_the_file(read, tmp_path):
    path = csv_file(tmp_path / "a.csv", [*FLOWS, ["001", "002"]], "title\n\n")
    with pytest.raises(IngestError, match=r"line 6 of 'a.csv' has a different number of cells"):
        read(TableFile(path, skip_rows=2))


@pytest.mark.parametrize(
    ("sheet", "says"),
    [
        ("2027", r"has no sheet '2027'; its sheets are '2025', '2026', 'blank', 'notes'"),
        ("202*", "has no sheet '202\\*'"),
        (["2025", "2026"], r"must be the name of one sheet, got \['2025', '2026'\]"),
        ("blank", "has sheet 'blank' with nothing in it"),
        ("", r"has 3 sheets, .*; say which to read \(`sheet=`\)"),
    ],
)
def test_a_sheet_that_cannot_be_found_is_refused(read, tmp_path, sheet, says):
    sheets = {"2025": FLOWS, "2026": FLOWS, "blank": [], "notes": [["made by"]]}
    path = workbook(tmp_path / "a.xlsx", **sheets)
    with pytest.raises(IngestError, match=says):
        read(TableFile(path, sheet=sheet))
    assert read(TableFile(path, sheet="2026"))


@pytest.mark.parametrize(
    ("name", "said", "says"),
    [
        ("a.csv", {"sheet": "x"}, "leave out `sheet=`"),
        ("a.xlsx", {"encoding": "utf-8"}, "leave out `encoding=`"),
        ("a.parquet", {"skip_rows": 1}, "leave out `skip_rows=`"),
        ("a.parquet", {"matrix": True}, "leave out `matrix=`"),
    ],
)
def test_what_is_said_must_fit_the_kind_of_file(read, tmp_path, name, said, says):
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(IngestError, match=says):
        read(TableFile(tmp_path / name, **said))


def test_a_zip_file_is_read_from_a_private_copy_that_goes(read, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    Path(tempfile.gettempdir()).mkdir()
    text = csv_file(tmp_path / "a.csv", FLOWS).read_text()
    seen = []

    def save(stream, copy, as_before=stores.save):
        as_before(stream, copy)
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (copy, copy.parent)]
        seen.append((copy.name, copy.parents[2], modes))

    monkeypatch.setattr(stores, "save", save)
    path = zip_file(tmp_path / "a.zip", a__csv=text, readme__pdf="", **{"__MACOSX/a.csv": "x"})
    assert read(path) == COUNTED
    assert seen == [("a.csv", tmp_path / "scratch", [0o600, 0o700])]
    inner = workbook(tmp_path / "a.xlsx", a=ROWS).read_bytes()
    path = zip_file(tmp_path / "b.zip", a__xlsx=inner)
    assert read(TableFile(path, matrix=True)) == EXPECTED
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({}, "has no table in it"),
        ({"readme__pdf": "x"}, "has no table in it"),
        ({"a__csv": "x", "b__csv": "x"}, r"has 2 tables in it \('a.csv', 'b.csv'\)"),
    ],
)
def test_a_zip_file_without_one_table_is_refused(read, tmp_path, members, says):
    with pytest.raises(IngestError, match=f"'a.zip' {says}"):
        read(zip_file(tmp_path / "a.zip", **members))


def test_a_damaged_zip_file_is_refused(read, tmp_path):
    path = zip_file(tmp_path / "a.zip", a__csv="origin,destination\n001,002\n")
    good = path.read_bytes()
    path.write_bytes(good.replace(b"001,002", b"001,003"))
    with pytest.raises(IngestError, match=r"cannot unpack 'a.zip': it is damaged"):
        read(path)
    path.write_bytes(good[:20])
    with pytest.raises(IngestError, match=r"cannot unpack 'a.zip': it is damaged"):
        read(path)


def test_a_zip_file_that_becomes_far_larger_is_refused(read, tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "_MOST_UNPACKED", 1 << 16)
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a.csv", "origin,destination\n" + "001,002\n" * 20_000)
    monkeypatch.setattr(stores, "save", None)
    with pytest.raises(IngestError, match=r"'a.zip' would unpack to 160,019 bytes.*unpack it your"):
        read(path)


def test_a_zip_file_is_never_unpacked_beyond_what_it_states(read, tmp_path):
    path = tmp_path / "a.zip"
    text = "origin,destination\n" + "001,002\n" * 20_000
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a.csv", text)
    size = len(text).to_bytes(4, "little")
    assert path.read_bytes().count(size) == 2
    path.write_bytes(path.read_bytes().replace(size, (100).to_bytes(4, "little")))
    with pytest.raises(IngestError, match="it is damaged"):
        read(path)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([*FLOWS, [datetime(2020, 1, 1), "003", 4]], "several kinds"),  # noqa: DTZ001 - as Excel
        ([["origin", None], ["001", "002"]], "without a name"),
        ([["origin", "destination", " "], ["001", "002", "003"]], "without a name"),
        ([], "no sheet"),
    ],
)
def test_a_sheet_that_cannot_be_counted_is_refused(read, tmp_path, rows, says):
    with pytest.raises(IngestError, match=says) as caught:
        read(workbook(tmp_path / "a.xlsx", a=rows))
    assert caught.value.__context__ is None


def test_a_damaged_workbook_is_refused(read, tmp_path):
    path = workbook(tmp_path / "a.xlsx", a=FLOWS)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(IngestError, match="damaged"):
        read(path)


def test_a_coloured_row_does_not_make_the_others_as_long(tmp_path):
    """Three hundred rows of 16,384 cells would take 40 MB."""
    book = openpyxl.Workbook()
    for row in [["town", "n"], *([f"{number:03d}", number] for number in range(300))]:
        book.active.append(row)
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


def test_without_the_library_it_says_what_to_install(read, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "flows.xlsx").write_bytes(b"")
    with pytest.raises(MissingExtraError, match=r"inftda-od\[xlsx\]"):
        read(tmp_path / "flows.xlsx")
