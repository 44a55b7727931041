"""Points in polygons: what shapely says inside, and exactly one area on every border."""

import numpy as np
import pyarrow as pa
import pytest
import shapely

from inftda.areas.placing import Polygons


def polygons(*shapes):
    return Polygons.of(
        pa.array(shapely.to_wkb(np.array(shapes, object), byte_order=1), pa.binary())
    )


def place(prepared, *points):
    lon, lat = np.array(points, float).T
    return prepared.place(lon, lat).tolist()


def brute(shapes, lon, lat):
    """The first area that each point is inside of, by another library; -1 for none."""
    points = shapely.points(lon, lat)
    found = np.full(len(points), -1)
    for number in range(len(shapes) - 1, -1, -1):
        if shapes[number] is not None:
            found[shapely.contains(shapes[number], points)] = number
    return found


SQUARES = [shapely.box(x, y, x + 1, y + 1) for x in range(3) for y in range(3)]
TWO = shapely.MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(2, 0, 3, 1)])
RING = shapely.Polygon([(0, 0), (4, 0), (4, 4), (0, 4)], [[(1, 1), (3, 1), (3, 3), (1, 3)]])
BLOB = shapely.Point(10, 50).buffer(3, quad_segs=40)
CENTRES = shapely.MultiPoint(np.random.default_rng(3).uniform((10, 40), (20, 50), (300, 2)))
CELLS = [shapely.segmentize(cell, 0.1) for cell in shapely.voronoi_polygons(CENTRES).geoms]


@pytest.mark.parametrize(
    "shapes",
    [
        SQUARES,
        [TWO, shapely.box(1, 0, 2, 1)],
        [RING, shapely.box(1, 1, 3, 3)],
        [None, BLOB, BLOB.buffer(1).difference(BLOB), None],
        [shapely.Polygon([(0, 0), (9, 1), (0.1, 1.1)])],
        [shapely.box(-180, -90, 0, 90), shapely.box(0, -90, 180, 90)],
        CELLS,
    ],
    ids=["squares", "two parts", "hole filled", "curved", "sliver", "globe", "many"],
)
def test_points_are_placed_as_another_library_does(shapes):
    known = [shape for shape in shapes if shape is not None]
    west, south, east, north = shapely.total_bounds(known)
    rng = np.random.default_rng(1)
    lon = rng.uniform(max(west - 0.5, -180), min(east + 0.5, 180), 4000)
    lat = rng.uniform(max(south - 0.5, -90), min(north + 0.5, 90), 4000)
    expected = brute(shapes, lon, lat)
    assert polygons(*shapes).place(lon, lat).tolist() == expected.tolist()


def test_a_point_on_a_border_is_in_exactly_one_area():
    prepared = polygons(*SQUARES)
    corners = [(x, y) for x in np.arange(0, 3.5, 0.5) for y in np.arange(0, 3.5, 0.5)]
    found = place(prepared, *corners)
    assert min(found) >= 0, "the outer border belongs to an area, too"
    for (x, y), area in zip(corners, found, strict=True):
        assert shapely.intersects(SQUARES[area], shapely.Point(x, y))
    assert found == place(prepared, *corners)
    inside = [area for (x, y), area in zip(corners, found, strict=True) if x % 1 and y % 1]
    assert inside == list(range(9))


def test_where_an_area_stands_does_not_decide_who_has_a_common_border():
    """Only half of the points on a common border would be placed, or all of them twice."""
    left, right = (
        shapely.Polygon([(0, 0), (1, 0.3), (0.2, 2)]),
        shapely.Polygon([(1, 0.3), (2, 2), (0.2, 2)]),
    )
    t = np.linspace(0.01, 0.99, 500)
    lon, lat = 1 + t * (0.2 - 1), 0.3 + t * (2 - 0.3)
    alone = [polygons(left), polygons(right)]
    together = polygons(left, right).place(lon, lat)
    assert together.min() >= 0
    # Those that lie a hair to one side are in one area only, whichever is asked first.
    turned = 1 - polygons(right, left).place(lon, lat)
    is_sure = [prepared.place(lon, lat) >= 0 for prepared in alone]
    only_one = is_sure[0] != is_sure[1]
    assert (together == turned)[only_one].all()


@pytest.mark.parametrize("digits", [15, 7])
def test_no_point_is_lost_where_one_side_of_a_border_has_a_corner_that_the_other_lacks(digits):
    rng = np.random.default_rng(4)
    for _ in range(40):
        about = np.array([(0, 0), (2, 1), (0, 2), (2, -1)])
        start, end, above, below = about + rng.uniform(-0.3, 0.3, (4, 2))
        corner = np.round(start + rng.uniform() * (end - start), digits)
        prepared = polygons(
            shapely.Polygon([start, end, above]),
            shapely.Polygon([start, corner, below]),
            shapely.Polygon([corner, end, below]),
        )
        on_it = start + rng.uniform(size=(2000, 1)) * (end - start)
        assert prepared.place(*on_it.T).min() >= 0


def test_only_points_within_a_centimetre_of_a_border_belong_to_it():
    prepared = polygons(shapely.box(0, 0, 1, 1))
    middles = np.array([(0, 0.5), (1, 0.5), (0.5, 0), (0.5, 1)])
    outward = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)])
    assert place(prepared, *(middles + 0.9e-7 * outward)) == [0] * 4
    assert place(prepared, *(middles + 1.1e-7 * outward)) == [-1] * 4


def test_poles_and_the_antimeridian_are_places_like_others():
    cap = shapely.box(-180, 80, 180, 90)
    fiji = shapely.MultiPolygon(
        [shapely.box(177, -20, 180, -15), shapely.box(-180, -20, -178, -15)]
    )
    beyond = shapely.box(170, 0, 190, 10)
    prepared = polygons(cap, fiji, beyond)
    assert place(prepared, (0, 90), (180, 90), (-180, 85), (17, 80)) == [0, 0, 0, 0]
    assert place(prepared, (179.9, -17), (-179, -17), (180, -17), (-180, -17)) == [1, 1, 1, 1]
    assert place(prepared, (175, 5), (-175, 5), (185, 5), (180, 5), (-180, 5)) == [2] * 5
    assert place(prepared, (160, 5), (-160, 5), (0, 0)) == [-1, -1, -1]


def test_what_is_no_point_is_in_no_area():
    prepared = polygons(shapely.box(-180, -90, 180, 90))
    strange = [(np.nan, 0), (0, np.nan), (np.inf, 0), (0, -np.inf), (0, 91), (361, 0), (1e300, 1)]
    assert place(prepared, *strange) == [-1] * len(strange)
    assert place(prepared, (0, 0), (-0.0, -0.0)) == [0, 0]
