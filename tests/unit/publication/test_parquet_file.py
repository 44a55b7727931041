"""Honest Parquet files, however they are packed, are read; see also the forged ones."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inftda.errors import ReleaseError
from inftda.publication.pages import is_answerable, walk
from inftda.publication.parquet_file import Shape, opened, row_groups

NUMBERS = Shape("numbers", (pa.field("flow", pa.int64()),), (0,), (0,))


@pytest.mark.parametrize("n_rows", [0, 1, 100, 131_072, 200_000])
@pytest.mark.parametrize("is_listed", [True, False])
def test_numbers_that_are_all_different_are_read(tmp_path, n_rows, is_listed):
    table = pa.table({"flow": np.arange(n_rows) * 1_000_003})
    options = {"compression": "zstd", "use_dictionary": is_listed}
    pq.write_table(table, path := tmp_path / "numbers.parquet", **options)
    with opened(path, NUMBERS) as file:
        assert sum(len(rows) for rows in row_groups(file, NUMBERS)) == n_rows


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_texts_of_any_length_are_read_in_pages_of_any_kind(tmp_path, version):
    texts = ["a", "b" * 5_000, "c"]
    shape = Shape("texts", (pa.field("area", pa.string()),), (5_014,), (5_000,))
    path = tmp_path / "texts.parquet"
    table = pa.table({"area": texts * 700})
    pq.write_table(table, path, compression="zstd", data_page_version=version, data_page_size=64)
    with opened(path, shape) as file:
        assert sum(len(rows) for rows in row_groups(file, shape)) == 2_100


@pytest.mark.parametrize("content", [b"", b"\x15", b"\x00" * 40, b"\xff" * 40, b"\x1c" * 40])
def test_what_is_no_page_is_refused(tmp_path, content):
    (path := tmp_path / "pages").write_bytes(content)
    with path.open("rb") as file, pytest.raises(ValueError, match=r"\w"):
        walk(file, 0, 40, longest=1)


def test_a_footer_that_counts_other_rows_than_its_pages_is_refused(tmp_path):
    path = tmp_path / "numbers.parquet"
    pq.write_table(pa.table({"flow": range(50)}), path, compression="zstd", use_dictionary=False)
    content = path.read_bytes()
    start = content.index(b"\x2c\x15\x64")  # of a data page: 50 values
    path.write_bytes(content[: start + 2] + b"\x62" + content[start + 3 :])
    with pytest.raises(ReleaseError, match="belong to none"), opened(path, NUMBERS):
        pass


def test_statistics_of_a_page_have_no_room_for_sentences(tmp_path):
    texts = ["a", "as of May 17 people went from 1 to 2"]
    path = tmp_path / "texts.parquet"
    pq.write_table(pa.table({"area": texts}), path, compression="zstd")
    shape = Shape("texts", (pa.field("area", pa.string()),), (60,), (8,))
    with pytest.raises(ReleaseError, match="cannot be read"), opened(path, shape):
        pass


def test_a_column_of_two_types_is_refused_before_arrow_ends_the_process(tmp_path):
    path = tmp_path / "numbers.parquet"
    pq.write_table(pa.table({"flow": range(50)}), path, compression="zstd", use_dictionary=False)
    content = path.read_bytes()
    start = len(content) - 8 - pq.read_metadata(path).serialized_size
    assert is_answerable(content[start:-8])
    before, _, after = content.rpartition(b"\x1c\x15\x04\x19")  # of a column chunk: INT64
    assert len(before) > start
    path.write_bytes(before + b"\x1c\x15\x02\x19" + after)
    assert not is_answerable(path.read_bytes()[start:-8])
    with pytest.raises(ReleaseError, match="cannot be read"), opened(path, NUMBERS):
        pass
    with pytest.raises(ValueError, match="cut off"):
        is_answerable(content[start:-20])


@pytest.mark.parametrize("codec", [b"\x7a", b"\x0d"])
def test_an_unknown_compression_is_refused_before_arrow_ends_the_process(tmp_path, codec):
    path = tmp_path / "numbers.parquet"
    pq.write_table(pa.table({"flow": range(50)}), path, compression="zstd", use_dictionary=False)
    before, found, after = path.read_bytes().rpartition(b"\x15\x0c\x16")  # of a chunk: ZSTD
    assert found
    path.write_bytes(before + b"\x15" + codec + b"\x16" + after)
    with pytest.raises(ReleaseError, match="cannot be read"), opened(path, NUMBERS):
        pass
