"""The frame of pages that help to decide, and their charts: one file, no script, no network."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from inftda.reports.markup import Html, asset, document, join, tag, text

#: Of a chart, in its own units; it is as wide as there is room.
_WIDTH, _HEIGHT = 460.0, 290.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 54.0, 14.0, 12.0, 44.0
_SHADES = 8


def render(parts: dict[str, str]) -> str:
    """A page from its parts: everything but style and policy."""
    folder = files("inftda.previews").joinpath("assets")
    style = asset("style.css") + folder.joinpath("decision.css").read_text(encoding="utf-8")
    return document(folder.joinpath("decision.html").read_text(encoding="utf-8"), parts, style)


def section(name: str, title: str, *parts: Html) -> Html:
    """A section with its heading."""
    heading = tag("h2", title, id=f"{name}-title")
    return tag("section", heading, *parts, id=name, aria_labelledby=f"{name}-title")


@dataclass(frozen=True)
class Line:
    """One line of a chart.

    Attributes:
        label: what it is.
        shade: number of its colour.
        values: y for each x; None where there is none.
        is_bound: whether it is a guarantee, which is drawn dashed.
    """

    label: str
    shade: int
    values: Sequence[float | None]
    is_bound: bool = False


def shade_of(number: int, n: int) -> int:
    """Colours as far apart as there are lines."""
    return round(number * (_SHADES - 1) / max(n - 1, 1))


def legend(lines: Sequence[tuple[str, int]], *, bound: str | None = None) -> Html:
    """Which colour is what, and what a dashed line is."""
    mark = Html('<line x1="0" x2="100%" y1="50%" y2="50%"/>')
    items = [
        tag("li", tag("svg", mark, aria_hidden="true"), tag("span", label), class_=f"s{shade}")
        for label, shade in lines
    ]
    if bound is not None:
        items.append(
            tag("li", tag("svg", mark, aria_hidden="true"), tag("span", bound), class_="plain")
        )
    return tag("ul", *items, class_="lines")


def chart(  # noqa: PLR0913 - what a chart shows
    title: str,
    note: str,
    ticks: Sequence[str],
    lines: Sequence[Line],
    *,
    x_name: str,
    is_share: bool = False,
) -> Html:
    """A chart of lines over the same points.

    Args:
        title: what is shown.
        note: how to read it.
        ticks: the points from left to right, evenly spaced.
        lines: what is drawn.
        x_name: what the points are.
        is_share: whether values are shares (0 to 100 %) instead of numbers (logarithmic).
    """
    scale = _Shares(lines) if is_share else _Numbers(lines)
    step = (_WIDTH - _LEFT - _RIGHT) / max(len(ticks) - 1, 1)
    at = [_LEFT + i * step if len(ticks) > 1 else _WIDTH / 2 for i in range(len(ticks))]
    parts = [
        f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text(label)}</text>'
        for label, y in scale.marks()
    ]
    base = _HEIGHT - _BOTTOM
    parts += [
        f'<text x="{x:.1f}" y="{base + 18:.1f}" text-anchor="middle">{text(tick)}</text>'
        for tick, x in zip(ticks, at, strict=True)
    ]
    parts.append(
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2:.1f}" y="{base + 38:.1f}" '
        f'text-anchor="middle">{text(x_name)}</text>'
    )
    parts += [_drawn(line, at, scale) for line in lines]
    picture = tag(
        "svg",
        Html("".join(parts)),
        class_="chart",
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        role="img",
        aria_label=f"{title}: {_read_out(ticks, lines, is_share=is_share)}",
    )
    return tag("figure", tag("figcaption", title, tag("small", note)), picture)


def bar(share: float, kind: str) -> Html:
    """A bar as long as a share of its room."""
    width = f"{100 * min(max(share, 0), 1):.2f}%"
    return tag(
        "svg",
        Html(
            '<rect class="room" width="100%" height="100%" rx="2"/>'
            f'<rect class="{kind}" width="{width}" height="100%" rx="2"/>'
        ),
        aria_hidden="true",
    )


def _drawn(line: Line, at: Sequence[float], scale: "_Numbers | _Shares") -> str:
    points = [
        (x, scale.at(value))
        for x, value in zip(at, line.values, strict=True)
        if value is not None and math.isfinite(value)
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    kind = "bound" if line.is_bound else "line"
    drawn = f'<polyline class="{kind}" points="{path}"/>'
    if not line.is_bound:
        drawn += "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in points)
    return f'<g class="s{line.shade}">{drawn}</g>'


def _read_out(ticks: Sequence[str], lines: Sequence[Line], *, is_share: bool) -> str:
    """The numbers for those who do not see the picture."""
    said = []
    for line in lines:
        values = [
            f"{tick}: {100 * value:.1f} %" if is_share else f"{tick}: {value:,.4g}"
            for tick, value in zip(ticks, line.values, strict=True)
            if value is not None
        ]
        said.append(f"{line.label} ({', '.join(values)})")
    return "; ".join(said)


def _values(lines: Sequence[Line]) -> list[float]:
    return [value for line in lines for value in line.values if value is not None and value > 0]


class _Numbers:
    """A logarithmic axis."""

    def __init__(self, lines: Sequence[Line]) -> None:
        values = _values(lines) or [1.0, 10.0]
        self._low = math.floor(math.log10(max(min(values), 0.1)))
        self._high = max(math.ceil(math.log10(max(values)) - 1e-9), self._low + 1)

    def at(self, value: float) -> float:
        decades = math.log10(max(value, 10.0**self._low)) - self._low
        room = _HEIGHT - _TOP - _BOTTOM
        return _HEIGHT - _BOTTOM - room * decades / (self._high - self._low)

    def marks(self) -> list[tuple[str, float]]:
        powers = range(self._low, self._high + 1)
        return [(f"{10.0**power:,.10g}", self.at(10.0**power)) for power in powers]


class _Shares:
    """From a round share below the smallest to a round one above the largest."""

    def __init__(self, lines: Sequence[Line]) -> None:
        given = [value for line in lines for value in line.values if value is not None]
        values = given or [0.0, 1.0]
        self._high = min(1.0, math.ceil(max(values) * 10 - 1e-9) / 10)
        self._low = max(0.0, math.floor(min(values) * 10) / 10) if min(values) > 0.5 else 0.0
        if self._high <= self._low:
            self._high = self._low + 0.1

    def at(self, value: float) -> float:
        room = _HEIGHT - _TOP - _BOTTOM
        return _HEIGHT - _BOTTOM - room * (value - self._low) / (self._high - self._low)

    def marks(self) -> list[tuple[str, float]]:
        n = 5 if (self._high - self._low) * 10 % 5 < 1e-6 else 4
        shares = [self._low + i * (self._high - self._low) / n for i in range(n + 1)]
        return [(f"{100 * share:.3g} %", self.at(share)) for share in shares]


def masthead(kicker: str, heading: str, sub: str) -> Html:
    """The top of a page."""
    return join(
        [tag("p", kicker, class_="kicker"), tag("h1", heading), tag("p", sub, class_="sub")]
    )
