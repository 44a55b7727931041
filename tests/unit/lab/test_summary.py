"""The page of results: ours beside the published figures, better and worse alike."""

from dataclasses import replace

import pyarrow as pa
import pytest
from tiny_experiment import results_of, tiny_spec

from inftda.errors import InftdaError
from inftda.lab.experiments.summary import write_summary

#: (epsilon, level, metric, min, mean, max) of InfTDA.
PUBLISHED = [
    (1.0, 0, "max_error", 0.0, 0.0, 0.0),
    (1.0, 1, "max_error", 100.0, 110.0, 120.0),
    (1.0, 2, "max_error", 1000.0, 1100.0, 1200.0),
    (1.0, 2, "false_discovery_rate", 50.0, 55.0, 60.0),
    (1.0, 2, "false_negative_rate", 10.0, 11.0, 12.0),
]


@pytest.fixture
def page(tmp_path):
    """Writes a summary; gives its text."""

    def write(results, *, published=PUBLISHED, figures=(), **changes):
        spec = replace(tiny_spec(tmp_path), **changes)
        file = None
        if published is not None:
            file = tmp_path / "published.csv"
            lines = [",".join(map(str, ("Tiny", "InfTDA", *row))) for row in published]
            head = "dataset,mechanism,epsilon,level,metric,min,mean,max"
            file.write_text("\n".join([head, *lines]) + "\n")
        path = tmp_path / "summary.md"
        write_summary(results, spec, path, published=file, figures=list(figures))
        return path.read_text(encoding="utf-8")

    return write


def errors(values, *, mechanism="inftda", setting="ours", measure="max_abs_error"):
    """Two runs whose mean is the value, for levels 0, 1, 2."""
    rows = [
        (mechanism, 1.0, run, level, measure, value + (run - 0.5))
        for level, value in enumerate(values)
        for run in (0, 1)
    ]
    return results_of(rows, setting=setting)


def section(text, title):
    """The part of the page below a heading."""
    return text.split(f"## {title}", 1)[1].split("\n## ", 1)[0]


def cells_of(table_line):
    return [cell.strip() for cell in table_line.strip().strip("|").split("|")]


def test_cells_outside_of_the_published_range_are_listed_with_their_figures(page):
    # 115 is inside; 1385 is above 1200 by more than 15 %.
    text = page(errors((0.5, 115, 1385), setting="published"), settings=("published",))
    part = section(text, "With the published settings")
    assert "Cells outside of the widened range: 2." in part
    rows = [cells_of(line) for line in part.splitlines() if line.startswith("| tiny")]
    assert [row[3:] for row in rows] == [
        ["level 0", "max_abs_error", "0.5", "0.0", "0.0"],
        ["level 2", "max_abs_error", "1385.0", "1000.0", "1200.0"],
    ]
    assert "| inftda | max_abs_error | 3 | 33.3 % |" in part
    assert "do not give the privacy they state" in part


@pytest.mark.parametrize(
    ("value", "is_within"),
    [(849, False), (851, True), (1000, True), (1200, True), (1379, True), (1381, False)],
)
def test_the_range_is_widened_by_fifteen_percent_and_no_more(page, value, is_within):
    text = page(
        errors((0, 110, value), setting="published"),
        settings=("published",),
        published=PUBLISHED[1:],
    )
    assert f"Cells outside of the widened range: {int(not is_within)}." in text


def test_rates_are_compared_in_percent(page):
    rates = errors((0, 0, 0), setting="published", measure="false_discovery_rate")
    rows = [{**row, "value": 0.55} if row["level"] == 2 else row for row in rates.to_pylist()]
    text = page(type(rates).from_pylist(rows, schema=rates.schema), settings=("published",))
    assert "| inftda | false_discovery_rate | 1 | 100.0 % |" in text


def test_our_figures_stand_beside_the_published_ones_with_the_gain(page):
    text = page(errors((0, 55, 500)))
    part = section(text, "With our default: what is gained")
    rows = [cells_of(line) for line in part.splitlines() if line.startswith("| level")]
    assert rows.pop(0) == ["level", "ours, epsilon 1", "published", "factor"]
    assert rows == [["level 1", "55.0", "110.0", "2.0"], ["level 2", "500.0", "1100.0", "2.2"]]
    assert "### tiny" in part
    assert "With the published settings" not in text


def test_worse_is_said_as_plainly_as_better(page):
    results = pa.concat_tables(
        [
            errors((0, 50, 500)),
            errors((0, 40, 900), mechanism="tda-l2"),
            errors((0, 900, 100), mechanism="stability-histogram"),
        ]
    )
    part = section(page(results), "Where InfTDA is worse")
    rows = [cells_of(line) for line in part.splitlines()[3:] if line.startswith("|")]
    assert ["tda-l2", "coarser", "1", "1", "1.25"] in rows
    assert ["tda-l2", "finest", "0", "1", ""] in rows
    assert ["stability-histogram", "finest", "1", "1", "5.0"] in rows
    assert ["stability-histogram", "coarser", "0", "1", ""] in rows


def test_all_mechanisms_are_compared_at_the_finest_level(page):
    results = pa.concat_tables(
        [
            errors((0, 50, 500)),
            errors((0, 0, 0), measure="common_part"),
            results_of([("inftda", 1.0, run, -1, "time", 0.25 + run / 2) for run in (0, 1)]),
            errors((0, 40, 900), mechanism="tda-l2"),
        ]
    )
    part = section(page(results, published=None), "All mechanisms")
    rows = [cells_of(line) for line in part.splitlines() if line.startswith(("| inf", "| tda"))]
    assert [row[:3] for row in rows] == [["inftda", "1.0", "500.0"], ["tda-l2", "1.0", "900.0"]]
    assert rows[0][-1] == "0.500"
    assert rows[1][-1] == "", "no time is not a time of 0"


def test_without_published_figures_nothing_is_compared_with_them(page):
    text = page(errors((0, 50, 500)), published=None)
    assert "what is gained" not in text
    assert "All mechanisms with our default" in text


def test_a_data_set_without_published_figures_is_not_compared_with_them(page, tmp_path):
    unpublished = replace(tiny_spec(tmp_path).datasets[0], published=None)
    text = page(errors((0, 50, 500)), datasets=(unpublished,))
    assert "what is gained" not in text
    assert "All mechanisms with our default" in text


def test_what_was_run_and_how_is_said(page, tmp_path):
    text = page(errors((0, 50, 500)), runs=7, delta=1e-5, figures=[tmp_path / "a-ours.png"])
    assert text.startswith("# Results\n")
    assert "7 runs, delta = 1e-05" in text
    assert f"![a ours]({(tmp_path / 'a-ours.png').as_posix()})" in text


def test_tables_are_tables(page):
    """Every row of a table has as many cells as its head."""
    for block in page(errors((0, 50, 500))).split("\n\n"):
        lines = block.splitlines()
        if lines[0].startswith("|"):
            assert set(lines[1]) <= set("|-")
            assert len({line.count("|") for line in lines}) == 1


HEAD = b"dataset,mechanism,epsilon,level,metric,min,mean,max\n"


@pytest.mark.parametrize(
    "content",
    [None, b"\xff\xfe\x00", b"a,b\n1,2\n", b"", HEAD + b"Tiny,InfTDA,1,1,max_error,low,110,120\n"],
)
def test_published_figures_that_cannot_be_read_are_told(tmp_path, content):
    file = tmp_path / "published.csv"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InftdaError, match="published figures"):
        write_summary(
            errors((0, 50, 500)), tiny_spec(tmp_path), tmp_path / "s.md", published=file, figures=[]
        )
