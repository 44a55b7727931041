"""The folder of an export: whole or not at all, and nothing is replaced that is not ours."""

import json

import pytest

import inftda
from inftda.exports.contents import INTERVALS
from inftda.exports.export import KINDS
from inftda.noise.bits import SeededSource
from inftda.pipeline import release
from inftda.privacy.unit import Unit


@pytest.fixture(scope="module")
def measured(country):
    """A release with its measurements."""
    rows = country.release.flows().rename_columns(["origin", "destination", "count"])
    options = {"epsilon": 1, "delta": 1e-8, "source": SeededSource(1)}
    return release(rows, country.areas, **options)


@pytest.fixture(scope="module")
def estimated(measured, tmp_path_factory):
    """Folder of an estimate."""
    out = tmp_path_factory.mktemp("estimates") / "estimate"
    inftda.estimate(measured, out=out)
    return out


def intervals_of(folder):
    package = json.loads((folder / "datapackage.json").read_text())
    return {entry["name"]: entry.get("intervals") for entry in package["resources"]}


def test_a_release_with_measurements_has_measured_intervals(exported, measured):
    said = intervals_of(exported("csv", source=measured))
    assert said["flows-3-municipality"] == INTERVALS


@pytest.mark.parametrize("kind", KINDS)
def test_an_estimate_is_exported_as_a_release_is(exported, estimated, kind):
    folder = exported(kind, source=estimated)
    package = json.loads((folder / "datapackage.json").read_text())
    assert package["title"] == "Estimated flows"
    assert package["estimate"]["kind"] == "inftda-estimate"
    assert package["description"].startswith("NOT PRIVATE")  # it was made with a seed


def test_levels_without_intervals_say_so(exported, estimated):
    """Intervals cannot be summed up: an estimate has them at its finest level only."""
    folder = exported("csv", source=estimated)
    said = intervals_of(folder)
    assert said["flows-1-region"] is None
    assert said["flows-3-municipality"] == INTERVALS
    header = (folder / "flows-3-municipality.csv").read_text().splitlines()[0]
    assert header == '"origin","destination","estimate","low","high","grade"'


def test_levels_that_nothing_was_measured_at_have_intervals_all_the_same(exported):
    areas = {"region": list("nnss"), "town": list("abcd")}
    rows = {"origin": list("abcd"), "destination": list("bcda"), "hour": list("0101")}
    made = release(
        {name: cells * 30 for name, cells in rows.items()}, areas,
        axis={"hour": {"hour": list("01")}},
        order=["hour", "origin", "origin", "destination", "destination"],
        rho=5, cross_tables=0, source=SeededSource(1),
    )  # fmt: skip
    folder = exported("csv", source=made, centroids=None)
    package = json.loads((folder / "datapackage.json").read_text())
    files = [one for one in package["resources"] if one["path"].startswith("flows")]
    for one in files:
        header = (folder / one["path"]).read_text().partition("\n")[0]
        assert header == '"origin","destination","hour","flow","low","high","grade"'
        assert one["intervals"] == INTERVALS


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_release_is_exported_as_one(exported, kind, tmp_path):
    places = tmp_path / "places.csv"
    places.write_text("town,lon,lat\na,9,45\nb,10,45\n")
    rows = {"origin": ["a"], "destination": ["b"]}
    unit = {"unit": Unit(neighbours="add-remove")}
    for seed in range(100):  # until noise leaves nothing of one trip
        made = release(rows, {"town": ["a", "b"]}, rho=0.1, source=SeededSource(seed), **unit)
        if not made.total:
            break
    assert exported(kind, source=made, centroids=places)
