import re
from dataclasses import replace

import pytest

from inftda.evaluation.typical import TypicalErrors, typical_errors
from inftda.noise.entropy import SeededSource
from inftda.privacy.bounds import error_bounds
from inftda.publish import release
from inftda.reports.accuracy import (
    BETA,
    accuracy_section,
    guaranteed,
    level_rows,
    within_guarantee,
)


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
    other = replace(od, manifest=replace(od.manifest, mechanism="tda-linf"))
    assert guaranteed(other) == {index: bound.theorem4 for index, bound in bounds.items()}


def test_there_is_no_guaranteed_error_for_other_mechanisms(od):
    other = replace(od, manifest=replace(od.manifest, mechanism="vanilla-gauss"))
    assert guaranteed(other) == {}


def test_where_no_error_is_known_a_sentence_says_so_instead_of_a_table(od):
    other = replace(od, manifest=replace(od.manifest, mechanism="vanilla-gauss"))
    section = accuracy_section(other, None)
    assert "neither guaranteed nor typical errors are known" in section
    assert "<table" not in section
    assert "Guaranteed" not in section
    assert "The further you zoom out" not in section


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
    assert "Typical errors are not stated" in section
    assert "<details>" not in section
    assert f"±{guaranteed(od)[od.tree.levels[-1].index]:,}" in section


def test_per_cents_are_written_alike(od, errors):
    section = accuracy_section(od, errors)
    assert re.search(r"\d\.\d\N{NO-BREAK SPACE}%", section)
    assert not re.search(r"\d%<", re.sub(r"<svg.*?</svg>", "", section))


def with_finest(errors, **changes):
    """Other figures at the finest level."""
    *others, finest = errors.levels
    return TypicalErrors(errors.runs, (*others, replace(finest, **changes)))


def test_sizes_that_vanish_are_stated_as_simulated(od, errors):
    section = accuracy_section(od, with_finest(errors, often_lost=1234, rarely_lost=1240))
    assert "true numbers up to about 1,234 often vanish (at least one in 20)." in section
    section = accuracy_section(od, with_finest(errors, often_lost=0, rarely_lost=None))
    assert "At the finest level, true numbers" not in section


def test_sizes_that_nobody_knows_of_are_not_made_up(od, errors):
    section = accuracy_section(od, with_finest(errors, often_lost=12, rarely_lost=140))
    assert "up to about 12 often vanish (at least one in 20); between that and 140" in section
    section = accuracy_section(od, with_finest(errors, often_lost=12, rarely_lost=None))
    assert "of larger ones there are too few to tell" in section


def test_nothing_typical_is_beyond_what_is_guaranteed(od, errors):
    most = guaranteed(od)[od.tree.levels[-1].index]
    overall = replace(errors.levels[-1].overall, median=10**6, p95=10**6)
    worse = with_finest(
        errors, overall=overall, classes=(overall,), often_lost=10**6, rarely_lost=None
    )
    stated = within_guarantee(od, worse)
    for entry in (stated.levels[-1].overall, *stated.levels[-1].classes):
        assert entry.median == entry.p95 == most
    assert stated.levels[-1].often_lost == stated.levels[-1].rarely_lost == most
    assert stated.levels[:-1] == within_guarantee(od, errors).levels[:-1]


def test_levels_without_a_guarantee_are_left_as_they_are(od, errors):
    across = [level for level in errors.levels if level.is_rough]
    stated = within_guarantee(od, errors)
    assert across
    assert [level for level in stated.levels if level.is_rough] == across
    other = replace(od, manifest=replace(od.manifest, mechanism="tda-l2-blackbox"))
    assert within_guarantee(other, errors) == errors


def test_errors_simulated_from_few_numbers_stay_below_the_guaranteed_ones():
    table = {"kind": ["a", "b", "c"], "count": [30, 20, 3]}
    made = release(
        table, axes={"kind": {"kind": ["a", "b", "c"]}}, epsilon=1, delta=1e-6,
        neighbours="add-remove", source=SeededSource(5),
    )  # fmt: skip
    simulated = [typical_errors(made, runs=3, source=SeededSource(seed)) for seed in range(20)]

    def beyond(errors):
        rows = level_rows(made, errors)
        return [row for row in rows if row.typical.overall.p95 > row.guaranteed]

    assert any(map(beyond, simulated)), "or this test shows nothing"
    assert not any(beyond(within_guarantee(made, errors)) for errors in simulated)
