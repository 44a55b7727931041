"""A real browser for the pages, and pages for it to open.

Without a browser these tests are skipped, and the summary says so in capital letters.
"""

import json
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pytest

from inftda.experiments.country import make_country
from inftda.hierarchy import Hierarchy
from inftda.noise.entropy import SeededSource
from inftda.publish import release
from inftda.report.confidential import write_confidential_page
from inftda.report.page import Files, write_page

LOUD = (
    "\n" + "!" * 90 + "\n!!  THE PAGES WERE NOT TESTED IN A BROWSER: {}.\n"
    "!!  Install chromium, chromium-driver (Debian) and selenium, and run again.\n" + "!" * 90
)
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--lang=en",
)
HOSTILE = "</script><script>window.hacked=1</script>"
HOSTILE_NAME = '<img src=x onerror="window.hacked=2">'


class Browser:
    """What the tests do with a page: open it, look at it, use mouse and keyboard."""

    def __init__(self, driver, downloads):
        from selenium.webdriver import ActionChains  # noqa: PLC0415 - optional
        from selenium.webdriver.common.by import By  # noqa: PLC0415
        from selenium.webdriver.common.keys import Keys  # noqa: PLC0415

        self.driver, self.downloads, self.keys = driver, downloads, Keys
        self._by, self._chains = By, ActionChains

    def open(self, path, address="", *, width=1280, height=900, dark=False):
        self.set_size(width, height)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get(path.as_uri() + address)
        self.wait(lambda: self.run("return document.documentElement.dataset.ready"))
        return int(self.run("return document.documentElement.dataset.ready"))

    def set_size(self, width, height):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def all(self, selector):
        return self.driver.find_elements(self._by.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.driver.find_element(self._by.CSS_SELECTOR, selector)

    def texts(self, selector):
        """Texts of all elements, also those out of sight."""
        return self.run(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)",
            selector,
        )

    def click(self, selector):
        element = self.one(selector)
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def type(self, *keys):
        """Send keys to whatever has the focus."""
        self._chains(self.driver).send_keys(*keys).perform()

    def wait(self, condition, seconds=15):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "the page did not get there"
            time.sleep(0.02)

    def downloaded(self, selector="#download"):
        """Name and text of the file that a click gives."""
        before = set(self.downloads.iterdir())
        self.click(selector)

        def new():
            found = set(self.downloads.iterdir()) - before
            return [path for path in found if path.suffix == ".csv"]

        self.wait(new)
        path = new()[0]
        return path.name, path.read_text(encoding="utf-8")

    @property
    def complaints(self):
        """Everything in the console."""
        return self.driver.get_log("browser")


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver_path = shutil.which("chromedriver")
    if not chromium or not driver_path:
        pytest.skip(LOUD.format("there is no chromium or no chromedriver"))
    try:
        from selenium import webdriver  # noqa: PLC0415 - optional
    except ImportError:
        pytest.skip(LOUD.format("selenium is not installed"))
    downloads = tmp_path_factory.mktemp("downloads")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_path))
    try:
        yield Browser(driver, downloads)
    finally:
        driver.quit()


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
    axes = {
        "disease": Hierarchy.read({"chapter": ["A", "A", "B"], "disease": ["A1", "A2", "B1"]}),
        "sex": Hierarchy.read({"sex": ["f", "m"]}),
        "age": Hierarchy.read({"age": ["young", "old"]}),
    }
    cells = [(d, s, a) for d in ("A1", "A2", "B1") for s in "fm" for a in ("young", "old")]
    columns = dict(zip(axes, zip(*cells, strict=True), strict=True))
    table = pa.table({**columns, "count": [100 * i for i in range(1, 13)]})
    released = release(table, axes=axes, epsilon=1, delta=1e-6, source=SeededSource(1))
    return write_page(released, tmp_path_factory.mktemp("plain") / "page.html", runs=2)


@pytest.fixture(scope="session")
def hostile_page(tmp_path_factory):
    areas = Hierarchy.read({"<i>top": ["<b>", "<b>", "c"], "</title>": [HOSTILE, '",=1', "x"]})
    codes = [HOSTILE, '",=1', "x"]
    flows = pa.table(
        {"origin": codes * 2, "destination": [HOSTILE] * 3 + codes, "count": [900] * 6}
    )
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "n.csv").write_text(f"level,code,name\n<i>top,c,{HOSTILE_NAME.replace(',', '')}\n")
    (folder / "n.csv").write_text(
        'level,code,name\n<i>top,c,"' + HOSTILE_NAME.replace('"', '""') + '"\n'
    )
    released = release(flows, areas, epsilon=5, delta=1e-6, source=SeededSource(1))
    return write_page(
        released, folder / "page.html", title=HOSTILE, files=Files(folder / "n.csv"), runs=1
    )


@pytest.fixture(scope="session")
def confidential_page(made, tmp_path_factory):
    country, released = made
    measures = [{"name": "all > all", "max_abs_error": 3, "false_discovery_rate": 0.5}]
    out = tmp_path_factory.mktemp("confidential") / "page.html"
    return write_confidential_page(released, country.flows(), measures, out)
