"""Tables that are not one country's trips: a health table, and trips between two countries.

Each is released through the Python function and through the command line. Noise is seeded
wherever numbers are looked at, so that nothing here depends on luck.
"""

import json
from itertools import product

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


def health_by_function(folder, source):
    return inftda.release(
        columns(HEALTH, CASES), axis=HEALTH, order=HEALTH_ORDER,
        out=folder / "release", source=source, **BUDGET,
    )  # fmt: skip


def health_by_command(folder, source):
    arguments = ["release", str(write_csv(folder / "cases.csv", columns(HEALTH, CASES)))]
    for name, hierarchy in HEALTH.items():
        arguments += ["--axis", f"{name}={write_csv(folder / f'{name}.csv', hierarchy)}"]
    arguments += ["--order", ",".join(HEALTH_ORDER)]
    return by_command(arguments, folder, source)


def trips_by_function(folder, source):
    return inftda.release(
        columns(("origin", "destination"), TRIPS), axis={"origin": ITALY, "destination": GERMANY},
        out=folder / "release", source=source, **BUDGET,
    )  # fmt: skip


def trips_by_command(folder, source):
    table = columns(("origin", "destination"), TRIPS)
    arguments = ["release", str(write_csv(folder / "trips.csv", table))]
    arguments += ["--axis", f"origin={write_csv(folder / 'italy.csv', ITALY)}"]
    arguments += ["--axis", f"destination={write_csv(folder / 'germany.csv', GERMANY)}"]
    return by_command(arguments, folder, source)


def by_command(arguments, folder, source):
    arguments += ["--epsilon", "1", "--delta", "1e-6", "--out", str(folder / "release"), "--quiet"]
    if source is not None:
        arguments += ["--not-private-seed", str(source.seed)]
    assert run(arguments) == 0
    return inftda.open_release(folder / "release")


class Seeded(SeededSource):
    """A seeded source that remembers its seed, for the command line."""

    def __init__(self, seed):
        super().__init__(seed)
        self.seed = seed


WAYS = {
    "health, function": (health_by_function, CASES),
    "health, command": (health_by_command, CASES),
    "trips, function": (trips_by_function, TRIPS),
    "trips, command": (trips_by_command, TRIPS),
}


@pytest.fixture(params=WAYS, ids=lambda name: name.replace(", ", "-"))
def released(request, tmp_path):
    way, cells = WAYS[request.param]
    return way(tmp_path, Seeded(11)), cells


def level_names(release):
    """Every way to choose a level on every axis."""
    axes = release.tree.axes
    choices = [["all", *axis.hierarchy.level_names] for axis in axes]
    for chosen in product(*choices):
        yield dict(zip((axis.name for axis in axes), chosen, strict=True))


def sums(release, levels):
    """Released flows by their codes at these levels; an axis at `all` is not shown."""
    shown = [name for name, level in levels.items() if level != "all"]
    rows = release.flows(level=levels).to_pylist()
    return {tuple(row[name] for name in shown): row["flow"] for row in rows}


def test_flows_are_positive_whole_numbers_with_the_true_total(released):
    release, cells = released
    finest = release.flows().to_pylist()
    assert all(isinstance(row["flow"], int) and row["flow"] > 0 for row in finest)
    assert release.total == sum(row["flow"] for row in finest) == sum(cells.values())


@pytest.mark.slow
def test_every_level_of_every_axis_is_the_sum_of_the_finest_cells(released):
    """Recomputed by hand from the finest cells and the areas, without the code under test."""
    release, _ = released
    paths = {}
    for axis in release.tree.axes:
        table = axis.hierarchy.to_table().to_pylist()
        paths[axis.name] = {row[axis.hierarchy.level_names[-1]]: row for row in table}
    finest = release.flows().to_pylist()
    for levels in level_names(release):
        expected = {}
        for row in finest:
            key = tuple(
                paths[name][row[name]][level] for name, level in levels.items() if level != "all"
            )
            expected[key] = expected.get(key, 0) + row["flow"]
        assert sums(release, levels) == expected, levels


@pytest.mark.slow
def test_the_error_of_every_measured_level_is_within_its_guarantee(released):
    release, cells = released
    from inftda.privacy.bounds import guaranteed_errors  # noqa: PLC0415 - compiled kernels

    bounds = guaranteed_errors(release.tree, release.manifest.plan, beta=1e-9)
    axes = release.tree.axes
    for level in release.tree.levels:
        names = {a.name: a.hierarchy.level_name(d) for a, d in zip(axes, level.depths, strict=True)}
        true = {}
        for codes, count in cells.items():
            key = tuple(
                ancestor(axis, code, depth)
                for axis, code, depth in zip(axes, codes, level.depths, strict=True)
                if depth
            )
            true[key] = true.get(key, 0) + count
        made = sums(release, names)
        worst = max(abs(true.get(key, 0) - made.get(key, 0)) for key in {*true, *made})
        assert worst <= bounds[level.index], level.name


def ancestor(axis, code, depth):
    row = axis.hierarchy.find(axis.hierarchy.depth, [code])[0]
    return axis.hierarchy.codes(depth)[
        int(axis.hierarchy.ancestor(axis.hierarchy.depth, depth)[row])
    ].as_py()


@pytest.mark.parametrize("table", ["health", "trips"])
def test_function_and_command_make_the_same_release_of_the_same_seed(table, tmp_path):
    made = []
    for way in ("function", "command"):
        folder = tmp_path / way
        folder.mkdir()
        made.append(WAYS[f"{table}, {way}"][0](folder, Seeded(5)))
    assert made[0].flows().to_pylist() == made[1].flows().to_pylist()
    assert made[0].manifest.guarantee == made[1].manifest.guarantee
    assert made[0].tree.order == made[1].tree.order


@pytest.mark.parametrize("name", WAYS)
def test_a_private_release_verifies(name, tmp_path, capsys):
    WAYS[name][0](tmp_path, None)
    assert run(["verify", str(tmp_path / "release")]) == 0
    assert "is what it says it is" in capsys.readouterr().out


def test_the_order_decides_which_levels_are_measured(tmp_path):
    health = health_by_function(tmp_path, Seeded(1))
    assert [level.name for level in health.tree.levels] == [
        "all \N{MULTIPLICATION SIGN} all \N{MULTIPLICATION SIGN} all",
        "chapter \N{MULTIPLICATION SIGN} all \N{MULTIPLICATION SIGN} all",
        "disease \N{MULTIPLICATION SIGN} all \N{MULTIPLICATION SIGN} all",
        "disease \N{MULTIPLICATION SIGN} sex \N{MULTIPLICATION SIGN} all",
        "disease \N{MULTIPLICATION SIGN} sex \N{MULTIPLICATION SIGN} age",
    ]


def test_the_shallower_country_is_used_up_and_the_other_goes_on(tmp_path):
    trips = trips_by_function(tmp_path, Seeded(1))
    assert [level.name for level in trips.tree.levels] == [
        "all > all",
        "all > state",
        "region > state",
        "region > city",
        "province > city",
        "municipality > city",
    ]


def test_other_tables_are_asked_by_axis_on_the_command_line(tmp_path, capsys):
    made = health_by_function(tmp_path, Seeded(3))
    folder = str(tmp_path / "release")
    assert run(["query", folder, "--level", "disease=chapter", "--format", "json"]) == 0
    assert (
        json.loads(capsys.readouterr().out) == made.flows(level={"disease": "chapter"}).to_pylist()
    )
    asked = ["--where", "disease=J45", "--where", "disease=I21"]
    others = [axis.name for axis in made.tree.axes if axis.name != "disease"]
    summed_up = [word for name in others for word in ("--level", f"{name}=all")]
    assert run(["query", folder, *asked, *summed_up, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["disease"] for row in rows] == ["I21", "J45"]


def test_levels_of_two_countries_go_by_their_own_names_on_the_command_line(tmp_path, capsys):
    made = trips_by_function(tmp_path, Seeded(3))
    asked = ["--origin-level", "province", "--destination-level", "state", "--from", "Veneto"]
    assert run(["query", str(tmp_path / "release"), *asked, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows == made.flows("province", "state", from_="Veneto").to_pylist()
    assert {row["origin"] for row in rows} <= {"Padova", "Verona"}


def test_an_axis_named_twice_is_refused(tmp_path, capsys):
    table = write_csv(tmp_path / "cases.csv", columns(HEALTH, CASES))
    sexes = write_csv(tmp_path / "sexes.csv", SEXES)
    twice = ["--axis", f"sex={sexes}", "--axis", f"sex={sexes}"]
    budget = ["--epsilon", "1", "--delta", "1e-6", "--out", str(tmp_path / "release")]
    assert run(["release", str(table), *twice, *budget]) == 2
    assert "names 'sex' twice" in capsys.readouterr().err
