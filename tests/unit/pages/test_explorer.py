"""What the explorer of a page holds, unpacked as a browser unpacks it."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import inftda
from inftda.areas.build import build_tree
from inftda.areas.locations import Gazetteer
from inftda.noise.bits import SeededSource
from inftda.pages import explorer
from inftda.pages.explorer import Layout, Quality, Table, pack_explorer
from inftda.pages.packing import Pack


def packed(made, quality=None, **options):
    """What the explorer holds, and down to which levels."""
    table = Table(made.tree.axes, *made.leaves(), **options)
    places = Gazetteer.of(axis.hierarchy for axis in table.axes)
    return pack_explorer(table, places, None, quality or Quality())


def cells_of(header, arrays, name, column):
    """Codes of each cell of the finest level on the page, and its number."""
    entries = [axis["levels"] or header["axes"][0]["levels"] for axis in header["axes"]]
    codes = [levels[-1]["codes"] for levels in entries]
    found = {}
    for number, value in zip(arrays[f"{name}.cells"], arrays[f"{name}.{column}"], strict=True):
        place = []
        for of_axis in reversed(codes):
            number, index = divmod(number, len(of_axis))  # noqa: PLW2901 - digit by digit
            place.append(of_axis[index])
        found[tuple(reversed(place))] = value
    return found


WIDE = st.integers(-(2**52), 2**52)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(numbers=npst.arrays(np.int64, st.integers(0, 40), elements=WIDE))
def test_numbers_come_back_as_they_were(unpacked, numbers):
    pack = Pack({"codes": ["</script>", "&<>\"'"]})
    pack.add("numbers", numbers)
    assert unpacked(pack.text())[1]["numbers"] == numbers.tolist()
    assert not set(pack.text()) & set("<>&\"'")


def test_the_flows_of_the_page_are_those_of_the_release(od, unpacked):
    data, _ = packed(od)
    header, arrays = unpacked(data)
    assert data == packed(od)[0]
    assert cells_of(header, arrays, "flows", "value") == {
        (row["origin"], row["destination"]): row["flow"] for row in od.flows().to_pylist()
    }
    assert not header["confidential"]
    assert "flows.truth" not in arrays


def test_a_page_that_would_be_too_heavy_goes_less_deep(od, unpacked, monkeypatch):
    monkeypatch.setattr(explorer, "MAX_LETTERS", len(packed(od)[0]) - 1)
    data, depths = packed(od)
    assert depths == (2, 2)
    header, arrays = unpacked(data)
    expected = od.flows("province", "province")
    assert sorted(arrays["flows.value"]) == sorted(expected.column("flow").to_pylist())
    assert len(header["axes"][0]["levels"]) == 2


def test_at_last_further_axes_are_summed_up_and_never_the_two_that_are_laid_out(
    three_axes, unpacked, monkeypatch
):
    monkeypatch.setattr(explorer, "MAX_LETTERS", 1)
    data, depths = packed(three_axes)
    assert depths == (1, 1, 0)
    assert sum(unpacked(data)[1]["flows.value"]) == three_axes.total


@pytest.mark.parametrize("name", ["one_axis", "three_axes"])
def test_tables_with_any_number_of_axes_are_held_whole(request, unpacked, name):
    made = request.getfixturevalue(name)
    header, arrays = unpacked(packed(made, what="patients")[0])
    axes = [axis.name for axis in made.tree.axes]
    assert (header["words"]["unit"], header["words"]["units"]) == ("Patients", "patients")
    assert cells_of(header, arrays, "flows", "value") == {
        tuple(row[axis] for axis in axes): row["flow"] for row in made.flows().to_pylist()
    }


def test_origin_and_destination_are_laid_out_wherever_they_stand():
    area, mode = {"area": ["a", "b"]}, {"mode": ["car", "ferry"]}
    tree = build_tree(axis={"mode": mode, "destination": area, "origin": area})
    layout = Layout.of(tree.axes)
    assert [axis.name for axis in layout.axes] == ["origin", "destination", "mode"]
    assert layout.has_trips
    assert layout.is_shared
    assert layout.key((1, 2, 3)) == "3,2,1"
    # mode 1, destination 0, origin 1: the last axis of the page, mode, runs fastest.
    areas = [np.array([one]) for one in (1, 0, 1)]
    assert layout.number((1, 1, 1), areas).tolist() == [(1 * 2 + 0) * 2 + 1]


def test_estimates_and_measurements_bring_intervals(measured, estimated, unpacked):
    quality = Quality.of(measured)
    assert {level.depths for level in measured.tree.levels} <= set(quality.intervals)
    data, _ = packed(measured, quality, estimated=estimated.leaves())
    header, arrays = unpacked(data)
    assert sum(arrays["estimated.value"]) == measured.total
    tables = {
        "intervals-3,3": measured.flows(intervals=True),
        "estimated-intervals-3,3": estimated.flows(),
    }
    for name, table in tables.items():
        low = cells_of(header, arrays, name, "low")
        width = cells_of(header, arrays, name, "width")
        for row in table.to_pylist():
            place = row["origin"], row["destination"]
            assert (low[place], low[place] + width[place]) == (row["low"], row["high"])
        assert len(low) == table.num_rows


def test_an_empty_release_can_be_packed(od, unpacked):
    empty = {"origin": pa.array([], pa.string()), "destination": pa.array([], pa.string())}
    table = pa.table({**empty, "flow": pa.array([], pa.int64())})
    nothing = replace(od, manifest=replace(od.manifest, total=0, n_flows=0), table=table)
    assert unpacked(packed(nothing)[0])[1]["flows.value"] == []


def test_a_page_opens_at_the_finest_level_that_can_be_used(country, unpacked):
    """Most of what is counted is in numbers that cannot be zero: finer with less noise."""
    opened = {}
    for epsilon in (0.02, 1):
        made = inftda.release(
            country.flows(), country.areas, epsilon=epsilon, delta=1e-6, source=SeededSource(1)
        )
        opened[epsilon] = unpacked(packed(made, Quality.of(made))[0])[0]["opens"]
        (level,) = {*opened[epsilon]}
        for at in range(level, 4):
            name = country.areas.level_name(at)
            rows = made.flows(name, name, intervals=True).to_pylist()
            sure = sum(row["flow"] for row in rows if row["grade"] != "D")
            assert (2 * sure >= made.total) == (at == level)
    assert opened[0.02] < opened[1]
