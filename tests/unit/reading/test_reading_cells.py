"""Cells: text or whole numbers, each read by itself, whatever stands in the others."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inftda.errors import IngestError
from inftda.privacy.unit import Unit
from inftda.tree.hierarchy import Hierarchy

NUMBERS = Hierarchy.read({"town": ["1", "2", "007", "1.0", "True"]})
AXES = [("town", NUMBERS)]
NOISED = Unit("add-remove")


@pytest.mark.parametrize(
    "cells",
    [
        [1, "1", "007", 2],
        pd.Series([1, "1", "007", 2], dtype=object),
        np.array([1, "1", "007", 2], dtype=object),
    ],
)
def test_text_and_whole_numbers_may_stand_in_one_column(read, cells):
    assert read({"town": cells}, axes=AXES) == {("1",): 2, ("007",): 1, ("2",): 1}


@pytest.mark.parametrize(
    "cell",
    [True, 2.5, 1e300, Decimal(1), dt.date(2026, 1, 1), b"1", [1], float("inf"), "\ud800"],
    ids=repr,
)
def test_any_other_cell_makes_the_column_unreadable(read, cell):
    for codes in ([1, cell, 2], ["1", cell, "2"]):
        with pytest.raises(IngestError, match=r"column 'town' of|1 row of") as error:
            read({"town": codes}, axes=AXES)
        assert error.value.__context__ is None
        with pytest.raises(IngestError, match=r"column 'who' of|1 row of"):
            read({"town": ["1"] * 3, "who": codes}, axes=AXES, person="who", unit=NOISED)


@pytest.mark.parametrize(
    "missing", [None, float("nan"), pytest.param(pd.NA, id="NA"), pd.NaT], ids=repr
)
def test_what_is_missing_is_missing(read, missing):
    table = {"town": ["1", missing, "007"]}
    with pytest.raises(IngestError, match="1 row of the table cannot be placed: missing town"):
        read(table, axes=AXES)
    counts = read(table, axes=AXES, unplaceable="drop", unit=NOISED)
    assert counts == {("1",): 1, ("007",): 1}


@pytest.mark.parametrize("kind", ["float64", "Float64", "Int64", "float32"])
def test_whole_numbers_with_blanks_are_understood(read, kind):
    frame = pd.DataFrame({"town": pd.Series([1, 2, None, 1], dtype=kind)})
    counts = read(frame, axes=AXES, unplaceable="drop", unit=NOISED)
    assert counts == {("1",): 2, ("2",): 1}


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_a_blank_among_whole_numbers_moves_nobody_to_another_area(read, kind):
    """As a double 2^53 + 1 is 2^53, so a column of them cannot say which of the two it is."""
    least = 2**24 if kind == pa.float32() else 2**53
    axes = [("town", Hierarchy.read({"town": [str(least - 1), str(least), str(least + 1)]}))]
    assert read({"town": pa.array([least, least + 1])}, axes=axes).keys() == {
        (str(least),),
        (str(least + 1),),
    }
    assert read({"town": pa.array([float(least - 1)], kind)}, axes=axes)
    with pytest.raises(IngestError, match="1 row of the table has a number that is not whole, or"):
        read({"town": pa.array([float(least)], kind)}, axes=axes)


@pytest.mark.parametrize(
    "kind", [pa.decimal128(5), pa.date32(), pa.timestamp("us"), pa.bool_(), pa.binary()], ids=str
)
@pytest.mark.parametrize("role", ["town", "who"])
def test_declared_types_that_are_neither_are_refused_without_a_cell(read, kind, role):
    table = pa.table({"town": ["1"], "who": ["a"]} | {role: pa.nulls(1, kind)})
    for given in (table, table.to_reader(), table.slice(0, 0)):
        with pytest.raises(IngestError, match=rf"column '{role}' .* are text or whole numbers"):
            read(given, axes=AXES, person="who", unit=NOISED)


@pytest.mark.parametrize(
    "empty",
    [
        {"town": [], "who": []},
        pd.DataFrame({"town": [], "who": []}, dtype=object),
        pd.DataFrame({"town": [], "who": []}),
        pl.DataFrame({"town": [], "who": []}),
        pa.table({"town": pa.nulls(0), "who": pa.nulls(0)}),
        pa.table({"town": pa.nulls(0), "who": pa.nulls(0)}).to_reader(),
    ],
    ids=lambda table: type(table).__name__,
)
def test_an_empty_table_in_memory_has_no_leaves(read, empty):
    assert read(empty, axes=AXES, person="who", unit=NOISED) == {}


@pytest.mark.parametrize(
    ("counts", "flaw"),
    [
        ([1, "2", " 3 "], None), ([1.0, 2, 3], None), ([Decimal(1), Decimal("2.00"), 3], None),
        ([1, None, "3"], "1 row .* no count"), ([1, float("nan"), 3], "1 row .* no count"),
        ([1, 2.5, 3], "1 row .* a fractional count"), ([1, Decimal("2.5"), 3], "a fractional"),
        ([1, float("inf"), 3], "NaN or infinity"), ([1, 2**63, "3"], "beyond"),
        ([1, "12.000", 3], "decimal point"), ([1, "1,000", 3], "a separator of thousands"),
        ([1, True, 3], "column 'count'"), ([1, b"1", "3"], "column 'count'"),
        ([1, 2.5, "3"], "column 'count'"), ([1, Decimal("1E+1000000"), 3], "column 'count'"),
    ],
)  # fmt: skip
def test_counts_without_a_type_are_read_one_by_one(read, counts, flaw):
    table = {"town": ["1", "2", "007"], "count": counts}
    if flaw is None:
        assert read(table, axes=AXES) == {("1",): 1, ("2",): 2, ("007",): 3}
        return
    with pytest.raises(IngestError, match=flaw):
        read(table, axes=AXES)


def test_columns_that_are_not_used_are_not_looked_at(read):
    odd = [object(), "\ud800"]
    assert read(pd.DataFrame({"town": ["1", "2"], "odd": odd}), axes=AXES) == {("1",): 1, ("2",): 1}


def test_a_named_index_is_a_column(read):
    assert read(pd.DataFrame({"town": ["1"], "x": [5]}).set_index("town"), axes=AXES) == {("1",): 1}


# --- folders of files


def write(folder, **columns):
    for name, cells in columns.items():
        pq.write_table(pa.table({"town": cells, "odd": cells}), folder / f"{name}.parquet")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([1], ["007"]), (["007"], [1]), ([1], [2.5]), ([1], pa.array([1], pa.int8())),
        (pa.array([1], pa.date32()), pa.array([1], pa.timestamp("us"))), ([True], [1]),
    ],
)  # fmt: skip
def test_files_of_a_folder_must_agree_in_the_types_of_columns_in_use(read, tmp_path, first, second):
    write(tmp_path, a=first, b=second)
    with pytest.raises(IngestError, match=r"'b.parquet' .* column 'town' .* the same types"):
        read(tmp_path, axes=AXES)


def test_other_columns_may_differ_in_type_and_texts_of_several_kinds_agree(read, tmp_path):
    texts = (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()))
    for i, kind in enumerate(texts):
        columns = {
            "town": pa.array(["2"]).cast(kind),
            "odd": pa.array([i], [pa.int8(), "f8"][i % 2]),
        }
        pq.write_table(pa.table(columns), tmp_path / f"{i}.parquet")
    assert read(tmp_path, axes=AXES) == {("2",): 3}


# --- messages


def test_lost_zeros_get_a_hint(read):
    zeros = Hierarchy.read({"town": ["0101", "0102", "1101"]})
    with pytest.raises(IngestError, match=r"leading zeros.* '101' would be '0101'"):
        read({"town": [101, 102]}, axes=[("town", zeros)])
    with pytest.raises(IngestError, match=r"areas lose their leading zeros\? '01101' is '1101'"):
        read({"town": ["01101"]}, axes=[("town", zeros)])
    with pytest.raises(IngestError) as error:
        read({"town": ["x01"]}, axes=[("town", zeros)])
    assert "zeros" not in str(error.value)


@pytest.mark.parametrize(
    "header", ["origin, destination", " origin ,destination", '"origin" ,destination']
)
def test_blanks_around_names_of_a_header_do_not_count(read, tmp_path, header):
    (tmp_path / "a.csv").write_text(f"{header}\n001,002\n")
    assert read(tmp_path / "a.csv") == {("001", "002"): 1}
