"""Points in polygons, compiled; see `placing` for the arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from inftda.compiled import inlined_kernel, kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@inlined_kernel
def _crossing(edges: Floats, edge: int, y: float) -> Any:
    """Where an edge that is not level crosses this latitude."""
    slope = (edges[2, edge] - edges[0, edge]) / (edges[3, edge] - edges[1, edge])
    return edges[0, edge] + (y - edges[1, edge]) * slope


@inlined_kernel
def _is_inside(edges: Floats, start: int, end: int, x: float, y: float) -> bool:
    """Whether a ray to the east crosses an odd number of edges."""
    is_odd = False
    for edge in range(start, end):
        if edges[1, edge] <= y < edges[3, edge] and x < _crossing(edges, edge, y):
            is_odd = not is_odd
    return is_odd


@inlined_kernel
def _is_on(edges: Floats, start: int, end: int, x: float, y: float) -> bool:
    """Whether a point is on one of the edges."""
    for edge in range(start, end):
        if not edges[1, edge] <= y <= edges[3, edge]:
            continue
        if (x == edges[0, edge] and y == edges[1, edge]) or (
            x == edges[2, edge] and y == edges[3, edge]
        ):
            return True
        if edges[1, edge] == edges[3, edge]:
            if edges[0, edge] <= x <= edges[2, edge]:
                return True
        elif x == _crossing(edges, edge, y):
            return True
    return False


@kernel
def _find_kernel(  # noqa: PLR0913, PLR0917 - the arrays of one structure
    x: float,
    y: float,
    box: Floats,
    n_rows: int,
    n_columns: int,
    edges: Floats,
    run_offsets: Ints,
    run_area: Ints,
    cell_offsets: Ints,
    cell_runs: Ints,
    cell_area: Ints,
    cell_run: Ints,
) -> Any:
    """The area of one point, -1 if it is in none."""
    across, up = (x - box[0]) * box[2], (y - box[1]) * box[3]
    # Written so that not-a-number is in no area.
    if not (0.0 <= across <= n_columns and 0.0 <= up <= n_rows):
        return -1
    cell = min(int(up), n_rows - 1) * n_columns + min(int(across), n_columns - 1)
    first, last = cell_offsets[cell], cell_offsets[cell + 1]
    if first == last:
        return cell_area[cell]
    for mark in range(first, last):
        run = cell_runs[mark]
        if _is_inside(edges, run_offsets[run], run_offsets[run + 1], x, y):
            return run_area[run]
    run = cell_run[cell]
    if run >= 0 and _is_inside(edges, run_offsets[run], run_offsets[run + 1], x, y):
        return run_area[run]
    for mark in range(first, last):
        run = cell_runs[mark]
        if _is_on(edges, run_offsets[run], run_offsets[run + 1], x, y):
            return run_area[run]
    return -1


@kernel
def place_kernel(  # noqa: PLR0913, PLR0917 - likewise
    lon: Floats,
    lat: Floats,
    box: Floats,
    n_rows: int,
    n_columns: int,
    edges: Floats,
    run_offsets: Ints,
    run_area: Ints,
    cell_offsets: Ints,
    cell_runs: Ints,
    cell_area: Ints,
    cell_run: Ints,
    found: Ints,
) -> None:
    """Write the area of each point to `found`, -1 for points in none."""
    for point in range(len(lon)):
        x, y = lon[point], lat[point]
        found[point] = -1
        if not (-360.0 <= x <= 360.0 and -90.0 <= y <= 90.0):
            continue
        for turn in range(2):
            at = x if turn == 0 else (x - 360.0 if x > 0.0 else x + 360.0)
            area = _find_kernel(
                at, y, box, n_rows, n_columns, edges, run_offsets, run_area, cell_offsets,
                cell_runs, cell_area, cell_run,
            )  # fmt: skip
            if area >= 0:
                found[point] = area
                break


@kernel
def centre_kernel(  # noqa: PLR0913, PLR0917 - likewise
    box: Floats,
    side: int,
    edges: Floats,
    run_offsets: Ints,
    run_area: Ints,
    row_offsets: Ints,
    cell_offsets: Ints,
    cell_runs: Ints,
    cell_area: Ints,
    cell_run: Ints,
) -> None:
    """Write an area around the whole of each cell, and its run; both are -1 where there is none.

    An area with a point in the cell has a border in it, or is around all of it and so at its
    middle.

    Args:
        box: as in `Polygons`.
        side: rows, and columns.
        edges: as in `Polygons`.
        run_offsets: likewise.
        run_area: likewise.
        row_offsets: int32[side + 1], the runs of each row.
        cell_offsets: as in `Polygons`.
        cell_runs: likewise.
        cell_area: int32[side * side], written to.
        cell_run: likewise.
    """
    for row in range(side):
        y = box[1] + (row + 0.5) / box[3]
        for column in range(side):
            cell = row * side + column
            is_free = cell_offsets[cell] == cell_offsets[cell + 1]
            if column > 0 and is_free and cell_offsets[cell - 1] == cell_offsets[cell]:
                # No border in this cell nor in the one before it: the same area.
                cell_area[cell], cell_run[cell] = cell_area[cell - 1], cell_run[cell - 1]
                continue
            x = box[0] + (column + 0.5) / box[2]
            for run in range(row_offsets[row], row_offsets[row + 1]):
                is_marked = False
                for mark in range(cell_offsets[cell], cell_offsets[cell + 1]):
                    is_marked |= cell_runs[mark] == run
                if is_marked or not _is_inside(edges, run_offsets[run], run_offsets[run + 1], x, y):
                    continue
                cell_area[cell], cell_run[cell] = run_area[run], run
                break
