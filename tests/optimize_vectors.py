"""Vectors to try optimisers on, and small helpers, shared by the tests of this folder."""

import numpy as np


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
