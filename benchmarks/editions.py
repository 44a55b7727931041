"""Twelve made-up months: are verdicts right, intervals true, and what does a month cost?

python benchmarks/editions.py [--quick] [--seeds 31 32 33] [--epsilon 1]

A made-up country has a table each month. From month to month some flows change by a known factor;
in the control nothing changes at all. Each pair of months that follow each other is compared, at
several levels and for totals: of the verdicts, which part is false; which part of the changes of a
size has a verdict; and which part of the intervals holds the true change.
Then one budget is spread over twelve months or four quarters: how much of a table is right.
Releases are seeded: they are no releases, and the truth is known.
"""

from fractions import Fraction

import numpy as np

import inftda
import measure

N_TOWNS, N_MONTHS = 150, 12
TOWNS = [f"t{number:03}" for number in range(N_TOWNS)]
AREAS = {"region": [f"r{number // 15}" for number in range(N_TOWNS)], "town": TOWNS}
LEVELS = [
    ("town", "town"),
    ("region", "town"),
    ("region", "region"),
    ("town", "all"),
    ("all", "town"),
]
#: Sizes of true changes, in steps.
SIZES = (25, 50, 100, 200, 400)


def months(seed, *, is_changing):
    """True tables, month by month."""
    random = np.random.default_rng(seed)
    weight = random.pareto(1.2, N_TOWNS) + 0.2
    mean = np.outer(weight, weight) * random.gamma(0.5, 2, (N_TOWNS, N_TOWNS))
    table = random.poisson(mean * 600_000 / mean.sum())
    yield table
    for _ in range(N_MONTHS - 1):
        if is_changing:
            factor = random.choice([0.6, 1.5], table.shape)
            table = np.where(
                random.random(table.shape) < 0.04, random.poisson(table * factor), table
            )
        yield table


def released(table, seed, **strength):
    start, end = np.nonzero(table)
    flows = {
        "origin": [TOWNS[i] for i in start],
        "destination": [TOWNS[i] for i in end],
        "count": table[start, end].tolist(),
    }
    return inftda.release(flows, AREAS, source=inftda.SeededSource(seed), **strength)


def summed(table, levels):
    for axis, level in enumerate(levels):
        if level == "region":
            table = np.add.reduceat(table, np.arange(0, N_TOWNS, 15), axis=axis)
        if level == "all":
            table = table.sum(axis=axis, keepdims=True)
    return table


def judged(both, tables, levels):
    """True changes of what is compared, with verdicts and whether intervals hold them."""
    found = inftda.change(*both, origin_level=levels[0], destination_level=levels[1]).table
    rows = found.to_pydict()
    at = [
        [int(code[1:]) for code in rows[axis]] if axis in rows else [0] * len(found)
        for axis in ("origin", "destination")
    ]
    true = (summed(tables[1], levels) - summed(tables[0], levels))[tuple(at)]
    verdict = np.array(rows["verdict"])
    said = np.where(verdict == "rose", 1, np.where(verdict == "fell", -1, 0))
    held = (np.array(rows["low"]) <= true) & (true <= np.array(rows["high"]))
    return true, said, held


def compare_months(seeds, epsilon, *, is_changing):
    strength = {"epsilon": epsilon, "delta": 1e-8}
    found = {levels: [] for levels in LEVELS}
    for seed in seeds:
        tables = list(months(seed, is_changing=is_changing))
        made = [released(table, 1000 * seed + n, **strength) for n, table in enumerate(tables)]
        for n in range(1, len(tables)):
            for levels in LEVELS:
                pair = made[n - 1 : n + 1], tables[n - 1 : n + 1]
                found[levels].append(judged(*pair, levels))
    print(f"{'changing' if is_changing else 'nothing changes'}, epsilon {epsilon:g}")
    for levels, pairs in found.items():
        parts = [np.mean((np.sign(t) != s)[s != 0]) if (s != 0).any() else 0.0 for t, s, _ in pairs]
        true, said, held = (np.concatenate(column) for column in zip(*pairs, strict=True))
        power = [
            f"{low}-{high}: {np.mean((said == np.sign(true))[is_size]):.0%}"
            for low, high in zip(SIZES, (*SIZES[1:], 10**9), strict=True)
            if (is_size := (np.abs(true) >= low) & (np.abs(true) < high)).sum() > 20
        ]
        print(
            f"  {' > '.join(levels)}: {len(true):,} numbers, {np.count_nonzero(said):,} verdicts, "
            f"false {np.mean(parts):.1%} on average over {len(pairs)} pairs "
            f"({np.mean([p > 0 for p in parts]):.0%} of pairs have one), intervals hold "
            f"{held.mean():.2%}; found by size {', '.join(power) or '-'}",
            flush=True,
        )


def spread_budget(seed, epsilon):
    """Common part of a month's or a quarter's table, for one budget a year."""
    random = np.random.default_rng(seed)
    (month, *_) = months(seed, is_changing=False)
    year = inftda.make_plan(
        inftda.build_tree(AREAS),
        inftda.Unit(),
        epsilon=epsilon,
        delta=1e-8,
        method="paper",
        split="log",
    ).rho
    for name, n in (("months", 12), ("quarters", 4), ("a year", 1)):
        table = sum(random.poisson(month) for _ in range(12 // n))
        for how, strength in (
            ("Gaussian, by rho", {"rho": year / n}),
            ("default, by epsilon", {"epsilon": _epsilon_for(year / n), "delta": 1e-8}),
        ):
            flows = released(table, seed, **strength).flows().to_pydict()
            out = np.zeros_like(table)
            out[
                [int(code[1:]) for code in flows["origin"]],
                [int(code[1:]) for code in flows["destination"]],
            ] = flows["flow"]
            common = 2 * np.minimum(out, table).sum() / (out.sum() + table.sum())
            print(f"  {name}, {how}: common part {common:.3f}", flush=True)


def _epsilon_for(rho):
    """The largest epsilon whose default plan costs no more than this rho."""
    tree, low, high = inftda.build_tree(AREAS), Fraction(1, 1000), Fraction(20)
    for _ in range(14):
        middle = (low + high) / 2
        plan = inftda.make_plan(tree, inftda.Unit(), epsilon=middle, delta=1e-8, method="inftda")
        low, high = (middle, high) if plan.rho <= rho else (low, middle)
    return float(low)


def main():
    parser = measure.options(__doc__, "one seed, changes only")
    parser.add_argument("--seeds", type=int, nargs="+", default=[31, 32, 33])
    parser.add_argument("--epsilon", type=float, default=1.0)
    given = parser.parse_args()
    seeds = given.seeds[:1] if given.quick else given.seeds
    for is_changing in (True,) if given.quick else (True, False):
        compare_months(seeds, given.epsilon, is_changing=is_changing)
    if not given.quick:
        print(f"one budget of epsilon {given.epsilon:g} for twelve months")
        spread_budget(given.seeds[0], given.epsilon)


if __name__ == "__main__":
    main()
