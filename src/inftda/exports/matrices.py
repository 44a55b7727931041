"""Open Matrix (OMX) for transport models: a file with one matrix for each level.

All matrices of an OMX file have the same shape, so every level has a file of its own. Zones are
numbered from 1 in the order of the areas; `code` has the code of each.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inftda.errors import InftdaError, MissingExtraError
from inftda.exports.contents import ExportData, ExportTable, Resource, resource_entry
from inftda.exports.spreadsheets import write_table, zones_file
from inftda.publication.query import GRADE
from inftda.tree import DESTINATION, ORIGIN, Marginal

#: Most cells of a matrix: 10,000 areas at each end, 0.8 GB in the memory of a reader.
MAX_CELLS = 100_000_000
#: Cells that are in memory at a time.
_BLOCK = 4_000_000


def write_omx(data: ExportData, folder: Path) -> list[Resource]:
    """Write `flows-LEVEL.omx`, and `zones-LEVEL.csv` with the number of each code."""
    sizes = {name: Marginal(data.tree.axes, depths).n_nodes for name, depths in data.levels.items()}
    fit = [name for name, size in sizes.items() if size <= MAX_CELLS]
    for name in [name for name in sizes if name not in fit][:1]:
        advice = f"these fit `level=`: {', '.join(fit)}" if fit else "take csv"
        raise InftdaError(
            f"a matrix at level {name!r} would have {sizes[name]:,} cells, more than "
            f"{MAX_CELLS:,}; {advice}"
        )
    try:
        import openmatrix  # noqa: PLC0415 - optional
    except ImportError:
        raise MissingExtraError(
            "an export to omx needs openmatrix, which is not installed; "
            "pip install 'inftda-od[omx]'"
        ) from None
    written = []
    for numbers in data.numbers():
        file = f"flows-{numbers.file}.omx"
        with openmatrix.open_file(str(folder / file), "w") as matrices:
            _fill(matrices, data, numbers)
        title = f"Matrix at level {numbers.name}"
        written.append(resource_entry(file, title, **numbers.facts))
        written += _zones(data, numbers, folder)
    return written


def _fill(matrices: Any, data: ExportData, numbers: ExportTable) -> None:
    """All measures of a level, and the codes of its zones."""
    origin, destination = (numbers.areas(axis) for axis in data.ends)
    hierarchies = [data.tree.axes[axis].hierarchy for axis in data.ends]
    depths = [numbers.depths[axis] for axis in data.ends]
    shape = tuple(of.n_areas(depth) for of, depth in zip(hierarchies, depths, strict=True))
    order = np.argsort(origin, kind="stable")
    origin, destination = origin[order], destination[order]
    about = {"description": data.description, **numbers.facts}
    for name in numbers.measures:
        if name == GRADE:  # a text, which follows from the others
            continue
        # There is no null in a matrix: -1 where no interval is known.
        value = pc.fill_null(numbers.table.column(name), -1).to_numpy()[order]
        _write_matrix(matrices, name, shape, (origin, destination, value), about)
    codes = [of.codes(depth).to_pylist() for of, depth in zip(hierarchies, depths, strict=True)]
    if len(data.zones) == 1:
        _write_lookup(matrices, "code", codes[0])
        matrices.create_mapping("number", np.arange(1, shape[0] + 1))
        return
    for end, listed in zip((ORIGIN, DESTINATION), codes, strict=True):
        _write_lookup(matrices, f"{end}_code", listed)


def _write_matrix(
    matrices: Any,
    name: str,
    shape: tuple[int, ...],
    cells: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]],
    about: dict[str, Any],
) -> None:
    """Some rows at a time, so that memory does not follow the number of cells."""
    import tables  # noqa: PLC0415 - comes with openmatrix

    texts = {key: str(value) for key, value in about.items()}
    matrix = matrices.create_matrix(name, atom=tables.Int64Atom(), shape=shape, attrs=texts)
    origin, destination, value = cells
    step = max(1, _BLOCK // shape[1])
    for first in range(0, shape[0], step):
        last = min(first + step, shape[0])
        here = slice(*np.searchsorted(origin, (first, last)))
        block = np.zeros((last - first, shape[1]), np.int64)
        block[origin[here] - first, destination[here]] = value[here]
        matrix[first:last] = block


def _write_lookup(matrices: Any, name: str, codes: list[str]) -> None:
    """Codes as the texts they are: the library itself only writes numbers."""
    if "lookup" not in matrices.root:
        matrices.create_group(matrices.root, "lookup")
    matrices.create_array(
        matrices.root.lookup, name, obj=np.array([code.encode() for code in codes])
    )


def _zones(data: ExportData, numbers: ExportTable, folder: Path) -> list[Resource]:
    written = []
    for end, axis in data.zones.items():
        hierarchy = data.tree.axes[axis].hierarchy
        file = zones_file(numbers, end)
        depth = numbers.depths[axis]
        codes = hierarchy.codes(depth)
        table = pa.table(
            {"number": np.arange(1, len(codes) + 1), hierarchy.level_name(depth): codes}
        )
        write_table(data, folder / file, table)
        written.append(resource_entry(file, f"Numbers of zones at level {numbers.name}"))
    return written
