"""Nanoseconds per element of the optimisers, on vectors as the top-down loop makes them.

    python benchmarks/optimize.py [--quick]

Truth: one element in ten (at least one a vector on average) is positive, heavy-tailed up to
a million, the rest is zero. Noise of scale sigma on all elements and on the total; vectors
whose noisy total is not positive are left out, as parents without a count are. Vectors lie
one after the other in a buffer that fits into the second-level cache, where the loop's
noise has just been written. `sorted` is the same closed form with an argsort, for scale.
"""

import argparse
import platform
import time

import numba
import numpy as np
from numba import njit

from inftda.mechanism.intopt import Vectors, optimize, words_of
from inftda.util.threads import ThreadPool

SIZES = (2, 5, 10, 30, 100, 300, 3000, 100_000)
SIGMAS = (2, 20, 300)
ELEMENTS = 60_000


def make_vectors(size, sigma, generator):
    """(buffer, offsets of the vectors, totals)."""
    n = max(3, ELEMENTS // size)
    shape = (n, size)
    is_positive = generator.random(shape) < max(0.1, 1.2 / size)
    truth = np.where(is_positive, np.ceil((generator.pareto(0.8, shape) + 1) * 2), 0)
    truth = np.minimum(truth, 1e6).astype(np.int64)
    x = truth + np.rint(generator.normal(0, sigma, shape)).astype(np.int64)
    total = truth.sum(axis=1) + np.rint(generator.normal(0, sigma, n)).astype(np.int64)
    x, total = x[total > 0], total[total > 0]
    return x.ravel(), np.arange(len(total) + 1) * size, total


@njit(nogil=True)
def sorted_intopt(x, total):
    """IntOpt by sorting: what the closed form costs without a threshold search."""
    lift = -((x.sum() - total) // x.size)
    drop = max(abs(lift), -x.min())
    while np.maximum(x - drop, 0).sum() > total:
        is_above = x > drop
        excess = (x[is_above] - drop).sum() - total
        drop -= -excess // is_above.sum()
        lift = 1 - drop
    order = np.argsort(x)
    excess = np.maximum(x + lift, 0).sum() - total
    for i in order:
        top = max(x[i] + lift, 0)
        taken = min(excess, top - max(x[i] - drop, 0))
        x[i] = top - taken
        excess -= taken


def optimize_sorted(x, offsets, total):
    """By sorting, one vector after the other."""
    for low, high, amount in zip(offsets, offsets[1:], total, strict=False):
        sorted_intopt(x[low:high], amount)
    return x


def optimize_intopt(x, offsets, total):
    """As the level step does it: all vectors at once."""
    found = Vectors.of(x, offsets, total, np.arange(len(total))).candidates(1, words_of(bytes(16)))
    return optimize(found, ThreadPool(1))


OPTIMIZERS = {"intopt": optimize_intopt, "sorted": optimize_sorted}


def best_seconds(optimize, x, offsets, total, repeats):
    """Seconds of one call; the first is not timed."""
    seconds = []
    for _ in range(repeats + 1):
        noisy = x.copy()
        began = time.perf_counter()
        value = optimize(noisy, offsets, total)
        seconds.append(time.perf_counter() - began)
    assert value.sum() == total.sum()
    assert value.min() >= 0
    return min(seconds[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three repeats instead of twenty")
    repeats = 3 if parser.parse_args().quick else 20
    print(f"# {platform.machine()}, numba {numba.__version__}, numpy {np.__version__}")
    print("# best of", repeats, "runs; ns per element (ns per vector)")
    print(f"{'b':>7} {'sigma':>5}" + "".join(f"{name:>18}" for name in OPTIMIZERS))
    for size in SIZES:
        for sigma in SIGMAS:
            vectors = make_vectors(size, sigma, np.random.default_rng([size, sigma]))
            line = f"{size:>7} {sigma:>5}"
            for method in OPTIMIZERS.values():
                seconds = best_seconds(method, *vectors, repeats)
                each = 1e9 * seconds / len(vectors[0])
                line += f"{each:>9.2f} ({1e9 * seconds / len(vectors[2]):>6.0f})"
            print(line, flush=True)


if __name__ == "__main__":
    main()
