"""Guaranteed errors: the inequalities behind them, the tails, and simulated releases."""

import math
import random
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest

from fake_noise import release
from inftda import Noise
from inftda.errors import BudgetError, PrivacyError
from inftda.mechanism.reference import algorithm_3
from inftda.noise.bits import SeededSource
from inftda.noise.tails import tail_bound
from inftda.privacy.bounds import _Gaussian, _Laplace, _largest_share, _least, error_bounds
from inftda.privacy.noise_plan import make_plan
from inftda.privacy.unit import Unit
from inftda.reading.truth import Truth
from inftda.tree import Axis, Tree
from inftda.tree.hierarchy import Hierarchy

BRANCHES = (5, 6, 7)


def one_axis_tree(branches=BRANCHES):
    """A tree with one axis whose areas split into so many parts at each level."""
    leaves = np.arange(math.prod(branches))
    columns, size = {}, len(leaves)
    for number, parts in enumerate(branches, start=1):
        size //= parts
        columns[f"level {number}"] = [str(place) for place in leaves // size]
    return Tree.build([Axis("area", Hierarchy.read(columns))], ["area"] * len(branches))


def divide(x, total):
    if total == 0:
        return [0] * len(x)
    return [total] if len(x) == 1 else algorithm_3(x, total)


def random_instances(rng, n):
    """True children, noise, and the error of the parent."""
    for _ in range(n):
        b, reach = rng.randint(1, 7), rng.choice([1, 2, 3, 9])
        truth = [rng.choice([0, 0, 1, 2, 5, rng.randint(0, 40)]) for _ in range(b)]
        noise = [rng.randint(-reach, reach) for _ in range(b)]
        lacking, surplus = rng.choice([0, 3, 30]), rng.choice([0, 3, 30])
        yield truth, noise, rng.randint(-min(lacking, sum(truth)), surplus)


@pytest.mark.slow
def test_the_inequalities_behind_the_bounds_hold_and_are_reached():
    reached = {"over": 0, "pair": 0, "lacking": 0, "corner": 0}
    for truth, noise, error in random_instances(random.Random(20), 20_000):
        b, total = len(truth), sum(truth) + error
        x = [t + z for t, z in zip(truth, noise, strict=True)]
        y = divide(x, total)
        assert sum(y) == total
        assert min(y) >= 0
        if b == 1 or total == 0:
            assert all(-max(-error, 0) <= a - t <= max(error, 0) for a, t in zip(y, truth))  # noqa: B905 - same length
            continue
        raised = -(-(error - sum(noise)) // b)
        for i, (found, true, own) in enumerate(zip(y, truth, noise, strict=True)):
            assert found - true <= max(0, own + raised)
            reached["over"] += 0 < found - true == own + raised
            others = [z for j, z in enumerate(noise) if j != i]
            bounds = {
                "lacking": max(-error, 0),
                "pair": max(max(abs(z) for z in others) - own, -own),
                "corner": min(raised, b - 1 - raised) - own,
            }
            assert true - found <= max(bounds.values())
            for kind, bound in bounds.items():
                reached[kind] += 0 < true - found == bound == max(bounds.values())
    assert reached["over"] > 100
    assert reached["pair"] > 100
    assert reached["lacking"] > 100


def law_of(noise, reach):
    """Probabilities of -reach to reach."""
    x = np.arange(-reach, reach + 1)
    if noise.is_laplace:
        weights = np.exp(-np.abs(x) / float(noise.scale))
    else:
        weights = np.exp(-(x**2) / (2 * float(noise.square)))
    return weights / weights.sum()


def draws(rng, noise, shape):
    if noise.is_laplace:
        return noise.sample(shape, SeededSource(int(rng.integers(2**60))))
    reach = math.ceil(12 * noise.sigma)
    return rng.choice(np.arange(-reach, reach + 1), size=shape, p=law_of(noise, reach))


def simulate(tree, plan, leaves, rng):
    """Largest errors of every level of one top-down release: too much, too little."""
    noise = {level.index: level.noise for level in plan.levels}
    truth = [leaves]
    for level in tree.levels[:0:-1]:
        truth.insert(0, truth[0].reshape(-1, level.max_children).sum(axis=1))
    released = truth[0].copy()
    if 0 in noise:
        released = np.maximum(released + draws(rng, noise[0], 1), 0)
    errors = [released - truth[0]]
    for level in tree.levels[1:]:
        noisy = truth[level.index] + draws(rng, noise[level.index], level.n_nodes)
        groups = noisy.reshape(-1, level.max_children).tolist()
        divided = [divide(g, int(c)) for g, c in zip(groups, released, strict=True)]
        released = np.array(divided).ravel()
        errors.append(released - truth[level.index])
    return [(int(error.max()), int(-error.min())) for error in errors]


def sparse_leaves(rng, n):
    heavy = rng.random(n) < 0.15
    return np.where(heavy, rng.integers(1, 200, n), rng.integers(0, 2, n) * (rng.random(n) < 0.2))


@pytest.mark.parametrize("unit", [Unit(), Unit("add-remove")], ids=["public", "noised"])
def test_simulated_releases_keep_the_guarantee_and_come_close(unit):
    tree, n_runs, beta = one_axis_tree(), 120, 0.05
    plan = make_plan(tree, unit, epsilon=3, delta=1e-8, method="paper")
    bounds = error_bounds(tree, plan, beta)
    rng = np.random.default_rng(7)
    leaves = sparse_leaves(rng, tree.levels[-1].n_nodes)
    errors = np.array([simulate(tree, plan, leaves, rng) for _ in range(n_runs)])
    broken = errors > [(bound.over, bound.under) for bound in bounds]
    assert broken.any(axis=(1, 2)).mean() <= beta
    usual = np.quantile(errors[:, -1].max(axis=1), 0.95)
    assert bounds[-1].max_error <= 2.5 * usual, "a guarantee, not a phantasy"


def exact_tail(sigma2, t, n_summands=1):
    single = law_of(Noise.gaussian(sigma2), math.ceil(20 * math.sqrt(sigma2)))
    law = single if n_summands == 1 else np.convolve(single, single)
    return float(law[len(law) // 2 + t + 1 :].sum())


@pytest.mark.parametrize("n_summands", [1, 2])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 7.0, 49.0, 51.0, 200.0])
def test_tails_are_never_understated_and_tight(sigma, n_summands):
    tail = tail_bound(Noise.gaussian(sigma**2), n_summands)
    for t in {0, 1, math.ceil(0.9 * sigma), math.ceil(3 * sigma), math.ceil(7 * sigma)}:
        truth = exact_tail(sigma**2, t, n_summands)
        assert truth * (1 - 1e-10) <= tail(t) <= truth * 1.02 + 1e-109


@pytest.mark.parametrize("sigma", [0.5, 3.0, 60.0])
@pytest.mark.parametrize("cells", [1, 20, 10**6])
def test_the_quantile_of_the_largest_draw_is_exact(sigma, cells):
    noise = _Gaussian(cells, 2, Noise.gaussian(sigma**2))
    found = noise.quantile_of_largest(0.05)

    def all_within(t):
        return math.exp(cells * math.log1p(-2 * exact_tail(sigma**2, t)))

    assert all_within(found) >= 0.95
    assert found == 0 or all_within(found - 1) < 0.95


def law_with_mean(noise, b, sign):
    """Values and probabilities of z + sign * mean(z) for b siblings, by convolution."""
    reach = math.ceil(45 * noise.scale) + 2 if noise.is_laplace else math.ceil(12 * noise.sigma)
    single = law_of(noise, reach)
    law = np.zeros(2 * reach * (b + sign) + 1)
    law[:: b + sign] = single
    for _ in range(b - 1):
        law = np.convolve(law, single)
    return (np.arange(len(law)) - len(law) // 2) / b, law


GAUSSIANS = [Noise.gaussian(sigma**2) for sigma in (0.6, 2.0, 15.0)]
LAPLACES = [Noise.laplace(scale) for scale in (0.1, 0.6, 2.0, 5.0)]


@pytest.mark.parametrize("siblings", [2, 3, 4, 12])
@pytest.mark.parametrize("noise", [*GAUSSIANS, *LAPLACES], ids=str)
def test_noise_above_the_mean_of_siblings_is_never_understated(noise, siblings):
    values, law = law_with_mean(noise, siblings, -1)
    bounds = (_Laplace if noise.is_laplace else _Gaussian)(1000, siblings, noise)
    for beta in (0.05, 1e-4):
        # `too_much` holds for any number of siblings up to this one: the loosest of them.
        found = bounds.too_much(0, beta)
        assert 1000 * law[values + (siblings - 1) / siblings >= found + 1].sum() <= beta


def test_the_largest_share_is_the_largest():
    for scale, passed_on, siblings in [
        (10, 3, 9),
        (10, 8, 9),
        (10, 40, 9),
        (1, 100, 2),
        (5, -1, 7),
    ]:
        shares = [scale * math.sqrt(1 - 1 / b) + passed_on / b for b in range(2, siblings + 1)]
        assert max(shares) <= _largest_share(scale, passed_on, siblings) <= max(shares) * 1.05


def test_a_noised_total_is_off_by_one_draw():
    tree = one_axis_tree()
    plan = make_plan(tree, Unit("add-remove"), epsilon=1, delta=1e-8, method="paper")
    root, first, *_ = error_bounds(tree, plan)
    sigma2 = float(plan.levels[0].noise.square)
    share = 0.05 / 4
    assert root.over == root.under == root.max_error
    assert 2 * exact_tail(sigma2, root.over) <= share < 2 * exact_tail(sigma2, root.over - 1)
    assert first.max_error > root.max_error


def test_a_public_total_is_exact_and_trivial_steps_add_nothing():
    areas = Hierarchy.read({"a": list("xxyy"), "b": list("xxyy"), "c": list("1234")})
    tree = Tree.build([Axis("area", areas)], ["area"] * 3)
    bounds = error_bounds(tree, make_plan(tree, Unit(), epsilon=1, delta=1e-8, method="paper"))
    assert bounds[0].max_error == 0
    assert bounds[2].max_error == bounds[1].max_error < bounds[3].max_error


def test_a_thousand_billion_cells_are_no_obstacle():
    class Wide:
        index, name, n_nodes, max_children, is_trivial = 1, "wide", 10**12, 10**5, False

        def leaf_capacities(self):
            return iter([(1, self.n_nodes)])

    class Root(Wide):
        index, name, n_nodes, max_children = 0, "all", 1, 1

    class Shape:
        levels = (Root(), Wide())

    plan = make_plan(Shape(), Unit(), epsilon=1, delta=1e-8, method="paper")
    bound = error_bounds(Shape(), plan)[1]
    sigma = plan.levels[0].sigma
    assert 7 * sigma < bound.over < 9 * sigma
    assert bound.max_error < 17 * sigma


@pytest.mark.parametrize("beta", [0, 1, -0.1, 2, math.nan, 1e-12, "0.05", None])
def test_a_beta_that_is_no_probability_is_refused(beta):
    tree = one_axis_tree()
    plan = make_plan(tree, Unit(), epsilon=1, delta=1e-8, method="paper")
    with pytest.raises(PrivacyError, match="beta"):
        error_bounds(tree, plan, beta)


def test_a_plan_for_another_tree_is_refused():
    plan = make_plan(one_axis_tree((2, 2)), Unit(), rho=Fraction(1), method="paper")
    with pytest.raises(BudgetError, match="plan anew"):
        error_bounds(one_axis_tree(), plan)


# Laplace noise


def with_laplace(plan, scale, n_levels=1):
    """The last levels of a plan with Laplace noise."""
    rest, last = plan.levels[:-n_levels], plan.levels[-n_levels:]
    laplace = (replace(level, noise=Noise.laplace(Fraction(scale))) for level in last)
    return replace(plan, levels=(*rest, *laplace))


@pytest.mark.parametrize("scale", ["0.05", "0.3", "1", "7", "60"])
def test_laplace_tails_are_sums_of_probabilities(scale):
    noise, size = Noise.laplace(scale), float(scale)
    with localcontext(prec=60):
        reach = math.ceil(90 * size) + 20
        weights = [(-abs(x) / Decimal(scale)).exp() for x in range(-reach, reach + 1)]
        whole = sum(weights)
        law = [weight / whole for weight in weights]
        at_least = [*accumulate(reversed(law))][::-1]  # P[X >= x] from x = -reach on
        for t in {0, 1, 2, math.ceil(3 * size), math.ceil(20 * size)}:
            one = at_least[reach + t + 1]
            # X = x, and another draw of at least t + 1 - x
            others = (at_least[max(t + 1 - x + reach, 0)] for x in range(t + 1 - reach, reach + 1))
            two = sum(p * q for p, q in zip(law[t + 1 :], others, strict=True))
            for n_summands, truth in ((1, one), (2, two)):
                found = Decimal(tail_bound(noise, n_summands)(t))
                assert truth <= found <= truth * Decimal(1 + 3e-9) + Decimal("2e-110")


@pytest.mark.parametrize("b", [2, 3, 4, 12])
@pytest.mark.parametrize("law", LAPLACES, ids=str)
def test_laplace_noise_beside_the_mean_of_siblings_is_never_understated_and_tight(law, b):
    for sign, p in [(-1, 0.05), (-1, 1e-7), (1, 0.05), (1, 1e-7)]:
        if (b, sign) == (2, -1):
            continue
        values, chances = law_with_mean(law, b, sign)
        found = _Laplace(1000, b, law)._combined(b, sign, p)
        assert chances[values >= found].sum() <= p
        exact = values[np.argmax(np.cumsum(chances[::-1])[::-1] <= p)]
        assert found <= exact + 1 + (0.5 if p < 1e-3 else 1) * float(law.scale)


def test_laplace_bounds_cover_every_number_of_siblings():
    rng = np.random.default_rng(11)
    for _ in range(200):
        scale, siblings = float(np.exp(rng.uniform(-3, 6))), int(rng.integers(3, 400))
        above, cells = int(rng.integers(0, 60 * (1 + scale))), int(10 ** rng.uniform(1, 9))
        one, beta = Noise.laplace(scale), float(10 ** rng.uniform(-6, -1))
        noise = _Laplace(cells, siblings, one)
        sizes = range(3, siblings + 1)
        shares = [noise._combined(b, -1, beta / cells) + (above - 1) / b for b in sizes]
        assert noise.too_much(above, beta) >= math.floor(1 + max(shares))
        assert noise.too_much(above, beta) >= _Laplace(cells, 2, one).too_much(above, beta)
        below = [noise.below_mean(b, beta / cells) for b in range(2, siblings + 1)]
        assert (np.diff(below) < 0).all()
        corners = [
            min(
                _least(tail_bound(noise.noise, 1), beta / cells / 2) + (b - 1) // 2,
                1 + max(above - 1, 0) / b + noise.below_mean(b, beta / cells / 2),
            )
            for b in range(2, siblings + 1)
        ]
        assert noise.corner(above, beta) >= math.floor(max(corners))


def test_laplace_bounds_grow_with_all_that_makes_errors_larger():
    def bounds(cells=1000, siblings=9, scale=4.0, above=30, beta=0.01):
        noise = _Laplace(cells, siblings, Noise.laplace(scale))
        return np.array(
            [
                noise.quantile_of_largest(beta),
                noise.too_much(above, beta),
                noise.too_little(beta),
                noise.corner(above, beta),
            ]
        )

    plain = bounds()
    assert (bounds(cells=10**5) > plain).all()
    assert (bounds(scale=5.0) > plain).all()
    assert (bounds(beta=1e-4) > plain).all()
    assert (bounds(siblings=90) >= plain).all()
    assert (bounds(above=90) >= plain).all()


@pytest.mark.parametrize("n_laplace", [1, None], ids=["leaf", "all"])
@pytest.mark.parametrize("seed", range(4))
def test_simulated_releases_with_laplace_noise_keep_the_guarantee_and_come_close(seed, n_laplace):
    rng, beta = np.random.default_rng(seed), 0.05
    tree = one_axis_tree(rng.integers(2, 8, 3).tolist())
    unit = Unit("add-remove") if seed % 2 else Unit()
    plan = make_plan(tree, unit, epsilon=3, delta=1e-8, method="paper")
    scale = rng.choice(["1/2", "5/2", "7"])
    plan = with_laplace(plan, scale, n_laplace or len(plan.levels))
    bounds = error_bounds(tree, plan, beta)
    leaves = sparse_leaves(rng, tree.levels[-1].n_nodes)
    errors = np.array([simulate(tree, plan, leaves, rng) for _ in range(200)])
    broken = errors > [(bound.over, bound.under) for bound in bounds]
    assert broken.any(axis=(1, 2)).mean() <= beta
    usual = np.quantile(errors.max(axis=2), 0.95, axis=0)
    for bound, found in zip(bounds[1:], usual[1:], strict=True):
        assert bound.max_error <= 4 * found


def test_a_laplace_leaf_changes_the_bounds_of_the_leaves_only():
    tree = one_axis_tree()
    plan = make_plan(tree, Unit(), epsilon=1, delta=1e-8, method="paper")
    plain, changed = error_bounds(tree, plan), error_bounds(tree, with_laplace(plan, 2))
    assert changed[:-1] == plain[:-1]
    assert plain[-2].max_error <= changed[-1].max_error < plain[-1].max_error


def test_totals_are_hard_where_the_mechanism_says_so():
    """It compares variances: that of Laplace noise is about twice the square of its scale."""
    tree = across_tree()
    plan = make_plan(tree, Unit(), epsilon=1, delta=1e-8, cross_tables=0.05, method="paper")
    table = next(table for table in plan.tables if table.depths == (0, 0, 1))
    marginal = next(t for t in tree.cross_tables if t.depths == table.depths)
    # By squares the groups have too few parents, by variances enough.
    scale = Fraction(math.sqrt(0.7 * 20 * table.noise.square / marginal.level.most_parents))
    priced = with_laplace(plan, scale)
    noise = priced.levels[-1].noise
    assert (
        marginal.hard_from(float(noise.square / table.noise.square)) > marginal.level.most_parents
    )
    assert marginal.hard_from((noise.sigma / table.sigma) ** 2) < marginal.level.most_parents
    leaf, plain = error_bounds(tree, priced)[-1], error_bounds(tree, without_tables(priced))[-1]
    assert leaf.over - plain.over == math.ceil(noise.sigma) + math.ceil(4 * noise.sigma) + 1


# With dual variables for cross tables


def across_tree(n_modes=3):
    areas = Hierarchy.read({"region": list("AAABBB"), "town": list("123456")})
    long = Hierarchy.read({"code": [str(number) for number in range(400)]})
    modes = Hierarchy.read({"mode": [str(number) for number in range(n_modes)]})
    axes = [Axis("long", long), Axis("area", areas), Axis("mode", modes)]
    return Tree.build(axes, ["area", "long", "area", "mode"])


def without_tables(plan):
    return replace(plan, cross_table_share=Fraction(0), tables=())


def test_dual_variables_add_what_theorem_4_says_and_short_axes_more():
    tree = across_tree()
    plan = make_plan(tree, Unit(), epsilon=1, delta=1e-8, cross_tables=0.05, method="paper")
    sigma = plan.levels[0].sigma
    priced, plain = error_bounds(tree, plan), error_bounds(tree, without_tables(plan))
    one, four = math.ceil(sigma), math.ceil(4 * sigma)
    # The first step is on the tree. Towns and modes are short axes, but with 400 parents at most
    # in a group the totals of towns are not so much better that sums have to agree with them.
    more = [a.over - b.over for a, b in zip(priced, plain, strict=True)]
    assert more == [0, 0, 2 * one + 1, 2 * one + 1, one + four + 1]
    less = [a.under - b.under for a, b in zip(priced, plain, strict=True)]
    assert less[:3] == [0, 0, 2 * one]
    # Not simply 2 * four: other terms are the largest with and without dual variables, and the
    # corner is worked out for larger errors above.
    assert 2 * one < less[4] <= 3 * four


@pytest.mark.slow
@pytest.mark.parametrize("n_modes", [3, 65])
def test_bounds_hold_for_releases_with_prices(n_modes):
    """At a beta of 1e-3 none of 40 releases may be further off."""
    tree = across_tree(n_modes)
    plan = make_plan(tree, Unit(), epsilon=2, delta=1e-6, cross_tables=0.08, method="paper")
    bounds = error_bounds(tree, plan, 1e-3)
    draw = np.random.default_rng(1)
    leaves = [draw.integers(0, n, 400, dtype=np.int32) for n in (400, 6, n_modes)]
    counts = Truth.from_leaves(tree, leaves, draw.geometric(0.02, 400))
    for seed in range(40):
        nodes = release(counts, plan, seed=seed).leaves
        for level, bound in zip(tree.levels, bounds, strict=True):
            error = np.zeros(level.n_nodes, np.int64)
            for sign, (areas, value) in ((1, (nodes.areas, nodes.value)), (-1, counts.leaves)):
                cells, sums = level.sum_up(areas, value)
                error[level.numbers(cells)] += sign * sums
            assert error.max() <= bound.over
            assert -error.min() <= bound.under
