"""Points in polygons, compiled; see `placing` for what is done."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.kernels import inlined_kernel, kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


class Raster(NamedTuple):
    """Areas by their borders, which are looked up by cell.

    Attributes:
        box: west, south, and columns and rows per degree.
        side: number of rows, and of columns.
        edges: float64[4, edges]: x and y of the lower end of each stretch of a border, then of
            its upper end; repeated in every row that it crosses, by row and area.
        run_offsets: int32[runs + 1]: the edges of an area in a row.
        run_area: int32[runs]: the area.
        cell_offsets: int32[cells + 1]: runs with an edge in each cell, row by row.
        cell_runs: int32[marks]: these runs.
        cell_area: int32[cells]: area around the whole of each cell, -1 if there is none.
        cell_run: int32[cells]: its run.
    """

    box: Floats
    side: int
    edges: Floats
    run_offsets: Ints
    run_area: Ints
    cell_offsets: Ints
    cell_runs: Ints
    cell_area: Ints
    cell_run: Ints


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
def _find_kernel(x: float, y: float, raster: Raster) -> Any:
    """The area of one point, -1 if it is in none."""
    box, side, edges = raster.box, raster.side, raster.edges
    run_offsets, run_area = raster.run_offsets, raster.run_area
    across, up = (x - box[0]) * box[2], (y - box[1]) * box[3]
    # Written so that not-a-number is in no area.
    if not (0.0 <= across <= side and 0.0 <= up <= side):
        return -1
    cell = min(int(up), side - 1) * side + min(int(across), side - 1)
    first, last = raster.cell_offsets[cell], raster.cell_offsets[cell + 1]
    if first == last:
        return raster.cell_area[cell]
    for mark in range(first, last):
        run = raster.cell_runs[mark]
        if _is_inside(edges, run_offsets[run], run_offsets[run + 1], x, y):
            return run_area[run]
    run = raster.cell_run[cell]
    if run >= 0 and _is_inside(edges, run_offsets[run], run_offsets[run + 1], x, y):
        return run_area[run]
    for mark in range(first, last):
        run = raster.cell_runs[mark]
        if _is_on(edges, run_offsets[run], run_offsets[run + 1], x, y):
            return run_area[run]
    return -1


@kernel
def place_kernel(lon: Floats, lat: Floats, raster: Raster, found: Ints) -> None:
    """Write the area of each point to `found`, -1 for points in none."""
    for point in range(len(lon)):
        x, y = lon[point], lat[point]
        found[point] = -1
        if not (-360.0 <= x <= 360.0 and -90.0 <= y <= 90.0):
            continue
        for turn in range(2):
            at = x if turn == 0 else (x - 360.0 if x > 0.0 else x + 360.0)
            area = _find_kernel(at, y, raster)
            if area >= 0:
                found[point] = area
                break


@kernel
def centre_kernel(raster: Raster, row_offsets: Ints) -> None:
    """Write an area around the whole of each cell, and its run, where there is one.

    An area with a point in the cell has a border in it, or is around all of it and so at its
    middle.

    Args:
        raster: its cell_area and cell_run are written, all -1 before.
        row_offsets: int32[side + 1], the runs of each row.
    """
    box, side, run_offsets = raster.box, raster.side, raster.run_offsets
    cell_offsets, cell_area, cell_run = raster.cell_offsets, raster.cell_area, raster.cell_run
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
                    is_marked |= raster.cell_runs[mark] == run
                start, end = run_offsets[run], run_offsets[run + 1]
                if is_marked or not _is_inside(raster.edges, start, end, x, y):
                    continue
                cell_area[cell], cell_run[cell] = raster.run_area[run], run
                break
