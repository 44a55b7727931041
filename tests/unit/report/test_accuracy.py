import re
from dataclasses import replace

import pytest

from inftda.evaluate.bounds import error_bounds
from inftda.evaluate.typical import typical_errors
from inftda.report.accuracy import BETA, accuracy_section, guaranteed, level_rows


@pytest.fixture(scope="module")
def errors(od):
    return typical_errors(od, runs=3)


def test_every_measured_level_has_a_row_with_both_errors(od, errors):
    rows = level_rows(od, errors)
    assert [row.level.index for row in rows] == [level.index for level in od.manifest.plan.levels]
    for row in rows:
        assert 0 < row.typical.overall.p95 < row.guaranteed


def test_the_guaranteed_error_depends_on_the_optimiser(od):
    bounds = {bound.index: bound for bound in error_bounds(od.tree, od.manifest.plan, BETA)}
    assert guaranteed(od) == {index: bound.max_error for index, bound in bounds.items()}
    other = replace(od, manifest=replace(od.manifest, options={"objective": "linf"}))
    assert guaranteed(other) == {index: bound.theorem4 for index, bound in bounds.items()}


def test_there_is_no_guaranteed_error_for_other_mechanisms(od):
    other = replace(od, manifest=replace(od.manifest, options={}))
    assert guaranteed(other) == {}
    assert "Guaranteed" in accuracy_section(other, None)


def test_table_and_chart_show_the_same_figures(od, errors):
    section = accuracy_section(od, errors)
    rows = level_rows(od, errors)
    for row in rows:
        assert f"±{row.guaranteed:,}" in section
        assert f"±{row.typical.overall.p95:,}" in section
    assert section.count('<circle class="p95"') == len(rows) + 1  # and one in the key
    places = [float(x) for x in re.findall(r'class="p95" cx="([\d.]+)%"', section)]
    by_size = sorted(range(len(rows)), key=lambda i: rows[i].typical.overall.p95)
    assert sorted(places[1:]) == [places[1:][i] for i in by_size]
    assert all(0 <= place <= 100 for place in places)


def test_a_release_without_typical_errors_says_so(od):
    section = accuracy_section(od, None)
    assert "not known for releases" in section
    assert "<details>" not in section
