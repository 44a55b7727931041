"""How fast leaf pairs become counts in tree order, and how much memory that takes.

Run `python benchmarks/counts.py [--json]`. Two synthetic countries, both with skewed sizes and
mostly short trips: municipalities (three levels, T = 6) and census sections (five, T = 10).
Peak memory is that of the whole process, the input and the libraries included.
"""

import argparse
import json
import platform
import resource
import time
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from inftda.counts import Counts
from inftda.hierarchy import Hierarchy
from inftda.tree import Tree

N_REGIONS, N_PROVINCES, N_MUNICIPALITIES, N_SECTIONS = 20, 110, 8_092, 362_292
#: (name, number of geographic levels, pairs); small ones first, because peak memory only grows.
CASES = (("municipalities", 3, 560_000), ("census sections", 5, 24_000_000))


@dataclass(frozen=True)
class Result:
    case: str
    areas: int
    depth: int
    pairs: int
    seconds: float
    pairs_per_second: int
    peak_gb: float


def make_country(n_levels: int, rng: np.random.Generator) -> Hierarchy:
    """Nested areas of very different sizes, cut off after `n_levels`."""
    region = spread(N_PROVINCES, N_REGIONS, rng)
    province = spread(N_MUNICIPALITIES, N_PROVINCES, rng)
    municipality = spread(N_SECTIONS, N_MUNICIPALITIES, rng)
    # A district is about fifteen sections of one municipality.
    district = municipality * N_SECTIONS + np.arange(N_SECTIONS) // 15
    section = np.arange(N_SECTIONS)
    if n_levels < 5:
        municipality = np.arange(N_MUNICIPALITIES)
    codes = {
        "region": region[province[municipality]],
        "province": province[municipality],
        "municipality": municipality,
        "district": district,
        "section": section,
    }
    return Hierarchy.read(
        {name: np.char.zfill(codes[name].astype(str), 12) for name in list(codes)[:n_levels]}
    )


def spread(n: int, n_parents: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Parents of n areas in order: each parent has one area at least, few have very many."""
    weight = rng.pareto(1.2, n_parents) + 0.3
    more = rng.choice(n_parents, n - n_parents, p=weight / weight.sum())
    return np.sort(np.concatenate([np.arange(n_parents), more]))


def make_pairs(n_areas: int, n: int, rng: np.random.Generator) -> list[NDArray[np.int32]]:
    """Different pairs: destinations lie near their origins, more often than not."""
    origin = rng.integers(0, n_areas, n, dtype=np.int64)
    jump = rng.standard_cauchy(n).clip(-n_areas, n_areas) * n_areas / 100
    pair = np.unique(origin * n_areas + (origin + jump.astype(np.int64)) % n_areas)
    rng.shuffle(pair)
    return [(pair // n_areas).astype(np.int32), (pair % n_areas).astype(np.int32)]


def measure(case: str, n_levels: int, n: int, *, repeat: int) -> Result:
    """Best of `repeat` runs, kernels already compiled."""
    rng = np.random.default_rng(1)
    areas = make_country(n_levels, rng)
    tree = Tree.destination_first(areas)
    # A few more are drawn, because some pairs are drawn twice.
    pairs = [end[:n] for end in make_pairs(areas.n_areas(n_levels), n + n // 2, rng)]
    value = rng.geometric(0.5, len(pairs[0]))
    Counts.from_leaves(tree, [end[:1000] for end in pairs], value[:1000])
    seconds = []
    for _ in range(repeat):
        started = time.perf_counter()
        n_leaves = Counts.from_leaves(tree, pairs, value).n_leaves
        seconds.append(time.perf_counter() - started)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    rate = round(n_leaves / min(seconds))
    size = areas.n_areas(n_levels)
    return Result(case, size, tree.depth, n_leaves, min(seconds), rate, peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print a machine-readable dict")
    parser.add_argument("--repeat", type=int, default=2, help="runs of each case; the best counts")
    options = parser.parse_args()
    results = [measure(*case, repeat=options.repeat) for case in CASES]
    if options.json:
        machine = {"machine": platform.machine(), "python": platform.python_version()}
        print(json.dumps({"benchmark": "counts", **machine, "cases": [asdict(r) for r in results]}))
        return
    for r in results:
        print(
            f"{r.case}: {r.areas:,} areas, T = {r.depth}, {r.pairs:,} pairs in {r.seconds:.2f} s "
            f"({r.pairs_per_second / 1e6:.1f} M pairs/s), peak {r.peak_gb:.2f} GB"
        )


if __name__ == "__main__":
    main()
