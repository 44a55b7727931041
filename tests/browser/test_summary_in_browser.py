"""The summary of a dossier in a browser: two pages on paper, and it fits a phone."""

import base64
import re

import pytest
from chromium import skip_without_browser

from inftda.dossiers.api import dossier
from inftda.lab.generators.country import make_country
from inftda.publish import release

skip_without_browser()

OFFICE = {
    "name": "Commuting in Lakeland, 2024",
    "data_curators": ["Statistical Office of Lakeland"],
    "intended_use": "Planning of public transport and schools.",
    "data_product_region": "Lakeland",
    "description": "How many people commute from each municipality to each other one.",
    "publication_date": "2026-01-31",
    "justification": "Totals of municipalities are right within 5 %; the committee decided.",
    "registry_authors": ["A clerk"],
}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dossier")
    country = make_country((3, 6, 24), 5_000, seed=3)
    release(country.flows(), country.areas, epsilon=1, delta=1e-8, out=folder / "release")
    options = {"runs": 1, "seconds": 0, "selftest": False}
    dossier(folder / "release", about=OFFICE, out=folder / "dossier", **options)
    return folder / "dossier" / "summary.html"


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_sticks_out(browser, page, width):
    browser.set_size(width, 900)
    browser.driver.get(page.as_uri())
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.driver.get_log("browser") == []


def test_it_is_two_pages_on_paper(browser, page):
    browser.driver.get(page.as_uri())
    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    pages = re.findall(rb"/Type\s*/Page\b", base64.b64decode(printed["data"]))
    assert 1 <= len(pages) <= 2
