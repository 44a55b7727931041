"""Pages for the browser to open."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from chromium import open_browser

from inftda.hierarchy import Hierarchy
from inftda.lab.generators.country import make_country
from inftda.noise.entropy import SeededSource
from inftda.publish import release
from inftda.reports.confidential import write_confidential_page
from inftda.reports.page import Files, write_page

HOSTILE = "</script><script>window.hacked=1</script>"
HOSTILE_NAME = '<img src=x onerror="window.hacked=2">'


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    profile, downloads = (tmp_path_factory.mktemp(name) for name in ("profile", "downloads"))
    with open_browser(profile, downloads) as opened:
        yield opened


@pytest.fixture(scope="session")
def made():
    """A country of three levels and its release."""
    country = make_country((4, 12, 90), 60_000)
    released = release(
        country.flows(), country.areas, epsilon=2, delta=1e-6, source=SeededSource(1)
    )
    return country, released


def labelled(areas: Hierarchy, folder: Path) -> Files:
    """Names, places and outlines for the finest areas, one of each kind missing."""
    codes = areas.codes(areas.depth).to_pylist()
    at = {code: (8 + i % 10 / 5, 44 + i // 10 / 5) for i, code in enumerate(codes)}
    rows = [f"{code},Tòwn {code},{lon},{lat}" for code, (lon, lat) in at.items()]
    rows[-1] = f"{codes[-1]},,,"
    (folder / "c.csv").write_text("\n".join(["municipality,name,lon,lat", *rows]), "utf-8")
    (folder / "n.csv").write_text(
        "level,code,name\nregion,1,Northland\nregion,2,Südland\n", "utf-8"
    )
    features = [
        {
            "type": "Feature",
            "properties": {"code": code},
            "geometry": {
                "type": "Polygon",
                "coordinates": [
                    [[x - 0.1, y - 0.1], [x + 0.1, y - 0.1], [x, y + 0.1], [x - 0.1, y - 0.1]]
                ],
            },
        }
        for code, (x, y) in at.items()
    ]
    (folder / "g.json").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return Files(folder / "n.csv", folder / "c.csv", folder / "g.json")


@pytest.fixture(scope="session")
def page(made, tmp_path_factory):
    country, released = made
    folder = tmp_path_factory.mktemp("page")
    return write_page(released, folder / "page.html", files=labelled(country.areas, folder), runs=3)


@pytest.fixture(scope="session")
def plain_page(tmp_path_factory):
    """One axis: nothing to lay out."""
    disease = Hierarchy.read({"chapter": ["A", "A", "B"], "disease": ["A1", "A2", "B1"]})
    table = pa.table({"disease": ["A1", "A2", "B1"], "count": [900, 400, 300]})
    released = release(
        table, axes={"disease": disease}, epsilon=1, delta=1e-6, source=SeededSource(1)
    )
    return write_page(released, tmp_path_factory.mktemp("plain") / "page.html", runs=2)


@pytest.fixture(scope="session")
def by_mode():
    """Trips between 24 towns by two modes, the totals across not measured."""
    country = make_country((3, 24), 40_000)
    flows = country.flows()
    modes = ["car" if i % 3 else "ferry" for i in range(len(flows))]
    axes = {
        "origin": country.areas,
        "destination": country.areas,
        "mode": Hierarchy.read({"mode": ["car", "ferry"]}),
    }
    budget = {"epsilon": 1, "delta": 1e-6, "source": SeededSource(1)}
    table = flows.append_column("mode", pa.array(modes))
    return {across: release(table, axes=axes, **budget, across=across) for across in (0, 0.08)}


@pytest.fixture(scope="session")
def hostile_page(tmp_path_factory):
    return write_hostile_page(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="session")
def hostile_page_with_formulas(tmp_path_factory):
    return write_hostile_page(tmp_path_factory.mktemp("hostile"), keep_formulas=True)


def write_hostile_page(folder, **options):
    areas = Hierarchy.read({"<i>top": ["<b>", "<b>", "c"], "</title>": [HOSTILE, '",=1', "x"]})
    codes = [HOSTILE, '",=1', "x"]
    flows = pa.table(
        {"origin": codes * 2, "destination": [HOSTILE] * 3 + codes, "count": [900] * 6}
    )
    (folder / "n.csv").write_text(
        'level,code,name\n<i>top,c,"' + HOSTILE_NAME.replace('"', '""') + '"\n'
    )
    released = release(flows, areas, epsilon=5, delta=1e-6, source=SeededSource(1))
    files = Files(folder / "n.csv")
    return write_page(released, folder / "page.html", title=HOSTILE, files=files, runs=1, **options)


@pytest.fixture(scope="session")
def confidential_page(made, tmp_path_factory):
    country, released = made
    measures = [{"name": "all > all", "max_abs_error": 3, "false_discovery_rate": 0.5}]
    out = tmp_path_factory.mktemp("confidential") / "page.html"
    return write_confidential_page(released, country.flows(), measures, out)
