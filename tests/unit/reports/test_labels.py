import struct

import numpy as np
import pyarrow as pa
import pytest

from inftda.errors import InftdaError
from inftda.hierarchy import Hierarchy
from inftda.places import Places
from inftda.reports.labels import Labels
from inftda.reports.shapes import known_shapes
from inftda.tree import Tree, build_tree

AREAS = Hierarchy.read({"region": ["N", "N", "S"], "town": ["001", "002", "003"]})
TREE = Tree.destination_first(AREAS)


@pytest.fixture
def file(tmp_path):
    def write(content, name="file.csv"):
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return path

    return write


def test_names_are_found_by_level_and_code(file):
    labels = Labels()
    labels.add_names(TREE, file("level,code,name\nregion,N,North\ntown,002,Twò\ntown,999,?\n"))
    assert labels.names[0, 1] == labels.names[1, 1] == ["North", None]
    assert labels.names[0, 2] == [None, "Twò", None]


def test_names_of_other_levels_are_left_alone(file):
    labels = Labels()
    labels.add_names(TREE, file("level,code,name\ncontinent,N,Europe\nregion,S,South\n"))
    assert labels.names == {(0, 1): [None, "South"], (1, 1): [None, "South"]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("level,code,name\nregion,X,Nowhere\n", "no area of 'file.csv' .* region"),
        ("code,name\nN,North\n", "no column 'level'"),
    ],
)
def test_a_names_file_that_does_not_fit_is_refused(file, content, message):
    with pytest.raises(InftdaError, match=message):
        Labels().add_names(TREE, file(content))


def test_centroids_bring_places_and_names_where_there_are_none(file):
    labels = Labels()
    labels.add_names(TREE, file("level,code,name\ntown,001,One\n", "names.csv"))
    labels.add_centroids(TREE, file("town,name,lon,lat\n001,Uno,7.5,45\n002,Due,8,46\n003,,,\n"))
    assert labels.names[0, 2] == ["One", "Due", None]
    lon, lat = labels.places[0]
    np.testing.assert_array_equal(lon, np.array([7.5, 8, np.nan], np.float32))
    np.testing.assert_array_equal(lat, np.array([45, 46, np.nan], np.float32))


def test_places_of_a_coarse_level_are_those_of_all_in_it(file):
    labels = Labels()
    labels.add_centroids(TREE, file("region,lon,lat\nN,1,2\nS,3,4\n"))
    np.testing.assert_array_equal(labels.places[1][0], np.array([1, 1, 3], np.float32))


def test_what_the_release_knows_fills_the_gaps_of_the_files(tmp_path):
    """Names, locations and outlines that travel with the areas need no file."""
    square = struct.pack("<BIII10d", 1, 3, 1, 5, 0, 0, 2, 0, 2, 2, 0, 2, 0, 0)
    places = Places(
        names={"town": pa.array(["Aix", "Bex", None])},
        lon=np.array([5.0, np.nan, 7.0]),
        lat=np.array([44.0, np.nan, 46.0]),
        outlines=pa.array([None, square, None], pa.binary()),
    )
    areas = Hierarchy.read({"land": ["x", "x", "y"], "town": ["a", "b", "c"]}).with_places(places)
    tree = build_tree(areas)
    (tmp_path / "n.csv").write_text("level,code,name\ntown,a,Other\n")
    labels = Labels()
    labels.add_names(tree, tmp_path / "n.csv")
    labels.add_known(tree)
    shapes = known_shapes(tree, labels)
    assert labels.names[0, 2] == ["Other", "Bex", None]
    assert labels.names[1, 2] == ["Other", "Bex", None]
    assert shapes is not None
    assert (shapes.axis, shapes.level, shapes.areas) == (0, 2, [1])
    for axis in (0, 1):
        lon, lat = labels.places[axis]
        assert lon.tolist() == [5, 1, 7]
        assert lat.tolist() == [44, 1, 46]
    assert known_shapes(build_tree(Hierarchy.read({"town": ["a"]})), labels) is None
