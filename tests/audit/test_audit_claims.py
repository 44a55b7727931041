"""No claim of a sound build is disproved, by any of the boxes.

Random bits are the same every time, so these tests give the same answer every time. Over the
choice of those bits a sound build would fail one of them with odds below 1e-7.
"""

from fractions import Fraction

import pytest

import inftda
from audit.boxes import MECHANISMS, Calls, Commands, Copies, Runs, seeded
from audit.cases import ONE, WEAK, Claim, all_claims, claims_two_by_two
from audit.evidence import audit
from audit.independence import LARGEST, in_tree_order, likeness
from audit.pairs import FAR_TOO_MANY_TRIPS, FLAT, PAIRS, table_of_people
from inftda.noise.entropy import SeededSource

N = 16_000
#: What an audit of this size should at least see of a claim, so that it is known to look.
SEEN = {
    "inftda": 0.4,
    "inftda-descending": 0.4,
    "tda-l2": 0.4,
    "tda-linf": 0.35,
    "vanilla-gauss": 0.4,
    "stability-histogram": 0.7,
}


def check(finding, *, seen=None):
    assert not finding.is_caught
    if seen is not None:
        assert finding.lower > seen * finding.epsilon


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_keeps_its_claim(mechanism):
    claim = Claim(PAIRS["both ends moved"], mechanism, "auto")
    check(audit(claim.box(seeded), N), seen=SEEN[mechanism])


@pytest.mark.parametrize("accountant", ["exact", "zcdp"])
def test_every_accountant_keeps_its_claim(accountant):
    finding = audit(Claim(PAIRS["one trip added"], "inftda", accountant).box(seeded), N)
    # At so large a delta the paper's conversion gives so much away that nothing is seen.
    check(finding, seen={"exact": 0.4, "zcdp": 0.15}[accountant])


@pytest.mark.parametrize("name", [name for name in PAIRS if name != "both ends moved"])
def test_every_pair_of_neighbours_is_kept_apart(name):
    check(audit(Claim(PAIRS[name], "inftda", "auto").box(seeded), N // 2))


@pytest.mark.parametrize("name", ["piled on an empty cell, added", "distinct empty cells, added"])
def test_a_stability_histogram_hides_cells_that_one_person_is_alone_in(name):
    check(audit(Claim(PAIRS[name], "stability-histogram", "auto").box(seeded), N))


def test_the_command_line_keeps_its_claim():
    claim = Claim(PAIRS["both ends moved"], "inftda", "exact")
    found = audit(claim.box(seeded, by_command=True), N)
    check(found, seen=SEEN["inftda"])
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
    check(audit(Runs(PAIRS[name], "inftda", ONE), 1_000))


@pytest.mark.parametrize("name", ["both ends moved", "one trip added"])
@pytest.mark.parametrize("across", [0, Fraction(1, 2)])
def test_releases_with_all_their_measurements_keep_their_claim(name, across):
    budget = ONE | {"across": across}
    check(audit(Runs(PAIRS[name], "inftda", budget, is_kept=True), 500))


def test_copies_in_one_release_are_independent_of_one_another():
    sample = Copies(PAIRS["both ends moved"], "inftda", ONE).draw(30_000, 0)
    for side in (sample.left, sample.right):
        assert likeness(in_tree_order(side, 5)) < LARGEST


def test_that_somebody_is_in_the_table_at_all_is_not_seen():
    """An error would tell an empty table from one with a single person."""
    inftda.release(
        {"origin": ["a.0"], "destination": ["a.0"], "count": [0]},
        FLAT,
        neighbours="add-remove",
        source=SeededSource(1),
        **WEAK,
    )


def name_of(claim):
    return f"{claim.pair.name}, {claim.mechanism}, {claim.accountant}"


@pytest.mark.slow
@pytest.mark.parametrize("claim", list(claims_two_by_two()), ids=name_of)
def test_claims_hold_two_by_two(claim):
    check(audit(claim.box(seeded), N))


def test_two_by_two_every_accountant_meets_every_pair_and_every_mechanism():
    def met(claims):
        named = [(claim.pair.name, claim.mechanism, claim.accountant) for claim in claims]
        return [{(name[i], name[j]) for name in named} for i, j in ((0, 1), (0, 2), (1, 2))]

    assert met(claims_two_by_two()) == met(all_claims())


@pytest.mark.slow
def test_the_public_function_and_the_command_line_called_one_by_one_keep_their_claim():
    measured = {"measurements": True}  # all that a release can show
    check(audit(Calls(PAIRS["one trip added"], "inftda", WEAK, more=measured), 100))
    check(audit(Commands(PAIRS["one trip added"], "inftda", WEAK), 100))


@pytest.mark.slow
def test_trips_beyond_what_a_person_may_have_are_not_seen():
    box = Calls(
        FAR_TOO_MANY_TRIPS,
        "inftda",
        WEAK,
        tables=table_of_people,
        more={"person": "person"},
    )
    check(audit(box, 100))
