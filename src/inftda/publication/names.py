"""Names of areas beside their codes."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from inftda.errors import ReleaseError
from inftda.tree import Tree


def with_names(table: pa.Table, tree: Tree, levels: Mapping[str, str]) -> pa.Table:
    """A table of flows with a column of names after the codes of each axis that has any.

    Args:
        table: what `sum_flows` gives.
        tree: the tree of the release.
        levels: axis name to the level that is shown.

    Raises:
        ReleaseError: no area that is shown has a name.
    """
    columns = dict(zip(table.column_names, table.columns, strict=True))
    found: dict[str, pa.ChunkedArray] = {}
    for column, values in columns.items():
        found[column] = values
        axis = next((axis for axis in tree.axes if axis.name == column), None)
        if axis is None:
            continue
        names = axis.hierarchy.places.names.get(levels[column])
        if names is not None:
            codes = axis.hierarchy.codes(axis.hierarchy.level_of(levels[column]))
            found[f"{column}_name"] = names.take(
                pc.index_in(values, value_set=codes).combine_chunks()
            )
    if len(found) == len(columns):
        raise ReleaseError(
            "the release has no names of the areas that are shown; leave out names, or ask for "
            "another level"
        )
    return pa.table(found)
