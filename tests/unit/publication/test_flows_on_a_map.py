"""Flows as lines between areas, for those who have geopandas."""

import numpy as np
import pyarrow as pa
import pytest

import inftda
from inftda.areas.locations import short_way
from inftda.errors import ReleaseError
from inftda.noise.bits import SeededSource

geopandas = pytest.importorskip("geopandas")
shapely = pytest.importorskip("shapely")

AREAS = {
    "region": ["N", "N", "S"],
    "town": ["1", "2", "3"],
    "lon": [10.0, 12.0, None],
    "lat": [50.0, 50.0, None],
}
FLOWS = {"origin": ["1", "1", "3"], "destination": ["1", "2", "2"], "count": [900, 800, 700]}


def made(areas, flows=FLOWS):
    return inftda.release(flows, areas, rho=10, source=SeededSource(1))


@pytest.fixture(scope="module")
def release():
    return made(AREAS)


def shapes(frame, *columns):
    return dict(zip(frame[list(columns)].itertuples(index=False, name=None), frame.geometry))  # noqa: B905 - a frame's columns are of one length


def test_lines_go_from_origin_to_destination_and_are_missing_where_a_place_is(release):
    frame = release.flows(as_="geopandas")
    assert isinstance(frame, geopandas.GeoDataFrame)
    assert frame.crs == "EPSG:4326"
    assert frame["flow"].sum() == release.total
    found = shapes(frame, "origin", "destination")
    assert found["1", "2"].wkt == "LINESTRING (10 50, 12 50)"
    assert found["1", "1"].length == 0
    assert found["3", "2"] is None


def test_coarser_areas_lie_in_the_middle_of_their_finest(release):
    found = shapes(release.flows("region", "town", as_="geopandas"), "origin", "destination")
    (lon, _), end = found["N", "2"].coords
    assert lon == pytest.approx(11)
    assert end == (12, 50)


def test_where_one_end_is_shown_the_shape_is_the_area(release):
    found = shapes(release.flows("all", "town", as_="geopandas"), "destination")
    assert found["2",].wkt == "POINT (12 50)"


def test_the_outline_is_taken_where_there_is_one():
    boxes = geopandas.GeoDataFrame(
        {"region": ["N", "N"], "town": ["1", "2"]},
        geometry=[shapely.box(0, 0, 1, 1), shapely.box(1, 0, 2, 1)],
        crs="EPSG:4326",
    )
    flows = {"origin": ["1", "2"], "destination": ["1", "2"], "count": [900, 800]}
    there = made(inftda.read_areas(boxes, levels=["region", "town"]), flows)
    found = shapes(there.flows("town", "all", as_="geopandas"), "origin")
    assert found["2",].equals(shapely.box(1, 0, 2, 1))
    assert (
        shapes(there.flows("region", "all", as_="geopandas"), "origin")["N",].geom_type == "Point"
    )


def test_query_puts_the_largest_on_the_map(release):
    frame = release.flows("town", "town", top=1, as_="geopandas")
    assert [(row.origin, row.destination) for row in frame.itertuples()] == [("1", "1")]
    assert frame.geometry.notna().all()


@pytest.mark.parametrize("levels", [("town", "town"), ("all", "all")])
def test_without_places_it_is_said_what_to_do(levels):
    there = made({name: AREAS[name] for name in ("region", "town")})
    with pytest.raises(ReleaseError, match="as_='pandas'"):
        there.flows(*levels, as_="geopandas")


def test_lines_take_the_short_way_over_180_degrees():
    assert short_way(np.array([179.0, 0.0]), np.array([-179.0, 90.0])).tolist() == [181, 90]
    areas = {"town": pa.array(["1", "2"]), "lon": [179.0, -179.0], "lat": [0.0, 0.0]}
    flows = {"origin": ["1", "2"], "destination": ["2", "2"], "count": [900, 800]}
    found = shapes(made(areas, flows).flows(as_="geopandas"), "origin", "destination")
    assert found["1", "2"].length == pytest.approx(2)
