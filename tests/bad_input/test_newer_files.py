"""Releases and estimates that a newer version wrote: read, refused, or verified in part."""

import pytest

import inftda
from edited_folders import restate
from inftda.cli.main import run
from inftda.errors import ReleaseError, UncheckedError


def put(*places, value=1):
    """A new entry at each place, given by its keys."""

    def change(stated):
        for *path, key in places:
            holder = stated
            for step in path:
                holder = holder[step]
            holder[key] = value

    return change


NEW = [
    ("weather",),
    ("counted", "weather"),
    ("guarantee", "privacy_unit", "weather"),
    ("guarantee", "levels", 1, "noise", "weather"),
    ("axes", 0, "weather"),
]


def test_entries_of_a_newer_version_are_ignored_by_readers_and_named_by_verify(made):
    before = inftda.open_release(made)
    restate(made, put(*NEW, value={"any": ["thing"]}))
    after = inftda.open_release(made)
    assert after.manifest == before.manifest
    assert after.flows(intervals=True).equals(before.flows(intervals=True))
    with pytest.raises(UncheckedError, match=r"'weather', 'counted\.weather'.*newer") as found:
        inftda.verify(made)
    assert "guarantee follows from the noise" in " ".join(found.value.passed)
    assert inftda.estimate(made).manifest.release_sha256 == after.manifest.sha256
    assert after.manifest.sha256 != before.manifest.sha256


@pytest.mark.parametrize("entry", NEW, ids=str)
def test_an_unknown_entry_never_verifies_wherever_it_is(made, entry):
    restate(made, put(entry))
    inftda.open_release(made)
    with pytest.raises(UncheckedError, match="weather"):
        inftda.verify(made)


def test_a_number_that_is_too_long_to_read_is_explained(made, capsys):
    path = made / "manifest.json"
    text = path.read_text(encoding="utf-8").removesuffix("\n}\n")
    path.write_text(f'{text},\n  "weather": {"1" * 5000}\n}}\n', encoding="utf-8")
    for verb in ("verify", "query"):
        assert run([verb, str(made)]) == 2
        assert "the manifest is not readable as JSON" in capsys.readouterr().err


def test_an_unknown_division_is_neither_verified_nor_refuted(made, capsys):
    restate(made, put(("algorithm",), value=2))
    assert inftda.open_release(made).flows(intervals=True).num_rows
    assert run(["verify", str(made)]) == 1
    said = capsys.readouterr()
    assert "ok  guarantee follows from the noise" in said.out
    assert "follow from the measurements and the seed" not in said.out
    assert "verified (" not in said.out
    assert "cannot check that flows follow from the measurements" in said.err
    restate(made, lambda stated: stated.update(total=stated["total"] + 1))
    assert run(["verify", str(made)]) == 2


def requiring(stated):
    stated |= {"requires": {"poisson-noise": "1.4"}, "measurements": "some", "algorithm": None}


def test_a_feature_that_a_reader_must_know_is_named_with_its_version(made, tmp_path):
    inftda.estimate(made, out=tmp_path / "estimate")
    for folder, opened in (
        (made, inftda.open_release),
        (tmp_path / "estimate", inftda.open_estimate),
    ):
        restate(folder, requiring)
        with pytest.raises(
            ReleaseError, match=r"'poisson-noise', which inftda knows from version 1\.4"
        ):
            opened(folder)
    assert run(["verify", str(made)]) == 2
    assert run(["query", str(made)]) == 2


def test_another_format_is_refused_with_the_version_that_wrote_it(made):
    restate(made, put(("format",), value="inftda-release/2"))
    restate(made, put(("software", "inftda"), value="2.1.0"))
    with pytest.raises(ReleaseError, match=r"'inftda-release/2', written by inftda 2\.1\.0"):
        inftda.open_release(made)


def test_an_estimate_of_a_newer_version_is_opened(made, tmp_path):
    inftda.estimate(made, out=tmp_path / "estimate")
    before = inftda.open_estimate(tmp_path / "estimate").flows()
    restate(tmp_path / "estimate", put(("weather",), ("model", "levels", 0, "weather")))
    assert inftda.open_estimate(tmp_path / "estimate").flows().equals(before)
