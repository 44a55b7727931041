"""The manifest: read back as it was written, and refused where it is not what it must be."""

import json
import platform
from importlib.metadata import version

import pytest
from small_release import HEALTH, OD, manifest_of, rows_of

from inftda.errors import ReleaseError
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


def placed(place, value):
    """A manifest with another value at a place."""
    data = written()
    *path, last = place
    holder = data
    for step in path:
        holder = holder[step]
    holder[last] = value
    return data


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("division_seed",), "00" * 16 + "\n"),
        (("edition",), "2024\n"),
        (("counted", "what"), "people\n"),
    ],
    ids=str,
)
def test_a_fact_that_ends_in_a_line_break_is_refused_by_its_name(place, value):
    """All else that a fact may be is tried among the forged releases."""
    with pytest.raises(ReleaseError, match=place[-1]):
        read(placed(place, value))


def test_a_version_that_ends_in_a_line_break_is_refused():
    with pytest.raises(ReleaseError, match="regex"):
        read(placed(("software", "numpy"), "2.0\n"))


@pytest.mark.parametrize(
    ("fact", "number"), [("total", 2**63), ("total", -(2**63)), ("n_flows", -1), ("n_flows", 2**70)]
)
def test_more_than_any_release_can_have_is_refused(fact, number):
    with pytest.raises(ReleaseError, match=fact):
        read({**written(), fact: number})


@pytest.mark.parametrize("data", [None, [], "text", 3, {}, {"format": None}])
def test_what_is_no_manifest_at_all_is_refused(data):
    with pytest.raises(ReleaseError, match="not that of a release"):
        read(data)


def test_many_keys_of_which_one_stands_twice_are_refused():
    """Whatever their number; comparing each with all others took minutes."""
    many = "".join(f'"{number}": 1, ' for number in range(100_000))
    text = manifest_of(OD, {}).to_text().replace('"total"', f'{many}"0": 1, "total"')
    with pytest.raises(ReleaseError, match="line"):
        Manifest.from_text(text.encode())


def test_the_versions_of_what_made_it_are_stated():
    versions = software_versions()
    assert versions["python"] == platform.python_version()
    assert versions["inftda"] == version("inftda-od")
    for name in ("numpy", "numba", "cryptography"):
        assert versions[name] == version(name)
    assert written()["software"] == versions
