import json

import numpy as np
import pyarrow as pa
import pytest
import shapely

from inftda.areas.locations import Gazetteer
from inftda.errors import InftdaError
from inftda.pages import shapes
from inftda.pages.shapes import known_shapes, read_shapes
from inftda.tree.hierarchy import Hierarchy
from inftda.tree.places import Places

AREAS = Hierarchy.read({"region": ["N", "N", "S"], "town": ["001", "002", "003"]})


def gazetteer(areas=AREAS, **files):
    return Gazetteer.of([areas, areas], **files)


def square(x, y, side=1.0):
    return [[x, y], [x + side, y], [x + side, y + side], [x, y + side], [x, y]]


def collection(*features):
    return {
        "type": "FeatureCollection",
        "features": [
            {"type": "Feature", "properties": properties, "geometry": geometry}
            for properties, geometry in features
        ],
    }


@pytest.fixture
def file(tmp_path):
    def write(content):
        path = tmp_path / "areas.geojson"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


def test_the_property_with_the_codes_is_found(file):
    content = collection(
        ({"ord": 1, "code": "002"}, {"type": "Polygon", "coordinates": [square(10, 40)]}),
        ({"ord": 2, "code": "003"}, {"type": "Polygon", "coordinates": [square(12, 44)]}),
        ({"ord": 3, "code": "N/A"}, {"type": "Polygon", "coordinates": [square(0, 0)]}),
    )
    places = gazetteer()
    found = read_shapes(places, file(content))
    assert (found.axis, found.level, found.areas) == (0, 2, [1, 2])
    np.testing.assert_allclose(found.rings[0].mean(axis=0) / found.scale, [10.5, 40.5], atol=0.01)
    # Places come from the outlines, for both ends of a trip.
    for axis in (0, 1):
        lon, lat = places.finest[axis]
        np.testing.assert_allclose(lon[1:], [10.5, 12.5])
        np.testing.assert_allclose(lat[1:], [40.5, 44.5])
        assert np.isnan(lon[0])


def test_rings_come_back_from_their_steps(file):
    content = collection(({"c": "002"}, {"type": "Polygon", "coordinates": [square(-3, -2)]}))
    found = read_shapes(gazetteer(), file(content))
    numbers = found.numbers()
    assert numbers[0] == len(found.rings[0])
    np.testing.assert_array_equal(np.cumsum(numbers[1:].reshape(-1, 2), axis=0), found.rings[0])


def test_many_points_are_thinned_out(file, monkeypatch):
    monkeypatch.setattr(shapes, "MAX_POINTS", 300)
    monkeypatch.setattr(shapes, "COARSEST_GRID", 16)
    angle = np.append(np.linspace(0, 6.28, 5000), 0)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1).tolist()
    content = collection(({"c": "002"}, {"type": "Polygon", "coordinates": [ring]}))
    found = read_shapes(gazetteer(), file(content))
    assert 30 < sum(map(len, found.rings)) <= 300


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("not json", "cannot read"),
        ("[1, 2]", "cannot read"),
        (collection(({"c": "999"}, None)), "no attribute"),
        (collection(({"c": "002"}, None)), "have no polygons"),
        (collection(({"c": "002"}, {"type": "Point", "coordinates": [1, 2]})), "have no polygons"),
        (
            collection(({"c": "002"}, {"type": "Polygon", "coordinates": [square(5e5, 4e6)]})),
            "is not in degrees",
        ),
    ],
)
def test_a_file_that_does_not_fit_is_refused(file, content, message):
    with pytest.raises(InftdaError, match=message):
        read_shapes(gazetteer(), file(content))


def test_outlines_that_come_with_the_areas_need_no_file():
    isles = [shapely.box(177, -18, 179, -16), None, shapely.box(-180, -18, -179, -16)]
    outlines = pa.array(shapely.to_wkb(np.array(isles, object), byte_order=1), pa.binary())
    at = np.array([178.0, np.nan, -179.5]), np.array([-17.0, np.nan, -17.0])
    fiji = gazetteer(AREAS.with_places(Places(lon=at[0], lat=at[1], outlines=outlines)))
    found = known_shapes(fiji)
    assert (found.axis, found.level, found.areas) == (0, 2, [0, 2])
    west, east = (ring[:, 0].mean() / found.scale for ring in found.rings)
    assert east - west == pytest.approx(2.5, abs=0.1), "next to each other on the map"
    assert known_shapes(gazetteer()) is None
