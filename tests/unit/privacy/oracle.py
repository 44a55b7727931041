"""delta by its definition, in ball arithmetic, and by a library: no code of the accountants."""

import math
from itertools import product

import numpy as np
from flint import arb, arb_poly, ctx, fmpq

_BITS = 420


def _weights(sigma2, reach=24):
    half = math.ceil(reach * math.sqrt(sigma2)) + 1
    rate = fmpq(sigma2.denominator, 2 * sigma2.numerator)
    return {x: (-arb(rate * x * x)).exp() for x in range(-half, half + 1)}


def delta_by_convolution(sigma2, n_shifts, epsilon):
    """(lower, upper) of delta for `n_shifts` unit shifts with one variance.

    Polynomials of probabilities are multiplied; the loss is linear in the exponent. What
    lies beyond the reach of the tables is far below any delta asked for here.
    """
    before, ctx.prec = ctx.prec, _BITS
    try:
        weights = _weights(sigma2)
        whole = sum(weights.values(), arb(0))
        half = max(weights)
        single = arb_poly([weights[x] / whole for x in range(-half, half + 1)])
        law = single**n_shifts
        total, exact = arb(0), fmpq(*float(epsilon).as_integer_ratio())
        for place, probability in enumerate(law.coeffs()):
            y = place - half * n_shifts
            loss = fmpq(n_shifts - 2 * y, 2) * fmpq(sigma2.denominator, sigma2.numerator)
            if loss > exact:
                total += probability * (1 - (arb(exact) - arb(loss)).exp())
        return float(total.lower()), float(total.upper())
    finally:
        ctx.prec = before


def delta_by_enumeration(variances, epsilon, *, swap=False):
    """delta for one unit shift of each variance: P against Q, or Q against P if `swap`.

    Goes through all points of the grid: only for two or three variances.
    """
    axes = []
    for sigma2 in variances:
        half = math.ceil(9 * math.sqrt(sigma2)) + 2
        weights = {x: math.exp(-(x**2) / (2 * float(sigma2))) for x in range(-half - 1, half + 2)}
        whole = math.fsum(weights.values())
        axes.append([(weights[x] / whole, weights[x - 1] / whole) for x in range(-half, half + 2)])
    total = []
    for point in product(*axes):
        p, q = math.prod(pair[0] for pair in point), math.prod(pair[1] for pair in point)
        p, q = (q, p) if swap else (p, q)
        total.append(max(0.0, p - math.exp(epsilon) * q))
    return math.fsum(total)


def library_delta(parts, epsilon, **grid):
    """delta at one or many epsilons by dp-accounting, which rounds losses up to a grid."""
    from dp_accounting.pld import privacy_loss_distribution as pld  # noqa: PLC0415 - takes a second

    composed = None
    with np.errstate(all="ignore"):  # logarithms of 0 are meant in the library
        for noise, change in parts:
            if noise.is_laplace:
                one = pld.from_discrete_laplace_mechanism(1 / float(noise.scale), **grid)
            else:
                one = pld.from_discrete_gaussian_mechanism(math.sqrt(noise.square), **grid)
            one = one.self_compose(change.sides)
            composed = one if composed is None else composed.compose(one)
        return composed.get_delta_for_epsilon(epsilon)
