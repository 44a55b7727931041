"""How the published figures were made: reproduced to the digit, and out of reach for a release."""

import ast
import inspect
from fractions import Fraction
from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest
from tiny_experiment import write_country

import inftda
from inftda.engines.local import LocalEngine
from inftda.errors import InftdaError
from inftda.hierarchy import Hierarchy
from inftda.lab.experiments import reproduction
from inftda.lab.experiments.reproduction import PUBLISHED, published_run
from inftda.mechanisms.base import Setting
from inftda.mechanisms.catalogue import mechanism_named, mechanism_names
from inftda.noise.discrete_gaussian import DiscreteGaussian
from inftda.noise.entropy import SeededSource
from inftda.privacy.unit import PrivacyUnit
from inftda.publish import release
from inftda.tree import Tree
from inftda.truth import Truth

#: Three levels that all split: T = 6, as in the table of scales.
AREAS = Hierarchy.read(
    {"a": list("00001111"), "b": [str(i // 2) for i in range(8)], "c": [f"c{i}" for i in range(8)]}
)
TREE = Tree.destination_first(AREAS)
TOP_DOWN = ["inftda", "tda-l2", "tda-linf", "tda-l2-blackbox", "tda-linf-blackbox"]
UNPUBLISHED = ["inftda-descending", "vanilla-gauss-clamped"]


def counts_of(value):
    places = np.arange(8, dtype=np.int32)
    return Truth.from_leaves(TREE, (places, places), np.full(8, value, np.int64))


def run(name, *, epsilon, delta=1e-8, counts=None):
    """A published run; gives the noise scales that were asked for, and the flows."""
    scales = []

    def make_sampler(sigma2):
        scales.append(sigma2)
        return DiscreteGaussian(sigma2)

    mechanism = mechanism_named(name)
    setting = Setting(
        # What a release would spend; a published run must not touch it.
        spending=None,
        make_sampler=make_sampler,
        source=SeededSource(1),
        engine=LocalEngine(1),
    )
    blocks = list(
        published_run(mechanism, counts or counts_of(50), setting, epsilon=epsilon, delta=delta)
    )
    return scales, blocks


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [(name, 1) for name in TOP_DOWN] + [(name, e) for name in TOP_DOWN[:3] for e in (0.1, 10)],
)
def test_top_down_mechanisms_use_half_of_the_papers_budget(name, epsilon):
    """So that sigma is sqrt(2) times what the paper's accountant asks for, at every level."""
    scales, _ = run(name, epsilon=epsilon)
    assert len(scales) == 6
    for found in scales:
        rho = 2 * 6 / float(found)  # two cells change by one, at each of six levels, at half cost
        assert rho + 2 * sqrt(rho * log(1e8)) == pytest.approx(epsilon, rel=1e-8)


@pytest.mark.parametrize(("epsilon", "sigma"), [(0.1, 297.8), (1, 30.1), (10, 3.33)])
def test_the_noise_is_what_the_code_of_the_paper_was_seen_to_draw(epsilon, sigma):
    scales, _ = run("inftda", epsilon=epsilon)
    digits = 2 if epsilon == 10 else 1
    assert {round(sqrt(scale), digits) for scale in scales} == {sigma}


@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
def test_vanilla_gauss_used_the_whole_budget_on_the_leaves(epsilon):
    scales, _ = run("vanilla-gauss", epsilon=epsilon)
    assert len(scales) == 1
    rho = 1 / float(scales[0])  # two cells change by one
    assert rho + 2 * sqrt(rho * log(1e8)) == pytest.approx(epsilon, rel=1e-8)


@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
def test_the_stability_histogram_used_a_sensitivity_of_the_square_root_of_two(monkeypatch, epsilon):
    scales = []
    noise = Fraction(7, 2)

    class Fixed:
        def __init__(self, scale):
            scales.append(scale)

        def fill(self, out, stream):
            del stream
            out[:] = int(noise * reproduction.GRID)

    monkeypatch.setattr(reproduction, "DiscreteLaplace", Fixed)
    threshold = sqrt(2) + sqrt(2) / epsilon * log(1 / (2 * 1e-8))
    low, high = int(threshold - 3.5), int(threshold - 3.5) + 1
    _, blocks = run("stability-histogram", epsilon=epsilon, counts=counts_of(low))
    assert sum(len(block.value) for block in blocks) == 0
    _, blocks = run("stability-histogram", epsilon=epsilon, counts=counts_of(high))
    assert [block.value.tolist() for block in blocks] == [[round(high + 3.5)] * 8]
    for scale in scales:
        assert float(scale) / reproduction.GRID == pytest.approx(sqrt(2) / epsilon, rel=1e-12)


@pytest.mark.parametrize("name", ["inftda", "tda-l2", "vanilla-gauss", "stability-histogram"])
def test_a_published_run_gives_whole_flows_between_known_areas(name):
    _, blocks = run(name, epsilon=1, counts=counts_of(5_000))
    for block in blocks:
        assert block.value.dtype == np.int64
        assert all(((axis >= 0) & (axis < 8)).all() for axis in block.areas)
    if name in TOP_DOWN:
        assert sum(block.value.sum() for block in blocks) == 40_000


@pytest.mark.parametrize("name", UNPUBLISHED)
def test_nothing_was_published_for_our_own_mechanisms(name):
    with pytest.raises(InftdaError, match="nothing was published"):
        run(name, epsilon=1)


def test_every_mechanism_is_either_published_or_not():
    assert PUBLISHED | set(UNPUBLISHED) == set(mechanism_names())


# Out of reach


ROOT = Path(inftda.__file__).parent


def importers(module):
    """Modules of the package that import another one, anywhere in them."""
    found = set()
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                names.append(node.module or "")
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            if module in names:
                found.add(path.relative_to(ROOT).as_posix())
    return found


def test_only_experiments_know_of_the_published_settings():
    found = importers("inftda.lab.experiments.reproduction")
    assert "lab/experiments/runner.py" in found
    assert all(name.startswith("lab/experiments/") for name in found)
    users = importers("inftda.lab.experiments.runner") | importers("inftda.lab.experiments.spec")
    outside = {name for name in users if not name.startswith("lab/experiments/")}
    assert outside == {"lab/cli/experiment.py"}


def test_no_option_of_a_release_leads_to_them():
    from inftda.cli.release import command  # noqa: PLC0415

    for function in (release, command):
        for name, parameter in inspect.signature(function).parameters.items():
            assert "publish" not in name
            assert "setting" not in name
            assert parameter.default not in {"published", "reproduction"}


@pytest.mark.parametrize("name", ["published", "inftda-published", "reproduction", "published-run"])
def test_no_name_of_a_mechanism_leads_to_them(tmp_path, name):
    write_country(tmp_path)
    with pytest.raises(InftdaError, match="no mechanism"):
        release(
            tmp_path / "flows.parquet", tmp_path / "areas.csv", epsilon=1, delta=1e-8,
            mechanism=name,
        )  # fmt: skip


@pytest.mark.parametrize("name", mechanism_names())
def test_what_a_release_draws_is_what_it_promises(name):
    """Whatever the mechanism, its plan is verified for its tree, and says epsilon as asked."""
    plan = mechanism_named(name).plan(TREE, PrivacyUnit(), epsilon=1, delta=1e-8)
    plan.verify(TREE)
    assert (plan.epsilon, plan.delta) == (1, 1e-8)
