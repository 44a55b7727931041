"""A slow, obvious twin of IntOpt, in Python integers of any size, for its check.

`algorithm_3` keeps the line structure of the paper's algorithm (appendix C), numbered in the
margin. Nothing else in the package may be built on this module.
"""

from collections.abc import Sequence


def algorithm_3(x: Sequence[int], c: int) -> list[int]:
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
    indices = sorted(range(b), key=lambda i: x[i])  # 3
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


def shares(x: Sequence[int], y: Sequence[int]) -> dict[int, list[int]]:
    """For each value of x, the sorted results of the elements with that value.

    Two results of IntOpt that differ only in the order of equal values are equal in this form.
    """
    grouped: dict[int, list[int]] = {}
    for x_i, y_i in zip(x, y, strict=True):
        grouped.setdefault(int(x_i), []).append(int(y_i))
    return {value: sorted(group) for value, group in grouped.items()}


def _ceil_div(number: int, divisor: int) -> int:
    return -(-number // divisor)
