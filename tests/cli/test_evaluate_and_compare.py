"""`inftda evaluate` and `compare`: everything they write is confidential, and says so."""

import json

import pytest

EVALUATE = "evaluate MEASURED --truth FLOWS --out figures"
TABLES = ("levels", "sizes", "totals", "intervals")


def names(folder):
    return {path.name.removeprefix("CONFIDENTIAL-") for path in folder.iterdir()}


def test_figures_are_written_and_shown_as_confidential(done, tmp_path):
    said = done("evaluate TOTALS --truth FLOWS --out figures")
    assert said.startswith("CONFIDENTIAL")
    for word in ("region > region", "origin region", "by column 'count'"):
        assert word in said
    assert names(tmp_path / "figures") == {
        "evaluation.json",
        *(f"{table}.{ending}" for table in TABLES[:3] for ending in ("csv", "parquet")),
    }
    stated = json.loads((tmp_path / "figures/CONFIDENTIAL-evaluation.json").read_text())
    assert stated["confidential"] is True
    assert stated["levels"][0]["total_true"] == 5_000
    assert stated["levels"][0]["max_abs_error"] == 0


def test_intervals_of_measurements_are_checked_as_well(done, tmp_path):
    assert "intervals (95 %)" in done(f"{EVALUATE} --html")
    assert {"intervals.csv", "intervals.parquet", "evaluation.html"} < names(tmp_path / "figures")
    page = (tmp_path / "figures/CONFIDENTIAL-evaluation.html").read_text(encoding="utf-8")
    assert "in their interval" in page


def test_an_estimate_stands_beside_the_release(done, tmp_path):
    assert done(f"{EVALUATE} --estimate ESTIMATE").count("common part") == 2
    assert {f"estimate-{table}.csv" for table in TABLES} < names(tmp_path / "figures")
    stated = json.loads((tmp_path / "figures/CONFIDENTIAL-evaluation.json").read_text())
    assert stated["estimate"]["levels"][-1]["total_released"] == 5_000
    assert stated["estimate"]["confidential"] is True


@pytest.mark.parametrize(
    "line", ["release FLOWS.csv --areas AREAS --rho 1", "evaluate RELEASE --truth FLOWS.csv"]
)
def test_a_column_that_looks_like_counts_must_be_named(typed, country, tmp_path, line):
    rows = country.made.flows().to_pylist()
    text = "".join(f"{row['origin']},{row['destination']},{row['count']}\n" for row in rows)
    (tmp_path / "FLOWS.csv").write_text(f"origin,destination,n\n{text}")
    refused = typed(f"{line} --out made")
    assert refused.code == 2
    assert "'n'" in refused.err
    assert not (tmp_path / "made").exists()
    assert "by column 'n'" in typed(f"{line} --out made --count n").out


def test_methods_are_compared_and_everything_is_marked(done, tmp_path):
    methods = "--methods suppress:10,round:5,cell-key,inftda --epsilon 1,5 --delta 1e-6"
    said = done(f"compare FLOWS --areas AREAS {methods} --out figures --html")
    assert said.startswith("CONFIDENTIAL")
    for name in ("suppress:10", "round:5", "cell-key:3", "inftda, epsilon 5"):
        assert name in said
    folder = tmp_path / "figures"
    assert names(folder) == {f"methods.{end}" for end in ("csv", "html", "json", "parquet")}
    page = (folder / "CONFIDENTIAL-methods.html").read_text()
    assert page.count("CONFIDENTIAL: this page") == 2
    assert "<script" not in page
    stated = json.loads((folder / "CONFIDENTIAL-methods.json").read_text())
    assert stated["confidential"] is True
    assert [one["is_guaranteed"] for one in stated["methods"]] == [False] * 3 + [True] * 2
