"""The folder of an export: whole or not at all, and nothing is replaced that is not ours."""

import pytest

import inftda
from inftda.errors import InftdaError, ReleaseError
from inftda.export.api import KINDS, export


def test_an_export_replaces_an_export_only_if_asked(exported):
    folder = exported("csv", levels=["region"])
    with pytest.raises(ReleaseError, match="exists already"):
        exported("csv")
    exported("csv", levels=["province"], force=True)
    assert not (folder / "flows-1-region.csv").exists()


def test_what_is_no_export_is_never_replaced(exported, country, tmp_path):
    folder = exported("csv")
    (folder / "mine.txt").write_text("mine")
    with pytest.raises(ReleaseError, match=r"'mine.txt' in it is not part of the export"):
        exported("csv", force=True)
    other = tmp_path / "other"
    other.mkdir()
    (other / "datapackage.json").write_text('{"resources": []}')
    with pytest.raises(ReleaseError, match="not an export"):
        export(country.release, to="csv", out=other, force=True)
    assert (other / "datapackage.json").exists()


def test_nothing_is_written_into_a_release(country, tmp_path):
    country.release.save(tmp_path / "release")
    with pytest.raises(ReleaseError, match="lies in the release folder"):
        export(tmp_path / "release", to="csv", out=tmp_path / "release" / "csv")


def test_a_folder_is_as_good_as_an_open_release(country, tmp_path):
    country.release.save(tmp_path / "release")
    options = {"to": "csv", "intervals": False}
    first = inftda.export(tmp_path / "release", out=tmp_path / "a", **options)
    second = inftda.export(country.release, out=tmp_path / "b", **options)
    name = "flows-3-municipality.csv"
    assert (first / name).read_bytes() == (second / name).read_bytes()


def test_wrong_choices_are_refused_before_anything_is_done(country, tmp_path):
    with pytest.raises(InftdaError, match=f"there are {', '.join(KINDS)}"):
        export(country.release, to="xls", out=tmp_path / "x")
    with pytest.raises(InftdaError, match="only an export to od can be wide"):
        export(country.release, to="csv", out=tmp_path / "x", wide=True)
    with pytest.raises(ReleaseError, match="no release folder"):
        export(tmp_path / "nothing", to="csv", out=tmp_path / "x")
    assert not list(tmp_path.iterdir())


class Estimate:
    """What an estimate has to have."""

    def __init__(self, release):
        self.tree = release.tree
        self._release = release

    def flows(self, *, levels=None):
        table = self._release.flows(levels=levels)
        value = table.column("flow")
        table = table.rename_columns([*table.column_names[:-1], "estimate"])
        return table.append_column("low", value).append_column("high", value)


def test_whatever_has_a_tree_and_flows_is_exported_the_same_way(exported, country):
    for kind in KINDS:
        folder = exported(kind, source=Estimate(country.release))
        assert "estimates" in (folder / "datapackage.json").read_text()
    header = (folder.parent / "csv" / "flows-1-region.csv").read_text().splitlines()[0]
    assert header == '"origin","destination","estimate","low","high"'


class Measured(Estimate):
    """What can be asked for intervals, and has what they are computed from, or not."""

    def __init__(self, release, *, has_any):
        super().__init__(release)
        self._has_any = has_any

    def flows(self, *, levels=None, intervals=False):
        if intervals and not self._has_any:
            raise ReleaseError("nothing was measured")
        table = super().flows(levels=levels)
        return table if intervals else table.drop_columns(["low", "high"])


@pytest.mark.parametrize("has_any", [True, False])
def test_a_source_is_asked_for_intervals_if_it_has_any(exported, country, has_any):
    folder = exported("csv", source=Measured(country.release, has_any=has_any))
    header = (folder / "flows-1-region.csv").read_text().splitlines()[0]
    assert ('"low","high"' in header) is has_any
