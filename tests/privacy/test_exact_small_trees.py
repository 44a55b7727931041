"""Privacy of whole releases of tiny trees, computed and not sampled.

For every table with few people and every neighbour of it, the distribution of the release is
computed by enumerating all noise, and compared with the guarantee: delta at the stated epsilon, and
the accounted rho at several orders. A second group of tests shows that the noise by itself costs
exactly the accounted budget, so that nothing is charged in vain.
"""

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from exact_release import (
    ExactRelease,
    Laplace,
    aligned,
    compositions,
    contributions,
    gaussian,
    hockey_stick,
    leaves,
    of_many,
    of_two,
    renyi,
)
from flint import arb, ctx
from scipy.stats import chi2, norm

from inftda.mechanism.intopt import words_of
from inftda.mechanism.topdown import Division, divide_all, step_to
from inftda.noise.bits import Secret, SeededSource, draw_seed
from inftda.noise.distribution import Noise
from inftda.privacy import accountants
from inftda.privacy.accountants import privacy_curve
from inftda.privacy.noise_plan import make_plan
from inftda.privacy.unit import Unit
from inftda.reading.truth import Truth
from inftda.tree import Axis, Cells, Tree
from inftda.tree.hierarchy import Hierarchy
from inftda.util.threads import ThreadPool

ORDERS = (1.25, 2.0, 3.0, 5.0)
#: Sums of positive floats: right to this, relatively.
ROUNDING = 1e-10
EPSILON, DELTA = 4.0, 0.01


@dataclass(frozen=True)
class Shape:
    """A tiny tree, once as nested tuples and once as the package has it."""

    nested: tuple
    tree: Tree

    @property
    def n_leaves(self):
        return self.tree.levels[-1].n_nodes


def one_axis(nested, **columns):
    hierarchy = Hierarchy.read(columns)
    axis = Axis("place", hierarchy)
    return Shape(nested, Tree.build([axis], ["place"] * hierarchy.depth))


SHAPES = {
    "two leaves": one_axis((0, 1), part=["0", "1"]),
    "three leaves": one_axis((0, 1, 2), part=["0", "1", "2"]),
    # Destination first, then origin: leaf 1 is from area 1 to area 0.
    "two by two": Shape(
        ((0, 1), (2, 3)), Tree.destination_first(Hierarchy.read({"area": ["0", "1"]}))
    ),
    "an only child": one_axis(((0, 1), (2,)), half=["0", "0", "1"], part=["00", "01", "10"]),
}
#: Everybody else's trips: few, so that much is clipped at 0; and many, so that nothing is.
FEW, MANY = 1, 9
CASES = [
    pytest.param(name, unit, others, id=f"{name}, {others} others, {unit.describe()}")
    for unit, shapes in (
        (Unit(), ("two leaves", "three leaves", "two by two", "an only child")),
        (Unit(exactly=False), ("two leaves", "an only child")),
        (Unit("add-remove"), ("two leaves", "an only child")),
        (Unit(trips=2), ("two leaves", "two by two")),
        (Unit(trips=2, distinct=True), ("two by two",)),
        (Unit(trips=2, exactly=False), ("two leaves",)),
        (Unit("add-remove", trips=2), ("two leaves",)),
        (Unit("add-remove", trips=2, distinct=True), ("two leaves",)),
    )
    for name in shapes
    for others in (FEW, MANY)
]


def neighbours(unit, n_leaves, others):
    """Pairs of neighbouring tables: all with few trips of others, or with many in each leaf."""
    own = [
        np.bincount(np.array(chosen, np.int64), minlength=n_leaves)
        for chosen in contributions(unit, n_leaves)
    ]
    nothing = np.zeros(n_leaves, np.int64)
    if others == MANY:
        backgrounds = [(MANY,) * n_leaves]
    else:
        backgrounds = [row for total in range(others + 1) for row in compositions(n_leaves, total)]
    pairs = set()
    for background in backgrounds:
        for a, b in itertools.product(own, own if unit.is_substitute else [nothing]):
            left, right = (tuple((np.array(background) + trips).tolist()) for trips in (a, b))
            pairs |= {(left, right), (right, left)}
    return sorted(pair for pair in pairs if pair[0] != pair[1])


def exact_release(shape, plan, pairs, **changes):
    def noise(level):
        return Laplace(level.noise.scale) if level.noise.is_laplace else level.noise.square

    below = [level for level in plan.levels if level.index]
    root = next((noise(level) for level in plan.levels if not level.index), None)
    return ExactRelease(
        shape.nested,
        tuple(map(noise, below)),
        max(sum(table) for pair in pairs for table in pair),
        root_sigma2=root,
        shift=math.ceil(max(ORDERS)) * plan.unit.trips,
        **changes,
    )


def laws_of(release, pairs):
    tables = sorted({table for pair in pairs for table in pair})
    return dict(zip(tables, aligned([release.law(table) for table in tables]), strict=True))


def worst(release, pairs, epsilon):
    """Largest delta at epsilon, and largest Rényi divergence over its order, of all pairs."""
    laws = laws_of(release, pairs)
    delta = max(hockey_stick(laws[left], laws[right], epsilon) for left, right in pairs)
    cost = {
        order: max(renyi(laws[left], laws[right], order) for left, right in pairs) / order
        for order in ORDERS
    }
    return delta, cost


@pytest.mark.slow
@pytest.mark.parametrize(("name", "unit", "others"), CASES)
def test_no_pair_of_neighbours_is_further_apart_than_promised(name, unit, others):
    shape = SHAPES[name]
    plan = make_plan(shape.tree, unit, epsilon=EPSILON, delta=DELTA, method="paper")
    pairs = neighbours(unit, shape.n_leaves, others)
    delta, cost = worst(exact_release(shape, plan, pairs), pairs, EPSILON)
    assert delta <= DELTA
    for order in ORDERS:
        assert 0 < cost[order] <= float(plan.rho) * (1 + ROUNDING), order


@pytest.mark.slow
@pytest.mark.parametrize("accountant", ["zcdp", "exact"])
@pytest.mark.parametrize("promise", [(1.0, 0.1), (6.0, 1e-3)])
def test_every_accountant_keeps_its_promise(accountant, promise):
    epsilon, delta = promise
    shape, unit = SHAPES["two leaves"], Unit()
    plan = make_plan(
        shape.tree, unit, epsilon=epsilon, delta=delta, accountant=accountant, method="paper"
    )
    for others in (FEW, MANY):
        pairs = neighbours(unit, shape.n_leaves, others)
        found, cost = worst(exact_release(shape, plan, pairs), pairs, epsilon)
        assert found <= delta
        assert max(cost.values()) <= float(plan.rho) * (1 + ROUNDING)


@pytest.mark.slow
def test_in_whichever_order_elements_give_way_the_promise_is_kept():
    shape, unit = SHAPES["two by two"], Unit()
    plan = make_plan(shape.tree, unit, epsilon=EPSILON, delta=DELTA, method="paper")
    pairs = neighbours(unit, shape.n_leaves, FEW)
    delta, cost = worst(exact_release(shape, plan, pairs, is_descending=True), pairs, EPSILON)
    assert delta <= DELTA
    assert max(cost.values()) <= float(plan.rho) * (1 + ROUNDING)


# Laplace noise at the finest level, and everywhere


#: Where much is clipped at 0: the others take long.
CLIPPED = [case for case in CASES if case.values[2] == FEW]


def with_laplace_leaves(plan, scale):
    """A plan whose finest level has Laplace noise, and the delta that it is charged."""
    leaf = replace(plan.levels[-1], noise=Noise.laplace(Fraction(scale)))
    plan = replace(plan, levels=(*plan.levels[:-1], leaf))
    return plan, privacy_curve("auto", plan.measured)(EPSILON)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "unit", "others"), CLIPPED)
def test_laplace_leaves_give_away_no_more_than_they_are_charged(name, unit, others):
    shape, scale = SHAPES[name], Fraction(2 * unit.trips, 3)
    plan, charged = with_laplace_leaves(make_plan(shape.tree, unit, rho=1, method="paper"), scale)
    pairs = neighbours(unit, shape.n_leaves, others)
    delta, cost = worst(exact_release(shape, plan, pairs), pairs, EPSILON)
    assert delta <= charged * (1 + ROUNDING)
    assert max(cost.values()) <= float(plan.rho) * (1 + ROUNDING)


def delta_of_all_noise(plan):
    """Delta of noisy counts as they are, where every level changes as much as it can."""
    loss, chance = np.zeros(1), np.ones(1)
    for level in plan.levels:
        noise = gaussian(
            Laplace(level.noise.scale) if level.noise.is_laplace else level.noise.square, 0
        )
        trips = plan.unit.trips
        more = np.log(noise.p[trips:] / noise.p[:-trips])
        for _ in range(plan.unit.sides(level.index)):
            loss, place = np.unique(np.round(np.add.outer(loss, more), 9), return_inverse=True)
            weights = np.outer(chance, noise.p[trips:]).ravel()
            chance = np.bincount(place.ravel(), weights)
    gained = loss > EPSILON
    return float((chance[gained] * -np.expm1(EPSILON - loss[gained])).sum())


def test_one_trip_gives_away_all_that_laplace_leaves_are_charged():
    plan, charged = with_laplace_leaves(
        make_plan(SHAPES["two by two"].tree, Unit(), rho=1, method="paper"), "2/3"
    )
    assert delta_of_all_noise(plan) == pytest.approx(charged, rel=1e-6)


#: What could be wrong about losses of Laplace noise: all of it would be charged too little.
FAULTS = {
    "a wrong sign": (Unit(), lambda losses, parts: [(p, -loss) for p, loss in losses(parts)]),
    "one side forgotten": (
        Unit(),
        lambda losses, parts: losses(
            [(noise, change._replace(sides=1)) for noise, change in parts]
        ),
    ),
    "the scale of another unit": (
        Unit(trips=2),
        lambda losses, parts: losses(
            [(noise, change._replace(trips=1)) for noise, change in parts]
        ),
    ),
    "a leaf drawn with less noise": (
        Unit(),
        lambda losses, parts: losses(
            [(Noise.laplace(2 * noise.scale), change) for noise, change in parts]
        ),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_charged_too_little_for_laplace_leaves_is_seen(fault, monkeypatch):
    unit, wrong = FAULTS[fault]
    tree, scale = SHAPES["two by two"].tree, Fraction(2 * unit.trips, 3)
    plan, charged = with_laplace_leaves(make_plan(tree, unit, rho="1/4", method="paper"), scale)
    assert delta_of_all_noise(plan) <= charged
    monkeypatch.setattr(accountants, "_laplace_losses", partial(wrong, accountants._laplace_losses))
    assert delta_of_all_noise(plan) > 1.05 * with_laplace_leaves(plan, scale)[1]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "unit", "others"), [*CLIPPED, ("two leaves", Unit(), MANY)])
def test_with_delta_0_nothing_is_ever_much_more_likely(name, unit, others):
    shape = SHAPES[name]
    plan = make_plan(shape.tree, unit, epsilon=EPSILON, delta=0, method="paper")
    pairs = neighbours(unit, shape.n_leaves, others)
    laws = laws_of(exact_release(shape, plan, pairs), pairs)
    ratio = max(
        float(np.max(laws[left][seen] / laws[right][seen]))
        for left, right in pairs
        if (seen := laws[right] > 1e-25).any()
    )
    assert 1 < math.log(ratio) <= EPSILON + 1e-9
    if others == MANY:  # nothing is clipped, so little is given away in vain
        assert math.log(ratio) > 0.95 * EPSILON


# Nothing is charged in vain, and the checks above can fail


def test_a_release_of_two_leaves_gives_away_all_that_is_promised():
    shape, unit = SHAPES["two leaves"], Unit()
    plan = make_plan(shape.tree, unit, epsilon=EPSILON, delta=DELTA, method="paper")
    pairs = neighbours(unit, 2, MANY)
    release = exact_release(shape, plan, pairs)
    delta, _ = worst(release, pairs, EPSILON)
    assert DELTA * (1 - 1e-7) < delta <= DELTA
    # So the least bit of noise less is too little, and noise 30 % too small a lot.
    less = replace(release, sigma2=(release.sigma2[0] * Fraction(999, 1000),))
    assert worst(less, pairs, EPSILON)[0] > DELTA
    much_less = replace(release, sigma2=(release.sigma2[0] * Fraction(49, 100),))
    delta, cost = worst(much_less, pairs, EPSILON)
    assert delta > 5 * DELTA
    assert max(cost.values()) > 1.5 * plan.rho


def test_the_sensitivity_of_the_paper_is_seen_to_be_too_small():
    # Halves of halves of halves. Four different trips within one half, or within the other:
    # both change by 4, not by 2. The sums over halves are a release of two leaves.
    parts = [f"{number:03b}" for number in range(8)]
    columns = {"half": [p[:1] for p in parts], "quarter": [p[:2] for p in parts], "part": parts}
    tree = one_axis((), **columns).tree
    plan = make_plan(tree, Unit(trips=4, distinct=True), rho=Fraction(1), method="paper")
    assert [level.sensitivity.squared for level in plan.levels] == [32, 16, 8]
    pairs = [((24, 20), (20, 24))]
    shift = 5 * 4
    right = ExactRelease((0, 1), (plan.levels[0].noise.square,), 44, shift=shift)
    cost = max(worst(right, pairs, EPSILON)[1].values())
    assert 0.95 * plan.levels[0].rho < cost <= plan.levels[0].rho
    # The paper's figure is that of the leaves at all levels. Claimed for all three: rho = 1.
    wrong = ExactRelease((0, 1), (plan.levels[-1].noise.square,), 44, shift=shift)
    assert max(worst(wrong, pairs, EPSILON)[1].values()) > 1.25


def nodes_by_level(nested):
    """For each level below the root, the leaves under each node."""
    levels = []
    while not all(isinstance(node, int) for node in nested):
        levels.append([leaves(node) for node in nested])
        nested = [part for node in nested for part in node]
    return [*levels, [[leaf] for leaf in nested]]


def changes_by_level(shape, unit, pair):
    """What two neighbours differ by in every measured cell, by index of the level."""
    difference = np.array(pair[0]) - np.array(pair[1])
    found = {} if unit.root_is_public else {0: [int(difference.sum())]}
    below = [level.index for level in shape.tree.splitting_levels]
    for index, nodes in zip(below, nodes_by_level(shape.nested), strict=True):
        found[index] = [int(difference[node].sum()) for node in nodes]
    return found


def noise_divergence(sigma2, change, order):
    """Rényi divergence of a discrete Gaussian and its shift, for a whole order, as a ball."""
    reach = int(40 * math.sqrt(sigma2)) + order * abs(change) + 10
    two = arb(2 * sigma2.numerator) / sigma2.denominator
    k = range(-reach, reach + 1)
    above = sum(
        ((-arb(order * x**2 + (1 - order) * (x - change) ** 2) / two).exp() for x in k), arb(0)
    )
    below = sum(((-arb(x**2) / two).exp() for x in k), arb(0))
    return (above / below).log() / (order - 1)


@pytest.fixture
def many_digits():
    before, ctx.prec = ctx.prec, 256
    yield
    ctx.prec = before


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        pytest.param(*case.values[:2], id=f"{case.values[0]}, {case.values[1].describe()}")
        for case in CASES
        if case.values[2] == FEW
    ],
)
@pytest.mark.usefixtures("many_digits")
def test_the_noise_of_every_level_costs_exactly_its_rho(name, unit):
    shape = SHAPES[name]
    plan = make_plan(shape.tree, unit, epsilon=EPSILON, delta=DELTA, method="paper")
    changes = [changes_by_level(shape, unit, pair) for pair in neighbours(unit, shape.n_leaves, 0)]
    for level in plan.levels:
        squares = [sum(d**2 for d in change[level.index]) for change in changes]
        assert max(squares) == level.sensitivity.squared
        worst_change = changes[int(np.argmax(squares))][level.index]
        for order in (2, 3, 8):
            found = sum(
                (noise_divergence(level.noise.square, d, order) for d in worst_change if d), arb(0)
            )
            accounted = order * level.rho
            error = found - arb(accounted.numerator) / accounted.denominator
            assert abs(error) < 1e-50


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two leaves", "two by two"])
@pytest.mark.parametrize("neighbouring", ["substitute", "add-remove"])
def test_the_noise_of_all_levels_attains_the_promised_delta(name, neighbouring):
    plan = make_plan(
        SHAPES[name].tree,
        Unit(neighbouring),
        epsilon=EPSILON,
        delta=DELTA,
        accountant="exact",
        method="paper",
    )
    found = delta_of_noise(plan, EPSILON)
    assert DELTA * (1 - 1e-6) < found <= DELTA


def delta_of_noise(plan, epsilon):
    """Delta of the noisy counts themselves: all draws in all cells that change by one."""
    p, q = np.ones(1), np.ones(1)
    for level in plan.levels:
        noise = gaussian(level.noise.square, 0)
        reach = math.ceil(9 * math.sqrt(level.noise.square))
        x = np.arange(-reach, reach + 2)
        for _ in range(level.sensitivity.squared):
            p = np.multiply.outer(p, noise.at(x)).ravel()
            q = np.multiply.outer(q, noise.at(x - 1)).ravel()
    return hockey_stick(q, p, epsilon)


@pytest.mark.slow
def test_the_continuous_gaussian_would_promise_too_much():
    # Noise for which the continuous Gaussian has delta 0.01 at some epsilon near 4.
    plan = make_plan(SHAPES["two leaves"].tree, Unit(), rho=Fraction(2), method="paper")
    width = 2.0
    ratios = []
    for epsilon in np.linspace(3, 5, 41):
        claimed = norm.sf(epsilon / width - width / 2) - math.exp(epsilon) * norm.sf(
            epsilon / width + width / 2
        )
        ratios.append(delta_of_noise(plan, epsilon) / claimed)
    assert max(ratios) > 1.05


@pytest.mark.slow
def test_two_parts_are_divided_by_their_difference():
    for true, released, is_descending in itertools.product(
        [(0, 0), (2, 1), (0, 5)], [1, 2, 7], [False, True]
    ):
        options = {"low": -14, "high": 20, "is_descending": is_descending}
        quick = of_two(true, released, Fraction(1), **options)
        slow = of_many(true, released, Fraction(1), **options)
        assert np.allclose(quick, slow, rtol=1e-9, atol=0)


# The engine follows the computed distribution


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two leaves", "three leaves", "two by two", "an only child"])
def test_the_engine_releases_by_the_computed_law(name):
    shape, n = SHAPES[name], 100_000
    table = ((2, 1), (2, 0, 1), (2, 0, 0, 1), (2, 0, 1))[list(SHAPES).index(name)]
    released, plan = many_releases(shape, table, n)
    pairs = [(table, table)]
    release = exact_release(shape, plan, pairs)
    assert chi_square_p(released, release.law(table)) > 1e-7
    wider = replace(release, sigma2=tuple(s * Fraction(11, 10) for s in release.sigma2))
    assert chi_square_p(released, wider.law(table)) < 1e-7


def many_releases(shape, table, n):
    """Releases of `n` copies of a table, whose totals are public, side by side."""
    copies = Axis("copy", Hierarchy.read({"copy": [f"{number:06d}" for number in range(n)]}))
    tree = Tree.build([copies, *shape.tree.axes], ["copy", *shape.tree.order])
    areas = leaf_areas(shape.tree)
    counts = Truth.from_leaves(
        tree,
        (
            np.repeat(np.arange(n, dtype=np.int32), len(table)),
            *(np.tile(axis, n).astype(np.int32) for axis in areas),
        ),
        np.tile(table, n),
    )
    plan = make_plan(tree, Unit(), rho=Fraction(3), method="paper")
    spending = plan.account()
    spending.charge(1)  # the level of copies, which are public here
    secret, seed = Secret.of(SeededSource(5)), words_of(draw_seed(SeededSource(5)))
    first = np.arange(n, dtype=np.int32)
    whole = tuple(np.zeros(n, np.int32) for _ in shape.tree.axes)
    nodes = Cells((first, *whole), np.full(n, sum(table)))
    cells = np.zeros((n, len(table)), np.int64)
    place = {leaf: number for number, leaf in enumerate(zip(*areas, strict=True))}
    for level in tree.splitting_levels[1:]:
        step = step_to(level, tree, spending)
        division = Division(step, (), secret, seed)
        nodes, _ = divide_all(division, nodes, counts.level(level), pool=ThreadPool(1))
    copy, *rest = nodes.areas
    leaf = [place[key] for key in zip(*(axis.tolist() for axis in rest), strict=True)]
    cells[copy, leaf] = nodes.value
    # The plan without the level of copies, numbered as in the tree of one.
    below = tuple(replace(level, index=level.index - 1) for level in plan.levels[1:])
    return cells, replace(plan, levels=below)


def leaf_areas(tree):
    """Area numbers of the leaves on every axis, in tree order."""
    sizes = [axis.hierarchy.n_areas(axis.hierarchy.depth) for axis in tree.axes]
    if len(sizes) == 1:
        return (np.arange(sizes[0]),)
    destination, origin = np.divmod(np.arange(sizes[0] * sizes[1]), sizes[0])
    return origin, destination


def chi_square_p(released, law):
    """How well releases fit a distribution; rare outputs are taken together."""
    rows, times = np.unique(released, axis=0, return_counts=True)
    seen = dict(zip(map(tuple, rows.tolist()), times.tolist(), strict=True))
    assert set(seen) <= set(law)
    n = len(released)
    expected = np.array([p * n for p in law.values()])
    observed = np.array([seen.get(output, 0) for output in law])
    is_rare = expected < 10
    expected = np.append(expected[~is_rare], expected[is_rare].sum() + 1e-9)
    observed = np.append(observed[~is_rare], observed[is_rare].sum())
    statistic = ((observed - expected) ** 2 / np.maximum(expected, 1)).sum()
    return chi2.sf(statistic, len(expected) - 1)
