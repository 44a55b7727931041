import json

import numpy as np
import pytest

from inftda.errors import InftdaError
from inftda.hierarchy import Hierarchy
from inftda.reports import shapes
from inftda.reports.labels import Labels
from inftda.reports.shapes import read_shapes
from inftda.tree import Tree

AREAS = Hierarchy.read({"region": ["N", "N", "S"], "town": ["001", "002", "003"]})
TREE = Tree.destination_first(AREAS)


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
    labels = Labels()
    found = read_shapes(TREE, file(content), labels)
    assert (found.axis, found.level, found.areas) == (0, 2, [1, 2])
    np.testing.assert_allclose(found.rings[0].mean(axis=0) / found.scale, [10.5, 40.5], atol=0.01)
    # Places come from the outlines, for both ends of a trip.
    for axis in (0, 1):
        lon, lat = labels.places[axis]
        np.testing.assert_allclose(lon[1:], [10.5, 12.5])
        np.testing.assert_allclose(lat[1:], [40.5, 44.5])
        assert np.isnan(lon[0])


def test_places_of_the_centroids_file_are_kept(file, tmp_path):
    (tmp_path / "c.csv").write_text("town,lon,lat\n002,9,39\n")
    labels = Labels()
    labels.add_centroids(TREE, tmp_path / "c.csv")
    read_shapes(
        TREE,
        file(collection(({"c": "002"}, {"type": "Polygon", "coordinates": [square(10, 40)]}))),
        labels,
    )
    assert labels.places[0][0][1] == 9


def test_an_area_of_several_parts_lies_in_its_largest(file):
    parts = [[square(0, 0, 0.1)], [square(5, 5, 2.0)]]
    content = collection(({"c": "S"}, {"type": "MultiPolygon", "coordinates": parts}))
    labels = Labels()
    found = read_shapes(TREE, file(content), labels)
    assert (found.level, found.areas) == (1, [1, 1])
    assert labels.places[0][0][2] == pytest.approx(6.0)


def test_rings_come_back_from_their_steps(file):
    content = collection(({"c": "002"}, {"type": "Polygon", "coordinates": [square(-3, -2)]}))
    found = read_shapes(TREE, file(content), Labels())
    numbers = found.numbers()
    assert numbers[0] == len(found.rings[0])
    np.testing.assert_array_equal(np.cumsum(numbers[1:].reshape(-1, 2), axis=0), found.rings[0])


def test_many_points_are_thinned_out(file, monkeypatch):
    monkeypatch.setattr(shapes, "MAX_POINTS", 300)
    monkeypatch.setattr(shapes, "COARSEST_GRID", 16)
    angle = np.linspace(0, 2 * np.pi, 5000)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1).tolist()
    found = read_shapes(
        TREE, file(collection(({"c": "002"}, {"type": "Polygon", "coordinates": [ring]}))), Labels()
    )
    assert 30 < sum(map(len, found.rings)) <= 300


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("not json", "is not GeoJSON"),
        ("[1, 2]", "is not GeoJSON"),
        (collection(({"c": "999"}, None)), "no property"),
        (collection(({"c": "002"}, None)), "have no polygons"),
        (collection(({"c": "002"}, {"type": "Point", "coordinates": [1, 2]})), "have no polygons"),
        (
            collection(({"c": "002"}, {"type": "Polygon", "coordinates": [square(5e5, 4e6)]})),
            "must be in degrees",
        ),
    ],
)
def test_a_file_that_does_not_fit_is_refused(file, content, message):
    with pytest.raises(InftdaError, match=message):
        read_shapes(TREE, file(content), Labels())
