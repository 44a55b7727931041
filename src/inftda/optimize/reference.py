"""Slow, obvious twins of the optimisers, in Python integers of any size, for tests.

`algorithm_2` and `algorithm_3` keep the line structure of the paper's algorithms (section
4.2 and appendix C), numbered in the margin. Nothing else in the package may be built on
this module.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


def algorithm_2(x: Sequence[int], c: int, *, is_descending: bool = False) -> list[int]:
    """IntOpt as in the paper's Algorithm 2; equal values keep their order.

    Example:
        >>> algorithm_2([0, -1, 1], 2)
        [0, 0, 2]
    """
    x = [int(value) for value in x]
    d = len(x)
    z = [max(_ceil_div(c - sum(x), d), -x[i]) for i in range(d)]  # 1
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


def algorithm_3(x: Sequence[int], c: int, *, is_descending: bool = False) -> list[int]:
    """IntOpt as in the paper's Algorithm 3, O(b^2); equal values keep their order.

    Where the last element that can be lowered has just been lowered, line 12 would divide
    by |I| = 0; the sum fits then, and the loop is left instead.

    Example:
        >>> algorithm_3([0, -1, 1], 2)
        [0, 0, 2]
    """
    x = [int(value) for value in x]
    b = len(x)
    z = [max(_ceil_div(c - sum(x), b), -x[i]) for i in range(b)]  # 1
    t = max(abs(z_i) for z_i in z)  # 2
    indices = sorted(range(b), key=lambda i: x[i], reverse=is_descending)  # 3
    indices = [i for i in indices if z[i] > -x[i]]  # 4
    j = 0  # 5
    while sum(z) > c - sum(x):  # 6
        delta = sum(z) - c + sum(x)  # 7
        i = indices[j]
        z[i] = max(z[i] - delta, -x[i], -t)  # 8
        j = (j + 1) % len(indices)  # 9
        if j == 0:  # 10
            indices = [i for i in indices if z[i] > -x[i]]  # 11
            if not indices:
                break
            r = (sum(z) - c + sum(x)) // len(indices)  # 12
            t = t + max(1, r)  # 13
    return [x[i] + z[i] for i in range(b)]  # 16


def chebyshev_optimum(x: Sequence[int], c: int) -> int:
    """Least Chebyshev distance from x of non-negative integers with the sum c.

    Distance alpha is enough if no element needs more to reach 0, all floors together do
    not exceed c and all ceilings together reach it; each holds from some alpha on.

    Example:
        >>> chebyshev_optimum([0, -1, 1], 2)
        1
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


def euclidean_optimum(x: Sequence[int], c: int) -> int:
    """Least squared Euclidean distance from x of non-negative integers with the sum c.

    The cost of one more unit grows with every unit an element has, so giving each unit
    where it costs least is optimal.

    Example:
        >>> euclidean_optimum([0, -1, 1], 2)
        2
    """
    values = [int(value) for value in x]
    y = [0] * len(values)
    for _ in range(c):
        cheapest = min(range(len(y)), key=lambda i: y[i] - values[i])
        y[cheapest] += 1
    return sum((y_i - value) ** 2 for y_i, value in zip(y, values, strict=True))


def exhaustive(
    x: Sequence[int], c: int, *, is_euclidean: bool = False
) -> tuple[int, list[tuple[int, ...]]]:
    """Least (squared Euclidean or Chebyshev) distance and every vector that attains it.

    Example:
        >>> exhaustive([0, -1, 1], 2)
        (1, [(0, 0, 2), (1, 0, 1)])
    """
    candidates = _candidates(len(x), c)
    away = np.abs(candidates - np.array(x, dtype=np.int64))
    distances = (away**2).sum(axis=1) if is_euclidean else away.max(axis=1)
    least = distances.min()
    best = candidates[distances == least]
    return int(least), [tuple(map(int, row)) for row in best]


def shares(x: Sequence[int], y: Sequence[int]) -> dict[int, list[int]]:
    """For each value of x, what the elements with that value got, sorted.

    Two results of IntOpt that differ only in how equal values were ordered have the same.
    """
    grouped: dict[int, list[int]] = {}
    for x_i, y_i in zip(x, y, strict=True):
        grouped.setdefault(int(x_i), []).append(int(y_i))
    return {value: sorted(group) for value, group in grouped.items()}


def _ceil_div(number: int, divisor: int) -> int:
    return -(-number // divisor)


@lru_cache(maxsize=256)
def _candidates(size: int, total: int) -> NDArray[np.int64]:
    return np.array(list(_compositions(size, total)), dtype=np.int64)


def _compositions(size: int, total: int) -> Iterator[tuple[int, ...]]:
    """All non-negative integer vectors of the given size and sum."""
    if size == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for others in _compositions(size - 1, total - first):
            yield (first, *others)
