"""What others rely on stays as it is, unless a change means to change it.

Expected values are in expected.json; `python tests/contract/update.py` writes it anew.
"""

import json
from pathlib import Path

import observe
import pytest

EXPECTED = json.loads((Path(__file__).parent / "expected.json").read_text("utf-8"))


@pytest.mark.parametrize("name", observe.RELEASES)
def test_a_seeded_release_is_the_same(name, tmp_path):
    observe.released(name, tmp_path / "release")
    assert observe.digests(tmp_path / "release") == EXPECTED["releases"][name]


def test_a_manifest_says_the_same(tmp_path):
    observe.released(next(iter(observe.RELEASES)), tmp_path / "release")
    assert observe.manifest(tmp_path / "release") == EXPECTED["manifest"]


def test_public_names_are_the_same():
    assert observe.public_names() == EXPECTED["public_names"]
    for name in observe.public_names():
        assert getattr(observe.inftda, name) is not None


def test_commands_have_the_same_options():
    assert observe.options() == EXPECTED["options"]


def test_commands_end_with_the_same_exit_codes(tmp_path):
    assert observe.exit_codes(tmp_path) == EXPECTED["exit_codes"]


def test_json_outputs_have_the_same_keys(tmp_path):
    assert observe.json_keys(tmp_path) == EXPECTED["json_keys"]
