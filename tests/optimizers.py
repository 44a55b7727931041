"""Every optimiser with what is right for it, and every shape of vector: the tests' table."""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from inftda.optimize import intopt
from inftda.optimize.reference import algorithm_3, shares
from inftda.optimize.selection import LIMIT
from optimize_vectors import sparse_vectors, vectors
from slow_optimizers import exhaustive
from tiers import some


@dataclass(frozen=True)
class Optimizer:
    """A kernel, its flags, and whether y is right for x and a total."""

    module: ModuleType
    kernel: str
    flags: tuple[bool, ...]
    is_right: Callable[[list[int], int, list[int]], bool]

    def run(self, x, total, seed):
        """Status and result; x is left alone."""
        out = np.empty_like(x)
        return self.run_into(x, total, seed, out), out

    def run_into(self, x, total, seed, out):
        # Looked up at every call, so that a test can replace it.
        return getattr(self.module, self.kernel)(x, total, np.uint64(seed), *self.flags, out)


def is_ascending_intopt(x, total, y):
    return shares(x, y) == shares(x, algorithm_3(x, total))


def is_descending_intopt(x, total, y):
    return shares(x, y) == shares(x, algorithm_3(x, total, is_descending=True))


OPTIMIZERS = {
    "intopt": Optimizer(intopt, "intopt_into", (False,), is_ascending_intopt),
    "intopt-descending": Optimizer(intopt, "intopt_into", (True,), is_descending_intopt),
}


def of_total(total):
    """Noise around sparse counts, but with a total of its own."""
    return [(x, total) for x, _ in sparse_vectors(some(200), 30, 4, seed=17)]


def ties():
    """A few values, each many times, and every total up to their sum."""
    x = np.array([-5, 3, 3, 3, 3, 3, 3, 1, 1, 9, 9], np.int64)
    return [(x, total) for total in range(x.clip(0).sum() + 20)]


def already_fitting():
    generator = np.random.default_rng(3)
    fitting = [generator.integers(0, 50, size) for size in range(1, 40)]
    return [(x, int(x.sum())) for x in fitting]


def at_the_limit():
    """The largest values and totals that are not refused."""
    generator = np.random.default_rng(4)
    found = []
    for size in (2, 3, 4, 7):
        bound = LIMIT // size
        choice = [-bound, bound, 1 - bound, bound - 1, 0, 1, -1, bound // 2, -bound // 3]
        for _ in range(some(100)):
            total = int(generator.choice([1, 2, bound, LIMIT // 2, LIMIT - 1, LIMIT]))
            found.append((generator.choice(choice, size), total))
    return found


#: Vectors and totals small enough for an exhaustive search.
SMALL_SHAPES = {
    "one element": lambda: vectors(some(500), 1, seed=3),
    "two elements": lambda: vectors(some(1000), 2, seed=3),
    "three elements": lambda: vectors(some(1000), 3, seed=3),
    "four elements": lambda: vectors(some(1000), 4, seed=3),
    "five elements": lambda: vectors(some(1000), 5, seed=3),
    "six elements": lambda: vectors(some(1000), 6, seed=3),
}
SHAPES = {
    **SMALL_SHAPES,
    "two noisy": lambda: sparse_vectors(some(2000), 2, 2, seed=4),
    "three noisy": lambda: sparse_vectors(some(1500), 3, 30, seed=4),
    "little noise": lambda: sparse_vectors(some(500), 9, 0.7, seed=4),
    "some noise": lambda: sparse_vectors(some(200), 20, 2, seed=4),
    "much noise": lambda: sparse_vectors(some(60), 60, 30, seed=4),
    "long": lambda: sparse_vectors(some(5), 500, 20, seed=4),
    "total 0": lambda: of_total(0),
    "total 1": lambda: of_total(1),
    "total too large for the noise": lambda: of_total(200),
    "all negative": lambda: [
        (-abs(x) - 1, 40) for x, _ in sparse_vectors(some(200), 15, 5, seed=5)
    ],
    "all equal": lambda: [(np.full(8, 5), total) for total in range(60)],
    "ties": ties,
    "already fitting": already_fitting,
    "at the limit": at_the_limit,
}


def is_exhaustively_right(x, total, y):
    return tuple(y) in exhaustive(x, total)[1]
