import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from inftda.reports.packing import Pack, varints, zigzag


def read_varints(content):
    out, value, shift = [], 0, 0
    for byte in content:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            out.append(value)
            value = shift = 0
    return out


@given(npst.arrays(np.int64, st.integers(0, 40), elements=st.integers(0, 2**60)))
def test_numbers_come_back_as_they_were(values):
    assert read_varints(varints(values)) == values.tolist()


@given(npst.arrays(np.int64, st.integers(0, 40), elements=st.integers(-(2**60), 2**60)))
def test_signed_numbers_come_back_as_they_were(values):
    codes = zigzag(values).tolist()
    assert min(codes, default=0) >= 0
    assert [-(c + 1) // 2 if c % 2 else c // 2 for c in codes] == values.tolist()


def test_small_numbers_take_one_byte():
    assert len(varints(np.arange(128))) == 128


@pytest.mark.parametrize("signed", [False, True])
def test_flows_come_back_whatever_their_order(unpacked, signed):
    random = np.random.default_rng(1)
    cells = random.permutation(20 * 15)[:120]
    row, column = cells // 15, cells % 15
    value = random.integers(1, 1000, 120) * (random.choice([-1, 1], 120) if signed else 1)
    pack = Pack({})
    pack.add_flows(20, (row, column), value)
    header, sections = unpacked(pack.text())
    assert header["flows"] == {"n": 120, "signed": signed}
    counts = read_varints(sections["flows-rows"])
    gaps, values = read_varints(sections["flows-gaps"]), read_varints(sections["flows-values"])
    found, at = {}, 0
    for r, count in enumerate(counts):
        c = 0
        for _ in range(count):
            c += gaps[at]
            code = values[at]
            found[r, c] = (-(code + 1) // 2 if code % 2 else code // 2) if signed else code
            at += 1
    assert found == {(r, c): v for r, c, v in zip(row, column, value, strict=True)}


def test_an_empty_table_can_be_packed(unpacked):
    pack = Pack({})
    nothing = np.zeros(0, np.int64)
    pack.add_flows(3, (nothing, nothing), nothing)
    header, sections = unpacked(pack.text())
    assert header["flows"]["n"] == 0
    assert sections["flows-rows"] == b"\0\0\0"


def test_the_same_content_gives_the_same_text():
    assert Pack({"a": 1}).text() == Pack({"a": 1}).text()


def test_packed_text_has_no_sign_that_html_knows():
    text = Pack({"codes": ["</script>", "&<>\"'"]}).text()
    assert not set(text) & set("<>&\"'")
