"""Sizes counted in bins: exactly while they are small, then one per cent apart."""

import numpy as np
from numpy.typing import NDArray

#: Errors below are counted one by one, larger ones in bins this much apart.
EXACT_ERRORS, BIN_RATIO = 256, 1.01
N_BINS = EXACT_ERRORS + int(np.log(2.0**62 / EXACT_ERRORS) / np.log(BIN_RATIO)) + 2


def bin_of(error: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bin of each error: exact while small, then 1 % apart."""
    steps = np.log(np.maximum(error, EXACT_ERRORS) / EXACT_ERRORS) / np.log(BIN_RATIO)
    return np.where(error < EXACT_ERRORS, error, EXACT_ERRORS + np.floor(steps).astype(np.int64))


def quantile(bins: NDArray[np.int64], share: float) -> int:
    """Smallest error that `share` of the counted ones do not exceed, to the end of its bin."""
    total = int(bins.sum())
    if total == 0:
        return 0
    at = int(np.searchsorted(np.cumsum(bins), share * total))
    if at < EXACT_ERRORS:
        return at
    return int(np.ceil(EXACT_ERRORS * BIN_RATIO ** (at - EXACT_ERRORS + 1)))


def first_of(at: int) -> int:
    """Smallest number of a bin."""
    if at < EXACT_ERRORS:
        return at
    return int(np.ceil(EXACT_ERRORS * BIN_RATIO ** (at - EXACT_ERRORS)))


def last_above(n: NDArray[np.int64], hits: NDArray[np.int64], share: float) -> int:
    """The last bin in which hits are more than a share of all; -1 if there is none.

    The larger a size, the rarer the hits. The best decreasing fit (isotonic regression) crosses
    `share` where this cumulative excess is largest.
    """
    excess = np.cumsum(hits - share * n)
    last = int(np.argmax(excess))
    return last if excess[last] > 0 else -1
