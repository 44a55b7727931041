"""The file of the office: a template that says what is asked, and clear refusals."""

import tomllib
from datetime import UTC, date, datetime

import pytest
from office_answers import CATALOGUE, MORE, OFFICE

from inftda.dossiers.office import ASKED, check_office, read_office, template
from inftda.errors import InftdaError


def test_the_template_asks_for_everything_and_answers_nothing():
    keys = tomllib.loads(template())
    assert {*keys} == {*OFFICE, *MORE, *CATALOGUE}
    assert {*keys} <= {*ASKED}
    with pytest.raises(InftdaError, match="does not say name, data_curators, intended_use"):
        check_office(keys, name="about.toml")


def test_a_filled_template_is_read_back(tmp_path):
    text = template()
    for key, value in (OFFICE | MORE | CATALOGUE).items():
        empty = "[]" if isinstance(value, list) else '""'
        text = text.replace(f"\n{key} = {empty}", f"\n{key} = {value!r}")
    path = tmp_path / "about.toml"
    path.write_text(text, encoding="utf-8")
    assert read_office(path) == OFFICE | MORE | CATALOGUE


@pytest.mark.parametrize("day", [date(2026, 1, 31), "2026-01-31"])
def test_a_day_may_be_a_date_or_a_text(day):
    assert check_office(OFFICE | {"publication_date": day})["publication_date"] == "2026-01-31"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"publication_date": "31.1.2026"}, "must be a day such as 2026-01-31"),
        ({"publication_date": datetime(2026, 1, 31, 8, tzinfo=UTC)}, "must be a day"),
        ({"data_curator": "x"}, "did you mean 'data_curators'"),
        ({"data_curators": "x"}, "must be a list of texts"),
        ({"data_curators": [""]}, "must be a list of texts"),
        ({"name": 3}, "name in 'about' must be a text"),
        ({"status": "Done"}, "must be one of 'Converted', 'Draft'"),
        ({"tier": 7}, "tier in 'about' must be one of 1, 2, 3"),
        ({"tier": True}, "tier in 'about' must be one of 1, 2, 3"),
        ({"url_slug": "A b"}, "small letters, digits and hyphens"),
        ({"preprocessing_and_hyperparameter_tuning": "Maybe"}, "must begin with yes or no"),
        ({"name": ""}, "does not say name"),
        ({"mechanisms": "ours"}, "nobody asked for"),
    ],
)
def test_a_wrong_answer_is_refused_with_what_is_wrong(change, message):
    with pytest.raises(InftdaError, match=message):
        check_office(OFFICE | change)


def test_a_file_that_is_no_toml_is_refused(tmp_path):
    (tmp_path / "about.toml").write_text("name = ")
    with pytest.raises(InftdaError, match="is not TOML"):
        read_office(tmp_path / "about.toml")
    with pytest.raises(InftdaError, match="cannot read"):
        read_office(tmp_path / "nothing.toml")
