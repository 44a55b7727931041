"""A release as its users have it: flows at any level, in any format, saved and opened again."""

import shutil
import sys
from dataclasses import replace

import msgspec
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from small_release import HEALTH, OD, as_dict, grouped, make_release

from inftda.errors import MissingExtraError, ReleaseError
from inftda.publication.release import open_release
from inftda.publication.verify import verify
from inftda.tree import Axis, Tree
from inftda.tree.hierarchy import Hierarchy

#: Origin and destination, and an additional dimension.
MODES = Tree.build(
    [
        Axis("origin", Hierarchy.read({"town": ["1", "2"]})),
        Axis("destination", Hierarchy.read({"town": ["1", "2"]})),
        Axis("mode", Hierarchy.read({"kind": ["road", "road", "rail"], "mode": list("abc")})),
    ],
    ["origin", "mode", "destination", "mode"],
)


FINEST = {"origin": "town", "destination": "town", "mode": "mode"}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, {}),
        ({"origin_level": "town"}, {}),
        ({"origin_level": "all"}, {"origin": "all"}),
        ({"destination_level": "all"}, {"destination": "all"}),
        ({"level": {"mode": "all"}}, {"mode": "all"}),
        ({"level": {"mode": "kind"}}, {"mode": "kind"}),
        ({"level": {"origin": "all"}}, {"origin": "all"}),
        ({"origin_level": "all", "level": {"mode": "kind"}}, {"origin": "all", "mode": "kind"}),
    ],
)
@pytest.mark.parametrize("is_filtered", [False, True])
def test_every_axis_is_shown_at_its_finest_level_unless_another_is_named(
    arguments, named, is_filtered
):
    release, rows = make_release(MODES)
    levels = {name: level for name, level in {**FINEST, **named}.items() if level != "all"}
    filters = {"from_": "2", "where": {"mode": "road"}} if is_filtered else {}
    kept = (lambda cell: cell[0] == "2" and cell[2] in "ab") if is_filtered else (lambda _: True)
    found = release.flows(**arguments, **filters)
    assert as_dict(found) == grouped(MODES, rows, levels, kept=kept)


@pytest.mark.parametrize(
    "arguments",
    [
        {"origin_level": "region", "level": {"origin": "town"}},
        {"origin_level": "region", "level": {"origin": "region"}},
        {"destination_level": "city", "level": {"destination": "all"}},
        {"from_": "N", "where": {"origin": "S"}},
        {"to": "x", "where": {"destination": ["y"]}},
    ],
)
def test_an_axis_named_twice_is_refused(arguments):
    release, _ = make_release(OD)
    with pytest.raises(ReleaseError, match=r"axis '(origin|destination)' is given twice"):
        release.flows(**arguments)


@pytest.mark.parametrize("factor", [-1, 2**55])
def test_flows_that_no_release_has_are_refused(factor):
    made, _ = make_release(OD)
    *codes, flow = made.table.columns
    table = pa.table([*codes, pc.multiply(flow, factor)], schema=made.table.schema)
    with pytest.raises(ReleaseError, match="negative numbers"):
        replace(made, table=table).leaves()


def test_flows_come_as_arrow_pandas_or_polars():
    release, _ = make_release(OD)
    arrow, pandas, polars = (
        release.flows("region", "state", as_=kind) for kind in ("arrow", "pandas", "polars")
    )
    assert isinstance(arrow, pa.Table)
    assert isinstance(pandas, pd.DataFrame)
    assert isinstance(polars, pl.DataFrame)
    assert pandas.to_dict("records") == polars.to_dicts() == arrow.to_pylist()
    assert str(pandas.flow.dtype) == "int64"
    assert polars.schema["flow"] == pl.Int64
    with pytest.raises(ReleaseError, match="for flows 'geopandas'"):
        release.flows(as_="excel")


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_library_that_is_not_there_is_named(monkeypatch, kind):
    monkeypatch.setitem(sys.modules, kind, None)
    with pytest.raises(MissingExtraError, match=f"{kind}, which is not installed; install it"):
        make_release(OD)[0].flows(as_=kind)


@pytest.mark.parametrize("tree", [OD, HEALTH, MODES])
def test_a_saved_release_is_opened_as_it_was_and_verifies(tmp_path, tree):
    release, rows = make_release(tree)
    saved = release.save(tmp_path / "out")
    opened = open_release(str(tmp_path / "out"))
    for found in (saved, opened):
        assert msgspec.structs.replace(found.manifest, files={}) == release.manifest
        assert found.tree == tree
        assert as_dict(found.flows()) == rows
    assert len(list(verify(tmp_path / "out"))) >= 5


def test_an_opened_release_can_be_saved_elsewhere_and_in_place(tmp_path):
    release, rows = make_release(OD)
    first = release.save(tmp_path / "first")
    second = first.save(tmp_path / "second")
    shutil.rmtree(tmp_path / "first")
    third = second.save(tmp_path / "second", force=True)
    for found in (second, third):
        assert as_dict(found.flows()) == rows
    list(verify(tmp_path / "second"))


@pytest.fixture
def saved(tmp_path):
    make_release(OD)[0].save(tmp_path / "out")
    return tmp_path / "out"


def test_a_folder_that_is_missing_or_no_release_is_told(tmp_path, saved):
    with pytest.raises(ReleaseError, match="no release folder"):
        open_release(tmp_path / "nothing")
    with pytest.raises(ReleaseError, match=r"it has no manifest\.json"):
        open_release(tmp_path)
    (saved / "flows.parquet").unlink()
    with pytest.raises(ReleaseError, match=r"it has no flows\.parquet"):
        open_release(saved)
