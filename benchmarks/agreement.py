"""Do published numbers agree with what was measured, and how far are they from the truth?

python benchmarks/agreement.py [--quick] [TABLE ...] [--epsilon 0.1 1 10] [--seeds 13 14 15]

For releases and estimates of tables below $INFTDA_DATA, and of made-up ones with three and four
axes: the worst rms of z over all measured tables with 20 cells or more, the common part with the
truth, the largest error, and mean errors of totals by axis. Releases are seeded: they are no
releases, and the truth is known.
"""

import itertools
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import inftda
import measure
from inftda.tree import Marginal

#: Short name to folder of a table of origins and destinations, with flows.parquet and areas.csv.
FOLDERS = {
    "belgium": "belgium_2011",
    "paris": "paris_2014",
    "italy": "italy_semisynthetic",
    "us": "us_lodes2018_intracounty",
    "taxi": "nyc_green_taxi",
    **{
        f"{kind} {size}": f"synthetic_{kind}_{size}"
        for kind in ("random", "binary")
        for size in ("sparse", "dense", "complete")
    },
}


def nested(names, sizes, seed):
    """A hierarchy with so many areas at each level."""
    rng, n = np.random.default_rng(seed), sizes[-1]
    cuts, columns = np.arange(1, n), {}
    for name, size in reversed(list(zip(names, sizes, strict=True))):
        cuts = np.sort(rng.choice(cuts, size - 1, replace=False))
        columns[name] = [f"{name[0]}{i}" for i in np.searchsorted(cuts, np.arange(n), "right")]
    return pa.table({name: columns[name] for name in names})


def numbers(column):
    return np.array([int(code[1:]) for code in column.to_pylist()])


def made_up_trips(areas, further, trips, seed):
    """Trips whose third axis depends on the regions of both ends."""
    rng, n, (name, size) = np.random.default_rng(seed), len(areas), further
    region, place = numbers(areas["region"]), rng.random((n, 2))
    weight = np.exp(rng.normal(0, 1.2, n))
    apart = np.sqrt(((place[:, None] - place[None]) ** 2).sum(-1))
    profile = 8 * rng.dirichlet(np.full(size, 0.7)) + 0.05
    out, into = (rng.dirichlet(profile, region.max() + 1)[region] for _ in range(2))
    mean = weight[:, None, None] * weight[None, :, None] * np.exp(-9 * apart)[:, :, None]
    mean = mean * np.sqrt(out[:, None] * into[None])
    count = rng.poisson(mean * trips / mean.sum() * rng.gamma(0.5, 2, mean.shape))
    codes = pa.table({name: [f"{name[0]}{i}" for i in range(size)]})
    return count, {"origin": areas, "destination": areas, name: codes}


def made_up_people(people, seed):
    """A population by zone, sex, age and people, where each region has its own."""
    rng, n = np.random.default_rng(seed), 340
    axes = {
        "zone": nested(["region", "zone"], [16, n], 7),
        "sex": pa.table({"sex": ["s0", "s1"]}),
        "age": nested(["group", "age"], [6, 20], 8),
        "people": nested(["family", "people"], [3, 12], 9),
    }
    of_region = rng.dirichlet(10 * rng.dirichlet(np.full(12, 0.3)) + 0.01, 16)
    mean = (
        np.exp(rng.normal(0, 1.3, n))[:, None, None, None] * np.array([0.52, 0.48])[:, None, None]
    )
    mean = mean * rng.dirichlet(np.full(20, 5))[:, None]
    mean = mean * of_region[numbers(axes["zone"]["region"])][:, None, None]
    return rng.poisson(mean * people / mean.sum() * rng.gamma(1, 1, mean.shape)), axes


def cells(count, axes):
    """A table of positive counts, by the codes of all axes."""
    columns = {
        name: np.array(table.column(table.column_names[-1]))[index]
        for (name, table), index in zip(axes.items(), np.nonzero(count), strict=True)
    }
    return pa.table({**columns, "count": count[np.nonzero(count)]}), {"axis": axes}


MADE_UP = {
    "six purposes": lambda: made_up_trips(
        nested(["region", "town"], [8, 250], 5), ("purpose", 6), 400_000, 1
    ),
    "24 hours": lambda: made_up_trips(
        nested(["region", "district", "town"], [4, 30, 400], 6), ("hour", 24), 1_500_000, 3
    ),
    "people": lambda: made_up_people(900_000, 2),
    "tiny": lambda: made_up_trips(nested(["region", "town"], [3, 20], 5), ("mode", 3), 20_000, 1),
}


def table(name):
    """A confidential table, and options to release it with."""
    if name in MADE_UP:
        return cells(*MADE_UP[name]())
    data = Path(os.environ["INFTDA_DATA"])
    if name == "london":
        flows = pq.read_table(data / "london_bikes/od.parquet").rename_columns(
            ["origin", "destination", "period", "count"]
        )
        ends = dict.fromkeys(("origin", "destination"), data / "london_bikes/stations.csv")
        axes = {**ends, "period": data / "london_bikes/periods.csv"}
        return flows, {"axis": axes, "levels": ["village", "station"]}
    if name == "new zealand":
        here = data / "nz_education_2018"
        ends = dict.fromkeys(("origin", "destination"), here / "areas.csv")
        return pq.read_table(here / "flows.parquet"), {"axis": {**ends, "mode": here / "modes.csv"}}
    here = data / FOLDERS[name]
    return pq.read_table(here / "flows.parquet"), {"areas": here / "areas.csv"}


def asked(parser, tables, *, epsilons, seeds):
    """What is to be released, by options: all tables or some, or a tiny one once."""
    parser.add_argument("--epsilon", type=float, nargs="+", default=epsilons)
    parser.add_argument("--seeds", type=int, nargs="+", default=seeds)
    parser.add_argument("tables", nargs="*", metavar="TABLE")
    given = parser.parse_args()
    given.tables = given.tables or tables
    if given.quick:
        given.tables, given.epsilon, given.seeds = ["tiny"], [1.0], given.seeds[:1]
    return given


def released(flows, options, *, epsilon, seed):
    """A seeded release of a table, and its truth."""
    source = inftda.SeededSource(seed)
    release = inftda.release(flows, epsilon=epsilon, source=source, **{"delta": 1e-8, **options})
    return release, by_number(release.tree, flows, "count")


def by_number(tree, flows, value):
    """Areas of all rows by their numbers, and values."""
    areas = [
        axis.hierarchy.find(axis.hierarchy.depth, flows.column(axis.name).to_pylist())
        for axis in tree.axes
    ]
    return areas, flows.column(value).to_numpy()


def side_by_side(marginal, one, other):
    """float64 each: two tables summed up to the same cells."""
    sums = [marginal.sum_up(*found) for found in (one, other)]
    keys = [marginal.numbers(areas) for areas, _ in sums]
    every = np.union1d(*keys)
    found = np.zeros((2, len(every)))
    for row, key, (_, value) in zip(found, keys, sums, strict=True):
        row[np.searchsorted(every, key)] = value
    return found


def described(tree, made, truth, fit):
    """One line of figures."""
    x, y = side_by_side(tree.levels[-1], made, truth)
    worst = max((row for row in fit if row["cells"] >= 20), key=lambda row: row["rms_z"])
    totals = []
    for number, axis in enumerate(tree.axes):
        depths = [axis.hierarchy.depth * (number == other) for other in range(len(tree.axes))]
        sums = side_by_side(Marginal(tree.axes, tuple(depths)), made, truth)
        totals.append(f"{np.abs(sums[0] - sums[1]).mean():.1f}")
    common = 2 * np.minimum(x, y).sum() / (x.sum() + y.sum())
    return (
        f"common part {common:.4f}, largest error {np.abs(x - y).max():.0f}, totals off by "
        f"{' '.join(totals)}; worst fit {worst['rms_z']:.2f} ({worst['table']})"
    )


def main():
    tables = [*MADE_UP, "london", "new zealand", *FOLDERS]
    given = asked(measure.options(__doc__), tables, epsilons=[0.1, 1, 10], seeds=[13, 14, 15])
    for name, epsilon, seed in itertools.product(given.tables, given.epsilon, given.seeds):
        release, truth = released(*table(name), epsilon=epsilon, seed=seed)
        tree, estimate = release.tree, inftda.estimate(release)
        estimated = by_number(tree, estimate.table, "estimate")
        for kind, leaves, fit in (
            ("release", release.leaves(), release.fit()),
            ("estimate", estimated, estimate.fit(release)),
        ):
            words = described(tree, leaves, truth, fit.to_pylist())
            print(f"{name}, epsilon {epsilon:g}, seed {seed}, {kind}: {words}", flush=True)


if __name__ == "__main__":
    main()
