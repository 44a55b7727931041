"""What changed between two editions."""

from functools import cache

import numpy as np
import pytest

import inftda
from inftda import SeededSource, Unit
from inftda.errors import InftdaError, ReleaseError

TOWNS = [f"t{number:02}" for number in range(24)]
AREAS = {"region": [f"r{number // 6}" for number in range(24)], "town": TOWNS}
RANDOM = np.random.default_rng(7)
#: Few large flows, and many small ones.
BEFORE = RANDOM.poisson(np.outer(RANDOM.pareto(1.1, 24) + 0.2, RANDOM.pareto(1.1, 24) + 0.2) * 40)
LEVELS = [("town", "town"), ("region", "town"), ("region", "region"), ("town", "all")]


def table(counts):
    start, end = np.nonzero(counts)
    return {
        "origin": [TOWNS[i] for i in start],
        "destination": [TOWNS[i] for i in end],
        "count": counts[start, end].tolist(),
    }


def edition(flows, seed, *, areas=AREAS, **options):
    strength = {"epsilon": 1, "delta": 1e-6} | options
    return inftda.release(table(flows), areas, source=SeededSource(seed), **strength)


def summed(counts, level, axis):
    if level == "region":
        return np.add.reduceat(counts, np.arange(0, 24, 6), axis=axis)
    return counts.sum(axis=axis, keepdims=True) if level == "all" else counts


def true_changes(found, levels, difference):
    """The true change of each row."""
    for axis, level in enumerate(levels):
        difference = summed(difference, level, axis)
    columns = found.table.to_pydict()
    at = [
        [int(code[1:]) for code in columns[axis]] if axis in columns else [0] * len(found)
        for axis in ("origin", "destination")
    ]
    return difference[tuple(at)]


def editions(difference, seed):
    return edition(BEFORE, seed), edition(BEFORE + difference, seed + 10_000)


@cache
def changed(seed):
    """Two editions, and the difference between their true tables."""
    random = np.random.default_rng(seed)
    difference = random.poisson(BEFORE * 0.3) * random.integers(0, 2, BEFORE.shape)
    return editions(difference, 500 + seed), difference


def compared(both, levels, difference):
    """For each number: true change, change, ends of its interval, verdict."""
    found = inftda.change(*both, origin_level=levels[0], destination_level=levels[1])
    rows = found.table.to_pydict()
    columns = (np.array(rows[name]) for name in ("change", "low", "high", "verdict"))
    return true_changes(found, levels, difference), *columns


@pytest.mark.slow
def test_without_a_change_hardly_anything_is_said_to_have_changed():
    """Of 60 pairs of editions at most 5 % have a verdict on average; 15 have one in 1 of 2e7.

    With noise that is taken for two thirds of what it is, half of them have one: 30.
    """
    wrong, nothing = 0, np.zeros_like(BEFORE)
    for seed in range(60):
        *_, verdict = compared(editions(nothing, seed), ("town", "town"), nothing)
        wrong += (verdict != "not significant").any()
    assert wrong < 15


def test_intervals_hold_the_true_change_and_the_one_beside_them():
    """95 % on average: six pairs of editions, and ten standard errors below."""
    held, n = dict.fromkeys(LEVELS, 0), dict.fromkeys(LEVELS, 0)
    for seed in range(6):
        both, difference = changed(seed)
        for levels in LEVELS:
            true, change, low, high, _ = compared(both, levels, difference)
            assert ((low <= change) & (change <= high)).all()
            held[levels] += ((low <= true) & (true <= high)).sum()
            n[levels] += len(true)
    for levels in LEVELS:
        assert held[levels] / n[levels] > 0.95 - 10 * np.sqrt(0.95 * 0.05 / n[levels]), levels


def test_large_changes_are_told_in_the_right_direction():
    difference = np.zeros_like(BEFORE)
    largest = np.unravel_index(BEFORE.argmax(), BEFORE.shape)
    difference[largest], difference[5, 20] = -int(0.6 * BEFORE[largest]), 900
    both = editions(difference, 77)
    for levels in LEVELS:
        true, change, low, high, verdict = compared(both, levels, difference)
        is_large = np.abs(true) >= 800
        assert is_large.any()
        assert (verdict[is_large] == np.where(true[is_large] > 0, "rose", "fell")).all()
        assert (np.sign(low)[is_large] == np.sign(high)[is_large]).all()
        assert (np.sign(change)[is_large] == np.sign(true)[is_large]).all()


def test_a_verdict_holds_for_the_published_change_as_well_as_for_the_measured_one():
    """A change that lies at the end of its interval has a verdict only if it is large itself."""
    n_at_the_end = 0
    for seed in range(6):
        both, difference = changed(seed)
        _, change, low, high, verdict = compared(both, ("town", "town"), difference)
        is_at_the_end = (change == low) | (change == high)
        # An interval that was widened to hold the published change is wider than the others.
        is_at_the_end &= high - low > np.median((high - low)[~is_at_the_end])
        is_small = 2 * np.abs(change) < high - low
        n_at_the_end += (is_at_the_end & is_small).sum()
        assert (verdict[is_at_the_end & is_small] == "not significant").all()
        is_sure = verdict != "not significant"
        assert (verdict[is_sure] == np.where(change[is_sure] > 0, "rose", "fell")).all()
    assert n_at_the_end, "otherwise this test shows nothing"


def test_changes_in_reverse_order_are_the_same_changes_with_the_other_sign():
    """Also if one edition measured a level more: the total, which add-remove gives noise."""
    small = BEFORE // 8
    one, other = edition(small, 1, unit=Unit("add-remove")), edition(small, 2)
    there, back = (inftda.change(*both).table for both in ((one, other), (other, one)))
    rows = {(row["origin"], row["destination"]): row for row in back.to_pylist()}
    for row in there.to_pylist():
        mirrored = rows[row["origin"], row["destination"]]
        assert (row["low"], row["high"]) == (-mirrored["high"], -mirrored["low"])


def test_a_flow_where_nothing_was_measured_before_is_told_if_it_is_large():
    empty, full = np.zeros_like(BEFORE), np.zeros_like(BEFORE)
    empty[:6, :6] = full[:6, :6] = 300  # elsewhere nothing survives, so nothing is drawn
    full[20, 20] = 3000
    found = inftda.change(edition(empty, 1), edition(full, 2)).table.to_pylist()
    first = found[0]
    assert (first["origin"], first["destination"], first["old"]) == ("t20", "t20", 0)
    assert first["verdict"] == "rose"
    assert first["low"] <= 3000 <= first["high"]


def test_the_change_of_a_public_total_is_exact():
    one, other = edition(BEFORE, 1), edition(2 * BEFORE, 2)
    found = inftda.change(one, other, origin_level="all", destination_level="all")
    (row,) = found.table.to_pylist()
    assert row == {
        "old": int(BEFORE.sum()), "new": 2 * int(BEFORE.sum()), "change": int(BEFORE.sum()),
        "low": int(BEFORE.sum()), "high": int(BEFORE.sum()), "verdict": "rose",
    }  # fmt: skip
    assert "1 of 1 flows rose and 0 fell" in found.describe()


ZONES = {"town": TOWNS, "zone": [f"z{number % 4}" for number in range(24)]}


@pytest.mark.parametrize(
    "asked", [{"zones": ZONES}, {"zones": ZONES, "destination_level": "region"}], ids=str
)
def test_sums_that_were_not_measured_are_told_by_the_intervals_of_both(asked):
    difference = np.zeros_like(BEFORE)
    difference[5, 20] = 4000  # in the zones z1 and z0, the regions r0 and r3
    found = inftda.change(*editions(difference, 40), **asked).table
    rows = found.to_pylist()
    to = "r3" if "destination_level" in asked else "z0"
    true = [4000 if (r["origin"], r["destination"]) == ("z1", to) else 0 for r in rows]
    held = [row["low"] <= one <= row["high"] for row, one in zip(rows, true, strict=True)]
    assert len(rows) == 16
    assert sum(held) >= 14
    assert [row["verdict"] for row in rows].count("rose") == 1
    assert rows[0]["verdict"] == "rose"
    assert true[0] == 4000


def test_sums_that_nobody_measured_have_neither_interval_nor_verdict():
    options = {"measurements": "totals"}
    one, other = edition(BEFORE, 1, **options), edition(2 * BEFORE, 2, **options)
    found = inftda.change(one, other, zones=ZONES).table
    assert found["low"].null_count == len(found)
    assert set(found["verdict"].to_pylist()) == {"not significant"}


def test_towns_that_were_merged_are_compared_as_one():
    merged = {"region": ["r0", *AREAS["region"][2:]], "town": ["new", *TOWNS[2:]]}
    flows = table(BEFORE)
    for end in ("origin", "destination"):
        flows[end] = ["new" if code in TOWNS[:2] else code for code in flows[end]]
    strength = {"epsilon": 1, "delta": 1e-6, "source": SeededSource(4)}
    after, before = inftda.release(flows, merged, **strength), edition(BEFORE, 3)
    with pytest.raises(ReleaseError, match="crosswalk"):
        inftda.change(before, after)
    crosswalk = {"old": TOWNS[:2], "new": ["new", "new"]}
    for levels in (("town", "town"), ("town", "all"), ("region", "town")):
        asked = {"origin_level": levels[0], "destination_level": levels[1]}
        found = inftda.change(before, after, crosswalk=crosswalk, **asked)
        rows = found.table.to_pydict()
        low, high = np.array(rows["low"]), np.array(rows["high"])
        assert "new" in rows["destination" if levels[1] == "town" else "origin"]
        assert ((low <= 0) & (high >= 0)).mean() > 0.9
        # Sums of four draws are known less well than one.
        if levels == ("town", "town"):
            pairs = zip(rows["origin"], rows["destination"], strict=True)
            width, is_new = (high - low).astype(float), [pair == ("new", "new") for pair in pairs]
            assert width[is_new][0] > 1.3 * np.median(width)


def test_estimates_are_shown_with_the_intervals_of_measurements():
    both = edition(BEFORE, 1), edition(2 * BEFORE, 2)
    made = [inftda.estimate(one) for one in both]
    found = inftda.change(*both, estimates=made)
    rows = found.table.to_pydict()
    assert sum(rows["new"]) == made[1].manifest.total
    ends = zip(rows["low"], rows["change"], rows["high"], strict=True)
    assert all(low <= change <= high for low, change, high in ends)
    with pytest.raises(ReleaseError, match="must be two"):
        inftda.change(*both, estimates=made[:1])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"counts": "people"}, "do not count the same: trips or people$"),
        ({"areas": {"town": TOWNS}}, "levels of origin are region, town"),
    ],
)
def test_releases_that_are_no_editions_of_one_table_are_refused(options, why):
    with pytest.raises(ReleaseError, match=why):
        inftda.change(edition(BEFORE, 1), edition(BEFORE, 2, **options))


def test_a_release_is_not_compared_with_itself_nor_at_a_rate_of_nothing():
    one = edition(BEFORE, 1)
    with pytest.raises(ReleaseError, match="same release"):
        inftda.change(one, one)
    with pytest.raises(ReleaseError, match="rate"):
        inftda.change(one, edition(BEFORE, 2), rate=0)


@pytest.fixture
def series(tmp_path):
    folder = tmp_path / "series"
    unit = Unit("add-remove")
    for number, name in enumerate(("2024-02", "2024-01", "2024-03")):
        edition(BEFORE, number, out=folder / name, edition=name, unit=unit)
    return folder


def test_a_series_needs_editions_that_differ_and_fit_together(series, tmp_path):
    edition(BEFORE, 9, out=series / "again", edition="2024-01", unit=Unit("add-remove"))
    with pytest.raises(ReleaseError, match=r"two releases .* '2024-01'"):
        inftda.open_series(series)
    edition(BEFORE, 9, out=series / "again", force=True)
    with pytest.raises(ReleaseError, match="'again' of the series does not say"):
        inftda.open_series(series)
    with pytest.raises(ReleaseError, match="no releases"):
        inftda.open_series(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["2024 05", "../x", "x" * 41, "-1"])
def test_an_edition_is_a_plain_name(name):
    with pytest.raises(InftdaError, match="edition is a period"):
        edition(BEFORE, 1, edition=name)
