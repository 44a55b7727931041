"""CSV files as they come: separators, quotes, encodings, compression, and broken ones."""

import traceback

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inftda.errors import IngestError
from inftda.reading import TableFile, sources
from inftda.tree.hierarchy import Hierarchy

EXPECTED = {("001", "002"): 3, ("003", "001"): 5}
TEXT = "origin,destination,count\n001,002,3\n003,001,5\n"


def write(path, text, encoding="utf-8"):
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_usual_separators_and_line_ends_are_recognised(read, tmp_path, separator, line_end):
    text = TEXT.replace(",", separator).replace("\n", line_end)
    assert read(write(tmp_path / "a.CSV", text)) == EXPECTED
    text = TEXT.replace(",", ":").replace("\n", line_end)
    assert read(TableFile(write(tmp_path / "a.tsv", text), delimiter=":")) == EXPECTED


def test_a_byte_order_mark_is_no_part_of_the_first_name(read, tmp_path):
    assert read(write(tmp_path / "a.csv", TEXT, "utf-8-sig")) == EXPECTED


def test_a_last_line_without_end_and_blank_lines_are_fine(read, tmp_path):
    assert read(write(tmp_path / "a.csv", TEXT.replace("\n", "\n\n").rstrip())) == EXPECTED


def test_quoted_separators_quotes_and_line_ends_are_part_of_the_code(read, tmp_path):
    odd = Hierarchy.read({"town": ["a,b", 'say "c"', "d\ne"]})
    text = '"origin","n, of trips"\n"a,b",1\n"say ""c""",2\n"d\ne",3\n'
    counts = read(write(tmp_path / "a.csv", text), axes=[("origin", odd)], count="n, of trips")
    assert counts == {("a,b",): 1, ('say "c"',): 2, ("d\ne",): 3}


def test_a_cell_of_megabytes_is_read_and_one_beyond_the_limit_is_said_to_be_too_long(
    read, tmp_path, monkeypatch
):
    text = f'origin,destination,note\n001,002,x\n001,002,"{"x" * 5_000_000}"\n001,002,x\n'
    path = write(tmp_path / "a.csv", text)
    assert read(path) == {("001", "002"): 3}
    monkeypatch.setattr(sources, "MAX_LINE", 3_000_000)
    with pytest.raises(IngestError, match=r"line 3 of 'a.csv' is longer than 3 MB; shorten"):
        read(path)


def test_nothing_is_guessed_from_the_first_rows(read, tmp_path):
    numbers = Hierarchy.read({"town": ["1", "01", "2020-01-01", "true", "x"]})
    codes = ["1"] * 30_000 + ["01", "2020-01-01", "true", '"x"']
    text = "origin\n" + "\n".join(codes)
    counts = read(write(tmp_path / "a.csv", text), axes=[("origin", numbers)])
    assert counts == {("1",): 30_000, ("01",): 1, ("2020-01-01",): 1, ("true",): 1, ("x",): 1}


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_other_encodings_can_be_said(read, tmp_path, encoding):
    accents = Hierarchy.read({"town": ["Forlì", "Agliè"]})
    path = write(tmp_path / "a.csv", "città;n\nForlì;1\nAgliè;2\n", encoding)
    source = TableFile(path, encoding=encoding)
    assert read(source, axes=[("città", accents)], count="n") == {("Forlì",): 1, ("Agliè",): 2}


def test_the_wrong_encoding_is_one_clear_error_near_the_top_and_far_down(read, tmp_path):
    for n in (0, 100_000):
        text = "origin,destination\n" + "001,002\n" * n + "Forlì,002\n"
        path = write(tmp_path / "a.csv", text, "latin-1")
        with pytest.raises(IngestError, match=r"'a.csv' is not utf-8 text; give its") as error:
            read(path)
        assert error.value.__cause__ is None


@pytest.mark.parametrize(
    ("name", "known"),
    [("UTF-8", "utf-8"), ("utf8", "utf-8"), ("UTF16", "utf-16"), ("ISO-8859-1", "latin-1")],
)
def test_an_encoding_may_go_by_its_other_names(tmp_path, name, known):
    assert TableFile(tmp_path / "a.csv", encoding=name).encoding == known


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_parquet_that_is_read_as_text_is_refused_and_not_shown(read, tmp_path, name, encoding):
    pq.write_table(pa.table({"origin": ["Anna"], "destination": ["002"]}), tmp_path / name)
    with pytest.raises(IngestError, match=name) as caught:
        read(TableFile(tmp_path / name, encoding=encoding))
    assert "Anna" not in str(caught.value)


def test_an_encoding_nobody_knows_is_refused_before_reading(tmp_path):
    with pytest.raises(IngestError, match="one of utf-8, utf-16, latin-1, got 'cp1252'"):
        TableFile(tmp_path / "a.csv", encoding="cp1252")
    with pytest.raises(IngestError, match="one character"):
        TableFile(tmp_path / "a.csv", delimiter="::")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("id777,3", "line 3 of 'a.csv' has a different number of cells"),
        ("001,id777,3,4", "line 3 of 'a.csv' has a different number of cells"),
        ('"id777,002,3', "line 3 of 'a.csv' opens a quote"),
        ('"001"id777,002,3', "line 3 of 'a.csv'"),
    ],
)
def test_a_broken_line_is_named_by_number_and_never_quoted(read, tmp_path, row, message):
    path = write(tmp_path / "a.csv", f"origin,destination,count\n001,002,3\n{row}\n001,002,3\n")
    with pytest.raises(IngestError) as error:
        read(path)
    assert message in str(error.value)
    assert "id777" not in "".join(traceback.format_exception(error.value))
    assert error.value.__context__ is None


def test_a_line_without_end_is_no_header(read, tmp_path):
    with pytest.raises(IngestError, match="has no end"):
        read(write(tmp_path / "a.csv", "x" * 2_000_000))


@pytest.mark.parametrize(
    "line", ["anna@example.org,001,002,17", "anna@example.org;Oregon;Arizona;17", "17"]
)
def test_a_first_line_that_is_no_header_is_not_shown(read, tmp_path, line):
    path = write(tmp_path / "a.csv", f"{line}\n")
    with pytest.raises(IngestError, match="no column 'origin' or 'destination'; if its") as error:
        read(path)
    assert not [cell for cell in line.replace(";", ",").split(",") if cell in str(error.value)]


def test_a_header_in_capitals_is_recognised_as_one(read, tmp_path):
    path = write(tmp_path / "a.csv", "PERSON,ORIGIN,DESTINATION\nanna,001,002\n")
    with pytest.raises(IngestError, match=r"did you mean 'ORIGIN'\?$"):
        read(path)


@pytest.mark.parametrize("line", ["home,destination,day", "home,work,count"])
def test_the_columns_are_listed_if_one_of_them_was_asked_for(read, tmp_path, line):
    path = write(tmp_path / "a.csv", f"{line}\n001,002,3\n")
    with pytest.raises(IngestError, match="Its columns are 'home', "):
        read(path)


def test_files_of_a_folder_need_the_same_header(read, tmp_path):
    write(tmp_path / "a.csv", TEXT)
    write(tmp_path / "b.csv", TEXT)
    assert read(tmp_path, repeated_rows="add") == {key: 2 * n for key, n in EXPECTED.items()}
    write(tmp_path / "c.csv", "destination,origin,count\n001,002,3\n")
    with pytest.raises(IngestError, match=r"'c.csv' has a different header from 'a.csv'"):
        read(tmp_path)
