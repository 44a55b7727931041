"""The references themselves: the paper's algorithms against an exhaustive search."""

import pytest

from inftda.mechanism.reference import algorithm_3, shares
from slow_optimizers import algorithm_2, chebyshev, chebyshev_optimum, exhaustive, vectors
from tiers import some


def test_the_papers_example_has_two_optimal_solutions():
    assert exhaustive([0, -1, 1], 2) == (1, [(0, 0, 2), (1, 0, 1)])


def test_algorithm_2_picks_the_solution_with_fewer_positive_elements():
    assert algorithm_2([0, -1, 1], 2) == [0, 0, 2]
    assert algorithm_2([0, -1, 1], 2, is_descending=True) == [1, 0, 1]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_algorithms_2_and_3_agree_and_are_optimal(size):
    for x, total in vectors(some(800), size, seed=1):
        by_2 = algorithm_2(x, total)
        assert by_2 == algorithm_3(x, total)
        assert sum(by_2) == total
        assert min(by_2) >= 0
        assert chebyshev(x, by_2) == exhaustive(x, total)[0]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_optimum_values_are_those_of_the_exhaustive_search(size):
    for x, total in vectors(some(500), size, seed=2):
        assert chebyshev_optimum(x, total) == exhaustive(x, total)[0]


def test_shares_see_a_swap_between_different_values_but_not_between_equal_ones():
    assert shares([5, 5, 1], [2, 3, 0]) == shares([5, 5, 1], [3, 2, 0])
    assert shares([5, 4, 1], [2, 3, 0]) != shares([5, 4, 1], [3, 2, 0])
