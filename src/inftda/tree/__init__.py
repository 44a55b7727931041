"""Public structure: axes, the levels of a tree, cross tables, and cells between areas.

All of it is public knowledge: it must never be derived from the trips.
"""

from inftda.tree.cells import Areas, Cells, Ints
from inftda.tree.cross_tables import CrossTable
from inftda.tree.levels import (
    DESTINATION,
    ORIGIN,
    Axis,
    CellRows,
    Marginal,
    TreeLevel,
)
from inftda.tree.tree import Tree

__all__ = [
    "DESTINATION",
    "ORIGIN",
    "Areas",
    "Axis",
    "CellRows",
    "Cells",
    "CrossTable",
    "Ints",
    "Marginal",
    "Tree",
    "TreeLevel",
]
