"""`inftda areas`, and the options that go with points and levels."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from inftda.areas.reader import read_areas

CITY = {
    "type": "Polygon",
    "coordinates": [[[12.4, 41.8], [12.6, 41.8], [12.6, 42.0], [12.4, 42.0], [12.4, 41.8]]],
}
NYC = Path(__file__).parents[3] / "shared/data/nyc_green_taxi/zones.gpkg"


@pytest.fixture
def city(tmp_path):
    path = tmp_path / "city.geojson"
    path.write_text(json.dumps({"type": "Feature", "properties": {}, "geometry": CITY}))
    return path


def test_cells_are_made_and_shown(cli, city, tmp_path):
    for kind, sizes in (("h3", ("--resolutions", "5,6")), ("grid", ("--sizes", "8000,4000"))):
        out = tmp_path / f"{kind}.csv"
        done = cli("areas", kind, city, *sizes, "--out", out)
        assert done.code == 0, done.err
        assert "follows from the outline, not from any trips" in done.out
        assert read_areas(out).depth == 2
        shown = cli("areas", "show", out, "--rho", "1/2")
        assert shown.code == 0, shown.err
        assert "per parent" in shown.out
        assert "max error" in shown.out
        assert cli("areas", "show", out, "--epsilon", "0").code == 2


def test_nothing_is_replaced_or_half_written(cli, city, tmp_path):
    out = tmp_path / "areas.csv"
    out.write_text("mine")
    done = cli("areas", "h3", city, "--resolutions", "5", "--out", out)
    assert (done.code, out.read_text()) == (2, "mine")
    assert cli("areas", "h3", city, "--resolutions", "five", "--out", tmp_path / "x.csv").code == 2
    assert cli("areas", "grid", out, "--sizes", "500", "--out", tmp_path / "x.csv").code == 2
    assert not (tmp_path / "x.csv").exists()


def test_a_release_by_points_from_a_configuration(cli, city, tmp_path):
    areas = tmp_path / "areas.csv"
    assert cli("areas", "h3", city, "--resolutions", "5", "--out", areas).code == 0
    trips = {"x": [12.45, 12.55] * 9, "y": [41.85, 41.95] * 9, "at": ["2026-05-17 08:30"] * 18}
    pa_csv.write_csv(pa.table(trips | {"u": trips["x"], "v": trips["y"]}), tmp_path / "trips.csv")
    config = tmp_path / "release.toml"
    config.write_text(
        f'areas = "{areas}"\norigin = ["x", "y"]\ndestination = ["u", "v"]\n'
        'levels = ["h3_5"]\nhour = "at"\nweekday = "at"\nrho = "100"\n'
    )
    out = tmp_path / "release"
    done = cli("release", tmp_path / "trips.csv", "--config", config, "--out", out)
    assert done.code == 0, done.err
    done = cli("query", out, "--level", "hour=part_of_day", "--level", "weekday=all", "--names")
    assert "morning" in done.out
    points = ("--origin", "x,y", "--destination", "u,v")
    clocks = ("--hour", "at", "--weekday", "at")
    truth = ("--truth", tmp_path / "trips.csv", "--out", tmp_path / "measures")
    done = cli("evaluate", out, *truth, *points, *clocks)
    assert done.code == 0, done.err


@pytest.mark.data
@pytest.mark.skipif(not NYC.exists(), reason="the public data sets are not here")
def test_taxi_zones_come_from_their_geopackage(cli):
    done = cli("areas", "show", NYC, "--levels", "borough,LocationID=zone")
    assert done.code == 0, done.err
    assert "260 an outline" in done.out
