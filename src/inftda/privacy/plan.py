"""The plan: how much noise every level gets, and what that costs (paper, section 4.1).

A plan needs no data; making one spends nothing. A mechanism takes its noise scales from a plan and
from nowhere else, through an `Account` that refuses to hand out a level twice and to finish before
all of them are handed out. So what was drawn is what was accounted for.

Must never be made from the trips.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import zip_longest
from typing import Any, Final

import msgspec

from inftda.errors import BudgetError, PrivacyError
from inftda.noise.law import Family, Law
from inftda.numbers import (
    check_drawable,
    checked_delta,
    checked_epsilon,
    checked_rho,
    decode_fraction,
    exact_number,
    rounded_up,
)
from inftda.privacy.accounting import (
    Noise,
    Number,
    Share,
    UsedAccountant,
    commensurable,
    delta_of,
    epsilon_of,
    max_rho,
    noise_at,
    privacy_curve,
    pure_noise,
    resolve,
    total_rho,
)
from inftda.privacy.unit import UNIT_KEYS, Unit
from inftda.tree import OffTree, Tree, TreeLevel

#: "log", "uniform", "geometric:RATIO", weights in order of levels, or weights by name or index.
Split = str | Sequence[Fraction | float] | Mapping[str | int, Fraction | float]
#: What is drawn: a level by its number, a table off the tree by the depths of its axes.
Key = int | tuple[int, ...]
Shares = tuple[Share, ...]

#: Below this noise scale of a level nothing is gained across: no table off the tree is measured.
LEAST_SIGMA: Final = 1
#: The split of the budget, and the part of it for tables off the tree, that a method stands for.
METHODS: Final[Mapping[str, tuple[str, Fraction]]] = {
    "inftda": ("log", Fraction(8, 100)),
    "paper": ("uniform", Fraction(0)),
}
#: The split by logarithms makes the largest of N draws equal at all levels, but with this
#: probability (docs/decisions.md, "The split of the budget").
_EXCEEDED: Final = Fraction(1, 20)
#: With Laplace noise the finest level may have this times that largest draw.
_FINEST: Final = Fraction(5, 4)
#: With fewer children of a parent at the finest level, on average, errors there come from the level
#: above, and Laplace noise does not pay.
_LEAST_CHILDREN: Final = 4
#: It has to lower the noise of the finest level by more than it raises that of others.
_LEAST_GAIN: Final = 0.95
#: Of the budget: with more for tables off the tree, little would be left for the tree itself.
MAX_ACROSS: Final = Fraction(1, 2)
_STEEPEST: Final = 100
#: Variances are rounded up by less than this, so parts of the budget are that far off at most.
_ROUNDING: Final = Fraction(1, 10**8)
#: Far more levels and tables than any tree has; beyond, accounting would take a stranger's word
#: for how long it runs.
_MOST_PARTS: Final = 4096


@dataclass(frozen=True, slots=True)
class LevelPlan:
    """One measured level of the tree, or one measured table off it.

    Attributes:
        index: number of the level in the tree; 0 is the root. For a table the level whose step it
            belongs to.
        name: for people.
        cells: number of possible nodes.
        squared_sensitivity: square of its l2 sensitivity.
        sigma2: how wide its noise is, exact: `Law.square`.
        depths: of a table only: level of each axis's hierarchy, 0 where the axis is summed up.
        family: what its noise is drawn from.
    """

    index: int
    name: str
    cells: int
    squared_sensitivity: int
    sigma2: Fraction
    depths: tuple[int, ...] = ()
    family: Family = "gaussian"

    @classmethod
    def of(cls, part: TreeLevel | OffTree, unit: Unit, noise: Law) -> "LevelPlan":
        """A level or table with its noise."""
        squared = unit.squared_sensitivity(part)
        depths = part.depths if isinstance(part, OffTree) else ()
        return cls(part.index, part.name, part.n_nodes, squared, noise.square, depths, noise.family)

    @property
    def key(self) -> Key:
        """What it is drawn by."""
        return self.depths or self.index

    @property
    def rho(self) -> Fraction:
        """What it costs in zCDP, exact."""
        return self.squared_sensitivity / (2 * self.sigma2)

    @property
    def sigma(self) -> float:
        """Noise scale, to the nearest float; the noise itself is drawn from `sigma2`."""
        return self.noise.sigma

    @property
    def sensitivity(self) -> float:
        """Its l2 sensitivity, to the nearest float."""
        return math.sqrt(self.squared_sensitivity)

    @property
    def noise(self) -> Law:
        """What its noise is drawn from."""
        return Law(self.sigma2, self.family)

    def to_dict(self) -> dict[str, Any]:
        """As it is written to a manifest; `sigma` and `sensitivity` are for people."""
        return {
            "index": self.index,
            "name": self.name,
            "cells": self.cells,
            "sensitivity": self.sensitivity,
            "squared_sensitivity": self.squared_sensitivity,
            "family": self.family,
            "sigma": self.sigma,
            "sigma2": str(self.sigma2),
            "rho": str(self.rho),
            **({"depths": list(self.depths)} if self.depths else {}),
        }


class Account:
    """A plan being spent: what has been drawn of it. Not for several threads at once."""

    def __init__(self, parts: Iterable[LevelPlan]) -> None:
        self._left: dict[Key, LevelPlan] = {part.key: part for part in parts}
        self._planned = frozenset(self._left)

    def is_planned(self, key: Key) -> bool:
        """Whether the plan has noise for a level or table, drawn already or not."""
        return key in self._planned

    def charge(self, key: Key) -> LevelPlan:
        """Take what was planned for a level or table, once."""
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


def _noise_words(levels: Sequence[LevelPlan]) -> str:
    """The law of noise that some levels share, and how wide it is."""
    is_laplace = levels[0].noise.is_laplace
    widths = [float(level.noise.scale) if is_laplace else level.sigma for level in levels]
    low, high = f"{min(widths):.3g}", f"{max(widths):.3g}"
    width = low if low == high else f"{low} to {high}"
    kind = "Laplace noise of scale" if is_laplace else "Gaussian noise of standard deviation"
    return f"discrete {kind} {width}"


def _listed(keys: Iterable[Key]) -> str:
    """Levels by their numbers, tables by their depths."""
    return str(sorted(keys, key=str))


@dataclass(frozen=True)
class Plan:
    """Noise for every measured level, and the guarantee that follows.

    Attributes:
        unit: who is protected.
        accountant: how epsilon and delta follow from the noise.
        epsilon: promised with `delta`; None if only rho is promised.
        delta: None likewise.
        levels: the measured ones, root first (only if it is noised); trivial ones are absent.
        across: part of the budget that was asked for to measure tables off the tree.
        tables: these tables, in the order of the levels they belong to; none although they were
            asked for if the tree has none, or if a level has a noise scale below 1.

    Privacy:
        Built by hand it promises nothing before `verify` has passed.
    """

    unit: Unit
    accountant: UsedAccountant
    epsilon: float | None
    delta: float | None
    levels: tuple[LevelPlan, ...]
    across: Fraction = Fraction(0)
    tables: tuple[LevelPlan, ...] = ()

    @property
    def parts(self) -> tuple[LevelPlan, ...]:
        """All that is measured: levels, then tables."""
        return (*self.levels, *self.tables)

    @property
    def measured(self) -> tuple[Noise, ...]:
        """The levels and tables as accounting sees them: each changes on its own."""
        return tuple(
            Noise(
                part.sigma2,
                part.squared_sensitivity,
                self.unit.sides(part.index),
                part.family,
                self.unit.trips,
            )
            for part in self.parts
        )

    @property
    def rho(self) -> Fraction:
        """Cost in zCDP, exact: the sum over levels and tables."""
        return total_rho(self.measured)

    @property
    def share_across(self) -> Fraction:
        """Part of the budget that tables off the tree cost."""
        costs = [noise.epsilon if self.is_pure else noise.rho for noise in self.measured]
        return sum(costs[len(self.levels) :], Fraction(0)) / sum(costs, Fraction(0))

    @property
    def is_pure(self) -> bool:
        """Whether it promises epsilon with delta 0."""
        return self.accountant == "pure"

    @property
    def is_precise(self) -> bool:
        """Whether levels above the finest have so little noise that nothing is measured across."""
        above = self.levels[:-1] or self.levels
        return min(level.sigma for level in above) < LEAST_SIGMA

    def account(self) -> Account:
        """A fresh account of what has been drawn: use one for each release."""
        return Account(self.parts)

    def verify(self, tree: Tree | None = None) -> None:
        """Recompute the guarantee; with a tree, also what is planned for its levels and tables."""
        self.check_parts()
        if tree is not None and self._for(tree) != self:
            raise BudgetError(
                "the plan is not the one of this tree: index, name, cells or squared sensitivity "
                "of a level or table are others"
            )
        if self.epsilon is None and self.delta is None:
            return
        if self.epsilon is None or self.delta is None:
            raise BudgetError("epsilon and delta are promised together or not at all")
        if (self.delta == 0) != self.is_pure:
            raise BudgetError("delta is 0 by the accountant 'pure', and by no other")
        delta = self.delta if self.is_pure else checked_delta(self.delta)
        if not 0 <= self.epsilon < math.inf:
            raise BudgetError(f"epsilon must be a number of at least 0, got {self.epsilon}")
        found = privacy_curve(self.accountant, self.measured)(self.epsilon)
        if found > delta:
            raise BudgetError(
                f"the plan promises delta {delta:g} at epsilon {self.epsilon:g}, but by the "
                f"accountant {self.accountant!r} its noise gives {found:g}"
            )

    def check_parts(self) -> None:
        """What can be known without a tree; it also bounds what accounting takes."""
        if not self.levels:
            raise BudgetError("the plan has no measured level, so it promises nothing")
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
            sides = self.unit.sides(part.index)
            fits = least * sides <= part.squared_sensitivity <= most * sides
            if part.sigma2 <= 0 or not fits:
                raise BudgetError(
                    f"level {part.name!r} has sigma2 {part.sigma2} and squared sensitivity "
                    f"{part.squared_sensitivity}, which does not fit the unit: "
                    f"{self.unit.describe()}"
                )
            check_drawable(part.sigma2)
            part.noise.check()
        if self.share_across > checked_across(self.across) * (1 + _ROUNDING):
            raise BudgetError(
                f"tables off the tree cost the part {float(self.share_across):g} of the budget, "
                f"more than {self.across}, which the plan states for them"
            )

    def _for(self, tree: Tree) -> "Plan":
        """The plan that this noise makes for a tree."""
        levels = measured_levels(tree, self.unit)
        is_across = self.across and (self.tables or not self.is_precise)
        tables = measured_tables(tree, is_pure=self.is_pure) if is_across else ()
        found = [len(self.levels), len(self.tables)]
        if found != [len(levels), len(tables)]:
            raise BudgetError(
                f"the plan does not measure the levels of this tree: it has {found[0]} levels and "
                f"{found[1]} tables off the tree, the tree needs {len(levels)} and {len(tables)}"
            )
        return replace(
            self,
            levels=_with_noise(levels, self.unit, self.levels),
            tables=_with_noise(tables, self.unit, self.tables),
        )

    def describe(self) -> str:
        """The promise in one line."""
        cost = f"rho = {rounded_up(self.rho)} (zCDP)"
        if self.epsilon is None or self.delta is None:
            return cost
        return (
            f"epsilon = {rounded_up(self.epsilon)}, delta = {rounded_up(self.delta)} "
            f"by the accountant '{self.accountant}'; {cost}"
        )

    def describe_noise(self) -> str:
        """The noise of the levels in one sentence."""
        *above, finest = self.levels
        if any(level.family != finest.family for level in above):
            return (
                f"{_noise_words([finest])} at the finest level, where numbers are small, and "
                f"{_noise_words(above)} above it"
            )
        return f"{_noise_words(self.levels)} at every level"

    def to_dict(self) -> dict[str, Any]:
        """For JSON: fractions as text, so nothing is rounded."""
        across: dict[str, Any] = {}
        if self.across:
            tables = [table.to_dict() for table in self.tables]
            across = {"across": str(self.across), "tables": tables}
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rho": str(self.rho),
            "accountant": self.accountant,
            **self.unit.to_dict(),
            "levels": [level.to_dict() for level in self.levels],
            **across,
        }

    @classmethod
    def from_dict(cls, data: Any) -> "Plan":
        """Read back what `to_dict` gives, and recompute the guarantee.

        Noise and promise are taken from the data. What follows from them is computed, and the
        whole must be what is stated.
        """
        stated = data if isinstance(data, dict) else {}
        unit = {key: stated.get(key) for key in UNIT_KEYS}
        try:
            plan = msgspec.convert({**stated, "unit": unit}, cls, dec_hook=decode_fraction)
        except msgspec.ValidationError as problem:
            raise BudgetError(
                f"the plan is not readable: {problem}; it was edited or damaged"
            ) from None
        plan.check_parts()
        texts = (json.dumps(of, indent=1).splitlines() for of in (stated, plan.to_dict()))
        for found, expected in zip_longest(*texts, fillvalue=""):
            if found != expected:
                raise BudgetError(
                    f"the plan states {found.strip()[:60]!r}, where {expected.strip()[:60]!r} "
                    "follows from the rest of it; it was edited, or written by another version of "
                    "inftda"
                )
        plan.verify()
        return plan


def make_plan(  # noqa: PLR0913 - three ways to state a budget
    tree: Tree,
    unit: Unit,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    accountant: str = "auto",
    method: str = "paper",
    split: Split | None = None,
    across: Number | None = None,
) -> Plan:
    """Noise for every level of a tree that keeps a promise; by default as in the paper.

    Args:
        tree: what is released; its levels, not its data.
        unit: who is protected.
        epsilon: strength of the guarantee; with `delta`, the noise follows.
        delta: probability that it does not hold; 0 for Laplace noise everywhere.
        rho: strength in zCDP, instead; with `delta`, epsilon follows, and the other way round.
        accountant: "auto" for the tightest that is valid.
        method: what the next two are unless they are given: "inftda" or "paper"; see `METHODS`.
        split: of the budget over measured levels: "uniform", "log" (by the logarithm of the cells
            of a level; with epsilon, the finest level has Laplace noise where that is less),
            "geometric:RATIO" (each level RATIO times the one above), weights in order, or weights
            by level name or index.
        across: part of the budget for tables off the tree, which tell totals across it. None is
            measured where levels above the finest have a noise scale below 1 without them: there
            is little to gain.

    Privacy:
        All levels, measured with this noise, are (epsilon, delta)-differentially private
        for the unit. See docs/proofs/accounting.md.
    """
    by_method = usual_split(method)
    split = by_method[0] if split is None else split
    share = checked_across(by_method[1] if across is None else across)
    levels = measured_levels(tree, unit)
    if not levels:
        raise PrivacyError(
            "there is nothing to measure: no level of the tree has two areas and the total "
            "is public; give areas that are split at some level"
        )
    weights = _weights(split, levels, tree)
    at = (math.inf, math.inf) if rho is not None else _both(epsilon, delta)
    is_pure = at[1] == 0
    accountant = _pure(accountant) if is_pure else accountant
    usual: Family = "laplace" if is_pure else "gaussian"

    def shares(weights: Sequence[Fraction], tables: Sequence[OffTree], finest: Family) -> Shares:
        """What levels and tables have of the budget; the finest level may have other noise."""
        further = off_tree_weights(tables, sum(weights, Fraction(0)), share)
        parts: list[TreeLevel | OffTree] = [*levels, *tables]
        asked = [
            Share(
                weight,
                unit.squared_sensitivity(part),
                unit.sides(part.index),
                finest if part is levels[-1] else usual,
                unit.trips,
            )
            for weight, part in zip((*weights, *further), parts, strict=True)
        ]
        return commensurable(asked, len(levels))

    def noise_of(shares: Shares, accountant: str) -> tuple[Noise, ...]:
        """Noise that keeps the promise, and that can be drawn."""
        if rho is not None:
            noise = noise_at(checked_rho(rho), shares)
        elif is_pure:
            noise = pure_noise(exact_number(at[0]), shares)
        else:
            largest = max_rho(accountant, epsilon=at[0], delta=at[1], shares=shares)
            noise = noise_at(largest, shares)
        check_drawable(max(part.sigma2 for part in noise))
        return noise

    # What is drawn is decided by the quick accountant: the rule has to be public, not sharp.
    finest, rough = usual, noise_of(shares(weights, (), usual), "zcdp")
    may_differ = split == "log" and rho is None and not is_pure
    if may_differ and levels[-1].mean_children >= _LEAST_CHILDREN:
        heavier = [*weights[:-1], _finest_weight(levels[-1])]
        other = noise_of(shares(heavier, (), "laplace"), "zcdp")
        # It lowers noise of the finest level, and raises that of all others by one factor.
        change = [new.law.sigma / old.law.sigma for new, old in zip(other, rough, strict=True)]
        if change[0] * change[-1] < _LEAST_GAIN:
            finest, weights, rough = "laplace", heavier, other
    least = min(part.law.sigma for part in rough[: max(1, len(levels) - 1)])
    tables = measured_tables(tree, is_pure=is_pure) if share and least >= LEAST_SIGMA else ()
    noise = noise_of(shares(weights, tables, finest), accountant)
    promise: tuple[float | None, float | None] = (
        at if rho is None else _implied(accountant, noise, epsilon, delta)
    )
    used = resolve(accountant, noise)
    if accountant == "auto" and promise == (None, None):
        used = "zcdp"  # only rho is promised, which needs no other
    plan = Plan(
        unit=unit,
        accountant=used,
        epsilon=promise[0],
        delta=promise[1],
        levels=_with_noise(levels, unit, noise[: len(levels)]),
        across=share,
        tables=_with_noise(tables, unit, noise[len(levels) :]),
    )
    plan.verify(tree)
    return plan


def usual_split(method: str) -> tuple[str, Fraction]:
    """The split, and the part for tables off the tree, that a method stands for."""
    if method not in METHODS:
        raise PrivacyError(f"`method=` must be inftda or paper, got {str(method)[:40]!r}")
    return METHODS[method]


def _pure(accountant: str) -> str:
    """The accountant of delta 0, unless another is asked for."""
    if accountant not in {"auto", "pure"}:
        raise PrivacyError(
            f"`delta=0` is accounted for by 'pure' (or 'auto'), got {str(accountant)[:40]!r}"
        )
    return "pure"


def measured_levels(tree: Tree, unit: Unit) -> list[TreeLevel]:
    """Levels that get noise: those that split something, and the root unless it is public."""
    root, *others = tree.levels
    below = [level for level in others if not level.is_trivial]
    return below if unit.root_is_public else [root, *below]


def measured_tables(tree: Tree, *, is_pure: bool) -> tuple[OffTree, ...]:
    """Tables off the tree that get noise.

    With delta 0 every table costs as much as it would alone, so only totals of the finest areas
    are measured.
    """
    return tuple(table for table in tree.off_tree if table.is_finest_one_way or not is_pure)


def _with_noise(
    parts: Iterable[TreeLevel | OffTree], unit: Unit, noise: Iterable[Noise | LevelPlan]
) -> tuple[LevelPlan, ...]:
    """What is planned for some levels or tables, each with its noise."""
    pairs = zip(parts, noise, strict=True)
    return tuple(LevelPlan.of(part, unit, Law(drawn.sigma2, drawn.family)) for part, drawn in pairs)


def off_tree_weights(
    tables: Sequence[OffTree], of_levels: Fraction, share: Fraction
) -> list[Fraction]:
    """Weights of off-tree tables, where the levels of the tree have `of_levels` together.

    Together they have `share` of the whole, half of that for the totals of the finest areas, which
    people ask for first.
    """
    n_finest = sum(table.is_finest_one_way for table in tables)
    n_other = len(tables) - n_finest
    budget = of_levels * share / (1 - share)
    finest = budget / n_finest / (2 if n_other else 1) if n_finest else Fraction(0)
    other = (budget - n_finest * finest) / n_other if n_other else Fraction(0)
    return [finest if table.is_finest_one_way else other for table in tables]


def checked_across(across: Number) -> Fraction:
    """A part of the budget as the number it is written as: 0.08 is eight hundredths."""
    is_number = isinstance(across, Fraction | int | float | str) and not isinstance(across, bool)
    with suppress(ValueError, ZeroDivisionError):
        if is_number and 0 <= (share := exact_number(across)) <= MAX_ACROSS:
            return share
    raise PrivacyError(
        f"across must be a part of the budget from 0 to {float(MAX_ACROSS):g}, such as 0.08, "
        f"got {str(across)[:40]!r}"
    )


def _both(epsilon: Number | None, delta: Number | None) -> tuple[float, float]:
    if epsilon is None or delta is None:
        raise PrivacyError(
            "a budget is either epsilon and delta, or rho; got "
            f"epsilon = {epsilon}, delta = {delta}"
        )
    is_zero = delta in {0, "0"}
    return checked_epsilon(epsilon), 0.0 if is_zero else checked_delta(delta)


def _implied(
    accountant: str, noise: Sequence[Noise], epsilon: Number | None, delta: Number | None
) -> tuple[float | None, float | None]:
    """The epsilon and delta that noise for a given rho promises, if one of them is given."""
    if epsilon is not None and delta is not None:
        raise PrivacyError("give epsilon and delta, or rho with at most one of them, not all")
    if delta is not None:
        target = checked_delta(delta)
        return epsilon_of(accountant, delta=target, noise=noise), target
    if epsilon is None:
        return None, None
    at = checked_epsilon(epsilon)
    found = delta_of(accountant, epsilon=at, noise=noise)
    if found >= 1:
        raise PrivacyError(f"this rho promises nothing at epsilon {at:g}; give a larger one")
    return at, found


def _weights(split: Split, measured: Sequence[TreeLevel], tree: Tree) -> list[Fraction]:
    """A positive weight for each measured level; only their ratios matter."""
    if split == "log":
        return [Fraction(log_cells(level)) for level in measured]
    if isinstance(split, str):
        ratio = _ratio(split)
        return [ratio**position for position in range(len(measured))]
    if isinstance(split, Mapping):
        return _weights_by_level(split, measured, tree)
    if not isinstance(split, Sequence):
        raise PrivacyError(f"split must be text, a list or a mapping of weights, got {split!r}")
    if len(split) != len(measured):
        names = ", ".join(level.name for level in measured)
        raise PrivacyError(
            f"split must have one weight for each of the {len(measured)} measured levels "
            f"({names}), got {len(split)}"
        )
    return [_weight(weight) for weight in split]


def log_cells(level: TreeLevel) -> Fraction:
    """Logarithm of the cells of a level over a small probability, to a sixteenth."""
    return Fraction(round(16 * math.log(level.n_nodes / _EXCEEDED)), 16)


def _finest_weight(level: TreeLevel) -> Fraction:
    """Weight of Laplace noise at the finest level, as the logarithms of others are weights.

    The largest of N draws is sigma sqrt(2 log(20 N)) for a Gaussian, b log(20 N) for a Laplace.
    """
    return log_cells(level) ** 2 / (2 * _FINEST**2)


def _ratio(split: str) -> Fraction:
    if split == "uniform":
        return Fraction(1)
    kind, _, text = split.partition(":")
    with suppress(ValueError, ZeroDivisionError):
        ratio = exact_number(text)
        if kind == "geometric" and Fraction(1, _STEEPEST) <= ratio <= _STEEPEST:
            return ratio
    raise PrivacyError(
        "split must be 'log', 'uniform', weights by level, or like 'geometric:1.3', with a ratio "
        f"between {1 / _STEEPEST:g} and {_STEEPEST}, got {split!r}"
    )


def _weights_by_level(
    split: Mapping[str | int, Fraction | float], measured: Sequence[TreeLevel], tree: Tree
) -> list[Fraction]:
    known: dict[str | int, TreeLevel] = {}
    for level in tree.levels:
        known |= {level.index: level, str(level.index): level, level.name: level}
    weights: dict[int, Fraction] = {}
    for key, weight in split.items():
        if key not in known:
            names = ", ".join(repr(level.name) for level in measured)
            raise PrivacyError(f"split names the level {key!r}; the measured levels are {names}")
        if known[key].index in weights:
            raise PrivacyError(f"split names the level {known[key].name!r} twice")
        weights[known[key].index] = _weight(weight)
    for level in tree.levels:
        if level not in measured and level.index in weights:
            raise PrivacyError(
                f"split gives a weight to level {level.index}, which is not measured "
                "(it splits nothing, or is the public total); leave it out"
            )
        if level in measured and level.index not in weights:
            raise PrivacyError(f"split has no weight for the level {level.name!r}; give it one")
    return [weights[level.index] for level in measured]


def _weight(value: object) -> Fraction:
    if isinstance(value, Fraction | int | float) and not isinstance(value, bool):
        with suppress(ValueError):  # not a number, or endless
            if (weight := Fraction(str(value))) > 0:
                return weight
    raise PrivacyError(f"a weight of the split must be a number > 0, got {value!r}")
