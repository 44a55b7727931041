"""Names and locations: from files, from the areas themselves, and across 180 degrees."""

import numpy as np
import pyarrow as pa
import pytest

from inftda.areas.locations import Gazetteer, from_seam, middles, short_way
from inftda.errors import InftdaError
from inftda.tree.hierarchy import Hierarchy
from inftda.tree.places import Places

AREAS = Hierarchy.read({"region": ["N", "N", "S"], "town": ["001", "002", "003"]})


def gazetteer(areas=AREAS, **files):
    return Gazetteer.of([areas, areas], **files)


@pytest.fixture
def file(tmp_path):
    def write(content):
        path = tmp_path / "file.csv"
        path.write_text(content, encoding="utf-8")
        return path

    return write


def test_names_are_found_by_level_and_code(file):
    known = gazetteer(names=file("level,code,name\nregion,N,North\ntown,002,Twò\nland,N,?\n"))
    assert known.names == {
        (axis, level): names
        for axis in (0, 1)
        for level, names in ((2, [None, "Twò", None]), (1, ["North", None]))
    }
    assert known.name(0, 2).to_pylist() == ["001", "Twò", "003"]


def test_centroids_bring_locations_and_names_where_there_are_none(file):
    known = gazetteer(
        names={"level": ["town"], "code": ["001"], "name": ["One"]},
        centroids=file("town,name,lon,lat\n001,Uno,7.5,45\n002,Due,8,46\n003,,,\n"),
    )
    assert known.names[0, 2] == ["One", "Due", None]
    np.testing.assert_array_equal(known.finest[1], [[7.5, 8, np.nan], [45, 46, np.nan]])


def test_the_location_of_a_coarse_area_is_that_of_all_in_it(file):
    known = gazetteer(centroids=file("region,lon,lat\nN,1,2\nS,3,4\n"))
    assert known.finest[1][0].tolist() == [1, 1, 3]


@pytest.mark.parametrize(
    ("given", "content", "message"),
    [
        ("names", "level,code,name\nregion,X,Nowhere\n", "no area of 'file.csv' .* region"),
        ("names", "code,name\nN,North\n", "no column 'level'"),
        ("centroids", "town,lon,lat\n001,east,45\n", "column 'lon' .* got 'east' in row 1"),
        ("centroids", "town,lon,lat\n001,7,95\n", "'lat' .* between -90 and 90, .* got '95'"),
        ("centroids", "town,x,lat\n001,7,45\n", "no column 'lon'"),
        ("centroids", "city,lon,lat\n001,7,45\n", r"one of the levels \(town, region\)"),
        ("centroids", "town,lon,lat\n999,7,45\n", "no area of"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(file, given, content, message):
    with pytest.raises(InftdaError, match=message):
        gazetteer(**{given: file(content)})


def test_what_the_areas_bring_fills_the_gaps_of_the_files(file):
    places = Places(
        names={"town": pa.array(["Aix", "Bex", None])},
        lon=np.array([5.0, np.nan, 7.0]),
        lat=np.array([44.0, np.nan, 46.0]),
    )
    areas = AREAS.with_places(places)
    known = gazetteer(areas, centroids=file("town,name,lon,lat\n001,Other,1,2\n"))
    assert known.names[1, 2] == ["Other", "Bex", None]
    np.testing.assert_array_equal(known.finest[0], [[1, np.nan, 7], [2, np.nan, 46]])
    known.locate(0, 1, np.array([0, -1]), (np.array([9.0, 8.0]), np.array([9.0, 8.0])))
    np.testing.assert_array_equal(known.finest[0], [[1, 9, 7], [2, 9, 46]])
    assert not gazetteer().has([0])


def test_places_around_180_degrees_are_next_to_each_other():
    isles = Hierarchy.read({"land": ["a", "a", "b"], "isle": ["1", "2", "3"]})
    at = np.array([179.0, -179.0, np.nan]), np.array([10.0, 10.0, np.nan])
    lon, lat = middles(isles, 1, at)
    assert (abs(lon[0]), lat[0]) == pytest.approx((180, 10), abs=0.01)
    assert np.isnan(lon[1])
    assert short_way(np.array([179.0]), np.array([-179.0])) == [181]
    fiji = Gazetteer((isles,), finest={0: at})
    assert np.ptp(from_seam(at[0], fiji.seam)[:2]) == pytest.approx(2)
    europe = Gazetteer((isles,), finest={0: (np.array([-9.0, 30.0, np.nan]), at[1])})
    assert from_seam(europe.finest[0][0], europe.seam)[:2].tolist() == [-9, 30]
    assert Gazetteer((isles,)).seam == -180
