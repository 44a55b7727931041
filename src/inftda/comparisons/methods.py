"""Protection without a guarantee, as statistical offices use it.

- `suppress:K`: cells below K are hidden (primary), and others with them so that no hidden cell
  follows from its family (secondary). Going down the tree: where a parent is shown, the
  smallest others are hidden until at least two are, which come to K together; where a parent is
  hidden and no child is, its smallest child is. Zeros are shown.
- `suppress-primary:K`: the first without the second.
- `round:B`: every number is rounded at random to one of the two next multiples of B, so that it
  is right in expectation; drawn once for each cell and kept, so that repeated tables agree.
- `cell-key:D`: every record has a random key; the sum of the keys of a cell picks its change of
  at most D from a perturbation matrix (mean 0, variance 2 where there is room, no number below
  0, zeros stay). The same records give the same number in every table.

Chance here needs no secure bits: nothing is promised, and nothing of it is published.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from inftda.comparisons.published import (
    Numbers,
    Published,
    Shown,
    finest_totals,
    seen_trips,
    true_levels,
)
from inftda.errors import InftdaError
from inftda.kernels import kernel
from inftda.truth import Truth

#: Variance of the changes by cell keys, where there is room.
_VARIANCE = 2.0
#: Where the largest true counts lie, sums of bounds stay far from overflow.
_MOST_TRIPS = 1 << 40


class Method(Protocol):
    """A way to protect tables that promises nothing."""

    @property
    def name(self) -> str:
        """As it is called on the command line."""

    @property
    def words(self) -> str:
        """What it does, for people."""

    def publish(self, truth: Truth, random: np.random.Generator) -> Published:
        """All tables of one edition."""

    def show(self, true: Numbers, random: np.random.Generator) -> Numbers:
        """Published values of one table by itself; 0 where a cell is hidden."""


@dataclass(frozen=True)
class Suppression:
    """Small cells are hidden.

    Attributes:
        least: smallest count that is shown.
        is_secondary: whether others are hidden with them.
    """

    least: int
    is_secondary: bool = True

    @property
    def name(self) -> str:
        """As it is called on the command line."""
        return f"{'suppress' if self.is_secondary else 'suppress-primary'}:{self.least}"

    @property
    def words(self) -> str:
        """What it does."""
        also = ", and others so that none follows from its family" if self.is_secondary else ""
        return f"cells below {self.least} are hidden{also}; totals are published"

    def publish(self, truth: Truth, random: np.random.Generator) -> Published:  # noqa: ARG002
        """All tables; nothing is left to chance."""
        levels = [self._shown(np.array([truth.total]), np.zeros(1, bool), truth.total)]
        for number, level in enumerate(truth.levels):
            is_hidden = level.count < self.least
            if self.is_secondary:
                above = levels[-1].is_hidden[truth.above(number)]
                hide_more_kernel(level.offsets, level.count, above, self.least, is_hidden)
            levels.append(self._shown(level.count, is_hidden, truth.total))
        totals = [
            self._shown(true, (true > 0) & (true < self.least), truth.total)
            for true in finest_totals(truth)
        ]
        seen = seen_trips(truth, [~level.is_hidden for level in levels])
        return Published(truth, tuple(levels), tuple(totals), 0, *seen)

    def show(self, true: Numbers, random: np.random.Generator) -> Numbers:  # noqa: ARG002
        """Small ones are hidden."""
        return np.where(true < self.least, 0, true)

    @staticmethod
    def _shown(true: Numbers, is_hidden: NDArray[np.bool_], total: int) -> Shown:
        # Zeros are shown, so what is hidden is at least 1; a secondary one may be any number.
        low, high = np.where(is_hidden, 1, true), np.where(is_hidden, total, true)
        return Shown(true, np.where(is_hidden, 0, true), is_hidden, low, high)


@dataclass(frozen=True)
class Rounding:
    """Numbers are rounded at random.

    Attributes:
        base: to multiples of this.
    """

    base: int

    @property
    def name(self) -> str:
        """As it is called on the command line."""
        return f"round:{self.base}"

    @property
    def words(self) -> str:
        """What it does."""
        return f"every number is rounded at random to a multiple of {self.base}, once for each cell"

    def publish(self, truth: Truth, random: np.random.Generator) -> Published:
        """All tables, each rounded by itself."""
        levels, changed = [], []
        for true in true_levels(truth):
            chance = random.random(len(true))
            value = self._rounded(true, chance)
            changed.append(value != self._rounded(true - 1, chance))
            levels.append(self._shown(true, value))
        totals = [self._shown(true, self.show(true, random)) for true in finest_totals(truth)]
        seen = seen_trips(truth, changed)
        return Published(truth, tuple(levels), tuple(totals), self.base - 1, *seen)

    def show(self, true: Numbers, random: np.random.Generator) -> Numbers:
        """Rounded."""
        return self._rounded(true, random.random(len(true)))

    def _rounded(self, true: Numbers, chance: NDArray[np.float64]) -> Numbers:
        down, rest = np.divmod(true, self.base)
        return np.asarray(self.base * (down + (chance * self.base < rest)), np.int64)

    def _shown(self, true: Numbers, value: Numbers) -> Shown:
        reach = self.base - 1
        low = np.maximum(value - reach, 0)
        return Shown(true, value, np.zeros(len(true), bool), low, value + reach)


@dataclass(frozen=True)
class CellKey:
    """Numbers are changed by the keys of their records.

    Attributes:
        most: the largest change.
    """

    most: int = 3

    @property
    def name(self) -> str:
        """As it is called on the command line."""
        return f"cell-key:{self.most}"

    @property
    def words(self) -> str:
        """What it does."""
        return f"the keys of its records change every number, by {self.most} at most"

    def publish(self, truth: Truth, random: np.random.Generator) -> Published:
        """All tables; the same records give the same number everywhere."""
        matrix = perturbation_matrix(self.most)
        seed = np.uint64(random.integers(1, 2**63))
        leaves = true_levels(truth)[-1]
        keys = [np.empty(len(leaves), np.uint64)]
        sum_keys_kernel(leaves, seed, keys[0])
        for number, level in reversed(list(enumerate(truth.levels))):
            sums = np.add.reduceat(keys[0], level.offsets[:-1])
            keys.insert(0, np.empty_like(sums))
            keys[0][truth.above(number)] = sums
        levels = [
            self._shown(true, _changed(true, key, matrix))
            for true, key in zip(true_levels(truth), keys, strict=True)
        ]
        totals = [self._shown(true, self.show(true, random)) for true in finest_totals(truth)]
        node = _nodes_of_leaves(truth)
        start = np.cumsum([0, *(len(level.true) for level in levels)])
        seen = seen_by_keys_kernel(
            leaves,
            seed,
            node + start[:-1, None],
            np.concatenate([level.true for level in levels]),
            np.concatenate([level.value for level in levels]),
            np.concatenate(keys),
            matrix,
        )
        return Published(truth, tuple(levels), tuple(totals), self.most, *map(int, seen))

    def show(self, true: Numbers, random: np.random.Generator) -> Numbers:
        """Changed by keys of their own."""
        keys = random.integers(0, 2**63, len(true)).astype(np.uint64)
        return _changed(true, keys, perturbation_matrix(self.most))

    def _shown(self, true: Numbers, value: Numbers) -> Shown:
        # Zeros stay zeros, so what is published above 0 is above 0.
        low = np.where(value > 0, np.maximum(value - self.most, 1), 0)
        return Shown(true, value, np.zeros(len(true), bool), low, value + self.most)


def check_size(truth: Truth) -> None:
    """Refuse a table too large for sums of bounds.

    Raises:
        InftdaError: there are more than 2^40 trips.
    """
    if truth.total >= _MOST_TRIPS:
        raise InftdaError("a comparison of methods is for tables of less than 2^40 trips")


def perturbation_matrix(most: int) -> NDArray[np.float64]:
    """float64[most + 1, 2 most + 1]: running sums of the probabilities of each change.

    Row n is for counts of n (the last one for all from `most` on), column v for a change of
    v - most. Of all laws with mean 0 and the variance, the one with the largest entropy; small
    counts have no room for it and take the same law cut off at 0, tilted to mean 0.
    """
    change = np.arange(-most, most + 1, dtype=np.float64)
    spread = _solved(lambda b: _VARIANCE - _moment(np.exp(-b * change**2), change**2), 0.0, 50.0)
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
    return _solved(lambda a: _moment(weight * np.exp(a * change), change), -20.0, 20.0)


def _moment(weight: NDArray[np.float64], value: NDArray[np.float64]) -> float:
    return float((weight * value).sum() / weight.sum())


def _solved(growing: "Growing", low: float, high: float) -> float:
    """Where a growing function passes 0, by halving."""
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if growing(middle) < 0 else (low, middle)
    return (low + high) / 2


class Growing(Protocol):
    """A function that grows."""

    def __call__(self, at: float, /) -> float:
        """Its value."""


def _changed(true: Numbers, key: NDArray[np.uint64], matrix: NDArray[np.float64]) -> Numbers:
    value = np.empty(len(true), np.int64)
    change_kernel(true, key, matrix, value)
    return value


def _nodes_of_leaves(truth: Truth) -> NDArray[np.int64]:
    """int64[levels + 1, leaves]: node of each leaf at the root and each splitting level."""
    rows = [np.arange(truth.n_leaves, dtype=np.int64)]
    for number, level in reversed(list(enumerate(truth.levels))):
        above = np.repeat(truth.above(number), np.diff(level.offsets))
        rows.insert(0, above[rows[0]])
    return np.array(rows)


@kernel
def hide_more_kernel(
    offsets: NDArray[np.int64],
    count: NDArray[np.int64],
    above: NDArray[np.bool_],
    least: int,
    is_hidden: NDArray[np.bool_],
) -> None:
    """Hide more cells, so that none that is hidden follows from its family.

    Args:
        offsets: int64[parents + 1], slices of the children.
        count: int64[children].
        above: bool[parents], which parents are hidden.
        least: smallest count that is shown by itself.
        is_hidden: bool[children]; more become true.
    """
    for parent in range(offsets.size - 1):
        first, last = offsets[parent], offsets[parent + 1]
        hidden, together = 0, 0
        for i in range(first, last):
            if is_hidden[i]:
                hidden += 1
                together += count[i]
        if hidden == 0 and not above[parent]:
            continue
        while True:
            is_done = hidden > 0 if above[parent] else hidden >= 2 and together >= least
            if is_done:
                break
            smallest = -1
            for i in range(first, last):
                if not is_hidden[i] and (smallest < 0 or count[i] < count[smallest]):
                    smallest = i
            if smallest < 0:
                break
            is_hidden[smallest] = True
            hidden += 1
            together += count[smallest]


@kernel
def _key_of(seed: np.uint64, record: int) -> np.uint64:
    """The key of a record: SplitMix64."""
    z = seed + np.uint64(record) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def _by_key(count: int, key: np.uint64, matrix: NDArray[np.float64]) -> int:
    """A count as it is published with the sum of its keys."""
    most = matrix.shape[0] - 1
    row = min(count, most)
    chance = float(key >> np.uint64(11)) / 9007199254740992.0  # 2^53
    at = 0
    while matrix[row, at] <= chance:
        at += 1
    return int(count + at - most)


@kernel
def change_kernel(
    true: NDArray[np.int64],
    key: NDArray[np.uint64],
    matrix: NDArray[np.float64],
    value: NDArray[np.int64],
) -> None:
    """Counts as they are published; written to `value`."""
    for i in range(true.size):
        value[i] = _by_key(true[i], key[i], matrix)


@kernel
def sum_keys_kernel(leaves: NDArray[np.int64], seed: np.uint64, keys: NDArray[np.uint64]) -> None:
    """Sums of the keys of each leaf's records, modulo 2^64; written to `keys`."""
    record = 0
    for i in range(leaves.size):
        total = np.uint64(0)
        for _ in range(leaves[i]):
            total += _key_of(seed, record)
            record += 1
        keys[i] = total


@kernel
def seen_by_keys_kernel(  # noqa: PLR0913, PLR0917 - a kernel takes plain arrays
    leaves: NDArray[np.int64],
    seed: np.uint64,
    node: NDArray[np.int64],
    true: NDArray[np.int64],
    value: NDArray[np.int64],
    keys: NDArray[np.uint64],
    matrix: NDArray[np.float64],
) -> tuple[int, int]:
    """Records without which their leaf, and any number below the root, is another.

    Args:
        leaves: int64[leaves], true counts.
        seed: of the keys.
        node: int64[levels + 1, leaves], where each leaf's numbers stand in the next three.
        true: int64, true counts of all levels.
        value: int64, published ones.
        keys: uint64, sums of keys.
        matrix: running sums of probabilities.
    """
    at_leaf, somewhere, record = 0, 0, 0
    last = node.shape[0] - 1
    for i in range(leaves.size):
        for _ in range(leaves[i]):
            key = _key_of(seed, record)
            record += 1
            is_seen, is_leaf = False, False
            for level in range(last, 0, -1):
                here = node[level, i]
                if _by_key(true[here] - 1, keys[here] - key, matrix) != value[here]:
                    is_seen = True
                    is_leaf = is_leaf or level == last
                    break
            at_leaf += is_leaf
            somewhere += is_seen
    return at_leaf, somewhere
