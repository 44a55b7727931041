"""How often do intervals of zones hold the truth?

python benchmarks/zones.py [--quick] [TABLE ...] [--epsilon 1] [--seeds 13 14]

Zones are made at random, and of neighbours in the order of the areas, 5, 20 and 100 of them. For
flows between zones, from zones to the coarsest areas, and totals: the part of the numbers whose
interval holds the truth, and that of the worst class of numbers of about one size, of those with
100 numbers or more. Releases are seeded: they are no releases, and the truth is known.
"""

import argparse

import numpy as np
import pyarrow as pa

import inftda
from agreement import by_number, table
from inftda.demo import make_country
from inftda.evaluation.cells import CLASS_STARTS, class_of
from inftda.groupings import asked_for

#: So many zones, so many times: few zones have few numbers.
ZONES = {5: 8, 20: 3, 100: 1}
#: Made up, with two axes.
PLAIN = {"made up": ((5, 40, 600), 1_000_000)}


def zones_of(n, n_zones, rng, *, at_random):
    if at_random:
        return rng.integers(0, n_zones, n)
    cuts = np.sort(rng.choice(np.arange(1, n), n_zones - 1, replace=False))
    return np.searchsorted(cuts, np.arange(n), side="right")


def held(release, truth, zones, levels):
    """Published numbers, and whether the interval of each holds the truth."""
    found = release.flows(zones=zones, level=levels, intervals=True)
    asked = asked_for(release.tree, ({}, levels), ({}, None), zones)
    areas, count = truth
    sizes = [len(axis.codes) for axis in asked]
    groups = [axis.group[area] for axis, area in zip(asked, areas, strict=True)]
    is_in = np.logical_and.reduce([group >= 0 for group in groups])
    cells = np.ravel_multi_index([group[is_in] for group in groups], sizes)
    cell, where = np.unique(cells, return_inverse=True)
    sums = np.bincount(where, count[is_in])
    rows = np.ravel_multi_index([axis.numbers(found) for axis in asked], sizes)
    at = np.minimum(np.searchsorted(cell, rows), len(cell) - 1)
    true = np.where(cell[at] == rows, sums[at], 0)
    flow, low, high = (found.column(name).to_numpy() for name in ("flow", "low", "high"))
    return flow, (low <= true) & (true <= high)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE")
    parser.add_argument("--quick", action="store_true", help="one small made-up table")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[13, 14])
    given = parser.parse_args()
    for name in ["tiny"] if given.quick else given.tables or ["belgium", "new zealand", *PLAIN]:
        if name in PLAIN:
            country = make_country(*PLAIN[name], seed=3)
            flows, options = country.flows(), {"areas": country.areas}
        else:
            flows, options = table(name)
        found = {}
        for seed in given.seeds:
            source = inftda.SeededSource(seed)
            options |= {"epsilon": given.epsilon, "delta": 1e-8, "source": source}
            release = inftda.release(flows, **options)
            look(release, by_number(release.tree, flows, "count"), seed, found)
        show(name, found)


def look(release, truth, seed, found):
    rng, first = np.random.default_rng(seed), release.tree.axes[0].hierarchy
    codes, region = first.codes(first.depth), first.level_name(1)
    others = [axis.name for axis in release.tree.axes[2:]]
    for n_zones, times in ZONES.items():
        for at_random in [True, False] * times:
            if n_zones >= len(codes):
                continue
            zone = zones_of(len(codes), n_zones, rng, at_random=at_random)
            zones = pa.table({first.level_names[-1]: codes, "zone": [f"z{i}" for i in zone]})
            for words, levels in {
                "between zones": {},
                "zone to region": {"destination": region},
                "totals": {"destination": "all"},
                "in-totals": {"origin": "all"},
            }.items():
                for more in [dict.fromkeys(others, "all"), {}] if others else [{}]:
                    by = " by " + others[0] if others and not more else ""
                    key = words + by, f"{n_zones} {'random' if at_random else 'contiguous'}"
                    found.setdefault(key, []).append(held(release, truth, zones, levels | more))


def show(title, found):
    print(title)
    for words in dict.fromkeys(words for words, _ in found):
        every, worst = [], (1.0, "no class has 100 numbers")
        for (other, zones), parts in found.items():
            if other != words:
                continue
            flow, is_held = map(np.concatenate, zip(*parts, strict=True))
            every.append(is_held)
            size = class_of(np.maximum(flow, 1))
            for one in np.unique(size):
                here = is_held[size == one]
                if len(here) >= 100 and here.mean() < worst[0]:
                    worst = (
                        here.mean(),
                        f"{zones}, from {CLASS_STARTS[one]:,}, {len(here):,} numbers",
                    )
        every = np.concatenate(every)
        print(
            f"  {words:24} {len(every):7,} numbers, {100 * every.mean():5.1f} % held; worst class "
            f"{100 * worst[0]:.1f} % ({worst[1]})"
        )


if __name__ == "__main__":
    main()
