"""Maps: files as QGIS (through geopandas) and flowmap.blue read them."""

import csv
import json

import numpy as np
import pyarrow as pa
import pytest

from inftda.errors import InftdaError
from inftda.exports import spreadsheets
from inftda.noise.bits import SeededSource
from inftda.pipeline import release
from inftda.publication.release import Release
from inftda.tree.hierarchy import Hierarchy
from inftda.tree.places import Places

pytestmark = pytest.mark.slow

KINDS_OF_MAPS = ("geojson", "geopackage", "flowmap")


def layers_of(folder, kind, level):
    """The desire lines of a level as geopandas reads them."""
    geopandas = pytest.importorskip("geopandas")
    if kind == "geojson":
        return geopandas.read_file(folder / f"flows-{level}.geojson")
    return geopandas.read_file(folder / "flows.gpkg", layer=f"flows_{level}")


@pytest.mark.parametrize("kind", ["geojson", "geopackage"])
def test_geopandas_reads_desire_lines_with_flow_and_interval(exported, country, kind):
    folder = exported(kind)
    for number, level in enumerate(("region", "province", "municipality"), start=1):
        lines = layers_of(folder, kind, f"{number}-{level}")
        assert lines.crs.to_epsg() == 4326
        assert {*lines.geom_type} == {"LineString"}
        assert lines["flow"].sum() == country.release.total
        assert len(lines) == country.release.flows(level, level).num_rows
        assert (lines["low"] <= lines["flow"]).all()
        assert (lines["flow"] <= lines["high"]).all()
        assert {*lines["grade"]} <= {*"ABCD"}
    one = lines.iloc[0]
    assert one["origin_name"] == f"Town {one['origin']}"
    place = country.areas.find(3, [one["origin"], one["destination"]])
    expected = [(9 + at % 6 / 5, 44 + at // 6 / 5) for at in place.tolist()]
    assert np.allclose(np.array(one.geometry.coords), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("source", "words"), [("release", "not guaranteed for each"), ("small", "truly zero")]
)
def test_a_geopackage_has_points_and_says_what_it_is(exported, country, source, words):
    geopandas = pytest.importorskip("geopandas")
    pyogrio = pytest.importorskip("pyogrio")
    file = exported("geopackage", source=getattr(country, source)) / "flows.gpkg"
    layers = {name for name, _ in pyogrio.list_layers(file)}
    assert {"areas_1-region", "flows_3-municipality"} <= layers
    areas = geopandas.read_file(file, layer="areas_3-municipality")
    assert len(areas) == 24
    assert {*areas.geom_type} == {"Point"}
    about = pyogrio.read_info(file, layer="flows_3-municipality")
    assert words in about["layer_metadata"]["DESCRIPTION"]
    assert np.allclose(about["total_bounds"], (9, 44, 10, 44.6), atol=1e-5)


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("source", ["release", "small"])
def test_flowmap_gets_locations_and_flows_with_grades(exported, country, source):
    folder = exported("flowmap", source=getattr(country, source))
    names = {"datapackage.json", "flows.csv", "locations.csv"}
    assert {path.name for path in folder.iterdir()} == names
    locations, flows = rows_of(folder / "locations.csv"), rows_of(folder / "flows.csv")
    assert [*locations[0]] == ["id", "name", "lat", "lon"]
    known = ["low", "high", "grade"] if source == "release" else []
    assert [*flows[0]] == ["origin", "dest", "count", *known]
    ids = {location["id"] for location in locations}
    assert ids == {*country.areas.codes(3).to_pylist()}
    assert sum(int(flow["count"]) for flow in flows) == country.release.total
    assert {flow[end] for flow in flows for end in ("origin", "dest")} <= ids


def test_flowmap_computes_the_finest_level_only(exported, monkeypatch):
    asked, flows = [], Release.flows
    monkeypatch.setattr(
        Release, "flows", lambda self, **given: asked.append(given["level"]) or flows(self, **given)
    )
    exported("flowmap")
    assert asked == [{"origin": "municipality", "destination": "municipality"}]


def test_different_areas_at_both_ends_are_different_locations(exported, tmp_path):
    home = Hierarchy.read({"region": ["N", "S"], "town": ["1", "2"]})
    abroad = Hierarchy.read({"state": ["1", "2"]})
    rows = {"origin": ["1", "2"] * 9, "destination": ["1", "2"] * 9}
    made = release(
        rows, axis={"origin": home, "destination": abroad}, rho=50, source=SeededSource(1)
    )
    places = tmp_path / "places.csv"
    places.write_text("town,state,lon,lat\n1,,9,45\n2,,10,45\n,1,20,50\n,2,21,50\n")
    folder = exported("flowmap", source=made, centroids=places)
    ids = [location["id"] for location in rows_of(folder / "locations.csv")]
    assert ids == ["origin:1", "origin:2", "destination:1", "destination:2"]
    zones = {path.name for path in exported("csv", source=made, centroids=places).glob("zones*")}
    assert zones == {
        f"zones-{level}-{end}.csv"
        for level, end in (
            ("1-region-state", "origin"), ("1-region-state", "destination"),
            ("2-town-state", "origin"), ("2-town-state", "destination"),
        )
    }  # fmt: skip
    assert exported("geopackage", source=made, centroids=places)
    assert exported("omx", source=made, centroids=places)


@pytest.mark.parametrize("kind", KINDS_OF_MAPS)
def test_a_map_without_places_is_refused_with_what_to_do(exported, kind, tmp_path):
    with pytest.raises(InftdaError, match="give `centroids=`"):
        exported(kind, centroids=None)
    assert not list(tmp_path.iterdir())


def test_more_than_a_browser_holds_is_refused(exported, monkeypatch):
    monkeypatch.setattr(spreadsheets, "MAX_FLOWS", 10)
    with pytest.raises(InftdaError, match="choose a coarser one with `level=`"):
        exported("flowmap")
    assert exported("flowmap", level=["region"])


@pytest.mark.parametrize("kind", ["geojson", "geopackage"])
def test_what_has_no_place_is_left_out_and_said_to_be(exported, country, kind, tmp_path):
    few = tmp_path / "few.csv"
    few.write_text("\n".join(country.centroids.read_text().splitlines()[:10]) + "\n")
    folder = exported(kind, centroids=few, level=["municipality"])
    lines = layers_of(folder, kind, "3-municipality")
    assert 0 < len(lines) < country.release.manifest.n_flows
    assert "whose place is not known" in (folder / "datapackage.json").read_text()


def test_lines_go_the_short_way_over_180_degrees(exported, tmp_path):
    areas = {"town": ["east", "west"]}
    rows = {"origin": ["east", "west"] * 50, "destination": ["west", "east"] * 50}
    made = release(rows, areas, rho=50, source=SeededSource(1))
    places = tmp_path / "places.csv"
    places.write_text("town,lon,lat\neast,179,-17\nwest,-179,-17\n")
    folder = exported("geojson", source=made, centroids=places)
    whole = json.loads((folder / "flows-1-town.geojson").read_text())
    ends = [feature["geometry"]["coordinates"] for feature in whole["features"]]
    assert [[179, -17], [181, -17]] in ends
    assert all(abs(start[0] - end[0]) <= 2 for start, end in ends)


def test_places_that_the_release_brings_need_no_file(exported, tmp_path):
    geopandas = pytest.importorskip("geopandas")
    shapely = pytest.importorskip("shapely")
    areas = Hierarchy.read({"region": ["N", "N", "S"], "town": ["1", "2", "3"]})
    boxes = [shapely.box(at, 45, at + 1, 46) for at in (9, 10, 11)]
    outlines = pa.array([shapely.to_wkb(box, byte_order=1) for box in boxes], pa.binary())
    names = {"town": pa.array(["Aix", "Bex", None])}
    lon, lat = np.array([9.5, 10.5, 11.5]), np.array([45.5, 45.5, 45.5])
    areas = areas.with_places(Places(names, lon, lat, outlines))
    rows = {"origin": ["1", "2", "3"] * 30, "destination": ["2", "3", "1"] * 30}
    out = tmp_path / "release"
    release(rows, areas, rho=50, source=SeededSource(1), out=out)
    file = exported("geopackage", source=out, centroids=None) / "flows.gpkg"
    towns = geopandas.read_file(file, layer="areas_2-town")
    assert towns["name"].tolist() == ["Aix", "Bex", "3"]
    assert towns.geometry.geom_equals(geopandas.GeoSeries(boxes, crs=4326)).all()
    assert {*geopandas.read_file(file, layer="areas_1-region").geom_type} == {"Point"}
    lines = geopandas.read_file(file, layer="flows_2-town")
    assert "Aix" in set(lines["origin_name"])
