"""Exports of an estimate: what its folder says of it, and of intervals."""

import json

import pytest

import inftda
from inftda.exports.contents import INTERVALS
from inftda.exports.export import KINDS


@pytest.fixture(scope="module")
def estimated(country, tmp_path_factory):
    """Folder of an estimate."""
    out = tmp_path_factory.mktemp("estimates") / "estimate"
    inftda.estimate(country.release, out=out)
    return out


def package_of(folder):
    return json.loads((folder / "datapackage.json").read_text())


@pytest.mark.parametrize("kind", KINDS)
def test_an_estimate_is_exported_as_a_release_is(exported, estimated, kind):
    package = package_of(exported(kind, source=estimated))
    assert package["title"] == "Estimated flows"
    assert package["estimate"]["format"] == "inftda-estimate/1"
    assert package["description"].startswith("NOT PRIVATE")  # it was made with a seed


def test_levels_without_intervals_say_so(exported, estimated):
    """Intervals cannot be summed up: an estimate has them at its finest level only."""
    folder = exported("csv", source=estimated)
    said = {one["name"]: one.get("intervals") for one in package_of(folder)["resources"]}
    assert said["flows-1-region"] is None
    assert said["flows-3-municipality"] == INTERVALS
    header = (folder / "flows-3-municipality.csv").read_text().splitlines()[0]
    assert header == '"origin","destination","estimate","low","high","grade"'
