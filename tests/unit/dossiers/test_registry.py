"""The entry for the registry: complete, of the right kinds, and nothing else in it."""

import csv
import os
import re
from pathlib import Path

import pytest
import yaml
from office_answers import CATALOGUE, MORE, OFFICE

from inftda.dossiers.fields import FIELDS, tier_of
from inftda.dossiers.registry import check_entry
from inftda.errors import InftdaError

ROOT = Path(__file__).parents[3]
_KINDS = {
    "text": "string", "texts": "list of string", "whole": "integer", "number": "number",
    "number or text": "number|string", "any": "",
}  # fmt: skip


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
        {
            "field": field.path,
            "type": _KINDS[field.kind],
            "required": "yes" if field.required else "no",
            "tier": "" if field.tier is None else str(field.tier),
            "format": "date" if field.is_date else "",
            "allowed": "; ".join(map(str, field.allowed)),
        }
        for field in FIELDS
    ]
    assert ours == registry_list()


@pytest.mark.data
def test_an_entry_holds_what_the_list_asks_for_and_nothing_else(made):
    """By the list itself, not by our reading of it."""
    entry = yaml.safe_load(made(OFFICE | MORE | CATALOGUE)["registry.yaml"])
    listed = {row["field"]: row for row in registry_list()}
    found = dict(flat(entry))
    assert {*found} <= {*listed}
    assert {name for name, row in listed.items() if row["required"] == "yes"} <= {*found}
    checks = {
        "string": lambda value: isinstance(value, str),
        "integer": lambda value: type(value) is int,
        "number": lambda value: type(value) in {int, float},
        "number|string": lambda value: type(value) in {int, float, str},
        "list of string": lambda value: (
            isinstance(value, list) and all(type(one) is str for one in value)
        ),
        "": lambda _: True,
    }
    for name, value in found.items():
        assert checks[listed[name]["type"]](value), name
        allowed = [one for one in listed[name]["allowed"].split("; ") if one]
        assert not allowed or str(value) in allowed, name
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["deployment.basic.publication_date"])


def flat(entry, at=""):
    for key, value in entry.items():
        if isinstance(value, dict):
            yield from flat(value, f"{at}{key}.")
        else:
            yield f"{at}{key}", value


def test_what_follows_from_the_release_is_filled_in(made, published):
    entry = yaml.safe_load(made()["registry.yaml"])
    check_entry(entry)
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
    entry = yaml.safe_load(made(OFFICE | MORE, **options)["registry.yaml"])
    assert entry["tier"] == 3
    known = entry["deployment"]
    assert known["deployment_model"]["release_type"] == "Many releases"
    assert "2 releases" in known["deployment_model"]["release_type_details"]
    assert known["implementation"]["preprocessing_and_hyperparameter_tuning"] == (
        "No, epsilon was chosen on a public table. Counted: all rows of the table."
    )


def test_an_office_may_say_what_we_would_have_guessed(made):
    own = {"url_slug": "ours", "status": "Pending", "tier": 1, "data_product_type": "Dataset"}
    entry = yaml.safe_load(made(OFFICE | MORE | own)["registry.yaml"])
    assert [entry[key] for key in ("url_slug", "status", "tier")] == ["ours", "Pending", 1]
    assert entry["deployment"]["basic"]["data_product_type"] == "Dataset"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": "red"}, "knows no field 'colour'"),
        ({"tier": 4}, "tier of the registry's entry must not be '4'"),
        ({"tier": True}, "tier"),
        ({"status": "Done"}, "status"),
        ({"url_slug": None}, "url_slug"),
    ],
)
def test_an_entry_that_the_registry_would_refuse_is_refused(made, change, message):
    entry = yaml.safe_load(made()["registry.yaml"])
    with pytest.raises(InftdaError, match=message):
        check_entry(entry | change)


def test_an_entry_without_a_required_field_is_refused(made):
    entry = yaml.safe_load(made()["registry.yaml"])
    del entry["deployment"]["basic"]["description"]
    with pytest.raises(InftdaError, match=r"needs deployment\.basic\.description"):
        check_entry(entry)


def test_tiers_are_reached_one_after_the_other():
    of = {tier: {field.path for field in FIELDS if field.tier == tier} for tier in (1, 2, 3)}
    assert tier_of(of[1]) == 1
    assert tier_of(of[1] | of[3]) == 1
    assert tier_of(of[1] | of[2]) == 2
    assert tier_of(of[1] | of[2] | of[3]) == 3
