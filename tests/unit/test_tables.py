"""Reading small public tables: whatever kind comes in, codes come out as written."""

import gzip
import socket
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inftda.errors import HierarchyError
from inftda.util import tabular as tables
from inftda.util.tabular import as_numpy, distinct, read_strings

CODES = {"region": ["01", "01", "02"], "town": ["001001", "001002", "002001"]}
TEXT = "region,town\n01,001001\n01,001002\n02,002001\n"


def read(source, **options):
    return read_strings(source, what="areas table", error=HierarchyError, **options)


def read_text(folder, text, name="areas.csv"):
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read(path).to_pydict()


def arrays(make):
    """A table of Arrow with each column made anew."""
    return lambda codes: pa.table({name: make(pa.array(column)) for name, column in codes.items()})


LIBRARIES = {
    "mapping": dict,
    "numpy": lambda codes: {name: np.array(column) for name, column in codes.items()},
    "pandas": pd.DataFrame,
    "pandas objects": lambda codes: pd.DataFrame(codes, dtype=object),
    "pandas categories": lambda codes: pd.DataFrame(codes).astype("category"),
    "polars": pl.DataFrame,
    "polars categories": lambda codes: pl.DataFrame(codes).cast(pl.Categorical),
    "pyarrow": pa.table,
    "pyarrow batch": lambda codes: pa.table(codes).to_batches()[0],
    "pyarrow stream": lambda codes: pa.table(codes).to_reader(1),
    "large strings": arrays(lambda column: column.cast(pa.large_string())),
    "string views": arrays(lambda column: column.cast(pa.string_view())),
    "dictionaries": arrays(pa.Array.dictionary_encode),
}


@pytest.mark.parametrize("make", LIBRARIES.values(), ids=LIBRARIES)
def test_tables_of_every_library_give_the_same_strings(make):
    table = read(make(CODES))
    assert table.to_pydict() == CODES
    assert table.schema.types == [pa.string(), pa.string()]


def test_rows_filtered_with_pandas_do_not_bring_their_index():
    frame = pd.DataFrame({"region": list("aabb"), "town": list("1234")})
    filtered = frame[[True, True, False, True]]
    assert read(filtered).to_pydict() == {"region": ["a", "a", "b"], "town": ["1", "2", "4"]}


def test_an_index_with_a_name_is_a_column():
    assert read(pd.DataFrame(CODES).set_index("town")).to_pydict() == CODES


def test_a_folder_named_like_a_partition_adds_no_column(tmp_path):
    folder = tmp_path / "year=2024"
    folder.mkdir()
    pq.write_table(pa.table(CODES), folder / "areas.parquet")
    assert read(str(folder / "areas.parquet")).to_pydict() == CODES


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("areas.csv", TEXT, id="plain"),
        pytest.param("AREAS.CSV", TEXT, id="upper case ending"),
        pytest.param("areas.csv.gz", gzip.compress(TEXT.encode()), id="gzip"),
        pytest.param("areas.csv", "\ufeff" + TEXT, id="byte order mark"),
        pytest.param("areas.csv", '\ufeff"region"' + TEXT[6:], id="byte order mark and quotes"),
        pytest.param(
            "areas.csv.gz", gzip.compress(("\ufeff" + TEXT).encode()), id="byte order mark in gzip"
        ),
        pytest.param("areas.csv", TEXT.replace("\n", "\r\n"), id="windows line ends"),
        pytest.param("areas.csv", TEXT.rstrip(), id="no line end at the end"),
        pytest.param("areas.csv", TEXT + "\n\n", id="blank lines at the end"),
        pytest.param("areas.csv", TEXT.replace(",", ";"), id="semicolons"),
        pytest.param("areas.txt", TEXT.replace(",", "|"), id="bars"),
        pytest.param("areas.tsv", TEXT.replace(",", "\t"), id="tabs"),
        pytest.param("areas.csv", TEXT.replace("region,town", "region, town"), id="spaced header"),
        pytest.param(
            "areas.csv",
            "\n".join(",".join(f'"{c}"' for c in line.split(",")) for line in TEXT.split()),
            id="all quoted",
        ),
        pytest.param("a[1]*?'.csv", TEXT, id="pattern characters in the file name"),
    ],
)
def test_text_files_of_every_kind_give_the_same_strings(tmp_path, name, content):
    assert read_text(tmp_path, content, name) == CODES


@pytest.mark.parametrize(
    "code",
    ["001", "1e5", "1.50", "+7", "NA", "NULL", "nan", "true", "2020-01-01", " 1", "1 ", "#1"],
)
def test_codes_in_text_files_stay_as_written(tmp_path, code):
    assert read_text(tmp_path, f"region,town\nN,{code}\nN,x\n")["town"] == [code, "x"]


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ('"a,b"', "a,b"),
        ('"a ""b"" c"', 'a "b" c'),
        ('"a\nb"', "a\nb"),
        ("'s-Gravenhage", "'s-Gravenhage"),
        ("'001'", "'001'"),
        ("a;b|c", "a;b|c"),
        ("a\\b", "a\\b"),
        ("Vallée d'Aoste", "Vallée d'Aoste"),
    ],
)
def test_only_double_quotes_quote(tmp_path, cell, code):
    assert read_text(tmp_path, f"region,town\nN,{cell}\nS,{cell}x\n")["town"][0] == code


def test_one_column_is_not_split_at_what_its_codes_contain(tmp_path):
    assert read_text(tmp_path, "town\na;b\nc;d\n") == {"town": ["a;b", "c;d"]}


@pytest.mark.parametrize(
    ("row", "number"), [("S\n", 3), ("S,003,x\n", 3), ("S,003\n" * 5000 + "S\n", 5003)]
)
def test_a_row_with_too_few_or_too_many_cells_is_named(tmp_path, row, number):
    with pytest.raises(HierarchyError, match=rf"areas\.csv.*Row #{number}: Expected 2 columns"):
        read_text(tmp_path, f"region,town\nN,001\n{row}S,004\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("", "first line is blank; start it with the names", id="empty"),
        pytest.param("\n" + TEXT, "first line is blank", id="blank first line"),
        pytest.param('region,town\nN,"001\nS,002\n', "is not closed; close it", id="open quote"),
        pytest.param("region,town\nÉ,1\n".encode("latin-1"), "save it as UTF-8", id="latin-1"),
        pytest.param(TEXT.encode("utf-16"), "save it as UTF-8", id="utf-16"),
    ],
)
def test_text_that_cannot_be_read_gets_a_reason(tmp_path, content, message):
    with pytest.raises(HierarchyError, match=rf"areas\.csv.*areas table.*{message}"):
        read_text(tmp_path, content)


@pytest.mark.parametrize("source", [None, 7, [{"town": "1"}]])
def test_what_is_no_table_is_refused_with_what_would_be_one(source):
    with pytest.raises(HierarchyError, match=r"areas table is a .*CSV, Parquet, .*pandas"):
        read(source)


def test_decimal_numbers_are_refused_because_they_lose_codes():
    with pytest.raises(HierarchyError, match=r"'town' of the areas table.*read it as text"):
        read(pd.DataFrame({"town": [1, None]}))


@pytest.mark.parametrize(
    "values", [[[1], [2]], [{"a": 1}, {"a": 2}], [b"\xff", b"a"]], ids=["list", "struct", "bytes"]
)
def test_cells_that_are_no_codes_are_refused_with_their_column(values):
    with pytest.raises(HierarchyError, match=r"'town' of the areas table.*text or whole numbers"):
        read(pa.table({"town": values}))


@pytest.mark.parametrize("columns", [{"a": ["1"], "b": ["1", "2"]}, {"a": ["1", 2]}])
def test_a_mapping_that_makes_no_table_is_refused(columns):
    with pytest.raises(HierarchyError, match="cannot read the areas table"):
        read(columns)


def test_only_the_chosen_columns_are_read_in_the_chosen_order():
    table = read({**CODES, "population": [1.5, 2.5, 3.5], "n": [7, 8, 9]}, columns=["n", "region"])
    assert table.to_pydict() == {"n": ["7", "8", "9"], "region": ["01", "01", "02"]}


@pytest.mark.parametrize(
    ("names", "columns", "says"),
    [
        (["town", "town"], None, r"'town'.*twice"),
        (["town", "town"], ["town"], r"'town'.*twice"),
        (["region", "town"], ["town", "town"], r"'town'.*twice"),
        (["region", "town"], ["regoin"], "no column 'regoin'; it has region, town"),
    ],
)
def test_columns_that_cannot_be_chosen_are_named(names, columns, says):
    with pytest.raises(HierarchyError, match=says):
        read(pa.table([[1], [2]], names=names), columns=columns)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("sign", ["", "u"])
def test_whole_numbers_become_numpys_of_the_same_kind(sign, bits):
    kind = f"{sign}int{bits}"
    whole = pa.array([7, 8, 9, 10], kind)
    for array in (whole, whole[1:3], whole[4:], pa.array([], kind)):
        values = as_numpy(array)
        assert values.dtype == np.dtype(kind)
        assert values.tolist() == array.to_pylist()
    assert as_numpy(whole).ctypes.data == whole.buffers()[1].address, "not copied"


# Workbooks of Excel


def workbook(folder, more_rows="", more_files=()):
    """A small table, and what somebody put into the file besides."""
    openpyxl = pytest.importorskip("openpyxl", reason="workbooks need the extra xlsx")
    book = openpyxl.Workbook()
    for row in (["region", "town"], ["N", "001"], ["S", "002"]):
        book.active.append(row)
    book.save(folder / "plain.xlsx")
    with (
        zipfile.ZipFile(folder / "plain.xlsx") as plain,
        zipfile.ZipFile(folder / "areas.xlsx", "w", zipfile.ZIP_DEFLATED) as changed,
    ):
        for name in plain.namelist():
            text = plain.read(name)
            if name == "xl/worksheets/sheet1.xml":
                text = text.replace(b"</sheetData>", more_rows.encode() + b"</sheetData>")
            changed.writestr(name, text)
        for name, text in more_files:
            changed.writestr(name, text)
    return folder / "areas.xlsx"


FAR = '<row r="30000000"><c r="A30000000" t="inlineStr"><is><t>N</t></is></c></row>'


@pytest.mark.parametrize(
    ("more_rows", "limit"),
    [(FAR, {}), ("", {"MOST_ROWS": 2}), ("", {"MOST_CELLS": 5}), ("", {"MOST_BYTES": 1000})],
)
def test_a_workbook_with_more_than_excel_can_hold_is_refused(
    tmp_path, monkeypatch, more_rows, limit
):
    """A megabyte can unpack to thirty million rows; no more is read than a sheet can have."""
    for name, value in limit.items():
        monkeypatch.setattr(tables, name, value)
    with pytest.raises(HierarchyError, match="locked by a password, too large"):
        read(workbook(tmp_path, more_rows))


def test_links_of_a_workbook_are_not_followed(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    link = '<externalLink xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"/>'
    path = workbook(tmp_path, more_files=[("xl/externalLinks/externalLink1.xml", link)])
    assert read(path).to_pydict() == {"region": ["N", "S"], "town": ["001", "002"]}


def test_rows_are_told_apart_whatever_their_columns_are_called():
    table = pa.table({"../x": ["a", "a", "b"], "[0]": ["1", "1", "1"]})
    assert distinct(table).to_pydict() == {"../x": ["a", "b"], "[0]": ["1", "1"]}
