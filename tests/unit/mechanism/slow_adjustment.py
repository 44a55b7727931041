"""Dividing with dual variables, written to be read: one parent, plain Python, nothing clever."""

from fractions import Fraction
from math import ceil, floor

ONE = 1 << 16


def divide(noisy, fraction, dual, total, is_candidate):
    """Children of one parent.

    Args:
        noisy: the noisy count of every child.
        fraction: a random one for each, in units of 2^-16, all different.
        dual variable: of each, in units of 2^-16; those of others than candidates are not used.
        total: the parent's released count.
        is_candidate: which children may become positive.
    """
    exact = [
        Fraction(x * ONE + f + (p if c else 0), ONE)
        for x, f, p, c in zip(noisy, fraction, dual, is_candidate, strict=True)
    ]
    whole = [floor(x) for x in exact]
    candidates = [i for i, is_one in enumerate(is_candidate) if is_one]
    lift = ceil(Fraction(total - sum(whole), len(whole)))
    lift = least(lift, lambda lift: sum(max(0, whole[i] + lift) for i in candidates) >= total)
    drop = max(lift, -lift, -min(noisy))
    enough = least(drop, lambda drop: sum(max(0, whole[i] - drop) for i in candidates) <= total)
    if enough > drop:
        drop, lift = enough, 1 - enough
    value = [0] * len(whole)
    for i in candidates:
        value[i] = max(0, whole[i] - drop)
    for i in sorted(candidates, key=lambda i: -exact[i]):
        ceiling = max(0, whole[i] + lift)
        value[i] += min(ceiling - value[i], total - sum(value))
    return value


def least(low, holds):
    """The least number, `low` or more, for which something holds; it holds for all above, too."""
    high, step = low, 1
    while not holds(high):
        low, high, step = high + 1, high + step, 2 * step
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
