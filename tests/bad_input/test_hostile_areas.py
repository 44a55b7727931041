"""Files of areas that are programs: they must read nothing but themselves.

The names of areas are published. A file that could fill them from another file would publish it.
"""

import json
import random
import sqlite3
import threading
from contextlib import closing, suppress
from socket import create_server

import geopandas as gpd
import pyogrio
import pytest
import shapely

from inftda.areas.grids import h3_areas
from inftda.areas.reader import read_areas
from inftda.errors import HierarchyError
from tiers import some

SQUARE = shapely.box(0, 0, 1, 1)
FRAME = gpd.GeoDataFrame({"town": ["1"]}, geometry=[SQUARE], crs=4326)
VRT = """<OGRVRTDataSource><OGRVRTLayer name="towns"><SrcDataSource>{}</SrcDataSource>
<SrcSQL>SELECT town FROM trips</SrcSQL></OGRVRTLayer></OGRVRTDataSource>"""


def algorithm(source):
    line = f"gdal vector pipeline ! read {source} ! write --of=stream -"
    return json.dumps({"type": "gdal_streamed_alg", "command_line": line})


def collection(town="1", **members):
    feature = {
        "type": "Feature",
        "properties": {"town": town},
        "geometry": SQUARE.__geo_interface__,
    }
    return json.dumps({"type": "FeatureCollection", "features": [feature], **members})


@pytest.fixture
def secret(tmp_path):
    path = tmp_path / "trips.geojson"
    path.write_text(collection(town="alice", name="trips"))
    return path


@pytest.fixture
def listener():
    """An address, and the connections that were made to it."""
    made = []
    with create_server(("127.0.0.1", 0)) as listening:

        def answer():
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                made.append(connection)
                connection.close()

        threading.Thread(target=answer, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", made


def refuse(path, secret=None):
    for read in (lambda: read_areas(path, levels=["town"]), lambda: h3_areas(path, [3])):
        with pytest.raises(HierarchyError, match=path.name) as found:
            read()
        assert secret is None or "alice" not in str(found.value)


@pytest.mark.parametrize("ending", ["geojson", "json", "gpkg", "shp", "fgb"])
@pytest.mark.parametrize("program", [VRT.format, algorithm], ids=["vrt", "gdalg"])
def test_a_program_is_not_run_whatever_its_ending(tmp_path, secret, ending, program):
    path = tmp_path / f"towns.{ending}"
    path.write_text(program(secret))
    refuse(path, secret)


@pytest.mark.parametrize("start", [b"fgb\x03fgb\x01\x01\x01\x01\x01", b"\x00\x00\x27\x0a"])
def test_a_program_behind_the_first_bytes_of_a_format_is_not_run(tmp_path, secret, start):
    path = tmp_path / ("towns.fgb" if start.startswith(b"f") else "towns.shp")
    path.write_bytes(start + VRT.format(secret).encode())
    refuse(path, secret)


@pytest.mark.parametrize(
    "content",
    [
        lambda address: VRT.format(f"/vsicurl/{address}/towns.geojson"),
        lambda address: algorithm(f"/vsicurl/{address}/towns.geojson"),
        lambda address: collection(
            crs={"type": "link", "properties": {"href": f"{address}/crs", "type": "proj4"}}
        ),
        lambda address: collection(crs={"type": "url", "properties": {"url": f"{address}/crs"}}),
        lambda address: collection(crs={"type": "name", "properties": {"name": f"{address}/crs"}}),
    ],
    ids=["vrt", "gdalg", "linked system", "system at a url", "system named by a url"],
)
def test_nothing_is_fetched_for_a_file(tmp_path, listener, content):
    address, made = listener
    path = tmp_path / "towns.geojson"
    path.write_text(content(address))
    refuse(path)
    assert not made


def test_a_system_of_flatgeobuf_is_not_fetched(tmp_path, listener):
    address, made = listener
    host, port = address.rsplit(":", 1)
    system = (
        'GEOGCS["x",DATUM["y",SPHEROID["z",6378137,298.257]],PRIMEM["Greenwich",0],'
        f'UNIT["degree",0.0174532925199433],AUTHORITY["{host}","{port}"]]'
    )
    path = tmp_path / "towns.fgb"
    pyogrio.write_dataframe(FRAME.set_crs(system, allow_override=True), path)
    assert host.encode() in path.read_bytes()
    read_areas(path, levels=["town"])
    assert not made


def test_a_system_that_opens_a_file_is_refused(tmp_path):
    (tmp_path / "systems").write_text("<own> +proj=longlat +datum=WGS84 <>\n")
    for name in (f"+init={tmp_path}/systems:own", "+proj=longlat +ellps=bessel +nadgrids=mine.gsb"):
        path = tmp_path / "towns.geojson"
        path.write_text(collection(crs={"type": "name", "properties": {"name": name}}))
        refuse(path)


GEOPACKAGES = {
    "a view": "CREATE VIEW hidden AS SELECT * FROM plain",
    "a view that runs a function": "CREATE VIEW hidden AS SELECT fid, geom, "
    "gdal_get_pixel_value('x', 1, 'pixel', 0, 0) AS town FROM plain",
    "a view without an end": "CREATE VIEW hidden AS WITH RECURSIVE n(town) AS (SELECT 1 UNION ALL "
    "SELECT town + 1 FROM n) SELECT 1 AS fid, NULL AS geom, town FROM n",
    "a computed column": "CREATE TABLE hidden (fid INTEGER PRIMARY KEY, geom BLOB, "
    "town TEXT AS (hex(zeroblob(100))))",
}


@pytest.mark.parametrize("what", GEOPACKAGES)
def test_a_geopackage_that_computes_is_refused(tmp_path, what):
    path = tmp_path / "towns.gpkg"
    FRAME.to_file(path, layer="plain")
    with closing(sqlite3.connect(path)) as database:
        database.execute(GEOPACKAGES[what])
        for table in ("gpkg_contents", "gpkg_geometry_columns"):
            database.execute(f"UPDATE {table} SET table_name = 'hidden'")
        database.commit()
    refuse(path)


def test_files_beside_the_areas_are_not_read(tmp_path):
    """GDAL would take names, systems and rows from them."""
    path = tmp_path / "towns.gpkg"
    FRAME.to_file(path, layer="plain")
    with closing(sqlite3.connect(path)) as database:
        triggers = database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (name,) in triggers.fetchall():
            database.execute(f'DROP TRIGGER "{name}"')
        database.commit()
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA wal_autocheckpoint = 0")
        database.execute("UPDATE plain SET town = 'planted'")
        database.commit()
        refuse(path)
    assert read_areas(path, levels=["town"]).n_areas(1) == 1
    shapes = tmp_path / "zones.shp"
    FRAME.to_file(shapes)
    seen = []
    original = pyogrio.raw.read
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            pyogrio.raw,
            "read",
            lambda copy: (
                seen.extend(file.suffix for file in copy.parent.iterdir()) or original(copy)
            ),
        )
        for ending in (".shp.aux.xml", ".qix", ".sbn", ".vrt", ".csv"):
            (tmp_path / f"zones{ending}").write_text(VRT)
        read_areas(shapes, levels=["town"])
    assert {*seen} == {".shp", ".shx", ".dbf", ".prj", ".cpg"}
    elsewhere = shapes.with_suffix(".dbf").rename(tmp_path / "trips.dbf")
    shapes.with_suffix(".dbf").symlink_to(elsewhere)
    refuse(shapes)


@pytest.mark.parametrize("deep", ["geometry", "properties", "other"])
def test_deeply_nested_geojson_is_refused_or_read(tmp_path, deep):
    path = tmp_path / "towns.geojson"
    nest = "[" * 100_000 + "]" * 100_000
    feature = {"type": "Feature", "properties": {"town": "1"}, "geometry": None, deep: "NEST"}
    path.write_text(json.dumps(feature).replace('"NEST"', nest))
    refuse(path)


@pytest.mark.parametrize("ending", ["geojson", "gpkg", "shp", "fgb"])
def test_a_damaged_file_is_read_or_refused_and_nothing_else(tmp_path, ending):
    path = tmp_path / f"towns.{ending}"
    FRAME.to_file(path)
    whole = {file: file.read_bytes() for file in tmp_path.iterdir()}
    rng = random.Random(ending)
    for _ in range(some(120)):
        for file, content in whole.items():
            damaged = bytearray(content)
            for _ in range(rng.choice([0, 1, 5, 30])):
                damaged[rng.randrange(len(damaged))] = rng.choice([0, 255, rng.randrange(256)])
            file.write_bytes(damaged[: rng.choice([None, None, rng.randrange(len(damaged))])])
        with suppress(HierarchyError):
            read_areas(path, levels=["town"])
