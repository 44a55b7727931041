"""What a release states about its levels."""

from inftda.pipeline import release
from inftda.privacy.bounds import error_bounds
from inftda.privacy.unit import Unit
from inftda.publication.summary import BETA, level_rows


def test_every_measured_level_has_its_noise_and_a_guaranteed_error(od):
    rows, plan = level_rows(od), od.manifest.plan
    bounds = {bound.index: bound.max_error for bound in error_bounds(od.tree, plan, BETA)}
    assert [(row.level.index, row.sigma) for row in rows] == [
        (level.index, level.sigma) for level in plan.levels
    ]
    assert [row.guaranteed for row in rows] == [bounds[row.level.index] for row in rows]
    assert rows[-1].n_published == od.manifest.n_flows


def test_a_total_with_noise_is_a_level_too():
    kinds = {"kind": ["a", "b", "c"]}
    unit = Unit(neighbours="add-remove")
    made = release(
        kinds | {"count": [30, 20, 3]}, axis={"kind": kinds}, epsilon=1, delta=1e-6, unit=unit
    )
    assert [row.level.index for row in level_rows(made)] == [0, 1]
    assert level_rows(made)[0].n_published == 1
