"""Strict decoding: what is written is read back, and nothing is converted."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import pytest

from inftda.errors import BudgetError
from inftda.privacy.records import decode


@dataclass(frozen=True)
class Inner:
    name: str
    amount: Fraction


@dataclass(frozen=True)
class Outer:
    whole: int
    real: float | None
    flag: bool
    kind: Literal["a", "b"]
    inner: tuple[Inner, ...]
    facts: Mapping[str, Any]
    versions: Mapping[str, str]


GOOD = {
    "whole": 3,
    "real": 0.5,
    "flag": True,
    "kind": "a",
    "inner": [{"name": "x", "amount": "1/3"}],
    "facts": {"any": [1, None]},
    "versions": {"numpy": "2"},
}


def read(**changes):
    return decode(Outer, {**GOOD, **changes}, what="the record", error=BudgetError)


def test_every_kind_of_field_is_read():
    assert read(further="ignored") == Outer(
        3, 0.5, True, "a", (Inner("x", Fraction(1, 3)),), {"any": [1, None]}, {"numpy": "2"}
    )
    assert read(real=None).real is None
    assert isinstance(read(real=2).real, float)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("whole", 39.9),
        ("whole", 3.0),
        ("whole", True),
        ("whole", "3"),
        ("whole", None),
        ("real", "0.5"),
        ("real", False),
        ("real", math.inf),
        ("real", math.nan),
        ("real", 10**400),
        ("flag", 1),
        ("kind", "c"),
        ("kind", ["a"]),
        ("inner", {}),
        ("inner", "x"),
        ("inner", [["x", "1/3"]]),
        ("facts", []),
        ("versions", {"numpy": 2}),
    ],
)
def test_a_value_of_another_kind_is_refused_by_the_name_of_its_field(field, value):
    with pytest.raises(BudgetError, match=field) as refused:
        read(**{field: value})
    assert "the record" in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("amount", [1, 0.5, "x", "1/0", "1e99999", "1" * 20_000, None])
def test_an_amount_is_a_fraction_written_as_text(amount):
    with pytest.raises(BudgetError, match=r"inner\[0\]\.amount"):
        read(inner=[{"name": "x", "amount": amount}])


@pytest.mark.parametrize("field", GOOD)
def test_a_missing_field_is_refused_by_its_name(field):
    data = {key: value for key, value in GOOD.items() if key != field}
    with pytest.raises(BudgetError, match=f"no '{field}'"):
        decode(Outer, data, what="the record", error=BudgetError)


@pytest.mark.parametrize("data", [None, [], "text", 3, {}])
def test_what_is_no_record_is_refused(data):
    with pytest.raises(BudgetError, match="the record"):
        decode(Outer, data, what="the record", error=BudgetError)
