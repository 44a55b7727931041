"""Disclosure-control methods of statistical offices, which have no guarantee, as data.

Every method maps true counts to published numbers, 0 where a cell is hidden; all of them publish
zeros as zeros. Secondary suppression also looks at the families of a tree: going down, where a
parent is shown, the smallest other children are hidden until at least two are, which come to the
threshold together; where a parent is hidden and no child is, its smallest child is hidden.

Random numbers need no secure source: nothing is guaranteed, and nothing is published.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from inftda.errors import InftdaError
from inftda.reading.truth import Truth
from inftda.tree import Ints

_LARGEST_PARAMETER: Final = 10_000


def hide_small(true: Ints, most: int, _: np.random.Generator) -> Ints:
    """Counts below `most` are hidden."""
    return np.where(true < most, 0, true)


def round_at_random(true: Ints, base: int, random: np.random.Generator) -> Ints:
    """Each count becomes one of the two next multiples of `base`, with the count as the mean."""
    down, rest = np.divmod(true, base)
    return np.asarray(base * (down + (base * random.random(len(true)) < rest)), np.int64)


def round_to_nearest(true: Ints, base: int, _: np.random.Generator) -> Ints:
    """Each count becomes the nearest multiple of `base`, halves rounded up."""
    return base * ((2 * true + base) // (2 * base))


def change_by_key(
    true: Ints, most: int, random: np.random.Generator, *, variance: float = 2.0
) -> Ints:
    """Each count changes by at most `most`, with mean 0; the keys of all cells are independent."""
    matrix = perturbation_matrix(most, variance)
    row, chance = np.minimum(true, most), random.random(len(true))
    # The rows one after the other: row n holds numbers from 2 n to 2 n + 1.
    stacked = (matrix + 2.0 * np.arange(most + 1)[:, None]).ravel()
    at = np.searchsorted(stacked, chance + 2.0 * row, side="right") - row * matrix.shape[1]
    return np.asarray(true + np.minimum(at, 2 * most) - most, np.int64)


def perturbation_matrix(most: int, variance: float) -> NDArray[np.float64]:
    """float64[most + 1, 2 most + 1]: cumulative probabilities of each change, by count.

    Row n is for counts of n (the last one for all from `most` on), column v for a change of
    v - most. Of all distributions with mean 0 and the variance, it is the one with the largest
    entropy; for small counts the same is cut off at 0 and tilted to mean 0.
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
    """Where a growing function passes 0, by bisection."""
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if growing(middle) < 0 else (low, middle)
    return (low + high) / 2


@dataclass(frozen=True)
class Kind:
    """A kind of method with one whole number.

    `words` have a place for the number. `show` makes published numbers of true counts, the number
    and random numbers. If it is secondary, more cells of a family are hidden.
    """

    default: int
    words: str
    show: Callable[..., Ints]
    is_secondary: bool = False


@dataclass(frozen=True)
class Method:
    """A method that an office may use.

    `source` is the office, its tables, the parts left out, and the reference.
    """

    name: str
    kind: Kind
    number: int
    source: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """Describe the method and state its source."""
        words = self.kind.words.format(self.number)
        return f"{words}. {self.source}" if self.source else words

    def show(self, true: Ints, random: np.random.Generator) -> Ints:
        """Published numbers of one table, each cell by itself."""
        return self.kind.show(true, self.number, random, **self.options)

    def show_levels(self, truth: Truth, random: np.random.Generator) -> list[Ints]:
        """Published numbers of the splitting levels of a tree; cells in the order of the truth."""
        shown, is_hidden = [], np.zeros(1, bool)
        for number, level in enumerate(truth.levels):
            value = self.show(level.count, random)
            if self.kind.is_secondary:
                above = is_hidden[truth.above(number)]
                is_hidden = hide_in_families(level.count, level.offsets, above, self.number)
                value = np.where(is_hidden, 0, level.count)
            shown.append(value)
        return shown


def hide_in_families(
    count: Ints, offsets: Ints, is_parent_hidden: NDArray[np.bool_], most: int
) -> NDArray[np.bool_]:
    """Which children are hidden, so that no hidden one follows from its family.

    Families lie between `offsets`; a parent's flag is that of its family. Counts below `most` are
    hidden.
    """
    is_hidden, n = count < most, np.diff(offsets)
    family = np.repeat(np.arange(len(n)), n)
    # In each family the hidden children come first, then the smallest others.
    order = np.lexsort((count, ~is_hidden, family))
    ordered = count[order]
    n_before = np.arange(len(order)) - offsets[family]
    sum_before = np.cumsum(ordered) - ordered
    sum_before -= sum_before[offsets[family]]
    is_enough = np.where(
        is_parent_hidden[family], n_before >= 1, (n_before >= 2) & (sum_before >= most)
    )
    has_hidden = is_parent_hidden | (np.bincount(family[is_hidden], minlength=len(n)) > 0)
    is_hidden[order] |= has_hidden[family] & ~is_enough
    return is_hidden


_SMALL: Final = "cells below {} are hidden"
KINDS: Final = {
    "suppress": Kind(
        10,
        f"{_SMALL}, and others so that none follows from its family; totals are published",
        hide_small,
        is_secondary=True,
    ),
    "suppress-primary": Kind(10, f"{_SMALL}; totals are published", hide_small),
    "round": Kind(5, "every number is rounded at random to a multiple of {}", round_at_random),
    "round-nearest": Kind(
        100, "every number is rounded to the nearest multiple of {}", round_to_nearest
    ),
    "cell-key": Kind(
        3, "the keys of its records change every number, by at most {}", change_by_key
    ),
}
OFFICES: Final = {
    "cbs": Method(
        "cbs",
        KINDS["round-nearest"],
        100,
        "Statistics Netherlands, jobs by region of home and work, in thousands with one decimal: "
        "https://www.cbs.nl/nl-nl/cijfers/detail/85481NED",
    ),
    "bfs": Method(
        "bfs",
        KINDS["suppress-primary"],
        5,
        "Swiss Federal Statistical Office, commuters by municipality of home and work: X for 1 to "
        "4, or among others: https://www.bfs.admin.ch/bfs/de/home/statistiken/"
        "mobilitaet-verkehr.gnpdetail.2020-0613.html",
    ),
    "stats-nz": Method(
        "stats-nz",
        KINDS["round"],
        3,
        "Stats NZ, tables of the census; that small counts are hidden in some is left out: "
        "http://archive.stats.govt.nz/about_us/legisln-policies-protocols/"
        "confidentiality-of-info-supplied-to-snz/safeguarding-confidentiality.aspx",
    ),
    "ons": Method(
        "ons",
        KINDS["cell-key"],
        3,
        "Office for National Statistics, Census 2021, where about 14 % of the numbers of a table "
        "are changed; that records are swapped before is left out: https://www.ons.gov.uk/"
        "peoplepopulationandcommunity/populationandmigration/populationestimates/methodologies/"
        "protectingpersonaldataincensus2021results",
        {"variance": 0.14},
    ),
}


def find_method(name: str) -> Method:
    """The method of an office, or of a kind with its number after a colon.

    Raises:
        InftdaError: there is no such method, or its number is out of range.
    """
    if name in OFFICES:
        return OFFICES[name]
    kind, colon, text = name.partition(":")
    if kind not in KINDS:
        known = ", ".join((*OFFICES, *KINDS))
        raise InftdaError(f"there is no method {name!r}; beside inftda there are {known}")
    number = text if colon else str(KINDS[kind].default)
    if not number.isdecimal() or not 2 <= int(number) <= _LARGEST_PARAMETER:
        raise InftdaError(
            f"{kind} takes a whole number from 2 to {_LARGEST_PARAMETER:,}, such as "
            f"{kind}:{KINDS[kind].default}, got {name!r}"
        )
    return Method(f"{kind}:{number}", KINDS[kind], int(number))
