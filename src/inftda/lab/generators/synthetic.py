"""The paper's six synthetic data sets, of any size (its section 5).

Areas are split in two again and again ("binary", 8 levels), or each into 2 to 10 ("random",
4 levels). A share of all pairs has trips: all ("complete"), half ("dense") or one in a hundred
("sparse"). Flows follow a continuous Pareto law, rounded up to whole trips.

The paper states neither exponent nor scale. The data sets published with it follow a tail
P[flow > x] = (1 + x / s)^-3: fitted by maximum likelihood to each of the six, the exponent is
3.02, 3.00, 2.86, 3.03, 3.05 and 2.84 (the small sparse ones are the far ones), and the scale s
differs from one to the other (they were scaled so that the largest flow is 1,000). Here the
scale is what gives the mean flow of the paper's table, so that totals come out as in the table
up to chance (1 % for the large sets, 4 and 7 % for the sparse ones) and do not hang on the
largest draw.
Numbers of areas and of pairs are the paper's; the draws are not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, sqrt
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inftda.bars import Progress
from inftda.errors import InftdaError
from inftda.hierarchy import Hierarchy
from inftda.lab.generators.country import Country

Partition = Literal["binary", "random"]
#: Levels of each partition in the paper.
LEVELS: Mapping[str, int] = MappingProxyType({"binary": 8, "random": 4})
#: Share of the pairs that have trips.
SHARES: Mapping[str, float] = MappingProxyType({"complete": 1.0, "dense": 0.5, "sparse": 0.01})
#: Of the Pareto law: the probability of a flow above x falls as x^-EXPONENT.
EXPONENT = 3.0
#: Mean flow of the paper's data sets: users / pairs of its table. The table has 95,612 pairs for
#: random dense, a slip: half of the 189,225 possible ones are 94,612.
MEAN_FLOWS: Mapping[str, float] = MappingProxyType(
    {
        "binary_complete": 1_051_271 / 65_536,
        "binary_dense": 734_688 / 32_768,
        "binary_sparse": 23_302 / 655,
        "random_complete": 2_019_580 / 189_225,
        "random_dense": 1_003_943 / 94_612,
        "random_sparse": 67_840 / 1_892,
    }
)
#: Least and largest number of parts of an area in a random partition.
SPLIT = (2, 10)
#: Seed of the random areas, the same for every data set, as in the paper. With this one there
#: are 3, 13, 74 and 435 of them, as in the data sets published with it.
AREAS_SEED = 100_550
#: Pairs chosen at a time: small against memory, large against the cost of a step.
BLOCK = 1 << 22


@dataclass(frozen=True, slots=True)
class Synthetic:
    """One kind of data set.

    Attributes:
        partition: "binary" or "random".
        share: of the pairs that have trips.
        levels: number of levels; as in the paper by default.
        mean_flow: mean number of trips of such a pair; from 2 up.
    """

    partition: Partition
    share: float
    levels: int | None = None
    mean_flow: float = 20.0

    def __post_init__(self) -> None:
        """Check what is asked for."""
        if self.partition not in get_args(Partition):
            raise InftdaError(f"partition must be binary or random, got {self.partition!r}")
        if not 0 < self.share <= 1:
            raise InftdaError(f"share must be above 0 and at most 1, got {self.share}")
        if self.levels is not None and self.levels < 1:
            raise InftdaError(f"levels must be from 1 up, got {self.levels}")
        if not 2 <= self.mean_flow <= 1e9:
            raise InftdaError(f"mean_flow must be from 2 to 1e9, got {self.mean_flow}")


#: The paper's six, by the names of its table.
PAPER: Mapping[str, Synthetic] = MappingProxyType(
    {
        f"{partition}_{name}": Synthetic(
            partition, share, mean_flow=MEAN_FLOWS[f"{partition}_{name}"]
        )
        for partition in get_args(Partition)
        for name, share in SHARES.items()
    }
)


def make_synthetic(
    kind: str | Synthetic,
    *,
    seed: int = 1,
    progress: Progress | None = None,
) -> Country:
    """Make one of the paper's data sets, or one like it.

    Args:
        kind: a name of `PAPER`, such as "random_sparse", or a description.
        seed: of the flows.
        progress: called with what is being done, pairs done and pairs in all.

    Raises:
        InftdaError: there is no such data set, or it has no pairs.
    """
    if isinstance(kind, str):
        if kind not in PAPER:
            raise InftdaError(f"there is no data set {kind!r}; there are {', '.join(PAPER)}")
        kind = PAPER[kind]
    levels = kind.levels or LEVELS[kind.partition]
    areas = split_areas(kind.partition, levels, np.random.default_rng(AREAS_SEED))
    random = np.random.default_rng(seed)
    n = areas.n_areas(levels)
    n_pairs = floor(kind.share * n * n)
    if n_pairs == 0:
        raise InftdaError(
            f"a share of {kind.share} of {n * n} pairs is not even one; "
            "take a larger share or more levels"
        )
    origin, destination = _choose_pairs(n, n_pairs, random, progress)
    return Country(areas, origin, destination, pareto_flows(n_pairs, kind.mean_flow, random))


def pareto_flows(n: int, mean: float, random: np.random.Generator) -> NDArray[np.int64]:
    """Heavy-tailed whole numbers from 1 up with this mean."""
    flows = random.pareto(EXPONENT, n)
    flows *= pareto_scale(mean)
    # A draw of exactly 0 is possible, and still a flow.
    return np.maximum(np.ceil(flows, out=flows), 1).astype(np.int64)


def pareto_scale(mean: float) -> float:
    """The scale s at which flows rounded up have this mean, from 2 up.

    The mean of ceil(x) is the sum over k >= 0 of P[x > k] = (1 + k / s)^-3, which by Euler and
    Maclaurin is s / 2 + 1 / 2 + 1 / (4 s), with an error below 0.005 for means from 2 up.

    >>> round(pareto_scale(16.04), 2)
    31.06
    """
    twice = 2 * mean - 1
    return (twice + sqrt(twice**2 - 2)) / 2


def split_areas(partition: Partition, levels: int, random: np.random.Generator) -> Hierarchy:
    """Areas split again and again; codes are numbers within the level, padded with zeros."""
    parents: list[NDArray[np.intp]] = []
    n = 1
    for _ in range(levels):
        low, high = SPLIT if partition == "random" else (2, 2)
        children = random.integers(low, high, n, endpoint=True)
        parents.append(np.repeat(np.arange(n), children))
        n = int(children.sum())
    columns: dict[str, pa.Array] = {}
    of_leaf = np.arange(n)
    for level in range(levels, 0, -1):
        codes = pa.array(of_leaf).cast(pa.string())
        width = len(str(len(parents[level - 1]) - 1))
        columns[f"level{level}"] = pa.compute.utf8_lpad(codes, width=width, padding="0")
        of_leaf = parents[level - 1][of_leaf]
    return Hierarchy.read(pa.table(dict(reversed(columns.items()))))


def _choose_pairs(
    n: int, n_pairs: int, random: np.random.Generator, progress: Progress | None
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Different pairs of areas, all choices equally likely, ascending.

    Origins are taken block by block, each with its part of the pairs as it falls out at random.
    """
    origin, destination = np.empty((2, n_pairs), np.int32)
    rows = max(1, BLOCK // n)
    done = 0
    for first in range(0, n, rows):
        last = min(first + rows, n)
        here, later = (last - first) * n, (n - last) * n
        chosen = _share_of_block(here, later, n_pairs - done, random)
        pairs = np.sort(random.choice(here, chosen, replace=False, shuffle=False))
        part = slice(done, done + chosen)
        origin[part], destination[part] = first + pairs // n, pairs % n
        done += chosen
        if progress is not None:
            progress("pairs", done, n_pairs)
    return origin, destination


def _share_of_block(here: int, later: int, wanted: int, random: np.random.Generator) -> int:
    """How many of the `wanted` pairs fall among the `here` first of `here + later`."""
    if later == 0 or wanted == here + later:
        return min(wanted, here)
    if here + later < 10**9:
        return int(random.hypergeometric(here, later, wanted))
    # Beyond the sampler's range the law is practically binomial; clipped to what is possible.
    drawn = int(random.binomial(wanted, here / (here + later)))
    return max(min(drawn, here), wanted - later)
