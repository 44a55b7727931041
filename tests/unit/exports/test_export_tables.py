"""CSV, R and OMX: tables as the libraries of their users open them."""

import json

import numpy as np
import pyarrow as pa
import pytest

from inftda.errors import InftdaError
from inftda.estimates.estimate import estimate
from inftda.noise.bits import SeededSource
from inftda.pipeline import release
from inftda.tree.hierarchy import Hierarchy

#: Libraries warn of each other, which is no concern of ours.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

LEVELS = ("region", "province", "municipality")


def sums(released, level):
    table = released.flows(level, level)
    keys = zip(table["origin"].to_pylist(), table["destination"].to_pylist(), strict=True)
    return dict(zip(keys, table["flow"].to_pylist(), strict=True))


def package_of(folder):
    return json.loads((folder / "datapackage.json").read_text())


@pytest.fixture
def frictionless():
    return pytest.importorskip("frictionless")


#: With intervals, and without them.
WITH_AND_WITHOUT = pytest.mark.parametrize("source", ["release", "small"])


@WITH_AND_WITHOUT
def test_frictionless_finds_nothing_wrong_with_a_package_of_csv(
    exported, country, frictionless, source
):
    released = getattr(country, source)
    folder = exported("csv", source=released, title="Commuting", licence="CC-BY-4.0")
    report = frictionless.validate(str(folder / "datapackage.json"))
    assert report.valid, report.flatten(["title", "note"])
    package = frictionless.Package(str(folder / "datapackage.json"))
    assert package.title == "Commuting"
    assert package.licenses == [{"name": "CC-BY-4.0"}]
    flows = [name for name in package.resource_names if name.startswith("flows")]
    assert len(flows) == len(LEVELS)
    for number, level in enumerate(LEVELS, start=1):
        resource = package.get_resource(f"flows-{number}-{level}")
        rows = resource.read_rows()
        found = {(row["origin"], row["destination"]): row["flow"] for row in rows}
        assert found == sums(released, level)
        fields = {field.name: field.to_dict() for field in resource.schema.fields}
        assert fields["flow"]["unit"] == "trips"
        if source == "small":
            assert [*fields] == ["origin", "destination", "flow"]
            continue
        assert all(0 <= row["low"] <= row["flow"] <= row["high"] for row in rows)
        assert "not guaranteed for each number" in fields["low"]["description"]
        assert {row["grade"] for row in rows} <= {*"ABCD"}
        rule = "10 % A, 25 % B, 50 % C, or D, which may be off by more than half"
        assert rule in fields["grade"]["description"]


@pytest.mark.parametrize(
    ("source", "words"), [("release", "For 95 % of the published numbers"), ("small", None)]
)
def test_a_package_says_what_is_promised_and_what_intervals_are(exported, country, source, words):
    package = package_of(exported("csv", source=getattr(country, source)))
    plan = country.release.manifest.plan
    assert package["guarantee"]["epsilon"] == plan.epsilon
    assert package["guarantee"]["rho"] == str(plan.rho)
    assert package["guarantee"]["privacy_unit"] == plan.unit.describe()
    assert "NOT PRIVATE" in package["caveats"][0]  # it was made with a seed
    finest = next(one for one in package["resources"] if one["name"] == "flows-3-municipality")
    assert finest.get("intervals", "").startswith(words or "")
    assert ("intervals" in finest) is (words is not None)
    assert finest["guaranteed"]["probability"] == 0.95


@pytest.mark.parametrize("source", ["release", "small"])
def test_every_level_of_both_ends_has_totals(exported, country, source):
    """Also those of destinations that the tree itself has; with intervals where they are known."""
    folder = exported("csv", source=getattr(country, source))
    for number, level in enumerate(LEVELS, start=1):
        for end in ("1-origin", "2-destination"):
            header = (folder / f"totals-{number}-{level}-{end}.csv").read_text().partition("\n")[0]
            is_on_tree = (number, end) == (1, "2-destination")
            assert ('"listed"' in header) is not is_on_tree
            assert ('"low"' in header) is (source == "release" or not is_on_tree)


def test_areas_have_the_names_of_all_levels(exported, tmp_path):
    names = tmp_path / "names.csv"
    names.write_text("level,code,name\nregion,1,North\nprovince,1,Upper\n")
    header, first, *_ = (exported("csv", names=names) / "areas.csv").read_text().splitlines()
    assert header == (
        '"region","province","municipality","region_name","province_name","name","lon","lat"'
    )
    assert '"North"' in first


def test_the_digest_of_a_release_is_that_of_its_manifest_as_in_an_estimate(exported, country):
    package = package_of(exported("csv"))
    assert package["release_sha256"] == estimate(country.release).manifest.release_sha256


def test_without_intervals_none_are_written(exported):
    folder = exported("csv", intervals=False)
    assert (folder / "flows-1-region.csv").read_text().splitlines()[0] == (
        '"origin","destination","flow"'
    )
    assert "intervals" not in package_of(folder)["resources"][0]


def test_only_the_chosen_levels_are_written(exported):
    folder = exported("csv", level=["province"])
    flows_and_areas = {path.name for path in folder.glob("[fad]*")}
    assert flows_and_areas == {
        "flows-2-province.csv", "areas.csv", "datapackage.json",
    }  # fmt: skip
    assert [path.name for path in folder.glob("zones*")] == ["zones-2-province.csv"]
    with pytest.raises(InftdaError, match=r"no level 'town'.*there are region, province"):
        exported("csv", level=["town"], force=True)


@pytest.fixture(scope="module")
def hostile():
    """Levels and codes that a spreadsheet would run and that are no names of files."""
    areas = Hierarchy.read({"../x": ["=1+1", "=1+1", "b"], "-@town": ["=A1", 'q"', "c"]})
    flows = pa.table({"origin": ["=A1", 'q"'] * 2, "destination": ["c", "=A1"] * 2})
    return release(flows, areas, rho=50, source=SeededSource(1))


def test_formulas_are_disarmed_unless_asked_otherwise(exported, hostile, frictionless):
    folder = exported("csv", source=hostile, centroids=None)
    files = {path.name for path in folder.iterdir()}
    assert {file for file in files if not file.startswith("totals")} == {
        "flows-1-x.csv", "flows-2-town.csv", "areas.csv", "datapackage.json",
    }  # fmt: skip
    assert '"\'=A1"' in (folder / "flows-2-town.csv").read_text()
    report = frictionless.validate(str(folder / "datapackage.json"))
    assert report.valid, report.flatten(["title", "note"])
    folder = exported("csv", source=hostile, centroids=None, keep_formulas=True, force=True)
    assert '"=A1"' in (folder / "flows-2-town.csv").read_text()
    assert frictionless.validate(str(folder / "datapackage.json")).valid


def test_openmatrix_reads_a_matrix_of_each_level(exported, country):
    openmatrix = pytest.importorskip("openmatrix")
    folder = exported("omx")
    for number, level in enumerate(LEVELS, start=1):
        depth = country.areas.level_of(level)
        n = country.areas.n_areas(depth)
        with openmatrix.open_file(str(folder / f"flows-{number}-{level}.omx")) as matrices:
            assert matrices.list_matrices() == ["flow", "high", "low"]
            assert matrices.shape() == (n, n)
            place = {code.decode(): at for code, at in matrices.mapping("code").items()}
            assert list(place) == country.areas.codes(depth).to_pylist()
            assert list(matrices.mapping("number")) == list(range(1, n + 1))
            flow = np.array(matrices["flow"])
            assert "differential privacy" in str(matrices["flow"].attrs["description"])
        truth = sums(country.release, level)
        assert flow.sum() == country.release.total
        assert all(flow[place[o], place[d]] == value for (o, d), value in truth.items())


def test_matrices_in_several_blocks_are_the_same(exported, country, monkeypatch):
    openmatrix = pytest.importorskip("openmatrix")
    monkeypatch.setattr("inftda.exports.matrices._BLOCK", 50)
    folder = exported("omx", level=["municipality"], intervals=False)
    with openmatrix.open_file(str(folder / "flows-3-municipality.omx")) as matrices:
        assert np.array(matrices["flow"]).sum() == country.release.total


def test_what_is_too_large_is_refused_with_the_levels_that_fit(exported, monkeypatch, tmp_path):
    monkeypatch.setattr("inftda.exports.matrices.MAX_CELLS", 100)
    with pytest.raises(InftdaError, match=r"576 cells.*these fit `level=`: region, province"):
        exported("omx")
    assert not list(tmp_path.iterdir())
