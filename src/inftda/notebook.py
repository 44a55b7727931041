"""How objects look in a notebook: a heading, a small table, and a few lines of text.

Names of areas and columns come from files, so everything is escaped.
"""

from collections.abc import Iterable, Sequence
from html import escape

_RIGHT, _LEFT = "text-align:right", "text-align:left"


def card(
    title: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    notes: Iterable[tuple[str, str]] = (),
) -> str:
    """An object as HTML.

    Args:
        title: one line.
        head: names of the columns, the first of which is text and all others numbers.
        rows: cells.
        notes: what to say below, each with a word in front of it.

    >>> card("2 < 3", ["level"], [["<b>"]])
    '<div><strong>2 &lt; 3</strong><table><tr><th style="text-align:left">level</th></tr><tr><td style="text-align:left">&lt;b&gt;</td></tr></table></div>'
    """  # noqa: E501 - one line of output
    lines = [_row("th", head), *(_row("td", row) for row in rows)]
    said = "".join(
        f"<div><strong>{escape(word)}</strong> {escape(text)}</div>" for word, text in notes
    )
    return f"<div><strong>{escape(title)}</strong><table>{''.join(lines)}</table>{said}</div>"


def _row(kind: str, cells: Sequence[str]) -> str:
    shown = (
        f'<{kind} style="{_RIGHT if column else _LEFT}">{escape(cell)}</{kind}>'
        for column, cell in enumerate(cells)
    )
    return f"<tr>{''.join(shown)}</tr>"
