"""`inftda query` of a series: what it answers for one release, for all editions at once."""

import csv
import io
import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import inftda
from inftda.cli.main import run
from tiers import crossed

ZONES = "zones.csv"
ASKED = [
    "",
    "--destination-level all",
    "--origin-level all --destination-level region",
    "--origin-level region --destination-level all --intervals",
    "--origin-level all --destination-level all",
    "--origin-level region --destination-level region --intervals",
    "--origin-level province --top 5",
    "--destination-level all --at-least B",
    "--destination-level all --names",
    "--names --top 3",
    f"--zones {ZONES}",
    f"--zones {ZONES} --destination-level all --intervals",
    "--level origin=region --level destination=all",
    "--fit",
]


@pytest.fixture(scope="module")
def made(country, tmp_path_factory):
    """A series of two editions, whose areas have names, and a table of zones."""
    folder = tmp_path_factory.mktemp("query")
    hierarchy = country.made.areas
    codes = hierarchy.codes(hierarchy.depth).to_pylist()
    finest = hierarchy.level_names[-1]
    rows = list(csv.DictReader(Path(country.areas).read_text().splitlines()))
    with (folder / "areas.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0], f"{finest}_name"])
        writer.writeheader()
        writer.writerows({**row, f"{finest}_name": f"Town {row[finest]}"} for row in rows)
    (folder / ZONES).write_text(
        f"{finest},zone\n" + "".join(f"{code},z{n % 3}\n" for n, code in enumerate(codes))
    )
    for name in ("2024", "2025"):
        words = f"--epsilon 2 --delta 1e-8 --edition {name} --out {folder}/series/{name} --quiet"
        areas = f"--areas {folder}/areas.csv".split()
        assert run(["release", country.flows, *areas, *words.split()]) == 0
    return folder


@pytest.fixture
def query(made, cli, monkeypatch):
    """Queries a folder beside the zones."""
    monkeypatch.chdir(made)
    return lambda release, asked="": cli("query", release, *asked.split())


@pytest.mark.parametrize(("asked", "kind"), crossed(ASKED, ["table", "csv", "json"], every=3))
def test_answers_are_those_of_the_editions_one_after_the_other(query, asked, kind):
    whole = query("series", f"{asked} --format {kind}")
    assert whole.code == 0, whole.err
    ones = [query(f"series/{name}", f"{asked} --format {kind}").out for name in ("2024", "2025")]
    if kind == "json":
        expected = [
            {"edition": name, **row}
            for name, text in zip(("2024", "2025"), ones, strict=True)
            for row in json.loads(text)
        ]
        assert json.loads(whole.out) == expected
    elif kind == "csv":
        found = list(csv.reader(io.StringIO(whole.out)))
        rows = [list(csv.reader(io.StringIO(text))) for text in ones]
        assert found[0] == ["edition", *rows[0][0]]
        assert found[1:] == [
            [name, *row]
            for name, one in zip(("2024", "2025"), rows, strict=True)
            for row in one[1:]
        ]
    else:
        assert len(whole.out.splitlines()) == sum(len(text.splitlines()) for text in ones) - 1


def test_python_and_files_have_the_same_answer(query, made, tmp_path):
    asked = "--destination-level all --intervals"
    assert query("series", f"{asked} --out {tmp_path}/all.parquet").code == 0
    flows = inftda.open_series(made / "series").flows(destination_level="all", intervals=True)
    assert pq.read_table(tmp_path / "all.parquet").to_pylist() == flows.to_pylist()


def test_a_note_names_its_edition_unless_it_is_about_all(query, made, country, tmp_path):
    """At the finest level, editions with different noise have different smallest usable counts."""
    shutil.copytree(made / "series/2024", tmp_path / "series/2024")
    words = f"--areas {made}/areas.csv --rho 1/100 --edition 2025 --quiet"
    assert run(["release", country.flows, *words.split(), "--out", f"{tmp_path}/series/2025"]) == 0
    (alone,) = query(made / "series/2024").err.splitlines()
    notes = query(tmp_path / "series").err.splitlines()
    assert alone.replace("Note:       ", "Note:       2024: ") in notes
    assert [line[:18] for line in notes] == ["Note:       2024: ", "Note:       2025: "]


def test_editions_that_publish_other_columns_or_axes_in_another_order_are_joined(
    query, made, country, tmp_path
):
    """Totals are listed beside sums only where cross tables measured them."""
    shutil.copytree(made / "series/2024", tmp_path / "series/2024")
    words = f"--areas {made}/areas.csv --rho 1/10 --edition 2025 --cross-tables 0 --quiet"
    order = ["--order", "origin,destination"]
    out = ["--out", f"{tmp_path}/series/2025"]
    assert run(["release", country.flows, *words.split(), *out, *order]) == 0
    asked = "--origin-level region --destination-level all --format json"
    found = query(tmp_path / "series", asked)
    assert found.code == 0, found.err
    rows = json.loads(found.out)
    assert {row["edition"] for row in rows} == {"2024", "2025"}
    assert query(tmp_path / "series", "--top 3").code == 0
    assert query(tmp_path / "series", "--fit").code == 0
