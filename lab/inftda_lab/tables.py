"""Tables to release: the paper's six synthetic ones, files, and ISTAT's matrix of 2011.

The synthetic areas are split in two again and again ("binary", 8 levels), or each into 2 to 10
("random", 4 levels). A share of all pairs has trips: all ("complete"), half ("dense") or one in a
hundred ("sparse"). Flows follow a continuous Pareto distribution, rounded up to whole trips.

The paper states neither exponent nor scale. The data sets published with it follow a tail
P[flow > x] = (1 + x / s)^-3: fitted by maximum likelihood to each of the six, the exponent is
3.02, 3.00, 2.86, 3.03, 3.05 and 2.84 (the small sparse ones are the far ones). Here the scale s is
what gives the mean flow of the paper's Table 1, so that totals come out as there up to chance.
Numbers of areas and of pairs are the paper's; the draws are not.
"""

import zipfile
from dataclasses import dataclass
from math import floor, sqrt
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

import inftda

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Table:
    """Flows between areas.

    Attributes:
        name: for results.
        areas: the hierarchy of both ends.
        origin: number of the finest area where each flow starts; each pair occurs once.
        destination: where it ends.
        count: trips, above 0.
    """

    name: str
    areas: inftda.Hierarchy
    origin: Numbers
    destination: Numbers
    count: Numbers

    @property
    def total(self) -> int:
        """Number of trips."""
        return int(self.count.sum())

    def flows(self) -> pa.Table:
        """Flows with codes, as `inftda.release` takes them."""
        codes = self.areas.codes(self.areas.depth)
        ends = {"origin": self.origin, "destination": self.destination}
        columns = {
            name: pa.DictionaryArray.from_arrays(pa.array(number.astype(np.int32)), codes)
            for name, number in ends.items()
        }
        return pa.table({**columns, "count": self.count})


class Recipe(NamedTuple):
    """How a synthetic table is made: kind of areas, share of pairs with trips, mean flow."""

    partition: str
    share: float
    mean: float


#: The paper's six, by the names of its Table 1, whose users and pairs give the mean flow. It has
#: 95,612 pairs for random_dense, a slip: half of the 189,225 possible ones are 94,612.
SYNTHETIC: Final = {
    "binary_complete": Recipe("binary", 1.0, 1_051_271 / 65_536),
    "binary_dense": Recipe("binary", 0.5, 734_688 / 32_768),
    "binary_sparse": Recipe("binary", 0.01, 23_302 / 655),
    "random_complete": Recipe("random", 1.0, 2_019_580 / 189_225),
    "random_dense": Recipe("random", 0.5, 1_003_943 / 94_612),
    "random_sparse": Recipe("random", 0.01, 67_840 / 1_892),
}
#: The name of the paper's real table.
ITALY: Final = "italy"
#: Levels of each kind, and the least and largest number of parts of an area.
LEVELS: Final = {"binary": 8, "random": 4}
PARTS: Final = {"binary": (2, 2), "random": (2, 10)}
#: With this seed the random areas are 3, 13, 74 and 435, as in the published data sets.
AREAS_SEED: Final = 100_550
#: Of the Pareto distribution: the probability of a flow above x falls as x^-EXPONENT.
EXPONENT: Final = 3.0


def make_synthetic(name: str, seed: int = 1) -> Table:
    """One of the paper's synthetic tables."""
    recipe = SYNTHETIC[name]
    areas = split_areas(recipe.partition, np.random.default_rng(AREAS_SEED))
    random = np.random.default_rng(seed)
    n = areas.n_areas(areas.depth)
    pairs = np.sort(random.choice(n * n, floor(recipe.share * n * n), replace=False))
    flows = np.ceil(random.pareto(EXPONENT, len(pairs)) * pareto_scale(recipe.mean))
    count = np.maximum(flows, 1).astype(np.int64)  # a draw of exactly 0 is still a flow
    return Table(name, areas, pairs // n, pairs % n, count)


def pareto_scale(mean: float) -> float:
    """The scale s at which flows rounded up have this mean, from 2 up.

    The mean of ceil(x) is the sum over k >= 0 of P[x > k] = (1 + k / s)^-3, which by Euler and
    Maclaurin is s / 2 + 1 / 2 + 1 / (4 s), with an error below 0.005 for means from 2 up.

    >>> round(pareto_scale(16.04), 2)
    31.06
    """
    twice = 2 * mean - 1
    return (twice + sqrt(twice**2 - 2)) / 2


def split_areas(partition: str, random: np.random.Generator) -> inftda.Hierarchy:
    """Areas split again and again; codes are numbers within the level, padded with zeros."""
    levels, (low, high) = LEVELS[partition], PARTS[partition]
    parents = []
    n = 1
    for _ in range(levels):
        children = random.integers(low, high, n, endpoint=True)
        parents.append(np.repeat(np.arange(n), children))
        n = int(children.sum())
    columns: dict[str, list[str]] = {}
    of_leaf = np.arange(n)
    for level in range(levels, 0, -1):
        width = len(str(len(parents[level - 1]) - 1))
        columns[f"level{level}"] = [f"{number:0{width}d}" for number in of_leaf]
        of_leaf = parents[level - 1][of_leaf]
    return inftda.Hierarchy.read(dict(reversed(columns.items())))


def read_table(folder: Path) -> Table:
    """A folder with `flows.parquet` (origin, destination, count) and `areas.csv`."""
    return from_flows(
        folder.name,
        pq.read_table(folder / "flows.parquet"),
        inftda.Hierarchy.read(folder / "areas.csv"),
    )


def from_flows(name: str, flows: pa.Table, areas: inftda.Hierarchy) -> Table:
    """A table from codes, each pair once or more often."""
    codes, n = areas.codes(areas.depth), areas.n_areas(areas.depth)
    ends = [numbers_of(flows[end], codes) for end in ("origin", "destination")]
    cells, inverse = np.unique(ends[0] * n + ends[1], return_inverse=True)
    count = np.zeros(len(cells), np.int64)
    np.add.at(count, inverse, flows["count"].to_numpy())
    kept = count > 0
    return Table(name, areas, cells[kept] // n, cells[kept] % n, count[kept])


def numbers_of(column: pa.ChunkedArray, codes: pa.StringArray) -> Numbers:
    """Numbers of areas by their codes.

    Raises:
        ValueError: a code is not among the areas.
    """
    found = pc.index_in(column.cast(pa.string()), value_set=codes)
    if found.null_count:
        raise ValueError("a code of the table is not among its areas")
    return np.asarray(found.combine_chunks(), np.int64)


#: Provinces of each region at the census (ISTAT's codes).
_PROVINCES: Final = {
    1: (*range(1, 7), 96, 103), 2: (7,), 3: (*range(12, 21), 97, 98, 108), 4: (21, 22),
    5: (*range(23, 30),), 6: (*range(30, 33), 93), 7: (*range(8, 12),), 8: (*range(33, 41), 99),
    9: (*range(45, 54), 100), 10: (54, 55), 11: (*range(41, 45), 109), 12: (*range(56, 61),),
    13: (*range(66, 70),), 14: (70, 94), 15: (*range(61, 66),), 16: (*range(71, 76), 110),
    17: (76, 77), 18: (78, 79, 80, 101, 102), 19: (*range(81, 90),),
    20: (90, 91, 92, 95, 104, 105, 106, 107),
}  # fmt: skip


def read_istat(archive: Path) -> Table:
    """ISTAT's matrix between municipalities of 2011, in the zip as downloaded: the paper's Italy.

    Its rows have 15 cells separated by blanks. Those of kind S carry exact numbers; trips abroad
    or to nowhere known are left out.
    """
    with zipfile.ZipFile(archive) as files:
        member = max(
            (info for info in files.infolist() if info.filename.lower().endswith(".txt")),
            key=lambda info: info.file_size,
        )
        with files.open(member) as text:
            rows = [
                row for row in (line.decode("latin-1").split() for line in text) if row[0] == "S"
            ]
    origin = [row[2].zfill(3) + row[3].zfill(3) for row in rows]
    away = [row[7].zfill(3) + row[8].zfill(3) for row in rows]
    same = [row[6] == "1" for row in rows]
    end = [o if s else a for o, a, s in zip(origin, away, same, strict=True)]
    kept = [row[6] != "3" and code.isdigit() for row, code in zip(rows, end, strict=True)]
    count = [int(float(row[14].replace(",", "."))) for row in rows]
    flows = pa.table({"origin": origin, "destination": end, "count": count}).filter(pa.array(kept))
    region = {province: number for number, found in _PROVINCES.items() for province in found}
    towns = sorted({*flows["origin"].to_pylist(), *flows["destination"].to_pylist()})
    areas = {
        "region": [f"{region[int(town[:3])]:02d}" for town in towns],
        "province": [town[:3] for town in towns],
        "municipality": towns,
    }
    return from_flows(ITALY, flows, inftda.Hierarchy.read(areas))


def write_table(table: Table, folder: Path) -> None:
    """Write a table as `read_table` reads it."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table.flows(), folder / "flows.parquet")
    pa_csv.write_csv(table.areas.to_table(), folder / "areas.csv")
