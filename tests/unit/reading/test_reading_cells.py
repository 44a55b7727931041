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
from inftda.hierarchy import Hierarchy
from inftda.privacy.unit import PrivacyUnit

NUMBERS = Hierarchy.read({"town": ["1", "2", "007", "1.0", "True"]})
AXES = [("town", NUMBERS)]
NOISED = PrivacyUnit("add-remove")


@pytest.mark.parametrize(
    "cells",
    [
        [1, "1", "007", np.int64(2)],
        pd.Series([1, "1", "007", 2], dtype=object),
        pd.Series([1, "1", "007", 2], dtype=object).astype("category"),
        pl.Series([1, "1", "007", 2], dtype=pl.Object),
        np.array([1, "1", "007", 2], dtype=object),
        (1.0, "1", "007", 2),
    ],
)
def test_text_and_whole_numbers_may_stand_in_one_column(read, cells):
    assert read({"town": cells}, axes=AXES) == {("1",): 2, ("007",): 1, ("2",): 1}


@pytest.mark.parametrize(
    "cell",
    [True, 2.5, 1e300, Decimal(1), dt.date(2026, 1, 1), b"1", [1], float("inf"), "\ud800"],
    ids=repr,
)
def test_any_other_cell_is_the_flaw_of_its_row(read, cell):
    for codes in ([1, cell, 2], ["1", cell, "2"]):
        with pytest.raises(IngestError, match="1 row of the table has a cell that is neither"):
            read({"town": codes}, axes=AXES)
        with pytest.raises(IngestError, match="1 row of the table has a cell that is neither"):
            read({"town": ["1"] * 3, "who": codes}, axes=AXES, person="who", unit=NOISED)


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT, np.nan], ids=repr)
def test_what_is_missing_is_missing(read, missing):
    table = {"town": [1, missing, "007"]}
    with pytest.raises(IngestError, match="1 row of the table cannot be placed: missing town"):
        read(table, axes=AXES)
    counts = read(table, axes=AXES, unplaceable="drop", unit=NOISED)
    assert counts == {("1",): 1, ("007",): 1}


@pytest.mark.parametrize("kind", ["float64", "Float64", "Int64", "float32"])
def test_whole_numbers_with_blanks_are_understood(read, kind):
    frame = pd.DataFrame({"town": pd.Series([1, 2, None, 1], dtype=kind)})
    counts = read(frame, axes=AXES, unplaceable="drop", unit=NOISED)
    assert counts == {("1",): 2, ("2",): 1}


def test_a_blank_among_whole_numbers_moves_nobody_to_another_area(read):
    """As a double 2^53 + 1 is 2^53, so a column with a blank cannot say which of the two it is."""
    codes = [2**53, 2**53 + 1]
    axes = [("town", Hierarchy.read({"town": [str(code) for code in codes]}))]
    assert len(read(pd.DataFrame({"town": codes}), axes=axes)) == 2
    with pytest.raises(IngestError, match="of the table ha"):
        read(pd.DataFrame({"town": [*codes, None]}), axes=axes)


@pytest.mark.parametrize("odd", [2.5, 2.0**60, float("inf")])
def test_other_numbers_among_them_are_flaws_of_their_rows(read, odd):
    with pytest.raises(IngestError, match="1 row of the table has a cell that is neither"):
        read(pd.DataFrame({"town": [1, 2, odd, None]}), axes=AXES)


@pytest.mark.parametrize(
    "kind",
    [pa.float64(), pa.decimal128(5), pa.date32(), pa.timestamp("us"), pa.bool_(), pa.binary()],
    ids=str,
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


def test_counts_without_a_type_are_read_one_by_one(read):
    towns = Hierarchy.read({"town": [*"abcdef"]})
    counts = [1, "2", 3.0, Decimal("4.00"), " 5 ", np.int8(6)]
    found = read({"town": [*"abcdef"], "count": counts}, axes=[("town", towns)])
    assert found == {(code,): i for i, code in enumerate("abcdef", start=1)}


@pytest.mark.parametrize(
    ("cell", "flaw"),
    [
        (None, "no count"), (float("nan"), "no count"), (2.5, "a fractional count"),
        (Decimal("2.5"), "a fractional count"), (-1, "a negative count"), (-0.5, "a negative"),
        (float("inf"), "NaN or infinity"), (2**63, "beyond"), (Decimal("1E+1000000"), "beyond"),
        (1e300, "beyond"), ("12.000", "decimal point"), ("1,000", "without separators"),
        (True, "neither"), (dt.date(2026, 1, 1), "neither"), (b"1", "neither"),
    ],
)  # fmt: skip
def test_counts_without_a_type_have_flaws_of_their_own(read, cell, flaw):
    with pytest.raises(IngestError, match=f"1 row of the table has .*{flaw}"):
        read({"town": ["1", "2", "1"], "count": [1, cell, "3"]}, axes=AXES)


def test_columns_that_are_not_used_are_not_looked_at(read):
    odd = [object(), "\ud800"]
    assert read(pd.DataFrame({"town": ["1", "2"], "odd": odd}), axes=AXES) == {("1",): 1, ("2",): 1}


def test_a_named_index_is_a_column(read):
    assert read(pd.DataFrame({"town": ["1"], "x": [5]}).set_index("town"), axes=AXES) == {("1",): 1}


# --- folders of files


def write(folder, **columns):
    for name, cells in columns.items():
        pq.write_table(pa.table({"town": cells}), folder / f"{name}.parquet")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([1], ["007"]), (["007"], [1]), ([1], [2.5]), ([1], [Decimal("2.5")]),
        (pa.array([1], pa.date32()), pa.array([1], pa.timestamp("us"))), ([True], [1]),
    ],
)  # fmt: skip
def test_files_of_a_folder_must_agree_in_the_types_of_columns_in_use(read, tmp_path, first, second):
    write(tmp_path, a=first, b=second)
    with pytest.raises(IngestError, match=r"'b.parquet' .* column 'town' .* the same types"):
        read(tmp_path, axes=AXES)


def test_integers_of_several_widths_and_texts_of_several_kinds_agree(read, tmp_path):
    kinds = (pa.int8(), pa.int64(), pa.uint64(), pa.int32())
    write(tmp_path, **{f"a{i}": pa.array([2], kind) for i, kind in enumerate(kinds)})
    assert read(tmp_path, axes=AXES) == {("2",): 4}
    (tmp_path / "text").mkdir()
    texts = (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()))
    write(tmp_path / "text", **{f"a{i}": pa.array(["2"]).cast(k) for i, k in enumerate(texts)})
    assert read(tmp_path / "text", axes=AXES) == {("2",): 3}


def test_a_large_number_in_a_later_file_is_no_failure(read, tmp_path):
    write(tmp_path, a=pa.array([1], pa.int8()), b=[10**12])
    counts = read(tmp_path, axes=AXES, unplaceable="drop", unit=NOISED)
    assert counts == {("1",): 1}


# --- messages


def test_lost_zeros_get_a_hint(read):
    zeros = Hierarchy.read({"town": ["0101", "0102", "1101"]})
    with pytest.raises(IngestError, match=r"leading zeros.* '101' would be '0101'"):
        read({"town": [101, 102]}, axes=[("town", zeros)])
    with pytest.raises(IngestError) as error:
        read({"town": ["x01"]}, axes=[("town", zeros)])
    assert "zeros" not in str(error.value)


@pytest.mark.parametrize(
    "header", ["origin, destination", " origin ,destination", '"origin" ,destination']
)
def test_blanks_around_names_of_a_header_do_not_count(read, tmp_path, header):
    (tmp_path / "a.csv").write_text(f"{header}\n001,002\n")
    assert read(tmp_path / "a.csv") == {("001", "002"): 1}


def test_messages_name_the_options(read):
    with pytest.raises(IngestError, match=r"--unplaceable.*unplaceable="):
        read({"origin": ["x"], "destination": ["001"]})
    with pytest.raises(IngestError, match=r"--origin, --destination .*origin="):
        read({"home": ["x"], "work": ["001"]})
    with pytest.raises(IngestError, match="--person"):
        read({"origin": ["x"], "destination": ["001"]}, person="who", unit=NOISED)
