"""What is audited: every claim that should hold, and every fault that should be caught."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from audit import faults
from audit.boxes import Calls, Copies, Randomness, Runs, secure
from audit.evidence import Box
from audit.pairs import (
    ALONE_IN_AN_AREA,
    BETWEEN_REGIONS,
    FAR_TOO_MANY_TRIPS,
    ONE_LEVEL,
    PAIRS,
    SHORT_ORIGINS,
    Pair,
    derived_areas,
    table_of_people,
)

#: A large delta and a small epsilon: the events that tell most are then frequent, and an
#: audit sees small faults in samples of moderate size. The noise is wrong at every delta or
#: at none.
ONE: Final = {"epsilon": 1.0, "delta": 0.1}
SEVERAL: Final = {"epsilon": 2.0, "delta": 0.1}
SMALL: Final = {"epsilon": 0.3, "delta": 0.1}
#: Cheap to plan and a small claim: for boxes that make one release at a time.
WEAK: Final = {"rho": Fraction(1, 100), "delta": 0.01, "accountant": "zcdp"}


def budget_of(pair: Pair, accountant: str = "auto") -> dict[str, Any]:
    """What to ask for."""
    return {**(ONE if is_one_trip(pair) else SEVERAL), "accountant": accountant}


def is_one_trip(pair: Pair) -> bool:
    """Whether the unit is of one trip."""
    return bool(pair.unit.get("trips", 1) == 1)


@dataclass(frozen=True)
class Claim:
    """A claim that should hold."""

    pair: Pair
    accountant: str

    def box(self, randomness: Randomness, **options: Any) -> Copies:
        """Many copies in one release."""
        return Copies(self.pair, budget_of(self.pair, self.accountant), randomness, **options)


def all_claims() -> Iterator[Claim]:
    """Every pair, and every accountant that is valid for it."""
    for pair in PAIRS.values():
        for accountant in ("exact", "zcdp") if is_one_trip(pair) else ("zcdp",):
            yield Claim(pair, accountant)


@dataclass(frozen=True)
class Planted:
    """A fault that should be caught.

    Attributes:
        name: what is wrong.
        plant: puts it into the package while a `with` block lasts.
        box: from random bits to the box that is audited.
        n: releases of either table that are enough.
    """

    name: str
    plant: Callable[[], AbstractContextManager[None]]
    box: Callable[[Randomness], Box]
    n: int = 40_000


def _copies(pair: str, **budget: Any) -> Callable[[Randomness], Box]:
    chosen = budget or budget_of(PAIRS[pair])
    return lambda randomness: Copies(PAIRS[pair], chosen, randomness)


def _too_small() -> AbstractContextManager[None]:
    return faults.noise_scale(Fraction(7, 10))


def _paper_sensitivity() -> AbstractContextManager[None]:
    return faults.sensitivity(faults.paper_sensitivity)


def _one_sided() -> AbstractContextManager[None]:
    return faults.sensitivity(faults.one_sided_sensitivity)


def _half_of_the_levels() -> AbstractContextManager[None]:
    return faults.rho_over_too_few_levels(Fraction(1, 2))


def _nothing() -> AbstractContextManager[None]:
    return faults.nothing()


#: Seconds each.
PLANTED: Final = (
    Planted("noise scale 30 % too small, one trip moved", _too_small, _copies("both ends moved")),
    Planted("noise scale 30 % too small, one trip added", _too_small, _copies("one trip added")),
    Planted("noise scale 30 % too small, T = 4", _too_small, _copies("moved across regions")),
    Planted(
        "sensitivity sqrt(2m) at all levels", _paper_sensitivity,
        _copies("distinct in one region pair, replaced"),
    ),
    Planted(
        "sensitivity sqrt(m) at all levels, added", _paper_sensitivity,
        _copies("distinct in one region pair, added"),
    ),
    Planted("sensitivity of add-remove for substitute", _one_sided, _copies("both ends moved")),
    Planted("rho divided over half of the levels", _half_of_the_levels, _copies("both ends moved")),
    Planted(
        "root without noise under add-remove", faults.root_without_noise,
        lambda randomness: Runs(PAIRS["one trip added"], ONE, randomness), 600,
    ),
    Planted(
        "generator that repeats itself", faults.generator_reused,
        lambda _: Runs(PAIRS["both ends moved"], ONE, secure), 600,
    ),
    Planted(
        "no noise in empty cells", faults.empty_cells_without_noise,
        _copies("moved to an empty cell"),
    ),
    Planted(
        "hierarchy derived from the trips", _nothing,
        lambda randomness: Calls(
            ALONE_IN_AN_AREA, WEAK, randomness, areas=derived_areas,
            more={"across": 0},  # else there would be other numbers of totals to compare
        ), 80,
    ),
)  # fmt: skip

#: As much for totals across the tree as a release may spend on them. Copies in one release
#: would share these totals, so that the mechanism is run again and again.
ACROSS: Final = {"across": Fraction(1, 2)}
_DISTINCT: Final = PAIRS["distinct in one region pair, replaced"]
PLANTED_ACROSS: Final = (
    Planted(
        "off-tree tables not charged", faults.tables_not_charged,
        lambda randomness: Runs(BETWEEN_REGIONS, ONE | ACROSS, randomness), 1_500,
    ),
    Planted(
        "sensitivity of margins for distinct trips too small", faults.sensitivity_of_tables,
        lambda randomness: Runs(_DISTINCT, SEVERAL | ACROSS, randomness), 1_500,
    ),
    Planted(
        "prices computed from the truth", faults.prices_from_the_truth,
        lambda randomness: Runs(SHORT_ORIGINS, SMALL | ACROSS, randomness), 1_500,
    ),
)  # fmt: skip

#: Noisy values that are published are not what flows were made of, or not all of it.
_MEASURED: Final = PAIRS["moved to an empty cell"]
PLANTED_MEASURED: Final = tuple(
    Planted(
        name, plant,
        lambda randomness: Runs(_MEASURED, ONE, randomness, is_kept=True), 400,
    )
    for name, plant in (
        ("measurements without noise", faults.measurements_without_noise),
        ("measurements of cells that are not empty", faults.measurements_of_true_cells),
    )
)  # fmt: skip

#: Up to half a minute each.
PLANTED_SLOW: Final = (
    Planted(
        "noise scale 30 % too small, unequal split", _too_small,
        _copies("both ends moved", **ONE, split="geometric:1.3"),
    ),
    # This accountant gives more away, and hides so much of a fault, the larger delta is.
    Planted(
        "noise scale 30 % too small, zcdp", _too_small,
        lambda randomness: Copies(
            ONE_LEVEL, {"epsilon": 0.5, "delta": 0.02, "accountant": "zcdp"}, randomness,
            ratio=256,
        ), 800_000,
    ),
    Planted(
        "noise scale 10 % too small", lambda: faults.noise_scale(Fraction(9, 10)),
        lambda randomness: Copies(ONE_LEVEL, SMALL, randomness), 600_000,
    ),
    Planted(
        "rho divided over three of four levels",
        lambda: faults.rho_over_too_few_levels(Fraction(3, 4)),
        lambda randomness: Copies(ONE_LEVEL, budget_of(ONE_LEVEL), randomness),
        700_000,
    ),
    Planted(
        "trips of a person not bounded", faults.contributions_unbounded,
        lambda randomness: Calls(
            FAR_TOO_MANY_TRIPS, WEAK, randomness,
            tables=table_of_people, more={"person": "person"},
        ), 80,
    ),
    Planted(
        "root without noise, by the public function", faults.root_without_noise,
        lambda randomness: Calls(PAIRS["one trip added"], WEAK, randomness), 80,
    ),
    Planted(
        "generator that repeats itself, by the public function", faults.generator_reused,
        lambda _: Calls(PAIRS["both ends moved"], WEAK, secure), 80,
    ),
)  # fmt: skip
