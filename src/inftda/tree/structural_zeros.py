"""Structural zeros: cells that are known to be empty, such as a ferry from an inland town.

The publisher knows them without the table. They are given as *boxes*: an area of any level on every
axis, or "all". Boxes do not overlap. The number of leaves of a node that lie in boxes is therefore
a sum of products, for nodes of every marginal. A node is a structural zero if all of its leaves
are.

A row that cannot be placed may belong to any area, so cells with an area "outside" are never
structural zeros.

Privacy:
    Public knowledge: it must never be derived from the trips.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inftda.errors import ReleaseError, TreeError
from inftda.tree import Axis, Ints, Marginal, Tree
from inftda.tree.groupings import find_area
from inftda.tree.hierarchy import OUTSIDE
from inftda.tree.places import Places
from inftda.util.tabular import as_arrow, as_numpy, find_texts, read_strings, repeated

Depths = tuple[int, ...]
Areas = Sequence[NDArray[np.int32]]

_WHAT: Final = "table of structural zeros"
#: Largest number of boxes after overlapping ones have been cut.
_MOST: Final = 1 << 26


@dataclass(frozen=True, eq=False)
class ZeroBoxes:
    """Structural zeros as boxes that do not overlap.

    Attributes:
        axes: axes of the tree, without names and locations of their areas.
        boxes: from levels of the axes to the numbers of the boxes there, ascending.
    """

    axes: tuple[Axis, ...]
    boxes: Mapping[Depths, Ints]
    _known: dict[Depths, list["_BoxSums"]] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, source: Any, tree: Tree, *, is_written: bool = False) -> "ZeroBoxes":
        """Read a table with a column for some axes, or all: an area of any level, or "all".

        With `is_written` the table must be one of `to_text`: it names areas by level and code, and
        no box has to be cut. A short list in a forged release can then not take much time or
        memory.

        Raises:
            TreeError: the table names areas that the tree does not have, or rules out all cells.
        """
        tree.check_numbers()
        lean = tuple(Axis(one.name, replace(one.hierarchy, places=Places())) for one in tree.axes)
        table = read_strings(source, what=_WHAT, error=TreeError)
        names = [axis.name for axis in tree.axes]
        if not table.column_names or not {*table.column_names} <= {*names}:
            raise TreeError(
                f"the columns of the {_WHAT} must be axes, which are {', '.join(names)}; it has "
                f"{', '.join(table.column_names)}"
            )
        if not len(table):
            raise TreeError(f"the {_WHAT} has no rows; leave it out")
        depth, area = np.zeros((2, len(names), len(table)), np.int32)
        for name in table.column_names:
            at = names.index(name)
            depth[at], area[at] = _placed(tree.axes[at], table.column(name), is_written=is_written)
        given = {}
        for depths in {*zip(*depth.tolist(), strict=True)}:
            is_here = (depth == np.array(depths, np.int32)[:, None]).all(axis=0)
            given[depths] = _distinct(Marginal(lean, depths).numbers([*area[:, is_here]]))
        most = 0 if is_written else _MOST
        made = cls(lean, _joined(lean, _apart(lean, _inside(lean, given, most), most)))
        if not made.is_possible((0,) * len(lean), [np.zeros(1, np.int32)] * len(lean)).all():
            raise TreeError(f"by the {_WHAT} nothing can occur at all; check its rows")
        return made

    def is_possible(self, depths: Depths, areas: Areas) -> NDArray[np.bool_]:
        """Tell for each node whether some of its leaves are not structural zeros.

        Args:
            depths: level of each axis's hierarchy that the nodes are at.
            areas: int32[nodes] for each axis.
        """
        pairs = [*zip(self.axes, depths, areas, strict=True)]
        leaves = [axis.hierarchy.leaves_under(depth)[of] for axis, depth, of in pairs]
        if depths not in self._known:
            self._known[depths] = [_BoxSums.of(self.axes, *o, depths) for o in self.boxes.items()]
        inside = np.zeros(len(areas[0]), np.int64)
        for known in self._known[depths]:
            number = known.at.numbers([of[here] for of, here in zip(known.up, areas, strict=True)])
            row = np.minimum(np.searchsorted(known.number, number), len(known.number) - 1)
            found = np.where(known.number[row] == number, known.leaves[row], 0)
            inside += found * prod((leaves[axis] for axis in known.whole), start=np.int64(1))
        return np.asarray(inside < prod(leaves[1:], start=leaves[0]))

    def restricts(self, depths: Depths, axis: int) -> bool:
        """Whether of two nodes that differ in this axis alone, one may be a zero and one not."""
        return any(box[axis] >= depths[axis] for box in self.boxes)

    def to_text(self) -> bytes:
        """Write the boxes as a CSV table that `read` accepts."""
        import pyarrow.csv as pa_csv  # noqa: PLC0415 - only whole releases need it

        columns: list[list[pa.Array]] = [[] for _ in self.axes]
        for depths in sorted(self.boxes):
            areas = Marginal(self.axes, depths).areas_at(self.boxes[depths])
            for column, axis, depth, numbers in zip(columns, self.axes, depths, areas, strict=True):
                texts = axis.hierarchy.codes(depth)
                if depth:
                    texts = pc.binary_join_element_wise(
                        repeated(axis.hierarchy.level_name(depth), len(texts)), texts, ":"
                    )
                column.append(texts.take(as_arrow(numbers)))
        names = [axis.name for axis in self.axes]
        sink = pa.BufferOutputStream()
        table = pa.Table.from_arrays([*map(pa.chunked_array, columns)], names=names)
        pa_csv.write_csv(table.combine_chunks(), sink)
        return sink.getvalue().to_pybytes()  # type: ignore[no-any-return] # untyped library


class _BoxSums(NamedTuple):
    """Boxes of the same levels, summed up where they lie inside the nodes of a marginal.

    Attributes:
        at: the finest marginal that boxes and nodes both lie in.
        up: int32[areas] for each axis, the area of `at` that each area of the nodes lies in.
        number: int64, ascending, numbers of the cells of `at` that have boxes.
        leaves: int64, leaves of the boxes in each, on the axes where boxes lie inside nodes.
        whole: the other axes, where nodes lie inside boxes.
    """

    at: Marginal
    up: list[NDArray[np.int32]]
    number: Ints
    leaves: Ints
    whole: tuple[int, ...]

    @classmethod
    def of(cls, axes: tuple[Axis, ...], box: Depths, numbers: Ints, depths: Depths) -> "_BoxSums":
        at = Marginal(axes, tuple(map(min, box, depths)))
        up = [
            axis.hierarchy.ancestor(depth, to)
            for axis, depth, to in zip(axes, depths, at.depths, strict=True)
        ]
        whole = tuple(number for number in range(len(axes)) if box[number] <= depths[number])
        leaves = np.ones(len(numbers), np.int64)
        areas = Marginal(axes, box).areas_at(numbers)
        for number, axis in enumerate(axes):
            if number not in whole:
                leaves *= axis.hierarchy.leaves_under(box[number])[areas[number]]
        above = at.numbers(_above(axes, box, at.depths, areas))
        order = np.argsort(above, kind="stable")
        first = np.flatnonzero(np.diff(above[order], prepend=-1))
        return cls(at, up, above[order][first], np.add.reduceat(leaves[order], first), whole)


def _above(axes: Sequence[Axis], depths: Depths, coarser: Depths, areas: Areas) -> Areas:
    """Find the areas of a coarser marginal that contain the given areas."""
    return [
        numbers if depth == to else axis.hierarchy.ancestor(depth, to)[numbers]
        for axis, depth, to, numbers in zip(axes, depths, coarser, areas, strict=True)
    ]


def _apart(axes: tuple[Axis, ...], given: Mapping[Depths, Ints], most: int) -> dict[Depths, Ints]:
    """Cut boxes where they overlap; the others stay unchanged."""
    kept: dict[Depths, Ints] = {}
    waiting = sorted(given.items(), key=lambda item: (-sum(item[0]), item[0]))
    while waiting:  # large boxes first, because they may contain small ones
        depths, boxes = waiting.pop()
        for others, known in list(kept.items()):
            common = tuple(map(min, depths, others))
            here, there = (
                Marginal(axes, common).numbers(
                    _above(axes, of, common, Marginal(axes, of).areas_at(numbers))
                )
                for of, numbers in ((depths, boxes), (others, known))
            )
            overlaps = np.isin(here, there)
            finer = tuple(map(max, depths, others))
            if overlaps.any() and finer != depths:  # the part inside the others is left out then
                waiting.append((finer, _cut(axes, depths, finer, boxes[overlaps], most)))
            boxes = boxes[~overlaps]
        if len(boxes):
            kept[depths] = _distinct(kept.get(depths, boxes[:0]), boxes)
    return kept


def _joined(axes: tuple[Axis, ...], given: Mapping[Depths, Ints]) -> dict[Depths, Ints]:
    """Merge boxes into larger ones wherever all boxes within an area of an axis are given."""
    kept = dict(given)
    for n_levels in range(max(map(sum, kept), default=0), 0, -1):
        for depths, axis in product([of for of in kept if sum(of) == n_levels], range(len(axes))):
            if depths[axis] == 0:
                continue
            coarser = (*depths[:axis], depths[axis] - 1, *depths[axis + 1 :])
            areas = Marginal(axes, depths).areas_at(kept[depths])
            above = _above(axes, depths, coarser, areas)
            n = np.diff(axes[axis].hierarchy.child_offsets(depths[axis] - 1))[above[axis]]
            number = Marginal(axes, coarser).numbers(above)
            in_order = np.sort(number)
            ends = (np.searchsorted(in_order, number, side=side) for side in ("left", "right"))
            is_whole = -np.subtract(*ends) == n
            kept[depths] = kept[depths][~is_whole]
            kept[coarser] = _distinct(kept.get(coarser, number[:0]), number[is_whole])
    return {depths: boxes for depths, boxes in kept.items() if len(boxes)}


def _inside(axes: tuple[Axis, ...], given: Mapping[Depths, Ints], most: int) -> dict[Depths, Ints]:
    """Take the areas "outside" out of boxes that name "all"."""
    found: dict[Depths, Ints] = {}
    for depths, boxes in given.items():
        finer = tuple(
            depth or int(axis.hierarchy.has_outside)
            for axis, depth in zip(axes, depths, strict=True)
        )
        cut = _cut(axes, depths, finer, boxes, most)
        areas = Marginal(axes, finer).areas_at(cut)
        is_out = np.zeros(len(cut), bool)
        for axis, depth, numbers in zip(axes, finer, areas, strict=True):
            if axis.hierarchy.has_outside:
                is_out |= numbers == axis.hierarchy.find(depth, [OUTSIDE])[0]
        found[finer] = _distinct(found.get(finer, cut[:0]), cut[~is_out])
    return found


def _cut(axes: tuple[Axis, ...], depths: Depths, finer: Depths, boxes: Ints, most: int) -> Ints:
    """Cut boxes into those of a finer marginal, at most `most` of them."""
    if depths == finer:
        return boxes
    areas = list(Marginal(axes, depths).areas_at(boxes))
    spans = [
        axis.hierarchy.descendant_offsets(depth, to)
        for axis, depth, to in zip(axes, depths, finer, strict=True)
    ]
    sizes = [np.diff(span)[numbers] for span, numbers in zip(spans, areas, strict=True)]
    if np.multiply.reduce([of.astype(float) for of in sizes]).sum() > most:
        raise TreeError(
            f"boxes of the {_WHAT} overlap in too many ways; name areas so that one box holds "
            "another, or none of it"
        )
    for axis, span in enumerate(spans):
        n = np.diff(span)[areas[axis]]
        ordinal = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
        first = np.repeat(span[areas[axis]], n)
        areas = [np.repeat(numbers, n) for numbers in areas]
        areas[axis] = (first + ordinal).astype(np.int32)
    return _distinct(Marginal(axes, finer).numbers(areas))


def _distinct(*numbers: Ints) -> Ints:
    """Sort numbers and drop repeated ones; `np.unique` takes several times as long."""
    found = np.sort(np.concatenate(numbers))
    return found[np.diff(found, prepend=-1) > 0]


def _placed(axis: Axis, column: pa.ChunkedArray, *, is_written: bool) -> tuple[Ints, Ints]:
    """Find the level and number of the area that each text names, as `find_area` does."""
    if column.null_count or pc.any(pc.equal(pc.utf8_trim_whitespace(column), "")).as_py():
        raise TreeError(f"column {axis.name!r} of the {_WHAT} has a blank; write all for any area")
    encoded = column.combine_chunks().dictionary_encode()
    texts, hierarchy = encoded.dictionary, axis.hierarchy
    depth, area = np.full((2, len(texts)), -1)
    depth[as_numpy(pc.equal(texts, "all").cast(pa.uint8())) > 0] = 0
    area[depth == 0] = 0
    # Codes, alone or after their level, are found at once; names and ambiguous texts one by one.
    n_found = np.zeros(len(texts), np.int64)
    forms = (False,) if is_written else (False, True)
    for (level, name), is_alone in product(enumerate(hierarchy.level_names, 1), forms):
        codes = hierarchy.codes(level)
        if not is_alone:
            codes = pc.binary_join_element_wise(repeated(name, len(codes)), codes, ":")
        number = find_texts(texts, codes)
        is_new = (number >= 0) & (depth != 0)
        depth[is_new], area[is_new] = level, number[is_new]
        n_found += is_new
    if is_written and (depth < 0).any():
        raise TreeError(f"column {axis.name!r} of the {_WHAT} must name areas as LEVEL:CODE")
    for one in np.flatnonzero((depth < 0) | (n_found > 1)).tolist():
        try:
            depth[one], area[one] = find_area(axis, texts[one].as_py())
        except ReleaseError as problem:
            raise TreeError(f"the {_WHAT}: {problem}") from None
    if OUTSIDE in pc.take(texts, as_arrow(np.flatnonzero(depth > 0))).to_pylist():
        raise TreeError(f"the {_WHAT} names the area {OUTSIDE!r}, where anything may be")
    at = as_numpy(encoded.indices)
    return depth[at], area[at]
