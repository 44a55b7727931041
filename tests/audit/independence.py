"""Whether copies in one release are independent of one another, as auditing by copies assumes.

Noise that is drawn twice and used in two places protects nobody: who knows one place can subtract
it from the other. Each place by itself looks perfectly private, so no event about one copy shows
it; but everything that is released, taken in order, then resembles itself some way further on.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

#: Odds of a normal number beyond this, times ten million lags, are below 1e-9.
LARGEST: Final = 8.5


def likeness(rows: NDArray[np.float64]) -> float:
    """How much rows resemble rows further on, in standard deviations, at the worst distance.

    Args:
        rows: float[n, cells], released numbers in the order they were made.
    """
    residuals = (rows - rows.mean(axis=0)).ravel()
    residuals /= residuals.std()
    n = len(residuals)
    spectrum = np.fft.rfft(residuals, 2 * n)
    products = np.fft.irfft(np.abs(spectrum) ** 2)[:n]
    # Within a row numbers depend on one another, because they sum up to what is above them.
    # A sum of n - lag products of independent numbers of variance 1 has that variance.
    lags = np.arange(2 * rows.shape[1], n - n // 8)
    return float(np.max(np.abs(products[lags]) / np.sqrt(n - lags)))


def in_tree_order(rows: NDArray[np.float64], n_origins: int) -> NDArray[np.float64]:
    """Cells from origin by destination to destination by origin: the order they are drawn in."""
    cells = rows.reshape(len(rows), n_origins, -1)
    return cells.transpose(0, 2, 1).reshape(rows.shape)
