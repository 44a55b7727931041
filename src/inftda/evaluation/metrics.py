"""How far a release is from the truth, level by level (the paper's section 5, and more).

A cell that is missing is 0. Means and root mean squares are given twice: over all possible
cells of the level, and over the cells that are not zero in both tables (`..._nonzero`), since
on a sparse table the many cells that are 0 in both make any mean look small.

Measures are computed from the truth and are as confidential as the truth.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inftda.bars import Progress
from inftda.evaluation.pairing import PairedLevel, pair_levels
from inftda.kernels import kernel
from inftda.truth import Truth

#: Smallest true flow of each size class; the first class is the true zeros.
SIZE_BOUNDS = (0, 1, 5, 10, 50, 100, 500, 1_000, 5_000, 10_000)
#: How many of the largest true flows are looked at on their own.
TOP = 100

#: What each measure means; written beside the figures.
DEFINITIONS = {
    "n_cells": "possible cells of the level",
    "n_true": "cells with a true flow",
    "n_released": "cells with a released flow above 0",
    "n_either": "cells that are not zero in both tables",
    "total_true": "sum of the true flows",
    "total_released": "sum of the released flows",
    "max_abs_error": "largest |released - true| of any cell, missing cells counted as 0",
    "mean_abs_error": "mean of |released - true| over all possible cells",
    "mean_abs_error_nonzero": "the same mean over the n_either cells",
    "rmse": "root of the mean of (released - true)^2 over all possible cells",
    "rmse_nonzero": "the same over the n_either cells",
    "false_discovery_rate": "share of the cells with a released flow where the true one is 0",
    "false_negative_rate": "share of the cells with a true flow where none is released",
    "common_part": "common part of commuters: 2 sum min(true, released) / sum (true + released), "
    "released flows below 0 counted as 0",
    "top_cells": "how many of the largest true flows the top measures are of (ties: tree order)",
    "top_max_abs_error": "largest |released - true| of these",
    "top_mean_abs_error": "mean of |released - true| of these",
    "top_mean_relative_error": "mean of |released - true| / true of these",
}


@dataclass(frozen=True, slots=True)
class SizeMeasures:
    """Errors of the cells whose true flow lies in one size class.

    Attributes:
        smallest: smallest true flow of the class.
        largest: largest; None for the last class.
        n_cells: number of cells, for true zeros all possible ones.
        max_abs_error: largest absolute error.
        mean_abs_error: mean absolute error; None if there is no cell.
        rmse: root mean square error.
        bias: mean of released - true.
        mean_relative_error: mean of |released - true| / true; None for true zeros.
        kept: share of the cells with a released flow above 0.
    """

    smallest: int
    largest: int | None
    n_cells: int
    max_abs_error: int
    mean_abs_error: float | None
    rmse: float | None
    bias: float | None
    mean_relative_error: float | None
    kept: float | None


@dataclass(frozen=True, slots=True)
class LevelMeasures:
    """Errors of one level; `DEFINITIONS` says what each figure means."""

    level: int
    name: str
    n_cells: int
    n_true: int
    n_released: int
    n_either: int
    total_true: int
    total_released: int
    max_abs_error: int
    mean_abs_error: float
    mean_abs_error_nonzero: float
    rmse: float
    rmse_nonzero: float
    false_discovery_rate: float
    false_negative_rate: float
    common_part: float
    top_cells: int
    top_max_abs_error: int
    top_mean_abs_error: float
    top_mean_relative_error: float
    sizes: tuple[SizeMeasures, ...]


def measure(
    truth: Truth, released: Truth, *, progress: Progress | None = None
) -> tuple[LevelMeasures, ...]:
    """Measures of every level, from the root to the leaves.

    Args:
        truth: the confidential counts.
        released: the released leaves, summed up by the same tree.
        progress: called with level name, levels done and levels in all.

    Raises:
        TreeError: the two do not belong to the same tree.
    """
    levels = []
    for pairs in pair_levels(truth, released):
        levels.append(measure_level(pairs))
        if progress is not None:
            progress(pairs.level.name, len(levels), len(truth.tree.levels))
    return tuple(levels)


def measure_level(pairs: PairedLevel) -> LevelMeasures:
    """Measures of one level."""
    whole, real = tally(pairs.true, pairs.released)
    n_cells = pairs.level.n_nodes
    n_either = int(whole[:, N_EITHER].sum())
    n_true, n_released = int(whole[1:, N_EITHER].sum()), int(whole[:, N_KEPT].sum())
    abs_error, squares = int(whole[:, ABS_ERROR].sum()), float(real[:, SQUARES].sum())
    # Python's integers: the sum of both totals may be beyond 2^62.
    weight = int(whole[:, TRUE].sum()) + int(whole[:, KEPT].sum())
    top_error, top_relative = _top_errors(pairs)
    return LevelMeasures(
        level=pairs.level.index,
        name=pairs.level.name,
        n_cells=n_cells,
        n_true=n_true,
        n_released=n_released,
        n_either=n_either,
        total_true=int(pairs.true.sum()),
        total_released=int(pairs.released.sum()),
        max_abs_error=int(whole[:, MAX_ERROR].max()),
        mean_abs_error=abs_error / n_cells,
        mean_abs_error_nonzero=_share(abs_error, n_either),
        rmse=(squares / n_cells) ** 0.5,
        rmse_nonzero=_share(squares, n_either) ** 0.5,
        false_discovery_rate=_share(int(whole[0, N_KEPT]), n_released),
        false_negative_rate=_share(n_true - int(whole[1:, N_KEPT].sum()), n_true),
        common_part=_share(2 * int(whole[:, COMMON].sum()), weight) if weight else 1.0,
        top_cells=len(top_error),
        top_max_abs_error=int(top_error.max(initial=0)),
        top_mean_abs_error=_share(float(top_error.sum()), len(top_error)),
        top_mean_relative_error=_share(float(top_relative.sum()), len(top_error)),
        sizes=_sizes(whole, real, n_cells - n_true),
    )


def _share(part: float, whole: int) -> float:
    return part / whole if whole else 0.0


def _sizes(
    whole: NDArray[np.int64], real: NDArray[np.float64], n_zeros: int
) -> tuple[SizeMeasures, ...]:
    classes = []
    for number, smallest in enumerate(SIZE_BOUNDS):
        row = whole[number].tolist()
        n_cells = row[N_EITHER] if number else n_zeros
        is_last = number + 1 == len(SIZE_BOUNDS)
        classes.append(
            SizeMeasures(
                smallest=smallest,
                largest=None if is_last else SIZE_BOUNDS[number + 1] - 1,
                n_cells=n_cells,
                max_abs_error=row[MAX_ERROR],
                mean_abs_error=_mean(row[ABS_ERROR], n_cells),
                rmse=_root(_mean(float(real[number, SQUARES]), n_cells)),
                bias=_mean(row[ERROR], n_cells),
                mean_relative_error=_mean(float(real[number, RELATIVE]), n_cells)
                if number
                else None,
                kept=_mean(row[N_KEPT], n_cells),
            )
        )
    return tuple(classes)


def _mean(total: float, n: int) -> float | None:
    return total / n if n else None


def _root(value: float | None) -> float | None:
    return None if value is None else value**0.5


def _top_errors(pairs: PairedLevel) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Absolute and relative errors of the largest true flows; ties in tree order."""
    n = min(TOP, int(np.count_nonzero(pairs.true > 0)))
    if n == 0:
        return np.zeros(0, np.int64), np.zeros(0)
    least = np.partition(pairs.true, len(pairs.true) - n)[-n]
    above = np.flatnonzero(pairs.true > least)
    level = np.flatnonzero(pairs.true == least)[: n - len(above)]
    chosen = np.concatenate([above, level])
    true = pairs.true[chosen]
    error = np.abs(pairs.released[chosen] - true)
    return error, error / true


# Columns of the sums of each size class: whole numbers, and real ones.
N_EITHER, N_KEPT, ERROR, ABS_ERROR, MAX_ERROR, TRUE, KEPT, COMMON = range(8)
SQUARES, RELATIVE = range(2)


def tally(
    true: NDArray[np.int64], released: NDArray[np.int64], bounds: Sequence[int] = SIZE_BOUNDS
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Sums over the cells of each size class: int64[classes, 8] and float64[classes, 2]."""
    whole, real = np.zeros((len(bounds), 8), np.int64), np.zeros((len(bounds), 2))
    tally_kernel(true, released, np.array(bounds, np.int64), whole, real)
    return whole, real


@kernel
def tally_kernel(
    true: NDArray[np.int64],
    released: NDArray[np.int64],
    bounds: NDArray[np.int64],
    whole: NDArray[np.int64],
    real: NDArray[np.float64],
) -> None:
    """Add every cell to the sums of its size class.

    Args:
        true: int64[n], true counts, not below 0.
        released: int64[n], released counts; both totals are below 2^60 in absolute value.
        bounds: int64[classes], ascending from 0.
        whole: int64[classes, 8], added to; columns as named above.
        real: float64[classes, 2], added to.
    """
    for i in range(true.size):
        t, r = true[i], released[i]
        if t == 0 and r == 0:
            continue
        row = bounds.size - 1
        while t < bounds[row]:
            row -= 1
        kept = max(r, 0)
        error = abs(r - t)
        sums = whole[row]
        sums[N_EITHER] += 1
        sums[N_KEPT] += kept > 0
        sums[ERROR] += r - t
        sums[ABS_ERROR] += error
        sums[MAX_ERROR] = max(sums[MAX_ERROR], error)
        sums[TRUE] += t
        sums[KEPT] += kept
        sums[COMMON] += min(t, kept)
        real[row, SQUARES] += float(error) * float(error)
        if t > 0:
            real[row, RELATIVE] += error / t
