# ruff: noqa: INP001 - a script of the documentation, not a package
"""The map on the front page: a release of an island that does not exist.

    python docs/front_picture.py

Makes up municipalities with outlines and trips between them, releases them with noise from a
seed, writes the page for readers and photographs its map. Needs `chromium`; writes to `docs/img`.
"""

import shutil
import tempfile
import time
from pathlib import Path

import geopandas
import numpy as np
import shapely
from PIL import Image
from selenium import webdriver

import inftda
from inftda.noise.bits import SeededSource

HERE = Path(__file__).parent / "img"
SIZES = (6, 24, 260)
TRIPS = 400_000
#: Kilometres over which trips fall to a third.
DECAY = 14
#: Kilometres of a degree, where the island lies.
DEGREE = 78.0
WIDTH, HEIGHT = 1000, 1400
#: Where the map stands on a page.
SHOWN = "canvas"


def main() -> None:
    """Make the island, its release, its page, and the picture."""
    random = np.random.default_rng(8)
    areas = island(random)
    with tempfile.TemporaryDirectory() as work:
        made = inftda.release(
            trips(areas, random),
            inftda.read_areas(areas, levels=["region", "province", "municipality"]),
            epsilon=1,
            delta=1e-8,
            source=SeededSource(1),
        )
        page = Path(work) / "page.html"
        inftda.report(made, page, title="Commuting on an island that does not exist")
        photograph(page, HERE / "map.png")


def island(random: np.random.Generator) -> geopandas.GeoDataFrame:
    """Municipalities with outlines: what lies nearest to each of some points."""
    around = np.linspace(0, 2 * np.pi, 240, endpoint=False)
    radius = 1 + sum(
        random.normal(0, 0.22 / wave) * np.sin(wave * around + random.uniform(0, 6))
        for wave in range(2, 12)
    )
    corners = np.column_stack([9 + 1.15 * radius * np.cos(around), 45 + radius * np.sin(around)])
    coast = shapely.Polygon(corners).buffer(0)
    low, high = corners.min(axis=0), corners.max(axis=0)
    tried = random.uniform(low, high, (40 * SIZES[-1], 2))
    inside = tried[shapely.contains_xy(coast, tried)]
    finest = spread(inside, SIZES[-1], random)
    cells = shapely.get_parts(shapely.voronoi_polygons(shapely.MultiPoint(finest), ordered=True))
    codes = {}
    for level, size in zip(("region", "province"), SIZES, strict=False):
        centres = spread(finest, size, random)
        codes[level] = nearest(finest, centres)
    # A province lies in the region of most of its municipalities.
    region = np.array(
        [np.bincount(codes["region"][codes["province"] == one]).argmax() for one in range(SIZES[1])]
    )
    return geopandas.GeoDataFrame(
        {
            "region": [f"R{region[one] + 1}" for one in codes["province"]],
            "province": [f"P{one + 1:02}" for one in codes["province"]],
            "municipality": [f"M{number + 1:03}" for number in range(len(finest))],
        },
        geometry=shapely.intersection(cells, coast),
        crs="EPSG:4326",
    )


def spread(points: np.ndarray, n: int, random: np.random.Generator) -> np.ndarray:
    """Centres of n groups of points: Lloyd's algorithm, some rounds of it."""
    centres = random.choice(points, n, replace=False)
    for _ in range(12):
        group = nearest(points, centres)
        centres = np.array([points[group == one].mean(axis=0) for one in range(n)])
    return centres


def nearest(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Number of the centre that is nearest to each point."""
    return np.linalg.norm(points[:, None] - centres, axis=2).argmin(axis=1)


def trips(areas: geopandas.GeoDataFrame, random: np.random.Generator) -> dict[str, object]:
    """A gravity model: few large towns, and distance."""
    middles = shapely.get_coordinates(shapely.centroid(areas.geometry.to_numpy()))
    people = random.pareto(1.3, len(middles)) + 0.3
    jobs = people**1.15
    away = DEGREE * np.linalg.norm(middles[:, None] - middles, axis=2)
    odds = people[:, None] * jobs * np.exp(-away / DECAY)
    counts = random.multinomial(TRIPS, (odds / odds.sum()).ravel()).reshape(odds.shape)
    origin, destination = np.nonzero(counts)
    codes = areas["municipality"].to_numpy()
    return {
        "origin": codes[origin].tolist(),
        "destination": codes[destination].tolist(),
        "count": counts[origin, destination].tolist(),
    }


def photograph(page: Path, out: Path) -> None:
    """The map of a page, as a browser draws it."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("headless=new", "no-sandbox", "hide-scrollbars", f"window-size={WIDTH},{HEIGHT}"):
        options.add_argument(f"--{flag}")
    with webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver"))) as driver:
        driver.get(f"{page.as_uri()}#/0.0.{len(SIZES)}/0.0.{len(SIZES)}/map")
        time.sleep(2)
        driver.find_element("css selector", SHOWN).screenshot(str(out))
    # Few colours are enough for flat ones, and a third of the bytes.
    Image.open(out).convert("RGB").quantize(128).save(out, optimize=True)


if __name__ == "__main__":
    main()
