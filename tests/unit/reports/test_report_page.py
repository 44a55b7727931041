import os
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest
import typer
from typer.testing import CliRunner

from inftda.cli.report import command
from inftda.errors import InftdaError, ReleaseError
from inftda.evaluation.typical import typical_errors
from inftda.hierarchy import Hierarchy
from inftda.noise.entropy import SeededSource
from inftda.publish import release
from inftda.reports.accuracy import guaranteed
from inftda.reports.confidential import write_confidential_page
from inftda.reports.page import Files, write_file, write_page

VOID = {"meta", "link", "br", "img", "input", "circle", "line", "path", "rect"}


class Strict(HTMLParser):
    """Notes elements, and complains if they do not nest."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.texts = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else None, data))


def parsed(page):
    parser = Strict()
    parser.feed(page)
    assert parser.open == []
    return parser


@pytest.fixture
def page(tmp_path):
    def make(made, **options):
        out = write_page(made, tmp_path / "page.html", runs=1, force=True, **options)
        return out.read_text(encoding="utf-8")

    return make


def test_a_page_is_one_well_formed_file_that_loads_nothing(page, od):
    found = parsed(page(od)).seen
    assert [tag for tag, _ in found].count("script") == 2
    loads = [a.get("src") or a.get("href") for _, a in found if a.get("src") or a.get("href")]
    assert all(link.startswith(("#", "data:,")) for link in loads)
    assert not [a for _, a in found if any(name.startswith("on") for name in a)]


def test_every_link_of_the_page_leads_somewhere(page, od):
    found = parsed(page(od)).seen
    ids = {a["id"] for _, a in found if "id" in a}
    links = {a["href"][1:] for tag, a in found if tag == "a"}
    assert links <= ids
    assert len(links) == 4


def test_a_release_made_with_a_seed_is_marked(page, od):
    assert "NOT PRIVATE" in page(od)
    private = replace(od, manifest=replace(od.manifest, private=True))
    assert "NOT PRIVATE" not in page(private)


def test_nothing_in_codes_or_titles_becomes_markup(page, hostile):
    title = "</title><script>window.hacked=3</script>"
    harmless = parsed(page(hostile, title="x"))
    found = parsed(page(hostile, title=title))
    # Simulated errors differ from run to run, the elements of the page do not.
    assert {tag for tag, _ in found.seen} == {tag for tag, _ in harmless.seen}
    assert [tag for tag, _ in found.seen].count("script") == 2
    assert any(title in data for tag, data in found.texts if tag == "h1")


@pytest.mark.parametrize("name", ["three_axes", "one_axis"])
def test_tables_without_trips_get_a_page_too(page, unpacked, request, name):
    text = page(request.getfixturevalue(name))
    parsed(text)
    header, _ = unpacked(text)
    assert header["words"]["unit"] == "Count"
    assert " trips" not in " ".join(data for _, data in parsed(text).texts if "=>" not in data)


def test_tables_without_trips_have_cells_and_no_pairs_or_areas(page, three_axes):
    words = " ".join(data for _, data in parsed(page(three_axes)).texts if "=>" not in data)
    assert "cells of 3 disease \N{MULTIPLICATION SIGN} 2 sex \N{MULTIPLICATION SIGN} 2 age" in words
    assert "A cell that is missing from the table" in words
    assert "Noise cells" in words
    assert not re.search(r"\bpairs?\b", words)


@pytest.mark.parametrize(
    "mechanism", ["inftda-descending", "tda-l2", "tda-linf", "vanilla-gauss", "stability-histogram"]
)
def test_every_mechanism_gets_a_page(page, country, mechanism):
    made = release(country.flows(), country.areas, epsilon=1, delta=1e-6, mechanism=mechanism)
    text = page(made)
    parsed(text)
    is_top_down = mechanism.startswith(("inftda", "tda"))
    assert ("neither guaranteed nor typical errors are known" in text) == (not is_top_down)
    assert ("The overall total is the true one; every other" in text) == is_top_down
    assert ("All numbers carry noise; the total is their sum." in text) == (not is_top_down)
    assert ("the total is public" in text) == is_top_down
    assert ("the less a number is to be trusted" in text) == is_top_down
    assert "at each level" not in text or is_top_down


@pytest.mark.parametrize(
    "choice",
    [
        {"rho": 0.1},
        {"neighbours": "add-remove", "trips": 3, "epsilon": 1, "delta": 1e-6},
        {"epsilon": 30, "delta": 1e-6, "tree": "origin"},
        {"unplaceable": "outside", "epsilon": 1, "delta": 1e-6},
    ],
)
def test_every_kind_of_promise_gets_a_page(page, country, choice):
    made = release(country.flows(), country.areas, **choice)
    found = parsed(text := page(made))
    assert ("is weak" in text) == (choice.get("epsilon") == 30)
    assert any("Rho" in data for _, data in found.texts)


def test_ends_with_different_areas_get_a_page(page, country, unpacked):
    areas = Hierarchy.read({"half": ["E", "W"], "quarter": ["E1", "W1"]})
    flows = country.flows().set_column(
        0,
        "origin",
        pa.array(["E1", "W1"] * (len(country.count) // 2) + ["E1"] * (len(country.count) % 2)),
    )
    flows = flows.group_by(["origin", "destination"]).aggregate([("count", "sum")])
    flows = flows.rename_columns(["origin", "destination", "count"])
    made = release(flows, origin_areas=areas, destination_areas=country.areas, rho=1)
    header, _ = unpacked(page(made))
    assert not header["shared"]
    assert [len(axis["levels"]) for axis in header["axes"]] == [2, 3]


def test_an_empty_release_gets_a_page(page, od, unpacked):
    empty = {"origin": pa.array([], pa.string()), "destination": pa.array([], pa.string())}
    table = pa.table({**empty, "flow": pa.array([], pa.int64())})
    manifest = replace(od.manifest, total=0, n_flows=0)
    header, _ = unpacked(page(replace(od, manifest=manifest, table=table)))
    assert header["flows"]["n"] == 0


def test_negative_flows_get_a_page_without_typical_errors(page, country, unpacked):
    made = release(
        country.flows(), country.areas, epsilon=1, delta=1e-6, mechanism="vanilla-gauss",
        source=SeededSource(1),
    )  # fmt: skip
    header, _ = unpacked(page(made))
    assert header["flows"]["signed"]
    assert header["errors"] is None


def test_negative_flows_that_nothing_releases_get_no_page(page, od):
    flow = od.table.column("flow").to_numpy().copy()
    flow[0] = -5
    with pytest.raises(ReleaseError, match="negative numbers"):
        page(replace(od, table=od.table.set_column(2, "flow", pa.array(flow))))


def test_nothing_on_the_page_is_beyond_what_is_guaranteed(page, od, unpacked, monkeypatch):
    def exaggerated(made, **options):
        """What a simulation of a few numbers may come to."""
        found = typical_errors(made, **options)
        levels = [
            replace(
                level,
                overall=replace(level.overall, p95=10**6),
                classes=tuple(replace(entry, p95=10**6) for entry in level.classes),
                often_lost=10**6,
            )
            for level in found.levels
        ]
        return replace(found, levels=tuple(levels))

    monkeypatch.setattr("inftda.reports.accuracy.typical_errors", exaggerated)
    text = page(od)
    header, _ = unpacked(text)
    bounds = guaranteed(od)
    for level in od.tree.levels:
        stated = [p95 for _, _, p95, _ in header["errors"][",".join(map(str, level.depths))]]
        assert stated
        assert set(stated) == {bounds[level.index]}
    assert f"up to about {bounds[od.tree.levels[-1].index]} often vanish" in text
    assert "±1,000,000" not in text


def test_names_and_places_get_into_the_page(page, od, unpacked, tmp_path):
    finest = od.tree.axes[0].hierarchy
    codes = finest.codes(finest.depth).to_pylist()
    lines = [f"{code},Town {code},{7 + i / 10},45" for i, code in enumerate(codes)]
    (tmp_path / "c.csv").write_text("\n".join(["municipality,name,lon,lat", *lines]))
    (tmp_path / "n.csv").write_text("level,code,name\nregion,1,First\n")
    text = page(od, files=Files(tmp_path / "n.csv", tmp_path / "c.csv"))
    header, sections = unpacked(text)
    assert header["axes"][0]["levels"][0]["names"][0] == "First"
    assert header["axes"][0]["levels"][2]["names"][5] == f"Town {codes[5]}"
    lon = np.frombuffer(sections["places0"], "<f4")[: len(codes)]
    np.testing.assert_allclose(lon, 7 + np.arange(30) / 10, rtol=1e-6)


def test_the_file_is_written_whole_or_not_at_all(od, tmp_path):
    with pytest.raises(InftdaError, match="is a folder"):
        write_page(od, tmp_path)
    with pytest.raises(InftdaError, match="there is no folder"):
        write_page(od, tmp_path / "none" / "page.html")
    write_page(od, tmp_path / "page.html", runs=1)
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_file_that_is_there_is_replaced_only_by_force(od, tmp_path):
    (out := tmp_path / "page.html").write_text("old")
    with pytest.raises(InftdaError, match="--force"):
        write_page(od, out, runs=1)
    assert out.read_text() == "old"
    write_page(od, out, runs=1, force=True)
    assert out.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("kind", ["names", "centroids", "geojson"])
def test_a_page_does_not_replace_what_it_is_made_from(od, tmp_path, kind):
    (path := tmp_path / "given").write_text("years of work")
    with pytest.raises(InftdaError, match="is being read"):
        write_page(od, path, files=Files(**{kind: path}), force=True)
    assert path.read_text() == "years of work"


def test_no_page_is_written_into_a_release(od, tmp_path):
    od.save(tmp_path / "release")
    out = tmp_path / "release" / "page.html"
    with pytest.raises(ReleaseError, match="lies in the release"):
        write_page(od, out)
    with pytest.raises(ReleaseError, match="lies in the release"):
        write_confidential_page(od, od.flows(), [], out)
    assert not out.exists()


def test_a_file_of_another_process_beside_the_page_is_left_alone(tmp_path):
    other = tmp_path / f".page.html.partial-{os.getpid()}"
    other.write_text("somebody else's")
    write_file(tmp_path / "page.html", "page")
    assert other.read_text() == "somebody else's"


def test_a_page_that_cannot_be_written_leaves_the_older_one(tmp_path, monkeypatch):
    (out := tmp_path / "page.html").write_text("old")

    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        write_file(out, "new")
    assert out.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_the_command_writes_a_page_from_a_folder(od, tmp_path):
    app = typer.Typer()
    app.command()(command)
    od.save(tmp_path / "release")
    out = tmp_path / "page.html"
    ran = CliRunner().invoke(app, [str(tmp_path / "release"), "--out", str(out), "--runs", "1"])
    assert ran.exit_code == 0, ran.output
    assert re.search(r"page\.html \(0\.\d MB", ran.stdout)
    assert "NOT PRIVATE" in ran.stderr
    assert out.read_text().startswith("<!doctype html>")
