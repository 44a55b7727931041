import stat

import pyarrow as pa
import pytest

from inftda.errors import ReleaseError
from inftda.reports.confidential import NOTICE, write_confidential_page

MEASURES = [
    {"level": 0, "name": "all > all", "max_abs_error": 0, "false_discovery_rate": 0.0, "sizes": ()},
    {"level": 1, "name": "x", "max_abs_error": 12_345, "false_discovery_rate": 0.25, "sizes": ()},
]


@pytest.fixture
def made(od, country, tmp_path):
    return write_confidential_page(od, country.flows(), MEASURES, tmp_path / "page.html")


def test_the_page_says_unmistakably_what_it_is(made):
    text = made.read_text()
    assert text.count(NOTICE) == 2
    assert "<title>CONFIDENTIAL" in text
    assert 'class="confidential"' in text
    assert "noindex" in text


def test_only_the_owner_can_read_the_file(made):
    assert stat.S_IMODE(made.stat().st_mode) == 0o600


def test_the_measures_are_shown(made):
    text = made.read_text()
    assert "12,345" in text
    assert "25.0\N{NO-BREAK SPACE}%" in text


def test_truth_and_release_are_both_there(made, unpacked, numbers, od, country):
    header, sections = unpacked(made.read_text())
    assert sum(numbers(sections["flows-truth"])) == country.count.sum()
    assert sum(numbers(sections["flows-values"])) == od.total
    assert header["confidential"]


def test_a_truth_with_other_columns_or_codes_is_refused_without_telling_a_row(od, tmp_path):
    out = tmp_path / "page.html"
    with pytest.raises(ReleaseError, match="must have the columns origin, destination and count"):
        write_confidential_page(od, pa.table({"origin": ["01"]}), MEASURES, out)
    table = pa.table({"origin": ["secret"], "destination": ["01"], "count": [3]})
    with pytest.raises(ReleaseError, match="column 'origin'") as problem:
        write_confidential_page(od, table, MEASURES, out)
    assert "secret" not in str(problem.value)
    assert not out.exists()


def test_other_tables_have_a_confidential_page_too(three_axes, tmp_path, unpacked):
    truth = three_axes.flows().rename_columns(["disease", "sex", "age", "count"])
    out = write_confidential_page(three_axes, truth, [], tmp_path / "page.html")
    _, sections = unpacked(out.read_text())
    assert sections["flows-truth"] == sections["flows-values"]
