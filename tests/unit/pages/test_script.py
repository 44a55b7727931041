"""The script of the pages, run by Node: its own tests, and numbers against those of Python."""

import json
import os
import re
import shutil
import subprocess
from itertools import pairwise, product
from pathlib import Path

import pyarrow as pa
import pytest

import inftda
from inftda.confidential.evaluate import write_confidential_page
from inftda.noise.bits import SeededSource
from inftda.pages.html import asset, script
from inftda.pages.report import report
from inftda.reading.truth import Truth
from packed_page import header_of, packed_of

ROOT = Path(__file__).parents[3]
LOUD = """
{line}
!!  THE SCRIPT OF THE PAGES WAS NOT TESTED: there is no Node (20 or newer).
{line}""".format(line="!" * 90)  # fmt: skip
#: Columns of numbers, of which one is not 0 in a row that is shown.
NUMBERS = ("flow", "estimate", "true")
#: What a page shows of a number.
KNOWN = (*NUMBERS, "low", "high", "grade")


@pytest.fixture(scope="module")
def node():
    found = shutil.which("node")
    if found is None:
        pytest.skip(LOUD)
    return found


@pytest.fixture(scope="module")
def by_mode(country):
    """Trips by two modes, with cross tables and without any of its measurements."""
    modes = ["car" if i % 3 else "ferry" for i in range(len(country.count))]
    table = country.flows().append_column("mode", [modes])
    axes = {
        "origin": country.areas,
        "destination": country.areas,
        "mode": {"mode": ["ferry", "car"]},
    }
    budget = {"epsilon": 1, "delta": 1e-6, "source": SeededSource(1)}
    return [
        inftda.release(table, axis=axes, **budget, cross_tables=across, measurements=measurements)
        for across, measurements in ((0.08, "all"), (0.08, "totals"), (0, "all"))
    ]


@pytest.fixture(scope="module")
def series(country, tmp_path_factory):
    """Three editions: in the second a town has another code, and the third measures no totals."""
    folder = tmp_path_factory.mktemp("series")
    areas, flows = country.areas.to_table(), country.flows()
    town = areas["municipality"][0].as_py()
    renamed = [
        pa.table(
            {name: ["new" if x == town else x for x in table[name].to_pylist()] for name in ends}
        )
        for table, ends in ((areas, areas.column_names), (flows, ("origin", "destination")))
    ]
    renamed[1] = renamed[1].append_column("count", flows["count"])
    for number, (tables, more) in enumerate(
        [((areas, flows), {}), (renamed, {}), ((areas, flows), {"cross_tables": 0})]
    ):
        budget = {"epsilon": 1, "delta": 1e-6, "source": SeededSource(number)}
        out, edition = folder / str(number), f"2024-0{number + 1}"
        inftda.release(tables[1], tables[0], **budget, **more, edition=edition, out=out)
    return folder


def questions(release, laid_out):
    """Levels of all axes: of two that are laid out every level, of others all or one area."""
    axes = release.tree.axes
    for depths in product(*(range(axis.hierarchy.depth + 1) for axis in axes)):
        if all(depth == 0 or n in laid_out for n, depth in enumerate(depths)):
            yield depths, {}
    for number in range(len(axes)):
        if number not in laid_out:
            depths = [1 if n in {*laid_out, number} else 0 for n in range(len(axes))]
            yield depths, {number: 0}


def answer(page, asked, laid_out, where, rows, *, using="published"):
    """One question about a page, in its own terms, and the rows that answer it."""
    axes = {axis["name"]: axis["levels"] or page["axes"][0]["levels"] for axis in page["axes"]}
    names = {axis: ["all", *(level["name"] for level in levels)] for axis, levels in axes.items()}
    depth = {axis: names[axis].index(level) for axis, level in asked.items()}
    others = [name for name in axes if name not in laid_out]
    return {
        "pair": [[*axes].index(name) for name in laid_out],
        "levels": [depth[name] for name in axes],
        "filters": [[depth[name], where.get(name, 0)] for name in others],
        "using": using,
        "rows": [
            [
                *(row.get(name, "all") for name in laid_out),
                *(row[one] for one in KNOWN if one in row),
            ]
            for row in rows
            if any(row.get(one) for one in NUMBERS)
        ],
    }


def asked_of(release, depths):
    return {
        axis.name: axis.hierarchy.level_name(depth)
        for axis, depth in zip(release.tree.axes, depths, strict=True)
    }


def answers(release, page, edition=None):
    """Every question about a release, or about it as an edition of a series, answered by Python."""
    names = [axis.name for axis in release.tree.axes]
    series = {} if edition is None else {"edition": "edition"}, {"edition": edition}
    for laid_out in pairwise([*names, names[0]][: 2 if len(names) == 2 else None]):
        for depths, where in questions(release, [names.index(name) for name in laid_out]):
            asked = asked_of(release, depths)
            codes = {
                names[n]: f"{hierarchy.level_name(1)}:{hierarchy.codes(1)[area]}"
                for n, area in where.items()
                for hierarchy in [release.tree.axes[n].hierarchy]
            }
            has_ends = release.has_intervals(depths)
            rows = release.flows(level=asked, where=codes, intervals=has_ends).to_pylist()
            areas = {names[n]: area for n, area in where.items()} | series[1]
            yield answer(page, asked | series[0], laid_out, areas, rows)


def over_time(series, page):
    """Questions with editions as rows, answered for all editions."""
    for level in ("region", "province"):
        asked = {"origin": "all", "destination": level}
        rows = series.flows(level=asked, intervals=True).to_pylist()
        laid_out = ("edition", "destination")
        yield answer(page, asked | {"edition": "edition"}, laid_out, {}, rows)


@pytest.fixture(scope="module")
def pages(od, measured, estimated, by_mode, series, country, tmp_path_factory):  # noqa: PLR0917 - fixtures
    """Packed pages and answers to questions about them, for Node to read."""
    folder, work = (tmp_path_factory.mktemp(name) for name in ("asked", "pages"))

    def put(name, page, asked):
        text = page.read_text("utf-8")
        given = {"packed": packed_of(text), "answers": list(asked(header_of(text)))}
        (folder / f"page-{name}.json").write_text(json.dumps(given), "utf-8")

    for number, release in enumerate([od, *by_mode]):
        page = report(release, work / f"{number}.html")
        put(f"release-{number}", page, lambda header, it=release: answers(it, header))

    def of_estimate(header):
        ends = ("origin", "destination")
        yield from answers(measured, header)
        asked = asked_of(measured, (3, 3))
        yield answer(header, asked, ends, {}, estimated.flows().to_pylist(), using="estimated")

    opened = inftda.open_series(series)

    def of_series(header):
        for number, release in enumerate(opened.editions.values()):
            yield from answers(release, header, number)
        yield from over_time(opened, header)

    put("estimate", report(measured, work / "e.html", estimate=estimated), of_estimate)
    put("series", report(series, work / "s.html"), of_series)
    ends = [country.origin, country.destination]
    truth = Truth.from_leaves(od.tree, ends, country.count)
    secret = write_confidential_page(od, truth, [{"name": "x"}], work / "c.html")
    codes, released = country.areas.codes(3).to_pylist(), od.flows().to_pylist()
    flow = {(row["origin"], row["destination"]): row["flow"] for row in released}
    true = {(codes[a], codes[b]): int(n) for a, b, n in zip(*ends, country.count, strict=True)}

    def of_truth(header):
        rows = [
            {
                "origin": a,
                "destination": b,
                "flow": flow.get((a, b), 0),
                "true": true.get((a, b), 0),
            }
            for a, b in flow.keys() | true.keys()
        ]
        yield answer(header, asked_of(od, (3, 3)), ("origin", "destination"), {}, rows)

    put("confidential", secret, of_truth)
    return folder


def test_the_tests_of_the_script_pass(node, pages):
    done = subprocess.run(
        [node, "--test", str(ROOT / "tests/page")],
        capture_output=True,
        text=True,
        env={"INFTDA_PAGES": str(pages), "PATH": os.defpath},
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"# pass [2-9]\d", done.stdout)
    assert "# skipped 0" in done.stdout


@pytest.mark.parametrize("name", ["explore.mjs", "changes.mjs"])
def test_a_page_holds_its_modules_in_one_scope(node, name):
    """No two of them declare the same name, and nothing is left that only a module may have."""
    code = script(name)
    done = subprocess.run(
        [node, "--check", "-"], input=code, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not re.search(r"^(import|export)\b", code, re.MULTILINE)
    assert code.count("class Shapes ") == 1
    for needed in re.findall(r"from '\./([\w-]+\.mjs)'", asset(name)):
        own = asset(needed).split("\n")[0]
        assert code.index(own) < code.index(asset(name).split("\n")[0])


def test_categories_of_a_page_stand_in_the_order_of_their_table(three_axes, tmp_path):
    header = header_of(report(three_axes, tmp_path / "page.html").read_text("utf-8"))
    age = next(axis for axis in header["axes"] if axis["name"] == "age")["levels"][0]
    assert sorted(age["codes"], key=lambda code: age["rank"][age["codes"].index(code)]) == [
        "young", "old",
    ]  # fmt: skip
