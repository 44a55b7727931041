"""The folder of an export: whole or not at all, and nothing is replaced that is not ours."""

import json

import pytest

import inftda
from inftda.exports.contents import INTERVALS
from inftda.exports.export import KINDS
from inftda.noise.bits import SeededSource
from inftda.pipeline import release


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


@pytest.mark.parametrize("kind", KINDS)
def test_an_estimate_is_exported_as_a_release_is(exported, estimated, kind):
    folder = exported(kind, source=estimated)
    package = json.loads((folder / "datapackage.json").read_text())
    assert package["title"] == "Estimated flows"
    assert package["estimate"]["format"] == "inftda-estimate/1"
    assert package["description"].startswith("NOT PRIVATE")  # it was made with a seed


def test_levels_without_intervals_say_so(exported, estimated):
    """Intervals cannot be summed up: an estimate has them at its finest level only."""
    folder = exported("csv", source=estimated)
    said = intervals_of(folder)
    assert said["flows-1-region"] is None
    assert said["flows-3-municipality"] == INTERVALS
    header = (folder / "flows-3-municipality.csv").read_text().splitlines()[0]
    assert header == '"origin","destination","estimate","low","high","grade"'
