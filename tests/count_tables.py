"""Tables of flows made of arrays of counts."""

import numpy as np
import pyarrow as pa


def table_of(counts, **codes):
    """A row for each count that is not 0; each axis of the array has a column and its codes."""
    at = np.nonzero(counts)
    columns = {name: np.asarray(codes[name])[here] for name, here in zip(codes, at, strict=True)}
    return pa.table({**columns, "count": counts[at]})
