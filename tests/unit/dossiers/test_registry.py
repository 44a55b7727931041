"""The entry for the registry: complete, of the right kinds, and nothing else in it."""

import csv
import os
import tomllib
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
import yaml
from answers import ALL, REQUIRED

from inftda.dossiers.registry import fields, read_answers, template
from inftda.errors import InftdaError

ROOT = Path(__file__).parents[3]


def registry_list():
    """The registry's own list of fields, where it lies beside the checkout."""
    data = os.environ.get("INFTDA_DATA")
    beside = Path(data).parent if data else ROOT.parent / "shared"
    path = beside / "registry-fields.csv"
    if not path.exists():
        pytest.skip(f"there is no {path.name} beside the checkout")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.data
def test_our_fields_are_those_of_the_registry_in_their_order():
    ours = [
        (".".join(field.path), "yes" if field.is_required else "no", str(field.tier or ""))
        for field in fields()
    ]
    listed = registry_list()
    assert ours == [(row["field"], row["required"], row["tier"]) for row in listed]
    for field, row in zip(fields(), listed, strict=True):
        allowed = [one for one in row["allowed"].split("; ") if one]
        kinds = getattr(field.type, "types", (field.type,))
        ours = [str(value) for kind in kinds for value in getattr(kind, "values", ())]
        assert sorted(ours) == sorted(allowed), row["field"]


def test_what_follows_from_the_release_is_filled_in(made, published):
    entry = yaml.safe_load(made()["registry.yaml"])
    plan = published.release.manifest.plan
    assert (entry["url_slug"], entry["status"], entry["tier"]) == (
        "commuting-in-lakeland-2024", "Draft", 1,
    )  # fmt: skip
    known = entry["deployment"]
    assert known["dp_variant"]["variant_name"] == "Approximate DP"
    assert known["privacy_loss"]["privacy_parameters"]["epsilon"] == plan.epsilon
    assert known["privacy_loss"]["privacy_parameters"]["delta"] == plan.delta
    assert known["privacy_loss"]["privacy_parameters"]["rho"] >= plan.rho
    assert known["privacy_loss"]["privacy_unit_details"] == plan.unit.describe()
    assert known["dp_variant"]["unprotected_quantities"].startswith("the total")
    assert known["deployment_model"]["release_type"] == "One release"
    # What only the office can know is not made up.
    assert "preprocessing_and_hyperparameter_tuning" not in known["implementation"]
    assert "data_source_type" not in known["deployment_model"]


def test_with_all_answers_the_entry_reaches_the_third_tier(made, published):
    options = {"ledger": published.ledger, "dataset": "commuting"}
    entry = yaml.safe_load(made(ALL, **options)["registry.yaml"])
    assert entry["tier"] == 3
    known = entry["deployment"]
    assert known["deployment_model"]["release_type"] == "Many releases"
    assert "2 releases" in known["deployment_model"]["release_type_details"]
    assert known["implementation"]["preprocessing_and_hyperparameter_tuning"] == (
        "No, epsilon was chosen on a public table. Counted: all rows of the table."
    )


def test_an_office_may_say_what_we_would_have_guessed(made):
    own = {"url_slug": "ours", "status": "Pending", "tier": 1, "data_product_type": "Dataset"}
    entry = yaml.safe_load(made(ALL | own)["registry.yaml"])
    assert [entry[key] for key in ("url_slug", "status", "tier")] == ["ours", "Pending", 1]
    assert entry["deployment"]["basic"]["data_product_type"] == "Dataset"


def test_the_template_asks_for_everything_and_answers_nothing(made):
    keys = tomllib.loads(template())
    assert {*keys} == {*ALL}
    assert read_answers(keys) == {}
    with pytest.raises(InftdaError, match="missing required field `name`"):
        made(keys)


@pytest.mark.parametrize("day", [date(2026, 1, 31), "2026-01-31"])
def test_a_filled_template_is_read_back(tmp_path, day):
    text = template()
    for key, value in (ALL | {"publication_date": day}).items():
        empty = "[]" if isinstance(value, list) else '""'
        filled = value.isoformat() if isinstance(value, date) else repr(value)
        text = text.replace(f"\n{key} = {empty}", f"\n{key} = {filled}")
    path = tmp_path / "about.toml"
    path.write_text(text, encoding="utf-8")
    assert read_answers(path) == ALL


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"publication_date": "31.1.2026"}, "must be a day such as 2026-01-31"),
        ({"publication_date": datetime(2026, 1, 31, 8, tzinfo=UTC)}, "must be a day"),
        ({"data_curator": "x"}, "did you mean 'data_curators'"),
        ({"data_curators": "x"}, r"Expected `array`, got `str` - at `.*data_curators`"),
        ({"data_curators": [""]}, "data_curators"),
        ({"name": 3}, r"Expected `str`, got `int` - at `.*basic.name`"),
        ({"status": "Done"}, "Invalid enum value 'Done' - at `.*status`"),
        ({"tier": 7}, "Invalid enum value 7 - at `.*tier`"),
        ({"tier": True}, "tier"),
        ({"url_slug": "A b"}, "url_slug"),
        ({"preprocessing_and_hyperparameter_tuning": "Maybe"}, "hyperparameter_tuning"),
        ({"name": ""}, "missing required field `name`"),
        ({"mechanisms": "ours"}, "unknown key 'mechanisms'"),
    ],
)
def test_a_wrong_answer_is_refused_with_what_is_wrong(made, change, message, tmp_path):
    with pytest.raises(InftdaError, match=message):
        made(REQUIRED | change)
    assert not (tmp_path / "dossier").exists()


def test_a_file_that_is_no_toml_is_refused(tmp_path):
    (tmp_path / "about.toml").write_text("name = ")
    with pytest.raises(InftdaError, match="is not TOML"):
        read_answers(tmp_path / "about.toml")
    with pytest.raises(InftdaError, match="cannot read"):
        read_answers(tmp_path / "nothing.toml")
