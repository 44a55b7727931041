# ruff: noqa: INP001 - a script of the documentation, not a package
"""The pictures of the guide to `inftda app`: each step of a release of a made-up country.

    python docs/app_pictures.py

Starts the app, goes through it in a browser as a user does, and photographs it. Needs `chromium`;
writes to `docs/img`.
"""

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image
from selenium import webdriver

from inftda.cli.main import run
from inftda.privacy.budget import Budget
from inftda.privacy.ledger import Ledger
from inftda.privacy.unit import Unit

HERE = Path(__file__).parent / "img"
WIDTH, PATIENCE = 1200, 300


def main() -> None:
    """Make a country and a ledger, start the app, and go through its steps."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "commuting"
        run(["demo", "--out", str(folder), "--sizes", "4,20,90", "--trips", "60000", "--quiet"])
        shutil.rmtree(folder / "release")
        ledger = Ledger.create(folder / "our.ledger")
        ledger.add("census-2024", Unit(), Budget.make(epsilon=3, delta=1e-6))
        command = [sys.executable, "-u", "-P", "-m", "inftda", "app", folder, "--no-browser"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as app:  # noqa: S603 - ours
            try:
                journey((app.stdout or sys.stdin).readline().split()[1])
            finally:
                app.send_signal(signal.SIGINT)


def journey(address: str) -> None:
    """All six steps."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("headless=new", "no-sandbox", "hide-scrollbars", "force-prefers-reduced-motion"):
        options.add_argument(f"--{flag}")
    with webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver"))) as driver:
        page = Page(driver)
        driver.get(address)
        page.wait("return document.documentElement.dataset.ready")
        page.put("release-flows", "flows.parquet")
        page.put("shared-areas", "areas.csv")
        page.wait("return document.querySelector('#meaning').textContent.includes('counts')")
        page.photograph("app-1-table")
        page.go("unit")
        page.click("[name=card][value=one]")
        page.click("[name=neighbours][value=substitute]")
        page.wait("return document.querySelector('#unit').textContent.includes('replaced')")
        page.photograph("app-2-unit")
        page.go("budget")
        page.put("shared-delta", "1e-6")
        page.wait("return document.querySelector('#levels tbody tr')")
        page.photograph("app-3-budget")
        page.go("release")
        page.put("shared-ledger", "our.ledger")
        page.put("shared-dataset", "census-2024")
        page.wait("return document.querySelector('#type-this').textContent === 'census-2024'")
        page.put("typed", "census-2024")
        page.photograph("app-5-release")
        page.click("#release")
        page.wait("return document.querySelectorAll('.checks li').length > 10")
        page.photograph("app-6-result")


class Page:
    """What the script does with the app."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.size(900)

    def size(self, height: int) -> None:
        """Set the size of the window."""
        size = {"width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def wait(self, script: str, until: Callable[[Any], bool] = bool) -> None:
        """Wait until a script has an answer."""
        end = time.monotonic() + PATIENCE
        while not until(self.driver.execute_script(script)):
            if time.monotonic() > end:
                raise TimeoutError(script)
            time.sleep(0.1)

    def click(self, selector: str) -> None:
        """Click an element."""
        element = self.driver.find_element("css selector", selector)
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def go(self, step: str) -> None:
        """Go to a step."""
        self.driver.execute_script("window.scrollTo(0, 0)")
        self.click(f".steps [data-step={step}]")

    def put(self, name: str, text: str) -> None:
        """Type into a control, and leave it."""
        control = self.driver.find_element("id", name)
        control.clear()
        control.send_keys(text, "\t")

    def photograph(self, name: str) -> None:
        """The whole page, in few colours: a third of the bytes."""
        self.driver.execute_script("document.activeElement.blur(); window.scrollTo(0, 0)")
        self.size(self.driver.execute_script("return document.documentElement.scrollHeight"))
        time.sleep(0.5)
        out = HERE / f"{name}.png"
        self.driver.save_screenshot(str(out))
        self.size(900)
        Image.open(out).convert("RGB").quantize(64).save(out, optimize=True)


if __name__ == "__main__":
    main()
