"""Every kind of source: the same counts, and the same words for the same flaw."""

import pytest

from reading_cases import CASES, SOURCES, Case, at_most, check_case, columns_of, people, read_case
from reading_cases import label_of as called
from tiers import crossed

pytest.importorskip("openpyxl", reason="workbooks need openpyxl")


@pytest.mark.parametrize(("name", "kind"), crossed(CASES, SOURCES))
def test_a_table_means_the_same_in_every_kind_of_source(name, kind, tmp_path):
    case = CASES[name]
    source = SOURCES[kind](columns_of(case.names, case.rows), tmp_path)
    check_case(case, source, called(source, kind))


@pytest.mark.parametrize("unit", [at_most(2), at_most(2, once_per="destination")], ids=str)
def test_equal_seeds_keep_equal_trips_of_every_kind_of_source(unit, tmp_path):
    names = ("origin", "destination", "who", "count")
    case = Case(people(), {}, {"person": "who", "unplaceable": "drop"}, names, unit)
    columns = columns_of(names, case.rows)
    first, _ = read_case(case, columns)
    assert len(first) > 5
    assert read_case(case, columns, seed=2)[0] != first
    for kind, make in SOURCES.items():
        (tmp_path / kind).mkdir()
        assert read_case(case, make(columns, tmp_path / kind))[0] == first, kind
