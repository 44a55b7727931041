"""Charts: positions of numbers on their axes. Templates draw them (charts.html)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

#: Size of a chart in its own units; the page scales it.
WIDTH, HEIGHT = 460.0, 290.0
LEFT, RIGHT, TOP, BOTTOM = 54.0, 14.0, 12.0, 44.0
_SHADES: Final = 8


class LogScale:
    """A logarithmic axis, marked by powers of ten, to a bit beyond the largest number."""

    def __init__(self, numbers: Sequence[float]) -> None:
        positive = [number for number in numbers if number > 0] or [1.0]
        self._low = math.floor(math.log10(max(min(positive), 0.1)))
        self._decades = max((math.log10(max(positive)) - self._low) * 1.06, 1.06)
        self.marks = [10.0 ** (self._low + power) for power in range(int(self._decades) + 1)]

    def at(self, number: float) -> float:
        """Position of a number on the axis, from 0 to 1."""
        return max(math.log10(max(number, 1e-9)) - self._low, 0) / self._decades

    @staticmethod
    def label(mark: float) -> str:
        """A mark in words."""
        return f"{mark:,.10g}"


class ShareScale:
    """An axis from a round share below the smallest to a round one above the largest."""

    def __init__(self, shares: Sequence[float]) -> None:
        least, most = min(shares, default=0.0), max(shares, default=1.0)
        self._low = math.floor(least * 10) / 10 if least > 0.5 else 0.0
        high = min(1.0, math.ceil(most * 10 - 1e-9) / 10)
        self._span = max(high - self._low, 0.1)
        steps = 5 if self._span * 10 % 5 < 1e-6 else 4
        self.marks = [self._low + i * self._span / steps for i in range(steps + 1)]

    def at(self, share: float) -> float:
        """Position of a share on the axis, from 0 to 1."""
        return (share - self._low) / self._span

    @staticmethod
    def label(mark: float) -> str:
        """A mark in words."""
        return f"{100 * mark:.3g} %"


@dataclass(frozen=True)
class Line:
    """One line of a chart: a number or None for each point. A bound is drawn dashed."""

    label: str
    shade: int
    values: Sequence[float | None]
    is_bound: bool = False


@dataclass(frozen=True)
class LineChart:
    """Lines over the same points, evenly spaced.

    `ticks` are the points from left to right. Values are shares (0 to 100 %) or, by default,
    numbers on a logarithmic axis.
    """

    title: str
    note: str
    ticks: Sequence[str]
    x_name: str
    lines: Sequence[Line]
    is_share: bool = False

    @property
    def places(self) -> list[tuple[str, float]]:
        """Each point with its horizontal position."""
        room = WIDTH - LEFT - RIGHT
        if len(self.ticks) == 1:
            return [(self.ticks[0], LEFT + room / 2)]
        step = room / (len(self.ticks) - 1)
        return [(tick, LEFT + i * step) for i, tick in enumerate(self.ticks)]

    @property
    def marks(self) -> list[tuple[str, float]]:
        """Marks of the vertical axis with their positions."""
        return [(self._scale.label(mark), self._height(mark)) for mark in self._scale.marks]

    @property
    def drawn(self) -> list[tuple[Line, list[tuple[float, float]]]]:
        """Each line with its points."""
        return [
            (
                line,
                [
                    (x, self._height(value))
                    for (_, x), value in zip(self.places, line.values, strict=True)
                    if value is not None
                ],
            )
            for line in self.lines
        ]

    @property
    def read_out(self) -> str:
        """Text alternative of the picture: all its numbers."""
        said = []
        for line in self.lines:
            values = [
                f"{tick}: {100 * value:.1f} %" if self.is_share else f"{tick}: {value:,.4g}"
                for tick, value in zip(self.ticks, line.values, strict=True)
                if value is not None
            ]
            said.append(f"{line.label} ({', '.join(values)})")
        return f"{self.title}: {'; '.join(said)}"

    @property
    def _scale(self) -> LogScale | ShareScale:
        values = [value for line in self.lines for value in line.values if value is not None]
        return ShareScale(values) if self.is_share else LogScale(values)

    def _height(self, value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * self._scale.at(value)


def shade_of(number: int, n: int) -> int:
    """Number of the colour of one of n lines, spread over the palette."""
    return round(number * (_SHADES - 1) / max(n - 1, 1))
