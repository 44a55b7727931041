"""What is audited: every claim that should hold, and every fault that should be caught."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
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
from inftda.reading import Columns

#: A large delta and a small epsilon: the events that tell most are then frequent, and an
#: audit sees small faults in samples of moderate size. The noise is wrong at every delta or
#: at none.
ONE: Final = {"epsilon": 1.0, "delta": 0.1}
SEVERAL: Final = {"epsilon": 2.0, "delta": 0.1}
SMALL: Final = {"epsilon": 0.3, "delta": 0.1}
#: Small enough a delta that the finest level has Laplace noise; and none.
LAPLACE: Final = {"epsilon": 3.0, "delta": 1e-3}
PURE: Final = {"epsilon": 1.0, "delta": 0}
#: Cheap to plan and a small claim: for boxes that make one release at a time.
WEAK: Final = {"rho": Fraction(1, 100), "delta": 0.01, "accountant": "zcdp"}
#: Each row is a trip of somebody.
PEOPLE: Final = {"tables": table_of_people, "more": {"columns": Columns(person="person")}}


def budget_of(pair: Pair, accountant: str = "auto") -> dict[str, Any]:
    """What to ask for."""
    return {**(ONE if pair.unit.is_single_trip else SEVERAL), "accountant": accountant}


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
        for accountant in ("exact", "zcdp") if pair.unit.is_single_trip else ("zcdp",):
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
    plant: Callable[[], Any]
    box: Callable[[Randomness], Box]
    n: int = 40_000


def _box(kind: Any, pair: Pair | str, budget: Any = None, **options: Any) -> Any:
    pair = PAIRS[pair] if isinstance(pair, str) else pair
    return lambda randomness: kind(pair, budget or budget_of(pair), randomness, **options)


_copies, _runs = partial(_box, Copies), partial(_box, Runs)
_calls = partial(_box, Calls, budget=WEAK)
_too_small: Final = partial(faults.noise_scale, Fraction(7, 10))
_too_few: Final = faults.rho_over_too_few_levels

#: Seconds each.
PLANTED: Final = (
    Planted("noise scale 30 % too small, one trip moved", _too_small, _copies("both ends moved")),
    Planted("noise scale 30 % too small, one trip added", _too_small, _copies("one trip added")),
    Planted("noise scale 30 % too small, T = 4", _too_small, _copies("moved across regions")),
    Planted(
        "sensitivity sqrt(2m) at all levels", faults.paper_sensitivity,
        _copies("distinct in one region pair, replaced"),
    ),
    Planted(
        "sensitivity sqrt(m) at all levels, added", faults.paper_sensitivity,
        _copies("distinct in one region pair, added"),
    ),
    Planted(
        "sensitivity of add-remove for substitute", faults.one_sided_sensitivity,
        _copies("both ends moved"),
    ),
    Planted(
        "rho divided over half of the levels", partial(_too_few, Fraction(1, 2)),
        _copies("both ends moved"),
    ),
    Planted(
        "root without noise under add-remove", faults.root_without_noise,
        _runs("one trip added", ONE), 600,
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
        "Laplace leaves charged too little", faults.laplace_charged_too_little,
        _copies("one trip added", LAPLACE, by_logarithms=True),
    ),
    Planted(
        "delta 0 with a third of the noise", partial(faults.noise_scale, Fraction(1, 3)),
        _copies("one trip added", PURE, by_logarithms=True),
    ),
    Planted(
        "Laplace noise of another unit", faults.laplace_of_another_unit,
        _copies("piled on one pair, added", PURE),
    ),
    Planted(
        "losses of Laplace noise with a wrong sign", faults.losses_with_a_wrong_sign,
        _runs("both ends moved", {**ONE, "split": "log"}, is_kept=True), 1_500,
    ),
    Planted(
        "hierarchy derived from the trips", faults.nothing,
        # Without measurements: there would be other numbers of them to compare.
        _calls(
            ALONE_IN_AN_AREA, areas=derived_areas,
            more={"cross_tables": 0, "measurements": "totals"},
        ), 80,
    ),
)  # fmt: skip

#: The largest part of the budget that a release may spend on cross tables. Copies in one release
#: would share these totals, so that the mechanism is run again and again.
ACROSS: Final = {"cross_tables": Fraction(1, 2)}
PLANTED_ACROSS: Final = (
    Planted(
        "off-tree tables not charged", faults.tables_not_charged,
        _runs(BETWEEN_REGIONS, ONE | ACROSS), 1_500,
    ),
    Planted(
        "sensitivity of margins for distinct trips too small", faults.sensitivity_of_tables,
        _runs("distinct in one region pair, replaced", SEVERAL | ACROSS), 1_500,
    ),
    Planted(
        "dual variables computed from the truth", faults.prices_from_the_truth,
        _runs(SHORT_ORIGINS, SMALL | ACROSS), 1_500,
    ),
)  # fmt: skip

#: Noisy values that are published are not what flows were made of, or not all of it.
PLANTED_MEASURED: Final = tuple(
    Planted(name, plant, _runs("moved to an empty cell", ONE, is_kept=True), 400)
    for name, plant in (
        ("measurements without noise", faults.measurements_without_noise),
        ("measurements of cells that are not empty", faults.measurements_of_true_cells),
    )
)

#: Up to half a minute each.
PLANTED_SLOW: Final = (
    # This accountant gives more away, and hides so much of a fault, the larger delta is.
    Planted(
        "noise scale 30 % too small, zcdp", _too_small,
        _copies(ONE_LEVEL, {"epsilon": 0.5, "delta": 0.02, "accountant": "zcdp"}, ratio=256),
        800_000,
    ),
    Planted(
        "noise scale 10 % too small", partial(faults.noise_scale, Fraction(9, 10)),
        _copies(ONE_LEVEL, SMALL), 1_500_000,
    ),
    Planted(
        "rho divided over three of four levels", partial(_too_few, Fraction(3, 4)),
        _copies(ONE_LEVEL), 700_000,
    ),
    Planted(
        "trips of a person not bounded", faults.contributions_unbounded,
        _calls(FAR_TOO_MANY_TRIPS, **PEOPLE), 80,
    ),
    Planted(
        "root without noise, by the public function", faults.root_without_noise,
        _calls("one trip added"), 80,
    ),
    Planted(
        "generator that repeats itself, by the public function", faults.generator_reused,
        lambda _: Calls(PAIRS["both ends moved"], WEAK, secure), 80,
    ),
)  # fmt: skip
