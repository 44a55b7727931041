"""What a release states about itself: errors within their guarantee, and what can be guessed."""

from dataclasses import replace

import pytest

from inftda.evaluation.stated import (
    BETA,
    guaranteed,
    level_rows,
    within_guarantee,
)
from inftda.evaluation.typical import TypicalErrors, typical_errors
from inftda.noise.bits import SeededSource
from inftda.privacy.bounds import error_bounds
from inftda.privacy.unit import Unit
from inftda.publish import release


@pytest.fixture(scope="module")
def errors(od):
    return typical_errors(od, runs=3)


def test_every_measured_level_has_both_errors(od, errors):
    rows = level_rows(od, errors)
    assert [row.level.index for row in rows] == [level.index for level in od.manifest.plan.levels]
    bounds = {bound.index: bound for bound in error_bounds(od.tree, od.manifest.plan, BETA)}
    assert guaranteed(od) == {index: bound.max_error for index, bound in bounds.items()}
    for row in rows:
        assert 0 < row.typical.overall.p95 < row.guaranteed


def test_nothing_typical_is_beyond_what_is_guaranteed(od, errors):
    *others, finest = errors.levels
    most = guaranteed(od)[od.tree.levels[-1].index]
    overall = replace(finest.overall, median=10**6, p95=10**6)
    worse = replace(finest, overall=overall, classes=(overall,), often_lost=10**6, rarely_lost=None)
    stated = within_guarantee(od, TypicalErrors(errors.runs, (*others, worse)))
    for entry in (stated.levels[-1].overall, *stated.levels[-1].classes):
        assert entry.median == entry.p95 == most
    assert stated.levels[-1].often_lost == stated.levels[-1].rarely_lost == most
    assert stated.levels[:-1] == within_guarantee(od, errors).levels[:-1]


def test_errors_simulated_from_few_numbers_stay_below_the_guaranteed_ones():
    table = {"kind": ["a", "b", "c"], "count": [30, 20, 3]}
    made = release(
        table, axis={"kind": {"kind": ["a", "b", "c"]}}, epsilon=1, delta=1e-6,
        unit=Unit(neighbours="add-remove"), source=SeededSource(5),
    )  # fmt: skip
    simulated = [typical_errors(made, runs=3, source=SeededSource(seed)) for seed in range(60)]

    def beyond(errors):
        rows = level_rows(made, errors)
        return [row for row in rows if row.typical.overall.p95 > row.guaranteed]

    assert any(map(beyond, simulated)), "or this test shows nothing"
    assert not any(beyond(within_guarantee(made, errors)) for errors in simulated)
