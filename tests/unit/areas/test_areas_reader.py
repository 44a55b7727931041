"""Areas as people have them: tables with more columns than codes, and polygons."""

import json

import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import inftda
from inftda.areas.grids import grid_areas
from inftda.areas.reader import read_areas
from inftda.errors import HierarchyError
from inftda.tree.places import Places

TABLE = {
    "region": ["N", "N", "S"],
    "code": ["001", "002", "003"],
    "region_name": ["North", "North", "South"],
    "name": ["Aix", "  Bourg\nla Ville ", None],
    "lon": [1.5, 2.5, None],
    "lat": [45.0, 45.5, None],
    "population": [1.5, 2.5, 3.5],
}


def names_of(areas):
    return {level: names.to_pylist() for level, names in areas.places.names.items()}


def check_table(areas):
    assert areas == inftda.Hierarchy.read({"region": list("NNS"), "code": ["001", "002", "003"]})
    assert names_of(areas) == {
        "region": ["North", "South"],
        "code": ["Aix", "Bourg la Ville", None],
    }
    assert areas.places.lon[:2].tolist() == [1.5, 2.5]
    assert np.isnan(areas.places.lat[2])


def test_levels_are_chosen_and_names_and_locations_go_along():
    check_table(read_areas(TABLE, levels=["region", "code"]))


def test_without_a_choice_only_known_columns_are_no_levels():
    plain = {name: column for name, column in TABLE.items() if name != "population"}
    check_table(read_areas(plain))


def test_files_are_read_as_tables_are(tmp_path):
    table = pa.table(TABLE)
    pq.write_table(table, tmp_path / "areas.parquet")
    check_table(read_areas(tmp_path / "areas.parquet", levels=["region", "code"]))
    (tmp_path / "areas.csv").write_text(
        "region;code;region_name;name;lon;lat\nN;001;North;Aix;1.5;45.0\n"
        "N;002;North; Bourg  la Ville;2.5; 45.5\nS;003;South;;;\n"
    )
    check_table(read_areas(tmp_path / "areas.csv"))


def test_places_make_no_difference_to_equality_and_survive_an_outside_area():
    areas = read_areas(TABLE, levels=["region", "code"])
    plain = inftda.Hierarchy.read({"region": list("NNS"), "code": ["001", "002", "003"]})
    assert areas.fingerprint == plain.fingerprint
    larger = areas.with_outside("0 none")
    assert larger.codes(2)[0].as_py() == "0 none"
    assert names_of(larger)["code"] == [None, "Aix", "Bourg la Ville", None]
    assert np.isnan(larger.places.lon[0])
    assert larger.places.lon[1] == 1.5


SLIPS = {
    "fine to coarse": (
        {"code": list("1234"), "province": list("aabb"), "region": list("NNNN")},
        "fine to coarse.*levels=.* region,province,code",
    ),
    "a column of names": (
        {"region": list("NNS"), "code": list("123"), "nome": ["Aix", "Aix", "Bo"]},
        "is nome not a level.*levels=.* region,code",
    ),
    "latitudes off the globe": (
        {"town": list("12"), "lon": ["45", "46"], "lat": ["-120", "-121"]},
        "between -90 and 90.*swapped",
    ),
    "locations that are no numbers": (
        {"town": ["1"], "lon": ["1,5"], "lat": ["45"]},
        "must be degrees .* got '1,5' in row 1",
    ),
    "a very long name": ({"town": ["1"], "name": ["x" * 1001]}, "longer than 1,000 bytes"),
    "an outline that is none": ({"town": ["1"], "wkt": ["POLYGON(("]}, "row 1 .* has no polygon"),
    "an outline that is a point": ({"town": ["1"], "wkt": ["POINT(1 2)"]}, "areas are polygons"),
}


@pytest.mark.parametrize("what", SLIPS)
def test_what_people_get_wrong_is_recognised(what):
    table, words = SLIPS[what]
    with pytest.raises(HierarchyError, match=words):
        read_areas(table)


def test_a_level_that_is_not_there_is_refused():
    with pytest.raises(HierarchyError, match=r"no column 'town'.*region, code"):
        read_areas(TABLE, levels=["region", "town"])


def test_places_must_be_about_the_areas():
    areas = inftda.Hierarchy.read({"town": ["1", "2"]})
    wrong = (
        Places(names={"town": pa.array(["Aix"])}),
        Places(names={"city": pa.array(["Aix", "Bo"])}),
        Places(lon=np.zeros(2)),
        Places(lon=np.zeros(3), lat=np.zeros(3)),
        Places(lon=np.zeros(2), lat=np.array([0, np.nan])),
        Places(lon=np.zeros(2), lat=np.array([0, 91.0])),
    )
    for places in wrong:
        with pytest.raises(HierarchyError):
            areas.with_places(places)


# --- Polygons


SQUARE = {name: shapely.box(at, 40, at + 1, 41) for at, name in enumerate("abc")}
FRAME = gpd.GeoDataFrame(
    {"region": ["N", "N", "S", "S"], "zone": ["1", "2", "3", "3"], "name": ["A", "B", "C", ""]},
    geometry=[SQUARE["a"], SQUARE["b"], SQUARE["c"], shapely.box(9, 40, 10, 41)],
    crs="EPSG:4326",
)


def check_polygons(areas, *, tolerance=0.0):
    assert areas == inftda.Hierarchy.read({"region": list("NNS"), "zone": list("123")})
    assert names_of(areas)["zone"] == ["A", "B", "C"]
    shapes = shapely.from_wkb(areas.places.outlines.to_pylist())
    assert [shape.geom_type for shape in shapes] == ["Polygon", "Polygon", "MultiPolygon"]
    assert shapely.hausdorff_distance(shapes[0], SQUARE["a"]) <= tolerance
    points = shapely.points(areas.places.lon, areas.places.lat)
    assert shapely.contains(shapes, points).all()


@pytest.mark.parametrize("ending", ["geojson", "gpkg", "shp", "fgb"])
def test_files_of_polygons_are_areas(ending, tmp_path):
    path = tmp_path / f"zones.{ending}"
    FRAME.to_file(path)
    check_polygons(read_areas(path, levels=["region", "zone"]), tolerance=1e-6)


def test_a_frame_with_geometry_is_areas_and_other_systems_are_converted(tmp_path):
    check_polygons(read_areas(FRAME, levels=["region", "zone"]))
    metres = FRAME.to_crs("EPSG:3035")
    check_polygons(read_areas(metres, levels=["region", "zone"]), tolerance=1e-6)
    metres.to_file(tmp_path / "zones.gpkg")
    check_polygons(read_areas(tmp_path / "zones.gpkg", levels=["region", "zone"]), tolerance=1e-6)


def test_a_column_of_outlines_is_polygons():
    table = {"zone": ["2", "1"], "wkt": [SQUARE["b"].wkt, SQUARE["a"].wkt]}
    areas = read_areas(table)
    assert shapely.from_wkb(areas.places.outlines[0].as_py()).equals(SQUARE["a"])
    assert areas.places.lon.tolist() == [0.5, 1.5]


def frame_with(shape, **columns):
    return gpd.GeoDataFrame(
        {"zone": ["1", "2"], **columns}, geometry=[SQUARE["a"], shape], crs=4326
    )


BOWTIE = shapely.Polygon([(5, 0), (6, 1), (6, 0), (5, 1)])
BAD_FRAMES = {
    "broken geometry": (frame_with(BOWTIE), "polygon of '2' .* broken .*Self-intersection"),
    "points": (frame_with(shapely.Point(1, 2)), "has a Point for '2'"),
    "overlap": (frame_with(shapely.box(0.5, 40, 1.5, 41)), "'1' and '2' .* overlap"),
    "one inside the other": (frame_with(shapely.box(0.4, 40.4, 0.6, 40.6)), "overlap"),
    "no system": (frame_with(SQUARE["b"]).set_crs(None, allow_override=True), "coordinate system"),
    "metres called degrees": (
        frame_with(shapely.box(500_000, 4_000_000, 500_100, 4_000_100)),
        "not in degrees",
    ),
    "swapped": (frame_with(shapely.box(40, -120, 41, -119)), "longitude and latitude swapped"),
    "empty": (frame_with(SQUARE["b"]).iloc[:0], "no areas in it"),
    "two parents": (
        frame_with(SQUARE["b"], region=["N", "S"]).assign(zone=["1", "1"]),
        "'1' lies in two areas",
    ),
}


@pytest.mark.parametrize("what", BAD_FRAMES)
def test_polygons_that_cannot_be_areas_are_refused(what):
    frame, words = BAD_FRAMES[what]
    levels = ["region", "zone"] if "region" in frame.columns else ["zone"]
    with pytest.raises(HierarchyError, match=words):
        read_areas(frame, levels=levels)


def test_borders_that_were_drawn_twice_may_differ_a_little():
    assert read_areas(frame_with(shapely.box(0.98, 40, 2, 41))).n_areas(1) == 2


def test_the_levels_of_polygons_must_be_said_unless_there_is_one():
    with pytest.raises(HierarchyError, match=r"levels=.*region, zone"):
        read_areas(FRAME)
    assert read_areas(FRAME.drop(columns="region")).level_names == ("zone",)


def test_a_ring_that_rounding_has_left_open_is_closed(tmp_path):
    ring = [[0, 0], [1, 0], [1, 1], [1e-16, 0]]
    file = tmp_path / "zones.geojson"
    file.write_text(json.dumps({"type": "Polygon", "coordinates": [ring]}))
    assert grid_areas(file, [50_000]).num_rows > 1


@pytest.mark.parametrize(
    "broken",
    [b'"z\xe5ne": {}', b'"properties": {"z\xe5ne": "1"}', b'"properties": {"zone": "\xe5"}'],
)
def test_texts_that_are_not_utf_8_are_refused(broken, tmp_path):
    file = tmp_path / "zones.geojson"
    features = b'{"type": "Feature", ' + broken + b'}, {"type": "Feature", "properties": {}}'
    file.write_bytes(b'{"type": "FeatureCollection", "features": [' + features + b"]}")
    with pytest.raises(HierarchyError, match=r"zones.geojson.*UTF-8"):
        read_areas(file, levels=["zone"])


def test_a_shapefile_without_a_system_and_two_layers_are_refused(tmp_path):
    FRAME.to_file(tmp_path / "zones.shp")
    (tmp_path / "zones.prj").unlink()
    with pytest.raises(HierarchyError, match="in which coordinate system"):
        read_areas(tmp_path / "zones.shp", levels=["zone"])
    for layer in ("one", "two"):
        FRAME.to_file(tmp_path / "zones.gpkg", layer=layer)
    with pytest.raises(HierarchyError, match=r"several layers \(one, two\)"):
        read_areas(tmp_path / "zones.gpkg", levels=["zone"])


def test_of_equal_areas_the_first_that_knows_more_says_it(tmp_path):
    plain = {"region": list("NNS"), "zone": list("123")}
    made = inftda.release(
        {"origin": ["1"] * 9, "destination": ["2"] * 9},
        axis={"origin": plain, "destination": read_areas(FRAME, levels=["region", "zone"])},
        rho=1,
        out=tmp_path / "release",
    )
    assert (tmp_path / "release/places.parquet").exists()
    assert not made.tree.axes[0].hierarchy.places.is_empty


def test_a_level_in_other_capitals_gets_a_hint():
    with pytest.raises(HierarchyError, match=r"no column 'Town' .*did you mean 'town'\? It has"):
        read_areas({"region": ["N"], "town": ["1"]}, levels=["region", "Town"])
