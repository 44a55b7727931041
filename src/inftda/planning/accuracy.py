"""Errors of a release against the true counts: cells level by level, and marginal totals.

The measures are those of the paper's section 5, and others. A missing cell counts as 0. Means and
root mean squares are given twice: over all possible cells of the level, and over the cells that are
not zero in both tables (`..._nonzero`), because the many zeros of a sparse table make any mean
look small.

"All who leave this town" is a marginal total: a sum over cells below many different nodes of the
tree. Totals of the axis that is refined first are levels of the tree and measured as cells.

Measures are computed from the truth and are as confidential as the truth. The description of each
field is written beside its figures.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from inftda.errors import TreeError
from inftda.reading.truth import Children, Truth
from inftda.tree import Areas, Axis, Ints, Tree, TreeLevel
from inftda.util.screen import Progress

#: On everything that is computed from a confidential table.
NOTICE = "CONFIDENTIAL: computed from the true counts, not private, not for publication"
#: Smallest true flow of each size class; the first class is the true zeros.
SIZE_BOUNDS = (0, 1, 5, 10, 50, 100, 500, 1_000, 5_000, 10_000)
#: Smallest published number of each class of size; the last class is open.
CLASS_STARTS = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000)
#: Number of the largest true flows that have measures of their own.
TOP = 100
#: Share of the areas that count as the largest.
LARGEST = 0.02


def class_of(value: Ints) -> Ints:
    """Number of the size class of each published number."""
    return np.searchsorted(np.array(CLASS_STARTS), value, side="right") - 1


def definitions(kind: type) -> dict[str, str]:
    """Return the description of each field of a class of measures, by name."""
    known = get_type_hints(kind, include_extras=True).items()
    return {name: get_args(stated)[1] for name, stated in known if get_origin(stated) is Annotated}


@dataclass(frozen=True, slots=True)
class SizeMeasures:
    """Errors of the cells whose true flow lies in one size class."""

    smallest: Annotated[int, "smallest true flow of the class"]
    largest: Annotated[int | None, "largest; none for the last class"]
    n_cells: Annotated[int, "number of cells, for true zeros all possible ones"]
    max_abs_error: Annotated[int, "largest |released - true|"]
    mean_abs_error: Annotated[float | None, "mean of |released - true|; none without a cell"]
    rmse: Annotated[float | None, "root of the mean of (released - true)^2"]
    bias: Annotated[float | None, "mean of released - true"]
    mean_relative_error: Annotated[float | None, "mean of |released - true| / true; none for 0"]
    kept: Annotated[float | None, "share of the cells with a released flow above 0"]


@dataclass(frozen=True, slots=True)
class LevelMeasures:
    """Errors of one level."""

    level: int
    name: str
    n_cells: Annotated[int, "possible cells of the level"]
    n_true: Annotated[int, "cells with a true flow"]
    n_released: Annotated[int, "cells with a released flow above 0"]
    n_either: Annotated[int, "cells that are not zero in both tables"]
    total_true: Annotated[int, "sum of the true flows"]
    total_released: Annotated[int, "sum of the released flows"]
    max_abs_error: Annotated[
        int, "largest |released - true| of any cell, missing cells counted as 0"
    ]
    mean_abs_error: Annotated[float, "mean of |released - true| over all possible cells"]
    mean_abs_error_nonzero: Annotated[float, "the same mean over the n_either cells"]
    rmse: Annotated[float, "root of the mean of (released - true)^2 over all possible cells"]
    rmse_nonzero: Annotated[float, "the same over the n_either cells"]
    false_discovery_rate: Annotated[
        float, "share of the cells with a released flow where the true one is 0"
    ]
    false_negative_rate: Annotated[
        float, "share of the cells with a true flow where none is released"
    ]
    common_part: Annotated[
        float,
        "common part of commuters: 2 sum min(true, released) / sum (true + released), released "
        "flows below 0 counted as 0",
    ]
    top_cells: Annotated[
        int, "how many of the largest true flows the top measures are of (ties: tree order)"
    ]
    top_max_abs_error: Annotated[int, "largest |released - true| of these"]
    top_mean_abs_error: Annotated[float, "mean of |released - true| of these"]
    top_mean_relative_error: Annotated[float, "mean of |released - true| / true of these"]
    sizes: tuple[SizeMeasures, ...]


@dataclass(frozen=True, slots=True)
class TotalMeasures:
    """Errors of the totals of one level of an axis."""

    axis: str
    level: str
    n_areas: int
    max_abs_error: Annotated[int, "largest |released - true| of any area's total"]
    mean_abs_error: Annotated[float, "mean of |released - true| over all areas"]
    bias_of_largest: Annotated[
        float, "released - true, summed over the 2 % largest areas, over their true sum"
    ]
    sigma: Annotated[
        float | None, "standard deviation of the noise of these totals in their cross table"
    ] = None
    in_interval: Annotated[
        float | None, "share of the areas whose published interval holds the true total"
    ] = None


@dataclass(frozen=True)
class LevelCells:
    """Cells of one level that are not zero in one of two tables, in tree order.

    `nodes` are the released cells; None for the root.
    """

    level: TreeLevel
    true: Ints
    released: Ints
    nodes: Children | None

    def published(self) -> tuple[Areas, Ints, Ints]:
        """Areas, released counts and true counts of the released cells that are not zero."""
        is_shown = self.released != 0
        if self.nodes is None:
            areas: Areas = tuple(np.zeros(_count(is_shown), np.int32) for _ in self.level.depths)
        else:
            areas = self.nodes.areas()
        return areas, self.released[is_shown], self.true[is_shown]


def level_cells(truth: Truth, released: Truth) -> Iterator[LevelCells]:
    """Cells of every level, from the root to the leaves.

    A level that splits nothing has the cells of the level above.
    """
    tree = truth.tree
    if released.tree != tree:
        raise TreeError("truth and release must be counts of the same tree")
    both = {
        true.level.index: (true, nodes)
        for true, nodes in zip(truth.levels, released.levels, strict=True)
    }
    found = LevelCells(tree.levels[0], np.array([truth.total]), np.array([released.total]), None)
    for level in tree.levels:
        if level.index in both:
            true, nodes = both[level.index]
            found = LevelCells(level, *pair_cells(true, nodes), nodes)
        yield replace(found, level=level)


def measure(
    truth: Truth, released: Truth, *, progress: Progress | None = None
) -> tuple[LevelMeasures, ...]:
    """Measures of every level, from the root to the leaves.

    `released` has the released leaves, summed up by the same tree.
    """
    levels = []
    for cells in level_cells(truth, released):
        levels.append(measure_level(cells.level, cells.true, cells.released))
        if progress is not None:
            progress(cells.level.name, len(levels), len(truth.tree.levels))
    return tuple(levels)


def pair_cells(true: Children, released: Children) -> tuple[Ints, Ints]:
    """True and released counts of the cells of a level that are in either, in tree order."""
    node = np.union1d(true.node, released.node)
    pair = []
    for side in (true, released):
        count = np.zeros(len(node), np.int64)
        count[np.searchsorted(node, side.node)] = side.count
        pair.append(count)
    return pair[0], pair[1]


def measure_level(level: TreeLevel, true: Ints, released: Ints) -> LevelMeasures:
    """Measures of one level, of whose cells all that are not zero in both are given."""
    is_either = (true != 0) | (released != 0)
    true, released = true[is_either], released[is_either]
    error, kept = np.abs(released - true), np.maximum(released, 0)
    n_cells, n_either = level.n_nodes, len(true)
    n_true, n_released = _count(true), _count(kept)
    abs_error, squares = int(error.sum()), float((error.astype(float) ** 2).sum())
    # Python's integers: the sum of both totals may be beyond 2^62.
    weight = int(true.sum()) + int(kept.sum())
    top = _largest(true)
    return LevelMeasures(
        level=level.index,
        name=level.name,
        n_cells=n_cells,
        n_true=n_true,
        n_released=n_released,
        n_either=n_either,
        total_true=int(true.sum()),
        total_released=int(released.sum()),
        max_abs_error=int(error.max(initial=0)),
        mean_abs_error=abs_error / n_cells,
        mean_abs_error_nonzero=_share(abs_error, n_either),
        rmse=(squares / n_cells) ** 0.5,
        rmse_nonzero=_share(squares, n_either) ** 0.5,
        false_discovery_rate=_share(_count(kept[true == 0]), n_released),
        false_negative_rate=_share(_count(kept[true > 0] == 0), n_true),
        common_part=_share(2 * int(np.minimum(true, kept).sum()), weight) if weight else 1.0,
        top_cells=len(top),
        top_max_abs_error=int(error[top].max(initial=0)),
        top_mean_abs_error=_share(int(error[top].sum()), len(top)),
        top_mean_relative_error=_share(float((error[top] / true[top]).sum()), len(top)),
        sizes=_sizes(true, released, n_cells - n_true),
    )


def measure_totals(truth: Truth, released: Truth) -> tuple[TotalMeasures, ...]:
    """Measures of the marginal totals: of levels of axes that are no levels of the tree."""
    return tuple(
        measure_total(
            axis, depth, area_totals(truth, number, depth), area_totals(released, number, depth)
        )
        for number, axis, depth in marginal_totals(truth.tree)
    )


def axis_totals(tree: Tree) -> Iterator[tuple[int, Axis, int]]:
    """Number, axis and level of all totals by one axis."""
    for number, axis in enumerate(tree.axes):
        for depth in range(1, axis.hierarchy.depth + 1):
            if axis.hierarchy.splits(depth):
                yield number, axis, depth


def marginal_totals(tree: Tree) -> Iterator[tuple[int, Axis, int]]:
    """Number, axis and level of marginal totals that are no levels of the tree."""
    for number, axis, depth in axis_totals(tree):
        if tree.one_way(number, depth) not in tree.on_tree:
            yield number, axis, depth


def area_totals(counts: Truth, number: int, depth: int) -> Ints:
    """int64[areas]: sum of the counts of each area."""
    return counts.tree.axes[number].hierarchy.sum_up(counts.marginal_totals[number], depth)


def measure_total(axis: Axis, depth: int, true: Ints, released: Ints) -> TotalMeasures:
    """Measures of the totals of one level of an axis, one number for each area."""
    error = released - true
    largest = np.argsort(-true, kind="stable")[: max(1, int(LARGEST * len(true)))]
    return TotalMeasures(
        axis=axis.name,
        level=axis.hierarchy.level_name(depth),
        n_areas=len(true),
        max_abs_error=int(np.abs(error).max()),
        mean_abs_error=float(np.abs(error).mean()),
        bias_of_largest=int(error[largest].sum()) / max(int(true[largest].sum()), 1),
    )


def _count(flags: NDArray[Any]) -> int:
    return int(np.count_nonzero(flags))


def _share(part: float, whole: int) -> float:
    return part / whole if whole else 0.0


def _sizes(true: Ints, released: Ints, n_zeros: int) -> tuple[SizeMeasures, ...]:
    classes = np.searchsorted(SIZE_BOUNDS, true, side="right") - 1
    found = []
    for number, smallest in enumerate(SIZE_BOUNDS):
        here = classes == number
        error, kept = released[here] - true[here], _count(released[here] > 0)
        n_cells = len(error) if smallest else n_zeros
        largest = SIZE_BOUNDS[number + 1] - 1 if smallest < SIZE_BOUNDS[-1] else None
        found.append(
            SizeMeasures(
                smallest,
                largest,
                n_cells,
                max_abs_error=int(np.abs(error).max(initial=0)),
                mean_abs_error=_mean(int(np.abs(error).sum()), n_cells),
                rmse=float((error.astype(float) ** 2).sum() / n_cells) ** 0.5 if n_cells else None,
                bias=_mean(int(error.sum()), n_cells),
                mean_relative_error=_mean(float((np.abs(error) / true[here]).sum()), n_cells)
                if smallest
                else None,
                kept=_mean(kept, n_cells),
            )
        )
    return tuple(found)


def _mean(total: float, n: int) -> float | None:
    return total / n if n else None


def _largest(true: Ints) -> NDArray[np.intp]:
    """Where the largest true flows are; ties in tree order."""
    n = min(TOP, _count(true))
    if n == 0:
        return np.empty(0, np.intp)
    least = np.partition(true, len(true) - n)[-n]
    above = np.flatnonzero(true > least)
    return np.concatenate([above, np.flatnonzero(true == least)[: n - len(above)]])
