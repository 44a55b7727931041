"""How the budget is split over the measured levels."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from inftda.errors import PrivacyError
from inftda.privacy.numbers import exact_number
from inftda.privacy.unit import Level, Levels

#: "uniform", "geometric:RATIO", weights in order of levels, or weights by name or index.
Split = str | Sequence[Fraction | float] | Mapping[str | int, Fraction | float]

_STEEPEST = 100


def weights_of(split: Split, measured: Sequence[Level], tree: Levels) -> list[Fraction]:
    """A positive weight for each measured level; only their ratios matter.

    Args:
        split: as `make_plan` takes it.
        measured: the levels that share the budget.
        tree: all levels, for telling a trivial one from an unknown one.

    Raises:
        PrivacyError: the split is not understood, or does not fit the levels.
    """
    if isinstance(split, str):
        ratio = _ratio(split)
        return [ratio**position for position in range(len(measured))]
    if isinstance(split, Mapping):
        return _by_level(split, measured, tree)
    if not isinstance(split, Sequence):
        raise PrivacyError(f"split must be text, a list or a mapping of weights, got {split!r}")
    if len(split) != len(measured):
        names = ", ".join(level.name for level in measured)
        raise PrivacyError(
            f"split must have one weight for each of the {len(measured)} measured levels "
            f"({names}), got {len(split)}"
        )
    return [_weight(weight) for weight in split]


def _ratio(split: str) -> Fraction:
    if split == "uniform":
        return Fraction(1)
    kind, _, text = split.partition(":")
    if kind != "geometric":
        raise PrivacyError(
            f"split must be 'uniform', 'geometric:RATIO' or weights by level, got {split!r}"
        )
    try:
        ratio = exact_number(text)
    except (ValueError, ZeroDivisionError):
        raise PrivacyError(f"split must be like 'geometric:1.3', got {split!r}") from None
    if not Fraction(1, _STEEPEST) <= ratio <= _STEEPEST:
        raise PrivacyError(
            f"the ratio of a geometric split must be between {1 / _STEEPEST:g} and {_STEEPEST}, "
            f"got {text} (1.15 to 1.5 favours the leaves)"
        )
    return ratio


def _by_level(
    split: Mapping[str | int, Fraction | float], measured: Sequence[Level], tree: Levels
) -> list[Fraction]:
    known: dict[str | int, Level] = {level.index: level for level in tree.levels}
    known |= {str(level.index): level for level in tree.levels}
    known |= {level.name: level for level in tree.levels}
    weights: dict[int, Fraction] = {}
    for key, weight in split.items():
        level = known.get(key)
        if level is None:
            names = ", ".join(repr(level.name) for level in measured)
            raise PrivacyError(f"split names the level {key!r}; the measured levels are {names}")
        if level.index in weights:
            raise PrivacyError(f"split names the level {level.name!r} twice")
        weights[level.index] = _weight(weight)
    indices = {level.index for level in measured}
    for level in measured:
        if level.index not in weights:
            raise PrivacyError(f"split has no weight for the level {level.name!r}; give it one")
    for index in set(weights) - indices:
        raise PrivacyError(
            f"split gives a weight to level {index}, which is not measured "
            "(it splits nothing, or is the public total); leave it out"
        )
    return [weights[level.index] for level in measured]


def _weight(value: object) -> Fraction:
    if (
        isinstance(value, Fraction | int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and value > 0
    ):
        return Fraction(str(value))
    raise PrivacyError(f"a weight of the split must be a number > 0, got {value!r}")
