"""Tables that are not one country's trips: a health table, and trips between two countries.

Each is released through the Python function and through the command line. Noise is seeded
wherever numbers are looked at, so that nothing here depends on luck.
"""

import json

import pytest

import inftda
from inftda.cli.main import run
from inftda.noise.bits import SeededSource

DISEASES = {
    "chapter": ["circulatory", "circulatory", "respiratory", "respiratory", "mental"],
    "disease": ["I10", "I21", "J18", "J45", "F32"],
}
SEXES = {"sex": ["female", "male"]}
AGES = {"age": ["0-17", "18-64", "65+"]}
HEALTH = {"disease": DISEASES, "sex": SEXES, "age": AGES}
HEALTH_ORDER = ("disease", "disease", "sex", "age")
#: Some cells are empty, one group has no cases at all.
CASES = {
    (disease, sex, age): 37 * i * j * k
    for i, disease in enumerate(DISEASES["disease"])
    for j, sex in enumerate(SEXES["sex"], start=1)
    for k, age in enumerate(AGES["age"])
}

ITALY = {
    "region": ["Veneto"] * 3 + ["Lombardia"] * 3,
    "province": ["Padova", "Padova", "Verona", "Milano", "Milano", "Como"],
    "municipality": ["PD1", "PD2", "VR1", "MI1", "MI2", "CO1"],
}
GERMANY = {"state": ["Bayern", "Bayern", "Hessen"], "city": ["M", "N", "F"]}
TRIPS = {
    (origin, destination): 91 * ((i + 2 * j) % 4)
    for i, origin in enumerate(ITALY["municipality"])
    for j, destination in enumerate(GERMANY["city"])
}
BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def columns(names, cells):
    """A table of counts as a mapping of columns; empty cells are left out, as in real tables."""
    rows = [(*codes, count) for codes, count in cells.items() if count]
    return dict(zip((*names, "count"), map(list, zip(*rows, strict=True)), strict=True))


def write_csv(path, table):
    lines = [table.keys(), *zip(*table.values(), strict=True)]
    path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines), encoding="utf-8")
    return path


TABLES = {
    "health": (HEALTH, CASES, HEALTH_ORDER),
    "trips": ({"origin": ITALY, "destination": GERMANY}, TRIPS, None),
}


def by_function(name, folder, seed=None):
    axes, cells, order = TABLES[name]
    source = None if seed is None else SeededSource(seed)
    return inftda.release(
        columns(axes, cells), axis=axes, order=order, out=folder / name, source=source, **BUDGET
    )


def by_command(name, folder, seed=None):
    axes, cells, order = TABLES[name]
    arguments = ["release", str(write_csv(folder / "cells.csv", columns(axes, cells)))]
    for axis, hierarchy in axes.items():
        arguments += ["--axis", f"{axis}={write_csv(folder / f'{axis}.csv', hierarchy)}"]
    arguments += ["--order", ",".join(order)] if order else []
    arguments += [] if seed is None else ["--not-private-seed", str(seed)]
    arguments += ["--epsilon", "1", "--delta", "1e-6", "--quiet", "--out", str(folder / "made")]
    assert run(arguments) == 0
    return inftda.open_release(folder / "made")


@pytest.mark.parametrize("name", TABLES)
def test_function_and_command_make_the_same_release_of_the_same_seed(name, tmp_path):
    one, other = (make(name, tmp_path, seed=5) for make in (by_function, by_command))
    assert one.flows().to_pylist() == other.flows().to_pylist()
    assert one.manifest == other.manifest


@pytest.mark.parametrize("name", TABLES)
def test_a_private_release_has_the_true_total_and_verifies(name, tmp_path):
    made = by_function(name, tmp_path)
    flows = made.flows()["flow"].to_pylist()
    assert min(flows) > 0
    assert sum(flows) == made.total == sum(TABLES[name][1].values())
    assert inftda.verify(tmp_path / name)


def test_the_order_decides_which_levels_are_measured(tmp_path):
    health = by_function("health", tmp_path, seed=1)
    assert [level.name.split(" \N{MULTIPLICATION SIGN} ") for level in health.tree.levels] == [
        ["all", "all", "all"],
        ["chapter", "all", "all"],
        ["disease", "all", "all"],
        ["disease", "sex", "all"],
        ["disease", "sex", "age"],
    ]
    # The shallower country is used up and the other goes on.
    assert [level.name for level in by_function("trips", tmp_path, seed=1).tree.levels] == [
        "all > all",
        "all > state",
        "region > state",
        "region > city",
        "province > city",
        "municipality > city",
    ]


@pytest.mark.parametrize(
    ("name", "asked", "options"),
    [
        ("health", "--level disease=chapter", {"level": {"disease": "chapter"}}),
        ("health", "--where disease=J45 --where disease=I21 --level sex=all --level age=all",
         {"where": {"disease": ["J45", "I21"]}, "level": {"sex": "all", "age": "all"}}),
        ("trips", "--origin-level province --destination-level state --from Veneto",
         {"origin_level": "province", "destination_level": "state", "from_": "Veneto"}),
    ],
)  # fmt: skip
def test_function_and_command_give_the_same_answer(tmp_path, capsys, name, asked, options):
    made = by_function(name, tmp_path, seed=3)
    assert run(["query", str(tmp_path / name), *asked.split(), "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows == made.flows(**options).to_pylist()
    assert rows
