"""A real browser, if there is one, and what the tests do with it."""

import shutil
import time
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

from patience import PATIENCE

LOUD = """
{line}
!!  THE PAGES WERE NOT TESTED IN A BROWSER: {why}.
!!  Install chromium and chromium-driver (Debian) and selenium, and run again.
{line}"""
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

#: Texts whose contrast with the colour behind them is low, as WCAG defines it.
FAINT = """
const linear = (v) => v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4;
const light = (colour) => {
  const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map(linear);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const style = getComputedStyle(e);
    const hatched = /rgb\\([^)]*\\)/.exec(style.backgroundImage);
    if (hatched) return hatched[0];
    if (!/rgba\\(.*, 0\\)/.test(style.backgroundColor)) return style.backgroundColor;
  }
  return 'rgb(255, 255, 255)';
};
return [...document.querySelectorAll(arguments[0])]
  .filter((e) => !e.disabled && e.textContent.trim()).map((e) => {
  const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
  return [(a + 0.05) / (b + 0.05), e.className || e.tagName, e.textContent.slice(0, 40)];
}).filter(([ratio]) => ratio < 4.5);
"""


def skip_without_browser():
    """Skip a whole module, once and loudly, where there is no browser."""
    wanted = {"chromium": chromium(), "chromedriver": shutil.which("chromedriver")}
    wanted["selenium"] = find_spec("selenium")
    missing = [name for name, found in wanted.items() if not found]
    if missing:
        why = f"there is no {' and no '.join(missing)}"
        pytest.skip(LOUD.format(line="!" * 90, why=why), allow_module_level=True)


def chromium():
    return shutil.which("chromium") or shutil.which("google-chrome")


@contextmanager
def open_browser(profile, downloads):
    """Start a browser with a fresh profile; end it afterwards."""
    from selenium import webdriver  # noqa: PLC0415 - optional

    options = webdriver.ChromeOptions()
    options.binary_location = chromium()
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    # Elements get the focus at once, whatever window the system takes for the active one.
    driver.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})
    driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    try:
        yield Browser(driver, downloads)
    finally:
        driver.quit()


class Browser:
    """What the tests do with a page: open it, look at it, use mouse and keyboard."""

    def __init__(self, driver, downloads):
        from selenium.webdriver import ActionChains  # noqa: PLC0415 - optional
        from selenium.webdriver.common.by import By  # noqa: PLC0415
        from selenium.webdriver.common.keys import Keys  # noqa: PLC0415

        self.driver, self.downloads, self.keys = driver, downloads, Keys
        self._by, self._chains = By, ActionChains

    def open(
        self,
        path,
        address="",
        *,
        width=1280,
        height=900,
        dark=False,
        is_static=False,
        is_choosing=True,
    ):
        self.set_size(width, height)
        wishes = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            # A click must not miss what is still scrolling.
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wishes})
        self.driver.get("about:blank")
        # Where an earlier test left the mouse, the page would take it for pointing at a number.
        away = {"type": "mouseMoved", "x": 0, "y": 0}
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", away)
        self.driver.get_log("browser")
        self.driver.get(path.as_uri() + address)
        if not is_static:  # a page with a script says when it is ready
            self.wait(lambda: self.run("return document.documentElement.dataset.ready"))
            self.run(
                """const around = document.querySelector('.ends');
                   if (around) around.open = arguments[0];""",
                is_choosing,
            )

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

    def faint(self, selector="body *"):
        """Texts that are hard to read, with their contrast."""
        return self.run(FAINT, selector)

    def _middle(self, selector):
        element = self.one(selector)
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        time.sleep(0.5)  # a page that is scrolled does not zoom its map
        box = self.run("return arguments[0].getBoundingClientRect().toJSON()", element)
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def click_at(self, selector, x, y):
        """Click a place of an element, counted from its middle."""
        self._chains(self.driver).move_to_element_with_offset(
            self.one(selector), x, y
        ).click().perform()

    def drag(self, selector, x, y):
        """Hold an element in its middle and pull it."""
        chain = self._chains(self.driver).click_and_hold(self.one(selector))
        chain.move_by_offset(x, y).release().perform()

    def wheel(self, selector, by):
        """Turn a wheel over the middle of an element."""
        x, y = self._middle(selector)
        event = {"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": by}
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", event)

    def pinch(self, selector):
        """Spread two fingers over the middle of an element."""
        x, y = self._middle(selector)
        for kind, apart in (("touchStart", 20), ("touchMove", 60), ("touchEnd", 0)):
            sides = (-1, 1) if apart else ()
            points = [{"x": x + side * apart, "y": y, "id": side + 1} for side in sides]
            touch = {"type": kind, "touchPoints": points}
            self.driver.execute_cdp_cmd("Input.dispatchTouchEvent", touch)

    def type(self, *keys):
        """Send keys to whatever has the focus."""
        self._chains(self.driver).send_keys(*keys).perform()

    def wait(self, condition, seconds=PATIENCE):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "the page did not get there"
            time.sleep(0.02)

    def downloaded(self, selector="#download"):
        """Name and text of the file that a click gives."""
        before = set(self.downloads.iterdir())
        self.click(selector)

        def new():
            # Chromium holds the name with an empty file until it has the whole one.
            found = set(self.downloads.iterdir()) - before
            return [path for path in found if path.suffix == ".csv" and path.stat().st_size]

        self.wait(new)
        path = new()[0]
        return path.name, path.read_text(encoding="utf-8")

    @property
    def busy_seconds(self):
        """Processor seconds of the page's main thread since it was opened.

        By the clock it may take longer, if the machine has other work as well.
        """
        found = self.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return next(one["value"] for one in found if one["name"] == "TaskDuration")

    @property
    def complaints(self):
        """Everything in the console."""
        return self.driver.get_log("browser")
