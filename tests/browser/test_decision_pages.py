"""Pages that help to decide, in a real browser: nothing sticks out, nothing is complained about."""

import pytest
from chromium import skip_without_browser

from inftda.comparisons.comparing import compare
from inftda.comparisons.page import write_methods_page
from inftda.noise.entropy import SeededSource
from inftda.previews.page import write_preview_page
from inftda.previews.trial import preview

skip_without_browser()


@pytest.fixture(scope="module")
def preview_page(made, tmp_path_factory):
    country, _ = made
    tried = preview(
        country.areas, like=country.flows(), epsilon=[0.5, 1, 5], delta=1e-6, runs=1,
        source=SeededSource(1),
    )  # fmt: skip
    return write_preview_page(tried, tmp_path_factory.mktemp("preview") / "preview.html")


@pytest.fixture(scope="module")
def methods_page(made, tmp_path_factory):
    country, _ = made
    compared = compare(country.flows(), country.areas, delta=1e-6, seed=1, source=SeededSource(1))
    return write_methods_page(compared, tmp_path_factory.mktemp("methods") / "methods.html")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["preview_page", "methods_page"])
def test_nothing_sticks_out_and_nothing_is_refused(browser, request, name, width):
    path = request.getfixturevalue(name)
    browser.set_size(width, 900)
    browser.driver.get("about:blank")
    browser.driver.get_log("browser")
    browser.driver.get(path.as_uri())
    wide, room = browser.run(
        "const e = document.documentElement; return [e.scrollWidth, e.clientWidth]"
    )
    assert wide == room <= width  # a scroll bar takes some
    assert browser.complaints == []
    # The style is obeyed: a policy that did not fit would leave the page bare.
    assert browser.run("return getComputedStyle(document.querySelector('h1')).fontWeight") == "650"


def test_curves_are_drawn_within_their_charts(browser, preview_page):
    browser.set_size(1280, 900)
    browser.driver.get(preview_page.as_uri())
    outside = browser.run(
        """return [...document.querySelectorAll('.chart circle')].filter((dot) => {
             const a = dot.getBoundingClientRect(), b = dot.closest('svg').getBoundingClientRect();
             return a.left < b.left - 1 || a.right > b.right + 1 || a.top < b.top - 1
               || a.bottom > b.bottom + 1; }).length"""
    )
    assert outside == 0
    assert browser.run("return document.querySelectorAll('.chart circle').length") > 50
