"""The guarantee as a manifest states it: privacy unit, budget, and the noise of each table.

These records are what JSON is decoded into; `inftda.privacy.noise_plan.Plan` recomputes from them
whatever follows from the rest.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta

from inftda.noise.distribution import Family
from inftda.privacy.accountants import ACCOUNTANT_NAMES
from inftda.util.formats import END, Record

#: An exact number as text: a whole number, or a fraction in lowest terms.
Exact = Annotated[str, Meta(pattern=rf"^[0-9]{{1,4300}}(/[0-9]{{1,4300}})?{END}")]
Whole = Annotated[int, Meta(ge=0)]


def _said(text: str, **more: Any) -> Meta:
    return Meta(description=text, **more)


class StatedUnit(Record, frozen=True, kw_only=True):
    """The privacy unit: the difference between tables that a reader cannot distinguish."""

    neighbours: Annotated[
        Literal["substitute", "add-remove"],
        _said("one person replaced by another, or one person more or less"),
    ]
    trips: Annotated[int, _said("the most trips (entries of the table) of one person", ge=1)]
    exactly: Annotated[bool, _said("whether everybody has exactly that many")]
    distinct: Annotated[bool, _said("whether nobody makes the same trip twice")]
    once_per: Annotated[
        str | None, _said("the axis of which nobody has two trips in one finest area")
    ]


class StatedNoise(Record, frozen=True, kw_only=True):
    """The noise that was added to each count of a table."""

    distribution: Annotated[
        Family, _said("discrete Gaussian or discrete Laplace distribution, both exact")
    ]
    squared_scale: Annotated[
        Exact,
        _said(
            "exact parameter: sigma² of Gaussian noise, or the square of the parameter b of "
            "Laplace noise, whose variance is about 2 b²"
        ),
    ]
    standard_deviation: Annotated[float, _said("of the noise, to the nearest float")]


class StatedLevel(Record, frozen=True, kw_only=True):
    """A level of the tree that was measured."""

    index: Annotated[Whole, _said("number of refinements from the root; 0 is the total")]
    name: Annotated[str, _said("such as `region > province`: from regions to provinces")]
    cells: Annotated[Whole, _said("number of possible cells")]
    squared_sensitivity: Annotated[
        Whole, _said("square of the largest change of all its counts by one person (l2), exact")
    ]
    noise: Annotated[StatedNoise, _said("noise of each count")]
    rho: Annotated[
        Exact, _said("cost in zCDP, exact: `squared_sensitivity` / (2 `noise.squared_scale`)")
    ]


class StatedTable(StatedLevel, frozen=True, kw_only=True):
    """A cross table that was measured; `index` is that of the level at which it was."""

    depths: Annotated[
        tuple[Whole, ...],
        _said("for each axis the number of the level that it shows; 0 where it is summed up"),
    ]


class StatedPlan(Record, frozen=True, kw_only=True):
    """The guarantee, and the noise that it follows from."""

    epsilon: Annotated[float | None, _said("guaranteed with `delta`; null if only rho is")]
    delta: Annotated[float | None, _said("guaranteed with `epsilon`; null if only rho is")]
    rho: Annotated[Exact, _said("cost in zCDP, exact: the sum over `levels` and `cross_tables`")]
    accountant: Annotated[
        str, _said(f"how epsilon and delta follow from the noise: {ACCOUNTANT_NAMES}")
    ]
    privacy_unit: Annotated[StatedUnit, _said("the privacy unit")]
    levels: Annotated[tuple[StatedLevel, ...], _said("levels of the tree, coarse to fine")]
    cross_table_share: Annotated[
        Exact, _said("part of the budget that was requested for cross tables")
    ]
    cross_tables: Annotated[
        tuple[StatedTable, ...],
        _said(
            "cross tables; none if their share is 0, if the noise of a level has a standard "
            "deviation below 1, or if the tree has one axis"
        ),
    ]
