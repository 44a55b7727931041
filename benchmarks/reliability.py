"""How often do intervals hold the truth, how wide are they, and are grades and advice right?

python benchmarks/reliability.py [--quick] [TABLE ...] [--epsilon 1] [--seeds 13] [--kind plain ...]

For releases of tables below $INFTDA_DATA, and of made-up ones, two of which speak against the
method: levels of the tree, totals of areas, all other combinations of levels, and zones at random
and of neighbours. For each: the part of the numbers whose interval holds the truth; the class of
size, with 200 numbers or more, that is furthest below 94 % in standard errors; the median width;
the mean half width over the root mean square error, in the combination where it is largest. For
levels also how many of the numbers that are called usable have grade D, and which part of each
grade is right. Releases are seeded: they are no releases, and the truth is known.
"""

import itertools
import json
import math
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import measure
from agreement import FOLDERS, MADE_UP, asked, cells, nested, released, table
from inftda.privacy.unit import Unit
from inftda.publication.measured import find_rows
from inftda.publication.reliability import grades
from inftda.tree import Marginal
from inftda.tree.groupings import asked_for

KINDS = {
    "plain": {"delta": 1e-8},
    "delta 0": {"delta": 0},
    "add-remove": {"delta": 1e-8, "unit": Unit("add-remove")},
    "five trips": {"delta": 1e-8, "unit": Unit("add-remove", trips=5)},
    "cross tables 0": {"delta": 1e-8, "cross_tables": 0},
    "paper": {"delta": 1e-8, "method": "paper"},
}
#: Numbers of zones, and how often: few zones have few numbers.
ZONES = {5: 4, 20: 2, 100: 1}
#: A class says something if it has so many numbers; and what it should hold for at least.
ENOUGH, LEAST = 200, 0.94


def hostile(name, seed):
    """80 towns whose flows are not what their totals and regions make one expect."""
    rng, n, group = np.random.default_rng(seed), 80, 20
    if name == "busy centre":
        flows = np.where(rng.random((n, n)) < 0.01, 40, 0)
        flows[:group, :group] = rng.poisson(90, (group, group))
        areas = nested(["region", "town"], [4, n], 1)
    else:  # no regions; two sizes
        kind = rng.random((n, n))
        flows = np.where(kind < 0.2, 15, np.where(kind < 0.21, 75, 0))
        areas = pa.table({"town": [f"t{i}" for i in range(n)]})
    return cells(flows, {"origin": areas, "destination": areas})


HOSTILE = ("busy centre", "two sizes")


class Found:
    """Published and true numbers of one group, with their intervals."""

    def __init__(self):
        self.parts = []

    def add(self, what, scale, flow, true, ends):
        self.parts.append((what, scale, flow, true, *ends))

    def figures(self):
        parts = [part for part in self.parts if len(part[2])]
        if not parts:
            return None
        flow, true, low, high = (np.concatenate([p[i] for p in parts]) for i in (2, 3, 4, 5))
        holds, worst, far = (low <= true) & (true <= high), (math.inf, "no class"), (0.0, "")
        by_what = {}
        for what, scale, *rest in parts:
            by_what.setdefault(what, (scale, []))[1].append(rest)
        for what, (scale, some) in by_what.items():
            f, x, a, b = (np.concatenate(of) for of in zip(*some, strict=True))
            size = np.floor(np.log2(np.maximum(f, 1e-9) / scale)).clip(-2, 4)
            ok = (a <= x) & (x <= b)
            for one in np.unique(size):
                here = ok[size == one]
                if len(here) >= ENOUGH:
                    off = (here.mean() - LEAST) / math.sqrt(LEAST * (1 - LEAST) / len(here))
                    words = f"{100 * here.mean():.1f} % of {len(here):,}, {what}"
                    worst = min(worst, (off, words))
            rms = math.sqrt(np.mean((f - x.astype(float)) ** 2))
            if len(f) >= 20:
                far = max(far, (float(np.mean(b - a)) / 2 / max(rms, 0.5), what))
        return {
            "numbers": len(flow), "holds": round(100 * float(holds.mean()), 2),
            "worst": worst[1], "standard_errors": round(worst[0], 1) if worst[0] < 99 else None,
            "median_width": float(np.median(high - low)), "mean_width": float(np.mean(high - low)),
            "half_over_rms": round(far[0], 2), "at": far[1],
        }  # fmt: skip


def on_levels(release, truth, found):
    """Levels and other combinations, and what follows from the intervals of levels."""
    tree, known, leaves = release.tree, release.intervals(), release.leaves()
    sigma = {tree.levels[one.index].depths: one.noise.sigma for one in release.manifest.plan.levels}
    finest = sigma[tree.splitting_levels[-1].depths]
    right = {grade: [0, 0] for grade in "ABC"}
    seconds = 0.0
    for depths in itertools.product(*(range(axis.hierarchy.depth + 1) for axis in tree.axes)):
        marginal, n_shown = Marginal(tree.axes, depths), sum(map(bool, depths))
        is_level = any(level.depths == depths for level in tree.splitting_levels)
        if not is_level and (depths != tree.coarsest(depths) or n_shown < 2):
            continue
        if not is_level and tree.coarsest(depths) in tree.on_tree:
            continue
        areas, flow = marginal.sum_up(*leaves)
        true_areas, counts = marginal.sum_up(*truth)
        true = np.append(counts, 0)[find_rows(true_areas, areas)]
        start = time.process_time()
        ends = known.of(depths, areas, flow)
        seconds += time.process_time() - start
        group = "levels" if is_level else "sums"
        scale = sigma.get(depths, finest)
        found[group].add(marginal.name, scale, flow, true, ends)
        if is_level:
            graded = np.array(grades(flow, *ends).to_pylist())
            off = np.abs(flow - true)
            for grade, part in {"A": 0.1, "B": 0.25, "C": 0.5}.items():
                right[grade][0] += int((off[graded == grade] <= part * flow[graded == grade]).sum())
                right[grade][1] += int((graded == grade).sum())
    return right, seconds


def advice(release):
    """Smallest usable count of the finest level, and the part of usable numbers with grade D."""
    use, level = release.uses[-1], release.tree.splitting_levels[-1]
    areas, flow = level.sum_up(*release.leaves())
    graded = np.array(grades(flow, *release.intervals().of(level.depths, areas, flow)).to_pylist())
    used = flow >= (use.smallest or np.inf)
    poor, good = (graded[used] == "D").mean() if used.any() else 0, (graded != "D").mean()
    return {
        "use_from": use.smallest,
        "poor": round(100 * float(poor), 1),
        "a_to_c": round(100 * float(good), 1),
    }


def asked_ends(release, truth, zones, levels):
    """Published and true numbers of a question, and their intervals."""
    rows = release.flows(zones=zones, level=levels, intervals=True)
    asked = asked_for(release.tree, ({}, levels), ({}, None), zones)
    areas, count = truth
    sizes = [len(axis.codes) for axis in asked]
    groups = [axis.group[area] for axis, area in zip(asked, areas, strict=True)]
    is_in = np.logical_and.reduce([group >= 0 for group in groups])
    cell = np.ravel_multi_index([group[is_in] for group in groups], sizes)
    known, where = np.unique(cell, return_inverse=True)
    sums = np.bincount(where, count[is_in]).astype(np.int64)
    at = np.ravel_multi_index([axis.numbers(rows) for axis in asked], sizes)
    place = np.minimum(np.searchsorted(known, at), len(known) - 1)
    true = np.where(known[place] == at, sums[place], 0)
    flow, low, high = (rows.column(name).to_numpy() for name in ("flow", "low", "high"))
    return flow, true, (low, high)


def on_totals(release, truth, found):
    for axis in release.tree.axes:
        for depth in release.totals_of(axis.name):
            levels = {one.name: "all" for one in release.tree.axes}
            levels[axis.name] = level = axis.hierarchy.level_name(depth)
            flow, true, ends = asked_ends(release, truth, None, levels)
            found["totals"].add(f"{axis.name} {level}", 16, flow, true, ends)


def on_zones(release, truth, found, seed):
    rng, first = np.random.default_rng(seed), release.tree.axes[0].hierarchy
    codes = first.codes(first.depth)
    for n, times in ZONES.items():
        for at_random in [True, False] * times:
            if 2 * n >= len(codes):
                continue
            zone = rng.integers(0, n, len(codes))
            if not at_random:
                cuts = np.sort(rng.choice(np.arange(1, len(codes)), n - 1, replace=False))
                zone = np.searchsorted(cuts, np.arange(len(codes)), side="right")
            zones = pa.table({first.level_names[-1]: codes, "zone": [f"z{i}" for i in zone]})
            region = first.level_name(1)
            for words, levels in {
                "between zones": {},
                "zone to region": {"destination": region},
                "zone totals": {"destination": "all"},
            }.items():
                others = {axis.name: "all" for axis in release.tree.axes[2:]}
                for more in [others, {}] if others else [{}]:
                    asked = asked_ends(release, truth, zones, levels | more)
                    found["zones"].add(words + " by all" * (not more and bool(others)), 16, *asked)


def main():
    parser = measure.options(__doc__)
    parser.add_argument("--kind", nargs="+", default=["plain"], choices=KINDS)
    parser.add_argument("--no-zones", action="store_true")
    parser.add_argument("--json", help="add a line of JSON for each release to this file")
    tables = [*FOLDERS, "london", "new zealand", *MADE_UP, *HOSTILE]
    given = asked(parser, tables, epsilons=[1.0], seeds=[13])
    for name, epsilon, kind in itertools.product(given.tables, given.epsilon, given.kind):
        groups = ("levels", "totals", "sums", "zones")
        found, right, told, seconds = {group: Found() for group in groups}, [], [], 0.0
        for seed in given.seeds:
            flows, options = hostile(name, seed) if name in HOSTILE else table(name)
            release, truth = released(flows, options | KINDS[kind], epsilon=epsilon, seed=seed)
            graded, spent = on_levels(release, truth, found)
            right.append(graded)
            seconds += spent
            told.append(advice(release))
            on_totals(release, truth, found)
            if "destination" in release.tree.order and not given.no_zones:
                on_zones(release, truth, found, seed)
        report(name, epsilon, kind, found, right, told, seconds, given)


def report(name, epsilon, kind, found, right, told, seconds, given):  # noqa: PLR0913, PLR0917
    line = {
        "table": name, "epsilon": epsilon, "kind": kind, "seeds": given.seeds,
        "seconds": round(seconds, 1), "advice": told,
        "right": {
            grade: round(100 * sum(one[grade][0] for one in right) / n, 1)
            for grade in "ABC"
            if (n := sum(one[grade][1] for one in right))
        },
    }  # fmt: skip
    print(f"{name}, epsilon {epsilon:g}, {kind}: {told}, right {line['right']}, {seconds:.1f} s")
    for group, of in found.items():
        if (figures := of.figures()) is None:
            continue
        line[group] = figures
        print(
            f"  {group:7} {figures['numbers']:9,} numbers, {figures['holds']:6.2f} % hold; worst "
            f"{figures['worst']} ({figures['standard_errors']} standard errors); median width "
            f"{figures['median_width']:g}; half width at most {figures['half_over_rms']:.1f} rms "
            f"({figures['at']})",
            flush=True,
        )
    if given.json:
        with Path(given.json).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
