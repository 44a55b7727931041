"""Contribution bounding: how many, of whom, chosen how."""

from collections import Counter
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2

from inftda.errors import IngestError, PrivacyError
from inftda.noise.bits import SeededSource
from inftda.privacy.unit import Unit
from inftda.reading import Columns, bounding, read_leaves
from inftda.tree import Axis
from inftda.tree.hierarchy import Hierarchy

#: Odds of a false alarm, were the seed not fixed.
P_THRESHOLD = 1e-7


def trips(*rows):
    """A table from (person, origin, destination[, count])."""
    names = ["who", "origin", "destination", "count"]
    columns = list(zip(*rows, strict=True))
    return dict(zip(names, map(list, columns), strict=False))


def at_most(m, **options):
    return Unit("add-remove", trips=m, **options)


def stream(columns):
    return pa.table(columns).to_reader()


@pytest.mark.parametrize("make", [dict, stream])
@pytest.mark.parametrize("neighbours", ["add-remove", "substitute"])
def test_at_most_m_trips_of_a_person_are_kept(read, make, neighbours):
    table = trips(*[(1, "001", "002")] * 5, *[(2, "001", "003")] * 2, (3, "002", "002"))
    unit = Unit(neighbours, trips=3, exactly=False)
    counts = read(make(table), person="who", unit=unit)
    assert counts == {("001", "002"): 3, ("001", "003"): 2, ("002", "002"): 1}


def test_exactly_m_trips_pass_and_any_other_number_is_an_error_without_ids(read):
    unit = Unit(trips=2)
    fits = [("id77", "001", "002"), ("id77", "001", "003"), *[("id88", "002", "002")] * 2]
    counts = read(trips(*fits), person="who", unit=unit)
    assert counts == {("001", "002"): 1, ("001", "003"): 1, ("002", "002"): 2}
    for rows in (fits[1:], [*fits, fits[0]]):
        with pytest.raises(IngestError, match="exactly 2 trips per person") as error:
            read(trips(*rows), person="who", unit=unit)
        assert "id77" not in str(error.value)
        assert "id88" not in str(error.value)


def test_exactly_m_distinct_trips_means_different_ones(read):
    unit = Unit(trips=2, distinct=True)
    table = trips(("a", "001", "002"), ("a", "001", "003"))
    assert sum(read(table, person="who", unit=unit).values()) == 2
    with pytest.raises(IngestError, match="exactly 2 different trips"):
        read(trips(("a", "001", "002"), ("a", "001", "002")), person="who", unit=unit)


def test_dropped_rows_do_not_push_out_trips_that_can_be_counted(read):
    table = trips(*[("a", "X", "002")] * 50, ("a", "001", "002"))
    counts = read(table, person="who", unit=at_most(1), unplaceable="drop")
    assert counts == {("001", "002"): 1}


def test_outside_trips_are_trips_of_their_person(read, towns):
    outside = towns.with_outside()
    axes = [("origin", outside), ("destination", outside)]
    table = trips(*[("a", "X", "002")] * 3, ("a", "Y", "002"), ("b", "X", "002"))
    counts = read(table, axes=axes, person="who", unit=at_most(2), unplaceable="outside")
    assert counts == {("outside", "002"): 3}


@pytest.mark.parametrize("make", [dict, stream])
def test_flaws_are_reported_as_without_persons(read, make):
    with pytest.raises(IngestError, match="1 row of the table has a negative count"):
        read(make(trips(("a", "001", "002", -1))), person="who", unit=at_most(1))
    with pytest.raises(IngestError, match=r"2 rows .*unknown origin '01'"):
        read(make(trips(*[("a", "01", "002", 1)] * 2)), person="who", unit=at_most(1))


@pytest.mark.parametrize(
    ("make", "many"), [(dict, 2**63 - 1), (stream, 10**6 + 1), (dict, 2**62), (stream, 2**63 - 1)]
)
def test_a_person_with_absurdly_many_trips_is_bounded_like_any_other(read, make, many):
    """Nobody else's trips may depend on that, not even on whether the table is read."""
    rows = [("a", "001", "002", many), ("a", "001", "003", many), ("b", "003", "003", 2)]
    counts = read(make(trips(*rows, rows[0])), person="who", unit=at_most(3))
    assert counts.pop(("003", "003")) == 2
    assert sum(counts.values()) == 3
    once = read(make(trips(*rows)), person="who", unit=at_most(3, distinct=True))
    assert once == {("001", "002"): 1, ("001", "003"): 1, ("003", "003"): 1}


def test_absurdly_many_trips_are_chosen_in_proportion_and_all_are_kept(read):
    rows = [
        (i, "001", destination, n)
        for i in range(400)
        for destination, n in (("002", 3 * 10**9), ("003", 10**9), ("001", 1))
    ]
    source = SeededSource(1)
    kept = read(trips(*rows), person="who", unit=at_most(1), random_source=source)
    assert sum(kept.values()) == 400
    share = kept["001", "002"] / 400
    assert abs(share - 0.75) < 0.12  # over 5 standard deviations
    many = read(
        trips(("a", "001", "002", 10**6), ("a", "001", "003", 7)), person="who", unit=at_most(150)
    )
    assert sum(many.values()) == 150


def test_persons_with_the_same_number_are_still_different_persons(read, monkeypatch):
    """Ids that collide share their random numbers, and nothing else."""
    monkeypatch.setattr(bounding, "numbers_of", lambda ids: np.zeros(len(ids), np.uint64))
    rows = [(who, "001", to) for who in "abcd" for to in ("001", "002", "003")]
    kept = read(trips(*rows), person="who", unit=at_most(2))
    assert sum(kept.values()) == 8
    assert sorted(kept.values()) == [4, 4]


def test_ids_are_numbered_by_fnv_1a():
    ids = pa.array(["x", "", "a", "foobar"]).slice(1)
    expected = [0xCBF29CE484222325, 0xAF63DC4C8601EC8C, 0x85944171F73967E8]
    assert bounding.numbers_of(ids).tolist() == expected


def test_the_choice_does_not_depend_on_how_rows_are_cut_or_persons_are_written(read, monkeypatch):
    rows = [(i % 40, f"00{1 + i % 3}", f"00{1 + i // 40 % 3}") for i in range(400)]

    def chosen(table):
        return read(table, person="who", unit=at_most(2), random_source=SeededSource(1))

    whole = chosen(trips(*rows))
    assert chosen(trips(*((str(who), *ends) for who, *ends in rows))) == whole
    assert chosen(trips(*rows[::-1])) == whole
    monkeypatch.setattr(bounding, "MOST_DRAWS", 5)
    cut = bounding.by_person
    in_parts = []

    def by_person(batches):
        pieces = (batch.slice(at, 7) for batch in batches for at in range(0, batch.num_rows, 7))
        in_parts.extend(cut(pieces, 20))
        return iter(in_parts)

    monkeypatch.setattr(bounding, "by_person", by_person)
    assert chosen(trips(*rows)) == whole
    assert len(in_parts) > 10


def test_a_person_column_needs_a_unit(read):
    with pytest.raises(PrivacyError, match="no privacy unit"):
        read(trips(("a", "001", "002")), person="who")


def choices(table, m, *, n_persons, seed, distinct=False):
    """How often each set of areas was kept for one of `n_persons` persons with equal trips."""
    hierarchy = Hierarchy.read({"town": sorted(set(table))})
    # The first axis gives the person away, so that the choice of each can be read off.
    people = [str(i) for i in range(n_persons)]
    persons = Hierarchy.read({"person": people})
    rows = {"who": np.repeat(people, len(table)), "town": table * n_persons}
    leaves = read_leaves(
        {**rows, "copy": rows["who"]},
        Columns(person="who"),
        (Axis("copy", persons), Axis("town", hierarchy)),
        unit=at_most(m, distinct=distinct),
        random_source=SeededSource(seed),
    )
    kept = [[] for _ in people]
    for person, town, n in zip(*leaves.areas, leaves.value, strict=True):
        kept[person] += [int(town)] * int(n)
    return Counter(tuple(sorted(towns)) for towns in kept)


def p_value(observed, expected):
    total = sum(observed.values())
    statistic = sum(
        (observed[key] - total * share) ** 2 / (total * share) for key, share in expected.items()
    )
    return chi2.sf(statistic, len(expected) - 1)


@pytest.mark.parametrize("m", [2, 3])
def test_every_set_of_m_trips_is_equally_likely(m):
    """Also where one random word for all draws would do for two of them, but not for three."""
    observed = choices(["a", "b", "c", "d"], m, n_persons=6000, seed=3)
    sets = [*combinations(range(4), m)]
    expected = dict.fromkeys(sets, 1 / len(sets))
    assert set(observed) == set(expected)
    assert p_value(observed, expected) > P_THRESHOLD
    # The test has power: a choice that prefers one set by a third is noticed.
    biased = expected | {sets[0]: 1.3 / len(sets), sets[-1]: 0.7 / len(sets)}
    assert p_value(observed, biased) < P_THRESHOLD


def test_equal_trips_are_chosen_as_often_as_there_are_copies():
    observed = choices(["a", "a", "a", "b"], 1, n_persons=6000, seed=4)
    assert p_value(observed, {(0,): 3 / 4, (1,): 1 / 4}) > P_THRESHOLD
    assert p_value(observed, {(0,): 0.7, (1,): 0.3}) < P_THRESHOLD


def test_distinct_choices_do_not_prefer_frequent_pairs():
    observed = choices(["a", "a", "a", "b"], 1, n_persons=6000, seed=5, distinct=True)
    assert p_value(observed, {(0,): 1 / 2, (1,): 1 / 2}) > P_THRESHOLD
    assert p_value(observed, {(0,): 0.55, (1,): 0.45}) < P_THRESHOLD


def test_without_a_seed_no_two_readings_choose_alike():
    people = Hierarchy.read({"person": [str(i) for i in range(100)]})
    towns = Hierarchy.read({"town": ["a", "b"]})
    who = [str(i) for i in range(100) for _ in range(2)]
    table = {"who": who, "copy": who, "town": ["a", "b"] * 100}

    def chosen():
        axes = (Axis("copy", people), Axis("town", towns))
        leaves = read_leaves(table, Columns(person="who"), axes, unit=at_most(1))
        return sorted(zip(*(axis.tolist() for axis in leaves.areas), strict=True))

    assert len(chosen()) == 100
    assert chosen() != chosen()  # equal with odds of 2^-100


MONTHLY = Unit("add-remove", 2, once_per="destination")


def test_one_trip_of_a_person_is_kept_for_each_area_of_an_axis(read):
    same = [(1, "001", "002"), (1, "002", "002"), (1, "003", "002"), (1, "001", "003")]
    counts = read(trips(*same, (2, "001", "002")), person="who", unit=MONTHLY)
    by_month = Counter()
    for (_, month), n in counts.items():
        by_month[month] += n
    assert by_month == {"002": 2, "003": 1}
    # And no more than the most trips of all.
    counts = read(trips(*same, (1, "001", "001")), person="who", unit=MONTHLY)
    assert sum(counts.values()) == 2


def test_which_trip_of_a_month_is_kept_is_left_to_chance(read):
    table = trips((1, "001", "002"), (1, "003", "002"))
    kept = Counter(
        next(iter(read(table, person="who", unit=MONTHLY, random_source=SeededSource(seed))))
        for seed in range(60)
    )
    # Both come up unless 60 fair coins agree: odds of 2^-59.
    assert len(kept) == 2


def test_months_with_more_trips_are_not_preferred():
    """Two of three months are kept of each of 6,000 persons with 9, 1 and 1 trips in them.

    Every pair of months has odds of 1/3. The test notices odds of 0.38, 0.31 and 0.31.
    """
    people = [str(i) for i in range(6000)]
    months, towns = (Hierarchy.read({"area": list("abcdefghi")}) for _ in range(2))
    rows = [*(("a", town) for town in "abcdefghi"), ("b", "a"), ("c", "a")]
    table = {
        "who": np.repeat(people, len(rows)),
        "copy": np.repeat(people, len(rows)),
        "month": [month for month, _ in rows] * len(people),
        "town": [town for _, town in rows] * len(people),
    }
    axes = [("copy", Hierarchy.read({"person": people})), ("month", months), ("town", towns)]
    leaves = read_leaves(
        table,
        Columns(person="who"),
        [Axis(*one) for one in axes],
        unit=at_most(2, once_per="month"),
        random_source=SeededSource(6),
    )
    kept = [set() for _ in people]
    for person, month in zip(*leaves.areas[:2], strict=True):
        kept[person].add(int(month))
    observed = Counter(map(frozenset, kept))
    pairs = [frozenset(pair) for pair in combinations(range(3), 2)]
    assert set(observed) == set(pairs)
    assert p_value(observed, dict.fromkeys(pairs, 1 / 3)) > P_THRESHOLD
    for preferred in pairs:
        biased = dict.fromkeys(pairs, 0.31) | {preferred: 0.38}
        assert p_value(observed, biased) < P_THRESHOLD


@pytest.mark.parametrize("make", [dict, stream])
def test_a_row_with_count_0_is_no_trip_of_its_month(read, make):
    # One trip and a row without one, in the same month.
    table = trips((1, "001", "002", 1), (1, "003", "002", 0))
    for seed in range(30):  # a choice between the two would lose the trip with odds of 1 - 2^-30
        source = SeededSource(seed)
        counts = read(make(table), person="who", unit=MONTHLY, random_source=source)
        assert counts == {("001", "002"): 1}
    table = trips((1, "001", "002", 1), (1, "003", "002", 0), (1, "003", "003", 1))
    exactly = Unit(trips=2, once_per="destination")
    counts = read(make(table), person="who", unit=exactly)
    assert counts == {("001", "002"): 1, ("003", "003"): 1}


def test_exactly_one_trip_in_each_month_or_an_error(read):
    unit = Unit(trips=2, once_per="destination")
    fits = [(1, "001", "002"), (1, "001", "003")]
    assert sum(read(trips(*fits), person="who", unit=unit).values()) == 2
    with pytest.raises(IngestError, match="one in each destination"):
        read(trips(fits[0], (1, "003", "002")), person="who", unit=unit)


def test_unknown_months_may_coincide_unless_there_are_persons(read):
    table = trips((1, "001", "002"), (1, "001", "999"))
    del table["who"]
    with pytest.raises(PrivacyError, match="two in one destination"):
        read(table, unit=MONTHLY, unplaceable={"destination": "outside"})
