"""Files of every version since 1.0 are opened by every reading verb, and answer the same.

`python tests/golden/add.py` writes those of a new version; the others never change.
"""

import json
from pathlib import Path

import jsonschema
import pytest

from golden.answers import KINDS, VERBS, Golden, digests, recorded
from matrix.test_matrix import REFUSED, typed

HERE = Path(__file__).parent
SCHEMAS = HERE.parents[1] / "docs/reference"
VERSIONS = sorted(path.parent for path in HERE.glob("*/digests.json"))
EACH = [pytest.param(at, kind, id=f"{at.name}-{kind}") for at in VERSIONS for kind in KINDS]
#: Two editions are compared; a single release has no other one.
READ = [
    pytest.param(at, kind, verb, id=f"{at.name}-{kind}-{verb}")
    for at in VERSIONS
    for kind in KINDS
    for verb in VERBS
    if verb != "change" or kind == "series"
]


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_there_are_golden_files():
    assert VERSIONS


@pytest.mark.parametrize("version", VERSIONS, ids=lambda path: path.name)
def test_no_golden_file_ever_changes(version):
    assert digests(version) == read(version / "digests.json")


@pytest.mark.parametrize(("version", "kind"), EACH)
def test_golden_files_answer_as_they_did(version, kind, tmp_path):
    found = recorded(kind, version / kind, tmp_path / kind)
    assert json.loads(json.dumps(found)) == read(version / "answers.json")[kind]


@pytest.mark.parametrize("version", VERSIONS, ids=lambda path: path.name)
def test_a_golden_ledger_has_all_its_charges(version, tmp_path):
    found = recorded("ledger", version / "ledger", tmp_path / "ledger")
    assert json.loads(json.dumps(found)) == read(version / "answers.json")["ledger"]
    assert len(found[0]["entries"]) == 3


@pytest.mark.parametrize(("version", "kind"), EACH)
def test_golden_files_verify(version, kind, tmp_path, capfd):
    golden = Golden(kind, version / kind, tmp_path / kind)
    key = " --key key.public.pem" if kind == "signed" else ""
    golden.done(f"verify {golden.release}{key}")
    assert "verified (" in capfd.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(("version", "kind", "verb"), READ)
def test_every_verb_reads_golden_files(version, kind, verb, tmp_path, capfd):
    golden = Golden(kind, version / kind, tmp_path / kind)
    code = golden.run(typed(golden, verb, tmp_path))
    said = capfd.readouterr().err
    if (kind, verb) in REFUSED:
        assert (code, REFUSED[kind, verb] in said) == (2, True), said
    else:
        assert code == 0, said


@pytest.mark.parametrize("version", VERSIONS, ids=lambda path: path.name)
def test_manifests_fit_the_published_schemas(version):
    """By a validator that knows nothing of inftda."""
    known = {
        name: jsonschema.Draft202012Validator(read(SCHEMAS / f"inftda-{name}-1.schema.json"))
        for name in ("release", "estimate")
    }
    seen = set()
    for path in sorted(version.rglob("manifest.json")):
        stated = read(path)
        kind = stated["format"].removeprefix("inftda-").partition("/")[0]
        known[kind].validate(stated)
        seen.add(kind)
        for key in stated:
            assert list(known[kind].iter_errors({**stated, key: object})), f"{key} may be anything"
            without = {name: value for name, value in stated.items() if name != key}
            assert list(known[kind].iter_errors(without)), f"{key} may be missing"
    assert seen == {"release", "estimate"}
