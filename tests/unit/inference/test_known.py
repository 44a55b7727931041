"""Estimates that agree with public totals."""

import numpy as np
import pytest

import inftda
from inftda import SeededSource, Unit
from inftda.demo import make_country
from inftda.errors import ReleaseError

COUNTRY = make_country((3, 9, 60), 60_000, seed=4)
FLOWS = COUNTRY.flows()
BUDGET = {"epsilon": 1, "delta": 1e-8}
RELEASE = inftda.release(FLOWS, COUNTRY.areas, **BUDGET, source=SeededSource(1))


def true_totals(axis, level):
    """The truth, which stands for what is public."""
    areas, depth = COUNTRY.areas, COUNTRY.areas.level_of(level)
    finest = areas.find(3, FLOWS.column(axis).to_pylist())
    sums = np.bincount(areas.ancestor(3, depth)[finest], FLOWS.column("count").to_numpy())
    return dict(zip(areas.codes(depth).to_pylist(), sums.astype(int).tolist(), strict=True))


def table(*rows):
    """Rows of axis, level, area and total."""
    return dict(
        zip(
            ("axis", "level", "area", "total"),
            (list(c) for c in zip(*rows, strict=True)),
            strict=True,
        )
    )


def whole(axis, level, totals):
    return [(axis, level, area, str(total)) for area, total in totals.items()]


def estimated(made, axis, level):
    levels = {"origin_level": "all", "destination_level": "all", f"{axis}_level": level}
    rows = made.flows(**levels).to_pylist()
    return {row[axis]: row["estimate"] for row in rows}


def is_sound(made):
    value, low, high = (made.table.column(n).to_numpy() for n in ("estimate", "low", "high"))
    cells = list(
        zip(*(made.table.column(n).to_pylist() for n in ("origin", "destination")), strict=True)
    )
    assert len(set(cells)) == len(cells)
    assert ((value > 0) & (low <= value) & (value <= high)).all()
    assert value.sum() == made.total


def test_totals_of_both_ends_at_several_levels_are_kept_exactly():
    known = {
        ("origin", "municipality"): true_totals("origin", "municipality"),
        ("destination", "province"): true_totals("destination", "province"),
    }
    rows = [row for (axis, level), totals in known.items() for row in whole(axis, level, totals)]
    made = inftda.estimate(RELEASE, known=table(*rows))
    is_sound(made)
    assert made.manifest.known == len(rows)
    for (axis, level), totals in known.items():
        found = estimated(made, axis, level)
        assert {area: found.get(area, 0) for area in totals} == totals
    before = inftda.estimate(RELEASE)
    flows = [one.table.column("estimate").to_numpy().astype(float) for one in (before, made)]
    assert abs(len(flows[0]) - len(flows[1])) < 0.1 * len(flows[0]), "flows are not much otherwise"


def test_some_totals_leave_the_others_about_as_they_were():
    known = dict(list(true_totals("origin", "municipality").items())[:5])
    made = inftda.estimate(RELEASE, known=table(*whole("origin", "municipality", known)))
    is_sound(made)
    found, before = (
        estimated(one, "origin", "municipality") for one in (made, inftda.estimate(RELEASE))
    )
    assert {area: found[area] for area in known} == known
    rest = [abs(found[area] - before[area]) for area in before if area not in known]
    assert np.mean(rest) < 10


def test_totals_with_an_error_are_kept_within_it():
    true = true_totals("origin", "municipality")
    wrong = {area: max(total + 400 * (-1) ** n, 0) for n, (area, total) in enumerate(true.items())}
    known = table(*whole("origin", "municipality", wrong)) | {"error": ["350"] * len(wrong)}
    made = inftda.estimate(RELEASE, known=known)
    is_sound(made)
    found = estimated(made, "origin", "municipality")
    assert max(abs(found.get(area, 0) - total) for area, total in wrong.items()) <= 350


def test_totals_far_from_the_estimates_are_kept_as_well():
    """An area that nobody was seen to leave has a thousand trips, and all totals are others."""
    areas = {"region": list("AAB"), "town": list("abc")}
    flows = {"origin": ["a", "b"], "destination": ["b", "c"], "count": [3_000, 5_000]}
    made = inftda.release(flows, areas, **BUDGET, source=SeededSource(2))
    rows = [
        ("origin", "town", "a", "1000"),
        ("origin", "town", "b", "6000"),
        ("origin", "region", "B", "1000"),
    ]
    found = inftda.estimate(made, known=table(*rows))
    is_sound(found)
    assert estimated(found, "origin", "town") == {"a": 1_000, "b": 6_000, "c": 1_000}


def test_a_noisy_total_gives_way_to_a_known_one():
    made = inftda.release(
        FLOWS, COUNTRY.areas, **BUDGET, unit=Unit("add-remove"), source=SeededSource(1)
    )
    assert made.total != 60_000
    found = inftda.estimate(made, known=table(("origin", "all", "all", "60000")))
    is_sound(found)
    assert found.total == 60_000


PROVINCE = COUNTRY.areas.codes(2)[0].as_py()
TOWNS = COUNTRY.areas.codes(3).to_pylist()[: int(COUNTRY.areas.child_offsets(2)[1])]


@pytest.mark.parametrize(
    ("known", "says"),
    [
        (
            table(
                ("origin", "province", PROVINCE, "500"),
                *(("origin", "municipality", town, "400") for town in TOWNS),
            ),
            "contradict each other: origin, province .* has 500, but what lies in it adds up to at",
        ),
        (table(("origin", "all", "all", "60001")), "the release counts 60,000 in all"),
        (
            table(
                *(("origin", "region", a, "0") for a in COUNTRY.areas.codes(1).to_pylist()),
                ("destination", "all", "all", "7"),
            ),
            "those of one axis add up to at least 7, those of another to at most 0",
        ),
        (table(("mode", "all", "all", "7")), "row 1 .* names the axis 'mode'; the axes are"),
        (table(("origin", "county", "1", "7")), "names the level 'county'; the levels of origin"),
        (table(("origin", "region", "99", "7")), "no area '99'"),
        (table(("origin", "region", "1", "-7")), "total in row 1 .* must be a whole number"),
        (table(("origin", "region", "1", "7.5")), "must be a whole number"),
        (table(*[("origin", "region", "1", "7")] * 2), "row 2 .* has an area that it has already"),
        ({"axis": ["origin"], "total": ["7"]}, "must have the columns axis, level, area, total"),
    ],
)  # fmt: skip
def test_totals_that_cannot_be_are_told(known, says):
    with pytest.raises(ReleaseError, match=says):
        inftda.estimate(RELEASE, known=known)


def test_an_estimate_with_known_totals_is_written_and_read(tmp_path):
    (tmp_path / "known.csv").write_text("axis,level,area,total\norigin,region,1,20000\n")
    inftda.estimate(RELEASE, known=tmp_path / "known.csv", out=tmp_path / "out")
    found = inftda.open_estimate(tmp_path / "out")
    assert estimated(found, "origin", "region")["1"] == 20_000
    assert found.manifest.known == 1
