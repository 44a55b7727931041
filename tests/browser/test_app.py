"""The app in a real browser: from an empty start to a verified release, by mouse and keyboard."""

import http.server
import json
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from chromium import open_browser, skip_without_browser

import inftda
from app_server import started_app
from inftda.app import server
from inftda.privacy.budget import Budget
from inftda.privacy.ledger import Ledger
from inftda.privacy.unit import Unit
from slow_table import write_slow_table

pytestmark = pytest.mark.slow

skip_without_browser()

AREAS = "region,town\nN,001\nN,002\nS,003\nS,004\n"
FLOWS = "home,work,n\n001,002,300\n003,003,500\n002,004,700\n"
HOSTILE = '<img src=x onerror="window.hacked=1">'
#: Controls without a name for a screen reader.
NAMELESS = """
  return [...document.querySelectorAll('input, select, textarea, button, dialog, iframe, [role]')]
    .filter((e) => !(e.labels?.length || e.getAttribute('aria-label') || e.title
      || document.getElementById(e.getAttribute('aria-labelledby'))
      || e.textContent.trim() || ['status', 'alert'].includes(e.getAttribute('role'))))
    .map((e) => e.outerHTML.slice(0, 120));
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "areas.csv").write_text(AREAS)
    (tmp_path / "flows.csv").write_text(FLOWS)
    ledger = Ledger.create(tmp_path / "our.ledger")
    ledger.add("census", Unit(), Budget.make(epsilon=1, delta=1e-6))
    return tmp_path


@pytest.fixture
def app(folder):
    with started_app(folder) as visitor:
        yield visitor


@pytest.fixture
def page(browser, app):
    return Page(browser, app)


class Page:
    """The app, opened by its address."""

    def __init__(self, browser, app):
        self.browser, self.app, self.keys = browser, app, browser.keys

    def open(self, width=1400, *, dark=False):
        self.browser.set_size(width, 900)
        wishes = [
            {"name": "prefers-reduced-motion", "value": "reduce"},
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
        ]
        self.browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wishes})
        self.browser.driver.get("about:blank")
        self.browser.driver.get_log("browser")
        self.browser.driver.get(self.app.address)
        self.browser.wait(lambda: self.browser.run("return document.documentElement.dataset.ready"))
        return self

    def go(self, step):
        self.browser.click(f".steps [data-step={step}]")

    def put(self, name, text):
        control = self.browser.one(f"#{name}")
        self.browser.run("arguments[0].scrollIntoView({block: 'center'})", control)
        control.clear()
        control.send_keys(text, self.keys.TAB)

    def says(self, selector, words):
        """Wait until a part of the page has some words."""
        self.browser.wait(lambda: words in self.browser.one(selector).text)

    def check(self, width):
        """Nothing is cut off, hard to read, or without a name."""
        browser = self.browser
        assert browser.run("return document.documentElement.scrollWidth") <= width
        assert browser.faint() == []
        assert browser.run(NAMELESS) == []


def chosen(page):
    """All choices of a release, by mouse."""
    page.put("release-flows", "flows.csv")
    page.put("shared-areas", "areas.csv")
    page.says("#guess", "origin: home, destination: work, count: n")
    page.browser.click("#guess button")
    page.says(
        "#meaning", "Areas are in the columns origin in home, destination in work; n has counts"
    )
    page.browser.click("section:not([hidden]) .next button")
    page.says("#unit", "Choose what one person has")
    page.browser.click("[name=card][value=one]")
    page.browser.click("[name=neighbours][value=substitute]")
    page.says("#unit", "A person with exactly 1 trip may be replaced by another")
    page.browser.click("section:not([hidden]) .next button")
    page.says("#plan", "Give delta")
    page.put("shared-delta", "1e-6")
    page.says("#plan", "epsilon = 1, delta = 1e-06")


def in_frame(browser, selector):
    """Whether the page in a frame runs its script, and what it can reach."""
    frame = browser.one(selector)
    browser.driver.switch_to.frame(frame)
    try:
        browser.wait(lambda: browser.run("return document.documentElement.dataset.ready"))
        return browser.driver.execute_async_script(
            """const done = arguments[arguments.length - 1];
               const reached = [];
               try { reached.push(parent.document.title); } catch { /* as it should be */ }
               try { reached.push(document.cookie); } catch { /* as it should be */ }
               fetch(arguments[0]).then(() => reached.push('fetched')).catch(() => {})
                 .finally(() => done([document.querySelector('h1').textContent, reached]));""",
            browser.run("return location.href").replace("shown/report", "state"),
        )
    finally:
        browser.driver.switch_to.default_content()


def written(page, folder, commands):
    """What follows from a release, by its buttons."""
    browser = page.browser
    for command in commands:
        browser.click(f"[data-part={command}] summary")
        browser.click(f"[data-command={command}]")
        browser.wait(lambda command=command: browser.one(f"[data-slot={command}]").text)
        browser.wait(lambda: browser.one("#job").get_attribute("hidden"))
    files = {"report": "made.html", "export": "made-export/datapackage.json",
             "dossier": "made-dossier/registry.yaml"}  # fmt: skip
    assert all((folder / files[command]).exists() for command in commands)


@pytest.mark.parametrize(("width", "dark"), [(1400, False), (420, True)])
def test_the_journey_by_mouse(page, folder, width, dark):
    browser = page.open(width, dark=dark).browser
    page.check(width)
    chosen(page)
    before = browser.texts("#levels td")
    browser.run(
        "arguments[0].value = 0.5; arguments[0].dispatchEvent(new Event('input'));",
        browser.one("#slider"),
    )
    page.says("#plan", "epsilon = 3.2")
    assert browser.texts("#levels td") != before
    page.check(width)
    page.put("shared-epsilon", "1")
    page.says("#plan", "epsilon = 1,")
    page.go("preview")
    page.check(width)
    if width == 1400:
        page.put("preview-stand_in", "flows.csv")
        page.put("preview-runs", "1")
        browser.click("[data-command=preview]")
        browser.wait(lambda: browser.all("iframe[src='shown/preview']"))
    page.go("release")
    page.put("release-out", "made")
    page.put("shared-ledger", "our.ledger")
    page.says("#ledger-again", "Say which data set of the ledger: census.")
    page.put("shared-dataset", "census")
    page.says("#ledger-again", "by 1 release")
    page.says("#sheet", "Type census to release it")
    assert any("\N{NO-BREAK SPACE}%" in text for text in browser.texts("#sheet-rows dd"))
    button = browser.one("#release")
    assert (button.text, button.is_enabled()) == ("Release and spend epsilon 1", False)
    page.put("typed", "Census")
    assert not button.is_enabled()
    page.put("typed", "census")
    page.check(width)
    browser.click("#release")
    browser.wait(lambda: len(browser.all(".checks li")) > 10)
    assert browser.texts(".checks li") == [*inftda.verify(folder / "made")]
    assert len(Ledger(folder / "our.ledger").dataset("census").entries) == 1
    made = ("report", "export", "dossier")[: 3 if width == 1400 else 1]
    written(page, folder, made)
    title, reached = in_frame(browser, "iframe[src='shown/report']")
    assert (title, reached) == ("Trips by origin and destination", [])
    page.check(width)
    page.go("release")
    page.says("#ledger-again", "took the whole budget")
    assert [line["message"] for line in browser.complaints if "/state" not in line["message"]] == []
    origin = browser.run("return location.origin")
    loaded = browser.run("return performance.getEntriesByType('resource').map((e) => e.name)")
    assert [name for name in loaded if not name.startswith((origin, "data:"))] == []
    assert browser.run("return [localStorage.length, sessionStorage.length]") == [0, 0]


def test_the_browser_is_opened_by_a_private_file(browser, app, monkeypatch):
    """Its arguments, which other users of the machine can read, have no token."""
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    with ExitStack() as stack:
        server._open_browser(app.address, stack)
        (address,) = opened
        file = Path(address.removeprefix("file://"))
        assert file.parent.stat().st_mode & 0o077 == 0
        assert app.token not in address
        browser.driver.get(address)
        browser.wait(lambda: browser.run("return document.documentElement.dataset.ready"))
    assert not file.parent.exists()


def reach(page, selector):
    """Press Tab until something has the focus."""
    for _ in range(200):
        if page.browser.run("return document.activeElement.matches(arguments[0])", selector):
            return
        page.browser.type(page.keys.TAB)
    raise AssertionError(f"{selector} cannot be reached by keyboard")


def test_the_journey_by_keyboard(page, folder):
    browser, keys = page.open().browser, page.keys

    def write(selector, *text):
        reach(page, selector)
        browser.type(*text)

    # The chooser of files: a dialog, whose first entry has the focus.
    write("[data-target=release-flows]", keys.ENTER)
    browser.wait(lambda: browser.run("return document.activeElement.textContent") == "areas.csv")
    write("#chooser-list li:nth-child(2) button", keys.ENTER)
    browser.wait(lambda: browser.one("#release-flows").get_attribute("value") == "flows.csv")
    write("#shared-areas", "areas.csv", keys.TAB)
    page.says("#guess", "origin: home")
    write("#guess button", keys.ENTER)
    page.says("#meaning", "n has counts")
    write("section:not([hidden]) .next button", keys.ENTER)
    write("[name=card]", keys.SPACE)
    write("[name=neighbours]", keys.SPACE)
    page.says("#unit", "A person with exactly 1 trip may be replaced by another")
    write("section:not([hidden]) .next button", keys.ENTER)
    write("#slider", keys.ARROW_RIGHT)
    write("#shared-delta", "1e-6", keys.TAB)
    page.says("#plan", "delta = 1e-06")
    write("section:not([hidden]) .next button", keys.ENTER)
    write("section:not([hidden]) .next button", keys.ENTER)
    page.says("#sheet", "Type flows.csv to release it")
    write("#typed", "flows.csv", keys.ENTER)
    browser.wait(lambda: len(browser.all(".checks li")) > 10)
    assert inftda.verify(folder / "release")
    write("#drawer summary", keys.ENTER)
    write("[role=tab]", keys.ARROW_RIGHT)
    page.says("#shown", "inftda.verify(")
    browser.type(keys.ARROW_RIGHT)
    page.says("#shown", "epsilon = 1")
    assert browser.complaints == []


def test_what_is_wrong_is_said_where_it_is(page, folder):
    browser = page.open().browser
    chosen(page)
    page.go("table")
    page.put("shared-origin", "nowhere")
    page.says("#meaning", "has no column 'nowhere'")
    page.says(".steps [data-step=table]", "Something is wrong")
    page.put("shared-origin", "home")
    page.go("budget")
    page.put("shared-delta", "0.5")
    browser.wait(lambda: "wrong" in browser.one("#plan").get_attribute("class"))
    page.says("#plan", "delta")
    page.put("shared-delta", "1e-6")
    page.put("shared-epsilon", "2")
    page.go("release")
    page.put("shared-ledger", "our.ledger")
    page.put("shared-dataset", "census")
    page.says("#ledger-again", "the budget is rho")
    assert not browser.one("#sheet").is_displayed()
    assert not (folder / "release").exists()
    page.go("budget")
    page.put("shared-epsilon", "1")
    page.go("release")
    page.says("#sheet", "Type census")
    # What only the release finds out: the table has a code that is no area.
    (folder / "flows.csv").write_text(FLOWS.replace("004", "009"))
    page.put("typed", "census")
    browser.click("#release")
    browser.wait(lambda: "009" not in browser.one("[data-slot=release]").text
                 and "area" in browser.one("[data-slot=release]").text)  # fmt: skip
    assert Ledger(folder / "our.ledger").dataset("census").entries == ()


def test_polygons_ask_for_levels_in_a_field_that_is_in_sight(page, folder):
    corners = [[0, 0], [1, 0], [1, 1], [0, 0]]
    towns = [
        {
            "type": "Feature",
            "properties": {"region": region, "town": town},
            "geometry": {"type": "Polygon", "coordinates": [[[x + 2 * n, y] for x, y in corners]]},
        }
        for n, (region, town) in enumerate(["Na", "Nb", "Sc"])
    ]
    made = {"type": "FeatureCollection", "features": towns}
    (folder / "areas.geojson").write_text(json.dumps(made))
    page.open().put("shared-areas", "areas.geojson")
    page.says("#areas", "from coarse to fine: --levels. It has region, town")
    assert page.browser.one("#shared-levels").is_displayed()
    page.put("shared-levels", "region,town")
    page.says("#areas", "2 region, 3 town")


def test_a_release_is_cancelled(page, folder):
    write_slow_table(folder)
    (folder / "a.toml").write_text(
        "areas = 'many.csv'\nepsilon = 1\ndelta = 1e-8\nneighbours = 'substitute'\ntrips = 1\n"
        "[release]\nflows = 'long.csv'\nout = 'slow'\n"
    )
    browser = page.open().browser
    browser.click("#open")
    browser.wait(lambda: any(one.text == "a.toml" for one in browser.all("#chooser-list button")))
    next(one for one in browser.all("#chooser-list button") if one.text == "a.toml").click()
    page.says(".steps [data-step=table]", "20,000 town")
    page.go("release")
    page.says("#sheet", "Type long.csv")
    page.put("typed", "long.csv")
    browser.click("#release")
    page.says("#job-says", " of ")
    browser.driver.refresh()  # the job goes on, and the page finds it again
    page.says("#job-says", " of ")
    browser.click("#cancel")
    page.says(
        "[data-slot=release]", "Interrupted; nothing was published and nothing is left on disk"
    )
    assert not (folder / "slow").exists()


def test_names_of_files_columns_and_areas_are_only_text(page, folder):
    (folder / f"{HOSTILE.replace('/', '')}.csv").write_text(AREAS)
    quoted = HOSTILE.replace('"', '""')
    (folder / "flows.csv").write_text(f'"{quoted}",work,n\n001,002,300\n')
    (folder / "areas.csv").write_text(f'"{quoted}",town\n"{quoted}",001\n"{quoted}",002\n')
    browser = page.open().browser
    page.put("release-flows", "flows.csv")
    page.put("shared-areas", "areas.csv")
    page.says("#schema", HOSTILE)
    page.says("#areas", HOSTILE)
    page.put("shared-origin", HOSTILE)
    page.put("shared-destination", "work")
    page.put("shared-count", "n")
    page.says("#meaning", HOSTILE)
    page.go("unit")
    browser.click("[name=card][value=one]")
    browser.click("[name=neighbours][value=add-remove]")
    page.go("budget")
    page.put("shared-delta", "1e-6")
    page.says("#levels", HOSTILE)
    browser.click("#drawer summary")
    page.says("#shown", HOSTILE)
    page.go("table")
    browser.click("#open")
    page.says("#chooser-list", HOSTILE)
    assert browser.run("return window.hacked") is None
    assert browser.run("return document.images.length") == 0


def test_a_second_browser_gets_nothing_and_another_port_no_cookie(page, app, tmp_path_factory):
    browser = page.open().browser
    inside = browser.driver.current_url
    seen = []

    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.headers.get("Cookie"))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<h1>other</h1>")

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Other) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        browser.driver.get(f"http://127.0.0.1:{other.server_port}/")
        browser.driver.refresh()
        other.shutdown()
    assert seen
    assert not any(seen)
    profile, downloads = (tmp_path_factory.mktemp(name) for name in ("second", "down"))
    with open_browser(profile, downloads) as second:
        second.driver.get(inside)
        assert "open the address that the terminal shows" in second.one("body").text
        second.driver.get(app.address)
        second.wait(lambda: "used already" in second.one("#says").text)
    assert Path(profile).is_dir()
    browser.driver.get(inside)
    browser.wait(lambda: browser.run("return document.documentElement.dataset.ready"))


def test_when_the_app_has_ended_the_page_says_so(page, app):
    page.open()
    app.process.terminate()
    app.process.wait()
    time.sleep(0.1)
    page.go("unit")
    page.says("#gone", "The app has ended")
