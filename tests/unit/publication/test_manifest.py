"""The manifest: read back as it was written, and refused where it is not what it must be."""

import json
import platform
from copy import deepcopy
from importlib.metadata import version

import pytest
from small_release import HEALTH, OD, manifest_of, rows_of

from inftda.errors import BudgetError, InftdaError, ReleaseError
from inftda.privacy.plan import make_plan
from inftda.privacy.unit import Unit
from inftda.publication.manifest import Manifest, software_versions


def written(tree=OD, **changes):
    """A manifest as it comes out of JSON."""
    return json.loads(manifest_of(tree, rows_of(tree), **changes).to_text())


def read(data):
    """A manifest from what JSON gives, as a release would write it."""
    return Manifest.from_text((json.dumps(data, indent=2) + "\n").encode())


@pytest.mark.parametrize("tree", [OD, HEALTH])
@pytest.mark.parametrize("is_private", [True, False])
def test_a_manifest_is_read_back_as_it_was_written(tmp_path, tree, is_private):
    made = manifest_of(tree, rows_of(tree), private=is_private)
    path = tmp_path / "manifest.json"
    path.write_text(made.to_text(), encoding="utf-8")
    assert Manifest.read(path) == made
    assert Manifest.read(path).to_dict() == made.to_dict()


@pytest.mark.parametrize(
    "plan",
    [
        make_plan(OD, Unit(), epsilon=1, delta=1e-8),
        make_plan(OD, Unit("add-remove", trips=3, distinct=True), rho="1/3"),
    ],
)
def test_the_plan_is_read_back_exactly(plan):
    assert read(written(guarantee=plan.to_dict())).plan == plan


def test_a_plan_that_promises_more_than_its_noise_gives_is_refused():
    plan = make_plan(OD, Unit(), epsilon=1, delta=1e-8)
    with pytest.raises(BudgetError):
        _ = read(written(guarantee={**plan.to_dict(), "epsilon": 0.99})).plan


def test_another_mechanism_is_refused_and_never_guessed():
    with pytest.raises(ReleaseError, match=r"'inftda-2'.*mechanism"):
        read({**written(), "mechanism": "inftda-2"})


#: Where each fact stands, and a value of another kind.
FACTS = {
    ("format",): "inftda-release/2",
    ("private",): 1,
    ("mechanism",): ["inftda"],
    ("options",): "none",
    ("guarantee",): [],
    ("tree",): "oak",
    ("tree", "axes"): {},
    ("tree", "order"): "origin",
    ("tree", "axes", 0): "origin",
    ("tree", "axes", 0, "name"): 1,
    ("tree", "axes", 1, "levels"): "town",
    ("tree", "axes", 1, "file"): None,
    ("tree", "axes", 0, "fingerprint"): 7,
    ("tree", "axes", 0, "places_sha256"): None,
    ("counted",): "all",
    ("counted", "bounded"): 1,
    ("counted", "unplaceable"): "dropped",
    ("total",): 7.0,
    ("n_flows",): True,
    ("seed",): "0123",
    ("flows_sha256",): None,
    ("measurements",): "some",
    ("measurements_sha256",): 0,
    ("software",): "numpy",
}


def test_every_fact_of_the_manifest_is_among_those_damaged_below():
    data = written()
    keys = {(key,) for key in data} | {("tree", key) for key in data["tree"]}
    keys |= {("tree", "axes", key) for key in data["tree"]["axes"][0]}
    keys |= {("counted", key) for key in data["counted"]}
    damaged = {tuple(step for step in place if isinstance(step, str)) for place in FACTS}
    assert keys <= damaged


def damaged(place, change):
    data = deepcopy(written())
    *path, last = place
    holder = data
    for step in path:
        holder = holder[step]
    change(holder, last)
    return data


@pytest.mark.parametrize("place", FACTS, ids=str)
def test_a_fact_of_another_kind_is_refused_by_its_name(place):
    data = damaged(place, lambda holder, last: holder.__setitem__(last, FACTS[place]))
    name = next(step for step in reversed(place) if isinstance(step, str))
    with pytest.raises(ReleaseError, match=name):
        read(data)


@pytest.mark.parametrize("place", [p for p in FACTS if isinstance(p[-1], str)], ids=str)
def test_a_missing_fact_is_refused_by_its_name(place):
    data = damaged(place, lambda holder, last: holder.pop(last))
    with pytest.raises(ReleaseError, match=place[-1]):
        read(data)


@pytest.mark.parametrize(
    "place", [(key,) for key in make_plan(OD, Unit(), rho=1).to_dict()], ids=str
)
def test_a_guarantee_without_one_of_its_facts_promises_nothing(place):
    data = damaged(("guarantee", *place), lambda holder, last: holder.pop(last))
    with pytest.raises(InftdaError):
        _ = read(data).plan


@pytest.mark.parametrize(
    ("fact", "number"), [("total", 2**63), ("total", -(2**63)), ("n_flows", -1), ("n_flows", 2**70)]
)
def test_more_than_any_release_can_have_is_refused(fact, number):
    with pytest.raises(ReleaseError, match="no release can have"):
        read({**written(), fact: number})


@pytest.mark.parametrize("data", [None, [], "text", 3, {}, {"format": None}])
def test_what_is_no_manifest_at_all_is_refused(data):
    with pytest.raises(ReleaseError, match="not that of a release"):
        read(data)


def test_many_keys_of_which_one_stands_twice_are_refused():
    """Whatever their number; comparing each with all others took minutes."""
    many = "".join(f'"{number}": 1, ' for number in range(100_000))
    text = manifest_of(OD, {}).to_text().replace('"noise"', f'{many}"0": 1, "noise"')
    with pytest.raises(ReleaseError, match="in line"):
        Manifest.from_text(text.encode())


@pytest.mark.parametrize("text", [b"", b"{", b"\xff\xfe", b"[" * 99_999])
def test_a_file_that_is_not_json_is_refused(tmp_path, text):
    path = tmp_path / "manifest.json"
    path.write_bytes(text)
    with pytest.raises(ReleaseError, match="damaged"):
        Manifest.read(path)
    with pytest.raises(ReleaseError, match="damaged"):
        Manifest.read(tmp_path)


def test_the_versions_of_what_made_it_are_stated():
    versions = software_versions()
    assert versions["python"] == platform.python_version()
    for name in ("inftda", "numpy", "numba", "cryptography"):
        assert versions[name] == version(name)
    assert written()["software"] == versions
