"""Tables for people: as Arrow, pandas or polars, whichever they have."""

from importlib import import_module
from typing import Any, Literal

import pyarrow as pa

from inftda.errors import MissingExtraError, ReleaseError

TableFormat = Literal["arrow", "pandas", "polars"]


def converted(table: pa.Table, as_: TableFormat) -> Any:
    """A table in the form that was asked for.

    Raises:
        ReleaseError: there is no such form.
        MissingExtraError: its library is not installed.
    """
    if as_ == "arrow":
        return table
    if as_ in {"pandas", "polars"}:
        try:
            library = import_module(as_)  # optional, brought by the user who asks for it
        except ImportError:
            raise MissingExtraError(
                f"flows as {as_} need {as_}, which is not installed; install it, or leave out as_"
            ) from None
        return table.to_pandas() if as_ == "pandas" else library.from_arrow(table)
    raise ReleaseError(f"as_ must be 'arrow', 'pandas' or 'polars', got {as_!r}")
