"""`inftda plan` and `preview`: what is decided before any data is touched."""

import json
from fractions import Fraction

import numpy as np
import pytest

from inftda.evaluation.outlook import balanced_areas
from inftda.hierarchy import Hierarchy
from inftda.noise.quantiles import half_width
from inftda.privacy.bounds import guaranteed_errors
from inftda.privacy.plan import Plan, make_plan
from inftda.privacy.unit import Unit
from inftda.tree import Tree

BUDGET = "--epsilon 1 --delta 1e-8"
PLAN = f"plan --areas AREAS {BUDGET}"


@pytest.fixture
def planned(done):
    """The plan as one object."""
    return lambda line: json.loads(done(f"{line} --json"))


def without_errors(stated):
    """What a release states as well."""
    for part in (*stated["levels"], *stated["tables"]):
        part.pop("max_error", None)
        part.pop("half_width", None)
    return stated


def test_json_has_what_is_promised_of_each_level_and_of_the_whole(planned, country):
    stated = planned(PLAN)
    tree = Tree.destination_first(Hierarchy.read(country.areas))
    plan = make_plan(tree, Unit(), epsilon=1, delta=1e-8, across=0.08)
    errors = guaranteed_errors(tree, plan)
    assert [level["max_error"] for level in stated["levels"]] == [
        errors[level.index] for level in plan.levels
    ]
    for table in stated["tables"]:
        is_one_way = sum(depth > 0 for depth in table["depths"]) == 1
        assert table["half_width"] == (half_width(table["sigma"]) if is_one_way else None)
    spent = [Fraction(part["rho"]) for part in (*stated["levels"], *stated["tables"])]
    assert sum(spent) == Fraction(stated["rho"])
    assert Plan.from_dict(without_errors(stated)) == plan, "what is printed can be checked again"


def test_the_scales_of_italy_are_the_known_ones(planned):
    """T = 6, epsilon = 1, delta = 1e-8, one trip, substitute, uniform split."""
    found = {}
    for accountant in ("zcdp", "auto"):
        line = f"plan --sizes 20,110,8092 {BUDGET} --across 0 --accountant {accountant}"
        levels = planned(line)["levels"]
        (found[accountant],) = {level["sigma"] for level in levels}
    assert round(found["zcdp"], 1) == 18.7
    assert round(found["auto"], 2) == 17.67
    assert [level["cells"] for level in levels] == [
        20, 400, 20 * 110, 110**2, 110 * 8092, 8092**2,
    ]  # fmt: skip


@pytest.mark.parametrize("sizes", [[1, 2], [20, 110, 8092], [2, 3, 5, 7, 11]])
def test_stand_in_areas_have_the_sizes_and_are_split_evenly(sizes):
    areas = Hierarchy.read(balanced_areas(sizes))
    assert [areas.n_areas(level) for level in range(1, len(sizes) + 1)] == sizes
    for level in range(len(sizes)):
        n_children = np.diff(areas.child_offsets(level))
        assert max(n_children) - min(n_children) <= 1


def test_the_table_shows_level_cells_sigma_and_error(done, planned):
    lines = done(PLAN).splitlines()
    for level in planned(PLAN)["levels"]:
        (line,) = [line for line in lines if line.startswith(f"{level['name']}  ")]
        assert line.split()[-3:] == [
            f"{level['cells']:,}", f"{level['sigma']:,.2f}", f"{level['max_error']:,}",
        ]  # fmt: skip
    assert any(line.startswith("all > all") and line.endswith("public") for line in lines)


def test_levels_lost_in_noise_are_marked_if_the_total_is_known(done):
    assert "exceeds" not in done(PLAN)
    marked = done(f"{PLAN} --total 5000").splitlines()
    lost = [line for line in marked if "exceeds" in line]
    # 5,000 trips over 24 x 24 cells are 9 each; over 3 x 3 they are 556.
    assert any(line.startswith("municipality > municipality") for line in lost)
    assert not any(line.startswith("region > region") for line in lost)
    assert "8.68" in lost[-1]
    assert "do not use" in done(f"{PLAN} --total 50")


@pytest.mark.parametrize(
    ("beta", "said"), [("0.05", "95%"), ("0.001", "99.9%"), ("1e-9", "99.9999999%")]
)
def test_the_odds_that_errors_hold_are_not_rounded(done, beta, said):
    assert f"probability {said}" in done(f"plan --sizes 5,50 {BUDGET} --beta {beta}")


def test_other_tables_are_planned_likewise(planned, tmp_path):
    (tmp_path / "d.csv").write_text("chapter,disease\nI,flu\nI,cold\nII,gout\n")
    (tmp_path / "s.csv").write_text("sex\nf\nm\n")
    axes = "--axis disease=d.csv --axis sex=s.csv --order disease,sex,disease"
    stated = planned(f"plan {axes} --rho 1/3 --split 1,1,1,5 --trips 3 --at-most")
    assert [level["cells"] for level in stated["levels"]] == [1, 2, 4, 6]
    assert (stated["trips"], stated["exactly"]) == (3, False)
    costs = [Fraction(level["rho"]) for level in stated["levels"]]
    assert float(costs[-1] / costs[0]) == pytest.approx(5, rel=1e-8)


def test_the_plan_is_what_a_release_then_does(planned):
    options = f"--areas AREAS {BUDGET} --order origin,destination --split 1,1,1,1,2,3"
    released = planned(f"release FLOWS {options} --out out")["guarantee"]
    assert released == without_errors(planned(f"plan {options}"))


def test_it_is_said_why_nothing_is_measured_across(done, country):
    assert "municipality > all" in done(PLAN)
    assert "below 1" in done("plan --areas AREAS --epsilon 300 --delta 1e-8")
    assert "one axis" in done(f"plan {BUDGET}", "--axis", f"area={country.areas}")


# --- Preview


PREVIEW = "preview --areas AREAS --epsilon 1,5 --delta 1e-6 --runs 1"


def test_settings_are_tried_out_and_said_in_words(done, tmp_path):
    said = done(f"{PREVIEW} --stand-in FLOWS --html page.html")
    assert said.count("In words:") == 2
    assert "municipality > municipality" in said
    assert "origin municipality" in said
    assert "CONFIDENTIAL" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_confidential_stand_in_is_marked(done, tmp_path):
    told = done(f"{PREVIEW} --stand-in FLOWS --allow-confidential --html page.html")
    assert told.startswith("CONFIDENTIAL")
    page = tmp_path / "page.html"
    assert page.read_text().count("CONFIDENTIAL: this page") == 2
    assert page.stat().st_mode & 0o077 == 0
