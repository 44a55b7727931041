"""The level loop beside bare sampling of as many draws, and one core beside all.

python benchmarks/engine.py [--census] [--json]

Bare sampling fills buffers of the same size with the same noise, secure bits included, on as
many threads; what the loop takes beyond that is adding the truth, optimising and keeping.
"""

import argparse
import json
import tempfile
import threading
import time
from operator import truediv
from pathlib import Path
from statistics import median

import numpy as np

import measure
from inftda.counts import Counts
from inftda.engines.local import LocalEngine
from inftda.hierarchy import Hierarchy
from inftda.mechanisms.base import Setting
from inftda.mechanisms.topdown import BLOCK_DRAWS, TopDown, block_size
from inftda.noise.discrete_gaussian import DiscreteGaussian
from inftda.noise.entropy import SecureSource
from inftda.privacy.plan import make_plan
from inftda.privacy.unit import PrivacyUnit
from inftda.reading import TableSpec, read_leaves
from inftda.threads import available_cores
from inftda.tree import Tree

DELTA, REPEATS = 1e-8, 10
BUFFERS = threading.local()  # one a thread, used again, as in the loop


def load(flows, areas):
    hierarchy = Hierarchy.read(areas)
    ends = [("origin", hierarchy), ("destination", hierarchy)]
    leaves = read_leaves(str(flows), TableSpec(axes=ends))
    return Counts.from_leaves(Tree.destination_first(hierarchy), leaves.areas, leaves.counts)


def loop(counts, plan, threads):
    """Seconds of one release from counts to leaves, and its draws by level."""
    draws = {}

    def note(level, done, total):
        del done
        draws[level] = total

    setting = Setting(plan.spending(), DiscreteGaussian, SecureSource(), LocalEngine(threads), note)
    started = time.perf_counter()
    flows = sum(len(block.value) for block in TopDown().run(counts, setting))
    return time.perf_counter() - started, draws, flows


def bare(plan, draws, threads):
    """Seconds of sampling as many draws with the noise of each level."""
    jobs = []
    for level, n in zip(plan.levels, draws.values(), strict=True):
        sampler, left = DiscreteGaussian(level.sigma2), n
        while left:
            size = block_size(left)
            jobs.append((sampler, size))
            left -= size
    source = SecureSource()

    def fill(job):
        sampler, size = job
        if not hasattr(BUFFERS, "x"):
            BUFFERS.x = np.empty(BLOCK_DRAWS, np.int64)
        sampler.fill(BUFFERS.x[:size], source.stream())

    started = time.perf_counter()
    for _ in LocalEngine(threads).map(fill, jobs):
        pass
    return time.perf_counter() - started


def compare(case, counts, epsilon, repeats):
    """One core and all, the loop and bare sampling: in turn, so that all meet the same machine."""
    plan = make_plan(counts.tree, PrivacyUnit(), epsilon=epsilon, delta=DELTA)
    cores = sorted({1, available_cores()})
    runs = {threads: [] for threads in cores}
    for _ in range(repeats):
        for threads in cores:
            seconds, draws, flows = loop(counts, plan, threads)
            n = sum(draws.values())
            runs[threads].append((seconds / n, bare(plan, draws, threads) / n, n, flows))
    loops = {threads: [run[0] for run in runs[threads]] for threads in cores}
    bares = {threads: [run[1] for run in runs[threads]] for threads in cores}
    for threads in cores:
        looped, sampled, draws, flows = zip(*runs[threads], strict=True)
        yield {
            "case": case,
            "epsilon": epsilon,
            "threads": threads,
            "draws": draws[0],
            "flows": flows[0],
            "loop_seconds": min(looped) * draws[0],
            "loop_ns_per_draw": min(looped) * 1e9,
            "bare_ns_per_draw": min(sampled) * 1e9,
            "loop_over_bare": min(looped) / min(sampled),
            # Of neighbouring runs: a machine that is slow for a while is so for both.
            "loop_speed_up": median(map(truediv, loops[1], looped)),
            "bare_speed_up": median(map(truediv, bares[1], sampled)),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--census", action="store_true", help="also census sections")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        counts = load(*measure.data_set("italy_semisynthetic", folder))
        rows = [
            row
            for epsilon in (0.1, 1, 10)
            for row in compare("municipalities", counts, epsilon, 4 * REPEATS)
        ]
        if given.census:
            country = measure.write_country(
                Path(folder) / "census", measure.SECTIONS, measure.TRIPS
            )
            counts = load(*country)
            for epsilon in (1, 10):
                rows += compare("census sections", counts, epsilon, REPEATS)
    if given.json:
        print(json.dumps({"benchmark": "engine", "rows": rows}))
        return
    print("case              epsilon  threads      draws  ns/draw  bare  ratio  seconds")
    for row in rows:
        print(
            f"{row['case']:16}  {row['epsilon']:7g}  {row['threads']:7}  {row['draws']:9,}  "
            f"{row['loop_ns_per_draw']:7.2f}  {row['bare_ns_per_draw']:4.2f}  "
            f"{row['loop_over_bare']:5.2f}  {row['loop_seconds']:7.3f}"
        )


if __name__ == "__main__":
    main()
