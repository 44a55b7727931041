"""How often intervals hold the truth, by level and size class."""

import numpy as np
import pytest

import inftda
from inftda.confidential.coverage import (
    LEAST,
    IntervalMeasures,
    lowest_coverage,
    measure_estimated,
    measure_intervals,
    overall,
)
from inftda.confidential.evaluate import compare, read_truth
from inftda.planning.accuracy import area_totals
from inftda.publication.measured import CellIntervals
from inftda.reading.truth import Truth
from inftda.tree import Tree
from inftda.tree.hierarchy import Hierarchy

TREE = Tree.destination_first(Hierarchy.read({"town": ["1", "2", "3"]}))


@pytest.fixture(scope="module")
def truth(measured, country):
    return read_truth(measured, country.flows())


def number(*areas):
    return tuple(np.array(axis, np.int32) for axis in areas)


def test_shares_are_those_of_each_class_by_published_size():
    truth = Truth.from_leaves(TREE, number([0, 0, 1], [0, 1, 1]), np.array([5, 40, 2]))
    made = CellIntervals(
        # Not in order, and one where nothing is true.
        number([1, 0, 2, 0], [1, 0, 2, 1]),
        np.array([1, 2, 1, 50]),
        np.array([3, 0, 0, 40]),
        np.array([9, 5, 2, 60]),
    )
    small, large = measure_estimated(truth, made)
    assert small == IntervalMeasures(
        "town > town", 1, 2, 3, pytest.approx(2 / 3), pytest.approx(13 / 3)
    )
    assert large == IntervalMeasures("town > town", 30, 99, 1, 1.0, 20.0)
    every = overall([small, large])
    assert (every.n_numbers, every.in_interval) == (4, pytest.approx(3 / 4))
    assert every.mean_width == pytest.approx(33 / 4)


def test_the_lowest_class_is_looked_for_among_those_with_enough_numbers():
    classes = [
        IntervalMeasures("town", low, None, n, share, 1.0)
        for low, n, share in ((1, LEAST, 0.97), (3, LEAST - 1, 0.5), (10, LEAST, 0.96))
    ]
    assert lowest_coverage(classes) == classes[2]
    assert lowest_coverage(classes, least=1) == classes[1]
    assert lowest_coverage(classes, least=10**6) is None


def test_intervals_that_were_shifted_are_found_out(measured, truth, monkeypatch):
    """Of numbers about as large as the noise; the truth is known, so it would be seen."""
    known, released = measured.intervals(), Truth.from_leaves(measured.tree, *measured.leaves())

    def municipalities():
        found = measure_intervals(truth, released, measured)
        return overall(one for one in found if "municipality" in one.name)

    honest = municipalities()
    of = known.of

    def shifted(depths, areas, flow):
        low, high = of(depths, areas, flow)
        return low + 60, high + 60

    monkeypatch.setattr(known, "of", shifted)
    false = municipalities()
    assert honest.in_interval > 0.9
    assert false.in_interval < 0.5
    assert false.mean_width == honest.mean_width


def test_an_estimate_is_compared_like_the_release(measured, estimated, truth):
    compared = compare(measured, truth, estimate=estimated)
    of_estimate = compared.estimate
    assert of_estimate.levels[-1].total_released == measured.total
    assert of_estimate.levels[-1].n_released == len(estimated.table)
    assert of_estimate.levels[-1].common_part > compared.levels[-1].common_part
    assert {one.name for one in of_estimate.intervals} == {"municipality > municipality"}
    assert overall(of_estimate.intervals).in_interval > 0.9
    assert compared.tables()["intervals"].column("notice")[0].as_py().startswith("CONFIDENTIAL")


@pytest.mark.parametrize("across", [0.0, 0.08])
def test_intervals_of_measured_totals_are_compared_with_the_truth(across, truth, country):
    made = inftda.release(
        country.flows(), country.areas, epsilon=1, delta=1e-6, cross_tables=across,
        measurements="totals", source=inftda.SeededSource(4),
    )  # fmt: skip
    compared = compare(made, truth)
    assert compared.intervals == ()  # nothing but totals was published with its noise
    assert len(compared.totals) == 5
    for one in compared.totals:
        if across:
            # Of 60 areas at most; the interval is said to hold for 95 %.
            assert one.in_interval > 0.6
            assert one.sigma > 1
            number = [axis.name for axis in made.tree.axes].index(one.axis)
            depth = country.areas.level_of(one.level)
            error = made.totals_of(one.axis)[depth].flow - area_totals(truth, number, depth)
            assert one.max_abs_error == np.abs(error).max(), "of the number that is published"
        else:
            assert one.in_interval is None
            assert one.sigma is None
