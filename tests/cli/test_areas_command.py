"""`inftda areas`, and a release by points and times."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from inftda.areas.reader import read_areas

RING = [[12.4, 41.8], [12.6, 41.8], [12.6, 42.0], [12.4, 42.0], [12.4, 41.8]]
NYC = Path(__file__).parents[3] / "shared/data/nyc_green_taxi/zones.gpkg"


@pytest.fixture(autouse=True)
def city(tmp_path):
    outline = {"type": "Polygon", "coordinates": [RING]}
    feature = {"type": "Feature", "properties": {}, "geometry": outline}
    (tmp_path / "city.geojson").write_text(json.dumps(feature))


@pytest.mark.parametrize(
    "cells", ["h3 city.geojson --resolutions 5,6", "grid city.geojson --sizes 8000,4000"]
)
def test_cells_are_made_that_a_plan_takes(done, typed, tmp_path, cells):
    assert "outline" in done(f"areas {cells} --out cells.csv")
    assert read_areas(tmp_path / "cells.csv").depth == 2
    assert "max error" in done("plan --areas cells.csv --rho 1/2")
    (tmp_path / "cells.csv").write_text("mine")
    assert typed(f"areas {cells} --out cells.csv").code == 2
    assert (tmp_path / "cells.csv").read_text() == "mine"


def test_a_release_by_points_from_a_configuration(done, tmp_path):
    done("areas h3 city.geojson --resolutions 5 --out areas.csv")
    trips = {"x": [12.45, 12.55] * 9, "y": [41.85, 41.95] * 9, "at": ["2026-05-17 08:30"] * 18}
    pa_csv.write_csv(pa.table(trips | {"u": trips["x"], "v": trips["y"]}), tmp_path / "trips.csv")
    (tmp_path / "release.toml").write_text(
        'areas = "areas.csv"\norigin = ["x", "y"]\ndestination = ["u", "v"]\n'
        'levels = ["h3_5"]\nhour = "at"\nweekday = "at"\nrho = "100"\n'
    )
    done("release trips.csv --config release.toml --out out")
    assert "morning" in done("query out --level hour=part_of_day --level weekday=all --names")
    ends = "--origin x,y --destination u,v --hour at --weekday at"
    done(f"evaluate out --truth trips.csv --out measures {ends}")


@pytest.mark.data
@pytest.mark.skipif(not NYC.exists(), reason="the public data sets are not here")
def test_taxi_zones_come_from_their_geopackage():
    places = read_areas(NYC, levels={"borough": None, "LocationID": "zone"}).places
    assert len(places.outlines) - places.outlines.null_count == 260
