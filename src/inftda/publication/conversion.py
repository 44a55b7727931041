"""Tables for people: as Arrow, pandas, polars or geopandas, whichever they have."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal, get_args

import pyarrow as pa

from inftda.errors import MissingExtraError, ReleaseError
from inftda.tree import Tree

TableFormat = Literal["arrow", "pandas", "polars"]
#: Flows can lie on a map; other tables cannot.
FlowFormat = Literal["arrow", "pandas", "polars", "geopandas"]


def converted(table: pa.Table, as_: TableFormat) -> Any:
    """A table in the form that was asked for.

    Raises:
        ReleaseError: there is no such form.
        MissingExtraError: its library is not installed.
    """
    if as_ == "arrow":
        return table
    if as_ in {"pandas", "polars"}:
        library = _library(as_)
        return table.to_pandas() if as_ == "pandas" else library.from_arrow(table)
    raise ReleaseError(f"as_ must be 'arrow', 'pandas' or 'polars', got {as_!r}")


def converted_flows(table: pa.Table, as_: FlowFormat, tree: Tree, levels: Mapping[str, str]) -> Any:
    """Flows in the form that was asked for; with geopandas, as lines between areas.

    Args:
        table: what `sum_flows` gives.
        as_: the form.
        tree: the tree of the release.
        levels: axis name to the level that is shown.

    Raises:
        ReleaseError: there is no such form, or nobody knows where the areas lie.
        MissingExtraError: its library is not installed.
    """
    if as_ not in get_args(FlowFormat):
        raise ReleaseError(f"as_ must be 'arrow', 'pandas', 'polars' or 'geopandas', got {as_!r}")
    if as_ != "geopandas":
        return converted(table, as_)
    from inftda.publication.shapes import shapes_of  # noqa: PLC0415 - for few

    library = _library("geopandas")
    shapes = library.GeoSeries(shapes_of(table, tree, levels), crs="EPSG:4326")
    return library.GeoDataFrame(table.to_pandas(), geometry=shapes)


def _library(name: str) -> Any:
    """A library that is brought by the user who asks for it."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtraError(
            f"flows as {name} need {name}, which is not installed; install it, or leave out as_"
        ) from None
