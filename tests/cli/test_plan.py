"""`inftda plan` as it is typed: noise and guaranteed errors before any data is touched."""

import json
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from inftda.evaluation.outlook import balanced_areas
from inftda.hierarchy import Hierarchy
from inftda.privacy.bounds import guaranteed_errors
from inftda.privacy.plan import Plan, make_plan
from inftda.privacy.unit import Unit
from inftda.tree import Tree

BUDGET = ("--epsilon", 1, "--delta", 1e-8)


@pytest.fixture
def planned(cli):
    """The plan as one object."""

    def call(*arguments):
        done = cli("plan", *arguments, "--json")
        assert done.code == 0, done.err
        assert done.err == ""
        return json.loads(done.out)

    return call


def test_json_has_what_is_promised_of_each_level_and_of_the_whole(planned, country):
    stated = planned("--areas", country.areas, *BUDGET)
    assert {"epsilon", "delta", "rho", "accountant", "levels"} <= set(stated)
    tree = Tree.destination_first(Hierarchy.read(country.areas))
    plan = make_plan(tree, Unit(), epsilon=1, delta=1e-8, across=0.08)
    assert (stated["epsilon"], stated["delta"]) == (1, 1e-8)
    assert stated["accountant"] == plan.accountant
    assert Fraction(stated["rho"]) == plan.rho
    errors = guaranteed_errors(tree, plan)
    assert len(stated["levels"]) == 6
    for said, level in zip(stated["levels"], plan.levels, strict=True):
        assert {"name", "cells", "sensitivity", "sigma2", "rho", "max_error"} <= set(said)
        assert said["name"] == level.name
        assert said["cells"] == level.cells
        assert said["sensitivity"] == pytest.approx(sqrt(2))
        assert Fraction(said["sigma2"]) == level.sigma2, "an exact fraction"
        assert Fraction(said["rho"]) == level.rho
        assert said["max_error"] == errors[level.index]
        assert isinstance(said["max_error"], int)
    spent = [Fraction(part["rho"]) for part in (*stated["levels"], *stated["tables"])]
    assert sum(spent) == Fraction(stated["rho"])
    for said in (*stated["levels"], *stated["tables"]):
        said.pop("max_error", None)
        said.pop("half_width", None)
    assert Plan.from_dict(stated) == plan, "what is printed can be checked again"


def test_the_scales_of_italy_are_the_known_ones(planned):
    """T = 6, epsilon = 1, delta = 1e-8, one trip, substitute, uniform split."""
    found = {}
    for accountant in ("zcdp", "auto"):
        options = ("--sizes", "20,110,8092", *BUDGET, "--across", 0, "--accountant", accountant)
        levels = planned(*options)["levels"]
        assert len(levels) == 6
        (found[accountant],) = {level["sigma"] for level in levels}
    assert round(found["zcdp"], 1) == 18.7
    assert round(found["auto"], 2) == 17.67


def test_sizes_stand_for_areas(planned):
    stated = planned("--sizes", "20,110,8092", *BUDGET)
    assert [level["cells"] for level in stated["levels"]] == [
        20, 400, 20 * 110, 110**2, 110 * 8092, 8092**2,
    ]  # fmt: skip


def test_a_step_that_splits_nothing_costs_nothing(planned, cli):
    with_one, without = (
        planned("--sizes", sizes, *BUDGET)["levels"] for sizes in ("5,5,40", "5,40")
    )
    assert [level["sigma2"] for level in with_one] == [level["sigma2"] for level in without]
    shown = cli("plan", "--sizes", "5,5,40", *BUDGET).out
    assert shown.count("splits nothing, costs nothing") == 2


@pytest.mark.parametrize("sizes", ["1,2", "3,3,7", "20,110,8092", "7", "2,3,5,7,11"])
def test_stand_in_areas_have_the_sizes_and_are_split_evenly(sizes):
    numbers = [int(size) for size in sizes.split(",")]
    areas = Hierarchy.read(balanced_areas(numbers))
    assert [areas.n_areas(level) for level in range(1, len(numbers) + 1)] == numbers
    for level in range(len(numbers)):
        n_children = np.diff(areas.child_offsets(level))
        assert max(n_children) - min(n_children) <= 1


@pytest.mark.parametrize("sizes", ["", "x", "5,2", "0,3", "5,,6", "-1,4", "1.5,3", "1,99999999999"])
def test_sizes_that_make_no_sense_are_refused(cli, sizes):
    done = cli("plan", "--sizes", sizes, *BUDGET)
    assert done.code == 2
    assert "--sizes" in done.err
    assert done.err.count("\n") == 1


def test_sizes_and_areas_are_not_both_given(cli, country):
    done = cli("plan", "--sizes", "3,9", "--areas", country.areas, *BUDGET)
    assert done.code == 2
    assert "give either sizes or files, not both" in done.err
    assert done.err.count("\n") == 1


def test_the_table_shows_level_cells_sigma_and_error(cli, country, planned):
    done = cli("plan", "--areas", country.areas, *BUDGET)
    assert done.code == 0
    assert "a person with exactly 1 trip may be replaced" in done.out
    assert "With probability 95% no cell is further off than stated." in done.out
    stated = planned("--areas", country.areas, *BUDGET)["levels"]
    lines = done.out.splitlines()
    for level in stated:
        (line,) = [line for line in lines if line.startswith(f"{level['name']}  ")]
        assert line.split()[-3:] == [
            f"{level['cells']:,}", f"{level['sigma']:,.2f}", f"{level['max_error']:,}",
        ]  # fmt: skip
    assert any(line.startswith("all > all") and line.endswith("public") for line in lines)


def test_levels_lost_in_noise_are_marked_if_the_total_is_known(cli, country):
    plain = cli("plan", "--areas", country.areas, *BUDGET).out
    assert "noise exceeds" not in plain
    marked = cli("plan", "--areas", country.areas, *BUDGET, "--total", 5_000).out
    lines = [line for line in marked.splitlines() if "noise exceeds the mean flow" in line]
    # 5,000 trips over 24 x 24 cells are 9 each; over 3 x 3 they are 556.
    assert any(line.startswith("municipality > municipality") for line in lines)
    assert not any(line.startswith("region > region") for line in lines)
    assert "mean flow of 8.68" in lines[-1]
    drowned = cli("plan", "--areas", country.areas, *BUDGET, "--total", 50).out
    assert "do not use this level: most of its pairs are noise" in drowned


def test_errors_grow_with_the_odds_that_they_hold(planned, country):
    sure, usual = (
        planned("--areas", country.areas, *BUDGET, "--beta", beta)["levels"]
        for beta in (0.001, 0.05)
    )
    for a, b in zip(sure, usual, strict=True):
        assert a["max_error"] > b["max_error"]


@pytest.mark.parametrize(
    ("beta", "said"),
    [("0.05", "95%"), ("0.001", "99.9%"), ("0.07", "93%"), ("0.5", "50%"), ("1e-9", "99.9999999%")],
)
def test_the_odds_that_errors_hold_are_not_rounded(cli, beta, said):
    done = cli("plan", "--sizes", "5,50", *BUDGET, "--beta", beta)
    assert f"With probability {said} no cell is further off than stated." in done.out


@pytest.mark.parametrize(
    ("arguments", "unit", "has_root"),
    [
        ((), Unit(), False),
        (("--trips", 3), Unit(trips=3), False),
        (("--trips", 3, "--at-most"), Unit(trips=3, exactly=False), True),
        (("--neighbours", "add-remove"), Unit("add-remove"), True),
        (
            ("--neighbours", "add-remove", "--trips", 2, "--distinct"),
            Unit("add-remove", 2, distinct=True),
            True,
        ),
    ],
)
def test_units_have_their_own_sensitivities(planned, country, arguments, unit, has_root):
    stated = planned("--areas", country.areas, *BUDGET, *arguments)
    tree = Tree.destination_first(Hierarchy.read(country.areas))
    squared = {level.index: unit.squared_sensitivity(level) for level in tree.levels}
    for level in stated["levels"]:
        assert level["squared_sensitivity"] == squared[level["index"]]
        assert level["sensitivity"] == pytest.approx(sqrt(squared[level["index"]]))
    assert (stated["levels"][0]["index"] == 0) is has_root


def test_rho_and_split_are_taken_as_they_are_written(planned, country):
    stated = planned("--areas", country.areas, "--rho", "1/3", "--split", "1,1,1,1,1,5")
    assert Fraction(stated["rho"]) <= Fraction(1, 3)
    assert stated["epsilon"] is None
    costs = [Fraction(level["rho"]) for level in stated["levels"]]
    assert float(costs[-1] / costs[0]) == pytest.approx(5, rel=1e-8)


def test_other_tables_are_planned_likewise(planned, tmp_path):
    (tmp_path / "d.csv").write_text("chapter,disease\nI,flu\nI,cold\nII,gout\n")
    (tmp_path / "s.csv").write_text("sex\nf\nm\n")
    axes = ("--axis", f"disease={tmp_path / 'd.csv'}", "--axis", f"sex={tmp_path / 's.csv'}")
    stated = planned(*axes, "--order", "disease,sex,disease", *BUDGET)
    assert [level["cells"] for level in stated["levels"]] == [2, 4, 6]


def test_the_plan_is_what_a_release_then_does(cli, country, planned, tmp_path):
    options = (
        "--areas",
        country.areas,
        *BUDGET,
        "--order",
        "origin,destination",
        "--split",
        "1,1,1,1,2,3",
    )
    options += ("--accountant", "zcdp")
    stated = planned(*options)
    done = cli("release", country.flows, *options, "--out", tmp_path / "out", "--json")
    released = json.loads(done.out)["guarantee"]
    for part in (*stated["levels"], *stated["tables"]):
        part.pop("max_error", None)
        part.pop("half_width", None)
    assert released == stated


def test_no_data_is_needed_and_nothing_is_written(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli("plan", "--sizes", "5,50", *BUDGET).code == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (BUDGET, "give areas"),
        (("--sizes", "5,50"), "epsilon"),
        (("--sizes", "5,50", "--epsilon", 1), "delta"),
        (("--sizes", "5,50", *BUDGET, "--beta", 0), "beta"),
        (("--sizes", "5,50", *BUDGET, "--beta", 1), "beta"),
        (("--sizes", "5,50", *BUDGET, "--total", -5), "--total"),
        (("--sizes", "5,50", *BUDGET, "--accountant", "magic"), "accountant"),
        (("--areas", "nothing.csv", *BUDGET), "nothing.csv"),
    ],
)
def test_wrong_use_is_one_clear_line(cli, arguments, says):
    done = cli("plan", *arguments)
    assert done.code == 2
    assert says in done.err
    assert done.err.count("\n") == 1
    assert done.out == ""
