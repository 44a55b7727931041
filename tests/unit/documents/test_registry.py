"""The registry entry: fields of the registry, known ones filled in, texts quoted."""

import csv
import os
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from inftda.documents.dossier import as_yaml

ROOT = Path(__file__).parents[3]
#: Texts that a careless quoting would change, and those that end a line or a comment.
HOSTILE = 'A "town": \\ # no, {epsilon} %s\n- \x85\u2028\u2029\ufeff\x7f\U0001f600\ud800 null'


def completed(text):
    """An entry with the optional lines taken in."""
    return re.sub(r"^( *)# (\w+: \")", r"\1\2", text, flags=re.MULTILINE)


def leaves(tree, above=()):
    """Names and values of all fields, in order."""
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, (*above, name))
        else:
            yield ".".join((*above, name)), value


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
def test_our_fields_are_those_of_the_registry_in_their_order(made):
    text = made()["registry.yaml"]
    found, listed = dict(leaves(yaml.safe_load(completed(text)))), registry_list()
    assert [*found] == [row["field"] for row in listed]
    without = dict(leaves(yaml.safe_load(text)))
    lines = {line.strip("# ").partition(":")[0]: at for at, line in enumerate(text.splitlines())}
    for row in listed:
        name, allowed = row["field"], [one for one in row["allowed"].split("; ") if one]
        if row["required"] == "yes":
            assert name in without
        # What may stand there is either filled in or listed in the comment above.
        if allowed and found[name]:
            assert str(found[name]) in allowed
        elif allowed:
            comment = text.splitlines()[lines[name.rpartition(".")[2]] - 1]
            assert all(one in comment for one in allowed), name


def test_what_follows_from_the_release_is_filled_in(made, published):
    entry = yaml.safe_load(made(title="Città: commuting, 2024")["registry.yaml"])
    plan = published.release.manifest.plan
    assert entry["url_slug"] == "citta-commuting-2024"
    assert (entry["status"], entry["tier"]) == ("Draft", 1)
    known = entry["deployment"]
    assert known["basic"]["name"] == "Città: commuting, 2024"
    assert known["dp_variant"]["variant_name"] == "Approximate DP"
    assert known["privacy_loss"]["privacy_parameters"]["epsilon"] == plan.epsilon
    assert known["privacy_loss"]["privacy_parameters"]["delta"] == plan.delta
    assert known["privacy_loss"]["privacy_parameters"]["rho"] >= plan.rho
    assert known["privacy_loss"]["privacy_unit_details"] == plan.unit.describe()
    assert known["dp_variant"]["unprotected_quantities"].startswith("the total")
    assert known["deployment_model"]["release_type"] == "One release"
    assert known["deployment_model"]["release_type_details"] is None
    # What only the office can know is not made up.
    assert known["basic"]["data_curators"] == known["administrative"]["registry_authors"] == []
    assert "preprocessing_and_hyperparameter_tuning" not in known["implementation"]
    assert "data_source_type" not in known["deployment_model"]


def test_a_ledger_says_how_often_was_released(made, published):
    text = made(ledger=published.ledger, dataset="commuting")["registry.yaml"]
    known = yaml.safe_load(text)["deployment"]["deployment_model"]
    assert known["release_type"] == "Many releases"
    assert "2 releases" in known["release_type_details"]


def test_texts_with_special_characters_are_read_back_and_add_no_field(made):
    plain = yaml.safe_load(made()["registry.yaml"])
    hostile = yaml.safe_load(made(title=HOSTILE.replace("\ud800", ""), force=True)["registry.yaml"])
    assert hostile["deployment"]["basic"]["name"] == HOSTILE.replace("\ud800", "")
    assert [name for name, _ in leaves(hostile)] == [name for name, _ in leaves(plain)]


@given(st.text())
def test_every_text_is_read_back(text):
    line = as_yaml(text)
    assert len(line.splitlines()) == 1
    assert yaml.safe_load(f"a: {line}  # comment") == {"a": text}


@pytest.mark.parametrize("value", [0.0, 1.0, 0.5, 1e-8, 1.5e-9, 1e17, 0.0267727, None])
def test_every_number_is_read_back(value):
    assert yaml.safe_load(f"a: {as_yaml(value)}") == {"a": value}
