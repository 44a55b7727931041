"""Where tables come from: files, folders, globs, tables of other libraries, and none at all."""

import os

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inftda.errors import IngestError
from inftda.reading import Columns, read_leaves, rows
from inftda.tree import Axis

FLOWS = {"origin": ["001", "003"], "destination": ["002", "001"], "count": [3, 5]}
EXPECTED = {("001", "002"): 3, ("003", "001"): 5}


def write(path, columns=FLOWS):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


class OnlyStream:
    """A table of a library that is known by its Arrow stream alone."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "make",
    [
        pd.DataFrame,
        pl.DataFrame,
        pa.table,
        lambda columns: OnlyStream(pa.table(columns)),
        lambda columns: pa.table(columns).to_reader(),
        pa.RecordBatch.from_pydict,
        lambda columns: pl.DataFrame(columns).with_columns(pl.col("origin").cast(pl.Categorical)),
        lambda columns: pd.DataFrame(columns).astype({"origin": "category"}),
        lambda columns: pd.DataFrame(columns).astype({"origin": object, "count": float}),
    ],
)
def test_tables_of_any_library_are_read(read, make):
    assert read(make(FLOWS)) == EXPECTED


def test_a_dataframe_that_cannot_be_read_is_an_error_without_its_cells(read):
    frame = pd.DataFrame(FLOWS | {"count": pd.Series([1, "secret"], dtype=object)})
    with pytest.raises(IngestError, match="1 row of the table has text that is") as error:
        read(frame)
    assert "secret" not in str(error.value)
    assert error.value.__context__ is None
    frame = pd.DataFrame(FLOWS | {"origin": pd.Series(pd.period_range("2001", periods=2))})
    with pytest.raises(IngestError, match="column 'origin' of the table") as error:
        read(frame)
    assert "secret" not in str(error.value)
    assert error.value.__context__ is None


def test_something_that_is_no_table_is_refused(read):
    with pytest.raises(IngestError, match="cannot read trips from a int"):
        read(42)
    with pytest.raises(IngestError, match="has no columns"):
        read(pa.table({}))


def test_parquet_codes_may_be_bytes_that_are_utf8(read, tmp_path):
    columns = FLOWS | {"origin": pa.array([b"001", b"003"])}
    assert read(write(tmp_path / "a.parquet", columns)) == EXPECTED


def test_a_folder_is_read_as_one_table_without_hidden_and_other_files(read, tmp_path):
    write(tmp_path / "part-0.parquet")
    write(tmp_path / "deep" / "part-1.parquet")
    write(tmp_path / "_temporary" / "part-2.parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".part-0.parquet.crc").write_bytes(b"x")
    (tmp_path / "readme.md").write_text("not data")
    assert read(tmp_path, repeated_rows="add") == {key: 2 * n for key, n in EXPECTED.items()}


def test_a_glob_is_read_as_one_table(read, tmp_path):
    for name in ("a1", "a2", "b1"):
        write(tmp_path / f"{name}.parquet")
    twice = read(str(tmp_path / "a*.parquet"), repeated_rows="add")
    assert twice == {key: 2 * n for key, n in EXPECTED.items()}
    assert read(str(tmp_path / "**" / "b?.parquet")) == EXPECTED


def test_a_path_with_wildcards_and_quotes_in_its_name_stands_for_itself(read, tmp_path):
    path = write(tmp_path / "l'anno [20*1?]" / "f'[ab].parquet")
    write(tmp_path / "l'anno [20*1?]" / "f'a.parquet", FLOWS | {"count": [100, 100]})
    assert read(path) == EXPECTED


def test_codes_in_folder_names_keep_their_zeros(read, tmp_path):
    columns = {name: FLOWS[name][:1] for name in ("destination", "count")}
    write(tmp_path / "origin=001" / "x.parquet", columns)
    assert read(tmp_path) == {("001", "002"): 3}


def test_parquet_columns_are_found_by_exact_name_beside_nested_ones(read, tmp_path):
    nested = pa.array([{"origin": "003", "x": [1]}] * 2)
    columns = {"trip": nested, "Origin": ["002", "002"], **FLOWS}
    assert read(write(tmp_path / "a.parquet", columns)) == EXPECTED


@pytest.mark.parametrize("damage", ["cut", b"hello", b""])
def test_a_damaged_parquet_file_is_one_clear_error(read, tmp_path, damage):
    path = write(tmp_path / "a.parquet")
    path.write_bytes(path.read_bytes()[:-20] if damage == "cut" else damage)
    with pytest.raises(IngestError, match=r"cannot read 'a.parquet' as Parquet.*damaged") as error:
        read(path)
    assert error.value.__context__ is None


def test_parquet_that_refers_to_another_file_is_refused(read, tmp_path):
    """The columns of an untrusted file are in that file, not in one that it names."""
    footers = []
    pq.write_table(pa.table(FLOWS), tmp_path / "secret.parquet", metadata_collector=footers)
    footers[0].set_file_path("secret.parquet")
    footers[0].write_metadata_file(tmp_path / "a.parquet")
    with pytest.raises(IngestError, match=r"cannot read 'a.parquet' as Parquet"):
        read(tmp_path / "a.parquet")


def test_parquet_files_with_different_columns_are_one_clear_error(read, tmp_path):
    write(tmp_path / "a.parquet")
    write(tmp_path / "b.parquet", {"origin": ["001"]})
    with pytest.raises(IngestError, match=r"'b.parquet' has a different header from 'a.parquet'"):
        read(tmp_path)


def test_a_frame_that_is_not_computed_yet_must_be_collected(read):
    frame = pl.LazyFrame(FLOWS)
    with pytest.raises(IngestError, match=r"a LazyFrame .*; collect\(\) it first"):
        read(frame)
    assert read(frame.collect()) == EXPECTED


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_one_clear_error(read, tmp_path):
    path = write(tmp_path / "a.parquet")
    path.chmod(0)
    with pytest.raises(IngestError, match="not readable"):
        read(path)


def test_a_python_variable_is_never_taken_for_a_table(read):
    flows = pa.table(FLOWS)
    assert flows.num_rows
    with pytest.raises(IngestError, match="there is no file 'flows'"):
        read("flows")


def test_a_stream_that_breaks_off_is_one_clear_error_without_what_it_says(read):
    schema = pa.table(FLOWS).schema

    def batches():
        yield from pa.table(FLOWS).to_batches()
        raise ValueError("secret 12345")

    with pytest.raises(IngestError, match="cannot read the table") as error:
        read(pa.RecordBatchReader.from_batches(schema, batches()))
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("kind", [pa.float16(), pa.decimal256(50, 1), pa.list_(pa.float16())])
@pytest.mark.parametrize("as_given", [lambda table: table, pa.Table.to_reader])
def test_arrow_types_that_duckdb_does_not_know(read, kind, as_given):
    """A column of such a type is refused by its name, and no matter if nobody needs it."""
    ends = {"origin": pa.array(["001"]), "destination": pa.array(["002"])}
    strange = pa.nulls(1, kind)
    with pytest.raises(IngestError, match="column 'destination' of the table"):
        read(as_given(pa.table(ends | {"destination": strange})))
    assert read(as_given(pa.table({"note": strange} | ends))) == {("001", "002"): 1}


def test_of_very_many_rows_those_of_one_leaf_are_added_up_while_reading(read, towns, monkeypatch):
    table = {"origin": ["001", "002"] * 3, "destination": ["003"] * 6, "count": range(1, 7)}
    expected = {("001", "003"): 9, ("002", "003"): 12}
    axes = (Axis("origin", towns), Axis("destination", towns))
    assert len(read_leaves(pa.table(table), Columns(), axes).value) == 6
    monkeypatch.setattr(rows, "MANY", 5)
    assert len(read_leaves(pa.table(table), Columns(), axes).value) == 2
    assert read(pa.table(table)) == expected
