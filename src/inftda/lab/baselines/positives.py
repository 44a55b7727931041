"""Positive elements of vectors that are optimised already.

IntOpt finds them while it optimises; the solvers that it is compared with overwrite the vector.
"""

from inftda.kernels import kernel
from inftda.optimize.segments import Survivors, write_only_child
from inftda.optimize.selection import Vector, gather


@kernel
def write_positive(x: Vector, offsets: Vector, total: Vector, out: Survivors) -> None:
    """Write the positive elements of all vectors."""
    out.offsets[0] = end = 0
    for i in range(total.size):
        vector, index, value = x[offsets[i] : offsets[i + 1]], out.index[end:], out.value[end:]
        if vector.size == 0:
            end += write_only_child(total[i], index, value)
        else:
            end += gather(vector, 0, index, value)
        out.offsets[i + 1] = end
