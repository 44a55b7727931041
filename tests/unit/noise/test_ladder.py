"""Ladders enclose the true running sums, computed here term by term in ball arithmetic."""

from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq

from inftda.errors import PrivacyError
from inftda.noise import ladder
from inftda.noise.ladder import Ladder, gaussian_ladder, laplace_ladder

GAUSSIAN_SIGMA2 = ["1/1000", "1/4", "1", "4", "200001/10000", "49", "400", "2500", "1/3", "22/7"]
LAPLACE_SCALE = ["1/50", "1/2", "1", "3", "15/2", "20", "22/7"]


def weigh_gaussian(sigma2, k):
    return (-arb(fmpq(k * k * sigma2.denominator, 2 * sigma2.numerator))).exp()


def weigh_laplace(scale, k):
    return (-arb(fmpq(k * scale.denominator, scale.numerator))).exp()


def true_sums(weigh, parameter, n):
    """Balls around F(0), ..., F(n-1), from so many terms that the rest is below 2^-500."""
    with ctx.workprec(700):
        weights = [weigh(parameter, 0)]
        while weights[-1] > arb(2) ** -600:
            k = len(weights)
            weights.append(2 * weigh(parameter, k))
        total = sum(weights, arb(0, arb(2) ** -500))
        sums, partial = [], arb(0)
        for k in range(n):
            partial += weights[k] if k < len(weights) else 0
            sums.append(partial / total)
        return sums


def assert_encloses(got, weigh, parameter):
    with ctx.workprec(700):
        sums = true_sums(weigh, parameter, len(got.lower))
        for rung, true in zip(got.lower, sums, strict=True):
            scaled = true * arb(2) ** got.bits
            assert rung <= scaled <= rung + got.slack


@pytest.mark.parametrize("bits", [7, 31, 63, 127])
@pytest.mark.parametrize(
    ("ladder_of", "weigh", "scale"),
    [
        *((gaussian_ladder, weigh_gaussian, Fraction(sigma2)) for sigma2 in GAUSSIAN_SIGMA2),
        *((laplace_ladder, weigh_laplace, Fraction(scale)) for scale in LAPLACE_SCALE),
    ],
)
def test_ladders_enclose_the_true_sums(ladder_of, weigh, scale, bits):
    assert_encloses(ladder_of(scale, bits), weigh, scale)


def test_the_enclosure_test_notices_a_scale_that_is_off_by_one_part_in_a_billion():
    sigma2 = Fraction(400)
    with pytest.raises(AssertionError):
        assert_encloses(
            gaussian_ladder(sigma2, 31), weigh_gaussian, sigma2 * Fraction(10**9 + 1, 10**9)
        )


@pytest.mark.parametrize("make", [gaussian_ladder, laplace_ladder])
@pytest.mark.parametrize("bits", [7, 31, 63])
def test_a_ladder_is_known_far_beyond_its_bits_and_ends_where_the_tail_does(make, bits):
    got = make(Fraction(300), bits)
    assert got.slack < 1 << (got.bits - bits - 64)
    floors = got.floors(bits)
    assert floors[-1] == 2**bits - 1 > floors[-2]


def test_ladders_reach_from_almost_no_noise_to_very_wide():
    assert gaussian_ladder(Fraction(1, 2**100), 31).floors(31) == [2**31 - 1]
    assert laplace_ladder(Fraction(1, 2**50), 31).floors(31) == [2**31 - 1]
    # P[|N| > 6.2304] = 2^-31 for the standard Gaussian N.
    assert 62_290 < len(gaussian_ladder(Fraction(10**8), 31).lower) < 62_320


def test_floors_are_withheld_while_one_of_them_is_uncertain():
    # At 8 bits, the second rung may lie on either side of 3.
    uncertain = Ladder(lower=[2 * 256, 3 * 256 - 4, 255 * 256], slack=5, bits=16)
    assert uncertain.floors(8) is None
    certain = Ladder(lower=uncertain.lower, slack=3, bits=16)
    assert certain.floors(8) == [2, 2, 255]


def test_the_last_floor_is_certain_because_no_sum_reaches_one():
    assert Ladder(lower=[256, 65535], slack=100, bits=16).floors(8) == [1, 255]


@pytest.mark.parametrize(
    ("word", "bits", "k"),
    [
        (0, 4, 0),  # U in [0, 16): surely below 100
        (5, 4, 0),  # [80, 96)
        (6, 4, None),  # [96, 112): the first rung is in there
        (7, 4, 1),  # [112, 128): above 100 + 2, below 200
        (12, 4, None),  # [192, 208)
        (13, 4, None),  # [208, 224): beyond the last rung
        (99, 8, 0),
        (100, 8, None),  # may be the rung's true place
        (101, 8, None),
        (102, 8, 1),
        (199, 8, 1),
        (200, 8, None),
    ],
)
def test_find_answers_only_when_every_continuation_has_the_same_answer(word, bits, k):
    assert Ladder(lower=[100, 200], slack=2, bits=8).find(word, bits) == k


def test_constants_that_do_not_add_up_are_refused():
    def constants():
        q = (-arb(1)).exp()
        return arb(fmpq(1, 2)), q, q, arb(1)  # a Laplace with the wrong normalisation

    with pytest.raises(PrivacyError, match="add up to 1"):
        ladder._climb(constants, 100, 31, 64)


def test_a_ladder_survives_another_thread_lowering_the_precision_of_flint():
    # The precision is global: what is computed meanwhile must be redone, not believed.
    calls = []

    def constants():
        if not calls:
            ctx.prec = 20
        calls.append(ctx.prec)
        return ((-arb(fmpq(1, 3))).exp(),)

    (lower,) = ladder._fixed(constants, 100)
    assert len(calls) == 2
    with ctx.workprec(300):
        assert lower <= (-arb(fmpq(1, 3))).exp() * arb(2) ** 100 <= lower + 2
