"""Every planted fault is caught. A fault that is not is a failure of the audit."""

import numpy as np
import pytest

import inftda
from audit import cases, faults
from audit.boxes import Copies, Runs, seeded
from audit.evidence import audit
from audit.independence import LARGEST, in_tree_order, likeness
from audit.pairs import PAIRS, SHORT_ORIGINS
from inftda.areas.build import build_tree
from inftda.errors import BudgetError, ReleaseError
from inftda.privacy import guarantee as promise
from inftda.privacy import noise_plan as plan
from inftda.privacy.accounting import noise_at
from inftda.privacy.unit import Unit
from inftda.publication.verify import verify

#: A scale, a sensitivity and a generator: what shows soonest that the audit still sees faults.
SOONEST = {
    "noise scale 30 % too small, one trip moved",
    "sensitivity sqrt(2m) at all levels",
    "generator that repeats itself",
}


def tiered(planted):
    tier = pytest.mark.slow if planted.name in SOONEST else pytest.mark.nightly
    return pytest.param(planted, id=planted.name, marks=tier)


@pytest.mark.parametrize("planted", [*map(tiered, cases.PLANTED + cases.PLANTED_SLOW)])
def test_a_planted_fault_is_caught(planted):
    with planted.plant():
        finding = audit(planted.box(seeded), planted.n)
    assert finding.is_caught, finding


@pytest.mark.nightly
@pytest.mark.parametrize(
    "planted", [*cases.PLANTED_ACROSS, *cases.PLANTED_MEASURED], ids=lambda planted: planted.name
)
def test_a_fault_in_what_is_measured_is_caught_and_nothing_else(planted):
    assert not audit(planted.box(seeded), planted.n).is_caught
    with planted.plant():
        finding = audit(planted.box(seeded), planted.n)
    assert finding.is_caught, finding


@pytest.mark.nightly
def test_totals_that_are_drawn_twice_are_caught_by_their_disagreement():
    """At most half of the budget goes to totals, so that twice of it is hard to see in epsilon.

    But where sums agree with their measurement, they no longer do if it is another one.
    """
    box = Runs(SHORT_ORIGINS, cases.SMALL | cases.ACROSS, seeded)
    sound = off_by(box.draw(300, 0).left)
    with faults.totals_drawn_twice():
        faulty = off_by(box.draw(300, 0).left)
    # Of 1,500 differences each: either ratio is right within a tenth, but for odds below 1e-6.
    assert sound < 0.5
    assert faulty > 1.8


def off_by(seen):
    """Mean square of released less measured totals of origins, over their variance."""
    shape = SHORT_ORIGINS.left.shape
    flows, rest = np.split(seen, [SHORT_ORIGINS.n_cells], axis=1)
    measured = rest[:, : shape[0]]  # whether each was drawn comes after
    error = flows.reshape(-1, *shape).sum(axis=2) - measured
    return np.mean(error**2) / np.mean((measured - SHORT_ORIGINS.left.sum(axis=1)) ** 2)


@pytest.mark.slow
def test_measurements_that_are_drawn_twice_are_caught_as_the_flows_do_not_follow(tmp_path):
    """Twice the budget is hard to see in epsilon; but then the flows are those of other noise."""
    table = PAIRS["both ends moved"].table(PAIRS["both ends moved"].left)
    areas = PAIRS["both ends moved"].origins
    options = {"cross_tables": 0, "allow_large_delta": True, **cases.ONE}
    inftda.release(table, areas, out=tmp_path / "sound", **options)
    verify(tmp_path / "sound")
    with faults.measurements_drawn_twice():
        inftda.release(table, areas, out=tmp_path / "faulty", **options)
    with pytest.raises(ReleaseError, match="flows do not follow from"):
        verify(tmp_path / "faulty")


@pytest.mark.nightly
def test_bits_that_blocks_of_work_share_are_caught():
    box = Copies(PAIRS["both ends moved"], cases.ONE)
    with faults.bits_shared_by_blocks():
        sample = box.draw(30_000, 0)
    assert likeness(in_tree_order(sample.left, 5)) > LARGEST


def test_a_plan_refuses_rho_divided_over_too_few_levels_before_any_audit(monkeypatch):
    # The audit has to look behind a check that catches this fault first.
    monkeypatch.setattr(promise, "noise_at", lambda rho, shares: noise_at(2 * rho, shares))
    with pytest.raises(BudgetError, match="the plan states delta"):
        plan.make_plan(build_tree({"area": ["0", "1"]}), Unit(), **cases.ONE, method="paper")
