"""Cells that cannot occur: no ferry leaves an inland town, and nobody lives in a reservoir.

Who publishes a table may know that, whatever is in it. Such cells are given as *boxes*: an area of
any level on every axis, or "all". Boxes are kept apart, so that no cell lies in two of them. How
many leaves of a node lie in boxes is then a sum of products, for nodes of any marginal, on the tree
or off it. A node is impossible if all of its leaves do.

What cannot be placed may have been anywhere, so cells with an area "outside" are never impossible.

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
from inftda.groupings import find_area
from inftda.hierarchy import OUTSIDE
from inftda.places import Places
from inftda.tables import as_arrow, as_numpy, find_texts, read_strings, repeated
from inftda.tree import Axis, Marginal, Tree

Depths = tuple[int, ...]
Areas = Sequence[NDArray[np.int32]]
Ints = NDArray[np.int64]

_WHAT: Final = "table of impossible areas"
#: Boxes that others are cut into where they overlap, at most.
_MOST: Final = 1 << 26


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes of cells that cannot occur, no two of which overlap.

    Attributes:
        axes: of the tree, without what else is known of their areas.
        boxes: levels of the axes to the boxes there: their numbers, ascending.
    """

    axes: tuple[Axis, ...]
    boxes: Mapping[Depths, Ints]
    _known: dict[Depths, "_Volumes"] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls, source: Any, tree: Tree) -> "Boxes":
        """Read a table with a column for some axes, or all: an area of any level, or "all".

        Raises:
            TreeError: it names what the tree does not have, or leaves nothing that can occur.
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
            depth[at], area[at] = _placed(tree.axes[at], table.column(name))
        given = {}
        for depths in {*zip(*depth.tolist(), strict=True)}:
            is_here = (depth == np.array(depths, np.int32)[:, None]).all(axis=0)
            given[depths] = _distinct(Marginal(lean, depths).numbers([*area[:, is_here]]))
        made = cls(lean, _joined(lean, _apart(lean, _inside(lean, given))))
        if not made.is_possible((0,) * len(lean), [np.zeros(1, np.int32)] * len(lean)).all():
            raise TreeError(f"by the {_WHAT} nothing can occur at all; check its rows")
        return made

    def is_possible(self, depths: Depths, areas: Areas) -> NDArray[np.bool_]:
        """Whether some leaf of each node can occur.

        Args:
            depths: level of each axis's hierarchy that the nodes are at.
            areas: int32[nodes] for each axis.
        """
        if depths not in self._known:
            self._known[depths] = _Volumes.of(self, depths)
        return self._known[depths].is_possible(areas)

    def restricts(self, depths: Depths, axis: int) -> bool:
        """Whether boxes tell apart nodes that are alike but for this level of an axis."""
        return any(box[axis] >= depths[axis] for box in self.boxes)

    def to_text(self) -> bytes:
        """The boxes as a table that can be read again: CSV."""
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


class _Volumes(NamedTuple):
    """How many leaves the nodes of a marginal have, and how many of these lie in boxes.

    Attributes:
        leaves: int64[areas] for each axis.
        boxes: those of each kind.
    """

    leaves: list[Ints]
    boxes: list["_BoxSums"]

    @classmethod
    def of(cls, known: Boxes, depths: Depths) -> "_Volumes":
        pairs = zip(known.axes, depths, strict=True)
        return cls(
            [axis.hierarchy.leaves_under(depth) for axis, depth in pairs],
            [_BoxSums.of(known.axes, *item, depths) for item in known.boxes.items()],
        )

    def is_possible(self, areas: Areas) -> NDArray[np.bool_]:
        leaves = [of[numbers] for of, numbers in zip(self.leaves, areas, strict=True)]
        inside = np.zeros(len(areas[0]), np.int64)
        for known in self.boxes:
            up = [of[numbers] for of, numbers in zip(known.up, areas, strict=True)]
            number = known.at.numbers(up)
            row = np.minimum(np.searchsorted(known.number, number), len(known.number) - 1)
            found = np.where(known.number[row] == number, known.leaves[row], 0)
            for axis in known.whole:
                found *= leaves[axis]
            inside += found
        return np.asarray(inside < prod(leaves[1:], start=leaves[0]))


class _BoxSums(NamedTuple):
    """Boxes of one kind, summed up where they lie inside the nodes of a marginal.

    Attributes:
        at: the finest marginal that boxes and nodes both lie in.
        up: int32[areas] for each axis, in which of its areas those of nodes lie.
        number: int64, ascending, of its cells that have boxes.
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
    """Areas of a coarser marginal that some lie in."""
    return [
        numbers if depth == to else axis.hierarchy.ancestor(depth, to)[numbers]
        for axis, depth, to, numbers in zip(axes, depths, coarser, areas, strict=True)
    ]


def _apart(axes: tuple[Axis, ...], given: Mapping[Depths, Ints]) -> dict[Depths, Ints]:
    """The same cells in boxes that do not overlap; boxes that do not are left as they are."""
    kept: dict[Depths, Ints] = {}
    waiting = sorted(given.items(), key=lambda item: (-sum(item[0]), item[0]))
    while waiting:  # large boxes first, as they may hold small ones
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
            if overlaps.any() and finer != depths:  # what lies in the others is left out then
                waiting.append((finer, _cut(axes, depths, finer, boxes[overlaps])))
            boxes = boxes[~overlaps]
        if len(boxes):
            kept[depths] = _distinct(kept.get(depths, boxes[:0]), boxes)
    return kept


def _joined(axes: tuple[Axis, ...], given: Mapping[Depths, Ints]) -> dict[Depths, Ints]:
    """The same cells in larger boxes, wherever all boxes in an area of an axis are there."""
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


def _inside(axes: tuple[Axis, ...], given: Mapping[Depths, Ints]) -> dict[Depths, Ints]:
    """Boxes without the areas "outside", which "all" would hold otherwise."""
    found: dict[Depths, Ints] = {}
    for depths, boxes in given.items():
        finer = tuple(
            depth or int(axis.hierarchy.has_outside)
            for axis, depth in zip(axes, depths, strict=True)
        )
        cut = _cut(axes, depths, finer, boxes)
        areas = Marginal(axes, finer).areas_at(cut)
        is_out = np.zeros(len(cut), bool)
        for axis, depth, numbers in zip(axes, finer, areas, strict=True):
            if axis.hierarchy.has_outside:
                is_out |= numbers == axis.hierarchy.find(depth, [OUTSIDE])[0]
        found[finer] = _distinct(found.get(finer, cut[:0]), cut[~is_out])
    return found


def _cut(axes: tuple[Axis, ...], depths: Depths, finer: Depths, boxes: Ints) -> Ints:
    """Boxes cut into those of a finer marginal."""
    if depths == finer:
        return boxes
    areas = list(Marginal(axes, depths).areas_at(boxes))
    spans = [
        axis.hierarchy.descendant_offsets(depth, to)
        for axis, depth, to in zip(axes, depths, finer, strict=True)
    ]
    sizes = [np.diff(span)[numbers] for span, numbers in zip(spans, areas, strict=True)]
    if np.multiply.reduce([of.astype(float) for of in sizes]).sum() > _MOST:
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
    """All numbers, ascending and each once; `np.unique` takes several times as long."""
    found = np.sort(np.concatenate(numbers))
    return found[np.diff(found, prepend=-1) > 0]


def _placed(axis: Axis, column: pa.ChunkedArray) -> tuple[Ints, Ints]:
    """Level and number of the area that each text names, as `find_area` finds it."""
    if column.null_count or pc.any(pc.equal(pc.utf8_trim_whitespace(column), "")).as_py():
        raise TreeError(f"column {axis.name!r} of the {_WHAT} has a blank; write all for any area")
    encoded = column.combine_chunks().dictionary_encode()
    texts, hierarchy = encoded.dictionary, axis.hierarchy
    depth, area = np.full((2, len(texts)), -1)
    depth[as_numpy(pc.equal(texts, "all").cast(pa.uint8())) > 0] = 0
    area[depth == 0] = 0
    # Codes, alone or after their level, all at once; names and what is not clear one by one.
    n_found = np.zeros(len(texts), np.int64)
    for (level, name), is_alone in product(enumerate(hierarchy.level_names, 1), (False, True)):
        codes = hierarchy.codes(level)
        if not is_alone:
            codes = pc.binary_join_element_wise(repeated(name, len(codes)), codes, ":")
        number = find_texts(texts, codes)
        is_new = (number >= 0) & (depth != 0)
        depth[is_new], area[is_new] = level, number[is_new]
        n_found += is_new
    for one in np.flatnonzero((depth < 0) | (n_found > 1)).tolist():
        try:
            depth[one], area[one] = find_area(axis, texts[one].as_py())
        except ReleaseError as problem:
            raise TreeError(f"the {_WHAT}: {problem}") from None
    if OUTSIDE in pc.take(texts, as_arrow(np.flatnonzero(depth > 0))).to_pylist():
        raise TreeError(f"the {_WHAT} names the area {OUTSIDE!r}, where anything may be")
    at = as_numpy(encoded.indices)
    return depth[at], area[at]
