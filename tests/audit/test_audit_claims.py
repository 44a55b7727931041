"""No claim of a sound build is disproved, by any of the boxes.

Random bits are the same every time, so these tests give the same answer every time. Over the
choice of those bits a sound build would fail one of them with odds below 1e-7.
"""

from fractions import Fraction

import pytest

import inftda
from audit.boxes import Calls, Copies, Runs, seeded
from audit.cases import LAPLACE, ONE, PEOPLE, PURE, WEAK, Claim, all_claims
from audit.evidence import audit
from audit.independence import LARGEST, in_tree_order, likeness
from audit.pairs import FAR_TOO_MANY_TRIPS, FLAT, PAIRS
from inftda.noise.bits import SeededSource
from inftda.privacy.unit import Unit

pytestmark = pytest.mark.slow

N = 16_000
#: What part of a claim an audit of this size should at least see, so that it is known to look.
SEEN = 0.4


def check(finding, *, seen=None):
    assert not finding.is_caught
    if seen is not None:
        assert finding.lower > seen * finding.epsilon


def test_one_trip_moved_keeps_its_claim():
    check(audit(Claim(PAIRS["both ends moved"], "auto").box(seeded), N), seen=SEEN)


@pytest.mark.parametrize(("accountant", "seen"), [("exact", SEEN), ("zcdp", 0.15)])
def test_every_accountant_keeps_its_claim(accountant, seen):
    check(audit(Claim(PAIRS["one trip added"], accountant).box(seeded), N), seen=seen)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in PAIRS if name != "both ends moved"])
def test_every_pair_of_neighbours_is_kept_apart(name):
    check(audit(Claim(PAIRS[name], "auto").box(seeded), N // 2))


def test_the_command_line_keeps_its_claim():
    claim = Claim(PAIRS["both ends moved"], "exact")
    found = audit(claim.box(seeded, by_command=True), N)
    check(found, seen=SEEN)
    assert found == audit(claim.box(seeded), N)


@pytest.mark.parametrize(
    "name",
    [
        "both ends moved",
        "one trip added",
        "one trip or none",
        "piled on an empty cell, added",  # to a table that is empty
    ],
)
def test_releases_made_one_by_one_keep_their_claim(name):
    check(audit(Runs(PAIRS[name], ONE), 1_000))


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["both ends moved", "one trip added"])
@pytest.mark.parametrize("across", [0, Fraction(1, 2)])
def test_releases_with_all_their_measurements_keep_their_claim(name, across):
    budget = ONE | {"cross_tables": across}
    check(audit(Runs(PAIRS[name], budget, is_kept=True), 500))


@pytest.mark.nightly
@pytest.mark.parametrize("budget", [LAPLACE, PURE], ids=["Laplace leaves", "delta 0"])
@pytest.mark.parametrize(
    "name",
    ["both ends moved", "moved to an empty cell", "one trip added", "piled on one pair, replaced"],
)
def test_releases_with_laplace_noise_keep_their_claim(name, budget):
    check(audit(Copies(PAIRS[name], budget, by_logarithms=True), N))


def test_copies_in_one_release_are_independent_of_one_another():
    sample = Copies(PAIRS["both ends moved"], ONE).draw(30_000, 0)
    for side in (sample.left, sample.right):
        assert likeness(in_tree_order(side, 5)) < LARGEST


def test_that_somebody_is_in_the_table_at_all_is_not_seen():
    """An error would tell an empty table from one with a single person."""
    inftda.release(
        {"origin": ["a.0"], "destination": ["a.0"], "count": [0]},
        FLAT,
        unit=Unit(neighbours="add-remove"),
        source=SeededSource(1),
        allow_large_delta=True,
        **WEAK,
    )


def name_of(claim):
    return f"{claim.pair.name}, {claim.accountant}"


@pytest.mark.nightly
@pytest.mark.parametrize("claim", list(all_claims()), ids=name_of)
def test_all_claims_hold(claim):
    check(audit(claim.box(seeded), N))


@pytest.mark.nightly
def test_the_public_function_and_the_command_line_called_one_by_one_keep_their_claim():
    check(audit(Calls(PAIRS["one trip added"], WEAK), 100))
    check(audit(Calls(PAIRS["one trip added"], WEAK, by_command=True), 100))


@pytest.mark.nightly
def test_trips_beyond_what_a_person_may_have_are_not_seen():
    check(audit(Calls(FAR_TOO_MANY_TRIPS, WEAK, **PEOPLE), 100))
