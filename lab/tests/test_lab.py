"""The laboratory: solvers against exhaustive search, releases without noise, a small run."""

import csv
import itertools
import zipfile
from collections import Counter
from fractions import Fraction
from math import ceil, exp, sqrt, tanh

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.stats import chisquare

from inftda_lab import __main__ as command
from inftda_lab import baselines
from inftda_lab.baselines import (
    MECHANISMS,
    OTHERS,
    PRODUCT,
    Budget,
    Nodes,
    shares,
    stability_noise,
    top_down,
    way_up,
    whole_shares,
)
from inftda_lab.levels import Cells, Flows, Release, levels_of, measure, totals_of
from inftda_lab.nearest import nearest_l2, nearest_linf
from inftda_lab.tables import SYNTHETIC, Table, make_synthetic, read_istat, read_table, write_table

SMALL = make_synthetic("binary_sparse")


def solved(solve, x, total, seed=0):
    """One vector by a solver for many."""
    out = np.array(x, np.int64)
    key = np.random.default_rng(seed).random(len(x))
    solve(out, np.array([0, len(x)]), np.array([total]), key)
    return out


def vectors(n, size, seed):
    random = np.random.default_rng(seed)
    for _ in range(n):
        yield random.integers(-6, 12, size), int(random.integers(0, 15))


def compositions(size, total):
    if size == 1:
        yield (total,)
        return
    for first in range(total + 1):
        yield from ((first, *rest) for rest in compositions(size - 1, total - first))


DISTANCES = {
    nearest_l2: lambda x, y: int(((y - x) ** 2).sum()),
    nearest_linf: lambda x, y: int(np.abs(y - x).max()),
}


@pytest.mark.parametrize("solve", DISTANCES)
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_solutions_are_among_those_of_the_exhaustive_search(solve, size):
    distance = DISTANCES[solve]
    for number, (x, total) in enumerate(vectors(100, size, seed=size)):
        y = solved(solve, x, total, number)
        assert y.sum() == total
        assert y.min() >= 0
        least = min(distance(x, np.array(other)) for other in compositions(size, total))
        assert distance(x, y) == least, (x, total, y)


def test_the_chebyshev_distance_is_that_of_a_general_integer_solver():
    """The paper hands these problems to such a solver: integers y and the distance d."""
    random = np.random.default_rng(1)
    for _ in range(10):
        x, total = random.integers(-20, 60, 25), int(random.integers(1, 500))
        n = len(x)
        rows = np.block([[np.eye(n), -np.ones((n, 1))], [np.eye(n), np.ones((n, 1))]])
        found = milp(
            np.append(np.zeros(n), 1),
            integrality=np.append(np.ones(n), 0),
            bounds=Bounds(0, np.inf),
            constraints=[
                LinearConstraint(rows[:n], -np.inf, x),
                LinearConstraint(rows[n:], x, np.inf),
                LinearConstraint(np.append(np.ones(n), 0), total, total),
            ],
        )
        assert np.abs(solved(nearest_linf, x, total) - x).max() == round(found.fun)


def test_every_nearest_vector_is_equally_likely():
    x = [6, 6, 6, -2, 6, 1, 5]
    counts = Counter(tuple(solved(nearest_l2, x, 18, seed).tolist()) for seed in range(2_000))
    assert len(counts) == 5
    assert chisquare(list(counts.values())).pvalue > 1e-7


EVERY = {**MECHANISMS, **OTHERS, **PRODUCT}


@pytest.mark.parametrize("name", EVERY)
def test_without_noise_a_release_is_the_truth(name, monkeypatch):
    monkeypatch.setattr(baselines, "stability_noise", lambda *_: (Fraction(1, 1000), 0))
    released = EVERY[name](SMALL, Budget(1000.0), 1)
    released = Release(released) if isinstance(released, Flows) else released
    truth = Flows(SMALL.origin, SMALL.destination, SMALL.count)
    for level in [*levels_of(SMALL.areas), *totals_of(SMALL.areas)]:
        found = measure(level.summed(truth), level.published(released), level.n_cells)
        assert found["max_abs_error"] == 0


@pytest.mark.parametrize("name", ["inftda", "tda-l2", "tda-linf", "least-squares"])
def test_top_down_releases_are_positive_and_have_the_total(name, monkeypatch):
    monkeypatch.setattr(baselines, "BLOCK", 500)
    released = {**MECHANISMS, **OTHERS}[name](SMALL, Budget(0.5), 1)
    assert released.trips.min() > 0
    assert released.trips.sum() == SMALL.total
    assert len({*zip(released.origin, released.destination, strict=True)}) == len(released.trips)


def test_a_level_gets_the_noise_of_its_plan(monkeypatch):
    """And every child of a surviving parent is drawn once, whatever the size of blocks."""
    drawn = []

    def fill(noise, out, bits):
        del bits
        drawn.append((noise.square, len(out)))
        out[:] = 0

    monkeypatch.setattr(baselines.inftda.Noise, "fill", fill)
    monkeypatch.setattr(baselines, "BLOCK", 64)
    released = top_down(SMALL, Budget(1.0), 1, nearest_l2)
    assert released.trips.sum() == SMALL.total
    truth = Flows(SMALL.origin, SMALL.destination, SMALL.count)
    n_parents = sum(len(level.summed(truth).cell) for level in levels_of(SMALL.areas)[:-1])
    assert sum(n for _, n in drawn) == 2 * n_parents
    assert len({sigma2 for sigma2, _ in drawn}) == 1


def random_tree(random):
    """Parents of every node, by level; noisy counts; variances of the levels."""
    sizes, parents = [1], []
    for _ in range(random.integers(1, 5)):
        children = random.integers(1, 4, sizes[-1])
        parents.append(np.repeat(np.arange(sizes[-1]), children))
        sizes.append(int(children.sum()))
    return (
        parents,
        [random.normal(20, 30, n) for n in sizes[1:]],
        random.uniform(0.1, 9, len(parents)),
    )


@pytest.mark.parametrize("seed", range(20))
def test_two_passes_give_the_dense_least_squares_solution(seed):
    """That minimises the sum of (sum of leaves - measurement)^2 / variance, given the total."""
    parents, noisy, variances = random_tree(np.random.default_rng(seed))
    total = 100.0
    rows = [np.eye(len(noisy[-1]))]
    for parent in parents[:0:-1]:
        above = np.zeros((parent.max() + 1, rows[0].shape[1]))
        np.add.at(above, parent, rows[0])
        rows.insert(0, above)
    weight = np.concatenate(
        [np.full(len(n), v**-0.5) for n, v in zip(noisy, variances, strict=True)]
    )
    design, measured = np.vstack(rows) * weight[:, None], np.concatenate(noisy) * weight
    n = design.shape[1]
    system = np.block([[design.T @ design, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    dense = np.linalg.solve(system, np.append(design.T @ measured, total))[:n]
    value = np.array([total])
    for nodes, parent in zip(way_up(noisy, variances, parents), parents, strict=True):
        value = shares(nodes, parent, value)
    assert value == pytest.approx(dense, abs=1e-8)


@pytest.mark.parametrize("seed", range(20))
def test_whole_shares_round_the_nearest_positive_ones_and_keep_totals(seed):
    random = np.random.default_rng(seed)
    parent = np.repeat([0, 1, 2], random.integers(1, 6, 3))
    n = len(parent)
    nodes = Nodes(random.normal(3, 8, n), random.uniform(0.2, 5, n))
    totals = np.array([0, 7, 40])
    found = whole_shares(nodes, parent, totals)
    assert (np.bincount(parent, found) == totals).all()
    for number, total in enumerate(totals):
        here = parent == number
        mean, variance = nodes.mean[here], nodes.variance[here]
        low, high = -1e3, 1e3
        for _ in range(200):  # the multiplier of the total, by bisection
            middle = (low + high) / 2
            if np.maximum(mean + middle * variance, 0).sum() < total:
                low = middle
            else:
                high = middle
        assert np.abs(found[here] - np.maximum(mean + high * variance, 0)).max() < 1 + 1e-6


def test_flat_laplace_drops_what_is_below_five_scales():
    released = OTHERS["flat-laplace"](SMALL, Budget(1.0), 1)
    assert released.trips.min() == 10


def test_vanilla_gauss_draws_every_pair():
    released = MECHANISMS["vanilla-gauss"](SMALL, Budget(0.1), 1)
    assert len(released.trips) > 0.99 * 256**2
    assert released.trips.min() < 0


def test_a_stability_histogram_of_two_cells_keeps_its_guarantee():
    """The distribution of the output, exactly, for all neighbours with up to 60 trips in a cell."""
    epsilon, delta = 2.0, 1e-3
    scale, threshold = stability_noise(epsilon, delta)

    def distribution(count, reach):
        if count == 0:
            return np.eye(1, reach - threshold + 1)[0]
        values = np.arange(threshold + 1, reach + 1)
        kept = tanh(1 / (2 * float(scale))) * np.exp(-np.abs(values - count) / float(scale))
        return np.append(1 - kept.sum(), kept)

    found = 0.0
    for a, b in itertools.product(range(1, 4), range(60)):
        reach = max(a, b + 1, threshold) + ceil(45 * float(scale))
        first, second = (
            np.multiply.outer(*(distribution(count, reach) for count in table)).ravel()
            for table in ((a, b), (a - 1, b + 1))
        )
        found = max(
            found,
            np.maximum(first - exp(epsilon) * second, 0).sum(),
            np.maximum(second - exp(epsilon) * first, 0).sum(),
        )
    assert 0.05 * delta < found <= delta


def test_synthetic_tables_have_the_sizes_of_the_papers_table_1():
    pairs = {"complete": (65_536, 189_225), "dense": (32_768, 94_612), "sparse": (655, 1_892)}
    for name, recipe in SYNTHETIC.items():
        made = make_synthetic(name)
        binary, random = pairs[name.partition("_")[2]]
        assert len(made.count) == (binary if recipe.partition == "binary" else random)
        assert abs(made.total / len(made.count) / recipe.mean - 1) < 0.12
        assert made.count.min() >= 1
    assert [made.areas.n_areas(level) for level in range(1, 5)] == [3, 13, 74, 435]


def test_measures_count_missing_cells_as_zero():
    true = Cells(np.array([1, 2, 5]), np.array([10, 4, 1]))
    released = Cells(np.array([1, 3, 5]), np.array([7, 2, 3]))
    assert measure(true, released, 11) == {
        "max_abs_error": 4.0,
        "mean_abs_error_nonzero": (3 + 4 + 2 + 2) / 4,
        "root_mean_squared_error": sqrt((9 + 16 + 4 + 4) / 11),
        "false_discovery_rate": 1 / 3,
        "false_negative_rate": 1 / 3,
        "common_part": 2 * (7 + 1) / (15 + 12),
    }


def test_tables_are_read_from_files(tmp_path):
    write_table(SMALL, tmp_path / "small")
    again = read_table(tmp_path / "small")
    assert isinstance(again, Table)
    assert (again.count == SMALL.count).all()
    assert (again.origin == SMALL.origin).all()


def test_istats_matrix_is_read_from_the_zip(tmp_path):
    rows = [
        "S 1 001 001 1 1 1 000 000 000 + + + ND 0000005",  # within Aglie
        "S 1 001 001 2 2 2 015 146 000 + + + ND 0000007",  # to Milan
        "S 1 001 001 1 2 3 000 000 215 + + + ND 0000009",  # abroad
        "L 1 001 001 1 2 2 015 146 000 02 1 1 0000007.0 ND",  # the same people once more
    ]
    with zipfile.ZipFile(tmp_path / "matrix.zip", "w") as archive:
        archive.writestr("MATRICE/matrix_pendo2011.txt", "\n".join(rows))
    table = read_istat(tmp_path / "matrix.zip")
    assert table.areas.to_table().to_pydict() == {
        "region": ["01", "03"], "province": ["001", "015"], "municipality": ["001001", "015146"],
    }  # fmt: skip
    assert table.count.tolist() == [5, 7]


def test_one_command_writes_results_summary_and_figures(tmp_path):
    published = "dataset,mechanism,epsilon,level,metric,min,mean,max\n"
    (tmp_path / "published.csv").write_text(
        f"{published}binary_sparse,InfTDA,10,1,max_error,0,9,99\n"
    )
    write_table(SMALL, tmp_path / "town")
    command.main(
        ["--out", str(tmp_path / "out"), "--synthetic", "binary_sparse", "--epsilons", "10",
         "--runs", "2", "--published", str(tmp_path / "published.csv"),
         "--table", str(tmp_path / "town")]
    )  # fmt: skip
    names = {"results.parquet", "summary.md", *(f"figure-{n}.png" for n in (4, 5, 6))}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names | {"figure-3-town.png"}
    text = (tmp_path / "out" / "summary.md").read_text()
    assert "| inftda | max_abs_error | 1 | 100.0 % |" in text
    assert text.count("vanilla-gauss") == 2


def test_figures_of_a_page_are_replaced_by_those_of_earlier_results(tmp_path):
    published = tmp_path / "published.csv"
    published.write_text(
        "dataset,mechanism,epsilon,level,metric,min,mean,max\n"
        "binary_sparse,InfTDA,1,1,max_error,0,900,99\n"
        "binary_sparse,InfTDA,1,2,max_error,-2,-1,-1\n"
    )
    page = tmp_path / "page.md"
    names = ("runs", "reproduced", "factors", "better", "finest", "totals", "estimates")
    page.write_text(
        "".join(f"# {name}\n<!-- figures: {name} -->\nold\n<!-- end -->\n" for name in names)
    )
    few = ["--synthetic", "binary_sparse", "--epsilons", "1", "--runs", "1"]
    first = ["--mechanisms", "inftda", "release", "release, no cross tables"]
    command.main(["--out", str(tmp_path / "a"), *few, *first])
    command.main(
        ["--out", str(tmp_path / "b"), *few, "--mechanisms", "estimate", "vanilla-gauss",
         "--results", str(tmp_path / "a" / "results.parquet"), "--published", str(published),
         "--page", str(page), "--csv", str(tmp_path / "all.csv")]
    )  # fmt: skip
    text = page.read_text()
    assert "old" not in text
    assert "| 1 | 1 | default releases | binary_sparse |" in text
    assert "1 of 2 figures (50.0 %) are reproduced" in text
    assert "max_abs_error of inftda (1)" in text
    assert "The published error is smaller in 1 of 2 cases" in text
    assert "| vanilla-gauss | finest | 1 | 1 |" in text
    assert "Of 1 cases" in text
    totals = text.partition("# totals")[2].partition("# estimates")[0]
    assert "None" not in totals
    assert totals.count("→") == 5
    rows = csv.DictReader((tmp_path / "all.csv").read_text().splitlines())
    published_means = {row["published_mean"] for row in rows if row["mechanism"] == "inftda"}
    assert published_means == {"", "900", "-1"}
