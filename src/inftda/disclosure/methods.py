"""Protection without a guarantee, as statistical offices use it.

- `suppress:K`: cells below K are hidden (primary), and others with them so that no hidden cell
  follows from its family (secondary). Going down the tree: where a parent is shown, the
  smallest others are hidden until at least two are, which come to K together; where a parent is
  hidden and no child is, its smallest child is. Zeros are shown.
- `suppress-primary:K`: the first without the second.
- `round:B`: every number is rounded at random to one of the two next multiples of B, so that it
  is right in expectation; drawn once for each cell and kept, so that repeated tables agree.
- `round-nearest:B`: every number is rounded to the nearest multiple of B, halves up.
- `cell-key:D`: every record has a random key; the sum of the keys of a cell picks its change of
  at most D from a perturbation matrix (mean 0, variance 2 where there is room, no number below
  0, zeros stay). The same records give the same number in every table.

`OFFICES` names settings of these that statistical offices use, each with its source.

Tables are published at every level of the tree, and totals of the finest areas of each axis. Only
cells with a true count are kept: all methods publish zeros as zeros. Everything in this module
holds the truth. Its chance needs no secure bits: nothing is promised, and nothing is published.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inftda.errors import InftdaError
from inftda.evaluation.measures import area_totals
from inftda.truth import Children, Truth

Numbers = NDArray[np.int64]

#: Variance of the changes by cell keys, where there is room.
_VARIANCE = 2.0
#: The variance at which 14 % of the numbers are changed.
_RARE = 0.14
#: Where the largest true counts lie, sums of bounds stay far from overflow.
_MOST_TRIPS = 1 << 40
#: Records that are looked at together, so that memory does not grow with the table.
_RECORDS_AT_ONCE = 1 << 20


@dataclass(frozen=True, repr=False)
class ProtectedTable:
    """One table as it is published: true counts, and what a reader sees and knows of each.

    Attributes:
        true: the true counts.
        value: what is published; 0 where a cell is hidden.
        is_hidden: which cells are published as hidden.
        low: lower bounds that a reader knows.
        high: upper bounds.
    """

    true: Numbers
    value: Numbers
    is_hidden: NDArray[np.bool_]
    low: Numbers
    high: Numbers


@dataclass(frozen=True, repr=False)
class ProtectedTables:
    """All tables of one edition.

    Attributes:
        truth: what they were made from.
        levels: the root, and each level that splits something.
        totals: for each axis, totals of its finest areas; cells are all areas.
        max_count_shown_as_zero: the largest true count that may be published as zero.
        n_reidentified: trips whose removal changes the number of their own leaf.
        n_seen_anywhere: trips whose removal changes any number below the root.
    """

    truth: Truth
    levels: tuple[ProtectedTable, ...]
    totals: tuple[ProtectedTable, ...]
    max_count_shown_as_zero: int
    n_reidentified: int
    n_seen_anywhere: int


class Method(ABC):
    """A way to protect tables that promises nothing, with the number that stands behind its colon.

    Attributes:
        kind: what it is called.
        says: what it does, for people.
        default: its number unless another is given.
    """

    kind: ClassVar[str]
    says: ClassVar[str]
    default: ClassVar[int]

    def __init__(self, number: int) -> None:
        self.number = number

    @property
    def name(self) -> str:
        """As it is called on the command line."""
        return f"{self.kind}:{self.number}"

    @property
    def words(self) -> str:
        """What it does."""
        return self.says.format(self.number)

    @abstractmethod
    def publish(self, truth: Truth, random: np.random.Generator) -> ProtectedTables:
        """All tables of one edition."""

    @abstractmethod
    def show(self, true: Numbers, random: np.random.Generator) -> Numbers:
        """Published values of one table alone; 0 where a cell is hidden."""


class PrimarySuppression(Method):
    """Small cells are hidden."""

    kind, default = "suppress-primary", 10
    says = "cells below {} are hidden; totals are published"

    def publish(self, truth: Truth, random: np.random.Generator) -> ProtectedTables:  # noqa: ARG002
        """All tables; nothing is left to chance."""
        levels = [self._shown(np.array([truth.total]), np.zeros(1, bool), truth.total)]
        for number, level in enumerate(truth.levels):
            is_parent_hidden = levels[-1].is_hidden[truth.above(number)]
            is_hidden = self._hidden(level, is_parent_hidden)
            levels.append(self._shown(level.count, is_hidden, truth.total))
        totals = [
            self._shown(true, (true > 0) & (true < self.number), truth.total)
            for true in finest_totals(truth)
        ]
        seen = _seen(truth, [~level.is_hidden for level in levels])
        return ProtectedTables(truth, tuple(levels), tuple(totals), 0, *seen)

    def show(self, true: Numbers, random: np.random.Generator) -> Numbers:  # noqa: ARG002
        """Small ones are hidden."""
        return np.where(true < self.number, 0, true)

    def _hidden(self, level: Children, _: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which children are hidden, by which of their parents are."""
        return level.count < self.number

    def _most_hidden(self, total: int) -> int:  # noqa: ARG002 - others need it
        """The largest number that a reader may think is hidden."""
        return self.number - 1

    def _shown(self, true: Numbers, is_hidden: NDArray[np.bool_], total: int) -> ProtectedTable:
        # Zeros are shown, so what is hidden is at least 1.
        most = self._most_hidden(total)
        low, high = np.where(is_hidden, 1, true), np.where(is_hidden, most, true)
        return ProtectedTable(true, np.where(is_hidden, 0, true), is_hidden, low, high)


class Suppression(PrimarySuppression):
    """Small cells are hidden, and others so that none of them follows from its family."""

    kind = "suppress"
    says = (
        "cells below {} are hidden, and others so that none follows from its family; totals are "
        "published"
    )

    def _hidden(self, level: Children, is_parent_hidden: NDArray[np.bool_]) -> NDArray[np.bool_]:
        is_hidden, n = level.count < self.number, np.diff(level.offsets)
        family = np.repeat(np.arange(len(n)), n)
        # In each family those that are hidden already, then the smallest others.
        order = np.lexsort((level.count, ~is_hidden, family))
        count = level.count[order]
        n_before = np.arange(len(order)) - level.offsets[family]
        sum_before = np.cumsum(count) - count
        sum_before -= sum_before[level.offsets[family]]
        is_enough = np.where(
            is_parent_hidden[family], n_before >= 1, (n_before >= 2) & (sum_before >= self.number)
        )
        has_hidden = is_parent_hidden | (np.bincount(family[is_hidden], minlength=len(n)) > 0)
        is_hidden[order] |= has_hidden[family] & ~is_enough
        return is_hidden

    def _most_hidden(self, total: int) -> int:
        return total  # what is hidden for the sake of others may be any number


class Rounding(Method):
    """Numbers are rounded at random to a multiple."""

    kind, default = "round", 5
    says = "every number is rounded at random to a multiple of {}, once for each cell"

    def publish(self, truth: Truth, random: np.random.Generator) -> ProtectedTables:
        """All tables, each rounded alone."""
        levels, changed = [], []
        for true in true_levels(truth):
            chance = self._chance(len(true), random)
            value = self.rounded(true, chance)
            changed.append(value != self.rounded(true - 1, chance))
            levels.append(self._shown(true, value))
        totals = [self._shown(true, self.show(true, random)) for true in finest_totals(truth)]
        seen, (_, most_below) = _seen(truth, changed), self._reach
        return ProtectedTables(truth, tuple(levels), tuple(totals), most_below, *seen)

    def show(self, true: Numbers, random: np.random.Generator) -> Numbers:
        """Rounded."""
        return self.rounded(true, self._chance(len(true), random))

    def rounded(self, true: Numbers, chance: NDArray[np.float64]) -> Numbers:
        """Up where the chance, from 0 to 1, is below the part that is missing."""
        down, rest = np.divmod(true, self.number)
        return np.asarray(self.number * (down + (chance * self.number < rest)), np.int64)

    def _chance(self, n: int, random: np.random.Generator) -> NDArray[np.float64]:
        return random.random(n)

    @property
    def _reach(self) -> tuple[int, int]:
        """How far a true number may lie below and above the published one."""
        return self.number - 1, self.number - 1

    def _shown(self, true: Numbers, value: Numbers) -> ProtectedTable:
        below, above = self._reach
        low = np.maximum(value - below, 0)
        return ProtectedTable(true, value, np.zeros(len(true), bool), low, value + above)


class NearestRounding(Rounding):
    """Numbers are rounded to the nearest multiple."""

    kind, default = "round-nearest", 100
    says = "every number is rounded to the nearest multiple of {}"

    def _chance(self, n: int, random: np.random.Generator) -> NDArray[np.float64]:  # noqa: ARG002 - others use it
        return np.full(n, np.nextafter(0.5, 0))  # half of it is rounded up

    @property
    def _reach(self) -> tuple[int, int]:
        return self.number // 2, (self.number - 1) // 2


class CellKey(Method):
    """Numbers are changed by the keys of their records."""

    kind, default = "cell-key", 3
    says = "the keys of its records change every number, by {} at most"

    def __init__(self, number: int, variance: float = _VARIANCE) -> None:
        super().__init__(number)
        self._matrix = perturbation_matrix(number, variance)

    def publish(self, truth: Truth, random: np.random.Generator) -> ProtectedTables:
        """All tables; the same records give the same number everywhere."""
        record_keys = random.integers(0, 1 << 64, truth.total, np.uint64)
        first = np.cumsum(truth.leaves[1]) - truth.leaves[1]
        leaf_keys = np.add.reduceat(record_keys, first)  # modulo 2^64, as all sums of keys
        levels, level_keys = [], []
        for true, node in zip(true_levels(truth), nodes_of_leaves(truth), strict=True):
            level_keys.append(np.zeros(len(true), np.uint64))
            np.add.at(level_keys[-1], node, leaf_keys)
            value = true + change_by_key(true, level_keys[-1], self._matrix)
            levels.append(self._shown(true, value))
        totals = [self._shown(true, self.show(true, random)) for true in finest_totals(truth)]
        seen = _seen_by_keys(truth, record_keys, levels, level_keys, self._matrix)
        return ProtectedTables(truth, tuple(levels), tuple(totals), self.number, *seen)

    def show(self, true: Numbers, random: np.random.Generator) -> Numbers:
        """Changed by further keys."""
        keys = random.integers(0, 1 << 64, len(true), np.uint64)
        return true + change_by_key(true, keys, self._matrix)

    def _shown(self, true: Numbers, value: Numbers) -> ProtectedTable:
        # Zeros stay zeros, so what is published above 0 is above 0.
        low = np.where(value > 0, np.maximum(value - self.number, 1), 0)
        return ProtectedTable(true, value, np.zeros(len(true), bool), low, value + self.number)


KINDS: Final = {
    one.kind: one for one in (Suppression, PrimarySuppression, Rounding, NearestRounding, CellKey)
}


def _seen_by_keys(
    truth: Truth,
    record_keys: NDArray[np.uint64],
    levels: Sequence[ProtectedTable],
    level_keys: Sequence[NDArray[np.uint64]],
    matrix: NDArray[np.float64],
) -> tuple[int, int]:
    """Records without which the number of their leaf, and of any level, is another."""
    leaf_of_record = np.repeat(np.arange(truth.n_leaves, dtype=np.int32), truth.leaves[1])
    # That somebody is gone from the root says nothing about where.
    tables = list(zip(nodes_of_leaves(truth), levels, level_keys, strict=True))[1:]
    n_at_leaf = n_anywhere = 0
    for start in range(0, len(record_keys), _RECORDS_AT_ONCE):
        key = record_keys[start : start + _RECORDS_AT_ONCE]
        leaf = leaf_of_record[start : start + _RECORDS_AT_ONCE]
        n_left = [len(key)]
        for nodes, table, keys in reversed(tables):  # those that are seen need no further look
            node = nodes[leaf]
            fewer = table.true[node] - 1
            without = fewer + change_by_key(fewer, keys[node] - key, matrix)
            is_same = without == table.value[node]
            key, leaf = key[is_same], leaf[is_same]
            n_left.append(len(key))
        n_at_leaf += n_left[0] - n_left[min(1, len(tables))]
        n_anywhere += n_left[0] - n_left[-1]
    return n_at_leaf, n_anywhere


def change_by_key(true: Numbers, key: NDArray[np.uint64], matrix: NDArray[np.float64]) -> Numbers:
    """How the sum of its keys changes each count."""
    most = len(matrix) - 1
    row = np.minimum(true, most)
    chance = (key >> np.uint64(11)).astype(np.float64) / (1 << 53)
    # All rows one after the other: those of row n lie between 2 n and 2 n + 1.
    stacked = (matrix + 2.0 * np.arange(most + 1)[:, None]).ravel()
    at = np.searchsorted(stacked, chance + 2.0 * row, side="right") - row * matrix.shape[1]
    return np.asarray(np.minimum(at, 2 * most) - most, np.int64)


def perturbation_matrix(most: int, variance: float = _VARIANCE) -> NDArray[np.float64]:
    """float64[most + 1, 2 most + 1]: running sums of the probabilities of each change.

    Row n is for counts of n (the last one for all from `most` on), column v for a change of
    v - most. Of all laws with mean 0 and the variance, the one with the largest entropy; small
    counts have no room for it and take the same law cut off at 0, tilted to mean 0.
    """
    change = np.arange(-most, most + 1, dtype=np.float64)
    spread = _root(lambda b: variance - _mean(np.exp(-b * change**2), change**2), 0.0, 50.0)
    rows = []
    for count in range(most + 1):
        weight = np.where(change >= -count, np.exp(-spread * change**2), 0.0)
        if count == 0:
            weight = np.where(change == 0, 1.0, 0.0)
        elif count < most:
            weight = weight * np.exp(change * _tilt(weight, change))
        rows.append(np.cumsum(weight / weight.sum()))
    matrix = np.array(rows)
    matrix[:, -1] = 1.0
    return matrix


def _tilt(weight: NDArray[np.float64], change: NDArray[np.float64]) -> float:
    return _root(lambda a: _mean(weight * np.exp(a * change), change), -20.0, 20.0)


def _mean(weight: NDArray[np.float64], value: NDArray[np.float64]) -> float:
    return float((weight * value).sum() / weight.sum())


def _root(growing: Callable[[float], float], low: float, high: float) -> float:
    """Where a growing function passes 0, by halving."""
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if growing(middle) < 0 else (low, middle)
    return (low + high) / 2


def check_size(truth: Truth) -> None:
    """Refuse a table too large for sums of bounds."""
    if truth.total >= _MOST_TRIPS:
        raise InftdaError("a comparison of methods is for tables of less than 2^40 trips")


def true_levels(truth: Truth) -> list[Numbers]:
    """Counts of the root and of the non-zero nodes of each splitting level."""
    return [np.array([truth.total], np.int64), *(level.count for level in truth.levels)]


def finest_totals(truth: Truth) -> list[Numbers]:
    """For each axis, totals of its finest areas."""
    return [
        area_totals(truth, number, axis.hierarchy.depth)
        for number, axis in enumerate(truth.tree.axes)
    ]


def nodes_of_leaves(truth: Truth) -> list[Numbers]:
    """For the root and each splitting level, the node of each leaf."""
    nodes = [np.arange(truth.n_leaves)]
    for number, level in reversed(list(enumerate(truth.levels))):
        parents = np.repeat(truth.above(number), np.diff(level.offsets))
        nodes.insert(0, parents[nodes[0]])
    return nodes


def _seen(truth: Truth, changed: Sequence[NDArray[Any]]) -> tuple[int, int]:
    """Trips that are seen at their leaf, and at any level, if one of their trips goes.

    Args:
        truth: the counts.
        changed: for the root and each splitting level, whether the number changes. That of the
            root says nothing about where somebody went.
    """
    if not truth.levels:
        return 0, 0
    flags = zip(changed[1:], nodes_of_leaves(truth)[1:], strict=True)
    anywhere = np.any([level[node] for level, node in flags], axis=0)
    count = truth.leaves[1]
    return int(count[changed[-1]].sum()), int(count[anywhere].sum())


class Office(NamedTuple):
    """What a statistical office does with such tables, as far as it says.

    Attributes:
        method: the nearest method.
        source: whose, of which tables, what is left out, and where it is said.
    """

    method: Method
    source: str


OFFICES: Final = {
    "cbs": Office(
        NearestRounding(100),
        "Statistics Netherlands, jobs by region of home and work, in thousands with one decimal: "
        "https://www.cbs.nl/nl-nl/cijfers/detail/85481NED",
    ),
    "bfs": Office(
        PrimarySuppression(5),
        "Swiss Federal Statistical Office, commuters by municipality of home and work: X for 1 to "
        "4, or among others: https://www.bfs.admin.ch/bfs/de/home/statistiken/"
        "mobilitaet-verkehr.gnpdetail.2020-0613.html",
    ),
    "stats-nz": Office(
        Rounding(3),
        "Stats NZ, tables of the census; that small counts are hidden in some is left out: "
        "http://archive.stats.govt.nz/about_us/legisln-policies-protocols/"
        "confidentiality-of-info-supplied-to-snz/safeguarding-confidentiality.aspx",
    ),
    "ons": Office(
        CellKey(3, _RARE),
        "Office for National Statistics, Census 2021, where about 14 % of the numbers of a table "
        "are changed; that records are swapped before is left out: https://www.ons.gov.uk/"
        "peoplepopulationandcommunity/populationandmigration/populationestimates/methodologies/"
        "protectingpersonaldataincensus2021results",
    ),
}
