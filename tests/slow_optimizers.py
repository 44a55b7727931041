"""Slow, obvious optimisers in Python integers of any size, which the fast ones are compared with.

`algorithm_2` keeps the line structure of the paper's algorithm (section 4.2), numbered in the
margin.
"""

from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray


def algorithm_2(x: Sequence[int], c: int, *, is_descending: bool = False) -> list[int]:
    """IntOpt as in the paper's Algorithm 2; equal values keep their order."""
    x = [int(value) for value in x]
    d = len(x)
    z = [max(-((sum(x) - c) // d), -x[i]) for i in range(d)]  # 1
    t = max(abs(z_i) for z_i in z)  # 2
    indices = sorted(range(d), key=lambda i: x[i], reverse=is_descending)  # 3
    j = 0  # 4
    while sum(z) > c - sum(x):  # 5
        delta = sum(z) - c + sum(x)  # 6
        i = indices[j]
        z[i] = max(z[i] - delta, -x[i], -t)  # 7
        j = (j + 1) % len(indices)  # 8
        if j == 0:  # 9
            t = t + 1  # 10
    return [x[i] + z[i] for i in range(d)]  # 13


def chebyshev_optimum(x: Sequence[int], c: int) -> int:
    """Least Chebyshev distance from x of non-negative integers with the sum c.

    Distance alpha is enough if no element needs more to reach 0, all floors together do
    not exceed c and all ceilings together reach it; each holds from some alpha on.
    """
    values = [int(value) for value in x]
    low, high = -1, sum(abs(value) for value in values) + c
    while high - low > 1:
        alpha = (low + high) // 2
        is_enough = (
            min(values) + alpha >= 0
            and sum(max(0, value - alpha) for value in values) <= c
            and sum(value + alpha for value in values) >= c
        )
        low, high = (low, alpha) if is_enough else (alpha, high)
    return high


def exhaustive(x: Sequence[int], c: int) -> tuple[int, list[tuple[int, ...]]]:
    """Least Chebyshev distance and every vector that attains it."""
    candidates = _candidates(len(x), c)
    distances = np.abs(candidates - np.array(x, dtype=np.int64)).max(axis=1)
    least = distances.min()
    best = candidates[distances == least]
    return int(least), [tuple(map(int, row)) for row in best]


@lru_cache(maxsize=256)
def _candidates(size: int, total: int) -> NDArray[np.int64]:
    return np.array(compositions(size, total), dtype=np.int64)


@cache
def compositions(size: int, total: int) -> tuple[tuple[int, ...], ...]:
    """All ways to write a total as so many whole numbers, from 0 up."""
    if size == 1:
        return ((total,),)
    return tuple(
        (first, *others)
        for first in range(total + 1)
        for others in compositions(size - 1, total - first)
    )


def vectors(n, size, seed):
    """Vectors and totals as the mechanism meets them, and worse: ties, all negative, c = 0."""
    generator = np.random.default_rng([seed, size])
    for _ in range(n):
        width = generator.choice([1, 3, 12])
        x = generator.integers(-width, width + 1, size)
        x += np.where(generator.random(size) < 0.15, generator.integers(0, 25, size), 0)
        kind = generator.integers(6)
        if kind == 0:
            x = -np.abs(x)
        total = (0, 1, generator.integers(0, 12), x.sum(), x.sum() + 3, x.clip(0).sum())
        yield x.astype(np.int64), int(np.clip(total[generator.integers(6)], 0, 14))


def chebyshev(x, y):
    return max(abs(int(a) - int(b)) for a, b in zip(x, y, strict=True))
