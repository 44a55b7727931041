"""IntOpt with large elements lowered first: the paper's other order, for `inftda-descending`."""

from inftda.kernels import kernel
from inftda.optimize.segments import Seeds, Survivors, optimize_in_order
from inftda.optimize.selection import Vector


@kernel
def optimize_intopt_descending(
    x: Vector, offsets: Vector, total: Vector, seed: Seeds, out: Survivors
) -> int:
    """IntOpt, large elements are lowered first."""
    return optimize_in_order(x, offsets, total, seed, out, True)
