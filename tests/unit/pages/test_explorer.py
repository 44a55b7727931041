"""What the explorer of a page holds, unpacked as a browser unpacks it."""

import numpy as np
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
from inftda.publication.reliability import WHOLE


def packed(made, quality=None, **options):
    """What the explorer holds, and down to which levels."""
    table = Table(made.tree.axes, *made.leaves(), **options)
    places = Gazetteer.of(axis.hierarchy for axis in table.axes)
    return pack_explorer(table, places, None, quality or Quality())


WIDE = st.integers(-(2**52), 2**52)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(numbers=npst.arrays(np.int64, st.integers(0, 40), elements=WIDE))
def test_numbers_come_back_as_they_were(unpacked, numbers):
    pack = Pack({"codes": ["</script>", "&<>\"'"]})
    pack.add("numbers", numbers)
    assert unpacked(pack.text())[1]["numbers"] == numbers.tolist()
    assert not set(pack.text()) & set("<>&\"'")


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


def test_a_page_opens_at_the_finest_level_that_can_be_used(country, unpacked):
    """Nearly all that is counted is in usable numbers, as in a preview: finer with less noise."""
    opened = {}
    for epsilon in (0.02, 1):
        made = inftda.release(
            country.flows(), country.areas, epsilon=epsilon, delta=1e-6, source=SeededSource(1)
        )
        opened[epsilon] = unpacked(packed(made, Quality.of(made))[0])[0]["opens"]
        (level,) = {*opened[epsilon]}
        share = {use.level.depths: use.share for use in made.uses}
        assert [share[at, at] >= WHOLE for at in range(level, 4)] == [True] + [False] * (3 - level)
    assert opened[0.02] < opened[1]
