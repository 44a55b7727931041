"""Cells that cover an outline, and the cells of points."""

import json

import h3
import numpy as np
import pytest
import shapely

import inftda
from inftda.areas.grids import CellPlacer, grid_areas, h3_areas, resolution_of
from inftda.areas.placing import Polygons, placer_of
from inftda.areas.reader import read_areas
from inftda.errors import HierarchyError

CITY = shapely.Point(12.5, 41.9).buffer(0.05)


@pytest.fixture(scope="module")
def cells():
    return read_areas(h3_areas(CITY, [5, 7, 8]))


def test_cells_cover_the_outline_and_nest(cells):
    assert cells.level_names == ("h3_5", "h3_7", "h3_8")
    assert resolution_of(cells) == 8
    around = shapely.union_all(shapely.from_wkb(cells.places.outlines.to_pylist()))
    assert shapely.covers(around.buffer(1e-6), CITY)
    table = cells.to_table()
    for fine, coarse in zip(table["h3_8"].to_pylist(), table["h3_5"].to_pylist(), strict=True):
        assert h3.cell_to_parent(fine, 5) == coarse


def test_a_cell_that_overlaps_two_islands_is_there_once():
    islands = shapely.MultiPolygon(
        [shapely.box(0, 0, 0.01, 0.01), shapely.box(0.02, 0, 0.03, 0.01)]
    )
    assert read_areas(h3_areas(islands, [3, 4])).depth == 2


@pytest.mark.parametrize("resolution", [2, 8, 11])
def test_cells_of_points_are_those_of_the_library(resolution):
    size = {2: 9.0, 8: 0.05, 11: 0.004}[resolution]
    table = h3_areas(shapely.box(10, 40, 10 + size, 40 + size), [resolution])
    areas = read_areas(table).with_outside()
    placer = placer_of(areas)
    assert isinstance(placer, CellPlacer)
    rng = np.random.default_rng(resolution)
    lon, lat = rng.uniform(
        (10 - size / 4, 40 - size / 4), (10 + 1.3 * size, 40 + 1.3 * size), (4000, 2)
    ).T
    corners = shapely.get_coordinates(shapely.from_wkt(table["wkt"].to_pylist()))[:500]
    lon, lat = np.append(lon, corners[:, 0]), np.append(lat, corners[:, 1])
    number = {code: at for at, code in enumerate(areas.codes(1).to_pylist())}
    expected = [
        number.get(h3.latlng_to_cell(y, x, resolution), -1) for x, y in zip(lon, lat, strict=True)
    ]
    assert placer.place(lon, lat).tolist() == expected
    assert placer.place(np.array([np.nan, np.inf, 400.0]), np.zeros(3)).tolist() == [-1, -1, -1]


def test_cells_at_the_antimeridian_and_the_pole_are_found():
    for lon, lat in ((180.0, -17.0), (0.0, 89.5)):
        middle = h3.latlng_to_cell(lat, lon, 4)
        codes = sorted(h3.grid_disk(middle, 2))
        areas = read_areas({"h3_4": codes})
        at = np.array([h3.cell_to_latlng(code) for code in codes])
        found = placer_of(areas).place(at[:, 1], at[:, 0])
        assert areas.codes(1).take(found).to_pylist() == codes


def test_codes_that_only_look_like_cells_are_not_taken_for_them():
    for codes in (["1", "2"], ["881e804201fffff", "871e80420ffffff"], ["881E804201FFFFF"], ["a"]):
        assert resolution_of(inftda.Hierarchy.read({"cell": codes})) is None
    wrong = inftda.Hierarchy.read({"cell": ["881e804203fffff".replace("1e", "ff")]})
    with pytest.raises(HierarchyError):
        placer_of(wrong)


def test_a_grid_covers_the_outline_in_squares():
    table = grid_areas(CITY, [4000, 1000, 500])
    areas = read_areas(table)
    assert areas.level_names == ("grid_4000", "grid_1000", "grid_500")
    assert "x257y1163" in areas.codes(1).to_pylist()
    boxes = shapely.from_wkt(table["wkt"].to_pylist())
    assert shapely.covers(shapely.union_all(boxes).buffer(1e-7), CITY)
    assert shapely.intersects(boxes, CITY).all(), "and nothing that is far from it"
    west, south, east, north = shapely.bounds(boxes).T
    assert np.allclose((north - south) * 111_195, 500, rtol=1e-3)
    assert np.allclose((east - west) * 111_195 * np.cos(np.radians(42)), 500, rtol=1e-3)
    lon, lat = np.random.default_rng(1).uniform((12.47, 41.87), (12.53, 41.93), (2000, 2)).T
    placer = placer_of(areas)
    assert isinstance(placer, Polygons)
    assert placer.place(lon, lat).min() >= 0


def test_a_larger_outline_has_the_same_squares_and_more():
    small, large = (grid_areas(CITY.buffer(by), [4000, 1000]) for by in (0, 0.1))
    rows = [
        {*zip(*table.drop("wkt").to_pydict().values(), strict=True)} for table in (small, large)
    ]
    assert rows[0] < rows[1]


def test_a_grid_on_both_sides_of_180_degrees_has_no_squares_between_them():
    east, west = shapely.box(179.9, -17, 180, -16.9), shapely.box(-180, -17, -179.9, -16.9)
    areas = read_areas(grid_areas(shapely.MultiPolygon([east, west]), [1000, 500]))
    placed = placer_of(areas).place(np.array([179.95, -179.95]), np.full(2, -16.95))
    assert placed.min() >= 0
    assert np.abs(areas.places.lon).min() > 179.8


@pytest.mark.parametrize(
    ("make", "sizes", "word"),
    [
        (h3_areas, [9, 7], "coarse to fine"),
        (h3_areas, [], "coarse to fine"),
        (h3_areas, [16], "between 0 and 15"),
        (h3_areas, [15], "more than 2,000,000 cells"),
        (grid_areas, [500, 1000], "coarse to fine"),
        (grid_areas, [1000, 300], "multiple"),
        (grid_areas, [0], "coarse to fine"),
        (grid_areas, [1], "choose larger ones"),
    ],
)
def test_cells_that_cannot_be_are_refused(make, sizes, word):
    with pytest.raises(HierarchyError, match=word):
        make(CITY, sizes)


@pytest.mark.parametrize("make", [lambda of: h3_areas(of, [7]), lambda of: grid_areas(of, [1000])])
def test_trips_are_no_outline(make, tmp_path):
    points = {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "properties": {},
                "geometry": {"type": "Point", "coordinates": [12.5, 41.9]},
            }
        ],
    }
    (tmp_path / "trips.geojson").write_text(json.dumps(points))
    (tmp_path / "trips.csv").write_text("lon,lat\n12.5,41.9\n")
    for source in (tmp_path / "trips.geojson", tmp_path / "trips.csv", shapely.Point(12.5, 41.9)):
        with pytest.raises(HierarchyError, match="never the points that were seen"):
            make(source)
