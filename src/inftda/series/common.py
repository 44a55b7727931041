"""Areas that two editions have in common, although some were merged or split between them.

A crosswalk links finest areas of the old edition to their successors in the new one. Areas that it
connects, directly or through others, are one common area; all others keep their code. Coarser areas
are in common if they have the same code and hold the same common areas.

All of it is public.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from inftda.errors import ReleaseError
from inftda.tree import Ints
from inftda.tree.hierarchy import Hierarchy
from inftda.util.tabular import as_arrow, find_texts, read_strings, texts

#: Codes of a finest area and of its successor.
Links = Sequence[tuple[str, str]]
_SHOWN = 5


@dataclass(frozen=True)
class CommonAreas:
    """Areas of one level of an axis that both editions have.

    Attributes:
        codes: of the common areas.
        of: int64[areas] for the old and the new edition: which common area each area is part of.
    """

    codes: pa.StringArray
    of: tuple[Ints, Ints]

    def expand(self, side: int, common: Ints) -> tuple[Ints, Ints]:
        """Areas of an edition that make up common areas: position in `common`, and area."""
        order = np.argsort(self.of[side], kind="stable")
        sizes = np.bincount(self.of[side], minlength=len(self.codes))
        starts, n = (np.cumsum(sizes) - sizes)[common], sizes[common]
        position = np.repeat(np.arange(len(common)), n)
        within = np.arange(len(position)) - np.repeat(np.cumsum(n) - n, n)
        return position, order[starts[position] + within]


def read_crosswalk(source: Any) -> Links:
    """A table with the columns old and new, codes of finest areas."""
    table = read_strings(source, what="crosswalk", error=ReleaseError, columns=("old", "new"))
    return list(zip(table["old"].to_pylist(), table["new"].to_pylist(), strict=True))


def common_areas(
    axis: str, both: tuple[Hierarchy, Hierarchy], level: str, links: Links
) -> CommonAreas:
    """The areas of one level, "all" for the whole, that two hierarchies have in common.

    Raises:
        ReleaseError: they are not comparable there; the message states the reason.
    """
    old, new = both
    depth = old.level_of(level)
    if old == new or depth == 0:
        same = np.arange(old.n_areas(depth))
        return CommonAreas(old.codes(depth), (same, same))
    labels = _connected(axis, both, links)
    if depth == old.depth:
        names, number = np.unique([*labels[0], *labels[1]], return_inverse=True)
        of = number[: len(labels[0])], number[len(labels[0]) :]
        return CommonAreas(texts(names.tolist()), of)
    holds = [_holders(axis, *one, depth) for one in zip(both, labels, strict=True)]
    for label, code in holds[0].items():
        if holds[1][label] != code:
            raise ReleaseError(
                f"{axis}: {label!r} is in the {level} {code!r} of the old edition and in "
                f"{holds[1][label]!r} of the new one, so areas of this level are not comparable; "
                "compare finest areas, or all"
            )
    codes = old.codes(depth)
    return CommonAreas(
        codes, (np.arange(len(codes)), find_texts(new.codes(depth), codes).astype(np.int64))
    )


def _holders(axis: str, hierarchy: Hierarchy, labels: list[str], depth: int) -> dict[str, str]:
    """The code of the area of a level that holds each common area."""
    above = hierarchy.codes(depth).take(as_arrow(hierarchy.ancestor(hierarchy.depth, depth)))
    holders: dict[str, str] = {}
    for label, code in zip(labels, above.to_pylist(), strict=True):
        if holders.setdefault(label, code) != code:
            raise ReleaseError(
                f"{axis}: {label!r} is made of areas in {holders[label]!r} and in {code!r}, so "
                f"areas of the level {hierarchy.level_name(depth)} are not comparable; compare "
                "finest areas, or all"
            )
    return holders


def _connected(axis: str, both: tuple[Hierarchy, Hierarchy], links: Links) -> list[list[str]]:
    """For each edition the code of the common area of every finest area."""
    codes = [hierarchy.codes(hierarchy.depth).to_pylist() for hierarchy in both]
    known = [set(side) for side in codes]
    linked: list[tuple[str, str]] = [
        (old, new) for old, new in links if old in known[0] and new in known[1]
    ]
    changed = [{pair[side] for pair in linked} for side in range(2)]
    for side, name in enumerate(("old", "new")):
        lost = sorted(known[side] - known[1 - side] - changed[side])
        if lost:
            raise ReleaseError(
                f"{axis}: the {name} edition has areas that the other does not: "
                f"{', '.join(lost[:_SHOWN])}{' and others' if len(lost) > _SHOWN else ''}; give "
                "`crosswalk=`, a table with the columns old and new, that says what became of them"
            )
    # An area that keeps its code is linked to itself, unless the crosswalk says otherwise.
    linked += [(x, x) for x in known[0] & known[1] if x not in changed[0] and x not in changed[1]]
    members = _components(linked)
    return [[members[side, code] for code in side_codes] for side, side_codes in enumerate(codes)]


def _components(linked: Links) -> Mapping[tuple[int, str], str]:
    """The common area of each area: the one code there is on either side, or all new ones."""
    parent: dict[tuple[int, str], tuple[int, str]] = {}

    def root(node: tuple[int, str]) -> tuple[int, str]:
        while parent.setdefault(node, node) != node:
            parent[node] = node = parent[parent[node]]
        return node

    for old, new in linked:
        parent[root((0, old))] = root((1, new))
    inside: dict[tuple[int, str], list[tuple[int, str]]] = defaultdict(list)
    for node in list(parent):
        inside[root(node)].append(node)
    found: dict[tuple[int, str], str] = {}
    for nodes in inside.values():
        sides = [sorted(code for side, code in nodes if side == which) for which in (1, 0)]
        label = next((side[0] for side in sides if len(side) == 1), "+".join(sides[0]))
        found |= dict.fromkeys(nodes, label)
    return found
