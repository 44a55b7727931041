"""The plan: noise and cost of every level (paper, section 4.1).

A plan needs no data and uses no budget. A mechanism takes its noise from a plan only, through an
`Account` that refuses to return a level twice, and to finish before all levels were taken. So all
noise that was drawn is accounted for.

A plan must never depend on trips.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import msgspec

from inftda.errors import BudgetError, PrivacyError
from inftda.noise.distribution import Family, Noise, describe_noise
from inftda.privacy.accountants import (
    AUTO,
    PURE,
    ZCDP,
    Part,
    accountant_named,
    privacy_curve,
    total_rho,
)
from inftda.privacy.accounting import (
    Number,
    Share,
    commensurable,
    with_noise,
)
from inftda.privacy.guarantee import Guarantee
from inftda.privacy.measurement import Key, Measurement
from inftda.privacy.records import StatedPlan, StatedUnit
from inftda.privacy.unit import Sensitivity, Unit
from inftda.tree import CrossTable, Tree, TreeLevel
from inftda.util.exact_numbers import (
    checked_delta,
    exact_number,
    rounded_up,
)
from inftda.util.formats import difference

#: One of `SPLITS`, or weights in order of levels.
Split = str | Sequence[Fraction | float]

#: Splits that have a name.
SPLITS: Final = ("log", "pairs", "uniform")
#: Where a level has noise of a smaller standard deviation, no cross table is measured:
#: nothing is gained.
LEAST_SIGMA: Final = 1
#: Default split of the budget, and default part for cross tables, of each method.
METHODS: Final[Mapping[str, tuple[str, Fraction]]] = {
    "inftda": ("log", Fraction(8, 100)),
    "paper": ("uniform", Fraction(0)),
}
#: The split by logarithms makes the largest of N draws equal at all levels, except with this
#: probability (docs/decisions.md, "The split of the budget").
_EXCEEDED: Final = Fraction(1, 20)
#: Weight of Laplace noise at the finest level, times the square of the logarithm of its cells. 1/2
#: would make its largest draw that of others; 16/25 makes it 0.88 times that, because errors of the
#: level above are added to it.
_FINEST: Final = Fraction(16, 25)
#: The split for pairs multiplies that weight by this.
_PAIRS: Final = 4
#: With fewer children of a parent at the finest level, on average, errors there come from the level
#: above, and Laplace noise does not pay.
_LEAST_CHILDREN: Final = 4
#: Laplace noise has to lower the noise of the finest level by more than it raises that of others.
_LEAST_GAIN: Final = 0.95
#: Largest part of the budget for cross tables; with more, little would be left for the tree.
MAX_SHARE: Final = Fraction(1, 2)
#: A table is assumed to have at least so many people where their number is not public: delta must
#: be at most one over it.
FEWEST_PEOPLE: Final = 1000
#: Variances are rounded up by less than this part, which bounds the error of parts of the budget.
_ROUNDING: Final = Fraction(1, 10**8)
#: Far more levels and tables than any tree has. An untrusted plan with more is refused, because
#: accounting could run for any length of time.
_MOST_PARTS: Final = 4096
#: Limit for the bits of a variance, for the same reason; `round_up` writes far fewer digits.
_MOST_BITS: Final = 256


class Account:
    """Record of which measurements of a plan were drawn. For one thread only."""

    def __init__(self, parts: Iterable[Measurement]) -> None:
        self._left: dict[Key, Measurement] = {part.key: part for part in parts}
        self._planned = frozenset(self._left)

    def is_planned(self, key: Key) -> bool:
        """Whether the plan has noise for a level or table, drawn already or not."""
        return key in self._planned

    def charge(self, key: Key) -> Measurement:
        """Return the planned measurement of a level or table; a second call is an error."""
        if key not in self._planned:
            raise BudgetError(
                f"level or table {key} is not in the plan, which has {_listed(self._planned)}; "
                "noise that is not accounted for is never drawn"
            )
        if key not in self._left:
            raise BudgetError(f"level or table {key} was drawn already; a second draw costs again")
        return self._left.pop(key)

    def finish(self) -> None:
        """End the release: all that was planned must have been drawn."""
        if self._left:
            raise BudgetError(
                f"levels and tables {_listed(self._left)} were planned but not drawn; "
                "the release is not the one that was accounted for"
            )


def _listed(keys: Iterable[Key]) -> str:
    """Levels by their numbers, tables by their depths."""
    return str(sorted(keys, key=str))


@dataclass(frozen=True)
class Plan:
    """Noise for every measured level, and the guarantee that follows.

    Attributes:
        unit: the privacy unit.
        accountant: how epsilon and delta follow from the noise.
        epsilon: guaranteed with `delta`; None if only rho is guaranteed.
        delta: None if only rho is guaranteed.
        levels: measured levels, the root first if it gets noise; trivial levels are absent.
        cross_table_share: part of the budget that was requested for cross tables.
        tables: cross tables, in the order of their levels; empty if the share is 0, or if the tree
            has none, or if the noise of a level has a standard deviation below 1.

    Privacy:
        A plan built by hand gives no guarantee before `verify` has passed.
    """

    unit: Unit
    accountant: str
    epsilon: float | None
    delta: float | None
    levels: tuple[Measurement, ...]
    cross_table_share: Fraction = Fraction(0)
    tables: tuple[Measurement, ...] = ()

    @property
    def parts(self) -> tuple[Measurement, ...]:
        """All measurements: levels, then tables."""
        return (*self.levels, *self.tables)

    @property
    def measured(self) -> tuple[Part, ...]:
        """Noise and sensitivity of all measurements, for accountants."""
        return tuple((part.noise, part.sensitivity) for part in self.parts)

    @property
    def rho(self) -> Fraction:
        """Cost in zCDP, exact: the sum over levels and tables."""
        return total_rho(self.measured)

    @property
    def used_share(self) -> Fraction:
        """Part of the budget that cross tables cost."""
        costs = [part.epsilon if self.is_pure else part.rho for part in self.parts]
        return sum(costs[len(self.levels) :], Fraction(0)) / sum(costs, Fraction(0))

    @property
    def is_pure(self) -> bool:
        """Whether the guarantee is epsilon with delta 0."""
        return accountant_named(self.accountant).is_pure

    @property
    def is_precise(self) -> bool:
        """Whether a level above the finest has too little noise for cross tables to help."""
        above = self.levels[:-1] or self.levels
        return min(level.sigma for level in above) < LEAST_SIGMA

    def account(self) -> Account:
        """Make a new account; use one for each release."""
        return Account(self.parts)

    def verify(self, tree: Tree | None = None) -> None:
        """Recompute the guarantee; with a tree, also check the measurements against it."""
        self.check_parts()
        if tree is not None:
            self.on(tree)
        if self.epsilon is None and self.delta is None:
            return
        if self.epsilon is None or self.delta is None:
            raise BudgetError("epsilon and delta are guaranteed together or not at all")
        if (self.delta == 0) != self.is_pure:
            raise BudgetError(f"delta is 0 by the accountant {PURE.name!r}, and by no other")
        delta = self.delta if self.is_pure else checked_delta(self.delta)
        if not 0 <= self.epsilon < math.inf:
            raise BudgetError(f"epsilon must be a number of at least 0, got {self.epsilon}")
        found = privacy_curve(self.accountant, self.measured)(self.epsilon)
        if found > delta:
            raise BudgetError(
                f"the plan states delta {delta:g} at epsilon {self.epsilon:g}, but by the "
                f"accountant {self.accountant!r} its noise gives {found:g}"
            )

    def check_parts(self) -> None:
        """Check what needs no tree; this also bounds the time of accounting."""
        if not self.levels:
            raise BudgetError("the plan has no measured level, so it gives no guarantee")
        if len(self.parts) > _MOST_PARTS:
            raise BudgetError(f"the plan has more than {_MOST_PARTS} levels and tables")
        if len({part.key for part in self.parts}) < len(self.parts):
            raise BudgetError("the plan names a level or table twice")
        indices = [level.index for level in self.levels]
        if indices != sorted(indices) or (0 in indices) == self.unit.root_is_public:
            raise BudgetError(
                f"the plan has the levels {indices}; they must be in order, with the total only "
                f"where it is noised ({self.unit.describe()})"
            )
        most = self.unit.trips**2
        # With distinct trips the figure depends on the tree, which only `verify(tree)` has.
        least = 1 if self.unit.distinct else most
        for part in self.parts:
            squared, sides = part.sensitivity.squared, self.unit.sides(part.index)
            fits = part.sensitivity == Sensitivity(squared, sides, self.unit.trips)
            if part.noise.square <= 0 or not fits or not least * sides <= squared <= most * sides:
                raise BudgetError(
                    f"level {part.name!r} has sigma2 {part.noise.square} and squared sensitivity "
                    f"{squared}, which does not fit the unit: {self.unit.describe()}"
                )
            if max(map(int.bit_length, part.noise.square.as_integer_ratio())) > _MOST_BITS:
                raise BudgetError(
                    f"level {part.name!r} has a sigma2 of more than {_MOST_BITS} bits"
                )
            part.noise.check()
        above = () if self.is_pure else (*self.levels[:-1], *self.tables)
        if any(part.noise.is_laplace for part in above):
            raise BudgetError(
                "the plan has Laplace noise above the finest level, which only plans with delta 0 "
                "have"
            )
        if self.used_share > checked_share(self.cross_table_share) * (1 + _ROUNDING):
            raise BudgetError(
                f"cross tables cost the part {float(self.used_share):g} of the budget, "
                f"more than {self.cross_table_share}, which the plan states for them"
            )

    def on(self, tree: Tree) -> "Plan":
        """Return the same plan with its measurements joined to levels and cross tables of a tree.

        Raises:
            BudgetError: the plan is for another tree.
        """
        levels = measured_levels(tree, self.unit)
        has_tables = self.cross_table_share and (self.tables or not self.is_precise)
        tables = measured_tables(tree, is_pure=self.is_pure) if has_tables else ()
        if (len(self.levels), len(self.tables)) != (len(levels), len(tables)):
            raise BudgetError(
                f"the plan does not measure the levels of this tree: it has {len(self.levels)} "
                f"levels and {len(self.tables)} cross tables, the tree needs {len(levels)} "
                f"and {len(tables)}"
            )
        found = replace(
            self,
            levels=_measurements(levels, self.unit, (level.noise for level in self.levels)),
            tables=_measurements(tables, self.unit, (table.noise for table in self.tables)),
        )
        if found != self:
            raise BudgetError(
                "the plan is not the one of this tree: index, name, cells or squared sensitivity "
                "of a level or table are others"
            )
        return found

    def describe(self) -> str:
        """The guarantee and its accounting in one line."""
        cost = f"rho = {rounded_up(self.rho)} (zCDP)"
        if self.epsilon is None or self.delta is None:
            return cost
        return (
            f"epsilon = {rounded_up(self.epsilon)}, delta = {rounded_up(self.delta)} "
            f"by the accountant '{self.accountant}'; {cost}"
        )

    def describe_noise(self) -> str:
        """The noise of the levels in one sentence."""
        *above, finest = (level.noise for level in self.levels)
        if any(noise.family != finest.family for noise in above):
            return (
                f"{describe_noise([finest])} at the finest level, where numbers are small, and "
                f"{describe_noise(above)} above it"
            )
        return f"{describe_noise([*above, finest])} at every level"

    def stated(self) -> StatedPlan:
        """As a manifest states it."""
        return StatedPlan(
            epsilon=self.epsilon,
            delta=self.delta,
            rho=str(self.rho),
            accountant=self.accountant,
            privacy_unit=StatedUnit(**self.unit.to_dict()),
            levels=tuple(level.stated() for level in self.levels),
            cross_table_share=str(self.cross_table_share),
            cross_tables=tuple(table.stated_table() for table in self.tables),
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON: fractions as text, so nothing is rounded."""
        return self.stated().to_dict()

    @classmethod
    def from_dict(cls, data: Any) -> "Plan":
        """Inverse of `to_dict`; recomputes the guarantee."""
        try:
            stated = msgspec.convert(data, StatedPlan)
        except msgspec.ValidationError as problem:
            raise BudgetError(
                f"the plan is not readable: {problem}; it was edited or damaged"
            ) from None
        return cls.from_stated(stated)

    @classmethod
    def from_stated(cls, stated: StatedPlan) -> "Plan":
        """Read a plan and recompute the guarantee.

        Noise and guarantee are read from the record. All else is computed from them and compared
        with the record.
        """
        unit = Unit.from_dict(stated.privacy_unit.to_dict())
        try:
            levels, tables = (
                tuple(Measurement.from_stated(one, unit) for one in measured)
                for measured in (stated.levels, stated.cross_tables)
            )
            share = exact_number(stated.cross_table_share)
        except ZeroDivisionError:
            raise BudgetError("the plan has a fraction over 0; it was edited or damaged") from None
        plan = cls(unit, stated.accountant, stated.epsilon, stated.delta, levels, share, tables)
        plan.check_parts()
        try:
            follows = plan.stated()
        except ValueError:  # rho has more digits than Python writes
            raise BudgetError("the plan has a rho that is too long; it was edited") from None
        if stated != follows:
            raise BudgetError(f"the plan does not follow: {difference(stated, follows)}")
        plan.verify()
        return plan


def make_plan(  # noqa: PLR0913 - three ways to state a budget
    tree: Tree,
    unit: Unit,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    accountant: str = AUTO,
    method: str = "inftda",
    split: Split | None = None,
    cross_tables: Number | None = None,
) -> Plan:
    """Compute the noise for every level of a tree that gives a guarantee.

    Args:
        tree: the levels of the table; it has no data.
        unit: the privacy unit.
        epsilon: privacy budget; with `delta`, it determines the noise.
        delta: probability that the bound of epsilon does not hold; 0 for Laplace noise everywhere.
        rho: budget in zCDP, in place of epsilon or delta, which follows from the other one.
        accountant: "auto" for the tightest that is valid.
        method: "inftda" or "paper": defaults of `split` and `cross_tables`; see `METHODS`.
        split: of the budget over measured levels: "uniform", "log" (by the logarithm of the cells
            of a level; with epsilon, the finest level has Laplace noise where that is less),
            "pairs" (the same with more of the budget for the finest level), or weights in order
            of levels.
        cross_tables: part of the budget for cross tables, which hold marginal totals. None is
            measured where levels above the finest have noise of a standard deviation below 1
            without them: there is little to gain.

    Privacy:
        All levels, measured with this noise, are (epsilon, delta)-differentially private
        for the unit. See docs/proofs/accounting.md.
    """
    guarantee = Guarantee.of(epsilon, delta, rho)
    accountant = guarantee.accountant(accountant)
    usual = usual_split(method)
    split = usual[0] if split is None else split
    part = checked_share(usual[1] if cross_tables is None else cross_tables)
    levels = measured_levels(tree, unit)
    if not levels:
        raise PrivacyError(
            "there is nothing to measure: no level of the tree has two areas and the total "
            "is public; give areas that are split at some level"
        )
    division = _Division(unit, levels, _weights(split, levels), guarantee.family, guarantee.family)
    # The quick accountant decides which noise is drawn: the rule must be public, not tight.
    rough = guarantee.noise(division.shares(), ZCDP.name)
    may_mix = split in ("log", "pairs") and guarantee.rho is None and not guarantee.is_pure
    if may_mix and levels[-1].mean_children >= _LEAST_CHILDREN:
        mixed = division.with_laplace_leaves()
        other = guarantee.noise(mixed.shares(), ZCDP.name)
        if _pays(other, rough):
            division, rough = mixed, other
    if split == "pairs":
        division = division.for_pairs()
        rough = guarantee.noise(division.shares(), ZCDP.name)
    is_precise = min(noise.sigma for noise in rough[:-1] or rough) < LEAST_SIGMA
    tables = () if is_precise or not part else measured_tables(tree, is_pure=guarantee.is_pure)
    shares = division.shares(tables, part)
    noise = guarantee.noise(shares, accountant)
    used, epsilon_stated, delta_stated = guarantee.stated(accountant, with_noise(noise, shares))
    plan = Plan(
        unit=unit,
        accountant=used,
        epsilon=epsilon_stated,
        delta=delta_stated,
        levels=_measurements(levels, unit, noise[: len(levels)]),
        cross_table_share=part,
        tables=_measurements(tables, unit, noise[len(levels) :]),
    )
    plan.verify(tree)
    return plan


@dataclass(frozen=True, slots=True)
class _Division:
    """Division of the budget: a weight for each level, and families of noise distributions.

    The finest level may have another family than all other levels.
    """

    unit: Unit
    levels: Sequence[TreeLevel]
    weights: tuple[Fraction, ...]
    usual: Family
    finest: Family

    def with_laplace_leaves(self) -> "_Division":
        """Return the division with Laplace noise at the finest level, and the weight it needs.

        The largest of N draws is sigma sqrt(2 log(20 N)) for a Gaussian, b log(20 N) for a Laplace.
        """
        weights = *self.weights[:-1], _FINEST * log_cells(self.levels[-1]) ** 2
        return replace(self, weights=weights, finest="laplace")

    def for_pairs(self) -> "_Division":
        """Return the division with more budget for the finest level.

        With one family of noise, the finest level gets half of the budget of all levels. Weights
        of two families do not add up, so with two the finest level gets four times its weight.
        """
        *above, finest = self.weights
        is_mixed = self.finest != self.usual
        more = _PAIRS * finest if is_mixed else max(finest, sum(above, Fraction(0)))
        return replace(self, weights=(*above, more))

    def shares(
        self, tables: Sequence[CrossTable] = (), share: Fraction = Fraction(0)
    ) -> tuple[Share, ...]:
        """Shares of the levels, then of cross tables, which together have a part of the budget."""
        further = cross_table_weights(tables, sum(self.weights, Fraction(0)), share)
        families = [*(self.usual for _ in self.levels[:-1]), self.finest]
        of_levels = [
            Share(weight, self.unit.sensitivity(level), family)
            for weight, level, family in zip(self.weights, self.levels, families, strict=True)
        ]
        of_tables = [
            Share(weight, self.unit.sensitivity(table), self.usual)
            for weight, table in zip(further, tables, strict=True)
        ]
        return commensurable([*of_levels, *of_tables], len(of_levels))


def _pays(other: Sequence[Noise], rough: Sequence[Noise]) -> bool:
    """Whether `other` lowers the noise of the finest level by more than it raises that above it.

    All noise above the finest level is raised by the same factor.
    """
    change = [new.sigma / old.sigma for new, old in zip(other, rough, strict=True)]
    return change[0] * change[-1] < _LEAST_GAIN


def usual_split(method: str) -> tuple[str, Fraction]:
    """Default split, and default part for cross tables, of a method."""
    if method not in METHODS:
        raise PrivacyError(f"`method=` must be inftda or paper, got {str(method)[:40]!r}")
    return METHODS[method]


def measured_levels(tree: Tree, unit: Unit) -> list[TreeLevel]:
    """Levels that get noise: those with split areas, and the root unless it is public."""
    root, *others = tree.levels
    below = [level for level in others if not level.is_trivial]
    return below if unit.root_is_public else [root, *below]


def check_delta(plan: Plan, *, total: int | None, allowed: bool) -> None:
    """Refuse a delta above 1 / number of people: publishing one person's rows would satisfy it.

    Args:
        plan: the plan with delta.
        total: public total of the table; None if it is not public, or not known yet.
        allowed: whether a larger delta was asked for explicitly.

    Raises:
        PrivacyError: delta is too large.
    """
    people = FEWEST_PEOPLE if total is None else total // plan.unit.trips
    if allowed or plan.delta is None or exact_number(plan.delta) * people <= 1:
        return
    known = "the most where the number of people is not public" if total is None else "1 / people"
    usual = 10.0 ** -(len(str(people)) + 2)
    raise PrivacyError(
        f"delta = {rounded_up(plan.delta)} is above 1 / {people:,} ({known}): it allows somebody's "
        f"rows to be published as they are. Give a delta far below that, such as {usual:g}, or use "
        "`allow_large_delta=True`"
    )


def measured_tables(tree: Tree, *, is_pure: bool) -> tuple[CrossTable, ...]:
    """Cross tables that get noise.

    With delta 0 every table costs as much as it would alone, so only totals of the finest areas
    are measured.
    """
    return tuple(table for table in tree.cross_tables if table.is_finest_one_way or not is_pure)


def _measurements(
    marginals: Iterable[TreeLevel | CrossTable], unit: Unit, noise: Iterable[Noise]
) -> tuple[Measurement, ...]:
    """Make measurements of levels or cross tables from their noise."""
    return tuple(
        Measurement.of(marginal, unit, drawn)
        for marginal, drawn in zip(marginals, noise, strict=True)
    )


def cross_table_weights(
    tables: Sequence[CrossTable], of_levels: Fraction, share: Fraction
) -> list[Fraction]:
    """Weights of cross tables, where the levels of the tree have `of_levels` together.

    Together they have `share` of the whole; half of it goes to totals of the finest areas, the most
    used ones.
    """
    n_finest = sum(table.is_finest_one_way for table in tables)
    n_other = len(tables) - n_finest
    budget = of_levels * share / (1 - share)
    finest = budget / n_finest / (2 if n_other else 1) if n_finest else Fraction(0)
    other = (budget - n_finest * finest) / n_other if n_other else Fraction(0)
    return [finest if table.is_finest_one_way else other for table in tables]


def checked_share(given: Number) -> Fraction:
    """Check a part of the budget and return it exactly as it is written: 0.08 is 2/25."""
    is_number = isinstance(given, Fraction | int | float | str) and not isinstance(given, bool)
    with suppress(ValueError, ZeroDivisionError):
        if is_number and 0 <= (share := exact_number(given)) <= MAX_SHARE:
            return share
    raise PrivacyError(
        f"the part for cross tables must be from 0 to {float(MAX_SHARE):g}, such as 0.08, "
        f"got {str(given)[:40]!r}"
    )


def _weights(split: Split, measured: Sequence[TreeLevel]) -> tuple[Fraction, ...]:
    """A positive weight for each measured level; only their ratios matter."""
    if split in ("log", "pairs"):
        return tuple(log_cells(level) for level in measured)
    if split == "uniform":
        return (Fraction(1),) * len(measured)
    if isinstance(split, str) or not isinstance(split, Sequence):
        raise PrivacyError(
            f"split must be {', '.join(map(repr, SPLITS))} or a list of weights, one for each "
            f"measured level, got {str(split)[:40]!r}"
        )
    if len(split) != len(measured):
        names = ", ".join(level.name for level in measured)
        raise PrivacyError(
            f"split must have one weight for each of the {len(measured)} measured levels "
            f"({names}), got {len(split)}"
        )
    return tuple(map(_weight, split))


def log_cells(level: TreeLevel) -> Fraction:
    """Logarithm of the cells of a level over a small probability, to a sixteenth."""
    return Fraction(round(16 * math.log(level.n_nodes / _EXCEEDED)), 16)


def _weight(value: object) -> Fraction:
    if isinstance(value, Fraction | int | float) and not isinstance(value, bool):
        with suppress(ValueError):  # not a number, or endless
            if (weight := Fraction(str(value))) > 0:
                return weight
    raise PrivacyError(f"a weight of the split must be a number > 0, got {value!r}")
