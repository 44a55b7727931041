"""The pages in a real browser, opened from disk: mouse, keyboard, phone, light and dark."""

# ruff: noqa: RUF001 - dashes as people write them

import csv
import io
import json
import math
import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from chromium import skip_without_browser

from inftda import estimate
from inftda.hierarchy import Hierarchy
from inftda.lab.generators.country import make_country
from inftda.noise.entropy import SeededSource
from inftda.publication.spreadsheet import disarmed
from inftda.publish import release
from inftda.reports.page import Files, write_page

skip_without_browser()

HOSTILE = "</script><script>window.hacked=1</script>"


def crumbs(browser, end=0):
    panel = f".end:nth-of-type({end + 1}) .crumbs li"
    return browser.texts(panel)


def cell(row, column):
    return f'.matrix [data-at="{row},{column}"]'


def number(text):
    return int(text.replace(",", ""))


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("name", ["page", "plain_page", "hostile_page", "confidential_page"])
@pytest.mark.parametrize("dark", [False, True])
def test_a_page_opens_from_disk_without_a_complaint(browser, request, name, dark):
    browser.open(request.getfixturevalue(name), dark=dark)
    assert browser.complaints == []
    assert "cannot be shown" not in browser.one("#explorer").text


@pytest.mark.parametrize("name", ["page", "plain_page", "confidential_page"])
def test_a_page_asks_for_nothing_from_the_network(browser, request, name):
    browser.open(request.getfixturevalue(name))
    loaded = browser.run("return performance.getEntriesByType('resource').map((e) => e.name)")
    assert [address for address in loaded if not address.startswith(("data:", "blob:"))] == []


def test_the_coarsest_level_is_shown_first_with_names(browser, page, made):
    browser.open(page)
    _, released = made
    assert browser.texts(".matrix tbody th") == ["Northland", "Südland", "3", "4"]
    expected = {
        (row["origin"], row["destination"]): row["flow"]
        for row in released.flows("region", "region").to_pylist()
    }
    browser.run("document.querySelector(arguments[0]).focus()", cell(0, 0))
    browser.wait(lambda: f"{expected['1', '1']:,}" in browser.one(".says").text)


def test_a_click_zooms_into_both_ends_and_the_breadcrumb_leads_back(browser, page, made):
    browser.open(page)
    _, released = made
    browser.click(cell(0, 0))
    assert crumbs(browser, 0) == ["All origins", "Northland"]
    assert crumbs(browser, 1) == ["All destinations", "Northland"]
    provinces = released.flows("province", "province", origin="region:1", destination="region:1")
    total = browser.one(".matrix tfoot td:last-child").get_attribute("title")
    assert number(total) == sum(provinces.column("flow").to_pylist())
    browser.click(cell(0, 0))
    assert len(crumbs(browser, 0)) == 3
    browser.click(".end:nth-of-type(1) .crumbs button")
    browser.click(".end:nth-of-type(2) .crumbs button")
    assert (crumbs(browser, 0), crumbs(browser, 1)) == (["All origins"], ["All destinations"])
    assert browser.complaints == []


def test_a_heading_zooms_into_one_end_only(browser, page):
    browser.open(page)
    browser.click(cell(1, -1))
    assert crumbs(browser, 0) == ["All origins", "Südland"]
    assert crumbs(browser, 1) == ["All destinations"]
    browser.click(cell(-1, 0))
    assert crumbs(browser, 1) == ["All destinations", "Northland"]


def test_one_can_zoom_to_the_finest_areas_and_out_again(browser, page):
    browser.open(page)
    for _ in range(3):
        browser.click(cell(0, -1))
    assert len(crumbs(browser, 0)) == 4
    assert len(browser.all(".matrix tbody tr")) == 1
    for left in (3, 2, 1):
        browser.click("#zoom-out")
        assert len(crumbs(browser, 0)) == left
    assert not browser.one("#zoom-out").is_enabled()


def test_the_browsers_back_button_zooms_out(browser, page):
    browser.open(page)
    browser.click(cell(0, 0))
    browser.driver.back()
    browser.wait(lambda: crumbs(browser, 0) == ["All origins"])
    browser.driver.forward()
    browser.wait(lambda: crumbs(browser, 0) == ["All origins", "Northland"])


def test_an_address_can_be_passed_on(browser, page):
    browser.open(page, "#/1.1.2/0.0.1/list")
    assert crumbs(browser, 0) == ["All origins", "Südland"]
    assert browser.one('[role="tab"][aria-selected="true"]').text == "Largest"


@pytest.mark.parametrize("address", ["#/9.9.9/0.0.1/list", "#/1.1.2/0.0.1/none", "#explore", "#/x"])
def test_an_address_that_leads_nowhere_shows_the_start(browser, page, address):
    browser.open(page, address)
    assert crumbs(browser, 0) == ["All origins"]
    assert browser.complaints == []


def test_everything_can_be_done_with_the_keyboard(browser, page):
    keys = browser.keys
    browser.open(page)
    browser.one("#download").send_keys(keys.TAB)
    assert browser.run("return document.activeElement.dataset.at") == "0,0"
    browser.type(keys.ARROW_DOWN, keys.ARROW_RIGHT)
    assert browser.run("return document.activeElement.dataset.at") == "1,1"
    browser.type(keys.ENTER)
    assert crumbs(browser, 0) == ["All origins", "Südland"]
    assert browser.run("return document.activeElement.closest('.matrix') !== null")
    browser.type(keys.ARROW_UP, keys.ENTER)
    assert len(crumbs(browser, 0)) == 2 < len(crumbs(browser, 1))
    browser.type(keys.ESCAPE, keys.ESCAPE)
    assert (crumbs(browser, 0), crumbs(browser, 1)) == (["All origins"], ["All destinations"])
    browser.one("#tab-matrix").send_keys(keys.ARROW_RIGHT)
    assert browser.run("return document.activeElement.id") == "tab-list"
    assert len(browser.all(".flows tbody tr")) > 0


def test_an_area_is_found_by_name_without_accents_and_by_code(browser, page, made):
    keys = browser.keys
    browser.open(page)
    finder = browser.one(".end:nth-of-type(1) input")
    finder.send_keys("sudl")
    assert browser.texts(".end:nth-of-type(1) .found li") == ["Südlandregion · 2"]
    finder.send_keys(keys.ENTER)
    assert crumbs(browser, 0) == ["All origins", "Südland"]
    country, _ = made
    code = country.areas.codes(3)[40].as_py()
    finder = browser.one(".end:nth-of-type(2) input")
    finder.send_keys(code)
    first = browser.texts(".end:nth-of-type(2) .found li")[0]
    assert first.startswith(f"Tòwn {code}")
    finder.send_keys(keys.ARROW_DOWN, keys.ARROW_UP, keys.ENTER)
    assert crumbs(browser, 1)[-1] == f"Tòwn {code}"
    finder.send_keys("nowhere at all")
    assert "No area" in browser.one(".end:nth-of-type(2) .found").text
    finder.send_keys(keys.ESCAPE)
    assert not browser.one(".end:nth-of-type(2) .found").is_displayed()


def test_the_largest_flows_are_listed_with_their_typical_error(browser, page, made):
    browser.open(page, "#/0.0.3/0.0.3/list")
    _, released = made
    flows = sorted(released.flows().column("flow").to_pylist(), reverse=True)
    shown = browser.texts(".flows tbody td:nth-child(4)")
    assert [number(text) for text in shown] == flows[:50]
    assert all(text.startswith("±") for text in browser.texts(".flows .chip"))
    browser.click(".action.more")
    assert len(browser.all(".flows tbody tr")) == 150
    browser.click("#between")
    ends = [browser.texts(f".flows tbody td:nth-child({column})") for column in (2, 3)]
    assert all(a != b for a, b in zip(*ends, strict=True))


def test_faint_shades_go_with_small_numbers(browser, page):
    browser.open(page, "#/0.0.3/0.0.3/list")
    for _ in range(3):
        browser.click(".action.more")
    chips = browser.run(
        "return [...document.querySelectorAll('.flows .chip')].map((e) => e.className.slice(-1))"
    )
    assert chips[0] == "1"
    assert chips[-1] > "2"
    assert len(browser.all(".legend .swatch")) == 5


def test_what_is_seen_can_be_downloaded(browser, page, made):
    browser.open(page, "#/1.0.2/0.0.1/matrix")
    name, text = browser.downloaded()
    assert name.startswith("flows-1.0.2-0.0.1")
    _, released = made
    expected = {
        (row["origin"], row["destination"]): row["flow"]
        for row in released.flows("province", "region", origin="region:1").to_pylist()
    }
    rows = rows_of(text)
    assert {(r["origin"], r["destination"]): int(r["flow"]) for r in rows} == expected
    assert {row["destination_name"] for row in rows} >= {"Northland"}
    assert all(int(row["error_95"]) >= 0 for row in rows)


#: Clicks on a map, here and there, until an area is hit.
CLICKS = """
const canvas = document.querySelector('.map canvas');
const box = canvas.getBoundingClientRect();
for (let k = 0; k < 400 && document.querySelector('#map-all.hidden'); k += 1) {
  const at = { clientX: box.left + (k * 37) % box.width, clientY: box.top + (k * 53) % box.height };
  canvas.dispatchEvent(new PointerEvent('pointerdown', at));
  canvas.dispatchEvent(new PointerEvent('pointerup', at));
}
"""


def drawn(browser):
    """What the map says of itself, and how many different colours it has."""
    colours = browser.run(
        """const canvas = document.querySelector('.map canvas');
             const { width, height } = canvas;
             const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
             return new Set(new Uint32Array(data.buffer)).size"""
    )
    return browser.one(".map canvas").get_attribute("aria-label"), colours


def test_flows_and_areas_are_drawn_on_a_map(browser, page):
    browser.open(page, "#/0.0.1/0.0.1/map")
    words, colours = drawn(browser)
    assert int(re.search(r"the (\d+) largest flows", words).group(1)) >= 9
    assert "Northland" in words
    assert colours > 20
    assert len(browser.all("#seen .swatch")) == 4  # regions are few, and have a class each
    choose(browser, "#map-shade", "none")
    assert browser.all("#seen .swatch") == []
    browser.open(page, "#/0.0.3/0.0.3/map")
    assert drawn(browser)[1] > 20
    assert browser.complaints == []


def test_a_click_on_an_area_shows_where_its_trips_go(browser, page, made):
    browser.open(page, "#/0.0.1/0.0.1/map")
    finder = browser.one(".bar .finder input")
    finder.send_keys("Northland", browser.keys.ENTER)
    _, released = made
    ((total,),) = (
        released.flows("region", "all", origin="region:1").select(["flow"]).to_pydict().values()
    )
    assert f"From Northland to All destinations: {total:,} trips" in browser.one(".says").text
    assert "Trips from Northland" in browser.one("#seen").text
    choose(browser, "#map-shade", "in")
    assert "Trips to Northland" in browser.one("#seen").text
    browser.click("#map-all")
    assert not browser.one("#map-all").is_displayed()
    browser.run(CLICKS)
    assert browser.one("#map-all").is_displayed()
    browser.click("#closer")
    browser.click(".map canvas")
    assert browser.complaints == []


def test_labels_on_a_map_do_not_overlap_and_areas_may_be_many(browser, tmp_path):
    """8,000 areas with outlines: one drawing takes a fraction of a second of the processor."""
    n = 8_000
    codes = [f"{i:04}" for i in range(n)]
    areas = Hierarchy.read({"region": [code[0] for code in codes], "town": codes})
    flows = pa.table(
        {
            "origin": codes,
            "destination": codes[1:] + codes[:1],
            "count": [900 + i for i in range(n)],
        }
    )
    made = release(flows, areas, epsilon=10, delta=1e-6, across=0, source=SeededSource(1))
    corners = [(math.cos(k * math.pi / 8) / 25, math.sin(k * math.pi / 8) / 25) for k in range(17)]
    features = [
        {
            "type": "Feature",
            "properties": {"code": code},
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[i % 100 / 10 + x, i // 100 / 10 + y] for x, y in corners]],
            },
        }
        for i, code in enumerate(codes)
    ]
    outlines = tmp_path / "g.json"
    outlines.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    out = write_page(made, tmp_path / "page.html", files=Files(geojson=outlines), runs=1)
    browser.open(out, "#/0.0.2/0.0.2/map")
    before = browser.busy_seconds
    for _ in range(4):
        browser.click("#closer")
    assert (browser.busy_seconds - before) / 4 < 1
    assert 3 < drawn(browser)[0].count(",") < 60
    assert browser.complaints == []


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("page", "#/0.0.2/0.0.2/matrix"),
        ("page", "#/0.0.3/0.0.3/list"),
        ("page", "#/0.0.2/0.0.2/map"),
        ("confidential_page", "#/0.0.3/0.0.3/matrix"),
        ("confidential_page", "#/0.0.3/0.0.3/list"),
        ("plain_page", ""),
    ],
)
def test_a_phone_shows_everything_without_scrolling_sideways(browser, request, name, address, dark):
    browser.open(request.getfixturevalue(name), address, width=390, height=844, dark=dark)
    assert browser.run("return document.documentElement.scrollWidth") == 390
    small = browser.run(
        """return [...document.querySelectorAll('.tabs button, .action, .field')]
             .filter((e) => e.offsetParent && e.getBoundingClientRect().height < 36).length"""
    )
    assert small == 0


#: Contrast of each element's text with the colour behind it, as WCAG defines it.
CONTRAST = """
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
return [...document.querySelectorAll(arguments[0])].map((e) => {
  const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
  return [(a + 0.05) / (b + 0.05), e.className, e.textContent.slice(0, 30)];
});
"""


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_what_is_behind_it(browser, page, dark):
    browser.open(page, "#/0.0.2/0.0.2/matrix", dark=dark)
    browser.run(
        """for (const grade of [1, 2, 3, 4, 5]) { const e = document.createElement('td');
             e.className = 'r' + grade; e.textContent = 'x';
             document.querySelector('.matrix tbody tr').append(e); }"""
    )
    checked = (
        "main p, main th, main td:not(.none), main dd, main dt, .link, .legend li, .tabs button"
    )
    poor = [entry for entry in browser.run(CONTRAST, checked) if entry[0] < 4.5]
    assert poor == []


def test_hostile_codes_and_names_are_only_text(browser, hostile_page):
    browser.open(hostile_page)
    for address in ("#/0.0.2/0.0.2/matrix", "#/0.0.2/0.0.2/list", "#/1.0.2/1.0.2/matrix"):
        browser.run("location.hash = arguments[0]", address)
        browser.wait(lambda at=address: browser.run("return location.hash") == at)
    browser.one(".end input").send_keys("script")
    assert HOSTILE in browser.texts(".end:nth-of-type(1) .found li")[0]
    assert browser.texts("h1") == [HOSTILE]
    assert browser.run("return window.hacked === undefined")
    assert browser.run("return document.querySelectorAll('main img, main i, main b').length") == 0
    assert browser.complaints == []


def test_a_download_holds_no_formula_unless_it_is_wanted(
    browser, hostile_page, hostile_page_with_formulas
):
    codes = {HOSTILE, '",=1', "x"}
    for page, expected in {
        hostile_page: {disarmed(code) for code in codes},
        hostile_page_with_formulas: codes,
    }.items():
        browser.open(page, "#/0.0.2/0.0.2/list")
        _, text = browser.downloaded()
        assert {row["origin"] for row in rows_of(text)} <= expected
        assert {"\",'=1", '",=1'} & {row["origin"] for row in rows_of(text)} <= expected
        assert browser.complaints == []


def test_a_script_put_into_the_page_is_not_run(browser, page, tmp_path):
    text = page.read_text(encoding="utf-8")
    forged = tmp_path / "forged.html"
    forged.write_text(text.replace("</h1>", "</h1><script>window.hacked=1</script>"), "utf-8")
    browser.open(forged)
    assert browser.run("return window.hacked === undefined")
    assert any("Content Security Policy" in entry["message"] for entry in browser.complaints)


def test_tables_with_one_axis_are_shown_level_by_level(browser, plain_page):
    browser.open(plain_page)
    assert len(browser.texts("#level option")) == 2
    choose(browser, "#level", "1")
    shown = len(browser.all(".flows tbody tr"))
    browser.one("#search").send_keys("A1")
    assert 0 < len(browser.all(".flows tbody tr")) < shown
    name, text = browser.downloaded()
    assert name == "cells.csv"
    assert {row["disease"] for row in rows_of(text)} == {"A1"}


def test_further_axes_filter_what_is_seen_and_have_totals(browser, by_mode, tmp_path):
    released = by_mode[0.08]
    browser.open(write_page(released, tmp_path / "page.html", runs=1), "#/0.0.1/0.0.1/list")
    choose(browser, "#filter-2", "1.1")
    regions = {"origin": "region", "destination": "region", "mode": "all"}
    ferry = released.flows(levels=regions, where={"mode": "ferry"}).column("flow").to_pylist()
    shown = [number(text) for text in browser.texts(".flows tbody td:nth-child(4)")]
    assert shown == sorted(ferry, reverse=True)
    assert "ferry" in browser.one(".says").text
    assert browser.run("return location.hash").endswith("/1.1")
    browser.open(tmp_path / "page.html", "#/0.0.1/0.0.1/totals/1.1")
    choose(browser, "#totals-of", "2.1")
    known = released.total_intervals("mode", "mode").to_pylist()
    intervals = {f"{row['low']:,}–{row['high']:,}" for row in known}
    assert set(browser.texts(".flows .interval")) == intervals
    assert browser.complaints == []


def test_long_sums_that_were_not_measured_have_no_error_and_a_warning(browser, by_mode, tmp_path):
    out = write_page(by_mode[0], tmp_path / "page.html", runs=1)
    browser.open(out, "#/0.0.2/0.0.0/list")
    assert set(browser.texts(".flows .chip")) == {"not measured"}
    assert "Do not use this level" in browser.one("#warns").text
    assert "Do not use totals of origin (province)" in browser.one("#accuracy").text
    browser.open(out, "#/0.0.1/0.0.1/list")
    assert browser.one("#warns").text == ""


def test_noise_is_stated_where_flows_are_listed(browser, tmp_path):
    """40,000 trips between 300 towns: most published pairs are noise, and no list hides it."""
    country = make_country((4, 300), 40_000)
    made = release(country.flows(), country.areas, epsilon=1, delta=1e-6, source=SeededSource(1))
    browser.open(write_page(made, tmp_path / "page.html", runs=1), "#/0.0.2/0.0.2/list")
    assert "most of its pairs are noise" in browser.one("#warns").text
    assert re.search(r"About \d+ % of them are noise", browser.one("#seen").text)
    assert len(browser.texts(".flows td.noise")) == 50
    assert "mostly noise" in browser.one("#accuracy").text


def test_one_can_switch_between_published_and_estimated(browser, tmp_path):
    country = make_country((3, 24), 40_000)
    budget = {"epsilon": 1, "delta": 1e-6, "source": SeededSource(1)}
    released = release(country.flows(), country.areas, **budget, measurements=True)
    made = estimate(released)
    out = write_page(released, tmp_path / "page.html", runs=1, estimate=made)
    assert "Take the estimated ones" in out.read_text(encoding="utf-8")
    browser.open(out, "#/0.0.2/0.0.2/list")
    for table, flows, name in (
        ("published", released.flows(intervals=True), "flow"),
        ("estimated", made.flows(), "estimate"),
    ):
        choose(browser, "#table", table)
        largest = max(flows.to_pylist(), key=lambda row, name=name: row[name])
        assert browser.texts(".flows tbody td:nth-child(4)")[0] == f"{largest[name]:,}"
        assert browser.texts(".flows .chip")[0] == f"{largest['low']:,}–{largest['high']:,}"
        _, text = browser.downloaded()
        assert set(rows_of(text)[0]) >= {name, "low", "high"}
    assert "no list of flows that exist" in browser.one("#seen").text
    # Coarser estimates have the intervals of what was published there.
    browser.run("location.hash = '#/0.0.1/0.0.1/list'")
    browser.wait(lambda: len(browser.all(".flows tbody tr")) == 9)
    known = released.flows("region", "region", intervals=True).to_pylist()
    assert set(browser.texts(".flows .chip")) == {
        f"{row['low']:,}–{row['high']:,}" for row in known
    }
    assert browser.complaints == []


def choose(browser, selector, value):
    browser.run(
        """const select = document.querySelector(arguments[0]); select.value = arguments[1];
             select.dispatchEvent(new Event('change'));""",
        selector,
        value,
    )


def test_measured_totals_are_shown_with_their_intervals(browser, made, tmp_path):
    """All who leave a town: a sum across the tree, and measured by itself."""
    country, _ = made
    budget = {"epsilon": 1, "delta": 1e-6, "across": 0.08}
    released = release(country.flows(), country.areas, **budget, source=SeededSource(2))
    browser.open(write_page(released, tmp_path / "page.html", runs=2), "#/0.0.3/0.0.0/list")
    intervals = released.total_intervals("origin", released.tree.axes[0].hierarchy.level_name(3))
    known = {f"±{row['max_error']:,}" for row in intervals.to_pylist() if row["released"]}
    shown = browser.texts(".flows .chip")
    assert shown
    assert set(shown) <= known
    assert "rough" not in browser.one(".flows").text
    browser.open(tmp_path / "page.html", "#/0.0.3/0.0.2/list")
    assert "rough" in browser.one(".flows").text


def test_the_confidential_page_cannot_be_mistaken(browser, confidential_page, made):
    browser.open(confidential_page, "#/0.0.3/0.0.3/list")
    assert browser.driver.title.startswith("CONFIDENTIAL")
    browser.run("window.scrollTo(0, document.body.scrollHeight / 2)")
    banner = browser.one(".banner")
    assert banner.is_displayed()
    assert browser.run("return arguments[0].getBoundingClientRect().top", banner) == 0
    country, released = made
    true = {
        (row["origin"], row["destination"]): row["count"] for row in country.flows().to_pylist()
    }
    name, text = browser.downloaded()
    assert name.startswith("CONFIDENTIAL")
    rows = rows_of(text)
    assert {row["notice"] for row in rows} == {"CONFIDENTIAL"}
    assert all(true.get((r["origin"], r["destination"]), 0) == int(r["true"]) for r in rows)
    assert sum(int(row["flow"]) for row in rows) == released.total
    for choice, column, is_zero in (("positive", 5, True), ("negative", 4, True)):
        browser.run(
            """const select = document.querySelector('#filter'); select.value = arguments[0];
                 select.dispatchEvent(new Event('change'));""",
            choice,
        )
        values = browser.texts(f".flows tbody td:nth-child({column})")
        assert values
        assert all((number(text) == 0) is is_zero for text in values)


@pytest.mark.slow
def test_a_national_table_opens_in_under_three_seconds_of_work(browser, tmp_path):
    """About 450,000 flows between 8,092 areas: the size of a country by municipality."""
    country = make_country((20, 110, 8092), 8_000_000)
    n = len(country.count)
    assert n > 400_000
    small = make_country((20, 110, 8092), 1000)
    made = release(small.flows(), small.areas, epsilon=10, delta=1e-8, source=SeededSource(1))
    codes = country.areas.codes(3)
    table = pa.table(
        {
            "origin": pa.DictionaryArray.from_arrays(pa.array(country.origin), codes),
            "destination": pa.DictionaryArray.from_arrays(pa.array(country.destination), codes),
            "flow": country.count,
        }
    )
    manifest = replace(made.manifest, n_flows=n, total=int(country.count.sum()))
    path = write_page(replace(made, manifest=manifest, table=table), tmp_path / "p.html", runs=1)
    assert path.stat().st_size < 15e6
    browser.open(path)
    assert browser.busy_seconds < 3
    follow = """location.hash = arguments[0];
                window.dispatchEvent(new HashChangeEvent('hashchange'));"""
    addresses = ("#/0.0.3/0.0.3/list", "#/0.0.3/0.0.2/matrix", "#/0.0.2/0.0.2/matrix")
    times = [browser.busy_seconds]
    for address in addresses:
        browser.run(follow, address)
        times.append(browser.busy_seconds)
    assert np.median(np.diff(times)) < 1.5
    assert browser.complaints == []


def test_figures_stay_on_one_line_on_a_phone(browser, page):
    browser.open(page, width=400)
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    lines = """return [...document.querySelectorAll('.data tbody td')]
        .filter((cell) => cell.closest('details') || !cell.classList.contains('text'))
        .map((cell) => cell.getBoundingClientRect().height)"""
    heights = browser.run(lines)
    assert len(heights) > 100
    assert max(heights) < 1.2 * min(heights)


def test_small_numbers_are_not_hatched_like_doubtful_ones(browser, page):
    hatched = """return [...document.querySelectorAll('.legend .r5')]
        .map((one) => getComputedStyle(one).backgroundImage !== 'none')"""
    browser.open(page)
    assert browser.run(hatched) == [True]
    browser.run(
        "const it = document.getElementById('shade'); it.value = 'size';"
        "it.dispatchEvent(new Event('change'))"
    )
    assert browser.run(hatched) == [False]
