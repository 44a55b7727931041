"""Both engines err alike: the distribution of the error at every level is the same.

What is compared is the sum of absolute errors of a level, one number for each release, so the
numbers are independent and the two-sample Kolmogorov-Smirnov test is exact. Releases are
seeded (the engines draw different noise from equal seeds), so the outcome never changes.
"""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'inftda[spark]'")

from scipy.stats import ks_2samp

from inftda.counts import Counts
from inftda.engines.local import LocalEngine
from inftda.engines.spark import SparkEngine
from inftda.engines.spark.matching import Ascent
from inftda.experiments.country import make_country
from inftda.hierarchy import Hierarchy
from inftda.mechanisms.base import Setting
from inftda.mechanisms.catalogue import mechanism_named
from inftda.noise.discrete_gaussian import DiscreteGaussian
from inftda.noise.entropy import SeededSource
from inftda.privacy.plan import make_plan
from inftda.privacy.unit import PrivacyUnit
from inftda.reading import TableSpec, read_leaves
from inftda.tree import Tree

P_THRESHOLD = 1e-7
"""Odds of a false alarm at one level, were the seeds not fixed."""

RHO = Fraction(1, 50)
"""About epsilon 1 at delta 1e-8."""


class Errors:
    """Sums of absolute errors by level, of releases by either engine."""

    def __init__(self, areas, table):
        self.tree = Tree.destination_first(areas)
        self.table = table
        self.axes = [("origin", areas), ("destination", areas)]
        leaves = read_leaves(table, TableSpec(axes=self.axes))
        self.counts = Counts.from_leaves(self.tree, leaves.areas, leaves.counts)
        self.ascents = [Ascent(level) for level in self.tree.splitting_levels]
        self.mechanism = mechanism_named("inftda")

    def local(self, n, *, rho=RHO):
        """float64[n, levels]."""
        found = []
        for seed in range(n):
            _, setting = self._setting(rho, seed)
            blocks = list(self.mechanism.run(self.counts, setting))
            areas = tuple(
                np.concatenate([block.areas[axis] for block in blocks]) for axis in (0, 1)
            )
            found.append(self._of(areas, np.concatenate([block.value for block in blocks])))
        return np.array(found)

    def spark(self, session, n, folder, *, groups):
        """float64[n, levels]; the table is read once."""
        found = []
        with SparkEngine(session, groups=groups).started() as started:
            leaves = started.read(
                self.table, self.axes, count="auto", person=None, unit=PrivacyUnit(),
                unplaceable="error", random_source=SeededSource(0),
            )  # fmt: skip
            for seed in range(n):
                plan, setting = self._setting(RHO, seed)
                out = Path(folder) / str(seed)
                started.write(
                    leaves, out, tree=self.tree, plan=plan, mechanism=self.mechanism,
                    setting=setting,
                )  # fmt: skip
                flows = pq.read_table(out)
                areas = tuple(
                    hierarchy.find(hierarchy.depth, flows[name].to_pylist())
                    for name, hierarchy in self.axes
                )
                found.append(self._of(areas, flows["flow"].to_numpy()))
        return np.array(found)

    def _setting(self, rho, seed):
        plan = make_plan(self.tree, PrivacyUnit(), rho=rho)
        source = SeededSource(seed)
        return plan, Setting(plan.spending(), DiscreteGaussian, source, LocalEngine())

    def _of(self, areas, value):
        """Sum of absolute errors at each level."""
        true_areas, true_value = self.counts.leaves
        both = tuple(np.concatenate(pair) for pair in zip(areas, true_areas, strict=True))
        difference = np.concatenate([value, -true_value])
        found = []
        for ascent in self.ascents:
            origin, destination = ascent(both)
            node = origin.astype(np.int64) * (1 << 32) + destination
            _, place = np.unique(node, return_inverse=True)
            found.append(np.abs(np.bincount(place, difference)).sum())
        return found


def p_values(one, other):
    return [ks_2samp(one[:, level], other[:, level]).pvalue for level in range(one.shape[1])]


def test_both_engines_err_alike_at_every_level(spark, tmp_path):
    country = make_country((3, 6, 40), 20_000, seed=3)
    errors = Errors(country.areas, country.flows())
    cluster = errors.spark(spark, 8, tmp_path, groups=4)
    assert min(p_values(cluster, errors.local(150))) > P_THRESHOLD
    # The test sees noise that is 1.3 times too small or too large, at the level with many nodes.
    for wrong in (RHO * Fraction(169, 100), RHO * Fraction(100, 169)):
        assert p_values(cluster, errors.local(150, rho=wrong))[-1] < P_THRESHOLD


BELGIUM = Path(__file__).parents[3] / "shared" / "data" / "belgium_2011"


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.skipif(not BELGIUM.is_dir(), reason="the public data sets are not beside the checkout")
def test_both_engines_err_alike_on_belgian_commuters(spark, tmp_path):
    errors = Errors(Hierarchy.read(BELGIUM / "areas.csv"), pq.read_table(BELGIUM / "flows.parquet"))
    cluster = errors.spark(spark, 20, tmp_path, groups=8)
    local = errors.local(200)
    for level, p in zip(errors.tree.splitting_levels, p_values(cluster, local), strict=True):
        print(f"{level.name}: p = {p:.3g}")  # noqa: T201 - for the record, with -s
    assert min(p_values(cluster, local)) > P_THRESHOLD
    for wrong in (RHO * Fraction(169, 100), RHO * Fraction(100, 169)):
        assert max(p_values(cluster, errors.local(200, rho=wrong))[-4:]) < P_THRESHOLD
