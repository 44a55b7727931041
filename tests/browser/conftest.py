"""Pages for the browser to open."""

import pyarrow as pa
import pytest
from chromium import open_browser
from page_files import labelled

from inftda.confidential.evaluate import write_confidential_page
from inftda.demo import make_country
from inftda.noise.bits import SeededSource
from inftda.pages.report import report
from inftda.pipeline import release
from inftda.reading.truth import Truth
from inftda.tree.hierarchy import Hierarchy

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


@pytest.fixture(scope="session")
def page(made, tmp_path_factory):
    country, released = made
    folder = tmp_path_factory.mktemp("page")
    return report(released, folder / "page.html", **labelled(country.areas, folder))


@pytest.fixture(scope="session")
def plain_page(tmp_path_factory):
    """One axis: nothing to lay out."""
    disease = Hierarchy.read({"chapter": ["A", "A", "B"], "disease": ["A1", "A2", "B1"]})
    table = pa.table({"disease": ["A1", "A2", "B1"], "count": [900, 400, 300]})
    released = release(
        table, axis={"disease": disease}, epsilon=1, delta=1e-6, source=SeededSource(1)
    )
    return report(released, tmp_path_factory.mktemp("plain") / "page.html")


@pytest.fixture(scope="session")
def by_mode():
    """Trips between 24 towns by two modes."""
    country = make_country((3, 24), 40_000)
    flows = country.flows()
    modes = ["car" if i % 3 else "ferry" for i in range(len(flows))]
    axes = {
        "origin": country.areas,
        "destination": country.areas,
        "mode": Hierarchy.read({"mode": ["car", "ferry"]}),
    }
    table = flows.append_column("mode", pa.array(modes))
    return release(table, axis=axes, epsilon=1, delta=1e-6, source=SeededSource(1))


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
        {"origin": codes * 2, "destination": [HOSTILE] * 3 + codes, "count": [*range(900, 906)]}
    )
    (folder / "n.csv").write_text(
        'level,code,name\n<i>top,c,"' + HOSTILE_NAME.replace('"', '""') + '"\n'
    )
    released = release(flows, areas, epsilon=5, delta=1e-6, source=SeededSource(1))
    return report(released, folder / "page.html", title=HOSTILE, names=folder / "n.csv", **options)


@pytest.fixture(scope="session")
def confidential_page(made, tmp_path_factory):
    country, released = made
    measures = [{"name": "all > all", "max_abs_error": 3, "false_discovery_rate": 0.5}]
    out = tmp_path_factory.mktemp("confidential") / "page.html"
    areas = [country.origin, country.destination]
    truth = Truth.from_leaves(released.tree, areas, country.count)
    return write_confidential_page(released, truth, measures, out)
